//! What may be asked of LightWSP's figures, as pure functions of their numbers.
//!
//! Orders and broad bands about what the paper's text says, of means over the kernels. "Clearly" is a
//! difference of a point. An ask about what was not run whole is not applicable. Nor is one whose cause never
//! arose in the runs: an order of queue sizes where no queue was full says nothing. Events that never came
//! are judged where the published rate has some in as long a run. A band has two ends: a scheme that costs
//! nothing does nothing.

use std::ops::RangeInclusive;

use super::published::PUBLISHED;
use super::runs::PAPER_WPQS;
pub(crate) use crate::papers::Ask;

/// A hundredth.
const POINT: f64 = 0.01;
/// Rounding, where an order is asked that equal values meet.
const EQUAL: f64 = 1e-9;

/// Mean overheads by name, in the order of the figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bars(pub Vec<(String, Option<f64>)>);

impl Bars {
    /// The overheads; none where one is missing.
    pub(crate) fn values(&self) -> Option<Vec<f64>> {
        if self.0.is_empty() { None } else { self.0.iter().map(|(_, overhead)| *overhead).collect() }
    }

    fn words(&self) -> String {
        let words = |(name, overhead): &(String, Option<f64>)| match overhead {
            Some(overhead) => format!("{name}: {:+.2} %", overhead * 100.0),
            None => format!("{name}: not run"),
        };
        self.0.iter().map(words).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn ask(&self, text: &'static str, holds: impl Fn(&[f64]) -> bool) -> Ask {
        Ask::about(text, self.values(), "not all of it was run", |values| (holds(&values), self.words()))
    }

    /// An ask about an effect that so many events of the runs caused.
    fn ask_of(&self, text: &'static str, events: u64, none: &'static str, holds: impl Fn(&[f64]) -> bool) -> Ask {
        if events == 0 && self.values().is_some() {
            return Ask::unjudged(text, format!("{none}: these sizes say nothing about it; {}", self.words()));
        }
        self.ask(text, holds)
    }

    /// The first so many.
    fn first(&self, count: usize) -> Bars {
        Bars(self.0.iter().take(count).cloned().collect())
    }
}

/// None is above the one before it.
fn never_rises(values: &[f64]) -> bool {
    values.is_sorted_by(|before, after| after - before <= EQUAL)
}

/// The place of the least.
fn least(values: &[f64]) -> Option<usize> {
    (0..values.len()).min_by(|&a, &b| values[a].total_cmp(&values[b]))
}

/// The place of the greatest.
fn greatest(values: &[f64]) -> Option<usize> {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]))
}

/// Events that a rate is expected to have before their absence says anything: of 3 none is seen once in 20
/// times.
const ENOUGH: f64 = 3.0;

/// An ask about the rate of events that are rare, by how often they could have been. A run too short for the
/// published rate says nothing when it has none.
fn rare(
    text: &'static str,
    (events, by): (u64, u64),
    published: f64,
    band: RangeInclusive<f64>,
    words: impl Fn(f64) -> String,
) -> Ask {
    if by == 0 {
        return Ask::unjudged(text, "nothing of it was counted");
    }
    let expected = published * by as f64;
    if events == 0 && expected < ENOUGH {
        return Ask::unjudged(
            text,
            format!("none of {by}, of which the published rate has {expected:.2}: too few to say"),
        );
    }
    let rate = events as f64 / by as f64;
    Ask::of(text, band.contains(&rate), format!("{}; {events} of {by}", words(rate)))
}

/// Figure 7. Copies that cost nothing are none.
pub(crate) fn defaults(bars: &Bars) -> Vec<Ask> {
    vec![bars.ask("the mean overhead is 1 to 20 %", |overheads| {
        overheads.iter().all(|overhead| (POINT..=0.20).contains(overhead))
    })]
}

/// Figure 11, from the smallest queue; so many stores waited for room in that.
pub(crate) fn queues(bars: &Bars, waited: u64) -> Vec<Ask> {
    let text = "of 64, 128 and 256 entries a larger WPQ never costs time, and the largest is faster than the smallest";
    vec![bars.first(PAPER_WPQS.len()).ask_of(text, waited, "no store waited for room in a WPQ of 64", |overheads| {
        never_rises(overheads) && overheads[0] - overheads[overheads.len() - 1] > EQUAL
    })]
}

/// Figure 12, thresholds of a quarter, a half, one, one and a half and two of the scheme's.
pub(crate) fn thresholds(bars: &Bars) -> Vec<Ask> {
    vec![bars.ask("the scheme's own threshold is the best: smaller and larger ones cost time", |overheads| {
        let own = overheads.len() / 2;
        (0..overheads.len()).all(|at| at == own || overheads[at] - overheads[own] > EQUAL)
    })]
}

/// Figure 13; so many victims conflicted, without which there is nothing to choose.
pub(crate) fn victims(bars: &Bars, conflicts: u64) -> Vec<Ask> {
    let text = "the policies of victims differ by less than a point";
    vec![bars.ask_of(text, conflicts, "no victim conflicted", |overheads| {
        let ends = least(overheads).zip(greatest(overheads));
        ends.is_some_and(|(least, greatest)| overheads[greatest] - overheads[least] < POINT)
    })]
}

/// Table II and section V-F3: conflicts, and lines looked at.
pub(crate) fn conflicts(counted: (u64, u64)) -> Ask {
    let suites = PUBLISHED.all().filter(|row| row.quantity == "conflict rate").filter_map(|row| row.value.parse().ok());
    let suites: Vec<f64> = suites.collect();
    let published = suites.iter().sum::<f64>() / suites.len() as f64;
    let words = |share: f64| format!("{:.4} %", share * 100.0);
    rare("victims conflict, fewer than 0.01 % of them", counted, published, f64::MIN_POSITIVE..=0.0001, words)
}

/// Figure 15, from the least bandwidth.
pub(crate) fn bandwidths(bars: &Bars) -> Vec<Ask> {
    vec![
        bars.ask("each step of less bandwidth costs time", |overheads| {
            overheads.windows(2).all(|pair| pair[0] - pair[1] > EQUAL)
        }),
        bars.ask("the least bandwidth is clearly the worst", |overheads| {
            overheads.iter().skip(1).all(|overhead| overheads[0] - overhead > POINT)
        }),
    ]
}

/// Figure 16, with a WPQ of 64 entries, from the fewest warps; so many kernels take another time with these
/// under `base`.
pub(crate) fn warps(bars: &Bars, filled: u64) -> Vec<Ask> {
    let text = "the overhead rises with the warps";
    vec![bars.ask_of(text, filled, "no kernel fills an SM's fewest warps", |overheads| {
        overheads.is_sorted_by(|fewer, more| fewer - more <= EQUAL) && overheads.last() > overheads.first()
    })]
}

/// Section V-F5: overflows by 10,000 instructions with 64 entries in the WPQ, and with 256 (published: 1.9,
/// and 5.22 times fewer).
pub(crate) fn overflows(small: Option<f64>, large: Option<f64>) -> Vec<Ask> {
    let rate = "a WPQ of 64 overflows 0.19 to 19 times in 10,000 instructions";
    let fewer = "a WPQ of 256 entries overflows less than half as often as one of 64";
    let missing = "nothing of it was counted";
    let words = |small: f64| format!("{small:.3} per 10,000 instructions, published 1.9");
    let rate = Ask::about(rate, small, missing, |small| ((0.19..=19.0).contains(&small), words(small)));
    if small == Some(0.0) && large.is_some() {
        return vec![rate, Ask::unjudged(fewer, "a WPQ of 64 never overflowed: these sizes say nothing about it")];
    }
    let fewer = Ask::about(fewer, small.zip(large), missing, |(small, large)| {
        (large * 2.0 < small, format!("{small:.3} and {large:.3} per 10,000 instructions"))
    });
    vec![rate, fewer]
}

/// Figure 17, CXL-I, -II, -III and -PMEM: the paper's text names no order among them.
pub(crate) fn memories(bars: &Bars) -> Vec<Ask> {
    vec![bars.ask("the overhead is 1 to 16 % in front of each memory of Table III", |overheads| {
        overheads.iter().all(|overhead| (POINT..0.16).contains(overhead))
    })]
}

/// Figure 18: reads that hit, and instructions.
pub(crate) fn hits(counted: (u64, u64)) -> Ask {
    let published = PUBLISHED.number("fig18", "mean", "hits per million instructions").unwrap_or(f64::NAN) / 1e6;
    let words = |rate: f64| format!("{:.3} per million instructions", rate * 1e6);
    let text = "loads hit in the WPQ, 0.0039 to 0.39 times a million instructions";
    rare(text, counted, published, published / 10.0..=published * 10.0, words)
}

/// Formula (1): what was waited, and what persisting takes region by region, where nothing else is under way.
/// A T_p of the run would grow with the queues that are waited for.
pub(crate) fn efficiency((waited, persisting): (u64, u64)) -> Ask {
    let text = "the efficiency is at least 99 %";
    if waited == 0 || persisting == 0 {
        return Ask::unjudged(text, "nothing waited for room: any machine's efficiency is 100 % then");
    }
    let share = 1.0 - waited as f64 / persisting as f64;
    Ask::of(text, share >= 0.99, format!("{:.3} %", share * 100.0))
}

/// Section V-G3: instructions more as a share, instructions and stores of a region.
pub(crate) fn regions([more, instructions, stores]: [Option<f64>; 3]) -> Vec<Ask> {
    let band = |text, value: Option<f64>, [least, most]: [f64; 2]| {
        let judge = |value| ((least..=most).contains(&value), format!("{value:.2}"));
        Ask::about(text, value, "nothing of it was run", judge)
    };
    vec![
        band("regions have 20 to 200 instructions", instructions, [20.0, 200.0]),
        band("regions have 3 to 25 stores", stores, [3.0, 25.0]),
        band("2 to 30 % more instructions", more.map(|share| share * 100.0), [2.0, 30.0]),
    ]
}

/// Regions: what could not be formed, or came out otherwise.
pub(crate) fn whole(faults: &[String]) -> Ask {
    let evidence = if faults.is_empty() { "all of them".to_owned() } else { faults.join("; ") };
    Ask::of("every kernel computes in regions what it computes as it is", faults.is_empty(), evidence)
}

#[cfg(test)]
pub(in crate::papers) mod tests;
