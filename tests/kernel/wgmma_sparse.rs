//! `wgmma` with a sparse a beside a plain product of the matrix that it stands for. Metadata are dealt out to threads as CuTe
//! does it (`ELayout_64x64`, `ELayout_64x32`, `ELayout_64x16` of `mma_traits_sm90_gmma_sparse.hpp`); the threads that the
//! selector does not name have metadata that name nothing.
//!
//! Nothing here is taken from the simulator. Elements are small integers, whose sums every format holds exactly.

use crate::ptx_common::{Ran, Setup, run_text};
use crate::wgmma::{BF16, E4M3, E5M2, Element, F16, Layout, TF32, encode, value};

/// Products along k: b has lines of 128 bytes, 64 of each.
const SLICES: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Case {
    /// Types as the instruction names them: d, a, b.
    types: &'static str,
    a: Element,
    b: Element,
    columns: usize,
    /// None: a is in registers.
    layout_a: Option<Layout>,
    layout_b: Layout,
    selector: usize,
    /// Metadata of row 37 of the first product, in place of those that are right.
    wrong: Option<u32>,
}

const CASE: Case = Case {
    types: "f32.f16.f16",
    a: F16,
    b: F16,
    columns: 16,
    layout_a: None,
    layout_b: Layout { width: 8, across: false },
    selector: 0,
    wrong: None,
};

impl Case {
    /// Columns of a that stand for one product.
    fn depth(&self) -> usize {
        2 * self.a.depth()
    }

    /// Columns of a chunk, and elements of it that are there.
    fn chunk(&self) -> (usize, usize) {
        if self.a.bits() == 32 { (2, 1) } else { (4, 2) }
    }

    /// The four bits of a chunk of a row, and the columns of its elements.
    fn indices(&self, row: usize, chunk: usize) -> (u32, Vec<usize>) {
        let mixed = (row * 7 + chunk * 13 + row * chunk) % 6;
        if self.a.bits() == 32 {
            let odd = mixed % 2;
            return ([0b0100, 0b1110][odd], vec![2 * chunk + odd]);
        }
        let (first, second) = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][mixed];
        (first as u32 | (second as u32) << 2, vec![4 * chunk + first, 4 * chunk + second])
    }

    /// The columns of the elements of a row that are there, in their order.
    fn kept(&self, row: usize) -> Vec<usize> {
        (0..SLICES * self.depth() / self.chunk().0).flat_map(|chunk| self.indices(row, chunk).1).collect()
    }

    /// The metadata of a thread for a product.
    fn metadata(&self, thread: usize, slice: usize) -> u32 {
        let (t0, t1, g, warp) = (thread % 2, thread / 2 % 2, thread / 4 % 8, thread / 32);
        let of_slice = self.depth() / self.chunk().0;
        let chunks = |row: usize, first: usize, count: usize| {
            let word = |word: u32, n: usize| word | self.indices(row, of_slice * slice + first + n).0 << (4 * n);
            (0..count).fold(0, word)
        };
        let row = 16 * warp + g;
        if self.a.bits() == 8 {
            return chunks(row + 8 * t0, 8 * t1, 8);
        }
        if t1 != self.selector {
            return 0;
        }
        chunks(row, 4 * t0, 4) | chunks(row + 8, 4 * t0, 4) << 16
    }

    fn text(&self, shared: usize) -> String {
        let registers = self.columns / 2;
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let (floats, ty) = (self.types.starts_with("f32."), if self.types.starts_with("f32.") { "f32" } else { "b32" });
        let of_threads = shared + 16 * SLICES;
        let mut body = String::new();
        for slice in 0..SLICES {
            for (name, at) in [("da", 0), ("db", 8)] {
                let at = shared + 16 * slice + at;
                body += &format!("ld.global.u64 {name}, [in+{at}];\nadd.u64 {name}, {name}, base;\n");
            }
            body += &format!("ld.global.v4.b32 {}, [ta+{}];\n", list("a", 4), of_threads + 32 * slice);
            body += &format!("ld.global.b32 e, [ta+{}];\n", of_threads + 32 * slice + 16);
            let a = if self.layout_a.is_some() { "da".to_owned() } else { list("a", 4) };
            let mut after = if slice == 0 { "0" } else { "1" }.to_owned();
            if floats {
                after += ", 1, 1";
            }
            if self.a.bits() == 16 {
                let of = |layout: Layout| format!(", {}", i32::from(layout.across));
                after += &self.layout_a.map(of).unwrap_or_default();
                after += &of(self.layout_b);
            }
            body += &format!(
                "wgmma.fence.sync.aligned;\n\
                 wgmma.mma_async.sp.sync.aligned.m64n{}k{}.{} {}, {a}, db, e, {}, {after};\n",
                self.columns,
                self.depth(),
                self.types,
                list("d", registers),
                self.selector
            );
        }
        let stores: String = (0..registers).map(|i| format!("st.global.{ty} [out+{}], d{i};\n", 4 * i)).collect();
        format!(
            ".version 8.0 .target sm_90a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out, ta, at, da, db, base; .reg .b32 t, n, w, e, a<4>; .reg .{ty} d<{registers}>;\n\
             .reg .pred q; .shared .align 1024 .b8 tile[{shared}];\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x;\n\
             mul.wide.u32 ta, t, {}; add.u64 ta, in, ta; mul.wide.u32 at, t, {}; add.u64 out, out, at;\n\
             mul.wide.u32 at, t, 4; add.u64 at, in, at; shl.b32 n, t, 2;\n\
             FILL: ld.global.b32 w, [at]; mov.u32 a0, tile; add.u32 a0, a0, n; st.shared.b32 [a0], w;\n\
             add.u64 at, at, 512; add.u32 n, n, 512; setp.lt.u32 q, n, {shared}; @q bra FILL;\n\
             fence.proxy.async; bar.sync 0; mov.u32 w, tile; shr.u32 w, w, 4; cvt.u64.u32 base, w;\n\
             {body}wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n{stores}ret; }}",
            32 * SLICES,
            4 * registers
        )
    }

    /// Element `n` of those of a row that are there.
    fn element(&self, row: usize, n: usize) -> i32 {
        value(1, row, self.kept(row)[n], self.a, false)
    }

    /// The bytes that the kernel reads: tiles, descriptors, and of each thread a and metadata of each product.
    fn input(&self) -> (Vec<u8>, usize) {
        let a_bytes = if self.layout_a.is_some() { 64 * 128 } else { 0 };
        let shared = a_bytes + self.columns * 128;
        let mut image = vec![0; shared];
        let mut put = |at: usize, bits: usize, word: u32| {
            image[at..at + bits / 8].copy_from_slice(&word.to_le_bytes()[..bits / 8]);
        };
        let (bits, of_slice) = (self.a.bits(), self.a.depth());
        if let Some(layout) = self.layout_a {
            for (row, n) in (0..64).flat_map(|row| (0..SLICES * of_slice).map(move |n| (row, n))) {
                put(layout.place(64, row, n, bits).0, bits, self.a.encode(self.element(row, n)));
            }
        }
        for (column, k) in (0..self.columns).flat_map(|line| (0..SLICES * self.depth()).map(move |k| (line, k))) {
            let (byte, _) = self.layout_b.place(self.columns, column, k, bits);
            put(a_bytes + byte, bits, self.b.encode(value(2, column, k, self.b, false)));
        }
        for slice in 0..SLICES {
            let of_a = self.layout_a.map_or(0, |layout| layout.descriptor(0, 64, slice));
            image.extend(of_a.to_le_bytes());
            // Of slices of 32 bytes of b's lines, every other begins a product.
            image.extend(self.layout_b.descriptor(a_bytes, self.columns, 2 * slice).to_le_bytes());
        }
        for (thread, slice) in (0..128).flat_map(|thread| (0..SLICES).map(move |slice| (thread, slice))) {
            let (warp, g, t) = (thread / 32, thread % 32 / 4, thread % 4);
            let (mut words, each) = ([0u32; 8], 32 / bits);
            for i in 0..4 * each {
                let row = 16 * warp + g + 8 * (i / each % 2);
                let column = each * t + i % each + if i < 2 * each { 0 } else { of_slice / 2 };
                let of = self.a.encode(self.element(row, slice * of_slice + column));
                words[i / each] |= of << (i % each * bits);
            }
            words[4] = self.metadata(thread, slice);
            if let Some(wrong) = self.wrong.filter(|_| thread / 4 == 37 / 16 * 8 + 37 % 8 && slice == 0) {
                words[4] = wrong;
            }
            image.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        (image, shared)
    }

    fn run(&self) -> Ran {
        let (input, shared) = self.input();
        let output = 128 * 2 * self.columns;
        run_text(&self.text(shared), &Setup { input: &input, output, shape: (1, 128), ..Setup::default() })
    }

    /// Every element of d is that of the plain product.
    fn check(&self) {
        let ran = self.run();
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        let words = ran.u32s();
        for (thread, register) in (0..128).flat_map(|thread| (0..self.columns / 2).map(move |n| (thread, n))) {
            let row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (register % 4 / 2);
            let column = 8 * (register / 4) + 2 * (thread % 4) + register % 2;
            let products = self.kept(row).into_iter().enumerate();
            let sum: i32 = products.map(|(n, k)| self.element(row, n) * value(2, column, k, self.b, false)).sum();
            let expected = if self.types.starts_with("f32.") { encode(sum, 8, 23) } else { sum as u32 };
            let found = words[thread * self.columns / 2 + register];
            assert_eq!(found, expected, "{self:?}: row {row}, column {column}, {sum}");
        }
    }
}

#[test]
fn every_type_by_every_selector_from_registers_and_from_shared_memory() {
    let swizzled = Layout { width: 8, across: false };
    let byte = Element::Byte;
    for (types, a, b, selectors) in [
        ("f32.f16.f16", F16, F16, 2),
        ("f32.bf16.bf16", BF16, BF16, 2),
        ("f32.tf32.tf32", TF32, TF32, 2),
        ("f32.e4m3.e5m2", E4M3, E5M2, 1),
        ("s32.s8.s8", byte, byte, 1),
    ] {
        for selector in 0..selectors {
            for layout_a in [None, Some(swizzled)] {
                Case { types, a, b, selector, layout_a, ..CASE }.check();
            }
        }
    }
}

#[test]
fn halves_of_b_in_every_layout_that_has_lines_of_64_bytes() {
    for across in [false, true] {
        // Rows of 32 bytes have no room for the second half of a line.
        for width in if across { &[1, 2, 4, 8][..] } else { &[1, 4, 8] } {
            let layout = Layout { width: *width, across };
            Case { layout_b: layout, columns: 64, ..CASE }.check();
            Case { layout_b: layout, layout_a: Some(Layout { width: 4, across: false }), columns: 64, ..CASE }.check();
        }
    }
}

#[test]
fn metadata_that_name_no_elements_are_faults_at_their_lane() {
    let fault = Case { wrong: Some(0x4444_4404), ..CASE }.run().result.expect_err("a fault").to_string();
    // Row 37 is row 5 of warp 2.
    assert!(fault.contains("metadata 0b0000 of row 5, chunk 1, name no elements of a sparse matrix"), "{fault}");
    assert!(fault.contains("thread (84,0,0)"), "{fault}");
}
