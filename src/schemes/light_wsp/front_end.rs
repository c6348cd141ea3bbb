//! LightWSP at an SM: the front-end buffer, and the regions of its warps.
//!
//! ```text
//!   warp ──copies──> its regions, in order ──[ID granted]──> persist path ──> controllers
//!                       ▲ ID drawn when the first copy comes                      └──taken──> room
//! ```
//! Source: LightWSP sections III-A, IV-B, IV-C; Table I (64 entries, 4 GB/s, 20 ns). Readings: a FIFO a warp; copies wait here for
//! their region's ID, the warp does not. Invariants: of a warp, copies and boundaries leave in program order; entries are in use until their
//! controller has taken them; a region without a store has no ID and no boundary (but in `paper`).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::Time;
use crate::persist::journal::Author;
use crate::persist::site::{FrontEnd, Letter, PathStore, Peer, Post, Seat, SmSite, Store, WriteBack, opened};
use crate::persist::vocab::{FenceKind, FenceRule, RegionStep, Route, StoreRule, WriteBackRule};

use super::letters::{Copied, Numbering, Tag, Word};
use super::{IdDraw, LightWspSpec, RegionOrder};

/// What waits for a region's ID.
#[derive(Debug)]
enum Item {
    Store(Author, Copied),
    End(Author),
}

/// A region that has not wholly left.
#[derive(Debug, Default)]
struct Region {
    tag: Option<Tag>,
    items: VecDeque<Item>,
    ended: bool,
}

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

/// A warp.
#[derive(Debug, Default)]
struct Owner {
    /// Entries in use.
    used: u32,
    regions: VecDeque<Region>,
    leave: Leave,
    /// Boundaries that controllers have not confirmed.
    unconfirmed: u32,
}

impl Owner {
    fn open(&mut self) -> Option<&mut Region> {
        self.regions.back_mut().filter(|region| !region.ended)
    }
}

#[derive(Debug, Default)]
struct Tally {
    regions: u64,
    stores: u64,
    entries: u64,
    most_entries: u64,
    late_atomics: u64,
}

/// The site of an SM.
#[derive(Debug)]
pub(super) struct Site {
    spec: Arc<LightWspSpec>,
    seat: Seat,
    owners: Vec<Owner>,
    used: u32,
    /// When the persist path is free, in parts of a tick: `scale` to a tick.
    path_free: u128,
    scale: u128,
    /// With an order of its own: its IDs, and who waits for one.
    numbering: Numbering,
    unnumbered: VecDeque<u8>,
    tally: Tally,
}

impl Site {
    pub(super) fn new(spec: Arc<LightWspSpec>, seat: Seat) -> Self {
        let scale = u128::from(spec.path_mb_s) * 1000;
        Site {
            spec,
            seat,
            owners: (0..64).map(|_| Owner::default()).collect(),
            used: 0,
            path_free: 0,
            scale,
            numbering: Numbering::default(),
            unnumbered: VecDeque::new(),
            tally: Tally::default(),
        }
    }

    /// So many entries go onto the persist path: the ticks until their tail is on it.
    fn transmit(&mut self, entries: u32, now: Time) -> Time {
        let bytes = u128::from(entries * self.spec.entry_bytes);
        let free = self.path_free.max(u128::from(now) * self.scale);
        self.path_free = free + bytes * u128::from(self.seat.tick_khz);
        (self.path_free.div_ceil(self.scale)) as Time - now
    }

    /// A warp has begun a region: it needs an ID.
    fn draw(&mut self, warp: u8, lines: Vec<u64>, post: &mut Post) {
        self.tally.regions += 1;
        match self.spec.order {
            RegionOrder::Global => post.send(Peer::Hub, Word::Draw(warp, lines)),
            RegionOrder::Sm => {
                self.unnumbered.push_back(warp);
                self.number(post);
            }
        }
    }

    /// Gives IDs of the SM's own order, as far as there are any.
    fn number(&mut self, post: &mut Post) {
        while let Some(&warp) = self.unnumbered.front()
            && let Some(tag) = self.numbering.next(&self.spec, self.seat.index)
        {
            self.unnumbered.pop_front();
            self.granted(warp, tag, post);
        }
    }

    fn granted(&mut self, warp: u8, tag: Tag, post: &mut Post) {
        let owner = &mut self.owners[usize::from(warp)];
        let Some(place) = owner.regions.iter().position(|region| region.tag.is_none()) else {
            unreachable!("an ID that nobody drew")
        };
        owner.regions[place].tag = Some(tag);
        if owner.leave == Leave::WithId && place + 1 == owner.regions.len() {
            owner.leave = Leave::Granted;
        }
        self.pump(warp, post);
    }

    /// What a warp has and may leave, leaves.
    fn pump(&mut self, warp: u8, post: &mut Post) {
        loop {
            let Some(region) = self.owners[usize::from(warp)].regions.front_mut() else { return };
            let Some(tag) = region.tag else { return };
            match region.items.pop_front() {
                Some(Item::Store(author, copied)) => {
                    let author = Author { pc: tag.number, ..author };
                    post.note_bytes(RegionStep::Stored, author, copied.line, copied.mask, &copied.bytes);
                    let delay = self.transmit(u32::from(copied.entries), post.now());
                    post.send_in(delay, Peer::ControllerOf(copied.line), Word::Store(tag, warp, copied));
                }
                Some(Item::End(author)) => {
                    post.note(RegionStep::Ended, Author { pc: tag.number, ..author });
                    let delay = self.transmit(1, post.now());
                    for controller in 0..self.seat.controllers {
                        post.send_in(delay, Peer::Controller(controller), Word::Boundary(tag, warp));
                    }
                    let owner = &mut self.owners[usize::from(warp)];
                    owner.unconfirmed += u32::from(self.seat.controllers);
                    owner.regions.pop_front();
                }
                None => return,
            }
        }
    }
}

impl FrontEnd for Site {
    fn admits(&self, warp: u8) -> bool {
        self.used < self.spec.feb_entries || self.owners[usize::from(warp)].used == 0
    }

    fn copy(&mut self, store: &PathStore<'_>, post: &mut Post) {
        let entries = self.spec.entries_of(store.mask);
        self.used += entries;
        self.tally.stores += 1;
        self.tally.entries += u64::from(entries);
        self.tally.most_entries = self.tally.most_entries.max(u64::from(self.used));
        let owner = &mut self.owners[usize::from(store.warp)];
        owner.used += entries;
        let begins = owner.open().is_none();
        if begins {
            owner.regions.push_back(Region::default());
        }
        let bytes = Box::new(*store.bytes);
        let copied = Copied { line: store.line, mask: store.mask, bytes, entries: entries as u16 };
        if let Some(region) = owner.open() {
            region.items.push_back(Item::Store(store.author, copied));
        }
        if begins {
            self.draw(store.warp, Vec::new(), post);
        } else {
            self.pump(store.warp, post);
        }
    }

    fn asks_leave(&mut self, warp: u8, lines: &[u64], post: &mut Post) -> bool {
        if self.spec.id_draw == IdDraw::Paper || self.spec.order == RegionOrder::Sm {
            return true;
        }
        let owner = &mut self.owners[usize::from(warp)];
        match owner.leave {
            Leave::Granted => {
                owner.leave = Leave::Used;
                return true;
            }
            // Behind a first atomic that is under way: its lines are another's until it is back.
            Leave::WithId | Leave::Asked | Leave::Used => return false,
            Leave::None => {}
        }
        if owner.open().is_some() {
            // The region has stored before: its ID is older than this atomic. Formed kernels have a boundary between.
            owner.leave = Leave::Asked;
            self.tally.late_atomics += 1;
            post.send(Peer::Hub, Word::Keep(warp, lines.to_vec()));
        } else {
            owner.leave = Leave::WithId;
            owner.regions.push_back(Region::default());
            self.draw(warp, lines.to_vec(), post);
        }
        false
    }

    fn awaits_leave(&self, warp: u8) -> bool {
        matches!(self.owners[usize::from(warp)].leave, Leave::WithId | Leave::Asked | Leave::Used)
    }

    fn performed(&mut self, warp: u8, post: &mut Post) {
        let owner = &mut self.owners[usize::from(warp)];
        if owner.leave == Leave::Used {
            owner.leave = Leave::None;
            post.send(Peer::Hub, Word::Performed(warp));
        }
    }

    fn end_region(&mut self, warp: u8, author: Author, post: &mut Post) {
        let owner = &mut self.owners[usize::from(warp)];
        if let Some(region) = owner.open() {
            region.ended = true;
            region.items.push_back(Item::End(author));
        }
        if self.spec.id_draw == IdDraw::Paper {
            owner.regions.push_back(Region::default());
            self.draw(warp, Vec::new(), post);
        }
        self.pump(warp, post);
    }

    fn exit(&mut self, warp: u8, author: Author, post: &mut Post) {
        if let Some(region) = self.owners[usize::from(warp)].open() {
            region.ended = true;
            region.items.push_back(Item::End(author));
            self.pump(warp, post);
        }
    }

    fn is_drained(&self, warp: u8) -> bool {
        let owner = &self.owners[usize::from(warp)];
        owner.used == 0 && owner.unconfirmed == 0 && owner.regions.is_empty()
    }
}

impl SmSite for Site {
    fn front_end(&mut self) -> Option<&mut dyn FrontEnd> {
        Some(self)
    }

    fn store(&mut self, _: &Store<'_>, _: &mut Post) -> StoreRule {
        // Past the caches goes the copy: what the program says of a store makes no difference.
        StoreRule { route: Route::Temporal, wait: false }
    }

    fn write_back(&mut self, _: &WriteBack<'_>, _: &mut Post) -> WriteBackRule {
        WriteBackRule::Dropped
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        // Everything persists in order.
        FenceRule::Pass
    }

    fn letter(&mut self, _: Peer, letter: Box<dyn Letter>, post: &mut Post) {
        match opened(letter) {
            Word::Granted(warp, tag) => self.granted(warp, tag, post),
            Word::Kept(warp) => self.owners[usize::from(warp)].leave = Leave::Granted,
            Word::Taken(warp, entries) => {
                self.used -= u32::from(entries);
                self.owners[usize::from(warp)].used -= u32::from(entries);
            }
            Word::Bounded(warp) => self.owners[usize::from(warp)].unconfirmed -= 1,
            Word::Committed(_) => {
                self.numbering.commit();
                self.number(post);
            }
            other => panic!("an SM's front-end buffer received {other:?}"),
        }
    }

    fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        let Tally { regions, stores, entries, most_entries, late_atomics } = self.tally;
        add("regions", regions);
        add("feb_stores", stores);
        add("feb_entries", entries);
        add("feb_most_entries_summed", most_entries);
        add("late_atomics", late_atomics);
    }
}
