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
fn a_program_of_cpus_is_shown_with_its_boundaries_and_a_run() {
    let file = folder("regions").join("program.json");
    let path = file.to_str().unwrap();
    let output = durawarp(&["regions", "hash", "--machine", "lightwsp-cpu", "--json", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for word in ["behind a fence or atomic", "threshold 32", "91.33", "RV64 programs of ours", "on `lightwsp-cpu`"] {
        assert!(shown.contains(word), "no `{word}` in:\n{shown}");
    }
    let read = || -> serde_json::Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let run = &read()["run"];
    let by_reason: u64 = run["regions_by_reason"].as_array().unwrap().iter().map(|row| row[1].as_u64().unwrap()).sum();
    assert_eq!(Some(by_reason), run["regions"].as_u64());
    assert!(run["most_stores_of_a_region"].as_u64().unwrap() <= 32);
    let added = run["instructions"].as_u64().unwrap() - run["original_instructions"].as_u64().unwrap();
    assert_eq!(added, by_reason + run["checkpoints"].as_u64().unwrap());
    // A smaller threshold makes more regions.
    let small =
        ["regions", "hash", "--threshold", "8", "--no-unroll", "--no-prune", "--paper-sync", "-q", "--json", path];
    assert!(durawarp(&small).status.success());
    assert!(read()["run"]["regions"].as_u64().unwrap() > by_reason);
    let work = text(&durawarp(&["regions", "hash", "--function", "work"]).stdout);
    assert!(work.contains("a function returns") && work.contains("stored if it was written"), "{work}");
}

#[test]
fn a_stripped_program_and_what_only_kernels_have_are_refused() {
    let file = folder("regions_stripped").join("stripped.elf");
    let mut bytes = std::fs::read("workloads/hash/hash.elf").unwrap();
    // Place, number and names of the table of sections, without which there are no symbols.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    std::fs::write(&file, bytes).unwrap();
    ended(&durawarp(&["regions", file.to_str().unwrap()]), 2, &["needs a symbol table"]);
    ended(&durawarp(&["regions", "hash", "--uniform-once"]), 2, &["--uniform-once", "kernels of GPUs"]);
    ended(&durawarp(&["regions", "hash", "--threshold", "3"]), 2, &["a threshold of 3 stores is too small"]);
    ended(&durawarp(&["regions", "hash", "--function", "wrok"]), 2, &["no function `wrok`", "did you mean `work`?"]);
    ended(&durawarp(&["regions", "hash", "--machine", "agpm-table4"]), 2, &[]);
    ended(&durawarp(&["regions", "gemm", "--machine", "agpm-table4"]), 2, &["do not depend on a machine"]);
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
