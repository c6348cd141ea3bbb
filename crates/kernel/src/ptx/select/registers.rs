//! `setmaxnreg` (PTX ISA 9.7.19.5): warps of a CTA pass registers on.
//!
//! Values do not depend on it: it is a step of the machine. The ISA lets it have no effect where the kernel's
//! directives do not bound its registers. Here it has none then, which is told.

use super::super::super::ir::{Class, Op, RegisterStep};
use super::super::ast::Instruction;
use super::super::lower::{Lower, Lowered};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["setmaxnreg"], |l, i, m| l.setmaxnreg(i, m))];

impl<'a> Lower<'_, 'a> {
    fn setmaxnreg(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let requests = m.one_of(&[("inc", true), ("dec", false)]);
        let (Some(requests), true, true, true) = (requests, m.take("sync"), m.take("aligned"), m.take("u32")) else {
            let message = "`setmaxnreg` is `.inc.sync.aligned.u32` or `.dec.sync.aligned.u32`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let [count] = self.operands(i)?;
        let registers = self.number(count)?;
        if !(24..=256).contains(&registers) || registers % 8 != 0 {
            let message = format!("{registers} registers are not a multiple of 8 from 24 to 256");
            return Err(self.fault(count.at.clone(), message));
        }
        if self.body.most_registers.is_none() {
            let message = "`setmaxnreg` has no effect: no `.maxnreg`, `.maxntid` or `.reqntid` says how many registers a thread has";
            self.warn(i.opcode.at.clone(), message);
            self.emit(Op::Nop, Class::Control, &[], &[], 0);
            return Ok(());
        }
        self.body.moves_registers = true;
        let registers = registers as u16;
        let step = if requests { RegisterStep::Request(registers) } else { RegisterStep::Release(registers) };
        self.emit(Op::Registers(step), Class::Control, &[], &[], 0);
        Ok(())
    }
}
