//! Vectors that take more than one access, and atomics of 16 bytes (PTX ISA 9.7.9 "ld", "st"; 9.7.13 "atom",
//! "red" with vectors).
//!
//! | vector | accesses |
//! |---|---|
//! | `ld`, `st` of 32 bytes in global memory (`.v8.b32`, `.v4.b64`) | two, of a half each |
//! | `ld`, `st` of eight elements | the same |
//! | `atom`, `red` with `.v2`, `.v4`, `.v8` | one an element: the ISA has an element alone atomic |
//! | `atom.exch`, `atom.cas` of `.b128` | one: it is atomic as a whole |
//!
//! The part that is first in memory demands the alignment of the vector.
//!
//! Not modelled: that a card moves 32 bytes of a thread by one instruction. Not supported, and refused:
//! minima and maxima of vectors of pairs.

use super::super::super::alu::AluOp;
use super::super::super::ir::{AtomOp, Class, Mem, MemKind, Op, Space};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::operand::Address;
use super::super::types::{Bank, Ty};
use super::memory::Access;

impl Access {
    pub(super) fn bytes(&self) -> u32 {
        self.elem.bytes() * u32::from(self.vec)
    }

    /// A half of what one access cannot move: it has up to four elements and 16 bytes.
    pub(super) fn half(&self) -> Option<Access> {
        (self.vec > 4 || self.bytes() > 16).then_some(Access { vec: self.vec / 2, ..*self })
    }
}

impl<'a> Lower<'_, 'a> {
    /// Register and address operands of the two halves of an access, in the order in which they are to be
    /// made, and the bytes to whose multiple each is aligned, 0 for those of its own.
    pub(super) fn halves(
        &mut self,
        data: &Operand<'a>,
        address: &Operand<'a>,
        access: &Access,
    ) -> Lowered<[(Operand<'a>, Operand<'a>, u8); 2]> {
        let parts = self.elements(data)?.into_owned();
        self.vector_length(data, parts.len(), access)?;
        let (low, high) = parts.split_at(parts.len() / 2);
        let vector = |parts: &[Operand<'a>]| Operand { kind: OperandKind::Vector(parts.to_vec()), at: data.at.clone() };
        let by = access.bytes() / 2;
        let first = (vector(low), address.clone(), access.bytes() as u8);
        let second = (vector(high), beyond(address, by), 0);
        // A load may overwrite the register of its address: that half comes last.
        let named = |operand: &Operand<'a>| match operand.kind {
            OperandKind::Name { name, component, .. } => Some((name, component)),
            _ => None,
        };
        let base = match &address.kind {
            OperandKind::Address(parts) => parts.first().and_then(named),
            _ => None,
        };
        let overwritten = base.is_some() && low.iter().any(|part| named(part) == base);
        Ok(if overwritten { [second, first] } else { [first, second] })
    }

    /// `atom`, `red` on the elements of a vector, in the order of the text. `mem` is that of one.
    pub(super) fn atomic_vector(
        &mut self,
        i: &'a Instruction<'a>,
        (d, a): (Option<&Operand<'a>>, &Operand<'a>),
        address: &Address,
        mem: Mem,
        (ty, count): (Ty, u8),
    ) -> Lowered {
        let half = ty.half();
        let most = if half.is_some_and(|half| !half.is_pair()) { 8 } else { 4 };
        let typed = half.is_some() || ty == Ty::F32 && mem.atom == AtomOp::Add;
        if !typed || count > most || !matches!(mem.space, Space::Global | Space::Generic) {
            let message = "vectors of atomics are `.v2` and `.v4` of `.f32`, to add, and of pairs of halves, `.v2` to \
                           `.v8` of halves, in global memory";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        // What each element adds, and where its old value goes; `_` is nowhere.
        let (mut dst, mut src) = (Vec::new(), Vec::new());
        let parts = self.elements(a)?.into_owned();
        self.elements_are(a, parts.len(), count)?;
        for part in &parts {
            src.push(self.src(part, ty)?);
        }
        if let Some(d) = d {
            let parts = self.elements(d)?.into_owned();
            self.elements_are(d, parts.len(), count)?;
            for part in &parts {
                let nowhere = matches!(part.kind, OperandKind::Name { name: "_", .. });
                dst.push(if nowhere { Arg::None } else { self.dst(part, Bank::R32)? });
            }
        }
        // An element's result must not overwrite what a later element reads.
        let mut base = address.base;
        if dst.iter().any(|d| *d != Arg::None && (src.contains(d) || base == *d)) {
            for read in src.iter_mut().chain(if address.wide { None } else { Some(&mut base) }) {
                let copy = Arg::Reg(self.body.register(Bank::R32));
                self.emit(Op::Alu(AluOp::Mov32), Class::Logic, &[copy], &[*read], 0);
                *read = copy;
            }
        }
        // The first demands the alignment of all.
        for (number, &a) in src.iter().enumerate() {
            let d = dst.get(number).copied().unwrap_or(Arg::None);
            let at = mem.elem.bytes() * number as u32;
            let Some(offset) = address.offset.checked_add_unsigned(at) else {
                return Err(self.fault(i.opcode.at.clone(), "the offset of an element does not fit 32 bits"));
            };
            let kind = if d == Arg::None { MemKind::Reduction } else { MemKind::Atomic };
            let whole = if number == 0 { count * mem.elem.bytes() as u8 } else { 0 };
            self.emit(Op::Mem(Mem { kind, whole, ..mem }), Class::Mem, &[d], &[base, a], offset);
        }
        Ok(())
    }

    /// `atom` on registers of 128 bits: the result, the address, and one or two operands.
    pub(super) fn atomic_pair(&mut self, operands: &[Operand<'a>], address: &Address, mem: Mem) -> Lowered {
        let mut dst = [Arg::None; 4];
        if !matches!(operands[0].kind, OperandKind::Name { name: "_", .. }) {
            for (d, half) in dst.iter_mut().zip(&self.halves_of(&operands[0])?) {
                *d = self.dst(half, Bank::R64)?;
            }
        }
        let mut src = [address.base, Arg::None, Arg::None];
        for (a, half) in src[1..].iter_mut().zip(&self.halves_of(&operands[2])?) {
            *a = self.src(half, Ty::B64)?;
        }
        if let Some(new) = operands.get(3) {
            for (b, half) in dst[2..].iter_mut().zip(&self.halves_of(new)?) {
                *b = self.src(half, Ty::B64)?;
            }
        }
        let kind = if dst[0] == Arg::None { MemKind::Reduction } else { MemKind::Atomic };
        self.emit(Op::Mem(Mem { kind, vec: 2, ..mem }), Class::Mem, &dst, &src, address.offset);
        Ok(())
    }

    /// The halves of a register of 128 bits, the lower one first.
    pub(super) fn halves_of(&mut self, operand: &Operand<'a>) -> Lowered<[Operand<'a>; 2]> {
        let parts = self.elements(operand)?.into_owned();
        parts.try_into().map_err(|_| self.fault(operand.at.clone(), "expected a register of type `.b128`"))
    }

    fn elements_are(&mut self, operand: &Operand<'a>, found: usize, count: u8) -> Lowered {
        if found == usize::from(count) {
            return Ok(());
        }
        Err(self.fault(operand.at.clone(), format!("expected {count} element(s), found {found}")))
    }
}

/// The address that lies `by` bytes behind another.
fn beyond<'a>(address: &Operand<'a>, by: u32) -> Operand<'a> {
    let kind = match &address.kind {
        OperandKind::Address(parts) => OperandKind::Address(parts.iter().map(|part| beyond(part, by)).collect()),
        OperandKind::Name { name, component, offset } => {
            OperandKind::Name { name, component: *component, offset: offset.saturating_add(by.into()) }
        }
        OperandKind::Int(at) => OperandKind::Int(at.wrapping_add(by.into())),
        other => other.clone(),
    };
    Operand { kind, at: address.at.clone() }
}
