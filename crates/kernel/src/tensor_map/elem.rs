//! Types of a tensor's elements: their sizes, and what a reduction of a tile does with each.
//!
//! Source: CUDA driver API (`CUtensorMapDataType`); PTX ISA 9.7.9.27.1.3 (`cp.reduce.async.bulk.tensor`,
//! whose type is that of the map). Invariant: a byte has whole elements, one or two. Not modelled: elements
//! of 6 bits, padded ones of 4, `tf32`.

use super::super::alu::{HalfFormat, HalfType};
use super::super::ir::{AtomOp, Elem};
use durawarp_checkpoint::value;

/// Type of the elements of a tensor, which matters to reductions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorElem {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    Bf16,
    /// 4 bits, two a byte (`CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B`).
    B4,
}

value!(choice TensorElem { U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, B4 });

impl TensorElem {
    /// All, with their names.
    pub const ALL: [(&str, TensorElem); 11] = [
        ("u8", TensorElem::U8),
        ("u16", TensorElem::U16),
        ("u32", TensorElem::U32),
        ("s32", TensorElem::S32),
        ("u64", TensorElem::U64),
        ("s64", TensorElem::S64),
        ("f16", TensorElem::F16),
        ("f32", TensorElem::F32),
        ("f64", TensorElem::F64),
        ("bf16", TensorElem::Bf16),
        ("b4", TensorElem::B4),
    ];

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            TensorElem::B4 => 4,
            TensorElem::U8 => 8,
            TensorElem::U16 | TensorElem::F16 | TensorElem::Bf16 => 16,
            TensorElem::U32 | TensorElem::S32 | TensorElem::F32 => 32,
            TensorElem::U64 | TensorElem::S64 | TensorElem::F64 => 64,
        }
    }

    /// Bytes of an element, or of as many as a byte has.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Bytes of elements side by side, a whole number of them.
    pub fn bytes_of(self, elements: u32) -> u64 {
        u64::from(elements) * u64::from(self.bits()) / 8
    }

    /// What a reduction by this operation does with each element (PTX ISA 9.7.9.27.1.3: the type is that of
    /// the map); none where there is no such reduction.
    pub fn reduction(self, op: AtomOp) -> Option<(AtomOp, Elem)> {
        use TensorElem::{B4, Bf16, F16, F32, F64, S32, S64, U8, U16, U32, U64};
        let half = |format| match op {
            AtomOp::Add if format == HalfFormat::F16 => Some(AtomOp::AddHalf(HalfType::F16)),
            AtomOp::Add => Some(AtomOp::AddHalf(HalfType::Bf16)),
            AtomOp::Min => Some(AtomOp::MinHalf(format)),
            AtomOp::Max => Some(AtomOp::MaxHalf(format)),
            _ => None,
        };
        let bits = matches!(op, AtomOp::And | AtomOp::Or | AtomOp::Xor);
        let ordered = matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max);
        match self {
            F16 => Some((half(HalfFormat::F16)?, Elem::U16)),
            Bf16 => Some((half(HalfFormat::Bf16)?, Elem::U16)),
            F32 => (op == AtomOp::Add).then_some((op, Elem::F32)),
            F64 => (op == AtomOp::Add).then_some((op, Elem::F64)),
            U32 => (ordered || bits || matches!(op, AtomOp::Inc | AtomOp::Dec)).then_some((op, Elem::U32)),
            S32 => (ordered || bits).then_some((op, Elem::S32)),
            U64 => (ordered || bits).then_some((op, Elem::U64)),
            S64 => (matches!(op, AtomOp::Min | AtomOp::Max) || bits).then_some((op, Elem::S64)),
            B4 | U8 | U16 => None,
        }
    }
}
