//! What figures show of an outcome by hand.

use super::*;
use durawarp_simulation::outcome::sample::sample;
use durawarp_simulation::outcome::validity::Caveat;
use durawarp_simulation::outcome::{Spread, Warning};

fn metric(name: &str) -> metrics::Metric {
    metrics::find(name).unwrap()
}

/// The parts and the whole, with values of three digits.
fn parts(shown: &Shown) -> (Vec<(String, String)>, f64) {
    match datum(&sample(), shown) {
        Datum::Parts(parts, whole) => {
            (parts.into_iter().map(|(name, value)| (name, format!("{value:.3}"))).collect(), whole)
        }
        other => panic!("{other:?}"),
    }
}

fn named<const N: usize>(parts: [(&str, &str); N]) -> Vec<(String, String)> {
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn metrics_are_values_or_parts_that_add_up() {
    assert_eq!(datum(&sample(), &Shown::Metric(metric("ipc"))), Datum::Value(2.5));
    let both = Shown::Metrics(vec![metric("boundaries.sum_ns"), metric("fences.sum_ns")]);
    let expected = named([("boundaries.sum_ns", "6012.000"), ("fences.sum_ns", "27000.000")]);
    assert_eq!(parts(&both), (expected, 33_012.0));
    let none = Outcome { persists: None, ..sample() };
    let of = |shown: &Shown| datum(&none, shown);
    assert_eq!(of(&Shown::Metric(metric("persists.p50_ns"))), Datum::None("has no `persists.p50_ns`".to_owned()));
    let with_none = Shown::Metrics(vec![metric("cycles"), metric("persists.p50_ns")]);
    assert_eq!(of(&with_none), Datum::None("has not all of these metrics".to_owned()));
}

#[test]
fn traffic_is_bytes_by_medium_and_way() {
    let expected = named([
        ("DRAM read", "1200000.000"),
        ("DRAM written", "228571.000"),
        ("NVM read", "300000.000"),
        ("NVM written", "57143.000"),
    ]);
    assert_eq!(parts(&Shown::Traffic), (expected, 1_785_714.0));
}

#[test]
fn stalls_are_shares_of_all_accounts_and_their_whole_is_the_time() {
    // The accounts add up to 493,000.
    let expected = named([
        ("issued", "0.053"),
        ("memory", "0.302"),
        ("execution", "0.122"),
        ("memory full", "0.071"),
        ("unit busy", "0.063"),
        ("not selected", "0.091"),
        ("barrier", "0.041"),
        ("fence", "0.085"),
        ("persist", "0.108"),
        ("draining", "0.065"),
    ]);
    assert_eq!(parts(&Shown::Stalls), (expected, 10_000.0));
}

#[test]
fn persists_are_the_mean_time_in_each_stage() {
    assert_eq!(parts(&Shown::Persists), (named([("lsu", "75.500"), ("media", "176.000")]), 251.5));
    let mut none = sample();
    none.persists.as_mut().unwrap().total.count = 0;
    assert_eq!(datum(&none, &Shown::Persists), Datum::None("has no persists".to_owned()));
}

#[test]
fn latencies_are_those_that_are_asked_for() {
    let mut outcome = sample();
    let kinds = [Latency::Persists, Latency::Fences, Latency::Boundaries];
    let of = |outcome: &Outcome| kinds.map(|kind| datum(outcome, &Shown::Latency(kind)));
    let Datum::None(why) = &of(&outcome)[0] else { panic!() };
    assert!(why.starts_with("was kept by a program that kept no distributions"), "{why}");
    let distributions = &mut outcome.persists.as_mut().unwrap().distributions;
    (distributions.total, distributions.fences) = (vec![(7.5, 3), (9.0, 4)], vec![(11.5, 5)]);
    distributions.boundaries = vec![(13.0, 6)];
    let steps = [vec![(7.5, 3), (9.0, 4)], vec![(11.5, 5)], vec![(13.0, 6)]];
    assert_eq!(of(&outcome), steps.clone().map(Datum::Steps));
    let whys = ["has no persists", "has no waits at fences", "has no waits at boundaries"];
    for (nth, why) in whys.into_iter().enumerate() {
        let mut without = outcome.clone();
        let persists = without.persists.as_mut().unwrap();
        *[&mut persists.total, &mut persists.fences, &mut persists.boundaries][nth] = Spread::default();
        let mut expected = steps.clone().map(Datum::Steps);
        expected[nth] = Datum::None(why.to_owned());
        assert_eq!(of(&without), expected);
    }
}

#[test]
fn a_result_is_judged_by_its_facts() {
    let mut outcome = sample();
    let warning = |message: &str| Warning {
        message: message.to_owned(),
        kernel: String::new(),
        file: String::new(),
        line: 3,
        launch: 5,
    };
    outcome.warnings = vec![warning("odd")];
    let caveat = |kind, text: &str| Caveat { kind, text: text.to_owned() };
    outcome.validity = vec![caveat(Kind::Unsourced, "a list"), caveat(Kind::Cap, "full")];
    let facts = facts(&outcome);
    assert_eq!((facts.version.as_str(), facts.schema), ("1.2.3", durawarp_simulation::outcome::SCHEMA));
    assert_eq!((facts.digest.as_str(), facts.memory_digest.as_str(), facts.checked), ("d1", "d2", true));
    assert_eq!(
        (facts.warnings, facts.assumed),
        (vec!["odd".to_owned(), "full".to_owned()], vec!["nvm.banks".to_owned()])
    );
    let parameters: Vec<String> =
        facts.parameters.iter().map(|(key, (value, source))| format!("{key}={value} ({source})")).collect();
    let expected = [
        "controller.write_queue_entries=64 (a data sheet)",
        "machine=small (sweep file)",
        "nvm.banks=16 (chosen)",
        "params.MODE=fast (manifest or sweep file)",
        "params.N=64 (manifest or sweep file)",
        "profile=ci (sweep file)",
        "scheme=base (sweep file)",
        "seed= (sweep file)",
        "workload=nw (sweep file)",
    ];
    assert_eq!(parameters, expected);
    outcome.verification = None;
    assert!(!super::facts(&outcome).checked);
}
