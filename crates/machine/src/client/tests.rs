//! A client by itself: acknowledgements come at given ticks, of 1 ps.

use super::*;
use crate::address::Interleave;
use crate::ports::{Endpoint, Roster};
use durawarp_base::spec::Nanos;
use durawarp_engine::{Link, RunEnd, RunOptions, Simulation, Topology};

/// A verb that came: when its last packet did, its number, its first bytes, and whether it is to be durable.
type Posted = (Time, u64, u64, bool);

/// Notes what a NIC gets.
#[derive(Debug, Default)]
struct Network(Vec<Posted>);

impl Component<Msg> for Network {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Nic(NicMsg::Verb(packet)) = message else { panic!("{message:?}") };
        let mut word = [0; 8];
        word.copy_from_slice(&packet.bytes[..8]);
        self.0.push((cx.now(), packet.sequence, u64::from_le_bytes(word), packet.persistent));
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

const US: Time = 1_000_000;

/// One transaction of two epochs of 64 B, each of which takes 64 ns on the port and 1 us on the way.
fn spec(protocol: Protocol) -> ClientSpec {
    ClientSpec {
        protocol,
        transactions: 1,
        write_percent: 100,
        epochs_per_tx: 2,
        plain_epochs: 0,
        bytes_per_epoch: 64,
        addresses: Addresses::Log,
        compute_ns: Nanos { ps: 0 },
        arrivals: Arrivals::Closed,
        retry_us: 10,
        region_kb: 4,
        seed: 1,
    }
}

/// What a client posts that hears of these verbs at these times, and what it counts.
fn posts(spec: ClientSpec, acks: &[(Time, u64)]) -> (Vec<Posted>, ClientCounters) {
    let roster = Roster { clients: 1, ..Roster::of_cores(1, Interleave::new(1, 1, 64)) };
    let Some(timebase) = Timebase::of_khz(&[1_000_000_000]) else { panic!("1 ps a tick") };
    let network = NetworkSpec { latency_ns: Nanos { ps: US }, mb_s: 1000, packet_bytes: 1024 };
    let ports = roster.ports(Endpoint::Client(0));
    let wiring = ClientWiring { number: 0, channel: 0, ports, timebase, memory: 1 << 40, journal: false };
    let mut topology = Topology::new();
    let client = topology.add("client", Box::new(Client::new(spec, network, wiring)));
    let nic = topology.add("nic", Box::new(Network::default()));
    topology.connect(client, ports.to(Endpoint::Nic), nic, Link { latency: US, phase: 0 });
    topology.wake_at(client, 0);
    for &(time, sequence) in acks {
        topology.post(client, time, ClientMsg::PersistAck(PersistAck { channel: 0, sequence }).into());
    }
    let mut simulation = Simulation::new(topology).unwrap();
    let end = simulation.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let of = |id| simulation.component(id) as &dyn std::any::Any;
    let counters = of(client).downcast_ref::<Client>().unwrap().counters();
    (of(nic).downcast_ref::<Network>().unwrap().0.clone(), counters)
}

fn numbers(posted: &[Posted]) -> Vec<u64> {
    posted.iter().map(|of| of.1).collect()
}

#[test]
fn an_acknowledgement_at_the_tick_of_the_limit_is_in_time_and_one_a_tick_later_finds_the_log_aborted() {
    let on_time = posts(spec(Protocol::Bsp), &[(10 * US, 2)]);
    assert_eq!((numbers(&on_time.0), on_time.1.retries, on_time.1.transactions), (vec![1, 2], 0, 1));
    let (posted, counters) = posts(spec(Protocol::Bsp), &[(10 * US + 1, 2), (12 * US, 4)]);
    assert_eq!((numbers(&posted), counters.retries, counters.late_acks), (vec![1, 2, 3, 4], 1, 1));
    // The first attempt's acknowledgement is of the transaction: it is over, and not again by the second's.
    assert_eq!((counters.transactions, counters.verbs, counters.busy_ns), (1, 4, 10_000));
    // Again means the same bytes, from the limit on: two of 64 ns each and the way.
    assert_eq!((posted[0].2, posted[1].2), (posted[2].2, posted[3].2));
    assert_eq!((posted[2].0, posted[3].0), (11 * US + 64_000, 11 * US + 128_000));
}

#[test]
fn under_sync_each_epoch_has_the_whole_limit_and_a_transaction_begins_anew() {
    let (posted, counters) = posts(spec(Protocol::Sync), &[(10 * US, 1), (20 * US, 2)]);
    assert_eq!((numbers(&posted), counters.retries, counters.latency_ns), (vec![1, 2], 0, 20_000));
    // The second is late by a tick: both again, and the acknowledgement of the second ends it.
    let late = 20 * US + 1;
    let (posted, counters) = posts(spec(Protocol::Sync), &[(10 * US, 1), (late, 2), (30 * US, 3)]);
    assert_eq!((numbers(&posted), counters.retries, counters.late_acks), (vec![1, 2, 3], 1, 1));
    assert_eq!((counters.transactions, counters.latency_ns), (1, 20_000));
}

#[test]
fn a_client_without_a_limit_waits_and_one_whose_limit_is_always_missed_comes_to_an_end() {
    let (posted, counters) = posts(ClientSpec { retry_us: 0, ..spec(Protocol::Bsp) }, &[(500 * US, 2)]);
    assert_eq!((numbers(&posted), counters.retries, counters.busy_ns), (vec![1, 2], 0, 500_000));
    // Every acknowledgement takes 15 us.
    let acks = [(15 * US, 1), (25 * US, 2), (30 * US, 3), (40 * US, 4)];
    let (posted, counters) = posts(spec(Protocol::Sync), &acks);
    // 1; again 2 at 10 us; the first acknowledged at 15, so that the second epoch follows, as 3; again 4 at
    // 25 us, in whose event verb 2 is heard of no more.
    assert_eq!((numbers(&posted), counters.transactions, counters.retries), (vec![1, 2, 3, 4], 1, 2));
    assert_eq!((counters.busy_ns, counters.late_acks), (30_000, 2));
}

#[test]
fn a_client_that_does_not_wait_begins_at_its_times_and_commits_in_their_order() {
    let every_5_us =
        ClientSpec { transactions: 3, compute_ns: Nanos { ps: 5 * US }, retry_us: 0, ..spec(Protocol::Bsp) };
    let acks = [(18 * US, 2), (19 * US, 4), (31 * US, 6)];
    let (posted, counters) = posts(ClientSpec { arrivals: Arrivals::Open, ..every_5_us.clone() }, &acks);
    // The first begins after 5 us; each has 64 ns a verb, and 1 us on the way.
    let at = |us: Time| [us * US + 64_000, us * US + 128_000];
    assert_eq!(posted.iter().map(|of| of.0).collect::<Vec<_>>(), [at(6), at(11), at(16)].concat());
    assert_eq!((numbers(&posted), counters.transactions), (vec![1, 2, 3, 4, 5, 6], 3));
    assert_eq!((counters.latency_ns, counters.busy_ns), (13_000 + 9_000 + 16_000, 31_000));
    // One that waits has begun the second 5 us after the first was committed.
    let acks = [(18 * US, 2), (31 * US, 4), (41 * US, 6)];
    let (posted, counters) = posts(every_5_us, &acks);
    assert_eq!(posted.iter().map(|of| of.0).collect::<Vec<_>>(), [at(6), at(24), at(37)].concat());
    assert_eq!((counters.transactions, counters.latency_ns), (3, 13_000 + 8_000 + 5_000));
}

#[test]
fn the_first_epochs_are_not_persistent_where_that_is_asked_for() {
    let plain = ClientSpec { plain_epochs: 1, retry_us: 0, ..spec(Protocol::Bsp) };
    let (posted, _) = posts(plain, &[(10 * US, 2)]);
    assert_eq!(posted.iter().map(|of| of.3).collect::<Vec<_>>(), [false, true]);
}
