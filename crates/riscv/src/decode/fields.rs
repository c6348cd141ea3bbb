//! Bit fields of 32-bit words: registers and the immediates of the six formats; instructions
//! of two formats.

use crate::instruction::{Inst, NOWHERE, Op, X0};

/// `count` bits from bit `from` on.
#[inline]
pub(super) const fn bits(word: u32, from: u32, count: u32) -> u32 {
    (word >> from) & ((1 << count) - 1)
}

pub(super) const fn rd(word: u32) -> u8 {
    bits(word, 7, 5) as u8
}

pub(super) const fn rs1(word: u32) -> u8 {
    bits(word, 15, 5) as u8
}

pub(super) const fn rs2(word: u32) -> u8 {
    bits(word, 20, 5) as u8
}

/// An integer register as a destination: what is written to x0 goes nowhere.
pub(super) const fn destination(register: u8) -> u8 {
    if register == X0 { NOWHERE } else { register }
}

pub(super) const fn imm_i(word: u32) -> i32 {
    word as i32 >> 20
}

pub(super) const fn imm_s(word: u32) -> i32 {
    (word as i32 >> 25) << 5 | bits(word, 7, 5) as i32
}

pub(super) const fn imm_b(word: u32) -> i32 {
    (word as i32 >> 31) << 12 | (bits(word, 7, 1) << 11 | bits(word, 25, 6) << 5 | bits(word, 8, 4) << 1) as i32
}

pub(super) const fn imm_u(word: u32) -> i32 {
    (word & 0xffff_f000) as i32
}

pub(super) const fn imm_j(word: u32) -> i32 {
    (word as i32 >> 31) << 20 | (bits(word, 12, 8) << 12 | bits(word, 20, 1) << 11 | bits(word, 21, 10) << 1) as i32
}

/// Of a register and an immediate.
pub(super) fn i_type(op: Op, w: u32) -> Inst {
    Inst { rd: destination(rd(w)), rs1: rs1(w), imm: imm_i(w), ..Inst::new(op) }
}

/// Of two registers to a third.
pub(super) fn r_type(op: Op, w: u32) -> Inst {
    Inst { rd: destination(rd(w)), rs1: rs1(w), rs2: rs2(w), ..Inst::new(op) }
}
