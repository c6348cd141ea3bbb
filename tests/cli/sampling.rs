//! Sampled runs: estimates that say so, exact where nothing is skipped, refused where they make no sense.

use serde_json::Value;

use crate::cli_common::{durawarp, durawarp_in, ended, sweep_folder};

/// The outcome of a run.
fn outcome(arguments: &[&str]) -> Value {
    let output = durawarp(&[&["run"], arguments, &["-q", "--json", "-"]].concat());
    serde_json::from_str(&ended(&output, 0, &[])).unwrap()
}

fn cycles(of: &Value) -> u64 {
    of["core_cycles"].as_u64().unwrap()
}

/// Launches of many waves, in a second: one small SM with an L2 of 64 KiB.
const MANY_WAVES: [&str; 6] = [
    "vecadd",
    "--set=sm.count=1",
    "--set=l2.slice_kb=4",
    "--set=params.N=262144",
    "--profile=default",
    "--no-reference",
];

#[test]
fn where_nothing_is_worth_skipping_a_sampled_run_is_exact_and_says_so() {
    let run = ["gemm", "--profile", "ci"];
    let (whole, sampled) = (outcome(&run), outcome(&[&run[..], &["--sample"]].concat()));
    assert_eq!((&sampled["time"], &sampled["memory_digest"]), (&whole["time"], &whole["memory_digest"]));
    assert_eq!(sampled["launches"], whole["launches"]);
    assert_eq!((cycles(&sampled["sampling"]["low"]), cycles(&sampled["sampling"]["high"])), (18_166, 18_166));
    assert_eq!(sampled["validity"][0]["kind"], "sampled");
    assert!(sampled["validity"][0]["text"].as_str().unwrap().contains("nothing was worth skipping"));
    assert!(whole.get("sampling").is_none());
}

#[test]
fn waves_between_samples_are_predicted_and_values_stay_right() {
    let (whole, sampled) = (outcome(&MANY_WAVES), outcome(&[&MANY_WAVES[..], &["--sample"]].concat()));
    assert_eq!(sampled["memory_digest"], whole["memory_digest"]);
    let sampling = &sampled["sampling"];
    let (low, estimate, high) = (cycles(&sampling["low"]), cycles(&sampled["time"]), cycles(&sampling["high"]));
    assert!(low < estimate && estimate < high, "{sampling}");
    let truth = cycles(&whole["time"]);
    assert!((low..=high).contains(&truth), "{low} to {high} for {truth}");
    assert!(estimate.abs_diff(truth) < truth / 20, "{estimate} for {truth}");
    let count = |key: &str| sampling[key].as_u64().unwrap();
    assert_eq!((count("ctas"), count("windows"), &sampling["kernels"][0]["cut"]), (1024, 4, &1.into()));
    assert!(count("warp_instructions_in_detail") < count("warp_instructions"));
    // Counters are scaled up to the whole program: its instructions are known.
    let total = |outcome: &Value| -> u64 {
        let sm = &outcome["counters"].as_array().unwrap()[0];
        let at = sm["names"].as_array().unwrap().iter().position(|name| name == "warp_instructions").unwrap();
        sm["rows"].as_array().unwrap().iter().map(|row| row[at].as_u64().unwrap()).sum()
    };
    assert_eq!(total(&sampled), total(&whole));
    assert!(sampled["persists"].is_null());
}

#[test]
fn a_sampled_run_is_the_same_at_any_number_of_threads_and_tells_of_itself() {
    let at = |threads: &str| outcome(&[&MANY_WAVES[..], &["--sample=3", "--threads", threads]].concat());
    let (one, two) = (at("1"), at("2"));
    for key in ["time", "sampling", "counters", "digest"] {
        assert_eq!(one[key], two[key], "{key}");
    }
    let output = durawarp(&[&["run"], &MANY_WAVES[..], &["--sample=3"]].concat());
    ended(
        &output,
        0,
        &["estimated, sampled  ", " (95 % confidence)", "sampled: ", " of 1024 CTAs were simulated in detail"],
    );
}

#[test]
fn launches_that_are_cut_leave_the_machine_with_the_programs_memory() {
    let triad = ["stream_triad", "--set=sm.count=1", "--set=l2.slice_kb=4", "--no-reference"];
    let triad = [&triad[..], &["--set=params.N=262144", "--set=params.REPEAT=4"]].concat();
    let (whole, sampled) = (outcome(&triad), outcome(&[&triad[..], &["--sample"]].concat()));
    let kernel = &sampled["sampling"]["kernels"][0];
    assert_eq!(["launches", "in_detail", "cut"].map(|key| kernel[key].as_u64().unwrap()), [4, 3, 3]);
    let [low, high] = ["low", "high"].map(|end| cycles(&sampled["sampling"][end]));
    let truth = cycles(&whole["time"]);
    assert!((low..=high).contains(&truth), "{low} to {high} for {truth}");
    assert_eq!(sampled["memory_digest"], whole["memory_digest"]);
    assert_eq!(sampled["verification"]["passed"], true);
}

#[test]
fn launches_of_one_kernel_are_sampled_ever_more_rarely() {
    let triad = ["stream_triad", "--set=params.N=131072", "--set=params.REPEAT=20", "--no-reference"];
    let (whole, sampled) = (outcome(&triad), outcome(&[&triad[..], &["--sample"]].concat()));
    let kernel = &sampled["sampling"]["kernels"][0];
    let [launches, detail, cut] = ["launches", "in_detail", "cut"].map(|key| kernel[key].as_u64().unwrap());
    assert_eq!((launches, cut, sampled["launches"].as_array().unwrap().len()), (20, 0, 20));
    assert!((5..15).contains(&detail), "{kernel}");
    let (estimate, truth) = (cycles(&sampled["time"]), cycles(&whole["time"]));
    assert!(estimate.abs_diff(truth) < truth / 10, "{estimate} for {truth}");
    assert_eq!(sampled["memory_digest"], whole["memory_digest"]);
}

#[test]
fn kernels_whose_ctas_may_wait_are_run_whole_and_named() {
    let sampled = outcome(&["bplus_tree", "--profile", "ci", "--sample"]);
    let text = sampled["validity"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("launches of `bplus_tree_insert` are not cut: its CTAs meet at persist barriers of the kernel"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let refused = |arguments: &[&str], words: &[&str]| {
        ended(&durawarp(&[&["run"], arguments, &["--sample"]].concat()), 2, words);
    };
    refused(&["vecadd", "--scheme", "light-wsp", "--profile", "ci"], &["`light-wsp`", "recoverable regions"]);
    refused(&["spin_counter", "--profile", "ci"], &["`spin_counter` has 4 threads", "its threads wait for each other"]);
    refused(&["vecadd", "--max-cycles", "10"], &["--max-cycles"]);
    refused(&["vecadd", "--timeline", "x.json"], &["--timeline"]);
    ended(&durawarp(&["run", "vecadd", "--sample=1"]), 2, &["2..=64"]);
    ended(&durawarp(&["crash", "vecadd", "--sample"]), 2, &["--sample"]);
}

#[test]
fn sweeps_keep_sampled_results_by_themselves() {
    let spec = "schema = 1\nname = \"s\"\nmetrics = [\"cycles\", \"cycles_low\", \"persists.count\"]\n[base]\nworkload = \"vecadd\"\n\
                profile = \"ci\"\n[[axis]]\nkey = \"seed\"\nvalues = [1, 2]\n";
    let folder = sweep_folder("cli/sampled", spec);
    std::fs::write(folder.join("sampled.toml"), spec.replace("[base]", "[base]\nsample = 4")).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml"]), 0, &["2 to run"]);
    ended(&durawarp_in(&folder, &["sweep", "run", "sampled.toml"]), 0, &["2 to run"]);
    ended(&durawarp_in(&folder, &["sweep", "run", "sampled.toml"]), 0, &["0 to run"]);
    let table = ended(&durawarp_in(&folder, &["sweep", "table", "sampled.toml", "--wide"]), 0, &[]);
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].contains("cycles_low") && rows[1].contains("sampled"), "{table}");
    std::fs::write(folder.join("wrong.toml"), spec.replace("[base]", "[base]\nsample = 1")).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "wrong.toml"]), 2, &["a whole number from 2 to 64"]);
}
