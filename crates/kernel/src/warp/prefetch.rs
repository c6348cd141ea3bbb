//! Bytes asked for ahead of their use. Most are register rows: a simulated machine has more warp state than a
//! host's private cache holds, so that an instruction's operands are a miss as a rule.
//!
//! Changes nothing that a program can see. Nothing is done on hosts other than x86-64. `benches/RESULTS.md`
//! has what it gives: it pays only where the state exceeds the private cache, and costs a little elsewhere.

use super::super::ir::{Hazards, Kernel};
use super::super::semantics::Registers;

/// Bytes of warp state that a host's private cache holds (1 MiB: Zen 4; most have that or more).
const PRIVATE_CACHE_BYTES: u64 = 1 << 20;

/// Bytes of a host's cache line.
const LINE_BYTES: usize = 64;

/// Whether the registers of so many warps of a kernel exceed a private cache.
pub(super) fn pays(kernel: &Kernel, warps: u64, warp_size: u32) -> bool {
    let lane_bytes = 4 * u64::from(kernel.slots32) + 8 * u64::from(kernel.slots64);
    warps * u64::from(warp_size) * lane_bytes > PRIVATE_CACHE_BYTES
}

/// Asks for the rows of all registers that an instruction reads or writes.
#[inline]
pub(super) fn rows(groups: &[Registers], hazards: &Hazards, kernel: &Kernel) {
    let (slots32, slots64) = (usize::from(kernel.slots32), usize::from(kernel.slots64));
    for group in groups {
        // Of one with many registers none are asked for: it takes long itself.
        for &register in hazards.check.get(..usize::from(hazards.checks)).unwrap_or_default() {
            let register = usize::from(register);
            if register < slots32 {
                lines(&group.r32[register]);
            } else if register < slots32 + slots64 {
                lines(&group.r64[register - slots32]);
            }
        }
    }
}

/// Asks for all bytes of some values.
#[inline]
pub fn lines<T: ?Sized>(values: &T) {
    let _ = values;
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of_val(values)).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::from_ref(values).cast::<i8>().wrapping_add(at);
        // SAFETY: a prefetch is a hint. It reads nothing that the program sees and faults at no address; this
        // one lies inside of `values`. SSE, of which it is, belongs to every x86-64.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::LANES;
    use crate::ptx;

    /// Reads and writes registers of both widths and a predicate.
    const PTX: &str = "
.version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<3>;
    .reg .b64 %d<3>;
    .reg .pred %p<2>;
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 5;
    mul.wide.u32 %d2, %r1, 4;
    @%p1 st.global.u32 [%d1], %r1;
    ret;
}";

    fn kernel() -> Kernel {
        let module = ptx::parse("k.ptx", PTX).expect("valid PTX");
        Kernel::clone(module.kernel("k").expect("the kernel"))
    }

    #[test]
    fn it_pays_beyond_the_private_cache_and_not_at_it() {
        // 32 bytes a lane, 1,024 a warp.
        let kernel = Kernel { slots32: 4, slots64: 2, ..kernel() };
        assert_eq!([1024, 1025].map(|warps| pays(&kernel, warps, 32)), [false, true]);
    }

    #[test]
    fn predicates_and_unused_entries_name_no_row() {
        let kernel = kernel();
        // An index beyond the last row would panic.
        let group = Registers {
            r32: vec![[0; LANES]; usize::from(kernel.slots32)],
            r64: vec![[0; LANES]; usize::from(kernel.slots64)],
            predicates: vec![0; usize::from(kernel.predicates)],
        };
        assert!(
            kernel.hazards.iter().any(|hazards| hazards.read().iter().any(|&of| of >= kernel.slots32 + kernel.slots64))
        );
        kernel.hazards.iter().for_each(|hazards| rows(std::slice::from_ref(&group), hazards, &kernel));
    }
}
