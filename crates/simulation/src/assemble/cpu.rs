//! A machine of CPU cores around a process: one server, or several with the same program.
//!
//! What a server is made of is in `server`. Servers are added one after the other, each with its clients;
//! where harts post verbs to other servers, links lead from the poster of each to the NIC of every other, and
//! back (`network.latency_ns`). With several servers each is fused with its clients ([`Fusing`]), so that
//! links between servers alone, of microseconds, bound how far they run before they meet; without such links
//! nothing does. One server has the work of one thread in the main, fused or not.

use durawarp_engine::{Link, Topology};
use durawarp_machine::cpu::CpuSpec;
use durawarp_machine::msg::Msg;
use durawarp_machine::ports::Endpoint;
use durawarp_persist::handler::HandlerPlace;

use super::assembly::{AssembledNode, Assembly};
use super::cpu_load::CpuLoad;
use super::midway::Midway;
use super::persistency::Persistency;
use super::server::{CpuComponents, place_of_server};

/// Which components always share a thread. Results do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fusing {
    /// Home slices with their controller.
    Memory,
    /// All components of a server, and its clients.
    Nodes,
}

impl Fusing {
    /// The faster way: a cluster has servers enough for threads, one server has its own components only.
    pub fn of(spec: &CpuSpec) -> Fusing {
        if spec.nodes.servers > 1 { Fusing::Nodes } else { Fusing::Memory }
    }
}

/// The place of a scheme's handlers in a machine of cores, as they hear of it: the first of each kind, in the
/// first server.
pub fn first_place_of_cores(spec: &CpuSpec) -> HandlerPlace {
    place_of_server(spec, 0)
}

/// Wires a machine of cores around a process, which each server runs in memory of its own.
///
/// # Panics
/// When `spec` has [`CpuSpec::faults`].
pub fn assemble_cpu(spec: &CpuSpec, load: CpuLoad<'_>, persistency: &Persistency) -> Assembly {
    assemble_cpu_fused(spec, load, persistency, Fusing::of(spec))
}

/// The same of one server, whose process is under way.
///
/// # Panics
/// When `spec` has [`CpuSpec::faults`].
pub fn assemble_cpu_midway(
    spec: &CpuSpec,
    load: CpuLoad<'_>,
    persistency: &Persistency,
    midway: Midway<'_>,
) -> Assembly {
    assembled(spec, load, persistency, Fusing::of(spec), Some(midway))
}

/// As [`assemble_cpu`], with a say in what is fused.
///
/// # Panics
/// When `spec` has [`CpuSpec::faults`].
pub fn assemble_cpu_fused(spec: &CpuSpec, load: CpuLoad<'_>, persistency: &Persistency, fusing: Fusing) -> Assembly {
    assembled(spec, load, persistency, fusing, None)
}

fn assembled(
    spec: &CpuSpec,
    load: CpuLoad<'_>,
    persistency: &Persistency,
    fusing: Fusing,
    midway: Option<Midway<'_>>,
) -> Assembly {
    let faults = spec.faults();
    assert!(faults.is_empty(), "a machine with faults: {faults:?}");
    let mut topology = Topology::new();
    let mut nodes = Vec::new();
    for server in 0..spec.nodes.servers {
        let components = CpuComponents::new(spec, (load, midway), persistency, server, topology);
        let (with_node, node) = components.wire(fusing == Fusing::Nodes);
        topology = with_node;
        nodes.push(node);
    }
    join_servers(spec, &nodes, &mut topology);
    Assembly::of(topology, nodes)
}

/// Joins the poster of each server with the NICs of its peers.
fn join_servers(spec: &CpuSpec, nodes: &[AssembledNode], topology: &mut Topology<Msg>) {
    let Some(base) = spec.timebase() else { unreachable!("no timebase is a fault") };
    let link = Link { latency: base.ticks_of_ps(spec.network.latency_ns.ps), phase: 0 };
    for (server, node) in nodes.iter().enumerate() {
        for (distance, role) in (1..).zip(node.roster.servers()) {
            let peer = &nodes[(server + distance) % nodes.len()];
            let ports = [Endpoint::Poster, Endpoint::Nic].map(|of| node.roster.ports(of).to(role));
            let (poster, nic) = (node.ids[&Endpoint::Poster], peer.ids[&Endpoint::Nic]);
            topology.connect(poster, ports[0], nic, link);
            topology.connect(nic, ports[1], poster, link);
        }
    }
}
