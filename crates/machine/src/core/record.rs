//! What a core keeps about a run: counters, the accounts of its dispatch slots, its journal, what is watched.

use crate::coherence::CPU_LINE_BYTES;
use durawarp_checkpoint::state;
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;
use durawarp_persist::journal::{Author, FactKind, Notebook};

use super::cause::{Cause, Lost};
use super::counters::CoreCounters;
use super::l1d::line_of;
use super::marks::Marks;
use super::watch::CoreWatch;

/// Counters and journal of a core.
#[derive(Debug)]
pub(super) struct CoreRecord {
    pub(super) counters: CoreCounters,
    pub(super) journal: Option<Notebook>,
    pub(super) watch: Option<Box<CoreWatch>>,
    /// The journal has the retirement of stores, too.
    pub(super) notes_retirement: bool,
    /// Stores and atomics performed to persistent memory that are in the journal.
    pub(super) performed: u64,
    pub(super) marks: Marks,
    width: u64,
    core: u16,
    /// The latest time of what is in the journal.
    noted: Time,
    /// First cycle that is in no account.
    next: u64,
    /// Why nothing is dispatched since then.
    lost: Lost,
}

state!(CoreRecord {
    saved: counters, performed, noted, next, lost; kept: journal, watch, marks, notes_retirement, width,
    core
});

impl CoreRecord {
    pub(super) fn new(width: u32, core: u16, journal: bool) -> CoreRecord {
        let journal = journal.then(Notebook::default);
        CoreRecord {
            counters: CoreCounters::default(),
            journal,
            watch: None,
            notes_retirement: false,
            performed: 0,
            marks: Marks::new(&[]),
            width: width.into(),
            core,
            noted: 0,
            next: 0,
            lost: Lost::idle(0),
        }
    }

    fn lose(&mut self, lost: Lost, slots: u64) {
        if let Some(watch) = &mut self.watch {
            watch.lose(lost, slots);
        }
        let counters = &mut self.counters;
        *match lost.cause {
            Cause::Memory => &mut counters.memory_slots,
            Cause::Execution => &mut counters.execution_slots,
            Cause::Stores => &mut counters.store_slots,
            Cause::Redirect => &mut counters.redirect_slots,
            Cause::Atomic => &mut counters.atomic_slots,
            Cause::Fence => &mut counters.fence_slots,
            Cause::Persist => &mut counters.persist_slots,
            Cause::Call => &mut counters.call_slots,
            Cause::Idle => &mut counters.idle_slots,
        } += slots;
    }

    /// Accounts for every cycle before this one, in which nothing was dispatched.
    #[inline]
    pub(super) fn idle_until(&mut self, cycle: u64) {
        if cycle > self.next {
            let cycles = cycle - self.next;
            self.lose(self.lost, cycles * self.width);
            self.counters.cycles += cycles;
            self.next = cycle;
        }
    }

    /// Accounts for a cycle: slots that were used, and why not the others, if any.
    #[inline]
    pub(super) fn cycle(&mut self, cycle: u64, used: u32, lost: Option<Lost>) {
        self.idle_until(cycle);
        self.counters.cycles += 1;
        self.counters.used_slots += u64::from(used);
        self.next = cycle + 1;
        if let Some(lost) = lost {
            self.lost = lost;
            self.lose(lost, self.width - u64::from(used));
        }
    }

    /// An author of this core.
    pub(super) fn author(&self, hart: u8, pc: u64) -> Author {
        Author::Hart { core: self.core, hart, pc: pc as u32 }
    }

    /// Notes that a store was performed, if it was to persistent memory.
    #[inline]
    pub(super) fn performed(&mut self, time: Time, hart: u8, pc: u64, address: u64, width: usize, value: u64) {
        if self.journal.is_some() && Medium::of(address) == Medium::Nvm {
            self.performed += 1;
            let author = self.author(hart, pc);
            self.note_store(&[FactKind::Stored, FactKind::Performed], time, author, (address, width), value);
        }
    }

    /// Notes that a store has retired, where that is noted and it is to persistent memory.
    #[inline]
    pub(super) fn retired(&mut self, time: Time, hart: u8, pc: u64, address: u64, width: usize, value: u64) {
        if self.notes_retirement && Medium::of(address) == Medium::Nvm {
            let author = self.author(hart, pc);
            self.note_store(&[FactKind::Retired], time, author, (address, width), value);
        }
    }

    /// Notes facts about bytes of one line.
    fn note_store(
        &mut self,
        kinds: &[FactKind],
        time: Time,
        author: Author,
        (address, width): (u64, usize),
        value: u64,
    ) {
        self.noted = self.noted.max(time);
        // At the end of a process an event may lie before cycles that were executed ahead: the order of a
        // hart's stores is that of events.
        let time = if self.notes_retirement { self.noted } else { time };
        let Some(journal) = &mut self.journal else { return };
        let offset = (address % CPU_LINE_BYTES) as usize;
        let mut bytes = [0; 128];
        bytes[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
        let mask = ((1u128 << width) - 1) << offset;
        for &kind in kinds {
            journal.note_data(time, kind, line_of(address), mask, author, &bytes);
        }
    }

    /// Notes that a hart loaded bytes of a line. Stores of this event may lie ahead: the load comes after
    /// them.
    pub(super) fn observed(&mut self, time: Time, hart: u8, line: u64) {
        self.note(time.max(self.noted), FactKind::Observed, hart, 0, line);
    }

    /// Notes something else that a hart did, about a line of persistent memory, or about none.
    pub(super) fn note(&mut self, time: Time, kind: FactKind, hart: u8, pc: u64, line: u64) {
        let author = self.author(hart, pc);
        self.noted = self.noted.max(time);
        if let Some(journal) = &mut self.journal {
            journal.note(time, kind, line, author);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::watch::SlotPlaces;

    #[test]
    fn every_slot_of_every_cycle_is_in_one_account() {
        let mut record = CoreRecord::new(4, 0, false);
        let lost = |cause, pc| Some(Lost { cause, hart: 0, pc });
        record.watch.get_or_insert_default().places = Some(SlotPlaces::default());
        record.cycle(2, 3, lost(Cause::Memory, 64));
        record.cycle(3, 4, None);
        record.cycle(9, 0, lost(Cause::Redirect, 72));
        record.idle_until(11);
        let c = record.counters;
        assert_eq!((c.cycles, c.used_slots, c.idle_slots), (11, 7, 8));
        assert_eq!((c.memory_slots, c.redirect_slots), (1 + 5 * 4, 4 + 4));
        // The same by place: what comes in cycles without an event is lost where the last one was.
        let places = record.watch.unwrap_or_default().places.unwrap_or_default();
        let places: Vec<_> = places.lost().map(|lost| (lost.cause, lost.pc, lost.slots)).collect();
        assert_eq!(places, [("memory", 64, 21), ("redirect", 72, 8), ("idle", 0, 8)]);
    }
}
