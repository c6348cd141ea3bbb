//! The word of an `mbarrier` object in shared memory, and what operations make of it (PTX ISA 9.7.13.15).
//!
//! ```text
//! bits 0 to 19   arrivals expected in a phase       bits 20 to 39   arrivals pending in this one
//! bits 40 to 60  bytes of transactions that are awaited (tx-count), signed
//! bit 61         there is a barrier                 bits 62, 63     number of the phase, from 0
//! ```
//! The ISA leaves the object opaque. A state that `arrive` returns is the word before the arrival.
//! Invariants: a phase ends with the operation that leaves no arrival and no byte pending, and the next one
//! expects as many arrivals; the tx-count may be lowered before it is raised; what the ISA leaves undefined
//! is a [`PhaseMisuse`], and changes nothing. Two bits tell a phase from the one before, which is all that a
//! test may ask for. Not modelled: barriers of other CTAs; a test of a word without a barrier is no misuse
//! here.

use std::fmt;

use super::super::ir::PhaseOp;

/// Bits of a count of arrivals.
const COUNT: u32 = 20;
/// A count's bits: the most arrivals, and the most bytes of transactions.
const MASK: u64 = (1 << COUNT) - 1;
/// Where the tx-count begins, and its bits.
const TX: u32 = 2 * COUNT;
const TX_BITS: u32 = COUNT + 1;
/// There is a barrier.
const PRESENT: u64 = 1 << 61;
/// Where the phase's number begins.
const PHASE: u32 = 62;

/// The second operand of an arrival: it must not end its phase (`.noComplete`).
pub(crate) const NO_COMPLETE: u64 = 1;
/// The second operand of an arrival: later phases expect as many fewer (`arrive_drop`).
pub(crate) const DROP: u64 = 2;

/// An operation on an `mbarrier` that the ISA leaves undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseMisuse {
    /// No barrier was initialised in the word, or it was invalidated.
    Absent,
    /// A barrier of no arrivals, or of too many.
    Expected(u64),
    /// More arrivals than are pending, or none.
    Arrivals {
        count: u64,
        /// How many are.
        pending: u64,
    },
    /// The tx-count leaves its range.
    Transactions(i64),
    /// An arrival with `.noComplete` ends its phase.
    Completes,
}

impl fmt::Display for PhaseMisuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PhaseMisuse::Absent => {
                write!(f, "there is no `mbarrier` here: it was not initialised, was invalidated or was written over")
            }
            PhaseMisuse::Expected(count) => write!(f, "an `mbarrier` expects 1 to {MASK} arrivals, not {count}"),
            PhaseMisuse::Arrivals { count, pending } => {
                write!(f, "{count} arrivals at an `mbarrier` of which {pending} are pending in this phase")
            }
            PhaseMisuse::Transactions(bytes) => {
                write!(f, "a tx-count of {bytes} bytes at an `mbarrier`, which counts from -{MASK} to {MASK}")
            }
            PhaseMisuse::Completes => write!(f, "an arrival with `.noComplete` ends the phase of its `mbarrier`"),
        }
    }
}

/// A word, taken apart.
#[derive(Debug, Clone, Copy)]
struct Fields {
    expected: u64,
    pending: u64,
    tx: i64,
    phase: u64,
}

impl Fields {
    fn of(word: u64) -> Option<Fields> {
        let unused = u64::BITS - TX_BITS;
        (word & PRESENT != 0).then_some(Fields {
            expected: word & MASK,
            pending: word >> COUNT & MASK,
            tx: ((word >> TX) << unused) as i64 >> unused,
            phase: word >> PHASE,
        })
    }

    fn word(self) -> u64 {
        let tx = (self.tx as u64 & ((1 << TX_BITS) - 1)) << TX;
        self.expected | self.pending << COUNT | tx | PRESENT | self.phase << PHASE
    }

    /// More bytes are awaited, or fewer.
    fn awaiting(mut self, bytes: i64) -> Result<Fields, PhaseMisuse> {
        self.tx = self.tx.saturating_add(bytes);
        if self.tx.unsigned_abs() > MASK { Err(PhaseMisuse::Transactions(self.tx)) } else { Ok(self) }
    }

    /// More arrivals are pending in this phase.
    fn with_more_pending(self, count: u64) -> Result<Fields, PhaseMisuse> {
        let pending = self.pending.saturating_add(count);
        if pending > MASK { Err(PhaseMisuse::Expected(pending)) } else { Ok(Fields { pending, ..self }) }
    }

    fn arrived(mut self, count: u64, how: u64) -> Result<Fields, PhaseMisuse> {
        if !(1..=self.pending).contains(&count) {
            return Err(PhaseMisuse::Arrivals { count, pending: self.pending });
        }
        self.pending -= count;
        if how & DROP != 0 {
            // What has arrived was expected: `expected` is no less than `pending` was.
            self.expected = self.expected.saturating_sub(count);
        }
        let over = self.pending == 0 && self.tx == 0;
        if over && how & NO_COMPLETE != 0 { Err(PhaseMisuse::Completes) } else { Ok(self.settled()) }
    }

    /// With the next phase begun if this one is over.
    fn settled(self) -> Fields {
        match self {
            Fields { pending: 0, tx: 0, expected, phase } => {
                Fields { pending: expected, phase: (phase + 1) & 3, ..self }
            }
            going_on => going_on,
        }
    }
}

/// The word that an operation leaves; `a` and `b` are its operands.
pub(crate) fn step(op: PhaseOp, word: u64, a: u64, b: u64) -> Result<u64, PhaseMisuse> {
    let there = || Fields::of(word).ok_or(PhaseMisuse::Absent);
    // No count of bytes in a register is near the range of 64 bits.
    let bytes = i64::try_from(a).unwrap_or(i64::MAX);
    let after = match op {
        PhaseOp::Begin if (1..=MASK).contains(&a) => Fields { expected: a, pending: a, tx: 0, phase: 0 },
        PhaseOp::Begin => return Err(PhaseMisuse::Expected(a)),
        PhaseOp::End => return there().map(|_| 0),
        PhaseOp::Arrive | PhaseOp::ArriveBehindCopies | PhaseOp::ArriveBehindProducts => there()?.arrived(a, b)?,
        PhaseOp::Await => there()?.with_more_pending(a)?,
        PhaseOp::Expect => there()?.awaiting(bytes)?,
        PhaseOp::Complete => there()?.awaiting(-bytes)?.settled(),
        PhaseOp::ArriveExpecting => there()?.awaiting(bytes)?.arrived(1, b)?,
    };
    Ok(after.word())
}

/// Arrivals that were pending in a state's phase.
pub(super) fn pending(state: u64) -> u32 {
    (state >> COUNT & MASK) as u32
}

/// The phase of a state is over.
pub(super) fn is_over(word: u64, state: u64) -> bool {
    word >> PHASE != state >> PHASE
}

/// The phase of this parity, the current one or that before it, is over.
pub(super) fn is_over_by_parity(word: u64, parity: u32) -> bool {
    (word >> PHASE) as u32 & 1 != parity & 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(count: u64) -> u64 {
        step(PhaseOp::Begin, 0, count, 0).unwrap()
    }

    fn arrived(word: u64, count: u64) -> u64 {
        step(PhaseOp::Arrive, word, count, 0).unwrap()
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival_and_the_next_expects_as_many() {
        let first = begun(3);
        let two = arrived(arrived(first, 1), 1);
        assert!(!is_over(two, first) && !is_over_by_parity(two, 0) && is_over_by_parity(two, 1));
        let second = arrived(two, 1);
        assert!(is_over(second, first) && is_over_by_parity(second, 0) && !is_over_by_parity(second, 1));
        assert!(!is_over(arrived(second, 2), second) && is_over(arrived(second, 3), second));
        assert_eq!((pending(first), pending(two), pending(second)), (3, 1, 3));
    }

    #[test]
    fn an_arrival_that_is_awaited_in_addition_changes_nothing_in_the_end() {
        let word = step(PhaseOp::Await, begun(1), 32, 0).unwrap();
        assert!(!is_over(arrived(word, 32), word) && is_over(arrived(word, 33), word));
    }

    #[test]
    fn a_phase_waits_for_its_bytes_whether_they_come_before_they_are_expected_or_after() {
        let both = |first: (PhaseOp, u64), second: (PhaseOp, u64)| {
            let word = begun(1);
            let between = step(first.0, word, first.1, 0).unwrap();
            assert!(!is_over(between, word), "{first:?}");
            is_over(step(second.0, between, second.1, 0).unwrap(), word)
        };
        let (expect, complete) = ((PhaseOp::ArriveExpecting, 128), (PhaseOp::Complete, 128));
        assert!(both(expect, complete) && both(complete, expect));
        assert!(!both((PhaseOp::ArriveExpecting, 128), (PhaseOp::Complete, 112)), "16 bytes are missing");
        // All arrivals, and bytes that were expected without one.
        let word = step(PhaseOp::Expect, begun(1), MASK, 0).unwrap();
        let arrived = arrived(word, 1);
        assert!(!is_over(arrived, word) && is_over(step(PhaseOp::Complete, arrived, MASK, 0).unwrap(), word));
    }

    #[test]
    fn what_drops_out_is_expected_in_this_phase_alone() {
        let word = begun(2);
        let dropped = step(PhaseOp::Arrive, word, 1, DROP).unwrap();
        let second = arrived(dropped, 1);
        assert!(!is_over(dropped, word) && is_over(second, word) && pending(second) == 1);
        assert!(is_over(arrived(second, 1), second));
    }

    #[test]
    fn phases_are_numbered_for_ever() {
        let phases: Vec<u64> = std::iter::successors(Some(begun(1)), |word| Some(arrived(*word, 1))).take(9).collect();
        assert!(phases.windows(2).all(|two| is_over(two[1], two[0]) && !is_over(two[1], two[1])));
        assert_eq!(phases[8], phases[0], "the number wraps around");
    }

    #[test]
    fn what_the_isa_leaves_undefined_is_told() {
        let misuse = |op, word, a, b| step(op, word, a, b).unwrap_err();
        assert_eq!(misuse(PhaseOp::Begin, 0, 0, 0), PhaseMisuse::Expected(0));
        assert_eq!(misuse(PhaseOp::Begin, 0, MASK + 1, 0), PhaseMisuse::Expected(MASK + 1));
        assert_eq!(misuse(PhaseOp::Arrive, 0, 1, 0), PhaseMisuse::Absent);
        assert_eq!(misuse(PhaseOp::End, 0, 0, 0), PhaseMisuse::Absent);
        let two = PhaseMisuse::Arrivals { count: 2, pending: 1 };
        assert_eq!(misuse(PhaseOp::Arrive, begun(1), 2, 0), two);
        assert_eq!(misuse(PhaseOp::Arrive, begun(1), 1, NO_COMPLETE), PhaseMisuse::Completes);
        assert_eq!(misuse(PhaseOp::Complete, begun(1), MASK + 1, 0), PhaseMisuse::Transactions(-(1 << COUNT)));
        assert_eq!(misuse(PhaseOp::Expect, begun(1), u64::MAX, 0), PhaseMisuse::Transactions(i64::MAX));
        assert_eq!(misuse(PhaseOp::Await, begun(MASK), 1, 0), PhaseMisuse::Expected(MASK + 1));
    }
}
