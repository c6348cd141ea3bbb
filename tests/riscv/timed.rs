//! Whole programs on a machine of cores: what they leave is what the functional driver leaves, at any number
//! of threads of the simulator; faults, waits without end, limits.

use durawarp::assemble::{CpuLoad, Persistency, assemble_cpu};
use durawarp::config::CpuMachine;
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::FlatMemory;
use durawarp::outcome::End;
use durawarp::riscv::functional::{self, Options};
use durawarp::riscv::memory::{MAIN_START, PM_START};
use durawarp::riscv::process::Process;
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};
use durawarp::{Experiment, MachineConfig};

use crate::common::{DATA, program};
use crate::workloads::{ALONE, THREADED};

/// A built-in program in its small size.
fn experiment(name: &str, threads: u32, set: &[(&str, u64)]) -> CpuExperiment {
    let path = format!("{}/workloads/{name}", env!("CARGO_MANIFEST_DIR"));
    let recipe = Experiment::of(path).machine("lightwsp-cpu").profile("ci");
    let recipe = if ALONE.contains(&name) { recipe } else { recipe.set("params.THREADS", u64::from(threads)) };
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("{name} is a program of CPUs"),
    }
}

/// What the functional driver leaves of it.
fn functional(experiment: &CpuExperiment) -> functional::Outcome {
    let process = experiment.program.process().unwrap();
    let options = Options { harts: experiment.machine.spec.harts(), ..Options::default() };
    functional::run(&process, process.memory(), &options)
}

/// The machine's memory is that of the driver, in the window that begins at a virtual address.
fn assert_same_window(timed: &FlatMemory, physical: u64, driver: &functional::Outcome, start: u64, bytes: u64) {
    let (one, other) =
        (timed.slice(physical, bytes as usize).unwrap(), driver.memory.read(start, bytes as usize).unwrap());
    if one != other {
        let at = one.iter().zip(other).position(|(one, other)| one != other);
        panic!("the window at {start:#x} differs first at offset {at:?}");
    }
}

#[test]
fn a_program_of_one_thread_leaves_every_byte_as_the_functional_driver_does() {
    for name in THREADED.into_iter().chain(ALONE) {
        // The second machine is small, so that lines come and go.
        for set in [&[][..], &[("l1d.kb", 1), ("l1d.ways", 2), ("llc.slice_kb", 4), ("llc.ways", 4)]] {
            let experiment = experiment(name, 1, set);
            let timed = run_cpu(&experiment, &Conduct::default());
            let driver = functional(&experiment);
            assert_eq!(timed.outcome.end, End::Finished, "{name} {:?}", timed.outcome.process);
            let process = timed.outcome.process.unwrap();
            assert_eq!(functional::End::Exited(process.exit_code.unwrap()), driver.end, "{name}");
            assert_eq!(process.stdout.as_bytes(), driver.stdout, "{name}");
            let start = experiment.program.process().unwrap();
            let memory =
                CpuLoad { process: &start, files: &[], all_persistent: false, remote_bytes: 0, regions: None }.memory();
            let (main, pm) = (memory.windows.memory_bytes - MAIN_START, memory.windows.pm_bytes);
            assert_same_window(&timed.memory, memory.main + MAIN_START, &driver, MAIN_START, main);
            if pm > 0 {
                assert_same_window(&timed.memory, memory.persistent, &driver, PM_START, pm);
            }
        }
    }
}

#[test]
fn programs_of_eight_threads_pass_their_checks() {
    for name in THREADED.into_iter().chain(ALONE).chain(["spin_counter"]) {
        let finished = run_cpu(&experiment(name, 8, &[]), &Conduct::default());
        let outcome = finished.outcome;
        assert_eq!(outcome.end, End::Finished, "{name}");
        assert!(outcome.verification.as_ref().unwrap().passed, "{name}: {:?}", outcome.verification);
        assert!(outcome.total("os", "threads") <= 7 && outcome.total("core", "instructions") > 1000, "{name}");
    }
}

#[test]
fn all_memory_may_be_persistent() {
    let mut experiment = experiment("hash", 4, &[]);
    let usual = run_cpu(&experiment, &Conduct::default()).outcome;
    experiment.persistent = true;
    let persistent = run_cpu(&experiment, &Conduct::default()).outcome;
    assert!(persistent.verification.as_ref().unwrap().passed, "{:?}", persistent.verification);
    let reads = |of: &durawarp::Outcome, medium: &str| of.total("memory_controller", &format!("{medium}_reads"));
    assert!(reads(&usual, "dram") > 0 && reads(&usual, "nvm") > 0);
    assert_eq!((reads(&persistent, "dram"), reads(&persistent, "nvm") > reads(&usual, "nvm")), (0, true));
}

#[test]
fn a_run_is_the_same_at_any_number_of_threads_and_wherever_components_are() {
    const EPOCH_CYCLES: u64 = 2_000;
    let every: Vec<Way> = [1, 2, 3, 8].into_iter().flat_map(Way::at).collect();
    for (name, ways) in [("hash", &every[..]), ("spin_counter", &every[1..2])] {
        let experiment = AnyExperiment::Cpu(Box::new(experiment(name, 4, &[])));
        let reference = run_one(&experiment, &Way::REFERENCE, EPOCH_CYCLES, None);
        assert_eq!(reference.outcome.end, End::Finished);
        let compared = compare_all(&experiment, &reference, ways, EPOCH_CYCLES, None, |_| {});
        let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
        assert!(differ.is_empty() && compared.len() == ways.len(), "{name}: {differ:?}");
    }
}

#[test]
fn a_run_that_meets_its_limit_is_cut_and_tells_how_far_it_came() {
    let mut experiment = experiment("hash", 4, &[]);
    experiment.max_cycles = Some(5_000);
    let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
    assert!(matches!(outcome.end, End::Cut { .. }), "{:?}", outcome.end);
    assert!(outcome.time.core_cycles <= 5_000 && outcome.verification.is_none());
    assert_eq!(outcome.process.unwrap().exit_code, None);
}

#[test]
fn a_sleep_that_the_end_of_the_process_cuts_short_is_no_part_of_the_run() {
    // clone(VM | THREAD); the child sleeps for 1000 s, the parent counts for a while and calls exit_group(5).
    let process = program(&[
        0x0001_0537,
        0x1005_051b,
        0x0002_15b7,
        0x0dc0_0893,
        0x0000_0073,
        0x0005_1e63,
        0x3e80_0293,
        0x0002_0537,
        0x0055_3023,
        0x0000_0593,
        0x0650_0893,
        0x0000_0073,
        0x0000_52b7,
        0xfff2_8293,
        0xfe02_9ee3,
        0x0050_0513,
        0x05e0_0893,
        0x0000_0073,
    ]);
    let mut experiment = experiment("hash", 4, &[]);
    experiment.program.image = (*process.image).clone();
    experiment.program.start = process.start;
    experiment.program.checks.clear();
    experiment.max_cycles = Some(1_000_000);
    let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
    assert_eq!((outcome.end.clone(), outcome.process.as_ref().unwrap().exit_code), (End::Finished, Some(5)));
    assert_eq!((outcome.total("os", "threads"), outcome.total("os", "timeouts")), (1, 0));
    assert!((20_000..200_000).contains(&outcome.time.core_cycles), "{:?}", outcome.time);
}

#[test]
fn more_threads_than_harts_share_them_and_leave_what_threads_with_a_hart_each_leave() {
    for name in THREADED {
        // A short quantum, so that threads that spin lose their hart, too.
        let mut shared = experiment(name, 6, &[("core.count", 2), ("os.quantum_us", 5)]);
        shared.max_cycles = Some(50_000_000);
        let outcome = run_cpu(&shared, &Conduct::default()).outcome;
        let process = outcome.process.as_ref().unwrap();
        assert_eq!((&outcome.end, process.exit_code), (&End::Finished, Some(0)), "{name} {process:?}");
        assert_eq!(outcome.verification.as_ref().map(|found| found.passed), Some(true), "{name}");
        assert!(outcome.total("os", "switches") > 0, "{name}");
        let alone = run_cpu(&experiment(name, 6, &[]), &Conduct::default()).outcome;
        assert_eq!(process.stdout, alone.process.as_ref().unwrap().stdout, "{name}");
        let total = |of: &str| (outcome.total("os", of), alone.total("os", of));
        assert_eq!((total("threads").0, total("switches").1), (total("threads").1, 0), "{name}");
    }
}

#[test]
fn threads_share_harts_under_schemes_that_keep_something_by_hart_until_it_is_durable() {
    for (machine, scheme) in
        [("lightwsp-cpu", "sync"), ("lightwsp-cpu", "psp-ideal"), ("broi-cpu", "epoch"), ("broi-cpu", "broi")]
    {
        let path = format!("{}/workloads/hash", env!("CARGO_MANIFEST_DIR"));
        let recipe = Experiment::of(path).machine(machine).scheme(scheme).profile("ci");
        let recipe = recipe.set("params.THREADS", 5).set("core.count", 1).set("os.quantum_us", 5);
        let Ok(AnyExperiment::Cpu(mut experiment)) = recipe.build_any() else { panic!("{scheme}") };
        experiment.max_cycles = Some(20_000_000);
        let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
        assert_eq!(outcome.end, End::Finished, "{scheme}");
        assert_eq!(outcome.verification.as_ref().map(|found| found.passed), Some(true), "{scheme}");
        assert!(outcome.total("os", "preemptions") > 3, "{scheme}");
    }
}

#[test]
fn threads_keep_their_harts_where_a_scheme_knows_them_by_their_hart() {
    for (machine, scheme) in [("lightwsp-cpu", "light-wsp"), ("lightwsp-cpu", "ppa")] {
        let path = format!("{}/workloads/hash", env!("CARGO_MANIFEST_DIR"));
        let recipe = Experiment::of(path).machine(machine).scheme(scheme).profile("ci");
        let recipe = recipe.set("params.THREADS", 3).set("core.count", 2);
        let Err(faults) = recipe.build_any() else { panic!("{scheme} shares harts") };
        let told = faults.to_string();
        let expected = format!(
            "3 threads are more than the 2 harts of machine `{machine}`, and threads do not share harts: `{scheme}`"
        );
        assert!(told.contains(&expected) && told.contains("--set core.count=N"), "{told}");
    }
}

/// Runs words on the built-in machine.
fn run_timed(process: &Process, limit_cycles: u64) -> RunEnd {
    let machine: CpuMachine = MachineConfig::read("lightwsp-cpu", &[]).unwrap();
    let load = CpuLoad { process, files: &[], all_persistent: false, remote_bytes: 0, regions: None };
    let mut assembly = assemble_cpu(&machine.spec, load, &Persistency::default());
    let period = machine.spec.timebase().unwrap().clock(machine.spec.clock.core_mhz.khz).period_ticks();
    assembly.simulation.run(&RunOptions { time_limit: Some(limit_cycles * period), ..RunOptions::default() })
}

#[test]
fn a_thread_that_nobody_wakes_is_a_deadlock_that_names_its_futex() {
    // lui a0, DATA; li a1, 0 (wait); li a2, 0; li a3, 0; li a7, 98 (futex); ecall
    let words = [0x0002_0537, 0x0000_0593, 0x0000_0613, 0x0000_0693, 0x0620_0893, 0x0000_0073];
    let RunEnd::Deadlock { waits, .. } = run_timed(&program(&words), 100_000) else { panic!("no deadlock") };
    let futex = format!("a wake of futex {DATA:#x}");
    let told =
        waits.iter().any(|(_, name, wait)| name == "os" && wait.who == "hart 0 (thread 100)" && wait.what == futex);
    assert!(told, "{waits:?}");
}

#[test]
fn a_program_that_does_something_wrong_ends_with_the_place() {
    // A load from address 0, after a nop.
    let end = run_timed(&program(&[0x0000_0013, 0x0000_3503]), 100_000);
    let RunEnd::Failed { error, name, .. } = end else { panic!("{end:?}") };
    assert_eq!(name, "core0");
    assert_eq!(
        error.to_string(),
        "a load of 8 bytes at 0x0, outside the memory of the process (a null pointer?) at 0x10004 (main+0x4), hart 0"
    );
}

#[test]
fn what_a_process_has_but_does_not_touch_costs_nothing() {
    // li a0, 3; li a7, 94 (exit_group); ecall. Windows of 64 GiB and 128 GiB.
    let mut process = program(&[0x0030_0513, 0x05e0_0893, 0x0000_0073]);
    let small = run_timed(&process, 100_000);
    let windows = &mut process.start.windows;
    (windows.memory_bytes, windows.pm_bytes) = (1 << 36, 1 << 37);
    assert!(matches!((small, run_timed(&process, 100_000)), (RunEnd::Finished { .. }, RunEnd::Finished { .. })));
}

#[test]
fn a_line_that_has_left_is_not_asked_for_before_its_bytes_are_home() {
    // Of three lines in a set of the L1 one has just been cleaned ahead of time, one leaves and comes back.
    let set = [("l1d.kb", 1), ("l1d.ways", 2), ("llc.slice_kb", 1), ("llc.ways", 4), ("dram_cache.mb", 0)];
    let recipe = Experiment::of("hash").machine("lightwsp-cpu").scheme("sync").persistent(true).seed(1);
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    let recipe = recipe.set("params.THREADS", 1).set("params.SEED", 3).reference(false);
    let outcome = recipe.build_any().unwrap().run(&Conduct::default()).outcome;
    assert_eq!(outcome.process.unwrap().exit_code, Some(0));
}
