//! Calls on the functional driver: addresses of functions, tables of them, indirect calls, vtables.

use crate::ptx_common::{Setup, run_text};

/// `add`, `sub` and `mul` of two numbers.
const ARITHMETIC: &str = "
.func (.param .b32 r) add(.param .b32 a, .param .b32 b) { .reg .b32 %x<3>;
    ld.param.u32 %x1, [a]; ld.param.u32 %x2, [b]; add.u32 %x1, %x1, %x2; st.param.b32 [r], %x1; ret; }
.func (.param .b32 r) sub(.param .b32 a, .param .b32 b) { .reg .b32 %x<3>;
    ld.param.u32 %x1, [a]; ld.param.u32 %x2, [b]; sub.u32 %x1, %x1, %x2; st.param.b32 [r], %x1; ret; }
.func (.param .b32 r) mul(.param .b32 a, .param .b32 b) { .reg .b32 %x<3>;
    ld.param.u32 %x1, [a]; ld.param.u32 %x2, [b]; mul.lo.u32 %x1, %x1, %x2; st.param.b32 [r], %x1; ret; }
.func nothing() { ret; }
";

/// A kernel whose thread `i` calls the function at `%rd2` with `i` and 5 and stores the result at `out[i]`.
fn caller(module: &str, find: &str, callees: &str) -> String {
    format!(
        "{ARITHMETIC}{module}
.visible .entry k(.param .u64 in, .param .u64 out) {{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
    {find}
    {{
        .param .b32 p0; .param .b32 p1; .param .b32 q;
        st.param.b32 [p0], %r1; st.param.b32 [p1], 5;
        {callees}
        call (q), %rd2, (p0, p1), list;
        ld.param.b32 %r3, [q];
    }}
    add.u32 %r3, %r3, 1000;
    st.global.u32 [%rd1], %r3;
    ret;
}}"
    )
}

const PROTOTYPE: &str = "list: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);";

#[test]
fn a_function_is_called_through_a_register() {
    for callees in [PROTOTYPE, "list: .calltargets add, sub, mul;", "list: .calltargets sub;"] {
        let ran = run_text(
            &caller("", "mov.u64 %rd2, sub;", callees),
            &Setup { output: 16, shape: (1, 4), ..Setup::default() },
        );
        assert!(ran.result.is_ok(), "{:?}", ran.result);
        assert_eq!(ran.u32s(), [995, 996, 997, 998], "i - 5 + 1000");
    }
}

#[test]
fn lanes_of_a_warp_call_what_their_table_entry_says_and_meet_again() {
    // Thread i calls entry i % 3; then every thread counts the lanes that it stores with.
    let look = |space: &str, table: &str| {
        format!(
            "rem.u32 %r2, %r1, 3; mov.u64 %rd4, {table}; mul.wide.u32 %rd5, %r2, 8; add.s64 %rd4, %rd4, %rd5;
             ld.{space}.u64 %rd2, [%rd4];"
        )
    };
    for (module, find) in [
        (".global .u64 table[3] = {add, sub, mul};", look("global", "table")),
        (".const .align 8 .u64 table[] = {add, sub, mul};", look("const", "table")),
        (
            ".global .align 8 .b8 table[24] = {0xFF(add), 0xFF00(add), 0xFF0000(add), 0xFF000000(add),
              0xFF00000000(add), 0xFF0000000000(add), 0xFF000000000000(add), 0xFF00000000000000(add),
              0xFF(sub), 0xFF00(sub), 0xFF0000(sub), 0xFF000000(sub),
              0xFF00000000(sub), 0xFF0000000000(sub), 0xFF000000000000(sub), 0xFF00000000000000(sub),
              0xFF(mul), 0xFF00(mul), 0xFF0000(mul), 0xFF000000(mul),
              0xFF00000000(mul), 0xFF0000000000(mul), 0xFF000000000000(mul), 0xFF00000000000000(mul)};",
            look("global", "table"),
        ),
    ] {
        let text = caller(module, &find, PROTOTYPE).replace(
            "add.u32 %r3, %r3, 1000;",
            "activemask.b32 %r4; popc.b32 %r4, %r4; mad.lo.u32 %r3, %r4, 1000, %r3;",
        );
        let ran = run_text(&text, &Setup { output: 4 * 32, shape: (1, 32), ..Setup::default() });
        assert!(ran.result.is_ok(), "{:?}", ran.result);
        let called = |i: u32| [i + 5, i.wrapping_sub(5), i * 5][i as usize % 3];
        let expected: Vec<u32> = (0..32).map(|i| called(i).wrapping_add(32 * 1000)).collect();
        assert_eq!(ran.u32s(), expected, "{module}");
    }
}

#[test]
fn a_guarded_indirect_call_is_made_by_the_lanes_whose_guard_holds() {
    let text = caller("", "mov.u64 %rd2, mul; setp.lt.u32 %p1, %r1, 2; mov.u32 %r3, 7;", PROTOTYPE)
        .replace("call (q)", "@%p1 call (q)")
        .replace("ld.param.b32 %r3, [q]", "@%p1 ld.param.b32 %r3, [q]");
    let ran = run_text(&text, &Setup { output: 16, shape: (1, 4), ..Setup::default() });
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(ran.u32s(), [1000, 1005, 1007, 1007], "0 * 5, 1 * 5, not called, not called");
}

#[test]
fn a_call_of_what_is_no_function_ends_the_run_with_kernel_line_and_value() {
    let setup = Setup { output: 16, shape: (1, 4), ..Setup::default() };
    let fault = |find: &str, callees: &str| {
        let text = caller("", find, callees);
        let line = 1 + text.lines().position(|line| line.contains("call (q)")).unwrap();
        let said = run_text(&text, &setup).result.unwrap_err().to_string();
        let head = format!("test.ptx:{line}:9: kernel `k`, CTA (0,0,0) thread (");
        said.strip_prefix(&head).unwrap_or_else(|| panic!("{said}, not {head}")).to_owned()
    };
    let reach = "which is the address of no function that this call may reach";
    assert_eq!(
        fault("mov.u64 %rd2, 0;", PROTOTYPE),
        format!("0,0,0): indirect call of 0x0, {reach} (a null pointer?)")
    );
    // Lane 2 alone has another value.
    let one = "mov.u64 %rd2, add; setp.eq.u32 %p1, %r1, 2; @%p1 mov.u64 %rd2, 0x1234;";
    assert_eq!(fault(one, PROTOTYPE), format!("2,0,0): indirect call of 0x1234, {reach}"));
    // The fourth function of the file has another signature; the third is not listed.
    let address = |n: u64| format!("{:#x}", (4u64 << 44) + 16 * n);
    assert_eq!(fault("mov.u64 %rd2, nothing;", PROTOTYPE), format!("0,0,0): indirect call of {}, {reach}", address(4)));
    let listed = "list: .calltargets add, sub;";
    assert_eq!(fault("mov.u64 %rd2, mul;", listed), format!("0,0,0): indirect call of {}, {reach}", address(3)));
}

#[test]
fn no_code_lies_at_the_address_of_a_function() {
    let text = caller("", "mov.u64 %rd2, add; ld.global.u32 %r4, [%rd2];", PROTOTYPE);
    let said =
        run_text(&text, &Setup { output: 16, shape: (1, 4), ..Setup::default() }).result.unwrap_err().to_string();
    assert!(said.ends_with("is out of bounds (functions have such addresses, but no code lies there)"), "{said}");
}

/// Two classes with two virtual functions each, as a compiler lays them out: two words before the first function.
pub(crate) const SHAPES: &str = "
.extern .func __cxa_pure_virtual ();
.global .align 8 .u64 _ZTV5Shape[4] = {0, 0, __cxa_pure_virtual, __cxa_pure_virtual};
.global .align 8 .u64 _ZTV6Square[4] = {0, 0, _ZN6Square4areaEv, _ZN6Square5scaleEj};
.global .align 8 .u64 _ZTV3Box[4] = {0, 0, _ZN3Box4areaEv, _ZN3Box5scaleEj};
.func (.param .b32 r) _ZN6Square4areaEv(.param .b64 this) { .reg .b32 %x<3>; .reg .b64 %y<3>;
    ld.param.u64 %y1, [this]; ld.u32 %x1, [%y1+8]; mul.lo.u32 %x1, %x1, %x1; st.param.b32 [r], %x1; ret; }
.func _ZN6Square5scaleEj(.param .b64 this, .param .b32 by) { .reg .b32 %x<4>; .reg .b64 %y<3>;
    ld.param.u64 %y1, [this]; ld.param.u32 %x2, [by]; ld.u32 %x1, [%y1+8]; mul.lo.u32 %x1, %x1, %x2;
    st.u32 [%y1+8], %x1; ret; }
.func (.param .b32 r) _ZN3Box4areaEv(.param .b64 this) { .reg .b32 %x<3>; .reg .b64 %y<3>;
    ld.param.u64 %y1, [this]; ld.u32 %x1, [%y1+8]; ld.u32 %x2, [%y1+12]; mul.lo.u32 %x1, %x1, %x2;
    st.param.b32 [r], %x1; ret; }
.func _ZN3Box5scaleEj(.param .b64 this, .param .b32 by) { .reg .b32 %x<4>; .reg .b64 %y<3>;
    ld.param.u64 %y1, [this]; ld.param.u32 %x2, [by]; ld.u32 %x1, [%y1+12]; mul.lo.u32 %x1, %x1, %x2;
    st.u32 [%y1+12], %x1; ret; }
.visible .entry k(.param .u64 in, .param .u64 out) {
    .local .align 8 .b8 object[16];
    .reg .b32 %r<9>; .reg .b64 %rd<12>; .reg .pred %p<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
    // Thread i has a square with side i + 1 if i is even, else a box of i + 1 times 3, in its local memory.
    mov.u64 %rd4, object; cvta.local.u64 %rd4, %rd4;
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
    mov.u64 %rd5, _ZTV6Square; mov.u64 %rd6, _ZTV3Box; selp.b64 %rd5, %rd5, %rd6, %p1;
    cvta.global.u64 %rd5, %rd5; add.s64 %rd5, %rd5, 16;
    st.u64 [%rd4], %rd5; add.u32 %r3, %r1, 1; st.u32 [%rd4+8], %r3; st.u32 [%rd4+12], 3;
    ld.u64 %rd7, [%rd4]; ld.u64 %rd8, [%rd7+8];
    { .param .b64 p0; .param .b32 p1; st.param.b64 [p0], %rd4; st.param.b32 [p1], 10;
      prototype_0 : .callprototype ()_ (.param .b64 _, .param .b32 _);
      call %rd8, (p0, p1), prototype_0; }
    ld.u64 %rd7, [%rd4]; ld.u64 %rd8, [%rd7];
    { .param .b64 p0; .param .b32 q; st.param.b64 [p0], %rd4;
      prototype_1 : .callprototype (.param .b32 _) _ (.param .b64 _);
      call (q), %rd8, (p0), prototype_1; ld.param.b32 %r4, [q]; }
    st.global.u32 [%rd1], %r4;
    ret;
}";

#[test]
fn virtual_calls_go_through_a_vtable_in_global_memory() {
    let ran = run_text(SHAPES, &Setup { output: 16, shape: (1, 4), ..Setup::default() });
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(ran.u32s(), [10 * 10, 2 * 30, 30 * 30, 4 * 30]);
    // An object of the abstract class: its functions have addresses, but no bodies.
    let text = SHAPES.replace("mov.u64 %rd5, _ZTV6Square;", "mov.u64 %rd5, _ZTV5Shape;");
    let said =
        run_text(&text, &Setup { output: 16, shape: (1, 4), ..Setup::default() }).result.unwrap_err().to_string();
    assert!(said.contains("indirect call of 0x400000000010, which is the address of no function"), "{said}");
}

/// What CUDA's compiler calls for the extreme of three singles before PTX had a word for it.
#[test]
fn the_assemblers_own_extremes_of_three_are_those_of_max_and_min() {
    let (nan, less) = (f32::NAN, f32::NEG_INFINITY);
    for values in
        [[1.0, 3.0, 2.0], [3.0, -1.0, 2.0], [-5.0, less, -4.0], [nan, 1.0, nan], [nan, nan, 7.0], [-0.0, 0.0, -0.0]]
    {
        let input: Vec<u8> = values.iter().flat_map(|value: &f32| value.to_le_bytes()).collect();
        let call = |name: &str, to: &str| {
            format!(
                "{{ .param .b32 p0; .param .b32 p1; .param .b32 p2; .param .b32 q; st.param.f32 [p0], %f1;
                st.param.f32 [p1], %f2; st.param.f32 [p2], %f3;
                call.uni (q), __nv_ptx_builtin_ocg_{name}, (p0, p1, p2); ld.param.f32 {to}, [q]; }}"
            )
        };
        let declared = |name: &str| {
            format!(
                ".extern .func (.param .b32 r) __nv_ptx_builtin_ocg_{name}
                (.param .b32 a, .param .b32 b, .param .b32 c);"
            )
        };
        let text = format!(
            ".version 8.8 .target sm_100 {} {}
            .visible .entry k(.param .u64 in, .param .u64 out) {{ .reg .b64 %rd<3>; .reg .f32 %f<9>;
            ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.global.f32 %f1, [%rd1];
            ld.global.f32 %f2, [%rd1+4]; ld.global.f32 %f3, [%rd1+8]; {} {}
            max.f32 %f6, %f1, %f2, %f3; min.f32 %f7, %f1, %f2, %f3;
            st.global.v4.f32 [%rd2], {{%f4, %f5, %f6, %f7}}; ret; }}",
            declared("fmax3"),
            declared("fmin3"),
            call("fmax3", "%f4"),
            call("fmin3", "%f5")
        );
        let ran = run_text(&text, &Setup { input: &input, output: 16, shape: (1, 1), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|e| panic!("{values:?}: {e}"));
        let found = ran.u32s();
        assert_eq!(found[..2], found[2..4], "{values:?}");
        let largest = values.iter().copied().fold(nan, f32::max);
        assert_eq!(f32::from_bits(found[0]), largest, "{values:?}");
    }
}

#[test]
fn a_builtin_of_another_shape_is_refused() {
    let text = ".version 8.8 .target sm_100
        .extern .func (.param .b32 r) __nv_ptx_builtin_ocg_fmax3 (.param .b32 a, .param .b32 b);
        .visible .entry k() { .reg .f32 %f<3>; .param .b32 p0; .param .b32 p1; .param .b32 q;
        call.uni (q), __nv_ptx_builtin_ocg_fmax3, (p0, p1); ret; }";
    let told = durawarp::kernel::ptx::check("k.ptx", text).unsupported;
    assert!(told[0].to_string().contains("this function takes three singles and returns one"), "{told:?}");
}

/// Each function calls the one before at two places, of which a lane takes one: `depth` of them inlined are 2^depth
/// bodies, and a lane runs as many as they are.
fn doubling(depth: u32) -> String {
    let padding = "xor.b32 %x3, %x3, 5; xor.b32 %x3, %x3, 5;\n".repeat(16);
    let first = ".func (.param .b32 r) f0(.param .b32 a) { .reg .b32 %x<2>; ld.param.u32 %x1, [a];
        mad.lo.u32 %x1, %x1, 3, 1; st.param.b32 [r], %x1; ret; }"
        .to_owned();
    let function = |number: u32| {
        let call = |by: &str| {
            format!(
                "{{ .param .b32 p; .param .b32 q; st.param.b32 [p], %x1; call (q), f{}, (p); ld.param.u32 %x3, [q]; }}
                {by}; ",
                number - 1
            )
        };
        format!(
            ".func (.param .b32 r) f{number}(.param .b32 a) {{ .reg .b32 %x<5>; .reg .pred %p<2>;
            ld.param.u32 %x1, [a]; shr.u32 %x2, %x1, {}; and.b32 %x2, %x2, 1; setp.eq.u32 %p1, %x2, 0;
            @%p1 bra ELSE; {} bra END;\nELSE: {}\nEND:\n{padding} st.param.b32 [r], %x3; ret; }}\n",
            number % 5,
            call(&format!("add.u32 %x3, %x3, {number}")),
            call("mul.lo.u32 %x3, %x3, 3"),
        )
    };
    let functions: String = std::iter::once(first).chain((1..=depth).map(function)).collect();
    format!(
        "{functions} .visible .entry k(.param .u64 in, .param .u64 out) {{ .reg .b32 %r<4>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
        {{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), f{depth}, (p); ld.param.b32 %r2, [q]; }}
        st.global.u32 [%rd1], %r2; ret; }}"
    )
}

/// What `f` of a number makes of a value.
fn doubled(number: u32, value: u32) -> u32 {
    match number {
        0 => value.wrapping_mul(3).wrapping_add(1),
        _ if value >> (number % 5) & 1 == 1 => doubled(number - 1, value).wrapping_add(number),
        _ => doubled(number - 1, value).wrapping_mul(3),
    }
}

/// Their frames lie beside the stack that recursion has, which would be too small.
#[test]
fn functions_that_would_be_too_much_inlined_are_called() {
    // Inlined as a whole, the first has some thousand instructions, the second 40 times 2^17.
    for (depth, most, frames) in [(5, 3000, 0), (17, 4000, 17 * 512)] {
        let text = doubling(depth).replace(".reg .b32 %x<5>;", ".reg .b32 %x<5>; .local .align 4 .b8 own[512];");
        let ran = run_text(&text, &Setup { input: &[], output: 128, shape: (1, 32), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|e| panic!("{depth}: {e}"));
        let expected: Vec<u32> = (0..32).map(|lane| doubled(depth, lane)).collect();
        assert_eq!(ran.u32s(), expected, "{depth}");
        let kernel = &durawarp::kernel::ptx::check("k.ptx", &format!(".version 8.0 .target sm_80\n{text}")).kernels[0];
        assert!(kernel.instructions < most, "{depth}: {} instructions", kernel.instructions);
        assert!(kernel.local_bytes >= frames, "{depth}: {} bytes", kernel.local_bytes);
    }
}
