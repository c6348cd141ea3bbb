//! Products of four warps (`wgmma`) as a data sheet: what one takes, how far apart they are, what waits for what. Values
//! are looked at in `tests/kernel/wgmma.rs`; here a kernel that Triton compiled has those of the functional run.
//!
//! One CTA of 128 threads, a warp on each scheduler; the time between two instructions is taken with `%clock64`.

use crate::bench_machine::{Bench, SETTLE, machine};
use crate::same_results::{check, threads};
use crate::triton::watched;
use durawarp::engine::Placement;
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::run::Experiment;
use durawarp::workload::Workload;

/// The kernel that Triton compiled.
const MATMUL: &str = "tests/machine/triton_matmul";

/// Declares registers of d and descriptors of two tiles of zeros.
const TILES: &str = ".shared .align 1024 .b8 tile[32768];\n.reg .f32 %acc<128>;\n.reg .b32 %sum<128>;\n\
    mov.u32 %r1, tile;\nshr.u32 %r1, %r1, 4;\ncvt.u64.u32 %d1, %r1;\nor.b64 %d1, %d1, 0x4000004000010000;\n\
    mov.b32 %r2, 0;\nmov.b32 %r3, 0;\nmov.b32 %r4, 0;\nmov.b32 %r5, 0;\nsetp.ne.u32 %p1, %n, 0;\n";

/// Cycles from one clock read to the next around `measured`, of the first of so many threads.
fn cycles(spec: &MachineSpec, threads: u32, measured: &str) -> u64 {
    let mut bench = Bench::new(spec.clone());
    let out = bench.buffer(64, Medium::Dram);
    let zeros: String = (0..128).map(|i| format!("mov.f32 %acc{i}, 0f00000000;\nmov.b32 %sum{i}, 0;\n")).collect();
    let body = format!(
        "{TILES}{zeros}bar.sync 0;\n{SETTLE}mov.u64 %d60, %clock64;\n{measured}mov.u64 %d61, %clock64;\n\
         sub.s64 %d62, %d61, %d60;\nsetp.ne.u32 %p2, %tid, 0;\n@!%p2 st.global.u64 [%out], %d62;\n"
    );
    bench.launch(&body, 1, threads, (out, 0, 0, 3));
    bench.run().u64s(out, 1)[0]
}

/// A product of so many columns with types as the instruction names them.
fn product(types: &str, columns: u32, a_in_registers: bool) -> String {
    let (name, per_8, k, after) = match types {
        "f32.tf32.tf32" => ("acc", 4, 8, ", 1, 1"),
        "f32.e4m3.e5m2" => ("acc", 4, 32, ", 1, 1"),
        "f16.f16.f16" | "f32.f16.f16" | "f32.bf16.bf16" => {
            let (name, per_8) = if types.starts_with("f16") { ("sum", 2) } else { ("acc", 4) };
            (name, per_8, 16, if a_in_registers { ", 1, 1, 0" } else { ", 1, 1, 0, 0" })
        }
        "s32.s8.u8" => ("sum", 4, 32, ""),
        _ => ("sum", 4, 256, ""),
    };
    let d: Vec<String> = (0..columns / 8 * per_8).map(|i| format!("%{name}{i}")).collect();
    let a = if a_in_registers { "{%r2, %r3, %r4, %r5}" } else { "%d1" };
    format!("wgmma.mma_async.sync.aligned.m64n{columns}k{k}.{types} {{{}}}, {a}, %d1, %p1{after};\n", d.join(", "))
}

const FENCE: &str = "wgmma.fence.sync.aligned;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";

fn wait(kept: u32) -> String {
    format!("wgmma.wait_group.sync.aligned {kept};\n")
}

/// Types, and the rate that the H100's table has for them: multiplications and additions a cycle and SM; k; the tail with
/// a in shared memory, and with a in registers.
const TABLE: [(&str, u64, u64, [u64; 2]); 7] = [
    ("f32.f16.f16", 4096, 16, [66, 64]),
    ("f16.f16.f16", 4096, 16, [66, 64]),
    ("f32.bf16.bf16", 4096, 16, [66, 64]),
    ("f32.tf32.tf32", 2048, 8, [66, 64]),
    ("f32.e4m3.e5m2", 8192, 32, [66, 64]),
    ("s32.s8.u8", 8192, 32, [64, 62]),
    ("s32.b1.b1.and.popc", 65536, 256, [64, 62]),
];

/// From the first clock read to the product's issue behind a fence: the interval of a move, and a fence.
fn issued_after(spec: &MachineSpec) -> u64 {
    u64::from(spec.interval.logic_cycles) + u64::from(spec.interval.control_cycles)
}

#[test]
fn a_product_takes_the_table_s_work_and_tail() {
    let check = |spec: &MachineSpec, (types, rate, k, tails): (&str, u64, u64, [u64; 2]), columns: u32| {
        for in_registers in [false, true] {
            let one = format!("{FENCE}{}{COMMIT}{}", product(types, columns, in_registers), wait(0));
            let work = (2 * 64 * u64::from(columns) * k).div_ceil(rate);
            let expected = work + tails[usize::from(in_registers)];
            let found = cycles(spec, 128, &one) - issued_after(spec);
            assert_eq!(found, expected, "{types}, {columns} columns, registers: {in_registers}");
        }
    };
    let [h100, h200] = ["hopper-h100", "hopper-h200"].map(|name| machine(name, ""));
    for row in TABLE {
        check(&h100, row, 8);
        check(&h100, row, 64);
    }
    check(&h100, TABLE[0], 256);
    check(&h200, TABLE[0], 64);
}

#[test]
fn a_chain_of_products_has_the_table_s_rate() {
    let spec = machine("hopper-h100", "");
    let chain = |types: &str, columns: u32, count: usize| {
        let products = product(types, columns, false).repeat(count);
        cycles(&spec, 128, &format!("{FENCE}{products}{COMMIT}{}", wait(0)))
    };
    for (types, rate, k, [tail, _]) in TABLE {
        for columns in if types == "f32.f16.f16" { vec![64, 256] } else { vec![64] } {
            let work = (2 * 64 * u64::from(columns) * k).div_ceil(rate);
            let (few, many) = (chain(types, columns, 4), chain(types, columns, 36));
            assert_eq!(many - few, 32 * work, "{types}, {columns} columns");
            // Within 2 % of the table, with what stands before the chain.
            let table = (36 * work + tail) as f64;
            assert!((many as f64 / table - 1.0).abs() < 0.02, "{types}, {columns} columns: {many}, {table}");
        }
    }
    // Few columns are as far apart as products issue.
    assert_eq!(chain("f32.f16.f16", 8, 12) - chain("f32.f16.f16", 8, 4), 8 * 17);
}

#[test]
fn two_warp_groups_share_the_tensor_cores() {
    let spec = machine("hopper-h100", "");
    let chain = format!("{FENCE}{}{COMMIT}{}", product("f32.f16.f16", 128, false).repeat(16), wait(0));
    let [alone, shared] = [128, 256].map(|threads| cycles(&spec, threads, &chain));
    let (alone, shared) = (alone - 66 - issued_after(&spec), shared - 66 - issued_after(&spec));
    assert_eq!(alone, 16 * 64);
    // The last product of the first group is the last or the last but one of both.
    assert!((31 * 64..=32 * 64 + 8).contains(&shared), "{shared}");
}

#[test]
fn a_wait_leaves_the_last_group_under_way_and_other_work_goes_on() {
    let spec = machine("hopper-h100", "");
    let (first, second) = (product("f32.f16.f16", 64, false), product("f32.f16.f16", 128, false));
    let of = |kept: u32| {
        let both = format!("{FENCE}{first}{COMMIT}{second}{COMMIT}{}", wait(kept));
        cycles(&spec, 128, &both) - issued_after(&spec)
    };
    assert_eq!([of(1), of(0)], [32 + 66, 32 + 64 + 66]);
    // Issued and not waited for: 17 cycles, twice that for 128 columns, the commits, and the wait.
    assert_eq!(of(2), 17 + 34 + 3 * u64::from(spec.interval.control_cycles));
}

#[test]
fn a_product_waits_for_what_writes_its_registers() {
    let spec = machine("hopper-h100", "");
    let load = "mov.u32 %r9, tile;\nld.shared.f32 %acc7, [%r9];\n";
    let with = |before: &str| {
        cycles(&spec, 128, &format!("{before}{FENCE}{}{COMMIT}{}", product("f32.f16.f16", 64, false), wait(0)))
    };
    let [moved, loaded] = [with("mov.u32 %r9, tile;\n"), with(load)];
    assert!(loaded >= moved + u64::from(spec.shared.latency_cycles) - 8, "{moved} and {loaded}");
}

#[test]
fn machines_without_such_products_refuse_them_before_the_run_and_name_those_that_have_some() {
    for name in ["ampere-a100", "ada-4090", "blackwell-b200", "blackwell-5090"] {
        let fault = Experiment::of(MATMUL).machine(name).run().unwrap_err().to_string();
        assert!(
            fault.contains("triton_matmul/kernel.ptx:") && fault.contains("has not; machines that have"),
            "{fault}"
        );
        assert!(fault.contains("machines that have: hopper-h100, hopper-h200"), "{fault}");
    }
}

#[test]
fn a_kernel_of_triton_has_the_values_of_the_functional_run_at_any_number_of_threads() {
    check("hopper-h100", MATMUL, &[threads(2, Placement::Shuffled(3)), threads(8, Placement::RoundRobin)]);
}

#[test]
fn a_kernel_of_triton_runs_on_its_default_machine_and_counts_its_products() {
    let outcome = Experiment::of(MATMUL).run().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.machine.name, "hopper-h100");
    assert!(outcome.verification.as_ref().is_some_and(|check| check.passed));
    // 128 x 64 x 192 by 64 x 64 x 16, of four warps each.
    assert_eq!(outcome.total("tensor", "group_products"), 2 * 192 / 16 * 4);
}

#[test]
fn a_kernel_of_triton_has_no_races_and_reads_nothing_unwritten() {
    let watched = |from: &str, to: &str, times: usize| watched(MATMUL, |kernel| kernel.replacen(from, to, times));
    assert_eq!(watched("", "", 0), (Vec::new(), 0));
    // Without the fence what `cp.async` wrote is of another proxy than what `wgmma` reads.
    let (races, _) = watched("fence.proxy.async.shared::cta;", "", usize::MAX);
    assert!(!races.is_empty());
    for race in races {
        assert!(race.contains(" and wgmma at ") && race.contains("without a `fence.proxy.async` between"), "{race}");
    }
    // Without the barrier between the copies and it there is no order of warps.
    let (races, _) = watched("bar.sync \t0;", "", 1);
    assert!(races.iter().any(|race| race.contains("without order")), "{races:?}");
    // Without the wait for products, copies of the next stage write over what these read.
    let (races, _) = watched("wgmma.wait_group.sync.aligned 1;", "", usize::MAX);
    let over = |race: &String| race.contains(": wgmma at ") && race.contains("without a wait for the end of the first");
    assert!(!races.is_empty() && races.iter().all(over), "{races:?}");
}

/// Products of four warps in a loop, each of which is stored to persistent memory.
const LOOP: &str = r#"schema = 1
name = "loop"
description = "wgmma in regions"
buffer.C = { type = "f32", len = 512, space = "pm", role = "output" }
step = [{ kernel = "k", block = 128, grid = 1, args = ["&C"] }]
verify = [{ ref = { kind = "functional" } }]
isa = { kind = "ptx", text = '''
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p_c) {
.reg .b64 out, at, x; .reg .b32 t, a, b<4>, w, i; .reg .f32 d<4>; .reg .pred p; .shared .align 128 .b8 s[512];
ld.param.u64 out, [p_c]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 16; add.u64 out, out, at;
mov.u32 a, s; shl.b32 w, t, 2; add.u32 a, a, w; mad.lo.u32 w, t, 0x10003, 0x3c003c00; st.shared.b32 [a], w;
fence.proxy.async; bar.sync 0;
mov.b32 b0, 0x3c003c00; mov.b32 b1, 0x40003c00; mov.b32 b2, 0x3c004000; mov.b32 b3, 0x3c003c00;
mov.u64 x, 0x80000; mov.u32 i, 0; mov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;
L: wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, {b0, b1, b2, b3}, x, 1, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
st.global.v4.f32 [out], {d0, d1, d2, d3};
add.u32 i, i, 1; setp.lt.u32 p, i, 12; @p bra L;
ret;
}
''' }
"#;

#[test]
fn formed_regions_keep_the_sums_of_products() {
    let of = |scheme: &str| {
        let workload = Workload::from_text(LOOP).unwrap_or_else(|faults| panic!("{faults}"));
        let recipe = Experiment::of(workload).machine("hopper-h100").scheme(scheme);
        let outcome = recipe.run().unwrap_or_else(|faults| panic!("{faults}"));
        assert!(outcome.verification.as_ref().is_some_and(|check| check.passed), "{scheme}");
        outcome.total("tensor", "group_products")
    };
    assert_eq!([of("base"), of("light-wsp")], [12 * 4; 2]);
}
