//! The runs that AGPM's figures need.

use super::super::{Request, Run};
use super::kernels::{self, PaperKernel};

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
    set: [&'static str; 3],
}

/// Parameters of every reading: Table II is taken under store+clwb, over whole kernels.
const OBSERVED: [&str; 8] = [
    "agpm.path=temporal",
    "agpm.statistics=hits",
    "agpm.threshold_rule=fixed",
    "agpm.threshold_logs=1000000000",
    "agpm.least_threshold_logs=1000000000",
    "agpm.l1_buffers=each",
    "agpm.entries=1048576",
    "agpm.placement=associative",
];

/// Readings of Table II's localities, the specification's default first.
pub const READINGS: [Reading; 4] = [
    Reading {
        name: "home",
        meaning: "log updates by the address of the element they save; all stores to persistent memory are log updates",
        set: ["agpm.key=home", "agpm.counted=requests", "agpm.hit=shadow"],
    },
    Reading {
        name: "home, logs alone",
        meaning: "the same, but stores of data are no log updates",
        set: ["agpm.key=home", "agpm.counted=log_updates", "agpm.hit=shadow"],
    },
    Reading {
        name: "own address",
        meaning: "every store to persistent memory is a log update, by its own address",
        set: ["agpm.key=slot", "agpm.counted=requests", "agpm.hit=shadow"],
    },
    Reading {
        name: "own address, in the cache",
        meaning: "the same, and what does not hit in the cache of that level does not count",
        set: ["agpm.key=slot", "agpm.counted=requests", "agpm.hit=cache"],
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
    let set = OBSERVED.iter().chain(&reading.set).copied();
    Run::new(kernel.workload, "agpm").with(&format!("counting {}", reading.name), set)
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
