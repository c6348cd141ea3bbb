//! A register group as executors see it: operands fetched by slot, results merged under the lane mask.
//!
//! Invariant: inactive lanes keep their values.

use super::super::ir::{CONST, Inst, LANES, NONE, Slot};
use durawarp_checkpoint::value;

/// Registers of 32 lanes, one array a slot.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// 32-bit slots.
    pub r32: Vec<[u32; LANES]>,
    /// 64-bit slots.
    pub r64: Vec<[u64; LANES]>,
    /// Predicate slots, one bit a lane.
    pub predicates: Vec<u32>,
}

value!(record Registers { r32, r64, predicates });

/// 32 lanes of 32 bits.
pub(crate) type V32 = [u32; LANES];
/// 32 lanes of 64 bits.
pub(crate) type V64 = [u64; LANES];

/// One register group, the constants of the launch, and the lanes to write.
pub(crate) struct Frame<'a> {
    pub(crate) regs: &'a mut Registers,
    pub(crate) consts32: &'a [V32],
    pub(crate) consts64: &'a [V64],
    pub(crate) mask: u32,
}

impl Frame<'_> {
    #[inline(always)]
    pub(super) fn get32(&self, slot: Slot) -> &V32 {
        get(&self.regs.r32, self.consts32, slot)
    }

    #[inline(always)]
    pub(super) fn get64(&self, slot: Slot) -> &V64 {
        get(&self.regs.r64, self.consts64, slot)
    }

    #[inline(always)]
    pub(super) fn get_p(&self, slot: Slot) -> u32 {
        if slot & CONST != 0 { 0u32.wrapping_sub(u32::from(slot & 1)) } else { self.regs.predicates[usize::from(slot)] }
    }

    #[inline(always)]
    pub(super) fn put32(&mut self, slot: Slot, value: &V32) {
        merge(&mut self.regs.r32[usize::from(slot)], value, self.mask, u32::MAX, 0);
    }

    #[inline(always)]
    pub(super) fn put64(&mut self, slot: Slot, value: &V64) {
        merge(&mut self.regs.r64[usize::from(slot)], value, self.mask, u64::MAX, 0);
    }

    #[inline(always)]
    pub(super) fn put_p(&mut self, slot: Slot, value: u32) {
        let p = &mut self.regs.predicates[usize::from(slot)];
        *p = *p & !self.mask | value & self.mask;
    }

    #[inline(always)]
    pub(super) fn put_p_optional(&mut self, slot: Slot, value: u32) {
        if slot != NONE {
            self.put_p(slot, value);
        }
    }

    /// d(32) = f(a(32))
    #[inline(always)]
    pub(super) fn map32(&mut self, inst: &Inst, f: impl Fn(u32) -> u32) {
        let out = map(self.get32(inst.src[0]), f);
        self.put32(inst.dst[0], &out);
    }

    /// d(32) = f(a(32), b(32))
    #[inline(always)]
    pub(super) fn zip32(&mut self, inst: &Inst, f: impl Fn(u32, u32) -> u32) {
        let out = zip(self.get32(inst.src[0]), self.get32(inst.src[1]), f);
        self.put32(inst.dst[0], &out);
    }

    /// d(32) = f(a(32), b(32), c(32))
    #[inline(always)]
    pub(super) fn zip3_32(&mut self, inst: &Inst, f: impl Fn(u32, u32, u32) -> u32) {
        let out = zip3(self.get32(inst.src[0]), self.get32(inst.src[1]), self.get32(inst.src[2]), f);
        self.put32(inst.dst[0], &out);
    }

    /// d(64) = f(a(64))
    #[inline(always)]
    pub(super) fn map64(&mut self, inst: &Inst, f: impl Fn(u64) -> u64) {
        let out = map(self.get64(inst.src[0]), f);
        self.put64(inst.dst[0], &out);
    }

    /// d(64) = f(a(64), b(64))
    #[inline(always)]
    pub(super) fn zip64(&mut self, inst: &Inst, f: impl Fn(u64, u64) -> u64) {
        let out = zip(self.get64(inst.src[0]), self.get64(inst.src[1]), f);
        self.put64(inst.dst[0], &out);
    }

    /// d(64) = f(a(64), b(64), c(64))
    #[inline(always)]
    pub(super) fn zip3_64(&mut self, inst: &Inst, f: impl Fn(u64, u64, u64) -> u64) {
        let out = zip3(self.get64(inst.src[0]), self.get64(inst.src[1]), self.get64(inst.src[2]), f);
        self.put64(inst.dst[0], &out);
    }
}

#[inline(always)]
pub(crate) fn get<'a, T>(regs: &'a [[T; LANES]], consts: &'a [[T; LANES]], slot: Slot) -> &'a [T; LANES] {
    let (bank, index) = if slot & CONST != 0 { (consts, slot & !CONST) } else { (regs, slot) };
    &bank[usize::from(index)]
}

#[inline(always)]
pub(super) fn map<A: Copy, R: Copy + Default>(a: &[A; LANES], f: impl Fn(A) -> R) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for i in 0..LANES {
        out[i] = f(a[i]);
    }
    out
}

#[inline(always)]
pub(super) fn zip<A: Copy, B: Copy, R: Copy + Default>(
    a: &[A; LANES],
    b: &[B; LANES],
    f: impl Fn(A, B) -> R,
) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for i in 0..LANES {
        out[i] = f(a[i], b[i]);
    }
    out
}

#[inline(always)]
pub(super) fn zip3<A: Copy, B: Copy, C: Copy, R: Copy + Default>(
    a: &[A; LANES],
    b: &[B; LANES],
    c: &[C; LANES],
    f: impl Fn(A, B, C) -> R,
) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for i in 0..LANES {
        out[i] = f(a[i], b[i], c[i]);
    }
    out
}

/// One bit a lane: the lanes for which `f` holds.
///
/// A byte a lane, and eight of these at once to bits: byte i, which is 0 or 1, times 2 to the 7 (8 - i) has
/// its bit at 56 + i. Bits that are moved lane by lane are vectors only where the compiler finds that out.
#[inline(always)]
pub(super) fn bits_of(f: impl Fn(usize) -> bool) -> u32 {
    let lanes: [u8; LANES] = std::array::from_fn(|i| u8::from(f(i)));
    let mut out = 0;
    for (byte, eight) in lanes.chunks_exact(8).enumerate() {
        let eight = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        let bits = eight.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        out |= (bits as u32) << (8 * byte);
    }
    out
}

/// Overwrites the lanes of `mask`.
#[inline(always)]
pub(crate) fn merge<T>(d: &mut [T; LANES], value: &[T; LANES], mask: u32, ones: T, zero: T)
where
    T: Copy + std::ops::BitAnd<Output = T> + std::ops::BitOr<Output = T> + std::ops::Not<Output = T>,
{
    if mask == u32::MAX {
        *d = *value;
    } else {
        for i in 0..LANES {
            let keep = if mask & (1 << i) != 0 { ones } else { zero };
            d[i] = value[i] & keep | d[i] & !keep;
        }
    }
}

/// All ones when `imm` bit 0 says that the predicate source is negated.
#[inline(always)]
pub(super) fn negation(inst: &Inst) -> u32 {
    0u32.wrapping_sub(inst.imm as u32 & 1)
}
