//! Whole machines under each page policy and each scheduler of their memory controllers: results stay right,
//! and policies do what they say to the rows that are opened.

use durawarp::outcome::{End, Outcome};
use durawarp::run::Experiment;

const PAGES: [&str; 5] = ["open", "closed", "open_adaptive", "closed_adaptive", "timeout"];
const SCHEDULERS: [&str; 5] = ["fcfs", "frfcfs", "frfcfs_row_hit", "bliss", "atlas"];

/// Quanta that a short run has some of.
const SHORT: [&str; 3] = [
    "controller.blacklist_clear_cycles=700",
    "controller.service_quantum_cycles=500",
    "controller.starvation_cycles=2000",
];

fn outcome([machine, scheme, workload]: [&str; 3], page: &str, scheduler: &str, sets: &[&str]) -> Outcome {
    let recipe = Experiment::of(workload).machine(machine).scheme(scheme).profile("ci");
    let recipe = recipe.set("controller.page", page).set("controller.scheduler", scheduler);
    let what = format!("{machine} {page} {scheduler} {sets:?}");
    let outcome = recipe.changes(SHORT.into_iter().chain(sets.iter().copied())).run();
    let outcome = outcome.unwrap_or_else(|faults| panic!("{what}: {faults}"));
    assert_eq!(outcome.end, End::Finished, "{what}");
    let verification = outcome.verification.as_ref().unwrap_or_else(|| panic!("{what}: nothing was verified"));
    assert!(verification.passed, "{what}: {:?}", verification.failures);
    outcome
}

#[test]
fn results_are_right_under_every_page_policy_and_scheduler() {
    for (page, scheduler) in PAGES.into_iter().zip(SCHEDULERS) {
        // An undo log that sees banks; rows of NVM that are written when they close, and lost before; DRAM of
        // a table, refreshed; cores.
        outcome(["agpm-table4", "agpm", "atax"], page, scheduler, &["sm.count=3"]);
        let rows = ["sm.count=3", "nvm.write_mode=row_buffer", "nvm.row_write_when=close", "persist.domain=media"];
        outcome(["agpm-table4", "epoch-kernel", "kv_store"], page, scheduler, &rows);
        outcome(["volta-v100", "base", "gemm_tiled"], page, scheduler, &["sm.count=3"]);
        outcome(["lightwsp-cpu", "base", "hash"], page, scheduler, &["nvm.device=optane-100"]);
    }
}
