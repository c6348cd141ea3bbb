//! Tools beside the simulations: two runs compared, what the host offers, completions, manual pages.

use crate::cli_common::{durawarp, folder, text};

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
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&durawarp(&["completions", shell]).stdout);
        for command in commands.iter().filter(|command| **command != "help") {
            assert!(script.contains(command), "{shell} does not know {command}");
            assert!(folder.join(format!("durawarp-{command}.1")).is_file(), "no page of {command}");
        }
    }
    // What bash is given is a script.
    let script = folder.join("durawarp.bash");
    std::fs::write(&script, durawarp(&["completions", "bash"]).stdout).unwrap();
    let checked = std::process::Command::new("bash").arg("-n").arg(&script).status();
    assert!(checked.is_ok_and(|status| status.success()));
}
