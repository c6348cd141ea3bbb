//! The runs that LightWSP's figures need: kernels under `base` and under `light-wsp`, and what is changed
//! about them.
//!
//! Thresholds and bandwidths are multiples of the scheme's own, as the paper's are of its 32 stores and 4
//! GB/s. Sizes of the gated WPQ are the paper's 64, 128 and 256 entries, then doubled up to the scheme's own.

use crate::papers::agpm;
use crate::papers::{Request, Run};
use durawarp_simulation::config::SchemeConfig;

/// The scheme.
pub const SCHEME: &str = "light-wsp";
/// What it is compared with.
pub const BASE: &str = "base";
/// The workloads, in the place of the paper's 38 programs: ours with a profile `paper`, of up to 256 threads
/// a CTA, so that an SM of 8 warps holds one.
pub const KERNELS: [&str; 13] = [
    "atax",
    "backprop",
    "bfs",
    "conv2d",
    "gemm",
    "gesummv",
    "mvt",
    "nw",
    "pathfinder",
    "ra",
    "sssp",
    "stencil",
    "stream_triad",
];
/// Entries of the gated WPQ in Fig. 11.
pub(crate) const PAPER_WPQS: [u64; 3] = [64, 128, 256];
/// Bytes of the paper's 64 entries of 8 bytes each (section IV-E).
const PAPER_WPQ_BYTES: u64 = 512;
/// Thresholds of Fig. 12 as fourths of the scheme's: 8, 16, 32, 48 and 64 of 32. The paper's are not in its
/// text; these are ours.
const FOURTHS: [u64; 5] = [1, 2, 4, 6, 8];
/// Policies of Fig. 13.
const VICTIMS: [&str; 3] = ["full", "half", "zero"];
/// Divisors of the path's bandwidth in Fig. 15: 1, 2 and 4 GB/s.
const DIVISORS: [u64; 3] = [4, 2, 1];
/// Warps of an SM in Fig. 16; the paper's threads of 8 cores.
const WARPS: [u32; 4] = [8, 16, 32, 64];
/// Memories of Fig. 17.
const MEMORIES: [&str; 4] = ["cxl-i", "cxl-ii", "cxl-iii", "cxl-pmem"];

/// A bar of a figure: how a kernel is run for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Variant {
    /// What it is called.
    pub name: String,
    /// Machine, where that is not the request's.
    pub machine: Option<&'static str>,
    /// Changes of the machine, under `base` too.
    pub of_machine: Vec<String>,
    /// Changes of the scheme.
    pub of_scheme: Vec<String>,
}

impl Variant {
    fn named(name: impl Into<String>) -> Self {
        Variant { name: name.into(), ..Variant::default() }
    }

    fn run_under(&self, kernel: &'static str, scheme: &'static str) -> Run {
        let run = Run { machine: self.machine, in_nvm: true, ..Run::new(kernel, scheme) };
        let own = if scheme == SCHEME { &self.of_scheme[..] } else { &[] };
        let set: Vec<&str> = self.of_machine.iter().chain(own).map(String::as_str).collect();
        if set.is_empty() { run } else { run.with(&self.name, set) }
    }

    /// A kernel under the scheme.
    pub fn run(&self, kernel: &'static str) -> Run {
        self.run_under(kernel, SCHEME)
    }

    /// What that is compared with.
    pub fn base(&self, kernel: &'static str) -> Run {
        self.run_under(kernel, BASE)
    }
}

/// Thousands of warp instructions of a workload at its profile `paper`.
pub fn work(workload: &str) -> Option<u64> {
    agpm::kernels::work(workload)
}

/// The scheme as the request has it; none where it is not in the catalogue. What is wrong with changes is a
/// fault of the plan.
pub fn scheme(request: &Request) -> Option<SchemeConfig> {
    SchemeConfig::load(SCHEME, &request.scheme_set).ok()
}

/// Values of the scheme's parameters; none where there is no such scheme.
pub fn parameters<const N: usize>(request: &Request, names: [&str; N]) -> Option<[u64; N]> {
    let scheme = scheme(request)?;
    let values = names.map(|name| scheme.values.get(&format!("{}.{name}", scheme.table())).and_then(|v| v.as_u64()));
    values.iter().all(Option::is_some).then(|| values.map(Option::unwrap_or_default))
}

fn set(name: &str, value: impl std::fmt::Display) -> String {
    format!("light_wsp.{name}={value}")
}

/// The scheme as it is.
pub fn default() -> Variant {
    Variant::named(SCHEME)
}

/// Entries of the gated WPQ: the paper's, then doubled while they are fewer than the scheme's own, then
/// these.
fn wpqs(own: u64) -> Vec<u64> {
    let doubled = std::iter::successors(PAPER_WPQS.last().copied(), |entries| Some(entries * 2)).skip(1);
    let ours = doubled.take_while(|&entries| entries < own).chain([own]).filter(|own| !PAPER_WPQS.contains(own));
    PAPER_WPQS.into_iter().chain(ours).collect()
}

/// Fig. 11: of each size of the gated WPQ half as threshold and as many entries in the front-end buffer, as
/// in the paper; last the scheme as it is.
pub fn by_queue(request: &Request) -> Vec<Variant> {
    let Some([own, threshold]) = parameters(request, ["wpq_entries", "threshold_stores"]) else { return Vec::new() };
    let of = |entries: u64| Variant {
        of_scheme: vec![
            set("wpq_entries", entries),
            set("feb_entries", entries),
            set("threshold_stores", (entries / 2).max(2)),
        ],
        ..Variant::named(format!("WPQ {entries}, threshold {}", (entries / 2).max(2)))
    };
    let as_it_is = Variant::named(format!("WPQ {own}, threshold {threshold}, as it is"));
    wpqs(own).into_iter().map(of).chain([as_it_is]).collect()
}

/// Fig. 12.
pub fn by_threshold(request: &Request) -> Vec<Variant> {
    let Some([threshold]) = parameters(request, ["threshold_stores"]) else { return Vec::new() };
    let of = |fourths| {
        let stores = threshold * fourths / 4;
        Variant { of_scheme: vec![set("threshold_stores", stores)], ..Variant::named(format!("threshold {stores}")) }
    };
    FOURTHS.into_iter().map(of).collect()
}

/// Fig. 13.
pub fn by_victim() -> Vec<Variant> {
    let of =
        |policy| Variant { of_scheme: vec![set("victims", policy)], ..Variant::named(format!("victims {policy}")) };
    VICTIMS.into_iter().map(of).collect()
}

/// Fig. 15.
pub fn by_bandwidth(request: &Request) -> Vec<Variant> {
    let Some([mb_s]) = parameters(request, ["path_mb_s"]) else { return Vec::new() };
    let of = |divisor| {
        let mb_s = mb_s / divisor;
        Variant { of_scheme: vec![set("path_mb_s", mb_s)], ..Variant::named(format!("path {mb_s} MB/s")) }
    };
    DIVISORS.into_iter().map(of).collect()
}

fn with_warps(warps: u32) -> Variant {
    Variant {
        of_machine: vec![format!("sm.warps={warps}"), format!("sm.threads={}", warps * 32)],
        ..Variant::named(format!("{warps} warps"))
    }
}

fn with_queue(of: Variant, entries: u64) -> Variant {
    Variant { name: format!("{}, WPQ {entries}", of.name), of_scheme: vec![set("wpq_entries", entries)], ..of }
}

/// Fig. 16 as in the paper, with a gated WPQ of 64 entries.
pub fn by_warps() -> Vec<Variant> {
    WARPS.into_iter().map(|warps| with_queue(with_warps(warps), PAPER_WPQS[0])).collect()
}

/// The same with the scheme's own gated WPQ.
pub(crate) fn by_warps_as_it_is() -> Vec<Variant> {
    WARPS.into_iter().map(with_warps).collect()
}

/// Fig. 16's text: the most warps with each size of the gated WPQ, all else as it is; the first has the
/// paper's bytes, where that is an entry or more, and not the paper's entries.
pub fn overflowing(request: &Request) -> Vec<Variant> {
    let Some([own, bytes]) = parameters(request, ["wpq_entries", "entry_bytes"]) else { return Vec::new() };
    let few = Some(PAPER_WPQ_BYTES / bytes.max(1)).filter(|entries| (1..PAPER_WPQS[0]).contains(entries));
    let most = with_warps(WARPS[WARPS.len() - 1]);
    few.into_iter().chain(wpqs(own)).map(|entries| with_queue(most.clone(), entries)).collect()
}

/// Fig. 17.
pub fn by_memory() -> Vec<Variant> {
    MEMORIES.into_iter().map(|machine| Variant { machine: Some(machine), ..Variant::named(machine) }).collect()
}

fn runs_of(request: &Request, variants: &[Variant]) -> Vec<Run> {
    let of = |&kernel: &&'static str| variants.iter().flat_map(move |of| [of.base(kernel), of.run(kernel)]);
    request.kernels.iter().flat_map(of).collect()
}

/// What needs no run of the machine.
pub(super) fn none(_: &Request) -> Vec<Run> {
    Vec::new()
}

/// Figures 7 and 18, efficiency.
pub(super) fn defaults(request: &Request) -> Vec<Run> {
    runs_of(request, &[default()])
}

/// Fig. 11.
pub(super) fn queues(request: &Request) -> Vec<Run> {
    runs_of(request, &by_queue(request))
}

/// Fig. 12.
pub(super) fn thresholds(request: &Request) -> Vec<Run> {
    runs_of(request, &by_threshold(request))
}

/// Fig. 13.
pub(super) fn victims(request: &Request) -> Vec<Run> {
    runs_of(request, &by_victim())
}

/// Fig. 15.
pub(super) fn bandwidths(request: &Request) -> Vec<Run> {
    runs_of(request, &by_bandwidth(request))
}

/// Fig. 16.
pub(super) fn warps(request: &Request) -> Vec<Run> {
    let mut runs = runs_of(request, &[by_warps(), by_warps_as_it_is()].concat());
    let overflowing = overflowing(request);
    runs.extend(request.kernels.iter().flat_map(|kernel| overflowing.iter().map(|of| of.run(kernel))));
    runs
}

/// Fig. 17.
pub(super) fn memories(request: &Request) -> Vec<Run> {
    runs_of(request, &by_memory())
}
