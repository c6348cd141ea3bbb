//! Clients that persist over the network in a server's memory: what a transaction takes by worked sums, what
//! is acknowledged, what memory has in the end. The server's own program ends at once.

use durawarp::Outcome;
use durawarp::assemble::{Assembly, CpuLoad, Persistency, assemble_cpu};
use durawarp::config::{CpuMachine, Override, SchemeConfig};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::machine::client::{Client, Script};
use durawarp::machine::coherence::CPU_LINE_BYTES;
use durawarp::machine::cpu::CpuSpec;
use durawarp::persist::FactKind;
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::stats::Counters;
use durawarp::{Experiment, MachineConfig};

use crate::common::program;

/// One client whose transactions all write, and which computes nothing.
const ALONE: [&str; 4] = ["client.count=1", "client.write_percent=100", "client.compute_ns=0", "client.transactions=1"];

/// Media of which every access is a hit and takes no time of its own: what is left is the network.
const NO_MEDIA: [&str; 4] = ["nvm.t_rcd_ns=0", "nvm.t_wl_ns=0", "nvm.row_write_ns=0", "nvm.write_hit_ns=0"];

/// A server whose clients are done.
struct Ran {
    spec: CpuSpec,
    assembly: Assembly,
    /// The clients' memory.
    memory: Vec<u8>,
    start: u64,
}

fn ran(scheme: &str, set: &[&str]) -> Ran {
    let set: Vec<Override> = ALONE.iter().chain(set).map(|text| Override::parse(text).unwrap()).collect();
    let machine: CpuMachine = MachineConfig::read("broi-cluster", &set).unwrap_or_else(|faults| panic!("{faults}"));
    let spec = machine.spec;
    // li a0, 0; li a7, 94 (exit_group); ecall
    let process = program(&[0x0000_0513, 0x05e0_0893, 0x0000_0073]);
    let remote_bytes = spec.client.all_bytes();
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
    fn client(&self, name: &str) -> u64 {
        value(&self.assembly.clients().next().unwrap().counters(), name)
    }

    fn nic(&self, name: &str) -> u64 {
        value(&self.assembly.nic().unwrap().counters(), name)
    }

    /// What it takes in ns from the first verb to the commit, for each transaction.
    fn latency(&self) -> u64 {
        self.client("latency_ns") / self.client("transactions")
    }
}

fn value<C: Counters>(counters: &C, name: &str) -> u64 {
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
        let set = ["client.count=3", "client.write_percent=60", "client.transactions=20", "client.addresses=random"];
        let ran = ran(scheme, &set);
        let mut expected = vec![0; ran.memory.len()];
        for client in 0..3u16 {
            let mut script = Script::new(&ran.spec.client, client);
            while let Some(epochs) = script.next_transaction() {
                for epoch in epochs {
                    let at = (ran.spec.client.region_bytes() * u64::from(client) + epoch.offset) as usize;
                    expected[at..at + 512].copy_from_slice(&script.bytes_of(epoch));
                }
            }
        }
        assert!(ran.memory == expected, "{scheme}");
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
    assert!(of("sync").set("client.count", 0).build_any().is_ok());
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
