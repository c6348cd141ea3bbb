//! Kernels that Triton compiled for Hopper, which fetch and store tiles by tensor maps and multiply by `wgmma`: a product of
//! matrices, attention after the algorithm of FlashAttention 2, and a sum whose kernel makes its maps itself. Their values
//! beside those of the manifests.

use crate::same_results::{check, threads};
use durawarp::crash::CrashRequest;
use durawarp::engine::Placement;
use durawarp::kernel::functional::Limits;
use durawarp::kernel::functional::scrutiny::Scrutiny;
use durawarp::run::Experiment;
use durawarp::workload::{Choice, Workload};

/// Folders.
pub(super) const PROGRAMS: [&str; 3] =
    ["tests/machine/triton_tma_matmul", "tests/machine/triton_attention", "tests/machine/triton_descriptors"];

#[test]
fn values_are_those_of_the_manifests_and_bits_those_of_one_thread() {
    for program in PROGRAMS {
        check("hopper-h100", program, &[threads(2, Placement::Shuffled(3)), threads(8, Placement::RoundRobin)]);
    }
}

#[test]
fn tiles_and_products_are_as_many_as_the_sizes_say() {
    let outcome = Experiment::of(PROGRAMS[0]).run().unwrap_or_else(|faults| panic!("{faults}"));
    // 2 x 2 CTAs; four steps of k with a tile of each factor; two halves of the result; wgmma of k 16 by four warps.
    assert_eq!(["bulk_loads", "bulk_stores"].map(|name| outcome.total("bulk", name)), [4 * 4 * 2, 4 * 2]);
    assert_eq!(outcome.total("bulk", "bulk_reads"), 4 * 4 * 2 * 64);
    assert_eq!(outcome.total("tensor", "group_products"), 4 * 256 / 16 * 4);
}

#[test]
fn a_result_in_persistent_memory_survives_power_failures() {
    let recipe = Experiment::of(PROGRAMS[0]).scheme("strict").param("M", 64).param("N", 64).param("K", 64);
    let report = recipe.crash(&CrashRequest::default()).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.holds(), "{report:?}");
}

#[test]
fn they_have_no_races_and_read_nothing_unwritten() {
    for program in PROGRAMS {
        assert_eq!(watched(program, |kernel| kernel), (Vec::new(), 0), "{program}");
    }
}

/// What is found in a program whose kernel is changed: races, and reads of what nobody has written.
pub(super) fn watched(program: &str, change: impl Fn(String) -> String) -> (Vec<String>, usize) {
    let [kernel, manifest] =
        ["kernel.ptx", "workload.toml"].map(|file| std::fs::read_to_string(format!("{program}/{file}")).unwrap());
    let changed = change(kernel.clone());
    let manifest = manifest.replace("file = \"kernel.ptx\"", &format!("text = '''\n{changed}'''"));
    let workload = Workload::from_text(&manifest).unwrap_or_else(|faults| panic!("{faults}"));
    let resolved = workload.resolve(&Choice::default()).unwrap_or_else(|faults| panic!("{faults}"));
    let run = resolved.run_under(&Limits::default(), Scrutiny::new(true)).unwrap_or_else(|error| panic!("{error}"));
    let races: Vec<String> = run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect();
    (races, run.scrutiny().unwritten().len())
}
