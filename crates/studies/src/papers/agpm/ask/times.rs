//! Asks of Figures 3 and 7: normalised execution times.

use crate::papers::Ask;
use crate::papers::agpm::kernels::KERNELS;
use crate::papers::agpm::published::PUBLISHED;

const NT: &str = "nt-store";
const T: &str = "store+clwb";

/// What the ways may differ by and be alike: Table I's `diff`, as a share of base's time.
pub(crate) const SAME: f64 = 0.05;

/// Rounding of a mean.
const EQUAL: f64 = 1e-9;

/// What AGPM gains at least of the others (abstract and section V-B), in points of normalised time: themis
/// less agpm as published. In points, since as shares of the others' times these are other numbers.
const LEAST_GAIN: f64 = 0.2437 - EQUAL;

/// Kernels whose log updates have too strong a locality (reason b), on which the paper sees Themis fall
/// behind.
const STRONG: [&str; 5] = ["Backprop2", "ATAX1", "ATAX2", "MVT1", "GESUMMV"];

/// Time over that under `base`, by kernel and scheme.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Times {
    times: Vec<(&'static str, String, f64)>,
}

impl Times {
    /// Adds a kernel's time under a scheme.
    pub(crate) fn add(&mut self, kernel: &'static str, scheme: &str, time: f64) {
        self.times.push((kernel, scheme.to_owned(), time));
    }

    /// A kernel's time under a scheme.
    pub(crate) fn of(&self, kernel: &str, scheme: &str) -> Option<f64> {
        self.times.iter().find(|(k, s, _)| *k == kernel && s == scheme).map(|(.., time)| *time)
    }

    /// The least of the two static ways: what a choice once and for all of a kernel could reach.
    pub(crate) fn best_static(&self, kernel: &str) -> Option<f64> {
        Some(self.of(kernel, NT)?.min(self.of(kernel, T)?))
    }

    /// Mean over the kernels that have one.
    pub(crate) fn mean(&self, scheme: &str) -> Option<f64> {
        mean(KERNELS.iter().filter_map(|kernel| self.of(kernel.name, scheme)))
    }

    /// Mean of the best static ways.
    pub(crate) fn mean_best_static(&self) -> Option<f64> {
        mean(KERNELS.iter().filter_map(|kernel| self.best_static(kernel.name)))
    }

    /// Kernels that have a time under every one of `schemes`.
    fn kernels_with(&self, schemes: &[&str]) -> usize {
        let whole = |kernel: &str| schemes.iter().all(|scheme| self.of(kernel, scheme).is_some());
        KERNELS.iter().filter(|kernel| whole(kernel.name)).count()
    }

    /// Why an ask about all kernels under `schemes` cannot be judged; `None` when it can.
    fn lacking(&self, schemes: &[&str]) -> Option<String> {
        let there = self.kernels_with(schemes);
        (there < KERNELS.len()).then(|| format!("{there} of {} kernels under {}", KERNELS.len(), schemes.join(", ")))
    }
}

/// Arithmetic mean, as the paper's averages are.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Asks of Figure 3.
pub(crate) fn static_paths(times: &Times) -> Vec<Ask> {
    // How many kernels of a type have it so, of how many, and the others: points by which nt-store is longer.
    let by_type = |ty, holds: &dyn Fn(f64) -> bool| {
        let of_type = KERNELS.iter().filter(|kernel| PUBLISHED.text("table1", kernel.name, "type") == Some(ty));
        let gaps = of_type.filter_map(|k| Some((k.name, times.of(k.name, NT)? - times.of(k.name, T)?)));
        let (right, wrong): (Vec<_>, Vec<_>) = gaps.partition(|(_, gap)| holds(*gap));
        let words = |(name, gap): &(&str, f64)| format!("{name} {:+.2}", gap * 100.0);
        let wrong: Vec<String> = wrong.iter().map(words).collect();
        (right.len(), right.len() + wrong.len(), or_none(&wrong))
    };
    let of_nine = |text, ty, holds: &dyn Fn(f64) -> bool| match by_type(ty, holds) {
        (right, 9, wrong) => Ask::of(
            text,
            right >= 7,
            format!("{right} of 9; otherwise, by how many points nt-store is longer: {wrong}"),
        ),
        (_, run, _) => Ask::unjudged(text, format!("{run} of them were run")),
    };
    // A machine on which nothing differs has all of type III right, and nothing else.
    let text =
        "the two differ by at most 5 points on at least 3 of the 4 kernels of type III, and by more on most others";
    let alike = match times.lacking(&[NT, T]) {
        Some(why) => Ask::unjudged(text, why),
        None => {
            let same = |gap: f64| gap.abs() <= SAME;
            let [(third, ..), (first, ..), (second, ..)] = ["III", "I", "II"].map(|ty| by_type(ty, &same));
            let evidence = format!("so close are {third} of 4, and {} of the 18 others", first + second);
            Ask::of(text, third >= 3 && first + second < 9, evidence)
        }
    };
    // After the asks about types, those about single kernels and all: each finds which runs it lacks.
    vec![
        of_nine(
            "store+clwb beats nt-store by more than 5 points on at least 7 of the 9 kernels of type I",
            "I",
            &|gap| gap > SAME,
        ),
        of_nine(
            "nt-store beats store+clwb by more than 5 points on at least 7 of the 9 kernels of type II",
            "II",
            &|gap| gap < -SAME,
        ),
        alike,
        slower_than_base(times),
        worst(times),
        apart(times),
        means_of_both(times),
    ]
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A log that costs nothing is none.
fn slower_than_base(times: &Times) -> Ask {
    let text = "every kernel is slower with undo logging than without";
    if times.times.iter().all(|(_, scheme, _)| scheme == "base") {
        return Ask::unjudged(text, "no scheme with undo logging was run");
    }
    let as_fast: Vec<String> = times
        .times
        .iter()
        .filter(|(_, scheme, time)| [NT, T].contains(&scheme.as_str()) && *time <= 1.0)
        .map(|(kernel, scheme, time)| format!("{kernel} under {scheme} ({time:.4})"))
        .collect();
    Ask::of(text, as_fast.is_empty(), format!("as fast or faster: {}", or_none(&as_fast)))
}

fn worst(times: &Times) -> Ask {
    let text = "SAD1 is among the five slowest under nt-store";
    if let Some(why) = times.lacking(&[NT]) {
        return Ask::unjudged(text, why);
    }
    let mut all: Vec<(f64, &str)> =
        KERNELS.iter().filter_map(|kernel| Some((times.of(kernel.name, NT)?, kernel.name))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let first: Vec<String> = all.iter().take(5).map(|(time, name)| format!("{name} {time:.3}")).collect();
    let sad = times.of("SAD1", NT).unwrap_or_default();
    // Of kernels that are all as slow none is among the slowest.
    let as_slow = all.iter().filter(|(time, name)| *name != "SAD1" && *time >= sad).count();
    Ask::of(text, as_slow < 5, format!("SAD1 {sad:.3} (published 3.255); slowest: {}", first.join(", ")))
}

/// Section III's first observation: the costs of logging differ, by these two.
fn apart(times: &Times) -> Ask {
    let text = "undo logging past the caches costs SGEMM less than 10 %, and SAD1 more than ten times as much";
    let both = times.of("SGEMM", NT).zip(times.of("SAD1", NT));
    Ask::about(text, both, "they were not both run", |(sgemm, sad)| {
        let holds = sgemm < 1.1 && sad - 1.0 > 10.0 * (sgemm - 1.0).max(0.0);
        (holds, format!("SGEMM {sgemm:.3}, SAD1 {sad:.3}; published 1.027 and 3.255"))
    })
}

fn means_of_both(times: &Times) -> Ask {
    let text = "the mean of store+clwb is below that of nt-store, by less than 15 points";
    match (times.lacking(&[NT, T]), times.mean(NT), times.mean(T)) {
        (None, Some(nt), Some(t)) => {
            Ask::of(text, (EQUAL..0.15).contains(&(nt - t)), format!("{:+.2} points; published 4.96", (nt - t) * 100.0))
        }
        (why, ..) => Ask::unjudged(text, why.unwrap_or_default()),
    }
}

/// Asks of Figure 7.
pub(crate) fn every_scheme(times: &Times) -> Vec<Ask> {
    let ask = |text, schemes: &[&str], judge: &dyn Fn(&[f64]) -> (bool, String)| {
        let means: Option<Vec<f64>> = schemes.iter().map(|scheme| times.mean(scheme)).collect();
        match (times.lacking(schemes), means) {
            (None, Some(means)) => {
                let (holds, evidence) = judge(&means);
                Ask::of(text, holds, evidence)
            }
            (why, _) => Ask::unjudged(text, why.unwrap_or_default()),
        }
    };
    let listed = |names: &[&str], means: &[f64]| {
        names.iter().zip(means).map(|(name, mean)| format!("{name} {mean:.4}")).collect::<Vec<_>>().join(", ")
    };
    let order = ["agpm", "themis", "bucl", T];
    let slowest = ["pmem-spec", NT, T, "themis", "bucl", "agpm"];
    let gains = ["agpm", NT, T, "themis", "pmem-spec", "bucl"];
    // Orders are strict: of schemes that are all as fast none is the slowest, and none gains.
    vec![
        ask("means: agpm < themis < bucl < store+clwb", &order, &|means| {
            (means.windows(2).all(|pair| pair[0] < pair[1]), listed(&order, means))
        }),
        ask("means: pmem-spec is the slowest, within 10 % of nt-store", &slowest, &|means| {
            let holds = means[1..].iter().all(|other| *other < means[0]) && means[0] <= 1.10 * means[1];
            (holds, listed(&slowest, means))
        }),
        ask("means: agpm is at least 24.37 points below each of the others", &gains, &|means| {
            let least = means[1..].iter().map(|other| other - means[0]).fold(f64::INFINITY, f64::min);
            (least >= LEAST_GAIN, format!("by {:.2} points at least; {}", least * 100.0, listed(&gains, means)))
        }),
        best_of_both(times),
        on_strong(times),
        bucl_first(times),
    ]
}

/// What the selector is for, where there is something to select.
fn best_of_both(times: &Times) -> Ask {
    let text = "means: agpm is below both static ways, and at most 1.05 times each kernel's better one";
    if let Some(why) = times.lacking(&["agpm", NT, T]) {
        return Ask::unjudged(text, why);
    }
    let [agpm, nt, t] = ["agpm", NT, T].map(|scheme| times.mean(scheme).unwrap_or(f64::NAN));
    let (best, fixed) = (times.mean_best_static().unwrap_or(f64::NAN), nt.min(t));
    let evidence = format!("agpm {agpm:.4}, the better way of each kernel {best:.4}, of all {fixed:.4}");
    if fixed - best <= SAME {
        return Ask::unjudged(text, format!("any selector is as good where both ways cost as much: {evidence}"));
    }
    Ask::of(text, agpm < fixed && agpm <= 1.05 * best, evidence)
}

/// Kernel by kernel, as a mean would hide which of them it holds for.
fn on_strong(times: &Times) -> Ask {
    let text = "themis is slower than agpm on Backprop2, ATAX1, ATAX2, MVT1 and GESUMMV";
    let pairs: Vec<(f64, f64)> =
        STRONG.iter().filter_map(|k| Some((times.of(k, "themis")?, times.of(k, "agpm")?))).collect();
    if pairs.len() < STRONG.len() {
        return Ask::unjudged(text, format!("{} of them were run under both", pairs.len()));
    }
    let told = STRONG.iter().zip(&pairs).map(|(name, (t, a))| format!("{name} {t:.3} and {a:.3}"));
    Ask::of(text, pairs.iter().all(|(themis, agpm)| themis > agpm), told.collect::<Vec<_>>().join(", "))
}

fn bucl_first(times: &Times) -> Ask {
    let text = "bucl is the fastest scheme on StreamTriad and SSSP1";
    let others = ["agpm", "themis", NT, T, "pmem-spec"];
    let of = |kernel| {
        let best = others.iter().map(|s| Some((times.of(kernel, s)?, *s))).collect::<Option<Vec<_>>>()?;
        Some((times.of(kernel, "bucl")?, best.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?))
    };
    let both = of("StreamTriad").zip(of("SSSP1"));
    Ask::about(text, both, "they were not run under every scheme", |(triad, sssp)| {
        let words = |(bucl, (next, scheme)): (f64, (f64, &str))| format!("bucl {bucl:.4}, {scheme} {next:.4}");
        let holds = [triad, sssp].iter().all(|(bucl, (next, _))| bucl < next);
        (holds, format!("StreamTriad: {}; SSSP1: {}", words(triad), words(sssp)))
    })
}

#[cfg(test)]
pub(super) mod tests;
