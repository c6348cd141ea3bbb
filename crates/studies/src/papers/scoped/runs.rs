//! The runs that the figures of scoped persist barriers need: sizes of the tree, scopes, and what is changed.

use crate::papers::{Request, Run};
use durawarp_schemes::catalogue;
use durawarp_simulation::config::MachineConfig;

/// The workload, and its baseline in DRAM.
pub const WORKLOADS: [&str; 2] = ["bplus_tree", "bplus_tree_dram"];
/// The kernel that is timed.
pub const KERNEL: &str = "bplus_tree_insert";
/// The proposed implementation, and the alternative.
pub const SCHEMES: [&str; 2] = ["nvw-fifo", "epoch-tag"];
/// CTAs at profile `paper`, each a subtree of 0.25 MB: 1, 3.3, 6.8, 13.3 and 16 MB, where 64 CTAs are all
/// that fit.
const PAPER_CTAS: [u32; 5] = [4, 13, 27, 53, 64];
/// CTAs at other profiles.
const SMALL_CTAS: [u32; 3] = [2, 4, 8];
/// Write latencies of Fig. 6, in ns.
pub(crate) const WRITE_NS: [u32; 3] = [250, 500, 1000];
/// Entries of an L1's NVW-FIFO and of the L2's in Fig. 7. The paper names the last and those of Table 2, 16
/// and 64; the other two are ours.
pub(crate) const FIFOS: [[u32; 2]; 4] = [[4, 16], [16, 64], [64, 256], [256, 1024]];

/// Entries of the L1s' S-FIFOs in Fig. 7. The paper sweeps the NVW-FIFOs alone and names no more than Table
/// 2's 16; a reading with room for every dirty line of an L1 tells what the S-FIFO's overflows hide.
pub(crate) const SFIFOS: [u32; 2] = [16, 256];

/// What orders persists below depth d.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierScope {
    /// Algorithm 2.
    Workgroup,
    /// Algorithm 1.
    Kernel,
}

impl BarrierScope {
    /// Both, in the order of columns.
    pub const ALL: [BarrierScope; 2] = [BarrierScope::Workgroup, BarrierScope::Kernel];

    /// As the paper calls its barrier.
    pub fn name(self) -> &'static str {
        match self {
            BarrierScope::Workgroup => "wg",
            BarrierScope::Kernel => "kr",
        }
    }

    /// The workload's parameter BARRIER.
    pub fn barrier(self) -> u32 {
        match self {
            BarrierScope::Workgroup => 2,
            BarrierScope::Kernel => 3,
        }
    }
}

/// Sizes of a request, in CTAs.
pub fn sizes(request: &Request) -> &'static [u32] {
    if request.has_paper_sizes() { &PAPER_CTAS } else { &SMALL_CTAS }
}

/// Thousands of warp instructions of a workload at its profile `paper`.
pub fn work(workload: &str) -> Option<u64> {
    WORKLOADS.contains(&workload).then_some(2510)
}

/// The baseline at a size.
pub fn baseline(ctas: u32) -> Run {
    let run = Run::new(WORKLOADS[1], "base");
    run.with(&format!("{ctas} CTAs"), [format!("params.CTAS={ctas}").as_str()])
}

/// The baseline with the barriers of a scope: what synchronisation alone costs, where nothing persists.
pub fn synchronised(scope: BarrierScope, ctas: u32) -> Run {
    let run = Run::new(WORKLOADS[1], "base");
    let set = [format!("params.CTAS={ctas}"), format!("params.BARRIER={}", scope.barrier())];
    run.with(&format!("{} in DRAM, {ctas} CTAs", scope.name()), set.iter().map(String::as_str))
}

/// A persistent tree at a size.
pub fn tree(scheme: &'static str, scope: BarrierScope, ctas: u32) -> Run {
    let set =
        [format!("params.CTAS={ctas}"), format!("params.BARRIER={}", scope.barrier()), "params.LOGS=0".to_owned()];
    Run::new(WORKLOADS[0], scheme).with(&format!("{}, {ctas} CTAs", scope.name()), set.iter().map(String::as_str))
}

/// As `proposed` with barriers of the workgroup, on persistent memory that is as fast as the machine's DRAM.
pub fn dram_latencies(request: &Request, ctas: u32) -> Run {
    // A machine that does not load is a fault of the plan.
    let values =
        MachineConfig::load(&request.machine, &request.set).map(|machine| machine.values()).unwrap_or_default();
    let set: Vec<String> = values
        .iter()
        .filter(|(key, _)| key.ends_with("_ns"))
        .filter_map(|(key, value)| Some(format!("nvm.{}={value}", key.strip_prefix("dram.")?)))
        .chain(["nvm.write_mode=row_buffer", "nvm.row_write_ns=0", "nvm.row_buffer_durable=true"].map(str::to_owned))
        .collect();
    tree(SCHEMES[0], BarrierScope::Workgroup, ctas).with("DRAM latencies", set.iter().map(String::as_str))
}

/// With barriers of the workgroup, NVRAM writes taking so long. What Table 2 has is the run of Fig. 5.
pub fn latency(write_ns: u32, ctas: u32) -> Run {
    let run = tree(SCHEMES[0], BarrierScope::Workgroup, ctas);
    run.with(&format!("{write_ns} ns"), [format!("nvm.cell_write_ns={write_ns}").as_str()])
}

/// With barriers of the workgroup, and these numbers of entries in NVW-FIFOs (L1, L2) and in S-FIFOs.
pub fn fifo([l1, l2]: [u32; 2], sfifo: u32, ctas: u32) -> Run {
    let set =
        [format!("nvw_fifo.l1_entries={l1}"), format!("nvw_fifo.l2_entries={l2}"), format!("l1.sfifo_entries={sfifo}")];
    let run = tree(SCHEMES[0], BarrierScope::Workgroup, ctas);
    run.with(&format!("FIFOs {l1}/{l2}, S-FIFO {sfifo}"), set.iter().map(String::as_str))
}

/// The baseline on the machine of [`fifo`]: its S-FIFOs have as many entries.
pub fn baseline_of_fifos(sfifo: u32, ctas: u32) -> Run {
    let set = [format!("l1.sfifo_entries={sfifo}")];
    baseline(ctas).with(&format!("S-FIFO {sfifo}"), set.iter().map(String::as_str))
}

/// There is such a scheme to run the alternative under.
pub(crate) fn has_alternative() -> bool {
    catalogue::find(SCHEMES[1]).is_ok()
}

fn at_sizes(request: &Request, runs: impl Fn(u32) -> Vec<Run>) -> Vec<Run> {
    let of_size = |&ctas: &u32| [vec![baseline(ctas)], runs(ctas)].concat();
    sizes(request).iter().flat_map(of_size).collect()
}

/// What needs no run.
pub(super) fn none(_: &Request) -> Vec<Run> {
    Vec::new()
}

/// Fig. 5.
pub(super) fn scopes(request: &Request) -> Vec<Run> {
    let of = |ctas| {
        let persistent = BarrierScope::ALL.map(|scope| tree(SCHEMES[0], scope, ctas));
        let in_dram = BarrierScope::ALL.map(|scope| synchronised(scope, ctas));
        [persistent.to_vec(), in_dram.to_vec(), vec![dram_latencies(request, ctas)]]
    };
    at_sizes(request, |ctas| of(ctas).concat())
}

/// Fig. 6.
pub(super) fn latencies(request: &Request) -> Vec<Run> {
    at_sizes(request, |ctas| WRITE_NS.map(|write_ns| latency(write_ns, ctas)).to_vec())
}

/// Fig. 7.
pub(super) fn fifos(request: &Request) -> Vec<Run> {
    let of = |ctas, sfifo| {
        [vec![baseline_of_fifos(sfifo, ctas)], FIFOS.map(|entries| fifo(entries, sfifo, ctas)).to_vec()].concat()
    };
    at_sizes(request, |ctas| SFIFOS.iter().flat_map(|&sfifo| of(ctas, sfifo)).collect())
}

/// Section 6.1; nothing without the scheme.
pub(super) fn alternative(request: &Request) -> Vec<Run> {
    let schemes = SCHEMES.iter().filter(|_| has_alternative());
    let of = |ctas| {
        schemes.clone().flat_map(move |scheme| BarrierScope::ALL.map(|scope| tree(scheme, scope, ctas))).collect()
    };
    if has_alternative() { at_sizes(request, of) } else { Vec::new() }
}

/// Section 7.2.5.
pub(super) fn energies(request: &Request) -> Vec<Run> {
    let of = |&ctas: &u32| BarrierScope::ALL.map(|scope| tree(SCHEMES[0], scope, ctas));
    sizes(request).iter().flat_map(of).collect()
}
