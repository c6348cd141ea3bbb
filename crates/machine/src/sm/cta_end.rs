//! The end of a CTA in an SM: what its last warp leaves behind is performed, or durable, and the command
//! processor hears of it.
//!
//! ```text
//!   last warp retires ─> what the L1 has combined ─> write-back-all of each slice ─> CtaDone
//!                        (combining L1)              (boundary of the scheme)
//! ```
//! A step that does not apply takes no time. Invariant: a CTA's slot is free from its report on, and not
//! before. What a warp must have done to retire is in `walk.rs`.

use crate::msg::{CommandProcessorMsg, Msg};
use durawarp_engine::Ctx;
use durawarp_persist::vocab::Boundary;

use super::core::IssueCore;
use super::cta::CtaSlot;
use super::dependents::Dependents;
use super::handler_host::SmHost;
use super::memory_side::MemorySide;
use super::record::Record;
use super::totals::count_for_resident;
use super::wiring::SmWiring;

/// The parts of an SM that the end of a CTA acts on.
#[derive(Debug)]
pub(super) struct CtaEnd<'a> {
    pub(super) core: &'a mut IssueCore,
    pub(super) memory: &'a mut MemorySide,
    pub(super) dependents: &'a mut Dependents,
    pub(super) host: &'a mut SmHost,
    pub(super) record: &'a mut Record,
    pub(super) w: &'a SmWiring,
}

impl CtaEnd<'_> {
    /// A CTA's last warp has retired: ends the CTA, once the stores are durable that its scheme names.
    pub(super) fn end(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.core.ctas[cta].boundary = self.host.handler.boundary(&mut self.host.outbox);
        if !self.release(cta) {
            self.leave(cta, cx);
        }
    }

    /// The CTA must wait for what combines in the L1 if its scheme asks for more, or if no other CTA of its
    /// launch is there to see to it later. True when it waits.
    fn release(&mut self, cta: usize) -> bool {
        let launch = self.core.ctas[cta].launch;
        let elsewhere = |slot: &CtaSlot| slot.left == 0 || slot.launch != launch;
        let last = || self.core.ctas.iter().enumerate().all(|(other, slot)| other == cta || elsewhere(slot));
        if !self.memory.l1.combines() || self.core.ctas[cta].boundary == Boundary::None && !last() {
            return false;
        }
        let Some(last) = self.memory.release_all() else { return false };
        self.core.ctas[cta].releasing = last;
        self.memory.leaving.releases += 1;
        true
    }

    /// CTAs leave whose releases are complete.
    pub(super) fn released(&mut self, cx: &mut Ctx<'_, Msg>) {
        for cta in 0..self.core.ctas.len() {
            if self.memory.leaving.is_complete(self.core.ctas[cta].releasing) {
                self.core.ctas[cta].releasing = 0;
                self.memory.leaving.releases -= 1;
                self.leave(cta, cx);
            }
        }
    }

    /// Ends a CTA all of whose stores are performed.
    fn leave(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].boundary == Boundary::WriteBackL2 {
            let slices = self.w.ports.map().slices();
            self.core.ctas[cta].flushing = slices;
            self.core.ctas[cta].ended = cx.now();
            for slice in 0..slices {
                self.memory.port.write_back_slice(self.w.ports.map().some_line_of(slice), cta, cx);
            }
        } else {
            self.report(cta, cx);
        }
    }

    /// A slice has written back everything for a CTA that ends.
    pub(super) fn slice_written_back(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].slice_written_back() {
            self.record.stalls.boundaries.record(cx.now() - self.core.ctas[cta].ended);
            self.report(cta, cx);
        }
    }

    fn report(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.record.cta_ends(cta, &self.core.ctas[cta]);
        let CtaSlot { cta, launch: place, .. } = self.core.ctas[cta];
        let let_go = self.dependents.end(place, cta);
        let done = CommandProcessorMsg::CtaDone { sm: self.w.index, place, let_go };
        self.w.ports.to_command_processor().send(done, 0, cx);
        count_for_resident(self.core, self.memory, self.record);
    }
}

/// The parts of an SM that the end of a CTA acts on.
macro_rules! cta_end {
    ($sm:ident) => {
        CtaEnd {
            core: &mut $sm.core,
            memory: &mut $sm.memory,
            dependents: &mut $sm.dependents,
            host: &mut $sm.host,
            record: &mut $sm.record,
            w: &$sm.w,
        }
    };
}

pub(super) use cta_end;
