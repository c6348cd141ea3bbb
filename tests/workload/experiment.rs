//! What follows from the scheme is derived: whoever makes an experiment gets the program that the scheme runs.

use crate::cli_common::folder;
use durawarp::config::{MachineConfig, Override, SchemeConfig};
use durawarp::outcome::{End, Outcome, validity};
use durawarp::run::{Conduct, Experiment, run};
use durawarp::schemes::catalogue;
use durawarp::sweep::{Batch, Recipe};
use durawarp::workload::{Choice, Demands, Workload};

fn machine() -> MachineConfig {
    MachineConfig::load("agpm-table4", &[Override::parse("sm.count=2").unwrap()]).unwrap()
}

fn ci() -> Choice {
    Choice { profile: Some("ci".to_owned()), ..Choice::default() }
}

fn experiment(workload: &str, scheme: &str, choice: &Choice) -> Experiment {
    let scheme = SchemeConfig::load(scheme, &[]).unwrap();
    let made = Experiment::new(machine(), &Workload::load(workload).unwrap(), choice, scheme);
    made.unwrap_or_else(|faults| panic!("{faults}"))
}

fn outcome(experiment: &Experiment) -> Outcome {
    run(experiment, &Conduct::default()).outcome
}

#[test]
fn a_caller_of_the_library_gets_what_a_sweep_gets_under_every_scheme() {
    for scheme in catalogue::all() {
        let name = scheme.name();
        let recipe = Recipe {
            machine: "agpm-table4".to_owned(),
            machine_set: vec![Override::parse("sm.count=2").unwrap()],
            scheme: name.to_owned(),
            scheme_set: Vec::new(),
            workload: "atax".to_owned(),
            choice: ci(),
            max_cycles: None,
            reference: true,
        };
        let mut batch = Batch::default();
        let point = batch.add(name, 0, recipe).unwrap();
        let (ours, theirs) = (outcome(&experiment("atax", name, &ci())), outcome(&batch.experiment(point).unwrap()));
        assert_eq!((ours.digest, ours.time.core_cycles), (theirs.digest, theirs.time.core_cycles), "{name}");
        assert!(ours.verification.unwrap().passed, "{name}");
        let logs = ours.counters[0].total("pm_log_stores");
        assert_eq!(logs > 0, scheme.logs(), "{name}: the kernels of a scheme that keeps logs are instrumented");
    }
}

#[test]
fn a_workload_that_was_resolved_for_another_scheme_is_refused() {
    let (atax, plain) = (Workload::load("atax").unwrap(), Demands::default());
    let (logs, persistent) = (Demands { undo_logs: true, ..plain }, Demands { persistent: true, ..plain });
    for (demands, scheme, fits) in [
        (plain, "base", true),
        (logs, "nt-store", true),
        (persistent, "light-wsp", true),
        (plain, "nt-store", false),
        (plain, "light-wsp", false),
        (logs, "base", false),
        (persistent, "nt-store", false),
    ] {
        let resolved = atax.resolve_under(&ci(), demands).unwrap();
        let made = Experiment::of_resolved(machine(), resolved, SchemeConfig::load(scheme, &[]).unwrap());
        assert_eq!(made.is_ok(), fits, "{demands:?} {scheme}");
        if let Err(faults) = made {
            let text = faults.to_string();
            assert!(text.contains("the workload was resolved for") && text.contains(scheme), "{text}");
        }
    }
    // A part that is exchanged later is found by the run.
    let mut exchanged = experiment("atax", "base", &ci());
    exchanged.scheme = SchemeConfig::load("nt-store", &[]).unwrap();
    let End::Failed { error } = outcome(&exchanged).end else { panic!("it ran") };
    assert!(error.contains("`nt-store` is a scheme that keeps undo logs"), "{error}");
}

/// Lanes store to the log and to a buffer in DRAM by one instruction.
const BOTH: &str = r#"
schema = 1
name = "both"
description = "log updates to both memories"
params = { N = 64 }
buffer.log = { type = "u32", len = "N", space = "pm", init = { kind = "expr", expr = "7" } }
buffer.notes = { type = "u32", len = "N", init = { kind = "expr", expr = "9" } }
step = [{ kernel = "k", block = 64, grid = 1, args = ["&log", "&notes"] }]

[isa]
kind = "ptx"
text = '''
.version 7.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 p_log, .param .u64 p_notes)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [p_log];
    ld.param.u64 %d2, [p_notes];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    selp.b64 %d3, %d1, %d2, %p1;
    mul.wide.u32 %d4, %r1, 4;
    add.u64 %d5, %d3, %d4;
    pm.st.log.global.u32 [%d5], %r1;
    ret;
}
'''
"#;

#[test]
fn log_updates_that_a_scheme_drops_are_dropped_by_the_reference_too_and_told() {
    let folder = folder("experiment/both");
    std::fs::write(folder.join("workload.toml"), BOTH).unwrap();
    let path = folder.to_str().unwrap();
    for scheme in catalogue::all() {
        let name = scheme.name();
        for workload in [path, "litmus/undo_log"] {
            let outcome = outcome(&experiment(workload, name, &Choice::default()));
            let check = outcome.verification.as_ref().unwrap();
            assert!(check.passed, "{workload} {name}: {:?}", check.failures);
            let (logs, dropped) =
                ["pm_log_stores", "pm_log_stores_dropped"].map(|counter| outcome.counters[0].total(counter)).into();
            assert_eq!(dropped, if scheme.drops_log_stores() { logs } else { 0 }, "{workload} {name}");
            assert!(logs > 0, "{workload} {name}");
            let told = outcome.validity.iter().any(|caveat| {
                caveat.kind == validity::Kind::Unexercised
                    && caveat.text.contains(&format!("keeps no logs: {dropped} log updates"))
            });
            assert_eq!(told, scheme.drops_log_stores(), "{workload} {name}: {:?}", outcome.validity);
        }
    }
    // What is dropped is what goes to persistent memory: half of the lanes.
    let dropped = run(&experiment(path, "base", &Choice::default()), &Conduct::default());
    let kept = run(&experiment(path, "store+clwb", &Choice::default()), &Conduct::default());
    let words = |finished: &durawarp::run::Finished, scheme: &str, buffer: &str| {
        let bytes = experiment(path, scheme, &Choice::default())
            .workload
            .dump(buffer, &finished.memory, &finished.bindings)
            .unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
    };
    let even = |lane: u32| lane.is_multiple_of(2);
    let (left, made) = ((0..64).map(|_| 7), (0..64).map(|lane| if even(lane) { lane } else { 7 }));
    assert_eq!(words(&dropped, "base", "log"), left.collect::<Vec<u32>>());
    assert_eq!(words(&kept, "store+clwb", "log"), made.collect::<Vec<u32>>());
    let notes: Vec<u32> = (0..64).map(|lane| if even(lane) { 9 } else { lane }).collect();
    assert_eq!((words(&dropped, "base", "notes"), words(&kept, "store+clwb", "notes")), (notes.clone(), notes));
}

/// Thread `i` adds the numbers up to `i`, one call each.
const SUMS: &str = r#"schema = 1
name = "sums"
description = "sums by recursion"
buffer.out = { type = "u32", len = 100, space = "pm", role = "output" }
step = [{ kernel = "k", grid = 1, block = 100, args = ["&out"] }]
verify = [{ buffer = "out", ref = { kind = "expr", expr = "idx * (idx + 1) / 2" } }]
[isa]
kind = "ptx"
text = '''
.version 6.0
.target sm_60
.address_size 64
.func (.param .b32 r) sum(.param .b32 n) { .reg .b32 %x<4>; .reg .pred %p;
    ld.param.u32 %x1, [n]; mov.u32 %x3, 0; setp.eq.u32 %p, %x1, 0; @%p bra DONE; sub.u32 %x2, %x1, 1;
    { .param .b32 a; .param .b32 s; st.param.b32 [a], %x2; call (s), sum, (a); ld.param.b32 %x3, [s]; }
    add.u32 %x3, %x3, %x1;
DONE: st.param.b32 [r], %x3; ret; }
.visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %d<3>;
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.s64 %d1, %d1, %d2;
    { .param .b32 a; .param .b32 s; st.param.b32 [a], %r1; call (s), sum, (a); ld.param.b32 %r2, [s]; }
    st.global.u32 [%d1], %r2; ret; }
'''
"#;

#[test]
fn recursion_needs_a_stack_and_a_scheme_without_regions() {
    let with =
        |test: &str, key: &str| crate::workload_common::folder(test, &[("workload.toml", &(SUMS.to_owned() + key))]);
    // A frame of 16 bytes each for the numbers from 0 to 99.
    let path = with("sums", "stack_bytes = 1600\n");
    let path = path.to_str().unwrap();
    for scheme in ["base", "agpm"] {
        let outcome = outcome(&experiment(path, scheme, &Choice::default()));
        assert!(outcome.verification.as_ref().unwrap().passed, "{scheme}: {:?}", outcome.end);
    }
    for (test, key) in [("sums-1024", ""), ("sums-1599", "stack_bytes = 1599\n")] {
        let path = with(test, key);
        let outcome = outcome(&experiment(path.to_str().unwrap(), "base", &Choice::default()));
        assert!(matches!(&outcome.end, End::Failed { .. }), "{:?}", outcome.end);
        assert!(format!("{:?}", outcome.end).contains("stack overflow at depth "), "{:?}", outcome.end);
    }
    let scheme = SchemeConfig::load("light-wsp", &[]).unwrap();
    let made = Experiment::new(machine(), &Workload::load(path).unwrap(), &Choice::default(), scheme);
    let refused = made.and_then(|made| made.check().map(|()| made)).unwrap_err().to_string();
    assert!(refused.contains("kernel `k`") && refused.contains("recursive functions"), "{refused}");
}
