//! `capri` and `cwsp`: programs come to their results in regions that each core orders; what is recovered is
//! whole regions, and programs go on from it; a path that does not stop, stores that are undone in the wrong
//! order, and cores that do not wait for each other are found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Judgement, Watching, crash_cpu, journal_of_cores};
use durawarp::determinism::{Way, compare_all, difference, run_one};
use durawarp::engine::{Rebalance, Time};
use durawarp::oracle::crash::Plan;
use durawarp::oracle::judge::Watch;
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::regions::{AsPublished, AtPowerFailure, JudgeOptions, RegionFacts, judge_recovery};
use durawarp::outcome::End;
use durawarp::persist::promises::Promises;
use durawarp::persist::vocab::{CommitRule, Domain, RegionStep};
use durawarp::persist::{
    Admission, Author, CoreEvent, CoreHandler, CoreOffer, CorePolicy, FactKind, Handler, HandlerPlace, HandlerReport,
    Outbox, Peer, Scheme, SchemeMessage, opened,
};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};
use durawarp::schemes::core_regions::messages::CoreRegionMessage;

use crate::decorated::{Decorated, Decorator};

const SCHEMES: [&str; 2] = ["capri", "cwsp"];

/// Little enough to be judged in seconds.
const SMALL: [(&str, &str); 3] = [("params.TREAPS", "2"), ("params.KEYS", "8"), ("params.THREADS", "2")];

/// Threads that take each other's locks.
const LOCKS: [(&str, &str); 3] = [("params.OPS", "4"), ("params.KEYS", "8"), ("params.BUCKETS", "2")];

/// The same, in front of a memory that regions wait for.
const SLOW_LOCKS: [(&str, &str); 4] = [LOCKS[0], LOCKS[1], LOCKS[2], ("nvm.write_bandwidth_mb_s", "100")];

fn experiment(name: &str, scheme: &str, set: &[(&str, &str)]) -> CpuExperiment {
    let recipe = Experiment::of(name).machine("lightwsp-cpu").profile("ci").scheme(scheme);
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
fn programs_come_to_their_results_in_regions_that_each_core_orders() {
    for (scheme, name) in SCHEMES.into_iter().flat_map(|scheme| {
        ["treap", "hash", "stencil_cpu", "spin_counter", "kvlog"].into_iter().map(move |name| (scheme, name))
    }) {
        let outcome = run_cpu(&experiment(name, scheme, &[]), &Conduct::default()).outcome;
        let told = || format!("{name} under {scheme}: {:?}", outcome.end);
        assert!(outcome.verification.as_ref().is_some_and(|checks| checks.passed), "{}", told());
        let of = |counter| outcome.total("core", counter);
        assert!(of("regions") > 100 && of("inserted") > of("regions"), "{}", told());
    }
}

#[test]
fn a_run_is_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 5_000;
    for scheme in SCHEMES {
        let experiment = || AnyExperiment::Cpu(Box::new(experiment("hash", scheme, &LOCKS)));
        let ways: Vec<Way> = [1, 3].into_iter().flat_map(Way::at).collect();
        let reference = run_one(&experiment(), &Way::REFERENCE, EPOCH_CYCLES, None);
        let compared = compare_all(&experiment(), &reference, &ways, EPOCH_CYCLES, None, |compared| {
            // What panics behind the last of these is the way after it.
            println!("{scheme}, {}: {:?}", compared.way, compared.difference);
        });
        let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
        assert!(differ.is_empty() && compared.len() == ways.len(), "{scheme}: {differ:?}");
    }
}

/// A run with dice for each seed, with 2 to 5 threads, is compared with one of the sequential driver.
fn same_with_dice(seeds: std::ops::Range<u64>) {
    const EPOCH_CYCLES: u64 = 5_000;
    for scheme in SCHEMES {
        let experiment = AnyExperiment::Cpu(Box::new(experiment("hash", scheme, &LOCKS)));
        let reference = run_one(&experiment, &Way::REFERENCE, EPOCH_CYCLES, None);
        let unverified = experiment.with_reference(false);
        for seed in seeds.clone() {
            let conduct = Conduct {
                threads: 2 + seed as usize % 4,
                oversubscribe: true,
                rebalance: Rebalance::Dice { seed },
                epoch_cycles: Some(EPOCH_CYCLES),
                ..Conduct::default()
            };
            let difference = difference(&reference, &unverified.run(&conduct), EPOCH_CYCLES);
            assert_eq!(difference, None, "{scheme}, dice of seed {seed}, {} threads", conduct.threads);
        }
    }
}

#[test]
fn a_run_is_the_same_whatever_dice_decide_of_threads_placements_and_loans() {
    same_with_dice(0..8);
}

#[test]
#[ignore = "minutes: for a change of the engine's driver"]
fn a_run_is_the_same_whatever_dice_decide_a_thousand_times() {
    same_with_dice(1000..2000);
}

#[test]
fn whole_regions_are_recovered_and_programs_go_on_with_one_two_and_four_controllers() {
    let judged = |judgement: Option<&Judgement>| judgement.map_or(0, |j| j.verdict.judged);
    for (scheme, channels) in
        SCHEMES.into_iter().flat_map(|scheme| ["1", "2", "4"].into_iter().map(move |channels| (scheme, channels)))
    {
        for (name, set) in [("treap", &SMALL), ("hash", &LOCKS)] {
            let set = [&set[..], &[("controller.channels", channels)]].concat();
            let request = CrashRequest { double: channels == "2", resume: 6, ..CrashRequest::default() };
            let report = crash(&experiment(name, scheme, &set), &request);
            assert!(report.holds(), "{name} under {scheme}, {channels} controllers: {report:#?}");
            assert!(report.regions.unwrap() > 100 && judged(report.level(JudgedLevel::Resumed)) >= 6, "{report:#?}");
            assert!(judged(report.level(JudgedLevel::Actual)) > 500, "{report:#?}");
        }
    }
}

/// When a region's controllers committed it, the last of them, and when its core's next store left.
type Stop = (Time, Time);

/// Of each region behind which something left: when all controllers had written it, and that.
fn stops(scheme: &str) -> (Vec<Stop>, Time) {
    let experiment = experiment("treap", scheme, &SMALL);
    let (journal, _) = journal_of_cores(&experiment).unwrap();
    let (mut written, mut left) = (BTreeMap::new(), BTreeMap::new());
    for fact in journal.facts() {
        match (fact.kind, fact.author) {
            (FactKind::Region(RegionStep::Committed), Author::HeldRegion { order, region, .. }) => {
                written.insert((order, region), fact.time);
            }
            (FactKind::Region(RegionStep::Stored), Author::HartRegion { core, region, .. }) => {
                left.entry((core, region)).or_insert(fact.time);
            }
            _ => {}
        }
    }
    let next = |(&(core, number), &written): (&(u16, u32), &Time)| Some((written, *left.get(&(core, number + 1))?));
    let path_ticks = experiment.machine.spec.timebase().unwrap().ticks_of_ps(20_000);
    (written.iter().filter_map(next).collect(), path_ticks)
}

#[test]
fn capris_path_stops_until_the_word_of_the_last_controller_comes_and_no_longer() {
    let (capri, path_ticks) = stops("capri");
    assert!(capri.len() > 100);
    assert!(capri.iter().all(|&(written, left)| left >= written + path_ticks), "one tick early nothing leaves");
    let on_time = capri.iter().filter(|&&(written, left)| left == written + path_ticks).count();
    assert!(on_time > 20, "what waits leaves on time: {on_time} of {}", capri.len());
    // The path of the other never stops.
    assert!(stops("cwsp").0.iter().any(|&(written, left)| left < written));
}

/// What a machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A path goes on behind a boundary.
    PathGoesOn,
    /// Harts do not wait for regions of other cores.
    WaitsForNobody,
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
        Some(Box::new(Core { of: self.of.core_handler(place)?, fault: self.fault, controllers: place.controllers }))
    }
}

#[derive(Debug)]
struct Core {
    of: Box<dyn CoreHandler>,
    fault: Fault,
    controllers: u16,
}

impl Core {
    /// With the fault the buffer hears at once that what has left a boundary behind has persisted.
    fn go_on(&mut self, outbox: &mut Outbox) {
        let mut sent = Vec::new();
        while self.fault == Fault::PathGoesOn {
            let mut ends = Vec::new();
            for (to, word, delay) in outbox.take_timed() {
                let word: CoreRegionMessage = opened(word);
                if let (Peer::Controller(0), CoreRegionMessage::Boundary(region)) = (to, &word) {
                    ends.push(*region);
                }
                sent.push((to, word, delay));
            }
            if ends.is_empty() {
                break;
            }
            for (region, from) in ends.iter().flat_map(|&region| (0..self.controllers).map(move |from| (region, from)))
            {
                self.of.message(Peer::Controller(from), Box::new(CoreRegionMessage::Persisted(region)), outbox);
            }
        }
        sent.into_iter().for_each(|(to, word, delay)| outbox.send_in(delay, to, word));
    }
}

impl Handler for Core {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
        self.go_on(outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl CoreHandler for Core {
    fn policy(&self) -> CorePolicy {
        let policy = self.of.policy();
        CorePolicy { synchronises: policy.synchronises && self.fault != Fault::WaitsForNobody, ..policy }
    }

    fn offer(&mut self, offer: &CoreOffer, outbox: &mut Outbox) -> Admission {
        self.of.offer(offer, outbox)
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        self.of.event(event, outbox);
        self.go_on(outbox);
    }
}

#[test]
fn a_path_that_goes_on_and_cores_that_wait_for_nobody_are_found() {
    for (scheme, name, set, fault) in [
        ("capri", "treap", &SMALL[..], Fault::None),
        ("capri", "treap", &SMALL, Fault::PathGoesOn),
        ("capri", "hash", &LOCKS, Fault::WaitsForNobody),
        ("cwsp", "hash", &SLOW_LOCKS, Fault::None),
        ("cwsp", "hash", &SLOW_LOCKS, Fault::WaitsForNobody),
    ] {
        let mut experiment = experiment(name, scheme, set);
        let of = experiment.scheme.built.clone();
        experiment.scheme.built = Arc::new(Decorated(Mutant { of, fault }));
        let report = crash(&experiment, &CrashRequest { resume: 0, ..CrashRequest::default() });
        assert_eq!(report.holds(), fault == Fault::None, "{fault:?} of {scheme}: {report:#?}");
        let failed = [JudgedLevel::History, JudgedLevel::Actual].iter().filter_map(|&level| report.level(level));
        let failed: u64 = failed.map(|judgement| judgement.verdict.failed).sum();
        assert_eq!((report.outcome.end, failed > 0), (End::Finished, fault != Fault::None), "{fault:?}");
    }
}

/// Undo logs are taken back from the oldest store on.
struct OldestFirst;

impl AtPowerFailure for OldestFirst {
    fn youngest_first(&self) -> bool {
        false
    }
}

#[test]
fn an_undo_log_of_cwsp_that_is_taken_back_oldest_first_is_found() {
    let experiment = experiment("treap", "cwsp", &SMALL);
    let (journal, initial) = journal_of_cores(&experiment).unwrap();
    let logged = |step| journal.facts().iter().filter(|fact| fact.kind == FactKind::Region(step)).count();
    assert!(logged(RegionStep::Logged) > 100 && logged(RegionStep::Logged) == logged(RegionStep::Spilled));
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&journal, &initial, model);
    let controllers = experiment.machine.spec.controller.channels as usize;
    let facts = RegionFacts::new(&order, &initial, controllers, false).unwrap();
    let facts = facts.committed_by(CommitRule::Speculative);
    let asked = JudgeOptions { plan: Plan::All, double: false, seed: 0, keep: 8 };
    let (stop, progress) = (AtomicBool::new(false), |_: u64, _: u64| {});
    for (hardware, holds) in [(&AsPublished as &dyn AtPowerFailure, true), (&OldestFirst, false)] {
        let (actual, ..) =
            judge_recovery(&facts, &asked, hardware, &Watch { stop: &stop, progress: &progress }).unwrap();
        assert_eq!(actual.holds(), holds, "{:?}", actual.failures.first());
    }
}

#[test]
fn a_core_of_several_harts_a_gpu_and_values_that_contradict_each_other_are_refused() {
    for scheme in SCHEMES {
        let told = |machine: &str, name: &str, set: &[(&str, &str)]| {
            let recipe = Experiment::of(name).machine(machine).scheme(scheme);
            let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
            recipe.build_any().map(|_| ()).unwrap_err().to_string()
        };
        let harts = told("broi-cpu", "hash", &[]);
        assert!(harts.contains("core.harts") && harts.contains("one hart, and a core has 2"), "{harts}");
        let gpu = told("agpm-table4", "vecadd", &[]);
        assert!(gpu.contains("for machines of CPU cores") && gpu.contains("light-wsp"), "{gpu}");
        let (path, ack) = (format!("{scheme}.path_latency_ns"), format!("{scheme}.ack_latency_ns"));
        let links = told("lightwsp-cpu", "hash", &[(&path, "0"), (&ack, "0")]);
        assert!(links.matches("a link takes time").count() == 2, "{links}");
    }
}
