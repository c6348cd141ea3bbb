//! A run of a program of CPUs: instructions and misses, where dispatch slots went, what the process left; and
//! several such runs beside each other.
//!
//! IPC is of all cores together. MPKI are misses per 1,000 retired instructions: of L1s, loads whose line was
//! not there and stores whose line could not be written; of the shared cache, lines fetched from memory.
//! Slots are what cores could have dispatched; each slot has one account, so that the shares printed sum to
//! 100.0 %: what rounding leaves goes to the shares that it cut most.

use std::collections::BTreeMap;

use comfy_table::Table;

use super::console::{align_right, lines, plain_table};
use super::energy;
use super::numbers::{bandwidth, count, estimated, percent, seconds};
use super::title::{origin, subject};
use durawarp_plot::{Axis, Better, Figure, Sheet, Stack, StackGroup, StackedBars};
use durawarp_riscv::syscalls::number::described;
use durawarp_simulation::outcome::{FileOutcome, Outcome, ProcessOutcome, ratio};

/// Lines of standard output that are shown.
const LINES_SHOWN: usize = 8;

/// What others are compared with where it fits the machine.
const BASE: &str = "base";

/// Tenths of a percent in a whole.
const TENTHS: u64 = 1000;

/// An account of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    /// Its counter, without `_slots`.
    name: String,
    /// What the slots were spent on.
    meaning: String,
    slots: u64,
    /// Share of all slots, in tenths of a percent: those of all accounts sum to [`TENTHS`].
    tenths: u64,
}

/// The accounts of a run's slots, in the order in which cores count them; none of a run without slots.
fn accounts(o: &Outcome) -> Vec<Account> {
    let Some(table) = o.counters.iter().find(|table| table.kind == "core") else { return Vec::new() };
    let of = |(name, doc): (&String, &String)| {
        let meaning = doc.rsplit_once(" (").map_or(doc.as_str(), |(meaning, _)| meaning).to_owned();
        let own = name.strip_suffix("_slots")?.to_owned();
        Some(Account { name: own, meaning, slots: table.total(name), tenths: 0 })
    };
    let mut accounts: Vec<Account> = table.names.iter().zip(&table.docs).filter_map(of).collect();
    if accounts.iter().all(|account| account.slots == 0) {
        return Vec::new();
    }
    let slots: Vec<u64> = accounts.iter().map(|account| account.slots).collect();
    accounts.iter_mut().zip(shares(&slots)).for_each(|(account, share)| account.tenths = share);
    accounts
}

/// Shares in tenths of a percent that sum to [`TENTHS`]; zeros where there is nothing to share.
pub(super) fn shares(slots: &[u64]) -> Vec<u64> {
    let all: u128 = slots.iter().map(|&slots| u128::from(slots)).sum();
    if all == 0 {
        return vec![0; slots.len()];
    }
    let scaled = |slots: u64| u128::from(slots) * u128::from(TENTHS);
    let mut shares: Vec<u64> = slots.iter().map(|&slots| (scaled(slots) / all) as u64).collect();
    // What rounding leaves goes to those that it cut most.
    let mut cut: Vec<(u128, usize)> = slots.iter().zip(0..).map(|(&slots, at)| (scaled(slots) % all, at)).collect();
    let left = TENTHS - shares.iter().sum::<u64>();
    cut.sort_by_key(|&(cut, at)| (std::cmp::Reverse(cut), at));
    cut.iter().take(left as usize).for_each(|&(_, at)| shares[at] += 1);
    shares
}

/// Slots by account, of all cores.
pub(super) fn slots(o: &Outcome) -> BTreeMap<String, u64> {
    accounts(o).into_iter().map(|account| (account.name, account.slots)).collect()
}

pub(super) fn tenths(tenths: u64) -> String {
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A counter, 0 where the outcome has none of that name.
fn of(o: &Outcome, kind: &str, name: &str) -> u64 {
    o.count_of(kind, name).unwrap_or(0)
}

/// Per 1,000 instructions.
fn per_kilo(o: &Outcome, events: u64) -> f64 {
    ratio(events * 1000, o.warp_instructions())
}

fn l1_misses(o: &Outcome) -> u64 {
    of(o, "core", "l1_load_misses") + of(o, "core", "l1_store_misses")
}

/// What the run took and moved.
pub(super) fn facts(o: &Outcome) -> Table {
    let core = |name| of(o, "core", name);
    let llc = |name| of(o, "llc", name);
    let cores = o.rows_of("core");
    let mut table = plain_table();
    let mut row = |name: &str, text: String| {
        table.add_row([name, &text]);
    };
    row("cycles", format!("{} at {} MHz", count(o.time.core_cycles), o.machine.core_khz as f64 / 1e3));
    if let Some(sampling) = &o.sampling {
        row("estimated, sampled", estimated(sampling));
    }
    if let Some(region) = &o.region {
        let (from, to) = (count(region.from_instruction), count(region.to_instruction));
        let all = count(region.program_instructions);
        row("region of interest", format!("instructions {from} to {to} of {all} ({})", region.of));
    }
    row("simulated time", seconds(o.time.ps as f64 * 1e-12));
    row("instructions", format!("{} on {cores} cores", count(o.warp_instructions())));
    let peak = f64::from(o.machine.peak_issue_per_cycle);
    // Of all cores, as the machine has one clock of them.
    row("IPC", format!("{:.2}, all cores together ({} of {peak} peak)", o.ipc(), percent(o.ipc() / peak)));
    let (l1, memory) = (per_kilo(o, l1_misses(o)), per_kilo(o, llc("fetches")));
    row("MPKI", format!("{l1:.2} of the L1s, {memory:.2} of the shared cache"));
    let branches = core("branches");
    let wrong = percent(ratio(core("mispredictions"), branches));
    row("branches", format!("{}, {wrong} predicted wrongly", count(branches)));
    // The memory system from the top down.
    let hits = |misses: u64, of: u64| percent(1.0 - ratio(misses.min(of), of));
    let (loads, stores) = (core("loads"), core("stores"));
    let l1 = format!(
        "{} loads, {} hit; {} stores, {} hit; {} atomics",
        count(loads),
        hits(core("l1_load_misses"), loads),
        count(stores),
        hits(core("l1_store_misses"), stores),
        count(core("atomics"))
    );
    row("L1", l1);
    let gets = llc("gets");
    let shared =
        format!("{} lines asked for, {} hit; {} probes", count(gets), percent(ratio(llc("get_hits"), gets)), {
            count(llc("probes"))
        });
    row("shared cache", shared);
    let mut moved = 0;
    for (medium, read, written) in
        [("DRAM", "dram_read_bytes", "dram_written_bytes"), ("NVM", "nvm_read_bytes", "nvm_written_bytes")]
    {
        let (read, written) = (of(o, "memory_controller", read), of(o, "memory_controller", written));
        moved += read + written;
        let total = bandwidth(bytes_per_s(o, read + written));
        row(medium, format!("{} B read, {} B written, {total}", count(read), count(written)));
    }
    // Lines about persistency and the system stand only where the program has some.
    let (cleans, dropped, fences) = (core("cleans"), core("dropped_cleans"), core("durable_fences"));
    if cleans + dropped + fences > 0 {
        let dropped = if dropped > 0 { format!(", {} dropped", count(dropped)) } else { String::new() };
        row("persistency", format!("{} lines cleaned{dropped}; {} fences waited", count(cleans), count(fences)));
    }
    let calls = of(o, "os", "calls");
    if calls > 0 {
        row("system calls", format!("{}; {} threads started", count(calls), count(of(o, "os", "threads"))));
    }
    if let Some(text) = clients(o) {
        row("clients", text);
    }
    if let Some(text) = verbs(o) {
        row("verbs", text);
    }
    if let Some(left) = o.backlog.as_ref().filter(|backlog| backlog.is_some()) {
        row("left at the end", super::backlog::backlog(left, o.time.ticks));
    }
    let peak = o.machine.peak_memory_bytes_per_s as f64;
    row("memory buses", format!("{} of {} peak", percent(bytes_per_s(o, moved) / peak), bandwidth(peak)));
    table
}

/// Bytes moved a second. Clients may go on when the program is over: time is until the last of them is done.
fn bytes_per_s(o: &Outcome, bytes: u64) -> f64 {
    let busy_ns = o.counters.iter().find(|table| table.kind == "client").and_then(|table| {
        let at = table.names.iter().position(|name| name == "busy_ns")?;
        table.rows.iter().map(|row| row[at]).max()
    });
    let ps = o.time.ps.max(busy_ns.unwrap_or_default() * 1000);
    o.bytes_per_s(bytes) * ratio(o.time.ps, ps)
}

/// What clients over the network did, each in its own time; none without any.
fn clients(o: &Outcome) -> Option<String> {
    let table = o.counters.iter().find(|table| table.kind == "client")?;
    let [transactions, writes, latency, busy] = ["transactions", "writes", "latency_ns", "busy_ns"]
        .map(|name| table.names.iter().position(|of| of == name).unwrap_or_default());
    let a_second: f64 = table.rows.iter().map(|row| ratio(row[transactions] * 1_000_000_000, row[busy])).sum();
    let total = |at: usize| table.rows.iter().map(|row| row[at]).sum::<u64>();
    Some(format!(
        "{}: {} transactions, {} wrote; {:.2} us to persist one; {:.3} M a second; {} verbs, {} acknowledged",
        table.rows.len(),
        count(total(transactions)),
        count(total(writes)),
        ratio(total(latency), total(writes)) / 1e3,
        a_second / 1e6,
        count(of(o, "client", "verbs")),
        count(of(o, "nic", "acks"))
    ))
}

/// What servers posted to each other; none where they are not linked.
fn verbs(o: &Outcome) -> Option<String> {
    let servers = o.counters.iter().find(|table| table.kind == "poster")?.rows.len();
    let [verbs, bytes, acks, latency] = ["verbs", "bytes", "acks", "latency_ns"].map(|name| of(o, "poster", name));
    Some(format!(
        "{} of {servers} servers to each other, {} B; {} acknowledged, {:.2} us from a post to that",
        count(verbs),
        count(bytes),
        count(acks),
        ratio(latency, acks) / 1e3
    ))
}

/// Where dispatch slots went.
pub(super) fn stalls(o: &Outcome) -> Table {
    let mut table = plain_table();
    for Account { name, meaning, slots, tenths: share } in accounts(o) {
        if slots > 0 {
            table.add_row([name, tenths(share), "#".repeat((share as f64 / 25.0).round() as usize), meaning]);
        }
    }
    align_right(&mut table, [1]);
    table
}

/// What the process left.
pub(super) fn process(process: &ProcessOutcome) -> Table {
    let mut table = plain_table();
    let code = process.exit_code.map_or_else(|| "none: it did not end".to_owned(), |code| code.to_string());
    table.add_row(["exit code", &code]);
    for (name, text) in [("standard output", &process.stdout), ("standard error", &process.stderr)] {
        if !text.is_empty() {
            let all = text.lines().count();
            let mut shown: Vec<&str> = text.lines().take(LINES_SHOWN).collect();
            let more = format!("({} more lines; --json has all)", all.saturating_sub(LINES_SHOWN));
            if all > LINES_SHOWN {
                shown.push(&more);
            }
            table.add_row([name, &shown.join("\n")]);
        }
    }
    if !process.files.is_empty() {
        // Their names: content is for `--json` and `--file-out`.
        let of = |file: &FileOutcome| format!("{} ({} B)", file.path, count(file.bytes));
        let mut shown: Vec<String> = process.files.iter().take(LINES_SHOWN).map(of).collect();
        let more = process.files.len() - shown.len();
        if more > 0 {
            shown.push(format!("({more} more; --json has all)"));
        }
        table.add_row(["files", &shown.join("\n")]);
    }
    if !process.unsupported_calls.is_empty() {
        let of = |(number, times): &(u64, u64)| format!("{}, {} times", described(*number), count(*times));
        let calls: Vec<String> = process.unsupported_calls.iter().map(of).collect();
        let told = format!("not served: {}", calls.join("; "));
        table.add_row(["system calls", &told]);
    }
    table
}

/// Runs of one program, a row each; times are relative to those of `base`.
pub(super) fn comparison(base: &Outcome, runs: &[&Outcome]) -> String {
    let mut table = plain_table();
    let (first, over) = (base.scheme_name(), format!("x {}", base.scheme_name()));
    // The columns are base's accounts: those of the others are the same, as cores count them.
    let named: Vec<String> = accounts(base).into_iter().map(|account| account.name).collect();
    let mut header: Vec<String> =
        ["scheme", "cycles", &over, "IPC", "cleaned", "fences", "NVM B", "energy"].map(str::to_owned).to_vec();
    header.extend(named.iter().cloned());
    let columns = header.len();
    table.set_header(header);
    for run in runs {
        let mut row = vec![
            run.scheme_name().to_owned(),
            count(run.time.core_cycles),
            format!("{:.3}", ratio(run.time.core_cycles, base.time.core_cycles)),
            format!("{:.2}", run.ipc()),
            count(of(run, "core", "cleans")),
            count(of(run, "core", "durable_fences")),
            count(of(run, "memory_controller", "nvm_written_bytes")),
            energy::total(run),
        ];
        let own = accounts(run);
        let share = |name: &String| own.iter().find(|account| account.name == *name).map_or(0, |found| found.tenths);
        row.extend(named.iter().map(|name| tenths(share(name))));
        table.add_row(row);
    }
    align_right(&mut table, 1..columns);
    let text = |key: &str| base.workload[key].as_str().unwrap_or("?").to_owned();
    let mut out =
        format!("{} ({}) on {}\n{}\n", text("workload"), text("profile"), base.machine.name, lines(&table, 1));
    if base.scheme != BASE {
        out += &format!("  {over}: cycles over those of {first}, as {BASE} does not fit the machine;\n");
    }
    out += "  cleaned: lines written back for the program; fences: those that waited; NVM B: bytes written to NVM;\n";
    out += "  energy: of what is counted, `durawarp run` tells its parts;\n";
    out += "  then shares of dispatch slots, which sum to 100 %:\n";
    for Account { name, meaning, .. } in accounts(base) {
        out += &format!("    {name}: {meaning}\n");
    }
    out
}

/// Times over that of `base` as bars, each divided by where its dispatch slots went.
pub(super) fn comparison_figure(base: &Outcome, runs: &[&Outcome]) -> Figure {
    let bar = |run: &&Outcome| {
        let relative = ratio(run.time.core_cycles, base.time.core_cycles);
        let values: Vec<f64> =
            accounts(run).iter().map(|account| relative * account.tenths as f64 / TENTHS as f64).collect();
        StackGroup { name: run.scheme_name().to_owned(), bars: vec![Stack::of("", &values)] }
    };
    StackedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().titled(&subject(base)).origin(&origin(base)).better(Better::Lower),
        axis: Axis::new(&format!("time over {}, by where dispatch slots went", base.scheme_name()), ""),
        parts: accounts(base).into_iter().map(|account| account.name).collect(),
        groups: runs.iter().map(bar).collect(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_base::stats;
    use durawarp_simulation::outcome::sample::cores;

    #[test]
    fn shares_of_slots_sum_to_a_hundred_percent_however_they_round() {
        // A third each: two of them are cut more than the third, or all alike.
        let thirds = accounts(&cores(&[("used_slots", 1), ("memory_slots", 1), ("idle_slots", 1)]));
        assert_eq!(thirds.iter().map(|account| account.tenths).collect::<Vec<_>>(), [334, 333, 333]);
        // 66.66 %, 33.28 %, 0.06 %: the last is cut most.
        let most = accounts(&cores(&[("used_slots", 6666), ("memory_slots", 3328), ("idle_slots", 6)]));
        assert_eq!(most.iter().map(|account| account.tenths).collect::<Vec<_>>(), [667, 333, 0]);
        assert!(accounts(&cores(&[("used_slots", 0)])).is_empty());
    }

    #[test]
    fn bandwidths_are_until_the_last_client_is_done() {
        let mut outcome = cores(&[("instructions", 1)]);
        let alone = bytes_per_s(&outcome, 1000);
        assert_eq!(alone, outcome.bytes_per_s(1000));
        // The program takes 4 of 10 parts of the time.
        let until = outcome.time.ps / 400;
        outcome.time.ps = until * 400;
        let alone = outcome.bytes_per_s(1000);
        outcome.counters.push(stats::Table {
            kind: "client".to_owned(),
            names: vec!["busy_ns".to_owned()],
            docs: vec![String::new()],
            rows: vec![vec![1], vec![until]],
        });
        assert!((bytes_per_s(&outcome, 1000) / alone - 0.4).abs() < 1e-9);
    }

    #[test]
    fn a_run_is_told_with_ipc_mpki_slots_exit_code_and_output() {
        let counters = [
            ("instructions", 20_000),
            ("used_slots", 600),
            ("memory_slots", 400),
            ("loads", 4_000),
            ("l1_load_misses", 100),
            ("stores", 1_000),
            ("l1_store_misses", 20),
            ("branches", 2_000),
            ("mispredictions", 50),
        ];
        let mut outcome = cores(&counters);
        let told = super::super::summary(&outcome);
        // 20,000 instructions in 10,000 cycles; 120 misses; the peak of the sample is 12.
        for part in [
            "2.00, all cores together (16.7 % of 12 peak)",
            "6.00 of the L1s",
            "2000, 2.5 % predicted wrongly",
            "used    60.0 %",
            "memory  40.0 %",
            "exit code        3",
            "hello",
        ] {
            assert!(told.contains(part), "`{part}` is not in\n{told}");
        }
        let lines: String = (0..12).map(|line| format!("line {line}\n")).collect();
        if let Some(process) = &mut outcome.process {
            process.stdout = lines;
        }
        let told = super::super::summary(&outcome);
        assert!(told.contains("line 7") && !told.contains("line 8") && told.contains("(4 more lines"), "{told}");
        assert!(comparison(&outcome, &[&outcome]).contains("60.0 %"));
    }
}
