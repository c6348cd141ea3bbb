//! One workload under one scheme, and what power failures leave of it: `cargo run --example run_one [WORKLOAD [SCHEME]]`.
//!
//! What to look at in an outcome, in this order: how the run ended, whether its result is right, what may make its numbers
//! worth less, and then the numbers.

use durawarp::outcome::End;
use durawarp::{CrashRequest, Diagnostics, Experiment};

fn main() -> Result<(), Diagnostics> {
    let mut words = std::env::args().skip(1);
    let workload = words.next().unwrap_or_else(|| "atax".to_owned());
    let scheme = words.next().unwrap_or_else(|| "store+clwb".to_owned());

    let recipe = Experiment::of(workload).scheme(scheme).profile_if_any("ci").set("sm.count", 4);
    let outcome = recipe.run()?;
    assert_eq!(outcome.end, End::Finished, "the simulated program came to its end");
    let passed = outcome.verification.as_ref().is_some_and(|verification| verification.passed);
    assert!(passed, "the final memory is that of the functional run");
    for caveat in &outcome.validity {
        println!("note: {}", caveat.text);
    }

    println!("{} core cycles, {} warp instructions", outcome.time.core_cycles, outcome.warp_instructions());
    for (kind, counter) in [("sm", "persists"), ("l2", "writebacks"), ("memory_controller", "nvm_written_bytes")] {
        println!("{kind}.{counter} {}", outcome.total(kind, counter));
    }

    let base = recipe.clone().scheme("base").run()?;
    let ratio = outcome.time.core_cycles as f64 / base.time.core_cycles as f64;
    println!("{ratio:.2} times the cycles of `base`, which makes nothing durable");

    let report = recipe.crash(&CrashRequest::default())?;
    for (level, judgement) in report.judgements() {
        let verdict = &judgement.verdict;
        println!("{level}: {} states judged, {} consistent", verdict.judged, verdict.passed);
    }
    assert!(report.holds(), "recovery makes every state right");
    Ok(())
}
