//! LightWSP at an SM: the front-end buffer, and who shares a region.
//!
//! ```text
//!   warp ──copies──> a region of its owner ──[ID granted]──> persist path ──> controllers
//!                       ▲ ID drawn when the first copy comes                      └──taken──> room
//! ```
//! Source: LightWSP sections III-A, IV-B, IV-C; Table I (64 entries, 4 GB/s, 20 ns). Readings: a FIFO a warp;
//! copies wait here for their region's ID, the warp does not.
//!
//! The owner of regions is a warp, or a CTA (L14). A CTA's warps share the region that is open: a warp joins
//! it with its first store behind a boundary, leaves it with the next boundary, and the first to leave closes
//! it to others; it ends when the last has left. So a region is a piece of each of its warps' programs
//! between two boundaries, and nobody waits for the others of its CTA. Two regions of a CTA may be under way;
//! their IDs are in the order in which they were opened. What a warp stores behind a fence or an atomic goes
//! into a region opened since then, as what it has seen may be of a region that has an ID by now; a barrier
//! of the CTA needs none of that, since whoever has seen something opens a region before it arrives. An
//! atomic's region is its warp's alone: it may wait for its ID while others are given. In an SM's own order
//! it gets its ID as the atomic issues: atomics of an SM on a line are performed in the order in which they
//! issue; and a warp is done when its regions have committed, so that a launch's are in memory before another
//! SM stores in the next.
//!
//! An SM may have an equal share of the IDs in use; when it has, warps wait before they begin a region. A
//! copy that waits for its ID keeps its line in the L2, so that it must not have to wait for others' regions:
//! their stores may need that place.
//!
//! With `snoop = "feb"` the L1 of a core searches this buffer for dirty lines that it is to evict (section
//! IV-G). It finds copies that have not come to their controller. Reads know of them from then on, also where
//! they wait for the WPQ. The paper has an entry found until the WPQ has it: that could wait for a region of
//! another hart, which may want the line that the eviction makes room for.
//!
//! Invariants: of a warp, copies and boundaries leave in program order, and IDs rise; entries are in use
//! until their controller has taken them; a region without a store has no ID and no boundary (but in
//! `paper`).

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::Time;
use durawarp_persist::handler::{
    Admission, CoreEvent, CoreFences, CoreHandler, CoreOffer, CorePolicy, Dependency, Handler, HandlerPlace,
    HandlerReport, Outbox, PathStore, Peer, SchemeMessage, SmEvent, SmHandler, SmInterests, SmOffer, Store, WriteBack,
    opened,
};
use durawarp_persist::journal::Author;
use durawarp_persist::regions::RegionReport;
use durawarp_persist::vocab::{FenceKind, FenceRule, RegionStep, Route, StoreRule, WriteBackRule};

use super::messages::{Copied, RegionMessage, Tag};
use super::parameters::{IdDraw, LightWspSpec, RegionOrder, RegionOwner, Snoop, Victims};

/// Warps of an SM, at most.
const WARPS: usize = 64;

/// What waits for a region's ID.
#[derive(Debug)]
enum Item {
    Store(u8, Author, Copied),
    End(Author),
}

value!(choice Item { Store(warp, author, copied), End(author) });

/// A region that its controllers do not have whole.
#[derive(Debug)]
struct Region {
    /// Place in the order in which its owner's regions were opened.
    opened: u32,
    /// The warp that drew its ID.
    opener: u8,
    /// It is of an atomic: nobody joins it.
    alone: bool,
    tag: Option<Tag>,
    /// Warps that have stored in it; those whose next boundary is to come.
    warps: u64,
    inside: u64,
    items: VecDeque<Item>,
    /// How many of these were stores, for the report.
    stores: u64,
    /// When its last warp came to the boundary, and controllers that have not confirmed that.
    ended: Time,
    unconfirmed: u16,
}

value!(record Region { opened, opener, alone, tag, warps, inside, items, stores, ended, unconfirmed });

/// Leave for a warp's atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Leave {
    #[default]
    None,
    /// It comes with the ID of its region, the warp's last.
    WithId,
    /// It comes by itself.
    Asked,
    Granted,
    /// Atomics are under way with it.
    Used,
}

value!(choice Leave { None, WithId, Asked, Granted, Used });

/// A warp.
#[derive(Debug, Default)]
struct Warp {
    /// Entries in use.
    used: u32,
    leave: Leave,
    /// Since when it waits for that, for the report.
    asked: Time,
    /// Since when it waits for room, for the report.
    full_since: Option<Time>,
    owner: u8,
    /// Its next region is opened as this one of its owner, or later.
    since: u32,
    /// Regions of its SM up to the last that it has stored in; counted in an SM's own order alone.
    behind: u32,
}

value!(record Warp { used, leave, asked, full_since, owner, since, behind });

/// Who has regions: in the order in which they were opened.
#[derive(Debug, Default)]
struct Owner {
    regions: VecDeque<Region>,
    /// How many it has opened.
    opened: u32,
}

value!(record Owner { regions, opened });

impl Owner {
    fn open(&mut self, warp: u8, alone: bool, unconfirmed: u16) {
        let only = 1 << warp;
        self.regions.push_back(Region {
            opened: self.opened,
            opener: warp,
            alone,
            tag: None,
            warps: only,
            inside: only,
            items: VecDeque::new(),
            stores: 0,
            ended: 0,
            unconfirmed,
        });
        self.opened += 1;
    }

    /// The region that warps may join: nobody has left it.
    fn current(&mut self) -> Option<&mut Region> {
        self.regions.iter_mut().rev().find(|region| !region.alone).filter(|region| region.inside == region.warps)
    }

    /// Place of the region that a warp stores in.
    fn place_of(&self, warp: u8) -> Option<usize> {
        self.regions.iter().rposition(|region| region.inside >> warp & 1 == 1)
    }
}

#[derive(Debug, Default)]
struct FrontEndTally {
    joined: u64,
    stores: u64,
    entries: u64,
    most_entries: u64,
    late_atomics: u64,
    /// From regions' ends until their controllers have confirmed that, added up.
    persisting_ticks: u64,
    /// That harts waited for room, added up.
    full_ticks: u64,
    /// Dirty lines that were to leave the L1: how often it was searched for copies, how often it had some.
    looked: u64,
    conflicts: u64,
}

value!(record FrontEndTally {
    joined, stores, entries, most_entries, late_atomics, persisting_ticks, full_ticks, looked, conflicts,
});

/// The persist path of an SM.
#[derive(Debug)]
struct PersistPath {
    /// When it is free, in parts of a tick: `scale` to a tick.
    free: u128,
    scale: u128,
}

state!(PersistPath { saved: free; kept: scale });

/// The handler of an SM, or of a core.
#[derive(Debug)]
pub(super) struct FrontEndBuffer {
    spec: Arc<LightWspSpec>,
    place: HandlerPlace,
    warps: Vec<Warp>,
    owners: Vec<Owner>,
    used: u32,
    /// Warps of which no entry is in use.
    empty: u64,
    path: PersistPath,
    /// Warps inside of regions, which need no ID.
    inside: u64,
    /// Warps for whose next region an ID is kept, as atomics that store in it are under way.
    kept: u64,
    /// IDs that it may have in use.
    share: u32,
    /// Regions opened: with an order of its own, the next one's number; those that have committed.
    opened: u32,
    committed: u32,
    /// Warps that wait for one, in the order in which they began to: who spins on a flag takes one each turn.
    queue: VecDeque<u8>,
    /// At a core, by line: the copies made of it since it last went home; where its L1 searches them, those
    /// that have not come to their controller. Looked up alone, never gone through.
    copies: HashMap<u64, u32>,
    tally: FrontEndTally,
    report: RegionReport,
}

state!(FrontEndBuffer {
    sized: warps, owners; parts: path; saved: used, empty, inside, kept, opened, committed, queue, copies, tally,
    report; kept: spec, place, share
});

impl FrontEndBuffer {
    pub(super) fn new(spec: Arc<LightWspSpec>, place: HandlerPlace) -> Self {
        let (scale, share) = (u128::from(spec.path_mb_s) * 1000, spec.share(place.computes()));
        FrontEndBuffer {
            spec,
            place,
            warps: (0..WARPS).map(|warp| Warp { owner: warp as u8, ..Warp::default() }).collect(),
            owners: (0..WARPS).map(|_| Owner::default()).collect(),
            used: 0,
            empty: u64::MAX,
            path: PersistPath { free: 0, scale },
            inside: 0,
            kept: 0,
            share,
            opened: 0,
            committed: 0,
            queue: VecDeque::new(),
            copies: HashMap::new(),
            tally: FrontEndTally::default(),
            report: RegionReport::default(),
        }
    }

    fn owner(&mut self, warp: u8) -> &mut Owner {
        &mut self.owners[usize::from(self.warps[usize::from(warp)].owner)]
    }

    /// So many entries go onto the persist path: the ticks until their tail is on it.
    fn transmit(&mut self, entries: u32, now: Time) -> Time {
        let bytes = u128::from(entries * self.spec.entry_bytes);
        let PersistPath { free, scale } = &mut self.path;
        *free = (*free).max(u128::from(now) * *scale) + bytes * u128::from(self.place.tick_khz);
        free.div_ceil(*scale) as Time - now
    }

    /// A warp opens a region, which needs an ID; an atomic's keeps its lines.
    fn open(&mut self, warp: u8, lines: Option<&[u64]>, outbox: &mut Outbox) {
        let controllers = self.place.controllers;
        self.owner(warp).open(warp, lines.is_some(), controllers);
        let number = self.opened;
        self.opened += 1;
        self.inside |= 1 << warp;
        match self.spec.order {
            RegionOrder::Global => {
                outbox.send(Peer::Hub, RegionMessage::Draw(warp, lines.unwrap_or_default().to_vec()))
            }
            RegionOrder::Sm => self.granted(warp, self.spec.tag(self.place.index, number), outbox),
        }
    }

    /// IDs that it may still have in use.
    fn ids(&self) -> u32 {
        self.share - (self.opened - self.committed) - self.kept.count_ones()
    }

    /// Warps for whose next region there is an ID.
    fn may_begin(&self) -> u64 {
        let ids = self.ids() as usize;
        if ids > self.queue.len() {
            u64::MAX
        } else {
            self.queue.iter().take(ids).fold(0, |mask, warp| mask | 1 << warp)
        }
    }

    fn granted(&mut self, warp: u8, tag: Tag, outbox: &mut Outbox) {
        let owner = self.owner(warp);
        let opened = owner.opened;
        let Some(place) = owner.regions.iter().position(|of| of.tag.is_none() && of.opener == warp) else {
            unreachable!("an ID that nobody drew")
        };
        let region = &mut owner.regions[place];
        region.tag = Some(tag);
        let alone = region.alone;
        let warp_state = &mut self.warps[usize::from(warp)];
        if alone && warp_state.leave == Leave::WithId {
            self.report.warps.turn_ticks += outbox.now() - warp_state.asked;
            warp_state.leave = Leave::Granted;
            // Regions opened meanwhile may have earlier IDs.
            warp_state.since = opened;
        }
        self.pump(warp, place, outbox);
    }

    /// What a region has and may leave, leaves.
    fn pump(&mut self, warp: u8, place: usize, outbox: &mut Outbox) {
        let owner = self.warps[usize::from(warp)].owner;
        loop {
            let region = &mut self.owners[usize::from(owner)].regions[place];
            let Some(tag) = region.tag else { return };
            match region.items.pop_front() {
                Some(Item::Store(warp, author, copied)) => {
                    let author = author.in_region(tag.number);
                    outbox.note_bytes(RegionStep::Stored, author, copied.line, copied.mask, &copied.bytes);
                    let delay = self.transmit(u32::from(copied.entries), outbox.now());
                    outbox.send_in(delay, Peer::ControllerOf(copied.line), RegionMessage::Store(tag, warp, copied));
                }
                Some(Item::End(author)) => {
                    outbox.note(RegionStep::Ended, author.in_region(tag.number));
                    // On a core the boundary is the store of the program counter, the region's last.
                    let own = u32::from(self.place.cores == 0);
                    let delay = self.transmit(own, outbox.now());
                    for controller in 0..self.place.controllers {
                        outbox.send_in(delay, Peer::Controller(controller), RegionMessage::Boundary(tag, owner));
                    }
                }
                None => return,
            }
        }
    }

    /// A warp is at a boundary: it leaves its region, which ends with the last.
    fn leave(&mut self, warp: u8, author: Author, outbox: &mut Outbox) {
        let owner = &mut self.owners[usize::from(self.warps[usize::from(warp)].owner)];
        let Some(place) = owner.place_of(warp) else { return };
        let region = &mut owner.regions[place];
        region.inside &= !(1 << warp);
        self.inside &= !(1 << warp);
        let since = &mut self.warps[usize::from(warp)].since;
        *since = (*since).max(region.opened + 1);
        if region.inside == 0 {
            self.report.sizes.ended(region.stores);
            region.ended = outbox.now();
            region.items.push_back(Item::End(author));
            self.pump(warp, place, outbox);
        }
    }

    /// What a warp stores from now on is behind all regions that have an ID.
    fn renew(&mut self, warp: u8) {
        let opened = self.owner(warp).opened;
        self.warps[usize::from(warp)].since = opened;
    }
}

impl FrontEndBuffer {
    /// A warp begins, of the CTA in this place of the SM.
    pub(super) fn enter(&mut self, warp: u8, cta: u8) {
        if self.spec.owner == RegionOwner::Cta {
            let since = self.owners[usize::from(cta)].opened;
            self.warps[usize::from(warp)] = Warp { owner: cta, since, ..Warp::default() };
        }
    }

    /// Warps that may issue one more instruction that stores.
    pub(super) fn admitted(&self) -> u64 {
        let room = if self.used < self.spec.feb_entries { u64::MAX } else { self.empty };
        room & (self.inside | self.may_begin())
    }

    /// A warp waits to be admitted, or has been and issues.
    pub(super) fn awaits_admission(&mut self, warp: u8, waits: bool, now: Time) {
        let full_since = &mut self.warps[usize::from(warp)].full_since;
        if waits {
            let full = self.used >= self.spec.feb_entries && self.empty >> warp & 1 == 0;
            *(if full { &mut self.report.warps.room } else { &mut self.report.warps.ids }) += 1;
            *full_since = full.then_some(now);
        } else if let Some(since) = full_since.take() {
            // Who winds a core down may be behind the cycles that lay ahead.
            self.tally.full_ticks += now.saturating_sub(since);
        }
        if !waits {
            self.queue.retain(|other| *other != warp);
        } else if self.inside >> warp & 1 == 0 && !self.queue.contains(&warp) {
            // Who waits for room alone may find no ID when there is some.
            self.queue.push_back(warp);
        }
    }

    /// A warp has stored, in program order.
    pub(super) fn copy(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) {
        // There was room when the instruction issued, and it enters whole: entries in use may exceed the
        // buffer here.
        let entries = self.spec.entries_of(store.mask);
        self.used += entries;
        self.tally.stores += 1;
        self.tally.entries += u64::from(entries);
        self.tally.most_entries = self.tally.most_entries.max(u64::from(self.used));
        let (sizes, bytes) = (&mut self.report.sizes, u64::from(store.mask.count_ones()));
        (sizes.stores, sizes.entries, sizes.bytes) =
            (sizes.stores + 1, sizes.entries + u64::from(entries), sizes.bytes + bytes);
        if store.checkpoint {
            self.report.checkpoints.stores += 1;
            self.report.checkpoints.bytes += bytes;
        }
        if self.place.cores > 0 && self.spec.victims != Victims::Stale {
            *self.copies.entry(store.line).or_default() += 1;
        }
        let warp = &mut self.warps[usize::from(store.by)];
        warp.used += entries;
        self.empty &= !(1 << store.by);
        let since = warp.since;
        let bytes = Box::new(*store.bytes);
        let copied = Copied { line: store.line, mask: store.mask, bytes, entries: entries as u16 };
        if self.inside >> store.by & 1 == 0 {
            self.kept &= !(1 << store.by);
            let owner = self.owner(store.by);
            // A region from before the warp's last boundary, fence or atomic is not joined: what the warp has
            // seen since then may be of a region that has an ID already.
            match owner.current().filter(|region| region.opened >= since) {
                Some(region) => {
                    region.warps |= 1 << store.by;
                    region.inside |= 1 << store.by;
                    self.inside |= 1 << store.by;
                    self.tally.joined += 1;
                }
                None => self.open(store.by, None, outbox),
            }
        }
        let owner = self.owner(store.by);
        let Some(place) = owner.place_of(store.by) else { unreachable!("it has joined one") };
        let region = &mut owner.regions[place];
        region.stores += 1;
        region.items.push_back(Item::Store(store.by, store.author, copied));
        let numbered = region.tag.map_or(0, |tag| tag.number + 1);
        if self.spec.order == RegionOrder::Sm {
            self.warps[usize::from(store.by)].behind = numbered;
        }
        self.pump(store.by, place, outbox);
    }

    /// A warp wants to issue an atomic on these lines: true when it may now.
    pub(super) fn asks_leave(&mut self, warp: u8, lines: &[u64], outbox: &mut Outbox) -> bool {
        let inside = self.inside >> warp & 1 == 1;
        if self.spec.id_draw == IdDraw::Paper {
            if !inside {
                // It begins a region when it is back.
                self.kept |= 1 << warp;
            }
            return true;
        }
        if self.spec.order == RegionOrder::Sm {
            if !inside {
                self.open(warp, Some(lines), outbox);
            }
            self.renew(warp);
            return true;
        }
        let leave = &mut self.warps[usize::from(warp)].leave;
        match leave {
            Leave::Granted => {
                *leave = Leave::Used;
                return true;
            }
            // Behind a first atomic that is under way: its lines are another's until it is back.
            Leave::WithId | Leave::Asked | Leave::Used => return false,
            Leave::None => {}
        }
        self.warps[usize::from(warp)].asked = outbox.now();
        self.report.warps.turns += 1;
        let leave = &mut self.warps[usize::from(warp)].leave;
        if inside {
            // The region has stored before: its ID is older than this atomic. Formed kernels have a boundary
            // between.
            *leave = Leave::Asked;
            self.tally.late_atomics += 1;
            outbox.send(Peer::Hub, RegionMessage::Keep(warp, lines.to_vec()));
        } else {
            *leave = Leave::WithId;
            self.open(warp, Some(lines), outbox);
        }
        false
    }

    /// A warp has asked for an atomic, and there is no answer yet.
    pub(super) fn awaits_leave(&self, warp: u8) -> bool {
        matches!(self.warps[usize::from(warp)].leave, Leave::WithId | Leave::Asked | Leave::Used)
    }

    /// An atomic is performed, and what it wrote has been stored here.
    pub(super) fn performed(&mut self, warp: u8, outbox: &mut Outbox) {
        let leave = &mut self.warps[usize::from(warp)].leave;
        if *leave == Leave::Used {
            *leave = Leave::None;
            outbox.send(Peer::Hub, RegionMessage::Performed(warp));
        }
    }

    /// A warp's region ends.
    pub(super) fn end_region(&mut self, warp: u8, author: Author, outbox: &mut Outbox) {
        self.leave(warp, author, outbox);
        // Without an ID left it is drawn with the first store.
        if self.spec.id_draw == IdDraw::Paper && self.ids() > 0 {
            self.open(warp, None, outbox);
        }
    }

    /// A dirty line is to leave the L1: true while a copy of it is on its way.
    fn searched(&mut self, line: u64) -> bool {
        let found = self.copies.contains_key(&line);
        self.tally.looked += 1;
        self.tally.conflicts += u64::from(found);
        found
    }

    /// A copy has come to its controller, which reads see it at.
    fn arrived(&mut self, line: u64) {
        let Some(copies) = self.copies.get_mut(&line) else { unreachable!("a copy of {line:#x} that was not made") };
        *copies -= 1;
        if *copies == 0 {
            self.copies.remove(&line);
        }
    }

    /// All that a warp which has exited has stored is at its controllers, and they know of the end of its
    /// regions.
    pub(super) fn is_drained(&self, warp: u8) -> bool {
        let Warp { used, owner, behind, .. } = self.warps[usize::from(warp)];
        let regions = &self.owners[usize::from(owner)].regions;
        // What the next launch stores may be in another SM's order.
        behind <= self.committed && used == 0 && regions.iter().all(|region| region.warps >> warp & 1 == 0)
    }
}

impl Handler for FrontEndBuffer {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            RegionMessage::Granted(warp, tag) => self.granted(warp, tag, outbox),
            RegionMessage::Kept(warp) => {
                let warp = &mut self.warps[usize::from(warp)];
                warp.leave = Leave::Granted;
                self.report.warps.turn_ticks += outbox.now() - warp.asked;
            }
            RegionMessage::Taken(warp, entries) => {
                self.used -= u32::from(entries);
                let used = &mut self.warps[usize::from(warp)].used;
                *used -= u32::from(entries);
                self.empty |= u64::from(*used == 0) << warp;
            }
            RegionMessage::Bounded(tag, owner) => {
                let regions = &mut self.owners[usize::from(owner)].regions;
                let Some(place) = regions.iter().position(|region| region.tag == Some(tag)) else {
                    unreachable!("a boundary that was not sent")
                };
                // A region stays until the last controller that it sent a boundary to has it.
                regions[place].unconfirmed -= 1;
                if regions[place].unconfirmed == 0 {
                    self.tally.persisting_ticks += outbox.now() - regions[place].ended;
                    regions.remove(place);
                }
            }
            RegionMessage::Committed => self.committed += 1,
            RegionMessage::Arrived(line) => self.arrived(line),
            other => panic!("a front-end buffer received {other:?}"),
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        report.regions = Some(self.report.clone());
        let FrontEndTally { joined, stores, entries, most_entries, late_atomics, looked, conflicts, .. } = self.tally;
        report.count("regions", u64::from(self.opened));
        report.count("regions_joined", joined);
        report.count("feb_stores", stores);
        report.count("feb_entries", entries);
        report.count("feb_most_entries_summed", most_entries);
        report.count("late_atomics", late_atomics);
        let ns = |ticks: u64| (u128::from(ticks) * 1_000_000 / u128::from(self.place.tick_khz.max(1))) as u64;
        report.count("regions_persisting_ns", ns(self.tally.persisting_ticks));
        // A GPU's SMs count it in cycles.
        if self.place.cores > 0 {
            report.count("feb_full_ns", ns(self.tally.full_ticks));
        }
        if self.spec.snoop == Snoop::Feb {
            report.count("victims_searched_lines", looked);
            report.count("victim_conflicts_lines", conflicts);
        }
    }
}

impl SmHandler for FrontEndBuffer {
    fn interests(&self) -> SmInterests {
        SmInterests { front_end: true, ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, outbox: &mut Outbox) -> Admission {
        Admission::goes_if(match *offer {
            SmOffer::Issue { warp } => self.admitted() >> warp & 1 == 1,
            SmOffer::Atomic { warp, lines, asks: true } => self.asks_leave(warp, lines, outbox),
            SmOffer::Atomic { warp, .. } => !self.awaits_leave(warp),
            SmOffer::Retire { warp } => self.is_drained(warp),
            SmOffer::Departure(_) | SmOffer::Release(_) | SmOffer::Join(_) => true,
        })
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SmEvent::WarpStarts { warp, cta } => self.enter(warp, cta),
            SmEvent::AwaitsIssue { warp, waits } => self.awaits_admission(warp, waits, outbox.now()),
            SmEvent::Stored(store) => self.copy(store, outbox),
            SmEvent::AtomicPerformed { warp } => self.performed(warp, outbox),
            SmEvent::Fenced { warp } => self.renew(warp),
            SmEvent::RegionEnds { warp, author } => self.end_region(warp, author, outbox),
            SmEvent::WarpExits { warp, author } => self.leave(warp, author, outbox),
            _ => {}
        }
    }

    fn store(&mut self, _: &Store<'_>, _: &mut Outbox) -> StoreRule {
        // Past the caches goes the copy: what the program says of a store makes no difference.
        StoreRule::new(Route::Temporal, false)
    }

    fn write_back(&mut self, _: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        WriteBackRule::Dropped
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        // Everything persists in order.
        FenceRule::Pass
    }
}

/// A hart stands for a warp that owns its regions.
impl CoreHandler for FrontEndBuffer {
    fn policy(&self) -> CorePolicy {
        CorePolicy {
            fences: CoreFences::Pass,
            front_end: true,
            victims: self.spec.search(Snoop::Feb),
            ..CorePolicy::default()
        }
    }

    fn offer(&mut self, offer: &CoreOffer, _: &mut Outbox) -> Admission {
        Admission::goes_if(match *offer {
            CoreOffer::Issue(hart) => self.admitted() >> hart & 1 == 1,
            CoreOffer::Victim(line) => !self.searched(line),
            CoreOffer::Durable(_) | CoreOffer::Rename { .. } | CoreOffer::GiveUp(_) => true,
        })
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        match *event {
            CoreEvent::AwaitsIssue { hart, waits } => self.awaits_admission(hart, waits, outbox.now()),
            CoreEvent::Stored(store) => self.copy(store, outbox),
            CoreEvent::Fenced(hart) => self.renew(hart),
            // The home keeps the line until this number of copies has come to its controller.
            CoreEvent::Given(line) => {
                if self.spec.snoop == Snoop::Count
                    && let Some(copies) = self.copies.remove(&line)
                {
                    outbox.depend(Dependency { hart: self.place.index, id: copies.into() });
                }
            }
            CoreEvent::RegionEnds { hart, author, last: false } => self.end_region(hart, author, outbox),
            CoreEvent::RegionEnds { hart, author, last: true } => self.leave(hart, author, outbox),
            CoreEvent::AtomicPerformed(_)
            | CoreEvent::StoredVolatile { .. }
            | CoreEvent::Observed { .. }
            | CoreEvent::Taken { .. }
            | CoreEvent::ThreadBegun
            | CoreEvent::Retired { .. }
            | CoreEvent::WrittenBack { .. }
            | CoreEvent::RegionPersisted { .. } => {}
        }
    }
}
