//! What a scheduler has of the memory pipeline for itself: places for instructions, and the computing of
//! their addresses.
//!
//! ```text
//! issue ──> a place of its scheduler ──addresses──┐
//!                                                 ├──requests──> L1, banks
//! issue ──> a place of another one ───addresses──┘
//! ```
//! A scheduler computes the addresses of an instruction in `interval.address_cycles`; a request of any holds
//! the load-store unit for `interval.request_cycles`. An instruction holds its place from its issue until
//! `latency.place_cycles` after its last request has left that unit. A scheduler without a free place issues
//! no memory instruction.
//!
//! Source: Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025),
//! section 5.4 and table 1, measured on an RTX A6000. Invariants: the load-store unit's entries have one turn
//! each, in the same order; a place is freed once. Not modelled: entries of several schedulers leave in the
//! order of their issue, so that one whose address is computed waits behind an older one whose is not;
//! addresses of uniform registers, which come sooner; registers that must not be overwritten before they are
//! read.

use std::collections::VecDeque;

use durawarp_checkpoint::{state, value};

use super::wiring::SmParameters;

/// Places and times of a machine.
#[derive(Debug, Clone, Copy)]
struct Pipeline {
    /// Memory instructions that a scheduler has places for. 0: they go to the load-store unit at once.
    entries: u32,
    /// Cycles that a scheduler computes addresses of an instruction for, before its next.
    address_cycles: u32,
    /// From an instruction's last request until its place is free.
    place_cycles: u32,
}

/// One scheduler's part.
#[derive(Debug, Default)]
struct AddressUnit {
    /// Places of instructions with requests in the load-store unit.
    queued: u32,
    /// When places are free whose requests have left, the earliest first.
    frees: VecDeque<u32>,
    /// Cycle from which it computes the next addresses.
    free_at: u32,
    /// Cycle from which it takes another instruction as far as its issue interval is concerned.
    after_interval: u32,
}

value!(record AddressUnit { queued, frees, free_at, after_interval });

impl AddressUnit {
    /// Places that are not free at `cycle`.
    fn held(&self, cycle: u32) -> usize {
        self.queued as usize + self.frees.iter().filter(|&&free| free > cycle).count()
    }
}

/// When an entry of the load-store unit may begin, and whose place it holds.
#[derive(Debug, Clone, Copy)]
struct Turn {
    from: u32,
    scheduler: Option<u8>,
}

value!(record Turn { from, scheduler });

/// The parts of all schedulers. Without places it does nothing.
#[derive(Debug)]
pub(super) struct AddressUnits {
    spec: Pipeline,
    units: Vec<AddressUnit>,
    /// Of each entry of the load-store unit.
    turns: VecDeque<Turn>,
    /// That of the instruction which issues.
    issuing: Option<Turn>,
    /// The scheduler that has got a place back, until it is told.
    opened: Option<u8>,
}

state!(AddressUnits { sized: units; saved: turns; kept: spec, issuing, opened });

impl AddressUnits {
    pub(super) fn new(p: &SmParameters) -> Self {
        let (entries, address_cycles) = (p.sm.memory_entries, p.interval.address_cycles);
        let place_cycles = p.latency.place_cycles;
        AddressUnits::of(Pipeline { entries, address_cycles, place_cycles }, p.sm.schedulers)
    }

    fn of(spec: Pipeline, schedulers: u32) -> Self {
        let schedulers = if spec.entries == 0 { 0 } else { schedulers };
        let units = (0..schedulers).map(|_| AddressUnit::default()).collect();
        AddressUnits { spec, units, turns: VecDeque::new(), issuing: None, opened: None }
    }

    /// The machine has places. Who asks that first spares the calls below, which do nothing without, and are
    /// calls: inline they would have their callers, part of each cycle, save all registers for nothing.
    #[inline]
    pub(super) fn is_present(&self) -> bool {
        !self.units.is_empty()
    }

    /// An instruction issues: entries from here to [`AddressUnits::issued`] are its.
    #[inline(never)]
    pub(super) fn issues(&mut self, scheduler: usize, cycle: u32) {
        if self.is_present() {
            let from = cycle.max(self.units[scheduler].free_at) + 1;
            self.issuing = Some(Turn { from, scheduler: Some(scheduler as u8) });
        }
    }

    /// It has issued; its scheduler's unit is free from `free_at` on. From when it takes another one.
    #[inline(never)]
    pub(super) fn issued(&mut self, scheduler: usize, cycle: u32, free_at: u32) -> u32 {
        if self.issuing.take().is_none() {
            return free_at;
        }
        self.units[scheduler].after_interval = free_at;
        self.opens_at(scheduler, cycle)
    }

    /// An entry goes to the load-store unit.
    #[inline(never)]
    pub(super) fn enter(&mut self) {
        if !self.is_present() {
            return;
        }
        let turn = self.issuing.unwrap_or(Turn { from: 0, scheduler: None });
        if let Some(scheduler) = turn.scheduler {
            let unit = &mut self.units[usize::from(scheduler)];
            unit.free_at = turn.from - 1 + self.spec.address_cycles;
            unit.queued += 1;
        }
        self.turns.push_back(turn);
    }

    /// Cycle from which the load-store unit's oldest entry may begin.
    #[inline]
    pub(super) fn next_from(&self) -> u32 {
        self.turns.front().map_or(0, |turn| turn.from)
    }

    /// The last request of the oldest entry has left.
    #[inline(never)]
    pub(super) fn leave(&mut self, cycle: u32) {
        self.opened = self.turns.pop_front().and_then(|turn| turn.scheduler);
        if let Some(scheduler) = self.opened {
            let unit = &mut self.units[usize::from(scheduler)];
            unit.queued -= 1;
            unit.frees.push_back(cycle + self.spec.place_cycles);
        }
    }

    /// A scheduler that gets a place back, and from when it takes another instruction.
    #[inline(never)]
    pub(super) fn opened(&mut self, cycle: u32) -> Option<(usize, u32)> {
        let scheduler = usize::from(self.opened.take()?);
        Some((scheduler, self.opens_at(scheduler, cycle)))
    }

    /// From when a scheduler takes another memory instruction, as far as is known: `u32::MAX` until a request
    /// has left.
    fn opens_at(&mut self, scheduler: usize, cycle: u32) -> u32 {
        let unit = &mut self.units[scheduler];
        while unit.frees.front().is_some_and(|&free| free <= cycle) {
            unit.frees.pop_front();
        }
        let free = match unit.held(cycle).checked_sub(self.spec.entries as usize) {
            None => 0,
            Some(over) => unit.frees.get(over).copied().unwrap_or(u32::MAX),
        };
        free.max(unit.after_interval)
    }

    /// All places of a scheduler are held at `cycle`, for what a warp waits for.
    #[inline]
    pub(super) fn is_full(&self, scheduler: usize, cycle: u32) -> bool {
        self.is_present() && self.holds_all(scheduler, cycle)
    }

    #[inline(never)]
    fn holds_all(&self, scheduler: usize, cycle: u32) -> bool {
        self.units[scheduler].held(cycle) >= self.spec.entries as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(schedulers: u32) -> AddressUnits {
        AddressUnits::of(Pipeline { entries: 5, address_cycles: 4, place_cycles: 10 }, schedulers)
    }

    /// Instructions of schedulers issue as early as they may; the load-store unit takes one every two cycles.
    fn issue_cycles(schedulers: u32, instructions: usize) -> Vec<Vec<u32>> {
        let mut units = units(schedulers);
        let mut issued = vec![Vec::new(); schedulers as usize];
        let mut opens = vec![2; schedulers as usize];
        let mut next_request = 0;
        for cycle in 2..200 {
            if !units.turns.is_empty() && next_request <= cycle && units.next_from() <= cycle {
                next_request = cycle + 2;
                units.leave(cycle);
                let (scheduler, at) = units.opened(cycle).unwrap();
                opens[scheduler] = at;
            }
            for scheduler in 0..schedulers as usize {
                if opens[scheduler] <= cycle && issued[scheduler].len() < instructions {
                    assert!(!units.is_full(scheduler, cycle));
                    units.issues(scheduler, cycle);
                    units.enter();
                    opens[scheduler] = units.issued(scheduler, cycle, cycle + 1);
                    issued[scheduler].push(cycle);
                }
            }
        }
        issued
    }

    /// Table 1 of Huerta et al., all of it: sub-cores by instructions.
    #[test]
    fn instructions_issue_in_the_cycles_that_were_measured() {
        let first = [2, 3, 4, 5, 6];
        for (schedulers, later) in [
            (1, [[13, 17, 21, 25].to_vec()].to_vec()),
            (2, [[13, 17, 21, 25].to_vec(), [15, 19, 23, 27].to_vec()].to_vec()),
            (3, (0..3).map(|nth| [13, 19, 25, 31].map(|cycle| cycle + 2 * nth).to_vec()).collect()),
            (4, (0..4).map(|nth| [13, 21, 29, 37].map(|cycle| cycle + 2 * nth).to_vec()).collect()),
        ] {
            let expected: Vec<Vec<u32>> = later.iter().map(|later| [&first[..], later].concat()).collect();
            assert_eq!(issue_cycles(schedulers, 9), expected, "{schedulers} sub-cores");
        }
    }

    #[test]
    fn without_places_nothing_waits() {
        let mut units = AddressUnits::of(Pipeline { entries: 0, address_cycles: 4, place_cycles: 10 }, 4);
        units.issues(0, 7);
        units.enter();
        units.leave(8);
        assert_eq!((units.issued(0, 7, 9), units.next_from(), units.opened(8)), (9, 0, None));
        assert!(!units.is_full(0, 7));
    }
}
