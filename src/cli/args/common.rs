//! Arguments that several commands have: what is simulated, under which scheme, how many runs at a time.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use durawarp::workload::{FlagBarrier, KernelChoice, Mode};

use crate::cli::names;

/// Most threads, and most jobs, that can be asked for.
const MOST_JOBS: usize = 4096;

/// The folder of results when none is named.
pub(crate) const RESULTS: &str = "durawarp-results";

/// What is simulated.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// Machine: a built-in name or a .toml file; agpm-table4 unless another is named, for RISC-V programs
    /// lightwsp-cpu, for workloads of clients broi-cluster
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCompleter::new(names::machines))]
    pub(crate) machine: Option<String>,
    /// Change a parameter of the machine (l2.slice_kb=256, dram.t_cl_ns=20), of a scheme (SCHEME.KEY=VALUE)
    /// or of the workload (params.n=4096); repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Size of the problem: a profile of the workload
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Fill a buffer from a file, raw little-endian or .npy; repeatable
    #[arg(long, value_name = "BUFFER=FILE")]
    pub(crate) input: Vec<String>,
    /// Undo logging: with the barrier behind the flag (safe) or without, as published (paper); the manifest's
    /// by default
    #[arg(long, value_name = "safe|paper")]
    pub(crate) flag_barrier: Option<FlagBarrier>,
    /// Undo logging: log every update, not only the first (true or false); the manifest's by default
    #[arg(long, value_name = "BOOL")]
    pub(crate) loop_log: Option<bool>,
    /// Undo logging: after an update, load again what a thread uses of it (true or false); the manifest's by
    /// default
    #[arg(long, value_name = "BOOL")]
    pub(crate) reload: Option<bool>,
    /// Undo logging: another mode than the manifest's (cta_undo, kernel_undo, idempotent_cta, none)
    #[arg(long, value_name = "MODE")]
    pub(crate) instrument: Option<Mode>,
    /// Undo logging as `reproduce PAPER` has it (agpm: every update, no barrier behind the flag); the options
    /// above come first
    #[arg(long, value_name = "PAPER", add = ArgValueCompleter::new(names::papers))]
    pub(crate) program: Option<String>,
    /// Of a trace: kernels to run, by number, range or a regular expression of their mangled names:
    /// 3,5-8,@gemm
    #[arg(long, value_name = "LIST")]
    pub(crate) kernels: Option<KernelChoice>,
    /// Of a trace: a .toml file that says which known opcode another is timed as: VIMNMX3 = "VIMNMX"
    #[arg(long, value_name = "FILE")]
    pub(crate) opcodes: Option<PathBuf>,
    /// Every buffer in persistent memory, as under schemes of recoverable regions: for comparisons with them
    #[arg(long)]
    pub(crate) persistent: bool,
    /// Seed of every random content
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
    /// Arguments of a RISC-V program, after those of its manifest
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) program_args: Vec<String>,
}

/// Under which persistency scheme.
#[derive(Debug, Args)]
pub(crate) struct OneScheme {
    /// Persistency scheme: a name (`durawarp list schemes`) or a .toml file [default: base; of clients broi]
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCompleter::new(names::schemes))]
    pub(crate) scheme: Option<String>,
}

/// How many runs go on at a time.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// Runs at a time, one thread each while there are enough: 0 for one a core; results never depend on it
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: usize,
    /// Threads of a point that starts when fewer points than jobs are left; results never depend on it
    #[arg(long, value_enum, default_value_t = PointThreads::Share, value_name = "share|auto")]
    pub(crate) threads: PointThreads,
    /// Memory that they may need together, as estimated; what the host has available unless named
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    pub(crate) memory_gib: Option<u64>,
}

/// What a point takes of the cores that no other point needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PointThreads {
    /// Its share of them
    Share,
    /// As many of its share as are predicted to pay, from the first part of its run
    Auto,
}

/// Threads of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threads {
    /// 0 for one a core.
    pub(crate) most: usize,
    /// Choose how many of these.
    pub(crate) auto: bool,
}

pub(crate) fn threads(text: &str) -> Result<Threads, String> {
    if text == "auto" {
        return Ok(Threads { most: 0, auto: true });
    }
    let most = jobs(text).map_err(|expected| format!("{expected}, or auto"))?;
    Ok(Threads { most, auto: false })
}

pub(crate) fn jobs(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|jobs| *jobs <= MOST_JOBS)
        .ok_or_else(|| format!("expected a number from 0 to {MOST_JOBS}"))
}
