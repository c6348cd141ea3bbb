//! What instructions compute, as pure functions of their operands' values.
//!
//! A core gathers operands by [`Inst::sources`], asks the function of the instruction's class, and does the
//! rest itself: memory, reservations, time. Floating point is the host's IEEE arithmetic, round to nearest
//! even. An operation in another rounding mode, static or in `frm`, is refused ([`UnsupportedRounding`])
//! unless it is a conversion, which has all five. Exception flags are not kept: they read 0.

pub mod atomic;
mod convert;
mod float;
mod integer;

pub use float::{CANONICAL_NAN_D, CANONICAL_NAN_S, UnsupportedRounding, float};
pub use integer::{integer, taken};

use super::instruction::{Inst, Op};

/// Where a branch that is taken, or a jump, goes: `jalr` relative to its operand, everything else to itself.
#[inline]
pub fn target(inst: &Inst, pc: u64, a: u64) -> u64 {
    match inst.op {
        Op::Jalr => a.wrapping_add(inst.imm as u64) & !1,
        _ => pc.wrapping_add(inst.imm as u64),
    }
}

/// The address of a memory operation, a cache-line operation, or a word of persistency.
#[inline]
pub fn address(inst: &Inst, a: u64) -> u64 {
    a.wrapping_add(inst.imm as u64)
}

/// What a load puts into its register, from the bytes that it read (little-endian, zeros above its width).
#[inline]
pub fn loaded(op: Op, raw: u64) -> u64 {
    match op {
        Op::Lb => raw as i8 as u64,
        Op::Lh => raw as i16 as u64,
        Op::Lw | Op::LrW => raw as i32 as u64,
        Op::Flw => float::boxed(raw as u32),
        _ => raw,
    }
}

/// What a CSR instruction writes, if it writes: from the old value and its first operand.
pub fn csr_written(inst: &Inst, old: u64, a: u64) -> Option<u64> {
    let immediate = (inst.imm as u64 >> 12) & 0x1f;
    let set = |bits: u64| (bits != 0).then_some(old | bits);
    let clear = |bits: u64| (bits != 0).then_some(old & !bits);
    match inst.op {
        Op::Csrrw => Some(a),
        Op::Csrrs => set(a),
        Op::Csrrc => clear(a),
        Op::Csrrwi => Some(immediate),
        Op::Csrrsi => set(immediate),
        _ => clear(immediate),
    }
}
