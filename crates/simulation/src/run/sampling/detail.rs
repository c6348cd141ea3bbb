//! The machine of a sampled run: it does what it is fed, halts where that ends, and goes on from there with
//! its caches, queues and open rows as they are.
//!
//! ```text
//!   fed:      launch 0 (part)  bytes of memory  pause | launch 3  pause | ...
//!   machine:  ───────────────────────────────── halt   ──────── halt
//! ```
//! Its host program repeats what the real one did, so that no value that the machine reads decides what comes
//! next. Not modelled: caches as launches that are skipped would leave them; lines keep their places, and
//! take over what memory holds then.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::conduct::Conduct;
use super::super::end::{Clocks, end_of};
use super::super::program::Experiment;
use super::super::simulated::Simulated;
use crate::assemble::{Persistency, assemble_with};
use crate::outcome::End;
use durawarp_engine::{RunEnd, Time};
use durawarp_kernel::host::{HostAction, HostProgram, SampleStep};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::command_processor::LaunchRecord;
use durawarp_machine::ports::Endpoint;

/// What is taken from a launch of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CountedPart {
    /// Nothing: it warms up.
    Nothing,
    /// All of it, with what the host does until the next launch.
    Whole,
    /// From its start until `head` CTAs have ended; samples, each from the end of one number of CTAs to that
    /// of another; and from the end of `tail` CTAs on, with what the host does until the next launch.
    Cut { head: u64, samples: Vec<Range<u64>>, tail: u64 },
}

/// Ticks that a launch of the machine took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Took {
    /// The launch, by the caller's number.
    pub(super) launch: usize,
    pub(super) counted: CountedPart,
    /// As it is counted, without samples.
    pub(super) ticks: Time,
    /// The same without what the host did after it.
    pub(super) own_ticks: Time,
    /// Of each sample.
    pub(super) samples: Vec<Time>,
}

/// A launch that the machine was fed.
#[derive(Debug)]
struct Fed {
    launch: usize,
    counted: CountedPart,
    /// When what the host did after it was done, where launches that follow are skipped.
    until: Option<Time>,
}

/// The machine.
pub(super) struct Detail {
    feed: Arc<Mutex<VecDeque<HostAction>>>,
    pub(super) ran: Simulated,
    launches: Vec<Fed>,
}

impl Detail {
    /// An idle machine whose memory holds `memory`.
    pub(super) fn new(experiment: &Experiment, memory: FlatMemory, clocks: Clocks) -> Self {
        let (scheme, devices) = (experiment.scheme.built.clone(), experiment.machine.devices.clone());
        let persistency = Persistency { scheme, devices, halts_at_end: true, ..Persistency::default() };
        let feed = Arc::default();
        let clusters = experiment.workload.host().has_clusters();
        let host = Box::new(Replayed { feed: Arc::clone(&feed), clusters });
        let local_bytes = experiment.workload.local_bytes() as u32;
        let machine = assemble_with(&experiment.machine.spec, memory, local_bytes, host, &persistency);
        Detail { feed, ran: Simulated::idle(machine, clocks), launches: Vec::new() }
    }

    /// The host does something other than launching.
    pub(super) fn push(&mut self, action: HostAction) {
        lock(&self.feed).push_back(action);
    }

    /// The host launches.
    pub(super) fn launch(&mut self, launch: Arc<Launch>, number: usize, counted: CountedPart) {
        self.launches.push(Fed { launch: number, counted, until: None });
        self.push(HostAction::Launch(launch));
    }

    /// The host launches, and these CTAs of the launch run.
    pub(super) fn launch_part(
        &mut self,
        launch: Arc<Launch>,
        number: usize,
        counted: CountedPart,
        ctas: Vec<Range<u64>>,
    ) {
        self.launches.push(Fed { launch: number, counted, until: None });
        self.push(HostAction::Sample(SampleStep::Part(launch, ctas)));
    }

    /// Memory is as the functional driver has it from here on.
    pub(super) fn replace(&mut self, memory: FlatMemory) {
        self.push(HostAction::Sample(SampleStep::Replace(memory)));
    }

    /// Simulates all that it was fed, of which there is more to come.
    #[must_use]
    pub(super) fn go_on(&mut self, conduct: &Conduct<'_>) -> bool {
        self.push(HostAction::Sample(SampleStep::Pause));
        self.simulate(conduct)
    }

    /// As [`Self::go_on`]; the launches that follow are skipped.
    #[must_use]
    pub(super) fn close(&mut self, conduct: &Conduct<'_>) -> bool {
        let whole = self.go_on(conduct);
        let ended = self.ended();
        if let Some(last) = self.launches.last_mut() {
            last.until.get_or_insert(ended);
        }
        whole
    }

    /// Simulates all that it was fed: that was the whole program.
    #[must_use]
    pub(super) fn finish(&mut self, conduct: &Conduct<'_>) -> bool {
        self.simulate(conduct)
    }

    /// Whether it came to where it was to come.
    fn simulate(&mut self, conduct: &Conduct<'_>) -> bool {
        let machine = &mut self.ran.machine;
        if let Some(id) = machine.id(Endpoint::CommandProcessor) {
            machine.simulation.wake_at(id, machine.simulation.reached());
        }
        self.ran.go_on(conduct);
        matches!(self.ran.end, RunEnd::Finished { .. } | RunEnd::Halted { .. })
    }

    /// How far it came, where that was not the end of what it was fed.
    pub(super) fn end(&self) -> End {
        end_of(&self.ran.end, &self.ran.machine, self.ran.clocks)
    }

    /// When the last action was done, in ticks.
    pub(super) fn ended(&self) -> Time {
        self.ran.machine.ended().unwrap_or_else(|| self.ran.time())
    }

    /// Lines that accesses brought into the L2: each that was not there.
    pub(super) fn lines_brought_in(&self) -> u64 {
        let missed = self.ran.machine.slices().map(|slice| {
            let counted = slice.counters();
            (counted.reads - counted.read_hits) + (counted.writes - counted.write_hits)
        });
        missed.sum()
    }

    fn records(&self) -> &[LaunchRecord] {
        self.ran.machine.command_processor().launches()
    }

    /// When the first launch began, in ticks; the end of a program without launches.
    pub(super) fn first_start(&self) -> Time {
        self.records().first().map_or_else(|| self.ended(), |record| record.start)
    }

    /// What the launches took, in their order.
    pub(super) fn took(&self) -> impl Iterator<Item = Took> {
        let records = self.records();
        self.launches.iter().zip(records).enumerate().map(|(nth, (fed, record))| {
            let next = records.get(nth + 1).map_or_else(|| self.ended(), |next| next.start);
            took(record, fed, fed.until.unwrap_or(next))
        })
    }
}

/// Ticks that count of a launch, after which the host was done at `next`.
fn took(record: &LaunchRecord, fed: &Fed, next: Time) -> Took {
    let ended = |ctas: u64| match ctas.checked_sub(1) {
        Some(last) => record.cta_ends.get(last as usize).copied().unwrap_or(record.end),
        None => record.start,
    };
    let between = |from: Time, to: Time| to.saturating_sub(from);
    let (ticks, own_ticks, samples) = match &fed.counted {
        CountedPart::Nothing => (0, 0, Vec::new()),
        CountedPart::Whole => (between(record.start, next), between(record.start, record.end), Vec::new()),
        CountedPart::Cut { head, samples, tail } => {
            let (head, tail) = (between(record.start, ended(*head)), ended(*tail));
            let samples = samples.iter().map(|window| between(ended(window.start), ended(window.end))).collect();
            (head + between(tail, next), head + between(tail, record.end), samples)
        }
    };
    Took { launch: fed.launch, counted: fed.counted.clone(), ticks, own_ticks, samples }
}

fn lock(feed: &Mutex<VecDeque<HostAction>>) -> std::sync::MutexGuard<'_, VecDeque<HostAction>> {
    feed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A host program that does what it is fed.
#[derive(Debug)]
struct Replayed {
    feed: Arc<Mutex<VecDeque<HostAction>>>,
    clusters: bool,
}

impl HostProgram for Replayed {
    fn has_clusters(&self) -> bool {
        self.clusters
    }

    fn next(&mut self, _: Option<u64>) -> Result<HostAction, String> {
        Ok(lock(&self.feed).pop_front().unwrap_or(HostAction::Done))
    }
}
