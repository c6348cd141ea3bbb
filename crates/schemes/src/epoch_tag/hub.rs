//! The hub of tags: gathers what SMs say of barriers of the kernel, and what slices say of lines that come
//! before others.
//!
//! Source: that a component gathers is ours; the paper has one L2 and does not tell how its caches agree.
//! Invariant: the slices get each open question once, also when a second slice asks it.

use std::collections::BTreeMap;

use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::{Handler, HandlerPlace, Outbox, Peer, SchemeMessage, opened};

use super::kernel_order::Gathering;
use super::message::{Earlier, TagMessage};

/// The hub.
#[derive(Debug)]
pub(super) struct EpochTagHub {
    barriers: Gathering,
    slices: u16,
    /// What slices were asked to write, and how many of them have.
    asked: BTreeMap<Earlier, u16>,
}

state!(EpochTagHub { parts: barriers; saved: asked; kept: slices });

impl EpochTagHub {
    /// The hub of a machine.
    pub(super) fn new(place: HandlerPlace) -> Self {
        EpochTagHub { barriers: Gathering::new(place.sms), slices: place.slices, asked: BTreeMap::new() }
    }

    fn tell_slices(&self, message: TagMessage, outbox: &mut Outbox) {
        (0..self.slices).for_each(|slice| outbox.send(Peer::Slice(slice), message.clone()));
    }
}

impl Handler for EpochTagHub {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            TagMessage::Done(barrier) => self.barriers.done(barrier, outbox),
            TagMessage::Ask(earlier) => {
                if self.asked.insert(earlier, 0).is_none() {
                    self.tell_slices(TagMessage::Want(earlier), outbox);
                }
            }
            TagMessage::Drained(earlier) => {
                let drained = self.asked.entry(earlier).or_default();
                *drained += 1;
                if *drained == self.slices {
                    self.asked.remove(&earlier);
                    self.tell_slices(TagMessage::Open(earlier), outbox);
                }
            }
            message => panic!("a hub received {message:?} of {from:?}"),
        }
    }

    fn state(&self, take: &mut dyn FnMut(u64)) {
        self.barriers.state(take);
        take(self.asked.len() as u64);
        self.asked.values().for_each(|&slices| take(u64::from(slices)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hear_that_all_have_written_what_one_asks_for() {
        let place = HandlerPlace { sms: 1, slices: 2, ..HandlerPlace::default() };
        let (mut hub, outbox) = (EpochTagHub::new(place), &mut Outbox::default());
        let mut tell = |from, message: TagMessage| {
            hub.message(Peer::Slice(from), Box::new(message), outbox);
            outbox.take().into_iter().map(|(to, message)| (to, opened(message))).collect::<Vec<(Peer, TagMessage)>>()
        };
        let earlier = Earlier::Kernel(2);
        let to_both = |message: TagMessage| vec![(Peer::Slice(0), message.clone()), (Peer::Slice(1), message)];
        assert_eq!(tell(0, TagMessage::Ask(earlier)), to_both(TagMessage::Want(earlier)));
        assert_eq!(tell(1, TagMessage::Drained(earlier)), []);
        assert_eq!(tell(0, TagMessage::Drained(earlier)), to_both(TagMessage::Open(earlier)));
        assert_eq!(tell(1, TagMessage::Ask(earlier)), to_both(TagMessage::Want(earlier)), "a new question");
        let mut state = Vec::new();
        hub.state(&mut |word| state.push(word));
        assert_eq!(state, [0, 1, 0]);
    }
}
