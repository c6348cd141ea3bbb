//! Sites by themselves: what an SM's selector and a slice's bank answer, count and write.

use serde_json::{Value, json};

use super::*;
use durawarp_persist::KernelFacts;

mod bank;
mod buffers;
mod in_flight;
mod known;

/// A machine of three SMs and four slices, at this place.
fn place(index: u16) -> HandlerPlace {
    HandlerPlace { index, sms: 3, slices: 4, controllers: 1, tick_khz: 1, ..HandlerPlace::default() }
}

/// What a handler has written.
fn written(outbox: &mut Outbox) -> Vec<(Peer, AgpmMessage)> {
    outbox.take().into_iter().map(|(to, message)| (to, AgpmMessage::of(message))).collect()
}

fn access(kind: AccessKind, line: u64, bytes: u128) -> Access {
    Access { line, bytes, kind, half_warps: 1, by: (0, 0), launch: 0, from: 0, mark: 0, log: false, hit: false }
}

/// What a buffer answers when it is asked: locality, saturated counters, spills, refills.
fn counted(messages: Vec<(Peer, AgpmMessage)>) -> (Locality, u64, u64, u64) {
    match messages.as_slice() {
        &[(Peer::Hub, AgpmMessage::Counts { launch: 0, locality, saturated, spills, refills })] => {
            (locality, saturated, spills, refills)
        }
        other => panic!("{other:?}"),
    }
}

/// The selector of an SM.
struct Sm {
    handler: SmSelector,
    outbox: Outbox,
}

impl Sm {
    fn new(changes: &[(&str, Value)]) -> Sm {
        Sm::at(0, changes)
    }

    fn at(index: u16, changes: &[(&str, Value)]) -> Sm {
        Sm { handler: SmSelector::new(&AgpmSpec::with(changes), place(index)), outbox: Outbox::default() }
    }

    fn start(&mut self, kernel: &str) {
        let facts = KernelFacts { kernel: kernel.to_owned(), ..KernelFacts::default() };
        self.handler.event(&SmEvent::KernelStarts(&facts), &mut self.outbox);
    }

    fn path(&mut self, kernel: &str, route: Route) {
        self.message(AgpmMessage::Path { kernel: kernel.to_owned(), route });
    }

    fn message(&mut self, word: AgpmMessage) -> Vec<(Peer, AgpmMessage)> {
        self.handler.message(Peer::Hub, Box::new(word), &mut self.outbox);
        written(&mut self.outbox)
    }

    fn store(&mut self, class: StoreClass, atomic: bool, lines: &[u64]) -> Route {
        let rule =
            self.handler.store(&Store { warp: 1, degree: 1, atomic, ..Store::to(class, lines) }, &mut self.outbox);
        assert!(!rule.wait);
        rule.route
    }

    fn log(&mut self) -> Route {
        self.store(StoreClass::Log, false, &[0])
    }

    fn write_back(&mut self, class: WriteBackClass, lines: &[u64]) -> WriteBackRule {
        self.handler.write_back(&WriteBack { class, warp: 1, launch: 0, lines }, &mut self.outbox)
    }

    fn access(&mut self, access: Access) -> Vec<(Peer, AgpmMessage)> {
        self.handler.access(&access, &mut self.outbox);
        written(&mut self.outbox)
    }

    /// What it tells the hub at the end of a CTA.
    fn report(&mut self) -> Option<LogReport> {
        assert_eq!(self.handler.boundary(&mut self.outbox), Boundary::None);
        match written(&mut self.outbox).as_slice() {
            [] => None,
            &[(Peer::Hub, AgpmMessage::Report { launch: 0, report })] => Some(report),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_kernel_follows_what_was_decided_for_it_and_no_other_does() {
    let (past, through) = (Route::NonTemporal, Route::Temporal);
    for (first, first_path) in [("non_temporal", past), ("temporal", through)] {
        let mut sm = Sm::new(&[("first_path", json!(first))]);
        let decided = if first_path == past { through } else { past };
        assert_eq!(sm.log(), first_path, "{first}");
        sm.start("k");
        assert_eq!(sm.log(), first_path, "{first}");
        sm.path("k", decided);
        assert_eq!(sm.log(), decided, "{first}: at once");
        sm.start("unknown");
        assert_eq!(sm.log(), first_path, "{first}: not that of the kernel before");
        sm.path("later", decided);
        assert_eq!(sm.log(), first_path, "{first}: another kernel's");
        for kernel in ["later", "k"] {
            sm.start(kernel);
            assert_eq!(sm.log(), decided, "{first}: {kernel}");
        }
    }
}

#[test]
fn a_path_may_be_forced() {
    for (path, forced) in [("temporal", Route::Temporal), ("non_temporal", Route::NonTemporal)] {
        let mut sm = Sm::new(&[("path", json!(path))]);
        sm.start("k");
        for decided in [Route::Temporal, Route::NonTemporal] {
            sm.path("k", decided);
            assert_eq!(sm.log(), forced, "{path}");
        }
    }
}

#[test]
fn an_alternating_path_keeps_each_way_for_so_many_log_updates() {
    let mut sm = Sm::new(&[("path", json!("alternate")), ("alternate_logs", json!(3))]);
    let ways: Vec<Route> = (0..14).map(|_| sm.log()).collect();
    let runs: Vec<(Route, usize)> = ways.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    let (past, through) = (Route::NonTemporal, Route::Temporal);
    assert_eq!(runs[0].0, past);
    assert_eq!(runs[1..4], [(through, 3), (past, 3), (through, 3)]);
}

/// The ways of ordinary stores, atomics, non-temporal stores and log updates, while the way is this; and how
/// many of them were selected, by their way.
fn ways(routed: &str, way: Route) -> ([Route; 4], (u64, u64)) {
    let mut sm = Sm::new(&[("routed", json!(routed))]);
    sm.start("k");
    sm.path("k", way);
    let stores = [
        (StoreClass::Data, false),
        (StoreClass::Data, true),
        (StoreClass::NonTemporal, false),
        (StoreClass::Log, false),
    ];
    let ways = stores.map(|(class, atomic)| sm.store(class, atomic, &[0]));
    let report = sm.report().unwrap();
    (ways, (report.temporal, report.non_temporal))
}

#[test]
fn log_updates_or_all_stores_take_the_way_that_is_selected() {
    let (past, through) = (Route::NonTemporal, Route::Temporal);
    assert_eq!(ways("log_updates", past), ([through, through, past, past], (0, 1)));
    assert_eq!(ways("log_updates", through), ([through, through, past, through], (1, 0)));
    assert_eq!(ways("requests", past), ([past, through, past, past], (0, 2)));
    assert_eq!(ways("requests", through), ([through, through, past, through], (2, 0)));
}

#[test]
fn the_write_back_of_what_went_past_the_caches_is_dropped_once_and_counted() {
    let mut sm = Sm::new(&[]);
    let (written, dropped) = (WriteBackRule::Written, WriteBackRule::Dropped);
    sm.store(StoreClass::Log, false, &[0, 128]);
    assert_eq!(sm.write_back(WriteBackClass::Flush, &[0]), written, "a flush is another matter");
    assert_eq!(sm.write_back(WriteBackClass::Log, &[0]), dropped);
    assert_eq!(sm.write_back(WriteBackClass::Log, &[0]), written);
    assert_eq!(sm.write_back(WriteBackClass::Data, &[128]), dropped);
    // What the program itself non-temporal stores is not the scheme's.
    sm.store(StoreClass::NonTemporal, false, &[256]);
    assert_eq!(sm.write_back(WriteBackClass::Data, &[256]), written);
    sm.store(StoreClass::Log, false, &[384]);
    sm.store(StoreClass::Data, false, &[384]);
    assert_eq!(sm.write_back(WriteBackClass::Log, &[384]), written, "the caches have bytes of it");
    let expected = LogReport { non_temporal: 2, dropped_write_backs: 2, ..LogReport::default() };
    assert_eq!((sm.report(), sm.report()), (Some(expected), None), "told once");
}

#[test]
fn persists_and_what_they_waited_are_added_up() {
    let mut sm = Sm::new(&[]);
    let ack = |cycles| SmEvent::Acknowledged { number: 0, cycles, launch: 0 };
    [300, 50].into_iter().for_each(|cycles| sm.handler.event(&ack(cycles), &mut sm.outbox));
    assert_eq!(sm.report(), Some(LogReport { requests: 2, wait_cycles: 350, ..LogReport::default() }));
    sm.handler.event(&ack(7), &mut sm.outbox);
    assert_eq!(sm.report(), Some(LogReport { requests: 1, wait_cycles: 7, ..LogReport::default() }));
}

#[test]
fn what_counts_as_a_log_is_told_after_so_many() {
    let kinds = [
        (AccessKind::Load, false),
        (AccessKind::Load, true),
        (AccessKind::Store, false),
        (AccessKind::Store, true),
        (AccessKind::Atomic, false),
        (AccessKind::WriteBack, false),
        (AccessKind::WriteBack, true),
    ];
    let told = |counted: &str| {
        let mut sm = Sm::new(&[("counted", json!(counted)), ("report_logs", json!(1))]);
        kinds.map(|(kind, log)| !sm.access(Access { log, ..access(kind, 0, 1) }).is_empty())
    };
    assert_eq!(told("requests"), [false, false, true, true, true, true, true]);
    assert_eq!(told("log_updates"), [false, false, false, true, false, false, false]);
    let mut sm = Sm::new(&[("report_logs", json!(3))]);
    let messages = [0; 7].map(|_| sm.access(access(AccessKind::Store, 0, 1)).len());
    assert_eq!(messages, [0, 0, 1, 0, 0, 1, 0]);
    assert_eq!(sm.report(), Some(LogReport { logs: 1, ..LogReport::default() }));
}

#[test]
fn logs_are_counted_by_the_half_warps_that_an_access_serves_unless_by_accesses() {
    let logs = |unit: &str| {
        let mut sm = Sm::new(&[("log_unit", json!(unit)), ("report_logs", json!(100))]);
        for half_warps in [2, 1, 2] {
            sm.access(Access { half_warps, ..access(AccessKind::Store, 0, 1) });
        }
        sm.report().unwrap().logs
    };
    assert_eq!((logs("half_warps"), logs("accesses")), (5, 3));
}

#[test]
fn an_access_is_a_log_update_by_the_address_that_the_key_names() {
    let kinds = [
        (AccessKind::Load, true),
        (AccessKind::Store, true),
        (AccessKind::Load, false),
        (AccessKind::Store, false),
        (AccessKind::Atomic, false),
        (AccessKind::WriteBack, true),
    ];
    for (key, counted, expected) in [
        ("home", "log_updates", [true, false, false, false, false, false]),
        ("slot", "log_updates", [false, true, false, false, false, false]),
        ("both", "log_updates", [true, true, false, false, false, false]),
        ("home", "requests", [true, false, false, true, true, false]),
        ("slot", "requests", [false, true, false, true, true, false]),
    ] {
        let spec = AgpmSpec::with(&[("key", json!(key)), ("counted", json!(counted))]);
        let updates = kinds.map(|(kind, log)| is_update(&spec, &Access { log, ..access(kind, 0, 1) }));
        assert_eq!(updates, expected, "{key}, {counted}");
        let untracked = kinds.map(|(kind, log)| is_untracked(&spec, &Access { log, ..access(kind, 0, 1) }));
        assert_eq!(untracked, [false, key == "home", false, false, false, false], "{key}: the log's own lines");
    }
}
