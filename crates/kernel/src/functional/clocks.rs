//! What the search of races remembers: how far warps know of each other, and what has happened to each word.
//!
//! Vector clocks have one entry a warp (Flanagan and Freund, "FastTrack", PLDI 2009). Of a word no more is
//! kept than may still race: what an access covers races with whatever that one races with.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::interface::AccessKind;

/// Unordered readers of a word that are remembered at a time, and unordered atomics on it.
const READERS: usize = 16;

/// Bytes of a word.
pub(super) const WORD: u64 = 4;

/// How far each warp of some CTAs has come, by CTA; 0 where nothing is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks(Arc<BTreeMap<u64, Arc<[u32]>>>);

impl Clocks {
    pub(super) fn of(&self, cta: u64, warp: u32) -> u32 {
        self.0.get(&cta).map_or(0, |warps| warps[warp as usize])
    }

    pub(super) fn join(&mut self, other: &Clocks) {
        if Arc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return;
        }
        if self.0.is_empty() {
            self.0 = other.0.clone();
            return;
        }
        // Copied only if something changes: most waiting is for what is known already.
        for (cta, theirs) in &*other.0 {
            match self.0.get(cta) {
                Some(own) if Arc::ptr_eq(own, theirs) || own.iter().zip(&**theirs).all(|(own, their)| own >= their) => {
                }
                Some(own) => {
                    let joined = own.iter().zip(&**theirs).map(|(own, their)| *own.max(their)).collect();
                    Arc::make_mut(&mut self.0).insert(*cta, joined);
                }
                None => {
                    Arc::make_mut(&mut self.0).insert(*cta, theirs.clone());
                }
            }
        }
    }

    /// At least so far: what does something in that CTA, of `parties`.
    pub(super) fn raise(&mut self, cta: u64, party: u32, clock: u32, parties: usize) {
        if self.0.get(&cta).is_some_and(|known| known[party as usize] >= clock) {
            return;
        }
        let own = Arc::make_mut(&mut self.0).entry(cta).or_insert_with(|| vec![0; parties].into());
        let mut next = own.to_vec();
        next[party as usize] = clock;
        *own = next.into();
    }

    /// The same of CTAs of other names.
    pub(super) fn renamed(&self, name: impl Fn(u64) -> u64) -> Clocks {
        Clocks(Arc::new(self.0.iter().map(|(&cta, warps)| (name(cta), warps.clone())).collect()))
    }

    /// One step more of a warp among `parties`.
    pub(super) fn advance(&mut self, cta: u64, warp: u32, parties: usize) {
        self.raise(cta, warp, self.of(cta, warp) + 1, parties);
    }
}

/// A word that warps communicate by.
#[derive(Debug, Clone, Default)]
pub(super) struct Flag {
    /// What is published to the device.
    pub(super) device: Clocks,
    /// What is published to one CTA.
    pub(super) cta: Option<(u64, Clocks)>,
    /// What fences between proxies of those who published stand behind, in shared and in global memory.
    pub(super) proxied: [Clocks; 2],
    /// It is part of an `mbarrier`: plain loads test it.
    pub(super) phases: bool,
}

/// An access that is remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastAccess {
    pub(super) cta: u64,
    pub(super) warp: u32,
    pub(super) clock: u32,
    pub(super) pc: u32,
    /// Bytes of the word.
    pub(super) bytes: u8,
    pub(super) strong: bool,
    pub(super) kind: AccessKind,
    /// A write that changed bytes.
    pub(super) changes: bool,
}

/// What has happened to a word, as far as it may still race.
#[derive(Debug, Default)]
pub(super) struct WordPast {
    pub(super) writes: SmallVec<[PastAccess; 1]>,
    pub(super) reads: SmallVec<[PastAccess; 1]>,
}

/// What has happened to a memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pub(super) cells: HashMap<u64, WordPast>,
    pub(super) flags: HashMap<u64, Flag>,
}

impl PastAccess {
    /// They have bytes in common, and are not both strong.
    fn meets(&self, other: &PastAccess) -> bool {
        self.bytes & other.bytes != 0 && !(self.strong && other.strong)
    }
}

impl WordPast {
    /// What would race with an access if nothing ordered the two.
    pub(super) fn conflicts(&self, own: PastAccess) -> impl Iterator<Item = &PastAccess> {
        let reads = own.kind == AccessKind::Read;
        let all = self.writes.iter().chain(self.reads.iter().filter(move |_| !reads));
        all.filter(move |other| other.meets(&own))
    }

    /// An access happens: what it races with is told, and forgotten where another would race with this one
    /// first.
    pub(super) fn take(&mut self, own: PastAccess, seen: &Clocks, race: &mut dyn FnMut(PastAccess)) {
        let reads = own.kind == AccessKind::Read;
        let is_own = |other: &PastAccess| (other.cta, other.warp) == (own.cta, own.warp);
        let ordered = |other: &PastAccess| is_own(other) || seen.of(other.cta, other.warp) >= other.clock;
        let races = |other: &PastAccess| other.meets(&own) && !ordered(other);
        self.conflicts(own).filter(|other| !ordered(other)).for_each(|other| race(*other));
        // What races later with one that this one covers races with this one, too: nothing is ordered after
        // this one alone.
        let covered =
            |other: &PastAccess| other.bytes & !own.bytes == 0 && (other.strong || !own.strong) && ordered(other);
        if reads {
            self.reads.retain(|other| !covered(other));
            if self.reads.len() < READERS {
                self.reads.push(own);
            }
        } else {
            self.reads.retain(|other| !covered(other) && !races(other));
            self.writes.retain(|other| !covered(other) && !races(other));
            // Atomics of many warps on one word are unordered and no races.
            if self.writes.len() == READERS {
                self.writes.remove(0);
            }
            self.writes.push(own);
        }
    }

    /// The last write is an atomic whose result a program has: what comes after it comes after the write that
    /// it has seen, too, and after those that the atomics between them have seen. It stands for all of these:
    /// what is unordered with it races with it.
    pub(super) fn observe(&mut self) {
        let Some(own) = self.writes.pop() else { return };
        while let Some(seen) = self.writes.last().copied()
            && seen.strong
            && seen.bytes & !own.bytes == 0
        {
            self.writes.pop();
            if seen.kind != AccessKind::Atomic {
                break;
            }
        }
        self.writes.push(own);
    }
}
