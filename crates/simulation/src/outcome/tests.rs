//! What is derived of an outcome.

use super::sample::{sample, under};
use super::*;

#[test]
fn rates_are_of_the_whole_run() {
    let outcome = sample();
    assert_eq!((outcome.warp_instructions(), outcome.ipc()), (25_000, 2.5));
    assert_eq!((outcome.warp_instructions_per_s(), outcome.cycles_per_s()), (50_000.0, 20_000.0));
    // 7,142,857 ps.
    assert_eq!(format!("{:.0}", outcome.bytes_per_s(14_285_714)), "2000000000000");
    assert_eq!((outcome.total("l2", "reads"), outcome.table("memory_controller").rows.len()), (2_000, 3));
}

#[test]
fn nothing_is_divided_by_0() {
    let mut outcome = under("base", 0);
    outcome.host.wall_s = 0.0;
    assert_eq!([ratio(3, 0), ratio(3, 4), outcome.ipc(), Spread::default().mean_ns()], [0.0, 0.75, 0.0, 0.0]);
    assert_eq!((outcome.bytes_per_s(5), outcome.cycles_per_s()), (5e12, 0.0));
    assert!(outcome.warp_instructions_per_s().is_finite());
}

#[test]
fn a_parameter_without_a_source_of_its_own_is_an_assumption() {
    let mut outcome = sample();
    let parameter = |source: &str| Parameter { value: 1.into(), source: source.to_owned() };
    let sources = [
        ("a", "chosen: no source"),
        ("b", "user: --set"),
        ("c", "machine file without a source"),
        ("d", "a data sheet, page 3"),
        ("e", "the user's guide"),
    ];
    outcome.machine.parameters = sources.map(|(key, source)| (key.to_owned(), parameter(source))).into();
    outcome.scheme_parameters = [("f".to_owned(), parameter("scheme file without a source"))].into();
    let keys: Vec<&str> = outcome.assumptions().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["a", "b", "c", "f"]);
}

#[test]
fn a_scheme_has_its_files_name_and_tells_of_its_decisions_if_it_makes_any() {
    let mut outcome = under("agpm", 10);
    assert_eq!((outcome.scheme_name(), outcome.selection()), ("agpm", None));
    outcome.scheme_variant = Some("agpm-sm".to_owned());
    outcome.scheme_report = Some(serde_json::to_value(Selection { complete: 3, ..Selection::default() }).unwrap());
    assert_eq!((outcome.scheme_name(), outcome.selection().unwrap().complete), ("agpm-sm", 3));
    outcome.scheme_report = Some("of another scheme".into());
    assert_eq!(outcome.selection(), None);
}

#[test]
fn a_kernel_is_found_by_its_name() {
    let mut outcome = sample();
    let totals = |kernel: &str, launches| KernelTotals {
        kernel: kernel.to_owned(),
        launches,
        time: outcome.time,
        counters: BTreeMap::new(),
    };
    outcome.kernels = vec![totals("fill", 3), totals("nw", 5)];
    assert_eq!(outcome.kernel("nw").map(|kernel| kernel.launches), Some(5));
    assert_eq!(outcome.kernel("other"), None);
}
