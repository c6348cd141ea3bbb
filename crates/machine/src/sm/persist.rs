//! Persistency at an SM, as instructions issue: stores and atomics to persistent memory, write-backs, fences.
//!
//! What a scheme decides comes from its handler ([`SmHandler`](durawarp_persist::SmHandler)); what is sent is
//! made here; which warps wait for it is in `fences.rs`. A *persist* is a write-through or a write-back whose
//! acknowledgement says that it is durable; a warp counts its own. Accesses to DRAM never come to a handler:
//! persistency operations on them have their plain meaning and are counted.
//!
//! Invariants: requests of one SM to one line are performed in the order of issue, so that a write-back
//! covers every earlier store of the SM; a fence that waits passes only when the warp has no persist under
//! way.

use crate::coalescer::{LineAccess, coalesce, lanes_of};
use crate::l1::L1;
use crate::msg::{Payload, RequestKind};
use crate::persistence::{Clwb, MembarRule, PersistSpec};
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{Op, PmOp, Scope, StoreHint};
use durawarp_kernel::memory::{Medium, resolve_generic};
use durawarp_persist::handler::{Load, Store, Synchronisation, WriteBack};
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::{FenceKind, FenceRule, Route, StoreClass, WriteBackClass, WriteBackRule};

use super::core::IssueCore;
use super::front_end::FrontEndWaits;
use super::lsu::{Entry, Lsu, NO_LOAD, Work};
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::slots::{Fault, WarpSlot};

/// What a store of the program is to a scheme.
pub(super) fn class_of(hint: StoreHint) -> StoreClass {
    match hint {
        StoreHint::Plain => StoreClass::Data,
        StoreHint::NonTemporal => StoreClass::NonTemporal,
        StoreHint::Log => StoreClass::Log,
    }
}

/// Asks a handler that steers loads whether one goes past the L1.
pub(super) fn steer_load(entry: &mut Entry, read_only: bool, m: &mut Moment<'_>) {
    let degree = entry.accesses.len() as u32;
    if m.host.handler.bypasses_l1(&Load { degree, read_only, stalled: false, slice_busy: false }) {
        entry.work = Work::LoadPast;
        m.record.counters.l1_loads_steered += u64::from(degree);
    }
}

/// Sends the line accesses of a store whose payloads are ready: those to persistent memory as the scheme
/// says.
pub(super) fn send_stores(
    class: StoreClass,
    mut entry: Box<Entry>,
    slot: &mut WarpSlot,
    lsu: &mut Lsu,
    memory: &mut MemorySide,
    front_end: &FrontEndWaits,
    m: &mut Moment<'_>,
) {
    // A store to DRAM alone is no affair of the scheme.
    let warp = entry.warp;
    if entry.accesses.iter().all(|access| Medium::of(access.line) == Medium::Dram) {
        entry.after = slot.order.fenced;
        if class != StoreClass::Data {
            m.record.note_on_dram(slot, m.launch(slot));
        }
        lsu.enqueue(entry, slot, m.record);
        return;
    }
    // The handler is asked once for the whole instruction, before the accesses are parted: it sees the
    // instruction's degree and all its lines of persistent memory.
    m.host.keep_lines(&entry.accesses);
    let persistent = entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm).count();
    let store = Store {
        class,
        warp,
        degree: entry.accesses.len() as u32,
        atomic: false,
        lines: &m.host.lines,
        accesses: persistent as u32,
        cta: slot.cta,
        launch: slot.launch,
        knows: slot.order.fenced,
    };
    let rule = m.host.handler.store(&store, &mut m.host.outbox);
    m.record.counters.pm_stores += 1;
    if class == StoreClass::Log {
        m.record.counters.pm_log_stores += 1;
        m.record.counters.pm_log_stores_past += u64::from(rule.route == Route::NonTemporal);
        m.record.counters.pm_log_stores_dropped += u64::from(rule.route == Route::Dropped);
    }
    m.host.store_waits |= rule.wait && rule.route != Route::Dropped;
    // Lanes may store to both media; each line goes its way.
    entry.log = class == StoreClass::Log;
    let mut non_temporal = lsu.entry(warp, Work::Send, NO_LOAD);
    non_temporal.log = entry.log;
    // Where the handler orders what leaves a combining L1, such a store joins its line there.
    non_temporal.kind = if memory.leaving.order.is_some() { RequestKind::Write } else { RequestKind::NonTemporal };
    non_temporal.mark = rule.mark;
    // `at` moves only past accesses that stay: `remove` brings the next one to the same place, and the order
    // of both entries remains the lanes' order.
    let mut at = 0;
    while at < entry.accesses.len() {
        let persistent = Medium::of(entry.accesses[at].line) == Medium::Nvm;
        if persistent && rule.route != Route::Dropped {
            m.record.counters.pm_store_accesses += 1;
            m.record.counters.pm_log_store_accesses += u64::from(class == StoreClass::Log);
            let kind = if rule.route == Route::NonTemporal { FactKind::StoredNonTemporal } else { FactKind::Stored };
            m.record.note_store(slot, kind, entry.accesses[at], &entry.payloads[at]);
            if front_end.present
                && let Payload::Line(content) = std::mem::replace(&mut entry.payloads[at], Payload::None)
            {
                let line = entry.accesses[at].line;
                front_end.copy_store(usize::from(warp), slot, line, &content, m.host, m.record);
                entry.payloads[at] = Payload::Line(content);
            }
        }
        if persistent && rule.route != Route::Temporal {
            let access = entry.accesses.remove(at);
            let payload = entry.payloads.remove(at);
            if rule.route == Route::NonTemporal {
                non_temporal.accesses.push(access);
                non_temporal.payloads.push(payload);
            } else if let Payload::Line(room) = payload {
                memory.port.line_pool.give(room);
            }
        } else {
            at += 1;
        }
    }
    // The order of what goes past is noted before the entries move into the queue, which takes them away.
    if let Some(books) = &mut memory.leaving.order {
        non_temporal.after = slot.order.fenced;
        if !non_temporal.accesses.is_empty() {
            slot.order.non_temporal = books.issue(slot.cta, non_temporal.accesses.len() as u64);
        }
    }
    if let Some(order) = rule.order {
        let cached = rule.route == Route::Temporal;
        entry.after = if cached { order.after } else { slot.order.fenced };
        if !non_temporal.accesses.is_empty() {
            non_temporal.after = order.after;
            slot.order.non_temporal = order.number;
        }
    }
    // The cached part first, whatever the route: the write-back below must come after it in the queue.
    for entry in [entry, non_temporal] {
        if entry.accesses.is_empty() {
            lsu.discard(entry);
        } else {
            lsu.enqueue(entry, slot, m.record);
        }
    }
    if rule.wait && rule.route == Route::Temporal {
        write_back_lines(RequestKind::WriteBack, warp, slot, lsu, m);
    }
}

/// Sends an atomic. It is performed at the L2; a scheme that waits for every store has its lines written back
/// then.
pub(super) fn send_atomics(
    mut entry: Box<Entry>,
    slot: &mut WarpSlot,
    lsu: &mut Lsu,
    front_end: &FrontEndWaits,
    m: &mut Moment<'_>,
) {
    let warp = entry.warp;
    let persistent = entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm).count();
    let (cta, knows) = (slot.cta, slot.order.fenced);
    entry.after = knows;
    m.record.counters.pm_store_accesses += persistent as u64;
    // An atomic on DRAM alone keeps the order of the warp's fences, and its scheme hears nothing of it.
    let mut wait = false;
    if persistent > 0 {
        m.host.keep_lines(&entry.accesses);
        let store = Store {
            class: StoreClass::Data,
            warp,
            degree: entry.accesses.len() as u32,
            atomic: true,
            lines: &m.host.lines,
            accesses: persistent as u32,
            cta,
            launch: slot.launch,
            knows,
        };
        let rule = m.host.handler.store(&store, &mut m.host.outbox);
        wait = rule.wait;
        entry.after = rule.order.map_or(knows, |order| order.after);
    }
    if m.record.journal.is_some() {
        for access in entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm) {
            m.record.note(slot, FactKind::Updated, access.line);
        }
    }
    // Before the entry moves into the queue: the warp's region lasts from now on until the atomics are back.
    if front_end.present {
        front_end.begin_copying(slot, &mut entry);
    }
    lsu.enqueue(entry, slot, m.record);
    if wait {
        m.host.store_waits = true;
        write_back_lines(RequestKind::WriteBack, warp, slot, lsu, m);
    }
}

/// Writes back the kept lines, behind every earlier access of the SM.
fn write_back_lines(kind: RequestKind, warp: u8, slot: &mut WarpSlot, lsu: &mut Lsu, m: &mut Moment<'_>) {
    let mut entry = lsu.entry(warp, Work::Send, NO_LOAD);
    entry.kind = kind;
    for at in 0..m.host.lines.len() {
        entry.accesses.push(LineAccess { line: m.host.lines[at], sectors: 0, lanes: 0 });
        entry.payloads.push(Payload::None);
        m.record.note(slot, FactKind::WroteBack, m.host.lines[at]);
    }
    lsu.enqueue(entry, slot, m.record);
}

/// Issues a warp's persistency operation that is no store: the fence that it has to wait for, if any. The pc
/// still points to it.
pub(super) fn issue_persistency(
    warp: usize,
    lanes: u64,
    core: &mut IssueCore,
    lsu: &mut Lsu,
    memory: &mut MemorySide,
    front_end: &FrontEndWaits,
    m: &mut Moment<'_>,
) -> Result<Option<(FenceKind, FenceRule)>, Fault> {
    if lanes == 0 {
        return Ok(None);
    }
    let slot = &mut core.slots[warp];
    let Op::Pm(op) = m.launch(slot).kernel.code[slot.warp.pc() as usize].op else {
        unreachable!("a persistency operation")
    };
    let write_back = match op {
        PmOp::Clwb => Some(WriteBackClass::Data),
        PmOp::ClwbLog => Some(WriteBackClass::Log),
        PmOp::ClflushOpt => Some(WriteBackClass::Flush),
        _ => None,
    };
    if let Some(class) = write_back {
        issue_write_back(warp as u8, class, lanes, slot, lsu, m)?;
        return Ok(None);
    }
    // A release says itself whether there is something to wait for; acquires and ends of regions act here and
    // wait for nothing. For a fence the handler's rule decides.
    let fence = match op {
        PmOp::Sfence => FenceKind::Sfence,
        PmOp::Ofence => FenceKind::Ofence,
        PmOp::Dfence => FenceKind::Dfence,
        PmOp::BarrierWi => FenceKind::BarrierThread,
        PmOp::BarrierWg => FenceKind::BarrierCta,
        PmOp::BarrierKr => FenceKind::BarrierKernel,
        PmOp::Release(scope) => {
            front_end.orders_copies(warp, m.host);
            return Ok(release_persists(warp, scope != Scope::Cta, core, m));
        }
        PmOp::Acquire(scope) => {
            front_end.orders_copies(warp, m.host);
            acquire_persists(warp, scope != Scope::Cta, core, &mut memory.l1, m);
            return Ok(None);
        }
        PmOp::Region => {
            front_end.end_region(warp, slot, m.host, m.record);
            return Ok(None);
        }
        // Marks of schemes that are not there yet; write-backs have been issued.
        PmOp::TxBegin | PmOp::TxEnd | PmOp::Clwb | PmOp::ClwbLog | PmOp::ClflushOpt => return Ok(None),
    };
    front_end.orders_copies(warp, m.host);
    m.record.counters.pm_fences += 1;
    Ok(Some((fence, m.host.handler.fence(fence))))
}

/// A warp releases: where its handler orders persists, a fence whose order passes on to who acquires.
fn release_persists(
    warp: usize,
    wide: bool,
    core: &mut IssueCore,
    m: &mut Moment<'_>,
) -> Option<(FenceKind, FenceRule)> {
    if !m.host.wants.persist_order {
        return None;
    }
    let rule = m.host.handler.synchronise(Synchronisation::Release { wide }).fence;
    if rule == FenceRule::Pass {
        return None;
    }
    m.record.note(&core.slots[warp], FactKind::Synchronised, 0);
    m.record.counters.pm_fences += 1;
    let slot = &core.slots[warp];
    let cta = &mut core.ctas[usize::from(slot.cta)];
    cta.fenced = cta.fenced.max(slot.order.non_temporal);
    Some((FenceKind::Ofence, rule))
}

/// A warp acquires: what its CTA has released comes before what it stores from now on.
fn acquire_persists(warp: usize, wide: bool, core: &mut IssueCore, l1: &mut L1, m: &mut Moment<'_>) {
    if !m.host.wants.persist_order {
        return;
    }
    m.record.note(&core.slots[warp], FactKind::Synchronised, 0);
    core.share_fences(warp);
    if m.host.handler.synchronise(Synchronisation::Acquire { wide }).forgets {
        l1.invalidate_all();
    }
}

/// Issues a write-back of the lines that `lanes` of a warp address.
fn issue_write_back(
    warp: u8,
    class: WriteBackClass,
    lanes: u64,
    slot: &mut WarpSlot,
    lsu: &mut Lsu,
    m: &mut Moment<'_>,
) -> Result<(), Fault> {
    let launch = m.launch(slot);
    let inst = &launch.kernel.code[slot.warp.pc() as usize];
    let mut address = [0; 64];
    slot.warp.addresses(inst, launch, lanes, &mut address);
    for lane in lanes_of(lanes) {
        address[lane] = resolve_generic(address[lane]).1;
        if launch.addresses.containing(address[lane], address[lane]).is_none() {
            let hint = launch.addresses.describe(address[lane]);
            let kind = FaultKind::OutOfBounds { address: address[lane], bytes: 1, space: "global", hint };
            return Err(Box::new(slot.fault(lane as u32, kind, launch)));
        }
    }
    // One write-back a line and warp instruction.
    let mut touched = lsu.entry(warp, Work::Send, NO_LOAD);
    coalesce(m.p.sm.coalescer, &address, lanes, 1, m.w.line_bytes, &mut touched.accesses);
    m.host.keep_lines(&touched.accesses);
    // Write-backs of a line by several accesses are one request, but counted as the coalescer makes them.
    let persistent = touched.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm).count();
    let on_dram = persistent < touched.accesses.len();
    lsu.discard(touched);
    if on_dram {
        m.record.note_on_dram(slot, launch);
    }
    m.record.counters.pm_write_backs += 1;
    let write_back = WriteBack { class, warp, launch: slot.launch, lines: &m.host.lines };
    if !m.host.lines.is_empty() && m.host.handler.write_back(&write_back, &mut m.host.outbox) == WriteBackRule::Written
    {
        m.record.counters.pm_write_back_accesses += persistent as u64;
        m.record.counters.pm_log_write_back_accesses +=
            if class == WriteBackClass::Log { persistent as u64 } else { 0 };
        let kind = match (class, m.w.persist.clwb) {
            (WriteBackClass::Flush, _) => RequestKind::Flush,
            (_, Clwb::Write) => RequestKind::WriteBack,
            (_, Clwb::L2) => RequestKind::WriteBackToL2,
        };
        write_back_lines(kind, warp, slot, lsu, m);
    }
    Ok(())
}

/// What an ordinary fence means for persistency: true when it waits for durability too.
pub(super) fn fence_persists(scope: Scope, persist: &PersistSpec) -> bool {
    let rule = match scope {
        Scope::Cta => MembarRule::Fence,
        Scope::Gpu => persist.membar_gl,
        Scope::Sys => persist.membar_sys,
    };
    rule == MembarRule::Sfence
}
