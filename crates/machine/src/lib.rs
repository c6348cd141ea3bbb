//! Components of GPUs and of servers of CPU cores, as they behave in time; values travel with their messages.
//!
//! ```text
//!  GPU   command processor ──CTAs──> SM 0..n  [schedulers, LSU, L1D, shared memory]
//!               │ host reads/writes     │ requests                ▲ replies
//!               └───────────────> crossbar ports (injection here, ejection there)
//!                                       ▼                         │
//!                                L2 slices 0..m ──reads/writes──> memory controllers (DRAM and NVM)
//!
//!  CPU   operating system ──calls──> core 0..n ──lines──> home slices 0..m ──reads/writes──> memory controllers
//!        clients ──verbs──> network interface ──lines──────────^
//! ```
//! Components are compositions of parts, each with state of its own:
//!
//! * [`sm`]: `core` (warps, CTAs, schedulers, scoreboard), `lsu`, `memory` (the L1 and the port to slices),
//!   `front_end`, `host` (the scheme's handler), `record`; `walk` is the way of an instruction through them.
//! * [`l2`]: input, array, MSHRs, port to memory, writes that are not durable, handler; `service` is the walk
//!   of a request through them.
//! * [`memory_controller`]: queues, arbiter, [`media`], DRAM cache, images of memory, handler.
//! * [`command_processor`]: host program, dispatch of CTAs, DMA, barrier of a kernel, looks, persistency of
//!   the host.
//! * [`core`]: of a hart window, store queue, load order, predictor; of all harts L1D, program, record.
//! * [`home`]: directory, transactions (one a line), port to memory, handler; `service` is the walk of a
//!   request.
//! * [`os`], [`nic`], [`poster`], [`client`]: system calls; the network interface, its half for verbs of
//!   harts; what sends requests over the network.
//! * [`hub`], [`switch`], [`gpc_port`]: a scheme's own component; a crossbar in one place, and what SMs of a
//!   GPC share of it, where a machine asks for one.
//!
//! A verb of a part gets the other parts that it needs as arguments, and gives back as a value what is to be
//! done then (`Stepped`, `LoadDone`, `AllArrived`). Components meet only through messages ([`msg`],
//! [`coherence`], [`verbs`]); [`roster`] lists them, and [`ports`] numbers their ports. Of what both kinds of
//! machine have, there is one: controllers, media, `memory_port`, `writes_under_way`.
//!
//! * Constant pipeline delays lie on links, where they widen the engine's lookahead. Back-pressure is by
//!   credits, which travel on links, too. The crossbar is its ports, each owned by the component at that end:
//!   a hub that all traffic crossed would serialise every run.
//! * A launch alone decides how many CTAs an SM holds ([`occupancy`]) and how an array is split between L1
//!   and shared memory ([`carveout`]). An address belongs to a channel, to one of its slices, and by its
//!   range to a medium ([`address`]).
//! * What the host does outside simulated time goes by the same links without ports, credits or counters
//!   ([`look`]).
//! * What stays in hosts is what every scheme's program means or all of them wait for: which warps have come
//!   to a persist barrier, the way of a marker, which stores are in which dirty line. Order is the scheme's.
//!
//! Invariants: a component reads no counter, journal or timeline; a component that answers a request has got
//! a credit for it. `tests/machine/coherence` holds the homes to one memory, `tests/machine/litmus` the cores
//! to an enumeration of RVWMO's axioms and of total store order. Not modelled: what the head of each file
//! says.

pub mod address;
pub mod cache;
pub mod carveout;
pub mod client;
mod clocks;
pub mod coalescer;
pub mod coherence;
pub mod command_processor;
pub mod contents;
pub mod core;
pub mod cpu;
pub mod crossbar;
pub mod device;
pub mod energy;
mod entries;
pub mod gpc;
pub mod gpc_port;
pub mod handler_levels;
pub mod home;
pub mod hub;
pub mod image;
mod kernel_facts;
pub mod l1;
pub mod l2;
pub mod line;
mod line_reader;
pub mod look;
pub mod mapping;
pub mod media;
pub mod memory_controller;
pub mod memory_packet;
mod memory_port;
pub mod msg;
pub mod network;
pub mod nic;
pub mod nodes;
pub mod occupancy;
pub mod on_dram;
pub mod os;
pub mod packet;
pub mod partitions;
pub mod payload;
pub mod persistence;
pub mod ports;
pub mod poster;
pub mod queue_level;
pub mod region_spans;
pub mod remote;
pub mod replacement;
mod request_queue;
pub mod requester;
pub mod roster;
pub mod scheduler;
pub mod shared_memory;
pub mod slice_timeline;
pub mod sm;
pub mod stalls;
pub mod switch;
pub mod timers;
pub mod verbs;
mod writes_under_way;

use durawarp_base::machine_spec;
use durawarp_base::spec;
use durawarp_engine::{RunEnd, RunOptions, Simulation, Timebase};

use self::command_processor::CommandProcessorSpec;
use self::crossbar::{CrossbarSpec, SwitchKind};
use self::device::Device;
use self::energy::EnergySpec;
use self::l1::{L1LocalWrites, L1Spec, L1Writes};
use self::l2::L2Spec;
use self::mapping::AddressMap;
use self::media::{BusSpec, MediaSpec, NvmSpec};
use self::memory_controller::{ControllerSpec, LINK_WITHOUT_LATENCY};
use self::persistence::PersistSpec;
use self::shared_memory::SharedSpec;
use self::sm::{IntervalSpec, LatencySpec, SmSpec, TensorSpec};
use durawarp_base::spec::Megahertz;

spec! {
    /// Clock domains.
    pub struct ClockSpec {
        /// SMs and command processor.
        core_mhz: Megahertz,
        /// Crossbar.
        crossbar_mhz: Megahertz,
        /// L2 slices.
        l2_mhz: Megahertz,
        /// Memory controllers: command clock and data bus.
        memory_mhz: Megahertz,
    }
}

machine_spec! {
    /// Every parameter of a machine, one table a component.
    pub struct MachineSpec {
        /// Clock domains.
        clock: ClockSpec,
        /// Streaming multiprocessors.
        sm: SmSpec,
        /// Latencies by instruction class.
        latency: LatencySpec,
        /// Initiation intervals by instruction class.
        interval: IntervalSpec,
        /// Tensor cores.
        tensor: TensorSpec,
        /// Shared memory.
        shared: SharedSpec,
        /// L1 data cache.
        l1: L1Spec,
        /// Crossbar.
        crossbar: CrossbarSpec,
        /// L2 cache.
        l2: L2Spec,
        /// Memory controllers.
        controller: ControllerSpec,
        /// A channel's data bus.
        bus: BusSpec,
        /// DRAM devices.
        dram: MediaSpec,
        /// NVM devices.
        nvm: NvmSpec,
        /// Command processor.
        dispatch: CommandProcessorSpec,
        /// Persistency.
        persist: PersistSpec,
        /// Energy of events.
        energy: EnergySpec,
    }
}

/// Core cycles that a run can have at most: SMs count them in 32 bits, less the longest wait that lies ahead.
pub const MAX_CORE_CYCLES: u64 = (1 << 32) - (1 << 20);

impl MachineSpec {
    /// Bytes that caches take of the host: data, tags and states of full ones.
    pub fn cache_bytes(&self) -> u64 {
        let [l1s, l2] = [(self.sm.count, u64::from(self.l1.most_kb())), (self.l2.slices, u64::from(self.l2.slice_kb))]
            .map(|(count, kb)| u64::from(count).saturating_mul(kb << 10));
        l1s.saturating_add(l2).saturating_mul(2)
    }

    /// The machine's tick rate; `None` when the clocks have no common multiple that fits.
    pub fn timebase(&self) -> Option<Timebase> {
        Timebase::of_khz(&self.clocks().map(|(_, khz)| khz))
    }

    fn clocks(&self) -> [(&'static str, u64); 4] {
        let c = &self.clock;
        [
            ("clock.core_mhz", c.core_mhz.khz),
            ("clock.crossbar_mhz", c.crossbar_mhz.khz),
            ("clock.l2_mhz", c.l2_mhz.khz),
            ("clock.memory_mhz", c.memory_mhz.khz),
        ]
    }

    /// Peak bandwidth of all channels' data buses, in bytes per second.
    pub fn peak_memory_bandwidth(&self) -> u64 {
        let per_channel = u64::from(self.bus.bytes_per_cycle) * self.clock.memory_mhz.khz * 1000;
        per_channel * u64::from(self.controller.channels)
    }

    /// Warp instructions that all SMs issue at most in one core cycle.
    pub fn issue_peak(&self) -> u32 {
        self.sm.count * self.sm.schedulers * self.sm.issue_width
    }

    /// What is wrong with the values together, each being valid by itself: the key to blame, and why.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, key: &'static str, why: String| {
            if !holds {
                faults.push((key, why));
            }
        };
        // All rules are looked at, also after one is broken: the user sees every fault at once.
        let (sm, l1, l2, mc) = (&self.sm, &self.l1, &self.l2, &self.controller);
        let untimed = clocks::without_timebase(&self.clocks());
        require(untimed.is_none(), "clock.core_mhz", untimed.unwrap_or_default());
        require(matches!(sm.warp_size, 32 | 64), "sm.warp_size", format!("{} is neither 32 nor 64", sm.warp_size));
        require(
            sm.threads <= sm.warps * sm.warp_size,
            "sm.threads",
            format!("{} warps of {} lanes hold only {} threads", sm.warps, sm.warp_size, sm.warps * sm.warp_size),
        );
        // The line comes before all that is measured in lines below.
        let line = l2.line_bytes;
        require(matches!(line, 32 | 64 | 128), "l2.line_bytes", format!("{line} is not 32, 64 or 128"));
        let sets = |kb: u32, ways: u32| kb * 1024 / line.max(1) / ways;
        require(l1.most_kb() > 0, "l1.kb", "0 leaves the capacity to l1.unified_kb, which is 0 too".into());
        for (key, kb, ways) in [("l1.ways", l1.most_kb(), l1.ways), ("l2.ways", l2.slice_kb, l2.ways)] {
            let sets = sets(kb, ways);
            let exact = sets.is_power_of_two() && sets * ways * line == kb * 1024;
            let why = format!("{kb} KiB in {ways} ways of {line} B lines is not a power of two of sets");
            require(exact, key, why);
        }
        if l1.kb == 0 && l1.unified_kb > 0 {
            let (steps, unified, ways) = (&self.shared.steps_kb, l1.unified_kb, l1.ways);
            let kb = self.shared.kb;
            let why = format!("{steps} has no step for the {kb} KiB of shared.kb");
            require(steps.at_least(kb).is_some(), "shared.steps_kb", why);
            let uneven = steps.iter().find(|&step| step >= unified || (unified - step) * ways % unified != 0);
            let why = format!(
                "{} KiB leave the L1 no whole number of its {ways} ways of {unified} KiB (l1.ways, l1.unified_kb)",
                uneven.unwrap_or_default()
            );
            require(uneven.is_none(), "shared.steps_kb", why);
        }
        require(
            l1.writes == L1Writes::Evict && l1.local_writes == L1LocalWrites::AsGlobal || l1.miss_queue_entries >= 3,
            "l1.miss_queue_entries",
            format!("{} leave no room for a miss that has lines cleaned: 3 are needed", l1.miss_queue_entries),
        );
        // A switch stands between two links that share the crossbar's latency, and replies wait in its
        // queues.
        let (switched, gpcs) = (self.crossbar.switch == SwitchKind::InputQueued, self.crossbar.gpcs);
        require(
            !(switched || gpcs > 0) || self.crossbar.latency_cycles >= 2,
            "crossbar.latency_cycles",
            "a switch and a port of a GPC need a cycle on both of their sides: 2 at least".into(),
        );
        require(
            !((switched || gpcs > 0) && l2.inclusive),
            "l2.inclusive",
            "what an inclusive L2 takes back from L1s would overtake replies that wait in a switch (crossbar.switch) or \
             at a port of a GPC (crossbar.gpcs)"
                .into(),
        );
        require(
            !(switched && gpcs > 0),
            "crossbar.gpcs",
            "replies go through a switch (crossbar.switch) or through ports of GPCs, not both".into(),
        );
        require(
            gpcs == 0 || self.crossbar.gpc_bytes > 0,
            "crossbar.gpc_bytes",
            format!("the ports of {gpcs} GPCs (crossbar.gpcs) would move nothing"),
        );
        let partitions = self.crossbar.partitions;
        require(
            !(switched && partitions > 1),
            "crossbar.partitions",
            "a switch (crossbar.switch) is as far from all slices: it has one partition".into(),
        );
        require(
            mc.channels.is_multiple_of(partitions),
            "crossbar.partitions",
            format!("{} channels, with their slices, do not divide evenly over {partitions} partitions", mc.channels),
        );
        require(
            partitions == 1 || gpcs == 0 || gpcs >= partitions,
            "crossbar.partitions",
            format!("{gpcs} GPCs (crossbar.gpcs) are in one partition each, and there are {partitions} partitions"),
        );
        // From here on what slices and controllers share: each controller serves the same number of slices.
        let channels = mc.channels;
        require(
            l2.slices.is_multiple_of(channels) && l2.slices / channels <= 255,
            "l2.slices",
            format!("{} slices do not divide evenly over {channels} channels", l2.slices),
        );
        require(
            l2.interleave_bytes.is_power_of_two() && l2.interleave_bytes >= line,
            "l2.interleave_bytes",
            format!("{} is not a power of two of at least a line ({line})", l2.interleave_bytes),
        );
        require(self.dispatch.command_ns.ps > 0, "dispatch.command_ns", LINK_WITHOUT_LATENCY.into());
        faults.extend(mc.faults(line, self.dram.row_bytes, self.nvm.row_bytes));
        faults
    }

    /// Where addresses lie; devices of DRAM and of NVM are those of tables, where there are any.
    ///
    /// # Errors
    /// The machine cannot have this mapping.
    pub fn address_map(&self, tables: [Option<&Device>; 2]) -> Result<AddressMap, String> {
        let sizes = [self.l2.slices, self.l2.interleave_bytes];
        self.controller.address_map(sizes, [&self.dram, &self.nvm.rows()], tables)
    }
}

/// Runs a machine as [`Simulation::run`] does. The engine's loop over the machine's messages is compiled
/// here, beside the components and at their level of optimisation; crates above are compiled for size.
#[inline(never)]
pub fn run(simulation: &mut Simulation<msg::Msg>, options: &RunOptions<'_>) -> RunEnd {
    simulation.run(options)
}
