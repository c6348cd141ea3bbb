//! Where boundaries are: those that the rules ask for, what the threshold adds, what merging takes away, how
//! many turns of a loop make a region.
//!
//! Source: LightWSP, sections IV-A ("initial region boundary insertion", "region formation", "region size
//! extension") and IV-C.
//!
//! Merging takes boundaries of calls, loops and the threshold away, one by one in topological order, where
//! all regions stay under the threshold without, and repeats it until none goes. It always pays: a register
//! that is stored at the next boundary instead is stored once at most, and the pc once less.
//!
//! The binary is not rewritten, so that unrolling a loop by k means that its header's boundary is executed
//! when the hart has passed k - 1 boundaries of this kind since its last one (`bounds` counts turns). It
//! needs no condition on how often the loop runs, as the paper's *speculative* unrolling: each turn has its
//! exit.

use std::collections::BTreeSet;

use super::bounds::{Every, Ground, Solver};
use super::graph::{Flow, Graph, NONE};
use super::terms::{BoundaryReason, RegionOptions, RegisterSet, SyncPlacement};
use super::units::Unit;
use crate::elf::Executable;
use crate::instruction::{Class, Inst, Op};

/// What a fence orders of loads and of stores, as [`Inst::ordered`] has it.
const READS: u8 = 0b1010;
const WRITES: u8 = 0b0101;

/// A fence orders loads behind the stores before it, as `mfence` of x86 does. `fence.tso` does not.
fn orders_loads_behind_stores(fence: &Inst) -> bool {
    const TSO: i32 = 0b1000;
    let (before, after) = fence.ordered();
    fence.op == Op::Fence && fence.imm >> 8 & 0b1111 != TSO && before & WRITES != 0 && after & READS != 0
}

/// The load right before a fence: one that acquires, as compilers make it of C.
fn load_before(graph: &Graph, fence: u32) -> Option<u32> {
    fence.checked_sub(1).filter(|last| {
        let last = &graph.nodes[*last as usize];
        last.next == fence && last.inst.class() == Class::Load && !graph.targets.contains(&fence)
    })
}

/// Boundaries by node.
#[derive(Debug)]
pub(super) struct Boundaries {
    pub(super) reasons: Vec<Option<BoundaryReason>>,
    pub(super) every: Vec<Every>,
}

impl Boundaries {
    /// Those of the rules, in the whole program.
    pub(super) fn asked(
        graph: &Graph,
        units: &[Unit],
        before: &[Vec<u32>],
        image: &Executable,
        options: &RegionOptions,
    ) -> Boundaries {
        let count = graph.nodes.len();
        let mut found = Boundaries { reasons: vec![None; count], every: vec![0; count] };
        for header in units.iter().flat_map(|unit| &unit.headers) {
            found.put(*header, BoundaryReason::Loop);
        }
        for (at, node) in graph.nodes.iter().enumerate() {
            let at = at as u32;
            if matches!(node.flow, Flow::Call | Flow::CallAny) {
                found.put(at, BoundaryReason::Call);
            }
        }
        // From here on nothing is taken away by merging: a reason of these replaces one of those. A hart that
        // polls with a region open may wait for a store that the queues cannot take before this region ends.
        if options.sync != SyncPlacement::X86 {
            units.iter().flat_map(|unit| &unit.polls).for_each(|header| found.put(*header, BoundaryReason::Waiting));
        }
        for (at, node) in graph.nodes.iter().enumerate() {
            let (at, class) = (at as u32, node.inst.class());
            if node.flow == Flow::Call {
                found.put(node.target, BoundaryReason::Entry);
            }
            if node.inst.op == Op::Ecall {
                found.put(at, BoundaryReason::System);
                found.put(node.next, BoundaryReason::System);
            }
            // Not before `sc`: a reservation would not outlast it.
            if matches!(class, Class::Amo | Class::LoadReserved) {
                found.put(at, BoundaryReason::Order);
            }
            if class == Class::Fence {
                found.put_at_a_fence(graph, before, at, options);
            }
            let orders = match class {
                Class::Fence if options.sync == SyncPlacement::Fences => true,
                Class::Fence if options.sync == SyncPlacement::X86 && load_before(graph, at).is_some() => false,
                Class::Fence => orders_loads_behind_stores(&node.inst),
                class => matches!(class, Class::Amo | Class::StoreConditional),
            };
            if options.after_sync && orders {
                found.put(node.next, BoundaryReason::AfterOrder);
            }
            match node.inst.op {
                Op::PmRegion => found.put(at, BoundaryReason::Asked),
                Op::Pause if options.sync != SyncPlacement::X86 => found.put(at, BoundaryReason::Waiting),
                _ => {}
            }
            if node.flow == Flow::Return {
                found.put(at, BoundaryReason::Exit);
            }
        }
        for function in graph.functions.iter().filter(|function| function.sized && !function.nodes.is_empty()) {
            found.put(function.nodes.start, BoundaryReason::Entry);
        }
        found.put(graph.at(image.entry), BoundaryReason::Entry);
        found
    }

    /// Boundaries at a fence, where C's atomic loads and stores are a plain access beside one.
    ///
    /// What a load saw of another hart must not commit before that hart's region, so that a fence which
    /// orders loads has boundaries before these. A region draws its ID with its first store: one that begins
    /// there commits behind the region whose store was seen. A store that releases needs none: what it
    /// releases is in its region, or in an earlier one.
    fn put_at_a_fence(&mut self, graph: &Graph, before: &[Vec<u32>], at: u32, options: &RegionOptions) {
        let node = &graph.nodes[at as usize];
        let (first, second) = node.inst.ordered();
        let load = load_before(graph, at);
        if load.is_some() && options.sync == SyncPlacement::X86 {
            return;
        }
        let all = options.sync == SyncPlacement::Fences;
        match load {
            Some(load) if first & READS != 0 => self.put(load, BoundaryReason::Order),
            _ if all && first & WRITES != 0 || orders_loads_behind_stores(&node.inst) => {
                self.put(at, BoundaryReason::Order);
            }
            _ => {}
        }
        if options.sync == SyncPlacement::Acquires && first & READS != 0 {
            self.put_before_loads(graph, before, at);
        }
        // A store that others take as a sign ends its region.
        let store = graph.nodes.get(node.next as usize).filter(|next| next.inst.class() == Class::Store);
        if all && options.after_sync && second & READS == 0 {
            store.into_iter().for_each(|store| self.put(store.next, BoundaryReason::AfterOrder));
        }
    }

    /// Boundaries before the last load on every path to a fence in its function. Atomics have their own, and
    /// so have calls.
    fn put_before_loads(&mut self, graph: &Graph, before: &[Vec<u32>], fence: u32) {
        let mut seen = BTreeSet::new();
        let mut left = before[fence as usize].clone();
        while let Some(at) = left.pop() {
            let node = &graph.nodes[at as usize];
            match node.inst.class() {
                _ if !seen.insert(at) => {}
                Class::Load => self.put(at, BoundaryReason::Order),
                Class::Amo | Class::LoadReserved | Class::StoreConditional | Class::Fence | Class::System => {}
                _ if matches!(node.flow, Flow::Call | Flow::CallAny) => {}
                _ => left.extend(&before[at as usize]),
            }
        }
    }

    fn put(&mut self, node: u32, reason: BoundaryReason) {
        if node != NONE {
            self.reasons[node as usize] = Some(reason);
            self.every[node as usize] = 1;
        }
    }

    fn take(&mut self, node: u32) {
        self.reasons[node as usize] = None;
        self.every[node as usize] = 0;
    }

    /// Adds boundaries to a unit until no region exceeds the threshold, each where few registers are live.
    /// Where a boundary's computed registers alone are too many for the next one, they are stored. None where
    /// there is no place for a boundary: then the threshold is to hold tightly.
    pub(super) fn hold_threshold(
        &mut self,
        ground: &Ground<'_>,
        unit: &Unit,
        solver: &mut Solver,
        computed: &mut [RegisterSet],
    ) -> Option<()> {
        while let Err(node) = solver.solve(ground, unit, &self.every, computed) {
            let cheapest = if ground.tight { None } else { solver.cheapest(ground, &self.every, node) };
            match (cheapest, self.every[node as usize]) {
                (Some(place), _) => self.put(place, BoundaryReason::Threshold),
                (None, 0) if ground.tight => self.put(node, BoundaryReason::Threshold),
                (None, every) if every > 0 && computed[node as usize] != 0 => computed[node as usize] = 0,
                _ => return None,
            }
        }
        Some(())
    }

    /// Takes boundaries of a unit away: how many.
    pub(super) fn merge(
        &mut self,
        ground: &Ground<'_>,
        unit: &Unit,
        solver: &mut Solver,
        computed: &[RegisterSet],
    ) -> u32 {
        let mut merged = 0;
        loop {
            let before = merged;
            for &node in &unit.order {
                let Some(reason) = self.reasons[node as usize].filter(|reason| reason.may_go()) else { continue };
                let every = self.every[node as usize];
                self.take(node);
                if solver.ease(ground, unit, &self.every, computed, (node, every)).is_ok() {
                    merged += 1;
                } else {
                    self.put(node, reason);
                    self.every[node as usize] = every;
                }
            }
            if merged == before {
                return merged;
            }
        }
    }

    /// Raises the turns between two boundaries at the headers of a unit's loops.
    pub(super) fn unroll(
        &mut self,
        ground: &Ground<'_>,
        unit: &Unit,
        solver: &mut Solver,
        computed: &[RegisterSet],
        most: u32,
    ) {
        // Inner loops, which come later and run more often, first.
        for &node in unit.order.iter().rev().filter(|node| unit.headers.binary_search(node).is_ok()) {
            if self.reasons[node as usize] != Some(BoundaryReason::Loop) {
                continue;
            }
            let old = self.every[node as usize];
            for every in (old + 1..=most as Every).rev() {
                self.every[node as usize] = every;
                if solver.ease(ground, unit, &self.every, computed, (node, old)).is_ok() {
                    break;
                }
                self.every[node as usize] = old;
            }
        }
    }

    /// The boundaries of a unit, to be set again.
    pub(super) fn of(&self, unit: &Unit) -> Vec<(Option<BoundaryReason>, Every)> {
        unit.nodes.iter().map(|node| (self.reasons[*node as usize], self.every[*node as usize])).collect()
    }

    /// Sets the boundaries of a unit.
    pub(super) fn set(&mut self, unit: &Unit, boundaries: &[(Option<BoundaryReason>, Every)]) {
        for (node, (reason, every)) in unit.nodes.iter().zip(boundaries) {
            (self.reasons[*node as usize], self.every[*node as usize]) = (*reason, *every);
        }
    }

    /// How often the headers of a unit's loops end regions if each loop has as many turns: a number to
    /// compare.
    pub(super) fn loop_ends(&self, unit: &Unit) -> u32 {
        // Divided by any number of turns, it stays whole.
        const TURNS: u32 = 840;
        let loops = unit.headers.iter().filter(|node| self.reasons[**node as usize] == Some(BoundaryReason::Loop));
        loops.map(|node| TURNS / u32::from(self.every[*node as usize])).sum()
    }
}
