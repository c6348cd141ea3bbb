//! What a host program asks of a device: the vocabulary between a workload's steps and whoever executes them
//! (the functional driver, or the command processor of a timed machine).

use std::sync::Arc;

use super::launch::Launch;
use super::reduction::Reduction;

/// The host's next wish.
#[derive(Debug, Clone)]
pub enum HostAction {
    /// Run this grid to completion.
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
        /// Bytes.
        bytes: u64,
    },
    /// Reduce elements of global memory to one number, outside simulated time; the number's bits go to the
    /// next call of [`HostProgram::next`].
    Reduce(Box<Reduction>),
    /// Fill the L2, if the device has one, with these ranges of global memory in this order, outside
    /// simulated time.
    Warm(Vec<GlobalRange>),
    /// The program is over.
    Done,
}

/// Bytes of global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalRange {
    /// First address.
    pub start: u64,
    /// Length.
    pub bytes: u64,
}

/// A host program: a state machine that is told what its last read returned and says what it wants next.
pub trait HostProgram: Send + std::fmt::Debug {
    /// The next wish. `read` holds what the [`HostAction::Read`] or [`HostAction::Reduce`] that was asked for
    /// last came to, if it was one.
    ///
    /// # Errors
    /// A sentence that says what the host program cannot do (a loop that never converges, an argument that
    /// does not fit its parameter).
    fn next(&mut self, read: Option<u64>) -> Result<HostAction, String>;
}
