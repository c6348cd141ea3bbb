//! The weak memory order of RISC-V and total store order, by enumeration: every outcome of a litmus program.
//!
//! All total orders of its memory operations that have the preserved program order are tried; the load value
//! axiom says what each load returns, the atomicity axiom which `sc` may store. Source: RISC-V unprivileged
//! ISA, chapter RVWMO (rules 1 to 13) and Ztso. A half of a location stands for its bytes. An access across
//! lines is two operations that nothing orders, as the chapter lets misaligned accesses be. Written from the
//! text alone, apart from the machine.

use std::collections::BTreeSet;

use super::notation::{Access, Kind, Outcome, Program, Step};

/// Which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    Rvwmo,
    Tso,
}

/// A half of a location: twice its number, plus 1 for the high one.
type Cell = usize;

/// A memory operation.
#[derive(Debug, Clone)]
struct Operation {
    hart: usize,
    /// Its statement in the hart.
    at: usize,
    access: Access,
    cells: Vec<Cell>,
}

impl Operation {
    fn overlaps(&self, other: &Operation) -> bool {
        self.cells.iter().any(|cell| other.cells.contains(cell))
    }

    fn is_special(&self) -> bool {
        self.access.acquire || self.access.release
    }
}

/// Where a load's half comes from: an operation, or the beginning.
type From = Option<usize>;

struct Search<'a> {
    program: &'a Program,
    operations: Vec<Operation>,
    /// By operation: those that come before it.
    before: Vec<u32>,
    /// Rule 12: what the first has an address or data of, the second stores, and the third loads.
    through: Vec<(usize, usize, usize)>,
    /// Of an `sc`: its `lr`.
    pairs: Vec<(usize, usize)>,
    seen: BTreeSet<State>,
    outcomes: BTreeSet<Outcome>,
    /// Results of `sc`.
    results: Vec<(usize, u32)>,
}

/// Operations that have their place in the global order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    placed: u32,
    /// By operation and its cells.
    from: Vec<Vec<From>>,
    /// By cell: its stores, in their order, with their values.
    stores: Vec<Vec<(usize, u32)>>,
}

/// Every outcome that an order allows.
pub(crate) fn outcomes(program: &Program, model: Model) -> BTreeSet<Outcome> {
    let conditionals = program.harts.iter().flatten().filter(is_conditional).count();
    let mut all = BTreeSet::new();
    for stored in 0..1u32 << conditionals {
        all.extend(with_conditionals(program, model, stored));
    }
    all
}

fn is_conditional(step: &&Step) -> bool {
    matches!(step, Step::Access(Access { kind: Kind::Conditional, .. }))
}

/// The outcomes in which these `sc` have stored, a bit each.
fn with_conditionals(program: &Program, model: Model, mut stored: u32) -> BTreeSet<Outcome> {
    let (mut operations, mut pairs, mut results) = (Vec::<Operation>::new(), Vec::new(), Vec::new());
    for (hart, steps) in program.harts.iter().enumerate() {
        let mut reserved: Option<usize> = None;
        for (at, step) in steps.iter().enumerate() {
            let &Step::Access(access) = step else { continue };
            if let (Kind::Conditional, Some(to)) = (access.kind, access.to) {
                let stores = stored & 1 == 1;
                stored >>= 1;
                results.push((to, u32::from(!stores)));
                let of = reserved.take().filter(|&of| {
                    let of = &operations[of].access;
                    (of.location, of.half, of.halves) == (access.location, access.half, access.halves)
                });
                match (stores, of) {
                    (false, _) => continue,
                    // Without a reservation none stores.
                    (true, None) => return BTreeSet::new(),
                    (true, Some(of)) => pairs.push((of, operations.len())),
                }
            }
            if access.kind == Kind::Reserve {
                reserved = Some(operations.len());
            }
            let cells: Vec<Cell> =
                (access.half..access.half + access.halves).map(|half| 2 * access.location + half).collect();
            if program.is_across(access.location) {
                operations.extend(cells.iter().map(|&cell| Operation { hart, at, access, cells: vec![cell] }));
            } else {
                operations.push(Operation { hart, at, access, cells });
            }
        }
    }
    let (mut before, mut through) = (vec![0; operations.len()], Vec::new());
    for (second, b) in operations.iter().enumerate() {
        for (first, a) in operations.iter().enumerate() {
            if a.hart != b.hart || a.at >= b.at {
                continue;
            }
            let paired = pairs.contains(&(first, second));
            if paired || preserved(&program.harts[a.hart], a, b) || model == Model::Tso && total(a, b) {
                before[second] |= 1 << first;
            }
            let between = operations.iter().enumerate().filter(|(_, m)| m.hart == a.hart && m.at > a.at && m.at < b.at);
            through.extend(
                between
                    .filter(|(_, m)| m.access.kind.stores() && b.access.kind.loads() && depends(a, m))
                    .map(|(middle, _)| (first, middle, second)),
            );
        }
    }
    let first = State {
        placed: 0,
        from: operations.iter().map(|operation| vec![None; operation.cells.len()]).collect(),
        stores: vec![Vec::new(); 2 * program.locations.len()],
    };
    let (seen, outcomes) = (BTreeSet::new(), BTreeSet::new());
    let mut search = Search { program, operations, before, through, pairs, seen, outcomes, results };
    search.go(first);
    search.outcomes
}

/// The address or the data of `m` depend on what `a` loads.
fn depends(a: &Operation, m: &Operation) -> bool {
    a.access.to.is_some() && (m.access.address_of == a.access.to || m.access.data_of == a.access.to)
}

/// Total store order: all but a store before a load. An AMO is both.
fn total(a: &Operation, b: &Operation) -> bool {
    let (a, b) = (a.access.kind, b.access.kind);
    a.loads() || b.stores() || a.is_amo() || b.is_amo()
}

/// Preserved program order of RVWMO, as far as the program alone says it: rules 1, 4 to 7, 9 to 11, 13.
fn preserved(steps: &[Step], a: &Operation, b: &Operation) -> bool {
    let (loads, stores) = (a.access.kind.loads(), a.access.kind.stores());
    let (then_loads, then_stores) = (b.access.kind.loads(), b.access.kind.stores());
    let to = a.access.to;
    let overlapping = then_stores && a.overlaps(b);
    let fenced = steps[a.at + 1..b.at].iter().any(|step| match *step {
        Step::Fence(before, after) => {
            (before & 1 != 0 && stores || before & 2 != 0 && loads)
                && (after & 1 != 0 && then_stores || after & 2 != 0 && then_loads)
        }
        Step::FenceTso => loads || stores && then_stores,
        _ => false,
    });
    let ordered = a.access.acquire || b.access.release || a.is_special() && b.is_special();
    let of_operands = to.is_some() && (b.access.address_of == to || then_stores && b.access.data_of == to);
    let of_branch = then_stores
        && steps[a.at + 1..b.at].iter().any(|step| matches!(step, Step::Branch(register) if Some(*register) == to));
    let of_address = then_stores
        && to.is_some()
        && steps[a.at + 1..b.at].iter().any(|step| matches!(step, Step::Access(access) if access.address_of == to));
    overlapping || fenced || ordered || of_operands || of_branch || of_address
}

impl Search<'_> {
    fn go(&mut self, state: State) {
        let all = (1u32 << self.operations.len()) - 1;
        if state.placed == all {
            self.outcomes.insert(self.outcome(&state));
            return;
        }
        if !self.seen.insert(state.clone()) {
            return;
        }
        for next in 0..self.operations.len() {
            let ready = state.placed >> next & 1 == 0 && self.before[next] & !state.placed == 0;
            if ready && let Some(state) = self.place(&state, next) {
                self.go(state);
            }
        }
    }

    /// The operation takes the next place in the global order, if the axioms let it.
    fn place(&self, state: &State, next: usize) -> Option<State> {
        let operation = &self.operations[next];
        let mut state = state.clone();
        if operation.access.kind.loads() {
            for (nth, &cell) in operation.cells.iter().enumerate() {
                state.from[next][nth] = self.load(&state, next, cell)?;
            }
            self.same_address_loads(&state, next)?;
        }
        if let Some(&(reserve, _)) = self.pairs.iter().find(|&&(_, store)| store == next) {
            self.atomic(&state, reserve, operation)?;
        }
        if operation.access.kind.stores() {
            for &cell in &operation.cells {
                let old = state.stores[cell].last().map_or(0, |&(_, value)| value);
                let added = if operation.access.kind == Kind::Add { old } else { 0 };
                state.stores[cell].push((next, operation.access.value + added));
            }
        }
        state.placed |= 1 << next;
        Some(state)
    }

    /// The load value axiom: the latest store of those before the load in either order. Rules 3 and 12.
    fn load(&self, state: &State, load: usize, cell: Cell) -> Option<From> {
        let of = &self.operations[load];
        let own = |&(at, store): &(usize, &Operation)| {
            store.hart == of.hart
                && store.at < of.at
                && store.access.kind.stores()
                && store.cells.contains(&cell)
                && state.placed >> at & 1 == 0
        };
        // Stores of one address keep their order, so that the last one is the latest.
        let from = match self.operations.iter().enumerate().rfind(own) {
            Some((_, store)) if store.access.kind != Kind::Store => return None,
            Some((at, _)) => Some(at),
            None => state.stores[cell].last().map(|&(at, _)| at),
        };
        let through = self.through.iter().filter(|&&(_, middle, last)| last == load && Some(middle) == from);
        through.into_iter().all(|&(first, ..)| state.placed >> first & 1 == 1).then_some(from)
    }

    /// Rule 2: younger loads that have their places already return what this one does, but for what a store
    /// in between wrote.
    fn same_address_loads(&self, state: &State, load: usize) -> Option<()> {
        let a = &self.operations[load];
        for (later, b) in self.operations.iter().enumerate() {
            if b.hart != a.hart || b.at <= a.at || state.placed >> later & 1 == 0 || !b.access.kind.loads() {
                continue;
            }
            for (nth, cell) in b.cells.iter().enumerate() {
                let Some(own) = a.cells.iter().position(|of| of == cell) else { continue };
                let between = self.operations.iter().any(|m| {
                    m.hart == a.hart && m.at > a.at && m.at < b.at && m.access.kind.stores() && m.cells.contains(cell)
                });
                if !between && state.from[load][own] != state.from[later][nth] {
                    return None;
                }
            }
        }
        Some(())
    }

    /// The atomicity axiom: no store of another hart since the one that the `lr` returned.
    fn atomic(&self, state: &State, reserve: usize, conditional: &Operation) -> Option<()> {
        for (nth, &cell) in self.operations[reserve].cells.iter().enumerate() {
            let stores = &state.stores[cell];
            let since = match state.from[reserve][nth] {
                Some(from) => 1 + stores.iter().position(|&(at, _)| at == from)?,
                None => 0,
            };
            if stores[since..].iter().any(|&(at, _)| self.operations[at].hart != conditional.hart) {
                return None;
            }
        }
        Some(())
    }

    fn outcome(&self, state: &State) -> Outcome {
        let mut outcome = vec![0; self.program.memory_place(self.program.locations.len())];
        let value = |cell: Cell, from: From| {
            from.map_or(0, |from| state.stores[cell].iter().find(|&&(at, _)| at == from).map_or(0, |&(_, value)| value))
        };
        for (operation, from) in self.operations.iter().zip(&state.from) {
            let Some(to) = operation.access.to.filter(|_| operation.access.kind.loads()) else { continue };
            for (&cell, &from) in operation.cells.iter().zip(from) {
                outcome[self.program.place(to) + cell % 2 - operation.access.half] = value(cell, from);
            }
        }
        for &(to, result) in &self.results {
            outcome[self.program.place(to)] = result;
        }
        for (cell, stores) in state.stores.iter().enumerate() {
            outcome[self.program.memory_place(0) + cell] = stores.last().map_or(0, |&(_, value)| value);
        }
        outcome
    }
}
