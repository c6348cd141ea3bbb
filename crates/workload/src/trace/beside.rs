//! What a trace says of that which goes on beside the warps of a CTA, and how it is read: clusters, what
//! barriers count, sizes of copies, groups of stores; and barriers of the CTA by their numbers.
//!
//! Whether barriers can be counted is found out before the run: a trace has the values of registers that they
//! need where its tracer was told so, and all bytes that barriers await must come. How many bytes a copy has
//! is in two numbers, and whether the first has those outside of the tensor, too, nobody has written down: it
//! has where what barriers await then comes to what copies bring.
//!
//! Source: Accel-Sim 2.0, `trace_parser.cc` and `trace_driven.cc`.

use super::barrier_steps::BarrierStep;
use super::code::{COPIES, TraceVariant};
use super::instruction::TraceLine;
use super::sends::rank_and_byte;
use super::words::CopyWords;
use durawarp_kernel::cluster::MAX_CLUSTER;
use durawarp_kernel::ir::BulkKind;
use durawarp_kernel::traced::TracedCopy;

/// Where a CTA is of a cluster, as far as the file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClusterPlace {
    /// The cluster's index.
    pub(crate) of: Option<[u32; 3]>,
    /// The CTA's index in it.
    pub(crate) at: Option<[u32; 3]>,
    pub(crate) rank: Option<u32>,
}

impl ClusterPlace {
    /// Reads what follows `cluster `; false where it is not known.
    pub(super) fn read(&mut self, text: &[u8]) -> bool {
        let Some((name, numbers)) = std::str::from_utf8(text).ok().and_then(|text| text.split_once(" = ")) else {
            return false;
        };
        let numbers: Vec<u32> = numbers.split(',').map_while(|number| number.trim().parse().ok()).collect();
        match (name, &numbers[..]) {
            ("id", &[x, y, z]) => self.of = Some([x, y, z]),
            ("cta", &[x, y, z]) => self.at = Some([x, y, z]),
            ("rank", &[rank]) => self.rank = Some(rank),
            _ => return false,
        }
        true
    }
}

/// The clusters of a kernel, as far as its CTAs were looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterSurvey {
    /// Of each CTA, in the order of the file.
    ctas: Vec<([u32; 3], ClusterPlace)>,
}

impl ClusterSurvey {
    /// The next CTA, by its index in the grid.
    pub(crate) fn takes(&mut self, index: [u32; 3], place: ClusterPlace) {
        self.ctas.push((index, place));
    }

    /// CTAs of a cluster in x, y, z. None where there is one alone, where CTAs of the grid are missing or in
    /// another order, or where what is said of a CTA does not fit.
    pub(crate) fn shape(&self, grid: [u32; 3]) -> Option<[u32; 3]> {
        let places = || self.ctas.iter().map(|(_, place)| place);
        let most = |axis: usize| places().filter_map(|place| place.at).map(|at| at[axis]).max();
        let shape = [most(0)? + 1, most(1)? + 1, most(2)? + 1];
        let ctas: u32 = shape.iter().product();
        let [x, y, z] = grid.map(u64::from);
        let whole = grid.iter().zip(shape).all(|(grid, of)| grid.is_multiple_of(of));
        if !(2..=MAX_CLUSTER).contains(&ctas) || !whole || self.ctas.len() as u64 != x * y * z {
            return None;
        }
        let fits = (0..).zip(&self.ctas).all(|(number, (index, place))| {
            let at: [u32; 3] = std::array::from_fn(|axis| index[axis] % shape[axis]);
            let of = std::array::from_fn(|axis| index[axis] / shape[axis]);
            let rank = at[0] + shape[0] * (at[1] + shape[1] * at[2]);
            let linear = u64::from(index[0]) + x * (u64::from(index[1]) + y * u64::from(index[2]));
            let said = ClusterPlace { of: Some(of), at: Some(at), rank: Some(rank) };
            linear == number && *place == said
        });
        fits.then_some(shape)
    }

    /// The file names clusters of several CTAs.
    pub(crate) fn are_there(&self) -> bool {
        self.ctas.iter().any(|(_, place)| place.at.is_some_and(|at| at != [0; 3]))
    }
}

/// What barriers of a kernel await, and what copies bring, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BarrierBytes {
    awaited: u64,
    /// With the first number of each copy, and with both.
    brought: [u64; 2],
    /// Something is not known that barriers count.
    unknown: bool,
    /// There are barriers, or copies that complete at some.
    any: bool,
}

impl BarrierBytes {
    /// The kernel has barriers, or should have.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Something changes barriers in a way that is not known.
    pub(super) fn forget(&mut self) {
        (self.unknown, self.any) = (true, true);
    }

    /// `lanes` lanes do this at a barrier.
    pub(super) fn step(&mut self, lanes: u32, step: BarrierStep) {
        self.any = true;
        self.awaited += u64::from(lanes) * step.expects();
        self.brought.iter_mut().for_each(|brought| *brought += u64::from(lanes) * step.completes());
    }

    /// Somebody arrives.
    pub(super) fn arrive(&mut self) {
        self.any = true;
    }

    /// Registers bring bytes.
    pub(super) fn send(&mut self, bytes: u64) {
        self.any = true;
        self.brought.iter_mut().for_each(|brought| *brought += bytes);
    }

    /// A load brings its bytes to each of its CTAs.
    pub(super) fn load(&mut self, words: CopyWords) {
        let ctas = words.ctas.map_or(1, |ctas| u64::from(ctas.count_ones()));
        let (first, outside) = (u64::from(words.bytes), u64::from(words.outside));
        self.any = true;
        self.brought[0] += ctas * first;
        self.brought[1] += ctas * (first + outside);
    }

    /// Whether the first number of a copy has the bytes outside; none where barriers cannot be counted.
    pub(crate) fn first_has_all(&self) -> Option<bool> {
        let brought = self.brought.iter().position(|&brought| brought == self.awaited);
        brought.filter(|_| !self.unknown).map(|at| at == 0)
    }
}

/// What the walk knows and finds out of that which goes on beside warps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BesideWalk {
    /// The kernel has clusters.
    pub(crate) in_clusters: bool,
    /// The first number of a copy has the bytes outside.
    pub(crate) first_has_all: bool,
    /// Of the CTA at hand.
    pub(crate) place: ClusterPlace,
    pub(crate) bytes: BarrierBytes,
}

impl BesideWalk {
    /// The CTA's rank, in a kernel with clusters.
    pub(super) fn rank(&self) -> Option<u32> {
        self.place.rank.filter(|_| self.in_clusters)
    }

    /// A copy without its addresses, and how many of its bytes these have. One for a pair of CTAs may
    /// complete in the other CTA than that which it goes to: its barrier's address says in which.
    pub(super) fn copy(&self, words: CopyWords, (kind, paired): (BulkKind, bool)) -> (TracedCopy, u32) {
        let CopyWords { barrier, ctas, bytes, outside } = words;
        let (rank, byte) = rank_and_byte(barrier);
        let (inside, all) = match self.first_has_all {
            true => (bytes.saturating_sub(outside), bytes),
            false => (bytes, bytes + outside),
        };
        let ranks = match (self.rank(), kind) {
            (None, _) => 1,
            (Some(_), BulkKind::Load) if !paired => ctas.unwrap_or(1 << (rank % 16)),
            (Some(own), BulkKind::Load) => ctas.unwrap_or(1 << own),
            (Some(own), _) => 1 << own,
        };
        let mut copy = TracedCopy::new(ranks, byte as u32, all);
        copy.barrier_of_pair = self.rank().filter(|_| paired).map(|_| (rank & 1) as u8);
        (copy, inside)
    }
}

/// A group of copies that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupOf {
    Nothing,
    /// Copies past the registers.
    Copies,
    /// Stores of the copy engine.
    Stores,
}

/// The groups of a warp that have ended.
#[derive(Debug, Default)]
pub(super) struct EndedGroups {
    groups: Vec<GroupOf>,
    /// How many there are of each kind.
    of_kind: [usize; 3],
}

impl EndedGroups {
    pub(super) fn push(&mut self, group: GroupOf) {
        self.groups.push(group);
        self.of_kind[group as usize] += 1;
    }

    /// The place of the copy that the next group ends.
    pub(super) fn next_place(&self) -> u8 {
        (self.groups.len() as u32 % COPIES) as u8
    }

    /// The places of the copies that a wait is for which leaves `pending` groups.
    pub(super) fn awaited_places(&self, pending: usize) -> u8 {
        let until = self.groups.len().saturating_sub(pending);
        let from = self.groups.len().saturating_sub(COPIES as usize);
        let copies = (from..until).filter(|&group| self.groups[group] == GroupOf::Copies);
        copies.fold(0, |places, group| places | 1 << (group as u32 % COPIES))
    }

    /// Groups of a kind that a wait leaves which leaves `pending` groups of all; none where it is for none of
    /// these. Only the groups that are left are looked at: a warp may have many.
    pub(super) fn kept(&self, kind: GroupOf, pending: usize) -> Option<u8> {
        let kept = &self.groups[self.groups.len().saturating_sub(pending)..];
        let kept = kept.iter().filter(|&&group| group == kind).count();
        (self.of_kind[kind as usize] > kept).then(|| u8::try_from(kept).unwrap_or(u8::MAX))
    }
}

/// The barrier of the CTA that a line means: its number, and threads, are immediates; or its number is in the
/// line's first register, and the immediate is that of threads.
pub(super) fn named(line: &TraceLine<'_>) -> TraceVariant {
    let first = line.mask.trailing_zeros() as usize;
    let in_register = || line.values.of(0).map(|values| values[first]);
    let (id, threads) = match (line.imm2.unwrap_or(0), line.results) {
        (0, 1..) => (in_register().unwrap_or(0), line.imm),
        (threads, _) => (line.imm as u64, threads),
    };
    let waits = !line.opcode.split('.').any(|token| token == "ARV");
    // Whole warps: what is no number of threads is taken for all of them.
    let threads = u16::try_from(threads).ok().filter(|threads| threads % 32 == 0 && *threads <= 1024).unwrap_or(0);
    let id = u8::try_from(id).ok().filter(|id| *id < 16).unwrap_or(0);
    // All threads arrive at one that only some wait for by a number of them.
    let waits = waits || threads == 0;
    if (id, threads, waits) == (0, 0, true) { TraceVariant::Plain } else { TraceVariant::Named { id, threads, waits } }
}
