//! `cvt` to and from floats of 6 and 4 bits, and scale factors (PTX ISA 9.7.9.21).
//!
//! | to | from | modifiers |
//! |---|---|---|
//! | `.e2m3x2`, `.e3m2x2`, `.e2m1x2` | two `.f32`, `.f16x2`, `.bf16x2` | `.rn.satfinite`, `.relu` or not |
//! | `.f16x2` | these | `.rn`, `.relu` or not |
//! | `.ue8m0x2` | two `.f32`, `.bf16x2` | `.rz` or `.rp`, `.satfinite` or not |
//! | `.bf16x2` | `.ue8m0x2` | `.rn` |
//!
//! Not supported: random rounding (`.rs`), other scales (`.scaled::n2::ue8m0`).

use super::super::super::super::alu::{AluOp, HalfFormat, HalfType, PairOf, Round, TinyCvt, TinyFloat};
use super::super::super::super::ir::{Class, Op};
use super::super::super::ast::Instruction;
use super::super::super::draft::Arg;
use super::super::super::lower::{Lower, Lowered};
use super::super::super::types::{Bank, Class as TyClass, Ty};
use super::super::words::Mods;

/// What a conversion is of, besides singles and halves.
#[derive(Clone, Copy)]
pub(super) enum TinyPair {
    Floats(TinyFloat),
    Powers,
}

const PAIRS: [(&str, TinyPair); 4] = [
    ("e2m3x2", TinyPair::Floats(TinyFloat::E2m3)),
    ("e3m2x2", TinyPair::Floats(TinyFloat::E3m2)),
    ("e2m1x2", TinyPair::Floats(TinyFloat::E2m1)),
    ("ue8m0x2", TinyPair::Powers),
];

/// Takes the type of such a pair, if there is one.
pub(super) fn tiny_pair(m: &mut Mods<'_, '_>) -> Option<TinyPair> {
    m.one_of(&PAIRS)
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn convert_tiny(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, pair: TinyPair) -> Lowered {
        let (round, relu, finite) = (m.rounding(), m.take("relu"), m.take("satfinite"));
        // The pair stands first if it is that of the result.
        let narrows = i.mods.last().is_some_and(|word| PAIRS.iter().all(|(name, _)| *name != word.text));
        let ty = self.ty(i, m)?;
        let from = match ty.class {
            TyClass::Half(HalfType::F16x2) => Some(PairOf::Halves(HalfFormat::F16)),
            TyClass::Half(HalfType::Bf16x2) => Some(PairOf::Halves(HalfFormat::Bf16)),
            _ => (ty == Ty::F32).then_some(PairOf::Singles),
        };
        let op = match (pair, narrows, from, round) {
            (TinyPair::Floats(format), true, Some(from), Some(Round::Nearest)) if finite => {
                Some(TinyCvt::To { format, from, relu })
            }
            (TinyPair::Floats(format), false, Some(PairOf::Halves(HalfFormat::F16)), Some(Round::Nearest))
                if !finite =>
            {
                Some(TinyCvt::From { format, relu })
            }
            (TinyPair::Powers, true, Some(from), Some(round @ (Round::Zero | Round::Up)))
                if !relu && from != PairOf::Halves(HalfFormat::F16) =>
            {
                Some(TinyCvt::ToPowers { from, up: round == Round::Up, finite })
            }
            (TinyPair::Powers, false, Some(PairOf::Halves(HalfFormat::Bf16)), Some(Round::Nearest))
                if !relu && !finite =>
            {
                Some(TinyCvt::FromPowers)
            }
            _ => None,
        };
        let Some(op) = op else {
            let message = "conversions of floats of 6 and 4 bits are `.rn.satfinite` from `.f32`, `.f16x2` and `.bf16x2`, and `.rn` \
                           to `.f16x2`; those of `.ue8m0x2` are `.rz` and `.rp` from `.f32` and `.bf16x2`, and `.rn` to `.bf16x2`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let (d, src) = if narrows && from == Some(PairOf::Singles) {
            let [d, a, b] = self.operands(i)?;
            (d, [self.src(a, ty)?, self.src(b, ty)?])
        } else {
            let [d, a] = self.operands(i)?;
            // A pair of 4 bits is a byte; what is above it nobody looks at.
            let bits = if narrows {
                32
            } else if matches!(pair, TinyPair::Floats(TinyFloat::E2m1)) {
                8
            } else {
                16
            };
            (d, [self.src(a, Ty { class: TyClass::Untyped, bits })?, Arg::None])
        };
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::Tiny(op)), Class::Convert, &[d], &src, 0);
        Ok(())
    }
}
