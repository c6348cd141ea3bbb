//! `light-wsp` on CPU cores: programs come to their results with regions in them; what is recovered is whole
//! regions in one order, and programs go on from it; machines that lose copies, or let lines go too early, are
//! found.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::persist::journal::Author;
use durawarp::persist::{
    Admission, CoreEvent, CoreHandler, CoreOffer, CorePolicy, Handler, HandlerPlace, HandlerReport, Outbox, PathStore,
    Peer, Scheme, SchemeMessage,
};
use durawarp::riscv::functional::{End, Options, RegionRun};
use durawarp::riscv::regions::{RegionOptions, form};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};

use crate::decorated::{Decorated, Decorator};

/// Little enough to be judged in seconds.
const SMALL: [(&str, &str); 3] = [("params.TREAPS", "2"), ("params.KEYS", "8"), ("params.THREADS", "2")];

pub(crate) fn experiment(name: &str, set: &[(&str, &str)]) -> CpuExperiment {
    let recipe = Experiment::of(name).machine("lightwsp-cpu").profile_if_any("ci").scheme("light-wsp");
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("{name} is a program of CPUs"),
    }
}

pub(crate) fn crash(experiment: &CpuExperiment, request: &CrashRequest) -> CrashReport {
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    crash_cpu(experiment, request, &Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} }).unwrap()
}

#[test]
fn programs_come_to_their_results_in_regions_of_the_paper_s_sizes() {
    for name in ["treap", "hash", "stencil_cpu", "spin_counter", "kvlog"] {
        let experiment = experiment(name, &[]);
        let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
        assert!(outcome.verification.as_ref().is_some_and(|checks| checks.passed), "{name}: {:?}", outcome.end);
        let [regions, inserted] = ["regions", "inserted"].map(|counter| outcome.total("core", counter));
        assert!(regions > 100 && inserted > regions, "{name}: {inserted} stores of {regions} regions");
        let sizes = &outcome.regions().unwrap().sizes;
        // Of what the system stores for a thread that it starts nobody counts.
        let beyond = sizes.by_stores.range(33..).map(|(_, regions)| regions).sum::<u64>();
        assert!(beyond <= outcome.total("os", "threads"), "{name}: {:?}", sizes.by_stores);
    }
    let values = &experiment("hash", &[]).scheme.values;
    let of = |key: &str| values[&format!("light_wsp.{key}")].as_u64().unwrap();
    assert_eq!(["entry_bytes", "wpq_entries", "feb_entries", "path_mb_s"].map(of), [8, 64, 64, 4000]);
}

/// Squashes lose nothing of what boundaries depend on: a core with a window stores what the functional driver
/// stores, instruction by instruction.
#[test]
fn a_core_executes_the_boundaries_and_stores_the_registers_that_the_functional_driver_does() {
    for name in ["treap", "hash", "rbtree", "kvlog", "reserve"] {
        let experiment = experiment(name, &[("params.THREADS", "1")]);
        let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
        let process = experiment.program.process().unwrap();
        let value = |key: &str| experiment.scheme.values[&format!("light_wsp.{key}")].clone();
        let of = |key: &str| u32::try_from(value(key).as_u64().unwrap()).unwrap();
        let options = RegionOptions {
            threshold_stores: of("threshold_stores"),
            unroll_factor: of("unroll_factor"),
            ..RegionOptions::default()
        };
        let table = Arc::new(form(&process.image, &process.code, &options).unwrap());
        let mut run = RegionRun::new(&process, process.memory(), &table, &Options::default());
        assert_eq!(run.advance(u64::MAX), Some(End::Exited(0)), "{name}");
        let counts = run.counts();
        let timed = ["regions", "inserted"].map(|counter| outcome.total("core", counter));
        assert_eq!(timed, [counts.regions(), counts.checkpoints + counts.regions()], "{name}");
        assert!(outcome.total("core", "mispredictions") > 100, "{name}");
    }
}

#[test]
fn a_run_is_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 5_000;
    let experiment = || AnyExperiment::Cpu(Box::new(experiment("treap", &SMALL)));
    let ways: Vec<Way> = [1, 2, 3].into_iter().flat_map(Way::at).collect();
    let reference = run_one(&experiment(), &Way::REFERENCE, EPOCH_CYCLES, None);
    let compared = compare_all(&experiment(), &reference, &ways, EPOCH_CYCLES, None, |_| {});
    let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
    assert!(differ.is_empty() && compared.len() == ways.len(), "{differ:?}");
}

#[test]
fn whole_regions_are_recovered_and_programs_go_on_with_one_two_and_four_controllers() {
    for channels in ["1", "2", "4"] {
        let experiment = experiment("treap", &[&SMALL[..], &[("controller.channels", channels)]].concat());
        let report = crash(&experiment, &CrashRequest { double: true, resume: 12, ..CrashRequest::default() });
        let judged = |judgement: Option<&durawarp::crash::Judgement>| judgement.map_or(0, |j| j.verdict.judged);
        assert!(report.holds(), "{channels} controllers: {report:#?}");
        assert!(report.regions.unwrap() > 100 && judged(report.level(JudgedLevel::Resumed)) >= 12, "{report:#?}");
        assert!(
            judged(report.level(JudgedLevel::Actual)) > 500 && judged(report.level(JudgedLevel::CutOff)) > 500,
            "{report:#?}"
        );
    }
}

#[test]
fn programs_come_to_their_results_under_each_policy_of_l1_victims_and_with_small_caches() {
    let ran = ["full", "half", "zero"].map(|victims| {
        // 16 lines an L1, 1,024 in the shared cache, and copies that take their time.
        let caches = [("l1d.kb", "1"), ("llc.slice_kb", "8"), ("dram_cache.mb", "1"), ("light_wsp.path_mb_s", "200")];
        let set = [&SMALL[..], &caches, &[("light_wsp.snoop", "feb"), ("light_wsp.victims", victims)]].concat();
        let outcome = run_cpu(&experiment("treap", &set), &Conduct::default()).outcome;
        assert!(outcome.verification.as_ref().is_some_and(|checks| checks.passed), "{victims}: {:?}", outcome.end);
        ["victims_searched_lines", "victim_conflicts_lines"].map(|name| outcome.scheme_counters[name])
    });
    assert!(ran.iter().all(|&[searched, conflicts]| searched > conflicts && conflicts > 0), "{ran:?}");
}

/// Of 20 more regions of `spaced_regions`: ns until they were persisted, ns that the hart waited for room.
fn twenty_regions(variant: &str, feb_entries: &str) -> [u64; 2] {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/riscv/spaced_regions.elf");
    let [few, many] = ["--some", "--more"].map(|number| {
        let recipe = Experiment::of(program).machine("lightwsp-cpu").scheme("light-wsp").args([variant, number]);
        // An event a cycle: what is told of several at once is told of the last one.
        let recipe = recipe.set("light_wsp.feb_entries", feb_entries).set("core.batch_cycles", "1");
        let Ok(AnyExperiment::Cpu(experiment)) = recipe.build_any() else { panic!("an executable") };
        let counters = run_cpu(&experiment, &Conduct::default()).outcome.scheme_counters;
        ["regions", "regions_persisting_ns", "feb_full_ns"].map(|name| counters[name])
    });
    assert_eq!(many[0] - few[0], 20, "{variant}");
    [many[1] - few[1], many[2] - few[2]]
}

/// Formula 1: an efficiency of 1 - T_wait / T_p. What a region takes on an idle path follows from Table I.
#[test]
fn regions_persist_in_the_time_of_formula_1_and_harts_wait_for_room_alone() {
    // The sequencer's answer; an entry of 8 B at 4 GB/s; the path and its acknowledgement; a store a cycle.
    let (id, entry, path, cycle) = (40.0, 2.0, 40.0, 0.5);
    let twenty = |ns: f64| (20.0 * ns) as u64;
    // Eight stores and the program counter's, which is the boundary, wait for the region's ID; the end is eight
    // cycles on.
    assert_eq!(twenty_regions("--early", "64"), [twenty(id + 9.0 * entry + path - 8.0 * cycle), 0]);
    // All stores have come when the region ends: what is left is the boundary.
    assert_eq!(twenty_regions("--late", "64"), [twenty(entry + path), 0]);
    // 25 entries and a buffer of 16: the first is acknowledged, then one after the other.
    let first = id + entry + path - 16.0 * cycle;
    let waited = first + 8.0 * (entry - cycle);
    assert_eq!(twenty_regions("--burst", "16"), [twenty(entry + path), twenty(waited)]);
}

/// Regions of `waiting`, of which one thread works and the others wait for it.
fn waiting(threads: &str, way: &[&str], set: &[(&str, &str)]) -> [u64; 2] {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/riscv/waiting.elf");
    let args = [&["--threads", threads], way].concat();
    let recipe = Experiment::of(program).machine("lightwsp-cpu").scheme("light-wsp").args(args);
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    let Ok(AnyExperiment::Cpu(experiment)) = recipe.build_any() else { panic!("an executable") };
    let outcome = run_cpu(&experiment, &Conduct::default()).outcome;
    assert_eq!(outcome.process.as_ref().and_then(|process| process.exit_code), Some(0), "{:?}", outcome.end);
    let [regions, drawn] = [outcome.total("core", "regions"), outcome.scheme_counters["regions"]];
    // In a system of two cores and more, stores of the program, checkpoints and program counters are all that
    // is on the path.
    assert!(drawn >= regions, "{drawn} IDs of {regions} regions");
    [regions, outcome.total("core", "inserted")]
}

#[test]
fn threads_that_wait_have_no_regions_and_no_latency_changes_how_many_there_are() {
    let [alone, _] = waiting("1", &[], &[]);
    for way in [&[][..], &["--plain"]] {
        let [regions, inserted] = waiting("8", way, &[]);
        // Seven threads are started and end.
        assert!(regions < alone + 7 * 20, "{way:?}: {regions} regions, {alone} of one thread");
        for (key, ns) in [("ack_latency_ns", "2.5"), ("ack_latency_ns", "200"), ("path_latency_ns", "100")] {
            let others = waiting("8", way, &[(&format!("light_wsp.{key}"), ns)]);
            assert_eq!(others, [regions, inserted], "{way:?}, {key} of {ns}");
        }
    }
}

/// What a machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A core makes no copy of one of its stores.
    CopyLost,
    /// A core makes no copy of one of its checkpoints.
    CheckpointLost,
    /// A core does not end one of its regions.
    EndLost,
    /// A core's store buffer lets the end of a region overtake one of its stores.
    OutOfOrder,
}

#[derive(Debug)]
struct Mutant {
    of: Arc<dyn Scheme>,
    fault: Fault,
}

impl Decorator for Mutant {
    fn of(&self) -> &dyn Scheme {
        &*self.of
    }

    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(Core { of: self.of.core_handler(place)?, fault: self.fault, seen: 0, late: None }))
    }
}

#[derive(Debug)]
struct Core {
    of: Box<dyn CoreHandler>,
    fault: Fault,
    seen: u32,
    /// A store that is overtaken, with its bytes.
    late: Option<(u8, Author, u64, u128, [u8; 128])>,
}

impl Handler for Core {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl CoreHandler for Core {
    fn policy(&self) -> CorePolicy {
        self.of.policy()
    }

    fn offer(&mut self, offer: &CoreOffer, outbox: &mut Outbox) -> Admission {
        self.of.offer(offer, outbox)
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        let concerned = match (self.fault, event) {
            (Fault::CopyLost, CoreEvent::Stored(store)) => !store.checkpoint,
            (Fault::CheckpointLost, CoreEvent::Stored(store)) => store.checkpoint,
            (Fault::EndLost, CoreEvent::RegionEnds { .. }) => true,
            (Fault::OutOfOrder, CoreEvent::Stored(store)) => !store.checkpoint,
            _ => false,
        };
        self.seen += u32::from(concerned);
        if !(concerned && self.seen == 9) {
            self.of.event(event, outbox);
        } else if let (Fault::OutOfOrder, CoreEvent::Stored(store)) = (self.fault, event) {
            self.late = Some((store.by, store.author, store.line, store.mask, *store.bytes));
        }
        if matches!(event, CoreEvent::RegionEnds { .. })
            && let Some((by, author, line, mask, bytes)) = self.late.take()
        {
            let late = PathStore { by, author, line, mask, bytes: &bytes, checkpoint: false };
            self.of.event(&CoreEvent::Stored(&late), outbox);
        }
    }
}

#[test]
fn a_machine_that_loses_a_copy_or_a_checkpoint_or_lets_a_store_be_overtaken_is_found() {
    for fault in [Fault::None, Fault::CopyLost, Fault::CheckpointLost, Fault::OutOfOrder] {
        let mut experiment = experiment("treap", &SMALL);
        let of = experiment.scheme.built.clone();
        experiment.scheme.built = Arc::new(Decorated(Mutant { of, fault }));
        let report = crash(&experiment, &CrashRequest { resume: 0, ..CrashRequest::default() });
        let found = report.level(JudgedLevel::History).unwrap().verdict.failed > 0;
        assert_eq!((found, report.holds()), (fault != Fault::None, fault == Fault::None), "{fault:?}: {report:#?}");
    }
}

/// A region that goes on over a boundary is recovered to the next one: slower, and not wrong.
#[test]
fn a_region_without_its_end_is_one_with_the_next() {
    let mut experiment = experiment("treap", &SMALL);
    let of = experiment.scheme.built.clone();
    experiment.scheme.built = Arc::new(Decorated(Mutant { of, fault: Fault::EndLost }));
    assert!(crash(&experiment, &CrashRequest { resume: 8, ..CrashRequest::default() }).holds());
}

/// `samples/polls`: with its region open, a thread that polls would wait for a store for which the queues have no room
/// before this region ends.
#[test]
fn a_thread_that_polls_ends_its_region_before_and_by_the_paper_s_rule_all_wait_for_ever() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/riscv/samples/polls/polls.elf");
    let ran = |scheme: &str, set: &[(&str, &str)]| {
        let recipe = Experiment::of(program).machine("lightwsp-cpu").scheme(scheme).max_cycles(2_000_000);
        let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
        let AnyExperiment::Cpu(experiment) = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) else {
            panic!("a program of CPUs")
        };
        run_cpu(&experiment, &Conduct::default()).outcome
    };
    let base = ran("base", &[]).time.core_cycles;
    for (scheme, set) in [
        ("light-wsp", &[][..]),
        ("light-wsp", &[("light_wsp.commit", "pipelined")]),
        ("light-wsp", &[("light_wsp.boundary_at", "fences")]),
        ("capri", &[]),
        ("cwsp", &[]),
    ] {
        let outcome = ran(scheme, set);
        assert_eq!(outcome.end, durawarp::outcome::End::Finished, "{scheme} {set:?}");
        assert!(outcome.verification.as_ref().is_none_or(|checks| checks.passed), "{scheme} {set:?}");
        assert!(outcome.time.core_cycles < 20 * base, "{scheme} {set:?}: {}", outcome.time.core_cycles);
    }
    let published = ran("light-wsp", &[("light_wsp.boundary_at", "x86")]);
    assert_ne!(published.end, durawarp::outcome::End::Finished);
}

#[test]
fn factors_and_thresholds_out_of_range_are_refused_together() {
    let recipe = Experiment::of("treap").machine("lightwsp-cpu").profile("ci").scheme("light-wsp");
    let refused = recipe.set("light_wsp.unroll_factor", "9").set("light_wsp.threshold_stores", "3").build_any();
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("an unroll factor of 9: expected 1 to 8"), "{told}");
    assert!(told.contains("a threshold of 3 stores is too small"), "{told}");
    experiment("treap", &[("light_wsp.unroll_factor", "8"), ("light_wsp.threshold_stores", "4")]);
    experiment(
        "treap",
        &[("light_wsp.unroll_factor", "9"), ("light_wsp.unroll", "false"), ("light_wsp.speculative_unroll", "false")],
    );
}

#[test]
fn a_program_without_symbols_is_refused() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/treap/treap.elf");
    let bytes = std::fs::read(program).unwrap();
    let stripped = without_symbols(bytes);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("stripped_treap");
    std::fs::write(&path, stripped).unwrap();
    let recipe = Experiment::of(path.to_str().unwrap()).machine("lightwsp-cpu").scheme("light-wsp");
    let told = recipe.build_any().unwrap_err().to_string();
    assert!(told.contains("the program needs a symbol table"), "{told}");
}

/// The same file with no sections.
fn without_symbols(mut elf: Vec<u8>) -> Vec<u8> {
    // e_shoff, and e_shnum with e_shstrndx.
    elf[40..48].fill(0);
    elf[60..64].fill(0);
    elf
}
