//! Messages of a machine of CPU cores: what cores and home slices say to each other about lines, and cores
//! and the operating system about calls.
//!
//! | message | from | to | carries |
//! |---|---|---|---|
//! | [`Get`](CpuMsg::Get) | core, OS | home | room |
//! | [`Data`](CpuMsg::Data) | home | core, OS | the line |
//! | [`Probe`](CpuMsg::Probe) | home | owner, sharers | room |
//! | [`ProbeAck`](CpuMsg::ProbeAck) | core | home | the line, if the core has changed it |
//! | [`Put`](CpuMsg::Put), [`PutAck`](CpuMsg::PutAck) | core, and back | home, and back | the line; room |
//! | [`Clean`](CpuMsg::Clean), [`Cleaned`](CpuMsg::Cleaned) | core, and back | home, and back | the line; room |
//! | [`Write`](CpuMsg::Write), [`Written`](CpuMsg::Written) | NIC, and back | home, and back | the line; room |
//! | [`Call`](CpuMsg::Call) ... [`Stop`](CpuMsg::Stop) | core and OS | OS and core | a system call and what follows |
//! | [`Post`](CpuMsg::Post), [`Posted`](CpuMsg::Posted) | core, and back | poster, and back | a verb |
//!
//! Links are FIFO and of constant latency. A core's `ProbeAck`, `Put` and `Clean` of a line leave in the
//! order in which its L1 changed: an answer without bytes that overtakes a `Clean` with bytes loses these,
//! since the core owns the line no more when they come. The protocol is a blocking full-map MESI directory:
//! the home of a line serves one transaction of it at a time, others wait in their order ([`super::home`]).
//! Boxes travel in circles, as in [`super::msg`]: a core's `Get` brings the box in which `Data` comes, a
//! home's `Probe` that of the `ProbeAck`. Source: `hosts` of the design notes; Sorin, Hill, Wood, *A Primer
//! on Memory Consistency and Cache Coherence*, chapter 8. Addresses are physical: of DRAM or of NVM.

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable};
use durawarp_persist::dependency::{self, Dependencies};
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::syscalls::{Call, Reply};

use super::line::Line;
use super::ports::Requester;

/// Bytes of a cache line of CPUs: the block of Zicbom's operations.
pub const CPU_LINE_BYTES: u64 = 64;

/// The mask of all bytes of a CPU's line.
pub const CPU_LINE_MASK: u128 = (1 << CPU_LINE_BYTES) - 1;

/// What a core, or the OS, wants of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A copy to read.
    Shared,
    /// The only copy.
    Exclusive,
    /// Its bytes now, without keeping a copy: the OS.
    Once,
}

/// What the home of a line grants with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// A copy to read, others may have one too: S.
    Shared,
    /// The only copy. The core may change it without asking: E.
    Exclusive,
    /// The only copy, asked for to be changed: M.
    Modified,
    /// The bytes alone.
    Once,
}

/// A step of the OS, which changes its state: a call, the end of a thread, the end of waits.
#[derive(Debug, Clone, Default)]
pub struct SystemStep {
    /// Its number, from 1.
    pub number: u64,
    /// What must be durable before what follows from it.
    pub after: Option<Box<Dependencies>>,
}

/// Everything that cores, homes and the OS send each other. Harts are numbered over all cores: hart `h` is
/// hart `h % harts` of core `h / harts`.
#[derive(Debug)]
pub enum CpuMsg {
    /// To the home: a line is wanted. Answered by [`CpuMsg::Data`].
    Get {
        /// Address of the line's first byte.
        line: u64,
        /// Who asks.
        from: Requester,
        /// The requester's name for the request.
        tag: u16,
        /// What for.
        want: Want,
        /// Room for the line.
        room: Box<Line>,
    },
    /// From the home: the line.
    Data {
        /// The tag of its `Get`.
        tag: u16,
        /// What the requester may do with it.
        grant: Grant,
        /// Its bytes; the mask names all of them.
        data: Box<Line>,
        /// What they depend on, under a scheme that follows it.
        dependencies: Option<Box<Dependencies>>,
    },
    /// From the home: give the line up, or keep a copy to read only. Answered by [`CpuMsg::ProbeAck`] at
    /// once, also by a core that has the line no more; later where a scheme has the line stay.
    Probe {
        /// Address of the line's first byte.
        line: u64,
        /// No copy may stay; else one to read may.
        invalidate: bool,
        /// The home wants the place, not the line.
        recall: bool,
        /// Room for the line.
        room: Box<Line>,
    },
    /// To the home: a probe is obeyed.
    ProbeAck {
        /// Address of the line's first byte.
        line: u64,
        /// Who answers.
        from: Requester,
        /// The core had changed the line since it came or was last written back to the home, and these are
        /// its bytes; else `room` is as it came.
        dirty: bool,
        /// The bytes, or room.
        room: Box<Line>,
        /// What the line depends on.
        dependencies: Option<Box<Dependencies>>,
    },
    /// To the home: a line that was changed leaves its core. Until [`CpuMsg::PutAck`] the core answers probes
    /// of it with its bytes.
    Put {
        /// Address of the line's first byte.
        line: u64,
        /// Whose it was.
        from: Requester,
        /// Its bytes.
        data: Box<Line>,
        /// What they depend on.
        dependencies: Option<Box<Dependencies>>,
    },
    /// From the home: a `Put` has arrived.
    PutAck {
        /// Address of the line's first byte.
        line: u64,
        /// The emptied box.
        room: Box<Line>,
    },
    /// To the home: make the line's bytes durable (`cbo.clean`, `cbo.flush`), wherever they are. Answered by
    /// [`CpuMsg::Cleaned`]. The sender keeps what it had, and holds it unchanged from now on; under `flush`
    /// it has given its copy up.
    Clean {
        /// Address of the line's first byte.
        line: u64,
        /// Who asks.
        from: Requester,
        /// The requester's name for the request.
        tag: u16,
        /// The line leaves all caches, too.
        flush: bool,
        /// It is served before requests that wait for the line, as the sender may have a probe wait for it.
        at_once: bool,
        /// The sender had changed the line, and these are its bytes.
        dirty: bool,
        /// The bytes, or room.
        room: Box<Line>,
        /// What the line depends on.
        dependencies: Option<Box<Dependencies>>,
    },
    /// From the home: all that the line held when `Clean` was served is durable.
    Cleaned {
        /// The tag of its `Clean`.
        tag: u16,
        /// The emptied box.
        room: Box<Line>,
    },
    /// NIC to the home: a whole line is written, and no core keeps a copy. Answered by [`CpuMsg::Written`].
    Write {
        /// Address of the line's first byte.
        line: u64,
        /// Who writes.
        from: Requester,
        /// The requester's name for the request.
        tag: u16,
        /// Its bytes.
        data: Box<Line>,
        /// The entry of the NIC's buffer that makes the line durable; none where nothing does.
        dependencies: Option<Box<Dependencies>>,
    },
    /// From the home: the line is in the shared cache. That does not make it durable.
    Written {
        /// The tag of its `Write`.
        tag: u16,
        /// The emptied box.
        room: Box<Line>,
        /// What must be durable before it.
        dependencies: Option<Box<Dependencies>>,
    },
    /// Core to OS: a hart stands behind `ecall`; all that it did before is performed.
    Call {
        /// What it asks.
        call: Box<Call>,
        /// What must be durable before what others learn of the call.
        dependencies: Option<Box<Dependencies>>,
    },
    /// OS to core: the answer. The hart stores what is to be written, then does the rest; to a
    /// [`Then::Spawn`](durawarp_riscv::syscalls::Then::Spawn) it answers with [`CpuMsg::Begin`], or
    /// [`CpuMsg::Born`] where it names no hart, to a
    /// [`Then::End`](durawarp_riscv::syscalls::Then::End) with [`CpuMsg::Ended`].
    Return {
        hart: u32,
        /// The answer; its `wakes` are empty, the OS sends them itself.
        reply: Box<Reply>,
        /// The step that it is of.
        step: SystemStep,
    },
    /// OS to core: a wait of this hart is over.
    Wake {
        hart: u32,
        /// What goes into its a0.
        result: u64,
        /// The step that woke it.
        step: SystemStep,
    },
    /// OS to core: the hart gives up its thread as soon as it stands between two instructions and all that it
    /// did is performed, or while its call waits. Answered by [`CpuMsg::Left`], or by [`CpuMsg::Ended`] of a
    /// thread that ends before. Without effect on a hart that has no thread any more.
    Leave { hart: u32 },
    /// Core to OS: a hart has given up its thread.
    Left {
        hart: u32,
        /// Its call waits: the result is not in a0 yet.
        waits: bool,
        /// What the thread goes on with.
        state: Box<HartState>,
    },
    /// Core to OS: what a thread begins with that waits for a hart.
    Born {
        /// Its number.
        thread: u64,
        /// With these registers.
        state: Box<HartState>,
    },
    /// Core to OS, which hands it on to the hart's core; or of the OS: a hart begins to run.
    Begin {
        hart: u32,
        /// With these registers.
        state: Box<HartState>,
        /// What must be durable before all that follows from it.
        dependencies: Option<Box<Dependencies>>,
    },
    /// Core to OS: a hart's thread has ended, and its writes are performed.
    Ended {
        hart: u32,
        /// What must be durable before what others learn of the end.
        dependencies: Option<Box<Dependencies>>,
    },
    /// OS to every core: the process has ended; nothing more is executed, stores that have retired are
    /// performed.
    Stop,
    /// Core to poster: a hart posts a verb; all that it stored before is performed.
    Post {
        hart: u32,
        /// Virtual address of the descriptor, which lies in memory.
        descriptor: u64,
        /// Address of the instruction, for faults.
        pc: u64,
    },
    /// Poster to core: so many verbs of a hart to a peer are acknowledged.
    Posted {
        hart: u32,
        /// The peer, from 1.
        peer: u32,
        /// Verbs, since the first.
        acknowledged: u64,
    },
}

/// Machines of cores cannot be saved yet.
impl Storable for CpuMsg {
    fn save(&self, out: &mut StateWriter) {
        out.refuse("a machine of CPU cores");
    }

    fn read(_: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Err(LoadFault::new("a message of a machine of CPU cores"))
    }
}

impl CpuMsg {
    /// A number that stands for its content, for digests; the bytes of lines do not enter.
    pub fn digest(&self) -> u64 {
        // The kind is in the highest four bits: an answer to the NIC has that of the question.
        let of = |kind: u64, line: u64, from: u64, tag: u64| kind << 60 ^ line ^ from << 40 ^ tag << 48;
        let content = match self {
            CpuMsg::Get { line, from, tag, want, .. } => {
                of(1, *line, from.number().into(), (*tag).into()) ^ (*want as u64) << 58
            }
            CpuMsg::Data { tag, grant, .. } => of(2, 0, *grant as u64, (*tag).into()),
            CpuMsg::Probe { line, invalidate, .. } => of(3, *line, u64::from(*invalidate), 0),
            CpuMsg::ProbeAck { line, from, dirty, .. } => of(4, *line, from.number().into(), u64::from(*dirty)),
            CpuMsg::Put { line, from, .. } => of(5, *line, from.number().into(), 0),
            CpuMsg::PutAck { line, .. } => of(6, *line, 0, 0),
            CpuMsg::Clean { line, from, tag, flush, at_once, dirty, .. } => {
                of(7, *line, from.number().into(), (*tag).into())
                    ^ u64::from(*flush) << 58
                    ^ u64::from(*dirty) << 59
                    ^ u64::from(*at_once) << 57
            }
            CpuMsg::Cleaned { tag, .. } => of(8, 0, 0, (*tag).into()),
            CpuMsg::Call { call, .. } => of(9, call.number, call.hart.into(), 0) ^ call.args[0].rotate_left(7),
            CpuMsg::Return { hart, reply, step } => {
                of(10, reply.writes.len() as u64 ^ step.number << 8, (*hart).into(), 0)
            }
            CpuMsg::Wake { hart, result, step } => of(11, *result ^ step.number << 8, (*hart).into(), 0),
            CpuMsg::Begin { hart, state, .. } => of(12, state.pc, (*hart).into(), state.fcsr.into()),
            CpuMsg::Ended { hart, .. } => of(13, 0, (*hart).into(), 0),
            CpuMsg::Stop => of(14, 0, 0, 0),
            CpuMsg::Write { line, from, tag, .. } => of(15, *line, from.number().into(), (*tag).into()),
            // Told apart from others of their number by bits that no address has.
            CpuMsg::Written { tag, .. } => of(15, 0, 0, (*tag).into()) ^ 1 << 59,
            CpuMsg::Post { hart, descriptor, .. } => of(15, *descriptor, (*hart).into(), 0) ^ 1 << 58,
            CpuMsg::Leave { hart } => of(15, 0, (*hart).into(), 1) ^ 1 << 56,
            CpuMsg::Left { hart, waits, state } => of(15, state.pc, (*hart).into(), u64::from(*waits)) ^ 3 << 56,
            CpuMsg::Born { thread, state } => of(15, state.pc, *thread, 0) ^ 5 << 56,
            CpuMsg::Posted { hart, peer, acknowledged } => {
                of(15, *acknowledged, (*hart).into(), (*peer).into()) ^ 1 << 57
            }
        };
        content ^ self.dependencies().map_or(0, |on| dependency::digest(on))
    }

    /// What depends on what it brings: a line, a thread, a step of the OS.
    fn dependencies(&self) -> Option<&Dependencies> {
        match self {
            CpuMsg::Data { dependencies, .. }
            | CpuMsg::Begin { dependencies, .. }
            | CpuMsg::Call { dependencies, .. }
            | CpuMsg::Ended { dependencies, .. }
            | CpuMsg::Return { step: SystemStep { after: dependencies, .. }, .. }
            | CpuMsg::Wake { step: SystemStep { after: dependencies, .. }, .. }
            | CpuMsg::ProbeAck { dependencies, .. }
            | CpuMsg::Put { dependencies, .. }
            | CpuMsg::Clean { dependencies, .. }
            | CpuMsg::Write { dependencies, .. }
            | CpuMsg::Written { dependencies, .. } => dependencies.as_deref(),
            _ => None,
        }
    }
}
