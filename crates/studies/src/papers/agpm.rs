//! AGPM: Table I, II and III, Figures 3, 4, 5 and 7, section IV-C; what the selector decided of each kernel.
//!
//! The protocol is that of the paper unless chosen otherwise: every update of data is a log update too (Fig.
//! 1 writes the log's location in its loop, and Table II counts it), and no barrier follows the flag. Figures
//! that count line accesses (Table II, Fig. 4) coalesce by half-warps, as the published counts do; the others
//! as the machine says.

pub(crate) mod ask;
pub(crate) mod decisions;
pub(crate) mod figures;
pub mod kernels;
pub(crate) mod measured;
pub(crate) mod picture;
pub(crate) mod published;
pub mod runs;

use super::{Figure, Paper, Reading};
use durawarp_workload::{FlagBarrier, Overrides};
use figures::{counts, hardware, reasons, times, traffic};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "agpm",
    title: "AGPM",
    machine: "agpm-table4",
    kernels: &kernels::NAMES,
    figures: &FIGURES,
    work: kernels::work,
    readings: &READINGS,
    instrument: Overrides { mode: None, flag_barrier: Some(FlagBarrier::Paper), loop_log: Some(true), reload: None },
};

/// Table IV's write of 480 ns. The machine has `latency`.
const READINGS: [Reading; 2] = [
    Reading {
        name: "row_buffer",
        set: &["nvm.write_mode=row_buffer"],
        source: "NVMain, Ramulator's PCM and BROI's Table III: a write that hits its row is cheap, a row's cells are written when it closes",
    },
    Reading {
        name: "through",
        set: &["nvm.write_mode=through"],
        source: "gem5's NVMInterface: every write holds its bank for as long as the cells take",
    },
];

const FIGURES: [Figure; 8] = [
    Figure {
        name: "fig3",
        title: "normalised execution time with static paths of log updates",
        runs: runs::static_paths,
        finding: times::static_paths,
        draw: Some(picture::times),
    },
    Figure {
        name: "fig4",
        title: "distribution of loads and stores by un-coalescing degree",
        runs: runs::accesses,
        finding: counts::degrees,
        draw: Some(picture::degrees),
    },
    Figure {
        name: "fig5",
        title: "bytes between L1 and L2, by reason",
        runs: runs::static_paths,
        finding: traffic::bytes,
        draw: Some(picture::traffic),
    },
    Figure {
        name: "fig7",
        title: "normalised execution time under every scheme",
        runs: runs::every_scheme,
        finding: times::every_scheme,
        draw: Some(picture::times),
    },
    Figure {
        name: "reasons",
        title: "reasons and ways that the selector found, period by period, beside Table II's",
        runs: runs::selected,
        finding: reasons::found,
        draw: Some(picture::reasons),
    },
    Figure {
        name: "table2",
        title: "memory accesses of log updates, and of all",
        runs: runs::accesses_and_localities,
        finding: counts::accesses,
        draw: None,
    },
    Figure {
        name: "table3",
        title: "rules of the reasons, on the published Table II",
        runs: runs::none,
        finding: hardware::rules,
        draw: None,
    },
    Figure {
        name: "overheads",
        title: "bits and bytes of AGPM's hardware",
        runs: runs::none,
        finding: hardware::sizes,
        draw: None,
    },
];
