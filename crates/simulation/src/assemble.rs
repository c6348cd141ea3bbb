//! From a machine's parameters, a memory image and a host program to components on links: the one place that
//! wires.
//!
//! ```text
//!   MachineSpec, Scheme ─ components ─> components by role ─ links ─> topology ─> Simulation
//!   FlatMemory ─ memory ─> shares of the controllers       ... after the run ─ memory ─> FlatMemory
//! ```
//! Ports come from [`durawarp_machine::ports`]. Invariant: the order of components, which is the order of
//! their events at one instant, depends on the machine alone: SMs, slices, controllers, command processor,
//! hub, switches, ports of GPCs. Machines of cores: [`assemble_cpu`].

mod assembly;
pub mod checkpoint;
mod components;
mod cpu;
mod cpu_load;
mod formed_process;
mod links;
mod memory;
mod midway;
mod parts;
mod persistency;
mod server;
mod surviving;

use durawarp_kernel::host::HostProgram;
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::MachineSpec;
use durawarp_machine::ports::Endpoint;

pub use assembly::Assembly;
use components::Components;
pub use cpu::{Fusing, assemble_cpu, assemble_cpu_fused, assemble_cpu_midway, first_place_of_cores};
pub use cpu_load::CpuLoad;
pub use formed_process::FormedProcess;
use links::Latencies;
pub use memory::{NodeMemory, Peek, TOUCHED_BYTES};
pub use midway::Midway;
pub use persistency::{Persistency, first_place};
pub use server::keeps_harts;
pub use surviving::{SurvivingLine, SurvivingLines};

/// Wires a machine without persistency: [`assemble_with`] the scheme `base`, and no journal.
///
/// # Panics
/// When `spec` has [`MachineSpec::faults`].
pub fn assemble(spec: &MachineSpec, memory: FlatMemory, local_bytes: u32, host: Box<dyn HostProgram>) -> Assembly {
    assemble_with(spec, memory, local_bytes, host, &Persistency::default())
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
    let mut components = Components::new(spec, persistency, host.has_clusters());
    // The order in which components are added is that of their ids, by which events of one instant are
    // ordered.
    let memory = components.cut(memory, local_bytes);
    components.add_sms(&memory);
    components.add_slices(&memory);
    components.parts.add_controllers(memory.shares);
    components.add_command_processor(host);
    components.parts.add_hub();
    components.add_switches();
    components.add_gpc_ports();
    let roster = components.roster();
    let mut wiring = components.into_wiring();
    wiring.join_crossbar(&latencies);
    wiring.join_memory(latencies.front, latencies.back);
    wiring.join_commands(&latencies);
    wiring.join_neighbours(&latencies);
    if roster.hub {
        wiring.join_hub(latencies.base, latencies.command, persistency.scheme.path_links());
    }
    if let Some(paths) = persistency.scheme.path_links() {
        wiring.join_controllers(latencies.base, paths);
    }
    if roster.switched {
        wiring.join_switches(&latencies);
    }
    wiring.join_gpc_ports(&latencies);
    let (topology, node) = wiring.into_node(Endpoint::CommandProcessor);
    Assembly::of(topology, vec![node])
}
