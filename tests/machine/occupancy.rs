//! How many CTAs an SM holds, by NVIDIA's rule: pairs at each boundary, and generations that differ.

use crate::bench_machine::{Bench, machine};
use durawarp::kernel::launch::Launch;
use durawarp::machine::occupancy::Occupancy;

/// How many CTAs an SM of the machine holds. A CTA has these threads, registers of a thread, and bytes of
/// shared memory.
fn ctas(name: &str, overrides: &str, cta: [u32; 3]) -> Result<(u32, String), String> {
    wished(name, overrides, cta, None)
}

/// The same with a wish for a carveout.
fn wished(
    name: &str,
    overrides: &str,
    [block, registers, shared]: [u32; 3],
    carveout_percent: Option<u32>,
) -> Result<(u32, String), String> {
    let mut bench = Bench::new(machine(name, overrides));
    bench.launch("", 1, block, (0, 0, 0, 0)).with_shared(shared).with_registers(registers);
    let launch = Launch { carveout_percent, ..(*bench.launches()[0]).clone() };
    let occupancy = Occupancy::of(&launch, &bench.spec.sm, &bench.spec.shared, &bench.spec.l1)?;
    Ok((occupancy.ctas, occupancy.limit))
}

#[test]
fn warps_lie_whole_in_a_quarter_of_the_registers() {
    // A quarter is 16,384 registers. With 40 registers a warp takes 1,280, twelve fit a quarter: 48 warps, 8 CTAs of 6.
    // With 41 it takes 1,536, ten fit: 40 warps, 6 CTAs, where 65,536 registers as one would have 7.
    for (registers, expected) in [(40, 8), (41, 6), (48, 6), (49, 6), (56, 6), (57, 5), (64, 5), (65, 4)] {
        let of = |name, overrides| ctas(name, overrides, [192, registers, 0]).unwrap().0;
        for name in ["titan-x", "volta-v100", "ampere-a100"] {
            assert_eq!(of(name, ""), expected, "{name}, {registers} registers");
        }
    }
    assert_eq!(ctas("volta-v100", "", [192, 41, 0]), Ok((6, "registers".to_owned())));
    assert_eq!(ctas("volta-v100", "sm.register_partitions=1", [192, 41, 0]).unwrap().0, 7);
    // Compute capability 6.0 has halves: 21 warps of 41 registers in each, 42 and 7 CTAs.
    assert_eq!(ctas("volta-v100", "sm.register_partitions=2", [192, 41, 0]).unwrap().0, 7);
    // Eight warps of 176 registers fill the quarters; a ninth has no place although 14,848 registers are free.
    assert_eq!(ctas("volta-v100", "", [256, 176, 0]).unwrap().0, 1);
    let refused = ctas("volta-v100", "", [288, 176, 0]).unwrap_err();
    assert_eq!(refused, "a CTA of kernel `k` needs 50688 registers in 9 warps of 5632 and an SM has 4 parts of 16384");
}

#[test]
fn shared_memory_is_given_in_units_and_from_compute_capability_8_on_with_a_kb_beside() {
    let shared = |name, bytes| ctas(name, "", [32, 16, bytes]).map(|(ctas, _)| ctas);
    // 96 KB of 256 B units: 13 CTAs of 7,424 B, one unit more and there are 12.
    assert_eq!((shared("volta-v100", 7424), shared("volta-v100", 7425)), (Ok(13), Ok(12)));
    // 164 KB of 128 B units, 1 KB a CTA beside: 20 CTAs of 7,296 + 1,024 B.
    assert_eq!((shared("ampere-a100", 7296), shared("ampere-a100", 7297)), (Ok(20), Ok(19)));
    // The most that a CTA may have: 96 KB, and 163 KB.
    assert_eq!(shared("volta-v100", 98304), Ok(1));
    assert!(shared("volta-v100", 98305).is_err());
    assert_eq!(shared("ampere-a100", 163 * 1024), Ok(1));
    assert_eq!(
        shared("ampere-a100", 163 * 1024 + 1).unwrap_err(),
        "a CTA of kernel `k` needs 168064 shared memory bytes (166913, and 1024 reserved, in units of 128) and an SM has \
         167936"
    );
}

/// The SM of compute capability 9.0, as overrides of `ampere-a100`.
pub(crate) const HOPPER: &str =
    "shared.kb=228 shared.steps_kb=0,8,16,32,64,100,132,164,196,228 l1.unified_kb=256 l1.ways=512 sm.ctas=32";

#[test]
fn an_h200_answers_the_same() {
    let of = |cta: [u32; 3]| ctas("ampere-a100", HOPPER, cta).map_or(0, |(ctas, _)| ctas);
    let mut compared = 0;
    for row in include_str!("occupancy_h200.txt").lines().filter(|row| !row.starts_with('#')) {
        let (kind, numbers) = row.split_once(' ').unwrap();
        let numbers: Vec<u32> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        match (kind, &numbers[..]) {
            ("regs", [registers, measured @ ..]) => {
                let ours: Vec<u32> = (1..=32).map(|warps| of([32 * warps, *registers, 0])).collect();
                assert_eq!(ours, measured, "{registers} registers");
                compared += measured.len();
            }
            ("block", &[registers, block, measured]) => {
                assert_eq!(of([block, registers, 0]), measured, "{row}");
                compared += 1;
            }
            ("shared", &[from, measured]) => {
                assert_eq!(of([32, 14, from]), measured, "{row}");
                assert!(from == 0 || of([32, 14, from - 32]) > measured, "{row}: not before");
                compared += 1;
            }
            ("carveout", &[percent, shared, measured]) => {
                let ours = wished("ampere-a100", HOPPER, [128, 14, shared], Some(percent)).unwrap().0;
                assert_eq!(ours, measured, "{row}");
                compared += 1;
            }
            _ => panic!("{row}"),
        }
    }
    assert_eq!(compared, 20 * 32 + 16 + 32 + 6 * 12);
}
