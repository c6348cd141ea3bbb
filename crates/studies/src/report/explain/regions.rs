//! What recoverable regions came to under LightWSP: how large they were, who waited for whom, when gated
//! queues overflowed, which reads met gated stores, and what of it was checkpoints.
//!
//! A *store* is a line access of a warp, or a store of a hart. Waits of controllers are of their oldest
//! regions, one region at a time in each order: they add up to the time in which something was to be
//! committed. A wait for ACKs is put down to the controller whose ACK came last, or to several where they
//! came at one instant. Cycles are the core's.

use serde::Serialize;
use serde_json::Value;

use super::explanation::Explanation;
use crate::report::console::{align_right, lines, plain_table};
use crate::report::numbers::{count, percent};
use durawarp_persist::regions::{Overflow, RegionReport};
use durawarp_persist::storage::StorageCost;
use durawarp_simulation::outcome::{Outcome, ratio};

/// Overflows that are shown; the JSON has all that the run kept.
const SHOWN: usize = 20;

/// Regions of about a size.
#[derive(Debug, PartialEq, Serialize)]
struct Bucket {
    /// Stores of a region, from and to.
    from_stores: u64,
    to_stores: u64,
    regions: u64,
    /// Stores of all of them.
    stores: u64,
}

/// What warps waited for.
#[derive(Debug, Serialize)]
struct OfWarps {
    /// Waits for room in the front-end buffer, for a region's ID, for an atomic's turn.
    room: u64,
    ids: u64,
    turns: u64,
    /// Core cycles of the first two together, and of the last.
    admission_cycles: u64,
    turn_cycles: u64,
}

/// What a controller's oldest regions waited for, in core cycles.
#[derive(Debug, Serialize)]
struct OfController {
    boundary_cycles: f64,
    boundary_ack_cycles: f64,
    flush_cycles: f64,
    flush_ack_cycles: f64,
    /// By the controller whose ACK came last; of several at one instant.
    for_controller_cycles: Vec<f64>,
    for_several_cycles: f64,
}

impl OfController {
    /// Who was waited for longest, and how long; none where nobody was.
    fn slowest(&self) -> Option<(String, f64)> {
        let waits = self.for_controller_cycles.iter().copied().enumerate();
        let waits = waits.map(|(other, cycles)| (format!("controller {other}"), cycles));
        // Of equals the first.
        let all = [("several at once".to_owned(), self.for_several_cycles)].into_iter().chain(waits);
        all.reduce(|most, other| if other.1 > most.1 { other } else { most }).filter(|(_, cycles)| *cycles > 0.0)
    }
}

/// What the scheme counted of reads and of lines that were to leave the L2.
#[derive(Debug, Serialize)]
struct Hits {
    wpq_hits: u64,
    wpq_hits_merged: u64,
    wpq_hits_waited: u64,
    wpq_hit_fallbacks: u64,
    nvm_reads: u64,
    victims_searched: u64,
    victim_conflicts: u64,
}

/// Regions of a run, as data.
#[derive(Debug, Serialize)]
pub(super) struct Regions {
    report: RegionReport,
    sizes: Vec<Bucket>,
    warps: OfWarps,
    controllers: Vec<OfController>,
    hits: Hits,
    wpq_entries: Option<u64>,
    full_stores: u64,
    spilled_stores: u64,
}

pub(super) fn explain(outcome: &Outcome, _: &[StorageCost]) -> Option<Explanation> {
    let regions = Regions::of(outcome)?;
    let data = serde_json::to_value(&regions).ok()?;
    Some(Explanation { text: regions.text(outcome), data })
}

/// The part of an explanation of a program of CPUs that is the scheme's, as text and data; none under one
/// without gated regions.
pub(super) fn of_cores(outcome: &Outcome) -> Option<(String, Value)> {
    outcome.scheme_counters.contains_key("wpq_full_stores").then_some(())?;
    let regions = Regions::of(outcome)?;
    let data = serde_json::to_value(&regions).ok()?;
    Some((format!("\nRecoverable regions\n{}", regions.body(outcome, &OF_CORES)), data))
}

/// What components of a machine are called.
pub(super) struct Words {
    waiters: &'static str,
    waiter: &'static str,
    /// Who ends regions.
    host: &'static str,
    /// What drops changed lines.
    cache: &'static str,
    /// Atomics wait for leave.
    turns: bool,
    /// Controllers tell each other that they have written a region.
    flush_acks: bool,
    /// Each core's regions have an order of their own.
    order_a_core: bool,
}

const OF_SMS: Words = Words {
    waiters: "warps",
    waiter: "warp",
    host: "an SM",
    cache: "the L2",
    turns: true,
    flush_acks: true,
    order_a_core: false,
};
const OF_CORES: Words =
    Words { waiters: "harts", waiter: "core", host: "a core", cache: "the caches", turns: false, ..OF_SMS };
/// Of a scheme whose regions are ordered by each core.
pub(super) const OF_EACH_CORE: Words = Words { flush_acks: false, order_a_core: true, ..OF_CORES };

/// Regions by how many stores they had: up to 1, 2, 4, 8 and so on.
fn buckets(report: &RegionReport) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    for (&stores, &regions) in &report.sizes.by_stores {
        let to = stores.next_power_of_two();
        if buckets.last().is_none_or(|last| last.to_stores != to) {
            buckets.push(Bucket { from_stores: to / 2 + 1, to_stores: to, regions: 0, stores: 0 });
        }
        if let Some(last) = buckets.last_mut() {
            last.regions += regions;
            last.stores += regions * stores;
        }
    }
    buckets
}

impl Regions {
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        let report = outcome.regions()?;
        let scheme = |name: &str| outcome.scheme_counters.get(name).copied().unwrap_or_default();
        // Handlers measure in ticks, readers think in core cycles.
        let cycles =
            |ticks: u64| ticks as f64 * outcome.machine.core_khz as f64 / outcome.machine.tick_khz.max(1) as f64;
        let kind = if outcome.is_of_a_cpu() { "core" } else { "sm" };
        let admission_cycles = outcome.count_of(kind, "path_full_cycles").unwrap_or_default();
        let of_controller = |of: &durawarp_persist::regions::ControllerWaits| OfController {
            boundary_cycles: cycles(of.boundary_ticks),
            boundary_ack_cycles: cycles(of.boundary_ack_ticks),
            flush_cycles: cycles(of.flush_ticks),
            flush_ack_cycles: cycles(of.flush_ack_ticks),
            for_several_cycles: cycles(of.for_several_ticks),
            for_controller_cycles: of.for_controller_ticks.iter().map(|&ticks| cycles(ticks)).collect(),
        };
        Some(Regions {
            sizes: buckets(&report),
            warps: OfWarps {
                room: report.warps.room,
                ids: report.warps.ids,
                turns: report.warps.turns,
                admission_cycles,
                turn_cycles: cycles(report.warps.turn_ticks).round() as u64,
            },
            controllers: report.controllers.iter().map(of_controller).collect(),
            hits: Hits {
                wpq_hits: scheme("wpq_hits"),
                wpq_hits_merged: scheme("wpq_hits_merged"),
                wpq_hits_waited: scheme("wpq_hits_waited"),
                wpq_hit_fallbacks: scheme("wpq_hit_fallbacks"),
                nvm_reads: outcome.count_of("memory_controller", "nvm_reads").unwrap_or_default(),
                victims_searched: scheme("victims_searched_lines"),
                victim_conflicts: scheme("victim_conflicts_lines"),
            },
            wpq_entries: outcome.scheme_parameters.get("light_wsp.wpq_entries").and_then(|of| of.value.as_u64()),
            full_stores: scheme("wpq_full_stores"),
            spilled_stores: scheme("wpq_spilled_stores"),
            report,
        })
    }

    /// Regions that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.report.sizes.regions
    }

    /// How often a hart waited for room in the front-end buffer.
    pub(super) fn room_waits(&self) -> u64 {
        self.warps.room
    }

    fn text(&self, outcome: &Outcome) -> String {
        let name = outcome.scheme_name();
        format!("{name} on {}\n{}", outcome.machine.name, self.body(outcome, &OF_SMS))
    }

    fn body(&self, outcome: &Outcome, words: &Words) -> String {
        let mut out = self.sizes_text();
        out += &self.waiters_text(words);
        out += &self.controllers_text(outcome, words);
        out += &self.overflows_text(outcome);
        let hits = &self.hits;
        out += &format!(
            "\n  {} of {} reads of memory found bytes in a gated queue: {} took them, {} waited ({} had a region written for it)\n",
            count(hits.wpq_hits),
            count(hits.nvm_reads),
            count(hits.wpq_hits_merged),
            count(hits.wpq_hits_waited),
            count(hits.wpq_hit_fallbacks),
        );
        out += &self.victims_text(words);
        if let Some(left) = outcome.backlog.as_ref().filter(|backlog| backlog.is_some()) {
            out += &format!("  left at the end: {}\n", crate::report::backlog::backlog(left, outcome.time.ticks));
        }
        out
    }

    pub(super) fn victims_text(&self, words: &Words) -> String {
        let (conflicts, searched) = (count(self.hits.victim_conflicts), count(self.hits.victims_searched));
        format!("  {conflicts} of {searched} lines that were to leave {} had copies on their way\n", words.cache)
    }

    pub(super) fn sizes_text(&self) -> String {
        let (sizes, checkpoints) = (&self.report.sizes, &self.report.checkpoints);
        let mut table = plain_table();
        let header = ["stores a region", "regions", "", "their stores", "", ""];
        table.set_header(header);
        for bucket in &self.sizes {
            let (from, to) = (bucket.from_stores, bucket.to_stores);
            let share = ratio(bucket.regions, sizes.regions);
            table.add_row([
                if from >= to { count(to) } else { format!("{} to {}", count(from), count(to)) },
                count(bucket.regions),
                percent(share),
                count(bucket.stores),
                percent(ratio(bucket.stores, sizes.stores)),
                "#".repeat((share * 40.0).round() as usize),
            ]);
        }
        align_right(&mut table, 0..header.len() - 1);
        // Below the distribution its means, and what of it are checkpoints.
        let mut out = format!("{}\n", lines(&table, 1));
        out += &format!(
            "  {} regions of {:.1} stores, {:.1} entries, {:.0} bytes; the most entries of a region at one controller {}{}\n",
            count(sizes.regions),
            ratio(sizes.stores, sizes.regions),
            ratio(sizes.entries, sizes.regions),
            ratio(sizes.bytes, sizes.regions),
            count(sizes.largest_entries),
            self.wpq_entries.map_or_else(String::new, |entries| format!(", of {} of its queue", count(entries))),
        );
        out += &format!(
            "  checkpoints: {} stores, {} of all; {} bytes, {} of all\n\n",
            count(checkpoints.stores),
            percent(ratio(checkpoints.stores, sizes.stores)),
            count(checkpoints.bytes),
            percent(ratio(checkpoints.bytes, sizes.bytes)),
        );
        out
    }

    fn waiters_text(&self, words: &Words) -> String {
        let warps = &self.warps;
        let mut table = plain_table();
        table.set_header([
            format!("{} waited for", words.waiters),
            "times".to_owned(),
            format!("{} cycles", words.waiter),
        ]);
        let room = "room in the front-end buffer: controllers that take its entries";
        table.add_row([room.to_owned(), count(warps.room), format!("{} with the next", count(warps.admission_cycles))]);
        table.add_row(["a region's ID: older regions that commit".to_owned(), count(warps.ids), String::new()]);
        if words.turns {
            table.add_row([
                "an atomic's turn: others on its lines".to_owned(),
                count(warps.turns),
                count(warps.turn_cycles),
            ]);
        }
        align_right(&mut table, 1..3);
        format!("{}\n", lines(&table, 1))
    }

    pub(super) fn controllers_text(&self, outcome: &Outcome, words: &Words) -> String {
        let mut table = plain_table();
        let flush_acks = words.flush_acks.then_some("flush-ACKs");
        let header: Vec<&str> = ["controller", "boundaries", "bdry-ACKs", "its own flushes"]
            .into_iter()
            .chain(flush_acks)
            .chain(["longest for", "cycles", "of the run"])
            .collect();
        let columns = header.len();
        table.set_header(header);
        // Orders wait at the same time: their shares are of all of them.
        let orders = if words.order_a_core { outcome.rows_of("core") } else { 1 };
        let cycles_of_orders = (outcome.time.core_cycles * orders as u64).max(1) as f64;
        for (index, of) in self.controllers.iter().enumerate() {
            let whole = |cycles: f64| count(cycles.round() as u64);
            let slowest = of.slowest();
            // An order is in one of the four waits at a time: they may be added.
            let all = of.boundary_cycles + of.boundary_ack_cycles + of.flush_cycles + of.flush_ack_cycles;
            let mut row = vec![
                index.to_string(),
                whole(of.boundary_cycles),
                whole(of.boundary_ack_cycles),
                whole(of.flush_cycles),
            ];
            row.extend(words.flush_acks.then(|| whole(of.flush_ack_cycles)));
            row.extend([
                slowest.as_ref().map_or_else(|| "-".to_owned(), |(who, _)| who.clone()),
                slowest.map_or_else(|| "-".to_owned(), |(_, cycles)| whole(cycles)),
                percent(all / cycles_of_orders),
            ]);
            table.add_row(row);
        }
        align_right(&mut table, 0..columns);
        let whose = if words.order_a_core { ", core by core" } else { "" };
        let about = format!(
            "core cycles in which a controller's oldest regions waited{whose}, those after the program's end included; {} that is slow to end a region is a wait for boundaries",
            words.host
        );
        format!("{}\n  {about}\n", lines(&table, 1))
    }

    fn overflows_text(&self, outcome: &Outcome) -> String {
        let report = &self.report;
        let mut out = format!(
            "\n  {} episodes of overflow, {} stores written in them; {} stores waited for room in a gated queue\n",
            count(report.overflow_episodes),
            count(self.spilled_stores),
            count(self.full_stores),
        );
        if report.sizes.beyond_queue > 0 {
            let regions = count(report.sizes.beyond_queue);
            out +=
                &format!("  {regions} regions had more entries for a controller than its queue: they overflow alone\n");
        }
        // The totals are always given; a table only if there is something to list.
        if report.overflows.is_empty() {
            return out;
        }
        let mut table = plain_table();
        let header = ["at (ns)", "controller", "order", "region", "stores written at once", "others waiting"];
        table.set_header(header);
        let mut shown: Vec<&Overflow> = report.overflows.iter().collect();
        shown.sort_by_key(|overflow| (overflow.at_ticks, overflow.controller));
        for overflow in shown.iter().take(SHOWN) {
            let ns = overflow.at_ticks as f64 * 1e6 / outcome.machine.tick_khz.max(1) as f64;
            table.add_row([
                format!("{ns:.1}"),
                overflow.controller.to_string(),
                overflow.order.to_string(),
                overflow.region.to_string(),
                count(overflow.stores),
                count(overflow.waiting),
            ]);
        }
        align_right(&mut table, 0..header.len());
        out += &format!("{}\n", lines(&table, 1));
        if report.overflow_episodes > SHOWN as u64 {
            out += &format!("  ... and {} more\n", count(report.overflow_episodes - SHOWN as u64));
        }
        out
    }
}

#[cfg(test)]
mod tests;
