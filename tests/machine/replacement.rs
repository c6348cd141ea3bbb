//! Replacement policies on whole machines: under each, results are right and the same at any number of
//! threads, misses are others than those of LRU, and lines that a scheme keeps stay.

use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::{Placement, Rebalance};
use durawarp::outcome::{End, Outcome};
use durawarp::{CrashRequest, Experiment, Recipe};

const POLICIES: [&str; 5] = ["lru", "fifo", "random", "srrip", "tree_plru"];

/// With a policy for these caches.
fn with(recipe: Recipe, caches: [&str; 2], policy: &str) -> Recipe {
    caches.iter().fold(recipe, |recipe, cache| recipe.set(&format!("{cache}.replacement"), policy))
}

/// Runs it under each policy on one thread, on two and on three. Misses of both caches.
fn check(recipe: &Recipe, caches: [&str; 2], misses: impl Fn(&Outcome) -> [u64; 2]) {
    let ways = [2, 3].map(|threads| Way { threads, placement: Placement::Shuffled(1), rebalance: Rebalance::Never });
    let seen = POLICIES.map(|policy| {
        let experiment = with(recipe.clone(), caches, policy).build_any().unwrap_or_else(|faults| panic!("{faults}"));
        let reference = run_one(&experiment, &Way::REFERENCE, 2000, None);
        let outcome = &reference.outcome;
        assert_eq!(outcome.end, End::Finished, "{policy}");
        assert!(outcome.verification.as_ref().is_some_and(|checks| checks.passed), "{policy}");
        for compared in compare_all(&experiment, &reference, &ways, 2000, None, |_| {}) {
            assert!(compared.difference.is_none(), "{policy}, {}: {:?}", compared.way, compared.difference);
        }
        misses(outcome)
    });
    for (policy, other) in POLICIES.iter().zip(&seen).skip(1) {
        assert!(other[0] != seen[0][0] && other[1] != seen[0][1], "{policy} misses as often as lru: {seen:?}");
    }
}

#[test]
fn each_policy_has_misses_of_its_own_in_the_caches_of_a_gpu() {
    let small = ["l1.kb=4", "l1.ways=8", "l2.slices=2", "controller.channels=2", "l2.slice_kb=4", "l2.ways=8"];
    let recipe = Experiment::of("conv2d").set("sm.count", 3).profile("ci").changes(small);
    check(&recipe, ["l1", "l2"], |outcome| {
        [outcome.total("sm", "l1_loads") - outcome.total("sm", "l1_hits"), outcome.total("l2", "fetches")]
    });
}

#[test]
fn each_policy_has_misses_of_its_own_in_the_caches_of_cpus() {
    let small = ["l1d.kb=1", "l1d.ways=4", "llc.slice_kb=1", "llc.ways=4"];
    let recipe = Experiment::of("hash").machine("lightwsp-cpu").profile("ci").changes(small);
    check(&recipe, ["l1d", "llc"], |outcome| {
        [outcome.total("core", "l1_load_misses"), outcome.total("llc", "fetches")]
    });
}

/// A load that finds its line too early reads an old word, and the condition of the program is broken.
#[test]
fn a_line_that_a_scheme_keeps_stays_under_each_policy() {
    for policy in POLICIES {
        let recipe = Experiment::of("litmus/lightwsp_stale_load").scheme("light-wsp").set("light_wsp.path_mb_s", "1");
        let experiment = with(recipe, ["l1", "l2"], policy).build().unwrap_or_else(|faults| panic!("{faults}"));
        let report = experiment.crash(&CrashRequest::default()).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(report.holds() && report.conditions[0].violated[0] == 0, "{policy}: {report:#?}");
        assert!(report.outcome.scheme_counters["victim_conflicts_lines"] > 0, "{policy}");
    }
}
