//! Which launches were over when another began, or when a part of it did: these come before it. Launches that
//! were in flight together have no order.
//!
//! | part of a launch | begins | what comes before |
//! |---|---|---|
//! | first | with the launch | launches that were over then |
//! | behind `griddepcontrol.wait` | for a CTA, when a warp of it passes one | those over when what it depends on is |
//!
//! Source: CUDA C++ Programming Guide, "Streams", "Events" and "Programmatic Dependent Launch". What was over
//! all the same counts as before it, too: nothing of it is left to overlap. Invariants: the order is that of
//! intervals in time, so it is transitive; of launches of which a journal says neither begin nor end, that of
//! their numbers. Not modelled: waits of a launch for another but the last before it in its stream.

use std::collections::{BTreeMap, BTreeSet};

use durawarp_persist::journal::{Author, Fact, FactKind};

/// A launch, and whether it is the part behind its wait.
pub(super) type LaunchPart = (u32, bool);

/// When a part of a launch began.
#[derive(Debug, Default)]
struct Began {
    /// Launches that had begun.
    place: u32,
    /// Those of them that were not over.
    beside: Vec<u32>,
}

/// Launches in the order of their intervals.
#[derive(Debug, Default)]
pub(super) struct LaunchOrder {
    parts: BTreeMap<LaunchPart, Began>,
    /// Launches that have begun.
    begun: u32,
    in_flight: BTreeSet<u32>,
    /// Of CTAs that are behind their launch's wait: since which fact.
    passed: BTreeMap<(u32, u32), u32>,
    /// Some began while another was in flight, or not in the order of their numbers.
    overlaps: bool,
}

impl LaunchOrder {
    /// The order of all launches of a journal.
    pub(super) fn of(facts: &[Fact]) -> LaunchOrder {
        let mut order = LaunchOrder::default();
        facts.iter().enumerate().for_each(|(at, fact)| order.take(at as u32, fact));
        order
    }

    /// The next fact of a journal.
    pub(super) fn take(&mut self, at: u32, fact: &Fact) {
        let began =
            |order: &LaunchOrder| Began { place: order.begun, beside: order.in_flight.iter().copied().collect() };
        match (fact.kind, fact.author) {
            (FactKind::KernelStarted, Author::Launch(launch)) => {
                let began = began(self);
                let late = self.parts.last_key_value().is_some_and(|(&(last, _), _)| last > launch);
                self.overlaps |= !began.beside.is_empty() || late;
                self.parts.insert((launch, false), began);
                self.begun += 1;
                self.in_flight.insert(launch);
            }
            (FactKind::PrerequisitesOver, Author::Launch(launch)) => {
                let began = began(self);
                self.parts.insert((launch, true), began);
            }
            (FactKind::PrerequisitesPassed, _) => {
                if let Some(cta) = fact.author.cta().filter(|(launch, _)| self.parts.contains_key(&(*launch, true))) {
                    self.passed.entry(cta).or_insert(at);
                }
            }
            (FactKind::KernelEnded, Author::Launch(launch)) => {
                self.in_flight.remove(&launch);
            }
            _ => {}
        }
    }

    /// Launches had one order only: that of their numbers.
    pub(super) fn is_total(&self) -> bool {
        !self.overlaps
    }

    /// The part of a launch to which a CTA's store of this fact belongs.
    pub(super) fn part_of(&self, cta: (u32, u32), store: u32) -> LaunchPart {
        (cta.0, self.passed.get(&cta).is_some_and(|&passed| passed < store))
    }

    /// A launch was over when a part of another, which has begun, did.
    pub(super) fn is_before(&self, earlier: u32, part: LaunchPart) -> bool {
        match (self.parts.get(&(earlier, false)), self.parts.get(&part)) {
            (Some(first), Some(second)) => first.place < second.place && !second.beside.contains(&earlier),
            _ => earlier < part.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, warp_of};
    use super::*;

    const BEGINS: FactKind = FactKind::KernelStarted;
    const ENDS: FactKind = FactKind::KernelEnded;

    /// The script of steps of launches.
    fn script(steps: &[(u32, FactKind)]) -> Script {
        let mut script = Script::default();
        for &(launch, kind) in steps {
            script.fact(kind, 0, Author::Launch(launch));
        }
        script
    }

    fn order(steps: &[(u32, FactKind)]) -> LaunchOrder {
        LaunchOrder::of(script(steps).journal.facts())
    }

    fn is_before(order: &LaunchOrder, earlier: u32, later: u32) -> bool {
        order.is_before(earlier, (later, false))
    }

    #[test]
    fn launches_one_after_another_are_in_the_order_of_their_numbers() {
        let one = order(&[(0, BEGINS), (0, ENDS), (1, BEGINS), (1, ENDS)]);
        for order in [one, LaunchOrder::default()] {
            assert!(order.is_total() && is_before(&order, 0, 1));
            assert!(!is_before(&order, 1, 0) && !is_before(&order, 1, 1));
        }
    }

    #[test]
    fn those_in_flight_together_have_no_order_and_the_next_of_a_stream_comes_behind_its_last() {
        // Stream 1 has launches 0 and 1, stream 2 has launch 2, which outlasts 0.
        let steps = [(0, BEGINS), (2, BEGINS), (0, ENDS), (1, BEGINS), (2, ENDS), (1, ENDS), (3, BEGINS)];
        let two = order(&steps);
        assert!(!two.is_total());
        assert!(is_before(&two, 0, 1) && !is_before(&two, 0, 2) && !is_before(&two, 2, 0));
        assert!(!is_before(&two, 1, 2) && !is_before(&two, 2, 1), "1 began while 2 ran");
        assert!([0, 1, 2].into_iter().all(|launch| is_before(&two, launch, 3)));
    }

    #[test]
    fn a_launch_that_begins_late_comes_behind_those_of_higher_numbers_that_are_over() {
        let late = order(&[(0, BEGINS), (2, BEGINS), (2, ENDS), (0, ENDS), (1, BEGINS)]);
        assert!(!late.is_total() && is_before(&late, 2, 1) && !is_before(&late, 1, 2));
    }

    #[test]
    fn what_a_cta_stores_behind_its_wait_comes_behind_what_its_launch_depends_on() {
        let mut script = script(&[(0, BEGINS), (2, BEGINS), (1, BEGINS), (0, ENDS), (1, FactKind::PrerequisitesOver)]);
        let (first, second) = ([7, 8].map(|cta| Author::Warp { sm: 0, launch: 1, cta, warp: 0, pc: 0 })).into();
        script.fact(FactKind::PrerequisitesPassed, 0, first);
        let passed = script.journal.facts().len() as u32 - 1;
        // A wait of a launch that depends on nothing is none.
        script.fact(FactKind::PrerequisitesPassed, 0, warp_of(7, 0));
        let order = LaunchOrder::of(script.journal.facts());
        let part = |cta: Author, store| order.part_of(cta.cta().unwrap(), store);
        assert_eq!([part(first, passed - 1), part(first, passed + 1)], [(1, false), (1, true)]);
        assert_eq!(part(second, passed + 1), (1, false), "another CTA has not waited");
        assert_eq!(part(warp_of(7, 0), passed + 5), (0, false));
        assert!(!order.is_before(0, (1, false)) && order.is_before(0, (1, true)));
        assert!(!order.is_before(2, (1, true)), "in flight all the same");
        assert!(!order.is_before(1, (1, true)), "its own first part");
    }
}
