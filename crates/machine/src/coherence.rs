//! Messages of a machine of CPU cores: what cores and home slices say to each other about lines, and cores
//! and the operating system about calls.
//!
//! | message | from | to | carries |
//! |---|---|---|---|
//! | [`Get`](HomeMsg::Get) | core, OS, poster | home | room |
//! | [`LineData`] | home | core, OS, poster | the line |
//! | [`Probe`](CoreMsg::Probe) | home | owner, sharers | room |
//! | [`ProbeAck`](HomeMsg::ProbeAck) | core | home | the line, if the core has changed it |
//! | [`Put`](HomeMsg::Put), [`PutAck`](CoreMsg::PutAck) | core, and back | home, and back | the line; room |
//! | [`Clean`](HomeMsg::Clean), [`Cleaned`](CoreMsg::Cleaned) | core, and back | home, and back | the line; room |
//! | [`Write`](HomeMsg::Write), [`Written`] | NIC, and back | home, and back | the line; room |
//! | [`Call`](OsMsg::Call) ... [`Stop`](CoreMsg::Stop) | core and OS | OS and core | a system call and what follows |
//! | [`Post`], [`Posted`](CoreMsg::Posted) | core, and back | poster, and back | a verb |
//!
//! Links are FIFO and of constant latency. A core's `ProbeAck`, `Put` and `Clean` of a line leave in the
//! order in which its L1 changed: an answer without bytes that overtakes a `Clean` with bytes loses these,
//! since the core owns the line no more when they come. The protocol is a blocking full-map MESI directory:
//! the home of a line serves one transaction of it at a time, others wait in their order ([`super::home`]).
//! Boxes travel in circles, as in [`super::payload`]: a core's `Get` brings the box in which `Data` comes, a
//! home's `Probe` that of the `ProbeAck`. Source: `hosts` of the design notes; Sorin, Hill, Wood, *A Primer
//! on Memory Consistency and Cache Coherence*, chapter 8. Addresses are physical: of DRAM or of NVM.
//!
//! [`Post`]: super::verbs::PosterMsg::Post
//! [`Written`]: super::verbs::NicMsg::Written

use durawarp_checkpoint::value;
use durawarp_persist::dependency::{self, Dependencies};
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::syscalls::{Call, Reply};

use super::line::Line;
use super::memory_packet::{MemoryAccepted, MemoryData, MemoryDurable};
use super::packet::PeerMessage;
use super::requester::Requester;

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

value!(choice Want { Shared, Exclusive, Once });

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

value!(choice Grant { Shared, Exclusive, Modified, Once });

/// A step of the OS, which changes its state: a call, the end of a thread, the end of waits.
#[derive(Debug, Clone, Default)]
pub struct SystemStep {
    /// Its number, from 1.
    pub number: u64,
    /// What must be durable before what follows from it.
    pub after: Option<Box<Dependencies>>,
}

value!(record SystemStep { number, after });

/// From the home: a line, in answer to a [`HomeMsg::Get`].
#[derive(Debug)]
pub struct LineData {
    /// The tag of its `Get`.
    pub tag: u16,
    /// What the requester may do with it.
    pub grant: Grant,
    /// Its bytes; the mask names all of them.
    pub data: Box<Line>,
    /// What they depend on, under a scheme that follows it.
    pub dependencies: Option<Box<Dependencies>>,
}

value!(record LineData { tag, grant, data, dependencies });

impl LineData {
    /// As of every message: a number for its content.
    pub fn digest(&self) -> u64 {
        content(2, 0, self.grant as u64, self.tag.into()) ^ depends(self.dependencies.as_deref())
    }
}

/// A hart begins to run.
#[derive(Debug)]
pub struct Begin {
    pub hart: u32,
    /// With these registers.
    pub state: Box<HartState>,
    /// What must be durable before all that follows from it.
    pub dependencies: Option<Box<Dependencies>>,
}

value!(record Begin { hart, state, dependencies });

impl Begin {
    /// As of every message: a number for its content.
    pub fn digest(&self) -> u64 {
        content(12, self.state.pc, self.hart.into(), self.state.fcsr.into()) ^ depends(self.dependencies.as_deref())
    }
}

/// What a core receives. Harts are numbered over all cores: hart `h` is hart `h % harts` of core `h / harts`.
#[derive(Debug)]
pub enum CoreMsg {
    /// From the home: a line.
    Data(LineData),
    /// From the home: give the line up, or keep a copy to read only. Answered by [`HomeMsg::ProbeAck`] at
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
    /// From the home: a `Put` has arrived.
    PutAck {
        /// Address of the line's first byte.
        line: u64,
        /// The emptied box.
        room: Box<Line>,
    },
    /// From the home: all that the line held when `Clean` was served is durable.
    Cleaned {
        /// The tag of its `Clean`.
        tag: u16,
        /// The emptied box.
        room: Box<Line>,
    },
    /// From the OS: the answer to a call. The hart stores what is to be written, then does the rest; to a
    /// [`Then::Spawn`](durawarp_riscv::syscalls::Then::Spawn) it answers with [`OsMsg::Begin`], or
    /// [`OsMsg::Born`] where it names no hart, to a
    /// [`Then::End`](durawarp_riscv::syscalls::Then::End) with [`OsMsg::Ended`].
    Return {
        hart: u32,
        /// The answer; its `wakes` are empty, the OS sends them itself.
        reply: Box<Reply>,
        /// The step that it is of.
        step: SystemStep,
    },
    /// From the OS: a wait of this hart is over.
    Wake {
        hart: u32,
        /// What goes into its a0.
        result: u64,
        /// The step that woke it.
        step: SystemStep,
    },
    /// From the OS: the hart gives up its thread as soon as it stands between two instructions and all that
    /// it did is performed, or while its call waits. Answered by [`OsMsg::Left`], or by [`OsMsg::Ended`] of a
    /// thread that ends before. Without effect on a hart that has no thread any more.
    Leave { hart: u32 },
    /// From the OS: a hart begins to run.
    Begin(Begin),
    /// From the OS, to every core: the process has ended; nothing more is executed, stores that have retired
    /// are performed.
    Stop,
    /// From the poster: how many verbs of a hart to a peer are acknowledged.
    Posted {
        hart: u32,
        /// The peer, from 1.
        peer: u32,
        /// Verbs, since the first.
        acknowledged: u64,
    },
    /// To its handler.
    Peer(PeerMessage),
}

value!(choice CoreMsg {
    Data(line), Probe { line, invalidate, recall, room }, PutAck { line, room }, Cleaned { tag, room },
    Return { hart, reply, step }, Wake { hart, result, step }, Leave { hart }, Begin(begin), Stop,
    Posted { hart, peer, acknowledged }, Peer(message),
});

/// What a home slice receives.
#[derive(Debug)]
pub enum HomeMsg {
    /// A line is wanted. Answered by [`LineData`].
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
    /// A probe is obeyed.
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
    /// A line that was changed leaves its core. Until [`CoreMsg::PutAck`] the core answers probes of it with
    /// its bytes.
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
    /// Make the line's bytes durable (`cbo.clean`, `cbo.flush`), wherever they are. Answered by
    /// [`CoreMsg::Cleaned`]. The sender keeps what it had, and holds it unchanged from now on; under `flush`
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
    /// From the NIC: a whole line is written, and no core keeps a copy. Answered by
    /// [`NicMsg::Written`](super::verbs::NicMsg::Written).
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
    /// From its controller: a line.
    MemoryData(MemoryData),
    /// From its controller: a write is accepted.
    MemoryAccepted(MemoryAccepted),
    /// From its controller: a write is durable.
    MemoryDurable(MemoryDurable),
    /// To its handler.
    Peer(PeerMessage),
}

value!(choice HomeMsg {
    Get { line, from, tag, want, room }, ProbeAck { line, from, dirty, room, dependencies },
    Put { line, from, data, dependencies }, Clean { line, from, tag, flush, at_once, dirty, room, dependencies },
    Write { line, from, tag, data, dependencies }, MemoryData(data), MemoryAccepted(accepted), MemoryDurable(durable),
    Peer(message),
});

/// What the operating system receives.
#[derive(Debug)]
pub enum OsMsg {
    /// A hart stands behind `ecall`; all that it did before is performed.
    Call {
        /// What it asks.
        call: Box<Call>,
        /// What must be durable before what others learn of the call.
        dependencies: Option<Box<Dependencies>>,
    },
    /// A hart's thread has ended, and its writes are performed.
    Ended {
        hart: u32,
        /// What must be durable before what others learn of the end.
        dependencies: Option<Box<Dependencies>>,
    },
    /// From a home: a line.
    Data(LineData),
    /// A hart has given up its thread.
    Left {
        hart: u32,
        /// Its call waits: the result is not in a0 yet.
        waits: bool,
        /// What the thread goes on with.
        state: Box<HartState>,
    },
    /// What a thread begins with that waits for a hart.
    Born {
        /// Its number.
        thread: u64,
        /// With these registers.
        state: Box<HartState>,
    },
    /// To be handed on to the hart's core.
    Begin(Begin),
}

value!(choice OsMsg {
    Call { call, dependencies }, Ended { hart, dependencies }, Data(line), Left { hart, waits, state },
    Born { thread, state }, Begin(begin),
});

/// The kind is in the highest four bits: an answer to the NIC has that of the question.
pub(super) fn content(kind: u64, line: u64, from: u64, tag: u64) -> u64 {
    kind << 60 ^ line ^ from << 40 ^ tag << 48
}

/// A number for what depends on what a message brings: a line, a thread, a step of the OS.
pub(super) fn depends(on: Option<&Dependencies>) -> u64 {
    on.map_or(0, |on| dependency::digest(on))
}

impl CoreMsg {
    /// A number that stands for its content, for digests; the bytes of lines do not enter.
    pub fn digest(&self) -> u64 {
        match self {
            CoreMsg::Data(line) => line.digest(),
            CoreMsg::Probe { line, invalidate, .. } => content(3, *line, u64::from(*invalidate), 0),
            CoreMsg::PutAck { line, .. } => content(6, *line, 0, 0),
            CoreMsg::Cleaned { tag, .. } => content(8, 0, 0, (*tag).into()),
            CoreMsg::Return { hart, reply, step } => {
                content(10, reply.writes.len() as u64 ^ step.number << 8, (*hart).into(), 0)
                    ^ depends(step.after.as_deref())
            }
            CoreMsg::Wake { hart, result, step } => {
                content(11, *result ^ step.number << 8, (*hart).into(), 0) ^ depends(step.after.as_deref())
            }
            CoreMsg::Begin(begin) => begin.digest(),
            CoreMsg::Stop => content(14, 0, 0, 0),
            // Told apart from others of their number by bits that no address has.
            CoreMsg::Leave { hart } => content(15, 0, (*hart).into(), 1) ^ 1 << 56,
            CoreMsg::Posted { hart, peer, acknowledged } => {
                content(15, *acknowledged, (*hart).into(), (*peer).into()) ^ 1 << 57
            }
            CoreMsg::Peer(message) => message.digest(),
        }
    }
}

impl HomeMsg {
    /// A number that stands for its content, for digests; the bytes of lines do not enter.
    pub fn digest(&self) -> u64 {
        match self {
            HomeMsg::Get { line, from, tag, want, .. } => {
                content(1, *line, from.number().into(), (*tag).into()) ^ (*want as u64) << 58
            }
            HomeMsg::ProbeAck { line, from, dirty, dependencies, .. } => {
                content(4, *line, from.number().into(), u64::from(*dirty)) ^ depends(dependencies.as_deref())
            }
            HomeMsg::Put { line, from, dependencies, .. } => {
                content(5, *line, from.number().into(), 0) ^ depends(dependencies.as_deref())
            }
            HomeMsg::Clean { line, from, tag, flush, at_once, dirty, dependencies, .. } => {
                content(7, *line, from.number().into(), (*tag).into())
                    ^ u64::from(*flush) << 58
                    ^ u64::from(*dirty) << 59
                    ^ u64::from(*at_once) << 57
                    ^ depends(dependencies.as_deref())
            }
            HomeMsg::Write { line, from, tag, dependencies, .. } => {
                content(15, *line, from.number().into(), (*tag).into()) ^ depends(dependencies.as_deref())
            }
            HomeMsg::MemoryData(data) => data.digest(),
            HomeMsg::MemoryAccepted(accepted) => accepted.digest(),
            HomeMsg::MemoryDurable(durable) => durable.digest(),
            HomeMsg::Peer(message) => message.digest(),
        }
    }
}

impl OsMsg {
    /// A number that stands for its content, for digests.
    pub fn digest(&self) -> u64 {
        match self {
            OsMsg::Call { call, dependencies } => {
                content(9, call.number, call.hart.into(), 0)
                    ^ call.args[0].rotate_left(7)
                    ^ depends(dependencies.as_deref())
            }
            OsMsg::Ended { hart, dependencies } => content(13, 0, (*hart).into(), 0) ^ depends(dependencies.as_deref()),
            OsMsg::Data(line) => line.digest(),
            OsMsg::Left { hart, waits, state } => content(15, state.pc, (*hart).into(), u64::from(*waits)) ^ 3 << 56,
            OsMsg::Born { thread, state } => content(15, state.pc, *thread, 0) ^ 5 << 56,
            OsMsg::Begin(begin) => begin.digest(),
        }
    }
}
