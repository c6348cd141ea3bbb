//! Integer words: operations on registers and immediates, of the base, of multiplication, on bits (Zba, Zbb,
//! Zbs) and on conditions (Zicond).

use super::fields::{bits, i_type, r_type, rs2};
use crate::instruction::{Inst, Op, X0};

/// An operation on one register that stands where a shift has its amount.
fn unary(w: u32) -> Option<Inst> {
    let op = match (bits(w, 12, 3), bits(w, 20, 12)) {
        (1, 0x600) => Op::Clz,
        (1, 0x601) => Op::Ctz,
        (1, 0x602) => Op::Cpop,
        (1, 0x604) => Op::SextB,
        (1, 0x605) => Op::SextH,
        (5, 0x287) => Op::OrcB,
        (5, 0x6b8) => Op::Rev8,
        _ => return None,
    };
    Some(Inst { imm: 0, ..i_type(op, w) })
}

/// A shift by up to 63, or an operation on one bit, whose number is an immediate as well.
fn shift(w: u32) -> Option<Inst> {
    let op = match (bits(w, 12, 3), bits(w, 26, 6)) {
        (1, 0x00) => Op::Slli,
        (1, 0x0a) => Op::Bseti,
        (1, 0x12) => Op::Bclri,
        (1, 0x1a) => Op::Binvi,
        (5, 0x00) => Op::Srli,
        (5, 0x10) => Op::Srai,
        (5, 0x12) => Op::Bexti,
        (5, 0x18) => Op::Rori,
        _ => return None,
    };
    Some(Inst { imm: bits(w, 20, 6) as i32, ..i_type(op, w) })
}

pub(super) fn immediate(w: u32) -> Option<Inst> {
    let op = match bits(w, 12, 3) {
        0 => Op::Addi,
        2 => Op::Slti,
        3 => Op::Sltiu,
        4 => Op::Xori,
        6 => Op::Ori,
        7 => Op::Andi,
        _ => return unary(w).or_else(|| shift(w)),
    };
    Some(i_type(op, w))
}

pub(super) fn immediate_word(w: u32) -> Option<Inst> {
    // A shift of a word has five bits, that of an unsigned word to a double word has six.
    let (op, amount) = match (bits(w, 12, 3), bits(w, 25, 7), bits(w, 20, 5)) {
        (0, ..) => return Some(i_type(Op::Addiw, w)),
        (1, 0x00, amount) => (Op::Slliw, amount),
        (1, 0x04 | 0x05, _) => (Op::SlliUw, bits(w, 20, 6)),
        (1, 0x30, 0) => (Op::Clzw, 0),
        (1, 0x30, 1) => (Op::Ctzw, 0),
        (1, 0x30, 2) => (Op::Cpopw, 0),
        (5, 0x00, amount) => (Op::Srliw, amount),
        (5, 0x20, amount) => (Op::Sraiw, amount),
        (5, 0x30, amount) => (Op::Roriw, amount),
        _ => return None,
    };
    Some(Inst { imm: amount as i32, ..i_type(op, w) })
}

pub(super) fn register(w: u32) -> Option<Inst> {
    const BASE: [Op; 8] = [Op::Add, Op::Sll, Op::Slt, Op::Sltu, Op::Xor, Op::Srl, Op::Or, Op::And];
    const MULTIPLY: [Op; 8] = [Op::Mul, Op::Mulh, Op::Mulhsu, Op::Mulhu, Op::Div, Op::Divu, Op::Rem, Op::Remu];
    let funct3 = bits(w, 12, 3) as usize;
    let op = match (bits(w, 25, 7), funct3) {
        (0x00, _) => BASE[funct3],
        (0x01, _) => MULTIPLY[funct3],
        (0x05, 4) => Op::Min,
        (0x05, 5) => Op::Minu,
        (0x05, 6) => Op::Max,
        (0x05, 7) => Op::Maxu,
        (0x07, 5) => Op::CzeroEqz,
        (0x07, 7) => Op::CzeroNez,
        (0x10, 2) => Op::Sh1add,
        (0x10, 4) => Op::Sh2add,
        (0x10, 6) => Op::Sh3add,
        (0x14, 1) => Op::Bset,
        (0x20, 0) => Op::Sub,
        (0x20, 4) => Op::Xnor,
        (0x20, 5) => Op::Sra,
        (0x20, 6) => Op::Orn,
        (0x20, 7) => Op::Andn,
        (0x24, 1) => Op::Bclr,
        (0x24, 5) => Op::Bext,
        (0x30, 1) => Op::Rol,
        (0x30, 5) => Op::Ror,
        (0x34, 1) => Op::Binv,
        _ => return None,
    };
    Some(r_type(op, w))
}

pub(super) fn register_word(w: u32) -> Option<Inst> {
    let op = match (bits(w, 25, 7), bits(w, 12, 3)) {
        (0x00, 0) => Op::Addw,
        (0x00, 1) => Op::Sllw,
        (0x00, 5) => Op::Srlw,
        (0x01, 0) => Op::Mulw,
        (0x01, 4) => Op::Divw,
        (0x01, 5) => Op::Divuw,
        (0x01, 6) => Op::Remw,
        (0x01, 7) => Op::Remuw,
        (0x04, 0) => Op::AddUw,
        (0x04, 4) if rs2(w) == X0 => Op::ZextH,
        (0x10, 2) => Op::Sh1addUw,
        (0x10, 4) => Op::Sh2addUw,
        (0x10, 6) => Op::Sh3addUw,
        (0x20, 0) => Op::Subw,
        (0x20, 5) => Op::Sraw,
        (0x30, 1) => Op::Rolw,
        (0x30, 5) => Op::Rorw,
        _ => return None,
    };
    Some(r_type(op, w))
}
