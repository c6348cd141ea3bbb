//! `ppa`: whole-system persistence by registers that stay, on machines of CPU cores without a compiler.
//!
//! ```text
//!  hart ──retires──> mask of registers that stores of the region read
//!   │                  └─ overwritten: its physical register is held
//!   └─ performs ──> L1 ──write-back at once──> home ──> controller (ADR) ──acknowledged──> store is forgotten
//!        region ends: dispatch waits until all is acknowledged, no register is held any more
//! ```
//! A store's line is written back as soon as the store is performed. Until that is acknowledged, the store
//! can be replayed: its registers stay in the physical register file, also when the program overwrites them.
//! A register that is held cannot be renamed. When none is free, and at every atomic operation, `fence` and
//! system call, the region ends. At a power failure registers, pc and stores that are not acknowledged are
//! saved just in time; replaying the stores gives memory all that retired, and the program goes on where it
//! was (P4').
//!
//! Source: Zeng, Jeong, Jung, "Persistent Processor Architecture" (MICRO'23), as LightWSP's section II-C2
//! tells of it, which compares itself with it. Formula 1 of LightWSP, (T_p - T_wait) / T_p: T_wait is
//! `region_wait_cycles`; T_p is `write_back_cycles`, what the write-backs took one after the other.
//!
//! Readings:
//! * Registers are masked and held at retirement, so that nothing of a wrong path counts. A region does not
//!   end for lack of registers where stores hold none of the kind: instructions in flight have them all then,
//!   and dispatch waits until one retires, as any core's does.
//! * Address and data registers of a store are held. What an atomic writes is in a register of its own.
//! * A store to a line whose write-back is under way joins the next one, which leaves when that is
//!   acknowledged, or as soon as the region ends, or another core or the L1's replacement asks for the line.
//! * A line that another core is to write is given up when its stores here are acknowledged. Else the replay
//!   of an older store could come over a newer one of the other core: locks are released by plain stores.
//! * What a system call writes are stores of the calling hart. Clean instructions and fences of persistency
//!   do nothing.
//!
//! Not modelled: time and energy of saving and of replaying, a longer clock cycle.

mod parameters;
mod stores;
#[cfg(test)]
mod tests;

use durawarp_persist::promises::{Promises, Survives};
use durawarp_persist::{CoreHandler, HandlerPlace, Scheme};

pub use parameters::PpaSpec;

use stores::CoreStores;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("ppa/ppa.toml");

/// Bytes that it adds to each core: LightWSP section V-G4.
pub const BYTES_PER_CORE: u64 = 337;

/// The scheme.
#[derive(Debug, Clone)]
pub struct Ppa {
    spec: PpaSpec,
}

impl Ppa {
    /// With these parameters.
    pub fn new(spec: PpaSpec) -> Ppa {
        Ppa { spec }
    }
}

impl Scheme for Ppa {
    fn name(&self) -> &'static str {
        "ppa"
    }

    fn description(&self) -> &'static str {
        "whole-system persistence: stores are written back at once, and their registers stay until then (PPA, MICRO'23)"
    }

    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(CoreStores::new(&self.spec, place)))
    }

    /// Registers and stores that are not acknowledged are saved just in time (MICRO'23).
    fn promises(&self) -> Promises {
        Promises { survives: Survives::Registers, ..Promises::NONE }
    }

    /// The programs keep their own.
    fn logs(&self) -> bool {
        true
    }
}
