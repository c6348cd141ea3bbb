//! What an SM keeps of pairs of CTAs in tensor memory: who asks for columns of both, products and copies
//! whose answers are under way, arrivals that wait for these, and where the other CTA is. What becomes of it
//! is in `tensor_pair`, `tensor_columns` and `tensor_work`.
//!
//! Invariant: work of a CTA is answered, and its own part done, in the order of issue; messages leave in the
//! event in which they are made.

use std::collections::VecDeque;

use durawarp_checkpoint::value;
use durawarp_engine::Ctx;
use durawarp_kernel::cluster::peer_of;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::launch::Launch;

use super::cta::CtaSlot;
use super::launches::LaunchTable;
use super::parameters::TensorSpec;
use super::record::Record;
use super::slots::{Fault, WarpSlot};
use super::wiring::{SmParameters, SmWiring};
use crate::coalescer::lanes_of;
use crate::msg::{Msg, SmMsg};
use crate::remote::{ClusterCta, PairMessage, PairWord, PairWork};

/// A barrier of another CTA at which somebody arrives, and its SM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OtherBarrier {
    sm: u16,
    to: ClusterCta,
    at: u32,
}

value!(record OtherBarrier { sm, to, at });

/// Work of a pair whose answer is not here.
#[derive(Debug)]
pub(super) struct PendingWork {
    pub(super) warp: u8,
    pub(super) pc: u32,
    pub(super) lane: u32,
    pub(super) work: PairWork,
}

value!(record PendingWork { warp, pc, lane, work });

/// What a CTA slot has to do with its peer.
#[derive(Debug, Default)]
pub(super) struct PairSlot {
    /// The warp slot that allocates, and how many columns.
    pub(super) asks: Option<(u8, u32)>,
    /// Columns that the peer asks for.
    pub(super) theirs: Option<u32>,
    /// The address of those that are had here, or of the peer's, while it is not known that both are.
    pub(super) at: Option<u32>,
    pub(super) pending: VecDeque<PendingWork>,
    /// Work issued, and answered.
    pub(super) issued: u64,
    pub(super) answered: u64,
}

value!(record PairSlot { asks, theirs, at, pending, issued, answered });

/// Arrivals that wait for answers.
#[derive(Debug)]
pub(super) struct WaitingCommit {
    pub(super) slot: u8,
    pub(super) cta: u64,
    /// Work of the slot that is to be answered.
    pub(super) behind: u64,
    pub(super) at: Vec<u64>,
    pub(super) others: Vec<OtherBarrier>,
}

value!(record WaitingCommit { slot, cta, behind, at, others });

/// Pairs of an SM.
#[derive(Debug, Default)]
pub(super) struct PairUnit {
    /// By CTA slot.
    pub(super) slots: Vec<PairSlot>,
    pub(super) commits: Vec<WaitingCommit>,
    /// Messages that leave in this event, and the SMs to which they go.
    pub(super) leaving: Vec<(u16, Box<PairMessage>)>,
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

    /// Arrivals behind work of a slot that is not answered wait; without such they are given back.
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

    /// No work of a slot waits for its answer.
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

    /// Says a word to the peer of a CTA; `from` is the own SM.
    pub(super) fn tell(&mut self, place: PairPlace, from: u16, word: PairWord) {
        self.leaving.push((place.sm, Box::new(PairMessage { to: place.peer, from, word })));
    }

    /// Sends what leaves in this event.
    #[inline]
    pub(super) fn send(&mut self, w: &SmWiring, cx: &mut Ctx<'_, Msg>) {
        if !self.leaving.is_empty() {
            self.send_all(w, cx);
        }
    }

    #[cold]
    fn send_all(&mut self, w: &SmWiring, cx: &mut Ctx<'_, Msg>) {
        for (sm, message) in self.leaving.drain(..) {
            w.ports.to_sm(sm).send(SmMsg::Pair(message), 0, cx);
        }
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
    pub(super) own: ClusterCta,
    pub(super) peer: ClusterCta,
    /// The peer's SM.
    pub(super) sm: u16,
    /// The own SM takes columns first.
    pub(super) first: bool,
}

/// What an SM knows of itself: its number, and those of launches.
#[derive(Clone, Copy)]
pub(super) struct PairScope<'a> {
    pub(super) here: u16,
    pub(super) record: &'a Record,
    pub(super) launches: &'a LaunchTable,
    pub(super) spec: &'a TensorSpec,
    /// Cycles of an access to shared memory.
    pub(super) latency: u32,
}

impl<'a> PairScope<'a> {
    /// As an SM of these parameters knows it.
    pub(super) fn new(p: &'a SmParameters, w: &SmWiring, record: &'a Record, launches: &'a LaunchTable) -> Self {
        PairScope { here: w.index, record, launches, spec: &p.tensor, latency: p.shared.latency_cycles }
    }

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

    /// The CTA slot of a warp, and where it and its peer are.
    ///
    /// # Errors
    /// The cluster has none, at the warp's instruction.
    pub(super) fn place_of(
        &self,
        warp: usize,
        slots: &[WarpSlot],
        ctas: &[CtaSlot],
    ) -> Result<(usize, PairPlace), Fault> {
        let cta = usize::from(slots[warp].cta);
        let place = self.place(&ctas[cta]).map_err(|kind| self.fault(&slots[warp], kind))?;
        Ok((cta, place))
    }

    /// A fault of a warp slot's instruction.
    pub(super) fn fault(&self, slot: &WarpSlot, kind: FaultKind) -> Fault {
        let lane = slot.warp.live().trailing_zeros().min(31);
        Box::new(ProgramFault::new(kind, self.launches.of(slot), &slot.warp, slot.warp.pc(), lane))
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
}
