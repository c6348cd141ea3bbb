//! The components of a server: a machine of CPU cores with its clients, if it has some.
//!
//! | from | to | latency | the way back |
//! |---|---|---|---|
//! | core, OS, poster; NIC with `nic.ddio` | home slice | `llc.request_cycles` | `llc.reply_cycles` |
//! | home slice | its controller | front end | back end |
//! | core | OS | `os.link_ns` | the same |
//! | hub | cores, home slices; from the OS | `os.link_ns`, or the scheme's | the same |
//! | client | NIC | `network.latency_ns` | the same |
//! | poster | NIC of another server | `network.latency_ns` | the same |
//! | core | poster | `os.link_ns` | the same |
//! | NIC | controllers | the scheme's, as a core | the same |
//! | OS | NIC | `os.link_ns` | none |
//!
//! Tiers: cores; home slices fused with their controller; the OS, the hub, the NIC, the poster and clients.
//! Where the node is fused, the server and its clients are one block in the first tier. The order of
//! components is cores, home slices, controllers, OS, hub, NIC, poster, clients. Hart 0 begins at the
//! program's entry at time 0.

use durawarp_engine::{Clock, ComponentId, Time, Topology};
use durawarp_machine::client::{Client, ClientWiring};
use durawarp_machine::core::{Core, CoreWiring};
use durawarp_machine::cpu::CpuSpec;
use durawarp_machine::home::{HomeSlice, HomeWiring};
use durawarp_machine::mapping::AddressMap;
use durawarp_machine::msg::Msg;
use durawarp_machine::nic::Nic;
use durawarp_machine::os::{OperatingSystem, OsWiring};
use durawarp_machine::ports::{Endpoint, Roster};
use durawarp_machine::poster::{Poster, PosterWiring};
use durawarp_persist::handler::{HandlerPlace, Scheme};
use durawarp_persist::promises::Survives;
use durawarp_persist::vocab::Domain;
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::instruction::SP;
use durawarp_riscv::syscalls::Os;

use super::assembly::AssembledNode;
use super::cpu_load::CpuLoad;
use super::links::Wiring;
use super::memory::cut;
use super::midway::Midway;
use super::parts::{MemoryParts, SharedParts};
use super::persistency::Persistency;
use crate::config::device::tables;

/// Why a thread keeps its hart until it ends, and more threads than harts are refused; none where threads
/// share harts.
pub fn keeps_harts(spec: &CpuSpec, scheme: &dyn Scheme) -> Option<String> {
    let name = scheme.name();
    if scheme.regions().is_some() {
        Some(format!("`{name}` has slots for a thread's registers by its hart"))
    } else if scheme.promises().survives == Survives::Registers {
        Some(format!("`{name}` saves registers, and replays stores, by hart"))
    } else if spec.peers().count > 0 {
        Some("verbs to other servers are counted by hart".to_owned())
    } else {
        None
    }
}

/// The place of a scheme's handlers in a server, as they hear of it: the first of each kind.
pub(super) fn place_of_server(spec: &CpuSpec, server: u32) -> HandlerPlace {
    HandlerPlace {
        index: 0,
        sms: 0,
        cores: spec.core.count as u16,
        harts: spec.core.harts as u16,
        slices: spec.llc.slices as u16,
        controllers: spec.controller.channels as u16,
        tick_khz: spec.timebase().map_or(0, |base| base.tick_khz()),
        l1_combines: true,
        channels: spec.nodes.channels_of(server, spec.harts()),
    }
}

/// What components of a server are made of, and those that are made so far.
pub(super) struct CpuComponents<'a> {
    spec: &'a CpuSpec,
    server: u32,
    load: CpuLoad<'a>,
    /// The process is under way.
    midway: Option<Midway<'a>>,
    parts: SharedParts<'a>,
    core: Clock,
}

impl<'a> CpuComponents<'a> {
    pub(super) fn new(
        spec: &'a CpuSpec,
        (load, midway): (CpuLoad<'a>, Option<Midway<'a>>),
        persistency: &'a Persistency,
        server: u32,
        topology: Topology<Msg>,
    ) -> CpuComponents<'a> {
        let Some(base) = spec.timebase() else { unreachable!("no timebase is a fault") };
        // Slices and channels follow from the mapping, which depends on DRAM's rows.
        let devices = tables(&persistency.devices);
        let Ok(AddressMap { interleave: map, .. }) = spec.address_map(devices) else {
            unreachable!("no mapping is a fault")
        };
        let clients = spec.nodes.clients_of(server);
        let (peers, ddio) = (spec.nodes.peers() as u16, spec.nic.ddio);
        let roster = Roster { clients, peers, ddio, ..Roster::of_cores(spec.core.count as u16, map) };
        let memory = MemoryParts {
            controller: &spec.controller,
            bus: &spec.bus,
            dram: &spec.dram,
            nvm: &spec.nvm,
            devices,
            persist: &spec.persist,
            dram_cache: dram_cache(spec, load, persistency),
            clock: base.clock(spec.clock.memory_mhz.khz),
        };
        let (place, wiring) = (place_of_server(spec, server), Wiring::new(topology, roster));
        let mut parts = SharedParts::new(persistency, base, place, memory, wiring);
        parts.set_prefix(spec.nodes.prefix(server));
        CpuComponents { spec, server, load, midway, parts, core: base.clock(spec.clock.core_mhz.khz) }
    }

    /// Adds the server's components and its clients, and joins them. All of them may be fused.
    pub(super) fn wire(mut self, fused: bool) -> (Topology<Msg>, AssembledNode) {
        let (mut cores, mut homes) = (self.cores(), self.homes());
        if let (Some(midway), Some(core)) = (self.midway, cores.first_mut()) {
            midway.begin(core);
            midway.warm(core, &mut homes, self.roster().map, self.load.memory());
        }
        (0..).zip(cores).for_each(|(index, core)| self.parts.add(Endpoint::Core(index), core));
        (0..).zip(homes).for_each(|(slice, home)| self.parts.add(Endpoint::Home(slice), home));
        self.add_controllers();
        self.add_os();
        self.parts.add_hub();
        self.add_network();
        // Links need every component that they lead to.
        let (spec, base, core, roster) = (self.spec, self.parts.base, self.core, self.roster());
        let paths = self.parts.persistency.scheme.path_links();
        let ticks = |ps| base.ticks_of_ps(ps);
        let mut wiring = self.parts.into_wiring();
        let (request, reply) = (core.cycles(spec.llc.request_cycles.into()), core.cycles(spec.llc.reply_cycles.into()));
        wiring.join_homes(request, reply);
        wiring.join_memory(ticks(spec.controller.front_ns.ps), ticks(spec.controller.back_ns.ps));
        wiring.join_os(ticks(spec.os.link_ns.ps));
        if roster.hub {
            wiring.join_hub(base, ticks(spec.os.link_ns.ps), paths);
        }
        if let Some(paths) = paths {
            wiring.join_controllers(base, paths);
        }
        // The NIC is as far from the controllers as a core.
        if roster.has_nic() {
            let Some(paths) = paths else { unreachable!("a NIC's handler writes to controllers") };
            wiring.join_network(ticks(spec.network.latency_ns.ps), ticks(paths.path_ps), ticks(spec.os.link_ns.ps));
        }
        if fused {
            wiring.fuse_node();
        }
        wiring.into_node(Endpoint::Core(0))
    }

    fn roster(&self) -> Roster {
        self.parts.roster()
    }

    /// The cores; hart 0 is at the program's entry.
    fn cores(&self) -> Vec<Core> {
        let (spec, process) = (self.spec, self.load.process);
        let of = |index: u16| {
            let wiring = CoreWiring {
                index,
                clock: self.core,
                timebase: self.parts.base,
                ports: self.roster().ports(Endpoint::Core(index)),
                memory: self.load.memory(),
                code: process.code.clone(),
                image: process.image.clone(),
                regions: self.load.regions.map(|regions| (regions.table.clone(), self.load.checkpoints())),
            };
            let Some(handler) = self.parts.persistency.scheme.core_handler(self.parts.place(index)) else {
                panic!("a scheme without a handler for cores")
            };
            let persistency = self.parts.persistency;
            let mut core = Core::new(spec.core.clone(), spec.l1d.clone(), wiring, handler, persistency.journal);
            persistency.timeline.into_iter().for_each(|spans| core.keep_timeline(spans));
            if persistency.places {
                core.keep_places();
            }
            if spec.persist.domain == Domain::Eadr {
                core.note_retirement();
            }
            // The loader starts the first hart of each server; the others begin by clone.
            if index == 0 && self.midway.is_none() {
                let mut registers = [0; 64];
                registers[usize::from(SP)] = process.stack_pointer;
                core.begin(0, HartState { registers, pc: process.image.entry, fcsr: 0 });
            }
            core
        };
        (0..self.roster().cores).map(of).collect()
    }

    /// The home slices.
    fn homes(&self) -> Vec<HomeSlice> {
        let spec = self.spec;
        let of = |slice: u16| {
            let wiring = HomeWiring {
                clock: self.core,
                ports: self.roster().ports(Endpoint::Home(slice)),
                memory_credits: (spec.controller.ingress_reads, spec.controller.ingress_writes),
            };
            let mut home = HomeSlice::new(spec.llc.clone(), wiring);
            home.set_persistence(&spec.persist, self.parts.persistency.journal);
            self.parts.persistency.timeline.into_iter().for_each(|spans| home.keep_timeline(spans));
            if self.parts.has_dram_caches() {
                home.set_memory_caches();
            }
            home.host(self.parts.persistency.scheme.home_handler(self.parts.place(slice)));
            home
        };
        (0..spec.llc.slices as u16).map(of).collect()
    }

    /// The memory controllers, with what the process' memory begins with.
    fn add_controllers(&mut self) {
        let (map, extents) = (self.roster().map, self.load.extents());
        let shares = match self.midway {
            Some(midway) => cut(self.load.pages(midway.memory), map, extents),
            None => cut(self.load.contents(), map, extents),
        };
        self.parts.add_controllers(shares);
    }

    /// The operating system.
    fn add_os(&mut self) {
        let wiring = OsWiring {
            ports: self.roster().ports(Endpoint::Os),
            timebase: self.parts.base,
            memory: self.load.memory(),
            harts: self.spec.core.harts,
            image: self.load.process.image.clone(),
        };
        let mut calls = match self.midway {
            Some(midway) => midway.os.clone(),
            None => Os::new(self.load.process, self.spec.harts(), self.load.files.to_vec()),
        };
        let of = &self.spec.os;
        if keeps_harts(self.spec, self.parts.persistency.scheme.as_ref()).is_none() {
            // From when the hart is told to begin, which takes the time of a switch.
            calls = calls.sharing(u64::from(of.quantum_us) * 1000 + (of.syscall_ns.ps + of.switch_ns.ps) / 1000);
        }
        let mut os = OperatingSystem::new(of.clone(), wiring, calls);
        if let Some(midway) = self.midway {
            os.begin_at(midway.now_ns);
        }
        if self.parts.persistency.halts_at_end {
            os.halt_at_end();
        }
        if self.load.regions.is_some() {
            os.follow_regions(self.parts.persistency.journal);
        }
        self.parts.add(Endpoint::Os, os);
    }

    /// The NIC and the clients, where there are some.
    fn add_network(&mut self) {
        let roster = self.roster();
        if !roster.has_nic() {
            return;
        }
        let Some(handler) = self.parts.persistency.scheme.nic_handler(self.parts.first) else {
            panic!("clients of a server whose scheme has no handler in a NIC")
        };
        let (journal, timeline) = (self.parts.persistency.journal, self.parts.persistency.timeline);
        let (spec, memory) = (self.spec, self.load.remote());
        let (channels, peers) =
            (spec.nodes.channels_of(self.server, spec.harts()), spec.nodes.peer_channels(spec.harts()));
        let mut nic = Nic::new(handler, roster.ports(Endpoint::Nic), channels, peers, journal);
        timeline.into_iter().for_each(|spans| nic.keep_timeline(spans));
        self.parts.add(Endpoint::Nic, nic);
        // Its logs lie behind the clients' memory, at its peers as here.
        if roster.peers > 0 {
            let wiring = PosterWiring {
                ports: roster.ports(Endpoint::Poster),
                timebase: self.parts.base,
                memory: self.load.memory(),
                image: self.load.process.image.clone(),
                peers: spec.peers(),
                harts: spec.core.harts,
                channels: peers,
                logs: memory + spec.client_bytes(),
                journal,
            };
            self.parts.add(Endpoint::Poster, Poster::new(spec.network.clone(), wiring));
        }
        // Each client has its part of their memory.
        for channel in 0..roster.clients {
            let number = spec.nodes.client(self.server, channel);
            let wiring = ClientWiring {
                number,
                channel,
                ports: roster.ports(Endpoint::Client(channel)),
                timebase: self.parts.base,
                memory: memory + spec.client.region_bytes() * u64::from(channel),
                journal,
            };
            let mut client = Client::new(spec.client.clone(), spec.network.clone(), wiring);
            timeline.into_iter().for_each(|spans| client.keep_timeline(spans));
            self.parts.add_named(Endpoint::Client(channel), Endpoint::Client(number).to_string(), client);
        }
    }
}

/// Bytes of a channel's DRAM cache. There is one where nothing that leaves the caches needs to survive:
/// persistent memory is volatile main memory, or has its bytes from the scheme. Caches that survive a power
/// failure would write what they have to memory that does not, and other schemes with handlers in controllers
/// have persistent memory hold all that leaves the caches.
fn dram_cache(spec: &CpuSpec, load: CpuLoad<'_>, persistency: &Persistency) -> Option<u64> {
    let scheme = &persistency.scheme;
    let volatile = spec.persist.domain != Domain::Eadr && (scheme.path_links().is_none() || scheme.drops_evictions());
    let bytes = u64::from(spec.dram_cache.mb) * (1 << 20) / u64::from(spec.controller.channels);
    (load.all_persistent && volatile && bytes > 0).then_some(bytes)
}

impl Wiring {
    /// Cores and the OS with home slices.
    fn join_homes(&mut self, request: Time, reply: Time) {
        for slice in self.roster.slices() {
            for requester in self.roster.requester_roles() {
                self.connect(requester, slice, request);
                self.connect(slice, requester, reply);
            }
        }
    }

    /// Cores with the OS.
    fn join_os(&mut self, link: Time) {
        for core in self.roster.cores() {
            self.connect_both(core, Endpoint::Os, link);
        }
        self.topology.put_in_tier(2, &[self.id(Endpoint::Os)]);
    }

    /// The NIC with its clients, which begin at 0, with controllers and with the OS.
    fn join_network(&mut self, latency: Time, path: Time, link: Time) {
        for client in self.roster.clients() {
            self.connect_both(client, Endpoint::Nic, latency);
            let id = self.id(client);
            self.topology.put_in_tier(2, &[id]);
            self.topology.wake_at(id, 0);
        }
        for controller in self.roster.controllers() {
            self.connect_both(Endpoint::Nic, controller, path);
        }
        self.connect(Endpoint::Os, Endpoint::Nic, link);
        self.topology.put_in_tier(2, &[self.id(Endpoint::Nic)]);
        if self.roster.peers > 0 {
            self.roster.cores().for_each(|core| self.connect_both(core, Endpoint::Poster, link));
            self.topology.put_in_tier(2, &[self.id(Endpoint::Poster)]);
        }
    }

    /// Puts the server and its clients into one block: nothing but links between servers bounds its windows,
    /// and what clients send stays in the caches of one thread.
    fn fuse_node(&mut self) {
        let node: Vec<ComponentId> = self.ids.iter().map(|(_, &id)| id).collect();
        self.topology.fuse(&node);
        self.topology.put_in_tier(0, &node);
    }
}
