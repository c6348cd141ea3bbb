//! Every message between components of the machine, by the kind of component that receives it.
//!
//! Each kind has an *inbox*: an enum of all that it can receive, and of nothing else. [`Msg`] is what the
//! engine carries, with one variant for each inbox. A component handles its inbox in [`Receiver::receive`],
//! variant by variant and without a wildcard, so that a message that it forgets does not compile; a port
//! ([`super::ports::To`]) takes what the inbox at its far end takes, so that a message to the wrong kind of
//! component does not compile either. What is left to go wrong is a link that a topology ties to another
//! component than its port says: [`deliver`] panics there, the one place that does.
//!
//! A message is at most 64 bytes, moved and never cloned. What messages carry is in [`super::packet`],
//! [`super::payload`] and [`super::memory_packet`]; the inboxes of a machine of cores are in
//! [`super::coherence`] and [`super::verbs`].

use std::fmt;
use std::sync::Arc;

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable, value};
use durawarp_engine::{Ctx, Message};
use durawarp_kernel::launch::Launch;
use durawarp_persist::handler::LaunchSet;

use super::coherence::{CoreMsg, HomeMsg, LineData, OsMsg};
use super::look::{Lines, Look};
use super::remote::{ClusterPlaces, ClusterWord, PairMessage, RemoteAccess, RemotePart};
use super::requester::Requester;
use super::verbs::{ClientMsg, NicMsg, PersistAck, PosterMsg};

pub use super::line::{
    Line, LinePool, MAX_LINE_BYTES, SECTOR_BYTES, copy_masked, differ_masked, sector_bytes, sectors_covered,
    sectors_touched,
};
pub use super::memory_packet::{MemoryAccepted, MemoryData, MemoryDurable, MemoryRead, MemoryWrite};
pub use super::packet::{Credit, GridOrder, GridReport, HEADER_BYTES, PeerMessage, Reply, Request, RequestKind};
pub use super::payload::{Atomics, Passed, Payload, Persist};

/// Which launch one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchPlace {
    /// Its place among those in flight; 0 where launches run one after another.
    pub place: u8,
    /// Its number in the program, from 0.
    pub number: u32,
    /// A launch that it depends on still runs.
    pub depends: bool,
    /// Launches in flight beside it.
    pub beside: LaunchSet,
}

value!(record LaunchPlace { place, number, depends, beside });

/// What an SM receives.
#[derive(Debug)]
pub enum SmMsg {
    /// From a slice: the answer to a request.
    Reply(Reply),
    /// From a slice or the switch of requests: there is room again.
    Credit(Credit),
    /// From a slice of an inclusive L2: a line has left it, and leaves the L1.
    Invalidate {
        /// Address of the line's first byte.
        line: u64,
        /// Bytes of the packet; 0 outside of simulated time.
        bytes: u32,
    },
    /// From the command processor: a launch starts; its CTAs follow.
    Start {
        /// It.
        launch: Arc<Launch>,
        /// Which it is.
        at: LaunchPlace,
        /// Ways of the L1, where the launch decides how many there are and is alone.
        l1_ways: Option<u32>,
    },
    /// From the command processor: run this CTA of a launch.
    Cta {
        /// Its place in the order in which CTAs of the launch begin.
        cta: u64,
        /// The place of the launch.
        place: u8,
        /// Other ways of the L1 for it, on an SM without CTAs.
        l1_ways: Option<u32>,
        /// Its cluster, where the launch has clusters.
        cluster: Option<Box<ClusterPlaces>>,
    },
    /// From an SM of its GPC: an access to shared memory here.
    Remote(Box<RemoteAccess>),
    /// From an SM of its GPC: the answer to such an access.
    RemoteAnswer(Box<RemoteAccess>),
    /// From an SM of its GPC: a part of a bulk copy to shared memory here.
    Copied(Box<RemotePart>),
    /// From an SM of its GPC: such a part is there.
    CopiedAnswer(Box<RemotePart>),
    /// From an SM of its GPC: an arrival at the barrier of a cluster.
    Cluster(ClusterWord),
    /// From an SM of its GPC: a word on the tensor memory of a pair of CTAs.
    Pair(Box<PairMessage>),
    /// From the command processor: a step of a persist barrier of the kernel.
    Grid(GridOrder),
    /// To its handler.
    Peer(PeerMessage),
    /// From the command processor: the answer to a request for a cluster that has not begun.
    Cancelled {
        /// The bulk copy that brings the answer to shared memory.
        copy: u16,
        /// Place of the first CTA of the cluster, in the order in which CTAs begin; none was left.
        first: Option<u64>,
    },
    /// From the command processor: what a launch depended on is over.
    PrerequisitesOver {
        /// The place of the launch.
        place: u8,
        /// Launches in flight, this one among them.
        beside: LaunchSet,
    },
}

value!(choice SmMsg {
    Reply(reply), Credit(credit), Invalidate { line, bytes }, Start { launch, at, l1_ways },
    Cta { cta, place, l1_ways, cluster }, Remote(access), RemoteAnswer(access), Copied(part), CopiedAnswer(part),
    Cluster(word), Pair(message), Grid(order), Peer(message), Cancelled { copy, first },
    PrerequisitesOver { place, beside },
});

impl SmMsg {
    fn digest(&self) -> u64 {
        match self {
            SmMsg::Reply(reply) => reply.digest(),
            SmMsg::Credit(credit) => credit.digest(),
            SmMsg::Invalidate { line, .. } => 13 << 60 ^ line,
            SmMsg::Start { at, .. } => 7 << 60 ^ u64::from(at.place) << 48,
            SmMsg::Cta { cta, place, .. } => 8 << 60 ^ u64::from(*place) << 48 ^ cta,
            SmMsg::Remote(access) => access.digest(),
            SmMsg::RemoteAnswer(access) => access.digest().rotate_left(1),
            SmMsg::Copied(part) => part.digest(),
            SmMsg::CopiedAnswer(part) => part.digest().rotate_left(1),
            SmMsg::Cluster(word) => word.digest(),
            SmMsg::Pair(message) => message.digest(),
            SmMsg::Grid(order) => order.digest(),
            SmMsg::Peer(message) => message.digest(),
            SmMsg::Cancelled { copy, first } => 6 << 60 ^ u64::from(*copy) << 44 ^ first.map_or(0, |first| first + 1),
            SmMsg::PrerequisitesOver { place, .. } => 5 << 60 ^ u64::from(*place) << 48,
        }
    }
}

/// What the command processor receives.
#[derive(Debug)]
pub enum CommandProcessorMsg {
    /// From a slice: the answer to a request.
    Reply(Reply),
    /// From a slice or the switch of requests: there is room again.
    Credit(Credit),
    /// From a slice: what the host looks at.
    Lines(Box<Lines>),
    /// From an SM: a CTA has ended and all its stores are performed.
    CtaDone {
        /// Which SM.
        sm: u16,
        /// The place of its launch.
        place: u8,
        /// It has said before that it lets the launch begin that depends on its own.
        let_go: bool,
    },
    /// From an SM: a CTA lets the launch begin that depends on its own.
    LetsGo {
        /// The place of its launch.
        place: u8,
    },
    /// From an SM: a step of a persist barrier of the kernel.
    Grid(GridReport),
    /// From an SM: a CTA asks for a cluster that has not begun.
    Cancel {
        /// Which SM.
        sm: u16,
        /// The place of its launch.
        place: u8,
        /// The bulk copy that brings the answer to shared memory.
        copy: u16,
    },
}

value!(choice CommandProcessorMsg {
    Reply(reply), Credit(credit), Lines(lines), CtaDone { sm, place, let_go }, LetsGo { place }, Grid(report),
    Cancel { sm, place, copy },
});

impl CommandProcessorMsg {
    fn digest(&self) -> u64 {
        match self {
            CommandProcessorMsg::Reply(reply) => reply.digest(),
            CommandProcessorMsg::Credit(credit) => credit.digest(),
            CommandProcessorMsg::Lines(lines) => lines.digest(),
            CommandProcessorMsg::CtaDone { sm, place, let_go } => {
                9 << 60 | u64::from(*place) << 48 | u64::from(*let_go) << 32 | u64::from(*sm)
            }
            CommandProcessorMsg::LetsGo { place } => 5 << 60 | u64::from(*place) << 48,
            CommandProcessorMsg::Grid(report) => report.digest(),
            CommandProcessorMsg::Cancel { sm, place, copy } => {
                6 << 60 | u64::from(*place) << 48 | u64::from(*copy) << 16 | u64::from(*sm)
            }
        }
    }
}

/// What a slice of the L2 receives.
#[derive(Debug)]
pub enum SliceMsg {
    /// From a requester, or for it from the switch of requests.
    Request(Request),
    /// From its controller: the sectors read.
    MemoryData(MemoryData),
    /// From its controller: a write is accepted.
    MemoryAccepted(MemoryAccepted),
    /// From its controller: a write is durable.
    MemoryDurable(MemoryDurable),
    /// From the command processor: the host looks at memory, or fills the L2, outside simulated time.
    Look(Arc<Look>),
    /// From its controller: the lines that it looks at.
    Lines(Box<Lines>),
    /// To its handler.
    Peer(PeerMessage),
}

value!(choice SliceMsg {
    Request(request), MemoryData(data), MemoryAccepted(accepted), MemoryDurable(durable), Look(look), Lines(lines),
    Peer(message),
});

impl SliceMsg {
    fn digest(&self) -> u64 {
        match self {
            SliceMsg::Request(request) => request.digest(),
            SliceMsg::MemoryData(data) => data.digest(),
            SliceMsg::MemoryAccepted(accepted) => accepted.digest(),
            SliceMsg::MemoryDurable(durable) => durable.digest(),
            SliceMsg::Look(look) => 14 << 60 | look.ranges.len() as u64,
            SliceMsg::Lines(lines) => lines.digest(),
            SliceMsg::Peer(message) => message.digest(),
        }
    }
}

/// What a memory controller receives; all but words of handlers from its own slices.
#[derive(Debug)]
pub enum ControllerMsg {
    /// Read sectors of a line.
    MemoryRead(MemoryRead),
    /// Write bytes of a line.
    MemoryWrite(MemoryWrite),
    /// What the host looks at.
    Lines(Box<Lines>),
    /// To its handler.
    Peer(PeerMessage),
}

value!(choice ControllerMsg { MemoryRead(read), MemoryWrite(write), Lines(lines), Peer(message) });

impl ControllerMsg {
    fn digest(&self) -> u64 {
        match self {
            ControllerMsg::MemoryRead(read) => read.digest(),
            ControllerMsg::MemoryWrite(write) => write.digest(),
            ControllerMsg::Lines(lines) => lines.digest(),
            ControllerMsg::Peer(message) => message.digest(),
        }
    }
}

/// What a switch of the crossbar receives.
#[derive(Debug)]
pub enum SwitchMsg {
    /// From a requester: to the slice of its line.
    Request(Request),
    /// From a slice.
    Switched {
        /// Which slice.
        from: u16,
        /// Which requester.
        to: Requester,
        /// What it gets.
        reply: Reply,
    },
}

value!(choice SwitchMsg { Request(request), Switched { from, to, reply } });

impl SwitchMsg {
    fn digest(&self) -> u64 {
        match self {
            SwitchMsg::Request(request) => request.digest(),
            SwitchMsg::Switched { from, to, reply } => {
                14 << 60
                    ^ u64::from(*from) << 48
                    ^ u64::from(to.number()) << 32
                    ^ u64::from(reply.tag) << 8
                    ^ u64::from(reply.sectors)
            }
        }
    }
}

/// Makes [`Msg`] of the inboxes, and the way into it and out of it for each.
macro_rules! receivers {
    ($($kind:ident($inbox:ident) of $whose:literal $([$($variant:ident($carried:ty)),+])?;)+) => {
        /// Everything that travels.
        pub enum Msg {
            $(#[doc = concat!("To ", $whose, ".")] $kind($inbox),)+
        }

        value!(choice Msg { $($kind(message)),+ });

        impl fmt::Debug for Msg {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Msg::$kind(message) => message.fmt(f),)+
                }
            }
        }

        impl Message for Msg {
            fn save(&self, out: &mut StateWriter) {
                Storable::save(self, out);
            }

            fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
                Storable::read(from)
            }

            fn digest(&self) -> u64 {
                match self {
                    $(Msg::$kind(message) => message.digest(),)+
                }
            }
        }

        $(impl From<$inbox> for Msg {
            #[inline]
            fn from(message: $inbox) -> Msg {
                Msg::$kind(message)
            }
        }

        impl Inbox for $inbox {
            const WHOSE: &'static str = $whose;

            #[inline]
            fn of(message: Msg) -> Result<Self, Msg> {
                match message {
                    Msg::$kind(message) => Ok(message),
                    other => Err(other),
                }
            }
        }

        $($(impl From<$carried> for $inbox {
            #[inline]
            fn from(carried: $carried) -> $inbox {
                $inbox::$variant(carried)
            }
        })+)?)+
    };
}

receivers! {
    Sm(SmMsg) of "an SM" [Reply(Reply), Credit(Credit)];
    CommandProcessor(CommandProcessorMsg) of "the command processor" [Reply(Reply), Credit(Credit)];
    Slice(SliceMsg) of "an L2 slice" [
        MemoryData(MemoryData), MemoryAccepted(MemoryAccepted), MemoryDurable(MemoryDurable)
    ];
    Home(HomeMsg) of "a home slice" [
        MemoryData(MemoryData), MemoryAccepted(MemoryAccepted), MemoryDurable(MemoryDurable)
    ];
    Controller(ControllerMsg) of "a memory controller";
    Switch(SwitchMsg) of "a switch";
    Hub(PeerMessage) of "a scheme's hub";
    Core(CoreMsg) of "a core" [Data(LineData)];
    Os(OsMsg) of "the OS" [Data(LineData)];
    Nic(NicMsg) of "a NIC";
    Poster(PosterMsg) of "a poster" [Data(LineData), PersistAck(PersistAck)];
    Client(ClientMsg) of "a client" [PersistAck(PersistAck)];
}

const _: () = assert!(size_of::<Msg>() <= 64, "a message is at most 64 bytes");

/// All that one kind of component receives.
pub trait Inbox: Into<Msg> {
    /// Whose it is, for the report of a fault.
    const WHOSE: &'static str;

    /// The message, if it is of this inbox.
    ///
    /// # Errors
    /// It is for another kind of component.
    fn of(message: Msg) -> Result<Self, Msg>;
}

/// A component of a machine.
pub trait Receiver {
    /// What it receives.
    type Inbox: Inbox;

    /// Receives one message, at `cx.now()`.
    fn receive(&mut self, message: Self::Inbox, cx: &mut Ctx<'_, Msg>);
}

/// Hands a message that the engine brought to its component.
///
/// # Panics
/// When it is for another kind of component: the topology has tied a link to the wrong one.
#[inline]
pub fn deliver<C: Receiver>(component: &mut C, message: Msg, cx: &mut Ctx<'_, Msg>) {
    match C::Inbox::of(message) {
        Ok(message) => component.receive(message, cx),
        Err(other) => astray(C::Inbox::WHOSE, &other),
    }
}

#[cold]
fn astray(receiver: &str, message: &Msg) -> ! {
    panic!("{receiver} received {message:?}")
}
