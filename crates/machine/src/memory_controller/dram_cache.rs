//! A DRAM cache in front of persistent memory: memory mode, in which persistent memory is large volatile
//! memory.
//!
//! ```text
//!  read of NVM ──hit──> read of the set's line in DRAM ──────────────────────────> data
//!              └─miss─> read of NVM ─────────────────────────────────────────────> data
//!                         └─ fill: write to DRAM; dirty victim: read of DRAM ──> write to NVM
//!  write of NVM ──────> write to DRAM, dirty; dirty victim of another line as above
//!  clean ─────────────> write to NVM, and to DRAM where the line is there; of bytes that are dirty here
//!                       alone: read of DRAM ──> write to NVM
//! ```
//! Direct-mapped, lines of 64 B, over the lines of the channel. Its bytes are real: they lie in the channel's
//! DRAM, after all that programs have there, and are read and written by the controller's own queues. A line
//! that a write brings needs no fetch, since homes write whole lines. A write is acknowledged by the rule of
//! what it goes to: of DRAM when the WPQ has it, though it is not durable; a clean when NVM has it, as
//! without the cache.
//!
//! Beside a scheme's handler, which has all that is stored written to persistent memory by itself, dirty
//! victims are dropped, and a miss gets what memory and handler have. Lines of the cache are not older than
//! what the handler holds: each is as it left the shared cache, or as it was read, and a line that was stored
//! to since comes from the shared cache again. That no store of a line which is dropped is still on its way
//! is the scheme's to see to, at the caches above.
//!
//! Source: LightWSP Table I and section V-A (4 GB, direct-mapped; the base is Intel's memory mode); section
//! IV-G (what is dropped).
//! Invariants: a power failure loses what only the cache has; writes of one line reach the queue in the order
//! of their arrival: those that come while an older version of the line is read to be written back wait for
//! it. A miss begins when no write waits for the WPQ, so that fills have a bound. Not modelled: the read of
//! tags (they are known at once), the order in which DRAM serves the read of a victim and the write that
//! replaces it (the bytes are taken when the line leaves), bypass.

use std::collections::VecDeque;

use crate::address::offset_in_medium;
use crate::coherence::{CPU_LINE_BYTES, CPU_LINE_MASK};
use crate::line::{copy_masked, sectors_touched};
use crate::msg::{Line, MemoryRead, MemoryWrite, Msg};
use durawarp_checkpoint::{state, value};
use durawarp_engine::Ctx;
use durawarp_kernel::memory::{Medium, NVM_BASE};

use super::channel::Channel;
use super::images::{CACHED, ChannelImages};
use super::parameters::DramCacheCounters;
use super::pending_write::DRAM_CACHE;

/// The cache's lines begin at a multiple of this in the channel's DRAM: of any row.
const ALIGN: u64 = 1 << 16;

/// A line that leaves for persistent memory: the read of its bytes is under way.
#[derive(Debug)]
struct WriteBack {
    line: u64,
    /// The read's.
    tag: u16,
    data: Box<Line>,
    /// Writes of the line that came since, in order. One without bytes asks that those before it are durable.
    later: Vec<MemoryWrite>,
}

value!(record WriteBack { line, tag, data, later });

/// What becomes of dirty lines that leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirtyVictims {
    /// They are written to persistent memory.
    Written,
    /// Nothing: a scheme's handler has persistent memory written.
    Dropped,
}

/// The cache of a channel.
#[derive(Debug)]
pub(super) struct DramCache {
    /// Where its first line lies in the channel's DRAM.
    first: u64,
    sets: u64,
    /// By set: the number of its line in persistent memory and 1, twice; and whether it is dirty. 0 of an
    /// empty set. Sets that no line of the channel has are left out.
    entries: Vec<u32>,
    victims: DirtyVictims,
    write_backs: Vec<WriteBack>,
    next_tag: u16,
    /// Misses that wait for writes to have entries in the WPQ.
    held: VecDeque<MemoryRead>,
    pub(super) counters: DramCacheCounters,
}

state!(DramCache { sized: entries; saved: write_backs, next_tag, held, counters; kept: first, sets, victims });

impl DramCache {
    /// An empty cache of `bytes` bytes, which the channel's DRAM grows by as far as they can be used.
    ///
    /// # Panics
    /// When it has no line; with 128 GiB of persistent memory or more.
    pub(super) fn new(bytes: u64, victims: DirtyVictims, images: &mut ChannelImages) -> DramCache {
        let sets = bytes / CPU_LINE_BYTES;
        assert!(sets > 0, "a DRAM cache of {bytes} bytes has no line");
        let lines = (images.of(Medium::Nvm).len() as u64).div_ceil(CPU_LINE_BYTES);
        let first = (images.of(Medium::Dram).len() as u64).next_multiple_of(ALIGN);
        let used = sets.min(lines);
        images.grow_dram(first + used * CPU_LINE_BYTES);
        DramCache {
            first,
            sets,
            entries: vec![0; used as usize],
            victims,
            write_backs: Vec::new(),
            next_tag: 0,
            held: VecDeque::new(),
            counters: DramCacheCounters::default(),
        }
    }

    /// Misses that wait, and lines on their way to persistent memory.
    pub(super) fn under_way(&self) -> [usize; 2] {
        [self.held.len(), self.write_backs.len()]
    }

    /// Lines whose bytes persistent memory lacks.
    pub(super) fn dirty_lines(&self, images: &ChannelImages) -> impl Iterator<Item = (u64, Box<Line>)> {
        let dirty = self.entries.iter().enumerate().filter(|(_, entry)| *entry & 1 == 1);
        dirty.map(move |(set, &entry)| (line_of(entry), bytes_of(images, self.name(set))))
    }

    /// The name of a set's line.
    fn name(&self, set: usize) -> u64 {
        CACHED + self.first + set as u64 * CPU_LINE_BYTES
    }

    fn set_of(&self, line: u64, channel: &Channel) -> usize {
        (channel.ports.map().in_channel(line) / CPU_LINE_BYTES % self.sets) as usize
    }

    /// The set of a line, and whether the line is there.
    fn find(&self, line: u64, channel: &Channel) -> (usize, bool) {
        let set = self.set_of(line, channel);
        (set, self.entries[set] >> 1 == entry_of(line, false) >> 1)
    }

    /// A read arrives: it is one of DRAM now if its line is here. None where it has to wait.
    pub(super) fn receive_read(&mut self, read: MemoryRead, channel: &Channel) -> Option<MemoryRead> {
        if Medium::of(read.line) == Medium::Dram {
            return Some(read);
        }
        let (set, hit) = self.find(read.line, channel);
        if hit {
            self.counters.read_hits += 1;
            return Some(self.of_set(set, read, channel));
        }
        self.counters.read_misses += 1;
        if channel.writes.waiting() > 0 || !self.held.is_empty() {
            self.counters.held_misses += 1;
            self.held.push_back(read);
            return None;
        }
        Some(read)
    }

    /// A miss that has waited and may begin.
    pub(super) fn pop_held(&mut self, channel: &Channel) -> Option<MemoryRead> {
        if channel.writes.waiting() > 0 { None } else { self.held.pop_front() }
    }

    /// A read that hits reads the set's line, and has its bytes now: the set may get another line before.
    fn of_set(&self, set: usize, read: MemoryRead, channel: &Channel) -> MemoryRead {
        let mut read = MemoryRead { line: self.name(set), ..read };
        channel.images.read(read.line, read.sectors, &mut read.room);
        read
    }

    /// A read of the channel has its bytes: its line gets its set, if it is one of persistent memory.
    pub(super) fn keep(&mut self, read: &MemoryRead, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        if Medium::of(read.line) != Medium::Nvm || read.room.mask != CPU_LINE_MASK {
            return;
        }
        let (set, hit) = self.find(read.line, channel);
        assert!(!hit, "a home has one request of a line under way");
        self.evict(set, channel, cx);
        self.entries[set] = entry_of(read.line, false);
        channel.receive_write(own_write(self.name(set), &read.room), cx);
    }

    /// A write of a home.
    pub(super) fn receive_write(&mut self, write: MemoryWrite, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        if Medium::of(write.line) == Medium::Dram {
            return channel.receive_write(write, cx);
        }
        let (set, hit) = self.find(write.line, channel);
        let whole = write.data.mask == CPU_LINE_MASK;
        if self.victims == DirtyVictims::Dropped {
            assert!(whole && !write.through, "what is stored goes to persistent memory by the scheme alone");
        }
        if write.through {
            if hit {
                self.clean(set, &write, channel, cx);
            }
            self.write_nvm(write, channel, cx);
        } else if hit || whole {
            if hit {
                self.counters.write_hits += 1;
            } else {
                self.counters.write_misses += 1;
                self.evict(set, channel, cx);
            }
            self.entries[set] = entry_of(write.line, true);
            channel.receive_write(MemoryWrite { line: self.name(set), ..write }, cx);
        } else {
            // A part of a line that is not here goes by.
            self.write_nvm(write, channel, cx);
        }
    }

    /// A clean finds its line here: the line gets the bytes that come, or gives those that it has alone.
    fn clean(&mut self, set: usize, write: &MemoryWrite, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        let entry = self.entries[set];
        if write.data.mask != 0 {
            channel.receive_write(own_write(self.name(set), &write.data), cx);
        } else if entry & 1 == 1 {
            self.counters.dirty_cleans += 1;
            self.write_back(set, channel, cx);
        }
        if write.data.mask == 0 || write.data.mask == CPU_LINE_MASK {
            self.entries[set] = entry & !1;
        }
    }

    /// A write goes to persistent memory, after older bytes of its line.
    fn write_nvm(&mut self, mut write: MemoryWrite, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        let line = write.line;
        if write.data.mask != 0 {
            channel.images.write(line, &write.data);
        }
        if let Some(under_way) = self.write_backs.iter_mut().find(|other| other.line == line) {
            under_way.later.push(write);
            return;
        }
        if write.data.mask == 0 && channel.writes.is_late(&write) {
            // Its cells may be under way, of which nothing is kept: they are written again.
            write.data = bytes_of(&channel.images, line);
        }
        channel.queue_write(write, cx);
    }

    /// A set gives up its line.
    fn evict(&mut self, set: usize, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        if self.entries[set] & 1 == 1 {
            self.counters.dirty_victims += 1;
            if self.victims == DirtyVictims::Written {
                self.write_back(set, channel, cx);
            }
        }
        self.entries[set] = 0;
    }

    /// The bytes of a set's line are read to be written to persistent memory. They are taken at once.
    fn write_back(&mut self, set: usize, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        let (line, name) = (line_of(self.entries[set]), self.name(set));
        let data = bytes_of(&channel.images, name);
        channel.images.write(line, &data);
        if let Some(under_way) = self.write_backs.iter_mut().find(|other| other.line == line) {
            under_way.later.push(own_write(line, &data));
            return;
        }
        let (tag, sectors) = (self.next_tag, sectors_touched(CPU_LINE_MASK));
        self.next_tag = tag.wrapping_add(1);
        self.write_backs.push(WriteBack { line, tag, data, later: Vec::new() });
        channel.counters.dram_reads += 1;
        if channel.forwards(name, sectors) {
            channel.counters.forwarded_reads += 1;
            self.written_back(tag, channel, cx);
        } else {
            channel.push_read(MemoryRead {
                line: name,
                tag,
                slice: DRAM_CACHE,
                sectors,
                from: None,
                room: Box::default(),
            });
        }
    }

    /// The bytes of a line that leaves have been read: they are written, and what came after them.
    pub(super) fn written_back(&mut self, tag: u16, channel: &mut Channel, cx: &mut Ctx<'_, Msg>) {
        let Some(at) = self.write_backs.iter().position(|other| other.tag == tag) else {
            panic!("a read for a line that does not leave")
        };
        let WriteBack { line, mut data, later, .. } = self.write_backs.remove(at);
        channel.queue_write(own_write(line, &data), cx);
        for mut write in later {
            if write.data.mask != 0 {
                copy_masked(&mut data.bytes, &write.data.bytes, write.data.mask);
            } else if channel.writes.is_late(&write) {
                // It joins the entry of those before it.
                write.data = data.clone();
            }
            channel.queue_write(write, cx);
        }
    }
}

/// What a set has: a line, dirty or not.
fn entry_of(line: u64, dirty: bool) -> u32 {
    let number = offset_in_medium(line) / CPU_LINE_BYTES + 1;
    assert!(number < 1 << 31, "a DRAM cache in front of 128 GiB or more");
    (number as u32) << 1 | u32::from(dirty)
}

/// The line of a set that is not empty.
fn line_of(entry: u32) -> u64 {
    NVM_BASE + u64::from((entry >> 1) - 1) * CPU_LINE_BYTES
}

/// The bytes of a line as a read would see them.
fn bytes_of(images: &ChannelImages, line: u64) -> Box<Line> {
    let mut data = Box::default();
    images.read(line, sectors_touched(CPU_LINE_MASK), &mut data);
    data
}

/// A write of the cache's own, which concerns no home.
fn own_write(line: u64, data: &Line) -> MemoryWrite {
    let data = Box::new(data.clone());
    MemoryWrite { line, slice: DRAM_CACHE, token: 0, late: false, through: false, data }
}
