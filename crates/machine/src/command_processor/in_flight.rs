//! The launches of the program that have been read and are not over: those that wait, and those that run.
//!
//! ```text
//!   host program ──read ahead──> waiting ──stream free, events over──> running (each in a place) ──> over
//!                                   └── at most `most` of both together ──┘
//! ```
//! A launch begins when all launches of its stream before it, and all that it waits for by an event, are
//! over. A programmatic one begins already when each CTA of those of its stream has let it, or has ended; it
//! is not over before they are. Launches are looked at in list order, so that what begins follows from the
//! list and from the ends of launches. A launch whose kernel has a persist barrier of all its CTAs runs
//! alone; when its turn has come, none behind it begins.
//!
//! Source: Accel-Sim (`accel-sim.cc`: a window of kernels, busy streams); CUDA C++ Programming Guide,
//! "Programmatic Dependent Launch". Invariants: launches of a stream begin and end in list order; a place
//! belongs to one launch at a time, and the lowest free one is taken. Not modelled: priorities of streams;
//! CUDA's legacy default stream, which waits for all others: stream 0 is as any other.

use std::collections::VecDeque;
use std::sync::Arc;

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_kernel::launch::Launch;
use durawarp_persist::handler::LaunchSet;

use crate::msg::LaunchPlace;
use crate::occupancy::Demand;

use super::cta_dispatch::{CtaSequence, Grid};
use super::kernel_barrier::KernelBarrier;

/// A launch that has not begun.
#[derive(Debug)]
pub(super) struct QueuedLaunch {
    pub(super) launch: Arc<Launch>,
    /// Its number in the program, from 0.
    pub(super) number: u32,
    pub(super) sequence: CtaSequence,
}

value!(record QueuedLaunch { launch, number, sequence });

/// A launch that runs.
#[derive(Debug)]
pub(super) struct RunningLaunch {
    /// Its number in the program, from 0.
    pub(super) number: u32,
    pub(super) place: u8,
    stream: u64,
    traced: bool,
    programmatic: bool,
    pub(super) grid: Grid,
    pub(super) barrier: KernelBarrier,
    /// CTAs that let the launch begin that depends on this one, those that have ended among them.
    pub(super) let_go: u64,
}

value!(record RunningLaunch { number, place, stream, traced, programmatic, grid, barrier, let_go });

impl RunningLaunch {
    /// The launch that depends on this one may begin.
    pub(super) fn lets_go(&self) -> bool {
        self.let_go == self.grid.ctas()
    }
}

/// Launches in list order.
#[derive(Debug)]
pub(super) struct InFlight {
    /// How many may be in flight at once.
    most: usize,
    waiting: VecDeque<QueuedLaunch>,
    running: Vec<RunningLaunch>,
    /// The most that ran at once.
    peak: u32,
}

value!(record InFlight { most, waiting, running, peak });

impl InFlight {
    /// None; from now on up to `most`.
    pub(super) fn new(most: u32) -> Self {
        InFlight { most: most as usize, waiting: VecDeque::new(), running: Vec::new(), peak: 0 }
    }

    /// Another may be read.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() + self.running.len() < self.most
    }

    /// More than one may be in flight.
    pub(super) fn overlaps(&self) -> bool {
        self.most > 1
    }

    /// All that were read are over.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// All that were read are of a trace.
    pub(super) fn is_traced(&self) -> bool {
        let of_waiting = self.waiting.iter().all(|waiting| waiting.launch.traced.is_some());
        of_waiting && self.running.iter().all(|running| running.traced)
    }

    /// Those that run, in list order.
    pub(super) fn running(&self) -> &[RunningLaunch] {
        &self.running
    }

    /// The same, to change.
    pub(super) fn running_mut(&mut self) -> &mut [RunningLaunch] {
        &mut self.running
    }

    /// Those that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The most that ran at once.
    pub(super) fn peak(&self) -> u32 {
        self.peak
    }

    /// A launch has been read.
    pub(super) fn read(&mut self, waiting: QueuedLaunch) {
        self.waiting.push_back(waiting);
    }

    /// The first launch that may begin: it waits no more.
    pub(super) fn take_ready(&mut self) -> Option<QueuedLaunch> {
        for at in 0..self.waiting.len() {
            let next = &self.waiting[at];
            let before = || self.waiting.range(..at);
            let (stream, after) = (next.launch.stream, &next.launch.after);
            let holds = |running: &RunningLaunch| {
                let in_stream = running.stream == stream && !(next.launch.programmatic && running.lets_go());
                in_stream || after.contains(&running.number)
            };
            let follows = self.running.iter().any(holds)
                || before().any(|waiting| waiting.launch.stream == stream || after.contains(&waiting.number));
            if follows {
                continue;
            }
            let alone = KernelBarrier::of(&next.launch.kernel).is_possible();
            if alone && !self.running.is_empty() || self.running.iter().any(|running| running.barrier.is_possible()) {
                return None;
            }
            return self.waiting.remove(at);
        }
        None
    }

    /// The place of the launch that begins next.
    pub(super) fn free_place(&self) -> u8 {
        let taken = |place: &u8| self.running.iter().any(|running| running.place == *place);
        let Some(place) = (0..=u8::MAX).find(|place| !taken(place)) else { unreachable!("fewer run at once") };
        place
    }

    /// A launch begins, whose first CTA leaves at `first` or after: which it is for SMs.
    pub(super) fn begin(&mut self, waiting: QueuedLaunch, demand: Demand, first: Time) -> LaunchPlace {
        let beside = self.places();
        let place = self.free_place();
        let (number, stream, traced) = (waiting.number, waiting.launch.stream, waiting.launch.traced.is_some());
        let at = self.running.partition_point(|running| running.number < number);
        let barrier = KernelBarrier::of(&waiting.launch.kernel);
        let grid = Grid::new(waiting.sequence, demand, first).in_clusters(waiting.launch.cluster_ctas());
        let grid = grid.in_pairs(waiting.launch.kernel.is_of_pairs());
        let programmatic = waiting.launch.programmatic;
        let running = RunningLaunch { number, place, stream, traced, programmatic, grid, barrier, let_go: 0 };
        self.running.insert(at, running);
        self.peak = self.peak.max(self.running.len() as u32);
        LaunchPlace { place, number, depends: self.depends(place), beside }
    }

    /// The places of those that run.
    pub(super) fn places(&self) -> LaunchSet {
        LaunchSet::of(self.running.iter().map(|running| running.place))
    }

    /// The launch in a place.
    pub(super) fn at(&mut self, place: u8) -> &mut RunningLaunch {
        let found = self.running.iter_mut().find(|running| running.place == place);
        found.unwrap_or_else(|| panic!("an SM speaks of a launch in place {place}, where none runs"))
    }

    /// A launch of the stream of the one in a place, and before it there, still runs.
    pub(super) fn depends(&self, place: u8) -> bool {
        let own = self.running.iter().position(|running| running.place == place);
        own.is_some_and(|own| self.running[..own].iter().any(|before| before.stream == self.running[own].stream))
    }

    /// A launch begins, or has begun, before the one before it in its stream is over.
    pub(super) fn has_dependents(&self) -> bool {
        let waits = self.waiting.iter().any(|waiting| waiting.launch.programmatic);
        waits || self.running.iter().any(|running| running.programmatic)
    }

    /// The launch in a place is over: the place of the next of its stream, if that runs.
    pub(super) fn end(&mut self, place: u8) -> Option<u8> {
        let stream = self.at(place).stream;
        self.running.retain(|running| running.place != place);
        self.running.iter().find(|running| running.stream == stream).map(|running| running.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::ptx::parse;

    const KERNEL: &str = ".version 6.5\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n  BODY ret;\n}";

    /// Launches of these streams, each after those of these numbers.
    fn launches<const N: usize>(most: u32, of: [(u64, &[u32], bool); N]) -> InFlight {
        let mut flight = InFlight::new(most);
        for (number, (stream, after, barrier)) in of.into_iter().enumerate() {
            let text = KERNEL.replace("BODY", if barrier { "pm.barrier.kr;" } else { "" });
            let module = parse("k.ptx", &text).unwrap();
            let launch = Launch::of_trace(module.kernels[0].clone(), [[1; 3]; 2], Arc::default());
            let launch = Arc::new(Launch { stream, after: after.to_vec(), ..launch });
            let sequence = CtaSequence::whole(1);
            flight.read(QueuedLaunch { launch, number: number as u32, sequence });
        }
        flight
    }

    /// Begins all that may: their numbers and places.
    fn begin(flight: &mut InFlight) -> Vec<(u32, u8)> {
        std::iter::from_fn(|| {
            let next = flight.take_ready()?;
            Some((next.number, flight.begin(next, Demand::default(), 0).place))
        })
        .collect()
    }

    #[test]
    fn a_launch_begins_when_its_stream_is_free_and_takes_the_lowest_place() {
        let mut flight = launches(4, [(1, &[], false), (1, &[], false), (2, &[], false)]);
        assert_eq!(begin(&mut flight), [(0, 0), (2, 1)], "the second waits for its stream");
        assert!(flight.has_room() && flight.waiting() == 1);
        flight.end(0);
        assert_eq!(begin(&mut flight), [(1, 0)]);
        let order: Vec<u32> = flight.running().iter().map(|running| running.number).collect();
        assert_eq!((order, flight.peak()), (vec![1, 2], 2), "in list order");
        flight.end(0);
        flight.end(1);
        assert!(flight.is_empty());
    }

    #[test]
    fn an_event_holds_a_launch_of_another_stream_back() {
        let mut flight = launches(4, [(1, &[], false), (1, &[], false), (2, &[1], false)]);
        assert_eq!(begin(&mut flight), [(0, 0)], "what it waits for has not begun");
        flight.end(0);
        assert_eq!(begin(&mut flight), [(1, 0)]);
        flight.end(0);
        assert_eq!(begin(&mut flight), [(2, 0)]);
    }

    #[test]
    fn a_programmatic_launch_begins_with_the_last_cta_that_lets_it_and_ends_in_its_turn() {
        let mut flight = launches(4, [(1, &[], false), (1, &[], false), (1, &[], false)]);
        for waiting in flight.waiting.range_mut(1..) {
            waiting.launch = Arc::new(Launch { programmatic: true, ..(*waiting.launch).clone() });
            waiting.sequence = CtaSequence::whole(2);
        }
        assert_eq!(begin(&mut flight), [(0, 0)], "its only CTA has not let it");
        assert!(flight.has_dependents() && !flight.depends(0));
        flight.at(0).let_go += 1;
        assert_eq!(begin(&mut flight), [(1, 1)]);
        flight.at(1).let_go += 1;
        assert_eq!(begin(&mut flight), [], "one of two");
        flight.at(1).let_go += 1;
        assert_eq!(begin(&mut flight), [(2, 2)]);
        assert!(flight.depends(1) && flight.depends(2));
        assert_eq!(flight.end(0), Some(1), "the next of the stream");
        assert!(!flight.depends(1) && flight.depends(2));
        assert_eq!((flight.end(1), flight.end(2)), (Some(2), None));
    }

    #[test]
    fn a_kernel_with_a_barrier_of_all_its_ctas_runs_alone_and_in_its_turn() {
        let mut flight = launches(4, [(1, &[], false), (2, &[], true), (3, &[], false)]);
        assert_eq!(begin(&mut flight), [(0, 0)], "the third does not pass it");
        flight.end(0);
        assert_eq!(begin(&mut flight), [(1, 0)]);
        flight.end(0);
        assert_eq!(begin(&mut flight), [(2, 0)]);
    }
}
