//! What a run was and what came of it: plain data that holds its resolved configuration, version and seed, so
//! that any result can be run again from itself and old results can be redrawn.
//!
//! This is the documented schema of `--json`. Times are in ticks (exact) and picoseconds; counters carry
//! their unit and meaning beside their values. Nothing here is derived twice: rates and shares are methods.

mod caveat;
mod computed;
mod devices;
mod duration;
mod energy;
mod files;
mod read;
pub(crate) mod region_bound;
mod repeats;
#[cfg(any(test, feature = "samples"))]
#[doc(hidden)]
pub mod sample;
mod sampled_process;
mod sampling;
mod slots;
mod streams;
pub mod validity;
mod wear;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::caveat::Caveat;
pub use self::computed::computed;
pub use self::devices::{Devices, LineWrites};
pub use self::duration::Duration;
pub use self::energy::{Energy, EnergyPart, PARTS as ENERGY_PARTS};
pub use self::files::FileOutcome;
pub use self::repeats::{Repeating, Repeats};
pub use self::sampled_process::{SampledPhase, SampledProcess, SimulatedRegion};
pub use self::sampling::{SampledKernel, Sampling};
pub use self::slots::{FunctionSlots, HartSlots, PlaceSlots, SlotPlaces};
pub use self::streams::Streams;
pub use self::wear::{Lifetimes, Wear};
use durawarp_base::stats::Table;
use durawarp_kernel::functional::races::Race;
use durawarp_persist::regions::RegionReport;
use durawarp_persist::selection::Selection;

/// Version of this schema; raised when a field changes its meaning or goes, or one comes whose absence would
/// mislead.
pub const SCHEMA: u32 = 3;

/// A run's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// Version of the simulator.
    pub version: String,
    /// The machine, resolved.
    pub machine: Machine,
    /// Persistency scheme.
    pub scheme: String,
    /// What its file calls it, where that is not the scheme's name.
    #[serde(default)]
    pub scheme_variant: Option<String>,
    /// Under it programs keep undo logs. Not known of outcomes of schema 1.
    #[serde(default)]
    pub scheme_logs: bool,
    /// Every parameter of the scheme by `table.key`, with the owner of its value.
    #[serde(default)]
    pub scheme_parameters: BTreeMap<String, Parameter>,
    /// The workload, resolved: name, profile, seed, parameters, buffers.
    pub workload: serde_json::Value,
    /// How the run ended.
    pub end: End,
    /// Simulated time.
    pub time: Duration,
    /// Kernel launches in order.
    pub launches: Vec<Launch>,
    /// The same by kernel, in the order of first launches.
    #[serde(default)]
    pub kernels: Vec<KernelTotals>,
    /// What the process of a machine of CPU cores left; `None` of other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessOutcome>,
    /// Counters by kind of component.
    pub counters: Vec<Table>,
    /// How a sampled run came by its time, which is an estimate then; `None` of a run that was simulated
    /// whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The region of interest of a program of CPUs, of which times and counters are then; `None` of a run of
    /// everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<SimulatedRegion>,
    /// How launches of several streams ran; `None` of a program with one stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    /// The checkpoint from which it went on with other parameters; `None` of a run with one set of
    /// parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_checkpoint: Option<FromCheckpoint>,
    /// What memory devices did beside these counters. Not known of results kept before there was this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Devices>,
    /// Energy by part: [`computed`] from counters and parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// Wear of NVM, computed likewise; `None` where nothing was written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<Wear>,
    /// Where persists waited; `None` without persists and without waits for them.
    #[serde(default)]
    pub persists: Option<Persists>,
    /// What was left to be written when the program was over; `None` where it was not, and in results kept
    /// before there was this.
    #[serde(default)]
    pub backlog: Option<Backlog>,
    /// What the scheme's own component tells about the run; under AGPM a [`Selection`], under
    /// LightWSP a [`RegionReport`].
    #[serde(default)]
    pub scheme_report: Option<serde_json::Value>,
    /// What the scheme's handlers counted, by names with units last.
    #[serde(default)]
    pub scheme_counters: BTreeMap<String, u64>,
    /// What is odd about the program but no fault, in the order of launches.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// What may make the result worth less than it looks: [`validity::of`] everything else. Outcomes of
    /// schema 1 do not say.
    #[serde(default)]
    pub validity: Vec<Caveat>,
    /// Result check; `None` when the run did not end by itself.
    pub verification: Option<Verification>,
    /// Accesses of the program without order, found on the functional run; `None` where they were not looked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub races: Option<Vec<Race>>,
    /// Number that stands for every event and the final state; equal runs have equal digests.
    pub digest: String,
    /// Number that stands for the final content of every buffer.
    pub memory_digest: String,
    /// What the engine did; equal at any number of threads.
    pub engine: Engine,
    /// The simulation on its host: never the same twice.
    pub host: Host,
}

/// Where a run changed its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromCheckpoint {
    /// The first core cycle with the new values.
    pub cycle: u64,
    /// What was changed there, as `key=value`; the machine's and the scheme's parameters are those after it.
    pub set: Vec<String>,
}

impl FromCheckpoint {
    /// As a caveat says it.
    pub fn told(&self) -> String {
        let set = self.set.join(", ");
        format!("from core cycle {} on it ran with {set}, before that with other values, from a checkpoint", self.cycle)
    }
}

/// The machine that was simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub name: String,
    /// One line about it.
    pub description: String,
    /// Every parameter by `table.key`, with the owner of its value.
    pub parameters: BTreeMap<String, Parameter>,
    /// Peak bandwidth of the memory buses, in bytes per second.
    pub peak_memory_bytes_per_s: u64,
    /// Warp instructions that all SMs can issue in a core cycle.
    pub peak_issue_per_cycle: u32,
    /// Warp slots of all SMs.
    pub warp_slots: u64,
    /// Core clock in kHz.
    pub core_khz: u64,
    /// Tick rate in kHz.
    pub tick_khz: u64,
}

/// One parameter's value and owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Value, in the unit that the key's name ends in.
    pub value: serde_json::Value,
    /// Where it comes from; "chosen..." when for lack of a source.
    pub source: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum End {
    /// The host program is over and everything has drained.
    Finished,
    /// Nothing can happen any more, but somebody waits: who, for what.
    Deadlock {
        /// One line a wait.
        waits: Vec<String>,
    },
    /// All that runs only repeats itself: for ever, unless somebody changes what it reads, and nobody does.
    Repeats(Box<Repeats>),
    /// The cycle limit was reached: everything is of the part that ran, and the result is not checked.
    /// Neither success nor failure.
    Cut {
        /// Who had waited longest, and for what: one line a wait.
        waits: Vec<String>,
    },
    /// The user stopped it.
    Stopped,
    /// The simulated program or its host failed.
    Failed {
        /// What went wrong, with file, line and thread.
        error: String,
    },
    /// The simulator itself failed: a defect of ours.
    Panicked {
        /// Component and message.
        message: String,
    },
}

/// In one line.
impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Finished => write!(f, "finished"),
            End::Deadlock { waits } => write!(f, "deadlock: {}", waits.join("; ")),
            End::Repeats(repeats) => write!(f, "it repeats itself for ever: {}", repeats.lines().join("; ")),
            End::Cut { .. } => write!(f, "cut at its cycle limit"),
            End::Stopped => write!(f, "stopped"),
            End::Failed { error } => write!(f, "{error}"),
            End::Panicked { message } => write!(f, "the simulator failed, which is a defect: {message}"),
        }
    }
}

/// A kernel launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Kernel name.
    pub kernel: String,
    /// Its stream, where the program has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs that an SM can hold.
    pub ctas_per_sm: u32,
    /// The resource that limits it.
    pub limited_by: String,
    /// Capacity that the launch left the L1, in KiB, where L1 and shared memory are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1_kb: Option<u32>,
    /// Capacity that it took for shared memory, in KiB, where L1 and shared memory are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_kb: Option<u32>,
    /// When the host asked for it and its stream was free.
    pub start: Duration,
    /// From then until its last store was performed and the command processor knew.
    pub length: Duration,
    /// Counters of all components by `kind.name` ("l2.reads"), where counters by launch were asked for: what
    /// was counted from the end of the launch before (where launches overlap, of the one that ended before
    /// it) to the end of this one, so that host transfers before a launch are with it. What follows the last
    /// launch is with none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

/// What a process left beside memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOutcome {
    /// Its exit code; `None` when the run ended before it.
    pub exit_code: Option<i32>,
    /// When it ended, where clients go on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Duration>,
    /// What it wrote to standard output; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// What it wrote to standard error, likewise.
    pub stderr: String,
    /// Files that it made or changed and did not delete, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileOutcome>,
    /// System calls that are not served, or not in all that was asked of them: number, and how often.
    pub unsupported_calls: Vec<(u64, u64)>,
    /// Where dispatch slots went, by hart, function and instruction, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotPlaces>,
}

/// All launches of one kernel together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTotals {
    /// Kernel name.
    pub kernel: String,
    /// How often it was launched.
    pub launches: u64,
    /// Sum of the lengths of its launches.
    pub time: Duration,
    /// Counters by `kind.name` ("sm.l1_stores"), summed over components. Over all kernels they add up to the
    /// totals of `counters`. SMs only, links to and from the L2 included: slices and memory controllers hear
    /// of no launch, and write back a kernel's lines during the next.
    pub counters: BTreeMap<String, u64>,
}

/// How long persists (write-throughs and write-backs of lines that warps asked for) waited, and where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Persists {
    /// Each stage of a persist's way, in order. The stages of a persist add up to its total, hence so do the
    /// sums.
    pub stages: Vec<Stage>,
    /// From issue to acknowledgement.
    pub total: Spread,
    /// Warps that had to wait for their persists to be durable: at fences, and after stores that wait. 0
    /// where nothing was under way.
    pub fences: Spread,
    /// Ends of CTAs and kernels that waited for the write-back of the L2.
    pub boundaries: Spread,
    /// How the three are spread, for cumulative distributions; empty in results that were kept before there
    /// was this.
    #[serde(default)]
    pub distributions: Distributions,
}

/// Latencies with how often they were met, in their order: a latency in ns that those counted do not exceed,
/// and the count. A latency is up to 1/64 more than the real one.
pub type Distribution = Vec<(f64, u64)>;

/// Distributions of what [`Persists`] tells the spread of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Distributions {
    /// From issue to acknowledgement.
    pub total: Distribution,
    /// Warps that had to wait for their persists.
    pub fences: Distribution,
    /// Ends of CTAs and kernels.
    pub boundaries: Distribution,
}

/// A stage of a persist's way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Name: "lsu", "injection", "crossbar", "l2", "accept", "media", "ack".
    pub name: String,
    /// What a persist waits for in it.
    pub meaning: String,
    /// How long.
    #[serde(flatten)]
    pub spread: Spread,
}

/// How a length of time is spread. Count, sum and greatest are exact; a percentile is the value of its rank
/// or up to 1/64 of it more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there were.
    pub count: u64,
    /// Their sum, in ticks of the machine's tick rate.
    pub sum_ticks: u64,
    /// Their sum, in ns.
    pub sum_ns: f64,
    /// Half were not longer, in ns.
    pub p50_ns: f64,
    /// 90 of 100 were not longer, in ns.
    pub p90_ns: f64,
    /// 99 of 100 were not longer, in ns.
    pub p99_ns: f64,
    /// The longest, in ns.
    pub max_ns: f64,
}

impl Spread {
    /// Mean, in ns.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.count.max(1) as f64
    }
}

/// What a program leaves behind: the time of a run ends with the host program's last step, writes to memory
/// may go on. What is held in caches is no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Stores of lines that a scheme's controllers held back, not yet handed to the write-pending queues.
    pub gated_stores: u64,
    /// Entries of gated queues that these take.
    pub gated_entries: u64,
    /// Writes in write-pending queues, or waiting for an entry of one.
    pub queued_writes: u64,
    /// Writes that stayed in write-pending queues when all was over, below `controller.drain_idle_entries`.
    pub kept_writes: u64,
    /// From the program's end until the last of the others had left its write-pending queue for the media.
    pub drain: Duration,
}

impl Backlog {
    /// Something had to be written, and took time.
    pub fn is_some(&self) -> bool {
        self.gated_stores > 0 || self.drain.ticks > 0
    }
}

/// Something odd about the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What, in a sentence that names the place.
    pub message: String,
    pub kernel: String,
    /// Its PTX file.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// The first launch concerned, from 0.
    pub launch: u32,
}

/// The result check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Every check and expectation passed.
    pub passed: bool,
    /// Each check: name, outcome, first difference.
    pub checks: serde_json::Value,
    /// Sentences about what failed.
    pub failures: Vec<String>,
}

impl Verification {
    /// Of a workload's checks, and what failed in sentences.
    pub(crate) fn of(checks: &impl Serialize, failures: Vec<String>) -> Verification {
        let checks = serde_json::to_value(checks).unwrap_or_default();
        Verification { passed: failures.is_empty(), checks, failures }
    }
}

/// What the engine did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// Events handled.
    pub events: u64,
    /// Of these, messages.
    pub messages: u64,
    /// Rounds of the conservative synchronisation.
    pub rounds: u64,
    /// Length of a round in ticks: the lookahead.
    pub lookahead_ticks: u64,
    /// Events over events of the busiest component of each round, with those fused with it: the speed-up that
    /// unlimited threads could give.
    pub parallelism_bound: f64,
}

/// The simulation on its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The most threads that were at work at a time.
    pub threads: usize,
    /// Threads asked for; 0 for one a core.
    pub threads_asked: usize,
    /// Wall-clock time of the simulation, in seconds.
    pub wall_s: f64,
    /// Share of the workers' time spent waiting for each other.
    pub blocked_share: f64,
    /// Wall-clock time of the functional reference run, in seconds; 0 when there was none.
    pub functional_s: f64,
    /// Wall-clock time from the simulation's start to the end of each launch, in seconds, where counters by
    /// launch were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches_s: Vec<f64>,
}

impl Outcome {
    /// The counters of one kind of component.
    ///
    /// # Panics
    /// When there are none of that kind.
    pub fn table(&self, kind: &str) -> &Table {
        match self.counters.iter().find(|t| t.kind == kind) {
            Some(table) => table,
            None => panic!("no counters of `{kind}`"),
        }
    }

    /// A parameter of the machine as a number; `None` where it has none of that key.
    pub fn parameter(&self, key: &str) -> Option<f64> {
        self.machine.parameters.get(key)?.value.as_f64()
    }

    /// A counter summed over components.
    pub fn total(&self, kind: &str, name: &str) -> u64 {
        self.table(kind).total(name)
    }

    /// All launches of a kernel together, if there were any.
    pub fn kernel(&self, name: &str) -> Option<&KernelTotals> {
        self.kernels.iter().find(|totals| totals.kernel == name)
    }

    /// Warp instructions issued; of CPU cores, instructions retired.
    pub fn warp_instructions(&self) -> u64 {
        let of_cores = || self.count_of("core", "instructions");
        self.count_of("sm", "warp_instructions").or_else(of_cores).unwrap_or(0)
    }

    /// A counter summed over components; `None` where the machine has none of that kind.
    pub fn count_of(&self, kind: &str, name: &str) -> Option<u64> {
        let table = self.counters.iter().find(|table| table.kind == kind)?;
        table.names.iter().any(|own| own == name).then(|| table.total(name))
    }

    /// How many components of a kind the machine has.
    pub fn rows_of(&self, kind: &str) -> usize {
        self.counters.iter().find(|table| table.kind == kind).map_or(0, |table| table.rows.len())
    }

    /// It is of a machine of CPU cores.
    pub fn is_of_a_cpu(&self) -> bool {
        self.counters.iter().any(|table| table.kind == "core")
    }

    /// Warp instructions a core cycle, all SMs together.
    pub fn ipc(&self) -> f64 {
        ratio(self.warp_instructions(), self.time.core_cycles)
    }

    /// Bytes a second of simulated time.
    pub fn bytes_per_s(&self, bytes: u64) -> f64 {
        bytes as f64 / (self.time.ps.max(1) as f64 * 1e-12)
    }

    /// Warp instructions a second of wall-clock time.
    pub fn warp_instructions_per_s(&self) -> f64 {
        self.warp_instructions() as f64 / self.host.wall_s.max(1e-9)
    }

    /// Core cycles a second of wall-clock time.
    pub fn cycles_per_s(&self) -> f64 {
        self.time.core_cycles as f64 / self.host.wall_s.max(1e-9)
    }

    /// What the scheme is called: as its file says, else as it is.
    pub fn scheme_name(&self) -> &str {
        self.scheme_variant.as_deref().unwrap_or(&self.scheme)
    }

    /// The decisions of a scheme that selects data paths; `None` where it makes none.
    pub fn selection(&self) -> Option<Selection> {
        serde_json::from_value(self.scheme_report.clone()?).ok()
    }

    /// The regions of a scheme that has them; `None` under others, and where it was not kept.
    pub fn regions(&self) -> Option<RegionReport> {
        serde_json::from_value(self.scheme_report.clone()?).ok()
    }

    /// Parameters of machine and scheme whose value was chosen for lack of a source, or has no named one: key
    /// and source.
    pub fn assumptions(&self) -> Vec<(&str, &Parameter)> {
        let without = ["chosen", "user", "machine file without", "scheme file without"];
        let unowned = |source: &str| without.iter().any(|start| source.starts_with(start));
        let all = self.machine.parameters.iter().chain(&self.scheme_parameters);
        all.filter(|(_, p)| unowned(&p.source)).map(|(k, p)| (k.as_str(), p)).collect()
    }
}

/// `part / whole`, 0 when there is no whole.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
