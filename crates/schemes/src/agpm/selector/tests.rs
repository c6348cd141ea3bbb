//! The hub by itself: messages in, messages and periods out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use durawarp_persist::handler::report_of;

mod in_flight;
mod thresholds;

fn spec(changes: &[(&str, Value)]) -> Arc<AgpmSpec> {
    AgpmSpec::with(changes)
}

const SEAT: HandlerPlace = HandlerPlace {
    index: 0,
    sms: 3,
    cores: 0,
    harts: 0,
    slices: 2,
    controllers: 1,
    tick_khz: 1,
    l1_combines: false,
    channels: 0,
};

struct Bench {
    hub: Selector,
    /// Letters come ten ticks after each other.
    now: Time,
}

impl Bench {
    fn new(changes: &[(&str, Value)]) -> Self {
        Bench { hub: Selector::new(&spec(changes), SEAT), now: 0 }
    }

    fn tell(&mut self, from: Peer, word: AgpmMessage) -> Vec<(Peer, AgpmMessage)> {
        let mut outbox = Outbox::default();
        self.now += 10;
        outbox.at(self.now);
        self.hub.message(from, Box::new(word), &mut outbox);
        outbox.take().into_iter().map(|(to, message)| (to, AgpmMessage::of(message))).collect()
    }

    fn start(&mut self, kernel: &str, persists_per_warp: Option<u64>, warps: u64) {
        let kernel = kernel.to_owned();
        let facts = KernelFacts { kernel, warps, half_warps_per_warp: 1, persists_per_warp, ..KernelFacts::default() };
        assert!(self.tell(Peer::Host, AgpmMessage::KernelStart(facts)).is_empty());
    }

    fn logs(&mut self, logs: u64, requests: u64, wait_cycles: u64) -> Vec<(Peer, AgpmMessage)> {
        self.tell(
            Peer::Sm(1),
            AgpmMessage::Report {
                launch: 0,
                report: LogReport { logs, requests, wait_cycles, ..LogReport::default() },
            },
        )
    }

    /// Answers for the sampled SM and both slices; what the last answer leads to.
    fn answer(&mut self, l1: Locality, l2: Locality) -> Vec<(Peer, AgpmMessage)> {
        let counts = |locality| AgpmMessage::Counts { launch: 0, locality, saturated: 0, spills: 1, refills: 0 };
        assert!(self.tell(Peer::Sm(0), counts(l1)).is_empty());
        assert!(self.tell(Peer::Slice(1), counts(l2)).is_empty());
        self.tell(Peer::Slice(0), counts(Locality::default()))
    }

    fn periods(&self) -> &[Period] {
        &self.hub.selection.periods
    }
}

fn routes(told: &[(Peer, AgpmMessage)]) -> Vec<(Peer, Route)> {
    told.iter()
        .map(|(to, word)| match word {
            AgpmMessage::Path { route, .. } => (*to, *route),
            other => panic!("{other:?}"),
        })
        .collect()
}

const SOME: Locality = Locality { t_all: 40, t_log: 0, s_all: 50, s_log: 0 };

#[test]
fn a_period_ends_at_its_threshold_and_its_reason_is_told_to_every_sm() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.start("k", None, 5000);
    assert!(bench.logs(999, 10, 1000).is_empty(), "one log update early");
    let asked: Vec<Peer> = bench.logs(1, 0, 0).into_iter().map(|(to, _)| to).collect();
    assert_eq!(asked, [Peer::Sm(0), Peer::Slice(0), Peer::Slice(1)], "the sampled SM and every bank");
    // Locality in the L1, none of it of log updates: reason a, through the caches.
    let told = bench.answer(SOME, SOME);
    assert_eq!(routes(&told), [0, 1, 2].map(|sm| (Peer::Sm(sm), Route::Temporal)));
    let period = &bench.periods()[0];
    assert_eq!((period.logs, period.threshold_logs, period.reason.as_str(), period.complete), (1000, 1000, "a", true));
    assert_eq!((period.path.as_str(), period.next_path.as_str()), ("non_temporal", "temporal"));
    assert_eq!((period.cwppr(), period.l2, period.spills), (100.0, SOME, 3));
    assert_eq!(bench.hub.selection.reservation_bytes, 3 * 89);
}

#[test]
fn few_logs_decide_before_localities_do_and_a_kernel_that_ends_decides_nothing() {
    let mut bench = Bench::new(&[("threshold_logs", json!(90))]);
    bench.start("k", None, 5000);
    bench.logs(90, 1, 1);
    assert_eq!(routes(&bench.answer(SOME, SOME))[0].1, Route::NonTemporal, "90 logs so far: reason e");
    bench.logs(20, 1, 1);
    bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    assert!(bench.answer(SOME, SOME).is_empty());
    let reasons: Vec<(&str, bool)> = bench.periods().iter().map(|p| (p.reason.as_str(), p.complete)).collect();
    assert_eq!(reasons, [("e", true), ("a", false)]);
    assert_eq!((bench.hub.selection.complete, bench.hub.selection.reasons["e"]), (1, 1));
}

#[test]
fn logs_that_come_while_buffers_answer_belong_to_the_next_period() {
    let mut bench = Bench::new(&[("threshold_logs", json!(100))]);
    bench.start("k", None, 5000);
    assert_eq!(bench.logs(130, 1, 1).len(), 3);
    assert!(bench.logs(150, 1, 1).is_empty(), "nobody is asked twice");
    // The kernel ends, and the next one starts, before the answers are here.
    bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    bench.start("next", None, 5000);
    let asked_again = bench.answer(SOME, SOME);
    assert_eq!(asked_again.iter().filter(|(_, word)| matches!(word, AgpmMessage::Count(0))).count(), 3);
    bench.answer(SOME, SOME);
    let seen: Vec<(&str, u64, bool)> =
        bench.periods().iter().map(|p| (p.kernel.as_str(), p.logs, p.complete)).collect();
    assert_eq!(seen, [("k", 130, true), ("k", 150, false)]);
}

#[test]
fn a_kernel_launched_again_goes_on_with_what_was_decided() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.start("k", None, 5000);
    bench.logs(1000, 1, 1);
    bench.answer(SOME, SOME);
    bench.logs(200, 1, 1);
    bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    bench.answer(SOME, SOME);
    // 1,200 log updates are known now: no fewer than the usual threshold.
    bench.start("k", None, 5000);
    bench.logs(1000, 1, 1);
    bench.answer(Locality::default(), Locality::default());
    let last = bench.periods().last().unwrap();
    assert_eq!((last.path.as_str(), last.reason.as_str(), last.next_path.as_str()), ("temporal", "f", "non_temporal"));
}

#[test]
fn each_sm_may_decide_by_its_own_buffer() {
    let changes = [("decision", json!("sm")), ("l1_buffers", json!("each")), ("threshold_logs", json!(1000))];
    let mut bench = Bench::new(&changes);
    bench.start("k", None, 5000);
    assert_eq!(bench.logs(1000, 1, 1).len(), 5);
    let counts = |locality| AgpmMessage::Counts { launch: 0, locality, saturated: 0, spills: 0, refills: 0 };
    for (sm, locality) in [(0, SOME), (1, Locality::default()), (2, SOME)] {
        bench.tell(Peer::Sm(sm), counts(locality));
    }
    bench.tell(Peer::Slice(0), counts(Locality::default()));
    let told = bench.tell(Peer::Slice(1), counts(Locality::default()));
    let expected = [(0, Route::Temporal), (1, Route::NonTemporal), (2, Route::Temporal)];
    assert_eq!(routes(&told), expected.map(|(sm, route)| (Peer::Sm(sm), route)));
    assert_eq!((bench.hub.selection.reasons["a"], bench.hub.selection.reasons["f"]), (2, 1));
}

#[test]
fn every_period_tells_of_itself_alone_and_the_selection_of_all() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    let facts = KernelFacts { kernel: "k".to_owned(), launch: 6, warps: 5000, ..KernelFacts::default() };
    bench.tell(Peer::Host, AgpmMessage::KernelStart(facts));
    let report = |logs, requests, wait_cycles, [temporal, non_temporal, dropped_write_backs]: [u64; 3]| {
        let report =
            LogReport { logs, requests, wait_cycles, temporal, non_temporal, dropped_write_backs, exchanges: 0 };
        AgpmMessage::Report { launch: 0, report }
    };
    let locality = |t_all, t_log, s_all, s_log| Locality { t_all, t_log, s_all, s_log };
    let counts =
        |locality, saturated, spills, refills| AgpmMessage::Counts { launch: 0, locality, saturated, spills, refills };
    bench.tell(Peer::Sm(0), report(400, 4, 900, [11, 13, 17]));
    assert_eq!(bench.tell(Peer::Sm(2), report(603, 6, 1100, [19, 23, 29])).len(), 3);
    bench.tell(Peer::Sm(0), counts(locality(40, 0, 50, 0), 2, 0, 0));
    bench.tell(Peer::Slice(0), counts(locality(3, 5, 7, 11), 3, 7, 17));
    let told = bench.tell(Peer::Slice(1), counts(locality(13, 19, 29, 37), 5, 11, 19));
    assert_eq!(routes(&told), [0, 1, 2].map(|sm| (Peer::Sm(sm), Route::Temporal)));
    let first = Period {
        kernel: "k".to_owned(),
        launch: 6,
        number: 0,
        complete: true,
        threshold_logs: 1000,
        logs: 1003,
        launch_logs: 1003,
        begin_ticks: 10,
        end_ticks: 30,
        temporal_logs: 11 + 19,
        non_temporal_logs: 13 + 23,
        requests: 10,
        wait_cycles: 2000,
        l1: locality(40, 0, 50, 0),
        l2: locality(16, 24, 36, 48),
        saturated: 10,
        spills: 18,
        refills: 36,
        path: "non_temporal".to_owned(),
        reason: "a".to_owned(),
        next_path: "temporal".to_owned(),
    };
    // 350 cycles a request after 200: the third period is longer.
    bench.tell(Peer::Sm(1), report(1007, 20, 7000, [31, 37, 41]));
    bench.answer(SOME, SOME);
    let again =
        Period { number: 1, logs: 1007, launch_logs: 2010, requests: 20, wait_cycles: 7000, l2: SOME, ..first.clone() };
    let again = Period { saturated: 0, spills: 3, refills: 0, path: "temporal".to_owned(), ..again };
    // Its log updates count from the end of the first, while buffers still answer.
    let again = Period { begin_ticks: 30, end_ticks: 70, temporal_logs: 31, non_temporal_logs: 37, ..again };
    bench.tell(Peer::Sm(1), report(30, 3, 300, [43, 47, 53]));
    bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    assert!(bench.answer(Locality::default(), Locality::default()).is_empty());
    let cut = Period { number: 2, complete: false, threshold_logs: 1100, logs: 30, launch_logs: 2040, ..again.clone() };
    let none = Locality::default();
    let cut = Period { requests: 3, wait_cycles: 300, l1: none, l2: none, reason: "f".to_owned(), ..cut };
    let cut = Period { begin_ticks: 70, end_ticks: 120, temporal_logs: 43, non_temporal_logs: 47, ..cut };
    let expected = Selection {
        periods: vec![first, again, cut],
        complete: 2,
        changes: 1,
        reasons: BTreeMap::from([("a".to_owned(), 2)]),
        temporal_logs: 11 + 19 + 31 + 43,
        non_temporal_logs: 13 + 23 + 37 + 47,
        dropped_write_backs: 17 + 29 + 41 + 53,
        reservation_bytes: (18 + 36 + 3 + 3) * 89,
    };
    assert_eq!(bench.hub.selection, expected);
    assert_eq!(report_of(&bench.hub).results, serde_json::to_value(&expected).unwrap());
    // Its threshold, way, log updates, cycles and requests; then the counts since, and complete periods.
    bench.tell(Peer::Sm(1), report(59, 61, 67, [0; 3]));
    let mut words = Vec::new();
    bench.hub.state(&mut |word| words.push(word));
    assert_eq!(words, [1100, 0, 2040, 7000, 20, 59, 61, 67, 2]);
}

#[test]
fn the_sum_over_sampled_l1s_decides_for_all() {
    let mut bench = Bench::new(&[("l1_buffers", json!("each")), ("threshold_logs", json!(1000))]);
    bench.start("k", None, 5000);
    bench.logs(1000, 1, 1);
    let counts = |locality| AgpmMessage::Counts { launch: 0, locality, saturated: 0, spills: 0, refills: 0 };
    let of_logs = Locality { t_all: 2, t_log: 11, s_all: 3, s_log: 13 };
    for (sm, locality) in [(2, of_logs), (0, SOME), (1, Locality::default())] {
        bench.tell(Peer::Sm(sm), counts(locality));
    }
    bench.tell(Peer::Slice(0), counts(Locality::default()));
    let told = bench.tell(Peer::Slice(1), counts(Locality::default()));
    // 11 of 42 and 13 of 53: the greater share is over a quarter.
    assert_eq!(routes(&told), [0, 1, 2].map(|sm| (Peer::Sm(sm), Route::NonTemporal)));
    assert_eq!(bench.periods()[0].l1, Locality { t_all: 42, t_log: 11, s_all: 53, s_log: 13 });
    assert_eq!(bench.hub.selection.reasons, BTreeMap::from([("b".to_owned(), 1)]));
}

#[test]
fn the_sampled_sm_is_asked_and_no_other() {
    let mut bench = Bench::new(&[("sampled_sm", json!(2)), ("threshold_logs", json!(10))]);
    bench.start("k", None, 50);
    let asked: Vec<Peer> = bench.logs(10, 1, 1).into_iter().map(|(to, _)| to).collect();
    assert_eq!(asked, [Peer::Sm(2), Peer::Slice(0), Peer::Slice(1)]);
}

#[test]
fn where_no_rule_holds_the_way_is_what_the_parameter_says() {
    for (uncovered, after_temporal, after_non_temporal) in [
        ("hold", Route::Temporal, Route::NonTemporal),
        ("temporal", Route::Temporal, Route::Temporal),
        ("non_temporal", Route::NonTemporal, Route::NonTemporal),
    ] {
        let hub = Bench::new(&[("uncovered", json!(uncovered))]).hub;
        assert_eq!(hub.route(Reason::None, Route::Temporal), after_temporal, "{uncovered}");
        assert_eq!(hub.route(Reason::None, Route::NonTemporal), after_non_temporal, "{uncovered}");
        for before in [Route::Temporal, Route::NonTemporal] {
            assert_eq!(hub.route(Reason::A, before), Route::Temporal, "{uncovered}");
            assert_eq!(hub.route(Reason::B, before), Route::NonTemporal, "{uncovered}");
        }
    }
}

#[test]
fn the_evidence_is_what_the_parameters_take_for_it() {
    let facts =
        |shared_bytes: u32, communicates: bool| KernelFacts { shared_bytes, communicates, ..Default::default() };
    let running = |facts: KernelFacts, exchanges: u64| Asking {
        running: Running { facts, logs: 700, exchanges, periods: 3, span: [0, 0] },
        period: LogReport { logs: 200, ..LogReport::default() },
        complete: true,
        left: 0,
        l1: BTreeMap::new(),
        l2: Locality { t_all: 5, ..SOME },
        saturated: 0,
        spills: 0,
        refills: 0,
    };
    let asking = |shared_bytes, communicates| running(facts(shared_bytes, communicates), 0);
    let stated = |fact, exchanges| running(KernelFacts { stated_to_communicate: fact, ..facts(1, true) }, exchanges);
    for (reading, of_declared, of_communicating, of_measured, of_stated) in [
        ("declared", true, false, true, [true; 3]),
        ("communication", false, true, true, [true; 3]),
        ("off", false, false, false, [false; 3]),
        ("measured", false, false, true, [true, false, false]),
        ("stated", false, false, true, [false, true, false]),
    ] {
        let hub = Bench::new(&[("shared_memory", json!(reading))]).hub;
        assert_eq!(hub.evidence(&stated(None, 1), SOME).shared_memory, of_measured, "{reading}");
        let of = [(Some(false), 1), (Some(true), 0), (None, 0)];
        assert_eq!(of.map(|(fact, n)| hub.evidence(&stated(fact, n), SOME).shared_memory), of_stated, "{reading}");
        assert_eq!(hub.evidence(&asking(1, false), SOME).shared_memory, of_declared, "{reading}");
        assert_eq!(hub.evidence(&asking(0, true), SOME).shared_memory, of_communicating, "{reading}");
        assert!(!hub.evidence(&asking(0, false), SOME).shared_memory, "{reading}");
    }
    for (over, logs) in [("kernel", 700), ("period", 200)] {
        let evidence = Bench::new(&[("few_logs_over", json!(over))]).hub.evidence(&asking(0, false), SOME);
        assert_eq!(evidence, Evidence { l1: SOME, l2: Locality { t_all: 5, ..SOME }, logs, shared_memory: false });
    }
}

#[test]
fn periods_beyond_those_that_are_kept_are_counted() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.hub.selection.periods = vec![Period::default(); Selection::KEPT - 1];
    bench.start("k", None, 5000);
    for _ in 0..2 {
        bench.logs(1000, 1, 1);
        bench.answer(SOME, SOME);
    }
    assert_eq!(bench.periods().len(), Selection::KEPT);
    assert_eq!((bench.hub.selection.complete, bench.hub.selection.reservation_bytes), (2, 2 * 3 * 89));
}

#[test]
fn an_sm_decides_by_its_own_l1_and_the_l2_of_all() {
    let changes = [("decision", json!("sm")), ("l1_buffers", json!("each")), ("threshold_logs", json!(1000))];
    let mut bench = Bench::new(&changes);
    bench.start("k", None, 5000);
    bench.logs(1000, 1, 1);
    let counts = |locality| AgpmMessage::Counts { launch: 0, locality, saturated: 0, spills: 0, refills: 0 };
    let alone = Locality { t_all: 100, t_log: 60, s_all: 110, s_log: 70 };
    for (sm, locality) in [(0, SOME), (1, alone), (2, Locality::default())] {
        bench.tell(Peer::Sm(sm), counts(locality));
    }
    bench.tell(Peer::Slice(1), counts(alone));
    let told = bench.tell(Peer::Slice(0), counts(Locality::default()));
    // The third has nothing in its L1, but all four kinds in the L2.
    let expected = [Route::Temporal, Route::NonTemporal, Route::Temporal];
    assert_eq!(routes(&told), [0, 1, 2].map(|sm| (Peer::Sm(sm), expected[usize::from(sm)])));
    let reasons = ["a", "b", "c"].map(|reason| (reason.to_owned(), 1));
    assert_eq!((&bench.hub.selection.reasons, bench.hub.selection.changes), (&BTreeMap::from(reasons), 0));
    assert_eq!((bench.periods()[0].reason.as_str(), bench.periods()[0].l1.t_all), ("b", 140), "that of the sum");
}

#[test]
fn the_host_tells_the_hub_of_every_kernel_and_writes_nothing_back() {
    let (mut host, mut outbox) = (AgpmHost, Outbox::default());
    let facts = KernelFacts { kernel: "k".to_owned(), launch: 3, warps: 70, ..KernelFacts::default() };
    host.kernel_starts(&facts, &mut outbox);
    assert_eq!(host.boundary(0, &mut outbox), durawarp_persist::Boundary::None);
    let told: Vec<(Peer, AgpmMessage)> =
        outbox.take().into_iter().map(|(to, message)| (to, AgpmMessage::of(message))).collect();
    let [(Peer::Hub, AgpmMessage::KernelStart(started)), (Peer::Hub, AgpmMessage::KernelEnd(0))] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(started, &facts);
}

#[test]
fn the_end_of_a_kernel_that_did_not_start_asks_nobody() {
    let mut bench = Bench::new(&[]);
    assert!(bench.tell(Peer::Host, AgpmMessage::KernelEnd(0)).is_empty());
    bench.start("k", None, 5000);
    assert_eq!(bench.tell(Peer::Host, AgpmMessage::KernelEnd(0)).len(), 3);
    bench.answer(SOME, SOME);
    assert!(bench.tell(Peer::Host, AgpmMessage::KernelEnd(0)).is_empty(), "it has ended already");
    assert_eq!((bench.periods().len(), bench.periods()[0].complete), (1, false));
}
