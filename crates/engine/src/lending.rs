//! What a partition does with loans: it lays some of its components out, runs those of others, and takes its
//! own home.
//!
//! Invariants: as `loan.rs` has them. What is pending for a lent component counts in the report of whoever
//! ran it, until it is home: the least of all reports is that of a round in which nothing was lent.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::agenda::{offset_of, payload_of, tie_of, with_payload};
use super::cell::Cell;
use super::loan::{Lend, Loan};
use super::message::Message;
use super::partition::{Meter, Partition, RoundCount, answer, run_cell};
use super::tiers::{Tiers, Windows};

impl<M: Message> Partition<M> {
    /// Lays out those of the groups of a tier's round that are to be lent. Returns how many of the agenda's
    /// groups are left, all of them before the others.
    pub(super) fn lend(&mut self, tier: usize, lender: &mut impl Lend<M>) -> usize {
        let own = self.agenda.put_last(|component| self.cells[component as usize].lent);
        for group in own..self.agenda.len() {
            let (index, keys) = self.agenda.group(group);
            let cell = &mut self.cells[index as usize];
            let mut loan = self.spare_loans.pop().unwrap_or_else(|| Loan {
                owner: self.index,
                index,
                cell: Cell::absent(cell.id),
                keys: Vec::new(),
                messages: Vec::new(),
                from: 0,
            });
            loan.index = index;
            loan.keys.extend_from_slice(keys);
            let queue = &mut self.sink.queues[tier];
            loan.messages.extend(keys.iter().map(|&key| queue.take(payload_of(key))));
            // Messages find the tier of their receiver here meanwhile.
            loan.cell.tier = cell.tier;
            std::mem::swap(cell, &mut loan.cell);
            self.loans.push(loan);
        }
        if !self.loans.is_empty() {
            lender.lend(&mut self.loans);
        }
        own
    }

    /// Runs a loan, of this partition or another, through the round.
    pub(crate) fn run_loan(
        &mut self,
        loan: &mut Loan<M>,
        tiers: &Tiers,
        windows: &Windows,
        count: &mut RoundCount,
        meter: &mut impl Meter,
    ) {
        let tier = usize::from(loan.cell.tier);
        let window = windows.of[tier];
        self.sink.bounds[tier] = window.bound;
        self.sink.answer = answer(tier, tiers, windows.promised);
        let queue = &mut self.sink.queues[tier];
        for (key, message) in loan.keys.iter_mut().zip(loan.messages.drain(..)) {
            *key = with_payload(*key, queue.store(message));
        }
        meter.lap();
        let cell = &mut loan.cell;
        let run = AssertUnwindSafe(|| run_cell(cell, self.index, &loan.keys, window, &mut self.sink));
        match catch_unwind(run) {
            Err(payload) => self.note_crash(loan.cell.id, payload.as_ref()),
            Ok(None) => {}
            Ok(Some((last, events))) => {
                self.last_event = self.last_event.max(last);
                count.events += events;
                count.heaviest = count.heaviest.max(events);
                if let Some(ns) = meter.lap() {
                    loan.cell.cost.sample(ns, events);
                    meter.note(loan.cell.id, events, ns);
                }
            }
        }
        // What it stopped before goes home with it.
        loan.keys.clear();
        loan.from = window.from;
        for key in self.sink.left.drain(..) {
            let least = &mut self.sink.least_sent[tier];
            *least = (*least).min(window.from + offset_of(key));
            loan.keys.push(key);
            loan.messages.push(self.sink.queues[tier].take(payload_of(key)));
        }
        // Its note is left at home, after the meeting: until then the report of this worker stands for it.
        if loan.cell.lacks_note() {
            self.sink.least_sent[tier] = self.sink.least_sent[tier].min(loan.cell.wake);
        }
    }

    /// Takes a loan of this partition back.
    pub(crate) fn take_home(&mut self, mut loan: Loan<M>) {
        let cell = &mut self.cells[loan.index as usize];
        std::mem::swap(cell, &mut loan.cell);
        let queue = &mut self.sink.queues[usize::from(cell.tier)];
        for (key, message) in loan.keys.drain(..).zip(loan.messages.drain(..)) {
            queue.push(loan.from + offset_of(key), tie_of(key), loan.index, message);
        }
        if cell.lacks_note() {
            cell.noted = cell.wake;
            queue.push_wake(cell.wake, loan.index);
        }
        self.spare_loans.push(loan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Component;
    use crate::context::Ctx;
    use crate::event::NEVER;
    use crate::message::{ComponentId, Port};
    use crate::partition::{NoMeter, rearrange};
    use crate::queue::Queue;
    use crate::simulation::Simulation;
    use crate::tiers::MAX_TIERS;
    use crate::tiers::least;
    use crate::time::Time;
    use crate::topology::{Link, Topology};

    /// What travels: how many hops are left.
    #[derive(Debug)]
    struct Hop(u32);

    impl Message for Hop {
        fn digest(&self) -> u64 {
            u64::from(self.0)
        }
    }

    /// Passes a hop on at once and again later, by a wake-up and by a message to itself; with a desk, now and
    /// then to that, which answers.
    struct Relay {
        seen: u64,
        again: u32,
        /// Its number at the desk.
        at_desk: Option<u32>,
    }

    impl Component<Hop> for Relay {
        fn handle(&mut self, hop: Hop, cx: &mut Ctx<'_, Hop>) {
            self.seen = self.seen.wrapping_mul(31).wrapping_add(cx.now() ^ u64::from(hop.0));
            if let Some(left) = hop.0.checked_sub(1) {
                match self.at_desk {
                    Some(own) if left % 3 == 1 => cx.send(Port(3), Hop(1000 * own + left), 0),
                    _ => cx.send(Port((left % 2) as u16), Hop(left), u64::from(left % 7)),
                }
                let later = 30 + u64::from(left % 90);
                if self.at_desk.is_some() {
                    // Nothing but messages is left where it stops.
                    cx.send(Port(2), Hop(left / 3), later);
                } else {
                    self.again = left;
                    cx.wake_at(cx.now() + later);
                }
            }
        }

        fn wake(&mut self, cx: &mut Ctx<'_, Hop>) {
            cx.send(Port(2), Hop(self.again / 3), 0);
        }

        fn digest(&self) -> u64 {
            self.seen
        }
    }

    /// Sends a hop back.
    struct Desk;

    impl Component<Hop> for Desk {
        fn handle(&mut self, hop: Hop, cx: &mut Ctx<'_, Hop>) {
            cx.send(Port((hop.0 / 1000) as u16), Hop(hop.0 % 1000), 0);
        }

        fn wake(&mut self, _: &mut Ctx<'_, Hop>) {}

        fn answers_sender_only(&self) -> bool {
            true
        }
    }

    /// Six relays, and maybe a desk that always promises: then links among relays are longer than two ways to
    /// it and back, so that relays end rounds for its answers.
    fn ring(desk: bool) -> Simulation<Hop> {
        let mut topology = Topology::new();
        let relay = |i| Relay { seen: u64::from(i), again: 0, at_desk: desk.then_some(i) };
        let ids: Vec<ComponentId> = (0..6).map(|i| topology.add(format!("relay{i}"), Box::new(relay(i)))).collect();
        if desk {
            let id = topology.add("desk", Box::new(Desk));
            for (i, &relay) in ids.iter().enumerate() {
                topology.connect(relay, Port(3), id, Link { latency: 60, phase: 0 });
                topology.connect(id, Port(i as u16), relay, Link { latency: 60, phase: 0 });
            }
            topology.put_in_tier(1, &[id]);
            topology.let_answer(1);
        }
        let more = if desk { 300 } else { 0 };
        for (i, &from) in ids.iter().enumerate() {
            for (port, latency) in [(1, 100 + more), (4, 170 + more)].iter().enumerate() {
                let link = Link { latency: latency.1, phase: 0 };
                topology.connect(from, Port(port as u16), ids[(i + latency.0) % ids.len()], link);
            }
            topology.connect(from, Port(2), from, Link { latency: 3, phase: 0 });
            // Those that are lent are the last: with a desk they are first to do something.
            topology.post(from, if desk { 40 * (5 - i as u64) } else { i as u64 }, Hop(20));
        }
        Simulation::new(topology).expect("a sound topology")
    }

    /// Keeps what is laid out.
    struct Shelf(Vec<Loan<Hop>>);

    impl Lend<Hop> for Shelf {
        fn lends(&self) -> bool {
            true
        }

        fn lend(&mut self, loans: &mut Vec<Loan<Hop>>) {
            self.0.append(loans);
        }
    }

    #[test]
    fn who_runs_a_loan_changes_nothing() {
        let (lent, cut) = all_lent(false);
        assert!(lent > 20 && cut == 0, "{lent} loans, {cut} of them cut");
    }

    #[test]
    fn what_a_loan_that_ends_its_round_for_an_answer_has_left_counts_until_it_is_home() {
        let (lent, cut) = all_lent(true);
        assert!(lent > 20 && cut > 5, "{lent} loans, {cut} of them cut");
    }

    /// Two partitions, each of which runs all loans of the other: how many there were, and how many of them
    /// came home with messages.
    fn all_lent(desk: bool) -> (u32, u32) {
        let mut alone = ring(desk);
        alone.run(&Default::default());

        let mut simulation = ring(desk);
        let (tiers, longest) = (simulation.tiers, simulation.longest_latency);
        let fresh = || Queue::of_tiers(&tiers, longest);
        let home = simulation.leave_home();
        let mut partitions =
            rearrange(vec![home], &[0, 0, 0, 1, 1, 1, 1][..6 + usize::from(desk)], 2, &mut Vec::new(), fresh);
        partitions.iter_mut().for_each(Partition::note_wakes);
        let mut next = partitions.iter().map(Partition::earliest).fold([NEVER; MAX_TIERS], at_least);
        let (mut lent, mut cut) = (0, 0);
        while least(&next) != NEVER {
            let windows = tiers.windows(&next, None, !partitions.iter().any(Partition::is_restless));
            let mut shelf = Shelf(Vec::new());
            for partition in &mut partitions {
                partition.run_round(&tiers, &windows, &mut shelf, &mut NoMeter);
            }
            // Always the other one.
            let mut done = Vec::new();
            for mut loan in shelf.0.drain(..) {
                lent += 1;
                let other = &mut partitions[1 - loan.owner as usize];
                other.run_loan(&mut loan, &tiers, &windows, &mut RoundCount::default(), &mut NoMeter);
                cut += u32::from(!loan.keys.is_empty());
                done.push(loan);
            }
            let reports = partitions.iter().flat_map(|of| [of.earliest(), of.earliest_sent(&tiers)]);
            next = reports.fold([NEVER; MAX_TIERS], at_least);
            for (from, to) in [(0, 1), (1, 0)] {
                let mut batch = std::mem::take(&mut partitions[from].sink.outboxes[to]);
                partitions[to].deliver(&mut batch);
            }
            for loan in done {
                partitions[loan.owner as usize].take_home(loan);
            }
            let pending = partitions.iter().map(Partition::earliest).fold([NEVER; MAX_TIERS], at_least);
            assert_eq!(pending, next, "what was reported is what is pending once loans are home");
        }
        simulation
            .come_home(rearrange(partitions, &[0; 7][..6 + usize::from(desk)], 1, &mut Vec::new(), fresh).remove(0));
        assert_eq!(simulation.digest(), alone.digest());
        (lent, cut)
    }

    fn at_least(one: [Time; MAX_TIERS], other: [Time; MAX_TIERS]) -> [Time; MAX_TIERS] {
        std::array::from_fn(|tier| one[tier].min(other[tier]))
    }
}
