//! Products of matrices beside a plain model: fragments by the ISA's formulas (PTX ISA 9.7.14.5), written out shape by
//! shape; formats decoded from their definitions; sums one after another.
//!
//! Nothing here is taken from the simulator: where it has one rule for all layouts, here are those of the ISA's text.

use crate::ptx_common::{Setup, run_text};

/// Row and column of element `i` of a lane's fragment, whose number within its group of four is `t`, and its group `g`.
type Place = fn(i: usize, t: usize, g: usize) -> (usize, usize);

/// One `mma` of a warp.
pub(crate) struct Product {
    /// What follows `mma.`, and what follows the fragments.
    pub(crate) name: &'static str,
    pub(crate) after: &'static str,
    /// Registers of a, b, and c or d.
    pub(crate) registers: [usize; 3],
    /// Bits of an element of a and b.
    pub(crate) bits: usize,
    /// Rows of a, and its columns.
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) place_a: Place,
    pub(crate) place_b: Place,
    pub(crate) place_c: Place,
}

/// Elements of a matrix as bits, by row and column.
pub(crate) type Matrix = Vec<Vec<u32>>;

/// A matrix of these sizes.
pub(crate) fn matrix(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> u32) -> Matrix {
    (0..rows).map(|row| (0..columns).map(|column| value(row, column)).collect()).collect()
}

/// Words of a lane in the input: fragments of a, b and c, and one more operand.
pub(crate) type Lane = [u32; 16];

impl Product {
    fn text(&self) -> String {
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let [a, b, c] = self.registers;
        let loads: String = ["a", "b", "c", "e"]
            .iter()
            .enumerate()
            .map(|(i, name)| format!("ld.global.v4.b32 {}, [in+{}];\n", list(name, 4), 16 * i))
            .collect();
        format!(
            ".target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out, at; .reg .b32 t, a<4>, b<4>, c<4>, d<4>, e<4>;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
             mul.wide.u32 at, t, 64; add.u64 in, in, at; mul.wide.u32 at, t, 16; add.u64 out, out, at;\n\
             {loads}mov.b32 d0, 0; mov.b32 d1, 0; mov.b32 d2, 0; mov.b32 d3, 0;\n\
             mma.{} {}, {}, {}, {}{};\n\
             st.global.v4.b32 [out], {{d0, d1, d2, d3}}; ret; }}",
            self.name,
            list("d", c),
            list("a", a),
            list("b", b),
            list("c", c),
            self.after
        )
    }

    /// What lanes hold of the three matrices.
    pub(crate) fn fragments(&self, a: &Matrix, b: &Matrix, c: &Matrix) -> [Lane; 32] {
        let mut lanes = [[0; 16]; 32];
        let sum_bits = if self.halves() { 16 } else { 32 };
        let parts = [(a, self.place_a, self.bits), (b, self.place_b, self.bits), (c, self.place_c, sum_bits)];
        for (part, (matrix, place, bits)) in parts.into_iter().enumerate() {
            for (lane, words) in lanes.iter_mut().enumerate() {
                for i in 0..self.registers[part] * 32 / bits {
                    let (row, column) = place(i, lane % 4, lane / 4);
                    words[4 * part + i * bits / 32] |= matrix[row][column] << (i * bits % 32);
                }
            }
        }
        lanes
    }

    /// Sums in halves share a register.
    fn halves(&self) -> bool {
        self.name.contains("row.col.f16.") || self.name.contains("f8f6f4.f16.")
    }

    /// The matrix d.
    pub(crate) fn run(&self, lanes: &[Lane; 32]) -> Matrix {
        self.try_run(lanes).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// The matrix d, or the fault.
    pub(crate) fn try_run(&self, lanes: &[Lane; 32]) -> Result<Matrix, String> {
        let input: Vec<u8> = lanes.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let ran = run_text(&self.text(), &Setup { input: &input, output: 512, shape: (1, 32), ..Setup::default() });
        ran.result.as_ref().map_err(ToString::to_string)?;
        let words = ran.u32s();
        let bits = if self.halves() { 16 } else { 32 };
        let mut d = matrix(self.rows, 8, |_, _| 0xdead_beef);
        for lane in 0..32 {
            for i in 0..self.registers[2] * 32 / bits {
                let (row, column) = (self.place_c)(i, lane % 4, lane / 4);
                let word = words[4 * lane + i * bits / 32] >> (i * bits % 32);
                d[row][column] = if bits == 16 { word & 0xffff } else { word };
            }
        }
        Ok(d)
    }
}

/// c and d of m = 16: of 32 bits, and of halves alike.
pub(crate) fn place_c16(i: usize, t: usize, g: usize) -> (usize, usize) {
    (if i < 2 { g } else { g + 8 }, 2 * t + (i & 1))
}

/// Bytes and 8-bit floats of m16n8k32 and of m16n8k16.
fn a_m16n8k32(i: usize, t: usize, g: usize) -> (usize, usize) {
    let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
    (row, 4 * t + (i & 3) + if i < 8 { 0 } else { 16 })
}

fn b_m16n8k32(i: usize, t: usize, g: usize) -> (usize, usize) {
    (4 * t + (i & 3) + if i < 4 { 0 } else { 16 }, g)
}

fn a_m16n8k16(i: usize, t: usize, g: usize) -> (usize, usize) {
    (if i < 4 { g } else { g + 8 }, 4 * t + (i & 3))
}

fn b_m16n8k16(i: usize, t: usize, g: usize) -> (usize, usize) {
    (4 * t + i, g)
}

/// A product of 8-bit floats of this name.
fn of_fp8(name: &'static str) -> Product {
    let deep = name.contains("m16n8k32");
    let halves = name.contains(".f16.");
    Product {
        name,
        after: "",
        registers: [if deep { 4 } else { 2 }, if deep { 2 } else { 1 }, if halves { 2 } else { 4 }],
        bits: 8,
        rows: 16,
        depth: if deep { 32 } else { 16 },
        place_a: if deep { a_m16n8k32 } else { a_m16n8k16 },
        place_b: if deep { b_m16n8k32 } else { b_m16n8k16 },
        place_c: place_c16,
    }
}

/// A number with this many bits of exponent and of fraction, in the IEEE's way.
fn decode(bits: u32, exponent_bits: u32, fraction_bits: u32) -> f64 {
    let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = (bits >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
    let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
    match exponent {
        0 => sign * fraction * 2f64.powi(1 - bias),
        _ => sign * (1.0 + fraction) * 2f64.powi(exponent - bias),
    }
}

/// An 8-bit float: one code of `e4m3` is no number, and the greatest exponent of `e5m2` has infinity and others.
pub(crate) fn fp8(format: &str, bits: u32) -> f64 {
    match (format, bits & 0x7f) {
        ("e4m3", 0x7f) => f64::NAN,
        ("e4m3", _) => decode(bits, 4, 3),
        ("e5m2", 0x7c) => {
            if bits & 0x80 == 0 {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        ("e5m2", 0x7d..) => f64::NAN,
        ("e5m2", _) => decode(bits, 5, 2),
        _ => panic!("{format}"),
    }
}

/// A half.
pub(crate) fn half_value(bits: u32) -> f64 {
    match bits >> 10 & 0x1f {
        0x1f if bits & 0x3ff != 0 => f64::NAN,
        0x1f => {
            if bits & 0x8000 == 0 {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        _ => decode(bits & 0xffff, 5, 10),
    }
}

/// The half that is nearest to a number, of two as near the even one.
pub(crate) fn nearest_half(x: f64) -> u32 {
    if x.is_nan() {
        return 0x7fff;
    }
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    // Codes are in the order of values: the first that is not less, by halves, and the one before it.
    let (mut above, mut end) = (0, 0x7c00);
    while above < end {
        let middle = (above + end) / 2;
        if half_value(middle) >= x.abs() { end = middle } else { above = middle + 1 }
    }
    if above == 0 {
        return sign;
    }
    // Infinity stands where the next number would: 2^16.
    let value = |code: u32| if code == 0x7c00 { 65536.0 } else { half_value(code) };
    let (up, down) = (value(above) - x.abs(), x.abs() - value(above - 1));
    let code = if up < down || up == down && above % 2 == 0 || x.is_infinite() { above } else { above - 1 };
    sign | code
}

/// The bits of a single, of any that is no number those that the simulator documents.
pub(crate) fn single(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

/// Numbers that look random and are not.
pub(crate) fn sequence(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    }
}

/// start + products, one after another, each sum rounded to a single. A product of 8-bit floats has 8 bits, so that
/// a double's 53 bits round the sum as if it were exact (2 x 24 + 2 are enough).
pub(crate) fn sum_of(start: f32, products: impl Iterator<Item = f64>) -> f32 {
    products.fold(start, |sum, product| (f64::from(sum) + product) as f32)
}

const FP8: [(&str, &str, &str); 12] = [
    ("sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", "e4m3"),
    ("sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", "e5m2", "e5m2"),
    ("sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "e4m3", "e5m2"),
    ("sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", "e5m2", "e4m3"),
    ("sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16", "e4m3", "e4m3"),
    ("sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16", "e5m2", "e4m3"),
    ("sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", "e4m3", "e4m3"),
    ("sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32", "e5m2", "e5m2"),
    ("sync.aligned.m16n8k16.row.col.f16.e4m3.e5m2.f16", "e4m3", "e5m2"),
    ("sync.aligned.m16n8k16.row.col.f16.e5m2.e5m2.f16", "e5m2", "e5m2"),
    ("sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e5m2.e4m3.f32", "e5m2", "e4m3"),
    ("sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e4m3.f16", "e4m3", "e4m3"),
];

/// Codes: a few of every kind, or all of them; numbers alone where `finite`.
fn codes(format: &str, finite: bool, next: &mut impl FnMut() -> u32) -> u32 {
    loop {
        let code = next() & 0xff;
        if !finite || fp8(format, code).is_finite() {
            return code;
        }
    }
}

#[test]
fn products_of_8_bit_floats_are_those_of_a_plain_model() {
    for (seed, (name, of_a, of_b)) in FP8.into_iter().enumerate() {
        let product = of_fp8(name);
        // First numbers alone, then every code: with infinities and others, most sums are no numbers.
        for finite in [true, false] {
            let mut next = sequence(seed as u64 + 100 * u64::from(finite));
            let a = matrix(16, product.depth, |_, _| codes(of_a, finite, &mut next));
            let b = matrix(product.depth, 8, |_, _| codes(of_b, finite, &mut next));
            // Of singles all exponents near those of products.
            let c = matrix(16, 8, |_, _| match product.halves() {
                true => next() & 0x7bff | next() & 0x8000,
                false => (next() & 0x807f_ffff) | (107 + next() % 40) << 23,
            });
            let d = product.run(&product.fragments(&a, &b, &c));
            let mut numbers = 0;
            for row in 0..16 {
                for column in 0..8 {
                    let start = match product.halves() {
                        true => half_value(c[row][column]) as f32,
                        false => f32::from_bits(c[row][column]),
                    };
                    let terms = (0..product.depth).map(|k| fp8(of_a, a[row][k]) * fp8(of_b, b[k][column]));
                    let sum = sum_of(start, terms);
                    numbers += usize::from(sum.is_finite());
                    let expected = if product.halves() { nearest_half(f64::from(sum)) } else { single(sum) };
                    assert_eq!(d[row][column], expected, "{name} ({row}, {column}): {sum}");
                }
            }
            assert!(numbers == 128 || !finite, "{name}: {numbers} sums are numbers");
        }
    }
}

#[test]
fn special_values_of_8_bit_floats_go_through_products() {
    let corner = |name: &'static str, a: &[u32], b: &[u32], c: u32| {
        let product = of_fp8(name);
        let of = |list: &[u32], at: usize| list.get(at).copied().unwrap_or(0);
        let a = matrix(16, product.depth, |row, k| if row == 0 { of(a, k) } else { 0 });
        let b = matrix(product.depth, 8, |k, column| if column == 0 { of(b, k) } else { 0 });
        let c = matrix(16, 8, |row, column| if (row, column) == (0, 0) { c } else { 0 });
        product.run(&product.fragments(&a, &b, &c))[0][0]
    };
    let [e4m3, e5m2, both, halves] = [FP8[0].0, FP8[1].0, FP8[2].0, FP8[4].0];
    let f = f32::to_bits;
    // The largest numbers, 448 and 57,344; the least, 2^-9 and 2^-16; 0x7f of e4m3, 0x7c and 0x7e of e5m2.
    assert_eq!(corner(e4m3, &[0x7e], &[0xfe], 0), f(-200_704.0));
    assert_eq!(corner(e5m2, &[0x7b; 2], &[0x7b; 2], 0), f(2.0 * 57_344.0 * 57_344.0));
    assert_eq!(corner(both, &[0x01], &[0x01], f(1.0)), f(1.0), "2^-25 is half of the last place: even");
    assert_eq!(corner(both, &[0x03], &[0x01], f(1.0)), f(1.0 + 2f32.powi(-23)), "three halves of it");
    assert_eq!(corner(e5m2, &[0x01], &[0x81], 0), f(-(2f32.powi(-32))));
    assert_eq!(corner(e4m3, &[0x7f], &[0x38], 0), 0x7fff_ffff);
    assert_eq!(corner(e5m2, &[0x7c], &[0xbc], 0), f(f32::NEG_INFINITY));
    assert_eq!(corner(e5m2, &[0x7c], &[0], 0), 0x7fff_ffff, "an infinity times zero");
    assert_eq!(corner(e5m2, &[0x7c, 0xfc], &[0x3c, 0x3c], 0), 0x7fff_ffff);
    assert_eq!(corner(e5m2, &[0x7e], &[0x3c], 0), 0x7fff_ffff);
    // One rounding at the end: 2048 + 1 + 1 in halves.
    assert_eq!(corner(halves, &[0x38, 0x38], &[0x38, 0x38], 0x6800), 0x6801);
    assert_eq!(corner(halves, &[0x7e], &[0x7e], 0), 0x7c00, "overflow of a half");
}

/// The fragments of integers and of bits, shape by shape.
fn a_m8(i: usize, t: usize, g: usize, width: usize) -> (usize, usize) {
    (g, width * t + i)
}

fn c_m8(i: usize, t: usize, g: usize) -> (usize, usize) {
    (g, 2 * t + i)
}

fn a_s4_m16n8k32(i: usize, t: usize, g: usize) -> (usize, usize) {
    (if i < 8 { g } else { g + 8 }, 8 * t + (i & 7))
}

fn a_s4_m16n8k64(i: usize, t: usize, g: usize) -> (usize, usize) {
    let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
    (row, 8 * t + (i & 7) + if i < 16 { 0 } else { 32 })
}

fn b_s4_m16n8k64(i: usize, t: usize, g: usize) -> (usize, usize) {
    (8 * t + (i & 7) + if i < 8 { 0 } else { 32 }, g)
}

fn a_b1_m16n8k128(i: usize, t: usize, g: usize) -> (usize, usize) {
    (if i < 32 { g } else { g + 8 }, 32 * t + (i & 0x1f))
}

fn a_b1_m16n8k256(i: usize, t: usize, g: usize) -> (usize, usize) {
    let row = if i < 32 || (64..96).contains(&i) { g } else { g + 8 };
    (row, 32 * t + (i & 0x1f) + if i < 64 { 0 } else { 128 })
}

fn b_b1_m16n8k256(i: usize, t: usize, g: usize) -> (usize, usize) {
    (32 * t + (i & 0x1f) + if i < 32 { 0 } else { 128 }, g)
}

/// Part of a product's name; registers, bits, rows and depth; places of a and b.
type Layout = (&'static str, [usize; 3], [usize; 3], Place, Place);

/// The first that a name has is its own. The text says `32 t + i` of columns of m16n8k256, also where i counts the lower
/// rows' bits; its figure has `i & 0x1f`.
const LAYOUTS: [Layout; 9] = [
    ("m8n8k16.", [1, 1, 2], [8, 8, 16], |i, t, g| a_m8(i, t, g, 4), |i, t, g| (4 * t + i, g)),
    ("m8n8k32.", [1, 1, 2], [4, 8, 32], |i, t, g| a_m8(i, t, g, 8), |i, t, g| (8 * t + i, g)),
    ("m8n8k128.", [1, 1, 2], [1, 8, 128], |i, t, g| a_m8(i, t, g, 32), |i, t, g| (32 * t + i, g)),
    ("m16n8k16.", [2, 1, 4], [8, 16, 16], a_m16n8k16, b_m16n8k16),
    ("8.s32", [4, 2, 4], [8, 16, 32], a_m16n8k32, b_m16n8k32),
    ("m16n8k32.", [2, 1, 4], [4, 16, 32], a_s4_m16n8k32, |i, t, g| (8 * t + (i & 7), g)),
    ("m16n8k64.", [4, 2, 4], [4, 16, 64], a_s4_m16n8k64, b_s4_m16n8k64),
    ("m16n8k128.", [2, 1, 4], [1, 16, 128], a_b1_m16n8k128, |i, t, g| (32 * t + i, g)),
    ("m16n8k256.", [4, 2, 4], [1, 16, 256], a_b1_m16n8k256, b_b1_m16n8k256),
];

/// A product of integers or bits of this name.
fn of_integers(name: &'static str) -> Product {
    let layout = LAYOUTS.into_iter().find(|(part, ..)| name.contains(part));
    let (_, registers, [bits, rows, depth], place_a, place_b) = layout.unwrap();
    let place_c = if rows == 8 { c_m8 } else { place_c16 };
    Product { name, after: "", registers, bits, rows, depth, place_a, place_b, place_c }
}

const INTEGERS: [&str; 16] = [
    "sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
    "sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32",
    "sync.aligned.m16n8k16.row.col.s32.s8.u8.s32",
    "sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32",
    "sync.aligned.m8n8k32.row.col.s32.s4.s4.s32",
    "sync.aligned.m8n8k32.row.col.satfinite.s32.u4.s4.s32",
    "sync.aligned.m16n8k32.row.col.s32.s4.u4.s32",
    "sync.aligned.m16n8k32.row.col.satfinite.s32.s4.s4.s32",
    "sync.aligned.m16n8k64.row.col.s32.u4.u4.s32",
    "sync.aligned.m16n8k64.row.col.satfinite.s32.s4.s4.s32",
    "sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc",
    "sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc",
    "sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    "sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
];

/// The integer that these bits are, of a type such as `s4`.
pub(crate) fn integer(ty: &str, bits: u32) -> i64 {
    let width: u32 = ty[1..].parse().unwrap();
    let value = i64::from(bits);
    if ty.starts_with('s') && bits >> (width - 1) == 1 { value - (1 << width) } else { value }
}

/// c plus a product, clamped or modulo 2^32.
pub(crate) fn wrapped(name: &str, c: u32, product: i64) -> u32 {
    let sum = i64::from(c as i32) + product;
    match name.contains("satfinite") {
        true => sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32,
        false => sum as u32,
    }
}

#[test]
fn products_of_integers_and_bits_are_those_of_a_plain_model() {
    for (seed, name) in INTEGERS.into_iter().enumerate() {
        let product = of_integers(name);
        let mut next = sequence(seed as u64 + 31);
        let element = |next: &mut dyn FnMut() -> u32| next() & (u32::MAX >> (32 - product.bits));
        let a = matrix(product.rows, product.depth, |_, _| element(&mut next));
        let b = matrix(product.depth, 8, |_, _| element(&mut next));
        // Near both ends of the range too.
        let c = matrix(product.rows, 8, |row, _| match row % 3 {
            0 => next() % 1000,
            1 => (i32::MAX as u32) - next() % 100,
            _ => (i32::MIN as u32) + next() % 100,
        });
        let d = product.run(&product.fragments(&a, &b, &c));
        let types: Vec<&str> = name.split('.').skip_while(|word| *word != "s32").skip(1).take(2).collect();
        let one = |a: u32, b: u32| match types[0] {
            "b1" if name.contains("xor") => i64::from(a != b),
            "b1" => i64::from(a == 1 && b == 1),
            _ => integer(types[0], a) * integer(types[1], b),
        };
        for row in 0..product.rows {
            for column in 0..8 {
                let sum = (0..product.depth).map(|k| one(a[row][k], b[k][column])).sum();
                assert_eq!(d[row][column], wrapped(name, c[row][column], sum), "{name} ({row}, {column})");
            }
        }
    }
}

/// Doubles: registers of a, b, places of a and b by register; of c: as of other sums.
const DOUBLES: [(&str, usize, usize, Place, Place); 3] = [
    ("m16n8k4", 2, 1, |i, t, g| (if i == 0 { g } else { g + 8 }, t), |_, t, g| (t, g)),
    (
        "m16n8k8",
        4,
        2,
        |i, t, g| (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { t } else { t + 4 }),
        |i, t, g| (if i == 0 { t } else { t + 4 }, g),
    ),
    (
        "m16n8k16",
        8,
        4,
        |i, t, g| if i % 2 == 0 { (g, i * 2 + t) } else { (g + 8, i * 2 - 2 + t) },
        |i, t, g| (t + 4 * i, g),
    ),
];

#[test]
fn products_of_doubles_are_fused_in_the_order_of_k_whatever_registers_results_take() {
    let list = |name: &str, count: usize| (0..count).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
    for (shape, of_a, of_b, place_a, place_b) in DOUBLES {
        let depth = 4 * of_b;
        let mut next = sequence(of_a as u64);
        let mut values = |_, _| f64::from(next() as i32) * 2f64.powi(next() as i32 % 40);
        let a: Vec<Vec<f64>> = (0..16).map(|r| (0..depth).map(|k| values(r, k)).collect()).collect();
        let b: Vec<Vec<f64>> = (0..depth).map(|k| (0..8).map(|c| values(k, c)).collect()).collect();
        let c: Vec<Vec<f64>> = (0..16).map(|r| (0..8).map(|c| values(r, c)).collect()).collect();
        let mut input = vec![0.0; 16 * 32];
        for lane in 0..32 {
            let (t, g) = (lane % 4, lane / 4);
            (0..of_a).for_each(|i| input[16 * lane + i] = a[place_a(i, t, g).0][place_a(i, t, g).1]);
            (0..of_b).for_each(|i| input[16 * lane + 8 + i] = b[place_b(i, t, g).0][place_b(i, t, g).1]);
            (0..4).for_each(|i| input[16 * lane + 12 + i] = c[place_c16(i, t, g).0][place_c16(i, t, g).1]);
        }
        let input: Vec<u8> = input.iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
        let elsewhere: [Vec<String>; 4] = [
            list("d", 4),
            list("c", 4),
            ["c2", "c3", "c1", "c0"].map(String::from).into(),
            ["d0", "a1", "b0", "a0"].map(String::from).into(),
        ];
        for results in &elsewhere {
            let text = format!(
                ".target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
                 .reg .b64 in, out, at; .reg .b32 t; .reg .f64 a<8>, b<4>, c<4>, d<4>;\n\
                 ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
                 mul.wide.u32 at, t, 128; add.u64 in, in, at; mul.wide.u32 at, t, 32; add.u64 out, out, at;\n\
                 {}mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64 {{{}}}, {{{}}}, {{{}}}, {{c0, c1, c2, c3}};\n{} ret; }}",
                [list("a", of_a), list("b", of_b), list("c", 4)]
                    .iter()
                    .zip([0, 64, 96])
                    .flat_map(|(names, first)| names.iter().enumerate().map(move |(i, name)| (name, first + 8 * i)))
                    .map(|(name, at)| format!("ld.global.f64 {name}, [in+{at}];\n"))
                    .collect::<String>(),
                results.join(", "),
                list("a", of_a).join(", "),
                list("b", of_b).join(", "),
                results
                    .iter()
                    .enumerate()
                    .map(|(i, d)| format!("st.global.f64 [out+{}], {d};\n", 8 * i))
                    .collect::<String>()
            );
            let ran = run_text(&text, &Setup { input: &input, output: 1024, shape: (1, 32), ..Setup::default() });
            ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
            for (place, found) in ran.u64s().into_iter().enumerate() {
                let (row, column) = place_c16(place % 4, place / 4 % 4, place / 16);
                let sum = (0..depth).fold(c[row][column], |sum, k| a[row][k].mul_add(b[k][column], sum));
                assert_eq!(found, sum.to_bits(), "{shape} into {results:?}: ({row}, {column})");
            }
        }
    }
}
