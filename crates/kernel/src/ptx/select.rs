//! Instruction selection: opcode, modifiers and types become one operation of the IR each.
//!
//! Source: PTX ISA 8.x, section 9.7. Each family of opcodes has a file. A family takes the modifiers it
//! understands from a [`Mods`] list; whatever is left over is reported by name, so an unknown modifier never
//! passes silently.

mod compare;
mod control;
mod convert;
mod copy;
mod float;
mod half;
mod int;
mod lanes;
mod matrix;
mod memory;
mod persist;
mod phase;
mod stack;
mod surface;
mod video;
mod wmma;
mod words;

use super::super::alu::AluOp;
use super::super::ir::{Class, Op};
use super::ast::{Instruction, Operand};
use super::draft::Arg;
use super::lower::{Lower, Lowered};
use super::parser::Reported;
use super::types::Ty;
use words::{MODIFIERS, Mods, OPCODES, UNSUPPORTED};

impl<'a> Lower<'_, 'a> {
    /// Lowers one instruction.
    pub(super) fn select(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let mut mods = Mods::new(&i.mods);
        let m = &mut mods;
        self.note_hint(i);
        match i.opcode.text {
            // Halves first: they share opcodes with integers and floats, whose families would not know the
            // type.
            opcode if half::calculates(opcode) && half::operand_type(i).is_some() => self.half(i, m)?,
            opcode
                if half::refuses(opcode)
                    && let Some(ty) = half::operand_type(i) =>
            {
                return self.bad_type(i, ty);
            }
            "add" | "sub" => self.add(i, m)?,
            "addc" | "subc" => self.add_carry(i, m)?,
            "mul" => self.mul(i, m)?,
            "mad" => self.mad(i, m)?,
            "madc" => self.mad_carry(i, m)?,
            "mul24" | "mad24" => self.mul24(i, m)?,
            "sad" | "div" | "rem" | "min" | "max" | "abs" | "neg" => self.arithmetic(i, m)?,
            "popc" | "clz" | "bfind" | "brev" => self.count(i, m)?,
            "bfe" | "bfi" => self.bit_field(i, m)?,
            "prmt" => self.permute(i, m)?,
            "fns" => self.find_nth_set(i, m)?,
            "bmsk" => self.bit_mask(i, m)?,
            "dp4a" | "dp2a" => self.dot_product(i, m)?,
            "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => self.logic(i, m)?,
            "lop3" => self.lop3(i, m)?,
            "shf" => self.funnel(i, m)?,
            "szext" => self.extend_field(i, m)?,
            "fma" => self.fma(i, m)?,
            "rcp" | "sqrt" => self.root(i, m)?,
            "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => self.approximation(i, m)?,
            "copysign" => self.copysign(i, m)?,
            "testp" => self.testp(i, m)?,
            "setp" => self.setp(i, m)?,
            "set" => self.set(i, m)?,
            "selp" => self.selp(i, m)?,
            "slct" => self.slct(i, m)?,
            "mov" => self.mov(i, m)?,
            "cvt" => self.cvt(i, m)?,
            "cvta" => self.cvta(i, m)?,
            "isspacep" => self.isspacep(i, m)?,
            // Memory. Families share the parts of an access, in `select/memory.rs`.
            "ld" | "ldu" => self.load(i, m)?,
            "st" => self.store(i, m)?,
            "atom" | "red" => self.atomic(i, m)?,
            "tex" => self.texture(i, m)?,
            "suld" | "sust" => self.surface(i, m)?,
            "suq" => self.surface_query(i, m)?,
            "prefetch" | "prefetchu" | "discard" | "applypriority" => self.prefetch(m),
            "createpolicy" => self.create_policy(i, m)?,
            // Control, barriers and fences.
            "bra" => self.bra(i, m)?,
            "brx" => self.branch_indexed(i, m)?,
            "ret" | "exit" | "trap" | "brkpt" | "nanosleep" | "pmevent" | "griddepcontrol" => self.ending(i, m)?,
            "call" => self.call(i, m)?,
            "alloca" => self.alloca(i, m)?,
            "stacksave" | "stackrestore" => self.stack_pointer(i, m)?,
            "bar" | "barrier" => self.barrier(i, m)?,
            "membar" | "fence" => self.fence(m)?,
            "shfl" => self.shuffle(i, m)?,
            "vote" => self.vote(i, m)?,
            "vmad" => self.video_mad(i, m)?,
            opcode if let Some((op, simd)) = video::operation(opcode) => match simd {
                None => self.video(i, m, op)?,
                Some(elements) => self.video_simd(i, m, op, elements)?,
            },
            "match" => self.matching(i, m)?,
            "cp" => self.async_copy(i, m)?,
            "mbarrier" => self.mbarrier(i, m)?,
            "mma" => self.mma(i, m)?,
            "ldmatrix" => self.ldmatrix(i, m)?,
            "redux" => self.redux(i, m)?,
            "elect" => self.elect(i, m)?,
            "stmatrix" => self.stmatrix(i, m)?,
            "movmatrix" => self.movmatrix(i, m)?,
            "wmma" => self.wmma(i, m)?,
            "activemask" => self.activemask(i, m)?,
            "pm" | "clwb" | "clflushopt" | "sfence" | "ofence" | "dfence" => self.persist(i, m)?,
            other => return Err(self.unknown(other, i)),
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
        self.fault_near(i.opcode.at.clone(), format!("unknown instruction `{opcode}`"), opcode, &OPCODES)
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
