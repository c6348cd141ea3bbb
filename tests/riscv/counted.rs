//! Counters of cores, from programs in which each count follows from the text: one kind of instruction more, and
//! what the counters say of it.

use durawarp::Experiment;
use durawarp::outcome::Outcome;
use durawarp::run::{AnyExperiment, Conduct, run_cpu};

use crate::encoding::{i_type, li, opcode, s_type, u_type};
use crate::generator;

/// `custom-0`, of the words of persistency.
const CUSTOM: u32 = 0x0b;
/// Registers that have the address of the data, which lie in DRAM.
const FIRST: u32 = 5;
const SECOND: u32 = 6;

/// A run of these words on one core.
fn ran(name: &str, scheme: &str, words: &[u32]) -> Outcome {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("counted_{name}.elf"));
    let lines = (generator::DATA >> 12) as i32;
    let begin = [u_type(opcode::LUI, FIRST, lines), u_type(opcode::LUI, SECOND, lines)];
    let end = [li(17, 94), li(10, 0), opcode::SYSTEM];
    std::fs::write(&path, generator::executable_of(&[&begin[..], words, &end].concat())).unwrap();
    let recipe = Experiment::of(path.display().to_string()).machine("broi-cpu").scheme(scheme).reference(false);
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => run_cpu(&experiment, &Conduct::default()).outcome,
        AnyExperiment::Gpu(_) => panic!("a program of CPUs"),
    }
}

/// How much more of a counter there is with these words than without.
fn grown(scheme: &str, words: &[u32], counter: &str) -> u64 {
    let [with, without] = [("with", words), ("without", &[][..])]
        .map(|(name, words)| ran(&format!("{scheme}_{counter}_{name}"), scheme, words).total("core", counter));
    with - without
}

#[test]
fn each_request_for_a_line_is_one_to_read_or_one_to_write() {
    // Three lines are read, one of them twice. Of two lines that are written one was read by this core alone, which
    // may write it then: it is not asked for again.
    let load = |at: i32| i_type(opcode::LOAD, 3, 7, FIRST, at);
    let store = |at: i32| s_type(opcode::STORE, 3, SECOND, 7, at);
    // Each waits for the one before, so that no line is asked for twice at a time.
    let wait = i_type(opcode::FENCE, 0, 0, 0, 0x0ff);
    let words = [load(0), wait, load(64), wait, load(128), wait, load(8), wait, store(512), wait, store(64), wait];
    assert_eq!(grown("base", &words, "gets_shared"), 3);
    assert_eq!(grown("base", &words, "gets_exclusive"), 1);
}

#[test]
fn words_of_persistency_are_counted_for_what_they_do() {
    let word = |funct3: u32, imm: i32| i_type(CUSTOM, funct3, 0, 0, imm);
    // A region's end, a transaction's begin and end, a hint of a store past the caches.
    let words = [word(2, 0), word(3, 1), word(3, 2), word(5, 0)];
    assert_eq!(grown("base", &words, "persistency_hints"), 4);
    // Fences that order without waiting are those of delegated ordering.
    let fences = [word(0, 0); 5];
    assert_eq!(grown("broi", &fences, "ordering_fences"), 5);
    assert_eq!(grown("sync", &fences, "ordering_fences"), 0);
    // Nothing of DRAM becomes durable: `cbo.clean` of a line there is dropped.
    let cleans = [i_type(opcode::FENCE, 2, 0, FIRST, 1); 3];
    assert_eq!((grown("sync", &cleans, "dropped_cleans"), grown("sync", &cleans, "cleans")), (3, 0));
}

#[test]
fn what_regions_insert_is_counted_apart_from_the_programs_own_instructions() {
    let counted = |scheme: &str| {
        let recipe = Experiment::of("treap").profile("ci").machine("lightwsp-cpu").scheme(scheme).reference(false);
        let outcome = recipe.set("params.THREADS", 1).run().unwrap_or_else(|faults| panic!("{faults}"));
        ["instructions", "inserted"].map(|counter| outcome.total("core", counter))
    };
    let [own, none] = counted("base");
    let [under_regions, inserted] = counted("light-wsp");
    assert_eq!((own, none), (under_regions, 0));
    assert!(inserted > 0);
}
