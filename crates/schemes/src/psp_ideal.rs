//! `psp-ideal`: caches that survive a power failure, on machines of CPU cores without a DRAM cache.
//!
//! A store is durable when it is performed: the order of durability is the order of visibility (TSO), so that
//! no fence waits and no clean writes. A program still makes its data consistent itself, by logs and its own
//! recovery (partial-system persistence). What lies in DRAM would not survive, so that there is no DRAM cache
//! in front of persistent memory: its lines are read from the media.
//!
//! Source: LightWSP section V-D, "an optimized version of BBB whose performance is close to that of Intel
//! eADR", the ideal of partial-system persistence that has no DRAM as last-level cache. Storage that a
//! battery must save: [`buffer_bytes`] as BBB has it, [`cache_bytes`] as eADR has it. Reading: the buffers
//! never fill, as a line leaves for memory from the caches alone ("ideal"). Not modelled: the battery, the
//! time it takes to save what survives.

use durawarp_persist::promises::{Promises, Survives};
use durawarp_persist::{CoreFences, CoreHandler, CorePolicy, HandlerPlace, Scheme};

/// Entries of a core's battery-backed persist buffer: BBB (HPCA'21), section V.
const BUFFER_LINES: u64 = 32;

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// Bytes that a battery saves under BBB: a buffer of 32 lines for each core.
pub fn buffer_bytes(cores: u64) -> u64 {
    cores * BUFFER_LINES * LINE_BYTES
}

/// Bytes that a battery saves under eADR: all private caches and the shared one.
pub fn cache_bytes(cores: u64, l1_kb: u64, shared_kb: u64) -> u64 {
    (cores * l1_kb + shared_kb) << 10
}

/// The scheme.
#[derive(Debug, Clone, Copy)]
pub struct PspIdeal;

impl Scheme for PspIdeal {
    fn name(&self) -> &'static str {
        "psp-ideal"
    }

    fn description(&self) -> &'static str {
        "caches survive a power failure, and there is no DRAM cache (BBB and eADR, LightWSP's ideal of partial persistence)"
    }

    fn core_handler(&self, _: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(CorePolicy { fences: CoreFences::Pass, ..CorePolicy::default() }))
    }

    /// A battery saves the caches (LightWSP section V-D).
    fn promises(&self) -> Promises {
        Promises { survives: Survives::Caches, ..Promises::NONE }
    }

    /// The programs keep their own.
    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_back_and_no_fence_waits() {
        let policy = PspIdeal.core_handler(HandlerPlace::default()).unwrap().policy();
        assert_eq!(policy.fences, CoreFences::Pass);
    }

    #[test]
    fn a_battery_saves_2_kib_a_core_or_all_caches() {
        assert_eq!(buffer_bytes(8), 16 << 10);
        // LightWSP's Table I: 8 x 64 KiB and 16 MiB.
        assert_eq!(cache_bytes(8, 64, 16 << 10), 33 << 19);
    }
}
