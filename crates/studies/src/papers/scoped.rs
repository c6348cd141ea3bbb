//! Scoped persist barriers (Gope, Basu, Puthoor, Meswani, GPGPU 2018): Figures 5, 6 and 7, Table 3, the
//! alternative implementation of section 6.1, area and energy of section 7.2.5; and a later scheme for
//! scoped barriers, SBRP, beside them.
//!
//! One program, insertion into a B+tree of several sizes: `wg` is algorithm 2 (barriers of the workgroup
//! below depth d, of the kernel above), `kr` algorithm 1 (of the kernel everywhere), both under `nvw-fifo`;
//! every time is over that of the baseline, the same insertion without persist barriers into a tree in DRAM.
//! An overhead is that less 1.
//!
//! Nothing keeps undo logs here (section 7 measures algorithms 1 and 2, recovery is section 8.3). Not
//! modelled, and said on the page with the figures that it touches: preemption at a barrier of the kernel
//! (trees go up to the grid that is resident as a whole), the instruction cache, the L2's S-FIFO.

pub(crate) mod area;
pub(crate) mod ask;
pub(crate) mod picture;
pub(crate) mod published;
pub mod runs;
pub(crate) mod sbrp;
pub(crate) mod times;
pub(crate) mod writes;

use super::{Figure, Paper, Reading};
use durawarp_workload::Overrides;

/// The paper.
pub const PAPER: Paper = Paper {
    name: "scoped",
    title: "Scoped persist barriers",
    machine: "scoped-table2",
    kernels: &["B+tree"],
    figures: &FIGURES,
    work: runs::work,
    readings: &READINGS,
    instrument: Overrides { mode: None, flag_barrier: None, loop_log: None, reload: None },
};

/// Table 2's write of 250 ns. The machine has `through`: the two are the ends of a bracket, of which the
/// paper decides neither.
const READINGS: [Reading; 1] = [Reading {
    name: "latency",
    set: &["nvm.write_mode=latency"],
    source: "one number for DRAM's reads and writes fits gem5's SimpleMemory: writes take the latency, and overlap",
}];

const FIGURES: [Figure; 7] = [
    Figure {
        name: "fig5",
        title: "normalised execution time with barriers of the workgroup and of the kernel",
        runs: runs::scopes,
        finding: times::scopes,
        draw: Some(picture::lines),
    },
    Figure {
        name: "fig6",
        title: "sensitivity to the latency of NVRAM writes, barriers of the workgroup",
        runs: runs::latencies,
        finding: times::latencies,
        draw: Some(picture::lines),
    },
    Figure {
        name: "fig7",
        title: "sensitivity to the sizes of the NVW-FIFOs, barriers of the workgroup",
        runs: runs::fifos,
        finding: times::fifos,
        draw: Some(picture::lines),
    },
    Figure {
        name: "table3",
        title: "recoverability: NV writes that a barrier persists, by level of the tree",
        runs: runs::none,
        finding: writes::levels,
        draw: None,
    },
    Figure {
        name: "alternative",
        title: "the alternative implementation, order without waiting (epoch-tag), beside the proposed one",
        runs: runs::alternative,
        finding: times::alternative,
        draw: Some(picture::lines),
    },
    Figure {
        name: "sbrp",
        title: "SBRP (ASPLOS 2023) beside the proposed implementation, by its window, on 4 CUs and on its artifact's 30 SMs",
        runs: sbrp::runs,
        finding: sbrp::finding,
        draw: None,
    },
    Figure {
        name: "area",
        title: "area of the NVW-FIFOs, and energy of their accesses",
        runs: runs::energies,
        finding: area::area,
        draw: None,
    },
];
