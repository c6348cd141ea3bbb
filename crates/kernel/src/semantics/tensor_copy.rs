//! Copies from shared memory to tensor memory (`tcgen05.cp`, PTX ISA 9.7.16.9.2): what one CTA does. With
//! `.cta_group::2` both CTAs of a pair do so, by one address and descriptor, each from its own shared memory:
//! the ISA says where the copies go, and kernels of CUTLASS where they come from, of which each CTA has the
//! scale factors of its own rows at one place (`sm100_blockscaled_mma_warpspecialized.hpp`).
//!
//! A descriptor names rows in shared memory as one of `tcgen05.mma` does the rows of a matrix whose k is
//! contiguous: row r is line r of a [`SharedMatrix`], of one or two chunks of 16 bytes. A chunk fills four
//! columns of each lane that its row goes to ([`CopyShape`](super::super::ir::CopyShape)).
//!
//! Source: PTX ISA 9.7.16.2.3 (shapes) and 9.7.16.4.1 (descriptor); which lanes a row goes to that goes to
//! several is in the copy traits of CuTe (`copy_traits_sm100.hpp`). Invariant: cells are written at once,
//! although a program may count on them only in a later product, or behind an arrival.

use durawarp_checkpoint::value;

use super::super::ir::{Inst, TensorCopy};
use super::super::tensor_memory::{TENSOR_LANES, TensorMemory};
use super::Frame;
use super::matrix_group::CHUNK_BYTES;
use super::shared_matrix::SharedMatrix;
use super::tensor_operands::{TensorMisfit, matrix_of};
use super::tiny::spread_out;

/// Columns of a chunk.
const CHUNK_COLUMNS: u32 = CHUNK_BYTES / 4;

/// What the operands of a copy of a thread are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyValues {
    copy: TensorCopy,
    to: u32,
    descriptor: u64,
}

value!(record CopyValues { copy, to, descriptor });

impl CopyValues {
    /// Those of a lane.
    pub(crate) fn of(f: &Frame<'_>, lane: usize, copy: TensorCopy, inst: &Inst) -> Self {
        CopyValues { copy, to: f.get32(inst.src[0])[lane], descriptor: f.get64(inst.src[1])[lane] }
    }

    /// Bytes that a CTA reads.
    pub fn bytes(&self) -> u32 {
        self.copy.shape.bytes()
    }
}

/// Where a copy of a lane reads and writes.
pub(crate) struct CopyOperands {
    copy: TensorCopy,
    to: u32,
    from: SharedMatrix,
}

impl CopyOperands {
    /// # Errors
    /// What the descriptor says that is not supported.
    pub(crate) fn of(values: &CopyValues) -> Result<Self, TensorMisfit> {
        let CopyValues { copy, to, descriptor } = *values;
        let from = matrix_of(descriptor, false, 1, "what `tcgen05.cp` reads")?;
        Ok(CopyOperands { copy, to, from })
    }

    /// The chunk of a row in shared memory.
    fn chunk(&self, row: u32, chunk: u32) -> u32 {
        self.from.byte(row, CHUNK_BYTES * chunk, 1)
    }

    /// The address of each chunk of shared memory that is read.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        let shape = self.copy.shape;
        (0..shape.rows()).flat_map(|row| (0..shape.chunks()).map(move |chunk| self.chunk(row, chunk))).collect()
    }

    /// Copies all rows.
    ///
    /// # Errors
    /// Lanes or columns that the CTA has not, or bytes that are not in shared memory.
    pub(crate) fn copy(&self, memory: &mut TensorMemory, shared: &[u8]) -> Result<(), TensorMisfit> {
        let (shape, [lane, column]) = (self.copy.shape, [self.to >> 16, self.to & 0xffff]);
        let columns = CHUNK_COLUMNS * shape.chunks();
        let [first, replicas, apart] = shape.lanes(shape.rows() - 1);
        let last = lane + first + apart * (replicas - 1);
        if last >= TENSOR_LANES || !memory.owns(column..column + columns) {
            return Err(TensorMisfit::Unsupported(format!(
                "`tcgen05.cp` to lanes {lane} to {last} and columns {column} to {} of tensor memory, of which its CTA \
                 has not all",
                column + columns - 1
            )));
        }
        // Each chunk is read once, and written to all lanes that its row goes to.
        for (row, chunk) in (0..shape.rows()).flat_map(|row| (0..shape.chunks()).map(move |chunk| (row, chunk))) {
            let address = self.chunk(row, chunk);
            let found = shared.get(address as usize..(address + CHUNK_BYTES) as usize);
            let mut bytes: [u8; CHUNK_BYTES as usize] =
                found.ok_or(TensorMisfit::Outside(address))?.try_into().expect("a chunk");
            if let Some(padded) = self.copy.padded {
                spread_out(padded, &mut bytes);
            }
            let [first, replicas, apart] = shape.lanes(row);
            for to in (0..replicas).map(|n| lane + first + apart * n) {
                for (n, word) in (0..).zip(bytes.chunks_exact(4)) {
                    let word = u32::from_le_bytes(word.try_into().expect("a word"));
                    *memory.cell(to, column + CHUNK_COLUMNS * chunk + n) = word;
                }
            }
        }
        Ok(())
    }
}
