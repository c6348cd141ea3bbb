//! `mma.sync` of floats of 8, 6 and 4 bits (`sm_120a`), with scaled blocks and without, beside a plain model: fragments and
//! scale factors by the ISA's formulas (PTX ISA 9.7.14.3, 9.7.14.5.14), written out; formats from the OCP Microscaling
//! Formats (MX) Specification 1.0; sums one after another.
//!
//! Nothing here is taken from the simulator but its rule of rounding.

use crate::products::{fp8, sequence, sum_of};
use crate::ptx_common::{Setup, run_text};

/// Bits and value of an element by its name.
fn element(name: &str, code: u32) -> f64 {
    let (exponent_bits, fraction_bits, bias) = match name {
        "e4m3" | "e5m2" => return fp8(name, code),
        "e2m3" => (2, 3, 1),
        "e3m2" => (3, 2, 3),
        _ => (2, 1, 1),
    };
    let (exponent, fraction) = (code >> fraction_bits & ((1 << exponent_bits) - 1), code & ((1 << fraction_bits) - 1));
    let part = f64::from(fraction) / f64::from(1 << fraction_bits);
    let size =
        if exponent == 0 { part * 2f64.powi(1 - bias) } else { (1.0 + part) * 2f64.powi(exponent as i32 - bias) };
    if code >> (exponent_bits + fraction_bits) & 1 == 1 { -size } else { size }
}

fn bits(name: &str) -> u32 {
    match name {
        "e4m3" | "e5m2" => 8,
        "e2m1" => 4,
        _ => 6,
    }
}

/// A product of a warp.
struct Scaled {
    /// What follows `mma.sync.aligned.`.
    name: &'static str,
    a: &'static str,
    b: &'static str,
    /// Elements that share a factor; 0 where there are none.
    block: usize,
    floats: bool,
    /// Byte and lanes of the factors of a and b.
    selectors: [[usize; 2]; 2],
    /// Selectors are registers.
    in_registers: bool,
}

impl Scaled {
    fn packed(&self) -> bool {
        self.name.contains("mxf4")
    }

    fn check(&self, seed: u64) {
        let mut next = sequence(seed);
        let depth = if self.packed() { 64 } else { 32 };
        let factors = usize::checked_div(depth, self.block).unwrap_or(0);
        let mut codes = |name: &'static str, lines: usize| -> Vec<Vec<u32>> {
            let code = |next: &mut dyn FnMut() -> u32| loop {
                let code = next() & ((1 << bits(name)) - 1);
                if element(name, code).is_finite() {
                    return code;
                }
            };
            (0..lines).map(|_| (0..depth).map(|_| code(&mut next)).collect()).collect()
        };
        let (a, b) = (codes(self.a, 16), codes(self.b, 8));
        let mut scales = |lines: usize| -> Vec<Vec<u32>> {
            let code = |next: u32| if self.floats { 0x28 + next % 0x28 } else { 118 + next % 18 };
            (0..lines).map(|_| (0..factors).map(|_| code(next())).collect()).collect()
        };
        let (scale_a, scale_b) = (scales(16), scales(8));
        let c: Vec<Vec<f32>> =
            (0..16).map(|row| (0..8).map(|column| (row as f32 - 7.0) * 0.37 + column as f32).collect()).collect();
        // Words of each lane: a, b, c, the registers of factors.
        let mut input = Vec::new();
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            let word = |line: &[u32], name: &str, first: usize| -> u32 {
                let (number, shift) = if self.packed() { (8, 0) } else { (4, if bits(name) == 4 { 2 } else { 0 }) };
                (0..number).fold(0, |word, n| word | line[first + n] << shift << (32 / number * n))
            };
            let each = depth / 8;
            for (row, step) in [(g, 0), (g + 8, 0), (g, 1), (g + 8, 1)] {
                input.push(word(&a[row], self.a, each * t + depth / 2 * step));
            }
            for step in 0..2 {
                input.push(word(&b[g], self.b, each * t + depth / 2 * step));
            }
            for (row, column) in [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)] {
                input.push(c[row][column].to_bits());
            }
            // Bytes and lanes that are not chosen have other factors.
            let held = |line: Option<&Vec<u32>>, byte: usize| {
                let of = |n: usize| line.and_then(|line| line.get(n.wrapping_sub(byte)).copied()).unwrap_or(0x55);
                (0..4).fold(0, |word, n| word | of(n) << (8 * n))
            };
            let [[byte_a, lanes_a], [byte_b, lane_b]] = self.selectors;
            let of_a = (t / 2 == lanes_a).then(|| g + 8 * (t % 2));
            input.push(held(of_a.and_then(|row| scale_a.get(row)), byte_a));
            input.push(held((t == lane_b).then_some(&scale_b[g]), byte_b));
        }
        let after = match (factors, self.in_registers) {
            (0, _) => String::new(),
            (_, false) => {
                let [[byte_a, lanes_a], [byte_b, lane_b]] = self.selectors;
                format!(", {{x0}}, {{{byte_a}, {lanes_a}}}, x1, {{{byte_b}, {lane_b}}}")
            }
            (_, true) => ", {x0}, {s0, s1}, {x1}, {s2, s3}".to_owned(),
        };
        let set: String =
            self.selectors.iter().flatten().enumerate().map(|(n, value)| format!("mov.b16 s{n}, {value};\n")).collect();
        let text = format!(
            ".version 8.8 .target sm_120a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out, at; .reg .b32 t, a<4>, b<2>, x<2>, c<4>, d<4>; .reg .b16 s<4>;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
             mul.wide.u32 at, t, 48; add.u64 in, in, at; mul.wide.u32 at, t, 16; add.u64 out, out, at;\n\
             ld.global.v4.b32 {{a0, a1, a2, a3}}, [in]; ld.global.v4.b32 {{b0, b1, c0, c1}}, [in+16];\n\
             ld.global.v4.b32 {{c2, c3, x0, x1}}, [in+32];\n{set}\
             mma.sync.aligned.{} {{d0, d1, d2, d3}}, {{a0, a1, a2, a3}}, {{b0, b1}}, {{c0, c1, c2, c3}}{after};\n\
             st.global.v4.b32 [out], {{d0, d1, d2, d3}}; ret; }}",
            self.name
        );
        let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        let ran = run_text(&text, &Setup { input: &bytes, output: 512, shape: (1, 32), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
        let d = ran.u32s();
        let scale = |line: &[u32], k: usize| match line.get(k.checked_div(self.block).unwrap_or(0)) {
            None => 1.0,
            Some(&code) if self.floats => fp8("e4m3", code),
            Some(&code) => 2f64.powi(code as i32 - 127),
        };
        for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let terms = (0..depth).map(|k| {
                element(self.a, a[row][k])
                    * element(self.b, b[column][k])
                    * scale(&scale_a[row], k)
                    * scale(&scale_b[column], k)
            });
            let expected = sum_of(c[row][column], terms);
            let found = d[4 * (4 * (row % 8) + column / 2) + 2 * (row / 8) + column % 2];
            assert_eq!(
                found,
                expected.to_bits(),
                "{} ({row}, {column}): {}, {expected}",
                self.name,
                f32::from_bits(found)
            );
        }
    }
}

#[test]
fn products_with_scaled_blocks_and_of_narrow_floats_are_those_of_a_plain_model() {
    let of = |name, a, b, block, floats| Scaled {
        name,
        a,
        b,
        block,
        floats,
        selectors: [[0, 0], [0, 0]],
        in_registers: false,
    };
    let with = |selectors, product| Scaled { selectors, ..product };
    let mx8 = || {
        of(
            "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e5m2.e4m3.f32.ue8m0",
            "e5m2",
            "e4m3",
            32,
            false,
        )
    };
    let mx4 = || of("m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "e2m1", "e2m1", 32, false);
    let nv4 = || {
        of(
            "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
            "e2m1",
            "e2m1",
            16,
            true,
        )
    };
    let products = [
        of("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "e2m1", "e3m2", 0, false),
        of("kind::f8f6f4.m16n8k32.row.col.f32.e2m3.e5m2.f32", "e2m3", "e5m2", 0, false),
        mx8(),
        with([[3, 1], [1, 2]], mx8()),
        Scaled { in_registers: true, ..with([[2, 1], [3, 3]], mx8()) },
        of("kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e2m1.e2m3.f32.ue8m0", "e2m1", "e2m3", 32, false),
        mx4(),
        with([[2, 0], [2, 1]], mx4()),
        of(
            "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
            "e2m1",
            "e2m1",
            32,
            false,
        ),
        nv4(),
        Scaled { in_registers: true, ..with([[0, 1], [0, 3]], nv4()) },
        of(
            "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
            "e2m1",
            "e2m1",
            16,
            false,
        ),
    ];
    for (seed, product) in (1..).zip(products) {
        product.check(seed);
    }
}

#[test]
fn what_such_products_have_not_is_told() {
    let fault = |name: &str, after: &str| {
        let text = format!(
            ".version 8.8 .target sm_120a .address_size 64 .visible .entry k() {{ .reg .b32 r<9>;\n\
             mma.sync.aligned.{name} {{r0, r1, r2, r3}}, {{r0, r1, r2, r3}}, {{r0, r1}}, {{r0, r1, r2, r3}}{after}; ret; }}"
        );
        durawarp::kernel::ptx::parse("k.ptx", &text).expect_err("a fault").to_string()
    };
    let mx4 = "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0";
    for (name, after, told) in [
        (mx4, ", r4, {1, 0}, r5, {0, 0}", "no scale factors there: 1"),
        (mx4, ", r4, {0, 2}, r5, {0, 0}", "no scale factors there: 2"),
        (mx4, ", r4, {0, 0}, r5, {0, 4}", "no scale factors there: 4"),
        (
            "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue4m3",
            ", r4, {0, 0}, r5, {0, 0}",
            "is not supported",
        ),
        (
            "m16n8k32.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            ", r4, {0, 0}, r5, {0, 0}",
            "is not supported",
        ),
        (
            "m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            ", r4, {0, 0}, r5, {0, 0}",
            "is not supported",
        ),
        ("m16n8k32.row.col.f32.e2m1.e2m1.f32", "", "is not supported"),
    ] {
        let found = fault(name, after);
        assert!(found.contains(told), "{name}{after}: {found}");
    }
}
