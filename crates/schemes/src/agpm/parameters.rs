//! AGPM's parameters: the paper's numbers, and a name for each way to read what the paper leaves open.
//!
//! Source: AGPM section IV and Table III; the defaults with their sources are in `agpm.toml`. The readings
//! are numbered: A1 what the counters count, A2 to A4 what a log update is found by, A5 its first byte, A6
//! who decides, A7 the first way, A8 and A9 the threshold, A10 to A12 gaps of Table III, A13 shared memory,
//! A14 traffic of the reservation buffer, A15 saturation (not a choice: counters saturate), A16 to A18 what
//! Table II counts, A19 launches in flight together (not a choice: each has periods, evidence and buffers of
//! its own). Left out: what does not go with a machine (a sampled SM beyond the last).

use durawarp_base::choice;
use durawarp_base::spec;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("agpm.toml");

choice! {
    /// What a locality is a count of (A1).
    pub enum Statistics {
        /// The sum of the entries' counters over 1, as the hardware has it.
        CounterSum = "counter_sum",
        /// Requests that touch again, as Table II shows.
        Hits = "hits",
    }
}

choice! {
    /// By which address a log update is tracked (A2).
    pub enum LogKey {
        /// That of the element that it saves.
        Home = "home",
        /// Its own, in the log.
        Slot = "slot",
        /// Either.
        Both = "both",
    }
}

choice! {
    /// When an access counts as one that finds its address again (A3, A4).
    pub enum Hit {
        /// When its address has an entry, whatever the caches hold.
        Shadow = "shadow",
        /// When it has an entry and hits in the cache of that level.
        Cache = "cache",
    }
}

choice! {
    /// How long a log update is known (A16).
    pub enum KnownFor {
        /// As long as a buffer, or the reservation buffer, has its line's entry.
        Buffered = "buffered",
        /// To the end of the program: over evictions and kernels, and in every SM that fetches its line.
        Program = "program",
    }
}

choice! {
    /// What an access has to touch again to be temporal (A17).
    pub enum TemporalUnit {
        /// Bytes.
        Bytes = "bytes",
        /// The address at which its transaction begins: of 32, 64 or 128 bytes, as few as hold its bytes.
        Transaction = "transaction",
    }
}

choice! {
    /// Whether flags of transactions are log updates of locality (A18).
    pub enum Flags {
        /// As any store to persistent memory.
        Tracked = "tracked",
        /// They are left alone.
        Untracked = "untracked",
    }
}

choice! {
    /// What a log update does to the counter of its first byte (A5).
    pub enum PmFirstByte {
        /// Sets one that is 0 to 1.
        Set = "set",
        /// Leaves it 0.
        Literal = "literal",
    }
}

choice! {
    /// Whose decision an SM follows (A6).
    pub enum Decision {
        /// One for all SMs.
        Shared = "shared",
        /// Its own, from its own L1 buffer.
        Sm = "sm",
    }
}

choice! {
    /// A way of log updates that is chosen without evidence (A7).
    pub enum FirstPath {
        /// Past the caches.
        NonTemporal = "non_temporal",
        /// Through the caches.
        Temporal = "temporal",
    }
}

choice! {
    /// How the threshold changes from one decision to the next (A9).
    pub enum ThresholdRule {
        /// As the paper says, between a least and a greatest, and with a dead band.
        Clamped = "clamped",
        /// As the paper says.
        Literal = "literal",
        /// Not at all.
        Fixed = "fixed",
    }
}

choice! {
    /// Which of two shares decides when one is strong and the other is not (A10).
    pub enum MixedShare {
        /// The greater: one strong share is enough.
        Greater = "greater",
        /// The lesser: both have to be strong.
        Lesser = "lesser",
    }
}

choice! {
    /// What happens where no rule of Table III holds (A11).
    pub enum Uncovered {
        /// Past the caches.
        NonTemporal = "non_temporal",
        /// Through the caches.
        Temporal = "temporal",
        /// The way stays what it was.
        Hold = "hold",
    }
}

choice! {
    /// Over what the few log updates of reason e are counted (A12).
    pub enum FewLogsOver {
        /// The kernel so far.
        Kernel = "kernel",
        /// The period.
        Period = "period",
    }
}

choice! {
    /// When a kernel communicates through shared memory, reason h (A13).
    pub enum SharedMemory {
        /// When it declares any.
        Declared = "declared",
        /// Never.
        Off = "off",
        /// When its text writes it, has a barrier, and reads it.
        Communication = "communication",
        /// When a warp has read what another one wrote there.
        Measured = "measured",
        /// When its manifest states so; measured, where that states nothing.
        Stated = "stated",
    }
}

choice! {
    /// Which SMs have an L1 buffer.
    pub enum L1Buffers {
        /// The sampled one.
        One = "one",
        /// Each.
        Each = "each",
    }
}

choice! {
    /// Which entry of a buffer makes room for another.
    pub enum Placement {
        /// That of its set, of one line, which the line's number gives.
        Indexed = "indexed",
        /// The least recently used of all.
        Associative = "associative",
    }
}

choice! {
    /// The way of log updates.
    pub enum Path {
        /// As decided.
        Adaptive = "adaptive",
        /// Through the caches, always.
        Temporal = "temporal",
        /// Past the caches, always.
        NonTemporal = "non_temporal",
        /// Each way in turns.
        Alternate = "alternate",
    }
}

choice! {
    /// Which accesses are counted against the threshold and the few logs.
    pub enum Counted {
        /// Line accesses of stores to persistent memory and of write-backs, as Table II's `log`.
        Requests = "requests",
        /// Line accesses of log updates.
        LogUpdates = "log_updates",
    }
}

choice! {
    /// What is counted as one log.
    pub enum LogUnit {
        /// An access of a half-warp, the unit of Table II and so of its 10,000, whatever coalesces here.
        HalfWarps = "half_warps",
        /// An access as this machine coalesces it.
        Accesses = "accesses",
    }
}

choice! {
    /// Which stores take the way that is selected.
    pub enum Routed {
        /// Log updates, as the paper says.
        LogUpdates = "log_updates",
        /// All stores to persistent memory, as the paper counts log updates.
        Requests = "requests",
    }
}

spec! {
    /// Parameters of AGPM.
    pub struct AgpmSpec {
        /// What a locality is a count of (A1).
        statistics: Statistics,
        /// By which address a log update is tracked (A2).
        key: LogKey,
        /// When an access counts as one that finds its address again (A3, A4).
        hit: Hit,
        /// How long a log update is known (A16).
        known: KnownFor,
        /// What an access has to touch again to be temporal (A17).
        temporal: TemporalUnit,
        /// Whether flags of transactions are log updates of locality (A18).
        flags: Flags,
        /// What a log update does to the counter of its first byte (A5).
        pm_first_byte: PmFirstByte,
        /// Whose decision an SM follows (A6).
        decision: Decision,
        /// The way of log updates before the first decision (A7).
        first_path: FirstPath,
        /// Logs of a period: after so many there is a decision.
        threshold_logs: u64 where 1..=1_000_000_000,
        /// The least threshold of a kernel that is known to have fewer logs than the threshold (A8).
        least_threshold_logs: u64 where 1..=1_000_000_000,
        /// Such a kernel's logs are divided by it for its threshold (A8).
        small_divisor: u64 where 1..=1_000_000,
        /// How the threshold changes from one decision to the next (A9).
        threshold_rule: ThresholdRule,
        /// A step of the threshold, in percent of it.
        step_percent: u64 where 1..=99,
        /// The least threshold that steps lead to, where they are clamped (A9).
        threshold_min_logs: u64 where 1..=1_000_000_000,
        /// The greatest threshold that steps lead to, where they are clamped (A9).
        threshold_max_logs: u64 where 1..=1_000_000_000,
        /// Changes up to so much do not move the threshold, where it is clamped (A9).
        dead_band_percent: u64 where 0..=100,
        /// Which share decides when one is strong and the other is not (A10).
        mixed_share: MixedShare,
        /// A share of log updates over this is strong.
        strong_share_percent: u64 where 0..=100,
        /// What happens where no rule holds (A11).
        uncovered: Uncovered,
        /// Up to so many logs are few.
        few_logs: u64 where 0..=1_000_000_000,
        /// Over what few logs are counted (A12).
        few_logs_over: FewLogsOver,
        /// When a kernel communicates through shared memory (A13).
        shared_memory: SharedMemory,
        /// Entries that move to the reservation buffer and back take bandwidth of the memory (A14).
        charge_reservation: bool,
        /// Bytes of an entry that moves.
        reservation_bytes: u32 where 1..=128,
        /// Width of the counters, which saturate (A15).
        counter_bits: u32 where 1..=8,
        /// Which SMs have an L1 buffer.
        l1_buffers: L1Buffers,
        /// The SM that has the one L1 buffer.
        sampled_sm: u32 where 0..=65_535,
        /// Entries of a buffer, both ways together; the L2's is divided among its slices.
        entries: u32 where 2..=1_048_576,
        /// Which entry makes room for another: that of its set (indexed) or the least recently used
        /// (associative).
        placement: Placement,
        /// The way of log updates: decided, or forced for experiments.
        path: Path,
        /// Log updates of an SM after which the way changes, where it alternates.
        alternate_logs: u64 where 1..=1_000_000_000,
        /// Which stores take the way that is selected.
        routed: Routed,
        /// Which accesses are counted against the threshold and the few logs.
        counted: Counted,
        /// What one of them is: an access of a half-warp, or an access.
        log_unit: LogUnit,
        /// An SM tells the selector after so many logs.
        report_logs: u64 where 1..=1_000_000_000,
    }
}

impl AgpmSpec {
    /// The defaults with some values changed, for tests.
    #[cfg(test)]
    pub(super) fn with(changes: &[(&str, serde_json::Value)]) -> std::sync::Arc<AgpmSpec> {
        let mut values = serde_json::Value::Object(crate::entry::values_of::<AgpmSpec>(DEFAULTS));
        for (key, value) in changes {
            values[*key] = value.clone();
        }
        std::sync::Arc::new(serde_json::from_value(values).unwrap())
    }

    /// What is wrong with the values together, each being valid by itself: the key to blame, and why.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, key: &'static str, why: String| {
            if !holds {
                faults.push((key, why));
            }
        };
        let (min, max) = (self.threshold_min_logs, self.threshold_max_logs);
        require(min <= max, "threshold_min_logs", format!("{min} is more than threshold_max_logs ({max})"));
        require(
            self.entries.is_multiple_of(2),
            "entries",
            format!("{} entries do not divide evenly over 2 ways", self.entries),
        );
        require(
            self.known == KnownFor::Buffered || self.statistics == Statistics::Hits,
            "known",
            "log updates known to the program's end have no counters to sum: statistics = \"hits\"".to_owned(),
        );
        require(
            self.decision == Decision::Shared || self.l1_buffers == L1Buffers::Each,
            "decision",
            "an SM that decides by its own L1 buffer needs one: l1_buffers = \"each\"".to_owned(),
        );
        faults
    }
}
