//! AGPM: log updates go through the caches or past them, as their locality in the period before suggests.
//!
//! ```text
//!   SM: selector <──way── hub <──counts── L1 buffer of a sampled SM, banks of the L2's buffer
//!                              <──log updates, waiting── SMs
//! ```
//! Data always goes through the caches and is written back by the program. A log update that goes past them
//! needs no write-back: the program's is dropped. The way that a log update took decides about its
//! write-back, not the way when that comes: changes of the way cost time, never consistency.
//!
//! Source: Long et al., "Adaptive Data Path Selection for Durable Transaction in GPU Persistent Memory"
//! (AGPM). What the paper leaves open is read as [`parameters`] says. Not modelled: what the selector's logic
//! takes, bandwidth of moving entries from buffer to buffer; that of the reservation buffer in memory is, by
//! request.

mod buffer;
mod handlers;
mod messages;
pub mod parameters;
pub mod reason;
mod records;
mod selector;

use super::baseline::FENCES_WAIT;
use std::sync::Arc;

use durawarp_checkpoint::{LoadFault, StateReader, Storable};
use durawarp_persist::promises::Promises;
use durawarp_persist::{Handler, HandlerPlace, HostHandler, Scheme, SchemeMessage, SliceHandler, SmHandler};

use handlers::{Bank, SmSelector};
use messages::AgpmMessage;
use parameters::AgpmSpec;
use selector::{AgpmHost, Selector};

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
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        AgpmMessage::read(from).map(|message| Box::new(message) as _)
    }

    fn name(&self) -> &'static str {
        "agpm"
    }

    fn description(&self) -> &'static str {
        "undo logging, log updates through the caches or past them by their locality, period by period (AGPM)"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(SmSelector::new(&self.spec, place)))
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        Some(Box::new(Bank::new(&self.spec, place)))
    }

    fn hub_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        Some(Box::new(Selector::new(&self.spec, place)))
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(AgpmHost)
    }

    fn reserves_memory(&self) -> bool {
        self.spec.charge_reservation
    }

    /// As `store+clwb` and `nt-store`, between which it chooses (AGPM section IV).
    fn promises(&self) -> Promises {
        FENCES_WAIT
    }

    /// Each launch in flight has a way, a period and evidence of its own.
    fn one_by_one(&self) -> Option<&'static str> {
        None
    }

    fn logs(&self) -> bool {
        true
    }
}
