//! Half precision (PTX ISA 9.7.4): which modifiers each instruction takes on `.f16`, `.bf16` and pairs of
//! them.
//!
//! | instruction | `.f16`, `.f16x2` | `.bf16`, `.bf16x2` |
//! |---|---|---|
//! | `add`, `sub`, `mul` | `{.rn}{.ftz}{.sat}` | `{.rn}` |
//! | `fma` | `.rn{.ftz}{.sat}`, `.rn{.ftz}.relu` | `.rn{.relu}` |
//! | `abs`, `neg` | `{.ftz}` | none |
//! | `min`, `max` | `{.ftz}{.NaN}{.xorsign.abs}` | `{.NaN}{.xorsign.abs}` |
//! | `ex2` | `.approx` | `.approx.ftz` |
//! | `tanh` | `.approx` | `.approx` |
//! | `add`, `sub`, `fma` of `.f32` and these | `.rn`, `.rz`, `.rm`, `.rp`, `{.sat}` | the same; no pairs |
//!
//! Comparisons are in `compare.rs`, conversions in `convert.rs`, atomic additions in `memory.rs`. Not
//! supported, and refused: `fma.oob`, vectors of halves in atomics. Literals of half precision do not exist
//! in PTX.

use super::super::super::alu::{AluOp, FloatMode, FloatOp, HalfExtreme, HalfFormat, HalfMode, HalfOp, Round};
use super::super::super::ir::{Class, Op};
use super::super::ast::Instruction;
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::Mods;

/// The first half-precision type among the modifiers.
pub(super) fn operand_type(i: &Instruction<'_>) -> Option<Ty> {
    i.mods.iter().filter_map(|word| Ty::parse(word.text)).find(|ty| ty.half().is_some())
}

/// Instructions that [`Lower::half`] selects.
pub(super) fn calculates(opcode: &str) -> bool {
    matches!(opcode, "add" | "sub" | "mul" | "fma" | "abs" | "neg" | "min" | "max" | "ex2" | "tanh")
}

/// Whether an instruction moves halves, compares or converts them. An instruction that neither does this nor
/// calculates knows no half precision.
pub(super) fn passes(opcode: &str) -> bool {
    matches!(
        opcode,
        "mov"
            | "ld"
            | "ldu"
            | "st"
            | "pm"
            | "set"
            | "setp"
            | "selp"
            | "slct"
            | "cp"
            | "cvt"
            | "atom"
            | "red"
            | "multimem"
            | "prefetch"
            | "mma"
            | "wmma"
            | "wgmma"
            | "elect"
            | "movmatrix"
            | "stmatrix"
    )
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn half(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let opcode = i.opcode.text;
        let ty = self.ty(i, m)?;
        // The first type is that of the result. One that is no half means halves in, a single out.
        let Some(half) = ty.half() else {
            return self.mixed(i, m, ty);
        };
        let round = if matches!(opcode, "add" | "sub" | "mul" | "fma") { m.rounding() } else { None };
        match round {
            None if opcode == "fma" => return Err(self.fault(i.opcode.at.clone(), format!("`fma{ty}` needs `.rn`"))),
            None | Some(Round::Nearest) => {}
            Some(_) => return Err(self.fault(i.opcode.at.clone(), format!("`{opcode}{ty}` only rounds to nearest"))),
        }
        let plain = half.format() == HalfFormat::F16;
        let approximate = matches!(opcode, "ex2" | "tanh");
        if approximate && !m.take("approx") {
            return Err(self.fault(i.opcode.at.clone(), format!("`{opcode}{ty}` needs `.approx`")));
        }
        // Where a modifier has no meaning it is left over, and reported.
        let ftz = (plain && !approximate || !plain && opcode == "ex2") && m.take("ftz");
        if opcode == "ex2" && !plain && !ftz {
            return Err(self.fault(i.opcode.at.clone(), format!("`ex2{ty}` needs `.ftz`")));
        }
        let relu = opcode == "fma" && m.take("relu");
        let sat = plain && !relu && matches!(opcode, "add" | "sub" | "mul" | "fma") && m.take("sat");
        let picks = matches!(opcode, "min" | "max");
        let how = HalfExtreme { nan: picks && m.take("NaN"), xorsign: picks && m.take("xorsign") };
        if how.xorsign && !m.take("abs") {
            return Err(self.fault(i.opcode.at.clone(), "`.xorsign` goes with `.abs`"));
        }
        let (op, class, sources) = match opcode {
            "add" => (HalfOp::Add, Class::Fp32, 2),
            "sub" => (HalfOp::Sub, Class::Fp32, 2),
            "mul" => (HalfOp::Mul, Class::Fp32, 2),
            "fma" => (HalfOp::Fma, Class::Fp32, 3),
            "min" => (HalfOp::Min(how), Class::MinMax, 2),
            "max" => (HalfOp::Max(how), Class::MinMax, 2),
            "abs" => (HalfOp::Abs, Class::Logic, 1),
            "neg" => (HalfOp::Neg, Class::Logic, 1),
            "ex2" => (HalfOp::Ex2, Class::Sfu, 1),
            _ => (HalfOp::Tanh, Class::Sfu, 1),
        };
        let mode = HalfMode { ty: half, ftz, sat, relu };
        self.uniform(i, AluOp::Half(op, mode), class, ty, sources)
    }

    /// `add.f32.f16 d, a, c`: halves and a single, in single precision (PTX ISA 9.7.5, "Mixed Precision").
    fn mixed(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, ty: Ty) -> Lowered {
        let from = self.ty(i, m)?;
        let op = match i.opcode.text {
            "add" => FloatOp::Add,
            "sub" => FloatOp::Sub,
            "fma" => FloatOp::Fma,
            _ => return self.bad_type(i, from),
        };
        let Some(half) = from.half().filter(|half| ty == Ty::F32 && !half.is_pair()) else {
            return self.bad_type(i, from);
        };
        let (round, sat) = (m.rounding(), m.take("sat"));
        if op == FloatOp::Fma && round.is_none() {
            return Err(self.fault(i.opcode.at.clone(), format!("`fma{ty}{from}` needs a rounding such as `.rn`")));
        }
        let mode = FloatMode { round: round.unwrap_or(Round::Nearest), ftz: false, sat };
        let (d, src) = if op == FloatOp::Fma {
            let [d, a, b, c] = self.operands(i)?;
            (d, [self.src(a, from)?, self.src(b, from)?, self.src(c, ty)?])
        } else {
            let [d, a, c] = self.operands(i)?;
            (d, [self.src(a, from)?, self.src(c, ty)?, Arg::None])
        };
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::Mixed(op, mode, half.format())), Class::Fp32, &[d], &src, 0);
        Ok(())
    }
}
