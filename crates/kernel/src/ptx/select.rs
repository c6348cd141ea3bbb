//! Instruction selection: opcode, modifiers and types become one operation of the IR each.
//!
//! Source: PTX ISA 8.x, section 9.7. Each family of opcodes has a file, with a table of its opcodes. A family
//! takes the modifiers it understands from a [`Mods`] list; whatever is left over is reported by name, so an
//! unknown modifier never passes silently.

mod bulk;
mod cluster;
mod compare;
mod control;
mod convert;
mod copy;
mod external;
mod float;
mod half;
mod int;
mod lanes;
mod launch_control;
mod matrix;
mod memory;
mod mma;
mod multimem;
mod persist;
mod phase;
mod registers;
mod stack;
mod surface;
mod tcgen05;
mod tensor;
mod tensor_map;
mod vectors;
mod video;
mod wgmma;
mod wmma;
mod words;

use super::super::alu::AluOp;
use super::super::ir::{Class, Op};
use super::ast::{Instruction, Operand};
use super::draft::Arg;
use super::lower::{Lower, Lowered};
use super::parser::Reported;
use super::types::Ty;
use words::{Family, MODIFIERS, Mods, Select, UNSUPPORTED};

/// The families of opcodes, those that programs use most first.
const FAMILIES: [&[Family]; 23] = [
    int::FAMILY,
    memory::FAMILY,
    convert::FAMILY,
    float::FAMILY,
    control::FAMILY,
    compare::FAMILY,
    lanes::FAMILY,
    matrix::FAMILY,
    mma::FAMILY,
    registers::FAMILY,
    wmma::FAMILY,
    wgmma::FAMILY,
    tcgen05::FAMILY,
    persist::FAMILY,
    copy::FAMILY,
    phase::FAMILY,
    stack::FAMILY,
    multimem::FAMILY,
    cluster::FAMILY,
    launch_control::FAMILY,
    tensor_map::FAMILY,
    surface::FAMILY,
    video::FAMILY,
];

/// Opcodes that lower to something, and what lowers each.
fn opcodes() -> impl Iterator<Item = (&'static str, Select)> {
    let families = FAMILIES.into_iter().flatten();
    families.flat_map(|&(opcodes, select)| opcodes.iter().map(move |&opcode| (opcode, select)))
}

/// What lowers an opcode.
fn lowering(opcode: &str) -> Option<Select> {
    opcodes().find(|&(known, _)| known == opcode).map(|(_, select)| select)
}

impl<'a> Lower<'_, 'a> {
    /// Lowers one instruction.
    pub(super) fn select(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let mut mods = Mods::new(&i.mods);
        let m = &mut mods;
        self.note_hint(i);
        let opcode = i.opcode.text;
        let Some(lower) = lowering(opcode) else { return Err(self.unknown(opcode, i)) };
        match half::operand_type(i) {
            // Halves share opcodes with integers and floats, whose families would not know the type.
            Some(_) if half::calculates(opcode) => self.half(i, m)?,
            Some(ty) if !half::passes(opcode) => return self.bad_type(i, ty),
            _ => lower(self, i, m)?,
        }
        // Only after an instruction was lowered: a family that stops at a fault has not taken all modifiers
        // yet, and those would be reported beside it.
        match mods.left_over() {
            None => Ok(()),
            Some(word) => {
                let message = format!("modifier `.{}` of `{}` is not supported", word.text, i.opcode.text);
                Err(self.fault_near(word.at.clone(), message, word.text, &MODIFIERS))
            }
        }
    }

    fn unknown(&mut self, opcode: &str, i: &Instruction<'a>) -> Reported {
        if let Some((_, what)) = UNSUPPORTED.iter().find(|(name, _)| *name == opcode) {
            return self.fault(i.opcode.at.clone(), format!("`{opcode}` is not supported ({what})"));
        }
        let known: Vec<&str> = opcodes().map(|(opcode, _)| opcode).collect();
        self.fault_near(i.opcode.at.clone(), format!("unknown instruction `{opcode}`"), opcode, &known)
    }

    /// Exactly `N` operands.
    fn operands<const N: usize>(&mut self, i: &'a Instruction<'a>) -> Lowered<&'a [Operand<'a>; N]> {
        match i.operands.as_slice().try_into() {
            Ok(operands) => Ok(operands),
            Err(_) => {
                let found = i.operands.len();
                let message = format!("`{}` takes {N} operands here, found {found}", i.opcode.text);
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// The next type, which must be there.
    fn ty(&mut self, i: &Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<Ty> {
        match m.ty() {
            Some(ty) => Ok(ty),
            None => {
                let Some(word) = m.left_over() else {
                    return Err(self.fault(i.opcode.at.clone(), format!("`{}` needs a type", i.opcode.text)));
                };
                let message = format!("type or modifier `.{}` of `{}` is not supported", word.text, i.opcode.text);
                Err(self.fault_near(word.at.clone(), message, word.text, &MODIFIERS))
            }
        }
    }

    fn bad_type<T>(&mut self, i: &Instruction<'a>, ty: Ty) -> Lowered<T> {
        Err(self.fault(i.opcode.at.clone(), format!("`{}` on type {ty} is not supported", i.opcode.text)))
    }

    /// d = op(a, ...), every operand of type `ty`.
    fn uniform(&mut self, i: &'a Instruction<'a>, op: AluOp, class: Class, ty: Ty, sources: usize) -> Lowered {
        if i.operands.len() != sources + 1 {
            let message = format!("`{}` takes {} operands, found {}", i.opcode.text, sources + 1, i.operands.len());
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let mut src = [Arg::None; 4];
        for (src, operand) in src.iter_mut().zip(&i.operands[1..]) {
            *src = self.src(operand, ty)?;
        }
        let d = self.dst(&i.operands[0], ty.bank())?;
        self.emit(Op::Alu(op), class, &[d], &src, 0);
        Ok(())
    }
}
