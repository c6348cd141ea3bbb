//! Floating-point words: loads, stores, fused multiply-adds, and everything of the OP-FP opcode.

use super::fields::{bits, destination, imm_i, imm_s, rd, rs1, rs2};
use crate::instruction::{F0, Inst, Op};

pub(super) fn load(w: u32) -> Option<Inst> {
    let op = match bits(w, 12, 3) {
        2 => Op::Flw,
        3 => Op::Fld,
        _ => return None,
    };
    Some(Inst { rd: F0 + rd(w), rs1: rs1(w), imm: imm_i(w), ..Inst::new(op) })
}

pub(super) fn store(w: u32) -> Option<Inst> {
    let op = match bits(w, 12, 3) {
        2 => Op::Fsw,
        3 => Op::Fsd,
        _ => return None,
    };
    Some(Inst { rs1: rs1(w), rs2: F0 + rs2(w), imm: imm_s(w), ..Inst::new(op) })
}

/// A rounding mode that is not reserved.
fn rounding(w: u32) -> Option<u8> {
    match bits(w, 12, 3) as u8 {
        5 | 6 => None,
        mode => Some(mode),
    }
}

/// One of two operations, by the format field: single or double.
fn of_format(w: u32, single: Op, double: Op) -> Option<Op> {
    match bits(w, 25, 2) {
        0 => Some(single),
        1 => Some(double),
        _ => None,
    }
}

pub(super) fn fused(w: u32) -> Option<Inst> {
    let op = match bits(w, 2, 2) {
        0 => of_format(w, Op::FmaddS, Op::FmaddD),
        1 => of_format(w, Op::FmsubS, Op::FmsubD),
        2 => of_format(w, Op::FnmsubS, Op::FnmsubD),
        _ => of_format(w, Op::FnmaddS, Op::FnmaddD),
    }?;
    let sources = Inst { rs1: F0 + rs1(w), rs2: F0 + rs2(w), rs3: F0 + bits(w, 27, 5) as u8, ..Inst::new(op) };
    Some(Inst { rd: F0 + rd(w), rm: rounding(w)?, ..sources })
}

pub(super) fn arithmetic(w: u32) -> Option<Inst> {
    let funct3 = bits(w, 12, 3);
    let source = rs2(w);
    let both = |op| Inst { rd: F0 + rd(w), rs1: F0 + rs1(w), rs2: F0 + rs2(w), ..Inst::new(op) };
    let unary = |op| Inst { rd: F0 + rd(w), rs1: F0 + rs1(w), ..Inst::new(op) };
    let to_integer = |op| Inst { rd: destination(rd(w)), rs1: F0 + rs1(w), ..Inst::new(op) };
    let from_integer = |op| Inst { rd: F0 + rd(w), rs1: rs1(w), ..Inst::new(op) };
    let rounded = |inst: Inst| Some(Inst { rm: rounding(w)?, ..inst });
    match (bits(w, 27, 5), funct3, source) {
        (0x00, ..) => rounded(both(of_format(w, Op::FaddS, Op::FaddD)?)),
        (0x01, ..) => rounded(both(of_format(w, Op::FsubS, Op::FsubD)?)),
        (0x02, ..) => rounded(both(of_format(w, Op::FmulS, Op::FmulD)?)),
        (0x03, ..) => rounded(both(of_format(w, Op::FdivS, Op::FdivD)?)),
        (0x0b, _, 0) => rounded(unary(of_format(w, Op::FsqrtS, Op::FsqrtD)?)),
        (0x04, 0, _) => Some(both(of_format(w, Op::FsgnjS, Op::FsgnjD)?)),
        (0x04, 1, _) => Some(both(of_format(w, Op::FsgnjnS, Op::FsgnjnD)?)),
        (0x04, 2, _) => Some(both(of_format(w, Op::FsgnjxS, Op::FsgnjxD)?)),
        (0x05, 0, _) => Some(both(of_format(w, Op::FminS, Op::FminD)?)),
        (0x05, 1, _) => Some(both(of_format(w, Op::FmaxS, Op::FmaxD)?)),
        // Between the two formats: the source's format stands where a second source would.
        (0x08, _, 1) if bits(w, 25, 2) == 0 => rounded(unary(Op::FcvtSD)),
        (0x08, _, 0) if bits(w, 25, 2) == 1 => rounded(unary(Op::FcvtDS)),
        (0x14, 0..=2, _) => {
            let op = match funct3 {
                0 => of_format(w, Op::FleS, Op::FleD)?,
                1 => of_format(w, Op::FltS, Op::FltD)?,
                _ => of_format(w, Op::FeqS, Op::FeqD)?,
            };
            Some(Inst { rs2: F0 + rs2(w), ..to_integer(op) })
        }
        (0x18, _, 0) => rounded(to_integer(of_format(w, Op::FcvtWS, Op::FcvtWD)?)),
        (0x18, _, 1) => rounded(to_integer(of_format(w, Op::FcvtWuS, Op::FcvtWuD)?)),
        (0x18, _, 2) => rounded(to_integer(of_format(w, Op::FcvtLS, Op::FcvtLD)?)),
        (0x18, _, 3) => rounded(to_integer(of_format(w, Op::FcvtLuS, Op::FcvtLuD)?)),
        (0x1a, _, 0) => rounded(from_integer(of_format(w, Op::FcvtSW, Op::FcvtDW)?)),
        (0x1a, _, 1) => rounded(from_integer(of_format(w, Op::FcvtSWu, Op::FcvtDWu)?)),
        (0x1a, _, 2) => rounded(from_integer(of_format(w, Op::FcvtSL, Op::FcvtDL)?)),
        (0x1a, _, 3) => rounded(from_integer(of_format(w, Op::FcvtSLu, Op::FcvtDLu)?)),
        (0x1c, 0, 0) => Some(to_integer(of_format(w, Op::FmvXW, Op::FmvXD)?)),
        (0x1c, 1, 0) => Some(to_integer(of_format(w, Op::FclassS, Op::FclassD)?)),
        (0x1e, 0, 0) => Some(from_integer(of_format(w, Op::FmvWX, Op::FmvDX)?)),
        _ => None,
    }
}
