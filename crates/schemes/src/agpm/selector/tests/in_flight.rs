//! Launches in flight together: each has its periods, and those of a kernel one threshold and way.

use super::*;

impl Bench {
    /// A launch starts in a place.
    fn start_at(&mut self, place: u8, kernel: &str) {
        let facts = KernelFacts { kernel: kernel.to_owned(), place, warps: 5000, ..KernelFacts::default() };
        assert!(self.tell(Peer::Host, AgpmMessage::KernelStart(facts)).is_empty());
    }

    /// Log updates of the launch in a place: what that leads to.
    fn logs_of(&mut self, launch: u8, logs: u64) -> Vec<(Peer, AgpmMessage)> {
        let report = LogReport { logs, requests: 1, wait_cycles: 1, ..LogReport::default() };
        self.tell(Peer::Sm(1), AgpmMessage::Report { launch, report })
    }

    /// The buffers' answers for the launch in a place; what the last leads to.
    fn answer_of(&mut self, launch: u8, l1: Locality) -> Vec<(Peer, AgpmMessage)> {
        let counts = |locality| AgpmMessage::Counts { launch, locality, saturated: 0, spills: 0, refills: 0 };
        let none = Locality::default();
        let told = [(Peer::Sm(0), l1), (Peer::Slice(0), none), (Peer::Slice(1), none)];
        told.into_iter().flat_map(|(from, locality)| self.tell(from, counts(locality))).collect()
    }
}

/// Kernels, log updates and reasons of the periods so far.
fn periods(bench: &Bench) -> Vec<(&str, u64, &str)> {
    bench.periods().iter().map(|period| (period.kernel.as_str(), period.logs, period.reason.as_str())).collect()
}

#[test]
fn a_launch_beside_another_has_its_own_period_and_its_own_evidence() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.start_at(0, "a");
    bench.start_at(1, "b");
    assert!(bench.logs_of(0, 700).is_empty() && bench.logs_of(1, 700).is_empty(), "1,400 are of two kernels");
    let asked = bench.logs_of(1, 300);
    assert!(asked.iter().all(|(_, word)| matches!(word, AgpmMessage::Count(1))) && asked.len() == 3, "{asked:?}");
    // The other's period ends before the buffers have answered for the first.
    assert_eq!(bench.logs_of(0, 300).len(), 3);
    let told = bench.answer_of(0, Locality::default());
    assert!(told.iter().all(|(_, word)| matches!(word, AgpmMessage::Path { kernel, .. } if kernel == "a")));
    assert_eq!(routes(&told)[0].1, Route::NonTemporal, "no locality");
    assert_eq!(routes(&bench.answer_of(1, SOME))[0].1, Route::Temporal, "some in the L1");
    assert_eq!(periods(&bench), [("a", 1000, "f"), ("b", 1000, "a")]);
}

#[test]
fn a_launch_that_ends_leaves_the_period_of_the_other_as_it_is() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.start_at(0, "a");
    bench.start_at(1, "b");
    bench.logs_of(0, 200);
    bench.logs_of(1, 900);
    let asked = bench.tell(Peer::Host, AgpmMessage::KernelEnd(0));
    assert!(asked.iter().all(|(_, word)| matches!(word, AgpmMessage::Count(0))));
    bench.answer_of(0, SOME);
    // The next launch takes the place that is free, and its kernel is another.
    bench.start_at(0, "c");
    assert_eq!(bench.logs_of(1, 100).len(), 3, "900 and 100");
    bench.answer_of(1, SOME);
    assert_eq!(periods(&bench), [("a", 200, "a"), ("b", 1000, "a")]);
}

#[test]
fn launches_of_one_kernel_share_what_is_decided_for_it() {
    let mut bench = Bench::new(&[("threshold_logs", json!(1000))]);
    bench.start_at(0, "k");
    bench.start_at(1, "k");
    bench.logs_of(0, 1000);
    bench.answer_of(0, SOME);
    bench.logs_of(1, 1000);
    bench.answer_of(1, SOME);
    let paths: Vec<&str> = bench.periods().iter().map(|period| period.path.as_str()).collect();
    assert_eq!(paths, ["non_temporal", "temporal"], "the second goes on with what the first decided");
}
