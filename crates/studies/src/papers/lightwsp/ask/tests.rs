//! Each ask on made-up numbers that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict::{self, Met, NotApplicable, NotMet};
use crate::papers::tests::pairs::{AskPair, pairs as paired};

fn bars(overheads: &[f64]) -> Bars {
    Bars(overheads.iter().enumerate().map(|(at, &overhead)| (format!("bar {at}"), Some(overhead))).collect())
}

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

/// What both papers of LightWSP ask of a figure, `good` first.
pub(in crate::papers) fn shared(figure: &'static str) -> Vec<AskPair> {
    let of = |good: Vec<Ask>, wrong: &[(&'static str, &str, Vec<Ask>)]| paired(figure, &good, wrong);
    // As many instructions as the published rate has 39 hits in.
    let many = 1_000_000_000;
    match figure {
        "fig7" => of(
            defaults(&bars(&[0.09])),
            &[
                ("copies cost nothing", "the mean overhead", defaults(&bars(&[0.0]))),
                ("each store waits for its controllers", "the mean overhead", defaults(&bars(&[1.5]))),
            ],
        ),
        "fig11" => {
            let wrong = queues(&bars(&[0.09, 0.09, 0.09]), 9);
            of(queues(&bars(&[0.09, 0.08, 0.07]), 9), &[("queues have one size whatever is said", "of 64,", wrong)])
        }
        "fig12" => {
            let flat = thresholds(&bars(&[0.09; 5]));
            let falling = thresholds(&bars(&[0.5, 0.4, 0.3, 0.2, 0.1]));
            of(
                thresholds(&bars(&[0.2, 0.12, 0.09, 0.1, 0.11])),
                &[
                    ("thresholds change nothing", "the scheme's own", flat),
                    ("checkpoints cost nothing", "the scheme's own", falling),
                ],
            )
        }
        "fig13" => {
            let wrong = victims(&bars(&[0.09, 0.12, 0.3]), 5);
            of(victims(&bars(&[0.09, 0.091, 0.09]), 5), &[("a policy waits for good", "the policies", wrong)])
        }
        "table2" => of(
            vec![conflicts((50, 10_000_000))],
            &[
                ("conflicts are never found", "victims conflict", vec![conflicts((0, 10_000_000))]),
                ("every tenth victim conflicts", "victims conflict", vec![conflicts((1_000, 10_000))]),
            ],
        ),
        "fig15" => of(
            bandwidths(&bars(&[0.3, 0.12, 0.09])),
            &[
                ("bandwidth changes nothing", "each step", bandwidths(&bars(&[0.09; 3]))),
                ("bandwidth hardly changes anything", "the least", bandwidths(&bars(&[0.092, 0.091, 0.09]))),
            ],
        ),
        "fig16" => of(
            overflows(Some(1.9), Some(0.36)),
            &[
                ("a full queue drops stores", "a WPQ of 64", overflows(Some(0.0), Some(0.0))),
                ("queues have one size whatever is said", "a WPQ of 256", overflows(Some(1.9), Some(1.9))),
            ],
        ),
        "fig17" => of(
            memories(&bars(&[0.05, 0.06, 0.10, 0.15])),
            &[
                ("copies cost nothing", "the overhead is", memories(&bars(&[0.0; 4]))),
                ("one memory binds", "the overhead is", memories(&bars(&[0.05, 0.06, 0.1, 0.161]))),
            ],
        ),
        "fig18" => of(
            vec![hits((39, many))],
            &[
                ("no load ever looks into the WPQ", "loads hit", vec![hits((0, many))]),
                ("lines come back as they leave", "loads hit", vec![hits((9_999, many))]),
            ],
        ),
        "efficiency" | "fig8" => {
            let wrong = vec![efficiency((107, 1_000))];
            of(vec![efficiency((1, 1_000))], &[("as PPA: each region's end waits", "the efficiency", wrong)])
        }
        "regions" | "g3" => of(
            regions([0.0703, 91.33, 11.29].map(Some)),
            &[
                ("a region ends at every loop", "regions have 20", regions([0.07, 9.0, 11.0].map(Some))),
                ("a region is a store", "regions have 3", regions([0.07, 91.0, 1.0].map(Some))),
                ("nothing is checkpointed", "2 to 30 %", regions([0.0, 91.0, 11.0].map(Some))),
            ],
        ),
        other => panic!("no pair of {other}"),
    }
}

/// Those of the port.
pub(in crate::papers) fn pairs() -> Vec<AskPair> {
    let figures = ["fig7", "fig11", "fig12", "fig13", "fig15", "fig16", "fig17", "fig18", "efficiency", "regions"];
    let flat = warps(&bars(&[0.1; 4]), 3);
    let of_warps = [("warps do not contend", "the overhead rises", flat)];
    let of_victims = [("conflicts are never found", "victims conflict", vec![conflicts((0, 10_000_000))])];
    let wrong = [("a region's copies are lost", "every kernel", vec![whole(&["atax: no".to_owned()])])];
    let own = [
        paired("fig13", &[conflicts((50, 10_000_000))], &of_victims),
        paired("fig16", &warps(&bars(&[0.09, 0.1, 0.1, 0.2]), 3), &of_warps),
        paired("regions", &[whole(&[])], &wrong),
    ];
    figures.into_iter().map(shared).chain(own).flatten().collect()
}

#[test]
fn what_is_not_whole_is_not_judged() {
    let mut some = bars(&[0.1, 0.2, 0.3, 0.4]);
    some.0[2].1 = None;
    for bars in [some, Bars::default()] {
        let with_events: [fn(&Bars) -> Vec<Ask>; 3] =
            [|bars| queues(bars, 1), |bars| victims(bars, 1), |bars| warps(bars, 1)];
        for asks in [defaults, thresholds, bandwidths, memories].into_iter().chain(with_events) {
            assert!(asks(&bars).iter().all(|ask| ask.verdict == NotApplicable), "{:?}", asks(&bars));
        }
    }
    for ask in [conflicts((0, 0)), hits((0, 0)), efficiency((0, 0)), efficiency((0, 9))] {
        assert_eq!(ask.verdict, NotApplicable, "{ask:?}");
    }
    assert_eq!(verdicts(&overflows(None, Some(1.0))), [NotApplicable; 2]);
    assert_eq!(verdicts(&overflows(Some(0.0), Some(0.0))), [NotMet, NotApplicable]);
    assert_eq!(verdicts(&regions([None; 3])), [NotApplicable; 3]);
}

#[test]
fn figures_as_published_meet_every_ask_and_each_can_be_missed() {
    let check = |asks: fn(&Bars) -> Vec<Ask>, good: &[f64], bad: &[(&[f64], &[Verdict])]| {
        assert!(asks(&bars(good)).iter().all(|ask| ask.verdict == Met), "{:?}", asks(&bars(good)));
        for (overheads, expected) in bad {
            assert_eq!(verdicts(&asks(&bars(overheads))), *expected, "{overheads:?}");
        }
    };
    check(defaults, &[0.20], &[(&[0.21], &[NotMet]), (&[0.009], &[NotMet])]);
    // Of a fourth queue nothing is asked.
    check(|bars| queues(bars, 1), &[0.09, 0.08, 0.08, 0.1], &[(&[0.09, 0.08, 0.081, 0.0], &[NotMet])]);
    check(
        thresholds,
        &[0.2, 0.12, 0.09, 0.1, 0.11],
        &[(&[0.05, 0.12, 0.09, 0.1, 0.11], &[NotMet]), (&[0.2, 0.12, 0.1, 0.1, 0.11], &[NotMet])],
    );
    check(|bars| victims(bars, 1), &[0.09, 0.091, 0.09], &[(&[0.09, 0.11, 0.09], &[NotMet])]);
    check(
        bandwidths,
        &[0.3, 0.12, 0.09],
        &[(&[0.125, 0.12, 0.09], &[Met, NotMet]), (&[0.3, 0.09, 0.12], &[NotMet, Met])],
    );
    let of_warps = |bars: &Bars| warps(bars, 1);
    check(of_warps, &[0.09, 0.1, 0.1, 0.2], &[(&[0.09, 0.2, 0.1, 0.3], &[NotMet]), (&[0.1, 0.1, 0.1, 0.1], &[NotMet])]);
    check(memories, &[0.01, 0.06, 0.10, 0.159], &[(&[0.05, 0.06, 0.1, 0.16], &[NotMet])]);
}

#[test]
fn events_that_never_came_are_judged_where_the_published_rate_has_some() {
    let of = |counted| hits(counted).verdict;
    // 0.039 a million: 3 in 77 millions.
    assert_eq!([of((0, 70_000_000)), of((0, 80_000_000))], [NotApplicable, NotMet]);
    assert_eq!([of((1, 3_000_000)), of((1, 2_000_000)), of((2, 147_577))], [Met, NotMet, NotMet]);
    assert!(hits((0, 1_000_000)).evidence.contains("of which the published rate has 0.04"));
    let of = |counted| conflicts(counted).verdict;
    assert_eq!([of((1, 10_000)), of((1, 9_999)), of((0, 9_999))], [Met, NotMet, NotApplicable]);
    assert_eq!([efficiency((1, 100)).verdict, efficiency((2, 100)).verdict], [Met, NotMet]);
    assert_eq!(verdicts(&overflows(Some(1.9), Some(1.0))), [Met, NotMet]);
    assert_eq!(verdicts(&overflows(Some(22.0), Some(0.9))), [NotMet, Met]);
}

#[test]
fn what_never_arose_is_not_judged_and_said() {
    let same = bars(&[0.1, 0.1, 0.1, 0.1]);
    let [queue, victim, warp] = [queues(&same, 0), victims(&same, 0), warps(&same, 0)].map(|mut asks| asks.remove(0));
    for (ask, why) in [
        (queue, "no store waited for room in a WPQ of 64"),
        (victim, "no victim conflicted"),
        (warp, "no kernel fills an SM's fewest warps"),
    ] {
        assert_eq!(ask.verdict, NotApplicable);
        assert!(ask.evidence.starts_with(&format!("{why}: these sizes say nothing")), "{}", ask.evidence);
    }
}
