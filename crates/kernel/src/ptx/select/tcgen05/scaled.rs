//! Products with scaled blocks and copies to tensor memory: `tcgen05.mma ... .block_scale` and `tcgen05.cp`,
//! of one CTA or of a pair (PTX ISA 9.7.16.10.9 and 9.7.16.9.2).
//!
//! | kind | `.scale_vec` | the same, newer |
//! |---|---|---|
//! | `.kind::mxf8f6f4` | `::1X`, or nothing | `.block32` |
//! | `.kind::mxf4` | `::2X`, or nothing | `.block32` |
//! | `.kind::mxf4nvf4` | `::2X`, `::4X` | `.block32`, `.block16` |
//!
//! Not supported: `.sp`. A k of 96 (`sm_103a`) is known when the product runs.

use super::super::super::super::ir::{CopyShape, PaddedElements, ScaledKind, TensorCopy, TensorKind, TensorStep};
use super::super::super::ast::{Instruction, OperandKind};
use super::super::super::draft::TensorDraft;
use super::super::super::lower::{Lower, Lowered};
use super::super::super::types::Ty;
use super::super::words::Mods;

/// Kinds, by the word that says how many elements a scale factor has.
const KINDS: [(&str, &str, ScaledKind); 9] = [
    ("mxf8f6f4", "", ScaledKind::One),
    ("mxf8f6f4", "scale_vec::1X", ScaledKind::One),
    ("mxf8f6f4", "block32", ScaledKind::One),
    ("mxf4", "", ScaledKind::Two),
    ("mxf4", "scale_vec::2X", ScaledKind::Two),
    ("mxf4", "block32", ScaledKind::Two),
    ("mxf4nvf4", "scale_vec::2X", ScaledKind::Two),
    ("mxf4nvf4", "block32", ScaledKind::Two),
    ("mxf4nvf4", "scale_vec::4X", ScaledKind::Four),
];

impl<'a> Lower<'_, 'a> {
    /// d = (a scale_a) (b scale_b) + d.
    pub(super) fn scaled_product(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, paired: bool) -> Lowered {
        let kind = m.find(|word| word.strip_prefix("kind::")).unwrap_or("");
        let vector = m.find(|word| (word.starts_with("scale_vec::") || word.starts_with("block")).then_some(word));
        // The newer word is that of the vector that the kind's elements share so.
        let vector = match vector {
            Some("block16") => "scale_vec::4X",
            vector => vector.unwrap_or(""),
        };
        let Some(&(.., kind)) = KINDS.iter().find(|(of, word, _)| *of == kind && *word == vector) else {
            let message = "`tcgen05.mma` with `.block_scale` is of `.kind::mxf8f6f4` with `.scale_vec::1X` or `.block32`, \
                           `.kind::mxf4` with `.scale_vec::2X` or `.block32`, or `.kind::mxf4nvf4` with `.scale_vec::2X`, \
                           `.block32`, `.scale_vec::4X` or `.block16`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        // How long a is kept near the tensor cores changes no value.
        m.skip(|word| word.starts_with("collector::a"));
        let [d, a, b, instruction, scale_a, scale_b, adds] = self.operands(i)?;
        let d = self.tensor_address(d)?;
        let in_tensor_memory = matches!(a.kind, OperandKind::Address(_));
        let a = if in_tensor_memory { self.tensor_address(a)? } else { self.src(a, Ty::B64)? };
        let (b, instruction) = (self.src(b, Ty::B64)?, self.src(instruction, Ty::B32)?);
        let scales = [self.tensor_address(scale_a)?, self.tensor_address(scale_b)?];
        let (adds, negated) = self.src_pred(adds)?;
        let kind = TensorKind::Scaled(kind);
        let step = if paired { TensorStep::MultiplyPair(kind) } else { TensorStep::Multiply(kind) };
        self.tensor_step(step, &[], &[d, a, b, instruction])?;
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[0] = adds;
            draft.more[1..3].copy_from_slice(&scales);
            draft.tensor = Some(Box::new(TensorDraft::Product { in_tensor_memory, adds: negated == 0, scale: 0 }));
        }
        Ok(())
    }

    /// A copy from shared memory.
    pub(super) fn tensor_copy(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, paired: bool) -> Lowered {
        const SHAPES: [(&str, &str, CopyShape); 6] = [
            ("128x256b", "", CopyShape::Rows128Of32),
            ("4x256b", "", CopyShape::Rows4Of32),
            ("128x128b", "", CopyShape::Rows128Of16),
            ("64x128b", "warpx2::02_13", CopyShape::Halves),
            ("64x128b", "warpx2::01_23", CopyShape::Pairs),
            ("32x128b", "warpx4", CopyShape::Quarters),
        ];
        const PADDED: [(&str, PaddedElements); 2] =
            [("b4x16_p64", PaddedElements::Four), ("b6x16_p32", PaddedElements::Six)];
        let rows = m.find(|word| word.ends_with("x256b").then_some(word).or(word.ends_with("x128b").then_some(word)));
        let warps = m.find(|word| word.starts_with("warpx").then_some(word)).unwrap_or("");
        let Some(&(.., shape)) = SHAPES.iter().find(|(of, to, _)| Some(*of) == rows && *to == warps) else {
            let message = "`tcgen05.cp` is of `.128x256b`, `.4x256b`, `.128x128b`, `.64x128b.warpx2::02_13`, \
                           `.64x128b.warpx2::01_23` or `.32x128b.warpx4`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        // Only what is padded has room for containers.
        let (containers, padded) = (m.take("b8x16"), m.one_of(&PADDED));
        if containers != padded.is_some() {
            let message = "`tcgen05.cp` makes `.b8x16` of `.b4x16_p64` or `.b6x16_p32`";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let [to, from] = self.operands(i)?;
        let (to, from) = (self.tensor_address(to)?, self.src(from, Ty::B64)?);
        let copy = TensorCopy { shape, padded };
        let step = if paired { TensorStep::CopyPair(copy) } else { TensorStep::Copy(copy) };
        self.tensor_step(step, &[], &[to, from])
    }
}
