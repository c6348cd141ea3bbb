//! The word of an `mbarrier` object in shared memory, and what arrivals make of it (PTX ISA 9.7.13.15).
//!
//! ```text
//! bits 0 to 19   arrivals expected in a phase       bits 20 to 39   arrivals pending in this one
//! bits 40 to 63  number of the phase, from 0
//! ```
//! The ISA leaves the object opaque. A state that `arrive` returns is the word before the arrival. Invariant:
//! a phase ends with the arrival that leaves none pending, and the next one expects as many. Not modelled:
//! counts of transactions (`expect_tx`, `complete_tx`), `arrive_drop`, barriers of other CTAs.

/// Bits of a count.
const COUNT: u32 = 20;
/// A count's bits.
const MASK: u64 = (1 << COUNT) - 1;

/// A barrier, each phase of which expects `count` arrivals.
pub(super) fn begun(count: u64) -> u64 {
    (count & MASK) | (count & MASK) << COUNT
}

/// The word after `count` arrivals. More than are pending end the phase all the same: the ISA leaves
/// undefined what happens then.
pub(crate) fn arrived(word: u64, count: u64) -> u64 {
    let (expected, pending, number) = (word & MASK, word >> COUNT & MASK, word >> (2 * COUNT));
    let (pending, number) =
        if pending > count { (pending - count, number) } else { (expected, number.wrapping_add(1)) };
    expected | pending << COUNT | number << (2 * COUNT)
}

/// The word when `count` more arrivals are pending in this phase.
pub(super) fn awaiting(word: u64, count: u64) -> u64 {
    word & !(MASK << COUNT) | (((word >> COUNT & MASK) + count) & MASK) << COUNT
}

/// The phase of a state is over.
pub(super) fn is_over(word: u64, state: u64) -> bool {
    word >> (2 * COUNT) != state >> (2 * COUNT)
}

/// The phase of this parity, the current one or that before it, is over.
pub(super) fn is_over_by_parity(word: u64, parity: u32) -> bool {
    (word >> (2 * COUNT)) as u32 & 1 != parity & 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_with_its_last_arrival_and_the_next_expects_as_many() {
        let first = begun(3);
        let two = arrived(arrived(first, 1), 1);
        assert!(!is_over(two, first) && !is_over_by_parity(two, 0) && is_over_by_parity(two, 1));
        let second = arrived(two, 1);
        assert!(is_over(second, first) && is_over_by_parity(second, 0) && !is_over_by_parity(second, 1));
        assert!(!is_over(arrived(second, 2), second) && is_over(arrived(second, 3), second));
    }

    #[test]
    fn an_arrival_that_is_awaited_in_addition_changes_nothing_in_the_end() {
        let word = awaiting(begun(1), 32);
        assert!(!is_over(arrived(word, 32), word));
        assert_eq!(arrived(awaiting(begun(2), 1), 1), begun(2));
        assert!(is_over(arrived(word, 33), word));
    }

    #[test]
    fn phases_are_numbered_for_ever() {
        let last = u64::MAX << 40 | begun(1);
        assert_eq!(arrived(last, 1), begun(1), "the number wraps around");
        assert!(is_over(arrived(last, 1), last));
    }
}
