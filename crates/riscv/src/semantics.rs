//! What instructions compute, as pure functions of their operands' values.
//!
//! A core gathers operands by [`Inst::sources`], asks the function of the instruction's class, and does the
//! rest itself: memory, reservations, time. Floating point gives a value and the exceptions that it raises,
//! in each of the five rounding modes; the core accrues them in `fcsr`. A mode that is reserved, static or in
//! `fcsr`, is refused ([`ReservedRounding`]).
//!
//! ```text
//!  float ── to nearest, ordinary numbers ──> nearest: the host's arithmetic
//!        └─ everything else ───────────────> rounding: integers
//! ```
//!
//! Invariant: each match over operations has an arm for every operation of its classes, and names the classes
//! that it does not have: without a wildcard no operation is forgotten.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod atomic;
mod convert;
mod flagged;
mod float;
mod format;
mod integer;
mod nearest;
mod rounding;

pub use flagged::{Flagged, flag};
pub use float::{CANONICAL_NAN_D, CANONICAL_NAN_S, ReservedRounding, float};
pub use integer::{integer, taken};

use super::decode::csr;
use super::instruction::{Inst, Op, of_classes};

/// Where a branch that is taken, or a jump, goes: `jalr` relative to its operand, everything else to itself.
#[inline]
pub fn target(inst: &Inst, pc: u64, a: u64) -> u64 {
    match inst.op {
        Op::Jalr => a.wrapping_add(inst.imm as u64) & !1,
        Op::Jal | of_classes!(Branch) => pc.wrapping_add(inst.imm as u64),
        of_classes!(Alu Mul Div Load Store LoadReserved StoreConditional Amo Fp FpDiv FpMove FpConvert Fence)
        | of_classes!(CacheLine Csr System Persist Remote Hint Illegal) => pc.wrapping_add(inst.imm as u64),
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
        Op::Ld | Op::Lbu | Op::Lhu | Op::Lwu | Op::Fld | Op::LrD => raw,
        of_classes!(Alu Mul Div Branch Jump Store StoreConditional Amo Fp FpDiv FpMove FpConvert Fence CacheLine)
        | of_classes!(Csr System Persist Remote Hint Illegal) => raw,
    }
}

/// The value of `fflags`, `frm` or `fcsr`, by its number; `None` of any other register.
#[inline]
pub fn status(number: i32, fcsr: u8) -> Option<u64> {
    match number {
        csr::FFLAGS => Some(u64::from(fcsr & flag::ALL)),
        csr::FRM => Some(u64::from(fcsr >> 5)),
        csr::FCSR => Some(fcsr.into()),
        _ => None,
    }
}

/// `fcsr` once one of them is written.
pub fn status_written(number: i32, fcsr: u8, new: u64) -> u8 {
    match number {
        csr::FFLAGS => fcsr & !flag::ALL | new as u8 & flag::ALL,
        csr::FRM => fcsr & flag::ALL | (new as u8) << 5,
        csr::FCSR => new as u8,
        _ => fcsr,
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
        Op::Csrrci => clear(immediate),
        of_classes!(Alu Mul Div Branch Jump Load Store LoadReserved StoreConditional Amo Fp FpDiv FpMove FpConvert)
        | of_classes!(Fence CacheLine System Persist Remote Hint Illegal) => None,
    }
}
