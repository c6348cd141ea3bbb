//! From a word of memory to an [`Inst`].
//!
//! RV64IMAFD with Zicsr (fcsr, frm, fflags, cycle, time, instret), Zifencei (no effect), Zihintpause, Zba,
//! Zbb, Zbs, Zicond, Zicbop (hints, as their general form is), Zicbom (`cbo.inval` is refused: it would lose
//! data) and the persistency words in custom-0. Anything else is [`Op::Illegal`]. Encodings that the manual
//! calls hints do nothing, as their general form does.

mod compressed;
mod fields;
mod float;
mod integer;
mod unsupported;

pub use unsupported::unsupported;

use super::instruction::{Inst, NOWHERE, Op, X0};
use fields::{bits, destination, i_type, imm_b, imm_i, imm_j, imm_s, imm_u, r_type, rd, rs1, rs2};

/// Control and status registers that a program of user mode may name.
pub mod csr {
    /// Accrued exceptions of floating point.
    pub const FFLAGS: i32 = 0x001;
    /// Rounding mode.
    pub const FRM: i32 = 0x002;
    /// Both.
    pub const FCSR: i32 = 0x003;
    /// Clock cycles of the hart.
    pub const CYCLE: i32 = 0xc00;
    /// Time of the clock.
    pub const TIME: i32 = 0xc01;
    /// Instructions of the hart.
    pub const INSTRET: i32 = 0xc02;
}

/// Bytes of the instruction that begins with these 16 bits.
#[inline]
pub const fn length(half: u16) -> u8 {
    if half & 3 == 3 { 4 } else { 2 }
}

/// The instruction that begins with the low bits of a word. The upper half does not count for a compressed
/// one.
///
/// ```
/// use durawarp_riscv::decode::decode;
/// use durawarp_riscv::instruction::{A0, Op};
/// let add = decode(0x00b5_0533); // add a0, a0, a1
/// assert_eq!((add.op, add.rd, add.sources(), add.length), (Op::Add, A0, [10, 11, 0], 4));
/// let short = decode(0x0000_952e); // c.add a0, a1
/// assert_eq!((short.op, short.rd, short.sources(), short.length), (Op::Add, A0, [10, 11, 0], 2));
/// ```
pub fn decode(word: u32) -> Inst {
    if length(word as u16) == 2 {
        return compressed::expand(word as u16);
    }
    full(word).unwrap_or(Inst::illegal(word, 4))
}

fn full(w: u32) -> Option<Inst> {
    Some(match bits(w, 2, 5) {
        0b00000 => load(w)?,
        0b00001 => float::load(w)?,
        0b00010 => persistency(w)?,
        0b00011 => fence(w)?,
        0b00100 => integer::immediate(w)?,
        0b00101 => upper(Op::Auipc, w),
        0b00110 => integer::immediate_word(w)?,
        0b01000 => store(w)?,
        0b01001 => float::store(w)?,
        0b01011 => atomic(w)?,
        0b01100 => integer::register(w)?,
        0b01101 => upper(Op::Lui, w),
        0b01110 => integer::register_word(w)?,
        0b10000..=0b10011 => float::fused(w)?,
        0b10100 => float::arithmetic(w)?,
        0b11000 => branch(w)?,
        0b11001 if bits(w, 12, 3) == 0 => i_type(Op::Jalr, w),
        0b11011 => Inst { rd: destination(rd(w)), imm: imm_j(w), ..Inst::new(Op::Jal) },
        0b11100 => system(w)?,
        _ => return None,
    })
}

fn upper(op: Op, w: u32) -> Inst {
    Inst { rd: destination(rd(w)), imm: imm_u(w), ..Inst::new(op) }
}

fn load(w: u32) -> Option<Inst> {
    const OPS: [Op; 7] = [Op::Lb, Op::Lh, Op::Lw, Op::Ld, Op::Lbu, Op::Lhu, Op::Lwu];
    Some(i_type(*OPS.get(bits(w, 12, 3) as usize)?, w))
}

fn store(w: u32) -> Option<Inst> {
    const OPS: [Op; 4] = [Op::Sb, Op::Sh, Op::Sw, Op::Sd];
    let op = *OPS.get(bits(w, 12, 3) as usize)?;
    Some(Inst { rs1: rs1(w), rs2: rs2(w), imm: imm_s(w), ..Inst::new(op) })
}

fn branch(w: u32) -> Option<Inst> {
    let op = match bits(w, 12, 3) {
        0 => Op::Beq,
        1 => Op::Bne,
        4 => Op::Blt,
        5 => Op::Bge,
        6 => Op::Bltu,
        7 => Op::Bgeu,
        _ => return None,
    };
    Some(Inst { rs1: rs1(w), rs2: rs2(w), imm: imm_b(w), ..Inst::new(op) })
}

fn atomic(w: u32) -> Option<Inst> {
    let (word, double) = match bits(w, 27, 5) {
        0b00010 if rs2(w) == 0 => (Op::LrW, Op::LrD),
        0b00011 => (Op::ScW, Op::ScD),
        0b00001 => (Op::AmoswapW, Op::AmoswapD),
        0b00000 => (Op::AmoaddW, Op::AmoaddD),
        0b00100 => (Op::AmoxorW, Op::AmoxorD),
        0b01100 => (Op::AmoandW, Op::AmoandD),
        0b01000 => (Op::AmoorW, Op::AmoorD),
        0b10000 => (Op::AmominW, Op::AmominD),
        0b10100 => (Op::AmomaxW, Op::AmomaxD),
        0b11000 => (Op::AmominuW, Op::AmominuD),
        0b11100 => (Op::AmomaxuW, Op::AmomaxuD),
        _ => return None,
    };
    let op = match bits(w, 12, 3) {
        2 => word,
        3 => double,
        _ => return None,
    };
    Some(Inst { rm: bits(w, 25, 2) as u8, ..r_type(op, w) })
}

fn fence(w: u32) -> Option<Inst> {
    Some(match bits(w, 12, 3) {
        // `pause` is the hint of this one word: a fence after writes of nothing.
        0 if w == 0x0100_000f => Inst::new(Op::Pause),
        // Registers are reserved: a fence has to ignore them.
        0 => Inst { imm: bits(w, 20, 12) as i32, ..Inst::new(Op::Fence) },
        1 => Inst::new(Op::FenceI),
        2 if rd(w) == X0 => match imm_i(w) {
            1 => Inst { rs1: rs1(w), ..Inst::new(Op::CboClean) },
            2 => Inst { rs1: rs1(w), ..Inst::new(Op::CboFlush) },
            _ => return None,
        },
        _ => return None,
    })
}

fn system(w: u32) -> Option<Inst> {
    let funct3 = bits(w, 12, 3);
    if funct3 == 0 {
        return match w {
            0x0000_0073 => Some(Inst::new(Op::Ecall)),
            0x0010_0073 => Some(Inst::new(Op::Ebreak)),
            _ => None,
        };
    }
    let number = bits(w, 20, 12) as i32;
    let op = match funct3 {
        1 => Op::Csrrw,
        2 => Op::Csrrs,
        3 => Op::Csrrc,
        5 => Op::Csrrwi,
        6 => Op::Csrrsi,
        7 => Op::Csrrci,
        _ => return None,
    };
    let writes = funct3 & 3 == 1 || rs1(w) != X0;
    match number {
        csr::FFLAGS | csr::FRM | csr::FCSR => {}
        csr::CYCLE | csr::TIME | csr::INSTRET if !writes => {}
        _ => return None,
    }
    let (rs1, immediate) = if funct3 >= 5 { (X0, rs1(w) as i32) } else { (rs1(w), 0) };
    Some(Inst { rd: destination(rd(w)), rs1, imm: number | immediate << 12, ..Inst::new(op) })
}

/// The words of custom-0, all of the form `.insn i 0x0b, FUNCT3, rd, rs1, imm`.
fn persistency(w: u32) -> Option<Inst> {
    let inst = i_type(Op::Illegal, w);
    let registers = (inst.rd != NOWHERE, inst.rs1 != X0);
    let op = match (bits(w, 12, 3), registers, inst.imm) {
        (0, (false, false), 0) => Op::PmOfence,
        (1, (false, false), 0) => Op::PmDfence,
        (2, (false, false), 0) => Op::PmRegion,
        (3, (false, false), 1 | 2) => Op::PmTx,
        (4, (false, false), 0) => Op::PmOp,
        (5, (false, _), 0) => Op::PmNt,
        (6, (false, _), 0) => Op::RdmaPost,
        (7, _, 0) => Op::RdmaPoll,
        _ => return None,
    };
    Some(Inst { op, ..inst })
}
