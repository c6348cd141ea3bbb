//! What the protocol allows at most: the rate of regions, and the instructions a cycle of a core, that each
//! reading of the paper's text leaves. Pure arithmetic on a region's mean size.
//!
//! ```text
//! serial ACKs      one region after the other: a region of all cores each ACK latency      (IV-B: flush ID)
//! overlapped ACKs  no bound
//! writes           controllers x bandwidth = regions x stores x bytes that a store is charged
//! path of a core   bandwidth = a core's regions x stores x bytes of an entry
//! path shared      the same of all cores together
//! ```
//! Invariant: a bound is never below what the machine can do: queues, latencies of the path, waits for room
//! and boundaries without a store of their own only slow it further. Not counted: stores to one line that
//! merge in a write queue, which a bound of writes is then too low for.

/// Mean size of regions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanRegion {
    pub(super) instructions: f64,
    /// Checkpoints among them.
    pub(super) stores: f64,
}

/// Cores that run regions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BusyCores {
    pub(super) count: f64,
    pub(super) ghz: f64,
}

impl BusyCores {
    /// Instructions a cycle of a core at which all of them end this many regions a ns.
    pub(super) fn ipc(self, regions_ns: f64, region: MeanRegion) -> f64 {
        regions_ns * region.instructions / (self.count * self.ghz)
    }

    /// Regions a ns that all of them end at these instructions a cycle of each.
    pub(super) fn regions_ns(self, ipc: f64, region: MeanRegion) -> f64 {
        ipc * self.count * self.ghz / region.instructions
    }
}

/// What bounds the rate of regions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RateBound {
    /// Controllers write one region after the other. Between two of them an ACK goes to each other controller
    /// and takes `ns`.
    SerialAcks { ns: f64 },
    /// Controllers go on without ACKs.
    OverlappedAcks,
    /// Persistent memory of all controllers takes `bytes_ns` bytes a ns. A store counts as `bytes_a_store`.
    Writes { bytes_ns: f64, bytes_a_store: f64 },
    /// The persist path of each core takes `bytes_ns` bytes a ns. An entry has `entry_bytes`.
    PathOfCore { bytes_ns: f64, entry_bytes: f64 },
    /// One path for all cores.
    PathShared { bytes_ns: f64, entry_bytes: f64 },
}

impl RateBound {
    /// The most regions a ns of all cores together; none where there is no bound.
    pub(super) fn regions_ns(self, region: MeanRegion, cores: BusyCores) -> Option<f64> {
        let of_bytes = |bytes_ns: f64, bytes_a_store: f64| bytes_ns / (region.stores * bytes_a_store);
        match self {
            RateBound::SerialAcks { ns } => Some(1.0 / ns),
            RateBound::OverlappedAcks => None,
            RateBound::Writes { bytes_ns, bytes_a_store } => Some(of_bytes(bytes_ns, bytes_a_store)),
            RateBound::PathOfCore { bytes_ns, entry_bytes } => Some(of_bytes(bytes_ns, entry_bytes) * cores.count),
            RateBound::PathShared { bytes_ns, entry_bytes } => Some(of_bytes(bytes_ns, entry_bytes)),
        }
    }

    /// The most instructions a cycle of a core.
    pub(super) fn ipc(self, region: MeanRegion, cores: BusyCores) -> Option<f64> {
        self.regions_ns(region, cores).map(|rate| cores.ipc(rate, region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section V-G3.
    const PAPERS: MeanRegion = MeanRegion { instructions: 91.33, stores: 11.29 };
    /// Table I.
    const CORES: BusyCores = BusyCores { count: 8.0, ghz: 2.0 };

    /// To two digits that count.
    fn rounded(value: f64) -> f64 {
        format!("{value:.1e}").parse().unwrap()
    }

    #[test]
    fn eight_cores_end_one_of_the_papers_regions_every_5_7_ns_at_an_ipc_of_1() {
        assert_eq!(rounded(1.0 / CORES.regions_ns(1.0, PAPERS)), 5.7);
        assert!((CORES.ipc(CORES.regions_ns(0.7, PAPERS), PAPERS) - 0.7).abs() < 1e-12);
    }

    #[test]
    fn each_bound_by_a_worked_example_of_the_papers_region() {
        let ipc = |bound: RateBound| bound.ipc(PAPERS, CORES).map(rounded);
        assert_eq!(ipc(RateBound::SerialAcks { ns: 20.0 }), Some(0.29));
        assert_eq!(ipc(RateBound::SerialAcks { ns: 2.5 }), Some(2.3));
        assert_eq!(ipc(RateBound::OverlappedAcks), None);
        let writes = |bytes_a_store| RateBound::Writes { bytes_ns: 2.0 * 4.6, bytes_a_store };
        assert_eq!([32.0, 8.0].map(|bytes| ipc(writes(bytes))), [Some(0.15), Some(0.58)]);
        assert_eq!(ipc(RateBound::PathOfCore { bytes_ns: 4.0, entry_bytes: 8.0 }), Some(2.0));
        assert_eq!(ipc(RateBound::PathShared { bytes_ns: 4.0, entry_bytes: 8.0 }), Some(0.25));
    }

    #[test]
    fn what_cores_share_gives_less_to_each_the_more_there_are_and_a_path_of_its_own_as_much() {
        let ipc = |bound: RateBound, count| bound.ipc(PAPERS, BusyCores { count, ..CORES }).unwrap();
        for (bound, many) in [
            (RateBound::SerialAcks { ns: 20.0 }, 8.0),
            (RateBound::PathShared { bytes_ns: 4.0, entry_bytes: 8.0 }, 8.0),
            (RateBound::Writes { bytes_ns: 9.2, bytes_a_store: 8.0 }, 8.0),
            (RateBound::PathOfCore { bytes_ns: 4.0, entry_bytes: 8.0 }, 1.0),
        ] {
            assert!((ipc(bound, 1.0) / ipc(bound, 8.0) - many).abs() < 1e-9, "{bound:?}");
        }
    }
}
