//! Indirect calls and recursion on the timed machine: the functional driver's memory and faults, the stack's traffic.

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

/// n-th Fibonacci number, by double recursion.
const FIBONACCI: &str = "
.func (.param .b32 r) fibonacci(.param .b32 n) {
    .reg .b32 %x<6>; .reg .pred %q<2>;
    ld.param.u32 %x1, [n]; mov.u32 %x5, %x1; setp.lt.u32 %q1, %x1, 2; @%q1 bra DONE;
    sub.u32 %x2, %x1, 1;
    { .param .b32 p; .param .b32 s; st.param.b32 [p], %x2; call (s), fibonacci, (p); ld.param.b32 %x3, [s]; }
    sub.u32 %x2, %x1, 2;
    { .param .b32 p; .param .b32 s; st.param.b32 [p], %x2; call (s), fibonacci, (p); ld.param.b32 %x4, [s]; }
    add.u32 %x5, %x3, %x4;
DONE: st.param.b32 [r], %x5; ret; }
";

/// Each thread stores the Fibonacci number of `%r1`.
fn fibonacci_of(r1: &str) -> String {
    format!(
        "{r1}
{{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
call (q), fibonacci, (p);
ld.param.b32 %r2, [q]; }}
mul.wide.u32 %d1, %id, 4;
add.s64 %d1, %d1, %out;
st.global.u32 [%d1], %r2;"
    )
}

#[test]
fn lanes_at_different_depths_leave_the_functional_memory_at_any_number_of_threads() {
    for overrides in ["sm.count=2", "sm.count=2 sm.warp_size=64 l1.kb=3 l2.slice_kb=4"] {
        let mut bench = Bench::new(machine("agpm-table4", overrides));
        let out = bench.buffer(4 * 200, Medium::Nvm);
        bench.launch_with(FIBONACCI, &fibonacci_of("rem.u32 %r1, %id, 11;"), 2, 100, (out, 0, 0, 0));
        let ran = bench.run();
        let numbers = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55];
        let expected: Vec<u32> = (0..200).map(|i| numbers[i % 11]).collect();
        assert_eq!(ran.u32s(out, 200), expected, "{overrides}");
        assert!(ran.memory == bench.functional());
        let three = bench.run_with(&RunOptions { threads: 3, oversubscribe: true, ..RunOptions::default() });
        assert!(matches!(three.end, RunEnd::Finished { .. }) && three.memory == ran.memory);
        assert_eq!((three.ticks(0), three.sm("warp_instructions")), (ran.ticks(0), ran.sm("warp_instructions")));
    }
}

#[test]
fn the_stack_is_in_local_memory_where_its_accesses_take_time() {
    let run = |n: u32| {
        let mut bench = Bench::new(machine("agpm-table4", "sm.count=1"));
        let out = bench.buffer(4, Medium::Dram);
        bench.launch_with(FIBONACCI, &fibonacci_of(&format!("mov.u32 %r1, {n};")), 1, 1, (out, 0, 0, 0));
        let ran = bench.run();
        (ran.sm("l1_stores"), ran.sm("l1_loads"), ran.ticks(0))
    };
    let (zero, two) = (run(0), run(2));
    // fibonacci(0): the return site is stored and loaded. fibonacci(2): that of three activations; `n` before the first
    // call, the first result before the second, each loaded behind its call.
    assert_eq!((zero.0, zero.1), (2, 1), "one store is of the result");
    assert_eq!((two.0 - zero.0, two.1 - zero.1), (2 + 2, 2 + 2));
    assert!(two.2 > zero.2);
}

#[test]
fn a_stack_without_room_ends_the_run_as_on_the_functional_driver() {
    let mut bench = Bench::new(machine("agpm-table4", "sm.count=2"));
    let endless = FIBONACCI.replace("setp.lt.u32 %q1, %x1, 2;", "setp.lt.u32 %q1, %x1, 0;");
    bench.launch_with(&endless, &fibonacci_of("mov.u32 %r1, %tid;"), 1, 32, (0, 0, 0, 0));
    let RunEnd::Failed { error, .. } = bench.run_with(&RunOptions::default()).end else { panic!("it has a fault") };
    let said = error.to_string();
    let functional = std::panic::catch_unwind(|| bench.functional()).expect_err("it has the fault, too");
    assert_eq!(functional.downcast_ref::<String>(), Some(&said));
    // Return site and `n`: 64 frames of 16 bytes.
    assert!(said.contains("thread (0,0,0): stack overflow at depth 65: 1024 bytes a thread"), "{said}");
}
