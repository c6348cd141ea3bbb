//! Products with scaled blocks (`tcgen05.mma ... .block_scale`), of elements of 6 and 4 bits, and copies to tensor memory
//! (`tcgen05.cp`), of one CTA and of pairs, beside plain sums: elements and scale factors are decoded by the OCP Microscaling Formats (MX)
//! Specification 1.0, and lie where the figures of the PTX ISA have them (9.7.16.10.4, 9.7.16.10.7, 9.7.16.2.3).
//!
//! Nothing here is taken from the simulator but its rule of rounding, which is its choice: sums are taken in the order of k.

use crate::ptx_common::{Ran, Setup, run_text};
use crate::wgmma::Layout;

/// Lanes of tensor memory.
const LANES: usize = 128;
/// Products along k: a line has 128 bytes.
const SLICES: usize = 4;
/// Columns of tensor memory: a, its scale factors (four columns a block), those of b (eight).
const A_AT: usize = 256;
const SCALES_A: usize = 288;
const SCALES_B: usize = 304;
const END: usize = 336;

/// A float format: bits of exponent and fraction, and the exponent's bias.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Format {
    exponent: u32,
    fraction: u32,
    bias: i32,
    /// In a descriptor of `.kind::f8f6f4` and `.kind::mxf8f6f4`.
    code: u32,
}

const E4M3: Format = Format { exponent: 4, fraction: 3, bias: 7, code: 0 };
const E5M2: Format = Format { exponent: 5, fraction: 2, bias: 15, code: 1 };
const E2M3: Format = Format { exponent: 2, fraction: 3, bias: 1, code: 3 };
const E3M2: Format = Format { exponent: 3, fraction: 2, bias: 3, code: 4 };
const E2M1: Format = Format { exponent: 2, fraction: 1, bias: 1, code: 5 };

impl Format {
    fn bits(self) -> usize {
        1 + (self.exponent + self.fraction) as usize
    }

    /// The value of a finite code.
    fn value(self, code: u32) -> f64 {
        let exponent = (code >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        let fraction = f64::from(code & ((1 << self.fraction) - 1)) / f64::from(1 << self.fraction);
        let sign = if code >> (self.exponent + self.fraction) & 1 == 1 { -1.0 } else { 1.0 };
        let size = match exponent {
            0 => fraction * 2.0_f64.powi(1 - self.bias),
            _ => (1.0 + fraction) * 2.0_f64.powi(exponent - self.bias),
        };
        sign * size
    }

    /// A code that is neither NaN nor an infinity.
    fn element(self, mixed: usize) -> u32 {
        let code = (mixed % (1 << self.bits())) as u32;
        match self {
            E4M3 if code & 0x7f == 0x7f => 0x38,
            E5M2 if code & 0x7c == 0x7c => 0x3c,
            _ => code,
        }
    }
}

/// A test of four products along k.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    a: Format,
    b: Format,
    /// Elements that share a scale factor; 0 where there are none.
    block: usize,
    /// Scale factors are `ue4m3`.
    floats: bool,
    rows: usize,
    columns: usize,
    a_in_tensor_memory: bool,
    width: usize,
    /// a, b lie across.
    across: [bool; 2],
    negated: [bool; 2],
    adds: bool,
    /// Scale factors come by `tcgen05.cp`.
    copied: bool,
    /// The least exponent of scale factors, and how many there are.
    exponents: (usize, usize),
    /// A pair of CTAs has the product, and this rank issues it.
    issuer: Option<usize>,
}

const CASE: Case = Case {
    kind: "mxf8f6f4.block_scale.block32",
    a: E4M3,
    b: E4M3,
    block: 32,
    floats: false,
    rows: 128,
    columns: 16,
    a_in_tensor_memory: false,
    width: 8,
    across: [false; 2],
    negated: [false; 2],
    adds: true,
    copied: false,
    exponents: (120, 15),
    issuer: None,
};

const MX4: Case = Case { kind: "mxf4.block_scale.block32", a: E2M1, b: E2M1, ..CASE };
const NV4: Case = Case { kind: "mxf4nvf4.block_scale.block16", block: 16, floats: true, ..MX4 };
const TINY: Case = Case { kind: "f8f6f4", block: 0, ..CASE };
/// A product of a pair: each CTA has half of the rows of a and half of the columns of b.
const PAIR: Case = Case { rows: 256, issuer: Some(0), ..CASE };

fn mixed(seed: usize, line: usize, k: usize) -> usize {
    (line * 7919 + k * 104_729 + seed * 6151 + line * k * 31) % 1_000_003
}

impl Case {
    /// Elements are two a byte.
    fn packed(&self) -> bool {
        self.kind.starts_with("mxf4")
    }

    /// Elements of a line of one product.
    fn depth(&self) -> usize {
        if self.packed() { 64 } else { 32 }
    }

    /// Scale factors of a line of one product.
    fn factors(&self) -> usize {
        self.depth().checked_div(self.block).unwrap_or(0)
    }

    fn layout(&self, of: usize) -> Layout {
        Layout { width: self.width, across: self.across[of] }
    }

    fn ctas(&self) -> usize {
        if self.issuer.is_some() { 2 } else { 1 }
    }

    /// Rows of a, or columns of b, in the shared memory of a CTA.
    fn lines(&self, of: usize) -> usize {
        [self.rows, self.columns][of] / self.ctas()
    }

    /// The lane of a row of a CTA.
    fn lane(&self, row: usize) -> usize {
        if self.rows == 64 { 32 * (row / 16) + row % 16 } else { row }
    }

    fn code(&self, of: usize, line: usize, k: usize) -> u32 {
        [self.a, self.b][of].element(mixed(of, line, k))
    }

    /// The byte of a scale factor, of a block along all of k.
    fn scale_code(&self, of: usize, line: usize, block: usize) -> u8 {
        let mixed = mixed(of + 2, line, block);
        if self.floats { (0x20 + mixed % 0x38) as u8 } else { (self.exponents.0 + mixed % self.exponents.1) as u8 }
    }

    fn scale(&self, of: usize, line: usize, k: usize) -> f64 {
        if self.block == 0 {
            return 1.0;
        }
        let code = self.scale_code(of, line, k / self.block);
        if self.floats { E4M3.value(code.into()) } else { 2.0_f64.powi(i32::from(code) - 127) }
    }

    fn value(&self, of: usize, line: usize, k: usize) -> f64 {
        [self.a, self.b][of].value(self.code(of, line, k)) * self.scale(of, line, k)
    }

    /// The 128 bytes of a line: packed, padded to 16 bytes, or, `in_lanes`, each element in a byte of its own.
    fn line(&self, of: usize, line: usize, in_lanes: bool) -> [u8; 128] {
        let (mut bytes, bits) = ([0; 128], [self.a, self.b][of].bits());
        for k in 0..SLICES * self.depth() {
            let code = self.code(of, line, k);
            match (self.packed(), in_lanes) {
                (true, _) => bytes[k / 2] |= (code << (4 * (k % 2))) as u8,
                (_, true) => bytes[k] = (if bits == 4 { code << 2 } else { code }) as u8,
                (_, false) => {
                    for bit in 0..bits {
                        let at = 8 * (k / 16 * 16) + k % 16 * bits + bit;
                        bytes[at / 8] |= ((code >> bit & 1) << (at % 8)) as u8;
                    }
                }
            }
        }
        // Nobody looks at padding.
        if !self.packed() && !in_lanes && bits < 8 {
            bytes
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| at % 16 >= 2 * bits)
                .for_each(|(at, byte)| *byte = at as u8 | 1);
        }
        bytes
    }

    /// The descriptor of the instruction for a slice of k.
    fn instruction(&self, slice: usize) -> u32 {
        let code = |of: Format| if self.packed() { 1 } else { of.code };
        let first = if self.factors() == 0 { 0 } else { (slice * self.factors() % 4) as u32 };
        let flag = |is: bool, at: u32| u32::from(is) << at;
        let sums = if self.block == 0 { 1 << 4 } else { first << 4 | flag(!self.floats, 23) | first << 29 };
        sums | code(self.a) << 7
            | code(self.b) << 10
            | flag(self.negated[0], 13)
            | flag(self.negated[1], 14)
            | flag(self.across[0], 15)
            | flag(self.across[1], 16)
            | (self.columns as u32 / 8) << 17
            | (self.rows as u32 / 16) << 24
    }

    /// The word of a lane and column of a CTA's tensor memory with scale factors: of its rows of a, then of all
    /// columns of b.
    fn scale_word(&self, rank: usize, lane: usize, column: usize) -> u32 {
        let (of, within, each) = if column < SCALES_B { (0, column - SCALES_A, 4) } else { (1, column - SCALES_B, 8) };
        let line = lane % 32 + 32 * (within % each);
        let (first, lines) = [(rank * self.lines(0), self.lines(0)), (0, self.columns)][of];
        let bytes = std::array::from_fn(|n| {
            let block = 4 * (within / each) + n;
            let has = line < lines && block < SLICES * self.factors();
            if has { self.scale_code(of, first + line, block) } else { 0 }
        });
        u32::from_le_bytes(bytes)
    }

    /// Bytes of the tile of a, of both tiles, and of these and the images of scale factors.
    fn tiles(&self) -> [usize; 3] {
        let both = (self.lines(0) + self.lines(1).next_multiple_of(8)) * 128;
        [self.lines(0) * 128, both, both.next_multiple_of(1024) + 512 * (END - SCALES_A) / 4]
    }

    fn text(&self) -> String {
        let [_, both, shared] = self.tiles();
        let images = both.next_multiple_of(1024);
        let lanes = shared + 32 * SLICES;
        let row = 128 + 4 * (END - SCALES_A);
        let mut memory = String::new();
        let mut put = |column: usize, at: usize| {
            memory +=
                &format!("ld.global.b32 w, [ta+{at}];\ntcgen05.st.sync.aligned.32x32b.x1.b32 [own+{column}], {{w}};\n");
        };
        (0..32).for_each(|word| put(A_AT + word, lanes + 4 * word));
        if !self.copied {
            (SCALES_A..END).for_each(|column| put(column, lanes + 128 + 4 * (column - SCALES_A)));
        }
        memory += "mov.b32 w, 0f3FC00000;\n";
        for column in 0..self.columns {
            memory += &format!("tcgen05.st.sync.aligned.32x32b.x1.b32 [own+{column}], {{w}};\n");
        }
        let (mut body, mut sums) = (String::new(), String::new());
        if self.copied {
            // Rows of 16 bytes, eight of them in 128: the core matrices of a descriptor without a swizzle.
            for (n, column) in (SCALES_A..END).step_by(4).enumerate() {
                body += &format!(
                    "add.u64 da, base, {}; or.b64 da, da, 0x400800000000;\n\
                     @issues tcgen05.cp.cta_group::1.32x128b.warpx4 [taddr+{column}], da;\n",
                    (images + 512 * n) / 16
                );
            }
        }
        for slice in 0..SLICES {
            body += &format!(
                "ld.global.v2.u64 {{da, db}}, [in+{}];\nadd.u64 da, da, base;\nadd.u64 db, db, base;\n\
                 ld.global.u32 idesc, [in+{}];\n",
                shared + 32 * slice,
                shared + 32 * slice + 16
            );
            let a = if self.a_in_tensor_memory { format!("[taddr+{}]", A_AT + 8 * slice) } else { "da".to_owned() };
            let block = slice * self.factors() / 4;
            let scales = match self.block {
                0 => String::new(),
                _ => format!("[taddr+{}], [taddr+{}], ", SCALES_A + 4 * block, SCALES_B + 8 * block),
            };
            let adds = if slice == 0 && !self.adds { "!p" } else { "p" };
            body += &format!(
                "@issues tcgen05.mma.cta_group::1.kind::{} [taddr], {a}, db, idesc, {scales}{adds};\n",
                self.kind
            );
        }
        for column in 0..self.columns {
            sums += &format!(
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{w}}, [own+{column}];\ntcgen05.wait::ld.sync.aligned;\n\
                 st.global.b32 [out+{}], w;\n",
                4 * column
            );
        }
        let (sync, directive, arrival) = match self.issuer {
            None => ("bar.sync 0;", "", "b64 [w]"),
            Some(_) => (
                "barrier.cluster.arrive; barrier.cluster.wait;",
                ".reqnctapercluster 2",
                "multicast::cluster.b64 [w], x",
            ),
        };
        let text = format!(
            ".version 8.8 .target sm_100a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output)\n\
             {directive} {{ .reg .b64 in, out, ta, at, da, db, base; .reg .b32 t, n, w, x, taddr, own, idesc, rank;\n\
             .reg .pred p, q, first, issues, warp0; .shared .align 1024 .b8 tile[{shared}];\n\
             .shared .align 8 .b64 done; .shared .align 4 .b32 place;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mov.u32 rank, %cluster_ctarank;\n\
             mul.wide.u32 at, rank, {input}; add.u64 in, in, at; mul.wide.u32 at, rank, {output}; add.u64 out, out, at;\n\
             mul.wide.u32 ta, t, {row}; add.u64 ta, in, ta; mul.wide.u32 at, t, {out}; add.u64 out, out, at;\n\
             mul.wide.u32 at, t, 4; add.u64 at, in, at; shl.b32 n, t, 2;\n\
             FILL: ld.global.b32 w, [at]; mov.u32 x, tile; add.u32 x, x, n; st.shared.b32 [x], w;\n\
             add.u64 at, at, 512; add.u32 n, n, 512; setp.lt.u32 q, n, {shared}; @q bra FILL;\n\
             setp.lt.u32 warp0, t, 32; setp.eq.u32 first, t, 0; setp.ge.u32 p, t, 0;\n\
             setp.eq.u32 issues, rank, {issuer}; and.pred issues, issues, first;\n\
             @warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;\n\
             @first mbarrier.init.shared.b64 [done], 1;\n\
             fence.proxy.async; bar.sync 0;\n\
             mov.u32 w, tile; shr.u32 w, w, 4; and.b32 w, w, 16383; cvt.u64.u32 base, w; ld.shared.b32 taddr, [place];\n\
             shr.u32 own, t, 5; shl.b32 own, own, 21; add.u32 own, own, taddr;\n\
             {memory}tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync; {sync}\n\
             tcgen05.fence::after_thread_sync;\n{body}\
             mov.u32 w, done; mov.b32 x, 3;\n\
             @issues tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.{arrival};\n\
             WAIT: mbarrier.try_wait.parity.shared.b64 q, [done], 0; @!q bra WAIT;\n\
             {sums}{sync} @warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 512; ret; }}",
            out = 4 * self.columns,
            input = self.input_bytes(),
            output = LANES * 4 * self.columns,
            issuer = self.issuer.unwrap_or(0),
        );
        text.replace("cta_group::1", &format!("cta_group::{}", self.ctas()))
    }

    /// Bytes of input of a CTA.
    fn input_bytes(&self) -> usize {
        self.tiles()[2] + 32 * SLICES + LANES * (128 + 4 * (END - SCALES_A))
    }

    /// What the CTAs read, one behind the other.
    fn input(&self) -> Vec<u8> {
        (0..self.ctas()).flat_map(|rank| self.input_of(rank)).collect()
    }

    fn input_of(&self, rank: usize) -> Vec<u8> {
        let [a_bytes, both, shared] = self.tiles();
        let mut image = vec![0; shared];
        let matrices = [(0, 0, self.lines(0)), (1, a_bytes, self.lines(1))];
        for (of, start, lines) in matrices {
            for line in 0..lines {
                for (k, byte) in self.line(of, lines * rank + line, false).into_iter().enumerate() {
                    image[start + self.layout(of).place(lines, line, k, 8).0] = byte;
                }
            }
        }
        let images = both.next_multiple_of(1024);
        for (row, column) in (0..32).flat_map(|row| (SCALES_A..END).map(move |column| (row, column))) {
            let (copy, within) = ((column - SCALES_A) / 4, (column - SCALES_A) % 4);
            let at = images + 512 * copy + 128 * (row / 8) + 16 * (row % 8) + 4 * within;
            image[at..at + 4].copy_from_slice(&self.scale_word(rank, row, column).to_le_bytes());
        }
        let mode = [(1, 0u64), (8, 2), (4, 4), (2, 6)].iter().find(|(width, _)| *width == self.width).unwrap().1;
        for slice in 0..SLICES {
            for (of, start, lines) in matrices {
                let offsets = self.layout(of).offsets_of(start, lines, slice, 8);
                image.extend((offsets | 1 << 46 | mode << 61).to_le_bytes());
            }
            image.extend(self.instruction(slice).to_le_bytes());
            image.extend([0; 12]);
        }
        let row_of = |lane: usize| (0..self.lines(0)).find(|&row| self.lane(row) == lane);
        for lane in 0..LANES {
            image.extend(row_of(lane).map_or([0; 128], |row| self.line(0, self.lines(0) * rank + row, true)));
            (SCALES_A..END).for_each(|column| image.extend(self.scale_word(rank, lane, column).to_le_bytes()));
        }
        image
    }

    /// The sum in the order of k, rounded after each product. A double holds these sums exactly.
    fn sum(&self, row: usize, column: usize) -> f32 {
        let sign = if self.negated[0] ^ self.negated[1] { -1.0 } else { 1.0 };
        (0..SLICES * self.depth()).fold(if self.adds { 1.5 } else { 0.0 }, |sum: f32, k| {
            (f64::from(sum) + sign * self.value(0, row, k) * self.value(1, column, k)) as f32
        })
    }

    fn run(&self) -> Ran {
        let input = self.input();
        let ctas = self.ctas() as u32;
        let output = self.ctas() * LANES * 4 * self.columns;
        run_text(&self.text(), &Setup { input: &input, output, shape: (ctas, 128), ..Setup::default() })
    }

    fn check(&self) {
        let ran = self.run();
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        let words = ran.u32s();
        let mut distinct = Vec::new();
        for (row, column) in (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column))) {
            let (rank, row_of_cta) = (row / self.lines(0), row % self.lines(0));
            let found = f32::from_bits(words[(LANES * rank + self.lane(row_of_cta)) * self.columns + column]);
            let expected = self.sum(row, column);
            assert_eq!(found.to_bits(), expected.to_bits(), "{self:?}: {row}, {column}: {found}, {expected}");
            distinct.push(found.to_bits());
        }
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > self.rows / 2, "{self:?}: values differ");
    }
}

#[test]
fn each_kind_with_its_scale_factors_from_shared_and_tensor_memory() {
    for case in
        [CASE, MX4, NV4, Case { kind: "mxf4nvf4.block_scale.scale_vec::2X", ..MX4 }, Case { floats: false, ..NV4 }]
    {
        for a_in_tensor_memory in [false, true] {
            for copied in [false, true] {
                Case { a_in_tensor_memory, copied, ..case }.check();
            }
        }
    }
}

#[test]
fn each_kind_of_a_pair_with_its_scale_factors_from_shared_and_tensor_memory() {
    let of = |case: Case| Case { rows: PAIR.rows, issuer: PAIR.issuer, ..case };
    for case in [PAIR, of(MX4), of(NV4), of(Case { floats: false, ..NV4 })] {
        for (a_in_tensor_memory, copied, issuer) in
            [(false, false, 1), (true, false, 0), (false, true, 0), (true, true, 1)]
        {
            Case { a_in_tensor_memory, copied, issuer: Some(issuer), ..case }.check();
        }
    }
    for columns in [48, 144, 256] {
        Case { columns, copied: true, ..of(NV4) }.check();
    }
    Case { across: [true, true], columns: 256, copied: true, a: E5M2, ..PAIR }.check();
    Case { negated: [true, false], adds: false, a: E2M3, b: E3M2, ..PAIR }.check();
}

#[test]
fn spellings_of_a_kind_are_the_same() {
    for kind in ["mxf8f6f4.block_scale", "mxf8f6f4.block_scale.scale_vec::1X"] {
        Case { kind, ..CASE }.check();
    }
    for kind in ["mxf4.block_scale", "mxf4.block_scale.scale_vec::2X", "mxf4nvf4.block_scale.block32"] {
        Case { kind, ..MX4 }.check();
    }
    for kind in ["mxf4nvf4.block_scale.scale_vec::4X", "mxf4nvf4.block_scale.scale_vec::4X.collector::a::lastuse"] {
        Case { kind, ..NV4 }.check();
    }
}

#[test]
fn numbers_of_columns_from_8_to_256_and_every_swizzle() {
    for columns in [8, 40, 128, 256] {
        Case { columns, copied: true, ..CASE }.check();
        Case { columns, copied: true, ..NV4 }.check();
    }
    for width in [1, 2, 4, 8] {
        for case in [CASE, MX4, NV4, Case { a: E2M3, b: E2M1, ..CASE }] {
            Case { width, ..case }.check();
        }
    }
}

#[test]
fn elements_of_8_6_and_4_bits_in_pairs_with_scale_factors_and_without() {
    for (a, b) in [(E5M2, E4M3), (E4M3, E2M3), (E2M3, E5M2), (E3M2, E3M2), (E3M2, E2M1), (E2M1, E4M3), (E2M1, E2M3)] {
        for a_in_tensor_memory in [false, true] {
            Case { a, b, a_in_tensor_memory, ..CASE }.check();
            Case { a, b, a_in_tensor_memory, ..TINY }.check();
            Case { a, b, a_in_tensor_memory, rows: 64, columns: 24, ..TINY }.check();
        }
    }
}

#[test]
fn bytes_across_signs_and_sums_that_start_from_nothing() {
    for across in [[true, false], [false, true], [true, true]] {
        Case { across, columns: 128, a: E5M2, ..CASE }.check();
    }
    for negated in [[true, false], [false, true], [true, true]] {
        for adds in [false, true] {
            Case { negated, adds, ..CASE }.check();
            Case { negated, adds, ..NV4 }.check();
            Case { negated, adds, a: E2M1, ..TINY }.check();
        }
    }
}

#[test]
fn scale_factors_far_from_1_lose_nothing() {
    // All products are of one size, far below or above that of a product of elements.
    for first in [62, 67, 180] {
        Case { exponents: (first, 3), adds: false, ..CASE }.check();
        Case { exponents: (first, 3), adds: false, ..MX4 }.check();
    }
}

/// A kernel whose first thread copies by this instruction from shared memory, whose word n has n, to tensor memory that has
/// ones; every cell of eight columns.
fn copied(shape: &str, descriptor: u64, fill: &str) -> Ran {
    let text = copies(shape, descriptor, fill);
    run_text(&text, &Setup { output: LANES * 32, shape: (1, 128), ..Setup::default() })
}

/// Its text.
fn copies(shape: &str, descriptor: u64, fill: &str) -> String {
    let loads: String = (0..8)
        .map(|n| {
            format!(
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{w}}, [own+{n}];\ntcgen05.wait::ld.sync.aligned;\n\
                 st.global.b32 [out+{}], w;\n",
                4 * n
            )
        })
        .collect();
    let ones: String = (0..8).map(|n| format!("tcgen05.st.sync.aligned.32x32b.x1.b32 [own+{n}], {{w}};\n")).collect();
    format!(
        ".version 8.8 .target sm_100a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 out, at, d; .reg .b32 t, n, w, x, taddr, own; .reg .pred q, first, warp0;\n\
         .shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 done; .shared .align 4 .b32 place;\n\
         ld.param.u64 out, [output]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 32; add.u64 out, out, at;\n\
         mov.u32 n, t;\n\
         FILL: {fill} shl.b32 x, n, 2; mov.u32 own, tile; add.u32 x, x, own; st.shared.b32 [x], w;\n\
         add.u32 n, n, 128; setp.lt.u32 q, n, 2048; @q bra FILL;\n\
         setp.lt.u32 warp0, t, 32; setp.eq.u32 first, t, 0;\n\
         @warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;\n\
         @first mbarrier.init.shared.b64 [done], 1;\n\
         fence.proxy.async; bar.sync 0;\n\
         ld.shared.b32 taddr, [place]; shr.u32 own, t, 5; shl.b32 own, own, 21; add.u32 own, own, taddr;\n\
         mov.b32 w, -1; {ones}tcgen05.wait::st.sync.aligned; bar.sync 0;\n\
         mov.u32 w, tile; shr.u32 w, w, 4; cvt.u64.u32 d, w; add.u64 d, d, {descriptor};\n\
         @first tcgen05.cp.cta_group::1.{shape} [taddr], d;\n\
         @first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n\
         WAIT: mbarrier.try_wait.parity.shared.b64 q, [done], 0; @!q bra WAIT;\n\
         {loads}bar.sync 0; @warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32; ret; }}"
    )
}

/// The same kernel, of a pair of CTAs whose words differ by 10000 and of which one copies.
fn copied_in_both(shape: &str, descriptor: u64, issuer: usize, change: impl Fn(String) -> String) -> Ran {
    let text = copies(shape, descriptor, "mad.lo.u32 w, rank, 10000, n;");
    let barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
    let text = text
        .replace("u64 output) {", "u64 output)\n.reqnctapercluster 2 {")
        .replace("taddr, own; .reg .pred q,", "taddr, own, rank; .reg .pred issues, q,")
        .replace(
            "mov.u32 t, %tid.x;",
            "mov.u32 t, %tid.x; mov.u32 rank, %cluster_ctarank; shl.b32 n, rank, 7; add.u32 n, n, t;",
        )
        .replace("mul.wide.u32 at, t, 32;", "mul.wide.u32 at, n, 32;")
        .replace(
            "setp.eq.u32 first, t, 0;",
            &format!("setp.eq.u32 first, t, 0; setp.eq.u32 issues, rank, {issuer}; and.pred issues, issues, first;"),
        )
        .replace("wait::st.sync.aligned; bar.sync 0;", &format!("wait::st.sync.aligned; {barrier}"))
        .replace("shr.u32 w, w, 4; cvt", "shr.u32 w, w, 4; and.b32 w, w, 16383; cvt")
        .replace("@first tcgen05.cp", "@issues tcgen05.cp")
        .replace(
            "@first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];",
            "mov.u32 w, done; mov.b32 x, 3;\n\
             @issues tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [w], x;",
        )
        .replace("bar.sync 0; @warp0", &format!("{barrier} @warp0"))
        .replace("cta_group::1", "cta_group::2");
    run_text(&change(text), &Setup { output: 2 * LANES * 32, shape: (2, 128), ..Setup::default() })
}

/// A descriptor of these bytes, from the tile's start on, and a swizzle.
fn descriptor([start, leading, stride]: [u64; 3], mode: u64) -> u64 {
    start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | mode << 61
}

#[test]
fn each_shape_of_a_copy_fills_the_lanes_that_the_isa_names() {
    const NOT: usize = u32::MAX as usize;
    /// The row of a lane.
    type Row = fn(usize) -> usize;
    let shapes: [(&str, usize, Row); 6] = [
        ("128x256b", 8, |lane| lane),
        ("4x256b", 8, |lane| if lane % 32 == 0 { lane / 32 } else { NOT }),
        ("128x128b", 4, |lane| lane),
        ("64x128b.warpx2::02_13", 4, |lane| lane % 64),
        ("64x128b.warpx2::01_23", 4, |lane| lane % 32 + 32 * (lane / 64)),
        ("32x128b.warpx4", 4, |lane| lane % 32),
    ];
    for (shape, columns, row) in shapes {
        // Without a swizzle: eight rows of 16 bytes, the next eight 256 bytes on, the second half of a row 128. With
        // one of 32 bytes: eight rows of 32, whose halves change places with bit 7 of the address.
        for mode in [0, 6] {
            let ran = copied(shape, descriptor([1024, 128, 256], mode), "mov.b32 w, n;");
            ran.result.as_ref().unwrap_or_else(|fault| panic!("{shape}: {fault}"));
            for (at, found) in ran.u32s().into_iter().enumerate() {
                let (lane, column) = (at / 8, at % 8);
                let row = row(lane);
                let byte = match mode {
                    0 => 1024 + 256 * (row / 8) + 16 * (row % 8) + 128 * (column / 4),
                    _ => 1024 + 256 * (row / 8) + 32 * (row % 8) + 16 * ((column / 4) ^ ((row % 8) / 4)),
                };
                let expected = if row == NOT || column >= columns { u32::MAX } else { (byte / 4 + column % 4) as u32 };
                assert_eq!(found, expected, "{shape}, mode {mode}: lane {lane}, column {column}");
            }
        }
    }
}

#[test]
fn a_copy_of_a_pair_is_one_of_each_cta_from_its_own_shared_memory() {
    for (shape, issuer) in [("32x128b.warpx4", 0), ("32x128b.warpx4", 1), ("128x128b", 0)] {
        let ran = copied_in_both(shape, descriptor([1024, 128, 256], 0), issuer, |text| text);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{shape}: {fault}"));
        for (at, found) in ran.u32s().into_iter().enumerate() {
            let (rank, lane, column) = (at / 8 / LANES, at / 8 % LANES, at % 8);
            let row = if shape == "128x128b" { lane } else { lane % 32 };
            let word = (1024 + 256 * (row / 8) + 16 * (row % 8)) / 4 + column;
            let expected = if column < 4 { (word + 10000 * rank) as u32 } else { u32::MAX };
            assert_eq!(found, expected, "{shape}, CTA {issuer} issues: rank {rank}, lane {lane}, column {column}");
        }
    }
    let told = |issuer: usize, change: &dyn Fn(String) -> String| {
        let ran = copied_in_both("32x128b.warpx4", descriptor([1024, 128, 256], 0), issuer, change);
        ran.result.expect_err("a fault").to_string()
    };
    let found = told(0, &|text| text.replacen("[taddr], d;", "[taddr+29], d;", 1));
    assert!(found.contains("to lanes 0 to 127 and columns 29 to 32"), "{found}");
    let found = told(0, &|text| text.replacen("add.u64 d, d, ", "add.u64 d, d, 512; add.u64 d, d, ", 1));
    assert!(found.contains("read by `tcgen05.cp.cta_group::2`"), "{found}");
    // The even CTA has ended.
    let found = told(1, &|text| {
        let text = text.replacen("@issues tcgen05.cp", "setp.eq.u32 q, rank, 0; @q bra END;\n@issues tcgen05.cp", 1);
        text.replace(
            "ret; }",
            "END: bar.sync 0; @warp0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 taddr, 32; ret; }",
        )
    });
    assert!(found.contains("has ended"), "{found}");
}

#[test]
fn a_copy_makes_containers_of_padded_elements() {
    for (word, bits, shift) in [("b8x16.b4x16_p64", 4, 2), ("b8x16.b6x16_p32", 6, 0)] {
        let ran =
            copied(&format!("32x128b.warpx4.{word}"), descriptor([0, 128, 128], 0), "mul.lo.u32 w, n, 2654435761;");
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{word}: {fault}"));
        for (at, found) in ran.u32s().into_iter().enumerate().filter(|(at, _)| at % 8 < 4) {
            let (row, column) = (at / 8 % 32, at % 8);
            let bit = |n: usize| (((32 * row / 8 + n / 32) as u32).wrapping_mul(2_654_435_761) >> (n % 32)) & 1;
            let container = |k: usize| (0..bits).fold(0, |code, n| code | bit(bits * k + n) << n) << shift;
            let expected = (0..4).fold(0, |word, n| word | container(4 * column + n) << (8 * n));
            assert_eq!(found, expected, "{word}: row {row}, column {column}");
        }
    }
}

#[test]
fn what_is_not_defined_or_not_supported_is_told() {
    let of = |case: Case, from: &str, to: &str| {
        let (input, text) = (case.input(), case.text());
        assert!(text.contains(from), "{from}");
        let setup = Setup { input: &input, output: LANES * 4 * case.columns, shape: (1, 128), ..Setup::default() };
        run_text(&text.replace(from, to), &setup).result.expect_err("a fault").to_string()
    };
    let load = "ld.global.u32 idesc";
    for (case, from, to, told) in [
        // Lane 40 has another factor of row 8.
        (
            CASE,
            "mov.b32 w, 0f3FC00000;",
            "setp.eq.u32 q, t, 40; selp.b32 w, 7, 8, q; tcgen05.st.sync.aligned.32x32b.x1.b32 [own+288], {w};\n\
             mov.b32 w, 0f3FC00000;",
            "scale factors of row 8 that differ between lanes 8 and 40",
        ),
        (Case { columns: 128, ..CASE }, "[taddr+304]", "[taddr+510]", "columns 510 to 513"),
        (CASE, "[taddr], da", "[taddr+1048576], da", "at lane 16"),
        (Case { copied: true, ..CASE }, "[taddr+288], da", "[taddr+1048864], da", "to lanes 16 to 143"),
        (
            Case { copied: true, ..CASE },
            "or.b64 da, da, 0x400800000000",
            "or.b64 da, da, 0x2000400800000000",
            "32-byte atoms",
        ),
        (
            Case { copied: true, ..CASE },
            "or.b64 da, da, 0x400800000000",
            "or.b64 da, da, 0x43ff00000000",
            "read by `tcgen05.cp`",
        ),
        (CASE, load, "mov.b32 idesc, 0; //", "0 rows and 0 columns"),
    ] {
        let found = of(case, from, to);
        assert!(found.contains(told), "{to}: {found}");
    }
    for (from, to, told) in [
        // Lane 40 of the odd CTA alone has another factor of row 8.
        (
            "mov.b32 w, 0f3FC00000;",
            "mad.lo.u32 w, rank, 128, t; setp.eq.u32 q, w, 168; selp.b32 w, 7, 8, q;\n\
             tcgen05.st.sync.aligned.32x32b.x1.b32 [own+288], {w};\nmov.b32 w, 0f3FC00000;",
            "scale factors of row 8 that differ between lanes 8 and 40",
        ),
        ("[taddr+304]", "[taddr+512]", "columns 512 to 512"),
        (load, "mov.b32 idesc, 0x8880000; //", "128 rows and 32 columns, where 256 and 16, 32 to 256 are supported"),
    ] {
        let case = PAIR;
        let (input, text) = (case.input(), case.text());
        assert!(text.contains(from), "{from}");
        let setup = Setup { input: &input, output: 2 * LANES * 4 * case.columns, shape: (2, 128), ..Setup::default() };
        let found = run_text(&text.replace(from, to), &setup).result.expect_err("a fault").to_string();
        assert!(found.contains(told), "{to}: {found}");
    }
    let refused = |line: &str| {
        let text = format!(
            ".version 8.8 .target sm_100a .address_size 64 .visible .entry k() {{\n.reg .b64 d; .reg .b32 w, t; .reg .pred p;\n\
             {line}\nret; }}"
        );
        durawarp::kernel::ptx::parse("k.ptx", &text).expect_err("a fault").to_string()
    };
    for (line, told) in [
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [t], d, d, w, [t], [t], p;",
            "`.scale_vec::4X` or `.block16`",
        ),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block16 [t], d, d, w, [t], [t], p;", "`.scale_vec::1X`"),
        ("tcgen05.mma.cta_group::1.kind::f16.block_scale [t], d, d, w, [t], [t], p;", "`.scale_vec::1X`"),
        ("tcgen05.mma.cta_group::1.kind::mxf4 [t], d, d, w, p;", "with `.block_scale` that of"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale [t], d, d, w, [t], p;", "operand"),
        ("tcgen05.cp.cta_group::1.64x128b [t], d;", "`.64x128b.warpx2::02_13`"),
        ("tcgen05.cp.cta_group::1.128x128b.b8x16 [t], d;", "makes `.b8x16` of"),
        ("tcgen05.cp.128x128b [t], d;", "needs `.cta_group::1`"),
    ] {
        let found = refused(line);
        assert!(found.contains(told), "{line}: {found}");
    }
}
