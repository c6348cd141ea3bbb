//! Taking clusters that have not begun from the grid (PTX ISA 9.7.13.17): `clusterlaunchcontrol`.
//!
//! | PTX | becomes |
//! |---|---|
//! | `.try_cancel` | a bulk copy of the machine's answer, which completes at a barrier |
//! | `.query_cancel.is_canceled` | a comparison of the answer's last word with 0 |
//! | `.query_cancel.get_first_ctaid` | the words before it |
//!
//! What the answer looks like is in `launch_control` of the crate. An answer that names no cluster has zeros
//! for the CTA, which the ISA leaves undefined. The fourth element of `.v4` gets 0.

use super::super::super::alu::{AluOp, Combine, Compare, CompareKind, IntCmp, Split};
use super::super::super::ir::{Bulk, BulkKind, Class, Op};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::bulk::plain;
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["clusterlaunchcontrol"], |l, i, m| l.launch_control(i, m))];

/// Words of an answer of which a modifier asks for one.
const DIMENSIONS: [(&str, usize); 3] =
    [("get_first_ctaid::x", 0), ("get_first_ctaid::y", 1), ("get_first_ctaid::z", 2)];

/// The word of an answer that says whether a cluster was taken.
const TAKEN: usize = 3;

impl<'a> Lower<'_, 'a> {
    fn launch_control(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.take("try_cancel") {
            return self.try_cancel(i, m);
        }
        if m.take("query_cancel") {
            return self.query_cancel(i, m);
        }
        let message = "`clusterlaunchcontrol` is `.try_cancel` or `.query_cancel`";
        Err(self.fault(i.opcode.at.clone(), message))
    }

    /// `.try_cancel [answer], [barrier]`; both addresses are generic where no space is named.
    fn try_cancel(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let all = ["async", "mbarrier::complete_tx::bytes", "b128"].map(|word| m.take(word));
        if all != [true; 3] {
            let message =
                "`clusterlaunchcontrol.try_cancel` is `.async`, with `.mbarrier::complete_tx::bytes` and `.b128`";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        m.take("shared::cta");
        let multicast = m.take("multicast::cluster::all");
        let [answer, barrier] = self.operands(i)?;
        let (answer, barrier) = (self.shared_operand(answer)?, self.shared_operand(barrier)?);
        let bulk = Bulk { multicast, ..plain(BulkKind::Cancel) };
        self.emit(Op::Bulk(bulk), Class::Mem, &[], &[Arg::None, answer, Arg::None, barrier], 0);
        Ok(())
    }

    fn query_cancel(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let asks_whether = m.take("is_canceled");
        let dimension = m.one_of(&DIMENSIONS);
        let whole = m.take("get_first_ctaid");
        if [asks_whether, dimension.is_some(), whole].into_iter().filter(|asked| *asked).count() != 1 {
            let message = "`clusterlaunchcontrol.query_cancel` needs one of `.is_canceled`, `.get_first_ctaid` and \
                           `.get_first_ctaid::x`, `::y`, `::z`";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        // One type of the result, and that of the answer.
        let result = if asks_whether { "pred" } else { "b32" };
        let vector = m.take("v4");
        if vector != whole || !m.take(result) || !m.take("b128") {
            let message = format!(
                "this `clusterlaunchcontrol.query_cancel` ends with `{}.{result}.b128`",
                if whole { ".v4" } else { "" }
            );
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let [d, from] = self.operands(i)?;
        if asks_whether {
            let taken = Arg::Reg(self.body.register(Bank::R32));
            self.answer_word(from, TAKEN, taken)?;
            let (d, zero) = (self.dst(d, Bank::Pred)?, self.body.literal(Bank::R32, 0));
            let compare = Compare { kind: CompareKind::Int32(IntCmp::Ne), combine: Combine::None };
            self.emit(Op::Alu(AluOp::Setp(compare)), Class::Compare, &[d], &[taken, zero, Arg::None], 0);
            return Ok(());
        }
        if let Some(word) = dimension {
            let d = self.dst(d, Bank::R32)?;
            return self.answer_word(from, word, d);
        }
        let parts = self.elements(d)?.into_owned();
        if parts.len() != TAKEN + 1 {
            return Err(self.fault(d.at.clone(), format!("expected 4 element(s), found {}", parts.len())));
        }
        // `_` is nowhere.
        for (word, part) in parts.iter().enumerate() {
            if matches!(part.kind, OperandKind::Name { name: "_", .. }) {
                continue;
            }
            let d = self.dst(part, Bank::R32)?;
            if word == TAKEN {
                let zero = self.body.literal(Bank::R32, 0);
                self.emit(Op::Alu(AluOp::Mov32), Class::Logic, &[d], &[zero], 0);
            } else {
                self.answer_word(from, word, d)?;
            }
        }
        Ok(())
    }

    /// Moves a word of a register of 128 bits, an answer, to `d`.
    fn answer_word(&mut self, from: &Operand<'a>, word: usize, d: Arg) -> Lowered {
        let halves = self.halves_of(from)?;
        let half = self.src(&halves[word / 2], Ty::B64)?;
        let mut words = [Arg::None; 2];
        words[word % 2] = d;
        self.emit(Op::Alu(AluOp::Split(Split::Unpack2x32)), Class::Logic, &words, &[half], 0);
        Ok(())
    }
}
