//! AGPM: log updates go through the caches or past them, as their locality in the period before suggests.
//!
//! ```text
//!   SM: selector <──way── hub <──counts── L1 buffer of a sampled SM, banks of the L2's buffer
//!                              <──log updates, waiting── SMs
//! ```
//! Data always goes through the caches and is written back by the program. A log update that goes past them needs no
//! write-back: the program's is dropped. The way that a log update took decides about its write-back, not the way when
//! that comes: changes of the way cost time, never consistency.
//!
//! Source: Long et al., "Adaptive Data Path Selection for Durable Transaction in GPU Persistent Memory" (AGPM). What the
//! paper leaves open is read as [`parameters`] says. Not modelled: what the selector's logic takes, bandwidth of moving
//! entries from buffer to buffer; that of the reservation buffer in memory is, by request.

mod buffer;
mod letters;
pub mod parameters;
pub mod reason;
mod selector;
mod sites;

use std::sync::Arc;

use crate::persist::{HostSite, HubSite, Scheme, Seat, SliceSite, SmSite};

use parameters::AgpmSpec;
use selector::{Host, Selector};
use sites::{Bank, SmSelector};

/// The scheme.
#[derive(Debug, Clone)]
pub struct Agpm {
    spec: Arc<AgpmSpec>,
}

impl Agpm {
    /// AGPM with these parameters.
    pub fn new(spec: AgpmSpec) -> Self {
        Agpm { spec: Arc::new(spec) }
    }
}

impl Scheme for Agpm {
    fn name(&self) -> &'static str {
        "agpm"
    }

    fn description(&self) -> &'static str {
        "undo logging, log updates through the caches or past them by their locality, period by period (AGPM)"
    }

    fn sm_site(&self, seat: Seat) -> Box<dyn SmSite> {
        Box::new(SmSelector::new(&self.spec, seat))
    }

    fn slice_site(&self, seat: Seat) -> Option<Box<dyn SliceSite>> {
        Some(Box::new(Bank::new(&self.spec, seat)))
    }

    fn hub_site(&self, seat: Seat) -> Option<Box<dyn HubSite>> {
        Some(Box::new(Selector::new(&self.spec, seat)))
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        Box::new(Host)
    }

    fn reserves_memory(&self) -> bool {
        self.spec.charge_reservation
    }

    fn logs(&self) -> bool {
        true
    }
}
