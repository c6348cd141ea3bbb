//! The runs that the figures need: programs under `base` in memory mode and under a scheme, and what is
//! changed about them.
//!
//! At profile `ci` the figures that vary a parameter have one program of each suite. Sizes of queues and
//! bandwidths are the paper's; the thresholds beside 32 are not in its text, they are ours. For 16 threads
//! and more `reserve` has its contended input, as the paper's `vacation`. Cores are as many as threads: the
//! paper does not say on what its 16 to 64 threads ran.

use crate::papers::{Request, Run};

/// What to know when reading any figure.
pub(super) const LABEL: &str =
    "RV64 programs of ours where the paper ran x86 binaries; `base` is the paper's memory mode";

/// The scheme.
pub const SCHEME: &str = "light-wsp";
/// What times are over.
pub const BASE: &str = "base";
/// The programs, in the place of the paper's 38: five of one thread first.
pub const PROGRAMS: [&str; 12] =
    ["qsim", "netflow", "lattice", "viterbi", "lzpack", "cg", "is", "mg", "radix", "ocean", "reserve", "kvlog"];
/// Those of one thread.
const SINGLE: usize = 5;
/// Those that stand for NPB, which cWSP's authors did not run.
const NPB: [&str; 3] = ["cg", "is", "mg"];
/// One of each suite: CPU2006, CPU2017, NPB, SPLASH3, STAMP, WHISPER.
const OF_EACH_SUITE: [&str; 6] = ["qsim", "lattice", "cg", "radix", "reserve", "kvlog"];
/// Of those with threads, what is run at profile `ci`.
const FEW_WITH_THREADS: [&str; 3] = ["is", "radix", "reserve"];
/// The profile of smallest sizes.
const SMALL: &str = "ci";
/// Entries of the WPQ, Fig. 11.
pub(crate) const WPQS: [u32; 3] = [64, 128, 256];
/// Stores of a region, Fig. 12: half of the WPQ's 64 entries is the paper's.
const THRESHOLDS: [u32; 5] = [8, 16, 32, 48, 64];
/// Policies of Fig. 13, and the loads that Fig. 6 shows to be stale.
pub(crate) const VICTIMS: [&str; 3] = ["full", "half", "zero"];
pub(crate) const STALE: &str = "stale";
/// MB/s of a core's persist path, Fig. 15.
const BANDWIDTHS: [u32; 3] = [1000, 2000, 4000];
/// Threads of Fig. 16.
pub(crate) const THREADS: [u32; 4] = [8, 16, 32, 64];
/// Machines of Fig. 17.
const MEMORIES: [&str; 4] = ["cxl-i-cpu", "cxl-ii-cpu", "cxl-iii-cpu", "cxl-pmem-cpu"];

/// A bar of a figure: how a program is run for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// What it is called.
    pub name: String,
    pub scheme: &'static str,
    /// Machine, where that is not the request's.
    pub machine: Option<&'static str>,
    /// Threads of a program, and cores; as the machine and the manifest say, where there is no number.
    pub threads: Option<u32>,
    /// Changes of the scheme.
    pub of_scheme: Vec<String>,
}

impl Variant {
    /// A scheme as it is.
    pub fn of(scheme: &'static str, name: &str) -> Self {
        Variant { name: name.to_owned(), scheme, machine: None, threads: None, of_scheme: Vec::new() }
    }

    /// The paper's scheme with keys of it changed.
    fn changed(name: String, keys: &[(&str, String)]) -> Self {
        let set = keys.iter().map(|(key, value)| format!("light_wsp.{key}={value}"));
        Variant { of_scheme: set.collect(), name, ..Variant::of(SCHEME, "") }
    }

    fn run_under(&self, program: &'static str, scheme: &'static str, own: &[String]) -> Run {
        let mut set = Vec::new();
        if let Some(threads) = self.threads {
            set.extend([format!("core.count={threads}"), format!("params.THREADS={threads}")]);
            if program == "reserve" && threads > THREADS[0] {
                set.push("params.CONTENTION=1".to_owned());
            }
        }
        set.extend_from_slice(own);
        let run = Run { machine: self.machine, in_nvm: true, ..Run::new(program, scheme) };
        if set.is_empty() { run } else { run.with(&self.name, set.iter().map(String::as_str)) }
    }

    /// A program under the scheme.
    pub fn run(&self, program: &'static str) -> Run {
        self.run_under(program, self.scheme, &self.of_scheme)
    }

    /// What that is compared with.
    pub fn base(&self, program: &'static str) -> Run {
        self.run_under(program, BASE, &[])
    }
}

/// Thousands of instructions of a program at its profile `paper`, as its manifest tells.
pub fn work(workload: &str) -> Option<u64> {
    const THOUSANDS: [u64; 12] =
        [341_314, 348_794, 151_977, 120_085, 159_881, 197_445, 141_305, 279_582, 119_855, 416_927, 208_324, 118_326];
    PROGRAMS.iter().position(|program| *program == workload).map(|at| THOUSANDS[at])
}

/// The scheme as it is.
pub fn default() -> Variant {
    Variant::of(SCHEME, SCHEME)
}

/// Fig. 7: the paper's three, Capri with its own bandwidth, and `commit = pipelined`, which is ours.
pub fn by_system() -> Vec<Variant> {
    let fast = Variant { of_scheme: vec!["capri.path_mb_s=32000".to_owned()], ..Variant::of("capri", CAPRI_FAST) };
    vec![Variant::of("capri", "Capri"), Variant::of("ppa", "PPA"), default(), fast, pipelined()]
}

/// The scheme without flush-ACKs.
pub fn pipelined() -> Variant {
    Variant::changed(PIPELINED.to_owned(), &[("commit", "pipelined".to_owned())])
}

/// Fig. 7 for programs of others: its systems, and cWSP, which the paper has in a figure of its own.
pub(super) fn by_system_of_others() -> Vec<Variant> {
    let mut variants = by_system();
    variants.extend(by_speculation().into_iter().take(1));
    variants
}

/// Capri with the bandwidth of its own paper.
pub(crate) const CAPRI_FAST: &str = "Capri at 32 GB/s";
/// LightWSP whose controllers go on without flush-ACKs.
pub(crate) const PIPELINED: &str = "light-wsp pipelined (ours)";

/// Fig. 8.
pub fn by_efficiency() -> Vec<Variant> {
    vec![Variant::of("ppa", "PPA"), default()]
}

/// Fig. 9.
pub fn by_ideal() -> Vec<Variant> {
    vec![Variant::of("psp-ideal", "ideal PSP"), default()]
}

/// Fig. 10.
pub fn by_speculation() -> Vec<Variant> {
    vec![Variant::of("cwsp", "cWSP"), default()]
}

/// Fig. 11: of each size half as threshold and as many entries in the front-end buffer.
pub fn by_queue() -> Vec<Variant> {
    let of = |entries: u32| {
        let [size, half] = [entries, entries / 2].map(|value| value.to_string());
        let keys = [("wpq_entries", size.clone()), ("feb_entries", size), ("threshold_stores", half)];
        Variant::changed(format!("WPQ {entries}"), &keys)
    };
    WPQS.into_iter().map(of).collect()
}

/// Fig. 12.
pub fn by_threshold() -> Vec<Variant> {
    let of = |stores: u32| Variant::changed(format!("threshold {stores}"), &[("threshold_stores", stores.to_string())]);
    THRESHOLDS.into_iter().map(of).collect()
}

/// A policy of victims of the L1s, as published.
pub fn with_victims(policy: &str) -> Variant {
    let keys = [("snoop", "feb".to_owned()), ("victims", policy.to_owned())];
    Variant::changed(format!("victims {policy}"), &keys)
}

/// Fig. 13.
pub fn by_victim() -> Vec<Variant> {
    VICTIMS.into_iter().map(with_victims).collect()
}

/// Fig. 15.
pub fn by_bandwidth() -> Vec<Variant> {
    let of = |mb_s: u32| Variant::changed(format!("path {} GB/s", mb_s / 1000), &[("path_mb_s", mb_s.to_string())]);
    BANDWIDTHS.into_iter().map(of).collect()
}

/// Fig. 16.
pub fn by_threads() -> Vec<Variant> {
    THREADS.into_iter().map(|threads| with_threads(threads, WPQS[0])).collect()
}

fn with_threads(threads: u32, wpq_entries: u32) -> Variant {
    let name = if wpq_entries == WPQS[0] { format!("{threads} threads") } else { format!("WPQ {wpq_entries}") };
    Variant { threads: Some(threads), ..Variant::changed(name, &[("wpq_entries", wpq_entries.to_string())]) }
}

/// The most threads with each size of the WPQ, all else as it is.
pub fn overflowing() -> Vec<Variant> {
    WPQS.into_iter().map(|entries| with_threads(THREADS[THREADS.len() - 1], entries)).collect()
}

/// Fig. 17.
pub fn by_memory() -> Vec<Variant> {
    MEMORIES.into_iter().map(|machine| Variant { machine: Some(machine), ..Variant::of(SCHEME, machine) }).collect()
}

/// Programs that are wanted.
pub(super) fn programs(request: &Request) -> Vec<&'static str> {
    request.kernels.clone()
}

/// Those that figures of one parameter have: at profile `ci` one of each suite, unless programs are named.
pub fn few(request: &Request) -> Vec<&'static str> {
    let all = request.kernels.len() == PROGRAMS.len();
    if all && request.profile == SMALL { OF_EACH_SUITE.to_vec() } else { programs(request) }
}

/// Those with threads.
pub fn threaded(request: &Request) -> Vec<&'static str> {
    let all = request.kernels.len() == PROGRAMS.len();
    let names: &[&str] = if all && request.profile == SMALL { &FEW_WITH_THREADS } else { &PROGRAMS[SINGLE..] };
    names.iter().copied().filter(|name| request.kernels.contains(name)).collect()
}

/// Those that stand for no program of NPB.
pub fn without_npb(request: &Request) -> Vec<&'static str> {
    request.kernels.iter().copied().filter(|name| !NPB.contains(name)).collect()
}

fn runs_of(programs: &[&'static str], variants: &[Variant]) -> Vec<Run> {
    let of = |&program: &&'static str| variants.iter().flat_map(move |of| [of.base(program), of.run(program)]);
    programs.iter().flat_map(of).collect()
}

/// What needs no run of the machine.
pub(super) fn none(_: &Request) -> Vec<Run> {
    Vec::new()
}

/// The scheme as it is.
pub(super) fn defaults(request: &Request) -> Vec<Run> {
    runs_of(&programs(request), &[default()])
}

/// What bounds of the protocol are beside.
pub(super) fn limited(request: &Request) -> Vec<Run> {
    runs_of(&programs(request), &[default(), pipelined()])
}

/// Fig. 7.
pub(super) fn systems(request: &Request) -> Vec<Run> {
    let mut runs = runs_of(&programs(request), &by_system());
    runs.extend(runs_of(&request.programs, &by_system_of_others()));
    runs
}

/// Fig. 8.
pub(super) fn efficiency(request: &Request) -> Vec<Run> {
    runs_of(&programs(request), &by_efficiency())
}

/// Fig. 9: which programs are memory-intensive follows from their runs.
pub(super) fn ideal(request: &Request) -> Vec<Run> {
    runs_of(&programs(request), &by_ideal())
}

/// Fig. 10.
pub(super) fn speculative(request: &Request) -> Vec<Run> {
    runs_of(&without_npb(request), &by_speculation())
}

/// Fig. 11.
pub(super) fn queues(request: &Request) -> Vec<Run> {
    runs_of(&few(request), &by_queue())
}

/// Fig. 12.
pub(super) fn thresholds(request: &Request) -> Vec<Run> {
    runs_of(&few(request), &by_threshold())
}

/// Fig. 13.
pub(super) fn victims(request: &Request) -> Vec<Run> {
    runs_of(&few(request), &by_victim())
}

/// Table II: the policy that searches most.
pub(super) fn searched(request: &Request) -> Vec<Run> {
    few(request).into_iter().map(|program| with_victims(VICTIMS[0]).run(program)).collect()
}

/// Fig. 14.
pub(super) fn misses(request: &Request) -> Vec<Run> {
    let variants = VICTIMS.into_iter().chain([STALE]).map(with_victims);
    let of = |variant: Variant| few(request).into_iter().map(move |program| variant.run(program));
    variants.flat_map(of).collect()
}

/// Fig. 15.
pub(super) fn bandwidths(request: &Request) -> Vec<Run> {
    runs_of(&few(request), &by_bandwidth())
}

/// Fig. 16.
pub(super) fn threads(request: &Request) -> Vec<Run> {
    let programs = threaded(request);
    let mut runs = runs_of(&programs, &by_threads());
    runs.extend(overflowing().iter().flat_map(|of| programs.iter().map(|program| of.run(program))));
    runs
}

/// Fig. 17.
pub(super) fn memories(request: &Request) -> Vec<Run> {
    runs_of(&few(request), &by_memory())
}
