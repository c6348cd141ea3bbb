//! Caveats of results: each is provoked by a run, or by counters that such a run would have; runs without its cause have
//! none.

use durawarp::outcome::validity::{self, Kind};
use durawarp::outcome::{End, Outcome};
use durawarp::persist::selection::Selection;
use durawarp::run::Experiment;

fn outcome(workload: &str, scheme: &str, set: &[&str], max_cycles: Option<u64>) -> Outcome {
    let recipe = Experiment::of(workload).scheme(scheme).profile("ci").changes(set);
    recipe.max_cycles(max_cycles).reference(false).run().unwrap()
}

/// The texts of a kind.
fn of(outcome: &Outcome, kind: Kind) -> Vec<String> {
    let all = validity::of(outcome);
    all.into_iter().filter(|caveat| caveat.kind == kind).map(|caveat| caveat.text).collect()
}

/// Sets a counter of the first component, 0 on the others.
#[track_caller]
fn put(outcome: &mut Outcome, kind: &str, name: &str, value: u64) {
    let table = outcome.counters.iter_mut().find(|table| table.kind == kind).unwrap();
    let column = table.names.iter().position(|own| own == name).unwrap_or_else(|| panic!("no counter {name}"));
    for (nth, row) in table.rows.iter_mut().enumerate() {
        row[column] = if nth == 0 { value } else { 0 };
    }
}

#[track_caller]
fn has(texts: &[String], part: &str) {
    assert!(texts.iter().any(|text| text.contains(part)), "no `{part}` in {texts:#?}");
}

#[test]
fn a_run_that_uses_what_it_configures_has_only_parameters_without_a_source() {
    for scheme in ["strict", "store+clwb", "themis"] {
        let outcome = outcome("atax", scheme, &[], None);
        assert_eq!(outcome.validity, validity::of(&outcome), "attached as they are computed");
        assert!(
            outcome.validity.iter().all(|caveat| caveat.kind == Kind::Unsourced),
            "{scheme}: {:?}",
            outcome.validity
        );
        assert_eq!(validity::words(&outcome), "unsourced");
    }
}

#[test]
fn parameters_without_a_source_are_one_caveat_and_only_those_that_had_a_part() {
    // vecadd writes to persistent memory, and all of it stays in the L2.
    let plain = outcome("vecadd", "base", &[], None);
    let texts = of(&plain, Kind::Unsourced);
    let [text] = &texts[..] else { panic!("{texts:?}") };
    assert!(text.contains("sm.lsu_entries") && text.contains("clock.l2_mhz"), "{text}");
    assert!(!text.contains("nvm.") && !text.contains("interval.shuffle"), "{text}");
    let count: usize = text.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(count, text.split(": ").nth(1).unwrap().split(", ").count());
    assert!(count < plain.assumptions().len());
    let texts = of(&outcome("atax", "strict", &[], None), Kind::Unsourced);
    assert!(texts[0].contains("nvm.banks"), "{texts:?}");
}

#[test]
fn what_was_configured_and_not_exercised_is_told() {
    let plain = outcome("vecadd", "base", &["nvm.banks=8", "l1.hit_cycles=90"], None);
    let texts = of(&plain, Kind::Unexercised);
    has(&texts, "nothing was read from it or written to it");
    has(&texts, "set, and without a part in the run: nvm.banks");
    assert!(!texts.iter().any(|text| text.contains("l1.hit_cycles")), "it had a part: {texts:?}");
    // As a program would without a buffer in persistent memory.
    for (scheme, told) in [("strict", true), ("base", false)] {
        let mut dram = outcome("vecadd", scheme, &[], None);
        for name in ["pm_store_accesses", "pm_write_backs", "pm_fences"] {
            put(&mut dram, "sm", name, 0);
        }
        let texts = of(&dram, Kind::Unexercised);
        assert_eq!(texts.iter().any(|text| text.contains("scheme `strict` had nothing to do")), told, "{texts:?}");
    }
    // Atomics persist too.
    assert_eq!(of(&outcome("histogram", "epoch-cta", &[], None), Kind::Unexercised), [""; 0]);
    let few = outcome("atax", "agpm", &["agpm.threshold_logs=1000000"], None);
    has(&of(&few, Kind::Unexercised), "scheme `agpm` never decided");
    let mut without = outcome("atax", "store+clwb", &[], None);
    put(&mut without, "sm", "pm_log_stores", 0);
    has(&of(&without, Kind::Unexercised), "keeps undo logs and the program updated none");
    put(&mut without, "sm", "pm_fences_ordered", 5);
    put(&mut without, "sm", "pm_held", 0);
    has(&of(&without, Kind::Unexercised), "never held an access");
}

#[test]
fn limits_that_were_hit_are_told() {
    let cut = outcome("vecadd", "base", &[], Some(3000));
    assert!(matches!(cut.end, End::Cut { .. }));
    has(
        &of(&cut, Kind::Cap),
        "cut: the cycle limit was reached after 3000 core cycles, and the result was not checked",
    );
    // A queue of two entries before slow cells is full whenever a write comes.
    let narrow =
        ["controller.write_queue_entries=2", "controller.drain_high_entries=2", "controller.drain_low_entries=1"];
    let narrow =
        [&narrow[..], &["nvm.write_mode=through", "nvm.cell_write_ns=20000", "controller.channels=1"]].concat();
    has(&of(&outcome("conv2d", "strict", &narrow, None), Kind::Cap), "of writes found theirs full");
    let mut busy = outcome("atax", "store+clwb", &[], None);
    assert_eq!(of(&busy, Kind::Cap), [""; 0]);
    let resident = busy.total("sm", "slots_resident");
    put(&mut busy, "sm", "slots_memory_full", resident - 1);
    has(&of(&busy, Kind::Cap), "load-store units: full");
    let requests = busy.total("l2", "reads") + busy.total("l2", "writes") + busy.total("l2", "atomics");
    put(&mut busy, "l2", "stalls", requests);
    has(&of(&busy, Kind::Cap), "L2: 100 % of requests waited");
    let loads = busy.total("sm", "l1_loads") + busy.total("sm", "l1_bypasses");
    put(&mut busy, "sm", "l1_stalls_past", loads);
    has(&of(&busy, Kind::Cap), "L1: 100 % of loads");
    let periods = vec![Default::default(); Selection::KEPT];
    let many = Selection { periods, complete: 20_000, ..Selection::default() };
    busy.scheme_report = Some(serde_json::to_value(many).unwrap());
    has(&of(&busy, Kind::Cap), "only the first 10000 periods were kept");
}

#[test]
fn counters_that_are_full_are_told() {
    let agpm = outcome("atax", "agpm", &[], None);
    let saturated: u64 = agpm.selection().unwrap().periods.iter().map(|period| period.saturated).sum();
    assert!(saturated > 0);
    has(&of(&agpm, Kind::Saturated), &format!("were full {saturated} times"));
    let mut other = outcome("atax", "store+clwb", &[], None);
    assert_eq!(of(&other, Kind::Saturated), [""; 0]);
    let degrees = ["degree_1", "degree_2", "degree_3_4", "degree_5_8", "degree_9_16"];
    let all: u64 = degrees.iter().map(|name| other.total("sm", name)).sum();
    put(&mut other, "sm", "degree_17_more", all + 1);
    has(&of(&other, Kind::Saturated), "open bucket");
    put(&mut other, "l2", "reads", u64::MAX);
    has(&of(&other, Kind::Saturated), "counter l2.reads is full");
}

#[test]
fn caveats_survive_being_written() {
    let outcome = outcome("vecadd", "base", &[], None);
    let text = serde_json::to_string(&outcome).unwrap();
    assert!(text.contains(r#"{"kind":"unexercised","text":"the machine has NVM"#));
    let again: Outcome = serde_json::from_str(&text).unwrap();
    assert_eq!(again.validity, outcome.validity);
}
