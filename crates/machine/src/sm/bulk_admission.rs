//! When lines of bulk stores may enter a scheme's front-end buffer.
//!
//! ```text
//!   copies, oldest first ──its warp is admitted──> a line leaves, and its copy enters the buffer
//!        └──not yet──> held; younger copies pass ──a message of the scheme──> all look again, in their order
//! ```
//! A line enters as a store of its warp does ([`front_end`](super::front_end)). Its warp has gone on, so the
//! copy waits in its place, and copies of other warps pass: their regions may be older, and the buffer may be
//! full until those end. A reduction has leave for all its lines before the first of them leaves; those of
//! several lanes of an instruction have it together, as leave is a warp's. Before that its warp stores
//! nothing: with its first store a region has an ID.
//!
//! Source: ours; LightWSP's machine has no copy engine. Invariants: copies that wait are looked at whenever
//! the scheme's handler may have changed; a warp has reductions of one instruction under way, since formed
//! kernels have a boundary behind it, which waits for them. Not modelled: a path of its own from the engine
//! to the buffer.

use std::collections::VecDeque;

use durawarp_checkpoint::value;
use durawarp_kernel::ir::BulkKind;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{SmEvent, SmOffer};

use super::bulk_copy::{BulkCopy, CopyPart};
use super::core::IssueCore;
use super::front_end::FrontEndWaits;
use super::handler_host::SmHost;
use super::moment::Moment;

/// Copies that the front-end buffer does not take yet, and what their warps have been told; warps as bits of
/// their slots.
#[derive(Debug, Default)]
pub(super) struct HeldCopies {
    /// Oldest first.
    held: VecDeque<u16>,
    /// Warps that are noted as waiting for room.
    noted: u64,
    /// Warps whose reductions have asked for leave.
    asked: u64,
}

value!(record HeldCopies { held, noted, asked });

impl HeldCopies {
    /// A warp issues reductions, which need leave of their own.
    pub(super) fn begin(&mut self, warp: u8) {
        self.asked &= !(1 << warp);
    }

    /// The first copy of `sending` that may send its next part; those that may not are held.
    pub(super) fn first(
        &mut self,
        sending: &mut VecDeque<u16>,
        copies: &[BulkCopy],
        core: &mut IssueCore,
        front_end: &mut FrontEndWaits,
        m: &mut Moment<'_>,
    ) -> Option<u16> {
        let line_bytes = m.w.line_bytes;
        while let Some(&number) = sending.front() {
            let copy = &copies[usize::from(number)];
            // Of a copy whose map has not come nothing is known; what is filled or read enters no buffer.
            let enters = copy.map.is_none()
                && copy.bulk.kind.writes_global()
                && matches!(copy.part(copy.sent, line_bytes),
                    CopyPart::Line(part) if Medium::of(part.line) == Medium::Nvm);
            if !enters {
                return Some(number);
            }
            let (warp, index) = (copy.warp, usize::from(copy.warp));
            let waits = copy.bulk.kind == BulkKind::Reduce && core.slots[index].under_way.turn;
            // Room comes first: with its leave a reduction begins a region.
            if self.has_room(warp, m.host) && (!waits || self.has_leave(warp, (&*sending, copies), line_bytes, m.host))
            {
                core.slots[index].under_way.turn &= !waits;
                if waits && front_end.goes_on(index) {
                    core.settle(index, m.cycle, m.launches.of(&core.slots[index]));
                }
                return Some(number);
            }
            sending.pop_front();
            self.held.push_back(number);
        }
        None
    }

    /// A warp's reductions ask for their turn, once, and look from then on.
    fn has_leave(
        &mut self,
        warp: u8,
        (sending, copies): (&VecDeque<u16>, &[BulkCopy]),
        line_bytes: u32,
        host: &mut SmHost,
    ) -> bool {
        let look = SmOffer::Atomic { warp, lines: &[], asks: false };
        if self.asked >> warp & 1 == 1 && !host.allows(&look) {
            return false;
        }
        let waiting = self.held.iter().chain(sending).map(|&number| &copies[usize::from(number)]);
        let Some(lines) = lines_of(warp, waiting, line_bytes) else { return false };
        // A warp that waits for its turn no longer waits for room.
        self.entered(warp, host);
        self.asked |= 1 << warp;
        host.allows(&SmOffer::Atomic { warp, lines: &lines, asks: true })
    }

    /// The buffer takes a line of the warp; else the warp is noted as waiting.
    fn has_room(&mut self, warp: u8, host: &mut SmHost) -> bool {
        let room = host.allows(&SmOffer::Issue { warp });
        if !room && self.noted >> warp & 1 == 0 {
            self.noted |= 1 << warp;
            host.tell(&SmEvent::AwaitsIssue { warp, waits: true });
        }
        room
    }

    /// A line of the warp has entered.
    pub(super) fn entered(&mut self, warp: u8, host: &mut SmHost) {
        if self.noted >> warp & 1 == 1 {
            self.noted &= !(1 << warp);
            host.tell(&SmEvent::AwaitsIssue { warp, waits: false });
        }
    }

    /// What is held may go before what is younger.
    pub(super) fn look_again(&mut self, sending: &mut VecDeque<u16>) {
        while let Some(number) = self.held.pop_back() {
            sending.push_front(number);
        }
    }
}

/// The lines of persistent memory of a warp's reductions, each once; none while a map is to come.
fn lines_of<'c>(warp: u8, copies: impl Iterator<Item = &'c BulkCopy>, line_bytes: u32) -> Option<Vec<u64>> {
    let mut lines = Vec::new();
    for copy in copies.filter(|copy| copy.warp == warp && copy.bulk.kind == BulkKind::Reduce) {
        if copy.map.is_some() {
            return None;
        }
        let mut at = 0;
        while at < copy.operands.bytes {
            at += match copy.part(at, line_bytes) {
                CopyPart::Line(part) => {
                    lines.extend((Medium::of(part.line) == Medium::Nvm).then_some(part.line));
                    part.bytes
                }
                CopyPart::Absent(bytes) => bytes,
            };
        }
    }
    lines.sort_unstable();
    lines.dedup();
    Some(lines)
}
