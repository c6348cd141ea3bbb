//! Bulk copies of the functional driver: each happens at once, as one lane after the other executes it.
//!
//! Its bytes complete at its barrier in the same step, so that nothing is left for a group to wait for.
//! Observers hear of what it reads and writes; the barrier's word is its own business.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Bulk, BulkKind, Inst, Space};
use super::super::launch::Launch;
use super::super::memory::FlatMemory;
use super::super::semantics::atomic::{apply_atomic, complete_bytes};
use super::super::warp::{BulkOperands, Warp, lanes_of};
use super::access::{Memories, Watcher};
use super::interface::{AccessKind, Event, Observer, WarpAccess, Writer};

/// Executes a bulk copy of `lanes`.
pub(super) fn execute_bulk(
    warp: &Warp,
    inst: &Inst,
    bulk: Bulk,
    launch: &Launch,
    lanes: u64,
    memories: &mut Memories<'_>,
) -> Result<(), ProgramFault> {
    for lane in lanes_of(lanes) {
        let operands = warp.bulk_operands(inst, launch, lane as u32);
        let fault = |kind| ProgramFault::new(kind, launch, warp, warp.pc(), lane as u32);
        operands.check(bulk, launch).map_err(fault)?;
        if operands.bytes == 0 {
            continue;
        }
        if let Some(watcher) = &mut memories.watcher {
            watch(watcher, warp.pc(), bulk, lane, &operands);
        }
        copy(bulk, &operands, memories).map_err(fault)?;
    }
    Ok(())
}

/// Copies; the operands are checked.
fn copy(bulk: Bulk, operands: &BulkOperands, memories: &mut Memories<'_>) -> Result<(), FaultKind> {
    let &BulkOperands { global, shared, bytes, barrier } = operands;
    let at = shared as usize..shared as usize + bytes as usize;
    let there = "a bulk copy's global memory is there";
    match bulk.kind {
        BulkKind::Prefetch => {}
        BulkKind::Load => {
            memories.shared[at].copy_from_slice(memories.global.slice(global, bytes as usize).expect(there));
            complete_bytes(memories.shared, barrier, bytes)
                .map_err(|misuse| FaultKind::Asynchronous(misuse.to_string()))?;
        }
        BulkKind::Store => {
            memories.global.slice_mut(global, bytes as usize).expect(there).copy_from_slice(&memories.shared[at]);
        }
        // Element by element: no two of a copy are one.
        BulkKind::Reduce => {
            let found = memories.global.slice_mut(global, bytes as usize).expect(there);
            let size = bulk.elem.bytes() as usize;
            for (old, a) in found.chunks_exact_mut(size).zip(memories.shared[at].chunks_exact(size)) {
                let word = |bytes: &[u8]| {
                    let mut word = [0; 8];
                    word[..size].copy_from_slice(bytes);
                    u64::from_le_bytes(word)
                };
                let new = apply_atomic(bulk.atom, bulk.elem, word(old), word(a), 0);
                old.copy_from_slice(&new.to_le_bytes()[..size]);
            }
        }
    }
    Ok(())
}

#[cold]
fn watch(watcher: &mut Watcher<'_>, pc: u32, bulk: Bulk, lane: usize, operands: &BulkOperands) {
    let (global, shared) = (operands.global, operands.shared);
    let ends = match bulk.kind {
        BulkKind::Prefetch => return,
        BulkKind::Load => [(Space::Global, AccessKind::Read, global), (Space::Shared, AccessKind::Write, shared)],
        BulkKind::Store => [(Space::Shared, AccessKind::Read, shared), (Space::Global, AccessKind::Write, global)],
        BulkKind::Reduce => [(Space::Shared, AccessKind::Read, shared), (Space::Global, AccessKind::Atomic, global)],
    };
    for (space, kind, address) in ends {
        let (cta, warp, lanes) = (watcher.cta, watcher.warp, 1 << lane);
        let changes = if kind == AccessKind::Read { 0 } else { lanes };
        let addresses = &[address; 64];
        let access = WarpAccess { cta, warp, pc, space, kind, lanes, addresses, bytes: operands.bytes, changes };
        (watcher.observer)(Event::Accessed(&access));
    }
}

/// Tells what each lane of a bulk copy has just written to global memory.
pub(super) fn tell_bulk(
    observer: &mut Observer<'_>,
    writer: Writer,
    memory: &FlatMemory,
    copies: impl Iterator<Item = BulkOperands>,
) {
    for BulkOperands { global, bytes, .. } in copies.filter(|copy| copy.bytes > 0) {
        if let Some(written) = memory.slice(global, bytes as usize) {
            (observer.tell)(Event::Wrote { writer, address: global, bytes: written });
        }
    }
}
