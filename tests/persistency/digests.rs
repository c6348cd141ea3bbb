//! What a user measures stays what it was: the results of every scheme on five workloads, by their digests.
//!
//! `digests.txt` has a line a run: scheme, workload, core cycles, digest of all events and states, digest of the memory,
//! and a hash of every statistic's value; then the machine and the readings, where they are not the defaults.
//! `digests_of_machines.txt` has the same of every built-in machine, by workloads that use what it has. A change that
//! only rebuilds the house leaves all of them as they are; a change of the model writes its new lines there and says in
//! its commit why.

use durawarp::config::{has_tensor_cores, presets};
use durawarp::outcome::{End, Outcome};
use durawarp::run::Experiment;
use durawarp::schemes::catalogue;

const KNOWN: &str = include_str!("digests.txt");
const KNOWN_OF_MACHINES: &str = include_str!("digests_of_machines.txt");

/// What `ampere-a100` had before its reads of the L2 were those of a card: results are the same bits as then.
const AMPERE_BEFORE: [&str; 4] =
    ["sm.coalescer=warp_by_sector", "crossbar.flit_bytes=40", "crossbar.gpcs=0", "crossbar.gpc_bytes=0"];

/// Named readings, of the machine and of schemes, by whose mechanisms a default run does not go.
const READINGS: [(&str, &str, &str, &[&str]); 26] = [
    ("agpm-table4", "nt-store", "atax", &["persist.clwb=l2"]),
    ("agpm-table4", "nt-store", "atax", &["persist.past_ack=media"]),
    ("agpm-table4", "nt-store", "atax", &["persist.past_l1=update", "persist.past_l2=invalidate"]),
    ("agpm-table4", "store+clwb", "atax", &["l2.write_miss=fetch"]),
    ("agpm-table4", "store+clwb", "gemm_tiled", &["nvm.write_mode=row_buffer"]),
    ("agpm-table4", "agpm", "gemm_tiled", &["nvm.write_mode=through"]),
    ("agpm-table4", "agpm", "atax", &["crossbar.switch=input_queued"]),
    ("agpm-table4", "themis", "grid_reorder", &["themis.order_scope=sm"]),
    ("agpm-table4", "themis", "atax", &["themis.mode=paper", "themis.wcb_entries=2"]),
    ("agpm-table4", "bucl", "atax", &["bucl.routed=requests", "bucl.read_only=steered"]),
    ("agpm-table4", "epoch-tag", "kv_store", &["epoch_tag.past_entries=2", "epoch_tag.held_entries=2"]),
    ("agpm-table4", "sbrp", "kv_store", &["sbrp.pb_entries=4", "sbrp.window=1"]),
    ("titan-x", "base", "gemm_tiled", &[]),
    ("titan-x", "epoch-cta", "kv_store", &[]),
    ("scoped-table2", "nvw-fifo", "kv_store", &["nvw_fifo.l1_entries=4"]),
    ("scoped-table2", "epoch-tag", "kv_store", &[]),
    ("scoped-table2", "epoch-tag", "kv_store", &["l2.slices=2", "l2.slice_kb=1", "l2.ways=2"]),
    ("scoped-table2", "epoch-tag", "kv_store", &["epoch_tag.levels=l1"]),
    ("scoped-table2", "sbrp", "kv_store", &["sbrp.pb_entries=4"]),
    ("lightwsp-gpu", "light-wsp", "atax", &["light_wsp.wpq_entries=128", "light_wsp.entry_bytes=8"]),
    ("lightwsp-gpu", "light-wsp", "gemm_tiled", &["light_wsp.owner=cta"]),
    ("lightwsp-gpu", "light-wsp", "atax", &["light_wsp.commit=pipelined", "light_wsp.checkpoints=uniform_once"]),
    ("lightwsp-gpu", "light-wsp", "kv_store", &["light_wsp.order=sm"]),
    ("lightwsp-gpu", "light-wsp", "kv_store", &["light_wsp.victims=zero", "light_wsp.feb_entries=4"]),
    ("ampere-a100", "base", "gemm_tiled", &AMPERE_BEFORE),
    ("ampere-a100", "base", "gemm_tensor", &AMPERE_BEFORE),
];

/// A built-in machine is one with a GPU.
fn has_sms(machine: &str) -> bool {
    presets::MACHINES.iter().any(|(name, _)| *name == machine)
}

fn outcome(machine: &str, scheme: &str, workload: &str, readings: &[&str]) -> Outcome {
    // Its queues have to survive a power failure.
    let domain = (scheme == "light-wsp").then_some("persist.domain=adr");
    let recipe = Experiment::of(workload).machine(machine).scheme(scheme).profile("ci").reference(false);
    let sms = has_sms(machine).then_some("sm.count=3");
    let recipe = recipe.changes(sms).changes(domain).changes(readings);
    recipe.run().unwrap_or_else(|faults| panic!("{faults}"))
}

/// Everything in an outcome that is counted, by one number; what the counters' texts say is left out.
fn statistics(outcome: &Outcome) -> String {
    let counters: Vec<_> = outcome.counters.iter().map(|table| (&table.kind, &table.names, &table.rows)).collect();
    let counted = serde_json::json!([
        outcome.time,
        outcome.launches,
        outcome.kernels,
        counters,
        outcome.persists,
        outcome.backlog,
        outcome.scheme_report,
        outcome.scheme_counters,
        outcome.engine,
    ]);
    blake3::hash(counted.to_string().as_bytes()).to_hex()[..16].to_owned()
}

fn line(machine: &str, scheme: &str, workload: &str, readings: &[&str]) -> String {
    let outcome = outcome(machine, scheme, workload, readings);
    assert_eq!(outcome.end, End::Finished, "{scheme} {workload}");
    let (cycles, statistics) = (outcome.time.core_cycles, statistics(&outcome));
    format!("{scheme} {workload} {cycles} {} {} {statistics}", outcome.digest, outcome.memory_digest)
}

fn assert_known<'a>(lines: &[String], known: impl Iterator<Item = &'a str>) {
    let known: Vec<&str> = known.collect();
    assert!(lines == known, "known lines differ; now:\n{}", lines.join("\n"));
}

/// The lines of a workload, compared with those that are known.
fn check(machine: &str, workload: &str) {
    let schemes = catalogue::all();
    assert_eq!(schemes.len(), 14);
    let lines: Vec<String> = schemes.iter().map(|scheme| line(machine, scheme.name(), workload, &[])).collect();
    let of_workload = |line: &&str| line.split(' ').nth(1) == Some(workload) && line.split(' ').count() == 6;
    assert_known(&lines, KNOWN.lines().filter(of_workload));
}

#[test]
fn atax_has_its_results() {
    check("agpm-table4", "atax");
}

#[test]
fn gemm_tiled_has_its_results() {
    check("agpm-table4", "gemm_tiled");
}

#[test]
fn grid_reorder_has_its_results() {
    check("agpm-table4", "grid_reorder");
}

#[test]
fn bplus_tree_has_its_results() {
    check("scoped-table2", "bplus_tree");
}

#[test]
fn kv_store_has_its_results() {
    check("lightwsp-gpu", "kv_store");
}

#[test]
fn named_readings_have_their_results() {
    let of = |&(machine, scheme, workload, readings): &(&str, &str, &str, &[&str])| {
        format!("{} {machine} {}", line(machine, scheme, workload, readings), readings.join(","))
    };
    let lines: Vec<String> = READINGS.iter().map(of).collect();
    assert_known(&lines, KNOWN.lines().filter(|line| line.split(' ').count() > 6));
}

/// What a machine runs: scheme and workload.
fn runs_of(machine: &str) -> &'static [(&'static str, &'static str)] {
    const PLAIN: [(&str, &str); 2] = [("base", "gemm_tiled"), ("strict", "kv_store")];
    // Products of matrices, copies in bulk and by tensor maps, too.
    const TENSOR: [(&str, &str); 5] =
        [PLAIN[0], PLAIN[1], ("base", "gemm_tensor"), ("base", "bulk_stream"), ("base", "tensor_transpose")];
    const CORES: [(&str, &str); 2] = [("base", "hash"), ("sync", "kvlog")];
    const CLUSTER: [(&str, &str); 2] = [("epoch", "hashmap_remote"), ("broi", "ycsb_remote")];
    match machine {
        presets::DEFAULT_CLUSTER => &CLUSTER,
        _ if !has_sms(machine) => &CORES,
        _ if has_tensor_cores(machine) => &TENSOR,
        _ => &PLAIN,
    }
}

#[test]
fn every_built_in_machine_has_its_results() {
    let of = |machine| {
        let runs = runs_of(machine).iter();
        runs.map(move |(scheme, workload)| format!("{machine} {}", line(machine, scheme, workload, &[])))
    };
    let lines: Vec<String> = presets::names().flat_map(of).collect();
    assert_known(&lines, KNOWN_OF_MACHINES.lines());
}
