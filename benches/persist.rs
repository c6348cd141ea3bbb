//! What persistency costs the simulator: `cargo bench --bench persist`.
//!
//! `journal`: whole runs with some 100,000 persists, with the journal and without, three times in turns; elements are
//! persists. `crash`: a crash test, run, history and both levels; elements are states judged.

#[path = "../src/allocator.rs"]
mod allocator;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use durawarp::run::{Conduct, run};
use durawarp::{CrashReport, CrashRequest, Experiment};

fn experiment(workload: &str, params: &[&str], reference: bool) -> Experiment {
    let params = params.iter().map(|text| format!("params.{text}"));
    let recipe = Experiment::of(workload).scheme("store+clwb").profile("ci").changes(params).reference(reference);
    recipe.build().unwrap_or_else(|faults| panic!("{faults}"))
}

fn journal(c: &mut Criterion) {
    let experiment = experiment("gemm", &["NI=192", "NJ=192", "NK=64"], false);
    let simulate = |journal| run(&experiment, &Conduct { journal, ..Conduct::default() });
    let persists = simulate(false).outcome.total("sm", "persists");
    let mut group = c.benchmark_group("journal");
    group.sample_size(10).throughput(Throughput::Elements(persists));
    for turn in 1..=3 {
        for (name, journal) in [("off", false), ("on", true)] {
            group.bench_function(format!("{name}/{turn}"), |bencher| bencher.iter(|| simulate(journal)));
        }
    }
    group.finish();
}

fn states(report: &CrashReport) -> u64 {
    report.judgements().map(|(_, judgement)| judgement.verdict.judged).sum()
}

fn crash(c: &mut Criterion) {
    let experiment = experiment("atax", &[], true);
    let test = || experiment.crash(&CrashRequest::default()).unwrap_or_else(|faults| panic!("{faults}"));
    let mut group = c.benchmark_group("crash");
    group.sample_size(10).throughput(Throughput::Elements(states(&test())));
    group.bench_function("atax", |bencher| bencher.iter(test));
    group.finish();
}

criterion_group!(benches, journal, crash);
criterion_main!(benches);
