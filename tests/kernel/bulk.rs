//! Bulk copies and transactions of `mbarrier`, which happen at once on the functional driver: values beside models of the
//! test's own, what is refused, what is a fault.

use super::ptx_common::{Ran, Setup, run_text};

/// Bytes of shared memory that a kernel of [`ran`] has.
const TILE: u32 = 1024;

/// A kernel of `threads` threads: `in`, `out` are the buffers, `tile` and `bar` their 32-bit addresses in shared memory,
/// `%q1` says that a thread is not the first. The whole `tile` is written to `out` at the end, if that is as large.
fn ran(threads: u32, input: &[u8], output: usize, body: &str) -> Ran {
    let text = format!(
        ".version 8.7 .target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .shared .align 128 .b8 shared_tile[{TILE}]; .shared .align 8 .b64 shared_bar;\n\
         .reg .b64 in, out, d<9>, s<9>; .reg .b32 t, tile, bar, r<20>; .reg .pred q<4>, p<9>;\n\
         ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; setp.ne.u32 q1, t, 0;\n\
         mov.u32 tile, shared_tile; mov.u32 bar, shared_bar;\n{body}\nret; }}"
    );
    run_text(&text, &Setup { input, output, shape: (1, threads), ..Setup::default() })
}

fn fault(body: &str) -> String {
    let input = [7; 256];
    ran(1, &input, 256, &format!("mbarrier.init.shared.b64 [bar], 1;\n{body}")).result.unwrap_err().to_string()
}

/// The first thread has 512 bytes of `in` copied to `tile + 64`; all wait, then word `t` of it goes to `out`.
#[test]
fn a_load_is_there_when_its_barrier_has_counted_its_bytes() {
    let input: Vec<u8> = (0..512u32).map(|i| (i * 7 % 251) as u8).collect();
    for (space, wait) in [("cta", "try_wait.parity"), ("cluster", "test_wait.parity.acquire.cta")] {
        let ran = ran(
            128,
            &input,
            512,
            &format!(
                "@!q1 mbarrier.init.shared::cta.b64 [bar], 128; fence.mbarrier_init.release.cluster; bar.sync 0;\n\
                 @q1 bra ARRIVE;\n\
                 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 512; add.u64 d1, in, 256;\n\
                 cp.async.bulk.shared::{space}.global.mbarrier::complete_tx::bytes [tile+64], [in], 256, [bar];\n\
                 mov.u64 d2, shared_tile; mov.u32 r5, 256;\n\
                 cp.async.bulk.shared::{space}.global.mbarrier::complete_tx::bytes.L2::cache_hint [d2+320], [in+256], r5, [bar], d1;\n\
                 ARRIVE: mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];\n\
                 WAIT: mbarrier.{wait}.shared::cta.b64 p1, [bar], 0; @!p1 bra WAIT;\n\
                 shl.b32 r1, t, 2; add.u32 r2, tile, r1; ld.shared.u32 r3, [r2+64]; cvt.u64.u32 d3, r1;\n\
                 add.u64 d3, out, d3; st.global.u32 [d3], r3;"
            ),
        );
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(ran.output, input, "{space}");
    }
}

#[test]
fn stores_are_grouped_and_a_group_may_be_empty() {
    let ran = ran(
        32,
        &[],
        256,
        "shl.b32 r1, t, 2; add.u32 r1, tile, r1; st.shared.u32 [r1], t; add.u32 r2, t, 100; st.shared.u32 [r1+128], r2;\n\
         fence.proxy.async.shared::cta; bar.sync 0; @q1 bra END;\n\
         cp.async.bulk.global.shared::cta.bulk_group [out], [tile], 128; cp.async.bulk.commit_group;\n\
         cp.async.bulk.global.shared::cta.bulk_group [out+128], [tile+128], 128; cp.async.bulk.commit_group;\n\
         cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1; cp.async.bulk.wait_group 0;\n\
         cp.async.bulk.prefetch.L2.global [out], 256; END:",
    );
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    let expected: Vec<u32> = (0..32).chain(100..132).collect();
    assert_eq!(ran.u32s(), expected);
}

/// Bits of an element that `bits` says, little-endian.
fn bytes_of(values: &[u64], size: usize) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()[..size].to_vec()).collect()
}

/// A half by its bits, exactly, in double precision.
fn half(bits: u64, fraction: i32) -> f64 {
    let exponent_bits = 15 - fraction;
    let (bias, magnitude) = ((1 << (exponent_bits - 1)) - 1, bits & 0x7fff);
    let (exponent, rest) = ((magnitude >> fraction) as i32, (magnitude & ((1 << fraction) - 1)) as f64);
    let value = match exponent {
        0 => rest * 2f64.powi(1 - bias - fraction),
        _ => (1.0 + rest * 2f64.powi(-fraction)) * 2f64.powi(exponent - bias),
    };
    if bits & 0x8000 != 0 { -value } else { value }
}

/// A sum that a half has exactly, as its bits: found by trying all.
fn bits_of(value: f64, fraction: i32) -> u64 {
    (0..0x7c00u64)
        .flat_map(|bits| [bits, bits | 0x8000])
        .find(|&bits| half(bits, fraction) == value && (value != 0.0 || bits == 0))
        .unwrap_or_else(|| panic!("{value} is no half"))
}

/// Every operation on every type that the ISA lists, beside a model; four values in memory, four in shared memory.
#[test]
fn reductions_combine_each_element_as_the_isa_says() {
    type Model = Box<dyn Fn(u64, u64) -> u64>;
    /// Operation and type, bytes of an element, what is in memory and in shared memory, what it comes to.
    type Case = (&'static str, usize, [u64; 4], [u64; 4], Model);
    let (f32s, f64s) = (|v: f32| u64::from(v.to_bits()), |v: f64| v.to_bits());
    let words32 = ([1, 5, 0xffff_fffe, 9], [7, 3, 4, 0x8000_0000u64]);
    let words64 = ([1, 5, u64::MAX - 1, 1 << 63], [7, 3, 4, 2]);
    let signed = |bits: u64| bits as u32 as i32;
    let narrow = |f: fn(u32, u32) -> u32| -> Model { Box::new(move |a, b| f(a as u32, b as u32).into()) };
    let wide = |f: fn(u64, u64) -> u64| -> Model { Box::new(f) };
    let mut cases: Vec<Case> = vec![
        ("add.u32", 4, words32.0, words32.1, narrow(u32::wrapping_add)),
        ("add.s32", 4, words32.0, words32.1, narrow(u32::wrapping_add)),
        ("add.u64", 8, words64.0, words64.1, wide(u64::wrapping_add)),
        ("min.u32", 4, words32.0, words32.1, narrow(u32::min)),
        ("max.u32", 4, words32.0, words32.1, narrow(u32::max)),
        ("min.u64", 8, words64.0, words64.1, wide(u64::min)),
        ("max.u64", 8, words64.0, words64.1, wide(u64::max)),
        ("min.s64", 8, words64.0, words64.1, wide(|a, b| (a as i64).min(b as i64) as u64)),
        ("max.s64", 8, words64.0, words64.1, wide(|a, b| (a as i64).max(b as i64) as u64)),
        ("inc.u32", 4, [1, 7, 8, 0], [7, 7, 7, 0], narrow(|a, b| if a >= b { 0 } else { a + 1 })),
        ("dec.u32", 4, [1, 0, 9, 7], [7, 7, 7, 7], narrow(|a, b| if a == 0 || a > b { b } else { a - 1 })),
        ("and.b32", 4, words32.0, words32.1, narrow(|a, b| a & b)),
        ("or.b32", 4, words32.0, words32.1, narrow(|a, b| a | b)),
        ("xor.b32", 4, words32.0, words32.1, narrow(|a, b| a ^ b)),
        ("and.b64", 8, words64.0, words64.1, wide(|a, b| a & b)),
        ("or.b64", 8, words64.0, words64.1, wide(|a, b| a | b)),
        ("xor.b64", 8, words64.0, words64.1, wide(|a, b| a ^ b)),
        (
            "add.f32",
            4,
            [f32s(1.5), f32s(-0.25), f32s(1e30), f32s(0.1)],
            [f32s(2.25), f32s(0.25), f32s(1.0), f32s(0.2)],
            Box::new(|a, b| (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into()),
        ),
        (
            "add.f64",
            8,
            [f64s(1.5), f64s(-0.25), f64s(1e300), f64s(0.1)],
            [f64s(2.25), f64s(0.25), f64s(1.0), f64s(0.2)],
            Box::new(|a, b| (f64::from_bits(a) + f64::from_bits(b)).to_bits()),
        ),
    ];
    for (name, greater) in [("min.s32", false), ("max.s32", true)] {
        let model = move |a: u64, b: u64| if (signed(a) > signed(b)) == greater { a } else { b };
        cases.push((name, 4, words32.0, words32.1, Box::new(model)));
    }
    // Sums that are halves: 1.5 + 2.25, -0.25 + 0.25, 3 + 0.5, -4 - 1.
    for (suffix, fraction) in [("f16", 10), ("bf16", 7)] {
        let of = |values: [f64; 4]| values.map(|value| bits_of(value, fraction));
        let (old, new) = (of([1.5, -0.25, 3.0, -4.0]), of([2.25, 0.25, 0.5, -1.0]));
        let model = move |f: fn(f64, f64) -> f64| -> Model {
            Box::new(move |a, b| bits_of(f(half(a, fraction), half(b, fraction)), fraction))
        };
        let name = |op: &str| -> &'static str { Box::leak(format!("{op}.{suffix}").into_boxed_str()) };
        cases.push((name("add.noftz"), 2, old, new, model(|a, b| a + b)));
        cases.push((name("min"), 2, old, new, model(f64::min)));
        cases.push((name("max"), 2, old, new, model(f64::max)));
    }
    assert_eq!(cases.len(), 19 + 2 + 6, "the table of the ISA");
    for (name, size, old, new, model) in cases {
        // Eight elements of two bytes are the least that a copy may have.
        let repeat = |values: [u64; 4]| bytes_of(&values.repeat(16 / (4 * size).min(16)), size);
        let (memory, shared) = (repeat(old), repeat(new));
        let bytes = memory.len();
        let input = [shared.clone(), memory].concat();
        let ran = ran(
            1,
            &input,
            bytes,
            &format!(
                "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 s1, [bar], {bytes};\n\
                 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [in], {bytes}, [bar];\n\
                 W: mbarrier.test_wait.shared.b64 p1, [bar], s1; @!p1 bra W;\n\
                 cp.reduce.async.bulk.global.shared::cta.bulk_group.{name} [in+{bytes}], [tile], {bytes};\n\
                 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
            ),
        );
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let expected: Vec<u64> = old.iter().zip(&new).map(|(&a, &b)| model(a, b)).collect();
        assert_eq!(ran.input[bytes..], repeat(expected.try_into().unwrap()), "{name}");
    }
}

/// As `ptxas` compiles it: one copy of operands that are uniform, one each of those that differ.
#[test]
fn lanes_with_the_same_operands_copy_once() {
    let ran = ran(
        32,
        &[],
        32,
        "mov.u32 r1, 1; st.shared.v4.u32 [tile], {r1, r1, r1, r1}; fence.proxy.async.shared::cta; bar.sync 0;\n\
         and.b32 r2, t, 1; shl.b32 r2, r2, 4; cvt.u64.u32 d1, r2; add.u64 d1, out, d1;\n\
         cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [out], [tile], 16;\n\
         cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [d1], [tile], 16;\n\
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
    );
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(ran.u32s(), [2, 2, 2, 2, 1, 1, 1, 1]);
}

#[test]
fn barriers_count_bytes_in_either_order_and_tell_what_is_pending() {
    let ran = ran(
        1,
        &[],
        24,
        "mbarrier.init.shared.b64 [bar], 3;\n\
         mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 48; mbarrier.arrive.shared.b64 s1, [bar], 2;\n\
         mbarrier.pending_count.b64 r1, s1;\n\
         mbarrier.arrive_drop.noComplete.release.cta.shared::cta.b64 s2, [bar], 1; mbarrier.pending_count.b64 r2, s2;\n\
         mbarrier.test_wait.shared.b64 p1, [bar], s1; selp.u32 r3, 1, 0, p1;\n\
         mov.u32 r10, 48; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], r10;\n\
         mbarrier.test_wait.shared.b64 p2, [bar], s1; selp.u32 r4, 1, 0, p2;\n\
         mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 0;\n\
         mbarrier.test_wait.shared.b64 p3, [bar], s1; selp.u32 r5, 1, 0, p3;\n\
         mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 s3, [bar], 16; mbarrier.pending_count.b64 r6, s3;\n\
         mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar], 16; mbarrier.arrive.shared.b64 s4, [bar];\n\
         mbarrier.test_wait.shared.b64 p4, [bar], s3; selp.u32 r7, 1, 0, p4;\n\
         st.global.v2.u32 [out], {r1, r2}; st.global.v2.u32 [out+8], {r3, r5}; st.global.v2.u32 [out+16], {r6, r7};",
    );
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    // Three are pending, then one; the phase is over with its bytes; two are expected of the next one, of which one drops.
    assert_eq!(ran.u32s(), [3, 1, 0, 1, 2, 1]);
}

#[test]
fn bytes_that_a_load_ignores_and_those_without_a_bit_of_the_mask_stay_as_they_were() {
    let input: Vec<u8> = (0..64).map(|i| 100 + i).collect();
    let body = |mask: u32, left: u32, right: u32| {
        format!(
            "mbarrier.init.shared.b64 [bar], 1; st.shared.v4.u32 [tile], {{-1, -1, -1, -1}};\n\
             st.shared.v4.u32 [tile+32], {{-1, -1, -1, -1}}; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;\n\
             mov.u32 r1, {left}; mov.u32 r2, {right};\n\
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [tile], [in+16], 48, r1, r2, [bar];\n\
             WAIT: mbarrier.try_wait.parity.shared.b64 p1, [bar], 0; @!p1 bra WAIT; mov.u32 r3, {mask};\n\
             cp.async.bulk.global.shared::cta.bulk_group.cp_mask [out], [tile], 48, r3;\n\
             cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        )
    };
    for (mask, left, right) in
        [(0xffff, 0, 0), (0xffff, 3, 15), (0, 0, 0), (0x8001, 1, 1), (0x5a3c, 15, 0), (0x7fff, 0, 9)]
    {
        let ran = ran(1, &input, 48, &body(mask, left, right));
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        for (at, &found) in ran.output.iter().enumerate() {
            let loaded = if at < left as usize || at >= 48 - right as usize { 0xff } else { input[16 + at] };
            let expected = if mask >> (at % 16) & 1 == 1 { loaded } else { 0 };
            assert_eq!(found, expected, "mask {mask:x}, {left} and {right} ignored, byte {at}");
        }
    }
}

#[test]
fn slices_that_no_alignment_has_are_moved_whole_and_nothing_beside_them() {
    let text = include_str!("ptx/some_bytes.ptx");
    for (step, total) in [(100u32, 1003u32), (7, 91), (16, 160), (33, 500), (1000, 1000), (5, 5)] {
        let input: Vec<u8> = (0..total).map(|i| (i * 31 % 251) as u8 + 1).collect();
        let text = text.replace(", .param .u32 step, .param .u32 total", "");
        let text = text.replace("ld.param.u32 %r1, [step]", &format!("mov.u32 %r1, {step}"));
        let text = text.replace("ld.param.u32 %r2, [total]", &format!("mov.u32 %r2, {total}"));
        let shape = (total.div_ceil(step), 1);
        let ran = run_text(&text, &Setup { input: &input, output: total as usize, shape, ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{step} of {total}: {fault}"));
        assert_eq!(ran.output, input, "{step} of {total}");
    }
}

#[test]
fn misuse_is_a_fault_at_its_place() {
    let load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    let store = "cp.async.bulk.global.shared::cta.bulk_group";
    for (body, message) in [
        (format!("{load} [tile], [in], 24, [bar];"), "a bulk copy of 24 bytes, which is no multiple of 16"),
        (format!("{load} [tile], [in+8], 32, [bar];"), "is not aligned to its 16 bytes"),
        (format!("{store} [out], [tile+8], 32;"), "shared access at 0x8 is not aligned to its 16 bytes"),
        (format!("{load} [tile], [in], 32, [bar+4];"), "is not aligned to its 8 bytes"),
        (format!("{load} [tile], [in+240], 32, [bar];"), "32-byte global access at"),
        (format!("{store} [out], [tile+1024], 16;"), "16-byte shared access at 0x400 is out of bounds"),
        (format!("{load} [tile], [in], 16, [bar+8];"), "8-byte shared access at"),
        (format!("{load}.ignore_oob [tile], [in], 32, 16, 0, [bar];"), "ignores 16 bytes at an end: 15 are the most"),
        (format!("{load}.ignore_oob [tile], [in+240], 32, 0, 15, [bar];"), "17-byte global access at"),
        (format!("{load} [tile], [in], 16, [tile+64];"), "there is no `mbarrier` here"),
        ("mbarrier.init.shared.b64 [bar], 0;".to_owned(), "expects 1 to 1048575 arrivals, not 0"),
        ("mbarrier.arrive.shared.b64 _, [bar], 2;".to_owned(), "2 arrivals at an `mbarrier` of which 1 are pending"),
        ("mbarrier.arrive.noComplete.shared.b64 _, [bar], 1;".to_owned(), "`.noComplete` ends the phase"),
        ("mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];".to_owned(), "there is no `mbarrier`"),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;".to_owned(), "a tx-count of 1048576 bytes"),
    ] {
        let told = fault(&body);
        assert!(told.contains(message), "{body}: {told}");
        assert!(told.contains("test.ptx:7:"), "its line: {told}");
    }
    // Nothing need be there for no bytes, and what is not executed is not checked.
    let ran = ran(1, &[], 16, &format!("{store} [out+4096], [tile], 0;\n@q1 {store} [out], [tile], 24;"));
    assert!(ran.result.is_ok());
}

#[test]
fn forms_that_are_not_supported_are_refused_by_name() {
    let refused = |instruction: &str| {
        let text = format!(
            ".version 8.7 .target sm_90 .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; {instruction}; ret; }}"
        );
        durawarp::kernel::ptx::parse("k.ptx", &text).unwrap_err().to_string()
    };
    for (instruction, message) in [
        ("cp.async.bulk.shared::cta.global [r1], [l1], 16, [r2]", "needs `.mbarrier::complete_tx::bytes`"),
        ("cp.async.bulk.global.shared::cta [l1], [r1], 16", "needs `.bulk_group`"),
        ("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [l1], [r1], 16", "the last of them a mask of bytes"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.ignore_oob [r1], [l1], 16, 0, 0, [r2]",
            "takes 4 operands here, found 6",
        ),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [l1], [r1], 16", "needs `.noftz`"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u64 [l1], [r1], 16", "on type .u64 is not supported"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [l1], [r1], 16", "on type .f32 is not supported"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [r1]", "`.expect_tx` needs a number of bytes"),
        ("mbarrier.expect_tx.b64 [r1], 16", "barriers need `.shared`"),
    ] {
        let told = refused(instruction);
        assert!(told.contains(message), "{instruction}: {told}");
    }
}
