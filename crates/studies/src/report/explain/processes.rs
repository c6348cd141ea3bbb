//! Where the time of a program of CPUs went: dispatch slots by cause, by core and hart, by function and
//! instruction; what caches and coherence did; what durability cost.
//!
//! A share is of all dispatch slots of the cores, but by hart: there of its core's, so that the shares of a
//! core sum to 100 %. MPKI are misses per 1,000 retired instructions. A durable fence's wait is from when it
//! stands at the head of dispatch until it passes: stores and cleans before it are part of it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::explanation::Explanation;
use crate::report::console::{align_right, lines, plain_table};
use crate::report::cores::{self, shares, tenths};
use crate::report::numbers::{count, percent};
use durawarp_simulation::outcome::{FunctionSlots, HartSlots, Outcome, PlaceSlots, ratio};

/// Functions and instructions that the text shows.
const SHOWN: usize = 10;

/// Causes of columns, as counters name them without `_slots`, and their headings.
const CAUSES: [(&str, &str); 9] = [
    ("memory", "memory"),
    ("store", "stores"),
    ("persist", "durable fences"),
    ("atomic", "atomics"),
    ("fence", "fences"),
    ("redirect", "branches"),
    ("execution", "execution"),
    ("call", "calls"),
    ("idle", "idle"),
];

/// Caches, coherence and durability in numbers.
#[derive(Debug, Serialize)]
struct Levels {
    l1_mpki: f64,
    l1_load_hit_rate: f64,
    llc_mpki: f64,
    llc_hit_rate: f64,
    /// None on a machine without a DRAM cache.
    dram_cache_hit_rate: Option<f64>,
    probes: u64,
    dirty_probe_acks: u64,
    puts: u64,
    recalls: u64,
    order_squashes: u64,
    failed_conditionals: u64,
    /// Of the cycles of all harts.
    failed_conditional_share: f64,
    /// The same, of turns of loops that changed nothing; none where places were not kept.
    spinning_share: Option<f64>,
    cleans: u64,
    dropped_cleans: u64,
    durable_fences: u64,
    /// None without a durable fence that waited.
    mean_fence_ns: Option<f64>,
    /// Requests of cores that waited behind another of their line, and their mean wait.
    queued: u64,
    mean_queued_ns: Option<f64>,
}

impl Levels {
    fn of(o: &Outcome) -> Levels {
        let of = |kind: &str, name: &str| o.count_of(kind, name).unwrap_or(0);
        let (core, llc) = (|name| of("core", name), |name| of("llc", name));
        let per_kilo = |events: u64| ratio(events * 1000, o.warp_instructions());
        let mean = |sum: u64, number: u64, khz: u64| {
            (number > 0).then(|| sum as f64 / number as f64 * 1e6 / khz.max(1) as f64)
        };
        // Writes bring their lines, too, but nobody waits for these.
        let (hits, misses) = (of("dram_cache", "read_hits"), of("dram_cache", "read_misses"));
        let loads = core("loads");
        // Of harts that ran instructions, where these are known; else of one hart a core.
        let slots = o.process.as_ref().and_then(|process| process.slots.as_ref());
        let harts = slots.map_or(o.rows_of("core"), |slots| slots.harts.len());
        let hart_cycles = o.time.core_cycles * harts as u64;
        Levels {
            l1_mpki: per_kilo(core("l1_load_misses") + core("l1_store_misses")),
            l1_load_hit_rate: 1.0 - ratio(core("l1_load_misses").min(loads), loads),
            llc_mpki: per_kilo(llc("fetches")),
            llc_hit_rate: ratio(llc("get_hits"), llc("gets")),
            dram_cache_hit_rate: (hits + misses > 0).then(|| ratio(hits, hits + misses)),
            probes: llc("probes"),
            dirty_probe_acks: llc("dirty_probe_acks"),
            puts: llc("puts"),
            recalls: llc("recalls"),
            order_squashes: core("order_squashes"),
            failed_conditionals: core("failed_conditionals"),
            failed_conditional_share: ratio(core("failed_conditional_cycles"), hart_cycles),
            spinning_share: slots
                .map(|slots| ratio(slots.harts.iter().map(|hart| hart.spinning_cycles).sum(), hart_cycles)),
            cleans: core("cleans"),
            dropped_cleans: core("dropped_cleans"),
            durable_fences: core("durable_fences"),
            mean_fence_ns: mean(core("durable_fence_cycles"), core("durable_fences"), o.machine.core_khz),
            queued: llc("queued"),
            mean_queued_ns: mean(llc("queued_ticks"), llc("queued"), o.machine.tick_khz),
        }
    }

    fn text(&self) -> String {
        let ns = |mean: Option<f64>| mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1} ns"));
        let mut table = plain_table();
        let mut row = |name: &str, text: String| {
            table.add_row([name, &text]);
        };
        let loads = percent(self.l1_load_hit_rate);
        row("L1", format!("{:.2} MPKI; {loads} of loads hit", self.l1_mpki));
        row("shared cache", format!("{:.2} MPKI; {} of requests hit", self.llc_mpki, percent(self.llc_hit_rate)));
        if let Some(rate) = self.dram_cache_hit_rate {
            row("DRAM cache", format!("{} of reads hit", percent(rate)));
        }
        // What cores do to each other's lines.
        row(
            "coherence",
            format!(
                "{} probes, {} found changed lines; {} puts, {} recalls; {} requests queued, {} each",
                count(self.probes),
                count(self.dirty_probe_acks),
                count(self.puts),
                count(self.recalls),
                count(self.queued),
                ns(self.mean_queued_ns)
            ),
        );
        row(
            "lost to others",
            format!(
                "{} squashes of loads that had bound early, {} failed store-conditionals",
                count(self.order_squashes),
                count(self.failed_conditionals)
            ),
        );
        // Of harts that ran something.
        let mut spent =
            format!("{} of the time from an `lr` to an `sc` that failed", percent(self.failed_conditional_share));
        if let Some(share) = self.spinning_share {
            spent += &format!("; {} spinning: in turns of loops that changed nothing", percent(share));
        }
        row("in vain", spent);
        // What the program asked to be durable.
        row(
            "durability",
            format!(
                "{} lines cleaned, {} cleans dropped; {} durable fences, {} each",
                count(self.cleans),
                count(self.dropped_cleans),
                count(self.durable_fences),
                ns(self.mean_fence_ns)
            ),
        );
        lines(&table, 1)
    }
}

/// The explanation of a run of a program of CPUs; none of other runs.
pub(super) fn explain(o: &Outcome) -> Option<Explanation> {
    let process = o.process.as_ref()?;
    let levels = Levels::of(o);
    let text = |key: &str| o.workload[key].as_str().unwrap_or("?").to_owned();
    let mut out =
        format!("{} ({}) on {} under {}\n", text("workload"), text("profile"), o.machine.name, o.scheme_name());
    let (cycles, instructions) = (count(o.time.core_cycles), count(o.warp_instructions()));
    out += &format!("  {cycles} cycles, {instructions} instructions, {:.2} a cycle\n\nDispatch slots\n", o.ipc());
    out += &lines(&cores::stalls(o), 1);
    let mut data = json!({
        "slots": cores::slots(o),
        "levels": levels,
    });
    // Places are known only where the run was asked to keep them.
    if let Some(slots) = &process.slots {
        let all = cores::slots(o).values().sum();
        out += "\nBy core and hart, of the core's slots\n";
        out += &lines(&by_hart(&slots.harts), 1);
        let cores = o.rows_of("core");
        let ran = slots.harts.chunk_by(|a, b| a.core == b.core).count();
        if ran < cores {
            out += &format!("  {} cores ran nothing\n", cores - ran);
        }
        out += "\nFunctions at which most slots were lost, of all slots\n";
        out += &lines(&by_function(&slots.functions, all), 1);
        out += "\nInstructions\n";
        out += &lines(&by_place(&slots.places, all), 1);
        data["places"] = json!(slots);
    }
    out += "\nMemory, coherence, durability\n";
    out += &levels.text();
    Some(Explanation { text: out, data })
}

fn share(part: u64, whole: u64) -> String {
    if part == 0 { "-".to_owned() } else { percent(ratio(part, whole)) }
}

/// A row a hart; those of a core sum to 100 %.
fn by_hart(harts: &[HartSlots]) -> comfy_table::Table {
    let mut table = plain_table();
    let causes: Vec<_> =
        CAUSES.iter().filter(|(cause, _)| harts.iter().any(|hart| hart.lost.contains_key(*cause))).collect();
    let mut header = vec!["core", "hart", "used"];
    header.extend(causes.iter().map(|(_, heading)| *heading));
    let columns = header.len();
    table.set_header(header);
    for core in harts.chunk_by(|a, b| a.core == b.core) {
        let of = |lost: &BTreeMap<String, u64>, cause: &str| lost.get(cause).copied().unwrap_or(0);
        let slots = core
            .iter()
            .flat_map(|hart| std::iter::once(hart.used).chain(causes.iter().map(|(cause, _)| of(&hart.lost, cause))));
        let rounded = shares(&slots.collect::<Vec<_>>());
        for (hart, rounded) in core.iter().zip(rounded.chunks(columns - 2)) {
            let mut row = vec![hart.core.to_string(), hart.hart.to_string()];
            row.extend(rounded.iter().map(|&share| tenths(share)));
            table.add_row(row);
        }
    }
    align_right(&mut table, 0..columns);
    table
}

fn by_function(functions: &[FunctionSlots], all: u64) -> comfy_table::Table {
    let mut table = plain_table();
    let shown = &functions[..functions.len().min(SHOWN)];
    let causes: Vec<_> =
        CAUSES.iter().filter(|(cause, _)| shown.iter().any(|function| function.lost.contains_key(*cause))).collect();
    let mut header = vec!["function", "lost"];
    header.extend(causes.iter().map(|(_, heading)| *heading));
    let columns = header.len();
    table.set_header(header);
    for function in shown {
        let mut row = vec![function.function.clone(), share(function.total(), all)];
        row.extend(causes.iter().map(|(cause, _)| share(function.lost.get(*cause).copied().unwrap_or(0), all)));
        table.add_row(row);
    }
    align_right(&mut table, 1..columns);
    table
}

fn by_place(places: &[PlaceSlots], all: u64) -> comfy_table::Table {
    let mut table = plain_table();
    for place in places.iter().take(SHOWN) {
        let heading = CAUSES.iter().find(|(cause, _)| *cause == place.cause).map_or("?", |(_, heading)| *heading);
        table.add_row([share(place.slots, all), heading.to_owned(), place.place.clone(), format!("{:#x}", place.pc)]);
    }
    align_right(&mut table, [0]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_simulation::outcome::SlotPlaces;
    use durawarp_simulation::outcome::sample;

    #[test]
    fn a_program_of_cpus_is_explained_by_cause_hart_function_and_instruction() {
        let counters = [
            ("instructions", 20_000),
            ("used_slots", 500),
            ("memory_slots", 250),
            ("persist_slots", 150),
            ("idle_slots", 100),
            ("loads", 4_000),
            ("l1_load_misses", 100),
            ("durable_fences", 4),
            ("durable_fence_cycles", 5_600),
        ];
        let mut outcome = sample::cores(&counters);
        assert!(!explain(&outcome).unwrap().text.contains("Functions"), "no places were kept");
        let lost = |causes: &[(&str, u64)]| causes.iter().map(|(cause, n)| ((*cause).to_owned(), *n)).collect();
        let process = outcome.process.as_mut().unwrap();
        process.slots = Some(SlotPlaces {
            harts: vec![HartSlots {
                hart: 0,
                core: 0,
                used: 500,
                lost: lost(&[("memory", 250), ("persist", 150), ("idle", 100)]),
                spinning_cycles: 125,
            }],
            functions: vec![FunctionSlots {
                function: "insert".to_owned(),
                lost: lost(&[("memory", 250), ("persist", 150)]),
            }],
            places: vec![PlaceSlots {
                pc: 0x10400,
                place: "insert+0x40".to_owned(),
                cause: "memory".to_owned(),
                slots: 250,
            }],
            left_out: (0, 0),
        });
        let Explanation { text, data } = explain(&outcome).unwrap();
        // 5,600 cycles of 1,400 MHz over 4 fences are 1,000 ns each.
        for part in [
            "memory   25.0 %",
            "0     0  50.0 %  25.0 %          15.0 %  10.0 %",
            "insert    40.0 %  25.0 %          15.0 %",
            "25.0 %  memory  insert+0x40  0x10400",
            "5.00 MPKI; 97.5 % of loads hit",
            "4 durable fences, 1000.0 ns each",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        assert_eq!(data["slots"]["memory"], 250);
        assert_eq!(data["places"]["functions"][0]["lost"]["persist"], 150);
        assert_eq!(data["levels"]["mean_fence_ns"], 1000.0);
    }
}
