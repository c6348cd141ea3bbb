//! What PTX has besides instructions: constant expressions, vectors of registers, variables of functions,
//! aliases, lists of branch targets, barriers named by registers, hints.

use durawarp::kernel::ptx::check;

use crate::ptx_common::{Setup, run_text};

/// The words that the first 32 threads of a kernel's body leave in its output.
fn words(declarations: &str, body: &str) -> Vec<u32> {
    words_of(None, declarations, body)
}

/// The same on another machine with this many SMs, where a number is given.
fn words_of(other_machine_sms: Option<u32>, declarations: &str, body: &str) -> Vec<u32> {
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64 {declarations}\n\
         .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 in, out, at, l<9>; .reg .b32 t, d, r<9>; .reg .f32 f<9>; .reg .pred p<9>;\n\
         ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4; add.u64 at, out, at;\n\
         {body}\nst.global.u32 [at], d; ret; }}"
    );
    let input: Vec<u8> = (1..=16u32).flat_map(u32::to_le_bytes).collect();
    let ran =
        run_text(&text, &Setup { input: &input, output: 128, shape: (1, 32), other_machine_sms, ..Setup::default() });
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    ran.u32s()
}

/// Values that `ptxas` 13.5 gives a `.b64` variable.
const INTEGERS: [(&str, u64); 49] = [
    ("7 % 3", 1),
    ("3*7+(1<<4)", 0x25),
    ("(.s64)5", 5),
    ("!3", 0),
    ("!0", 1),
    ("5>3?1:2", 1),
    ("5<3?1:2", 2),
    ("0xffffffffU>>1", 0x7fff_ffff),
    ("-1>>1", u64::MAX),
    ("-1U>>60", 0xf),
    ("(1+2)*3", 9),
    ("8/3", 2),
    ("-7/2", 0xffff_ffff_ffff_fffd),
    ("-7 % 3", 0),
    ("-5 % 3", 2),
    ("~5&0xff", 0xfa),
    ("3==3", 1),
    ("3!=3", 0),
    ("1||0", 1),
    ("0&&1", 0),
    ("0x8000000000000000>>4", 0x0800_0000_0000_0000),
    ("(.s64)0x8000000000000000>>4", 0xf800_0000_0000_0000),
    ("-8U/2", 0x7fff_ffff_ffff_fffc),
    ("WARP_SZ*2", 64),
    ("-WARP_SZ", 0xffff_ffff_ffff_ffe0),
    ("1<<63>>63", u64::MAX),
    ("(.u64)-1>>1", 0x7fff_ffff_ffff_ffff),
    ("-1<1", 1),
    ("-1<1U", 0),
    ("-1<(.u64)1", 0),
    ("6|9^5&3", 0xe),
    ("1?2:3?4:5", 2),
    ("0?2:0?4:5", 5),
    ("10-3-2", 5),
    ("100/5/2", 10),
    ("1<<2<<3", 32),
    ("1<<64", 1),
    ("1>>64", 1),
    ("-1>>64", u64::MAX),
    ("(1?-1:1U)>>1", u64::MAX),
    ("2+3<<1", 10),
    ("1+2==3", 1),
    ("7&3==3", 1),
    ("0x10+010+0b11", 0x1b),
    ("5<=5", 1),
    ("5>=6", 0),
    ("- -5", 5),
    ("1.5<2.5", 1),
    ("(2>1)&&!(3>2)", 0),
];

#[test]
fn constant_expressions_have_the_values_that_ptxas_gives_them() {
    let variables: String = INTEGERS
        .iter()
        .enumerate()
        .map(|(number, (expression, _))| format!(".global .align 8 .b64 g{number} = {expression};\n"))
        .collect();
    for (number, (expression, expected)) in INTEGERS.iter().enumerate() {
        let read = |at: usize| words(&variables, &format!("ld.global.u32 d, [g{number}+4*{at}];"))[0];
        assert_eq!(u64::from(read(0)) | u64::from(read(1)) << 32, *expected, "{expression}");
        // The same as an operand.
        let halves = format!(
            "mov.b64 l1, {expression}; mov.b64 {{r1, r2}}, l1; mov.u32 d, r1; setp.eq.u32 p1, t, 1; @p1 mov.u32 d, r2;"
        );
        let found = words("", &halves);
        assert_eq!(u64::from(found[0]) | u64::from(found[1]) << 32, *expected, "{expression}");
    }
    for (expression, expected) in
        [("1.0+2.0", 3f32), ("3.0/2.0", 1.5), ("-1.5*2.0", -3.0), ("-(1.5)", -1.5), ("2.0-0.5", 1.5)]
    {
        assert_eq!(
            words("", &format!("mov.f32 f1, {expression}; mov.b32 d, f1;"))[0],
            expected.to_bits(),
            "{expression}"
        );
    }
}

#[test]
fn expressions_stand_in_sizes_offsets_and_lists() {
    let variables = ".global .align 2*2 .u32 g[2*2+1] = {1+1, 3*3, (1<<4)|1, 5, 6};";
    assert_eq!(words(variables, "ld.global.u32 d, [g+2*4];")[0], 17);
    assert_eq!(words(variables, "mov.u64 l1, g; ld.global.u32 d, [l1+(1<<4)];")[0], 6);
    assert_eq!(words(variables, "ld.global.u32 d, [g+8-4*1];")[0], 9);
}

#[test]
fn a_vector_of_registers_is_its_elements() {
    let body = ".reg .v2 .u32 v; .reg .v4 .f32 w<3>; ld.global.v2.u32 v, [in]; add.u32 d, v.x, v.y;\n\
        ld.global.v4.f32 w2, [in+16]; mov.v4.f32 w0, w2; mov.b32 r1, w0.w; mad.lo.u32 d, r1, 100, d; mov.u32 v.y, 7;\n\
        mov.b32 r2, w2.b; mad.lo.u32 d, r2, 10000, d; add.u32 d, d, v.g; st.global.v2.u32 [out], v; bar.sync 0;";
    // 1 + 2, the words 8 and 7 of the input, and 7.
    assert_eq!(words("", body)[5], 3 + 800 + 70_000 + 7);
    let stored = words(
        "",
        ".reg .v2 .b32 v<2>; mov.v2.u32 v1, {8, 9}; ld.global.u32 d, [out]; setp.lt.u32 p1, t, 2; st.global.v2.b32 [out], v1; bar.sync 0; ld.global.u32 d, [at]; @!p1 mov.u32 d, 0;",
    );
    assert_eq!(stored[..3], [8, 9, 0]);
    // As a whole it is packed and unpacked as one in braces.
    let packed = ".reg .v2 .b16 v; .reg .v2 .b32 w; .reg .b16 h; mov.b32 v, 0x50003; mov.b16 h, v.x; mov.b32 r1, v;\n\
        mov.b64 w, 0x700000000; mov.b64 l1, w; cvt.u32.u16 d, h; add.u32 d, d, r1; add.u32 d, d, w.y; cvt.u32.u64 r2, l1; add.u32 d, d, r2;";
    assert_eq!(words("", packed)[0], 3 + 0x50003 + 7);
}

#[test]
fn a_variable_of_a_function_is_one_for_all_its_calls() {
    let functions = ".const .u32 c = 5;\n\
        .func (.reg .u32 r) next() { .global .u32 count = 40; .const .u32 c[2] = {1, 2}; .reg .u32 x, y; ld.global.u32 x, [count];\n\
        ld.const.u32 y, [c+4]; add.u32 x, x, y; st.global.u32 [count], x; mov.u32 r, x; ret; }";
    let body = "setp.ne.u32 p1, t, 0; mov.u32 d, 0; @p1 bra END;\n\
        call (r1), next; call (r2), next; { .global .align 4 .b32 count[2] = {100, 200}; ld.global.u32 d, [count+4]; }\n\
        mad.lo.u32 d, r1, 1000000, d; mad.lo.u32 d, r2, 1000, d; ld.const.u32 r3, [c]; add.u32 d, d, r3; END:";
    assert_eq!(words(functions, body)[0], 42_000_000 + 44_000 + 205);
}

#[test]
fn an_alias_is_another_name_of_a_function() {
    let functions =
        ".func (.reg .u32 r) seven() { mov.u32 r, 7; ret; } .func (.reg .u32 r) other(); .alias other, seven;";
    assert_eq!(words(functions, "call (d), other;")[3], 7);
}

#[test]
fn a_thread_takes_memory_from_its_stack() {
    // Each lane takes as many words as its number says, twice, and gives the second ones back.
    let body = ".local .u32 v; st.local.u32 [v], 77; mad.lo.u32 r1, t, 4, 4; cvt.u64.u32 l1, r1; mov.u32 d, 0;\n\
        AGAIN: alloca.u64 l2, l1; st.local.u32 [l2], t; stacksave.u64 l3; alloca.u64 l4, l1, 16; cvta.local.u64 l5, l4;\n\
        add.u64 l5, l5, l1; st.u32 [l5+-4], 5; ld.local.u32 r2, [l2]; and.b64 l6, l4, 15; cvt.u32.u64 r3, l6;\n\
        stackrestore.u64 l3; alloca.u64 l7, 8; sub.u64 l7, l7, l3; setp.gt.u64 p1, l7, 7; @p1 add.u32 r3, r3, 1000;\n\
        ld.local.u32 r4, [v]; add.u32 d, d, r2; add.u32 d, d, r3; add.u32 d, d, r4; setp.lt.u32 p2, d, 140; @p2 bra AGAIN;";
    let expected: Vec<u32> = (0..32).map(|t| if t + 77 < 140 { 2 * (t + 77) } else { t + 77 }).collect();
    assert_eq!(words("", body), expected);
    let text = ".version 8.0 .entry k() { .reg .b64 l; alloca.u64 l, 2000; st.local.u32 [l+1024], 1; ret; }";
    let fault = run_text(text, &Setup::default()).result.unwrap_err().to_string();
    assert!(fault.contains("local access at 0x400 is out of bounds"), "{fault}");
}

#[test]
fn a_function_gives_back_what_it_took_from_the_stack() {
    // `keeps` takes 64 bytes and calls `takes`, which takes as many more and returns early in its later calls.
    // Odd lanes do not call. Each lane's own bytes stay as they are, and the stack is never exhausted.
    let functions = ".func (.reg .u32 r) takes(.reg .u32 n) { .reg .u64 p; .reg .pred q; alloca.u64 p, 64;\n\
        st.local.u32 [p+60], n; mov.u32 r, n; setp.gt.u32 q, n, 50; @q ret; { alloca.u64 p, 64; st.local.u32 [p], 9; }\n\
        add.u32 r, r, 1; ret; }\n\
        .func (.reg .u32 r) keeps(.reg .u32 n) { .reg .u64 p, s; .reg .u32 x; alloca.u64 p, 64; st.local.u32 [p], n;\n\
        stacksave.u64 s; call (r), takes, (n); ld.local.u32 x, [p]; add.u32 r, r, x; alloca.u64 p, 8;\n\
        sub.u64 p, p, s; cvt.u32.u64 x, p; add.u32 r, r, x; }";
    let body = ".reg .u64 own, again; alloca.u64 own, 16; st.local.u32 [own], t; and.b32 r1, t, 1; setp.eq.u32 p1, r1, 0;\n\
        mov.u32 d, 0; mov.u32 r2, 0; AGAIN: mov.u32 r3, 0; @p1 call (r3), keeps, (r2); add.u32 d, d, r3; add.u32 r2, r2, 1;\n\
        setp.lt.u32 p2, r2, 100; @p2 bra AGAIN; ld.local.u32 r4, [own]; add.u32 d, d, r4; alloca.u64 again, 8;\n\
        sub.u64 again, again, own; cvt.u32.u64 r4, again; mad.lo.u32 d, r4, 100000, d;";
    let called: u32 = (0..100).map(|n| 2 * n + u32::from(n <= 50)).sum();
    let expected: Vec<u32> = (0..32).map(|t| 1_600_000 + t + if t % 2 == 0 { called } else { 0 }).collect();
    assert_eq!(words(functions, body), expected);
}

#[test]
fn an_indexed_branch_goes_to_the_target_of_its_number() {
    let body = "and.b32 r1, t, 3; mov.u32 d, 9; setp.ne.u32 p1, r1, 3; T: .branchtargets A, B, A;\n\
        @p1 brx.idx r1, T; mov.u32 d, 3; bra E; A: mov.u32 d, 1; bra E; B: mov.u32 d, 2; E: add.u32 d, d, 10;";
    let expected: Vec<u32> = (0..32).map(|t| [11, 12, 11, 13][t % 4]).collect();
    assert_eq!(words("", body), expected);
    let text =
        ".version 8.0 .entry k() { .reg .u32 r; mov.u32 r, 2; T: .branchtargets A, A; brx.idx.uni r, T; A: ret; }";
    let ran = run_text(text, &Setup::default());
    assert!(ran.result.unwrap_err().to_string().ends_with("`brx.idx` to target 2 of a list of 2"));
}

#[test]
fn barriers_are_named_and_counted_by_registers() {
    // Two pairs of warps, each at a barrier of its own: the second of a pair reads what the first has
    // written.
    let text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
        .shared .u32 s[128]; .reg .b64 out, at; .reg .b32 t, w, id, n, a, v, b; .reg .pred p, q; ld.param.u64 out, [output];\n\
        mov.u32 t, %tid.x; shr.u32 w, t, 6; add.u32 id, w, 3; mov.u32 n, 64; xor.b32 a, t, 32; mov.u32 b, s; mad.lo.u32 v, t, 4, b;\n\
        mad.lo.u32 a, a, 4, b; st.shared.u32 [v], t; setp.gt.u32 q, t, 70; bar.sync id, n; ld.shared.u32 v, [a];\n\
        barrier.sync.aligned id, 64; bar.red.popc.u32 a, id, n, q; mad.lo.u32 v, a, 1000, v;\n\
        mul.wide.u32 at, t, 4; add.u64 out, out, at; st.global.u32 [out], v; ret; }";
    let ran = run_text(text, &Setup { output: 512, shape: (1, 128), ..Setup::default() });
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    let expected: Vec<u32> = (0..128).map(|t| (t ^ 32) + if t < 64 { 0 } else { 57_000 }).collect();
    assert_eq!(ran.u32s(), expected);
    let fault = |operands: &str| {
        let text = format!(
            ".version 8.0 .entry k() {{ .reg .u32 a, b; mov.u32 a, %tid.x; mov.u32 b, 33; bar.sync {operands}; ret; }}"
        );
        run_text(&text, &Setup { shape: (1, 32), ..Setup::default() }).result.unwrap_err().to_string()
    };
    assert!(fault("a").contains("thread (1,0,0): 1 is no barrier"));
    assert!(fault("b").contains("thread (0,0,0): 33 is no barrier"));
    assert!(fault("1, b").contains("33 is no count of threads"));
}

#[test]
fn hints_on_evictions_are_told_once() {
    let kernel = |name: &str| {
        format!(
            ".entry {name}(.param .u64 a) {{ .reg .b64 p, l; .reg .b32 r; ld.param.u64 l, [a]; createpolicy.fractional.L2::evict_first.b64 p, 1.0;\n\
             createpolicy.range.global.L2::evict_last.L2::evict_first.b64 p, [l], 64, 128; createpolicy.cvt.L2.b64 p, p;\n\
             ld.global.L2::cache_hint.u32 r, [l], p; st.global.L2::cache_hint.u32 [l+4], r, p; ld.global.L2::evict_last.v4.u32 {{r, r, r, r}}, [l];\n\
             applypriority.global.L2::evict_normal [l], 128; discard.global.L2 [l], 128; prefetch.global.L2::evict_last [l];\n\
             red.global.add.L2::cache_hint.u32 [l], r, p; ret; }}\n"
        )
    };
    let report =
        check("k.ptx", &format!(".version 8.0 .target sm_80 .address_size 64\n{}{}", kernel("a"), kernel("b")));
    assert_eq!(report.unsupported, []);
    let told: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].starts_with("k.ptx:2:77: cache policies and hints on evictions"), "{told:?}");
}

/// The high half of the clock is that of 64 bits.
#[test]
fn a_clock_has_two_halves() {
    assert_eq!(words("", "mov.u32 d, %clock_hi;"), [0; 32]);
    // The other machine's clock begins above 2^33.
    assert_eq!(words_of(Some(4), "", "mov.u32 d, %clock_hi;"), [2; 32]);
    let low = "mov.u32 r1, %clock; mov.u64 l1, %clock64; mov.b64 {r2, r3}, l1; sub.u32 r2, r2, r1; mad.lo.u32 d, r3, 100, r2;";
    assert_eq!(words_of(Some(4), "", low), [207; 32], "read one instruction later, which takes 7 cycles");
}
