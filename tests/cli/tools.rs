//! Tools beside the simulations: two runs compared, what the host offers, completions, manual pages.

use crate::cli_common::{durawarp, ended, folder, text};

#[test]
fn two_runs_are_compared_by_what_they_were_and_what_came_of_them() {
    let folder = folder("cli/diff");
    let run = |name: &str, set: &[&str]| {
        let file = folder.join(name).display().to_string();
        let run = ["run", "vecadd", "--profile", "ci", "-q", "--json", &file];
        assert_eq!(durawarp(&[&run[..], set].concat()).status.code(), Some(0));
        file
    };
    let (usual, again) = (run("usual", &["--threads", "1"]), run("again", &["--threads", "2"]));
    let slow = run("slow", &["--set", "dram.t_cl_ns=40"]);
    let same = durawarp(&["diff", &usual, &again]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    assert!(text(&same.stdout).contains("\nequal: configuration, results and all "));
    let data = folder.join("data.json");
    let other = durawarp(&["diff", &usual, &slow, "--json", data.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(1));
    let told = text(&other.stdout);
    assert!(told.contains("dram.t_cl_ns") && told.contains("  digest  "), "{told}");
    let data: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(data).unwrap()).unwrap();
    let settings = data["settings"].as_array().unwrap();
    let cycles = &data["counts"][0];
    assert_eq!((settings.len(), &settings[0]["key"], &settings[0]["other"]), (1, &"dram.t_cl_ns".into(), &"40".into()));
    assert!(cycles["name"] == "cycles" && cycles["one"].as_u64() < cycles["other"].as_u64(), "{cycles}");
    // The result is the same, whatever time it took.
    assert!(data["results"].as_array().unwrap().iter().all(|result| result["key"] == "digest"), "{data}");
}

#[test]
fn files_that_are_no_runs_are_told_both_with_their_places() {
    let folder = folder("cli/diff_wrong");
    let [one, other] = ["one.json", "other.json"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&one, "{\"schema\": 3,\n \"oops\"").unwrap();
    let output = durawarp(&["diff", &one, &other]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("this is no result of a run") && told.contains("one.json:2"), "{told}");
    assert!(told.contains("other.json") && told.contains("2 errors"), "{told}");
}

#[test]
fn two_configurations_are_followed_to_the_event_at_which_they_part() {
    let bisect = |arguments: &[&str]| durawarp(&[&["bisect", "vecadd", "--profile", "ci"], arguments].concat());
    let equal = ended(&bisect(&["--other", "dram.t_cl_ns=36"]), 0, &["equal: ", "all final states"]);
    assert!(equal.starts_with("A: vecadd (ci) on agpm-table4, scheme base\nB: vecadd (ci)"), "{equal}");
    // A read of DRAM takes 4 ns longer: the first reply of a controller comes later.
    let slow = bisect(&["--other", "dram.t_cl_ns=40"]);
    let slow = ended(&slow, 1, &["they part in epoch 5 (core cycles 5000 to 6000), at `l2."]);
    let at = |run: &str| {
        let is_of = |line: &&str| line.starts_with(&format!("  {run}: at ")) && line.contains("MemoryData");
        let line = slow.lines().find(is_of).unwrap_or_else(|| panic!("{slow}"));
        line.split_whitespace().nth(2).and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_else(|| panic!("{slow}"))
    };
    assert!(at("A") < at("B") && at("B") < at("A") + 4.9, "at an edge of the controller's: {slow}");
    // Other topologies and schemes are compared by the names of components.
    ended(&bisect(&["--other", "sm.count=10"]), 1, &["they part in epoch", "  A: at "]);
    ended(&bisect(&["--other", "scheme=strict", "--other", "seed=1"]), 1, &["scheme strict"]);
}

#[test]
fn programs_of_cpus_part_at_an_event_too() {
    let bisect = |other: &str| durawarp(&["bisect", "hash", "--profile", "ci", "--other", other]);
    ended(&bisect("llc.service_cycles=9"), 1, &["on lightwsp-cpu", "they part in epoch", "  A: at "]);
    ended(&bisect("seed=0"), 0, &["equal: "]);
}

#[test]
fn a_run_is_repeated_from_its_result_and_compared_with_a_file_of_another_version() {
    let folder = folder("cli/bisect");
    let file = |name: &str| folder.join(name).display().to_string();
    let run = |name: &str, set: &str| {
        let json = file(name);
        let run = ["run", "vecadd", "--profile", "ci", "-q", "--json", &json, "--set", set];
        assert_eq!(durawarp(&run).status.code(), Some(0));
        json
    };
    let (one, other) = (run("one.json", "l2.ways=16"), run("other.json", "dram.t_cl_ns=40"));
    ended(&durawarp(&["bisect", &one, &one]), 0, &["equal: "]);
    ended(&durawarp(&["bisect", &one, &other]), 1, &["they part in epoch"]);
    let saved = file("saved.epochs");
    let save = ["bisect", "vecadd", "--profile", "ci", "--save", &saved];
    ended(&durawarp(&save), 0, &[]);
    let against = ["bisect", "vecadd", "--profile", "ci", "--against", &saved];
    ended(&durawarp(&against), 0, &["equal: ", "version "]);
    let slow = [&against[..], &["--set", "dram.t_cl_ns=40"]].concat();
    let told = ended(&durawarp(&slow), 1, &["which event: write", "with --epoch "]);
    let epoch = told.trim_end().rsplit(' ').next().unwrap();
    ended(&durawarp(&[&save[..], &["--epoch", epoch]].concat()), 0, &[]);
    ended(&durawarp(&slow), 1, &["its events in the epoch are equal up to", "  A: at ", "  B: at "]);
    ended(&durawarp(&["bisect", "vecadd"]), 2, &["nothing to compare with"]);
    ended(&durawarp(&["bisect", "vecadd", "--against", &one]), 2, &["no file of `durawarp bisect --save`"]);
}

#[test]
fn a_run_tells_its_energy_by_part_and_the_wear_of_its_nvm() {
    let run = |arguments: &[&str]| {
        durawarp(&[&["run", "kv_store", "--profile", "ci", "--scheme", "strict"], arguments].concat())
    };
    let told =
        ended(&run(&["--wear"]), 0, &["\nEnergy\n", "not in it: static power", "\nNVM wear\n", "most of a line"]);
    assert!(told.contains("lines by writes") && told.contains("without levelling"), "{told}");
    let plain = ended(&run(&["--json", "-"]), 0, &[]);
    let outcome: serde_json::Value = serde_json::from_str(&plain).unwrap();
    let events = outcome["energy"]["events"].as_array().unwrap();
    let nvm = events.iter().find(|event| event["part"] == "nvm" && event["event"] == "bits written").unwrap();
    let bytes = outcome["devices"]["nvm_cell_bytes"].as_u64().unwrap();
    assert_eq!((nvm["count"].as_u64(), nvm["each_pj"].as_f64()), (Some(bytes * 8), Some(17.84)));
    assert!(nvm["source"].as_str().unwrap().contains("Lee et al., ISCA 2009"), "{nvm}");
    assert!(
        outcome["devices"]["nvm_lines"].is_null() && outcome["wear"]["writes"].as_u64() > Some(0),
        "{}",
        outcome["wear"]
    );
    let of_cpus = durawarp(&["run", "hash", "--profile", "ci", "--scheme", "sync"]);
    ended(&of_cpus, 0, &["\nEnergy\n", "instructions", "llc", "\nNVM wear\n", "with ideal levelling"]);
}

#[test]
fn the_doctor_tells_of_every_part_whether_it_is_there() {
    let output = durawarp(&["doctor"]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    for (line, what) in told.lines().zip(["build", "cores", "round trip", "memory", "Slurm", "parquet", "png"]) {
        assert!((line.starts_with("ok  ") || line.starts_with("note")) && line[6..].starts_with(what), "{line}");
    }
    // Installed without a configuration it answers with an error.
    let answer = std::process::Command::new("sbatch").arg("--version").output();
    let there = answer.is_ok_and(|answer| answer.status.success());
    assert_eq!(told.contains("ok    Slurm"), there, "{told}");
}

#[test]
fn shells_and_man_know_every_command() {
    let help = text(&durawarp(&["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> =
        commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 15 && commands.contains(&"diff"), "{commands:?}");
    let folder = folder("cli/man");
    assert_eq!(durawarp(&["man", "--out", folder.to_str().unwrap()]).status.code(), Some(0));
    let page = text(&durawarp(&["man"]).stdout);
    assert!(page.contains(".TH durawarp 1") && page.contains("Exit codes"), "{page}");
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(folder.join(format!("durawarp-{command}.1")).is_file(), "no page of {command}");
    }
    // What bash is given is a script.
    let script = folder.join("durawarp.bash");
    std::fs::write(&script, durawarp(&["completions", "bash"]).stdout).unwrap();
    let checked = std::process::Command::new("bash").arg("-n").arg(&script).status();
    assert!(checked.is_ok_and(|status| status.success()));
}
