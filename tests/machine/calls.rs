//! Indirect calls on the timed machine: the functional driver's memory, and its faults.

use crate::bench_machine::{Bench, machine};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;

const TABLE: &str = "
.const .align 8 .u64 table[2] = {twice, square};
.func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %x<2>;
    ld.param.u32 %x1, [a]; add.u32 %x1, %x1, %x1; st.param.b32 [r], %x1; ret; }
.func (.param .b32 r) square(.param .b32 a) { .reg .b32 %x<2>;
    ld.param.u32 %x1, [a]; mul.lo.u32 %x1, %x1, %x1; st.param.b32 [r], %x1; ret; }
";

/// Odd threads square their number, even ones double it.
const BODY: &str = "and.b32 %r1, %tid, 1;
mul.wide.u32 %d1, %r1, 8;
mov.u64 %d2, table;
add.s64 %d2, %d2, %d1;
ld.const.u64 %d2, [%d2];
{ .param .b32 p; .param .b32 q; st.param.b32 [p], %id;
t: .calltargets twice, square;
call (q), %d2, (p), t;
ld.param.b32 %r2, [q]; }
mul.wide.u32 %d1, %id, 4;
add.s64 %d1, %d1, %out;
st.global.u32 [%d1], %r2;";

#[test]
fn lanes_call_different_functions_and_meet_again() {
    let mut bench = Bench::new(machine("agpm-table4", "sm.count=2"));
    let out = bench.buffer(4 * 200, Medium::Dram);
    bench.launch_with(TABLE, BODY, 2, 100, (out, 0, 0, 0));
    let ran = bench.run();
    let expected: Vec<u32> = (0..200).map(|i| if i % 2 == 0 { 2 * i } else { i * i }).collect();
    assert_eq!(ran.u32s(out, 200), expected);
    assert!(ran.memory == bench.functional());
    // Each of the eight warps parts once, at the first comparison, and not again.
    assert_eq!(ran.sm("divergent_branches"), 8);
}

#[test]
fn a_call_of_what_is_no_function_ends_the_run() {
    let mut bench = Bench::new(machine("agpm-table4", "sm.count=2"));
    let body = BODY.replace("ld.const.u64 %d2, [%d2];", "setp.eq.u32 %p1, %id, 9;\n@%p1 mov.u64 %d2, 77;");
    bench.launch_with(TABLE, &body.replace("add.s64 %d2, %d2, %d1;", "mov.u64 %d2, twice;"), 1, 32, (0, 0, 0, 0));
    let RunEnd::Failed { error, .. } = bench.run_with(&RunOptions::default()).end else { panic!("it has a fault") };
    let said = error.to_string();
    assert!(said.contains("kernel `k`, CTA (0,0,0) thread (9,0,0): indirect call of 0x4d, which is"), "{said}");
}
