//! The judge of crash consistency: does memory after a power failure, at any instant, keep the promises to
//! the program?
//!
//! ```text
//!              ┌─ crash   the images that the machine really left ──────┐
//!  journal ────┤                                                        ├─ judge ─> verdict
//!  (facts)     └─ order ── allowed  the images that it might have left ─┘
//!                   └───── history  what no image shows: order, acknowledgements
//! ```
//! *Level A* judges actual states: the durable image changes only at certain facts of the journal, and every
//! such change is an instant at which power may fail. *Level B* judges allowed states: from the program's own
//! stores, write-backs and fences an independent model tells which versions of a line must be durable and
//! which may be; any combination of these is an image that another timing of the caches could have left.
//! *Level C* judges states that another timing of the warps could have left (`overtaking`). A bug that timing
//! happens to hide shows at these levels.
//!
//! Sources: Intel's persistent-memory programming model (8-byte atomicity, ADR); intervals of possible
//! persists as in PMTest (ASPLOS'19) and Jaaru (ASPLOS'21); undo logging as in AGPM section II-B.
//!
//! Invariants: it shares no code with the machine or a scheme; it reads facts and images only. The same input
//! gives the same verdict on any number of threads. Not modelled: power failures that tear a word of 8 bytes;
//! media errors.

pub mod allowed;
mod authors;
pub mod crash;
pub mod cuts;
pub mod epochs;
pub mod history;
pub mod judge;
mod launch_order;
mod open_fences;
pub mod order;
pub mod overtaking;
pub mod regions;
pub mod replay;
mod scopes;
pub mod undo;
pub mod verbs;
pub mod verdict;
pub mod visible;

#[cfg(test)]
pub(crate) mod script;

use std::ops::Range;

use durawarp_persist::PmImage;
use durawarp_persist::undo::UndoLog;

/// Bytes of a line at most; those of a machine may be shorter, and only their own bytes count.
pub(crate) const LINE: usize = 128;
/// Words of 8 bytes in a line.
pub(crate) const WORDS: usize = LINE / 8;

/// What parts of persistent memory are for. Ranges of addresses, sorted and disjoint once [`Regions::new`]
/// made them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regions {
    /// Flags of transactions, and whatever else says which of the data counts.
    pub flag: Vec<Range<u64>>,
    pub log: Vec<Range<u64>>,
    /// Data that transactions change.
    pub data: Vec<Range<u64>>,
}

impl Regions {
    /// Regions from ranges in any order.
    pub fn new(flag: Vec<Range<u64>>, log: Vec<Range<u64>>, data: Vec<Range<u64>>) -> Regions {
        Regions { flag: joined(flag), log: joined(log), data: joined(data) }
    }

    /// Where the transactions of an undo log keep their flags, logs and data.
    pub fn of(undo: &UndoLog) -> Regions {
        let slots = || undo.transactions.iter().flat_map(|transaction| &transaction.slots);
        Regions::new(
            undo.transactions.iter().map(|transaction| transaction.flag..transaction.flag + 4).collect(),
            slots().map(|slot| slot.log..slot.log + u64::from(slot.bytes)).collect(),
            slots().map(|slot| slot.home..slot.home + u64::from(slot.bytes)).collect(),
        )
    }
}

/// Sorts ranges and joins those that touch; empty ones go.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// Whether bytes of `range` are in one of `ranges`, which are sorted and disjoint.
pub(crate) fn overlaps(ranges: &[Range<u64>], range: &Range<u64>) -> bool {
    let next = ranges.partition_point(|candidate| candidate.end <= range.start);
    ranges.get(next).is_some_and(|candidate| candidate.start < range.end)
}

/// Whether the bytes of a line that `mask` names are in one of `ranges`.
pub(crate) fn line_overlaps(ranges: &[Range<u64>], line: u64, mask: u128) -> bool {
    runs(mask).any(|(start, bytes)| overlaps(ranges, &(line + start as u64..line + (start + bytes) as u64)))
}

/// The part of the `bytes` bytes from `address` on that lies in an image, as a range of these bytes.
pub(crate) fn inside(image: &PmImage, address: u64, bytes: usize) -> Range<usize> {
    let end = image.base() + image.bytes().len() as u64;
    let start = image.base().saturating_sub(address).min(bytes as u64);
    start as usize..end.saturating_sub(address).clamp(start, bytes as u64) as usize
}

/// The runs of ones of a mask, as (first, how many).
pub(crate) fn runs(mask: u128) -> impl Iterator<Item = (usize, usize)> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let start = left.trailing_zeros() as usize;
        let run = (left >> start).trailing_ones() as usize;
        left &= u128::MAX.checked_shl((start + run) as u32).unwrap_or(0);
        Some((start, run))
    })
}

/// A mixing of 64 bits in which every bit of the input changes half of the output (the finish of splitmix64).
pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Numbers drawn from a seed (splitmix64): the same ones for the same seed.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(mix(seed ^ 0x6f72_6163_6c65))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Keeps `count` of the items, drawn without bias, in their order.
    pub(crate) fn thin<T>(&mut self, items: &mut Vec<T>, count: usize) {
        let (mut left, mut wanted) = (items.len() as u64, count as u64);
        items.retain(|_| {
            let keep = left != 0 && self.below(left) < wanted;
            left -= 1;
            wanted -= u64::from(keep);
            keep
        });
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use durawarp_persist::undo::{LogSlot, Transaction};

    #[test]
    fn ranges_that_touch_are_joined_and_found_by_any_byte() {
        let ranges = joined(vec![20..30, 5..5, 0..4, 4..8, 25..28]);
        assert_eq!(ranges, [0..8, 20..30]);
        for (range, expected) in [(7..8, true), (8..20, false), (8..21, true), (29..99, true), (30..31, false)] {
            assert_eq!(overlaps(&ranges, &range), expected, "{range:?}");
        }
        assert!(line_overlaps(&ranges, 0, 1 << 29) && !line_overlaps(&ranges, 0, 1 << 30 | 1 << 10));
    }

    #[test]
    fn ranges_that_lie_apart_or_inside_each_other_stay_or_go() {
        assert_eq!(joined(vec![5..8, 0..4]), [0..4, 5..8]);
        assert_eq!(joined(vec![0..9, 2..3, 2..3]), [0..9]);
        assert_eq!(joined(vec![4..4, 7..7]), []);
        let ranges = joined(vec![10..12, 14..16]);
        for (range, expected) in [(9..10, false), (9..11, true), (12..14, false), (12..15, true), (16..17, false)] {
            assert_eq!(overlaps(&ranges, &range), expected, "{range:?}");
        }
        assert!(!overlaps(&[], &(0..u64::MAX)));
    }

    #[test]
    fn bytes_of_a_line_are_looked_for_at_their_addresses() {
        // Bytes 2 and 3 of the line at 128.
        let ranges = [130..132];
        for (mask, expected) in
            [(0b10, false), (0b110, true), (0b1000, true), (0b1_0000, false), (0b1_0010, false), (0, false)]
        {
            assert_eq!(line_overlaps(&ranges, 128, mask), expected, "{mask:#b}");
        }
        assert!(line_overlaps(&ranges, 128, 1 << 100 | 0b100) && !line_overlaps(&ranges, 0, 0b1100));
    }

    #[test]
    fn the_bytes_of_a_line_inside_an_image_are_counted_from_the_lines_first() {
        let image = PmImage::new(100, vec![0; 50]);
        for (address, bytes, expected) in [
            (0, 128, 100..128),
            (0, 64, 64..64),
            (96, 128, 4..54),
            (96, 32, 4..32),
            (128, 128, 0..22),
            (128, 16, 0..16),
            (149, 128, 0..1),
            (150, 128, 0..0),
            (256, 128, 0..0),
        ] {
            assert_eq!(inside(&image, address, bytes), expected, "{bytes} bytes at {address}");
        }
    }

    #[test]
    fn regions_of_an_undo_log_are_its_flags_of_4_bytes_its_logs_and_its_elements() {
        let slot = |home, log, bytes| LogSlot { home, log, bytes };
        let transaction = |flag, slots| Transaction { launch: 0, cta: None, flag, slots };
        let transactions =
            vec![transaction(300, vec![slot(8, 108, 4), slot(0, 100, 8)]), transaction(310, vec![slot(40, 120, 2)])];
        let expected =
            Regions { flag: vec![300..304, 310..314], log: vec![100..112, 120..122], data: vec![0..12, 40..42] };
        assert_eq!(Regions::of(&UndoLog { transactions }), expected);
    }

    /// No mask has more runs than these; a walk that does not end is cut.
    fn all_runs(mask: u128) -> Vec<(usize, usize)> {
        runs(mask).take(100).collect()
    }

    #[test]
    fn runs_of_a_mask_cover_it() {
        assert_eq!(all_runs(0b1101 | 1 << 127), [(0, 1), (2, 2), (127, 1)]);
        assert_eq!(all_runs(0b1110_0110_0000), [(5, 2), (9, 3)]);
        assert_eq!(all_runs(u128::MAX), [(0, 128)]);
        assert_eq!(all_runs(u128::MAX << 120), [(120, 8)]);
        assert_eq!(all_runs(u128::MAX / 3), (0..64).map(|nth| (2 * nth, 1)).collect::<Vec<_>>());
        assert_eq!(all_runs(0), []);
    }

    #[test]
    fn mixing_and_drawing_are_splitmix64() {
        let mixed = [0, 0x5692_161d_100b_05e5, 0xdbd2_3897_3a2b_148a, 0xb4d0_55fc_f2cb_bd7b];
        assert_eq!([0, 1, 2, u64::MAX].map(mix), mixed);
        // As published for a state of 0.
        let mut published = Draw(0);
        let next = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([(); 3].map(|()| published.next()), next);
        let mut own = Draw::new(0);
        assert_eq!([(); 2].map(|()| own.next()), [0x240c_bb8d_0642_695e, 0x6ab6_7117_1593_c72c]);
        let mut bounded = Draw::new(1);
        assert_eq!([(); 8].map(|()| bounded.below(10)), [1, 3, 9, 3, 7, 6, 1, 3]);
        assert_eq!([Draw::new(1).below(1), Draw::new(1).below(1 << 63)], [0, 1_601_386_149_804_917_961]);
    }

    #[test]
    fn thinning_keeps_the_same_items_for_a_seed() {
        let thinned = |seed, items: u32, count| {
            let mut items: Vec<u32> = (0..items).collect();
            Draw::new(seed).thin(&mut items, count);
            items
        };
        assert_eq!((thinned(1, 10, 4), thinned(2, 10, 4)), (vec![0, 3, 6, 9], vec![1, 2, 3, 5]));
        assert_eq!((thinned(1, 3, 3), thinned(1, 3, 5)), (vec![0, 1, 2], vec![0, 1, 2]));
        assert_eq!((thinned(1, 3, 0), thinned(1, 0, 3)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn thinning_keeps_exactly_as_many_as_asked_in_their_order() {
        let mut items: Vec<u32> = (0..1000).collect();
        Draw::new(1).thin(&mut items, 100);
        assert_eq!(items.len(), 100);
        assert!(items.is_sorted());
        let mut other: Vec<u32> = (0..1000).collect();
        Draw::new(2).thin(&mut other, 100);
        assert_ne!(items, other);
        Draw::new(3).thin(&mut other, 200);
        assert_eq!(other.len(), 100);
    }
}
