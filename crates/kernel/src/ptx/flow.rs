//! Where the values in a kernel's registers come from: the flow of pointers from its parameters, over the
//! text itself.
//!
//! ```text
//! statements -> code in a row, registers and labels resolved -> blocks -> origins of every register at every block
//! ```
//! A forward analysis over sets of origins (a bit each): the pointer parameters, addresses of variables,
//! values loaded from memory, and whether threads of a CTA may hold different values. A result has the
//! origins of all operands, so the sets are never too small. Threads that took different ways may hold
//! different values of a register that is written in several places: writes after such a fork count as
//! different.
//!
//! Not modelled: what a called function does (its results count as loaded), pointers put together from
//! halves.

use hashbrown::HashMap;

use super::ast::{Function, Instruction, Operand, OperandKind, Statement};

/// Origins of a value, a bit each: pointer parameters from bit 0.
pub(super) type Origins = u64;
/// Pointer parameters that have a bit of their own.
pub(super) const MAX_POINTERS: usize = 56;
/// Any pointer parameter.
pub(super) const POINTERS: Origins = (1 << MAX_POINTERS) - 1;
/// The address of a variable: shared, local, or of the module.
pub(super) const VARIABLE: Origins = 1 << 60;
/// Loaded from memory.
pub(super) const LOADED: Origins = 1 << 61;
/// May differ between the threads of a CTA.
const VARYING: Origins = 1 << 62;

/// A register by number, declared in some scope.
type Register = usize;

/// One instruction with its names resolved.
#[derive(Debug)]
pub(super) struct FlowStep<'a> {
    pub(super) inst: &'a Instruction<'a>,
    pub(super) guard: Option<Register>,
    pub(super) writes: Vec<Register>,
    pub(super) reads: Vec<Register>,
    /// Origins that do not come from a register.
    own: Origins,
    /// Further origins of each register written, where they differ.
    each: Vec<Origins>,
    /// Where a branch goes, besides on.
    targets: Vec<usize>,
    /// Registers of the address, and its origins that do not come from them.
    pub(super) address: (Vec<Register>, Origins),
}

/// How an instruction ends a path or synchronises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Plain,
    Branch,
    Exit,
    Barrier,
}

/// A kernel's instructions in a row, and what flows through them.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) code: Vec<FlowStep<'a>>,
    roles: Vec<Role>,
    /// First instruction of each block, and the number of instructions at the end.
    starts: Vec<usize>,
    /// Origins at the start of each block.
    before: Vec<Vec<Origins>>,
    registers: usize,
    /// Writes that may differ between threads because of the way the thread came.
    forked: Vec<bool>,
}

/// What the parameters of a kernel are: a number of a pointer by the name of its parameter and the offset in
/// it.
pub(super) trait Pointers {
    /// `None`: no parameter of that name. `Some(None)`: no pointer at that offset.
    fn at(&self, name: &str, offset: i64) -> Option<Option<usize>>;
}

/// Names in sight while statements are read.
#[derive(Default)]
struct Scopes<'a> {
    parents: Vec<Option<usize>>,
    ranges: Vec<Vec<(&'a str, Option<u64>)>>,
    labels: HashMap<(usize, &'a str), usize>,
    /// Lists of branch targets.
    lists: HashMap<(usize, &'a str), &'a [Operand<'a>]>,
    registers: HashMap<(usize, &'a str), Register>,
}

impl<'a> Scopes<'a> {
    fn open(&mut self, parent: Option<usize>) -> usize {
        self.parents.push(parent);
        self.ranges.push(Vec::new());
        self.parents.len() - 1
    }

    fn declares(&self, scope: usize, name: &str) -> bool {
        self.ranges[scope].iter().any(|(declared, count)| match count {
            None => *declared == name,
            Some(count) => {
                let number = name.strip_prefix(declared).filter(|n| *n == "0" || !n.starts_with('0'));
                number.and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number < *count)
            }
        })
    }

    fn register(&mut self, scope: usize, name: &'a str) -> Option<Register> {
        let mut at = Some(scope);
        while let Some(scope) = at {
            if self.declares(scope, name) {
                let next = self.registers.len();
                return Some(*self.registers.entry((scope, name)).or_insert(next));
            }
            at = self.parents[scope];
        }
        None
    }

    fn label(&self, scope: usize, name: &str) -> Option<usize> {
        self.in_sight(scope, name, &self.labels)
    }

    fn in_sight<T: Copy>(&self, scope: usize, name: &str, of: &HashMap<(usize, &'a str), T>) -> Option<T> {
        let mut at = Some(scope);
        while let Some(scope) = at {
            if let Some(found) = of.get(&(scope, name)) {
                return Some(*found);
            }
            at = self.parents[scope];
        }
        None
    }
}

/// Instructions and the scopes they stand in; labels and declarations are noted on the way.
fn flatten<'a>(
    statements: &'a [Statement<'a>],
    scope: usize,
    scopes: &mut Scopes<'a>,
    out: &mut Vec<(usize, &'a Instruction<'a>)>,
) {
    for statement in statements {
        match statement {
            Statement::Registers(_, _, names) => {
                scopes.ranges[scope].extend(names.iter().map(|(name, count)| (name.text, *count)));
            }
            Statement::Label(label) => {
                scopes.labels.insert((scope, label.text), out.len());
            }
            Statement::BranchTargets { label, targets } => {
                scopes.lists.insert((scope, label.text), targets);
            }
            Statement::Block(inner) => {
                let inside = scopes.open(Some(scope));
                flatten(inner, inside, scopes, out);
            }
            Statement::Instruction(inst) => out.push((scope, inst)),
            Statement::Var(_) | Statement::Prototype { .. } | Statement::Targets { .. } => {}
        }
    }
}

/// Every name in an operand.
fn names<'a>(operand: &'a Operand<'a>, out: &mut Vec<(&'a str, i64)>) {
    match &operand.kind {
        OperandKind::Name { name, offset, .. } => out.push((name, *offset)),
        OperandKind::Vector(parts) | OperandKind::Address(parts) | OperandKind::List(parts) => {
            parts.iter().for_each(|part| names(part, out));
        }
        OperandKind::Pair(a, b) => {
            names(a, out);
            names(b, out);
        }
        OperandKind::Not(inner) | OperandKind::Minus(inner) => names(inner, out),
        OperandKind::Int(_) | OperandKind::Single(_) | OperandKind::Double(_) => {}
    }
}

/// The names of which an operand has a part.
fn with_component<'a>(operand: &'a Operand<'a>, out: &mut Vec<&'a str>) {
    match &operand.kind {
        OperandKind::Name { name, component: Some(_), .. } => out.push(name),
        OperandKind::Vector(parts) => parts.iter().for_each(|part| with_component(part, out)),
        _ => {}
    }
}

fn role(inst: &Instruction<'_>, calls_may_wait: bool) -> Role {
    let warp = inst.mods.iter().any(|word| word.text == "warp");
    match inst.opcode.text {
        "bra" | "brx" => Role::Branch,
        "ret" | "exit" | "trap" | "brkpt" => Role::Exit,
        "bar" | "barrier" if !warp => Role::Barrier,
        "call" if calls_may_wait => Role::Barrier,
        _ => Role::Plain,
    }
}

/// Registers that always hold the same in all threads of a CTA.
fn uniform_special(name: &str) -> bool {
    ["%ctaid", "%ntid", "%nctaid", "%gridid", "%smid", "WARP_SZ"].contains(&name)
}

impl<'a> Flow<'a> {
    /// Follows the pointers of a kernel. `calls_may_wait`: some function of the file contains a barrier.
    pub(super) fn new(function: &'a Function<'a>, pointers: &dyn Pointers, calls_may_wait: bool) -> Flow<'a> {
        let mut scopes = Scopes::default();
        let mut insts = Vec::new();
        let root = scopes.open(None);
        flatten(function.body.as_deref().unwrap_or_default(), root, &mut scopes, &mut insts);
        let mut code = Vec::new();
        for (scope, inst) in insts {
            code.push(step(inst, scope, &mut scopes, pointers));
        }
        let roles: Vec<Role> = code.iter().map(|step| role(step.inst, calls_may_wait)).collect();
        let mut starts = vec![0];
        for (at, (step, role)) in code.iter().zip(&roles).enumerate() {
            starts.extend(&step.targets);
            if *role != Role::Plain {
                starts.extend([at, at + 1]);
            }
        }
        starts.push(code.len());
        starts.retain(|start| *start <= code.len());
        starts.sort_unstable();
        starts.dedup();
        let (registers, forked) = (scopes.registers.len(), vec![false; code.len()]);
        let mut flow = Flow { code, roles, starts, before: Vec::new(), registers, forked };
        while flow.settle() {}
        flow
    }

    pub(super) fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// The instructions of a block, in order.
    pub(super) fn steps_of(&self, block: usize) -> std::ops::Range<usize> {
        self.starts[block]..self.starts[block + 1]
    }

    fn block_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// Blocks after block `number`; its end may also be the kernel's.
    pub(super) fn after(&self, number: usize) -> (Vec<usize>, bool) {
        let end = self.starts[number + 1];
        let last = &self.code[end - 1];
        let mut next = Vec::new();
        let goes_on = match self.roles[end - 1] {
            Role::Branch => {
                let inside = last.targets.iter().filter(|target| **target < self.code.len());
                next.extend(inside.map(|target| self.block_at(*target)));
                last.guard.is_some()
            }
            Role::Exit => last.guard.is_some(),
            Role::Plain | Role::Barrier => true,
        };
        let to_end = last.targets.contains(&self.code.len()) && self.roles[end - 1] == Role::Branch;
        let ends = self.roles[end - 1] == Role::Exit || to_end || (goes_on && end == self.code.len());
        if goes_on && end < self.code.len() {
            next.push(number + 1);
        }
        (next, ends)
    }

    fn apply(&self, at: usize, state: &mut [Origins]) {
        let step = &self.code[at];
        let read = step.reads.iter().fold(step.own, |all, register| all | state[*register]);
        let forked = if self.forked[at] { VARYING } else { 0 };
        for (number, register) in step.writes.iter().enumerate() {
            let read = read | step.each.get(number).copied().unwrap_or(0);
            let kept = if step.guard.is_some() { state[*register] } else { 0 };
            let by_guard = step.guard.map_or(0, |guard| state[guard] & VARYING);
            state[*register] = kept | read | by_guard | forked;
        }
    }

    /// Runs the analysis, then looks for writes after forks; whether it found new ones.
    fn settle(&mut self) -> bool {
        self.before = vec![vec![0; self.registers]; self.blocks()];
        let mut seen = vec![false; self.blocks()];
        let mut work = if self.code.is_empty() { Vec::new() } else { vec![0] };
        while let Some(block) = work.pop() {
            seen[block] = true;
            let mut state = self.before[block].clone();
            (self.starts[block]..self.starts[block + 1]).for_each(|at| self.apply(at, &mut state));
            for next in self.after(block).0 {
                let mut changed = !seen[next];
                for (kept, new) in self.before[next].iter_mut().zip(&state) {
                    changed |= *kept | new != *kept;
                    *kept |= new;
                }
                if changed {
                    work.push(next);
                }
            }
        }
        // Only now is it known which guards vary, hence which branches are forks.
        let mut writers = vec![0u32; self.registers];
        self.code.iter().flat_map(|step| &step.writes).for_each(|register| writers[*register] += 1);
        let mut behind = vec![false; self.blocks()];
        for fork in self.forks() {
            self.reach(&self.after(fork).0, None, &mut behind);
        }
        let mut found = false;
        for block in (0..self.blocks()).filter(|block| behind[*block]) {
            for at in self.starts[block]..self.starts[block + 1] {
                let several = self.code[at].writes.iter().any(|register| writers[*register] > 1);
                found |= several && !self.forked[at];
                self.forked[at] |= several;
            }
        }
        found
    }

    /// Origins of the registers just before instruction `at`.
    fn state(&self, at: usize) -> Vec<Origins> {
        let block = self.block_at(at);
        let mut state = self.before[block].clone();
        (self.starts[block]..at).for_each(|at| self.apply(at, &mut state));
        state
    }

    /// Origins of what instruction `at` reads, all operands together.
    pub(super) fn read_by(&self, at: usize) -> Origins {
        let state = self.state(at);
        self.code[at].reads.iter().fold(self.code[at].own, |all, register| all | state[*register])
    }

    /// Origins of the address that memory instruction `at` accesses.
    pub(super) fn address_of(&self, at: usize) -> Origins {
        let state = self.state(at);
        let (registers, own) = &self.code[at].address;
        registers.iter().fold(*own, |all, register| all | state[*register])
    }

    /// Blocks at whose end threads of a CTA may go different ways.
    fn forks(&self) -> Vec<usize> {
        let forks = |block: &usize| {
            let last = self.starts[block + 1] - 1;
            // A branch reads the index of its target, if it has one.
            let step = &self.code[last];
            let index: &[Register] = if self.roles[last] == Role::Branch { &step.reads } else { &[] };
            let guard = step.guard.filter(|_| self.roles[last] != Role::Plain);
            let state = self.state(last);
            guard.iter().chain(index).any(|register| state[*register] & VARYING != 0)
        };
        (0..self.blocks()).filter(forks).collect()
    }

    /// Marks what can be reached from `from` without entering `avoiding`; whether the kernel's end can.
    fn reach(&self, from: &[usize], avoiding: Option<usize>, seen: &mut [bool]) -> bool {
        let mut work: Vec<usize> = from.to_vec();
        let mut ends = false;
        while let Some(block) = work.pop() {
            if Some(block) == avoiding || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            let (next, end) = self.after(block);
            ends |= end;
            work.extend(next);
        }
        ends
    }

    /// Whether some threads of a CTA may end while others still wait for each other at a barrier of the
    /// kernel.
    pub(super) fn may_leave_early(&self) -> bool {
        let forks = self.forks();
        let barriers = (0..self.blocks()).filter(|block| self.roles[self.starts[*block]] == Role::Barrier);
        barriers.into_iter().any(|barrier| {
            forks.iter().any(|fork| {
                let (next, ends_here) = self.after(*fork);
                let reaches = *fork == barrier || {
                    let mut seen = vec![false; self.blocks()];
                    self.reach(&next, None, &mut seen);
                    seen[barrier]
                };
                let leaves = ends_here || self.reach(&next, Some(barrier), &mut vec![false; self.blocks()]);
                reaches && leaves
            })
        })
    }
}

fn step<'a>(inst: &'a Instruction<'a>, scope: usize, scopes: &mut Scopes<'a>, pointers: &dyn Pointers) -> FlowStep<'a> {
    let opcode = inst.opcode.text;
    let has = |word: &str| inst.mods.iter().any(|m| m.text == word);
    let guard = inst.guard.as_ref().and_then(|(word, _)| scopes.register(scope, word.text));
    let mut step = FlowStep {
        inst,
        guard,
        writes: Vec::new(),
        reads: Vec::new(),
        own: 0,
        each: Vec::new(),
        targets: Vec::new(),
        address: (Vec::new(), 0),
    };
    if opcode == "bra" {
        let mut found = Vec::new();
        inst.operands.iter().for_each(|operand| names(operand, &mut found));
        step.targets.extend(found.first().and_then(|(name, _)| scopes.label(scope, name)));
        return step;
    }
    if opcode == "brx" {
        let mut found = Vec::new();
        inst.operands.iter().for_each(|operand| names(operand, &mut found));
        step.reads = found.first().and_then(|(name, _)| scopes.register(scope, name)).into_iter().collect();
        let list = found.get(1).and_then(|(name, _)| scopes.in_sight(scope, name, &scopes.lists)).unwrap_or_default();
        let mut labels = Vec::new();
        list.iter().for_each(|operand| names(operand, &mut labels));
        step.targets = labels.iter().filter_map(|(name, _)| scopes.label(scope, name)).collect();
        return step;
    }
    // The first operand is a destination, but for opcodes without one, whose operands are all read.
    let no_destination = matches!(opcode, "st" | "red" | "pm" | "bar" | "barrier" | "membar" | "fence" | "ret" | "exit" | "call" | "cp" | "stackrestore")
            || opcode == "mbarrier" && (has("init") || has("inval"))
            // `wmma.store`, `prefetch` and their like begin with an address.
            || matches!(inst.operands.first(), Some(Operand { kind: OperandKind::Address(_), .. }));
    let only_reads = no_destination && !(opcode.starts_with("bar") && has("red"));
    let returns = opcode == "call" && matches!(inst.operands.first(), Some(Operand { kind: OperandKind::List(_), .. }));
    let (to, from) = inst.operands.split_at(usize::from(!only_reads || returns).min(inst.operands.len()));
    if let Some(operand) = inst.operands.iter().find(|operand| matches!(operand.kind, OperandKind::Address(_))) {
        let mut found = Vec::new();
        names(operand, &mut found);
        for (name, _) in found {
            match scopes.register(scope, name) {
                Some(register) => step.address.0.push(register),
                None => step.address.1 |= VARIABLE,
            }
        }
    }
    let (mut written, mut read) = (Vec::new(), Vec::new());
    to.iter().for_each(|operand| names(operand, &mut written));
    from.iter().for_each(|operand| names(operand, &mut read));
    step.writes = written.iter().filter_map(|(name, _)| scopes.register(scope, name)).collect();
    // Of a vector of registers only an element is written: the others stay.
    let mut elements = Vec::new();
    to.iter().for_each(|operand| with_component(operand, &mut elements));
    step.reads.extend(elements.iter().filter_map(|name| scopes.register(scope, name)));
    let loads = matches!(opcode, "ld" | "ldu" | "ldmatrix" | "tex" | "tld4" | "atom" | "suld")
        || opcode == "wmma" && has("load");
    let of_param = has("param") || has("param::entry");
    for (name, offset) in read {
        if let Some(register) = scopes.register(scope, name) {
            // The value at an address has not the origins of the address.
            match loads {
                true => step.own |= LOADED | VARYING,
                false => step.reads.push(register),
            }
            continue;
        }
        let wide = inst.mods.iter().any(|word| matches!(word.text, "b64" | "u64" | "s64"));
        step.own |= match pointers.at(name, offset) {
            Some(_) if loads && of_param && wide => {
                // One register a part of the vector.
                let pointer = |part: usize| pointers.at(name, offset + 8 * part as i64).flatten();
                step.each = (0..step.writes.len()).map(|part| pointer(part).map_or(0, |number| 1 << number)).collect();
                0
            }
            Some(_) if loads && of_param => 0,
            Some(_) => LOADED,
            None if name.starts_with('%') || name == "WARP_SZ" => {
                if uniform_special(name) {
                    0
                } else {
                    VARYING
                }
            }
            None if loads => LOADED | VARYING,
            None => VARIABLE,
        };
    }
    let across_threads =
        ["shfl", "vote", "match", "activemask", "elect", "call", "mma", "movmatrix", "wmma"].contains(&opcode);
    step.own |= if across_threads { VARYING } else { 0 };
    step.own |= if opcode == "call" { LOADED } else { 0 };
    step.own |= if matches!(opcode, "alloca" | "stacksave") { VARIABLE } else { 0 };
    step
}
