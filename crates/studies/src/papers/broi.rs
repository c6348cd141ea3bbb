//! Persistence parallelism (Hu, Ogleari, Zhao, Li, Ouyang, Xie, "Persistence Parallelism Optimization: A
//! Holistic Approach from Memory Bus to RDMA Network", MICRO'18): Figures 3 and 4, section III's motivation,
//! Figures 9 to 13, and Table II.
//!
//! `epoch` is the paper's Epoch, `broi` its BROI-mem, on a machine of Table III. The five programs are ours
//! after its Table IV, for RV64GC, with undo logs: the paper gives no source of its own. Clients over the
//! network are scripts with the mixes of that table.

pub(crate) mod ask;
mod network;
pub(crate) mod picture;
pub(crate) mod published;
pub mod runs;
mod schedule;
mod storage;
pub(crate) mod throughput;

use super::{Figure, Paper, Reading};
use durawarp_workload::Overrides;

/// The paper.
pub const PAPER: Paper = Paper {
    name: "broi",
    title: "Persistence parallelism (BROI)",
    machine: "broi-cpu",
    kernels: &runs::ALL,
    figures: &FIGURES,
    work: runs::work,
    readings: &READINGS,
    instrument: Overrides { mode: None, flag_barrier: None, loop_log: None, reload: None },
};

/// Three sentences that our schemes and machine do not take by the letter.
const READINGS: [Reading; 3] = [
    Reading {
        name: "global",
        set: &["broi.barrier_scope=global"],
        source: "sections IV-B and IV-D: at a set's end \"BROI controller schedules a barrier to memory controller\", and barriers \
                 \"become visible to the all the threads\"",
    },
    Reading {
        name: "bloom",
        set: &["epoch.dependency=bloom", "broi.dependency=bloom"],
        source: "section IV-E and Table II: 320 B of dependency tracking; \"there may be fault positive inter-thread conflicts\"",
    },
    Reading {
        name: "fences",
        set: &["core.fence_persists=true"],
        source: "Fig. 7(a): the fences that a program has are its barriers of persists, so that those of locks end epochs too",
    },
];

const FIGURES: [Figure; 9] = [
    Figure {
        name: "fig3",
        title: "the worked schedule",
        runs: runs::none,
        finding: schedule::worked_schedule,
        draw: None,
    },
    Figure {
        name: "motivation",
        title: "requests stalled by bank conflicts, and conflicts between threads (section III)",
        runs: runs::motivation,
        finding: throughput::motivation,
        draw: None,
    },
    Figure {
        name: "fig4",
        title: "round trips of a transaction (calibrated: an input)",
        runs: runs::calibration,
        finding: network::calibration,
        draw: None,
    },
    Figure {
        name: "fig9",
        title: "memory throughput, local and hybrid",
        runs: runs::throughput,
        finding: throughput::memory,
        draw: Some(picture::ratios),
    },
    Figure {
        name: "fig10",
        title: "operational throughput, local and hybrid",
        runs: runs::throughput,
        finding: throughput::operations,
        draw: Some(picture::ratios),
    },
    Figure {
        name: "fig11",
        title: "scalability of hash",
        runs: runs::scaling,
        finding: throughput::scaling,
        draw: Some(picture::scaling),
    },
    Figure {
        name: "fig12",
        title: "transactions of remote clients, Sync and BSP",
        runs: runs::clients,
        finding: network::mixes,
        draw: Some(picture::mixes),
    },
    Figure {
        name: "fig13",
        title: "hashmap by size of an element, Sync and BSP",
        runs: runs::elements,
        finding: network::elements,
        draw: Some(picture::elements),
    },
    Figure { name: "table2", title: "storage of the hardware", runs: runs::none, finding: storage::table2, draw: None },
];
