//! Tensor cores and asynchronous copies as a data sheet: a rule each, as a pair where it is about time.
//!
//! One warp of 32 lanes; the time between two instructions is taken with `%clock64`, as in `datasheet_sm.rs`.

use crate::bench_machine::{Bench, SETTLE, machine};
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::run::Experiment;

/// What a warp of the kernel stored to `out`, as 64-bit words. `body` finds 4096 bytes from `%a` on, the word at
/// `4 i` is `i + 1`, and 512 bytes of shared memory, all zeros.
fn stored(spec: &MachineSpec, body: &str) -> Vec<u64> {
    let mut bench = Bench::new(spec.clone());
    let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(4096, Medium::Dram));
    bench.put_u32s(a, &(1..=1024).collect::<Vec<u32>>());
    let body = format!(".shared .align 16 .b8 tile[512];\n{body}");
    bench.launch(&body, 1, 32, (out, a, 0, 3));
    bench.run().u64s(out, 8)
}

/// Cycles from one clock read to the next around `measured`.
fn cycles(spec: &MachineSpec, before: &str, measured: &str, after: &str) -> u64 {
    stored(
        spec,
        &format!(
            "{before}{SETTLE}mov.u64 %d60, %clock64;\n{measured}\nmov.u64 %d61, %clock64;\nsub.s64 %d62, %d61, %d60;\n\
             st.global.u64 [%out], %d62;\n{after}"
        ),
    )[0]
}

const TENSOR: &str = "tensor.matrix_cycles=40 tensor.matrix_interval_cycles=9 tensor.half_cycles=23 \
                      tensor.half_interval_cycles=5";

/// A product of each class into `%f` registers from this one on.
fn products(first: u32) -> [String; 2] {
    let d = format!("{{%f{first}, %f{}, %f{}, %f{}}}", first + 1, first + 2, first + 3);
    let c = "{%f0, %f1, %f2, %f3}";
    [
        format!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {c};"),
        format!("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {d}, {{%r1, %r2}}, {{%r5}}, {c};"),
    ]
}

fn operands() -> String {
    let registers: String = (1..=6).map(|i| format!("add.s32 %r{i}, %n, {i};\n")).collect();
    registers + &(0..4).map(|i| format!("cvt.rn.f32.s32 %f{i}, %n;\n")).collect::<String>()
}

#[test]
fn a_product_can_be_used_after_its_latency_and_not_a_cycle_earlier() {
    let spec = machine("agpm-table4", TENSOR);
    for (product, latency) in products(8).iter().zip([40, 23]) {
        let after = "st.global.u32 [%a], %r59;";
        let got = cycles(&spec, &operands(), &format!("{product}\nmov.b32 %r59, %f11;"), after);
        // Reading the clock is a move; the second read waits for the interval of one.
        assert_eq!(got, 1 + latency + u64::from(spec.interval.logic_cycles), "{product}");
    }
}

#[test]
fn two_products_issue_their_interval_apart() {
    let spec = machine("agpm-table4", TENSOR);
    let (first, second) = (products(8), products(12));
    for (at, interval) in [9, 5].into_iter().enumerate() {
        let pair = format!("{}\n{}", first[at], second[at]);
        let keep = "mov.b32 %r59, %f8;\nmov.b32 %r58, %f12;\nst.global.v2.u32 [%a], {%r58, %r59};";
        assert_eq!(cycles(&spec, &operands(), &pair, keep), 1 + interval + 1, "{pair}");
    }
}

#[test]
fn a_matrix_is_loaded_as_fast_as_any_row_of_shared_memory_and_four_take_three_passes_more() {
    let spec = machine("ampere-a100", "");
    let address = "shl.b32 %r1, %tid, 4;\nmov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\n";
    let load = |instruction: &str| {
        let measured = format!("{instruction}\nmov.b32 %r59, %r10;");
        cycles(&spec, address, &measured, "st.global.u32 [%a], %r59;")
    };
    let word = load("ld.shared.b32 %r10, [tile];");
    let of =
        |count: u32, list: &str| load(&format!("ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{list}}}, [%r1];"));
    let times = [of(1, "%r10"), of(2, "%r10, %r11"), of(4, "%r10, %r11, %r12, %r13")];
    assert_eq!(times, [word, word + 1, word + 3]);
}

/// `ampere-a100` with an L1 that its copies hit after the first access to a line.
fn warm() -> MachineSpec {
    machine("ampere-a100", "l1.global_loads=true")
}

/// The address in shared memory in `%r1`, that in global memory in `%d1`, the line of which is in the L1.
const WARM: &str = "shl.b32 %r1, %tid, 2;
mov.u32 %r2, tile;
add.u32 %r1, %r1, %r2;
cvt.u64.u32 %d1, %tid;
shl.b64 %d1, %d1, 2;
add.u64 %d1, %a, %d1;
ld.global.u32 %r3, [%d1];
add.u32 %r4, %r3, 1;
";

#[test]
fn a_copy_is_in_shared_memory_when_a_load_would_be_in_its_register_and_not_a_cycle_earlier() {
    let spec = warm();
    let load = cycles(&spec, WARM, "ld.global.u32 %r10, [%d1];\nmov.b32 %r59, %r10;", "st.global.u32 [%a+64], %r59;");
    // From the issue of the load to that of what uses it.
    let interval = u64::from(spec.interval.logic_cycles);
    let latency = load - interval - 1;
    let mut seen = [false; 2];
    for fillers in 0..40 {
        // Each filler waits for the one before.
        let filler = "add.s32 %r20, %r20, %r20;\n".repeat(fillers);
        let words = stored(
            &spec,
            &format!(
                "{WARM}mov.u32 %r20, 1;\n{SETTLE}mov.u64 %d60, %clock64;\ncp.async.ca.shared.global [%r1], [%d1], 4;\n\
                 {filler}mov.u64 %d61, %clock64;\nld.shared.u32 %r10, [%r1];\nsub.s64 %d62, %d61, %d60;\n\
                 cp.async.wait_all;\nst.global.u32 [%a+64], %r20;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra END;\n\
                 cvt.u64.u32 %d63, %r10;\nst.global.u64 [%out], %d62;\nst.global.u64 [%out+8], %d63;\nEND:"
            ),
        );
        // The copy issues a cycle after the first clock, the load of shared memory a cycle after the second.
        let passed = words[0];
        let arrived = words[1] == 1;
        assert!(arrived || words[1] == 0, "{words:?}");
        assert_eq!(arrived, passed >= latency, "{passed} cycles after the copy, which takes {latency}");
        seen[usize::from(arrived)] |= passed + 4 >= latency && passed < latency + 4;
    }
    assert_eq!(seen, [true; 2], "both sides of the boundary were looked at");
}

#[test]
fn a_copy_of_which_no_lane_reads_a_byte_writes_zeros_for_every_lane() {
    // Every word of the tile is 7 before the copy.
    let words = stored(
        &warm(),
        &format!(
            "{WARM}mov.u32 %r5, 7;\nst.shared.u32 [%r1], %r5;\nmov.u32 %r6, 0;\n\
             cp.async.ca.shared.global [%r1], [%d1], 4, %r6;\ncp.async.wait_all;\nld.shared.u32 %r10, [%r1];\n\
             setp.eq.u32 %p1, %r10, 0;\nvote.sync.ballot.b32 %r11, %p1, 0xffffffff;\ncvt.u64.u32 %d2, %r11;\n\
             st.global.u64 [%out], %d2;"
        ),
    );
    assert_eq!(words[0], 0xffff_ffff);
}

#[test]
fn wait_group_1_leaves_the_last_group_under_way() {
    // The first copy hits the L1, the second comes from memory.
    let words = stored(
        &warm(),
        &format!(
            "{WARM}{SETTLE}mov.u64 %d60, %clock64;\ncp.async.ca.shared.global [%r1], [%d1], 4;\ncp.async.commit_group;\n\
             cp.async.ca.shared.global [%r1+128], [%d1+2048], 4;\ncp.async.commit_group;\n\
             cp.async.wait_group 1;\nmov.u64 %d61, %clock64;\nld.shared.u32 %r10, [%r1];\nld.shared.u32 %r11, [%r1+128];\n\
             cp.async.wait_group 0;\nmov.u64 %d62, %clock64;\nld.shared.u32 %r12, [%r1+128];\n\
             sub.s64 %d61, %d61, %d60;\nsub.s64 %d62, %d62, %d60;\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra END;\n\
             cvt.u64.u32 %d1, %r10;\ncvt.u64.u32 %d2, %r11;\ncvt.u64.u32 %d3, %r12;\nst.global.u64 [%out], %d61;\n\
             st.global.u64 [%out+8], %d62;\nst.global.u64 [%out+16], %d1;\nst.global.u64 [%out+24], %d2;\n\
             st.global.u64 [%out+32], %d3;\nEND:"
        ),
    );
    assert!(words[0] < 60 && words[1] > 200, "cycles of both waits: {words:?}");
    assert_eq!(words[2..5], [1, 0, 513], "the first group, the second before and after its wait");
}

#[test]
fn an_arrival_behind_copies_comes_with_their_last_byte() {
    // A phase of 32 arrivals, which come when the copy from memory has: the wait before it finds old bytes.
    let words = stored(
        &warm(),
        &format!(
            ".shared .align 8 .b64 bar;\n{WARM}setp.ne.u32 %p1, %tid, 0;\n@!%p1 mbarrier.init.shared.b64 [bar], 32;\n\
             bar.sync 0;\n{SETTLE}mov.u64 %d60, %clock64;\n\
             cp.async.ca.shared.global [%r1+128], [%d1+2048], 4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n\
             mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\nld.shared.u32 %r11, [%r1+128];\nselp.u32 %r12, 1, 0, %p2;\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\nld.shared.u32 %r13, [%r1+128];\n\
             mov.u64 %d61, %clock64;\nsub.s64 %d61, %d61, %d60;\n@%p1 bra END;\n\
             cvt.u64.u32 %d1, %r11;\ncvt.u64.u32 %d2, %r12;\ncvt.u64.u32 %d3, %r13;\nst.global.u64 [%out], %d1;\n\
             st.global.u64 [%out+8], %d2;\nst.global.u64 [%out+16], %d3;\nst.global.u64 [%out+24], %d61;\nEND:"
        ),
    );
    assert_eq!(words[..3], [0, 0, 513], "bytes before, the phase then, bytes after it");
    assert!(words[3] > 200, "cycles until the phase was over: {}", words[3]);
}

#[test]
fn a_wait_for_nothing_passes_at_once() {
    let spec = warm();
    let control = u64::from(spec.interval.control_cycles);
    let got = cycles(&spec, "", "cp.async.commit_group;\ncp.async.wait_group 0;\ncp.async.wait_all;", "");
    assert_eq!(got, u64::from(spec.interval.logic_cycles) + 3 * control, "three instructions of the class control");
}

#[test]
fn machines_without_tensor_cores_refuse_matrices_before_the_run_and_name_those_that_have_some() {
    for machine in ["titan-x", "agpm-table4", "scoped-table2"] {
        let fault = Experiment::of("gemm_tensor").machine(machine).profile("ci").run().unwrap_err().to_string();
        assert!(fault.contains("gemm_tensor/kernel.ptx:") && fault.contains("has no tensor cores"), "{fault}");
        assert!(fault.contains("machines that have: volta-v100, ampere-a100"), "{fault}");
    }
}

#[test]
fn a_product_of_matrices_on_its_default_machine_counts_what_tensor_cores_did() {
    let outcome = Experiment::of("gemm_tensor").profile("ci").run().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.machine.name, "ampere-a100");
    assert!(outcome.verification.as_ref().is_some_and(|check| check.passed));
    // 64 x 128 x 96 of ci, 16 x 8 x 16 a product; four warps of two CTAs load 2 x 2 fragments for 8 products.
    let products = 64 * 128 * 96 / (16 * 8 * 16);
    assert_eq!(outcome.total("tensor", "matrix_instructions"), products);
    assert_eq!(outcome.total("tensor", "matrix_loads"), products / 2);
    // Tiles of 64 x 32 and 32 x 64 halves, 3 a CTA, 16 bytes a lane.
    let bytes = 2 * 3 * (64 * 32 + 32 * 64) * 2;
    assert_eq!(outcome.total("tensor", "async_copy_bytes"), bytes);
    assert_eq!(outcome.total("tensor", "async_copies"), bytes / 16 / 32);
    assert_eq!(
        outcome.total("sm", "shared_conflict_passes"),
        3 * products / 2,
        "four passes of a matrix load, no more"
    );
}
