//! Wear of the NVM of a run as plain data. [`computed`](super::computed) makes it.

use serde::{Deserialize, Serialize};

/// Wear of the NVM of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wear {
    /// Lines written to cells.
    pub writes: u64,
    /// Banks of NVM, of all controllers.
    pub banks: u64,
    /// The most writes of a bank.
    pub most_of_a_bank: u64,
    /// Its controller, and its number there.
    pub worst_bank: (u64, u64),
    pub line_bytes: u64,
    /// How long the devices last; `None` where cells bear any number of writes, or the run took no time.
    pub lifetimes: Option<Lifetimes>,
}

/// How long NVM lasts if the run is repeated for ever, in years.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lifetimes {
    /// Without levelling; `None` where writes were not counted by line.
    pub unlevelled_years: Option<f64>,
    /// With ideal levelling within each bank.
    pub levelled_in_banks_years: f64,
    /// With ideal levelling over all of NVM.
    pub levelled_years: f64,
}

impl Wear {
    /// Writes of the bank that was written most over the mean of all banks.
    pub fn bank_imbalance(&self) -> f64 {
        self.most_of_a_bank as f64 * self.banks as f64 / self.writes.max(1) as f64
    }
}
