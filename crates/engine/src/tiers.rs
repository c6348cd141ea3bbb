//! How far each *tier* of components may run in a round, when links of some directions are much longer than
//! others.
//!
//! ```text
//!            2516                       SMs may run to    least of  slices + 356,  SMs + 1008
//!   SMs ─────────────> slices           slices may run to least of  SMs + 2516,    slices + 2872
//!    ▲  <─────────────  │  ▲            (+ : the earliest pending event there, plus the shortest way from there)
//!    │        356     252  252
//!  504 504              ▼  │            a slice and its controller are fused: always in one partition, so the links
//!    ▼                controllers       between them bound nothing here; see "inner rounds" below
//!  command processor
//! ```
//! With one lookahead for all, every round is as narrow as the shortest link. Instead, a component of tier
//! `g` may run to the least of `next[h] + distance[h][g]` over all tiers `h`: nothing that is not pending yet
//! can arrive earlier. Rounds of a GPU become four times as long: fewer barriers, less imbalance in each, and
//! a component's state stays longer in the cache. A topology without tiers has one, and its windows are those
//! of [`Horizon`].
//!
//! *Promises*: the way from an SM to another by the command processor (1008) is a way in theory only, while
//! CTAs wait for room: who ends a CTA gets the next, and nobody else hears of it. While all components of the
//! *answering* tier promise so ([`answers_sender_only`](super::component::Component)), the way is two round
//! trips long (2016), and a component that sends there ends its round where the answer may arrive. It is
//! behind the rest of its tier then, and so is what is pending for it.
//!
//! | tick | why two round trips, and no tick more |
//! |---|---|
//! | t | SM A ends a CTA and tells the processor; A ends its round before t + 1008 |
//! | t + 504 | the processor answers A, and promises no more |
//! | t + 1008 | A starts the CTA, ends it at once, and tells the processor |
//! | t + 1512 | the processor tells SM B |
//! | t + 2016 | B hears of it: the first tick that a window from t must not have |
//!
//! The bound binds where it is a slot's start: of a GPU with slots of 32 ticks, 2017 would be cut to 2016.
//!
//! *Inner rounds*: fused components talk over links that are shorter than a window of their tier. Their
//! partition runs the window in steps of their own lookahead. As they are always in one partition, no other
//! component notices.
//!
//! Source: bounded lag with distances (Lubachevsky 1989); the null-message bound without null messages.
//! Invariants: windows depend on the earliest events by tier, the topology, promises and the limits only,
//! never on partitions or threads. In every round the tier of the earliest event makes progress.

use super::event::NEVER;
use super::horizon::{Horizon, Window};
use super::time::Time;

/// The most tiers a topology can have: their earliest events fit into a cache line with the rest of a
/// worker's report.
pub(crate) const MAX_TIERS: usize = 3;

/// A time for each tier.
pub(crate) type PerTier = [Time; MAX_TIERS];

/// No window is wider, so that an offset in it fits 32 bits.
const WIDEST: Time = 1 << 31;

/// The window of a tier without links to it: long, but short enough to notice stop flags.
const ALONE: Time = 1 << 20;

/// The window arithmetic of one topology.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiers {
    count: usize,
    /// The shortest way from a component of one tier to a component of another, or to another of the same;
    /// [`NEVER`] without one. Links between fused components do not count.
    distance: [PerTier; MAX_TIERS],
    /// Slots of the tier's pending-event set.
    slots: [Horizon; MAX_TIERS],
    /// Whether the tier has fused components that talk to each other: it runs its windows in steps of
    /// `slots`.
    inner: [bool; MAX_TIERS],
    /// The tier whose components may promise, and distances while they do.
    answering: Option<usize>,
    promised: [PerTier; MAX_TIERS],
}

/// The windows of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    /// By tier. Those of tiers that have nothing to do are empty, but their bounds hold all the same.
    pub(crate) of: [Window; MAX_TIERS],
    /// They rest on promises: who sends to the answering tier stops before the answer.
    pub(crate) promised: bool,
}

impl Tiers {
    /// `links` are all links between different components that are not fused: tiers of both ends, latency.
    /// `inner` is the least latency between fused components of each tier, `answering` the tier whose
    /// components may promise to answer senders only.
    pub(crate) fn new(
        count: usize,
        links: impl Iterator<Item = (usize, usize, Time)>,
        inner: PerTier,
        answering: Option<usize>,
    ) -> Tiers {
        let mut direct = [[NEVER; MAX_TIERS]; MAX_TIERS];
        for (from, to, latency) in links {
            direct[from][to] = direct[from][to].min(latency);
        }
        let distance = shortest(direct, |_| true);
        let (inner_latency, inner) = (inner, inner.map(|latency| latency != NEVER));
        let slots = std::array::from_fn(|tier| {
            let nearest = distance.iter().map(|of| of[tier]).min().unwrap_or(NEVER).min(inner_latency[tier]);
            Horizon::of_lookahead((nearest != NEVER).then_some(nearest))
        });
        let mut promised = distance;
        if let Some(answering) = answering {
            let around = shortest(direct, |via| via != answering);
            for tier in (0..MAX_TIERS).filter(|&tier| tier != answering && !inner[tier]) {
                // To another of the tier: around the answering tier, or by another tier that sends there and
                // was promised nothing, or after an answer.
                let by_others = (0..MAX_TIERS).filter(|&other| other != answering && other != tier);
                let by_others = by_others.map(|other| around[tier][other].saturating_add(distance[other][tier]));
                let answer = direct[tier][answering].saturating_add(direct[answering][tier]);
                let after = answer.saturating_add(distance[tier][tier]);
                promised[tier][tier] = by_others.fold(around[tier][tier].min(after), Time::min);
            }
        }
        Tiers { count, distance, slots, inner, answering, promised }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The slots of a tier's pending-event set.
    #[inline]
    pub(crate) fn slots(&self, tier: usize) -> Horizon {
        self.slots[tier]
    }

    /// The tier whose components may promise to answer senders only.
    pub(crate) fn answering(&self) -> Option<usize> {
        self.answering
    }

    /// How long after a message to the answering tier its answer may arrive in this tier, at least, with the
    /// message's way: none for tiers whose windows rest on no promise.
    pub(crate) fn answer_after(&self, tier: usize) -> Option<Time> {
        let answering = self.answering.filter(|&answering| answering != tier && !self.inner[tier])?;
        Some(self.distance[answering][tier])
    }

    /// The windows of all tiers when nothing is pending for them before `next`; `promise` says whether all
    /// components of the answering tier promise.
    #[inline]
    pub(crate) fn windows(&self, next: &PerTier, clip: Option<Time>, promise: bool) -> Windows {
        if self.count == 1 && !self.inner[0] {
            let mut of = [Window { from: NEVER, bound: NEVER }; MAX_TIERS];
            of[0] = self.slots[0].window(next[0], clip);
            return Windows { of, promised: false };
        }
        if promise && self.answering.is_some() {
            let of = self.windows_by(&self.promised, next, None);
            // Only whole slots are ever left behind: a round that a limit cuts rests on no promise.
            if clip.is_none_or(|clip| of.iter().take(self.count).all(|window| window.bound <= clip)) {
                return Windows { of, promised: true };
            }
        }
        Windows { of: self.windows_by(&self.distance, next, clip), promised: false }
    }

    #[inline]
    fn windows_by(&self, distances: &[PerTier; MAX_TIERS], next: &PerTier, clip: Option<Time>) -> [Window; MAX_TIERS] {
        let mut windows = [Window { from: NEVER, bound: NEVER }; MAX_TIERS];
        let least = next.iter().copied().min().unwrap_or(NEVER);
        for (tier, window) in windows.iter_mut().enumerate().take(self.count) {
            let mut bound = NEVER;
            for (from, distance) in distances.iter().enumerate().take(self.count) {
                bound = bound.min(next[from].saturating_add(distance[tier]));
            }
            if bound == NEVER {
                bound = next[tier].min(NEVER - ALONE) + ALONE;
            }
            let slots = self.slots[tier];
            bound = slots.slot_start(slots.slot_of(bound.min(least.saturating_add(WIDEST))));
            *window = Window { from: next[tier], bound: clip.map_or(bound, |clip| bound.min(clip)) };
        }
        windows
    }

    /// The next step of a tier's window, from the earliest of its pending events: all of it, or what fused
    /// components allow. `None` when nothing is left to do in it.
    #[inline]
    pub(crate) fn step(&self, tier: usize, earliest: Time, window: Window) -> Option<Window> {
        if earliest >= window.bound {
            return None;
        }
        Some(if self.inner[tier] {
            self.slots[tier].window(earliest, Some(window.bound))
        } else {
            Window { from: earliest, ..window }
        })
    }
}

/// The shortest ways between tiers, by those that `via` allows.
fn shortest(mut distance: [PerTier; MAX_TIERS], via: impl Fn(usize) -> bool) -> [PerTier; MAX_TIERS] {
    for via in (0..MAX_TIERS).filter(|&tier| via(tier)) {
        for from in 0..MAX_TIERS {
            for to in 0..MAX_TIERS {
                let way = distance[from][via].saturating_add(distance[via][to]);
                distance[from][to] = distance[from][to].min(way);
            }
        }
    }
    distance
}

/// The least of the times of all tiers.
#[inline]
pub(crate) fn least(times: &PerTier) -> Time {
    times.iter().copied().fold(NEVER, Time::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// SMs, slices fused with controllers, command processor.
    fn gpu() -> Tiers {
        let links = [(0, 1, 2516), (1, 0, 356), (0, 2, 504), (2, 0, 504), (2, 1, 2376), (1, 2, 216)];
        Tiers::new(3, links.into_iter(), [NEVER, 252, NEVER], Some(2))
    }

    #[test]
    fn ways_are_the_shortest_and_lead_somewhere_else() {
        let tiers = gpu();
        assert_eq!(tiers.distance[0], [1008, 2516, 504]);
        assert_eq!(tiers.distance[1], [356, 2592, 216]);
        assert_eq!(tiers.distance[2], [504, 2376, 1008]);
    }

    #[test]
    fn a_tier_runs_as_far_as_the_others_cannot_reach() {
        let windows = gpu().windows(&[10_000, 12_000, NEVER], None, false).of;
        assert_eq!(windows[0].bound, (10_000 + 1008) / 32 * 32, "another SM, by the command processor");
        assert_eq!(windows[1].bound, (10_000 + 2516) / 8 * 8, "an SM");
        assert_eq!(windows[2].bound / 8 * 8, 10_504, "an SM");
        let step = gpu().step(1, 12_003, windows[1]);
        assert_eq!(step, Some(Window { from: 12_000, bound: 12_248 }), "no further than a controller's reply");
        assert_eq!(gpu().step(1, 12_512, windows[1]), None);
    }

    #[test]
    fn while_the_command_processor_promises_sms_run_two_round_trips() {
        let tiers = gpu();
        let windows = tiers.windows(&[10_000, 13_000, NEVER], None, true);
        assert_eq!(windows.of[0].bound, (10_000 + 2016) / 32 * 32, "another SM, after an answer");
        assert!(windows.promised);
        let windows = tiers.windows(&[10_000, 10_500, NEVER], None, true);
        assert_eq!(windows.of[0].bound, (10_500 + 356) / 32 * 32, "a slice may reply as ever");
        let windows = tiers.windows(&[10_000, 13_000, 10_100], None, true);
        assert_eq!(windows.of[0].bound, (10_100 + 504) / 32 * 32, "what the command processor has to say already");
        assert_eq!(tiers.answer_after(0), Some(504));
        assert_eq!(tiers.answer_after(1), None, "slices run in steps");
    }

    #[test]
    fn a_limit_inside_a_promised_window_has_usual_ones() {
        let windows = |clip| gpu().windows(&[10_000, 13_000, NEVER], Some(clip), true);
        assert_eq!(windows(11_000), gpu().windows(&[10_000, 13_000, NEVER], Some(11_000), false));
        assert!(windows(20_000).promised);
    }

    #[test]
    fn without_tiers_windows_are_those_of_the_horizon() {
        let tiers = Tiers::new(1, [(0, 0, 120), (0, 0, 300)].into_iter(), [NEVER; MAX_TIERS], None);
        let next = [1003, NEVER, NEVER];
        assert_eq!(tiers.windows(&next, None, false).of[0], Horizon::of_lookahead(Some(120)).window(1003, None));
        assert_eq!(tiers.windows(&next, Some(1010), false).of[0].bound, 1010);
    }

    #[test]
    fn a_tier_that_nobody_reaches_runs_far_but_not_for_ever() {
        let tiers = Tiers::new(2, [(0, 1, 10)].into_iter(), [NEVER; MAX_TIERS], None);
        assert_eq!(tiers.windows(&[5, 7, NEVER], None, false).of[0].bound, ALONE);
        assert_eq!(
            tiers.windows(&[NEVER, 7, NEVER], None, false).of[1].bound,
            7 + ALONE,
            "nothing is left where it could come from"
        );
    }

    proptest! {
        #[test]
        fn nothing_arrives_in_a_window_and_somebody_moves(
            latencies in prop::collection::vec(1u64..5000, 9), next in prop::array::uniform3(0u64..100_000), apart: bool
        ) {
            let links = (0..9).map(|i| (i / 3, i % 3, latencies[i])).filter(|&(from, to, _)| !apart || from != to);
            let tiers = Tiers::new(3, links, [NEVER, 100, NEVER], None);
            let windows = tiers.windows(&next, None, false).of;
            for (from, to) in (0..9).map(|i| (i / 3, i % 3)) {
                if !apart || from != to {
                    prop_assert!(windows[to].bound <= next[from] + latencies[3 * from + to]);
                }
            }
            let first = (0..3).min_by_key(|&tier| next[tier]).unwrap();
            prop_assert!(windows[first].bound > next[first]);
        }
    }
}
