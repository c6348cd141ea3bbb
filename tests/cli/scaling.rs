//! Threads that are predicted: `durawarp scaling`, and `--threads auto`.

use crate::cli_common::{durawarp, durawarp_in, ended, sweep_folder};

#[test]
fn a_prediction_names_threads_what_bounds_them_and_the_heaviest_components() {
    let output = durawarp(&["scaling", "gemm_tiled", "--profile", "ci", "--threads", "1,2,64", "--json", "-", "-q"]);
    let report: serde_json::Value = serde_json::from_str(&ended(&output, 0, &[])).unwrap();
    let rows = report["threads"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["threads"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 64]);
    assert_eq!((rows[0]["speed_up_clipped"].as_f64(), rows[0]["bound_by"].as_str()), (Some(1.0), None));
    for row in rows {
        let shares = ["even", "component", "windows", "placement", "barrier", "alone"];
        let all: f64 = shares.iter().map(|share| row[share].as_f64().unwrap()).sum();
        assert!((all - 1.0).abs() < 1e-9, "{row}");
        let (speed_up, threads) = (row["speed_up_events"].as_f64().unwrap(), row["threads"].as_f64().unwrap());
        assert!(speed_up >= 0.99 && speed_up <= threads, "{row}");
    }
    // Nine CTAs of 64 x 64 on 20 SMs: two thirds of the machine are idle.
    let heaviest = report["heaviest"].as_array().unwrap();
    assert!(heaviest[0]["components"].as_str().unwrap().starts_with("sm"), "{report}");
    assert!(heaviest[0]["share"].as_f64() >= heaviest[1]["share"].as_f64());
    assert!([1, 2, 64].contains(&report["advised_threads"].as_u64().unwrap()));
}

#[test]
fn machines_of_cores_and_schemes_are_predicted_too() {
    let table = ended(&durawarp(&["scaling", "spin_counter", "--profile", "ci"]), 0, &["heaviest: ", "bound by"]);
    assert!(table.starts_with("spin_counter (ci) on lightwsp-cpu, scheme base: traced on one thread, "), "{table}");
    // Of up to 64 threads, whatever this host has, with what no run on it can tell.
    let rows = table.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok());
    assert_eq!(rows.collect::<Vec<_>>(), [2, 4, 8, 16, 32, 64], "{table}");
    assert!(table.contains("\nassumed: every core as fast") && table.contains("speed-ups are upper bounds"), "{table}");
    ended(&durawarp(&["scaling", "vecadd", "--scheme", "strict", "--profile", "ci"]), 0, &["scheme strict"]);
}

#[test]
fn threads_that_are_chosen_change_no_result() {
    let digest = |threads: &str| {
        let output = durawarp(&["run", "bfs", "--profile", "ci", "--threads", threads, "-q", "--json", "-"]);
        let outcome: serde_json::Value = serde_json::from_str(&ended(&output, 0, &[])).unwrap();
        (outcome["digest"].clone(), outcome["memory_digest"].clone(), outcome["time"].clone())
    };
    assert_eq!(digest("auto"), digest("1"));
    let spec = "schema = 1\nname = \"auto\"\n[base]\nworkload = \"vecadd\"\nprofile = \"ci\"\n[[axis]]\nkey = \"seed\"\nvalues = [1, 2]\n";
    let folder = sweep_folder("cli/auto", spec);
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "--threads", "auto", "--jobs", "4"]), 0, &[]);
}

#[test]
fn numbers_of_threads_that_make_no_sense_are_told() {
    ended(&durawarp(&["scaling", "vecadd", "--threads", "0"]), 2, &["expected a number from 1 to 1024"]);
    ended(&durawarp(&["run", "vecadd", "--threads", "many"]), 2, &["expected a number from 0 to 4096, or auto"]);
    ended(&durawarp(&["sweep", "run", "spec.toml", "--threads", "3"]), 2, &["share", "auto"]);
}
