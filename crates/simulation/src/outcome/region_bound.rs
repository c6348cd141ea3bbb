//! How large a region of LightWSP may become beside the gated queue that holds it until it commits.
//!
//! Arithmetic on parameters, for a run's caveats and for what is said of a sweep before it runs. Source:
//! LightWSP section IV-A, where the threshold is half the queue. Left out: regions whose accesses do not
//! coalesce, which are larger.

/// What bounds the size of a region beside the gated write-pending queue that holds it until it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegionBound {
    /// Most words of 8 bytes that a lane stores in a region.
    pub(crate) threshold_stores: u64,
    /// Warps that have a region together.
    pub(crate) warps: u64,
    /// Lanes of a warp.
    pub(crate) lanes: u64,
    /// Bytes of a queue's entry.
    pub(crate) entry_bytes: u64,
    /// Entries of a controller's queue.
    pub(crate) wpq_entries: u64,
}

impl RegionBound {
    /// Entries of the largest region whose accesses coalesce.
    pub(crate) fn entries(&self) -> u64 {
        self.threshold_stores * self.warps * (self.lanes * 8).div_ceil(self.entry_bytes)
    }

    /// Why such a region cannot wait in one queue, where it cannot.
    pub(crate) fn overflow(&self) -> Option<String> {
        (self.entries() > self.wpq_entries).then(|| {
            format!(
                "a region may store {} words of 8 bytes a lane, {} entries where its accesses coalesce, and a queue has {}: \
                 one that comes to a single controller overflows it whatever else is there",
                self.threshold_stores,
                self.entries(),
                self.wpq_entries
            )
        })
    }
}
