//! The requests of a host program to its device. The device is the functional driver or the command processor
//! of a timed machine.

use std::ops::Range;
use std::sync::Arc;

use durawarp_checkpoint::value;

use super::launch::Launch;
use super::memory::FlatMemory;
use super::reduction::Reduction;

/// The host's next wish.
#[derive(Debug, Clone)]
pub enum HostAction {
    /// Run this grid to completion, after those that its stream has it wait for.
    Launch(Arc<Launch>),
    /// Read `bytes` (1, 2, 4 or 8) at a global address; the value goes to the next call of
    /// [`HostProgram::next`].
    Read {
        /// Global address, aligned to `bytes`.
        address: u64,
        /// Bytes, little-endian.
        bytes: u32,
    },
    /// Write bytes to global memory.
    Write {
        /// First global address.
        address: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// Copy within global memory.
    Copy {
        /// First source address.
        from: u64,
        /// First destination address.
        to: u64,
        bytes: u64,
    },
    /// Reduce elements of global memory to one number, outside simulated time; the number's bits go to the
    /// next call of [`HostProgram::next`].
    Reduce(Box<Reduction>),
    /// Fill the L2, if the device has one, with these ranges of global memory in this order, outside
    /// simulated time.
    Warm(Vec<GlobalRange>),
    /// A step that only a sampled run takes.
    Sample(SampleStep),
    /// The program is over.
    Done,
}

/// A step of a sampled run, which simulates a part of a program and executes all of it on the functional
/// driver.
#[derive(Debug, Clone)]
pub enum SampleStep {
    /// Run these CTAs of a grid to completion, in this order; their numbers and indices are those of the
    /// whole grid.
    Part(Arc<Launch>, Vec<Range<u64>>),
    /// Global memory holds these bytes from now on, outside simulated time. Caches keep their lines.
    Replace(FlatMemory),
    /// The next action is not known yet: the simulation halts. Whoever goes on with it wakes the device,
    /// which then asks again; the time between is outside simulated time.
    Pause,
}

/// Bytes of global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalRange {
    /// First address.
    pub start: u64,
    /// Length.
    pub bytes: u64,
}

value!(record GlobalRange { start, bytes });

/// A host program: a state machine. It takes the result of its last read and returns its next action.
pub trait HostProgram: Send + std::fmt::Debug {
    /// The next action. `read` is the result of the last action if that was a [`HostAction::Read`] or
    /// [`HostAction::Reduce`].
    ///
    /// # Errors
    /// A sentence that says what the host program cannot do (a loop that never converges, an argument that
    /// does not fit its parameter).
    fn next(&mut self, read: Option<u64>) -> Result<HostAction, String>;

    /// Some of its launches may run at once, as they are of several streams, or programmatic: a device may
    /// ask for the next action while launches run.
    fn overlaps(&self) -> bool {
        false
    }

    /// One of its launches has clusters of CTAs: a device has to be wired for them.
    fn has_clusters(&self) -> bool {
        false
    }
}
