//! `--compat accelsim` is read by the patterns and the rules of Accel-Sim's own collecting script.
//!
//! The patterns are facts: those of `util/job_launching/stats/example_stats.yml` (release of April 2022). The rules are
//! those of `get_stats.py` beside it: a file without the exit line is skipped; `kernel_name` begins a launch; values that
//! add up are counted by their growth, all others are the launch's own.

use std::collections::BTreeMap;

use regex::bytes::{Regex, RegexBuilder};

use crate::cli_common::{durawarp, durawarp_in, ended, folder, text};

const AGGREGATE: [&str; 16] = [
    r"gpu_tot_sim_insn\s*=\s*(.*)",
    r"gpgpu_simulation_time\s*=.*\(([0-9]+) sec\).*",
    r"gpu_tot_sim_cycle\s*=\s*(.*)",
    r"\s+L2_cache_stats_breakdown\[GLOBAL_ACC_R\]\[HIT\]\s*=\s*(.*)",
    r"\s+L2_cache_stats_breakdown\[GLOBAL_ACC_R\]\[TOTAL_ACCESS\]\s*=\s*(.*)",
    r"\s+L2_cache_stats_breakdown\[GLOBAL_ACC_W\]\[HIT\]\s*=\s*(.*)",
    r"\s+L2_cache_stats_breakdown\[GLOBAL_ACC_W\]\[TOTAL_ACCESS\]\s*=\s*(.*)",
    r"\s+Total_core_cache_stats_breakdown\[GLOBAL_ACC_R\]\[TOTAL_ACCESS\]\s*=\s*(.*)",
    r"\s+Total_core_cache_stats_breakdown\[GLOBAL_ACC_R\]\[HIT\]\s*=\s*(.*)",
    r"\s+Total_core_cache_stats_breakdown\[GLOBAL_ACC_W\]\[HIT\]\s*=\s*(.*)",
    r"\s+Total_core_cache_stats_breakdown\[GLOBAL_ACC_W\]\[TOTAL_ACCESS\]\s*=\s*(.*)",
    r"\s+Total_core_cache_stats_breakdown\[GLOBAL_ACC_R\]\[MSHR_HIT\]\s*=\s*(.*)",
    r"gpgpu_n_tot_w_icount\s*=\s*(.*)",
    r"total dram reads\s*=\s*(.*)",
    r"total dram writes\s*=\s*(.*)",
    r"kernel_launch_uid\s*=\s*(.*)",
];

const OTHERS: [&str; 7] = [
    r"gpu_ipc\s*=\s*(.*)",
    r"gpu_occupancy\s*=\s*(.*)%",
    r"L2_BW\s*=\s*(.*)+GB\/Sec",
    r"gpgpu_simulation_rate\s+=\s+(.*)\s+\(inst\/sec\)",
    r"gpgpu_simulation_rate\s+=\s+(.*)\s+\(cycle\/sec\)",
    r"gpgpu_silicon_slowdown\s*=\s*(.*)x",
    r"gpu_tot_ipc\s*=\s*(.*)",
];

/// Of ASCII: classes of characters need no tables.
fn compiled(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().unwrap()
}

/// The value of a pattern in a line. Its last group may be empty, as that of `(.*)+`: any number of the match counts.
fn value(pattern: &Regex, line: &str) -> Option<f64> {
    let found = pattern.captures(line.as_bytes())?;
    let group = |number| found.get(number).map_or("", |group| std::str::from_utf8(group.as_bytes()).unwrap().trim());
    let own = group(1).parse().ok();
    let any = || group(0).split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| word.parse().ok());
    Some(own.or_else(any).unwrap_or_else(|| panic!("`{line}` has no number for {pattern}")))
}

/// Each launch by its name, and the values of each pattern that the script gives it.
fn by_launch(text: &str) -> Vec<(String, BTreeMap<&'static str, f64>)> {
    let compiled = |pattern: &&'static str| (*pattern, compiled(pattern));
    let aggregate: Vec<_> = AGGREGATE.iter().map(compiled).collect();
    let others: Vec<_> = OTHERS.iter().map(compiled).collect();
    let (mut launches, mut last) = (Vec::<(String, BTreeMap<_, _>)>::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("kernel_name = ") {
            launches.push((name.to_owned(), BTreeMap::new()));
        }
        let Some((_, values)) = launches.last_mut() else { continue };
        for (pattern, regex) in &aggregate {
            if let Some(value) = value(regex, line) {
                let before = last.insert(*pattern, value).unwrap_or(0.0);
                *values.entry(*pattern).or_default() += value - before;
            }
        }
        for (pattern, regex) in &others {
            if let Some(value) = value(regex, line) {
                values.insert(*pattern, value);
            }
        }
    }
    launches
}

/// A name that no counter has would be printed as 0.
#[test]
fn what_is_summed_under_gpgpu_sims_names_are_counters() {
    let known: Vec<String> = durawarp::run::counter_descriptions()
        .into_iter()
        .flat_map(|(kind, described)| described.iter().map(move |one| format!("{kind}.{}", one.name)))
        .collect();
    let (code, _) = include_str!("../../crates/studies/src/report/accelsim.rs").split_once("#[cfg(test)]").unwrap();
    let summed: Vec<&str> = code
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| ["sm.", "l2.", "memory_controller."].iter().any(|kind| text.starts_with(kind)))
        .collect();
    assert!(summed.len() > 20, "{summed:?}");
    for name in summed {
        // The media and ways of a formatted name.
        for (medium, way) in [("dram", "read"), ("dram", "written"), ("nvm", "read"), ("nvm", "written")] {
            let name = name.replace("{medium}", medium).replace("{way}", way);
            assert!(known.contains(&name), "no counter {name}");
        }
    }
}

#[test]
fn every_pattern_of_accel_sims_script_has_a_value_for_each_launch() {
    let folder = folder("cli_compat");
    let run =
        ["run", "atax", "--profile", "ci", "--machine", "volta-v100", "--compat", "accelsim", "--json", "it.json"];
    let told = ended(&durawarp_in(&folder, &run), 0, &[]);
    // Of the first lines one names the build, of the last one says that it ended.
    let build = compiled(r"^.*GPGPU-Sim.*\[build\s+(.*)\].*");
    assert!(build.is_match(told.lines().next().unwrap().as_bytes()), "{told}");
    assert_eq!(told.lines().last(), Some("GPGPU-Sim: *** exit detected ***"));
    let launches = by_launch(&told);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("it.json")).unwrap()).unwrap();
    let of_json = json["launches"].as_array().unwrap();
    assert!(launches.len() == of_json.len() && launches.len() > 1, "{told}");
    for ((name, values), launch) in launches.iter().zip(of_json) {
        assert_eq!(name, launch["kernel"].as_str().unwrap());
        for pattern in AGGREGATE.iter().chain(&OTHERS) {
            assert!(values.contains_key(pattern), "{name} has no value for {pattern}:\n{told}");
        }
        // Both say the same of a launch.
        let counters = &launch["counters"];
        let count = |names: &[&str]| names.iter().map(|name| counters[*name].as_f64().unwrap()).sum::<f64>();
        for (pattern, names) in [
            (AGGREGATE[0], &["sm.thread_instructions"][..]),
            (AGGREGATE[3], &["l2.read_hits", "l2.atomic_hits"]),
            (AGGREGATE[6], &["l2.writes"]),
            (AGGREGATE[7], &["sm.l1_loads"]),
            (AGGREGATE[12], &["sm.warp_instructions"]),
        ] {
            assert_eq!(values[pattern], count(names), "{name}: {pattern}");
        }
        assert!((0.0..=100.0).contains(&values[OTHERS[1]]) && values[OTHERS[2]] > 0.0, "{name}: {values:?}");
    }
    // What the script adds up is the run's.
    let total = |kind: &str, name: &str| {
        let tables = json["counters"].as_array().unwrap();
        let table = tables.iter().find(|table| table["kind"] == kind).unwrap();
        let column = table["names"].as_array().unwrap().iter().position(|own| own == name).unwrap();
        table["rows"].as_array().unwrap().iter().map(|row| row[column].as_f64().unwrap()).sum::<f64>()
    };
    let sum = |pattern: &str| launches.iter().map(|(_, values)| values[pattern]).sum::<f64>();
    assert_eq!(sum(AGGREGATE[0]), total("sm", "thread_instructions"));
    assert_eq!(sum(AGGREGATE[2]), json["time"]["core_cycles"].as_f64().unwrap());
    assert_eq!(sum(AGGREGATE[4]), total("l2", "reads") + total("l2", "atomics"));
    assert_eq!(sum(AGGREGATE[12]), total("sm", "warp_instructions"));
    let moved = ["dram_read_bytes", "nvm_read_bytes"].map(|name| total("memory_controller", name));
    assert_eq!(sum(AGGREGATE[13]), (moved.iter().sum::<f64>() / 32.0).floor());
}

#[test]
fn a_run_that_failed_is_skipped_by_the_script_and_one_of_cpus_has_no_such_counters() {
    let cut = durawarp(&["run", "vecadd", "--profile", "ci", "--compat", "accelsim", "--max-cycles", "1500"]);
    let told = ended(&cut, 0, &["GPGPU-Sim: ** break due to reaching the maximum cycles (or instructions) **"]);
    assert!(told.contains("\nGPGPU-Sim: *** exit detected ***"), "{told}");
    let cpus = durawarp(&["run", "hash", "--profile", "ci", "--compat", "accelsim"]);
    assert_eq!(cpus.status.code(), Some(2), "{}", text(&cpus.stderr));
}

#[test]
fn a_table_and_the_json_count_by_launch_where_that_is_asked_for() {
    let folder = folder("cli_launches");
    let run = ["run", "atax", "--profile", "ci", "--launches", "--json", "it.json"];
    let told = ended(&durawarp_in(&folder, &run), 0, &["Counted by launch", "after the last"]);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("it.json")).unwrap()).unwrap();
    for (number, launch) in (1..).zip(json["launches"].as_array().unwrap()) {
        let counters = launch["counters"].as_object().unwrap();
        assert!(counters.len() > 80, "every counter of every kind: {}", counters.len());
        let start = format!("{number} {} {}", launch["kernel"].as_str().unwrap(), counters["sm.warp_instructions"]);
        let rows: Vec<String> = told.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(rows.iter().any(|row| row.starts_with(&start)), "no `{start}` in {told}");
    }
    // Without it a result is as before.
    ended(&durawarp_in(&folder, &["run", "atax", "--profile", "ci", "--json", "it.json"]), 0, &[]);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("it.json")).unwrap()).unwrap();
    assert!(json["launches"][0].get("counters").is_none() && json["host"].get("launches_s").is_none());
}

#[test]
fn a_sweep_has_a_row_a_launch_with_its_counters() {
    let folder = folder("cli_launches_of_a_sweep");
    let sweep = |launches: &str| {
        format!(
            "schema = 1\nname = \"it\"\n[base]\nworkload = \"atax\"\nprofile = \"ci\"\n{launches}[[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"strict\"]\n"
        )
    };
    std::fs::write(folder.join("with.toml"), sweep("launches = true\n")).unwrap();
    std::fs::write(folder.join("without.toml"), sweep("")).unwrap();
    for file in ["with.toml", "without.toml"] {
        // Results with counters by launch are others: neither stands for the other.
        ended(&durawarp_in(&folder, &["sweep", "run", file]), 0, &["done 2 (0 cached)"]);
    }
    let table = |file: &str| {
        let shown = durawarp_in(&folder, &["sweep", "table", file, "--launches"]);
        let note = text(&shown.stderr);
        (ended(&shown, 0, &[]), note)
    };
    let (with, note) = table("with.toml");
    assert!(!note.contains("launches = true"), "{note}");
    let rows: Vec<Vec<&str>> = with.lines().map(|line| line.trim_end().split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|own| *own == name).unwrap_or_else(|| panic!("{name}: {with}"));
    assert_eq!(rows.len(), 1 + 2 * 2, "two launches of two points: {with}");
    let instructions: Vec<u64> =
        rows[1..].iter().map(|row| row[column("sm.warp_instructions")].parse().unwrap()).collect();
    assert_eq!(instructions[..2], instructions[2..], "schemes execute the same program");
    assert!(instructions.iter().all(|&count| count > 0) && rows[1][column("launch")] == "1", "{with}");
    let (without, note) = table("without.toml");
    assert!(note.contains("has no `launches = true`") && !without.contains("sm.warp_instructions"), "{note}{without}");
    assert_eq!(without.lines().count(), 5, "{without}");
}
