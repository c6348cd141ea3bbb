//! A program that looks at `fcsr` and at operations on bits (`samples/isa/isa.c`): on the functional driver,
//! on cores, and gone on from any power failure.

use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::riscv::functional::{self, End, Options};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};

use crate::common::executable;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/riscv/samples/isa/isa.elf");

fn experiment(scheme: &str, turns: &str) -> CpuExperiment {
    let recipe = Experiment::of(PROGRAM).machine("lightwsp-cpu").scheme(scheme).args(["--turns", turns]);
    // What is recovered is copied for each state.
    let recipe = recipe.set("params.memory_mb", 1).set("params.pm_mb", 0).set("params.stack_kb", 64);
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("a program of CPUs"),
    }
}

#[test]
fn a_program_finds_the_exceptions_that_it_has_raised_and_its_thread_inherits_them() {
    let process = executable("isa", include_bytes!("samples/isa/isa.elf"), &["--turns", "200"]);
    let outcome = functional::run(&process, process.memory(), &Options { harts: 2, ..Options::default() });
    assert_eq!(outcome.end, End::Exited(0));
    let timed = run_cpu(&experiment("base", "200"), &Conduct::default()).outcome;
    assert_eq!(timed.process.as_ref().unwrap().exit_code, Some(0), "{:?}", timed.end);
    assert!(timed.total("core", "mispredictions") > 100);
}

/// Arithmetic and reads of its exceptions are in different regions: they are in the slots of `fcsr`, or among
/// saved registers.
#[test]
fn exceptions_outlive_a_power_failure_with_the_registers() {
    for scheme in ["light-wsp", "capri", "cwsp", "ppa"] {
        let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
        let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
        let request = CrashRequest { resume: 60, ..CrashRequest::default() };
        let report = crash_cpu(&experiment(scheme, "2"), &request, &watching).unwrap();
        let resumed = report.level(JudgedLevel::Resumed).map_or(0, |judgement| judgement.verdict.judged);
        assert!(report.holds() && resumed >= 50, "{scheme}, {resumed} resumed: {report:#?}");
    }
}
