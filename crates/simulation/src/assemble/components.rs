//! The components of a machine: a function a kind.

use durawarp_engine::{Clock, Topology};
use durawarp_kernel::host::HostProgram;
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::MachineSpec;
use durawarp_machine::command_processor::{CommandProcessor, CommandProcessorWiring};
use durawarp_machine::crossbar::{PortEnd, SwitchKind};
use durawarp_machine::gpc_port::GpcPort;
use durawarp_machine::l2::{L2Slice, L2Wiring};
use durawarp_machine::mapping::AddressMap;
use durawarp_machine::ports::{Endpoint, Roster};
use durawarp_machine::sm::{Sm, SmParameters, SmWiring};
use durawarp_machine::stalls::LinkParts;
use durawarp_machine::switch::Switch;

use super::links::Wiring;
use super::memory::MemoryMap;
use super::parts::{MemoryParts, SharedParts};
use super::persistency::{Persistency, first_place};
use crate::config::device::tables;

/// What components are made of, and those that are made so far.
pub(super) struct Components<'a> {
    spec: &'a MachineSpec,
    pub(super) parts: SharedParts<'a>,
    core: Clock,
    crossbar: Clock,
    l2: Clock,
    /// Any port of the crossbar, at any end.
    end: PortEnd,
}

impl<'a> Components<'a> {
    /// No components yet. The SMs of a GPC are linked for a program with clusters.
    pub(super) fn new(spec: &'a MachineSpec, persistency: &'a Persistency, clusters: bool) -> Components<'a> {
        let Some(base) = spec.timebase() else { unreachable!("no timebase is a fault") };
        let crossbar = base.clock(spec.clock.crossbar_mhz.khz);
        // Slices and channels follow from the mapping, which depends on DRAM's rows.
        let devices = tables(&persistency.devices);
        let Ok(AddressMap { interleave: map, .. }) = spec.address_map(devices) else {
            unreachable!("no mapping is a fault")
        };
        let switched = spec.crossbar.switch == SwitchKind::InputQueued;
        let gpcs = if clusters { spec.sm.gpcs as u16 } else { 0 };
        let gpc_ports = spec.crossbar.gpcs as u16;
        let roster = Roster { switched, gpc_ports, gpcs, ..Roster::new(spec.sm.count as u16, map) };
        let memory = MemoryParts {
            dram_cache: None,
            controller: &spec.controller,
            bus: &spec.bus,
            dram: &spec.dram,
            nvm: &spec.nvm,
            devices,
            persist: &spec.persist,
            clock: base.clock(spec.clock.memory_mhz.khz),
        };
        Components {
            spec,
            parts: SharedParts::new(persistency, base, first_place(spec), memory, Wiring::new(Topology::new(), roster)),
            core: base.clock(spec.clock.core_mhz.khz),
            crossbar,
            l2: base.clock(spec.clock.l2_mhz.khz),
            end: PortEnd::new(crossbar, spec.crossbar.flit_bytes),
        }
    }

    /// What links may lead to.
    pub(super) fn roster(&self) -> Roster {
        self.parts.roster()
    }

    /// All components, to be joined.
    pub(super) fn into_wiring(self) -> Wiring {
        self.parts.into_wiring()
    }

    /// Cuts a memory image for this machine.
    pub(super) fn cut(&self, memory: FlatMemory, local_bytes: u32) -> MemoryMap {
        MemoryMap::cut(
            memory,
            self.spec,
            self.roster().map,
            local_bytes,
            self.parts.persistency.scheme.reserves_memory(),
        )
    }

    /// The SMs.
    pub(super) fn add_sms(&mut self, memory: &MemoryMap) {
        let spec = self.spec;
        let parameters = SmParameters {
            sm: spec.sm.clone(),
            latency: spec.latency.clone(),
            interval: spec.interval.clone(),
            tensor: spec.tensor.clone(),
            shared: spec.shared.clone(),
            l1: spec.l1.clone(),
            crossbar: spec.crossbar.clone(),
        };
        let link = LinkParts {
            miss: self.core.cycles(u64::from(spec.l1.miss_cycles)),
            pipeline: self.l2.cycles(u64::from(spec.l2.pipeline_cycles)),
        };
        // Parameters are common to all SMs; place, ports and local memory are each SM's own.
        for index in 0..self.roster().sms {
            let wiring = SmWiring {
                index,
                clock: self.core,
                timebase: self.parts.base,
                line_bytes: spec.l2.line_bytes,
                ports: self.roster().ports(Endpoint::Sm(index)),
                port: self.end.clone(),
                local: memory.local_of(index),
                persist: spec.persist.clone(),
                link,
            };
            let Some(handler) = self.parts.persistency.scheme.sm_handler(self.parts.place(index)) else {
                panic!("a scheme without a handler for SMs")
            };
            let mut sm = Sm::new(parameters.clone(), wiring, handler, self.parts.persistency.journal);
            self.parts.persistency.timeline.into_iter().for_each(|spans| sm.keep_timeline(spans));
            self.parts.add(Endpoint::Sm(index), sm);
        }
    }

    /// The L2 slices.
    pub(super) fn add_slices(&mut self, memory: &MemoryMap) {
        let spec = self.spec;
        for slice in 0..spec.l2.slices as u16 {
            let wiring = L2Wiring {
                clock: self.l2,
                ports: self.roster().ports(Endpoint::Slice(slice)),
                memory_credits: (spec.controller.ingress_reads, spec.controller.ingress_writes),
                buffer_packets: spec.crossbar.buffer_packets,
                port: self.end.clone(),
            };
            let mut component = L2Slice::new(spec.l2.clone(), wiring);
            component.set_persistence(&spec.persist, self.parts.persistency.journal);
            self.parts.persistency.timeline.into_iter().for_each(|spans| component.keep_timeline(spans));
            if self.roster().paths {
                component.drop_write_backs();
            }
            let handler = self.parts.persistency.scheme.slice_handler(self.parts.place(slice));
            component.host(handler, memory.reserved_of(slice));
            self.parts.add(Endpoint::Slice(slice), component);
        }
    }

    /// The command processor, with the host program.
    pub(super) fn add_command_processor(&mut self, host: Box<dyn HostProgram>) {
        let spec = self.spec;
        let wiring = CommandProcessorWiring {
            clock: self.core,
            launch_ticks: self.parts.base.ticks_of_ps(spec.dispatch.launch_ns.ps),
            command_ticks: self.parts.base.ticks_of_ps(spec.dispatch.command_ns.ps),
            line_bytes: spec.l2.line_bytes,
            ports: self.roster().ports(Endpoint::CommandProcessor),
            crossbar: (spec.crossbar.clone(), self.end.clone()),
        };
        let handler = self.parts.persistency.scheme.host_handler();
        let sm = (spec.sm.clone(), spec.shared.clone(), spec.l1.clone());
        // What it keeps and when it halts is set once, before it is a component like any other.
        let mut processor = CommandProcessor::new(spec.dispatch.clone(), sm, wiring, host, handler);
        if self.parts.persistency.journal {
            processor.keep_journal();
        }
        self.parts.persistency.timeline.into_iter().for_each(|spans| processor.keep_timeline(spans));
        if self.parts.persistency.halts_at_end {
            processor.halt_at_end();
        }
        if self.parts.persistency.halts_after_launches {
            processor.halt_after_launches();
        }
        if self.parts.persistency.overlaps {
            processor.overlap(spec.dispatch.concurrent_launches);
        }
        self.parts.add(Endpoint::CommandProcessor, processor);
    }

    /// The crossbar's switches, if it has any.
    pub(super) fn add_switches(&mut self) {
        if !self.roster().switched {
            return;
        }
        for role in [Endpoint::RequestSwitch, Endpoint::ReplySwitch] {
            let ports = self.roster().ports(role);
            self.parts.add(role, Switch::new(&self.spec.crossbar, self.crossbar, self.end.clone(), ports));
        }
    }

    /// The ports that SMs of a GPC share, if they do.
    pub(super) fn add_gpc_ports(&mut self) {
        for gpc in 0..self.roster().gpc_ports {
            let role = Endpoint::GpcPort(gpc);
            let port = GpcPort::new(self.roster().ports(role), self.crossbar, self.spec.crossbar.gpc_bytes);
            self.parts.add(role, port);
        }
    }
}
