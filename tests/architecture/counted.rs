//! Each counter that a result prints is looked at by a test: its name stands in the text of one.
//!
//! A name in a test is no proof that its value is right. But a counter that no test names may have any value, and so may
//! a new one: it is told here.

use std::collections::BTreeSet;
use std::path::Path;

use crate::source::sources;

/// Counters that no test names yet. One that a test names goes from here.
const UNNAMED: [&str; 5] = [
    "core.failed_conditional_cycles",
    "memory_controller.dram_ccd_l_held",
    "sm.path_wait_cycles",
    "sm.pm_log_stores_past",
    "sm.pm_markers",
];

/// Adds the words of all files of a folder whose names end so.
fn words_below(folder: &Path, ending: &str, words: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            words_below(&entry, ending, words);
        } else if entry.extension().is_some_and(|own| own == ending) && entry.file_name() != Some("counted.rs".as_ref())
            || ["tests/machine/counted.rs", "tests/riscv/counted.rs"].iter().any(|own| entry.ends_with(own))
        {
            add_words(&std::fs::read_to_string(&entry).unwrap(), words);
        }
    }
}

fn add_words(text: &str, words: &mut BTreeSet<String>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    words.extend(text.split(|c| !is_part(c)).map(str::to_owned));
    // One name for each of several, as in `pm_barriers_{scope}`.
    for (start, _) in text.match_indices("pm_barriers_{") {
        let stall = text[start..].split_once('}').is_some_and(|(_, rest)| rest.starts_with("_stall"));
        words.extend(
            ["wi", "wg", "kr"].map(|scope| format!("pm_barriers_{scope}{}", if stall { "_stall" } else { "" })),
        );
    }
}

#[test]
fn every_counter_is_named_by_a_test() {
    let mut words = BTreeSet::new();
    words_below(Path::new("tests"), "rs", &mut words);
    // Figures that manifests expect are compared in runs.
    words_below(Path::new("workloads"), "toml", &mut words);
    for source in sources() {
        let code = source.code.join("\n");
        let tests = match source.is_of_tests() {
            true => code.as_str(),
            false => code.split_once("#[cfg(test)]\nmod ").map_or("", |(_, tests)| tests),
        };
        add_words(tests, &mut words);
    }
    let mut unnamed: Vec<String> = Vec::new();
    for (kind, described) in durawarp::run::counter_descriptions() {
        unnamed
            .extend(described.iter().filter(|one| !words.contains(one.name)).map(|one| format!("{kind}.{}", one.name)));
    }
    unnamed.sort();
    assert_eq!(unnamed, UNNAMED, "a counter without a test, or one in the list that has a test now");
}
