//! The functional driver: runs a launch on a flat memory image, without time. The reference that timed runs are
//! compared with, and the way host programs are tried out.
//!
//! CTAs run in order, the warps of a CTA round-robin between barriers. A CTA that runs long (it may be waiting for
//! another one: a grid barrier, a lock) is set aside after a while and later ones get their turn, up to a number of
//! resident CTAs. One that has arrived at `pm.barrier.kr` is not counted among these: every CTA of the grid begins before
//! the first passes, however many there are. All of it is deterministic.
//!
//! Not modelled: caches, persistence (PM operations are counted and their addresses checked), concurrency finer than
//! `SLICE` instructions.

#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod access;
#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod cta;

use std::sync::atomic::{AtomicBool, Ordering};

use super::fault::ProgramFault;
use super::ir::Class;
use super::launch::Launch;
use super::memory::FlatMemory;
use super::warp::Warp;
use cta::{Cta, CtaProgress};

/// Instructions of one warp before the next warp of its CTA runs.
pub(super) const SLICE: u32 = 1024;

/// Warp instructions of one CTA before another CTA gets its turn.
const TURN: u64 = 1 << 16;

/// How far a run may go.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// Warp instructions of the launch.
    pub warp_instructions: u64,
    /// CTAs that may be under way at once, those that wait at `pm.barrier.kr` left aside.
    pub resident_ctas: usize,
    /// Lanes of a warp, 32 or 64.
    pub warp_size: u32,
    /// Set it to end the run early.
    pub stop: Option<&'a AtomicBool>,
    /// Log updates (`pm.st.log`) to persistent memory are left out, as by a scheme that has no use for logs.
    pub drops_log_stores: bool,
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Limits { warp_instructions: u64::MAX, resident_ctas: 1024, warp_size: 32, stop: None, drops_log_stores: false }
    }
}

/// What a launch executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions, one a warp.
    pub warp_instructions: u64,
    /// Instructions, one a lane whose guard held.
    pub thread_instructions: u64,
    /// Warp instructions by class, in the order of [`Class::ALL`].
    pub by_class: [u64; Class::ALL.len()],
    /// Memory fences.
    pub fences: u64,
    /// PM operations that are not stores.
    pub pm_operations: u64,
    /// Log updates to persistent memory that were left out, one a lane ([`Limits::drops_log_stores`]).
    pub log_stores_dropped: u64,
}

/// How a run ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The program did something wrong.
    #[error("{0}")]
    Fault(Box<ProgramFault>),
    /// Some warps wait for a barrier that nobody else will reach.
    #[error("kernel `{kernel}`, CTA {cta:?}: deadlock, {waiting}")]
    Deadlock {
        /// Kernel name.
        kernel: String,
        /// CTA index.
        cta: [u32; 3],
        /// Which warps wait where.
        waiting: String,
    },
    /// The instruction limit was reached.
    #[error("kernel `{kernel}` executed {limit} warp instructions without ending: {at}")]
    InstructionLimit {
        /// Kernel name.
        kernel: String,
        /// The limit.
        limit: u64,
        /// Where a warp was that had not ended.
        at: String,
    },
    /// The caller's flag was set.
    #[error("stopped")]
    Stopped,
}

impl From<ProgramFault> for RunError {
    fn from(fault: ProgramFault) -> Self {
        RunError::Fault(Box::new(fault))
    }
}

/// Runs a launch to its end.
///
/// # Errors
/// The first fault of the program, a deadlock, the instruction limit, or the stop flag; memory keeps what was written until then.
pub fn run(launch: &Launch, memory: &mut FlatMemory, limits: &Limits<'_>) -> Result<Counts, RunError> {
    run_watched(launch, memory, limits, None)
}

/// Whose write it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Writer {
    /// CTA, by its number in the grid.
    pub cta: u64,
    /// How often that CTA has passed `pm.barrier.wg` or `pm.barrier.kr`.
    pub epoch: u32,
}

/// Told of each lane's write to global memory: whose, address and bytes, in the order in which the driver does them.
pub type Writes<'a> = &'a mut dyn FnMut(Writer, u64, &[u8]);

/// Runs a launch to its end and tells every write to global memory.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    launch: &Launch,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    writes: Option<Writes<'_>>,
) -> Result<Counts, RunError> {
    match writes {
        None => drive(launch, memory, limits, &mut None, &mut None),
        Some(writes) => {
            let mut only_writes = |event: Event<'_>| {
                if let Event::Wrote { writer, address, bytes } = event {
                    writes(writer, address, bytes);
                }
            };
            drive(launch, memory, limits, &mut Some(&mut only_writes), &mut None)
        }
    }
}

/// What an observer of a run is told, in the order in which the driver does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A warp executes the instruction at `pc`; what it writes follows.
    Issued {
        /// CTA number.
        cta: u64,
        /// Warp of that CTA.
        warp: u32,
        /// Program counter.
        pc: u32,
        /// Lanes whose guard holds.
        lanes: u64,
    },
    /// A lane has written these bytes of global memory.
    Wrote {
        /// Who, and in which epoch.
        writer: Writer,
        /// First address.
        address: u64,
        /// What is there now.
        bytes: &'a [u8],
    },
}

/// Sees every instruction and every write to global memory.
pub type Observer<'a> = &'a mut dyn FnMut(Event<'_>);

/// What a CTA starts with, to be changed before it runs.
#[derive(Debug)]
pub enum Start<'a> {
    /// Memory of a CTA, all zeros; it comes before the CTA's warps.
    Memory {
        /// CTA number.
        cta: u64,
        /// Its shared memory.
        shared: &'a mut [u8],
        /// The local memory of its threads in turn, and of the lanes that are missing in its last warp.
        local: &'a mut [u8],
    },
    /// A warp at the kernel's entry. One that is left without lanes has ended.
    Warp(&'a mut Warp),
}

/// Changes what CTAs start with, and sees global memory as it is then.
pub type Starts<'a> = &'a mut dyn FnMut(Start<'_>, &FlatMemory);

/// Runs a launch to its end under observation. `starts` may let warps start elsewhere than at the entry
/// ([`super::regions::Restart`]).
///
/// # Errors
/// As [`run`].
pub fn run_observed(
    launch: &Launch,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    mut observer: Option<Observer<'_>>,
    mut starts: Option<Starts<'_>>,
) -> Result<Counts, RunError> {
    drive(launch, memory, limits, &mut observer, &mut starts)
}

fn drive(
    launch: &Launch,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    observer: &mut Option<Observer<'_>>,
    starts: &mut Option<Starts<'_>>,
) -> Result<Counts, RunError> {
    let limit_reached = |cta: &Cta| {
        let (kernel, limit) = (launch.kernel.name.clone(), limits.warp_instructions);
        RunError::InstructionLimit { kernel, limit, at: cta.place(launch) }
    };
    let mut counts = Counts::default();
    let mut resident: std::collections::VecDeque<Cta> = std::collections::VecDeque::new();
    // CTAs at `pm.barrier.kr`. Those that have ended are not awaited.
    let mut at_grid: Vec<Cta> = Vec::new();
    // Finished CTAs, whose allocations are used again.
    let mut spare: Vec<Cta> = Vec::new();
    let total = launch.ctas();
    let mut next = 0;
    loop {
        if next == total && resident.is_empty() {
            if at_grid.is_empty() {
                return Ok(counts);
            }
            at_grid.sort_unstable_by_key(Cta::index);
            at_grid.iter_mut().for_each(Cta::pass_grid);
            resident.extend(at_grid.drain(..));
        }
        let room = resident.len() < limits.resident_ctas.max(1);
        let mut cta = if next < total && room {
            let mut cta = spare.pop().unwrap_or_default();
            cta.start(launch, next, limits, memory, starts);
            next += 1;
            cta
        } else {
            resident.pop_front().expect("a CTA is under way")
        };
        let left = limits.warp_instructions.saturating_sub(counts.warp_instructions);
        if left == 0 {
            return Err(limit_reached(&cta));
        }
        if limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(RunError::Stopped);
        }
        match cta.run(launch, memory, &mut counts, left.min(TURN), observer)? {
            CtaProgress::Done => spare.push(cta),
            // It is the one that is told, not one that only begins.
            CtaProgress::Paused if counts.warp_instructions >= limits.warp_instructions => {
                return Err(limit_reached(&cta));
            }
            CtaProgress::Paused => resident.push_back(cta),
            CtaProgress::AtGrid => at_grid.push(cta),
        }
    }
}
