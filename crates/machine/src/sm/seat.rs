//! What an SM keeps of clusters: the seat of a CTA in its cluster, and requests between this SM and others.
//!
//! Invariant: of each entry of the load-store unit that is a request, the request is here, in the same order.

use std::collections::VecDeque;

use crate::remote::{ClusterCta, ClusterPlaces, RemoteAccess};
use durawarp_checkpoint::{state, value};
use durawarp_kernel::cluster::{ClusterArrivals, ClusterPhases};
use durawarp_kernel::launch::Launch;

use super::parameters::ClusterCounters;

/// The place of a CTA in its cluster.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) rank: u32,
    /// The SM of each rank; empty for a CTA that is a cluster by itself.
    pub(super) sms: Vec<u16>,
    pub(super) arrivals: ClusterArrivals,
    pub(super) phases: ClusterPhases,
    /// Warp slots that wait at the barrier.
    pub(super) waiting: u64,
}

value!(record Seat { rank, sms, arrivals, phases, waiting });

impl Seat {
    /// The seat of a CTA that begins, in an SM of `warps` warp slots.
    pub(super) fn new(places: ClusterPlaces, warps: usize) -> Box<Self> {
        let ClusterPlaces { rank, sms } = places;
        let phases = ClusterPhases::new(sms.len() as u32);
        Box::new(Seat { rank, sms, arrivals: ClusterArrivals::new(warps), phases, waiting: 0 })
    }

    /// That of a CTA of a launch without clusters.
    pub(super) fn alone(warps: usize) -> Box<Self> {
        let (arrivals, phases) = (ClusterArrivals::new(warps), ClusterPhases::new(1));
        Box::new(Seat { rank: 0, sms: Vec::new(), arrivals, phases, waiting: 0 })
    }

    /// The other end of a word or an access: the CTA of a rank of its cluster.
    pub(super) fn peer(&self, launch: &Launch, number: u32, cta: u64, rank: u32) -> ClusterCta {
        ClusterCta { launch: number, cta: launch.cta_of(launch.cluster_of(cta).0, rank), rank }
    }
}

/// Requests between this SM and others.
#[derive(Debug, Default)]
pub(super) struct RemoteQueues {
    /// Those whose entries wait in the load-store unit, to leave.
    pub(super) leaving: VecDeque<Box<RemoteAccess>>,
    /// Those of others, whose entries wait there, to be served.
    pub(super) serving: VecDeque<Box<RemoteAccess>>,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    pub(super) spare: Vec<Box<RemoteAccess>>,
    pub(super) counted: ClusterCounters,
    /// The cycle from which the link to other SMs can take another message.
    link_free_at: u32,
}

state!(RemoteQueues { saved: leaving, serving, counted, link_free_at; kept: spare });

impl RemoteQueues {
    /// A request whose entry has left the load-store unit.
    pub(super) fn take_leaving(&mut self) -> Box<RemoteAccess> {
        self.leaving.pop_front().unwrap_or_else(|| unreachable!("an entry has its request"))
    }

    /// A request of another SM whose turn has come.
    pub(super) fn take_serving(&mut self) -> Box<RemoteAccess> {
        self.serving.pop_front().unwrap_or_else(|| unreachable!("an entry has its request"))
    }

    /// A message with `bytes` of shared memory takes the link, which has `width` bytes a cycle: the cycle in
    /// which it leaves, behind those before it; none where nothing is before it.
    pub(super) fn take_link(&mut self, bytes: u32, width: u32, cycle: u32) -> Option<u32> {
        let leaves = (self.link_free_at >= cycle).then_some(self.link_free_at);
        self.link_free_at = leaves.unwrap_or(cycle) + bytes.div_ceil(width);
        leaves
    }

    /// An answered request, to be used again.
    pub(super) fn recycle(&mut self, access: Box<RemoteAccess>) {
        self.spare.push(access);
    }
}
