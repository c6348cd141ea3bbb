//! `epoch` and `broi`: persists that hardware orders behind the program's back, on machines of CPU cores.
//!
//! ```text
//!  hart ──store──> L1
//!    └─────────> persist buffer ──in order, fences between──> controller: a queue for each hart ──> banks
//!  lines, with what they depend on:  core <──> home slice <──> core
//! ```
//! A store to persistent memory leaves the store buffer for the L1 and for its hart's persist buffer at once;
//! an ordering fence (`pm.ofence`) takes an entry there. The hart waits for room alone, or where it asks for
//! durability (`pm.dfence`: of what it stored, and of what it has followed from). What is durable is a prefix
//! of epochs: no store of a hart without those before its last fence, nor without what it followed from by
//! way of other harts.
//!
//! `epoch` is delegated ordering (MICRO'16), the paper's baseline: at the controller the current sets of all
//! harts are one epoch, and the next begins when all of it is durable. `broi` has a queue for each hart,
//! whose sets end by themselves, and serves first whoever leaves most banks with work.
//!
//! Source: Hu, Ogleari, Zhao, Li, Ouyang, Xie, "Persistence Parallelism Optimization: A Holistic Approach
//! from Memory Bus to RDMA Network" (MICRO'18). Readings: a fence of its own orders (`core.fence_persists`
//! makes each `fence` one, the paper's letter); a buffer for each hart; dependencies go by way of the home
//! slice, which knows whom it passed them to; what an entry waits for is that all of the giver's entries up
//! to one are durable; a fence with nothing before it takes no entry; a read before a write orders nothing.
//! Lines cleaned by the program need no write. Remote requests, of clients over the network, come by buffers
//! of the NIC, one a channel, and have queues behind those of harts. Not modelled: several controllers.

mod buckets;
mod buffer;
mod controller;
mod ends;
mod filter;
mod home;
pub mod messages;
mod parameters;
mod queues;
#[cfg(test)]
mod tests;

use durawarp_checkpoint::{LoadFault, StateReader, Storable};
use durawarp_persist::promises::Promises;
use durawarp_persist::{
    ControllerHandler, CoreHandler, HandlerPlace, HomeHandler, NicHandler, PathLinks, Scheme, SchemeMessage,
};

pub use controller::worked::{WorkedRequest, WorkedStep, worked};
pub use parameters::{BarrierScope, BroiSpec, Delegated, DependencyTracking, EpochSpec};

use buffer::PersistBuffers;
use controller::PersistQueues;
use home::DependentLines;
use messages::DelegatedMessage;

/// The defaults of `epoch`, with sources, as a scheme file.
pub const EPOCH_DEFAULTS: &str = include_str!("delegated/epoch.toml");

/// The defaults of `broi`, with sources, as a scheme file.
pub const BROI_DEFAULTS: &str = include_str!("delegated/broi.toml");

impl Scheme for Delegated {
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        DelegatedMessage::read(from).map(|message| Box::new(message) as _)
    }

    fn name(&self) -> &'static str {
        match self {
            Delegated::Epoch(_) => "epoch",
            Delegated::Broi(_) => "broi",
        }
    }

    fn description(&self) -> &'static str {
        match self {
            Delegated::Epoch(_) => {
                "delegated ordering: persist buffers behind the cores, one global epoch at the controller (BROI's baseline)"
            }
            Delegated::Broi(_) => {
                "persistence parallelism (BROI): persist buffers, and queues at the controller that keep most banks busy"
            }
        }
    }

    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(PersistBuffers::of_harts(self.buffer().0, place)))
    }

    fn home_handler(&self, place: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        Some(Box::new(DependentLines::new(place)))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        Some(Box::new(PersistQueues::new(self.clone(), place)))
    }

    fn nic_handler(&self, place: HandlerPlace) -> Option<Box<dyn NicHandler>> {
        (place.channels > 0).then(|| Box::new(PersistBuffers::of_channels(self.buffer().0, place)) as _)
    }

    /// Cores and the controller, and back.
    fn path_links(&self) -> Option<PathLinks> {
        let path_ps = self.buffer().1.ps;
        Some(PathLinks { path_ps, ack_ps: path_ps, step_ps: 0, hub_ps: path_ps })
    }

    /// Buffered strict persistency: epochs are durable in order, behind the program's back (MICRO'18, section
    /// II).
    fn promises(&self) -> Promises {
        Promises { epochs: true, ..Promises::NONE }
    }

    fn unfit(&self, place: HandlerPlace) -> Option<(String, String)> {
        (place.controllers > 1).then(|| {
            let why = format!("{} of them: one controller orders all persists", place.controllers);
            ("controller.channels".to_owned(), why)
        })
    }

    /// The programs keep their own.
    fn logs(&self) -> bool {
        true
    }
}
