//! What can be typed.
//!
//! Over 500 lines: an argument a field, most of them its help, which is looked up as a whole. What arguments
//! come to is with the commands.

mod common;
mod crash;
mod measure;
mod sweep;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
use durawarp::config::presets::DEFAULT_MACHINE;
use durawarp::kernel::regions::RegionOptions;
use durawarp::run::{REPEAT_CYCLES, RegionOfInterest};
use durawarp::workload::{FlagBarrier, Mode};

use super::monitor::local_address;
use super::names;
use common::{OneScheme, RESULTS, jobs, threads};
pub(super) use common::{PointThreads, Subject, Threads, Work};
pub(super) use crash::{CrashArgs, State};
pub(super) use measure::{BenchArgs, CheckArgs, ScalingArgs};
pub(super) use sweep::{
    SweepCommand, SweepFiguresArgs, SweepLintArgs, SweepReportArgs, SweepRunArgs, SweepStatusArgs, SweepTableArgs,
};

/// Simulates GPUs with persistent memory: executes a kernel, given as PTX, on a machine of SMs, L2 slices,
/// DRAM and NVM.
#[derive(Debug, Parser)]
#[command(name = "durawarp", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 good; 1 configurations or runs differ, or with --strict warnings or asks that are not met; 2 wrong input, or an output that cannot be written; 3 the simulated program failed or its result is wrong; \
    4 runs that must be equal differ; 70 the simulator failed; 130 interrupted; 143 terminated."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Tell every error of an input, not the first 20
    #[arg(long, global = true)]
    pub(super) all_errors: bool,
    /// Group the digits of counts in tables, for reading: 12 345 678
    #[arg(long, global = true)]
    pub(super) human: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Simulate a workload on a machine and print what came of it
    Run(RunArgs),
    /// Run a workload under several persistency schemes and show where persists waited under each
    Stalls(SchemesArgs),
    /// Run a workload under several persistency schemes and compare time, traffic and stalls
    Compare(SchemesArgs),
    /// Show what a scheme did in a run, and why: AGPM's periods and paths, what the markers of nvw-fifo
    /// flushed
    Explain(ExplainArgs),
    /// Let power fail at every instant that matters, recover, and judge what is left
    Crash(CrashArgs),
    /// Form programs into LightWSP's recoverable regions and show them: boundaries, stores, checkpoints,
    /// means of a run
    Regions(RegionsArgs),
    /// Prove that results do not depend on threads: run several ways and compare epoch by epoch
    Check(CheckArgs),
    /// Measure the simulator's own speed on this host: events and warp instructions a second, by threads
    Bench(BenchArgs),
    /// Predict how fast a run would be on more threads, and what bounds it, from one run on one thread
    Scaling(ScalingArgs),
    /// Run a sweep file's points; show their state, tables, figures, a page; lint the file
    #[command(subcommand)]
    Sweep(SweepCommand),
    /// Run a paper's experiments again and show ours beside the published numbers
    Reproduce(ReproduceArgs),
    /// Drive built-in memory devices by themselves and show their cycles beside those of Ramulator 2.1 and
    /// DRAMsim3, and beside arithmetic; exit code 1 when a figure is beyond its bound
    Validate(ValidateArgs),
    /// Halve and double each number of a machine that has no source of its own: which of them matter
    Sensitivity(SensitivityArgs),
    /// Compare two runs, as `run --json` wrote them: configuration, results, every count; exit code 1 when
    /// they differ
    Diff(DiffArgs),
    /// Find where two runs part: the first epoch, component and event; exit code 1 when they do
    Bisect(BisectArgs),
    /// List what is built in
    List(ListArgs),
    /// Show, check, compare and explain machines and schemes
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Examine PTX files
    #[command(subcommand)]
    Ptx(PtxCommand),
    /// Tell what this host and this build offer: cores, memory, Slurm, optional features
    Doctor,
    /// Print a script that completes this command line in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Workload: a built-in name, a folder, a manifest, an executable, or the list of a trace (kernelslist.g)
    #[arg(required_unless_present = "from", add = ArgValueCompleter::new(names::workloads))]
    pub(super) workload: Option<String>,
    #[command(flatten)]
    pub(super) scheme: OneScheme,
    #[command(flatten)]
    pub(super) subject: Subject,
    /// Threads: 0 for one a core, 1 for the sequential driver, auto for as many as are predicted to pay;
    /// results never depend on it
    #[arg(long, default_value = "0", value_name = "N|auto", value_parser = threads)]
    pub(super) threads: Threads,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write what happened when, for Perfetto or chrome://tracing: JSON, compressed where the name ends in
    /// .gz
    #[arg(long, value_name = "FILE")]
    pub(super) timeline: Option<PathBuf>,
    /// Size of that file before compression, at most; what is left out to keep it is told
    #[arg(long, value_name = "N", default_value_t = 64, requires = "timeline", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(super) timeline_budget_mib: u64,
    /// Count writes to the cells of NVM line by line, too: the line that wears most, lines by writes,
    /// lifetime without levelling
    #[arg(long)]
    pub(super) wear: bool,
    /// Look for races on the functional run: two warps that access one word without order, one of them to
    /// write; a program with races fails
    #[arg(long, conflicts_with = "no_reference")]
    pub(super) races: bool,
    /// Count by launch, too: every counter in the JSON, instructions and traffic in the table
    #[arg(long)]
    pub(super) launches: bool,
    /// Write the final bytes of a buffer, raw little-endian; repeatable
    #[arg(long, value_name = "BUFFER=FILE")]
    pub(super) dump: Vec<String>,
    /// Write the files that a program of CPUs wrote below a folder, each by its path
    #[arg(long, value_name = "FOLDER")]
    pub(super) file_out: Option<PathBuf>,
    /// Stop after so many core cycles and report the part that ran
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_cycles: Option<u64>,
    /// Core cycles between two looks whether all that runs only repeats itself, which ends the run; at least
    /// 1000, or 0 for no looks
    #[arg(long, value_name = "N", default_value_t = REPEAT_CYCLES, value_parser = looks)]
    pub(super) repeat_cycles: u64,
    /// Write a checkpoint as soon as everything before this core cycle is simulated, and go on; the results
    /// are those of a run without one
    #[arg(long, value_names = ["CYCLE", "FILE"], num_args = 2, conflicts_with = "sample")]
    pub(super) checkpoint_at: Option<Vec<String>>,
    /// The same before the launch of this number, from 1: as soon as the launch before it is over
    #[arg(long, value_names = ["N", "FILE"], num_args = 2, conflicts_with_all = ["sample", "checkpoint_at"])]
    pub(super) checkpoint_at_kernel: Option<Vec<String>>,
    /// Go on from a checkpoint, to the results of the run that it was written by. With --set, parameters have
    /// other values from there on: durations, energies, thresholds, and no sizes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "scheme", "machine", "profile", "input",
          "flag_barrier", "loop_log", "reload", "instrument", "program", "persistent", "seed", "kernels", "opcodes", "program_args", "timeline",
          "wear", "launches", "sample"])]
    pub(super) from: Option<PathBuf>,
    /// Simulate a part in detail, the rest on the functional driver, and estimate the time with an interval:
    /// so many samples (2 to 64) of a launch of many waves of CTAs, and of many launches ever fewer; of a
    /// program of CPUs with one thread, so many intervals of a phase
    #[arg(long, value_name = "SAMPLES", num_args = 0..=1, require_equals = true, default_missing_value = "4",
          conflicts_with_all = ["max_cycles", "timeline", "compat", "wear", "launches", "monitor"], value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(super) sample: Option<u32>,
    /// Of a program of CPUs with one thread, simulate a region of interest in detail, the rest on the
    /// functional driver: markers (from the hint slti x0,x0,1 to slti x0,x0,2), instructions=FROM..TO,
    /// instructions=FROM.. or function=NAME (its first call). Times and counters are those of the region
    #[arg(long, value_name = "REGION",
          conflicts_with_all = ["sample", "max_cycles", "timeline", "compat", "wear", "launches", "monitor", "from", "checkpoint_at", "checkpoint_at_kernel"])]
    pub(super) roi: Option<RegionOfInterest>,
    /// Do not compare with the functional run; the manifest's own checks remain
    #[arg(long)]
    pub(super) no_reference: bool,
    /// Show the run while it goes on, as a page at an address of this host alone: progress, IPC and bandwidth
    /// over time, the fullest queues, who waits for what. Port 0 picks one; results do not depend on it
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = local_address)]
    pub(super) monitor: Option<SocketAddr>,
    /// Print counters under the names of another simulator, in place of the table
    #[arg(long, value_enum, value_name = "NAME")]
    pub(super) compat: Option<Compat>,
    /// No progress and no table
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// Cycles between two looks: what is under way at one must have arrived at the next.
fn looks(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of core cycles, 1000 at least, or 0 for no looks".to_owned();
    text.parse().ok().filter(|&cycles: &u64| cycles == 0 || cycles >= 1000).ok_or_else(wrong)
}

/// Simulators whose names of counters are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Compat {
    /// GPGPU-Sim and Accel-Sim: gpu_tot_sim_cycle = 123
    Accelsim,
}

#[derive(Debug, Args)]
pub(super) struct SchemesArgs {
    /// Workload: a built-in name, a folder, or a manifest; profile `ci` unless another is named
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(super) workload: String,
    /// Persistency schemes: names (`durawarp list schemes`), .toml files, or all, which is the default
    #[arg(long, alias = "scheme", value_delimiter = ',', value_name = "all|NAME|FILE,...",
          add = ArgValueCompleter::new(names::all_schemes))]
    pub(super) schemes: Vec<String>,
    #[command(flatten)]
    pub(super) subject: Subject,
    #[command(flatten)]
    pub(super) work: Work,
    /// Keep results in this folder, as sweeps do, and take those that are there; nothing is kept unless it is
    /// named
    #[arg(long, value_name = "DIR")]
    pub(super) results: Option<PathBuf>,
    /// Write the outcomes of all runs as JSON, a list in the order of the table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Draw times over those of base (compare) or stages of persists (stalls), as SVG
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// No progress and no table
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Workload: a built-in name, a folder, a manifest, or an executable; profile `ci` unless another is
    /// named
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(super) workload: String,
    /// Persistency scheme, by name or file. Of kernels: agpm, nvw-fifo, light-wsp, or a file that starts from
    /// one of these. Of programs of CPUs any of theirs [default: base; of clients broi]
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCompleter::new(names::schemes))]
    pub(super) scheme: Option<String>,
    #[command(flatten)]
    pub(super) subject: Subject,
    /// Threads: 0 for one a core, 1 for the sequential driver; results never depend on it
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = jobs)]
    pub(super) threads: usize,
    /// Write all of it as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Draw threshold, CWPPR and way over AGPM's periods as SVG, with the data as CSV beside it (NAME.svg,
    /// NAME.csv)
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// No progress and no table
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct RegionsArgs {
    /// A .ptx file, or a workload, which is also run: a built-in name, a folder, or a manifest
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(super) subject: String,
    /// Machine of a RISC-V program: it says how many harts there are; lightwsp-cpu unless another is named
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCompleter::new(names::machines))]
    pub(super) machine: Option<String>,
    /// Only this kernel, or this function of a RISC-V program, with all of its boundaries
    #[arg(long, visible_alias = "function", value_name = "NAME")]
    pub(super) kernel: Option<String>,
    /// Size of the problem: a profile of the workload; `ci` unless another is named
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Option<String>,
    /// Most stores of a lane in a region, in words of 8 bytes; half the write pending queue
    #[arg(long, value_name = "N", default_value_t = RegionOptions::default().threshold_stores)]
    pub(super) threshold: u32,
    /// Most copies of an unrolled loop's body
    #[arg(long, value_name = "N", default_value_t = RegionOptions::default().unroll_factor)]
    pub(super) unroll_factor: u32,
    /// Unroll no loop
    #[arg(long)]
    pub(super) no_unroll: bool,
    /// Unroll only loops whose number of turns is known
    #[arg(long)]
    pub(super) no_speculative_unroll: bool,
    /// Checkpoint registers that could be computed too
    #[arg(long)]
    pub(super) no_prune: bool,
    /// Checkpoint registers that all lanes of a warp share the value of once a warp, not once a lane
    #[arg(long)]
    pub(super) uniform_once: bool,
    /// Boundaries before fences, barriers and atomics only, as published, not behind them too
    #[arg(long)]
    pub(super) paper_sync: bool,
    /// No shadows of shared and local memory, no counts of barriers: kernels with them cannot be resumed in
    /// their middle
    #[arg(long)]
    pub(super) global_only: bool,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// No table
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReproduceArgs {
    /// Paper (`durawarp list papers`)
    #[arg(add = ArgValueCompleter::new(names::papers))]
    pub(super) paper: String,
    /// Figures and tables (`durawarp list papers`), or all
    #[arg(long, value_delimiter = ',', default_value = "all", value_name = "NAME,...")]
    pub(super) figure: Vec<String>,
    /// Kernels as the paper names them (ATAX1, 2MM1, ...); none for all
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(super) kernels: Vec<String>,
    /// Folder of manifests of programs of CPUs, which figures of cores show as a group of their own
    #[arg(long, value_name = "DIR")]
    pub(super) programs: Option<PathBuf>,
    /// Size of the problems: ci (seconds), paper (hours for all figures) or default
    #[arg(long, default_value = "paper", value_name = "NAME")]
    pub(super) profile: String,
    /// Machine: a built-in name or a .toml file; the paper's by default
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCompleter::new(names::machines))]
    pub(super) machine: Option<String>,
    /// Change a parameter of the machine, or of a scheme (SCHEME.KEY=VALUE); repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Leave out the other readings of what the paper says of its memory
    #[arg(long)]
    pub(super) no_readings: bool,
    /// Exit code 1 when an ask is not met under the paper's own reading
    #[arg(long)]
    pub(super) strict: bool,
    /// Undo logging: with the barrier behind the flag (safe) or without, as published (paper); the paper's by
    /// default
    #[arg(long, value_name = "safe|paper")]
    pub(super) flag_barrier: Option<FlagBarrier>,
    /// Undo logging: log every update, or only the first (true or false); the paper's by default
    #[arg(long, value_name = "BOOL")]
    pub(super) loop_log: Option<bool>,
    /// Undo logging: after an update, load again what a thread uses of it (true or false); the paper's by
    /// default
    #[arg(long, value_name = "BOOL")]
    pub(super) reload: Option<bool>,
    /// Seed of every random content
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) work: Work,
    /// Folder of results, as of sweeps: what is there is not run again
    #[arg(long, default_value = RESULTS, value_name = "DIR")]
    pub(super) results: PathBuf,
    /// Run everything and keep no results
    #[arg(long, conflicts_with = "results")]
    pub(super) no_store: bool,
    /// Write tables, verdicts and a page into a folder
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// No progress and no tables
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// Write the tables into a folder, as devices.csv and limits.csv
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// No tables
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct SensitivityArgs {
    /// Machine: a built-in name or a .toml file
    #[arg(default_value = DEFAULT_MACHINE, value_name = "MACHINE", add = ArgValueCompleter::new(names::machines))]
    pub(super) machine: String,
    /// Workloads: built-in names, folders or manifests; none for all that are built in
    #[arg(long, value_delimiter = ',', value_name = "NAME,...",
          add = ArgValueCompleter::new(names::workloads))]
    pub(super) workloads: Vec<String>,
    #[command(flatten)]
    pub(super) scheme: OneScheme,
    /// Change a parameter of the machine, around which others are varied, or of a scheme (SCHEME.KEY=VALUE);
    /// repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Only these parameters, with or without a source (l2.ways,dram.t_cl_ns)
    #[arg(long, value_delimiter = ',', value_name = "KEY,...", conflicts_with = "all")]
    pub(super) keys: Vec<String>,
    /// Every number, also those with a source
    #[arg(long)]
    pub(super) all: bool,
    /// Size of the problems, of workloads that have it
    #[arg(long, default_value = "ci", value_name = "NAME")]
    pub(super) profile: String,
    /// Seed of every random content
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) work: Work,
    /// Keep results in this folder, as sweeps do, and take those that are there; nothing is kept unless it is
    /// named
    #[arg(long, value_name = "DIR")]
    pub(super) results: Option<PathBuf>,
    /// Write every run, a row a parameter, factor and workload
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// No progress and no table
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// A run: a file of `run --json`
    pub(super) one: PathBuf,
    /// Another
    pub(super) other: PathBuf,
    /// Write the differences as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct BisectArgs {
    /// A run: a workload, or a file of `run --json` (.json), whose run is repeated
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(super) first: String,
    /// Another; the same one, with --other, unless named
    pub(super) second: Option<String>,
    /// Change something of the second run: a parameter (l2.slice_kb=256), or machine, scheme, profile, seed
    /// (scheme=strict); repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) other: Vec<String>,
    #[command(flatten)]
    pub(super) scheme: OneScheme,
    #[command(flatten)]
    pub(super) subject: Subject,
    /// Length of an epoch in core cycles of the first run
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) epoch_cycles: u64,
    /// Stop every run after so many core cycles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_cycles: Option<u64>,
    /// Write what the run did, epoch by epoch, for a comparison with another version of this program
    #[arg(long, value_name = "FILE", conflicts_with_all = ["second", "other"])]
    pub(super) save: Option<PathBuf>,
    /// Keep the events of this epoch in that file, too
    #[arg(long, value_name = "N", requires = "save")]
    pub(super) epoch: Option<u64>,
    /// Compare the run with that of such a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["second", "other", "epoch_cycles"])]
    pub(super) against: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub(super) what: Listed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Listed {
    Workloads,
    Litmus,
    Machines,
    Schemes,
    Papers,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a machine or a scheme as a file of its kind: every parameter with its source
    Show(ConfigShowArgs),
    /// Check machine, scheme and device files: all faults at once
    Check(ConfigCheckArgs),
    /// Compare two machines or two schemes by what they resolve to, value by value; exit code 1 when they
    /// differ
    Diff(ConfigDiffArgs),
    /// Tell what a parameter is: meaning, unit, values, and its value and source where it is
    Explain(ConfigExplainArgs),
    /// Print the whole table of a memory device: organisation, timing, commands, least times between them
    Device(ConfigDeviceArgs),
    /// Print a machine file made of the configuration files of GPGPU-Sim (gpgpusim.config) and Accel-Sim
    /// (trace.config); options without a counterpart are named in it
    Import(ConfigImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct ConfigImportArgs {
    /// gpgpusim.config, and perhaps trace.config, whose latencies then count
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Name of the machine
    #[arg(long, default_value = "imported")]
    pub(super) name: String,
}

#[derive(Debug, Args)]
pub(super) struct ConfigDiffArgs {
    /// Machine or scheme: a built-in name or a .toml file
    #[arg(add = ArgValueCompleter::new(names::configurations))]
    pub(super) one: String,
    /// Another of its kind
    #[arg(add = ArgValueCompleter::new(names::configurations))]
    pub(super) other: String,
    /// Change a parameter of the second; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ConfigExplainArgs {
    /// A parameter (l2.slice_kb, agpm.threshold_logs), or a table (l2, agpm) for all that it has
    pub(super) key: String,
    /// Machines and schemes whose values to tell: built-in names or .toml files; none for all that are built
    /// in
    #[arg(add = ArgValueCompleter::new(names::configurations))]
    pub(super) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ConfigDeviceArgs {
    /// Device: a built-in name or a .toml file; `durawarp config explain dram.device` lists the built-in ones
    #[arg(add = ArgValueCompleter::new(names::devices))]
    pub(super) name: String,
    /// One of its speeds; the first of its file if none is named
    #[arg(long, default_value = "")]
    pub(super) bin: String,
    /// One of its sizes; the first of its file if none is named
    #[arg(long, default_value = "")]
    pub(super) density: String,
    /// Timings that are others: "RFC = 295ns, FAW = 20"
    #[arg(long, value_name = "NAME=VALUE,..", default_value = "")]
    pub(super) timing: String,
    /// Ranks of a channel
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) ranks: u32,
}

#[derive(Debug, Args)]
pub(super) struct ConfigShowArgs {
    /// Machine or scheme: a built-in name or a .toml file
    #[arg(default_value = DEFAULT_MACHINE, add = ArgValueCompleter::new(names::configurations))]
    pub(super) name: String,
    /// Change a parameter; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ConfigCheckArgs {
    /// Machines and schemes, by built-in names or .toml files, and .toml files of memory devices; none for
    /// all machines and schemes that are built in
    #[arg(add = ArgValueCompleter::new(names::configurations))]
    pub(super) names: Vec<String>,
    /// Change a parameter; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum PtxCommand {
    /// Parse and lower PTX files: list kernels, and every construct that is not supported
    Check(PtxCheckArgs),
    /// Print a workload's PTX with the undo logging that its [instrument] asks for
    Instrument(InstrumentArgs),
}

#[derive(Debug, Args)]
pub(super) struct InstrumentArgs {
    /// Workload: a built-in name or a path of a folder
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(super) workload: String,
    /// Profile of the workload: the text holds its sizes
    #[arg(long)]
    pub(super) profile: Option<String>,
    /// cta_undo, kernel_undo or idempotent_cta instead of the manifest's mode
    #[arg(long)]
    pub(super) mode: Option<Mode>,
    /// safe or paper: whether a CTA waits until its flag is durable
    #[arg(long)]
    pub(super) flag_barrier: Option<FlagBarrier>,
    /// true or false: whether every update is logged
    #[arg(long)]
    pub(super) loop_log: Option<bool>,
    /// true or false: whether a thread loads again what it uses of an update
    #[arg(long)]
    pub(super) reload: Option<bool>,
}

#[derive(Debug, Args)]
pub(super) struct PtxCheckArgs {
    /// PTX files
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
}

/// The words of the command line, to be shown: a path need not be UTF-8.
pub(super) fn typed() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
