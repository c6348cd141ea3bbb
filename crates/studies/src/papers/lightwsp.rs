//! LightWSP (Zhou, Zeng, Jung, "LightWSP: Whole-System Persistence on the Cheap"): Figures 7, 11 to 13 and 15
//! to 18, formula (1) of section V-C, region statistics of section V-G3, hardware of section V-G4. A GPU port
//! of a CPU scheme, and labelled so (on cores: [`super::lightwsp_cpu`]): what runs are kernels of ours on a
//! GPU of ours, a warp where the paper has a thread, not its 38 programs on 8 cores.
//!
//! Every time is that of the kernels' launches under `light-wsp`, formed into regions, over that under `base`
//! as they are, with the same machine and every buffer in persistent memory both times. Means are geometric,
//! over the kernels of which every bar of the figure is there; the paper does not say how it averages.
//!
//! Left out, with reasons and published values in `absent`: Capri, PPA, cWSP and the ideal PSP scheme (their
//! numbers stand beside ours in Figure 7; Figures 9 and 10 are of them), the DRAM cache of the paper's base,
//! and Figure 14.

mod absent;
pub(crate) mod ask;
pub(crate) mod cost;
pub(crate) mod counts;
pub(crate) mod overflow;
pub(crate) mod picture;
pub(crate) mod published;
pub(crate) mod regions;
pub(crate) mod relative;
pub mod runs;
pub(crate) mod times;

use super::{Figure, Paper, Reading};
use durawarp_workload::Overrides;

/// The paper.
pub const PAPER: Paper = Paper {
    name: "lightwsp",
    title: "LightWSP, as a GPU port of a CPU scheme",
    machine: "lightwsp-gpu",
    kernels: &runs::KERNELS,
    figures: &FIGURES,
    work: runs::work,
    readings: &READINGS,
    instrument: Overrides { mode: None, flag_barrier: None, loop_log: None, reload: None },
};

/// The GPU's memory is AGPM's: as read there, and as gem5's NVMInterface has it. Memories of Tables I and III
/// have their own.
const READINGS: [Reading; 1] = [Reading {
    name: "through",
    set: &["nvm.write_mode=through"],
    source: "gem5's NVMInterface: every write holds its bank for as long as the cells take",
}];

const FIGURES: [Figure; 12] = [
    Figure {
        name: "fig7",
        title: "slowdown (GPU port of a CPU scheme)",
        runs: runs::defaults,
        finding: times::defaults,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig11",
        title: "slowdown by entries of the gated WPQ, threshold and front-end buffer growing with it (GPU port)",
        runs: runs::queues,
        finding: times::queues,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig12",
        title: "slowdown by the threshold of stores of a region (GPU port)",
        runs: runs::thresholds,
        finding: times::thresholds,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig13",
        title: "slowdown by the policy of victims, and Table II's rate of conflicts (GPU port)",
        runs: runs::victims,
        finding: times::victims,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig15",
        title: "slowdown by the bandwidth of the persist path (GPU port)",
        runs: runs::bandwidths,
        finding: times::bandwidths,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig16",
        title: "slowdown by warps that an SM holds, with a gated WPQ of 64 entries, and overflows by its size (GPU port)",
        runs: runs::warps,
        finding: times::warps,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig17",
        title: "slowdown in front of the memories of Table III (GPU port)",
        runs: runs::memories,
        finding: times::memories,
        draw: Some(picture::bars),
    },
    Figure {
        name: "fig18",
        title: "loads that hit in the gated WPQ (GPU port)",
        runs: runs::defaults,
        finding: counts::hits,
        draw: None,
    },
    Figure {
        name: "efficiency",
        title: "region-level persistence efficiency, formula (1) (GPU port)",
        runs: runs::defaults,
        finding: counts::efficiency,
        draw: None,
    },
    Figure {
        name: "regions",
        title: "instructions and stores of a region, instructions more (GPU port)",
        runs: runs::none,
        finding: regions::statistics,
        draw: None,
    },
    Figure {
        name: "cost",
        title: "bytes of hardware, section V-G4 (GPU port)",
        runs: runs::none,
        finding: cost::hardware,
        draw: None,
    },
    Figure {
        name: "absent",
        title: "what of the paper does not exist here, and why (GPU port)",
        runs: runs::none,
        finding: absent::listed,
        draw: None,
    },
];
