//! What a driver and the system say to each other: a call, what it needs to read, what it does.

use std::sync::Arc;

use durawarp_checkpoint::value;

/// A system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The hart that makes it.
    pub hart: u32,
    /// Its number: register a7.
    pub number: u64,
    /// Its arguments: registers a0 to a5.
    pub args: [u64; 6],
    /// Nanoseconds since the program began.
    pub now_ns: u64,
}

value!(record Call { hart, number, args, now_ns });

/// What comes next of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStep {
    /// The call needs these bytes of memory, which all lie in one window. Perform it again with one more
    /// reading.
    Read {
        /// First address.
        address: u64,
        bytes: u64,
    },
    Done(Reply),
}

/// What a call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Stores of the calling hart, in order, before anything else.
    pub writes: Vec<Write>,
    /// What the calling hart does next.
    pub then: Then,
    /// Harts whose waiting ends.
    pub wakes: Vec<Wake>,
}

value!(record Reply { writes, then, wakes });

/// A store of a call. It lies in one window and not in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// First address.
    pub address: u64,
    /// The bytes.
    pub data: Data,
}

value!(record Write { address, data });

/// What a call stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// These bytes.
    Bytes(Vec<u8>),
    /// As many zeros.
    Zeros(u64),
}

value!(choice Data { Bytes(bytes), Zeros(count) });

/// What a hart does after its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Goes on with this value in a0.
    Return(u64),
    /// Goes on with this value in a0, but lets others run first.
    Yield(u64),
    /// Waits until a [`Wake`] names it.
    Wait,
    /// Goes on with `result` in a0; a thread begins as its copy, but for a0 (0), sp and tp.
    Spawn {
        /// The hart that runs the new thread; `None`: the driver keeps its registers, calls
        /// [`Os::born`](super::Os::born), and it waits for a hart.
        hart: Option<u32>,
        /// Its stack pointer.
        stack: u64,
        /// Its thread pointer; `None`: that of the calling hart.
        thread: Option<u64>,
        /// The thread's number.
        result: u64,
        /// The word that is set to 0 when it ends.
        clear: Option<u64>,
    },
    /// The thread ends: the driver calls [`Os::ended`](super::Os::ended) when its writes are stored.
    End,
    /// The process ends with this exit code.
    Exit(i32),
    /// The program sent itself a signal that ends it.
    Signal(u32),
    /// A thread was to be started, every hart has one, and threads do not share harts.
    NoFreeHart,
}

value!(choice Then {
    Return(value), Yield(value), Wait, Spawn { hart, stack, thread, result, clear }, End, Exit(code), Signal(number),
    NoFreeHart,
});

/// A hart whose waiting ends, and the result of the call with which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    pub hart: u32,
    /// What goes into its a0.
    pub result: u64,
}

value!(record Wake { hart, result });

/// A step by which threads share harts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// The hart gives up its thread, between two instructions or while its call waits. The driver keeps the
    /// registers and calls [`Os::left`](super::Os::left).
    Take {
        hart: u32,
        /// The thread does not wait: its time is over, or it yields.
        preempts: bool,
    },
    /// A thread whose registers the driver keeps goes on.
    Give {
        /// On this hart, which has none.
        hart: u32,
        /// The thread's number.
        thread: u64,
        /// What goes into its a0 first, where it waited in a call.
        result: Option<u64>,
    },
}

/// A thread that waits in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingThread {
    /// Its number.
    pub thread: u64,
    /// The hart that it has.
    pub hart: Option<u32>,
    /// Address of its futex; none when it sleeps.
    pub futex: Option<u64>,
}

/// A file: given to a program, or written by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path, as the program names it.
    pub path: String,
    pub content: Arc<Vec<u8>>,
}
