//! Section 7.2.5: area of the NVW-FIFOs, a constant, and the energy of the accesses that the runs counted.
//!
//! Area and energy an access are the published constants, whatever the machine and the FIFOs' sizes are; they hold for 16
//! and 64 entries at 45 nm.

use super::ask;
use super::published::PUBLISHED;
use super::runs::{self, SCHEMES, Scope};
use super::times::tree_mb;
use crate::config::SchemeConfig;
use crate::outcome::Outcome;
use crate::reproduce::{Cell, Finding, Request, Runs, Table};
use crate::schemes::nvw_fifo::{AREA_UM2, READ_PJ, WRITE_PJ};

/// Energy of a run's accesses to the FIFOs of the L1s and of the L2, in pJ.
fn energy_pj(outcome: &Outcome) -> [f64; 2] {
    let count = |name: String| outcome.scheme_counters.get(&name).copied().unwrap_or(0) as f64;
    [("l1", READ_PJ.0, WRITE_PJ.0), ("l2", READ_PJ.1, WRITE_PJ.1)].map(|(at, read, write)| {
        count(format!("{at}_read_entries")) * read + count(format!("{at}_written_entries")) * write
    })
}

/// The constants: level, quantity, ours.
fn constants() -> Vec<(&'static str, &'static str, f64)> {
    let scheme = SchemeConfig::load(SCHEMES[0], &[]).ok();
    let entries = |key: &str| scheme.as_ref().and_then(|scheme| scheme.values.get(key)?.as_f64()).unwrap_or_default();
    vec![
        ("L1", "entries", entries("nvw_fifo.l1_entries")),
        ("L1", "area_um2", AREA_UM2.0),
        ("L1", "read_pj", READ_PJ.0),
        ("L1", "write_pj", WRITE_PJ.0),
        ("L2", "entries", entries("nvw_fifo.l2_entries")),
        ("L2", "area_um2", AREA_UM2.1),
        ("L2", "read_pj", READ_PJ.1),
        ("L2", "write_pj", WRITE_PJ.1),
    ]
}

/// Area and energy.
pub(super) fn area(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut sizes = Table::new("area", "constants", &["FIFO of", "quantity", "ours", "published"]);
    let mut judged = Vec::new();
    for (level, quantity, ours) in constants() {
        let printed = PUBLISHED.number("area", level, quantity);
        let cell = |value: f64| Cell::Number(value, 2);
        sizes.push(vec![Cell::from(level), Cell::from(quantity), cell(ours), printed.map_or(Cell::None, cell)]);
        judged.push((format!("{level} {quantity}"), ours, printed));
    }
    let fifos = |level: &str| PUBLISHED.number("area", level, "fifos").unwrap_or_default();
    let total = fifos("L1") * AREA_UM2.0 + fifos("L2") * AREA_UM2.1;

    let columns = ["scope", "tree (MB)", "L1 reads", "L1 writes", "L2 reads", "L2 writes", "L1s (nJ)", "L2 (nJ)"];
    let mut energy = Table::new("area_energy", "accesses to the FIFOs, and their energy", &columns);
    for scope in Scope::ALL {
        for &ctas in runs::sizes(request) {
            let Some(outcome) = runs.outcome(&runs::tree(SCHEMES[0], scope, ctas)) else { continue };
            let count = |name: &str| Cell::count(outcome.scheme_counters.get(name).copied());
            let [l1, l2] = energy_pj(outcome).map(|pj| Cell::Number(pj / 1000.0, 2));
            energy.push(vec![
                Cell::from(scope.name()),
                tree_mb(outcome).map_or(Cell::None, |mb| Cell::Number(mb, 2)),
                count("l1_read_entries"),
                count("l1_written_entries"),
                count("l2_read_entries"),
                count("l2_written_entries"),
                l1,
                l2,
            ]);
        }
    }
    let notes = vec![
        format!("the four FIFOs of L1s and that of the L2 have {total:.2} square µm in all"),
        "area and energy an access are published constants (FabMem, 45 nm); the accesses are counted in our runs"
            .to_owned(),
    ];
    Finding { tables: vec![sizes, energy], asks: vec![ask::constants(&judged)], notes }
}
