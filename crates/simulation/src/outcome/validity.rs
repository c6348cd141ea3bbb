//! What may make a result worth less than it looks: parameters without a source, features that were
//! configured and never exercised, limits that were hit, counters that could not count on.
//!
//! A pure function of an outcome, so that any result can be judged again. Nothing here is an error: a run
//! with caveats may be just what was wanted. Where a share decides, its bound (`MOSTLY`, `FULL`) was chosen
//! for lack of a source. Left out: whether the result is right (`verification`), what is odd about the
//! program (`warnings`), and the journal of a crash test, which outcomes do not hold.

pub use super::caveat::{Caveat, Kind};
use super::region_bound::RegionBound;
use super::{End, FromCheckpoint, Launch, Outcome, Parameter, Sampling, SimulatedRegion, Streams, ratio};
use durawarp_persist::selection::Selection;
use durawarp_riscv::syscalls::number::described;

/// From this share on something happens mostly. Chosen.
const MOSTLY: f64 = 0.5;

/// From this mean occupancy on a queue is full all the time. Chosen.
const FULL: f64 = 0.9;

/// Names of parameters that a text has before it only counts.
const SHOWN: usize = 50;

/// Every caveat of an outcome, kind by kind.
pub fn of(outcome: &Outcome) -> Vec<Caveat> {
    let judge = Judge { outcome, selection: outcome.selection() };
    let of_kind = |kind: Kind, texts: Vec<String>| texts.into_iter().map(move |text| Caveat { kind, text });
    let all = [
        of_kind(Kind::Sampled, outcome.sampling.iter().map(Sampling::told).collect()),
        of_kind(Kind::Region, outcome.region.iter().filter_map(SimulatedRegion::told).collect()),
        of_kind(Kind::Forked, outcome.from_checkpoint.iter().map(FromCheckpoint::told).collect()),
        of_kind(Kind::Trace, judge.trace()),
        of_kind(Kind::Undurable, judge.undurable()),
        of_kind(Kind::Unsourced, judge.unsourced()),
        of_kind(Kind::Unexercised, judge.unexercised()),
        of_kind(Kind::Cap, judge.caps()),
        of_kind(Kind::Saturated, judge.saturated()),
        of_kind(Kind::Unmodelled, judge.unmodelled()),
    ];
    all.into_iter().flatten().collect()
}

/// The words of everything that is to be said about an outcome, each once: of its caveats, and "program"
/// where its program is odd.
pub fn words(outcome: &Outcome) -> String {
    let has = |kind: Kind| outcome.validity.iter().any(|caveat| caveat.kind == kind);
    let words = Kind::ALL.iter().filter(|(kind, _)| has(*kind)).map(|(_, name)| *name);
    words.chain((!outcome.warnings.is_empty()).then_some("program")).collect::<Vec<_>>().join(" ")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn listed<K: AsRef<str>>(keys: &[K]) -> String {
    let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
    match keys.len() {
        0..=SHOWN => keys.join(", "),
        count => format!("{} and {} more", keys[..SHOWN].join(", "), count - SHOWN),
    }
}

struct Judge<'a> {
    outcome: &'a Outcome,
    selection: Option<Selection>,
}

impl Judge<'_> {
    /// Counters' sum, 0 where the outcome has no such counter.
    fn count(&self, kind: &str, names: &[&str]) -> u64 {
        let Some(table) = self.outcome.counters.iter().find(|table| table.kind == kind) else { return 0 };
        let columns = names.iter().filter_map(|name| table.names.iter().position(|own| own == name));
        let values = columns.flat_map(|column| table.rows.iter().map(move |row| row[column]));
        // A counter may be full.
        values.fold(0, u64::saturating_add)
    }

    fn sm(&self, names: &[&str]) -> u64 {
        self.count("sm", names)
    }

    fn l2(&self, names: &[&str]) -> u64 {
        self.count("l2", names)
    }

    fn mc(&self, names: &[&str]) -> u64 {
        self.count("memory_controller", names)
    }

    /// Persistency operations of the program and of clients.
    fn persistency(&self) -> u64 {
        let of_cores = ["cleans", "dropped_cleans", "durable_fences", "persistency_hints", "regions"];
        let of_program = self.sm(&["pm_store_accesses", "pm_write_backs", "pm_fences"]) + self.count("core", &of_cores);
        of_program + self.count("nic", &["lines"])
    }

    /// What a trace does not tell.
    fn trace(&self) -> Vec<String> {
        let trace = &self.outcome.workload["trace"];
        if !trace.is_object() {
            return Vec::new();
        }
        let mut texts = vec![
            "timing without values: instructions, lanes and addresses are those of the traced run; nothing was \
             computed, and no result was checked"
                .to_owned(),
        ];
        let counts = |key: &str| {
            let counts = trace[key].as_object().into_iter().flatten();
            counts.map(|(name, count)| format!("{count} {name}")).collect::<Vec<String>>()
        };
        // What is timed otherwise than the trace says, and then what of the list does not run.
        let stood_in = counts("stood_in");
        if !stood_in.is_empty() {
            let text = "timed as others, for want of a unit or a time; what is a MOV or a NOP accesses no memory";
            texts.push(format!("{text}: {}", listed(&stood_in)));
        }
        let renamed = counts("renamed");
        if !renamed.is_empty() {
            texts.push(format!("by the table of opcodes timed as others: {}", listed(&renamed)));
        }
        if let Some(skipped @ 1..) = trace["skipped"].as_u64() {
            let chosen = trace["chosen"].as_str().unwrap_or_default();
            texts.push(format!("kernels {chosen} were chosen; {skipped} others of the list were skipped"));
        }
        let ignored = counts("ignored_lines");
        if !ignored.is_empty() {
            texts.push(format!("lines of the list that are neither a kernel nor a copy: {}", listed(&ignored)));
        }
        if let Some(warps @ 1..) = trace["empty_warps"].as_u64() {
            texts.push(format!(
                "{warps} warps have no instruction in the trace; each executes an exit, which is counted"
            ));
        }
        if let Some(warps @ 1..) = trace["unended_warps"].as_u64() {
            texts.push(format!("{warps} warps have no exit in the trace; each executes one, which is counted"));
        }
        // What goes on beside warps and is not in the trace.
        if let Some(launches @ 1..) = trace["barriers_unknown"].as_u64() {
            texts.push(format!(
                "in {launches} launches barriers in shared memory order nothing, since the trace does not say all that they \
                 count; what the copy engine moves is moved, and nobody waits for it"
            ));
        }
        if let Some(launches @ 1..) = trace["clusters_unknown"].as_u64() {
            texts.push(format!(
                "in {launches} launches CTAs of clusters begin one by one, since the trace has not all of them"
            ));
        }
        texts
    }

    /// What its fences do not make durable, though the program took it for that.
    fn undurable(&self) -> Vec<String> {
        let ended = self.is_set_to("persist.clwb", "l2") && !self.is_set_to("persist.domain", "eadr");
        let text = "persist.clwb = l2: a write-back ends at the L2, so that what is fenced is durable only once its line has left \
                    for memory; `durawarp crash` tells what a power failure leaves";
        if ended && self.sm(&["pm_write_backs"]) > 0 { vec![text.to_owned()] } else { Vec::new() }
    }

    /// Whether a parameter had a part in the run, as far as counters tell.
    fn had_a_part(&self, key: &str) -> bool {
        let (table, name) = key.split_once('.').unwrap_or(("", key));
        if self.why_idle(key).is_some() {
            return false;
        }
        match table {
            "energy" if name.starts_with("nvm_") => self.mc(&["nvm_reads", "nvm_writes"]) > 0,
            "nvm" => self.mc(&["nvm_reads", "nvm_writes"]) > 0,
            "dram" => self.mc(&["dram_reads", "dram_writes"]) > 0,
            "shared" => self.sm(&["shared_accesses"]) > 0,
            "l1" if name == "sfifo_entries" => self.sm(&["l1_cleanings"]) > 0,
            "l1" => self.sm(&["l1_loads", "l1_stores", "l1_bypasses"]) > 0,
            "persist" => self.persistency() > 0,
            "latency" | "interval" => {
                let class = name.strip_suffix("_cycles").unwrap_or(name);
                self.sm(&[&format!("{class}_instructions")]) > 0
            }
            "l2" if name == "atomic_pass_cycles" => self.l2(&["atomics"]) > 0,
            "controller" if name.starts_with("drain_") || name == "write_queue_entries" => {
                self.mc(&["dram_writes", "nvm_writes"]) > 0
            }
            _ if self.outcome.scheme_parameters.contains_key(key) => self.persistency() > 0,
            _ => true,
        }
    }

    /// A setting of the machine, as a word.
    fn is_set_to(&self, key: &str, word: &str) -> bool {
        self.outcome.machine.parameters.get(key).is_some_and(|parameter| parameter.value.as_str() == Some(word))
    }

    /// What NVM takes of writes is less than any bus carries.
    fn bounds_writes(&self) -> bool {
        let most = self.outcome.machine.parameters.get("nvm.write_bandwidth_mb_s").map(|of| of.value.clone());
        most.is_some_and(|most| most != 10_000_000)
    }

    /// Why a parameter changes nothing, where another one hides it.
    fn why_idle(&self, key: &str) -> Option<&'static str> {
        let (table, name) = key.split_once('.')?;
        let held = |gap: &str| self.mc(&[&format!("{table}_{gap}_held")]) > 0;
        let mode = |word: &str| self.is_set_to("nvm.write_mode", word);
        // The first arm that matches counts: of two reasons the machine's settings come before what the
        // program did.
        let why = match (table, name) {
            ("dram" | "nvm", "t_ccd_ns") if !held("ccd") => "no column command waited for it, but for the data bus",
            ("dram" | "nvm", "t_ccd_l_ns") if !held("ccd_l") => "no column command waited for it",
            ("nvm", "row_write_ns" | "row_write_when" | "write_hit_ns" | "row_buffer_durable")
                if !mode("row_buffer") =>
            {
                "it is of nvm.write_mode row_buffer"
            }
            ("nvm", "cell_write_ns") if mode("row_buffer") => "it is not of nvm.write_mode row_buffer",
            ("nvm", "write_granule_bytes") if !mode("through") => "it is of nvm.write_mode through",
            ("nvm", "write_charge") if !self.bounds_writes() => "nvm.write_bandwidth_mb_s is no bound",
            ("nvm", "write_hold_ns") if !mode("latency") => "it is of nvm.write_mode latency",
            ("crossbar", "switch_packets" | "switch_speedup") if self.is_set_to("crossbar.switch", "ports") => {
                "it is of crossbar.switch input_queued"
            }
            ("crossbar", "far_cycles") if self.is_set_to("crossbar.partitions", "1") => "crossbar.partitions is 1",
            ("crossbar", "gpc_bytes") if self.is_set_to("crossbar.gpcs", "0") => "crossbar.gpcs is 0",
            ("persist", "clwb") if self.sm(&["pm_write_backs"]) == 0 => "no program asked for a write-back",
            ("persist", "past_ack") if !self.is_set_to("persist.domain", "adr") => "it is of persist.domain adr",
            ("persist", "past_ack" | "past_l1" | "past_l2") if self.l2(&["write_throughs"]) == 0 => {
                "no store went past the caches"
            }
            ("l1", "sfifo_entries") if self.is_set_to("l1.writes", "evict") => "it is of l1.writes combine",
            _ => return None,
        };
        Some(why)
    }

    fn unsourced(&self) -> Vec<String> {
        let assumed = self.outcome.assumptions();
        let keys: Vec<&str> = assumed.iter().map(|(key, _)| *key).filter(|key| self.had_a_part(key)).collect();
        if keys.is_empty() {
            return Vec::new();
        }
        let text = format!(
            "{} parameters that this run depends on have no source of their own: {}",
            keys.len(),
            listed(&keys)
        );
        vec![text]
    }

    fn unexercised(&self) -> Vec<String> {
        let o = self.outcome;
        let mut texts = Vec::new();
        if self.mc(&["nvm_reads", "nvm_writes"]) == 0 {
            texts.push("the machine has NVM and nothing was read from it or written to it".to_owned());
        }
        // With nothing to do at all there are no logs either: one reason is told, not both.
        if self.persistency() == 0 && o.scheme != "base" {
            texts.push(format!(
                "scheme `{}` had nothing to do: there was no store to persistent memory, no write-back and no fence, and the \
                 persistence domain had no part",
                o.scheme_name()
            ));
        } else if o.scheme_logs && !o.is_of_a_cpu() && self.sm(&["pm_log_stores"]) == 0 {
            let name = o.scheme_name();
            texts.push(format!(
                "scheme `{name}` keeps undo logs and the program updated none: it may have no [instrument]"
            ));
        }
        let dropped = self.sm(&["pm_log_stores_dropped"]);
        if dropped > 0 {
            let name = o.scheme_name();
            texts.push(format!(
                "scheme `{name}` keeps no logs: {dropped} log updates that the program makes itself were left out, and its \
                 logs hold what they held before"
            ));
        }
        if let Some(selection) = &self.selection
            && selection.complete == 0
        {
            let logs = selection.temporal_logs + selection.non_temporal_logs;
            let threshold = selection.periods.iter().map(|period| period.threshold_logs).max();
            let asked = threshold.map_or_else(String::new, |logs| format!(", fewer than a period's {logs}"));
            let name = o.scheme_name();
            texts.push(format!(
                "scheme `{name}` never decided: no period came to its end; log updates were {logs}{asked}"
            ));
        }
        if self.sm(&["pm_fences_ordered"]) > 0 && self.sm(&["pm_held"]) == 0 {
            texts.push("fences passed early and the gate that keeps order behind them never held an access".to_owned());
        }
        // Only parameters that the user set: a default without a part was not asked for.
        let set = |(_, parameter): &(&String, &Parameter)| parameter.source.starts_with("user");
        let all = o.machine.parameters.iter().chain(&o.scheme_parameters);
        let idle = all.filter(set).map(|(key, _)| key.as_str()).filter(|key| !self.had_a_part(key));
        let idle: Vec<String> =
            idle.map(|key| self.why_idle(key).map_or_else(|| key.to_owned(), |why| format!("{key} ({why})"))).collect();
        if !idle.is_empty() {
            texts.push(format!("set, and without a part in the run: {}", listed(&idle)));
        }
        texts
    }

    /// System calls that the program made in vain.
    fn unmodelled(&self) -> Vec<String> {
        let calls = self.outcome.process.iter().flat_map(|process| &process.unsupported_calls);
        let calls: Vec<String> =
            calls.map(|(number, times)| format!("{}, {times} times", described(*number))).collect();
        let text = || format!("system calls that are not served: {}", listed(&calls));
        let streams = self.outcome.streams.as_ref().and_then(Streams::told);
        (!calls.is_empty()).then(text).into_iter().chain(streams).collect()
    }

    fn caps(&self) -> Vec<String> {
        let o = self.outcome;
        let mut texts = Vec::new();
        if matches!(o.end, End::Cut { .. }) {
            texts.push(format!(
                "cut: the cycle limit was reached after {} core cycles, and the result was not checked",
                o.time.core_cycles
            ));
        }
        // Shares decide, not counts: a queue that is full now and then does its work.
        let writes = self.mc(&["dram_writes", "nvm_writes"]);
        let full = ratio(self.mc(&["wpq_full_arrivals"]), writes);
        let entries = o.machine.parameters.get("controller.write_queue_entries");
        let entries = entries.and_then(|parameter| parameter.value.as_u64()).unwrap_or(0);
        let controllers = o.counters.iter().find(|table| table.kind == "memory_controller");
        let controllers = controllers.map_or(0, |table| table.rows.len() as u64);
        // Queues drain on after the program's end.
        let in_use = ratio(self.mc(&["wpq_entry_ticks"]), o.time.ticks * entries * controllers).min(1.0);
        if full > MOSTLY || in_use > FULL {
            texts.push(format!(
                "write-pending queues: {} of writes found theirs full, {} of the entries were in use on average",
                percent(full),
                percent(in_use)
            ));
        }
        texts.extend(self.region_beyond_its_queue());
        let stalls = ratio(self.l2(&["stalls"]), self.l2(&["reads", "writes", "atomics"]));
        if stalls > MOSTLY {
            texts.push(format!("L2: {} of requests waited for an MSHR, a way or a credit", percent(stalls)));
        }
        let past = ratio(self.sm(&["l1_stalls_past"]), self.sm(&["l1_loads", "l1_bypasses"]));
        if past > MOSTLY {
            texts.push(format!("L1: {} of loads went past it since every way was waiting for a fill", percent(past)));
        }
        let waiting = ratio(self.sm(&["slots_memory_full"]), self.sm(&["slots_resident"]));
        if waiting > MOSTLY {
            texts.push(format!("load-store units: full for {} of resident warp cycles", percent(waiting)));
        }
        if let Some(selection) = &self.selection
            && selection.periods.len() >= Selection::KEPT
        {
            texts.push(format!("decisions: only the first {} periods were kept", Selection::KEPT));
        }
        texts
    }

    /// A region had more entries for a controller than its gated WPQ has, or the threshold of stores allows
    /// so many.
    fn region_beyond_its_queue(&self) -> Option<String> {
        let o = self.outcome;
        if let Some(sizes) = o.regions().map(|report| report.sizes).filter(|sizes| sizes.beyond_queue > 0) {
            return Some(format!(
                "gated WPQs: {} regions had more entries for one controller than its queue, up to {}: they overflow it whatever else \
                 is there",
                sizes.beyond_queue, sizes.largest_entries
            ));
        }
        let number = |key: &str| o.scheme_parameters.get(&format!("light_wsp.{key}"))?.value.as_u64();
        let [threshold_stores, wpq_entries] = [number("threshold_stores")?, number("wpq_entries")?];
        let lanes = o.machine.parameters.get("sm.warp_size")?.value.as_u64()?.max(1);
        let of_ctas = o.scheme_parameters.get("light_wsp.owner")?.value == "cta";
        let warps = |launch: &Launch| launch.block.iter().map(|&side| u64::from(side)).product::<u64>().div_ceil(lanes);
        let warps = if of_ctas { o.launches.iter().map(warps).max()? } else { 1 };
        let entry_bytes = number("entry_bytes")?;
        let bound = RegionBound { threshold_stores, warps, lanes, entry_bytes, wpq_entries };
        bound.overflow().map(|why| format!("gated WPQs: {why}"))
    }

    fn saturated(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for table in &self.outcome.counters {
            let full = |at: &usize| table.rows.iter().any(|row| row.get(*at) == Some(&u64::MAX));
            let names = (0..table.names.len()).filter(full).map(|at| format!("{}.{}", table.kind, table.names[at]));
            texts.extend(names.map(|name| format!("counter {name} is full")));
        }
        let saturated: u64 = self.selection.iter().flat_map(|s| &s.periods).map(|period| period.saturated).sum();
        if saturated > 0 {
            let name = self.outcome.scheme_name();
            texts.push(format!("counters of scheme `{name}` were full {saturated} times when they should have grown"));
        }
        let degrees = ["degree_1", "degree_2", "degree_3_4", "degree_5_8", "degree_9_16", "degree_17_more"];
        let open = ratio(self.sm(&degrees[5..]), self.sm(&degrees));
        if open > MOSTLY {
            texts.push(format!("coalescing: {} of accesses are in the open bucket of 17 or more lines", percent(open)));
        }
        texts
    }
}

#[cfg(test)]
mod tests;
