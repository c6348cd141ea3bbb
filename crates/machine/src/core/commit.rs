//! What has retired is performed: stores and line operations leave the store buffer in program order, one a
//! cycle, when the core may write their line.

use crate::coherence::{CPU_LINE_BYTES, Want};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{CoreEvent, CoreFences};
use durawarp_persist::journal::FactKind;

use super::cache::Asked;
use super::handler_host::Performed;
use super::hart::{Hart, Moment};
use super::l1d::{LineState, line_of};
use super::region;
use super::store_queue::{StoreEntry, StoreKind, StoreQueue};
use super::weakened::OrderRule;

/// What became of the oldest store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Committed {
    /// None has retired.
    Nothing,
    /// It, or its first half, is performed.
    Performed,
    /// It waits for its line.
    Waits,
}

/// Performs the oldest store that has retired, if its line is there.
pub(super) fn commit(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> Committed {
    let Some(&entry) = hart.stores.first_retired() else { return Committed::Nothing };
    match entry.kind {
        StoreKind::Store | StoreKind::Checkpoint => store(hart, &entry, cycle, m),
        StoreKind::RegionEnd => {
            // The program counter is the last store of the region.
            let committed = store(hart, &entry, cycle, m);
            if committed == Committed::Performed {
                end_region(hart, entry.pc, cycle, false, m);
            }
            committed
        }
        StoreKind::Fence => {
            if !m.host.admits(hart.index, (cycle, m.program.clock), &mut m.record.counters) {
                return Committed::Waits;
            }
            order(hart, entry.pc, cycle, m);
            hart.stores.pop(cycle);
            Committed::Performed
        }
        StoreKind::Clean | StoreKind::Flush => {
            if m.cache.cleanings_are_full() {
                return Committed::Waits;
            }
            clean(hart, &entry, cycle, m);
            hart.stores.pop(cycle);
            Committed::Performed
        }
    }
}

/// The journal hears of the store that has retired last, where it has retirement: a part for each line.
#[inline]
pub(super) fn retired(hart: u8, stores: &StoreQueue, cycle: u64, m: &mut Moment<'_, '_>) {
    if !m.record.notes_retirement {
        return;
    }
    let Some(entry) = stores.last_retired().filter(|entry| entry.kind == StoreKind::Store) else { return };
    let (Some(address), Some(value)) = (entry.address, entry.value) else { return };
    let (time, width, first) = (m.program.clock.cycles(cycle), usize::from(entry.width), in_first_line(entry));
    m.record.retired(time, hart, entry.pc, address, first, value);
    if first < width {
        m.record.retired(time, hart, entry.pc, address + first as u64, width - first, value >> (8 * first));
    }
}

/// Bytes of a store in the line of its address.
fn in_first_line(entry: &StoreEntry) -> usize {
    let to_end = entry.address.map_or(CPU_LINE_BYTES, |address| CPU_LINE_BYTES - address % CPU_LINE_BYTES);
    usize::from(entry.width).min(to_end as usize)
}

fn store(hart: &mut Hart, entry: &StoreEntry, cycle: u64, m: &mut Moment<'_, '_>) -> Committed {
    let (Some(address), Some(value)) = (entry.address, entry.value) else {
        unreachable!("a store that has retired has an address and bytes")
    };
    // A store across two lines is performed in two parts. The first shortens the entry to the second.
    let bytes = in_first_line(entry);
    let line = line_of(address);
    let Some(place) = m.cache.l1.look_up_in(line, LineState::Exclusive) else {
        let delay = m.program.until(cycle, m.cx);
        let asked = m.cache.ask(line, Want::Exclusive, delay, &mut m.record.counters, m.cx);
        m.record.counters.l1_store_misses += u64::from(matches!(asked, Asked::Sent(_)));
        if m.program.weakened.lacks(OrderRule::StoresInOrder)
            && hart.stores.reorder(|at| m.cache.l1.state(line_of(at)) >= LineState::Exclusive)
        {
            return commit(hart, cycle, m);
        }
        return Committed::Waits;
    };
    if Medium::of(address) == Medium::Nvm
        && !m.host.admits(hart.index, (cycle, m.program.clock), &mut m.record.counters)
    {
        return Committed::Waits;
    }
    m.cache.l1.write(place, (address - line) as usize, bytes, value);
    m.changed.push((line, Some(hart.index)));
    let checkpoint = entry.kind != StoreKind::Store;
    performed(hart.index, entry.pc, (address, bytes), value, checkpoint, cycle, m);
    if bytes < usize::from(entry.width) {
        hart.stores.perform_first(bytes as u8, cycle);
    } else {
        m.record.counters.stores += u64::from(!checkpoint);
        hart.stores.pop(cycle);
    }
    Committed::Performed
}

/// A hart has written bytes of a line in its L1: the journal and the scheme hear of it.
pub(super) fn performed(
    hart: u8,
    pc: u64,
    (address, width): (u64, usize),
    value: u64,
    checkpoint: bool,
    cycle: u64,
    m: &mut Moment<'_, '_>,
) {
    let time = m.program.clock.cycles(cycle);
    m.record.performed(time, hart, pc, address, width, value);
    if !m.host.hears_stores() && !m.host.policy.renaming {
        return;
    }
    if Medium::of(address) == Medium::Nvm {
        let store = Performed { hart, author: m.record.author(hart, pc), address, width, value, checkpoint };
        if m.host.policy.renaming {
            return region::stored(&store, cycle, m);
        }
        m.host.stored(&store, time, m.record.journal.as_mut(), m.cx);
    } else if m.host.policy.dependencies {
        let line = line_of(address);
        m.record.note(time, FactKind::PerformedVolatile, hart, pc, line);
        m.host.tell(&CoreEvent::StoredVolatile { hart, line }, time, m.record.journal.as_mut(), m.cx);
    }
}

/// A hart's region ends behind the stores before it. The `last` one ends as its thread does, or stops.
pub(super) fn end_region(hart: &Hart, pc: u64, cycle: u64, last: bool, m: &mut Moment<'_, '_>) {
    let time = m.program.clock.cycles(cycle);
    m.record.counters.regions += u64::from(!last);
    let event = CoreEvent::RegionEnds { hart: hart.index, author: m.record.author(hart.index, pc), last };
    m.host.tell(&event, time, m.record.journal.as_mut(), m.cx);
}

/// An ordering fence takes its place behind the stores before it.
pub(super) fn order(hart: &Hart, pc: u64, cycle: u64, m: &mut Moment<'_, '_>) {
    let time = m.program.clock.cycles(cycle);
    m.record.counters.ordering_fences += 1;
    m.record.note(time, FactKind::EpochEnded, hart.index, pc, 0);
    m.host.tell(&CoreEvent::Fenced(hart.index), time, m.record.journal.as_mut(), m.cx);
}

fn clean(hart: &mut Hart, entry: &StoreEntry, cycle: u64, m: &mut Moment<'_, '_>) {
    let Some(line) = entry.address else { unreachable!("a line operation that has retired has an address") };
    let flush = entry.kind == StoreKind::Flush;
    // Nothing of DRAM becomes durable; but a flushed line leaves all caches.
    let written = if Medium::of(line) == Medium::Nvm { m.host.policy.fences == CoreFences::Wait } else { flush };
    if !written {
        m.record.counters.dropped_cleans += 1;
        return;
    }
    m.record.counters.cleans += 1;
    if Medium::of(line) == Medium::Nvm {
        m.record.note(m.program.clock.cycles(cycle), FactKind::WroteBack, hart.index, entry.pc, line);
    }
    let delay = m.program.until(cycle, m.cx);
    if m.cache.clean(hart.index, line, flush, delay, m.host, m.cx) {
        m.changed.push((line, None));
    }
}
