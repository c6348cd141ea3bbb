//! PHOLD, the standard load of parallel event simulators: each event makes one event, at a random component
//! and time.
//! Run: `cargo run -p durawarp-engine --example phold`.
//!
//! ```text
//!   component i ──Port(0)── latency 100 ──> itself
//!               ──Port(k)── latency 100 ──> component i + stride(k)       each after an extra delay of 0 to 799 ticks
//! ```
//! Up to 64 components each has a link to every other; beyond that to 15 others, spread over all: a port for
//! each of 16,384 others would measure the memory that links take. An event may carry work: a chain of
//! multiplications. The random numbers are state of the component. The engine calls each component in the
//! same order at any number of threads, so that they, and all that follows from them, are the same.
//!
//! Prints the number of events beside the expected one, and the digest at 1 and at 3 threads. The benches of
//! the engine run this model at many sizes.
//!
//! Source: R. M. Fujimoto, Performance of Time Warp Under Synthetic Workloads, 1990.

use durawarp_engine::{Component, Ctx, Fallback, Link, Message, Port, RunEnd, RunOptions, Simulation, Topology};

/// The least delay of every event, hence the lookahead; in ticks.
pub(crate) const LATENCY: u64 = 100;
/// Delays beyond it, in ticks.
pub(crate) const SPREAD: u64 = 800;

/// A run of PHOLD.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phold {
    /// Components.
    pub(crate) components: u64,
    /// Events that each begins with.
    pub(crate) each: u64,
    /// Events for another component, of 1024.
    pub(crate) remote: u64,
    /// Dependent multiplications an event, about 1.3 ns each.
    pub(crate) work: u32,
    /// The first so many of 8 components do 8 times the work.
    pub(crate) heavy: u64,
    /// No event is made from this time on, in ticks.
    pub(crate) until: u64,
}

/// What travels: how often it was sent on.
#[derive(Debug)]
pub(crate) struct Job(pub(crate) u64);

impl Message for Job {
    fn digest(&self) -> u64 {
        self.0
    }
}

struct Node {
    random: u64,
    ports: u64,
    remote: u64,
    work: u32,
    until: u64,
    sum: u64,
    /// What it sends when it wakes, at the beginning.
    each: u64,
}

impl Node {
    /// xorshift64*, Vigna 2016.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn emit(&mut self, job: Job, cx: &mut Ctx<'_, Job>) {
        if cx.now() >= self.until {
            return;
        }
        let random = self.next_random();
        let port = if (random & 1023) < self.remote { 1 + (((random >> 32) * self.ports) >> 32) } else { 0 };
        let delay = ((random >> 10 & 0xf_ffff) * SPREAD) >> 20;
        cx.send(Port(port as u16), job, delay);
    }
}

/// A chain of dependent multiplications.
#[inline]
pub(crate) fn spin(mut x: u64, work: u32) -> u64 {
    for _ in 0..work {
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x55;
    }
    x
}

impl Component<Job> for Node {
    fn handle(&mut self, job: Job, cx: &mut Ctx<'_, Job>) {
        self.sum = spin(self.sum ^ job.0, self.work);
        self.emit(Job(job.0 + 1), cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Job>) {
        for i in 0..self.each {
            self.emit(Job(i), cx);
        }
    }

    fn digest(&self) -> u64 {
        self.sum
    }
}

impl Phold {
    /// Components and links, ready to run.
    pub(crate) fn topology(&self) -> Topology<Job> {
        let n = self.components;
        let ports = if n <= 64 { n - 1 } else { 15 };
        let mut topology = Topology::new();
        let ids: Vec<_> = (0..n)
            .map(|i| {
                let heavy = i * 8 < self.heavy * n;
                let node = Node {
                    random: (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                    ports,
                    remote: if ports == 0 { 0 } else { self.remote },
                    work: if heavy { self.work * 8 } else { self.work },
                    until: self.until,
                    sum: i,
                    each: self.each,
                };
                topology.add(format!("lp{i}"), Box::new(node))
            })
            .collect();
        let link = Link { latency: LATENCY, phase: 0 };
        for i in 0..n {
            topology.connect(ids[i as usize], Port(0), ids[i as usize], link);
            for port in 1..=ports {
                let stride = 1 + (port - 1) * (n - 1) / ports;
                topology.connect(ids[i as usize], Port(port as u16), ids[((i + stride) % n) as usize], link);
            }
            topology.wake_at(ids[i as usize], 0);
        }
        topology
    }

    /// The simulation of it.
    pub(crate) fn simulation(&self) -> Simulation<Job> {
        Simulation::new(self.topology()).expect("a sound topology")
    }

    /// Events of a run, about: a job is sent on once in 100 + 400 ticks.
    pub(crate) fn expected_events(&self) -> u64 {
        self.components * self.each * self.until / (LATENCY + SPREAD / 2)
    }
}

/// What the example runs: half of the events are for another component.
pub(crate) const MODEL: Phold = Phold { components: 32, each: 8, remote: 512, work: 0, heavy: 0, until: 100_000 };

pub(crate) fn main() {
    let run = |threads: usize| {
        let mut simulation = MODEL.simulation();
        // All of the threads work, even where the host has fewer cores or one alone would be faster.
        let options = RunOptions { threads, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
        let end = simulation.run(&options);
        assert!(matches!(end, RunEnd::Finished { at } if at >= MODEL.until), "{end:?}");
        (simulation.stats().events(), simulation.digest())
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three, "the same events and the same states at 1 and at 3 threads");
    let (events, expected) = (one.0, MODEL.expected_events());
    assert!(events.abs_diff(expected) < expected / 50, "{events} events, where {expected} are expected");
    println!("{events} events, where {expected} are expected");
    println!("digest {:016x} at 1 thread, {:016x} at 3", one.1, three.1);
}
