//! Each ask on made-up numbers that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict::{self, Met, NotApplicable, NotMet};

fn bars(overheads: &[f64]) -> Bars {
    Bars(overheads.iter().enumerate().map(|(at, &overhead)| (format!("bar {at}"), Some(overhead))).collect())
}

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

#[test]
fn what_is_not_whole_is_not_judged() {
    let mut some = bars(&[0.1, 0.2, 0.3, 0.4]);
    some.0[2].1 = None;
    for bars in [some, Bars::default()] {
        let with_events: [fn(&Bars) -> Vec<Ask>; 2] = [|bars| queues(bars, 1), |bars| victims(bars, 1)];
        for asks in [defaults, thresholds, bandwidths, warps, memories].into_iter().chain(with_events) {
            assert!(asks(&bars).iter().all(|ask| ask.verdict == NotApplicable), "{:?}", asks(&bars));
        }
    }
    for ask in
        [conflicts(None), hits(None), efficiency(None), overflows(None, Some(1.0)), overflows(Some(0.0), Some(0.0))]
    {
        assert_eq!(ask.verdict, NotApplicable, "{ask:?}");
    }
}

#[test]
fn figures_as_published_meet_every_ask_and_each_can_be_missed() {
    let check = |asks: fn(&Bars) -> Vec<Ask>, good: &[f64], bad: &[(&[f64], &[Verdict])]| {
        assert!(asks(&bars(good)).iter().all(|ask| ask.verdict == Met), "{:?}", asks(&bars(good)));
        for (overheads, expected) in bad {
            assert_eq!(verdicts(&asks(&bars(overheads))), *expected, "{overheads:?}");
        }
    };
    check(defaults, &[0.09], &[(&[0.21], &[NotMet])]);
    let of_queues = |bars: &Bars| queues(bars, 1);
    check(of_queues, &[0.09, 0.08, 0.08, 0.1], &[(&[0.09, 0.08, 0.081, 0.0], &[NotMet])]);
    check(
        thresholds,
        &[0.2, 0.12, 0.09, 0.1, 0.11],
        &[(&[0.05, 0.12, 0.09, 0.1, 0.11], &[NotMet]), (&[0.2, 0.12, 0.1, 0.09, 0.09], &[NotMet])],
    );
    check(|bars| victims(bars, 1), &[0.09, 0.091, 0.09], &[(&[0.09, 0.11, 0.09], &[NotMet])]);
    check(
        bandwidths,
        &[0.3, 0.12, 0.09],
        &[(&[0.125, 0.12, 0.09], &[Met, NotMet]), (&[0.3, 0.09, 0.12], &[NotMet, Met])],
    );
    check(warps, &[0.09, 0.1, 0.1, 0.2], &[(&[0.09, 0.2, 0.1, 0.3], &[NotMet]), (&[0.2, 0.1, 0.1, 0.1], &[NotMet])]);
    check(
        memories,
        &[0.05, 0.06, 0.10, 0.16],
        &[(&[0.05, 0.06, 0.1, 0.31], &[NotMet, Met]), (&[0.2, 0.06, 0.1, 0.1], &[Met, NotMet])],
    );
}

#[test]
fn rates_are_below_their_bounds_or_not() {
    assert_eq!([conflicts(Some(0.0005)).verdict, conflicts(Some(0.002)).verdict], [Met, NotMet]);
    assert_eq!([hits(Some(0.039)).verdict, hits(Some(1.5)).verdict], [Met, NotMet]);
    assert_eq!([efficiency(Some(0.999)).verdict, efficiency(Some(0.893)).verdict], [Met, NotMet]);
    assert_eq!([overflows(Some(1.9), Some(0.36)).verdict, overflows(Some(1.9), Some(1.0)).verdict], [Met, NotMet]);
    assert_eq!([whole(&[]).verdict, whole(&["atax: no".to_owned()]).verdict], [Met, NotMet]);
}

#[test]
fn what_never_arose_is_not_judged_and_said() {
    let same = bars(&[0.1, 0.1, 0.1, 0.1]);
    let [queue, victim, warp] = [queues(&same, 0), victims(&same, 0), warps(&same)].map(|mut asks| asks.remove(0));
    for (ask, why) in [
        (queue, "no store waited for room in a WPQ of 64"),
        (victim, "no dirty line had to leave"),
        (warp, "no kernel fills an SM's fewest warps"),
    ] {
        assert_eq!(ask.verdict, NotApplicable);
        assert!(ask.evidence.starts_with(&format!("{why}: these sizes say nothing")), "{}", ask.evidence);
    }
}
