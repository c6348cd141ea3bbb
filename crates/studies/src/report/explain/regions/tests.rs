//! Regions by hand, cell by cell.

use super::*;
use crate::report::console::cells;
use durawarp_base::stats::Table;
use durawarp_persist::regions::{Checkpoints, ControllerWaits, RegionSizes, WarpWaits};
use durawarp_simulation::outcome::sample::{cycles, under};
use durawarp_simulation::outcome::{Backlog, Parameter};

/// A run of 10,000 cycles; five ticks are one.
fn run() -> Outcome {
    let mut outcome = under("light-wsp", 10_000);
    let table = |kind: &str, counters: &[(&str, u64)]| Table {
        kind: kind.to_owned(),
        names: counters.iter().map(|(name, _)| (*name).to_owned()).collect(),
        docs: counters.iter().map(|_| String::new()).collect(),
        rows: vec![counters.iter().map(|(_, count)| *count).collect()],
    };
    outcome.counters =
        vec![table("sm", &[("path_full_cycles", 4_321)]), table("memory_controller", &[("nvm_reads", 600)])];
    let counters = [
        ("wpq_hits", 9),
        ("wpq_hits_merged", 7),
        ("wpq_hits_waited", 2),
        ("wpq_hit_fallbacks", 1),
        ("victims_searched_lines", 50),
        ("victim_conflicts_lines", 3),
        ("wpq_full_stores", 44),
        ("wpq_spilled_stores", 12),
    ];
    outcome.scheme_counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
    let entries = Parameter { value: 64.into(), source: "a paper".to_owned() };
    outcome.scheme_parameters.insert("light_wsp.wpq_entries".to_owned(), entries);
    let waits = |first: u64, for_controller_ticks: Vec<u64>, for_several_ticks: u64| ControllerWaits {
        boundary_ticks: first,
        boundary_ack_ticks: 1_000,
        flush_ticks: 2_500,
        flush_ack_ticks: 1_500,
        for_controller_ticks,
        for_several_ticks,
    };
    let report = RegionReport {
        sizes: RegionSizes {
            regions: 20,
            stores: 86,
            entries: 172,
            bytes: 8_600,
            by_stores: [(1, 10), (3, 4), (4, 1), (12, 5)].into(),
            largest_entries: 70,
            beyond_queue: 1,
        },
        checkpoints: Checkpoints { stores: 43, bytes: 860 },
        warps: WarpWaits { room: 6, ids: 2, turns: 5, turn_ticks: 500 },
        controllers: vec![waits(20_000, vec![0, 2_500], 0), waits(0, vec![1_000, 0], 1_500), waits(5, vec![], 0)],
        overflows: vec![Overflow { at_ticks: 7_000, controller: 1, order: 0, region: 17, stores: 8, waiting: 4 }],
        overflow_episodes: 1,
        ..RegionReport::default()
    };
    outcome.scheme_report = serde_json::to_value(report).ok();
    outcome
}

#[test]
fn sizes_waits_overflows_hits_and_checkpoints_are_told() {
    let mut outcome = run();
    let drain = cycles(2_000);
    outcome.backlog = Some(Backlog { gated_stores: 3, gated_entries: 6, queued_writes: 1, kept_writes: 0, drain });
    let Explanation { text, data } = explain(&outcome, &[]).unwrap();
    assert_eq!(
        cells(&text),
        [
            "light-wsp on small",
            "stores a region|regions|their stores",
            "1|10|50.0 %|10|11.6 %|####################",
            "3 to 4|5|25.0 %|16|18.6 %|##########",
            "9 to 16|5|25.0 %|60|69.8 %|##########",
            "",
            "20 regions of 4.3 stores, 8.6 entries, 430 bytes; the most entries of a region at one controller 70, of 64 of its queue",
            "checkpoints: 43 stores, 50.0 % of all; 860 bytes, 10.0 % of all",
            "",
            "warps waited for|times|warp cycles",
            "room in the front-end buffer: controllers that take its entries|6|4321 with the next",
            "a region's ID: older regions that commit|2",
            "an atomic's turn: others on its lines|5|100",
            "",
            "controller|boundaries|bdry-ACKs|its own flushes|flush-ACKs|longest for|cycles|of the run",
            "0|4000|200|500|300|controller 1|500|50.0 %",
            "1|0|200|500|300|several at once|300|10.0 %",
            "2|1|200|500|300|-|-|10.0 %",
            "",
            "core cycles in which a controller's oldest regions waited, those after the program's end included; an SM that is slow to end a region is a wait for boundaries",
            "",
            "1 episodes of overflow, 12 stores written in them; 44 stores waited for room in a gated queue",
            "1 regions had more entries for a controller than its queue: they overflow alone",
            "at (ns)|controller|order|region|stores written at once|others waiting",
            "1000.0|1|0|17|8|4",
            "",
            "",
            "9 of 600 reads of memory found bytes in a gated queue: 7 took them, 2 waited (1 had a region written for it)",
            "3 of 50 lines that were to leave the L2 had copies on their way",
            "left at the end: 3 gated stores in 6 entries, 1 writes in write-pending queues; written 1.429 µs later (20.0 % of the run's time)",
        ]
    );
    assert_eq!(data["sizes"][1], serde_json::json!({ "from_stores": 3, "to_stores": 4, "regions": 5, "stores": 16 }));
    assert_eq!(data["controllers"][0]["for_controller_cycles"], serde_json::json!([0.0, 500.0]));
    assert_eq!(data["report"]["overflows"][0]["region"], 17);
    assert_eq!(data["report"]["sizes"]["by_stores"]["12"], 5);
}

#[test]
fn a_run_that_told_nothing_of_regions_is_not_explained() {
    let outcome = Outcome { scheme_report: None, ..run() };
    assert!(explain(&outcome, &[]).is_none());
}
