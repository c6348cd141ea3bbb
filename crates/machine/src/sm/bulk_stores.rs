//! Lines of bulk stores and reductions on their way to global memory: entries of the load-store unit, which
//! the scheme sees as those of a store, or an atomic, that the warp issues when the line leaves.
//!
//! Source: PTX ISA 9.7.9.25.5.4 and 5.6. Invariant: every request that follows from a line, a write-back that
//! a scheme adds included, bears its copy's number, so that a group is complete when all are. A warp does not
//! wait for a line, whatever its scheme has it do after a store: its next `wait_group` does.

use crate::coalescer::LineAccess;
use crate::msg::{Atomics, Payload, sectors_touched};
use durawarp_kernel::ir::{BulkKind, MemKind};
use durawarp_kernel::memory::Medium;
use durawarp_kernel::warp::SharedPiece;
use durawarp_persist::handler::SmEvent;
use durawarp_persist::vocab::StoreClass;

use super::bulk_copy::{BulkCopy, LinePart};
use super::core::IssueCore;
use super::front_end::FrontEndWaits;
use super::lsu::{Lsu, NO_LOAD, Work};
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::persist;

/// Sends a part of a copy from shared memory: how many requests are under way for it; none where the
/// load-store unit is full.
#[allow(clippy::too_many_arguments)]
pub(super) fn send_line(
    number: u16,
    copy: &BulkCopy,
    part: LinePart,
    core: &mut IssueCore,
    lsu: &mut Lsu,
    memory: &mut MemorySide,
    front_end: &FrontEndWaits,
    m: &mut Moment<'_>,
) -> Option<u32> {
    if !lsu.has_room() {
        return None;
    }
    let &BulkCopy { warp, lane, pc, bulk, .. } = copy;
    let slot = &mut core.slots[usize::from(warp)];
    let cta = &mut core.ctas[usize::from(slot.cta)];
    slot.order.fenced = slot.order.fenced.max(cta.fenced);
    // The line's bytes, which a swizzle has in several places.
    let mut bytes = [0; 128];
    for SharedPiece { from, shared, bytes: length } in copy.pieces(part.at, part.bytes) {
        if cta.writers.access(warp, MemKind::Load, std::iter::once(shared as u64), length as u32) {
            m.host.tell(&SmEvent::SharedRead { launch: slot.launch });
        }
        bytes[from..from + length].copy_from_slice(&cta.shared[shared..shared + length]);
    }
    let bytes = &bytes[..part.bytes as usize];
    let access = LineAccess { line: part.line, lanes: 1 << lane, sectors: sectors_touched(part.mask()) };
    // From here on entries bear the copy's number, and facts name its instruction, not the warp's next.
    lsu.begin_bulk(number);
    m.record.place = Some(pc);
    if bulk.kind == BulkKind::Store {
        let mut entry = lsu.entry(warp, Work::Send, NO_LOAD);
        let mut line = memory.port.line_pool.take();
        line.bytes[part.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        line.mask = part.mask();
        entry.past_l1 = true;
        entry.accesses.push(access);
        entry.payloads.push(Payload::Line(line));
        persist::send_stores(StoreClass::Data, entry, slot, lsu, memory, front_end, m);
    } else {
        let load = lsu.open_load(warp, pc, m.launch(slot).kernel.code[pc as usize], 1 << lane);
        let mut entry = lsu.entry(warp, Work::Send, load);
        let mut atomics: Box<Atomics> = lsu.spare_atomics.pop().unwrap_or_default();
        let size = bulk.elem.bytes() as usize;
        (atomics.op, atomics.elem, atomics.returns) = (bulk.atom, bulk.elem, front_end.present);
        (atomics.pairs, atomics.count) = (false, 0);
        for (number, element) in bytes.chunks_exact(size).enumerate() {
            let mut word = [0; 8];
            word[..size].copy_from_slice(element);
            atomics.push(lane, (part.offset as usize + number * size) as u8, (u64::from_le_bytes(word), 0));
        }
        m.record.counters.atomic_lanes += u64::from(atomics.count);
        entry.accesses.push(access);
        entry.payloads.push(Payload::Atomics(atomics));
        persist::send_atomics(entry, slot, lsu, front_end, m);
        slot.under_way.loads += 1;
    }
    // The warp has gone on: what its scheme has it wait for is a part of the copy.
    m.host.store_waits = false;
    m.record.place = None;
    Some(lsu.end_bulk())
}

/// A line has to wait until those before it are durable, as a store of its scheme would.
pub(super) fn waits_for_durable(copy: &BulkCopy, part: LinePart, core: &IssueCore, m: &Moment<'_>) -> bool {
    let under_way = core.slots[usize::from(copy.warp)].under_way;
    let idle = under_way.is_performed() && under_way.persists == 0;
    m.host.wants.stores_wait && Medium::of(part.line) == Medium::Nvm && !idle
}
