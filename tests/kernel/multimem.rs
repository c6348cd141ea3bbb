//! Multicast memory of a team of one GPU, in the forms that all-reduce kernels of SGLang have: `multimem` (PTX ISA
//! 9.7.9.15). Expected is what plain loads, stores and reductions do.

use crate::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::ptx::{check, parse};

fn text(body: &str) -> String {
    format!(
        ".version 9.0 .target sm_100 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 %in, %out, %rd<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b16 %h<9>;\n\
         ld.param.u64 %in, [input]; ld.param.u64 %out, [output];\n{body}\nret;\n}}"
    )
}

fn run(body: &str, input: &[u32], threads: u32) -> Ran {
    let input: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    let ran = run_text(&text(body), &Setup { input: &input, output: 64, shape: (1, threads), ..Setup::default() });
    ran.result.as_ref().unwrap_or_else(|e| panic!("{body}: {e}"));
    ran
}

#[test]
fn of_one_copy_the_reduction_is_its_value_and_a_store_goes_there() {
    let input = [0x3c00_4000, 0xc000_7fff, 5, u32::MAX];
    for (load, store, registers, words) in [
        ("relaxed.sys.global.add.v4.f32", "relaxed.sys.global.v4.f32", "{%f0, %f1, %f2, %f3}", 4),
        ("acquire.gpu.global.add.acc::f32.v4.bf16x2", "release.sys.global.v4.bf16x2", "{%r0, %r1, %r2, %r3}", 4),
        ("weak.global.max.v4.f16x2", "weak.global.v4.f16x2", "{%r0, %r1, %r2, %r3}", 4),
        ("global.and.b64", "global.b64", "%rd0", 2),
        ("relaxed.sys.min.s32", "relaxed.sys.s32", "%r0", 1),
    ] {
        let load = format!("multimem.ld_reduce.{load} {registers}, [%in];");
        let found = run(&format!("{load} multimem.st.{store} [%out], {registers};"), &input, 1).u32s();
        assert_eq!((&found[..words], found[words]), (&input[..words], 0), "{load}");
    }
}

#[test]
fn a_reduction_goes_to_the_one_copy() {
    let ran = run("mov.u32 %r0, 3; multimem.red.relaxed.sys.global.add.u32 [%out+4], %r0;", &[], 32);
    assert_eq!(ran.u32s()[..3], [0, 96, 0]);
    // 1.0 and 2.0 in a pair of halves, of two threads: 2.0 and 4.0.
    let add = "mov.u32 %r0, 0x40003c00; multimem.red.global.add.v2.f16x2 [%out], {%r0, %r0};";
    assert_eq!(run(add, &[], 2).u32s()[..2], [0x4400_4000; 2]);
    let or = "mov.u64 %rd0, 0x10; multimem.red.release.gpu.global.or.b64 [%out], %rd0;";
    assert_eq!(run(or, &[], 2).u32s()[..2], [0x10, 0]);
}

#[test]
fn a_caveat_is_told_once_a_file() {
    let load = "multimem.ld_reduce.global.add.u32 %r0, [%in];";
    let twice = text(&format!("{load}{load}")).replace(".version 9.0 .target sm_100", "");
    let file = format!(".version 9.0 .target sm_100\n{twice}\n{}", twice.replace("entry k", "entry other"));
    let told = parse("k.ptx", &file).unwrap().warnings;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.starts_with("multicast memory is that of one GPU"), "{told:?}");
    assert_eq!(check("k.ptx", &text(load)).unsupported.len(), 0);
    let copy =
        check("k.ptx", &text("multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r0], 16;")).unsupported;
    assert!(copy[0].to_string().contains("`multimem` is `.ld_reduce`, `.st` or `.red` here, found `.cp`"), "{copy:?}");
}
