//! Compressed words of RV64C, expanded to the instruction that they stand for.
//!
//! Reserved encodings are illegal; hints (results to x0, shifts by 0) become the instruction without effect
//! that their general form is.

use super::fields::destination;
use crate::instruction::{F0, Inst, Op, RA, SP, X0};

/// `count` bits from bit `from` on, moved to bit `to` on.
const fn field(half: u16, from: u32, count: u32, to: u32) -> i32 {
    (((half >> from) & ((1 << count) - 1)) as i32) << to
}

/// The sign bit of an immediate, bit 12 of the word, as bit `to` and all above it.
const fn sign(half: u16, to: u32) -> i32 {
    -field(half, 12, 1, to)
}

/// A register of five bits in the place of the destination.
const fn full(half: u16) -> u8 {
    field(half, 7, 5, 0) as u8
}

/// The second source of five bits.
const fn second(half: u16) -> u8 {
    field(half, 2, 5, 0) as u8
}

/// A register of three bits, x8 to x15, in the place of the first source.
const fn short_first(half: u16) -> u8 {
    8 + field(half, 7, 3, 0) as u8
}

/// The same in the place of the second source.
const fn short_second(half: u16) -> u8 {
    8 + field(half, 2, 3, 0) as u8
}

/// The instruction that a 16-bit word stands for.
pub(super) fn expand(half: u16) -> Inst {
    let found = match half & 3 {
        0 => quadrant_0(half),
        1 => quadrant_1(half),
        _ => quadrant_2(half),
    };
    match found {
        Some(inst) => Inst { length: 2, ..inst },
        None => Inst::illegal(u32::from(half), 2),
    }
}

const fn immediate(op: Op, rd: u8, rs1: u8, imm: i32) -> Inst {
    Inst { rd: destination(rd), rs1, imm, ..Inst::new(op) }
}

const fn register(op: Op, rd: u8, rs1: u8, rs2: u8) -> Inst {
    Inst { rd: destination(rd), rs1, rs2, ..Inst::new(op) }
}

const fn float_load(rd: u8, rs1: u8, imm: i32) -> Inst {
    Inst { rd: F0 + rd, rs1, imm, ..Inst::new(Op::Fld) }
}

const fn store(op: Op, rs1: u8, rs2: u8, imm: i32) -> Inst {
    Inst { rs1, rs2, imm, ..Inst::new(op) }
}

fn quadrant_0(h: u16) -> Option<Inst> {
    let (base, other) = (short_first(h), short_second(h));
    let words = field(h, 10, 3, 3) | field(h, 6, 1, 2) | field(h, 5, 1, 6);
    let doubles = field(h, 10, 3, 3) | field(h, 5, 2, 6);
    Some(match h >> 13 {
        0 => {
            let imm = field(h, 11, 2, 4) | field(h, 7, 4, 6) | field(h, 6, 1, 2) | field(h, 5, 1, 3);
            if imm == 0 {
                return None;
            }
            immediate(Op::Addi, other, SP, imm)
        }
        1 => float_load(other, base, doubles),
        2 => immediate(Op::Lw, other, base, words),
        3 => immediate(Op::Ld, other, base, doubles),
        5 => store(Op::Fsd, base, F0 + other, doubles),
        6 => store(Op::Sw, base, other, words),
        7 => store(Op::Sd, base, other, doubles),
        _ => return None,
    })
}

fn quadrant_1(h: u16) -> Option<Inst> {
    let rd = full(h);
    let imm = sign(h, 5) | field(h, 2, 5, 0);
    Some(match h >> 13 {
        0 => immediate(Op::Addi, rd, rd, imm),
        1 if rd != X0 => immediate(Op::Addiw, rd, rd, imm),
        2 => immediate(Op::Addi, rd, X0, imm),
        3 if imm == 0 => return None,
        3 if rd == SP => {
            let imm = sign(h, 9) | field(h, 6, 1, 4) | field(h, 5, 1, 6) | field(h, 3, 2, 7) | field(h, 2, 1, 5);
            immediate(Op::Addi, SP, SP, imm)
        }
        3 => immediate(Op::Lui, rd, X0, imm << 12),
        4 => arithmetic(h)?,
        5 => {
            let low = field(h, 3, 3, 1) | field(h, 11, 1, 4) | field(h, 2, 1, 5) | field(h, 7, 1, 6);
            let high = field(h, 6, 1, 7) | field(h, 9, 2, 8) | field(h, 8, 1, 10) | sign(h, 11);
            Inst { imm: low | high, ..Inst::new(Op::Jal) }
        }
        6 | 7 => {
            let low = field(h, 3, 2, 1) | field(h, 10, 2, 3) | field(h, 2, 1, 5);
            let high = field(h, 5, 2, 6) | sign(h, 8);
            let op = if h >> 13 == 6 { Op::Beq } else { Op::Bne };
            Inst { rs1: short_first(h), imm: low | high, ..Inst::new(op) }
        }
        _ => return None,
    })
}

fn arithmetic(h: u16) -> Option<Inst> {
    let (rd, other) = (short_first(h), short_second(h));
    let amount = field(h, 12, 1, 5) | field(h, 2, 5, 0);
    Some(match (h >> 10) & 3 {
        0 => immediate(Op::Srli, rd, rd, amount),
        1 => immediate(Op::Srai, rd, rd, amount),
        2 => immediate(Op::Andi, rd, rd, sign(h, 5) | field(h, 2, 5, 0)),
        _ => {
            let op = match ((h >> 12) & 1, (h >> 5) & 3) {
                (0, 0) => Op::Sub,
                (0, 1) => Op::Xor,
                (0, 2) => Op::Or,
                (0, _) => Op::And,
                (_, 0) => Op::Subw,
                (_, 1) => Op::Addw,
                _ => return None,
            };
            register(op, rd, rd, other)
        }
    })
}

fn quadrant_2(h: u16) -> Option<Inst> {
    let (rd, other) = (full(h), second(h));
    let load_double = field(h, 12, 1, 5) | field(h, 5, 2, 3) | field(h, 2, 3, 6);
    let store_double = field(h, 10, 3, 3) | field(h, 7, 3, 6);
    Some(match h >> 13 {
        0 => immediate(Op::Slli, rd, rd, field(h, 12, 1, 5) | field(h, 2, 5, 0)),
        1 => float_load(rd, SP, load_double),
        2 if rd != X0 => immediate(Op::Lw, rd, SP, field(h, 12, 1, 5) | field(h, 4, 3, 2) | field(h, 2, 2, 6)),
        3 if rd != X0 => immediate(Op::Ld, rd, SP, load_double),
        4 => match (field(h, 12, 1, 0), rd, other) {
            (0, X0, X0) => return None,
            (0, _, X0) => immediate(Op::Jalr, X0, rd, 0),
            (0, ..) => register(Op::Add, rd, X0, other),
            (_, X0, X0) => Inst::new(Op::Ebreak),
            (_, _, X0) => immediate(Op::Jalr, RA, rd, 0),
            _ => register(Op::Add, rd, rd, other),
        },
        5 => store(Op::Fsd, SP, F0 + other, store_double),
        6 => store(Op::Sw, SP, other, field(h, 9, 4, 2) | field(h, 7, 2, 6)),
        7 => store(Op::Sd, SP, other, store_double),
        _ => return None,
    })
}
