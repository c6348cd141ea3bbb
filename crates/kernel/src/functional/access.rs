//! Memory accesses of the functional driver: which memory each lane means, the own CTA's, another's of the
//! cluster, or that of all; what is told of stores; checks of persistency operations.

use super::super::cluster::{ClusterMisuse, owner_of};
use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, Mem, MemKind, Op, PmOp, Space};
use super::super::launch::Launch;
use super::super::memory::{FlatMemory, Medium, SHARED_WINDOW, resolve_generic};
use super::super::warp::{Warp, lanes_of};
use super::cluster::Peers;
use super::interface::{AccessKind, Event, Observer, WarpAccess, Writer};
use super::memories::{Memories, Site, Watcher};
use super::spaces::in_space;

/// Executes a memory instruction on `lanes`, of which there is one at least.
pub(super) fn execute(
    warp: &mut Warp,
    inst: &Inst,
    mem: Mem,
    launch: &Launch,
    lanes: u64,
    pc: u32,
    memories: &mut Memories<'_>,
) -> Result<(), ProgramFault> {
    let mut lanes = lanes;
    // Only some lanes have addresses of rows, but all of them get elements.
    if let MemKind::Matrix(_) = mem.kind {
        warp.check_whole(launch, lanes, "ldmatrix").map_err(|fault| *fault)?;
        lanes = Warp::row_lanes(inst, lanes);
    }
    let mut addresses = [0; 64];
    warp.addresses(inst, launch, lanes, &mut addresses);
    let site = Site { launch, pc };
    if mem.space == Space::Shared {
        return in_shared(warp, inst, mem, lanes, &mut addresses, &site, memories);
    }
    if mem.space != Space::Generic {
        return in_space(warp, inst, mem, mem.space, lanes, &mut addresses, &site, memories);
    }
    // Usually all lanes mean one space; else each space has its turn, with the lanes that mean it.
    // Addresses become those of that space.
    let all_global = lanes_of(lanes).all(|lane| addresses[lane] < SHARED_WINDOW);
    if all_global {
        return in_space(warp, inst, mem, Space::Global, lanes, &mut addresses, &site, memories);
    }
    let mut by_space = [(Space::Global, 0u64), (Space::Shared, 0), (Space::Local, 0), (Space::Const, 0)];
    // Lanes that mean other CTAs of the cluster are told apart among those of shared memory.
    for lane in lanes_of(lanes) {
        let (space, address) = resolve_generic(addresses[lane]);
        addresses[lane] = address;
        for (of, mask) in &mut by_space {
            *mask |= u64::from(*of == space) << lane;
        }
    }
    for (space, mask) in by_space {
        match (mask, space) {
            (0, _) => {}
            (_, Space::Shared) => in_shared(warp, inst, mem, mask, &mut addresses, &site, memories)?,
            _ => in_space(warp, inst, mem, space, mask, &mut addresses, &site, memories)?,
        }
    }
    Ok(())
}

/// The lanes of a store that are not to persistent memory. The others must name allocated memory all the
/// same.
pub(super) fn volatile_lanes(
    warp: &Warp,
    inst: &Inst,
    mem: Mem,
    launch: &Launch,
    lanes: u64,
    pc: u32,
    memory: &FlatMemory,
) -> Result<u64, ProgramFault> {
    let mut addresses = [0; 64];
    warp.addresses(inst, launch, lanes, &mut addresses);
    let bytes = launch.access_bytes(inst, mem) as usize;
    let persistent = |lane: &usize| {
        let (space, address) = resolve_generic(addresses[*lane]);
        space == Space::Global && Medium::of(address) == Medium::Nvm
    };
    let mut left = lanes;
    for lane in lanes_of(lanes).filter(persistent) {
        if memory.slice(addresses[lane], bytes).is_none() {
            let hint = launch.addresses.describe(addresses[lane]);
            let kind = FaultKind::OutOfBounds { address: addresses[lane], bytes: bytes as u32, space: "global", hint };
            return Err(ProgramFault::new(kind, launch, warp, pc, lane as u32));
        }
        left &= !(1 << lane);
    }
    Ok(left)
}

/// The addresses in global memory that a store or an atomic will write; none for what writes no global
/// memory.
pub(super) fn stores_to(warp: &Warp, inst: &Inst, mem: Mem, launch: &Launch, lanes: u64) -> Option<[u64; 64]> {
    let writes = matches!(mem.kind, MemKind::Store | MemKind::Atomic | MemKind::Reduction);
    if !writes || !matches!(mem.space, Space::Global | Space::Generic) {
        return None;
    }
    let mut addresses = [0; 64];
    warp.addresses(inst, launch, lanes, &mut addresses);
    Some(addresses)
}

/// Tells what each lane has just written.
pub(super) fn tell(
    observer: &mut Observer<'_>,
    writer: Writer,
    memory: &FlatMemory,
    lanes: u64,
    addresses: &[u64; 64],
    bytes: usize,
) {
    for lane in lanes_of(lanes) {
        if let Some(written) = memory.slice(addresses[lane], bytes) {
            (observer.tell)(Event::Wrote { writer, address: addresses[lane], bytes: written });
        }
    }
}

/// An access of some lanes to shared memory, of the own CTA or of others.
fn in_shared(
    warp: &mut Warp,
    inst: &Inst,
    mem: Mem,
    lanes: u64,
    addresses: &mut [u64; 64],
    site: &Site<'_>,
    memories: &mut Memories<'_>,
) -> Result<(), ProgramFault> {
    let launch = site.launch;
    let own = memories.peers.as_ref().map(|peers| (peers.rank, peers.cluster.phases.ctas() as u32));
    let Some((own, ctas)) = own.filter(|&(_, ctas)| ctas > 1) else {
        return in_space(warp, inst, mem, Space::Shared, lanes, addresses, site, memories);
    };
    // Addresses become bytes of the CTA that each lane means; what cannot be is told of the first such lane.
    let mut ranks = [own; 64];
    for lane in lanes_of(lanes) {
        let (rank, byte) = owner_of(addresses[lane], own);
        // Matrices are of the own CTA: others' addresses stay, and are beyond its memory.
        if rank == own || !matches!(mem.kind, MemKind::Matrix(_)) {
            (ranks[lane], addresses[lane]) = (rank, byte);
        }
        let misuse = if rank >= ctas {
            ClusterMisuse::NoRank { rank, ctas }
        } else if inst.completes(mem) && warp.completes_at(inst, launch, lane as u32, own).0 != rank {
            ClusterMisuse::Apart
        } else if memories.peers.as_ref().is_some_and(|peers| peers.cluster.phases.has_ended(rank)) {
            ClusterMisuse::Ended(rank)
        } else {
            continue;
        };
        let kind = FaultKind::Asynchronous(misuse.to_string());
        return Err(ProgramFault::new(kind, launch, warp, site.pc, lane as u32));
    }
    // A CTA after the other, with its memory in the place of the own one.
    let mut left = lanes;
    while left != 0 {
        let rank = ranks[left.trailing_zeros() as usize];
        let here = lanes_of(left).filter(|&lane| ranks[lane] == rank).fold(0, |all, lane| all | 1 << lane);
        left &= !here;
        if rank == own {
            in_space(warp, inst, mem, Space::Shared, here, addresses, site, memories)?;
            continue;
        }
        let Some(Peers { cluster, .. }) = &mut memories.peers else { unreachable!("there are others") };
        let (mut theirs, number) = (std::mem::take(&mut cluster.memories[rank as usize]), cluster.number);
        let watcher = memories.watcher.as_mut().map(|watcher| Watcher {
            observer: &mut *watcher.observer,
            owner: launch.cta_of(number, rank),
            ..*watcher
        });
        let (global, local) = (&mut *memories.global, &mut *memories.local);
        let mut others = Memories { global, shared: &mut theirs, local, watcher, peers: None };
        let done = in_space(warp, inst, mem, Space::Shared, here, addresses, site, &mut others);
        if let Some(Peers { cluster, .. }) = &mut memories.peers {
            cluster.memories[rank as usize] = theirs;
        }
        done?;
    }
    Ok(())
}

/// A PM operation with an address must name allocated global memory.
pub(super) fn check_pm(
    warp: &Warp,
    inst: &Inst,
    op: PmOp,
    launch: &Launch,
    lanes: u64,
    pc: u32,
    memory: &FlatMemory,
) -> Result<(), ProgramFault> {
    if !matches!(op, PmOp::Clwb | PmOp::ClwbLog | PmOp::ClflushOpt) {
        return Ok(());
    }
    debug_assert!(matches!(inst.op, Op::Pm(_)));
    let mut addresses = [0; 64];
    warp.addresses(inst, launch, lanes, &mut addresses);
    for lane in lanes_of(lanes) {
        if memory.slice(addresses[lane], 1).is_none() {
            let hint = launch.addresses.describe(addresses[lane]);
            let kind = FaultKind::OutOfBounds { address: addresses[lane], bytes: 1, space: "global", hint };
            return Err(ProgramFault::new(kind, launch, warp, pc, lane as u32));
        }
    }
    Ok(())
}

/// Tells of a read of shared memory by warp `warp` of a CTA.
#[cold]
pub(super) fn tell_read(
    observer: &mut Observer<'_>,
    ((cta, warp), owner): ((u64, u32), u64),
    pc: u32,
    lanes: u64,
    addresses: &[u64; 64],
    bytes: u32,
) {
    let (space, kind) = (Space::Shared, AccessKind::Read);
    let access = WarpAccess { cta, warp, owner, pc, space, kind, lanes, addresses, bytes, changes: 0 };
    (observer.tell)(Event::Accessed(&access));
}
