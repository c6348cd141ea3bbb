//! Comparison and selection (PTX ISA 9.7.6).

use super::super::super::alu::{AluOp, Combine, Compare, CompareKind, FloatCmp, HalfFormat, HalfType, IntCmp, Truth};
use super::super::super::ir::{Class, Op};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Class as TyClass, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["setp"], |l, i, m| l.setp(i, m)),
    (&["set"], |l, i, m| l.set(i, m)),
    (&["selp"], |l, i, m| l.selp(i, m)),
    (&["slct"], |l, i, m| l.slct(i, m)),
];

const COMPARISONS: [(&str, &str); 18] = [
    ("eq", "eq"),
    ("ne", "ne"),
    ("lt", "lt"),
    ("le", "le"),
    ("gt", "gt"),
    ("ge", "ge"),
    ("lo", "lo"),
    ("ls", "ls"),
    ("hi", "hi"),
    ("hs", "hs"),
    ("equ", "equ"),
    ("neu", "neu"),
    ("ltu", "ltu"),
    ("leu", "leu"),
    ("gtu", "gtu"),
    ("geu", "geu"),
    ("num", "num"),
    ("nan", "nan"),
];

fn int_cmp(name: &str, ty: Ty) -> Option<IntCmp> {
    let signed = ty.is_signed();
    Some(match name {
        "eq" => IntCmp::Eq,
        "ne" => IntCmp::Ne,
        // `.bN` has no order.
        _ if ty.class == TyClass::Untyped => return None,
        "lt" if signed => IntCmp::LtS,
        "le" if signed => IntCmp::LeS,
        "gt" if signed => IntCmp::GtS,
        "ge" if signed => IntCmp::GeS,
        "lt" | "lo" => IntCmp::LtU,
        "le" | "ls" => IntCmp::LeU,
        "gt" | "hi" => IntCmp::GtU,
        "ge" | "hs" => IntCmp::GeU,
        _ => return None,
    })
}

fn float_cmp(name: &str) -> Option<FloatCmp> {
    Some(match name {
        "eq" => FloatCmp::Eq,
        "ne" => FloatCmp::Ne,
        "lt" => FloatCmp::Lt,
        "le" => FloatCmp::Le,
        "gt" => FloatCmp::Gt,
        "ge" => FloatCmp::Ge,
        "equ" => FloatCmp::Equ,
        "neu" => FloatCmp::Neu,
        "ltu" => FloatCmp::Ltu,
        "leu" => FloatCmp::Leu,
        "gtu" => FloatCmp::Gtu,
        "geu" => FloatCmp::Geu,
        "num" => FloatCmp::Num,
        "nan" => FloatCmp::Nan,
        _ => return None,
    })
}

impl<'a> Lower<'_, 'a> {
    /// The comparison of `setp` or `set`; the type of its operands is the last one.
    fn comparison(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
        result: bool,
    ) -> Lowered<(Compare, Ty, Option<Ty>)> {
        let ftz = m.take("ftz");
        let name = m.one_of(&COMPARISONS);
        let combine =
            m.one_of(&[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)]).unwrap_or(Combine::None);
        // Types are taken in the order of the text: that of the result comes before that of the operands.
        let result = if result { Some(self.ty(i, m)?) } else { None };
        let ty = self.ty(i, m)?;
        let Some(name) = name else {
            let message = format!("`{}` needs a comparison such as `.lt`", i.opcode.text);
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let flushes = ty.is_float() && ty.bits == 32 || ty.half().is_some_and(|half| half.format() == HalfFormat::F16);
        if ftz && !flushes {
            return self.bad_type(i, ty);
        }
        let kind = match (ty.class, ty.bits) {
            (TyClass::Float, 32) => float_cmp(name).map(|c| CompareKind::F32(c, ftz)),
            (TyClass::Float, 64) => float_cmp(name).map(CompareKind::F64),
            (TyClass::Half(half), _) => float_cmp(name).map(|c| CompareKind::Half(c, half, ftz)),
            (TyClass::Float | TyClass::Pred, _) => None,
            (_, 16) => int_cmp(name, ty).map(CompareKind::Int16),
            (_, 32) => int_cmp(name, ty).map(CompareKind::Int32),
            (_, 64) => int_cmp(name, ty).map(CompareKind::Int64),
            _ => None,
        };
        match kind {
            Some(kind) => Ok((Compare { kind, combine }, ty, result)),
            None => {
                let message = format!("comparison `.{name}` on type {ty} is not supported");
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// Operands a, b and, if the comparison combines, the predicate c.
    fn compared(
        &mut self,
        i: &'a Instruction<'a>,
        compare: Compare,
        ty: Ty,
    ) -> Lowered<(&'a Operand<'a>, [Arg; 3], i32)> {
        if compare.combine == Combine::None {
            let [d, a, b] = self.operands(i)?;
            return Ok((d, [self.src(a, ty)?, self.src(b, ty)?, Arg::None], 0));
        }
        let [d, a, b, c] = self.operands(i)?;
        let (a, b) = (self.src(a, ty)?, self.src(b, ty)?);
        let (c, negated) = self.src_pred(c)?;
        Ok((d, [a, b, c], negated))
    }

    pub(super) fn setp(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let (compare, ty, _) = self.comparison(i, m, false)?;
        let (d, src, negated) = self.compared(i, compare, ty)?;
        if let Some(half) = ty.half()
            && half.is_pair() != matches!(d.kind, OperandKind::Pair(..))
        {
            let wanted = if half.is_pair() { "two predicates, `p|q`: one a half" } else { "one predicate" };
            return Err(self.fault(d.at.clone(), format!("`setp` on type {ty} sets {wanted}")));
        }
        let dst = match &d.kind {
            OperandKind::Pair(p, q) => [self.dst(p, Bank::Pred)?, self.dst(q, Bank::Pred)?],
            _ => [self.dst(d, Bank::Pred)?, Arg::None],
        };
        self.emit(Op::Alu(AluOp::Setp(compare)), Class::Compare, &dst, &src, negated);
        Ok(())
    }

    pub(super) fn set(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let (compare, ty, result) = self.comparison(i, m, true)?;
        let Some(result) = result else {
            return self.bad_type(i, ty);
        };
        let truth = match (result.class, result.bits, ty.half()) {
            (TyClass::Float, 32, None) => Truth::Single,
            (TyClass::Unsigned | TyClass::Signed, 32, _) => Truth::Ones,
            (TyClass::Unsigned | TyClass::Signed, 16, Some(HalfType::F16 | HalfType::Bf16)) => Truth::Ones,
            (TyClass::Half(to @ (HalfType::F16 | HalfType::Bf16)), _, from)
                if from.is_none_or(|from| !from.is_pair()) =>
            {
                Truth::Half(to.format())
            }
            (TyClass::Half(to), _, Some(from)) if to == from => Truth::Half(to.format()),
            _ => return self.bad_type(i, result),
        };
        let (d, src, negated) = self.compared(i, compare, ty)?;
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::Set(compare, truth)), Class::Compare, &[d], &src, negated);
        Ok(())
    }

    pub(super) fn selp(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        let op = match ty.bank() {
            Bank::R32 if ty.bits >= 16 => AluOp::Selp32,
            Bank::R64 => AluOp::Selp64,
            _ => return self.bad_type(i, ty),
        };
        let [d, a, b, c] = self.operands(i)?;
        let (a, b) = (self.src(a, ty)?, self.src(b, ty)?);
        let (c, negated) = self.src_pred(c)?;
        let d = self.dst(d, ty.bank())?;
        self.emit(Op::Alu(op), Class::Logic, &[d], &[a, b, c], negated);
        Ok(())
    }

    pub(super) fn slct(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ftz = m.take("ftz");
        let (ty, of) = (self.ty(i, m)?, self.ty(i, m)?);
        if of.bits != 32 || !(of.is_float() || of.is_signed()) || ty.bits < 16 {
            return self.bad_type(i, of);
        }
        let [d, a, b, c] = self.operands(i)?;
        let src = [self.src(a, ty)?, self.src(b, ty)?, self.src(c, of)?];
        let d = self.dst(d, ty.bank())?;
        let op = AluOp::Slct { wide: ty.bits == 64, float: of.is_float(), ftz };
        self.emit(Op::Alu(op), Class::Logic, &[d], &src, 0);
        Ok(())
    }
}
