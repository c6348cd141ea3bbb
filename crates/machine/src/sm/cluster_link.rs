//! The link of an SM to the others of its GPC: requests to their shared memory and parts of copies leave by
//! it, and those of others are served.
//!
//! ```text
//!   entry of the LSU ── request ──> LSU there: passes through its banks, values read and written
//!   registers        <── answer ──
//!   copy engine      ── part ─────> shared memory there, its barrier
//!                    <── answer ──
//! ```
//! A request that comes waits for its turn in the load-store unit. Its answer leaves when the values would be
//! there for a warp of the SM that serves it.
//!
//! Source: CUDA C++ Programming Guide, "Distributed Shared Memory"; the latency of the link and its width are
//! parameters. Invariants: messages with bytes of shared memory leave one after another, by the width of the
//! link; a message names its CTA, and one that has ended gets nothing. Not modelled: a link that several SMs
//! share.

use crate::coalescer::lanes_of;
use crate::msg::{Msg, SmMsg};
use crate::remote::{RemoteAccess, RemoteKind, RemotePart};
use crate::shared_memory::OF_OTHER_CTAS;
use durawarp_engine::Ctx;
use durawarp_kernel::cluster::ClusterMisuse;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Inst, MemKind};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::{complete_bytes, swap_pair, try_atomic};
use durawarp_kernel::warp::Warp;
use durawarp_persist::handler::SmEvent;

use super::bulk_peers::perform_part;
use super::bulk_table::CopyTable;
use super::core::IssueCore;
use super::cta::CtaSlot;
use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::lsu::{Lsu, NO_LOAD, Work};
use super::moment::Moment;
use super::record::Record;
use super::seat::RemoteQueues;
use super::slots::Fault;
use super::wiring::SmWiring;

/// Sends a message with `bytes` of shared memory to another SM, from `cycle` on, when the link is free.
fn send(
    remote: &mut RemoteQueues,
    bytes: u32,
    cycle: u32,
    (sm, message): (u16, SmMsg),
    m: &Moment<'_>,
    cx: &mut Ctx<'_, Msg>,
) {
    let leaves = remote.take_link(bytes, m.p.shared.cluster_bytes, cycle).unwrap_or(cycle);
    let delay = m.w.clock.cycles(u64::from(leaves)) - cx.now();
    m.w.ports.to_sm(sm).send(message, delay, cx);
}

/// A request to shared memory of another SM leaves.
#[inline(never)]
pub(super) fn send_access(core: &IssueCore, remote: &mut RemoteQueues, m: &Moment<'_>, cx: &mut Ctx<'_, Msg>) {
    let access = remote.take_leaving();
    let warp = &core.slots[usize::from(access.from.warp)];
    let Some(seat) = &core.ctas[usize::from(warp.cta)].seat else { unreachable!("a CTA of a cluster has its seat") };
    let sm = seat.sms[access.to.rank as usize];
    let bytes = access.bytes_there();
    send(remote, bytes, m.cycle, (sm, SmMsg::Remote(access)), m, cx);
}

/// A request of another SM comes.
pub(super) fn queue_access(access: Box<RemoteAccess>, lsu: &mut Lsu) {
    let entry = lsu.entry(u8::MAX, Work::Served(access.passes), NO_LOAD);
    lsu.push(entry);
    lsu.remote.serving.push_back(access);
}

/// A request of another SM is served, and answered when its values would be there for a warp of this SM.
#[inline(never)]
pub(super) fn serve_access(
    passes: u32,
    core: &mut IssueCore,
    remote: &mut RemoteQueues,
    m: &mut Moment<'_>,
    cx: &mut Ctx<'_, Msg>,
) {
    let mut access = remote.take_serving();
    match core.find_cta(access.to, m.record) {
        Some(cta) => {
            let cta = &mut core.ctas[cta];
            tell_shared(cta, &access, m.host);
            perform(&mut cta.shared, &mut access);
        }
        None => access.fault = Some((access.lanes.trailing_zeros() as u8, ended(access.to.rank))),
    }
    remote.counted.cluster_served += 1;
    m.record.counters.shared_conflict_passes += u64::from(passes - 1);
    let ready = match access.kind {
        RemoteKind::Store | RemoteKind::Atomic(false) => passes,
        RemoteKind::Load | RemoteKind::Atomic(true) => m.p.shared.latency_cycles - 1 + (passes - 1),
    };
    let (sm, bytes) = (access.from.sm, access.bytes_back());
    send(remote, bytes, m.cycle + ready, (sm, SmMsg::RemoteAnswer(access)), m, cx);
}

/// A request to another SM is answered: its values go to registers.
///
/// # Errors
/// What was wrong there, at the instruction that has issued it.
pub(super) fn end_access(access: &RemoteAccess, core: &mut IssueCore, launches: &LaunchTable) -> Result<(), Fault> {
    let (slot, pc) = (&mut core.slots[usize::from(access.from.warp)], access.from.pc);
    let launch = launches.of(slot);
    if let Some((lane, what)) = &access.fault {
        let kind = FaultKind::Asynchronous(what.clone());
        return Err(Box::new(ProgramFault::new(kind, launch, &slot.warp, pc, u32::from(*lane))));
    }
    write_answer(&mut slot.warp, &launch.kernel.code[pc as usize], launch, access);
    Ok(())
}

/// Parts of copies leave for other SMs.
#[inline]
pub(super) fn send_parts(
    copies: &mut CopyTable,
    core: &IssueCore,
    remote: &mut RemoteQueues,
    m: &Moment<'_>,
    cx: &mut Ctx<'_, Msg>,
) {
    if !copies.parts.is_empty() {
        send_all_parts(copies, core, remote, m, cx);
    }
}

#[inline(never)]
fn send_all_parts(
    copies: &mut CopyTable,
    core: &IssueCore,
    remote: &mut RemoteQueues,
    m: &Moment<'_>,
    cx: &mut Ctx<'_, Msg>,
) {
    let mut leaving = std::mem::take(&mut copies.parts.leaving);
    for part in leaving.drain(..) {
        let cta = usize::from(core.slots[usize::from(part.from.warp)].cta);
        let Some(seat) = &core.ctas[cta].seat else { unreachable!("a CTA of a cluster has its seat") };
        let sm = seat.sms[part.to.rank as usize];
        // Bytes of global memory take no time of the link, and their turn there.
        let bytes = if copies.reads_shared(part.from.copy) { part.bytes() } else { 0 };
        let leaves = remote.take_link(bytes, m.p.shared.cluster_bytes, m.cycle);
        let delay = leaves.map_or(0, |leaves| m.w.clock.cycles(u64::from(leaves)) - cx.now());
        m.w.ports.to_sm(sm).send(SmMsg::Copied(part), delay, cx);
    }
    // The list is used again.
    copies.parts.leaving = leaving;
}

/// A part of another SM's copy is here.
pub(super) fn serve_part(
    mut part: Box<RemotePart>,
    core: &mut IssueCore,
    record: &mut Record,
    w: &SmWiring,
    cx: &mut Ctx<'_, Msg>,
) {
    part.fault = match core.find_cta(part.to, record) {
        Some(cta) => {
            let cta = &mut core.ctas[cta];
            for &(at, bytes) in &part.pieces {
                cta.writers.access(OF_OTHER_CTAS, MemKind::Store, std::iter::once(at.into()), bytes.into());
            }
            perform_part(&mut cta.shared, &part).err()
        }
        None => Some(ended(part.to.rank)),
    };
    record.bulk.bulk_parts_served += 1;
    w.ports.to_sm(part.from.sm).send(SmMsg::CopiedAnswer(part), 0, cx);
}

/// What is told of an access to a CTA that is not there any more.
fn ended(rank: u32) -> String {
    ClusterMisuse::Ended(rank).to_string()
}

/// Where a lane's bytes lie in a request.
pub(super) fn apart() -> [u16; 64] {
    std::array::from_fn(|lane| 16 * lane as u16)
}

/// Tells the handler where warps of two CTAs communicate by the shared memory of this one. Those of other
/// CTAs are not told apart.
fn tell_shared(cta: &mut CtaSlot, access: &RemoteAccess, host: &mut SmHost) {
    let kind = match access.kind {
        RemoteKind::Load => MemKind::Load,
        RemoteKind::Store => MemKind::Store,
        RemoteKind::Atomic(_) => MemKind::Atomic,
    };
    let at = lanes_of(access.lanes).map(|lane| access.at[lane].into());
    if cta.writers.access(OF_OTHER_CTAS, kind, at, access.bytes.into()) {
        host.tell(&SmEvent::SharedRead { launch: cta.launch });
    }
}

/// Does in a CTA's shared memory what another asks for; bounds were checked where it was issued.
fn perform(shared: &mut [u8], access: &mut RemoteAccess) {
    let bytes = usize::from(access.bytes);
    for lane in lanes_of(access.lanes) {
        let at = access.at[lane] as usize;
        let (here, data) = (&mut shared[at..at + bytes], &mut access.data[16 * lane..16 * lane + bytes]);
        match access.kind {
            RemoteKind::Load => data.copy_from_slice(here),
            RemoteKind::Store => here.copy_from_slice(data),
            // One lane after the other, as each sees what those before it left.
            RemoteKind::Atomic(_) if bytes == 16 => {
                let new = [&data[..8], &data[8..]].map(|half| u64::from_le_bytes(half.try_into().expect("8 bytes")));
                let operands = [(access.a[lane], new[0]), (access.b[lane], new[1])];
                [[access.a[lane], access.b[lane]], _] = swap_pair(access.atom, here, operands);
            }
            RemoteKind::Atomic(_) => {
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(here);
                let old = u64::from_le_bytes(word);
                match try_atomic(access.atom, access.elem, old, access.a[lane], access.b[lane]) {
                    Ok(new) => here.copy_from_slice(&new.to_le_bytes()[..bytes]),
                    Err(misuse) => {
                        access.fault = Some((lane as u8, misuse.to_string()));
                        return;
                    }
                }
                access.a[lane] = old;
            }
        }
        if let Some(barriers) = &access.barriers
            && let Err(misuse) = complete_bytes(shared, barriers[lane].into(), bytes as u32)
        {
            access.fault = Some((lane as u8, misuse.to_string()));
            return;
        }
    }
}

/// Writes what an answer brings to the registers of its warp.
fn write_answer(warp: &mut Warp, inst: &Inst, launch: &Launch, access: &RemoteAccess) {
    match access.kind {
        RemoteKind::Load => warp.write_back(inst, launch, access.lanes, &apart(), &access.data),
        RemoteKind::Atomic(true) => {
            for lane in lanes_of(access.lanes) {
                warp.write_atomic(inst, lane as u32, 0, access.a[lane]);
                if access.bytes == 16 {
                    warp.write_atomic(inst, lane as u32, 1, access.b[lane]);
                }
            }
        }
        RemoteKind::Store | RemoteKind::Atomic(false) => {}
    }
}
