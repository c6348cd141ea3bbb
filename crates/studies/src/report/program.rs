//! Which program runs had: how undo logging was added to their kernels, and how many log updates these made.
//!
//! The same workload is another program under other logging (`[instrument]` of its manifest, `--instrument`,
//! `--loop-log`, `--reload`, `--flag-barrier`, `--program`), so that runs can only be compared when this line
//! is the same.

use std::collections::BTreeMap;

use super::numbers::count;
use durawarp_simulation::outcome::Outcome;

/// Where there is none: the scheme keeps no undo logs, or the manifest asks for none.
const NONE: &str = "no undo logging";

/// Undo logging of a run in words; `None` where its manifest has none.
pub(super) fn logging(outcome: &Outcome) -> Option<String> {
    let settings = outcome.workload.get("instrument")?;
    let (mode, barrier) = (settings["mode"].as_str()?, settings["flag_barrier"].as_str()?);
    if mode == "none" || settings["logs"] != true {
        return Some(NONE.to_owned());
    }
    let every = if settings["loop_log"] == true { "every update" } else { "the first update" };
    let again = if settings["reload"] == true { ", updates loaded again" } else { "" };
    Some(format!("{mode}, {every} logged{again}, flag barrier {barrier}"))
}

/// The programs of runs on one line, each with its runs and their log updates (instructions).
pub fn programs<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> String {
    // Runs, the fewest and the most log updates of one.
    let mut found: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    let mut of_cpus = 0;
    for outcome in outcomes {
        of_cpus += u64::from(outcome.is_of_a_cpu());
        let logging = logging(outcome).unwrap_or_else(|| NONE.to_owned());
        // Of CPUs a program is what its executable is.
        let Some(logs) = outcome.count_of("sm", "pm_log_stores") else { continue };
        let (runs, least, most) = found.entry(logging).or_insert((0, u64::MAX, 0));
        (*runs, *least, *most) = (*runs + 1, (*least).min(logs), (*most).max(logs));
    }
    let of = |(logging, (runs, least, most)): (&String, &(u64, u64, u64))| {
        let runs = if *runs == 1 { "1 run".to_owned() } else { format!("{} runs", count(*runs)) };
        match (least, most) {
            (_, 0) => format!("{logging} ({runs})"),
            (least, most) if least == most => format!("{logging} ({runs}, {} log updates)", count(*most)),
            (least, most) => format!("{logging} ({runs}, {} to {} log updates)", count(*least), count(*most)),
        }
    };
    let mut text: Vec<String> = found.iter().map(of).collect();
    if of_cpus > 0 {
        text.push(format!("of CPUs, as compiled ({} runs)", count(of_cpus)));
    }
    format!("program: {}\n", if text.is_empty() { "none was run".to_owned() } else { text.join("; ") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use durawarp_simulation::outcome::sample::{set, under};

    fn outcome(mode: &str, loop_log: bool, logs: bool, updates: u64) -> Outcome {
        let mut outcome = under("agpm", 10_000);
        outcome.workload["instrument"] =
            json!({ "mode": mode, "loop_log": loop_log, "flag_barrier": "paper", "logs": logs });
        set(&mut outcome, "sm", "pm_log_stores", updates);
        outcome
    }

    #[test]
    fn a_program_is_told_with_its_runs_and_their_log_updates() {
        let runs = [
            outcome("cta_undo", false, true, 64),
            outcome("cta_undo", true, true, 1_664),
            outcome("cta_undo", true, true, 1_500),
            outcome("cta_undo", true, false, 0),
            outcome("none", true, true, 0),
        ];
        let first = "cta_undo, the first update logged, flag barrier paper (1 run, 64 log updates)";
        assert_eq!(programs(&runs[..1]), format!("program: {first}\n"));
        let every = "cta_undo, every update logged, flag barrier paper (2 runs, 1500 to 1664 log updates)";
        assert_eq!(programs(&runs), format!("program: {every}; {first}; no undo logging (2 runs)\n"));
        let mut without = outcome("none", true, true, 0);
        without.workload = json!({});
        assert_eq!(programs([&without]), "program: no undo logging (1 run)\n");
        assert_eq!(programs([]), "program: none was run\n");
    }
}
