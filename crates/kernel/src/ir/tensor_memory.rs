//! Tensor memory and the products that sum in it (`tcgen05`, PTX ISA 9.7.16), as instructions name them.
//!
//! Registers of a load or store are more than an instruction has room for, as are operands of a product: both
//! are in tables of the kernel (`Kernel::tensor`). Operands are slots.

use durawarp_checkpoint::value;

use super::tensor_scaled::{ScaledKind, TensorCopy};
use super::warp_group::GroupElements;

/// What a warp, or a thread, does with the tensor memory of its CTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorStep {
    /// Columns are its CTA's, of which the number is `src[0]`; their address goes to `dst[0]`
    /// (`tcgen05.alloc`).
    Allocate,
    /// Columns at address `src[0]`, of which the number is `src[1]`, are free (`tcgen05.dealloc`).
    Free,
    /// Its CTA allocates no more (`tcgen05.relinquish_alloc_permit`).
    Relinquish,
    /// Registers of entry `imm` of [`TensorTables::vectors`], from address `src[0]` on (`tcgen05.ld`).
    Load(TensorShape),
    /// The same to there (`tcgen05.st`).
    Store(TensorShape),
    /// Waits for the warp's loads (`tcgen05.wait::ld`).
    WaitLoads,
    /// Waits for the warp's stores (`tcgen05.wait::st`).
    WaitStores,
    /// A product of entry `imm` of [`TensorTables::products`] for each lane (`tcgen05.mma`).
    Multiply(TensorKind),
    /// Each lane copies what the descriptor in `src[1]` names in shared memory to address `src[0]`
    /// (`tcgen05.cp`).
    Copy(TensorCopy),
    /// As [`TensorStep::Allocate`], in both CTAs of a pair, of each of which a warp does so
    /// (`tcgen05.alloc.cta_group::2`).
    AllocatePair,
    /// As [`TensorStep::Free`], of which a warp of each CTA of a pair does its own CTA's part
    /// (`tcgen05.dealloc.cta_group::2`).
    FreePair,
    /// As [`TensorStep::Multiply`], of both CTAs of a pair.
    MultiplyPair(TensorKind),
    /// As [`TensorStep::Copy`], in each CTA of a pair from its own shared memory.
    CopyPair(TensorCopy),
    /// Arrives behind the products so far at the barrier of the address `src[0]`, of 32 bits, in each CTA of
    /// the mask `src[1]` (`tcgen05.commit.multicast::cluster`).
    CommitTo,
    /// What a trace has of a step.
    Traced(TracedTensor),
}

/// A step of a trace, which has no operands. It is one of its warp, whatever its lanes. `imm` says how much
/// it does in each CTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedTensor {
    /// A product, of both CTAs of a pair or of one; `imm` are its operations.
    Multiply { elements: GroupElements, paired: bool },
    /// A copy, of both CTAs of a pair or of one; `imm` are its bytes.
    Copy { paired: bool },
    /// A load or store; `imm` are its registers.
    Transfer { loads: bool },
    /// As [`TensorStep::WaitStores`].
    WaitStores,
}

impl TracedTensor {
    /// It is of both CTAs of a pair.
    pub fn is_paired(self) -> bool {
        matches!(self, TracedTensor::Multiply { paired: true, .. } | TracedTensor::Copy { paired: true })
    }
}

impl TensorStep {
    /// The instruction's name.
    pub const fn name(self) -> &'static str {
        match self {
            TensorStep::Allocate => "tcgen05.alloc",
            TensorStep::Free => "tcgen05.dealloc",
            TensorStep::Relinquish => "tcgen05.relinquish_alloc_permit",
            TensorStep::Load(_) => "tcgen05.ld",
            TensorStep::Store(_) => "tcgen05.st",
            TensorStep::WaitLoads => "tcgen05.wait::ld",
            TensorStep::WaitStores => "tcgen05.wait::st",
            TensorStep::Multiply(_) => "tcgen05.mma",
            TensorStep::Copy(_) => "tcgen05.cp",
            TensorStep::AllocatePair => "tcgen05.alloc.cta_group::2",
            TensorStep::FreePair => "tcgen05.dealloc.cta_group::2",
            TensorStep::MultiplyPair(_) => "tcgen05.mma.cta_group::2",
            TensorStep::CopyPair(_) => "tcgen05.cp.cta_group::2",
            TensorStep::CommitTo => "tcgen05.commit.multicast::cluster",
            TensorStep::Traced(_) => "a step of tensor memory of a trace",
        }
    }

    /// It is of both CTAs of a pair.
    pub fn is_of_pairs(self) -> bool {
        match self {
            TensorStep::AllocatePair | TensorStep::FreePair | TensorStep::MultiplyPair(_) | TensorStep::CopyPair(_) => {
                true
            }
            TensorStep::Traced(step) => step.is_paired(),
            _ => false,
        }
    }

    /// Elements of a and b of a product.
    pub fn elements(self) -> Option<GroupElements> {
        match self {
            TensorStep::Traced(TracedTensor::Multiply { elements, .. }) => Some(elements),
            _ => self.multiplies().map(TensorKind::elements),
        }
    }

    /// The kind of a product.
    pub fn multiplies(self) -> Option<TensorKind> {
        match self {
            TensorStep::Multiply(kind) | TensorStep::MultiplyPair(kind) => Some(kind),
            _ => None,
        }
    }

    /// What a copy from shared memory moves.
    pub fn copies(self) -> Option<TensorCopy> {
        match self {
            TensorStep::Copy(copy) | TensorStep::CopyPair(copy) => Some(copy),
            _ => None,
        }
    }
}

/// What a load or store moves of each lane of tensor memory, and which thread and register has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorShape {
    /// `.32x32b`: a lane a thread.
    Lanes32,
    /// `.16x64b`
    Bits64,
    /// `.16x128b`
    Bits128,
    /// `.16x256b`
    Bits256,
    /// `.16x32bx2`: the upper half of the threads has columns so far behind those of the lower.
    Halves(u16),
}

impl TensorShape {
    /// Registers of a thread for each time that the shape is repeated.
    pub(crate) fn registers(self) -> usize {
        match self {
            TensorShape::Lanes32 | TensorShape::Bits64 | TensorShape::Halves(_) => 1,
            TensorShape::Bits128 => 2,
            TensorShape::Bits256 => 4,
        }
    }

    /// Lane and column, from those of the address on, of register `r` of thread `t` (PTX ISA 9.7.16.2.3.1).
    pub(crate) fn place(self, t: u32, r: u32) -> [u32; 2] {
        match self {
            TensorShape::Lanes32 => [t, r],
            TensorShape::Bits64 => [t / 4 + 8 * (t % 2), t / 2 % 2 + 2 * r],
            TensorShape::Bits128 => [t / 4 + 8 * (r % 2), t % 4 + 4 * (r / 2)],
            TensorShape::Bits256 => [t / 4 + 8 * (r / 2 % 2), r % 2 + 2 * (t % 4) + 8 * (r / 4)],
            TensorShape::Halves(apart) => [t % 16, r + t / 16 * u32::from(apart)],
        }
    }
}

/// Elements of a and b; which of the kind, a descriptor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorKind {
    /// `.kind::f16`: `f16` or `bf16`.
    Half,
    /// `.kind::tf32`
    Tf32,
    /// `.kind::f8f6f4`
    Fp8,
    /// `.kind::i8`
    Bytes,
    /// Floats of 8 bits and fewer, of which each block has a scale factor.
    Scaled(ScaledKind),
}

value!(choice TensorKind { Half, Tf32, Fp8, Bytes, Scaled(kind) });

impl TensorKind {
    /// Elements of a and b, as far as the time of a product depends on them.
    pub fn elements(self) -> GroupElements {
        match self {
            TensorKind::Half => GroupElements::Half,
            TensorKind::Tf32 => GroupElements::Tf32,
            TensorKind::Fp8 => GroupElements::Fp8,
            TensorKind::Bytes => GroupElements::Bytes,
            TensorKind::Scaled(ScaledKind::One) => GroupElements::Fp8,
            TensorKind::Scaled(ScaledKind::Two | ScaledKind::Four) => GroupElements::Fp4,
        }
    }
}

/// What instructions have no room for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorTables {
    /// Registers of loads and stores.
    pub vectors: Vec<TensorVector>,
    /// Operands of products.
    pub products: Vec<TensorProduct>,
}

/// Registers of a load or store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorVector {
    pub registers: Box<[u16]>,
    /// A register has the 16-bit values of two columns (`.pack::16b`, `.unpack::16b`).
    pub packs: bool,
}

/// Operands of d = a b + d in tensor memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorProduct {
    /// The address of d, 32 bits.
    pub d: u16,
    /// The 64-bit descriptor of a in shared memory, or its address in tensor memory.
    pub a: u16,
    /// a lies in tensor memory.
    pub a_in_tensor_memory: bool,
    /// The 64-bit descriptor of b in shared memory.
    pub b: u16,
    /// The descriptor of the instruction, 32 bits.
    pub instruction: u16,
    /// A predicate, and what it is where d is added to; else d starts from 0.
    pub adds: (u16, bool),
    /// Masks of lanes of d that stay as they are; `NONE` where absent. Of a pair, those of the CTA of odd
    /// rank come last.
    pub disabled: [u16; 8],
    /// d counts as 2 to the power of minus this (`scale-input-d`).
    pub scale: u8,
    /// Of scaled blocks, addresses in tensor memory of the scale factors of a and b.
    pub scales: [u16; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_each_cell_of_its_image_once() {
        let of = [
            (TensorShape::Lanes32, 32, 1, 8),
            (TensorShape::Bits64, 16, 2, 8),
            (TensorShape::Bits128, 16, 4, 8),
            (TensorShape::Bits256, 16, 8, 8),
            (TensorShape::Halves(8), 16, 2, 8),
        ];
        for (shape, lanes, columns, times) in of {
            let registers = shape.registers() as u32 * times;
            let places = (0..32).flat_map(|t| (0..registers).map(move |r| shape.place(t, r)));
            let mut places: Vec<[u32; 2]> = places.collect();
            places.sort_unstable();
            let cells = (0..lanes).flat_map(|lane| (0..columns * times).map(move |column| [lane, column]));
            assert!(places.iter().copied().eq(cells), "{shape:?}");
        }
    }
}
