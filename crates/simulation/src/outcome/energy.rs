//! Energy of a run as plain data: what each kind of event came to.
//!
//! Invariants: parts add up to the total; a kind without an event stays in the list, so that it shows what is
//! counted. [`computed`](super::computed) makes it.

use serde::{Deserialize, Serialize};

/// Energy of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Kinds of events.
    pub events: Vec<EnergyPart>,
    /// What is not in it.
    pub left_out: String,
}

/// Energy of a kind of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyPart {
    /// Part of the machine: one of [`PARTS`].
    pub part: String,
    /// What happened there, in the plural.
    pub event: String,
    /// How often.
    pub count: u64,
    /// Energy of one, in pJ.
    pub each_pj: f64,
    /// Where that number comes from; "chosen..." for lack of a source.
    pub source: String,
}

impl EnergyPart {
    /// Energy of all, in nJ.
    pub fn nj(&self) -> f64 {
        self.count as f64 * self.each_pj / 1e3
    }
}

/// Parts of machines, from cores to memory, and what each is.
pub const PARTS: [(&str, &str); 10] = [
    ("cores", "CPU cores: instructions that retire"),
    ("registers", "register files of SMs"),
    ("shared", "shared memory of SMs"),
    ("l1", "L1 data caches"),
    ("crossbar", "the way between SMs and L2 slices"),
    ("l2", "L2 slices"),
    ("llc", "the shared cache of CPU cores"),
    ("bus", "data buses of the channels"),
    ("dram", "DRAM devices"),
    ("nvm", "NVM devices"),
];

impl Energy {
    /// Energy of a part, in nJ; 0 of one that the machine does not have.
    pub fn part_nj(&self, part: &str) -> f64 {
        self.events.iter().filter(|event| event.part == part).map(EnergyPart::nj).sum()
    }

    /// All of it, in nJ.
    pub fn nj(&self) -> f64 {
        self.events.iter().map(EnergyPart::nj).sum()
    }

    /// Its mean over a time, in W.
    pub fn watts(&self, ps: u64) -> f64 {
        self.nj() * 1e3 / ps.max(1) as f64
    }

    /// The share of it whose energy of an event has a source of its own.
    pub fn sourced_share(&self) -> f64 {
        let chosen = |event: &&EnergyPart| event.source.starts_with("chosen");
        let without: f64 = self.events.iter().filter(chosen).map(EnergyPart::nj).sum();
        1.0 - without / self.nj().max(f64::MIN_POSITIVE)
    }
}
