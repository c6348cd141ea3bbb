//! `wgmma` beside a plain product of matrices. Tiles are laid out in shared memory as CuTe makes them: atoms of 8 lines
//! with a swizzle, one after another (`GMMA::Layout_K_SW128_Atom` and its like, `tile_to_shape`); descriptors as
//! `make_gmma_desc` makes them. Fragments are by the ISA's figures (PTX ISA 9.7.15.5).
//!
//! Nothing here is taken from the simulator. Elements are small integers, whose sums every format holds exactly.

use crate::ptx_common::{Ran, Setup, run_text};

/// Slices of k that a tile has: a line has 128 bytes.
pub(crate) const SLICES: usize = 4;

/// Elements of a and b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element {
    /// Bits of exponent and significand.
    Float(u32, u32),
    Byte,
    Bit,
}

pub(crate) const F16: Element = Element::Float(5, 10);
pub(crate) const BF16: Element = Element::Float(8, 7);
pub(crate) const TF32: Element = Element::Float(8, 23);
pub(crate) const E4M3: Element = Element::Float(4, 3);
pub(crate) const E5M2: Element = Element::Float(5, 2);

impl Element {
    pub(crate) fn bits(self) -> usize {
        match self {
            Element::Float(exponent, significand) => 1 + (exponent + significand) as usize,
            Element::Byte => 8,
            Element::Bit => 1,
        }
    }

    pub(crate) fn encode(self, value: i32) -> u32 {
        match self {
            Element::Float(exponent, significand) => encode(value, exponent, significand),
            Element::Byte => value as u32 & 0xff,
            Element::Bit => value as u32 & 1,
        }
    }

    /// Elements of a line of one product.
    pub(crate) fn depth(self) -> usize {
        256 / self.bits()
    }
}

/// An integer as a float, exactly.
pub(crate) fn encode(value: i32, exponent: u32, significand: u32) -> u32 {
    let (sign, size) = (u32::from(value < 0), value.unsigned_abs());
    if size == 0 {
        return sign << (exponent + significand);
    }
    let power = size.ilog2();
    assert!(power <= significand || size.trailing_zeros() + significand >= power, "{value} is held exactly");
    let fraction = u64::from(size) << significand >> power;
    let bias = (1 << (exponent - 1)) - 1;
    sign << (exponent + significand) | (power + bias) << significand | fraction as u32 & ((1 << significand) - 1)
}

/// How a tile lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Chunks of 16 bytes of a row of an atom: 1 without a swizzle, 2, 4, 8.
    pub(crate) width: usize,
    /// Lines lie across: `MN` major.
    pub(crate) across: bool,
}

impl Layout {
    /// Bytes of an atom: 8 rows.
    fn atom(self) -> usize {
        8 * 16 * self.width
    }

    /// Byte of bit 0 of an element of a tile of so many lines, by CuTe's atoms.
    pub(crate) fn place(self, lines: usize, line: usize, k: usize, bits: usize) -> (usize, usize) {
        let row_bits = 128 * self.width;
        let offset = if self.across {
            let atom_lines = row_bits / bits;
            let atom = line / atom_lines + lines / atom_lines * (k / 8);
            8 * atom * self.atom() + (k % 8) * row_bits + line % atom_lines * bits
        } else {
            let atom_depth = row_bits / bits;
            let atom = line / 8 + lines / 8 * (k / atom_depth);
            8 * atom * self.atom() + line % 8 * row_bits + k % atom_depth * bits
        };
        // `Swizzle<B, 4, 3>` of bytes.
        let byte = offset / 8;
        let mask = self.width - 1;
        (byte ^ (byte >> 7 & mask) << 4, offset % 8)
    }

    /// The descriptor of a slice of k of a tile at `start`.
    pub(crate) fn descriptor(self, start: usize, lines: usize, slice: usize) -> u64 {
        let mode = [(1, 0u64), (2, 3), (4, 2), (8, 1)].iter().find(|(width, _)| *width == self.width).unwrap().1;
        self.offsets(start, lines, slice) | mode << 62
    }

    /// Its start and offsets.
    pub(crate) fn offsets(self, start: usize, lines: usize, slice: usize) -> u64 {
        self.offsets_of(start, lines, slice, 16)
    }

    /// The same of elements of `bits` bits.
    pub(crate) fn offsets_of(self, start: usize, lines: usize, slice: usize, bits: usize) -> u64 {
        // Across, an atom has more lines of narrower elements; a slice has more atoms along k.
        let (atom, of_lines) = (self.atom(), if self.across { lines * bits / 128 } else { lines / 8 });
        let of_slice = 32 / bits * slice;
        // Leading and stride offset, and how far the slice is from the start.
        let (leading, stride, skipped) = match (self.across, self.width) {
            (true, 1) => (of_lines * atom, atom, of_slice * of_lines * atom),
            (true, width) => (atom, of_lines / width * atom, of_slice * (of_lines / width) * atom),
            (false, 1) => (of_lines * atom, atom, 2 * slice * of_lines * atom),
            (false, width) => {
                let within = 32 * slice % (16 * width);
                (16, atom, 32 * slice / (16 * width) * of_lines * atom + within)
            }
        };
        let field = |bytes: usize| (bytes as u64 & 0x3ffff) >> 4;
        field(start + skipped) | field(leading) << 16 | field(stride) << 32
    }
}

/// A test of four products along k.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Types as the instruction names them: d, a, b and what follows.
    types: &'static str,
    a: Element,
    b: Element,
    /// Bytes are unsigned: of a, of b.
    unsigned: [bool; 2],
    columns: usize,
    /// None: a is in registers.
    layout_a: Option<Layout>,
    layout_b: Layout,
    /// `imm-scale` of a and b.
    signs: [i32; 2],
    /// d has a value before the first product.
    adds: bool,
    /// Threads of a CTA.
    threads: u32,
}

const K_MAJOR: Layout = Layout { width: 1, across: false };

const CASE: Case = Case {
    types: "f32.f16.f16",
    a: F16,
    b: F16,
    unsigned: [false; 2],
    columns: 8,
    layout_a: None,
    layout_b: K_MAJOR,
    signs: [1, 1],
    adds: true,
    threads: 128,
};

/// A value of a matrix, small enough for every format.
pub(crate) fn value(seed: usize, line: usize, k: usize, element: Element, unsigned: bool) -> i32 {
    let mixed = (line * 131 + k * 71 + seed * 29 + line * k * 7) % 9973;
    match (element, unsigned) {
        (Element::Bit, _) => (mixed / 3 % 2) as i32,
        (Element::Byte, true) => (mixed % 256) as i32,
        (Element::Byte, false) => (mixed % 256) as i32 - 128,
        (Element::Float(..), _) => [0, 1, -1, 2, -2, 3, -3, 4][mixed % 8],
    }
}

impl Case {
    fn registers(&self) -> usize {
        self.columns / 8 * if self.halves() { 2 } else { 4 }
    }

    /// Sums are halves.
    fn halves(&self) -> bool {
        self.types.starts_with("f16.")
    }

    fn floats(&self) -> bool {
        !self.types.starts_with("s32.")
    }

    /// Row and column of an element of d, of which a register has two or one.
    fn place_of_d(&self, thread: usize, register: usize, n: usize) -> (usize, usize) {
        let (warp, g, t) = (thread / 32, thread % 32 / 4, thread % 4);
        let i = if self.halves() { 2 * register + n } else { register };
        let row = 16 * warp + g + if i % 4 < 2 { 0 } else { 8 };
        (row, 8 * (i / 4) + 2 * t + i % 2)
    }

    /// Row and column of element `i` of a thread's fragment of a.
    fn place_of_a(&self, thread: usize, i: usize) -> (usize, usize) {
        let (warp, g, t) = (thread / 32, thread % 32 / 4, thread % 4);
        let each = 32 / self.a.bits();
        let row = 16 * warp + g + 8 * (i / each % 2);
        (row, each * t + i % each + if i < 2 * each { 0 } else { self.a.depth() / 2 })
    }

    fn before(&self, row: usize, column: usize) -> i32 {
        ((row * 5 + column * 3) % 17) as i32 - 8
    }

    fn text(&self, shared: usize, scratch: &str) -> String {
        let registers = self.registers();
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let d_type = if self.types.starts_with("f32.") { "f32" } else { "b32" };
        let images = shared + 16 * SLICES;
        let mut body = String::new();
        for slice in 0..SLICES {
            // Descriptors are relative to the start of the tile.
            for (name, at) in [("da", 0), ("db", 8)] {
                body += &format!(
                    "ld.global.u64 {name}, [in+{}];\nadd.u64 {name}, {name}, base;\n",
                    shared + 16 * slice + at
                );
            }
            body += &format!("ld.global.v4.b32 {}, [ta+{}];\n", list("a", 4), images + 16 * slice);
            let a = if self.layout_a.is_some() { "da".to_owned() } else { list("a", 4) };
            let mut after = if slice == 0 { (if self.adds { "p" } else { "!p" }).to_owned() } else { "1".to_owned() };
            if self.floats() {
                after += &format!(", {}, {}", self.signs[0], self.signs[1]);
            }
            if self.a.bits() == 16 {
                let of = |layout: Layout| format!(", {}", i32::from(layout.across));
                after += &self.layout_a.map(of).unwrap_or_default();
                after += &of(self.layout_b);
            }
            let k = self.a.depth();
            body += &format!(
                "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k{k}.{} {}, {a}, db, {after};\n",
                self.columns,
                self.types,
                list("d", registers)
            );
        }
        let loads: String = (0..registers)
            .map(|i| format!("ld.global.{d_type} d{i}, [td+{}];\n", images + 128 * 16 * SLICES + 4 * i))
            .collect();
        let stores: String = (0..registers).map(|i| format!("st.global.{d_type} [out+{}], d{i};\n", 4 * i)).collect();
        format!(
            ".version 8.0 .target sm_90a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out, ta, td, at, da, db, base; .reg .b32 t, n, w, a<4>; .reg .{d_type} d<{registers}>;\n\
             .reg .pred p, q; .shared .align 1024 .b8 tile[{shared}];\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
             mul.wide.u32 ta, t, {}; add.u64 ta, in, ta; mul.wide.u32 td, t, {}; add.u64 out, out, td;\n\
             add.u64 td, in, td; mul.wide.u32 at, t, 4; add.u64 at, in, at; shl.b32 n, t, 2;\n\
             FILL: ld.global.b32 w, [at]; mov.u32 a0, tile; add.u32 a0, a0, n; st.shared.b32 [a0], w;\n\
             add.u64 at, at, 512; add.u32 n, n, 512; setp.lt.u32 q, n, {shared}; @q bra FILL;\n\
             {scratch}fence.proxy.async; bar.sync 0; setp.ge.u32 p, t, 0;\n\
             mov.u32 w, tile; shr.u32 w, w, 4; cvt.u64.u32 base, w;\n\
             {loads}{body}wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n{stores}ret; }}",
            16 * SLICES,
            4 * registers
        )
    }

    /// The bytes that the kernel reads: both tiles, descriptors, fragments of a, and d.
    fn input(&self) -> (Vec<u8>, usize) {
        let k = SLICES * self.a.depth();
        let a_bytes = if self.layout_a.is_some() { 64 * 128 } else { 0 };
        let shared = a_bytes + (self.columns * 128).next_multiple_of(512);
        let mut image = vec![0; shared];
        let mut put = |start: usize, layout: Layout, lines: usize, element: Element, seed: usize, unsigned: bool| {
            for (line, k) in (0..lines).flat_map(|line| (0..k).map(move |k| (line, k))) {
                let bits = element.bits();
                let (byte, shift) = layout.place(lines, line, k, bits);
                let word = element.encode(value(seed, line, k, element, unsigned));
                for (n, part) in word.to_le_bytes().iter().enumerate().take(bits.div_ceil(8)) {
                    image[start + byte + n] |= part << shift;
                }
            }
        };
        if let Some(layout) = self.layout_a {
            put(0, layout, 64, self.a, 1, self.unsigned[0]);
        }
        put(a_bytes, self.layout_b, self.columns, self.b, 2, self.unsigned[1]);
        for slice in 0..SLICES {
            let of_a = self.layout_a.map_or(0, |layout| layout.descriptor(0, 64, slice));
            image.extend(of_a.to_le_bytes());
            image.extend(self.layout_b.descriptor(a_bytes, self.columns, slice).to_le_bytes());
        }
        for (thread, slice) in (0..128).flat_map(|thread| (0..SLICES).map(move |slice| (thread, slice))) {
            let mut words = [0; 4];
            let bits = self.a.bits();
            for i in 0..128 / bits {
                let (row, column) = self.place_of_a(thread, i);
                let of = value(1, row, slice * self.a.depth() + column, self.a, self.unsigned[0]);
                words[i * bits / 32] |= self.a.encode(of) << (i * bits % 32);
            }
            image.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
        }
        for (thread, register) in (0..128).flat_map(|thread| (0..self.registers()).map(move |n| (thread, n))) {
            let of = |n| {
                let (row, column) = self.place_of_d(thread, register, n);
                self.before(row, column)
            };
            let word = match (self.halves(), self.floats()) {
                (true, _) => encode(of(0), 5, 10) | encode(of(1), 5, 10) << 16,
                (_, true) => encode(of(0), 8, 23),
                _ => of(0) as u32,
            };
            image.extend(word.to_le_bytes());
        }
        (image, shared)
    }

    fn run(&self, scratch: &str) -> Ran {
        let (input, shared) = self.input();
        let output = 128 * 4 * self.registers();
        let shape = (1, self.threads);
        run_text(&self.text(shared, scratch), &Setup { input: &input, output, shape, ..Setup::default() })
    }

    /// Every element of d is that of the plain product.
    fn check(&self) {
        let ran = self.run("");
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        let words = ran.u32s();
        let sign = self.signs[0] * self.signs[1];
        for (thread, register) in (0..128).flat_map(|thread| (0..self.registers()).map(move |n| (thread, n))) {
            for n in 0..if self.halves() { 2 } else { 1 } {
                let (row, column) = self.place_of_d(thread, register, n);
                let mut sum = if self.adds { i64::from(self.before(row, column)) } else { 0 };
                for k in 0..SLICES * self.a.depth() {
                    let a = value(1, row, k, self.a, self.unsigned[0]);
                    let b = value(2, column, k, self.b, self.unsigned[1]);
                    sum += i64::from(sign * a * b);
                }
                let sum = sum as i32;
                let expected = match (self.halves(), self.floats()) {
                    (true, _) => encode(sum, 5, 10),
                    (_, true) => encode(sum, 8, 23),
                    _ => sum as u32,
                };
                let word = words[thread * self.registers() + register];
                let found = if self.halves() { word >> (16 * n) & 0xffff } else { word };
                assert_eq!(found, expected, "{self:?}: row {row}, column {column}, {sum}");
            }
        }
    }
}

const WIDTHS: [usize; 4] = [1, 2, 4, 8];

#[test]
fn halves_from_registers_and_from_shared_memory_in_every_layout() {
    for width in WIDTHS {
        for (across_a, across_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let layout = |across| Layout { width, across };
            let case = Case { columns: 64, layout_a: Some(layout(across_a)), layout_b: layout(across_b), ..CASE };
            case.check();
        }
        for across in [false, true] {
            Case { columns: 64, layout_b: Layout { width, across }, ..CASE }.check();
        }
    }
}

#[test]
fn every_number_of_columns_from_8_to_256() {
    for columns in (8..=256).step_by(8) {
        let layout_a = (columns % 16 == 0).then_some(K_MAJOR);
        Case { columns, layout_a, layout_b: Layout { width: 8, across: false }, ..CASE }.check();
    }
    Case { columns: 256, layout_b: Layout { width: 8, across: true }, ..CASE }.check();
}

#[test]
fn every_type_of_elements_and_sums() {
    let of = |types, a, b| Case { types, a, b, columns: 24, ..CASE };
    let mut cases = vec![
        of("f16.f16.f16", F16, F16),
        of("f32.bf16.bf16", BF16, BF16),
        of("f32.tf32.tf32", TF32, TF32),
        of("f32.e4m3.e4m3", E4M3, E4M3),
        of("f32.e4m3.e5m2", E4M3, E5M2),
        of("f16.e5m2.e4m3", E5M2, E4M3),
        of("f32.e5m2.e5m2", E5M2, E5M2),
        of("s32.b1.b1.and.popc", Element::Bit, Element::Bit),
    ];
    for (types, unsigned) in [
        ("s32.s8.s8", [false, false]),
        ("s32.s8.u8", [false, true]),
        ("s32.u8.s8.satfinite", [true, false]),
        ("s32.u8.u8", [true, true]),
    ] {
        cases.push(Case { unsigned, ..of(types, Element::Byte, Element::Byte) });
    }
    for case in cases {
        for width in WIDTHS {
            let layout = Layout { width, across: false };
            for layout_a in [None, Some(layout)] {
                Case { layout_a, layout_b: layout, ..case }.check();
            }
        }
    }
}

#[test]
fn signs_negate_and_scale_d_leaves_out_what_was_there() {
    for signs in [[1, 1], [-1, 1], [1, -1], [-1, -1]] {
        for adds in [true, false] {
            for layout_a in [None, Some(K_MAJOR)] {
                Case { signs, adds, layout_a, columns: 16, ..CASE }.check();
                Case { types: "f32.bf16.bf16", a: BF16, b: BF16, signs, adds, layout_a, ..CASE }.check();
                Case { types: "f32.tf32.tf32", a: TF32, b: TF32, signs, adds, layout_a, ..CASE }.check();
                Case { types: "f16.e4m3.e4m3", a: E4M3, b: E4M3, signs, adds, layout_a, ..CASE }.check();
            }
        }
    }
    Case { types: "s32.s8.s8", a: Element::Byte, b: Element::Byte, adds: false, ..CASE }.check();
}

/// The fault of a run that has one.
fn fault_of(case: Case, scratch: &str) -> String {
    case.run(scratch).result.expect_err("a fault").to_string()
}

#[test]
fn a_group_of_fewer_than_four_warps_is_a_fault() {
    let fault = fault_of(Case { threads: 96, ..CASE }, "");
    assert!(fault.contains("a CTA here has 96 threads, which is no multiple of 128"), "{fault}");
}

#[test]
fn a_lane_that_is_missing_is_a_fault() {
    let fault = fault_of(CASE, "setp.eq.u32 q, t, 77; @q ret;\n");
    assert!(fault.contains("`wgmma.fence` is executed by 31 of 32 lanes of a warp"), "{fault}");
}

/// Runs `body` on 128 threads with 64 KB of shared memory, whose parameters are registers of a product.
fn ran(body: &str) -> Ran {
    let text = format!(
        ".version 8.0 .target sm_90a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 out, at, x, y; .reg .b32 t, a<4>; .reg .f32 d<8>; .reg .pred p; .shared .align 1024 .b8 s[4096];\n\
         ld.param.u64 out, [output]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4; add.u64 out, out, at;\n\
         mov.b32 a0, 0; mov.b32 a1, 0; mov.b32 a2, 0; mov.b32 a3, 0; mov.u64 x, 0;\n{body}\nret; }}"
    );
    run_text(&text, &Setup { output: 512, shape: (1, 128), ..Setup::default() })
}

const PRODUCT: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, {a0, a1, a2, a3}, x, p, 1, 1, 0;\n";

#[test]
fn what_the_isa_leaves_undefined_is_a_fault_with_its_place() {
    let told = |body: &str| ran(body).result.expect_err("a fault").to_string();
    let beyond = told(&format!("mov.u64 x, 0x0000000000400000; or.b64 x, x, 0xf9;\n{PRODUCT}"));
    assert!(beyond.contains("0x1000 is out of bounds"), "{beyond}");
    assert!(beyond.starts_with("test.ptx:6:1: kernel `k`, CTA (0,0,0) thread ("), "{beyond}");
    assert!(beyond.contains("the CTA has 4096 bytes; it is in a matrix of `wgmma.mma_async`"), "{beyond}");
    let several = told(&format!("cvt.u64.u32 x, t;\n{PRODUCT}"));
    assert!(several.contains("several descriptors of one matrix"), "{several}");
    let scales = told(&format!("setp.lt.u32 p, t, 5;\n{PRODUCT}"));
    assert!(scales.contains("several values of `scale-d`"), "{scales}");
}

#[test]
fn the_last_chunk_of_shared_memory_is_inside() {
    // 8 lines of 16 bytes, the second chunk 128 bytes behind the first: 256 bytes from 3840 on, and 16 further.
    let of = |start: u32| {
        let descriptor = start >> 4 | (128 >> 4) << 16;
        ran(&format!("setp.ge.u32 p, t, 0; mov.u64 x, {descriptor};\nmov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;\n{PRODUCT}")).result
    };
    assert!(of(3840).is_ok());
    assert!(of(3856).is_err());
}

#[test]
fn words_that_name_no_product_are_refused_with_their_place() {
    use durawarp::kernel::ptx;
    let list = |count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("d{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let refused = |line: &str| {
        let text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {{ .reg .b64 x; .reg .f32 d<128>; .reg .b32 s<128>; .reg .pred p;\n{line}\nret; }}"
        );
        ptx::parse("k.ptx", &text).expect_err(line).to_string()
    };
    let four = list(4);
    for (line, told) in [
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {four}, x, x, p, 1, 1, 0, 0;"),
            "there is no product",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {four}, x, x, p, 1, 1, 0, 0;"),
            "there is no product",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n264k16.f32.f16.f16 {four}, x, x, p, 1, 1, 0, 0;"),
            "there is no product",
        ),
        (format!("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {}, x, x, p;", list(20)), "there is no product"),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {four}, x, x, p, 1, 1, 0, 0;"),
            "there is no product",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {four}, x, x, p, 1, 1, 0, 0;"),
            "there is no product",
        ),
        (format!("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.xor.popc {four}, x, x, p;"), "there is no product"),
        (
            format!("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {four}, x, x, p, 1, 1, 0, 0;"),
            "expected 8 register(s), found 4",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {four}, x, x, p, 1, 1;"),
            "takes 8 operands here, found 6",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {four}, x, x, p, 1, 1, 0, 0;"),
            "takes 6 operands here, found 8",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {four}, x, x, p, 1, 2, 0, 0;"),
            "`imm-scale` is 1 or -1",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {four}, x, x, p, 1, 1, 2, 0;"),
            "`imm-trans` is 0 or 1",
        ),
        (
            format!("wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.f16.f16 {four}, x, x, s0, 0, p, 1, 1, 0, 0;"),
            "there is no product",
        ),
        (
            format!("wgmma.mma_async.sp.sync.aligned.m64n8k512.s32.b1.b1.and.popc {four}, x, x, s0, 0, p;"),
            "there is no product",
        ),
        (
            format!("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {four}, x, x, s0, 2, p, 1, 1, 0, 0;"),
            "the selector of this product's metadata is less than 2",
        ),
        (
            format!("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {four}, x, x, p, 1, 1, 0, 0;"),
            "takes 10 operands here, found 8",
        ),
        (format!("wgmma.mma_async.aligned.m64n8k16.f32.f16.f16 {four}, x, x, p, 1, 1, 0, 0;"), "needs `.sync`"),
        ("wgmma.wait_group.sync.aligned s0;".to_owned(), "expected a number"),
        ("wgmma.start.sync.aligned;".to_owned(), "`wgmma` is `.mma_async`"),
    ] {
        let found = refused(&line);
        assert!(found.contains(told) && found.contains("k.ptx:5:"), "{line}: {found}");
    }
}

#[test]
fn a_number_0_as_scale_d_starts_from_zero_and_reads_no_register_of_d() {
    use durawarp::kernel::undetermined::unwritten;
    let of = |scale: &str| {
        let product = PRODUCT.replace(", p,", &format!(", {scale},"));
        let ran = ran(&format!("mov.u64 x, 0x80000;\n{product}add.f32 d0, d0, 0f3F800000; st.global.f32 [out], d0;"));
        let undefined = unwritten(&ran.launch.kernel).len();
        ran.result.unwrap_or_else(|fault| panic!("{fault}"));
        undefined
    };
    assert_eq!([of("0"), of("1")], [0, 4]);
    // Every element of b is 0 there: 0 and 1 in every thread.
    let words = ran(&format!(
        "mov.u64 x, 0x80000;\nmov.f32 d0, 0f40A00000;\n{}st.global.f32 [out], d0;",
        PRODUCT.replace(", p,", ", 0,")
    ));
    assert_eq!(words.u32s(), [0; 128]);
    let kept = format!(
        "mov.u64 x, 0x80000;\nmov.f32 d0, 0f40A00000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;\n{}st.global.f32 [out], d0;",
        PRODUCT.replace(", p,", ", 1,")
    );
    assert_eq!(ran(&kept).u32s(), [0x40a0_0000; 128]);
}
