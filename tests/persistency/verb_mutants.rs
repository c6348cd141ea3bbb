//! Faults of the NIC and of the controller under delegated ordering: decorators around the handlers of `broi`
//! and `epoch` acknowledge, order or choose wrongly, and the oracle must find it in how memory changed: of
//! clients' verbs (P6), of the server's own program (P5), or both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::oracle::crash::Plan;
use durawarp::oracle::verdict::{Property, Verdict};
use durawarp::outcome::End;
use durawarp::persist::journal::Author;
use durawarp::persist::{
    Banks, ControllerEvent, ControllerHandler, Handler, HandlerPlace, HandlerReport, Held, NicEvent, NicHandler,
    Outbox, Peer, Scheme, SchemeMessage, opened,
};
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::schemes::delegated::messages::{DelegatedMessage, Persist};

use crate::decorated::{Decorated, Decorator};

/// What a machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// The NIC acknowledges a verb when its last line is here; with data direct I/O, when it is in the shared
    /// cache.
    NicAnswersAtArrival,
    /// The NIC's barrier stands behind the first line of a verb, and not behind the last.
    BarrierAfterFirstLine,
    /// Whatever is durable is taken for the oldest verb of all channels.
    ChannelsShareSequence,
    /// The controller says that a request is durable when it comes.
    ControllerAnswersAtArrival,
    /// A barrier stands one request too far behind.
    BarrierOffByOne,
    /// Requests of the next set are chosen when the ready set is under way, and not durable.
    NextSetEarly,
}

/// A scheme with a fault.
#[derive(Debug)]
struct Faulty {
    of: Arc<dyn Scheme>,
    fault: Fault,
}

impl Decorator for Faulty {
    fn of(&self) -> &dyn Scheme {
        &*self.of
    }

    fn nic_handler(&self, place: HandlerPlace) -> Option<Box<dyn NicHandler>> {
        let (of, fault) = (self.of.nic_handler(place)?, self.fault);
        Some(Box::new(Nic { of, fault, order: VecDeque::new(), ends: BTreeMap::new() }))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        let (of, fault) = (self.of.controller_handler(place)?, self.fault);
        Some(Box::new(Controller { of, fault, harts: BTreeMap::new() }))
    }
}

/// What a channel has of ends of verbs.
#[derive(Debug, Default)]
struct VerbEnds {
    /// The verb whose first line was stored last.
    began: u32,
    /// Ends that came, and that are durable but were not said to be.
    came: u64,
    settled: u64,
}

#[derive(Debug)]
struct Nic {
    of: Box<dyn NicHandler>,
    fault: Fault,
    /// Channels in the order in which their verbs ended.
    order: VecDeque<u8>,
    ends: BTreeMap<u8, VerbEnds>,
}

impl Nic {
    /// Lets the handler do something, and says which verbs are durable then, as the fault has it.
    fn settling(&mut self, outbox: &mut Outbox, act: impl FnOnce(&mut dyn NicHandler, &mut Outbox)) {
        let said = std::mem::take(outbox.settled());
        act(&mut *self.of, outbox);
        let new = std::mem::replace(outbox.settled(), said);
        for author in new {
            match self.fault {
                Fault::NicAnswersAtArrival => {}
                Fault::ChannelsShareSequence => {
                    let oldest = self.order.pop_front().unwrap();
                    outbox.settle(Author::Channel(oldest.into()));
                }
                Fault::BarrierAfterFirstLine => {
                    let Author::Channel(channel) = author else { panic!("{author:?}") };
                    self.ends.get_mut(&(channel as u8)).unwrap().settled += 1;
                }
                _ => outbox.settle(author),
            }
        }
        // No verb is over before its last line is here.
        for (channel, ends) in &mut self.ends {
            let over = ends.came.min(ends.settled);
            (ends.came, ends.settled) = (ends.came - over, ends.settled - over);
            (0..over).for_each(|_| outbox.settle(Author::Channel((*channel).into())));
        }
    }
}

impl Handler for Nic {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.settling(outbox, |handler, outbox| handler.message(from, message, outbox));
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl NicHandler for Nic {
    fn has_room(&mut self, channel: u8) -> bool {
        self.of.has_room(channel)
    }

    fn event(&mut self, event: &NicEvent<'_>, outbox: &mut Outbox) {
        let (mut early, mut ends_here) = (false, true);
        match (self.fault, event) {
            (Fault::BarrierAfterFirstLine, NicEvent::Stored(store) | NicEvent::Posted(store)) => {
                let ends = self.ends.entry(store.by).or_default();
                let (_, verb) = store.author.verb().unwrap();
                early = std::mem::replace(&mut ends.began, verb) != verb;
            }
            (Fault::BarrierAfterFirstLine, NicEvent::VerbEnds(channel)) => {
                self.ends.entry(*channel).or_default().came += 1;
                ends_here = false;
            }
            (_, NicEvent::VerbEnds(channel)) => self.order.push_back(*channel),
            _ => {}
        }
        self.settling(outbox, |handler, outbox| {
            if ends_here {
                handler.event(event, outbox);
            }
            if let (true, NicEvent::Stored(store) | NicEvent::Posted(store)) = (early, event) {
                handler.event(&NicEvent::VerbEnds(store.by), outbox);
            }
        });
        if let (Fault::NicAnswersAtArrival, NicEvent::VerbEnds(channel)) = (self.fault, event) {
            outbox.settle(Author::Channel((*channel).into()));
        }
    }
}

/// What a controller was sent of a hart and has not heard of, and what is in its queue.
#[derive(Debug, Default)]
struct HartQueue {
    /// A barrier that comes late.
    barrier: bool,
    /// Requests, with barriers between, that are held back.
    held: VecDeque<Option<Persist>>,
    /// Lines whose requests were not chosen.
    waiting: BTreeSet<u64>,
}

#[derive(Debug)]
struct Controller {
    of: Box<dyn ControllerHandler>,
    fault: Fault,
    harts: BTreeMap<u16, HartQueue>,
}

impl Controller {
    fn receive(&mut self, message: DelegatedMessage, outbox: &mut Outbox) {
        self.of.message(Peer::Hub, Box::new(message), outbox);
    }

    /// Passes on what comes behind a set whose requests were all chosen.
    fn choose_early(&mut self, outbox: &mut Outbox) {
        if self.fault != Fault::NextSetEarly {
            return;
        }
        loop {
            for flush in outbox.flushes().iter() {
                let hart = self.harts.get_mut(&((flush.token >> 48) as u16)).unwrap();
                hart.waiting.remove(&flush.line);
            }
            let ready = |hart: &HartQueue| hart.held.front().is_some_and(|of| of.is_some() || hart.waiting.is_empty());
            let Some(hart) = self.harts.values_mut().find(|hart| ready(hart)) else { return };
            // A barrier is gone when all before it is under way.
            if let Some(Some(persist)) = hart.held.pop_front() {
                hart.waiting.insert(persist.line);
                self.receive(DelegatedMessage::Persist(persist), outbox);
            }
        }
    }

    /// Lets the controller do something, and does not hear what it says.
    fn unheard(&mut self, outbox: &mut Outbox, act: impl FnOnce(&mut dyn ControllerHandler, &mut Outbox)) {
        let said: Vec<_> = outbox.take_timed().collect();
        act(&mut *self.of, outbox);
        drop(outbox.take());
        for (to, message, delay) in said {
            outbox.send_in(delay, to, opened::<DelegatedMessage>(message));
        }
    }
}

impl Handler for Controller {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let message: DelegatedMessage = opened(message);
        match (self.fault, message) {
            (Fault::ControllerAnswersAtArrival, message) => {
                let answer = match &message {
                    DelegatedMessage::Persist(persist) => Some((persist.hart, persist.id)),
                    _ => None,
                };
                self.unheard(outbox, |handler, outbox| handler.message(from, Box::new(message), outbox));
                if let Some((hart, id)) = answer {
                    outbox.send(from, DelegatedMessage::Drained { hart, id, persists: 1 });
                }
            }
            (Fault::BarrierOffByOne, DelegatedMessage::Barrier { hart }) => {
                self.harts.entry(hart).or_default().barrier = true;
            }
            (Fault::BarrierOffByOne, DelegatedMessage::Persist(persist)) => {
                let hart = persist.hart;
                self.receive(DelegatedMessage::Persist(persist), outbox);
                if std::mem::take(&mut self.harts.entry(hart).or_default().barrier) {
                    self.receive(DelegatedMessage::Barrier { hart }, outbox);
                }
            }
            (Fault::NextSetEarly, DelegatedMessage::Barrier { hart }) => {
                self.harts.entry(hart).or_default().held.push_back(None);
                self.choose_early(outbox);
            }
            (Fault::NextSetEarly, DelegatedMessage::Persist(persist)) => {
                self.harts.entry(persist.hart).or_default().held.push_back(Some(persist));
                self.choose_early(outbox);
            }
            (_, message) => self.receive(message, outbox),
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl ControllerHandler for Controller {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        if self.fault == Fault::ControllerAnswersAtArrival {
            self.unheard(outbox, |handler, outbox| handler.event(event, outbox));
        } else {
            self.of.event(event, outbox);
            self.choose_early(outbox);
        }
    }

    fn banks(&mut self, banks: Banks) {
        self.of.banks(banks);
    }

    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        self.of.overlay(line, mask, bytes)
    }

    fn holds(&self, line: u64) -> bool {
        self.of.holds(line)
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        self.of.lines()
    }

    fn held(&self) -> Held {
        self.of.held()
    }
}

/// `hash` with four clients whose transactions all write lines at random places of a few rows: some are
/// written in an open row, some are not.
const CLUSTER: [(&str, &str); 7] = [
    ("client.transactions", "12"),
    ("client.write_percent", "100"),
    ("client.addresses", "random"),
    ("client.region_kb", "16"),
    ("client.compute_ns", "0"),
    ("params.OPS", "8"),
    ("core.harts", "1"),
];

/// What a run with a fault tells by itself: how memory changed.
fn crashed(workload: &str, machine: &str, scheme: &str, set: &[(&str, &str)], fault: Fault) -> CrashReport {
    let recipe = Experiment::of(workload).machine(machine).profile("ci").scheme(scheme).reference(false);
    let recipe = set.iter().fold(recipe, |recipe, (key, value)| recipe.set(key, *value));
    let AnyExperiment::Cpu(mut experiment) = recipe.build_any().unwrap() else { panic!("a program of CPUs") };
    experiment.scheme.built = Arc::new(Decorated(Faulty { of: experiment.scheme.built.clone(), fault }));
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
    // How the program recovers is not asked.
    let request = CrashRequest { allowed: None, plan: Plan::Count(1), ..CrashRequest::default() };
    let report = crash_cpu(&experiment, &request, &watching).unwrap();
    assert_eq!(report.outcome.end, End::Finished, "{workload}, {scheme}, {fault:?}");
    report
}

/// The same of clients whose verbs have so many bytes, all or the last of a transaction acknowledged.
fn cluster(scheme: &str, bytes: &str, protocol: &str, fault: Fault) -> CrashReport {
    by_way_of("false", scheme, bytes, protocol, fault)
}

/// The same, by way of the shared cache or not.
fn by_way_of(ddio: &str, scheme: &str, bytes: &str, protocol: &str, fault: Fault) -> CrashReport {
    let of_clients = [("client.bytes_per_epoch", bytes), ("client.protocol", protocol), ("nic.ddio", ddio)];
    crashed("hash", "broi-cluster", scheme, &[&CLUSTER[..], &of_clients].concat(), fault)
}

fn verbs(report: &CrashReport) -> &Verdict {
    &report.level(JudgedLevel::Verbs).unwrap().verdict
}

fn finds(verdict: &Verdict, properties: &[Property]) -> bool {
    verdict.failures.iter().any(|failure| properties.contains(&failure.property))
}

#[test]
fn without_a_fault_verbs_and_epochs_are_in_order() {
    for (ddio, scheme, bytes) in [("false", "epoch", "512"), ("false", "broi", "64"), ("true", "broi", "512")] {
        let report = by_way_of(ddio, scheme, bytes, "bsp", Fault::None);
        assert!(report.holds(), "{scheme}, nic.ddio={ddio}: {report:#?}");
        assert_eq!(report.levels.channels.unwrap().verbs, 4 * 12 * 6);
    }
}

#[test]
fn faults_of_the_nic_are_found_by_what_clients_posted() {
    for (scheme, ddio) in [("epoch", "false"), ("broi", "false"), ("epoch", "true"), ("broi", "true")] {
        for (fault, bytes, protocol, property) in [
            (Fault::NicAnswersAtArrival, "512", "bsp", Property::Acknowledged),
            (Fault::BarrierAfterFirstLine, "512", "bsp", Property::Verbs),
            (Fault::ChannelsShareSequence, "64", "sync", Property::Acknowledged),
        ] {
            let report = by_way_of(ddio, scheme, bytes, protocol, fault);
            let verdict = verbs(&report);
            assert!(finds(verdict, &[property]), "{scheme}, nic.ddio={ddio}, {fault:?}: {verdict:#?}");
            assert!(
                report.level(JudgedLevel::History).unwrap().verdict.holds(),
                "the server's own program is right: {scheme}, {fault:?}"
            );
        }
    }
}

#[test]
fn a_nic_that_answers_too_early_is_found_at_a_server_without_persistent_memory() {
    let of = |fault| crashed("hashmap_remote", "broi-cluster", "broi", &[("client.transactions", "12")], fault);
    assert!(of(Fault::None).holds());
    let report = of(Fault::NicAnswersAtArrival);
    assert!(finds(verbs(&report), &[Property::Acknowledged]), "{:#?}", verbs(&report));
}

#[test]
fn faults_of_the_controller_are_found_in_verbs() {
    for (scheme, bytes, fault, property) in [
        ("epoch", "512", Fault::ControllerAnswersAtArrival, Property::Acknowledged),
        ("broi", "512", Fault::ControllerAnswersAtArrival, Property::Acknowledged),
        ("epoch", "512", Fault::BarrierOffByOne, Property::Verbs),
        ("broi", "512", Fault::BarrierOffByOne, Property::Verbs),
        ("broi", "64", Fault::NextSetEarly, Property::Verbs),
    ] {
        let report = cluster(scheme, bytes, "bsp", fault);
        assert!(finds(verbs(&report), &[property]), "{scheme}, {fault:?}: {:#?}", verbs(&report));
    }
}

#[test]
fn faults_of_the_controller_are_found_in_epochs_of_harts() {
    for (fault, properties) in [
        (Fault::BarrierOffByOne, &[Property::Epochs][..]),
        (Fault::NextSetEarly, &[Property::Epochs]),
        // What others wait for, or a thread itself.
        (Fault::ControllerAnswersAtArrival, &[Property::Epochs, Property::Acknowledged]),
    ] {
        let report = crashed("sps", "broi-cpu", "broi", &[("params.OPS", "40")], fault);
        assert!(
            finds(&report.level(JudgedLevel::History).unwrap().verdict, properties),
            "{fault:?}: {:#?}",
            report.level(JudgedLevel::History).unwrap().verdict
        );
    }
}
