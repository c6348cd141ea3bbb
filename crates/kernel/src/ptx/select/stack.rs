//! Memory that a thread takes from its stack at run time (PTX ISA 9.7.15): `alloca`, `stacksave`,
//! `stackrestore`.
//!
//! The stack has the size of that of recursive functions, and lies behind all else that the kernel's code has
//! in local memory. It grows upwards (that of real cards grows downwards). What lies past its end is out of
//! bounds, unless the kernel has recursive functions, whose frames follow. What a function has taken is free
//! again when it ends; functions are inlined, so their callers see to it (`calls.rs`).
//!
//! Not supported, and refused: `alloca` in functions that may call themselves.

use super::super::super::alu::{AluOp, IntOp};
use super::super::super::ir::{Class, Op};
use super::super::ast::Instruction;
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::Bank;
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] =
    &[(&["alloca"], |l, i, m| l.alloca(i, m)), (&["stacksave", "stackrestore"], |l, i, m| l.stack_pointer(i, m))];

/// Alignment where none is given.
const ALIGN: u64 = 8;

impl<'a> Lower<'_, 'a> {
    /// The address of the first byte that is free.
    fn stack_top(&mut self) -> Arg {
        let register = match self.body.stack_top {
            Some(register) => register,
            None => self.body.register(Bank::R64),
        };
        self.body.stack_top = Some(register);
        Arg::Reg(register)
    }

    /// A register with the stack's top before an inlined function that takes memory.
    pub(in super::super) fn save_stack_top(&mut self) -> Arg {
        let (saved, top) = (Arg::Reg(self.body.register(Bank::R64)), self.stack_top());
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[saved], &[top], 0);
        saved
    }

    /// The function has ended: what it took is free again.
    pub(in super::super) fn restore_stack_top(&mut self, saved: Arg) {
        let top = self.stack_top();
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[top], &[saved], 0);
    }

    pub(super) fn alloca(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        if ty.bits != 64 || !ty.is_integer() {
            let message = "generic addresses have 64 bits here; only `alloca.u64` is supported";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        if self.body.owner.is_some() {
            return Err(self.fault(i.opcode.at.clone(), "`alloca` in a function that may call itself is not supported"));
        }
        let (d, size, align) = match i.operands.as_slice() {
            [d, size] => (d, size, ALIGN),
            [d, size, align] => (d, size, u64::from(self.number(align)?)),
            _ => return self.operands::<2>(i).map(|_| ()),
        };
        if !align.is_power_of_two() || align > 1 << 16 {
            return Err(self.fault(i.operands[2].at.clone(), "the alignment must be a power of two up to 65536"));
        }
        // The start is rounded up to the alignment, and the top moves behind the bytes asked for. The
        // result comes last: it may be the register that holds the size.
        let size = self.src(size, ty)?;
        let d = self.dst(d, Bank::R64)?;
        let top = self.stack_top();
        let start = Arg::Reg(self.body.register(Bank::R64));
        let (more, mask) = (self.body.literal(Bank::R64, align - 1), self.body.literal(Bank::R64, !(align - 1)));
        self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Class::Int, &[start], &[top, more], 0);
        self.emit(Op::Alu(AluOp::Int64(IntOp::And)), Class::Logic, &[start], &[start, mask], 0);
        self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Class::Int, &[top], &[start, size], 0);
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[d], &[start], 0);
        Ok(())
    }

    pub(super) fn stack_pointer(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        if ty.bits != 64 || !ty.is_integer() {
            return self.bad_type(i, ty);
        }
        let [operand] = self.operands(i)?;
        let (d, a) = match i.opcode.text {
            "stacksave" => (self.dst(operand, Bank::R64)?, self.stack_top()),
            _ => (self.stack_top(), self.src(operand, ty)?),
        };
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[d], &[a], 0);
        Ok(())
    }
}
