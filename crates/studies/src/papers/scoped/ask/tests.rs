//! Each ask on made-up numbers that meet it, that do not, and that are too few.

use super::*;
use crate::papers::Verdict::{Met, NotApplicable, NotMet};
use crate::papers::tests::pairs::{AskPair, pairs as paired};

fn curve(times: &[f64]) -> Curve {
    Curve(times.iter().enumerate().map(|(at, &time)| Point { mb: (at + 1) as f64, time }).collect())
}

fn verdicts(asks: &[Ask]) -> Vec<crate::papers::Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

pub(in crate::papers) fn pairs() -> Vec<AskPair> {
    // Workgroup, kernel, workgroup with the latencies of DRAM; both where nothing persists.
    let of_scopes = |wg: [f64; 3], kr: [f64; 3], fast: f64| {
        let dram = [curve(&[1.01; 3]), curve(&[1.05; 3])];
        scopes(&[curve(&wg), curve(&kr)], &curve(&[fast; 3]), &dram)
    };
    let (wg, kr) = ([1.08, 1.09, 1.10], [1.22, 1.25, 1.28]);
    let free = || of_scopes([1.0; 3], [1.04; 3], 1.0);
    let fig5 = [
        ("barriers only synchronise", "the overhead of wg is below", free()),
        ("a workgroup's barrier persists all that is dirty", "the overhead of wg is flat", of_scopes(kr, kr, 1.03)),
        ("a kernel's barrier persists its own warp's", "the overhead of kr rises", of_scopes(wg, [1.22; 3], 1.03)),
        ("persists cost nothing", "the overhead of wg is 3", free()),
        ("persists cost nothing", "the overhead of kr is 12", free()),
        ("ordering costs as much without the medium", "with the latencies of DRAM", of_scopes(wg, kr, 1.08)),
    ];
    let of_latencies = |times: [f64; 3]| latencies(&times.map(|time| curve(&[time])));
    let fig6 = [
        ("the write latency is no part of a persist", "the overhead of wg rises", of_latencies([1.1; 3])),
        ("every store waits for its write", "up to 500 ns", of_latencies([1.5, 2.0, 4.0])),
        ("each ns costs as much", "at 1000 ns", of_latencies([1.05, 1.10, 1.20])),
    ];
    let of_fifos = |times: [f64; 4]| [16, 256].map(|sfifo| fifos(&times.map(|time| curve(&[time])), sfifo)).concat();
    let [wide, deep] = [of_fifos([1.1, 1.2, 1.3, 1.4]), of_fifos([1.4, 1.3, 1.2, 1.1])];
    let fig7 = [
        ("a search takes longer of more entries", "larger FIFOs never cost time; S", wide.clone()),
        (
            "overflows are all that persists",
            "FIFOs of 256/1024 entries gain over 16/64, less than 3 points; S",
            deep.clone(),
        ),
    ];
    // Of the S-FIFOs of Table 2 the texts are the beginnings of the others.
    let of_table2 = |asks: &[Ask]| asks[..2].to_vec();
    let fig7_of_table2 = [
        ("a search takes longer of more entries", "larger FIFOs never", of_table2(&wide)),
        ("overflows are all that persists", "FIFOs of 256/1024", of_table2(&deep)),
    ];
    let good = of_fifos([1.2, 1.1, 1.1, 1.09]);
    let of_alternative = |wg: f64| {
        let [proposed, other] = [[1.10, 1.25], [wg, 1.25]].map(|both| both.map(|time| curve(&[time])));
        alternative(Some((&proposed, &other)), "")
    };
    let of_section_6 = [
        ("tags are searched at each store", "the alternative is", of_alternative(1.2)),
        ("every barrier waits for the medium", "waiting costs", of_alternative(1.01)),
    ];
    let of_levels = |values: &[f64]| ratios(&values.iter().map(|&value| (String::new(), value)).collect::<Vec<_>>());
    let level = [("levels are counted as one", "the ratio falls", of_levels(&[8.0, 8.0, 8.0]))];
    [
        paired("fig5", &of_scopes(wg, kr, 1.03), &fig5),
        paired("fig6", &of_latencies([1.08, 1.12, 1.3]), &fig6),
        paired("fig7", &good, &fig7),
        paired("fig7", &of_table2(&good), &fig7_of_table2),
        paired("alternative", &of_alternative(1.06), &of_section_6),
        paired("table3", &of_levels(&[57.4, 17.0, 3.6]), &level),
    ]
    .into_iter()
    .flatten()
    .chain(super::super::sbrp::tests::pairs())
    .collect()
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
    assert_eq!(at([1.1, 1.11, 1.12, 1.1]), [NotMet, Met]);
    assert_eq!(at([1.2, 1.1, 1.1, 1.1]), [Met, NotMet], "nothing is no gain");
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
