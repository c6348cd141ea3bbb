//! LightWSP at a memory controller: the WPQ gated by region ID, and the protocol that keeps controllers in
//! step.
//!
//! ```text
//!   stores ──> WPQ ─┐ boundary here, bdry-ACKs of all others, ID = flush ID
//!                   └──> write queue ──> all written: flush-ACKs to all ──> all others' flush-ACKs: flush ID + 1
//!                                             └ pipelined: flush ID + 1, flush-ACK to the first controller
//! ```
//! Source: LightWSP sections IV-B (bdry-ACKs, flush-ACKs, flush ID), IV-D (fallback with undo logging), IV-H
//! (reads). Readings: see [`super`]. A region's bdry-ACKs may be exchanged long before its turn; flushes are
//! of the oldest region alone. A store that has come and finds no room waits, known to reads and still in its
//! front-end buffer; the oldest region's waits never. A read waits, where it may, for stores of regions that
//! have ended here with all before them, which commit whatever warps do; and for the oldest region's, which
//! are written with an undo log if it has not ended. A store of any other region may come after the read in
//! its warp's program, or wait for a warp that does.
//!
//! # What a power failure leaves
//! | in the persistence domain (sections IV-B, IV-F) | lost |
//! |---|---|
//! | gated entries, the write queue, the flush ID, an undo log | stores and boundaries on the persist path |
//! | bdry-ACKs and flush-ACKs, also those under way (known until their region's turn is over) | what only caches have |
//!
//! Let f be the first region whose boundary is not in at every controller. A boundary is in when all its
//! region's stores here are, and each controller comes to know of it by ACKs that survive: so all controllers
//! flush the regions below f in recovery, and none flushes f. A state is sound if what each controller has
//! written is a prefix of its stores in the order of IDs, from regions below f alone, and of the next region
//! what has an undo log. That does not ask for flush-ACKs.
//!
//! `commit = "acked"`, the paper's, waits for them all the same: flush IDs are equal but for ACKs under way,
//! and a region takes an exchange of ACKs at least. `commit = "pipelined"` (ours) moves a controller's flush
//! ID once its own stores are written. The next region is written only with the bdry-ACKs of all, which come
//! after those of this one; its undo log begins when this one is written. So controllers are apart by any
//! number of regions, all below f, and each goes on from its own flush ID in recovery. Flush-ACKs go to the
//! first controller alone, which tells a region's SM when all have written it: then its ID may be used again.
//!
//! `commit = "sequencer"` (ours) is that with 2 (n - 1) messages a boundary in place of n (n - 1): bdry-ACKs
//! go to the first controller, whose own bdry-ACK to the others says that all have the boundary. In recovery
//! messages that are under way arrive, then those that follow from them: so all flush the regions below f.
//!
//! Invariants: entries in use never exceed the queue, but for one store of more entries than it has; a
//! boundary counts when all stores of its region that came before it are in; regions commit in the order of
//! their IDs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;
use slab::Slab;
use smallvec::SmallVec;

use crate::core_regions::account::{Account, Stage};
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::bytes::copy_masked;
use durawarp_persist::handler::{
    ControllerEvent, ControllerHandler, Flush, Handler, HandlerPlace, HandlerReport, Held, Outbox, Peer, SchemeMessage,
    opened,
};
use durawarp_persist::regions::Overflow;
use durawarp_persist::vocab::RegionStep;

use super::messages::{Copied, RegionMessage, Tag};
use super::parameters::{Commit, LightWspSpec, RegionOrder, Snoop, Victims, WpqHit};

/// A store that memory does not have yet.
#[derive(Debug)]
struct HeldStore {
    tag: Tag,
    from: (Peer, u8),
    copied: Copied,
    /// Its front-end buffer knows that it is here.
    taken: bool,
    /// It has room in the WPQ.
    counted: bool,
}

value!(record HeldStore { tag, from, copied, taken, counted });

/// What a controller knows of a region.
#[derive(Debug, Default)]
struct Region {
    /// Entries of all its stores that have come, for the account.
    entries: u32,
    /// Entries in the WPQ.
    held: Vec<usize>,
    /// Stores that wait for room.
    waiting: u32,
    /// Writes that are on their way to the write queue.
    flushing: u32,
    /// Its boundary has come, from this SM or core, of this owner.
    boundary: Option<(Peer, u8)>,
    /// So have all its stores here.
    bounded: bool,
    boundary_acks: u16,
    /// Its stores are being written.
    flushes: bool,
    /// All its stores here are written.
    done: bool,
    flush_acks: u16,
    /// Its stores are written before its boundary has come.
    spills: bool,
}

value!(record Region {
    entries, held, waiting, flushing, boundary, bounded, boundary_acks, flushes, done, flush_acks, spills,
});

impl Region {
    /// All its stores that have come are held, or written in the fallback: before its boundary counts nothing
    /// else is on its way to the write queue.
    fn is_in(&self) -> bool {
        self.waiting == 0 && self.flushing == 0
    }
}

/// The regions of one order that are not committed.
#[derive(Debug, Default)]
struct Order {
    /// Number of the oldest; its ID is the flush ID.
    number: u32,
    /// From the oldest on.
    regions: VecDeque<Region>,
    /// Pipelined, at the first controller.
    elsewhere: Elsewhere,
}

value!(record Order { number, regions, elsewhere });

/// What the first controller knows of regions that it has written and others may have not.
#[derive(Debug, Default)]
struct Elsewhere {
    /// Flush-ACKs that have come, by controller; each controller's come in the order of regions.
    written: Vec<u32>,
    /// Regions that all have written.
    by_all: u32,
    /// SMs, or cores, of those that are written here and not by all: no more than IDs may be in use.
    untold: VecDeque<Peer>,
}

value!(record Elsewhere { written, by_all, untold });

impl Elsewhere {
    /// The SM, or core, of the next region that all have written.
    fn next(&mut self, index: u16, controllers: u16) -> Option<Peer> {
        let has = |other: u16| self.written.get(usize::from(other)).is_some_and(|&written| written > self.by_all);
        if !(0..controllers).filter(|&other| other != index).all(has) {
            return None;
        }
        let to = self.untold.pop_front()?;
        self.by_all += 1;
        Some(to)
    }

    fn acked_by(&mut self, controller: u16) {
        let place = usize::from(controller);
        if self.written.len() <= place {
            self.written.resize(place + 1, 0);
        }
        self.written[place] += 1;
    }
}

#[derive(Debug, Default)]
struct GateTally {
    committed: u64,
    overflows: u64,
    spilled: u64,
    waited: u64,
    hits: u64,
    hits_waited: u64,
    hits_merged: u64,
    hit_fallbacks: u64,
    most_entries: u64,
}

value!(record GateTally {
    committed, overflows, spilled, waited, hits, hits_waited, hits_merged, hit_fallbacks, most_entries,
});

/// The handler of a controller.
#[derive(Debug)]
pub(super) struct GatedQueue {
    spec: Arc<LightWspSpec>,
    place: HandlerPlace,
    entries: Slab<HeldStore>,
    /// By line: what is held, in the order of arrival. Looked up alone.
    by_line: HashMap<u64, SmallVec<[usize; 2]>>,
    /// Stores that wait for room, the oldest region's first.
    waiting: BTreeMap<(u32, u64), usize>,
    arrivals: u64,
    used: u32,
    /// Entries of all that memory does not have yet, with room or without.
    held_entries: u64,
    orders: Vec<Order>,
    tally: GateTally,
    account: Account,
}

state!(GatedQueue {
    sized: orders; saved: entries, by_line, waiting, arrivals, used, held_entries, tally, account; kept: spec, place
});

impl GatedQueue {
    pub(super) fn new(spec: Arc<LightWspSpec>, place: HandlerPlace) -> Self {
        let orders = if spec.order == RegionOrder::Global { 1 } else { place.computes() };
        GatedQueue {
            spec,
            place,
            entries: Slab::new(),
            by_line: HashMap::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
            used: 0,
            held_entries: 0,
            orders: (0..orders).map(|_| Order::default()).collect(),
            tally: GateTally::default(),
            account: Account::new(orders.into(), place.controllers),
        }
    }

    /// A region's place behind the oldest of its order, by serial-number arithmetic.
    fn place(&self, tag: Tag) -> usize {
        let flush_id = self.spec.id(self.orders[usize::from(tag.order)].number);
        let ahead = self.spec.id(u32::from(tag.id).wrapping_sub(u32::from(flush_id)));
        assert!(u32::from(ahead) < self.spec.window(), "a region that is committed, or too young");
        usize::from(ahead)
    }

    fn region(&mut self, tag: Tag) -> &mut Region {
        let place = self.place(tag);
        let regions = &mut self.orders[usize::from(tag.order)].regions;
        while regions.len() <= place {
            regions.push_back(Region::default());
        }
        &mut regions[place]
    }

    /// The oldest region of an order.
    fn oldest(&self, order: usize) -> Tag {
        self.spec.tag(order as u16, self.orders[order].number)
    }

    /// How far the oldest region of an order is.
    fn stage(&self, order: usize) -> Stage {
        match self.orders[order].regions.front() {
            None => Stage::Unknown,
            Some(front) if !front.bounded => Stage::Boundary,
            Some(front) if !front.flushes => Stage::BoundaryAcks,
            Some(front) if !front.done => Stage::Flush,
            Some(_) => Stage::FlushAcks,
        }
    }

    /// Notes down what the oldest region of an order waits for now.
    fn keep_account(&mut self, order: u16, from: Option<u16>, outbox: &Outbox) {
        let at = usize::from(order);
        self.account.see(at, self.orders[at].number, self.stage(at), from, outbox.now());
    }

    fn to_others(&self, outbox: &mut Outbox, word: impl Fn() -> RegionMessage) {
        for controller in (0..self.place.controllers).filter(|&controller| controller != self.place.index) {
            outbox.send(Peer::Controller(controller), word());
        }
    }

    fn store(&mut self, tag: Tag, from: (Peer, u8), copied: Copied, outbox: &mut Outbox) {
        if self.spec.victims != Victims::Stale {
            // Reads see it from now on: whoever kept the line for it may let the line go.
            let keeps = match self.spec.snoop {
                Snoop::Count => self.place.slice_of(copied.line),
                Snoop::Feb => from.0,
            };
            outbox.send(keeps, RegionMessage::Arrived(copied.line));
        }
        let (line, entries) = (copied.line, u32::from(copied.entries));
        let region = self.region(tag);
        region.entries += entries;
        let all = region.entries;
        self.account.grew(all, entries, self.spec.wpq_entries);
        self.held_entries += u64::from(entries);
        let slot = self.entries.insert(HeldStore { tag, from, copied, taken: false, counted: false });
        self.by_line.entry(line).or_default().push(slot);
        if self.place(tag) == 0 && self.region(tag).spills {
            self.spill(slot, outbox);
            return;
        }
        self.arrivals += 1;
        self.region(tag).waiting += 1;
        self.waiting.insert((tag.number, self.arrivals), slot);
        self.admit(outbox);
        self.tally.waited += u64::from(!self.entries[slot].taken);
    }

    /// Stores that wait are let in as there is room, unless a fallback keeps it for itself.
    fn admit(&mut self, outbox: &mut Outbox) {
        while let Some((&key, &slot)) = self.waiting.first_key_value() {
            let entry = &mut self.entries[slot];
            let (tag, entries) = (entry.tag, entry.copied.entries);
            let spills = |order: &Order| order.regions.front().is_some_and(|front| front.spills);
            if self.used > 0 && self.used + u32::from(entries) > self.spec.wpq_entries || self.orders.iter().any(spills)
            {
                break;
            }
            entry.counted = true;
            let (author, copied) = (tag.at(self.place.index), &entry.copied);
            outbox.note_bytes(RegionStep::Buffered, author, copied.line, copied.mask, &copied.bytes);
            self.waiting.remove(&key);
            self.used += u32::from(entries);
            self.tally.most_entries = self.tally.most_entries.max(u64::from(self.used));
            let region = self.region(tag);
            region.waiting -= 1;
            region.held.push(slot);
            self.take(slot, outbox);
            self.meet_boundary(tag, outbox);
        }
        self.fall_back(outbox);
    }

    /// The front-end buffer may forget a store.
    fn take(&mut self, slot: usize, outbox: &mut Outbox) {
        let entry = &mut self.entries[slot];
        entry.taken = true;
        let (to, warp) = entry.from;
        outbox.send(to, RegionMessage::Taken(warp, entry.copied.entries));
    }

    /// Where stores wait, and the oldest region lacks its boundary or stores before it, its stores are
    /// written with an undo log.
    fn fall_back(&mut self, outbox: &mut Outbox) {
        if self.waiting.is_empty() {
            return;
        }
        for order in 0..self.orders.len() {
            let comes_in = |front: &Region| front.boundary.is_some() && front.waiting == 0;
            let needs_none = |front: &Region| front.bounded || front.spills || comes_in(front);
            if self.orders[order].regions.front().is_some_and(needs_none) {
                continue;
            }
            let tag = self.oldest(order);
            if !self.waiting.values().any(|&slot| self.entries[slot].tag.order == tag.order) {
                continue;
            }
            self.tally.overflows += 1;
            let before = self.tally.spilled;
            self.spill_all(tag, outbox);
            self.account.overflowed(Overflow {
                at_ticks: outbox.now(),
                controller: self.place.index,
                order: tag.order,
                region: tag.number,
                stores: self.tally.spilled - before,
                waiting: self.waiting.len() as u64,
            });
        }
    }

    /// Writes what is here of the oldest region, and from now on what comes of it, until its boundary does.
    fn spill_all(&mut self, tag: Tag, outbox: &mut Outbox) {
        let front = self.region(tag);
        front.spills = true;
        let held = std::mem::take(&mut front.held);
        for slot in held {
            let entry = &mut self.entries[slot];
            self.used -= u32::from(entry.copied.entries);
            entry.counted = false;
            self.spill(slot, outbox);
        }
        let own: Vec<((u32, u64), usize)> =
            self.waiting.range((tag.number, 0)..(tag.number + 1, 0)).map(|(&key, &slot)| (key, slot)).collect();
        for (key, slot) in own {
            if self.entries[slot].tag.order == tag.order {
                self.waiting.remove(&key);
                self.region(tag).waiting -= 1;
                self.spill(slot, outbox);
            }
        }
        let front = self.region(tag);
        front.spills = front.boundary.is_none();
        self.meet_boundary(tag, outbox);
    }

    /// A region's stores here will be written whatever warps do: it is the oldest, or has ended with all
    /// before it.
    fn is_sure(&self, tag: Tag) -> bool {
        let (place, regions) = (self.place(tag), &self.orders[usize::from(tag.order)].regions);
        place == 0 || regions.range(..=place).all(|region| region.bounded)
    }

    /// Writes a store of the oldest region before the region's boundary has come.
    fn spill(&mut self, slot: usize, outbox: &mut Outbox) {
        let HeldStore { tag, taken, .. } = self.entries[slot];
        self.tally.spilled += 1;
        self.region(tag).flushing += 1;
        self.write(slot, true, outbox);
        if !taken {
            self.take(slot, outbox);
        }
    }

    fn write(&self, slot: usize, logged: bool, outbox: &mut Outbox) {
        let HeldStore { tag, copied, .. } = &self.entries[slot];
        outbox.flush(Flush {
            token: slot as u64,
            author: tag.at(self.place.index),
            line: copied.line,
            mask: copied.mask,
            bytes: copied.bytes.clone(),
            logged,
            plain: false,
        });
    }

    /// A region's boundary counts once all its stores that came before it are in: a spill that waits for the
    /// write queue would be lost in a power failure, and the region count as persisted.
    fn meet_boundary(&mut self, tag: Tag, outbox: &mut Outbox) {
        let (index, others) = (self.place.index, self.place.controllers - 1);
        let region = self.region(tag);
        let Some((to, owner)) = region.boundary.filter(|_| region.is_in() && !region.bounded) else { return };
        region.bounded = true;
        outbox.note(RegionStep::Bounded, tag.at(index));
        outbox.send(to, RegionMessage::Bounded(tag, owner));
        match self.spec.commit {
            Commit::Sequencer if index == 0 => self.tell_boundary(tag, outbox),
            Commit::Sequencer => outbox.send(Peer::Controller(0), RegionMessage::BoundaryAck(tag)),
            Commit::Acked | Commit::Pipelined if others > 0 => {
                self.to_others(outbox, || RegionMessage::BoundaryAck(tag));
            }
            Commit::Acked | Commit::Pipelined => {}
        }
        self.advance(tag.order, outbox);
    }

    /// The sequencer tells the others that all have a region's boundary.
    fn tell_boundary(&mut self, tag: Tag, outbox: &mut Outbox) {
        let all = self.boundary_acks_needed();
        let region = self.region(tag);
        if region.bounded && region.boundary_acks == all {
            self.to_others(outbox, || RegionMessage::BoundaryAck(tag));
        }
    }

    /// Bdry-ACKs that say that all controllers have a region's boundary.
    fn boundary_acks_needed(&self) -> u16 {
        match self.spec.commit {
            Commit::Sequencer if self.place.index != 0 => 1,
            _ => self.place.controllers - 1,
        }
    }

    /// Does what is due for the oldest regions of an order.
    fn advance(&mut self, order: u16, outbox: &mut Outbox) {
        let (index, others) = (self.place.index, self.place.controllers - 1);
        let boundary_acks = self.boundary_acks_needed();
        let at = usize::from(order);
        loop {
            let tag = self.oldest(at);
            let Some(front) = self.orders[at].regions.front_mut() else { return };
            if !front.bounded || front.boundary_acks < boundary_acks {
                return;
            }
            // Every controller has the boundary, so the region survives a power failure: its stores may be
            // written.
            if !front.flushes {
                front.flushes = true;
                let held = std::mem::take(&mut front.held);
                front.flushing += held.len() as u32;
                for slot in held {
                    self.write(slot, false, outbox);
                }
            }
            let Some(front) = self.orders[at].regions.front_mut() else { return };
            if front.flushing > 0 {
                return;
            }
            if !front.done {
                front.done = true;
                outbox.note(RegionStep::Done, tag.at(index));
                // Under `acked` all controllers wait for all; otherwise the first alone is told, which frees
                // the ID.
                match self.spec.commit {
                    Commit::Acked => self.to_others(outbox, || RegionMessage::FlushAck(tag)),
                    Commit::Pipelined | Commit::Sequencer if index != 0 => {
                        outbox.send(Peer::Controller(0), RegionMessage::FlushAck(tag));
                    }
                    Commit::Pipelined | Commit::Sequencer => {}
                }
            }
            if self.spec.commit == Commit::Acked && self.orders[at].regions[0].flush_acks < others {
                return;
            }
            outbox.note(RegionStep::Committed, tag.at(index));
            self.tally.committed += 1;
            let order = &mut self.orders[at];
            order.number += 1;
            if let Some(Region { boundary: Some((to, _)), .. }) = order.regions.pop_front()
                && index == 0
            {
                match self.spec.commit {
                    Commit::Acked => outbox.send(to, RegionMessage::Committed),
                    Commit::Pipelined | Commit::Sequencer => {
                        order.elsewhere.untold.push_back(to);
                        self.tell_committed(at, outbox);
                    }
                }
            }
            // There is room, and another region is the oldest, whose stores never wait. It may be due at
            // once.
            self.admit(outbox);
        }
    }

    /// Tells SMs, or cores, of regions that all controllers have written now.
    fn tell_committed(&mut self, order: usize, outbox: &mut Outbox) {
        let HandlerPlace { index, controllers, .. } = self.place;
        while let Some(to) = self.orders[order].elsewhere.next(index, controllers) {
            outbox.send(to, RegionMessage::Committed);
        }
    }
}

impl GatedQueue {
    /// The write queue has taken a flush.
    fn flushed(&mut self, token: u64, outbox: &mut Outbox) {
        let slot = token as usize;
        let entry = self.entries.remove(slot);
        self.held_entries -= u64::from(entry.copied.entries);
        let (tag, line) = (entry.tag, entry.copied.line);
        if let Some(slots) = self.by_line.get_mut(&line) {
            slots.retain(|held| *held != slot);
            if slots.is_empty() {
                self.by_line.remove(&line);
            }
        }
        self.used -= if entry.counted { u32::from(entry.copied.entries) } else { 0 };
        self.region(tag).flushing -= 1;
        self.meet_boundary(tag, outbox);
        self.advance(tag.order, outbox);
        self.admit(outbox);
        self.keep_account(tag.order, None, outbox);
    }
}

impl Handler for GatedQueue {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let order = match (opened(message), from) {
            (RegionMessage::Store(tag, warp, copied), from) => {
                self.store(tag, (from, warp), copied, outbox);
                tag.order
            }
            (RegionMessage::Boundary(tag, owner), from) => {
                self.region(tag).boundary = Some((from, owner));
                // It ends the fallback: others are let in again.
                let spilled = std::mem::take(&mut self.region(tag).spills);
                self.meet_boundary(tag, outbox);
                if spilled {
                    self.admit(outbox);
                }
                tag.order
            }
            (RegionMessage::BoundaryAck(tag), _) => {
                self.region(tag).boundary_acks += 1;
                if self.spec.commit == Commit::Sequencer && self.place.index == 0 {
                    self.tell_boundary(tag, outbox);
                }
                self.advance(tag.order, outbox);
                tag.order
            }
            (RegionMessage::FlushAck(tag), Peer::Controller(other)) if self.spec.commit != Commit::Acked => {
                let order = usize::from(tag.order);
                self.orders[order].elsewhere.acked_by(other);
                self.tell_committed(order, outbox);
                tag.order
            }
            (RegionMessage::FlushAck(tag), _) => {
                self.region(tag).flush_acks += 1;
                self.advance(tag.order, outbox);
                tag.order
            }
            (other, from) => panic!("a controller received {other:?} from {from:?}"),
        };
        let from = if let Peer::Controller(other) = from { Some(other) } else { None };
        self.keep_account(order, from, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        let GateTally {
            committed,
            overflows,
            spilled,
            waited,
            hits,
            hits_waited,
            hits_merged,
            hit_fallbacks,
            most_entries,
        } = self.tally;
        report.count("regions_committed_summed", committed);
        report.count("wpq_overflows", overflows);
        report.count("wpq_spilled_stores", spilled);
        report.count("wpq_full_stores", waited);
        report.count("wpq_hits", hits);
        report.count("wpq_hits_waited", hits_waited);
        report.count("wpq_hits_merged", hits_merged);
        report.count("wpq_hit_fallbacks", hit_fallbacks);
        report.count("wpq_most_entries_summed", most_entries);
        report.regions = Some(self.account.report());
        // Regions that are left here are told as a wait, so that a run that stands still names the gate.
        let regions: usize = self.orders.iter().map(|order| order.regions.len()).sum();
        if regions > 0 {
            let what =
                format!("{regions} regions are not committed, {} stores wait for the gated WPQ", self.waiting.len());
            report.waits.push(("gated WPQ".to_owned(), what));
        }
    }
}

impl ControllerHandler for GatedQueue {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        match *event {
            ControllerEvent::Flushed(token) => self.flushed(token, outbox),
            ControllerEvent::ReadHit => self.tally.hits += 1,
            ControllerEvent::Persisted(_) => unreachable!("it has no plain flushes"),
        }
    }

    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        let Some(slots) = self.by_line.get(&line) else { return false };
        let mut held: SmallVec<[&HeldStore; 4]> = slots.iter().map(|&slot| &self.entries[slot]).collect();
        if self.spec.order == RegionOrder::Global {
            // Stable: a region's own stores stay in their order.
            held.sort_by_key(|entry| entry.tag.number);
        }
        let mut any = false;
        for HeldStore { copied, .. } in held {
            any |= copied.mask & mask != 0;
            copy_masked(bytes, &copied.bytes, copied.mask & mask);
        }
        any
    }

    fn awaited(&mut self, line: u64, mask: u128, outbox: &mut Outbox) -> SmallVec<[u64; 2]> {
        let mut awaited = SmallVec::new();
        let found = self.by_line.get(&line).filter(|_| self.spec.wpq_hit == WpqHit::Wait);
        for slot in found.cloned().unwrap_or_default() {
            let HeldStore { tag, copied, .. } = &self.entries[slot];
            let tag = *tag;
            if copied.mask & mask == 0 || !self.is_sure(tag) {
                continue;
            }
            awaited.push(slot as u64);
            let place = self.place(tag);
            let region = self.region(tag);
            if place == 0 && region.boundary.is_none() && !region.spills {
                self.tally.hit_fallbacks += 1;
                self.spill_all(tag, outbox);
            }
        }
        self.tally.hits_waited += u64::from(!awaited.is_empty());
        self.tally.hits_merged += u64::from(awaited.is_empty());
        awaited
    }

    fn holds(&self, line: u64) -> bool {
        self.by_line.contains_key(&line)
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        let mut lines = BTreeMap::new();
        for (_, HeldStore { copied, .. }) in &self.entries {
            *lines.entry(copied.line).or_default() |= copied.mask;
        }
        lines
    }

    fn held(&self) -> Held {
        Held { stores: self.entries.len() as u64, entries: self.held_entries }
    }
}
