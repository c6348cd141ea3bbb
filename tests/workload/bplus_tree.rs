//! `bplus_tree` and `kv_store`: the final image under every barrier and at many sizes, recovery from every epoch, and
//! conditions that find what is missing.

use durawarp::crash::{CrashReport, CrashRequest};
use durawarp::kernel::functional::Limits;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::run::Experiment;
use durawarp::workload::{Choice, Evidence, Resolved, Workload};

/// A workload's `ci` profile with other parameters.
fn resolved(name: &str, params: &[(&str, i64)]) -> Resolved {
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    let choice = Choice { profile: Some("ci".to_owned()), params, ..Choice::default() };
    let found = Workload::load(name).and_then(|workload| workload.resolve(&choice));
    found.unwrap_or_else(|faults| panic!("{faults}"))
}

/// What the run's checks come to on the functional driver.
fn verified(workload: &Resolved, limits: &Limits<'_>) -> Result<u64, String> {
    let run = workload.run_functional(limits).map_err(|error| error.to_string())?;
    let metrics = run.metrics();
    let evidence = Evidence { functional: Some(&run), metrics: Some(&metrics), ..Evidence::default() };
    let verdict = workload.verify(run.memory(), run.bindings(), evidence);
    if verdict.passed() { Ok(metrics["warp_instructions"] as u64) } else { Err(format!("{verdict:?}")) }
}

fn judged(name: &str, params: &[(&str, i64)], scheme: &str, request: &CrashRequest) -> CrashReport {
    let recipe = Experiment::of(name).scheme(scheme).profile("ci").params(params.iter().copied());
    let report = recipe.set("persist.domain", "adr").crash(request);
    report.unwrap_or_else(|faults| panic!("{faults}"))
}

/// Barriers of the thread, the CTA and the kernel, and none, with and without logs, on trees with one level and many above
/// the subtrees: always the tree of the reference, which is walked.
#[test]
fn every_barrier_makes_the_reference_s_tree() {
    let shapes: [&[(&str, i64)]; 6] = [
        &[],
        &[("CTAS", 1)],
        &[("CTAS", 7), ("BELOW", 2), ("KEYS", 40)],
        &[("CTAS", 30), ("BELOW", 1), ("KEYS", 10)],
        &[("CTAS", 3), ("FAN", 4), ("ORDER", 6), ("KEYS", 100)],
        &[("CTAS", 2), ("FAN", 2), ("ORDER", 4), ("BELOW", 5), ("KEYS", 48), ("BLOCK", 32)],
    ];
    for shape in shapes {
        for barrier in 0..4 {
            for logs in 0..2 {
                let params = [shape, &[("BARRIER", barrier), ("LOGS", logs)]].concat();
                for (resident_ctas, warp_size) in [(1024, 32), (1, 64)] {
                    let limits = Limits { resident_ctas, warp_size, ..Limits::default() };
                    let found = verified(&resolved("bplus_tree", &params), &limits);
                    assert!(found.is_ok(), "{params:?}, {resident_ctas} CTAs, warps of {warp_size}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn the_baseline_in_dram_executes_what_algorithm_2_does() {
    let with = verified(&resolved("bplus_tree", &[("LOGS", 0)]), &Limits::default()).unwrap();
    let without = verified(&resolved("bplus_tree_dram", &[]), &Limits::default()).unwrap();
    assert!(without.abs_diff(with) < with / 100, "{without} warp instructions, {with}");
    assert!(!resolved("bplus_tree_dram", &[]).has_persistent_memory());
}

/// Strict persistency keeps the order of the program: power fails in every epoch of both algorithms, recovery goes on from
/// the last complete one, and itself may be cut off.
#[test]
fn recovery_completes_the_insertion_from_every_epoch() {
    for (barrier, plan, double) in [(2, 60, false), (3, 60, false), (2, 7, true)] {
        let params = [("CTAS", 1), ("BELOW", 2), ("KEYS", 20), ("BARRIER", barrier)];
        let request = CrashRequest { plan: Plan::Count(plan), double, allowed: None, ..CrashRequest::default() };
        let report = judged("bplus_tree", &params, "strict", &request);
        let names: Vec<&str> = report.conditions.iter().map(|condition| condition.name.as_str()).collect();
        assert_eq!(names, ["what a parent points to is there", "the root is there", "every key is found"]);
        for condition in &report.conditions {
            assert!(condition.as_expected, "{condition:?}");
            assert!(condition.held.iter().sum::<u64>() >= plan / 2, "{condition:?}");
        }
        assert!(report.holds(), "{:?}", report.judgements().map(|(_, judgement)| &judgement.found).collect::<Vec<_>>());
    }
}

/// Where nothing orders persists, all that conditions are about is found to be wrong somewhere.
#[test]
fn conditions_find_what_is_missing() {
    let params = [("CTAS", 1), ("BELOW", 2), ("KEYS", 20)];
    let budget = Budget { instants: 32, random: 64, ..Budget::default() };
    let request = CrashRequest { allowed: Some(budget), overtaking: 0, ..CrashRequest::default() };
    let report = judged("bplus_tree", &params, "base", &request);
    for condition in &report.conditions {
        assert!(condition.violated.iter().sum::<u64>() > 0, "{condition:?}");
    }
    let report = judged("kv_store", &[], "base", &request);
    assert!(report.conditions[0].violated.iter().sum::<u64>() > 0, "{:?}", report.conditions[0]);
    // Whatever survived of one pair, its insertion is made good, unless the key is there without its value.
    let strict = judged("kv_store", &[], "strict", &CrashRequest { plan: Plan::Count(50), ..request });
    assert!(strict.conditions.iter().all(|condition| condition.as_expected), "{:?}", strict.conditions);
}
