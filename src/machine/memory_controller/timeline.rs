//! The timeline of a memory controller: occupancy of its write-pending queue, writes to its media. Nothing here is read by
//! the model.

use crate::engine::Time;
use crate::kernel::memory::Medium;
use crate::timeline::{Label, Level, Recorder};

use super::MemoryController;

/// What a controller keeps for a timeline.
#[derive(Debug)]
pub struct ControllerTimeline {
    /// By bank: writes from their column command until the bank has done with them.
    pub media: Recorder,
    /// Entries of the WPQ in use.
    pub wpq: Level,
}

impl MemoryController {
    /// Keeps a timeline from now on, of up to so many spans and values.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.timeline = Some(Box::new(ControllerTimeline { media: Recorder::new(spans), wpq: Level::new(spans) }));
    }

    /// The timeline it kept.
    pub fn timeline(&self) -> Option<&ControllerTimeline> {
        self.timeline.as_deref()
    }

    pub(super) fn note_occupancy(&mut self, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            timeline.wpq.note(now, self.writes.len() as u64);
        }
    }

    /// A bank writes a line from `now` until `done`.
    pub(super) fn note_media_write(&mut self, bank: usize, line: u64, now: Time, done: Time) {
        if let Some(timeline) = &mut self.timeline {
            let label = Label::Write { line, persistent: Medium::of(line) == Medium::Nvm };
            timeline.media.whole(bank, now, done, label);
        }
    }
}
