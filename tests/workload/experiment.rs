//! The facade: a caller gets the program that its scheme runs, the digests of the command line and of sweeps, and every
//! fault at once.

use crate::cli_common::{durawarp, folder};
use durawarp::config::{MachineConfig, SchemeConfig};
use durawarp::outcome::{End, Outcome, validity};
use durawarp::persist::vocab::{Route, StoreRule};
use durawarp::persist::{Handler, HandlerPlace, Outbox, Scheme, SmHandler, Store};
use durawarp::run::{Conduct, Finished, run};
use durawarp::schemes::catalogue;
use durawarp::sweep::Batch;
use durawarp::workload::{Choice, Demands, Workload};
use durawarp::{CrashRequest, Experiment, Recipe};

fn recipe(workload: &str, scheme: &str) -> Recipe {
    Experiment::of(workload).scheme(scheme).set("sm.count", 2)
}

fn outcome(workload: &str, scheme: &str) -> Outcome {
    recipe(workload, scheme).run().unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn a_caller_gets_the_digests_of_the_command_line_and_of_a_sweep_under_every_scheme() {
    let folder = folder("experiment/cli");
    for scheme in catalogue::all() {
        let name = scheme.name();
        let recipe = recipe("atax", name).profile("ci");
        let ours = recipe.run().unwrap();
        let mut batch = Batch::default();
        let point = batch.add(name, 0, recipe.clone()).unwrap();
        let of_sweep = batch.experiment(point).unwrap().gpu().unwrap().run();
        let path = folder.join("outcome.json");
        let typed = ["run", "atax", "--scheme", name, "--profile", "ci", "--set", "sm.count=2", "-q", "--json"];
        durawarp(&[&typed[..], &[path.to_str().unwrap()]].concat());
        let of_cli: Outcome = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for (whose, theirs) in [("sweep", of_sweep), ("command line", of_cli)] {
            let measured =
                |outcome: &Outcome| (outcome.digest.clone(), outcome.memory_digest.clone(), outcome.time.core_cycles);
            assert_eq!(measured(&ours), measured(&theirs), "{name}, {whose}");
        }
        assert!(ours.verification.as_ref().unwrap().passed, "{name}");
        let logs = ours.counters[0].total("pm_log_stores");
        assert_eq!(logs > 0, scheme.logs(), "{name}: the kernels of a scheme that keeps logs are instrumented");
    }
}

#[test]
fn threads_change_nothing_but_the_host() {
    let of = |threads: usize| recipe("atax", "agpm").profile("ci").threads(threads).run().unwrap();
    let [mut one, mut three] = [of(1), of(3)];
    assert_eq!((one.host.threads_asked, three.host.threads_asked), (1, 3));
    three.host = one.host.clone();
    for outcome in [&mut one, &mut three] {
        outcome.host.wall_s = 0.0;
    }
    assert_eq!(one, three);
}

#[test]
fn a_key_is_set_where_it_belongs_and_every_fault_is_told_at_once() {
    let set = |recipe: Recipe| {
        let outcome = recipe.run().unwrap_or_else(|faults| panic!("{faults}"));
        let param = outcome.workload["params"]["N"].as_u64().unwrap();
        let (machine, scheme) = (&outcome.machine.parameters, &outcome.scheme_parameters);
        let threshold = scheme.get("agpm.threshold_logs").map(|parameter| parameter.value.clone());
        (machine["l2.slice_kb"].value.clone(), threshold, param, outcome.workload["seed"].clone(), outcome.end)
    };
    let words = [("machine", "agpm-table4"), ("scheme", "agpm"), ("profile", "ci"), ("seed", "7")];
    let parameters = [("l2.slice_kb", "256"), ("agpm.threshold_logs", "12"), ("params.N", "64")];
    let all =
        words.iter().chain(&parameters).fold(Experiment::of("vecadd"), |recipe, (key, value)| recipe.set(key, value));
    assert_eq!(set(all), (256.into(), Some(12.into()), 64, 7.into(), End::Finished));
    let cut = set(Experiment::of("vecadd").set("params.N", 64).set("max_cycles", 9)).4;
    assert!(matches!(cut, End::Cut { .. }), "{cut:?}");

    let wrong = Experiment::of("vecadd").machine("agpm-table5").scheme("agpn").set("profil", "ci").set("seed", "x");
    let faults = wrong.set("params.M", 3).build().unwrap_err().to_string();
    for word in ["agpm-table4", "`agpm`", "`profile`", "expected a whole number; got `x`", "parameter `M`"] {
        assert!(faults.contains(word), "no {word} in\n{faults}");
    }
    // What goes with a scheme that is not run; a parameter without its table; a value that may not be changed.
    let fault = |recipe: Recipe| recipe.build().unwrap_err().to_string();
    let others = fault(Experiment::of("vecadd").set("agpm.threshold_logs", 3));
    assert!(others.contains("`agpm.threshold_logs` is of scheme `agpm`, but the scheme is `base`"), "{others}");
    let bare = fault(Experiment::of("vecadd").set("N", 3));
    assert!(bare.contains("did you mean `params.N`?"), "{bare}");
    let machine = MachineConfig::load("agpm-table4", &[]).unwrap();
    let given = fault(Experiment::of("vecadd").machine(machine).set("sm.count", 3));
    assert!(given.contains("the machine is given as a value, and `sm.count` would change it"), "{given}");
}

#[test]
fn a_workload_is_a_name_a_folder_or_a_text() {
    let folder = folder("experiment/text");
    std::fs::write(folder.join("workload.toml"), BOTH).unwrap();
    let of_folder = outcome(folder.to_str().unwrap(), "store+clwb");
    let of_text = Experiment::of(Workload::from_text(BOTH).unwrap()).scheme("store+clwb").set("sm.count", 2);
    assert_eq!(of_folder.digest, of_text.run().unwrap().digest);
    let faults = Workload::from_text(&BOTH.replace("block = 64", "blok = 64")).unwrap_err().to_string();
    assert!(faults.starts_with("workload.toml:8:") && faults.contains("did you mean `block`?"), "{faults}");
    let lacks = BOTH.replace("kind = \"expr\", expr = \"7\"", "kind = \"file\", file = \"no/such\"");
    let faults = Experiment::of(Workload::from_text(&lacks).unwrap()).build().unwrap_err().to_string();
    assert!(faults.contains("no such file"), "{faults}");
}

/// A scheme of the caller's own: every store waits until it is durable, past the caches.
#[derive(Debug)]
struct Own {
    waits: bool,
}

impl Handler for Own {}

impl SmHandler for Own {
    fn store(&mut self, _: &Store<'_>, _: &mut Outbox) -> StoreRule {
        StoreRule::new(Route::NonTemporal, self.waits)
    }
}

impl Scheme for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn description(&self) -> &'static str {
        "every store past the caches"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(Own { waits: self.waits }))
    }

    fn logs(&self) -> bool {
        false
    }
}

#[test]
fn a_scheme_of_ones_own_runs_and_two_that_have_one_name_are_not_one() {
    let of = |waits: bool| recipe("kv_store", "base").profile("ci").scheme(Own { waits });
    let cycles = |waits: bool| of(waits).run().unwrap().time.core_cycles;
    let (waiting, passing) = (cycles(true), cycles(false));
    assert!(waiting > passing, "{waiting} {passing}");
    let mut batch = Batch::default();
    let points = [true, false].map(|waits| batch.add("own", 0, of(waits)).unwrap());
    let of_batch = points.map(|point| batch.experiment(point).unwrap().gpu().unwrap().run().time.core_cycles);
    assert_eq!(of_batch, [waiting, passing]);
}

#[test]
fn a_sweep_has_every_combination_and_the_last_axis_changes_fastest() {
    let sweep = recipe("vecadd", "base").set("params.N", 64).sweep().axis("scheme", ["base", "strict"]);
    let points = sweep.axis("l2.slice_kb", [128, 256]).axis("max_cycles", [1_000_000]).jobs(2).run().unwrap();
    let values: Vec<String> =
        points.iter().map(|point| format!("{} {}", point.values[0].1, point.values[1].1)).collect();
    assert_eq!(values, ["base 128", "base 256", "strict 128", "strict 256"]);
    for point in &points {
        let alone = recipe("vecadd", &point.values[0].1).set("params.N", 64).set("l2.slice_kb", &point.values[1].1);
        assert_eq!(point.done.good().unwrap().digest, alone.run().unwrap().digest, "{:?}", point.values);
    }
    let wrong = recipe("vecadd", "base").sweep().axis("scheme", ["base", "strikt", "agpn"]).run().unwrap_err();
    assert_eq!(wrong.0.len(), 2, "{wrong}");
    let none: [&str; 0] = [];
    assert!(recipe("vecadd", "base").sweep().axis("scheme", none).run().unwrap().is_empty());
}

#[test]
fn a_crash_test_of_a_recipe_judges_what_the_command_line_judges() {
    let report = recipe("atax", "store+clwb")
        .params([("NX", 16), ("NY", 16)])
        .threads(2)
        .crash(&CrashRequest::default())
        .unwrap();
    assert!(report.holds() && report.outcome.host.threads_asked == 2);
    let judged: Vec<u64> = report.judgements().map(|(_, judgement)| judgement.verdict.judged).collect();
    let path = folder("experiment/crash").join("report.json");
    let typed =
        ["crash", "atax", "--scheme", "store+clwb", "--profile", "default", "-q", "--json", path.to_str().unwrap()];
    let sizes = ["--set", "sm.count=2", "--set", "params.NX=16", "--set", "params.NY=16"];
    durawarp(&[&typed[..], &sizes].concat());
    let of_cli: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let of_cli = ["history", "actual", "allowed", "overtaking"].map(|level| of_cli[level]["judged"].as_u64());
    assert_eq!(of_cli.into_iter().flatten().collect::<Vec<_>>(), judged);
    let dram = Experiment::of("bplus_tree_dram").profile("ci").crash(&CrashRequest::default()).unwrap_err();
    assert!(dram.to_string().contains("no buffer in persistent memory"), "{dram}");
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
        let resolved = atax.resolve_under(&Choice::of_profile("ci"), demands).unwrap();
        let machine = MachineConfig::load("agpm-table4", &[]).unwrap();
        let made = Experiment::of_resolved(machine, resolved, SchemeConfig::load(scheme, &[]).unwrap());
        assert_eq!(made.is_ok(), fits, "{demands:?} {scheme}");
        if let Err(faults) = made {
            let text = faults.to_string();
            assert!(text.contains("the workload was resolved for") && text.contains(scheme), "{text}");
        }
    }
    // A part that is exchanged later is found by the run.
    let mut exchanged = recipe("atax", "base").profile("ci").build().unwrap();
    exchanged.scheme = SchemeConfig::load("nt-store", &[]).unwrap();
    let End::Failed { error } = exchanged.run().end else { panic!("it ran") };
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
            let outcome = outcome(workload, name);
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
    let finished = |scheme: &str| run(&recipe(path, scheme).build().unwrap(), &Conduct::default());
    let (dropped, kept) = (finished("base"), finished("store+clwb"));
    let words = |finished: &Finished, scheme: &str, buffer: &str| {
        let workload = recipe(path, scheme).build().unwrap().workload;
        let bytes = workload.dump(buffer, &finished.memory, &finished.bindings).unwrap();
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
        let outcome = outcome(path, scheme);
        assert!(outcome.verification.as_ref().unwrap().passed, "{scheme}: {:?}", outcome.end);
    }
    for (test, key) in [("sums-1024", ""), ("sums-1599", "stack_bytes = 1599\n")] {
        let path = with(test, key);
        let outcome = outcome(path.to_str().unwrap(), "base");
        assert!(matches!(&outcome.end, End::Failed { .. }), "{:?}", outcome.end);
        assert!(format!("{:?}", outcome.end).contains("stack overflow at depth "), "{:?}", outcome.end);
    }
    let refused = recipe(path, "light-wsp").build().unwrap_err().to_string();
    assert!(refused.contains("kernel `k`") && refused.contains("recursive functions"), "{refused}");
}
