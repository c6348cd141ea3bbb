//! Functions that share code without calls (cold parts, labels of assembly) as one unit, the order of its
//! nodes, and its loops.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{CodeNode, Flow, Graph};
use super::terms::{stores, written};
use crate::instruction::{Class, Op};

/// Functions whose control flow is looked at together.
#[derive(Debug)]
pub(super) struct Unit {
    /// Its nodes, by address.
    pub(super) nodes: Vec<u32>,
    /// The same in topological order but for loops: a node comes after those that lead to it.
    pub(super) order: Vec<u32>,
    /// Nodes at which loops with stores begin.
    pub(super) headers: Vec<u32>,
    /// Nodes at which loops begin that store nothing and load from one address again and again: a hart that
    /// polls what another one will store.
    pub(super) polls: Vec<u32>,
}

/// The units of a program, by their first function.
pub(super) fn units(graph: &Graph) -> Vec<Unit> {
    let mut leader: Vec<usize> = (0..graph.functions.len()).collect();
    fn find(leader: &mut [usize], mut at: usize) -> usize {
        while leader[at] != at {
            leader[at] = leader[leader[at]];
            at = leader[at];
        }
        at
    }
    for (from, to) in graph.crossings() {
        let (a, b) = (find(&mut leader, from), find(&mut leader, to));
        leader[a.max(b)] = a.min(b);
    }
    let mut groups: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (at, function) in graph.functions.iter().enumerate() {
        groups.entry(find(&mut leader, at)).or_default().extend(function.nodes.clone());
    }
    // Marks of a walk, for all units: each looks at its own nodes only.
    let mut walk = LoopWalk { mark: vec![Mark::New; graph.nodes.len()], before: predecessors(graph) };
    groups.into_values().map(|nodes| walk.unit(graph, nodes)).collect()
}

/// By node: those that it follows, in its own function or one that it shares code with.
pub(super) fn predecessors(graph: &Graph) -> Vec<Vec<u32>> {
    let mut before = vec![Vec::new(); graph.nodes.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        for to in node.successors() {
            before[to as usize].push(at as u32);
        }
    }
    before
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

struct LoopWalk {
    mark: Vec<Mark>,
    before: Vec<Vec<u32>>,
}

impl LoopWalk {
    fn unit(&mut self, graph: &Graph, nodes: Vec<u32>) -> Unit {
        let mut order = Vec::with_capacity(nodes.len());
        let mut back = Vec::new();
        for &root in &nodes {
            if self.mark[root as usize] != Mark::New {
                continue;
            }
            self.mark[root as usize] = Mark::Open;
            let mut stack = vec![(root, 0)];
            while let Some((node, nth)) = stack.last_mut() {
                let from = *node;
                let Some(to) = graph.nodes[from as usize].successors().nth(*nth) else {
                    self.mark[from as usize] = Mark::Done;
                    order.push(from);
                    stack.pop();
                    continue;
                };
                *nth += 1;
                match self.mark[to as usize] {
                    Mark::New => {
                        self.mark[to as usize] = Mark::Open;
                        stack.push((to, 0));
                    }
                    // An arrow back to what leads here: every loop has one.
                    Mark::Open => back.push((from, to)),
                    Mark::Done => {}
                }
            }
        }
        order.reverse();
        let (mut headers, mut polls) = (Vec::new(), Vec::new());
        for (from, header) in back {
            let nodes = self.loop_of(from, header);
            let of_loop = || nodes.iter().map(|node| &graph.nodes[*node as usize]);
            if of_loop().any(|node| stores(&node.inst)) {
                headers.push(header);
            } else if polls_memory(of_loop) {
                polls.push(header);
            }
        }
        for list in [&mut headers, &mut polls] {
            list.sort_unstable();
            list.dedup();
        }
        Unit { nodes, order, headers, polls }
    }

    /// The loop of an arrow back: all that leads to its start without passing the header.
    fn loop_of(&self, from: u32, header: u32) -> BTreeSet<u32> {
        let mut seen = BTreeSet::from([header, from]);
        let mut left = vec![from];
        while let Some(node) = left.pop() {
            if node != header {
                left.extend(self.before[node as usize].iter().filter(|before| seen.insert(**before)));
            }
        }
        seen
    }
}

/// A loop of these nodes, without a store, loads from an address that it does not compute. Compilers leave
/// such a load in such a loop where others may change what is there. Calls, of the system as well, have
/// boundaries of their own in each turn, and may be what changes it.
fn polls_memory<'a, I: Iterator<Item = &'a CodeNode>>(of_loop: impl Fn() -> I) -> bool {
    let calls = |node: &CodeNode| matches!(node.flow, Flow::Call | Flow::CallAny) || node.inst.op == Op::Ecall;
    let computed = of_loop().fold(0, |computed, node| computed | written(&node.inst, true));
    let waits = |node: &CodeNode| node.inst.class() == Class::Load && computed >> node.inst.rs1 & 1 == 0;
    !of_loop().any(calls) && of_loop().any(waits)
}
