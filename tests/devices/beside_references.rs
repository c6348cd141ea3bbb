//! Built-in devices beside two other simulators and beside arithmetic: what `durawarp validate` prints is
//! within its bounds.

use durawarp::devices::streams::STREAMS;
use durawarp::devices::{Comparison, Validation};

#[test]
fn devices_take_as_long_as_in_two_other_simulators_and_as_arithmetic_says() {
    let found = Validation::run().unwrap_or_else(|faults| panic!("{faults}"));
    // Twelve streams of two devices, without refresh and with it; of each DRAM device three limits at least.
    assert_eq!(found.comparisons.len(), 48);
    assert!(found.limits.len() > 30);
    let streams = found.comparisons.iter().filter(|own| !own.is_within()).map(|own| format!("{own:?}"));
    let limits = found.limits.iter().filter(|own| !own.is_within()).map(|own| format!("{own:?}"));
    let beyond: Vec<String> = streams.chain(limits).collect();
    assert!(beyond.is_empty(), "beyond their bounds:\n{}", beyond.join("\n"));
}

#[test]
fn a_bound_is_from_the_nearest_reference() {
    // Of ordered reads: 1 %.
    let (stream, references) = (STREAMS[0], vec![100_000.0, 102_000.0]);
    let mut own = Comparison { device: "ddr4", stream, refreshed: false, cycles: 0, references };
    for (cycles, deviation, within) in [
        (98_999, -0.010_01, false),
        (99_001, -0.009_99, true),
        (101_000, 0.0, true),
        (103_019, 0.009_990_2, true),
        (103_021, 0.010_009_8, false),
    ] {
        own.cycles = cycles;
        assert!((own.deviation() - deviation).abs() < 1e-6, "{cycles}: {}", own.deviation());
        assert_eq!(own.is_within(), within, "{cycles}");
    }
}
