//! Parameters of `ppa`. The defaults, with the source of each, are in `ppa.toml`.

use durawarp_base::spec;

/// Architectural registers of a kind, each of which has a physical one at all times.
pub(super) const ARCHITECTURAL: u32 = 32;

spec! {
    /// Parameters of the persistent processor architecture.
    pub struct PpaSpec {
        /// Physical integer registers of a hart; 32 of them are the program's.
        prf_int: u32 where 33..=4096,
        /// Physical floating-point registers of a hart; 32 of them are the program's.
        prf_fp: u32 where 33..=4096,
    }
}
