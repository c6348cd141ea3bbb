//! Faults that a machine, a scheme or a program could have, each of which the oracle must find, and at which level it does.
//!
//! Over 500 lines, since every fault stands beside the others of its kind. Three kinds: decorators around a scheme's handler
//! (the machine runs the faulty scheme), programs with a fault, and journals in which the machine's facts were changed as a
//! faulty machine would have noted them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::decorated::{Decorated, Decorator};
use durawarp::config::{Override, SchemeConfig};
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, journal_of};
use durawarp::kernel::functional::Limits;
use durawarp::oracle::Regions;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::{CrashStates, Plan};
use durawarp::oracle::history::judge_history;
use durawarp::oracle::judge::{Rules, Watch, judge_actual};
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::undo::{Expected, UndoRule};
use durawarp::oracle::verdict::Property;
use durawarp::persist::{
    Admission, Boundary, Domain, Fact, FactKind, FenceKind, FenceRule, Handler, HandlerPlace, Journal, Load, Outbox,
    Peer, PmImage, Promises, Route, Scheme, SchemeMessage, SmEvent, SmHandler, SmInterests, SmOffer, Store, StoreClass,
    StoreRule, Synchronisation, SynchronisationRule, WriteBack, WriteBackClass, WriteBackRule,
};
use durawarp::run::{Conduct, Experiment};
use durawarp::schemes::catalogue;
use durawarp::workload::{FlagBarrier, Overrides};

/// What a decorator does to the answers of a handler.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    FencesPass,
    LogWriteBackLost,
    DataWriteBackLost,
    EveryThirdWriteBackLost,
    LogDropped,
    LogPastTheCachesNotWaitedFor,
    EpochEndsAtOnce,
    StrictDoesNotWait,
    GateIgnored,
    WriteBackLostWhenThePathChanges,
}

/// A scheme with a fault.
#[derive(Debug)]
struct Mutant {
    of: Arc<dyn Scheme>,
    fault: Fault,
}

#[derive(Debug)]
struct Site {
    of: Box<dyn SmHandler>,
    fault: Fault,
    asked: u64,
    /// The way of the last log update, and lines of those that were the first through the caches after others past them.
    last: Option<Route>,
    changed: Vec<u64>,
}

impl Handler for Site {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
    }
}

impl SmHandler for Site {
    fn interests(&self) -> SmInterests {
        let departures = self.fault != Fault::GateIgnored;
        let of = self.of.interests();
        SmInterests { departures: of.departures && departures, ..of }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, outbox: &mut Outbox) -> Admission {
        self.of.offer(offer, outbox)
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        self.of.event(event, outbox);
    }

    fn boundary(&mut self, outbox: &mut Outbox) -> Boundary {
        if self.fault == Fault::EpochEndsAtOnce { Boundary::None } else { self.of.boundary(outbox) }
    }

    fn bypasses_l1(&mut self, load: &Load) -> bool {
        self.of.bypasses_l1(load)
    }

    fn synchronise(&mut self, by: Synchronisation) -> SynchronisationRule {
        self.of.synchronise(by)
    }

    fn store(&mut self, store: &Store<'_>, outbox: &mut Outbox) -> StoreRule {
        let rule = self.of.store(store, outbox);
        if store.class == StoreClass::Log {
            if (self.last, rule.route) == (Some(Route::NonTemporal), Route::Temporal) {
                self.changed.extend(store.lines);
            }
            self.last = Some(rule.route);
        }
        match (self.fault, store.class) {
            (Fault::LogDropped, StoreClass::Log) => StoreRule { route: Route::Dropped, ..rule },
            (Fault::StrictDoesNotWait, _) => StoreRule { wait: false, ..rule },
            // The caches take it, and nobody writes it back.
            (Fault::LogPastTheCachesNotWaitedFor, StoreClass::Log) => StoreRule { route: Route::Temporal, ..rule },
            _ => rule,
        }
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, outbox: &mut Outbox) -> WriteBackRule {
        self.asked += 1;
        let class = write_back.class;
        let lost = match self.fault {
            Fault::LogWriteBackLost => class == WriteBackClass::Log,
            Fault::DataWriteBackLost => class == WriteBackClass::Data,
            Fault::EveryThirdWriteBackLost => self.asked.is_multiple_of(3),
            Fault::WriteBackLostWhenThePathChanges => {
                let before = self.changed.len();
                self.changed.retain(|line| class != WriteBackClass::Log || !write_back.lines.contains(line));
                self.changed.len() < before
            }
            _ => false,
        };
        if lost { WriteBackRule::Dropped } else { self.of.write_back(write_back, outbox) }
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        if self.fault == Fault::FencesPass { FenceRule::Pass } else { self.of.fence(kind) }
    }
}

impl Decorator for Mutant {
    fn of(&self) -> &dyn Scheme {
        &*self.of
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        let (of, fault) = (self.of.sm_handler(place)?, self.fault);
        Some(Box::new(Site { of, fault, asked: 0, last: None, changed: Vec::new() }))
    }
}

fn experiment(scheme: &str, fault: Fault, barrier: FlagBarrier, domain: &str) -> Experiment {
    experiment_of(("gemm", &[("NI", "16"), ("NJ", "40"), ("NK", "6")]), scheme, fault, barrier, domain)
}

fn experiment_of(
    (workload, params): (&str, &[(&str, &str)]),
    scheme: &str,
    fault: Fault,
    barrier: FlagBarrier,
    domain: &str,
) -> Experiment {
    let (name, sets) = scheme.split_once(' ').unwrap_or((scheme, ""));
    let sets: Vec<Override> = sets.split_whitespace().map(|text| Override::parse(text).unwrap()).collect();
    let of = SchemeConfig::load(name, &sets).unwrap().built;
    let recipe =
        Experiment::of(workload).scheme(Decorated(Mutant { of, fault })).profile("ci").params(params.iter().copied());
    let recipe = recipe.set("sm.count", 4).set("persist.domain", domain);
    recipe.instrument(Overrides { flag_barrier: Some(barrier), ..Overrides::default() }).build().unwrap()
}

/// A budget that keeps these tests short.
fn request() -> CrashRequest {
    let allowed = Budget { instants: 40, boundaries: 120, product: 256, random: 32, ..Budget::default() };
    CrashRequest { plan: Plan::All, allowed: Some(allowed), overtaking: 2000, keep: 4, ..CrashRequest::default() }
}

fn judged(experiment: &Experiment) -> CrashReport {
    experiment.crash(&request()).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The levels that found something: H(istory), A, B, C.
fn levels(report: &CrashReport) -> String {
    let failed = |(name, judgement): (&str, &durawarp::crash::Judgement)| {
        let message = name.strip_prefix("level ").unwrap_or("H").chars().next().unwrap();
        (!judgement.verdict.holds()).then_some(message)
    };
    report.judgements().filter_map(failed).collect()
}

fn under(scheme: &str, fault: Fault) -> String {
    let report = judged(&experiment(scheme, fault, FlagBarrier::Safe, "adr"));
    assert!(report.ended_well(), "{scheme}, {fault:?}: {:?}", report.outcome.verification);
    levels(&report)
}

#[test]
fn without_a_fault_nothing_is_found() {
    for scheme in catalogue::all() {
        assert_eq!(under(scheme.name(), Fault::None), "", "{}", scheme.name());
    }
    for domain in ["media", "eadr"] {
        for scheme in ["nt-store", "store+clwb"] {
            let report = judged(&experiment(scheme, Fault::None, FlagBarrier::Safe, domain));
            assert!(report.holds(), "{scheme} under {domain}: {}", levels(&report));
        }
    }
}

/// AGPM whose way changes after every second log update of an SM.
const ALTERNATING: &str = "agpm agpm.path=alternate agpm.alternate_logs=2";

#[test]
fn faults_of_a_scheme_are_found() {
    // (scheme, fault, levels that find it)
    let found = [
        ("store+clwb", Fault::FencesPass),
        ("nt-store", Fault::FencesPass),
        ("store+clwb", Fault::LogWriteBackLost),
        ("store+clwb", Fault::DataWriteBackLost),
        ("nt-store", Fault::DataWriteBackLost),
        ("store+clwb", Fault::EveryThirdWriteBackLost),
        ("store+clwb", Fault::LogDropped),
        ("nt-store", Fault::LogDropped),
        ("nt-store", Fault::LogPastTheCachesNotWaitedFor),
        ("bucl", Fault::FencesPass),
        ("pmem-spec", Fault::FencesPass),
        ("themis", Fault::FencesPass),
        ("themis", Fault::GateIgnored),
        ("pmem-spec pmem_spec.order=fifo", Fault::GateIgnored),
        (ALTERNATING, Fault::LogWriteBackLost),
        (ALTERNATING, Fault::WriteBackLostWhenThePathChanges),
    ]
    .map(|(scheme, fault)| (scheme, fault, under(scheme, fault)));
    for (scheme, fault, levels) in &found {
        println!("{scheme:12} {fault:?}: found at {levels}");
        assert!(!levels.is_empty(), "{fault:?} under {scheme} survived");
    }
    let at = |scheme: &str, fault: Fault| found.iter().find(|f| (f.0, f.1) == (scheme, fault)).unwrap().2.as_str();
    assert_eq!(under(ALTERNATING, Fault::None), "");
    // Stores that overtake a log update are seen in the history of the very run, not only in states that might be.
    assert!(at("themis", Fault::GateIgnored).contains('H'), "{found:?}");
    // With non-temporal log updates alone, the way to a write-pending queue is too short for a flag to overtake one.
    let media = judged(&experiment("themis themis.mode=paper", Fault::GateIgnored, FlagBarrier::Safe, "media"));
    assert!(levels(&media).contains('H'), "{}", levels(&media));
    // A lost log shows in the states that the machine really left.
    for scheme in ["store+clwb", "nt-store"] {
        assert!(at(scheme, Fault::LogDropped).contains('A'), "{found:?}");
    }
    assert!(at("store+clwb", Fault::LogWriteBackLost).contains('A'), "{found:?}");
    // Without fences, this run's timing hides much; the model's states do not.
    assert!(at("store+clwb", Fault::FencesPass).contains('B'), "{found:?}");
}

#[test]
fn the_flag_without_a_barrier_is_found_where_warps_overtake() {
    for scheme in ["nt-store", "store+clwb"] {
        let report = judged(&experiment(scheme, Fault::None, FlagBarrier::Paper, "adr"));
        assert!(levels(&report).ends_with('C'), "{scheme}: {}", levels(&report));
        let found = &report.level(JudgedLevel::Overtaking).unwrap().found[0];
        let (missing, present) = (found.missing.as_ref().unwrap(), found.present.as_ref().unwrap());
        assert_eq!(missing.buffer.as_ref().unwrap().0, "tx_flag");
        assert_eq!(present.buffer.as_ref().unwrap().0, "C");
        assert_eq!(missing.persist.cta, present.persist.cta);
        assert_ne!(missing.persist.warp, present.persist.warp);
        assert!(present.source.as_ref().unwrap().0.contains("gemm") && present.source.as_ref().unwrap().1 > 0);
    }
}

/// History and level A of a run, judged as if `domain` were what survives, with promises beyond the scheme's.
fn judged_as(
    experiment: &Experiment,
    change: impl Fn(&Journal) -> Journal,
    domain: Domain,
    promises: Promises,
) -> Vec<Property> {
    let (journal, initial) = journal_of(experiment, &Conduct::default());
    let journal = change(&journal);
    let order = RunOrder::new(&journal, &initial, Model { domain, promises });
    let states = CrashStates::new(&journal, &initial, domain).unwrap();
    let mut found: Vec<Property> =
        judge_history(&states, &order, 50).failures.into_iter().map(|failure| failure.property).collect();
    if let Some(log) = experiment.workload.undo().unwrap() {
        let expected = experiment.workload.expected(&Limits::default()).unwrap();
        let expected = expected.into_iter().map(|(old, new)| Expected { old, new }).collect();
        let undo = UndoRule::new((*log).clone(), expected, false);
        let rules = Rules { undo: Some(&undo), keep: 8, ..Rules::default() };
        let stop = AtomicBool::new(false);
        let watch = Watch { stop: &stop, progress: &|_, _| {} };
        let regions = Regions::of(undo.log());
        let actual = judge_actual(&states, &order, &rules, &regions, Plan::All, 0, &watch).unwrap();
        found.extend(actual.failures.into_iter().map(|failure| failure.property));
    }
    found.sort();
    found.dedup();
    found
}

fn same(journal: &Journal) -> Journal {
    journal.clone()
}

/// A journal with facts put into another order, each with its data and the time of its new place.
fn reordered(journal: &Journal, order: &[usize]) -> Journal {
    let mut out = Journal::default();
    for (&at, place) in order.iter().zip(journal.facts()) {
        let fact = &journal.facts()[at];
        let mut line = [0; 128];
        let mut data = journal.data(fact).iter();
        for byte in (0..128).filter(|byte| fact.mask >> byte & 1 == 1) {
            line[byte] = data.next().copied().unwrap_or_default();
        }
        match journal.data(fact) {
            [] => out.note(place.time, fact.kind, fact.line, fact.mask, fact.author),
            _ => out.note_data(place.time, fact.kind, fact.line, fact.mask, fact.author, &line),
        }
    }
    out
}

#[test]
fn an_acknowledgement_before_acceptance_is_found() {
    // The machine answers as if its L2 survived; power fails, and it does not.
    let experiment = experiment("store+clwb", Fault::None, FlagBarrier::Safe, "eadr");
    assert_eq!(judged_as(&experiment, same, Domain::Eadr, Promises::NONE), []);
    let found = judged_as(&experiment, same, Domain::Adr, Promises::NONE);
    assert!(found.contains(&Property::Acknowledged), "{found:?}");
}

#[test]
fn an_acknowledgement_at_acceptance_is_too_early_where_only_the_media_survive() {
    let experiment = experiment("nt-store", Fault::None, FlagBarrier::Safe, "media");
    assert_eq!(judged_as(&experiment, same, Domain::Media, Promises::NONE), []);
    // Every fence as early as the acceptance of what it waited for.
    let early = |journal: &Journal| {
        let facts = journal.facts();
        let mut order: Vec<usize> = (0..facts.len()).collect();
        let late = |at: &usize| facts[*at].kind == FactKind::AtMedia;
        let (media, others): (Vec<usize>, Vec<usize>) = order.drain(..).partition(late);
        reordered(journal, &others.into_iter().chain(media).collect::<Vec<_>>())
    };
    let found = judged_as(&experiment, early, Domain::Media, Promises::NONE);
    assert!(found.contains(&Property::Acknowledged), "{found:?}");
}

/// The journal of a machine whose buffer has so many lines and says that it is durable, and loses them: a write is
/// at the media when its line makes room for another, or never.
fn buffer_lost(journal: &Journal, lines: usize) -> Journal {
    let facts = journal.facts();
    let mut order: Vec<usize> = Vec::new();
    // Lines in the order in which they came, each with its facts.
    let mut buffer: VecDeque<(u64, Vec<usize>)> = VecDeque::new();
    for (at, fact) in facts.iter().enumerate() {
        if fact.kind != FactKind::AtMedia {
            order.push(at);
            continue;
        }
        let line = fact.line / 256;
        match buffer.iter_mut().find(|(own, _)| *own == line) {
            Some((_, held)) => held.push(at),
            None => buffer.push_back((line, vec![at])),
        }
        if buffer.len() > lines {
            order.extend(buffer.pop_front().into_iter().flat_map(|(_, held)| held));
        }
    }
    reordered(journal, &order)
}

#[test]
fn a_buffer_that_says_it_is_durable_and_is_lost_is_found() {
    let experiment = |device: &str| {
        let kernel = ("gemm", &[("NI", "16"), ("NJ", "40"), ("NK", "6")][..]);
        let workload = Experiment::of(kernel.0).scheme("nt-store").profile("ci").params(kernel.1.iter().copied());
        let recipe = workload.set("sm.count", 4).set("persist.domain", "media").set("nvm.device", device);
        recipe.instrument(Overrides { flag_barrier: Some(FlagBarrier::Safe), ..Overrides::default() }).build().unwrap()
    };
    // In the buffer is durable, and so says the journal.
    let durable = experiment("optane-100");
    assert_eq!(judged_as(&durable, same, Domain::Media, Promises::NONE), []);
    for lines in [64, 4, 1] {
        let found = judged_as(&durable, |journal| buffer_lost(journal, lines), Domain::Media, Promises::NONE);
        assert!(found.contains(&Property::Acknowledged), "{lines} lines: {found:?}");
    }
    // One that is lost says nothing before its cells have it: its fences wait for them.
    let lost = experiment(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/devices/lost-buffer.toml"));
    assert_eq!(judged_as(&lost, same, Domain::Media, Promises::NONE), []);
}

#[test]
fn an_older_copy_that_overwrites_a_newer_value_is_found() {
    let experiment = experiment("store+clwb", Fault::None, FlagBarrier::Safe, "adr");
    let older_last = |journal: &Journal| {
        let facts = journal.facts();
        let accepted = |at: &usize| facts[*at].kind == FactKind::Accepted;
        // The first line that was written twice with different bytes of the same mask.
        let twice = (0..facts.len()).filter(accepted).find_map(|first| {
            let same = |next: &usize| {
                let (one, other): (&Fact, &Fact) = (&facts[first], &facts[*next]);
                (one.line, one.mask) == (other.line, other.mask) && journal.data(one) != journal.data(other)
            };
            Some((first, (first + 1..facts.len()).filter(accepted).find(same)?))
        });
        let (first, second) = twice.expect("partial sums are stored again and again");
        let mut order: Vec<usize> = (0..facts.len()).collect();
        order.swap(first, second);
        reordered(journal, &order)
    };
    let found = judged_as(&experiment, older_last, Domain::Adr, Promises::NONE);
    assert!(found.contains(&Property::Value), "{found:?}");
}

#[test]
fn a_write_that_never_was_a_store_is_found() {
    let experiment = experiment("nt-store", Fault::None, FlagBarrier::Safe, "adr");
    let corrupt = |journal: &Journal| {
        let mut out = Journal::default();
        let last = journal.facts().iter().rposition(|fact| fact.kind == FactKind::Accepted);
        for (at, fact) in journal.facts().iter().enumerate() {
            let one = reordered_one(journal, fact, Some(at) == last);
            match journal.data(fact) {
                [] => out.note(fact.time, fact.kind, fact.line, fact.mask, fact.author),
                _ => out.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &one),
            }
        }
        out
    };
    let found = judged_as(&experiment, corrupt, Domain::Adr, Promises::NONE);
    assert!(found.contains(&Property::Value), "{found:?}");
}

/// A fact's line, its bytes turned over if `corrupt`.
fn reordered_one(journal: &Journal, fact: &Fact, corrupt: bool) -> [u8; 128] {
    let mut line = [0; 128];
    let mut data = journal.data(fact).iter();
    for byte in (0..128).filter(|byte| fact.mask >> byte & 1 == 1) {
        line[byte] = data.next().copied().unwrap_or_default() ^ if corrupt { 0xff } else { 0 };
    }
    line
}

/// Promises of a report, and the properties that its history lacks.
fn promised_and_lacking(experiment: &Experiment) -> (Vec<String>, Vec<Property>) {
    let report = judged(experiment);
    let history = report.level(JudgedLevel::History).expect("a history");
    let lacking = history.verdict.failures.iter().map(|failure| failure.property.clone()).collect();
    (report.promises.iter().map(ToString::to_string).collect(), lacking)
}

#[test]
fn a_promise_stands_though_the_handler_does_not_keep_it() {
    // A thread of the tiled kernel stores 16 elements to as many lines.
    let gemm: (&str, &[(&str, &str)]) = ("gemm", &[("NI", "16"), ("NJ", "40"), ("NK", "6")]);
    let tiled: (&str, &[(&str, &str)]) = ("gemm_tiled", &[("M", "64"), ("N", "64"), ("K", "16")]);
    let of_cta = ("all stores of a CTA are durable when it ends (P2)", Property::Epoch);
    let of_warp = ("a warp's stores become durable in program order (P1)", Property::Strict);
    // A fence that does not wait is passed before what it covers is performed at all.
    let of_fence = || ("what a fence let pass is durable (P9)", Property::Facts);
    for (workload, scheme, domain, fault, (promise, property)) in [
        (gemm, "epoch-cta", "adr", Fault::EpochEndsAtOnce, of_cta),
        (tiled, "strict", "media", Fault::StrictDoesNotWait, of_warp),
        (gemm, "nt-store", "adr", Fault::FencesPass, of_fence()),
        (gemm, "store+clwb", "adr", Fault::FencesPass, of_fence()),
        (gemm, "themis", "adr", Fault::FencesPass, of_fence()),
    ] {
        let of = |fault| promised_and_lacking(&experiment_of(workload, scheme, fault, FlagBarrier::Safe, domain));
        let (right, wrong) = (of(Fault::None), of(fault));
        assert_eq!(right.1, [], "{scheme}");
        assert!(right.0.iter().any(|of| of == promise), "{:?}", right.0);
        assert_eq!(wrong.0, right.0, "what is promised does not hang on the handler");
        assert!(wrong.1.contains(&property), "{fault:?} under {scheme} survived: {:?}", wrong.1);
    }
}

#[test]
fn nothing_keeps_program_order_through_the_caches() {
    let promised = Promises { strict: true, ..Promises::NONE };
    let right = experiment("strict", Fault::None, FlagBarrier::Safe, "adr");
    assert_eq!(judged_as(&right, same, Domain::Adr, promised), []);
    let wrong = experiment("epoch-kernel", Fault::None, FlagBarrier::Safe, "adr");
    let found = judged_as(&wrong, same, Domain::Adr, promised);
    assert!(found.contains(&Property::Strict), "{found:?}");
}

/// Level A's findings when recovery works with another layout than the program.
fn with_layout(change: impl Fn(&mut durawarp::persist::undo::UndoLog)) -> Vec<Property> {
    let experiment = experiment("store+clwb", Fault::None, FlagBarrier::Safe, "adr");
    let (journal, initial): (Journal, PmImage) = journal_of(&experiment, &Conduct::default());
    let mut log = (*experiment.workload.undo().unwrap().unwrap()).clone();
    change(&mut log);
    let expected = experiment.workload.expected(&Limits::default()).unwrap();
    let expected = expected.into_iter().map(|(old, new)| Expected { old, new }).collect();
    let undo = UndoRule::new(log, expected, false);
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&journal, &initial, model);
    let states = CrashStates::new(&journal, &initial, Domain::Adr).unwrap();
    let rules = Rules { undo: Some(&undo), keep: 8, ..Rules::default() };
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let regions = Regions::of(undo.log());
    let verdict = judge_actual(&states, &order, &rules, &regions, Plan::All, 0, &watch).unwrap();
    let mut found: Vec<Property> = verdict.failures.into_iter().map(|failure| failure.property).collect();
    found.dedup();
    found
}

#[test]
fn shared_and_wrong_log_slots_are_found() {
    assert_eq!(with_layout(|_| {}), []);
    // As in the published SAD kernel: no CTA offset, so that all CTAs log to the slots of the first.
    let shared = with_layout(|log| {
        let first = log.transactions[0].slots.clone();
        for transaction in &mut log.transactions {
            for (slot, of_first) in transaction.slots.iter_mut().zip(&first) {
                slot.log = of_first.log;
            }
        }
    });
    assert!(shared.contains(&Property::Disjoint), "{shared:?}");
    // As in the published splitSort kernel: an element is looked for in the slot of another.
    let wrong = with_layout(|log| {
        for transaction in &mut log.transactions {
            let (first, last) = (transaction.slots[0].log, transaction.slots.len() - 1);
            transaction.slots[0].log = transaction.slots[last].log;
            transaction.slots[last].log = first;
        }
    });
    assert!(wrong.contains(&Property::Undo), "{wrong:?}");
}
