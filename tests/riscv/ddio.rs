//! Data direct I/O: clients' lines go to the shared cache, and persist from there; writes that nothing makes
//! durable; transactions that are tried again. The runs are those of [`crate::network`].

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CPU_BUDGET, CrashReport, CrashRequest, Watching, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::oracle::allowed::Budget;
use durawarp::persist::FactKind;
use durawarp::run::{AnyExperiment, Conduct};

use crate::network::{Ran, ran, value};

const ON: &str = "nic.ddio=true";

/// A cache of a slice of 1 KiB, in sets of one line.
const TINY: [&str; 4] = ["llc.slices=1", "llc.slice_kb=1", "llc.ways=1", "llc.mshr_entries=1"];

/// What homes counted, all together.
fn homes(ran: &Ran, name: &str) -> u64 {
    ran.assembly.homes().map(|home| value(home.counters(), name)).sum()
}

/// By line of the clients' memory: when it was at the media, and of which verb, in order.
fn at_media(ran: &Ran) -> Vec<(u64, u64, Option<u32>)> {
    let journal = ran.assembly.journal();
    let facts = journal.facts().iter().filter(|fact| fact.kind == FactKind::AtMedia && fact.line >= ran.start);
    facts.map(|fact| (fact.time, fact.line, fact.author.verb().map(|(_, number)| number))).collect()
}

#[test]
fn a_line_is_durable_later_by_the_way_to_its_home_and_back() {
    for scheme in ["epoch", "broi"] {
        let of = |ddio: bool| {
            ran(scheme, &["client.epochs_per_tx=1", "client.bytes_per_epoch=64", &format!("nic.ddio={ddio}")])
        };
        let (off, on) = (of(false), of(true));
        let spec = &on.spec;
        let base = spec.timebase().unwrap();
        let way = spec.llc.request_cycles + spec.llc.service_cycles + spec.llc.reply_cycles;
        let way = base.clock(spec.clock.core_mhz.khz).cycles(way.into());
        // The controller takes it at an edge of its clock.
        let edge = base.clock(spec.clock.memory_mhz.khz).period_ticks();
        let later = at_media(&on)[0].0 - at_media(&off)[0].0;
        assert!(later + edge > way && later < way + edge, "{scheme}: {later} ticks, the way takes {way}");
        // The acknowledgement is of what is durable, not of what the cache has.
        let back = base.ticks_of_ps(4_400) + base.ticks_of_ps(spec.network.latency_ns.ps);
        assert_eq!(on.client("busy_ns"), base.ps_of_ticks(at_media(&on)[0].0 + back) / 1000, "{scheme}");
        assert_eq!(
            ["cached_lines", "lines", "acks"].map(|name| (off.nic(name), on.nic(name))),
            [(0, 1), (1, 1), (1, 1)]
        );
    }
}

#[test]
fn a_line_stays_in_the_cache_until_it_is_durable_and_leaves_it_unwritten_then() {
    for scheme in ["epoch", "broi"] {
        let set = ["nodes.clients=4", "client.addresses=random", "client.transactions=10", "client.seed=3", ON];
        let tiny = ran(scheme, &[&set[..], &TINY].concat());
        let lines = 4 * 10 * 6 * 8;
        assert!(tiny.memory == tiny.expected(), "{scheme}");
        assert_eq!((homes(&tiny, "nic_writes"), tiny.nic("lines"), tiny.nic("durable_verbs")), (lines, lines, 240));
        // The cache has 16 lines: all others were dropped, none was written by it, none was read.
        assert_eq!((homes(&tiny, "writebacks"), homes(&tiny, "fetches")), (0, 0), "{scheme}");
        let hits = homes(&tiny, "nic_write_hits");
        assert!(homes(&tiny, "dropped_lines") >= lines - hits - 16, "{scheme}");
        assert!(homes(&tiny, "held_fetches") > 0, "{scheme}: a line waits for one that stays");
        assert_eq!(at_media(&tiny).len() as u64, lines, "{scheme}");
    }
}

#[test]
fn epochs_of_a_channel_keep_their_order_by_way_of_the_cache() {
    for (scheme, cache) in [("epoch", &[][..]), ("broi", &[]), ("broi", &TINY)] {
        let set = ["client.addresses=random", "client.transactions=6", "client.region_kb=16", ON];
        let ran = ran(scheme, &[&set[..], cache].concat());
        let facts = at_media(&ran);
        assert_eq!(facts.len(), 6 * 6 * 8);
        assert!(facts.windows(2).all(|pair| pair[0].2 <= pair[1].2), "{scheme}: verbs are durable in their order");
        assert!(ran.memory == ran.expected(), "{scheme}");
    }
}

#[test]
fn a_write_that_nothing_makes_durable_is_visible_when_it_is_replied_to_and_not_durable() {
    let plain = ["client.plain_epochs=6", "client.transactions=3", "nodes.clients=2", ON];
    let ran_plain = ran("broi", &plain);
    assert!(ran_plain.memory == ran_plain.expected(), "reads of every address return it");
    assert_eq!(
        ["replies", "plain_lines", "lines", "acks", "durable_verbs"].map(|name| ran_plain.nic(name)),
        [6, 288, 0, 0, 0]
    );
    assert_eq!(at_media(&ran_plain), []);
    let journal = ran_plain.assembly.journal();
    let kinds: BTreeSet<String> = journal
        .facts()
        .iter()
        .filter(|fact| fact.line >= ran_plain.start)
        .map(|fact| format!("{:?}", fact.kind))
        .collect();
    assert_eq!(kinds, ["VerbWritten".to_owned()].into());
    // It does not wait for the media: one verb takes the network and the ways to the cache.
    let one = ran("broi", &["client.plain_epochs=1", "client.epochs_per_tx=1", ON]);
    let network = one.spec.client.bytes_per_epoch as u64 * 1000 / u64::from(one.spec.network.mb_s) + 2 * 2_817;
    assert!((network..network + 40).contains(&one.latency()), "{} {network}", one.latency());
    // What does not fit the cache is written to memory when it leaves.
    let tiny = ran("broi", &[&plain[..], &TINY].concat());
    assert!(tiny.memory == tiny.expected());
    assert_eq!((homes(&tiny, "writebacks"), homes(&tiny, "dropped_lines")), (288 - 16, 0));
    assert!(at_media(&tiny).iter().all(|of| of.2.is_none()), "no verb is its author");
}

#[test]
fn writes_of_both_kinds_to_the_same_lines_leave_the_last_of_each() {
    for scheme in ["epoch", "broi"] {
        for cache in [&[][..], &TINY] {
            let set = ["client.plain_epochs=3", "client.transactions=20", "client.addresses=random", ON];
            let few = ["client.region_kb=4", "nodes.clients=2", "client.bytes_per_epoch=128", "client.seed=5"];
            let ran = ran(scheme, &[&set[..], &few, cache].concat());
            assert!(ran.memory == ran.expected(), "{scheme} {cache:?}");
            assert_eq!(["lines", "plain_lines"].map(|name| ran.nic(name)), [240, 240]);
        }
    }
}

/// Clients beside a program, crashed.
fn crashed(scheme: &str, set: &[(&str, &str)]) -> CrashReport {
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme(scheme).reference(false);
    let recipe = recipe.set("client.transactions", 8).set("nodes.clients", 2).set("nic.ddio", true);
    let recipe = recipe.set("client.addresses", "random").set("client.region_kb", 4).set("params.OPS", 8);
    let recipe = set.iter().fold(recipe, |recipe, (key, value)| recipe.set(key, *value));
    let AnyExperiment::Cpu(experiment) = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) else {
        panic!("a program of CPUs")
    };
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    let watching = Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} };
    let budget = Budget { instants: 12, ..CPU_BUDGET };
    crash_cpu(&experiment, &CrashRequest { allowed: Some(budget), ..CrashRequest::default() }, &watching).unwrap()
}

#[test]
fn power_failures_leave_a_prefix_of_verbs_that_go_through_the_cache() {
    // The cache of one line a set has lines leave all the time; the program's go through it, too.
    let tiny = [("llc.slices", "1"), ("llc.slice_kb", "1"), ("llc.ways", "1")];
    let plain = [("client.plain_epochs", "2"), ("client.write_percent", "100")];
    for (scheme, set) in [("epoch", &[][..]), ("broi", &[]), ("broi", &tiny), ("epoch", &plain), ("broi", &plain)] {
        let report = crashed(scheme, set);
        assert!(report.holds(), "{scheme}, {set:?}: {report:#?}");
        let of = report.levels.channels.unwrap();
        assert_eq!(of.acknowledgements, report.outcome.total("nic", "acks"));
        let plain = report.outcome.total("nic", "plain_lines") / 8;
        assert_eq!(of.verbs, report.outcome.total("client", "verbs") - plain, "those that are promised something");
        assert_eq!(plain > 0, set.iter().any(|(key, _)| *key == "client.plain_epochs"));
    }
}

#[test]
fn transactions_that_are_tried_again_are_durable_in_their_order_and_end() {
    for (scheme, protocol) in [("epoch", "bsp"), ("broi", "bsp"), ("broi", "sync")] {
        // The network alone takes 7.8 us, or 6.0 under sync; the media take the rest.
        let limit = if protocol == "sync" { "6" } else { "8" };
        let late = [("client.retry_us", limit), ("client.protocol", protocol), ("client.compute_ns", "0")];
        let random = [("client.region_kb", "64"), ("client.write_percent", "100")];
        let report = crashed(scheme, &[&late[..], &random].concat());
        assert!(report.holds(), "{scheme}, {protocol}: {report:#?}");
        let of = |kind: &str, name: &str| report.outcome.total(kind, name);
        assert_eq!(of("client", "transactions"), 16);
        assert!(of("client", "retries") > 0 && of("client", "late_acks") > 0, "{scheme}, {protocol}");
        assert!(of("client", "verbs") > 16 * 6, "{scheme}, {protocol}");
        assert_eq!(of("nic", "durable_verbs"), of("client", "verbs"), "nothing is lost");
    }
    let calm = crashed("broi", &[("client.retry_us", "1000")]);
    assert_eq!((calm.outcome.total("client", "retries"), calm.outcome.total("client", "late_acks")), (0, 0));
}

#[test]
fn contradictory_parameters_of_the_network_are_refused_at_once() {
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi");
    let set = [("client.plain_epochs", 7), ("client.retry_us", 7), ("client.bytes_per_epoch", 100)];
    let told =
        set.iter().fold(recipe, |recipe, (key, value)| recipe.set(key, *value)).build_any().unwrap_err().to_string();
    for part in [
        "a write that is not persistent goes to the shared cache: nic.ddio=true",
        "7 of 6 epochs (client.epochs_per_tx)",
        "100 B are not whole lines",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let of = |key: &str, value: &str| {
        let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi");
        recipe.set("client.retry_us", 7).set(key, value).build_any().map(drop).map_err(|faults| faults.to_string())
    };
    let told = of("client.protocol", "bsp").unwrap_err();
    assert!(told.contains("no acknowledgement comes within 7 us: the network alone takes 7.8"), "{told}");
    assert!(of("client.protocol", "sync").is_ok());
    let told = of("client.arrivals", "open").unwrap_err();
    assert!(told.contains("do not wait for each other need client.protocol=bsp and client.retry_us=0"), "{told}");
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi");
    let told = recipe.set("client.arrivals", "open").set("client.compute_ns", 0).build_any().map(drop).unwrap_err();
    assert!(told.to_string().contains("(client.arrivals=open) have time between them"), "{told}");
}

#[test]
fn transactions_that_do_not_wait_overlap_are_durable_in_their_order_and_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 2_000;
    // A transaction takes some 9 us, and one begins every 3.
    let open = [("client.arrivals", "open"), ("client.compute_ns", "3000"), ("client.write_percent", "100")];
    let report = crashed("broi", &open);
    assert!(report.holds(), "{report:#?}");
    let of = |name: &str| report.outcome.total("client", name);
    assert_eq!(of("transactions"), 16);
    assert!(of("latency_ns") > 2 * of("busy_ns"), "several at once: {} {}", of("latency_ns"), of("busy_ns"));
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi").reference(false);
    let recipe = open.iter().fold(recipe, |recipe, (key, value)| recipe.set(key, *value));
    let experiment = recipe.set("client.transactions", 0).build_any().unwrap_or_else(|faults| panic!("{faults}"));
    let ways: Vec<Way> = [1, 2].into_iter().flat_map(Way::at).collect();
    let reference = run_one(&experiment, &Way::REFERENCE, EPOCH_CYCLES, None);
    let compared = compare_all(&experiment, &reference, &ways, EPOCH_CYCLES, None, |_| {});
    let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
    assert!(differ.is_empty() && compared.len() == ways.len(), "{differ:?}");
}

#[test]
fn clients_that_use_all_of_it_are_the_same_at_any_number_of_threads() {
    const EPOCH_CYCLES: u64 = 2_000;
    let recipe = Experiment::of("hash").profile("ci").machine("broi-cluster").scheme("broi").reference(false);
    let recipe = recipe.set("client.transactions", 10).set("nic.ddio", true).set("client.plain_epochs", 1);
    let experiment = recipe.set("client.retry_us", 8).build_any().unwrap_or_else(|faults| panic!("{faults}"));
    let ways: Vec<Way> = [1, 2].into_iter().flat_map(Way::at).collect();
    let reference = run_one(&experiment, &Way::REFERENCE, EPOCH_CYCLES, None);
    let compared = compare_all(&experiment, &reference, &ways, EPOCH_CYCLES, None, |_| {});
    let differ: Vec<_> = compared.iter().filter(|compared| compared.difference.is_some()).collect();
    assert!(differ.is_empty() && compared.len() == ways.len(), "{differ:?}");
    assert!(reference.outcome.total("client", "retries") > 0);
}
