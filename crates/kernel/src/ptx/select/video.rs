//! Video instructions (PTX ISA 9.7.15 to 9.7.17): scalar ones with parts of registers, a second operation or
//! a merge; SIMD ones on pairs of 16 bits and quads of 8 bits, with selectors and a mask.

use super::super::super::alu::{AluOp, IntCmp, Video, VideoMad, VideoOp, VideoPart, VideoSecond, VideoSimd};
use super::super::super::ir::{Class, Op};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::operand::special;
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["vmad"], |l, i, m| l.video_mad(i, m)),
    (&["vabsdiff", "vadd", "vmax", "vmin", "vset", "vshl", "vshr", "vsub"], |l, i, m| l.video(i, m)),
    (&["vabsdiff2", "vadd2", "vavrg2", "vmax2", "vmin2", "vset2", "vsub2"], |l, i, m| l.video_simd(i, m, 2)),
    (&["vabsdiff4", "vadd4", "vavrg4", "vmax4", "vmin4", "vset4", "vsub4"], |l, i, m| l.video_simd(i, m, 4)),
];

/// What a video opcode other than `vmad` does. Its modifiers complete a shift or a comparison.
fn operation(opcode: &str) -> Option<VideoOp> {
    match opcode.strip_prefix('v')?.trim_end_matches(['2', '4']) {
        "add" => Some(VideoOp::Add),
        "sub" => Some(VideoOp::Sub),
        "absdiff" => Some(VideoOp::AbsDiff),
        "min" => Some(VideoOp::Min),
        "max" => Some(VideoOp::Max),
        "set" => Some(VideoOp::Set(IntCmp::Eq)),
        "avrg" => Some(VideoOp::Average),
        "shl" => Some(VideoOp::Shl(false)),
        "shr" => Some(VideoOp::Shr(false)),
        _ => None,
    }
}

fn class(op: VideoOp) -> Class {
    match op {
        VideoOp::Add | VideoOp::Sub | VideoOp::AbsDiff | VideoOp::Average => Class::Int,
        VideoOp::Min | VideoOp::Max => Class::MinMax,
        VideoOp::Shl(_) | VideoOp::Shr(_) => Class::Logic,
        VideoOp::Set(_) => Class::Compare,
    }
}

/// A register and the component after it, which a special register keeps.
fn apart<'a>(operand: &Operand<'a>) -> (Operand<'a>, Option<&'a str>) {
    match operand.kind {
        OperandKind::Name { name, component: Some(component), offset } if special(name, Some(component)).is_none() => {
            let kind = OperandKind::Name { name, component: None, offset };
            (Operand { kind, at: operand.at.clone() }, Some(component))
        }
        _ => (operand.clone(), None),
    }
}

/// `x` of `-x`.
fn positive<'o, 'a>(operand: &'o Operand<'a>) -> (&'o Operand<'a>, bool) {
    match &operand.kind {
        OperandKind::Minus(inner) => (inner, true),
        _ => (operand, false),
    }
}

impl<'a> Lower<'_, 'a> {
    /// `.u32` or `.s32`: signed?
    fn sign(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<bool> {
        let ty = self.ty(i, m)?;
        if ty.bits == 32 && ty.is_integer() { Ok(ty.is_signed()) } else { self.bad_type(i, ty) }
    }

    /// A register and the number of its part.
    fn video_part(&mut self, operand: &Operand<'a>) -> Lowered<(Operand<'a>, i32)> {
        let (register, component) = apart(operand);
        let part = match component {
            None => VideoPart::Word,
            Some("b0") => VideoPart::B0,
            Some("b1") => VideoPart::B1,
            Some("b2") => VideoPart::B2,
            Some("b3") => VideoPart::B3,
            Some("h0") => VideoPart::H0,
            Some("h1") => VideoPart::H1,
            Some(other) => {
                let message = format!("`.{other}` is not a part of a register (`.b0` to `.b3`, `.h0`, `.h1`)");
                const PARTS: [&str; 6] = ["b0", "b1", "b2", "b3", "h0", "h1"];
                return Err(self.fault_near(operand.at.clone(), message, other, &PARTS));
            }
        };
        Ok((register, part as i32))
    }

    /// A source and the number of its part.
    fn video_source(&mut self, operand: &Operand<'a>) -> Lowered<(Arg, i32)> {
        let (register, part) = self.video_part(operand)?;
        Ok((self.src(&register, Ty::B32)?, part))
    }

    /// The operation with what its modifiers say, and the signs of a, b and d.
    fn video_operation(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<(VideoOp, [bool; 3])> {
        let Some(op) = operation(i.opcode.text) else { return Err(self.unknown(i.opcode.text, i)) };
        // Results of comparisons are unsigned, and have no type of their own.
        let signed = !matches!(op, VideoOp::Set(_)) && self.sign(i, m)?;
        let (a, b) = (self.sign(i, m)?, self.sign(i, m)?);
        let op = match op {
            VideoOp::Set(_) => {
                let cmp = m.one_of(&[
                    ("eq", IntCmp::Eq),
                    ("ne", IntCmp::Ne),
                    ("lt", IntCmp::LtS),
                    ("le", IntCmp::LeS),
                    ("gt", IntCmp::GtS),
                    ("ge", IntCmp::GeS),
                ]);
                let Some(cmp) = cmp else {
                    let message = format!("`{}` needs a comparison such as `.lt`", i.opcode.text);
                    return Err(self.fault(i.opcode.at.clone(), message));
                };
                VideoOp::Set(cmp)
            }
            VideoOp::Shl(_) | VideoOp::Shr(_) => {
                let Some(wrap) = m.one_of(&[("clamp", false), ("wrap", true)]) else {
                    let message = format!("`{}` needs `.clamp` or `.wrap`", i.opcode.text);
                    return Err(self.fault(i.opcode.at.clone(), message));
                };
                if b {
                    let message = format!("the amount of `{}` is `.u32`", i.opcode.text);
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                if op == VideoOp::Shl(false) { VideoOp::Shl(wrap) } else { VideoOp::Shr(wrap) }
            }
            op => op,
        };
        Ok((op, [a, b, signed]))
    }

    /// A scalar video instruction other than `vmad`.
    pub(super) fn video(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let (op, [a_signed, b_signed, signed]) = self.video_operation(i, m)?;
        let sat = !matches!(op, VideoOp::Set(_)) && m.take("sat");
        let second = m.one_of(&[("add", VideoSecond::Add), ("min", VideoSecond::Min), ("max", VideoSecond::Max)]);
        let Some(first) = i.operands.first() else {
            return self.operands::<3>(i).map(|_| ());
        };
        let (d, d_part) = self.video_part(first)?;
        // To merge into a part takes the third source, as a second operation does: there is one or the other.
        let second = match (second, d_part) {
            (None, 0) => VideoSecond::None,
            (None, _) => VideoSecond::Merge,
            (Some(second), 0) => second,
            (Some(second), _) => {
                let name = format!("{second:?}").to_lowercase();
                let message = format!("`.{name}` and a part of the destination exclude each other");
                return Err(self.fault(i.opcode.at.clone(), message));
            }
        };
        let (a, b, c) = if second == VideoSecond::None {
            let [_, a, b] = self.operands(i)?;
            (a, b, None)
        } else {
            let [_, a, b, c] = self.operands(i)?;
            (a, b, Some(c))
        };
        let ((a, a_part), (b, b_part)) = (self.video_source(a)?, self.video_source(b)?);
        let c = c.map_or(Ok(Arg::None), |c| self.src(c, Ty::B32))?;
        let d = self.dst(&d, Bank::R32)?;
        let video = Video { op, second, a_signed, b_signed, signed, sat };
        let parts = a_part | b_part << 3 | d_part << 6;
        self.emit(Op::Alu(AluOp::Video(video)), class(op), &[d], &[a, b, c], parts);
        Ok(())
    }

    /// `vmad`
    pub(super) fn video_mad(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let _ = self.sign(i, m)?;
        let (a_signed, b_signed) = (self.sign(i, m)?, self.sign(i, m)?);
        let (plus_one, sat) = (m.take("po"), m.take("sat"));
        let shift = m.one_of(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0);
        let [d, a, b, c] = self.operands(i)?;
        let ((a, minus_a), (b, minus_b), (c, minus_c)) = (positive(a), positive(b), positive(c));
        let minus_product = minus_a != minus_b;
        if plus_one && (minus_a || minus_b || minus_c) {
            return Err(self.fault(i.opcode.at.clone(), "`vmad.po` negates nothing"));
        }
        if minus_product && minus_c {
            return Err(self.fault(i.opcode.at.clone(), "`vmad` negates the product or `c`, not both"));
        }
        let ((a, a_part), (b, b_part)) = (self.video_source(a)?, self.video_source(b)?);
        let c = self.src(c, Ty::B32)?;
        let d = self.dst(d, Bank::R32)?;
        let mad = VideoMad { a_signed, b_signed, minus_product, minus_c, plus_one, sat, shift };
        self.emit(Op::Alu(AluOp::VideoMad(mad)), Class::IntMul, &[d], &[a, b, c], a_part | b_part << 3);
        Ok(())
    }

    /// A SIMD video instruction on `elements` elements of a register.
    pub(super) fn video_simd(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, elements: u32) -> Lowered {
        let (op, [a_signed, b_signed, signed]) = self.video_operation(i, m)?;
        let sat = !matches!(op, VideoOp::Set(_)) && m.take("sat");
        let accumulate = m.take("add");
        if sat && accumulate {
            let message = format!("`{}` cannot saturate what it accumulates", i.opcode.text);
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let [d, a, b, c] = self.operands(i)?;
        // Without selectors a's elements are those of a, and b's those of b, which follow them.
        let (a, a_elements) = self.selected(a, elements, 0)?;
        let (b, b_elements) = self.selected(b, elements, elements)?;
        let (d, mask) = self.masked(d, elements)?;
        let src = [self.src(&a, Ty::B32)?, self.src(&b, Ty::B32)?, self.src(c, Ty::B32)?];
        let d = self.dst(&d, Bank::R32)?;
        let video = VideoSimd { op, quads: elements == 4, a_signed, b_signed, signed, sat, accumulate };
        let imm = a_elements | b_elements << 12 | mask << 24;
        self.emit(Op::Alu(AluOp::VideoSimd(video)), class(op), &[d], &src, imm);
        Ok(())
    }

    /// `.h32`, `.b7654`: elements of b:a, the highest first; 3 bits each. Without them, those from `first`
    /// on.
    fn selected(&mut self, operand: &Operand<'a>, elements: u32, first: u32) -> Lowered<(Operand<'a>, i32)> {
        let (register, component) = apart(operand);
        let Some(component) = component else {
            return Ok((register, (0..elements).map(|i| (first + i) << (3 * i)).sum::<u32>() as i32));
        };
        let letter = if elements == 2 { 'h' } else { 'b' };
        let digits: Option<Vec<u32>> = component.strip_prefix(letter).and_then(|digits| {
            let digit = |c: char| c.to_digit(10).filter(|digit| *digit < 2 * elements);
            digits.chars().rev().map(digit).collect()
        });
        match digits {
            Some(digits) if digits.len() == elements as usize => {
                let packed = digits.iter().enumerate().map(|(i, digit)| digit << (3 * i)).sum::<u32>();
                Ok((register, packed as i32))
            }
            _ => {
                let most = 2 * elements - 1;
                let message = format!(
                    "`.{component}` does not select {elements} elements (`.{letter}` and {elements} digits from 0 to {most})"
                );
                Err(self.fault(operand.at.clone(), message))
            }
        }
    }

    /// `.h10`, `.b20`: a bit an element. Without it, all.
    fn masked(&mut self, operand: &Operand<'a>, elements: u32) -> Lowered<(Operand<'a>, i32)> {
        let (register, component) = apart(operand);
        let Some(component) = component else {
            return Ok((register, (1 << elements) - 1));
        };
        let letter = if elements == 2 { 'h' } else { 'b' };
        let digits: Option<Vec<u32>> = component.strip_prefix(letter).and_then(|digits| {
            let digit = |c: char| c.to_digit(10).filter(|digit| *digit < elements);
            digits.chars().map(digit).collect()
        });
        match digits {
            Some(digits) if !digits.is_empty() && digits.is_sorted_by(|a, b| a > b) => {
                Ok((register, digits.iter().map(|digit| 1 << digit).sum()))
            }
            _ => {
                let most = elements - 1;
                let message =
                    format!("`.{component}` is not a mask (`.{letter}` and digits from {most} to 0, falling)");
                Err(self.fault(operand.at.clone(), message))
            }
        }
    }
}
