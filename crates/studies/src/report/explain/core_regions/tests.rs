//! Regions of each core by hand, cell by cell.

use super::*;
use crate::report::console::cells;
use durawarp_persist::regions::{Checkpoints, ControllerWaits, RegionReport, RegionSizes, WarpWaits};
use durawarp_simulation::outcome::Parameter;
use durawarp_simulation::outcome::sample;

/// A run of one core in 7,000 cycles, which are 5,000 ns; five ticks are a cycle.
fn run(scheme: &str, parameters: &[(&str, u64)], counters: &[(&str, u64)]) -> Outcome {
    let mut outcome = sample::cores(&[("instructions", 10_000), ("path_full_cycles", 700)]);
    (outcome.scheme, outcome.time) = (scheme.to_owned(), sample::cycles(7_000));
    let shared = [
        ("feb_stores", 380),
        ("path_stopped_ns", 1_250),
        ("regions_persisting_ns", 2_000),
        ("regions_most_persisting_summed", 3),
        ("awaited_regions", 5),
        ("region_wait_cycles", 60),
        ("victims_searched_lines", 50),
        ("victim_conflicts_lines", 3),
    ];
    let all = shared.iter().chain(counters);
    outcome.scheme_counters = all.map(|&(name, value)| (name.to_owned(), value)).collect();
    for &(name, value) in parameters {
        let parameter = Parameter { value: value.into(), source: "a paper".to_owned() };
        outcome.scheme_parameters.insert(format!("{scheme}.{name}"), parameter);
    }
    let report = RegionReport {
        sizes: RegionSizes {
            regions: 20,
            stores: 380,
            entries: 380,
            bytes: 3_040,
            by_stores: [(1, 10), (37, 10)].into(),
            largest_entries: 30,
            beyond_queue: 0,
        },
        checkpoints: Checkpoints { stores: 38, bytes: 304 },
        warps: WarpWaits { room: 6, ..WarpWaits::default() },
        controllers: vec![ControllerWaits {
            boundary_ticks: 3_500,
            boundary_ack_ticks: 7_000,
            flush_ticks: 1_750,
            for_controller_ticks: vec![0, 7_000],
            ..ControllerWaits::default()
        }],
        ..RegionReport::default()
    };
    outcome.scheme_report = serde_json::to_value(report).ok();
    outcome
}

#[test]
fn a_path_that_stops_is_told_with_its_bandwidth_its_stops_and_its_buffers() {
    let parameters = [("feb_entries", 64), ("backend_entries", 224), ("entry_bytes", 64), ("path_mb_s", 16_000)];
    let (text, data) = explain(&run("capri", &parameters, &[])).unwrap();
    // 400 entries of 64 B are 25,600 B; 16 GB/s move 80,000 B in 5,000 ns. 288 entries of 192 B are 54 KiB.
    assert_eq!(
        cells(&text)[1..],
        [
            "Recoverable regions, ordered by each core",
            "stores a region|regions|their stores",
            "1|10|50.0 %|10|2.6 %|####################",
            "33 to 64|10|50.0 %|370|97.4 %|####################",
            "",
            "20 regions of 19.0 stores, 19.0 entries, 152 bytes; the most entries of a region at one controller 30",
            "checkpoints: 38 stores, 10.0 % of all; 304 bytes, 10.0 % of all",
            "",
            "harts waited for|times|core cycles",
            "room in the front-end buffer: controllers that take its entries|6|700",
            "regions of other cores, where they synchronise|5|60",
            "",
            "persist paths|400 entries of 64 B; 32.0 % of their bandwidth used",
            "stood still|1250 ns behind boundaries while something waited: 25.0 % of the run, of all cores",
            "tracker|a region has persisted 100.0 ns after its end; at most 3 had not, of all cores",
            "storage|55296 B a core: 12288 in the front-end buffer, 43008 in back-end buffers (LightWSP has 54 KB)",
            "",
            "controller|boundaries|bdry-ACKs|its own flushes|longest for|cycles|of the run",
            "0|700|1400|350|controller 1|1400|35.0 %",
            "",
            "core cycles in which a controller's oldest regions waited, core by core, those after the program's end included; a core that is slow to end a region is a wait for boundaries",
            "3 of 50 lines that were to leave the caches had copies on their way",
        ]
    );
    assert_eq!(data["paths"]["used_share"], 0.32);
    assert_eq!(data["regions"]["report"]["sizes"]["by_stores"]["37"], 10);
    assert!(data["speculation"].is_null());
}

#[test]
fn writes_ahead_are_told_with_their_undo_log() {
    let parameters = [("feb_entries", 64), ("entry_bytes", 8), ("path_mb_s", 4_000)];
    let counters = [("logged_stores", 95), ("held_stores", 285), ("most_held_stores_summed", 12)];
    let (text, data) = explain(&run("cwsp", &parameters, &counters)).unwrap();
    for part in [
        "400 entries of 8 B; 16.0 % of their bandwidth used",
        "95 stores written ahead, 25.0 %; each reads the bytes that it replaces",
        "285 stores until their region's turn; 12 at most at a time",
        "512 B a core in the front-end buffer; undo logs are in memory",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert_eq!((&data["paths"]["stops"], &data["speculation"]["logged_share"]), (&false.into(), &0.25.into()));
}

#[test]
fn other_schemes_have_no_such_regions() {
    let mut outcome = run("capri", &[], &[]);
    outcome.scheme_counters.remove("path_stopped_ns");
    assert!(explain(&outcome).is_none());
}
