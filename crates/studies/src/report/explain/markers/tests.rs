//! Markers by hand, cell by cell.

use super::*;
use crate::report::console::cells;
use durawarp_simulation::outcome::sample::under;

/// A run whose FIFOs counted.
fn run() -> Outcome {
    let mut outcome = under("nvw-fifo", 10_000);
    let counters = [
        ("l1_wi_markers", 25),
        ("l1_wi_own_entries", 30),
        ("l1_wi_other_entries", 18),
        ("l1_wg_markers", 12),
        ("l1_wg_own_entries", 70),
        ("l1_wg_other_entries", 26),
        ("l1_early_entries", 11),
        ("l1_evicted_entries", 13),
        ("l1_written_entries", 400),
        ("l1_read_entries", 300),
        ("l2_markers", 50),
        ("l2_own_entries", 90),
        ("l2_other_entries", 110),
        ("l2_early_entries", 17),
        ("l2_evicted_entries", 19),
        ("l2_written_entries", 700),
        ("l2_read_entries", 610),
    ];
    outcome.scheme_counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
    outcome
}

/// A paper's FIFO of 64 entries, built `built.0` times with `built.1` entries.
fn cost(name: &'static str, built: (u32, u32)) -> StorageCost {
    StorageCost { name, entries: 64, area_um2: 5_000.0, read_pj: 3.0, write_pj: 4.5, built, source: "a paper" }
}

#[test]
fn barriers_fifos_and_costs_are_told() {
    let storage = [cost("l1", (15, 32)), cost("l2", (6, 128))];
    let Explanation { text, data } = explain(&run(), &storage).unwrap();
    let (table, told) = text.split_once("\n\n  barrier ").unwrap();
    assert_eq!(told.lines().count(), LEGEND.len());
    // Each word of a header is explained below.
    for word in ["passes", "mean stall", "ns", "entries a marker", "own", "of others", "share", "early", "written"] {
        assert!(LEGEND.iter().any(|(what, _)| what.split(", ").any(|name| name == word)), "{word}");
    }
    assert_eq!(
        cells(table),
        [
            "nvw-fifo on small",
            "barrier|passes|mean stall|ns|L1 markers|entries a marker|own|of others|share",
            "pm.barrier.wi|24|52.5|37.5|25|1.9|30|18|37.5 %",
            "pm.barrier.wg|16|245.0|175.0|12|8.0|70|26|27.1 %",
            "pm.barrier.kr|0|-|-|0|-|0|0|-",
            "",
            "FIFO|markers|entries a marker|own|of others|share|early|left by themselves|written",
            "L1|37|3.9|100|44|30.6 %|11|13|400",
            "L2|50|4.0|90|110|55.0 %|17|19|700",
            "",
            "the L1s of this machine do not combine stores: nothing is dirty there, and their FIFOs stay empty",
            "15 L1 FIFOs of 32 entries: 37500 µm², 2.7 nJ",
            "6 L2 FIFOs of 128 entries: 60000 µm², 5.0 nJ",
            "area and energy: a paper; area scaled linearly with entries and FIFOs",
        ]
    );
    let numbers = |of: &str, keys: &[&str]| -> Vec<serde_json::Value> {
        data[of].as_array().unwrap().iter().flat_map(|one| keys.iter().map(|key| one[*key].clone())).collect()
    };
    assert_eq!(numbers("costs", &["area_um2", "energy_pj"]), [37_500.0, 2_700.0, 60_000.0, 4_980.0]);
    assert_eq!(numbers("fifos", &["read_entries", "written_entries"]), [300, 400, 610, 700]);
    assert_eq!(numbers("scopes", &["stall_cycles"]), [1_260, 3_920, 0]);
}

#[test]
fn a_combining_l1_tells_which_lines_left_it() {
    let mut outcome = run();
    let combine = durawarp_simulation::outcome::Parameter { value: "combine".into(), source: "a paper".to_owned() };
    outcome.machine.parameters.insert("l1.writes".to_owned(), combine);
    let text = explain(&outcome, &[]).unwrap().text;
    assert!(text.contains("  315 lines left the L1s, 48 of them because an S-FIFO was full\n"), "{text}");
    assert!(!text.contains("do not combine") && !text.contains("area and energy"));
}
