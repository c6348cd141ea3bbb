//! What every scheme in the catalogue promises, on every small workload: the contract that a new scheme must pass.
//!
//! Without a failure: the final memory is that of the functional run, digests are equal at any number of threads and
//! any placement, everything drains, counters conserve. With one, at any instant: recovery makes what is left right,
//! even when it is cut off itself.

use durawarp::config::{Override, SchemeConfig};
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::outcome::End;
use durawarp::run::Experiment;
use durawarp::schemes::catalogue;

/// Small ones with every kind of step: affine outputs, two kernels, atomics and a log of whole buffers, barriers and shared
/// memory, a loop until converged.
const WORKLOADS: [(&str, &[(&str, &str)]); 5] = [
    ("vecadd", &[("N", "700")]),
    ("atax", &[("NX", "40"), ("NY", "48")]),
    ("histogram", &[("N", "900"), ("CTAS", "2")]),
    ("gemm_tiled", &[("M", "64"), ("N", "64"), ("K", "16")]),
    ("bfs", &[]),
];

/// Schemes by their defaults, and ways of having them otherwise that change where stores go: on purpose in turns, so that
/// a line is written through the caches and past them one after the other.
fn schemes() -> Vec<(String, SchemeConfig)> {
    let variants: [(&str, &[&str]); 9] = [
        ("nt-store", &["nt_store.routed=requests"]),
        ("agpm", &["agpm.path=alternate", "agpm.alternate_logs=3"]),
        ("agpm", &["agpm.path=alternate", "agpm.alternate_logs=2", "agpm.routed=requests"]),
        ("bucl", &["bucl.tucd=1", "bucl.routed=requests"]),
        (
            "agpm",
            &[
                "agpm.hit=cache",
                "agpm.threshold_logs=20",
                "agpm.uncovered=temporal",
                "agpm.key=both",
                "agpm.charge_reservation=true",
            ],
        ),
        ("themis", &["themis.mode=paper"]),
        ("themis", &["themis.order_scope=sm"]),
        ("themis", &["themis.wcb_entries=3", "themis.write_back_entries=1"]),
        ("pmem-spec", &["pmem_spec.order=fifo"]),
    ];
    let names: Vec<&str> = catalogue::all().iter().map(|scheme| scheme.name()).collect();
    let plain = names.into_iter().map(|name| (name.to_owned(), SchemeConfig::load(name, &[]).unwrap()));
    let varied = variants.iter().map(|(name, sets)| {
        (format!("{name} with {}", sets.join(" ")), SchemeConfig::load(name, &parsed(sets)).unwrap())
    });
    plain.chain(varied).collect()
}

fn experiment(workload: &str, params: &[(&str, &str)], scheme: SchemeConfig, domain: &str) -> Experiment {
    experiment_on(workload, params, scheme, &[&format!("persist.domain={domain}")])
}

fn parsed(sets: &[&str]) -> Vec<Override> {
    sets.iter().map(|text| Override::parse(text).unwrap()).collect()
}

/// The same on a machine with these changes.
fn experiment_on(workload: &str, params: &[(&str, &str)], scheme: SchemeConfig, machine: &[&str]) -> Experiment {
    let recipe = Experiment::of(workload).scheme(scheme).profile("ci").params(params.iter().copied());
    let recipe = recipe.set("sm.count", 3).changes(machine);
    // A loop until converged cannot keep undo logs, and says so.
    let made = recipe.build().or_else(|_| recipe.set("instrument", "none").build());
    made.unwrap_or_else(|faults| panic!("{workload}: {faults}"))
}

/// Calls `check` for every workload and scheme, in every domain. Its turn differs from workload to workload and
/// from scheme to scheme: what is to be tried once with each takes the one whose turn it is.
fn for_all(domains: &[&str], check: impl Fn(usize, &str, &Experiment)) {
    for (of_workload, (workload, params)) in WORKLOADS.into_iter().enumerate() {
        for (of_scheme, (name, scheme)) in schemes().into_iter().enumerate() {
            // What differs between domains does not differ between variants of a scheme.
            // Regions need queues that survive and caches that do not.
            let alone = name.contains(" with ") || scheme.built.regions().is_some();
            let domains = if alone { &["adr"] } else { domains };
            for domain in domains {
                let name = format!("{workload} under {name} in {domain}");
                check(of_workload + of_scheme, &name, &experiment(workload, params, scheme.clone(), domain));
            }
        }
    }
}

#[test]
fn without_a_failure_every_scheme_ends_with_the_memory_of_the_functional_run() {
    for_all(&["media", "adr", "eadr"], |_, name, experiment| {
        let outcome = experiment.run();
        assert_eq!(outcome.end, End::Finished, "{name}");
        let check = outcome.verification.as_ref().unwrap();
        assert!(check.passed, "{name}: {:?}", check.failures);
        // Bytes that a controller accepted are at the media, or were merged on the way.
        let mc = |counter: &str| outcome.total("memory_controller", counter);
        let accepted = mc("dram_accepted_bytes") + mc("nvm_accepted_bytes");
        assert_eq!(accepted, mc("dram_written_bytes") + mc("nvm_written_bytes") + mc("merged_bytes"), "{name}");
    });
}

#[test]
fn results_do_not_depend_on_threads_under_any_scheme() {
    for_all(&["adr"], |turn, name, experiment| {
        // Two threads, and all workloads, are what `durawarp check` runs. A scheme meets each way on another workload.
        let mut ways = Way::at(3);
        assert_eq!(ways.len(), WORKLOADS.len());
        let ways = [ways.swap_remove(turn % WORKLOADS.len())];
        let experiment = experiment.clone().into();
        let reference = run_one(&experiment, &Way::REFERENCE, 1000, None);
        for compared in compare_all(&experiment, &reference, &ways, 1000, None, |_| {}) {
            assert!(compared.difference.is_none(), "{name}, {}: {}", compared.way, compared.difference.unwrap());
        }
    });
}

fn judged(experiment: &Experiment) -> CrashReport {
    let budget =
        Budget { instants: 20, boundaries: 60, product: 64, random: 16, pairs: 60, singles: 60, ..Budget::default() };
    let request = CrashRequest {
        plan: Plan::Count(150),
        double: true,
        allowed: Some(budget),
        overtaking: 200,
        ..CrashRequest::default()
    };
    experiment.crash(&request).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn what_a_power_failure_leaves_is_what_was_promised() {
    let domains = ["media", "adr", "eadr"];
    for_all(&domains, |turn, name, experiment| {
        // Five workloads, three domains: each scheme is judged in each. Variants and regions have one domain.
        if !name.contains(" with ") && experiment.scheme.built.regions().is_none() && !name.ends_with(domains[turn % 3])
        {
            return;
        }
        // Its logs are long: most of this test's time. Variants are judged on the others.
        if name.starts_with("gemm_tiled") && name.contains(" with ") {
            return;
        }
        let report = judged(experiment);
        for (level, judgement) in report.judgements() {
            assert!(judgement.verdict.holds(), "{name}, {level}: {:?}", judgement.found.first());
        }
        assert!(report.holds(), "{name}");
        if experiment.scheme.built.logs() && experiment.workload.undo().unwrap().is_some() {
            assert!(report.transactions > 0 && report.level(JudgedLevel::Actual).unwrap().verdict.judged > 5, "{name}");
        }
    });
}

/// Readings of the two ways to persistent memory, and whether what is fenced by them is durable.
const READINGS: [(&[&str], bool); 8] = [
    (&["persist.past_ack=media"], true),
    (&["persist.past_l1=update"], true),
    (&["persist.past_l2=invalidate"], true),
    (&["persist.past_l1=update", "persist.past_l2=invalidate", "persist.past_ack=media"], true),
    (&["l2.write_miss=fetch"], true),
    (&["l2.write_miss=naive"], true),
    (&["persist.clwb=l2"], false),
    (&["persist.clwb=l2", "persist.domain=eadr"], true),
];

#[test]
fn of_the_readings_of_a_write_back_and_a_store_past_the_caches_the_oracle_finds_the_one_that_is_not_durable() {
    let schemes: [(&str, &[&str]); 4] = [
        ("nt-store", &[]),
        ("store+clwb", &[]),
        ("agpm", &["agpm.path=alternate", "agpm.alternate_logs=3"]),
        ("themis", &[]),
    ];
    for (workload, params) in [WORKLOADS[1], WORKLOADS[2]] {
        for (name, sets) in schemes {
            for (reading, durable) in READINGS {
                let scheme = SchemeConfig::load(name, &parsed(sets)).unwrap();
                let report = judged(&experiment_on(workload, params, scheme, reading));
                let check = report.outcome.verification.as_ref().unwrap();
                assert!(check.passed, "{workload} under {name} by {reading:?}: {:?}", check.failures);
                assert_eq!(report.holds(), durable, "{workload} under {name} by {reading:?}");
            }
        }
    }
}

#[test]
fn a_persistency_scheme_costs_time_and_strict_costs_most_of_those_without_logs() {
    let cycles = |scheme: &str| {
        let scheme = SchemeConfig::load(scheme, &[]).unwrap();
        let experiment = experiment("gemm_tiled", &[("M", "64"), ("N", "64"), ("K", "16")], scheme, "adr");
        experiment.run().time.core_cycles
    };
    let [base, kernel, cta, strict] = ["base", "epoch-kernel", "epoch-cta", "strict"].map(cycles);
    assert!(base < kernel && kernel <= cta && cta < strict, "{base} {kernel} {cta} {strict}");
    for scheme in ["nt-store", "store+clwb"] {
        assert!(cycles(scheme) > base, "{scheme}");
    }
}
