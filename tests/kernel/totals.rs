//! What a run counts for each kernel: it adds up to what the machine counts, and is the number that AGPM's accounting of
//! log updates gives.

use durawarp::outcome::{End, Outcome};
use durawarp::run::{Conduct, Experiment, run};
use durawarp::schemes::catalogue;

fn outcome(workload: &str, scheme: &str, params: &[(&str, &str)], loop_log: bool, threads: usize) -> Outcome {
    let recipe = Experiment::of(workload).scheme(scheme).profile("ci").params(params.iter().copied()).reference(false);
    let recipe = recipe.set("sm.count", 5).set("sm.coalescer", "half_warp_legacy");
    let keeps_logs = catalogue::find(scheme).unwrap().logs();
    let recipe = if keeps_logs { recipe.set("loop_log", loop_log) } else { recipe };
    let experiment = recipe.build().unwrap_or_else(|faults| panic!("{workload}: {faults}"));
    let conduct = Conduct { threads, oversubscribe: true, ..Conduct::default() };
    let outcome = run(&experiment, &conduct).outcome;
    assert_eq!(outcome.end, End::Finished, "{workload}");
    outcome
}

/// A counter of the SMs that a kernel has.
fn of(outcome: &Outcome, kernel: &str, counter: &str) -> u64 {
    outcome.kernel(kernel).unwrap_or_else(|| panic!("no kernel {kernel}")).counters[&format!("sm.{counter}")]
}

#[test]
fn counters_and_times_of_all_kernels_are_those_of_the_machine_at_any_number_of_threads() {
    for (workload, scheme) in
        [("atax", "store+clwb"), ("backprop", "nt-store"), ("bfs", "base"), ("sssp", "store+clwb"), ("nw", "base")]
    {
        let first = outcome(workload, scheme, &[], false, 1);
        let second = outcome(workload, scheme, &[], false, 2);
        assert_eq!(first.kernels, second.kernels, "{workload}: 1 and 2 threads");
        let table = first.table("sm");
        assert!(table.names.len() > 40);
        for name in &table.names {
            let sum: u64 = first.kernels.iter().map(|totals| totals.counters[&format!("sm.{name}")]).sum();
            assert_eq!(sum, table.total(name), "{workload}: {name}");
        }
        for totals in &first.kernels {
            let own = || first.launches.iter().filter(|launch| launch.kernel == totals.kernel);
            assert_eq!(totals.launches, own().count() as u64, "{workload}: {}", totals.kernel);
            assert_eq!(totals.time.ticks, own().map(|launch| launch.length.ticks).sum::<u64>());
            assert!(totals.counters["sm.warp_instructions"] > 0, "{workload}: {} ran", totals.kernel);
            let ctas: u64 = own().map(|launch| launch.grid.iter().map(|&n| u64::from(n)).product::<u64>()).sum();
            assert_eq!(totals.counters["sm.ctas"], ctas, "{workload}: {}", totals.kernel);
        }
        let mut order: Vec<&str> = Vec::new();
        for launch in &first.launches {
            if !order.contains(&launch.kernel.as_str()) {
                order.push(&launch.kernel);
            }
        }
        let listed: Vec<&str> = first.kernels.iter().map(|totals| totals.kernel.as_str()).collect();
        assert_eq!(listed, order, "{workload}");
    }
}

/// AGPM's accounting, found from its counts of ATAX: an access a half-warp; each element is logged once and updated once
/// an iteration, each update is a store and a write-back, and a CTA sets its flag twice.
#[test]
fn accesses_to_persistent_memory_follow_agpms_accounting() {
    let (nx, ny) = (72u64, 40u64);
    let size = [("NX", "72"), ("NY", "40")];
    let expected = |elements: u64, iterations: u64| {
        let halves = elements.div_ceil(16);
        2 * (halves * (1 + iterations) + 2 * elements.div_ceil(256))
    };
    let plain = outcome("atax", "store+clwb", &size, false, 1);
    let looped = outcome("atax", "store+clwb", &size, true, 1);
    for (kernel, elements, iterations) in [("atax_kernel1", nx, ny), ("atax_kernel2", ny, nx)] {
        let count = |run: &Outcome, counter: &str| of(run, kernel, counter);
        let all = count(&plain, "pm_store_accesses") + count(&plain, "pm_write_back_accesses");
        assert_eq!(all, expected(elements, iterations), "{kernel}: log, updates and flags");
        // With a log update for each update the same number is that of log updates and flags alone.
        let logged = count(&looped, "pm_log_store_accesses") + count(&looped, "pm_log_write_back_accesses");
        assert_eq!(logged + 4 * count(&looped, "ctas"), expected(elements, iterations), "{kernel}: log and flags");
    }
}

#[test]
fn a_warp_instruction_has_the_degree_that_the_coalescer_gives_it() {
    // A lane a row: 16 accesses a half-warp for the matrix; one for the rest.
    let run = outcome("atax", "base", &[("NX", "64"), ("NY", "48")], false, 1);
    let degrees = |kernel: &str| {
        ["degree_1", "degree_2", "degree_3_4", "degree_5_8", "degree_9_16", "degree_17_more"]
            .map(|name| of(&run, kernel, name))
    };
    // Two whole warps and 48 iterations: the matrix; the vector and the stores, and a load of the sum before the loop.
    assert_eq!(degrees("atax_kernel1"), [0, 2 * (2 * 48 + 1), 0, 0, 0, 2 * 48]);
    // A column a thread, 48 of them: a whole warp and a half-warp.
    assert_eq!(degrees("atax_kernel2"), [3 * 64 + 1, 3 * 64 + 1, 0, 0, 0, 0]);
}
