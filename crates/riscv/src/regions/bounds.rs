//! The most stores of a region, along every path: what the threshold is held by.
//!
//! Forward over a unit, each node has for every *turn* the most stores since the last boundary, S, and the
//! registers that may have been written since, D. A boundary before a node would store those of D that are
//! live there and the pc: S + |D & live| + 1 stores. That number is kept at most the threshold before every
//! node, boundary or not, so that a region may be ended anywhere. What recovery computes (`values`) is
//! counted as if it were stored; a boundary leaves it in D, since its slot is old.
//!
//! The turn counts the boundaries that were passed without being executed since the last one that was: a
//! boundary with `every` = k is executed when k - 1 were passed. So a loop is looked at as if its body stood
//! there k times, which is what the paper's unrolling makes of it.
//!
//! Where two paths meet, S is the larger one and D the union: a region that runs has at most that.

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
}

/// States of a unit under given boundaries. Kept to be used again.
#[derive(Debug, Default)]
pub(super) struct Solver {
    states: Vec<[PathState; UNROLL_MAX as usize]>,
    queued: Vec<bool>,
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

    /// Takes what is known before a node on to those behind it.
    fn pass(&mut self, ground: &Ground<'_>, at: u32, every: &[Every], computed: &[RegisterSet]) -> Result<(), u32> {
        let node = &ground.graph.nodes[at as usize];
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
                if bound(ground.live[to as usize]) > ground.threshold {
                    return Err(at);
                }
                let known = &mut self.states[to as usize][turn];
                let joined = PathState {
                    reached: true,
                    stores: known.stores.max(after.stores),
                    dirty: known.dirty | after.dirty,
                };
                if joined != *known {
                    *known = joined;
                    self.queued[to as usize] = true;
                }
            }
        }
        Ok(())
    }

    /// Registers that may have been written since the last boundary when one is executed before a node.
    pub(super) fn dirty(&self, node: u32) -> RegisterSet {
        self.states[node as usize].iter().fold(0, |set, state| set | state.dirty)
    }
}
