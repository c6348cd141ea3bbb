//! A whole workload on the functional driver: no time, the reference for every timed run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::WorkloadHost;
use super::view::Bindings;
use crate::plan::RunPlan;
use crate::plan::image::image;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_kernel::functional::scrutiny::Scrutiny;
use durawarp_kernel::functional::{self, Counts, Limits, RunError, Writer};
use durawarp_kernel::host::{HostAction, HostProgram};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::{FlatMemory, Medium, Unmapped};
use durawarp_kernel::regions::{RegionError, ResumeError};

/// What a functional run left and did.
#[derive(Debug)]
pub struct FunctionalRun {
    memory: FlatMemory,
    bindings: Bindings,
    launches: Vec<LaunchCount>,
    scrutiny: Scrutiny,
}

/// What one launch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCount {
    /// Kernel name.
    pub kernel: String,
    pub ctas: u64,
    /// Instructions and other counts of the driver.
    pub counts: Counts,
}

/// Why a functional run ended early.
#[derive(Debug, thiserror::Error)]
pub enum FunctionalError {
    /// The host program cannot go on: a loop that does not converge, an expression without a value.
    #[error("{0}")]
    Host(String),
    /// The simulated program did something wrong, or did not end.
    #[error("{0}")]
    Kernel(#[from] RunError),
    /// A kernel cannot be formed into regions.
    #[error("kernel `{0}`: {1}")]
    Regions(String, RegionError),
    /// Kernels of the program cannot be formed, or the size of checkpoints cannot be determined.
    #[error("{0}")]
    Formed(#[from] Diagnostics),
    /// What a power failure left says nothing of where to resume.
    #[error("{0}")]
    Resume(#[from] ResumeError),
    /// What the host wrote down of itself is not what a host program writes.
    #[error("the host's record: {0}")]
    Record(String),
    /// A launch was under way that cannot be resumed in its middle.
    #[error("kernel `{0}` cannot be resumed in its middle: {1}")]
    NotResumable(String, &'static str),
    /// The host program touched memory that is not allocated. Steps are checked, so this is a fault of ours.
    #[error("host program: {0}")]
    Memory(#[from] Unmapped),
}

impl FunctionalRun {
    /// Memory at the end.
    pub fn memory(&self) -> &FlatMemory {
        &self.memory
    }

    /// Memory at the end, to change: a test of verification does.
    pub fn memory_mut(&mut self) -> &mut FlatMemory {
        &mut self.memory
    }

    /// Which memory each buffer's name stands for at the end.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Every launch, in order.
    pub fn launches(&self) -> &[LaunchCount] {
        &self.launches
    }

    /// What its launches were watched for, and what was found.
    pub fn scrutiny(&self) -> &Scrutiny {
        &self.scrutiny
    }

    /// Figures that `[expect]` may name: `launches`, `ctas`, `warp_instructions`, `thread_instructions`,
    /// `fences`, `pm_operations`, over all launches.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let sum = |of: fn(&LaunchCount) -> u64| self.launches.iter().map(of).sum::<u64>() as f64;
        let figures = [
            ("launches", self.launches.len() as f64),
            ("ctas", sum(|launch| launch.ctas)),
            ("warp_instructions", sum(|launch| launch.counts.warp_instructions)),
            ("thread_instructions", sum(|launch| launch.counts.thread_instructions)),
            ("fences", sum(|launch| launch.counts.fences)),
            ("pm_operations", sum(|launch| launch.counts.pm_operations)),
        ];
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Runs the host program of `plan` to its end under `scrutiny`.
pub(crate) fn run(
    plan: &Arc<RunPlan>,
    limits: &Limits<'_>,
    scrutiny: Scrutiny,
) -> Result<FunctionalRun, FunctionalError> {
    run_with(plan, limits, scrutiny, &mut |_, _, _| Ok(()))
}

/// What looks at memory before and after each launch.
pub(crate) type Observer<'a> = dyn FnMut(u32, When, &FlatMemory) -> Result<(), FunctionalError> + 'a;

/// Which side of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// Runs the host program, and shows memory to `observe` around each launch.
pub(crate) fn run_observed(
    plan: &Arc<RunPlan>,
    limits: &Limits<'_>,
    observe: &mut Observer<'_>,
) -> Result<FunctionalRun, FunctionalError> {
    run_with(plan, limits, Scrutiny::default(), observe)
}

fn run_with(
    plan: &Arc<RunPlan>,
    limits: &Limits<'_>,
    mut scrutiny: Scrutiny,
    observe: &mut Observer<'_>,
) -> Result<FunctionalRun, FunctionalError> {
    let mut memory = image(plan);
    let mut host = WorkloadHost::new(plan.clone());
    let mut launches = Vec::new();
    if host.overlaps() {
        scrutiny.overlapping();
    }
    drive(&mut host, &mut memory, &mut |action, memory| {
        let launch = match action {
            Action::Launch(launch) => launch,
            // Behind such a step nothing runs beside the launches before it.
            Action::Gathered => {
                scrutiny.gathered();
                return Ok(());
            }
            Action::Written(..) => return Ok(()),
        };
        let number = launches.len() as u32;
        observe(number, When::Before, memory)?;
        let counts = scrutiny.run(launch, memory, limits)?;
        observe(number, When::After, memory)?;
        launches.push(LaunchCount { kernel: launch.kernel.name.clone(), ctas: launch.ctas(), counts });
        Ok(())
    })?;
    Ok(FunctionalRun { memory, bindings: host.bindings(), launches, scrutiny })
}

/// Writes to persistent memory between persist barriers of a CTA or kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochWrites {
    /// Launch, from 0 on.
    pub launch: u32,
    /// The writer, and the number of barriers before.
    pub writer: Writer,
    /// Stores and atomics, one a lane.
    pub writes: u64,
}

/// Runs the host program and counts what its kernels write to persistent memory, in the order of launches and
/// writers; those that write nothing have no entry.
pub(crate) fn run_counted(plan: &Arc<RunPlan>, limits: &Limits<'_>) -> Result<Vec<EpochWrites>, FunctionalError> {
    let mut memory = image(plan);
    let mut counted: BTreeMap<(u32, Writer), u64> = BTreeMap::new();
    let mut launches = 0;
    drive(&mut WorkloadHost::new(plan.clone()), &mut memory, &mut |action, memory| {
        let Action::Launch(launch) = action else { return Ok(()) };
        let mut count = |writer: Writer, address: u64, _: &[u8]| {
            if Medium::of(address) == Medium::Nvm {
                *counted.entry((launches, writer)).or_default() += 1;
            }
        };
        functional::run_watched(launch, memory, limits, Some(&mut count))?;
        launches += 1;
        Ok(())
    })?;
    let entry = |((launch, writer), writes)| EpochWrites { launch, writer, writes };
    Ok(counted.into_iter().map(entry).collect())
}

/// What a host program does that its driver takes part in.
pub(crate) enum Action<'a> {
    /// It launches: the driver runs it.
    Launch(&'a Launch),
    /// It does something else, before which all launches are over.
    Gathered,
    /// It has written bytes: their first address and number.
    Written(u64, usize),
}

/// Drives a host program to its end; `take_part` runs its launches and gets its own writes.
pub(crate) fn drive(
    host: &mut dyn HostProgram,
    memory: &mut FlatMemory,
    take_part: &mut dyn FnMut(Action<'_>, &mut FlatMemory) -> Result<(), FunctionalError>,
) -> Result<(), FunctionalError> {
    let mut read = None;
    loop {
        match host.next(read.take()).map_err(FunctionalError::Host)? {
            HostAction::Launch(launch) => take_part(Action::Launch(&launch), memory)?,
            HostAction::Done => return Ok(()),
            other => {
                take_part(Action::Gathered, memory)?;
                read = apply(&other, memory)?;
                match other {
                    HostAction::Write { address, data } => take_part(Action::Written(address, data.len()), memory)?,
                    HostAction::Copy { to, bytes, .. } => take_part(Action::Written(to, bytes as usize), memory)?,
                    _ => {}
                }
            }
        }
    }
}

/// Does what an action other than a launch does to memory; the value that it reads.
///
/// # Errors
/// Memory that is not allocated; a reduction without a value.
pub fn apply(action: &HostAction, memory: &mut FlatMemory) -> Result<Option<u64>, FunctionalError> {
    match action {
        HostAction::Read { address, bytes } => {
            let mut value = [0; 8];
            value[..*bytes as usize].copy_from_slice(memory.read(*address, *bytes as usize)?);
            return Ok(Some(u64::from_le_bytes(value)));
        }
        HostAction::Reduce(reduction) => {
            let bytes = memory.read(reduction.address, reduction.bytes() as usize)?;
            return reduction.of(bytes).map(Some).map_err(FunctionalError::Host);
        }
        HostAction::Write { address, data } => memory.write(*address, data)?,
        HostAction::Copy { from, to, bytes } => {
            let data = memory.read(*from, *bytes as usize)?.to_vec();
            memory.write(*to, &data)?;
        }
        // There is no cache, and nothing is sampled.
        HostAction::Warm(_) | HostAction::Sample(_) | HostAction::Launch(_) | HostAction::Done => {}
    }
    Ok(None)
}
