//! Products of matrices across a warp: layouts of fragments as the ISA's tables have them, worked numbers, special
//! values; loads of matrices; asynchronous copies, which happen at once on the functional driver.
//!
//! Layouts here are written out type by type from PTX ISA 9.7.14, not taken from the simulator's one rule.

use crate::ptx_common::{Ran, Setup, run_text};

/// One `mma` of a warp: what it is called, and registers of a, b, and c or d.
struct Product {
    name: &'static str,
    registers: [usize; 3],
    /// Elements of a row of a.
    depth: usize,
}

const F16: Product = Product { name: "m16n8k16.row.col.f32.f16.f16.f32", registers: [4, 2, 4], depth: 16 };
const F16_HALF: Product = Product { name: "m16n8k8.row.col.f32.f16.f16.f32", registers: [2, 1, 4], depth: 8 };
const F16_SUMS: Product = Product { name: "m16n8k16.row.col.f16.f16.f16.f16", registers: [4, 2, 2], depth: 16 };
const BF16: Product = Product { name: "m16n8k16.row.col.f32.bf16.bf16.f32", registers: [4, 2, 4], depth: 16 };
const TF32: Product = Product { name: "m16n8k8.row.col.f32.tf32.tf32.f32", registers: [4, 2, 4], depth: 8 };
const TF32_HALF: Product = Product { name: "m16n8k4.row.col.f32.tf32.tf32.f32", registers: [2, 1, 4], depth: 4 };
const S8: Product = Product { name: "m16n8k32.row.col.s32.s8.s8.s32", registers: [4, 2, 4], depth: 32 };
const S8_HALF: Product = Product { name: "m16n8k16.row.col.s32.s8.s8.s32", registers: [2, 1, 4], depth: 16 };
const CLAMPED: Product = Product { name: "m16n8k32.row.col.satfinite.s32.s8.s8.s32", registers: [4, 2, 4], depth: 32 };
const U8_S8: Product = Product { name: "m16n8k32.row.col.s32.u8.s8.s32", registers: [4, 2, 4], depth: 32 };

/// Words of a lane in the input: fragments of a, b and c, four words each.
const WORDS: usize = 12;

impl Product {
    fn text(&self, guard: &str) -> String {
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let [a, b, c] = self.registers;
        let mut text = String::from(
            ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
             .reg .b64 in, out, at; .reg .b32 t, a<4>, b<4>, c<4>, d<4>; .reg .pred p;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; setp.lt.u32 p, t, 31;\n\
             mul.wide.u32 at, t, 48; add.u64 in, in, at; mul.wide.u32 at, t, 16; add.u64 out, out, at;\n",
        );
        for (i, name) in ["a", "b", "c"].iter().enumerate() {
            text += &format!("ld.global.v4.b32 {}, [in+{}];\n", list(name, 4), 16 * i);
        }
        text += "mov.b32 d0, 0; mov.b32 d1, 0; mov.b32 d2, 0; mov.b32 d3, 0;\n";
        let fragments = [list("d", c), list("a", a), list("b", b), list("c", c)].join(", ");
        text += &format!("{guard} mma.sync.aligned.{} {fragments};\n", self.name);
        text + "st.global.v4.b32 [out], {d0, d1, d2, d3}; ret; }"
    }

    fn run(&self, words: &[[u32; WORDS]; 32], guard: &str, threads: u32) -> Ran {
        let input: Vec<u8> = words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        run_text(&self.text(guard), &Setup { input: &input, output: 512, shape: (1, threads), ..Setup::default() })
    }

    /// The registers of d by lanes.
    fn words(&self, words: &[[u32; WORDS]; 32]) -> Vec<[u32; 4]> {
        let ran = self.run(words, "", 32);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        ran.u32s().chunks_exact(4).map(|lane| lane.try_into().unwrap()).collect()
    }
}

/// Row and column of element `i` of a lane's fragment of a, as the ISA has it for a type.
fn place_a(product: &Product, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    match product.name {
        name if name.contains("tf32") => {
            // a0 and a2 of the group's row, a1 and a3 eight rows below; a2 and a3 four columns on.
            (if i & 1 == 0 { group } else { group + 8 }, if i < 2 { thread } else { thread + 4 })
        }
        name if name.contains("s8") => {
            let row = if (0..4).contains(&i) || (8..12).contains(&i) { group } else { group + 8 };
            (row, if i < 8 { thread * 4 + (i & 3) } else { thread * 4 + (i & 3) + 16 })
        }
        _ => {
            let row = if (0..2).contains(&i) || (4..6).contains(&i) { group } else { group + 8 };
            (row, if i < 4 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 })
        }
    }
}

/// Row and column of element `i` of a lane's fragment of b.
fn place_b(product: &Product, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    let row = match product.name {
        name if name.contains("tf32") => [thread, thread + 4][i],
        name if name.contains("s8") => thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 },
        _ => thread * 2 + (i & 1) + if i < 2 { 0 } else { 8 },
    };
    (row, group)
}

/// Row and column of element `i` of a lane's fragment of c and d.
fn place_c(lane: usize, i: usize) -> (usize, usize) {
    (if i < 2 { lane / 4 } else { lane / 4 + 8 }, lane % 4 * 2 + (i & 1))
}

/// Elements of a register of a and b, and bits of one.
fn packing(product: &Product) -> (usize, u32) {
    match product.name {
        name if name.contains("tf32") => (1, 32),
        name if name.contains("s8") => (4, 8),
        _ => (2, 16),
    }
}

/// The fragments of three matrices of element bits.
fn fragments(
    product: &Product,
    a: impl Fn(usize, usize) -> u32,
    b: impl Fn(usize, usize) -> u32,
    c: impl Fn(usize, usize) -> u32,
) -> [[u32; WORDS]; 32] {
    let (per, bits) = packing(product);
    let mut words = [[0; WORDS]; 32];
    for (lane, words) in words.iter_mut().enumerate() {
        for i in 0..product.registers[0] * per {
            let (row, column) = place_a(product, lane, i);
            words[i / per] |= a(row, column) << (bits * (i % per) as u32);
        }
        for i in 0..product.registers[1] * per {
            let (row, column) = place_b(product, lane, i);
            words[4 + i / per] |= b(row, column) << (bits * (i % per) as u32);
        }
        for i in 0..4 {
            let (row, column) = place_c(lane, i);
            match product.registers[2] {
                4 => words[8 + i] = c(row, column),
                _ => words[8 + i / 2] |= c(row, column) << (16 * (i % 2)),
            }
        }
    }
    words
}

/// The bits of element (row, column) of d.
fn element(product: &Product, d: &[[u32; 4]], row: usize, column: usize) -> u32 {
    let (lane, i) = (4 * (row % 8) + column / 2, 2 * (row / 8) + column % 2);
    match product.registers[2] {
        4 => d[lane][i],
        _ => d[lane][i / 2] >> (16 * (i % 2)) & 0xffff,
    }
}

/// Bits of a small integer as an element of a and b.
fn bits_of(product: &Product, value: i32) -> u32 {
    let single = (value as f32).to_bits();
    match product.name {
        name if name.contains("tf32") => single,
        name if name.contains("bf16") => single >> 16,
        name if name.contains("s8") => value as u32 & 0xff,
        _ => half(value as f32),
    }
}

/// Bits of a half whose value is exact and normal, or zero.
fn half(value: f32) -> u32 {
    let bits = value.to_bits();
    match value == 0.0 {
        true => bits >> 16,
        false => (bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff),
    }
}

#[test]
fn every_layout_multiplies_as_matrices_do() {
    for product in [&F16, &F16_HALF, &F16_SUMS, &BF16, &TF32, &TF32_HALF, &S8, &S8_HALF, &CLAMPED] {
        // Small integers, so that every sum is exact in every type.
        let a = |row: usize, k: usize| (row * 5 + k * 3) as i32 % 11 - 5;
        let b = |k: usize, column: usize| (k * 7 + column * 2) as i32 % 9 - 4;
        let c = |row: usize, column: usize| (row * 8 + column) as i32 - 60;
        let sum = |value: i32| match product.name {
            name if name.contains("s8") => value as u32,
            name if name.ends_with("f16") => half(value as f32),
            _ => (value as f32).to_bits(),
        };
        let words = fragments(
            product,
            |row, k| bits_of(product, a(row, k)),
            |k, column| bits_of(product, b(k, column)),
            |row, column| sum(c(row, column)),
        );
        let d = product.words(&words);
        for row in 0..16 {
            for column in 0..8 {
                let expected = c(row, column) + (0..product.depth).map(|k| a(row, k) * b(k, column)).sum::<i32>();
                let found = element(product, &d, row, column);
                assert_eq!(found, sum(expected), "{} ({row}, {column})", product.name);
            }
        }
    }
}

/// d(0, 0) of a row of a and a column of b whose other elements are zeros, and c(0, 0).
fn corner(product: &Product, a: &[u32], b: &[u32], c: u32) -> u32 {
    let of = |list: &[u32], at: usize| list.get(at).copied().unwrap_or(0);
    let words = fragments(
        product,
        |row, k| if row == 0 { of(a, k) } else { 0 },
        |k, column| if column == 0 { of(b, k) } else { 0 },
        |row, column| if (row, column) == (0, 0) { c } else { 0 },
    );
    element(product, &product.words(&words), 0, 0)
}

const NAN: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;

#[test]
fn products_of_halves_are_exact_and_sums_are_rounded_in_the_order_of_k() {
    let f = f32::to_bits;
    // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20, which a half cannot hold.
    assert_eq!(corner(&F16, &[0x3c01], &[0x3c01], 0), f(1.0 + 2f32.powi(-9) + 2f32.powi(-20)));
    // 2^24 + 1 rounds to 2^24, twice; the other way round, 1 + 1 + 2^24 is exact.
    let (large, one) = (half(4096.0), half(1.0));
    assert_eq!(corner(&F16, &[large, one, one], &[large, one, one], 0), f(16_777_216.0));
    assert_eq!(corner(&F16, &[one, one, large], &[one, one, large], 0), f(16_777_218.0));
    // The last of 16, in the second register of b.
    let mut last = [0; 16];
    last[15] = half(3.0);
    assert_eq!(corner(&F16, &last, &last, f(0.5)), f(9.5));
    // With sums in halves there is one rounding, at the end: 2048 + 1 + 1 is 2050, not 2048.
    assert_eq!(corner(&F16_SUMS, &[one, one], &[one, one], half(2048.0)), half(2050.0));
}

#[test]
fn special_values_go_through_products_of_floats() {
    let f = f32::to_bits;
    let (one, minus, infinity, nan) = (half(1.0), half(-1.0), 0x7c00, 0x7e00);
    assert_eq!(corner(&F16, &[nan], &[one], f(1.0)), NAN);
    assert_eq!(corner(&F16, &[infinity], &[one], f(1.0)), INFINITY);
    assert_eq!(corner(&F16, &[infinity], &[0], f(1.0)), NAN, "an infinity times zero");
    assert_eq!(corner(&F16, &[infinity, infinity], &[one, minus], 0), NAN, "infinities of both signs");
    assert_eq!(corner(&F16, &[], &[], f(-0.0)), f(0.0), "-0 and zeros of both signs");
    assert_eq!(corner(&F16, &[0x8000; 16], &[one; 16], f(-0.0)), f(-0.0), "-0 and nothing else");
    // The least half, 2^-24, squared: no denormal is lost.
    assert_eq!(corner(&F16, &[1], &[1], 0), f(2f32.powi(-48)));
    assert_eq!(corner(&F16_SUMS, &[1], &[one], 0), 1);
    assert_eq!(corner(&F16_SUMS, &[half(65504.0)], &[half(2.0)], 0), 0x7c00, "overflow of a half");
    assert_eq!(corner(&F16_SUMS, &[nan], &[one], 0), 0x7fff);
    // Exponents of bf16 are those of singles: a product below all singles counts in the sum's one rounding.
    assert_eq!(corner(&BF16, &[0x7f00], &[0x7f00], 0), INFINITY);
    assert_eq!(corner(&BF16, &[0x0080], &[0x3f00], 0), 0x0040_0000, "2^-126 / 2 is a denormal");
    assert_eq!(corner(&BF16, &[0x0080], &[0x0080], 1), 1, "2^-252 beside 2^-149");
}

#[test]
fn tf32_takes_the_upper_19_bits() {
    let (one, two) = (1f32.to_bits(), 2f32.to_bits());
    assert_eq!(corner(&TF32, &[one | 0x1fff], &[two], 0), two, "lower bits of a are not looked at");
    assert_eq!(corner(&TF32, &[one | 0x2000], &[two | 0x1fff], 0), two | 0x2000);
    assert_eq!(corner(&TF32, &[0x7f80_0001], &[one], 0), INFINITY, "the fraction of this NaN lies below");
    assert_eq!(corner(&TF32, &[0x7fc0_0000], &[one], 0), NAN);
}

#[test]
fn sums_of_bytes_are_exact_and_wrap_or_are_clamped() {
    let (most, least) = (i32::MAX as u32, i32::MIN as u32);
    assert_eq!(corner(&S8, &[0x80; 32], &[0x80; 32], 0), 32 * 128 * 128);
    assert_eq!(corner(&S8, &[1], &[1], most), least);
    assert_eq!(corner(&CLAMPED, &[1], &[1], most), most);
    assert_eq!(corner(&CLAMPED, &[1], &[0xff], least), least);
    assert_eq!(corner(&CLAMPED, &[1, 1], &[1, 0xff], most), most, "what passes the range on the way does no harm");
    assert_eq!(corner(&U8_S8, &[0xff], &[0xff], 0), -255i32 as u32);
}

#[test]
fn a_part_of_a_warp_cannot_multiply() {
    let words = [[0; WORDS]; 32];
    for (guard, threads) in [("@p", 32), ("", 20)] {
        let fault = F16.run(&words, guard, threads).result.unwrap_err().to_string();
        assert!(fault.contains("`mma` is executed by") && fault.contains("of 32 lanes"), "{fault}");
    }
    assert!(F16.run(&words, "@!p", 20).result.is_ok(), "none of its lanes");
}

/// Loads `matrices` from shared memory, whose halves number themselves; row `i` of all of them is at `80 i`.
fn loaded(matrices: usize, modifiers: &str, space: &str) -> Vec<[u32; 4]> {
    let list: Vec<String> = (0..matrices).map(|i| format!("d{i}")).collect();
    let address = if space.is_empty() { "generic" } else { "s" };
    let text = format!(
        ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .shared .align 16 .b8 tile[2560]; .reg .b64 out, at, generic; .reg .b32 t, s, n, d<4>; .reg .pred p;\n\
         ld.param.u64 out, [output]; mov.u32 t, %tid.x; shl.b32 n, t, 1; shl.b32 s, t, 2;\n\
         FILL: shl.b32 d0, n, 16; add.u32 d0, d0, n; add.u32 d0, d0, 0x10000; st.shared.u32 [s], d0;\n\
         add.u32 s, s, 128; add.u32 n, n, 64; setp.lt.u32 p, s, 2560; @p bra FILL;\n\
         bar.sync 0; mov.b32 d0, 0; mov.b32 d1, 0; mov.b32 d2, 0; mov.b32 d3, 0; mul.lo.u32 s, t, 80;\n\
         cvt.u64.u32 generic, s; cvta.shared.u64 generic, generic;\n\
         ldmatrix.sync.aligned.m8n8.x{matrices}{modifiers}{space}.b16 {{{}}}, [{address}];\n\
         mul.wide.u32 at, t, 16; add.u64 out, out, at; st.global.v4.b32 [out], {{d0, d1, d2, d3}}; ret; }}",
        list.join(", ")
    );
    let ran = run_text(&text, &Setup { output: 512, shape: (1, 32), ..Setup::default() });
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    ran.u32s().chunks_exact(4).map(|lane| lane.try_into().unwrap()).collect()
}

#[test]
fn ldmatrix_gives_each_lane_two_elements_of_each_matrix() {
    // The half at byte 2 n is n; lane 8 m + r has the address of row r of matrix m, 40 halves after the row before.
    let half = |matrix: usize, row: usize, column: usize| (40 * (8 * matrix + row) + column) as u32;
    for matrices in [1, 2, 4] {
        let (plain, transposed) = (loaded(matrices, "", ".shared"), loaded(matrices, ".trans", ".shared"));
        assert_eq!(loaded(matrices, "", ""), plain, "by generic addresses");
        for lane in 0..32 {
            let (group, thread) = (lane / 4, lane % 4);
            for m in 0..4 {
                let of = |low: u32, high: u32| if m < matrices { low | high << 16 } else { 0 };
                let row = of(half(m, group, 2 * thread), half(m, group, 2 * thread + 1));
                let column = of(half(m, 2 * thread, group), half(m, 2 * thread + 1, group));
                assert_eq!(
                    (plain[lane][m], transposed[lane][m]),
                    (row, column),
                    "lane {lane}, matrix {m} of {matrices}"
                );
            }
        }
    }
}

/// Fragments of `ldmatrix`, `stmatrix` and `mma` as vectors of registers give what lists of their elements give.
#[test]
fn fragments_may_be_vectors_of_registers() {
    let kernel = |[a, b, c, d]: [&str; 4]| {
        let text = format!(
            ".target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .shared .align 16 .b8 tile[1024]; .reg .v4 .b32 a, c, d; .reg .v2 .b32 b; .reg .b64 out, at; .reg .b32 t, s;\n\
             ld.param.u64 out, [output]; mov.u32 t, %tid.x; mov.u32 s, tile; mad.lo.u32 s, t, 16, s;\n\
             mad.lo.u32 a.x, t, 0x30004, 0x3c003c00; add.u32 a.y, a.x, 0x100; add.u32 a.z, a.y, 0x20000; mov.u32 a.w, 0x4000;\n\
             st.shared.v4.b32 [s], a; st.shared.v4.b32 [s+512], a; bar.sync 0;\n\
             ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a}, [s]; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {b}, [s];\n\
             mov.v4.b32 c, {{0, 0x3f800000, 0x40000000, 0x40400000}};\n\
             mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c};\n\
             stmatrix.sync.aligned.m8n8.x4.shared.b16 [s+512], {d}; bar.sync 0; ld.shared.v4.b32 d, [s+512];\n\
             mul.wide.u32 at, t, 16; add.u64 out, out, at; st.global.v4.b32 [out], d; ret; }}"
        );
        let ran = run_text(&text, &Setup { output: 512, shape: (1, 32), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        ran.u32s()
    };
    let lists = kernel(["{a.x, a.y, a.z, a.w}", "{b.x, b.y}", "{c.x, c.y, c.z, c.w}", "{d.x, d.y, d.z, d.w}"]);
    assert!(lists.iter().all(|word| *word != 0));
    assert_eq!(kernel(["a", "b", "c", "d"]), lists);
}

#[test]
fn a_row_outside_of_shared_memory_is_a_fault() {
    let text = |address: &str| {
        format!(
            ".target sm_80 .address_size 64 .visible .entry k() {{ .shared .align 16 .b8 tile[128]; .reg .b32 a, d<4>;\n\
             mov.u32 a, %tid.x; {address} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{d0}}, [a]; ret; }}"
        )
    };
    let run = |address: &str| run_text(&text(address), &Setup { shape: (1, 32), ..Setup::default() }).result;
    // Addresses of lanes above 7 are not looked at.
    assert!(run("shl.b32 a, a, 4;").is_ok());
    assert!(run("mul.lo.u32 a, a, 32;").unwrap_err().to_string().contains("out of bounds"));
    assert!(run("shl.b32 a, a, 3;").unwrap_err().to_string().contains("not aligned to its 16 bytes"));
}

/// Four lanes copy `bytes` each from the input, at 16 bytes a lane, and read shared memory after a wait.
fn copied(copy: &str) -> Ran {
    let text = format!(
        ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .shared .align 16 .b8 tile[80]; .reg .b64 in, out, at, s; .reg .b32 t, n, r, d<4>;\n\
         ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
         mul.wide.u32 at, t, 16; add.u64 in, in, at; add.u64 out, out, at; mov.u64 s, tile; add.u64 s, s, at;\n\
         cvt.u32.u64 n, at; mov.b32 d0, -1; st.shared.v4.b32 [s], {{d0, d0, d0, d0}}; shl.b32 r, t, 1;\n\
         {copy}\ncp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;\n\
         ld.shared.v4.b32 {{d0, d1, d2, d3}}, [s]; st.global.v4.b32 [out], {{d0, d1, d2, d3}}; ret; }}"
    );
    let input: Vec<u8> = (1..=64).collect();
    run_text(&text, &Setup { input: &input, output: 64, shape: (1, 4), ..Setup::default() })
}

#[test]
fn copies_move_4_8_or_16_bytes_a_lane_and_fill_what_they_do_not_read_with_zeros() {
    let check = |copy: &str, expected: &dyn Fn(usize, usize) -> u8| {
        let ran = copied(copy);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{copy}: {fault}"));
        for (at, &found) in ran.output.iter().enumerate() {
            assert_eq!(found, expected(at / 16, at % 16), "{copy}: byte {at}");
        }
    };
    let value = |lane: usize, byte: usize| (16 * lane + byte + 1) as u8;
    check("cp.async.cg.shared.global [s], [in], 16;", &value);
    check("cp.async.ca.shared.global.L2::128B [n], [in], 16;", &value);
    check("cp.async.ca.shared.global [s+8], [in+4], 4;", &|lane, byte| match byte {
        8..12 => value(lane, byte - 4),
        _ => 0xff,
    });
    check("cp.async.ca.shared::cta.global [n], [in+8], 8;", &|lane, byte| match byte {
        0..8 => value(lane, byte + 8),
        _ => 0xff,
    });
    // Lane t reads 2 t bytes.
    check("cp.async.cg.shared.global [n], [in], 16, r;", &|lane, byte| match byte < 2 * lane {
        true => value(lane, byte),
        false => 0,
    });
}

#[test]
fn a_copy_is_checked_at_both_of_its_ends() {
    let fault = |copy: &str| copied(copy).result.unwrap_err().to_string();
    assert!(fault("cp.async.cg.shared.global [n+32], [in], 16;").contains("shared access at"));
    assert!(fault("cp.async.cg.shared.global [n], [in+64], 16;").contains("16-byte global access at"));
    assert!(fault("cp.async.cg.shared.global [n+8], [in], 16;").contains("not aligned to its 16 bytes"));
    assert!(fault("cp.async.ca.shared.global [n], [in+4], 8;").contains("not aligned to its 8 bytes"));
    // What is not read need not be there.
    let ran = copied("mov.u32 r, 0; cp.async.cg.shared.global [n], [in+4096], 16, r;");
    assert!(ran.result.is_ok() && ran.output == [0; 64]);
}

/// Two warps pass words through shared memory, `rounds` times: the first fills and arrives, the second waits, reads
/// and arrives at another barrier, which the first waits for.
#[test]
fn warps_hand_over_by_barriers_in_shared_memory() {
    for wait in [
        "mbarrier.test_wait.parity.shared.b64 p, [b], r;",
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], r, 100;",
    ] {
        let text = format!(
            ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 4 .b8 tile[128];\n\
             .reg .b64 out, at, s; .reg .b32 t, w, n, r, v, sum, b, e; .reg .pred p, q, first;\n\
             ld.param.u64 out, [output]; mov.u32 t, %tid.x; shr.u32 w, t, 5; and.b32 n, t, 31; shl.b32 n, n, 2;\n\
             mov.u32 e, tile; add.u32 n, n, e; setp.eq.u32 first, w, 0; setp.ne.u32 q, t, 0; mov.u32 v, 32; mov.u32 sum, 0;\n\
             @!q mbarrier.init.shared.b64 [full], 32; @!q mbarrier.init.shared.b64 [empty], v; bar.sync 0;\n\
             mov.u32 e, 0; @!first bra SECOND;\n\
             FILL: add.u32 v, t, e; st.shared.u32 [n], v; mbarrier.arrive.shared.b64 s, [full];\n\
             mov.u32 b, empty; and.b32 r, e, 1;\n\
             W1: {wait} @!p bra W1; add.u32 e, e, 1; setp.lt.u32 p, e, 5; @p bra FILL; bra DONE;\n\
             SECOND: mov.u32 b, full; and.b32 r, e, 1;\n\
             W2: {wait} @!p bra W2; ld.shared.u32 v, [n]; add.u32 sum, sum, v; mbarrier.arrive.release.cta.shared::cta.b64 _, [empty];\n\
             add.u32 e, e, 1; setp.lt.u32 p, e, 5; @p bra SECOND;\n\
             DONE: mul.wide.u32 at, t, 4; add.u64 out, out, at; st.global.u32 [out], sum; ret; }}"
        );
        let ran = run_text(&text, &Setup { output: 256, shape: (1, 64), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        // Lane l reads l, l + 1, ... l + 4.
        let expected: Vec<u32> = (0..64).map(|t| if t < 32 { 0 } else { 5 * (t - 32) + 10 }).collect();
        assert_eq!(ran.u32s(), expected, "{wait}");
    }
}

#[test]
fn an_arrival_tells_its_phase_and_a_test_whether_that_is_over() {
    let text = ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
        .shared .align 8 .b64 bar; .reg .b64 out, s<3>; .reg .b32 r<9>; .reg .pred p<9>; ld.param.u64 out, [output];\n\
        mbarrier.init.shared.b64 [bar], 3;\n\
        mbarrier.arrive.shared.b64 s0, [bar]; mbarrier.test_wait.shared.b64 p0, [bar], s0;\n\
        mbarrier.arrive.noComplete.shared.b64 s1, [bar], 1; mbarrier.test_wait.shared.b64 p1, [bar], s0;\n\
        cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.test_wait.shared.b64 p2, [bar], s0;\n\
        cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; mbarrier.test_wait.shared.b64 p3, [bar], s0;\n\
        mbarrier.arrive.shared.b64 s2, [bar], 3; mbarrier.test_wait.shared.b64 p4, [bar], s2;\n\
        mbarrier.inval.shared.b64 [bar];\n\
        selp.u32 r0, 1, 0, p0; selp.u32 r1, 1, 0, p1; selp.u32 r2, 1, 0, p2; selp.u32 r3, 1, 0, p3; selp.u32 r4, 1, 0, p4;\n\
        st.global.v4.u32 [out], {r0, r1, r2, r3}; st.global.u32 [out+16], r4; ret; }";
    let ran = run_text(text, &Setup { output: 20, shape: (1, 1), ..Setup::default() });
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    // Without `noinc` an arrival behind copies is awaited itself, so that it brings the phase no nearer.
    assert_eq!(ran.u32s(), [0, 0, 0, 1, 1]);
}

#[test]
fn forms_that_are_not_supported_are_refused_by_name() {
    let fault = |instruction: &str| {
        let text = format!(
            ".version 8.0 .target sm_80 .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; {instruction}; ret; }}"
        );
        durawarp::kernel::ptx::parse("k.ptx", &text).unwrap_err().to_string()
    };
    for mma in [
        "m8n8k4.row.col.f16.f16.f16.f32",
        "m16n8k32.row.col.f32.f16.f16.f32",
        "m16n8k32.row.col.f64.f64.f64.f64",
        "m16n8k64.row.col.s32.s8.s8.s32",
        "m8n8k16.row.col.f16.f16.f16.f16",
        "m16n8k16.row.col.kind::f8f6f4.f32.f16.f16.f32",
        "m16n8k32.row.col.s32.s8.s8.s32.and.popc",
        "m16n8k128.row.col.s32.b1.b1.s32.popc",
        "m16n8k256.row.col.satfinite.s32.b1.b1.s32.and.popc",
        "m16n8k16.row.col.bf16.bf16.bf16.bf16",
    ] {
        let text = format!("mma.sync.aligned.{mma} {{r1}}, {{r2}}, {{r3}}, {{r4}}");
        assert!(fault(&text).contains("this `mma` is not supported: supported are m16n8k16"), "{mma}");
    }
    for (sparse, selectors) in [
        ("m16n8k16.row.col.f32.f16.f16.f32 {r1, r2, r3, r4}, {r1, r2}, {r1, r2}, {r1, r2, r3, r4}, r5, 4", 4),
        ("m16n8k8.row.col.f32.tf32.tf32.f32 {r1, r2, r3, r4}, {r1, r2}, {r1, r2}, {r1, r2, r3, r4}, r5, 4", 4),
        ("m16n8k32.row.col.s32.s8.s8.s32 {r1, r2, r3, r4}, {r1, r2}, {r1, r2}, {r1, r2, r3, r4}, r5, 2", 2),
        ("m16n8k32.row.col.f16.f16.f16.f16 {r1, r2}, {r1, r2, r3, r4}, {r1, r2, r3, r4}, {r1, r2}, r5, 2", 2),
        (
            "m16n8k128.row.col.s32.s4.s4.s32 {r1, r2, r3, r4}, {r1, r2, r3, r4}, {r1, r2, r3, r4}, {r1, r2, r3, r4}, r5, 1",
            1,
        ),
    ] {
        let told = fault(&format!("mma.sp.sync.aligned.{sparse}"));
        assert!(told.contains(&format!("the selector of this product's metadata is less than {selectors}")), "{told}");
    }
    for sparse in [
        "m16n8k32.row.col.f32.e4m3.e4m3.f32",
        "m16n8k256.row.col.s32.b1.b1.s32.and.popc",
        "m8n8k4.row.col.f32.f16.f16.f32",
    ] {
        let text = format!("mma.sp.sync.aligned.{sparse} {{r1}}, {{r2}}, {{r3}}, {{r4}}, r5, 0");
        assert!(fault(&text).contains("with `.sp` m16n8k32"), "{sparse}");
    }
    let short =
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r1, r2, r3, r4}, {r1, r2}, {r1, r2}, {r1, r2, r3, r4}";
    assert!(fault(short).contains("expected 4 register(s), found 2"));
    assert!(fault("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 r1, r2, r3, r4").contains("needs `.col`"));
    assert!(fault("ldmatrix.sync.aligned.m8n8.x4.b16 {r1, r2, r3, r4}, [r5]").contains("`.shared` is missing?"));
    assert!(fault("cp.async.cg.shared.global [r1], [l1], 8").contains("`cp.async.cg` copies 16"));
    assert!(fault("cp.shared.global [r1], [l1], 8").contains("`cp` is `cp.async` or `cp.reduce.async.bulk`"));
    assert!(fault("mbarrier.shared.b64 l1, [r1]").contains("`mbarrier` is `.init`, `.inval`, `.arrive`"));
    assert!(fault("mbarrier.test_wait.b64 p, [r1], l1").contains("barriers need `.shared`"));
}
