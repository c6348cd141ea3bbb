//! A whole workload on the functional driver: no time, the reference for every timed run.

use super::Resolved;
use super::host::Bindings;
use crate::kernel::memory::FlatMemory;

/// What a functional run left and did.
#[derive(Debug)]
pub struct FunctionalRun {
    memory: FlatMemory,
    bindings: Bindings,
    launches: Vec<LaunchCount>,
}

/// What one launch did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LaunchCount {
    /// Kernel name.
    pub kernel: String,
}

/// Why a functional run ended early.
#[derive(Debug, thiserror::Error)]
pub enum FunctionalError {
    /// The host program cannot go on.
    #[error("{0}")]
    Host(String),
}

impl FunctionalRun {
    /// Memory at the end.
    pub fn memory(&self) -> &FlatMemory {
        &self.memory
    }

    /// Which memory each buffer's name stands for at the end.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Every launch, in order.
    pub fn launches(&self) -> &[LaunchCount] {
        &self.launches
    }
}

pub(super) fn run(_resolved: &Resolved) -> Result<FunctionalRun, FunctionalError> {
    todo!()
}
