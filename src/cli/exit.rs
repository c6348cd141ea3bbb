//! How commands end: exit codes, and why a command stopped before it had done anything.

use durawarp::diagnostic::{Diagnostic, Diagnostics};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Good = 0,
    /// What was compared differs, there are warnings and none are wanted, or a paper's asks are not met and
    /// all are wanted.
    Unequal = 1,
    /// The input is wrong, or an output cannot be written.
    BadInput = 2,
    ProgramFailed = 3,
    Different = 4,
    Defect = 70,
    /// An allocation failed, or something else made the program abort.
    Aborted = 71,
    Interrupted = 130,
    Terminated = 143,
}

/// Why a command stopped before it had done anything.
#[derive(Debug)]
pub(super) enum Stop {
    /// The input is wrong.
    Input(Diagnostics),
    /// A file could not be read or written.
    File(String),
}

impl From<Diagnostics> for Stop {
    fn from(faults: Diagnostics) -> Self {
        Stop::Input(faults)
    }
}

impl From<Diagnostic> for Stop {
    fn from(fault: Diagnostic) -> Self {
        Stop::Input(fault.into())
    }
}
