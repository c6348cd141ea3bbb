//! `tcgen05` of pairs of CTAs (`.cta_group::2`) beside a plain product of matrices (PTX ISA 9.7.16): each CTA has
//! half of the rows of a and half of the columns of b; rows of d are where layouts A and B of the ISA have them.
//!
//! Nothing here is taken from the simulator. Elements are small integers, whose sums every format holds exactly.

use crate::ptx_common::{Ran, Setup, run_text};
use crate::wgmma::{BF16, E4M3, E5M2, Element, F16, Layout, SLICES, TF32, encode, value};

/// Lanes of tensor memory.
const LANES: usize = 128;

/// A test of four products along k, of two CTAs.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    a: Element,
    b: Element,
    /// Sums are halves.
    halves: bool,
    /// Rows and columns of the whole product.
    rows: usize,
    columns: usize,
    /// None: a is in tensor memory.
    layout_a: Option<Layout>,
    layout_b: Layout,
    /// a counts negated.
    negated: bool,
    /// d has a value before the first product, which counts as 2 to the power of minus this.
    adds: Option<u32>,
    /// Masks of lanes that stay as they are: of the even CTA, and of the odd one.
    disabled: Option<[u32; 8]>,
    /// The rank that issues the products.
    issuer: usize,
}

const K_MAJOR: Layout = Layout { width: 1, across: false };

const CASE: Case = Case {
    kind: "f16",
    a: F16,
    b: F16,
    halves: false,
    rows: 256,
    columns: 32,
    layout_a: Some(K_MAJOR),
    layout_b: K_MAJOR,
    negated: false,
    adds: Some(0),
    disabled: None,
    issuer: 0,
};

impl Case {
    /// Of a cell of a CTA's d: its row and column of the whole product.
    fn element(&self, rank: usize, lane: usize, column: usize) -> (usize, usize) {
        match self.rows {
            // Layout A.
            256 => (128 * rank + lane, column),
            // Layout B.
            _ => (64 * rank + lane % 64, column + self.columns / 2 * (lane / 64)),
        }
    }

    /// Columns of tensor memory that d has.
    fn cells(&self) -> usize {
        if self.rows == 256 { self.columns } else { self.columns / 2 }
    }

    /// A cell of d before the products.
    fn before(&self, rank: usize, lane: usize, column: usize) -> i32 {
        4 * (((lane * 5 + column * 3 + rank * 7) % 17) as i32 - 8)
    }

    fn encoded(&self, sum: i32) -> u32 {
        match (self.halves, self.a == Element::Byte) {
            (true, _) => encode(sum, 5, 10),
            (_, true) => sum as u32,
            _ => encode(sum, 8, 23),
        }
    }

    /// The descriptor of the instruction, which has the whole product's sizes.
    fn instruction(&self) -> u32 {
        let code = |element: Element| match element {
            F16 | E4M3 => 0,
            TF32 => 2,
            _ => 1,
        };
        let sums = if self.halves { 0 } else { 1 + u32::from(self.a == Element::Byte) };
        let across = |layout: Layout| u32::from(layout.across);
        sums << 4
            | code(self.a) << 7
            | code(self.b) << 10
            | u32::from(self.negated) << 13
            | self.layout_a.map_or(0, across) << 15
            | across(self.layout_b) << 16
            | (self.columns as u32 / 8) << 17
            | (self.rows as u32 / 16) << 24
    }

    fn descriptor(&self, layout: Layout, start: usize, lines: usize, slice: usize) -> u64 {
        let mode = [(1, 0u64), (8, 2), (4, 4), (2, 6)].iter().find(|(width, _)| *width == layout.width).unwrap().1;
        layout.offsets_of(start, lines, slice, self.a.bits()) | 1 << 46 | mode << 61
    }

    /// Bytes of a CTA's tiles in shared memory, of a alone and together.
    fn tiles(&self) -> [usize; 2] {
        let a = if self.layout_a.is_some() { self.rows / 2 * 128 } else { 0 };
        [a, a + (self.columns / 2 * 128).next_multiple_of(512)]
    }

    /// Bytes of input of a CTA.
    fn input_bytes(&self) -> usize {
        self.tiles()[1] + 16 * SLICES + LANES * 128 + LANES * 4 * self.cells()
    }

    fn text(&self) -> String {
        let [_, shared] = self.tiles();
        let images = shared + 16 * SLICES;
        let cells = images + LANES * 128;
        let list = |name: &str, first: usize, count: usize| {
            let all: Vec<String> = (first..first + count).map(|i| format!("{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let (mut body, mut sums, mut memory) = (String::new(), String::new(), String::new());
        for slice in 0..SLICES {
            for (name, at) in [("da", 0), ("db", 8)] {
                body += &format!(
                    "ld.global.u64 {name}, [in+{}];\nadd.u64 {name}, {name}, base;\n",
                    shared + 16 * slice + at
                );
            }
            let a = self.layout_a.map_or(format!("[taddr+{}]", 256 + 8 * slice), |_| "da".to_owned());
            let masks = self.disabled.map_or(String::new(), |masks| {
                let masks: Vec<String> = masks.iter().map(u32::to_string).collect();
                format!("{{{}}}, ", masks.join(", "))
            });
            let after = match (slice, self.adds) {
                (0, None) => "!p".to_owned(),
                (0, Some(0)) => "p".to_owned(),
                (0, Some(scale)) => format!("p, {scale}"),
                _ => "1".to_owned(),
            };
            body += &format!(
                "@issues tcgen05.mma.cta_group::2.kind::{} [taddr], {a}, db, idesc, {masks}{after};\n",
                self.kind
            );
        }
        for block in 0..self.cells() / 8 {
            let at = 32 * block;
            for half in 0..2 {
                memory += &format!("ld.global.v4.b32 {}, [td+{}];\n", list("r", 4 * half, 4), cells + at + 16 * half);
            }
            memory += &format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [own+{}], {};\n", 8 * block, list("r", 0, 8));
            sums += &format!("tcgen05.ld.sync.aligned.32x32b.x8.b32 {}, [own+{}];\n", list("r", 0, 8), 8 * block);
            sums += "tcgen05.wait::ld.sync.aligned;\n";
            sums += &(0..8).map(|n| format!("st.global.b32 [out+{}], r{n};\n", at + 4 * n)).collect::<String>();
        }
        // a in tensor memory, where its lane has a row.
        for slice in 0..SLICES {
            for half in 0..2 {
                let at = images + 32 * slice + 16 * half;
                memory += &format!("ld.global.v4.b32 {}, [ta+{at}];\n", list("r", 4 * half, 4));
            }
            memory +=
                &format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [own+{}], {};\n", 256 + 8 * slice, list("r", 0, 8));
        }
        format!(
            ".version 8.6 .target sm_100a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output)\n\
             .reqnctapercluster 2 {{\n\
             .reg .b64 in, out, ta, td, at, da, db, base; .reg .b32 t, n, w, x, taddr, own, idesc, rank, r<8>;\n\
             .reg .pred p, q, first, warp0, issues; .shared .align 1024 .b8 tile[{shared}];\n\
             .shared .align 8 .b64 done; .shared .align 4 .b32 place;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mov.u32 rank, %cluster_ctarank;\n\
             mul.wide.u32 at, rank, {input}; add.u64 in, in, at; mul.wide.u32 at, rank, {output}; add.u64 out, out, at;\n\
             mul.wide.u32 ta, t, 128; add.u64 ta, in, ta; mul.wide.u32 td, t, {row}; add.u64 out, out, td;\n\
             add.u64 td, in, td; mul.wide.u32 at, t, 4; add.u64 at, in, at; shl.b32 n, t, 2;\n\
             FILL: ld.global.b32 w, [at]; mov.u32 x, tile; add.u32 x, x, n; st.shared.b32 [x], w;\n\
             add.u64 at, at, 512; add.u32 n, n, 512; setp.lt.u32 q, n, {shared}; @q bra FILL;\n\
             setp.lt.u32 warp0, t, 32; setp.eq.u32 first, t, 0; setp.eq.u32 issues, rank, {issuer};\n\
             and.pred issues, issues, first;\n\
             @warp0 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 512;\n\
             @warp0 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n\
             @first mbarrier.init.shared.b64 [done], 1;\n\
             fence.proxy.async; bar.sync 0; setp.ge.u32 p, t, 0;\n\
             mov.u32 w, tile; shr.u32 w, w, 4; and.b32 w, w, 16383; cvt.u64.u32 base, w; ld.shared.b32 taddr, [place];\n\
             shr.u32 own, t, 5; shl.b32 own, own, 21; add.u32 own, own, taddr; mov.u32 idesc, {idesc};\n\
             {memory}tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n\
             barrier.cluster.arrive; barrier.cluster.wait;\ntcgen05.fence::after_thread_sync;\n{body}\
             mov.u32 w, done; mov.b32 x, 3;\n\
             @issues tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [w], x;\n\
             WAIT: mbarrier.try_wait.parity.shared.b64 q, [done], 0; @!q bra WAIT;\n\
             {sums}barrier.cluster.arrive; barrier.cluster.wait;\n\
             @warp0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 taddr, 512; ret; }}",
            input = self.input_bytes(),
            output = LANES * 4 * self.cells(),
            row = 4 * self.cells(),
            idesc = self.instruction(),
            issuer = self.issuer,
        )
    }

    /// The bytes that a CTA reads: its tiles, descriptors, its a by lanes, and its d.
    fn input(&self, rank: usize) -> Vec<u8> {
        let [a_bytes, shared] = self.tiles();
        let k = SLICES * self.a.depth();
        let (rows, columns) = (self.rows / 2, self.columns / 2);
        let mut image = vec![0; shared];
        let mut put = |start: usize, layout: Layout, lines: usize, element: Element, seed: usize| {
            for (line, k) in (0..lines).flat_map(|line| (0..k).map(move |k| (line, k))) {
                let (byte, _) = layout.place(lines, line, k, element.bits());
                let word = element.encode(value(seed, lines * rank + line, k, element, false));
                let bytes = element.bits() / 8;
                image[start + byte..][..bytes].copy_from_slice(&word.to_le_bytes()[..bytes]);
            }
        };
        if let Some(layout) = self.layout_a {
            put(0, layout, rows, self.a, 1);
        }
        put(a_bytes, self.layout_b, columns, self.b, 2);
        for slice in 0..SLICES {
            let of_a = self.layout_a.map_or(0, |layout| self.descriptor(layout, 0, rows, slice));
            image.extend(of_a.to_le_bytes());
            image.extend(self.descriptor(self.layout_b, a_bytes, columns, slice).to_le_bytes());
        }
        // Of 64 rows a is in both halves of the lanes (CuTe: `TmemAllocMode::Duplicated`).
        for lane in 0..LANES {
            let mut words = [0u32; 32];
            for k in 0..k {
                let of = value(1, rows * rank + lane % rows, k, self.a, false);
                let bit = k * self.a.bits();
                words[bit / 32] |= self.a.encode(of) << (bit % 32);
            }
            image.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        for (lane, column) in (0..LANES).flat_map(|lane| (0..self.cells()).map(move |column| (lane, column))) {
            image.extend(self.encoded(self.before(rank, lane, column)).to_le_bytes());
        }
        image
    }

    fn run(&self) -> Ran {
        let input = [self.input(0), self.input(1)].concat();
        let output = 2 * LANES * 4 * self.cells();
        run_text(&self.text(), &Setup { input: &input, output, shape: (2, 128), ..Setup::default() })
    }

    /// Every cell of both CTAs is that of the plain product, or as it was.
    fn check(&self) {
        let ran = self.run();
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        let words = ran.u32s();
        let sign = if self.negated { -1 } else { 1 };
        let cells = (0..2).flat_map(|rank| (0..LANES).map(move |lane| (rank, lane)));
        for (at, (rank, lane)) in cells.enumerate() {
            let stays = self.disabled.is_some_and(|masks| masks[4 * rank + lane / 32] >> (lane % 32) & 1 == 1);
            for column in 0..self.cells() {
                let (row, of_product) = self.element(rank, lane, column);
                let before = self.before(rank, lane, column);
                let products = (0..SLICES * self.a.depth())
                    .map(|k| sign * value(1, row, k, self.a, false) * value(2, of_product, k, self.b, false));
                let sum = self.adds.map_or(0, |scale| before / (1 << scale)) + products.sum::<i32>();
                let expected = self.encoded(if stays { before } else { sum });
                let found = words[at * self.cells() + column];
                assert_eq!(found, expected, "{self:?}: rank {rank}, lane {lane}, column {column}");
            }
        }
    }
}

const WIDTHS: [usize; 4] = [1, 2, 4, 8];

#[test]
fn halves_of_128_and_256_rows_in_every_layout_and_from_tensor_memory() {
    for rows in [128, 256] {
        for width in WIDTHS {
            for (across_a, across_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let layout = |across| Layout { width, across };
                Case { rows, columns: 128, layout_a: Some(layout(across_a)), layout_b: layout(across_b), ..CASE }
                    .check();
            }
            Case { rows, columns: 64, layout_a: None, layout_b: Layout { width, across: false }, ..CASE }.check();
        }
    }
}

#[test]
fn numbers_of_columns_from_16_to_256_and_either_cta_issues() {
    for columns in [16, 48, 240, 256] {
        let layout_b = Layout { width: 8, across: false };
        Case { columns, layout_b, ..CASE }.check();
        Case { rows: 128, columns, layout_a: None, layout_b, issuer: 1, ..CASE }.check();
        Case { columns, layout_b, issuer: 1, ..CASE }.check();
    }
}

#[test]
fn every_type_of_elements_and_sums() {
    let of = |kind, a, b| Case { kind, a, b, ..CASE };
    let cases = [
        Case { halves: true, ..of("f16", F16, F16) },
        of("f16", BF16, BF16),
        of("tf32", TF32, TF32),
        of("f8f6f4", E4M3, E5M2),
        Case { halves: true, ..of("f8f6f4", E5M2, E5M2) },
        of("i8", Element::Byte, Element::Byte),
    ];
    for (case, rows) in cases.into_iter().flat_map(|case| [(case, 128), (case, 256)]) {
        for layout_a in [None, Some(K_MAJOR)] {
            Case { rows, layout_a, ..case }.check();
        }
    }
}

#[test]
fn signs_scales_and_masks_of_lanes_of_either_cta() {
    for (negated, adds) in [(true, None), (false, Some(1)), (true, Some(2))] {
        Case { negated, adds, ..CASE }.check();
        Case { rows: 128, negated, adds, ..CASE }.check();
    }
    let disabled = Some([0x0000_00ff, 0, 0xffff_ffff, 0x8000_0001, 0x1234_5678, 0x0f0f_0f0f, 0, 2]);
    for rows in [128, 256] {
        Case { rows, disabled, ..CASE }.check();
    }
}

#[test]
fn what_a_pair_lacks_is_told() {
    let ran = |change: &dyn Fn(String) -> String| {
        let case = CASE;
        let input = [case.input(0), case.input(1)].concat();
        let output = 2 * LANES * 4 * case.cells();
        let setup = Setup { input: &input, output, shape: (2, 128), ..Setup::default() };
        run_text(&change(case.text()), &setup).result.expect_err("a fault").to_string()
    };
    for (from, to, told) in [
        // One CTA's warp alone allocates.
        // They ask for different numbers.
        (
            "@warp0 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 512",
            "shl.b32 w, rank, 5; add.u32 w, w, 32; @warp0 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], w",
            "where the peer CTA asks for",
        ),
        ("[place], 512", "[place], rank", "a power of two from 32 to 512"),
        ("mov.b32 x, 3;", "mov.b32 x, 5;", "a mask of CTAs with bit 2, and the cluster has 2"),
        ("tcgen05.dealloc.cta_group::2.sync.aligned.b32 taddr, 512", "tcgen05.wait::ld.sync.aligned", "512 columns"),
    ] {
        let found = ran(&|text: String| text.replacen(from, to, 1));
        assert!(found.contains(told), "{from}: {found}");
    }
    // One CTA ends at once: the other waits for columns.
    let found = ran(&|text: String| {
        let text =
            text.replacen("@warp0 tcgen05.alloc", "setp.eq.u32 q, rank, 1; @q bra END;\n@warp0 tcgen05.alloc", 1);
        text.replace("ret; }", "END: ret; }")
    });
    assert!(found.contains("for tcgen05.alloc.cta_group::2 of the peer CTA"), "{found}");
    let refused = |from: &str, to: &str| {
        let text = CASE.text();
        assert!(text.contains(from), "{from}");
        durawarp::kernel::ptx::parse("k.ptx", &text.replacen(from, to, 1)).expect_err("a fault").to_string()
    };
    for (from, to, told) in [
        ("mma.cta_group::2", "mma.cta_group::1", "the same `.cta_group`"),
        ("mma.cta_group::2", "mma", "needs `.cta_group::1` or `.cta_group::2`"),
        ("mma.cta_group::2", "mma.ws.cta_group::2", "products with a stationary b"),
    ] {
        let found = refused(from, to);
        assert!(found.contains(told), "{to}: {found}");
    }
    let masked = Case { disabled: Some([0; 8]), ..CASE }.text().replace("{0, 0, 0, 0, ", "{");
    let found = durawarp::kernel::ptx::parse("k.ptx", &masked).expect_err("a fault").to_string();
    assert!(found.contains("have 8 masks, found 4"), "{found}");
}
