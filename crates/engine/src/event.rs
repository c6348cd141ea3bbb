//! Pending events, and their one total order.
//!
//! ```text
//! Tie, 64 bits:   | phase: 4 | origin component: 20 | origin's sequence number: 40 |
//! ```
//! Events of one component are handled in the order `(time, tie)`. The sender counts the sequence, so the
//! order says nothing about threads, partitions or the order of insertion. A wake-up carries the greatest
//! phase, hence follows every message of its instant.
//!
//! Invariant: no two pending messages of a run have the same tie.

use super::message::ComponentId;
use super::time::Time;

/// The time of an event that does not exist. No event can happen then.
pub(crate) const NEVER: Time = Time::MAX;

/// The greatest phase of a link; the next one is the wake-ups'.
pub const MAX_PHASE: u8 = 14;

/// The most components that a topology can have: 20 bits of the tie, less one for messages from outside.
pub const MAX_COMPONENTS: usize = (1 << 20) - 1;

/// The origin of messages that the caller of the engine posted.
pub(crate) const OUTSIDE: u32 = MAX_COMPONENTS as u32;

/// The first sequence number that does not fit.
pub(crate) const SEQUENCE_LIMIT: u64 = 1 << 40;

/// Orders events of the same instant at the same component.
///
/// # Example: the phase decides first, then the origin, then the sequence
/// ```
/// use durawarp_engine::{ComponentId, Tie};
/// let reply = Tie::new(0, ComponentId(7), 12);
/// let request = Tie::new(1, ComponentId(3), 5);
/// assert!(reply < request && request < Tie::WAKE);
/// assert_eq!((request.phase(), request.origin(), request.sequence()), (1, ComponentId(3), 5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tie(pub(crate) u64);

impl Tie {
    /// The tie of wake-ups: after all messages of the instant.
    pub const WAKE: Tie = Tie(15 << 60);

    /// Packs a tie.
    ///
    /// # Panics
    /// When a part does not fit: phase over 14, origin of 20 bits, sequence of 40 bits.
    pub fn new(phase: u8, origin: ComponentId, sequence: u64) -> Tie {
        assert!(phase <= MAX_PHASE, "phase {phase} is over {MAX_PHASE}");
        assert!(origin.0 <= OUTSIDE, "origin {origin} is over {OUTSIDE}");
        assert!(sequence < SEQUENCE_LIMIT, "a component sent more than {SEQUENCE_LIMIT} messages");
        Tie(u64::from(phase) << 60 | u64::from(origin.0) << 40 | sequence)
    }

    /// The phase of the link that it came over; 15 for a wake-up.
    pub fn phase(self) -> u8 {
        (self.0 >> 60) as u8
    }

    /// The component that sent it.
    pub fn origin(self) -> ComponentId {
        ComponentId((self.0 >> 40) as u32 & OUTSIDE)
    }

    /// How many messages its origin had sent before.
    pub fn sequence(self) -> u64 {
        self.0 & (SEQUENCE_LIMIT - 1)
    }
}

/// One message under way to a component of a partition.
#[derive(Debug, Clone)]
pub(crate) struct Event<M> {
    /// When it arrives.
    pub(crate) time: Time,
    /// Its place among the arrivals of that instant.
    pub(crate) tie: Tie,
    /// The component it goes to, as an index into its partition.
    pub(crate) to: u32,
    /// What it carries.
    pub(crate) message: M,
}

/// The key of something pending: sorted, moved and compared in place of the message itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) time: Time,
    pub(crate) tie: u64,
    /// Index of the component in its partition.
    pub(crate) to: u32,
    /// Where the message lies, or [`Key::WAKE`].
    pub(crate) payload: u32,
}

impl Key {
    /// The payload of a wake-up, which has none.
    pub(crate) const WAKE: u32 = u32::MAX;
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.tie, self.to, self.payload).cmp(&(other.time, other.tie, other.to, other.payload))
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_tie_do_not_overlap() {
        let tie = Tie::new(MAX_PHASE, ComponentId(OUTSIDE), SEQUENCE_LIMIT - 1);
        assert_eq!(tie.phase(), MAX_PHASE);
        assert_eq!(tie.origin(), ComponentId(OUTSIDE));
        assert_eq!(tie.sequence(), SEQUENCE_LIMIT - 1);
        assert!(tie < Tie::WAKE);
    }

    #[test]
    #[should_panic(expected = "sent more than")]
    fn a_sequence_that_does_not_fit_is_refused() {
        Tie::new(0, ComponentId(0), SEQUENCE_LIMIT);
    }
}
