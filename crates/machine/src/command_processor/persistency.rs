//! Persistency at the command processor: the scheme's handler at kernel boundaries, the write-back of the L2
//! there, and the journal of kernels.
//!
//! Invariants: a kernel ends for the host when every slice has acknowledged the write-back that the handler
//! asked for; one write-back is under way at a time, and one begins behind the last store of the kernel that
//! it is for. Not modelled: the cost of the handler's own decision.

use std::collections::VecDeque;

use crate::msg::Msg;
use crate::ports::Ports;
use durawarp_base::stats::Histogram;
use durawarp_checkpoint::{state, value};
use durawarp_engine::{Ctx, Time};
use durawarp_persist::handler::{HostHandler, KernelFacts, Outbox};
use durawarp_persist::journal::{Author, FactKind, Notebook};
use durawarp_persist::vocab::Boundary;

/// The scheme's handler, its messages and the journal.
#[derive(Debug)]
pub(super) struct HostPersistency {
    handler: Box<dyn HostHandler>,
    outbox: Outbox,
    journal: Option<Box<Notebook>>,
    /// How long kernels waited for the write-back of the L2, in ticks.
    boundaries: Histogram,
    /// Slices that have not acknowledged the write-back under way; 0 where none is.
    left: u32,
    /// Launches that wait for a write-back each, the one under way first.
    ended: VecDeque<EndedLaunch>,
}

state!(HostPersistency { parts: handler, outbox; saved: boundaries, left, ended; kept: journal });

/// A launch whose CTAs have ended and whose results the slices write back, or will.
#[derive(Debug)]
struct EndedLaunch {
    place: u8,
    /// When its last CTA had ended, and the launches before it in its stream were over.
    since: Time,
}

value!(record EndedLaunch { place, since });

impl HostPersistency {
    /// No kernel yet, no journal.
    pub(super) fn new(handler: Box<dyn HostHandler>) -> Self {
        let (outbox, boundaries) = (Outbox::default(), Histogram::default());
        HostPersistency { handler, outbox, journal: None, boundaries, left: 0, ended: VecDeque::new() }
    }

    /// Keeps a journal from now on.
    pub(super) fn keep_journal(&mut self) {
        self.journal = Some(Box::default());
    }

    /// The journal.
    pub(super) fn journal(&self) -> Option<&Notebook> {
        self.journal.as_deref()
    }

    /// How long kernels waited for the write-back of the L2, in ticks.
    pub(super) fn boundaries(&self) -> &Histogram {
        &self.boundaries
    }

    /// A kernel starts.
    pub(super) fn kernel_start(&mut self, facts: &KernelFacts, ports: &Ports, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        self.handler.kernel_starts(facts, &mut self.outbox);
        self.send(ports, cx);
    }

    /// All CTAs of a launch have ended: whether the launch has. If not, it waits for a write-back.
    pub(super) fn kernel_end(&mut self, place: u8, ports: &Ports, cx: &mut Ctx<'_, Msg>) -> bool {
        self.outbox.at(cx.now());
        let boundary = self.handler.boundary(place, &mut self.outbox);
        self.send(ports, cx);
        let waits = boundary == Boundary::WriteBackL2;
        if waits {
            self.ended.push_back(EndedLaunch { place, since: cx.now() });
        }
        !waits
    }

    /// Slices that have not acknowledged the write-back under way; none where none is.
    pub(super) fn writing_back(&self) -> Option<u32> {
        (self.left > 0).then_some(self.left)
    }

    /// Begins the next write-back, in which `slices` slices take part, where a launch waits for one and none
    /// is under way.
    pub(super) fn begins_write_back(&mut self, slices: u32) -> bool {
        let begins = self.left == 0 && !self.ended.is_empty();
        if begins {
            self.left = slices;
        }
        begins
    }

    /// A slice has acknowledged: the place of the launch that has ended with that, if one has.
    pub(super) fn written_back(&mut self, now: Time) -> Option<u8> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let EndedLaunch { place, since } = self.ended.pop_front()?;
        self.boundaries.record(now - since);
        Some(place)
    }

    /// Journals that a kernel, the `launch`th of the program, starts or ends.
    pub(super) fn note(&mut self, kind: FactKind, launch: u32, time: Time) {
        if let Some(journal) = &mut self.journal {
            journal.note(time, kind, 0, Author::Launch(launch));
        }
    }

    /// Sends the handler's messages.
    fn send(&mut self, ports: &Ports, cx: &mut Ctx<'_, Msg>) {
        for (to, message) in self.outbox.take() {
            ports.tell(to, message, 0, cx);
        }
    }
}
