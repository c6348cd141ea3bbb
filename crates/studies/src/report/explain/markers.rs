//! What persist barriers cost under a scheme of FIFOs: how long warps waited at each scope, what its markers
//! flushed and whose that was, what full FIFOs flushed before, and area and energy of the FIFOs.
//!
//! A marker drains all that is ahead of it in its FIFO. An entry of an L1's FIFO is a marker's *own* where
//! the store was of the same scope instance (warp, CTA, kernel); one of the L2's where it came from the
//! marker's SM. The others are what section 8.2 of Gope et al. calls conservative but correct. An entry whose
//! line a release has cleaned meanwhile counts: it stays in the FIFO. Area and energy are the paper's
//! numbers, area scaled linearly with entries and with how many FIFOs there are, which is our reading: SRAM
//! arrays do not quite scale so.

use serde::Serialize;

use super::explanation::Explanation;
use crate::report::console::{align_right, legend, lines, plain_table};
use crate::report::numbers::{count, percent};
use durawarp_persist::storage::StorageCost;
use durawarp_simulation::outcome::{Outcome, ratio};

/// What the columns are.
const LEGEND: [(&str, &str); 10] = [
    ("barrier", "the instruction; pm.sfence and its like count as pm.barrier.wi"),
    ("passes", "warps that passed such barriers"),
    (
        "mean stall, ns",
        "of a pass, from the warp's arrival until it went on, its wait for others included: core cycles, and ns",
    ),
    ("markers", "p_flush markers that went through the L1s' FIFOs, or through those of the L2's slices"),
    ("entries a marker", "entries ahead of a marker, whose lines it flushed: a mean"),
    ("own", "entries of the marker's warp, CTA or kernel (L1), of its SM (L2)"),
    ("of others, share", "entries of others, which are flushed with them, and their share"),
    ("early", "entries flushed before any marker, for want of room in the FIFO"),
    ("left by themselves", "entries whose lines left the cache without a marker: evicted, or cleaned"),
    ("written", "entries appended to the FIFO"),
];

/// Barriers of a scope.
#[derive(Debug, Serialize)]
struct ScopeBarriers {
    /// Its instruction.
    barrier: String,
    /// Warps that passed.
    passes: u64,
    /// What they waited, in core cycles.
    stall_cycles: u64,
    /// Of one, in core cycles.
    mean_stall_cycles: f64,
    /// The same, in ns.
    mean_stall_ns: f64,
    /// Markers in L1s.
    l1_markers: u64,
    /// Entries that these flushed: of their own instance, and of others.
    l1_own_entries: u64,
    l1_other_entries: u64,
}

/// A FIFO's flushes, all markers together.
#[derive(Debug, Serialize)]
struct Fifo {
    name: String,
    markers: u64,
    own_entries: u64,
    other_entries: u64,
    /// Flushed because the FIFO was full.
    early_entries: u64,
    /// Left because their lines left by themselves.
    evicted_entries: u64,
    written_entries: u64,
    read_entries: u64,
}

/// Area and energy of a kind of FIFO.
#[derive(Debug, Serialize)]
struct Cost {
    name: String,
    fifos: u32,
    entries_each: u32,
    area_um2: f64,
    energy_pj: f64,
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct Markers {
    scopes: Vec<ScopeBarriers>,
    fifos: Vec<Fifo>,
    costs: Vec<Cost>,
    /// Lines that left the L1s' S-FIFOs because these were full, and all that left the L1s.
    l1_cleanings_early: u64,
    l1_cleanings: u64,
    l1_combines: bool,
}

pub(super) fn explain(outcome: &Outcome, storage: &[StorageCost]) -> Option<Explanation> {
    let markers = Markers::of(outcome, storage);
    let data = serde_json::to_value(&markers).ok()?;
    Some(Explanation { text: markers.text(outcome), data })
}

impl Markers {
    fn of(outcome: &Outcome, storage: &[StorageCost]) -> Self {
        let sm = |name: &str| outcome.total("sm", name);
        let scheme = |name: &str| outcome.scheme_counters.get(name).copied().unwrap_or_default();
        // Counters of SMs are passes and stalls, those of the scheme the entries of FIFOs.
        let cycle_ns = 1e6 / outcome.machine.core_khz.max(1) as f64;
        let scope = |scope: &str| {
            let (passes, stall) = (sm(&format!("pm_barriers_{scope}")), sm(&format!("pm_barriers_{scope}_stall")));
            let entries = |of: &str| scheme(&format!("l1_{scope}_{of}"));
            ScopeBarriers {
                barrier: format!("pm.barrier.{scope}"),
                passes,
                stall_cycles: stall,
                mean_stall_cycles: ratio(stall, passes),
                mean_stall_ns: ratio(stall, passes) * cycle_ns,
                l1_markers: entries("markers"),
                l1_own_entries: entries("own_entries"),
                l1_other_entries: entries("other_entries"),
            }
        };
        let scopes: Vec<ScopeBarriers> = ["wi", "wg", "kr"].map(scope).into();
        // The L1s' FIFO serves markers of all scopes: its row is their sum. The L2's has counters of its own.
        let sum = |of: fn(&ScopeBarriers) -> u64| scopes.iter().map(of).sum();
        let fifo = |name: &str, markers, own_entries, other_entries| {
            let entries = |of: &str| scheme(&format!("{name}_{of}_entries"));
            Fifo {
                name: name.to_uppercase(),
                markers,
                own_entries,
                other_entries,
                early_entries: entries("early"),
                evicted_entries: entries("evicted"),
                written_entries: entries("written"),
                read_entries: entries("read"),
            }
        };
        let fifos = vec![
            fifo("l1", sum(|s| s.l1_markers), sum(|s| s.l1_own_entries), sum(|s| s.l1_other_entries)),
            fifo("l2", scheme("l2_markers"), scheme("l2_own_entries"), scheme("l2_other_entries")),
        ];
        let cost = |cost: &StorageCost| {
            let (fifos, entries_each) = cost.built;
            let accesses = |of: &str| scheme(&format!("{}_{of}_entries", cost.name)) as f64;
            Cost {
                name: cost.name.to_uppercase(),
                fifos,
                entries_each,
                area_um2: cost.area_um2 * f64::from(fifos) * f64::from(entries_each) / f64::from(cost.entries),
                energy_pj: accesses("read") * cost.read_pj + accesses("written") * cost.write_pj,
                source: cost.source,
            }
        };
        Markers {
            scopes,
            fifos,
            costs: storage.iter().map(cost).collect(),
            l1_cleanings_early: sm("l1_cleanings_early"),
            l1_cleanings: sm("l1_cleanings"),
            l1_combines: outcome.machine.parameters.get("l1.writes").is_some_and(|writes| writes.value == "combine"),
        }
    }

    fn text(&self, outcome: &Outcome) -> String {
        let mut out = format!("{} on {}\n", outcome.scheme_name(), outcome.machine.name);
        let header =
            ["barrier", "passes", "mean stall", "ns", "L1 markers", "entries a marker", "own", "of others", "share"];
        let mut table = plain_table();
        table.set_header(header);
        for scope in &self.scopes {
            let entries = scope.l1_own_entries + scope.l1_other_entries;
            table.add_row([
                scope.barrier.clone(),
                count(scope.passes),
                mean(scope.stall_cycles, scope.passes),
                if scope.passes > 0 { format!("{:.1}", scope.mean_stall_ns) } else { "-".to_owned() },
                count(scope.l1_markers),
                mean(entries, scope.l1_markers),
                count(scope.l1_own_entries),
                count(scope.l1_other_entries),
                share(scope.l1_other_entries, entries),
            ]);
        }
        align_right(&mut table, 1..header.len());
        out += &format!("{}\n", lines(&table, 1));
        // By FIFO, what the barriers above cost: entries, whose they are, and how they left.
        let header = [
            "FIFO",
            "markers",
            "entries a marker",
            "own",
            "of others",
            "share",
            "early",
            "left by themselves",
            "written",
        ];
        let mut table = plain_table();
        table.set_header(header);
        for fifo in &self.fifos {
            let entries = fifo.own_entries + fifo.other_entries;
            table.add_row([
                fifo.name.clone(),
                count(fifo.markers),
                mean(entries, fifo.markers),
                count(fifo.own_entries),
                count(fifo.other_entries),
                share(fifo.other_entries, entries),
                count(fifo.early_entries),
                count(fifo.evicted_entries),
                count(fifo.written_entries),
            ]);
        }
        align_right(&mut table, 1..header.len());
        out += &format!("{}\n", lines(&table, 1));
        // Where L1s do not combine, the zeros above are a matter of the machine, not of the program.
        if self.l1_combines {
            out += &format!(
                "  {} lines left the L1s, {} of them because an S-FIFO was full\n",
                count(self.l1_cleanings),
                count(self.l1_cleanings_early)
            );
        } else {
            out +=
                "  the L1s of this machine do not combine stores: nothing is dirty there, and their FIFOs stay empty\n";
        }
        // Published constants, scaled to what was built.
        for cost in &self.costs {
            out += &format!(
                "  {} {} FIFOs of {} entries: {:.0} µm², {:.1} nJ\n",
                count(cost.fifos.into()),
                cost.name,
                count(cost.entries_each.into()),
                cost.area_um2,
                cost.energy_pj / 1e3,
            );
        }
        if let Some(cost) = self.costs.first() {
            out += &format!("  area and energy: {}; area scaled linearly with entries and FIFOs\n", cost.source);
        }
        out + "\n" + &legend(&LEGEND)
    }
}

/// One decimal, or a dash where there was nothing to average.
fn mean(sum: u64, of: u64) -> String {
    if of > 0 { format!("{:.1}", ratio(sum, of)) } else { "-".to_owned() }
}

fn share(part: u64, whole: u64) -> String {
    if whole > 0 { percent(ratio(part, whole)) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests;
