//! A run on one screen: what the kernel took, where its warps waited, what moved, whether the result is
//! right, and how fast it was simulated.
//!
//! Every figure is of the whole run. Hit rates are hits over lookups; a lookup that joins a fill under way is
//! no hit. Bandwidths are bytes over simulated time, beside the peak of the data buses. Shares of warp slots
//! are of resident warp cycles.

use comfy_table::Table;

use super::backlog::backlog;
use super::console::{align_right, lines, plain_table};
use super::cores;
use super::energy;
use super::numbers::{bandwidth, count, estimated, percent, rate, seconds};
use super::program::logging;
use super::title::{plain, title};
use durawarp_simulation::outcome::validity::{Caveat, Kind};
use durawarp_simulation::outcome::{End, Outcome, ratio};

/// The accounts of warp slots, in the order shown: counter and what it means.
const SLOTS: [(&str, &str); 10] = [
    ("slots_issued", "issued"),
    ("slots_memory", "waiting for memory data"),
    ("slots_execution", "waiting for a result"),
    ("slots_memory_full", "load-store unit full"),
    ("slots_unit_busy", "unit busy"),
    ("slots_not_selected", "ready, not selected"),
    ("slots_barrier", "at a barrier"),
    ("slots_fence", "at a fence"),
    ("slots_persist", "waiting for persists"),
    ("slots_draining", "exited, draining"),
];

/// Launches shown one by one before the rest is summed up.
const LAUNCHES_SHOWN: usize = 8;

/// The run as text, ending in a newline.
pub fn summary(outcome: &Outcome) -> String {
    let mut out = format!("{}\n", title(outcome));
    let of_a_cpu = outcome.is_of_a_cpu();
    out += &lines(&if of_a_cpu { cores::facts(outcome) } else { facts(outcome) }, 1);
    if !outcome.launches.is_empty() {
        out += "\nLaunches\n";
        out += &lines(&launches(outcome), 1);
    }
    if outcome.launches.iter().any(|launch| !launch.counters.is_empty()) {
        out += "\nCounted by launch\n";
        out += &lines(&counted(outcome), 1);
    }
    // Where time went comes before what came of it.
    if of_a_cpu {
        out += "\nDispatch slots\n";
        out += &lines(&cores::stalls(outcome), 1);
    } else {
        out += "\nWarp slots\n";
        out += &lines(&slots(outcome), 1);
    }
    if let Some(persists) = &outcome.persists {
        out += "\nPersists\n";
        out += &lines(&super::persists::stages(persists), 1);
    }
    out += &energy::sections(outcome);
    if let Some(process) = &outcome.process {
        out += "\nProcess\n";
        out += &lines(&cores::process(process), 1);
    }
    out += "\nResult\n";
    out += &lines(&result(outcome), 1);
    out += "\nSimulation\n";
    out += &lines(&speed(outcome), 1);
    // Parameters without a source have a list of their own.
    let caveats: Vec<&Caveat> = outcome.validity.iter().filter(|caveat| caveat.kind != Kind::Unsourced).collect();
    if !caveats.is_empty() {
        out += "\nValidity\n";
        for Caveat { kind, text } in caveats {
            out += &wrapped(format!("{}: {text}", kind.name()).split(' ').map(str::to_owned));
        }
    }
    out += &assumptions(outcome);
    out
}

/// How many parameters have no source of their own, where they are listed, and those that the user set.
fn assumptions(outcome: &Outcome) -> String {
    let assumed = outcome.assumptions();
    if assumed.is_empty() {
        return String::new();
    }
    let (one, machine) = (assumed.len() == 1, &outcome.machine.name);
    let (have, its, list) = if one { (" has", "its", "tells which") } else { ("s have", "their", "lists them") };
    let of = match outcome.scheme_parameters.is_empty() {
        true => machine.clone(),
        false => format!("{machine} {}", outcome.scheme_name()),
    };
    let count = assumed.len();
    let mut out = format!("\n{count} parameter{have} no source of {its} own: `durawarp config check {of}` {list}\n");
    let set = assumed.iter().filter(|(_, parameter)| parameter.source.starts_with("user: --set"));
    let set: Vec<String> = set.map(|(key, parameter)| format!("{key}={}", plain(&parameter.value))).collect();
    if !set.is_empty() {
        out += &wrapped(std::iter::once("set here:".to_owned()).chain(set));
    }
    out
}

fn facts(o: &Outcome) -> Table {
    let sm = |name| o.total("sm", name);
    let l2 = |name| o.total("l2", name);
    let mc = |name| o.total("memory_controller", name);
    let mut table = plain_table();
    table.add_row(["cycles", &format!("{} at {} MHz", count(o.time.core_cycles), o.machine.core_khz as f64 / 1e3)]);
    if let Some(sampling) = &o.sampling {
        table.add_row(["estimated, sampled", &estimated(sampling)]);
    }
    table.add_row(["simulated time", &seconds(o.time.ps as f64 * 1e-12)]);
    let (warp, thread) = (o.warp_instructions(), sm("thread_instructions"));
    table.add_row(["instructions", &format!("{} warp, {} thread", count(warp), count(thread))]);
    let peak = f64::from(o.machine.peak_issue_per_cycle);
    let threads_per_cycle = ratio(thread, o.time.core_cycles);
    table.add_row([
        "IPC",
        &format!("{:.2} warp ({} of {peak} peak), {threads_per_cycle:.1} thread", o.ipc(), percent(o.ipc() / peak)),
    ]);
    // The memory system from the top down: L1, L2, media.
    let hits = |hits: u64, of: u64| format!("{} hit", percent(ratio(hits, of)));
    let (loads, stores) = (sm("l1_loads"), sm("l1_stores"));
    let l1 = format!(
        "{} loads, {}; {} stores; {} loads past it",
        count(loads),
        hits(sm("l1_hits"), loads),
        count(stores),
        count(sm("l1_bypasses"))
    );
    table.add_row(["L1", &l1]);
    let reads = format!("{} reads, {}", count(l2("reads")), hits(l2("read_hits"), l2("reads")));
    let writes = format!("{} writes, {}", count(l2("writes")), hits(l2("write_hits"), l2("writes")));
    table.add_row(["L2", &format!("{reads}; {writes}; {} atomics", count(l2("atomics")))]);
    let mut moved = 0;
    for (medium, read, written) in
        [("DRAM", "dram_read_bytes", "dram_written_bytes"), ("NVM", "nvm_read_bytes", "nvm_written_bytes")]
    {
        let (read, written) = (mc(read), mc(written));
        moved += read + written;
        let total = bandwidth(o.bytes_per_s(read + written));
        table.add_row([medium, &format!("{} B read, {} B written, {total}", count(read), count(written))]);
    }
    // Lines about persistency stand only where the program has some.
    if let Some(logging) = logging(o) {
        table.add_row(["program", &logging]);
    }
    let (stores, logs, fences) = (sm("pm_stores"), sm("pm_log_stores"), sm("pm_fences"));
    if stores + fences + sm("pm_write_backs") > 0 {
        let (write_backs, persists) = (count(sm("pm_write_backs")), count(sm("persists")));
        let of_logs = match (logs, sm("pm_log_stores_dropped")) {
            (0, _) => String::new(),
            (logs, 0) => format!(" ({} of logs)", count(logs)),
            (logs, dropped) => {
                format!(" ({} of logs, {} of these left out by the scheme)", count(logs), count(dropped))
            }
        };
        let text = format!(
            "{} stores{of_logs}, {write_backs} write-backs, {} fences; {persists} lines persisted",
            count(stores),
            count(fences)
        );
        table.add_row(["persistency", &text]);
    }
    // `moved` has the bytes of both media by now.
    let peak = o.machine.peak_memory_bytes_per_s as f64;
    let used = o.bytes_per_s(moved);
    if let Some(left) = o.backlog.as_ref().filter(|backlog| backlog.is_some()) {
        table.add_row(["left at the end", &backlog(left, o.time.ticks)]);
    }
    table.add_row(["memory buses", &format!("{} of {} peak", percent(used / peak), bandwidth(peak))]);
    table
}

fn launches(o: &Outcome) -> Table {
    let mut table = plain_table();
    // Only where L1 and shared memory are one has each launch its own capacities.
    let unified = o.launches.iter().any(|launch| launch.l1_kb.is_some());
    let columns = ["kernel", "grid", "block", "CTAs/SM", "limited by"];
    let mut split = if unified { vec!["L1 KiB", "shared KiB"] } else { Vec::new() };
    // And a stream only where there are several.
    let streams = o.launches.iter().any(|launch| launch.stream.is_some());
    if streams {
        split.push("stream");
    }
    table.set_header(columns.iter().chain(&split).chain(&["start cycle", "cycles"]).copied());
    align_right(&mut table, std::iter::once(3).chain(5..7 + split.len()));
    let dims = |d: [u32; 3]| match d {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    };
    for launch in o.launches.iter().take(LAUNCHES_SHOWN) {
        let mut row = vec![
            launch.kernel.clone(),
            dims(launch.grid),
            dims(launch.block),
            launch.ctas_per_sm.to_string(),
            launch.limited_by.clone(),
        ];
        if unified {
            row.extend([launch.l1_kb, launch.shared_kb].map(|kb| kb.map_or_else(String::new, |kb| kb.to_string())));
        }
        if streams {
            row.push(launch.stream.unwrap_or_default().to_string());
        }
        row.extend([count(launch.start.core_cycles), count(launch.length.core_cycles)]);
        table.add_row(row);
    }
    // A program may launch thousands of kernels: what is not shown is summed.
    if let Some(rest) = o.launches.get(LAUNCHES_SHOWN..).filter(|rest| !rest.is_empty()) {
        let cycles: u64 = rest.iter().map(|launch| launch.length.core_cycles).sum();
        let mut row = vec![String::new(); columns.len() + split.len() + 2];
        row[0] = format!("{} more", rest.len());
        row[columns.len() + split.len() + 1] = count(cycles);
        table.add_row(row);
    }
    table
}

/// What each launch did, and below them what was counted after the last.
fn counted(o: &Outcome) -> Table {
    let mut table = plain_table();
    table.set_header(["", "kernel", "warp instr.", "IPC", "L1 loads", "hit", "L2 reads", "hit", "DRAM B", "NVM B"]);
    align_right(&mut table, [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    let bytes = |of: &dyn Fn(&str) -> u64, medium: &str| {
        ["read", "written"].iter().map(|way| of(&format!("memory_controller.{medium}_{way}_bytes"))).sum::<u64>()
    };
    // A row is made of counters by name: of a launch, or of what is left of the totals.
    let mut row = |number: String, kernel: &str, cycles: Option<u64>, of: &dyn Fn(&str) -> u64| {
        table.add_row([
            number,
            kernel.to_owned(),
            count(of("sm.warp_instructions")),
            cycles.map_or_else(String::new, |cycles| format!("{:.2}", ratio(of("sm.warp_instructions"), cycles))),
            count(of("sm.l1_loads")),
            percent(ratio(of("sm.l1_hits"), of("sm.l1_loads"))),
            count(of("l2.reads")),
            percent(ratio(of("l2.read_hits"), of("l2.reads"))),
            count(bytes(of, "dram")),
            count(bytes(of, "nvm")),
        ]);
    };
    for (number, launch) in (1..).zip(&o.launches) {
        let of = |name: &str| launch.counters.get(name).copied().unwrap_or(0);
        row(format!("{number}"), &launch.kernel, Some(launch.length.core_cycles), &of);
    }
    let after = |name: &str| {
        let (kind, counter) = name.split_once('.').unwrap_or_default();
        // An outcome that was changed may count less in all than by launch.
        let of_launches = o.launches.iter().filter_map(|launch| launch.counters.get(name));
        of_launches.fold(o.count_of(kind, counter).unwrap_or(0), |left, &of_one| left.saturating_sub(of_one))
    };
    row(String::new(), "after the last", None, &after);
    table
}

fn slots(o: &Outcome) -> Table {
    let resident = o.total("sm", "slots_resident");
    let mut table = plain_table();
    let share = ratio(resident, o.time.core_cycles) / o.machine.warp_slots as f64;
    table.add_row(["resident".to_owned(), percent(share), "of all warp slots; of these:".to_owned()]);
    for (counter, meaning) in SLOTS {
        let value = o.total("sm", counter);
        if value > 0 {
            let bar = "#".repeat((ratio(value, resident) * 40.0).round() as usize);
            table.add_row([meaning.to_owned(), percent(ratio(value, resident)), bar]);
        }
    }
    align_right(&mut table, [1]);
    table
}

fn result(o: &Outcome) -> Table {
    let mut table = plain_table();
    let end = match &o.end {
        End::Finished => "finished".to_owned(),
        End::Deadlock { waits } => format!("DEADLOCK\n{}", waits.join("\n")),
        End::Repeats(repeats) => {
            let head = format!("REPEATS ITSELF FOR EVER: no value has changed since cycle {}", count(repeats.since));
            std::iter::once(head).chain(repeats.lines()).collect::<Vec<_>>().join("\n")
        }
        End::Cut { waits } => {
            let told = "cut: the cycle limit was reached; figures are of the part that ran";
            let head = if waits.is_empty() { &[told][..] } else { &[told, "waited longest:"] };
            head.iter().copied().chain(waits.iter().map(String::as_str)).collect::<Vec<_>>().join("\n")
        }
        End::Stopped => "stopped; figures are of the part that ran".to_owned(),
        End::Failed { error } => format!("FAILED: {error}"),
        End::Panicked { message } => format!("SIMULATOR DEFECT: {message}"),
    };
    table.add_row(["end", &end]);
    // Only a run that has finished is checked.
    let check = match &o.verification {
        None if o.workload["trace"].is_object() => "none: a trace has no values".to_owned(),
        None => "not done: the run did not finish".to_owned(),
        Some(v) if v.passed => format!("passed{}", checks_in_words(&v.checks)),
        Some(v) => format!("FAILED\n{}", v.failures.join("\n")),
    };
    table.add_row(["result check", &check]);
    if let Some(races) = &o.races {
        let told: Vec<String> = races.iter().map(ToString::to_string).collect();
        table.add_row(["races", &if told.is_empty() { "none found".to_owned() } else { told.join("\n") }]);
    }
    table.add_row(["memory digest", &o.memory_digest]);
    table.add_row(["digest", &o.digest]);
    table
}

/// " (C: 262144 elements, functional: ...)".
fn checks_in_words(checks: &serde_json::Value) -> String {
    let words: Vec<String> = checks["checks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|check| {
            let name = check["name"].as_str().unwrap_or("?");
            match (check["outcome"].as_str(), check["compared"].as_u64()) {
                (Some("skipped"), _) => format!("{name}: skipped"),
                (_, Some(compared)) => format!("{name}: {}", count(compared)),
                _ => name.to_owned(),
            }
        })
        .collect();
    // Why a check was skipped: what was not judged is told.
    let reason = |check: &serde_json::Value| {
        let skipped = check["outcome"].as_str() == Some("skipped");
        let message = check["message"].as_str().filter(|_| skipped)?;
        Some(format!("\n{}: {message}", check["name"].as_str().unwrap_or("?")))
    };
    let reasons: String = checks["checks"].as_array().into_iter().flatten().filter_map(reason).collect();
    if words.is_empty() { String::new() } else { format!(" (elements compared: {}){reasons}", words.join(", ")) }
}

fn speed(o: &Outcome) -> Table {
    let h = &o.host;
    let mut table = plain_table();
    table.add_row(["wall time", &seconds(h.wall_s)]);
    // Host figures are the only ones that no two runs share.
    let what = if o.is_of_a_cpu() { "instructions" } else { "warp instructions" };
    let speed = format!("{}cycles/s, {}{what}/s", rate(o.cycles_per_s()), rate(o.warp_instructions_per_s()));
    table.add_row(["speed", &speed]);
    let blocked =
        if h.threads > 1 { format!(", {} of their time waiting", percent(h.blocked_share)) } else { String::new() };
    table.add_row(["threads", &format!("{}{blocked}", h.threads)]);
    let e = &o.engine;
    let per_round = ratio(e.events, e.rounds);
    let engine = format!(
        "{} events in {} rounds ({per_round:.0} a round), parallelism bound {:.1}",
        count(e.events),
        count(e.rounds),
        e.parallelism_bound
    );
    table.add_row(["engine", &engine]);
    if h.functional_s > 0.0 {
        let times = h.wall_s / h.functional_s;
        table.add_row([
            "functional run",
            &format!("{}; the simulation took {times:.1} times as long", seconds(h.functional_s)),
        ]);
    }
    table
}

/// Words in lines of at most 100 columns.
fn wrapped(words: impl Iterator<Item = String>) -> String {
    let (mut out, mut line) = (String::new(), String::from(" "));
    for word in words {
        if line.len() + word.len() > 100 {
            out += &format!("{line}\n");
            line = String::from(" ");
        }
        line += " ";
        line += &word;
    }
    out + &line + "\n"
}

#[cfg(test)]
mod tests;
