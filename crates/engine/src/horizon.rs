//! How far every component may run without hearing from the others: pure arithmetic, no state.
//!
//! A *round* is a window `[from, bound)` of simulated time. No message sent inside it can arrive inside it at
//! another component, because `bound <= earliest event + W`, where `W` (the lookahead) is the least latency
//! of any link between two different components. So inside a round each component runs alone, in any order,
//! on any thread.
//!
//! ```text
//! ticks   0    8    16   24   32   40   48   56   64          slots of 2^3 ticks, W = 27
//!         |----|----|----|----|----|----|----|----|
//!              e        e   e    e          e                 pending events
//!              [from=8          bound=32)                     3 whole slots <= W, from the slot of the earliest event
//! ```
//! Windows are whole slots of the pending-event set: a round opens consecutive slots and splits none, unless
//! a limit or an epoch clips it. Slots are a power of two wide, and narrow enough that rounding `W` down
//! costs at most 1/32.
//!
//! Source: the bounded lag of conservative windows (Lubachevsky 1989; Nicol's YAWNS, 1993).
//!
//! Invariant: a window depends on the earliest event, the topology and the limits only, never on partitions
//! or threads. So one lookahead is global. Lookaheads of partition pairs, which would make windows (hence
//! counts of rounds) depend on the placement for a measured gain of 3 to 6 %, are deliberately absent.

use super::event::NEVER;
use super::time::Time;

/// The most slots that a round may span; also bounds the slots that the pending-event set keeps open at once.
const MAX_SLOTS_PER_WINDOW: u64 = 64;

/// Longer lookaheads are cut to this, so that an offset inside a window fits 32 bits.
const MAX_LOOKAHEAD: Time = 1 << 31;

/// The window of a topology without links between components: long, but short enough to notice stop flags.
const NO_LINKS_LOOKAHEAD: Time = 1 << 20;

/// The window arithmetic of one topology.
///
/// # Example: a window is whole slots from the earliest event's slot on
/// ```
/// use durawarp_engine::Horizon;
/// let horizon = Horizon::of_lookahead(Some(120));
/// assert_eq!((horizon.slot_ticks(), horizon.window_ticks()), (8, 120));
/// let round = horizon.window(1003, None);
/// assert_eq!((round.from, round.bound), (1000, 1120));
/// assert!(round.bound <= 1003 + 120); // nothing sent at or after 1003 can arrive inside
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    lookahead: Time,
    slot_shift: u32,
    slots_per_window: u64,
}

/// One round: events with `from <= time < bound` are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// No event is pending before.
    pub from: Time,
    /// The first instant that is not part of the round.
    pub bound: Time,
}

impl Horizon {
    /// The arithmetic of a topology whose shortest link between two components takes `lookahead` ticks;
    /// `None` without such a link.
    ///
    /// # Panics
    /// When the lookahead is 0: a topology refuses such links.
    pub fn of_lookahead(lookahead: Option<Time>) -> Horizon {
        assert_ne!(lookahead, Some(0), "a lookahead is at least one tick");
        let lookahead = lookahead.unwrap_or(NO_LINKS_LOOKAHEAD).min(MAX_LOOKAHEAD);
        let widest = lookahead.ilog2();
        let slot_shift = (0..=widest)
            .rev()
            .find(|&shift| {
                let slots = lookahead >> shift;
                // At least 8 slots a window: few to visit, enough for events to come nearly sorted.
                slots >= 8 && lookahead - (slots << shift) <= lookahead / 32
            })
            .unwrap_or(0);
        // With narrow slots forced by rounding (W = 127), a window still spans at most 64 of them.
        let slot_shift = slot_shift.max((lookahead / MAX_SLOTS_PER_WINDOW).max(1).ilog2());
        Horizon { lookahead, slot_shift, slots_per_window: lookahead >> slot_shift }
    }

    /// The least latency between two components, in ticks.
    pub fn lookahead(self) -> Time {
        self.lookahead
    }

    /// The width of a slot, in ticks: a power of two.
    pub fn slot_ticks(self) -> Time {
        1 << self.slot_shift
    }

    /// The width of a window that nothing clips, in ticks.
    pub fn window_ticks(self) -> Time {
        self.slots_per_window << self.slot_shift
    }

    /// How many slots a window spans.
    pub(crate) fn slots_per_window(self) -> u64 {
        self.slots_per_window
    }

    /// The slot that a time falls in. Slots are numbered from 0 and never renumbered.
    #[inline]
    pub fn slot_of(self, time: Time) -> u64 {
        time >> self.slot_shift
    }

    /// The first instant of a slot.
    #[inline]
    pub fn slot_start(self, slot: u64) -> Time {
        slot << self.slot_shift
    }

    /// The earliest that anything can happen, when the first slot with anything pending begins at `start` and
    /// all before `reached` is done but for components that are behind. These are behind by whole slots, so a
    /// slot that begins before `reached` either is `reached`'s own, cut by a limit, or holds what is behind.
    #[inline]
    pub(crate) fn earliest(self, start: Time, reached: Time) -> Time {
        if self.slot_of(start) < self.slot_of(reached) { start } else { start.max(reached) }
    }

    /// The round that begins with the earliest pending event, handling nothing at or after `clip`.
    ///
    /// `earliest` may be a lower bound, as long as it is the same at every thread count; the start of the
    /// earliest event's slot serves.
    #[inline]
    pub fn window(self, earliest: Time, clip: Option<Time>) -> Window {
        let from = earliest >> self.slot_shift << self.slot_shift;
        let bound = from.saturating_add(self.window_ticks());
        Window { from, bound: clip.map_or(bound, |clip| bound.min(clip)) }
    }
}

impl Window {
    /// Whether nothing can be handled in it.
    pub fn is_empty(self) -> bool {
        self.bound <= self.from
    }
}

/// Where a round must end although its window is wider: after a time limit, and at the boundary of an epoch.
///
/// # Example: limits are inclusive, epochs end before their boundary
/// ```
/// use durawarp_engine::Clip;
/// let clip = Clip { time_limit: Some(2_500), epoch_ticks: Some(1_000) };
/// assert_eq!(clip.window_end(1_999), Some(2_000));
/// assert_eq!(clip.window_end(2_000), Some(2_501));
/// assert_eq!(clip.epoch_of(2_000), 2);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clip {
    /// Events after this time are not handled.
    pub time_limit: Option<Time>,
    /// No round spans a multiple of this.
    pub epoch_ticks: Option<Time>,
}

impl Clip {
    /// The first instant that a round that begins at `earliest` must not handle, if anything clips it.
    #[inline]
    pub fn window_end(self, earliest: Time) -> Option<Time> {
        let limit = self.time_limit.map(|limit| limit.saturating_add(1));
        let epoch = self.epoch_ticks.map(|ticks| (earliest / ticks).saturating_add(1).saturating_mul(ticks));
        match (limit, epoch) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }

    /// The epoch that a time falls in; 0 without epochs.
    pub fn epoch_of(self, time: Time) -> u64 {
        self.epoch_ticks.map_or(0, |ticks| time / ticks)
    }

    /// Whether a run must end when the earliest event is at `earliest`.
    pub fn is_over(self, earliest: Time) -> bool {
        earliest != NEVER && self.time_limit.is_some_and(|limit| earliest > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_sent_in_a_round_arrives_in_it(lookahead in 1u64..1 << 40, earliest in 0u64..1 << 50, sent in 0u64..1 << 40) {
            let horizon = Horizon::of_lookahead(Some(lookahead));
            let round = horizon.window(earliest, None);
            prop_assert!(round.from <= earliest);
            prop_assert!((earliest + sent).saturating_add(lookahead) >= round.bound);
        }

        #[test]
        fn every_round_makes_progress(lookahead in 1u64..1 << 40, earliest in 0u64..1 << 50) {
            let horizon = Horizon::of_lookahead(Some(lookahead));
            prop_assert!(horizon.window(earliest, None).bound > earliest);
        }

        #[test]
        fn rounding_to_slots_costs_little(lookahead in 1u64..1 << 31) {
            let horizon = Horizon::of_lookahead(Some(lookahead));
            prop_assert!(horizon.window_ticks() <= lookahead);
            prop_assert!(lookahead - horizon.window_ticks() <= lookahead / 32);
            prop_assert!(horizon.slots_per_window() < 2 * MAX_SLOTS_PER_WINDOW);
        }

        #[test]
        fn a_lower_bound_in_the_same_slot_gives_the_same_round(lookahead in 1u64..1 << 31, earliest in 0u64..1 << 50) {
            let horizon = Horizon::of_lookahead(Some(lookahead));
            let slot_start = horizon.slot_start(horizon.slot_of(earliest));
            prop_assert_eq!(horizon.window(earliest, None), horizon.window(slot_start, None));
        }

        #[test]
        fn a_clip_never_spans_an_epoch_and_keeps_the_limit(
            earliest in 0u64..1 << 40, limit in 0u64..1 << 40, epoch in 1u64..1 << 20,
        ) {
            let clip = Clip { time_limit: Some(limit), epoch_ticks: Some(epoch) };
            let end = clip.window_end(earliest).unwrap();
            prop_assert!(end <= limit + 1);
            prop_assert!(end <= earliest || clip.epoch_of(end - 1) == clip.epoch_of(earliest));
            prop_assert_eq!(clip.is_over(earliest), end <= earliest);
        }
    }

    #[test]
    fn common_latencies_lose_next_to_nothing_to_slots() {
        for (lookahead, window) in [(1, 1), (7, 7), (100, 100), (120, 120), (1000, 992), (1400, 1376)] {
            assert_eq!(Horizon::of_lookahead(Some(lookahead)).window_ticks(), window, "lookahead {lookahead}");
        }
    }

    #[test]
    fn windows_at_the_end_of_time_saturate() {
        let horizon = Horizon::of_lookahead(Some(100));
        assert_eq!(horizon.window(NEVER - 1, None).bound, NEVER);
        assert_eq!(Clip { time_limit: Some(NEVER), epoch_ticks: None }.window_end(5), Some(NEVER));
    }

    #[test]
    fn nobody_to_hear_from_is_a_long_window() {
        assert_eq!(Horizon::of_lookahead(None).window_ticks(), NO_LINKS_LOOKAHEAD);
    }
}
