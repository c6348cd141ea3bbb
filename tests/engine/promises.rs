//! Rounds that rest on promises: a desk hands out jobs and promises, while some are left, to answer those only
//! who bring one back. Whatever drives them, results are those of the reference.

use crate::chatter::mix;
use crate::same_results::all_ways;
use durawarp::engine::{Component, ComponentId, Ctx, Link, Message, Port, Reference, RunEnd, Simulation, Topology};
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
            pieces.run(&durawarp::engine::RunOptions { time_limit: Some(cut), epoch_ticks, ..options.clone() });
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
