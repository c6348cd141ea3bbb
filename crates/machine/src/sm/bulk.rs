//! The copy engine of an SM: bulk copies between global and shared memory, past registers and L1.
//!
//! ```text
//! cp.async.bulk ──> queue ──a line a cycle──┬─ load, prefetch: a read ──> slice ──> shared memory, its barrier
//!                                           └─ store, reduction: an entry of the LSU ──> slice ──> its group
//! ```
//! A store leaves line by line as a store of its warp would that issued then, so that schemes and journals
//! treat it as one: a fence of the warp covers the lines that have left, and `wait_group` makes that all of
//! them. Shared memory is read when the line leaves. A load's bytes are in shared memory when their line
//! comes (`bulk_shared`); its barrier counts them all at once, some cycles after the last (`bulk_table`).
//!
//! A tile whose tensor's map lies in global memory is known when the map has come (`bulk_reads`). Maps leave
//! before lines; lines keep their order.
//!
//! A request for a cluster that has not begun (`clusterlaunchcontrol.try_cancel`) takes its turn as a copy of
//! one line: it goes to the command processor, whose answer comes to shared memory as a line would.
//!
//! A tile of a tensor leaves by rows (of its box, four, or pixels), and rows that lie one behind the other by
//! lines. Bytes of elements that the tensor has not take a cycle a row and no request.
//!
//! Source: PTX ISA 9.7.9.25.5, 9.7.9.27; sizes and gaps are parameters of shared memory, after the model of
//! TMA in FlashGPU-Sim. Invariants: copies leave in the order of issue, at most one line a cycle; a warp's
//! slot and its CTA's memory stay until its copies are complete. What goes to other CTAs is in `bulk_peers`.
//! Not modelled: passes through the banks of shared memory, a bound on copies that wait, the path of its own
//! that TMA has to the crossbar (stores share the load-store unit).

use std::collections::VecDeque;

use smallvec::{SmallVec, smallvec};

use crate::msg::{CommandProcessorMsg, Line, Msg};
use durawarp_checkpoint::state;
use durawarp_engine::Ctx;
use durawarp_kernel::ir::{Bulk, BulkKind, Inst};
use durawarp_kernel::launch_control::answer;
use durawarp_kernel::memory::Medium;

use super::bulk_admission::HeldCopies;
use super::bulk_copy::{BulkCopy, CopyPart};
use super::bulk_peers::{barriers, destinations};
use super::bulk_reads::LineReads;
use super::bulk_shared::{bring, fill, send_shared};
use super::bulk_stores::{send_line, waits_for_durable};
use super::bulk_table::CopyTable;
use super::core::IssueCore;
use super::cta::CtaSlot;
use super::front_end::FrontEndWaits;
use super::launches::LaunchTable;
use super::lsu::Lsu;
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::parameters::BulkCounters;
use super::slots::{Fault, WarpSlot};
use super::traced::operands_of;

/// The copy engine.
#[derive(Debug)]
pub(super) struct CopyEngine {
    /// Copies under way.
    pub(super) copies: CopyTable,
    /// Copies of which lines have not left, oldest first.
    sending: VecDeque<u16>,
    /// Of these, copies that a scheme's front-end buffer does not take yet, which are left out there.
    held: HeldCopies,
    /// Reads of lines and of maps.
    reads: LineReads,
    /// Requests under way.
    lines: u32,
    /// Cycle from which another copy may begin.
    next_start: u32,
    /// The next line lacks room: nothing to do until a reply or a credit comes.
    blocked: bool,
}

state!(CopyEngine { saved: sending, held, reads, lines, next_start, blocked; parts: copies });

impl CopyEngine {
    /// Nothing to copy.
    pub(super) fn new(warps: u32) -> Self {
        CopyEngine {
            copies: CopyTable::new(warps),
            sending: VecDeque::new(),
            held: HeldCopies::default(),
            reads: LineReads::default(),
            lines: 0,
            next_start: 0,
            blocked: false,
        }
    }

    /// A tag is that of one of its reads.
    #[inline]
    pub(super) fn is_read(tag: u32) -> bool {
        LineReads::is_read(tag)
    }

    /// A read is one of a map.
    pub(super) fn is_map(&self, tag: u32) -> bool {
        self.reads.is_map(tag)
    }

    /// It has something to send or to complete.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.sending.is_empty() || self.copies.has_landing()
    }

    /// The first cycle after `cycle` in which it may do something by itself.
    pub(super) fn next_after(&self, cycle: u32) -> u32 {
        let sends = match self.sending.front() {
            Some(&first) if !self.blocked => {
                if !self.reads.has_maps() && self.copies.list[usize::from(first)].sent == 0 {
                    self.next_start
                } else {
                    cycle
                }
            }
            _ => u32::MAX,
        };
        self.copies.next_landing().min(sends).max(cycle + 1)
    }

    /// A warp issues the bulk copies of these lanes. True where its scheme has it wait for them.
    pub(super) fn issue(
        &mut self,
        warp: usize,
        inst: &Inst,
        bulk: Bulk,
        lanes: u64,
        (slot, cta): (&mut WarpSlot, &CtaSlot),
        m: &mut Moment<'_>,
    ) -> Result<bool, Fault> {
        let mut waits = false;
        let launch = m.launch(slot);
        let traced = slot.warp.traced_copy();
        let copies: SmallVec<[_; 2]> = match traced {
            None => slot.warp.bulk_copies(inst, bulk, launch, lanes).collect(),
            Some(copy) => smallvec![Ok((lanes.trailing_zeros(), bulk, operands_of(copy)))],
        };
        for copied in copies {
            let fault = |(lane, kind)| Box::new(slot.fault(lane, kind, launch));
            let (lane, bulk, operands) = copied.map_err(fault)?;
            let to = destinations(&operands, cta, launch, m.record);
            let at = barriers(&operands, (to.0, &to.1), cta, launch, m.record);
            let unread = operands.unread.is_some();
            m.record.bulk.count(bulk, operands.bytes, to.1.len());
            if operands.bytes == 0 && !unread {
                continue;
            }
            // Loads complete at a barrier, prefetches nowhere.
            let grouped = bulk.kind.writes_global();
            let tickets = grouped.then(|| self.copies.begin_in_groups(warp));
            let (warp, lane, pc) = (warp as u8, lane as u8, slot.warp.pc());
            let copy = BulkCopy::new((warp, lane, pc), (bulk, operands), tickets, to, at, traced);
            let number = self.copies.insert(copy);
            self.sending.push_back(number);
            if unread {
                // Its map may leave while an older copy waits.
                self.reads.begin_map(number);
                self.blocked = false;
            }
            slot.under_way.bulk += 1;
            // Whose memory it is may not be known yet.
            let persists = unread || Medium::of(operands.global) == Medium::Nvm;
            waits |= grouped && m.host.wants.stores_wait && persists;
            if grouped && m.host.wants.front_end {
                // Its region lasts until all of it has left.
                slot.under_way.copying += 1;
                if bulk.kind == BulkKind::Reduce {
                    slot.under_way.turn = true;
                    self.held.begin(warp);
                }
            }
        }
        Ok(waits)
    }

    /// Sends the next line, if there is room for it. A warp whose copy has read its shared memory, or is
    /// complete, may go on.
    pub(super) fn step(
        &mut self,
        core: &mut IssueCore,
        lsu: &mut Lsu,
        memory: &mut MemorySide,
        front_end: &mut FrontEndWaits,
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> Option<usize> {
        let number = match front_end.present {
            true => self.held.first(&mut self.sending, &self.copies.list, core, front_end, m)?,
            false => *self.sending.front()?,
        };
        if self.reads.has_maps() && self.send_map(core, memory, m, cx) {
            return None;
        }
        let copy = &self.copies.list[usize::from(number)];
        // What it copies is not known yet.
        if copy.map.is_some() {
            self.blocked = true;
            return None;
        }
        if copy.sent == 0 && m.cycle < self.next_start {
            return None;
        }
        let (requests, bytes) = match copy.part(copy.sent, m.w.line_bytes) {
            CopyPart::Absent(bytes) => (0, fill(&mut self.copies, number, bytes, core, m.w.index)),
            CopyPart::Line(part) if copy.bulk.kind == BulkKind::Cancel => {
                let place = core.ctas[usize::from(core.slots[usize::from(copy.warp)].cta)].launch;
                let asks = CommandProcessorMsg::Cancel { sm: m.w.index, place, copy: number };
                m.w.ports.to_command_processor().send(asks, 0, cx);
                (1, part.bytes)
            }
            CopyPart::Line(part) if copy.bulk.kind == BulkKind::Send => {
                send_shared(&mut self.copies, number, part, core, m);
                (0, part.bytes)
            }
            CopyPart::Line(part) => {
                if copy.tickets.is_some() && waits_for_durable(copy, part, core, m) {
                    self.blocked = true;
                    return None;
                }
                // A store's line may become several requests, for a scheme that writes it back at once.
                let requests = if self.lines >= m.p.shared.bulk_lines {
                    None
                } else if copy.bulk.kind.writes_global() {
                    let sent = send_line(number, copy, part, core, lsu, memory, front_end, m);
                    if sent.is_some() {
                        self.held.entered(copy.warp, m.host);
                    }
                    sent
                } else {
                    self.reads.send((number, copy), part, part.at, core, memory, m, cx).then_some(1)
                };
                self.blocked = requests.is_none();
                (requests?, part.bytes)
            }
        };
        self.lines += requests;
        // It has left: the gap to the next copy counts from the first line.
        let copy = &mut self.copies.list[usize::from(number)];
        if copy.sent == 0 {
            self.next_start = m.cycle + m.p.shared.bulk_issue_cycles;
        }
        copy.left += requests;
        copy.sent += bytes;
        if copy.sent < copy.operands.bytes {
            return None;
        }
        self.sending.pop_front();
        let (warp, tickets, done) = (usize::from(copy.warp), copy.tickets, copy.left == 0);
        if let Some([reads, _]) = tickets {
            self.copies.end_reads(warp, reads);
            // Its region may end, as its lines are all in the buffer, or on their way as atomics.
            let slot = &mut core.slots[warp];
            if front_end.present && front_end.copied(warp, slot, m.host) {
                core.settle(warp, m.cycle, m.launches.of(&core.slots[warp]));
            }
        }
        if done {
            self.copies.end(number, m.cycle, core, m.p.shared.bulk_arrive_cycles);
        }
        tickets.map(|_| warp)
    }

    /// A scheme's front-end buffer may take what it has not taken.
    pub(super) fn look_again(&mut self) {
        self.held.look_again(&mut self.sending);
        self.blocked = false;
    }

    /// Sends a line of the oldest map that has not left; false where there is no room for it.
    #[cold]
    fn send_map(
        &mut self,
        core: &IssueCore,
        memory: &mut MemorySide,
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let room = self.lines < m.p.shared.bulk_lines;
        if !room || !self.reads.send_map(&mut self.copies.list, core, memory, m, cx) {
            return false;
        }
        (self.lines, self.blocked) = (self.lines + 1, false);
        true
    }

    /// A line of a map that it has read is here: the copy is known when all of it is.
    ///
    /// # Errors
    /// What is wrong with the map, or with the copy, as a fault of the copy's instruction.
    pub(super) fn map_came(
        &mut self,
        tag: u32,
        line: &Line,
        line_bytes: u32,
        core: &IssueCore,
        launches: &LaunchTable,
        counters: &mut BulkCounters,
    ) -> Result<(), Fault> {
        self.lines -= 1;
        self.blocked = false;
        let whole = self.reads.end_of_map(tag, line, line_bytes, &mut self.copies.list);
        let Some(copy) = whole.map(|number| &mut self.copies.list[usize::from(number)]) else { return Ok(()) };
        copy.know(&core.slots, launches)?;
        // Others of its warp may have waited for it.
        self.held.look_again(&mut self.sending);
        counters.count_bytes(copy.operands.bytes, copy.peers.len());
        Ok(())
    }

    /// A line that it has read is here: the copy that it belongs to.
    pub(super) fn line_came(&mut self, tag: u32, line: &Line, line_bytes: u32, core: &mut IssueCore, sm: u16) -> u16 {
        let (number, at) = self.reads.end(tag);
        let copy = &self.copies.list[usize::from(number)];
        if copy.bulk.kind == BulkKind::Load {
            let CopyPart::Line(part) = copy.part(at, line_bytes) else {
                unreachable!("a line came for elements that are not there");
            };
            let found = &line.bytes[part.offset as usize..][..part.bytes as usize];
            bring(&mut self.copies, number, at, found, core, sm);
        }
        number
    }

    /// The command processor has answered a request for a cluster.
    pub(super) fn grid_answered(
        &mut self,
        number: u16,
        first: Option<u64>,
        core: &mut IssueCore,
        launches: &LaunchTable,
        sm: u16,
    ) {
        let slot = &core.slots[usize::from(self.copies.list[usize::from(number)].warp)];
        let bytes = answer(first, launches.of(slot));
        bring(&mut self.copies, number, 0, &bytes, core, sm);
    }

    /// A request of a copy is answered: a warp that may go on.
    pub(super) fn answered(&mut self, number: u16, cycle: u32, core: &mut IssueCore, arrive: u32) -> Option<usize> {
        self.lines -= 1;
        self.copies.answered(number, cycle, core, arrive)
    }
}
