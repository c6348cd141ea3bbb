//! A plan: everything about a run that is known before it starts, as data.
//!
//! | file | what it does |
//! |---|---|
//! | `resolve` | manifest and choice to plan: the order of the stages |
//! | `params` | values of parameters: the manifest's, a profile's, the user's |
//! | `stage` | graphs, extents, lengths |
//! | `contents` | initial contents, textures, surfaces, constant banks |
//! | `allocate` | addresses |
//! | `image` | global memory before the first step |
//! | `program` | host steps as a list of operations with jumps |
//! | `fingerprint` | what a run follows from, as bytes to hash |
//!
//! What runs a plan ([`host`](super::host)), judges it (`check`) or changes it (`instrument`) lies above.

mod allocate;
pub(crate) mod allocation;
mod contents;
pub(crate) mod fingerprint;
pub(crate) mod image;
mod kernel_choice;
pub(crate) mod params;
pub(crate) mod program;
pub(crate) mod resolve;
mod stage;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::expr::{Expr, Value};
use super::manifest::Manifest;
use crate::manifest::instrument::{Overrides, Settings};
use crate::manifest::source::{Folder, Programs};
use allocation::Allocation;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::memory::AddressMap;
use durawarp_kernel::regions::{Formed, RegionOptions};
use durawarp_persist::undo::UndoLog;
pub use kernel_choice::KernelChoice;
use program::Program;

/// A kernel of a program, and its formed kernel.
pub(crate) type FormedKernel = (Arc<Kernel>, Arc<Formed>);

/// Which of a plan's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramPart {
    /// What a run does.
    Steps,
    /// What runs at boot after a power failure.
    Recovery,
}

/// What the user chose for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Profile; `None` is `default`.
    pub profile: Option<String>,
    /// Parameters to override, and their values as written (`--set params.NAME=VALUE`).
    pub params: Vec<(String, String)>,
    /// The run's seed: changes every random content.
    pub seed: u64,
    /// Buffers to fill from a file instead of as the manifest says (`--input BUFFER=FILE`): raw little-endian
    /// or `.npy`.
    pub inputs: Vec<(String, PathBuf)>,
    /// Arguments of a program of CPUs, after those of its manifest.
    pub args: Vec<String>,
    /// All memory is persistent, whatever the manifest says and the scheme demands ([`Demands::persistent`]).
    pub persistent: bool,
    /// What to do otherwise than the manifest's `[instrument]` says.
    pub instrument: Overrides,
    /// Of a trace: which kernels run (`--kernels 3,5-8,@REGEX`).
    pub kernels: Option<KernelChoice>,
    /// Of a trace: a file that says which known opcode another is timed as.
    pub opcodes: Option<PathBuf>,
    /// Most bytes that its buffers may have together; what has more is refused before it is filled.
    pub most_bytes: Option<u64>,
}

impl Choice {
    /// A profile, and everything else as the manifest says.
    pub fn of_profile(name: &str) -> Self {
        Choice { profile: Some(name.to_owned()), ..Choice::default() }
    }

    /// Faults of what can be chosen of traces alone, for a workload that is none.
    pub(crate) fn refuse_choice_of_traces(&self, workload: &str) -> Result<(), Diagnostics> {
        let mut faults = Diagnostics::default();
        let chosen = [("--kernels", self.kernels.is_some()), ("--opcodes", self.opcodes.is_some())];
        for (option, _) in chosen.iter().filter(|(_, chosen)| *chosen) {
            let message =
                format!("workload `{workload}` is no trace: all of its program is executed, as it is written");
            faults.push(Diagnostic::nowhere(option, message));
        }
        faults.into_result(())
    }
}

/// What a persistency scheme makes of a program. It follows from the scheme alone, so it is no part of a
/// [`Choice`]: `run::demands` of the crate `simulation` derives it, and experiments are made by way of that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demands {
    /// Undo logs are kept: kernels are instrumented as the manifest says. Without it they run as they are;
    /// logs and flags are allocated all the same, so that buffers lie at the same addresses.
    pub undo_logs: bool,
    /// All memory is persistent: buffers and variables lie in NVM, whatever the manifest says of them.
    pub persistent: bool,
}

/// Everything about a run that is known before it starts. Shared by its host program and its verification.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) programs: Arc<Programs>,
    pub(crate) folder: Folder,
    pub(crate) profile: String,
    pub(crate) seed: u64,
    pub(crate) demands: Demands,
    /// Some parameter is not as the profile says, or an input was replaced: expectations do not hold.
    pub(crate) altered: bool,
    /// Values of variables; those of loops and sums come after.
    pub(crate) frame: Vec<u64>,
    /// One a buffer, in manifest order.
    pub(crate) buffers: Vec<Allocation>,
    pub(crate) addresses: Arc<AddressMap>,
    /// Addresses of each module's global variables.
    pub(crate) globals: Vec<Vec<u64>>,
    /// Content of each module's constant bank, where `const` buffers change it.
    pub(crate) const_banks: Vec<Option<Vec<u8>>>,
    /// The host program.
    pub(crate) program: Program,
    /// What the host does at boot after a power failure.
    pub(crate) recovery: Program,
    /// What instrumentation did, and where transactions keep what they need (computed when first asked for).
    pub(crate) settings: Option<Settings>,
    pub(crate) undo: OnceLock<Result<Arc<UndoLog>, Box<Diagnostic>>>,
    /// The program's kernels, formed as they were first asked for: a run, its checks and its crash test ask
    /// alike.
    pub(crate) formed: OnceLock<(RegionOptions, Arc<[FormedKernel]>)>,
}

impl RunPlan {
    /// One of its programs.
    pub(crate) fn part(&self, part: ProgramPart) -> &Program {
        match part {
            ProgramPart::Steps => &self.program,
            ProgramPart::Recovery => &self.recovery,
        }
    }

    /// Value of an expression over what is known before the run.
    pub(crate) fn value(&self, expr: &Expr) -> Result<Value, Diagnostic> {
        expr.value(&mut self.frame.clone())
    }
}
