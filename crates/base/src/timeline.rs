//! What components did when: spans and levels, each bounded in number, to be looked at after a run.
//!
//! A component that keeps a timeline notes spans (a CTA, a wait, a write under way) in a [`Recorder`] and
//! numbers that go up and down (occupancy of a queue) in a [`Level`]. It owns both, and neither is read while
//! the simulation runs. Afterwards they are collected in a [`Timeline`]: plain data, which `report` writes
//! out.
//!
//! Invariants: what is kept follows from what was noted alone, not from threads or the host. Spans of a lane
//! do not overlap. A recorder that is full keeps every second span of those it has, and of those to come; a
//! level that is full keeps the last value of stretches of time twice as long, so that it is never wrong for
//! longer than such a stretch.

mod growth;
mod recorder;
mod slice;

pub use growth::Growth;
pub use recorder::last_of_stretches;
pub use recorder::{Level, Recorder};
pub use slice::{Label, Slice};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What a track shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Spans one after another, by time.
    Slices(Vec<Slice>),
    /// A number and since when, in ticks, it has been that.
    Level(Vec<(u64, u64)>),
    /// A rate in thousandths, and since when, in ticks, it has been that.
    Thousandths(Vec<(u64, u64)>),
}

/// A row of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    pub name: String,
    /// What is in it, in the plural: tracks of a class are thinned alike.
    pub class: &'static str,
    /// What it shows.
    pub content: Content,
}

impl Content {
    /// Spans or values.
    pub fn len(&self) -> u64 {
        match self {
            Content::Slices(slices) => slices.len() as u64,
            Content::Level(values) | Content::Thousandths(values) => values.len() as u64,
        }
    }

    /// It has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Tracks that belong together: a component's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub name: String,
    /// From the top down.
    pub tracks: Vec<Track>,
}

/// A run as tracks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Ticks of a millisecond.
    pub tick_khz: u64,
    /// From the top down.
    pub processes: Vec<Process>,
    /// How many spans or values of each class were noted, those that were not kept included.
    pub noted: BTreeMap<&'static str, u64>,
}

impl Timeline {
    /// Ticks in picoseconds, rounded.
    pub fn ps_of_ticks(&self, ticks: u64) -> u64 {
        let khz = u128::from(self.tick_khz.max(1));
        ((u128::from(ticks) * 1_000_000_000 + khz / 2) / khz) as u64
    }
}

/// Puts slices that may overlap into as few rows as they need, each into the first that is free.
///
/// # Example: two that overlap, and one after them
/// ```
/// use durawarp_base::timeline::{Label, Slice, packed};
/// let slice = |start, end| Slice { start, end, label: Label::Kernel { launch: 0 }, cut: false };
/// let rows = packed(vec![slice(0, 10), slice(5, 8), slice(10, 12)]);
/// assert_eq!(rows, [vec![slice(0, 10), slice(10, 12)], vec![slice(5, 8)]]);
/// ```
pub fn packed(mut slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    slices.sort_by_key(|slice| (slice.start, slice.end));
    let mut rows: Vec<Vec<Slice>> = Vec::new();
    let (mut busy, mut free) = (BinaryHeap::new(), BinaryHeap::new());
    for slice in slices {
        while let Some(&Reverse((end, row))) = busy.peek()
            && end <= slice.start
        {
            busy.pop();
            free.push(Reverse(row));
        }
        let row = match free.pop() {
            Some(Reverse(row)) => row,
            None => {
                rows.push(Vec::new());
                rows.len() - 1
            }
        };
        rows[row].push(slice);
        busy.push(Reverse((slice.end, row)));
    }
    rows
}
