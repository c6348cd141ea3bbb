//! Tests of how a run ends.

use std::sync::atomic::AtomicBool;

use super::whole::judge;
use super::*;
use crate::outcome::{End, Outcome};

#[test]
fn a_run_that_is_stopped_before_it_could_be_judged_has_not_failed() {
    let experiment = Recipe::of("vecadd").machine("titan-x").build().unwrap();
    let mut finished = run(&experiment, &Conduct::default());
    assert!(finished.outcome.verification.take().unwrap().passed);
    let stop = AtomicBool::new(true);
    judge(&experiment, &Conduct { stop: Some(&stop), ..Conduct::default() }, &mut finished);
    assert_eq!((finished.outcome.end, finished.outcome.verification), (End::Stopped, None));
}

#[test]
fn what_a_gated_queue_holds_when_the_program_is_over_is_counted_and_its_time_is_not_the_runs() {
    let of = |scheme: &str, ack_ns: u64| {
        let recipe = Recipe::of("vecadd").machine("lightwsp-gpu").scheme(scheme).profile("ci");
        let set = (scheme != "base").then_some(("light_wsp.ack_latency_ns", ack_ns));
        let recipe = set.into_iter().fold(recipe, |recipe, (key, value)| recipe.set(key, value));
        run(&recipe.build().unwrap(), &Conduct::default()).outcome
    };
    let drain_ns = |outcome: &Outcome| outcome.backlog.unwrap().drain.ps / 1000;
    let (slow, base) = (of("light-wsp", 100_000), of("base", 0));
    // The warps' last regions wait for the controllers' bdry-ACKs; no warp waits for these.
    assert!(slow.backlog.unwrap().gated_stores > 0);
    assert!(drain_ns(&slow) > 100_000 && slow.time.ps < 100_000_000, "{:?} {:?}", slow.backlog, slow.time);
    assert_eq!(base.backlog.unwrap().gated_stores, 0);
}
