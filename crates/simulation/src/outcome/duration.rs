//! A length of simulated time, as results hold it: exact in ticks, and for readers in ps and core cycles.

use serde::{Deserialize, Serialize};

/// A stretch of simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duration {
    /// In ticks of the machine's tick rate.
    pub ticks: u64,
    /// In picoseconds, rounded.
    pub ps: u64,
    /// In core cycles, rounded up.
    pub core_cycles: u64,
}
