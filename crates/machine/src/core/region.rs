//! Regions of a scheme that holds registers of stores: where a hart's dispatch stops for one to end, and how
//! lines of stores are written back and given up.
//!
//! | instant | what the handler is asked or told |
//! |---|---|
//! | an instruction is dispatched that writes a register | whether a physical one is free; if not, the region ends |
//! | an atomic, a `fence`, a call is executed alone | the region ends before it |
//! | all before the end is performed | whether it is durable, too; the hart waits until it is |
//! | an instruction retires | the register it writes, those it stores by |
//! | a store is performed | the store; lines are written back at its word |
//! | a write-back is acknowledged | the line; the same |
//! | another core is to write a line, or a changed line makes room | whether the line may go; the same |
//!
//! A probe that takes a line waits here for the handler's word, with a copy to read left in the L1. Its
//! write-backs go past requests that wait for the line at its home, so that they do not wait for the probe.
//! All of this is for handlers with [`CorePolicy::renaming`](durawarp_persist::handler::CorePolicy).

use crate::line::Line;
use crate::msg::Msg;
use durawarp_engine::{Clock, Ctx};
use durawarp_persist::handler::{Admission, CoreEvent, CoreOffer};
use durawarp_persist::journal::Notebook;
use durawarp_persist::vocab::RegionEnd;
use durawarp_riscv::instruction::{Class, Inst, NOWHERE, X0};

use super::cache::Cache;
use super::cause::Cause;
use super::handler_host::{CoreHost, Performed};
use super::hart::{Hart, Moment, Stall};

fn reason(inst: &Inst) -> Option<RegionEnd> {
    match inst.class() {
        Class::Amo | Class::LoadReserved | Class::StoreConditional => Some(RegionEnd::Atomic),
        Class::Fence => Some(RegionEnd::Fence),
        Class::System => Some(RegionEnd::Call),
        _ => None,
    }
}

/// An instruction may be dispatched as far as registers go.
pub(super) fn admit(hart: &mut Hart, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    let pc = hart.front.pc;
    let ending = hart.renaming.ending.filter(|&(at, _)| at == pc);
    let since = match ending {
        Some((_, since)) => since,
        // An instruction that ends a region by itself finds no other in flight.
        None if inst.rd == NOWHERE || reason(inst).is_some() => return Ok(()),
        None => {
            let in_flight = hart.renaming.in_flight(&hart.window, inst.rd);
            match m.host.offer(&CoreOffer::Rename { hart: hart.index, register: inst.rd, in_flight }) {
                Admission::Goes => return Ok(()),
                Admission::Held => return Err(hart.behind_oldest(cycle)),
                Admission::Waits => {}
            }
            hart.renaming.ending = Some((pc, cycle));
            cycle
        }
    };
    if !hart.window.is_empty() {
        return Err(Stall { cause: Cause::Persist, until: hart.retires_at(cycle) });
    }
    // The store that is performed last has this looked at again.
    if !hart.stores.is_empty() || !end(hart, RegionEnd::Registers, since, cycle, m) {
        return Err(Stall { cause: Cause::Persist, until: None });
    }
    hart.renaming.ending = None;
    Ok(())
}

/// The region of a hart ends before an instruction that is executed alone, all before which is performed;
/// false while it waits.
pub(super) fn synchronise(hart: &mut Hart, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> bool {
    let Some(reason) = reason(inst) else { return true };
    let since = *hart.renaming.since.get_or_insert(cycle);
    let ended = end(hart, reason, since, cycle, m);
    if ended {
        hart.renaming.since = None;
    }
    ended
}

/// All is performed: the region has ended if it is durable, too.
fn end(hart: &Hart, reason: RegionEnd, since: u64, cycle: u64, m: &mut Moment<'_, '_>) -> bool {
    if m.host.offer(&CoreOffer::Durable(hart.index)) != Admission::Goes {
        m.cache.write_back_asked(m.program.until(cycle, m.cx), m.host, m.cx);
        return false;
    }
    let event = CoreEvent::RegionPersisted { hart: hart.index, reason, waited: cycle - since };
    m.host.tell(&event, m.program.clock.cycles(cycle), m.record.journal.as_mut(), m.cx);
    true
}

/// An instruction has retired.
pub(super) fn retired(hart: &mut Hart, number: u64, cycle: u64, m: &mut Moment<'_, '_>) {
    let (pc, writes) = (hart.window.entry(number).pc, hart.window.entry(number).rd);
    hart.renaming.retired(number, writes);
    let stored = m.program.code.at(pc).map_or(0, |inst| match inst.class() {
        Class::Store | Class::StoreConditional => bit(inst.rs1) | bit(inst.rs2),
        // What it wrote is told when it is performed.
        Class::Amo => bit(inst.rs1),
        _ => 0,
    });
    let register = (writes != NOWHERE).then_some(writes);
    let event = CoreEvent::Retired { hart: hart.index, register, stored };
    m.host.tell(&event, m.program.clock.cycles(cycle), m.record.journal.as_mut(), m.cx);
}

fn bit(register: u8) -> u64 {
    if register == X0 { 0 } else { 1 << register }
}

/// A hart has stored to persistent memory.
pub(super) fn stored(store: &Performed, cycle: u64, m: &mut Moment<'_, '_>) {
    m.host.stored(store, m.program.clock.cycles(cycle), m.record.journal.as_mut(), m.cx);
    let delay = m.program.until(cycle, m.cx);
    m.cache.write_back_asked(delay, m.host, m.cx);
}

/// What an atomic of a hart wrote has been stored.
pub(super) fn atomic(hart: &Hart, cycle: u64, m: &mut Moment<'_, '_>) {
    let event = CoreEvent::AtomicPerformed(hart.index);
    m.host.tell(&event, m.program.clock.cycles(cycle), m.record.journal.as_mut(), m.cx);
}

/// A home takes a line; its probe may have to wait. True when the L1 has lost it.
pub(super) fn probe(cache: &mut Cache, host: &mut CoreHost, line: u64, room: Box<Line>, cx: &mut Ctx<'_, Msg>) -> bool {
    if host.offer(&CoreOffer::GiveUp(line)) == Admission::Goes {
        return cache.probe(line, true, room, host, cx);
    }
    cache.write_back_asked(0, host, cx);
    cache.hold_probe(line, room);
    false
}

/// A write-back is acknowledged: others may leave, and a probe may be answered. The line that is lost.
pub(super) fn written_back(
    cache: &mut Cache,
    host: &mut CoreHost,
    journal: Option<&mut Notebook>,
    clock: Clock,
    (tag, room): (u16, Box<Line>),
    cx: &mut Ctx<'_, Msg>,
) -> Option<u64> {
    let (line, sent) = cache.cleaned(tag, room)?;
    let cycles = clock.cycle_at_or_after(cx.now().saturating_sub(sent));
    host.tell(&CoreEvent::WrittenBack { line, cycles }, cx.now(), journal, cx);
    cache.write_back_asked(0, host, cx);
    let room = cache.take_probe(line)?;
    probe(cache, host, line, room, cx).then_some(line)
}
