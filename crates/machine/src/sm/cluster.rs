//! Accesses of a CTA to shared memory of its cluster's other CTAs, as its warps issue them.
//!
//! ```text
//!   instruction ─ lanes by rank ─┬─ own CTA: as any access to shared memory
//!                                └─ entry of the LSU ─> link ─> SM there ─> link ─> answer
//! ```
//! A request leaves in a cycle of the load-store unit (`cluster_link.rs`). A load's registers are written
//! when the answer comes; a store is performed then, so that fences wait for it.
//!
//! Source: CUDA C++ Programming Guide, "Distributed Shared Memory". Invariant: requests of a warp to one CTA
//! are served in the order of issue. Not modelled: a path beside the load-store unit for what others ask;
//! which of the other CTAs wrote a word, for schemes that ask whether warps communicate; order of persists
//! that goes by other CTAs' shared memory without a fence. A release and an acquire are fences, and pass on
//! what a CTA knows of the order of its persists.

use crate::coalescer::{Form, lanes_of};
use crate::remote::{RemoteKind, RemoteSource};
use crate::shared_memory::passes;
use durawarp_kernel::cluster::{ClusterMisuse, owner_of};
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{AtomOp, MemKind, PhaseOp};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::complete_bytes;

use super::cluster_link::apart;
use super::core::IssueCore;
use super::lsu::{Lsu, NO_LOAD, Work};
use super::memory::Share;
use super::moment::Moment;
use super::slots::Fault;
use super::tensor_peers::PairScope;

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: u64 = 8;

impl Share<'_> {
    /// Lanes of a launch with clusters, some of which may mean other CTAs.
    #[inline(never)]
    pub(super) fn in_cluster(self, core: &mut IssueCore, lsu: &mut Lsu, m: &mut Moment<'_>) -> Result<(), Fault> {
        let (slot, launch) = (&core.slots[self.warp], self.launch);
        let Some(own) = core.ctas[usize::from(slot.cta)].seat.as_ref().map(|seat| seat.rank) else {
            unreachable!("a CTA of a cluster has its seat")
        };
        let (ctas, completes) = (launch.cluster_ctas(), self.inst.completes(self.mem));
        let (mut ranks, mut within) = ([own; 64], [0; 64]);
        for lane in lanes_of(self.lanes) {
            let (rank, byte) = owner_of(self.address[lane], own);
            // Matrices are of the own CTA: others' addresses stay, and are beyond its memory.
            let elsewhere = rank != own && matches!(self.mem.kind, MemKind::Matrix(_));
            (ranks[lane], within[lane]) = if elsewhere { (own, self.address[lane]) } else { (rank, byte) };
            let misuse = if rank >= ctas {
                ClusterMisuse::NoRank { rank, ctas }
            } else if completes && slot.warp.completes_at(self.inst, launch, lane as u32, own).0 != rank {
                ClusterMisuse::Apart
            } else {
                continue;
            };
            return Err(Box::new(slot.fault(lane as u32, FaultKind::Asynchronous(misuse.to_string()), launch)));
        }
        let mut left = self.lanes;
        while left != 0 {
            let rank = ranks[left.trailing_zeros() as usize];
            let lanes = lanes_of(left).filter(|&lane| ranks[lane] == rank).fold(0, |all, lane| all | 1 << lane);
            left &= !lanes;
            let form = Form::of(&within, lanes, self.bytes);
            let share = Share { lanes, address: &within, form, load: &mut *self.load, ..self };
            if rank == own {
                share.in_own(core, lsu, m)?;
            } else {
                share.elsewhere(rank, core, lsu, m)?;
            }
        }
        Ok(())
    }

    /// Lanes whose addresses lie in the CTA of another rank: a request to its SM.
    fn elsewhere(mut self, rank: u32, core: &mut IssueCore, lsu: &mut Lsu, m: &mut Moment<'_>) -> Result<(), Fault> {
        let launch = self.launch;
        self.check("shared", u64::from(launch.shared_bytes), core)?;
        // Only the own SM knows when products are done. Without any under way it is an arrival as any other.
        let place = core.slots[self.warp].cta;
        if self.mem.atom == AtomOp::Phase(PhaseOp::ArriveBehindProducts) && core.tensor.is_under_way(place, m.cycle) {
            let scope = PairScope::new(m.p, m.w, m.record, m.launches);
            for lane in lanes_of(self.lanes) {
                let cta = &core.ctas[usize::from(place)];
                let others = scope.others(cta, 1 << rank, self.address[lane]);
                core.tensor.arrive_in_turn((place, cta.cta), Vec::new(), others);
            }
            return Ok(());
        }
        // All checks are done before anything changes.
        let Share { warp, pc, inst, mem, bytes, lanes, address, .. } = self;
        let barriers = if inst.completes(mem) { Some(self.barriers(launch, core)?) } else { None };
        let kind = match mem.kind {
            MemKind::Store => RemoteKind::Store,
            MemKind::Atomic | MemKind::Reduction => RemoteKind::Atomic(mem.kind == MemKind::Atomic),
            _ => RemoteKind::Load,
        };
        let load = if matches!(kind, RemoteKind::Load | RemoteKind::Atomic(true)) {
            let load = self.open_load(lsu);
            lsu.load(load).left += 1;
            Some(load)
        } else {
            core.slots[warp].under_way.stores += 1;
            None
        };
        // The box of a request that was answered, as a rule: all that it has is written anew.
        let slot = &core.slots[warp];
        let cta = &core.ctas[usize::from(slot.cta)];
        let Some(seat) = &cta.seat else { unreachable!("a CTA of a cluster has its seat") };
        let mut access = lsu.remote.spare.pop().unwrap_or_default();
        access.from = RemoteSource { sm: m.w.index, warp: warp as u8, pc: pc as u32, load };
        access.to = seat.peer(launch, m.record.launch(slot.launch), cta.cta, rank);
        (access.kind, access.lanes, access.bytes) = (kind, lanes, bytes as u8);
        (access.elem, access.atom, access.barriers) = (mem.elem, mem.atom, barriers);
        let atomic = matches!(kind, RemoteKind::Atomic(_));
        access.passes = passes(address, lanes, bytes, m.p.shared.banks, atomic);
        // Operands are read at issue, as those of stores to global memory are.
        for lane in lanes_of(lanes) {
            access.at[lane] = address[lane] as u32;
            if atomic && mem.is_pair() {
                let operands = slot.warp.pair_operands(inst, launch, lane as u32);
                (access.a[lane], access.b[lane]) = (operands[0].0, operands[1].0);
                let new = operands.map(|(_, b)| b.to_le_bytes());
                access.data[16 * lane..16 * lane + 16].copy_from_slice(new.as_flattened());
            } else if atomic {
                (access.a[lane], access.b[lane]) = slot.warp.atomic_operands(inst, launch, lane as u32);
            }
        }
        if kind == RemoteKind::Store {
            slot.warp.gather(inst, launch, lanes, &apart(), &mut access.data);
        }
        lsu.remote.counted.count(kind, lanes.count_ones() * bytes);
        lsu.remote.leaving.push_back(access);
        let entry = lsu.entry(warp as u8, Work::Leaves, NO_LOAD);
        lsu.push(entry);
        Ok(())
    }

    /// The address of each lane's barrier, which is there and aligned.
    fn barriers(&self, launch: &Launch, core: &IssueCore) -> Result<Box<[u32; 64]>, Fault> {
        let slot = &core.slots[self.warp];
        let mut barriers = Box::new([0; 64]);
        for lane in lanes_of(self.lanes) {
            let (_, at) = slot.warp.completes_at(self.inst, launch, lane as u32, 0);
            let bytes = BARRIER_BYTES as u32;
            let kind = if !at.is_multiple_of(BARRIER_BYTES) {
                FaultKind::Misaligned { address: at, bytes, space: "shared" }
            } else if at + BARRIER_BYTES > u64::from(launch.shared_bytes) {
                let hint = format!("there are {} bytes", launch.shared_bytes);
                FaultKind::OutOfBounds { address: at, bytes, space: "shared", hint }
            } else {
                barriers[lane] = at as u32;
                continue;
            };
            return Err(Box::new(slot.fault(lane as u32, kind, launch)));
        }
        Ok(barriers)
    }

    /// What an asynchronous store or reduction of the own CTA's memory has written completes.
    pub(super) fn complete(&self, core: &mut IssueCore, launch: &Launch) -> Result<(), Fault> {
        let barriers = self.barriers(launch, core)?;
        let cta = usize::from(core.slots[self.warp].cta);
        for lane in lanes_of(self.lanes) {
            if let Err(misuse) = complete_bytes(&mut core.ctas[cta].shared, barriers[lane].into(), self.bytes) {
                let kind = FaultKind::Asynchronous(misuse.to_string());
                return Err(Box::new(core.slots[self.warp].fault(lane as u32, kind, launch)));
            }
        }
        Ok(())
    }
}
