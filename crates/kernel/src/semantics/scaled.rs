//! Products with scaled blocks (`tcgen05.mma ... .block_scale`, PTX ISA 9.7.16.10.7):
//! d = (a scale_a) (b scale_b) + d of 128 rows of a CTA and 8 to 256 columns, in single precision. What the
//! instruction's descriptor says is in `scaled_shape`.
//!
//! ```text
//! factors of row or column i      lane i % 32 of each quarter of the lanes, column i / 32 from the address on,
//!                                 one, two or four bytes from that of the descriptor on
//! of k = 96                       three or six bytes, which go on in byte 0 four columns behind, or of more than
//!                                 128 columns of b eight
//! ```
//! A row has 32 bytes of elements (`tiny.rs`), of k = 96 (`sm_103a`) 48, which its factors share in equal
//! blocks. `ue8m0` is a power of two, 2^-127 to 2^127, or NaN (`0xff`); `ue4m3` is `e4m3` without its sign.
//!
//! Of a pair of CTAs, each has 128 of 256 rows of a and of d, half of the columns of b (`tensor_pair`), and
//! in its own tensor memory the factors of its rows of a and of *all* columns of b: so CUTLASS copies them
//! (`sm100_blockscaled_mma_warpspecialized.hpp`; CuTe's `ScaleFactorDuplicated4by1`), and here each CTA
//! multiplies by what it has.
//!
//! | choice where the ISA leaves order and precision of sums open | |
//! |---|---|
//! | products | exact: of two elements and the factors of their blocks |
//! | sums | in the order of k, from d on, each rounded to single precision, to nearest, ties to even |
//!
//! So a product whose factors are 1 has the bits of one of `.kind::f8f6f4`. A tensor core that sums a block
//! before it scales it differs in the last bits.
//!
//! Source: PTX ISA 9.7.16.10.7.2 and .3 (bytes of factors); CuTe's `tmem_sf_frg` and
//! `InstrDescriptorBlockScaled` for the figures' lanes and columns; CUTLASS's kernels of `sm_103a` for the
//! factors of k = 96, of which a lies in shared memory here. The upper two bits of a factors' address are not
//! looked at: CuTe passes the byte there, too. Found: factors that the quarters do not have alike, as the ISA
//! asks for. Invariant: d is written at once.

use super::super::ir::ScaledKind;
use super::super::tensor_memory::TensorMemory;
use super::canonical::canon32;
use super::rounding::plus;
use super::scaled_shape::{DEPTH, LINE_BYTES, ScaledShape};
use super::shared_matrix::SharedMatrix;
use super::tensor_operands::{TensorMisfit, TensorValues, matrix_of};
use super::tiny::{ROW_BYTES, packed_values, scale_factor, shared_line, tensor_line};

/// Lanes of a quarter, each of which has all factors.
const QUARTER: u32 = 32;

/// Where a product has its factors and its sums.
pub(crate) struct ScaledOperands {
    pub(crate) shape: ScaledShape,
    /// The address of d.
    d: u32,
    /// a in shared memory, or its address in tensor memory.
    a: Result<SharedMatrix, u32>,
    b: SharedMatrix,
    /// Addresses of scale factors, of a and of b.
    scales: [u32; 2],
}

impl ScaledOperands {
    /// Those of a product of this kind.
    ///
    /// # Errors
    /// What a descriptor says that is not supported.
    pub(crate) fn of(values: &TensorValues, kind: ScaledKind) -> Result<Self, TensorMisfit> {
        let shape = ScaledShape::of(kind, values.paired, values.instruction).map_err(TensorMisfit::Unsupported)?;
        let shared = |descriptor, across| match shape.long {
            true => long_matrix_of(descriptor),
            false => matrix_of(descriptor, across, 1, "a matrix of `tcgen05.mma`"),
        };
        let [a_across, b_across] = shape.across;
        if shape.long && values.a_in_tensor_memory {
            let what = "`tcgen05.mma` with a k of 96 and a in tensor memory is not supported";
            return Err(TensorMisfit::Unsupported(what.to_owned()));
        }
        let a = if values.a_in_tensor_memory { Err(values.a as u32) } else { Ok(shared(values.a, a_across)?) };
        Ok(ScaledOperands { shape, d: values.d, a, b: shared(values.b, b_across)?, scales: values.scales })
    }

    /// The address of each chunk of shared memory of a CTA that is read.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        let b = (&self.b, self.columns_of_b());
        let matrices = self.a.iter().map(|a| (a, self.shape.rows)).chain([b]);
        let chunks = |(matrix, lines): (&SharedMatrix, u32)| -> Vec<u32> {
            match self.shape.long {
                true => (0..lines).flat_map(|line| LONG_CHUNKS.map(|chunk| matrix.long_chunk(line, chunk))).collect(),
                false => matrix.chunks(0..lines).collect(),
            }
        };
        matrices.flat_map(chunks).collect()
    }

    /// Columns of b that a CTA has.
    fn columns_of_b(&self) -> u32 {
        if self.shape.paired { self.shape.columns / 2 } else { self.shape.columns }
    }

    /// The columns of b that a CTA has.
    ///
    /// # Errors
    /// They are not in its shared memory.
    pub(super) fn load_b(&self, shared: &[u8]) -> Result<Vec<RowBytes>, TensorMisfit> {
        self.lines_of(&self.b, self.columns_of_b(), shared)
    }

    fn load_a(&self, memory: &mut TensorMemory, shared: &[u8]) -> Result<Vec<RowBytes>, TensorMisfit> {
        match &self.a {
            Ok(matrix) => self.lines_of(matrix, self.shape.rows, shared),
            Err(address) => {
                let column = self.column(*address, ROW_BYTES as u32 / 4, memory)?;
                Ok((0..self.shape.rows).map(|line| padded(tensor_line(column, line, memory))).collect())
            }
        }
    }

    /// The first `number` lines of a matrix.
    fn lines_of(&self, matrix: &SharedMatrix, number: u32, shared: &[u8]) -> Result<Vec<RowBytes>, TensorMisfit> {
        let line = |line| match self.shape.long {
            true => long_line(matrix, line, shared),
            false => shared_line(matrix, line, shared).map(padded),
        };
        (0..number).map(|number| line(number).map_err(TensorMisfit::Outside)).collect()
    }

    /// The first column of an address in tensor memory: it and those behind it are the CTA's.
    fn column(&self, address: u32, columns: u32, memory: &TensorMemory) -> Result<u32, TensorMisfit> {
        let [lane, column] = [address >> 16, address & 0xffff];
        if lane != 0 || !memory.owns(column..column + columns) {
            return Err(TensorMisfit::Unsupported(format!(
                "`tcgen05.mma` at lane {lane} and columns {column} to {} of tensor memory, where it begins at lane 0 and \
                 its CTA has not all of the columns",
                column + columns - 1
            )));
        }
        Ok(column)
    }

    /// Elements of lines, each by the scale factor of its block: of a where `of` is 0, else of b.
    fn scaled_lines(
        &self,
        of: usize,
        lines: &[RowBytes],
        memory: &mut TensorMemory,
    ) -> Result<ScaledLines, TensorMisfit> {
        let shape = &self.shape;
        let element = [shape.a, shape.b][of];
        // A block of factors has room for 128 lines.
        let (columns, block) = ((lines.len() as u32).div_ceil(QUARTER), 4 * (lines.len() as u32).div_ceil(128));
        let words = (shape.bytes[of] + shape.factors()).div_ceil(4);
        let scales = self.column(self.scales[of] & 0x3fff_ffff, block * (words - 1) + columns, memory)?;
        let in_tensor_memory = of == 0 && self.a.is_err();
        let (depth, factors) = (shape.depth() as usize, shape.factors() as usize);
        let mut all = Vec::with_capacity(lines.len());
        for (line, bytes) in (0..).zip(lines) {
            let mut values = [0.0; DEPTH];
            if shape.kind == ScaledKind::One {
                let row = bytes.first_chunk().expect("a row has 32 bytes");
                values[..ROW_BYTES].copy_from_slice(&element.values(row, in_tensor_memory));
            } else {
                values = packed_values(bytes);
            }
            let mut codes = [0; 8];
            for n in 0..words {
                let word = self.scale_word([scales + block * n, line], (of, n), memory)?;
                codes[4 * n as usize..][..4].copy_from_slice(&word.to_le_bytes());
            }
            let codes = &codes[shape.bytes[of] as usize..];
            let scaled = std::array::from_fn(|k| {
                // Beyond the depth there are zeros, with the last block's factor.
                let block = (k * factors / depth).min(factors - 1);
                f64::from(values[k]) * scale_factor(shape.powers, codes[block])
            });
            all.push(scaled);
        }
        Ok(ScaledLines(all))
    }

    /// A word of tensor memory with scale factors of a line: the `number`th of them.
    ///
    /// # Errors
    /// The quarters have several.
    fn scale_word(
        &self,
        [column, line]: [u32; 2],
        (of, number): (usize, u32),
        memory: &mut TensorMemory,
    ) -> Result<u32, TensorMisfit> {
        let all = (u64::MAX >> (64 - 8 * self.shape.factors())) << (8 * self.shape.bytes[of]);
        let used = (all >> (32 * number)) as u32;
        let words: [u32; 4] = std::array::from_fn(|quarter| {
            *memory.cell(QUARTER * quarter as u32 + line % QUARTER, column + line / QUARTER)
        });
        match words.iter().position(|word| (word ^ words[0]) & used != 0) {
            None => Ok(words[0]),
            Some(quarter) => Err(TensorMisfit::Unsupported(format!(
                "`tcgen05.mma` with scale factors of {} {line} that differ between lanes {} and {} of tensor memory: all \
                 four quarters need the same",
                ["row", "column"][of],
                line % QUARTER,
                QUARTER * quarter as u32 + line % QUARTER
            ))),
        }
    }
}

/// The bytes of a row of a, or of a column of b.
pub(super) type RowBytes = [u8; LINE_BYTES];

/// The chunks of a line of 48 bytes.
const LONG_CHUNKS: [u32; 3] = [0, 1, 2];

fn padded(row: [u8; ROW_BYTES]) -> RowBytes {
    let mut line = [0; LINE_BYTES];
    line[..ROW_BYTES].copy_from_slice(&row);
    line
}

/// A line of 48 bytes.
///
/// # Errors
/// The address of what is not there.
fn long_line(matrix: &SharedMatrix, line: u32, shared: &[u8]) -> Result<RowBytes, u32> {
    let mut bytes = [0; LINE_BYTES];
    for (chunk, part) in LONG_CHUNKS.into_iter().zip(bytes.chunks_exact_mut(16)) {
        let address = matrix.long_chunk(line, chunk);
        part.copy_from_slice(shared.get(address as usize..address as usize + 16).ok_or(address)?);
    }
    Ok(bytes)
}

/// The matrix that a descriptor of lines of 48 bytes names.
fn long_matrix_of(descriptor: u64) -> Result<SharedMatrix, TensorMisfit> {
    SharedMatrix::of_long_lines(descriptor).ok_or_else(|| {
        let needs = "needs a swizzle of 128 bytes without a base offset, and an address as leading offset";
        TensorMisfit::Unsupported(format!("a matrix of `tcgen05.mma` with a k of 96 ({descriptor:#018x}) {needs}"))
    })
}

/// Elements by their scale factors, zeros beyond the depth.
struct ScaledLines(Vec<[f64; DEPTH]>);

impl ScaledLines {
    /// The same as singles, where a product of two of these is exactly a single.
    fn singles(&self) -> Option<Vec<[f32; DEPTH]>> {
        // A value has 6 bits, so that products of such have a last bit of 2^-110 at least.
        let fits =
            |x: &f64| *x == 0.0 || !x.is_finite() || (50.0_f64.exp2().recip()..=50.0_f64.exp2()).contains(&x.abs());
        let all = self.0.iter().flatten().all(fits);
        all.then(|| self.0.iter().map(|line| line.map(|x| x as f32)).collect())
    }
}

/// d = (a scale_a) (b scale_b) + d of one CTA.
///
/// # Errors
/// What is not supported, or not there.
pub(crate) fn multiply_scaled(
    values: &TensorValues,
    kind: ScaledKind,
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    let operands = ScaledOperands::of(values, kind)?;
    let b = operands.load_b(shared)?;
    multiply_scaled_rows(&operands, values.adds, &b, memory, shared)
}

/// The rows of a CTA, by all columns of b.
///
/// # Errors
/// What is not supported, or not there.
pub(super) fn multiply_scaled_rows(
    operands: &ScaledOperands,
    adds: bool,
    b: &[RowBytes],
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    let shape = operands.shape;
    let d = operands.column(operands.d, shape.columns, memory)?;
    let a = operands.load_a(memory, shared)?;
    let mut a = operands.scaled_lines(0, &a, memory)?;
    let b = operands.scaled_lines(1, b, memory)?;
    // The signs of products are those of a.
    if shape.negates {
        a.0.iter_mut().flatten().for_each(|x| *x = -*x);
    }
    let singles = a.singles().zip(b.singles());
    let depth = shape.depth() as usize;
    for (row, column) in (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |column| (row, column))) {
        let cell = memory.cell(row, d + column);
        let start = if adds { f32::from_bits(*cell) } else { 0.0 };
        let [row, column] = [row, column].map(|line| line as usize);
        let sum = match &singles {
            Some((a, b)) => a[row].iter().zip(&b[column]).take(depth).fold(start, |sum, (&a, &b)| sum + a * b),
            None => a.0[row].iter().zip(&b.0[column]).take(depth).fold(start, |sum, (&a, &b)| plus(sum, a * b)),
        };
        *cell = canon32(sum);
    }
    Ok(())
}
