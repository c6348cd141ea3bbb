//! Clusters of the functional driver: the shared and tensor memories of their CTAs, and their barrier.
//!
//! The CTAs of a cluster begin together and run in turns. The memory of the one that runs is with it, those
//! of the others lie here. So a CTA reaches another from its first instruction on; the ISA wants a barrier of
//! the cluster before that, which is not asked for here. An access to one that has ended is a fault.

use super::super::cluster::{ClusterArrivals, ClusterPhases};
use super::super::ir::Op;
use super::super::launch::Launch;
use super::super::tensor_memory::TensorMemory;

/// Columns that the CTAs of a cluster allocate in pairs, by rank.
#[derive(Debug, Default)]
pub(super) struct PairAllocations {
    /// A warp waits for the peer: how many columns it asks for.
    pub(super) asked: Vec<Option<u32>>,
    /// The peer has come: their address.
    pub(super) granted: Vec<Option<u32>>,
}

impl PairAllocations {
    /// Of a cluster with this number of CTAs. None asks yet.
    pub(super) fn new(ctas: u32) -> Self {
        PairAllocations { asked: vec![None; ctas as usize], granted: vec![None; ctas as usize] }
    }

    /// The warp that waits in the CTA of a rank has its columns: their address.
    pub(super) fn take(&mut self, rank: u32) -> Option<u32> {
        self.granted[rank as usize].take()
    }

    /// The same, which stays.
    pub(super) fn has(&self, rank: u32) -> bool {
        self.granted[rank as usize].is_some()
    }
}

/// A cluster under way.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Its number in the grid.
    pub(super) number: u64,
    /// The shared memory of each CTA by rank; empty of the one that runs, and of those that have ended.
    pub(super) memories: Vec<Vec<u8>>,
    /// Tensor memories, likewise.
    pub(super) tensors: Vec<TensorMemory>,
    pub(super) pairs: PairAllocations,
    pub(super) phases: ClusterPhases,
}

impl Cluster {
    /// A cluster whose CTAs all begin.
    pub(super) fn new(number: u64, ctas: u32) -> Self {
        Cluster {
            number,
            memories: vec![Vec::new(); ctas as usize],
            tensors: vec![TensorMemory::default(); ctas as usize],
            pairs: PairAllocations::new(ctas),
            phases: ClusterPhases::new(ctas),
        }
    }

    /// Changes the memories of the CTA of a rank: what was here is with who runs it, or the other way round.
    pub(super) fn swap(&mut self, rank: u32, memory: &mut Vec<u8>, tensor: &mut TensorMemory) {
        std::mem::swap(&mut self.memories[rank as usize], memory);
        std::mem::swap(&mut self.tensors[rank as usize], tensor);
    }

    /// The CTA of a rank has ended.
    pub(super) fn end(&mut self, rank: u32) {
        self.phases.end(rank);
        self.phases.end_phase();
    }

    /// All CTAs have ended.
    pub(super) fn is_over(&self) -> bool {
        (0..self.memories.len() as u32).all(|rank| self.phases.has_ended(rank))
    }
}

/// The place of a CTA in its cluster.
#[derive(Debug, Default)]
pub(super) struct Seat {
    pub(super) rank: u32,
    pub(super) arrivals: ClusterArrivals,
    /// Phases of the cluster's barrier that it knows to be over.
    pub(super) over: u32,
    /// Warps that wait at it.
    pub(super) waiting: u64,
    /// A warp waits for columns of tensor memory that the peer CTA has not asked for.
    pub(super) for_peer: u64,
}

impl Seat {
    /// The seat of a CTA that begins.
    pub(super) fn new(rank: u32, warps: usize) -> Self {
        Seat { rank, arrivals: ClusterArrivals::new(warps), ..Seat::default() }
    }

    /// Warps wait for other CTAs.
    pub(super) fn waits(&self) -> bool {
        self.waiting | self.for_peer != 0
    }
}

/// What a CTA that runs reaches of its cluster.
pub(super) struct Peers<'a> {
    pub(super) rank: u32,
    pub(super) cluster: &'a mut Cluster,
}

/// The launch has clusters, or asks for their barrier.
pub(super) fn has_clusters(launch: &Launch) -> bool {
    launch.cluster_ctas() > 1 || launch.kernel.code.iter().any(|inst| matches!(inst.op, Op::Cluster(_)))
}
