//! LightWSP (Zhou, Zeng, Jung, "LightWSP: Whole-System Persistence on the Cheap") on a machine of its Table
//! I: Figures 7 to 18, Table II, formula (1) of section V-C, region statistics of section V-G3, hardware of
//! section V-G4. What runs are twelve RV64 programs of ours where the paper ran 38 x86 binaries.
//!
//! Every time is that of the program under a scheme over that under `base` as it is, on the same machine with
//! all memory persistent: the paper's base is a memory mode whose DRAM caches persistent memory. Means are
//! geometric, over the programs of which every bar of the figure is there; the paper does not say how it
//! averages. Published values, and asks that do not depend on whether programs are kernels, are those of
//! [`super::lightwsp`], the GPU port. Left out: the sizes of the paper's runs (5 billion instructions each),
//! its operating system.

pub(crate) mod ask;
mod counts;
mod hardware;
mod limits;
mod others;
pub mod runs;
mod times;
mod waits;

use super::lightwsp::picture;
use super::{Figure, FigureTable, Paper, Reading};
use durawarp_plot::Figure as Drawing;
use durawarp_workload::Overrides;

/// The paper.
pub const PAPER: Paper = Paper {
    name: "lightwsp-cpu",
    title: "LightWSP on CPU cores",
    machine: "lightwsp-cpu",
    kernels: &runs::PROGRAMS,
    figures: &FIGURES,
    work: runs::work,
    readings: &READINGS,
    instrument: Overrides { mode: None, flag_barrier: None, loop_log: None, reload: None },
};

/// The paper gives controllers 25.6 GB/s for ACKs and no latency; the scheme's own 20 ns are as the persist
/// path's. Its Table I gives persistent memory latencies and no bandwidth, Table III gives one of Optane
/// behind CXL.
const READINGS: [Reading; 3] = [
    Reading {
        name: "qpi",
        set: &["light_wsp.ack_latency_ns=2.5"],
        source: "Table I: QPI at 25.6 GB/s for ACKs; 64 B take 2.5 ns, and no latency is told",
    },
    Reading {
        name: "table3",
        set: &["nvm.write_bandwidth_mb_s=4600", "nvm.write_charge=bytes"],
        source: "Table III: Intel Optane, write 2.3 GB/s, for each of the 2 channels of Table I's controllers; section III-A: \
                 stores persist in an 8B granularity",
    },
    Reading {
        name: "table3_lines",
        set: &["nvm.write_bandwidth_mb_s=4600", "nvm.write_charge=line_256"],
        source: "the same, with a write of a whole line of Optane's cells for each (Yang et al., FAST '20: 256 B), of which its \
                 buffer joins none",
    },
];

fn bars(tables: &[FigureTable]) -> Drawing {
    picture::bars_of(&tables[0], "execution time over base").into()
}

/// Figure 7: programs of others are a group of their own.
fn bars_of_groups(tables: &[FigureTable]) -> Drawing {
    others::draw(tables, picture::bars_of(&tables[0], "execution time over base")).into()
}

const FIGURES: [Figure; 16] = [
    Figure {
        name: "fig7",
        title: "slowdown of LightWSP, Capri and PPA",
        runs: runs::systems,
        finding: times::systems,
        draw: Some(bars_of_groups),
    },
    Figure {
        name: "fig8",
        title: "region-level persistence efficiency, formula (1)",
        runs: runs::efficiency,
        finding: counts::efficiency,
        draw: None,
    },
    Figure {
        name: "fig9",
        title: "an ideal PSP without a DRAM cache, memory-intensive programs",
        runs: runs::ideal,
        finding: times::ideal,
        draw: Some(bars),
    },
    Figure {
        name: "fig10",
        title: "cWSP, without NPB",
        runs: runs::speculative,
        finding: times::speculative,
        draw: Some(bars),
    },
    Figure {
        name: "fig11",
        title: "slowdown by entries of the WPQ, threshold and front-end buffer growing with it",
        runs: runs::queues,
        finding: times::queues,
        draw: Some(bars),
    },
    Figure {
        name: "fig12",
        title: "slowdown by the threshold of stores of a region",
        runs: runs::thresholds,
        finding: times::thresholds,
        draw: Some(bars),
    },
    Figure {
        name: "fig13",
        title: "slowdown by the policy of victims",
        runs: runs::victims,
        finding: times::victims,
        draw: Some(bars),
    },
    Figure {
        name: "table2",
        title: "rate of conflicts of victims",
        runs: runs::searched,
        finding: counts::conflicts,
        draw: None,
    },
    Figure {
        name: "fig14",
        title: "miss rates of the L1 by the policy of victims",
        runs: runs::misses,
        finding: counts::misses,
        draw: None,
    },
    Figure {
        name: "fig15",
        title: "slowdown by the bandwidth of the persist path",
        runs: runs::bandwidths,
        finding: times::bandwidths,
        draw: Some(bars),
    },
    Figure {
        name: "fig16",
        title: "slowdown by threads, and overflows of the WPQ",
        runs: runs::threads,
        finding: times::threads,
        draw: Some(bars),
    },
    Figure {
        name: "fig17",
        title: "slowdown with the memories of Table III",
        runs: runs::memories,
        finding: times::memories,
        draw: Some(bars),
    },
    Figure {
        name: "fig18",
        title: "loads that hit in the WPQ",
        runs: runs::defaults,
        finding: counts::hits,
        draw: None,
    },
    Figure {
        name: "limits",
        title: "what each reading of the protocol allows, and which sentence can hold beside which figure",
        runs: runs::limited,
        finding: limits::finding,
        draw: Some(limits::picture),
    },
    Figure {
        name: "g3",
        title: "instructions and stores of a region, instructions more (section V-G3)",
        runs: runs::defaults,
        finding: counts::regions,
        draw: None,
    },
    Figure {
        name: "g4",
        title: "bytes of hardware (section V-G4)",
        runs: runs::none,
        finding: hardware::bytes,
        draw: None,
    },
];
