//! An L1 that has what a launch's shared memory leaves of an array that both share.

use crate::bench_machine::{Bench, Ran, machine};
use crate::occupancy::HOPPER;
use durawarp::config::{MachineConfig, Override};
use durawarp::engine::RunOptions;
use durawarp::kernel::launch::Launch;
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::machine::carveout::Carveout;
use durawarp::machine::occupancy::Occupancy;
use durawarp::run::Experiment;

/// The kernel reads 64 KiB a CTA, `n` times, each CTA its own.
const REREAD: &str = "mul.wide.u32 %d1, %cta, 65536;
add.s64 %d1, %d1, %a;
mul.wide.u32 %d2, %tid, 4;
add.s64 %d1, %d1, %d2;
mov.u32 %r1, 0;
mov.u32 %r2, 0;
OUTER:
mov.u32 %r3, 0;
mov.u64 %d3, %d1;
INNER:
ld.global.u32 %r4, [%d3];
add.u32 %r1, %r1, %r4;
add.s64 %d3, %d3, 4096;
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 16;
@%p1 bra INNER;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, %n;
@%p2 bra OUTER;
mul.wide.u32 %d4, %id, 4;
add.s64 %d4, %d4, %out;
st.global.u32 [%d4], %r1;";

/// Runs a launch for each of `launches`, its bytes of shared memory. A launch has a CTA on each of 4 SMs.
fn reread(name: &str, overrides: &str, launches: &[u32], times: u32) -> Ran {
    let mut bench = Bench::new(machine(name, &format!("sm.count=4 {overrides}")));
    let (out, a) = (bench.buffer(4 * 4096, Medium::Dram), bench.buffer(4 * 65536, Medium::Dram));
    bench.put_u32s(a, &(0..65536).collect::<Vec<u32>>());
    for &shared in launches {
        bench.launch(REREAD, 4, 1024, (out, a, 0, times)).with_shared(shared);
    }
    let ran = bench.run();
    assert_eq!(ran.u32s(out, 1), [(0..16).map(|i| i * 1024).sum::<u32>() * times]);
    ran
}

/// How a launch splits the array of a machine that has one.
fn carveout(spec: &MachineSpec, launch: &Launch) -> Carveout {
    let ctas = Occupancy::of(launch, &spec.sm, &spec.shared, &spec.l1).unwrap().ctas;
    Carveout::of(launch, ctas, &spec.shared, &spec.l1).unwrap()
}

/// KiB of L1 and of shared memory of each launch, where it has them of one array.
fn splits(ran: &Ran) -> Vec<Option<(u32, u32)>> {
    let of = |carveout: Carveout| (carveout.l1_kb, carveout.shared_kb);
    ran.assembly.command_processor().launches().iter().map(|launch| launch.carveout.map(of)).collect()
}

#[test]
fn a_launch_without_shared_memory_has_all_of_the_array_as_l1() {
    // 64 KiB an SM are read 4 times, in sectors or in lines: the first time misses, three times hit.
    for (name, split, unit) in [("volta-v100", (128, 0), 32), ("ampere-a100", (184, 8), 128)] {
        let ran = reread(name, "", &[0], 4);
        let units = 4 * 65536 / unit;
        assert_eq!((ran.sm("l1_loads"), ran.sm("l1_hits")), (4 * units, 3 * units), "{name}");
        assert_eq!(splits(&ran), [Some(split)], "{name}");
    }
}

#[test]
fn a_launch_that_takes_the_most_shared_memory_has_the_least_l1_and_a_fixed_one_stays() {
    let [most, fixed] = ["", "l1.kb=32 l1.ways=64"].map(|set| reread("volta-v100", set, &[96 * 1024], 4));
    assert_eq!(splits(&most), [Some((32, 96))]);
    assert_eq!(splits(&fixed), [None]);
    for name in ["l1_loads", "l1_hits", "active_cycles"] {
        assert_eq!(most.sm(name), fixed.sm(name), "{name}");
    }
    assert!(most.sm("l1_hits") < most.sm("l1_loads") / 2, "64 KiB do not fit 32");
    assert_eq!(splits(&reread("titan-x", "", &[0], 1)), [None]);
}

#[test]
fn each_launch_takes_the_least_step_that_holds_its_ctas_and_begins_with_an_empty_l1() {
    let kb = |kb: u32| kb * 1024;
    // Two CTAs of 1,024 threads fit up to 48 KiB each, one from there on.
    let steps = [(0, 0), (1, 8), (kb(4), 8), (kb(4) + 1, 16), (kb(9), 32), (kb(33), 96), (kb(49), 64), (kb(65), 96)];
    let shared: Vec<u32> = steps.iter().map(|(shared, _)| *shared).collect();
    let ran = reread("volta-v100", "", &shared, 1);
    let expected: Vec<_> = steps.iter().map(|(_, step)| Some((128 - step, *step))).collect();
    assert_eq!(splits(&ran), expected);
    assert_eq!(ran.sm("l1_hits"), 0, "read once by each launch");
    // Two CTAs fit an SM, in units of 256 B; on an A100 in units of 128 B with a KB beside each. The grid does not count.
    let split = |name: &str, grid: u32, shared: u32| {
        let spec = machine(name, "sm.count=4");
        let mut bench = Bench::new(spec.clone());
        bench.launch("", grid, 1024, (0, 0, 0, 0)).with_shared(shared);
        let carveout = carveout(&spec, &bench.launches()[0]);
        (carveout.l1_kb, carveout.shared_kb)
    };
    assert_eq!([4, 800].map(|grid| split("volta-v100", grid, kb(16))), [(96, 32); 2]);
    assert_eq!(split("volta-v100", 4, kb(16) + 1), (64, 64));
    assert_eq!([kb(15), kb(15) + 1].map(|shared| split("ampere-a100", 4, shared)), [(160, 32), (128, 64)]);
}

/// Measured on an NVIDIA H200 (compute capability 9.0) in November 2026: shared memory a CTA, threads, CTAs of the grid, and
/// the least size in KiB, of those tried, of which a chain of loads that was followed once before hits less than 85 %.
/// The grid does not count: the driver asks how many CTAs fit.
const H200: [(u32, u32, u32, u32); 8] = [
    (0, 32, 1, 224),
    (0, 1024, 132, 248),
    (1024, 32, 1, 192),
    (30720, 1024, 1, 192),
    (30720, 1024, 2640, 192),
    (65536, 1024, 1, 124),
    (65536, 256, 132, 60),
    (166_912, 256, 132, 92),
];

#[test]
fn the_l1_of_an_h200_ends_where_this_one_does() {
    for (shared, block, grid, measured_kb) in H200 {
        let mut bench = Bench::new(machine("ampere-a100", &format!("{HOPPER} sm.count=132")));
        bench.launch("", grid, block, (0, 0, 0, 0)).with_shared(shared).with_registers(16);
        let spec = &bench.spec;
        let carveout = carveout(spec, &bench.launches()[0]);
        assert_eq!(carveout.l1_kb, measured_kb, "{shared} B, {block} threads, {grid} CTAs");
    }
}

/// The same of kernels that prefer a carveout: percent, shared memory, threads, CTAs of the grid, KiB.
const H200_WISHED: [(u32, u32, u32, u32, u32); 4] =
    [(25, 0, 32, 1, 192), (50, 0, 32, 1, 124), (50, 30720, 128, 1320, 124), (0, 30720, 1024, 264, 224)];

#[test]
fn a_preferred_carveout_is_had_as_on_an_h200() {
    for (percent, shared, block, grid, measured_kb) in H200_WISHED {
        let mut bench = Bench::new(machine("ampere-a100", &format!("{HOPPER} sm.count=132")));
        bench.launch("", grid, block, (0, 0, 0, 0)).with_shared(shared).with_registers(16);
        let spec = &bench.spec;
        let launch = Launch { carveout_percent: Some(percent), ..(*bench.launches()[0]).clone() };
        let carveout = carveout(spec, &launch);
        assert_eq!(carveout.l1_kb, measured_kb, "{percent} %, {shared} B, {block} threads");
    }
}

#[test]
fn a_manifest_states_a_preferred_carveout() {
    let folder = tempfile::tempdir().unwrap();
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n";
    std::fs::write(folder.path().join("kernel.ptx"), text).unwrap();
    let run = |wish: &str, machine: &str| {
        let manifest = format!(
            "schema = 1\nname = \"wish\"\ndescription = \"none\"\nisa = {{ kind = \"ptx\", file = \"kernel.ptx\" }}\n\
             buffer.x = {{ type = \"u32\", len = 32, role = \"output\" }}\n\
             step = [{{ kernel = \"k\", grid = 8, block = 1024, shared = 4096{wish}, args = [\"&x\"] }}]\n"
        );
        std::fs::write(folder.path().join("workload.toml"), manifest).unwrap();
        Experiment::of(folder.path().to_str().unwrap()).machine(machine).set("sm.count", 2).run()
    };
    let split = |wish: &str| {
        let launch = run(wish, "volta-v100").unwrap().launches[0].clone();
        (launch.l1_kb, launch.shared_kb, launch.ctas_per_sm)
    };
    assert_eq!(split(""), (Some(120), Some(8), 2));
    assert_eq!(split(", carveout_percent = 50"), (Some(64), Some(64), 2));
    assert_eq!(split(", carveout_percent = 0"), (Some(120), Some(8), 2), "8 KiB hold a CTA, and two");
    let other = run(", carveout_percent = 50", "titan-x").unwrap();
    assert_eq!((other.launches[0].l1_kb, other.launches[0].ctas_per_sm), (None, 2));
    let fault = run(", carveout_percent = 101", "volta-v100").unwrap_err().to_string();
    assert!(fault.contains("carveout_percent") && fault.contains("100"), "{fault}");
}

#[test]
fn launches_of_several_splits_are_the_same_at_any_number_of_threads() {
    let bits = |threads: usize| {
        let mut bench = Bench::new(machine("volta-v100", "sm.count=4"));
        let (out, a) = (bench.buffer(4 * 4096, Medium::Dram), bench.buffer(4 * 65536, Medium::Dram));
        for shared in [0, 96 * 1024, 8 * 1024] {
            bench.launch(REREAD, 4, 1024, (out, a, 0, 2)).with_shared(shared);
        }
        let ran = bench.run_with(&RunOptions { threads, oversubscribe: true, ..RunOptions::default() });
        let digest = ran.assembly.simulation.digest();
        (digest, ran.sm("l1_hits"), [0, 1, 2].map(|launch| ran.ticks(launch)))
    };
    assert_eq!(bits(1), bits(2));
    assert_eq!(bits(1), bits(8));
}

#[test]
fn steps_that_do_not_fit_the_array_are_told() {
    let told = |set: &str| {
        let overrides: Vec<Override> = set.split_whitespace().map(|o| Override::parse(o).unwrap()).collect();
        MachineConfig::load("volta-v100", &overrides).unwrap_err().to_string()
    };
    for (set, words) in [
        ("shared.steps_kb=0,8,64", "has no step for the 96 KiB of shared.kb"),
        ("shared.steps_kb=0,96,128", "128 KiB leave the L1 no whole number of its 256 ways"),
        ("l1.ways=8", "8 KiB leave the L1 no whole number of its 8 ways"),
        ("l1.unified_kb=0", "which is 0 too"),
        ("shared.steps_kb=64,32", "sizes of KiB that rise"),
    ] {
        assert!(told(set).contains(words), "{set}: {}", told(set));
    }
}
