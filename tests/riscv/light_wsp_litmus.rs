//! Litmus programs of CPUs under `light-wsp`: each holds at every power failure as it is, and what the paper's
//! own search of buffers, or none, gets wrong is found.

use durawarp::crash::{CrashRequest, JudgedLevel};
use durawarp::run::{Conduct, run_cpu};
use durawarp::workload::Workload;

use crate::light_wsp::{crash, experiment};

/// A slow persist path and a shared cache of 64 KiB, with a DRAM cache of so many MiB.
fn small_caches<'a>(snoop: &'a str, victims: &'a str, dram_cache_mb: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("light_wsp.path_mb_s", "10"),
        ("llc.slice_kb", "8"),
        ("light_wsp.snoop", snoop),
        ("light_wsp.victims", victims),
        ("dram_cache.mb", dram_cache_mb),
    ]
}

/// How a program says that it has read an old word.
const STALE: &str = "wrong: a word that was written before it was read\n";

/// What it says with these caches, and whether lines were dropped.
fn says(name: &str, snoop: &str, victims: &str, dram_cache_mb: &str) -> (String, bool) {
    says_with(name, &small_caches(snoop, victims, dram_cache_mb), dram_cache_mb)
}

fn says_with(name: &str, set: &[(&str, &str)], dram_cache_mb: &str) -> (String, bool) {
    let experiment = experiment(name, set);
    let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
    let dropped = match dram_cache_mb {
        "0" => outcome.total("llc", "dropped_lines"),
        _ => outcome.total("dram_cache", "dirty_victims"),
    };
    let process = outcome.process.expect("it has ended");
    assert_eq!(process.exit_code, Some(i32::from(!process.stdout.is_empty())), "{name}: {}", process.stdout);
    (process.stdout, dropped > 0)
}

#[test]
fn every_program_is_built_in_by_its_name_and_holds_at_every_power_failure() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/litmus/cpu");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let mut names: Vec<String> =
        files.map(|path| format!("litmus/cpu/{}", path.file_stem().unwrap().display())).collect();
    names.sort();
    let listed: Vec<String> = Workload::litmus_of_cpus().into_iter().map(|listing| listing.name).collect();
    assert_eq!(listed, names);
    for name in names {
        let mut set = small_caches("count", "full", "1").to_vec();
        if name.ends_with("region_overflow") {
            set.push(("light_wsp.threshold_stores", "256"));
        }
        let experiment = experiment(&name, &set);
        let report = crash(&experiment, &CrashRequest { resume: 4, ..CrashRequest::default() });
        assert!(report.holds(), "{name}: {report:#?}");
        if name.ends_with("region_overflow") {
            let counters = run_cpu(&experiment, &Conduct::default()).outcome.scheme_counters;
            assert!(counters["wpq_overflows"] > 0 && counters["wpq_spilled_stores"] > 200, "{counters:?}");
        }
    }
}

#[test]
fn a_line_that_went_to_another_core_is_read_stale_where_l1s_search_their_own_buffers_alone() {
    // Its stores are one region. Two regions of 32 showed it while a boundary took an entry of the path; since
    // then they do not, and it was not looked into why.
    let set = |snoop, mb| {
        let caches = small_caches(snoop, "full", mb);
        [&caches[..], &[("light_wsp.threshold_stores", "64")]].concat()
    };
    let ends = |snoop, mb| says_with("litmus/cpu/migrated_line", &set(snoop, mb), mb);
    assert_eq!(ends("feb", "0"), (STALE.to_owned(), true));
    for mb in ["0", "1"] {
        assert_eq!(ends("count", mb).0, "", "a DRAM cache of {mb} MiB");
    }
    // A DRAM cache that has room for all keeps what the shared cache drops.
    assert_eq!(ends("feb", "16"), (String::new(), false));
    let experiment = experiment("litmus/cpu/migrated_line", &set("feb", "0"));
    let report = crash(&experiment, &CrashRequest { resume: 4, ..CrashRequest::default() });
    assert!(!report.holds() && report.level(JudgedLevel::Resumed).is_some_and(|resume| resume.verdict.failed > 0));
}

#[test]
fn a_line_of_one_core_is_read_stale_where_nobody_searches() {
    for mb in ["0", "1"] {
        let ends = |snoop, victims| says("litmus/cpu/lightwsp_fig6", snoop, victims, mb).0;
        for (snoop, victims) in
            [("count", "full"), ("count", "zero"), ("feb", "full"), ("feb", "half"), ("feb", "zero")]
        {
            assert_eq!(ends(snoop, victims), "", "{snoop}, {victims}, a DRAM cache of {mb} MiB");
        }
        for snoop in ["count", "feb"] {
            assert_eq!(ends(snoop, "stale"), STALE, "{snoop}, a DRAM cache of {mb} MiB");
        }
    }
}

/// With the boundaries that the paper's compiler has on x86 a region goes on over a load that acquires.
#[test]
fn what_a_load_has_seen_commits_before_its_store_where_only_atomics_and_fences_end_regions() {
    let ends = |boundary_at| {
        let experiment = experiment("litmus/cpu/seen_flag", &[("light_wsp.boundary_at", boundary_at)]);
        let report = crash(&experiment, &CrashRequest::default());
        let resumed = report.level(JudgedLevel::Resumed).map_or(0, |resumed| resumed.verdict.failed);
        (report.holds(), resumed > 0)
    };
    assert_eq!(["x86", "acquires", "fences"].map(ends), [(false, true), (true, false), (true, false)]);
}
