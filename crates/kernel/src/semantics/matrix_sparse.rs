//! Sparse factors of products (PTX ISA 9.7.14.6.1, "Sparse matrix storage"): where the elements lie that
//! `mma.sp` has of a row of a.
//!
//! A row is chunks, half of whose elements are there. Four bits of metadata a chunk are two indices, the
//! lower bits those of the element that comes first:
//!
//! | elements | of a chunk | elements of index i | indices |
//! |---|---|---|---|
//! | 16 bits, bytes, 8-bit floats | 2 of 4 | i | two that differ |
//! | 4 bits | 4 of 8, in pairs | 2 i, 2 i + 1 | two that differ |
//! | `tf32` | 1 of 2 | i / 2, of the first index | 0 and 1, or 2 and 3 |
//!
//! With `::ordered_metadata` the first index is the lesser. Other metadata are faults: the ISA leaves them
//! undefined.
//!
//! ```text
//! lane = 4 g + t, of rows g and g + 8; s: the selector
//! 16 bits, tf32       lower half of a word: row g, upper half: row g + 8; four chunks each
//!   two registers of a    t = s
//!   four                  t = 2 s: the first four chunks, t = 2 s + 1: the others
//! others              a word has eight chunks of one row
//!   two registers of a    t = 2 s: row g, t = 2 s + 1: row g + 8
//!   four                  t = 0, 1: the first eight chunks of rows g and g + 8; t = 2, 3: the others
//! ```
//! The ISA has this last table as figures; CUTLASS orders metadata in memory by the rows of four registers
//! (`reorder_meta`, host_reorder.h). Sums take the elements in the order in which a has them.

use super::super::alu::{HalfFormat, MatrixFactors, MatrixOp, Sparsity};
use super::V32;

/// Rows of a.
const ROWS: usize = 16;

/// Metadata that name no elements.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The lane that has them.
    pub(crate) lane: u32,
    pub(crate) what: String,
}

/// How elements lie in chunks, and chunks in words of metadata.
struct Chunks {
    /// Elements of a chunk that are there.
    kept: usize,
    /// Columns of an index.
    columns: usize,
    /// A word has chunks of two rows.
    shared: bool,
}

impl Chunks {
    fn of(factors: MatrixFactors) -> Chunks {
        match factors {
            MatrixFactors::Half(HalfFormat::F16 | HalfFormat::Bf16) => Chunks { kept: 2, columns: 1, shared: true },
            MatrixFactors::Tf32 => Chunks { kept: 1, columns: 1, shared: true },
            MatrixFactors::Nibbles(..) => Chunks { kept: 4, columns: 2, shared: false },
            MatrixFactors::Bytes(..) | MatrixFactors::Fp8(..) => Chunks { kept: 2, columns: 1, shared: false },
            MatrixFactors::Double
            | MatrixFactors::Quads(_)
            | MatrixFactors::Bits(_)
            | MatrixFactors::Tiny(..)
            | MatrixFactors::Scaled(_) => {
                panic!("no sparse products of {factors:?}")
            }
        }
    }

    /// Lane and shift of the four bits of a chunk.
    fn place(&self, selector: u8, deep: bool, row: usize, chunk: usize) -> (usize, usize) {
        let (s, half, of_word) = (usize::from(selector), row / 8, if self.shared { 4 } else { 8 });
        let part = chunk / of_word;
        let t = match (self.shared, deep) {
            (true, false) => s,
            (true, true) => 2 * s + part,
            (false, false) => 2 * s + half,
            (false, true) => 2 * part + half,
        };
        (4 * (row % 8) + t, 4 * (chunk % of_word) + if self.shared { 16 * half } else { 0 })
    }

    /// The first and the second index are such as these chunks have.
    fn takes(&self, ascending: bool, [first, second]: [usize; 2]) -> bool {
        match self.kept {
            1 => [first, second] == [0, 1] || [first, second] == [2, 3],
            _ => first < second || first > second && !ascending,
        }
    }
}

/// The columns of a row's elements, in the order in which a has them; `None` where all are there.
///
/// # Errors
/// Metadata that name no elements.
pub(super) fn columns<const DEPTH: usize>(
    op: MatrixOp,
    metadata: Option<&V32>,
) -> Result<Option<[[u8; DEPTH]; ROWS]>, Misfit> {
    let (selector, ascending) = match op.sparsity {
        Sparsity::Dense => return Ok(None),
        Sparsity::AnyOrder(selector) => (selector, false),
        Sparsity::Ascending(selector) => (selector, true),
    };
    let chunks = Chunks::of(op.factors);
    let words = metadata.expect("a sparse product has metadata");
    let count = DEPTH / chunks.kept / if op.deep { 1 } else { 2 };
    let mut columns = [[0; DEPTH]; ROWS];
    // Only the lanes that the selector names are looked at, in the order of rows: the first fault is told.
    for (row, columns) in columns.iter_mut().enumerate() {
        for (chunk, columns) in columns.chunks_mut(chunks.kept).take(count).enumerate() {
            let (lane, shift) = chunks.place(selector, op.deep, row, chunk);
            let bits = words[lane] as usize >> shift & 0xf;
            let indices = [bits & 3, bits >> 2];
            if !chunks.takes(ascending, indices) {
                let order = if ascending && chunks.kept > 1 { " in ascending order" } else { "" };
                let what = format!(
                    "metadata {bits:#06b} of row {row}, chunk {chunk}, name no elements of a sparse matrix{order}: bits \
                     {shift} to {} of {:#010x}",
                    shift + 3,
                    words[lane]
                );
                return Err(Misfit { lane: lane as u32, what });
            }
            // Of pairs both elements of the first index come before those of the second.
            for (n, column) in columns.iter_mut().enumerate() {
                *column = match chunks.kept {
                    1 => 2 * chunk + indices[0] / 2,
                    _ => chunks.columns * (4 * chunk + indices[n / chunks.columns]) + n % chunks.columns,
                } as u8;
            }
        }
    }
    Ok(Some(columns))
}
