//! The runs that AGPM's figures need.

use super::super::{Request, Run};
use super::kernels::{self, PaperKernel};
use durawarp_workload::Overrides;

/// The schemes of Fig. 7, `base` first.
pub const SCHEMES: [&str; 7] = ["base", "nt-store", "store+clwb", "themis", "pmem-spec", "bucl", "agpm"];

/// Those of Figures 3 and 5.
pub const STATIC: [&str; 3] = [SCHEMES[0], SCHEMES[1], SCHEMES[2]];

/// The scheme under which Fig. 4 and Table II count.
const COUNTED: &str = "store+clwb";

/// A way to count localities: AGPM's buffers count whole launches, every SM has one, and nothing is ever too
/// much for them; the readings differ in which address a log update is found by, what counts as one, and what
/// counts as a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What it is called.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// Parameters of `agpm`.
    set: &'static [&'static str],
    /// The program, where that is not the request's.
    program: Overrides,
}

/// The program of PACT'19: the log saves the values from before, the loop updates data, writes it back and
/// loads it again, as the assembly of `clwb` clobbers memory.
const OF_PACT: Overrides = Overrides { mode: None, flag_barrier: None, loop_log: Some(false), reload: Some(true) };

/// The same with values that stay in registers.
const KEEPING: Overrides = Overrides { reload: Some(false), ..OF_PACT };

/// The request's.
const OF_REQUEST: Overrides = Overrides { loop_log: None, reload: None, ..OF_PACT };

/// Parameters of every reading: Table II is taken under store+clwb, over whole kernels, by half-warps.
const OBSERVED: [&str; 9] = [
    "sm.coalescer=half_warp_legacy",
    "agpm.path=temporal",
    "agpm.statistics=hits",
    "agpm.threshold_rule=fixed",
    "agpm.threshold_logs=1000000000",
    "agpm.least_threshold_logs=1000000000",
    "agpm.l1_buffers=each",
    "agpm.entries=1048576",
    "agpm.placement=associative",
];

/// What the arithmetic of ATAX's rows fixes.
const ARITHMETIC: [&str; 7] = [
    "agpm.key=slot",
    "agpm.counted=requests",
    "agpm.hit=cache",
    "agpm.known=program",
    "agpm.temporal=transaction",
    "agpm.flags=untracked",
    "l1.fetch=line",
];

/// Readings of Table II's localities, the one that its arithmetic gives first.
pub const READINGS: [Reading; 3] = [
    Reading {
        name: "arithmetic",
        meaning: "stores to persistent memory by the addresses of their transactions, known to the program's end; hits \
                  in caches that fetch whole lines; flags and write-backs are none; the program of PACT'19, which \
                  loads again what it has updated",
        set: &ARITHMETIC,
        program: OF_PACT,
    },
    Reading {
        name: "values kept",
        meaning: "the same of a program that keeps in registers what it has updated",
        set: &ARITHMETIC,
        program: KEEPING,
    },
    Reading {
        name: "home",
        meaning: "as the selector counts by default: log updates by the address of the element they save; all stores \
                  to persistent memory are log updates, whatever the caches hold",
        set: &["agpm.key=home", "agpm.counted=requests", "agpm.hit=shadow"],
        program: OF_REQUEST,
    },
];

/// A kernel's workload under a scheme, for times and traffic.
pub fn timed(kernel: &PaperKernel, scheme: &'static str) -> Run {
    Run::new(kernel.workload, scheme)
}

/// A kernel's workload with line accesses counted by half-warps.
pub fn counted(kernel: &PaperKernel) -> Run {
    Run::new(kernel.workload, COUNTED).with("half-warps", ["sm.coalescer=half_warp_legacy"])
}

/// A kernel's workload with localities counted.
pub fn counting(kernel: &PaperKernel, reading: &Reading) -> Run {
    let set = OBSERVED.iter().chain(reading.set).copied();
    let run = Run::new(kernel.workload, "agpm").with(&format!("counting {}", reading.name), set);
    Run { instrument: reading.program, ..run }
}

fn under(request: &Request, schemes: &[&'static str]) -> Vec<Run> {
    kernels::of(request).flat_map(|kernel| schemes.iter().map(|scheme| timed(kernel, scheme))).collect()
}

/// What needs no run.
pub(super) fn none(_: &Request) -> Vec<Run> {
    Vec::new()
}

/// Figures 3 and 5.
pub(super) fn static_paths(request: &Request) -> Vec<Run> {
    under(request, &STATIC)
}

/// Figure 7.
pub(super) fn every_scheme(request: &Request) -> Vec<Run> {
    under(request, &SCHEMES)
}

/// The decisions of AGPM's selector.
pub(super) fn selected(request: &Request) -> Vec<Run> {
    under(request, &["agpm"])
}

/// Figure 4.
pub(super) fn accesses(request: &Request) -> Vec<Run> {
    kernels::of(request).map(counted).collect()
}

/// Table II.
pub(super) fn accesses_and_localities(request: &Request) -> Vec<Run> {
    let of = |kernel| READINGS.iter().map(move |reading| counting(kernel, reading));
    accesses(request).into_iter().chain(kernels::of(request).flat_map(of)).collect()
}
