//! `wmma`: what is loaded, multiplied and stored is the product of the matrices in memory, for every shape,
//! type and order of rows and columns; `mma.m8n8k4` by the ISA's layouts; `movmatrix` and `elect`.

use crate::ptx_common::{Setup, run_text};

/// Where the matrices lie in the input.
const A: usize = 0;
const B: usize = 4096;
const C: usize = 8192;

/// Bytes of an element of a type, and the bits of a small integer.
fn bits(ty: &str, value: i32) -> Vec<u8> {
    match ty {
        "s8" | "u8" => vec![value as u8],
        "f16" => half(value).to_le_bytes().to_vec(),
        "bf16" => ((f32::to_bits(value as f32) >> 16) as u16).to_le_bytes().to_vec(),
        "s32" => value.to_le_bytes().to_vec(),
        "f64" => f64::from(value).to_le_bytes().to_vec(),
        _ => (value as f32).to_le_bytes().to_vec(),
    }
}

/// The half of an integer of at most 11 bits.
fn half(value: i32) -> u16 {
    let bits = (value as f32).to_bits();
    match value {
        0 => 0,
        _ => ((bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff)) as u16,
    }
}

/// One kind of product: shape, types of the factors and of the sums, registers of a, b, and c or d.
struct Product {
    shape: (&'static str, [usize; 3]),
    factors: &'static str,
    sums: &'static str,
    registers: [usize; 3],
}

const M16: (&str, [usize; 3]) = ("m16n16k16", [16, 16, 16]);
const M32: (&str, [usize; 3]) = ("m32n8k16", [32, 8, 16]);
const M8: (&str, [usize; 3]) = ("m8n32k16", [8, 32, 16]);

const fn product(
    shape: (&'static str, [usize; 3]),
    factors: &'static str,
    sums: &'static str,
    registers: [usize; 3],
) -> Product {
    Product { shape, factors, sums, registers }
}

/// The numbers of registers are those of the ISA's table of fragments.
const PRODUCTS: [Product; 17] = [
    product(M16, "f16", "f32", [8, 8, 8]),
    product(M32, "f16", "f32", [8, 8, 8]),
    product(M8, "f16", "f32", [8, 8, 8]),
    product(M16, "f16", "f16", [8, 8, 4]),
    product(M32, "f16", "f16", [8, 8, 4]),
    product(M8, "f16", "f16", [8, 8, 4]),
    product(M16, "bf16", "f32", [4, 4, 8]),
    product(M32, "bf16", "f32", [8, 2, 8]),
    product(M8, "bf16", "f32", [2, 8, 8]),
    product(("m16n16k8", [16, 16, 8]), "tf32", "f32", [4, 4, 8]),
    product(M16, "s8", "s32", [2, 2, 8]),
    product(M32, "s8", "s32", [4, 1, 8]),
    product(M8, "s8", "s32", [1, 4, 8]),
    product(M16, "u8", "s32", [2, 2, 8]),
    product(M32, "u8", "s32", [4, 1, 8]),
    product(M8, "u8", "s32", [1, 4, 8]),
    product(("m8n8k4", [8, 8, 4]), "f64", "f64", [1, 1, 2]),
];

fn list(name: &str, count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

impl Product {
    fn text(&self, orders: [&str; 4], space: &str, strides: [usize; 4]) -> String {
        let Product { shape: (shape, _), factors, sums, registers: [of_a, of_b, of_c] } = self;
        let wide = if *factors == "f64" { "64" } else { "32" };
        let [a, b, c, d] = orders;
        let types = match *factors {
            "f16" => format!("{sums}.{sums}"),
            factors => format!("{sums}.{factors}.{factors}.{sums}"),
        };
        // From shared memory: copied there first, by words.
        let (dot, base) = match space {
            "shared" => (".shared", "s"),
            "global" => (".global", "in"),
            _ => ("", "in"),
        };
        let address = |at: usize| format!("[{base}+{at}]");
        let [la, lb, lc, ld] = strides;
        let (a_list, b_list, c_list, d_list) = (list("a", *of_a), list("b", *of_b), list("c", *of_c), list("d", *of_c));
        format!(
            ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .shared .align 32 .b8 buffer[16384]; .reg .b64 in, out, l<3>; .reg .b32 t, v, s, n, la, ld; .reg .pred p;\n\
             .reg .b{wide} a<8>, b<8>, c<8>, d<8>;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 s, buffer; mov.u32 n, %tid.x;\n\
             COPY: mul.wide.u32 l0, n, 4; add.u64 l1, in, l0; ld.global.u32 v, [l1]; mad.lo.u32 t, n, 4, s; st.shared.u32 [t], v;\n\
             add.u32 n, n, 32; setp.lt.u32 p, n, 4096; @p bra COPY; bar.sync 0; mov.u32 la, {la}; mov.u32 ld, {ld};\n\
             wmma.load.a.sync.aligned.{a}.{shape}{dot}.{factors} {a_list}, {}, la;\n\
             wmma.load.b.sync.aligned.{b}.{shape}{dot}.{factors} {b_list}, {}, {lb};\n\
             wmma.load.c.sync.aligned.{c}.{shape}{dot}.{sums} {c_list}, {}, {lc};\n\
             wmma.mma.sync.aligned.{a}.{b}.{shape}.{types} {d_list}, {a_list}, {b_list}, {c_list};\n\
             wmma.store.d.sync.aligned.{d}.{shape}.global.{sums} [out], {d_list}, ld; ret; }}",
            address(A),
            address(B),
            address(C),
        )
    }

    /// The matrix that the kernel stores, element by element, as bytes.
    fn run(&self, orders: [&str; 4], space: &str, padding: usize) {
        let [m, n, k] = self.shape.1;
        let a = |i: usize, j: usize| (i * 5 + j * 3) as i32 % 7 - if self.factors == "u8" { 0 } else { 3 };
        let b = |i: usize, j: usize| (i * 3 + j * 4) as i32 % 5 - if self.factors == "u8" { 0 } else { 2 };
        let c = |i: usize, j: usize| (i * 7 + j) as i32 % 90 - 45;
        let stride = |order: &str, rows: usize, columns: usize| if order == "row" { columns } else { rows } + padding;
        let strides =
            [stride(orders[0], m, k), stride(orders[1], k, n), stride(orders[2], m, n), stride(orders[3], m, n)];
        let at = |order: &str, stride: usize, i: usize, j: usize| {
            if order == "row" { i * stride + j } else { j * stride + i }
        };
        let mut input = vec![0xee; 16384];
        let mut put = |start: usize, index: usize, ty: &str, value: i32| {
            let bytes = bits(ty, value);
            let place = start + index * bytes.len();
            input[place..place + bytes.len()].copy_from_slice(&bytes);
        };
        for i in 0..m {
            (0..k).for_each(|j| put(A, at(orders[0], strides[0], i, j), self.factors, a(i, j)));
            (0..n).for_each(|j| put(C, at(orders[2], strides[2], i, j), self.sums, c(i, j)));
        }
        for i in 0..k {
            (0..n).for_each(|j| put(B, at(orders[1], strides[1], i, j), self.factors, b(i, j)));
        }
        let text = self.text(orders, space, strides);
        let setup = Setup { input: &input, output: 8192, shape: (1, 32), ..Setup::default() };
        let ran = run_text(&text, &setup);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        for i in 0..m {
            for j in 0..n {
                let expected = c(i, j) + (0..k).map(|x| a(i, x) * b(x, j)).sum::<i32>();
                let bytes = bits(self.sums, expected);
                let place = at(orders[3], strides[3], i, j) * bytes.len();
                assert_eq!(ran.output[place..place + bytes.len()], bytes, "({i}, {j}) of {orders:?} in {text}");
            }
        }
        // Nothing else is written.
        let written = m * n * bits(self.sums, 0).len();
        if padding == 0 {
            assert!(ran.output[written..].iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn products_of_matrices_in_memory_are_theirs() {
    for product in &PRODUCTS {
        for (number, a) in ["row", "col"].into_iter().enumerate() {
            for b in ["row", "col"] {
                // c and d in both orders, over the four of a and b.
                let (c, d) = if number == 0 { ("row", b) } else { ("col", b) };
                product.run([a, b, c, d], ["global", "shared"][number], 0);
            }
        }
        product.run(["row", "col", "row", "row"], "generic", 16);
    }
}

/// Elements of 4 bits and of one, of rows of a and columns of b that lie `gap` elements apart more than they need.
#[test]
fn products_of_less_than_bytes_are_those_of_the_matrices_in_memory() {
    for (ty, bits, k, op, factors) in [
        ("s4", 4, 32, "", "s4.s4"),
        ("u4", 4, 32, "", "u4.u4"),
        ("s4", 4, 32, "", "s4.u4"),
        ("b1", 1, 128, ".xor.popc", "b1.b1"),
        ("b1", 1, 128, ".and.popc", "b1.b1"),
    ] {
        let (of_b, mask) = (factors.split('.').next_back().unwrap(), (1u32 << bits) - 1);
        let signed = |ty: &str, raw: u32| if ty == "s4" && raw > 7 { raw as i32 - 16 } else { raw as i32 };
        let a = |i: usize, j: usize| (i * 5 + j * 3 + j / 7) as u32 & mask;
        let b = |i: usize, j: usize| (i * 11 + j * 7 + i / 5) as u32 & mask;
        for gap in [0, k] {
            let (stride, mut input) = (k + gap, vec![0; 4096]);
            let mut put = |start: usize, line: usize, along: usize, raw: u32| {
                let bit = (line * stride + along) * bits;
                input[start + bit / 8] |= (raw << (bit % 8)) as u8;
            };
            for line in 0..8 {
                (0..k).for_each(|along| put(0, line, along, a(line, along)));
                (0..k).for_each(|along| put(1024, line, along, b(along, line)));
            }
            (0..64).for_each(|n: usize| input[2048 + 4 * n..][..4].copy_from_slice(&(n as i32 - 9).to_le_bytes()));
            // The stride that is left out is that of no gap.
            let stride = if gap == 0 { String::new() } else { format!(", {stride}") };
            let text = format!(
                ".target sm_80 .visible .entry k(.param .u64 input, .param .u64 output) {{ .reg .b64 in, out;
                .reg .b32 a, b, c<2>, d<2>; ld.param.u64 in, [input]; ld.param.u64 out, [output];
                wmma.load.a.sync.aligned.row.m8n8k{k}.global.{ty} {{a}}, [in]{stride};
                wmma.load.b.sync.aligned.col.m8n8k{k}.global.{of_b} {{b}}, [in+1024]{stride};
                wmma.load.c.sync.aligned.row.m8n8k{k}.global.s32 {{c0, c1}}, [in+2048];
                wmma.mma{op}.sync.aligned.row.col.m8n8k{k}.s32.{factors}.s32 {{d0, d1}}, {{a}}, {{b}}, {{c0, c1}};
                wmma.store.d.sync.aligned.col.m8n8k{k}.global.s32 [out], {{d0, d1}}; ret; }}"
            );
            let ran = run_text(&text, &Setup { input: &input, output: 256, shape: (1, 32), ..Setup::default() });
            ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}\n{text}"));
            for (i, j) in (0..64).map(|n| (n / 8, n % 8)) {
                let product = |x: usize| match op {
                    "" => signed(ty, a(i, x)) * signed(of_b, b(x, j)),
                    ".xor.popc" => (a(i, x) ^ b(x, j)) as i32,
                    _ => (a(i, x) & b(x, j)) as i32,
                };
                let expected = (8 * i + j) as i32 - 9 + (0..k).map(product).sum::<i32>();
                assert_eq!(ran.u32s()[8 * j + i] as i32, expected, "({i}, {j}) of {factors}{op}, {gap} apart");
            }
        }
    }
}

#[test]
fn a_stride_left_out_is_that_of_a_matrix_without_gaps() {
    let text = ".target sm_70 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
        .reg .b64 in, out; .reg .f32 c<8>; ld.param.u64 in, [input]; ld.param.u64 out, [output];\n\
        wmma.load.c.sync.aligned.row.m32n8k16.f32 {c0, c1, c2, c3, c4, c5, c6, c7}, [in];\n\
        wmma.store.d.sync.aligned.col.m32n8k16.f32 [out], {c0, c1, c2, c3, c4, c5, c6, c7}; ret; }";
    let input: Vec<u8> = (0..256u32).flat_map(u32::to_le_bytes).collect();
    let ran = run_text(text, &Setup { input: &input, output: 1024, shape: (1, 32), ..Setup::default() });
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    let expected: Vec<u32> = (0..256).map(|at| at % 32 * 8 + at / 32).collect();
    assert_eq!(ran.u32s(), expected);
}

/// A product whose result lies in the registers of its factors, and sums in another order: as if all was read
/// first.
#[test]
fn results_may_lie_where_factors_were() {
    let kernel = |d: &str, c: &str, stored: &str| {
        let text = format!(
            ".target sm_80 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out; .reg .b32 a<8>, b<8>, c<8>, d<8>; .reg .v4 .b32 v; ld.param.u64 in, [input]; ld.param.u64 out, [output];\n\
             wmma.load.a.sync.aligned.row.m16n16k16.f16 {}, [in]; wmma.load.b.sync.aligned.row.m16n16k16.f16 {}, [in+512];\n\
             wmma.load.c.sync.aligned.row.m16n16k16.f16 {}, [in+1024];\n\
             wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16 {d}, {}, {}, {c};\n\
             wmma.store.d.sync.aligned.row.m16n16k16.f16 [out], {stored}; ret; }}",
            list("a", 8),
            list("b", 8),
            list("c", 4),
            list("a", 8),
            list("b", 8),
        );
        let input: Vec<u8> = (0..768).flat_map(|at| half(at % 11 - 5).to_le_bytes()).collect();
        let ran = run_text(&text, &Setup { input: &input, output: 512, shape: (1, 32), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        ran.output
    };
    let plain = kernel(&list("d", 4), &list("c", 4), &list("d", 4));
    assert_eq!(kernel("{a0, a1, a2, a3}", &list("c", 4), "{a0, a1, a2, a3}"), plain);
    assert_eq!(kernel("{c2, c3, c0, c1}", &list("c", 4), "{c2, c3, c0, c1}"), plain);
    assert_eq!(kernel("v", &list("c", 4), "v"), plain, "a vector of registers");
}

/// The layouts of the ISA's tables for m8n8k4 with halves, by the numbers of a lane.
#[test]
fn products_of_quads_multiply_as_matrices_do() {
    for sums in ["f32", "f16"] {
        for (a_order, b_order) in [("row", "col"), ("row", "row"), ("col", "col"), ("col", "row")] {
            let registers = if sums == "f32" { 8 } else { 4 };
            let quad = |lane: usize| lane % 16 / 4;
            // Row and column of element i of a lane's fragments.
            let place_a = |lane: usize, i: usize| match a_order {
                "row" => (if lane < 16 { lane % 4 } else { lane % 4 + 4 }, i),
                _ => (if lane < 16 { i } else { i + 4 }, lane % 4),
            };
            let place_b = |lane: usize, i: usize| match b_order {
                "row" => (lane % 4, if lane < 16 { i } else { i + 4 }),
                _ => (i, if lane < 16 { lane % 4 } else { lane % 4 + 4 }),
            };
            let place_c = |lane: usize, i: usize| match sums {
                "f16" => (if lane < 16 { lane % 4 } else { lane % 4 + 4 }, i),
                _ => ((lane & 1) + (i & 2) + if lane < 16 { 0 } else { 4 }, (i & 4) + (lane & 2) + (i & 1)),
            };
            let a = |q: usize, row: usize, k: usize| (q * 3 + row * 5 + k * 2) as i32 % 9 - 4;
            let b = |q: usize, k: usize, column: usize| (q * 7 + k * 3 + column) as i32 % 7 - 3;
            let c = |q: usize, row: usize, column: usize| (q + row * 8 + column) as i32 % 50 - 25;
            let mut input = Vec::new();
            for lane in 0..32 {
                let q = quad(lane);
                (0..4).for_each(|i| input.extend(half(a(q, place_a(lane, i).0, place_a(lane, i).1)).to_le_bytes()));
                (0..4).for_each(|i| input.extend(half(b(q, place_b(lane, i).0, place_b(lane, i).1)).to_le_bytes()));
                let start = input.len();
                (0..8).for_each(|i| input.extend(bits(sums, c(q, place_c(lane, i).0, place_c(lane, i).1))));
                input.resize(start + 32, 0);
            }
            let (c_list, d_list) = (list("c", registers), list("d", registers));
            let mut text = ".target sm_70 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
                 .reg .b64 in, out, at; .reg .b32 t, a<2>, b<2>, c<8>, d<8>; ld.param.u64 in, [input]; ld.param.u64 out, [output];\n\
                 mov.u32 t, %tid.x; mul.wide.u32 at, t, 48; add.u64 in, in, at; mul.wide.u32 at, t, 32; add.u64 out, out, at;\n\
                 ld.global.v2.b32 {a0, a1}, [in]; ld.global.v2.b32 {b0, b1}, [in+8];\n".to_owned();
            (0..registers).for_each(|i| text += &format!("ld.global.b32 c{i}, [in+{}];\n", 16 + 4 * i));
            text += &format!(
                "mma.sync.aligned.m8n8k4.{a_order}.{b_order}.{sums}.f16.f16.{sums} {d_list}, {{a0, a1}}, {{b0, b1}}, {c_list};\n"
            );
            (0..registers).for_each(|i| text += &format!("st.global.b32 [out+{}], d{i};\n", 4 * i));
            text += "ret; }";
            let ran = run_text(&text, &Setup { input: &input, output: 1024, shape: (1, 32), ..Setup::default() });
            ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
            for lane in 0..32 {
                for i in 0..8 {
                    let (q, (row, column)) = (quad(lane), place_c(lane, i));
                    let value = c(q, row, column) + (0..4).map(|k| a(q, row, k) * b(q, k, column)).sum::<i32>();
                    let expected = bits(sums, value);
                    let place = 32 * lane + i * expected.len();
                    assert_eq!(ran.output[place..place + expected.len()], expected, "lane {lane}, {i} of {text}");
                }
            }
        }
    }
}

#[test]
fn a_matrix_is_transposed_across_a_warp() {
    let text = ".target sm_75 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
        .reg .b64 out, at; .reg .b32 t, a, d; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4;\n\
        add.u64 out, out, at; shl.b32 a, t, 1; mad.lo.u32 a, a, 0x10001, 0x10000; movmatrix.sync.aligned.m8n8.trans.b16 d, a;\n\
        st.global.b32 [out], d; ret; }";
    let ran = run_text(text, &Setup { output: 128, shape: (1, 32), ..Setup::default() });
    // Element (row, column) is 8 row + column.
    let expected: Vec<u32> =
        (0..32).map(|lane| (lane % 4 * 16 + lane / 4) | (lane % 4 * 16 + 8 + lane / 4) << 16).collect();
    assert_eq!(ran.u32s(), expected);
}

/// Element (row, column) of matrix n is 64 n + 8 row + column.
#[test]
fn matrices_are_stored_by_rows_to_the_addresses_of_lanes() {
    for (count, guard, transposed) in [(4, "", false), (4, "", true), (2, "", false), (1, "@p ", true)] {
        let list = list("a", count).replace("{a0}", "a0");
        let trans = if transposed { ".trans" } else { "" };
        let text = format!(
            ".target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .shared .align 16 .b8 rows[512]; .reg .b64 out, at; .reg .b32 t, s, a<4>, d<4>; .reg .pred p;\n\
             ld.param.u64 out, [output]; mov.u32 t, %tid.x; mov.u32 s, rows; mad.lo.u32 s, t, 16, s; setp.le.u32 p, t, 31;\n\
             mov.u32 d0, 0; st.shared.v4.u32 [s], {{d0, d0, d0, d0}}; bar.sync 0; shl.b32 a0, t, 1;\n\
             mad.lo.u32 a0, a0, 0x10001, 0x10000; add.u32 a1, a0, 0x400040; add.u32 a2, a1, 0x400040; add.u32 a3, a2, 0x400040;\n\
             {guard}stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [s], {list}; bar.sync 0;\n\
             ld.shared.v4.u32 {{d0, d1, d2, d3}}, [s]; mul.wide.u32 at, t, 16; add.u64 out, out, at;\n\
             st.global.v4.u32 [out], {{d0, d1, d2, d3}}; ret; }}"
        );
        let ran = run_text(&text, &Setup { output: 512, shape: (1, 32), ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        let halves: Vec<u32> = ran.u32s().iter().flat_map(|word| [word & 0xffff, word >> 16]).collect();
        let expected: Vec<u32> = (0..256)
            .map(|at| {
                let (matrix, row, column) = (at / 64, at / 8 % 8, at % 8);
                let inside = 64 * matrix + if transposed { 8 * column + row } else { 8 * row + column };
                if matrix < count as u32 { inside } else { 0 }
            })
            .collect();
        assert_eq!(halves, expected, "{text}");
    }
}

#[test]
fn the_lowest_member_is_elected() {
    let text = ".target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {\n\
        .reg .b64 out, at; .reg .b32 t, d; .reg .pred p, q; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4;\n\
        add.u64 out, out, at; mov.u32 d, 99; setp.ge.u32 q, t, 5; @q elect.sync d|p, 0xffffffe0; @!q elect.sync _|p, 0x1f;\n\
        @p add.u32 d, d, 100; griddepcontrol.wait; griddepcontrol.launch_dependents; st.global.b32 [out], d; ret; }";
    let ran = run_text(text, &Setup { output: 128, shape: (1, 32), ..Setup::default() });
    let expected: Vec<u32> =
        (0..32).map(|lane| [99, 5][usize::from(lane >= 5)] + [0, 100][usize::from([0, 5].contains(&lane))]).collect();
    assert_eq!(ran.u32s(), expected);
}

#[test]
fn forms_that_are_not_supported_are_refused() {
    for (instruction, expected) in [
        ("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s8.s8.s32 {r1}, {r1}, {r1}, {r1}", "this `wmma` is not supported"),
        ("wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {r1}, {r1}, {r1}, {r1}", "`.and.popc` or `.xor.popc`"),
        ("wmma.load.a.sync.aligned.col.m8n8k32.s4 {r1}, [l1]", "this `wmma` is not supported"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 {r1}, {r1}, {r1}, {r1}", "with c and d of one type"),
        ("wmma.load.a.sync.aligned.row.m16n16k8.f16 {r1}, [l1]", "this `wmma` is not supported"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {r1}, [l1]", "expected 8 register(s), found 1"),
        ("wmma.load.a.aligned.row.m16n16k16.f16 {r1}, [l1]", "`wmma` needs `.sync.aligned`"),
        ("mma.sync.aligned.m8n8k4.row.row.f64.f64.f64.f64 {r1}, {r1}, {r1}, {r1}", "this `mma` is not supported"),
        ("movmatrix.sync.aligned.m8n8.b16 r1, r2", "`movmatrix` needs `.trans`"),
        ("elect.sync r1, r2", "`elect` has two results, `d|p`"),
    ] {
        let text =
            format!(".version 8.0 .target sm_80 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; {instruction}; ret; }}");
        let found = durawarp::kernel::ptx::parse("k.ptx", &text).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    }
}
