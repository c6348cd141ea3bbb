//! `mma.sync` of floats of 8, 6 and 4 bits, with scaled blocks and without, as `sm_120a` has them (PTX ISA
//! 9.7.14.3 and 9.7.14.5.14).
//!
//! | kind | shape | elements | scale factors |
//! |---|---|---|---|
//! | `.kind::f8f6f4` | m16n8k32 | in a byte each; of 4 bits in its bits 2 to 5 | none |
//! | `.kind::mxf8f6f4.block_scale` | m16n8k32 | the same | `.ue8m0`, `.scale_vec::1X` or nothing |
//! | `.kind::mxf4.block_scale` | m16n8k64 | `e2m1`, two a byte | `.ue8m0`, `.scale_vec::2X` or nothing |
//! | `.kind::mxf4nvf4.block_scale` | m16n8k64 | the same | `.ue8m0`, `.scale_vec::2X`; `.ue8m0`, `.ue4m3`, `::4X` |
//!
//! Behind c stand, of a and then of b, a register with scale factors and which of its bytes, and which lanes
//! of each four, have them. Where these are registers, not numbers, they are put together first. Not
//! supported: `.sp`.

use super::super::super::super::alu::{
    AluOp, Fp8, IntOp, MatrixFactors, MatrixOp, MatrixSums, ScaledFactors, TinyFloat,
};
use super::super::super::super::ir::{Class, Op};
use super::super::super::super::semantics::SCALES;
use super::super::super::ast::{Instruction, Operand, OperandKind};
use super::super::super::draft::Arg;
use super::super::super::lower::{Lower, Lowered};
use super::super::super::types::{Bank, Class as TyClass, Ty};
use super::super::words::Mods;

const FLOATS: [(&str, TinyFloat); 5] = [
    ("e4m3", TinyFloat::Eight(Fp8::E4m3)),
    ("e5m2", TinyFloat::Eight(Fp8::E5m2)),
    ("e2m3", TinyFloat::E2m3),
    ("e3m2", TinyFloat::E3m2),
    ("e2m1", TinyFloat::E2m1),
];

/// Of a kind: the word for how many factors a row has, how many these are, and whether they may be `ue4m3`.
const KINDS: [(&str, &str, u8, bool); 6] = [
    ("kind::mxf8f6f4", "", 1, false),
    ("kind::mxf8f6f4", "scale_vec::1X", 1, false),
    ("kind::mxf4", "", 2, false),
    ("kind::mxf4", "scale_vec::2X", 2, false),
    ("kind::mxf4nvf4", "scale_vec::2X", 2, false),
    ("kind::mxf4nvf4", "scale_vec::4X", 4, true),
];

/// It has scaled blocks, or elements of fewer than 8 bits that only these products have.
pub(super) fn is_of(i: &Instruction<'_>) -> bool {
    i.mods.iter().any(|word| matches!(word.text, "block_scale" | "e2m3" | "e3m2" | "e2m1"))
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn scaled_fragments(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
        (rows, depth): (usize, u32),
    ) -> Lowered {
        let scales = m.take("block_scale");
        let ordered = m.take("row") && m.take("col");
        let kind = m.find(|word| word.starts_with("kind::").then_some(word)).unwrap_or("");
        let vector = m.find(|word| word.starts_with("scale_vec::").then_some(word)).unwrap_or("");
        let sums = |m: &mut Mods<'_, 'a>| m.one_of(&[("f32", MatrixSums::F32), ("f16", MatrixSums::F16)]);
        let (d, a, b, c) = (sums(m), m.one_of(&FLOATS), m.one_of(&FLOATS), sums(m));
        let powers = m.one_of(&[("ue8m0", true), ("ue4m3", false)]);
        let (Some(d), Some(a), Some(b), true) = (d, a, b, d == c && rows == 16 && ordered) else {
            return self.unsupported_product(i);
        };
        // Without factors they are products of 8-bit floats in all but their elements.
        if !scales {
            let fits = kind == "kind::f8f6f4" && vector.is_empty() && powers.is_none() && depth == 32;
            if !fits {
                return self.unsupported_product(i);
            }
            return self.product_of_fragments(i, rows, MatrixOp::dense(MatrixFactors::Tiny(a, b), d, true), None);
        }
        let found = KINDS.iter().find(|(of, word, ..)| *of == kind && *word == vector);
        let (Some(&(.., factors, floats)), Some(powers), MatrixSums::F32) = (found, powers, d) else {
            return self.unsupported_product(i);
        };
        let packed = factors > 1;
        let elements = !packed || [a, b] == [TinyFloat::E2m1; 2];
        if !elements || depth != if packed { 64 } else { 32 } || !powers && !floats {
            return self.unsupported_product(i);
        }
        // Factors lie behind the two registers of b.
        let [d, a_of, b_of, c, scale_a, of_a, scale_b, of_b] = self.operands(i)?;
        let (mut left, mut right, mut start, mut dst) =
            ([Arg::None; 4], [Arg::None; 4], [Arg::None; 4], [Arg::None; 4]);
        self.fragment(a_of, Ty::B32, &mut left)?;
        self.fragment(b_of, Ty::B32, &mut right[..2])?;
        self.fragment(c, Ty::F32, &mut start)?;
        for (slot, operand) in SCALES.into_iter().zip([scale_a, scale_b]) {
            self.fragment(operand, Ty::B32, &mut right[slot..=slot])?;
        }
        let selectors = self.selectors([of_a, of_b], factors.into())?;
        self.results(d, Bank::R32, &mut dst)?;
        let of = ScaledFactors { a, b, factors, powers };
        self.product(MatrixOp::dense(MatrixFactors::Scaled(of), MatrixSums::F32, true), &dst, &left, &right, &start);
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[8] = selectors;
        }
        Ok(())
    }

    /// Bytes and lanes of scale factors, 4 bits each: of a, then of b.
    fn selectors(&mut self, operands: [&'a Operand<'a>; 2], factors: u32) -> Lowered<Arg> {
        let mut known = Some(0);
        let mut parts = Vec::with_capacity(4);
        for (operand, lanes) in operands.into_iter().zip([2, 4]) {
            let pair = self.parts(operand, 2)?;
            for (part, (number_of, step)) in pair.iter().zip([(4, u64::from(factors)), (lanes, 1)]) {
                match part.kind {
                    OperandKind::Int(value) => {
                        let fits = value < number_of && value % step == 0;
                        if !fits {
                            let message = format!("this product has no scale factors there: {value}");
                            return Err(self.fault(part.at.clone(), message));
                        }
                        known = known.map(|known| known | value << (4 * parts.len()));
                    }
                    _ => known = None,
                }
                parts.push(self.src(part, Ty { class: TyClass::Untyped, bits: 16 })?);
            }
        }
        if let Some(known) = known {
            return Ok(self.body.literal(Bank::R32, known));
        }
        // The last part comes to stand highest.
        let (mask, shift) = (self.body.literal(Bank::R32, 0xf), self.body.literal(Bank::R32, 16));
        let mut all = self.body.literal(Bank::R32, 0);
        for part in parts.into_iter().rev() {
            let [masked, next] = [(); 2].map(|()| Arg::Reg(self.body.register(Bank::R32)));
            self.emit(Op::Alu(AluOp::Int32(IntOp::And)), Class::Logic, &[masked], &[part, mask], 0);
            self.emit(Op::Alu(AluOp::Int32(IntOp::MadLo)), Class::IntMul, &[next], &[all, shift, masked], 0);
            all = next;
        }
        Ok(all)
    }
}
