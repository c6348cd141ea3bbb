//! What a scheme that selects data paths tells about its decisions: plain data for outcomes and reports.
//!
//! Source: AGPM sections III and IV. A period is a number of log updates; at its end localities become a
//! reason, and the reason the way of the next period's log updates.

use durawarp_checkpoint::value;
use serde::{Deserialize, Serialize};

/// Locality in one cache: of how many accesses, by kind and by who made them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locality {
    /// Temporal (the same bytes again), of all accesses.
    pub t_all: u64,
    /// Temporal, of log updates.
    pub t_log: u64,
    /// Temporal or spatial (the same line again), of all accesses.
    pub s_all: u64,
    /// Temporal or spatial, of log updates.
    pub s_log: u64,
}

value!(record Locality { t_all, t_log, s_all, s_log });

impl Locality {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Locality) {
        self.t_all += other.t_all;
        self.t_log += other.t_log;
        self.s_all += other.s_all;
        self.s_log += other.s_log;
    }
}

/// One period of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Kernel.
    pub kernel: String,
    /// Launches of the program before it.
    pub launch: u32,
    /// Its number in the launch, from 0.
    pub number: u32,
    /// It came to its end; one that its kernel's end cut short decides nothing.
    pub complete: bool,
    /// Log updates after which it was to end.
    pub threshold_logs: u64,
    /// Log updates in it.
    pub logs: u64,
    /// Log updates of the launch up to its end.
    pub launch_logs: u64,
    /// When the selector began to count it (ticks): at its kernel's start, or at the end of the period
    /// before. 0 with
    /// [`Period::end_ticks`] in outcomes that do not say.
    #[serde(default)]
    pub begin_ticks: u64,
    /// When the selector had counted its log updates, or heard that its kernel ended (ticks); answers come
    /// later.
    #[serde(default)]
    pub end_ticks: u64,
    /// Log-update instructions of it that went through the caches. Fewer than `logs`, which counts accesses.
    #[serde(default)]
    pub temporal_logs: u64,
    /// Log-update instructions of it that bypassed the caches.
    #[serde(default)]
    pub non_temporal_logs: u64,
    /// Persists that were acknowledged in it.
    pub requests: u64,
    /// Core cycles from the issue of these to their acknowledgements; over `requests`, the paper's CWPPR.
    pub wait_cycles: u64,
    /// Locality at the L1 that is sampled.
    pub l1: Locality,
    /// Locality at the L2.
    pub l2: Locality,
    /// Counters that were full when they should have grown (increments).
    pub saturated: u64,
    /// Entries that went to the reservation buffer in memory.
    pub spills: u64,
    /// Entries that came back from it.
    pub refills: u64,
    /// The way of log updates in it: "temporal" or "non_temporal".
    pub path: String,
    /// Why the next way was chosen: the paper's letter, or "none".
    pub reason: String,
    /// The way that follows from the reason.
    pub next_path: String,
}

value!(record Period {
    kernel, launch, number, complete, threshold_logs, logs, launch_logs, begin_ticks, end_ticks, temporal_logs,
    non_temporal_logs, requests, wait_cycles, l1, l2, saturated, spills, refills, path, reason, next_path,
});

impl Period {
    /// Core cycles that a persist waited, on average.
    pub fn cwppr(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.wait_cycles as f64 / self.requests as f64 }
    }
}

/// The decisions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Periods in order; those beyond [`Selection::KEPT`] are counted but not kept.
    pub periods: Vec<Period>,
    /// Complete periods.
    pub complete: u64,
    /// Complete periods that changed the way.
    pub changes: u64,
    /// Decisions by reason: the paper's letters and "none".
    pub reasons: std::collections::BTreeMap<String, u64>,
    /// Log updates that went through the caches, and past them.
    pub temporal_logs: u64,
    /// Log updates that bypassed the caches.
    pub non_temporal_logs: u64,
    /// Write-backs of log updates that were dropped, since these had bypassed the caches.
    pub dropped_write_backs: u64,
    /// Bytes of entries moved to the reservation buffer and back.
    pub reservation_bytes: u64,
}

value!(record Selection {
    periods, complete, changes, reasons, temporal_logs, non_temporal_logs, dropped_write_backs, reservation_bytes,
});

impl Selection {
    /// Periods that are kept.
    pub const KEPT: usize = 10_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localities_add_up_count_by_count() {
        let mut sum = Locality { t_all: 1, t_log: 2, s_all: 3, s_log: 4 };
        sum.add(&Locality { t_all: 10, t_log: 20, s_all: 30, s_log: 40 });
        assert_eq!(sum, Locality { t_all: 11, t_log: 22, s_all: 33, s_log: 44 });
    }

    #[test]
    fn a_persist_waited_as_long_as_all_did_over_how_many_there_were() {
        let period = |requests, wait_cycles| Period { requests, wait_cycles, ..Period::default() }.cwppr();
        assert_eq!([period(8, 100), period(1, 7), period(0, 7)], [12.5, 7.0, 0.0]);
    }
}
