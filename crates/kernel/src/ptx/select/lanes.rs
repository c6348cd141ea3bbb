//! Shuffles, votes, matches, reductions (PTX ISA 9.7.9.6, 9.7.13).

use super::super::super::alu::{AluOp, IntExtreme, ReduxOp, ShflMode, VoteOp};
use super::super::super::ir::{Class, Op};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Class as TyClass, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["shfl"], |l, i, m| l.shuffle(i, m)),
    (&["vote"], |l, i, m| l.vote(i, m)),
    (&["match"], |l, i, m| l.matching(i, m)),
    (&["redux"], |l, i, m| l.redux(i, m)),
    (&["elect"], |l, i, m| l.elect(i, m)),
    (&["activemask"], |l, i, m| l.activemask(i, m)),
];

impl<'a> Lower<'_, 'a> {
    /// `d` or `d|p`, either of which may be `_`.
    fn value_and_predicate(&mut self, operand: &Operand<'a>) -> Lowered<[Arg; 2]> {
        match &operand.kind {
            OperandKind::Pair(d, p) => Ok([self.dst(d, Bank::R32)?, self.dst(p, Bank::Pred)?]),
            _ => Ok([self.dst(operand, Bank::R32)?, Arg::None]),
        }
    }

    pub(super) fn shuffle(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let sync = m.take("sync");
        let mode = m.one_of(&[
            ("up", ShflMode::Up),
            ("down", ShflMode::Down),
            ("bfly", ShflMode::Bfly),
            ("idx", ShflMode::Idx),
        ]);
        let ty = self.ty(i, m)?;
        let Some(mode) = mode else {
            return Err(self.fault(i.opcode.at.clone(), "`shfl` needs a mode such as `.down`"));
        };
        if ty.bits != 32 {
            return self.bad_type(i, ty);
        }
        // Only `.sync` has the mask of members. With any other number of operands the last arm reports their
        // count.
        let (d, sources) = match (sync, i.operands.as_slice()) {
            (true, [d, a, b, c, mask]) => (d, [a, b, c, mask].as_slice().to_vec()),
            (false, [d, a, b, c]) => (d, vec![a, b, c]),
            _ => return self.operands::<0>(i).map(|_| ()),
        };
        let mut src = [Arg::None; 4];
        for (src, operand) in src.iter_mut().zip(sources) {
            *src = self.src(operand, Ty::B32)?;
        }
        let dst = self.value_and_predicate(d)?;
        self.emit(Op::Alu(AluOp::Shfl(mode)), Class::Shuffle, &dst, &src, 0);
        Ok(())
    }

    pub(super) fn vote(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let sync = m.take("sync");
        let op =
            m.one_of(&[("all", VoteOp::All), ("any", VoteOp::Any), ("uni", VoteOp::Uni), ("ballot", VoteOp::Ballot)]);
        let ty = self.ty(i, m)?;
        let Some(op) = op else {
            return Err(self.fault(i.opcode.at.clone(), "`vote` needs a mode such as `.all`"));
        };
        let bank = if op == VoteOp::Ballot { Bank::R32 } else { Bank::Pred };
        if ty.bank() != bank {
            return self.bad_type(i, ty);
        }
        let (d, a, mask) = match (sync, i.operands.as_slice()) {
            (true, [d, a, mask]) => (d, a, Some(mask)),
            (false, [d, a]) => (d, a, None),
            _ => return self.operands::<0>(i).map(|_| ()),
        };
        let (a, negated) = self.src_pred(a)?;
        let mask = mask.map_or(Ok(Arg::None), |mask| self.mask(mask))?;
        let d = self.dst(d, bank)?;
        // The member mask is read (it must be ready) but not obeyed; it stays out of the predicate operand's
        // place.
        let src = [a, Arg::None, Arg::None, mask];
        self.emit(Op::Alu(AluOp::Vote(op)), Class::Vote, &[d], &src, negated);
        Ok(())
    }

    pub(super) fn matching(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let all = m.one_of(&[("any", false), ("all", true)]).unwrap_or(false);
        m.take("sync");
        let ty = self.ty(i, m)?;
        if ty.is_float() || !matches!(ty.bits, 32 | 64) {
            return self.bad_type(i, ty);
        }
        let [d, a, mask] = self.operands(i)?;
        let src = [self.src(a, ty)?, Arg::None, Arg::None, self.mask(mask)?];
        let dst = self.value_and_predicate(d)?;
        self.emit(Op::Alu(AluOp::Match(all, ty.bits == 64)), Class::Shuffle, &dst, &src, 0);
        Ok(())
    }

    pub(super) fn redux(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("sync");
        let op = m.one_of(&["add", "min", "max", "and", "or", "xor"].map(|name| (name, name)));
        let ty = self.ty(i, m)?;
        if ty.bits != 32 || ty.is_float() {
            return self.bad_type(i, ty);
        }
        let signed = ty.class == TyClass::Signed;
        let op = match op {
            Some("add") => ReduxOp::Add,
            Some("and") => ReduxOp::And,
            Some("or") => ReduxOp::Or,
            Some("xor") => ReduxOp::Xor,
            Some(extreme) => ReduxOp::Extreme(IntExtreme::new(extreme == "min", signed)),
            None => return Err(self.fault(i.opcode.at.clone(), "`redux` needs an operation such as `.add`")),
        };
        let [d, a, mask] = self.operands(i)?;
        let src = [self.src(a, ty)?, Arg::None, Arg::None, self.mask(mask)?];
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::Redux(op)), Class::Shuffle, &[d], &src, 0);
        Ok(())
    }

    /// `elect.sync d|p, mask`
    pub(super) fn elect(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("sync");
        let [d, mask] = self.operands(i)?;
        if !matches!(d.kind, OperandKind::Pair(..)) {
            return Err(self.fault(d.at.clone(), "`elect` has two results, `d|p`"));
        }
        let mask = self.mask(mask)?;
        let dst = self.value_and_predicate(d)?;
        self.emit(Op::Alu(AluOp::Elect), Class::Vote, &dst, &[mask], 0);
        Ok(())
    }

    pub(super) fn activemask(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        let [d] = self.operands(i)?;
        if ty != Ty::B32 {
            return self.bad_type(i, ty);
        }
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::ActiveMask), Class::Vote, &[d], &[], 0);
        Ok(())
    }
}
