//! Atomics: what they leave in memory and in their register. The owner of the memory makes them atomic, and
//! answers `lr` and `sc`.

use super::super::instruction::{Op, of_classes};

/// What an AMO leaves in memory, from what was there (as it was read: zeros above 4 bytes) and its operand.
/// The upper half of the result of a word counts for nothing. Another instruction leaves it.
///
/// ```
/// use durawarp_riscv::instruction::Op;
/// use durawarp_riscv::semantics::atomic;
/// assert_eq!(atomic::stored(Op::AmomaxD, 5, -1i64 as u64), 5);
/// assert_eq!(atomic::stored(Op::AmomaxuD, 5, -1i64 as u64), u64::MAX);
/// ```
#[inline]
pub fn stored(op: Op, old: u64, operand: u64) -> u64 {
    use Op::*;
    let (signed, operand_signed) = (old as i32, operand as i32);
    match op {
        AmoswapW | AmoswapD => operand,
        AmoaddW | AmoaddD => old.wrapping_add(operand),
        AmoxorW | AmoxorD => old ^ operand,
        AmoandW | AmoandD => old & operand,
        AmoorW | AmoorD => old | operand,
        AmominW => signed.min(operand_signed) as u64,
        AmomaxW => signed.max(operand_signed) as u64,
        AmominuW => u64::from((old as u32).min(operand as u32)),
        AmomaxuW => u64::from((old as u32).max(operand as u32)),
        AmominD => (old as i64).min(operand as i64) as u64,
        AmomaxD => (old as i64).max(operand as i64) as u64,
        AmominuD => old.min(operand),
        AmomaxuD => old.max(operand),
        of_classes!(Alu Mul Div Branch Jump Load Store LoadReserved StoreConditional Fp FpDiv FpMove FpConvert Fence)
        | of_classes!(CacheLine Csr System Persist Remote Hint Illegal) => old,
    }
}

/// What an AMO puts into its register: what was in memory, a word sign-extended.
#[inline]
pub fn fetched(width: u8, old: u64) -> u64 {
    if width == 4 { old as i32 as u64 } else { old }
}
