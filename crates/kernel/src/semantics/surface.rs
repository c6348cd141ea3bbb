//! Addresses of surface accesses (PTX ISA 9.7.11, `suld.b`, `sust.b`).
//!
//! A surface is an array in global memory: address + z * slice + y * pitch + x, where x counts bytes. What is
//! at that address is loaded and stored as any other global memory.
//!
//! Not modelled: the block-linear layout of CUDA arrays, the texture unit: an access costs an address
//! computation of class `int_mul` and a global access of the same bytes, in the L1 and beyond.

use super::super::alu::SurfaceAccess;
use super::super::ir::{Inst, LANES, NONE};
use super::super::memory::OUTSIDE_SURFACE;
use super::{Frame, V64};

#[inline(never)]
pub(super) fn address(f: &mut Frame<'_>, inst: &Inst, access: SurfaceAccess) {
    let [x, y, z, descriptor] = inst.src;
    let fields = f.get64(descriptor);
    let base = fields[0];
    let [row, height, depth, pitch, slice] = [1, 2, 3, 4, 5].map(|i: usize| fields[i] as i64);
    let coordinate = |slot, lane: usize, unsigned: bool| match slot {
        NONE => 0,
        slot if unsigned => i64::from(f.get32(slot)[lane]),
        slot => i64::from(f.get32(slot)[lane] as i32),
    };
    let mut out: V64 = [OUTSIDE_SURFACE; LANES];
    let mut inside = 0;
    for (lane, out) in out.iter_mut().enumerate() {
        let at = [coordinate(x, lane, false), coordinate(y, lane, false), coordinate(z, lane, access.layered)];
        // The last byte of the access lies within the row, too.
        let most = [row - i64::from(access.bytes), height - 1, depth - 1];
        let near: [i64; 3] = std::array::from_fn(|i| if access.clamp { at[i].min(most[i]).max(0) } else { at[i] });
        if near.iter().zip(&most).all(|(at, most)| (0..=*most).contains(at)) {
            *out = base.wrapping_add_signed(near[0] + near[1] * pitch + near[2] * slice);
            inside |= 1 << lane;
        }
    }
    f.put64(inst.dst[0], &out);
    f.put_p_optional(inst.dst[1], inside);
}
