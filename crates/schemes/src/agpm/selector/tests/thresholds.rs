//! Thresholds: the first of a kernel, the next after a period, and what the hub keeps from launch to launch.

use super::*;

/// The threshold after 100 cycles a request, with a first threshold of 10,000.
fn after_100(spec: &AgpmSpec, was: u64, now: (u64, u64)) -> u64 {
    next_threshold(spec, was, Some((1000, 10)), now, 10_000)
}

#[test]
fn first_thresholds_follow_from_what_is_known() {
    let spec = spec(&[]);
    assert_eq!(first_threshold(&spec, Some(10_000)), 10_000);
    assert_eq!(first_threshold(&spec, Some(9_999)), 2_499, "a quarter");
    assert_eq!(first_threshold(&spec, Some(100)), 128, "and no less than this");
    // With persists in a loop there may be millions: AGPM's threshold.
    assert_eq!(first_threshold(&spec, None), 10_000);
    let changes = [("threshold_logs", json!(500)), ("small_divisor", json!(3)), ("least_threshold_logs", json!(60))];
    let other = AgpmSpec::with(&changes);
    assert_eq!(
        [Some(499), Some(180), Some(182), Some(185)].map(|logs| first_threshold(&other, logs)),
        [166, 60, 60, 61]
    );
}

#[test]
fn logs_are_expected_in_half_warps_without_the_write_backs_that_are_dropped() {
    let facts = KernelFacts {
        warps: 100,
        half_warps_per_warp: 2,
        persists_per_warp: Some(3),
        log_write_backs_per_warp: 2,
        ..KernelFacts::default()
    };
    let expected = |changes: &[(&str, Value)]| expected_logs(&spec(changes), &facts);
    assert_eq!(expected(&[]), Some(600));
    assert_eq!(expected(&[("log_unit", json!("accesses"))]), Some(300));
    let temporal = ("first_path", json!("temporal"));
    assert_eq!(expected(std::slice::from_ref(&temporal)), Some(1000));
    assert_eq!(expected(&[temporal, ("counted", json!("log_updates"))]), Some(600));
    assert_eq!(expected_logs(&spec(&[]), &KernelFacts { persists_per_warp: None, ..facts }), None);
}

#[test]
fn literally_a_steady_kernel_loses_its_threshold_and_clamped_it_does_not() {
    let literal = spec(&[("threshold_rule", json!("literal"))]);
    let clamped = spec(&[]);
    let steady = (270_000, 1000);
    let after = |spec: &AgpmSpec, periods: u32| {
        (0..periods).fold(10_000, |was, _| next_threshold(spec, was, Some(steady), steady, 10_000))
    };
    // The paper's rule: the threshold falls by a tenth unless CWPPR rises: below 100 after 44 periods.
    assert!(after(&literal, 43) >= 100 && after(&literal, 44) < 100);
    assert_eq!(after(&clamped, 1000), 10_000);
    assert_eq!(next_threshold(&literal, 10_000, Some(steady), (270_001, 1000), 10_000), 11_000, "the paper's example");
    // 2 % is within the band, more is not; bounds hold.
    assert_eq!(next_threshold(&clamped, 10_000, Some(steady), (275_400, 1000), 10_000), 10_000);
    assert_eq!(next_threshold(&clamped, 10_000, Some(steady), (275_401, 1000), 10_000), 11_000);
    assert_eq!(next_threshold(&clamped, 1_050, Some(steady), (1000, 1000), 10_000), 1_000);
    assert_eq!(next_threshold(&clamped, 99_000, Some(steady), (900_000, 1000), 10_000), 100_000);
    // A kernel that began below the bounds stays where it began.
    assert_eq!(next_threshold(&clamped, 128, Some(steady), (1000, 1000), 128), 128);
}

#[test]
fn a_change_beyond_the_dead_band_moves_the_threshold_up_or_down() {
    let spec = spec(&[]);
    let after = |now| after_100(&spec, 10_000, now);
    assert_eq!([(306, 3), (2041, 20)].map(after), [10_000, 11_000], "102 cycles a request, then 102.05");
    assert_eq!([(294, 3), (1959, 20)].map(after), [10_000, 9_000], "98 cycles a request, then 97.95");
    let wide = AgpmSpec::with(&[("dead_band_percent", json!(30))]);
    assert_eq!([(130, 1), (131, 1)].map(|now| after_100(&wide, 10_000, now)), [10_000, 11_000]);
    assert_eq!([(70, 1), (69, 1)].map(|now| after_100(&wide, 10_000, now)), [10_000, 9_000]);
}

#[test]
fn a_first_period_moves_no_threshold_and_a_fixed_one_never_moves() {
    let fixed = AgpmSpec::with(&[("threshold_rule", json!("fixed"))]);
    for now in [(1, 1), (1000, 10), (5000, 10)] {
        assert_eq!(next_threshold(&spec(&[]), 4321, None, now, 10_000), 4321);
        assert_eq!(after_100(&fixed, 4321, now), 4321);
    }
}

#[test]
fn a_threshold_grows_rounded_up_and_shrinks_rounded_down() {
    let (longer, shorter) = ((5000, 10), (10, 10));
    for rule in ["clamped", "literal"] {
        let spec = spec(&[("threshold_rule", json!(rule)), ("threshold_min_logs", json!(1))]);
        assert_eq!([1001, 1010, 1].map(|was| after_100(&spec, was, longer)), [1102, 1111, 2], "{rule}");
        assert_eq!([1001, 1010, 19].map(|was| after_100(&spec, was, shorter)), [900, 909, 17], "{rule}");
        assert_eq!(after_100(&spec, 1, shorter), 1, "{rule}: never 0");
    }
    let steps = AgpmSpec::with(&[("step_percent", json!(25))]);
    assert_eq!([longer, shorter].map(|now| after_100(&steps, 2002, now)), [2503, 1501]);
}

#[test]
fn literally_what_is_steady_shrinks_and_the_bounds_do_not_hold() {
    let literal = AgpmSpec::with(&[("threshold_rule", json!("literal"))]);
    assert_eq!([(101, 1), (100, 1), (99, 1)].map(|now| after_100(&literal, 1000, now)), [1100, 900, 900]);
    assert_eq!(after_100(&literal, 100_000, (101, 1)), 110_000);
}

#[test]
fn a_threshold_stays_between_the_bounds_or_where_its_kernel_began() {
    let spec = spec(&[]);
    let (longer, shorter) = ((5000, 10), (10, 10));
    let after = |was, now, first| next_threshold(&spec, was, Some((1000, 10)), now, first);
    assert_eq!([90_000, 90_909, 95_000].map(|was| after(was, longer, 10_000)), [99_000, 100_000, 100_000]);
    assert_eq!([1_200, 1_112, 1_050].map(|was| after(was, shorter, 10_000)), [1_080, 1_000, 1_000]);
    // Kernels that began outside.
    assert_eq!([105_000, 115_000].map(|was| after(was, longer, 120_000)), [115_500, 120_000]);
    assert_eq!([350, 320].map(|was| after(was, shorter, 300)), [315, 300]);
}

/// The log updates that end a period now: one fewer asks nobody.
fn ends_after(bench: &mut Bench, logs: u64) {
    assert!(bench.logs(logs - 1, 1, 100).is_empty(), "{logs}");
    assert_eq!(bench.logs(1, 0, 0).len(), 3, "{logs}");
    bench.answer(SOME, SOME);
}

/// The launch goes on for so many log updates, and ends.
fn finish(bench: &mut Bench, logs: u64) {
    if !bench.logs(logs, 1, 100).is_empty() {
        bench.answer(SOME, SOME);
    }
    bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    bench.answer(SOME, SOME);
}

#[test]
fn the_first_threshold_of_a_launch_follows_from_the_last_or_else_from_the_text() {
    let mut bench = Bench::new(&[("threshold_logs", json!(2000))]);
    bench.start("unknown", None, 1999);
    ends_after(&mut bench, 2000);
    finish(&mut bench, 1);
    // 3 persists of each of 250 warps: a quarter of 750.
    bench.start("text", Some(3), 250);
    ends_after(&mut bench, 187);
    finish(&mut bench, 613);
    // The launch had 800. A quarter of these is 200, but a threshold does not grow from launch to launch.
    bench.start("text", Some(3), 250);
    ends_after(&mut bench, 187);
    finish(&mut bench, 373);
    // This one had 560.
    bench.start("text", Some(3), 250);
    ends_after(&mut bench, 140);
    finish(&mut bench, 1);
    bench.start("many", Some(40), 50);
    ends_after(&mut bench, 2000);
}

#[test]
fn a_small_kernel_shrinks_to_where_it_began_and_not_up_to_the_least() {
    let mut bench = Bench::new(&[]);
    bench.start("by its last launch", None, 10_000);
    finish(&mut bench, 512);
    bench.start("by its last launch", None, 10_000);
    ends_after(&mut bench, 128);
    finish(&mut bench, 384);
    for (kernel, text, warps) in [("by its text", Some(1), 512), ("by its last launch", None, 10_000)] {
        bench.start(kernel, text, warps);
        for cycles in [90, 10, 1] {
            assert_eq!(bench.logs(128, 1, cycles).len(), 3, "{kernel}");
            bench.answer(SOME, SOME);
        }
        ends_after(&mut bench, 128);
        finish(&mut bench, 1);
    }
}

#[test]
fn a_launch_does_not_count_what_came_between_it_and_the_last() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.start("k", None, 5000);
    bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    bench.answer(SOME, SOME);
    assert!(bench.logs(5000, 7, 7).is_empty(), "no kernel runs");
    bench.start("next", None, 5000);
    ends_after(&mut bench, 1000);
    let last = bench.periods().last().unwrap();
    assert_eq!((last.logs, last.launch_logs, last.requests, last.wait_cycles), (1000, 1000, 1, 100));
}
