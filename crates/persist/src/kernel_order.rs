//! Order across SMs at persist barriers of a kernel, when nobody waits for them: each SM says when all that
//! it stored before a barrier is durable, and learns when all have said so.
//!
//! ```text
//!   SM: barrier k opens ── all before it durable ──Done(k)──> hub ── all SMs have said so ──Go(k)──> SMs: what comes
//!                                                                                              behind k may leave
//! ```
//! Source: Gope et al. section 6.1, alternative implementation: order without a wait. That a component
//! gathers what SMs say is ours: the paper does not tell how caches of several CUs agree. Invariants:
//! barriers are numbered from 1, in the same order at every SM; nothing behind barrier k leaves before every
//! SM's stores before it are durable.

use std::collections::BTreeMap;

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable, state, state_methods, value};

use super::handler::{Handler, Outbox, Peer, SchemeMessage, opened};

/// What SMs and hub tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GatherMessage {
    /// SM to hub: all that it stored before this barrier is durable.
    Done(u64),
    /// Hub to SMs: so it is everywhere.
    Go(u64),
}

value!(choice GatherMessage { Done(kernel), Go(kernel) });

/// Reads a message between SMs and [`Gathering`], for schemes that have such.
///
/// # Errors
/// The bytes are of something else.
pub fn read_gathered(from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
    GatherMessage::read(from).map(|message| Box::new(message) as _)
}

impl SchemeMessage for GatherMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        match self {
            GatherMessage::Done(barrier) => *barrier,
            GatherMessage::Go(barrier) => 1 << 56 ^ barrier,
        }
    }
}

/// An SM's view of the kernel's barriers.
#[derive(Debug, Clone, Default)]
pub struct KernelOrder {
    /// Of each barrier: the number of the SM's last store before it.
    last: Vec<u64>,
    /// Barriers that the hub was told of.
    done: usize,
    /// Barriers that all SMs are done with.
    open: usize,
}

value!(record KernelOrder { last, done, open });

impl KernelOrder {
    /// A barrier opens at this SM, behind its store of this number.
    #[inline]
    pub fn barrier(&mut self, number: u64) {
        self.last.push(number);
    }

    /// Barriers so far.
    pub fn barriers(&self) -> usize {
        self.last.len()
    }

    /// How many barriers a store is behind.
    #[inline]
    pub fn epoch_of(&self, number: u64) -> usize {
        self.last.partition_point(|&last| last < number)
    }

    /// A store behind so many barriers may leave.
    pub fn may_leave(&self, epoch: usize) -> bool {
        epoch <= self.open
    }

    /// Every store of the SM up to this number is durable.
    pub fn durable(&mut self, number: u64, outbox: &mut Outbox) {
        while self.last.get(self.done).is_some_and(|&last| last <= number) {
            self.done += 1;
            outbox.send(Peer::Hub, GatherMessage::Done(self.done as u64));
        }
    }

    /// The hub has written.
    ///
    /// # Panics
    /// When the message is not the hub's.
    pub fn message(&mut self, message: Box<dyn SchemeMessage>) {
        match opened(message) {
            GatherMessage::Go(barrier) => self.open = self.open.max(barrier as usize),
            word @ GatherMessage::Done(_) => panic!("an SM received {word:?}"),
        }
    }
}

/// The hub: gathers what SMs say.
#[derive(Debug)]
pub struct Gathering {
    sms: u16,
    /// SMs that are done with a barrier that has not opened.
    done: BTreeMap<u64, u16>,
    /// The last barrier that opened.
    opened: u64,
}

state!(Gathering { saved: done, opened; kept: sms });

impl Gathering {
    /// One for so many SMs.
    pub fn new(sms: u16) -> Self {
        Gathering { sms, done: BTreeMap::new(), opened: 0 }
    }
}

impl Handler for Gathering {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let GatherMessage::Done(barrier) = opened(message) else {
            panic!("a hub received a message of {from:?} to SMs")
        };
        let done = self.done.entry(barrier).or_default();
        *done += 1;
        if *done == self.sms {
            self.done.remove(&barrier);
            (0..self.sms).for_each(|sm| outbox.send(Peer::Sm(sm), GatherMessage::Go(barrier)));
            self.opened = self.opened.max(barrier);
        }
    }

    fn state(&self, take: &mut dyn FnMut(u64)) {
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

    #[test]
    fn what_is_behind_a_barrier_leaves_when_every_sm_is_done_with_what_was_before() {
        let (mut hub, outbox) = (Gathering::new(2), &mut Outbox::default());
        let mut sms = [KernelOrder::default(), KernelOrder::default()];
        sms[0].barrier(3);
        sms[1].barrier(0);
        assert_eq!([3, 4].map(|number| sms[0].epoch_of(number)), [0, 1]);
        // The second SM stored nothing; the first is done only with its third store.
        sms[1].durable(0, outbox);
        sms[0].durable(2, outbox);
        let deliver = |hub: &mut Gathering, sms: &mut [KernelOrder; 2], outbox: &mut Outbox| {
            for (_, message) in outbox.take() {
                hub.message(Peer::Sm(0), message, outbox);
            }
            for (to, message) in outbox.take() {
                let Peer::Sm(sm) = to else { panic!("{to:?}") };
                sms[usize::from(sm)].message(message);
            }
        };
        deliver(&mut hub, &mut sms, outbox);
        assert!(sms.iter().all(|sm| sm.may_leave(0) && !sm.may_leave(1)));
        sms[0].durable(3, outbox);
        deliver(&mut hub, &mut sms, outbox);
        assert!(sms.iter().all(|sm| sm.may_leave(1) && !sm.may_leave(2)));
    }

    #[test]
    fn messages_and_what_the_hub_holds_have_numbers_of_their_own() {
        assert_eq!([GatherMessage::Done(3), GatherMessage::Go(3)].map(|word| word.digest()), [3, 1 << 56 | 3]);
        let (mut hub, outbox) = (Gathering::new(3), &mut Outbox::default());
        let state = |hub: &Gathering| {
            let mut words = Vec::new();
            hub.state(&mut |word| words.push(word));
            words
        };
        // SM 0 is done with two barriers, SM 1 with one.
        for barrier in [1, 2, 1] {
            hub.message(Peer::Sm(0), Box::new(GatherMessage::Done(barrier)), outbox);
        }
        assert!(outbox.is_empty());
        assert_eq!(state(&hub), [0, 1, 2, 2, 1]);
        hub.message(Peer::Sm(2), Box::new(GatherMessage::Done(1)), outbox);
        assert_eq!(state(&hub), [1, 2, 1]);
        let sent: Vec<(Peer, GatherMessage)> =
            outbox.take().into_iter().map(|(to, message)| (to, opened(message))).collect();
        assert_eq!(sent, [0, 1, 2].map(|sm| (Peer::Sm(sm), GatherMessage::Go(1))));
    }

    #[test]
    fn an_sm_tells_of_every_barrier_whose_stores_are_durable_once() {
        let (mut sm, outbox) = (KernelOrder::default(), &mut Outbox::default());
        [2, 2, 5].into_iter().for_each(|number| sm.barrier(number));
        assert_eq!((sm.barriers(), [2, 3, 5, 6].map(|number| sm.epoch_of(number))), (3, [0, 2, 2, 3]));
        let mut told = |sm: &mut KernelOrder, number| {
            sm.durable(number, outbox);
            outbox.take().into_iter().map(|(to, message)| (to, opened(message))).collect::<Vec<(Peer, GatherMessage)>>()
        };
        assert_eq!(told(&mut sm, 1), []);
        assert_eq!(told(&mut sm, 4), [1, 2].map(|barrier| (Peer::Hub, GatherMessage::Done(barrier))));
        assert_eq!(told(&mut sm, 4), []);
        assert_eq!(told(&mut sm, 5), [(Peer::Hub, GatherMessage::Done(3))]);
        // An older message takes nothing back.
        sm.message(Box::new(GatherMessage::Go(2)));
        sm.message(Box::new(GatherMessage::Go(1)));
        assert_eq!([0, 2, 3].map(|epoch| sm.may_leave(epoch)), [true, true, false]);
    }

    #[test]
    #[should_panic(expected = "an SM received Done(1)")]
    fn an_sm_is_told_of_no_other_sm() {
        KernelOrder::default().message(Box::new(GatherMessage::Done(1)));
    }
}
