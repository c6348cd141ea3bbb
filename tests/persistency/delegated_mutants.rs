//! Faults of delegated ordering that a machine really has: decorators around the handlers of `broi` lose,
//! invent or hasten what these say, on a machine of cores, and the oracle must find it in how memory changed,
//! or the program in its own result.
//!
//! Messages of core 0 to the controller take longer, so that what is not ordered comes in the wrong order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::engine::Time;
use durawarp::oracle::verdict::Property;
use durawarp::outcome::End;
use durawarp::persist::{
    Admission, Banks, ControllerEvent, ControllerHandler, CoreEvent, CoreHandler, CoreOffer, CorePolicy, Handler,
    HandlerPlace, HandlerReport, Held, HomeEvent, HomeHandler, Outbox, Peer, Scheme, SchemeMessage, opened,
};
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::schemes::delegated::messages::DelegatedMessage;

use crate::decorated::{Decorated, Decorator};

/// How much longer messages of core 0 to the controller take.
const FAR_NS: u64 = 2000;

/// What a machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// A core passes lines on without what they depend on.
    DroppedWhereGiven,
    /// A core forgets which fence a lock was stored behind.
    DroppedOfLocks,
    /// A core does not look at what a line brings.
    DroppedWhereTaken,
    /// A home passes lines on without what they depend on.
    DroppedAtHome,
    /// A fence orders what its hart stored, and not what it saw.
    FenceForgetsWhatWasSeen,
    /// The home is told that an entry is durable when its line leaves.
    ResolvedWhenGiven,
    /// The controller lets requests pass barriers.
    BarrierIgnored,
    /// A home gives lines up that memory lacks.
    KeptLineLeaves,
}

/// `broi` with a fault.
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
        let far = if place.index == 0 { FAR_NS * place.tick_khz / 1_000_000 } else { 0 };
        let (of, blind) = (self.of.core_handler(place)?, self.of.core_handler(place)?);
        Some(Box::new(Core { of, fault: self.fault, far, blind }))
    }

    fn home_handler(&self, place: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        Some(Box::new(Home { of: self.of.home_handler(place)?, fault: self.fault }))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        Some(Box::new(Controller { of: self.of.controller_handler(place)?, fault: self.fault }))
    }
}

#[derive(Debug)]
struct Core {
    of: Box<dyn CoreHandler>,
    fault: Fault,
    /// In ticks.
    far: Time,
    /// Buffers that hear of nothing: room for what a fault hides.
    blind: Box<dyn CoreHandler>,
}

impl Core {
    /// Sends on what the handler has said, that to the controller later.
    fn send(&self, outbox: &mut Outbox) {
        let said: Vec<_> = outbox.take_timed().collect();
        for (to, message, delay) in said {
            let late = matches!(to, Peer::Controller(_) | Peer::ControllerOf(_));
            let message: DelegatedMessage = opened(message);
            outbox.send_in(if late { delay + self.far } else { delay }, to, message);
        }
    }
}

impl Handler for Core {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
        self.send(outbox);
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
        match (self.fault, event) {
            (Fault::DroppedWhereGiven, CoreEvent::Given(_))
            | (Fault::DroppedOfLocks, CoreEvent::StoredVolatile { .. })
            | (Fault::DroppedWhereTaken, CoreEvent::Taken { .. }) => {}
            // What was seen goes to buffers that persist nothing.
            (Fault::FenceForgetsWhatWasSeen, CoreEvent::Taken { .. }) => self.blind.event(event, outbox),
            (Fault::ResolvedWhenGiven, &CoreEvent::Given(line)) => {
                self.of.event(event, outbox);
                let on = outbox.take_dependencies().unwrap_or_default();
                for &on in on.iter() {
                    outbox.send(Peer::HomeOf(line), DelegatedMessage::Resolved { hart: on.hart, id: on.id });
                    outbox.depend(on);
                }
            }
            _ => self.of.event(event, outbox),
        }
        self.send(outbox);
    }
}

#[derive(Debug)]
struct Home {
    of: Box<dyn HomeHandler>,
    fault: Fault,
}

impl HomeHandler for Home {
    fn event(&mut self, event: &HomeEvent<'_>, outbox: &mut Outbox) {
        if self.fault != Fault::DroppedAtHome || !matches!(event, HomeEvent::Given { .. }) {
            self.of.event(event, outbox);
        }
    }

    fn keeps(&mut self, line: u64) -> bool {
        self.fault != Fault::KeptLineLeaves && self.of.keeps(line)
    }
}

impl Handler for Home {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
    }
}

#[derive(Debug)]
struct Controller {
    of: Box<dyn ControllerHandler>,
    fault: Fault,
}

impl Handler for Controller {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let message: DelegatedMessage = opened(message);
        if self.fault == Fault::BarrierIgnored && matches!(message, DelegatedMessage::Barrier { .. }) {
            return;
        }
        self.of.message(from, Box::new(message), outbox);
    }
}

impl ControllerHandler for Controller {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        self.of.event(event, outbox);
    }

    fn banks(&mut self, banks: Banks) {
        self.of.banks(banks);
    }

    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        // Caches that give up what memory lacks are not helped by the queues.
        self.fault != Fault::KeptLineLeaves && self.of.overlay(line, mask, bytes)
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

/// A program under `broi` with a fault, as far as its own run tells: how memory changed, and no drawn state.
fn crashed(workload: &str, set: &[(&str, &str)], fault: Fault) -> CrashReport {
    let recipe = Experiment::of(workload).machine("broi-cpu").profile("ci").scheme("broi");
    let recipe = set.iter().fold(recipe, |recipe, (key, value)| recipe.set(key, *value));
    let AnyExperiment::Cpu(mut experiment) = recipe.build_any().unwrap() else { panic!("a program of CPUs") };
    experiment.scheme.built = Arc::new(Decorated(Mutant { of: experiment.scheme.built.clone(), fault }));
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
    crash_cpu(&experiment, &CrashRequest { allowed: None, ..CrashRequest::default() }, &watching).unwrap()
}

/// Each thread on a core of its own.
fn ordered(test: u64, fault: Fault) -> CrashReport {
    crashed("persist_order", &[("params.TEST", &test.to_string()), ("core.harts", "1")], fault)
}

fn order_is_broken(test: u64, fault: Fault) -> bool {
    breaks_order(&ordered(test, fault), fault)
}

fn breaks_order(report: &CrashReport, fault: Fault) -> bool {
    assert_eq!(report.outcome.end, End::Finished, "{fault:?}");
    report
        .level(JudgedLevel::History)
        .unwrap()
        .verdict
        .failures
        .iter()
        .any(|failure| failure.property == Property::Epochs)
}

#[test]
fn without_a_fault_order_holds_however_long_messages_of_a_core_take() {
    for test in 0..6 {
        let report = ordered(test, Fault::None);
        assert!(report.holds(), "test {test}: {report:#?}");
    }
}

#[test]
fn lost_dependencies_are_found() {
    for fault in [
        Fault::DroppedWhereGiven,
        Fault::DroppedOfLocks,
        Fault::DroppedWhereTaken,
        Fault::DroppedAtHome,
        Fault::ResolvedWhenGiven,
    ] {
        assert!(order_is_broken(1, fault), "{fault:?}");
    }
}

#[test]
fn a_fence_that_forgets_what_its_hart_saw_is_found_over_a_hart_that_persists_nothing() {
    assert!(order_is_broken(5, Fault::FenceForgetsWhatWasSeen));
}

#[test]
fn barriers_that_are_passed_are_found() {
    // Logs and elements lie in different banks, some of which have more to do.
    let fault = Fault::BarrierIgnored;
    assert!(breaks_order(&crashed("sps", &[("params.OPS", "40")], fault), fault));
}

#[test]
fn a_line_that_leaves_its_home_before_memory_has_it_is_read_stale() {
    let small = [("llc.slice_kb", "1"), ("llc.ways", "2"), ("l1d.kb", "1"), ("l1d.ways", "2")];
    let right = crashed("sps", &small, Fault::None);
    assert!(right.holds(), "{right:#?}");
    let wrong = crashed("sps", &small, Fault::KeptLineLeaves);
    assert!(!wrong.ended_well(), "{:?}", wrong.outcome.end);
}
