//! What a set of boundaries implies: where registers are stored, how many stores a region holds, which rules
//! are broken.
//!
//! Checkpoint stores (paper, section IV-A) stand right after the last update of a register in its region:
//! after a write whose value some later boundary's restart loads, with no other write between. A write in a
//! loop without a boundary is the exception: its last update is that of the last iteration, and a store a
//! turn would fill the queue; so those registers are stored at the next boundary, just before the program
//! counter. So is what registers hold at the entry.
//!
//! Faults that a boundary mends, in the order in which they are looked for:
//! 1. a loop that stores or polls memory, without a boundary;
//! 2. a store before the warp stands until others act (`waits.rs`);
//! 3. lanes that wait after something that they must not repeat alone, while other lanes of the warp may pass
//!    a boundary (`regions.rs`, "Divergence");
//! 4. more stores between boundaries than the threshold.

use super::super::cfg::BitSet;
use super::super::ir::{Guard, Inst, MemKind, NEVER, Op};
use super::code::{Code, stores_in_bulk, words};
use super::terms::Reason;
use super::uniform::Fork;
use super::values::{Restore, Values};
use super::waits::Waits;

/// Stores of a boundary itself: the program counter.
pub(super) const BOUNDARY_STORES: u32 = 1;

/// What is known before boundaries are.
#[derive(Debug)]
pub(super) struct Ground<'a> {
    pub(super) code: &'a Code,
    pub(super) forks: &'a [Fork],
    pub(super) values: &'a Values,
    pub(super) waits: &'a Waits,
    pub(super) threshold: u32,
    pub(super) scratch: bool,
    pub(super) prune: bool,
    /// A region has its number before it stores anything.
    pub(super) draws_at_boundary: bool,
}

/// Checkpoint stores of a set of boundaries, and what its regions come to.
#[derive(Debug)]
pub(super) struct CheckpointPlan {
    /// Registers stored after each item.
    pub(super) behind: Vec<Vec<u16>>,
    /// Registers stored at the boundary before each item.
    pub(super) at: Vec<Vec<u16>>,
    /// How registers come back at each boundary.
    pub(super) restore: Vec<Option<Restore>>,
    /// Since the last boundary there may have been what must not be repeated by some lanes of a warp alone.
    tied: Vec<bool>,
    /// Most words stored since the last boundary, before each item; a saturated number in a loop without
    /// boundary.
    pub(super) stored: Vec<u32>,
    pub(super) boundary: Vec<bool>,
}

impl Ground<'_> {
    /// Words that an item stores, its checkpoint stores included. How much a bulk copy stores is not in the
    /// code, so that it fills a region.
    pub(super) fn words_of(&self, plan: &CheckpointPlan, pc: usize) -> u32 {
        let inst = &self.code.items[pc].inst;
        let own = match stores_in_bulk(inst) {
            true => self.threshold - BOUNDARY_STORES,
            false => words(inst, self.scratch),
        };
        own + plan.behind[pc].len() as u32
    }

    /// Works out a set of boundaries.
    pub(super) fn plan(&self, boundary: &[bool]) -> CheckpointPlan {
        let (code, n) = (self.code, self.code.len());
        let restore: Vec<Option<Restore>> =
            (0..n).map(|pc| boundary[pc].then(|| self.values.restore(code, pc, self.prune))).collect();
        // Registers that some later boundary loads before they are written again.
        let needed = code.edges.backward(code.registers, |pc, needed| {
            let item = &code.items[pc];
            if item.inst.guard == Guard::ALWAYS {
                item.hazards.written().iter().for_each(|&r| needed.remove(u32::from(r)));
            }
            if let Some(restore) = &restore[pc] {
                restore.loads.iter().for_each(|&r| needed.insert(u32::from(r)));
            }
        });
        let cycle = code.edges.cycles(boundary);
        let mut behind = vec![Vec::new(); n];
        for pc in (0..n).filter(|&pc| cycle[pc] == u32::MAX) {
            for &r in code.items[pc].hazards.written() {
                if code.edges.after[pc].iter().any(|&to| needed[to as usize].contains(u32::from(r))) {
                    behind[pc].push(r);
                }
            }
        }
        // Registers whose checkpoint is older than they are.
        let stale = code.edges.forward_some(&BitSet::all(code.registers), |pc, stale| {
            if boundary[pc] {
                stale.remove_all(&needed[pc]);
            }
            for &r in code.items[pc].hazards.written() {
                // A guarded store renews the lanes of its guarded write only.
                if !behind[pc].contains(&r) {
                    stale.insert(u32::from(r));
                } else if code.items[pc].inst.guard == Guard::ALWAYS {
                    stale.remove(u32::from(r));
                }
            }
        });
        let at: Vec<Vec<u16>> = (0..n)
            .map(|pc| match boundary[pc] {
                true => stale[pc].iter().filter(|&r| needed[pc].contains(r)).map(|r| r as u16).collect(),
                false => Vec::new(),
            })
            .collect();
        let mut plan = CheckpointPlan {
            behind,
            at,
            restore,
            tied: vec![false; n],
            stored: vec![0; n],
            boundary: boundary.to_vec(),
        };
        self.count(&mut plan);
        plan
    }

    /// Follows stores from boundary to boundary.
    fn count(&self, plan: &mut CheckpointPlan) {
        let n = self.code.len();
        // In a loop without a boundary the number would grow for ever, so it stops well above any threshold.
        let cap = 4 * (self.threshold + n as u32);
        let mut changed = true;
        while changed {
            changed = false;
            for pc in 0..n {
                let mut most = 0;
                for &from in &self.code.edges.before[pc] {
                    let from = from as usize;
                    let before = if plan.boundary[from] { 0 } else { plan.stored[from] };
                    most = most.max(before + self.words_of(plan, from));
                }
                let most = most.min(cap);
                changed |= most != plan.stored[pc];
                plan.stored[pc] = most;
            }
        }
        let cycle = self.code.edges.cycles(&plan.boundary);
        let ties =
            |pc: usize| self.words_of(plan, pc) > 0 || cycle[pc] != u32::MAX || across_lanes(&self.code.items[pc].inst);
        let none = BitSet::new(1);
        let tied = self.code.edges.forward_some(&none, |pc, tied| {
            // A boundary lies before its item: it unties what came before, and the item itself may tie again.
            if plan.boundary[pc] {
                tied.remove(0);
            }
            if ties(pc) {
                tied.insert(0);
            }
        });
        plan.tied = tied.iter().map(|tied| tied.contains(0)).collect();
    }

    /// Where boundaries are missing, for the first reason that applies; none when nothing is wrong that a
    /// boundary mends.
    pub(super) fn missing(&self, plan: &CheckpointPlan) -> Option<(Reason, Vec<u32>)> {
        let code = self.code;
        let cycle = code.edges.cycles(&plan.boundary);
        let mut heads = std::collections::BTreeMap::new();
        for pc in 0..code.len() {
            let waits = self.waits.polls[pc] && (plan.stored[pc] > 0 || self.draws_at_boundary);
            let matters = waits || self.words_of(plan, pc) > 0;
            if matters && cycle[pc] != u32::MAX {
                // The first place of a cycle in program order is the header of its outermost loop.
                heads.entry(cycle[pc]).or_insert_with(|| (0..code.len()).find(|&p| cycle[p] == cycle[pc]));
            }
        }
        if !heads.is_empty() {
            return Some((Reason::Loop, heads.into_values().flatten().map(|pc| pc as u32).collect()));
        }
        let stored = |pc: &u32| plan.stored[*pc as usize] > 0 && !plan.boundary[*pc as usize];
        let blocking: Vec<u32> = self.waits.blocking.iter().copied().filter(stored).collect();
        if !blocking.is_empty() {
            return Some((Reason::Waiting, blocking));
        }
        let unsaved = |pc: usize| plan.tied[pc] && !plan.boundary[pc];
        let mut waiting = Vec::new();
        for fork in self.forks {
            if !(0..code.len()).any(|pc| fork.inside[pc] && plan.boundary[pc]) {
                continue;
            }
            let arrive =
                |pc: &usize| fork.join != NEVER && fork.inside[*pc] && code.edges.after[*pc].contains(&fork.join);
            let ends = (0..code.len()).filter(arrive);
            waiting.extend(std::iter::once(fork.pc as usize).chain(ends).filter(|&pc| unsaved(pc)).map(|pc| pc as u32));
        }
        if !waiting.is_empty() {
            waiting.sort_unstable();
            waiting.dedup();
            return Some((Reason::Waiting, waiting));
        }
        self.overfull(plan).find_map(|over| self.split(plan, over)).map(|pc| (Reason::Threshold, vec![pc]))
    }

    /// Where a region first holds more than the threshold: before an item when `false`, at the boundary
    /// before it when `true`.
    fn overfull<'p>(&'p self, plan: &'p CheckpointPlan) -> impl Iterator<Item = (usize, bool)> + 'p {
        let limit = self.threshold.saturating_sub(BOUNDARY_STORES);
        (0..self.code.len()).filter_map(move |pc| {
            let before = plan.stored[pc];
            if plan.boundary[pc] && before <= limit && before + plan.at[pc].len() as u32 > limit {
                return Some((pc, true));
            }
            let start = if plan.boundary[pc] { 0 } else { before };
            (start <= limit && start + self.words_of(plan, pc) > limit).then_some((pc, false))
        })
    }

    /// The place of a boundary that makes an overfull region smaller; none when it cannot be split.
    fn split(&self, plan: &CheckpointPlan, (pc, at_boundary): (usize, bool)) -> Option<u32> {
        if !at_boundary {
            return (!plan.boundary[pc]).then_some(pc as u32);
        }
        // Back along the code in a row to something that stores.
        let mut at = pc;
        while at > 0 && self.code.edges.before[at].contains(&(at as u32 - 1)) {
            at -= 1;
            if plan.boundary[at] {
                return None;
            }
            if self.words_of(plan, at) > 0 {
                return (plan.stored[at] > 0).then_some(at as u32);
            }
        }
        None
    }

    /// Most words that a lane stores from a boundary to the next, that one's included.
    pub(super) fn most_from(&self, plan: &CheckpointPlan, boundary: u32) -> u32 {
        let mut most: Vec<Option<u32>> = vec![None; self.code.len()];
        let (mut greatest, mut stored, mut pc) = (0, 0, boundary as usize);
        let mut todo = Vec::new();
        loop {
            most[pc] = Some(stored);
            let behind = stored + self.words_of(plan, pc);
            greatest = greatest.max(behind);
            todo.extend(self.code.edges.after[pc].iter().map(|&to| (to as usize, behind)));
            (pc, stored) = loop {
                let Some((to, stored)) = todo.pop() else { return greatest };
                if plan.boundary[to] {
                    greatest = greatest.max(stored + plan.at[to].len() as u32 + BOUNDARY_STORES);
                } else if most[to].is_none_or(|known| known < stored) {
                    break (to, stored);
                }
            };
        }
    }

    /// Regions that hold more than the threshold and cannot be split: where it is exceeded.
    pub(super) fn oversize(&self, plan: &CheckpointPlan) -> Vec<u32> {
        let found = self.overfull(plan).filter(|&over| self.split(plan, over).is_none());
        found.map(|(pc, _)| pc as u32).collect()
    }
}

/// Whether an instruction looks at other lanes of its warp.
fn across_lanes(inst: &Inst) -> bool {
    match inst.op {
        Op::Alu(op) => op.is_across_lanes(),
        Op::Matrix(_) | Op::WarpGroup(_) | Op::Tensor(_) => true,
        Op::Mem(mem) => matches!(mem.kind, MemKind::Matrix(_)),
        _ => false,
    }
}
