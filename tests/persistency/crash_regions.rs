//! Power fails under LightWSP, on the machine: what hardware recovers is the regions before one, the program goes on from
//! there, and faults of the protocol, of the order of regions and of recovery are found.

use std::sync::atomic::AtomicBool;

use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, journal_of};
use durawarp::oracle::crash::Plan;
use durawarp::oracle::judge::Watch;
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::regions::{AsPublished, JudgeOptions, RegionFacts, judge_recovery, judge_regions};
use durawarp::oracle::verdict::Property;
use durawarp::persist::promises::Promises;
use durawarp::persist::vocab::RegionStep;
use durawarp::persist::{Author, Domain, Fact, FactKind, Journal, PmImage};
use durawarp::run::{Conduct, Experiment};

const SMS: u16 = 3;

/// `set` changes the scheme or the machine.
fn experiment(workload: &str, params: &[(&str, &str)], set: &[&str]) -> Experiment {
    let recipe = Experiment::of(workload).scheme("light-wsp").profile_if_any("ci").params(params.iter().copied());
    recipe.set("sm.count", SMS).changes(set).build().unwrap()
}

const GEMM: (&str, [(&str, &str); 3]) = ("gemm", [("NI", "8"), ("NJ", "40"), ("NK", "4")]);
const HISTOGRAM: (&str, [(&str, &str); 2]) = ("histogram", [("N", "300"), ("CTAS", "2")]);

fn judged(experiment: &Experiment) -> CrashReport {
    let request = CrashRequest { double: true, resume: 12, ..CrashRequest::default() };
    experiment.crash(&request).unwrap_or_else(|faults| panic!("{faults}"))
}

fn first(report: &CrashReport) -> String {
    let found = report.judgements().flat_map(|(name, judgement)| judgement.found.iter().map(move |one| (name, one)));
    let told = found.map(|(name, one)| format!("{name}: {}", one.failure.what));
    told.take(3).collect::<Vec<_>>().join("\n")
}

#[test]
fn programs_go_on_from_every_power_failure() {
    for (workload, params, scheme) in [
        (GEMM.0, &GEMM.1[..], &[][..]),
        // An order of each SM's own.
        (GEMM.0, &GEMM.1, &["light_wsp.order=sm"]),
        // Queues of a few stores, which spill with an undo log.
        (GEMM.0, &GEMM.1, &["light_wsp.wpq_entries=8", "light_wsp.feb_entries=8"]),
        // Regions of CTAs, with barriers, with atomics, and so small that they spill.
        ("gemm_tiled", &[("M", "64"), ("N", "64"), ("K", "16")], &["light_wsp.owner=cta"]),
        (GEMM.0, &GEMM.1, &["light_wsp.owner=cta", "light_wsp.wpq_entries=8", "light_wsp.feb_entries=8"]),
        (HISTOGRAM.0, &HISTOGRAM.1, &["light_wsp.owner=cta"]),
        (HISTOGRAM.0, &HISTOGRAM.1, &["light_wsp.checkpoints=uniform_once"]),
        (GEMM.0, &GEMM.1, &["light_wsp.checkpoints=uniform_once", "sm.warp_size=64"]),
        (HISTOGRAM.0, &HISTOGRAM.1, &[]),
        ("litmus/lightwsp_lock", &[], &[]),
    ] {
        let experiment = experiment(workload, params, scheme);
        let report = judged(&experiment);
        assert!(report.ended_well(), "{workload}: {:?} {:?}", report.outcome.end, report.outcome.verification);
        assert!(report.holds(), "{workload}, {scheme:?}: {}", first(&report));
        let actual = &report.level(JudgedLevel::Actual).unwrap().verdict;
        assert_eq!((actual.judged, actual.exhaustive), (report.changes + 1, true), "{workload}");
        assert!(report.changes > 20 && report.regions.unwrap() > 8, "{workload}: {:?}", report.regions);
        assert!(report.level(JudgedLevel::Resumed).unwrap().verdict.judged >= 8, "{workload}: {:?}", report.promises);
        assert!(report.level(JudgedLevel::CutOff).unwrap().verdict.judged >= 20, "{workload}");
        assert!(report.level(JudgedLevel::Allowed).is_none() && report.level(JudgedLevel::Overtaking).is_none());
    }
}

#[test]
fn programs_go_on_where_controllers_go_on_by_themselves() {
    let small = ["light_wsp.wpq_entries=8", "light_wsp.feb_entries=8"];
    // The last of several controllers hears of everything late.
    let (pipelined, step) = ("light_wsp.commit=pipelined", "light_wsp.controller_step_ns=100");
    for controllers in [1, 2, 4] {
        let channels = format!("controller.channels={controllers}");
        let slices = format!("l2.slices={}", controllers.max(2));
        for (workload, params, more) in [
            (GEMM.0, &GEMM.1[..], &[][..]),
            (GEMM.0, &GEMM.1, &small),
            (GEMM.0, &GEMM.1, &["light_wsp.order=sm"]),
            (HISTOGRAM.0, &HISTOGRAM.1, &["light_wsp.owner=cta", "light_wsp.id_bits=6"]),
            ("litmus/lightwsp_lock", &[], &[]),
        ] {
            let set = [&[pipelined, step, &channels, &slices][..], more].concat();
            let report = judged(&experiment(workload, params, &set));
            assert!(report.ended_well(), "{workload} {set:?}: {:?}", report.outcome.end);
            assert!(report.holds(), "{workload} {set:?}: {}", first(&report));
            assert!(report.level(JudgedLevel::CutOff).unwrap().verdict.judged >= 20, "{workload} {set:?}");
            assert!(report.level(JudgedLevel::Resumed).unwrap().verdict.judged >= 8, "{workload} {set:?}");
        }
    }
}

/// An L2 of few lines, and regions that take long to commit: much of what is read is in the WPQs.
const HELD: [&str; 3] = ["l2.slice_kb=2", "l2.ways=4", "light_wsp.ack_latency_ns=1000"];

#[test]
fn programs_go_on_where_reads_wait_for_the_gated_queues() {
    for (workload, params, more, least) in [
        ("nw", &[][..], &[][..], 8),
        // A launch commits before the next reads: few lines are read in the launch that has stored to them.
        ("backprop", &[("INPUTS", "64")], &["light_wsp.order=sm", "l2.slice_kb=1"], 2),
        ("histogram", &[], &["light_wsp.wpq_entries=8", "light_wsp.feb_entries=8"], 8),
    ] {
        let set: Vec<&str> = HELD.iter().chain(more).copied().chain(["light_wsp.wpq_hit=wait"]).collect();
        let report = judged(&experiment(workload, params, &set));
        assert!(report.holds(), "{workload}, {set:?}: {:?} {}", report.outcome.end, first(&report));
        let counted = |name: &str| report.outcome.scheme_counters[name];
        // Others find a region that is neither the oldest nor has ended with all before it.
        assert!(counted("wpq_hits_waited") >= least, "{workload}, {set:?}: {}", counted("wpq_hits_waited"));
        assert_eq!(counted("wpq_hits"), counted("wpq_hits_waited") + counted("wpq_hits_merged"));
    }
}

#[test]
fn critical_sections_are_in_order_in_every_state() {
    let report = judged(&experiment("litmus/lightwsp_id_inversion", &[], &[]));
    assert!(report.holds(), "{}", first(&report));
    let condition = &report.conditions[0];
    assert!(condition.held[0] > 5 && condition.violated == [0; 3], "{condition:?}");
}

#[test]
fn ids_drawn_at_the_boundary_before_an_atomic_are_found_out_of_order() {
    // Atomics of many warps on the same bins; with the default draw it is one of the programs above.
    let report = judged(&experiment(HISTOGRAM.0, &HISTOGRAM.1, &["light_wsp.id_draw=paper"]));
    assert!(report.ended_well() && !report.level(JudgedLevel::History).unwrap().verdict.holds());
    // Each image is a prefix of the wrong order; it shows when the program goes on from there.
    assert!(report.level(JudgedLevel::Actual).unwrap().verdict.holds(), "{}", first(&report));
    assert!(!report.level(JudgedLevel::Resumed).unwrap().verdict.holds());
    let found = &report.level(JudgedLevel::History).unwrap().found[0];
    assert_eq!(found.failure.property, Property::Regions);
    assert!(found.failure.what.contains(" commits before region "), "{}", found.failure.what);
    // Its witnesses have places in the program.
    let (missing, present) = (found.missing.as_ref().unwrap(), found.present.as_ref().unwrap());
    for placed in [missing, present] {
        assert!(placed.kernel.is_some() && placed.source.as_ref().unwrap().1 > 0, "{placed:?}");
    }
    let warp = |placed: &durawarp::crash::Placed| (placed.persist.cta, placed.persist.warp);
    assert_ne!(warp(missing), warp(present));
}

/// What history and level A find in the journal of a run, once `change` has made of each fact what a faulty machine would
/// have noted, or nothing.
fn found_in(experiment: &Experiment, change: impl Fn(&Fact) -> bool) -> [bool; 2] {
    let (journal, initial): (Journal, PmImage) = journal_of(experiment, &Conduct::default());
    let mut changed = Journal::default();
    for fact in journal.facts().iter().filter(|fact| change(fact)) {
        let (mut line, mut data) = ([0; 128], journal.data(fact).iter());
        for byte in (0..128).filter(|byte| fact.mask >> byte & 1 == 1) {
            line[byte] = data.next().copied().unwrap_or_default();
        }
        match journal.data(fact) {
            [] => changed.note(fact.time, fact.kind, fact.line, fact.mask, fact.author),
            _ => changed.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &line),
        }
    }
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&changed, &initial, model);
    let controllers = experiment.machine.spec.controller.channels as usize;
    let facts = RegionFacts::new(&order, &initial, controllers, false).unwrap();
    let history = judge_regions(&facts, true, 8);
    let asked = JudgeOptions { plan: Plan::All, double: false, seed: 0, keep: 8 };
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let (actual, ..) = judge_recovery(&facts, &asked, &AsPublished, &watch).unwrap();
    let of_regions = |verdict: &durawarp::oracle::verdict::Verdict| {
        verdict.failures.iter().any(|failure| failure.property == Property::Regions)
    };
    [of_regions(&history), of_regions(&actual)]
}

#[test]
fn faults_of_the_machine_are_found() {
    let experiment = experiment(GEMM.0, &GEMM.1, &["light_wsp.wpq_entries=4", "light_wsp.feb_entries=8"]);
    let is = |fact: &Fact, step: RegionStep| fact.kind == FactKind::Region(step);
    let of_1 = |fact: &Fact, step: RegionStep| {
        is(fact, step) && matches!(fact.author, Author::HeldRegion { controller: 1, .. })
    };
    assert_eq!(found_in(&experiment, |_| true), [false; 2]);
    // Each thing that the machine could fail to do, and whether history and level A find it.
    type Fault<'a> = (&'a str, &'a dyn Fn(&Fact) -> bool);
    let faults: [Fault<'_>; 5] = [
        ("a boundary is not sent to a controller", &|fact| of_1(fact, RegionStep::Bounded)),
        ("no undo log is kept", &|fact| is(fact, RegionStep::Logged)),
        ("regions commit before a controller is done", &|fact| of_1(fact, RegionStep::Done)),
        ("a queue does not keep stores", &|fact| of_1(fact, RegionStep::Buffered)),
        ("spilled stores do not get to memory", &|fact| is(fact, RegionStep::Spilled)),
    ];
    let found = faults.map(|(what, lost)| (what, found_in(&experiment, |fact| !lost(fact))));
    // Boundaries come to all controllers in the same tick here: the first and the third leave no wrong state in this run.
    for (at, (what, [history, actual])) in found.into_iter().enumerate() {
        assert!(history && (actual || at == 0 || at == 2), "{what}: history {history}, level A {actual}");
    }
}
