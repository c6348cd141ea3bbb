//! Faulty PTX: every fault is told with file, line, column and what was expected; nothing makes the front end panic.

use durawarp::kernel::ptx::{check, parse};
use proptest::prelude::*;

/// The faults of a body whose first line is line 2 of the file.
fn faults(body: &str) -> Vec<String> {
    let text = format!(
        ".version 8.0 .visible .entry k(.param .u64 a, .param .u32 n) {{ .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<5>; .reg .f64 %fd<5>; .reg .pred %p<5>;\n{body}\nret; }}\n"
    );
    check("bad.ptx", &text).unsupported.iter().map(ToString::to_string).collect()
}

/// CUDA's compilers read the address of the workspace of `cooperative_groups::this_grid().sync()` there.
#[test]
fn two_registers_of_the_driver_have_the_workspace_of_cooperative_launches() {
    let body = "mov.u32 %r1, %envreg1;\nmov.u32 %r2, %envreg2;\nmov.u32 %r3, %envreg3;";
    let text = |target: &str| {
        format!(".version 7.0 .target {target} .visible .entry k() {{ .reg .b32 %r<4>;\n{body}\nret; }}")
    };
    let module = parse("cuda.ptx", &text("sm_70")).unwrap();
    assert_eq!(module.globals.iter().map(|global| (global.bytes, global.align)).collect::<Vec<_>>(), [(8, 8)]);
    assert!(module.kernels[0].is_cooperative());
    // Compilers of OpenCL read offsets of the grid there, which are zeros.
    let module = parse("opencl.ptx", &text("sm_60, texmode_independent")).unwrap();
    assert!(module.globals.is_empty() && !module.kernels[0].is_cooperative());
}

#[test]
fn each_fault_names_its_place_and_what_was_expected() {
    for (body, expected) in [
        ("addd.s32 %r1, %r2, %r3;", "2:1: unknown instruction `addd` (did you mean `add`?)"),
        ("  fmaa.rn.f32 %f1, %f2, %f3, %f1;", "2:3: unknown instruction `fmaa` (did you mean `fma`?)"),
        ("add.s33 %r1, %r2, %r3;", "2:4: type or modifier `.s33` of `add` is not supported (did you mean `s32`?)"),
        ("ld.gobal.u32 %r1, [%rd1];", "2:3: modifier `.gobal` of `ld` is not supported (did you mean `global`?)"),
        ("add %r1, %r2, %r3;", "2:1: `add` needs a type"),
        ("mul.s32 %r1, %r2, %r3;", "2:1: `mul` on integers needs `.lo`, `.hi` or `.wide`"),
        ("mul.lo.ftz.s32 %r1, %r2, %r3;", "2:7: modifier `.ftz` of `mul` is not supported"),
        ("pm.clflushopt.log [%rd1];", "2:14: modifier `.log` of `pm`"),
        ("add.s32 %r1, %r2;", "2:1: `add` takes 3 operands, found 2"),
        ("add.s32 %r1, %r2, %r9;", "2:19: `%r9` is not declared (`%r<5>` declares `%r0` to `%r4`)"),
        ("add.s32 %r1, %r2, %rd1;", "2:19: expected a register of up to 32 bits, but `%rd1` is a 64-bit register"),
        ("add.s64 %rd1, %r2, %rd1;", "2:15: expected a 64-bit register, but `%r2` is a register of up to 32 bits"),
        ("add.s32 %p1, %r2, %r1;", "2:9: expected a register of up to 32 bits, but `%p1` is a predicate register"),
        ("add.f32 %f1, %f2, 3;", "2:19: `3` is not a literal of type .f32"),
        ("add.s32 5, %r2, %r1;", "2:9: expected a destination register"),
        ("@%r1 bra X;\nX:", "2:2: expected a predicate register, but `%r1` is a register of up to 32 bits"),
        ("bra NOWHERE;", "2:5: label `NOWHERE` is not defined here"),
        ("X:\nX:", "3:1: label `X` is defined twice"),
        (
            "mov.u32 %r1, %tid.q;",
            "2:14: `%tid.q` is neither a declared register nor a supported special register (did you mean `%tid.x`?)",
        ),
        ("mov.u32 %r1, %warpidx;", "2:14: `%warpidx` is neither"),
        ("ld.global.u32 %r1, %rd1;", "2:20: expected an address in brackets"),
        ("ld.global.u32 %r1, [%rd1;", "2:25: expected `,` or `]`, found `;`"),
        ("ld.global.v2.u32 %r1, [%rd1];", "2:18: expected 2 element(s), found 1"),
        ("ld.global.u64 %r1, [%rd1];", "2:15: .u64 needs 64-bit registers"),
        ("ld.shared.v4.f64 {%fd1, %fd1, %fd1, %fd1}, [%rd1];", "2:1: a vector of 4 .f64 exceeds 16 bytes"),
        ("ld.param.u32 %r1, [b];", "2:20: `b` is not declared"),
        ("st.param.u32 [n], %r1;", "2:14: the parameters of a kernel cannot be written"),
        ("st.const.u32 [%rd1], %r1;", "2:1: constant memory cannot be written"),
        ("setp.s32 %p1, %r1, %r2;", "2:1: `setp` needs a comparison such as `.lt`"),
        ("setp.lt.b32 %p1, %r1, %r2;", "2:1: comparison `.lt` on type .b32 is not supported"),
        ("call foo, (%r1);", "2:6: function `foo` is not declared"),
        ("call %rd1, (%r1);", "2:1: an indirect call names a `.callprototype` or `.calltargets`"),
        ("call %rd1, (%r1), proto;", "2:19: `proto` is no `.callprototype` or `.calltargets` here"),
        ("call %r1, (%r2), t;\nt: .calltargets foo;", "2:6: expected a 64-bit register, but `%r1` is a register of up"),
        ("call %rd1, (%r1), t;\nt: .calltargets foo;", "3:17: `foo` is not a function of this file"),
        (".calltargets foo;", "2:1: `.calltargets` needs a label before it"),
        ("mov.u64 %rd1, k;", "2:15: the address of kernel `k` is not supported (kernels launch no kernels)"),
        ("bar.sync 16;", "2:10: barrier 16 does not exist (0 to 15 do)"),
        ("bar.sync 1, 33;", "2:13: 33 threads are not a multiple of 32 up to 1024"),
        ("bar.sync %rd1;", "2:10: expected a register of up to 32 bits, but `%rd1` is a 64-bit register"),
        ("brx.idx %r1, t;", "2:14: `t` is no `.branchtargets` here"),
        ("brx.idx %r1, t;\nt: .branchtargets A, B;\nA:", "3:22: label `B` is not defined here"),
        (".branchtargets A;", "2:1: `.branchtargets` needs a label before it"),
        ("mov.u32 %r1, 7/0;", "2:14: a division by zero"),
        ("mov.u32 %r1, 7+1.0;", "2:14: an integer and a float do not go together"),
        ("mov.f32 %f1, 1?2.0:3.0;", "2:14: `? :` takes integers only"),
        ("mov.f32 %f1, ~1.0;", "2:14: `~` takes an integer"),
        (".reg .v2 .u32 v; add.u32 %r1, v, v;", "2:31: `v` is a vector of registers: one is `v.x` to `v.y`"),
        (".reg .v2 .u32 v; add.u32 %r1, v.x, v.z;", "2:36: `v` has 2 elements and no `.z`"),
        (".reg .v2 .u64 v; add.u32 %r1, v.x, 1;", "2:31: `v.x` is a register of another width than this operand"),
        (".reg .v2 .u32 v; ld.global.v4.u32 v, [%rd1];", "2:35: expected 4 element(s), found 2"),
        ("lop3.or.b32 %r1, %r2, %r3, %r4, 1, %p1;", "2:13: `lop3` with a predicate has two results, `d|p`"),
        ("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 1;", "2:1: `lop3` takes 6 operands here, found 5"),
        ("szext.s32 %r1, %r2, %r3;", "2:1: `szext` needs `.clamp` or `.wrap`"),
        ("cvt.pack.sat.u8.s32 %r1, %r2, %r3;", "2:1: `cvt.pack` to less than 16 bits ends in `.b32`"),
        ("cvt.pack.sat.u32.s32 %r1, %r2, %r3;", "2:1: `cvt.pack` is `.sat` to `.u16` or `.s16`"),
        ("cvt.rn.e4m3x2.f32 %r1, %f1, %f2;", "2:1: conversions of 8-bit floats are `.rn.satfinite` from"),
        ("cvt.rz.tf32.f64 %r1, %fd1;", "2:1: conversions to `.tf32` are `.rna`, `.rn` and `.rz` from `.f32`"),
        ("max.relu.u16x2 %r1, %r2, %r3;", "2:4: modifier `.relu` of `max` is not supported"),
        ("membar;", "2:1: a fence needs a scope such as `.gpu`"),
        ("shfl.sync.b32 %r1, %r2, 1, 31, -1;", "2:1: `shfl` needs a mode such as `.down`"),
        ("atom.global.u32 %r1, [%rd1], 1;", "2:1: `atom` needs an operation such as `.add`"),
        ("atom.global.and.f32 %f1, [%rd1], %f2;", "2:1: `atom` on type .f32 is not supported"),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "2:30: the truth table of `lop3` must be a constant from 0 to 255"),
        ("stmatrix.sync.aligned.m8n8.x3.shared.b16 [%r1], %r2;", "2:1: only `stmatrix` with `.m8n8`, a number of"),
        ("setmaxnreg.sync.aligned.u32 40;", "2:1: `setmaxnreg` is `.inc.sync.aligned.u32` or"),
        ("setmaxnreg.inc.sync.aligned.u32 264;", "2:33: 264 registers are not a multiple of 8 from 24 to 256"),
        ("setmaxnreg.dec.sync.aligned.u32 20;", "2:33: 20 registers are not a multiple of 8"),
        ("setmaxnreg.dec.sync.aligned.u32 %r1;", "2:33: expected a number"),
        ("tcgen05.wait.sync.aligned;", "2:1: `tcgen05` is `.alloc`, `.dealloc`, `.relinquish_alloc_permit`, `.ld`,"),
        ("tcgen05.shift.cta_group::1.down [%r1];", "2:8: shifts of rows (`tcgen05` with `.shift`) are not supported"),
        ("multimem.ld.add.u32 %r1, [%rd1];", "2:1: `multimem` is `.ld_reduce`, `.st` or `.red` here, found `.ld`"),
        ("multimem.ld_reduce.and.u32 %r1, [%rd1];", "2:1: `multimem` on type .u32 is not supported"),
        ("multimem.ld_reduce.global.u32 %r1, [%rd1];", "2:1: `multimem.ld_reduce` needs an operation such as `.add`"),
        ("multimem.ld_reduce.shared.add.u32 %r1, [%r1];", "2:1: multicast memory is global: use `.global` or no space"),
        ("mbarrier.inval.b64 [%r1];", "2:1: barriers need `.shared` and `.b64`"),
        ("vadd.s32.s32.s16 %r1, %r2, %r3;", "2:1: `vadd` on type .s16 is not supported"),
        (
            "vadd.s32.s32.s32 %r1, %r2.b4, %r3;",
            "2:23: `.b4` is not a part of a register (`.b0` to `.b3`, `.h0`, `.h1`) (did you mean `b0`?)",
        ),
        ("vadd.s32.s32.s32.add %r1.b0, %r2, %r3, %r4;", "2:1: `.add` and a part of the destination exclude each other"),
        ("vadd.s32.s32.s32 %r1.h0, %r2, %r3;", "2:1: `vadd` takes 4 operands here, found 3"),
        ("vshl.u32.u32.u32 %r1, %r2, %r3;", "2:1: `vshl` needs `.clamp` or `.wrap`"),
        ("vset.u32.u32.num %r1, %r2, %r3;", "2:1: `vset` needs a comparison such as `.lt`"),
        ("vmad.s32.s32.s32 %r1, -%r2, %r3, -%r4;", "2:1: `vmad` negates the product or `c`, not both"),
        ("vmad.s32.s32.s32.po %r1, %r2, %r3, -%r4;", "2:1: `vmad.po` negates nothing"),
        ("vmad.s32.s32.s32.shr8 %r1, %r2, %r3, %r4;", "2:17: modifier `.shr8` of `vmad` is not supported"),
        ("vadd2.u32.u32.u32.sat.add %r1, %r2, %r3, %r4;", "2:1: `vadd2` cannot saturate what it accumulates"),
        (
            "vadd2.u32.u32.u32 %r1, %r2.h40, %r3, %r4;",
            "2:24: `.h40` does not select 2 elements (`.h` and 2 digits from 0 to 3)",
        ),
        (
            "vmax4.u32.u32.u32 %r1.b01, %r2, %r3, %r4;",
            "2:19: `.b01` is not a mask (`.b` and digits from 3 to 0, falling)",
        ),
        ("add.s32 %r1, -%r2, %r3;", "2:14: expected an operand of type .s32"),
        ("suld.b.1d.b32 %r1, [%rd1, {%r2}];", "2:21: the surface must be a `.surfref` variable or a kernel parameter"),
        ("suld.b.b32 %r1, [%rd1, {%r2}];", "2:1: `suld` needs a geometry such as `.2d`"),
        ("suld.b.1d.f32 %f1, [%rd1, {%r2}];", "2:1: `suld` on type .f32 is not supported"),
        ("ld.param.u64 %rd1, [a]; suld.b.1d.wt.b32 %r1, [%rd1, {%r2}];", "2:34: modifier `.wt` of `suld`"),
        ("ld.param.u64 %rd1, [a]; suld.b.2d.b32 %r1, [%rd1, {%r2}];", "2:51: expected 2 coordinate(s), found 1"),
        (
            "ld.param.u64 %rd1, [a]; suld.b.2d.v4.b64 {%rd2, %rd2, %rd2, %rd2}, [%rd1, {0, 0}];",
            "2:25: a vector of 4 .b64 exceeds 16 bytes",
        ),
        (
            "ld.param.u64 %rd1, [a]; sust.p.1d.b32 [%rd1, {0}], %r1;",
            "2:25: only unformatted accesses (`sust.b`) are supported",
        ),
        ("sured.b.add.1d.u32.trap [%rd1, {0}], 1;", "2:1: `sured` is not supported (reductions on surfaces)"),
        (
            "suq.channel_order.b32 %r1, [%rd1];",
            "2:1: `suq` asks for `.width`, `.height`, `.depth` or `.array_size` here",
        ),
        ("div.rn.f16 %r1, %r2, %r3;", "2:1: `div` on type .f16 is not supported"),
        ("add.rz.f16x2 %r1, %r2, %r3;", "2:1: `add.f16x2` only rounds to nearest"),
        ("add.ftz.bf16 %r1, %r2, %r3;", "2:4: modifier `.ftz` of `add` is not supported"),
        ("fma.rn.sat.relu.f16 %r1, %r2, %r3, %r4;", "2:7: modifier `.sat` of `fma` is not supported"),
        ("fma.rn.oob.f16 %r1, %r2, %r3, %r4;", "2:7: modifier `.oob` of `fma` is not supported"),
        ("fma.f16x2 %r1, %r2, %r3, %r4;", "2:1: `fma.f16x2` needs `.rn`"),
        ("max.xorsign.f16 %r1, %r2, %r3;", "2:1: `.xorsign` goes with `.abs`"),
        ("ex2.approx.bf16 %r1, %r2;", "2:1: `ex2.bf16` needs `.ftz`"),
        ("setp.lt.f16x2 %p1, %r1, %r2;", "2:15: `setp` on type .f16x2 sets two predicates, `p|q`: one a half"),
        ("setp.lt.f16 %p1|%p2, %r1, %r2;", "2:13: `setp` on type .f16 sets one predicate"),
        ("set.lt.f32.f16 %f1, %r1, %r2;", "2:1: `set` on type .f32 is not supported"),
        ("cvt.f16x2.f32 %r1, %f1, %f2;", "2:1: `cvt.f16x2.f32` needs `.rn` or `.rz`"),
        (
            "cvt.rn.relu.f16.f64 %r1, %rd1;",
            "2:1: `cvt.rn.relu.f16.f64`: this conversion of .f64 to .f16 is not supported",
        ),
        (
            "cvt.rm.relu.bf16.f32 %r1, %f1;",
            "2:1: `cvt.rm.relu.bf16.f32`: this conversion of .f32 to .bf16 is not supported",
        ),
        (
            "cvt.rn.sat.bf16.f32 %r1, %f1;",
            "2:1: `cvt.rn.sat.bf16.f32`: this conversion of .f32 to .bf16 is not supported",
        ),
        ("cvt.rn.f16.f32.rna %r1, %f1;", "2:15: modifier `.rna` of `cvt` is not supported"),
        ("add.f32.f16x2 %f1, %r1, %f2;", "2:1: `add` on type .f16x2 is not supported"),
        ("atom.global.add.f16 %r1, [%rd1], %r2;", "2:1: an addition of type .f16 needs `.noftz`"),
        ("atom.global.min.noftz.f16x2 %r1, [%rd1], %r2;", "2:1: `atom` on type .f16x2 is not supported"),
        ("min.xorsign.abs.f32 %f1, %f2, %f3;", "2:4: modifier `.xorsign` of `min` is not supported"),
        ("pm.flush [%rd1];", "2:3: unknown operation `pm.flush`"),
        ("pm.st.global.u32 [%rd1], %r1;", "2:1: `pm.st` needs `.nt` or `.log`"),
        ("pm.barrier;", "2:1: `pm.barrier` needs `.wi`, `.wg` or `.kr`"),
        ("pm.clwb [%r1];", "2:9: persistent memory needs a 64-bit address"),
        ("pm.st.log.shared.u32 [%rd1], %r1;", "2:1: persistent memory is global: use `.global` or no space"),
        ("pm.txbegin %r1;", "2:12: a transaction's id must be a constant"),
        ("tex.cube.v4.u32.f32 {%r1, %r2, %r3, %r4}, [t, {%f1}];", "2:1: only `tex` of `.1d`, `.2d`, `.3d`"),
        (".reg .f128 %q;", "2:6: register type `.f128` is not supported"),
        (".regs .b32 %q;", "2:1: directive `.regs` is not supported here (did you mean `reg`?)"),
        (".local .b8 big[1000000];", "k` needs 1000000 bytes of local memory a thread, more than 524288"),
        ("mov.u32 %r1, 99999999999999999999;", "2:14: `99999999999999999999` is not a number that fits 64 bits"),
        ("mov.u32 %r1, §;", "2:14: unexpected character"),
        ("add.s32 %r1 %r2;", "2:13: expected `,` or `;`, found `%r2`"),
    ] {
        let found = faults(body);
        assert!(found[0].starts_with("bad.ptx:"), "{body}: {found:?}");
        assert!(found[0].contains(expected), "`{body}` gives {found:#?}, not `{expected}`");
    }
}

#[test]
fn a_file_says_for_which_version_it_was_written() {
    let entry = "\n.entry k() { ret; }";
    for version in ["1.0", "1.5", "4.3", "6.0", "7.8", "8.8", "9.3", "9.5"] {
        let report = check("k.ptx", &format!(".version {version}{entry}"));
        assert!(report.unsupported.is_empty() && report.warnings.is_empty(), "{version}");
    }
    // One that is newer is read all the same.
    for version in ["9.6", "10.0", "12.3"] {
        let text = format!(".version {version}{entry}");
        let report = check("k.ptx", &text);
        assert!(report.unsupported.is_empty() && parse("k.ptx", &text).is_ok(), "{version}");
        let told: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
        let expected = format!("k.ptx:1:10: PTX version {version} is newer than 9.5, the newest known here");
        assert!(told.len() == 1 && told[0].starts_with(&expected), "{told:?}");
    }
    for version in ["0.9", "8", "abc"] {
        let report = check("k.ptx", &format!(".version {version}{entry}"));
        let found: Vec<String> = report.unsupported.iter().map(ToString::to_string).collect();
        assert!(found[0].contains("1:10: `") && found[0].contains("is no version of PTX"), "{found:?}");
        assert!(parse("k.ptx", &format!(".version {version}{entry}")).is_err(), "{version}");
    }
    let missing = parse("k.ptx", "// a comment\n.target sm_60\n.entry k() { ret; }").unwrap_err().to_string();
    assert_eq!(missing, "k.ptx:2:1: a PTX file begins with `.version` and a number such as 8.0");
}

#[test]
fn a_name_has_one_body() {
    let text =
        ".version 8.0\n.func f();\n.entry k() { call f; ret; }\n.func f() { ret; }\n.entry k() { ret; }\n.func f() { }";
    let found = parse("k.ptx", text).unwrap_err().to_string();
    let expected = ["k.ptx:5:8: `k` is defined already, on line 3", "k.ptx:6:7: `f` is defined already, on line 4"];
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn faults_outside_of_kernels() {
    for (text, expected) in [
        ("", ""),
        (".visible .entyr k() { ret; }", "2:10: unknown directive `.entyr` (did you mean `entry`?)"),
        (".entry k(", "2:10: expected `.param` or `.reg`, found the end of the file"),
        (".entry k() { ret;", "2:18: expected `}`, found the end of the file"),
        (".entry { ret; }", "2:8: expected a function name, found `{`"),
        (".address_size 32", "2:15: `.address_size 32` is not supported, only 64"),
        (".const .b8 big[70000];\n.entry k() { ret; }", "2:12: constant memory exceeds 64 KiB"),
        (".global .u32 x[2] = {1, 2, 3};", "2:14: too many initialisers for `x`"),
        (".const .u32 x = {1, 2};\n.const .u32 y;", "2:13: too many initialisers for `x`"),
        (".global .align 3 .u32 x;", "2:23: alignment 3 of `x` is not a power of two"),
        (".global .u32 x = y;", "2:18: unknown variable `y`"),
        (".shared .u32 x = 1;", "2:14: `.shared` variables cannot be initialised"),
        (".entry k() { .reg .b32 %r<2>; mov.b32 %r1, \"text; }", "unterminated string"),
        (
            ".func f(.param .e4m3x2 x) { .reg .b32 %r; call f, (%r); call f, (%r); ret; }\n\
             .entry k() { .reg .b32 %r; call f, (%r); call f, (%r); ret; }",
            "2:16: type `.e4m3x2` is not supported for variables",
        ),
        (
            ".entry k() { l: .calltargets f; l: .calltargets f; ret; }\n.func f() { ret; }",
            "2:33: label `l` is defined twice",
        ),
        (
            ".func area() { ret; }\n.entry k() { call aera; ret; }",
            "3:19: function `aera` is not declared (did you mean `area`?)",
        ),
        (
            ".func area() { ret; }\n.entry k() { .reg .b64 %d; list: .calltargets ara; call %d, lsit; ret; }",
            "3:61: `lsit` is no `.callprototype` or `.calltargets` here (did you mean `list`?)",
        ),
        (
            ".func area() { ret; }\n.entry k() { .reg .b64 %d; list: .calltargets ara; call %d, list; ret; }",
            "3:47: `ara` is not a function of this file (did you mean `area`?)",
        ),
        (".func f(.param .u32 x);\n.entry k() { call f; ret; }", "3:19: function `f` has no body in this file"),
    ] {
        let text = format!(".version 8.0\n{text}");
        let found: Vec<String> = check("bad.ptx", &text).unsupported.iter().map(ToString::to_string).collect();
        match expected {
            "" => assert!(found.is_empty(), "{found:?}"),
            _ => assert!(found[0].contains(expected), "`{text}` gives {found:#?}, not `{expected}`"),
        }
    }
}

#[test]
fn one_run_reports_every_fault_and_the_kernels_that_are_sound() {
    let text = ".version 8.0\n.const .u32 table[4];\n.global .u64 heap[8];\n\
        .entry good(.param .u64 a, .param .align 8 .b8 s[24]) {\n  .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p<2>;\n\
          .shared .b8 tile[100]; .local .b8 depot[20];\n  ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n\
          @%p1 st.shared.u32 [tile], %r1; st.local.u32 [depot], %r1; st.global.u32 [%rd1], %r1; ret; }\n\
        .entry bad() {\n  .reg .f32 %f<3>;\n  sinn.approx.f32 %f1, %f2;\n  add.f32 %f1, %f2;\n  ad.f32 %f1, %f2, %f1;\n  ret; }\n";
    let report = check("two.ptx", text);
    let places: Vec<(u32, u32)> = report.unsupported.iter().map(|f| (f.span.line, f.span.column)).collect();
    assert_eq!(places, [(11, 3), (12, 3), (13, 3)]);
    let [good, bad] = report.kernels.as_slice() else { panic!("{report:?}") };
    assert!(good.supported && !bad.supported);
    assert_eq!((good.shared_bytes, good.local_bytes, good.param_bytes), (100, 32, 32));
    assert_eq!((good.instructions, good.virtual_registers), (7, [2, 1, 1]));
    assert_eq!((report.const_bytes, report.global_bytes), (16, 64));
    assert_eq!(bad.unsupported.len(), 3);
    assert!(parse("two.ptx", text).is_err());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["kernels"][0]["params"][1]["bytes"], 24);
    assert_eq!(json["unsupported"][0]["help"], "did you mean `sin`?");
}

#[test]
fn a_flood_of_faults_is_cut_short() {
    let noise = "§ ".repeat(100_000);
    assert!(check("noise.ptx", &noise).unsupported.len() <= 100);
    let body = "frob;\n".repeat(50_000);
    assert!(check("frob.ptx", &format!(".version 8.0 .entry k() {{ {body} ret; }}")).unsupported.len() <= 100);
}

/// Real PTX of small size to spoil.
const SOURCES: [&str; 7] = [
    include_str!("../../workloads/atax/kernel.ptx"),
    include_str!("../../workloads/bfs/kernel.ptx"),
    include_str!("../../workloads/gemm_tiled/kernel.ptx"),
    include_str!("../../workloads/histogram/kernel.ptx"),
    include_str!("ptx/basics.nvrtc.ptx"),
    crate::calls::SHAPES,
    crate::recursion::SORT,
];

#[derive(Debug, Clone)]
enum Edit {
    Cut(usize, usize),
    Truncate(usize),
    Insert(usize, String),
    Splice { at: usize, source: usize, from: usize, length: usize },
    Swap(usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let scrap = prop::sample::select(vec![
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        ",",
        ":",
        "@",
        "@!",
        "|",
        "-",
        "+",
        ".",
        "<",
        ">",
        "%",
        "=",
        "\"",
        "/*",
        "0x",
        "-1",
        ".reg",
        ".param",
        ".b8",
        ".v4",
        "call",
        "bra",
        "ret;",
        "%r1",
        "18446744073709551615",
        "4294967295",
        "é",
        "\0",
        ".global .u32 x[99999999];",
        ".shared .align 65536 .b8 y[16000000];",
        ".local .b8 z[16777216];",
        ".reg .b32 %q<1000000>;",
        ".func f() { call f; }",
    ]);
    prop_oneof![
        (any::<usize>(), 1..200usize).prop_map(|(at, n)| Edit::Cut(at, n)),
        any::<usize>().prop_map(Edit::Truncate),
        (any::<usize>(), scrap).prop_map(|(at, s)| Edit::Insert(at, s.to_owned())),
        (any::<usize>(), any::<usize>(), any::<usize>(), 1..400usize)
            .prop_map(|(at, source, from, length)| Edit::Splice { at, source, from, length }),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Edit::Swap(a, b)),
    ]
}

/// A character boundary of a text.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at % (text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn apply(text: &mut String, edit: &Edit) {
    match edit {
        Edit::Cut(at, n) => {
            let from = boundary(text, *at);
            let to = boundary(text, (from + n).min(text.len()));
            text.replace_range(from..to, "");
        }
        Edit::Truncate(at) => text.truncate(boundary(text, *at)),
        Edit::Insert(at, s) => text.insert_str(boundary(text, *at), s),
        Edit::Splice { at, source, from, length } => {
            let source = SOURCES[source % SOURCES.len()];
            let from = boundary(source, *from);
            let to = boundary(source, (from + length).min(source.len()));
            text.insert_str(boundary(text, *at), &source[from..to]);
        }
        Edit::Swap(a, b) => {
            let lines: Vec<&str> = text.lines().collect();
            if lines.len() > 1 {
                let mut lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
                let (a, b) = (a % lines.len(), b % lines.len());
                lines.swap(a, b);
                *text = lines.join("\n");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn spoilt_ptx_never_panics(source in 0..SOURCES.len(), edits in prop::collection::vec(edit(), 1..8)) {
        let mut text = SOURCES[source].to_owned();
        for edit in &edits {
            apply(&mut text, edit);
        }
        let report = check("spoilt.ptx", &text);
        let lines = text.lines().count() as u32;
        for fault in &report.unsupported {
            prop_assert!(!fault.message.is_empty());
            prop_assert!((1..=lines.max(1) + 1).contains(&fault.span.line) && fault.span.column >= 1, "{}", fault);
        }
    }

    #[test]
    fn noise_never_panics(text in "[ -~\n]{0,300}") {
        check("noise.ptx", &format!(".visible .entry k(.param .u64 a) {{ .reg .b32 %r<9>; {text} ret; }}"));
        check("noise.ptx", &text);
    }
}
