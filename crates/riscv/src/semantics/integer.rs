//! Integer arithmetic and the conditions of branches. Division by zero and overflow have the results of the
//! manual.

use crate::instruction::{Inst, Op, of_classes};

/// The result of an instruction of class `Alu`, `Mul` or `Div`, and the link of a jump.
///
/// # Panics
/// On an instruction of another class.
#[inline]
pub fn integer(inst: &Inst, pc: u64, a: u64, b: u64) -> u64 {
    let imm = inst.imm as u64;
    match inst.op {
        Op::Lui => imm,
        Op::Auipc => pc.wrapping_add(imm),
        Op::Jal | Op::Jalr => pc.wrapping_add(u64::from(inst.length)),
        Op::Addi => a.wrapping_add(imm),
        Op::Slti => u64::from((a as i64) < imm as i64),
        Op::Sltiu => u64::from(a < imm),
        Op::Xori => a ^ imm,
        Op::Ori => a | imm,
        Op::Andi => a & imm,
        Op::Slli => a.wrapping_shl(inst.imm as u32),
        Op::Srli => a.wrapping_shr(inst.imm as u32),
        Op::Srai => (a as i64).wrapping_shr(inst.imm as u32) as u64,
        Op::Addiw => word(a.wrapping_add(imm)),
        Op::Slliw => word(u64::from((a as u32).wrapping_shl(inst.imm as u32))),
        Op::Srliw => word(u64::from((a as u32).wrapping_shr(inst.imm as u32))),
        Op::Sraiw => (a as i32).wrapping_shr(inst.imm as u32) as u64,
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Sll => a.wrapping_shl(b as u32),
        Op::Slt => u64::from((a as i64) < b as i64),
        Op::Sltu => u64::from(a < b),
        Op::Xor => a ^ b,
        Op::Srl => a.wrapping_shr(b as u32),
        Op::Sra => (a as i64).wrapping_shr(b as u32) as u64,
        Op::Or => a | b,
        Op::And => a & b,
        Op::Addw => word(a.wrapping_add(b)),
        Op::Subw => word(a.wrapping_sub(b)),
        Op::Sllw => word(u64::from((a as u32).wrapping_shl(b as u32))),
        Op::Srlw => word(u64::from((a as u32).wrapping_shr(b as u32))),
        Op::Sraw => (a as i32).wrapping_shr(b as u32) as u64,
        Op::Mul => a.wrapping_mul(b),
        Op::Mulh => ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64,
        Op::Mulhsu => ((i128::from(a as i64) * i128::from(b)) >> 64) as u64,
        Op::Mulhu => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Op::Mulw => word(a.wrapping_mul(b)),
        Op::Div => divide(a, b),
        Op::Divu => a.checked_div(b).unwrap_or(u64::MAX),
        Op::Rem => remainder(a, b),
        Op::Remu => a.checked_rem(b).unwrap_or(a),
        Op::Divw => word(divide(word(a), word(b))),
        Op::Divuw => word(u64::from((a as u32).checked_div(b as u32).unwrap_or(u32::MAX))),
        Op::Remw => word(remainder(word(a), word(b))),
        Op::Remuw => word(u64::from((a as u32).checked_rem(b as u32).unwrap_or(a as u32))),
        Op::AddUw => b.wrapping_add(unsigned(a)),
        Op::Sh1add => b.wrapping_add(a << 1),
        Op::Sh2add => b.wrapping_add(a << 2),
        Op::Sh3add => b.wrapping_add(a << 3),
        Op::Sh1addUw => b.wrapping_add(unsigned(a) << 1),
        Op::Sh2addUw => b.wrapping_add(unsigned(a) << 2),
        Op::Sh3addUw => b.wrapping_add(unsigned(a) << 3),
        Op::SlliUw => unsigned(a).wrapping_shl(inst.imm as u32),
        Op::Andn => a & !b,
        Op::Orn => a | !b,
        Op::Xnor => !(a ^ b),
        Op::Clz => a.leading_zeros().into(),
        Op::Clzw => (a as u32).leading_zeros().into(),
        Op::Ctz => a.trailing_zeros().into(),
        Op::Ctzw => (a as u32).trailing_zeros().into(),
        Op::Cpop => a.count_ones().into(),
        Op::Cpopw => (a as u32).count_ones().into(),
        Op::Max => (a as i64).max(b as i64) as u64,
        Op::Maxu => a.max(b),
        Op::Min => (a as i64).min(b as i64) as u64,
        Op::Minu => a.min(b),
        Op::SextB => a as i8 as u64,
        Op::SextH => a as i16 as u64,
        Op::ZextH => u64::from(a as u16),
        // These take the amount modulo the width, as the manual does.
        Op::Rol => a.rotate_left(b as u32 & 63),
        Op::Rolw => word(u64::from((a as u32).rotate_left(b as u32 & 31))),
        Op::Ror => a.rotate_right(b as u32 & 63),
        Op::Rorw => word(u64::from((a as u32).rotate_right(b as u32 & 31))),
        Op::Rori => a.rotate_right(inst.imm as u32 & 63),
        Op::Roriw => word(u64::from((a as u32).rotate_right(inst.imm as u32 & 31))),
        Op::OrcB => u64::from_le_bytes(a.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff })),
        Op::Rev8 => a.swap_bytes(),
        Op::Bclr => a & !bit(b),
        Op::Bclri => a & !bit(imm),
        Op::Bext => u64::from(a & bit(b) != 0),
        Op::Bexti => u64::from(a & bit(imm) != 0),
        Op::Binv => a ^ bit(b),
        Op::Binvi => a ^ bit(imm),
        Op::Bset => a | bit(b),
        Op::Bseti => a | bit(imm),
        Op::CzeroEqz => {
            if b == 0 {
                0
            } else {
                a
            }
        }
        Op::CzeroNez => {
            if b != 0 {
                0
            } else {
                a
            }
        }
        of_classes!(Branch Load Store LoadReserved StoreConditional Amo Fp FpDiv FpMove FpConvert Fence CacheLine)
        | of_classes!(Csr System Persist Remote Hint Illegal) => no_integer(inst.op),
    }
}

#[cold]
fn no_integer(op: Op) -> u64 {
    unreachable!("{} is no integer operation", op.name())
}

/// The low 32 bits, zero-extended.
#[inline]
fn unsigned(value: u64) -> u64 {
    u64::from(value as u32)
}

/// One bit, by its number modulo 64.
#[inline]
fn bit(number: u64) -> u64 {
    1 << (number & 63)
}

/// The low 32 bits, sign-extended.
#[inline]
fn word(value: u64) -> u64 {
    value as i32 as u64
}

/// Quotient, rounded towards zero; all ones when divided by zero, the dividend when it overflows.
#[inline]
fn divide(a: u64, b: u64) -> u64 {
    if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
}

/// Remainder with the dividend's sign; the dividend when divided by zero, 0 when the quotient overflows.
#[inline]
fn remainder(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 }
}

/// Whether a conditional branch is taken. Any other instruction is not a branch and gives `false`.
#[inline]
pub fn taken(op: Op, a: u64, b: u64) -> bool {
    match op {
        Op::Beq => a == b,
        Op::Bne => a != b,
        Op::Blt => (a as i64) < b as i64,
        Op::Bge => a as i64 >= b as i64,
        Op::Bltu => a < b,
        Op::Bgeu => a >= b,
        of_classes!(Alu Mul Div Jump Load Store LoadReserved StoreConditional Amo Fp FpDiv FpMove FpConvert Fence)
        | of_classes!(CacheLine Csr System Persist Remote Hint Illegal) => false,
    }
}
