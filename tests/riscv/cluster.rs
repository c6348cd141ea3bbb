//! Several servers with clients: the same whatever is fused and on any number of threads, each server with
//! memory and a program of its own that is checked, faults told all at once.

use std::sync::atomic::AtomicBool;

use durawarp::assemble::{Assembly, CpuLoad, Fusing, Persistency, assemble_cpu_fused};
use durawarp::config::{CpuMachine, Override, SchemeConfig};
use durawarp::crash::{CPU_BUDGET, CrashRequest, Watching, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::machine::client::{Client, Script};
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::outcome::End;
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment};
use durawarp::workload::{CpuCheck, CpuCheckKind};
use durawarp::{Experiment, MachineConfig, Outcome, Recipe};

use crate::common::{DATA, program};
use crate::encoding::{b_type, i_type, opcode, r_type, s_type, u_type};

/// `hash` on so many servers and clients, each of which commits 10 transactions.
fn cluster(servers: u32, clients: u32) -> Recipe {
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi").reference(false);
    let recipe = recipe.set("params.OPS", 10).set("client.transactions", 10);
    recipe.set("nodes.servers", servers).set("nodes.clients", clients)
}

fn experiment(recipe: Recipe) -> CpuExperiment {
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("a machine of cores"),
    }
}

fn outcome(experiment: CpuExperiment) -> Outcome {
    AnyExperiment::Cpu(Box::new(experiment)).run(&Conduct::default()).outcome
}

/// Words that end the process with the exit code in `a0`.
const EXIT: [u32; 2] = [0x05e0_0893, 0x0000_0073];

#[test]
fn a_cluster_is_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 5_000;
    let cluster = AnyExperiment::Cpu(Box::new(experiment(cluster(3, 7))));
    let ways: Vec<Way> = [1, 2].into_iter().flat_map(Way::at).collect();
    let reference = run_one(&cluster, &Way::REFERENCE, EPOCH_CYCLES, None);
    let compared = compare_all(&cluster, &reference, &ways, EPOCH_CYCLES, None, |_| {});
    let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
    assert!(differ.is_empty() && compared.len() == ways.len(), "{differ:?}");
    let outcome = reference.outcome;
    assert!(outcome.verification.as_ref().unwrap().passed, "{:?}", outcome.verification);
    // 4 cores a server; clients in the order of their numbers.
    let rows = |kind: &str| outcome.table(kind).rows.len();
    assert_eq!(["core", "os", "nic", "client"].map(rows), [12, 3, 3, 7]);
    assert_eq!(outcome.total("client", "transactions"), 70);
    assert_eq!((outcome.warp_instructions(), outcome.machine.warp_slots), (outcome.total("core", "instructions"), 24));
    let names = &reference.components;
    let count = |text: &str| names.iter().filter(|name| name.starts_with(text)).count();
    assert_eq!(["s0.core", "s1.l2.", "s2.nic", "client"].map(count), [4, 4, 1, 7]);
    assert!(outcome.engine.parallelism_bound < 10.0, "three servers and seven clients");
}

/// A cluster whose programs end at once, run to its end.
fn ran(set: &[&str], fusing: Fusing) -> (Assembly, CpuMachine) {
    let set: Vec<Override> = set.iter().map(|text| Override::parse(text).unwrap()).collect();
    let machine: CpuMachine = MachineConfig::read("broi-cluster", &set).unwrap_or_else(|faults| panic!("{faults}"));
    let process = program(&[&[0x0000_0513], &EXIT[..]].concat());
    let remote_bytes = machine.spec.remote_bytes();
    let load = CpuLoad { process: &process, files: &[], all_persistent: false, remote_bytes, regions: None };
    let scheme = SchemeConfig::load("broi", &[]).unwrap().built;
    let persistency = Persistency { scheme, ..Persistency::default() };
    let mut assembly = assemble_cpu_fused(&machine.spec, load, &persistency, fusing);
    let end = assembly.simulation.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    (assembly, machine)
}

#[test]
fn results_do_not_depend_on_what_is_fused() {
    for servers in ["nodes.servers=1", "nodes.servers=3"] {
        let set = [servers, "nodes.clients=7", "client.transactions=10", "client.addresses=random"];
        let [memory, whole] = [Fusing::Memory, Fusing::Nodes].map(|fusing| ran(&set, fusing).0);
        assert_eq!(memory.simulation.digest(), whole.simulation.digest(), "{servers}");
        let rounds = [memory, whole].map(|ran| ran.simulation.stats().totals.rounds);
        assert!(rounds[0] > 2 * rounds[1], "{servers}: {rounds:?}");
    }
}

#[test]
fn a_client_writes_what_its_number_draws_into_its_own_server() {
    let set = ["nodes.servers=2", "nodes.clients=3", "client.transactions=20", "client.write_percent=60"];
    let (assembly, machine) = ran(&set, Fusing::Nodes);
    let (spec, process) = (&machine.spec, program(&EXIT));
    let remote_bytes = spec.remote_bytes();
    let load = CpuLoad { process: &process, files: &[], all_persistent: false, remote_bytes, regions: None };
    let numbers: Vec<u16> = assembly.clients().map(Client::number).collect();
    assert_eq!(numbers, [0, 2, 1], "server by server");
    let memories: Vec<Vec<u8>> = assembly
        .into_memories()
        .into_iter()
        .map(|memory| {
            let (memory, _) = memory.into_touched(load.image());
            memory.slice(load.remote(), remote_bytes as usize).unwrap().to_vec()
        })
        .collect();
    // Two clients of the first server, one of the second, which has memory for two.
    for (server, numbers) in [[Some(0), Some(2)], [Some(1), None]].into_iter().enumerate() {
        let mut expected = vec![0; remote_bytes as usize];
        for (channel, number) in numbers.into_iter().enumerate() {
            let Some(number) = number else { continue };
            let mut script = Script::new(&spec.client, number);
            while let Some(epochs) = script.next_transaction() {
                for epoch in epochs {
                    let at = channel * spec.client.region_bytes() as usize + epoch.offset as usize;
                    expected[at..at + 512].copy_from_slice(&script.bytes_of(epoch));
                }
            }
        }
        assert!(memories[server] == expected, "server {server}");
    }
}

/// Stores to 100 rows of persistent memory, each durable before the next. Writes the cycle to standard
/// output, stores it to persistent memory, and exits with it.
fn measuring() -> Vec<u32> {
    let [t0, t1, t2, a0, a1, a2, a7] = [5, 6, 7, 10, 11, 12, 17];
    let li = |register, value| i_type(opcode::IMMEDIATE, 0, register, 0, value);
    let mut words = vec![
        li(t0, 100),
        li(t1, 1),
        i_type(opcode::IMMEDIATE, 1, t1, t1, 38),
        u_type(opcode::LUI, t2, 1),
        // The loop: sd, pm.dfence, to the next row.
        s_type(opcode::STORE, 3, t1, t0, 0),
        i_type(0x0b, 1, 0, 0, 0),
        r_type(opcode::REGISTER, 0, 0, t1, t1, t2),
        i_type(opcode::IMMEDIATE, 0, t0, t0, -1),
        b_type(1, t0, 0, -16),
        // rdcycle
        i_type(opcode::SYSTEM, 2, a0, 0, 0xc00),
        s_type(opcode::STORE, 3, t1, a0, 0),
        u_type(opcode::LUI, a1, (DATA >> 12) as i32),
        s_type(opcode::STORE, 3, a1, a0, 0),
        // write(1, DATA, 8)
        li(a0, 1),
        li(a2, 8),
        li(a7, 64),
        0x0000_0073,
        i_type(opcode::LOAD, 3, a0, a1, 0),
    ];
    words.extend(EXIT);
    words
}

#[test]
fn every_server_is_checked_and_compared_with_the_first() {
    // The second server has no client: nothing is in the way of its own writes.
    let with = |checks: Vec<CpuCheckKind>| {
        let mut experiment = experiment(cluster(2, 1).set("client.compute_ns", 0).set("client.transactions", 100));
        experiment.program.image = program(&measuring()).image.as_ref().clone();
        let named = |kind| CpuCheck { name: "check".to_owned(), kind };
        experiment.program.checks = checks.into_iter().map(named).collect();
        experiment.reference = true;
        outcome(experiment)
    };
    let told = |outcome: &Outcome| outcome.verification.as_ref().unwrap().failures.clone();
    let free = with(vec![]);
    let code = free.process.as_ref().unwrap().exit_code.unwrap();
    let differs = told(&free);
    assert_eq!(differs.len(), 2, "{differs:?}");
    assert!(differs[0].starts_with("server 1: the program exited with "), "{differs:?}");
    assert!(differs[0].ends_with(&format!(", that of server 0 with {code}")), "{differs:?}");
    assert_eq!(differs[1], "server 1: standard output is not that of server 0");
    // What is right for the first server is not for the second.
    let strict = told(&with(vec![CpuCheckKind::ExitCode(code)]));
    assert!(strict[0].starts_with("server 1: check `check` failed"), "{strict:?}");
    assert_eq!(strict.len(), 3);
    // Each has its own memory, and neither what the functional driver leaves.
    let neither = told(&with(vec![CpuCheckKind::Functional]));
    for (failure, server) in neither.iter().zip(["", "server 1: "]) {
        let first = format!("{server}check `check` failed: ");
        assert!(failure.starts_with(&first) && failure.contains("; first persistent memory[409600]"), "{neither:?}");
    }
}

#[test]
fn a_deadlock_names_the_server() {
    // futex(DATA, FUTEX_WAIT, 0, no timeout)
    let words = [0x0002_0537, 0x0000_0593, 0x0000_0613, 0x0000_0693, 0x0620_0893, 0x0000_0073];
    let mut experiment = experiment(cluster(2, 0));
    experiment.program.image = program(&words).image.as_ref().clone();
    let End::Deadlock { waits } = outcome(experiment).end else { panic!("it waits for ever") };
    for server in 0..2 {
        assert!(waits.iter().any(|wait| wait.starts_with(&format!("s{server}.os: hart 0"))), "{waits:?}");
    }
}

#[test]
fn what_no_cluster_can_be_is_told_all_at_once() {
    let told = |recipe: Recipe| recipe.build_any().unwrap_err().to_string();
    let both =
        told(cluster(0, 4).set("network.latency_ns", 0).set("client.region_kb", 4).set("client.bytes_per_epoch", 8192));
    for part in ["no server: 4 clients have none", "network.latency_ns", "an epoch of 8192 B does not fit"] {
        assert!(both.contains(part), "{both}");
    }
    let many = told(cluster(100_000, 0));
    assert!(
        many.contains("100000 servers of 12 components and 0 clients are 1200000 components, where at most 1048575"),
        "{many}"
    );
    assert!(told(cluster(2, 129)).contains("129 clients of 2 servers are 65 of one, whose NIC has 64 channels"));
    let (stop, conduct) = (AtomicBool::new(false), Conduct::default());
    let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
    let one = CrashRequest { plan: Plan::Only(3), ..CrashRequest::default() };
    let crash = crash_cpu(&experiment(cluster(2, 4)), &one, &watching).unwrap_err().to_string();
    assert!(crash.contains("one state is asked for, of 2 servers that each have states"), "{crash}");
}

#[test]
fn power_failures_are_judged_server_by_server() {
    let crashed = |servers: u32, clients: u32| {
        let (stop, conduct) = (AtomicBool::new(false), Conduct::default());
        let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
        let budget = Budget { instants: 4, ..CPU_BUDGET };
        let request = CrashRequest { allowed: Some(budget), plan: Plan::Count(8), ..CrashRequest::default() };
        let cluster = cluster(servers, clients).set("client.transactions", 4).set("client.write_percent", 100);
        let report = crash_cpu(&experiment(cluster), &request, &watching).unwrap();
        assert!(report.holds(), "{report:#?}");
        let judged: Vec<u64> = report.judgements().map(|(_, judgement)| judgement.verdict.judged).collect();
        let channels = report.levels.channels.unwrap();
        (judged, channels.channels, channels.verbs, channels.acknowledgements)
    };
    // The second server has no client: its program is judged, and it has no verbs.
    let (one, two) = (crashed(1, 1), crashed(2, 1));
    assert_eq!((two.1, two.2, two.3), (one.1, one.2, one.3));
    assert_eq!((one.0.len(), two.0.len()), (5, 5));
    assert!(two.0[0] > one.0[0] && two.0[1] == 2 * one.0[1], "{one:?} {two:?}");
    let (_, channels, verbs, acks) = crashed(2, 3);
    assert_eq!((channels, verbs, acks), (3, 3 * 4 * 6, 3 * 4));
}
