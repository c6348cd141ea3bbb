//! How runs end, one test a way: each the same at one thread and at several.

use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use durawarp_engine::{
    Blockage, Component, ComponentId, Ctx, Fallback, Inspection, Link, Lookout, Message, Placement, Port, Progress,
    Rebalance, RunEnd, RunOptions, Simulation, Snapshot, Topology, Wait, blockage,
};

#[derive(Debug)]
struct Token(u64);

impl Message for Token {
    fn digest(&self) -> u64 {
        self.0
    }
}

/// What an [`Actor`] does at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Fail,
    Halt,
    Panic,
    WakeAgain,
}

/// Wakes every 10 ticks and sends to the next in the ring; acts at its time.
struct Actor {
    act: Option<(u64, Act)>,
    until: u64,
    waits: Vec<Wait>,
    wakes: u64,
}

impl Component<Token> for Actor {
    fn handle(&mut self, _: Token, _: &mut Ctx<'_, Token>) {}

    fn wake(&mut self, cx: &mut Ctx<'_, Token>) {
        self.wakes += 1;
        match self.act {
            Some((at, Act::Fail)) if at == cx.now() => cx.fail(format!("failed at {at}").into()),
            Some((at, Act::Halt)) if at == cx.now() => cx.halt(),
            Some((at, Act::Panic)) if at == cx.now() => panic!("gave up at {at}"),
            Some((at, Act::WakeAgain)) if at == cx.now() => {
                self.act = None;
                cx.wake_at(at);
            }
            _ => {}
        }
        cx.send(Port(0), Token(cx.now()), 0);
        if cx.now() < self.until {
            cx.wake_at(cx.now() + 10);
        }
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        out.extend(self.waits.iter().cloned());
    }

    fn digest(&self) -> u64 {
        self.wakes
    }

    fn progress(&self) -> Progress {
        Progress { work: self.wakes, steps_done: 1, steps_total: 2 }
    }
}

/// Eight actors in a ring of latency 100; some act.
fn ring(acts: &[(u32, u64, Act)], until: u64) -> Simulation<Token> {
    let mut topology = Topology::new();
    for i in 0..8 {
        let act = acts.iter().find(|(id, ..)| *id == i).map(|&(_, at, act)| (at, act));
        let id = topology.add(format!("actor{i}"), Box::new(Actor { act, until, waits: vec![], wakes: 0 }));
        topology.wake_at(id, 0);
    }
    for i in 0..8 {
        topology.connect(ComponentId(i), Port(0), ComponentId((i + 1) % 8), Link { latency: 100, phase: 0 });
    }
    Simulation::new(topology).unwrap()
}

fn on(threads: usize) -> RunOptions<'static> {
    RunOptions {
        threads,
        oversubscribe: true,
        fallback: Fallback::Never,
        placement: Placement::RoundRobin,
        ..RunOptions::default()
    }
}

/// Runs `body` on another thread, and fails the test when it hangs.
fn within_seconds<T: Send + 'static>(seconds: u64, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(body()));
    match receiver.recv_timeout(Duration::from_secs(seconds)) {
        Ok(value) => value,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("hangs"),
        Err(_) => match thread.join() {
            Err(payload) => std::panic::resume_unwind(payload),
            Ok(_) => unreachable!(),
        },
    }
}

#[test]
fn nothing_to_do_is_finished_at_zero() {
    for threads in [1, 4] {
        let mut empty: Simulation<Token> = Simulation::new(Topology::new()).unwrap();
        assert!(matches!(empty.run(&on(threads)), RunEnd::Finished { at: 0 }));
        let mut idle = Topology::new();
        for i in 0..4 {
            idle.add(format!("idle{i}"), Box::new(Actor { act: None, until: 0, waits: vec![], wakes: 0 }));
        }
        let mut idle = Simulation::new(idle).unwrap();
        assert!(matches!(idle.run(&on(threads)), RunEnd::Finished { at: 0 }));
        assert_eq!((idle.stats().events(), idle.stats().totals.rounds), (0, 0));
    }
}

#[test]
fn finished_is_at_the_last_event_exactly() {
    for threads in [1, 2, 5] {
        // The last wake at 1000 sends a token that takes 100.
        assert!(matches!(ring(&[], 1000).run(&on(threads)), RunEnd::Finished { at: 1100 }));
    }
}

#[test]
fn the_least_of_several_failures_is_reported_and_the_round_finished() {
    let mut seen = Vec::new();
    for threads in [1, 2, 8] {
        // All three in one round of 96 ticks or more; 5 and 6 at the same time.
        let mut simulation = ring(&[(7, 350, Act::Fail), (6, 330, Act::Fail), (5, 330, Act::Fail)], 5000);
        let RunEnd::Failed { at, component, name, error } = simulation.run(&on(threads)) else { panic!() };
        assert_eq!((at, component, &name[..]), (330, ComponentId(5), "actor5"));
        assert_eq!(error.to_string(), "failed at 330");
        seen.push((simulation.digest(), simulation.stats().totals, simulation.reached()));
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
}

#[test]
fn a_halt_ends_the_round_and_the_run_can_go_on() {
    let mut whole = ring(&[], 2000);
    whole.run(&on(1));
    for threads in [1, 3] {
        let mut simulation = ring(&[(2, 700, Act::Halt), (4, 700, Act::Halt)], 2000);
        let end = simulation.run(&on(threads));
        let RunEnd::Halted { at: 700, component: ComponentId(2), name } = end else { panic!("{end:?}") };
        assert_eq!(name, "actor2");
        assert!(simulation.reached() > 700 && simulation.reached() <= 800);
        assert!(matches!(simulation.run(&on(2)), RunEnd::Finished { at: 2100 }));
        assert_eq!(simulation.digest(), whole.digest());
    }
}

/// Two rings of four actors, one of which is far ahead of the other: messages there take ten times as long.
fn far_ahead(halt: u64) -> Simulation<Token> {
    let mut topology = Topology::new();
    for i in 0..8 {
        let act = (i == 6).then_some((halt, Act::Halt));
        let id = topology.add(format!("actor{i}"), Box::new(Actor { act, until: 5000, waits: vec![], wakes: 0 }));
        topology.wake_at(id, 0);
    }
    for i in 0..8 {
        // From 3 to the second ring and from 7 back to the first.
        let latency = if (3..7).contains(&i) { 1000 } else { 100 };
        topology.connect(ComponentId(i), Port(0), ComponentId((i + 1) % 8), Link { latency, phase: 0 });
    }
    topology.put_in_tier(1, &[4, 5, 6, 7].map(ComponentId));
    Simulation::new(topology).unwrap()
}

#[test]
fn a_run_that_halts_in_the_last_round_of_a_leg_goes_on_until_all_tiers_are_as_far() {
    for halt in [0, 100, 1000, 2500] {
        let mut alone = far_ahead(halt);
        assert!(matches!(alone.run(&on(1)), RunEnd::Halted { at, .. } if at == halt));
        let mut ways: Vec<RunOptions<'_>> = (1..40)
            .map(|rounds| RunOptions { rebalance: Rebalance::Forced { rounds }, ..on(3) })
            .chain((1..40).map(|rounds| RunOptions { fallback: Fallback::Forced { rounds }, ..on(2) }))
            .chain((0..20).map(|seed| RunOptions { rebalance: Rebalance::Dice { seed }, ..on(4) }))
            .collect();
        for options in &mut ways {
            let mut simulation = far_ahead(halt);
            let end = simulation.run(options);
            assert!(matches!(end, RunEnd::Halted { at, .. } if at == halt), "{end:?} of {options:?}");
            let of = |simulation: &Simulation<Token>| {
                (simulation.digest(), simulation.reached(), simulation.stats().totals.rounds)
            };
            assert_eq!(of(&simulation), of(&alone), "{options:?}");
        }
    }
}

#[test]
fn a_lookout_pauses_where_nothing_is_active_and_changes_nothing() {
    // Actors count as active for their first 50 wakes.
    let activity = |actor: &dyn Any, _: u64| actor.downcast_ref::<Actor>().map_or(0, |actor| actor.wakes.min(50));
    let lookout = Lookout { next: 100, every: 100, found: None, since: 0, activity };
    let mut whole = ring(&[], 5000);
    whole.run(&on(1));
    let mut seen = Vec::new();
    for threads in [1, 2, 3, 8] {
        for auto in [false, true] {
            let mut simulation = ring(&[], 5000);
            let options = RunOptions { lookout: Some(lookout), auto, ..on(threads) };
            let RunEnd::Quiet { at, lookout: after } = simulation.run(&options) else { panic!() };
            assert!((500..=800).contains(&at) && after.next > at && after.since < at, "{at} {after:?}");
            seen.push((at, after.next, after.since, simulation.digest(), simulation.stats().totals));
            // It stays quiet, and looks come more rarely.
            let RunEnd::Quiet { lookout: later, .. } =
                simulation.run(&RunOptions { lookout: Some(after), ..on(threads) })
            else {
                panic!()
            };
            assert_eq!((later.since, later.next > after.next), (after.since, true));
            assert!(matches!(simulation.run(&on(threads)), RunEnd::Finished { at: 5100 }));
            assert_eq!((simulation.digest(), simulation.stats().totals), (whole.digest(), whole.stats().totals));
        }
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
}

#[test]
fn a_panic_anywhere_ends_the_run_and_names_who() {
    for threads in [1, 2, 3, 8] {
        for who in 0..8 {
            within_seconds(20, move || {
                let mut simulation = ring(&[(who, 530, Act::Panic)], 1_000_000);
                for _ in 0..2 {
                    // The second run learns the same: there is no going on.
                    let end = simulation.run(&on(threads));
                    let RunEnd::Panicked { component, name, message } = end else { panic!("{end:?}") };
                    assert_eq!((component, name), (ComponentId(who), format!("actor{who}")));
                    assert_eq!(message, "gave up at 530");
                }
            });
        }
    }
}

#[test]
fn of_several_panics_the_least_id_is_reported() {
    for threads in [1, 2, 8] {
        let mut simulation = ring(&[(6, 510, Act::Panic), (3, 570, Act::Panic), (4, 510, Act::Panic)], 10_000);
        let end = simulation.run(&on(threads));
        assert!(matches!(end, RunEnd::Panicked { component: ComponentId(3), .. }), "{end:?}");
    }
}

#[test]
fn a_panic_while_the_crew_sleeps_ends_the_run() {
    // Solo legs in between: the crew is parked when worker 0 panics.
    let options = RunOptions { fallback: Fallback::Forced { rounds: 1 }, ..on(4) };
    for at in [510, 620, 730, 840] {
        let options = options.clone();
        let end = within_seconds(20, move || ring(&[(7, at, Act::Panic)], 1_000_000).run(&options));
        assert!(matches!(end, RunEnd::Panicked { component: ComponentId(7), .. }), "{end:?}");
    }
}

#[test]
fn a_component_that_never_lets_time_pass_is_caught() {
    let end = within_seconds(60, || {
        struct Stuck;
        impl Component<Token> for Stuck {
            fn handle(&mut self, _: Token, _: &mut Ctx<'_, Token>) {}
            fn wake(&mut self, cx: &mut Ctx<'_, Token>) {
                cx.wake_at(cx.now());
            }
        }
        let mut topology = Topology::new();
        let id = topology.add("stuck", Box::new(Stuck));
        topology.wake_at(id, 3);
        Simulation::new(topology).unwrap().run(&on(1))
    });
    let RunEnd::Panicked { message, .. } = end else { panic!("{end:?}") };
    assert!(message.contains("never lets time pass"), "{message}");
    // Waking once more at the same instant is fine.
    assert!(matches!(ring(&[(1, 50, Act::WakeAgain)], 100).run(&on(1)), RunEnd::Finished { .. }));
}

#[test]
fn who_still_waits_makes_a_deadlock() {
    for threads in [1, 3] {
        let mut topology = Topology::new();
        for i in 0..4u32 {
            let wait = Wait {
                who: format!("warp {i}"),
                what: "a reply".to_owned(),
                on: Some(ComponentId((i + 1) % 3)),
                since: u64::from(i),
            };
            let waits = if i < 3 { vec![wait] } else { vec![] };
            topology.add(format!("actor{i}"), Box::new(Actor { act: None, until: 0, waits, wakes: 0 }));
            topology.connect(ComponentId(i), Port(0), ComponentId((i + 1) % 4), Link { latency: 7, phase: 0 });
        }
        topology.wake_at(ComponentId(3), 5);
        let end = Simulation::new(topology).unwrap().run(&on(threads));
        let RunEnd::Deadlock { at: 12, waits } = end else { panic!("{end:?}") };
        let who: Vec<(u32, &str, &str)> = waits.iter().map(|(id, name, w)| (id.0, &name[..], &w.who[..])).collect();
        assert_eq!(who, [(0, "actor0", "warp 0"), (1, "actor1", "warp 1"), (2, "actor2", "warp 2")]);
        let found = blockage(waits.iter().map(|(id, _, wait)| (*id, wait)));
        assert_eq!(found, Some(Blockage::Cycle(vec![ComponentId(0), ComponentId(1), ComponentId(2)])));
    }
}

#[test]
fn a_stop_flag_ends_the_run_and_the_run_can_go_on() {
    let mut whole = ring(&[], 500_000);
    whole.run(&on(1));
    for threads in [1, 2] {
        let stop = AtomicBool::new(true);
        let mut simulation = ring(&[], 500_000);
        // Set from the beginning: one round is run each time.
        for _ in 0..3 {
            let end = simulation.run(&RunOptions { stop: Some(&stop), ..on(threads) });
            let RunEnd::Stopped { at } = end else { panic!("{end:?}") };
            assert_eq!(at, simulation.reached());
        }
        assert_eq!(simulation.stats().totals.rounds, 3);
        stop.store(false, Ordering::Relaxed);
        let end = simulation.run(&RunOptions { stop: Some(&stop), ..on(threads) });
        assert!(matches!(end, RunEnd::Finished { at: 500_100 }), "{end:?}");
        assert_eq!(simulation.digest(), whole.digest());
    }
}

#[test]
fn a_stop_flag_set_meanwhile_is_seen() {
    for threads in [1, 2] {
        let end = within_seconds(60, move || {
            let stop = AtomicBool::new(false);
            let mut simulation = ring(&[], u64::MAX / 2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    stop.store(true, Ordering::Relaxed);
                });
                simulation.run(&RunOptions { stop: Some(&stop), ..on(threads) })
            })
        });
        assert!(matches!(end, RunEnd::Stopped { .. }), "{end:?}");
    }
}

#[test]
fn a_time_limit_handles_what_is_at_it_and_nothing_after() {
    for threads in [1, 2] {
        for (limit, wakes) in [(499, 8 * 50), (500, 8 * 51)] {
            let mut simulation = ring(&[], 10_000);
            let end = simulation.run(&RunOptions { time_limit: Some(limit), ..on(threads) });
            assert!(matches!(end, RunEnd::TimeLimit { at } if at == limit), "{end:?}");
            assert_eq!(simulation.stats().wakes, wakes);
            assert_eq!(simulation.reached(), limit + 1);
        }
    }
}

#[test]
fn between_runs_more_can_be_started() {
    let mut simulation = ring(&[], 100);
    simulation.run(&RunOptions { time_limit: Some(1000), ..on(1) });
    let before = simulation.stats().events();
    simulation.wake_at(ComponentId(2), 5000);
    simulation.post(ComponentId(3), 5001, Token(9));
    let end = simulation.run(&on(2));
    assert!(matches!(end, RunEnd::Finished { at: 5100 }), "{end:?}");
    // A wake, the post, and the token that the wake sent.
    assert_eq!(simulation.stats().events(), before + 3);
}

#[test]
#[should_panic(expected = "is past")]
fn a_start_in_the_past_is_refused() {
    let mut simulation = ring(&[], 100);
    simulation.run(&on(1));
    simulation.wake_at(ComponentId(0), 50);
}

#[test]
fn the_observer_sees_progress() {
    for threads in [1, 2] {
        let calls = AtomicU64::new(0);
        let last: Mutex<Option<Snapshot>> = Mutex::new(None);
        let observer = |snapshot: &Snapshot| {
            calls.fetch_add(1, Ordering::Relaxed);
            assert_eq!(snapshot.progress.steps_total, 16);
            assert!(snapshot.progress.work <= snapshot.events);
            if let Some(last) = last.lock().unwrap().replace(*snapshot) {
                assert!(last.time <= snapshot.time && last.events <= snapshot.events);
            }
        };
        let options = RunOptions { observer: Some(&observer), observe_every: Duration::from_millis(1), ..on(threads) };
        let mut simulation = ring(&[], 10_000_000);
        simulation.run(&RunOptions { rebalance: Rebalance::Never, ..options });
        assert!(calls.load(Ordering::Relaxed) >= 2, "{threads} threads: {calls:?} calls");
        assert!(simulation.stats().totals.rounds > 10);
    }
}

#[test]
fn the_inspector_sees_every_component_between_events_and_at_the_end() {
    for threads in [1, 3] {
        let seen: Mutex<Vec<(u64, bool, u64)>> = Mutex::default();
        let inspector = |look: &Inspection<'_>| {
            // In the order of ids wherever components are, each as what it is.
            let wakes = look.components.iter().map(|(_, actor)| actor.downcast_ref::<Actor>().unwrap().wakes);
            let wakes: Vec<u64> = wakes.collect();
            let names: Vec<&str> = look.components.iter().map(|(name, _)| *name).collect();
            assert_eq!((names[0], names[7], names.len()), ("actor0", "actor7", 8));
            // Everything before its time is handled: all actors wake at the same times.
            assert!(wakes.iter().all(|&each| each == wakes[0]), "{wakes:?}");
            assert_eq!(look.snapshot.progress.work, wakes.iter().sum::<u64>());
            assert_eq!(look.waits.len(), 0);
            seen.lock().unwrap().push((look.snapshot.time, look.over, wakes[0]));
        };
        let mut simulation = ring(&[], 2_000_000);
        let every = Duration::from_millis(1);
        let watched = RunOptions { inspector: Some(&inspector), inspect_every: every, ..on(threads) };
        let cut = simulation.run(&RunOptions { time_limit: Some(1_000_000), ..watched.clone() });
        assert!(matches!(cut, RunEnd::TimeLimit { at: 1_000_000 }), "{cut:?}");
        simulation.run(&watched);
        let seen = seen.into_inner().unwrap();
        assert!(seen.is_sorted(), "{seen:?}");
        let ends: Vec<_> = seen.iter().filter(|(_, over, _)| *over).collect();
        // Cut at its limit; then over with the last message, on its way for a latency.
        assert_eq!(ends, [&(1_000_000, true, 100_001), &(2_000_100, true, 200_001)]);
        assert!(seen.len() > 2, "{threads} threads: {seen:?}");
        let mut alone = ring(&[], 2_000_000);
        alone.run(&on(threads));
        assert_eq!(simulation.digest(), alone.digest());
    }
}

/// Eight pairs in a ring, all of which do the same at the same times: within a pair a latency of 20, between
/// pairs 100.
fn pairs(fused: bool) -> Simulation<Token> {
    let mut topology = Topology::new();
    let actor = || Box::new(Actor { act: None, until: 1000, waits: vec![], wakes: 0 });
    let ids: Vec<ComponentId> = (0..16).map(|i| topology.add(format!("actor{i}"), actor())).collect();
    for (i, &id) in ids.iter().enumerate() {
        let latency = if i % 2 == 0 { 20 } else { 100 };
        topology.connect(id, Port(0), ids[(i + 1) % 16], Link { latency, phase: 0 });
        topology.wake_at(id, 0);
    }
    if fused {
        ids.chunks(2).for_each(|pair| topology.fuse(pair));
    }
    Simulation::new(topology).unwrap()
}

#[test]
fn eight_fused_pairs_bound_the_speedup_at_eight() {
    let [mut apart, mut fused] = [false, true].map(pairs);
    apart.run(&on(1));
    fused.run(&on(1));
    assert_eq!(fused.digest(), apart.digest());
    let stats = fused.stats();
    // Each pair has an eighth of the events of each round.
    assert_eq!(8 * stats.totals.critical_path, stats.totals.events);
    assert_eq!([2, 4, 8, 16, 128].map(|workers| stats.speedup_bound(workers)), [2.0, 4.0, 8.0, 8.0, 8.0]);
    // Components that are apart have nearly a sixteenth each: some rounds begin before all messages arrive.
    let bound = apart.stats().speedup_bound(16);
    assert!((15.0..16.0).contains(&bound), "{bound}");
    assert!(apart.stats().totals.rounds > 3 * stats.totals.rounds);
    let mut parallel = pairs(true);
    parallel.run(&on(4));
    assert_eq!((parallel.digest(), parallel.stats().totals), (fused.digest(), stats.totals));
}
