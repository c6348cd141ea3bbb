//! The tags of an SM's L1: which dirty line leaves when.
//!
//! A version of a line waits for versions of its instance up to its barrier id, or of earlier barriers of the
//! kernel, until these have *arrived*: in the L2, where its slice keeps the order on (`slice.rs`), or in
//! memory, where only L1s have tags. Invariant: a version waits for versions of a lower place in the SM's
//! order or of an earlier barrier only, so that there is no cycle. Not modelled: time of tag walks.

use std::collections::BTreeMap;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::{
    Admission, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, Joining, LaunchSet, NonTemporalOrder,
    Outbox, Peer, SchemeMessage, SmEvent, SmHandler, SmInterests, SmOffer, Store, StoreRule, WriteBack, WriteBackRule,
    opened,
};

use super::super::store_order::{StoreOrder, StoreOrderSpec, flushes_only};
use super::kernel_order::KernelOrder;
use super::message::{LineTag, TagMessage};
use super::parameters::{EpochTagSpec, TagLevels};

/// A version of a line that has not arrived yet.
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
pub(super) struct EpochTagSm {
    combines: bool,
    /// Slices that keep the order on; none where only L1s have tags.
    slices: u16,
    /// It tells slices of launches in flight together, for all SMs: they hear of them at one instant.
    tells: bool,
    /// By id.
    versions: Vec<Version>,
    /// The number of the last store that came.
    seen: u64,
    /// Of each CTA: up to which number its stores are wanted.
    flushed: BTreeMap<u8, u64>,
    kernel: KernelOrder,
    /// A launch has started.
    launched: bool,
    /// Where L1s do not combine.
    order: StoreOrder,
    tally: EpochTally,
}

state!(EpochTagSm { saved: versions, seen, flushed, kernel, launched, tally; parts: order; kept: combines, slices, tells });

impl EpochTagSm {
    /// Those of an SM.
    pub(super) fn new(spec: &EpochTagSpec, place: HandlerPlace) -> Self {
        EpochTagSm {
            combines: place.l1_combines,
            slices: if spec.levels == TagLevels::Both && place.l1_combines { place.slices } else { 0 },
            tells: place.index == 0,
            versions: Vec::new(),
            seen: 0,
            flushed: BTreeMap::new(),
            kernel: KernelOrder::default(),
            launched: false,
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

    /// Everything of a CTA that leaves before the version at `at` has arrived.
    fn may_leave(&self, at: usize) -> bool {
        let Version { cta, after, kernel, .. } = self.versions[at];
        let oldest = self.versions.iter().find(|version| version.cta == cta);
        self.kernel.may_leave(kernel) && oldest.is_none_or(|oldest| oldest.id > after)
    }

    /// What is wanted and may leaves; what the SM has done is told.
    fn pump(&mut self, outbox: &mut Outbox) {
        for at in 0..self.versions.len() {
            let Version { id, line, cta, after, kernel, wanted, left } = self.versions[at];
            if wanted && !left && self.may_leave(at) {
                self.versions[at].left = true;
                outbox.persist(line, id);
                if self.slices != 0 {
                    let tag = LineTag { line, id, cta, after, kernel: kernel as u64 };
                    outbox.send(Peer::SliceOf(line), TagMessage::Tag(tag));
                }
            }
        }
        let arrived = self.versions.first().map_or(self.seen, |oldest| oldest.id - 1);
        self.kernel.arrived(arrived, outbox);
    }
}

impl EpochTagSm {
    /// A store is about to join its line; false where it has to wait.
    fn join(&mut self, store: &Joining, outbox: &mut Outbox) -> bool {
        let cta = store.by.1;
        let kernel = self.kernel.epoch_of(store.launch, store.number);
        // What comes late to what is being drained leaves at once.
        let behind_flush = self.flushed.get(&cta).is_some_and(|&last| store.number <= last);
        let wanted = behind_flush || self.kernel.goes_on(store.launch, kernel);
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
        if number > *last {
            *last = number;
            (0..self.slices).for_each(|slice| outbox.send(Peer::Slice(slice), TagMessage::Flush { cta, number }));
        }
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

    /// A launch starts, or a part of one. The first has nothing before it.
    fn launch_starts(&mut self, (number, launch): (u64, u8), beside: LaunchSet, again: bool, outbox: &mut Outbox) {
        if !std::mem::replace(&mut self.launched, true) {
            return self.kernel.first_launch(launch);
        }
        let with = self.kernel.epochs(beside);
        let kernel = self.kernel.launch(launch, number, again) as u64;
        if self.tells && !with.is_empty() {
            for slice in 0..self.slices {
                outbox.send(Peer::Slice(slice), TagMessage::Beside { kernel, with: with.clone() });
            }
        }
        self.pump(outbox);
    }

    /// What left has arrived.
    fn persisted(&mut self, id: u64, outbox: &mut Outbox) {
        self.versions.retain(|version| version.id != id);
        self.pump(outbox);
    }
}

impl Handler for EpochTagSm {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            TagMessage::Go(barrier) => self.kernel.go(barrier),
            TagMessage::Durable(id) => outbox.durable(id),
            message => panic!("an SM received {message:?}"),
        }
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
        let (departures, persists_by_l2) = (!self.combines, self.slices != 0);
        SmInterests { persist_order: true, persists_by_l2, departures, ..SmInterests::default() }
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
            // What launches stored that are over comes first.
            SmEvent::LaunchStarts { number, launch, beside, again } if self.slices != 0 => {
                self.launch_starts((number, launch), beside, again, outbox);
            }
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

#[cfg(test)]
mod tests;
