//! Persistency at the command processor: the scheme's handler at kernel boundaries, the write-back of the L2
//! there, and the journal of kernels.
//!
//! Invariant: a kernel ends for the host when every slice has acknowledged the write-back that the handler
//! asked for. Not modelled: the cost of the handler's own decision.

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
}

state!(HostPersistency { parts: handler, outbox; saved: boundaries; kept: journal });

/// Slices write back what a kernel that has ended must leave durable.
#[derive(Debug)]
pub(super) struct BoundaryWriteBack {
    /// Slices that have not acknowledged.
    pub(super) left: u32,
    /// When the kernel's last CTA ended.
    pub(super) since: Time,
    /// The place of its launch.
    pub(super) place: u8,
}

value!(record BoundaryWriteBack { left, since, place });

impl HostPersistency {
    /// No kernel yet, no journal.
    pub(super) fn new(handler: Box<dyn HostHandler>) -> Self {
        HostPersistency { handler, outbox: Outbox::default(), journal: None, boundaries: Histogram::default() }
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

    /// The last CTA of a kernel has ended: what happens before the kernel has.
    pub(super) fn kernel_end(&mut self, ports: &Ports, cx: &mut Ctx<'_, Msg>) -> Boundary {
        self.outbox.at(cx.now());
        let boundary = self.handler.boundary(&mut self.outbox);
        self.send(ports, cx);
        boundary
    }

    /// A slice has acknowledged; true with the last one.
    pub(super) fn written_back(&mut self, wait: &mut BoundaryWriteBack, now: Time) -> bool {
        wait.left -= 1;
        if wait.left == 0 {
            self.boundaries.record(now - wait.since);
        }
        wait.left == 0
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
