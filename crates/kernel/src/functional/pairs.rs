//! Pairs of CTAs in the functional driver (`tcgen05` with `.cta_group::2`), and arrivals behind products in
//! several CTAs.
//!
//! ```text
//!   alloc   the first of the two CTAs to come waits; the second takes columns in both, at one address
//!   mma     both CTAs' rows at once, whichever of them issues it
//!   cp      both CTAs' copies at once, likewise
//! ```
//! Source: PTX ISA 9.7.16.5 (issue granularity: a warp of each CTA allocates, a thread of either multiplies).
//! An arrival tells who tests the barrier of what the warp knows, as any arrival does.
//!
//! Not found: a `dealloc` by one CTA of a pair before the other has come to its own.

use super::super::cluster::{ClusterMisuse, peer_of};
use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, TensorStep};
use super::super::launch::Launch;
use super::super::semantics::atomic::arrive_once;
use super::super::tensor_memory::{PairMisuse, TensorMemory};
use super::super::warp::{Warp, copy_pair, lanes_of, multiply_pair, pair_columns};
use super::access::tell_read;
use super::cluster::{Cluster, PairAllocations, Peers};
use super::interface::{Event, Observer};

/// A step of a warp on `lanes`, which are some; it is warp `of.1` of CTA `of.0`. Does not move the pc. False
/// where the warp waits for the peer of its CTA.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
#[cold]
pub(super) fn step_pair(
    (warp, of): (&mut Warp, (u64, u32)),
    step: TensorStep,
    (inst, lanes): (&Inst, u64),
    launch: &Launch,
    (memory, shared): (&mut TensorMemory, &mut [u8]),
    peers: Option<Peers<'_>>,
    observer: &mut Option<Observer<'_>>,
) -> Result<bool, Box<ProgramFault>> {
    let fault =
        |warp: &Warp, kind: FaultKind, lane: u32| Box::new(ProgramFault::new(kind, launch, warp, warp.pc(), lane));
    if step == TensorStep::CommitTo {
        return commit((warp, of), (inst, lanes), launch, shared, peers, observer).map(|()| true);
    }
    let first = lanes.trailing_zeros();
    let wrong = |misuse: ClusterMisuse| FaultKind::Asynchronous(misuse.to_string());
    let Some(Peers { rank, cluster }) = peers else { unreachable!("a launch of pairs has clusters") };
    let peer = peer_of(rank, launch.cluster_ctas()).map_err(|misuse| fault(warp, wrong(misuse), first))?;
    match step {
        // Of the own CTA alone: the peer's warp frees the peer's.
        TensorStep::FreePair => {
            warp.free_columns(inst, launch, lanes, memory)?;
        }
        TensorStep::AllocatePair => {
            let columns = warp.columns_to_allocate(inst, launch, lanes)?;
            let address = allocate((rank, peer), columns, memory, cluster);
            let address = address.map_err(|what| fault(warp, FaultKind::Unsupported(what), first))?;
            let Some(address) = address else { return Ok(false) };
            warp.write_tensor_result(inst.dst[0], lanes, address);
        }
        // Its half of the work would be nobody's.
        TensorStep::MultiplyPair(_) | TensorStep::CopyPair(_) if cluster.phases.has_ended(peer) => {
            return Err(fault(warp, wrong(ClusterMisuse::Ended(peer)), first));
        }
        TensorStep::MultiplyPair(kind) => {
            if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.accesses) {
                for owner in [of.0, launch.cta_of(cluster.number, peer)] {
                    warp.each_tensor_read(inst, (kind, true), launch, lanes, |lanes, addresses, bytes| {
                        tell_read(observer, (of, owner), warp.pc(), lanes, addresses, bytes);
                    })?;
                }
            }
            for (lane, values) in warp.pair_products(inst, kind, launch, lanes) {
                let fault = |kind| fault(warp, kind, lane);
                let (tensors, memories) = (&mut cluster.tensors, &cluster.memories);
                // The peer does not run: its memories lie with the cluster.
                let theirs = (&mut tensors[peer as usize], &memories[peer as usize][..]);
                let b = [&*shared, theirs.1].map(|shared| pair_columns(&values, shared, launch));
                let [own, other] = b;
                let (own, other) = (own.map_err(fault)?, other.map_err(fault)?);
                let b = if rank.is_multiple_of(2) { [&own, &other] } else { [&other, &own] };
                multiply_pair(&values, rank % 2, b, memory, shared, launch).map_err(fault)?;
                multiply_pair(&values, peer % 2, b, theirs.0, theirs.1, launch).map_err(fault)?;
            }
        }
        TensorStep::CopyPair(copy) => {
            if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.accesses) {
                for owner in [of.0, launch.cta_of(cluster.number, peer)] {
                    warp.each_copy_read(inst, copy, launch, lanes, |lanes, addresses, bytes| {
                        tell_read(observer, (of, owner), warp.pc(), lanes, addresses, bytes);
                    })?;
                }
            }
            // One descriptor, which names a place in the shared memory of each.
            for (lane, values) in warp.pair_copies(inst, copy, launch, lanes) {
                let (tensors, memories) = (&mut cluster.tensors, &cluster.memories);
                let own = copy_pair(&values, memory, shared, launch);
                own.and_then(|()| copy_pair(&values, &mut tensors[peer as usize], &memories[peer as usize], launch))
                    .map_err(|kind| fault(warp, kind, lane))?;
            }
        }
        _ => unreachable!("`step_tensor` has the other steps"),
    }
    Ok(true)
}

/// A warp of the CTA of `rank` asks for columns in both CTAs of its pair: their address, once the peer has
/// come.
fn allocate(
    (rank, peer): (u32, u32),
    columns: u32,
    memory: &mut TensorMemory,
    cluster: &mut Cluster,
) -> Result<Option<u32>, String> {
    let Cluster { pairs: PairAllocations { asked, granted }, tensors, .. } = cluster;
    let Some(theirs) = asked[peer as usize].take() else {
        if asked[rank as usize].replace(columns).is_some() || granted[rank as usize].is_some() {
            return Err(PairMisuse::Twice.to_string());
        }
        return Ok(None);
    };
    // The peer waits: both have their columns now, or nobody has.
    if theirs != columns {
        return Err(PairMisuse::Columns { columns, theirs }.to_string());
    }
    let found = [memory.allocate(columns), tensors[peer as usize].allocate(columns)];
    let [Some(address), Some(theirs)] = found else {
        return Err(format!(
            "`tcgen05.alloc.cta_group::2` of {columns} columns waits for columns that its own pair has"
        ));
    };
    if address != theirs {
        return Err(PairMisuse::Apart { address, theirs }.to_string());
    }
    granted[peer as usize] = Some(address);
    Ok(Some(address))
}

/// Arrives behind the products so far, which are done.
fn commit(
    (warp, of): (&Warp, (u64, u32)),
    (inst, lanes): (&Inst, u64),
    launch: &Launch,
    shared: &mut [u8],
    mut peers: Option<Peers<'_>>,
    observer: &mut Option<Observer<'_>>,
) -> Result<(), Box<ProgramFault>> {
    for target in warp.commit_targets(inst, launch, lanes)? {
        for rank in lanes_of(target.ranks.into()).map(|rank| rank as u32) {
            let wrong = |what: String| {
                let kind = FaultKind::Asynchronous(what);
                Box::new(ProgramFault::new(kind, launch, warp, warp.pc(), target.lane))
            };
            // The own memory is with who runs, the others lie with the cluster.
            let (owner, memory) = match &mut peers {
                Some(Peers { rank: own, cluster }) if rank != *own => {
                    if cluster.phases.has_ended(rank) {
                        return Err(wrong(ClusterMisuse::Ended(rank).to_string()));
                    }
                    (launch.cta_of(cluster.number, rank), &mut cluster.memories[rank as usize][..])
                }
                _ => (of.0, &mut *shared),
            };
            arrive_once(memory, target.at).map_err(|misuse| wrong(misuse.to_string()))?;
            if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.accesses) {
                (observer.tell)(Event::Commits { cta: of.0, warp: of.1, owner, barrier: target.at });
            }
        }
    }
    Ok(())
}
