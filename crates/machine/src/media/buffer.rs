//! The buffer of an NVM device: lines that are larger than a request, between the bus and the cells. Pure
//! arithmetic.
//!
//! | request | its line is there | its line is not there |
//! |---|---|---|
//! | read | has its data after `hit_ps` | has its data after `miss_ps`: the cells are read |
//! | write | merges with the line | the line is read first (a request is a part of one); another makes room |
//!
//! Cells are read and written by whole lines, each way at its own bandwidth. A line that makes room and is
//! dirty is written to cells; the next *write* that needs the room of a dirty line waits until the cells take
//! another line. A read waits for no such write: what it evicts is on its way to the cells beside the buffer.
//! Each bank of the device has a buffer and cells of its own: a bank is a module.
//!
//! Source: Optane's XPBuffer (Yang et al., FAST '20: 16 KB, 256 B a line, part of the persistence domain);
//! VANS's RMW buffer (64 lines of 256 B). Invariants: a line is in a buffer once; lines are written to cells
//! in the order of their evictions. Not modelled: a second level (the AIT buffer of 4 KB lines), stalls of
//! wear levelling, and that a line which several requests write whole need not be read.

use durawarp_checkpoint::{state, value};
use durawarp_engine::{Time, Timebase};

use crate::device::{BufferPolicy, DeviceBuffer};

/// Times of a buffer in ticks.
#[derive(Debug, Clone, Copy)]
struct BufferTiming {
    hit: Time,
    miss: Time,
    cell_write: Time,
    /// How long a line takes the cells, of reads and of writes.
    read_line: Time,
    write_line: Time,
    policy: BufferPolicy,
}

#[derive(Debug, Clone, Copy, Default)]
struct BufferLine {
    row: Option<u32>,
    dirty: bool,
    /// When its bytes are there.
    ready_at: Time,
    /// When it came, or was used last, among all such moments.
    rank: u64,
}

value!(record BufferLine { row, dirty, ready_at, rank });

/// The buffer of one bank.
#[derive(Debug, Clone)]
pub(super) struct LineBuffer {
    timing: BufferTiming,
    lines: Vec<BufferLine>,
    next_rank: u64,
    /// When the cells take the next line, of reads and of writes.
    read_free: Time,
    write_free: Time,
}

state!(LineBuffer { sized: lines; saved: next_rank, read_free, write_free; kept: timing });

/// The buffers of a device, one a bank; none where it has none.
#[derive(Debug, Clone)]
pub(super) struct Buffers {
    banks: Vec<LineBuffer>,
    /// Lines of each, and bytes of a line.
    pub(super) lines: usize,
    pub(super) line_bytes: u32,
}

state!(Buffers { parts: banks; kept: lines, line_bytes });

impl Buffers {
    /// Empty buffers, one for each bank.
    pub(super) fn new(buffer: Option<&DeviceBuffer>, banks: usize, base: Timebase) -> Self {
        let banks = buffer.map_or_else(Vec::new, |own| vec![LineBuffer::new(own, base); banks]);
        let (lines, line_bytes) = buffer.map_or((0, 0), |own| (own.lines as usize, own.line_bytes));
        Buffers { banks, lines, line_bytes }
    }

    /// How many.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.banks.len()
    }

    /// A bank's.
    pub(super) fn of(&self, bank: usize) -> &LineBuffer {
        &self.banks[bank]
    }

    /// The same, to change it.
    pub(super) fn of_mut(&mut self, bank: usize) -> &mut LineBuffer {
        &mut self.banks[bank]
    }
}

/// What a line that made room came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EvictedLine {
    pub(super) index: usize,
    /// Its bytes are in cells.
    pub(super) done: Time,
}

/// A line that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FetchedLine {
    /// A read of it has its data.
    pub(super) ready: Time,
    /// The cells were read for it.
    pub(super) missed: bool,
    /// A dirty line made room.
    pub(super) evicted: Option<EvictedLine>,
}

impl LineBuffer {
    /// An empty buffer.
    pub(super) fn new(buffer: &DeviceBuffer, base: Timebase) -> Self {
        // A MB/s is a byte in 1,000,000 ps.
        let line = |mb_s: u32| base.ticks_of_ps((u64::from(buffer.line_bytes) * 1_000_000).div_ceil(u64::from(mb_s)));
        let timing = BufferTiming {
            hit: base.ticks_of_ps(buffer.hit_ps),
            miss: base.ticks_of_ps(buffer.miss_ps),
            cell_write: base.ticks_of_ps(buffer.cell_write_ps),
            read_line: line(buffer.read_bandwidth_mb_s),
            write_line: line(buffer.write_bandwidth_mb_s),
            policy: buffer.policy,
        };
        let lines = vec![BufferLine::default(); buffer.lines as usize];
        LineBuffer { timing, lines, next_rank: 1, read_free: 0, write_free: 0 }
    }

    /// Where a line is.
    #[inline]
    pub(super) fn find(&self, row: u32) -> Option<usize> {
        self.lines.iter().position(|line| line.row == Some(row))
    }

    /// The line at a place of the buffer.
    pub(super) fn row(&self, index: usize) -> Option<u32> {
        self.lines[index].row
    }

    /// A line at a place of the buffer has bytes that its cells have not.
    pub(super) fn is_dirty(&self, index: usize) -> bool {
        self.lines[index].dirty
    }

    /// The line that makes room next: an empty place, or what came or was used longest ago.
    fn victim(&self) -> usize {
        let ranked = self.lines.iter().enumerate().min_by_key(|(_, line)| line.rank);
        ranked.map_or(0, |(index, _)| index)
    }

    /// When a write of a line may come.
    pub(super) fn room_at(&self, row: u32) -> Time {
        match self.find(row) {
            None if self.lines[self.victim()].dirty => self.write_free,
            _ => 0,
        }
    }

    /// A request needs a line: unless it is there, it is read from the cells and takes the place of another.
    pub(super) fn fetch(&mut self, row: u32, at: Time) -> FetchedLine {
        let timing = self.timing;
        let rank = self.next_rank;
        self.next_rank += 1;
        if let Some(index) = self.find(row) {
            let line = &mut self.lines[index];
            if timing.policy == BufferPolicy::Lru {
                line.rank = rank;
            }
            return FetchedLine { ready: line.ready_at.max(at + timing.hit), missed: false, evicted: None };
        }
        let index = self.victim();
        let evicted = self.lines[index].dirty.then(|| EvictedLine { index, done: self.write_back(index, at) });
        let begins = self.read_free.max(at);
        self.read_free = begins + timing.read_line;
        let ready_at = begins + timing.miss;
        self.lines[index] = BufferLine { row: Some(row), dirty: false, ready_at, rank };
        FetchedLine { ready: ready_at, missed: true, evicted }
    }

    /// Bytes of a line that is there are replaced; the last comes at `data_end`.
    ///
    /// # Panics
    /// When it is not there.
    pub(super) fn write(&mut self, row: u32, data_end: Time) {
        let Some(index) = self.find(row) else { panic!("a write to line {row}, which is not in the buffer") };
        let line = &mut self.lines[index];
        (line.dirty, line.ready_at) = (true, line.ready_at.max(data_end));
    }

    /// When the cells can begin with the write of a line.
    pub(super) fn write_back_ready(&self, index: usize) -> Time {
        self.lines[index].ready_at.max(self.write_free)
    }

    /// Writes a line to its cells as early as can be from `at` on; it stays. Returns when that is done.
    pub(super) fn write_back(&mut self, index: usize, at: Time) -> Time {
        let begins = self.write_back_ready(index).max(at);
        self.write_free = begins + self.timing.write_line;
        self.lines[index].dirty = false;
        self.write_free.max(begins + self.timing.cell_write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 256 B; the cells read one in 40 ns and write one in 110. A tick is a nanosecond.
    fn buffer(lines: u32, policy: BufferPolicy) -> LineBuffer {
        let buffer = DeviceBuffer {
            lines,
            line_bytes: 256,
            durable: true,
            policy,
            hit_ps: 10_000,
            miss_ps: 190_000,
            cell_write_ps: 300_000,
            read_bandwidth_mb_s: 6400,
            write_bandwidth_mb_s: 2560,
        };
        LineBuffer::new(&buffer, Timebase::of_khz(&[1_000_000]).unwrap())
    }

    fn fetched(ready: Time, missed: bool, evicted: Option<(usize, Time)>) -> FetchedLine {
        FetchedLine { ready, missed, evicted: evicted.map(|(index, done)| EvictedLine { index, done }) }
    }

    #[test]
    fn reads_of_a_line_wait_for_the_cells_once() {
        let mut own = buffer(4, BufferPolicy::Lru);
        assert_eq!(own.fetch(7, 100), fetched(290, true, None));
        assert_eq!(own.fetch(7, 110), fetched(290, false, None), "it is under way");
        assert_eq!(own.fetch(7, 279), fetched(290, false, None));
        assert_eq!(own.fetch(7, 281), fetched(291, false, None), "a hit");
    }

    #[test]
    fn the_cells_read_one_line_after_another() {
        let mut own = buffer(4, BufferPolicy::Lru);
        let ready: Vec<Time> = (0..3).map(|row| own.fetch(row, 100).ready).collect();
        assert_eq!(ready, [290, 330, 370]);
        assert_eq!(own.fetch(3, 220).ready, 410, "just when they are free");
        assert_eq!(own.fetch(9, 1000).ready, 1190);
    }

    #[test]
    fn the_line_that_was_used_or_came_longest_ago_makes_room() {
        for (policy, stays) in [(BufferPolicy::Lru, 1), (BufferPolicy::Fifo, 2)] {
            let mut own = buffer(2, policy);
            [1, 2, 1, 3].into_iter().for_each(|row| _ = own.fetch(row, 0));
            assert_eq!((own.find(stays).is_some(), own.find(3 - stays)), (true, None), "{policy:?}");
        }
    }

    #[test]
    fn a_write_that_needs_the_room_of_a_dirty_line_waits_until_the_cells_take_another() {
        let mut own = buffer(2, BufferPolicy::Lru);
        for row in [1, 2] {
            assert_eq!(own.room_at(row), 0, "an empty place");
            own.fetch(row, 0);
            own.write(row, 5);
        }
        assert_eq!(own.room_at(3), 0, "the cells are idle");
        // In its cells 300 after the write began; the cells take the next line after 100.
        assert_eq!(own.fetch(3, 1000), fetched(1190, true, Some((0, 1300))));
        assert_eq!([own.room_at(4), own.room_at(2), own.room_at(3)], [1100, 0, 0], "hits wait for nothing");
        // A read does not wait, but the cells go on in order.
        assert_eq!(own.fetch(4, 1010).evicted, Some(EvictedLine { index: 1, done: 1400 }));
        assert_eq!(own.room_at(5), 0, "the line that makes room next is clean");
    }

    #[test]
    fn a_line_is_written_when_its_bytes_are_there() {
        let mut own = buffer(1, BufferPolicy::Lru);
        own.fetch(1, 0);
        own.write(1, 5);
        assert_eq!(own.write_back_ready(0), 190, "what the write did not bring is read first");
        assert_eq!((own.write_back(0, 50), own.is_dirty(0), own.row(0)), (490, false, Some(1)));
        own.write(1, 500);
        assert_eq!(own.write_back_ready(0), 500);
    }
}
