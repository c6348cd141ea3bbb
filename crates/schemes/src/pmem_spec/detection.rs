//! Detection of mis-speculation: at the slices, which tell a hub that hands out speculation ids and counts.
//!
//! ```text
//!   load:   line leaves the L2 ─> it is read from memory ─> a store to it arrives, all within the window
//!   store:  SM ──atomic──> hub ──next id──> SM ──marked stores──> slice: a lower id after a higher one in a bucket
//! ```
//! Source: PMEM-Spec (ASPLOS 2021): stale reads past the persist path, and the order of cores that pass a
//! lock on. Readings: an atomic takes a lock; its id is there when the hub's message is, about as late as the
//! atomic's own answer, and holds for the whole SM. A store of an SM that never took one has no id. Ids are
//! kept by slice, for buckets of addresses, the least recently used is forgotten; our memory has a controller
//! for each part of a bucket.
//!
//! What is detected and what is wrong are two things. In this machine stores meet the loads of their line in
//! order at its slice, so a load never was stale: each of the first kind is a **false positive**, named so.
//! So is each of the second kind where fences that wait order what a lock passes on. Hardware would restart
//! sections for all of them. Invariant: what is detected changes nothing that happens. Left out: the restart;
//! a read or a store that waits for a fill counts when it arrives at the slice.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;

use super::parameters::PmemSpecSpec;
use durawarp_checkpoint::{StateWriter, Storable, state, state_methods, value};
use durawarp_persist::{
    Access, AccessKind, Handler, HandlerPlace, HandlerReport, Outbox, Peer, SchemeMessage, SliceEvent, SliceHandler,
    opened,
};

/// What was detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) loads: u64,
    pub(super) stores: u64,
}

value!(record Found { loads, stores });

/// A message.
#[derive(Debug)]
pub(super) enum DetectionMessage {
    /// SM to hub: an atomic was issued.
    Acquire,
    /// Hub to SM: its id from now on.
    Id(u64),
    /// Host to hub.
    KernelEnd,
    /// Hub to slices: tell what was found, and forget it.
    Tell,
    /// The answer.
    Told(Found),
}

value!(choice DetectionMessage { Acquire, Id(id), KernelEnd, Tell, Told(found) });

impl DetectionMessage {
    /// What a message of this scheme says.
    pub(super) fn of(message: Box<dyn SchemeMessage>) -> DetectionMessage {
        opened(message)
    }
}

impl SchemeMessage for DetectionMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        match self {
            DetectionMessage::Acquire => 1,
            DetectionMessage::Id(id) => 2 << 56 ^ id,
            DetectionMessage::KernelEnd => 3,
            DetectionMessage::Tell => 4,
            DetectionMessage::Told(found) => 5 << 56 ^ found.loads << 28 ^ found.stores,
        }
    }
}

/// A line that left the L2.
#[derive(Debug)]
struct Evicted {
    line: u64,
    at: u64,
    read: bool,
}

value!(record Evicted { line, at, read });

/// A slice's part.
#[derive(Debug)]
pub(super) struct Detector {
    window_ticks: u64,
    bucket_bytes: u64,
    bucket_entries: usize,
    /// By time.
    evicted: VecDeque<Evicted>,
    /// Buckets and their last ids, the most recently used last.
    buckets: VecDeque<(u64, u64)>,
    found: Found,
}

state!(Detector { saved: evicted, buckets, found; kept: window_ticks, bucket_bytes, bucket_entries });

impl Detector {
    pub(super) fn new(spec: &Arc<PmemSpecSpec>, place: HandlerPlace) -> Self {
        Detector {
            window_ticks: (u128::from(spec.window_ns.ps) * u128::from(place.tick_khz) / 1_000_000_000) as u64,
            bucket_bytes: spec.bucket_bytes,
            bucket_entries: spec.bucket_entries as usize,
            evicted: VecDeque::new(),
            buckets: VecDeque::new(),
            found: Found::default(),
        }
    }

    fn expire(&mut self, now: u64) {
        while self.evicted.front().is_some_and(|first| first.at + self.window_ticks < now) {
            self.evicted.pop_front();
        }
    }

    /// The slice serves an access.
    fn access(&mut self, access: &Access, now: u64) {
        self.expire(now);
        let late = self.evicted.iter().position(|evicted| evicted.line == access.line);
        match (access.kind, late) {
            (AccessKind::Load | AccessKind::Atomic, Some(at)) if !access.hit => self.evicted[at].read = true,
            (AccessKind::Store, Some(at)) => {
                self.found.loads += u64::from(self.evicted[at].read);
                self.evicted.remove(at);
            }
            _ => {}
        }
        if access.kind == AccessKind::Store && access.mark != 0 {
            self.order(access.line, access.mark);
        }
    }

    /// A store of this id arrives.
    fn order(&mut self, line: u64, id: u64) {
        let bucket = line / self.bucket_bytes;
        let known = self.buckets.iter().position(|(of, _)| *of == bucket).and_then(|at| self.buckets.remove(at));
        let last = known.map_or(0, |(_, last)| last);
        self.found.stores += u64::from(id < last);
        if known.is_none() && self.buckets.len() == self.bucket_entries {
            self.buckets.pop_front();
        }
        self.buckets.push_back((bucket, last.max(id)));
    }
}

impl Handler for Detector {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match DetectionMessage::of(message) {
            DetectionMessage::Tell => outbox.send(Peer::Hub, DetectionMessage::Told(std::mem::take(&mut self.found))),
            other => panic!("PMEM-Spec's detector received {other:?}"),
        }
    }
}

impl SliceHandler for Detector {
    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SliceEvent::Accessed(access) => self.access(access, outbox.now()),
            SliceEvent::Replaced(line) => {
                self.expire(outbox.now());
                self.evicted.retain(|evicted| evicted.line != line);
                self.evicted.push_back(Evicted { line, at: outbox.now(), read: false });
            }
            SliceEvent::Drain(_) | SliceEvent::Durable(_) => {}
        }
    }
}

/// The hub: ids, and what all slices found.
#[derive(Debug)]
pub(super) struct Counter {
    slices: u16,
    /// Fences that wait keep the order, so that every suspicion about stores is wrong.
    fenced: bool,
    acquires: u64,
    found: Found,
}

state!(Counter { saved: acquires, found; kept: slices, fenced });

impl Counter {
    pub(super) fn new(place: HandlerPlace, fenced: bool) -> Self {
        Counter { slices: place.slices, fenced, acquires: 0, found: Found::default() }
    }
}

impl Handler for Counter {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match DetectionMessage::of(message) {
            DetectionMessage::Acquire => {
                self.acquires += 1;
                outbox.send(from, DetectionMessage::Id(self.acquires));
            }
            DetectionMessage::KernelEnd => {
                (0..self.slices).for_each(|slice| outbox.send(Peer::Slice(slice), DetectionMessage::Tell))
            }
            DetectionMessage::Told(found) => {
                self.found.loads += found.loads;
                self.found.stores += found.stores;
            }
            other => panic!("PMEM-Spec's hub received {other:?}"),
        }
    }

    fn state(&self, take: &mut dyn FnMut(u64)) {
        [self.acquires, self.found.loads, self.found.stores].into_iter().for_each(take);
    }

    fn report(&self, report: &mut HandlerReport) {
        let Found { loads, stores } = self.found;
        report.results = json!({
            "acquires": self.acquires,
            "load_mis_speculations": { "detected": loads, "false_positives": loads },
            "store_mis_speculations": { "detected": stores, "false_positives": self.fenced.then_some(stores) },
            "aborts_not_modelled": loads + stores,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_persist::handler::report_of;

    const SEAT: HandlerPlace = HandlerPlace {
        index: 0,
        sms: 2,
        cores: 0,
        harts: 0,
        slices: 3,
        controllers: 1,
        tick_khz: 1_000_000,
        l1_combines: false,
        channels: 0,
    };

    fn detector(bucket_entries: u32) -> (Detector, Outbox) {
        let values = crate::entry::values_of::<PmemSpecSpec>(super::super::DEFAULTS);
        let spec: PmemSpecSpec = serde_json::from_value(values.into()).unwrap();
        // A tick is a nanosecond, and the window 20 of them.
        (Detector::new(&Arc::new(PmemSpecSpec { bucket_entries, ..spec }), SEAT), Outbox::default())
    }

    fn access(kind: AccessKind, line: u64, hit: bool, mark: u64) -> Access {
        Access { line, bytes: 1, kind, half_warps: 1, by: (0, 0), launch: 0, from: 0, mark, log: false, hit }
    }

    #[test]
    fn a_store_that_comes_after_its_line_was_evicted_and_read_is_found_within_the_window() {
        let found = |read: Option<(bool, u64)>, stored_at: u64| {
            let (mut detector, mut outbox) = detector(64);
            outbox.at(1000);
            detector.event(&SliceEvent::Replaced(128), &mut outbox);
            if let Some((hit, line)) = read {
                detector.event(&SliceEvent::Accessed(&access(AccessKind::Load, line, hit, 0)), &mut outbox);
            }
            outbox.at(stored_at);
            detector.event(&SliceEvent::Accessed(&access(AccessKind::Store, 128, false, 0)), &mut outbox);
            detector.event(&SliceEvent::Accessed(&access(AccessKind::Store, 128, false, 0)), &mut outbox);
            detector.found.loads
        };
        assert_eq!(found(Some((false, 128)), 1020), 1, "once");
        assert_eq!(found(Some((false, 128)), 1021), 0, "too late for the persist path");
        assert_eq!(found(None, 1005), 0, "nobody read it");
        assert_eq!(found(Some((true, 128)), 1005), 0, "it was not read from memory");
        assert_eq!(found(Some((false, 256)), 1005), 0, "another line");
    }

    #[test]
    fn a_lower_id_after_a_higher_one_in_a_bucket_is_found() {
        let found = |entries: u32, stores: &[(u64, u64)]| {
            let (mut detector, mut outbox) = detector(entries);
            for &(line, id) in stores {
                detector.event(&SliceEvent::Accessed(&access(AccessKind::Store, line, false, id)), &mut outbox);
            }
            detector.found.stores
        };
        assert_eq!(found(64, &[(0, 1), (128, 2), (256, 2), (0, 3)]), 0);
        assert_eq!(found(64, &[(0, 2), (128, 1), (256, 1)]), 2, "and the higher one stays");
        assert_eq!(found(64, &[(0, 2), (4096, 1)]), 0, "another bucket");
        assert_eq!(found(64, &[(0, 2), (128, 0)]), 0, "outside of any section");
        assert_eq!(found(1, &[(0, 2), (4096, 1), (0, 1)]), 0, "forgotten");
    }

    #[test]
    fn the_hub_hands_out_ids_and_sums_what_slices_found() {
        let (mut hub, mut outbox) = (Counter::new(SEAT, true), Outbox::default());
        for (sm, id) in [(1, 1), (0, 2)] {
            hub.message(Peer::Sm(sm), Box::new(DetectionMessage::Acquire), &mut outbox);
            let sent = outbox.take();
            assert_eq!((sent.len(), sent[0].0), (1, Peer::Sm(sm)));
            assert!(sent.into_iter().all(
                |(_, message)| matches!(DetectionMessage::of(message), DetectionMessage::Id(given) if given == id)
            ));
        }
        hub.message(Peer::Host, Box::new(DetectionMessage::KernelEnd), &mut outbox);
        let asked: Vec<Peer> = outbox.take().into_iter().map(|(to, _)| to).collect();
        assert_eq!(asked, [Peer::Slice(0), Peer::Slice(1), Peer::Slice(2)]);
        for slice in 0..3 {
            hub.message(
                Peer::Slice(slice),
                Box::new(DetectionMessage::Told(Found { loads: 1, stores: 2 })),
                &mut outbox,
            );
        }
        let report = report_of(&hub).results;
        assert_eq!(report["load_mis_speculations"], json!({ "detected": 3, "false_positives": 3 }));
        assert_eq!(report["store_mis_speculations"], json!({ "detected": 6, "false_positives": 6 }));
        assert_eq!((&report["acquires"], &report["aborts_not_modelled"]), (&json!(2), &json!(9)));
        assert_eq!(
            report_of(&Counter::new(SEAT, false)).results["store_mis_speculations"]["false_positives"],
            serde_json::Value::Null
        );
    }
}
