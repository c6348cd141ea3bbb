//! An assembled machine: the simulation, and which component is what in each of its nodes.
//!
//! What a run came to is read here, component by component. A machine is one node, with its clients if it has
//! some; a cluster is several. Invariant: components of a kind come node by node, in the order of their
//! numbers.

use std::any::Any;
use std::collections::BTreeMap;

use durawarp_engine::{ComponentId, Simulation, Time, Topology};
use durawarp_machine::client::Client;
use durawarp_machine::command_processor::CommandProcessor;
use durawarp_machine::core::Core;
use durawarp_machine::gpc_port::GpcPort;
use durawarp_machine::home::HomeSlice;
use durawarp_machine::hub::Hub;
use durawarp_machine::l2::L2Slice;
use durawarp_machine::memory_controller::MemoryController;
use durawarp_machine::msg::Msg;
use durawarp_machine::nic::Nic;
use durawarp_machine::on_dram::OnDram;
use durawarp_machine::os::OperatingSystem;
use durawarp_machine::ports::{Endpoint, Roster};
use durawarp_machine::poster::Poster;
use durawarp_machine::sm::Sm;
use durawarp_machine::stalls::PersistStalls;
use durawarp_machine::switch::Switch;
use durawarp_persist::journal::Journal;
use durawarp_persist::regions::RegionReport;

/// A machine on links, ready to run, and which component is what.
#[derive(Debug)]
pub struct Assembly {
    /// The simulation; run it.
    pub simulation: Simulation<Msg>,
    /// At least one.
    pub(super) nodes: Vec<AssembledNode>,
}

/// What one node of a machine is made of.
#[derive(Debug)]
pub(super) struct AssembledNode {
    /// Components by role: SMs, command processor, slices, controllers, then what the scheme and the crossbar
    /// add.
    pub(super) ids: BTreeMap<Endpoint, ComponentId>,
    pub(super) roster: Roster,
}

impl Assembly {
    /// A machine of these nodes, ready to run.
    ///
    /// # Panics
    /// When the topology has faults.
    pub(super) fn of(topology: Topology<Msg>, nodes: Vec<AssembledNode>) -> Assembly {
        match Simulation::new(topology) {
            Ok(simulation) => Assembly { simulation, nodes },
            Err(fault) => panic!("the assembled topology is faulty: {fault}"),
        }
    }

    /// The components of a kind, node by node in the order of their numbers.
    pub(super) fn components<T: 'static>(&self) -> impl Iterator<Item = &T> {
        self.nodes.iter().flat_map(|node| self.components_of(node))
    }

    /// The components of a kind of one node.
    pub(super) fn components_of<T: 'static>(&self, node: &AssembledNode) -> impl Iterator<Item = &T> {
        node.ids.values().filter_map(|&id| (self.simulation.component(id) as &dyn Any).downcast_ref())
    }

    /// The id of a component of the first node; none where it has no such.
    pub fn id(&self, role: Endpoint) -> Option<ComponentId> {
        self.nodes[0].ids.get(&role).copied()
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

    /// The ports of GPCs; none where SMs share none.
    pub fn gpc_ports(&self) -> impl Iterator<Item = &GpcPort> {
        self.components()
    }

    /// The memory controllers.
    pub fn controllers(&self) -> impl Iterator<Item = &MemoryController> {
        self.components()
    }

    /// The command processor.
    pub fn command_processor(&self) -> &CommandProcessor {
        self.components().next().unwrap_or_else(|| unreachable!("every machine has one"))
    }

    /// The cores; none in a machine of SMs.
    pub fn cores(&self) -> impl Iterator<Item = &Core> {
        self.components()
    }

    /// The home slices of the shared cache of a machine of cores.
    pub fn homes(&self) -> impl Iterator<Item = &HomeSlice> {
        self.components()
    }

    /// The operating systems of a machine of cores: one a node.
    pub fn systems(&self) -> impl Iterator<Item = &OperatingSystem> {
        self.components()
    }

    /// How many servers it has; 1 of a machine of SMs.
    pub fn servers(&self) -> usize {
        self.nodes.len()
    }

    /// The cores of a server.
    pub fn cores_of(&self, server: usize) -> impl Iterator<Item = &Core> {
        self.components_of(&self.nodes[server])
    }

    /// Something that acts by itself has asked for a time: a deadline of a wait, a client, the host program.
    pub fn awaits_time(&self) -> bool {
        let acts = |role: &Endpoint| {
            matches!(
                role,
                Endpoint::Os | Endpoint::CommandProcessor | Endpoint::Nic | Endpoint::Client(_) | Endpoint::Poster
            )
        };
        let acting = self.nodes.iter().flat_map(|node| node.ids.iter().filter(|(role, _)| acts(role)));
        acting.into_iter().any(|(_, &id)| self.simulation.pending_wake(id).is_some())
    }

    /// The network interfaces of servers with clients.
    pub fn nics(&self) -> impl Iterator<Item = &Nic> {
        self.components()
    }

    /// What posts the verbs of harts: one a server, where servers are linked.
    pub fn posters(&self) -> impl Iterator<Item = &Poster> {
        self.components()
    }

    /// The clients, server by server.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.components()
    }

    /// When the last client committed its last transaction, in ticks; none without clients.
    pub fn committed(&self) -> Option<Time> {
        self.clients().map(Client::committed).max()
    }

    /// When the program was over, in ticks; none while it runs on any node.
    pub fn ended(&self) -> Option<Time> {
        let mut systems = self.systems().map(|os| os.ended().map(|(at, _)| at)).peekable();
        match systems.peek() {
            Some(_) => systems.collect::<Option<Vec<Time>>>()?.into_iter().max(),
            None => self.command_processor().ended(),
        }
    }

    /// Launches that are over. Of a machine with a GPU.
    pub fn launches_over(&self) -> usize {
        self.command_processor().launches().iter().filter(|launch| launch.end > 0).count()
    }

    /// What the scheme tells about the run: its own component (of several nodes that of the first), and of
    /// recoverable regions all its handlers together.
    pub fn scheme_report(&self) -> Option<serde_json::Value> {
        let told = self.components::<Hub>().next().map(Hub::report);
        let regions = self.region_report().and_then(|regions| serde_json::to_value(regions).ok());
        // A scheme may have regions without a component of its own.
        let Some(mut told) = told else { return regions };
        if let (Some(told), Some(serde_json::Value::Object(regions))) = (told.as_object_mut(), regions) {
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
        let of_cores = self.cores().map(|core| core.report().regions);
        let of_controllers = self.controllers().map(MemoryController::region_report);
        of_sms.chain(of_cores).chain(of_controllers).flatten().reduce(|mut sum, of| {
            sum.merge(of);
            sum
        })
    }

    /// What happened to persistent memory of the first node, when journals were kept.
    pub fn journal(&self) -> Journal {
        self.journal_of(0)
    }

    /// The same of every node: journals of several name the same harts and lines.
    pub fn journals(&self) -> impl Iterator<Item = Journal> {
        (0..self.nodes.len()).map(|server| self.journal_of(server))
    }

    /// By time, then the command processor before SMs, or cores, before slices before controllers; then the
    /// NIC, clients, and what other servers posted to it.
    fn journal_of(&self, server: usize) -> Journal {
        let node = &self.nodes[server];
        let host = self.components_of(node).filter_map(CommandProcessor::journal);
        let sms = host.chain(self.components_of(node).filter_map(Sm::journal));
        let compute = sms.chain(self.components_of(node).filter_map(Core::journal));
        let slices = self.components_of(node).filter_map(L2Slice::journal);
        let slices = slices.chain(self.components_of(node).filter_map(HomeSlice::journal));
        let controllers = self.components_of(node).filter_map(MemoryController::journal);
        let nic = self.components_of(node).filter_map(Nic::journal);
        let network = nic.chain(self.components_of(node).filter_map(Client::journal));
        // The server so far back has this one as its peer at that distance.
        let posted = (1..=usize::from(node.roster.peers)).filter_map(|distance| {
            let from = &self.nodes[(server + self.nodes.len() - distance) % self.nodes.len()];
            self.components_of::<Poster>(from).next()?.journal(distance as u32)
        });
        let all = compute.chain(slices).chain(controllers).chain(network).chain(posted);
        Journal::merged(&all.collect::<Vec<_>>())
    }

    /// Where persists waited: of all SMs, then of the command processor. Not of cores, which count it.
    pub fn persist_stalls(&self) -> PersistStalls {
        let mut all = PersistStalls::default();
        for stalls in self.sms().map(Sm::stalls) {
            all.add(stalls);
        }
        self.components().for_each(|host: &CommandProcessor| all.boundaries.add(host.boundaries()));
        all
    }

    /// For each kernel that used persistency operations on DRAM, in the order of launches: the first such
    /// instruction.
    pub fn on_dram(&self) -> Vec<OnDram> {
        OnDram::merged(self.sms().flat_map(Sm::on_dram))
    }

    /// Names of all components, in the order of their ids.
    pub fn component_names(&self) -> Vec<String> {
        (0..self.simulation.components() as u32).map(|id| self.simulation.name(ComponentId(id)).to_owned()).collect()
    }
}
