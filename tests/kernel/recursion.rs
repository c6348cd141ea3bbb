//! Functions that call themselves, on the functional driver: values by hand, lanes at different depths, the stack.

use crate::ptx_common::{Ran, Setup, run_text};
use proptest::prelude::*;

/// n! by `call` of itself; `n` is alive across the call.
const FACTORIAL: &str = "
.func (.param .b64 r) factorial(.param .b32 n) {
    .reg .b32 %x<3>; .reg .b64 %y<4>; .reg .pred %q<2>;
    ld.param.u32 %x1, [n]; mov.u64 %y1, 1; setp.le.u32 %q1, %x1, 1; @%q1 bra DONE;
    sub.u32 %x2, %x1, 1;
    { .param .b32 p; .param .b64 s; st.param.b32 [p], %x2; call.uni (s), factorial, (p); ld.param.b64 %y2, [s]; }
    cvt.u64.u32 %y3, %x1; mul.lo.u64 %y1, %y2, %y3;
DONE: st.param.b64 [r], %y1; ret; }
";

/// Thread `i` calls `function` with `i + from` and stores 64 bits, zero-extended from `bits`.
fn each_thread(functions: &str, function: &str, bits: u32, from: u32) -> String {
    let widen = if bits == 32 { "cvt.u64.u32 %rd3, %r3;" } else { "" };
    let result = if bits == 32 { "%r3" } else { "%rd3" };
    format!(
        "{functions}
.visible .entry k(.param .u64 in, .param .u64 out) {{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;
    mov.u32 %r1, %tid.x; add.u32 %r2, %r1, {from};
    {{ .param .b32 p; .param .b{bits} q; st.param.b32 [p], %r2;
call (q), {function}, (p); ld.param.b{bits} {result}, [q]; }}
    {widen}
    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2;
    st.global.u64 [%rd1], %rd3;
    ret;
}}"
    )
}

fn run(text: &str, threads: u32) -> Ran {
    run_text(text, &Setup { output: 8 * threads as usize, shape: (1, threads), ..Setup::default() })
}

fn values(text: &str, threads: u32) -> Vec<u64> {
    let ran = run(text, threads);
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    ran.u64s()
}

#[test]
fn factorials_of_lanes_at_different_depths() {
    let expected = [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800];
    assert_eq!(values(&each_thread(FACTORIAL, "factorial", 64, 0), 11), expected);
    assert_eq!(values(&each_thread(FACTORIAL, "factorial", 64, 20), 1), [2_432_902_008_176_640_000]);
}

#[test]
fn the_code_of_a_recursive_function_is_there_once() {
    let module = |text: String| durawarp::kernel::ptx::parse("k.ptx", &format!(".version 8.0 {text}")).unwrap();
    let kernel = &module(each_thread(FACTORIAL, "factorial", 64, 0)).kernels[0];
    // Variables of the kernel: none. The stack: 1,024 bytes.
    assert_eq!((kernel.local_bytes, kernel.stack_bytes), (1024, 1024));
    let once = kernel.code.len();
    let call = "{ .param .b32 p; .param .b64 q; st.param.b32 [p], %r2; call (q), factorial, (p); }";
    let twice = each_thread(FACTORIAL, "factorial", 64, 0).replace("ret;\n}", &format!("{call} ret;\n}}"));
    assert!(module(twice).kernels[0].code.len() < once + 10);
}

/// Two calls a level, whose results and parameter are alive across the other.
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

#[test]
fn fibonacci_numbers_by_double_recursion() {
    let expected = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144];
    for (warp_size, threads) in [(32, 13), (64, 13)] {
        let setup = Setup { output: 8 * 13, shape: (1, threads), warp_size, ..Setup::default() };
        let ran = run_text(&each_thread(FIBONACCI, "fibonacci", 32, 0), &setup);
        assert!(ran.result.is_ok(), "{:?}", ran.result);
        assert_eq!(ran.u64s(), expected);
    }
}

#[test]
fn two_functions_that_call_each_other() {
    let other = |name: &str, calls: &str, at_zero: u32| {
        format!(
            ".func (.param .b32 r) {name}(.param .b32 n) {{
    .reg .b32 %x<4>; .reg .pred %q<2>;
    ld.param.u32 %x1, [n]; mov.u32 %x2, {at_zero}; setp.eq.u32 %q1, %x1, 0; @%q1 bra DONE;
    sub.u32 %x1, %x1, 1;
    {{ .param .b32 p; .param .b32 s; st.param.b32 [p], %x1; call (s), {calls}, (p); ld.param.b32 %x2, [s]; }}
DONE: st.param.b32 [r], %x2; ret; }}\n"
        )
    };
    let functions = other("even", "odd", 1) + &other("odd", "even", 0);
    assert_eq!(values(&each_thread(&functions, "even", 32, 0), 8), [1, 0, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn a_function_calls_itself_through_a_table() {
    let table = ".global .u64 table[1] = {factorial};\n";
    let functions = FACTORIAL.replace(
        "call.uni (s), factorial, (p);",
        "ld.global.u64 %y3, [table]; list: .callprototype (.param .b64 _) _ (.param .b32 _); call (s), %y3, (p), list;",
    );
    assert_eq!(values(&each_thread(&format!("{table}{functions}"), "factorial", 64, 3), 4), [6, 24, 120, 720]);
}

#[test]
fn what_a_compiler_makes_of_a_table_and_a_function_that_calls_itself_through_it() {
    // Entry 1 squares, entry 2 is a factorial that takes its own address from the table.
    let setup = Setup { output: 4 * 12, shape: (1, 12), ..Setup::default() };
    let ran = run_text(include_str!("ptx/calls.llc.ptx"), &setup);
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(ran.u32s(), [0, 1, 4, 6, 16, 120, 36, 5040, 64, 362880, 100, 39916800]);
}

#[test]
fn register_parameters_are_exchanged_and_a_predicate_survives_the_call() {
    // gcd(a, b) = b == 0 ? a : gcd(b, a mod b), plus 1,000 for each level at which a is odd.
    let gcd = "
.func (.reg .b32 r) gcd(.reg .b32 a, .reg .b32 b) {
    .reg .b32 %x<4>; .reg .pred %q<4>;
    mov.u32 r, a; setp.eq.u32 %q1, b, 0; and.b32 %x1, a, 1; setp.ne.u32 %q2, %x1, 0; @%q1 bra DONE;
    rem.u32 a, a, b;
    call (r), gcd, (b, a);
DONE: @%q2 add.u32 r, r, 1000; ret; }
.func (.param .b32 r) of(.param .b32 n) { .reg .b32 %x<3>;
    ld.param.u32 %x1, [n]; call (%x2), gcd, (%x1, 21); st.param.b32 [r], %x2; ret; }
";
    let expected = |n: u64| {
        let (mut a, mut b, mut odd) = (n, 21, 0);
        loop {
            odd += a % 2;
            if b == 0 {
                return a + 1000 * odd;
            }
            (a, b) = (b, a % b);
        }
    };
    let expected: Vec<u64> = (10..40).map(expected).collect();
    assert_eq!(expected[4], 7 + 2000, "14 and 21, 21 and 14, 14 and 7, 7 and 0");
    assert_eq!(values(&each_thread(gcd, "of", 32, 10), 30), expected);
}

#[test]
fn lanes_walk_parts_of_a_tree_of_their_own() {
    // Nodes from 1: value, left child, right child. Node 0 is no node.
    const TREE: [[u32; 3]; 9] =
        [[0, 0, 0], [7, 2, 3], [1, 4, 0], [4, 5, 6], [2, 0, 0], [9, 7, 0], [3, 0, 8], [5, 0, 0], [6, 0, 0]];
    let walk = "
.func (.param .b32 r) walk(.param .b64 tree, .param .b32 node) {
    .reg .b32 %x<6>; .reg .b64 %y<4>; .reg .pred %q<2>;
    ld.param.u64 %y1, [tree]; ld.param.u32 %x1, [node]; mov.u32 %x2, 0;
    setp.eq.u32 %q1, %x1, 0; @%q1 bra DONE;
    mul.wide.u32 %y2, %x1, 12; add.s64 %y2, %y2, %y1; ld.global.u32 %x2, [%y2];
    ld.global.u32 %x3, [%y2+4]; ld.global.u32 %x4, [%y2+8];
    { .param .b64 p0; .param .b32 p1; .param .b32 s; st.param.b64 [p0], %y1; st.param.b32 [p1], %x3;
      call (s), walk, (p0, p1); ld.param.b32 %x5, [s]; }
    mad.lo.u32 %x2, %x5, 3, %x2;
    { .param .b64 p0; .param .b32 p1; .param .b32 s; st.param.b64 [p0], %y1; st.param.b32 [p1], %x4;
      call (s), walk, (p0, p1); ld.param.b32 %x5, [s]; }
    mad.lo.u32 %x2, %x5, 5, %x2;
DONE: st.param.b32 [r], %x2; ret; }
.visible .entry k(.param .u64 in, .param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x;
    { .param .b64 p0; .param .b32 p1; .param .b32 s; st.param.b64 [p0], %rd1; st.param.b32 [p1], %r1;
      call (s), walk, (p0, p1); ld.param.b32 %r2, [s]; }
    mul.wide.u32 %rd3, %r1, 8; add.s64 %rd2, %rd2, %rd3; cvt.u64.u32 %rd4, %r2; st.global.u64 [%rd2], %rd4; ret;
}";
    fn weighted(node: usize) -> u64 {
        let [value, left, right] = TREE[node].map(u64::from);
        if node == 0 { 0 } else { value + 3 * weighted(left as usize) + 5 * weighted(right as usize) }
    }
    let input: Vec<u8> = TREE.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let setup = Setup { input: &input, output: 8 * 9, shape: (1, 9), ..Setup::default() };
    let ran = run_text(walk, &setup);
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let expected: Vec<u64> = (0..9).map(weighted).collect();
    assert_eq!(expected[3], 4 + 3 * (9 + 3 * 5) + 5 * (3 + 5 * 6));
    assert_eq!(ran.u64s(), expected);
}

/// Each thread sorts ten bytes in its local memory.
pub(crate) const SORT: &str = "
.func sort(.param .b64 a, .param .b32 low, .param .b32 high) {
    .reg .b32 %x<9>; .reg .b64 %y<9>; .reg .pred %q<3>;
    ld.param.u64 %y1, [a]; ld.param.s32 %x1, [low]; ld.param.s32 %x2, [high];
    setp.ge.s32 %q1, %x1, %x2; @%q1 ret;
    mul.wide.s32 %y2, %x2, 4; add.s64 %y2, %y2, %y1; ld.local.u32 %x3, [%y2];
    mov.u32 %x4, %x1; mov.u32 %x5, %x1;
LOOP: mul.wide.s32 %y3, %x5, 4; add.s64 %y3, %y3, %y1; ld.local.u32 %x6, [%y3];
    setp.ge.u32 %q1, %x6, %x3; @%q1 bra NEXT;
    mul.wide.s32 %y4, %x4, 4; add.s64 %y4, %y4, %y1; ld.local.u32 %x7, [%y4];
    st.local.u32 [%y4], %x6; st.local.u32 [%y3], %x7; add.s32 %x4, %x4, 1;
NEXT: add.s32 %x5, %x5, 1; setp.lt.s32 %q2, %x5, %x2; @%q2 bra LOOP;
    mul.wide.s32 %y4, %x4, 4; add.s64 %y4, %y4, %y1; ld.local.u32 %x7, [%y4];
    st.local.u32 [%y4], %x3; st.local.u32 [%y2], %x7;
    sub.s32 %x8, %x4, 1; add.s32 %x4, %x4, 1;
    { .param .b64 p0; .param .b32 p1; .param .b32 p2;
      st.param.b64 [p0], %y1; st.param.b32 [p1], %x1; st.param.b32 [p2], %x8; call sort, (p0, p1, p2); }
    { .param .b64 p0; .param .b32 p1; .param .b32 p2;
      st.param.b64 [p0], %y1; st.param.b32 [p1], %x4; st.param.b32 [p2], %x2; call sort, (p0, p1, p2); }
    ret; }
.visible .entry k(.param .u64 in, .param .u64 out) {
    .local .align 4 .b8 array[40];
    .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .pred %p<2>;
    mov.u32 %r1, %tid.x; mov.u64 %rd1, array; mad.lo.u32 %r2, %r1, 2654435761, 12345; mov.u32 %r3, 0; mov.u64 %rd2, %rd1;
FILL: mul.lo.u32 %r2, %r2, 1664525; add.u32 %r2, %r2, 1013904223; shr.u32 %r4, %r2, 24; st.local.u32 [%rd2], %r4;
    add.s64 %rd2, %rd2, 4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 10; @%p1 bra FILL;
    call sort, (%rd1, 0, 9);
    ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 40; add.s64 %rd3, %rd3, %rd4; mov.u32 %r3, 0;
COPY: ld.local.u32 %r4, [%rd1]; st.global.u32 [%rd3], %r4; add.s64 %rd1, %rd1, 4; add.s64 %rd3, %rd3, 4;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 10; @%p1 bra COPY; ret;
}";

#[test]
fn quicksort_of_an_array_in_local_memory() {
    let ran = run_text(SORT, &Setup { output: 40 * 32, shape: (1, 32), ..Setup::default() });
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let sorted = |thread: u32| {
        let mut state = thread.wrapping_mul(2654435761).wrapping_add(12345);
        let mut next = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            state >> 24
        };
        let mut values: Vec<u32> = (0..10).map(|_| next()).collect();
        values.sort_unstable();
        values
    };
    assert_eq!(ran.u32s(), (0..32).flat_map(sorted).collect::<Vec<u32>>());
}

#[test]
fn each_activation_has_local_variables_of_its_own() {
    // down(n, p): own = 0; if n != 0 down(n - 1, &own); *p = n + 2 own. So t(n) = n + 2 t(n - 1).
    for address in ["mov.u64 %y2, own;", "mov.u64 %y2, own; cvta.local.u64 %y2, %y2;"] {
        let (load, store) = if address.contains("cvta") { ("ld", "st") } else { ("ld.local", "st.local") };
        let functions = format!(
            ".func down(.param .b32 n, .param .b64 p) {{
    .local .align 4 .u32 own[3]; .reg .b32 %x<4>; .reg .b64 %y<4>; .reg .pred %q<2>;
    ld.param.u32 %x1, [n]; ld.param.u64 %y1, [p]; st.local.u32 [own+8], 0; {address} add.s64 %y2, %y2, 8;
    setp.eq.u32 %q1, %x1, 0; @%q1 bra DONE;
    sub.u32 %x2, %x1, 1; call down, (%x2, %y2);
DONE: ld.local.u32 %x3, [own+8]; mad.lo.u32 %x3, %x3, 2, %x1; {store}.u32 [%y1], %x3; ret; }}
.func (.param .b32 r) start(.param .b32 n) {{
    .local .align 4 .u32 own[3]; .reg .b32 %x<4>; .reg .b64 %y<4>;
    ld.param.u32 %x1, [n]; {address} call down, (%x1, %y2); {load}.u32 %x2, [%y2]; st.param.b32 [r], %x2; ret; }}\n"
        );
        assert_eq!(values(&each_thread(&functions, "start", 32, 0), 5), [0, 1, 4, 11, 26], "{address}");
    }
}

#[test]
fn structures_go_by_value_in_registers_or_in_the_frame() {
    // step((x, y), n) = n == 0 ? (x, y) : step((y, x + y), n - 1).
    for first in ["ld.param.u32 %x1, [s];", "mov.b64 %y1, s; ld.param.u32 %x1, [%y1];"] {
        let functions = format!(
            ".func (.param .align 4 .b8 r[8]) step(.param .align 4 .b8 s[8], .param .b32 n) {{
    .reg .b32 %x<6>; .reg .b64 %y<2>; .reg .pred %q<2>;
    {first} ld.param.u32 %x2, [s+4]; ld.param.u32 %x3, [n]; setp.eq.u32 %q1, %x3, 0; @%q1 bra DONE;
    add.u32 %x4, %x1, %x2; sub.u32 %x5, %x3, 1;
    {{ .param .align 4 .b8 p0[8]; .param .b32 p1; .param .align 4 .b8 q0[8];
      st.param.b32 [p0], %x2; st.param.b32 [p0+4], %x4; st.param.b32 [p1], %x5; call (q0), step, (p0, p1);
      ld.param.b32 %x1, [q0]; ld.param.b32 %x2, [q0+4]; }}
DONE: st.param.b32 [r], %x1; st.param.b32 [r+4], %x2; ret; }}
.func (.param .b32 r) of(.param .b32 n) {{ .reg .b32 %x<6>;
    .param .align 4 .b8 p0[8]; .param .b32 p1; .param .align 4 .b8 q0[8]; ld.param.u32 %x1, [n];
    st.param.b32 [p0], 0; st.param.b32 [p0+4], 1; st.param.b32 [p1], %x1; call (q0), step, (p0, p1);
    ld.param.b32 %x1, [q0]; ld.param.b32 %x2, [q0+4]; mad.lo.u32 %x1, %x1, 1000, %x2; st.param.b32 [r], %x1; ret; }}\n"
        );
        let expected = [1, 1001, 1002, 2003, 3005, 5008, 8013, 13021];
        assert_eq!(values(&each_thread(&functions, "of", 32, 0), 8), expected, "{first}");
    }
}

#[test]
fn lanes_meet_behind_the_call_whatever_their_depths() {
    // Between two recursive calls every lane adds one in shared memory and waits; then each counts the active lanes.
    let call =
        "{ .param .b32 p; .param .b64 q; st.param.b32 [p], %r4; call (q), factorial, (p); ld.param.b64 %rd4, [q]; }";
    let meet = "mov.u32 %r5, sum; atom.shared.add.u32 %r6, [%r5], 1; bar.sync 0; ld.shared.u32 %r6, [%r5];";
    let count = "activemask.b32 %r7; popc.b32 %r7, %r7; mad.lo.u32 %r6, %r6, 100, %r7; cvt.u64.u32 %rd3, %r6;";
    let text = format!(
        "{FACTORIAL} .visible .entry k(.param .u64 in, .param .u64 out) {{ .shared .u32 sum;
    .reg .b32 %r<9>; .reg .b64 %rd<9>;
    mov.u32 %r1, %tid.x; and.b32 %r4, %r1, 7; {call} {meet} sub.u32 %r4, 9, %r4; {call} {count}
    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2; st.global.u64 [%rd1], %rd3; ret; }}"
    );
    assert_eq!(values(&text, 64), [6432; 64]);
}

#[test]
fn lanes_that_exit_in_a_recursive_function_are_not_awaited() {
    for (test, out) in
        [("@%q1 exit;", ""), ("@%q1 bra OUT;", "OUT: add.u32 %x1, %x1, 1; mul.lo.u32 %x1, %x1, 2; exit;")]
    {
        let text = FACTORIAL
            .replace("mov.u64 %y1, 1;", &format!("mov.u64 %y1, 1; setp.eq.u32 %q1, %x1, 3; {test}"))
            .replace("ret; }", &format!("ret; {out} }}"));
        assert_eq!(values(&each_thread(&text, "factorial", 64, 0), 6), [1, 1, 2, 0, 0, 0], "{test}");
    }
}

#[test]
fn a_stack_without_room_is_a_fault_with_its_line_and_depth() {
    // A frame holds the return site (8 bytes) and `n`, 16 bytes with its padding: 64 frames fit.
    let text = each_thread(FACTORIAL, "factorial", 64, 60);
    assert!(run(&text, 5).result.is_ok(), "60 to 64 frames");
    let line = 1 + text.lines().position(|line| line.contains("call.uni")).unwrap();
    let said = run(&text, 8).result.unwrap_err().to_string();
    let head = format!("test.ptx:{line}:");
    let tail = "kernel `k`, CTA (0,0,0) thread (5,0,0): stack overflow at depth 65: \
        1024 bytes a thread have no room for this call's frame";
    assert!(said.starts_with(&head) && said.ends_with(tail), "{said}");
    // A frame that no stack could hold.
    let large = FACTORIAL.replace(".reg .b32 %x<3>;", ".reg .b32 %x<3>; .local .b8 large[2000];");
    let said = run(&each_thread(&large, "factorial", 64, 0), 1).result.unwrap_err().to_string();
    assert!(said.contains("stack overflow at depth 1: "), "{said}");
}

#[test]
fn an_overwritten_return_site_is_a_fault() {
    // The variable lies behind the return site.
    let text = FACTORIAL.replace(
        ".reg .b32 %x<3>;",
        ".reg .b32 %x<3>; .local .align 8 .u32 own[1]; mov.u64 %y3, own; st.local.u32 [%y3+-8], 5;",
    );
    let text = text.replace("mov.u64 %y3, own;", ".reg .b64 %w<1>; mov.u64 %w0, own;").replace("[%y3+-8]", "[%w0+-8]");
    let said = run(&each_thread(&text, "factorial", 64, 0), 1).result.unwrap_err().to_string();
    assert!(said.ends_with("the return site on the stack was overwritten: pc 5 is not behind the call"), "{said}");
}

#[test]
fn regions_are_not_formed_of_kernels_with_recursive_functions() {
    use durawarp::kernel::regions::{RegionError, RegionOptions, form};
    let text = format!(".version 8.0 {}", each_thread(FACTORIAL, "factorial", 64, 0));
    let module = durawarp::kernel::ptx::parse("k.ptx", &text).unwrap();
    assert_eq!(form(&module.kernels[0], &RegionOptions::default()).unwrap_err(), RegionError::Recursion);
}

/// One statement of a random function on variables 0 to 3 and two words of the activation's own local memory.
#[derive(Debug, Clone)]
enum Step {
    /// to = a op b, the operation by number.
    Set(usize, usize, usize, usize),
    Store(usize, usize),
    Load(usize, usize),
    /// to = function(n - 1, argument): that of this number, or the one of three that a variable picks.
    Call {
        to: usize,
        function: Result<usize, usize>,
        argument: usize,
        guard: Option<usize>,
    },
    /// By the parity of a variable.
    If(usize, Vec<Step>, Vec<Step>),
}

fn step() -> impl Strategy<Value = Step> {
    let variable = || 0usize..4;
    let function = prop_oneof![(0usize..3).prop_map(Ok), variable().prop_map(Err)];
    let call = (variable(), function, variable(), prop::option::of(variable()));
    let leaf = prop_oneof![
        4 => (variable(), 0usize..4, variable(), variable()).prop_map(|(to, op, a, b)| Step::Set(to, op, a, b)),
        1 => (0usize..2, variable()).prop_map(|(at, a)| Step::Store(at, a)),
        1 => (variable(), 0usize..2).prop_map(|(to, at)| Step::Load(to, at)),
        2 => call.prop_map(|(to, function, argument, guard)| Step::Call { to, function, argument, guard }),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        (0usize..4, some(), some()).prop_map(|(odd, then, other)| Step::If(odd, then, other))
    })
}

/// What a function does, in Rust; `calls` counts down, so that no case takes long.
fn evaluate(functions: &[Vec<Step>], number: usize, n: u32, a: u32, calls: &mut u32) -> Option<u32> {
    fn steps(
        functions: &[Vec<Step>],
        body: &[Step],
        n: u32,
        x: &mut [u32; 4],
        own: &mut [u32; 2],
        calls: &mut u32,
    ) -> Option<()> {
        for step in body {
            match *step {
                Step::Set(to, op, a, b) => {
                    let (a, b) = (x[a], x[b]);
                    x[to] = [a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b), a ^ b][op];
                }
                Step::Store(at, a) => own[at] = x[a],
                Step::Load(to, at) => x[to] = own[at],
                Step::Call { to, function, argument, guard } => {
                    if guard.is_none_or(|odd| x[odd] & 1 == 1) {
                        let number = function.unwrap_or_else(|by| x[by] as usize % 3);
                        x[to] = evaluate(functions, number, n - 1, x[argument], calls)?;
                    }
                }
                Step::If(odd, ref then, ref other) => {
                    let body = if x[odd] & 1 == 1 { then } else { other };
                    steps(functions, body, n, x, own, calls)?;
                }
            }
        }
        Some(())
    }
    *calls = calls.checked_sub(1)?;
    if n == 0 {
        return Some(a.wrapping_mul(7).wrapping_add(number as u32));
    }
    let (mut x, mut own) = ([n, a, a ^ 0x5555, number as u32], [0; 2]);
    steps(functions, &functions[number], n, &mut x, &mut own, calls)?;
    Some(x.iter().fold(0, |sum: u32, value| sum.wrapping_mul(31).wrapping_add(*value)))
}

fn write_steps(body: &[Step], labels: &mut u32, out: &mut String) {
    for step in body {
        *labels += 1;
        let l = *labels;
        *out += &match *step {
            Step::Set(to, op, a, b) => format!("{}.b32 %x{to}, %x{a}, %x{b};\n", ["add", "sub", "mul.lo", "xor"][op])
                .replace("add.b32", "add.u32")
                .replace("sub.b32", "sub.u32")
                .replace("lo.b32", "lo.u32"),
            Step::Store(at, a) => format!("st.local.u32 [own+{}], %x{a};\n", 4 * at),
            Step::Load(to, at) => format!("ld.local.u32 %x{to}, [own+{}];\n", 4 * at),
            Step::Call { to, function, argument, guard } => {
                let (at, test) = match guard {
                    Some(odd) => ("@%q1 ", format!("and.b32 %t, %x{odd}, 1; setp.ne.u32 %q1, %t, 0;\n")),
                    None => ("", String::new()),
                };
                let (find, callee, list) = match function {
                    Ok(number) => (String::new(), format!("f{number}"), String::new()),
                    Err(by) => (
                        format!(
                            "rem.u32 %t, %x{by}, 3; mul.wide.u32 %y1, %t, 8; mov.u64 %y2, table; add.s64 %y1, %y1, %y2;
                             ld.global.u64 %y1, [%y1]; list{l}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n"
                        ),
                        "%y1".to_owned(),
                        format!(", list{l}"),
                    ),
                };
                format!(
                    "{test}{find}sub.u32 %t, %n, 1;
                     {{ .param .b32 p0; .param .b32 p1; .param .b32 s; st.param.b32 [p0], %t; st.param.b32 [p1], %x{argument};
                     {at}call (s), {callee}, (p0, p1){list}; {at}ld.param.b32 %x{to}, [s]; }}\n"
                )
            }
            Step::If(odd, ref then, ref other) => {
                let mut text = format!("and.b32 %t, %x{odd}, 1; setp.eq.u32 %q2, %t, 0; @%q2 bra ELSE{l};\n");
                write_steps(then, labels, &mut text);
                text += &format!("bra END{l};\nELSE{l}:\n");
                write_steps(other, labels, &mut text);
                text + &format!("END{l}:\n")
            }
        };
    }
}

fn random_text(functions: &[Vec<Step>]) -> String {
    let mut text = ".global .u64 table[3] = {f0, f1, f2};\n".to_owned();
    for (number, body) in functions.iter().enumerate() {
        text += &format!(
            ".func (.param .b32 r) f{number}(.param .b32 n, .param .b32 a) {{
             .local .align 4 .u32 own[2]; .reg .b32 %x<4>, %n, %t; .reg .b64 %y<3>; .reg .pred %q<3>;
             ld.param.u32 %n, [n]; ld.param.u32 %x1, [a]; setp.ne.u32 %q1, %n, 0; @%q1 bra GO;
             mad.lo.u32 %x1, %x1, 7, {number}; st.param.b32 [r], %x1; ret;
             GO: mov.u32 %x0, %n; xor.b32 %x2, %x1, 0x5555; mov.u32 %x3, {number};
             st.local.u32 [own], 0; st.local.u32 [own+4], 0;\n"
        );
        write_steps(body, &mut 0, &mut text);
        text += "mad.lo.u32 %x1, %x0, 31, %x1; mad.lo.u32 %x2, %x1, 31, %x2; mad.lo.u32 %x3, %x2, 31, %x3;
                 st.param.b32 [r], %x3; ret; }\n";
    }
    let start = ".func (.param .b32 r) start(.param .b32 n) { .reg .b32 %x<4>; .reg .b64 %y<2>;
        .param .b32 p0; .param .b32 p1; .param .b32 s;
        ld.param.u32 %x1, [n]; rem.u32 %x2, %x1, 4; st.param.b32 [p0], %x2; st.param.b32 [p1], %x1;
        call (s), f0, (p0, p1); ld.param.b32 %x2, [s]; st.param.b32 [r], %x2; ret; }\n";
    each_thread(&(text + start), "start", 32, 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_functions_that_call_each_other_give_what_they_give_in_rust(
        functions in prop::collection::vec(prop::collection::vec(step(), 1..6), 3),
        warp_size in prop::sample::select(&[32, 64][..]),
    ) {
        let mut calls = 20_000;
        let expected: Option<Vec<u64>> =
            (0..40).map(|i| evaluate(&functions, 0, i % 4, i, &mut calls).map(u64::from)).collect();
        if let Some(expected) = expected {
            let text = random_text(&functions);
            let ran = run_text(&text, &Setup { output: 8 * 40, shape: (1, 40), warp_size, ..Setup::default() });
            prop_assert!(ran.result.is_ok(), "{:?}\n{}", ran.result, text);
            prop_assert_eq!(ran.u64s(), expected, "{}", text);
        }
    }
}
