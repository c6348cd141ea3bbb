//! What a core records of its harts on request: slots lost by instruction, and what each hart did when.
//! The model reads none of it.
//!
//! Invariants: used and lost slots by hart and place sum to the accounts of [`super::CoreCounters`]; places
//! are instructions of the program, so that there are at most as many as it has, times harts and causes.

use std::collections::BTreeMap;

use durawarp_base::timeline::{Growth, Label, Recorder};
use durawarp_engine::Time;

use super::cause::Lost;
use super::spinning::Spinning;
use super::window::{Retires, Window};

/// What a hart does, for a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Runs,
    WaitsForMemory,
    DurableFence,
    Call,
    WaitsForFutex,
    WaitsInCall,
}

impl Doing {
    fn name(self) -> &'static str {
        match self {
            Doing::Runs => "running",
            Doing::WaitsForMemory => "memory",
            Doing::DurableFence => "durable fence",
            Doing::Call => "in a call",
            Doing::WaitsForFutex => "waits for a futex",
            Doing::WaitsInCall => "waits in a call",
        }
    }
}

/// Dispatch slots of a core by hart, cause and instruction.
#[derive(Debug, Clone, Default)]
pub struct SlotPlaces {
    /// By hart of the core.
    used: Vec<u64>,
    lost: BTreeMap<Lost, u64>,
    /// By hart of the core.
    spinning: Vec<Spinning>,
}

/// Slots lost at one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostSlots {
    /// Hart of the core.
    pub hart: u8,
    /// What the slots were lost to, as the counters name it without `_slots`.
    pub cause: &'static str,
    /// Address of the instruction; 0 of a hart without a thread.
    pub pc: u64,
    /// How many.
    pub slots: u64,
}

impl SlotPlaces {
    fn spinning_of(&mut self, hart: u8) -> &mut Spinning {
        let hart = usize::from(hart);
        self.spinning.resize_with(self.spinning.len().max(hart + 1), Spinning::default);
        &mut self.spinning[hart]
    }

    /// Slots in which instructions were dispatched, by hart of the core.
    pub fn used(&self) -> impl Iterator<Item = u64> {
        self.used.iter().copied()
    }

    /// Cycles of a hart of the core in turns of loops that changed nothing.
    pub fn spun_cycles(&self, hart: usize) -> u64 {
        self.spinning.get(hart).map_or(0, Spinning::cycles)
    }

    /// Lost slots, by cause, hart and address.
    pub fn lost(&self) -> impl Iterator<Item = LostSlots> {
        self.lost.iter().map(|(&Lost { cause, hart, pc }, &slots)| LostSlots { hart, cause: cause.name(), pc, slots })
    }
}

/// What harts did when, a lane a hart. Runs and waits take turns: a recorder that keeps every second span of
/// both would keep one kind alone.
#[derive(Debug)]
pub struct HartTimeline {
    /// From the first instruction that is dispatched after a wait until the next wait.
    pub runs: Recorder,
    /// Waits for memory, for durability, and in calls.
    pub waits: Recorder,
    /// Three counts of instructions, three of slots: see [`super::Core::growth`].
    pub growth: Growth,
}

impl HartTimeline {
    /// An empty one of at most `spans` spans of each kind.
    pub(super) fn new(spans: usize) -> HartTimeline {
        HartTimeline { runs: Recorder::new(spans), waits: Recorder::new(spans), growth: Growth::new(3, 3) }
    }
}

/// What is noted.
#[derive(Debug, Default)]
pub(super) struct CoreWatch {
    pub(super) places: Option<SlotPlaces>,
    pub(super) timeline: Option<HartTimeline>,
    /// By hart: what it does in the span under way.
    states: Vec<Option<Doing>>,
}

impl CoreWatch {
    /// Slots are lost.
    pub(super) fn lose(&mut self, lost: Lost, slots: u64) {
        if let Some(places) = self.places.as_mut().filter(|_| slots > 0) {
            *places.lost.entry(lost).or_default() += slots;
        }
    }

    /// An instruction of a hart has retired.
    pub(super) fn retired(&mut self, hart: u8, window: &Window, number: u64, retires: Retires, cycle: u64) {
        if let Some(places) = &mut self.places {
            places.spinning_of(hart).retired(window, number, retires, cycle);
        }
    }

    /// An atomic of a hart has changed a value.
    pub(super) fn changed(&mut self, hart: u8) {
        if let Some(places) = &mut self.places {
            places.spinning_of(hart).changed();
        }
    }

    /// A hart has used slots in the cycle that begins at `time`, and is doing something at an instruction; a
    /// hart without a thread is doing nothing.
    pub(super) fn step(&mut self, hart: u8, used: u32, doing: Option<(Doing, u64)>, time: Time) {
        let lane = usize::from(hart);
        if let Some(places) = &mut self.places {
            places.used.resize(places.used.len().max(lane + 1), 0);
            places.used[lane] += u64::from(used);
        }
        let Some(timeline) = &mut self.timeline else { return };
        self.states.resize(self.states.len().max(lane + 1), None);
        let what = doing.map(|(what, _)| what);
        if self.states[lane] != what {
            self.states[lane] = what;
            timeline.runs.end(lane, time);
            timeline.waits.end(lane, time);
            if let Some((what, pc)) = doing {
                let kind = if what == Doing::Runs { &mut timeline.runs } else { &mut timeline.waits };
                kind.begin(lane, time, Label::Hart { what: what.name(), pc });
            }
        }
    }
}
