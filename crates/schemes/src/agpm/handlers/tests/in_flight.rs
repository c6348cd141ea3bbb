//! Launches in flight together at an SM and at a slice: each goes its way and is counted by itself.

use super::*;

/// A store of the launch in a place.
fn store_of(launch: u8, line: u64) -> Access {
    Access { launch, ..access(AccessKind::Store, line, 1) }
}

/// A selector with kernels `a` and `b` in flight.
fn two(changes: &[(&str, Value)]) -> Sm {
    let mut sm = Sm::new(changes);
    for (place, kernel) in [(0, "a"), (1, "b")] {
        let facts = KernelFacts { kernel: kernel.to_owned(), place, ..KernelFacts::default() };
        sm.handler.event(&SmEvent::KernelStarts(&facts), &mut sm.outbox);
    }
    sm
}

#[test]
fn a_log_update_takes_the_way_of_its_launches_kernel() {
    let mut sm = two(&[]);
    sm.path("b", Route::Temporal);
    let ways = [0, 1].map(|launch| {
        let store = Store { launch, ..Store::to(StoreClass::Log, &[0]) };
        sm.handler.store(&store, &mut sm.outbox).route
    });
    assert_eq!(ways, [Route::NonTemporal, Route::Temporal]);
    // A launch of `a` takes the place of `b`: its kernel's way.
    let facts = KernelFacts { kernel: "a".to_owned(), place: 1, ..KernelFacts::default() };
    sm.handler.event(&SmEvent::KernelStarts(&facts), &mut sm.outbox);
    let store = Store { launch: 1, ..Store::to(StoreClass::Log, &[0]) };
    assert_eq!(sm.handler.store(&store, &mut sm.outbox).route, Route::NonTemporal);
}

#[test]
fn what_an_sm_counts_is_told_launch_by_launch() {
    let mut sm = two(&[]);
    sm.access(store_of(1, 0));
    sm.access(store_of(1, 0));
    sm.access(store_of(0, 0));
    sm.handler.event(&SmEvent::SharedRead { launch: 1 }, &mut sm.outbox);
    sm.handler.event(&SmEvent::Acknowledged { number: 0, cycles: 30, launch: 0 }, &mut sm.outbox);
    assert_eq!(sm.handler.boundary(&mut sm.outbox), Boundary::None);
    let told: Vec<(u8, LogReport)> = written(&mut sm.outbox)
        .into_iter()
        .map(|(_, word)| match word {
            AgpmMessage::Report { launch, report } => (launch, report),
            other => panic!("{other:?}"),
        })
        .collect();
    let first = LogReport { logs: 1, requests: 1, wait_cycles: 30, ..LogReport::default() };
    assert_eq!(told, [(0, first), (1, LogReport { logs: 2, exchanges: 1, ..LogReport::default() })]);
}

/// What the launch in a place has counted, at an SM or a bank.
fn count(handler: &mut dyn Handler, outbox: &mut Outbox, launch: u8) -> Locality {
    handler.message(Peer::Hub, Box::new(AgpmMessage::Count(launch)), outbox);
    match written(outbox).as_slice() {
        &[(Peer::Hub, AgpmMessage::Counts { launch: of, locality, .. })] if of == launch => locality,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_another_launch_touches_is_no_evidence_and_stays_when_one_is_counted() {
    let (some, none) = (Locality { t_all: 1, t_log: 1, s_all: 1, s_log: 1 }, Locality::default());
    let mut sm = two(&[("statistics", json!("hits"))]);
    let mut bank = Bank::new(&AgpmSpec::with(&[("statistics", json!("hits"))]), place(0));
    let outbox = &mut Outbox::default();
    for (launch, line) in [(0, 0), (1, 0), (1, 128), (1, 128)] {
        sm.access(store_of(launch, line));
        bank.access(&store_of(launch, line), outbox);
    }
    for handler in [&mut sm.handler as &mut dyn Handler, &mut bank] {
        // Line 0 was touched by both, once each.
        assert_eq!(count(handler, outbox, 0), none);
        assert_eq!(count(handler, outbox, 1), some, "still there");
        assert_eq!(count(handler, outbox, 1), none);
    }
}

#[test]
fn a_line_that_is_replaced_takes_the_entries_of_all_launches_along() {
    let mut sm = two(&[]);
    [0, 1].into_iter().for_each(|launch| drop(sm.access(store_of(launch, 256))));
    sm.handler.event(&SmEvent::Replaced(256), &mut sm.outbox);
    let gone: Vec<(u8, u64)> = written(&mut sm.outbox)
        .into_iter()
        .map(|(_, word)| match word {
            AgpmMessage::Moved { launch, entry } => (launch, entry.line),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(gone, [(0, 256), (1, 256)]);
}

#[test]
fn what_is_known_to_the_programs_end_is_known_to_every_launch() {
    let changes = [("known", json!("program")), ("key", json!("slot")), ("statistics", json!("hits"))];
    let mut bank = Bank::new(&AgpmSpec::with(&changes), place(0));
    let outbox = &mut Outbox::default();
    bank.access(&Access { by: (3, 0), ..store_of(0, 0) }, outbox);
    bank.access(&Access { by: (9, 0), ..store_of(1, 0) }, outbox);
    written(outbox);
    assert_eq!(count(&mut bank, outbox, 0), Locality::default());
    assert_eq!(count(&mut bank, outbox, 1), Locality { t_all: 1, t_log: 1, s_all: 1, s_log: 1 });
}
