//! Vectors beyond one access, pairs of singles and registers of 128 bits (`sm_90` to `sm_120`), beside references of
//! Rust's floats and of lists. Meaning: PTX ISA 9.x, sections 9.7.3, 9.7.9 and 9.7.13.

use crate::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::fault::FaultKind;
use durawarp::kernel::functional::RunError;
use durawarp::kernel::ptx::{check, parse};

fn text(body: &str) -> String {
    format!(
        ".version 9.0 .target sm_100 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 %in, %out, %rd<9>; .reg .b32 %tid, %r<20>; .reg .f32 %f<20>; .reg .f64 %fd<9>; .reg .b16 %h<20>;\n\
         ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; mov.u32 %tid, %tid.x;\n{body}\nret;\n}}"
    )
}

/// A warp of `threads`, 64 bytes of input, 64 of output.
fn run(body: &str, input: &[u8], threads: u32) -> Ran {
    run_text(&text(body), &Setup { input, output: 64, shape: (1, threads), ..Setup::default() })
}

fn good(body: &str, input: &[u8], threads: u32) -> Ran {
    let ran = run(body, input, threads);
    ran.result.as_ref().unwrap_or_else(|e| panic!("{body}: {e}"));
    ran
}

fn faults(body: &str) -> Vec<String> {
    check("k.ptx", &text(body)).unsupported.iter().map(ToString::to_string).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

const EIGHT: &str = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}";

#[test]
fn vectors_of_32_bytes_have_their_elements_in_order() {
    let input: Vec<u32> = (0..16).map(|number| 0x1111 * number + 7).collect();
    let words = |body: &str| good(body, &bytes(&input), 1).u32s();
    let back = "st.global.v8.b32 [%out], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};";
    let reversed: Vec<u32> = input[..8].iter().rev().copied().collect();
    assert_eq!(words(&format!("ld.global.v8.b32 {EIGHT}, [%in]; {back}"))[..8], reversed);
    assert_eq!(
        words(&format!("ld.v8.f32 {}, [%in+32]; st.v8.f32 [%out+32], {0};", EIGHT.replace('r', "f")))[8..],
        input[8..]
    );
    // What a sink is for is not loaded anywhere; the others keep their places.
    assert_eq!(
        words(&format!("ld.global.nc.v8.b32 {{%r0, _, _, %r3, %r4, _, %r6, %r7}}, [%in]; {back}"))[4..5],
        input[3..4]
    );
    // Half of eight elements of 16 bits are not 16 bytes: all of them are.
    let halves = "{%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}";
    assert_eq!(
        words(&format!("ld.global.v8.b16 {halves}, [%in+16]; st.global.v8.b16 [%out], {halves};"))[..4],
        input[4..8]
    );
    // The address may be overwritten, by the first half and by the second.
    for registers in ["{%in, %rd1, %rd2, %rd3}", "{%rd1, %rd2, %in, %rd3}"] {
        assert_eq!(
            words(&format!("ld.global.v4.b64 {registers}, [%in]; st.global.v4.b64 [%out], {registers};"))[..8],
            input[..8]
        );
    }
}

#[test]
fn vectors_of_32_bytes_are_aligned_to_them() {
    for access in [&format!("ld.global.v8.b32 {EIGHT}, [%in+16];"), &format!("st.v8.b32 [%out+16], {EIGHT};")] {
        let Err(RunError::Fault(fault)) = run(access, &[0; 64], 1).result else { panic!("{access}") };
        assert!(matches!(fault.kind, FaultKind::Misaligned { bytes: 32, space: "global", .. }), "{access}: {fault:?}");
    }
    // Elsewhere the ISA has 16 bytes at most.
    let told = faults(&format!(".shared .align 32 .b8 s[32]; ld.shared.v8.b32 {EIGHT}, [s];"));
    assert!(told[0].contains("a vector of 8 .b32 exceeds 16 bytes"), "{told:?}");
    let completes =
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r0], {%rd0, %rd1, %rd2, %rd3}, [%r1];";
    assert!(faults(completes)[0].contains("a vector of 4 .b64 exceeds 16 bytes"));
    let anywhere = completes.replace(".shared::cluster", "");
    assert!(faults(&anywhere)[0].contains("a vector of 4 .b64 exceeds 16 bytes or four elements"));
    assert!(faults("ld.global.v8.b64 {%rd0, %rd1}, [%in];")[0].contains("exceeds 32 bytes"));
    assert!(faults("ld.global.v8.b32 {%r0, %r1}, [%in];")[0].contains("expected 8 element(s), found 2"));
}

#[test]
fn atomics_of_vectors_are_atomics_of_their_elements() {
    // Of 32 threads, thread t adds t, 2 t, 3 t and 4 t.
    let add = "cvt.rn.f32.u32 %f0, %tid; add.f32 %f1, %f0, %f0; add.f32 %f2, %f0, %f1; add.f32 %f3, %f1, %f1;\n";
    for red in ["red.global.v4.f32.add", "red.global.add.v4.f32", "red.relaxed.gpu.v4.f32.add"] {
        let ran = good(&format!("{add}{red} [%out+16], {{%f0, %f1, %f2, %f3}};"), &[], 32);
        let sums: Vec<f32> = ran.u32s().into_iter().map(f32::from_bits).collect();
        assert_eq!(sums[..9], [0.0, 0.0, 0.0, 0.0, 496.0, 992.0, 1488.0, 1984.0, 0.0], "{red}");
    }
    // Old values of the elements; a result may take the place of what a later element adds.
    let old = "atom.global.v2.f32.add {%f1, %f0}, [%in], {%f0, %f1}; st.global.v2.f32 [%out], {%f1, %f0};";
    let ran = good(&format!("mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; {old}"), &singles(&[10.0, 20.0]), 1);
    assert_eq!(ran.output[..8], singles(&[10.0, 20.0]));
    assert_eq!(ran.input[..8], singles(&[11.0, 22.0]));
    // Halves: 1, 2, 3, 4 and 8 of 1.5; the smaller and the larger of -2 and 1.
    let put = "mov.b16 %h0, 0x3c00; mov.b16 %h1, 0xc000; mov.b32 %r0, {%h0, %h1};\n";
    let eight = "{%h0, %h1, %h0, %h0, %h0, %h0, %h0, %h1}";
    let ran = good(&format!("{put}red.global.v8.f16.add.noftz [%out], {eight};"), &[], 2);
    assert_eq!(ran.u32s()[..4], [0xc400_4000, 0x4000_4000, 0x4000_4000, 0xc400_4000]);
    let ran = good(&format!("{put}red.global.v2.f16.min.noftz [%out], {{%h0, %h1}};"), &[], 2);
    assert_eq!(ran.u32s()[0], 0xc000_0000);
    let ran = good(&format!("{put}red.global.add.noftz.v2.f16x2 [%out], {{%r0, %r0}};"), &[], 4);
    assert_eq!(ran.u32s()[..2], [0xc800_4400; 2]);
}

#[test]
fn what_vectors_of_atomics_cannot_be_is_refused() {
    for atomic in [
        "red.global.v4.u32.add [%out], {%r0, %r1, %r2, %r3}",
        "red.global.v8.f32.add [%out], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}",
        "red.global.v2.f32.exch [%out], {%f0, %f1}",
    ] {
        assert!(faults(&format!("{atomic};"))[0].contains("vectors of atomics are"), "{atomic}");
    }
    assert!(faults("red.global.v2.f32.add [%out], {%f0};")[0].contains("expected 2 element(s), found 1"));
    let Err(RunError::Fault(fault)) = run("red.global.v4.f32.add [%out+4], {%f0, %f1, %f2, %f3};", &[], 1).result
    else {
        panic!("an address that is no multiple of 16")
    };
    assert!(matches!(fault.kind, FaultKind::Misaligned { bytes: 16, .. }), "{fault:?}");
}

#[test]
fn sixteen_bytes_are_swapped_all_or_none() {
    let old = [3u64, 4];
    for (operation, operands, new) in [
        ("exch", "%q1", [5, 6]),
        ("cas", "%q0, %q1", [5, 6]),
        // One half alone is as it should be.
        ("cas", "%q2, %q1", [3, 4]),
        ("cas", "%q3, %q1", [3, 4]),
    ] {
        for (space, address) in [("global", "%out"), ("shared", "s"), ("", "%rd1"), ("", "%out")] {
            let place = if address == "%out" { "global" } else { "shared" };
            let at = if address == "%out" { "%out" } else { "s" };
            let atom = format!("atom.acq_rel.gpu.{space}.{operation}.b128").replace("..", ".");
            let body = format!(
                ".reg .b128 %q<5>; .shared .align 16 .b8 s[16]; mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1;\n\
                 mov.b64 %rd3, 3; mov.b64 %rd4, 4; mov.b64 %rd5, 5; mov.b64 %rd6, 6;\n\
                 mov.b128 %q0, {{%rd3, %rd4}}; mov.b128 %q1, {{%rd5, %rd6}}; mov.b128 %q2, {{%rd3, %rd6}};\n\
                 mov.b128 %q3, {{%rd5, %rd4}}; st.{place}.v2.u64 [{at}], {{%rd3, %rd4}};\n\
                 {atom} %q1, [{address}], {operands}; ld.{place}.v2.u64 {{%rd7, %rd8}}, [{at}];\n\
                 st.global.v2.u64 [%out+32], {{%rd7, %rd8}}; st.global.b128 [%out+16], %q1;"
            );
            let found = good(&body, &[], 1).u64s();
            assert_eq!((&found[2..4], &found[4..6]), (&old[..], &new[..]), "{atom} [{address}], {operands}");
            let nowhere = body.replace("%q1, [", "_, [").replace("[%out+16], %q1", "[%out+16], %q0");
            assert_eq!(good(&nowhere, &[], 1).u64s()[2..6], [3, 4, new[0], new[1]], "{atom} _, {operands}");
        }
    }
    // The lanes of a warp one after the other, each as a whole.
    let turns = ".reg .b128 %q<2>; cvt.u64.u32 %rd1, %tid; add.u64 %rd2, %rd1, 1; mov.b128 %q0, {%rd1, %rd1};\n\
                 mov.b128 %q1, {%rd2, %rd2}; atom.global.cas.b128 _, [%out], %q0, %q1;";
    assert_eq!(good(turns, &[], 32).u64s()[..2], [32, 32]);
}

#[test]
fn what_atomics_of_sixteen_bytes_cannot_be_is_refused() {
    for (atomic, why) in [
        ("atom.global.add.b128 %q0, [%out], %q1", "b128"),
        ("red.global.exch.b128 [%out], %q1", "b128"),
        ("atom.global.exch.b128 %q0, [%out], %rd1", "expected a register of type `.b128`"),
        ("atom.global.cas.b128 %q0, [%out], %q1", "takes 4 operands here, found 3"),
    ] {
        let found = faults(&format!(".reg .b128 %q<2>; {atomic};"));
        assert!(found[0].contains(why), "{atomic}: {found:?}");
    }
    let off = ".reg .b128 %q<2>; mov.b128 %q1, {%rd1, %rd1}; atom.global.exch.b128 %q0, [%out+8], %q1;";
    let Err(RunError::Fault(fault)) = run(off, &[], 1).result else { panic!("an address that is no multiple of 16") };
    assert!(matches!(fault.kind, FaultKind::Misaligned { bytes: 16, .. }), "{fault:?}");
}

#[test]
fn pairs_of_singles_are_two_singles() {
    let (low, high) = ([1.5f32, 3.0e-39, 0.1], [f32::MAX, -1.0e-20, -7.0]);
    let input: Vec<u8> = (0..3).flat_map(|number| singles(&[low[number], high[number]])).collect();
    let load = "ld.global.b64 %rd0, [%in]; ld.global.b64 %rd1, [%in+8]; ld.global.b64 %rd2, [%in+16];\n";
    let found = |instruction: &str| {
        let ran = good(&format!("{load}{instruction}; st.global.b64 [%out], %rd3;"), &input, 1);
        [ran.u32s()[0], ran.u32s()[1]].map(f32::from_bits)
    };
    let each = |f: &dyn Fn(f32, f32, f32) -> f32| [f(low[0], low[1], low[2]), f(high[0], high[1], high[2])];
    assert_eq!(found("add.f32x2 %rd3, %rd0, %rd2"), each(&|a, _, c| a + c));
    assert_eq!(found("sub.rn.f32x2 %rd3, %rd0, %rd2"), each(&|a, _, c| a - c));
    assert_eq!(found("mul.f32x2 %rd3, %rd0, %rd2"), each(&|a, _, c| a * c));
    assert_eq!(found("fma.rn.f32x2 %rd3, %rd0, %rd2, %rd1"), each(&|a, b, c| a.mul_add(c, b)));
    // A denormal counts as zero, in the half that has one.
    assert_eq!(found("add.ftz.f32x2 %rd3, %rd1, %rd1"), [0.0, -2.0e-20]);
    assert_eq!(found("add.rz.f32x2 %rd3, %rd0, %rd0")[1], f32::MAX);
    assert_eq!(found("add.rn.f32x2 %rd3, %rd0, %rd0")[1], f32::INFINITY);
    assert!(faults("fma.f32x2 %rd3, %rd0, %rd1, %rd2;")[0].contains("`fma.f32x2` needs a rounding such as `.rn`"));
    assert!(faults("add.sat.f32x2 %rd3, %rd0, %rd1;")[0].contains("modifier `.sat` of `add` is not supported"));
    assert!(faults("min.f32x2 %rd3, %rd0, %rd1;")[0].contains("f32x2"));
}

#[test]
fn the_least_and_the_greatest_of_three() {
    let of = |instruction: &str, values: [f32; 3]| {
        let load = "ld.global.f32 %f0, [%in]; ld.global.f32 %f1, [%in+4]; ld.global.f32 %f2, [%in+8];";
        let ran =
            good(&format!("{load} {instruction} %f3, %f0, %f1, %f2; st.global.f32 [%out], %f3;"), &singles(&values), 1);
        f32::from_bits(ran.u32s()[0])
    };
    for values in [[1.0, -2.0, 3.0], [-2.0, 3.0, 1.0], [3.0, 1.0, -2.0]] {
        assert_eq!(of("min.f32", values), -2.0);
        assert_eq!(of("max.f32", values), 3.0);
        assert_eq!(of("max.abs.f32", values), 3.0);
        assert_eq!(of("min.abs.f32", values), 1.0);
    }
    assert_eq!(of("max.f32", [f32::NAN, f32::NAN, 5.0]), 5.0);
    assert!(of("max.NaN.f32", [1.0, f32::NAN, 5.0]).is_nan());
    assert_eq!(of("min.ftz.f32", [1.0, 2.0, 1.0e-40]), 0.0);
    assert!(faults("max.f64 %fd0, %fd1, %fd2, %fd3;")[0].contains("`max` takes 3 operands, found 4"));
}

#[test]
fn registers_of_128_bits_are_two_of_64() {
    let input: Vec<u32> = (1..17).collect();
    let declared = ".reg .b128 %q<3>; .reg .b128 %w;";
    for (body, expected) in [
        ("ld.global.b128 %q0, [%in+16]; st.global.b128 [%out], %q0;", [5, 6, 7, 8]),
        ("ld.global.b128 %q2, [%in]; mov.b128 %w, %q2; mov.b128 {%rd0, %rd1}, %w; mov.b128 %q1, {%rd1, %rd0};
          st.b128 [%out], %q1;", [3, 4, 1, 2]),
        ("ld.relaxed.gpu.global.b128 %w, [%in]; mov.b128 {_, %rd1}, %w; st.global.v2.b64 [%out], {%rd1, %rd1};", [3, 4, 3, 4]),
        (".shared .align 16 .b8 s[16]; ld.global.b128 %q1, [%in+32]; st.shared.b128 [s], %q1; ld.shared.b128 %w, [s];
          st.global.b128 [%out], %w;", [9, 10, 11, 12]),
    ] {
        assert_eq!(good(&format!("{declared}{body}"), &bytes(&input), 1).u32s()[..4], expected, "{body}");
    }
    assert!(faults(".reg .v2 .b128 %a;")[0].contains("register type `.b128` is not supported"));
}

#[test]
fn the_timer_is_read_by_halves() {
    let body = "mov.u64 %rd0, %globaltimer; mov.u32 %r0, %globaltimer_lo; mov.u32 %r1, %globaltimer_hi;
        mov.u64 %rd1, %globaltimer; mov.b64 %rd2, {%r0, %r1}; st.global.v2.b64 [%out], {%rd0, %rd2};
        st.global.b64 [%out+16], %rd1;";
    let times = good(body, &[], 1).u64s();
    assert!(times[0] <= times[1] && times[1] <= times[2], "{times:?}");
}

/// CUDA's runtime for launches from kernels, which programs of separate compilation have, has such a table.
#[test]
fn a_table_of_kernels_has_an_address_for_each() {
    let text = ".version 8.5 .target sm_90 .address_size 64
        .entry one() ; .func other() { ret; }
        .global .align 8 .u64 table[3] = {one, two, other};
        .entry one() { ret; } .entry two() { ret; }";
    let module = parse("k.ptx", text).unwrap();
    let image = module.initial_bytes(0, &[0]);
    let mut found: Vec<u64> = image.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    found.sort_unstable();
    found.dedup();
    assert!(found.len() == 3 && found[0] != 0, "{found:x?}");
    // A kernel that takes one would launch it.
    let body = ".visible .entry k() { .reg .b64 %a; mov.u64 %a, k; ret; }";
    let told = check("k.ptx", &format!(".version 8.5 .target sm_90 {body}")).unsupported[0].to_string();
    assert!(told.contains("kernels launch no kernels"), "{told}");
}
