//! Instruction traces on the timed machine. A trace of one of our own kernels comes to what the kernel comes to: the same
//! instructions and the same accesses at every level of memory, and nearly the same cycles.

mod beside;
mod export;
mod group_products;
mod opcodes;
mod products;
mod sends;
mod tensor_memory;

use durawarp::Experiment;
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::outcome::validity::Kind;
use durawarp::outcome::{End, Outcome};
use durawarp::run::{AnyExperiment, Conduct, Recipe};
use tempfile::TempDir;

/// What a kernel and its trace have alike, by component.
const ALIKE: [(&str, &[&str]); 3] = [
    (
        "sm",
        &[
            "warp_instructions",
            "thread_instructions",
            "memory_instructions",
            "fp32_instructions",
            "l1_loads",
            "l1_stores",
            "shared_accesses",
            "shared_conflict_passes",
            "degree_1",
            "degree_2",
            "ctas",
            "pm_stores",
            "pm_write_backs",
            "pm_fences",
            "persists",
        ],
    ),
    ("l2", &["reads", "writes", "atomics"]),
    (
        "memory_controller",
        &["dram_reads", "nvm_reads", "dram_read_bytes", "nvm_read_bytes", "nvm_accepted_bytes", "nvm_written_bytes"],
    ),
];

/// A workload's recipe at profile ci.
fn kernels(workload: &str) -> Recipe {
    Experiment::of(workload).profile_if_any("ci").reference(false)
}

/// The trace of a workload, in a folder that lasts as long as it is held.
pub(super) fn traced(workload: &str, stores: &str, labels: &str) -> (TempDir, Recipe) {
    let folder = tempfile::tempdir().unwrap();
    let resolved = kernels(workload).build().unwrap_or_else(|faults| panic!("{faults}")).workload;
    export::export(&resolved, folder.path(), stores, labels);
    let list = folder.path().join("kernelslist.g");
    (folder, Experiment::of(list.display().to_string()))
}

/// A trace of one warp that executes these lines, then exits: of a card, by a version of the tracer.
pub(super) fn one_warp(binary: u32, version: u32, lines: &[String]) -> (TempDir, Recipe) {
    let folder = tempfile::tempdir().unwrap();
    // From version 6 on a line ends with an immediate.
    let immediate = if version >= 6 { " NoVal" } else { "" };
    let text: String =
        lines.iter().enumerate().map(|(pc, line)| format!("{:04x} ffffffff {line}{immediate}\n", 16 * pc)).collect();
    let text = format!(
        "-kernel name = chain\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-binary version = {binary}\n\
         -accelsim tracer version = {version}\n#\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = {}\n{text}\
         ffff ffffffff 0 EXIT 0 0 0{immediate}\n#END_TB\n",
        lines.len() + 1
    );
    std::fs::write(folder.path().join("kernel-1.traceg"), text).unwrap();
    std::fs::write(folder.path().join("kernelslist.g"), "kernel-1.traceg\n").unwrap();
    let recipe = Experiment::of(folder.path().display().to_string());
    (folder, recipe)
}

pub(super) fn run(recipe: Recipe) -> Outcome {
    let experiment = recipe.build().unwrap_or_else(|faults| panic!("{faults}"));
    AnyExperiment::from(experiment).run(&Conduct::default()).outcome
}

/// Runs a workload and its trace, and compares what they came to; cycles may differ by `percent`.
#[track_caller]
fn compare(workload: &str, scheme: &str, (stores, labels): (&str, &str), percent: f64) -> [Outcome; 2] {
    let (_folder, trace) = traced(workload, stores, labels);
    let with = |recipe: Recipe| run(recipe.machine("titan-x").scheme(scheme));
    let (of_kernel, of_trace) = (with(kernels(workload)), with(trace));
    assert_eq!((&of_kernel.end, &of_trace.end), (&End::Finished, &End::Finished));
    for (component, names) in ALIKE {
        let of =
            |outcome: &Outcome| names.iter().map(|name| (*name, outcome.total(component, name))).collect::<Vec<_>>();
        assert_eq!(of(&of_kernel), of(&of_trace), "{workload}: {component}");
    }
    let cycles = [&of_kernel, &of_trace].map(|outcome| outcome.time.core_cycles as f64);
    let apart = (cycles[1] / cycles[0] - 1.0).abs() * 100.0;
    println!("{workload}: {cycles:?} cycles, {apart:.3} % apart");
    assert!(apart <= percent, "{workload}: {cycles:?} cycles, {apart:.2} % apart");
    [of_kernel, of_trace]
}

#[test]
fn a_streaming_kernel_and_its_trace_are_alike() {
    let [of_kernel, of_trace] = compare("vecadd", "base", ("plain", ""), 1.0);
    // Accesses that no cache merges are the same requests in the same order.
    assert_eq!(of_kernel.total("sm", "l1_hits"), of_trace.total("sm", "l1_hits"));
    assert_eq!(of_trace.launches[0].kernel, "vecadd");
    assert_eq!((of_trace.launches[0].grid, of_trace.launches[0].block), ([40, 1, 1], [256, 1, 1]));
}

#[test]
fn a_kernel_with_reuse_and_its_trace_are_alike() {
    compare("gemm", "base", ("plain", ""), 1.0);
}

#[test]
fn a_kernel_of_shared_memory_and_barriers_and_its_trace_are_alike() {
    compare("gemm_tiled", "base", ("plain", ""), 1.0);
}

#[test]
fn labels_bring_a_trace_under_every_scheme_that_can_run_it() {
    let (_folder, trace) = traced("vecadd", "write-back", "");
    let baseline = run(trace.clone().machine("titan-x").scheme("base"));
    // 313 warps store; each is followed by one write-back.
    assert_eq!([baseline.total("sm", "pm_stores"), baseline.total("sm", "pm_write_backs")], [313, 313]);
    for scheme in durawarp::schemes::catalogue::all() {
        let recipe = trace.clone().machine("titan-x").scheme(scheme.name());
        match recipe.build() {
            Ok(_) => {
                let outcome = run(recipe);
                assert_eq!(outcome.end, End::Finished, "{}", scheme.name());
                assert!(outcome.total("sm", "pm_stores") > 0, "{}", scheme.name());
            }
            Err(faults) => {
                assert!(scheme.regions().is_some(), "{}: {faults}", scheme.name());
                assert!(faults.to_string().contains("is a trace: schemes of recoverable regions"), "{faults}");
            }
        }
    }
}

#[test]
fn without_a_label_nothing_is_persistent_and_with_the_option_all_is() {
    let (folder, trace) = traced("vecadd", "plain", "");
    std::fs::remove_file(folder.path().join("kernelslist.toml")).unwrap();
    let on_dram = run(trace.clone().machine("titan-x"));
    assert_eq!([on_dram.total("sm", "pm_stores"), on_dram.total("memory_controller", "nvm_reads")], [0, 0]);
    let on_nvm = run(trace.machine("titan-x").persistent(true));
    assert_eq!(on_nvm.total("memory_controller", "dram_reads"), 0);
    assert_eq!(on_nvm.total("sm", "pm_stores"), 313);
}

#[test]
fn a_trace_is_the_same_at_every_number_of_threads() {
    let (_folder, trace) = traced("gemm", "write-back", "fences = { sys = \"sfence\" }\n");
    let experiment = AnyExperiment::from(trace.machine("titan-x").scheme("store+clwb").build().unwrap());
    let reference = run_one(&experiment, &Way::REFERENCE, 1000, None);
    let ways: Vec<Way> = [2, 8].into_iter().flat_map(|threads| Way::at(threads).into_iter().take(2)).collect();
    for compared in compare_all(&experiment, &reference, &ways, 1000, None, |_| {}) {
        assert_eq!(compared.difference, None, "{}", compared.way);
    }
}

/// The trace in `tests/traces/small`, which was written by hand.
fn small(file: &str) -> Recipe {
    Experiment::of(format!("tests/traces/small/{file}")).machine("titan-x")
}

#[test]
fn all_that_the_format_has_comes_to_what_it_says() {
    let outcome = run(small("kernelslist.g"));
    assert_eq!(outcome.end, End::Finished);
    // 2 CTAs of 21 + 5 instructions, 2 of 4 in the compressed file, 1 of 4.
    assert_eq!(outcome.warp_instructions(), 2 * 26 + 2 * 4 + 4);
    let launches: Vec<_> = outcome.launches.iter().map(|launch| (launch.kernel.as_str(), launch.grid[0])).collect();
    assert_eq!(launches, [("_Z4copyPiS_", 3), ("_Z5scalePf", 2), ("_Z5scalePf", 1)]);
    assert_eq!(outcome.total("sm", "ctas"), 5, "a CTA without instructions does not start");
    // A CTA's lanes: 11 lines of all 32 and one of none before the loads of 2, 3 and 1 lane, and so on.
    let lanes = 32 * 4 + 2 + 3 + 1 + 32 * 9 + 16 * 4 + 16 * 5;
    assert_eq!(outcome.total("sm", "thread_instructions"), 2 * lanes + 2 * 128 + 128);
    // Shared memory: STS, LDS and the generic load of the upper half.
    assert_eq!(outcome.total("sm", "shared_accesses"), 2 * 3);
    assert_eq!(outcome.total("sm", "atomic_lanes"), 2 * 16);
    let kinds: Vec<Kind> = outcome.validity.iter().map(|caveat| caveat.kind).collect();
    assert_eq!(kinds[0], Kind::Trace, "what makes it worth less than it looks comes first");
    assert_eq!(outcome.verification, None);
}

#[test]
fn a_swap_of_sixteen_bytes_is_one_operation_a_lane() {
    let text = std::fs::read_to_string("tests/traces/small/kernel-1.traceg").unwrap();
    let swap = "1 R4 ATOMG.E.CAS.128.STRONG.GPU 3 R2 R8 R12 16 1 ";
    let text = text.replace("0 RED.E.ADD.STRONG.GPU 2 R2 R4 4 1 ", swap);
    assert!(text.contains(swap));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel-1.traceg"), text).unwrap();
    std::fs::write(folder.path().join("kernelslist.g"), "kernel-1.traceg\n").unwrap();
    let outcome = run(Experiment::of(folder.path().display().to_string()).machine("titan-x"));
    assert_eq!(outcome.end, End::Finished);
    // 16 lanes of a warp of each of two CTAs, all on one address.
    let lanes = ["sm", "l2"].map(|component| outcome.total(component, "atomic_lanes"));
    assert_eq!((lanes, outcome.total("l2", "atomics")), ([32, 32], 2));
}

/// A file of `tests/traces/packed`, which `pack.py` there made with zstd itself.
fn packed(file: &str) -> Recipe {
    Experiment::of(format!("tests/traces/packed/{file}")).machine("ampere-a100")
}

/// All that was counted, and when.
fn statistics(outcome: &Outcome) -> serde_json::Value {
    serde_json::json!([outcome.end, outcome.time, outcome.launches, outcome.kernels, outcome.counters])
}

#[test]
fn a_packed_trace_has_the_statistics_of_its_text_to_the_bit() {
    for name in ["kernel-1", "kernel-2"] {
        let [of_packed, of_text] = ["tracez", "traceg.xz"].map(|end| run(packed(&format!("{name}.{end}"))));
        assert_eq!(of_packed.end, End::Finished);
        assert_eq!(statistics(&of_packed), statistics(&of_text), "{name}");
        assert_eq!(of_packed.workload["workload"], format!("packed-{name}"));
    }
    // Of Hopper: two clusters, in each of which both CTAs load six tiles and a half of one for both.
    let [of_packed, of_text] = ["tracez", "traceg.xz"]
        .map(|end| run(packed(&format!("kernel-3.{end}")).machine("hopper-h100").reference(false)));
    assert_eq!(of_packed.end, End::Finished);
    assert_eq!(statistics(&of_packed), statistics(&of_text));
    let counted = |name: &str| of_packed.total("bulk", name);
    assert_eq!(["bulk_loads", "bulk_multicasts", "bulk_stores"].map(counted), [4 * 12, 4 * 6, 4]);
    assert_eq!(counted("bulk_reads"), 4 * 6 * (128 + 64));
    assert_eq!(of_packed.total("tensor", "group_products"), 4 * 4 * 6 * 4);
    assert!(of_packed.workload["trace"]["stood_in"].as_object().unwrap().is_empty());
    // A list of both, with a copy: 4 CTAs of 4 warps with 26 instructions, one of 2, of which two warps are empty.
    let whole = run(packed("kernelslist.g"));
    assert_eq!(whole.warp_instructions(), (4 * 4 - 1) * 26 + 1 + 12 + 1);
    assert_eq!(whole.total("tensor", "matrix_instructions"), (4 * 4 - 1) * 3 + 1);
    assert_eq!(whole.workload["workload"], "packed");
}

#[test]
fn a_packed_trace_is_the_same_at_every_number_of_threads() {
    let experiment = AnyExperiment::from(packed("kernelslist.g").build().unwrap());
    let reference = run_one(&experiment, &Way::REFERENCE, 1000, None);
    let ways: Vec<Way> = [2, 8].into_iter().flat_map(|threads| Way::at(threads).into_iter().take(2)).collect();
    for compared in compare_all(&experiment, &reference, &ways, 1000, None, |_| {}) {
        assert_eq!(compared.difference, None, "{}", compared.way);
    }
}

#[test]
fn copies_whose_barriers_are_not_in_the_trace_are_made_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel-1.traceg");
    let text = "-kernel name = copy\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-binary version = 90\n\
                -accelsim tracer version = 6\n#\n#BEGIN_TB\nthread block = 0,0,0\ncluster id = 0,0,0\nwarp = 0\ninsts = 3\n\
                0000 00000001 0 UTMALDG.2D 2 UR4 UR8 16 0x400 0 8192 0 4 0x7f0000001000 2 128 0 NoVal\n\
                0010 00000001 0 UBLKCP 2 UR4 UR8 16 0x400 0 64 0 3 1 0x7f0000002000 0 NoVal\n\
                0020 ffffffff 0 EXIT 0 0 0 NoVal\n#END_TB\n";
    std::fs::write(&path, text).unwrap();
    let outcome = run(Experiment::of(path.display().to_string()).machine("titan-x"));
    // 8192 bytes at two addresses 128 bytes apart: 33 lines are one after the other, and 32 of them are read twice.
    assert_eq!([outcome.warp_instructions(), outcome.total("l2", "reads")], [3, 64]);
    let told = |end: &str| outcome.validity.iter().any(|caveat| caveat.text.contains(end));
    assert!(told("in 1 launches barriers in shared memory order nothing"));
    // Where it goes, its name does not say.
    assert_eq!(outcome.workload["trace"]["stood_in"], serde_json::json!({ "UBLKCP as NOP": 1 }));
    assert!(told("what is a MOV or a NOP accesses no memory: 1 UBLKCP as NOP"));
}

#[test]
fn what_the_host_copied_in_lies_in_the_l2() {
    let hits = |recipe: Recipe| run(recipe).total("l2", "read_hits");
    let folder = tempfile::tempdir().unwrap();
    for name in ["kernel-1.traceg", "kernel-2.traceg.xz", "kernel-3.traceg", "kernelslist.g"] {
        std::fs::copy(format!("tests/traces/small/{name}"), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("kernelslist.toml"), "copies = \"none\"\n").unwrap();
    let cold = Experiment::of(folder.path().display().to_string()).machine("titan-x");
    assert!(hits(small("kernelslist.g")) > hits(cold));
}

#[test]
fn a_fence_of_the_labels_waits_for_what_was_stored() {
    let outcome = run(small("persistent.toml").scheme("store+clwb"));
    assert_eq!(outcome.workload["workload"], "small-persistent");
    assert_eq!(outcome.workload["trace"]["persistent"]["results"], serde_json::json!([0x7f2b_0000_2000_u64, 4096]));
    // A store of each warp of 32 lanes: 2 CTAs, 3 of the other kernels.
    assert_eq!([outcome.total("sm", "pm_stores"), outcome.total("sm", "pm_write_backs")], [5, 5]);
    assert_eq!(outcome.total("sm", "pm_fences"), 2);
    // Each write-back and each fence is an instruction that the trace does not have.
    assert_eq!(outcome.warp_instructions(), 64 + 5 + 2);
}
