//! Float arithmetic and approximations (PTX ISA 9.7.3).
//!
//! Forms of PTX 1.x without `.approx` or a rounding mean what they meant then: the approximation in single
//! precision, round to nearest in double. Half precision has a file of its own (`half.rs`).

use super::super::super::alu::{AluOp, ApproxOp, FloatMode, FloatOp, Round, TestOp};
use super::super::super::ir::{Class, Op};
use super::super::ast::Instruction;
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["fma"], |l, i, m| l.fma(i, m)),
    (&["rcp", "sqrt"], |l, i, m| l.root(i, m)),
    (&["rsqrt", "ex2", "lg2", "sin", "cos", "tanh"], |l, i, m| l.approximation(i, m)),
    (&["copysign"], |l, i, m| l.copysign(i, m)),
    (&["testp"], |l, i, m| l.testp(i, m)),
];

impl<'a> Lower<'_, 'a> {
    pub(super) fn fma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.take("f32x2") {
            return self.float_pair(i, m, FloatOp::Fma);
        }
        let (round, ftz, sat) = (m.rounding(), m.take("ftz"), m.take("sat"));
        let ty = self.ty(i, m)?;
        if !ty.is_float() {
            return self.bad_type(i, ty);
        }
        self.float(i, FloatOp::Fma, round.unwrap_or(Round::Nearest), ftz, sat, ty)
    }

    /// `add`, `sub`, `mul`, `fma` of `.f32x2`: two singles in a 64-bit register.
    pub(super) fn float_pair(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, op: FloatOp) -> Lowered {
        let (round, ftz) = (m.rounding(), m.take("ftz"));
        if op == FloatOp::Fma && round.is_none() {
            return Err(self.fault(i.opcode.at.clone(), "`fma.f32x2` needs a rounding such as `.rn`"));
        }
        let mode = FloatMode { round: round.unwrap_or(Round::Nearest), ftz, sat: false };
        let sources = if op == FloatOp::Fma { 3 } else { 2 };
        self.uniform(i, AluOp::PairF32(op, mode), Class::Fp32, Ty::B64, sources)
    }

    /// `min`, `max` of three singles: of two, then of that and the third.
    pub(super) fn extreme_of_three(&mut self, i: &'a Instruction<'a>, op: FloatOp, ftz: bool, abs: bool) -> Lowered {
        let [d, a, b, c] = self.operands(i)?;
        let mut src = [self.src(a, Ty::F32)?, self.src(b, Ty::F32)?, self.src(c, Ty::F32)?];
        let mode = FloatMode { round: Round::Nearest, ftz, sat: false };
        if abs {
            for source in &mut src {
                let magnitude = Arg::Reg(self.body.register(Bank::R32));
                self.emit(Op::Alu(AluOp::F32(FloatOp::Abs, mode)), Class::Logic, &[magnitude], &[*source], 0);
                *source = magnitude;
            }
        }
        let d = self.dst(d, Bank::R32)?;
        self.emit_extreme_of_three(op, mode, d, src);
        Ok(())
    }

    /// The smallest or largest of three goes to `d`.
    pub(super) fn emit_extreme_of_three(&mut self, op: FloatOp, mode: FloatMode, d: Arg, src: [Arg; 3]) {
        let of_two = Arg::Reg(self.body.register(Bank::R32));
        let op = Op::Alu(AluOp::F32(op, mode));
        self.emit(op, Class::MinMax, &[of_two], &src[..2], 0);
        self.emit(op, Class::MinMax, &[d], &[of_two, src[2]], 0);
    }

    pub(super) fn divide(
        &mut self,
        i: &'a Instruction<'a>,
        approximate: Option<bool>,
        round: Option<Round>,
        ftz: bool,
        ty: Ty,
    ) -> Lowered {
        match (approximate, round, ty.bits) {
            (_, None, 32) => {
                let op = if approximate == Some(true) { ApproxOp::DivFull } else { ApproxOp::Div };
                self.uniform(i, AluOp::Approx32(op, ftz), Class::Sfu, ty, 2)
            }
            (None, round, _) => self.float(i, FloatOp::Div, round.unwrap_or(Round::Nearest), ftz, false, ty),
            _ => self.bad_type(i, ty),
        }
    }

    /// `rcp`, `sqrt`
    pub(super) fn root(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let reciprocal = i.opcode.text == "rcp";
        let (approx, round, ftz) = (m.take("approx"), m.rounding(), m.take("ftz"));
        let ty = self.ty(i, m)?;
        if !ty.is_float() {
            return self.bad_type(i, ty);
        }
        if ty.bits == 64 && approx && reciprocal {
            return self.uniform(i, AluOp::Approx64(false), Class::Sfu, ty, 1);
        }
        if ty.bits == 32 && round.is_none() {
            let op = if reciprocal { ApproxOp::Rcp } else { ApproxOp::Sqrt };
            return self.uniform(i, AluOp::Approx32(op, ftz), Class::Sfu, ty, 1);
        }
        let op = if reciprocal { FloatOp::Rcp } else { FloatOp::Sqrt };
        self.float(i, op, round.unwrap_or(Round::Nearest), ftz, false, ty)
    }

    /// `rsqrt`, `ex2`, `lg2`, `sin`, `cos`, `tanh`
    pub(super) fn approximation(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("approx");
        let ftz = m.take("ftz");
        let ty = self.ty(i, m)?;
        let op = match i.opcode.text {
            "rsqrt" => ApproxOp::Rsqrt,
            "ex2" => ApproxOp::Ex2,
            "lg2" => ApproxOp::Lg2,
            "sin" => ApproxOp::Sin,
            "cos" => ApproxOp::Cos,
            _ => ApproxOp::Tanh,
        };
        match (ty.is_float(), ty.bits) {
            (true, 32) => self.uniform(i, AluOp::Approx32(op, ftz), Class::Sfu, ty, 1),
            (true, 64) if op == ApproxOp::Rsqrt => self.uniform(i, AluOp::Approx64(true), Class::Sfu, ty, 1),
            _ => self.bad_type(i, ty),
        }
    }

    pub(super) fn copysign(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        if !ty.is_float() {
            return self.bad_type(i, ty);
        }
        self.float(i, FloatOp::CopySign, Round::Nearest, false, false, ty)
    }

    pub(super) fn testp(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let test = m.one_of(&[
            ("finite", TestOp::Finite),
            ("infinite", TestOp::Infinite),
            ("number", TestOp::Number),
            ("notanumber", TestOp::NotANumber),
            ("normal", TestOp::Normal),
            ("subnormal", TestOp::Subnormal),
        ]);
        let ty = self.ty(i, m)?;
        let Some(test) = test else {
            return Err(self.fault(i.opcode.at.clone(), "`testp` needs a test such as `.finite`"));
        };
        let op = match (ty.is_float(), ty.bits) {
            (true, 32) => AluOp::Testp32(test),
            (true, 64) => AluOp::Testp64(test),
            _ => return self.bad_type(i, ty),
        };
        let [p, a] = self.operands(i)?;
        let a = self.src(a, ty)?;
        let p = self.dst(p, Bank::Pred)?;
        self.emit(Op::Alu(op), Class::Compare, &[p], &[a], 0);
        Ok(())
    }
}
