//! The order of events at one component, rule by rule, and what a topology refuses.

use std::any::Any;

use durawarp_engine::{
    Component, ComponentId, Ctx, Fallback, Link, Message, Placement, Port, Reference, RunEnd, RunOptions, Simulation,
    Time, Topology, TopologyFault,
};

#[derive(Debug)]
struct Named(&'static str);

impl Message for Named {}

/// What a scripted component does when it wakes.
#[derive(Debug, Clone, Copy)]
enum Do {
    Send(u16, &'static str, Time),
    WakeAt(Time),
}

/// Sends and wakes as told, by time of the wake-up, or by name of the message; logs everything it handles.
#[derive(Default)]
struct Scripted {
    on_wake: Vec<(Time, Do)>,
    on_message: Vec<(&'static str, Do)>,
    log: Vec<(Time, &'static str)>,
}

impl Scripted {
    fn act(doing: Do, cx: &mut Ctx<'_, Named>) {
        match doing {
            Do::Send(port, name, extra) => cx.send(Port(port), Named(name), extra),
            Do::WakeAt(time) => cx.wake_at(time),
        }
    }
}

impl Component<Named> for Scripted {
    fn handle(&mut self, message: Named, cx: &mut Ctx<'_, Named>) {
        self.log.push((cx.now(), message.0));
        for &(name, doing) in &self.on_message {
            if name == message.0 {
                Scripted::act(doing, cx);
            }
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Named>) {
        self.log.push((cx.now(), "wake"));
        for &(time, doing) in &self.on_wake {
            if time == cx.now() {
                Scripted::act(doing, cx);
            }
        }
    }
}

/// Components by what they do, first wake-ups, and links (from, port, to, latency, phase).
struct Script {
    parts: Vec<Scripted>,
    starts: Vec<(u32, Time)>,
    links: Vec<(u32, u16, u32, Time, u8)>,
    posts: Vec<(u32, Time, &'static str)>,
}

/// What component 0 logs, after checking that every driver logs the same.
fn check(build: impl Fn() -> Script, expected: &[(Time, &'static str)]) {
    let topology = || {
        let script = build();
        let mut topology = Topology::new();
        for (i, part) in script.parts.into_iter().enumerate() {
            topology.add(format!("part{i}"), Box::new(part));
        }
        for (from, port, to, latency, phase) in script.links {
            topology.connect(ComponentId(from), Port(port), ComponentId(to), Link { latency, phase });
        }
        for (id, time) in script.starts {
            topology.wake_at(ComponentId(id), time);
        }
        for (id, time, name) in script.posts {
            topology.post(ComponentId(id), time, Named(name));
        }
        topology
    };
    let log_of = |component: &dyn Component<Named>| {
        let any: &dyn Any = component;
        any.downcast_ref::<Scripted>().unwrap().log.clone()
    };
    let mut reference = Reference::new(topology()).unwrap();
    reference.run(None);
    assert_eq!(log_of(reference.component(ComponentId(0))), expected, "the reference");
    for threads in [1, 2, 3] {
        let options = RunOptions {
            threads,
            oversubscribe: true,
            fallback: Fallback::Never,
            placement: Placement::RoundRobin,
            ..RunOptions::default()
        };
        let mut simulation = Simulation::new(topology()).unwrap();
        assert!(matches!(simulation.run(&options), RunEnd::Finished { .. }));
        assert_eq!(log_of(simulation.component(ComponentId(0))), expected, "{threads} threads");
    }
}

fn idle() -> Scripted {
    Scripted::default()
}

fn on_wake(list: &[(Time, Do)]) -> Scripted {
    Scripted { on_wake: list.to_vec(), ..idle() }
}

#[test]
fn simultaneous_arrivals_go_by_phase_then_origin_then_sequence() {
    let send = |port, name, extra| (0, Do::Send(port, name, extra));
    check(
        || Script {
            parts: vec![
                idle(),
                on_wake(&[
                    send(0, "1: phase 3", 20),
                    send(1, "1: phase 0, first", 20),
                    send(1, "1: phase 0, second", 20),
                ]),
                on_wake(&[send(0, "2: phase 3", 10), send(1, "2: phase 0", 0)]),
            ],
            starts: vec![(2, 0), (1, 0)],
            links: vec![(1, 0, 0, 30, 3), (1, 1, 0, 30, 0), (2, 0, 0, 40, 3), (2, 1, 0, 50, 0)],
            posts: vec![],
        },
        &[
            (50, "1: phase 0, first"),
            (50, "1: phase 0, second"),
            (50, "2: phase 0"),
            (50, "1: phase 3"),
            (50, "2: phase 3"),
        ],
    );
}

#[test]
fn a_wake_follows_every_message_of_its_instant() {
    check(
        || Script {
            parts: vec![
                Scripted { on_message: vec![("first", Do::WakeAt(40))], ..on_wake(&[(0, Do::WakeAt(40))]) },
                on_wake(&[(0, Do::Send(0, "first", 0)), (0, Do::Send(1, "last", 0))]),
            ],
            starts: vec![(0, 0), (1, 0)],
            links: vec![(1, 0, 0, 40, 0), (1, 1, 0, 40, 14)],
            posts: vec![],
        },
        &[(0, "wake"), (40, "first"), (40, "last"), (40, "wake")],
    );
}

#[test]
fn a_wake_asked_for_now_by_a_message_comes_at_the_same_instant() {
    check(
        || Script {
            parts: vec![Scripted { on_message: vec![("now", Do::WakeAt(70))], ..idle() }],
            starts: vec![],
            links: vec![],
            posts: vec![(0, 70, "now"), (0, 71, "later")],
        },
        &[(70, "now"), (70, "wake"), (71, "later")],
    );
}

#[test]
fn the_earlier_wake_is_kept_and_the_later_forgotten() {
    check(
        || Script {
            parts: vec![Scripted {
                on_message: vec![("a", Do::WakeAt(3000)), ("b", Do::WakeAt(500)), ("c", Do::WakeAt(4000))],
                ..idle()
            }],
            starts: vec![],
            links: vec![],
            posts: vec![(0, 10, "a"), (0, 20, "b"), (0, 30, "c")],
        },
        &[(10, "a"), (20, "b"), (30, "c"), (500, "wake")],
    );
}

#[test]
fn a_wake_can_be_asked_for_again_where_a_forgotten_one_was() {
    check(
        || Script {
            parts: vec![
                Scripted {
                    on_message: vec![("late", Do::WakeAt(3000)), ("soon", Do::WakeAt(500))],
                    ..on_wake(&[(500, Do::WakeAt(3000))])
                },
                idle(),
            ],
            starts: vec![],
            links: vec![(0, 0, 1, 10, 0)],
            posts: vec![(0, 10, "late"), (0, 20, "soon")],
        },
        &[(10, "late"), (20, "soon"), (500, "wake"), (3000, "wake")],
    );
}

#[test]
fn messages_to_oneself_may_be_short_and_come_in_order() {
    check(
        || Script {
            parts: vec![
                Scripted {
                    on_message: vec![("tick", Do::Send(0, "tock", 0)), ("tock", Do::WakeAt(9))],
                    ..on_wake(&[(5, Do::Send(0, "tick", 2)), (5, Do::Send(0, "tick", 0)), (9, Do::Send(0, "end", 500))])
                },
                on_wake(&[(0, Do::Send(0, "other", 0))]),
            ],
            starts: vec![(0, 5), (1, 0)],
            links: vec![(0, 0, 0, 1, 9), (1, 0, 0, 8, 0)],
            posts: vec![],
        },
        &[(5, "wake"), (6, "tick"), (7, "tock"), (8, "other"), (8, "tick"), (9, "tock"), (9, "wake"), (510, "end")],
    );
}

#[test]
fn posts_come_after_phase_zero_of_their_instant_and_in_order() {
    check(
        || Script {
            parts: vec![idle(), on_wake(&[(0, Do::Send(0, "phase 0", 0)), (0, Do::Send(1, "phase 1", 0))])],
            starts: vec![(1, 0)],
            links: vec![(1, 0, 0, 20, 0), (1, 1, 0, 20, 1)],
            posts: vec![(0, 20, "post 1"), (0, 20, "post 2")],
        },
        &[(20, "phase 0"), (20, "post 1"), (20, "post 2"), (20, "phase 1")],
    );
}

#[test]
fn far_delays_and_short_windows_keep_their_order() {
    // A lookahead of one tick, and delays far past any wheel.
    let far = 1 << 40;
    check(
        || Script {
            parts: vec![
                idle(),
                on_wake(&[
                    (0, Do::Send(0, "far", (1 << 40) - 1)),
                    (0, Do::Send(0, "near", 0)),
                    (0, Do::WakeAt(1 << 39)),
                ]),
                on_wake(&[(0, Do::Send(0, "far too", (1 << 40) - 1))]),
            ],
            starts: vec![(1, 0), (2, 0)],
            links: vec![(1, 0, 0, 1, 0), (2, 0, 0, 1, 0)],
            posts: vec![],
        },
        &[(1, "near"), (far, "far"), (far, "far too")],
    );
}

#[test]
fn a_port_that_leads_nowhere_is_a_panic_that_names_it() {
    let mut topology = Topology::new();
    let id = topology.add("lost", Box::new(on_wake(&[(0, Do::Send(2, "x", 0))])));
    topology.connect(id, Port(0), id, Link { latency: 1, phase: 0 });
    topology.wake_at(id, 0);
    let end = Simulation::new(topology).unwrap().run(&RunOptions::default());
    let RunEnd::Panicked { name, message, .. } = end else { panic!("{end:?}") };
    assert_eq!((&name[..], &message[..]), ("lost", "component #0 sent out of port 2, but has 1 ports"));
}

#[test]
fn a_delay_past_the_end_of_time_is_a_panic() {
    for extra in [Time::MAX, Time::MAX - 10, Time::MAX - 1] {
        let mut topology = Topology::new();
        let id = topology.add("late", Box::new(on_wake(&[(9, Do::Send(0, "x", extra))])));
        topology.connect(id, Port(0), id, Link { latency: 1, phase: 0 });
        topology.wake_at(id, 9);
        let end = Simulation::new(topology).unwrap().run(&RunOptions::default());
        assert!(matches!(end, RunEnd::Panicked { .. }), "{extra}: {end:?}");
    }
}

fn faults(links: &[(u32, u16, u32, Time, u8)]) -> Vec<TopologyFault> {
    let mut topology = Topology::new();
    for name in ["a", "b"] {
        topology.add(name, Box::new(idle()));
    }
    for &(from, port, to, latency, phase) in links {
        topology.connect(ComponentId(from), Port(port), ComponentId(to), Link { latency, phase });
    }
    match Simulation::new(topology) {
        Ok(_) => vec![],
        Err(error) => error.faults().to_vec(),
    }
}

#[test]
fn a_sound_topology_has_no_faults() {
    assert_eq!(faults(&[(0, 1, 1, 5, 14), (0, 0, 1, 5, 0), (1, 0, 1, 1, 0)]), []);
}

#[test]
fn each_fault_of_a_topology_names_both_ends() {
    let text = |links: &[_]| faults(links).iter().map(|fault| fault.to_string()).collect::<Vec<_>>();
    assert_eq!(
        text(&[(0, 0, 1, 0, 0)]),
        ["link from a (port 0) to b: a latency of 0 ticks, where at least 1 is needed"]
    );
    assert_eq!(
        text(&[(1, 0, 1, 0, 0)]),
        ["link from b (port 0) to b: a latency of 0 ticks, where at least 1 is needed"]
    );
    assert_eq!(text(&[(0, 0, 1, 1, 15)]), ["link from a (port 0) to b: phase 15, where at most 14 is possible"]);
    assert_eq!(text(&[(0, 0, 7, 1, 0)]), ["link from a (port 0) to #7: there is no component #7"]);
    assert_eq!(text(&[(0, 1, 1, 1, 0)]), ["a has no port 0, but a port 1 to b"]);
    assert_eq!(text(&[(0, 0, 1, 1, 0), (0, 2, 1, 1, 0)]), ["a has no port 1, but a port 2 to b"]);
    assert_eq!(text(&[(0, 0, 1, 1, 0), (0, 0, 0, 1, 0)]), ["port 0 of a leads to both b and a"]);
}

#[test]
fn all_faults_are_reported_at_once() {
    assert_eq!(faults(&[(0, 0, 1, 0, 15), (5, 0, 1, 1, 0)]).len(), 3);
}

#[test]
fn components_come_back_with_their_names() {
    let mut topology = Topology::new();
    topology.add("first", Box::new(idle()));
    topology.add("second", Box::new(on_wake(&[])));
    topology.wake_at(ComponentId(1), 3);
    let mut simulation = Simulation::new(topology).unwrap();
    simulation.run(&RunOptions { threads: 2, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() });
    let parts = simulation.into_components();
    assert_eq!(parts.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["first", "second"]);
    let (_, component) = parts.into_iter().nth(1).unwrap();
    let any: Box<dyn Any> = component;
    assert_eq!(any.downcast::<Scripted>().unwrap().log, [(3, "wake")]);
}
