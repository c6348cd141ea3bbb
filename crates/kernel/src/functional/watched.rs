//! What an observer of the functional driver is told of an access: which lanes, where, and which of them
//! change something.
//!
//! An asynchronous copy is two accesses: its lanes read global memory, some of them fewer bytes than they
//! write, and write shared memory. Local memory is a thread's own, of which nobody is told.
//!
//! Source: ours; `races` and `unwritten` are such observers. Invariant: an access is told before it
//! happens, so that what was there can still be compared.

use super::super::ir::{AtomOp, Inst, Mem, MemKind, PhaseOp, Space};
use super::super::warp::{Warp, lanes_of};
use super::interface::{AccessKind, Event, WarpAccess};
use super::memories::{Memories, Site, Watcher, read};

/// Tells the observer of an access that is about to happen; of an asynchronous copy both of its sides.
#[cold]
#[allow(clippy::too_many_arguments)]
pub(super) fn watch(
    warp: &Warp,
    inst: &Inst,
    mem: Mem,
    space: Space,
    lanes: u64,
    addresses: &[u64; 64],
    site: &Site<'_>,
    memories: &mut Memories<'_>,
) {
    let (launch, pc) = (site.launch, site.pc);
    let bytes = launch.access_bytes(inst, mem);
    let wants_changes = memories.watcher.as_ref().is_some_and(|watcher| watcher.changes);
    let (kind, changes) = match mem.kind {
        MemKind::Load | MemKind::Texture(_) | MemKind::Matrix(_) | MemKind::Copy => (AccessKind::Read, 0),
        MemKind::Store if !wants_changes => (AccessKind::Write, lanes),
        MemKind::Store => {
            // Compared before it happens: afterwards nobody knows what was there.
            let mut data = [0; 64 * 16];
            let offset: [u16; 64] = std::array::from_fn(|lane| (lane * 16) as u16);
            warp.gather(inst, launch, lanes, &offset, &mut data);
            let stays = |lane: usize| {
                let there = read(memories, launch, space, addresses[lane], bytes as usize);
                there == Some(&data[lane * 16..lane * 16 + bytes as usize])
            };
            let changes = lanes_of(lanes).filter(|&lane| !stays(lane)).fold(0, |all, lane| all | 1 << lane);
            (AccessKind::Write, changes)
        }
        // A barrier begins whatever was there.
        MemKind::Reduction if mem.atom == AtomOp::Phase(PhaseOp::Begin) => (AccessKind::Write, lanes),
        MemKind::Atomic | MemKind::Reduction => (AccessKind::Atomic, lanes),
    };
    // Borrowed last, since `read` takes all memories.
    let Some(Watcher { observer, cta, warp: number, owner, .. }) = &mut memories.watcher else { return };
    let space = if space == Space::Generic { Space::Global } else { space };
    let (cta, number, owner) = (*cta, *number, *owner);
    let access = WarpAccess { cta, warp: number, owner, pc, space, kind, lanes, addresses, bytes, changes };
    let MemKind::Copy = mem.kind else { return observer(Event::Accessed(&access)) };
    let targets = warp.copy_targets(inst, launch, lanes);
    // A lane may read fewer bytes than it writes, or none.
    let mut left = targets.reading(lanes);
    while left != 0 {
        let bytes = targets.bytes[left.trailing_zeros() as usize];
        let alike = lanes_of(left).filter(|&lane| targets.bytes[lane] == bytes).fold(0, |all, lane| all | 1 << lane);
        observer(Event::Accessed(&WarpAccess { lanes: alike, bytes: u32::from(bytes), ..access }));
        left &= !alike;
    }
    let (space, kind, changes) = (Space::Shared, AccessKind::Write, lanes);
    observer(Event::Accessed(&WarpAccess { space, kind, addresses: &targets.to, changes, ..access }));
}
