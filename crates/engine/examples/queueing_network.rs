//! A closed queueing network beside its theory: jobs that circulate among a processor and disks.
//! Run: `cargo run -p durawarp-engine --example queueing_network`.
//!
//! ```text
//!              ┌─Port(0)──> disk 0 ─┐
//!   processor ─┼─Port(1)──> disk 1 ─┼─Port(0)──> processor        every link takes 2,000 ticks
//!    (queue)   └─Port(2)──> disk 2 ─┘
//!                           (queues)
//! ```
//! The central-server model: a fixed number of jobs, first come first served, exponential service times. A
//! job that leaves the processor goes to a disk by fixed probabilities. Links are stations at which nobody
//! waits.
//!
//! Such a network has a product form, so that theory gives its means: [`theory`] is exact mean-value analysis
//! (Reiser and Lavenberg, 1980), with links as delay stations. Prints jobs at each station (waiting or in
//! service) and its utilisation, simulated and by theory, and asserts that they differ by at most [`BOUND`].
//!
//! Service times are whole ticks, drawn by comparisons of integers only ([`Random::exponential`]), so that a
//! run is the same on every host. Not modelled: the rounding to a tick, 1/1000 of a service.

use std::any::Any;

use durawarp_engine::{
    Component, ComponentId, Ctx, Fallback, Link, Message, Port, RunEnd, RunOptions, Simulation, Topology,
};

/// Jobs in the network.
pub(crate) const JOBS: u64 = 8;
/// Mean service times in ticks: of the processor, then of disks.
pub(crate) const SERVICE: [u64; 4] = [1_000, 2_500, 3_000, 1_500];
/// The disk that a job goes to: of 1024 jobs.
pub(crate) const SHARES: [u64; 3] = [410, 307, 307];
/// Of each link, in ticks. The lookahead: all stations run so far side by side.
pub(crate) const LATENCY: u64 = 2_000;
/// Jobs at a station and its utilisation differ from theory by at most this part.
pub(crate) const BOUND: f64 = 0.02;

/// A generator of random numbers, the state of a station.
struct Random(u64);

impl Random {
    /// The upper half of xorshift64*, Vigna 2016.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    /// A whole number below this.
    fn below(&mut self, bound: u64) -> u64 {
        (self.next() * bound) >> 32
    }

    /// An exponential variate with this mean.
    ///
    /// Von Neumann's method (1951): a first number `x` begins a run of falling numbers, whose length is odd with
    /// probability `exp(-x)`. Then `x` is the fraction; each run of even length before it adds 1.
    fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0;
        loop {
            let first = self.next();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.next();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                return whole * mean + ((first * mean) >> 32);
            }
            whole += 1;
        }
    }
}

/// A job on its way. Jobs are alike.
#[derive(Debug)]
pub(crate) struct Job;

impl Message for Job {}

/// A server with its queue.
pub(crate) struct Station {
    random: Random,
    /// Mean service time, in ticks.
    service: u64,
    /// Where a job goes next, by port: of 1024 jobs.
    shares: &'static [u64],
    /// Waiting or in service.
    jobs: u64,
    /// The time of the last change, in ticks.
    since: u64,
    /// Jobs times ticks, up to then.
    job_ticks: u64,
    /// Ticks with a job in service, up to then.
    busy_ticks: u64,
}

impl Station {
    fn new(seed: u64, service: u64, shares: &'static [u64], jobs: u64) -> Station {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Station { random, service, shares, jobs, since: 0, job_ticks: 0, busy_ticks: 0 }
    }

    /// Accounts for the time since the last change, before the next.
    fn account(&mut self, now: u64) {
        let ticks = now - std::mem::replace(&mut self.since, now);
        self.job_ticks += self.jobs * ticks;
        self.busy_ticks += u64::from(self.jobs > 0) * ticks;
    }

    fn serve(&mut self, cx: &mut Ctx<'_, Job>) {
        cx.wake_at(cx.now() + self.random.exponential(self.service));
    }
}

impl Component<Job> for Station {
    /// A job comes.
    fn handle(&mut self, _: Job, cx: &mut Ctx<'_, Job>) {
        self.account(cx.now());
        self.jobs += 1;
        if self.jobs == 1 {
            self.serve(cx);
        }
    }

    /// A service ends; at tick 0, where all jobs are at the processor, the first begins.
    fn wake(&mut self, cx: &mut Ctx<'_, Job>) {
        self.account(cx.now());
        if cx.now() > 0 {
            let mut drawn = self.random.below(1024);
            let port = self.shares.iter().take_while(|share| {
                let beyond = drawn >= **share;
                drawn = drawn.saturating_sub(**share);
                beyond
            });
            cx.send(Port(port.count() as u16), Job, 0);
            self.jobs -= 1;
        }
        if self.jobs > 0 {
            self.serve(cx);
        }
    }

    fn digest(&self) -> u64 {
        self.job_ticks ^ self.random.0
    }
}

/// The network, with all jobs at the processor.
pub(crate) fn topology() -> Topology<Job> {
    let mut topology = Topology::new();
    let link = Link { latency: LATENCY, phase: 0 };
    let processor = topology.add("processor", Box::new(Station::new(1, SERVICE[0], &SHARES, JOBS)));
    for (disk, service) in SERVICE[1..].iter().enumerate() {
        let station = Station::new(disk as u64 + 2, *service, &[1024], 0);
        let id = topology.add(format!("disk {disk}"), Box::new(station));
        topology.connect(processor, Port(disk as u16), id, link);
        topology.connect(id, Port(0), processor, link);
    }
    topology.wake_at(processor, 0);
    topology
}

/// Means of a station.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Means {
    /// Waiting or in service.
    pub(crate) jobs: f64,
    /// The part of the time in which it serves.
    pub(crate) utilisation: f64,
}

/// Means of the stations of a closed network by exact mean-value analysis: visits in a cycle and mean service by
/// station, and the delays of a cycle in which nobody waits.
///
/// With `n` jobs, a job that comes to a station finds there as many as there are in the mean with `n - 1`. So it
/// stays for its own service and theirs; the throughput is `n` over the length of a cycle.
pub(crate) fn mean_values<const N: usize>(visits: [f64; N], service: [f64; N], delay: f64, jobs: u64) -> [Means; N] {
    let mut means = [Means { jobs: 0.0, utilisation: 0.0 }; N];
    for jobs in 1..=jobs {
        let stays: [f64; N] = std::array::from_fn(|at| service[at] * (1.0 + means[at].jobs));
        let cycle: f64 = delay + visits.iter().zip(&stays).map(|(visits, stay)| visits * stay).sum::<f64>();
        let throughput = jobs as f64 / cycle;
        means = std::array::from_fn(|at| {
            let rate = throughput * visits[at];
            Means { jobs: rate * stays[at], utilisation: rate * service[at] }
        });
    }
    means
}

/// What theory says of this network: a cycle visits the processor once and one disk, over two links.
pub(crate) fn theory() -> [Means; SERVICE.len()] {
    let visits = std::array::from_fn(|at| if at == 0 { 1.0 } else { SHARES[at - 1] as f64 / 1024.0 });
    mean_values(visits, SERVICE.map(|ticks| ticks as f64), 2.0 * LATENCY as f64, JOBS)
}

/// Runs it to `until`, in ticks.
pub(crate) fn run(until: u64, threads: usize) -> Simulation<Job> {
    let mut simulation = Simulation::new(topology()).expect("links of at least one tick between stations that exist");
    let time_limit = Some(until);
    // All of the threads work, even where the host has fewer cores or one alone would be faster.
    let options =
        RunOptions { threads, time_limit, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
    let end = simulation.run(&options);
    assert!(matches!(end, RunEnd::TimeLimit { at } if at == until), "{end:?}");
    simulation
}

/// Means of every station in a run.
pub(crate) fn simulated(run: &Simulation<Job>) -> [Means; SERVICE.len()] {
    std::array::from_fn(|at| {
        let station: &dyn Any = run.component(ComponentId(at as u32));
        let station: &Station = station.downcast_ref().expect("every component is a station");
        let ticks = station.since as f64;
        Means { jobs: station.job_ticks as f64 / ticks, utilisation: station.busy_ticks as f64 / ticks }
    })
}

/// Ticks of the example's run: some 350,000 jobs pass the processor.
pub(crate) const UNTIL: u64 = 500_000_000;

pub(crate) fn main() {
    let run = run(UNTIL, 1);
    println!("station      jobs  theory   utilisation  theory");
    for (at, (mean, theory)) in simulated(&run).iter().zip(theory()).enumerate() {
        let (name, Means { jobs, utilisation }) = (run.name(ComponentId(at as u32)), *mean);
        println!("{name:<10} {jobs:>6.3} {:>7.3} {utilisation:>13.3} {:>7.3}", theory.jobs, theory.utilisation);
        for (found, expected) in [(jobs, theory.jobs), (utilisation, theory.utilisation)] {
            assert!((found / expected - 1.0).abs() <= BOUND, "{name}: {found}, where theory has {expected}");
        }
    }
    println!("{} events", run.stats().events());
}
