//! Clusters of CTAs on the timed machine: values and results of the kernels of `tests/kernel/clusters.rs`, equal at any
//! number of threads; where clusters lie; what a remote access and a barrier take; faults.

use crate::bench_machine::{Bench, SETTLE, machine, sum};
use crate::same_outcomes::{assert_same, threads};
use durawarp::Experiment;
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::RunEnd;
use durawarp::kernel::memory::Medium;
use durawarp::outcome::{End, Outcome};
use durawarp::run::checkpoint::{CheckpointAt, CheckpointWhen};
use durawarp::run::{AnyExperiment, Conduct, Recipe, run};
use tempfile::TempDir;

const KERNELS: &str = include_str!("../kernel/ptx/clusters.ptx");

/// A workload of kernels with these buffers and steps, whose values the functional driver checks.
pub(super) fn workload(text: &str, buffers: &str, steps: &str, outputs: &str) -> (TempDir, Recipe) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel.ptx"), text).unwrap();
    let manifest = format!(
        "schema = 1\nname = \"clusters\"\ndescription = \"clusters of CTAs\"\n[isa]\nkind = \"ptx\"\nfile = \"kernel.ptx\"\n\
         {buffers}{steps}[[verify]]\nref = {{ kind = \"functional\" }}\nbuffers = [{outputs}]\n"
    );
    std::fs::write(folder.path().join("workload.toml"), manifest).unwrap();
    let recipe = Experiment::of(folder.path().display().to_string());
    (folder, recipe.machine("hopper-h100"))
}

/// `histogram`, `ring` and `sends` one after another, in clusters of several sizes.
fn all() -> (TempDir, Recipe) {
    all_of(KERNELS)
}

fn all_of(text: &str) -> (TempDir, Recipe) {
    let buffer = |name: &str, len: u32, init: &str| format!("[buffer.{name}]\ntype = \"u32\"\nlen = {len}\n{init}");
    let zeros = "";
    let buffers = [
        buffer("bins", 96, zeros),
        buffer("input", 4000, "init = { kind = \"expr\", expr = \"(idx * 7919 + idx / 3) % 120\" }\n"),
        buffer("sums", 1024, zeros),
        buffer("words", 1024, zeros),
        buffer("sent", 1024, zeros),
        buffer("counts", 16, zeros),
    ];
    let steps = "[[step]]\nkernel = \"histogram\"\ngrid = 16\nblock = 64\ncluster = 4\nshared = 96\n\
                 args = [\"&bins\", \"96\", \"24\", \"&input\", \"4000\"]\n\
                 [[step]]\nkernel = \"ring\"\ngrid = 16\nblock = 64\ncluster = [8, 1, 1]\n\
                 args = [\"&sums\", \"&words\", \"3\"]\n\
                 [[step]]\nkernel = \"sends\"\ngrid = 16\nblock = 64\ncluster = 2\nargs = [\"&sent\", \"&counts\"]\n";
    workload(text, &buffers.concat(), steps, "\"bins\", \"sums\", \"words\", \"sent\", \"counts\"")
}

pub(super) fn ran(recipe: Recipe) -> Outcome {
    super::traces::run(recipe)
}

#[test]
fn values_are_those_of_the_functional_driver_and_every_request_is_served() {
    let (_folder, recipe) = all();
    let outcome = ran(recipe.set("sm.count", 20));
    assert_eq!(outcome.end, End::Finished);
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    let counted = |name: &str| outcome.total("cluster", name);
    let requests = ["cluster_loads", "cluster_stores", "cluster_atomics"].map(counted);
    assert_eq!(requests.iter().sum::<u64>(), counted("cluster_served"));
    // `ring`: 2 warps of 16 CTAs load and store 3 times. `sends`: each reaches one other CTA.
    assert_eq!((requests[0], requests[1]), (2 * 16 * 3, 2 * 16 * 3 + 2 * 16));
    assert!(requests[2] > 2 * 2 * 16 && counted("cluster_bytes") > 4 * 32 * requests[0]);
    // Each CTA passes 2, 7 and 2 phases.
    assert_eq!(counted("cluster_phases"), 16 * (2 + 7 + 2));
}

#[test]
fn races_are_found_where_a_barrier_of_the_cluster_is_missing_and_nowhere_else() {
    let races = |text: &str| {
        let (_folder, recipe) = all_of(text);
        let recipe = recipe.set("sm.count", 16).set("l2.slices", 16).set("controller.channels", 16);
        let experiment = recipe.build().unwrap_or_else(|faults| panic!("{faults}"));
        let outcome = run(&experiment, &Conduct { races: true, ..Conduct::default() }).outcome;
        outcome.races.expect("they are looked for").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(races(KERNELS), [""; 0]);
    // Between the stores of `ring` and its loads.
    let barrier = "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n    ld.shared.u32 %r22";
    let found = races(&KERNELS.replace(barrier, "    ld.shared.u32 %r22"));
    let told = |part: &str| found.iter().any(|race| race.contains("kernel `ring`") && race.contains(part));
    assert!(told("shared memory + ") && told("`words` + "), "{found:#?}");
    // One that publishes nothing.
    let relaxed = barrier.replace("arrive", "arrive.relaxed");
    assert!(!races(&KERNELS.replace(barrier, &relaxed)).is_empty());
}

/// A run is the same at 1, 2 and 8 threads, placed in two ways.
pub(super) fn same_at_any_threads(recipe: &Recipe, what: &str) {
    let experiment = AnyExperiment::from(recipe.build().unwrap_or_else(|faults| panic!("{faults}")));
    let reference = run_one(&experiment, &Way::REFERENCE, 1000, None);
    let ways: Vec<Way> = [1, 2, 8].into_iter().flat_map(|threads| Way::at(threads).into_iter().take(2)).collect();
    for compared in compare_all(&experiment, &reference, &ways, 1000, None, |_| {}) {
        assert_eq!(compared.difference, None, "{what}: {}", compared.way);
    }
}

/// A run goes on from checkpoints at these shares of it as if it had not been cut. How many were made: a launch that has
/// just ended has none.
pub(super) fn goes_on(recipe: Recipe, shares: impl Iterator<Item = u64>) -> u32 {
    let experiment = recipe.reference(false).build().unwrap_or_else(|faults| panic!("{faults}"));
    let whole = experiment.run();
    assert_eq!(whole.end, End::Finished);
    let mut resumed = 0;
    for share in shares {
        let cycle = whole.time.core_cycles * share / 100;
        let made = std::sync::Mutex::new(None);
        let keep = |checkpoint| *made.lock().expect("no panic") = Some(checkpoint);
        let at = CheckpointAt::new(&experiment, CheckpointWhen::Cycle(cycle), &keep).unwrap();
        let saved = run(&experiment, &Conduct { checkpoint: Some(at), ..threads(2) }).outcome;
        assert_same(&whole, &saved, &format!("saved at {cycle}"));
        let Some(checkpoint) = made.into_inner().expect("no panic") else { continue };
        let from = checkpoint.resume(&experiment).unwrap_or_else(|faults| panic!("at {cycle}: {faults}"));
        let on = run(&experiment, &Conduct { from: Some(&from), ..threads(1 + share as usize % 3) }).outcome;
        assert_same(&whole, &on, &format!("at {cycle}"));
        resumed += 1;
    }
    resumed
}

/// Fewer slices and channels than the card has.
pub(super) fn small(recipe: Recipe) -> Recipe {
    recipe.set("sm.count", 16).set("l2.slices", 16).set("controller.channels", 16)
}

#[test]
fn clusters_are_the_same_at_every_number_of_threads() {
    let (_folder, recipe) = all();
    // GPCs of 2 and 4 SMs: clusters of 8 share SMs, and wait for room.
    for (sms, gpcs) in [(16, 4), (20, 1)] {
        let recipe = small(recipe.clone()).set("sm.count", sms).set("sm.gpcs", gpcs);
        same_at_any_threads(&recipe, &format!("{sms} SMs in {gpcs} GPCs"));
    }
}

#[test]
fn a_run_with_clusters_goes_on_from_a_checkpoint_as_if_it_had_not_been_cut() {
    let (_folder, recipe) = all();
    let resumed = goes_on(small(recipe).set("sm.gpcs", 1), (8..100).step_by(15));
    assert!(resumed > 4, "{resumed}");
}

/// Two CTAs of a warp in a cluster, on a machine with these overrides: the words of the first one's first thread. `body`
/// finds the address of `slot` (512 bytes) in the own CTA in `%r50`, in the other in `%r51`.
pub(super) fn pair(overrides: &str, body: &str) -> (Vec<u64>, RunEnd) {
    let spec = machine("hopper-h100", &format!("sm.count=4 l2.slices=16 controller.channels=16 {overrides}"));
    let mut bench = Bench::new(spec);
    let out = bench.buffer(1024, Medium::Dram);
    let body = format!(
        ".shared .align 16 .b8 slot[512];\nmov.u32 %r50, slot;\nmov.u32 %r52, %cluster_ctarank;\nxor.b32 %r53, %r52, 1;\n\
         mapa.shared::cluster.u32 %r51, %r50, %r53;\nmul.wide.u32 %d50, %r52, 512;\nadd.u64 %out, %out, %d50;\n{body}"
    );
    bench.launch(&body, 2, 32, (out, 0, 0, 0)).with_directives(".reqnctapercluster 2, 1, 1");
    let ran = bench.run_with(&durawarp::engine::RunOptions::default());
    (ran.u64s(out, 4), ran.end)
}

pub(super) const SYNC: &str = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

/// AGPM's reason for a kernel of two CTAs that runs `body`: whether it counts as one whose warps communicate.
fn communicates(body: &str) -> bool {
    let spec = machine("hopper-h100", "sm.count=4 l2.slices=16 controller.channels=16");
    let mut bench = Bench::new(spec);
    let out = bench.buffer(4096, Medium::Nvm);
    let logs = "pm.st.log.global.u32 [%out], %r52;\n".repeat(160);
    let body = format!(
        ".shared .align 16 .b8 slot[512];\nmov.u32 %r50, slot;\nmov.u32 %r52, %cluster_ctarank;\nxor.b32 %r53, %r52, 1;\n\
         mapa.shared::cluster.u32 %r51, %r50, %r53;\n{SYNC}{body}\n{SYNC}{logs}"
    );
    bench.launch(&body, 2, 32, (out, 0, 0, 0)).with_directives(".reqnctapercluster 2, 1, 1");
    let ran = bench.run_scheme("agpm");
    let selection = ran.assembly.scheme_report().expect("agpm has a hub");
    let reasons = selection["reasons"].as_object().expect("decisions by reason").clone();
    assert!(!reasons.is_empty(), "{selection}");
    reasons.contains_key("h")
}

#[test]
fn warps_that_communicate_by_another_ctas_shared_memory_are_seen_to_under_agpm() {
    let own = "st.shared.u32 [%r50], %r52;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
    let read = |from: &str| format!("{own}ld.shared::cluster.u32 %r54, [{from}];");
    assert!(!communicates(own) && !communicates(&read("%r50")), "what a warp wrote itself");
    assert!(communicates(&read("%r51")), "what a warp of the other CTA wrote, there");
    let sent = "st.shared::cluster.u32 [%r51], %r52;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
    assert!(!communicates(sent), "to write is not to read");
    assert!(communicates(&format!("{sent}ld.shared.u32 %r54, [%r50];")), "what it wrote here");
    assert!(communicates(&format!("{own}atom.shared::cluster.add.u32 %r54, [%r51], 1;")), "an atomic reads");
}

/// Cycles of eight loads, each of which needs the one before, from an address in `%r51` or `%r50`.
fn chase(overrides: &str, from: &str, lanes: &str) -> u64 {
    let chain = "ld.shared::cluster.u32 %r56, [%r55];\nadd.u32 %r55, %r55, %r56;\n".repeat(8);
    let body = format!(
        "{SYNC}mov.u32 %r55, {from};\n{lanes}{SETTLE}mov.u64 %d1, %clock64;\n{chain}mov.u32 %r57, %r55;\nmov.u64 %d2, %clock64;\n\
         sub.u64 %d3, %d2, %d1;\nst.global.u64 [%out], %d3;\n{SYNC}"
    );
    let (words, end) = pair(overrides, &body);
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    words[0]
}

#[test]
fn a_load_from_another_cta_takes_its_way_there_and_back_and_the_shared_memory_there() {
    let [own, other] = ["%r50", "%r51"].map(|from| chase("", from, "") as f64 / 8.0);
    // An addition of 4 cycles is between two loads; Luo et al. measured 180 on an H800.
    assert!((own - 4.0 - 23.0).abs() < 1.0, "{own}");
    assert!((other - 4.0 - 180.0).abs() < 2.0, "{other}");
    let longer = chase("shared.cluster_cycles=178", "%r51", "");
    assert_eq!(longer, chase("", "%r51", "") + 8 * 200, "100 cycles more on both ways of each");
    // A stride of two words: two passes through the banks of the other SM.
    let strided = "mov.u32 %r58, %laneid;\nmad.lo.u32 %r55, %r58, 8, %r55;\n";
    assert_eq!(chase("", "%r51", strided), chase("", "%r51", "") + 8);
}

/// Cycles of 16 accesses of 128 bytes each, behind which all are awaited.
fn stream(overrides: &str, access: impl Fn(u32) -> String, awaited: &str) -> u64 {
    let accesses: String = (0..16).map(access).collect();
    let body = format!(
        "{SYNC}mov.u32 %r58, %laneid;\nmad.lo.u32 %r55, %r58, 4, %r51;\n{SETTLE}mov.u64 %d1, %clock64;\n{accesses}{awaited}\
         mov.u64 %d2, %clock64;\nsub.u64 %d3, %d2, %d1;\nst.global.u64 [%out], %d3;\n{SYNC}"
    );
    let (words, end) = pair(overrides, &body);
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    words[0]
}

#[test]
fn what_an_sm_sends_of_its_shared_memory_leaves_by_the_width_of_its_link() {
    let load = |at: u32| format!("ld.shared::cluster.u32 %r{}, [%r55];\n", 20 + at);
    let sums: String = (20..36).map(|register| format!("add.u32 %r57, %r57, %r{register};\n")).collect();
    let store = |_| "st.shared::cluster.u32 [%r55], %r58;\n".to_owned();
    let fence = "fence.acq_rel.gpu;\n";
    let width = |bytes: u32| format!("shared.cluster_bytes={bytes}");
    let loads = |bytes| stream(&width(bytes), load, &sums);
    let stores = |bytes| stream(&width(bytes), store, fence);
    // The last of 16 answers, or requests, leaves behind 15 others: 8, 16 or 32 cycles each.
    assert_eq!([loads(8) - loads(16), loads(4) - loads(8)], [15 * 8, 15 * 16]);
    assert_eq!([stores(8) - stores(16), stores(4) - stores(8)], [15 * 8, 15 * 16]);
    // By default 16 bytes a cycle, 3.27 TB/s of 114 SMs at 1755 MHz (Luo et al., H800, clusters of two).
    assert_eq!((stream("", load, &sums), stream("", store, fence)), (loads(16), stores(16)));
    assert!((16.0 * 114.0 * 1755e6 / 3.27e12 - 1.0_f64).abs() < 0.03);
    // One word for all lanes comes once.
    let word = |at: u32| format!("ld.shared::cluster.u32 %r{}, [%r51];\n", 20 + at);
    assert_eq!(stream(&width(4), word, &sums), stream(&width(16), word, &sums));
}

#[test]
fn a_barrier_of_a_cluster_takes_one_way_between_two_sms() {
    let took = |overrides: &str| {
        let body = format!(
            "{SYNC}{SETTLE}{SYNC}mov.u64 %d1, %clock64;\n{SYNC}mov.u64 %d2, %clock64;\nsub.u64 %d3, %d2, %d1;\n\
             st.global.u64 [%out], %d3;\n{SYNC}"
        );
        pair(overrides, &body).0[0]
    };
    let short = took("");
    assert!((78..120).contains(&short), "{short}");
    assert_eq!(took("shared.cluster_cycles=178"), short + 100);
}

#[test]
fn accesses_to_a_cta_that_has_ended_and_machines_without_gpcs_are_told() {
    let late = format!(
        "{SYNC}setp.eq.u32 %p1, %r52, 1;\n@%p1 exit;\n{SETTLE}ld.shared::cluster.u32 %r1, [%r51];\nst.global.u32 [%out], %r1;"
    );
    let told = |end: &RunEnd| match end {
        RunEnd::Failed { error, .. } => error.to_string(),
        other => panic!("{other:?}"),
    };
    let (_, end) = pair("", &late);
    assert!(told(&end).contains("the CTA of rank 1, which has ended"), "{}", told(&end));
    let misaligned = format!("{SYNC}ld.shared::cluster.u32 %r1, [%r51+2];\n{SYNC}");
    assert!(told(&pair("", &misaligned).1).contains("not aligned to its 4 bytes"));
    let beyond = format!("{SYNC}st.shared::cluster.u32 [%r51+512], %r1;\n{SYNC}");
    assert!(told(&pair("", &beyond).1).contains("out of bounds"));
    let (_, end) = pair("sm.gpcs=0", SYNC);
    let expected = "kernel `k` has clusters of 2 CTAs, and this machine has no GPCs (`sm.gpcs` is 0)";
    assert!(told(&end).contains(expected), "{}", told(&end));
    let large = "no GPC has room for a cluster of 2 CTAs of kernel `k`: an SM holds 1, limited by ctas";
    let (_, end) = pair("sm.count=1 sm.ctas=1", SYNC);
    assert!(told(&end).contains(large), "{}", told(&end));
}

#[test]
fn a_cta_is_a_cluster_by_itself_where_none_is_asked_for() {
    let mut bench = Bench::new(machine("agpm-table4", "sm.count=2"));
    let out = bench.buffer(1024, Medium::Dram);
    let body = format!(
        ".shared .align 8 .b8 bar[264];\nmov.u32 %r50, bar;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra BEGUN;\n\
         mbarrier.init.shared.b64 [%r50], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r50], 256;\nBEGUN:\n{SYNC}\
         mapa.shared::cluster.u32 %r51, %r50, 0;\nmad.lo.u32 %r52, %tid, 4, %r51;\n\
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r52+8], %id, [%r51];\n\
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r50], 0;\n@!%p2 bra WAIT;\n{SYNC}\
         xor.b32 %r53, %tid, 63;\nmad.lo.u32 %r53, %r53, 4, %r50;\nld.shared.u32 %r1, [%r53+8];\n\
         mul.wide.u32 %d1, %id, 4;\nadd.u64 %d1, %out, %d1;\nst.global.u32 [%d1], %r1;"
    );
    bench.launch(&body, 2, 64, (out, 0, 0, 0));
    let ran = bench.run();
    assert_eq!(ran.memory, bench.functional());
    assert_eq!(sum(ran.assembly.sms().map(|sm| sm.cluster_counters()), "cluster_phases"), 2 * 2);
    assert_eq!(ran.u32s(out, 128), (0..128).map(|id: u32| id ^ 63).collect::<Vec<_>>());
}
