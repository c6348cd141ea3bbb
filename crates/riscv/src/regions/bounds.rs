//! The most stores of a region, along every path: what the threshold is held by.
//!
//! Forward over a unit, each node has for every *turn* the most stores since the last boundary, S, and the
//! registers that may have been written since, D. A boundary before a node would store those of D that are
//! live there and the pc: S + |D & live| + 1 stores. That number is kept at most the threshold before every
//! node with a boundary; between boundaries more registers may be live than a region could store. (*Tight*,
//! it is kept so before every node: then a boundary can be added before any.) What recovery computes
//! (`values`) is counted as if it were stored; a boundary leaves it in D, since its slot is old.
//!
//! The turn counts the boundaries that were passed without being executed since the last one that was: a
//! boundary with `every` = k is executed when k - 1 were passed. So a loop is looked at as if its body stood
//! there k times, which is what the paper's unrolling makes of it.
//!
//! Where two paths meet, S is the larger one and D the union: a region that runs has at most that.
//!
//! Merging and unrolling try thousands of boundaries of a large function one by one. A boundary that is
//! executed more rarely, or no more, adds to what is known behind it and takes nothing away: then only what
//! follows is looked at anew ([`Solver::ease`]).

use std::collections::VecDeque;

use super::graph::{Flow, Graph, NONE};
use super::terms::{ALL, RegisterSet, UNROLL_MAX, stores, written};
use super::units::Unit;

/// What is known before a node at a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PathState {
    reached: bool,
    stores: u32,
    dirty: RegisterSet,
}

/// A boundary before a node: after how many arrivals it is executed; 0 where there is none.
pub(super) type Every = u8;

/// What is the same for all boundaries that are tried.
pub(super) struct Ground<'a> {
    pub(super) graph: &'a Graph,
    pub(super) live: &'a [RegisterSet],
    pub(super) threshold: u32,
    /// By node: those before it.
    pub(super) before: &'a [Vec<u32>],
    /// The threshold holds before every node, boundary or not.
    pub(super) tight: bool,
}

/// States of a unit under given boundaries. Kept to be used again.
#[derive(Debug, Default)]
pub(super) struct Solver {
    states: Vec<[PathState; UNROLL_MAX as usize]>,
    queued: Vec<bool>,
    /// Nodes that are to be passed, some of them more than once.
    left: VecDeque<u32>,
    /// States as they were before they changed, with node and turn, where an attempt may be taken back.
    old: Vec<(u32, usize, PathState)>,
    keeps_old: bool,
}

impl Solver {
    /// Solves. `every` and `computed` are by node: what is left dirty by a boundary since recovery computes
    /// it.
    ///
    /// # Errors
    /// The node that takes a region over the threshold.
    pub(super) fn solve(
        &mut self,
        ground: &Ground<'_>,
        unit: &Unit,
        every: &[Every],
        computed: &[RegisterSet],
    ) -> Result<(), u32> {
        let graph = ground.graph;
        self.states.resize(graph.nodes.len(), Default::default());
        self.queued.resize(graph.nodes.len(), false);
        for &node in &unit.nodes {
            self.states[node as usize] = Default::default();
            // Calls return here, indirect jumps come here: behind a boundary.
            self.states[node as usize][0].reached = true;
            self.queued[node as usize] = true;
        }
        loop {
            let mut any = false;
            for &node in &unit.order {
                if std::mem::take(&mut self.queued[node as usize]) {
                    any = true;
                    self.pass(ground, node, every, computed)?;
                }
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// Solves again after the boundary at `node`, which was executed at every `old`-th arrival, is so more
    /// rarely, or was taken away: the states are a solution with the boundary as it was. Where this fails
    /// they are that again.
    ///
    /// # Errors
    /// The node that takes a region over the threshold.
    pub(super) fn ease(
        &mut self,
        ground: &Ground<'_>,
        unit: &Unit,
        every: &[Every],
        computed: &[RegisterSet],
        (node, old): (u32, Every),
    ) -> Result<(), u32> {
        if !self.only_adds(ground, every, computed, (node, old)) {
            let kept: Vec<_> = unit.nodes.iter().map(|node| self.states[*node as usize]).collect();
            return self.solve(ground, unit, every, computed).inspect_err(|_| {
                for (&node, states) in unit.nodes.iter().zip(kept) {
                    self.states[node as usize] = states;
                    self.queued[node as usize] = false;
                }
            });
        }
        self.keeps_old = true;
        self.left.push_back(node);
        let mut found = Ok(());
        while found.is_ok()
            && let Some(node) = self.left.pop_front()
        {
            self.queued[node as usize] = false;
            found = self.pass(ground, node, every, computed);
        }
        self.keeps_old = false;
        self.left.drain(..).for_each(|node| self.queued[node as usize] = false);
        for (node, turn, state) in self.old.drain(..).rev().filter(|_| found.is_err()) {
            self.states[node as usize][turn] = state;
        }
        found
    }

    /// Whether nothing is known any less behind a node whose boundary was executed at every `old`-th arrival:
    /// each turn leads to the turns that it led to, and what a boundary left dirty is so at the same turn.
    fn only_adds(
        &self,
        ground: &Ground<'_>,
        every: &[Every],
        computed: &[RegisterSet],
        (node, old): (u32, Every),
    ) -> bool {
        let at = node as usize;
        let taken = every[at] == 0;
        let kept = ground.live[at] & computed[at];
        // Turns that the boundary ended led to turn 0, where the first turn of none leads as well.
        let ended = usize::from(old).saturating_sub(1)..;
        let lost = self.states[at].iter().enumerate().filter(|(turn, _)| !(taken && *turn == 0));
        let mut lost = lost.filter(|(turn, state)| state.reached && ended.contains(turn));
        (!taken || old == 1) && lost.all(|(_, state)| state.dirty & kept == 0)
    }

    /// Takes what is known before a node on to those behind it.
    fn pass(&mut self, ground: &Ground<'_>, at: u32, every: &[Every], computed: &[RegisterSet]) -> Result<(), u32> {
        let node = &ground.graph.nodes[at as usize];
        let every_of = |node: u32| every[node as usize];
        for turn in 0..UNROLL_MAX as usize {
            let before = self.states[at as usize][turn];
            if !before.reached {
                continue;
            }
            let every = usize::from(every[at as usize]);
            let (turn, before) = match every {
                0 => (turn, before),
                _ if turn + 1 < every => (turn + 1, before),
                _ => {
                    let left = before.dirty & ground.live[at as usize] & computed[at as usize];
                    (0, PathState { stores: 0, dirty: left, ..before })
                }
            };
            let after = PathState {
                stores: (before.stores + u32::from(stores(&node.inst))).min(ground.threshold),
                dirty: before.dirty | written(&node.inst, ground.graph.exceptions),
                ..before
            };
            let bound = |live: RegisterSet| after.stores + (after.dirty & live).count_ones() + 1;
            // Where a boundary of another function, or one that is made when a jump is executed, comes next.
            let ends = match node.flow {
                Flow::Call if node.target != NONE => Some(ground.live[node.target as usize]),
                Flow::Call | Flow::CallAny | Flow::JumpAny => Some(ALL),
                Flow::Return | Flow::End => None,
                _ if node.enters_unknown_code() => Some(ALL),
                _ => None,
            };
            if ends.is_some_and(|live| bound(live) > ground.threshold) {
                return Err(at);
            }
            if matches!(node.flow, Flow::Call | Flow::CallAny) {
                continue;
            }
            for to in node.successors() {
                let live = if ground.tight || every_of(to) > 0 { ground.live[to as usize] } else { 0 };
                if bound(live) > ground.threshold {
                    return Err(at);
                }
                let known = &mut self.states[to as usize][turn];
                let joined = PathState {
                    reached: true,
                    stores: known.stores.max(after.stores),
                    dirty: known.dirty | after.dirty,
                };
                if joined != *known {
                    let before = std::mem::replace(known, joined);
                    let queued = std::mem::replace(&mut self.queued[to as usize], true);
                    if self.keeps_old {
                        self.old.push((to, turn, before));
                        if !queued {
                            self.left.push_back(to);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The node before which a boundary stores the fewest registers for each store of the program since the
    /// last one, of those that lead to this one without another way in. The later one of equals; none where
    /// there is none that the threshold allows.
    pub(super) fn cheapest(&self, ground: &Ground<'_>, every: &[Every], last: u32) -> Option<u32> {
        let mut found: Option<(u32, u32, u32)> = None;
        let mut at = last;
        while every[at as usize] == 0 {
            let of_turns = self.states[at as usize].iter().filter(|state| state.reached);
            let (stores, dirty) = of_turns.fold((0, 0), |(most, all), s| (most.max(s.stores), all | s.dirty));
            let cost = (dirty & ground.live[at as usize]).count_ones() + 1;
            let is_cheaper = |&(_, of, by): &(u32, u32, u32)| cost * by < of * stores;
            if stores > 0 && stores + cost <= ground.threshold && found.as_ref().is_none_or(is_cheaper) {
                found = Some((at, cost, stores));
            }
            match ground.before[at as usize][..] {
                [before] if before < at => at = before,
                _ => break,
            }
        }
        found.map(|(at, ..)| at)
    }

    /// Registers that may have been written since the last boundary when one is executed before a node.
    pub(super) fn dirty(&self, node: u32) -> RegisterSet {
        self.states[node as usize].iter().fold(0, |set, state| set | state.dirty)
    }
}
