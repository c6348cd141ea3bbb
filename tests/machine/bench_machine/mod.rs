//! A bench for whole machines: small kernels in PTX on an assembled machine, and a stopwatch inside the kernel.
//!
//! Every kernel gets the parameters `out`, `a`, `b` (addresses) and `n`, and finds them in `%out`, `%a`, `%b`, `%n`, its
//! thread in the CTA in `%tid`, its CTA in `%cta`, its number in the grid in `%id`. Registers to use freely:
//! `%p0..15`, `%r0..63`, `%d0..63` (64 bits), `%f0..31`, `%g0..31` (doubles). `%clock64` is read when it issues and a
//! warp issues in order, so the difference of two reads is the number of core cycles between two issues, exactly.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this one")]

use std::sync::Arc;

use durawarp::assemble::{Assembly, Persistency, assemble_with};
use durawarp::config::device::{self, DeviceRequest};
use durawarp::config::{MachineConfig, Override, SchemeConfig};
use durawarp::diagnostic::Diagnostic;
use durawarp::engine::{RunEnd, RunOptions, Time};
use durawarp::kernel::functional::{self, Limits};
use durawarp::kernel::host::{HostAction, HostProgram};
use durawarp::kernel::launch::{Binding, Launch, ParamBlock};
use durawarp::kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp::kernel::ptx;
use durawarp::machine::MachineSpec;
use durawarp::machine::device::{Device, PLAIN};
use durawarp::machine::media::MediaSpec;
use durawarp::schemes::catalogue;
use durawarp::stats::{Counters, Table};

/// A built-in machine with overrides, `KEY=VALUE` separated by blanks.
pub fn machine(name: &str, overrides: &str) -> MachineSpec {
    let overrides: Vec<Override> = overrides.split_whitespace().map(|o| Override::parse(o).unwrap()).collect();
    MachineConfig::load(name, &overrides).unwrap_or_else(|faults| panic!("{faults}")).spec
}

/// The device that a machine names for DRAM, as it is on its bus.
fn dram_of(spec: &MachineSpec) -> Option<Arc<Device>> {
    let MediaSpec { device, bin, density, timing, ranks, .. } = &spec.dram;
    let place = |key: &str, why: &str| Diagnostic::nowhere(key, why.to_owned());
    let asked = DeviceRequest { device, bin, density, timing, ranks: *ranks, place: &place };
    (device != PLAIN).then(|| {
        let loaded = device::load(&asked).unwrap_or_else(|faults| panic!("{faults}")).device;
        assert_eq!(loaded.organisation.bytes_per_cycle(), f64::from(spec.bus.bytes_per_cycle));
        Arc::new(loaded)
    })
}

/// `agpm-table4` with every clock at 1 GHz, so that any cycle is a nanosecond and no edge is waited for.
pub fn one_gigahertz(overrides: &str) -> MachineSpec {
    let clocks = "clock.core_mhz=1000 clock.crossbar_mhz=1000 clock.l2_mhz=1000 clock.memory_mhz=1000";
    machine("agpm-table4", &format!("{clocks} dispatch.launch_ns=100 {overrides}"))
}

/// Waits until all that was before is long over, by registers from 60 on and `%p15`.
pub const SETTLE: &str = "
mov.u32 %r60, %clock;
SETTLE:
mov.u32 %r61, %clock;
sub.s32 %r62, %r61, %r60;
setp.lt.u32 %p15, %r62, 2000;
@%p15 bra SETTLE;
";

/// A whole PTX module around a kernel's declarations (shared memory, labels' registers) and its body.
pub fn kernel(body: &str) -> String {
    format!(
        ".version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 p_out, .param .u64 p_a, .param .u64 p_b, .param .u32 p_n)
{{
.reg .pred %p<16>;
.reg .b32 %n, %tid, %cta, %id, %nt, %r<64>;
.reg .b64 %out, %a, %b, %d<64>;
.reg .f32 %f<32>;
.reg .f64 %g<32>;
ld.param.u64 %out, [p_out];
ld.param.u64 %a, [p_a];
ld.param.u64 %b, [p_b];
ld.param.u32 %n, [p_n];
mov.u32 %tid, %tid.x;
mov.u32 %cta, %ctaid.x;
mov.u32 %nt, %ntid.x;
mad.lo.s32 %id, %cta, %nt, %tid;
{body}
ret;
}}
"
    )
}

/// What a bench's host does, one after another.
#[derive(Debug)]
struct Actions {
    left: std::vec::IntoIter<HostAction>,
    overlaps: bool,
    clusters: bool,
}

impl HostProgram for Actions {
    fn overlaps(&self) -> bool {
        self.overlaps
    }

    fn has_clusters(&self) -> bool {
        self.clusters
    }

    fn next(&mut self, _: Option<u64>) -> Result<HostAction, String> {
        Ok(self.left.next().unwrap_or(HostAction::Done))
    }
}

/// One launch to come.
struct Plan {
    text: String,
    grid: u32,
    block: u32,
    dynamic_shared: u32,
    registers: Option<u32>,
    params: (u64, u64, u64, u32),
    stream: u64,
    after: Vec<u32>,
    programmatic: bool,
}

/// Buffers, launches and a machine for them.
pub struct Bench {
    pub spec: MachineSpec,
    map: AddressMap,
    content: Vec<(u64, Vec<u8>)>,
    plans: Vec<Plan>,
    /// Under which scheme launches overlap, and whether with a journal.
    pub overlapped: (&'static str, bool),
}

impl Bench {
    pub fn new(spec: MachineSpec) -> Self {
        let (content, plans, overlapped) = (Vec::new(), Vec::new(), ("base", false));
        Bench { spec, map: AddressMap::default(), content, plans, overlapped }
    }

    /// With launches that overlap.
    pub fn overlapping(&self) -> Persistency {
        let (scheme, journal) = self.overlapped;
        let scheme = catalogue::find(scheme).unwrap_or_else(|faults| panic!("{faults}"));
        Persistency { scheme, journal, overlaps: true, ..Persistency::default() }
    }

    /// A buffer of zeros; its address.
    pub fn buffer(&mut self, bytes: u64, medium: Medium) -> u64 {
        self.map.allocate("buffer", bytes, medium)
    }

    /// Initial content.
    pub fn put_u64s(&mut self, address: u64, values: &[u64]) {
        self.content.push((address, values.iter().flat_map(|v| v.to_le_bytes()).collect()));
    }

    /// Initial content.
    pub fn put_u32s(&mut self, address: u64, values: &[u32]) {
        self.content.push((address, values.iter().flat_map(|v| v.to_le_bytes()).collect()));
    }

    /// A launch of a kernel with this body; `params` are `out`, `a`, `b`, `n`.
    pub fn launch(&mut self, body: &str, grid: u32, block: u32, params: (u64, u64, u64, u32)) -> &mut Self {
        let text = kernel(body);
        let (stream, after, programmatic) = (0, Vec::new(), false);
        let (dynamic_shared, registers) = (0, None);
        self.plans.push(Plan { text, grid, block, dynamic_shared, registers, params, stream, after, programmatic });
        self
    }

    /// The stream of the last launch, and launches of others that it waits for.
    pub fn in_stream(&mut self, stream: u64, after: &[u32]) -> &mut Self {
        let plan = self.plans.last_mut().unwrap();
        (plan.stream, plan.after) = (stream, after.to_vec());
        self
    }

    /// The last launch may begin before the one before it in its stream is over.
    pub fn programmatic(&mut self) -> &mut Self {
        self.plans.last_mut().unwrap().programmatic = true;
        self
    }

    /// The same with functions and constants at module scope.
    pub fn launch_with(
        &mut self,
        functions: &str,
        body: &str,
        grid: u32,
        block: u32,
        params: (u64, u64, u64, u32),
    ) -> &mut Self {
        self.launch(body, grid, block, params);
        self.plans.last_mut().unwrap().text += functions;
        self
    }

    /// Dynamic shared memory, in bytes, of the last launch.
    pub fn with_shared(&mut self, bytes: u32) -> &mut Self {
        self.plans.last_mut().unwrap().dynamic_shared = bytes;
        self
    }

    /// Directives of the kernel of the last launch, such as `.maxnreg 64`.
    pub fn with_directives(&mut self, directives: &str) -> &mut Self {
        let text = &mut self.plans.last_mut().unwrap().text;
        *text = text.replacen("p_n)\n{", &format!("p_n)\n{directives}\n{{"), 1);
        self
    }

    /// Registers a thread of the last launch.
    pub fn with_registers(&mut self, registers: u32) -> &mut Self {
        self.plans.last_mut().unwrap().registers = Some(registers);
        self
    }

    /// Memory before the first launch.
    pub fn image(&self) -> FlatMemory {
        let mut memory = FlatMemory::new(&self.map);
        for (address, bytes) in &self.content {
            memory.write(*address, bytes).unwrap();
        }
        memory
    }

    pub fn launches(&self) -> Vec<Arc<Launch>> {
        let addresses = Arc::new(self.map.clone());
        let bind = |plan: &Plan| {
            let module = ptx::parse("bench.ptx", &plan.text).unwrap_or_else(|faults| panic!("{faults}"));
            let kernel = module.kernel("k").unwrap();
            let (out, a, b, n) = plan.params;
            let params = ParamBlock::new(kernel).u64(out).u64(a).u64(b).u32(n).finish();
            let binding = Binding {
                grid: [plan.grid, 1, 1],
                block: [plan.block, 1, 1],
                dynamic_shared: plan.dynamic_shared,
                params: &params,
                globals: &[],
                const_bank: None,
                textures: &[],
                surfaces: &[],
                registers: plan.registers,
                cluster: None,
                addresses: addresses.clone(),
            };
            let bound = Launch::bind(&module, kernel, &binding).unwrap_or_else(|e| panic!("{e:?}"));
            let Plan { stream, programmatic, .. } = *plan;
            Arc::new(Launch { stream, programmatic, after: plan.after.clone(), ..bound })
        };
        self.plans.iter().map(bind).collect()
    }

    /// Memory after every launch, without time.
    pub fn functional(&self) -> FlatMemory {
        let mut memory = self.image();
        let limits = Limits { warp_size: self.spec.sm.warp_size, ..Limits::default() };
        for launch in self.launches() {
            functional::run(&launch, &mut memory, &limits).unwrap_or_else(|error| panic!("{error}"));
        }
        memory
    }

    /// Runs everything as `options` says, without persistency.
    pub fn run_with(&self, options: &RunOptions<'_>) -> Ran {
        self.run_under(&Persistency::default(), options)
    }

    /// Runs everything under a scheme, with journals, on one thread to its proper end.
    pub fn run_scheme(&self, scheme: &str) -> Ran {
        let scheme = catalogue::find(scheme).unwrap_or_else(|faults| panic!("{faults}"));
        let ran =
            self.run_under(&Persistency { scheme, journal: true, ..Persistency::default() }, &RunOptions::default());
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
        ran
    }

    /// Runs everything under a scheme with parameters, `KEY=VALUE` separated by blanks, as [`Bench::run_scheme`] does.
    pub fn run_set(&self, scheme: &str, sets: &str) -> Ran {
        let overrides: Vec<Override> = sets.split_whitespace().map(|text| Override::parse(text).unwrap()).collect();
        let scheme = SchemeConfig::load(scheme, &overrides).unwrap_or_else(|faults| panic!("{faults}")).built;
        let ran =
            self.run_under(&Persistency { scheme, journal: true, ..Persistency::default() }, &RunOptions::default());
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
        ran
    }

    /// A machine whose host does these things, with the bench's memory.
    pub fn assemble(&self, actions: Vec<HostAction>, local_bytes: u32, persistency: &Persistency) -> Assembly {
        let launch = |action: &HostAction| match action {
            HostAction::Launch(launch) => Some((launch.stream, launch.programmatic)),
            _ => None,
        };
        let of_launches: Vec<(u64, bool)> = actions.iter().filter_map(launch).collect();
        let overlaps = of_launches.iter().any(|of| of.1 || of.0 != of_launches[0].0);
        let in_clusters =
            |action: &HostAction| matches!(action, HostAction::Launch(launch) if launch.cluster_ctas() > 1);
        let clusters = actions.iter().any(in_clusters);
        let host = Box::new(Actions { left: actions.into_iter(), overlaps, clusters });
        let persistency = Persistency { devices: [dram_of(&self.spec), None], ..persistency.clone() };
        assemble_with(&self.spec, self.image(), local_bytes, host, &persistency)
    }

    /// Runs everything under a scheme as `options` says.
    pub fn run_under(&self, persistency: &Persistency, options: &RunOptions<'_>) -> Ran {
        let mut memory = self.image();
        let launches = self.launches();
        let local = launches.iter().map(|l| l.kernel.local_bytes).max().unwrap_or(0);
        let actions: Vec<HostAction> = launches.into_iter().map(HostAction::Launch).collect();
        let mut assembly = self.assemble(actions, local, persistency);
        let end = durawarp::machine::run(&mut assembly.simulation, options);
        assembly.collect(&mut memory);
        Ran { spec: self.spec.clone(), end, assembly, memory }
    }

    /// Runs everything with launches of several streams at once, as `options` says, to its proper end.
    pub fn run_overlapped(&self, options: &RunOptions<'_>) -> Ran {
        let ran = self.run_under(&self.overlapping(), options);
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
        ran
    }

    /// Runs everything on one thread to its proper end.
    pub fn run(&self) -> Ran {
        let ran = self.run_with(&RunOptions::default());
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
        ran
    }
}

/// A run that is over.
pub struct Ran {
    pub spec: MachineSpec,
    pub end: RunEnd,
    pub assembly: Assembly,
    pub memory: FlatMemory,
}

/// A counter's sum over components.
pub fn sum<C: Counters>(components: impl Iterator<Item = C>, name: &str) -> u64 {
    Table::of("any", &components.collect::<Vec<_>>()).total(name)
}

impl Ran {
    pub fn u32s(&self, address: u64, count: usize) -> Vec<u32> {
        self.memory.read_u32s(address, count).unwrap()
    }

    pub fn u64s(&self, address: u64, count: usize) -> Vec<u64> {
        self.memory.read_u64s(address, count).unwrap()
    }

    /// A counter summed over the SMs.
    pub fn sm(&self, name: &str) -> u64 {
        sum(self.assembly.sms().map(|s| s.counters()), name)
    }

    /// A counter summed over the L2 slices.
    pub fn l2(&self, name: &str) -> u64 {
        sum(self.assembly.slices().map(|s| *s.counters()), name)
    }

    /// A counter summed over the memory controllers.
    pub fn mc(&self, name: &str) -> u64 {
        sum(self.assembly.controllers().map(|s| *s.counters()), name)
    }

    /// What the scheme's handlers counted.
    pub fn scheme(&self, name: &str) -> u64 {
        let mut total = 0;
        let mut add = |counted: &'static str, count: u64| total += if counted == name { count } else { 0 };
        self.assembly.sms().for_each(|sm| sm.tally(&mut add));
        self.assembly.slices().for_each(|slice| slice.tally(&mut add));
        self.assembly.controllers().for_each(|controller| controller.tally(&mut add));
        total
    }

    /// Ticks of launch number `index`, from the host's wish to the last store.
    pub fn ticks(&self, index: usize) -> Time {
        let record = &self.assembly.command_processor().launches()[index];
        record.end - record.start
    }

    /// Seconds of launch number `index`, its launch latency left out.
    pub fn seconds(&self, index: usize) -> f64 {
        let base = self.spec.timebase().unwrap();
        let launch = self.spec.dispatch.launch_ns.ps as f64 * 1e-12;
        self.ticks(index) as f64 / (base.tick_khz() as f64 * 1e3) - launch
    }
}
