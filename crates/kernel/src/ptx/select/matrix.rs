//! Fragments of matrices (PTX ISA 9.7.14): `ldmatrix`, `stmatrix` and `movmatrix`, and the registers of
//! fragments as operands.

use std::borrow::Cow;

use super::super::super::alu::{AluOp, Combine, Compare, CompareKind, IntCmp, IntOp};
use super::super::super::ir::{AddressIn, Class, Elem, Mem, MemKind, Op, Space, Special};
use super::super::super::memory::SHARED_WINDOW;
use super::super::ast::{Instruction, Operand};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["ldmatrix"], |l, i, m| l.ldmatrix(i, m)),
    (&["stmatrix"], |l, i, m| l.stmatrix(i, m)),
    (&["movmatrix"], |l, i, m| l.movmatrix(i, m)),
];

impl<'a> Lower<'_, 'a> {
    /// `stmatrix`: lanes exchange elements, so that each that has an address holds a row; then these store.
    pub(super) fn stmatrix(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("sync");
        m.take("aligned");
        let transposed = m.take("trans");
        let space = m.one_of(&[("shared", Space::Shared), ("shared::cta", Space::Shared)]).unwrap_or(Space::Generic);
        let matrices = m.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]);
        let (Some(matrices), true, true) = (matrices, m.take("m8n8"), m.take("b16")) else {
            let message = "only `stmatrix` with `.m8n8`, a number of matrices such as `.x4`, and `.b16` is supported";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let [a, r] = self.operands(i)?;
        let mut src = [Arg::None; 4];
        self.fragment(r, Ty::B32, &mut src[..matrices])?;
        let address = self.address(a, space)?;
        let rows: [Arg; 4] = std::array::from_fn(|_| Arg::Reg(self.body.register(Bank::R32)));
        self.emit(Op::Alu(AluOp::MatrixRows(transposed)), Class::Shuffle, &rows, &src, 0);
        let guard = self.guard;
        if matrices < 4 {
            // Eight lanes a matrix have addresses.
            let lane = self.body.special(Special::LaneOfGroup);
            let (inside, count) = (self.body.register(Bank::Pred), self.body.literal(Bank::R32, 8 * matrices as u64));
            let less = Compare { kind: CompareKind::Int32(IntCmp::LtU), combine: Combine::None };
            self.guard = None;
            if guard.is_some() {
                // Lanes that the guard leaves out do not store either.
                let no = self.body.literal(Bank::Pred, 0);
                self.emit(Op::Alu(AluOp::MovPred), Class::Logic, &[Arg::Reg(inside)], &[no], 0);
                self.guard = guard;
            }
            self.emit(Op::Alu(AluOp::Setp(less)), Class::Compare, &[Arg::Reg(inside)], &[lane, count], 0);
            self.guard = Some((inside, false));
        }
        let mem =
            Mem { vec: 4, address: AddressIn::slot(address.wide), ..plain_access(MemKind::Store, space, Elem::U32) };
        self.emit(Op::Mem(mem), Class::Mem, &rows, &[address.base], address.offset);
        self.guard = guard;
        Ok(())
    }

    /// `movmatrix`
    pub(super) fn movmatrix(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        for word in ["sync", "aligned", "m8n8", "trans", "b16"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`movmatrix` needs `.{word}`")));
            }
        }
        self.uniform(i, AluOp::Transpose, Class::Shuffle, Ty::B32, 1)
    }

    /// The registers of a fragment that is read.
    pub(super) fn fragment(&mut self, operand: &Operand<'a>, ty: Ty, out: &mut [Arg]) -> Lowered {
        let parts = self.parts(operand, out.len())?;
        for (out, part) in out.iter_mut().zip(&*parts) {
            *out = self.src(part, ty)?;
        }
        Ok(())
    }

    /// The registers of a fragment that is written.
    pub(super) fn results(&mut self, operand: &Operand<'a>, bank: Bank, out: &mut [Arg]) -> Lowered {
        let parts = self.parts(operand, out.len())?;
        for (out, part) in out.iter_mut().zip(&*parts) {
            *out = self.dst(part, bank)?;
        }
        Ok(())
    }

    pub(super) fn parts<'o>(&mut self, operand: &'o Operand<'a>, registers: usize) -> Lowered<Cow<'o, [Operand<'a>]>> {
        let parts = self.elements(operand)?;
        if parts.len() != registers {
            let found = parts.len();
            return Err(self.fault(operand.at.clone(), format!("expected {registers} register(s), found {found}")));
        }
        Ok(parts)
    }

    pub(super) fn ldmatrix(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("sync");
        m.take("aligned");
        let transposed = m.take("trans");
        let space = m.one_of(&[("shared", Space::Shared), ("shared::cta", Space::Shared)]).unwrap_or(Space::Generic);
        let matrices = m.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]);
        if !m.take("m8n8") || !m.take("b16") {
            return Err(self.fault(i.opcode.at.clone(), "only `ldmatrix` with `.m8n8` and `.b16` is supported"));
        }
        let Some(matrices) = matrices else {
            return Err(self.fault(i.opcode.at.clone(), "`ldmatrix` needs a number of matrices such as `.x4`"));
        };
        let [d, a] = self.operands(i)?;
        let mut dst = [Arg::None; 4];
        self.results(d, Bank::R32, &mut dst[..matrices])?;
        let mut address = self.address(a, space)?;
        if space == Space::Generic {
            if !address.wide {
                return Err(self.fault(a.at.clone(), "a generic address has 64 bits; `.shared` is missing?"));
            }
            // It must lie in shared memory; one that does not is out of its bounds.
            let (base, by) = (Arg::Reg(self.body.register(Bank::R64)), SHARED_WINDOW.wrapping_neg());
            let by = self.body.literal(Bank::R64, by);
            self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Class::Int, &[base], &[address.base, by], 0);
            address.base = base;
        }
        // A lane's part is a row of 16 bytes.
        let mem = Mem {
            vec: 4,
            address: AddressIn::slot(address.wide),
            ..plain_access(MemKind::Matrix(transposed), Space::Shared, Elem::U32)
        };
        self.emit(Op::Mem(mem), Class::Mem, &dst, &[address.base], address.offset);
        Ok(())
    }
}
