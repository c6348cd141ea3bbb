//! Bulk copies of the functional driver: each happens at once, those of an instruction in the order of lanes.
//!
//! Its bytes complete at its barrier in the same step, so that nothing is left for a group to wait for.
//! Observers hear of what it reads and writes; the barrier's word is its own business.

use smallvec::SmallVec;

use super::super::cluster::ClusterMisuse;
use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{AtomOp, Bulk, BulkKind, Inst, Space};
use super::super::launch::Launch;
use super::super::launch_control::{ANSWER_BYTES, answer};
use super::super::memory::FlatMemory;
use super::super::semantics::atomic::{complete_bytes, put_elements};
use super::super::tensor_map::MAP_BYTES;
use super::super::warp::{BulkOperands, SharedPiece, Warp};
use super::cluster::Peers;
use super::interface::{AccessKind, Event, Observer, WarpAccess, Writer};
use super::memories::{Memories, Watcher};
use super::unbegun::Unbegun;

/// Operands were checked.
const THERE: &str = "a bulk copy's global memory is there";

/// Executes a bulk copy of `lanes`.
pub(super) fn execute_bulk(
    warp: &Warp,
    inst: &Inst,
    bulk: Bulk,
    launch: &Launch,
    lanes: u64,
    memories: &mut Memories<'_>,
    unbegun: &mut Unbegun,
) -> Result<(), ProgramFault> {
    for copied in warp.bulk_copies(inst, bulk, launch, lanes) {
        let fault = |lane, kind| ProgramFault::new(kind, launch, warp, warp.pc(), lane);
        let (lane, bulk, operands) = copied.map_err(|(lane, kind)| fault(lane, kind))?;
        let (bulk, operands) = by_map(bulk, operands, memories.global, launch).map_err(|kind| fault(lane, kind))?;
        if operands.bytes == 0 {
            continue;
        }
        if let Some(watcher) = &mut memories.watcher {
            watch(watcher, warp.pc(), bulk, lane, &operands, launch);
        }
        let answered = (bulk.kind == BulkKind::Cancel).then(|| answer(unbegun.take(), launch));
        copy(bulk, &operands, answered, memories).map_err(|kind| fault(lane, kind))?;
    }
    Ok(())
}

/// The copy that a map in global memory describes, as it is now; any other as it is.
fn by_map(
    bulk: Bulk,
    operands: BulkOperands,
    memory: &FlatMemory,
    launch: &Launch,
) -> Result<(Bulk, BulkOperands), FaultKind> {
    let Some(unread) = operands.unread else { return Ok((bulk, operands)) };
    let found = memory.slice(unread.address, MAP_BYTES).and_then(|bytes| bytes.first_chunk()).expect(THERE);
    operands.with_map(bulk, found, launch)
}

/// The shared memory of the CTA of a rank; that of a launch without clusters is the own one.
fn memory_of<'m>(
    rank: u32,
    shared: &'m mut [u8],
    peers: &'m mut Option<Peers<'_>>,
) -> Result<&'m mut [u8], ClusterMisuse> {
    match peers {
        Some(Peers { rank: own, cluster }) if rank != *own => {
            if cluster.phases.has_ended(rank) {
                return Err(ClusterMisuse::Ended(rank));
            }
            Ok(&mut cluster.memories[rank as usize])
        }
        _ => Ok(shared),
    }
}

/// Copies; the operands are checked. What the grid has answered is copied like bytes of shared memory.
fn copy(
    bulk: Bulk,
    operands: &BulkOperands,
    answered: Option<[u8; ANSWER_BYTES as usize]>,
    memories: &mut Memories<'_>,
) -> Result<(), FaultKind> {
    if bulk.kind.completes() {
        // A copy between shared memories is read as a whole before any of it is written.
        let (from, bytes) = (operands.global as usize, operands.bytes as usize);
        let sent = match bulk.kind {
            BulkKind::Send => Some(memories.shared[from..from + bytes].to_vec()),
            _ => answered.map(Vec::from),
        };
        let Memories { global, shared, peers, .. } = memories;
        for (rank, barrier_rank) in operands.ranks().zip(operands.barrier_ranks()) {
            let wrong = |misuse: ClusterMisuse| FaultKind::Asynchronous(misuse.to_string());
            let to = memory_of(rank, shared, peers).map_err(wrong)?;
            match sent.as_deref() {
                Some(sent) => {
                    put_elements(bulk.atom, bulk.elem, &mut to[operands.shared as usize..][..sent.len()], sent);
                }
                None => bring(operands, global, to),
            }
            let at = memory_of(barrier_rank, shared, peers).map_err(wrong)?;
            complete_bytes(at, operands.barrier, operands.bytes)
                .map_err(|misuse| FaultKind::Asynchronous(misuse.to_string()))?;
        }
        return Ok(());
    }
    if bulk.kind == BulkKind::Prefetch {
        return Ok(());
    }
    // Stretch by stretch of global memory; a swizzle cuts each into units of shared memory.
    for (at, run) in operands.runs() {
        let Some(global) = run.global else { continue };
        let found = memories.global.slice_mut(global, run.bytes as usize).expect(THERE);
        for SharedPiece { from, shared, bytes } in operands.pieces(at, run.bytes) {
            let (to, with) = (&mut found[from..from + bytes], &memories.shared[shared..shared + bytes]);
            // No two elements of a stretch are one.
            put_elements(bulk.atom, bulk.elem, to, with);
        }
    }
    Ok(())
}

/// Writes what a copy has of global memory to one shared memory.
fn bring(operands: &BulkOperands, global: &FlatMemory, to: &mut [u8]) {
    for (at, run) in operands.runs() {
        let Some(address) = run.global else {
            operands.fill(at, run.bytes, to);
            continue;
        };
        let found = global.slice(address, run.bytes as usize).expect(THERE);
        for SharedPiece { from, shared, bytes } in operands.pieces(at, run.bytes) {
            to[shared..shared + bytes].copy_from_slice(&found[from..from + bytes]);
        }
    }
}

#[cold]
fn watch(watcher: &mut Watcher<'_>, pc: u32, bulk: Bulk, lane: u32, operands: &BulkOperands, launch: &Launch) {
    let (in_global, in_shared) = match bulk.kind {
        BulkKind::Prefetch => return,
        BulkKind::Send if bulk.atom != AtomOp::None => (AccessKind::Read, AccessKind::Atomic),
        BulkKind::Load | BulkKind::Send | BulkKind::Cancel => (AccessKind::Read, AccessKind::Write),
        BulkKind::Store => (AccessKind::Write, AccessKind::Read),
        BulkKind::Reduce => (AccessKind::Atomic, AccessKind::Read),
    };
    let (cta, warp, lanes) = (watcher.cta, watcher.warp, 1 << lane);
    let mut tell = |space, owner, kind, address, bytes| {
        let changes = if kind == AccessKind::Read { 0 } else { lanes };
        let addresses = &[address; 64];
        let access = WarpAccess { cta, warp, owner, pc, space, kind, lanes, addresses, bytes, changes };
        (watcher.observer)(Event::Accessed(&access));
    };
    // Every CTA whose shared memory it is.
    let owners: SmallVec<[u64; 1]> = match launch.cluster_ctas() {
        1 => SmallVec::from_elem(cta, 1),
        _ => operands.ranks().map(|rank| launch.cta_of(launch.cluster_of(cta).0, rank)).collect(),
    };
    // What is read comes first.
    let shared_first = bulk.kind.writes_global();
    for of_shared in [shared_first, !shared_first] {
        for (at, run) in operands.runs() {
            match (of_shared, run.global) {
                // The grid's answer comes from no memory.
                (false, _) if bulk.kind == BulkKind::Cancel => {}
                (false, Some(from)) if bulk.kind == BulkKind::Send => {
                    tell(Space::Shared, cta, in_global, from, run.bytes)
                }
                (false, Some(global)) => tell(Space::Global, cta, in_global, global, run.bytes),
                (false, None) => {}
                // A store reads nothing where its tensor has nothing.
                (true, None) if shared_first => {}
                (true, _) => {
                    for piece in operands.pieces(at, run.bytes) {
                        for &owner in &owners {
                            tell(Space::Shared, owner, in_shared, piece.shared as u64, piece.bytes as u32);
                        }
                    }
                }
            }
        }
    }
    if bulk.kind.completes() {
        let barrier = operands.barrier;
        let of_barriers: SmallVec<[u64; 1]> = match operands.barrier_of_pair {
            None => owners,
            Some(_) => operands.barrier_ranks().map(|rank| launch.cta_of(launch.cluster_of(cta).0, rank)).collect(),
        };
        of_barriers.iter().for_each(|&owner| (watcher.observer)(Event::Completes { cta, warp, owner, barrier }));
    }
}

/// Tells what each lane of a bulk copy has just written to global memory.
pub(super) fn tell_bulk(
    observer: &mut Observer<'_>,
    writer: Writer,
    (memory, launch): (&FlatMemory, &Launch),
    copies: impl Iterator<Item = (Bulk, BulkOperands)>,
) {
    let copies = copies.filter_map(|(bulk, copy)| Some(by_map(bulk, copy, memory, launch).ok()?.1));
    for (_, run) in copies.flat_map(|copy| copy.runs().collect::<Vec<_>>()) {
        if let Some(address) = run.global
            && let Some(bytes) = memory.slice(address, run.bytes as usize)
        {
            (observer.tell)(Event::Wrote { writer, address, bytes });
        }
    }
}
