//! From a machine's parameters, a memory image and a host program to components on links: the one place that wires.
//!
//! ```text
//!   SM i ──port s──> slice s        crossbar + miss path + L2 pipeline
//!   slice s ──port i──> SM i        crossbar + fill path (replies and credits)
//!   slice s ──port `sms + 1`──> its memory controller     front end;  back: back end
//!   SM i ──port `slices + 2 + c`──> controller c, and back; controller ──> controller (under schemes with handlers there)
//!   hub (under schemes that have one): SMs, slices and the command processor write to it by their last ports; latency as commands
//!   with `crossbar.switch = "input_queued"`: requesters ──last port──> switch of requests ──port s──> slice s,
//!                          slices ──last port──> switch of replies ──port i──> requester i; the rest goes as without
//!   command processor: as an SM towards slices (requester `sm.count`); port `slices + i` to SM i
//! ```
//! Constant pipeline delays lie on links, where they widen the engine's lookahead. Tiers: SMs; slices fused with their
//! controller, so that the short links between these hold nobody back; the command processor. The memory image is cut into the controllers' shares here and put together again afterwards.

use std::sync::Arc;

use crate::engine::{ComponentId, Link, Simulation, Time, Topology};
use crate::kernel::host::HostProgram;
use crate::kernel::memory::{DRAM_BASE, FlatMemory, Medium};
use crate::machine::MachineSpec;
use crate::machine::address::{Interleave, offset_in_medium};
use crate::machine::crossbar::{PortEnd, SwitchKind};
use crate::machine::dispatch::{CommandProcessor, DispatchWiring};
use crate::machine::hub::Hub;
use crate::machine::image::Image;
use crate::machine::l1::L1Writes;
use crate::machine::l2::{L2Slice, L2Wiring};
use crate::machine::media::Media;
use crate::machine::memory_controller::MemoryController;
use crate::machine::msg::Msg;
use crate::machine::on_dram::OnDram;
use crate::machine::ports::{Role, Roster};
use crate::machine::sm::{Sm, SmParameters, SmWiring};
use crate::machine::stalls::{LinkParts, PersistStalls};
use crate::machine::switch::Switch;
use crate::persist::handler::{HandlerPlace, Scheme};
use crate::persist::journal::Journal;
use crate::persist::regions::RegionReport;
use crate::schemes::baseline::BASE;

/// A machine on links, ready to run, and which component is what.
#[derive(Debug)]
pub struct Assembly {
    /// The simulation; run it.
    pub simulation: Simulation<Msg>,
    /// SMs in the order of their indices.
    pub sms: Vec<ComponentId>,
    /// L2 slices in the order of their indices.
    pub slices: Vec<ComponentId>,
    /// Memory controllers in the order of their channels.
    pub controllers: Vec<ComponentId>,
    /// The command processor.
    pub dispatch: ComponentId,
    /// The scheme's own component, where it has one.
    pub hub: Option<ComponentId>,
    /// The crossbar's switches of requests and of replies, where it has any.
    pub switches: Vec<ComponentId>,
    map: Interleave,
}

/// Bytes of each medium that the image and the local memory need, from its base.
fn extents(memory: &FlatMemory, local_bytes: u64) -> ([u64; 2], u64) {
    let mut extents = [0u64; 2];
    for (start, bytes) in memory.ranges() {
        let end = offset_in_medium(start) + bytes.len() as u64;
        let extent = &mut extents[Medium::of(start) as usize];
        *extent = end.max(*extent);
    }
    let local = DRAM_BASE + extents[Medium::Dram as usize].next_multiple_of(4096);
    if local_bytes > 0 {
        extents[Medium::Dram as usize] = local - DRAM_BASE + local_bytes;
    }
    (extents, local)
}

/// Lines of DRAM that each slice's handler may move bytes to.
const RESERVED_LINES: u64 = 64;

/// Reserves lines of every slice behind all that DRAM holds.
fn reserve(extents: &mut [u64; 2], spec: &MachineSpec, map: Interleave) -> Vec<u64> {
    let extent = &mut extents[Medium::Dram as usize];
    let line_bytes = u64::from(spec.l2.line_bytes);
    // Whole rounds over all slices, so that each has its lines whatever the mapping.
    let round = map.chunk_bytes() * u64::from(map.slices());
    let start = extent.next_multiple_of(round.next_power_of_two().max(4096));
    let bytes = (RESERVED_LINES * line_bytes * u64::from(map.slices())).next_multiple_of(round);
    *extent = start + bytes;
    (0..bytes / line_bytes).map(|line| DRAM_BASE + start + line * line_bytes).collect()
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
pub fn first_seat(spec: &MachineSpec) -> HandlerPlace {
    HandlerPlace {
        index: 0,
        sms: spec.sm.count as u16,
        slices: spec.l2.slices as u16,
        controllers: spec.controller.channels as u16,
        tick_khz: spec.timebase().map_or(0, |base| base.tick_khz()),
        l1_combines: spec.l1.writes == L1Writes::Combine,
    }
}

/// Wires a machine around a memory image and a host program. `local_bytes` is the most local memory any kernel of the
/// program needs a thread.
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
    let Some(base) = spec.timebase() else { unreachable!("no timebase is a fault") };
    let core = base.clock(spec.clock.core_mhz.khz);
    let crossbar = base.clock(spec.clock.crossbar_mhz.khz);
    let l2_clock = base.clock(spec.clock.l2_mhz.khz);
    let memory_clock = base.clock(spec.clock.memory_mhz.khz);
    let map = Interleave::new(spec.l2.slices, spec.controller.channels, spec.l2.interleave_bytes);
    let port = PortEnd::new(crossbar, spec.crossbar.flit_bytes);
    let sms = spec.sm.count as usize;
    let local_bytes = local_bytes.next_multiple_of(4);
    let local_per_sm = u64::from(spec.sm.warps * spec.sm.warp_size) * u64::from(local_bytes);
    let (mut extents, local) = extents(&memory, local_per_sm * sms as u64);
    let reserved = if persistency.scheme.reserves_memory() { reserve(&mut extents, spec, map) } else { Vec::new() };
    let mut shares = cut(memory, map, spec.controller.channels, extents);

    let first = first_seat(spec);
    let place = |index| HandlerPlace { index, ..first };
    let paths = persistency.scheme.path_links();
    let hub = persistency.scheme.hub_handler(place(0));
    let roster = Roster {
        sms: sms as u16,
        map,
        hub: hub.is_some(),
        paths: paths.is_some(),
        switched: spec.crossbar.switch == SwitchKind::InputQueued,
    };
    let mut t: Topology<Msg> = Topology::new();
    let sm_parameters = SmParameters {
        sm: spec.sm.clone(),
        latency: spec.latency.clone(),
        interval: spec.interval.clone(),
        shared: spec.shared.clone(),
        l1: spec.l1.clone(),
        crossbar: spec.crossbar.clone(),
    };
    let sm_ids: Vec<ComponentId> = (0..sms)
        .map(|index| {
            let wiring = SmWiring {
                index: index as u16,
                clock: core,
                timebase: base,
                line_bytes: spec.l2.line_bytes,
                ports: roster.ports(Role::Sm(index as u16)),
                port: port.clone(),
                local: (local + local_per_sm * index as u64, local_bytes),
                persist: spec.persist.clone(),
                link: LinkParts {
                    miss: core.cycles(u64::from(spec.l1.miss_cycles)),
                    pipeline: l2_clock.cycles(u64::from(spec.l2.pipeline_cycles)),
                },
            };
            let handler = persistency.scheme.sm_handler(place(index as u16));
            let mut sm = Sm::new(sm_parameters.clone(), wiring, handler, persistency.journal);
            persistency.timeline.into_iter().for_each(|spans| sm.keep_timeline(spans));
            t.add(format!("sm{index}"), Box::new(sm))
        })
        .collect();
    let slice_ids: Vec<ComponentId> = (0..spec.l2.slices)
        .map(|slice| {
            let wiring = L2Wiring {
                clock: l2_clock,
                ports: roster.ports(Role::Slice(slice as u16)),
                memory_credits: (spec.controller.ingress_reads, spec.controller.ingress_writes),
                buffer_packets: spec.crossbar.buffer_packets,
                port: port.clone(),
            };
            let mut component = L2Slice::new(spec.l2.clone(), wiring);
            component.set_persistence(&spec.persist, persistency.journal);
            persistency.timeline.into_iter().for_each(|spans| component.keep_timeline(spans));
            let own = reserved.iter().copied().filter(|&line| map.slice_of(line) == slice);
            if paths.is_some() {
                component.drop_write_backs();
            }
            component.host(persistency.scheme.slice_handler(place(slice as u16)), own.collect());
            t.add(format!("l2.{slice}"), Box::new(component))
        })
        .collect();
    let controller_ids: Vec<ComponentId> = (0..spec.controller.channels as usize)
        .map(|channel| {
            let media = Media::new(&spec.dram, &spec.nvm, &spec.bus, memory_clock, base);
            let forward = base.ticks_of_ps(spec.controller.forward_ns.ps);
            let images = std::mem::take(&mut shares[channel]);
            let ports = roster.ports(Role::Controller(channel as u16));
            let mut controller =
                MemoryController::new(spec.controller.clone(), memory_clock, forward, ports, media, images);
            controller.set_persistence(&spec.persist, persistency.journal);
            persistency.timeline.into_iter().for_each(|spans| controller.keep_timeline(spans));
            controller.host(persistency.scheme.controller_handler(place(channel as u16)));
            t.add(format!("mc{channel}"), Box::new(controller))
        })
        .collect();
    let wiring = DispatchWiring {
        clock: core,
        launch_ticks: base.ticks_of_ps(spec.dispatch.launch_ns.ps),
        line_bytes: spec.l2.line_bytes,
        ports: roster.ports(Role::CommandProcessor),
        crossbar: (spec.crossbar.clone(), port.clone()),
    };
    let handler = persistency.scheme.host_handler();
    let mut dispatch =
        CommandProcessor::new(spec.dispatch.clone(), spec.sm.clone(), spec.shared.clone(), wiring, host, handler);
    if persistency.journal {
        dispatch.keep_journal();
    }
    persistency.timeline.into_iter().for_each(|spans| dispatch.keep_timeline(spans));
    if persistency.halts_at_end {
        dispatch.halt_at_end();
    }
    let dispatch = t.add("command_processor", Box::new(dispatch));
    let hub = hub.map(|handler| t.add("hub", Box::new(Hub::new(handler, roster.ports(Role::Hub)))));

    let hop = crossbar.cycles(u64::from(spec.crossbar.latency_cycles));
    let to_tags = hop + l2_clock.cycles(u64::from(spec.l2.pipeline_cycles));
    let request = Link { latency: to_tags + core.cycles(u64::from(spec.l1.miss_cycles)), phase: 0 };
    let reply = Link { latency: hop + core.cycles(u64::from(spec.l1.fill_cycles)), phase: 0 };
    let command = Link { latency: base.ticks_of_ps(spec.dispatch.command_ns.ps), phase: 0 };
    let front = Link { latency: base.ticks_of_ps(spec.controller.front_ns.ps), phase: 0 };
    let back = Link { latency: base.ticks_of_ps(spec.controller.back_ns.ps), phase: 0 };
    let connect = |t: &mut Topology<Msg>, from: (Role, ComponentId), to: (Role, ComponentId), link: Link| {
        t.connect(from.1, roster.ports(from.0).to(to.0), to.1, link);
    };
    let numbered = |ids: &[ComponentId], role: fn(u16) -> Role| -> Vec<(Role, ComponentId)> {
        ids.iter().enumerate().map(|(at, &id)| (role(at as u16), id)).collect()
    };
    let (sm_ends, slice_ends) = (numbered(&sm_ids, Role::Sm), numbered(&slice_ids, Role::Slice));
    let controller_ends = numbered(&controller_ids, Role::Controller);
    let dispatch_end = (Role::CommandProcessor, dispatch);
    let per_channel = map.slices_per_channel() as usize;
    for (s, &slice) in slice_ends.iter().enumerate() {
        for &sm in &sm_ends {
            connect(&mut t, sm, slice, request);
            connect(&mut t, slice, sm, reply);
        }
        connect(&mut t, dispatch_end, slice, Link { latency: to_tags, phase: 0 });
        connect(&mut t, slice, dispatch_end, Link { latency: hop, phase: 0 });
        let controller = controller_ends[s / per_channel];
        connect(&mut t, slice, controller, front);
        connect(&mut t, controller, slice, back);
    }
    for &sm in &sm_ends {
        connect(&mut t, sm, dispatch_end, command);
        connect(&mut t, dispatch_end, sm, command);
    }
    for (channel, &controller) in controller_ids.iter().enumerate() {
        let mut together = slice_ids[channel * per_channel..(channel + 1) * per_channel].to_vec();
        together.push(controller);
        t.fuse(&together);
        t.put_in_tier(1, &together);
    }
    let ticks = |ps| Link { latency: base.ticks_of_ps(ps), phase: 0 };
    if let Some(hub) = hub {
        let end = (Role::Hub, hub);
        let link = paths.map_or(command, |links| ticks(links.hub_ps));
        for &sm in &sm_ends {
            connect(&mut t, sm, end, link);
            connect(&mut t, end, sm, link);
        }
        for &slice in &slice_ends {
            connect(&mut t, slice, end, command);
            connect(&mut t, end, slice, command);
        }
        connect(&mut t, dispatch_end, end, command);
        t.put_in_tier(2, &[hub]);
    }
    if let Some(links) = paths {
        let of_hub = ticks(links.hub_ps);
        for (c, &controller) in controller_ends.iter().enumerate() {
            let path = ticks(links.path_ps + links.step_ps * c as u64);
            for &sm in &sm_ends {
                connect(&mut t, sm, controller, path);
                connect(&mut t, controller, sm, path);
            }
            for (k, &other) in controller_ends.iter().enumerate().filter(|&(k, _)| k != c) {
                let ack = ticks(links.ack_ps + links.step_ps * (c.abs_diff(k) as u64 - 1));
                connect(&mut t, controller, other, ack);
            }
            if let Some(hub) = hub {
                connect(&mut t, controller, (Role::Hub, hub), of_hub);
                connect(&mut t, (Role::Hub, hub), controller, of_hub);
            }
        }
    }
    let mut switches = Vec::new();
    if roster.switched {
        // A cycle of the hop lies behind the switch, the others before it.
        let link = |latency: Time| Link { latency, phase: 0 };
        let out = crossbar.cycles(1);
        let [requests, replies] = [Role::RequestSwitch, Role::ReplySwitch].map(|role| {
            let switch = Switch::new(&spec.crossbar, crossbar, port.clone(), roster.ports(role));
            (role, t.add(role.to_string(), Box::new(switch)))
        });
        for &slice in &slice_ends {
            connect(&mut t, requests, slice, link(to_tags - hop + out));
            connect(&mut t, slice, replies, link(hop - out));
        }
        for &requester in sm_ends.iter().chain([&dispatch_end]) {
            let is_sm = requester.0 != Role::CommandProcessor;
            let (miss, fill) = if is_sm { (request.latency - to_tags, reply.latency - hop) } else { (0, 0) };
            connect(&mut t, requester, requests, link(miss + hop - out));
            connect(&mut t, requests, requester, link(out));
            connect(&mut t, replies, requester, link(out + fill));
        }
        switches = vec![requests.1, replies.1];
        t.put_in_tier(1, &switches);
    }
    t.put_in_tier(2, &[dispatch]);
    t.wake_at(dispatch, 0);
    let simulation = match Simulation::new(t) {
        Ok(simulation) => simulation,
        Err(fault) => panic!("the assembled topology is faulty: {fault}"),
    };
    Assembly { simulation, sms: sm_ids, slices: slice_ids, controllers: controller_ids, dispatch, hub, switches, map }
}

/// Every contiguous piece of an image on one channel: address, length.
fn pieces(start: u64, bytes: u64, chunk: u64) -> impl Iterator<Item = (u64, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < bytes).then(|| {
            let address = start + at;
            let length = (chunk - offset_in_medium(address) % chunk).min(bytes - at);
            at += length;
            (address, length as usize)
        })
    })
}

/// Bytes after which a machine that is taken apart frees what has been moved out.
const FREED_BYTES: usize = 1 << 20;

/// Cuts an image into the channels' shares of DRAM and NVM, and frees it range by range.
fn cut(memory: FlatMemory, map: Interleave, channels: u32, extents: [u64; 2]) -> Vec<[Image; 2]> {
    let share = extents.map(|bytes| map.channel_share(bytes) as usize);
    let mut shares: Vec<[Image; 2]> = (0..channels).map(|_| share.map(Image::new)).collect();
    for (start, bytes) in memory.into_ranges() {
        for (address, length) in pieces(start, bytes.len() as u64, map.chunk_bytes()) {
            let channel = (map.slice_of(address) / map.slices_per_channel()) as usize;
            let from = (address - start) as usize;
            let image = &mut shares[channel][Medium::of(address) as usize];
            image.write(map.in_channel(address) as usize, &bytes[from..from + length]);
        }
    }
    shares
}

/// Puts bytes of dirty lines over what memory holds.
fn put_dirty(memory: &mut FlatMemory, line: u64, bytes: &[u8], dirty: u128) {
    for (i, &byte) in bytes.iter().enumerate().filter(|(i, _)| dirty >> i & 1 == 1) {
        // Bytes outside every allocation (local memory) are nobody's result.
        if let Some(to) = memory.slice_mut(line + i as u64, 1) {
            to[0] = byte;
        }
    }
}

impl Assembly {
    fn component<T: 'static>(&self, id: ComponentId) -> &T {
        let component: &dyn std::any::Any = self.simulation.component(id);
        match component.downcast_ref() {
            Some(component) => component,
            None => panic!("component {id} is not a {}", std::any::type_name::<T>()),
        }
    }

    /// The SMs.
    pub fn sms(&self) -> impl Iterator<Item = &Sm> {
        self.sms.iter().map(|&id| self.component(id))
    }

    /// The L2 slices.
    pub fn slices(&self) -> impl Iterator<Item = &L2Slice> {
        self.slices.iter().map(|&id| self.component(id))
    }

    /// The crossbar's switches: of requests, of replies; none where contention is at its ports only.
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        self.switches.iter().map(|&id| self.component(id))
    }

    /// The memory controllers.
    pub fn controllers(&self) -> impl Iterator<Item = &MemoryController> {
        self.controllers.iter().map(|&id| self.component(id))
    }

    /// The command processor.
    pub fn dispatch(&self) -> &CommandProcessor {
        self.component(self.dispatch)
    }

    /// What the scheme tells about the run: its own component, and of recoverable regions all its handlers
    /// together.
    pub fn scheme_report(&self) -> Option<serde_json::Value> {
        let mut told = self.component::<Hub>(self.hub?).report();
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

    /// What happened to persistent memory, when journals were kept: by time, then the command processor before SMs before
    /// slices before controllers.
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

    /// For each kernel that used persistency operations on DRAM, in the order of launches: the first such instruction.
    pub fn on_dram(&self) -> Vec<OnDram> {
        OnDram::merged(self.sms().flat_map(Sm::on_dram))
    }

    /// Names of all components, in the order of their ids.
    pub fn component_names(&self) -> Vec<String> {
        let ids = self
            .sms
            .iter()
            .chain(&self.slices)
            .chain(&self.controllers)
            .chain([&self.dispatch])
            .chain(&self.hub)
            .chain(&self.switches);
        let mut ids: Vec<ComponentId> = ids.copied().collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids.into_iter().map(|id| self.simulation.name(id).to_owned()).collect()
    }

    /// Fills `memory` with what a read of every address would return now: the controllers' bytes under the dirty bytes
    /// of the L2.
    pub fn collect(&self, memory: &mut FlatMemory) {
        let controllers: Vec<&MemoryController> = self.controllers().collect();
        let map = self.map;
        for (start, bytes) in memory.ranges_mut() {
            for (address, length) in pieces(start, bytes.len() as u64, map.chunk_bytes()) {
                let channel = (map.slice_of(address) / map.slices_per_channel()) as usize;
                let to = (address - start) as usize;
                let image = controllers[channel].image(Medium::of(address));
                image.read(map.in_channel(address) as usize, &mut bytes[to..to + length]);
            }
        }
        for (line, bytes, held) in controllers.iter().flat_map(|controller| controller.held_lines()) {
            put_dirty(memory, line, &bytes[..], held);
        }
        for slice in self.slices() {
            for (line, bytes, dirty) in slice.dirty_lines() {
                put_dirty(memory, line, bytes, dirty);
            }
        }
    }

    /// Takes the machine apart and brings `memory`, as it was before the first step, to what [`Assembly::collect`] would
    /// fill in. Its bytes are freed on the way, and what has not changed stays shared.
    pub fn into_memory(self, mut memory: FlatMemory) -> FlatMemory {
        let held = self.controllers().flat_map(MemoryController::held_lines);
        let held = held.map(|(line, bytes, held)| (line, bytes.to_vec(), held));
        let dirty = self.slices().flat_map(L2Slice::dirty_lines);
        let dirty = dirty.map(|(line, bytes, dirty)| (line, bytes.to_vec(), dirty));
        let dirty: Vec<(u64, Vec<u8>, u128)> = held.chain(dirty).collect();
        let (map, ids) = (self.map, self.controllers);
        let mut images: Vec<[Image; 2]> = Vec::new();
        for (id, (_, component)) in self.simulation.into_components().into_iter().enumerate() {
            if ids.contains(&ComponentId(id as u32)) {
                let component: Box<dyn std::any::Any> = component;
                match component.downcast::<MemoryController>() {
                    Ok(controller) => images.push(controller.into_images()),
                    Err(_) => panic!("component {id} is not a memory controller"),
                }
            }
        }
        let round = u64::from(map.slices_per_channel()) * map.chunk_bytes();
        let mut now = vec![0; map.chunk_bytes() as usize];
        let mut moved = 0;
        let ranges: Vec<(u64, u64)> = memory.ranges().map(|(start, bytes)| (start, bytes.len() as u64)).collect();
        for (address, length) in ranges.into_iter().flat_map(|(start, bytes)| pieces(start, bytes, map.chunk_bytes())) {
            let channel = (map.slice_of(address) / map.slices_per_channel()) as usize;
            let (medium, from, now) = (Medium::of(address) as usize, map.in_channel(address), &mut now[..length]);
            images[channel][medium].read(from as usize, now);
            if memory.slice(address, length) != Some(&*now) && memory.write(address, now).is_err() {
                unreachable!("{address:#x} is in a range");
            }
            moved += length;
            if moved >= FREED_BYTES {
                // Pieces come by address, so nobody asks again for what lies below by more than the chunks of a round
                // over all slices.
                moved = 0;
                for image in &mut images {
                    image[medium].forget_below(from.saturating_sub(round) as usize);
                }
            }
        }
        for (line, bytes, mask) in dirty {
            put_dirty(&mut memory, line, &bytes, mask);
        }
        memory
    }
}
