//! What a run repeats that does not get on: plain data, and the lines that tell it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A run in which all that runs only repeats itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// Core cycle since which nothing has changed a value, at the latest.
    pub since: u64,
    /// Who repeats what: harts one by one, warps in groups.
    pub repeating: Vec<Repeating>,
    /// Who waits beside them, and for what.
    pub waits: Vec<String>,
}

/// A hart, or warps, that repeat a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Repeating {
    /// "hart 3 (thread 4)"; "64 warps of 2 CTAs of kernel `k`".
    pub who: String,
    /// How many harts or warps.
    pub count: u64,
    /// From the first instruction of the loop to its last, in words: functions, or places of the PTX text.
    pub place: String,
    /// Program counters of the two: addresses, or numbers of instructions of the kernel.
    pub pcs: [u64; 2],
    /// What reads the word that it waits for: a mnemonic, or load or atomic. Empty where nothing is read.
    pub instruction: String,
    /// The address of that word; of several harts or warps with different ones, the least.
    pub address: Option<u64>,
    /// The object or buffer that it lies in.
    pub object: String,
    pub value: Option<u64>,
    /// Failed `sc` of its core so far.
    pub failed_conditionals: u64,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl Repeats {
    /// These, where nothing has changed a value since a cycle.
    pub fn new(since: u64, repeating: Vec<Repeating>, waits: Vec<String>) -> Repeats {
        Repeats { since, repeating, waits }
    }

    /// A line each.
    pub fn lines(&self) -> Vec<String> {
        self.repeating.iter().map(Repeating::to_string).chain(self.waits.iter().cloned()).collect()
    }
}

impl fmt::Display for Repeating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.count == 1 { "repeats" } else { "repeat" };
        write!(f, "{} {verb} {}", self.who, self.place)?;
        match (self.value, self.address) {
            (Some(value), Some(_)) => write!(f, ": {} reads {value} from {}", self.instruction, self.object)?,
            _ => write!(f, ": it reads nothing")?,
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}
