//! Level B of epoch order: states that the promise allows, though the machine did not come through them.
//!
//! A state at an instant is any set of the persists that were performed by then which has, with each persist,
//! all that must be durable before it, and all that fences have waited for. They are too many: some are
//! drawn.
//!
//! | kind | persists |
//! |---|---|
//! | 0 | what must be durable, and no more |
//! | 1 | all |
//! | single | one of the last, with what it needs |
//! | random | some of the last, with what they need; with or without all that is older |
//! | torn | one of the last with what it needs, of the stores to its line in its epoch but a part |
//!
//! Invariants: choices are numbered, and the same at any number of threads; stores to one line in one epoch
//! of a hart may be durable in part, a store of 8 bytes may not.

use std::collections::BTreeSet;

use crate::allowed::Budget;
use crate::{Draw, mix, runs};
use durawarp_engine::Time;
use durawarp_persist::image::PmImage;

use super::{Node, PersistOrder};

/// Persists before an instant that single and random states are drawn from.
const LAST: usize = 64;

/// The states of a run that epoch order allows.
#[derive(Debug, Clone)]
pub struct EpochStates<'a> {
    order: &'a PersistOrder<'a>,
    initial: &'a PmImage,
    budget: Budget,
}

impl<'a> EpochStates<'a> {
    /// States over an initial image; how many of each kind, and the seed of what is drawn.
    pub fn new(order: &'a PersistOrder<'a>, initial: &'a PmImage, budget: Budget) -> EpochStates<'a> {
        EpochStates { order, initial, budget }
    }

    /// The image before the first persist.
    pub fn initial(&self) -> &'a PmImage {
        self.initial
    }

    /// The instants to judge, each as the number of persists before it; and how many instants are left out.
    pub fn instants(&self) -> (Vec<usize>, u64) {
        let all = self.order.persists.len();
        let count = (self.budget.instants as usize).clamp(1, all + 1);
        let mut instants: Vec<usize> = (0..count).map(|at| at * all / (count - 1).max(1)).collect();
        instants.dedup();
        let left_out = (all + 1 - instants.len()) as u64;
        (instants, left_out)
    }

    /// How many persists there are: the last instant.
    pub fn persists(&self) -> usize {
        self.order.persists.len()
    }

    /// When an instant is, in ticks.
    pub fn time(&self, instant: usize) -> Time {
        let last = self.order.persists[..instant].last();
        last.and_then(|&node| self.order.persist(node)).map_or(0, |fact| fact.time)
    }

    /// States of an instant.
    pub fn choices(&self) -> u64 {
        2 + self.budget.singles + self.budget.random + self.budget.torn
    }

    /// The image of a state.
    pub fn image(&self, instant: usize, choice: u64) -> PmImage {
        let mut image = self.initial.clone();
        for node in self.set(instant, choice) {
            let Some(fact) = self.order.persist(node) else { continue };
            let (data, mut taken) = (self.order.journal.data(fact), 0);
            for (start, bytes) in runs(fact.mask) {
                // Persists lie in persistent memory, as level A has checked.
                let _ = image.write(fact.line + start as u64, &data[taken..taken + bytes]);
                taken += bytes;
            }
        }
        image
    }

    /// The persists of a state, in the order in which they were performed.
    fn set(&self, instant: usize, choice: u64) -> BTreeSet<Node> {
        let performed = &self.order.persists[..instant];
        let Some(&newest) = performed.last() else { return BTreeSet::new() };
        let fact = self.order.fact[newest as usize];
        let waited = self.order.fences.iter().take_while(|(fence, _)| Some(*fence) < fact).map(|&(_, node)| node);
        let mut roots: Vec<Node> = waited.collect();
        let must = roots.len();
        let mut draw = Draw::new(mix(self.budget.seed ^ (instant as u64) << 20 ^ choice));
        let last = &performed[performed.len().saturating_sub(LAST)..];
        let (singles, random) = (self.budget.singles, self.budget.random);
        let mut torn = BTreeSet::new();
        match choice {
            0 => {}
            1 => roots.extend(performed),
            // The last ones one after the other, the newest first.
            single if single < 2 + singles => {
                let back = (single - 2) as usize % last.len();
                roots.push(last[last.len() - 1 - back]);
            }
            of if of < 2 + singles + random => {
                let older = &performed[..performed.len() - last.len()];
                roots.extend(older.iter().filter(|_| of % 2 == 0));
                roots.extend(last.iter().filter(|_| draw.below(2) == 0));
            }
            _ => {
                let node = last[draw.below(last.len() as u64) as usize];
                roots.push(node);
                torn = self.run_of(node).into_iter().filter(|_| draw.below(2) == 0).collect();
            }
        }
        let mut set = self.closure(roots.iter().copied());
        if !torn.is_empty() {
            // What nothing else in the set needs may be missing, unless a fence has waited for it.
            let run = self.run_of(roots[roots.len() - 1]);
            let others = set.iter().filter(|node| !run.contains(node)).chain(&roots[..must]);
            let rest = self.closure(others.copied());
            set.retain(|node| !torn.contains(node) || rest.contains(node));
        }
        set
    }

    /// The stores of a persist's hart to its line in its epoch, up to it.
    fn run_of(&self, node: Node) -> Vec<Node> {
        let mut run = vec![node];
        let Some(fact) = self.order.persist(node) else { return run };
        loop {
            let first = run[run.len() - 1];
            let before = self.order.before[first as usize].iter().copied().find(|&before| {
                self.order
                    .persist(before)
                    .is_some_and(|of| of.line == fact.line && of.author.thread() == fact.author.thread())
            });
            // The end of an epoch between the two is the larger of the nodes before.
            match before {
                Some(before) if self.order.before[first as usize].last() == Some(&before) => run.push(before),
                _ => return run,
            }
        }
    }

    /// Persists, with all that must be durable before them.
    fn closure(&self, roots: impl Iterator<Item = Node>) -> BTreeSet<Node> {
        let mut known = vec![false; self.order.fact.len()];
        let mut stack: Vec<Node> = roots.collect();
        let mut set = BTreeSet::new();
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut known[node as usize], true) {
                continue;
            }
            if self.order.fact[node as usize].is_some() {
                set.insert(node);
            }
            stack.extend(self.order.before[node as usize].iter().filter(|&&before| !known[before as usize]));
        }
        set
    }
}
