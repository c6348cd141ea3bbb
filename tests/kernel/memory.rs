//! Loads, stores, atomics, textures, calls, spaces, special registers, barriers and warp-wide operations, each in a few
//! lines of PTX run by the functional driver. Meaning: PTX ISA 8.x, sections 5, 7, 9.7.9 to 9.7.13.

use crate::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::functional::{Event, Limits, Observer, Wanted, run_observed};
use durawarp::kernel::ir::{Elem, Op, Scope};
use durawarp::kernel::launch::Texture;
use durawarp::kernel::memory::FlatMemory;

/// A kernel of this body: `%in` and `%out` are the buffers, `%mine` is `%out` plus 4 bytes a thread.
fn kernel(before: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n{before}\n\
         .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 %in, %out, %mine; .reg .b32 %tid, %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %fd<9>;\n\
         .reg .b16 %rs<9>; .reg .pred %p<9>;\n\
         ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; cvta.to.global.u64 %out, %out;\n\
         mov.u32 %tid, %tid.x; mad.wide.u32 %mine, %tid, 4, %out;\n{body}\nret;\n}}\n"
    )
}

fn ran(before: &str, body: &str, setup: &Setup<'_>) -> Ran {
    let ran = run_text(&kernel(before, body), setup);
    ran.result.as_ref().unwrap_or_else(|e| panic!("{body}: {e}"));
    ran
}

/// One thread; 16 input bytes 0x80, 0x81, ...; the first output word.
fn check(body: &str, expected: u64) {
    let input: Vec<u8> = (0x80..0x90).collect();
    let found = ran("", body, &Setup { input: &input, output: 32, ..Setup::default() }).u64s()[0];
    assert_eq!(found, expected, "`{body}`: {found:#x}, not {expected:#x}");
}

/// 32 threads, one output word each.
fn check_lanes(body: &str, expected: impl Fn(u32) -> u32) {
    let found = ran("", body, &Setup { output: 128, shape: (1, 32), ..Setup::default() }).u32s();
    let expected: Vec<u32> = (0..32).map(expected).collect();
    assert_eq!(found, expected, "`{body}`: {found:#x?}, not {expected:#x?}");
}

#[test]
fn loads_extend_by_their_type_and_stores_truncate() {
    for (body, expected) in [
        ("ld.global.u8 %r1, [%in]; st.global.u32 [%out], %r1;", 0x80),
        ("ld.global.s8 %r1, [%in]; st.global.u32 [%out], %r1;", 0xffff_ff80),
        ("ld.global.s8 %rd1, [%in]; st.global.u64 [%out], %rd1;", 0xffff_ffff_ffff_ff80),
        ("ld.global.u16 %rs1, [%in+2]; st.global.u16 [%out], %rs1;", 0x8382),
        ("ld.global.s16 %r1, [%in]; st.global.s32 [%out], %r1;", 0xffff_8180),
        ("ld.global.b32 %r1, [%in+4]; st.global.b32 [%out], %r1;", 0x8786_8584),
        ("ld.global.s32 %rd1, [%in]; st.global.u64 [%out], %rd1;", 0xffff_ffff_8382_8180),
        ("ld.global.u32 %rd1, [%in]; st.global.u64 [%out], %rd1;", 0x8382_8180),
        ("ld.global.f32 %f1, [%in]; st.global.f32 [%out], %f1;", 0x8382_8180),
        ("ld.global.u64 %rd1, [%in]; st.global.u8 [%out+1], %rd1;", 0x8000),
        ("ld.global.f64 %fd1, [%in]; st.global.f64 [%out], %fd1;", 0x8786_8584_8382_8180),
        ("ld.global.v2.u8 {%rs1, %rs2}, [%in]; st.global.v2.u8 [%out], {%rs2, %rs1};", 0x8081),
        ("ld.global.v4.u8 {%r1, %r2, %r3, %r4}, [%in]; st.global.v4.u8 [%out], {%r4, %r3, %r2, %r1};", 0x8081_8283),
        ("ld.global.v2.u32 {%r1, %r2}, [%in]; st.global.v2.u32 [%out], {%r2, %r1};", 0x8382_8180_8786_8584),
        ("ld.global.v4.f32 {%f1, _, %f3, %f4}, [%in]; st.global.v2.f32 [%out], {%f4, %f3};", 0x8b8a_8988_8f8e_8d8c),
        ("ld.global.v2.f64 {%fd1, %fd2}, [%in]; st.global.f64 [%out], %fd2;", 0x8f8e_8d8c_8b8a_8988),
        ("ld.global.v4.u16 {%rs1,%rs2,%rs3,%rs4}, [%in]; st.global.v2.u16 [%out], {%rs4, %rs1};", 0x8180_8786),
        ("add.s64 %rd1, %in, 65536; ld.global.u32 %r1, [%rd1+-65532]; st.global.u32 [%out], %r1;", 0x8786_8584),
        ("st.global.u32 [%out], 7; st.global.v2.f32 [%out], {0f3F800000, 0f40000000};", 0x4000_0000_3f80_0000),
        ("ld.u32 %r1, [%in]; st.u32 [%out], %r1;", 0x8382_8180),
    ] {
        check(body, expected);
    }
}

#[test]
fn a_warp_may_wrap_around_a_buffer_of_64_kib() {
    // Lane offsets are 16 bits wide: 16 lanes lie at the end of the stretch, 16 at its start.
    let input: Vec<u8> = (0..1 << 14).flat_map(u32::to_le_bytes).collect();
    let body = "shl.b32 %r1, %tid, 2; add.u32 %r1, %r1, 65472; and.b32 %r1, %r1, 65535; cvt.u64.u32 %rd1, %r1;
        add.u64 %rd1, %in, %rd1; ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1], %r2; st.global.u32 [%mine], %r2;";
    let after = ran("", body, &Setup { input: &input, output: 128, shape: (1, 32), ..Setup::default() });
    let expected: Vec<u32> = (0..32).map(|lane| (lane + 16368) % 16384).collect();
    assert_eq!(after.u32s(), expected);
    assert_eq!(after.input, input);
}

#[test]
fn cache_operators_orders_and_hints_are_accepted() {
    for access in [
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "nc",
        "volatile",
        "relaxed.gpu",
        "acquire.sys",
        "relaxed.cta",
        "weak",
        "ca.nc",
        "L1::no_allocate",
        "nc.L1::evict_last.L2::128B",
    ] {
        let (order, cache) = match access {
            "volatile" | "weak" => (format!(".{access}"), String::new()),
            _ if access.contains("relaxed") || access.contains("acquire") => (format!(".{access}"), String::new()),
            _ => (String::new(), format!(".{access}")),
        };
        check(&format!("ld{order}.global{cache}.u32 %r1, [%in]; st.global.u32 [%out], %r1;"), 0x8382_8180);
    }
    for access in [
        "st.global.wb.u32",
        "st.global.cg.u32",
        "st.global.cs.u32",
        "st.global.wt.u32",
        "st.volatile.global.u32",
        "st.relaxed.gpu.global.u32",
        "st.release.sys.global.u32",
        "st.weak.global.u32",
        "pm.st.nt.global.u32",
        "pm.st.log.global.u32",
        "pm.st.nt.u32",
        "pm.st.log.u32",
    ] {
        check(&format!("{access} [%out], 5;"), 5);
    }
    check("pm.st.log.global.v2.u32 [%out], {1, 2};", 0x2_0000_0001);
    check("pm.st.nt.v4.f32 [%out], {%f1, %f1, %f1, %f1};", 0);
}

#[test]
fn an_access_that_releases_or_acquires_is_a_fence_before_or_behind_it() {
    // What is emitted: fences and accesses, in order.
    let emitted = |text: &str| {
        let ptx = format!(
            ".version 7.0 .target sm_70 .visible .entry k(.param .u64 p) {{ .reg .b64 %a; .reg .b32 %r; \
             ld.param.u64 %a, [p];\n{text};\nret; }}"
        );
        let module = durawarp::kernel::ptx::parse("k.ptx", &ptx).unwrap();
        let of = |op: &Op| match op {
            Op::Fence(Scope::Gpu) => Some("gpu"),
            Op::Fence(Scope::Sys) => Some("sys"),
            Op::Fence(Scope::Cta) => Some("cta"),
            Op::Mem(_) => Some("access"),
            _ => None,
        };
        module.kernels[0].code.iter().filter_map(|inst| of(&inst.op)).collect::<Vec<_>>()
    };
    for (text, expected) in [
        ("ld.acquire.gpu.global.u32 %r, [%a]", &["access", "gpu"][..]),
        ("ld.acquire.sys.u32 %r, [%a]", &["access", "sys"]),
        ("ld.relaxed.gpu.u32 %r, [%a]", &["access"]),
        ("ld.acquire.cta.u32 %r, [%a]", &["access"]),
        ("st.release.cluster.u32 [%a], 1", &["gpu", "access"]),
        ("atom.add.release.gpu.u32 %r, [%a], 1", &["gpu", "access"]),
        ("atom.add.acquire.gpu.u32 %r, [%a], 1", &["access", "gpu"]),
        ("atom.acq_rel.sys.global.add.u32 %r, [%a], 1", &["sys", "access", "sys"]),
        ("red.release.gpu.global.add.u32 [%a], 1", &["gpu", "access"]),
        ("atom.add.u32 %r, [%a], 1", &["access"]),
    ] {
        assert_eq!(emitted(text), expected, "{text}");
    }
}

#[test]
fn fences_prefetches_and_persistent_operations_do_no_harm() {
    for operation in [
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "fence.acq_rel.sys",
        "fence.sc.gpu",
        "fence.acq_rel.cta",
        "fence.proxy.async",
        "fence.acquire.sync_restrict::shared::cluster.cluster",
        "prefetch.global.L2 [%in]",
        "prefetch.L1 [%in]",
        "prefetchu.L1 [%in]",
        "discard.global.L2 [%in], 128",
        "nanosleep.u32 20",
        "pmevent 3",
        "pm.clwb.global [%out]",
        "pm.clwb [%out+8]",
        "pm.clwb.log [%out]",
        "pm.clflushopt.global [%out]",
        "pm.sfence",
        "pm.ofence",
        "pm.dfence",
        "pm.barrier.wi",
        "pm.barrier.wg",
        "pm.barrier.kr",
        "pm.txbegin 1",
        "pm.txend 1",
        "pm.region",
        "pm.acq.gpu",
        "pm.rel.sys",
        "pm.acq.cta",
        "clwb [%out]",
        "clflushopt [%out]",
        "sfence",
        "ofence",
        "dfence",
        "bar.sync 0",
        "barrier.sync 0",
        "barrier.cta.sync.aligned 1",
        "bar.sync 2, 32",
        "bar.arrive 3, 32",
        "bar.warp.sync -1",
        ".pragma \"nounroll\"",
        "setp.ne.u32 %p1, %tid, %tid; @%p1 trap",
        "setp.ne.u32 %p1, %tid, %tid; @%p1 brkpt",
    ] {
        check(&format!("{operation};\nst.global.u32 [%out], 1;"), 1);
    }
    let counts = ran("", "pm.sfence; pm.clwb [%out]; membar.gl;", &Setup::default()).result.unwrap();
    assert_eq!((counts.pm_operations, counts.fences), (2, 1));
}

#[test]
fn atomics_return_the_old_value() {
    for (operation, old, operand, new) in [
        ("add.u32", 5u32, 7u32, 12u32),
        ("add.s32", 5, u32::MAX, 4),
        ("add.f32", 1f32.to_bits(), 2f32.to_bits(), 3f32.to_bits()),
        ("min.u32", 5, u32::MAX, 5),
        ("min.s32", 5, u32::MAX, u32::MAX),
        ("max.u32", 5, u32::MAX, u32::MAX),
        ("max.s32", 5, u32::MAX, 5),
        ("inc.u32", 5, 5, 0),
        ("inc.u32", 5, 9, 6),
        ("dec.u32", 0, 9, 9),
        ("dec.u32", 5, 9, 4),
        ("dec.u32", 11, 9, 9),
        ("and.b32", 0xff0, 0xff, 0xf0),
        ("or.b32", 0xf00, 0xff, 0xfff),
        ("xor.b32", 0xff0, 0xff, 0xf0f),
        ("exch.b32", 5, 7, 7),
        ("cas.b32", 5, 5, 9),
        ("cas.b32", 6, 5, 6),
    ] {
        let swap = if operation.starts_with("cas") { ", 9" } else { "" };
        for (space, address) in
            [("global.", "%out"), ("", "%out"), ("relaxed.gpu.global.", "%out"), ("shared.", "s"), ("", "%rd1")]
        {
            let (name, fill) = match address {
                "%out" => ("atom", format!("mov.u32 %r5, {operand}; st.global.u32 [%out], {old};")),
                _ => (
                    "atom",
                    format!(
                        "mov.u32 %r5, {operand}; st.shared.u32 [s], {old}; mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1;"
                    ),
                ),
            };
            let back = if address == "%out" { "ld.global.u32 %r2, [%out];" } else { "ld.shared.u32 %r2, [s];" };
            let body = format!(
                ".shared .u32 s; {fill} {name}.{space}{operation} %r1, [{address}], %r5{swap}; {back}
                 st.global.v2.u32 [%out], {{%r1, %r2}};"
            );
            check(&body, u64::from(new) << 32 | u64::from(old));
            if swap.is_empty() && !operation.starts_with("exch") {
                let body = body.replace("atom.", "red.").replace("%r1, [", "[").replace("{%r1,", "{0,");
                check(&body, u64::from(new) << 32);
            }
        }
    }
    for (operation, old, operand, new) in [
        ("add.u64", u64::MAX, 2, 1),
        ("add.f64", 1f64.to_bits(), 2f64.to_bits(), 3f64.to_bits()),
        ("min.s64", 5, u64::MAX, u64::MAX),
        ("max.u64", 5, u64::MAX, u64::MAX),
        ("xor.b64", 0xff0, 0xff, 0xf0f),
        ("exch.b64", 5, 7, 7),
        ("cas.b64", 5, 5, 9),
    ] {
        let swap = if operation.starts_with("cas") { ", 9" } else { "" };
        let body = format!(
            "mov.b64 %rd1, {old}; mov.b64 %rd2, {operand}; st.global.u64 [%out], %rd1;
             atom.global.{operation} %rd3, [%out], %rd2{swap}; setp.eq.s64 %p1, %rd3, %rd1; @!%p1 trap;"
        );
        check(&body, new);
    }
    check("st.global.u16 [%out+2], 5; atom.global.cas.b16 %rs1, [%out+2], 5, 6; st.global.u16 [%out], %rs1;", 0x6_0005);
    check_lanes(
        ".shared .u32 n; setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.u32 [n], 100; bar.sync 0;
         atom.shared.add.u32 %r1, [n], 2; st.global.u32 [%mine], %r1;",
        |lane| 100 + 2 * lane,
    );
}

#[test]
fn shared_local_constant_and_module_memory() {
    let module = ".const .align 4 .b8 table[12] = {1, 2, 3, 4, 5, 6, 7, 8};\n.const .f32 pi = 0f40490FDB;\n\
                  .global .align 8 .u64 where[2] = {cell, generic(cell)+4};\n.global .u32 cell = 0x1234;\n\
                  .visible .global .v2 .u32 pair = {7, 9};\n.extern .shared .align 16 .b8 dynamic[];";
    let word = |body: &str| ran(module, body, &Setup { shared: 64, output: 32, ..Setup::default() }).u64s()[0];
    assert_eq!(word("ld.const.u32 %r1, [table+4]; st.global.u32 [%out], %r1;"), 0x0807_0605);
    assert_eq!(word("mov.u64 %rd1, table; ld.const.u8 %r1, [%rd1+2]; st.global.u32 [%out], %r1;"), 3);
    assert_eq!(
        word("mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1; ld.u8 %r1, [%rd1+2]; st.global.u32 [%out], %r1;"),
        3
    );
    assert_eq!(word("ld.const.f32 %f1, [pi]; st.global.f32 [%out], %f1;"), 0x4049_0fdb);
    assert_eq!(word("ld.global.u32 %r1, [cell]; st.global.u32 [%out], %r1;"), 0x1234);
    assert_eq!(word("ld.global.u64 %rd1, [where]; ld.u32 %r1, [%rd1]; st.global.u32 [%out], %r1;"), 0x1234);
    assert_eq!(word("ld.global.v2.u32 {%r1, %r2}, [pair]; st.global.v2.u32 [%out], {%r1, %r2};"), 0x9_0000_0007);
    assert_eq!(word("mov.u64 %rd1, pair; ld.global.u32 %r1, [%rd1+4]; st.global.u32 [%out], %r1;"), 9);
    assert_eq!(
        word(
            ".shared .align 8 .b8 s[8]; st.shared.u64 [s], -2; st.shared.u8 [dynamic+3], 5;
                     ld.shared.u64 %rd1, [s]; st.global.u64 [%out], %rd1;"
        ),
        u64::MAX - 1
    );
    assert_eq!(
        word(
            "st.shared.u32 [dynamic+60], 5; mov.u64 %rd1, dynamic; cvta.shared.u64 %rd1, %rd1;
                     ld.u32 %r1, [%rd1+60]; st.global.u32 [%out], %r1;"
        ),
        5
    );
    assert_eq!(
        word(
            ".local .align 16 .b8 depot[32]; mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1;
                     st.local.v2.u32 [%rd1+8], {1, 2}; ld.u32 %r1, [%rd2+12]; st.global.u32 [%out], %r1;"
        ),
        2
    );
    assert_eq!(word("mov.u32 %r1, %dynamic_smem_size; st.global.u32 [%out], %r1;"), 64);
}

#[test]
fn functions_take_and_return_values_and_structures() {
    let functions = ".func (.param .b32 result) twice(.param .b32 x) {
            .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.s32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret; }
        .func (.reg .b32 %result) old(.reg .b32 %x) { add.s32 %result, %x, 1; ret; }
        .weak .func (.param .align 8 .b8 result[16]) both(.param .align 8 .b8 x[16]) {
            .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p;
            ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [x+8]; setp.eq.u32 %p, %r1, 0; @%p bra ZERO;
            st.param.b64 [result], %rd1; st.param.b32 [result+8], 7; bra.uni DONE;
        ZERO: st.param.b64 [result], 1; st.param.b32 [result+8], 0;
        DONE: ret; }
        .extern .func (.param .b32 status) vprintf(.param .b64 text, .param .b64 list);";
    let word = |body: &str| ran(functions, body, &Setup { output: 32, ..Setup::default() }).u64s()[0];
    let call = |f: &str| {
        format!(
        "{{ .param .b32 p0; st.param.b32 [p0], 21; .param .b32 q0; call.uni (q0), {f}, (p0); ld.param.b32 %r1, [q0]; }}
         st.global.u32 [%out], %r1;")
    };
    assert_eq!(word(&call("twice")), 42);
    assert_eq!(word("mov.u32 %r1, 5; call (%r2), old, (%r1); st.global.u32 [%out], %r2;"), 6);
    let structure = |flag: u32| {
        format!(
            "{{ .param .align 8 .b8 p0[16]; st.param.b64 [p0], 99; st.param.b32 [p0+8], {flag};
           .param .align 8 .b8 q0[16]; call.uni (q0), both, (p0); ld.param.b64 %rd1, [q0]; ld.param.b32 %r1, [q0+8]; }}
         cvt.u64.u32 %rd2, %r1; shl.b64 %rd2, %rd2, 32; or.b64 %rd1, %rd1, %rd2; st.global.u64 [%out], %rd1;"
        )
    };
    assert_eq!(word(&structure(1)), 7 << 32 | 99);
    assert_eq!(word(&structure(0)), 1);
    let guarded = "setp.eq.u32 %p1, %tid, 1; mov.u32 %r2, 3; @%p1 call (%r2), old, (%r2); st.global.u32 [%mine], %r2;";
    let lanes = ran(functions, guarded, &Setup { output: 8, shape: (1, 2), ..Setup::default() }).u32s();
    assert_eq!(lanes, [3, 4], "only the lanes of the guard call");
    assert_eq!(
        word(
            "{ .param .b64 a; .param .b64 b; .param .b32 c; call.uni (c), vprintf, (a, b); ld.param.b32 %r1, [c]; }
                     st.global.u32 [%out], %r1;"
        ),
        0
    );
}

#[test]
fn special_registers() {
    let all = |register: &str| {
        let body = format!(
            "mov.u32 %r1, {register}; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r2, %r2, %r3, %tid;
             mad.wide.u32 %mine, %r2, 4, %out; st.global.u32 [%mine], %r1;"
        );
        ran("", &body, &Setup { output: 4 * 80, shape: (2, 40), ..Setup::default() }).u32s()
    };
    let expect = |register: &str, f: &dyn Fn(u32, u32) -> u32| {
        let expected: Vec<u32> = (0..80).map(|i| f(i / 40, i % 40)).collect();
        assert_eq!(all(register), expected, "{register}");
    };
    expect("%tid.x", &|_, t| t);
    expect("%tid.y", &|_, _| 0);
    expect("%ntid.x", &|_, _| 40);
    expect("%ntid.z", &|_, _| 1);
    expect("%ctaid.x", &|c, _| c);
    expect("%nctaid.x", &|_, _| 2);
    expect("%laneid", &|_, t| t % 32);
    expect("%warpid", &|_, t| t / 32);
    expect("%nwarpid", &|_, _| 2);
    expect("%lanemask_eq", &|_, t| 1 << (t % 32));
    expect("%lanemask_lt", &|_, t| (1 << (t % 32)) - 1);
    expect("%lanemask_le", &|_, t| u32::MAX >> (31 - t % 32));
    expect("%lanemask_gt", &|_, t| !(u32::MAX >> (31 - t % 32)));
    expect("%lanemask_ge", &|_, t| u32::MAX << (t % 32));
    expect("WARP_SZ", &|_, _| 32);
    check(
        "mov.u32 %r1, %clock; mov.u64 %rd1, %clock64; mov.u64 %rd2, %globaltimer; cvt.u64.u32 %rd3, %r1;
           setp.le.u64 %p1, %rd3, %rd1; @!%p1 trap; mov.u32 %r2, %smid; st.global.u32 [%out], %r2;",
        0,
    );
}

#[test]
fn lanes_exchange_values() {
    let shuffle = |mode: &str| format!("shfl.sync.{mode}, -1; st.global.u32 [%mine], %r1;");
    check_lanes(&shuffle("idx.b32 %r1, %tid, 5, 0x1f"), |_| 5);
    check_lanes(&shuffle("idx.b32 %r1, %tid, 9, 0x181f"), |lane| lane & !7 | 1);
    check_lanes(&shuffle("up.b32 %r1, %tid, 2, 0"), |lane| if lane < 2 { lane } else { lane - 2 });
    check_lanes(&shuffle("down.b32 %r1, %tid, 3, 0x1f"), |lane| if lane > 28 { lane } else { lane + 3 });
    check_lanes(&shuffle("bfly.b32 %r1, %tid, 1, 0x1f"), |lane| lane ^ 1);
    check_lanes("shfl.down.b32 %r1|%p1, %tid, 3, 0x1f; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%mine], %r1;", |lane| {
        u32::from(lane <= 28)
    });
    let odd = "and.b32 %r2, %tid, 1; setp.ne.u32 %p1, %r2, 0;";
    let vote =
        |op: &str| format!("{odd} vote.sync.{op} %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2; st.global.u32 [%mine], %r1;");
    check_lanes(&vote("any.pred"), |_| 1);
    check_lanes(&vote("all.pred"), |_| 0);
    check_lanes(&vote("uni.pred"), |_| 0);
    check_lanes(&format!("{odd} vote.ballot.b32 %r1, %p1; st.global.u32 [%mine], %r1;"), |_| 0xaaaa_aaaa);
    check_lanes(&format!("{odd} vote.sync.ballot.b32 %r1, !%p1, -1; st.global.u32 [%mine], %r1;"), |_| 0x5555_5555);
    check_lanes(&format!("{odd} match.any.sync.b32 %r1, %r2, -1; st.global.u32 [%mine], %r1;"), |lane| {
        0x5555_5555 << (lane & 1)
    });
    check_lanes("match.all.sync.b32 %r1|%p1, %tid, -1; st.global.u32 [%mine], %r1;", |_| 0);
    check_lanes("mov.u64 %rd1, 7; match.all.sync.b64 %r1|%p1, %rd1, -1; st.global.u32 [%mine], %r1;", |_| u32::MAX);
    check_lanes("redux.sync.add.u32 %r1, %tid, -1; st.global.u32 [%mine], %r1;", |_| 496);
    check_lanes("redux.sync.max.s32 %r1, %tid, -1; st.global.u32 [%mine], %r1;", |_| 31);
    check_lanes("activemask.b32 %r1; st.global.u32 [%mine], %r1;", |_| u32::MAX);
    check_lanes(&format!("{odd} @%p1 activemask.b32 %r1; st.global.u32 [%mine], %r1;"), |lane| {
        if lane & 1 == 1 { 0xaaaa_aaaa } else { 0 }
    });
    check_lanes("setp.lt.u32 %p1, %tid, 8; bar.red.popc.u32 %r1, 0, %p1; st.global.u32 [%mine], %r1;", |_| 8);
    check_lanes(
        "setp.lt.u32 %p1, %tid, 8; bar.red.or.pred %p2, 0, %p1; selp.u32 %r1, 1, 0, %p2; st.global.u32 [%mine], %r1;",
        |_| 1,
    );
    check_lanes(
        "setp.lt.u32 %p1, %tid, 8; bar.red.and.pred %p2, 0, !%p1; selp.u32 %r1, 1, 0, %p2; st.global.u32 [%mine], %r1;",
        |_| 0,
    );
    check_lanes(
        "setp.lt.u32 %p1, %tid, 8; @%p1 st.global.u32 [%mine], 1; @%p1 exit; st.global.u32 [%mine], 2;",
        |lane| if lane < 8 { 1 } else { 2 },
    );
}

#[test]
fn textures_are_sampled_at_points_and_clamped() {
    let texels: Vec<u8> = (0..4 * 8).map(|i| i as u8).collect();
    let bind = |address: u64| {
        let plain = Texture {
            address,
            width: 4,
            height: 2,
            depth: 1,
            pitch: 16,
            channels: 1,
            elem: Elem::U32,
            normalized_read: false,
        };
        vec![
            ("words".to_owned(), plain.clone()),
            ("solid".to_owned(), Texture { width: 2, height: 2, depth: 2, pitch: 8, ..plain.clone() }),
            ("bytes".to_owned(), Texture { elem: Elem::U8, channels: 4, normalized_read: true, ..plain }),
        ]
    };
    let declared = ".global .texref words;\n.global .texref solid;\n.global .texref bytes;";
    let word = |body: &str| {
        let body = format!("{body} st.global.u32 [%out], %r1;");
        ran(declared, &body, &Setup { input: &texels, output: 32, textures: &bind, ..Setup::default() }).u32s()[0]
    };
    let text = |first: u32| u32::from_le_bytes(std::array::from_fn(|i| first as u8 + i as u8));
    let r = "{%r1, %r2, %r3, %r4}";
    assert_eq!(word(&format!("mov.u32 %r5, 2; tex.1d.v4.u32.s32 {r}, [words, {{%r5}}];")), text(8));
    assert_eq!(word(&format!("mov.u32 %r5, -3; tex.1d.v4.s32.s32 {r}, [words, {{%r5}}];")), text(0));
    assert_eq!(word(&format!("mov.f32 %f5, 0f40600000; tex.1d.v4.f32.f32 {r}, [words, {{%f5}}];")), text(12));
    assert_eq!(word(&format!("mov.f32 %f5, 0f3FC00000; tex.2d.v4.u32.f32 {r}, [words, {{%f5, %f5}}];")), text(20));
    assert_eq!(
        word(&format!("mov.u32 %r5, 1; mov.u32 %r6, 9; tex.2d.v4.s32.s32 {r}, [words, {{%r5, %r6}}];")),
        text(20)
    );
    // Two slices of two rows of two texels; and the same as layers, whose number is clamped as coordinates are.
    let at = "mov.u32 %r5, 1; mov.u32 %r6, 0; mov.u32 %r7, 7; mov.f32 %f5, 0f3FC00000; mov.f32 %f6, 0f3F000000;";
    let fetched = |fetch: &str| word(&format!("{at} tex.{fetch}];"));
    assert_eq!(fetched(&format!("3d.v4.u32.s32 {r}, [solid, {{%r5, %r6, %r5, %r5}}")), text(20));
    assert_eq!(fetched(&format!("3d.v4.u32.f32 {r}, [solid, {{%f6, %f5, %f5, %f5}}")), text(24));
    assert_eq!(fetched(&format!("a1d.v4.u32.s32 {r}, [solid, {{%r7, %r5}}")), text(20));
    assert_eq!(fetched(&format!("a2d.v4.u32.f32 {r}, [solid, {{%r6, %f6, %f5, %f5}}")), text(8));
    assert_eq!(fetched(&format!("a2d.v4.u32.s32 {r}, [solid, {{%r5, %r6, %r5, %r5}}")), text(24));
    assert_eq!(
        word(&format!("mov.f32 %f5, 0f40400000; tex.1d.v4.f32.f32 {r}, [bytes, {{%f5}}];")),
        (12f32 / 255.0).to_bits()
    );
}

#[test]
fn an_observer_is_told_what_it_wants() {
    let text = ".version 8.0 .entry k(.param .u64 input, .param .u64 output) { .reg .b64 in, out, at; .reg .b32 t, r;\n\
        .shared .b32 s[32]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4; add.u64 out, out, at;\n\
        mov.u32 r, s; mad.lo.u32 r, t, 4, r; st.shared.u32 [r], t; bar.sync 0; ld.shared.u32 r, [r]; st.global.u32 [out], r; ret; }";
    let ran = run_text(text, &Setup { output: 128, shape: (1, 32), ..Setup::default() });
    let instructions = ran.result.unwrap().warp_instructions;
    // Instructions, accesses, lanes whose writes change something, writes to global memory, and all others.
    let told = |wanted: Wanted| {
        let (mut told, mut memory) = ([0; 5], FlatMemory::new(&ran.launch.addresses));
        let mut tell = |event: Event<'_>| match event {
            Event::Issued { .. } => told[0] += 1,
            Event::Accessed(access) => {
                told[1] += 1;
                told[2] += u64::from(access.changes.count_ones());
            }
            Event::Wrote { .. } => told[3] += 1,
            _ => told[4] += 1,
        };
        let observer = Observer { wanted, tell: &mut tell };
        run_observed(&ran.launch, &mut memory, &Limits::default(), Some(observer), None).unwrap();
        told
    };
    // A warp's arrival, the barrier's opening, the end of the CTA.
    let none = Wanted::default();
    assert_eq!(told(none), [0, 0, 0, 0, 3]);
    assert_eq!(told(Wanted { issued: true, ..none }), [instructions, 0, 0, 0, 3]);
    // Two stores and a load; the first lane stores the zeros that were there.
    assert_eq!(told(Wanted { accesses: true, ..none }), [0, 3, 64, 0, 3]);
    assert_eq!(told(Wanted { accesses: true, changes: true, ..none }), [0, 3, 62, 0, 3]);
    assert_eq!(told(Wanted { writes: true, ..none }), [0, 0, 0, 32, 3]);
}
