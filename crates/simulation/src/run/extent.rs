//! What of a program of CPUs is simulated in detail.

use super::region_of_interest::RegionOfInterest;

/// What of a program of CPUs is simulated in detail; all of it is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// One region.
    Region(RegionOfInterest),
    /// So many intervals of each phase of the program, on average.
    Samples(u32),
}
