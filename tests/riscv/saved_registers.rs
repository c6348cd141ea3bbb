//! `ppa`: regions end where registers run out, programs go on from saved registers, and machines that forget
//! stores too early, or give lines up too early, are found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::assemble::{CpuLoad, Persistency, assemble_cpu};
use durawarp::config::CpuMachine;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::NVM_BASE;
use durawarp::oracle::replay::{Replay, judge_replay};
use durawarp::oracle::verdict::Property;
use durawarp::persist::journal::Author;
use durawarp::persist::{
    Admission, CoreEvent, CoreHandler, CoreOffer, CorePolicy, FactKind, Handler, HandlerPlace, HandlerReport, Outbox,
    PmImage, Scheme,
};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};
use durawarp::schemes::catalogue;

use crate::common::{DATA, program};
use crate::decorated::{Decorated, Decorator};
use crate::encoding::addi;

fn experiment(name: &str, set: &[(&str, u64)]) -> CpuExperiment {
    let path = format!("{}/workloads/{name}", env!("CARGO_MANIFEST_DIR"));
    let recipe = Experiment::of(path).machine("lightwsp-cpu").profile("ci").scheme("ppa");
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("{name} is a program of CPUs"),
    }
}

fn crash(experiment: &CpuExperiment, resume: u64) -> CrashReport {
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
    crash_cpu(experiment, &CrashRequest { resume, ..CrashRequest::default() }, &watching).unwrap()
}

/// `sd rs2, 0(rs1)`.
fn sd(rs2: u32, rs1: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | 3 << 12 | 0x23
}

/// Counts of a program that stores a register and overwrites it, so many times, and ends.
fn of_pairs(pairs: u32) -> BTreeMap<&'static str, u64> {
    let lui = (DATA as u32) | 10 << 7 | 0x37;
    let pair = [sd(5, 10), addi(5, 5, 1)];
    // The region of `lui` ends at the fence.
    let mut words = vec![lui, 0x0ff0_000f];
    words.extend((0..pairs).flat_map(|_| pair));
    words.extend([addi(17, 0, 93), 0x73]);
    let process = program(&words);
    let spec = CpuMachine::read("lightwsp-cpu", &[]).unwrap().spec;
    let load = CpuLoad { process: &process, files: &[], all_persistent: true, remote_bytes: 0, regions: None };
    let persistency = Persistency { scheme: catalogue::find("ppa").unwrap(), ..Persistency::default() };
    let mut machine = assemble_cpu(&spec, load, &persistency);
    let end = machine.simulation.run(&RunOptions { threads: 1, ..RunOptions::default() });
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    machine.cores().next().unwrap().report().counters.into_iter().collect()
}

#[test]
fn a_region_ends_for_the_149th_register_and_not_for_the_148th() {
    // 180 registers, 32 of the program: 148 are held or in flight. The last is that of `li a7, 93`.
    let ends = |pairs| {
        let counts = of_pairs(pairs);
        ["register_region_ends", "fence_region_ends", "call_region_ends"].map(|name| counts[name])
    };
    assert_eq!([ends(147), ends(148)], [[0, 1, 1], [1, 1, 1]]);
    // 148 additions are in the first region. The first one of the second overwrites what a store of the first
    // has read, which is durable: one more fits.
    assert_eq!([148 + 148, 148 + 149].map(|pairs| ends(pairs)[0]), [1, 2]);
    let counts = of_pairs(148);
    // The region waits until the last store's line is written, which takes at least the way there and back.
    assert!(counts["region_wait_cycles"] >= 40 && counts["region_stores"] == 148, "{counts:?}");
}

#[test]
fn programs_go_on_from_saved_registers_to_their_results() {
    for (name, controllers) in [("hash", 4), ("rbtree", 1), ("treap", 4), ("spin_counter", 2)] {
        let experiment = experiment(name, &[("controller.channels", controllers)]);
        let report = crash(&experiment, 12);
        assert!(
            report.holds(),
            "{name}: {:#?} {:#?}",
            report.level(JudgedLevel::History),
            report.level(JudgedLevel::Resumed)
        );
        let resumed = report.level(JudgedLevel::Resumed).unwrap().verdict.judged;
        assert!(
            report.level(JudgedLevel::History).unwrap().verdict.judged > 1000 && resumed >= 6,
            "{name}: {report:#?}"
        );
    }
}

/// What a machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A region ends, and its stores are forgotten, before they are acknowledged.
    ReleasesEarly,
    /// Lines with stores that are not acknowledged are given up.
    GivesUpEarly,
    /// A store that came after a write-back is forgotten with it.
    ForgetsNewer,
}

/// `ppa` with a fault.
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
        let of = self.of.core_handler(place)?;
        Some(Box::new(Core { of, fault: self.fault, core: place.index, stored: 0, lines: BTreeMap::new() }))
    }
}

#[derive(Debug)]
struct Core {
    of: Box<dyn CoreHandler>,
    fault: Fault,
    core: u16,
    stored: u32,
    /// By line: its last store.
    lines: BTreeMap<u64, u32>,
}

impl Core {
    fn forget(&self, line: u64, last: u32, outbox: &mut Outbox) {
        outbox.note_line(FactKind::Forgotten, line, Author::Core { core: self.core, stores: last });
    }
}

impl Handler for Core {
    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl CoreHandler for Core {
    fn policy(&self) -> CorePolicy {
        self.of.policy()
    }

    fn offer(&mut self, offer: &CoreOffer, outbox: &mut Outbox) -> Admission {
        let answer = self.of.offer(offer, outbox);
        match (self.fault, offer) {
            (Fault::ReleasesEarly, CoreOffer::Durable(_)) | (Fault::GivesUpEarly, CoreOffer::GiveUp(_)) => {
                Admission::Goes
            }
            _ => answer,
        }
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        self.of.event(event, outbox);
        match (self.fault, event) {
            (_, CoreEvent::Stored(store)) => {
                self.stored += 1;
                self.lines.insert(store.line, self.stored);
            }
            (Fault::ReleasesEarly, CoreEvent::RegionPersisted { .. }) => {
                self.lines.iter().for_each(|(&line, &last)| self.forget(line, last, outbox));
            }
            (Fault::ForgetsNewer, CoreEvent::WrittenBack { line, .. }) => self.forget(*line, self.lines[line], outbox),
            _ => {}
        }
    }
}

#[test]
fn a_machine_that_forgets_or_gives_up_too_early_is_found() {
    for fault in [Fault::None, Fault::ReleasesEarly, Fault::GivesUpEarly, Fault::ForgetsNewer] {
        let mut experiment = experiment("hash", &[]);
        let of = experiment.scheme.built.clone();
        experiment.scheme.built = Arc::new(Decorated(Mutant { of, fault }));
        let report = crash(&experiment, 0);
        let found = report
            .level(JudgedLevel::History)
            .unwrap()
            .verdict
            .failures
            .iter()
            .any(|failure| failure.property == Property::Replay);
        assert_eq!(found, fault != Fault::None, "{fault:?}: {:#?}", report.level(JudgedLevel::History));
    }
}

#[test]
fn a_replay_without_its_last_store_is_found() {
    let experiment = experiment("hash", &[]);
    let finished = run_cpu(&experiment, &Conduct { journal: true, ..Conduct::default() });
    let process = experiment.program.process().unwrap();
    let load = CpuLoad { process: &process, files: &[], all_persistent: true, remote_bytes: 0, regions: None };
    let image = load.image();
    let end = image.ranges().map(|(start, bytes)| start + bytes.len() as u64).max().unwrap();
    let mut initial = PmImage::new(NVM_BASE, vec![0; (end - NVM_BASE) as usize]);
    image.ranges().for_each(|(start, bytes)| initial.write(start, bytes).unwrap());
    let judged = |replay| judge_replay(&finished.journal.clone().unwrap(), &initial, 64, replay, 1).unwrap();
    assert!(judged(Replay::All).holds() && !judged(Replay::WithoutLast).holds());
}
