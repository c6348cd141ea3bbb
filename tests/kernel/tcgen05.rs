//! `tcgen05` beside a plain product of matrices, and transfers of tensor memory beside the ISA's figures (PTX ISA 9.7.16).
//! Tiles lie in shared memory as those of `wgmma` do here; descriptors are as `make_umma_desc` of CuTe makes them.
//!
//! Nothing here is taken from the simulator. Elements are small integers, whose sums every format holds exactly.

use crate::ptx_common::{Ran, Setup, run_text};
use crate::wgmma::{BF16, E4M3, E5M2, Element, F16, Layout, SLICES, TF32, encode, value};

/// Lanes of tensor memory.
const LANES: usize = 128;

/// A test of four products along k.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    a: Element,
    b: Element,
    /// Bytes are unsigned: of a, of b.
    unsigned: [bool; 2],
    /// Sums are halves.
    halves: bool,
    rows: usize,
    columns: usize,
    /// None: a is in tensor memory.
    layout_a: Option<Layout>,
    layout_b: Layout,
    /// a, b count negated.
    negated: [bool; 2],
    /// d has a value before the first product, which counts as 2 to the power of minus this.
    adds: Option<u32>,
    /// Masks of lanes that stay as they are.
    disabled: Option<[u32; 4]>,
}

const K_MAJOR: Layout = Layout { width: 1, across: false };

const CASE: Case = Case {
    kind: "f16",
    a: F16,
    b: F16,
    unsigned: [false; 2],
    halves: false,
    rows: 128,
    columns: 16,
    layout_a: Some(K_MAJOR),
    layout_b: K_MAJOR,
    negated: [false; 2],
    adds: Some(0),
    disabled: None,
};

impl Case {
    fn bytes(&self) -> bool {
        self.a == Element::Byte
    }

    /// The lane of a row (layouts D and F of the ISA).
    fn lane(&self, row: usize) -> usize {
        if self.rows == 128 { row } else { 32 * (row / 16) + row % 16 }
    }

    /// A cell of d before the products.
    fn before(&self, lane: usize, column: usize) -> i32 {
        4 * (((lane * 5 + column * 3) % 17) as i32 - 8)
    }

    fn encoded(&self, sum: i32) -> u32 {
        match (self.halves, self.bytes()) {
            (true, _) => encode(sum, 5, 10),
            (_, true) => sum as u32,
            _ => encode(sum, 8, 23),
        }
    }

    /// The descriptor of the instruction (PTX ISA, table of `.kind::tf32` and its like).
    fn instruction(&self) -> u32 {
        let code = |element: Element, unsigned: bool| match element {
            F16 | E4M3 => 0,
            BF16 | E5M2 => 1,
            TF32 => 2,
            _ => u32::from(!unsigned),
        };
        let sums = if self.halves { 0 } else { 1 + u32::from(self.bytes()) };
        let across = |layout: Layout| u32::from(layout.across);
        sums << 4
            | code(self.a, self.unsigned[0]) << 7
            | code(self.b, self.unsigned[1]) << 10
            | u32::from(self.negated[0]) << 13
            | u32::from(self.negated[1]) << 14
            | self.layout_a.map_or(0, across) << 15
            | across(self.layout_b) << 16
            | (self.columns as u32 / 8) << 17
            | (self.rows as u32 / 16) << 24
    }

    fn descriptor(&self, layout: Layout, start: usize, lines: usize, slice: usize) -> u64 {
        let mode = [(1, 0u64), (8, 2), (4, 4), (2, 6)].iter().find(|(width, _)| *width == layout.width).unwrap().1;
        layout.offsets_of(start, lines, slice, self.a.bits()) | 1 << 46 | mode << 61
    }

    /// Bytes of the tiles in shared memory, of a alone and together.
    fn tiles(&self) -> [usize; 2] {
        let a = if self.layout_a.is_some() { self.rows * 128 } else { 0 };
        [a, a + (self.columns * 128).next_multiple_of(512)]
    }

    fn text(&self) -> String {
        let [_, shared] = self.tiles();
        let images = shared + 16 * SLICES;
        let cells = images + LANES * 128;
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let (mut body, mut sums) = (String::new(), String::new());
        for slice in 0..SLICES {
            for (name, at) in [("da", 0), ("db", 8)] {
                body += &format!(
                    "ld.global.u64 {name}, [in+{}];\nadd.u64 {name}, {name}, base;\n",
                    shared + 16 * slice + at
                );
            }
            let a = match self.layout_a {
                Some(_) => "da".to_owned(),
                None => format!("[taddr+{}]", 256 + 8 * slice),
            };
            let masks = self
                .disabled
                .map_or(String::new(), |masks| format!("{{{}, {}, {}, {}}}, ", masks[0], masks[1], masks[2], masks[3]));
            let after = match (slice, self.adds) {
                (0, None) => "!p".to_owned(),
                (0, Some(0)) => "p".to_owned(),
                (0, Some(scale)) => format!("p, {scale}"),
                _ => "1".to_owned(),
            };
            body += &format!(
                "@first tcgen05.mma.cta_group::1.kind::{} [taddr], {a}, db, idesc, {masks}{after};\n",
                self.kind
            );
        }
        let mut memory = String::new();
        for block in 0..self.columns / 8 {
            let at = 4 * 8 * block;
            for half in 0..2 {
                let r = |n: usize| format!("{{r{}, r{}, r{}, r{}}}", n, n + 1, n + 2, n + 3);
                memory += &format!("ld.global.v4.b32 {}, [td+{}];\n", r(4 * half), cells + at + 16 * half);
                sums += "";
            }
            memory += &format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [own+{}], {};\n", 8 * block, list("r", 8));
            sums += &format!("tcgen05.ld.sync.aligned.32x32b.x8.b32 {}, [own+{}];\n", list("r", 8), 8 * block);
            sums += "tcgen05.wait::ld.sync.aligned;\n";
            sums += &(0..8).map(|n| format!("st.global.b32 [out+{}], r{n};\n", at + 4 * n)).collect::<String>();
        }
        // a in tensor memory, where its lane has a row.
        for slice in 0..SLICES {
            for half in 0..2 {
                let at = images + 32 * slice + 16 * half;
                memory += &format!(
                    "ld.global.v4.b32 {{r{}, r{}, r{}, r{}}}, [ta+{at}];\n",
                    4 * half,
                    4 * half + 1,
                    4 * half + 2,
                    4 * half + 3
                );
            }
            memory += &format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [own+{}], {};\n", 256 + 8 * slice, list("r", 8));
        }
        format!(
            ".version 8.6 .target sm_100a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out, ta, td, at, da, db, base, state; .reg .b32 t, n, w, x, taddr, own, idesc, r<8>;\n\
             .reg .pred p, q, first, warp0; .shared .align 1024 .b8 tile[{shared}];\n\
             .shared .align 8 .b64 done; .shared .align 4 .b32 place;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
             mul.wide.u32 ta, t, 128; add.u64 ta, in, ta; mul.wide.u32 td, t, {row}; add.u64 out, out, td;\n\
             add.u64 td, in, td; mul.wide.u32 at, t, 4; add.u64 at, in, at; shl.b32 n, t, 2;\n\
             FILL: ld.global.b32 w, [at]; mov.u32 x, tile; add.u32 x, x, n; st.shared.b32 [x], w;\n\
             add.u64 at, at, 512; add.u32 n, n, 512; setp.lt.u32 q, n, {shared}; @q bra FILL;\n\
             setp.lt.u32 warp0, t, 32; setp.eq.u32 first, t, 0;\n\
             @warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;\n\
             @warp0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n\
             @first mbarrier.init.shared.b64 [done], 1;\n\
             fence.proxy.async; bar.sync 0; setp.ge.u32 p, t, 0;\n\
             mov.u32 w, tile; shr.u32 w, w, 4; cvt.u64.u32 base, w; ld.shared.b32 taddr, [place];\n\
             shr.u32 own, t, 5; shl.b32 own, own, 21; add.u32 own, own, taddr;\n\
             mov.u32 idesc, {idesc};\n\
             {memory}tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync; bar.sync 0;\n\
             tcgen05.fence::after_thread_sync;\n{body}\
             @first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n\
             WAIT: mbarrier.try_wait.parity.shared.b64 q, [done], 0; @!q bra WAIT;\n\
             {sums}bar.sync 0; @warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 512; ret; }}",
            row = 4 * self.columns,
            idesc = self.instruction(),
        )
    }

    /// The bytes that the kernel reads: both tiles, descriptors, a by lanes, and d.
    fn input(&self) -> Vec<u8> {
        let [a_bytes, shared] = self.tiles();
        let k = SLICES * self.a.depth();
        let mut image = vec![0; shared];
        let mut put = |start: usize, layout: Layout, lines: usize, element: Element, seed: usize, unsigned: bool| {
            for (line, k) in (0..lines).flat_map(|line| (0..k).map(move |k| (line, k))) {
                let (byte, _) = layout.place(lines, line, k, element.bits());
                let word = element.encode(value(seed, line, k, element, unsigned));
                for (n, part) in word.to_le_bytes().iter().enumerate().take(element.bits() / 8) {
                    image[start + byte + n] = *part;
                }
            }
        };
        if let Some(layout) = self.layout_a {
            put(0, layout, self.rows, self.a, 1, self.unsigned[0]);
        }
        put(a_bytes, self.layout_b, self.columns, self.b, 2, self.unsigned[1]);
        for slice in 0..SLICES {
            let of_a = self.layout_a.map_or(0, |layout| self.descriptor(layout, 0, self.rows, slice));
            image.extend(of_a.to_le_bytes());
            image.extend(self.descriptor(self.layout_b, a_bytes, self.columns, slice).to_le_bytes());
        }
        let row_of = |lane: usize| (0..self.rows).find(|&row| self.lane(row) == lane);
        for lane in 0..LANES {
            let mut words = [0u32; 32];
            for k in 0..k {
                let of = row_of(lane).map_or(0, |row| value(1, row, k, self.a, self.unsigned[0]));
                let bit = k * self.a.bits();
                words[bit / 32] |= self.a.encode(of) << (bit % 32);
            }
            image.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        for (lane, column) in (0..LANES).flat_map(|lane| (0..self.columns).map(move |column| (lane, column))) {
            image.extend(self.encoded(self.before(lane, column)).to_le_bytes());
        }
        image
    }

    fn run(&self) -> Ran {
        let input = self.input();
        let output = LANES * 4 * self.columns;
        run_text(&self.text(), &Setup { input: &input, output, shape: (1, 128), ..Setup::default() })
    }

    /// Every cell is that of the plain product, or as it was.
    fn check(&self) {
        let ran = self.run();
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        let words = ran.u32s();
        let mut expected: Vec<u32> = (0..LANES)
            .flat_map(|lane| (0..self.columns).map(move |column| self.encoded(self.before(lane, column))))
            .collect();
        let sign = if self.negated[0] ^ self.negated[1] { -1 } else { 1 };
        for (row, column) in (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column))) {
            let lane = self.lane(row);
            if self.disabled.is_some_and(|masks| masks[lane / 32] >> (lane % 32) & 1 == 1) {
                continue;
            }
            let before = self.adds.map_or(0, |scale| self.before(lane, column) / (1 << scale));
            let products = (0..SLICES * self.a.depth()).map(|k| {
                sign * value(1, row, k, self.a, self.unsigned[0]) * value(2, column, k, self.b, self.unsigned[1])
            });
            expected[lane * self.columns + column] = self.encoded(before + products.sum::<i32>());
        }
        for (at, (found, expected)) in words.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{self:?}: lane {}, column {}", at / self.columns, at % self.columns);
        }
    }
}

const WIDTHS: [usize; 4] = [1, 2, 4, 8];

#[test]
fn halves_of_64_and_128_rows_in_every_layout_and_from_tensor_memory() {
    for rows in [64, 128] {
        for width in WIDTHS {
            for (across_a, across_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let layout = |across| Layout { width, across };
                Case { rows, columns: 64, layout_a: Some(layout(across_a)), layout_b: layout(across_b), ..CASE }
                    .check();
            }
            for across in [false, true] {
                Case { rows, columns: 64, layout_a: None, layout_b: Layout { width, across }, ..CASE }.check();
            }
        }
    }
}

#[test]
fn numbers_of_columns_from_8_to_256() {
    for columns in [8, 24, 40, 128, 248, 256] {
        let layout_b = Layout { width: 8, across: false };
        Case { columns, layout_b, ..CASE }.check();
        Case { rows: 64, columns, layout_a: None, layout_b, ..CASE }.check();
    }
}

#[test]
fn every_type_of_elements_and_sums() {
    let of = |kind, a, b| Case { kind, a, b, columns: 24, ..CASE };
    let mut cases = vec![
        Case { halves: true, ..of("f16", F16, F16) },
        of("f16", BF16, BF16),
        of("tf32", TF32, TF32),
        of("f8f6f4", E4M3, E4M3),
        of("f8f6f4", E4M3, E5M2),
        of("f8f6f4", E5M2, E4M3),
        Case { halves: true, ..of("f8f6f4", E5M2, E5M2) },
    ];
    for unsigned in [[false, false], [false, true], [true, false], [true, true]] {
        cases.push(Case { unsigned, ..of("i8", Element::Byte, Element::Byte) });
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
fn bytes_across_in_every_layout() {
    let of = |kind, a| Case { kind, a, b: a, columns: 128, ..CASE };
    for case in [of("f8f6f4", E4M3), of("f8f6f4", E5M2), of("i8", Element::Byte)] {
        for width in WIDTHS {
            for (across_a, across_b) in [(true, false), (false, true), (true, true)] {
                let layout = |across| Layout { width, across };
                Case { layout_a: Some(layout(across_a)), layout_b: layout(across_b), ..case }.check();
            }
        }
    }
}

#[test]
fn signs_scales_and_masks_of_lanes() {
    for negated in [[false, false], [true, false], [false, true], [true, true]] {
        for adds in [None, Some(0), Some(1), Some(2)] {
            for layout_a in [None, Some(K_MAJOR)] {
                Case { negated, adds, layout_a, ..CASE }.check();
                Case { kind: "tf32", a: TF32, b: TF32, negated, adds, layout_a, ..CASE }.check();
                Case { halves: true, negated, adds, layout_a, ..CASE }.check();
            }
        }
    }
    let disabled = Some([0x0000_00ff, 0, 0xffff_ffff, 0x8000_0001]);
    for rows in [64, 128] {
        Case { rows, disabled, ..CASE }.check();
    }
}

/// A kernel of one warp group with tensor memory of 64 columns from `taddr` on; `own` is that of the warp.
fn program(body: &str) -> String {
    format!(
        ".version 8.6 .target sm_100a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 out, d; .reg .b32 t, w, taddr, own, r<8>; .reg .pred p; .shared .align 4 .b32 place;\n\
         ld.param.u64 out, [output]; mov.u32 t, %tid.x; setp.lt.u32 p, t, 32;\n\
         mul.wide.u32 d, t, 32; add.u64 out, out, d;\n\
         @p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;\n\
         bar.sync 0; ld.shared.b32 taddr, [place]; shr.u32 own, t, 5; shl.b32 own, own, 21; add.u32 own, own, taddr;\n\
         {body}\
         bar.sync 0; @p tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 64; ret; }}"
    )
}

fn ran(body: &str) -> Ran {
    run_text(&program(body), &Setup { output: 128 * 32, shape: (1, 128), ..Setup::default() })
}

/// What a load of a shape has in each register of each thread, where every cell has 1000 lane + column.
fn loaded(shape: &str, operand: &str, registers: usize) -> Vec<u32> {
    let list: Vec<String> = (0..registers).map(|n| format!("r{n}")).collect();
    let fill: String = (0..64)
        .map(|column| {
            format!("mad.lo.u32 w, t, 1000, {column}; tcgen05.st.sync.aligned.32x32b.x1.b32 [own+{column}], {{w}};\n")
        })
        .collect();
    let stores: String = (0..registers).map(|n| format!("st.global.b32 [out+{}], r{n};\n", 4 * n)).collect();
    let body = format!(
        "{fill}tcgen05.wait::st.sync.aligned;\ntcgen05.ld.sync.aligned.{shape}.b32 {{{}}}, {operand};\n\
         tcgen05.wait::ld.sync.aligned;\n{stores}",
        list.join(", ")
    );
    let ran = ran(&body);
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{shape}: {fault}"));
    ran.u32s()
}

#[test]
fn each_shape_loads_what_the_figures_of_the_isa_say() {
    // Lane and column of a thread's register, by the figures.
    type Place = fn(usize, usize) -> (usize, usize);
    let shapes: [(&str, &str, usize, usize, Place); 6] = [
        ("32x32b.x8", "[own]", 8, 0, |t, r| (t, r)),
        ("16x64b.x4", "[own]", 4, 0, |t, r| (t / 4 + 8 * (t % 2), t / 2 % 2 + 2 * r)),
        ("16x128b.x2", "[own]", 4, 0, |t, r| (t / 4 + 8 * (r % 2), t % 4 + 4 * (r / 2))),
        ("16x256b.x2", "[own]", 8, 0, |t, r| (t / 4 + 8 * (r / 2 % 2), r % 2 + 2 * (t % 4) + 8 * (r / 4))),
        ("16x32bx2.x4", "[own], 32", 4, 0, |t, r| (t % 16, r + 32 * (t / 16))),
        // The upper half of the warp's lanes.
        ("16x64b.x4", "[own+1048576]", 4, 16, |t, r| (t / 4 + 8 * (t % 2), t / 2 % 2 + 2 * r)),
    ];
    for (shape, operand, registers, lane, place) in shapes {
        let found = loaded(shape, operand, registers);
        for (thread, register) in (0..128).flat_map(|thread| (0..registers).map(move |register| (thread, register))) {
            let (row, column) = place(thread % 32, register);
            let expected = 1000 * (thread / 32 * 32 + lane + row) + column;
            assert_eq!(found[8 * thread + register] as usize, expected, "{shape} {operand}: {thread}, {register}");
        }
    }
}

#[test]
fn a_load_that_packs_has_the_lower_halves_of_two_columns() {
    let found = loaded("32x32b.x4.pack::16b", "[own+2]", 4);
    for (thread, register) in (0..128).flat_map(|thread| (0..4).map(move |register| (thread, register))) {
        let cell = |column: usize| ((1000 * thread + column) & 0xffff) as u32;
        let expected = cell(2 + 2 * register) | cell(3 + 2 * register) << 16;
        assert_eq!(found[8 * thread + register], expected, "{thread}, {register}");
    }
}

#[test]
fn what_the_isa_leaves_undefined_and_what_is_not_supported_is_told() {
    let fault = |body: &str| ran(body).result.expect_err("a fault").to_string();
    for (body, told) in [
        (
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [taddr];\n",
            "at lane 0 by a warp of rank 3 of four, whose lanes begin at 96",
        ),
        ("tcgen05.ld.sync.aligned.32x32b.x8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [own+60];\n", "columns 60 to 67"),
        ("add.u32 own, own, t;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [own];\n", "have several operands"),
        ("@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 48;\n", "a power of two from 32 to 512"),
        (
            "@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;\n",
            "waits for columns that its own CTA has",
        ),
        ("@p tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32;\n", "32 columns at address 0x0"),
        ("@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;\n", "ends with 32 columns"),
        ("setp.lt.u32 p, t, 5;\n@p tcgen05.wait::ld.sync.aligned;\n", "5 of 32 lanes"),
    ] {
        let found = fault(body);
        assert!(found.contains(told), "{body}: {found}");
    }
    let refused = |text: &str| {
        let message = durawarp::kernel::ptx::parse("k.ptx", &program(text)).expect_err("a fault").to_string();
        assert!(message.contains("k.ptx:"), "{message}");
        message
    };
    for (text, told) in [
        ("tcgen05.mma.cta_group::2.kind::f16 [taddr], d, d, w, p;\n", "have the same `.cta_group`"),
        ("tcgen05.mma.sp.cta_group::1.kind::f16 [taddr], d, d, [own], w, p;\n", "products with a sparse a"),
        ("tcgen05.mma.cta_group::1.kind::mxf4 [taddr], d, d, w, p;\n", "`.kind::i8` is supported"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {w}, [own];\n", "this shape has 2 register(s), found 1"),
        ("tcgen05.ld.aligned.32x32b.x1.b32 {w}, [own];\n", "needs `.sync`"),
        ("tcgen05.ld.sync.aligned.16x64b.x1.pack::16b.b32 {w}, [own];\n", "supported of `.32x32b` alone"),
        ("tcgen05.prefetch;\n", "`tcgen05` is `.alloc`"),
        ("tcgen05.shift.cta_group::1.down [taddr];\n", "shifts of rows"),
    ] {
        let found = refused(text);
        assert!(found.contains(told), "{text}: {found}");
    }
}
