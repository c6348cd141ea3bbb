//! Who blocks whom when nothing can happen any more: a pure search over [`Wait::on`].
//!
//! A component that waits on another points at it. Following the pointers ends in a cycle (a true deadlock:
//! each waits for the next), or at a component that waits for none that is known (a message was lost or never
//! sent). The chain names the place.

use super::component::Wait;
use super::message::ComponentId;

/// Components that wait in a row: each for the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blockage {
    /// The last waits for the first.
    Cycle(Vec<ComponentId>),
    /// The last waits for no known component, or does not wait at all.
    Chain(Vec<ComponentId>),
}

/// Finds a cycle of waits if there is one, the one of the component with the least id on any cycle; else the
/// longest chain, of equals the one that starts at the least id. `None` without waits. Linear in waits.
///
/// # Example: three that wait for each other, and one that waits for them
/// ```
/// use durawarp_engine::{Blockage, ComponentId, Wait, blockage};
/// let wait = |on| Wait { who: String::new(), what: String::new(), on, since: 0 };
/// let id = ComponentId;
/// let waits = [(0, 1), (1, 2), (2, 3), (3, 1)].map(|(from, on)| (id(from), wait(Some(id(on)))));
/// let found = blockage(waits.iter().map(|(id, wait)| (*id, wait)));
/// assert_eq!(found, Some(Blockage::Cycle(vec![id(1), id(2), id(3)])));
/// ```
pub fn blockage<'a>(waits: impl IntoIterator<Item = (ComponentId, &'a Wait)>) -> Option<Blockage> {
    let mut edges: Vec<(u32, Option<u32>)> = waits.into_iter().map(|(id, w)| (id.0, w.on.map(|on| on.0))).collect();
    edges.sort_unstable();
    edges.dedup();
    let first = edges.first()?.0;
    let targets = edges.iter().filter_map(|(_, on)| *on);
    let size = edges.iter().map(|(id, _)| *id).chain(targets).max().map_or(0, |id| id as usize + 1);
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); size];
    for &(id, on) in &edges {
        out[id as usize].extend(on);
    }
    let search = Search { out: &out, state: vec![State::New; size], next: vec![None; size], length: vec![1; size] };
    Some(search.run(first, edges.iter().map(|(id, _)| *id)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    OnPath,
    Done,
}

struct Search<'a> {
    out: &'a [Vec<u32>],
    state: Vec<State>,
    /// The next on the longest chain from here, and its length.
    next: Vec<Option<u32>>,
    length: Vec<u32>,
}

impl Search<'_> {
    fn run(mut self, first: u32, starts: impl Iterator<Item = u32>) -> Blockage {
        let mut best = first;
        let mut cycle: Option<Vec<u32>> = None;
        for start in starts {
            if let Some(found) = self.visit(start)
                && cycle.as_ref().is_none_or(|known| found[0] < known[0])
            {
                cycle = Some(found);
            }
            if self.length[start as usize] > self.length[best as usize] {
                best = start;
            }
        }
        if let Some(cycle) = cycle {
            return Blockage::Cycle(cycle.into_iter().map(ComponentId).collect());
        }
        let chain = std::iter::successors(Some(best), |&at| self.next[at as usize]);
        Blockage::Chain(chain.map(ComponentId).collect())
    }

    /// A depth-first search without recursion; the first cycle that it meets, beginning with its least id.
    fn visit(&mut self, start: u32) -> Option<Vec<u32>> {
        if self.state[start as usize] != State::New {
            return None;
        }
        let mut cycle = None;
        let mut path = vec![(start, 0)];
        self.state[start as usize] = State::OnPath;
        while let Some((at, edge)) = path.last_mut() {
            let at = *at;
            let Some(&on) = self.out[at as usize].get(*edge) else {
                // Only here is the longest chain from `at` known in full, so only here does the component
                // that waits on it take it over.
                self.state[at as usize] = State::Done;
                path.pop();
                if let Some(&(before, _)) = path.last() {
                    self.extend(before, at);
                }
                continue;
            };
            *edge += 1;
            match self.state[on as usize] {
                State::New => {
                    self.state[on as usize] = State::OnPath;
                    path.push((on, 0));
                }
                State::OnPath if cycle.is_none() => {
                    // The rest of the path from `on` is the cycle. It begins with its least id, so that the
                    // report does not depend on where the search came in.
                    let from = path.iter().position(|(id, _)| *id == on).unwrap_or(0);
                    let mut found: Vec<u32> = path[from..].iter().map(|(id, _)| *id).collect();
                    let least = found.iter().enumerate().min_by_key(|(_, id)| **id).map_or(0, |(i, _)| i);
                    found.rotate_left(least);
                    cycle = Some(found);
                }
                State::OnPath => {}
                State::Done => self.extend(at, on),
            }
        }
        cycle
    }

    fn extend(&mut self, before: u32, at: u32) {
        let length = self.length[at as usize] + 1;
        if length > self.length[before as usize] {
            self.length[before as usize] = length;
            self.next[before as usize] = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edges: &[(u32, Option<u32>)], expected: Option<Blockage>) {
        let wait =
            |on: Option<u32>| Wait { who: String::new(), what: String::new(), on: on.map(ComponentId), since: 0 };
        let waits: Vec<(ComponentId, Wait)> = edges.iter().map(|&(id, on)| (ComponentId(id), wait(on))).collect();
        assert_eq!(blockage(waits.iter().map(|(id, wait)| (*id, wait))), expected);
    }

    fn ids(list: &[u32]) -> Vec<ComponentId> {
        list.iter().copied().map(ComponentId).collect()
    }

    #[test]
    fn no_waits_no_blockage() {
        check(&[], None);
    }

    #[test]
    fn a_chain_ends_at_who_waits_for_nobody() {
        check(&[(0, Some(4)), (4, Some(2)), (2, None)], Some(Blockage::Chain(ids(&[0, 4, 2]))));
        check(&[(3, Some(1))], Some(Blockage::Chain(ids(&[3, 1]))));
        check(&[(5, None)], Some(Blockage::Chain(ids(&[5]))));
    }

    #[test]
    fn the_longest_chain_is_found_over_branches() {
        let edges = [(0, Some(1)), (0, Some(2)), (2, Some(3)), (3, Some(1)), (1, None)];
        check(&edges, Some(Blockage::Chain(ids(&[0, 2, 3, 1]))));
    }

    #[test]
    fn a_cycle_wins_over_any_chain() {
        let edges = [(0, Some(1)), (1, Some(2)), (2, None), (5, Some(4)), (4, Some(5))];
        check(&edges, Some(Blockage::Cycle(ids(&[4, 5]))));
    }

    #[test]
    fn who_waits_for_itself_is_a_cycle() {
        check(&[(7, Some(7))], Some(Blockage::Cycle(ids(&[7]))));
    }
}
