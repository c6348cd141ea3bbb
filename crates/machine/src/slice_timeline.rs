//! The timeline of a slice, of an L2 or of a shared cache of CPUs: its writes to memory until they were
//! durable, its reads and their hits over time.

use durawarp_base::timeline::{Growth, Label, Level, Recorder};
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;

/// What a slice keeps for a timeline.
#[derive(Debug)]
pub struct SliceTimeline {
    /// By token: writes from their leaving the slice until they were durable, or accepted where they go to
    /// DRAM.
    pub writes: Recorder,
    /// How many are on their way, as the slice knows.
    pub under_way: Level,
    /// Reads and their hits; of a home slice hits and fetches, which are counted when a request's turn comes.
    pub growth: Growth,
}

impl SliceTimeline {
    /// An empty one of at most `spans` spans and values.
    pub(super) fn new(spans: usize) -> Self {
        SliceTimeline { writes: Recorder::new(spans), under_way: Level::new(spans), growth: Growth::new(2, 0) }
    }

    /// A write of a line leaves. `under_way` writes are on their way with it.
    pub(super) fn opened(&mut self, token: u16, line: u64, now: Time, under_way: usize) {
        let label = Label::Write { line, persistent: Medium::of(line) == Medium::Nvm };
        self.writes.begin(usize::from(token), now, label);
        self.under_way.note(now, under_way as u64);
    }

    /// A write is durable since `at`, as the slice knows `now`.
    pub(super) fn durable(&mut self, token: u16, at: Time, now: Time, under_way: usize) {
        self.writes.end(usize::from(token), at);
        self.under_way.note(now, under_way as u64);
    }
}
