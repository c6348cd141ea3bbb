//! Each ask on made-up numbers that meet it, that do not, and that are too few.

use super::*;
use crate::papers::Verdict::{Met, NotApplicable, NotMet};

fn curve(times: &[f64]) -> Curve {
    Curve(times.iter().enumerate().map(|(at, &time)| Point { mb: (at + 1) as f64, time }).collect())
}

fn verdicts(asks: &[Ask]) -> Vec<crate::papers::Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

#[test]
fn figure_5_as_published_meets_every_ask_and_each_can_be_missed() {
    let (wg, kr, fast) = (curve(&[1.08, 1.09, 1.10]), curve(&[1.22, 1.25, 1.28]), curve(&[1.03, 1.03, 1.04]));
    let dram = [curve(&[1.01, 1.01, 1.01]), curve(&[1.05, 1.05, 1.05])];
    let of = |wg: &Curve, kr: &Curve, fast: &Curve| scopes(&[wg.clone(), kr.clone()], fast, &dram);
    assert_eq!(verdicts(&of(&wg, &kr, &fast)), [Met; 6]);
    let missed = |wg: &Curve, kr: &Curve, fast: &Curve| -> Vec<usize> {
        let all = of(wg, kr, fast);
        (0..all.len()).filter(|&at| all[at].verdict == NotMet).collect()
    };
    // A gap that synchronisation alone has: 4 points.
    assert_eq!(missed(&wg, &curve(&[1.12, 1.13, 1.14]), &fast), [0]);
    assert_eq!(missed(&curve(&[1.08, 1.26, 1.10]), &kr, &fast), [0, 1, 3]);
    assert_eq!(missed(&wg, &curve(&[1.28, 1.25, 1.22]), &fast), [2]);
    assert_eq!(missed(&wg, &curve(&[1.22, 1.25, 1.60]), &fast), [4]);
    assert_eq!(missed(&wg, &curve(&[1.11, 1.25, 1.28]), &fast), [0, 4]);
    assert_eq!(missed(&wg, &kr, &curve(&[1.03, 1.05, 1.04])), [5]);
}

#[test]
fn a_size_says_nothing_of_slopes_and_none_says_nothing() {
    let one = curve(&[1.1]);
    assert_eq!(
        verdicts(&scopes(&[one.clone(), curve(&[1.2])], &curve(&[1.01]), &[one.clone(), one.clone()])),
        [Met, NotApplicable, NotApplicable, Met, Met, Met]
    );
    let none = Curve::default();
    assert_eq!(verdicts(&scopes(&Default::default(), &none, &Default::default())), [NotApplicable; 6]);
    assert_eq!(verdicts(&latencies(&Default::default())), [NotApplicable; 3]);
    assert_eq!(verdicts(&fifos(&Default::default(), 16)), [NotApplicable; 2]);
    assert_eq!(verdicts(&ratios(&[])), [NotApplicable]);
}

#[test]
fn a_slope_is_that_of_the_line_through_the_sizes() {
    assert!((curve(&[1.0, 1.5, 2.0]).slope().unwrap() - 0.5).abs() < 1e-12);
    assert!(curve(&[1.3, 1.1, 1.2]).slope().unwrap() < 0.0);
}

#[test]
fn latencies_are_monotone_and_convex() {
    let at = |times: [f64; 3]| verdicts(&latencies(&times.map(|time| curve(&[time]))));
    assert_eq!(at([1.08, 1.12, 1.3]), [Met, Met, Met]);
    assert_eq!(at([1.1, 1.21, 1.5]), [Met, NotMet, Met]);
    // A straight line: each ns costs as much.
    assert_eq!(at([1.05, 1.10, 1.20]), [Met, Met, NotMet]);
    assert_eq!(at([1.2, 1.1, 1.4]), [NotMet, Met, Met]);
}

#[test]
fn fifos_gain_a_little_or_nothing() {
    let at = |times: [f64; 4]| verdicts(&fifos(&times.map(|time| curve(&[time, time])), 16));
    assert_eq!(at([1.2, 1.1, 1.1, 1.09]), [Met, Met]);
    assert_eq!(at([1.1, 1.1, 1.1, 1.11]), [NotMet, NotMet], "a loss is no marginal gain");
    assert_eq!(at([1.1, 1.1, 1.12, 1.1]), [NotMet, Met]);
    assert_eq!(at([1.2, 1.1, 1.09, 1.06]), [Met, NotMet]);
}

#[test]
fn the_alternative_is_judged_in_both_scopes() {
    let with = |wg: f64, kr: f64| {
        let other = [curve(&[wg]), curve(&[kr])];
        verdicts(&alternative(Some((&[curve(&[1.10]), curve(&[1.25])], &other)), ""))
    };
    assert_eq!(with(1.06, 1.25), [Met, Met]);
    assert_eq!(with(1.06, 1.26), [NotMet, Met]);
    assert_eq!(with(1.05, 1.20), [Met, Met]);
    assert_eq!(with(1.05, 1.19), [Met, NotMet]);
    let without = alternative(None, "there is none");
    assert_eq!((verdicts(&without), without[0].evidence.as_str()), (vec![NotApplicable; 2], "there is none"));
    let none = [Curve::default(), Curve::default()];
    assert_eq!(verdicts(&alternative(Some((&none, &none)), "")), [NotApplicable; 2]);
}

#[test]
fn ratios_fall_towards_the_root() {
    let of = |values: &[f64]| {
        let named: Vec<(String, f64)> = values.iter().map(|&value| ("level".to_owned(), value)).collect();
        verdicts(&ratios(&named))
    };
    assert_eq!(of(&[57.4, 17.0, 11.4, 8.6, 3.6]), [Met]);
    assert_eq!(of(&[57.4, 57.4, 3.6]), [NotMet]);
    assert_eq!(of(&[20.0]), [NotApplicable]);
}
