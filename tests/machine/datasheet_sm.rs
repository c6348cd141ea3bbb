//! An SM's timing rules, each as a pair: one cycle early it still waits, on time it goes.
//!
//! Kernels take the time between two instructions with `%clock64`; a warp by itself issues one instruction a cycle when
//! nothing holds it back, so `n` instructions between two reads take `n + 1` cycles.

use crate::bench_machine::{Bench, Ran, SETTLE, machine, one_gigahertz};
use durawarp::kernel::memory::{DRAM_BASE, Medium};
use durawarp::machine::MachineSpec;

/// Cycles from one clock read to the next around `measured`, with `before` long over; one warp of `block` threads.
fn cycles(spec: &MachineSpec, before: &str, measured: &str, after: &str) -> u64 {
    let mut bench = Bench::new(spec.clone());
    let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(4096, Medium::Dram));
    let body = format!(
        "{before}
bar.sync 0;{SETTLE}mov.u64 %d60, %clock64;
{measured}
mov.u64 %d61, %clock64;
sub.s64 %d62, %d61, %d60;
st.global.u64 [%out], %d62;
{after}"
    );
    bench.launch(&body, 1, 1, (out, a, 0, 3));
    bench.run().u64s(out, 1)[0]
}

/// A class of instructions: an independent one into `{r}`, one that uses it, and its configured keys.
struct Class {
    key: &'static str,
    /// The instruction; `D` is the number of the destination register.
    instruction: &'static str,
    /// An operation of the class `logic` that waits for register number `D`.
    used: &'static str,
    /// Shares the unit of integer and logic instructions.
    core: bool,
}

const CLASSES: [Class; 15] = [
    Class { key: "int", instruction: "add.s32 %rD, %r1, %r2;", used: "or.b32 %r59, %rD, %rD;", core: true },
    Class { key: "int_mul", instruction: "mul.lo.s32 %rD, %r1, %r2;", used: "or.b32 %r59, %rD, %rD;", core: true },
    Class { key: "int_div", instruction: "div.s32 %rD, %r1, %r2;", used: "or.b32 %r59, %rD, %rD;", core: true },
    Class { key: "fp32", instruction: "fma.rn.f32 %fD, %f1, %f2, %f1;", used: "mov.b32 %r59, %fD;", core: true },
    Class { key: "fp32_div", instruction: "div.rn.f32 %fD, %f1, %f2;", used: "mov.b32 %r59, %fD;", core: true },
    Class { key: "fp64", instruction: "fma.rn.f64 %gD, %g1, %g2, %g1;", used: "mov.b64 %d59, %gD;", core: false },
    Class { key: "fp64_div", instruction: "div.rn.f64 %gD, %g1, %g2;", used: "mov.b64 %d59, %gD;", core: false },
    Class { key: "sfu", instruction: "sin.approx.f32 %fD, %f1;", used: "mov.b32 %r59, %fD;", core: false },
    Class {
        key: "shuffle",
        instruction: "shfl.sync.idx.b32 %rD, %r1, 0, 31, -1;",
        used: "or.b32 %r59, %rD, %rD;",
        core: true,
    },
    Class {
        key: "compare",
        instruction: "setp.lt.s32 %pD, %r1, %r2;",
        used: "selp.b32 %r59, %r1, %r2, %pD;",
        core: true,
    },
    Class { key: "logic", instruction: "xor.b32 %rD, %r1, %r2;", used: "or.b32 %r59, %rD, %rD;", core: true },
    Class { key: "logic", instruction: "neg.f32 %fD, %f1;", used: "mov.b32 %r59, %fD;", core: true },
    Class { key: "min_max", instruction: "min.s32 %rD, %r1, %r2;", used: "or.b32 %r59, %rD, %rD;", core: true },
    Class { key: "min_max", instruction: "max.f32 %fD, %f1, %f2;", used: "mov.b32 %r59, %fD;", core: true },
    Class { key: "convert", instruction: "cvt.rn.f32.s32 %fD, %r1;", used: "mov.b32 %r59, %fD;", core: true },
];

/// Every register that the classes read, with a value.
const OPERANDS: &str = "add.s32 %r1, %n, 4;
add.s32 %r2, %n, 0;
cvt.rn.f32.s32 %f1, %n;
add.f32 %f2, %f1, %f1;
cvt.rn.f64.s32 %g1, %n;
add.f64 %g2, %g1, %g1;";

/// Keeps every result alive, so that no register is used again.
const KEEP: &str = "st.global.u32 [%a], %r59;
st.global.u64 [%a+8], %d59;";

/// A machine on which every class has a latency and an interval of its own.
fn distinct() -> MachineSpec {
    let keys = [
        "int", "int_mul", "int_div", "logic", "compare", "min_max", "convert", "fp32", "fp32_div", "fp64", "fp64_div",
        "sfu", "shuffle", "vote", "const", "control",
    ];
    let overrides: Vec<String> = keys
        .iter()
        .enumerate()
        .map(|(i, key)| format!("latency.{key}_cycles={} interval.{key}_cycles={}", 20 + 3 * i, 2 + i % 5))
        .collect();
    machine("agpm-table4", &overrides.join(" "))
}

fn configured(spec: &MachineSpec, table: &str, key: &str) -> u64 {
    serde_json::to_value(spec).unwrap()[table][format!("{key}_cycles")].as_u64().unwrap()
}

#[test]
fn a_result_can_be_used_after_its_classes_latency_and_not_a_cycle_earlier() {
    let spec = distinct();
    let logic = configured(&spec, "interval", "logic");
    for class in &CLASSES {
        let latency = configured(&spec, "latency", class.key);
        let (instruction, used) = (class.instruction.replace('D', "10"), class.used.replace('D', "10"));
        let got = cycles(&spec, OPERANDS, &format!("{instruction}\n{used}"), KEEP);
        // Reading the clock is a move: what shares its unit waits for its interval, and so does the second read.
        let after_clock = if class.core { logic } else { 1 };
        assert_eq!(got, after_clock + latency + logic, "{instruction}");
    }
}

#[test]
fn two_of_a_class_issue_their_interval_apart() {
    let spec = distinct();
    let logic = configured(&spec, "interval", "logic");
    for class in &CLASSES {
        let interval = configured(&spec, "interval", class.key);
        let pair = format!("{}\n{}", class.instruction.replace('D', "10"), class.instruction.replace('D', "11"));
        let keep = format!("{}\n{}\n{KEEP}", class.used.replace('D', "10"), class.used.replace('D', "11"));
        let got = cycles(&spec, OPERANDS, &pair, &keep);
        let expected = if class.core { logic + 2 * interval } else { (1 + interval + 1).max(logic) };
        assert_eq!(got, expected, "{pair}");
    }
}

#[test]
fn independent_instructions_hide_a_latency_exactly() {
    // Nine cycles from an add to its use: eight instructions fit between them, the ninth costs a cycle of its own.
    let spec = machine("agpm-table4", "");
    let with_filler = |n: u32| {
        let filler: String = (0..n).map(|i| format!("add.s32 %r{}, %r2, {i};\n", 20 + i)).collect();
        let keep: String = (0..n).map(|i| format!("xor.b32 %r59, %r59, %r{};\n", 20 + i)).collect();
        let measured = format!("add.s32 %r10, %r1, %r2;\n{filler}or.b32 %r59, %r10, %r10;");
        cycles(&spec, OPERANDS, &measured, &format!("{keep}{KEEP}"))
    };
    assert_eq!(spec.latency.int_cycles, 9);
    assert_eq!([0, 4, 7, 8, 9, 12].map(with_filler), [11, 11, 11, 11, 12, 15]);
}

#[test]
fn a_write_waits_for_an_older_load_into_the_same_register() {
    let spec = one_gigahertz("");
    let load = "ld.global.u32 %r10, [%a+128];";
    let other = cycles(
        &spec,
        OPERANDS,
        &format!("{load}\nadd.s32 %r11, %r1, 1;"),
        "st.global.u32 [%a], %r10;\nst.global.u32 [%a+4], %r11;",
    );
    assert_eq!(other, 3, "another register");
    let use_it = cycles(&spec, OPERANDS, &format!("{load}\nadd.s32 %r11, %r10, 1;"), "st.global.u32 [%a+4], %r11;");
    assert!(use_it > 300, "{use_it}: read after write");
    let overwrite = cycles(&spec, OPERANDS, &format!("{load}\n@%p3 mov.u32 %r10, %r1;"), "st.global.u32 [%a], %r10;");
    assert_eq!(overwrite, use_it, "write after write");
}

#[test]
fn a_taken_branch_costs_the_control_latency() {
    let spec = distinct();
    let logic = configured(&spec, "interval", "logic");
    let control = configured(&spec, "latency", "control");
    assert_eq!(cycles(&spec, OPERANDS, "bra NEXT;\nNEXT:", KEEP), logic + control);
    assert_eq!(cycles(&spec, OPERANDS, "bar.sync 0;", KEEP), logic + control, "a barrier with nobody to wait for");
}

#[test]
fn the_two_instructions_of_a_dual_issue_go_to_different_units() {
    let pair = "fma.rn.f32 %f10, %f1, %f2, %f1;\nsin.approx.f32 %f11, %f1;";
    let same = "fma.rn.f32 %f10, %f1, %f2, %f1;\nfma.rn.f32 %f11, %f1, %f2, %f2;";
    let keep = "add.f32 %f10, %f10, %f11;\nst.global.f32 [%a], %f10;";
    let take = |width: u32, measured: &str| {
        cycles(&machine("agpm-table4", &format!("sm.issue_width={width}")), OPERANDS, measured, keep)
    };
    assert_eq!((take(1, pair), take(1, same)), (3, 3));
    // Clock and fma share a unit; the sine goes with the fma.
    assert_eq!((take(2, pair), take(2, same)), (2, 3));
}

/// Runs one warp and returns it with the cycles that it measured.
fn warp(spec: &MachineSpec, lanes: u32, body: &str, n: u32) -> (Ran, u64) {
    let mut bench = Bench::new(spec.clone());
    let (out, a) = (bench.buffer(1024, Medium::Dram), bench.buffer(1 << 16, Medium::Dram));
    bench.launch(body, 1, lanes, (out, a, 0, n));
    let ran = bench.run();
    let cycles = ran.u64s(out, 1)[0];
    (ran, cycles)
}

#[test]
fn divergent_branches_issue_each_side_by_itself() {
    // 32 blocks of 20 instructions, each for the lanes whose number modulo n is the block's.
    let mut body = String::from("sub.s32 %r2, %n, 1;\nand.b32 %r1, %tid, %r2;\nmov.u32 %r3, 0;\n");
    for block in 0..32 {
        body += &format!("setp.ne.s32 %p1, %r1, {block};\n@%p1 bra SKIP{block};\n");
        body += &"add.s32 %r3, %r3, 1;\n".repeat(20);
        body += &format!("SKIP{block}:\n");
    }
    body += "mul.wide.u32 %d1, %tid, 4;\nadd.s64 %d1, %d1, %out;\nst.global.u32 [%d1], %r3;";
    let spec = machine("agpm-table4", "");
    let (base, _) = warp(&spec, 32, &body, 1);
    for ways in [1, 2, 4, 8, 16, 32u32] {
        let (ran, _) = warp(&spec, 32, &body, ways);
        assert_eq!(ran.u32s(DRAM_BASE, 32), [20; 32]);
        let more = ran.sm("warp_instructions") - base.sm("warp_instructions");
        assert_eq!(more, u64::from(ways - 1) * 20, "{ways} ways");
        assert_eq!(ran.sm("divergent_branches"), if ways == 1 { 0 } else { u64::from(ways) }, "{ways} ways");
        let threads = ran.sm("thread_instructions");
        assert_eq!(threads, base.sm("thread_instructions"), "each thread does the same work");
    }
}

/// Cycles from the issue of one load of shared memory to the use of its result, by a warp whose lane `i` reads `bytes`
/// bytes at `i * stride`.
fn shared_load(spec: &MachineSpec, stride: u32, bytes: u32) -> (Ran, u64) {
    // Results are kept: a register that nobody reads would be given to the next result, which then waits for it.
    let (load, keep) = match bytes {
        4 => ("ld.shared.u32 %r1, [%r10];\nor.b32 %r20, %r1, %r1;", "st.global.u32 [%a], %r20;"),
        8 => ("ld.shared.u64 %d1, [%r10];\nor.b64 %d20, %d1, %d1;", "st.global.u64 [%a], %d20;"),
        _ => (
            "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r10];\nor.b32 %r20, %r4, %r4;",
            "st.global.v4.u32 [%a], {%r1, %r2, %r3, %r20};",
        ),
    };
    let body = format!(
        ".shared .align 16 .b8 s[16384];
mul.lo.s32 %r10, %tid, {stride};
mov.u32 %r11, s;
add.s32 %r10, %r10, %r11;
or.b32 %r12, %r10, %r10;
st.global.u32 [%a], %r12;
bar.sync 0;
mov.u64 %d10, %clock64;
{load}
mov.u64 %d11, %clock64;
sub.s64 %d12, %d11, %d10;
st.global.u64 [%out], %d12;
{keep}"
    );
    let (ran, cycles) = warp(spec, 32, &body, 0);
    (ran, cycles - 2)
}

#[test]
fn bank_conflicts_show_the_textbook_factor() {
    let spec = machine("agpm-table4", "");
    let latency = u64::from(spec.shared.latency_cycles);
    for (words, passes) in [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)] {
        let (ran, cycles) = shared_load(&spec, 4 * words, 4);
        assert_eq!(cycles, latency + passes - 1, "stride of {words} words");
        assert_eq!(ran.sm("shared_conflict_passes"), passes - 1, "stride of {words} words");
    }
    // Eight bytes a lane are two half-warps, sixteen are four quarters; a broadcast is one word for all of a group.
    for (stride, bytes, passes) in [(8, 8, 2), (0, 8, 2), (16, 8, 4), (256, 8, 32), (16, 16, 4), (32, 16, 8)] {
        let (_, cycles) = shared_load(&spec, stride, bytes);
        assert_eq!(cycles, latency + passes - 1, "{bytes} bytes a lane, {stride} apart");
    }
}

#[test]
fn a_conflict_holds_the_banks_against_the_next_access() {
    let spec = machine("agpm-table4", "");
    let body = |stride: u32| {
        format!(
            ".shared .align 16 .b8 s[16384];
mul.lo.s32 %r10, %tid, {stride};
mov.u32 %r11, s;
add.s32 %r10, %r10, %r11;
or.b32 %r12, %r10, %r10;
st.global.u32 [%a], %r12;
bar.sync 0;
mov.u64 %d10, %clock64;
ld.shared.u32 %r1, [%r10];
ld.shared.u32 %r2, [%r10];
ld.shared.u32 %r3, [%r10];
ld.shared.u32 %r4, [%r10];
or.b32 %r20, %r4, %r4;
mov.u64 %d11, %clock64;
sub.s64 %d12, %d11, %d10;
add.s32 %r1, %r1, %r2;
add.s32 %r1, %r1, %r3;
st.global.u32 [%a], %r1;
st.global.u64 [%out], %d12;"
        )
    };
    let latency = u64::from(spec.shared.latency_cycles);
    for (stride, passes) in [(4, 1), (8, 2), (64, 16)] {
        let (_, cycles) = warp(&spec, 32, &body(stride), 0);
        assert_eq!(cycles, 2 + latency + 4 * passes - 1, "the fourth of four loads, {passes} passes each");
    }
}
