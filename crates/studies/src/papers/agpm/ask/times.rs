//! Asks of Figures 3 and 7: normalised execution times.

use crate::papers::Ask;
use crate::papers::agpm::kernels::KERNELS;
use crate::papers::agpm::published::PUBLISHED;

const NT: &str = "nt-store";
const T: &str = "store+clwb";

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
    let mut asks = Vec::new();
    for (ty, temporal_wins, text) in [
        ("I", true, "store+clwb beats nt-store on at least 7 of the 9 kernels of type I"),
        ("II", false, "nt-store beats store+clwb on at least 7 of the 9 kernels of type II"),
    ] {
        let of_type = KERNELS.iter().filter(|kernel| PUBLISHED.text("table1", kernel.name, "type") == Some(ty));
        let pairs: Vec<(&str, f64, f64)> =
            of_type.filter_map(|k| Some((k.name, times.of(k.name, NT)?, times.of(k.name, T)?))).collect();
        if pairs.len() < 9 {
            asks.push(Ask::unjudged(text, format!("{} of them were run", pairs.len())));
            continue;
        }
        let right = |nt: f64, t: f64| if temporal_wins { nt > t } else { nt < t };
        let wrong: Vec<String> = pairs
            .iter()
            .filter(|(_, nt, t)| !right(*nt, *t))
            .map(|(name, nt, t)| format!("{name} (nt {nt:.3}, T {t:.3})"))
            .collect();
        let evidence = format!("{} of 9; otherwise: {}", 9 - wrong.len(), or_none(&wrong));
        asks.push(Ask::of(text, wrong.len() <= 2, evidence));
    }
    // After the asks about a type, those about single kernels and all: each finds for itself which runs it
    // lacks.
    asks.push(slower_than_base(times));
    asks.push(worst(times));
    let text = "SGEMM is within 10 % of base under nt-store";
    asks.push(Ask::about(text, times.of("SGEMM", NT), "it was not run", |time| {
        (time < 1.1, format!("{time:.3}, published 1.027"))
    }));
    let text = "the means of nt-store and store+clwb differ by less than 15 percentage points";
    asks.push(match (times.lacking(&[NT, T]), times.mean(NT), times.mean(T)) {
        (None, Some(nt), Some(t)) => {
            let evidence = format!("{:.2} points; published 4.96", (nt - t).abs() * 100.0);
            Ask::of(text, (nt - t).abs() < 0.15, evidence)
        }
        (why, ..) => Ask::unjudged(text, why.unwrap_or_default()),
    });
    asks
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn slower_than_base(times: &Times) -> Ask {
    let text = "no kernel is faster with undo logging than without";
    if times.times.iter().all(|(_, scheme, _)| scheme == "base") {
        return Ask::unjudged(text, "no scheme with undo logging was run");
    }
    let faster: Vec<String> = times
        .times
        .iter()
        .filter(|(_, scheme, time)| [NT, T].contains(&scheme.as_str()) && *time < 1.0)
        .map(|(kernel, scheme, time)| format!("{kernel} under {scheme} ({time:.4})"))
        .collect();
    Ask::of(text, faster.is_empty(), format!("faster: {}", or_none(&faster)))
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
    let holds = all.iter().take(5).any(|(_, name)| *name == "SAD1");
    Ask::of(text, holds, format!("SAD1 {sad:.3} (published 3.255); slowest: {}", first.join(", ")))
}

/// Asks of Figure 7.
pub(crate) fn every_scheme(times: &Times) -> Vec<Ask> {
    let mut asks = Vec::new();
    let mut ask = |text, schemes: &[&str], judge: &dyn Fn(&[f64]) -> (bool, String)| {
        let means: Option<Vec<f64>> = schemes.iter().map(|scheme| times.mean(scheme)).collect();
        asks.push(match (times.lacking(schemes), means) {
            (None, Some(means)) => {
                let (holds, evidence) = judge(&means);
                Ask::of(text, holds, evidence)
            }
            (why, _) => Ask::unjudged(text, why.unwrap_or_default()),
        });
    };
    let listed = |names: &[&str], means: &[f64]| {
        names.iter().zip(means).map(|(name, mean)| format!("{name} {mean:.4}")).collect::<Vec<_>>().join(", ")
    };
    let order = ["agpm", "themis", "bucl", T];
    ask("means: agpm < themis < bucl < store+clwb", &order, &|means| {
        (means.windows(2).all(|pair| pair[0] < pair[1]), listed(&order, means))
    });
    ask("means: pmem-spec within 10 % of nt-store", &["pmem-spec", NT], &|means| {
        ((means[0] / means[1] - 1.0).abs() <= 0.10, listed(&["pmem-spec", NT], means))
    });
    ask("means: agpm at most 1.05 times the mean of each kernel's best static way", &["agpm", NT, T], &|means| {
        let best = times.mean_best_static().unwrap_or(f64::NAN);
        (means[0] <= 1.05 * best, format!("agpm {:.4}, best static {best:.4}", means[0]))
    });
    // Kernel by kernel, as a mean would hide which of them it holds for.
    let text = "themis is slower than agpm on Backprop2, ATAX1, ATAX2, MVT1 and GESUMMV";
    let pairs: Vec<(f64, f64)> =
        STRONG.iter().filter_map(|k| Some((times.of(k, "themis")?, times.of(k, "agpm")?))).collect();
    asks.push(if pairs.len() < STRONG.len() {
        Ask::unjudged(text, format!("{} of them were run under both", pairs.len()))
    } else {
        let told = STRONG.iter().zip(&pairs).map(|(name, (t, a))| format!("{name} {t:.3} and {a:.3}"));
        Ask::of(text, pairs.iter().all(|(themis, agpm)| themis > agpm), told.collect::<Vec<_>>().join(", "))
    });
    asks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Verdict;

    /// Made-up times that have everything the paper tells; `change` spoils them.
    fn times(change: impl Fn(&str, &str, f64) -> f64) -> Times {
        let mut times = Times::default();
        for kernel in KERNELS {
            let (nt, t): (f64, f64) = match PUBLISHED.text("table1", kernel.name, "type") {
                Some("I") => (2.4, 1.8),
                Some("II") => (1.8, 2.2),
                _ => (2.0, 2.0),
            };
            let nt = match kernel.name {
                "SAD1" => 3.2,
                "SGEMM" => 1.03,
                _ => nt,
            };
            let all = [
                (NT, nt),
                (T, t),
                ("themis", 1.9),
                ("pmem-spec", nt * 1.01),
                ("bucl", 1.95),
                ("agpm", nt.min(t).min(1.8)),
            ];
            for (scheme, time) in all {
                times.add(kernel.name, scheme, change(kernel.name, scheme, time));
            }
        }
        times
    }

    fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
        asks.iter().map(|ask| ask.verdict).collect()
    }

    #[test]
    fn times_like_the_papers_meet_every_ask() {
        let times = times(|_, _, time| time);
        for ask in static_paths(&times).iter().chain(&every_scheme(&times)) {
            assert_eq!(ask.verdict, Verdict::Met, "{}: {}", ask.text, ask.evidence);
        }
    }

    #[test]
    fn each_ask_can_be_missed_by_itself() {
        let missed =
            |asks: Vec<Ask>| (0..asks.len()).filter(|&at| asks[at].verdict == Verdict::NotMet).collect::<Vec<_>>();
        // Three kernels of type I on the wrong side are one too many.
        let flipped = ["GRID1", "GRID2", "GEMM"];
        let swap = |many: usize| {
            times(move |k, s, time| match s {
                NT if flipped[..many].contains(&k) => 1.5,
                _ => time,
            })
        };
        assert_eq!(missed(static_paths(&swap(2))), [0usize; 0]);
        assert_eq!(missed(static_paths(&swap(3))), [0]);
        let faster = times(|k, s, time| if (k, s) == ("BFS", T) { 0.99 } else { time });
        assert_eq!(missed(static_paths(&faster)), [2]);
        assert_eq!(missed(static_paths(&times(|k, s, time| if (k, s) == ("SAD1", NT) { 1.9 } else { time }))), [3]);
        assert_eq!(missed(static_paths(&times(|k, s, time| if (k, s) == ("SGEMM", NT) { 1.2 } else { time }))), [4]);
        let far = times(|_, s, time| if s == NT { time + 0.5 } else { time });
        assert!(missed(static_paths(&far)).contains(&5));
        assert_eq!(missed(every_scheme(&times(|_, s, time| if s == "bucl" { 1.0 } else { time }))), [0]);
        assert_eq!(missed(every_scheme(&times(|_, s, time| if s == "pmem-spec" { time * 1.2 } else { time }))), [1]);
        let slow = times(|_, s, time| if s == "agpm" { time * 1.25 } else { time });
        assert_eq!(missed(every_scheme(&slow)), [0, 2, 3]);
        assert_eq!(
            missed(every_scheme(&times(|k, s, time| if (k, s) == ("MVT1", "themis") { 1.0 } else { time }))),
            [3]
        );
    }

    #[test]
    fn what_was_not_run_is_not_judged() {
        let mut few = Times::default();
        few.add("ATAX1", "base", 1.0);
        assert!(verdicts(&static_paths(&few)).iter().all(|verdict| *verdict == Verdict::NotApplicable));
        few.add("ATAX1", NT, 1.2);
        few.add("ATAX1", T, 1.3);
        let met = static_paths(&few);
        assert_eq!(met.iter().filter(|ask| ask.verdict == Verdict::Met).count(), 1, "it is not faster than base");
        assert!(verdicts(&every_scheme(&few)).iter().all(|verdict| *verdict == Verdict::NotApplicable));
        assert_eq!(few.best_static("ATAX1"), Some(1.2));
    }
}
