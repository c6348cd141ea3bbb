//! Reads of the copy engine: lines of global memory for loads and prefetches, and tensors' maps.
//!
//! ```text
//!   tag of a read     bit 30: the engine's     lower bits: its number ──> copy, byte; bit 31 of the byte: of its map
//! ```
//! A tile whose tensor's map lies in global memory is known when the map has come: the engine reads it, in
//! one line or two, past the L1 and anew for each copy, as nobody has published how many maps a card keeps.
//! Reads of maps leave before lines, so that maps of copies that wait come together.
//!
//! Source: PTX ISA 9.7.9.25.5.2, 9.7.9.27.1.2; what Hopper does with maps is not documented. Invariants: what
//! the SM has stored of a line leaves before the line is read; a read of persistent memory is told to the
//! scheme as a load of the copy's warp; numbers are those of reads under way. How many there may be at once,
//! the engine knows.
//! Not modelled: a cache of maps, and the fences that make a changed one known to it.

use std::collections::VecDeque;

use crate::msg::{Line, Msg, Payload, Request, RequestKind, sectors_touched};
use durawarp_checkpoint::value;
use durawarp_engine::Ctx;
use durawarp_kernel::memory::Medium;
use durawarp_kernel::tensor_map::MAP_BYTES;
use durawarp_persist::handler::{Access, AccessKind, SmEvent};

use super::bulk_copy::{BulkCopy, LinePart, MapRead, insert};
use super::core::IssueCore;
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::requests::load_waits;

/// Where a read has how many bytes of a copy lie before it, those of maps have this bit.
const OF_MAP: u32 = 1 << 31;

/// Tags of reads begin here; those of loads are below.
const READ: u32 = 1 << 30;

/// Reads under way, and maps that are to be read.
#[derive(Debug, Default)]
pub(super) struct LineReads {
    /// By number: the copy, and how many of its bytes, or of its map's, lie before the line.
    reads: Vec<(u16, u32)>,
    free: Vec<u16>,
    /// Copies whose maps have not left, oldest first.
    maps: VecDeque<u16>,
}

value!(record LineReads { reads, free, maps });

impl LineReads {
    /// A tag is that of a read.
    #[inline]
    pub(super) fn is_read(tag: u32) -> bool {
        tag >= READ
    }

    /// A read is one of a map.
    pub(super) fn is_map(&self, tag: u32) -> bool {
        self.reads[usize::from((tag - READ) as u16)].1 & OF_MAP != 0
    }

    /// A copy's map is to be read.
    pub(super) fn begin_map(&mut self, number: u16) {
        self.maps.push_back(number);
    }

    /// Maps have not left.
    #[inline]
    pub(super) fn has_maps(&self) -> bool {
        !self.maps.is_empty()
    }

    /// Sends a read of a line for a copy's bytes from `at` on; false where it has to wait.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn send(
        &mut self,
        (number, copy): (u16, &BulkCopy),
        part: LinePart,
        at: u32,
        core: &IssueCore,
        memory: &mut MemorySide,
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
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
        let read = insert(&mut self.reads, &mut self.free, (number, at));
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

    /// Sends a line of the oldest map that has not left; false where it has to wait.
    #[cold]
    pub(super) fn send_map(
        &mut self,
        copies: &mut [BulkCopy],
        core: &IssueCore,
        memory: &mut MemorySide,
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let Some(&number) = self.maps.front() else { return false };
        let copy = &copies[usize::from(number)];
        let (Some(unread), Some(map)) = (copy.operands.unread, &copy.map) else {
            unreachable!("a copy whose map is to be read has one")
        };
        let part = MapRead::part(unread.address, map.sent, m.w.line_bytes);
        if !self.send((number, copy), part, OF_MAP | part.at, core, memory, m, cx) {
            return false;
        }
        m.record.bulk.bulk_map_reads += 1;
        if let Some(map) = &mut copies[usize::from(number)].map {
            map.sent += part.bytes;
            if map.sent == MAP_BYTES as u32 {
                self.maps.pop_front();
            }
        }
        true
    }

    /// A read is answered: its copy, and how many bytes of the copy lie before the line.
    pub(super) fn end(&mut self, tag: u32) -> (u16, u32) {
        let read = (tag - READ) as u16;
        self.free.push(read);
        self.reads[usize::from(read)]
    }

    /// A line of a map is here: the copy whose map it is, when all of the map is here.
    pub(super) fn end_of_map(
        &mut self,
        tag: u32,
        line: &Line,
        line_bytes: u32,
        copies: &mut [BulkCopy],
    ) -> Option<u16> {
        let (number, at) = self.end(tag);
        let copy = &mut copies[usize::from(number)];
        let (Some(unread), Some(map)) = (copy.operands.unread, &mut copy.map) else {
            unreachable!("a map came that was not read")
        };
        let part = MapRead::part(unread.address, at & !OF_MAP, line_bytes);
        let found = &line.bytes[part.offset as usize..][..part.bytes as usize];
        map.bytes[part.at as usize..][..found.len()].copy_from_slice(found);
        map.came += part.bytes;
        (map.came == MAP_BYTES as u32).then_some(number)
    }
}
