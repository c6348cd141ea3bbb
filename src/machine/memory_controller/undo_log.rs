//! The undo log of writes that a scheme's handler has made before their region is sure to persist.
//!
//! ```text
//!   logged flush ──> read of the old bytes ──column──> log's line into the write queue ──> the flush itself
//! ```
//! Source: LightWSP section IV-D (fallback with undo logging). A flush waits for its log, and that for the read of what it
//! replaces; so media that are slower than the stores hold the stores up, and slices' reads find room: a log's read begins only when no
//! other waits for the read queue, and as the write queue has room for what comes of it. Reads of flushes that follow each
//! other overlap. Invariants: flushes keep their order, and one that needs no log waits for those before it; what is logged is what the
//! flush replaces. Not modelled: the bus time between a read's column command and its last byte.

use std::collections::VecDeque;

use crate::engine::Time;
use crate::kernel::memory::Medium;
use crate::machine::msg::{Line, MAX_LINE_BYTES, MemoryRead, sectors_touched};
use crate::persist::journal::FactKind;
use crate::persist::vocab::RegionStep;

use super::MemoryController;
use super::gated::{Gated, NOBODY};

/// Lines of an undo log have no address that programs could have.
const LOG: u64 = 1 << 62;

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

impl UndoLog {
    fn begin(&mut self, read: bool) -> u16 {
        self.reads.push_back(read);
        self.done.wrapping_add(self.reads.len() as u16 - 1)
    }

    /// The old bytes of a flush have been read.
    pub(super) fn has_read(&mut self, tag: u16) {
        self.reads[usize::from(tag.wrapping_sub(self.done))] = true;
    }

    /// The first flush leaves, behind its log where it has one.
    pub(super) fn begin_next(&mut self) {
        self.written = false;
    }
}

impl MemoryController {
    /// The first flush, which is logged, may be written: its log is in the write queue.
    pub(super) fn is_logged(&mut self, gated: &mut Gated, now: Time) -> bool {
        self.read_old_bytes(gated);
        let log = &mut gated.undo_log;
        if !log.written && self.has_room() && log.reads.front() == Some(&true) {
            log.reads.pop_front();
            log.done = log.done.wrapping_add(1);
            log.written = true;
            self.write_log(gated, now);
        }
        gated.undo_log.written
    }

    /// Begins to read what the next flushes replace.
    fn read_old_bytes(&mut self, gated: &mut Gated) {
        let Gated { outbox, undo_log, .. } = gated;
        let begun = undo_log.reads.len();
        // A line of the log and a write each.
        let room = (self.spec.write_queue_entries as usize - self.writes.len()).div_ceil(2).saturating_sub(begun);
        let next = begun + usize::from(undo_log.written);
        for flush in outbox.flushes().iter().take_while(|flush| flush.logged).skip(next).take(room) {
            let (line, sectors) = (flush.line, sectors_touched(flush.mask));
            if self.forwards(line, sectors) {
                undo_log.begin(true);
            } else if self.takes_read() {
                let tag = undo_log.begin(false);
                self.push_read(MemoryRead { line, tag, slice: NOBODY, sectors, room: Box::default() });
            } else {
                return;
            }
        }
    }

    /// Puts the first flush's line of the log into the write queue: line after line of rows behind everything that the channel has.
    fn write_log(&mut self, gated: &mut Gated, now: Time) {
        let Some(flush) = gated.outbox.flushes().front() else { unreachable!("it has been read for") };
        let (author, line, mask) = (flush.author, flush.line, flush.mask);
        gated.outbox.write_notes(self.journal.as_deref_mut(), now);
        let mut old = Line::default();
        self.read_image(line, sectors_touched(mask), &mut old);
        if let Some(journal) = &mut self.journal {
            journal.note_data(now, FactKind::Region(RegionStep::Logged), line, mask, author, &old.bytes);
        }
        let number = gated.undo_log.lines;
        gated.undo_log.lines += 1;
        let behind = self.images[Medium::Nvm as usize].len() as u64;
        let offset = behind.next_multiple_of(1 << 20) + number % (1 << 13) * MAX_LINE_BYTES as u64;
        let place = self.media.place(Medium::Nvm, offset);
        self.push_write(place, LOG | number << 7, mask, now);
    }
}
