//! Where the dispatch slots of a program of CPUs went, as plain data. Causes are the counters of cores
//! without `_slots`: "memory", "persist".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Dispatch slots by hart, function and instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPlaces {
    /// By hart of cores that ran instructions: all slots of these. One that several harts of a core lost is
    /// one hart's.
    pub harts: Vec<HartSlots>,
    /// Functions at which most were lost, the most first. A hart without a thread is at none.
    pub functions: Vec<FunctionSlots>,
    /// Instructions at which most were lost to one cause, the most first.
    pub places: Vec<PlaceSlots>,
    /// Functions and pairs of instruction and cause that are not in these lists.
    pub left_out: (u64, u64),
}

/// Dispatch slots of a hart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartSlots {
    /// Hart of the machine.
    pub hart: u32,
    pub core: u32,
    /// Slots in which instructions were dispatched.
    pub used: u64,
    /// Slots lost, by cause.
    pub lost: BTreeMap<String, u64>,
    /// Cycles in turns of loops that changed neither a register nor memory: the hart waits for a word.
    #[serde(default)]
    pub spinning_cycles: u64,
}

/// Slots lost at the instructions of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSlots {
    /// Its symbol, or the address of an instruction without one.
    pub function: String,
    /// Slots, by cause.
    pub lost: BTreeMap<String, u64>,
}

impl FunctionSlots {
    /// Slots lost to all causes but idleness.
    pub fn total(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// Slots lost at an instruction to a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceSlots {
    /// Its address.
    pub pc: u64,
    /// Symbol and offset, or its address.
    pub place: String,
    pub cause: String,
    /// Slots of all harts.
    pub slots: u64,
}
