//! What a program does wrong at run time is told with kernel, place in the PTX, CTA, thread and address.

use crate::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::fault::{FaultKind, ProgramFault};
use durawarp::kernel::functional::RunError;

/// Runs `body` (its first line is line 3) in 2 CTAs of 40 threads on 64 input and 1024 output bytes.
fn ran(body: &str) -> Ran {
    let text = format!(
        ".const .u32 table[2];\n.visible .entry wrong(.param .u64 input, .param .u64 output) {{ .reg .b64 %in, %out, %a, %b; .reg .b32 %t, %c, %r<9>; .reg .pred %p<9>; .shared .align 8 .b8 s[16]; .local .align 8 .b8 depot[16]; ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n{body}\nret;\n}}\n"
    );
    run_text(&text, &Setup { input: &[0; 64], output: 1024, shape: (2, 40), ..Setup::default() })
}

fn fault(body: &str) -> (ProgramFault, [u64; 2]) {
    let ran = ran(body);
    match ran.result {
        Err(RunError::Fault(fault)) => (*fault, ran.addresses),
        other => panic!("{body}: {other:?}"),
    }
}

/// The fault of thread 37 of CTA 1 in line 5, the only one that executes `instruction`.
fn check(instruction: &str, expected: impl Fn([u64; 2]) -> FaultKind, told: &str) {
    let body = format!(
        "mad.lo.u32 %r1, %c, 40, %t;\nsetp.eq.u32 %p1, %r1, 77; mov.u64 %a, s; mov.u64 %b, table; cvta.const.u64 %b, %b;\n   @%p1 {instruction};\nst.global.u32 [%in], 1;"
    );
    let (fault, addresses) = fault(&body);
    assert_eq!(fault.kind, expected(addresses), "{instruction}");
    assert_eq!((fault.kernel.as_str(), &*fault.file), ("wrong", "test.ptx"));
    assert_eq!((fault.pos.line, fault.pos.column), (5, 9), "{instruction}");
    assert_eq!((fault.cta, fault.thread), ([1, 0, 0], [37, 0, 0]), "{instruction}");
    let text = fault.to_string();
    assert!(text.starts_with("test.ptx:5:9: kernel `wrong`, CTA (1,0,0) thread (37,0,0): "), "{text}");
    assert!(text.contains(told), "{text} does not tell `{told}`");
}

fn out_of_bounds(address: u64, bytes: u32, space: &'static str, hint: &str) -> FaultKind {
    FaultKind::OutOfBounds { address, bytes, space, hint: hint.to_owned() }
}

#[test]
fn accesses_outside_of_what_is_allocated() {
    let past =
        |a: [u64; 2]| out_of_bounds(a[0] + 64, 4, "global", "0 bytes past the end of `input`, which has 64 bytes");
    check("ld.global.u32 %r2, [%in+64]", past, "past the end of `input`");
    check("st.global.u32 [%in+64], %r2", past, "4-byte global access");
    check("ld.u32 %r2, [%in+64]", past, "past the end of `input`");
    check("atom.global.add.u32 %r2, [%in+64], 1", past, "past the end of `input`");
    check("red.global.add.u32 [%in+64], 1", past, "past the end of `input`");
    check(
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%out+1024]",
        |a| out_of_bounds(a[1] + 1024, 16, "global", "0 bytes past the end of `output`, which has 1024 bytes"),
        "16-byte global access",
    );
    check("ld.global.u32 %r2, [16]", |_| out_of_bounds(16, 4, "global", "a null pointer?"), "0x10 is out of bounds");
    check("pm.clwb [8]", |_| out_of_bounds(8, 1, "global", "a null pointer?"), "null pointer");
    check("pm.st.log.global.u32 [8], %r1", |_| out_of_bounds(8, 4, "global", "a null pointer?"), "null pointer");
    check("ld.shared.u32 %r2, [s+16]", |_| out_of_bounds(16, 4, "shared", "the CTA has 16 bytes"), "has 16 bytes");
    check("ld.shared.u32 %r2, [%a+-4]", |_| out_of_bounds(u64::MAX - 3, 4, "shared", "the CTA has 16 bytes"), "shared");
    check("ld.local.u32 %r2, [depot+16]", |_| out_of_bounds(16, 4, "local", "a thread has 16 bytes"), "a thread has");
    check(
        "ld.const.u32 %r2, [table+8]",
        |_| out_of_bounds(8, 4, "const", "the constant bank has 8 bytes"),
        "constant bank",
    );
}

#[test]
fn accesses_that_are_not_aligned() {
    let odd = |offset: u64, bytes: u32| {
        move |a: [u64; 2]| FaultKind::Misaligned { address: a[0] + offset, bytes, space: "global" }
    };
    check("ld.global.u32 %r2, [%in+2]", odd(2, 4), "not aligned to its 4 bytes");
    check("st.global.v2.u32 [%in+4], {%r2, %r3}", odd(4, 8), "not aligned to its 8 bytes");
    check("atom.global.add.u64 %a, [%in+4], 1", odd(4, 8), "not aligned");
    check(
        "ld.shared.u16 %r2, [s+1]",
        |_| FaultKind::Misaligned { address: 1, bytes: 2, space: "shared" },
        "shared access",
    );
}

#[test]
fn traps_and_writes_to_constants() {
    check("trap", |_| FaultKind::Trap, "trap executed");
    check("brkpt", |_| FaultKind::Trap, "trap executed");
    let what = "constant memory cannot be written";
    for instruction in ["st.u32 [%b], 1", "atom.add.u32 %r2, [%b], 1"] {
        check(instruction, |_| FaultKind::Unsupported(what.to_owned()), what);
    }
}

#[test]
fn a_wild_lane_beside_a_good_one_is_found() {
    let (fault, _) = fault("setp.eq.u32 %p1, %t, 3; mov.u64 %a, 0; @%p1 mov.u64 %a, -8;\nld.shared.u32 %r1, [%a];");
    assert_eq!((fault.thread, fault.pos.line), ([3, 0, 0], 4));
    assert_eq!(fault.kind, out_of_bounds(u64::MAX - 7, 4, "shared", "the CTA has 16 bytes"));
}

#[test]
fn a_barrier_that_only_a_part_of_a_warp_reaches() {
    let (fault, _) =
        fault("setp.lt.u32 %p1, %t, 5;\n@%p1 bra SKIP;\nbar.sync 0;\nSKIP:\nadd.u32 %r1, %r1, 1;\nbar.sync 0;");
    // The lanes behind the branch wait for the others where the paths join.
    let elsewhere = durawarp::kernel::ir::SourcePos { line: 7, column: 1 };
    assert_eq!(
        fault.kind,
        FaultKind::DivergentBarrier { barrier: "barrier 0".to_owned(), absent: [0, 0, 0], elsewhere }
    );
    assert_eq!((fault.pos.line, fault.thread), (5, [5, 0, 0]));
    assert!(fault.to_string().contains("thread (0,0,0) is at line 7"), "{fault}");
}

#[test]
fn lanes_that_have_no_barrier_to_come_are_not_awaited() {
    let early = "setp.lt.u32 %p1, %t, 5;\n@%p1 bra DONE;\nbar.sync 0;\nDONE:\nst.global.u32 [%in], 1;";
    ran(early).result.unwrap();
    ran("setp.lt.u32 %p1, %t, 5;\n@%p1 exit;\nbar.sync 0;").result.unwrap();
}

#[test]
fn a_deadlock_names_the_barrier_and_who_waits() {
    let error = ran("setp.lt.u32 %p1, %t, 32;\n@%p1 bra LOW;\nbar.sync 1;\nbra END;\nLOW:\nbar.sync 2;\nEND:")
        .result
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, RunError::Deadlock { cta: [0, 0, 0], .. }), "{text}");
    for part in ["kernel `wrong`", "warps 1 wait at test.ptx:5:1", "warps 0 wait at test.ptx:8:1", "barrier 2"] {
        assert!(text.contains(part), "{text} does not tell `{part}`");
    }
}

#[test]
fn an_endless_kernel_meets_the_instruction_limit() {
    let counts = "AGAIN:\nadd.u32 %t, %t, 1;\nsetp.ne.u32 %p1, %t, 0;\n@%p1 bra AGAIN;";
    let error = ran(counts).result.unwrap_err();
    assert!(matches!(error, RunError::InstructionLimit { limit: 1_000_000, .. }), "{error}");
}

#[test]
fn a_kernel_that_only_repeats_itself_is_ended_before_its_limit() {
    let error = ran("AGAIN:\nbra AGAIN;").result.unwrap_err();
    assert!(matches!(error, RunError::Repeats { .. }), "{error}");
    assert!(error.to_string().starts_with("kernel `wrong` repeats itself for ever: warp 0 of CTA (0,0,0) is at "));
}
