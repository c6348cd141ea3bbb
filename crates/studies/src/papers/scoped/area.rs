//! Section 7.2.5: area of the NVW-FIFOs, a published constant, and the energy of the accesses that the runs
//! counted.
//!
//! Area and energy an access are the published constants, whatever the machine and the FIFOs' sizes are; they
//! hold for 16 and 64 entries at 45 nm.

use super::runs::{self, BarrierScope, SCHEMES};
use super::times::tree_mb;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_persist::HandlerPlace;
use durawarp_persist::storage::StorageCost;
use durawarp_simulation::config::SchemeConfig;
use durawarp_simulation::outcome::Outcome;

/// What the paper publishes of the FIFOs of the L1s and of the L2, as the scheme has it.
fn costs() -> Vec<StorageCost> {
    let scheme = SchemeConfig::load(SCHEMES[0], &[]).ok();
    scheme.map_or_else(Vec::new, |scheme| {
        scheme.built.storage(HandlerPlace { sms: 4, slices: 1, ..HandlerPlace::default() })
    })
}

/// Energy of a run's accesses to a FIFO, in pJ.
fn energy_pj(outcome: &Outcome, cost: &StorageCost) -> f64 {
    let count = |what: &str| {
        let name = format!("{}_{what}_entries", cost.name);
        outcome.scheme_counters.get(&name).copied().unwrap_or(0) as f64
    };
    count("read") * cost.read_pj + count("written") * cost.write_pj
}

/// The constants that energies are made of: level, quantity, value.
fn constants(costs: &[StorageCost]) -> Vec<(String, &'static str, f64)> {
    let of = |cost: &StorageCost| {
        let level = cost.name.to_uppercase();
        let entries = f64::from(cost.built.1);
        [("entries", entries), ("area_um2", cost.area_um2), ("read_pj", cost.read_pj), ("write_pj", cost.write_pj)]
            .map(|(quantity, value)| (level.clone(), quantity, value))
    };
    costs.iter().flat_map(of).collect()
}

/// Area and energy.
pub(super) fn area(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut sizes = FigureTable::new(
        "area",
        "published constants that the energies below are made of",
        &["FIFO of", "quantity", "published"],
    );
    let costs = costs();
    for (level, quantity, value) in constants(&costs) {
        sizes.push(vec![Cell::from(level.as_str()), Cell::from(quantity), Cell::Number(value, 2)]);
    }
    let total: f64 = costs.iter().map(|cost| f64::from(cost.built.0) * cost.area_um2).sum();

    // Two tables: what is published above, and below what our runs count, weighted with it.
    let columns = ["scope", "tree (MB)", "L1 reads", "L1 writes", "L2 reads", "L2 writes", "L1s (nJ)", "L2 (nJ)"];
    let mut energy = FigureTable::new("area_energy", "accesses to the FIFOs, and their energy", &columns);
    for scope in BarrierScope::ALL {
        for &ctas in runs::sizes(request) {
            let Some(outcome) = runs.outcome(&runs::tree(SCHEMES[0], scope, ctas)) else { continue };
            let count = |name: &str| Cell::count(outcome.scheme_counters.get(name).copied());
            let mut row = vec![
                Cell::from(scope.name()),
                tree_mb(outcome).map_or(Cell::None, |mb| Cell::Number(mb, 2)),
                count("l1_read_entries"),
                count("l1_written_entries"),
                count("l2_read_entries"),
                count("l2_written_entries"),
            ];
            row.extend(costs.iter().map(|cost| Cell::Number(energy_pj(outcome, cost) / 1000.0, 2)));
            energy.push(row);
        }
    }
    let notes = vec![format!("the four FIFOs of L1s and that of the L2 have {total:.2} square µm in all")];
    let unmeasured = "sizes, area and energy an access are published constants (FabMem, 45 nm), no measurement of ours; \
                      the accesses are counted in our runs";
    Finding { tables: vec![sizes, energy], unmeasured: Some(unmeasured), notes, ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::super::published::PUBLISHED;
    use super::*;

    #[test]
    fn the_scheme_s_constants_are_the_published_ones() {
        let constants = constants(&costs());
        assert_eq!(constants.len(), 8);
        for (level, quantity, value) in constants {
            assert_eq!(PUBLISHED.number("area", &level, quantity), Some(value), "{level} {quantity}");
        }
        assert_eq!(costs().iter().map(|cost| cost.built.0).collect::<Vec<_>>(), [4, 1]);
    }
}
