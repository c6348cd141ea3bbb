//! A run that goes on from a checkpoint is the run that was never cut: every digest, count and byte, whatever the
//! scheme, the cycle and the number of threads.

use std::sync::Mutex;

use durawarp::Recipe;
use durawarp::outcome::{End, Outcome};
use durawarp::run::checkpoint::{Checkpoint, CheckpointAt, CheckpointWhen, Resumed};
use durawarp::run::{Conduct, Experiment, run};
use durawarp::schemes::catalogue;
use durawarp::workload::Workload;

use crate::same_outcomes::{assert_same, threads};
use crate::traces::traced;

fn recipe(workload: &str, scheme: &str) -> Recipe {
    Experiment::of(workload).scheme(scheme).profile_if_any("ci").set("sm.count", 4).reference(false)
}

/// Atomics of four CTAs on the same bins, several rounds of each.
fn histogram(scheme: &str) -> Recipe {
    recipe("histogram", scheme).set("params.N", 4000)
}

fn built(recipe: &Recipe) -> Experiment {
    recipe.build().unwrap_or_else(|faults| panic!("{faults}"))
}

/// The outcome of a run, with a checkpoint on the way if it lasts so long.
fn with_checkpoint(experiment: &Experiment, cycle: u64, conduct: &Conduct<'_>) -> (Outcome, Option<Checkpoint>) {
    with_checkpoint_when(experiment, CheckpointWhen::Cycle(cycle), conduct)
}

fn with_checkpoint_when(
    experiment: &Experiment,
    when: CheckpointWhen,
    conduct: &Conduct<'_>,
) -> (Outcome, Option<Checkpoint>) {
    let made = Mutex::new(None);
    let keep = |checkpoint| *made.lock().expect("no panic") = Some(checkpoint);
    let at = CheckpointAt::new(experiment, when, &keep).unwrap_or_else(|faults| panic!("{faults}"));
    let conduct = Conduct { checkpoint: Some(at), ..conduct.clone() };
    let outcome = run(experiment, &conduct).outcome;
    (outcome, made.into_inner().expect("no panic"))
}

/// Goes on from checkpoints at several shares of the run, each at two numbers of threads. A run that goes on makes the next
/// checkpoint, so that the last one has come through all before it.
fn check_run(recipe: &Recipe, shares: &[u64]) {
    let experiment = built(recipe);
    let whole = experiment.run();
    let what = format!("{:?}", recipe.keys());
    assert_eq!(whole.end, End::Finished, "{what}");
    let mut before: Option<Resumed> = None;
    for (nth, share) in (1..).zip(shares) {
        let cycle = whole.time.core_cycles * share / 100;
        let what = format!("{what} at {cycle}");
        let conduct = Conduct { from: before.as_ref(), ..threads(1 + nth % 3) };
        let (saved, checkpoint) = with_checkpoint(&experiment, cycle, &conduct);
        assert_same(&whole, &saved, &format!("{what}, saved"));
        let checkpoint = checkpoint.unwrap_or_else(|| panic!("{what}: no checkpoint"));
        let resumed = checkpoint.resume(&experiment).unwrap_or_else(|faults| panic!("{what}: {faults}"));
        // The other number of threads is that of the run which makes the next checkpoint, where there is one.
        let last = nth == shares.len();
        for count in [nth % 3 + 1, (nth + 1) % 3 + 1].into_iter().take(if last { 2 } else { 1 }) {
            let on = run(&experiment, &Conduct { from: Some(&resumed), ..threads(count) }).outcome;
            assert_same(&whole, &on, &format!("{what}, at {count} threads"));
        }
        before = Some(resumed);
    }
}

#[test]
fn gemm_goes_on_as_if_it_had_not_been_cut() {
    check_run(&recipe("gemm", "base").reference(true), &[0, 1, 10, 50, 90, 99]);
}

#[test]
fn every_workload_goes_on_under_base() {
    for listing in Workload::builtin() {
        check_run(&recipe(&listing.name, "base"), &[37]);
    }
}

#[test]
fn every_scheme_goes_on() {
    for scheme in catalogue::all() {
        check_run(&recipe("kv_store", scheme.name()), &[60]);
        check_run(&histogram(scheme.name()), &[15]);
    }
}

#[test]
fn schemes_of_scoped_barriers_go_on_where_l1s_combine_stores() {
    for scheme in ["nvw-fifo", "epoch-tag", "sbrp"] {
        for workload in ["kv_store", "histogram"] {
            check_run(&recipe(workload, scheme).machine("scoped-table2"), &[10, 50, 80]);
        }
    }
    // An L2 that evicts in the order of its tags, and one whose slices ask each other.
    for l2 in [["l2.slices=1", "l2.slice_kb=2", "l2.ways=4"], ["l2.slices=2", "l2.slice_kb=1", "l2.ways=2"]] {
        check_run(&recipe("kv_store", "epoch-tag").machine("scoped-table2").changes(l2), &[10, 30, 50, 70, 90]);
    }
}

#[test]
fn schemes_with_messages_go_on_from_many_cycles() {
    let shares: Vec<u64> = (1..5).map(|nth| nth * 19 + nth % 4).collect();
    for recipe in [recipe("backprop", "agpm"), histogram("light-wsp"), recipe("kv_store", "pmem-spec")] {
        check_run(&recipe, &shares);
    }
}

#[test]
fn memories_go_on_in_the_middle_of_a_refresh() {
    // Half of the time banks are refreshed: all of them 298 of 600 cycles, or one after another with some put off.
    let often = |recipe: Recipe| recipe.machine("volta-v100").set("dram.timing", "REFI = 600, REFIpb = 150");
    check_run(&often(recipe("gemm", "base")), &[11, 26, 43, 58, 77]);
    let of_banks = recipe("histogram", "strict").set("dram.refresh", "per_bank").set("dram.refresh_postpone", 4);
    check_run(&often(of_banks), &[12, 31, 49, 66, 88]);
}

#[test]
fn other_machines_go_on() {
    let switched = |recipe: Recipe| recipe.set("crossbar.switch", "input_queued");
    check_run(&switched(recipe("bfs", "strict")), &[30, 60]);
    // Every line of an L2 is in a checkpoint: these have 16 sets a slice.
    let ampere = |recipe: Recipe| recipe.machine("ampere-a100").set("l2.slice_kb", 32);
    let hopper = |recipe: Recipe| recipe.machine("hopper-h100").set("l2.slice_kb", 40);
    check_run(&ampere(recipe("gemm_tensor", "base")), &[20, 50, 70]);
    for scheme in ["base", "strict"] {
        check_run(&ampere(recipe("bulk_stream", scheme)), &[10, 30, 50, 70, 90]);
        check_run(&hopper(recipe("tensor_transpose", scheme)), &[20, 60]);
    }
    check_run(&recipe("kv_store", "strict").set("nvm.write_mode", "row_buffer"), &[20, 70]);
    let lost = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/devices/lost-buffer.toml");
    for device in ["optane-100", lost] {
        check_run(&recipe("kv_store", "strict").set("persist.domain", "media").set("nvm.device", device), &[20, 70]);
    }
    check_run(&recipe("kv_store", "store+clwb").set("persist.domain", "media"), &[20, 70]);
}

#[test]
fn each_replacement_policy_goes_on_where_it_was() {
    for policy in ["fifo", "random", "srrip", "tree_plru"] {
        let small = ["sm.count=3", "l1.kb=4", "l1.ways=4", "l2.slice_kb=2", "l2.ways=4"];
        let recipe = recipe("atax", "base").changes(small).set("l1.replacement", policy).set("l2.replacement", policy);
        check_run(&recipe, &[50]);
    }
}

/// A run to a checkpoint, which goes on with other parameters.
fn forked(workload: &str, scheme: &str, cycle: u64, set: &[(&str, &str)]) -> Recipe {
    let before = recipe(workload, scheme).reference(true);
    set.iter().fold(before.clone(), |recipe, (key, value)| recipe.set(key, value)).fork_from(cycle, before)
}

#[test]
fn a_fork_acts_from_its_cycle_on_and_comes_to_the_right_values() {
    let slow = [("dram.t_rcd_ns", "40"), ("dram.t_cl_ns", "90")];
    let whole = built(&recipe("gemm", "base").reference(true)).run();
    let at = |cycle| built(&forked("gemm", "base", cycle, &slow)).run();
    let (early, late) = (at(100), at(whole.time.core_cycles / 2));
    // The later memory gets slower, the less the run takes: what is before is as in the whole run.
    let ticks = [&early, &late, &whole].map(|of| of.time.ticks);
    assert!(ticks[0] > ticks[1] && ticks[1] > ticks[2], "{ticks:?}");
    for outcome in [&early, &late] {
        assert!(outcome.verification.as_ref().is_some_and(|check| check.passed), "{:?}", outcome.verification);
        assert_eq!(outcome.warp_instructions(), whole.warp_instructions());
        assert_eq!(outcome.memory_digest, whole.memory_digest);
        let fork = outcome.from_checkpoint.as_ref().expect("it says that it is one");
        assert_eq!(fork.set, ["dram.t_cl_ns=90", "dram.t_rcd_ns=40"]);
        assert!(outcome.validity.iter().any(|caveat| caveat.text.contains("dram.t_cl_ns=90")));
    }
    let fork = late.from_checkpoint.as_ref().expect("a fork");
    assert!(fork.cycle.abs_diff(whole.time.core_cycles / 2) < 2000, "{fork:?}");
    let experiment = built(&forked("gemm", "base", whole.time.core_cycles / 2, &slow));
    for count in [2, 3] {
        assert_same(&late, &run(&experiment, &threads(count)).outcome, "a fork on more threads");
    }
}

#[test]
fn a_link_may_become_longer_and_no_shorter() {
    let whole = built(&recipe("gemm", "base")).run();
    let cycle = whole.time.core_cycles / 3;
    let longer = built(&forked("gemm", "base", cycle, &[("crossbar.latency_cycles", "60")])).run();
    assert!(longer.verification.as_ref().is_some_and(|check| check.passed) && longer.time.ticks > whole.time.ticks);
    let shorter = built(&forked("gemm", "base", cycle, &[("crossbar.latency_cycles", "1")])).run();
    let End::Failed { error } = &shorter.end else { panic!("{:?}", shorter.end) };
    assert!(error.contains("would overtake") && error.contains("sm0"), "{error}");
}

#[test]
fn thresholds_of_a_scheme_change_and_sizes_do_not() {
    let agpm = built(&forked("backprop", "agpm", 2000, &[("agpm.threshold_logs", "64")])).run();
    assert!(agpm.verification.as_ref().is_some_and(|check| check.passed));
    for (key, value) in [("l2.slice_kb", "64"), ("agpm.entries", "64"), ("clock.core_mhz", "500"), ("sm.count", "2")] {
        let faults = forked("backprop", "agpm", 2000, &[(key, value)]).build().expect_err(key).to_string();
        assert!(faults.contains(key) && faults.contains("the state is made for it"), "{faults}");
    }
    let other = recipe("backprop", "strict").fork_from(2000, recipe("backprop", "base")).build();
    assert!(other.expect_err("another scheme").to_string().contains("another scheme"));
}

#[test]
fn a_fork_beyond_the_end_fails_and_says_so() {
    let late = built(&forked("gemm", "base", 1 << 40, &[("dram.t_cl_ns", "90")])).run();
    let End::Failed { error } = &late.end else { panic!("{:?}", late.end) };
    assert!(error.contains("the run is over before cycle"), "{error}");
}

#[test]
fn a_run_goes_on_from_the_beginning_of_each_launch() {
    for (workload, scheme) in [("atax", "strict"), ("backprop", "epoch-kernel")] {
        let experiment = built(&recipe(workload, scheme));
        let whole = experiment.run();
        let launches = whole.launches.len() as u64;
        assert!(launches > 1, "{workload}");
        for number in 1..=launches {
            let what = format!("{workload} under {scheme} before launch {number}");
            let (saved, made) = with_checkpoint_when(&experiment, CheckpointWhen::Launch(number), &threads(2));
            assert_same(&whole, &saved, &format!("{what}, saved"));
            let checkpoint = made.unwrap_or_else(|| panic!("{what}: no checkpoint"));
            // The launch before is over, and no CTA of this one has ended.
            let launch = &whole.launches[number as usize - 1];
            let over = launch.start.core_cycles + launch.length.core_cycles;
            assert!((launch.start.core_cycles..over).contains(&checkpoint.cycle) || number == 1, "{what}");
            let resumed = checkpoint.resume(&experiment).unwrap_or_else(|faults| panic!("{what}: {faults}"));
            for count in [1, 3] {
                let on = run(&experiment, &Conduct { from: Some(&resumed), ..threads(count) }).outcome;
                assert_same(&whole, &on, &format!("{what}, at {count} threads"));
            }
        }
        let (_, none) = with_checkpoint_when(&experiment, CheckpointWhen::Launch(launches + 1), &Conduct::default());
        assert!(none.is_none(), "{workload} has no launch {}", launches + 1);
    }
}

#[test]
fn counters_by_launch_add_up_and_change_nothing() {
    for (recipe, cut) in [
        (recipe("atax", "strict"), None),
        (recipe("backprop", "agpm"), None),
        (recipe("gemm_tensor", "base").machine("ampere-a100"), None),
        (recipe("atax", "base"), Some(6_000)),
    ] {
        let experiment = built(&recipe.max_cycles(cut));
        let whole = experiment.run();
        let what = format!("{} cut at {cut:?}", whole.workload["workload"]);
        let counted = run(&experiment, &Conduct { launches: true, ..threads(3) }).outcome;
        let again = run(&experiment, &Conduct { launches: true, ..threads(1) }).outcome;
        assert_eq!(counted.launches, again.launches, "{what}: at any number of threads");
        assert_eq!(counted.host.launches_s.len(), counted.launches.len() - usize::from(cut.is_some()), "{what}");
        // What SMs count is exact: nothing of it happens between launches.
        for table in &counted.counters {
            for name in &table.names {
                let of = |launch: &durawarp::outcome::Launch| launch.counters[&format!("{}.{name}", table.kind)];
                let of_launches: u64 = counted.launches.iter().map(of).sum();
                assert!(of_launches <= table.total(name), "{what}: {name}");
                assert!(table.kind != "sm" || of_launches == table.total(name), "{what}: {name}");
            }
        }
        for launch in &counted.launches {
            let ctas = u64::from(launch.grid.iter().product::<u32>());
            assert!(cut.is_some() || launch.counters["sm.ctas"] == ctas, "{what}: {}", launch.kernel);
        }
        let mut stripped = counted.clone();
        stripped.launches.iter_mut().for_each(|launch| launch.counters.clear());
        assert_same(&whole, &stripped, &what);
    }
}

#[test]
fn a_checkpoint_fits_its_experiment_alone() {
    let experiment = built(&recipe("gemm", "base"));
    let (_, checkpoint) = with_checkpoint(&experiment, 3000, &Conduct::default());
    let checkpoint = checkpoint.expect("the run lasts longer");
    for other in [recipe("gemm", "strict"), recipe("gemm", "base").set("l2.slice_kb", 64), recipe("atax", "base")] {
        let faults = checkpoint.resume(&built(&other)).expect_err("another experiment").to_string();
        assert!(faults.contains("of another experiment"), "{faults}");
    }
    // A limit and the reference are the run's own: it may go on further, or be judged at last.
    let mut cut = experiment.clone();
    cut.reference = true;
    let from = checkpoint.resume(&cut).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(run(&cut, &Conduct { from: Some(&from), ..Conduct::default() }).outcome.verification.unwrap().passed);
}

#[test]
fn a_file_gives_back_what_was_written_and_tells_of_damage() {
    let recipe = recipe("gemm", "agpm").set("dram.t_cl_ns", 21);
    let experiment = built(&recipe);
    let conduct = Conduct { line_writes: true, ..Conduct::default() };
    let whole = run(&experiment, &conduct).outcome;
    let (_, checkpoint) = with_checkpoint(&experiment, 3000, &conduct);
    let checkpoint = checkpoint.expect("the run lasts longer");
    let mut bytes = Vec::new();
    checkpoint.write(&recipe, &mut bytes).expect("a vector takes all");
    let (again, read) = Checkpoint::read(&bytes).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((again.keys(), &read), (recipe.keys(), &checkpoint));
    let from = read.resume(&experiment).unwrap_or_else(|faults| panic!("{faults}"));
    assert_same(&whole, &run(&experiment, &Conduct { from: Some(&from), ..threads(2) }).outcome, "from a file");
    for at in (0..bytes.len()).step_by(bytes.len() / 97 + 1).chain([bytes.len() - 1]) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let why = Checkpoint::read(&damaged).expect_err("a damaged byte");
        let known = ["is damaged", "is no checkpoint", "another version"].iter().any(|word| why.contains(word));
        assert!(known, "{at}: {why}");
    }
    for length in [0, 10, 22, 30, bytes.len() - 1] {
        assert!(Checkpoint::read(&bytes[..length]).is_err(), "{length} bytes");
    }
    let value = recipe.clone().machine(experiment.machine.clone());
    assert!(checkpoint.write(&value, &mut Vec::new()).unwrap_err().to_string().contains("has no name"));
}

#[test]
fn a_trace_goes_on_where_its_warps_are_on_their_way() {
    let (_folder, trace) = traced("gemm", "plain", "");
    check_run(&trace.clone().scheme("base").reference(false), &[30, 70]);
    // There reads of registers are under way, too.
    check_run(&trace.machine("ampere-3070").scheme("base").reference(false), &[50]);
}

#[test]
fn every_scheduler_and_page_policy_of_memory_goes_on() {
    for (scheduler, page) in [("bliss", "timeout"), ("atlas", "closed"), ("fcfs", "open_adaptive")] {
        let recipe = recipe("kv_store", "base").set("controller.scheduler", scheduler).set("controller.page", page);
        let recipe = recipe.set("controller.blacklist_clear_cycles", 700).set("controller.service_quantum_cycles", 500);
        check_run(&recipe, &[15, 60]);
    }
}
