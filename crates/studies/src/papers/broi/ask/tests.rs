//! Verdicts at the ends of their bands.

use super::*;
use crate::papers::Verdict;

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

#[test]
fn shares_are_met_within_their_bands_and_not_without() {
    assert_eq!(verdicts(&motivation(Some(0.36), Some(0.006))), [Verdict::Met, Verdict::Met]);
    assert_eq!(verdicts(&motivation(Some(0.61), Some(0.03))), [Verdict::NotMet, Verdict::NotMet]);
    assert_eq!(verdicts(&motivation(Some(0.19), None)), [Verdict::NotMet, Verdict::NotApplicable]);
}

#[test]
fn a_mean_may_rise_though_a_program_loses_more_than_it_may() {
    let bars = |sps| [("hash", Some(1.2)), ("sps", sps)];
    let asked = |sps| verdicts(&memory(&bars(sps), Some(1.07)));
    assert_eq!(asked(Some(0.97)), [Verdict::Met, Verdict::Met]);
    assert_eq!(asked(Some(0.96)), [Verdict::Met, Verdict::NotMet]);
    assert_eq!(asked(None), [Verdict::NotApplicable; 2], "not all was run");
    assert_eq!(memory(&bars(Some(1.0)), Some(1.0))[0].verdict, Verdict::NotMet, "equal is no rise");
}

#[test]
fn operations_are_of_a_band_and_ssca2_is_the_highest_of_several() {
    let ratios = [("hash", Some(1.1)), ("ssca2", Some(1.0))];
    let asked = |mean, mops: &Bars| verdicts(&operations(&ratios, Some(mean), mops));
    let mops = |ssca2| [("hash", Some(2.0)), ("ssca2", Some(ssca2))];
    assert_eq!(asked(1.05, &mops(2.1)), [Verdict::Met, Verdict::Met]);
    assert_eq!(asked(1.04, &mops(1.9)), [Verdict::NotMet, Verdict::NotMet]);
    assert_eq!(asked(1.61, &[("hash", Some(2.0))]), [Verdict::NotMet, Verdict::NotApplicable]);
}

#[test]
fn throughput_may_fall_once_the_banks_are_busy() {
    let asked = |busy, last| {
        let points = [(2, Some([1.0, 0.5])), (4, Some([2.0, busy])), (8, last)];
        scaling(&points).verdict
    };
    assert_eq!(asked(0.5, Some([2.0, 0.6])), Verdict::Met, "equal is no fall");
    assert_eq!(asked(0.9, Some([1.9, 0.6])), Verdict::NotMet);
    assert_eq!(asked(0.91, Some([1.9, 0.6])), Verdict::Met);
    assert_eq!(asked(0.5, None), Verdict::NotApplicable);
}

#[test]
fn a_schedule_is_the_printed_one_or_both_are_told() {
    assert_eq!(exactly("it", "(2.1)", "(2.1)").evidence, "(2.1)");
    let other = exactly("it", "(3.1)", "(2.1)");
    assert_eq!((other.verdict, other.evidence.as_str()), (Verdict::NotMet, "(3.1); the paper has (2.1)"));
    let at = |epoch, broi| second_bank(Some(epoch), broi).verdict;
    assert_eq!([at(5, Some(2)), at(2, Some(2)), at(5, Some(3))], [Verdict::Met, Verdict::NotMet, Verdict::NotMet]);
    assert_eq!(at(5, None), Verdict::NotApplicable);
}

#[test]
fn the_hybrid_scenario_gains_as_much_and_has_more_throughput() {
    let gain = |hybrid| hybrid_gain(Some(1.1), hybrid).verdict;
    assert_eq!(
        [gain(Some(1.1)), gain(Some(1.09)), gain(None)],
        [Verdict::Met, Verdict::NotMet, Verdict::NotApplicable]
    );
    let throughput = |epoch, broi| hybrid_throughput([Some(1.0), Some(1.2)], [epoch, broi]).verdict;
    assert_eq!(throughput(Some(1.1), Some(1.3)), Verdict::Met);
    assert_eq!(throughput(Some(1.1), Some(1.2)), Verdict::NotMet, "equal is no more");
    assert_eq!(throughput(None, Some(1.3)), Verdict::NotApplicable);
}

#[test]
fn a_calibration_holds_within_a_twentieth() {
    let asked = |ratio, share| verdicts(&calibration(Some(ratio), Some(4.6), Some(share)));
    assert_eq!(asked(4.6 * 1.049, 0.91), [Verdict::Met, Verdict::Met]);
    assert_eq!(asked(4.6 * 0.949, 0.9), [Verdict::NotMet, Verdict::NotMet]);
    assert_eq!(verdicts(&calibration(None, Some(4.6), None)), [Verdict::NotApplicable; 2]);
}

#[test]
fn memcached_gains_least_of_five_mixes() {
    let bars = |tpcc, memcached| {
        [
            ("tpcc", Some(tpcc)),
            ("ycsb", Some(2.0)),
            ("ctree", Some(2.0)),
            ("hashmap", Some(2.0)),
            ("memcached", memcached),
        ]
    };
    let asked = |tpcc, memcached, mean| verdicts(&mixes(&bars(tpcc, memcached), mean));
    assert_eq!(asked(1.6, Some(1.5), Some(1.5)), [Verdict::Met; 3]);
    assert_eq!(asked(1.5, Some(1.5), Some(2.61)), [Verdict::NotMet; 3]);
    assert_eq!(asked(1.6, None, None), [Verdict::NotApplicable; 3]);
    assert_eq!(verdicts(&mixes(&[("tpcc", Some(2.0))], Some(2.0))), [Verdict::NotApplicable; 3], "one of five");
}

#[test]
fn a_gain_may_rise_up_to_512_bytes_only() {
    let asked = |last| verdicts(&elements(&[(256, Some(1.1)), (512, Some(1.3)), (1024, last)]));
    assert_eq!(asked(Some(1.3)), [Verdict::Met, Verdict::Met]);
    assert_eq!(asked(Some(1.31)), [Verdict::Met, Verdict::NotMet]);
    assert_eq!(asked(Some(1.0)), [Verdict::NotMet, Verdict::Met], "equal is no gain");
    assert_eq!(asked(None), [Verdict::NotApplicable; 2]);
}
