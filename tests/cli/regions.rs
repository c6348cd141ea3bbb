//! `durawarp regions` as a user meets it.

use crate::cli_common::{durawarp, ended, folder, text};

#[test]
fn a_workload_is_shown_with_means_of_its_run_beside_the_papers() {
    let file = folder("regions").join("regions.json");
    let path = file.to_str().unwrap();
    let output = durawarp(&["regions", "gemm", "--json", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for word in ["a loop stores", "91.33", "11.29", "+7.03 %", "port to GPU kernels", "more instructions"] {
        assert!(shown.contains(word), "no `{word}` in:\n{shown}");
    }
    let read = || -> serde_json::Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let unrolled = read();
    assert_eq!(unrolled["same_memory"], true);
    let run = &unrolled["kernels"][0]["run"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let mean = number(&run["instructions"]) / number(&run["regions"]);
    assert_eq!(number(&unrolled["means"]["instructions_per_region"]), mean);
    assert!(number(&run["instructions"]) > number(&run["original_instructions"]));
    let quiet = durawarp(&["regions", "gemm", "--no-unroll", "--no-prune", "-q", "--json", path]);
    assert!(quiet.status.success() && quiet.stdout.is_empty());
    let plain = read();
    assert_eq!((&plain["options"]["prune"], &plain["options"]["speculative_unroll"]), (&false.into(), &false.into()));
    assert!(number(&plain["kernels"][0]["run"]["regions"]) > number(&run["regions"]));
    assert!(number(&plain["kernels"][0]["run"]["checkpoints"]) > number(&run["checkpoints"]));
    assert!(durawarp(&["regions", "gemm", "--uniform-once", "-q", "--json", path]).status.success());
    let once = &read()["kernels"][0]["run"];
    assert_eq!(once["checkpoints"], run["checkpoints"]);
    assert!(number(&once["checkpoint_bytes"]) < number(&run["checkpoint_bytes"]));
}

#[test]
fn a_ptx_file_is_shown_without_a_run() {
    let output = durawarp(&["regions", "workloads/gemm_tiled/kernel.ptx", "--threshold", "16"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("before a fence, barrier or atomic") && !shown.contains("cannot be resumed"), "{shown}");
    let bare = text(&durawarp(&["regions", "workloads/gemm_tiled/kernel.ptx", "--global-only"]).stdout);
    assert!(bare.contains("shared memory is not saved; barriers are not counted"), "{bare}");
    assert!(!shown.contains("91.33"), "there are no means of a run: {shown}");
}

#[test]
fn what_shared_memory_and_barriers_cost_is_shown() {
    let shown = text(&durawarp(&["regions", "histogram", "--profile", "ci"]).stdout);
    assert!(shown.contains("and 2 shadows;") && shown.contains("counts of barriers: "), "{shown}");
}

#[test]
fn wrong_input_is_told_with_what_would_be_right() {
    let fails = |arguments: &[&str], words: &[&str]| {
        let output = durawarp(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        words.iter().for_each(|word| assert!(error.contains(word), "no `{word}` in:\n{error}"));
    };
    fails(&["regions", "gemm", "--kernel", "gem"], &["no kernel `gem`", "did you mean `gemm`?"]);
    fails(&["regions", "gemm", "--threshold", "1"], &["a threshold of 1 stores is too small"]);
    fails(&["regions", "nosuch.ptx"], &["cannot read `nosuch.ptx`"]);
    fails(&["regions", "workloads/gemm/kernel.ptx", "--profile", "ci"], &["a PTX file has no profiles"]);
}

#[test]
fn what_light_wsp_cannot_do_is_refused_before_a_run_all_at_once() {
    let set = ["--set", "persist.domain=media", "--set", "light_wsp.id_bits=4", "--profile", "ci"];
    let words =
        ["persist.domain", "\"adr\"", "light_wsp.id_bits", "7 IDs in use at a time, less than one for each of 20 SMs"];
    for command in ["run", "crash", "check"] {
        let arguments = [&[command, "vecadd", "--scheme", "light-wsp"][..], &set].concat();
        ended(&durawarp(&arguments), 2, &words);
    }
    ended(
        &durawarp(&["run", "vecadd", "--scheme", "light-wsp", "--profile", "ci", "--set", "light_wsp.id_bits=6"]),
        0,
        &[],
    );
}
