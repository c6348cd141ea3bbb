//! Functions that share code without calls (cold parts, labels of assembly) as one unit, the order of its
//! nodes, and its loops.

use std::collections::BTreeMap;

use super::graph::Graph;
use super::terms::stores;

/// Functions whose control flow is looked at together.
#[derive(Debug)]
pub(super) struct Unit {
    /// Its nodes, by address.
    pub(super) nodes: Vec<u32>,
    /// The same in topological order but for loops: a node comes after those that lead to it.
    pub(super) order: Vec<u32>,
    /// Nodes at which loops with stores begin.
    pub(super) headers: Vec<u32>,
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
        let mut headers: Vec<u32> =
            back.iter().filter(|(from, to)| self.loop_stores(graph, *from, *to)).map(|(_, to)| *to).collect();
        headers.sort_unstable();
        headers.dedup();
        Unit { nodes, order, headers }
    }

    /// Whether the loop of an arrow back, all that leads to its start without passing the header, stores.
    fn loop_stores(&self, graph: &Graph, from: u32, header: u32) -> bool {
        let mut seen = std::collections::BTreeSet::from([header, from]);
        let mut left = vec![from];
        let mut found = stores(&graph.nodes[header as usize].inst);
        while let Some(node) = left.pop().filter(|_| !found) {
            found = stores(&graph.nodes[node as usize].inst);
            if node != header {
                left.extend(self.before[node as usize].iter().filter(|before| seen.insert(**before)));
            }
        }
        found
    }
}
