//! The read-modify-write of one element (PTX ISA 9.7.13.5, `atom`), wherever it happens: functional memory,
//! shared memory of an SM, an L2 slice.
//!
//! Not modelled: real GPUs flush denormals in `atom.global.add.f32` but not in shared memory; here neither
//! does.

use super::super::ir::{AtomOp, Elem, PhaseOp};
use super::canonical::{canon32, canon64};
use super::{half, phase};

pub use super::phase::PhaseMisuse;

/// The value that an atomic operation leaves in memory, from the old value and the operands. All are raw bits
/// in the low [`Elem::bytes`] bytes; higher bits of the result are zero.
///
/// # Example: an increment wraps at its operand
/// ```
/// use durawarp_kernel::ir::{AtomOp, Elem};
/// use durawarp_kernel::semantics::atomic::apply_atomic;
/// assert_eq!(apply_atomic(AtomOp::Inc, Elem::U32, 6, 7, 0), 7);
/// assert_eq!(apply_atomic(AtomOp::Inc, Elem::U32, 7, 7, 0), 0);
/// ```
#[must_use]
pub fn apply_atomic(op: AtomOp, elem: Elem, old: u64, a: u64, b: u64) -> u64 {
    // Operands come from registers, which may be wider than the element and hold anything above it.
    let keep = u64::MAX >> (64 - 8 * elem.bytes());
    let (old, a, b) = (old & keep, a & keep, b & keep);
    let new = match op {
        AtomOp::None => old,
        AtomOp::Add => match elem {
            // A NaN is the canonical one, or memory would depend on the host.
            Elem::F32 => u64::from(canon32(f32::from_bits(old as u32) + f32::from_bits(a as u32))),
            Elem::F64 => canon64(f64::from_bits(old) + f64::from_bits(a)),
            Elem::U8 | Elem::U16 | Elem::U32 | Elem::U64 => old.wrapping_add(a),
            Elem::S8 | Elem::S16 | Elem::S32 | Elem::S64 => old.wrapping_add(a),
        },
        AtomOp::AddHalf(ty) => u64::from(half::add(ty, old as u32, a as u32)),
        AtomOp::Inc => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        // A value above the operand counts as out of range and wraps too, as in `Inc`.
        AtomOp::Dec => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        AtomOp::Min => {
            if less(elem, a, old) {
                a
            } else {
                old
            }
        }
        AtomOp::Max => {
            if less(elem, old, a) {
                a
            } else {
                old
            }
        }
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Exch => a,
        AtomOp::MinHalf(format) => u64::from(half::extreme_one(format, old as u16, a as u16, false)),
        AtomOp::MaxHalf(format) => u64::from(half::extreme_one(format, old as u16, a as u16, true)),
        AtomOp::Phase(op) => phase::step(op, old, a, b).unwrap_or(old),
        AtomOp::Cas => {
            if old == a {
                b
            } else {
                old
            }
        }
    };
    new & keep
}

/// What an atomic of 16 bytes leaves of its halves, the lower one first: all of the new value, or the old
/// one. The operands are those of each half.
///
/// # Example: nothing is swapped where one half differs
/// ```
/// use durawarp_kernel::ir::AtomOp;
/// use durawarp_kernel::semantics::atomic::apply_to_pair;
/// assert_eq!(apply_to_pair(AtomOp::Cas, [1, 2], [(1, 5), (2, 6)]), [5, 6]);
/// assert_eq!(apply_to_pair(AtomOp::Cas, [1, 2], [(1, 5), (3, 6)]), [1, 2]);
/// ```
///
/// # Panics
/// The operation is neither an exchange nor a compare-and-swap: the ISA has no other of 16 bytes.
#[must_use]
pub fn apply_to_pair(op: AtomOp, old: [u64; 2], operands: [(u64, u64); 2]) -> [u64; 2] {
    let [first, second] = [operands.map(|(a, _)| a), operands.map(|(_, b)| b)];
    if op == AtomOp::Exch {
        return first;
    }
    assert_eq!(op, AtomOp::Cas, "an atomic of 16 bytes");
    if old == first { second } else { old }
}

/// Does it in memory: the old halves, and the new ones.
pub fn swap_pair(op: AtomOp, found: &mut [u8], operands: [(u64, u64); 2]) -> [[u64; 2]; 2] {
    let old = [&found[..8], &found[8..16]].map(|half| u64::from_le_bytes(half.try_into().expect("eight bytes")));
    let new = apply_to_pair(op, old, operands);
    found[..16].copy_from_slice(new.map(u64::to_le_bytes).as_flattened());
    [old, new]
}

/// The same as [`apply_atomic`] of memory that may hold barriers.
///
/// # Errors
/// What follows of the step of an `mbarrier` is undefined; memory keeps its old value then.
#[inline]
pub fn try_atomic(op: AtomOp, elem: Elem, old: u64, a: u64, b: u64) -> Result<u64, PhaseMisuse> {
    if let AtomOp::Phase(op) = op { phase::step(op, old, a, b) } else { Ok(apply_atomic(op, elem, old, a, b)) }
}

/// Elements come to memory: each is written over, or combined with what is there. Both stretches have the
/// same elements, whole ones.
pub fn put_elements(op: AtomOp, elem: Elem, found: &mut [u8], with: &[u8]) {
    if op == AtomOp::None {
        return found.copy_from_slice(with);
    }
    let size = elem.bytes() as usize;
    for (old, a) in found.chunks_exact_mut(size).zip(with.chunks_exact(size)) {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let new = apply_atomic(op, elem, word(old), word(a), 0);
        old.copy_from_slice(&new.to_le_bytes()[..size]);
    }
}

/// Completes bytes at a barrier in shared memory, which is there and aligned.
///
/// # Errors
/// No barrier is initialised there, or it counts no further; it is left as it is.
pub fn complete_bytes(shared: &mut [u8], barrier: u64, bytes: u32) -> Result<(), PhaseMisuse> {
    step_barrier(PhaseOp::Complete, shared, barrier, bytes.into())
}

/// A lane arrives at a barrier in shared memory, which is there and aligned.
///
/// # Errors
/// No barrier is initialised there, or no arrival is pending; it is left as it is.
pub fn arrive_once(shared: &mut [u8], barrier: u64) -> Result<(), PhaseMisuse> {
    step_barrier(PhaseOp::Arrive, shared, barrier, 1)
}

/// The phase of this parity, the current one or that before it, is over at a barrier in shared memory, which
/// is there and aligned.
pub fn phase_is_over(shared: &[u8], barrier: u64, parity: bool) -> bool {
    let word = &shared[barrier as usize..barrier as usize + 8];
    phase::is_over_by_parity(u64::from_le_bytes(word.try_into().expect("eight bytes")), parity.into())
}

fn step_barrier(op: PhaseOp, shared: &mut [u8], barrier: u64, a: u64) -> Result<(), PhaseMisuse> {
    let word = &mut shared[barrier as usize..barrier as usize + 8];
    let old = u64::from_le_bytes((&*word).try_into().expect("eight bytes"));
    word.copy_from_slice(&phase::step(op, old, a, 0)?.to_le_bytes());
    Ok(())
}

fn less(elem: Elem, x: u64, y: u64) -> bool {
    match elem {
        Elem::S8 => (x as i8) < y as i8,
        Elem::S16 => (x as i16) < y as i16,
        Elem::S32 => (x as i32) < y as i32,
        Elem::S64 => (x as i64) < y as i64,
        Elem::F32 => f32::from_bits(x as u32) < f32::from_bits(y as u32),
        Elem::F64 => f64::from_bits(x) < f64::from_bits(y),
        Elem::U8 | Elem::U16 | Elem::U32 | Elem::U64 => x < y,
    }
}
