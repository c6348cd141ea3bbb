//! What a controller writes down: its journal and its timeline, each where it is kept. Nothing here is read
//! by the model.

use crate::msg::MAX_LINE_BYTES;
use durawarp_base::timeline::Label;
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;
use durawarp_persist::journal::{Author, FactKind, Notebook};
use durawarp_persist::outbox::Outbox;
use durawarp_persist::vocab::RegionStep;

use super::timeline::ControllerTimeline;

/// A controller's journal and timeline.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) journal: Option<Box<Notebook>>,
    pub(super) timeline: Option<Box<ControllerTimeline>>,
}

impl Notes {
    pub(super) fn keeps_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Something became of bytes of a line, of no one author.
    pub(super) fn data(&mut self, time: Time, kind: FactKind, line: u64, mask: u128, bytes: &[u8; MAX_LINE_BYTES]) {
        self.data_of(Author::Unknown, time, kind, line, mask, bytes);
    }

    /// The same, of an author's bytes.
    pub(super) fn data_of(
        &mut self,
        author: Author,
        time: Time,
        kind: FactKind,
        line: u64,
        mask: u128,
        bytes: &[u8; MAX_LINE_BYTES],
    ) {
        if let Some(journal) = &mut self.journal {
            journal.note_data(time, kind, line, mask, author, bytes);
        }
    }

    /// A region takes a step.
    pub(super) fn region_step(&mut self, step: RegionStep, author: Author, now: Time) {
        if let Some(timeline) = &mut self.timeline
            && let Author::HeldRegion { order, region, .. } = author
        {
            timeline.regions.step(step, order, region, now);
        }
    }

    /// What a handler said of regions; it holds `held` entries now.
    pub(super) fn regions(&mut self, outbox: &mut Outbox, held: impl FnOnce() -> u64, now: Time) {
        outbox.notes().for_each(|(step, author)| self.region_step(step, author, now));
        if let Some(timeline) = &mut self.timeline {
            timeline.regions.gated.note(now, held());
        }
        if self.journal.is_some() {
            outbox.write_notes(self.journal.as_deref_mut(), now);
        } else {
            outbox.drop_notes();
        }
    }

    /// So many entries of the WPQ are in use.
    pub(super) fn occupancy(&mut self, now: Time, entries: usize) {
        if let Some(timeline) = &mut self.timeline {
            timeline.wpq.note(now, entries as u64);
        }
    }

    /// A bank writes a line from `now` until `done`.
    pub(super) fn media_write(&mut self, bank: usize, line: u64, now: Time, done: Time) {
        if let Some(timeline) = &mut self.timeline {
            let label = Label::Write { line, persistent: Medium::of(line) == Medium::Nvm };
            timeline.media.whole(bank, now, done, label);
        }
    }
}
