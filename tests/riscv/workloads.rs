//! The built-in C programs: right by their own checks and those of their manifests, with any number of
//! threads.

use std::collections::BTreeSet;

use durawarp::riscv::functional::{self, End, Options};
use durawarp::workload::{Choice, CpuProgram, Ran, Workload};

pub(crate) const HASH: &[u8] = include_bytes!("../../workloads/hash/hash.elf");
pub(crate) const RBTREE: &[u8] = include_bytes!("../../workloads/rbtree/rbtree.elf");
pub(crate) const BTREE: &[u8] = include_bytes!("../../workloads/btree/btree.elf");
pub(crate) const SPS: &[u8] = include_bytes!("../../workloads/sps/sps.elf");
pub(crate) const SSCA2: &[u8] = include_bytes!("../../workloads/ssca2/ssca2.elf");
pub(crate) const KVLOG: &[u8] = include_bytes!("../../workloads/kvlog/kvlog.elf");

/// Programs of the experiments of BROI and LightWSP that may have any number of threads.
pub(crate) const THREADED: [&str; 14] = [
    "hash",
    "rbtree",
    "btree",
    "sps",
    "ssca2",
    "stencil_cpu",
    "treap",
    "cg",
    "is",
    "mg",
    "radix",
    "ocean",
    "reserve",
    "kvlog",
];
/// Programs of one thread.
pub(crate) const ALONE: [&str; 5] = ["qsim", "netflow", "lattice", "viterbi", "lzpack"];

/// A built-in program with a profile and these parameters.
fn program(name: &str, profile: &str, params: &[(&str, &str)]) -> CpuProgram {
    let params = params.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let choice = Choice { profile: Some(profile.to_owned()), params, ..Choice::default() };
    let found = Workload::load(name).and_then(|workload| workload.program(&choice));
    found.unwrap_or_else(|faults| panic!("{faults}"))
}

/// Runs it, with the checks of its manifest. What it printed.
fn checked_run(program: &CpuProgram) -> String {
    let process = program.process().unwrap_or_else(|faults| panic!("{faults}"));
    let options = Options { harts: program.threads, instructions: 50_000_000, ..Options::default() };
    let outcome = functional::run(&process, process.memory(), &options);
    let name = &program.start.name;
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{name}: {text}");
    assert_eq!(outcome.unsupported_calls, [], "{name}");
    let ran = Ran {
        exit_code: 0,
        stdout: text.as_bytes(),
        files: &outcome.files,
        persistent: outcome.memory.persistent(),
        logs: &[],
    };
    assert!(program.verify(&ran, None).passed(), "{name}: {text}");
    text
}

#[test]
fn programs_pass_the_checks_of_their_manifests() {
    for name in THREADED.into_iter().chain(ALONE).chain(["spin_counter"]) {
        for (profile, threads) in [("ci", 4), ("default", 8)] {
            let program = program(name, profile, &[]);
            let threads = if ALONE.contains(&name) { 1 } else { threads };
            assert_eq!((program.threads, program.checks.len()), (threads, 2), "{name}");
            checked_run(&program);
        }
    }
}

#[test]
fn programs_print_the_same_line_with_any_number_of_threads() {
    for name in THREADED.into_iter().chain(["spin_counter"]) {
        let lines: BTreeSet<String> =
            ["1", "2", "3", "4"].map(|threads| checked_run(&program(name, "ci", &[("THREADS", threads)]))).into();
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

#[test]
fn programs_print_another_line_with_another_seed() {
    // The vector of sps has the same elements whatever is swapped; the others have no seed.
    let seeded = [
        "hash", "rbtree", "btree", "ssca2", "treap", "netflow", "viterbi", "lzpack", "cg", "is", "mg", "radix",
        "reserve", "kvlog",
    ];
    for name in seeded {
        let [one, other] = ["1", "2"].map(|seed| checked_run(&program(name, "ci", &[("SEED", seed)])));
        assert_ne!(one, other);
    }
}

#[test]
fn high_contention_asks_for_other_offers_than_low() {
    let [low, high] = ["0", "1"].map(|high| checked_run(&program("reserve", "default", &[("CONTENTION", high)])));
    assert!(low.starts_with("reserve: 2005 tasks reserve, 21 remove, 22 change offers"), "{low}");
    // 90 % of 2,048 tasks reserve, and not 98 %.
    assert!(high.starts_with("reserve: 1834 tasks reserve"), "{high}");
}

#[test]
fn the_window_of_persistent_memory_grows_with_a_program_s_parameters() {
    let larger: [(&str, &[(&str, &str)]); 6] = [
        ("hash", &[("KEYS", "20000")]),
        ("rbtree", &[("KEYS", "20000")]),
        ("btree", &[("KEYS", "20000")]),
        ("sps", &[("ITEMS", "20000")]),
        ("ssca2", &[("SCALE", "14")]),
        ("kvlog", &[("OPS", "20000")]),
    ];
    for (name, params) in larger {
        let program = program(name, "ci", params);
        assert!(program.start.windows.pm_bytes > 1 << 20, "{name}");
        checked_run(&program);
    }
}
