//! The L1 data cache of one SM: sectored, with MSHRs that merge; write-evict or write-combining.
//!
//! A load that misses reserves a way (allocate-on-miss) and an MSHR; later loads of the same sectors join it.
//! *Write-evict*: a store evicts its line and goes on to the L2; nothing here is ever dirty.
//! *Write-combining*: a store joins its line's bytes, by a byte mask and without a fetch. The bytes leave in
//! one write when the line is cleaned: its way is needed, a warp releases, or a scheme or an access that
//! bypasses the cache requests it. An S-FIFO names the dirty lines in order, so that a release walks no tags;
//! when it is full its head is cleaned early. *Local memory* has a policy of its own: as the rest, or written
//! back. Written back, a store to a resident line joins it and leaves with the line only, since no other
//! thread reads it; a store to another line goes on to the L2. At the end of a launch its bytes are dropped.
//!
//! *A thread's load after its own store sees it, also past an outstanding fill of that line*: the store
//! detaches the fill from the cache. A detached fill still answers the loads that wait for it; no later load
//! joins it and its bytes are not kept. A later load sends a request of its own, which follows the store to
//! the same slice in order. A line with dirty bytes is cleaned before a load of it misses, so that the fill
//! has them.
//!
//! *Unified memory*: where L1 and shared memory are one array, a launch begins with as many ways as are left
//! of the array, and with none of the lines of the launch before. The number of sets stays, as in GPGPU-Sim
//! (`shader_core_config::max_cta`, adaptive cache).
//!
//! Source: AGPM Table IV (24 KB, 6-way, 128 B, 256 MSHRs, WEWN, XOR index, LRU, allocate-on-miss);
//! write-combining and the S-FIFO: Gope et al. section 3 and Table 2, after QuickRelease (Hechtman et al.,
//! HPCA 2014). Invariants: a reserved way is not a victim until its last fill has come; an MSHR answers each
//! waiter exactly once, with the fill's own bytes; a line that is evicted, or missed, has no dirty byte. Not
//! modelled: bank conflicts of the data array, a separate texture cache (texture fetches come here).

use smallvec::SmallVec;

use std::collections::VecDeque;

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_checkpoint::{state, value};
use durawarp_engine::StateDigest;

use super::cache::TagArray;
use super::coalescer::sectors_at;
use super::entries::Entries;
use super::msg::{Line, MAX_LINE_BYTES, copy_masked, sector_bytes, sectors_covered};
use super::replacement::Replacement;

choice! {
    /// What a store does at the L1.
    pub enum L1Writes {
        /// It evicts its line and goes on.
        Evict = "evict",
        /// It joins its line's bytes, which leave later in one write.
        Combine = "combine",
    }
}

choice! {
    /// How much of its line a load that misses the L1 asks for.
    pub enum L1Fetch {
        /// The sectors that it reads.
        Sectors = "sectors",
        /// All of it.
        Line = "line",
    }
}

choice! {
    /// What a store to local memory does at the L1.
    pub enum L1LocalWrites {
        /// What any store does.
        AsGlobal = "as_global",
        /// It joins its line where that is there, and goes on to the L2 where it is not; a line is written
        /// when it leaves.
        WriteBack = "write_back",
    }
}

spec! {
    /// Parameters of the L1 data cache.
    pub struct L1Spec {
        /// Capacity of one SM, in KiB; 0 where each launch has what its shared memory leaves of `unified_kb`.
        kb: u32 where 0..=1024,
        /// Capacity of L1 and shared memory of one SM together, in KiB; 0 where each has memory of its own.
        unified_kb: u32 where 0..=1024,
        /// Ways of a set; where launches decide the capacity, with all of `unified_kb`.
        ways: u32 where 1..=1024,
        /// Which line of a full set leaves for another: lru, fifo, random, srrip (2 bits, hit priority) or
        /// tree_plru.
        replacement: Replacement,
        /// Seed of random replacement.
        replacement_seed: u32,
        /// Misses under way, each of one line.
        mshr_entries: u32 where 1..=4096,
        /// Loads that one MSHR answers.
        mshr_merges: u32 where 1..=4096,
        /// Requests that may wait for the crossbar behind the tags.
        miss_queue_entries: u32 where 1..=1024,
        /// Issue of a load that hits to issue of what uses it, in core cycles.
        hit_cycles: u32 where 2..=10000,
        /// From the tags to the crossbar, in core cycles: on every request.
        miss_cycles: u32 where 0..=10000,
        /// From the crossbar to the registers, in core cycles: on every reply.
        fill_cycles: u32 where 0..=10000,
        /// Global loads use it; when false they go to the L2 one by one.
        global_loads: bool,
        /// A fence of scope gpu or sys empties it, so that later loads see what other SMs wrote before (PTX
        /// memory model).
        fence_invalidates: bool,
        /// How much of its line a load that misses asks for: the sectors that it reads, or the line.
        fetch: L1Fetch,
        /// What a store does: evict its line and go on to the L2, or combine with others of its line until it
        /// is cleaned.
        writes: L1Writes,
        /// What a store to local memory does: the same, or write-back without allocation.
        local_writes: L1LocalWrites,
        /// Entries of the S-FIFO, which names dirty lines where stores combine; a full one cleans its head.
        sfifo_entries: u32 where 1..=65536,
    }
}

impl L1Spec {
    /// The most that it may have, in KiB.
    pub fn most_kb(&self) -> u32 {
        if self.kb > 0 { self.kb } else { self.unified_kb }
    }
}

/// One load instruction's share of a line: its index among the pending loads, and the lanes it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// Index of the pending load.
    pub load: u16,
    /// Which of its accesses: selects the part of a multi-word local access.
    pub part: u8,
    pub lanes: u64,
}

value!(record Waiter { load, part, lanes });

#[derive(Debug, Default)]
struct Mshr {
    line: u64,
    sectors: u8,
    /// The way the fill goes to; `None` once detached.
    place: Option<usize>,
    waiters: SmallVec<[Waiter; 8]>,
}

value!(record Mshr { line, sectors, place, waiters });

/// What a load of some sectors of a line came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The sectors are in this place.
    Hit(usize),
    /// It joined a fill under way.
    Merged,
    /// A request with this MSHR as its tag must be sent.
    Miss(u16),
    /// No MSHR, or no room in it: try again after a fill.
    Full,
    /// Every way of its set waits for a fill, but there is an MSHR: try again after a fill, or go past the
    /// cache.
    Reserved,
}

/// One SM's L1 data cache.
#[derive(Debug)]
pub struct L1 {
    line_shift: u32,
    merges: usize,
    tags: TagArray,
    valid: Vec<u8>,
    /// Fills under way for each place, each of other sectors; it is locked while there are any.
    fills: Vec<SmallVec<[u16; 4]>>,
    data: Vec<[u8; MAX_LINE_BYTES]>,
    mshrs: Entries<Mshr>,
    /// The line that the last miss took the place of.
    replaced: Option<u64>,
    combines: bool,
    writes_local_back: bool,
    /// What every miss asks for, beside the sectors that it reads.
    always: u8,
    dirty: Vec<u128>,
    /// By places, the launch whose store was the last to join the line's dirty bytes.
    launches: Vec<u8>,
    /// Lines with dirty bytes that a release cleans, in the order in which they became dirty.
    sfifo: VecDeque<u64>,
    sfifo_entries: usize,
}

state!(L1 {
    parts: tags, mshrs; sized: valid, fills, data, dirty, launches; saved: replaced, sfifo; kept: line_shift, merges, combines,
    writes_local_back, always, sfifo_entries
});

impl L1 {
    /// An empty cache with lines of `line_bytes`.
    pub fn new(spec: &L1Spec, line_bytes: u32) -> Self {
        let places = (spec.most_kb() * 1024 / line_bytes) as usize;
        let ways = spec.ways as usize;
        let tags = TagArray::new(places / ways, ways, spec.replacement, spec.replacement_seed);
        let places = tags.places();
        L1 {
            line_shift: line_bytes.trailing_zeros(),
            merges: spec.mshr_merges as usize,
            tags,
            valid: vec![0; places],
            fills: vec![SmallVec::new(); places],
            combines: spec.writes == L1Writes::Combine,
            writes_local_back: spec.local_writes == L1LocalWrites::WriteBack,
            always: if spec.fetch == L1Fetch::Line { sectors_at(0, line_bytes) } else { 0 },
            dirty: vec![0; places],
            launches: vec![0; places],
            sfifo: VecDeque::new(),
            sfifo_entries: spec.sfifo_entries as usize,
            data: vec![[0; MAX_LINE_BYTES]; places],
            mshrs: Entries::new(spec.mshr_entries),
            replaced: None,
        }
    }

    /// Folds the lines it holds, and how many fills are under way.
    pub fn digest(&self, digest: &mut StateDigest) {
        for place in (0..self.valid.len()).filter(|&place| self.valid[place] != 0 || self.dirty[place] != 0) {
            let dirty = self.dirty[place];
            let words = [self.tags.line_at(place).unwrap_or(u64::MAX), u64::from(self.valid[place])];
            words.into_iter().chain([dirty as u64, (dirty >> 64) as u64]).for_each(|word| digest.word(word));
            digest.bytes(&self.data[place]);
        }
        digest.word(self.mshrs.in_use() as u64);
    }

    /// The sectors that a load looks up, of those that it reads.
    #[inline]
    pub fn looked_up(&self, sectors: u8) -> u8 {
        sectors | self.always
    }

    /// Looks up sectors of a line for a load; registers `waiter` unless it hits or everything is full.
    pub fn load(&mut self, line: u64, sectors: u8, waiter: Waiter) -> Lookup {
        let number = line >> self.line_shift;
        let found = self.tags.find(number);
        if let Some(place) = found {
            if self.valid[place] & sectors == sectors {
                self.tags.touch(place);
                return Lookup::Hit(place);
            }
            for &index in &self.fills[place] {
                let mshr = &mut self.mshrs[index];
                if mshr.sectors & sectors == sectors {
                    if mshr.waiters.len() >= self.merges {
                        return Lookup::Full;
                    }
                    mshr.waiters.push(waiter);
                    return Lookup::Merged;
                }
            }
        }
        // MSHR before way: a load that gets no MSHR displaces no line.
        if !self.mshrs.has_free() {
            return Lookup::Full;
        }
        let place = match found {
            Some(place) => place,
            None => {
                let Some(place) = self.tags.victim(number) else {
                    return Lookup::Reserved;
                };
                self.replaced = self.tags.line_at(place).map(|number| number << self.line_shift);
                self.tags.replace(place, number);
                self.valid[place] = 0;
                place
            }
        };
        self.tags.lock(place, true);
        let index = self.open(line, sectors, Some(place), waiter);
        self.fills[place].push(index);
        Lookup::Miss(index)
    }

    /// Stores other than those to local memory join their lines' bytes.
    pub fn combines(&self) -> bool {
        self.combines
    }

    /// A line may have dirty bytes.
    pub fn may_be_dirty(&self) -> bool {
        self.combines || self.writes_local_back
    }

    /// A store joins its line's bytes.
    pub fn combines_store(&self, line: u64, local: bool) -> bool {
        if local && self.writes_local_back { self.hits(line, 0) } else { self.combines }
    }

    /// The line that must be cleaned before one that is not there can have a place.
    pub fn dirty_victim(&self, line: u64) -> Option<u64> {
        let number = line >> self.line_shift;
        if self.tags.find(number).is_some() {
            return None;
        }
        let place = self.tags.victim(number).filter(|&place| self.dirty[place] != 0)?;
        self.tags.line_at(place).map(|number| number << self.line_shift)
    }

    /// A store to the line has a way: not every one of its set waits for a fill.
    pub fn has_way(&self, line: u64) -> bool {
        let number = line >> self.line_shift;
        self.tags.find(number).is_some() || self.tags.victim(number).is_some()
    }

    /// A line has dirty bytes.
    pub fn is_dirty(&self, line: u64) -> bool {
        self.may_be_dirty() && self.tags.find(line >> self.line_shift).is_some_and(|place| self.dirty[place] != 0)
    }

    /// A store joins its line's bytes, which are its launch's from now on; fills under way are detached.
    /// False when every way of its set waits for a fill.
    pub fn combine(&mut self, line: u64, local: bool, store: &Line) -> bool {
        let number = line >> self.line_shift;
        let place = match self.tags.find(number) {
            Some(place) => {
                self.detach(place);
                self.tags.touch(place);
                place
            }
            None => {
                let Some(place) = self.tags.victim(number) else { return false };
                debug_assert_eq!(self.dirty[place], 0, "a victim is cleaned first");
                self.replaced = self.tags.replace(place, number).map(|number| number << self.line_shift);
                self.valid[place] = 0;
                place
            }
        };
        copy_masked(&mut self.data[place], &store.bytes, store.mask);
        if self.dirty[place] == 0 && !(local && self.writes_local_back) {
            self.sfifo.push_back(line);
        }
        self.dirty[place] |= store.mask;
        self.launches[place] = store.launch;
        self.valid[place] |= sectors_covered(self.dirty[place]);
        true
    }

    /// The line that a full S-FIFO has cleaned early.
    pub fn overflow(&self) -> Option<u64> {
        (self.sfifo.len() > self.sfifo_entries).then(|| self.sfifo[0])
    }

    /// Lines with bytes that a load may hit: address, valid sectors, bytes.
    pub fn lines(&self) -> impl Iterator<Item = (u64, u8, &[u8; MAX_LINE_BYTES])> {
        let of =
            |place: usize| Some((self.tags.line_at(place)? << self.line_shift, self.valid[place], &self.data[place]));
        (0..self.valid.len()).filter(|&place| self.valid[place] != 0).filter_map(of)
    }

    /// Lines with dirty bytes that a release cleans, in the order in which they became dirty.
    pub fn dirty_lines(&self) -> impl Iterator<Item = u64> {
        self.sfifo.iter().copied()
    }

    /// Takes the dirty bytes of a line, and their launch; the line stays. False when it has none.
    pub fn clean(&mut self, line: u64, room: &mut Line) -> bool {
        let Some(place) = self.tags.find(line >> self.line_shift).filter(|&place| self.dirty[place] != 0) else {
            return false;
        };
        room.bytes = self.data[place];
        room.mask = std::mem::take(&mut self.dirty[place]);
        room.launch = self.launches[place];
        if self.sfifo.front() == Some(&line) {
            self.sfifo.pop_front();
        } else {
            self.sfifo.retain(|&other| other != line);
        }
        true
    }

    /// The line that left since this was asked last, to make room for another.
    pub fn take_replaced(&mut self) -> Option<u64> {
        self.replaced.take()
    }

    /// A load that must not use or fill the cache. `Lookup::Miss` or `Lookup::Full`.
    pub fn bypass(&mut self, line: u64, sectors: u8, waiter: Waiter) -> Lookup {
        if !self.mshrs.has_free() {
            return Lookup::Full;
        }
        Lookup::Miss(self.open(line, sectors, None, waiter))
    }

    fn open(&mut self, line: u64, sectors: u8, place: Option<usize>, waiter: Waiter) -> u16 {
        let index = self.mshrs.take();
        let mshr = &mut self.mshrs[index];
        debug_assert!(mshr.waiters.is_empty());
        mshr.line = line;
        mshr.sectors = sectors;
        mshr.place = place;
        mshr.waiters.push(waiter);
        index
    }

    /// A load of these sectors would hit.
    pub fn hits(&self, line: u64, sectors: u8) -> bool {
        let place = self.tags.find(line >> self.line_shift);
        place.is_some_and(|place| self.valid[place] & sectors == sectors)
    }

    /// The bytes in a place.
    pub fn data(&self, place: usize) -> &[u8; MAX_LINE_BYTES] {
        &self.data[place]
    }

    /// A store (or atomic) to the line passes by: evicts it and detaches fills under way. True when it was
    /// there.
    pub fn evict(&mut self, line: u64) -> bool {
        let Some(place) = self.tags.find(line >> self.line_shift) else {
            return false;
        };
        self.drop_place(place);
        true
    }

    /// A store to the line passes by and leaves its bytes in a copy; a line with a fill under way leaves, as
    /// the fill is older. True when it was there.
    pub fn update(&mut self, line: u64, store: Option<&Line>) -> bool {
        let Some(place) = self.tags.find(line >> self.line_shift) else {
            return false;
        };
        match store {
            Some(store) if self.fills[place].is_empty() => copy_masked(&mut self.data[place], &store.bytes, store.mask),
            _ => self.drop_place(place),
        }
        true
    }

    fn drop_place(&mut self, place: usize) {
        debug_assert_eq!(self.dirty[place], 0, "a line that leaves is cleaned first");
        self.tags.invalidate(place);
        self.valid[place] = 0;
        self.detach(place);
    }

    fn detach(&mut self, place: usize) {
        for index in self.fills[place].drain(..) {
            self.mshrs[index].place = None;
        }
        self.tags.lock(place, false);
    }

    /// Empties the cache but for dirty bytes, and detaches every fill under way.
    pub fn invalidate_all(&mut self) {
        for place in 0..self.tags.places() {
            if self.dirty[place] != 0 {
                self.detach(place);
                self.valid[place] = sectors_covered(self.dirty[place]);
            } else if self.tags.line_at(place).is_some() {
                self.drop_place(place);
            }
        }
    }

    /// A launch begins: the cache forgets all but what is to be cleaned. Local memory of the launch before is
    /// dead. From now on each set has `ways` ways, if given.
    pub fn begin_launch(&mut self, ways: Option<u32>) {
        if self.writes_local_back {
            for place in 0..self.tags.places() {
                let line = self.tags.line_at(place).map(|number| number << self.line_shift);
                if self.dirty[place] != 0 && line.is_none_or(|line| !self.sfifo.contains(&line)) {
                    self.dirty[place] = 0;
                }
            }
        }
        self.invalidate_all();
        if let Some(ways) = ways {
            self.tags.open(ways as usize);
        }
    }

    /// A fill has come: keeps its sectors if still attached, and appends who waits for it to `waiters`.
    pub fn fill(&mut self, index: u16, sectors: u8, line: &Line, waiters: &mut Vec<Waiter>) {
        let mshr = &mut self.mshrs[index];
        waiters.extend_from_slice(&mshr.waiters);
        mshr.waiters.clear();
        if let Some(place) = mshr.place.take() {
            copy_masked(&mut self.data[place], &line.bytes, sector_bytes(sectors));
            self.valid[place] |= sectors;
            self.fills[place].retain(|&mut fill| fill != index);
            if self.fills[place].is_empty() {
                self.tags.lock(place, false);
            }
        }
        self.mshrs.release(index);
    }

    /// The line that a miss under way is for.
    pub fn line_of(&self, index: u16) -> u64 {
        self.mshrs[index].line
    }

    /// Misses under way: their lines and how many loads wait for each.
    pub fn misses(&self) -> impl Iterator<Item = (u64, usize)> {
        self.mshrs.iter().filter(|m| !m.waiters.is_empty()).map(|m| (m.line, m.waiters.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn l1(mshrs: u32, merges: u32) -> L1 {
        let spec = L1Spec {
            kb: 1,
            unified_kb: 0,
            ways: 2,
            replacement: Replacement::Lru,
            replacement_seed: 0,
            mshr_entries: mshrs,
            mshr_merges: merges,
            miss_queue_entries: 8,
            hit_cycles: 82,
            miss_cycles: 0,
            fill_cycles: 0,
            global_loads: true,
            fence_invalidates: true,
            fetch: L1Fetch::Sectors,
            writes: L1Writes::Evict,
            local_writes: L1LocalWrites::WriteBack,
            sfifo_entries: 16,
        };
        L1::new(&spec, 128)
    }

    fn waiter(load: u16) -> Waiter {
        Waiter { load, part: 0, lanes: 1 }
    }

    fn fill(cache: &mut L1, index: u16, sectors: u8, line: &Line) -> Vec<Waiter> {
        let mut waiters = Vec::new();
        cache.fill(index, sectors, line, &mut waiters);
        waiters
    }

    fn line(byte: u8) -> Line {
        Line { bytes: [byte; MAX_LINE_BYTES], mask: u128::MAX, log: false, launch: 0 }
    }

    #[test]
    fn a_miss_then_a_merge_then_a_hit() {
        let mut c = l1(4, 8);
        assert_eq!(c.load(0, 0b1, waiter(1)), Lookup::Miss(0));
        assert_eq!(c.load(0, 0b1, waiter(2)), Lookup::Merged);
        assert_eq!(c.load(0, 0b10, waiter(3)), Lookup::Miss(1), "another sector is another request");
        assert_eq!(fill(&mut c, 0, 0b1, &line(7)), [waiter(1), waiter(2)]);
        let Lookup::Hit(place) = c.load(0, 0b1, waiter(4)) else { panic!("a hit") };
        assert_eq!(c.data(place)[0], 7);
    }

    #[test]
    fn a_store_detaches_the_fill_so_a_later_load_asks_again() {
        let mut c = l1(4, 8);
        assert_eq!(c.load(0, 0b1, waiter(1)), Lookup::Miss(0));
        assert!(c.evict(0));
        assert_eq!(c.load(0, 0b1, waiter(2)), Lookup::Miss(1), "it must not join the older fill");
        assert_eq!(fill(&mut c, 0, 0b1, &line(7)), [waiter(1)]);
        assert_eq!(c.load(0, 0b1, waiter(3)), Lookup::Merged, "the old bytes were not kept");
        assert_eq!(fill(&mut c, 1, 0b1, &line(8)).len(), 2);
        let Lookup::Hit(place) = c.load(0, 0b1, waiter(4)) else { panic!("a hit") };
        assert_eq!(c.data(place)[0], 8);
    }

    #[test]
    fn reserved_ways_are_not_victims() {
        let mut c = l1(8, 8);
        let lines: Vec<u64> = (0..64u64).map(|i| i * 128).collect();
        let misses = lines.iter().filter(|&&l| matches!(c.load(l, 1, waiter(0)), Lookup::Miss(_))).count();
        assert_eq!(misses, 8, "8 lines fit, each reserved");
        assert_eq!(c.load(64 * 128, 1, waiter(0)), Lookup::Full);
    }

    #[test]
    fn a_load_that_finds_every_way_reserved_may_go_past_while_there_is_an_mshr() {
        let mut c = l1(10, 8);
        let lines = |from: u64| (from..64).map(|i| i * 128);
        let misses = lines(0).take_while(|&l| c.load(l, 1, waiter(0)) != Lookup::Reserved).count() as u64;
        assert!((2..=8).contains(&misses), "{misses} lines were reserved");
        assert!(matches!(c.bypass(misses * 128, 1, waiter(1)), Lookup::Miss(_)));
        while matches!(c.bypass(64 * 128, 1, waiter(1)), Lookup::Miss(_)) {}
        assert_eq!(c.load(misses * 128, 1, waiter(2)), Lookup::Full, "now an MSHR is what lacks");
    }

    #[test]
    fn an_mshr_takes_so_many_loads_and_no_more() {
        let mut c = l1(4, 2);
        assert_eq!(c.load(0, 1, waiter(1)), Lookup::Miss(0));
        assert_eq!(c.load(0, 1, waiter(2)), Lookup::Merged);
        assert_eq!(c.load(0, 1, waiter(3)), Lookup::Full);
    }

    #[test]
    fn a_store_to_local_memory_stays_where_its_line_is_until_that_leaves_and_dies_with_its_launch() {
        let mut c = l1(4, 8);
        assert!(!c.combines_store(0, true), "no allocation for a store");
        assert_eq!(c.load(0, 1, waiter(1)), Lookup::Miss(0));
        fill(&mut c, 0, 1, &line(7));
        assert!(c.combines_store(0, true) && !c.combines_store(0, false));
        assert!(c.combine(0, true, &Line { mask: 1, ..line(8) }));
        assert!(c.is_dirty(0) && c.dirty_lines().next().is_none(), "no release looks for it");
        let Lookup::Hit(place) = c.load(0, 1, waiter(1)) else { panic!("a hit") };
        assert_eq!(c.data(place)[..2], [8, 7]);
        c.invalidate_all();
        assert!(c.is_dirty(0), "a fence leaves it");
        let mut room = line(0);
        assert!(c.clean(0, &mut room));
        assert_eq!((room.bytes[0], room.mask), (8, 1));
        assert!(c.combine(0, true, &Line { mask: 1, ..line(9) }));
        c.begin_launch(None);
        assert!(!c.is_dirty(0) && !c.hits(0, 0));
    }

    #[test]
    fn bytes_that_are_cleaned_are_of_the_launch_that_stored_last() {
        let mut c = l1(4, 8);
        c.combines = true;
        let store = |launch: u8, byte: u32| Line { mask: 1 << byte, launch, ..line(launch) };
        for (line, stores) in [(0, vec![store(1, 0), store(2, 1)]), (128, vec![store(2, 0), store(1, 1)])] {
            stores.iter().for_each(|of| assert!(c.combine(line, false, of)));
        }
        let mut cleaned = |line: u64| {
            let mut content = Line::default();
            assert!(c.clean(line, &mut content));
            (content.launch, content.mask)
        };
        assert_eq!([0, 128].map(&mut cleaned), [(2, 3), (1, 3)]);
    }

    #[test]
    fn a_launch_with_half_of_the_capacity_has_half_of_the_ways_and_none_of_the_lines_before() {
        let lines: Vec<u64> = (0..8u64).map(|i| i * 128).collect();
        let mut c = l1(8, 8);
        let mut held = |ways: Option<u32>| {
            c.begin_launch(ways);
            let before = lines.iter().filter(|&&at| c.hits(at, 1)).count();
            for &at in &lines {
                let Lookup::Miss(index) = c.load(at, 1, waiter(0)) else { panic!("a miss") };
                fill(&mut c, index, 1, &line(7));
            }
            (before, lines.iter().filter(|&&at| c.hits(at, 1)).count())
        };
        // 1 KiB in 2 ways.
        assert_eq!(held(None), (0, 8));
        assert_eq!(held(Some(1)), (0, 4));
        assert_eq!(held(Some(0)), (0, 4), "one way at least");
        assert_eq!(held(Some(2)), (0, 8));
    }

    #[test]
    fn a_dirty_line_keeps_its_way_open() {
        let mut c = l1(8, 8);
        c.combines = true;
        for at in [0, 128, 256, 384, 512, 640, 768, 896] {
            assert!(c.combine(at, false, &line(9)));
        }
        c.begin_launch(Some(0));
        assert!((0..8u64).all(|i| c.is_dirty(i * 128)), "what is to be cleaned stays");
    }

    #[test]
    fn invalidation_empties_it_and_detaches_fills() {
        let mut c = l1(4, 8);
        assert_eq!(c.load(0, 1, waiter(1)), Lookup::Miss(0));
        c.invalidate_all();
        fill(&mut c, 0, 1, &line(7));
        assert_eq!(c.load(0, 1, waiter(2)), Lookup::Miss(0), "nothing was kept");
    }
}
