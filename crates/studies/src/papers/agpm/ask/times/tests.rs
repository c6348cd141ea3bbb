//! Each ask of Figures 3 and 7 on made-up times that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict;
use crate::papers::tests::pairs::{AskPair, pairs as paired};

/// Made-up times that have everything the paper tells; `change` spoils them.
fn times(change: impl Fn(&str, &str, f64) -> f64) -> Times {
    let mut times = Times::default();
    for kernel in KERNELS {
        let (nt, t): (f64, f64) = match PUBLISHED.text("table1", kernel.name, "type") {
            Some("I") => (2.5, 1.8),
            Some("II") => (1.8, 2.3),
            _ => (2.0, 2.0),
        };
        let [nt, t] = match kernel.name {
            "SAD1" => [3.255, t],
            "SGEMM" => [1.027, t],
            _ => [nt, t],
        };
        let bucl = if ["StreamTriad", "SSSP1"].contains(&kernel.name) { 1.3 } else { 1.95 };
        let all = [(NT, nt), (T, t), ("themis", 1.7), ("pmem-spec", nt * 1.02), ("bucl", bucl), ("agpm", 1.4)];
        for (scheme, time) in all {
            times.add(kernel.name, scheme, change(kernel.name, scheme, time));
        }
    }
    times
}

/// With a scheme's time of a kernel, or of all where none is named.
fn with(kernel: &'static str, scheme: &'static str, time: f64) -> Times {
    times(move |k, s, own| if (kernel.is_empty() || k == kernel) && s == scheme { time } else { own })
}

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

pub(in crate::papers::agpm) fn pairs() -> Vec<AskPair> {
    let good = times(|_, _, time| time);
    // All schemes and ways cost as much.
    let alike = || times(|_, _, _| 1.6);
    let hair = || times(|_, s, _| if s == NT { 1.6 } else { 1.601 });
    let fig3 = [
        ("a hair's difference is always on the same side", "store+clwb beats", static_paths(&hair())),
        ("nt-store wins by a hair everywhere", "nt-store beats", static_paths(&hair())),
        ("the ways never differ", "the two differ by at most", static_paths(&alike())),
        ("a kernel's log costs nothing", "every kernel is slower", static_paths(&with("BFS", T, 1.0))),
        ("all kernels are as slow, SAD1 the first of them", "SAD1 is among", static_paths(&alike())),
        ("logging costs nothing anywhere", "undo logging past the caches", static_paths(&times(|_, _, _| 1.0))),
        ("the ways never differ", "the mean of store+clwb", static_paths(&alike())),
    ];
    let fig7 = [
        ("no scheme gains", "means: agpm < themis", every_scheme(&alike())),
        ("no scheme gains", "means: pmem-spec is", every_scheme(&alike())),
        ("agpm gains 20 points of themis", "means: agpm is at least", every_scheme(&with("", "agpm", 1.5))),
        ("the selector takes one way for all", "means: agpm is below", {
            let one_way = times(|_, s, time| if s == "agpm" { 2.05 } else { time });
            every_scheme(&one_way)
        }),
        ("themis and agpm are one scheme", "themis is slower", every_scheme(&with("", "themis", 1.4))),
        ("all are as fast", "bucl is the fastest", every_scheme(&alike())),
    ];
    [paired("fig3", &static_paths(&good), &fig3), paired("fig7", &every_scheme(&good), &fig7)]
        .into_iter()
        .flatten()
        .collect()
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
    let missed = |asks: Vec<Ask>| (0..asks.len()).filter(|&at| asks[at].verdict == Verdict::NotMet).collect::<Vec<_>>();
    // Three kernels of type I on the wrong side are one too many.
    let flipped = ["GRID1", "GRID2", "GEMM"];
    let swap = |many: usize| {
        times(move |k, s, time| match s {
            NT if flipped[..many].contains(&k) => 1.84,
            _ => time,
        })
    };
    assert_eq!(missed(static_paths(&swap(2))), [0usize; 0]);
    assert_eq!(missed(static_paths(&swap(3)))[..1], [0]);
    assert_eq!(missed(static_paths(&with("BFS", T, 0.99))), [3]);
    assert_eq!(missed(static_paths(&with("SAD1", NT, 2.5))), [4]);
    assert_eq!(missed(static_paths(&with("SGEMM", NT, 1.2))), [5]);
    let far = times(|_, s, time| if s == NT { time + 0.5 } else { time });
    assert!(missed(static_paths(&far)).contains(&6));
    // Two of type III apart.
    let apart = times(|k, s, time| if ["BFS", "SSSP1"].contains(&k) && s == NT { time + 0.06 } else { time });
    assert_eq!(missed(static_paths(&apart)), [2]);
    assert_eq!(missed(every_scheme(&with("", "bucl", 1.71))), [5]);
    assert_eq!(missed(every_scheme(&with("", "pmem-spec", 2.4))), [1], "the slowest, and too slow");
    assert_eq!(missed(every_scheme(&with("", "agpm", 1.457))), [2], "24.3 points below themis");
    assert_eq!(missed(every_scheme(&with("MVT1", "themis", 1.0))), [4]);
    assert_eq!(missed(every_scheme(&with("SSSP1", "bucl", 1.4))), [5], "as fast is not the fastest");
}

#[test]
fn a_selector_is_not_judged_where_there_is_nothing_to_select() {
    let of = |asks: Vec<Ask>| asks[3].verdict;
    let alike = times(|_, s, time| if [NT, T, "agpm"].contains(&s) { 1.8 } else { time });
    assert_eq!(of(every_scheme(&alike)), Verdict::NotApplicable);
    assert!(every_scheme(&alike)[3].evidence.starts_with("any selector is as good"));
    assert_eq!(of(every_scheme(&with("", "agpm", 2.0))), Verdict::NotMet, "as slow as one way for all");
}

#[test]
fn what_was_not_run_is_not_judged() {
    let mut few = Times::default();
    few.add("ATAX1", "base", 1.0);
    assert!(verdicts(&static_paths(&few)).iter().all(|verdict| *verdict == Verdict::NotApplicable));
    few.add("ATAX1", NT, 1.2);
    few.add("ATAX1", T, 1.3);
    let met = static_paths(&few);
    assert_eq!(met.iter().filter(|ask| ask.verdict == Verdict::Met).count(), 1, "it is slower than base");
    assert!(verdicts(&every_scheme(&few)).iter().all(|verdict| *verdict == Verdict::NotApplicable));
    assert_eq!(few.best_static("ATAX1"), Some(1.2));
}
