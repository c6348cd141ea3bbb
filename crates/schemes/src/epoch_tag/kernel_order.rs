//! Order across SMs at persist barriers of a kernel, when nobody waits for them: each SM says when all that
//! it stored before a barrier is where its L1's lines go, durable or in the L2, and learns when all have said
//! so. The start of a launch is such a barrier, too. It orders behind it what the launch stores, and before
//! it what launches stored that are over, which has arrived by then; those in flight have no order.
//!
//! ```text
//!   SM: barrier k opens ── all before it arrived ──Done(k)──> hub ── all SMs have said so ──Go(k)──> SMs: what comes
//!                                                                                              behind k may leave
//! ```
//! Source: Gope et al. section 6.1, alternative implementation: order without a wait. That a component
//! gathers what SMs say is ours: the paper does not tell how caches of several CUs agree. Invariants:
//! barriers are numbered from 1, in the same order at every SM; nothing behind barrier k leaves an L1 before
//! every SM's stores before it have arrived.

use std::collections::BTreeMap;

use durawarp_checkpoint::{state, value};
use durawarp_persist::{LaunchSet, Outbox, Peer};

use super::message::TagMessage;

/// An SM's view of the kernel's barriers.
#[derive(Debug, Clone, Default)]
pub(super) struct KernelOrder {
    /// Of each barrier: the number of the SM's last store before it that may not have arrived.
    last: Vec<u64>,
    /// Of each launch, by its place: from which store on it is behind which barrier. Barriers are counted for
    /// all launches, and a launch is behind those at which it, or a part of it, began.
    launches: BTreeMap<u8, Vec<(u64, usize)>>,
    /// Barriers that the hub was told of.
    done: usize,
    /// Barriers that all SMs are done with.
    open: usize,
}

value!(record KernelOrder { last, launches, done, open });

impl KernelOrder {
    /// A barrier of the kernel opens at this SM, behind its store of this number. Such a kernel runs alone.
    #[inline]
    pub(super) fn barrier(&mut self, number: u64) {
        self.last.push(number);
        self.launches.entry(0).or_insert_with(|| vec![(0, 0)]).push((number, self.last.len()));
    }

    /// The first launch starts: nothing is before it.
    pub(super) fn first_launch(&mut self, launch: u8) {
        self.launches.insert(launch, vec![(0, 0)]);
    }

    /// A launch starts, or a part of one that runs `again`, behind the SM's store of this number. What comes
    /// before has arrived: it is of launches that are over. The number of that barrier.
    pub(super) fn launch(&mut self, launch: u8, number: u64, again: bool) -> usize {
        self.last.push(0);
        let own = self.launches.entry(launch).or_default();
        if !again {
            own.clear();
        }
        own.push((number, self.last.len()));
        self.last.len()
    }

    /// The barriers that stores of these launches are behind.
    pub(super) fn epochs(&self, launches: LaunchSet) -> Vec<u64> {
        let of = |place| self.launches.get(&place).into_iter().flatten();
        let mut epochs: Vec<u64> = launches.places().flat_map(of).map(|&(_, epoch)| epoch as u64).collect();
        epochs.sort_unstable();
        epochs
    }

    /// How many barriers a store of a launch is behind.
    #[inline]
    pub(super) fn epoch_of(&self, launch: u8, number: u64) -> usize {
        let Some(own) = self.launches.get(&launch) else { return 0 };
        own.partition_point(|&(last, _)| last < number).checked_sub(1).map_or(0, |at| own[at].1)
    }

    /// Stores of the launch are behind a later barrier than this.
    pub(super) fn goes_on(&self, launch: u8, epoch: usize) -> bool {
        self.launches.get(&launch).and_then(|own| own.last()).is_some_and(|&(_, last)| last > epoch)
    }

    /// A store behind so many barriers may leave.
    pub(super) fn may_leave(&self, epoch: usize) -> bool {
        epoch <= self.open
    }

    /// Every store of the SM up to this number has arrived.
    pub(super) fn arrived(&mut self, number: u64, outbox: &mut Outbox) {
        while self.last.get(self.done).is_some_and(|&last| last <= number) {
            self.done += 1;
            outbox.send(Peer::Hub, TagMessage::Done(self.done as u64));
        }
    }

    /// The hub says that all SMs are done with a barrier.
    pub(super) fn go(&mut self, barrier: u64) {
        self.open = self.open.max(barrier as usize);
    }
}

/// The hub: gathers what SMs say.
#[derive(Debug)]
pub(super) struct Gathering {
    sms: u16,
    /// SMs that are done with a barrier that has not opened.
    done: BTreeMap<u64, u16>,
    /// The last barrier that opened.
    opened: u64,
}

state!(Gathering { saved: done, opened; kept: sms });

impl Gathering {
    /// One for so many SMs.
    pub(super) fn new(sms: u16) -> Self {
        Gathering { sms, done: BTreeMap::new(), opened: 0 }
    }

    /// An SM is done with a barrier.
    pub(super) fn done(&mut self, barrier: u64, outbox: &mut Outbox) {
        let done = self.done.entry(barrier).or_default();
        *done += 1;
        if *done == self.sms {
            self.done.remove(&barrier);
            (0..self.sms).for_each(|sm| outbox.send(Peer::Sm(sm), TagMessage::Go(barrier)));
            self.opened = self.opened.max(barrier);
        }
    }

    /// Every word of its state, for digests.
    pub(super) fn state(&self, take: &mut dyn FnMut(u64)) {
        take(self.opened);
        for (&barrier, &sms) in &self.done {
            take(barrier);
            take(u64::from(sms));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_persist::opened;

    fn taken(outbox: &mut Outbox) -> Vec<(Peer, TagMessage)> {
        outbox.take().into_iter().map(|(to, message)| (to, opened(message))).collect()
    }

    #[test]
    fn what_is_behind_a_barrier_leaves_when_every_sm_is_done_with_what_was_before() {
        let (mut hub, outbox) = (Gathering::new(2), &mut Outbox::default());
        let mut sms = [KernelOrder::default(), KernelOrder::default()];
        sms[0].barrier(3);
        sms[1].barrier(0);
        assert_eq!([3, 4].map(|number| sms[0].epoch_of(0, number)), [0, 1]);
        // The second SM stored nothing; the first is done only with its third store.
        sms[1].arrived(0, outbox);
        sms[0].arrived(2, outbox);
        let deliver = |hub: &mut Gathering, sms: &mut [KernelOrder; 2], outbox: &mut Outbox| {
            for (_, message) in taken(outbox) {
                let TagMessage::Done(barrier) = message else { panic!("{message:?}") };
                hub.done(barrier, outbox);
            }
            for message in taken(outbox) {
                let (Peer::Sm(sm), TagMessage::Go(barrier)) = message else { panic!("{message:?}") };
                sms[usize::from(sm)].go(barrier);
            }
        };
        deliver(&mut hub, &mut sms, outbox);
        assert!(sms.iter().all(|sm| sm.may_leave(0) && !sm.may_leave(1)));
        sms[0].arrived(3, outbox);
        deliver(&mut hub, &mut sms, outbox);
        assert!(sms.iter().all(|sm| sm.may_leave(1) && !sm.may_leave(2)));
    }

    #[test]
    fn the_hub_holds_barriers_that_some_are_done_with() {
        let (mut hub, outbox) = (Gathering::new(3), &mut Outbox::default());
        let state = |hub: &Gathering| {
            let mut words = Vec::new();
            hub.state(&mut |word| words.push(word));
            words
        };
        // SM 0 is done with two barriers, SM 1 with one.
        [1, 2, 1].into_iter().for_each(|barrier| hub.done(barrier, outbox));
        assert!(outbox.is_empty());
        assert_eq!(state(&hub), [0, 1, 2, 2, 1]);
        hub.done(1, outbox);
        assert_eq!(state(&hub), [1, 2, 1]);
        assert_eq!(taken(outbox), [0, 1, 2].map(|sm| (Peer::Sm(sm), TagMessage::Go(1))));
    }

    #[test]
    fn an_sm_tells_of_every_barrier_whose_stores_have_arrived_once() {
        let (mut sm, outbox) = (KernelOrder::default(), &mut Outbox::default());
        [2, 2, 5].into_iter().for_each(|number| sm.barrier(number));
        assert_eq!([2, 3, 5, 6].map(|number| sm.epoch_of(0, number)), [0, 2, 2, 3]);
        let mut told = |sm: &mut KernelOrder, number| {
            sm.arrived(number, outbox);
            taken(outbox)
        };
        assert_eq!(told(&mut sm, 1), []);
        assert_eq!(told(&mut sm, 4), [1, 2].map(|barrier| (Peer::Hub, TagMessage::Done(barrier))));
        assert_eq!(told(&mut sm, 4), []);
        assert_eq!(told(&mut sm, 5), [(Peer::Hub, TagMessage::Done(3))]);
        // An older message takes nothing back.
        sm.go(2);
        sm.go(1);
        assert_eq!([0, 2, 3].map(|epoch| sm.may_leave(epoch)), [true, true, false]);
    }
}
