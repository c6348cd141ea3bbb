//! Faults of LightWSP that a machine really has: decorators around the scheme's handlers change its messages on their way, the
//! machine runs so, and the oracle must find it in the history or in the states that the run left (level A), or the machine gets
//! stuck; and faults of the hardware's recovery, after failures of the right machine.
//!
//! The last of four controllers is far off (its messages from SMs take longer), so that there is a controller that
//! knows less than the others; queues are of a few stores, so that stores wait for room and spill. Lines that leave the L2
//! without a look at buffers (`victims=stale`) are in `light_wsp.rs` and, with power failures, in `litmus.rs`. Over 500 lines by a few:
//! decorators pass on what they do not change.

#[path = "../../crates/oracle/src/regions/tests/recoveries.rs"]
mod recoveries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::decorated::{Decorated, Decorator};
use durawarp::config::{MachineConfig, Override, SchemeConfig};
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Judgement, journal_of};
use durawarp::engine::Time;
use durawarp::machine::address::Interleave;
use durawarp::oracle::crash::Plan;
use durawarp::oracle::judge::Watch;
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::regions::{
    AsPublished, AtPowerFailure, JudgeOptions, Knowledge, RegionFacts, judge_recovery, judge_regions,
};
use durawarp::oracle::verdict::Property;
use durawarp::outcome::End;
use durawarp::persist::promises::Promises;
use durawarp::persist::vocab::CommitRule;
use durawarp::persist::{
    Admission, ControllerEvent, ControllerHandler, Domain, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport,
    Outbox, Peer, Scheme, SchemeMessage, SmEvent, SmHandler, SmInterests, SmOffer, Store, StoreRule, WriteBack,
    WriteBackRule, opened,
};
use durawarp::run::{Conduct, Experiment};
use durawarp::schemes::light_wsp::messages::RegionMessage;
use recoveries::{AsksNobody, DoesNotRollBack, Drains};
use smallvec::SmallVec;

/// How much longer messages from SMs to the last controller take: less than an exchange of bdry-ACKs, so that machines with faults
/// come to their end.
const FAR_NS: u64 = 30;
/// How long stores are held back that their boundaries overtake: less than controllers need to commit a region.
const HELD_BACK_NS: u64 = 30;
const CONTROLLERS: u16 = 4;
const LAST: u16 = CONTROLLERS - 1;
const SMS: u16 = 3;

/// What a machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Nothing.
    None,
    /// SMs do not send boundaries to the last controller.
    BoundaryNotSent,
    /// The same, and nobody waits for anything of the last controller.
    LastLeftOut,
    /// The same, and the last controller takes another's bdry-ACK for the boundary.
    BoundaryTakenFromAck,
    /// A boundary comes before stores that were sent before it.
    BoundaryOvertakesStores,
    /// A boundary is acknowledged while stores before it wait for room.
    AckedBeforeStoresAreIn,
    /// Controllers take a region's bdry-ACKs as given when its boundary comes.
    BoundaryAcksTakenAsGiven,
    /// Controllers take a region's flush-ACKs as given when its boundary comes.
    FlushAcksTakenAsGiven,
    /// Both.
    AllAcksTakenAsGiven,
    /// What spills is written without an undo log.
    SpilledWithoutLog,
}

/// LightWSP with a fault.
#[derive(Debug)]
struct Mutant {
    of: Arc<dyn Scheme>,
    fault: Fault,
    map: Interleave,
}

impl Mutant {
    /// A place as the scheme's handler is told of it.
    fn told(&self, place: HandlerPlace) -> HandlerPlace {
        let out = u16::from(self.fault == Fault::LastLeftOut);
        HandlerPlace { controllers: place.controllers - out, ..place }
    }
}

impl Decorator for Mutant {
    fn of(&self) -> &dyn Scheme {
        &*self.of
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        let ticks = |ns: u64| ns * place.tick_khz / 1_000_000;
        let (far, held_back) = (ticks(FAR_NS), ticks(HELD_BACK_NS));
        let of = self.of.sm_handler(self.told(place))?;
        Some(Box::new(Sm { of, fault: self.fault, map: self.map, far, held_back }))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        let of = self.of.controller_handler(if place.index == LAST { place } else { self.told(place) })?;
        Some(Box::new(Controller { of, fault: self.fault, place, seen: BTreeSet::new() }))
    }
}

/// Messages, to whom, and when they leave.
type Messages = Vec<(Peer, RegionMessage, Time)>;

fn taken(outbox: &mut Outbox) -> Messages {
    outbox.take_timed().map(|(to, message, delay)| (to, opened(message), delay)).collect()
}

/// An SM's handler with a fault.
#[derive(Debug)]
struct Sm {
    of: Box<dyn SmHandler>,
    fault: Fault,
    map: Interleave,
    /// In ticks.
    far: Time,
    held_back: Time,
}

impl Sm {
    /// Sends on what was sent `before`, and with the fault what has been since.
    fn send(&mut self, before: Messages, outbox: &mut Outbox) {
        let since = taken(outbox);
        before.into_iter().for_each(|(to, word, delay)| outbox.send_in(delay, to, word));
        for (to, word, mut delay) in since {
            let to_last = match to {
                Peer::Controller(controller) => controller == LAST,
                Peer::ControllerOf(line) => self.map.slice_of(line) / self.map.slices_per_channel() == u32::from(LAST),
                _ => false,
            };
            delay += if to_last { self.far } else { 0 };
            match (self.fault, &word) {
                (Fault::BoundaryNotSent, RegionMessage::Boundary(..)) if to_last => continue,
                (Fault::BoundaryTakenFromAck, &RegionMessage::Boundary(tag, owner)) if to_last => {
                    self.of.message(Peer::Controller(LAST), Box::new(RegionMessage::Bounded(tag, owner)), outbox);
                    continue;
                }
                (Fault::BoundaryOvertakesStores, RegionMessage::Store(..)) => delay += self.held_back,
                _ => {}
            }
            outbox.send_in(delay, to, word);
        }
    }
}

impl Handler for Sm {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let before = taken(outbox);
        self.of.message(from, message, outbox);
        self.send(before, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl SmHandler for Sm {
    fn interests(&self) -> SmInterests {
        self.of.interests()
    }

    fn offer(&mut self, offer: &SmOffer<'_>, outbox: &mut Outbox) -> Admission {
        let before = taken(outbox);
        let admission = self.of.offer(offer, outbox);
        self.send(before, outbox);
        admission
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        let before = taken(outbox);
        self.of.event(event, outbox);
        self.send(before, outbox);
    }

    fn store(&mut self, store: &Store<'_>, outbox: &mut Outbox) -> StoreRule {
        self.of.store(store, outbox)
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, outbox: &mut Outbox) -> WriteBackRule {
        self.of.write_back(write_back, outbox)
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        self.of.fence(kind)
    }
}

/// A controller's handler with a fault.
#[derive(Debug)]
struct Controller {
    of: Box<dyn ControllerHandler>,
    fault: Fault,
    place: HandlerPlace,
    /// Regions, by number, whose boundary was made up.
    seen: BTreeSet<u32>,
}

/// The other controllers.
fn others(place: HandlerPlace) -> impl Iterator<Item = Peer> {
    (0..place.controllers).filter(move |&other| other != place.index).map(Peer::Controller)
}

impl Controller {
    /// What has been asked for and sent since these messages leaves as the fault has it.
    fn send(&mut self, before: Messages, outbox: &mut Outbox) {
        let since = taken(outbox);
        before.into_iter().for_each(|(to, word, delay)| outbox.send_in(delay, to, word));
        for (to, word, delay) in since {
            let lost = match self.fault {
                // Sent already.
                Fault::AckedBeforeStoresAreIn => matches!(word, RegionMessage::BoundaryAck(_)),
                // To nobody: the boundary was made up.
                Fault::BoundaryTakenFromAck => self.place.index == LAST && matches!(word, RegionMessage::Bounded(..)),
                _ => false,
            };
            if !lost {
                outbox.send_in(delay, to, word);
            }
        }
        if self.fault == Fault::SpilledWithoutLog {
            outbox.flushes().iter_mut().for_each(|flush| flush.logged = false);
        }
    }
}

impl Handler for Controller {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let word: RegionMessage = opened(message);
        let mut before = taken(outbox);
        let mut hears = |from: Peer, word: RegionMessage| self.of.message(from, Box::new(word), outbox);
        match (self.fault, &word) {
            (Fault::BoundaryTakenFromAck, &RegionMessage::BoundaryAck(tag))
                if self.place.index == LAST && self.seen.insert(tag.number) =>
            {
                hears(Peer::Sm(0), RegionMessage::Boundary(tag, 0));
            }
            (Fault::AckedBeforeStoresAreIn, &RegionMessage::Boundary(tag, _)) => {
                before.extend(others(self.place).map(|other| (other, RegionMessage::BoundaryAck(tag), 0)));
            }
            (_, &RegionMessage::Boundary(tag, _)) => {
                for other in others(self.place) {
                    if matches!(self.fault, Fault::BoundaryAcksTakenAsGiven | Fault::AllAcksTakenAsGiven) {
                        hears(other, RegionMessage::BoundaryAck(tag));
                    }
                    if matches!(self.fault, Fault::FlushAcksTakenAsGiven | Fault::AllAcksTakenAsGiven) {
                        hears(other, RegionMessage::FlushAck(tag));
                    }
                }
            }
            // Taken as given already.
            (Fault::BoundaryAcksTakenAsGiven | Fault::AllAcksTakenAsGiven, RegionMessage::BoundaryAck(_))
            | (Fault::FlushAcksTakenAsGiven | Fault::AllAcksTakenAsGiven, RegionMessage::FlushAck(_)) => return,
            _ => {}
        }
        hears(from, word);
        self.send(before, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl ControllerHandler for Controller {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        let before = taken(outbox);
        self.of.event(event, outbox);
        self.send(before, outbox);
    }

    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        self.of.overlay(line, mask, bytes)
    }

    fn awaited(&mut self, line: u64, mask: u128, outbox: &mut Outbox) -> SmallVec<[u64; 2]> {
        let before = taken(outbox);
        let awaited = self.of.awaited(line, mask, outbox);
        self.send(before, outbox);
        awaited
    }

    fn holds(&self, line: u64) -> bool {
        self.of.holds(line)
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        self.of.lines()
    }
}

fn experiment(fault: Fault, scheme: &str) -> Experiment {
    let sets = |text: &str| text.split_whitespace().map(|text| Override::parse(text).unwrap()).collect::<Vec<_>>();
    let machine = format!("sm.count={SMS} controller.channels={CONTROLLERS}");
    let machine = MachineConfig::load("agpm-table4", &sets(&machine)).unwrap();
    let of = SchemeConfig::load("light-wsp", &sets(scheme)).unwrap().built;
    let map =
        Interleave::new(machine.spec.l2.slices, machine.spec.controller.channels, machine.spec.l2.interleave_bytes);
    let recipe = Experiment::of("gemm").machine(machine).scheme(Decorated(Mutant { of, fault, map })).profile("ci");
    recipe.params([("NI", 8), ("NJ", 40), ("NK", 4)]).max_cycles(1_000_000).build().unwrap()
}

fn judged(fault: Fault, scheme: &str) -> CrashReport {
    let request = CrashRequest { plan: Plan::All, resume: 4, ..CrashRequest::default() };
    experiment(fault, scheme).crash(&request).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Controllers go on to the next region once they have written their own stores.
const PIPELINED: &str = "light_wsp.commit=pipelined";

/// Queues of a few stores, which spill with an undo log.
const SMALL: &str = "light_wsp.wpq_entries=4 light_wsp.feb_entries=8";

/// What a judgement finds first: all it finds is about regions.
fn first(judgement: &Judgement) -> &str {
    assert!(judgement.found.iter().all(|found| found.failure.property == Property::Regions), "{judgement:?}");
    judgement.found.first().map_or("", |found| &found.failure.what)
}

#[test]
fn the_machine_without_a_fault_is_right_with_a_controller_far_off() {
    let modes = ["", PIPELINED].map(|mode| [SMALL, "", "light_wsp.id_bits=4"].map(|sets| (mode, sets)));
    for (mode, sets) in modes.concat() {
        let report = judged(Fault::None, &format!("{sets} {mode}"));
        assert!(report.holds() && report.changes > 600, "{mode} {sets}: {:?}", report.outcome.end);
        assert_eq!(report.outcome.scheme_counters["wpq_spilled_stores"] > 100, sets == SMALL, "{mode} {sets}");
    }
}

#[test]
fn faults_of_the_running_machine_are_found() {
    let stuck = "regions are not committed";
    // The fault; queues; what is said of the run's end, if it is not the right one; what history and level A find first.
    for (fault, sets, end, history, actual) in [
        // Nothing goes on, so that nothing wrong is written.
        (Fault::BoundaryNotSent, SMALL, stuck, "", ""),
        (Fault::BoundaryNotSent, "", stuck, "", ""),
        (Fault::LastLeftOut, SMALL, stuck, "is done with it when 3 of 4 have its boundary", "flush IDs differ"),
        (Fault::LastLeftOut, "", stuck, "is done with it when 3 of 4 have its boundary", "flush IDs differ"),
        (Fault::BoundaryTakenFromAck, "", "", "controller 3 takes a store behind its boundary", "it lacks region 0"),
        (Fault::BoundaryOvertakesStores, "", "", "takes a store behind its boundary", "it lacks region 0"),
        // A store waits where there is little room only.
        (Fault::AckedBeforeStoresAreIn, SMALL, "", "when 2 of 4 controllers have its boundary", "it has region"),
        (Fault::BoundaryAcksTakenAsGiven, SMALL, "", "when 1 of 4 have its boundary", "it has region"),
        (Fault::BoundaryAcksTakenAsGiven, "", "", "when 1 of 4 have its boundary", "it has region"),
        // A controller that goes on is done with a region that all have the boundary of: recovery has the rest of it written by the
        // others, and what it has spilled since has a log. No image shows that it was early.
        (Fault::FlushAcksTakenAsGiven, SMALL, "", "commits it when 1 of 4 controllers are done with it", ""),
        (Fault::FlushAcksTakenAsGiven, "", "", "commits it when 1 of 4 controllers are done with it", ""),
        (Fault::AllAcksTakenAsGiven, SMALL, "", "when 1 of 4 have its boundary", "flush IDs differ"),
        (Fault::SpilledWithoutLog, SMALL, "", "flushes it when 0 of 4 controllers have its boundary", "it has region"),
    ] {
        assert_found(fault, sets, end, [history, actual]);
    }
}

/// Runs a machine with a fault: how it ends, and what history and level A find first.
fn assert_found(fault: Fault, sets: &str, end: &str, [history, actual]: [&str; 2]) {
    let report = judged(fault, sets);
    let at = format!("{fault:?} {sets}");
    match &report.outcome.end {
        End::Finished => assert!(end.is_empty(), "{at} comes to its end"),
        End::Deadlock { waits } => {
            let told = |wait: &String| wait.contains("gated WPQ") && wait.contains(end);
            assert!(!end.is_empty() && waits.iter().any(told), "{at}: {waits:?}");
        }
        End::Panicked { message } if !end.is_empty() && message.contains(end) => {}
        other => panic!("{at}: {other:?}"),
    }
    assert!(!report.holds(), "{at}");
    for (found, words) in
        [(report.level(JudgedLevel::History).unwrap(), history), (report.level(JudgedLevel::Actual).unwrap(), actual)]
    {
        let what = first(found);
        assert!(what.contains(words) && what.is_empty() == words.is_empty(), "{at}: `{what}`, not `{words}`");
    }
}

#[test]
fn faults_of_controllers_that_go_on_by_themselves_are_found() {
    let (small, large) = (&format!("{SMALL} {PIPELINED}")[..], PIPELINED);
    let (stuck, late) = ("regions are not committed", "a region that is committed");
    for (fault, sets, end, history, actual) in [
        (Fault::LastLeftOut, large, stuck, "is done with it when 3 of 4 have its boundary", "flush IDs differ"),
        // A store comes to a controller that is done with its region, which the model refuses.
        (Fault::BoundaryTakenFromAck, large, late, "", "it lacks region 0"),
        (Fault::BoundaryOvertakesStores, large, late, "takes a store behind its boundary", "it lacks region 0"),
        (Fault::AckedBeforeStoresAreIn, small, "", "when 3 of 4 have its boundary", "flush IDs differ"),
        (Fault::BoundaryAcksTakenAsGiven, small, "", "when 1 of 4 have its boundary", "flush IDs differ"),
        (Fault::BoundaryAcksTakenAsGiven, large, "", "when 1 of 4 have its boundary", "flush IDs differ"),
        (Fault::SpilledWithoutLog, small, "", "flushes it when 0 of 4 controllers have its boundary", "it has region"),
    ] {
        assert_found(fault, sets, end, [history, actual]);
    }
    // Flush-ACKs say only when IDs may be used again.
    assert!(judged(Fault::FlushAcksTakenAsGiven, large).holds());
}

#[test]
fn an_id_that_is_given_again_while_a_controller_still_waits_for_its_region_is_refused() {
    // With 16 IDs and nobody who waits for the last controller, its window has passed before it has committed anything.
    let report = judged(Fault::LastLeftOut, "light_wsp.id_bits=4");
    let End::Panicked { message } = &report.outcome.end else { panic!("{:?}", report.outcome.end) };
    assert!(message.contains("mc3") && message.contains("too young"), "{message}");
}

#[test]
fn faults_of_recovery_are_found_after_failures_of_the_right_machine() {
    // What is wrong after recovery, where power failed in this very run; none for the published recovery.
    let faults = [
        ("as published", &AsPublished as &dyn AtPowerFailure, SMALL, None),
        ("as published", &AsPublished, "", None),
        ("drains", &Drains, SMALL, Some("it lacks region")),
        ("drains", &Drains, "", Some("it lacks region")),
        ("asks nobody", &AsksNobody, SMALL, Some("it has region 1")),
        ("asks nobody", &AsksNobody, "", Some("it has region 1")),
        ("does not roll back", &DoesNotRollBack, SMALL, Some("it has region")),
        // Nothing spills.
        ("does not roll back", &DoesNotRollBack, "", None),
    ];
    let modes = [("", CommitRule::Acked), (PIPELINED, CommitRule::Pipelined)];
    for ((name, hardware, sets, words), (mode, commit)) in
        faults.into_iter().flat_map(|one| modes.map(|two| (one, two)))
    {
        let experiment = experiment(Fault::None, &format!("{sets} {mode}"));
        let (journal, initial) = journal_of(&experiment, &Conduct::default());
        let model = Model { domain: Domain::Adr, promises: Promises::NONE };
        let order = RunOrder::new(&journal, &initial, model);
        let facts = RegionFacts::new(&order, &initial, usize::from(CONTROLLERS), false).unwrap();
        let facts = facts.committed_by(commit);
        assert!(judge_regions(&facts, true, 8).holds(), "{name} {sets}");
        let asked = JudgeOptions { plan: Plan::All, double: false, seed: 0, keep: 8 };
        let stop = AtomicBool::new(false);
        let watch = Watch { stop: &stop, progress: &|_, _| {} };
        let (actual, ..) = judge_recovery(&facts, &asked, hardware, &watch).unwrap();
        assert_eq!(actual.judged, facts.changes() + 1, "{name} {sets}");
        assert!(actual.failures.iter().all(|failure| failure.property == Property::Regions), "{name} {sets}");
        let found = actual.failures.first().map(|failure| failure.what.as_str());
        assert_eq!(found.is_some(), words.is_some(), "{name} {sets}: {found:?}");
        assert!(found.unwrap_or_default().contains(words.unwrap_or_default()), "{name} {sets}: {found:?}");
    }
}
