//! A simulation of one's own on the engine alone: PHOLD, the standard load of parallel event simulators.
//! `cargo run --example own_component`.
//!
//! ```text
//!   node i ──Port(0)──> node i + 1 ──Port(0)──> ...      a ring, latency 100 ticks
//!          ──Port(1)──> node i + 7                       a chord of it, latency 100 ticks
//! ```
//! Each of 32 nodes begins with 8 jobs. A node that gets a job sends it on by a port drawn at random, after a
//! delay drawn from 0 to 799 ticks beyond the link's latency. The random numbers are state of the node: the
//! engine asks each node in the same order at any number of threads, so that they, and all that follows from
//! them, are the same.

use durawarp::engine::{Component, Ctx, Fallback, Link, Message, Port, RunEnd, RunOptions, Simulation, Topology};

const NODES: usize = 32;
const JOBS: u64 = 8;
/// Ticks.
const LATENCY: u64 = 100;
const UNTIL: u64 = 200_000;

/// A job counts how often it was sent on.
#[derive(Debug)]
struct Job(u64);

impl Message for Job {
    fn digest(&self) -> u64 {
        self.0
    }
}

struct Node {
    random: u64,
    /// Of all jobs that it has had.
    sum: u64,
}

impl Node {
    /// xorshift64*, Vigna 2016.
    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) * below) >> 32
    }

    fn send(&mut self, job: Job, cx: &mut Ctx<'_, Job>) {
        if cx.now() < UNTIL {
            let (port, delay) = (self.draw(2), self.draw(800));
            cx.send(Port(port as u16), job, delay);
        }
    }
}

impl Component<Job> for Node {
    fn handle(&mut self, Job(hops): Job, cx: &mut Ctx<'_, Job>) {
        self.sum = self.sum.wrapping_mul(31) + hops;
        self.send(Job(hops + 1), cx);
    }

    /// At tick 0, as the topology has it.
    fn wake(&mut self, cx: &mut Ctx<'_, Job>) {
        (0..JOBS).for_each(|job| self.send(Job(job), cx));
    }

    fn digest(&self) -> u64 {
        self.sum
    }
}

fn simulation() -> Simulation<Job> {
    let mut topology = Topology::new();
    let node = |number: usize| Box::new(Node { random: number as u64 + 1, sum: 0 });
    let ids: Vec<_> = (0..NODES).map(|number| topology.add(format!("node{number}"), node(number))).collect();
    for (number, id) in ids.iter().enumerate() {
        for (port, stride) in [(0, 1), (1, 7)] {
            topology.connect(*id, Port(port), ids[(number + stride) % NODES], Link { latency: LATENCY, phase: 0 });
        }
        topology.wake_at(*id, 0);
    }
    Simulation::new(topology).expect("links of at least one tick between components that exist")
}

fn main() {
    let run = |threads: usize| {
        let mut simulation = simulation();
        // All of the threads work, even where the host has fewer cores or one alone would be faster.
        let options = RunOptions { threads, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
        let end = simulation.run(&options);
        assert!(matches!(end, RunEnd::Finished { at } if at >= UNTIL), "{end:?}");
        (simulation.digest(), simulation.stats().events())
    };
    let one = run(1);
    assert_eq!(one, run(3), "the same events and the same states at 1 and at 3 threads");
    // A job is handled once every 100 + 400 ticks on average.
    let expected = NODES as u64 * JOBS * UNTIL / (LATENCY + 400);
    assert!(one.1.abs_diff(expected) < expected / 20, "{} events, about {expected} expected", one.1);
    println!("{} events, digest {:016x} at 1 and at 3 threads", one.1, one.0);
}
