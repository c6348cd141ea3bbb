//! A stretch of a sampled run that is simulated in detail: actions of the host program from some point on,
//! on a machine of its own that begins with memory as the functional driver has it there.
//!
//! Its host program repeats what the real one did, so that no value that the machine reads decides what
//! comes next. Not modelled: caches, queues and open rows at its beginning, which are empty; what is
//! counted comes after a warm-up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::conduct::Conduct;
use super::super::end::Clocks;
use super::super::program::Experiment;
use super::super::simulated::Simulated;
use crate::assemble::{Persistency, assemble_parts};
use crate::engine::{RunEnd, Time};
use crate::kernel::host::{HostAction, HostProgram};
use crate::kernel::launch::Launch;
use crate::kernel::memory::FlatMemory;
use crate::machine::command_processor::{LaunchPart, LaunchRecord};

/// What is taken from a launch of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedPart {
    /// Nothing: it warms up.
    Nothing,
    /// All of it, with what the host does until the next launch.
    Whole,
    /// From its start until so many CTAs have ended.
    Head(u64),
    /// From the end of one number of CTAs to that of another.
    Window(u64, u64),
    /// From the end of so many CTAs on, with what the host does until the next launch.
    Tail(u64),
}

/// Ticks that a launch of a stretch took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Took {
    /// The launch, by the caller's number.
    pub(super) launch: usize,
    pub(super) counted: CountedPart,
    /// As it is counted.
    pub(super) ticks: Time,
    /// The same without what the host did after it.
    pub(super) own_ticks: Time,
    /// Of a head: from the end of one CTA to that of the next, in its second half.
    pub(super) pace: Time,
}

/// Actions to be simulated.
#[derive(Debug)]
pub(super) struct Stretch {
    memory: FlatMemory,
    actions: VecDeque<HostAction>,
    parts: BTreeMap<u32, LaunchPart>,
    /// By launch of the stretch: the caller's number.
    launches: Vec<(usize, CountedPart)>,
}

impl Stretch {
    /// A stretch that begins with this memory.
    pub(super) fn new(memory: FlatMemory) -> Self {
        Stretch { memory, actions: VecDeque::new(), parts: BTreeMap::new(), launches: Vec::new() }
    }

    /// The host does something other than launching.
    pub(super) fn push(&mut self, action: HostAction) {
        self.actions.push_back(action);
    }

    /// The host launches, and `part` of that is simulated.
    pub(super) fn launch(
        &mut self,
        launch: Arc<Launch>,
        number: usize,
        counted: CountedPart,
        part: Option<LaunchPart>,
    ) {
        if let Some(part) = part {
            self.parts.insert(self.launches.len() as u32, part);
        }
        self.launches.push((number, counted));
        self.actions.push_back(HostAction::Launch(launch));
    }

    /// Simulates: the machine as it is then, when its first launch began, and what the launches took.
    pub(super) fn simulate(self, experiment: &Experiment, clocks: Clocks, conduct: &Conduct<'_>) -> Detail {
        let spec = &experiment.machine.spec;
        let persistency =
            Persistency { scheme: experiment.scheme.built.clone(), halts_at_end: true, ..Persistency::default() };
        let host = Box::new(Replayed(self.actions));
        let local_bytes = experiment.workload.local_bytes() as u32;
        let machine = assemble_parts(spec, self.memory, local_bytes, host, &persistency, self.parts);
        let ran = Simulated::to_halt(machine, clocks, conduct);
        let records = ran.machine.command_processor().launches();
        let first_start = records.first().map(|record| record.start);
        // After the last launch comes the program's end, or the halt.
        let ended = ran.machine.ended().unwrap_or_else(|| ran.time());
        let mut took = Vec::new();
        for (nth, (&(launch, counted), record)) in self.launches.iter().zip(records).enumerate() {
            let next = records.get(nth + 1).map_or(ended, |next| next.start);
            let (ticks, own_ticks) = ticks_of(record, counted, next);
            took.push(Took { launch, counted, ticks, own_ticks, pace: pace_of(record, counted) });
        }
        Detail { first_start, ended, took, ran }
    }
}

/// A stretch that was simulated.
pub(super) struct Detail {
    /// When its first launch began, in ticks.
    pub(super) first_start: Option<Time>,
    /// When the last action was done, in ticks.
    pub(super) ended: Time,
    pub(super) took: Vec<Took>,
    pub(super) ran: Simulated,
}

impl Detail {
    /// Whether it came to where it was to come.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.ran.end, RunEnd::Finished { .. } | RunEnd::Halted { .. })
    }
}

/// Ticks that count of a launch, with and without what follows it until `next`.
fn ticks_of(record: &LaunchRecord, counted: CountedPart, next: Time) -> (Time, Time) {
    let ended = |ctas: u64| record.cta_ends.get(ctas.saturating_sub(1) as usize).copied().unwrap_or(record.start);
    let (from, to, own) = match counted {
        CountedPart::Nothing => (record.start, record.start, record.start),
        CountedPart::Whole => (record.start, next, record.end),
        CountedPart::Head(ctas) => (record.start, ended(ctas), ended(ctas)),
        CountedPart::Window(from, to) => (ended(from), ended(to), ended(to)),
        CountedPart::Tail(from) => (ended(from), next, record.end),
    };
    (to.saturating_sub(from), own.saturating_sub(from))
}

/// How far apart the ends of the CTAs of a head's second half are.
fn pace_of(record: &LaunchRecord, counted: CountedPart) -> Time {
    let CountedPart::Head(ctas) = counted else { return 0 };
    let half = (ctas / 2).max(1);
    match (record.cta_ends.get(half as usize - 1), record.cta_ends.get(ctas as usize - 1)) {
        (Some(&from), Some(&to)) if ctas > half => (to - from) / (ctas - half),
        _ => 0,
    }
}

/// A host program that does what another did.
#[derive(Debug)]
struct Replayed(VecDeque<HostAction>);

impl HostProgram for Replayed {
    fn next(&mut self, _: Option<u64>) -> Result<HostAction, String> {
        Ok(self.0.pop_front().unwrap_or(HostAction::Done))
    }
}
