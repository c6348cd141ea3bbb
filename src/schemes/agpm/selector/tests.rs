//! The hub by itself: letters in, letters and periods out.

use serde_json::json;

use super::*;
use crate::schemes::agpm::parameters::DEFAULTS;

fn spec(changes: &[(&str, serde_json::Value)]) -> Arc<AgpmSpec> {
    let entry = crate::schemes::entry::values_of(DEFAULTS);
    let mut values = serde_json::Value::Object(entry);
    for (key, value) in changes {
        values[*key] = value.clone();
    }
    Arc::new(serde_json::from_value(values).unwrap())
}

const SEAT: Seat = Seat { index: 0, sms: 3, slices: 2, controllers: 1, tick_khz: 1, l1_combines: false };

struct Bench {
    hub: Selector,
}

impl Bench {
    fn new(changes: &[(&str, serde_json::Value)]) -> Self {
        Bench { hub: Selector::new(&spec(changes), SEAT) }
    }

    fn tell(&mut self, from: Peer, word: Word) -> Vec<(Peer, Word)> {
        let mut post = Post::default();
        self.hub.letter(from, Box::new(word), &mut post);
        post.take().into_iter().map(|(to, letter)| (to, Word::of(letter))).collect()
    }

    fn start(&mut self, kernel: &str, persists_per_warp: Option<u64>, warps: u64) {
        let facts = KernelFacts { kernel: kernel.to_owned(), warps, persists_per_warp, ..KernelFacts::default() };
        assert!(self.tell(Peer::Host, Word::KernelStart(facts)).is_empty());
    }

    fn logs(&mut self, logs: u64, requests: u64, wait_cycles: u64) -> Vec<(Peer, Word)> {
        self.tell(Peer::Sm(1), Word::Report(Report { logs, requests, wait_cycles, ..Report::default() }))
    }

    /// Answers for the sampled SM and both slices; what the last answer leads to.
    fn answer(&mut self, l1: Locality, l2: Locality) -> Vec<(Peer, Word)> {
        let counts = |locality| Word::Counts { locality, saturated: 0, spills: 1, refills: 0 };
        assert!(self.tell(Peer::Sm(0), counts(l1)).is_empty());
        assert!(self.tell(Peer::Slice(1), counts(l2)).is_empty());
        self.tell(Peer::Slice(0), counts(Locality::default()))
    }

    fn periods(&self) -> &[Period] {
        &self.hub.selection.periods
    }
}

fn routes(told: &[(Peer, Word)]) -> Vec<(Peer, Route)> {
    told.iter()
        .map(|(to, word)| match word {
            Word::Path { route, .. } => (*to, *route),
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
    bench.tell(Peer::Host, Word::KernelEnd);
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
    bench.tell(Peer::Host, Word::KernelEnd);
    bench.start("next", None, 5000);
    let asked_again = bench.answer(SOME, SOME);
    assert_eq!(asked_again.iter().filter(|(_, word)| matches!(word, Word::Count)).count(), 3);
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
    bench.tell(Peer::Host, Word::KernelEnd);
    bench.answer(SOME, SOME);
    // 1,200 log updates are known now: no fewer than the usual threshold.
    bench.start("k", None, 5000);
    bench.logs(1000, 1, 1);
    bench.answer(Locality::default(), Locality::default());
    let last = bench.periods().last().unwrap();
    assert_eq!((last.path.as_str(), last.reason.as_str(), last.next_path.as_str()), ("temporal", "f", "non_temporal"));
}

#[test]
fn first_thresholds_follow_from_what_is_known() {
    let spec = spec(&[]);
    assert_eq!(first_threshold(&spec, Some(10_000), 1), 10_000);
    assert_eq!(first_threshold(&spec, Some(9_999), 1), 2_499, "a quarter");
    assert_eq!(first_threshold(&spec, Some(100), 1), 128, "and no less than this");
    assert_eq!(first_threshold(&spec, None, 9_999), 1024, "few warps");
    assert_eq!(first_threshold(&spec, None, 10_000), 10_000);
}

#[test]
fn literally_a_steady_kernel_loses_its_threshold_and_clamped_it_does_not() {
    let literal = spec(&[("threshold_rule", json!("literal"))]);
    let clamped = spec(&[]);
    let steady = (270_000, 1000);
    let after = |spec: &AgpmSpec, periods: u32| {
        (0..periods).fold(10_000, |was, _| next_threshold(spec, was, Some(steady), steady, 10_000))
    };
    // The paper's rule: the threshold falls by a tenth unless CWPPR rises: below 100 after 44 periods.
    assert!(after(&literal, 43) >= 100 && after(&literal, 44) < 100);
    assert_eq!(after(&clamped, 1000), 10_000);
    assert_eq!(next_threshold(&literal, 10_000, Some(steady), (270_001, 1000), 10_000), 11_000, "the paper's example");
    // 2 % is within the band, more is not; bounds hold.
    assert_eq!(next_threshold(&clamped, 10_000, Some(steady), (275_400, 1000), 10_000), 10_000);
    assert_eq!(next_threshold(&clamped, 10_000, Some(steady), (275_401, 1000), 10_000), 11_000);
    assert_eq!(next_threshold(&clamped, 1_050, Some(steady), (1000, 1000), 10_000), 1_000);
    assert_eq!(next_threshold(&clamped, 99_000, Some(steady), (900_000, 1000), 10_000), 100_000);
    // A kernel that began below the bounds stays where it began.
    assert_eq!(next_threshold(&clamped, 128, Some(steady), (1000, 1000), 128), 128);
}

#[test]
fn each_sm_may_decide_by_its_own_buffer() {
    let changes = [("decision", json!("sm")), ("l1_buffers", json!("each")), ("threshold_logs", json!(1000))];
    let mut bench = Bench::new(&changes);
    bench.start("k", None, 5000);
    assert_eq!(bench.logs(1000, 1, 1).len(), 5);
    let counts = |locality| Word::Counts { locality, saturated: 0, spills: 0, refills: 0 };
    for (sm, locality) in [(0, SOME), (1, Locality::default()), (2, SOME)] {
        bench.tell(Peer::Sm(sm), counts(locality));
    }
    bench.tell(Peer::Slice(0), counts(Locality::default()));
    let told = bench.tell(Peer::Slice(1), counts(Locality::default()));
    let expected = [(0, Route::Temporal), (1, Route::NonTemporal), (2, Route::Temporal)];
    assert_eq!(routes(&told), expected.map(|(sm, route)| (Peer::Sm(sm), route)));
    assert_eq!((bench.hub.selection.reasons["a"], bench.hub.selection.reasons["f"]), (2, 1));
}
