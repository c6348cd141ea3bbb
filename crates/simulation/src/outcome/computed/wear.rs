//! Wear of NVM: writes to cells by bank and by line, and how long the devices last if the run is repeated for
//! ever.
//!
//! ```text
//!   lifetime = endurance x time of the run / writes of the cells that are written most in it
//! ```
//! | levelling | writes of a cell in a run |
//! |---|---|
//! | none | those of the line that was written most |
//! | ideal, within each bank | those of the bank that was written most, over the lines of a bank |
//! | ideal, over all of NVM | all, over all lines |
//!
//! A pure function of an outcome. Source: endurance and size are parameters (`nvm.endurance_writes`,
//! `nvm.capacity_gb`); the formula is that of Lee et al., ISCA 2009. Not modelled: writes that levelling
//! itself adds, cells that differ, spare lines.

use std::cmp::Reverse;

use crate::outcome::{Lifetimes, Outcome, Wear};

const SECONDS_A_YEAR: f64 = 365.25 * 86_400.0;

/// Wear of a run; `None` where no cell of NVM was written, and where that was not counted.
pub(super) fn of(outcome: &Outcome) -> Option<Wear> {
    let devices = outcome.devices.as_ref()?;
    let banks = (0..).zip(&devices.nvm_bank_writes);
    let banks =
        banks.flat_map(|(controller, banks)| (0..).zip(banks).map(move |(bank, &writes)| ((controller, bank), writes)));
    let writes: u64 = banks.clone().map(|(_, writes)| writes).sum();
    // Of several banks the first.
    let (worst_bank, most_of_a_bank) = banks.clone().min_by_key(|&(_, writes)| Reverse(writes))?;
    if writes == 0 {
        return None;
    }
    let line_bytes = outcome.parameter("l2.line_bytes").map_or(64, |bytes| bytes as u64);
    let count = banks.count() as u64;
    let lifetimes = lifetimes(outcome, writes, (most_of_a_bank, count), line_bytes);
    Some(Wear { writes, banks: count, most_of_a_bank, worst_bank, line_bytes, lifetimes })
}

fn lifetimes(outcome: &Outcome, writes: u64, (of_a_bank, banks): (u64, u64), line_bytes: u64) -> Option<Lifetimes> {
    let devices = outcome.devices.as_ref()?;
    let endurance = outcome.parameter("nvm.endurance_writes").filter(|writes| *writes > 0.0)?;
    let channel_bytes = outcome.parameter("nvm.capacity_gb")? * f64::from(1 << 30);
    let lines = channel_bytes * devices.nvm_bank_writes.len() as f64 / line_bytes as f64;
    let seconds = outcome.time.ps as f64 * 1e-12;
    let years = |writes_of_a_cell: f64| endurance * seconds / writes_of_a_cell / SECONDS_A_YEAR;
    (seconds > 0.0).then(|| Lifetimes {
        unlevelled_years: devices.nvm_lines.as_ref().map(|lines| years(lines.most as f64)),
        levelled_in_banks_years: years(of_a_bank as f64 * banks as f64 / lines),
        levelled_years: years(writes as f64 / lines),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outcome::sample::sample;
    use crate::outcome::{Devices, Duration, LineWrites, Parameter};

    /// A run of 1 s on two controllers of two banks, with 1 GB each.
    fn with_wear(endurance: u64) -> Outcome {
        let mut outcome = sample();
        for (key, value) in [("nvm.endurance_writes", endurance), ("nvm.capacity_gb", 1), ("l2.line_bytes", 128)] {
            let parameter = Parameter { value: json!(value), source: "a paper".to_owned() };
            outcome.machine.parameters.insert(key.to_owned(), parameter);
        }
        let nvm_bank_writes = vec![vec![10, 40], vec![40, 0]];
        let nvm_lines = Some(LineWrites::of([(0, 30), (128, 60)]));
        let of = Devices { dram_activates: 0, nvm_activates: 0, nvm_cell_bytes: 0, nvm_bank_writes, nvm_lines };
        let time = Duration { ps: 1_000_000_000_000, ..outcome.time };
        Outcome { devices: Some(of), time, ..outcome }
    }

    #[test]
    fn lifetimes_are_those_of_the_cells_that_are_written_most() {
        let wear = of(&with_wear(100_000_000)).unwrap();
        assert_eq!((wear.writes, wear.banks, wear.most_of_a_bank, wear.worst_bank), (90, 4, 40, (0, 1)));
        assert!((wear.bank_imbalance() - 40.0 / 22.5).abs() < 1e-9);
        let years = wear.lifetimes.unwrap();
        let close = |found: f64, seconds: f64| (found * SECONDS_A_YEAR / seconds - 1.0).abs() < 1e-9;
        // 60 writes a second to the worst line: 1e8 / 60 s.
        assert!(close(years.unlevelled_years.unwrap(), 1e8 / 60.0));
        // 16 Mi lines: 4 Mi in each bank.
        assert!(close(years.levelled_in_banks_years, 1e8 * 4_194_304.0 / 40.0));
        assert!(close(years.levelled_years, 1e8 * 16_777_216.0 / 90.0));
    }

    #[test]
    fn lines_of_cores_are_of_64_bytes() {
        let mut outcome = with_wear(100_000_000);
        outcome.machine.parameters.remove("l2.line_bytes");
        let wear = of(&outcome).unwrap();
        assert_eq!(wear.line_bytes, 64);
        // 32 Mi lines of the 2 GB: half the writes a cell.
        let years = wear.lifetimes.unwrap().levelled_years;
        assert!((years * SECONDS_A_YEAR / (1e8 * 33_554_432.0 / 90.0) - 1.0).abs() < 1e-9, "{years}");
    }

    #[test]
    fn cells_without_a_bound_have_no_lifetime_and_nothing_written_is_no_wear() {
        assert_eq!(of(&with_wear(0)).unwrap().lifetimes, None);
        assert_eq!(of(&sample()), None);
        let mut unwritten = with_wear(1);
        unwritten.devices.as_mut().unwrap().nvm_bank_writes = vec![vec![0, 0]];
        assert_eq!(of(&unwritten), None);
    }
}
