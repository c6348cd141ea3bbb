//! The operands of a bulk copy (PTX ISA 9.7.9.25.5): one lane's addresses and size, and what they must be.
//!
//! Source: PTX ISA, `cp.async.bulk`: both addresses and the size are multiples of 16; an `mbarrier` lies at a
//! multiple of 8. Invariant: functional driver and timed machine check here, before a byte moves. Not
//! modelled: clusters; every address of shared memory is the own CTA's.

use super::super::fault::FaultKind;
use super::super::ir::{Bulk, BulkKind, Inst, NONE};
use super::super::launch::Launch;
use super::Warp;
use durawarp_checkpoint::value;

/// Addresses and sizes are multiples of this.
const ALIGN: u64 = 16;

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: u32 = 8;

/// What one lane copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkOperands {
    /// First address in global memory.
    pub global: u64,
    /// First address in shared memory.
    pub shared: u64,
    pub bytes: u32,
    /// Address in shared memory of the barrier at which bytes complete.
    pub barrier: u64,
}

value!(record BulkOperands { global, shared, bytes, barrier });

impl BulkOperands {
    /// Finds that both ends are there and aligned.
    ///
    /// # Errors
    /// What is wrong with the first that is not.
    pub fn check(&self, bulk: Bulk, launch: &Launch) -> Result<(), FaultKind> {
        let &BulkOperands { global, shared, bytes, barrier } = self;
        if !u64::from(bytes).is_multiple_of(ALIGN) {
            let what = format!("a bulk copy of {bytes} bytes, which is no multiple of {ALIGN}");
            return Err(FaultKind::Asynchronous(what));
        }
        if !global.is_multiple_of(ALIGN) {
            return Err(FaultKind::Misaligned { address: global, bytes: ALIGN as u32, space: "global" });
        }
        let last = global.checked_add(u64::from(bytes.max(1)) - 1);
        if bytes > 0 && last.is_none_or(|last| launch.addresses.containing(global, last).is_none()) {
            let hint = launch.addresses.describe(global);
            return Err(FaultKind::OutOfBounds { address: global, bytes, space: "global", hint });
        }
        if bulk.kind != BulkKind::Prefetch {
            in_shared(shared, bytes, ALIGN, launch)?;
        }
        if bulk.kind == BulkKind::Load { in_shared(barrier, BARRIER_BYTES, 8, launch) } else { Ok(()) }
    }
}

fn in_shared(address: u64, bytes: u32, align: u64, launch: &Launch) -> Result<(), FaultKind> {
    if !address.is_multiple_of(align) {
        return Err(FaultKind::Misaligned { address, bytes: align as u32, space: "shared" });
    }
    if address + u64::from(bytes) > u64::from(launch.shared_bytes) {
        let hint = format!("the CTA has {} bytes", launch.shared_bytes);
        return Err(FaultKind::OutOfBounds { address, bytes, space: "shared", hint });
    }
    Ok(())
}

impl Warp {
    /// What a lane of a bulk copy copies.
    pub fn bulk_operands(&self, inst: &Inst, launch: &Launch, lane: u32) -> BulkOperands {
        let [global, shared, bytes, barrier] = inst.src;
        let narrow = |slot| if slot == NONE { 0 } else { self.operand32(slot, launch, lane) };
        BulkOperands {
            global: self.operand64(global, launch, lane).wrapping_add_signed(i64::from(inst.imm)),
            shared: narrow(shared).into(),
            bytes: narrow(bytes),
            barrier: narrow(barrier).into(),
        }
    }
}
