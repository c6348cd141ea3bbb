//! Resumes a program of formed kernels from persistent memory after a power failure, on the functional
//! driver.
//!
//! ```text
//! durable memory ─┬─ host record ─> position of the host program ─┐
//!                 └─ counters ─> the latest launch that began ────┴─> skip what is done ─ restart that launch ─ go on
//! ```
//! Launches of a program follow each other, so that all before the latest one with a committed region are
//! done, and its host steps up to it. That launch is restarted from its area ([`Restart`]); where all of its
//! threads are done, nothing of it is left to do. From there on the host program goes on for real.
//!
//! A run can be cut again: [`FormedProgram::advance`] stops after a number of *persist steps*, a region that
//! commits or a write of the host, and gives what is durable then. Regions commit in the order of their first
//! stores, which is that in which the hardware draws their numbers, each when it and all before it have
//! ended.
//!
//! Invariant: memory at the end is that of a run without failures, for programs whose threads meet by
//! barriers, atomics and the ends of kernels, whatever the number of failures. Not resumable: buffers in DRAM
//! (see [`Demands::persistent`](super::Demands::persistent)), kernels with obstacles
//! ([`Formed::obstacles`](durawarp_kernel::regions::Formed::obstacles)).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use super::FormedProgram;
use crate::host::functional::{Action, FunctionalError, drive};
use crate::host::view::Bindings;
use durawarp_kernel::functional::{Event, Limits, Observer, RunError, Start, Wanted, run_observed};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::{FlatMemory, Medium};
use durawarp_kernel::regions::{Area, Formed, Restart, ResumeError, Role};

/// How far a program came.
#[derive(Debug)]
pub struct Resumed {
    /// Memory: at the end of the program all of it, before that what is durable (the rest holds initial
    /// contents).
    pub memory: FlatMemory,
    /// Which memory each buffer's name stands for now.
    pub bindings: Bindings,
    /// Regions committed and host writes done.
    pub steps: u64,
    /// The program came to its end.
    pub finished: bool,
}

impl FormedProgram {
    /// Goes on from what a power failure left to the end of the program. Warps must be as wide as they were.
    ///
    /// # Errors
    /// What is durable is nothing that a run of this program leaves; a launch that cannot be resumed was
    /// under way; a fault of the simulated program; `limits` reached.
    pub fn resume(&self, durable: &FlatMemory, limits: &Limits<'_>) -> Result<Resumed, FunctionalError> {
        self.advance(durable, limits, None)
    }

    /// Why not every cut of it can be resumed: a kernel and its obstacle, or a buffer in DRAM.
    pub fn obstacles(&self) -> Vec<(String, &'static str)> {
        let kernels = self
            .kernels
            .iter()
            .flat_map(|(kernel, formed)| formed.obstacles.iter().map(|&obstacle| (kernel.name.clone(), obstacle)));
        let volatile = self.plan.addresses.ranges().iter().filter(|range| Medium::of(range.start) == Medium::Dram);
        kernels
            .chain(volatile.map(|range| (range.name.clone(), "it lies in DRAM, which a power failure empties")))
            .collect()
    }

    /// As [`FormedProgram::resume`], for at most `most` persist steps. From [`FormedProgram::image`] it
    /// starts the program.
    ///
    /// # Errors
    /// As [`FormedProgram::resume`].
    pub fn advance(
        &self,
        durable: &FlatMemory,
        limits: &Limits<'_>,
        most: Option<u64>,
    ) -> Result<Resumed, FunctionalError> {
        // DRAM is lost and starts anew. Only what differs is written, so that the rest of the image stays
        // shared.
        let mut memory = self.image();
        for (start, bytes) in durable.ranges().filter(|(start, _)| Medium::of(*start) == Medium::Nvm) {
            if memory.slice(start, bytes.len()).is_some_and(|now| now != bytes) {
                memory.write(start, bytes)?;
            }
        }
        let begun = self.latest_launch(&memory)?;
        let mut host = self.host();
        let bindings = host.bindings();
        host.go_on(begun, &memory)?;
        let mut cut = most.map(|most| Cut::new(memory.clone(), most));
        // The launch to restart, unless the host has passed it.
        let restarted = begun.filter(|&begun| host.launches() <= begun);
        let mut launches = restarted.unwrap_or(host.launches());
        let mut began = false;
        let done = drive(&mut host, &mut memory, &mut |action, memory| {
            let launch = match action {
                Action::Launch(launch) => launch,
                Action::Gathered => return Ok(()),
                Action::Written(address, bytes) => return Cut::host_wrote(cut.as_mut(), address, bytes, memory),
            };
            let number = launches;
            launches += 1;
            let (formed, area) = (self.formed_kernel(launch), self.area_of(number));
            let restarts = restarted == Some(number);
            began |= restarts;
            run_launch(formed, launch, &area, memory, limits, restarts, cut.as_mut())
        });
        let steps = cut.as_ref().map_or(0, |cut| cut.steps);
        let is_cut = cut.as_ref().is_some_and(Cut::is_full);
        match (done, cut) {
            (Err(FunctionalError::Kernel(RunError::Stopped)), Some(cut)) if is_cut => {
                Ok(Resumed { memory: cut.durable, bindings, steps, finished: false })
            }
            (Err(fault), _) => Err(fault),
            (Ok(()), _) if restarted.is_some() && !began => {
                Err(FunctionalError::Record("the program ends before a launch that has begun".to_owned()))
            }
            (Ok(()), _) => Ok(Resumed { memory, bindings, steps, finished: true }),
        }
    }

    /// The latest launch of which a region has been committed.
    fn latest_launch(&self, memory: &FlatMemory) -> Result<Option<u32>, ResumeError> {
        let mut latest = 0;
        for group in 0..self.groups {
            let row = self.area.address + group * u64::from(self.area.group_bytes);
            latest = memory.read_u64s(row, 32)?.into_iter().map(|word| word >> 32).fold(latest, u64::max);
        }
        Ok(latest.checked_sub(1).map(|launch| launch as u32))
    }

    fn formed_kernel(&self, launch: &Launch) -> &Formed {
        let of = |formed: &&std::sync::Arc<Formed>| std::sync::Arc::ptr_eq(&formed.kernel, &launch.kernel);
        self.kernels().find(of).expect("the host launches formed kernels")
    }
}

/// Runs a launch, or the rest of it.
fn run_launch(
    formed: &Formed,
    launch: &Launch,
    area: &Area,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    restarts: bool,
    cut: Option<&mut Cut>,
) -> Result<(), FunctionalError> {
    let restart = if restarts { Some(Restart::new(formed, launch, area, memory)?) } else { None };
    if let (Some(restart), Some(&obstacle)) = (&restart, formed.obstacles.first())
        && !restart.is_done(limits.warp_size, memory)?
    {
        return Err(FunctionalError::NotResumable(formed.kernel.name.clone(), obstacle));
    }
    // The observer cannot end the run: its first fault is kept and reported after it.
    let mut fault = None;
    let mut start = |start: Start<'_>, memory: &FlatMemory| {
        if let Some(Err(found)) = restart.as_ref().map(|restart| restart.start(start, memory)) {
            fault.get_or_insert(found);
        }
    };
    match cut {
        None => {
            run_observed(launch, memory, limits, None, Some(&mut start))?;
        }
        Some(cut) => {
            let full = AtomicBool::new(cut.is_full());
            cut.open.clear();
            let mut watch = |event: Event<'_>| {
                cut.see(event, formed);
                let stopped = limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
                full.store(cut.is_full() || stopped, Ordering::Relaxed);
            };
            let limits = Limits { stop: Some(&full), ..*limits };
            let wanted = Wanted { issued: true, writes: true, ..Wanted::default() };
            let observer = Observer { wanted, tell: &mut watch };
            run_observed(launch, memory, &limits, Some(observer), Some(&mut start))?;
            // It may have been over before anybody asked.
            if cut.is_full() {
                return Err(RunError::Stopped.into());
            }
        }
    }
    fault.map_or(Ok(()), |fault| Err(fault.into()))
}

/// A region that has stored something: address and bytes of each store, and whether its boundary has come.
#[derive(Debug, Default)]
struct Drawn {
    stores: Vec<(u64, Vec<u8>)>,
    ended: bool,
}

/// What is durable while a program runs, up to a number of persist steps.
#[derive(Debug)]
struct Cut {
    durable: FlatMemory,
    most: u64,
    steps: u64,
    /// Regions by the order of their first stores.
    drawn: VecDeque<Drawn>,
    /// Number of the first of them.
    first: u64,
    /// The region of each warp that has stored something.
    open: BTreeMap<(u64, u32), u64>,
    /// The warp that executes.
    who: (u64, u32),
}

impl Cut {
    fn new(durable: FlatMemory, most: u64) -> Cut {
        Cut { durable, most, steps: 0, drawn: VecDeque::new(), first: 0, open: BTreeMap::new(), who: (0, 0) }
    }

    fn is_full(&self) -> bool {
        self.steps >= self.most
    }

    /// A step of the host, durable at once.
    fn host_wrote(cut: Option<&mut Cut>, at: u64, bytes: usize, memory: &FlatMemory) -> Result<(), FunctionalError> {
        let Some(cut) = cut else { return Ok(()) };
        if cut.is_full() {
            return Err(RunError::Stopped.into());
        }
        cut.durable.write(at, memory.read(at, bytes)?)?;
        cut.steps += 1;
        if cut.is_full() { Err(RunError::Stopped.into()) } else { Ok(()) }
    }

    fn see(&mut self, event: Event<'_>, formed: &Formed) {
        match event {
            Event::Issued { cta, warp, pc, lanes, .. } => {
                self.who = (cta, warp);
                if formed.roles[pc as usize] == Role::Marker
                    && lanes != 0
                    && let Some(number) = self.open.remove(&self.who)
                {
                    self.drawn[(number - self.first) as usize].ended = true;
                    self.commit();
                }
            }
            Event::Wrote { address, bytes, .. } if Medium::of(address) == Medium::Nvm => {
                let next = self.first + self.drawn.len() as u64;
                let number = *self.open.entry(self.who).or_insert(next);
                if number == next {
                    self.drawn.push_back(Drawn::default());
                }
                self.drawn[(number - self.first) as usize].stores.push((address, bytes.to_vec()));
            }
            _ => {}
        }
    }

    /// Commits the oldest regions that have ended, as long as there are steps left.
    fn commit(&mut self) {
        while !self.is_full() && self.drawn.front().is_some_and(|region| region.ended) {
            let Drawn { stores, .. } = self.drawn.pop_front().expect("there is one");
            for (address, bytes) in stores {
                self.durable.write(address, &bytes).expect("what was stored is allocated");
            }
            self.first += 1;
            self.steps += 1;
        }
    }
}
