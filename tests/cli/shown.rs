//! What is shown at first: how much of it, and how numbers look.

use std::path::Path;

use crate::cli_common::{command, durawarp, ended, folder, text};

#[test]
fn a_file_of_another_kind_is_told_by_its_first_errors() {
    let file = folder("cli/many_errors").join("machine.toml");
    let keys: String = (0..400).map(|key| format!("k{key} = 1\n")).collect();
    std::fs::write(&file, keys).unwrap();
    let check = |options: &[&str]| {
        let output = durawarp(&[&["config", "check", file.to_str().unwrap()], options].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let first = check(&[]);
    assert_eq!(first.matches("error: unknown key").count(), 20);
    assert!(first.ends_with("400 errors; the first 20 are above, --all-errors tells all\n"), "{first}");
    let all = check(&["--all-errors"]);
    assert_eq!(all.matches("error: unknown key").count(), 400);
    assert!(all.ends_with("\n400 errors\n"));
}

#[test]
fn numbers_copy_and_paste_unless_groups_are_asked_for() {
    let run = |options: &[&str]| text(&durawarp(&[&["run", "gemm", "--profile", "ci"], options].concat()).stdout);
    let (whole, grouped) = (run(&[]), run(&["--human"]));
    assert!(whole.contains("instructions    16960 warp, "), "{whole}");
    assert!(grouped.contains("instructions    16 960 warp, "), "{grouped}");
}

#[test]
fn parameters_without_a_source_are_a_line_whose_command_lists_them() {
    let table = text(&durawarp(&["run", "gemm", "--profile", "ci"]).stdout);
    let last = table.lines().last().unwrap();
    let (count, rest) = last.split_once(" parameters have no source of their own: `durawarp ").unwrap();
    let command: Vec<&str> = rest.split('`').next().unwrap().split(' ').collect();
    let listed = text(&durawarp(&command).stdout);
    assert!(listed.contains(&format!(" {count} without a source of their own\n")), "{last}\n{listed}");
}

#[test]
fn clocks_without_a_common_multiple_come_with_clocks_that_work() {
    let set = |clocks: &[&str]| {
        let sets: Vec<&str> = clocks.iter().flat_map(|clock| ["--set", clock]).collect();
        durawarp(&[&["config", "check", "titan-x"], &sets[..]].concat())
    };
    let clocks = ["clock.core_mhz=1401.337", "clock.l2_mhz=1400.003", "clock.memory_mhz=2500.001"];
    let output = set(&clocks);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    let near = told.split("the nearest that have one: ").nth(1).unwrap().lines().next().unwrap();
    let near: Vec<&str> = near.split(' ').collect();
    let output = set(&[&clocks[..], &near].concat());
    assert_eq!(output.status.code(), Some(0), "{near:?}: {}", text(&output.stderr));
}

/// An input with a fault, told under these variables of the environment.
fn fault_under(variables: &[(&str, &str)]) -> String {
    let mut command = command(Path::new("."), &["run", "atax", "--machine", "no-such"]);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    text(&output.stderr)
}

#[test]
fn colours_follow_the_variables_that_every_program_heeds() {
    const FORCED: (&str, &str) = ("CLICOLOR_FORCE", "1");
    let escape = '\u{1b}';
    assert!(!fault_under(&[("TERM", "xterm")]).contains(escape), "a pipe shows none");
    assert!(fault_under(&[("TERM", "xterm"), FORCED]).contains(escape));
    assert!(!fault_under(&[("TERM", "xterm"), FORCED, ("NO_COLOR", "1")]).contains(escape));
    // The parser's own errors look alike.
    let parsed = |variables: &[(&str, &str)]| {
        let mut command = command(Path::new("."), &["run", "atax", "--no-such"]);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
        text(&command.output().unwrap().stderr).contains(escape)
    };
    assert_eq!([parsed(&[]), parsed(&[FORCED]), parsed(&[FORCED, ("NO_COLOR", "1")])], [false, true, false]);
}

/// What a shell is offered for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let mut command = command(Path::new("workloads"), &[&["--", "durawarp"], words].concat());
    command
        .env("DURAWARP_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn shells_complete_names_of_workloads_machines_and_schemes() {
    assert_eq!(offered(&["run", "gemm_t"]), ["gemm_tensor", "gemm_tiled"]);
    assert_eq!(offered(&["crash", "litmus/undo"]), ["litmus/undo_log"]);
    assert_eq!(offered(&["run", "gemm", "--machine", "volta"]), ["volta-v100"]);
    assert_eq!(offered(&["run", "gemm", "--scheme", "store"]), ["store+clwb"]);
    assert_eq!(offered(&["compare", "gemm", "--schemes", "base,epoch-c"]), ["base,epoch-cta"]);
    assert_eq!(offered(&["explain", "hash", "--scheme", "psp"]), ["psp-ideal"]);
    assert_eq!(offered(&["config", "diff", "titan"]), ["titan-x"]);
    assert_eq!(offered(&["reproduce", "scop"]), ["scoped"]);
    assert_eq!(offered(&["run", "hash/w"]), ["hash/workload.toml"], "a path");
    assert!(offered(&["ex"]).contains(&"explain".to_owned()), "commands");
}

#[test]
fn a_script_for_each_shell_asks_the_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ended(&durawarp(&["completions", shell]), 0, &[]);
        assert!(script.contains("DURAWARP_COMPLETE") && script.contains("durawarp"), "{shell}: {script}");
    }
}

#[test]
fn the_nearest_command_is_told_also_of_short_ones() {
    for (typed, near) in [(&["rnu"][..], "'run'"), (&["sweep", "rnu"], "'run'"), (&["cofnig", "show"], "'config'")] {
        ended(&durawarp(typed), 2, &["a similar subcommand exists", near]);
    }
    ended(&durawarp(&["sweep-status", "a.toml"]), 2, &["unrecognized subcommand"]);
}
