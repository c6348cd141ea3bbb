//! Clients that persist over the network in a server's memory: what a transaction takes by worked sums, what
//! is acknowledged, what memory has in the end. The server's own program ends at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use durawarp::Outcome;
use durawarp::assemble::{Assembly, CpuLoad, Persistency, assemble_cpu};
use durawarp::config::{CpuMachine, Override, SchemeConfig};
use durawarp::crash::{CPU_BUDGET, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::machine::client::{Client, Script};
use durawarp::machine::coherence::CPU_LINE_BYTES;
use durawarp::machine::cpu::CpuSpec;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::persist::FactKind;
use durawarp::riscv::memory::PM_START;
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::stats::Counters;
use durawarp::{Experiment, MachineConfig};

use crate::common::program;

/// One client whose transactions all write, and which computes nothing.
const ALONE: [&str; 4] =
    ["nodes.clients=1", "client.write_percent=100", "client.compute_ns=0", "client.transactions=1"];

/// Media of which every access is a hit and takes no time of its own: what is left is the network.
pub(crate) const NO_MEDIA: [&str; 4] = ["nvm.t_rcd_ns=0", "nvm.t_wl_ns=0", "nvm.row_write_ns=0", "nvm.write_hit_ns=0"];

/// A server whose clients are done.
pub(crate) struct Ran {
    pub(crate) spec: CpuSpec,
    pub(crate) assembly: Assembly,
    /// The clients' memory.
    pub(crate) memory: Vec<u8>,
    pub(crate) start: u64,
}

pub(crate) fn ran(scheme: &str, set: &[&str]) -> Ran {
    let set: Vec<Override> = ALONE.iter().chain(set).map(|text| Override::parse(text).unwrap()).collect();
    let machine: CpuMachine = MachineConfig::read("broi-cluster", &set).unwrap_or_else(|faults| panic!("{faults}"));
    let spec = machine.spec;
    // li a0, 0; li a7, 94 (exit_group); ecall
    let process = program(&[0x0000_0513, 0x05e0_0893, 0x0000_0073]);
    let remote_bytes = spec.remote_bytes();
    let load = CpuLoad { process: &process, files: &[], all_persistent: false, remote_bytes, regions: None };
    let scheme = SchemeConfig::load(scheme, &[]).unwrap().built;
    let persistency = Persistency { scheme, journal: true, ..Persistency::default() };
    let assemble = || {
        let mut assembly = assemble_cpu(&spec, load, &persistency);
        let end = assembly.simulation.run(&RunOptions::default());
        assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
        assembly
    };
    let memory = assemble().into_memory(load.image());
    let memory = memory.slice(load.remote(), remote_bytes as usize).unwrap().to_vec();
    Ran { assembly: assemble(), memory, start: load.remote(), spec }
}

impl Ran {
    /// A counter of the first client.
    pub(crate) fn client(&self, name: &str) -> u64 {
        value(&self.assembly.clients().next().unwrap().counters(), name)
    }

    pub(crate) fn nic(&self, name: &str) -> u64 {
        value(&self.assembly.nics().next().unwrap().counters(), name)
    }

    /// The clients' memory as their scripts leave it.
    pub(crate) fn expected(&self) -> Vec<u8> {
        let (client, mut memory) = (&self.spec.client, vec![0; self.memory.len()]);
        for number in 0..self.spec.nodes.clients as u16 {
            let mut script = Script::new(client, number);
            for epoch in std::iter::from_fn(|| script.next_transaction()).flatten().collect::<Vec<_>>() {
                let at = (client.region_bytes() * u64::from(number) + epoch.offset) as usize;
                memory[at..at + client.bytes_per_epoch as usize].copy_from_slice(&script.bytes_of(epoch));
            }
        }
        memory
    }

    /// What it takes in ns from the first verb to the commit, for each transaction.
    pub(crate) fn latency(&self) -> u64 {
        self.client("latency_ns") / self.client("transactions")
    }
}

pub(crate) fn value<C: Counters>(counters: &C, name: &str) -> u64 {
    let at = C::DESCRIPTIONS.iter().position(|of| of.name == name).unwrap_or_else(|| panic!("no counter {name}"));
    counters.values()[at]
}

/// Ticks of 50 ps: 512 B take 365.7 ns on the port, the way 2,817 ns.
#[test]
fn six_epochs_take_six_round_trips_under_sync_and_one_with_five_gaps_under_bsp() {
    let of = |protocol: &str, epochs: &str| ran("epoch", &[&NO_MEDIA[..], &[protocol, epochs]].concat()).latency();
    let (sync, bsp) = ("client.protocol=sync", "client.protocol=bsp");
    let (one, six) = ("client.epochs_per_tx=1", "client.epochs_per_tx=6");
    let round_trip = of(sync, one);
    // 6 us of network; to the controller and back, and 8 lines on its bus, in less than 0.1 us.
    assert!((6_000..6_100).contains(&round_trip), "{round_trip}");
    assert_eq!(of(bsp, one), round_trip, "one epoch is the same under either");
    let (synchronous, buffered) = (of(sync, six), of(bsp, six));
    assert!(synchronous.abs_diff(6 * round_trip) <= 20, "{synchronous} of {round_trip}");
    assert!(buffered.abs_diff(round_trip + 5 * 366) <= 20, "{buffered} of {round_trip}");
    // The paper's Fig. 4, to which the network is calibrated.
    let ratio = synchronous as f64 / buffered as f64;
    assert!((ratio / 4.6 - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_verb_is_acknowledged_when_the_last_of_its_lines_is_durable_also_over_two_rows() {
    for scheme in ["epoch", "broi"] {
        // 3 KiB at 0, 3 and 6 KiB: each of the first two lies in two rows of 2 KiB.
        let set = ["client.bytes_per_epoch=3072", "client.epochs_per_tx=2", "client.protocol=bsp"];
        let ran = ran(scheme, &set);
        let journal = ran.assembly.journal();
        let durable = journal.facts().iter().filter(|fact| fact.kind == FactKind::AtMedia && fact.line >= ran.start);
        let times: Vec<u64> = durable.map(|fact| fact.time).collect();
        assert_eq!(times.len(), 2 * 3072 / CPU_LINE_BYTES as usize);
        let base = ran.spec.timebase().unwrap();
        let back = base.ticks_of_ps(4_400) + base.ticks_of_ps(ran.spec.network.latency_ns.ps);
        let committed = base.ps_of_ticks(times.iter().max().unwrap() + back) / 1000;
        assert_eq!(ran.client("busy_ns"), committed, "{scheme}");
        // 3 packets a verb, one acknowledgement.
        assert_eq!(["packets", "verbs", "durable_verbs", "acks"].map(|name| ran.nic(name)), [6, 2, 2, 1]);
    }
}

#[test]
fn epochs_of_a_channel_are_durable_one_after_the_other() {
    for scheme in ["epoch", "broi"] {
        let ran = ran(scheme, &["client.addresses=random", "client.transactions=4", "client.seed=7"]);
        let journal = ran.assembly.journal();
        let at_media = |offset: u64| {
            let lines = ran.start + offset..ran.start + offset + 512;
            let facts = journal.facts().iter().filter(move |fact| fact.kind == FactKind::AtMedia);
            facts.filter(move |fact| lines.contains(&fact.line)).map(|fact| fact.time).collect::<Vec<u64>>()
        };
        let mut script = Script::new(&ran.spec.client, 0);
        let epochs: Vec<_> = std::iter::from_fn(|| script.next_transaction()).flatten().collect();
        assert_eq!(epochs.len(), 24);
        for pair in epochs.windows(2) {
            let [one, next] = [at_media(pair[0].offset), at_media(pair[1].offset)];
            assert_eq!((one.len(), next.len()), (8, 8), "no place is drawn twice with this seed");
            assert!(one.iter().max() < next.iter().min(), "{scheme}: {pair:?}");
        }
    }
}

#[test]
fn what_clients_post_is_in_memory_and_every_line_is_drained() {
    for scheme in ["epoch", "broi"] {
        let set = ["nodes.clients=3", "client.write_percent=60", "client.transactions=20", "client.addresses=random"];
        let ran = ran(scheme, &set);
        assert!(ran.memory == ran.expected(), "{scheme}");
        let clients: Vec<_> = ran.assembly.clients().map(Client::counters).collect();
        let verbs: u64 = clients.iter().map(|of| of.verbs).sum();
        let writes: Vec<u64> = clients.iter().map(|of| of.writes).collect();
        assert!(writes.iter().all(|writes| (4..20).contains(writes)) && writes[0] != writes[1], "{writes:?}");
        assert_eq!(clients.iter().map(|of| of.transactions).collect::<Vec<_>>(), [20, 20, 20]);
        assert_eq!(["verbs", "durable_verbs"].map(|name| ran.nic(name)), [verbs, verbs]);
        assert_eq!((ran.nic("bytes"), ran.nic("lines")), (512 * verbs, 8 * verbs));
        assert_eq!(ran.nic("acks"), writes.iter().sum::<u64>(), "one for each transaction under bsp");
        let journal = ran.assembly.journal();
        let drained = journal.facts().iter().filter(|fact| fact.kind == FactKind::AtMedia && fact.line >= ran.start);
        assert_eq!(drained.count() as u64, 8 * verbs);
    }
}

/// A log, and the data that it is of: two verbs of a client's transaction, in lines and rows of their own.
#[test]
fn remote_log_data() {
    for (scheme, protocol) in [("epoch", "bsp"), ("broi", "bsp"), ("broi", "sync")] {
        let protocol = format!("client.protocol={protocol}");
        let two = ["client.epochs_per_tx=2", "client.bytes_per_epoch=128", "client.addresses=random"];
        let ran = ran(scheme, &[&two[..], &["client.transactions=40", "client.compute_ns=100", &protocol]].concat());
        let journal = ran.assembly.journal();
        // By verb: the first and the last of its lines at the media. No place is drawn twice.
        let mut durable: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for fact in journal.facts().iter().filter(|fact| fact.kind == FactKind::AtMedia && fact.line >= ran.start) {
            let (_, verb) = fact.author.verb().unwrap();
            let (first, last) = durable.entry(verb).or_insert((u64::MAX, 0));
            (*first, *last) = (fact.time.min(*first), fact.time.max(*last));
        }
        assert_eq!(durable.len(), 80);
        for data in (2..=80).step_by(2) {
            assert!(durable[&(data - 1)].1 < durable[&data].0, "{scheme}, {protocol}: data of transaction {data} / 2");
        }
    }
}

/// No line is both a client's and a program's: clients' memory lies behind what the program has of it, where
/// a hart has no address.
#[test]
fn remote_vs_local_conflict() {
    // addi a0, x0, 1; slli a0, a0, 38; lui a1, 0x100 (1 MiB, all that it has); add a0, a0, a1; sd x0,
    // OFFSET(a0)
    let store_at = |store: u32| {
        let process =
            program(&[0x0010_0513, 0x0265_1513, 0x0010_05b7, 0x00b5_0533, store, 0x0000_0513, 0x05e0_0893, 0x73]);
        let machine: CpuMachine = MachineConfig::read("broi-cluster", &[]).unwrap();
        let remote_bytes = machine.spec.remote_bytes();
        let load = CpuLoad { process: &process, files: &[], all_persistent: false, remote_bytes, regions: None };
        let memory = load.memory();
        let end = memory.physical(PM_START + memory.windows.pm_bytes - 8, 8).unwrap() + 8;
        assert!(load.remote() >= end, "clients' memory lies behind the program's");
        let scheme = SchemeConfig::load("broi", &[]).unwrap().built;
        let persistency = Persistency { scheme, ..Persistency::default() };
        assemble_cpu(&machine.spec, load, &persistency).simulation.run(&RunOptions::default())
    };
    // sd x0, -8(a0) is the last word of the program's; sd x0, 0(a0) lies behind it.
    assert!(matches!(store_at(0xfe05_3c23), RunEnd::Finished { .. }));
    let told = format!("{:?}", store_at(0x0005_3023));
    assert!(
        told.contains(&format!("Unmapped {{ address: {}, bytes: 8, write: true }}", PM_START + (1 << 20))),
        "{told}"
    );
}

#[test]
fn a_verb_begins_at_the_tick_at_which_the_one_before_it_is_durable() {
    for scheme in ["epoch", "broi"] {
        let ran = ran(scheme, &["client.epochs_per_tx=6", "client.bytes_per_epoch=64", "client.protocol=bsp"]);
        let journal = ran.assembly.journal();
        let times = |kind: FactKind| {
            let facts = journal.facts().iter().filter(move |fact| fact.kind == kind && fact.line >= ran.start);
            facts.map(|fact| (fact.author.verb().unwrap().1, fact.time)).collect::<BTreeMap<_, _>>()
        };
        let (accepted, durable) = (times(FactKind::Accepted), times(FactKind::AtMedia));
        // Lines come faster than they are durable: all but the first wait for the one before, to the first
        // cycle of the controller's that is not before its tick.
        let cycle = ran.spec.timebase().unwrap().clock(ran.spec.clock.memory_mhz.khz).period_ticks();
        for verb in 2..=6 {
            assert_eq!(accepted[&verb], durable[&(verb - 1)].next_multiple_of(cycle), "{scheme}, verb {verb}");
        }
    }
}

#[test]
fn what_clients_note_is_their_scripts_and_every_verb_that_asks_is_acknowledged() {
    let ran = ran("broi", &["nodes.clients=2", "client.addresses=random", "client.transactions=3"]);
    let journal = ran.assembly.journal();
    let posted = journal.facts().iter().filter(|fact| fact.kind == FactKind::VerbPosted);
    let posted: BTreeSet<_> =
        posted.map(|fact| (fact.author.verb().unwrap(), fact.line, journal.data(fact).to_vec())).collect();
    let mut expected = BTreeSet::new();
    for client in 0..2u16 {
        let mut script = Script::new(&ran.spec.client, client);
        for epoch in std::iter::from_fn(|| script.next_transaction()).flatten().collect::<Vec<_>>() {
            let start = ran.start + ran.spec.client.region_bytes() * u64::from(client) + epoch.offset;
            let lines =
                (start..).step_by(64).zip(script.bytes_of(epoch).chunks(64).map(<[u8]>::to_vec).collect::<Vec<_>>());
            expected.extend(lines.map(|(line, bytes)| ((client, epoch.sequence as u32), line, bytes)));
        }
    }
    assert_eq!((posted.len(), &posted), (2 * 3 * 6 * 8, &expected));
    let acks = journal.facts().iter().filter(|fact| fact.kind == FactKind::VerbAcknowledged);
    let acks: BTreeSet<_> = acks.map(|fact| fact.author.verb().unwrap()).collect();
    assert_eq!(acks, [(0, 6), (0, 12), (0, 18), (1, 6), (1, 12), (1, 18)].into());
}

#[test]
fn power_failures_leave_a_prefix_of_each_clients_verbs_beside_a_program_that_recovers() {
    for (scheme, protocol) in [("epoch", "bsp"), ("broi", "bsp"), ("broi", "sync")] {
        let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme(scheme).reference(false);
        let recipe = recipe.set("client.transactions", 8).set("nodes.clients", 2).set("client.protocol", protocol);
        let recipe = recipe.set("client.addresses", "random").set("client.region_kb", 4).set("params.OPS", 8);
        let AnyExperiment::Cpu(experiment) = recipe.build_any().unwrap() else { panic!("a program of CPUs") };
        let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
        let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
        let budget = Budget { instants: 16, ..CPU_BUDGET };
        let request = CrashRequest { allowed: Some(budget), ..CrashRequest::default() };
        let report = crash_cpu(&experiment, &request, &watching).unwrap();
        assert!(report.holds(), "{scheme}, {protocol}: {report:#?}");
        let of = report.levels.channels.unwrap();
        let (verbs, acks) = (report.outcome.total("client", "verbs"), report.outcome.total("nic", "acks"));
        assert_eq!((of.channels, of.verbs, of.acknowledgements), (2, verbs, acks));
        assert_eq!(report.level(JudgedLevel::Verbs).unwrap().verdict.judged, 8 * verbs + acks, "{scheme}, {protocol}");
        assert_eq!(report.level(JudgedLevel::AllowedVerbs).unwrap().verdict.judged, 16 * 58);
        assert!(report.changes > 0 && report.promises.iter().any(|promise| promise.to_string().contains("(P6)")));
    }
}

#[test]
fn clients_of_a_server_without_persistent_memory_are_judged_by_their_verbs_alone() {
    let crash = |mix: &str, request: &CrashRequest| {
        let recipe = Experiment::of(mix).profile("ci").machine("broi-cluster").scheme("broi").reference(false);
        let AnyExperiment::Cpu(experiment) = recipe.set("client.transactions", 8).build_any().unwrap() else {
            panic!("a program of CPUs")
        };
        let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
        crash_cpu(&experiment, request, &Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} })
    };
    let budget = Budget { instants: 16, ..CPU_BUDGET };
    for mix in ["tpcc_remote", "hashmap_remote"] {
        let report = crash(mix, &CrashRequest { allowed: Some(budget), ..CrashRequest::default() }).unwrap();
        assert!(report.holds(), "{mix}: {report:#?}");
        let (verbs, acks) = (report.outcome.total("client", "verbs"), report.outcome.total("nic", "acks"));
        let of = report.levels.channels.unwrap();
        assert_eq!((of.verbs, of.acknowledgements, verbs > 0), (verbs, acks, true), "{mix}");
        assert_eq!(report.level(JudgedLevel::Verbs).unwrap().verdict.judged, 8 * verbs + acks, "{mix}");
        // Of the server there is nothing to be judged, and nothing that is promised.
        assert!(report.level(JudgedLevel::Actual).is_none() && report.image_bytes == 0, "{mix}");
        let promises: Vec<String> = report.promises.iter().map(|promise| promise.to_string()).collect();
        assert!(promises.len() == 1 && promises[0].contains("(P6)"), "{promises:?}");
    }
    let one = CrashRequest { plan: Plan::Only(3), ..CrashRequest::default() };
    let told = crash("tpcc_remote", &one).unwrap_err().to_string();
    assert!(told.contains("has no persistent memory, and so no states") && told.contains("without --only"), "{told}");
}

fn hybrid() -> AnyExperiment {
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi").reference(false);
    recipe.set("client.transactions", 10).build_any().unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn a_server_with_a_program_and_clients_is_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 2_000;
    let ways: Vec<Way> = [1, 2].into_iter().flat_map(Way::at).collect();
    let reference = run_one(&hybrid(), &Way::REFERENCE, EPOCH_CYCLES, None);
    let compared = compare_all(&hybrid(), &reference, &ways, EPOCH_CYCLES, None, |_| {});
    let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
    assert!(differ.is_empty() && compared.len() == ways.len(), "{differ:?}");
    let outcome: Outcome = hybrid().run(&Conduct::default()).outcome;
    assert!(outcome.verification.as_ref().unwrap().passed, "{:?}", outcome.verification);
    assert_eq!(outcome.total("client", "transactions"), 40);
    assert_eq!(outcome.scheme_counters["persist_remote_requests"], outcome.total("nic", "lines"));
}

#[test]
fn clients_without_a_server_that_persists_are_refused_with_all_other_faults() {
    let of = |scheme: &str| Experiment::of("hash").profile("ci").machine("broi-cluster").scheme(scheme);
    let told = |recipe: durawarp::Recipe| recipe.build_any().unwrap_err().to_string();
    assert!(told(of("sync")).contains("4 clients, and under `sync` no server persists what they post"));
    assert!(of("sync").set("nodes.clients", 0).build_any().is_ok());
    let told = told(
        of("broi")
            .set("network.latency_ns", 0)
            .set("client.region_kb", 4)
            .set("client.bytes_per_epoch", 8192)
            .set("network.packet_bytes", 100),
    );
    for part in ["network.latency_ns", "an epoch of 8192 B does not fit", "100 B are not whole lines"] {
        assert!(told.contains(part), "{told}");
    }
}

fn told(recipe: durawarp::Recipe) -> String {
    recipe.build_any().unwrap_err().to_string()
}

fn outcome_of(recipe: durawarp::Recipe) -> Outcome {
    recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(&Conduct::default()).outcome
}

#[test]
fn a_workload_of_clients_sets_its_mix_and_runs_on_the_cluster_by_itself() {
    for (name, transactions, percent) in [
        ("tpcc_remote", 50, 30),
        ("ycsb_remote", 50, 65),
        ("ctree_remote", 50, 100),
        ("hashmap_remote", 50, 100),
        ("memcached_remote", 250, 5),
    ] {
        let outcome = outcome_of(Experiment::of(name).profile("ci"));
        assert_eq!((outcome.machine.name.as_str(), outcome.scheme.as_str()), ("broi-cluster", "broi"));
        assert_eq!(outcome.total("client", "transactions"), 4 * transactions, "{name}");
        let share = outcome.total("client", "writes") as f64 / (4 * transactions) as f64;
        assert!((share - f64::from(percent) / 100.0).abs() < 0.08, "{name}: {share}");
        assert_eq!(outcome.total("client", "verbs"), 6 * outcome.total("client", "writes"));
        assert!(outcome.verification.unwrap().passed);
        // The program ends at once, the run when the last transaction is committed.
        let busy = outcome.counters.iter().find(|table| table.kind == "client").unwrap();
        let at = busy.names.iter().position(|of| of == "busy_ns").unwrap();
        assert_eq!(outcome.time.ps / 1000, busy.rows.iter().map(|row| row[at]).max().unwrap());
        assert!(outcome.process.unwrap().ended.unwrap().ps < 10_000_000);
    }
}

#[test]
fn an_override_counts_more_than_the_workload_and_the_workload_more_than_the_machine() {
    let value = |recipe: durawarp::Recipe, key: &str| {
        let AnyExperiment::Cpu(experiment) = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) else {
            panic!("a program of CPUs")
        };
        let machine = experiment.machine;
        (machine.value_of("client", key), machine.sources[&format!("client.{key}")].clone())
    };
    let mix = || Experiment::of("memcached_remote").profile("ci");
    assert_eq!(value(mix(), "write_percent"), ("5".to_owned(), "BROI Table IV: 5 % SET".to_owned()));
    assert_eq!(value(mix().set("client.write_percent", 7), "write_percent").0, "7");
    let by_parameter = value(mix().param("WRITE_PERCENT", 9), "write_percent");
    assert_eq!(by_parameter, ("9".to_owned(), "chosen by the user: params.WRITE_PERCENT".to_owned()));
    assert!(value(mix().param("WRITE_PERCENT", 9), "transactions").1.starts_with("BROI Table IV"));
    // A program that says nothing of clients leaves them as the machine has them.
    let program = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi");
    assert_eq!(value(program, "write_percent").0, "65");
}

#[test]
fn clients_without_a_machine_that_has_some_and_wrong_mixes_are_refused_at_once() {
    let mix = || Experiment::of("hashmap_remote").profile("ci");
    let none = told(mix().machine("broi-cpu"));
    assert!(none.contains("machine `broi-cpu` has none") && none.contains("--machine broi-cluster"), "{none}");
    let wrong = told(mix().param("EPOCHS", 0).param("BYTES", 7).param("WRITE_PERCENT", 101));
    for part in ["hashmap_remote/workload.toml", "epochs_per_tx", "bytes_per_epoch", "write_percent"] {
        assert!(wrong.contains(part), "{wrong}");
    }
    assert!(told(mix().scheme("sync")).contains("no server persists what they post"));
    let without_time = ["client.transactions", "client.compute_ns", "client.write_percent"];
    let without_time = told(without_time.iter().fold(mix(), |recipe, key| recipe.set(key, 0)));
    assert!(without_time.contains("`client.compute_ns`: transactions that are not counted"), "{without_time}");
}

#[test]
fn clients_that_are_not_counted_persist_as_long_as_the_program_runs() {
    let recipe = || Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi").reference(false);
    let outcome = outcome_of(recipe().set("client.transactions", 0).set("client.compute_ns", 1000));
    let transactions = outcome.total("client", "transactions");
    assert!(outcome.verification.unwrap().passed);
    let ended = outcome.process.unwrap().ended.unwrap();
    // Of the last of each at most its network and media are after the end; before it each was never idle.
    let (program, all) = (ended.ps / 1000, outcome.time.ps / 1000);
    assert!(all >= program && all < program + 2 * 2_817 + 10_000, "{program} {all}");
    assert!(transactions >= 4 * (program / 12_000), "{transactions} in {program} ns");
    // A program that ends at once has no clients to wait for.
    let none = outcome_of(Experiment::of("hashmap_remote").profile("ci").set("client.transactions", 0));
    assert_eq!(none.total("client", "transactions"), 0);
}
