//! Clusters of CTAs (PTX ISA, "Cluster of Cooperative Thread Arrays"): where the shared memory of a CTA of
//! the same cluster lies, and who has come to the barrier of the cluster.
//!
//! ```text
//! address of .shared::cluster    bits 31..24  0: the own CTA's; else 16 and the rank of a CTA in its cluster
//!                                bits 23..0   the byte in that CTA's shared memory
//! ```
//! A generic address is such an address in the window of shared memory. `mapa` of the own rank gives the own
//! CTA's plain address; one with 16 and the own rank names the same byte. CTAs are numbered in the grid, x
//! fastest; the ranks of a cluster, too.
//!
//! Two CTAs whose ranks differ in the last bit alone are a *pair* (PTX ISA 9.7.16.1, "CTA pair"), each the
//! *peer* of the other. Their addresses differ in bit 24: CUTLASS clears it (`Sm100MmaPeerBitMask`) to name
//! the CTA of even rank, of an address that names a CTA. So in a module with `.cta_group::2` the address of a
//! variable as a value names the CTA, as on cards (`ptxas` 13.5 makes `LEA` of it and of `SR_CgaCtaId` by 24
//! bits); elsewhere it is a plain one.
//!
//! Source: PTX ISA 9.7.13.4 (`barrier.cluster`), 9.7.9.23 (`mapa`); the layout of an address is ours, since
//! the ISA leaves it open. Invariants: the functional driver and the timed machine count arrivals here; a
//! lane arrives once a phase and waits after it has arrived, anything else is a [`ClusterMisuse`]. A CTA that
//! has ended is not awaited.

use std::fmt;

use durawarp_checkpoint::value;
use smallvec::SmallVec;

/// Bits of a byte's number in a CTA's shared memory.
const CTA_BITS: u32 = 24;

/// The bits above that, where they name a CTA, have this beside its rank.
const NAMED: u32 = 16;

/// No CTA has this rank.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// CTAs of a cluster, at most: 8 on every machine, 16 where a kernel may (CUDA, "non-portable cluster size").
pub const MAX_CLUSTER: u32 = 16;

/// The address of a byte of the CTA of a rank, by the address of the same byte as any CTA of the cluster has
/// it.
///
/// # Example: the own CTA's address stays as it is
/// ```
/// use durawarp_kernel::cluster::{map_address, owner_of};
/// assert_eq!((map_address(0x10, 3, 3), map_address(0x10, 3, 0)), (0x10, 0x1300_0010));
/// // Without bit 24 it is that of the pair's CTA of even rank.
/// assert_eq!(owner_of(0x1300_0010 & 0xfeff_ffff, 3), (2, 0x10));
/// assert_eq!((owner_of(0x10, 3), owner_of(0x1300_0010, 0)), ((3, 0x10), (3, 0x10)));
/// ```
#[inline]
pub fn map_address(address: u32, rank: u32, own: u32) -> u32 {
    let byte = address & ((1 << CTA_BITS) - 1);
    if rank == own { byte } else { (rank ^ NAMED) << CTA_BITS | byte }
}

/// The other CTA of a pair.
///
/// # Errors
/// The cluster has none.
pub fn peer_of(rank: u32, ctas: u32) -> Result<u32, ClusterMisuse> {
    let peer = rank ^ 1;
    if peer < ctas { Ok(peer) } else { Err(ClusterMisuse::NoPeer { rank, ctas }) }
}

/// The rank of the CTA that an address of shared memory names, and the byte in its memory.
#[inline]
pub fn owner_of(address: u64, own: u32) -> (u32, u64) {
    let byte = address & ((1 << CTA_BITS) - 1);
    match (address >> CTA_BITS) as u32 {
        0 => (own, byte),
        named => (named ^ NAMED, byte),
    }
}

/// Use of a cluster that the ISA leaves undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterMisuse {
    /// A second arrival before the wait for the first.
    Arrives,
    /// A wait without an arrival.
    Waits,
    /// The address names a rank that the cluster does not have.
    NoRank {
        rank: u32,
        /// CTAs of the cluster.
        ctas: u32,
    },
    /// The CTA of this rank has ended.
    Ended(u32),
    /// An asynchronous access and its barrier lie in two CTAs.
    Apart,
    /// The CTA of this rank has no other one beside it that is its pair's.
    NoPeer {
        rank: u32,
        /// CTAs of the cluster.
        ctas: u32,
    },
    /// A mask of CTAs has a rank that the cluster does not have.
    NoBit {
        rank: u32,
        /// CTAs of the cluster.
        ctas: u32,
    },
    /// A bulk copy to global memory reads shared memory of the CTA of this rank.
    Reads(u32),
}

value!(choice ClusterMisuse {
    Arrives, Waits, NoRank { rank, ctas }, Ended(rank), Apart, NoPeer { rank, ctas }, NoBit { rank, ctas },
    Reads(rank),
});

impl fmt::Display for ClusterMisuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterMisuse::Arrives => write!(f, "a second `barrier.cluster.arrive` before the wait for the first"),
            ClusterMisuse::Waits => write!(f, "`barrier.cluster.wait` without `barrier.cluster.arrive` before it"),
            ClusterMisuse::NoRank { rank, ctas } => {
                write!(f, "an address in shared memory of the CTA of rank {rank}, and the cluster has {ctas}")
            }
            ClusterMisuse::Ended(rank) => write!(
                f,
                "an access to shared memory of the CTA of rank {rank}, which has ended: a `barrier.cluster` at the \
                 end keeps it"
            ),
            // Of bulk copies, and of what goes with them.
            ClusterMisuse::Apart => {
                write!(f, "the barrier of an asynchronous access lies in another CTA than what it accesses")
            }
            ClusterMisuse::NoPeer { rank, ctas } => write!(
                f,
                "`.cta_group::2` by the CTA of rank {rank}, which has no peer: the cluster has {ctas}, where pairs \
                 take an even number"
            ),
            ClusterMisuse::NoBit { rank, ctas } => {
                write!(f, "a mask of CTAs with bit {rank}, and the cluster has {ctas}, whose ranks begin at 0")
            }
            ClusterMisuse::Reads(rank) => write!(
                f,
                "a bulk copy to global memory that reads shared memory of the CTA of rank {rank}: it reads its own"
            ),
        }
    }
}

/// The lanes of one warp at the barrier of its cluster.
#[derive(Debug, Clone, Copy, Default)]
struct WarpArrivals {
    /// Arrived in this phase.
    arrived: u64,
    /// Arrived in the last phase, which is over, and have not waited for that.
    over: u64,
}

value!(record WarpArrivals { arrived, over });

/// The warps of one CTA at the barrier of its cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterArrivals {
    warps: Vec<WarpArrivals>,
    /// All have arrived, and the others have been told.
    told: bool,
}

value!(record ClusterArrivals { warps, told });

impl ClusterArrivals {
    /// No warp has arrived; their numbers are less than `warps`.
    pub fn new(warps: usize) -> Self {
        ClusterArrivals { warps: vec![WarpArrivals::default(); warps], told: false }
    }

    /// Lanes of a warp arrive.
    ///
    /// # Errors
    /// One of them has arrived before and has not waited.
    pub fn arrive(&mut self, warp: usize, lanes: u64) -> Result<(), ClusterMisuse> {
        let WarpArrivals { arrived, over } = &mut self.warps[warp];
        if (*arrived | *over) & lanes != 0 {
            return Err(ClusterMisuse::Arrives);
        }
        *arrived |= lanes;
        Ok(())
    }

    /// Lanes of a warp wait; true when the phase in which they arrived is over.
    ///
    /// # Errors
    /// One of them has not arrived.
    pub fn wait(&mut self, warp: usize, lanes: u64) -> Result<bool, ClusterMisuse> {
        let WarpArrivals { arrived, over } = &mut self.warps[warp];
        if (*arrived | *over) & lanes != lanes {
            return Err(ClusterMisuse::Waits);
        }
        let passes = *over & lanes == lanes;
        *over &= !if passes { lanes } else { 0 };
        Ok(passes)
    }

    /// All lanes that have not exited have arrived, and nobody was told yet: true once a phase. `live` gives
    /// the lanes of a warp that have not exited.
    pub fn complete(&mut self, live: impl Fn(usize) -> u64) -> bool {
        let mut any = false;
        for (warp, WarpArrivals { arrived, .. }) in self.warps.iter().enumerate() {
            let live = live(warp);
            any |= live != 0;
            if live & !arrived != 0 {
                return false;
            }
        }
        any && !std::mem::replace(&mut self.told, true)
    }

    /// The phase is over.
    pub fn end_phase(&mut self) {
        self.told = false;
        for WarpArrivals { arrived, over } in &mut self.warps {
            *over |= std::mem::take(arrived);
        }
    }
}

/// How often the CTAs of a cluster have come to its barrier, by rank.
#[derive(Debug, Clone, Default)]
pub struct ClusterPhases {
    /// [`u32::MAX`] for one that has ended.
    arrived: SmallVec<[u32; MAX_CLUSTER as usize]>,
    over: u32,
}

value!(record ClusterPhases { arrived, over });

impl ClusterPhases {
    /// A cluster of `ctas` CTAs, none of which has come.
    pub fn new(ctas: u32) -> Self {
        ClusterPhases { arrived: SmallVec::from_elem(0, ctas as usize), over: 0 }
    }

    /// All threads of the CTA of a rank have come that have not exited.
    pub fn arrive(&mut self, rank: u32) {
        self.arrived[rank as usize] += 1;
    }

    /// All threads of the CTA of a rank have exited.
    pub fn end(&mut self, rank: u32) {
        self.arrived[rank as usize] = u32::MAX;
    }

    /// The CTA of this rank has ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        self.arrived[rank as usize] == u32::MAX
    }

    /// CTAs that have come, or have ended.
    pub fn there(&self) -> usize {
        self.arrived.iter().filter(|&&arrived| arrived > self.over).count()
    }

    /// CTAs of the cluster.
    pub fn ctas(&self) -> usize {
        self.arrived.len()
    }

    /// Phases that are over.
    pub fn over(&self) -> u32 {
        self.over
    }

    /// Ends a phase to which all have come; false where there is none, or nobody is left.
    pub fn end_phase(&mut self) -> bool {
        let least = self.arrived.iter().copied().min().unwrap_or(u32::MAX);
        let ends = least != u32::MAX && least > self.over;
        self.over += u32::from(ends);
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cta_has_come_when_all_lanes_have_that_have_not_exited() {
        let mut of = ClusterArrivals::new(2);
        of.arrive(0, 0b11).unwrap();
        assert!(!of.complete(|_| 0b11), "the second warp is missing");
        assert!(!of.complete(|warp| if warp == 0 { 0b11 } else { 0b1 }));
        of.arrive(1, 0b1).unwrap();
        assert!(of.complete(|warp| if warp == 0 { 0b11 } else { 0b1 }), "its other lane has exited");
        assert!(!of.complete(|warp| if warp == 0 { 0b11 } else { 0b1 }), "told once");
        assert!(!ClusterArrivals::new(1).complete(|_| 0), "nobody is there");
    }

    #[test]
    fn lanes_arrive_once_and_wait_after_that() {
        let mut of = ClusterArrivals::new(1);
        assert_eq!(of.wait(0, 1), Err(ClusterMisuse::Waits));
        of.arrive(0, 0b01).unwrap();
        assert_eq!(of.arrive(0, 0b11), Err(ClusterMisuse::Arrives));
        assert_eq!(of.wait(0, 0b11), Err(ClusterMisuse::Waits), "the second lane has not arrived");
        assert_eq!(of.wait(0, 0b01), Ok(false));
        of.end_phase();
        assert_eq!(of.arrive(0, 0b01), Err(ClusterMisuse::Arrives), "it has not waited");
        assert_eq!((of.wait(0, 0b01), of.wait(0, 0b01)), (Ok(true), Err(ClusterMisuse::Waits)));
        of.arrive(0, 0b01).unwrap();
    }

    #[test]
    fn a_phase_ends_with_the_last_cta_and_without_those_that_have_ended() {
        let mut phases = ClusterPhases::new(3);
        phases.arrive(0);
        phases.arrive(2);
        assert!(!phases.end_phase() && phases.there() == 2);
        phases.end(1);
        assert!(phases.end_phase() && !phases.end_phase());
        phases.arrive(0);
        assert_eq!((phases.end_phase(), phases.has_ended(1), phases.has_ended(0)), (false, true, false));
        phases.end(0);
        phases.end(2);
        assert!(!phases.end_phase(), "nobody waits");
    }
}
