//! Host steps as a list of operations with jumps, so that an index says where a program is.

use std::sync::Arc;

use crate::expr::Expr;
use crate::manifest::buffers::BufferStart;
use crate::manifest::steps::{EncodeStep, HostStep, LaunchStep, LoopKind, ReduceStep};
use durawarp_base::document::Place;
use durawarp_kernel::ir::Kernel;

/// The steps, laid out.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) operations: Vec<Operation>,
    pub(crate) loops: Vec<Loop>,
    /// Slots of the variables that reductions set.
    pub(crate) variables: Vec<usize>,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum Operation {
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
    Encode(Box<EncodeStep>),
    Swap(usize, usize),
    Reduce(Box<ReduceStep>),
    Warm(Vec<usize>),
    /// Sets the flag of the next transaction, or ends it.
    Flag {
        buffer: usize,
        value: u32,
        ends: bool,
    },
    /// Starts loop `number`, or jumps to `exit`.
    Enter {
        number: usize,
        exit: usize,
    },
    /// Leaves a `while` loop whose condition fails.
    Test {
        number: usize,
        exit: usize,
    },
    /// Ends an iteration: back to `start`, or on.
    Next {
        number: usize,
        start: usize,
    },
}

/// A loop of them.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) place: Place,
    pub(crate) slot: usize,
}

impl Program {
    /// Lays out steps.
    pub(crate) fn new(steps: &[HostStep]) -> Self {
        let mut program = Program { operations: Vec::new(), loops: Vec::new(), variables: Vec::new() };
        program.add(steps);
        program.variables.sort_unstable();
        program.variables.dedup();
        program
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The kernel of every launch step.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        self.launches().map(|step| &step.kernel)
    }

    /// Every launch step.
    pub(crate) fn launches(&self) -> impl Iterator<Item = &LaunchStep> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Launch(step) => Some(&**step),
            _ => None,
        })
    }

    /// Launches may run at once, and the host does nothing to a transaction between them.
    pub(crate) fn overlaps(&self) -> bool {
        let mut streams = self.launches().map(|step| step.order.stream);
        let first = streams.next();
        let several = streams.any(|stream| Some(stream) != first);
        let programmatic = self.launches().any(|step| step.order.programmatic);
        (several || programmatic) && self.launches().all(|step| step.undo.is_none())
    }

    /// A launch has clusters of CTAs.
    pub(crate) fn has_clusters(&self) -> bool {
        self.launches().any(LaunchStep::has_clusters)
    }

    fn add(&mut self, steps: &[HostStep]) {
        for step in steps {
            match step {
                HostStep::Launch(launch) => self.operations.push(Operation::Launch(launch.clone())),
                HostStep::Copy { from, to, count, place } => self.operations.push(Operation::Copy {
                    from: from.clone(),
                    to: to.clone(),
                    count: count.clone(),
                    place: place.clone(),
                }),
                HostStep::Fill { to, value, count, place } => self.operations.push(Operation::Fill {
                    to: to.clone(),
                    value: value.clone(),
                    count: count.clone(),
                    place: place.clone(),
                }),
                HostStep::Encode(step) => self.operations.push(Operation::Encode(step.clone())),
                HostStep::Swap(a, b) => self.operations.push(Operation::Swap(*a, *b)),
                HostStep::Reduce(step) => {
                    // A reduction's variable outlives its operation, so that it is a part of the program's
                    // position.
                    self.variables.push(usize::from(step.slot));
                    self.operations.push(Operation::Reduce(step.clone()));
                }
                HostStep::Warm(buffers) => self.operations.push(Operation::Warm(buffers.clone())),
                HostStep::Persist => {}
                HostStep::Flag { buffer, value, ends } => {
                    self.operations.push(Operation::Flag { buffer: *buffer, value: *value, ends: *ends });
                }
                HostStep::Loop(inner) => {
                    let number = self.loops.len();
                    let (kind, place, slot) = (inner.kind.clone(), inner.place.clone(), usize::from(inner.slot));
                    self.loops.push(Loop { kind, place, slot });
                    let enter = self.operations.len();
                    // Exits of 0 stand for those that are known only when the body is laid out.
                    self.operations.push(Operation::Enter { number, exit: 0 });
                    let start = self.operations.len();
                    if matches!(inner.kind, LoopKind::While { .. }) {
                        self.operations.push(Operation::Test { number, exit: 0 });
                    }
                    self.add(&inner.before);
                    self.add(&inner.body);
                    self.operations.push(Operation::Next { number, start });
                    let end = self.operations.len();
                    // Without a test, `start` is the first operation of the body, perhaps the `Enter` of an
                    // inner loop, whose exit is set.
                    for at in [enter, start] {
                        if let Operation::Enter { exit, .. } | Operation::Test { exit, .. } = &mut self.operations[at]
                            && *exit == 0
                        {
                            *exit = end;
                        }
                    }
                }
            }
        }
    }
}
