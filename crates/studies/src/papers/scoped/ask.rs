//! What may be asked of the figures of scoped persist barriers, as pure functions of their numbers.
//!
//! The shapes that the paper's text tells: orders, slopes, and broad bands about its numbers. "Flat" is a
//! change of less than 3 points, "marginal" a gain of less than 3 points. An ask about sizes that were not
//! run is not applicable.

use super::runs::SFIFOS;
use crate::papers::Ask;

/// Points by which an overhead may change and be flat, and gain and be marginal.
const FEW: f64 = 0.03;
/// Rounding, where an order is asked that equal values meet.
const EQUAL: f64 = 1e-9;

/// A time at a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Megabytes of the tree.
    pub mb: f64,
    /// Over that of the baseline.
    pub time: f64,
}

/// Times by size, in the order of sizes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Curve(pub Vec<Point>);

impl Curve {
    /// The time at a size.
    pub(crate) fn at(&self, mb: f64) -> Option<f64> {
        self.0.iter().find(|point| point.mb == mb).map(|point| point.time)
    }

    fn overheads(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().map(|point| point.time - 1.0)
    }

    /// The least overhead.
    pub(crate) fn least(&self) -> Option<f64> {
        self.overheads().min_by(f64::total_cmp)
    }

    /// The greatest overhead.
    pub(crate) fn greatest(&self) -> Option<f64> {
        self.overheads().max_by(f64::total_cmp)
    }

    /// Points of overhead that a megabyte adds, by least squares; `None` of fewer than two sizes.
    pub(crate) fn slope(&self) -> Option<f64> {
        let n = self.0.len() as f64;
        let mean = |of: &dyn Fn(&Point) -> f64| self.0.iter().map(of).sum::<f64>() / n;
        let (mb, time) = (mean(&|p| p.mb), mean(&|p| p.time));
        let spread: f64 = self.0.iter().map(|p| (p.mb - mb).powi(2)).sum();
        let with: f64 = self.0.iter().map(|p| (p.mb - mb) * (p.time - time)).sum();
        (self.0.len() > 1).then(|| with / spread)
    }

    /// Sizes that both have: megabytes, this time and the other.
    fn beside<'c>(&'c self, other: &'c Curve) -> impl Iterator<Item = (f64, f64, f64)> + 'c {
        self.0.iter().filter_map(|point| Some((point.mb, point.time, other.at(point.mb)?)))
    }

    fn words(&self) -> String {
        let words = |point: &Point| format!("{:.2} MB {:+.1} %", point.mb, (point.time - 1.0) * 100.0);
        self.0.iter().map(words).collect::<Vec<_>>().join(", ")
    }
}

/// An ask that every size must meet, of curves that stand side by side: at each size their times.
fn at_every_size(text: &'static str, curves: &[&Curve], holds: impl Fn(&[f64]) -> bool) -> Ask {
    let sizes: Vec<(f64, Vec<f64>)> = match curves {
        [] => Vec::new(),
        [first, ..] => first
            .0
            .iter()
            .filter_map(|p| Some((p.mb, curves.iter().map(|c| c.at(p.mb)).collect::<Option<Vec<f64>>>()?)))
            .collect(),
    };
    if sizes.is_empty() {
        return Ask::unjudged(text, "nothing of it was run");
    }
    let good = sizes.iter().all(|(_, times)| holds(times));
    let told = |(mb, times): &(f64, Vec<f64>)| {
        let overheads: Vec<String> = times.iter().map(|time| format!("{:+.1} %", (time - 1.0) * 100.0)).collect();
        format!("{mb:.2} MB: {}", overheads.join(" against "))
    };
    Ask::of(text, good, sizes.iter().map(told).collect::<Vec<_>>().join("; "))
}

/// Figure 5, and its footnote: workgroup and kernel, the workgroup's with the latencies of DRAM, and both
/// where nothing persists.
pub(crate) fn scopes([wg, kr]: &[Curve; 2], fast: &Curve, in_dram: &[Curve; 2]) -> Vec<Ask> {
    let band = |text, curve: &Curve, low: f64, high: f64| {
        at_every_size(text, &[curve], |times| (low..=high).contains(&(times[0] - 1.0)))
    };
    // Claims about a slope need two sizes at least; those below hold at each size by itself.
    let two = "fewer than two sizes were run";
    let text = "the overhead of wg is flat: it changes by less than 3 points over the sizes";
    let flat = match (wg.0.len() > 1, wg.least(), wg.greatest()) {
        (true, Some(least), Some(greatest)) => {
            let evidence = format!("{:.1} points: {}", (greatest - least) * 100.0, wg.words());
            Ask::of(text, greatest - least < FEW, evidence)
        }
        _ => Ask::unjudged(text, two),
    };
    let text = "the overhead of kr rises with the size";
    let rises = Ask::about(text, kr.slope(), two, |slope| {
        (slope > 0.0, format!("{:+.2} points a MB: {}", slope * 100.0, kr.words()))
    });
    vec![
        // A kernel's barrier synchronises more, whatever persists: that alone must not meet the ask.
        at_every_size(
            "the overhead of wg is below that of kr at every size, by more than without persistence",
            &[wg, kr, &in_dram[0], &in_dram[1]],
            |times| times[1] - times[0] > (times[3] - times[2]).max(0.0) + EQUAL,
        ),
        flat,
        rises,
        band("the overhead of wg is 3 to 20 % at every size", wg, 0.03, 0.20),
        band("the overhead of kr is 12 to 45 % at every size", kr, 0.12, 0.45),
        at_every_size(
            "with the latencies of DRAM the overhead of wg is above 0, at most 4 %, at every size (footnote 5)",
            &[fast],
            |times| (EQUAL..=0.04 + EQUAL).contains(&(times[0] - 1.0)),
        ),
    ]
}

/// Figure 6: by write latency, each twice the one before.
pub(crate) fn latencies(curves: &[Curve; 3]) -> Vec<Ask> {
    let all: Vec<&Curve> = curves.iter().collect();
    vec![
        at_every_size("the overhead of wg rises with the write latency at every size", &all, |times| {
            times.is_sorted_by(|shorter, longer| shorter < longer)
        }),
        at_every_size(
            "up to 500 ns the overhead of wg is above 0, at most 20 %, at every size (7.2.2)",
            &all[..2],
            |times| times.iter().all(|time| (EQUAL..=0.20 + EQUAL).contains(&(time - 1.0))),
        ),
        // By the ns: of a straight line the last doubling is the greater step, too.
        at_every_size(
            "at 1000 ns it is significant: from 500 ns on a ns costs more than before at every size",
            &all,
            |times| (times[2] - times[1]) / 500.0 > (times[1] - times[0]) / 250.0 + EQUAL / 500.0,
        ),
    ]
}

/// Figure 7: by NVW-FIFOs from the smallest, of which the second are those of Table 2, with S-FIFOs of so
/// many entries.
pub(crate) fn fifos(curves: &[Curve; 4], sfifo: u32) -> Vec<Ask> {
    let all: Vec<&Curve> = curves.iter().collect();
    let [costs, gains] = if sfifo == SFIFOS[0] {
        ["larger FIFOs never cost time", "FIFOs of 256/1024 entries gain over 16/64, less than 3 points"]
    } else {
        [
            "larger FIFOs never cost time; S-FIFOs of 256",
            "FIFOs of 256/1024 entries gain over 16/64, less than 3 points; S-FIFOs of 256",
        ]
    };
    vec![
        at_every_size(costs, &all, |times| times.is_sorted_by(|smaller, larger| larger - smaller <= EQUAL)),
        // A gain: entries that cost time are judged above.
        at_every_size(gains, &[&curves[1], &curves[3]], |times| (EQUAL..FEW).contains(&(times[0] - times[1]))),
    ]
}

/// Section 6.1: proposed and alternative, each by scope; why it cannot be judged where there is none.
pub(crate) fn alternative(curves: Option<(&[Curve; 2], &[Curve; 2])>, why: &str) -> Vec<Ask> {
    type Holds = fn(f64, f64) -> bool;
    let asks: [(&'static str, Holds); 2] = [
        ("the alternative is not slower than the proposed implementation", |proposed, other| other - proposed <= EQUAL),
        ("waiting costs at most 5 points", |proposed, other| proposed - other <= 0.05 + EQUAL),
    ];
    let ask = |(text, holds): (&'static str, Holds)| {
        let Some((proposed, other)) = curves else { return Ask::unjudged(text, why) };
        let both = || proposed.iter().zip(other).flat_map(|(p, o)| p.beside(o));
        if both().next().is_none() {
            return Ask::unjudged(text, "nothing of it was run");
        }
        let told = |(mb, p, o): (f64, f64, f64)| format!("{mb:.2} MB: {:+.1} points", (o - p) * 100.0);
        let told: Vec<String> = both().map(told).collect();
        Ask::of(
            text,
            both().all(|(_, p, o)| holds(p, o)),
            format!("alternative less proposed, wg then kr: {}", told.join("; ")),
        )
    };
    asks.map(ask).to_vec()
}

/// Table 3: at each level below depth d, from the leaves, what a kernel's barrier persists over what a
/// workgroup's does.
pub(crate) fn ratios(ratios: &[(String, f64)]) -> Vec<Ask> {
    let told = || ratios.iter().map(|(level, ratio)| format!("{level} {ratio:.1}")).collect::<Vec<_>>().join(", ");
    let ask = |text, enough: bool, holds: bool| {
        if enough { Ask::of(text, holds, told()) } else { Ask::unjudged(text, "too few levels were counted") }
    };
    // That it is above 1, and at the leaves above 10, is the number of workgroups, which the program chooses.
    vec![ask(
        "the ratio falls from level to level towards the root",
        ratios.len() > 1,
        ratios.is_sorted_by(|(_, below), (_, above)| below > above),
    )]
}

#[cfg(test)]
pub(in crate::papers) mod tests;
