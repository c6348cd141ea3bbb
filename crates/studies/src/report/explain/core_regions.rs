//! What recoverable regions that each core orders (`capri`, `cwsp`) came to: how large they were, who waited
//! for whom, what the persist path moved and why it stood still, how far writes went ahead, and what buffers
//! have in bytes.
//!
//! A *store* is a store of a hart, checkpoints among them. Waits of controllers are of the oldest region of
//! each core: shares are of the run's time, of all cores together. A stop of the path
//! counts while something waited to leave. Source of the sizes beside ours: LightWSP, section V-G4.

use serde::Serialize;
use serde_json::Value;

use super::regions::{OF_EACH_CORE, Regions};
use crate::report::console::{align_right, lines, plain_table};
use crate::report::numbers::{count, percent};
use durawarp_simulation::outcome::{Outcome, ratio};

/// Bytes of an entry of Capri's buffers: a line, its undo and its redo log.
const LOGGED_LINE_BYTES: u64 = 192;

/// The persist paths of all cores.
#[derive(Debug, Serialize)]
struct Paths {
    /// Stores and boundaries.
    entries: u64,
    entry_bytes: u64,
    /// Of what the paths can move in the time of the run.
    used_share: f64,
    /// They stand still behind boundaries.
    stops: bool,
    stopped_ns: u64,
    /// Of the time of the run, of all cores that had a region.
    stopped_share: f64,
}

/// What a core knows of its regions.
#[derive(Debug, Serialize)]
struct Tracker {
    /// From a region's end until all controllers have persisted it.
    mean_persisting_ns: f64,
    /// Regions that had ended and not persisted, at most, of all cores together.
    most_persisting: u64,
    /// Regions of other cores that harts had to wait for where they synchronise.
    awaited_regions: u64,
    wait_cycles: u64,
}

/// What is written ahead of its turn.
#[derive(Debug, Serialize)]
struct Speculation {
    /// With the old bytes read and logged first.
    logged_stores: u64,
    logged_share: f64,
    /// Until their region's turn.
    held_stores: u64,
    most_held_stores: u64,
}

/// Bytes of buffers a core, by arithmetic.
#[derive(Debug, Serialize)]
struct Storage {
    front_end_bytes: u64,
    /// Under a scheme with buffers at the controllers.
    back_end_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct CoreRegions {
    regions: Regions,
    room_waits: u64,
    room_cycles: u64,
    paths: Paths,
    tracker: Tracker,
    /// None under a scheme whose regions are all written in their turn.
    speculation: Option<Speculation>,
    storage: Storage,
}

impl CoreRegions {
    fn of(o: &Outcome) -> Option<CoreRegions> {
        let regions = Regions::of(o)?;
        let of = |name: &str| o.scheme_counters.get(name).copied().unwrap_or(0);
        let parameter = |name: &str| o.scheme_parameters.get(&format!("{}.{name}", o.scheme))?.value.as_u64();
        let (ended, run_ns) = (regions.ended(), o.time.ps as f64 / 1000.0);
        let cores = o.rows_of("core");
        let entry_bytes = parameter("entry_bytes")?;
        let entries = of("feb_stores") + ended;
        // MB/s are bytes a microsecond.
        let can_move = parameter("path_mb_s")? as f64 / 1000.0 * run_ns * cores as f64;
        // Only a scheme that writes ahead counts such stores.
        let logged = o.scheme_counters.get("logged_stores").copied();
        let front_end = parameter("feb_entries")?;
        Some(CoreRegions {
            room_waits: regions.room_waits(),
            room_cycles: o.count_of("core", "path_full_cycles").unwrap_or_default(),
            paths: Paths {
                entries,
                entry_bytes,
                used_share: (entries * entry_bytes) as f64 / can_move.max(1.0),
                stops: logged.is_none(),
                stopped_ns: of("path_stopped_ns"),
                stopped_share: of("path_stopped_ns") as f64 / (run_ns * cores as f64).max(1.0),
            },
            tracker: Tracker {
                mean_persisting_ns: ratio(of("regions_persisting_ns"), ended),
                most_persisting: of("regions_most_persisting_summed"),
                awaited_regions: of("awaited_regions"),
                wait_cycles: of("region_wait_cycles"),
            },
            speculation: logged.map(|logged_stores| Speculation {
                logged_stores,
                logged_share: ratio(logged_stores, of("feb_stores")),
                held_stores: of("held_stores"),
                most_held_stores: of("most_held_stores_summed"),
            }),
            // Entries of buffers at both ends are alike; without a back end a store alone is an entry.
            storage: match parameter("backend_entries") {
                Some(back_end) => Storage {
                    front_end_bytes: front_end * LOGGED_LINE_BYTES,
                    back_end_bytes: Some(back_end * LOGGED_LINE_BYTES),
                },
                None => Storage { front_end_bytes: front_end * entry_bytes, back_end_bytes: None },
            },
            regions,
        })
    }

    fn waiters(&self) -> String {
        let mut table = plain_table();
        table.set_header(["harts waited for", "times", "core cycles"]);
        let mut row = |what: &str, times: u64, cycles: u64| {
            table.add_row([what.to_owned(), count(times), count(cycles)]);
        };
        row("room in the front-end buffer: controllers that take its entries", self.room_waits, self.room_cycles);
        let Tracker { awaited_regions, wait_cycles, .. } = self.tracker;
        row("regions of other cores, where they synchronise", awaited_regions, wait_cycles);
        align_right(&mut table, 1..3);
        format!("{}\n", lines(&table, 1))
    }

    fn path(&self) -> String {
        let Paths { entries, entry_bytes, used_share, stops, stopped_ns, stopped_share } = &self.paths;
        let mut table = plain_table();
        let mut row = |name: &str, text: String| {
            table.add_row([name, &text]);
        };
        let used = percent(*used_share);
        row("persist paths", format!("{} entries of {entry_bytes} B; {used} of their bandwidth used", count(*entries)));
        let stopped = match stops {
            true => {
                let share = percent(*stopped_share);
                format!(
                    "{} ns behind boundaries while something waited: {share} of the run, of all cores",
                    count(*stopped_ns)
                )
            }
            false => "never".to_owned(),
        };
        row("stood still", stopped);
        // What a core knows of its regions, and what went ahead of them.
        let Tracker { mean_persisting_ns, most_persisting, .. } = self.tracker;
        row(
            "tracker",
            format!(
                "a region has persisted {mean_persisting_ns:.1} ns after its end; at most {} had not, of all cores",
                count(most_persisting)
            ),
        );
        if let Some(Speculation { logged_stores, logged_share, held_stores, most_held_stores }) = self.speculation {
            let share = percent(logged_share);
            let (logged, held) = (count(logged_stores), count(held_stores));
            row("undo log", format!("{logged} stores written ahead, {share}; each reads the bytes that it replaces"));
            row(
                "held",
                format!("{held} stores until their region's turn; {} at most at a time", count(most_held_stores)),
            );
        }
        // Of Capri the paper has a size to compare with.
        let Storage { front_end_bytes, back_end_bytes } = self.storage;
        row(
            "storage",
            match back_end_bytes {
                Some(back_end) => format!(
                    "{} B a core: {} in the front-end buffer, {} in back-end buffers (LightWSP has 54 KB)",
                    count(front_end_bytes + back_end),
                    count(front_end_bytes),
                    count(back_end)
                ),
                None => format!("{} B a core in the front-end buffer; undo logs are in memory", count(front_end_bytes)),
            },
        );
        format!("{}\n", lines(&table, 1))
    }

    fn text(&self, o: &Outcome) -> String {
        let mut out = format!("\nRecoverable regions, ordered by each core\n{}", self.regions.sizes_text());
        out += &self.waiters();
        out += &self.path();
        out += &self.regions.controllers_text(o, &OF_EACH_CORE);
        out += &self.regions.victims_text(&OF_EACH_CORE);
        out
    }
}

/// The part of an explanation that is the scheme's, as text and data; none under one without such regions.
pub(super) fn explain(outcome: &Outcome) -> Option<(String, Value)> {
    outcome.scheme_counters.contains_key("path_stopped_ns").then_some(())?;
    let regions = CoreRegions::of(outcome)?;
    Some((regions.text(outcome), serde_json::to_value(&regions).ok()?))
}

#[cfg(test)]
mod tests;
