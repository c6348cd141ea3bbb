//! Each ask on made-up numbers that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict::{self, Met, NotApplicable, NotMet};

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

fn bars(overheads: &[f64]) -> Bars {
    Bars(overheads.iter().map(|&overhead| (String::new(), Some(overhead))).collect())
}

#[test]
fn systems_as_published_meet_every_ask_and_each_can_be_missed() {
    let of = |values: [f64; 4]| verdicts(&systems(values.map(Some)));
    assert_eq!(of([0.505, 0.081, 0.09, 0.2]), [Met; 4]);
    assert_eq!(of([0.18, 0.081, 0.09, 0.05]), [NotMet, Met, Met, Met], "twice is not more than twice");
    assert_eq!(of([0.505, 0.005, 0.09, 0.2]), [Met, NotMet, Met, Met]);
    assert_eq!(of([0.505, 0.19, 0.2, 0.2]), [Met, Met, NotMet, Met]);
    assert_eq!(of([0.5, 0.081, 0.09, 0.25]), [Met, Met, Met, NotMet]);
    let asks = systems([None, Some(0.081), Some(0.09), None]);
    assert_eq!(verdicts(&asks), [NotApplicable, Met, Met, NotApplicable]);
    assert_eq!(asks[3].evidence, "not run whole: Capri, Capri at 32 GB/s");
}

#[test]
fn who_hides_more_and_who_differs_by_how_much() {
    assert_eq!([hidden(Some(0.893), Some(0.999)).verdict, hidden(Some(0.9), Some(0.9)).verdict], [Met, NotMet]);
    let of = |cwsp| speculative(Some(cwsp), Some(0.085)).verdict;
    assert_eq!([of(0.057), of(0.144), of(0.146), of(0.02)], [Met, Met, NotMet, NotMet]);
    assert_eq!(speculative(None, Some(0.085)).verdict, NotApplicable);
}

#[test]
fn the_ideal_psp_is_judged_where_the_base_has_hits() {
    let programs = |qsim, lattice| [("qsim", qsim), ("lattice", lattice)];
    let of = |qsim, hits, psp| verdicts(&ideal(&programs(qsim, Some(0.4)), hits, [Some(psp), Some(0.03)]));
    assert_eq!(of(Some(1.6), 1, 0.512), [Met, Met]);
    assert_eq!(of(Some(0.4), 1, 0.03), [NotMet, NotMet]);
    assert_eq!(of(None, 1, 0.512), [Met, NotApplicable]);
    assert_eq!(of(Some(1.6), 0, 0.512), [NotApplicable; 2]);
    assert_eq!(verdicts(&ideal(&programs(Some(1.6), None), 1, [None, None])), [NotApplicable; 2]);
}

#[test]
fn overheads_rise_with_threads_and_stay_below_a_bound() {
    assert_eq!([threads(&bars(&[0.1, 0.2])).verdict, threads(&bars(&[0.1, 0.1])).verdict], [Met, NotMet]);
    assert_eq!([memories(&bars(&[0.29])).verdict, memories(&bars(&[0.1, 0.3])).verdict], [Met, NotMet]);
}

#[test]
fn regions_are_in_bands() {
    let of = |values: [f64; 3]| verdicts(&regions(values.map(Some)));
    assert_eq!(of([0.0703, 91.33, 11.29]), [Met; 3]);
    assert_eq!(of([0.31, 19.9, 2.9]), [NotMet; 3]);
    assert_eq!(verdicts(&regions([None; 3])), [NotApplicable; 3]);
}

#[test]
fn no_run_is_above_its_bounds_and_serial_acks_are_hidden_or_not() {
    let of = |share| within_bounds(Some(("is (acked), serial ACKs".to_owned(), share))).verdict;
    assert_eq!([of(0.98), of(1.0), of(1.001), within_bounds(None).verdict], [Met, Met, NotMet, NotApplicable]);
    let of = |most| hidden_acks(&[("is", 0.8, 0.9), ("mg", 2.5, most)]);
    assert_eq!([of(2.5).verdict, of(0.29).verdict, hidden_acks(&[]).verdict], [Met, NotMet, NotApplicable]);
    assert_eq!(of(0.29).evidence, "instructions a cycle of a core at most: mg 0.29 of 2.50");
}
