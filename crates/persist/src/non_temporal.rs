//! Which stores of a warp bypassed the caches and still have a write-back of the program's to come: that
//! write-back has nothing to do, and a scheme drops it.
//!
//! Source: AGPM section IV-B ("if a log update's path is changed from the temporal to the non-temporal one,
//! the original clwb should be dropped"). Invariant: a write-back is dropped only when each of its lines was
//! last stored non-temporally by the same warp; where that is not known, as after more lines than are kept,
//! it is done.

use std::collections::VecDeque;

use durawarp_checkpoint::state;

use super::handler::{Store, WriteBack};
use super::vocab::Route;

/// Lines kept of a warp.
const KEPT: usize = 32;

/// Lines that warps of an SM stored non-temporally, by warp slot.
#[derive(Debug, Clone, Default)]
pub struct NonTemporalStores {
    warps: Vec<VecDeque<u64>>,
}

state!(NonTemporalStores { saved: warps });

impl NonTemporalStores {
    fn of(&mut self, warp: u8) -> &mut VecDeque<u64> {
        let warp = usize::from(warp);
        if self.warps.len() <= warp {
            self.warps.resize(warp + 1, VecDeque::new());
        }
        &mut self.warps[warp]
    }

    /// A store takes a way.
    pub fn stored(&mut self, store: &Store<'_>, route: Route) {
        let kept = self.of(store.warp);
        if route == Route::NonTemporal {
            for line in store.lines {
                if !kept.contains(line) {
                    if kept.len() == KEPT {
                        kept.pop_front();
                    }
                    kept.push_back(*line);
                }
            }
        } else if !kept.is_empty() {
            kept.retain(|line| !store.lines.contains(line));
        }
    }

    /// A write-back comes: it has nothing to do.
    #[inline]
    pub fn covers(&mut self, write_back: &WriteBack<'_>) -> bool {
        let kept = self.of(write_back.warp);
        let covered = !kept.is_empty() && write_back.lines.iter().all(|line| kept.contains(line));
        if covered {
            kept.retain(|line| !write_back.lines.contains(line));
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::{StoreClass, WriteBackClass};

    fn store(stores: &mut NonTemporalStores, warp: u8, lines: &[u64], route: Route) {
        stores.stored(&Store { warp, ..Store::to(StoreClass::Log, lines) }, route);
    }

    fn covers(stores: &mut NonTemporalStores, warp: u8, lines: &[u64]) -> bool {
        stores.covers(&WriteBack { class: WriteBackClass::Log, warp, launch: 0, lines })
    }

    #[test]
    fn the_way_that_a_store_took_decides_not_the_one_that_others_take() {
        let mut stores = NonTemporalStores::default();
        store(&mut stores, 3, &[0, 128], Route::NonTemporal);
        store(&mut stores, 3, &[256], Route::Temporal);
        assert!(covers(&mut stores, 3, &[0]));
        assert!(!covers(&mut stores, 3, &[256]));
        assert!(!covers(&mut stores, 3, &[0]), "once: a second one may be meant for another's store");
        assert!(!covers(&mut stores, 4, &[128]), "another warp's");
        store(&mut stores, 3, &[128], Route::Temporal);
        assert!(!covers(&mut stores, 3, &[128]), "the caches have bytes of it now");
    }

    #[test]
    fn a_write_back_of_a_line_that_is_not_known_is_done() {
        let mut stores = NonTemporalStores::default();
        store(&mut stores, 0, &[0], Route::NonTemporal);
        assert!(!covers(&mut stores, 0, &[0, 128]));
        for line in 1..=KEPT as u64 {
            store(&mut stores, 0, &[128 * line], Route::NonTemporal);
        }
        assert!(!covers(&mut stores, 0, &[0]), "forgotten");
        assert!(covers(&mut stores, 0, &[128]));
    }

    #[test]
    fn thirty_two_lines_of_a_warp_are_kept_each_once() {
        let mut stores = NonTemporalStores::default();
        let lines: Vec<u64> = (0..KEPT as u64).map(|line| 128 * line).collect();
        store(&mut stores, 1, &lines, Route::NonTemporal);
        store(&mut stores, 1, &lines[5..9], Route::NonTemporal);
        assert!(!covers(&mut stores, 1, &[0, 1 << 20]), "one of them is not known");
        assert!(covers(&mut stores, 1, &lines));
        assert!(!covers(&mut stores, 1, &lines[..1]) && !covers(&mut stores, 0, &lines[..1]));
        // Two more push out the oldest two.
        store(&mut stores, 1, &lines, Route::NonTemporal);
        store(&mut stores, 1, &[1 << 20, 1 << 21], Route::NonTemporal);
        assert!(!covers(&mut stores, 1, &lines[1..2]));
        assert!(covers(&mut stores, 1, &lines[2..]));
    }
}
