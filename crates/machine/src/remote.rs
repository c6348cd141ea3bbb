//! Messages between the SMs of a GPC: accesses to shared memory of another CTA of a cluster, parts of bulk
//! copies for it, and arrivals at the cluster's barrier.
//!
//! A request is a box that travels to the other SM and back, as an atomic's does: its answer brings values,
//! old values, or what was wrong. It names the CTA by its launch and its number, so that one that has ended
//! is told from one that has come after it. Arrivals go to every CTA of the cluster, the own one included:
//! all count the same words, and no SM has the barrier.
//!
//! Invariant: an SM sends to SMs of its GPC only, where links lead; what it sends of shared memory leaves one
//! after the other, by the width of its link. Not modelled: a link that several SMs share; the width of what
//! a copy of global memory for several CTAs brings, which cards have in their crossbar.

use super::line::MAX_LINE_BYTES;
use durawarp_checkpoint::value;
use durawarp_kernel::ir::{AtomOp, Elem};
use durawarp_kernel::semantics::{CopyValues, PairColumns, TensorValues};
use smallvec::SmallVec;

/// The SMs of the CTAs of a cluster, by rank, and which of them a CTA is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlaces {
    pub rank: u32,
    pub sms: Vec<u16>,
}

value!(record ClusterPlaces { rank, sms });

/// What an access does in the other shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteKind {
    Load,
    Store,
    /// With its old values, when `true`.
    Atomic(bool),
}

value!(choice RemoteKind { Load, Store, Atomic(returns) });

/// Who accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSource {
    pub sm: u16,
    /// Warp slot.
    pub warp: u8,
    /// Its instruction.
    pub pc: u32,
    /// Its pending load; none of a store.
    pub load: Option<u16>,
}

value!(record RemoteSource { sm, warp, pc, load });

/// A CTA, whose shared memory is accessed or who is told of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterCta {
    /// Number of its launch in the program.
    pub launch: u32,
    /// Its number in the grid.
    pub cta: u64,
    /// Its rank in its cluster.
    pub rank: u32,
}

value!(record ClusterCta { launch, cta, rank });

/// An access of some lanes of a warp to shared memory of another CTA, and its answer.
#[derive(Debug, Clone)]
pub struct RemoteAccess {
    pub from: RemoteSource,
    pub to: ClusterCta,
    pub kind: RemoteKind,
    /// Passes through the banks of the other SM.
    pub passes: u32,
    /// Bytes of a lane.
    pub bytes: u8,
    /// Type of an atomic's operands.
    pub elem: Elem,
    pub atom: AtomOp,
    pub lanes: u64,
    /// Each lane's address there.
    pub at: [u32; 64],
    /// Each lane's barrier there, at which its bytes complete, if they do.
    pub barriers: Option<Box<[u32; 64]>>,
    /// Operands of an atomic; old values in the answer. Of 16 bytes the halves of the first operand; the new
    /// value of a compare-and-swap is in `data`.
    pub a: [u64; 64],
    pub b: [u64; 64],
    /// Bytes of loads and stores, 16 a lane.
    pub data: [u8; 1024],
    /// What was wrong, and with which lane.
    pub fault: Option<(u8, String)>,
}

value!(record RemoteAccess { from, to, kind, passes, bytes, elem, atom, lanes, at, barriers, a, b, data, fault });

impl Default for RemoteAccess {
    fn default() -> Self {
        RemoteAccess {
            from: RemoteSource { sm: 0, warp: 0, pc: 0, load: None },
            to: ClusterCta { launch: 0, cta: 0, rank: 0 },
            kind: RemoteKind::Load,
            passes: 1,
            bytes: 0,
            elem: Elem::U32,
            atom: AtomOp::None,
            lanes: 0,
            at: [0; 64],
            barriers: None,
            a: [0; 64],
            b: [0; 64],
            data: [0; 1024],
            fault: None,
        }
    }
}

impl RemoteAccess {
    /// Bytes of shared memory that the request brings.
    pub(super) fn bytes_there(&self) -> u32 {
        if self.kind == RemoteKind::Load { 0 } else { self.lanes.count_ones() * u32::from(self.bytes) }
    }

    /// Bytes of shared memory that its answer brings. What all lanes load comes once.
    pub(super) fn bytes_back(&self) -> u32 {
        match self.kind {
            RemoteKind::Load if self.is_uniform() => self.bytes.into(),
            RemoteKind::Load | RemoteKind::Atomic(true) => self.lanes.count_ones() * u32::from(self.bytes),
            RemoteKind::Store | RemoteKind::Atomic(false) => 0,
        }
    }

    /// All lanes name one place.
    fn is_uniform(&self) -> bool {
        let first = self.at[self.lanes.trailing_zeros() as usize % 64];
        (0..64).all(|lane| self.lanes >> lane & 1 == 0 || self.at[lane] == first)
    }

    /// See the head of [`super::packet`].
    pub fn digest(&self) -> u64 {
        11 << 60 ^ self.to.cta << 20 ^ u64::from(self.from.pc) << 8 ^ u64::from(self.from.warp) ^ self.lanes
    }
}

/// The bulk copy of a part, in the SM that issued it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopySource {
    pub sm: u16,
    /// Warp slot.
    pub warp: u8,
    /// Its number among the copies of the SM.
    pub copy: u16,
}

value!(record CopySource { sm, warp, copy });

/// A part of a bulk copy on its way to shared memory of another CTA, or the count of the whole copy at its
/// barrier there; and the answer.
#[derive(Debug, Clone)]
pub struct RemotePart {
    pub from: CopySource,
    pub to: ClusterCta,
    /// Stretches of shared memory there, by address and bytes: their bytes lie one behind the other in
    /// `data`.
    pub pieces: SmallVec<[(u32, u8); 9]>,
    pub data: [u8; MAX_LINE_BYTES],
    /// What they do with elements of this type that are there.
    pub atom: AtomOp,
    pub elem: Elem,
    /// The address of the barrier, and how many bytes complete there.
    pub completes: Option<(u32, u32)>,
    /// What was wrong.
    pub fault: Option<String>,
}

value!(record RemotePart { from, to, pieces, data, atom, elem, completes, fault });

impl Default for RemotePart {
    fn default() -> Self {
        RemotePart {
            from: CopySource { sm: 0, warp: 0, copy: 0 },
            to: ClusterCta { launch: 0, cta: 0, rank: 0 },
            pieces: SmallVec::new(),
            data: [0; MAX_LINE_BYTES],
            atom: AtomOp::None,
            elem: Elem::U8,
            completes: None,
            fault: None,
        }
    }
}

impl RemotePart {
    /// Bytes that it brings.
    pub(super) fn bytes(&self) -> u32 {
        self.pieces.iter().map(|&(_, bytes)| u32::from(bytes)).sum()
    }

    /// See the head of [`super::packet`].
    pub fn digest(&self) -> u64 {
        let first = self.pieces.first().map_or(0, |(at, _)| *at);
        14 << 60
            ^ self.to.cta << 20
            ^ u64::from(self.from.copy) << 32
            ^ u64::from(self.from.warp)
            ^ u64::from(first) << 8
    }
}

/// What both CTAs of a pair do by an instruction of one of them.
#[derive(Debug, Clone)]
pub enum PairWork {
    /// A product, and the columns of b of the CTA that has issued it.
    Product { values: TensorValues, columns: PairColumns },
    /// A copy from shared to tensor memory.
    Copy { values: CopyValues },
    /// What a trace has of either: how long it takes.
    Traced { work: u32, tail: u32 },
}

value!(choice PairWork { Product { values, columns }, Copy { values }, Traced { work, tail } });

/// Work that a CTA of a pair has issued, for the other one.
#[derive(Debug)]
pub struct PairIssue {
    /// Who has issued it.
    pub from: ClusterCta,
    pub work: PairWork,
    /// The cycle in which it begins there.
    pub start: u32,
}

value!(record PairIssue { from, work, start });

/// What SMs tell each other of the tensor memory of a pair of CTAs (`sm/tensor_pair.rs`).
#[derive(Debug)]
pub enum PairWord {
    /// A warp asks for columns in both.
    Asks { columns: u32 },
    /// They are had in one, at an address.
    Has { columns: u32, address: u32 },
    /// Work of both begins.
    Begins(PairIssue),
    /// The part there: of a product its columns of b, the cycle in which it is done, and what was wrong.
    Done { columns: PairColumns, done: u32, fault: Option<String> },
    /// Somebody arrives at a barrier behind products.
    Arrives { at: u32 },
}

value!(choice PairWord {
    Asks { columns }, Has { columns, address }, Begins(issue), Done { columns, done, fault }, Arrives { at },
});

/// A word to a CTA of a cluster, from an SM.
#[derive(Debug)]
pub struct PairMessage {
    pub to: ClusterCta,
    pub from: u16,
    pub word: PairWord,
}

value!(record PairMessage { to, from, word });

impl PairMessage {
    /// See the head of [`super::packet`].
    pub fn digest(&self) -> u64 {
        let word = match &self.word {
            PairWord::Asks { columns } => u64::from(*columns),
            PairWord::Has { columns, address } => 1 << 16 ^ u64::from(*columns) << 20 ^ u64::from(*address),
            PairWord::Begins(PairIssue { work, start, .. }) => {
                let (kind, of) = match work {
                    PairWork::Product { .. } => (2, 0),
                    PairWork::Copy { .. } => (5, 0),
                    PairWork::Traced { work, .. } => (6, *work),
                };
                kind << 16 ^ u64::from(start ^ of) << 20
            }
            PairWord::Done { done, .. } => 3 << 16 ^ u64::from(*done) << 20,
            PairWord::Arrives { at } => 4 << 16 ^ u64::from(*at) << 20,
        };
        4 << 60 ^ self.to.cta << 36 ^ word
    }
}

/// A word to a CTA: all threads of another CTA of its cluster have come to the cluster's barrier that have
/// not exited, or all have exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterWord {
    pub to: ClusterCta,
    /// Who comes, or ends.
    pub rank: u32,
    pub ends: bool,
}

value!(record ClusterWord { to, rank, ends });

impl ClusterWord {
    /// See the head of [`super::packet`].
    pub fn digest(&self) -> u64 {
        12 << 60 ^ self.to.cta << 8 ^ u64::from(self.rank) << 1 ^ u64::from(self.ends)
    }
}
