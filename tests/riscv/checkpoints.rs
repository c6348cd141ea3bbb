//! A program of CPUs that goes on from a checkpoint is the run that was never cut: every digest, count and
//! byte, whatever the scheme, the cycle and the number of threads.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use durawarp::crash::{CrashRequest, Watching, crash_cpu};
use durawarp::outcome::{End, Outcome};
use durawarp::run::checkpoint::{Checkpoint, CheckpointAt, CheckpointWhen, Resumed};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment};
use durawarp::schemes::catalogue;
use durawarp::{Experiment, Recipe};

use crate::liveness::{Point, Turn};
use crate::same_outcomes::{assert_same, threads};
use crate::system_state;

/// Recipes of a program under a scheme, on a machine that the scheme is for. Its last-level cache is small: each run, and each
/// look at a checkpoint, makes one of 16 MB else.
fn recipe(workload: &str, scheme: &str) -> Recipe {
    let machine = if ["epoch", "broi"].contains(&scheme) { "broi-cpu" } else { "lightwsp-cpu" };
    let recipe = Experiment::of(workload).profile_if_any("ci").machine(machine).scheme(scheme).reference(false);
    recipe.set("llc.slice_kb", 128)
}

/// A program that writes files from several threads.
fn written(scheme: &str) -> Recipe {
    let elf = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/riscv/written.elf");
    recipe(elf, scheme).args(["--threads", "3", "--records", "5"])
}

fn built(recipe: &Recipe) -> AnyExperiment {
    recipe.build_any().unwrap_or_else(|faults| panic!("{faults}"))
}

fn of(experiment: CpuExperiment) -> AnyExperiment {
    AnyExperiment::Cpu(Box::new(experiment))
}

fn run(experiment: &AnyExperiment) -> Outcome {
    experiment.run(&Conduct::default()).outcome
}

/// The outcome of a run, and its checkpoint.
fn saved(experiment: &AnyExperiment, cycle: u64, conduct: &Conduct<'_>) -> (Outcome, Checkpoint) {
    let made = Mutex::new(None);
    let keep = |checkpoint| *made.lock().expect("no panic") = Some(checkpoint);
    let at = CheckpointAt::new(experiment, CheckpointWhen::Cycle(cycle), &keep);
    let at = at.unwrap_or_else(|faults| panic!("{faults}"));
    let outcome = experiment.run(&Conduct { checkpoint: Some(at), ..conduct.clone() }).outcome;
    let made = made.into_inner().expect("no panic");
    (outcome, made.unwrap_or_else(|| panic!("no checkpoint at {cycle}")))
}

/// Cuts a run at cycles, one after the other: what goes on from a checkpoint makes the next one.
fn check_cuts(experiment: &AnyExperiment, whole: &Outcome, cycles: impl IntoIterator<Item = u64>, what: &str) {
    let mut before: Option<Resumed> = None;
    for cycle in cycles {
        let what = format!("{what} at {cycle}");
        let conduct = Conduct { from: before.as_ref(), ..threads(1 + cycle as usize % 3) };
        let (outcome, checkpoint) = saved(experiment, cycle, &conduct);
        assert_same(whole, &outcome, &format!("{what}, saved"));
        before = Some(checkpoint.resume(experiment).unwrap_or_else(|faults| panic!("{what}: {faults}")));
    }
    let rest = experiment.run(&Conduct { from: before.as_ref(), ..threads(2) }).outcome;
    assert_same(whole, &rest, &format!("{what}, from the last cut"));
}

/// Cuts a run that ends at shares of its length.
fn check_run(experiment: &AnyExperiment, shares: &[u64], what: &str) {
    let whole = run(experiment);
    assert_eq!(whole.end, End::Finished, "{what}");
    check_cuts(experiment, &whole, shares.iter().map(|share| whole.time.core_cycles * share / 100), what);
}

#[test]
fn every_scheme_goes_on_with_threads_locks_and_files() {
    for scheme in catalogue::of_cpus() {
        let name = scheme.name();
        check_run(&built(&recipe("hash", name).set("params.OPS", 10)), &[35], name);
        check_run(&built(&written(name)), &[0, 60], name);
    }
}

#[test]
fn a_run_that_goes_on_is_saved_later_as_the_one_that_was_never_cut() {
    // These keep stores in slots. Which slot is taken next is not saved, as nothing follows from its number.
    let by_slot = ["light-wsp", "cwsp", "capri"];
    for scheme in catalogue::of_cpus().iter().filter(|scheme| !by_slot.contains(&scheme.name())) {
        let name = scheme.name();
        let experiment = built(&recipe("hash", name).set("params.OPS", 10));
        let cycles = run(&experiment).time.core_cycles;
        let (_, cut) = saved(&experiment, cycles * 35 / 100, &threads(1));
        let from = cut.resume(&experiment).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        let later = cycles * 60 / 100;
        let (_, of_whole) = saved(&experiment, later, &threads(1));
        let (_, of_rest) = saved(&experiment, later, &Conduct { from: Some(&from), ..threads(2) });
        // Every byte of the state: a field that was not read again would have another value now.
        assert!(of_whole == of_rest, "{name}: {} and {} bytes", of_whole.bytes(), of_rest.bytes());
    }
}

#[test]
fn waits_sleeps_mappings_random_bytes_and_places_in_files_go_on() {
    for scheme in ["base", "sync", "light-wsp"] {
        for scripts in [&["mswns", "hbwhm"][..], &["rrlrlr"], &["nsbns", "hsrhs", "hwhe"]] {
            let experiment = of(system_state::experiment(scripts, scheme, &[]));
            check_run(&experiment, &[30, 75], &format!("{scripts:?} under {scheme}"));
        }
    }
}

#[test]
fn threads_that_share_harts_go_on() {
    let shared = recipe("reserve", "base").changes(["core.count=2", "os.quantum_us=5", "params.THREADS=6"]);
    let experiment = built(&shared);
    assert!(run(&experiment).total("os", "preemptions") > 10);
    check_run(&experiment, &[40, 75], "6 threads on 2 harts");
}

#[test]
fn a_run_is_cut_between_lr_and_sc() {
    const WINDOW: u64 = 300;
    for (of_hart, weak) in [(Turn::Reservation, false), (Turn::CompareAndSwap, true), (Turn::Mixed, false)] {
        let point = Point {
            of: of_hart,
            harts: 4,
            harts_of_core: 2,
            amo_cycles: 18,
            service_cycles: 12,
            weak,
            times: 12,
            syscall_ns: 20,
        };
        let experiment = of(point.experiment());
        let what = format!("{of_hart:?}");
        let whole = run(&experiment);
        assert_eq!(whole.end, End::Finished, "{what}");
        let first = whole.time.core_cycles / 2;
        // Several turns are in the window, so that some cuts are behind an `lr` whose `sc` has not come.
        let atomics = |cycles| run(&experiment.clone().with_max_cycles(Some(cycles))).total("core", "atomics");
        assert!(atomics(first + WINDOW) >= atomics(first) + 4, "{what}");
        check_cuts(&experiment, &whole, (first..first + WINDOW).step_by(7), &what);
    }
}

#[test]
fn a_run_is_cut_within_regions_and_within_fences() {
    for (scheme, grows) in [
        ("sync", "durable_fence_cycles"),
        ("broi", "ordering_fences"),
        ("epoch", "ordering_fences"),
        ("light-wsp", "regions"),
        ("capri", "regions"),
        ("cwsp", "regions"),
        ("ppa", "stores"),
    ] {
        // Threads have begun by then.
        let (first, end) = (20_000, 30_000);
        let experiment = built(&recipe("hash", scheme).max_cycles(Some(end)));
        let whole = run(&experiment);
        let before = run(&experiment.clone().with_max_cycles(Some(first)));
        assert!(whole.total("core", grows) > before.total("core", grows), "{grows} under {scheme}");
        check_cuts(&experiment, &whole, (first..end).step_by(1499), scheme);
    }
}

#[test]
fn other_machines_and_clusters_go_on() {
    let small = ["l1d.kb=1", "l1d.ways=2", "llc.slice_kb=4", "llc.ways=4", "params.OPS=10"];
    for (scheme, set) in [
        ("sync", "core.consistency=rvwmo"),
        ("base", "l1d.replacement=random"),
        ("light-wsp", "llc.replacement=srrip"),
        ("sync", "persist.domain=media"),
    ] {
        check_run(&built(&recipe("hash", scheme).changes(small).changes([set])), &[60], set);
    }
    // Clients go on when the program of their server is over.
    let clients = Experiment::of("ycsb_remote").profile("ci").set("client.transactions", 20).reference(false);
    for set in ["nic.ddio=false", "nic.ddio=true", "client.retry_us=10"] {
        check_run(&built(&clients.clone().changes([set])), &[1, 60], set);
    }
    check_run(&built(&Experiment::of("replicate").profile("ci").reference(false)), &[30, 70], "servers with peers");
}

#[test]
fn a_checkpoint_is_of_its_program_and_arguments_alone_and_a_file_knows_them() {
    let recipe = written("sync").persistent(true);
    let experiment = built(&recipe);
    let whole = run(&experiment);
    let (_, checkpoint) = saved(&experiment, whole.time.core_cycles / 2, &Conduct::default());
    let others = [written("sync"), recipe.clone().args(["--threads", "2", "--records", "5"]), recipe.clone().seed(9)];
    for other in others.into_iter().chain([recipe.clone().scheme("base"), recipe.clone().set("llc.slice_kb", 64)]) {
        let faults = checkpoint.resume(&built(&other)).expect_err("another experiment").to_string();
        assert!(faults.contains("of another experiment"), "{faults}");
    }
    let mut bytes = Vec::new();
    checkpoint.write(&recipe, &mut bytes).expect("a vector takes all");
    let (again, read) = Checkpoint::read(&bytes).unwrap_or_else(|why| panic!("{why}"));
    let experiment = built(&again.reference(false));
    let from = read.resume(&experiment).unwrap_or_else(|faults| panic!("{faults}"));
    assert_same(&whole, &experiment.run(&Conduct { from: Some(&from), ..threads(2) }).outcome, "from a file");
    for at in (0..bytes.len()).step_by(bytes.len() / 41 + 1) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Checkpoint::read(&damaged).is_err(), "{at}");
    }
}

#[test]
fn launches_are_of_kernels() {
    let experiment = built(&recipe("hash", "base"));
    let refused = CheckpointAt::new(&experiment, CheckpointWhen::Launch(2), &|_| {}).expect_err("no launches");
    assert!(refused.to_string().contains("this is a program of CPUs"), "{refused}");
}

/// A run whose parameters change at a cycle.
fn forked(scheme: &str, cycle: u64, set: &[&str]) -> Recipe {
    let before = recipe("hash", scheme).set("params.OPS", 10).reference(true);
    before.clone().changes(set.iter().copied()).fork_from(cycle, before)
}

#[test]
fn a_fork_acts_from_its_cycle_on_and_comes_to_the_right_values() {
    let whole = run(&built(&recipe("hash", "sync").set("params.OPS", 10)));
    let slow = ["nvm.t_rcd_ns=400", "llc.request_cycles=40", "os.syscall_ns=900"];
    let at = |cycle| run(&built(&forked("sync", cycle, &slow)));
    let (early, late) = (at(100), at(whole.time.core_cycles / 2));
    let ticks = [&early, &late, &whole].map(|of| of.time.ticks);
    assert!(ticks[0] > ticks[1] && ticks[1] > ticks[2], "{ticks:?}");
    for outcome in [&early, &late] {
        assert!(outcome.verification.as_ref().is_some_and(|check| check.passed), "{:?}", outcome.verification);
        let fork = outcome.from_checkpoint.as_ref().expect("it says that it is one");
        assert_eq!(fork.set, ["llc.request_cycles=40", "nvm.t_rcd_ns=400", "os.syscall_ns=900"]);
        assert!(outcome.validity.iter().any(|caveat| caveat.text.contains("nvm.t_rcd_ns=400")));
    }
    let again = built(&forked("sync", whole.time.core_cycles / 2, &slow)).run(&threads(3)).outcome;
    assert_same(&late, &again, "a fork on more threads");
}

#[test]
fn what_a_fork_may_not_change_is_told() {
    for (set, told) in [
        ("core.rob_entries=64", "the state is made for it"),
        ("core.count=4", "the state is made for it"),
        ("llc.service_cycles=1", "it may only become longer"),
        ("os.syscall_ns=100", "it may only become longer"),
    ] {
        let faults = forked("base", 2000, &[set]).build_any().expect_err(set).to_string();
        assert!(faults.contains(told), "{faults}");
    }
    for (cycle, set, told) in
        [(1 << 40, "nvm.t_rcd_ns=400", "the run is over before cycle"), (2000, "os.link_ns=1", "would overtake")]
    {
        let failed = run(&built(&forked("base", cycle, &[set])));
        let End::Failed { error } = &failed.end else { panic!("{:?}", failed.end) };
        assert!(error.contains(told), "{error}");
    }
    let AnyExperiment::Cpu(of_fork) = built(&forked("sync", 2000, &["nvm.t_rcd_ns=400"])) else {
        panic!("a program of CPUs")
    };
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
    let judged = crash_cpu(&of_fork, &CrashRequest::default(), &watching).expect_err("no journal of the beginning");
    assert!(judged.to_string().contains("cannot be judged"), "{judged}");
    let kernels = recipe("hash", "base").fork_from(10, Experiment::of("gemm").profile("ci"));
    assert!(kernels.build_any().expect_err("two kinds").to_string().contains("the other way round"));
}
