//! What machines of SMs and machines of cores have alike: memory controllers with their media, the scheme's
//! own component, and how a component gets its place.

use durawarp_engine::{Clock, Component, Timebase};
use durawarp_machine::device::Device;
use durawarp_machine::hub::Hub;
use durawarp_machine::image::Image;
use durawarp_machine::media::{BusSpec, Devices, Media, MediaSpec, NvmSpec};
use durawarp_machine::memory_controller::{ControllerSpec, MemoryController};
use durawarp_machine::msg::Msg;
use durawarp_machine::persistence::PersistSpec;
use durawarp_machine::ports::{Endpoint, Roster};
use durawarp_persist::handler::{Handler, HandlerPlace};

use super::links::Wiring;
use super::persistency::Persistency;

/// What memory controllers are made of.
pub(super) struct MemoryParts<'a> {
    pub(super) controller: &'a ControllerSpec,
    pub(super) bus: &'a BusSpec,
    pub(super) dram: &'a MediaSpec,
    pub(super) nvm: &'a NvmSpec,
    /// The DRAM's and the NVM's, where they are not plain ones.
    pub(super) devices: [Option<&'a Device>; 2],
    pub(super) persist: &'a PersistSpec,
    /// Bytes of a channel's DRAM cache, where there is one.
    pub(super) dram_cache: Option<u64>,
    pub(super) clock: Clock,
}

/// What components are made of in either kind of machine, and those that are made so far.
pub(super) struct SharedParts<'a> {
    pub(super) persistency: &'a Persistency,
    pub(super) base: Timebase,
    /// The place of the first handler of each kind.
    pub(super) first: HandlerPlace,
    memory: MemoryParts<'a>,
    /// What begins the names of its components.
    prefix: String,
    hub: Option<Box<dyn Handler>>,
    wiring: Wiring,
}

impl<'a> SharedParts<'a> {
    /// No components of the node yet. Whether there are a hub and paths follows from the scheme.
    pub(super) fn new(
        persistency: &'a Persistency,
        base: Timebase,
        first: HandlerPlace,
        memory: MemoryParts<'a>,
        mut wiring: Wiring,
    ) -> SharedParts<'a> {
        let hub = persistency.scheme.hub_handler(first);
        wiring.roster.hub = hub.is_some();
        wiring.roster.paths = persistency.scheme.path_links().is_some();
        SharedParts { persistency, base, first, memory, prefix: String::new(), hub, wiring }
    }

    /// Names of components begin with this from here on.
    pub(super) fn set_prefix(&mut self, prefix: String) {
        self.prefix = prefix;
    }

    /// What links may lead to.
    pub(super) fn roster(&self) -> Roster {
        self.wiring.roster
    }

    /// All components, to be joined.
    pub(super) fn into_wiring(self) -> Wiring {
        self.wiring
    }

    /// Controllers have DRAM caches.
    pub(super) fn has_dram_caches(&self) -> bool {
        self.memory.dram_cache.is_some()
    }

    pub(super) fn add(&mut self, role: Endpoint, component: impl Component<Msg> + 'static) {
        self.wiring.add(role, format!("{}{role}", self.prefix), Box::new(component));
    }

    /// Adds a component that has a name of its own.
    pub(super) fn add_named(&mut self, role: Endpoint, name: String, component: impl Component<Msg> + 'static) {
        self.wiring.add(role, name, Box::new(component));
    }

    pub(super) fn place(&self, index: u16) -> HandlerPlace {
        HandlerPlace { index, ..self.first }
    }

    /// The memory controllers, each with its share of the image.
    pub(super) fn add_controllers(&mut self, shares: Vec<[Image; 2]>) {
        let MemoryParts { controller: spec, bus, dram, nvm, devices, persist, dram_cache, clock } = self.memory;
        let map = self.wiring.roster.map;
        let sizes = [map.slices(), map.chunk_bytes() as u32];
        let Ok(mapped) = spec.address_map(sizes, [dram, &nvm.rows()], devices) else {
            unreachable!("no mapping is a fault")
        };
        let devices = Devices { dram: devices[0], nvm: devices[1] };
        for (channel, images) in (0..).zip(shares) {
            let media = Media::of(&devices, dram, nvm, bus, clock, self.base).mapped(&mapped.rows);
            let forward = self.base.ticks_of_ps(spec.forward_ns.ps);
            let ports = self.roster().ports(Endpoint::Controller(channel));
            let mut controller = MemoryController::new(spec.clone(), clock, forward, ports, media, images);
            controller.set_persistence(persist, self.persistency.journal);
            self.persistency.timeline.into_iter().for_each(|spans| controller.keep_timeline(spans));
            if self.persistency.line_writes {
                controller.count_lines();
            }
            controller.host(self.persistency.scheme.controller_handler(self.place(channel)));
            dram_cache.into_iter().for_each(|bytes| controller.cache_in_dram(bytes));
            self.add(Endpoint::Controller(channel), controller);
        }
    }

    /// The scheme's own component, if it has one.
    pub(super) fn add_hub(&mut self) {
        if let Some(handler) = self.hub.take() {
            self.add(Endpoint::Hub, Hub::new(handler, self.roster().ports(Endpoint::Hub)));
        }
    }
}
