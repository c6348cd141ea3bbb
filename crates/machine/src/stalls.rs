//! Where persists waited: the stages of their way, and how long warps and CTAs waited for durability.
//!
//! ```text
//!   issue ─lsu─> ─injection─> ─crossbar─> ─l2─> ─accept─> ─media─> durable ─ack─> the warp's SM
//! ```
//! A *persist* is a non-temporal store or a write-back of a line that a warp requests (not the host's writes,
//! not write-backs of whole L2s). Its request carries the times at which it passed ([`Passed`]) and brings
//! them back; the SM records them here when the acknowledgement is out of its ejection port. A constant delay
//! that lies on a link counts for the stage that it stands for: the L1's miss path for `injection`, the L2's
//! pipeline for `l2`, both ends of the link to the controller for `accept` and `ack`.
//!
//! Invariants: the stages of a persist add up to its total, to the tick; figures merge in any order. Not
//! kept: which persist waited, on which channel.

use durawarp_base::stats::Histogram;
use durawarp_checkpoint::value;
use durawarp_engine::Time;

use super::msg::Passed;

/// Number of stages.
pub const STAGE_COUNT: usize = 7;

/// Each stage's name in results, and what a persist waits for in it.
pub const STAGES: [(&str, &str); STAGE_COUNT] = [
    ("lsu", "in the load-store unit: earlier instructions, one line a cycle"),
    ("injection", "in the miss queue, for a credit of the slice, and through the injection port"),
    ("crossbar", "through the crossbar and the slice's ejection port"),
    ("l2", "in the slice's pipeline and input buffer, for a fill or a credit, until it was performed"),
    ("accept", "from there until the write-pending queue took all that it waits for"),
    ("media", "from there until it was durable: the media's write, where the domain asks for it"),
    ("ack", "the acknowledgement's way back"),
];

/// Constant delays on the link from an SM to a slice, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkParts {
    /// The L1's miss path.
    pub miss: Time,
    /// The L2's pipeline before its tags.
    pub pipeline: Time,
}

/// What persists waited for, in ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersistStalls {
    /// By stage, as in [`STAGES`].
    pub stages: [Histogram; STAGE_COUNT],
    /// From issue to acknowledgement.
    pub total: Histogram,
    /// Of warps, for their persists to be durable: at fences, and after stores that wait. 0 where nothing
    /// was under way.
    pub fences: Histogram,
    /// Of ends of CTAs and kernels, for the write-back of the L2.
    pub boundaries: Histogram,
}

value!(record PersistStalls { stages, total, fences, boundaries });

/// How long a persist was in each stage, whose acknowledgement came at `now`.
///
/// # Panics
/// When a place was passed before the one before it (where overflow is checked).
pub fn stages(passed: &Passed, parts: LinkParts, now: Time) -> [Time; STAGE_COUNT] {
    let p = passed;
    [
        p.left - p.issued,
        p.sent - p.left + parts.miss,
        p.reached - p.sent - parts.miss - parts.pipeline,
        p.served - p.reached + parts.pipeline,
        p.accepted - p.served,
        p.durable - p.accepted,
        now - p.durable,
    ]
}

impl PersistStalls {
    /// Records a persist whose acknowledgement came at `now`.
    pub(super) fn record(&mut self, passed: &Passed, parts: LinkParts, now: Time) {
        for (histogram, ticks) in self.stages.iter_mut().zip(stages(passed, parts, now)) {
            histogram.record(ticks);
        }
        self.total.record(now - passed.issued);
    }

    /// Takes in another's figures.
    pub fn add(&mut self, other: &PersistStalls) {
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.add(theirs);
        }
        self.total.add(&other.total);
        self.fences.add(&other.fences);
        self.boundaries.add(&other.boundaries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_stages_of_a_persist_add_up(steps in prop::array::uniform8(0u64..1 << 40), miss in 0u64..1000, pipeline in 0u64..1000) {
            let mut at = 0;
            let mut pass = |more: Time| { at += more; at };
            let passed = Passed {
                issued: pass(steps[0]),
                left: pass(steps[1]),
                sent: pass(steps[2]),
                reached: pass(steps[3] + miss + pipeline),
                served: pass(steps[4]),
                accepted: pass(steps[5]),
                durable: pass(steps[6]),
            };
            let now = pass(steps[7]);
            let found = stages(&passed, LinkParts { miss, pipeline }, now);
            prop_assert_eq!(found.iter().sum::<Time>(), now - passed.issued);
            prop_assert_eq!(found[2], steps[3]);
        }
    }
}
