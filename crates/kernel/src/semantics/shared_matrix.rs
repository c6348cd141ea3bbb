//! Where the elements of a matrix lie in shared memory that a descriptor of `wgmma` names (PTX ISA
//! 9.7.15.5.1, "Shared Memory Matrix Layout", and "Matrix Descriptor Format").
//!
//! ```text
//! bits of the descriptor   13-0 start   29-16 leading offset   45-32 stride offset   (times 16 bytes)
//!                          51-49 base offset   63-62 swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
//! ```
//! A *line* is a row of a or a column of b, 32 bytes of elements along k. Chunks of 16 bytes lie in rows of
//! `w` chunks: 1 without a swizzle, else 2, 4, 8. Lines may be stored one by one (k contiguous), or, of
//! 16-bit elements and, for `tcgen05`, of 8-bit ones, across (`imm-trans`): `n` lines of one k in a chunk, 8
//! or 16.
//!
//! | stored | chunk | its bytes after the start |
//! |---|---|---|
//! | lines, none | `c` of line `l` | 16 (l % 8) + stride (l / 8) + leading c |
//! | lines, swizzled | `c` of line `l` | 16 w (l % 8) + stride (l / 8) + 16 c |
//! | across, none | lines `n m` to `n m + n - 1` of `k` | 16 (k % 8) + stride m + leading (k / 8) |
//! | across, swizzled | the same | 16 w (k % 8) + 16 (m % w) + leading (m / w) + stride (k / 8) |
//!
//! A swizzle exchanges chunks of a row by the address, as that of a tile does ([`Swizzle`]). These are the
//! canonical layouts of CuTe (`mma_traits_sm90_gmma.hpp`). A base offset is the row of 128 bytes at which the
//! pattern begins, for patterns that begin elsewhere than at a multiple of their size.
//!
//! Lines of 48 bytes (`tcgen05` with a k of 96) have a third chunk, and the leading offset is an address (bit
//! 52): where a line leaves its row of 128 bytes, it goes on in the row of that number from there, so that a
//! tile's last elements may lie in the next stage of a ring (PTX ISA 9.7.16.4.1, CUTLASS's kernels of
//! `sm_103a`).
//!
//! Not modelled: the ISA's reserved bits, which are not looked at. Addresses are not taken modulo 256 KB:
//! those beyond shared memory are faults.

use super::super::tensor_map::Swizzle;

/// Bytes of a row of a swizzle of 128 bytes.
const ROW_BYTES: u32 = 128;

/// A matrix by its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedMatrix {
    start: u32,
    leading: u32,
    stride: u32,
    /// The row of 128 bytes at which the pattern of a swizzle begins.
    base: u32,
    swizzle: Swizzle,
    /// Chunks hold lines of one k.
    across: bool,
    /// Bytes of an element, where lines lie across.
    bytes: u32,
}

impl SharedMatrix {
    /// What a descriptor says.
    /// Elements of lines that lie across have 16 bits.
    pub(crate) fn of(descriptor: u64, across: bool) -> SharedMatrix {
        let offset = |from: u32| ((descriptor >> from) as u32 & 0x3fff) << 4;
        let swizzle = [Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32][(descriptor >> 62) as usize];
        let base = (descriptor >> 49) as u32 & 7;
        SharedMatrix { start: offset(0), leading: offset(16), stride: offset(32), base, swizzle, across, bytes: 2 }
    }

    /// What a descriptor of `tcgen05` says, whose swizzle has three bits; none, where that is one of 32-byte
    /// atoms, or the leading offset is an address (PTX ISA 9.7.16.4.1).
    pub(crate) fn of_tensor_core(descriptor: u64, across: bool, bytes: u32) -> Option<SharedMatrix> {
        let swizzle = match descriptor >> 61 {
            0 => Swizzle::None,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            _ => return None,
        };
        let absolute = descriptor >> 52 & 1 == 1;
        (!absolute).then_some(SharedMatrix { swizzle, bytes, ..SharedMatrix::of(descriptor, across) })
    }

    /// What a descriptor of lines of 48 bytes says, of which there is one swizzle; none for another.
    pub(crate) fn of_long_lines(descriptor: u64) -> Option<SharedMatrix> {
        let matrix = SharedMatrix::of(descriptor, false);
        let absolute = descriptor >> 52 & 1 == 1;
        (absolute && descriptor >> 61 == 2 && matrix.base == 0).then_some(SharedMatrix { bytes: 1, ..matrix })
    }

    /// A chunk of a line of 48 bytes.
    pub(crate) fn long_chunk(&self, line: u32, chunk: u32) -> u32 {
        let within = self.start % ROW_BYTES + 16 * chunk;
        let rows = if within < ROW_BYTES { self.start - self.start % ROW_BYTES } else { self.leading };
        let at = rows + ROW_BYTES * (line % 8) + self.stride * (line / 8) + within % ROW_BYTES;
        self.swizzle.place_from(0, at.into()) as u32
    }

    /// Bytes of the elements of lines that lie across; none, where they lie one by one.
    pub(crate) fn across(&self) -> Option<u32> {
        self.across.then_some(self.bytes)
    }

    /// The addresses of the chunks of some lines, whose number is a multiple of 8.
    pub(crate) fn chunks(self, lines: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        self.chunks_from(0, lines)
    }

    /// The same of the elements behind these: lines of 64 bytes, of b beside a sparse a.
    pub(crate) fn next_chunks(self, lines: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        self.chunks_from(1, lines)
    }

    /// Of each 32 bytes of a line the `nth`.
    fn chunks_from(self, nth: u32, lines: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        // Two chunks a line, or one of each k for as many lines as it has.
        let of = self.bytes;
        let (step, each, bytes) = if self.across { (16 / of as usize, 32 / of, of) } else { (1, 2, 16) };
        let of_line = move |line| (nth * each..(nth + 1) * each).map(move |k| self.byte(line, k, bytes));
        lines.step_by(step).flat_map(of_line)
    }

    /// The first byte of element `k` of a line, whose elements have `bytes` bytes.
    pub(crate) fn byte(&self, line: u32, k: u32, bytes: u32) -> u32 {
        let &SharedMatrix { start, leading, stride, swizzle, .. } = self;
        let (width, swizzled) = (swizzle.chunks() as u32, swizzle != Swizzle::None);
        let (chunk, within) = if self.across {
            let each = 16 / bytes;
            let m = line / each;
            let chunk = match swizzled {
                false => 16 * (k % 8) + stride * m + leading * (k / 8),
                true => 16 * width * (k % 8) + 16 * (m % width) + leading * (m / width) + stride * (k / 8),
            };
            (chunk, bytes * (line % each))
        } else {
            let (c, within) = (bytes * k / 16, bytes * k % 16);
            let next = if swizzled { 16 } else { leading };
            (16 * width * (line % 8) + stride * (line / 8) + next * c, within)
        };
        swizzle.place_from(self.base.into(), (start + chunk).into()) as u32 + within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A descriptor of these bytes: start, leading and stride offset.
    fn descriptor([start, leading, stride]: [u64; 3], base: u64, mode: u64) -> u64 {
        start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | mode << 62
    }

    #[test]
    fn a_base_offset_moves_the_pattern_to_a_row_of_128_bytes() {
        // Line r of the pattern is 128 r behind its start, and its chunks are exchanged by r.
        let at = |start: u64, base: u64| SharedMatrix::of(descriptor([start, 16, 1024], base, 1), false);
        for line in 0..8 {
            for chunk in 0..2 {
                let found = [at(0, 0), at(384, 3)].map(|matrix| matrix.byte(line, chunk, 16));
                assert_eq!(found, [0, 384].map(|start| start + 128 * line + 16 * (chunk ^ line)), "{line}, {chunk}");
            }
        }
        assert_eq!(at(384, 0).byte(0, 0, 16), 384 + 16 * 3, "by the address alone");
    }

    #[test]
    fn a_line_of_48_bytes_goes_on_at_the_address_that_its_descriptor_has() {
        let of = |start: u64, next: u64| {
            SharedMatrix::of_long_lines(descriptor([start, next, 1024], 0, 1) | 1 << 52).unwrap()
        };
        let line = |matrix: SharedMatrix, line: u32| [0, 1, 2].map(|chunk| matrix.long_chunk(line, chunk));
        assert_eq!(line(of(2048 + 48, 2048), 0), [2096, 2112, 2128]);
        // Chunks 6 and 7 of row 3, and chunk 0 of row 3 elsewhere, each exchanged by 3.
        let at = |row: u32, chunk: u32| row + 1024 + 128 * 3 + 16 * (chunk ^ 3);
        assert_eq!(line(of(2048 + 96, 8192), 11), [at(2048, 6), at(2048, 7), at(8192, 0)]);
        for wrong in [0, 1 << 49 | 1 << 52, 1 << 61 | 1 << 52] {
            assert_eq!(SharedMatrix::of_long_lines(descriptor([2048, 2048, 1024], 0, 1) | wrong), None, "{wrong:#x}");
        }
    }

    #[test]
    fn chunks_are_those_of_all_elements() {
        for mode in 0..4 {
            for across in [false, true] {
                let matrix = SharedMatrix::of(descriptor([256, 4096, 1024], 0, mode), across);
                let next: Vec<u32> = matrix.next_chunks(0..16).collect();
                for (mut chunks, ks) in [(matrix.chunks(0..16).collect(), 0..16), (next, 16..32)] {
                    let of = |line| ks.clone().map(move |k| matrix.byte(line, k, 2) / 16 * 16);
                    let mut expected: Vec<u32> = (0..16).flat_map(of).collect();
                    expected.sort_unstable();
                    expected.dedup();
                    chunks.sort_unstable();
                    assert_eq!(chunks, expected, "mode {mode}, across: {across}, k {ks:?}");
                }
            }
        }
    }
}
