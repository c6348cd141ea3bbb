//! `epoch-tag`: scoped persist barriers that order and do not wait, by tags of dirty lines in the L1
//! (buffered epochs).
//!
//! ```text
//!   barrier ──> later stores are of a new epoch; no warp waits
//!   line must leave (way, S-FIFO, release, other access) ──> older epochs of its scope instance leave first;
//!                                                            when these are durable, the line leaves, past the L2
//!   store to a line of an older epoch, or of another instance ──> the old version leaves first
//! ```
//! A tag is the instance (the CTA), the place of the line's first store in the SM's order, and up to which
//! place stores of that instance come before the line: the *barrier id*. Barriers of a kernel order all SMs'
//! lines: each SM begins to drain what is before, and nothing behind leaves until all SMs are done
//! ([`kernel_order`](durawarp_persist::kernel_order)).
//!
//! Source: Gope, Basu, Puthoor, Meswani, "Scoped persist barriers for GPUs", section 6.1 ("Alternative
//! implementation") and 8.1; Condit et al. (BPFS, SOSP'09) section 4.4. Readings: a barrier of a thread
//! orders its warp's stores, and those of whoever of the CTA learns of it (a barrier, shared memory, an
//! atomic), as undo logs rely on: that is what `pm.sfence` does here. The paper needs no arrival at barriers
//! of a workgroup or kernel; the instruction has one here, under every scheme. Lines are tagged in the L1
//! alone and leave it for memory, so that the L2 needs no tags: an epoch is not held twice, at the price of a
//! round trip to memory between epochs. Write-backs of the program are dropped; `pm.dfence` waits. An atomic
//! on persistent memory waits until its CTA's earlier stores and itself are durable.
//!
//! Where L1s do not combine stores nothing is dirty there: stores bypass the caches at once,
//! [`store_order`](super::store_order) keeps the order, and a barrier of a kernel waits for durability.
//! Invariants: a line waits for lines of lower places of its instance, or of earlier barriers of the kernel,
//! only: there is no cycle. Not modelled: time and area of tag walks.

use super::store_order::{StoreOrder, StoreOrderSpec, flushes_only};
use std::collections::BTreeMap;
use std::sync::Arc;

use durawarp_base::spec;
use durawarp_checkpoint::{LoadFault, StateReader, state, state_methods, value};
use durawarp_persist::kernel_order::{Gathering, KernelOrder, read_gathered};
use durawarp_persist::promises::{Fences, Promises};
use durawarp_persist::{
    Admission, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, Joining, NonTemporalOrder, Outbox, Peer,
    Scheme, SchemeMessage, SmEvent, SmHandler, SmInterests, SmOffer, Store, StoreRule, WriteBack, WriteBackRule,
};

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("epoch_tag.toml");

spec! {
    /// Parameters of the tags' stand-in where L1s do not combine stores.
    pub struct EpochTagSpec {
        /// Non-temporal stores that may be under way, of an SM whose L1 does not combine stores.
        past_entries: u32 where 1..=65536,
        /// Requests that such an SM may hold back until these are durable.
        held_entries: u32 where 1..=65536,
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct EpochTag {
    spec: Arc<EpochTagSpec>,
}

impl EpochTag {
    /// Tags with these parameters.
    pub fn new(spec: EpochTagSpec) -> Self {
        EpochTag { spec: Arc::new(spec) }
    }
}

/// A version of a line that is not durable yet.
#[derive(Debug, Clone, Copy)]
struct Version {
    /// The number of its first store: the versions' order, and its name.
    id: u64,
    line: u64,
    /// Its scope instance.
    cta: u8,
    /// Its barrier id: versions of its instance up to here come first.
    after: u64,
    /// Barriers of the kernel that it is behind.
    kernel: usize,
    /// Something waits for it.
    wanted: bool,
    /// It has left the L1.
    left: bool,
}

value!(record Version { id, line, cta, after, kernel, wanted, left });

#[derive(Debug, Default)]
struct EpochTally {
    versions: u64,
    combined: u64,
    older: u64,
    foreign: u64,
    forced: u64,
}

value!(record EpochTally { versions, combined, older, foreign, forced });

/// The tags of an SM's L1.
#[derive(Debug)]
struct EpochTagSm {
    combines: bool,
    /// By id.
    versions: Vec<Version>,
    /// The number of the last store that came.
    seen: u64,
    /// Of each CTA: up to which number its stores are wanted.
    flushed: BTreeMap<u8, u64>,
    kernel: KernelOrder,
    /// Where L1s do not combine.
    order: StoreOrder,
    tally: EpochTally,
}

state!(EpochTagSm { saved: versions, seen, flushed, kernel, tally; parts: order; kept: combines });

impl EpochTagSm {
    fn new(spec: &Arc<EpochTagSpec>, combines: bool) -> Self {
        EpochTagSm {
            combines,
            versions: Vec::new(),
            seen: 0,
            flushed: BTreeMap::new(),
            kernel: KernelOrder::default(),
            order: StoreOrder::new(StoreOrderSpec {
                order: NonTemporalOrder::BeforeCached,
                non_temporal_entries: spec.past_entries,
                held_entries: spec.held_entries,
            }),
            tally: EpochTally::default(),
        }
    }

    /// The version of a line that is in the L1.
    fn of(&mut self, line: u64) -> Option<usize> {
        self.versions.iter().position(|version| version.line == line && !version.left)
    }

    /// A version, and what must leave before it, is wanted.
    fn want(&mut self, at: usize) {
        let Version { cta, after, wanted, .. } = self.versions[at];
        self.versions[at].wanted = true;
        for version in self.versions[..at].iter_mut().filter(|version| version.cta == cta && version.id <= after) {
            self.tally.forced += u64::from(!wanted && !version.wanted);
            version.wanted = true;
        }
    }

    /// Everything of a CTA that leaves before the version at `at` is durable.
    fn may_leave(&self, at: usize) -> bool {
        let Version { cta, after, kernel, .. } = self.versions[at];
        let oldest = self.versions.iter().find(|version| version.cta == cta);
        self.kernel.may_leave(kernel) && oldest.is_none_or(|oldest| oldest.id > after)
    }

    /// What is wanted and may leaves; what the SM has done is told.
    fn pump(&mut self, outbox: &mut Outbox) {
        for at in 0..self.versions.len() {
            let Version { id, line, wanted, left, .. } = self.versions[at];
            if wanted && !left && self.may_leave(at) {
                self.versions[at].left = true;
                outbox.persist(line, id);
            }
        }
        let durable = self.versions.first().map_or(self.seen, |oldest| oldest.id - 1);
        self.kernel.durable(durable, outbox);
    }
}

impl EpochTagSm {
    /// A store is about to join its line; false where it has to wait.
    fn join(&mut self, store: &Joining, outbox: &mut Outbox) -> bool {
        let cta = store.by.1;
        let kernel = self.kernel.epoch_of(store.number);
        // What comes late to what is being drained leaves at once.
        let behind_flush = self.flushed.get(&cta).is_some_and(|&last| store.number <= last);
        let wanted = behind_flush || kernel < self.kernel.barriers();
        let at = match self.of(store.line) {
            Some(at) => {
                let version = &mut self.versions[at];
                let (same_cta, same_epoch) = (version.cta == cta, version.kernel == kernel && store.after < version.id);
                if !(same_cta && same_epoch) {
                    let tally = if same_cta { &mut self.tally.older } else { &mut self.tally.foreign };
                    *tally += u64::from(!version.wanted);
                    self.want(at);
                    self.pump(outbox);
                    return false;
                }
                version.after = version.after.max(store.after);
                self.tally.combined += 1;
                at
            }
            None => {
                let Joining { line, number: id, after, .. } = *store;
                self.tally.versions += 1;
                self.versions.push(Version { id, line, cta, after, kernel, wanted: false, left: false });
                self.versions.len() - 1
            }
        };
        self.seen = store.number;
        if wanted || self.versions[at].wanted {
            self.want(at);
        }
        self.pump(outbox);
        true
    }

    /// Something waits for a dirty line to leave.
    fn wanted(&mut self, line: u64, outbox: &mut Outbox) {
        if let Some(at) = self.of(line) {
            self.want(at);
            self.pump(outbox);
        }
    }

    /// Something waits for a CTA's stores up to this number.
    fn flush(&mut self, cta: u8, number: u64, outbox: &mut Outbox) {
        let last = self.flushed.entry(cta).or_default();
        *last = number.max(*last);
        for version in self.versions.iter_mut().filter(|version| version.cta == cta && version.id <= number) {
            version.wanted = true;
        }
        self.pump(outbox);
    }

    /// A persist barrier of the kernel opens.
    fn kernel_barrier(&mut self, number: u64, outbox: &mut Outbox) {
        self.kernel.barrier(number);
        self.versions.iter_mut().for_each(|version| version.wanted = true);
        self.pump(outbox);
    }

    /// What left is durable.
    fn persisted(&mut self, id: u64, outbox: &mut Outbox) {
        self.versions.retain(|version| version.id != id);
        self.pump(outbox);
    }
}

impl Handler for EpochTagSm {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.kernel.message(message);
        self.pump(outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        let EpochTally { versions, combined, older, foreign, forced } = self.tally;
        report.count("tagged_versions", versions);
        report.count("combined_stores", combined);
        report.count("older_epoch_versions", older);
        report.count("foreign_versions", foreign);
        report.count("forced_versions", forced);
        self.order.report(report);
    }
}

impl SmHandler for EpochTagSm {
    fn interests(&self) -> SmInterests {
        SmInterests { persist_order: true, departures: !self.combines, ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, outbox: &mut Outbox) -> Admission {
        match offer {
            SmOffer::Join(store) => Admission::goes_if(self.join(store, outbox)),
            offer => self.order.offer(offer),
        }
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SmEvent::Wanted(line) => self.wanted(line, outbox),
            SmEvent::Flush { cta, number } => self.flush(cta, number, outbox),
            SmEvent::KernelBarrier(number) => self.kernel_barrier(number, outbox),
            SmEvent::Persisted(id) => self.persisted(id, outbox),
            _ => self.order.event(event, outbox),
        }
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        self.order.rule(store, self.combines)
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        flushes_only(write_back)
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        match kind {
            FenceKind::Dfence => FenceRule::WaitDurable,
            FenceKind::BarrierKernel if !self.combines => FenceRule::WaitDurable,
            _ => FenceRule::Ordered,
        }
    }
}

impl Scheme for EpochTag {
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        read_gathered(from)
    }

    fn name(&self) -> &'static str {
        "epoch-tag"
    }

    fn description(&self) -> &'static str {
        "scoped persist barriers that do not wait: lines leave L1s in the order of their epochs' tags (Gope et al., BPFS)"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(EpochTagSm::new(&self.spec, place.l1_combines)))
    }

    fn hub_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        place.l1_combines.then(|| Box::new(Gathering::new(place.sms)) as Box<dyn Handler>)
    }

    /// Barriers order without a wait: buffered epochs (Gope et al., section 6.1).
    fn promises(&self) -> Promises {
        Promises { fences: Fences::Dfence, non_temporal: NonTemporalOrder::Epochs, ..Promises::NONE }
    }

    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
