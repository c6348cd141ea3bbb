//! What a host program asks of a device: the vocabulary between a workload's steps and whoever executes them
//! (the functional driver, or the command processor of a timed machine).

use std::sync::Arc;

use super::launch::Launch;

/// The host's next wish.
#[derive(Debug, Clone)]
pub enum HostAction {
    /// Run this grid to completion.
    Launch(Arc<Launch>),
    /// Read `bytes` (1, 2, 4 or 8) at a global address; the value goes to the next call of [`HostProgram::next`].
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
    /// The program is over.
    Done,
}

/// A host program: a state machine that is told what its last read returned and says what it wants next.
pub trait HostProgram: Send + std::fmt::Debug {
    /// The next wish. `read` holds the value of the [`HostAction::Read`] that was asked for last, if any.
    ///
    /// # Errors
    /// A sentence that says what the host program cannot do (a loop that never converges, an argument that does not
    /// fit its parameter).
    fn next(&mut self, read: Option<u64>) -> Result<HostAction, String>;
}
