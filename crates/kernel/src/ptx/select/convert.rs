//! Moves and conversions (PTX ISA 9.7.9): mov with vector packing, cvt, cvta, isspacep.

use super::super::super::alu::{
    AluOp, Cvt, CvtPack, CvtPair, CvtTf32, Fp8, HalfType, IntOp, Num, Round, SpaceTest, Split, Tf32Round, ToFp8,
};
use super::super::super::ir::{Class, ConstSource, MachineRead, Op};
use super::super::super::memory::{CONST_WINDOW, LOCAL_WINDOW, SHARED_WINDOW};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, Const};
use super::super::layout::Symbol;
use super::super::lower::{Lower, Lowered, Name};
use super::super::operand::{SpecialSource, special};
use super::super::types::{Bank, Class as TyClass, Ty};
use super::words::{Family, Mods};

mod tiny;

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["mov"], |l, i, m| l.mov(i, m)),
    (&["cvt"], |l, i, m| l.cvt(i, m)),
    (&["cvta"], |l, i, m| l.cvta(i, m)),
    (&["isspacep"], |l, i, m| l.isspacep(i, m)),
];

/// Packing and unpacking by total width and elements; element type.
fn split(bits: u32, elements: usize) -> Option<(Split, Split, Ty)> {
    let element = |bits| Ty { class: TyClass::Untyped, bits };
    Some(match (bits, elements) {
        (64, 2) => (Split::Pack2x32, Split::Unpack2x32, element(32)),
        (64, 4) => (Split::Pack4x16, Split::Unpack4x16, element(16)),
        (32, 2) => (Split::Pack2x16, Split::Unpack2x16, element(16)),
        (32, 4) => (Split::Pack4x8, Split::Unpack4x8, element(8)),
        (16, 2) => (Split::Pack2x8, Split::Unpack2x8, element(8)),
        _ => return None,
    })
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn mov(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        let [d, a] = self.operands(i)?;
        if ty == Ty::B128 {
            return self.move_vector(Ty::B64, 2, d, a);
        }
        if let Some(elements @ (2 | 4)) = m.one_of(&[("v2", 2), ("v4", 4)]) {
            return self.move_vector(ty, elements, d, a);
        }
        // A vector of registers stands for its elements in braces.
        let (to, from) = (self.elements(d)?, self.elements(a)?);
        match (&d.kind, &a.kind) {
            _ if to.len() > 1 => return self.unpack(i, ty, &to, a),
            _ if from.len() > 1 => return self.pack(i, ty, d, &from),
            // A half of the timer.
            (_, OperandKind::Name { name: name @ ("%globaltimer_lo" | "%globaltimer_hi"), .. }) => {
                let d = self.dst(d, Bank::R32)?;
                let halves = if name.ends_with("lo") { [d, Arg::None] } else { [Arg::None, d] };
                let timer = Arg::Reg(self.body.register(Bank::R64));
                self.emit(Op::Machine(MachineRead::GlobalTimer), Class::Logic, &[timer], &[], 0);
                self.emit(Op::Alu(AluOp::Split(Split::Unpack2x32)), Class::Logic, &halves, &[timer], 0);
                return Ok(());
            }
            // Registers that the machine alone knows, and handles.
            (_, OperandKind::Name { name, component, .. }) => {
                if let Some(SpecialSource::Machine(what)) = special(name, *component)
                    && name.starts_with('%')
                {
                    let bank = if what.is_wide() { Bank::R64 } else { Bank::R32 };
                    let d = self.dst(d, bank)?;
                    self.emit(Op::Machine(what), Class::Logic, &[d], &[], 0);
                    return Ok(());
                }
                if let Some(Symbol::Texture | Symbol::Surface) = self.env.symbols.get(*name) {
                    return self.handle_of(d, name);
                }
            }
            _ => {}
        }
        let op = match ty.bank() {
            Bank::R32 => AluOp::Mov32,
            Bank::R64 => AluOp::Mov64,
            Bank::Pred => AluOp::MovPred,
        };
        let (a, negated) = if ty.class == TyClass::Pred { self.src_pred(a)? } else { (self.src(a, ty)?, 0) };
        let d = self.dst(d, ty.bank())?;
        self.pass_handle(d, a);
        self.emit(Op::Alu(op), Class::Logic, &[d], &[a], negated);
        Ok(())
    }

    /// `mov.v2.b32`: element by element.
    fn move_vector(&mut self, ty: Ty, elements: usize, d: &Operand<'a>, a: &Operand<'a>) -> Lowered {
        let (to, from) = (self.elements(d)?.into_owned(), self.elements(a)?.into_owned());
        for (operand, parts) in [(d, &to), (a, &from)] {
            if parts.len() != elements {
                let message = format!("expected {elements} elements, found {}", parts.len());
                return Err(self.fault(operand.at.clone(), message));
            }
        }
        let (mut dst, mut src) = ([Arg::None; 4], [Arg::None; 4]);
        for (number, (d, a)) in to.iter().zip(&from).enumerate() {
            (dst[number], src[number]) = (self.dst(d, ty.bank())?, self.src(a, ty)?);
        }
        self.emit(Op::Alu(AluOp::MovVec(ty.bank() == Bank::R64)), Class::Logic, &dst, &src, 0);
        Ok(())
    }

    /// A register gets the address of a texture or surface reference: its value does not matter.
    fn handle_of(&mut self, d: &Operand<'a>, name: &str) -> Lowered {
        let d = self.dst(d, Bank::R64)?;
        if let Arg::Reg(register) = d {
            self.handles.insert(register, name.to_owned());
        }
        let zero = self.body.literal(Bank::R64, 0);
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[d], &[zero], 0);
        Ok(())
    }

    /// A copy of a handle is a handle.
    fn pass_handle(&mut self, d: Arg, a: Arg) {
        if let (Arg::Reg(d), Arg::Reg(a)) = (d, a)
            && let Some(name) = self.handles.get(&a).cloned()
        {
            self.handles.insert(d, name);
        }
    }

    fn pack(&mut self, i: &Instruction<'a>, ty: Ty, d: &Operand<'a>, parts: &[Operand<'a>]) -> Lowered {
        let Some((pack, _, element)) = split(ty.bits, parts.len()) else {
            return self.bad_type(i, ty);
        };
        let mut src = [Arg::None; 4];
        for (src, part) in src.iter_mut().zip(parts) {
            *src = self.src_element(part, element)?;
        }
        let d = self.dst(d, ty.bank())?;
        self.emit(Op::Alu(AluOp::Split(pack)), Class::Logic, &[d], &src, 0);
        Ok(())
    }

    /// An element of a vector: floats of its width are bits too.
    fn src_element(&mut self, part: &Operand<'a>, element: Ty) -> Lowered<Arg> {
        self.src(part, element)
    }

    fn unpack(&mut self, i: &Instruction<'a>, ty: Ty, parts: &[Operand<'a>], a: &Operand<'a>) -> Lowered {
        let Some((_, unpack, _)) = split(ty.bits, parts.len()) else {
            return self.bad_type(i, ty);
        };
        let a = self.src(a, Ty { class: TyClass::Untyped, bits: ty.bits })?;
        let mut dst = [Arg::None; 4];
        for (dst, part) in dst.iter_mut().zip(parts) {
            if !matches!(part.kind, OperandKind::Name { name: "_", .. }) {
                *dst = self.dst(part, Bank::R32)?;
            }
        }
        self.emit(Op::Alu(AluOp::Split(unpack)), Class::Logic, &dst, &[a], 0);
        Ok(())
    }

    pub(super) fn cvt(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.take("pack") {
            return self.convert_packed(i, m);
        }
        if m.take("tf32") {
            return self.convert_tf32(i, m);
        }
        if let Some(format) = m.one_of(&[("e4m3x2", Fp8::E4m3), ("e5m2x2", Fp8::E5m2)]) {
            return self.convert_fp8(i, m, format);
        }
        if let Some(pair) = tiny::tiny_pair(m) {
            return self.convert_tiny(i, m, pair);
        }
        let integral =
            m.one_of(&[("rni", Round::Nearest), ("rzi", Round::Zero), ("rmi", Round::Down), ("rpi", Round::Up)]);
        let (round, ftz, sat, relu) = (m.rounding(), m.take("ftz"), m.take("sat"), m.take("relu"));
        let finite = m.take("satfinite");
        let (to_ty, from_ty) = (self.ty(i, m)?, self.ty(i, m)?);
        if let Some(half) = to_ty.half()
            && half.is_pair()
        {
            if integral.is_some() || ftz || sat || from_ty != Ty::F32 {
                return self.bad_conversion(i, to_ty, from_ty);
            }
            let Some(round @ (Round::Nearest | Round::Zero)) = round else {
                return Err(self.fault(i.opcode.at.clone(), format!("`cvt{to_ty}.f32` needs `.rn` or `.rz`")));
            };
            return self.convert_pair(i, CvtPair { to: half.format(), round, relu, finite });
        }
        let (Some(to), Some(from)) = (to_ty.num(), from_ty.num()) else {
            return self.bad_conversion(i, to_ty, from_ty);
        };
        // `.relu` has two roundings, and goes from single to half precision alone.
        let two = matches!(round, Some(Round::Nearest | Round::Zero));
        let rectifies = to_ty.half().is_some() && from == Num::F32 && two && !sat && !ftz;
        if (relu || finite) && !rectifies || sat && to == Num::Bf16 || ftz && ![to, from].contains(&Num::F32) {
            return self.bad_conversion(i, to_ty, from_ty);
        }
        let [d, a] = self.operands(i)?;
        let (a, wide_from) = self.src_any(a, from_ty)?;
        let (d, wide_to) = self.dst_any(d, to_ty.bank())?;
        if to_ty.bits == 64 && !wide_to || from_ty.bits == 64 && !wide_from {
            return Err(self.fault(i.opcode.at.clone(), format!("`cvt{to_ty}{from_ty}` needs a 64-bit register")));
        }
        // Float to integer truncates unless a modifier says otherwise; everything else rounds to nearest.
        let truncates = from.is_float() && !to.is_float();
        let default = if truncates { Round::Zero } else { Round::Nearest };
        let cvt = Cvt {
            from,
            to,
            round: integral.or(round).unwrap_or(default),
            integral: integral.is_some() && to.is_float() && from.is_float(),
            ftz,
            sat,
            relu,
            finite,
            wide_from,
            wide_to,
        };
        self.emit(Op::Alu(AluOp::Cvt(cvt)), Class::Convert, &[d], &[a], 0);
        Ok(())
    }

    /// `cvt.rn.f16x2.f32 d, a, b`: a becomes the upper half.
    fn convert_pair(&mut self, i: &'a Instruction<'a>, cvt: CvtPair) -> Lowered {
        let [d, a, b] = self.operands(i)?;
        let src = [self.src(a, Ty::F32)?, self.src(b, Ty::F32)?];
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::CvtPair(cvt)), Class::Convert, &[d], &src, 0);
        Ok(())
    }

    /// `cvt.rn.satfinite.e4m3x2.f32 d, a, b`, the same of `.f16x2`, and back to `.f16x2`.
    fn convert_fp8(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, format: Fp8) -> Lowered {
        let (round, relu, finite) = (m.rounding(), m.take("relu"), m.take("satfinite"));
        // The format stands first if it is that of the result.
        let narrows = i.mods.last().is_some_and(|word| !matches!(word.text, "e4m3x2" | "e5m2x2"));
        let ty = self.ty(i, m)?;
        let halves = ty == Ty { class: TyClass::Half(HalfType::F16x2), bits: 32 };
        if round != Some(Round::Nearest) || finite != narrows || !(halves || narrows && ty == Ty::F32) {
            let message =
                "conversions of 8-bit floats are `.rn.satfinite` from `.f32` and `.f16x2`, and `.rn` to `.f16x2`";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let (d, src) = match (narrows, halves) {
            (true, false) => {
                let [d, a, b] = self.operands(i)?;
                (d, [self.src(a, ty)?, self.src(b, ty)?])
            }
            _ => {
                let [d, a] = self.operands(i)?;
                let from = if narrows { Ty::B32 } else { Ty { class: TyClass::Untyped, bits: 16 } };
                (d, [self.src(a, from)?, Arg::None])
            }
        };
        let d = self.dst(d, Bank::R32)?;
        let op = match narrows {
            true => AluOp::ToFp8(ToFp8 { format, halves, relu }),
            false => AluOp::FromFp8(format, relu),
        };
        self.emit(Op::Alu(op), Class::Convert, &[d], &src, 0);
        Ok(())
    }

    /// `cvt.rna.tf32.f32`, and `.rn`, `.rz` with `.relu`
    fn convert_tf32(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let round = m.one_of(&[("rna", Tf32Round::Away), ("rn", Tf32Round::Even), ("rz", Tf32Round::Zero)]);
        let (relu, finite, ty) = (m.take("relu"), m.take("satfinite"), self.ty(i, m)?);
        let Some(round) = round.filter(|round| ty == Ty::F32 && !(relu && *round == Tf32Round::Away)) else {
            let message = "conversions to `.tf32` are `.rna`, `.rn` and `.rz` from `.f32` (`.relu` with the last two)";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let [d, a] = self.operands(i)?;
        let a = self.src(a, Ty::F32)?;
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::CvtTf32(CvtTf32 { round, relu, finite })), Class::Convert, &[d], &[a], 0);
        Ok(())
    }

    /// `cvt.pack.sat.s16.s32 d, a, b`, and `cvt.pack.sat.u8.s32.b32 d, a, b, c`
    fn convert_packed(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let sat = m.take("sat");
        let to = m.one_of(&[
            ("u16", (16, false)),
            ("s16", (16, true)),
            ("u8", (8, false)),
            ("s8", (8, true)),
            ("u4", (4, false)),
            ("s4", (4, true)),
            ("u2", (2, false)),
            ("s2", (2, true)),
        ]);
        let from = m.take("s32");
        let (Some((bits, signed)), true, true) = (to, sat, from) else {
            let message = "`cvt.pack` is `.sat` to `.u16` or `.s16`, or to 8, 4 or 2 bits with `.b32`, from `.s32`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let merges = bits < 16;
        if m.take("b32") != merges {
            let message = "`cvt.pack` to less than 16 bits ends in `.b32`, the type of `c`, and to 16 bits does not";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let op = AluOp::CvtPack(CvtPack { bits, signed, merges });
        self.uniform(i, op, Class::Convert, Ty::B32, if merges { 3 } else { 2 })
    }

    fn bad_conversion(&mut self, i: &Instruction<'a>, to: Ty, from: Ty) -> Lowered {
        let said: String = i.mods.iter().map(|word| format!(".{}", word.text)).collect();
        Err(self.fault(i.opcode.at.clone(), format!("`cvt{said}`: this conversion of {from} to {to} is not supported")))
    }

    pub(super) fn cvta(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let to = m.take("to");
        let window = m.one_of(&[
            ("global", 0),
            ("shared", SHARED_WINDOW),
            ("shared::cta", SHARED_WINDOW),
            ("shared::cluster", SHARED_WINDOW),
            ("local", LOCAL_WINDOW),
            ("const", CONST_WINDOW),
            ("param", CONST_WINDOW),
            ("param::entry", CONST_WINDOW),
        ]);
        let Some(window) = window else {
            return Err(self.fault(i.opcode.at.clone(), "`cvta` needs a state space"));
        };
        let ty = self.ty(i, m)?;
        if ty.bits != 64 {
            let message = "generic addresses have 64 bits here; `cvta` of 32-bit addresses is not supported";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let [d, a] = self.operands(i)?;
        // The address of a parameter block of an inlined call lies in local memory.
        let window = match a.kind {
            OperandKind::Name { name, component: None, .. } if matches!(self.name(name)?, Some(Name::Block(_))) => {
                LOCAL_WINDOW
            }
            _ => window,
        };
        let a = self.src(a, Ty::B64)?;
        let d = self.dst(d, Bank::R64)?;
        if window == 0 {
            self.pass_handle(d, a);
            self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[d], &[a], 0);
        } else {
            let by = if to { window.wrapping_neg() } else { window };
            let by = self.body.constant(Bank::R64, Const::Source(ConstSource::Literal(by)));
            self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Class::Int, &[d], &[a, by], 0);
        }
        Ok(())
    }

    pub(super) fn isspacep(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let space = m.one_of(&[
            ("global", SpaceTest::Global),
            ("shared", SpaceTest::SharedCta),
            ("shared::cta", SpaceTest::SharedCta),
            ("shared::cluster", SpaceTest::Shared),
            ("local", SpaceTest::Local),
            ("const", SpaceTest::Const),
            ("param", SpaceTest::Const),
            ("param::entry", SpaceTest::Const),
        ]);
        let Some(space) = space else {
            return Err(self.fault(i.opcode.at.clone(), "`isspacep` needs a state space"));
        };
        let [p, a] = self.operands(i)?;
        let a = self.src(a, Ty::B64)?;
        let p = self.dst(p, Bank::Pred)?;
        self.emit(Op::Alu(AluOp::IsSpace(space)), Class::Logic, &[p], &[a], 0);
        Ok(())
    }
}
