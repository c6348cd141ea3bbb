//! A machine of CPU cores around a process.
//!
//! | from | to | latency | the way back |
//! |---|---|---|---|
//! | core, OS | home slice | `llc.request_cycles` | `llc.reply_cycles` |
//! | home slice | its controller | front end | back end |
//! | core | OS | `os.link_ns` | the same |
//! | hub | cores, home slices; from the OS | `os.link_ns`, or the scheme's | the same |
//! | client | NIC | `network.latency_ns` | the same |
//! | NIC | controllers | the scheme's, as a core | the same |
//!
//! Tiers: cores; home slices fused with their controller; the OS, the hub, the NIC and clients. The order of
//! components is cores, home slices, controllers, OS, hub, NIC, clients. Hart 0 begins at
//! the program's entry at time 0.
//!
//! | physical memory | holds |
//! |---|---|
//! | from the base of DRAM, or of NVM where all memory is persistent | the main window, by virtual address |
//! | from the base of NVM, a page after a main window there | the persistent window |
//! | the next whole MiB of NVM | clients' memory, by their number |
//! | the next whole MiB of NVM | checkpoints of harts, by their number, under a scheme of regions |
//!
//! Invariant: memory that nothing was written to costs neither host memory nor time.

use crate::engine::{Clock, Time};
use crate::kernel::memory::{DRAM_BASE, FlatMemory, Medium, NVM_BASE};
use crate::machine::address::{Interleave, offset_in_medium};
use crate::machine::client::{Client, ClientWiring};
use crate::machine::coherence::HartState;
use crate::machine::core::{Core, CoreWiring};
use crate::machine::cpu::{CpuMemory, CpuSpec};
use crate::machine::home::{HomeSlice, HomeWiring};
use crate::machine::nic::Nic;
use crate::machine::os::{OperatingSystem, OsWiring};
use crate::machine::ports::{Endpoint, Roster};
use crate::persist::handler::HandlerPlace;
use crate::persist::vocab::Domain;
use crate::riscv::instruction::SP;
use crate::riscv::memory::{PAGE_BYTES, Windows};
use crate::riscv::process::Process;
use crate::riscv::syscalls::{File, Os};

use super::assembly::Assembly;
use super::formed_process::FormedProcess;
use super::links::Wiring;
use super::memory::cut;
use super::parts::{MemoryParts, SharedParts};
use super::persistency::Persistency;

/// Where the clients' memory begins, and how it ends: a whole MiB.
const REMOTE_ALIGNMENT: u64 = 1 << 20;

/// What a machine of cores is to run.
#[derive(Debug, Clone, Copy)]
pub struct CpuLoad<'a> {
    /// The process.
    pub process: &'a Process,
    /// Files that it may open.
    pub files: &'a [File],
    /// The main window lies in persistent memory, too.
    pub all_persistent: bool,
    /// Bytes of persistent memory that clients over the network have, all of them together.
    pub remote_bytes: u64,
    /// The process formed into regions, under a scheme of these.
    pub regions: Option<&'a FormedProcess>,
}

impl CpuLoad<'_> {
    /// Where its windows lie in physical memory.
    pub fn memory(&self) -> CpuMemory {
        let windows = self.process.start.windows;
        let [main, persistent] = if self.all_persistent {
            [NVM_BASE, NVM_BASE + windows.memory_bytes + PAGE_BYTES]
        } else {
            [DRAM_BASE, NVM_BASE]
        };
        CpuMemory { windows, main, persistent }
    }

    /// Physical address of the clients' memory: behind the windows, at a whole MiB.
    pub fn remote(&self) -> u64 {
        let memory = self.memory();
        (memory.persistent + memory.windows.pm_bytes).next_multiple_of(REMOTE_ALIGNMENT)
    }

    /// Physical address of the harts' checkpoints, under a scheme of regions: behind all other memory.
    pub fn checkpoints(&self) -> u64 {
        (self.remote() + self.remote_bytes).next_multiple_of(REMOTE_ALIGNMENT)
    }

    /// What is used of physical memory: start and bytes of the windows, and of the clients' memory.
    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let memory = self.memory();
        let Windows { memory_bytes, pm_bytes } = memory.windows;
        let remote = (self.remote(), self.remote_bytes.next_multiple_of(REMOTE_ALIGNMENT));
        let checkpoints = (self.checkpoints(), self.regions.map_or(0, |regions| regions.checkpoints.len() as u64));
        let all = [(memory.main, memory_bytes), (memory.persistent, pm_bytes), remote, checkpoints];
        all.into_iter().filter(|&(_, bytes)| bytes > 0)
    }

    /// Both windows and the clients' memory as the process finds them, by physical address. Zeros are
    /// committed by the host when they are touched.
    pub fn image(&self) -> FlatMemory {
        let mut image = FlatMemory::default();
        for (start, bytes) in self.ranges() {
            image.place(start, vec![0; bytes as usize]);
        }
        for (address, bytes) in self.contents() {
            if image.write(address, bytes).is_err() {
                unreachable!("{address:#x} lies in a window");
            }
        }
        image
    }

    /// The bytes that memory begins with, by physical address.
    fn contents(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let memory = self.memory();
        let checkpoints = self.regions.map(|regions| (self.checkpoints(), &regions.checkpoints[..]));
        let of_windows = self.process.contents().filter(|(_, bytes)| !bytes.is_empty()).map(move |(address, bytes)| {
            match memory.physical(address, bytes.len() as u64) {
                Some(physical) => (physical, bytes),
                None => panic!("the process begins with {} bytes at {address:#x}, outside its memory", bytes.len()),
            }
        });
        of_windows.chain(checkpoints)
    }

    /// Bytes of each medium, from its base, that the windows reach to.
    fn extents(&self) -> [u64; 2] {
        let mut extents = [0; 2];
        for (start, bytes) in self.ranges() {
            let extent: &mut u64 = &mut extents[Medium::of(start) as usize];
            *extent = (*extent).max(offset_in_medium(start) + bytes);
        }
        extents
    }
}

/// The place of a scheme's handlers in a machine of cores, as they hear of it: the first of each kind.
pub fn first_place_of_cores(spec: &CpuSpec) -> HandlerPlace {
    HandlerPlace {
        index: 0,
        sms: spec.core.count as u16,
        slices: spec.llc.slices as u16,
        controllers: spec.controller.channels as u16,
        tick_khz: spec.timebase().map_or(0, |base| base.tick_khz()),
        l1_combines: true,
        harts: spec.core.harts as u16,
        clients: spec.client.count as u16,
    }
}

/// Wires a machine of cores around a process.
///
/// # Panics
/// When `spec` has [`CpuSpec::faults`].
pub fn assemble_cpu(spec: &CpuSpec, load: CpuLoad<'_>, persistency: &Persistency) -> Assembly {
    let faults = spec.faults();
    assert!(faults.is_empty(), "a machine with faults: {faults:?}");
    let mut components = CpuComponents::new(spec, load, persistency);
    components.add_cores();
    components.add_homes();
    components.add_controllers();
    components.add_os();
    components.parts.add_hub();
    components.add_network();
    // Links need every component that they lead to.
    let (base, core, roster) = (components.parts.base, components.core, components.roster());
    let ticks = |ps| base.ticks_of_ps(ps);
    let mut wiring = components.parts.into_wiring();
    let (request, reply) = (core.cycles(spec.llc.request_cycles.into()), core.cycles(spec.llc.reply_cycles.into()));
    wiring.join_homes(request, reply);
    wiring.join_memory(ticks(spec.controller.front_ns.ps), ticks(spec.controller.back_ns.ps));
    wiring.join_os(ticks(spec.os.link_ns.ps));
    if roster.hub {
        wiring.join_hub(base, ticks(spec.os.link_ns.ps), persistency.scheme.path_links());
    }
    if let Some(paths) = persistency.scheme.path_links() {
        wiring.join_controllers(base, paths);
    }
    // The NIC is as far from the controllers as a core.
    if roster.clients > 0 {
        let Some(paths) = persistency.scheme.path_links() else {
            unreachable!("a NIC's handler writes to controllers")
        };
        wiring.join_network(ticks(spec.network.latency_ns.ps), ticks(paths.path_ps));
    }
    let (simulation, ids) = wiring.start(Endpoint::Core(0));
    Assembly { simulation, ids, map: roster.map }
}

/// What components are made of, and those that are made so far.
struct CpuComponents<'a> {
    spec: &'a CpuSpec,
    load: CpuLoad<'a>,
    parts: SharedParts<'a>,
    core: Clock,
}

impl<'a> CpuComponents<'a> {
    fn new(spec: &'a CpuSpec, load: CpuLoad<'a>, persistency: &'a Persistency) -> CpuComponents<'a> {
        let Some(base) = spec.timebase() else { unreachable!("no timebase is a fault") };
        let map = Interleave::new(spec.llc.slices, spec.controller.channels, spec.llc.interleave_bytes);
        let clients = spec.client.count as u16;
        let roster = Roster { clients, ..Roster::of_cores(spec.core.count as u16, map) };
        let memory = MemoryParts {
            controller: &spec.controller,
            bus: &spec.bus,
            dram: &spec.dram,
            nvm: &spec.nvm,
            persist: &spec.persist,
            dram_cache: dram_cache(spec, load, persistency),
            clock: base.clock(spec.clock.memory_mhz.khz),
        };
        let parts = SharedParts::new(persistency, base, first_place_of_cores(spec), memory, roster);
        CpuComponents { spec, load, parts, core: base.clock(spec.clock.core_mhz.khz) }
    }

    fn roster(&self) -> Roster {
        self.parts.roster()
    }

    /// The cores; hart 0 is at the program's entry.
    fn add_cores(&mut self) {
        let (spec, process) = (self.spec, self.load.process);
        for index in 0..self.roster().cores {
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
            let handler = self.parts.persistency.scheme.sm_handler(self.parts.place(index));
            let persistency = self.parts.persistency;
            let mut core = Core::new(spec.core.clone(), spec.l1d.clone(), wiring, handler, persistency.journal);
            persistency.timeline.into_iter().for_each(|spans| core.keep_timeline(spans));
            if persistency.places {
                core.keep_places();
            }
            if index == 0 {
                let mut registers = [0; 64];
                registers[usize::from(SP)] = process.stack_pointer;
                core.begin(0, HartState { registers, pc: process.image.entry, frm: 0 });
            }
            self.parts.add(Endpoint::Core(index), core);
        }
    }

    /// The home slices.
    fn add_homes(&mut self) {
        let spec = self.spec;
        for slice in 0..spec.llc.slices as u16 {
            let wiring = HomeWiring {
                clock: self.core,
                ports: self.roster().ports(Endpoint::Slice(slice)),
                memory_credits: (spec.controller.ingress_reads, spec.controller.ingress_writes),
            };
            let mut home = HomeSlice::new(spec.llc.clone(), wiring);
            home.set_persistence(&spec.persist, self.parts.persistency.journal);
            self.parts.persistency.timeline.into_iter().for_each(|spans| home.keep_timeline(spans));
            if self.parts.has_dram_caches() {
                home.set_memory_caches();
            }
            home.host(self.parts.persistency.scheme.slice_handler(self.parts.place(slice)));
            self.parts.add(Endpoint::Slice(slice), home);
        }
    }

    /// The memory controllers, with what the process' memory begins with.
    fn add_controllers(&mut self) {
        let shares = cut(self.load.contents(), self.roster().map, self.load.extents());
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
        let calls = Os::new(self.load.process, self.spec.harts(), self.load.files.to_vec());
        let mut os = OperatingSystem::new(self.spec.os.clone(), wiring, calls);
        if self.parts.persistency.halts_at_end {
            os.halt_at_end();
        }
        self.parts.add(Endpoint::Os, os);
    }

    /// The NIC and the clients, where there are some.
    fn add_network(&mut self) {
        let roster = self.roster();
        if roster.clients == 0 {
            return;
        }
        let Some(handler) = self.parts.persistency.scheme.nic_handler(self.parts.first) else {
            panic!("clients of a server whose scheme has no handler in a NIC")
        };
        self.parts.add(Endpoint::Nic, Nic::new(handler, roster.ports(Endpoint::Nic)));
        let (spec, memory) = (self.spec, self.load.remote());
        for index in 0..roster.clients {
            let wiring = ClientWiring {
                index,
                ports: roster.ports(Endpoint::Client(index)),
                timebase: self.parts.base,
                memory: memory + spec.client.region_bytes() * u64::from(index),
            };
            let client = Client::new(spec.client.clone(), spec.network.clone(), wiring);
            self.parts.add(Endpoint::Client(index), client);
        }
    }
}

/// Bytes of a channel's DRAM cache. There is one where persistent memory is used as volatile main memory:
/// caches that survive a power failure would write what they have to memory that does not, and a scheme with
/// handlers in controllers has persistent memory hold all that leaves the caches.
fn dram_cache(spec: &CpuSpec, load: CpuLoad<'_>, persistency: &Persistency) -> Option<u64> {
    let volatile = spec.persist.domain != Domain::Eadr && persistency.scheme.path_links().is_none();
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

    /// The NIC with its clients, which begin at 0, and with controllers.
    fn join_network(&mut self, latency: Time, path: Time) {
        for client in self.roster.clients() {
            self.connect_both(client, Endpoint::Nic, latency);
            let id = self.id(client);
            self.topology.put_in_tier(2, &[id]);
            self.topology.wake_at(id, 0);
        }
        for controller in self.roster.controllers() {
            self.connect_both(Endpoint::Nic, controller, path);
        }
        self.topology.put_in_tier(2, &[self.id(Endpoint::Nic)]);
    }
}
