//! The undo log of writes that a scheme's handler has made before their region is sure to persist.
//!
//! ```text
//!   logged flush ──> read of the old bytes ──column──> log's line into the write queue ──> the flush itself
//! ```
//! Source: LightWSP section IV-D (fallback with undo logging). A flush waits for its line of the log, and the
//! log for the read of the bytes that the flush replaces. A log's read begins when no other read waits for
//! the read queue and the write queue has room for the log's line and the flush: slow media hold the flushes
//! up, and not slices' reads. Reads of flushes that follow each other overlap. Invariants: flushes keep their
//! order, and one that needs no log waits for those before it; the log has what the flush replaces. Not
//! modelled: the bus time between a read's column command and its last byte.

use std::collections::VecDeque;

use crate::msg::{Line, MAX_LINE_BYTES, MemoryRead, sectors_touched};
use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::Flush;
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::RegionStep;

use super::channel::Channel;
use super::images::LOG;
use super::pending_write::NOBODY;

/// An undo log and the reads for it.
#[derive(Debug, Default)]
pub(super) struct UndoLog {
    /// Lines written, in turns over a row.
    lines: u64,
    /// For the first flushes to come, all logged: their old bytes are read.
    reads: VecDeque<bool>,
    /// Logs whose lines are written: the name of the first read.
    done: u16,
    /// The first flush's line is written.
    written: bool,
}

value!(record UndoLog { lines, reads, done, written });

impl UndoLog {
    /// The first flush's line may be written: what it replaces is known, and the write queue has room.
    pub(super) fn may_write(&self, channel: &Channel) -> bool {
        !self.written && channel.writes.has_room() && self.reads.front() == Some(&true)
    }

    /// The first flush's line is in the write queue: the flush itself may follow.
    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    /// Begins to read what the next flushes replace.
    pub(super) fn read_old_bytes(&mut self, flushes: &VecDeque<Flush>, channel: &mut Channel) {
        let begun = self.reads.len();
        // A logged flush takes two entries of the write queue: a line of the log, and its own.
        let room = channel.writes.free().div_ceil(2).saturating_sub(begun);
        let next = begun + usize::from(self.written);
        for flush in flushes.iter().take_while(|flush| flush.logged).skip(next).take(room) {
            let (line, sectors) = (flush.line, sectors_touched(flush.mask));
            if channel.forwards(line, sectors) {
                self.begin(true);
            } else if channel.reads.has_room() {
                let tag = self.begin(false);
                channel.push_read(MemoryRead { line, tag, slice: NOBODY, sectors, from: None, room: Box::default() });
            } else {
                return;
            }
        }
    }

    /// Puts the first flush's line of the log into the write queue: line after line of rows after everything
    /// that the channel has.
    pub(super) fn write_line(&mut self, flush: &Flush, channel: &mut Channel, now: Time) {
        self.reads.pop_front();
        self.done = self.done.wrapping_add(1);
        self.written = true;
        let (author, line, mask) = (flush.author, flush.line, flush.mask);
        let mut old = Line::default();
        channel.images.read(line, sectors_touched(mask), &mut old);
        channel.notes.data_of(author, now, FactKind::Region(RegionStep::Logged), line, mask, &old.bytes);
        let number = self.lines;
        self.lines += 1;
        let end = channel.images.of(Medium::Nvm).len() as u64;
        let offset = end.next_multiple_of(1 << 20) + number % (1 << 13) * MAX_LINE_BYTES as u64;
        let row = channel.media.place(Medium::Nvm, offset);
        channel.push_write(row, LOG | number << 7, mask, now);
    }

    fn begin(&mut self, read: bool) -> u16 {
        self.reads.push_back(read);
        self.done.wrapping_add(self.reads.len() as u16 - 1)
    }

    /// The old bytes of a flush have been read.
    pub(super) fn has_read(&mut self, tag: u16) {
        self.reads[usize::from(tag.wrapping_sub(self.done))] = true;
    }

    /// The first flush leaves, after its log where it has one.
    pub(super) fn begin_next(&mut self) {
        self.written = false;
    }
}
