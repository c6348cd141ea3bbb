//! Register rows asked for ahead of their use: a simulated machine has more warp state than a host's private
//! cache holds, so that an instruction's operands are a miss as a rule.
//!
//! Changes nothing that a program can see. Nothing is done on hosts other than x86-64. `benches/RESULTS.md`
//! has what it gives: it pays only where the state exceeds the private cache, and costs a little elsewhere.

use super::super::ir::{Hazards, Kernel, LANES};
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
        for &register in &hazards.check[..usize::from(hazards.checks)] {
            let register = usize::from(register);
            if register < slots32 {
                row(&group.r32[register]);
            } else if register < slots32 + slots64 {
                row(&group.r64[register - slots32]);
            }
        }
    }
}

#[inline]
fn row<T>(values: &[T; LANES]) {
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
