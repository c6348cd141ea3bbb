//! Integer arithmetic, logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.2, 9.7.8).

use super::super::super::alu::{
    AluOp, Carry, CarryOp, CountOp, FloatMode, FloatOp, IntExtreme, IntOp, PredOp, PrmtMode, Round, SatOp,
};
use super::super::super::ir::{Class, Op};
use super::super::ast::{Instruction, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Class as TyClass, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["add", "sub"], |l, i, m| l.add(i, m)),
    (&["addc", "subc"], |l, i, m| l.add_carry(i, m)),
    (&["mul"], |l, i, m| l.mul(i, m)),
    (&["mad"], |l, i, m| l.mad(i, m)),
    (&["madc"], |l, i, m| l.mad_carry(i, m)),
    (&["mul24", "mad24"], |l, i, m| l.mul24(i, m)),
    (&["sad", "div", "rem", "min", "max", "abs", "neg"], |l, i, m| l.arithmetic(i, m)),
    (&["popc", "clz", "bfind", "brev"], |l, i, m| l.count(i, m)),
    (&["bfe", "bfi"], |l, i, m| l.bit_field(i, m)),
    (&["prmt"], |l, i, m| l.permute(i, m)),
    (&["fns"], |l, i, m| l.find_nth_set(i, m)),
    (&["bmsk"], |l, i, m| l.bit_mask(i, m)),
    (&["dp4a", "dp2a"], |l, i, m| l.dot_product(i, m)),
    (&["and", "or", "xor", "not", "cnot", "shl", "shr"], |l, i, m| l.logic(i, m)),
    (&["lop3"], |l, i, m| l.lop3(i, m)),
    (&["shf"], |l, i, m| l.funnel(i, m)),
    (&["szext"], |l, i, m| l.extend_field(i, m)),
];

/// The integer operation of a width.
fn sized(op: IntOp, bits: u32) -> Option<AluOp> {
    match bits {
        16 => Some(AluOp::Int16(op)),
        32 => Some(AluOp::Int32(op)),
        64 => Some(AluOp::Int64(op)),
        _ => None,
    }
}

fn by_sign(ty: Ty, signed: IntOp, unsigned: IntOp) -> IntOp {
    if ty.is_signed() { signed } else { unsigned }
}

/// Pairs of 16 bits, signed or not.
const PAIRS: [(&str, bool); 2] = [("s16x2", true), ("u16x2", false)];

impl<'a> Lower<'_, 'a> {
    fn int(&mut self, i: &'a Instruction<'a>, op: IntOp, class: Class, ty: Ty, sources: usize) -> Lowered {
        match sized(op, ty.bits) {
            Some(op) if !ty.is_float() => self.uniform(i, op, class, ty, sources),
            _ => self.bad_type(i, ty),
        }
    }

    /// The carry flag: one predicate register of the thread.
    fn carry_flag(&mut self) -> Arg {
        let register = match self.carry {
            Some(register) => register,
            None => self.body.register(Bank::Pred),
        };
        self.carry = Some(register);
        Arg::Reg(register)
    }

    fn with_carry(&mut self, i: &'a Instruction<'a>, carry: Carry, ty: Ty, sources: usize) -> Lowered {
        if ty.is_float() || !matches!(ty.bits, 32 | 64) {
            return self.bad_type(i, ty);
        }
        if i.operands.len() != sources + 1 {
            return self.operands::<0>(i).map(|_| ());
        }
        let mut src = [Arg::None; 4];
        for (src, operand) in src.iter_mut().zip(&i.operands[1..]) {
            *src = self.src(operand, ty)?;
        }
        let d = self.dst(&i.operands[0], ty.bank())?;
        let mut e = Arg::None;
        if carry.takes {
            src[3] = self.carry_flag();
        }
        if carry.gives {
            e = self.carry_flag();
        }
        let class = if sources == 3 { Class::IntMul } else { Class::Int };
        self.emit(Op::Alu(AluOp::Carry(carry)), class, &[d, e], &src, 0);
        Ok(())
    }

    pub(super) fn add(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let adds = i.opcode.text == "add";
        if adds && m.one_of(&PAIRS).is_some() {
            return self.uniform(i, AluOp::PairAdd16, Class::Int, Ty::B32, 2);
        }
        if m.take("f32x2") {
            return self.float_pair(i, m, if adds { FloatOp::Add } else { FloatOp::Sub });
        }
        let (ty, sat) = (self.ty(i, m)?, m.take("sat"));
        if ty.is_float() {
            let (round, ftz) = (m.rounding(), m.take("ftz"));
            let op = if adds { FloatOp::Add } else { FloatOp::Sub };
            return self.float(i, op, round.unwrap_or(Round::Nearest), ftz, sat, ty);
        }
        if m.take("cc") {
            let op = if adds { CarryOp::Add } else { CarryOp::Sub };
            return self.with_carry(i, Carry { op, wide: ty.bits == 64, takes: false, gives: true }, ty, 2);
        }
        if sat {
            if ty.bits != 32 || !ty.is_signed() {
                return self.bad_type(i, ty);
            }
            let op = if adds { SatOp::Add } else { SatOp::Sub };
            return self.uniform(i, AluOp::Saturating(op), Class::Int, ty, 2);
        }
        self.int(i, if adds { IntOp::Add } else { IntOp::Sub }, Class::Int, ty, 2)
    }

    pub(super) fn add_carry(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let op = if i.opcode.text == "addc" { CarryOp::Add } else { CarryOp::Sub };
        let gives = m.take("cc");
        let ty = self.ty(i, m)?;
        self.with_carry(i, Carry { op, wide: ty.bits == 64, takes: true, gives }, ty, 2)
    }

    pub(super) fn mul(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.take("f32x2") {
            return self.float_pair(i, m, FloatOp::Mul);
        }
        let ty = self.ty(i, m)?;
        if ty.is_float() {
            let (round, ftz, sat) = (m.rounding(), m.take("ftz"), m.take("sat"));
            return self.float(i, FloatOp::Mul, round.unwrap_or(Round::Nearest), ftz, sat, ty);
        }
        match self.part(i, m)? {
            ProductHalf::Wide => self.wide(i, ty, false),
            ProductHalf::High => self.int(i, by_sign(ty, IntOp::MulHiS, IntOp::MulHiU), Class::IntMul, ty, 2),
            ProductHalf::Low => self.int(i, IntOp::MulLo, Class::IntMul, ty, 2),
        }
    }

    pub(super) fn mad(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        if ty.is_float() {
            let (round, ftz, sat) = (m.rounding(), m.take("ftz"), m.take("sat"));
            return self.float(i, FloatOp::Fma, round.unwrap_or(Round::Nearest), ftz, sat, ty);
        }
        let part = self.part(i, m)?;
        if part != ProductHalf::Wide && m.take("cc") {
            return self.with_carry(i, mad_carry(part, ty, false, true), ty, 3);
        }
        match part {
            ProductHalf::Wide => self.wide(i, ty, true),
            ProductHalf::High if ty.is_signed() && ty.bits == 32 && m.take("sat") => {
                self.uniform(i, AluOp::Saturating(SatOp::MadHi), Class::IntMul, ty, 3)
            }
            ProductHalf::High => self.int(i, by_sign(ty, IntOp::MadHiS, IntOp::MadHiU), Class::IntMul, ty, 3),
            ProductHalf::Low => self.int(i, IntOp::MadLo, Class::IntMul, ty, 3),
        }
    }

    pub(super) fn mad_carry(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let gives = m.take("cc");
        let part = self.part(i, m)?;
        let ty = self.ty(i, m)?;
        if part == ProductHalf::Wide {
            return self.bad_type(i, ty);
        }
        self.with_carry(i, mad_carry(part, ty, true, gives), ty, 3)
    }

    /// `.lo`, `.hi` or `.wide`, one of which must be there.
    fn part(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<ProductHalf> {
        match m.one_of(&[("lo", ProductHalf::Low), ("hi", ProductHalf::High), ("wide", ProductHalf::Wide)]) {
            Some(part) => Ok(part),
            None => {
                let message = format!("`{}` on integers needs `.lo`, `.hi` or `.wide`", i.opcode.text);
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// `mul.wide`, `mad.wide`
    fn wide(&mut self, i: &'a Instruction<'a>, ty: Ty, add: bool) -> Lowered {
        let signed = ty.is_signed();
        let (op, result) = match (ty.bits, add) {
            (16, false) => (AluOp::MulWide16(signed), Ty::B32),
            (16, true) => (AluOp::MadWide16(signed), Ty::B32),
            (32, false) => (AluOp::MulWide32(signed), Ty::B64),
            (32, true) => (AluOp::MadWide32(signed), Ty::B64),
            _ => return self.bad_type(i, ty),
        };
        if i.operands.len() != 3 + usize::from(add) {
            return self.operands::<0>(i).map(|_| ());
        }
        let mut src = vec![self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?];
        if add {
            src.push(self.src(&i.operands[3], result)?);
        }
        let d = self.dst(&i.operands[0], result.bank())?;
        self.emit(Op::Alu(op), Class::IntMul, &[d], &src, 0);
        Ok(())
    }

    pub(super) fn mul24(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let add = i.opcode.text == "mad24";
        let high = m.one_of(&[("lo", false), ("hi", true)]).unwrap_or(false);
        let sat = m.take("sat");
        let ty = self.ty(i, m)?;
        if ty.bits != 32 || ty.is_float() {
            return self.bad_type(i, ty);
        }
        let op = AluOp::Mul24 { signed: ty.is_signed(), high, add, sat };
        self.uniform(i, op, Class::IntMul, ty, if add { 3 } else { 2 })
    }

    /// `sad`, `div`, `rem`, `min`, `max`, `abs`, `neg`, floats included.
    pub(super) fn arithmetic(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let opcode = i.opcode.text;
        // Pairs, and singles with `.relu`, have operations of their own.
        let extreme = matches!(opcode, "min" | "max");
        if let Some(signed) = if extreme { m.one_of(&PAIRS) } else { None } {
            let relu = signed && m.take("relu");
            let op = AluOp::PairExtreme16(IntExtreme::new(opcode == "min", signed), relu);
            return self.uniform(i, op, Class::MinMax, Ty::B32, 2);
        }
        if extreme && i.mods.iter().any(|word| word.text == "s32") && m.take("relu") {
            let ty = self.ty(i, m)?;
            return self.uniform(i, AluOp::Rectified32(opcode == "min"), Class::MinMax, ty, 2);
        }
        let approximate = if opcode == "div" { m.one_of(&[("approx", false), ("full", true)]) } else { None };
        let ty = self.ty(i, m)?;
        if ty.is_float() {
            // Taken for floats only: on an integer these modifiers are left over, and reported.
            let (nearest, ftz) = (Round::Nearest, m.take("ftz"));
            let nan = extreme && m.take("NaN");
            if extreme && i.operands.len() == 4 && ty == Ty::F32 {
                let op = match (opcode, nan) {
                    ("min", false) => FloatOp::Min,
                    ("min", true) => FloatOp::MinNan,
                    (_, false) => FloatOp::Max,
                    (_, true) => FloatOp::MaxNan,
                };
                let abs = m.take("abs");
                return self.extreme_of_three(i, op, ftz, abs);
            }
            return match opcode {
                "div" => {
                    let round = m.rounding();
                    self.divide(i, approximate, round, ftz, ty)
                }
                "min" => self.float(i, if nan { FloatOp::MinNan } else { FloatOp::Min }, nearest, ftz, false, ty),
                "max" => self.float(i, if nan { FloatOp::MaxNan } else { FloatOp::Max }, nearest, ftz, false, ty),
                "abs" => self.float(i, FloatOp::Abs, nearest, ftz, false, ty),
                "neg" => self.float(i, FloatOp::Neg, nearest, ftz, false, ty),
                _ => self.bad_type(i, ty),
            };
        }
        if !ty.is_integer() {
            return self.bad_type(i, ty);
        }
        match opcode {
            "sad" => self.int(i, by_sign(ty, IntOp::SadS, IntOp::SadU), Class::Int, ty, 3),
            "div" => self.int(i, by_sign(ty, IntOp::DivS, IntOp::DivU), Class::IntDiv, ty, 2),
            "rem" => self.int(i, by_sign(ty, IntOp::RemS, IntOp::RemU), Class::IntDiv, ty, 2),
            "min" => self.int(i, by_sign(ty, IntOp::MinS, IntOp::MinU), Class::MinMax, ty, 2),
            "max" => self.int(i, by_sign(ty, IntOp::MaxS, IntOp::MaxU), Class::MinMax, ty, 2),
            "abs" => self.int(i, IntOp::Abs, Class::Int, ty, 1),
            _ => self.int(i, IntOp::Neg, Class::Int, ty, 1),
        }
    }

    pub(super) fn count(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let shift = i.opcode.text == "bfind" && m.take("shiftamt");
        let ty = self.ty(i, m)?;
        if ty.is_float() || !matches!(ty.bits, 32 | 64) {
            return self.bad_type(i, ty);
        }
        if i.opcode.text == "brev" {
            return self.int(i, IntOp::Brev, Class::Logic, ty, 1);
        }
        let op = match (i.opcode.text, shift, ty.is_signed()) {
            ("popc", ..) => CountOp::Popc,
            ("clz", ..) => CountOp::Clz,
            (_, false, false) => CountOp::BfindU,
            (_, false, true) => CountOp::BfindS,
            (_, true, false) => CountOp::BfindShiftU,
            (_, true, true) => CountOp::BfindShiftS,
        };
        let [d, a] = self.operands(i)?;
        let a = self.src(a, ty)?;
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::Count(op, ty.bits == 64)), Class::Logic, &[d], &[a], 0);
        Ok(())
    }

    pub(super) fn bit_field(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        if ty.is_float() || !matches!(ty.bits, 32 | 64) {
            return self.bad_type(i, ty);
        }
        let wide = ty.bits == 64;
        if i.opcode.text == "bfe" {
            let [d, a, b, c] = self.operands(i)?;
            let src = [self.src(a, ty)?, self.src(b, Ty::U32)?, self.src(c, Ty::U32)?];
            let d = self.dst(d, ty.bank())?;
            self.emit(Op::Alu(AluOp::Bfe { signed: ty.is_signed(), wide }), Class::Logic, &[d], &src, 0);
        } else {
            let [d, a, b, c, l] = self.operands(i)?;
            let src = [self.src(a, ty)?, self.src(b, ty)?, self.src(c, Ty::U32)?, self.src(l, Ty::U32)?];
            let d = self.dst(d, ty.bank())?;
            self.emit(Op::Alu(AluOp::Bfi(wide)), Class::Logic, &[d], &src, 0);
        }
        Ok(())
    }

    pub(super) fn permute(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        let mode = m.one_of(&[
            ("f4e", PrmtMode::F4e),
            ("b4e", PrmtMode::B4e),
            ("rc8", PrmtMode::Rc8),
            ("ecl", PrmtMode::Ecl),
            ("ecr", PrmtMode::Ecr),
            ("rc16", PrmtMode::Rc16),
        ]);
        if ty != Ty::B32 {
            return self.bad_type(i, ty);
        }
        self.uniform(i, AluOp::Prmt(mode.unwrap_or(PrmtMode::Index)), Class::Logic, ty, 3)
    }

    /// `fns`: the n-th set bit.
    pub(super) fn find_nth_set(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        if ty != Ty::B32 {
            return self.bad_type(i, ty);
        }
        self.uniform(i, AluOp::Fns, Class::Logic, ty, 3)
    }

    pub(super) fn bit_mask(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let wrap = m.one_of(&[("wrap", true), ("clamp", false)]);
        let ty = self.ty(i, m)?;
        match wrap {
            Some(wrap) if ty == Ty::B32 => self.uniform(i, AluOp::Bmsk(wrap), Class::Logic, ty, 2),
            Some(_) => self.bad_type(i, ty),
            None => Err(self.fault(i.opcode.at.clone(), "`bmsk` needs `.clamp` or `.wrap`")),
        }
    }

    pub(super) fn dot_product(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let high = m.one_of(&[("lo", false), ("hi", true)]).unwrap_or(false);
        let (a, b) = (self.ty(i, m)?, self.ty(i, m)?);
        if a.bits != 32 || b.bits != 32 || !a.is_integer() || !b.is_integer() {
            return self.bad_type(i, a);
        }
        let op = if i.opcode.text == "dp4a" {
            AluOp::Dp4a(a.is_signed(), b.is_signed())
        } else {
            AluOp::Dp2a(a.is_signed(), b.is_signed(), high)
        };
        self.uniform(i, op, Class::IntMul, a, 3)
    }

    /// `and`, `or`, `xor`, `not`, `cnot`, `shl`, `shr`
    pub(super) fn logic(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.ty(i, m)?;
        let opcode = i.opcode.text;
        if ty.class == TyClass::Pred {
            let (op, sources) = match opcode {
                "and" => (PredOp::And, 2),
                "or" => (PredOp::Or, 2),
                "xor" => (PredOp::Xor, 2),
                "not" => (PredOp::Not, 1),
                _ => return self.bad_type(i, ty),
            };
            return self.uniform(i, AluOp::Pred(op), Class::Logic, ty, sources);
        }
        let op = match opcode {
            "and" => IntOp::And,
            "or" => IntOp::Or,
            "xor" => IntOp::Xor,
            "not" => return self.int(i, IntOp::Not, Class::Logic, ty, 1),
            "cnot" => return self.int(i, IntOp::Cnot, Class::Logic, ty, 1),
            "shl" => IntOp::Shl,
            _ => by_sign(ty, IntOp::ShrS, IntOp::ShrU),
        };
        // The amount of a shift is 32 bits wide whatever the type, so its operands are not of one type.
        if !matches!(op, IntOp::Shl | IntOp::ShrS | IntOp::ShrU) {
            return self.int(i, op, Class::Logic, ty, 2);
        }
        let Some(op) = sized(op, ty.bits).filter(|_| !ty.is_float()) else {
            return self.bad_type(i, ty);
        };
        let [d, a, b] = self.operands(i)?;
        let src = [self.src(a, ty)?, self.src(b, Ty::U32)?];
        let d = self.dst(d, ty.bank())?;
        self.emit(Op::Alu(op), Class::Logic, &[d], &src, 0);
        Ok(())
    }

    /// `lop3.b32 d, a, b, c, table`, and `lop3.or.b32 d|p, a, b, c, table, q`
    pub(super) fn lop3(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let joins = m.one_of(&[("and", 0), ("or", 1 << 8)]);
        let ty = self.ty(i, m)?;
        if ty != Ty::B32 {
            return self.bad_type(i, ty);
        }
        let (operands, q) = match (joins, i.operands.as_slice()) {
            (None, _) => (self.operands::<5>(i)?, None),
            (Some(_), [operands @ .., q]) if operands.len() == 5 => {
                (operands.try_into().expect("there are five"), Some(q))
            }
            _ => return self.operands::<6>(i).map(|_| ()),
        };
        let [d, a, b, c, table] = operands;
        let OperandKind::Int(table @ 0..=255) = table.kind else {
            return Err(self.fault(table.at.clone(), "the truth table of `lop3` must be a constant from 0 to 255"));
        };
        // All that the instruction has no operand for goes into `imm`: the table, how q joins, its negation.
        let mut imm = table as i32 | joins.unwrap_or(0);
        let mut src = [self.src(a, ty)?, self.src(b, ty)?, self.src(c, ty)?, Arg::None];
        let mut dst = [Arg::None; 2];
        if let Some(q) = q {
            let OperandKind::Pair(value, p) = &d.kind else {
                return Err(self.fault(d.at.clone(), "`lop3` with a predicate has two results, `d|p`"));
            };
            let (q, negated) = self.src_pred(q)?;
            (src[3], dst[1]) = (q, self.dst(p, Bank::Pred)?);
            imm |= negated << 9;
            if !matches!(value.kind, OperandKind::Name { name: "_", .. }) {
                dst[0] = self.dst(value, Bank::R32)?;
            }
        } else {
            dst[0] = self.dst(d, Bank::R32)?;
        }
        self.emit(Op::Alu(AluOp::Lop3), Class::Logic, &dst, &src, imm);
        Ok(())
    }

    /// `szext`
    pub(super) fn extend_field(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let wrap = m.one_of(&[("wrap", true), ("clamp", false)]);
        let ty = self.ty(i, m)?;
        match wrap {
            Some(wrap) if ty.is_integer() && ty.bits == 32 => {
                self.uniform(i, AluOp::Szext { signed: ty.is_signed(), wrap }, Class::Logic, ty, 2)
            }
            Some(_) => self.bad_type(i, ty),
            None => Err(self.fault(i.opcode.at.clone(), "`szext` needs `.clamp` or `.wrap`")),
        }
    }

    pub(super) fn funnel(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let left = m.one_of(&[("l", true), ("r", false)]);
        let wrap = m.one_of(&[("wrap", true), ("clamp", false)]);
        let ty = self.ty(i, m)?;
        let (Some(left), Some(wrap)) = (left, wrap) else {
            let message = "`shf` needs a direction and a mode, such as `.l.wrap`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        if ty.bits != 32 || ty.is_float() {
            return self.bad_type(i, ty);
        }
        self.uniform(i, AluOp::Shf { left, wrap }, Class::Logic, ty, 3)
    }

    /// Float arithmetic of either precision.
    pub(super) fn float(
        &mut self,
        i: &'a Instruction<'a>,
        op: FloatOp,
        round: Round,
        ftz: bool,
        sat: bool,
        ty: Ty,
    ) -> Lowered {
        let sources = match op {
            FloatOp::Fma => 3,
            FloatOp::Abs | FloatOp::Neg | FloatOp::Rcp | FloatOp::Sqrt => 1,
            _ => 2,
        };
        let [single, double] = match op {
            FloatOp::Div | FloatOp::Rcp | FloatOp::Sqrt => [Class::Fp32Div, Class::Fp64Div],
            FloatOp::Abs | FloatOp::Neg | FloatOp::CopySign => [Class::Logic; 2],
            FloatOp::Min | FloatOp::Max | FloatOp::MinNan | FloatOp::MaxNan => [Class::MinMax, Class::Fp64],
            _ => [Class::Fp32, Class::Fp64],
        };
        match ty.bits {
            32 => self.uniform(i, AluOp::F32(op, FloatMode { round, ftz, sat }), single, ty, sources),
            64 if !sat && !ftz => self.uniform(i, AluOp::F64(op, round), double, ty, sources),
            _ => self.bad_type(i, ty),
        }
    }
}

/// Which half of a product, or all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProductHalf {
    Low,
    High,
    Wide,
}

fn mad_carry(part: ProductHalf, ty: Ty, takes: bool, gives: bool) -> Carry {
    let op = match (part, ty.is_signed()) {
        (ProductHalf::High, true) => CarryOp::MadHiS,
        (ProductHalf::High, false) => CarryOp::MadHiU,
        _ => CarryOp::MadLo,
    };
    Carry { op, wide: ty.bits == 64, takes, gives }
}
