//! What a scheme that holds registers of stores (`ppa`) did in a run of a program of CPUs: regions, why they
//! ended, what harts waited for, and how much of persistence was hidden.

use serde::Serialize;
use serde_json::{Value, json};

use crate::report::console::{lines, plain_table};
use crate::report::numbers::{count, percent};
use durawarp_simulation::outcome::{Outcome, ratio};

/// What regions came to.
#[derive(Debug, Serialize)]
struct HeldRegisters {
    regions: u64,
    instructions_a_region: f64,
    stores_a_region: f64,
    /// For lack of registers, at atomics, at fences, at calls.
    ends: [u64; 4],
    region_wait_cycles: u64,
    write_backs: u64,
    write_back_cycles: u64,
    joined_stores: u64,
    kept_lines: u64,
    /// Formula 1 of LightWSP.
    efficiency: f64,
}

impl HeldRegisters {
    fn of(o: &Outcome) -> HeldRegisters {
        let of = |name: &str| o.scheme_counters.get(name).copied().unwrap_or(0);
        let (waited, persisted) = (of("region_wait_cycles"), of("write_back_cycles"));
        HeldRegisters {
            regions: of("regions"),
            instructions_a_region: ratio(of("region_instructions"), of("regions")),
            stores_a_region: ratio(of("region_stores"), of("regions")),
            ends: ["register", "atomic", "fence", "call"].map(|reason| of(&format!("{reason}_region_ends"))),
            region_wait_cycles: waited,
            write_backs: of("store_write_backs"),
            write_back_cycles: persisted,
            joined_stores: of("joined_stores"),
            kept_lines: of("kept_lines"),
            efficiency: 1.0 - ratio(waited, persisted),
        }
    }

    fn text(&self) -> String {
        let mut table = plain_table();
        let mut row = |name: &str, text: String| {
            table.add_row([name, &text]);
        };
        let Self { instructions_a_region, stores_a_region, .. } = self;
        let of_region = format!("{instructions_a_region:.1} instructions and {stores_a_region:.2} stores each");
        row("regions", format!("{}, {of_region}", count(self.regions)));
        let [registers, atomics, fences, calls] = self.ends.map(count);
        row(
            "ended",
            format!("{registers} for lack of registers, {atomics} at atomics, {fences} at fences, {calls} at calls"),
        );
        row("waited", format!("{} cycles at the ends of regions, of all harts", count(self.region_wait_cycles)));
        let joined = format!("{} stores joined one", count(self.joined_stores));
        let mean = ratio(self.write_back_cycles, self.write_backs);
        row("write-backs", format!("{}, {mean:.0} cycles each; {joined}", count(self.write_backs)));
        row("kept", format!("{} times a line stayed until its stores were durable", count(self.kept_lines)));
        let efficiency = percent(self.efficiency);
        row("efficiency", format!("{efficiency} of what write-backs take is hidden (LightWSP, formula 1)"));
        format!("\nHeld registers\n{}", lines(&table, 1))
    }
}

/// The part of an explanation that is the scheme's, as text and data; none under one without such regions.
pub(super) fn explain(outcome: &Outcome) -> Option<(String, Value)> {
    outcome.scheme_counters.contains_key("register_region_ends").then(|| {
        let held = HeldRegisters::of(outcome);
        (held.text(), json!(held))
    })
}
