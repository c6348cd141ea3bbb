//! What may be asked of LightWSP's figures, as pure functions of their numbers.
//!
//! Orders and broad bands about what the paper's text says, of means over the kernels. "Clearly" is a
//! difference of a point. An ask about what was not run whole is not applicable. Nor is one whose cause never
//! arose in the runs: an order of queue sizes where no queue was full says nothing.

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

/// An ask about a share or a rate, if anything of it was counted.
pub(crate) fn rate(
    text: &'static str,
    rate: Option<f64>,
    words: impl Fn(f64) -> String,
    holds: impl Fn(f64) -> bool,
) -> Ask {
    Ask::about(text, rate, "nothing of it was counted", |rate| (holds(rate), words(rate)))
}

/// Figure 7.
pub(crate) fn defaults(bars: &Bars) -> Vec<Ask> {
    vec![bars.ask("the mean overhead is below 20 %", |overheads| overheads.iter().all(|overhead| *overhead < 0.20))]
}

/// Figure 11, from the smallest queue; so many stores waited for room in that.
pub(crate) fn queues(bars: &Bars, waited: u64) -> Vec<Ask> {
    let text = "of 64, 128 and 256 entries a larger WPQ never costs time";
    vec![bars.first(PAPER_WPQS.len()).ask_of(text, waited, "no store waited for room in a WPQ of 64", never_rises)]
}

/// Figure 12, thresholds of a quarter, a half, one, one and a half and two of the scheme's.
pub(crate) fn thresholds(bars: &Bars) -> Vec<Ask> {
    vec![bars.ask("the best threshold is neither the least nor the greatest", |overheads| {
        let best = least(overheads).map_or(0.0, |at| overheads[at]);
        [overheads.first(), overheads.last()].into_iter().flatten().all(|end| end - best > EQUAL)
    })]
}

/// Figure 13; so many lines were looked at for one that may leave.
pub(crate) fn victims(bars: &Bars, searched: u64) -> Vec<Ask> {
    let text = "the policies of victims differ by less than a point";
    vec![bars.ask_of(text, searched, "no dirty line had to leave", |overheads| {
        let ends = least(overheads).zip(greatest(overheads));
        ends.is_some_and(|(least, greatest)| overheads[greatest] - overheads[least] < POINT)
    })]
}

/// Table II.
pub(crate) fn conflicts(share: Option<f64>) -> Ask {
    rate(
        "fewer than 0.1 % of victims conflict",
        share,
        |share| format!("{:.4} %", share * 100.0),
        |share| share < 0.001,
    )
}

/// Figure 15, from the least bandwidth.
pub(crate) fn bandwidths(bars: &Bars) -> Vec<Ask> {
    vec![
        bars.ask("more bandwidth never costs time", never_rises),
        bars.ask("the least bandwidth is clearly the worst", |overheads| {
            overheads.iter().skip(1).all(|overhead| overheads[0] - overhead > POINT)
        }),
    ]
}

/// Figure 16, with a WPQ of 64 entries, from the fewest warps.
pub(crate) fn warps(bars: &Bars) -> Vec<Ask> {
    let apart = bars
        .values()
        .map_or(0, |overheads| overheads.windows(2).filter(|pair| (pair[1] - pair[0]).abs() > EQUAL).count() as u64);
    let text = "the overhead rises with the warps";
    vec![bars.ask_of(text, apart, "no kernel fills an SM's fewest warps", |overheads| {
        overheads.is_sorted_by(|fewer, more| fewer - more <= EQUAL) && overheads.last() > overheads.first()
    })]
}

/// Section V-F5: overflows by 10,000 instructions with 64 entries in the WPQ, and with 256 (published: 5.22
/// times fewer).
pub(crate) fn overflows(small: Option<f64>, large: Option<f64>) -> Ask {
    let text = "a WPQ of 256 entries overflows less than half as often as one of 64";
    if small == Some(0.0) && large.is_some() {
        return Ask::unjudged(text, "a WPQ of 64 never overflowed: these sizes say nothing about it");
    }
    Ask::about(text, small.zip(large), "nothing of it was counted", |(small, large)| {
        (large * 2.0 < small, format!("{small:.3} and {large:.3} per 10,000 instructions"))
    })
}

/// Figure 17, CXL-I, -II, -III and -PMEM.
pub(crate) fn memories(bars: &Bars) -> Vec<Ask> {
    vec![
        bars.ask("the overhead is below 30 % in front of each", |overheads| overheads.iter().all(|o| *o < 0.30)),
        bars.ask("CXL-III or CXL-PMEM is the worst", |overheads| greatest(overheads).is_some_and(|at| at >= 2)),
    ]
}

/// Figure 18.
pub(crate) fn hits(per_million: Option<f64>) -> Ask {
    let words = |rate: f64| format!("{rate:.3} per million instructions");
    rate("less than one load a million instructions hits in the WPQ", per_million, words, |rate| rate < 1.0)
}

/// Formula (1).
pub(crate) fn efficiency(share: Option<f64>) -> Ask {
    let words = |share: f64| format!("{:.3} %", share * 100.0);
    rate("the efficiency is at least 99 %", share, words, |share| share >= 0.99)
}

/// Regions: what could not be formed, or came out otherwise.
pub(crate) fn whole(faults: &[String]) -> Ask {
    let evidence = if faults.is_empty() { "all of them".to_owned() } else { faults.join("; ") };
    Ask::of("every kernel computes in regions what it computes as it is", faults.is_empty(), evidence)
}

#[cfg(test)]
mod tests;
