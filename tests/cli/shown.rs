//! What is shown at first: how much of it, and how numbers look.

use crate::cli_common::{durawarp, folder, text};

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
