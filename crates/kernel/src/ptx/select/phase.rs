//! Barriers in shared memory (PTX ISA 9.7.13.15): `mbarrier`, and `cp.async.mbarrier.arrive`.
//!
//! An object is a word of shared memory: arrivals are atomics on it. A test is a load of the word and the
//! comparison, two instructions here. `try_wait` does not suspend: it is a test, as the ISA leaves the time
//! open for which it waits. A count in a register is widened first, by an instruction of its own.
//!
//! An object may lie in another CTA of the cluster. Where the scope of an arrival or of a test is the
//! cluster, and it is not `.relaxed`, a fence stands before or behind it.
//!
//! Not supported: generic addresses.

use super::super::super::alu::{AluOp, Cvt, Num};
use super::super::super::ir::{AddressIn, AtomOp, CacheOp, Class, Elem, Mem, MemKind, Op, PhaseOp, Scope, Space};
use super::super::super::semantics::phase::{DROP, NO_COMPLETE};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["mbarrier"], |l, i, m| l.mbarrier(i, m))];

/// What an `mbarrier` instruction does.
#[derive(Clone, Copy, PartialEq)]
enum PhaseStep {
    Begin,
    End,
    /// An arrival; it drops out of later phases when `true`.
    Arrive(bool),
    /// More bytes are awaited, or fewer.
    Bytes(PhaseOp),
    Pending,
    Test,
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn mbarrier(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let steps = [
            ("init", PhaseStep::Begin),
            ("inval", PhaseStep::End),
            ("arrive", PhaseStep::Arrive(false)),
            ("arrive_drop", PhaseStep::Arrive(true)),
            ("expect_tx", PhaseStep::Bytes(PhaseOp::Expect)),
            ("complete_tx", PhaseStep::Bytes(PhaseOp::Complete)),
            ("pending_count", PhaseStep::Pending),
            ("test_wait", PhaseStep::Test),
            ("try_wait", PhaseStep::Test),
        ];
        // What is left of the words depends on the step.
        let Some(step) = m.one_of(&steps) else {
            let message = "`mbarrier` is `.init`, `.inval`, `.arrive`, `.arrive_drop`, `.expect_tx`, `.complete_tx`, \
                           `.pending_count`, `.test_wait` or `.try_wait`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        if step == PhaseStep::Pending {
            return self.pending_count(i, m);
        }
        self.in_shared_memory(i, m)?;
        // The warps of a CTA share its memory, in which accesses happen in order: only other CTAs need a
        // fence.
        let relaxed = m.take("relaxed");
        let orders = m.take("cluster") && !relaxed;
        m.skip(|word| matches!(word, "release" | "acquire" | "cta"));
        let parity = step == PhaseStep::Test && m.take("parity");
        let of_arrival = matches!(step, PhaseStep::Arrive(_));
        let expects = of_arrival && m.take("expect_tx");
        let no_complete = of_arrival && m.take("noComplete");
        match (step, i.operands.as_slice()) {
            (PhaseStep::Begin, [object, count]) => {
                let count = self.wide_count(count)?;
                self.phase_atomic(PhaseOp::Begin, Arg::None, object, [count, Arg::None])
            }
            (PhaseStep::End, [object]) => self.phase_atomic(PhaseOp::End, Arg::None, object, [Arg::None; 2]),
            (PhaseStep::Bytes(op), [object, bytes]) => {
                let bytes = self.wide_count(bytes)?;
                self.phase_atomic(op, Arg::None, object, [bytes, Arg::None])
            }
            // The number is one of arrivals, or of bytes beside one arrival.
            (PhaseStep::Arrive(drops), [state, object, count @ ..]) if count.len() <= 1 => {
                let count = match count {
                    [count] => self.wide_count(count)?,
                    [] if expects => {
                        return Err(self.fault(i.opcode.at.clone(), "`.expect_tx` needs a number of bytes"));
                    }
                    _ => self.body.literal(Bank::R64, 1),
                };
                let state = match state.kind {
                    OperandKind::Name { name: "_", .. } => Arg::None,
                    _ => self.dst(state, Bank::R64)?,
                };
                // How it arrives is the second operand of the atomic.
                let flag = |set: bool, flag: u64| if set { flag } else { 0 };
                let how = flag(no_complete, NO_COMPLETE) | flag(drops, DROP);
                let how = self.body.literal(Bank::R64, how);
                let op = if expects { PhaseOp::ArriveExpecting } else { PhaseOp::Arrive };
                if orders {
                    self.emit(Op::Fence(Scope::Gpu), Class::Control, &[], &[], 0);
                }
                self.phase_atomic(op, state, object, [count, how])
            }
            // A time to wait may follow, which nothing depends on here.
            (PhaseStep::Test, [over, object, state, hint @ ..]) if hint.len() <= 1 => {
                let address = self.address(object, Space::Shared)?;
                let state = self.src(state, if parity { Ty::B32 } else { Ty::B64 })?;
                let over = self.dst(over, Bank::Pred)?;
                let word = Arg::Reg(self.body.register(Bank::R64));
                let mem = Mem {
                    wide: true,
                    address: AddressIn::slot(address.wide),
                    ..plain_access(MemKind::Load, Space::Shared, Elem::U64)
                };
                self.emit(Op::Mem(mem), Class::Mem, &[word], &[address.base], address.offset);
                self.emit(Op::Alu(AluOp::PhaseOver(parity)), Class::Compare, &[over], &[word, state], 0);
                if orders {
                    self.emit(Op::Fence(Scope::Gpu), Class::Control, &[], &[], 0);
                }
                Ok(())
            }
            _ => {
                let message = format!("`mbarrier` does not take {} operands here", i.operands.len());
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// `cp.async.mbarrier.arrive`. Without `.noinc` the arrival is awaited in addition.
    pub(super) fn arrive_behind_copies(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if !m.take("arrive") {
            return Err(self.fault(i.opcode.at.clone(), "`cp.async.mbarrier` needs `.arrive`"));
        }
        let counted = m.take("noinc");
        self.in_shared_memory(i, m)?;
        let [object] = self.operands(i)?;
        let one = self.body.literal(Bank::R64, 1);
        if !counted {
            self.phase_atomic(PhaseOp::Await, Arg::None, object, [one, Arg::None])?;
        }
        self.phase_atomic(PhaseOp::ArriveBehindCopies, Arg::None, object, [one, Arg::None])
    }

    fn pending_count(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("b64");
        let [count, state] = self.operands(i)?;
        let (count, state) = (self.dst(count, Bank::R32)?, self.src(state, Ty::B64)?);
        self.emit(Op::Alu(AluOp::PhasePending), Class::Logic, &[count], &[state], 0);
        Ok(())
    }

    fn in_shared_memory(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.one_of(&[("shared", ()), ("shared::cta", ()), ("shared::cluster", ())]).is_some() && m.take("b64") {
            return Ok(());
        }
        Err(self.fault(i.opcode.at.clone(), "barriers need `.shared` and `.b64`"))
    }

    /// An atomic with two operands.
    fn phase_atomic(&mut self, op: PhaseOp, d: Arg, object: &'a Operand<'a>, of: [Arg; 2]) -> Lowered {
        let address = self.address(object, Space::Shared)?;
        let kind = if d == Arg::None { MemKind::Reduction } else { MemKind::Atomic };
        let mem = Mem {
            atom: AtomOp::Phase(op),
            wide: true,
            address: AddressIn::slot(address.wide),
            cache: CacheOp::Volatile,
            ..plain_access(kind, Space::Shared, Elem::U64)
        };
        self.emit(Op::Mem(mem), Class::Mem, &[d], &[address.base, of[0], of[1]], address.offset);
        Ok(())
    }

    /// A count as a 64-bit operand.
    fn wide_count(&mut self, operand: &'a Operand<'a>) -> Lowered<Arg> {
        if let OperandKind::Int(value) = operand.kind {
            return Ok(self.body.literal(Bank::R64, value));
        }
        let (narrow, wide) = (self.src(operand, Ty::U32)?, Arg::Reg(self.body.register(Bank::R64)));
        let cvt = Cvt { wide_to: true, ..Cvt::exact(Num::U32, Num::U64) };
        self.emit(Op::Alu(AluOp::Cvt(cvt)), Class::Convert, &[wide], &[narrow], 0);
        Ok(wide)
    }
}
