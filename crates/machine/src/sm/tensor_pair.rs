//! Pairs of CTAs in an SM (`tcgen05` with `.cta_group::2`): columns that both CTAs have, products of both
//! tensor cores, and arrivals at barriers of other CTAs.
//!
//! ```text
//!            SM of lesser number       link     SM of greater number
//!   alloc                              <──────  asks
//!            takes columns, has        ──────>  takes columns, has, goes on
//!            goes on                   <──────
//!            who issues                         its peer
//!   mma      product, own columns of b ──────>  its rows
//!            its rows                  <──────  own columns of b
//!   commit   all are done and answered ──────>  arrival
//! ```
//! Each SM reads and writes its own memories alone; what it lacks of b comes by a message of the link that
//! all accesses between SMs take (`shared.cluster_cycles`). A product occupies both tensor cores from the
//! cycle in which it begins where it was issued, or in which the other is free. It is done when both are; a
//! program counts on its results behind an arrival only, which waits for the answer.
//!
//! SMs take columns for a pair in the order of their numbers, so that no two pairs wait for each other.
//!
//! Source: PTX ISA 9.7.16 (what is done), CUTLASS's kernels of two SMs (who issues). Chosen, for lack of a
//! source: that both cores work in step; that what comes of b takes no time of the link, as it goes with the
//! product. Invariants: answers of a CTA's products come in the order of their issue; an SM changes state of
//! another only by messages. Not modelled: a product that waits here because the tensor core there is busy;
//! what other CTAs' barriers know of fences.

use std::collections::VecDeque;

use durawarp_checkpoint::value;
use durawarp_kernel::cluster::peer_of;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Inst, TensorKind};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::{PairColumns, TensorValues};
use durawarp_kernel::warp::{multiply_pair, pair_columns, pair_work};

use super::core::IssueCore;
use super::cta::CtaSlot;
use super::launches::LaunchTable;
use super::parameters::TensorSpec;
use super::record::Record;
use super::slots::Fault;
use super::wait::Wait;
use crate::coalescer::lanes_of;
use crate::remote::{ClusterCta, PairMessage, PairProduct, PairWord};

/// A barrier of another CTA at which somebody arrives, and its SM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OtherBarrier {
    sm: u16,
    to: ClusterCta,
    at: u32,
}

value!(record OtherBarrier { sm, to, at });

/// A product of a pair whose answer is not here.
#[derive(Debug)]
struct PendingProduct {
    warp: u8,
    pc: u32,
    lane: u32,
    values: TensorValues,
    /// The own columns of b.
    columns: PairColumns,
}

value!(record PendingProduct { warp, pc, lane, values, columns });

/// What a CTA slot has to do with its peer.
#[derive(Debug, Default)]
struct PairSlot {
    /// The warp slot that allocates, and how many columns.
    asks: Option<(u8, u32)>,
    /// Columns that the peer asks for.
    theirs: Option<u32>,
    /// The address of those that are had here, or of the peer's, while it is not known that both are.
    at: Option<u32>,
    pending: VecDeque<PendingProduct>,
    /// Products issued, and answered.
    issued: u64,
    answered: u64,
}

value!(record PairSlot { asks, theirs, at, pending, issued, answered });

/// Arrivals that wait for answers.
#[derive(Debug)]
pub(super) struct WaitingCommit {
    slot: u8,
    cta: u64,
    /// Products of the slot that are to be answered.
    behind: u64,
    at: Vec<u64>,
    others: Vec<OtherBarrier>,
}

value!(record WaitingCommit { slot, cta, behind, at, others });

/// Pairs of an SM.
#[derive(Debug, Default)]
pub(super) struct PairUnit {
    /// By CTA slot.
    slots: Vec<PairSlot>,
    commits: Vec<WaitingCommit>,
    /// Messages that leave in this event, and the SMs to which they go.
    leaving: Vec<(u16, Box<PairMessage>)>,
}

value!(record PairUnit { slots, commits, leaving });

impl PairUnit {
    pub(super) fn new(ctas: u32) -> Self {
        PairUnit { slots: (0..ctas).map(|_| PairSlot::default()).collect(), ..PairUnit::default() }
    }

    /// A CTA begins in a slot.
    pub(super) fn begin(&mut self, slot: usize) {
        self.slots[slot] = PairSlot::default();
        self.commits.retain(|commit| usize::from(commit.slot) != slot);
    }

    /// Arrivals behind products of a slot that are not answered wait; without such they are given back.
    pub(super) fn hold(
        &mut self,
        (slot, cta): (u8, u64),
        at: Vec<u64>,
        others: Vec<OtherBarrier>,
    ) -> Option<(Vec<u64>, Vec<OtherBarrier>)> {
        let of = &self.slots[usize::from(slot)];
        if of.pending.is_empty() {
            return Some((at, others));
        }
        self.commits.push(WaitingCommit { slot, cta, behind: of.issued, at, others });
        None
    }

    /// No product of a slot waits for its answer.
    #[inline]
    pub(super) fn is_answered(&self, slot: u8) -> bool {
        self.slots[usize::from(slot)].pending.is_empty()
    }

    /// Arrives at barriers of other CTAs.
    pub(super) fn arrive(&mut self, others: Vec<OtherBarrier>) {
        let words = others.into_iter().map(|OtherBarrier { sm, to, at }| {
            (sm, Box::new(PairMessage { to, from: 0, word: PairWord::Arrives { at } }))
        });
        self.leaving.extend(words);
    }

    /// Messages that leave now, and their SMs.
    pub(super) fn leaving(&mut self) -> std::vec::Drain<'_, (u16, Box<PairMessage>)> {
        self.leaving.drain(..)
    }

    /// No message leaves.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Columns that a warp slot allocates with the peer of its CTA.
    pub(super) fn asked(&self, warp: usize) -> Option<u32> {
        let asks = self.slots.iter().filter_map(|slot| slot.asks);
        asks.into_iter().find(|(of, _)| usize::from(*of) == warp).map(|(_, columns)| columns)
    }
}

/// Where the CTA of a slot and its peer are.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairPlace {
    own: ClusterCta,
    peer: ClusterCta,
    /// The peer's SM.
    sm: u16,
    /// The own SM takes columns first.
    first: bool,
}

/// What an SM knows of itself: its number, and those of launches.
#[derive(Clone, Copy)]
pub(super) struct PairScope<'a> {
    pub(super) here: u16,
    pub(super) record: &'a Record,
    pub(super) launches: &'a LaunchTable,
    pub(super) spec: &'a TensorSpec,
}

impl PairScope<'_> {
    fn launch(&self, cta: &CtaSlot) -> &Launch {
        self.launches.at(cta.launch)
    }

    /// The places of a CTA and its peer.
    ///
    /// # Errors
    /// The cluster has none.
    fn place(&self, cta: &CtaSlot) -> Result<PairPlace, FaultKind> {
        let (launch, number) = (self.launch(cta), self.record.launch(cta.launch));
        let rank = cta.seat.as_ref().map_or(0, |seat| seat.rank);
        let peer =
            peer_of(rank, launch.cluster_ctas()).map_err(|misuse| FaultKind::Asynchronous(misuse.to_string()))?;
        let Some(seat) = &cta.seat else { unreachable!("a CTA of a cluster has its seat") };
        let sm = seat.sms[peer as usize];
        let own = ClusterCta { launch: number, cta: cta.cta, rank };
        let first = (self.here, rank) < (sm, peer);
        Ok(PairPlace { own, peer: seat.peer(launch, number, cta.cta, peer), sm, first })
    }

    /// Barriers of other CTAs of a cluster, by their ranks.
    pub(super) fn others(&self, cta: &CtaSlot, ranks: u16, at: u64) -> Vec<OtherBarrier> {
        let (launch, number) = (self.launch(cta), self.record.launch(cta.launch));
        let Some(seat) = &cta.seat else { return Vec::new() };
        let other = |rank: u32| {
            let to = seat.peer(launch, number, cta.cta, rank);
            OtherBarrier { sm: seat.sms[rank as usize], to, at: at as u32 }
        };
        let ranks = lanes_of(ranks.into()).map(|rank| rank as u32);
        ranks.filter(|&rank| rank != seat.rank).map(other).collect()
    }

    /// The slot of a CTA that has not ended.
    fn find(&self, core: &IssueCore, of: ClusterCta) -> Option<usize> {
        let is = |slot: &CtaSlot| slot.left > 0 && slot.cta == of.cta && self.record.launch(slot.launch) == of.launch;
        core.ctas.iter().position(is)
    }
}

/// A fault of a warp slot's instruction.
fn fault_of(core: &IssueCore, warp: usize, kind: FaultKind, scope: PairScope<'_>) -> Fault {
    let slot = &core.slots[warp];
    let lane = slot.warp.live().trailing_zeros().min(31);
    Box::new(ProgramFault::new(kind, scope.launches.of(slot), &slot.warp, slot.warp.pc(), lane))
}

fn send(core: &mut IssueCore, place: PairPlace, from: u16, word: PairWord) {
    core.tensor.pairs.leaving.push((place.sm, Box::new(PairMessage { to: place.peer, from, word })));
}

/// A warp allocates columns in both CTAs of its pair: it waits.
///
/// # Errors
/// What the ISA leaves undefined.
pub(super) fn ask(
    core: &mut IssueCore,
    warp: usize,
    columns: u32,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let cta = usize::from(core.slots[warp].cta);
    let place = scope.place(&core.ctas[cta]).map_err(|kind| fault_of(core, warp, kind, scope))?;
    let slot = &mut core.tensor.pairs.slots[cta];
    if slot.asks.replace((warp as u8, columns)).is_some() {
        let what = "two warps of a CTA in `tcgen05.alloc.cta_group::2` at once".to_owned();
        return Err(fault_of(core, warp, FaultKind::Unsupported(what), scope));
    }
    let theirs = slot.theirs.take();
    core.enter(warp, Wait::TensorMemory, cycle + 1);
    match (place.first, theirs) {
        (true, Some(theirs)) => take(core, cta, theirs, cycle, scope),
        (true, None) => Ok(()),
        (false, _) => {
            send(core, place, scope.here, PairWord::Asks { columns });
            Ok(())
        }
    }
}

/// It is the turn of this SM to take columns for the CTA of a slot, whose peer asks for `theirs`.
fn take(core: &mut IssueCore, cta: usize, theirs: u32, cycle: u32, scope: PairScope<'_>) -> Result<(), Fault> {
    let Some((warp, columns)) = core.tensor.pairs.slots[cta].asks else { unreachable!("a warp asks") };
    if theirs != columns {
        let what = format!("`tcgen05.alloc.cta_group::2` of {columns} columns, where the peer CTA asks for {theirs}");
        return Err(fault_of(core, warp.into(), FaultKind::Unsupported(what), scope));
    }
    if core.tensor.take(warp, columns) { had(core, warp.into(), columns, cycle, scope) } else { Ok(()) }
}

/// A warp that allocates for a pair has its columns in this SM.
///
/// # Errors
/// They lie elsewhere than the peer's, or have no room between others.
pub(super) fn had(
    core: &mut IssueCore,
    warp: usize,
    columns: u32,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let cta = usize::from(core.slots[warp].cta);
    let place = scope.place(&core.ctas[cta]).map_err(|kind| fault_of(core, warp, kind, scope))?;
    let Some(address) = core.tensor.memory_mut(cta).allocate(columns) else {
        let what = format!("`tcgen05.alloc` of {columns} columns, which do not fit between others of its CTA");
        return Err(fault_of(core, warp, FaultKind::Unsupported(what), scope));
    };
    send(core, place, scope.here, PairWord::Has { columns, address });
    // The second one ends it: the first's are had.
    match core.tensor.pairs.slots[cta].at.replace(address) {
        Some(theirs) => both_have(core, cta, [address, theirs], cycle, scope),
        None => Ok(()),
    }
}

/// Both CTAs have their columns, here and there at these addresses: the warp goes on.
fn both_have(
    core: &mut IssueCore,
    cta: usize,
    [address, theirs]: [u32; 2],
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let slot = &mut core.tensor.pairs.slots[cta];
    slot.at = None;
    let Some((warp, _)) = slot.asks.take() else { unreachable!("a warp asks") };
    let warp = usize::from(warp);
    if address != theirs {
        let what = format!(
            "`tcgen05.alloc.cta_group::2` at address {address:#x}, where the peer CTA has its columns at {theirs:#x}: \
             both allocate and free alike"
        );
        return Err(fault_of(core, warp, FaultKind::Unsupported(what), scope));
    }
    let slot = &mut core.slots[warp];
    let launch = scope.launches.of(slot);
    let inst = &launch.kernel.code[slot.warp.pc() as usize];
    let lanes = slot.warp.guarded(inst);
    slot.warp.write_tensor_result(inst.dst[0], lanes, address);
    slot.warp.advance();
    slot.not_before = cycle + 1;
    core.settle(warp, cycle, launch);
    Ok(())
}

/// A warp issues products of a pair.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
pub(super) fn multiply(
    core: &mut IssueCore,
    warp: usize,
    (inst, kind, lanes): (&Inst, TensorKind, u64),
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let cta = usize::from(core.slots[warp].cta);
    let place = scope.place(&core.ctas[cta]).map_err(|kind| fault_of(core, warp, kind, scope))?;
    let slot = &core.slots[warp];
    let launch = scope.launches.of(slot);
    let pc = slot.warp.pc();
    for (lane, values) in slot.warp.pair_products(inst, kind, launch, lanes) {
        let fault = |kind| Box::new(ProgramFault::new(kind, launch, &core.slots[warp].warp, pc, lane));
        let work = pair_work(&values, launch).map_err(fault)?;
        let columns = pair_columns(&values, &core.ctas[cta].shared, launch).map_err(fault)?;
        let start = core.tensor.multiply(cta, scope.spec.tensor_times(work), cycle);
        let product = PairProduct { from: place.own, values, columns: columns.clone(), start };
        send(core, place, scope.here, PairWord::Multiply(product));
        let of = &mut core.tensor.pairs.slots[cta];
        of.issued += 1;
        of.pending.push_back(PendingProduct { warp: warp as u8, pc, lane, values, columns });
    }
    Ok(())
}

/// A word for a CTA of this SM.
///
/// # Errors
/// What is wrong with a program, by the instruction whose part it is.
pub(super) fn receive(
    core: &mut IssueCore,
    message: PairMessage,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let PairMessage { to, from, word } = message;
    let found = scope.find(core, to);
    match (word, found) {
        (PairWord::Multiply(product), found) => {
            let to = product.from;
            let word = answer(core, found, product, cycle, scope);
            core.tensor.pairs.leaving.push((from, Box::new(PairMessage { to, from: scope.here, word })));
            Ok(())
        }
        // A CTA that has ended does not hear of it.
        (_, None) => Ok(()),
        (PairWord::Asks { columns }, Some(cta)) => {
            let slot = &mut core.tensor.pairs.slots[cta];
            if slot.asks.is_some() {
                return take(core, cta, columns, cycle, scope);
            }
            slot.theirs = Some(columns);
            Ok(())
        }
        (PairWord::Has { columns, address }, Some(cta)) => match core.tensor.pairs.slots[cta].at {
            Some(own) => both_have(core, cta, [own, address], cycle, scope),
            None => {
                core.tensor.pairs.slots[cta].at = Some(address);
                take(core, cta, columns, cycle, scope)
            }
        },
        (PairWord::Arrives { at }, Some(cta)) => core.arrive_in(cta, at.into(), scope.launches),
        (PairWord::Multiplied { columns, done, fault }, Some(cta)) => {
            answered(core, cta, (columns, done, fault), cycle, scope)
        }
    }
}

/// Does the part of the CTA in a slot of a product that its peer has issued.
fn answer(
    core: &mut IssueCore,
    found: Option<usize>,
    product: PairProduct,
    cycle: u32,
    scope: PairScope<'_>,
) -> PairWord {
    let wrong = |what: String| PairWord::Multiplied { columns: PairColumns::new(), done: cycle, fault: Some(what) };
    let Some(cta) = found else { return wrong(super::cluster::ended(product.from.rank ^ 1)) };
    let launch = scope.launches.at(core.ctas[cta].launch);
    let values = &product.values;
    let done = pair_work(values, launch).and_then(|work| {
        let (memory, shared) = (core.tensor.memory_mut(cta), &core.ctas[cta].shared);
        let columns = pair_columns(values, shared, launch)?;
        let b = if product.from.rank % 2 == 0 { [&product.columns, &columns] } else { [&columns, &product.columns] };
        multiply_pair(values, (product.from.rank ^ 1) % 2, b, memory, shared, launch)?;
        Ok((work, columns))
    });
    match done {
        Ok((work, columns)) => {
            // It began there some cycles ago, as the word has come over the link.
            let done = core.tensor.occupy(scope.spec.tensor_times(work), product.start).max(cycle);
            PairWord::Multiplied { columns, done, fault: None }
        }
        Err(FaultKind::Unsupported(what) | FaultKind::Asynchronous(what)) => wrong(what),
        Err(FaultKind::OutOfBounds { address, bytes, hint, .. }) => {
            wrong(format!("{bytes} bytes at {address:#x} of shared memory: {hint}"))
        }
        Err(other) => wrong(format!("{other:?}")),
    }
}

/// The peer has answered the oldest product of a CTA: its own rows follow, and what waits for them.
fn answered(
    core: &mut IssueCore,
    cta: usize,
    (columns, done, fault): (PairColumns, u32, Option<String>),
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let slot = &mut core.tensor.pairs.slots[cta];
    let Some(PendingProduct { warp, pc, lane, values, columns: own }) = slot.pending.pop_front() else {
        unreachable!("an answer belongs to a product")
    };
    slot.answered += 1;
    let (answered, rank) = (slot.answered, core.ctas[cta].seat.as_ref().map_or(0, |seat| seat.rank));
    let launch = scope.launches.at(core.ctas[cta].launch);
    let made = match fault {
        Some(what) => Err(FaultKind::Asynchronous(format!("a product's part in the peer CTA: {what}"))),
        None => {
            let b = if rank % 2 == 0 { [&own, &columns] } else { [&columns, &own] };
            multiply_pair(&values, rank % 2, b, core.tensor.memory_mut(cta), &core.ctas[cta].shared, launch)
        }
    };
    if let Err(kind) = made {
        return Err(Box::new(ProgramFault::new(kind, launch, &core.slots[usize::from(warp)].warp, pc, lane)));
    }
    core.tensor.done_by(cta, done.max(cycle));
    let is_due = |commit: &mut WaitingCommit| usize::from(commit.slot) == cta && commit.behind <= answered;
    let due: Vec<WaitingCommit> = core.tensor.pairs.commits.extract_if(.., is_due).collect();
    for WaitingCommit { slot, cta, at, others, .. } in due {
        core.tensor.arrive_at_end((slot, cta), at, others);
    }
    Ok(())
}
