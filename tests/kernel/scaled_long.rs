//! Products with scaled blocks whose k is 96 (`sm_103a`), of one CTA and of a pair, beside plain sums: eight of them along
//! 768 elements in three tiles, whose rows of 48 bytes go on in the next tile, with scale factors that begin at every byte
//! which the PTX ISA has for them (9.7.16.10.7.2.4 and .5). Where all of that lies is as CUTLASS's kernels of `sm_103a`
//! have it; nothing is taken from the simulator but its rule of rounding: sums are taken in the order of k.

use crate::ptx_common::{Ran, Setup, run_text};

const LANES: usize = 128;
/// Elements along k, and products.
const K: usize = 768;
const PRODUCTS: usize = 8;
/// Columns of tensor memory: scale factors of a, those of b, and their end.
const SCALES_A: usize = 256;
const SCALES_B: usize = 304;
const END: usize = 400;

#[derive(Clone, Copy, Debug)]
struct Case {
    /// Elements that share a scale factor: 16, whose factors are `ue4m3`, or 32 with `ue8m0`.
    block: usize,
    columns: usize,
    ctas: usize,
}

fn mixed(seed: usize, line: usize, k: usize) -> usize {
    (line * 7919 + k * 104_729 + seed * 6151 + line * k * 31) % 1_000_003
}

/// The value of an `e2m1`.
fn element(of: usize, line: usize, k: usize) -> f64 {
    let code = mixed(of, line, k) % 16;
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code % 8] * if code > 7 { -1.0 } else { 1.0 }
}

impl Case {
    /// Lines of a, of b, that a CTA has.
    fn lines(&self, of: usize) -> usize {
        [LANES, self.columns / self.ctas][of]
    }

    fn scale_code(&self, of: usize, line: usize, block: usize) -> u8 {
        let mixed = mixed(of + 2, line, block);
        if self.block == 16 { (0x28 + mixed % 0x20) as u8 } else { (122 + mixed % 10) as u8 }
    }

    fn scale(&self, of: usize, line: usize, k: usize) -> f64 {
        let code = i32::from(self.scale_code(of, line, k / self.block));
        match self.block {
            16 => (1.0 + f64::from(code % 8) / 8.0) * 2.0_f64.powi(code / 8 - 7),
            _ => 2.0_f64.powi(code - 127),
        }
    }

    /// Columns from a word of the factors of b to the next.
    fn stride(&self) -> usize {
        if self.columns > 128 { 8 } else { 4 }
    }

    /// The word of a lane and column with scale factors.
    fn scale_word(&self, rank: usize, lane: usize, column: usize) -> u32 {
        let (of, within, each) =
            if column < SCALES_B { (0, column - SCALES_A, 4) } else { (1, column - SCALES_B, self.stride()) };
        let line = lane % 32 + 32 * (within % each);
        let (first, lines) = [(rank * LANES, LANES), (0, self.columns)][of];
        let bytes = std::array::from_fn(|n| {
            let block = 4 * (within / each) + n;
            if line < lines && block < K / self.block { self.scale_code(of, first + line, block) } else { 0 }
        });
        u32::from_le_bytes(bytes)
    }

    /// Bytes of a tile of a, of b, and of all.
    fn tiles(&self) -> [usize; 3] {
        let [a, b] = [0, 1].map(|of| 128 * self.lines(of).next_multiple_of(8));
        [a, b, 3 * (a + b)]
    }

    fn input_bytes(&self) -> usize {
        self.tiles()[2] + LANES * 4 * (END - SCALES_A)
    }

    /// A descriptor of a product's rows of a matrix whose tiles begin at a byte.
    fn descriptor(&self, first: usize, tile: usize, product: usize) -> u64 {
        let (at, within) = (48 * product / 128, 48 * product % 128);
        let next = at + usize::from(within + 48 > 128);
        let [start, next] = [first + tile * at + within, first + tile * next].map(|byte| byte as u64 / 16);
        start | next << 16 | 64 << 32 | 1 << 46 | 1 << 52 | 2 << 61
    }

    fn text(&self) -> String {
        let [a, b, shared] = self.tiles();
        let (mut memory, mut body, mut sums) = (String::new(), String::new(), String::new());
        for column in SCALES_A..END {
            let at = shared + 4 * (column - SCALES_A);
            memory +=
                &format!("ld.global.b32 w, [ta+{at}];\ntcgen05.st.sync.aligned.32x32b.x1.b32 [own+{column}], {{w}};\n");
        }
        for product in 0..PRODUCTS {
            let factor = product * 96 / self.block;
            let (word, byte) = (factor / 4, (factor % 4) as u32);
            let idesc = byte << 4
                | 1 << 7
                | 1 << 10
                | (self.columns as u32 / 8) << 17
                | u32::from(self.block == 32) << 23
                | (8 * self.ctas as u32) << 24
                | byte << 29
                | 1 << 31;
            body += &format!(
                "mad.lo.u64 da, base, 65537, {};\nmad.lo.u64 db, base, 65537, {};\nmov.b32 idesc, {idesc};\n\
                 @issues tcgen05.mma.cta_group::{}.kind::mxf4nvf4.block_scale.block{} [taddr], da, db, idesc, [taddr+{}], \
                 [taddr+{}], {};\n",
                self.descriptor(0, a, product),
                self.descriptor(3 * a, b, product),
                self.ctas,
                self.block,
                SCALES_A + 4 * word,
                SCALES_B + self.stride() * word,
                if product == 0 { "!p" } else { "p" }
            );
        }
        for column in 0..self.columns {
            sums += &format!(
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{w}}, [own+{column}];\ntcgen05.wait::ld.sync.aligned;\n\
                 st.global.b32 [out+{}], w;\n",
                4 * column
            );
        }
        let (directive, sync, arrival) = match self.ctas {
            1 => ("", "bar.sync 0;", "b64 [w]"),
            _ => (
                ".reqnctapercluster 2",
                "barrier.cluster.arrive; barrier.cluster.wait;",
                "multicast::cluster.b64 [w], x",
            ),
        };
        format!(
            ".version 8.8 .target sm_103a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output)\n\
             {directive} {{ .reg .b64 in, out, ta, at, da, db, base; .reg .b32 t, n, w, x, taddr, own, idesc, rank;\n\
             .reg .pred p, q, first, issues, warp0; .shared .align 1024 .b8 tile[{shared}];\n\
             .shared .align 8 .b64 done; .shared .align 4 .b32 place;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; mov.u32 rank, %cluster_ctarank;\n\
             mul.wide.u32 at, rank, {input}; add.u64 in, in, at; mul.wide.u32 at, rank, {output}; add.u64 out, out, at;\n\
             mul.wide.u32 ta, t, {row}; add.u64 ta, in, ta; mul.wide.u32 at, t, {line}; add.u64 out, out, at;\n\
             mul.wide.u32 at, t, 4; add.u64 at, in, at; shl.b32 n, t, 2;\n\
             FILL: ld.global.b32 w, [at]; mov.u32 x, tile; add.u32 x, x, n; st.shared.b32 [x], w;\n\
             add.u64 at, at, 512; add.u32 n, n, 512; setp.lt.u32 q, n, {shared}; @q bra FILL;\n\
             setp.lt.u32 warp0, t, 32; setp.eq.u32 first, t, 0; setp.ge.u32 p, t, 0;\n\
             setp.eq.u32 issues, rank, 0; and.pred issues, issues, first;\n\
             @warp0 tcgen05.alloc.cta_group::{ctas}.sync.aligned.shared::cta.b32 [place], 512;\n\
             @first mbarrier.init.shared.b64 [done], 1;\nfence.proxy.async; bar.sync 0;\n\
             mov.u32 w, tile; shr.u32 w, w, 4; and.b32 w, w, 16383; cvt.u64.u32 base, w; ld.shared.b32 taddr, [place];\n\
             shr.u32 own, t, 5; shl.b32 own, own, 21; add.u32 own, own, taddr;\n\
             {memory}tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync; {sync}\n\
             tcgen05.fence::after_thread_sync;\n{body}mov.u32 w, done; mov.b32 x, 3;\n\
             @issues tcgen05.commit.cta_group::{ctas}.mbarrier::arrive::one.shared::cluster.{arrival};\n\
             WAIT: mbarrier.try_wait.parity.shared.b64 q, [done], 0; @!q bra WAIT;\n\
             {sums}{sync} @warp0 tcgen05.dealloc.cta_group::{ctas}.sync.aligned.b32 taddr, 512; ret; }}",
            input = self.input_bytes(),
            output = LANES * 4 * self.columns,
            row = 4 * (END - SCALES_A),
            line = 4 * self.columns,
            ctas = self.ctas,
        )
    }

    fn input(&self, rank: usize) -> Vec<u8> {
        let [a, b, shared] = self.tiles();
        let mut image = vec![0; shared];
        for (of, start, tile) in [(0, 0, a), (1, 3 * a, b)] {
            for (line, k) in (0..self.lines(of)).flat_map(|line| (0..K).map(move |k| (line, k))) {
                let (byte, row) = (k / 2, line % 8);
                let chunk = (byte % 128 / 16) ^ row;
                let at = start + byte / 128 * tile + 1024 * (line / 8) + 128 * row + 16 * chunk + byte % 16;
                let code = mixed(of, rank * self.lines(of) + line, k) % 16;
                image[at] |= (code << (4 * (k % 2))) as u8;
            }
        }
        for (lane, column) in (0..LANES).flat_map(|lane| (SCALES_A..END).map(move |column| (lane, column))) {
            image.extend(self.scale_word(rank, lane, column).to_le_bytes());
        }
        image
    }

    fn run(&self, change: impl Fn(String) -> String) -> Ran {
        let input: Vec<u8> = (0..self.ctas).flat_map(|rank| self.input(rank)).collect();
        let output = self.ctas * LANES * 4 * self.columns;
        let setup = Setup { input: &input, output, shape: (self.ctas as u32, 128), ..Setup::default() };
        run_text(&change(self.text()), &setup)
    }

    fn check(&self) {
        let ran = self.run(|text| text);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        let words = ran.u32s();
        let matrix = |of: usize, lines: usize| -> Vec<Vec<f64>> {
            let line = |line| (0..K).map(|k| element(of, line, k) * self.scale(of, line, k)).collect();
            (0..lines).map(line).collect()
        };
        let (a, b) = (matrix(0, self.ctas * LANES), matrix(1, self.columns));
        for (row, column) in (0..a.len()).flat_map(|row| (0..self.columns).map(move |column| (row, column))) {
            let sum = a[row].iter().zip(&b[column]).fold(0.0, |sum: f32, (a, b)| (f64::from(sum) + a * b) as f32);
            let found = f32::from_bits(words[row * self.columns + column]);
            assert_eq!(found.to_bits(), sum.to_bits(), "{self:?}: {row}, {column}: {found}, {sum}");
        }
    }
}

#[test]
fn rows_of_48_bytes_and_their_factors_go_on_in_the_next_tile_and_word() {
    for (block, columns, ctas) in [(16, 16, 1), (32, 24, 1), (16, 136, 1), (32, 256, 1), (16, 32, 2), (32, 144, 2)] {
        Case { block, columns, ctas }.check();
    }
}

#[test]
fn what_a_k_of_96_does_not_have_is_told() {
    let case = Case { block: 16, columns: 16, ctas: 1 };
    let relative = |text: String| text.replace("mad.lo.u64 db, base, 65537, ", "mov.b64 db, 0; //");
    let in_tensor_memory = |text: String| text.replace("[taddr], da,", "[taddr], [taddr],");
    let beyond = |text: String| text.replace("[taddr+344]", "[taddr+508]");
    let differs = |text: String| {
        let other = "setp.eq.u32 q, t, 70; selp.b32 w, 7, w, q; tcgen05.st.sync.aligned.32x32b.x1.b32 [own+260], {w};";
        let all = "tcgen05.st.sync.aligned.32x32b.x1.b32 [own+260], {w};";
        text.replace(all, other)
    };
    let changes: [(&dyn Fn(String) -> String, &str); 4] = [
        (&relative, "needs a swizzle of 128 bytes"),
        (&in_tensor_memory, "a k of 96 and a in tensor memory"),
        (&beyond, "of tensor memory, where it begins at lane 0"),
        (&differs, "scale factors of row 6 that differ between lanes 6 and 70"),
    ];
    for (change, told) in changes {
        let found = case.run(change).result.expect_err("a fault").to_string();
        assert!(found.contains(told), "{found}");
    }
}
