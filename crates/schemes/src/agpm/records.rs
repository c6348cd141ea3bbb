//! Log updates that stay known to the end of the program: which addresses of each line were logged.
//!
//! ```text
//!   line -> known: an address a bit | fresh: the same, of the instruction that logs now | by: who that is
//! ```
//! An access counts as temporal where its address is known, and as spatial where any address of its line is.
//! What is counted is counted for the launch whose access it is; what is known is known to all launches.
//! Accesses of one instruction do not count for each other: what it logs is fresh until the next access of
//! the line that is not its own. An access is of the same instruction when the same warp logs in the same way
//! and at addresses that are not fresh yet.
//!
//! Source: the arithmetic of AGPM's Table II (`benches/results/papers.md`, "How Table II was counted"); the
//! reservation buffer of its section IV-B keeps what was counted of lines that left the caches. Invariant: an
//! address that is known stays known. Not modelled: the memory that the records take in hardware.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use durawarp_checkpoint::{state, value};
use durawarp_persist::selection::Locality;
use durawarp_persist::{Access, AccessKind};

/// Lengths of a transaction: a segment of 128 bytes, halved while one half of it is not used.
const LENGTHS: [u32; 3] = [32, 64, 128];

/// Who logs: requester and warp, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Logger {
    from: u16,
    warp: u8,
    log: bool,
    atomic: bool,
}

value!(record Logger { from, warp, log, atomic });

/// What was logged of a line, an address a bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LoggedLine {
    known: u128,
    fresh: u128,
    by: Logger,
}

value!(record LoggedLine { known, fresh, by });

/// The records of a level of caches.
#[derive(Debug, Default)]
pub(super) struct Records {
    lines: HashMap<u64, LoggedLine>,
    /// By places of launches.
    hits: BTreeMap<u8, Locality>,
}

state!(Records { saved: lines, hits });

/// The bit of the transaction that these bytes of a line make: where it begins.
pub(super) fn transaction(bytes: u128) -> u128 {
    if bytes == 0 {
        return 0;
    }
    let (first, last) = (bytes.trailing_zeros(), 127 - bytes.leading_zeros());
    let length = LENGTHS.into_iter().find(|length| first / length == last / length).unwrap_or(128);
    1 << (first / length * length)
}

impl Records {
    /// An access to these addresses of its line: a log update, or another. It is counted if it `counts`.
    pub(super) fn refer(&mut self, access: &Access, addresses: u128, log: bool, counts: bool) {
        let record = match log {
            true => self.lines.entry(access.line).or_default(),
            false => match self.lines.get_mut(&access.line) {
                Some(record) => record,
                None => return,
            },
        };
        let atomic = access.kind == AccessKind::Atomic;
        let by = Logger { from: access.from, warp: access.by.0, log: access.log, atomic };
        if !log || record.by != by || record.fresh & addresses != 0 {
            record.known |= std::mem::take(&mut record.fresh);
        }
        let (temporal, spatial) = (record.known & addresses != 0, record.known != 0);
        if log {
            (record.by, record.fresh) = (by, record.fresh | addresses);
        }
        if counts {
            let hits = self.hits.entry(access.launch).or_default();
            hits.t_all += u64::from(temporal);
            hits.s_all += u64::from(spatial);
            hits.t_log += u64::from(temporal && log);
            hits.s_log += u64::from(spatial && log);
        }
    }

    /// What is known of a line; nothing is 0.
    pub(super) fn of(&self, line: u64) -> u128 {
        self.lines.get(&line).map_or(0, |record| record.known | record.fresh)
    }

    /// Others have logged these addresses of a line.
    pub(super) fn learn(&mut self, line: u64, addresses: u128) {
        self.lines.entry(line).or_default().known |= addresses;
    }

    /// Accesses counted for a launch since that was asked last.
    pub(super) fn hits(&self, launch: u8) -> Locality {
        self.hits.get(&launch).copied().unwrap_or_default()
    }

    /// Counts from 0 again for a launch. What is known stays.
    pub(super) fn restart(&mut self, launch: u8) {
        self.hits.remove(&launch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store of a warp of an SM to 64 bytes of line 0.
    fn store(warp: u8, log: bool) -> Access {
        let kind = AccessKind::Store;
        Access { line: 0, bytes: 0, kind, half_warps: 1, by: (warp, 0), launch: 0, from: 3, mark: 0, log, hit: true }
    }

    fn load() -> Access {
        Access { kind: AccessKind::Load, ..store(0, false) }
    }

    #[test]
    fn a_transaction_begins_where_its_halved_segment_does() {
        let starts = |bytes: std::ops::Range<u32>| {
            transaction((bytes.start..bytes.end).fold(0, |mask, byte| mask | 1 << byte)).trailing_zeros()
        };
        // Whole segments and halves, then what lies across the middle of one.
        assert_eq!([0..128, 0..64, 64..128].map(starts), [0, 0, 64]);
        assert_eq!([32..36, 100..104, 124..128, 72..76].map(starts), [32, 96, 96, 64]);
        assert_eq!([28..36, 60..68, 92..100, 8..72].map(starts), [0, 0, 64, 0]);
        assert_eq!(transaction(0), 0);
    }

    #[test]
    fn half_warps_of_one_store_do_not_count_for_each_other_and_those_of_the_next_do() {
        let mut records = Records::default();
        for half in [1, 1 << 64] {
            records.refer(&store(1, true), half, true, true);
        }
        assert_eq!(records.hits(0), Locality::default());
        records.refer(&store(1, true), 1, true, true);
        assert_eq!(records.hits(0), Locality { t_all: 1, t_log: 1, s_all: 1, s_log: 1 });
        // The second half of this one knows the first store's, not the first half of its own.
        records.refer(&store(1, true), 1 << 64, true, true);
        assert_eq!(records.hits(0), Locality { t_all: 2, t_log: 2, s_all: 2, s_log: 2 });
    }

    #[test]
    fn another_warps_update_counts_at_once() {
        let mut records = Records::default();
        records.refer(&store(1, true), 1, true, true);
        records.refer(&store(2, true), 1 << 64, true, true);
        assert_eq!(records.hits(0), Locality { s_all: 1, s_log: 1, ..Locality::default() });
        // By the way of logging and by the requester, too.
        records.refer(&store(2, false), 1 << 32, true, true);
        records.refer(&Access { from: 4, ..store(2, false) }, 1 << 96, true, true);
        assert_eq!(records.hits(0), Locality { s_all: 3, s_log: 3, ..Locality::default() });
    }

    #[test]
    fn a_load_counts_for_all_and_makes_nothing_known() {
        let mut records = Records::default();
        records.refer(&load(), 1, false, true);
        assert_eq!((records.of(0), records.hits(0)), (0, Locality::default()));
        records.refer(&store(1, false), 1, true, true);
        records.refer(&load(), 1, false, true);
        records.refer(&load(), 1 << 32, false, true);
        assert_eq!(records.hits(0), Locality { t_all: 1, s_all: 2, ..Locality::default() });
        records.refer(&load(), 1, false, false);
        assert_eq!(records.hits(0).s_all, 2, "it does not hit in the cache");
        records.restart(0);
        records.refer(&load(), 1, false, true);
        assert_eq!(records.hits(0), Locality { t_all: 1, s_all: 1, ..Locality::default() }, "what is known stays");
    }

    #[test]
    fn what_others_have_logged_is_learnt() {
        let mut records = Records::default();
        records.learn(0, 1 << 64);
        assert_eq!((records.of(0), records.of(128)), (1 << 64, 0));
        records.refer(&load(), 1, false, true);
        assert_eq!(records.hits(0), Locality { s_all: 1, ..Locality::default() });
    }
}
