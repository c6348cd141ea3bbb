//! Verbs that harts post to other servers: a replicated log, faults of descriptors in both drivers, how long
//! a verb takes, what is durable in which order, equal results on any number of threads.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use durawarp::assemble::{Assembly, CpuLoad, Persistency, assemble_cpu};
use durawarp::config::{CpuMachine, Override, SchemeConfig};
use durawarp::crash::{CPU_BUDGET, CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::machine::cpu::CpuSpec;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::verbs::{VerbOrder, is_of_clients};
use durawarp::persist::{Author, Fact, FactKind, Journal};
use durawarp::riscv::functional::{self, End, Options};
use durawarp::riscv::process::Process;
use durawarp::riscv::verbs::Peers;
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::stats::Counters;
use durawarp::{Experiment, MachineConfig, Outcome, Recipe};

use crate::common::{DATA, program};
use crate::encoding::{b_type, i_type, opcode, s_type, u_type};

/// `replicate` without the fence between its transactions.
const WITHOUT_FENCE: &[u8] = include_bytes!("samples/missing_fence/replicate.elf");

const A0: u32 = 10;
const A1: u32 = 11;
const A2: u32 = 12;
const A3: u32 = 13;

/// Words that end the process with exit code 0.
const EXIT: [u32; 3] = [0x0000_0513, 0x05e0_0893, 0x0000_0073];

fn post(descriptor: u32) -> u32 {
    i_type(0x0b, 6, 0, descriptor, 0)
}

fn poll(to: u32, peer: u32) -> u32 {
    i_type(0x0b, 7, to, peer, 0)
}

/// Stores a descriptor at an offset of the data, whose address is in `a1` then.
fn describe(words: &mut Vec<u32>, offset: i32, descriptor: [u32; 8]) {
    words.push(u_type(opcode::LUI, A1, (DATA >> 12) as i32));
    for (at, word) in (offset..).step_by(4).zip(descriptor) {
        let low = (word as i32) << 20 >> 20;
        words.push(u_type(opcode::LUI, A0, (word.wrapping_sub(low as u32) >> 12) as i32));
        words.push(i_type(opcode::IMMEDIATE_WORD, 0, A0, A0, low));
        words.push(s_type(opcode::STORE, 2, A1, A0, at));
    }
}

/// Posts a verb of the data's first line, and ends.
fn posting(descriptor: [u32; 8]) -> Vec<u32> {
    let mut words = Vec::new();
    describe(&mut words, 64, descriptor);
    words.extend([i_type(opcode::IMMEDIATE, 0, A1, A1, 64), post(A1)]);
    words.extend(EXIT);
    words
}

/// A verb that there is nothing wrong with.
const GOOD: [u32; 8] = [1, 1, DATA as u32, 0, 0, 0, 64, 1];

fn spec(set: &[&str]) -> CpuSpec {
    let linked = ["nodes.servers=2", "nodes.clients=0", "nodes.peer_log_kb=4"];
    let set: Vec<Override> = linked.iter().chain(set).map(|text| Override::parse(text).unwrap()).collect();
    let machine: CpuMachine = MachineConfig::read("broi-cluster", &set).unwrap_or_else(|faults| panic!("{faults}"));
    machine.spec
}

fn load_of<'a>(spec: &CpuSpec, process: &'a Process) -> CpuLoad<'a> {
    CpuLoad { process, files: &[], all_persistent: false, remote_bytes: spec.remote_bytes(), regions: None }
}

fn ran(spec: &CpuSpec, process: &Process, scheme: &str) -> (Assembly, RunEnd) {
    let scheme = SchemeConfig::load(scheme, &[]).unwrap().built;
    let mut assembly =
        assemble_cpu(spec, load_of(spec, process), &Persistency { scheme, journal: true, ..Persistency::default() });
    let end = assembly.simulation.run(&RunOptions::default());
    (assembly, end)
}

#[test]
fn what_is_wrong_with_a_verb_is_told_by_both_drivers_alike() {
    let of = |change: &[(usize, u32)]| {
        let mut descriptor = GOOD;
        change.iter().for_each(|&(at, word)| descriptor[at] = word);
        posting(descriptor)
    };
    // li a0, 3; rdma.poll a0, a0. lui a1, 0x40000 (1 GiB): outside memory.
    let outside = [&[u_type(opcode::LUI, A1, 0x4_0000), post(A1)], &EXIT[..]].concat();
    let polling = [&[i_type(opcode::IMMEDIATE, 0, A0, 0, 3), poll(A0, A0)], &EXIT[..]].concat();
    let linked = spec(&[]);
    for (words, linked, told) in [
        (of(&[(0, 2)]), &linked, "a verb of kind 2, only 1 (rdma_pwrite) is known"),
        (of(&[(1, 2)]), &linked, "a verb to peer 2, only peer 1 exists"),
        (of(&[(6, 100)]), &linked, "a verb of 100 bytes, which are not 1 to 16384 whole lines of 64"),
        (of(&[(4, 4096)]), &linked, "a verb of 64 bytes to offset 4096 of a log of 4096 bytes (nodes.peer_log_kb)"),
        (of(&[(3, 1)]), &linked, "a load of 64 bytes at 0x100020000, outside the memory of the process"),
        (outside, &linked, "a load of 32 bytes at 0x40000000, outside the memory of the process"),
        (polling, &linked, "a verb to peer 3, only peer 1 exists"),
        (of(&[]), &spec(&["nodes.peer_log_kb=0"]), "a verb (rdma.post, rdma.poll) on a machine without links"),
    ] {
        let process = program(&words);
        let options = Options { harts: linked.harts(), peers: linked.peers(), ..Options::default() };
        let End::Fault(reference) = functional::run(&process, process.memory(), &options).end else {
            panic!("{told}: no fault")
        };
        assert!(reference.to_string().starts_with(told), "{reference}");
        let (_, end) = ran(linked, &process, "broi");
        let RunEnd::Failed { error, .. } = end else { panic!("{told}: {end:?}") };
        assert_eq!(error.to_string(), reference.to_string());
    }
    // What there is nothing wrong with.
    let process = program(&of(&[]));
    assert!(matches!(ran(&linked, &process, "broi").1, RunEnd::Finished { .. }));
}

fn value<C: Counters>(counters: &C, name: &str) -> u64 {
    let at = C::DESCRIPTIONS.iter().position(|of| of.name == name).unwrap_or_else(|| panic!("no counter {name}"));
    counters.values()[at]
}

/// Ticks of 50 ps: 64 B take 45.7 ns on the port, the way 2,817 ns.
#[test]
fn a_verb_takes_what_reading_it_the_network_and_persisting_take() {
    let spec = spec(&["nvm.t_rcd_ns=0", "nvm.t_wl_ns=0", "nvm.row_write_ns=0", "nvm.write_hit_ns=0"]);
    let (assembly, end) = ran(&spec, &program(&posting(GOOD)), "epoch");
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let base = spec.timebase().unwrap();
    let ns = |ticks: u64| base.ps_of_ticks(ticks) / 1000;
    for (server, poster) in assembly.posters().enumerate() {
        let counted = poster.counters();
        assert_eq!(["verbs", "bytes", "acks", "read_lines"].map(|name| value(&counted, name)), [1, 64, 1, 2]);
        // The journal of the other server: posted after two reads of lines, from a core or from no cache.
        let journal = assembly.journals().nth(1 - server).unwrap();
        let time = |kind| journal.facts().iter().find(|fact| fact.kind == kind).map(|fact| fact.time).unwrap();
        let (posted, durable, acknowledged) =
            (time(FactKind::VerbPosted), time(FactKind::AtMedia), time(FactKind::VerbAcknowledged));
        let to_nic = base.ticks_of_ps(64 * 1_000_000 / u64::from(spec.network.mb_s))
            + base.ticks_of_ps(spec.network.latency_ns.ps);
        let to_media = ns(durable - posted - to_nic);
        assert!((4..60).contains(&to_media), "path to the controller, one line on its bus: {to_media}");
        assert_eq!(acknowledged - durable, base.ticks_of_ps(4_400));
        let reading =
            value(&counted, "latency_ns") - ns(acknowledged + base.ticks_of_ps(spec.network.latency_ns.ps) - posted);
        assert!((20..400).contains(&reading), "two lines, one behind the other: {reading}");
    }
}

/// The replicated log of two threads of each of some servers.
fn replicate(scheme: &str, peers: u32, sync: bool) -> Recipe {
    let recipe = Experiment::of("replicate").profile("ci").scheme(scheme);
    recipe.set("params.PEERS", peers).set("params.SYNC", u32::from(sync)).set("params.TRANSACTIONS", 6)
}

fn outcome(recipe: Recipe) -> Outcome {
    recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(&Conduct::default()).outcome
}

#[test]
fn a_replicated_log_is_at_every_peer_and_is_faster_posted_at_once() {
    for (scheme, peers) in [("epoch", 1), ("broi", 2)] {
        let [sync, buffered] = [true, false].map(|sync| {
            let outcome = outcome(replicate(scheme, peers, sync));
            let check = outcome.verification.as_ref().unwrap();
            assert!(check.passed, "{scheme}: {:?}", check.failures);
            // Exit code; the functional driver's persistent memory, and its logs at the peers.
            assert_eq!(check.checks["checks"].as_array().unwrap().len(), 2);
            let servers = u64::from(peers) + 1;
            let verbs = servers * u64::from(peers) * 2 * 6 * 6;
            assert_eq!(outcome.total("poster", "verbs"), verbs);
            assert_eq!(outcome.total("nic", "durable_verbs"), verbs);
            let acks = if sync { verbs } else { verbs / 6 };
            assert_eq!([outcome.total("poster", "acks"), outcome.total("nic", "acks")], [acks; 2]);
            outcome.time.core_cycles
        });
        let ratio = sync as f64 / buffered as f64;
        assert!((2.0..6.0).contains(&ratio), "{scheme}: {sync} and {buffered} cycles");
    }
}

/// Every verb as one epoch, behind those before it in its channel; what is acknowledged is durable.
#[test]
fn what_peers_have_of_a_channel_is_a_prefix_at_every_instant() {
    let words = {
        let mut words = Vec::new();
        for nth in 0..6 {
            // Verbs of one to four lines, the second and the fifth with an acknowledgement.
            let (lines, offset) = (nth % 4 + 1, nth * 256);
            let asks = u32::from(nth % 3 == 1);
            describe(&mut words, 512 + 32 * nth as i32, [1, 1, DATA as u32, 0, offset, 0, 64 * lines, asks]);
            words.extend([i_type(opcode::IMMEDIATE, 0, A2, A1, 512 + 32 * nth as i32), post(A2)]);
        }
        // Waits until the fifth is acknowledged: li a3, 1; rdma.poll a0, a3; addi a0, a0, -5; bnez a0, -8
        words.extend([i_type(opcode::IMMEDIATE, 0, A3, 0, 1), poll(A0, A3), i_type(opcode::IMMEDIATE, 0, A0, A0, -5)]);
        words.push(b_type(1, A0, 0, -8));
        words.extend(EXIT);
        words
    };
    for scheme in ["epoch", "broi"] {
        let spec = spec(&[]);
        let process = program(&words);
        let (assembly, end) = ran(&spec, &process, scheme);
        assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
        for server in 0..2 {
            let load = load_of(&spec, &process);
            let remote = load.remote()..load.remote() + spec.remote_bytes();
            let [journal, _] = assembly.journals().nth(server).unwrap().parted(|fact| is_of_clients(fact, &remote));
            let order = VerbOrder::new(&journal, spec.persist.domain);
            assert_eq!((order.channels(), order.verbs(), order.acknowledgements()), (1, 6, 2), "{scheme}");
            // A transaction ends with a verb that asks: the second and the fifth.
            let posted = journal.facts().iter().filter(|fact| fact.kind == FactKind::VerbPosted);
            let of_verb = |fact: &Fact| match fact.author {
                Author::PostedVerb { transaction, sequence, .. } => (sequence, transaction),
                other => panic!("{other:?}"),
            };
            let mut transactions: Vec<(u32, u32)> = posted.map(of_verb).collect();
            transactions.dedup();
            assert_eq!(transactions, [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 2)], "{scheme}");
            let verdict = order.judge_history(8);
            assert!(verdict.points > 0 && verdict.failures.is_empty(), "{scheme}: {:?}", verdict.failures);
            // The judge sees an acknowledgement that came too early.
            assert!(!VerbOrder::new(&early(&journal), spec.persist.domain).judge_history(8).failures.is_empty());
        }
    }
}

/// Judges the replicated log after power failures of each of two servers.
fn crashed(recipe: Recipe) -> CrashReport {
    let recipe = recipe.set("params.TRANSACTIONS", 3).set("params.BYTES", 128);
    let Ok(AnyExperiment::Cpu(experiment)) = recipe.build_any() else { panic!("a program of CPUs") };
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    let few = Budget { instants: 16, boundaries: 32, ..CPU_BUDGET };
    let request = CrashRequest { allowed: Some(few), ..CrashRequest::default() };
    crash_cpu(&experiment, &request, &Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} }).unwrap()
}

#[test]
fn the_log_at_a_peer_and_the_own_table_survive_a_power_failure_of_any_server() {
    for scheme in ["epoch", "broi"] {
        let report = crashed(replicate(scheme, 1, false));
        assert!(report.holds(), "{scheme}: {report:#?}");
        let channels = report.levels.channels.unwrap();
        // Two servers, two threads of each, three transactions of six verbs, the last of which is acknowledged.
        assert_eq!((channels.channels, channels.verbs, channels.acknowledgements), (4, 72, 12), "{scheme}");
        let judged =
            [JudgedLevel::Verbs, JudgedLevel::AllowedVerbs].map(|level| report.level(level).unwrap().verdict.judged);
        assert!(judged.into_iter().all(|judged| judged > 100), "{scheme}: {judged:?}");
        assert!(report.changes > 100 && report.level(JudgedLevel::Allowed).is_some(), "{scheme}: {report:#?}");
    }
}

#[test]
fn a_table_without_a_fence_between_its_transactions_is_found() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("riscv/missing_fence_replicate");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/replicate/workload.toml");
    std::fs::copy(manifest, folder.join("workload.toml")).unwrap();
    std::fs::write(folder.join("replicate.elf"), WITHOUT_FENCE).unwrap();
    let recipe = Experiment::of(folder.to_str().unwrap()).profile("ci").scheme("broi");
    let report = crashed(recipe.set("params.PEERS", 1).set("params.SYNC", 0));
    let failures = &report.level(JudgedLevel::Allowed).unwrap().verdict.failures;
    assert!(failures.iter().any(|failure| failure.what.contains("exited with 23: wrong table")), "{report:#?}");
    // The verbs have the NIC's order, which needs no fence.
    assert!(report.level(JudgedLevel::Verbs).unwrap().verdict.holds());
}

/// The same facts, but for acknowledgements, which come when the first line is durable.
fn early(journal: &Journal) -> Journal {
    let [acks, others] = journal.parted(|fact| fact.kind == FactKind::VerbAcknowledged);
    let mut changed = Journal::default();
    let mut acks = acks.facts().iter().peekable();
    for fact in others.facts() {
        if fact.kind == FactKind::AtMedia {
            acks.by_ref().for_each(|ack| changed.note(fact.time, ack.kind, 0, 0, ack.author));
        }
        let (mut line, bytes) = ([0; 128], others.data(fact));
        line[..bytes.len()].copy_from_slice(bytes);
        changed.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &line);
    }
    changed
}

#[test]
fn servers_that_post_to_each_other_are_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 20_000;
    let experiment: AnyExperiment = replicate("broi", 2, false).set("params.TRANSACTIONS", 2).build_any().unwrap();
    let ways: Vec<Way> = [1, 2].into_iter().flat_map(Way::at).collect();
    let reference = run_one(&experiment, &Way::REFERENCE, EPOCH_CYCLES, None);
    let compared = compare_all(&experiment, &reference, &ways, EPOCH_CYCLES, None, |_| {});
    let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
    assert!(differ.is_empty() && compared.len() == ways.len(), "{differ:?}");
}

#[test]
fn servers_that_cannot_be_linked_are_refused() {
    let told = |recipe: Recipe| recipe.build_any().unwrap_err().to_string();
    let alone = told(replicate("broi", 1, false).set("nodes.servers", 1));
    assert!(alone.contains("`nodes.peer_log_kb`: one server has no other to post verbs to"), "{alone}");
    let many = told(replicate("broi", 9, false));
    assert!(
        many.contains("72 harts of 9 other servers and 0 clients are more than the 64 channels of a NIC"),
        "{many}"
    );
    let base = told(replicate("base", 1, false));
    assert!(base.contains("has links between its servers, and under `base` no server persists"), "{base}");
    assert_eq!(Peers::default().count, 0);
}
