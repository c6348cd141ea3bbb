//! How persistency is done in a machine: the scheme, the memory devices, what is recorded, and the place each
//! handler is told of.

use std::sync::Arc;

use durawarp_machine::MachineSpec;
use durawarp_machine::l1::L1Writes;
use durawarp_persist::handler::{HandlerPlace, Scheme};
use durawarp_schemes::baseline::BASE;

use crate::config::device::Devices;

/// How persistency is done, and whether it is written down.
#[derive(Debug, Clone)]
pub struct Persistency {
    pub scheme: Arc<dyn Scheme>,
    /// The machine's memory devices, where they are not plain ones: its parameters only name them.
    pub devices: Devices,
    /// Components keep journals of what happens to persistent memory.
    pub journal: bool,
    /// Components keep timelines, each of at most this many spans and values of a kind.
    pub timeline: Option<usize>,
    /// Cores note which instructions dispatch slots are lost at.
    pub places: bool,
    /// Controllers count writes to the cells of NVM line by line.
    pub line_writes: bool,
    /// The simulation halts once, when the host program is over, so that a caller can look at what has not
    /// drained. It continues from there as if it had not halted.
    pub halts_at_end: bool,
    /// The simulation halts likewise whenever a launch is over.
    pub halts_after_launches: bool,
    /// Launches of several streams may run at once.
    pub overlaps: bool,
}

impl Default for Persistency {
    /// No persistency, no journal, no timeline, no halt.
    fn default() -> Self {
        Persistency {
            scheme: Arc::new(BASE),
            devices: Devices::default(),
            journal: false,
            timeline: None,
            places: false,
            line_writes: false,
            halts_at_end: false,
            halts_after_launches: false,
            overlaps: false,
        }
    }
}

/// The place of a scheme's handlers in a machine, as they hear of it: the first of each kind.
pub fn first_place(spec: &MachineSpec) -> HandlerPlace {
    HandlerPlace {
        index: 0,
        sms: spec.sm.count as u16,
        cores: 0,
        harts: 0,
        slices: spec.l2.slices as u16,
        controllers: spec.controller.channels as u16,
        tick_khz: spec.timebase().map_or(0, |base| base.tick_khz()),
        l1_combines: spec.l1.writes == L1Writes::Combine,
        channels: 0,
    }
}
