//! Runs a simulation leg by leg: alone or with a crew of threads, whichever is faster, moving components as
//! costs show.
//!
//! ```text
//!   home ──split──> partitions ──leg of the crew──> partitions ──merge──> home ──solo leg──> home ...
//!                       ^                               |
//!                       └── split anew, when unbalanced ┘
//! ```
//! Between two legs the caller's thread holds every partition, and all messages are in their queues; then it
//! observes, ends the run, changes the placement, or changes between one worker and many. As rounds do not
//! depend on partitions, none of this shows in results.
//!
//! The wall clock is read in this folder and nowhere else in the engine: for these choices, for costs of
//! components, for time spent blocked, and for the observer. Results cannot depend on it.
//!
//! A partition is what one worker runs: there are as many as workers, never more, since the placement cannot
//! be seen.

mod barrier;
pub(crate) mod crew;
pub(super) mod dice;
pub(crate) mod exchange;
pub(crate) mod lines;
pub(crate) mod pace;
pub(crate) mod rounds;
mod tracer;

use std::any::Any;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

pub use self::barrier::Barrier;

use self::crew::{Crew, Dismissal};
use self::dice::Dice;
use self::exchange::Alone;
use self::pace::{Chooser, Mode};
use self::rounds::{Budget, LEG_OVER, Lead, Least, LegEnd, RESTLESS, STOP, Start};
use super::component::Progress;
use super::context::Verdict;
use super::digest::EpochDigests;
use super::event::NEVER;
use super::horizon::Clip;
use super::message::Message;
use super::options::{Inspection, Lookout, Rebalance, RunEnd, RunOptions, Snapshot};
use super::partition::{Crash, Partition, rearrange};
use super::placement::Placement;
use super::queue::Queue;
use super::simulation::Simulation;
use super::tiers::{MAX_TIERS, least};
use super::time::Time;
use super::trace::RoundTrace;

impl<M: Message> Simulation<M> {
    /// Runs until nothing is pending, or a limit, a component or the stop flag ends it. May be called again.
    ///
    /// Handles the same events in the same order at any `threads`, placement and fallback; a run that was cut
    /// by a limit or a stop, and went on, handles the same events as one that was not.
    ///
    /// # Panics
    /// When the observer does. A component's panic ends the run as [`RunEnd::Panicked`] instead.
    pub fn run(&mut self, options: &RunOptions<'_>) -> RunEnd {
        if let Some((component, message)) = &self.poisoned {
            let name = self.name(*component).to_owned();
            return RunEnd::Panicked { component: *component, name, message: message.clone() };
        }
        if let Some(ticks) = options.epoch_ticks {
            assert!(ticks > 0, "an epoch is at least one tick");
            if self.epochs.as_ref().is_none_or(|epochs| epochs.epoch_ticks() != ticks) {
                self.epochs = Some(EpochDigests::new(ticks));
                self.open_epoch = None;
            }
        }
        let end = run(self, options);
        if let RunEnd::Panicked { component, message, .. } = &end {
            self.poisoned = Some((*component, message.clone()));
        }
        self.stats.messages = self.home.cells.iter().map(|cell| cell.messages).sum();
        self.stats.wakes = self.home.cells.iter().map(|cell| cell.wakes).sum();
        end
    }
}

/// The first part of a run that is to choose its threads: traced, on one.
const TRIAL: Duration = Duration::from_millis(150);

/// Runs to one of the ends; everything is back home afterwards.
fn run<M: Message>(simulation: &mut Simulation<M>, options: &RunOptions<'_>) -> RunEnd {
    // The host is asked by reading files, as long as a small model takes to run: not for one thread.
    let cores = if options.threads == 1 { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let wanted = if options.threads == 0 { cores } else { options.threads };
    let allowed = if options.oversubscribe { wanted } else { wanted.min(cores) };
    let mut workers = if options.trace { 1 } else { allowed.min(simulation.blocks.len()).max(1) };
    let began = Instant::now();
    let mut lookout = options.lookout;
    if options.auto && workers > 1 {
        let trial = RunOptions { trace: true, ..options.clone() };
        let run = Run::new(simulation, &trial, 1, began);
        lookout = match run.legs(Some(TRIAL), |_, _, _| unreachable!("one worker has no crew")) {
            Ok(end) => return end,
            Err(Unended(lookout)) => lookout,
        };
        workers = advised(simulation, workers);
        simulation.trace = None;
    }
    let stats = &mut simulation.stats;
    stats.blocked.resize(stats.blocked.len().max(workers), Default::default());
    stats.workers = stats.workers.max(workers);
    let run = Run { lookout, ..Run::new(simulation, options, workers, began) };
    if workers == 1 {
        let end = run.legs(None, |_, _, _| unreachable!("one worker has no crew"));
        return end.unwrap_or_else(|_| unreachable!("a run without a deadline has an end"));
    }
    let crew = Crew::new(workers, cores);
    let end = thread::scope(|scope| {
        // Made before any thread is: the scope waits for its threads, also when this one unwinds, and the
        // drop of the dismissal is what ends them.
        let _dismissal = Dismissal(&crew);
        // Threads start with the first leg of the crew, so a run that stays solo never starts any.
        let mut hired = false;
        run.legs(None, |partitions, lead, start| {
            if !mem::replace(&mut hired, true) {
                for worker in 1..workers {
                    let crew = &crew;
                    scope.spawn(move || crew.work(worker));
                }
            }
            crew.leg(partitions, lead, start)
        })
    });
    for (total, more) in simulation.stats.blocked.iter_mut().zip(crew.blocked()) {
        *total += more;
    }
    end.unwrap_or_else(|_| unreachable!("a run without a deadline has an end"))
}

/// A run that has gone on for as long as it was to, without an end; its next look.
struct Unended(Option<Lookout>);

/// The least number of threads, up to `most`, that is predicted to be about as good as any, from what was
/// traced.
fn advised<M: Message>(simulation: &Simulation<M>, most: usize) -> usize {
    let powers = std::iter::successors(Some(2), |threads| Some(threads * 2)).take_while(|&threads| threads < most);
    let counts: Vec<usize> = powers.chain([most]).collect();
    let barrier = Barrier::of_host();
    simulation.scaling(&counts, |threads| barrier.ns(threads)).map_or(most, |scaling| scaling.advised())
}

/// The earlier of two times of which neither has to be.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// One call of [`run`].
struct Run<'a, 'o, M> {
    simulation: &'a mut Simulation<M>,
    options: &'a RunOptions<'o>,
    workers: usize,
    clip: Clip,
    chooser: Chooser,
    /// In place of the chooser and of measured costs.
    dice: Option<Dice>,
    /// The next look, where there are any.
    lookout: Option<Lookout>,
    /// Where everything is: one partition, or one a worker.
    partitions: Vec<Partition<M>>,
    /// The partition of each component when the crew works.
    placed: Vec<u32>,
    shuffles: u64,
    trace: Option<RoundTrace>,
    began: Instant,
    observed: Instant,
    inspected: Instant,
}

impl<'a, 'o, M: Message> Run<'a, 'o, M> {
    fn new(simulation: &'a mut Simulation<M>, options: &'a RunOptions<'o>, workers: usize, began: Instant) -> Self {
        let kept = simulation.trace.take().unwrap_or_default();
        Run {
            trace: options.trace.then_some(kept),
            placed: simulation.blocks.place(&options.placement, workers),
            partitions: vec![simulation.leave_home()],
            clip: Clip { time_limit: options.time_limit, epoch_ticks: options.epoch_ticks },
            chooser: Chooser::new(options.fallback, workers),
            dice: options.rebalance.dice().map(Dice::new),
            lookout: options.lookout,
            simulation,
            options,
            workers,
            shuffles: 0,
            began,
            observed: began,
            inspected: began,
        }
    }

    /// Runs legs to the end of the run, or until it has gone on for `most`: then there is no end.
    /// `crew_leg` runs one of them with all workers.
    fn legs(
        mut self,
        most: Option<Duration>,
        mut crew_leg: impl FnMut(&mut Vec<Partition<M>>, &mut Lead<'_>, Start) -> Vec<LegEnd>,
    ) -> Result<RunEnd, Unended> {
        loop {
            let (mode, mut budget) = match &mut self.dice {
                Some(dice) => {
                    let (solo, rounds) = dice.leg(self.workers);
                    let (warm_up, measured) = (Duration::ZERO, Duration::MAX);
                    let mode = if solo { Mode::Solo } else { Mode::Crew };
                    (mode, Budget { warm_up, measured, least: Least::default(), rounds })
                }
                None => self.chooser.next(),
            };
            if let Rebalance::Forced { rounds } = self.options.rebalance {
                budget.rounds = budget.rounds.min(rounds.max(1));
            }
            if self.options.observer.is_some() {
                budget.measured = budget.measured.min(self.options.observe_every);
            }
            if self.options.inspector.is_some() {
                budget.measured = budget.measured.min(self.options.inspect_every);
            }
            // Between two legs all messages are in queues, so this is the place where components may move.
            self.arrange(mode);
            let mut lead = Lead::new(self.options.stop, budget);
            lead.trace = self.trace.take();
            let start = Start {
                tiers: self.simulation.tiers,
                clip: self.clip,
                pause_at: earlier(self.options.pause_at, self.lookout.map(|lookout| lookout.next)),
                next: self
                    .partitions
                    .iter()
                    .map(Partition::earliest)
                    .fold([NEVER; MAX_TIERS], |least, of| std::array::from_fn(|tier| least[tier].min(of[tier]))),
                flags: if self.partitions.iter().any(|partition| partition.is_restless()) { RESTLESS } else { 0 },
                open_epoch: self.simulation.open_epoch,
                rounds: self.simulation.stats.totals.rounds,
                sample: self.workers > 1 && self.options.rebalance == Rebalance::Measured,
                dice: self.dice.as_mut().map(Dice::throw),
            };
            let left = match mode {
                Mode::Crew => crew_leg(&mut self.partitions, &mut lead, start),
                Mode::Solo => {
                    let left = rounds::run(&mut self.partitions[0], &mut Alone, &mut lead, start);
                    self.simulation.stats.solo_rounds += lead.totals.rounds;
                    vec![left.unwrap_or_else(|gone| unreachable!("{gone:?} by nobody"))]
                }
            };
            self.trace = lead.trace.take();
            self.simulation.stats.totals.merge(&lead.totals);
            // The epochs that the leg completed come first: `end` closes the one that is still open. Every
            // worker leaves with the same `next` and flags, so those of the first stand for all.
            self.keep_epochs(&left);
            let next = least(&left[0].next);
            if let Some(end) = self.end(next, left[0].flags).or_else(|| self.look(next)) {
                // After a panic the state of its component means nothing.
                if !matches!(end, RunEnd::Panicked { .. }) {
                    self.inspect(next, mode, true);
                }
                self.go_home();
                return Ok(end);
            }
            if most.is_some_and(|most| self.began.elapsed() >= most) {
                let lookout = self.lookout;
                self.go_home();
                return Err(Unended(lookout));
            }
            // A leg that a look has cut short says nothing.
            if left[0].flags & LEG_OVER != 0 {
                self.chooser.learn(lead.pace);
            }
            self.observe(next, mode);
            self.inspect(next, mode, false);
        }
    }

    /// Brings the partitions into the form that the mode needs.
    fn arrange(&mut self, mode: Mode) {
        if mode == Mode::Solo {
            if self.partitions.len() > 1 {
                self.form(1, &vec![0; self.placed.len()]);
            }
            return;
        }
        let moved = match (&mut self.dice, self.options.rebalance) {
            (Some(dice), _) => {
                let shuffle = dice.once_in(2).then(|| dice.throw());
                shuffle.is_some_and(|seed| self.shuffle(seed))
            }
            (None, Rebalance::Never | Rebalance::Dice { .. }) => false,
            (None, Rebalance::Forced { .. }) => {
                self.shuffles += 1;
                self.shuffle(self.shuffles)
            }
            (None, Rebalance::Measured) => self.balance(),
        };
        if moved || self.partitions.len() != self.workers {
            let placed = mem::take(&mut self.placed);
            self.form(self.workers, &placed);
            self.placed = placed;
        }
    }

    /// Places components at random.
    fn shuffle(&mut self, seed: u64) -> bool {
        self.placed = self.simulation.blocks.place(&Placement::Shuffled(seed), self.workers);
        self.simulation.stats.rebalances += 1;
        true
    }

    /// Finds a better placement from what components cost lately; whether there is one.
    fn balance(&mut self) -> bool {
        let cells = || self.partitions.iter().flat_map(|partition| &partition.cells);
        let sampled: Vec<f32> = cells().map(|cell| cell.cost.ns_per_event()).filter(|&ns| ns > 0.0).collect();
        if sampled.is_empty() {
            return false;
        }
        let usual = f64::from(sampled.iter().sum::<f32>()) / sampled.len() as f64;
        let mut loads = vec![0.0; self.placed.len()];
        for cell in cells() {
            let ns = if cell.cost.ns_per_event() > 0.0 { f64::from(cell.cost.ns_per_event()) } else { usual };
            loads[cell.id.0 as usize] = (cell.events() - cell.cost.events_before) as f64 * ns;
        }
        for cell in self.partitions.iter_mut().flat_map(|partition| &mut partition.cells) {
            cell.cost.events_before = cell.events();
        }
        let Some(better) = self.simulation.blocks.better(&loads, &self.placed, self.workers) else { return false };
        let moved = better.iter().zip(&self.placed).filter(|(new, old)| new != old).count();
        self.simulation.stats.rebalances += 1;
        self.simulation.stats.migrations += moved as u64;
        self.placed = better;
        true
    }

    fn form(&mut self, partitions: usize, placed: &[u32]) {
        let old = mem::take(&mut self.partitions);
        let simulation = &mut *self.simulation;
        let (tiers, longest) = (simulation.tiers, simulation.longest_latency);
        let fresh = || Queue::of_tiers(&tiers, longest);
        self.partitions = rearrange(old, placed, partitions, &mut simulation.spare_queues, fresh);
    }

    fn go_home(&mut self) {
        if self.partitions.len() > 1 {
            self.form(1, &vec![0; self.placed.len()]);
        }
        self.simulation.trace = self.trace.take();
        self.simulation.stats.fallbacks += self.chooser.fallbacks;
        if let Some(home) = self.partitions.pop() {
            self.simulation.stats.messages_across += home.sent_away;
            self.simulation.come_home(home);
        }
    }

    /// Keeps the digests of the epochs that the leg completed.
    fn keep_epochs(&mut self, left: &[LegEnd]) {
        self.simulation.open_epoch = left[0].open_epoch;
        let components = self.placed.len();
        for (row, &epoch) in left[0].epochs.iter().enumerate() {
            let mut digests = vec![0; components];
            for (partition, left) in self.partitions.iter().zip(left) {
                let size = partition.cells.len();
                for (cell, digest) in partition.cells.iter().zip(&left.rows[row * size..]) {
                    digests[cell.id.0 as usize] = *digest;
                }
            }
            self.simulation.keep_epoch(epoch, digests);
        }
    }

    /// Why the run is over, if it is. In order: what must not be overlooked first.
    fn end(&mut self, next: u64, flags: u64) -> Option<RunEnd> {
        let simulation = &mut *self.simulation;
        let mut crash: Option<Crash> = None;
        let mut verdict = Verdict::default();
        // Partitions report what their own components did. The least (time, component) or the least id is
        // taken, so the result does not depend on the placement.
        for partition in &mut self.partitions {
            verdict.merge(mem::take(&mut partition.sink.verdict));
            if let Some(other) = partition.crash.take()
                && crash.as_ref().is_none_or(|crash| other.id < crash.id)
            {
                crash = Some(other);
            }
        }
        // A panic comes first: after it the state of its component means nothing, whatever else was reported.
        if let Some(Crash { id, message }) = crash {
            return Some(RunEnd::Panicked { component: id, name: simulation.name(id).to_owned(), message });
        }
        if let Some((at, id, error)) = verdict.failure {
            return Some(RunEnd::Failed { at, component: id, name: simulation.name(id).to_owned(), error });
        }
        if let Some((at, id)) = verdict.halt {
            return Some(RunEnd::Halted { at, component: id, name: simulation.name(id).to_owned() });
        }
        if next == NEVER {
            // No event of a later epoch will come to close the last one.
            if let Some(epoch) = simulation.open_epoch.take() {
                let mut digests = vec![0; self.placed.len()];
                for cell in self.partitions.iter().flat_map(|partition| &partition.cells) {
                    digests[cell.id.0 as usize] = cell.digest;
                }
                simulation.keep_epoch(epoch, digests);
            }
            let at = self.partitions.iter().map(|partition| partition.last_event).max().unwrap_or(0);
            let waits = simulation.waits_of(self.partitions.iter().flat_map(|partition| &partition.cells));
            return Some(if waits.is_empty() { RunEnd::Finished { at } } else { RunEnd::Deadlock { at, waits } });
        }
        if self.clip.is_over(next) {
            return Some(RunEnd::TimeLimit { at: self.clip.time_limit.unwrap_or(next) });
        }
        if flags & STOP != 0 {
            return Some(RunEnd::Stopped { at: next });
        }
        self.options.pause_at.is_some_and(|pause| next >= pause).then_some(RunEnd::Paused { at: next })
    }

    /// Looks at all components, when the time for it has come: is anything still going on?
    fn look(&mut self, next: u64) -> Option<RunEnd> {
        let lookout = self.lookout.filter(|lookout| next >= lookout.next)?;
        let cells = self.partitions.iter().flat_map(|partition| &partition.cells);
        let found = cells.map(|cell| (lookout.activity)(&*cell.component as &dyn Any, cell.messages));
        // A sum, so that it does not depend on where components are.
        let found = found.fold(0, u64::wrapping_add);
        let mut after = lookout.after(found);
        while after.next <= next {
            after = after.after(found);
        }
        self.lookout = Some(after);
        (lookout.found == Some(found)).then_some(RunEnd::Quiet { at: next, lookout: after })
    }

    fn observe(&mut self, next: u64, mode: Mode) {
        let Some(observer) = self.options.observer else { return };
        let now = Instant::now();
        if now - self.observed < self.options.observe_every {
            return;
        }
        self.observed = now;
        observer(&self.snapshot(next, mode));
    }

    /// Has the inspector look at all components, when its time has come or the run is over.
    fn inspect(&mut self, next: u64, mode: Mode, over: bool) {
        let Some(inspector) = self.options.inspector else { return };
        let now = Instant::now();
        if !over && now - self.inspected < self.options.inspect_every {
            return;
        }
        self.inspected = now;
        let mut cells: Vec<_> = self.partitions.iter().flat_map(|partition| &partition.cells).collect();
        cells.sort_unstable_by_key(|cell| cell.id);
        let waits = self.simulation.waits_of(cells.iter().copied());
        let components = cells.iter().map(|cell| (self.simulation.name(cell.id), &*cell.component as &dyn Any));
        // At the end nothing is pending, or all of it is beyond the limit.
        let last = || self.partitions.iter().map(|partition| partition.last_event).max().unwrap_or(0);
        let reached = if next == NEVER { last() } else { next.min(self.options.time_limit.unwrap_or(next)) };
        inspector(&Inspection {
            snapshot: self.snapshot(reached, mode),
            components: components.collect(),
            waits,
            over,
        });
    }

    fn snapshot(&self, time: u64, mode: Mode) -> Snapshot {
        let mut progress = Progress::default();
        for cell in self.partitions.iter().flat_map(|partition| &partition.cells) {
            let part = cell.component.progress();
            progress.work += part.work;
            progress.steps_done += part.steps_done;
            progress.steps_total += part.steps_total;
        }
        let totals = &self.simulation.stats.totals;
        Snapshot {
            time,
            events: totals.events,
            rounds: totals.rounds,
            progress,
            elapsed: self.began.elapsed(),
            workers: if mode == Mode::Crew { self.workers } else { 1 },
        }
    }
}
