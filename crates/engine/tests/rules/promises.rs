//! Rounds that rest on promises: a desk hands out jobs and promises, while some are left, to answer those only
//! who bring one back. Whatever drives them, results are those of the reference.

use crate::chatter::mix;
use crate::same_results::all_ways;
use durawarp_engine::{Component, ComponentId, Ctx, Link, Message, Port, Reference, RunEnd, Simulation, Topology};
use proptest::prelude::*;

/// What travels between desk, workers and stores.
#[derive(Debug, Clone)]
enum Note {
    Job(u64),
    Done(u32),
    Ask(u32, u64),
    Answer(u64),
}

impl Message for Note {
    fn digest(&self) -> u64 {
        match *self {
            Note::Job(job) => mix(1, job),
            Note::Done(worker) => mix(2, u64::from(worker)),
            Note::Ask(worker, value) => mix(u64::from(worker) + 3, value),
            Note::Answer(value) => mix(4, value),
        }
    }
}

/// Hands out batches of jobs: each worker has one at a time, and the next batch starts when all are back.
struct Desk {
    workers: u32,
    batch: u64,
    batches_left: u32,
    left: u64,
    out: u32,
    state: u64,
    /// Of a batch's first jobs: as long as a launch of a GPU takes.
    start_ticks: u64,
    promises: bool,
}

impl Desk {
    fn start(&mut self, cx: &mut Ctx<'_, Note>) {
        if self.batches_left == 0 {
            return;
        }
        self.batches_left -= 1;
        self.left = self.batch;
        for worker in 0..self.workers {
            self.hand(worker, self.start_ticks, cx);
        }
    }

    fn hand(&mut self, worker: u32, extra: u64, cx: &mut Ctx<'_, Note>) {
        if self.left > 0 {
            self.left -= 1;
            self.out += 1;
            cx.send(Port(worker as u16), Note::Job(mix(self.state, self.left)), extra);
        }
    }
}

impl Component<Note> for Desk {
    fn handle(&mut self, note: Note, cx: &mut Ctx<'_, Note>) {
        let Note::Done(worker) = note else { panic!("{note:?} at the desk") };
        self.state = mix(self.state, cx.now() ^ u64::from(worker));
        self.out -= 1;
        self.hand(worker, self.state % 3 * 7, cx);
        if self.out == 0 {
            self.start(cx);
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Note>) {
        self.start(cx);
    }

    fn answers_sender_only(&self) -> bool {
        self.promises && self.left > 0
    }

    fn digest(&self) -> u64 {
        self.state
    }
}

/// Works on a job: asks stores, waits, and brings it back.
struct Worker {
    index: u32,
    stores: u16,
    /// A job has fewer steps than this.
    most_steps: u64,
    steps_left: u64,
    state: u64,
}

impl Component<Note> for Worker {
    fn handle(&mut self, note: Note, cx: &mut Ctx<'_, Note>) {
        match note {
            Note::Job(job) => {
                self.state = mix(self.state, job ^ cx.now());
                self.steps_left = self.state % self.most_steps;
                cx.wake_at(cx.now() + self.state % 40);
            }
            Note::Answer(value) => self.state = mix(self.state, value ^ cx.now()),
            other => panic!("{other:?} at a worker"),
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Note>) {
        self.state = mix(self.state, cx.now());
        if self.steps_left == 0 {
            cx.send(Port(0), Note::Done(self.index), self.state % 5);
            // It has something to do while the answer is under way, too.
            if self.state.is_multiple_of(3) {
                self.steps_left = u64::MAX;
                cx.wake_at(cx.now() + self.state % 900);
            }
            return;
        }
        if self.steps_left == u64::MAX {
            self.steps_left = 0;
            self.state = mix(self.state, 5);
            return;
        }
        self.steps_left -= 1;
        let store = Port(1 + (self.state % u64::from(self.stores)) as u16);
        cx.send(store, Note::Ask(self.index, self.state), 0);
        cx.wake_at(cx.now() + 1 + self.state % 200);
    }

    fn digest(&self) -> u64 {
        self.state
    }
}

struct Store(u64);

impl Component<Note> for Store {
    fn handle(&mut self, note: Note, cx: &mut Ctx<'_, Note>) {
        let Note::Ask(worker, value) = note else { panic!("{note:?} at a store") };
        self.0 = mix(self.0, value ^ cx.now());
        cx.send(Port(worker as u16), Note::Answer(self.0), self.0 % 50);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Note>) {}

    fn digest(&self) -> u64 {
        self.0
    }
}

#[derive(Debug, Clone)]
struct Model {
    workers: u32,
    stores: u16,
    most_steps: u64,
    batch: u64,
    batches: u32,
    command: u64,
    there: u64,
    back: u64,
    promises: bool,
}

impl Model {
    fn any() -> impl Strategy<Value = Model> {
        (1u32..9, 1u16..5, 0u64..60, 1u32..4, 20u64..700, 100u64..3000, 30u64..500).prop_map(
            |(workers, stores, batch, batches, command, there, back)| Model {
                workers,
                stores,
                most_steps: 12,
                batch,
                batches,
                command,
                there,
                back,
                promises: true,
            },
        )
    }

    fn topology(&self) -> Topology<Note> {
        let mut t = Topology::new();
        let desk = Desk {
            workers: self.workers,
            batch: self.batch,
            batches_left: self.batches,
            left: 0,
            out: 0,
            state: 1,
            start_ticks: 500,
            promises: self.promises,
        };
        let desk = t.add("desk", Box::new(desk));
        let add = |t: &mut Topology<Note>, index: u32| {
            let worker = Worker {
                index,
                stores: self.stores,
                most_steps: self.most_steps,
                steps_left: 0,
                state: u64::from(index),
            };
            t.add(format!("worker{index}"), Box::new(worker))
        };
        let workers: Vec<ComponentId> = (0..self.workers).map(|index| add(&mut t, index)).collect();
        let stores: Vec<ComponentId> =
            (0..self.stores).map(|index| t.add(format!("store{index}"), Box::new(Store(u64::from(index))))).collect();
        for (index, &worker) in workers.iter().enumerate() {
            t.connect(worker, Port(0), desk, Link { latency: self.command, phase: 0 });
            t.connect(desk, Port(index as u16), worker, Link { latency: self.command, phase: 0 });
            for (at, &store) in stores.iter().enumerate() {
                t.connect(worker, Port(1 + at as u16), store, Link { latency: self.there, phase: 0 });
                t.connect(store, Port(index as u16), worker, Link { latency: self.back, phase: 0 });
            }
        }
        t.put_in_tier(1, &stores);
        t.put_in_tier(2, &[desk]);
        t.let_answer(2);
        t.wake_at(desk, 0);
        t
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_driver_agrees_with_the_reference_while_the_desk_promises(model in Model::any(), cut in 0u64..60_000) {
        let mut reference = Reference::new(model.topology()).expect("a sound topology");
        let last = reference.run(None);
        let mut totals = None;
        for options in all_ways() {
            let mut simulation = Simulation::new(model.topology()).expect("a sound topology");
            let end = simulation.run(&options);
            prop_assert!(matches!(end, RunEnd::Finished { at } if at == last), "{end:?}, not {last}: {options:?}");
            prop_assert_eq!(simulation.digest(), reference.digest(), "{:?}", options);
            prop_assert_eq!(*totals.get_or_insert(simulation.stats().totals), simulation.stats().totals, "{:?}", options);
            // A limit in the middle, and on from there.
            let mut pieces = Simulation::new(model.topology()).expect("a sound topology");
            let mut part = Reference::new(model.topology()).expect("a sound topology");
            part.run(Some(cut));
            let epoch_ticks = Some(777);
            pieces.run(&durawarp_engine::RunOptions { time_limit: Some(cut), epoch_ticks, ..options.clone() });
            prop_assert_eq!(pieces.digest(), part.digest(), "{:?}", options);
            pieces.run(&options);
            prop_assert_eq!(pieces.digest(), reference.digest(), "{:?}", options);
        }
    }
}

#[test]
fn promises_make_rounds_fewer() {
    let model = Model {
        workers: 8,
        stores: 4,
        most_steps: 1000,
        batch: 160,
        batches: 2,
        command: 500,
        there: 2500,
        back: 350,
        promises: true,
    };
    let rounds = |model: &Model| {
        let mut simulation = Simulation::new(model.topology()).expect("a sound topology");
        simulation.run(&Default::default());
        (simulation.stats().totals.rounds, simulation.digest())
    };
    let (promised, usual) = (rounds(&model), rounds(&Model { promises: false, ..model.clone() }));
    assert_eq!(promised.1, usual.1);
    assert!(promised.0 * 5 < usual.0 * 4, "{} rounds with promises, {} without", promised.0, usual.0);
}

/// The ports that a message has left to go out of, one after the other and each at once.
#[derive(Debug, Clone)]
struct Route(Vec<u16>);

impl Message for Route {
    fn digest(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Workers wake until then: longer than any message of the test takes.
const LAST: u64 = 1800;

/// Passes messages on in the instant in which they come, and wakes at every tick until one.
struct Passer {
    state: u64,
    until: u64,
    /// Of the desk: messages until it promises no more.
    promises: u32,
}

impl Component<Route> for Passer {
    fn handle(&mut self, route: Route, cx: &mut Ctx<'_, Route>) {
        self.state = mix(self.state, cx.now() << 8 | route.0.len() as u64);
        self.promises = self.promises.saturating_sub(1);
        if let Some((&port, rest)) = route.0.split_first() {
            cx.send(Port(port), Route(rest.to_vec()), 0);
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Route>) {
        self.state = mix(self.state, !cx.now());
        if cx.now() < self.until {
            cx.wake_at(cx.now() + 1);
        }
    }

    fn answers_sender_only(&self) -> bool {
        self.promises > 0
    }

    fn digest(&self) -> u64 {
        self.state
    }
}

/// Two workers, 0 and 1, a store and a desk, each joined with all others; of the workers 0 with 1 alone.
#[derive(Debug, Clone, Copy)]
struct Ways {
    /// From worker to desk and from desk to worker.
    desk: (u64, u64),
    /// From worker to store and from store to worker.
    store: (u64, u64),
    /// From store to desk and from desk to store.
    between: (u64, u64),
    /// From worker 0 to worker 1.
    direct: u64,
}

impl Ways {
    /// Worker 0 gets a message at `start` that takes this way.
    fn topology(&self, start: u64, route: &[u16], promises: u32) -> Topology<Route> {
        let mut t = Topology::new();
        let until = start + LAST;
        let passer = |until, promises| Box::new(Passer { state: until, until, promises });
        let workers = [0, 1].map(|index| t.add(format!("worker{index}"), passer(until, 0)));
        let (store, desk) = (t.add("store", passer(0, 0)), t.add("desk", passer(0, promises)));
        let mut link = |from, port, to, latency| t.connect(from, Port(port), to, Link { latency, phase: 0 });
        for (index, worker) in (0..).zip(workers) {
            link(worker, 0, desk, self.desk.0);
            link(desk, index, worker, self.desk.1);
            link(worker, 1, store, self.store.0);
            link(store, index, worker, self.store.1);
        }
        link(workers[0], 2, workers[1], self.direct);
        link(store, 2, desk, self.between.0);
        link(desk, 2, store, self.between.1);
        t.put_in_tier(1, &[store]);
        t.put_in_tier(2, &[desk]);
        t.let_answer(2);
        workers.iter().for_each(|&worker| t.wake_at(worker, 0));
        t.post(workers[0], start, Route(route.to_vec()));
        t
    }
}

/// The other worker hears of what a worker did in the first instant after its window, by each way that bounds
/// a window that rests on promises, and is awake in that instant: with a window of one tick more it wakes too
/// early.
#[test]
fn the_first_word_that_a_promise_allows_comes_in_time_by_every_way() {
    // By the desk, which answers once and promises no more then; by the store; by store and desk, as what does
    // not come from a worker is promised nothing; directly; and back to the worker itself, which ended its round
    // for the answer.
    let routes: [(&[u16], u32); 5] = [(&[0, 0, 0, 1], 1), (&[1, 1], 9), (&[1, 2, 1], 9), (&[2], 9), (&[0, 0], 9)];
    let mut runs = 0;
    for there in [1, 2, 3, 9, 30, 64, 127, 200, 501] {
        for back in [1, 2, 3, 10, 31, 64, 120, 333] {
            for (route, promises) in routes {
                // What the message does not take is too long to bound anything.
                let far = Ways { desk: (5000, 5000), store: (5000, 5000), between: (5000, 5000), direct: 5000 };
                let ways = match route {
                    [1, 1] => Ways { store: (there, back), ..far },
                    [1, 2, 1] => Ways { desk: (5000, back), store: (there, 5000), between: (back + 1, 5000), ..far },
                    [2] => Ways { direct: there + back, ..far },
                    _ => Ways { desk: (there, back), ..far },
                };
                for start in [0, 1, 7, 32] {
                    let topology = || ways.topology(start, route, promises);
                    let mut reference = Reference::new(topology()).expect("a sound topology");
                    reference.run(None);
                    let mut simulation = Simulation::new(topology()).expect("a sound topology");
                    let end = simulation.run(&Default::default());
                    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}: {ways:?}, {route:?} from {start}");
                    assert_eq!(simulation.digest(), reference.digest(), "{ways:?}, {route:?} from {start}");
                    runs += 1;
                }
            }
        }
    }
    assert_eq!(runs, 9 * 8 * 5 * 4);
}
