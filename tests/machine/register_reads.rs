//! Read ports of the register file, as Huerta et al. (MICRO 2025) measured them: traces whose instructions differ in the
//! numbers of their registers alone take cycles more where a bank has too many of them.

use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::outcome::End;
use durawarp::run::AnyExperiment;

use crate::traces::{one_warp, run, traced};

/// Cycles that a warp takes. A `NOP` issues in one cycle, as on the card: it takes no integer unit there.
fn cycles(machine: &str, set: &[&str], lines: &[String]) -> u64 {
    let (_folder, recipe) = one_warp(86, 5, lines);
    let outcome = run(recipe.machine(machine).set("interval.logic_cycles", 1).changes(set).reference(false));
    assert_eq!(outcome.end, End::Finished);
    outcome.time.core_cycles
}

fn nop() -> String {
    "0 NOP 0 0 0".to_owned()
}

fn ffma(written: u8, read: [&str; 3]) -> String {
    format!("1 R{written} FFMA 3 {} 0 0", read.join(" "))
}

/// Listing 1 of the paper; the exit stands where it reads the clock again.
fn listing_1(x: &str, y: &str) -> [String; 4] {
    [nop(), ffma(11, ["R10", "R12", "R14"]), ffma(13, ["R16", x, y]), nop()]
}

const PAIRS: [[&str; 2]; 4] = [["R19", "R21"], ["R18", "R21"], ["R19", "R20"], ["R18", "R20"]];

/// Cycles of each pair of registers more than of the first.
fn bubbles(machine: &str, set: &[&str]) -> [u64; 4] {
    let took = PAIRS.map(|[x, y]| cycles(machine, set, &listing_1(x, y)));
    took.map(|cycles| cycles - took[0])
}

#[test]
fn an_even_register_more_is_a_cycle_more_as_it_was_measured() {
    for machine in ["ampere-3070", "ada-4090", "blackwell-5090"] {
        assert_eq!(bubbles(machine, &[]), [0, 1, 1, 2], "{machine}");
    }
    // Odd registers take no longer than on a machine without ports.
    let of = |set: &[&str]| cycles("ampere-3070", set, &listing_1("R19", "R21"));
    assert_eq!(of(&[]), of(&["sm.register_banks=0"]));
    assert_eq!(bubbles("ampere-3070", &["sm.register_banks=0"]), [0; 4]);
    assert_eq!(bubbles("ampere-3070", &["latency.read_cycles=4"]), [0, 0, 0, 1], "a cycle more to read in");
    assert_eq!(bubbles("ampere-a100", &[]), [0; 4]);
}

#[test]
fn the_instruction_that_issues_right_after_one_that_waits_is_not_late() {
    let of = |x, y| cycles("ampere-3070", &[], &listing_1(x, y)[..3]);
    assert_eq!(of("R19", "R21"), of("R18", "R20"));
}

/// Cycles of 64 instructions over those of 32, with results that none waits for.
fn stream(opcode: &str, read: &str) -> u64 {
    let of = |count: usize| {
        let lines: Vec<String> = (0..count).map(|nth| format!("1 R{} {opcode} {read} 0 0", 20 + nth)).collect();
        cycles("ampere-3070", &[], &lines)
    };
    of(64) - of(32)
}

#[test]
fn streams_have_the_bubbles_that_were_measured() {
    // A product of two factors of one bank has a bubble of one cycle, of two banks none. A sum of one bank: two.
    assert_eq!(["2 R2 R5", "2 R2 R4"].map(|read| stream("FMUL", read)), [32, 64]);
    assert_eq!(["3 R2 R5 R7", "3 R2 R4 R6"].map(|read| stream("FFMA", read)), [64, 96]);
}

#[test]
fn a_reused_operand_takes_no_port() {
    let of = |first: &str| {
        let lines = [nop(), ffma(11, [first, "R12", "R14"]), ffma(13, ["R10", "R18", "R21"]), nop()];
        cycles("ampere-3070", &[], &lines)
    };
    assert_eq!(of("R10"), of("R10.reuse") + 1);
}

#[test]
fn memory_passes_by_what_waits() {
    let load = |register: u8| format!("1 R{register} LDS 1 R2 4 1 0x0 4 0");
    // The end is that of the last load.
    let of = |x, y, third: String| {
        let lines = [nop(), ffma(11, ["R10", "R12", "R14"]), ffma(13, ["R16", x, y]), third, load(22)];
        cycles("ampere-3070", &[], &lines)
    };
    assert_eq!(of("R18", "R20", load(20)), of("R19", "R21", load(20)));
    assert_eq!(of("R18", "R20", nop()), of("R19", "R21", nop()) + 2);
}

#[test]
fn ports_are_the_same_at_every_number_of_threads() {
    let (_folder, trace) = traced("gemm", "plain", "");
    let with = |banks: u32| {
        trace.clone().machine("ampere-3070").set("sm.count", 2).set("sm.register_banks", banks).reference(false)
    };
    let [with_ports, without] = [2, 0].map(|banks| run(with(banks)).time.core_cycles);
    assert!(with_ports > without, "{with_ports} and {without} cycles");
    let experiment = AnyExperiment::from(with(2).build().unwrap());
    let reference = run_one(&experiment, &Way::REFERENCE, 1000, None);
    let ways: Vec<Way> = [2, 8].into_iter().flat_map(|threads| Way::at(threads).into_iter().take(2)).collect();
    for compared in compare_all(&experiment, &reference, &ways, 1000, None, |_| {}) {
        assert_eq!(compared.difference, None, "{}", compared.way);
    }
}
