//! Bytes of bulk copies in shared memory of their own CTA: those that come, that are filled, and that leave
//! for shared memory elsewhere. Lines of stores are read in `bulk_stores`.
//!
//! ```text
//!   a line of global memory, an answer of the command processor ──┐
//!   elements that the tensor has not ─────────────────────────────┼──> at home: its pieces, swizzled
//!   a line of the own shared memory ──────────────────────────────┘    elsewhere: a part for each CTA
//! ```
//! Source: PTX ISA 5.5 (swizzles, elements outside of a tensor). Invariants: bytes are in shared memory at
//! home in the cycle in which their line comes, or leaves; both sides are accesses of the copy's warp to the
//! CTA's record of writers, and a scheme hears of reads of what others wrote. Not modelled: passes through
//! the banks.

use crate::msg::MAX_LINE_BYTES;
use crate::remote::CopySource;
use durawarp_kernel::ir::{BulkKind, MemKind};
use durawarp_kernel::semantics::atomic::put_elements;
use durawarp_kernel::warp::SharedPiece;
use durawarp_persist::handler::SmEvent;

use super::bulk_copy::LinePart;
use super::bulk_table::CopyTable;
use super::core::IssueCore;
use super::moment::Moment;

/// Bytes of a copy from its byte `at` on go to shared memory, at home and elsewhere.
pub(super) fn bring(copies: &mut CopyTable, number: u16, at: u32, found: &[u8], core: &mut IssueCore, sm: u16) {
    let copy = &mut copies.list[usize::from(number)];
    if copy.home {
        let slot = &core.slots[usize::from(copy.warp)];
        let cta = &mut core.ctas[usize::from(slot.cta)];
        // As a store to shared memory does, it carries what its warp knows of fences.
        cta.fenced = cta.fenced.max(slot.order.fenced);
        for SharedPiece { from, shared, bytes } in copy.pieces(at, found.len() as u32) {
            cta.writers.access(copy.warp, MemKind::Store, std::iter::once(shared as u64), bytes as u32);
            let (to, came) = (&mut cta.shared[shared..shared + bytes], &found[from..from + bytes]);
            put_elements(copy.bulk.atom, copy.bulk.elem, to, came);
        }
    }
    if !copy.peers.is_empty() {
        copies.parts.send(copy, CopySource { sm, warp: copy.warp, copy: number }, at, found);
    }
}

/// A load has no element in its tensor for the next bytes, or leaves them: how many of these are filled now,
/// or passed over.
#[cold]
pub(super) fn fill(copies: &mut CopyTable, number: u16, bytes: u32, core: &mut IssueCore, sm: u16) -> u32 {
    let copy = &copies.list[usize::from(number)];
    let at = copy.sent;
    if copy.bulk.kind != BulkKind::Load {
        return bytes;
    }
    let Some(tile) = copy.operands.tile else { return bytes };
    // Other CTAs get them by lines, as they get what is there.
    if !copy.peers.is_empty() {
        let (filling, bytes) = (tile.map.filling(), bytes.min(MAX_LINE_BYTES as u32));
        let found: [u8; MAX_LINE_BYTES] = std::array::from_fn(|byte| filling[byte % filling.len()]);
        bring(copies, number, at, &found[..bytes as usize], core, sm);
        return bytes;
    }
    let warp = copy.warp;
    let cta = &mut core.ctas[usize::from(core.slots[usize::from(warp)].cta)];
    for piece in copy.operands.pieces(at, bytes) {
        cta.writers.access(warp, MemKind::Store, std::iter::once(piece.shared as u64), piece.bytes as u32);
    }
    copy.operands.fill(at, bytes, &mut cta.shared);
    bytes
}

/// A line of the own shared memory leaves for the shared memory of another CTA, or another place of the own.
pub(super) fn send_shared(
    copies: &mut CopyTable,
    number: u16,
    line: LinePart,
    core: &mut IssueCore,
    m: &mut Moment<'_>,
) {
    let warp = copies.list[usize::from(number)].warp;
    let slot = &core.slots[usize::from(warp)];
    let cta = &mut core.ctas[usize::from(slot.cta)];
    let (from, bytes) = ((line.line + u64::from(line.offset)) as usize, line.bytes as usize);
    if cta.writers.access(warp, MemKind::Load, std::iter::once(from as u64), line.bytes) {
        m.host.tell(&SmEvent::SharedRead { launch: slot.launch });
    }
    let mut found = [0; 128];
    found[..bytes].copy_from_slice(&cta.shared[from..from + bytes]);
    bring(copies, number, line.at, &found[..bytes], core, m.w.index);
}
