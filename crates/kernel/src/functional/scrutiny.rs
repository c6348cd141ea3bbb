//! What the launches of a program are watched for while they run on the functional driver.

use std::sync::Arc;

use super::super::ir::Kernel;
use super::super::launch::Launch;
use super::super::memory::FlatMemory;
use super::super::undetermined;
use super::beside::LaunchOrder;
use super::interface::{Counts, Event, Limits, Observer, RunError};
use super::races::{Race, RaceWatch};
use super::unwritten::{Unwritten, UnwrittenWatch};
use super::{run, run_observed};

/// What to look for, and what was found so far.
#[derive(Debug, Default)]
pub struct Scrutiny {
    for_unwritten: bool,
    for_races: bool,
    launches: u32,
    /// Registers of the kernels that were launched that may be read before they are written.
    suspects: Vec<(Arc<Kernel>, Vec<u16>)>,
    unwritten: Vec<Unwritten>,
    races: Vec<Race>,
    /// Of a program whose launches may run at once.
    order: Option<LaunchOrder>,
}

impl Scrutiny {
    /// Looks for reads of what nobody has written, and for races where asked.
    pub fn new(for_races: bool) -> Scrutiny {
        Scrutiny { for_unwritten: true, for_races, ..Scrutiny::default() }
    }

    /// Launches of the program may run at once: races between them are looked for, too, where races are.
    pub fn overlapping(&mut self) {
        self.order = self.for_races.then(LaunchOrder::default);
    }

    /// The host waits for all launches.
    pub fn gathered(&mut self) {
        if let Some(order) = &mut self.order {
            order.gathered(self.launches);
        }
    }

    /// Runs a launch to its end under it.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&mut self, launch: &Launch, memory: &mut FlatMemory, limits: &Limits<'_>) -> Result<Counts, RunError> {
        let number = self.launches;
        self.launches += 1;
        let mut unwritten = match self.for_unwritten {
            true => {
                let known = self.known_of(&launch.kernel);
                UnwrittenWatch::of(launch, &self.suspects[known].1, &self.unwritten, (number, limits.warp_size))
            }
            false => None,
        };
        let order = &mut self.order;
        let mut races = self.for_races.then(|| {
            let beside = order.as_mut().map_or_else(Vec::new, |order| order.begin(launch));
            RaceWatch::new(launch, number, limits.warp_size, beside)
        });
        // Nothing is told where nothing is looked for.
        if unwritten.is_none() && races.is_none() {
            return run(launch, memory, limits);
        }
        let wanted = match &unwritten {
            _ if races.is_some() => RaceWatch::WANTED,
            unwritten => unwritten.as_ref().map(UnwrittenWatch::wanted).unwrap_or_default(),
        };
        let mut tell = |event: Event<'_>| {
            if let Some(unwritten) = &mut unwritten {
                unwritten.event(&event);
            }
            if let Some(races) = &mut races {
                races.event(&event);
            }
        };
        let observer = Observer { wanted, tell: &mut tell };
        let counts = run_observed(launch, memory, limits, Some(observer), None);
        // What was found before a fault may be its reason.
        self.unwritten.extend(unwritten.into_iter().flat_map(UnwrittenWatch::found));
        if let Some((found, past)) = races.map(RaceWatch::end) {
            self.races.extend(found);
            if let Some(order) = &mut self.order {
                order.end(past);
            }
        }
        counts
    }

    fn known_of(&mut self, kernel: &Arc<Kernel>) -> usize {
        let known = self.suspects.iter().position(|(known, _)| Arc::ptr_eq(known, kernel));
        known.unwrap_or_else(|| {
            self.suspects.push((kernel.clone(), undetermined::unwritten(kernel)));
            self.suspects.len() - 1
        })
    }

    /// Reads of what nobody had written: at most one of registers and one of shared memory a kernel.
    pub fn unwritten(&self) -> &[Unwritten] {
        &self.unwritten
    }

    /// Races by launch; none where they were not looked for.
    pub fn races(&self) -> Option<&[Race]> {
        self.for_races.then_some(&self.races)
    }
}
