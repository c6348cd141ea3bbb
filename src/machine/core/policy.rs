//! The scheme in a core: its handler, and what the core asks and tells it.
//!
//! A handler without [`Interests::dependencies`](crate::persist::handler::Interests) is asked about fences
//! and cleans alone. One with them hears of every store that leaves the store buffer, of loads, and of lines
//! that come and go, in the order of events, which is the order of memory. What it writes leaves when the
//! cycle of its cause comes, which may lie ahead of the event.

use crate::engine::{Ctx, Time};
use crate::machine::coherence::CPU_LINE_BYTES;
use crate::machine::handler_levels::HandlerLevels;
use crate::machine::msg::Msg;
use crate::machine::ports::{Endpoint, Ports};
use crate::persist::handler::{
    Admission, Dependencies, Event, HandlerReport, Interests, Offer, Outbox, PathStore, Peer, SchemeMessage, SmHandler,
    WriteBack, report_of,
};
use crate::persist::journal::{Author, Notebook};
use crate::persist::vocab::{FenceKind, FenceRule, WriteBackRule};

/// The scheme's handler in a core. What fences do does not change in a run.
#[derive(Debug)]
pub(super) struct Policy {
    handler: Box<dyn SmHandler>,
    outbox: Outbox,
    ports: Ports,
    pub(super) ofence: FenceRule,
    pub(super) dfence: FenceRule,
    /// The handler follows dependencies.
    pub(super) tracks: bool,
    /// The handler holds registers of stores: see [`super::region`].
    pub(super) renames: bool,
    /// What the handler held, where a timeline is kept.
    pub(super) levels: Option<Box<HandlerLevels>>,
}

/// A store as it leaves the store buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Performed {
    pub(super) author: Author,
    /// Physical address, of bytes of one line.
    pub(super) address: u64,
    pub(super) width: usize,
    /// Its bytes, little-endian.
    pub(super) value: u64,
}

impl Policy {
    pub(super) fn new(mut handler: Box<dyn SmHandler>, ports: Ports, journal: bool) -> Policy {
        let [ofence, dfence] = [FenceKind::Ofence, FenceKind::Dfence].map(|kind| handler.fence(kind));
        let Interests { dependencies: tracks, renaming: renames, .. } = handler.interests();
        Policy { handler, outbox: Outbox::of_host(journal), ports, ofence, dfence, tracks, renames, levels: None }
    }

    /// What the handler has to tell.
    pub(super) fn report(&self) -> HandlerReport {
        report_of(&*self.handler)
    }

    /// What becomes of a line that a hart cleans.
    pub(super) fn write_back(&mut self, write_back: &WriteBack<'_>) -> WriteBackRule {
        self.handler.write_back(write_back, &mut self.outbox)
    }

    /// A store to persistent memory, or an ordering fence, may leave the store buffer.
    pub(super) fn admits(&mut self, hart: u8) -> bool {
        !self.tracks || self.handler.offer(&Offer::Issue { warp: hart }, &mut self.outbox) == Admission::Goes
    }

    /// All that a hart stored to persistent memory is durable, as far as the handler keeps it.
    pub(super) fn is_durable(&mut self, hart: u8) -> bool {
        !self.tracks || self.handler.offer(&Offer::Durable { hart }, &mut self.outbox) == Admission::Goes
    }

    /// Something is about to happen.
    pub(super) fn offer(&mut self, offer: &Offer<'_>) -> Admission {
        self.handler.offer(offer, &mut self.outbox)
    }

    /// The lines that the handler has written back.
    pub(super) fn take_cleans(&mut self) -> Vec<u64> {
        std::mem::take(self.outbox.cleans())
    }

    /// Something has happened at `time`, now or in a later cycle of this event.
    pub(super) fn tell(
        &mut self,
        event: &Event<'_>,
        time: Time,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        self.outbox.at(time);
        self.handler.event(event, &mut self.outbox);
        self.carry_out(time, journal, cx);
    }

    /// A hart has stored to persistent memory.
    pub(super) fn stored(
        &mut self,
        store: &Performed,
        time: Time,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let offset = (store.address % CPU_LINE_BYTES) as usize;
        let mut bytes = [0; 128];
        bytes[offset..offset + store.width].copy_from_slice(&store.value.to_le_bytes()[..store.width]);
        let of = PathStore {
            warp: store.author.warp as u8,
            author: store.author,
            line: store.address - offset as u64,
            mask: ((1u128 << store.width) - 1) << offset,
            bytes: &bytes,
            checkpoint: false,
        };
        self.tell(&Event::Stored(&of), time, journal, cx);
    }

    /// A peer has written.
    pub(super) fn receive(
        &mut self,
        from: Peer,
        message: Box<dyn SchemeMessage>,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        self.outbox.at(cx.now());
        self.handler.message(from, message, &mut self.outbox);
        self.carry_out(cx.now(), journal, cx);
    }

    /// What goes home with a line depends on.
    pub(super) fn dependencies(&mut self, line: u64) -> Option<Box<Dependencies>> {
        if !self.tracks {
            return None;
        }
        self.handler.event(&Event::Given { line, to: None }, &mut self.outbox);
        self.outbox.take_dependencies()
    }

    /// A line has come.
    pub(super) fn taken(&mut self, line: u64, dependencies: Option<Box<Dependencies>>) {
        if let Some(dependencies) = dependencies {
            self.handler.event(&Event::Taken { line, dependencies: &dependencies }, &mut self.outbox);
        }
    }

    fn carry_out(&mut self, time: Time, journal: Option<&mut Notebook>, cx: &mut Ctx<'_, Msg>) {
        if let Some(levels) = &mut self.levels {
            levels.note(&*self.handler, time);
        }
        self.outbox.write_notes(journal, time);
        let Endpoint::Core(index) = self.ports.owner() else { unreachable!("a core's handler is at a core") };
        let ahead = time - cx.now();
        for (to, message, delay) in self.outbox.take_timed() {
            cx.send(self.ports.to_peer(to), Msg::Scheme { from: Peer::Sm(index), message }, ahead + delay);
        }
    }
}
