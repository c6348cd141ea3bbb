//! Products of a pair of CTAs that sum in the tensor memories of both (`tcgen05.mma.cta_group::2`, PTX ISA
//! 9.7.16.10).
//!
//! ```text
//!           even rank                odd rank               lanes
//! 256 rows  0 to 127                 128 to 255             row r of the CTA's is lane r
//! 128 rows  0 to 63                  64 to 127              columns 0 to n/2 - 1 in lane r, others in r + 64
//! b         columns 0 to n/2 - 1     columns n/2 to n - 1
//! a         its rows                 its rows               in tensor memory, those of its sums
//! ```
//! With scaled blocks there are 256 rows, and each CTA has the scale factors that it needs (`scaled`).
//! One thread of either CTA begins it; descriptors and addresses are those of either in its own memories. A
//! row is as [`tensor_core`](super::tensor_core) has it: this adds which CTA has what.
//!
//! Source: PTX ISA 9.7.16.2.1 (sizes), 9.7.16.10.5 (layouts A and B of d), and CuTe's `tmem_frg` of two SMs
//! (`mma_traits_sm100.hpp`): a of 128 rows is *duplicated* in the lower and the upper half of the lanes.
//! Chosen: of eight masks of lanes the first four are those of the even rank, as lanes of d go on there.
//! Invariant: both drivers compute here.

use super::super::fault::FaultKind;
use super::super::ir::{GroupElements, LANES, TensorKind};
use super::super::tensor_memory::TensorMemory;
use super::V32;
use super::scaled::{RowBytes, ScaledOperands, multiply_scaled_rows};
use super::tensor_core::multiply_rows;
use super::tensor_operands::{TensorMisfit, TensorOperands, TensorValues};

/// The columns of b that a CTA has, as registers, or of scaled blocks as the words of one column behind the
/// other: a copy, by which it may travel.
pub type PairColumns = Vec<u32>;

/// The columns of b in the shared memory of a CTA of a pair.
///
/// # Errors
/// What a descriptor says that is not supported, or is not there.
pub(crate) fn columns_of_pair(values: &TensorValues, shared: &[u8]) -> Result<PairColumns, TensorMisfit> {
    if let TensorKind::Scaled(kind) = values.kind {
        let operands = ScaledOperands::of(values, kind)?;
        let (lines, bytes) = (operands.load_b(shared)?, operands.shape.line_bytes());
        return Ok(lines.iter().flat_map(|line| line[..bytes].chunks_exact(4).map(word_of)).collect());
    }
    Ok(TensorOperands::of(values)?.load_b(shared)?.into_iter().flatten().flatten().collect())
}

/// A CTA's rows of d = a b + d of a pair: of the last bit of its rank, and with b of the even CTA and of the
/// odd one.
///
/// # Errors
/// What is not supported, or not there.
pub(crate) fn multiply_for_pair(
    values: &TensorValues,
    parity: u32,
    b: [&PairColumns; 2],
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    if let TensorKind::Scaled(kind) = values.kind {
        let operands = ScaledOperands::of(values, kind)?;
        let byte = |words: &[u32], n: usize| words.get(n / 4).map_or(0, |word| word.to_le_bytes()[n % 4]);
        let line = |words: &[u32]| -> RowBytes { std::array::from_fn(|n| byte(words, n)) };
        let words = operands.shape.line_bytes() / 4;
        let b: Vec<RowBytes> = b.into_iter().flat_map(|columns| columns.chunks_exact(words)).map(line).collect();
        return multiply_scaled_rows(&operands, values.adds, &b, memory, shared);
    }
    let operands = TensorOperands::of(values)?;
    let tile =
        |words: &[u32]| -> [V32; 2] { std::array::from_fn(|n| std::array::from_fn(|lane| words[LANES * n + lane])) };
    let b: Vec<[V32; 2]> = b.into_iter().flat_map(|words| words.chunks_exact(2 * LANES)).map(tile).collect();
    let half = 4 * parity as usize;
    let disabled = std::array::from_fn(|n| values.disabled[half + n]);
    multiply_rows(&operands, values, disabled, b.iter(), memory, shared)
}

fn word_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

impl TensorValues {
    /// The address of each chunk of shared memory of a CTA that is read.
    ///
    /// # Errors
    /// What a descriptor says that is not supported.
    pub(crate) fn chunks(&self) -> Result<Vec<u32>, TensorMisfit> {
        if let TensorKind::Scaled(kind) = self.kind {
            return ScaledOperands::of(self, kind).map(|operands| operands.chunks());
        }
        TensorOperands::of(self).map(|operands| operands.chunks())
    }

    /// What a CTA's part takes: elements, and multiplications and additions.
    ///
    /// # Errors
    /// What the descriptor says that is not supported.
    pub(crate) fn work(&self) -> Result<(GroupElements, u32), TensorMisfit> {
        if let TensorKind::Scaled(kind) = self.kind {
            let shape = ScaledOperands::of(self, kind)?.shape;
            return Ok((self.kind.elements(), 2 * shape.rows * shape.columns * shape.depth()));
        }
        let shape = TensorOperands::of(self)?.shape;
        Ok((shape.elements, 2 * shape.rows * shape.columns * shape.elements.depth()))
    }
}

impl TensorMisfit {
    /// What is wrong, as a fault of the program, of an instruction of this name.
    pub(crate) fn fault(self, shared_bytes: u32, name: &str) -> FaultKind {
        match self {
            TensorMisfit::Unsupported(what) => FaultKind::Unsupported(what),
            TensorMisfit::Outside(address) => {
                let hint = format!("the CTA has {shared_bytes} bytes; it is read by `{name}`");
                FaultKind::OutOfBounds { address: address.into(), bytes: super::CHUNK_BYTES, space: "shared", hint }
            }
        }
    }
}
