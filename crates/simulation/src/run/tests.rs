//! Tests of how a run ends.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::checkpoint::{Checkpoint, CheckpointAt, CheckpointWhen};
use super::whole::judge;
use super::*;
use crate::outcome::{End, Outcome};
use durawarp_workload::Workload;

#[test]
fn a_run_that_is_stopped_before_it_could_be_judged_has_not_failed() {
    let experiment = Recipe::of("vecadd").machine("titan-x").build().unwrap();
    let mut finished = run(&experiment, &Conduct::default());
    assert!(finished.outcome.verification.take().unwrap().passed);
    let stop = AtomicBool::new(true);
    judge(&experiment, &Conduct { stop: Some(&stop), ..Conduct::default() }, &mut finished);
    assert_eq!((finished.outcome.end, finished.outcome.verification), (End::Stopped, None));
}

/// A kernel that stores a value to buffer `o`, 7 to `p`, and its SM where nothing compares it.
fn stores(value: &str, checks: &str) -> Workload {
    let text = format!(
        "schema = 1\nname = \"w\"\ndescription = \"a kernel\"\n\
         buffer.o = {{ type = \"u32\", len = 64, role = \"output\" }}\n\
         buffer.p = {{ type = \"u32\", len = 64, role = \"output\" }}\n\
         buffer.s = {{ type = \"u32\", len = 64, role = \"scratch\" }}\n\
         step = [{{ kernel = \"k\", grid = 4, block = 32, args = [\"&o\", \"&p\", \"&s\"] }}]\n{checks}\n\
         isa = {{ kind = \"ptx\", text = '''.version 7.0\n.target sm_70\n.address_size 64\n\
         .visible .entry k(.param .u64 o, .param .u64 p, .param .u64 s) {{ .reg .b32 %r<4>; .reg .b64 %d<4>;\n\
         ld.param.u64 %d1, [o]; ld.param.u64 %d2, [p]; ld.param.u64 %d3, [s]; mov.u32 %r1, %smid; mov.u32 %r2, %ctaid.x;\n\
         st.global.u32 [%d3], %r1; mov.u32 %r3, 7; st.global.u32 [%d2], %r3; {value}; st.global.u32 [%d1], %r3; ret; }}''' }}\n"
    );
    Workload::from_text(&text).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Functional runs that judging a run on the machine `titan-x` took, and its outcome.
fn judged(workload: Workload, references: &References) -> (usize, Outcome) {
    let experiment = Recipe::of(workload).machine("titan-x").build().unwrap_or_else(|faults| panic!("{faults}"));
    let before = references.kept();
    let outcome = run(&experiment, &Conduct { references: Some(references), ..Conduct::default() }).outcome;
    (references.kept() - before, outcome)
}

#[test]
fn another_machines_functional_run_is_made_once_and_only_where_one_differs() {
    let shared = || References::new(u64::MAX);
    let passes = |outcome: &Outcome| outcome.verification.as_ref().is_some_and(|verdict| verdict.passed);
    let (runs, outcome) = judged(stores("", ""), &shared());
    assert!(runs == 1 && passes(&outcome), "nothing differs");
    // What fails is no comparison with the functional run.
    for checks in [
        "expect = { ctas = { value = 5 } }",
        "verify = [{ ref = { kind = \"functional\" } }, { buffer = \"o\", ref = { kind = \"expr\", expr = \"8\" } }]",
    ] {
        let (runs, outcome) = judged(stores("", checks), &shared());
        assert!(runs == 1 && !passes(&outcome), "{checks} {runs}");
    }
    // The result follows from the machine; points of a sweep share both runs.
    let references = shared();
    let of_machine = || stores("mov.u32 %r3, %nsmid", "");
    let (runs, outcome) = judged(of_machine(), &references);
    assert!(runs == 2 && passes(&outcome), "{runs}");
    let (again, same) = judged(of_machine(), &references);
    assert_eq!((again, same.warnings), (0, outcome.warnings));
}

#[test]
fn every_check_that_was_not_judged_is_told() {
    let checks = "verify = [{ name = \"first\", ref = { kind = \"functional\" } }, { name = \"second\", ref = { kind = \"functional\" } }]";
    let (_, outcome) = judged(stores("mov.u32 %r3, %nsmid", checks), &References::new(u64::MAX));
    let told = outcome.warnings.iter().filter_map(|warning| Some(warning.message.split_once(':')?.0));
    assert_eq!(told.collect::<Vec<_>>(), ["check `first`", "check `second`"]);
}

#[test]
fn what_a_gated_queue_holds_when_the_program_is_over_is_counted_and_its_time_is_not_the_runs() {
    let of = |scheme: &str, ack_ns: u64| {
        let recipe = Recipe::of("vecadd").machine("lightwsp-gpu").scheme(scheme).profile("ci");
        let set = (scheme != "base").then_some(("light_wsp.ack_latency_ns", ack_ns));
        let recipe = set.into_iter().fold(recipe, |recipe, (key, value)| recipe.set(key, value));
        run(&recipe.build().unwrap(), &Conduct::default()).outcome
    };
    let drain_ns = |outcome: &Outcome| outcome.backlog.unwrap().drain.ps / 1000;
    let (slow, base) = (of("light-wsp", 100_000), of("base", 0));
    // The warps' last regions wait for the controllers' bdry-ACKs; no warp waits for these.
    assert!(slow.backlog.unwrap().gated_stores > 0);
    assert!(drain_ns(&slow) > 100_000 && slow.time.ps < 100_000_000, "{:?} {:?}", slow.backlog, slow.time);
    assert_eq!(base.backlog.unwrap().gated_stores, 0);
}

/// A checkpoint of an experiment at a core cycle.
fn checkpoint_at(experiment: &Experiment, cycle: u64) -> Checkpoint {
    let kept = Mutex::new(None);
    let keep = |made: Checkpoint| *kept.lock().unwrap() = Some(made);
    let at = CheckpointAt::new(experiment, CheckpointWhen::Cycle(cycle), &keep).unwrap();
    run(experiment, &Conduct { checkpoint: Some(at), ..Conduct::default() });
    kept.into_inner().unwrap().expect("the run came to the cycle")
}

/// On a machine whose DRAM has its timing in keys.
fn on_plain_dram(recipe: Recipe) -> Recipe {
    let keys = ["dram.device=plain", "dram.bin=", "dram.density="];
    recipe.machine("titan-x").profile("ci").changes(keys)
}

#[test]
fn a_checkpoint_notices_that_machine_scheme_or_program_changed() {
    let recipe = || on_plain_dram(Recipe::of("vecadd").scheme("agpm"));
    let experiment = recipe().build().unwrap();
    let checkpoint = checkpoint_at(&experiment, 500);
    assert!(checkpoint.resume(&recipe().build().unwrap()).is_ok());
    let others = [
        recipe().set("dram.t_cl_ns", 80),
        recipe().set("energy.l1_access_pj", 80),
        recipe().set("agpm.threshold_logs", 7),
        recipe().scheme("base"),
        recipe().seed(3),
        recipe().set("params.N", 64),
        recipe().machine("agpm-table4"),
    ];
    for other in others {
        let faults = checkpoint.resume(&other.build().unwrap()).expect_err("another experiment").to_string();
        assert!(faults.contains("of another experiment"), "{faults}");
    }
}

#[test]
fn the_parameters_of_a_fork_hold_from_its_cycle_on() {
    let recipe = || on_plain_dram(Recipe::of("vecadd"));
    let experiment = recipe().build().unwrap();
    let plain = run(&experiment, &Conduct::default()).outcome;
    let checkpoint = checkpoint_at(&experiment, 500);
    let forked = |set: &[(&str, u32)]| {
        let changed = set.iter().fold(recipe(), |recipe, (key, value)| recipe.set(key, value)).build().unwrap();
        let from = checkpoint.fork(&experiment, &changed).unwrap();
        run(&changed, &Conduct { from: Some(&from), ..Conduct::default() }).outcome
    };
    // Without a change it is the run itself.
    let same = forked(&[]);
    assert_eq!((&same.digest, same.time, same.from_checkpoint), (&plain.digest, plain.time, None));
    // A slower DRAM makes it slower: by the latency of one access at least.
    let slower = forked(&[("dram.t_cl_ns", 2_000)]);
    assert!(slower.time.ps > plain.time.ps + 2_000_000 - 100_000, "{:?} after {:?}", slower.time, plain.time);
    assert_eq!(slower.machine.parameters["dram.t_cl_ns"].value, 2_000.0);
    let told = slower.from_checkpoint.unwrap();
    assert!(told.set == ["dram.t_cl_ns=2000"] && (500..plain.time.core_cycles).contains(&told.cycle), "{told:?}");
    assert!(slower.verification.unwrap().passed);
}
