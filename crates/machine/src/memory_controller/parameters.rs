//! Parameters of memory controllers, and what they count.

use crate::device::Device;
use crate::mapping::{AddressMap, Field, Geometry};
use crate::media::MediaSpec;
use durawarp_base::choice;
use durawarp_base::counters;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

choice! {
    /// When a row is closed that no other row's request waits to have closed.
    pub enum PagePolicy {
        /// Never.
        Open = "open",
        /// Behind every column command.
        Closed = "closed",
        /// Behind a column command after which no request to the row waits, and one to another row does.
        OpenAdaptive = "open_adaptive",
        /// Behind a column command after which no request to the row waits.
        ClosedAdaptive = "closed_adaptive",
        /// When it was not used for `page_timeout_ns`, and no request to it waits.
        Timeout = "timeout",
    }
}

choice! {
    /// Which request a memory controller serves first.
    pub enum MemoryScheduler {
        /// The oldest.
        Fcfs = "fcfs",
        /// The oldest whose row is open, else the oldest, with a cap of hits that pass an older one.
        Frfcfs = "frfcfs",
        /// The same with the highest cap.
        FrfcfsRowHit = "frfcfs_row_hit",
        /// Those of sources that are not blacklisted first.
        Bliss = "bliss",
        /// Those of sources with the least service first.
        Atlas = "atlas",
    }
}

spec! {
    /// Parameters of every memory controller.
    pub struct ControllerSpec {
        /// Memory channels, each with a controller.
        channels: u32 where 1..=256,
        /// Which channel, bank and row an address lies in: ours, RoBaRaCoCh, RoRaBaChCo, RoCoRaBaCh,
        /// MOP4CLXOR, gpgpu-ipoly, or fields and hashes, as in `Ro Ba Co Ch; Ba ^= Ro`.
        mapping: String,
        /// Reads that the scheduler chooses from.
        read_queue_entries: u32 where 1..=256,
        /// Write-pending queue: writes accepted and not yet at the media.
        write_queue_entries: u32 where 1..=1024,
        /// Reads of one L2 slice that may be on their way or in the controller.
        ingress_reads: u32 where 1..=1024,
        /// Writes of one L2 slice that may be on their way or waiting for a WPQ entry.
        ingress_writes: u32 where 1..=1024,
        /// WPQ entries at which draining starts.
        drain_high_entries: u32 where 1..=1024,
        /// WPQ entries at which draining stops when reads wait; where it does not get there, as many writes
        /// as the WPQ has entries are drained, and reads have their turn.
        drain_low_entries: u32 where 0..=1024,
        /// WPQ entries that are left waiting while no read waits and no drain is under way: later writes to
        /// their lines merge. Without effect where only the media survive a power failure.
        drain_idle_entries: u32 where 0..=1024,
        /// Writes drained at least before reads are served again.
        drain_min_writes: u32 where 1..=1024,
        /// Row hits that may pass an older request of the same bank.
        row_hit_cap: u32 where 1..=1024,
        /// When a row is closed that no request to another row has closed: open (never), closed (behind every
        /// access), open_adaptive (behind one when requests of its direction wait for other rows of the bank
        /// and none for this one), closed_adaptive (when none waits for this one), timeout (after a time).
        page: PagePolicy,
        /// How long a row stays open that is not used. Under `timeout`.
        page_timeout_ns: Nanos,
        /// Which request is served first: fcfs (the oldest), frfcfs (the oldest whose row is open), the same
        /// without `row_hit_cap` (frfcfs_row_hit), bliss (of sources that are not blacklisted), atlas (of
        /// sources with the least service).
        scheduler: MemoryScheduler,
        /// Reads of one source in a row that blacklist it. Under `bliss`.
        blacklist_streak: u32 where 1..=1024,
        /// From one clearing of the blacklist to the next, in memory cycles. Under `bliss`.
        blacklist_clear_cycles: u32 where 1..=1000000000,
        /// From one ranking of the sources to the next, in memory cycles. Under `atlas`.
        service_quantum_cycles: u32 where 1..=1000000000,
        /// What older quanta are of a source's service, in thousandths. Under `atlas`.
        service_history_permille: u32 where 0..=999,
        /// A read that has waited so long, in memory cycles, is served before all that have not. Under
        /// `bliss` and `atlas`.
        starvation_cycles: u32 where 1..=1000000000,
        /// L2 slice to controller.
        front_ns: Nanos,
        /// Controller to L2 slice.
        back_ns: Nanos,
        /// A read that the WPQ answers whole: from its arrival to its data.
        forward_ns: Nanos,
    }
}

spec! {
    /// A cache in DRAM in front of persistent memory that is used as main memory: memory mode. It is there
    /// where a program's main memory is persistent, caches do not survive a power failure, and the scheme has
    /// nothing in the controllers.
    pub struct DramCacheSpec {
        /// Its size in all channels together, direct-mapped; 0 for none.
        mb: u32 where 0..=1048576,
    }
}

counters! {
    /// What the DRAM cache of one memory controller counted.
    pub struct DramCacheCounters {
        /// Reads of persistent memory whose line was there (requests)
        read_hits,
        /// Reads of persistent memory whose line was not there (requests)
        read_misses,
        /// Writes to persistent memory whose line was there (requests)
        write_hits,
        /// Writes to persistent memory that brought their line (requests)
        write_misses,
        /// Dirty lines written to NVM, or dropped, because another line took their place (lines)
        dirty_victims,
        /// Lines written to persistent memory because of a clean that found them dirty here alone (lines)
        dirty_cleans,
        /// Misses that waited for writes to have entries in the WPQ (requests)
        held_misses,
    }
}

/// Why a link's latency cannot be zero: it is the lookahead between the components that it joins.
pub const LINK_WITHOUT_LATENCY: &str = "a link needs a latency greater than 0";

impl ControllerSpec {
    /// Its mapping on a machine of so many slices, which takes chunks of `chunk_bytes`; devices of DRAM and
    /// of NVM are those of tables, where there are any.
    ///
    /// # Errors
    /// What is wrong with its text, or with it on this machine.
    pub fn address_map(
        &self,
        [slices, chunk_bytes]: [u32; 2],
        plain: [&MediaSpec; 2],
        tables: [Option<&Device>; 2],
    ) -> Result<AddressMap, String> {
        let of = |medium: usize| {
            let (rows, table) = (plain[medium], tables[medium].map(|device| &device.organisation));
            // Bank i is of group i modulo their number.
            let groups = if rows.banks.is_multiple_of(rows.bank_groups) { rows.bank_groups } else { 1 };
            let of_keys = || vec![(Field::Bank, rows.banks / groups), (Field::BankGroup, groups)];
            let of_level = |(name, count): &(String, u32)| (Field::of_level(name), *count);
            Geometry {
                levels: table.map_or_else(of_keys, |own| own.levels.iter().map(of_level).collect()),
                row_bytes: table.map_or(rows.row_bytes, |own| own.row_bytes),
                channels: self.channels,
                slices_per_channel: slices / self.channels,
                chunk_bytes,
            }
        };
        AddressMap::new(&self.mapping, [of(0), of(1)])
    }

    /// Small queues, for tests.
    #[cfg(test)]
    pub(super) fn small() -> ControllerSpec {
        let ns = Nanos { ps: 0 };
        ControllerSpec {
            channels: 1,
            mapping: "ours".into(),
            read_queue_entries: 8,
            write_queue_entries: 8,
            ingress_reads: 8,
            ingress_writes: 8,
            drain_high_entries: 6,
            drain_low_entries: 2,
            drain_idle_entries: 1,
            drain_min_writes: 3,
            row_hit_cap: 4,
            page: PagePolicy::Open,
            page_timeout_ns: ns,
            scheduler: MemoryScheduler::Frfcfs,
            blacklist_streak: 4,
            blacklist_clear_cycles: 10_000,
            service_quantum_cycles: 10_000_000,
            service_history_permille: 875,
            starvation_cycles: 100_000,
            front_ns: ns,
            back_ns: ns,
            forward_ns: ns,
        }
    }

    /// What is wrong with the values together, and with the machine's sizes of lines and rows in bytes: the
    /// key to blame, and why.
    pub fn faults(&self, line_bytes: u32, dram_row_bytes: u32, nvm_row_bytes: u32) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, key: &'static str, why: String| {
            if !holds {
                faults.push((key, why));
            }
        };
        require(
            // A drain begins at the high mark and ends at the low one; a high mark above the queue's entries
            // would never be reached.
            self.drain_low_entries < self.drain_high_entries && self.drain_high_entries <= self.write_queue_entries,
            "controller.drain_high_entries",
            format!(
                "it must lie above drain_low_entries ({}) and at most at write_queue_entries ({})",
                self.drain_low_entries, self.write_queue_entries
            ),
        );
        require(
            self.drain_idle_entries < self.drain_high_entries,
            "controller.drain_idle_entries",
            format!("{} is not less than drain_high_entries ({})", self.drain_idle_entries, self.drain_high_entries),
        );
        for (key, row) in [("dram.row_bytes", dram_row_bytes), ("nvm.row_bytes", nvm_row_bytes)] {
            let holds = row.is_power_of_two() && row >= line_bytes;
            require(holds, key, format!("{row} is not a power of two of at least a line ({line_bytes})"));
        }
        for (key, ns) in [("controller.front_ns", self.front_ns), ("controller.back_ns", self.back_ns)] {
            require(ns.ps > 0, key, LINK_WITHOUT_LATENCY.into());
        }
        faults
    }
}

counters! {
    /// What one memory controller counted.
    pub struct ControllerCounters {
        /// Read requests to DRAM (requests)
        dram_reads,
        /// Read requests to NVM (requests)
        nvm_reads,
        /// Bytes read from DRAM devices (bytes)
        dram_read_bytes,
        /// Bytes read from NVM devices (bytes)
        nvm_read_bytes,
        /// Write requests accepted for DRAM (requests)
        dram_writes,
        /// Write requests accepted for NVM (requests)
        nvm_writes,
        /// Bytes accepted for DRAM (bytes)
        dram_accepted_bytes,
        /// Bytes accepted for NVM (bytes)
        nvm_accepted_bytes,
        /// Bytes written to DRAM devices (bytes)
        dram_written_bytes,
        /// Bytes written to NVM devices (bytes)
        nvm_written_bytes,
        /// Bytes of accepted writes that a younger write in the WPQ replaced (bytes)
        merged_bytes,
        /// Writes merged into a waiting WPQ entry (requests)
        merged_writes,
        /// Reads answered by the WPQ alone (requests)
        forwarded_reads,
        /// Column commands, one a request served by the media (commands)
        column_commands,
        /// Column commands to DRAM that t_ccd_ns alone kept from an earlier edge (commands)
        dram_ccd_held,
        /// Column commands to NVM that t_ccd_ns alone kept from an earlier edge (commands)
        nvm_ccd_held,
        /// Column commands to DRAM that t_ccd_l_ns alone kept from an earlier edge (commands)
        dram_ccd_l_held,
        /// Column commands to NVM that t_ccd_l_ns alone kept from an earlier edge (commands)
        nvm_ccd_l_held,
        /// Column reads that tWTR alone kept from an earlier edge, on devices of tables (commands)
        wtr_held,
        /// Rows opened (commands)
        activates,
        /// Rows that the time between activations of two banks alone kept from an earlier edge (commands)
        rrd_held,
        /// Rows that tFAW alone kept from an earlier edge, on devices of tables (commands)
        faw_held,
        /// Refreshes issued (commands)
        refreshes,
        /// From the due times of refreshes to their issue, where requests waited for their banks (ticks)
        refresh_blocked_ticks,
        /// WPQ entries in use, summed over time (entry ticks)
        wpq_entry_ticks,
        /// Writes that found the WPQ full on arrival (requests)
        wpq_full_arrivals,
        /// Changes between serving reads and draining writes (changes)
        turnarounds,
    }
}
