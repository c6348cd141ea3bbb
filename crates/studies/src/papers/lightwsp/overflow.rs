//! Pressure on the gated WPQs by their size: stores that wait for room, and overflows (section V-F5), over
//! all together.
//!
//! The paper counts "overflows per 10000 instructions" and does not say what one is: a store, or an episode
//! of the fallback (section IV-D). The rate here is of episodes, each at one controller, over warp
//! instructions of the formed kernels; stores that went to memory in one stand beside it. Bytes are of data,
//! as in the paper, without tags.

use super::counts::{parameter, scheme_count};
use super::runs::Variant;
use crate::papers::{Cell, FigureTable, Request, Runs};
use durawarp_simulation::outcome::{Outcome, ratio};

/// What the columns mean.
pub(crate) const MEANING: &str = "an episode of overflow is a fallback at one controller: no store of another region is let in \
     until the oldest region's boundary has come; what it writes meanwhile, with an undo log, has overflowed; a store waits \
     where its WPQ has no room when it comes";

/// How sizes compare with the paper's.
pub(super) const BYTES: &str = "an entry of the port is a coalesced access of a warp, of the paper's WPQ 8 bytes: 64 entries are \
     512 B there; a WPQ of as many entries as the paper's is larger in bytes by what an entry is";

/// What the runs of a variant asked of their WPQs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pressure {
    /// Of which runs.
    name: String,
    /// Entries of a controller's WPQ.
    pub(crate) entries: Option<u64>,
    /// Bytes of these.
    bytes: Option<u64>,
    instructions: u64,
    /// Line accesses that were copied onto the persist path.
    stores: u64,
    /// Stores that found no room.
    pub(crate) waited: u64,
    overflowed: u64,
    episodes: u64,
}

impl Pressure {
    /// Of the kernels that were run.
    pub(super) fn of(request: &Request, runs: &Runs<'_>, variant: &Variant) -> Pressure {
        let outcomes = request.kernels.iter().filter_map(|&kernel| runs.outcome(&variant.run(kernel)));
        Pressure::over(&variant.name, outcomes)
    }

    /// Of these runs.
    pub(crate) fn over<'o>(name: &str, outcomes: impl Iterator<Item = &'o Outcome>) -> Pressure {
        let mut sum = Pressure { name: name.to_owned(), ..Pressure::default() };
        outcomes.for_each(|outcome| sum.add(outcome));
        sum
    }

    fn add(&mut self, outcome: &Outcome) {
        let count = |name: &str| scheme_count(outcome, name).unwrap_or_default();
        self.entries = parameter(outcome, "wpq_entries").map(|entries| entries as u64);
        let entry = parameter(outcome, "entry_bytes").map(|bytes| bytes as u64);
        self.bytes = self.entries.zip(entry).map(|(entries, entry)| entries * entry);
        self.instructions += outcome.warp_instructions();
        self.stores += count("feb_stores");
        self.waited += count("wpq_full_stores");
        self.overflowed += count("wpq_spilled_stores");
        self.episodes += count("wpq_overflows");
    }

    /// Episodes by 10,000 warp instructions; none where nothing was run.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.instructions > 0).then(|| ratio(self.episodes, self.instructions) * 1e4)
    }

    fn row(&self) -> Vec<Cell> {
        let share = |part: u64| (self.stores > 0).then(|| ratio(part, self.stores) * 100.0);
        vec![
            Cell::from(self.name.as_str()),
            Cell::count(self.bytes),
            Cell::Count(self.stores),
            Cell::Count(self.waited),
            Cell::number(share(self.waited)),
            Cell::Count(self.overflowed),
            Cell::number(share(self.overflowed)),
            Cell::Count(self.episodes),
            Cell::number(self.rate()),
        ]
    }
}

/// A row a size.
pub(crate) fn table(name: &str, pressures: &[Pressure]) -> FigureTable {
    let columns = [
        "gated WPQ",
        "bytes a controller",
        "stores",
        "waited for room",
        "% of stores",
        "overflowed",
        "% of stores ",
        "episodes",
        "episodes per 10,000 instructions",
    ];
    let mut table = FigureTable::new(name, "stores that waited for a gated WPQ, and overflows, all together", &columns);
    pressures.iter().for_each(|pressure| table.push(pressure.row()));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_simulation::outcome::sample::under;

    #[test]
    fn rates_are_of_all_kernels_together_and_bytes_of_all_entries() {
        let mut outcome = under("light-wsp", 1_000);
        let counts = [("feb_stores", 400), ("wpq_full_stores", 30), ("wpq_spilled_stores", 10), ("wpq_overflows", 5)];
        outcome.scheme_counters = counts.map(|(name, count)| (name.to_owned(), count)).into();
        for (name, value) in [("wpq_entries", 64), ("entry_bytes", 128)] {
            let value = durawarp_simulation::outcome::Parameter { value: value.into(), source: String::new() };
            outcome.scheme_parameters.insert(format!("light_wsp.{name}"), value);
        }
        let mut sum = Pressure::default();
        assert_eq!((sum.rate(), sum.row()[8].clone()), (None, Cell::None));
        sum.add(&outcome);
        sum.add(&outcome);
        // 25,000 warp instructions each.
        assert_eq!((sum.rate(), sum.bytes), (Some(2.0), Some(8192)));
        let numbers = [Cell::Count(60), Cell::Number(7.5, 3), Cell::Count(20), Cell::Number(2.5, 3), Cell::Count(10)];
        assert_eq!(sum.row()[3..8], numbers);
    }
}
