//! What AGPM's selectors, banks and hub tell each other.
//!
//! Letters are few: one for so many log updates of an SM, one a period and place, one for a line that leaves the sampled L1.

use super::buffer::Entry;
use crate::persist::selection::Locality;
use crate::persist::{KernelFacts, Letter, Route, opened};

/// What an SM counted since it reported last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Log updates, by the reading of what counts as one.
    pub(super) logs: u64,
    /// Persists acknowledged, and core cycles they took.
    pub(super) requests: u64,
    pub(super) wait_cycles: u64,
    /// Log-update instructions by their way.
    pub(super) temporal: u64,
    pub(super) non_temporal: u64,
    pub(super) dropped_write_backs: u64,
}

/// A letter.
#[derive(Debug)]
pub(super) enum Word {
    /// Host to hub.
    KernelStart(KernelFacts),
    /// Host to hub.
    KernelEnd,
    /// SM to hub.
    Report(Report),
    /// Hub to selectors and banks: tell what was counted, and forget it.
    Count,
    /// The answer.
    Counts { locality: Locality, saturated: u64, spills: u64, refills: u64 },
    /// Hub to SMs: the way of a kernel's log updates from now on.
    Path { kernel: String, route: Route },
    /// SM to slice: an entry whose line has left the L1.
    Moved(Box<Entry>),
}

impl Word {
    /// What a letter of this scheme says.
    pub(super) fn of(letter: Box<dyn Letter>) -> Word {
        opened(letter)
    }
}

impl Letter for Word {
    fn digest(&self) -> u64 {
        match self {
            Word::KernelStart(facts) => facts.warps ^ u64::from(facts.launch) << 40,
            Word::KernelEnd => 1,
            Word::Report(report) => 2 << 56 ^ report.logs << 32 ^ report.wait_cycles,
            Word::Count => 3 << 56,
            Word::Counts { locality, spills, refills, .. } => {
                4 << 56 ^ locality.s_all ^ locality.t_all << 20 ^ locality.s_log << 40 ^ spills ^ refills << 8
            }
            Word::Path { route, .. } => 5 << 56 | u64::from(*route == Route::Temporal),
            Word::Moved(entry) => 6 << 56 ^ entry.line,
        }
    }
}
