//! The main window's pages between image and stack: which are free, and what `brk`, `mmap` and `munmap` make
//! of them.
//!
//! Pages are memory: there is no table that would put them elsewhere, so that a mapping needs as many
//! contiguous free pages. Mappings come from the top, the heap grows from the bottom. Pages that were used
//! before are zeroed by whoever gets them again; a mapping without access (`PROT_NONE`) that nobody opens up
//! stays clean.

use std::collections::BTreeMap;

use super::super::memory::PAGE_BYTES;
use durawarp_checkpoint::{state, value};

/// What a run of pages is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// Free, and zeros since the process began.
    Clean,
    /// Free, with what somebody left there.
    Dirty,
    /// Mapped without access.
    Reserved,
    /// Mapped.
    Used,
}

value!(choice Pages { Clean, Dirty, Reserved, Used });

impl Pages {
    fn is_free(self) -> bool {
        matches!(self, Pages::Clean | Pages::Dirty)
    }
}

/// A run of bytes: first address and length.
pub(super) type PageRun = (u64, u64);

/// The pages of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Space {
    /// Runs by their first address; each ends where the next one begins, the last one at `end`.
    runs: BTreeMap<u64, Pages>,
    start: u64,
    end: u64,
    heap_end: u64,
}

state!(Space { saved: runs, heap_end; kept: start, end });

impl Space {
    /// All pages of a range are free and clean.
    pub(super) fn new(start: u64, end: u64) -> Space {
        Space { runs: BTreeMap::from([(start, Pages::Clean)]), start, end, heap_end: start }
    }

    /// The runs of a range, cut at its ends.
    fn within(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = (u64, u64, Pages)> + '_ {
        let first = self.runs.range(..=from).next_back().map_or(from, |(&at, _)| at);
        self.runs.range(first..to).filter_map(move |(&at, &pages)| {
            let end = self.runs.range(at + 1..).next().map_or(self.end, |(&next, _)| next);
            let (at, end) = (at.max(from), end.min(to));
            (at < end).then_some((at, end, pages))
        })
    }

    /// Makes a range of whole pages within the space something else.
    fn paint(&mut self, from: u64, to: u64, pages: Pages) {
        let behind = self.runs.range(..=to).next_back().map(|(_, &pages)| pages);
        if to < self.end
            && let Some(behind) = behind
        {
            self.runs.insert(to, behind);
        }
        let inner: Vec<u64> = self.runs.range(from..to).map(|(&at, _)| at).collect();
        for at in inner {
            self.runs.remove(&at);
        }
        self.runs.insert(from, pages);
        // Equal neighbours are one run, so that free ones are found whole.
        let equal = |at: u64| {
            let below = self.runs.range(..at).next_back().map(|(_, pages)| *pages);
            self.runs.get(&at).copied().filter(|pages| Some(*pages) == below).map(|_| at)
        };
        for at in [equal(from), equal(to)].into_iter().flatten() {
            self.runs.remove(&at);
        }
    }

    /// A range of addresses as whole pages, if it lies in the space.
    fn pages(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let end = address.checked_add(bytes)?.checked_next_multiple_of(PAGE_BYTES)?;
        (address.is_multiple_of(PAGE_BYTES) && bytes > 0 && address >= self.start && end <= self.end)
            .then_some((address, end))
    }

    /// Takes free pages; those that have to be zeroed come back. `None` when not all are free.
    fn take(&mut self, from: u64, to: u64, pages: Pages) -> Option<Vec<PageRun>> {
        let runs: Vec<_> = self.within(from, to).collect();
        if !runs.iter().all(|(.., pages)| pages.is_free()) {
            return None;
        }
        let dirty = runs.iter().filter(|(.., pages)| *pages == Pages::Dirty);
        let dirty = dirty.map(|&(from, to, _)| (from, to - from)).collect();
        self.paint(from, to, pages);
        Some(dirty)
    }

    /// `brk`: moves the end of the heap to an address, if the pages up to it are free. The end as it is then,
    /// and what has to be zeroed.
    pub(super) fn brk(&mut self, address: u64) -> (u64, Vec<PageRun>) {
        let mut zeroed = Vec::new();
        let page = |address: u64| address.next_multiple_of(PAGE_BYTES);
        if address >= self.start && address <= self.end {
            let (old, new) = (page(self.heap_end), page(address));
            if new < old {
                self.paint(new, old, Pages::Dirty);
            } else if new > old {
                match self.take(old, new, Pages::Used) {
                    Some(dirty) => zeroed = dirty,
                    None => return (self.heap_end, zeroed),
                }
            }
            self.heap_end = address;
        }
        (self.heap_end, zeroed)
    }

    /// `mmap` of memory: the highest free pages that are clean, else the highest that are free. The first
    /// address, and what has to be zeroed.
    pub(super) fn map(&mut self, bytes: u64, access: bool) -> Option<(u64, Vec<PageRun>)> {
        let bytes = bytes.checked_next_multiple_of(PAGE_BYTES).filter(|bytes| *bytes > 0)?;
        let from =
            self.highest(bytes, |pages| pages == Pages::Clean).or_else(|| self.highest(bytes, Pages::is_free))?;
        let dirty = self.take(from, from + bytes, if access { Pages::Used } else { Pages::Reserved })?;
        Some((from, dirty))
    }

    fn highest(&self, bytes: u64, fits: impl Fn(Pages) -> bool) -> Option<u64> {
        let mut top = self.end;
        for (&at, &pages) in self.runs.iter().rev() {
            if !fits(pages) {
                top = at;
            } else if top - at >= bytes {
                return Some(top - bytes);
            }
        }
        None
    }

    /// `mmap` with MAP_FIXED: these pages, whatever they are. What has to be zeroed; `None` outside the
    /// space.
    pub(super) fn map_at(&mut self, address: u64, bytes: u64, access: bool) -> Option<Vec<PageRun>> {
        let (from, to) = self.pages(address, bytes)?;
        let used = self.within(from, to).filter(|(.., pages)| !matches!(pages, Pages::Clean | Pages::Reserved));
        let used = used.map(|(from, to, _)| (from, to - from)).collect();
        self.paint(from, to, if access { Pages::Used } else { Pages::Reserved });
        Some(used)
    }

    /// `munmap`; `false` outside the space.
    pub(super) fn unmap(&mut self, address: u64, bytes: u64) -> bool {
        let Some((from, to)) = self.pages(address, bytes) else {
            return false;
        };
        for (from, to, pages) in self.within(from, to).collect::<Vec<_>>() {
            match pages {
                Pages::Used => self.paint(from, to, Pages::Dirty),
                Pages::Reserved => self.paint(from, to, Pages::Clean),
                Pages::Clean | Pages::Dirty => {}
            }
        }
        true
    }

    /// `mprotect`: pages without access may be given it. Nothing is taken away.
    pub(super) fn open(&mut self, address: u64, bytes: u64) {
        let Some((from, to)) = self.pages(address, bytes) else {
            return;
        };
        for (from, to, pages) in self.within(from, to).collect::<Vec<_>>() {
            if pages == Pages::Reserved {
                self.paint(from, to, Pages::Used);
            }
        }
    }

    /// `mremap` in place: shrinks, or grows into free pages. What has to be zeroed; `None` when it does not
    /// fit.
    pub(super) fn resize(&mut self, address: u64, old: u64, new: u64) -> Option<Vec<PageRun>> {
        let (_, old_end) = self.pages(address, old)?;
        let (_, new_end) = self.pages(address, new)?;
        if new_end <= old_end {
            self.unmap(new_end, old_end - new_end);
            return Some(Vec::new());
        }
        self.take(old_end, new_end, Pages::Used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = PAGE_BYTES;

    fn runs(space: &Space) -> Vec<(u64, u64, Pages)> {
        space.within(space.start, space.end).map(|(from, to, pages)| (from / P, to / P, pages)).collect()
    }

    #[test]
    fn the_heap_grows_up_and_mappings_come_down_until_they_meet() {
        let mut space = Space::new(16 * P, 32 * P);
        assert_eq!(space.brk(0), (16 * P, vec![]));
        assert_eq!(space.brk(18 * P + 8), (18 * P + 8, vec![]));
        assert_eq!(space.map(3 * P - 1, true), Some((29 * P, vec![])));
        assert_eq!(space.map(11 * P, true), None);
        assert_eq!(space.map(10 * P, true), Some((19 * P, vec![])));
        assert_eq!(space.brk(20 * P).0, 18 * P + 8);
        assert_eq!(runs(&space), [(16, 32, Pages::Used)]);
    }

    #[test]
    fn pages_are_zeroed_when_they_are_used_again_and_only_then() {
        let mut space = Space::new(0x10 * P, 0x20 * P);
        space.brk(0x14 * P);
        assert_eq!(space.brk(0x12 * P), (0x12 * P, vec![]));
        assert_eq!(space.brk(0x15 * P), (0x15 * P, vec![(0x12 * P, 2 * P)]));
        let (address, _) = space.map(4 * P, true).unwrap();
        assert!(space.unmap(address + P, 2 * P));
        // Clean pages first.
        assert_eq!(space.map(2 * P, true), Some((0x1a * P, vec![])));
        assert_eq!(space.map(5 * P, true), Some((0x15 * P, vec![])));
        assert_eq!(space.map(2 * P, true), Some((address + P, vec![(address + P, 2 * P)])));
        assert_eq!(space.map(P, true), None);
    }

    #[test]
    fn what_was_reserved_and_not_opened_is_clean_when_it_is_given_back() {
        let mut space = Space::new(0, 16 * P);
        let (address, _) = space.map(8 * P, false).unwrap();
        space.open(address, 2 * P);
        assert!(space.unmap(address, 4 * P));
        assert_eq!(
            runs(&space),
            [(0, 8, Pages::Clean), (8, 10, Pages::Dirty), (10, 12, Pages::Clean), (12, 16, Pages::Reserved)]
        );
        assert!(!space.unmap(address + 1, P) && !space.unmap(16 * P, P) && !space.unmap(address, u64::MAX));
    }

    #[test]
    fn a_mapping_is_resized_in_place_or_not_at_all() {
        let mut space = Space::new(0, 16 * P);
        let (high, _) = space.map(4 * P, true).unwrap();
        let (low, _) = space.map(4 * P, true).unwrap();
        assert_eq!((high, low), (12 * P, 8 * P));
        assert_eq!(space.resize(low, 4 * P, 5 * P), None);
        assert_eq!(space.resize(high, 4 * P, 2 * P), Some(vec![]));
        assert_eq!(space.resize(high, 2 * P, 3 * P), Some(vec![(14 * P, P)]));
    }
}
