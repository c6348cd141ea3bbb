//! Parameters of delegated ordering (`epoch`) and of BROI.
//!
//! Source: persistence parallelism, sections IV and VI, Tables II and III. The defaults, with the source of
//! each, are in `delegated/epoch.toml` and `delegated/broi.toml`.

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

choice! {
    /// How a buffer knows which fence a store to a line came behind.
    pub enum DependencyTracking {
        /// By line, exactly.
        Exact = "exact",
        /// By a Bloom filter of 256 bits for each fence: more order, never less.
        Bloom = "bloom",
    }
}

choice! {
    /// What the end of a set means to other harts.
    pub enum BarrierScope {
        /// Nothing: barriers order the requests of one entry.
        Entry = "entry",
        /// Nothing leaves until all that is under way is durable.
        Global = "global",
    }
}

spec! {
    /// Parameters of delegated ordering.
    pub struct EpochSpec {
        /// Entries of a hart's persist buffer.
        pb_entries: u32 where 1..=4096,
        /// A store joins an entry of its line that waits in the same epoch.
        coalesce: bool,
        /// How a buffer knows which fence a store to a line came behind.
        dependency: DependencyTracking,
        /// From a core to the controller, and back.
        pb_path_ns: Nanos,
        /// Requests of a hart that may join a global epoch.
        units: u32 where 1..=4096,
    }
}

spec! {
    /// Parameters of BROI.
    pub struct BroiSpec {
        /// Entries of a hart's persist buffer.
        pb_entries: u32 where 1..=4096,
        /// A store joins an entry of its line that waits in the same epoch.
        coalesce: bool,
        /// How a buffer knows which fence a store to a line came behind.
        dependency: DependencyTracking,
        /// From a core to the controller, and back.
        pb_path_ns: Nanos,
        /// Requests that an entry of the BROI queue shows to the scheduler.
        units: u32 where 1..=4096,
        /// Barrier index registers of an entry: sets that it shows.
        barrier_registers: u32 where 1..=64,
        /// What a set's requests cost its hart's priority, in thousandths of a bank, each.
        sigma_thousandths: u32 where 0..=1000000,
        /// What the end of a set means to other harts.
        barrier_scope: BarrierScope,
        /// Requests of clients go to banks while fewer than so many of all are under way.
        remote_low_entries: u32 where 1..=4096,
        /// How long a request of a client waits behind those of harts at most.
        remote_starvation_ns: Nanos,
    }
}

/// What either scheme has of buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferSpec {
    /// Entries of a buffer.
    pub(super) pb_entries: u32,
    /// Stores join entries.
    pub(super) coalesce: bool,
    /// How fences are found.
    pub(super) dependency: DependencyTracking,
}

/// Delegated ordering, by what the controller makes of the harts' sets.
#[derive(Debug, Clone)]
pub enum Delegated {
    /// One epoch of all harts after the other.
    Epoch(EpochSpec),
    /// Each hart's sets by themselves, by bank-level parallelism.
    Broi(BroiSpec),
}

impl Delegated {
    /// What it has of buffers, and the way between them and the controller.
    pub(super) fn buffer(&self) -> (BufferSpec, Nanos) {
        match *self {
            Delegated::Epoch(EpochSpec { pb_entries, coalesce, dependency, pb_path_ns, .. })
            | Delegated::Broi(BroiSpec { pb_entries, coalesce, dependency, pb_path_ns, .. }) => {
                (BufferSpec { pb_entries, coalesce, dependency }, pb_path_ns)
            }
        }
    }
}

impl EpochSpec {
    /// What is wrong with the values together.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        link_faults(self.pb_path_ns)
    }
}

impl BroiSpec {
    /// What is wrong with the values together.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        link_faults(self.pb_path_ns)
    }
}

fn link_faults(path: Nanos) -> Vec<(&'static str, String)> {
    if path.ps > 0 { Vec::new() } else { vec![("pb_path_ns", "a link takes time".to_owned())] }
}
