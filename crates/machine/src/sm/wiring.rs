//! What an SM is made from: its wiring and the parameters of its parts.

use crate::crossbar::{CrossbarSpec, PortEnd};
use crate::l1::L1Spec;
use crate::persistence::PersistSpec;
use crate::ports::Ports;
use crate::shared_memory::SharedSpec;
use crate::stalls::LinkParts;
use durawarp_engine::{Clock, Timebase};

use super::parameters::{IntervalSpec, LatencySpec, SmSpec, TensorSpec};

/// How an SM is wired and what it shares with its neighbours' specifications.
#[derive(Debug, Clone)]
pub struct SmWiring {
    /// Index of the SM: its name as a requester.
    pub index: u16,
    /// Core clock.
    pub clock: Clock,
    /// The machine's tick rate, for `%globaltimer`.
    pub timebase: Timebase,
    /// Bytes of a cache line.
    pub line_bytes: u32,
    /// Its ports, and the address mapping.
    pub ports: Ports,
    /// The crossbar's port at this end, as made for both directions.
    pub port: PortEnd,
    /// Where the local memory of this SM's threads lies, and bytes a thread.
    pub local: (u64, u32),
    /// What fences mean for persistency.
    pub persist: PersistSpec,
    /// Constant delays on the way to a slice.
    pub link: LinkParts,
}

/// The parameters of an SM and of what it contains.
#[derive(Debug, Clone)]
pub struct SmParameters {
    /// Warps, schedulers, resources.
    pub sm: SmSpec,
    pub latency: LatencySpec,
    /// Initiation intervals.
    pub interval: IntervalSpec,
    /// Tensor cores.
    pub tensor: TensorSpec,
    /// Shared memory.
    pub shared: SharedSpec,
    /// L1 data cache.
    pub l1: L1Spec,
    pub crossbar: CrossbarSpec,
}
