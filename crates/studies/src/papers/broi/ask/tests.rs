//! Each ask on made-up numbers that meet it, that do not, at the ends of their bands, and that are not whole.

use super::*;
use crate::papers::Verdict::{self, Met, NotApplicable, NotMet};
use crate::papers::tests::pairs::{AskPair, pairs as paired};

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

/// Values of the five programs or mixes, with names.
fn bars(names: [&'static str; 5], values: [f64; 5]) -> [(&'static str, Option<f64>); 5] {
    std::array::from_fn(|at| (names[at], Some(values[at])))
}

const PROGRAMS: [&str; 5] = super::super::runs::PROGRAMS;
const MIXES: [&str; 5] = ["tpcc", "ycsb", "ctree", "hashmap", "memcached"];

/// A machine whose controller knows nothing of banks: BROI is Epoch.
const NO_GAIN: [f64; 5] = [1.0; 5];

fn of_programs(ratios: [f64; 5], mean: f64, mops: [f64; 5]) -> Vec<Ask> {
    let mut asks = operations(&bars(PROGRAMS, ratios), Some(mean), &bars(PROGRAMS, mops));
    asks.extend(hybrid_gains(Some(mean), Some(mean), Some(mean)));
    asks
}

/// Memory throughput grows from 0.7 and 0.8 GB/s; half a row is opened for an access, beside clients `rows`.
fn of_memory(ratios: [f64; 5], mean: f64, gb_s: f64, rows: f64) -> Vec<Ask> {
    let more = [[Some(0.7), Some(0.8)], [Some(gb_s); 2]];
    let mut asks = vec![memory(&bars(PROGRAMS, ratios), Some(mean))];
    asks.extend(hybrid_gains(Some(mean), Some(mean), Some(mean)));
    asks.extend(hybrid_throughput(more, [[Some(0.5); 2], [Some(rows); 2]]));
    asks
}

fn of_mixes(gains: [f64; 5], mean: f64) -> Vec<Ask> {
    mixes(&bars(MIXES, gains), Some(mean))
}

fn of_sizes(gains: [f64; 3]) -> Vec<Ask> {
    elements(&[(512, Some(gains[0])), (1024, Some(gains[1])), (4096, Some(gains[2]))])
}

fn of_cores(mops: [f64; 4]) -> Vec<Ask> {
    let points: Vec<_> = [2, 4, 8, 16].into_iter().zip(mops.map(|mops| Some([mops, 0.5]))).collect();
    vec![scaling(&points)]
}

fn worked(epochs: &str, first: &str, ready: &str, second: usize) -> Vec<Ask> {
    vec![
        exactly("Epoch has the three epochs of section III", epochs, "as printed"),
        exactly("BROI's first Sch-SET is the one of section IV-D", first, "as printed"),
        exactly("the Ready-SET behind it is the one of section IV-D", ready, "as printed"),
        second_bank(Some(5), Some(second)),
    ]
}

pub(in crate::papers) fn pairs() -> Vec<AskPair> {
    let right = "as printed";
    let fig3 = [
        ("an epoch is one request of each thread", "Epoch has", worked("(1.1, 2.1, 3.1)", right, right, 2)),
        ("large sets go first", "BROI's first", worked(right, "(1.1, 1.2)", right, 2)),
        ("a set waits for its barrier", "the Ready-SET", worked(right, right, "(1.1, 1.2, 3.1)", 2)),
        ("banks are not looked at", "BROI brings", worked(right, right, right, 5)),
    ];
    let met = motivation(Some(0.36), Some(0.006));
    let of_conflicts = |stalled, conflicts| motivation(Some(stalled), Some(conflicts));
    let of_motivation = [
        ("every request has a bank to itself", "20 to 60 %", of_conflicts(0.0, 0.006)),
        ("a conflict is never found", "of hash's operations", of_conflicts(0.36, 0.0)),
        ("every lock is a conflict", "of hash's operations", of_conflicts(0.36, 0.2)),
    ];
    let flat = of_memory(NO_GAIN, 1.0, 0.7, 0.5);
    let fig9 = [
        ("banks are not looked at", "the mean memory", flat.clone()),
        ("banks are not looked at", "both scenarios", flat.clone()),
        ("banks are not looked at", "so do both where clients", flat.clone()),
        ("what clients write, the program does not", "memory throughput is larger", flat.clone()),
        ("clients write at random", "the hybrid scenario opens", flat),
    ];
    let flat = of_programs(NO_GAIN, 1.0, [2.0; 5]);
    let fig10 = [
        ("banks are not looked at", "the mean operational", flat.clone()),
        ("banks are not looked at", "each program gains", flat.clone()),
        ("programs do the same", "ssca2 has", flat.clone()),
        ("banks are not looked at", "both scenarios", flat.clone()),
        ("banks are not looked at", "so do both where clients", flat),
    ];
    let no_scaling = of_cores([2.0; 4]);
    let waits = of_mixes(NO_GAIN, 1.0);
    let fig12 = [
        ("each epoch waits under BSP too", "memcached gains least", waits.clone()),
        ("each epoch waits under BSP too", "tpcc, ycsb", waits.clone()),
        ("each epoch waits under BSP too", "memcached, of which", waits.clone()),
        ("each epoch waits under BSP too", "the mean gain", waits),
    ];
    let fig13 = [
        ("each epoch waits under BSP too", "BSP gains", of_sizes([1.0; 3])),
        ("bytes take no time on the network", "beyond 512 B", of_sizes([3.3; 3])),
    ];
    [
        paired("fig3", &worked(right, right, right, 2), &fig3),
        paired("motivation", &met, &of_motivation),
        paired("fig9", &of_memory([1.16; 5], 1.16, 1.0, 0.3), &fig9),
        paired("fig10", &of_programs([1.28; 5], 1.28, [1.0, 1.0, 2.0, 1.0, 4.0]), &fig10),
        paired("fig11", &of_cores([1.6, 2.1, 2.8, 3.4]), &[("cores share one queue", "each doubling", no_scaling)]),
        paired("fig12", &of_mixes([2.5, 2.5, 2.0, 2.0, 1.15], 1.93), &fig12),
        paired("fig13", &of_sizes([3.3, 3.0, 2.0]), &fig13),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn shares_are_met_within_their_bands_and_not_without() {
    assert_eq!(verdicts(&motivation(Some(0.36), Some(0.006))), [Met, Met]);
    assert_eq!(verdicts(&motivation(Some(0.61), Some(0.031))), [NotMet, NotMet]);
    assert_eq!(verdicts(&motivation(Some(0.19), None)), [NotMet, NotApplicable]);
    assert_eq!(verdicts(&motivation(None, Some(0.0005))), [NotApplicable, NotMet]);
}

#[test]
fn a_gain_is_of_a_band_and_of_every_program() {
    let ratios = |ssca2| [("hash", Some(1.1)), ("ssca2", ssca2)];
    let mops = [("hash", Some(2.0)), ("ssca2", Some(3.0))];
    let asked = |mean, ssca2| verdicts(&operations(&ratios(ssca2), Some(mean), &mops));
    assert_eq!(asked(1.05, Some(1.01)), [Met, Met, Met]);
    assert_eq!(asked(1.61, Some(1.0)), [NotMet, NotMet, Met], "equal is no gain");
    assert_eq!(asked(1.04, None), [NotApplicable, NotApplicable, Met], "not all was run");
    let of = |mops: &Bars| operations(&ratios(Some(1.1)), Some(1.1), mops)[2].verdict;
    assert_eq!(of(&[("hash", Some(2.0)), ("ssca2", Some(2.9))]), NotMet, "the highest, and not much");
    assert_eq!(of(&[("hash", Some(2.0))]), NotApplicable);
    assert_eq!(of(&[("ssca2", Some(2.9))]), NotApplicable, "one is no highest");
    assert_eq!(memory(&ratios(Some(1.0)), Some(1.028)).verdict, NotMet);
}

#[test]
fn throughput_may_fall_once_the_banks_are_busy() {
    let asked = |busy, last| {
        let points = [(2, Some([1.0, 0.5])), (4, Some([2.0, busy])), (8, last)];
        scaling(&points).verdict
    };
    assert_eq!([asked(0.5, Some([2.21, 0.6])), asked(0.5, Some([2.19, 0.6]))], [Met, NotMet]);
    assert_eq!([asked(0.9, Some([1.9, 0.6])), asked(0.91, Some([1.9, 0.6]))], [NotMet, Met]);
    assert_eq!(asked(0.5, None), NotApplicable);
}

#[test]
fn a_schedule_is_the_printed_one_or_both_are_told() {
    assert_eq!(exactly("it", "(2.1)", "(2.1)").evidence, "(2.1)");
    let other = exactly("it", "(3.1)", "(2.1)");
    assert_eq!((other.verdict, other.evidence.as_str()), (NotMet, "(3.1); the paper has (2.1)"));
    let at = |epoch, broi| second_bank(Some(epoch), broi).verdict;
    assert_eq!([at(5, Some(2)), at(2, Some(2)), at(5, Some(3))], [Met, NotMet, NotMet]);
    assert_eq!(at(5, None), NotApplicable);
}

#[test]
fn the_hybrid_scenario_gains_as_much_and_has_more_throughput() {
    let gain = |local, hybrid| hybrid_gains(Some(local), hybrid, None)[0].verdict;
    assert_eq!([gain(1.1, Some(1.1)), gain(1.1, Some(1.09)), gain(1.0, Some(1.2))], [Met, NotMet, NotMet]);
    assert_eq!(gain(1.1, None), NotApplicable);
    let apart = hybrid_gains(Some(1.1), Some(1.0), Some(1.2)).map(|ask| ask.verdict);
    assert_eq!(apart, [NotMet, Met], "clients that wait, and such as do not");
    let of = |hybrid: OfSchemes, rows| {
        verdicts(&hybrid_throughput([[Some(1.0), Some(1.2)], hybrid], [[Some(0.5); 2], rows]))
    };
    assert_eq!(of([Some(1.1), Some(1.3)], [Some(0.4); 2]), [Met, Met]);
    assert_eq!(of([Some(1.1), Some(1.2)], [Some(0.4), Some(0.5)]), [NotMet, NotMet], "equal is no more, and no less");
    assert_eq!(of([None, Some(1.3)], [Some(0.4), None]), [NotApplicable; 2]);
}

#[test]
fn memcached_gains_least_of_five_mixes() {
    let asked = |tpcc, memcached, mean| {
        let mut bars = bars(MIXES, [tpcc, 2.0, 2.0, 2.0, 0.0]);
        bars[4].1 = memcached;
        verdicts(&mixes(&bars, mean))
    };
    assert_eq!(asked(1.6, Some(1.4), Some(1.5)), [Met; 4]);
    assert_eq!(asked(1.5, Some(1.5), Some(2.61)), [NotMet; 4]);
    assert_eq!(asked(1.6, None, None), [NotApplicable; 4]);
    assert_eq!(verdicts(&mixes(&[("tpcc", Some(2.0))], Some(2.0))), [NotApplicable; 4], "one of five");
}

#[test]
fn a_gain_may_rise_up_to_512_bytes_only() {
    let asked = |last| verdicts(&elements(&[(256, Some(1.1)), (512, Some(1.3)), (1024, last)]));
    assert_eq!(asked(Some(1.29)), [Met, Met]);
    assert_eq!(asked(Some(1.3)), [Met, NotMet], "bandwidth binds");
    assert_eq!(asked(Some(1.0)), [NotMet, Met], "equal is no gain");
    assert_eq!(asked(None), [NotApplicable; 2]);
}
