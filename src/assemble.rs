//! From a machine's parameters, a memory image and a host program to components on links: the one place that
//! wires.
//!
//! ```text
//!   MachineSpec, Scheme ─ components ─> components by role ─ links ─> topology ─> Simulation
//!   FlatMemory ─ memory ─> shares of the controllers       ... after the run ─ memory ─> FlatMemory
//! ```
//! Ports come from [`crate::machine::ports`]. Invariant: the order of components, which is the order of their
//! events at one instant, depends on the machine alone: SMs, slices, controllers, command processor, hub,
//! switches.

mod components;
mod links;
mod memory;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::{ComponentId, Simulation};
use crate::kernel::host::HostProgram;
use crate::kernel::memory::FlatMemory;
use crate::machine::MachineSpec;
use crate::machine::address::Interleave;
use crate::machine::dispatch::CommandProcessor;
use crate::machine::hub::Hub;
use crate::machine::l1::L1Writes;
use crate::machine::l2::L2Slice;
use crate::machine::memory_controller::MemoryController;
use crate::machine::msg::Msg;
use crate::machine::on_dram::OnDram;
use crate::machine::ports::Endpoint;
use crate::machine::sm::Sm;
use crate::machine::stalls::PersistStalls;
use crate::machine::switch::Switch;
use crate::persist::handler::{HandlerPlace, Scheme};
use crate::persist::journal::Journal;
use crate::persist::regions::RegionReport;
use crate::schemes::baseline::BASE;

use components::Components;
use links::Latencies;

/// A machine on links, ready to run, and which component is what.
#[derive(Debug)]
pub struct Assembly {
    /// The simulation; run it.
    pub simulation: Simulation<Msg>,
    /// Components by role: SMs, command processor, slices, controllers, then what the scheme and the crossbar
    /// add.
    ids: BTreeMap<Endpoint, ComponentId>,
    map: Interleave,
}

/// How persistency is done, and whether it is written down.
#[derive(Debug, Clone)]
pub struct Persistency {
    /// The scheme.
    pub scheme: Arc<dyn Scheme>,
    /// Components keep journals of what happens to persistent memory.
    pub journal: bool,
    /// Components keep timelines, each of up to so many spans and values of a kind.
    pub timeline: Option<usize>,
    /// The simulation halts once, when the host program is over, so that what has not drained can be looked
    /// at. It goes on from there as if it had not.
    pub halts_at_end: bool,
}

impl Default for Persistency {
    /// No persistency, no journal, no timeline, no halt.
    fn default() -> Self {
        Persistency { scheme: Arc::new(BASE), journal: false, timeline: None, halts_at_end: false }
    }
}

/// Wires a machine without persistency: [`assemble_with`] the scheme `base`, and no journal.
///
/// # Panics
/// When `spec` has [`MachineSpec::faults`].
pub fn assemble(spec: &MachineSpec, memory: FlatMemory, local_bytes: u32, host: Box<dyn HostProgram>) -> Assembly {
    assemble_with(spec, memory, local_bytes, host, &Persistency::default())
}

/// What a scheme's handlers are told of a machine; the first of each kind.
pub fn first_place(spec: &MachineSpec) -> HandlerPlace {
    HandlerPlace {
        index: 0,
        sms: spec.sm.count as u16,
        slices: spec.l2.slices as u16,
        controllers: spec.controller.channels as u16,
        tick_khz: spec.timebase().map_or(0, |base| base.tick_khz()),
        l1_combines: spec.l1.writes == L1Writes::Combine,
    }
}

/// Wires a machine around a memory image and a host program. `local_bytes` is the most local memory any
/// kernel of the program needs a thread.
///
/// # Panics
/// When `spec` has [`MachineSpec::faults`].
pub fn assemble_with(
    spec: &MachineSpec,
    memory: FlatMemory,
    local_bytes: u32,
    host: Box<dyn HostProgram>,
    persistency: &Persistency,
) -> Assembly {
    let faults = spec.faults();
    assert!(faults.is_empty(), "a machine with faults: {faults:?}");
    let latencies = Latencies::of(spec);
    let mut components = Components::new(spec, persistency);
    // The order in which components are added is that of their ids, by which events of one instant are
    // ordered.
    let memory = components.cut(memory, local_bytes);
    components.add_sms(&memory);
    components.add_slices(&memory);
    components.add_controllers(memory);
    components.add_command_processor(host);
    components.add_hub();
    components.add_switches();
    let roster = components.roster();
    let mut wiring = components.into_wiring();
    wiring.join_crossbar(&latencies);
    wiring.join_memory(&latencies);
    wiring.join_commands(&latencies);
    if roster.hub {
        wiring.join_hub(&latencies, persistency.scheme.path_links());
    }
    if let Some(paths) = persistency.scheme.path_links() {
        wiring.join_controllers(&latencies, paths);
    }
    if roster.switched {
        wiring.join_switches(&latencies);
    }
    wiring.start(roster.map)
}

impl Assembly {
    /// The components of a kind, in the order of their numbers.
    fn components<T: 'static>(&self) -> impl Iterator<Item = &T> {
        self.ids.values().filter_map(|&id| (self.simulation.component(id) as &dyn Any).downcast_ref())
    }

    /// The id of a component; none where the machine has no such.
    pub fn id(&self, role: Endpoint) -> Option<ComponentId> {
        self.ids.get(&role).copied()
    }

    /// The SMs.
    pub fn sms(&self) -> impl Iterator<Item = &Sm> {
        self.components()
    }

    /// The L2 slices.
    pub fn slices(&self) -> impl Iterator<Item = &L2Slice> {
        self.components()
    }

    /// The crossbar's switches: of requests, of replies; none where contention is at its ports only.
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        self.components()
    }

    /// The memory controllers.
    pub fn controllers(&self) -> impl Iterator<Item = &MemoryController> {
        self.components()
    }

    /// The command processor.
    pub fn dispatch(&self) -> &CommandProcessor {
        self.components().next().unwrap_or_else(|| unreachable!("every machine has one"))
    }

    /// What the scheme tells about the run: its own component, and of recoverable regions all its handlers
    /// together.
    pub fn scheme_report(&self) -> Option<serde_json::Value> {
        let mut told = self.components::<Hub>().next()?.report();
        if let (Some(told), Some(regions)) = (told.as_object_mut(), self.region_report())
            && let Ok(serde_json::Value::Object(regions)) = serde_json::to_value(regions)
        {
            // What the component itself tells is not what handlers leave at zero.
            regions.into_iter().for_each(|(key, value)| {
                told.entry(key).or_insert(value);
            });
        }
        Some(told)
    }

    /// What handlers saw of recoverable regions; none under a scheme without.
    fn region_report(&self) -> Option<RegionReport> {
        let of_sms = self.sms().map(Sm::region_report);
        let of_controllers = self.controllers().map(MemoryController::region_report);
        of_sms.chain(of_controllers).flatten().reduce(|mut sum, of| {
            sum.merge(of);
            sum
        })
    }

    /// What happened to persistent memory, when journals were kept: by time, then the command processor
    /// before SMs before slices before controllers.
    pub fn journal(&self) -> Journal {
        let sms = self.dispatch().journal().into_iter().chain(self.sms().filter_map(Sm::journal));
        let slices = self.slices().filter_map(L2Slice::journal);
        let controllers = self.controllers().filter_map(MemoryController::journal);
        Journal::merged(&sms.chain(slices).chain(controllers).collect::<Vec<_>>())
    }

    /// Where persists waited: of all SMs, then of the command processor.
    pub fn persist_stalls(&self) -> PersistStalls {
        let mut all = PersistStalls::default();
        for stalls in self.sms().map(Sm::stalls) {
            all.add(stalls);
        }
        all.boundaries.add(self.dispatch().boundaries());
        all
    }

    /// For each kernel that used persistency operations on DRAM, in the order of launches: the first such
    /// instruction.
    pub fn on_dram(&self) -> Vec<OnDram> {
        OnDram::merged(self.sms().flat_map(Sm::on_dram))
    }

    /// Names of all components, in the order of their ids.
    pub fn component_names(&self) -> Vec<String> {
        let mut ids: Vec<ComponentId> = self.ids.values().copied().collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids.into_iter().map(|id| self.simulation.name(id).to_owned()).collect()
    }
}
