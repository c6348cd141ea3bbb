//! Faults of the simulated program, with the place in its source.

use std::fmt;
use std::sync::Arc;

use super::ir::{SourcePos, Trap};
use super::launch::Launch;
use super::warp::Warp;

/// A fault of the simulated program: where in the PTX, which thread, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Kernel name.
    pub kernel: String,
    /// PTX file.
    pub file: Arc<str>,
    /// Place in it.
    pub pos: SourcePos,
    /// CTA index.
    pub cta: [u32; 3],
    /// Thread index in the CTA.
    pub thread: [u32; 3],
}

/// The kinds of program faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every allocated range (or outside shared, local, constant memory).
    OutOfBounds {
        /// Address accessed, in the space named.
        address: u64,
        /// Bytes accessed.
        bytes: u32,
        /// "global", "shared", "local", "const".
        space: &'static str,
        /// Where the address lies relative to the nearest allocation, or how much memory there is.
        hint: String,
    },
    /// An access whose address is not a multiple of its size.
    Misaligned {
        /// Address accessed.
        address: u64,
        /// Bytes accessed: the required alignment.
        bytes: u32,
        /// "global", "shared", "local", "const".
        space: &'static str,
    },
    /// Some lanes of a warp wait at a barrier while others of it, on another path, have a barrier still to
    /// come: the ISA leaves undefined what happens.
    DivergentBarrier {
        /// Which barrier: `barrier 0`, `pm.barrier.wg`.
        barrier: String,
        /// Thread (in the CTA) of the first lane that is elsewhere.
        absent: [u32; 3],
        /// Where it is.
        elsewhere: SourcePos,
    },
    /// `trap` was executed.
    Trap,
    /// An indirect call of what is no function, or of one that the call cannot reach.
    Callee {
        /// The value called.
        value: u64,
    },
    /// A call of a recursive function whose frame does not fit on the thread's stack.
    StackOverflow {
        /// Which call of the chain it is, 1 being that of the kernel.
        depth: u32,
        /// Bytes of the stack.
        bytes: u32,
    },
    /// A return to a place other than the instruction after the call: the program overwrote the return
    /// address in its local memory.
    ReturnSite {
        /// The program counter that was there.
        found: u32,
    },
    /// `brx.idx` with an index beyond its list of targets.
    BranchIndex {
        index: u32,
        /// Length of the list.
        targets: u32,
    },
    /// A barrier whose registers name no barrier, or no number of threads that one can wait for.
    BarrierOperand {
        /// "barrier" or "count of threads".
        what: &'static str,
        value: u32,
    },
    /// An asynchronous copy, or a barrier in shared memory, used in a way that the ISA leaves undefined.
    Asynchronous(String),
    /// An instruction that this memory or machine cannot do (an atomic on constant memory, say).
    Unsupported(String),
}

impl ProgramFault {
    /// The fault of a trap that these lanes of a warp execute, of which there is one at least: that of the
    /// lowest lane.
    pub fn of_trap(trap: Trap, launch: &Launch, warp: &Warp, lanes: u64) -> Self {
        let (pc, lane) = (warp.pc(), lanes.trailing_zeros());
        let inst = &launch.kernel.code[pc as usize];
        let kind = match trap {
            Trap::Asked => FaultKind::Trap,
            Trap::Callee => FaultKind::Callee { value: warp.operand64(inst.src[0], launch, lane) },
            Trap::Target(targets) => {
                FaultKind::BranchIndex { index: warp.operand32(inst.src[0], launch, lane), targets }
            }
        };
        ProgramFault::new(kind, launch, warp, pc, lane)
    }

    /// A fault of one lane of a warp at an instruction.
    pub fn new(kind: FaultKind, launch: &Launch, warp: &Warp, pc: u32, lane: u32) -> Self {
        let (cta, thread) = warp.thread_of(lane);
        ProgramFault {
            kind,
            kernel: launch.kernel.name.clone(),
            file: launch.kernel.file.clone(),
            pos: launch.kernel.pos.get(pc as usize).copied().unwrap_or_default(),
            cta: launch.cta_index(cta),
            thread: launch.thread_index(thread),
        }
    }
}

impl fmt::Display for ProgramFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The place comes first, in the form in which compilers write it.
        write!(f, "{}:{}:{}: kernel `{}`, ", self.file, self.pos.line, self.pos.column, self.kernel)?;
        let ([cx, cy, cz], [tx, ty, tz]) = (self.cta, self.thread);
        write!(f, "CTA ({cx},{cy},{cz}) thread ({tx},{ty},{tz}): ")?;
        match &self.kind {
            FaultKind::OutOfBounds { address, bytes, space, hint } => {
                write!(f, "{bytes}-byte {space} access at {address:#x} is out of bounds")?;
                if hint.is_empty() { Ok(()) } else { write!(f, " ({hint})") }
            }
            FaultKind::Misaligned { address, bytes, space } => {
                write!(f, "{space} access at {address:#x} is not aligned to its {bytes} bytes")
            }
            FaultKind::DivergentBarrier { barrier, absent: [x, y, z], elsewhere } => {
                write!(f, "{barrier} is executed by a part of its warp: thread ({x},{y},{z}) is at line ")?;
                write!(f, "{}, column {}", elsewhere.line, elsewhere.column)
            }
            FaultKind::Trap => write!(f, "trap executed"),
            FaultKind::Callee { value } => {
                write!(f, "indirect call of {value:#x}, which is the address of no function that this call may reach")?;
                if *value == 0 { write!(f, " (a null pointer?)") } else { Ok(()) }
            }
            FaultKind::StackOverflow { depth, bytes } => {
                write!(f, "stack overflow at depth {depth}: {bytes} bytes a thread have no room for this call's frame")
            }
            FaultKind::ReturnSite { found } => {
                write!(f, "the return site on the stack was overwritten: pc {found} is not behind the call")
            }
            FaultKind::BranchIndex { index, targets } => {
                write!(f, "`brx.idx` to target {index} of a list of {targets}")
            }
            FaultKind::BarrierOperand { what, value } => write!(
                f,
                "{value} is no {what} (barriers are 0 to 15, counts multiples of 32 up to 1024), or differs in the warp"
            ),
            FaultKind::Asynchronous(what) | FaultKind::Unsupported(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for ProgramFault {}
