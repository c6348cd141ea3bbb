//! `light-wsp` on CPU cores: programs come to their results with regions in them; what is recovered is whole
//! regions in one order, and programs go on from it; machines that lose copies, or let lines go too early, are
//! found.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, Watching, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::persist::{
    Admission, Event, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, Interests, Offer, Outbox, Peer,
    Scheme, SchemeMessage, SmHandler, WriteBack, WriteBackRule,
};
use durawarp::riscv::functional::{End, Options, RegionRun};
use durawarp::riscv::regions::{RegionOptions, form};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};

use crate::decorated::{Decorated, Decorator};

/// Little enough to be judged in seconds.
const SMALL: [(&str, &str); 3] = [("params.TREAPS", "2"), ("params.KEYS", "8"), ("params.THREADS", "2")];

fn experiment(name: &str, set: &[(&str, &str)]) -> CpuExperiment {
    let recipe = Experiment::of(name).machine("lightwsp-cpu").profile("ci").scheme("light-wsp");
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("{name} is a program of CPUs"),
    }
}

fn crash(experiment: &CpuExperiment, request: &CrashRequest) -> CrashReport {
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
        let judged =
            |judgement: &Option<durawarp::crash::Judgement>| judgement.as_ref().map_or(0, |j| j.verdict.judged);
        assert!(report.holds(), "{channels} controllers: {report:#?}");
        assert!(report.regions.unwrap() > 100 && judged(&report.resume) >= 12, "{report:#?}");
        assert!(judged(&report.actual) > 500 && judged(&report.double) > 500, "{report:#?}");
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

    fn sm_handler(&self, place: HandlerPlace) -> Box<dyn SmHandler> {
        Box::new(Core { of: self.of.sm_handler(place), fault: self.fault, seen: 0 })
    }
}

#[derive(Debug)]
struct Core {
    of: Box<dyn SmHandler>,
    fault: Fault,
    seen: u32,
}

impl Handler for Core {
    fn interests(&self) -> Interests {
        self.of.interests()
    }

    fn offer(&mut self, offer: &Offer<'_>, outbox: &mut Outbox) -> Admission {
        self.of.offer(offer, outbox)
    }

    fn event(&mut self, event: &Event<'_>, outbox: &mut Outbox) {
        let concerned = match (self.fault, event) {
            (Fault::CopyLost, Event::Stored(store)) => !store.checkpoint,
            (Fault::CheckpointLost, Event::Stored(store)) => store.checkpoint,
            (Fault::EndLost, Event::RegionEnds { .. }) => true,
            _ => false,
        };
        self.seen += u32::from(concerned);
        if !(concerned && self.seen == 9) {
            self.of.event(event, outbox);
        }
    }

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl SmHandler for Core {
    fn write_back(&mut self, write_back: &WriteBack<'_>, outbox: &mut Outbox) -> WriteBackRule {
        self.of.write_back(write_back, outbox)
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        self.of.fence(kind)
    }
}

#[test]
fn a_machine_that_loses_a_copy_or_a_checkpoint_is_found() {
    for fault in [Fault::None, Fault::CopyLost, Fault::CheckpointLost] {
        let mut experiment = experiment("treap", &SMALL);
        let of = experiment.scheme.built.clone();
        experiment.scheme.built = Arc::new(Decorated(Mutant { of, fault }));
        let report = crash(&experiment, &CrashRequest { resume: 0, ..CrashRequest::default() });
        let found = report.history.verdict.failed > 0;
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
