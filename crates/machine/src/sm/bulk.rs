//! The copy engine of an SM: bulk copies between global and shared memory, past registers and L1.
//!
//! ```text
//! cp.async.bulk ──> queue ──a line a cycle──┬─ load, prefetch: a read ──> slice ──> shared memory, its barrier
//!                                           └─ store, reduction: an entry of the LSU ──> slice ──> its group
//! ```
//! A store leaves line by line as a store of its warp would that issued then, so that schemes and journals
//! treat it as one: a fence of the warp covers the lines that have left, and `wait_group` makes that all of
//! them. Shared memory is read when the line leaves. A load's bytes are in shared memory when their line
//! comes; its barrier counts them all at once, some cycles after the last.
//!
//! A tile whose tensor's map lies in global memory is known when the map has come: the engine reads it, in
//! one line or two, past the L1 and anew for each copy, as nobody has published how many maps a card keeps.
//! Reads of maps leave before lines, so that maps of copies that wait come together; lines keep their order.
//!
//! A request for a cluster that has not begun (`clusterlaunchcontrol.try_cancel`) takes its turn as a copy of
//! one line: it goes to the command processor, whose answer comes to shared memory as a line would.
//!
//! A tile of a tensor leaves by rows (of its box, four, or pixels), and rows that lie one behind the other by
//! lines. Bytes of elements that the tensor has not take a cycle a row and no request.
//!
//! Source: PTX ISA 9.7.9.25.5, 9.7.9.27; sizes and gaps are parameters of shared memory, after the model of
//! TMA in FlashGPU-Sim. Groups are a warp's, as those of `cp.async`. Invariants: copies leave in the order of
//! issue, at most one line a cycle; a warp's slot and its CTA's memory stay until its copies are complete.
//! What goes to other CTAs is in `bulk_peers`.
//! Not modelled: passes through the banks of shared memory, a bound on copies that wait, the path of its own
//! that TMA has to the crossbar (stores share the load-store unit).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use smallvec::{SmallVec, smallvec};

use crate::msg::{CommandProcessorMsg, Line, MAX_LINE_BYTES, Msg, Payload, Request, RequestKind, sectors_touched};
use crate::remote::{CopySource, RemotePart};
use durawarp_checkpoint::state;
use durawarp_engine::Ctx;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Bulk, BulkKind, BulkStep, Inst, MemKind};
use durawarp_kernel::launch_control::answer;
use durawarp_kernel::memory::Medium;
use durawarp_kernel::semantics::atomic::{complete_bytes, put_elements};
use durawarp_kernel::tensor_map::MAP_BYTES;
use durawarp_kernel::warp::SharedPiece;
use durawarp_persist::handler::{Access, AccessKind, SmEvent};

use super::bulk_admission::HeldCopies;
use super::bulk_copy::{BulkCopy, CopyPart, LinePart, MapRead, insert};
use super::bulk_peers::{PartQueue, barriers, destinations};
use super::bulk_stores::send_line;
use super::copies::CopyGroups;
use super::core::IssueCore;
use super::cta::CtaSlot;
use super::front_end::FrontEndWaits;
use super::launches::LaunchTable;
use super::lsu::Lsu;
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::parameters::BulkCounters;
use super::requests::load_waits;
use super::slots::{Fault, WarpSlot};
use super::traced::operands_of;
use super::wait::Wait;

/// Where a read has how many bytes of a copy lie before it, those of maps have this bit.
const OF_MAP: u32 = 1 << 31;

/// Tags of reads begin here; those of loads are below.
const READ: u32 = 1 << 30;

/// The copy engine.
#[derive(Debug)]
pub(super) struct CopyEngine {
    copies: Vec<BulkCopy>,
    free: Vec<u16>,
    /// Copies of which lines have not left, oldest first.
    sending: VecDeque<u16>,
    /// Of these, copies that a scheme's front-end buffer does not take yet, which are left out there.
    held: HeldCopies,
    /// Copies whose maps have not left, oldest first.
    maps: VecDeque<u16>,
    /// Reads under way: the copy, and how many of its bytes, or of its map's, lie before the line.
    reads: Vec<(u16, u32)>,
    free_reads: Vec<u16>,
    /// Requests under way.
    lines: u32,
    /// Groups of each warp: reads of shared memory, whole copies.
    groups: Vec<[CopyGroups; 2]>,
    /// Loads whose bytes complete in a later cycle.
    landing: BinaryHeap<Reverse<(u32, u16)>>,
    /// Cycle from which another copy may begin.
    next_start: u32,
    /// The next line lacks room: nothing to do until a reply or a credit comes.
    blocked: bool,
    /// Parts for other CTAs, which leave before the event is over.
    pub(super) parts: PartQueue,
}

state!(CopyEngine {
    saved: copies, free, sending, held, maps, reads, free_reads, lines, landing, next_start, blocked, groups; kept: parts
});

impl CopyEngine {
    /// Nothing to copy.
    pub(super) fn new(warps: u32) -> Self {
        CopyEngine {
            copies: Vec::new(),
            free: Vec::new(),
            sending: VecDeque::new(),
            held: HeldCopies::default(),
            maps: VecDeque::new(),
            reads: Vec::new(),
            free_reads: Vec::new(),
            lines: 0,
            groups: (0..warps).map(|_| Default::default()).collect(),
            landing: BinaryHeap::new(),
            next_start: 0,
            blocked: false,
            parts: PartQueue::default(),
        }
    }

    /// A tag is that of one of its reads.
    #[inline]
    pub(super) fn is_read(tag: u32) -> bool {
        tag >= READ
    }

    /// It has something to send or to complete.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.sending.is_empty() || !self.landing.is_empty()
    }

    /// The first cycle after `cycle` in which it may do something by itself.
    pub(super) fn next_after(&self, cycle: u32) -> u32 {
        let lands = self.landing.peek().map_or(u32::MAX, |Reverse((at, _))| *at);
        let sends = match self.sending.front() {
            Some(&first) if !self.blocked => {
                if self.maps.is_empty() && self.copies[usize::from(first)].sent == 0 {
                    self.next_start
                } else {
                    cycle
                }
            }
            _ => u32::MAX,
        };
        lands.min(sends).max(cycle + 1)
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
            let (home, peers) = destinations(&operands, cta, launch, m.record);
            let (home_barriers, barriers) = barriers(&operands, (home, &peers), cta, launch, m.record);
            let map = operands.unread.map(|_| MapRead::new());
            let unread = map.is_some();
            m.record.bulk.count(bulk, operands.bytes, peers.len());
            if operands.bytes == 0 && !unread {
                continue;
            }
            // Loads complete at a barrier, prefetches nowhere.
            let grouped = bulk.kind.writes_global();
            let tickets = grouped.then(|| self.groups[warp].each_mut().map(CopyGroups::begin));
            let (warp, lane, pc) = (warp as u8, lane as u8, slot.warp.pc());
            let copy = BulkCopy {
                warp,
                lane,
                pc,
                bulk,
                operands,
                sent: 0,
                left: 0,
                tickets,
                home,
                peers,
                barriers,
                home_barriers,
                apart: 0,
                landed: false,
                map,
                traced: traced.cloned().map(Box::new),
            };
            let number = insert(&mut self.copies, &mut self.free, copy);
            self.sending.push_back(number);
            if unread {
                // Its map may leave while an older copy waits.
                self.maps.push_back(number);
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

    /// A warp commits a group, or begins to wait: for what, if it must.
    pub(super) fn step_groups(&mut self, warp: usize, step: BulkStep) -> Option<Wait> {
        let [reads, whole] = &mut self.groups[warp];
        match step {
            BulkStep::Commit => {
                reads.commit();
                whole.commit();
                None
            }
            BulkStep::WaitRead(kept) => (!reads.are_complete(kept)).then_some(Wait::BulkReads(kept)),
            BulkStep::Wait(kept) => (!whole.are_complete(kept)).then_some(Wait::Bulk(kept)),
        }
    }

    /// What a warp waits for here is complete.
    pub(super) fn lets_go(&self, warp: usize, wait: Wait) -> bool {
        let [reads, whole] = &self.groups[warp];
        match wait {
            Wait::BulkReads(kept) => reads.are_complete(kept),
            Wait::Bulk(kept) => whole.are_complete(kept),
            _ => false,
        }
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
            true => self.held.first(&mut self.sending, &self.copies, core, front_end, m)?,
            false => *self.sending.front()?,
        };
        if !self.maps.is_empty() && self.send_map(core, memory, m, cx) {
            return None;
        }
        let copy = &self.copies[usize::from(number)];
        // What it copies is not known yet.
        if copy.map.is_some() {
            self.blocked = true;
            return None;
        }
        if copy.sent == 0 && m.cycle < self.next_start {
            return None;
        }
        let (requests, bytes) = match copy.part(copy.sent, m.w.line_bytes) {
            CopyPart::Absent(bytes) => (0, self.fill(number, bytes, core, m.w.index)),
            CopyPart::Line(part) if copy.bulk.kind == BulkKind::Cancel => {
                let place = core.ctas[usize::from(core.slots[usize::from(copy.warp)].cta)].launch;
                let asks = CommandProcessorMsg::Cancel { sm: m.w.index, place, copy: number };
                m.w.ports.to_command_processor().send(asks, 0, cx);
                (1, part.bytes)
            }
            CopyPart::Line(part) if copy.bulk.kind == BulkKind::Send => {
                self.send_shared(number, part, core, m);
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
                    self.send_read(number, part, part.at, core, memory, m, cx).then_some(1)
                };
                self.blocked = requests.is_none();
                (requests?, part.bytes)
            }
        };
        self.lines += requests;
        // It has left: the gap to the next copy counts from the first line.
        let copy = &mut self.copies[usize::from(number)];
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
            self.groups[warp][0].land(reads);
            // Its region may end, as its lines are all in the buffer, or on their way as atomics.
            let slot = &mut core.slots[warp];
            if front_end.present && front_end.copied(warp, slot, m.host) {
                core.settle(warp, m.cycle, m.launches.of(&core.slots[warp]));
            }
        }
        if done {
            self.end(number, m.cycle, core, m.p.shared.bulk_arrive_cycles);
        }
        tickets.map(|_| warp)
    }

    /// A load has no element in its tensor for the next bytes, or leaves them: how many of these are filled
    /// now, or passed over.
    #[cold]
    fn fill(&mut self, number: u16, bytes: u32, core: &mut IssueCore, sm: u16) -> u32 {
        let copy = &self.copies[usize::from(number)];
        let at = copy.sent;
        if copy.bulk.kind != BulkKind::Load {
            return bytes;
        }
        let Some(tile) = copy.operands.tile else { return bytes };
        // Other CTAs get them by lines, as they get what is there.
        if !copy.peers.is_empty() {
            let (filling, bytes) = (tile.map.filling(), bytes.min(MAX_LINE_BYTES as u32));
            let found: [u8; MAX_LINE_BYTES] = std::array::from_fn(|byte| filling[byte % filling.len()]);
            self.bring(number, at, &found[..bytes as usize], core, sm);
            return bytes;
        }
        let warp = copy.warp;
        let cta = &mut core.ctas[usize::from(core.slots[usize::from(warp)].cta)];
        for piece in copy.operands.pieces(at, bytes) {
            cta.writers.access(warp, MemKind::Store, std::iter::once(piece.shared as u64), piece.bytes as u32);
        }
        copy.operands.fill(at, bytes, &mut cta.shared);
        bytes
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
        let Some(&number) = self.maps.front() else { return false };
        let copy = &self.copies[usize::from(number)];
        let (Some(unread), Some(map)) = (copy.operands.unread, &copy.map) else {
            unreachable!("a copy whose map is to be read has one")
        };
        let part = MapRead::part(unread.address, map.sent, m.w.line_bytes);
        let room = self.lines < m.p.shared.bulk_lines;
        if !room || !self.send_read(number, part, OF_MAP | part.at, core, memory, m, cx) {
            return false;
        }
        (self.lines, self.blocked) = (self.lines + 1, false);
        m.record.bulk.bulk_map_reads += 1;
        if let Some(map) = &mut self.copies[usize::from(number)].map {
            map.sent += part.bytes;
            if map.sent == MAP_BYTES as u32 {
                self.maps.pop_front();
            }
        }
        true
    }

    /// A scheme's front-end buffer may take what it has not taken.
    pub(super) fn look_again(&mut self) {
        self.held.look_again(&mut self.sending);
        self.blocked = false;
    }

    /// A copy reads shared memory of the own CTA.
    pub(super) fn reads_shared(&self, number: u16) -> bool {
        self.copies[usize::from(number)].bulk.kind.reads_shared()
    }

    /// A read is one of a map.
    pub(super) fn is_map(&self, tag: u32) -> bool {
        self.reads[usize::from((tag - READ) as u16)].1 & OF_MAP != 0
    }

    /// A line of a map that it has read is here: the copy is known when all of it is.
    pub(super) fn map_came(
        &mut self,
        tag: u32,
        line: &Line,
        line_bytes: u32,
        core: &IssueCore,
        launches: &LaunchTable,
        counters: &mut BulkCounters,
    ) -> Result<(), Fault> {
        let read = (tag - READ) as u16;
        let (number, at) = self.reads[usize::from(read)];
        self.free_reads.push(read);
        self.lines -= 1;
        self.blocked = false;
        let copy = &mut self.copies[usize::from(number)];
        let (Some(unread), Some(map)) = (copy.operands.unread, &mut copy.map) else {
            unreachable!("a map came that was not read")
        };
        let part = MapRead::part(unread.address, at & !OF_MAP, line_bytes);
        let found = &line.bytes[part.offset as usize..][..part.bytes as usize];
        map.bytes[part.at as usize..][..found.len()].copy_from_slice(found);
        map.came += part.bytes;
        if map.came < MAP_BYTES as u32 {
            return Ok(());
        }
        // All of it: a fault of the map is one of the copy's instruction.
        let slot = &core.slots[usize::from(copy.warp)];
        let launch = launches.of(slot);
        match copy.operands.with_map(copy.bulk, &map.bytes, launch) {
            Ok((bulk, operands)) => {
                (copy.bulk, copy.operands, copy.map) = (bulk, operands, None);
                // Others of its warp may have waited for it.
                self.held.look_again(&mut self.sending);
                counters.count_bytes(operands.bytes, copy.peers.len());
                Ok(())
            }
            Err(kind) => Err(Box::new(ProgramFault::new(kind, launch, &slot.warp, copy.pc, u32::from(copy.lane)))),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn send_read(
        &mut self,
        number: u16,
        part: LinePart,
        at: u32,
        core: &IssueCore,
        memory: &mut MemorySide,
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let copy = &self.copies[usize::from(number)];
        let line = part.line;
        let needs = if memory.l1.may_be_dirty() { 2 } else { 1 };
        if load_waits(line, m.host) || !memory.port.network.has_room_for(needs) || memory.must_leave(line, m.host) {
            return false;
        }
        // What the SM has stored of the line is older.
        memory.clean_now(line, m.host, m.record, cx);
        if m.host.wants.accesses && Medium::of(line) == Medium::Nvm {
            let slot = &core.slots[usize::from(copy.warp)];
            let (by, launch) = ((copy.warp, slot.cta), slot.launch);
            let (bytes, kind, half_warps) = (part.mask(), AccessKind::Load, 1);
            let access = Access { line, bytes, kind, half_warps, by, launch, from: 0, mark: 0, log: false, hit: false };
            m.host.tell(&SmEvent::Accessed(&access));
        }
        let read = insert(&mut self.reads, &mut self.free_reads, (number, at));
        let mut room = memory.port.line_pool.take();
        room.launch = core.slots[usize::from(copy.warp)].launch;
        let request = Request {
            line,
            tag: READ | u32::from(read),
            from: memory.port.requester,
            kind: RequestKind::Read,
            sectors: sectors_touched(part.mask()),
            payload: Payload::Line(room),
        };
        memory.port.network.push(request, cx);
        m.record.bulk.bulk_reads += u64::from(at & OF_MAP == 0);
        true
    }

    /// A line of the own shared memory leaves for the shared memory of another CTA, or another place of the
    /// own.
    fn send_shared(&mut self, number: u16, line: LinePart, core: &mut IssueCore, m: &mut Moment<'_>) {
        let warp = self.copies[usize::from(number)].warp;
        let slot = &core.slots[usize::from(warp)];
        let cta = &mut core.ctas[usize::from(slot.cta)];
        let (from, bytes) = ((line.line + u64::from(line.offset)) as usize, line.bytes as usize);
        if cta.writers.access(warp, MemKind::Load, std::iter::once(from as u64), line.bytes) {
            m.host.tell(&SmEvent::SharedRead { launch: slot.launch });
        }
        let mut found = [0; 128];
        found[..bytes].copy_from_slice(&cta.shared[from..from + bytes]);
        self.bring(number, line.at, &found[..bytes], core, m.w.index);
    }

    /// A line that it has read is here: the copy that it belongs to.
    pub(super) fn line_came(&mut self, tag: u32, line: &Line, line_bytes: u32, core: &mut IssueCore, sm: u16) -> u16 {
        let read = (tag - READ) as u16;
        let (number, at) = self.reads[usize::from(read)];
        self.free_reads.push(read);
        let copy = &self.copies[usize::from(number)];
        if copy.bulk.kind == BulkKind::Load {
            let CopyPart::Line(part) = copy.part(at, line_bytes) else {
                unreachable!("a line came for elements that are not there");
            };
            self.bring(number, at, &line.bytes[part.offset as usize..][..part.bytes as usize], core, sm);
        }
        number
    }

    /// Bytes of a copy from its byte `at` on go to shared memory, at home and elsewhere.
    fn bring(&mut self, number: u16, at: u32, found: &[u8], core: &mut IssueCore, sm: u16) {
        let copy = &mut self.copies[usize::from(number)];
        if copy.home {
            let slot = &core.slots[usize::from(copy.warp)];
            let cta = &mut core.ctas[usize::from(slot.cta)];
            // As a store to shared memory does, it carries what its warp knows of fences.
            cta.fenced = cta.fenced.max(slot.order.fenced);
            for SharedPiece { from, shared, bytes } in copy.pieces(at, found.len() as u32) {
                cta.writers.access(copy.warp, MemKind::Store, std::iter::once(shared as u64), bytes as u32);
                let (to, came) = (&mut cta.shared[shared..shared + bytes], &found[from..from + bytes]);
                put_elements(copy.bulk.atom, copy.bulk.elem, to, came);
            }
        }
        if !copy.peers.is_empty() {
            self.parts.send(copy, CopySource { sm, warp: copy.warp, copy: number }, at, found);
        }
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
        let slot = &core.slots[usize::from(self.copies[usize::from(number)].warp)];
        let bytes = answer(first, launches.of(slot));
        self.bring(number, 0, &bytes, core, sm);
    }

    /// A request of a copy is answered: a warp that may go on.
    pub(super) fn answered(&mut self, number: u16, cycle: u32, core: &mut IssueCore, arrive: u32) -> Option<usize> {
        let copy = &mut self.copies[usize::from(number)];
        copy.left -= 1;
        self.lines -= 1;
        let done = copy.left == 0 && copy.sent == copy.operands.bytes;
        if done { self.end(number, cycle, core, arrive) } else { None }
    }

    /// All requests of a copy are answered.
    fn end(&mut self, number: u16, cycle: u32, core: &mut IssueCore, arrive: u32) -> Option<usize> {
        let copy = &self.copies[usize::from(number)];
        let warp = usize::from(copy.warp);
        if copy.bulk.kind.completes() {
            self.landing.push(Reverse((cycle + arrive, number)));
            return None;
        }
        if let Some([_, whole]) = copy.tickets {
            self.groups[warp][1].land(whole);
        }
        self.free.push(number);
        core.slots[warp].under_way.bulk -= 1;
        Some(warp)
    }

    /// The bytes of a load complete at its barrier, where there is one by `cycle`: a warp that may go on.
    pub(super) fn land(
        &mut self,
        cycle: u32,
        core: &mut IssueCore,
        launches: &LaunchTable,
        sm: u16,
    ) -> Result<Option<usize>, Fault> {
        let Some(&Reverse((_, number))) = self.landing.peek().filter(|Reverse((at, _))| *at <= cycle) else {
            return Ok(None);
        };
        self.landing.pop();
        let copy = &mut self.copies[usize::from(number)];
        let warp = usize::from(copy.warp);
        let slot = &core.slots[warp];
        // At home at once; elsewhere by a message, whose answer ends the copy.
        let shared = &mut core.ctas[usize::from(slot.cta)].shared;
        let mut counts = 0..copy.home_barriers;
        if let Err(misuse) = counts.try_for_each(|_| complete_bytes(shared, copy.operands.barrier, copy.operands.bytes))
        {
            let kind = FaultKind::Asynchronous(misuse.to_string());
            return Err(Box::new(ProgramFault::new(
                kind,
                launches.of(slot),
                &slot.warp,
                copy.pc,
                u32::from(copy.lane),
            )));
        }
        copy.landed = true;
        self.parts.complete(copy, CopySource { sm, warp: copy.warp, copy: number });
        if copy.apart > 0 {
            return Ok(Some(warp));
        }
        self.free.push(number);
        core.slots[warp].under_way.bulk -= 1;
        Ok(Some(warp))
    }

    /// A part for another CTA is there: a warp that may go on.
    ///
    /// # Errors
    /// What was wrong there, at the copy's instruction.
    pub(super) fn part_came(
        &mut self,
        part: Box<RemotePart>,
        core: &mut IssueCore,
        launches: &LaunchTable,
    ) -> Result<Option<usize>, Fault> {
        let number = part.from.copy;
        let copy = &mut self.copies[usize::from(number)];
        if let Some(what) = &part.fault {
            let (kind, slot) = (FaultKind::Asynchronous(what.clone()), &core.slots[usize::from(copy.warp)]);
            let lane = u32::from(copy.lane);
            return Err(Box::new(ProgramFault::new(kind, launches.of(slot), &slot.warp, copy.pc, lane)));
        }
        self.parts.recycle(part);
        copy.apart -= 1;
        if copy.apart > 0 || !copy.landed {
            return Ok(None);
        }
        self.free.push(number);
        core.slots[usize::from(copy.warp)].under_way.bulk -= 1;
        Ok(Some(usize::from(copy.warp)))
    }
}

/// A line has to wait until those before it are durable, as a store of its scheme would.
fn waits_for_durable(copy: &BulkCopy, part: LinePart, core: &IssueCore, m: &Moment<'_>) -> bool {
    let under_way = core.slots[usize::from(copy.warp)].under_way;
    let idle = under_way.is_performed() && under_way.persists == 0;
    m.host.wants.stores_wait && Medium::of(part.line) == Medium::Nvm && !idle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_tell_reads_of_shared_memory_from_whole_copies() {
        let mut engine = CopyEngine::new(1);
        let tickets = engine.groups[0].each_mut().map(CopyGroups::begin);
        assert_eq!(engine.step_groups(0, BulkStep::Commit), None);
        assert_eq!(engine.step_groups(0, BulkStep::WaitRead(0)), Some(Wait::BulkReads(0)));
        engine.groups[0][0].land(tickets[0]);
        assert_eq!(engine.step_groups(0, BulkStep::WaitRead(0)), None);
        assert_eq!(engine.step_groups(0, BulkStep::Wait(1)), None);
        assert_eq!(engine.step_groups(0, BulkStep::Wait(0)), Some(Wait::Bulk(0)));
        assert!(!engine.lets_go(0, Wait::Bulk(0)));
        engine.groups[0][1].land(tickets[1]);
        assert!(engine.lets_go(0, Wait::Bulk(0)));
    }
}
