//! The host program as a manifest declares it: steps, launches with their arguments, loops, recovery.

use std::sync::Arc;

use super::buffers::BufferStart;
use super::instrument::{Generated, Undo};
use super::tensor::TensorForm;
use crate::expr::Expr;
use durawarp_base::document::Place;
use durawarp_kernel::ir::{Elem, Kernel};
use durawarp_kernel::reduction::Fold;

/// Warp instructions that recovery may take unless the manifest says otherwise.
pub(crate) const RECOVERY_LIMIT: u64 = 1_000_000;

/// A host step.
#[derive(Debug, Clone)]
pub(crate) enum HostStep {
    Launch(Box<LaunchStep>),
    Copy {
        from: BufferStart,
        to: BufferStart,
        count: Option<Expr>,
        place: Place,
    },
    Fill {
        to: BufferStart,
        value: Expr,
        count: Option<Expr>,
        place: Place,
    },
    /// A tensor's map goes to a buffer.
    Encode(Box<EncodeStep>),
    Swap(usize, usize),
    Reduce(Box<ReduceStep>),
    /// Buffers whose lines the L2 is filled with.
    Warm(Vec<usize>),
    /// A host-side flush: nothing to do as long as host writes are durable at once.
    Persist,
    Loop(Box<LoopStep>),
    /// The host sets the flag of the next launch's transaction; `ends` the transaction.
    Flag {
        buffer: usize,
        value: u32,
        ends: bool,
    },
}

impl HostStep {
    /// It launches clusters of CTAs.
    pub(crate) fn has_clusters(&self) -> bool {
        match self {
            HostStep::Launch(step) => step.has_clusters(),
            HostStep::Loop(step) => step.before.iter().chain(&step.body).any(HostStep::has_clusters),
            _ => false,
        }
    }
}

/// A tensor's map that is made in a buffer, as `cuTensorMapEncodeTiled` and a copy to the device do.
#[derive(Debug, Clone)]
pub(crate) struct EncodeStep {
    pub(crate) place: Place,
    /// The element at which its bytes begin.
    pub(crate) to: BufferStart,
    pub(crate) map: TensorForm,
}

/// A reduction of elements to a variable of the host program.
#[derive(Debug, Clone)]
pub(crate) struct ReduceStep {
    pub(crate) place: Place,
    pub(crate) from: BufferStart,
    pub(crate) field: usize,
    /// Elements; all from the first on by default.
    pub(crate) count: Option<Expr>,
    pub(crate) fold: Fold,
    /// Slot of the variable.
    pub(crate) slot: u16,
}

/// A kernel launch.
#[derive(Debug, Clone)]
pub(crate) struct LaunchStep {
    pub(crate) place: Place,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) module: usize,
    pub(crate) grid: Vec<Expr>,
    pub(crate) block: Vec<Expr>,
    pub(crate) shared: Option<Expr>,
    pub(crate) regs: Option<Expr>,
    pub(crate) carveout_percent: Option<Expr>,
    /// CTAs of a cluster in x, y, z.
    pub(crate) cluster: Option<Vec<Expr>>,
    /// One a parameter of the kernel.
    pub(crate) args: Vec<Arg>,
    /// `[kernel.NAME]`: its threads communicate through shared memory, or not.
    pub(crate) communicates: Option<bool>,
    /// The transactions of an instrumented launch.
    pub(crate) undo: Option<Arc<Undo>>,
    /// What it runs after.
    pub(crate) order: LaunchOrder,
}

impl LaunchStep {
    /// It launches clusters of CTAs.
    pub(crate) fn has_clusters(&self) -> bool {
        self.cluster.is_some() || self.kernel.bounds.has_clusters()
    }
}

/// The place of a launch among others.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaunchOrder {
    pub(crate) stream: u64,
    /// It may begin before the launch before it in its stream is over.
    pub(crate) programmatic: bool,
    /// Numbers of the events that it waits for.
    pub(crate) waits: Vec<usize>,
    /// The event that it records when it is over.
    pub(crate) records: Option<usize>,
}

/// A kernel argument.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    /// The address of an element of a buffer, plus a number of bytes.
    Address { to: BufferStart, bytes: Option<Expr> },
    /// A number, stored as an element type.
    Number { value: Expr, elem: Elem },
    /// A texture object over a buffer in space `texture`.
    Texture(usize),
    /// A tensor's map.
    Tensor(Box<TensorForm>),
    /// A structure: byte offset and part.
    Struct(Vec<(u32, Arg)>),
    /// What instrumentation adds.
    Generated(Generated),
}

/// A loop of host steps.
#[derive(Debug, Clone)]
pub(crate) struct LoopStep {
    pub(crate) place: Place,
    pub(crate) kind: LoopKind,
    /// Steps before each iteration's body.
    pub(crate) before: Vec<HostStep>,
    pub(crate) body: Vec<HostStep>,
    /// Slot that holds the number of the iteration, from 0.
    pub(crate) slot: u16,
}

/// When a loop ends.
#[derive(Debug, Clone)]
pub(crate) enum LoopKind {
    /// After this many iterations.
    Count(Expr),
    /// After the first iteration at whose end the condition holds; more than `max` iterations are a fault.
    Until { condition: Expr, max: Expr },
    /// Before the first iteration at whose start the condition fails; more than `max` iterations are a fault.
    While { condition: Expr, max: Expr },
}

impl LoopKind {
    /// The number of iterations is computed when the loop begins.
    pub(crate) fn counted(&self) -> bool {
        matches!(self, LoopKind::Count(_))
    }
}

/// `[[recovery]]`: what runs at boot after a power failure.
#[derive(Debug, Clone)]
pub(crate) struct RecoveryForm {
    /// Empty where nothing of the program's own runs.
    pub(crate) steps: Vec<HostStep>,
    /// Warp instructions, and host steps, that it may take.
    pub(crate) limit: u64,
}
