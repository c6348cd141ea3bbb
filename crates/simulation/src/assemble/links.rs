//! Which components are joined, and with what latency.
//!
//! | from | to | latency | the way back |
//! |---|---|---|---|
//! | SM | slice | miss path, crossbar, L2 pipeline | crossbar, fill path |
//! | command processor | slice | crossbar, L2 pipeline | crossbar |
//! | slice | its controller | front end | back end |
//! | SM | command processor | a command's | a command's |
//! | SM | SMs of its GPC, itself included; only for programs with clusters | `shared.cluster_cycles` | the same |
//! | hub | SMs, slices; from the command processor | a command's, or the scheme's | the same |
//! | SM, controller, hub | controller (handlers there) | the scheme's | the same |
//! | requester | switch, then slice | as without; one cycle of the hop lies after it | another switch |
//! | slice | port of a GPC, then its SMs | as without; one cycle of the hop lies after it | - |
//! | SM | slice of another partition | `crossbar.far_cycles` more | as much more |
//!
//! Constant pipeline delays lie on links, where they widen the engine's lookahead. Tiers: SMs; slices fused
//! with their controller, so that their short links hold no other component back; the command processor and
//! the hub.

use std::collections::BTreeMap;

use durawarp_engine::{Component, ComponentId, Link, Time, Timebase, Topology};
use durawarp_machine::MachineSpec;
use durawarp_machine::msg::Msg;
use durawarp_machine::partitions::Partitions;
use durawarp_machine::ports::{Endpoint, Roster};
use durawarp_persist::handler::PathLinks;

use super::assembly::AssembledNode;

/// Latencies of links, in ticks.
#[derive(Debug)]
pub(super) struct Latencies {
    pub(super) base: Timebase,
    /// From an SM's load-store unit to the crossbar.
    miss: Time,
    /// Across the crossbar.
    hop: Time,
    /// One cycle of the crossbar, which lies after a switch.
    crossbar_cycle: Time,
    /// From the crossbar to a slice's tags.
    pipeline: Time,
    /// From the crossbar to an SM's registers.
    fill: Time,
    pub(super) command: Time,
    pub(super) front: Time,
    pub(super) back: Time,
    /// Between SMs of a GPC.
    pub(super) cluster: Time,
    /// How much further slices of other partitions are.
    partitions: Partitions,
}

impl Latencies {
    /// Those of a machine.
    pub(super) fn of(spec: &MachineSpec) -> Latencies {
        let Some(base) = spec.timebase() else { unreachable!("no timebase is a fault") };
        let core = base.clock(spec.clock.core_mhz.khz);
        let crossbar = base.clock(spec.clock.crossbar_mhz.khz);
        let l2 = base.clock(spec.clock.l2_mhz.khz);
        Latencies {
            base,
            miss: core.cycles(u64::from(spec.l1.miss_cycles)),
            hop: crossbar.cycles(u64::from(spec.crossbar.latency_cycles)),
            crossbar_cycle: crossbar.cycles(1),
            pipeline: l2.cycles(u64::from(spec.l2.pipeline_cycles)),
            fill: core.cycles(u64::from(spec.l1.fill_cycles)),
            command: base.ticks_of_ps(spec.dispatch.command_ns.ps),
            front: base.ticks_of_ps(spec.controller.front_ns.ps),
            back: base.ticks_of_ps(spec.controller.back_ns.ps),
            cluster: core.cycles(u64::from(spec.shared.cluster_cycles)),
            partitions: Partitions::new(
                spec.crossbar.partitions as u16,
                spec.l2.slices as u16,
                spec.sm.count as u16,
                if spec.crossbar.gpcs > 0 { spec.crossbar.gpcs as u16 } else { spec.sm.gpcs as u16 },
                crossbar.cycles(u64::from(spec.crossbar.far_cycles)),
            ),
        }
    }

    /// By how much the way between a requester, or the port of a GPC, and a slice is longer than to the
    /// nearest.
    fn far(&self, from: Endpoint, slice: Endpoint) -> Time {
        match (from, slice) {
            (Endpoint::Sm(sm), Endpoint::Slice(slice)) => self.partitions.between(sm, slice),
            (Endpoint::GpcPort(gpc), Endpoint::Slice(slice)) => self.partitions.from_gpc(gpc, slice),
            _ => 0,
        }
    }

    /// Delays of a requester on its way to the crossbar, and back from it.
    fn of_requester(&self, role: Endpoint) -> (Time, Time) {
        if role == Endpoint::CommandProcessor { (0, 0) } else { (self.miss, self.fill) }
    }
}

/// The components of a node by role, while they are joined. The topology has those of the nodes before it.
#[derive(Debug)]
pub(super) struct Wiring {
    pub(super) topology: Topology<Msg>,
    pub(super) roster: Roster,
    pub(super) ids: BTreeMap<Endpoint, ComponentId>,
}

impl Wiring {
    /// A node without components.
    pub(super) fn new(topology: Topology<Msg>, roster: Roster) -> Wiring {
        Wiring { topology, roster, ids: BTreeMap::new() }
    }

    /// Adds a component.
    pub(super) fn add(&mut self, role: Endpoint, name: String, component: Box<dyn Component<Msg>>) {
        let id = self.topology.add(name, component);
        self.ids.insert(role, id);
    }

    pub(super) fn id(&self, role: Endpoint) -> ComponentId {
        match self.ids.get(&role) {
            Some(&id) => id,
            None => panic!("the machine has no {role}"),
        }
    }

    pub(super) fn connect(&mut self, from: Endpoint, to: Endpoint, latency: Time) {
        let port = self.roster.ports(from).to(to);
        self.topology.connect(self.id(from), port, self.id(to), Link { latency, phase: 0 });
    }

    pub(super) fn connect_both(&mut self, one: Endpoint, other: Endpoint, latency: Time) {
        self.connect(one, other, latency);
        self.connect(other, one, latency);
    }

    /// Requesters and slices, by packets and credits.
    pub(super) fn join_crossbar(&mut self, l: &Latencies) {
        for slice in self.roster.slices() {
            for requester in self.roster.requester_roles() {
                let (miss, fill) = l.of_requester(requester);
                let hop = l.hop + l.far(requester, slice);
                self.connect(requester, slice, miss + hop + l.pipeline);
                self.connect(slice, requester, hop + fill);
            }
        }
    }

    /// Slices and their controllers, which share a partition and a tier.
    pub(super) fn join_memory(&mut self, front: Time, back: Time) {
        for controller in self.roster.controllers() {
            let own: Vec<Endpoint> =
                self.roster.slices().filter(|&slice| self.roster.serves(controller, slice)).collect();
            for &slice in &own {
                self.connect(slice, controller, front);
                self.connect(controller, slice, back);
            }
            let together: Vec<ComponentId> = own.into_iter().chain([controller]).map(|role| self.id(role)).collect();
            self.topology.fuse(&together);
            self.topology.put_in_tier(1, &together);
        }
    }

    /// The command processor and the SMs.
    pub(super) fn join_commands(&mut self, l: &Latencies) {
        for sm in self.roster.sms() {
            self.connect_both(sm, Endpoint::CommandProcessor, l.command);
        }
        self.topology.put_in_tier(2, &[self.id(Endpoint::CommandProcessor)]);
        self.topology.let_answer(2);
    }

    /// SMs of a GPC with each other, where a program has clusters.
    pub(super) fn join_neighbours(&mut self, l: &Latencies) {
        for sm in 0..self.roster.sms {
            for other in self.roster.neighbours(sm).into_iter().flatten() {
                self.connect(Endpoint::Sm(sm), Endpoint::Sm(other), l.cluster);
            }
        }
    }

    /// The scheme's own component and all that write to it.
    pub(super) fn join_hub(&mut self, base: Timebase, command: Time, paths: Option<PathLinks>) {
        let to_compute = paths.map_or(command, |paths| base.ticks_of_ps(paths.hub_ps));
        for compute in self.roster.sms().chain(self.roster.cores()) {
            self.connect_both(compute, Endpoint::Hub, to_compute);
        }
        for slice in self.roster.slices() {
            self.connect_both(slice, Endpoint::Hub, command);
        }
        self.connect(self.roster.host(), Endpoint::Hub, command);
        self.topology.put_in_tier(2, &[self.id(Endpoint::Hub)]);
    }

    /// Controllers of a scheme with handlers there: with SMs, with each other, with the hub. They stand in a
    /// row, SMs before the first.
    pub(super) fn join_controllers(&mut self, base: Timebase, paths: PathLinks) {
        let ticks = |ps| base.ticks_of_ps(ps);
        let controllers: Vec<Endpoint> = self.roster.controllers().collect();
        for (at, &controller) in controllers.iter().enumerate() {
            for compute in self.roster.sms().chain(self.roster.cores()) {
                self.connect_both(compute, controller, ticks(paths.path_ps + paths.step_ps * at as u64));
            }
            for (other_at, &other) in controllers.iter().enumerate().filter(|&(other_at, _)| other_at != at) {
                let between = at.abs_diff(other_at) as u64 - 1;
                self.connect(controller, other, ticks(paths.ack_ps + paths.step_ps * between));
            }
            if self.roster.hub {
                self.connect_both(controller, Endpoint::Hub, ticks(paths.hub_ps));
            }
        }
    }

    /// The crossbar's switches. Packets take these links instead of the direct ones, which credits keep
    /// taking.
    pub(super) fn join_switches(&mut self, l: &Latencies) {
        let (requests, replies) = (Endpoint::RequestSwitch, Endpoint::ReplySwitch);
        let (before, after) = (l.hop - l.crossbar_cycle, l.crossbar_cycle);
        for slice in self.roster.slices() {
            self.connect(requests, slice, after + l.pipeline);
            self.connect(slice, replies, before);
        }
        for requester in self.roster.requester_roles() {
            let (miss, fill) = l.of_requester(requester);
            self.connect(requester, requests, miss + before);
            self.connect(requests, requester, after);
            self.connect(replies, requester, after + fill);
        }
        self.topology.put_in_tier(1, &[self.id(requests), self.id(replies)]);
    }

    /// The ports of GPCs. Replies take these links instead of the direct ones.
    pub(super) fn join_gpc_ports(&mut self, l: &Latencies) {
        let (before, after) = (l.hop - l.crossbar_cycle, l.crossbar_cycle);
        for gpc in 0..self.roster.gpc_ports {
            let port = Endpoint::GpcPort(gpc);
            for slice in self.roster.slices() {
                self.connect(slice, port, before + l.far(port, slice));
            }
            for sm in self.roster.sms_behind(gpc) {
                self.connect(port, Endpoint::Sm(sm), after + l.fill);
            }
            self.topology.put_in_tier(1, &[self.id(port)]);
        }
    }

    /// The node, which begins with this component.
    pub(super) fn into_node(mut self, first: Endpoint) -> (Topology<Msg>, AssembledNode) {
        self.topology.wake_at(self.id(first), 0);
        (self.topology, AssembledNode { ids: self.ids, roster: self.roster })
    }
}
