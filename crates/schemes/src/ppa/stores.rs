//! The handler in a core: registers that stores hold, and stores that are not durable.
//!
//! Invariants: a store is forgotten when a write-back that left after it is acknowledged, never before; at
//! most one write-back of a line is under way unless the line is asked for or a region ends; a hart's region
//! ends when it has no store that is not durable.

use std::collections::VecDeque;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::journal::{Author, FactKind};
use durawarp_persist::vocab::RegionEnd;
use durawarp_persist::{
    Admission, CoreEvent, CoreFences, CoreHandler, CoreOffer, CorePolicy, Handler, HandlerPlace, HandlerReport, Outbox,
    PathStore,
};

use super::parameters::{ARCHITECTURAL, PpaSpec};

/// Registers below this number are integers, those from it on floating-point.
const FIRST_FLOAT: u8 = 32;

fn kind_of(register: u8) -> usize {
    usize::from(register >= FIRST_FLOAT)
}

/// The region that a hart is in.
#[derive(Debug, Clone, Copy, Default)]
struct HartRegion {
    /// Registers that a store read which has retired, and which have not been overwritten.
    stored: u64,
    /// Physical registers of each kind that are held: overwritten, and a store read them.
    held: [u32; 2],
    instructions: u64,
    stores: u64,
}

value!(record HartRegion { stored, held, instructions, stores });

/// A store that is not durable, as far as the core knows.
#[derive(Debug, Clone, Copy)]
struct Pending {
    line: u64,
    hart: u8,
    /// The core's stores are numbered as they are performed, from 1.
    number: u64,
}

value!(record Pending { line, hart, number });

/// A line with stores that are not durable.
#[derive(Debug)]
struct PendingLine {
    line: u64,
    /// Write-backs under way: the last store that each has.
    under_way: VecDeque<u64>,
    /// A store has come since the last of them left.
    newer: bool,
}

value!(record PendingLine { line, under_way, newer });

#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    regions: u64,
    instructions: u64,
    stores: u64,
    ends: [u64; 4],
    wait_cycles: u64,
    write_backs: u64,
    write_back_cycles: u64,
    joined: u64,
    kept: u64,
}

value!(record Counters {
    regions, instructions, stores, ends, wait_cycles, write_backs, write_back_cycles, joined, kept,
});

/// What a core keeps of stores that are not durable.
#[derive(Debug)]
pub(super) struct CoreStores {
    core: u16,
    /// Physical registers of each kind beyond the program's own.
    spare: [u32; 2],
    regions: Vec<HartRegion>,
    pending: VecDeque<Pending>,
    lines: Vec<PendingLine>,
    /// Stores performed.
    performed: u64,
    counters: Counters,
}

state!(CoreStores { sized: regions; saved: pending, lines, performed, counters; kept: core, spare });

impl CoreStores {
    pub(super) fn new(spec: &PpaSpec, place: HandlerPlace) -> CoreStores {
        CoreStores {
            core: place.index,
            spare: [spec.prf_int, spec.prf_fp].map(|registers| registers - ARCHITECTURAL),
            regions: vec![HartRegion::default(); place.harts.max(1).into()],
            pending: VecDeque::new(),
            lines: Vec::new(),
            performed: 0,
            counters: Counters::default(),
        }
    }

    /// A physical register for an instruction that writes `register`, of whose kind so many are in flight.
    fn rename(&self, hart: u8, register: u8, in_flight: u32) -> Admission {
        let (kind, region) = (kind_of(register), &self.regions[usize::from(hart)]);
        match (in_flight + region.held[kind] < self.spare[kind], region.held[kind] > 0) {
            (true, _) => Admission::Goes,
            (false, true) => Admission::Waits,
            (false, false) => Admission::Held,
        }
    }

    /// An instruction retires: a store's registers are masked, and one that is overwritten is held.
    fn retire(&mut self, hart: u8, register: Option<u8>, stored: u64) {
        let region = &mut self.regions[usize::from(hart)];
        region.instructions += 1;
        region.stores += u64::from(stored != 0);
        region.stored |= stored;
        if let Some(register) = register
            && region.stored >> register & 1 == 1
        {
            region.stored &= !(1 << register);
            region.held[kind_of(register)] += 1;
        }
    }

    fn line(&mut self, line: u64) -> Option<usize> {
        self.lines.iter().position(|pending| pending.line == line)
    }

    fn write_back(&mut self, at: usize, outbox: &mut Outbox) {
        let (performed, pending) = (self.performed, &mut self.lines[at]);
        pending.under_way.push_back(performed);
        pending.newer = false;
        outbox.clean(pending.line);
        self.counters.write_backs += 1;
    }

    fn store(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) {
        self.performed += 1;
        self.pending.push_back(Pending { line: store.line, hart: store.by, number: self.performed });
        match self.line(store.line) {
            Some(at) => {
                self.lines[at].newer = true;
                self.counters.joined += 1;
            }
            None => {
                self.lines.push(PendingLine { line: store.line, under_way: VecDeque::new(), newer: false });
                self.write_back(self.lines.len() - 1, outbox);
            }
        }
    }

    /// The oldest write-back of a line is acknowledged: what it has is forgotten.
    fn acknowledge(&mut self, line: u64, cycles: u64, outbox: &mut Outbox) {
        self.counters.write_back_cycles += cycles;
        let Some(at) = self.line(line) else { unreachable!("line {line:#x} is written back for its stores") };
        let Some(last) = self.lines[at].under_way.pop_front() else {
            unreachable!("a write-back of line {line:#x} was under way")
        };
        self.pending.retain(|store| store.line != line || store.number > last);
        outbox.note_line(FactKind::Forgotten, line, Author::Core { core: self.core, stores: last as u32 });
        if !self.lines[at].under_way.is_empty() {
            return;
        }
        if self.lines[at].newer {
            self.write_back(at, outbox);
        } else {
            self.lines.swap_remove(at);
        }
    }

    /// A line is to leave the L1 for another core, or for lack of room: newer bytes are written back first.
    fn give_up(&mut self, line: u64, outbox: &mut Outbox) -> Admission {
        let Some(at) = self.line(line) else { return Admission::Goes };
        self.counters.kept += 1;
        if self.lines[at].newer {
            self.write_back(at, outbox);
        }
        Admission::Waits
    }

    /// All stores of a hart are acknowledged. Else those that wait for a write-back of their line leave now.
    fn is_durable(&mut self, hart: u8, outbox: &mut Outbox) -> Admission {
        if self.pending.iter().all(|store| store.hart != hart) {
            return Admission::Goes;
        }
        for at in 0..self.lines.len() {
            let PendingLine { line, newer, .. } = self.lines[at];
            if newer && self.pending.iter().any(|store| store.hart == hart && store.line == line) {
                self.write_back(at, outbox);
            }
        }
        Admission::Waits
    }

    fn end_region(&mut self, hart: u8, reason: RegionEnd, waited: u64) {
        let region = std::mem::take(&mut self.regions[usize::from(hart)]);
        self.counters.wait_cycles += waited;
        if region.instructions > 0 {
            self.counters.regions += 1;
            self.counters.instructions += region.instructions;
            self.counters.stores += region.stores;
            self.counters.ends[reason as usize] += 1;
        }
    }
}

impl Handler for CoreStores {
    state_methods!();

    fn report(&self, report: &mut HandlerReport) {
        let counters = self.counters;
        for (name, count) in [
            ("regions", counters.regions),
            ("region_instructions", counters.instructions),
            ("region_stores", counters.stores),
            ("register_region_ends", counters.ends[RegionEnd::Registers as usize]),
            ("atomic_region_ends", counters.ends[RegionEnd::Atomic as usize]),
            ("fence_region_ends", counters.ends[RegionEnd::Fence as usize]),
            ("call_region_ends", counters.ends[RegionEnd::Call as usize]),
            ("region_wait_cycles", counters.wait_cycles),
            ("store_write_backs", counters.write_backs),
            ("write_back_cycles", counters.write_back_cycles),
            ("joined_stores", counters.joined),
            ("kept_lines", counters.kept),
        ] {
            report.count(name, count);
        }
        if let Some(oldest) = self.pending.front() {
            let what = format!("a write-back of line {:#x}", oldest.line);
            report.waits.push((format!("stores of core {} that are not durable", self.core), what));
        }
    }
}

impl CoreHandler for CoreStores {
    fn policy(&self) -> CorePolicy {
        CorePolicy { fences: CoreFences::Pass, renaming: true, ..CorePolicy::default() }
    }

    fn offer(&mut self, offer: &CoreOffer, outbox: &mut Outbox) -> Admission {
        match *offer {
            CoreOffer::Rename { hart, register, in_flight } => self.rename(hart, register, in_flight),
            CoreOffer::Durable(hart) => self.is_durable(hart, outbox),
            CoreOffer::GiveUp(line) => self.give_up(line, outbox),
            CoreOffer::Issue(_) | CoreOffer::Victim(_) => Admission::Goes,
        }
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        match *event {
            CoreEvent::Retired { hart, register, stored } => self.retire(hart, register, stored),
            CoreEvent::Stored(store) => self.store(store, outbox),
            // What it wrote is in a register that no instruction names.
            CoreEvent::AtomicPerformed(hart) => self.regions[usize::from(hart)].held[0] += 1,
            CoreEvent::WrittenBack { line, cycles } => self.acknowledge(line, cycles, outbox),
            CoreEvent::RegionPersisted { hart, reason, waited } => self.end_region(hart, reason, waited),
            CoreEvent::AwaitsIssue { .. }
            | CoreEvent::StoredVolatile { .. }
            | CoreEvent::Observed { .. }
            | CoreEvent::Fenced(_)
            | CoreEvent::Given(_)
            | CoreEvent::Taken { .. }
            | CoreEvent::ThreadBegun
            | CoreEvent::RegionEnds { .. } => {}
        }
    }
}
