//! Where caches survive a power failure: programs without recovery are judged by what memory holds, and a
//! store that is lost, or that others see before an older one, is found.

use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::diagnostic::Diagnostics;
use durawarp::kernel::memory::NVM_BASE;
use durawarp::oracle::crash::Plan;
use durawarp::oracle::visible::{VisibleStores, judge_visibility};
use durawarp::persist::{Domain, Fact, FactKind, Journal, PmImage};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, Finished, run_cpu};

/// Caches of 16 and 64 lines a core and slice: lines come and go.
const SMALL_CACHES: [(&str, &str); 2] = [("l1d.kb", "1"), ("llc.slice_kb", "4")];

fn experiment(name: &str, scheme: &str, set: &[(&str, &str)]) -> CpuExperiment {
    let recipe = Experiment::of(name).machine("lightwsp-cpu").profile("ci").scheme(scheme).persistent(true);
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("{name} is a program of CPUs"),
    }
}

fn crash(experiment: &CpuExperiment, request: &CrashRequest) -> Result<CrashReport, Diagnostics> {
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    crash_cpu(experiment, request, &Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} })
}

#[test]
fn all_that_was_performed_survives_with_the_caches() {
    let points = |points| CrashRequest { plan: Plan::Count(points), ..CrashRequest::default() };
    let few: &[(&str, &str)] = &[("params.TASKS", "24"), ("params.THREADS", "4")];
    for (name, set) in [
        ("reserve", few.to_vec()),
        ("reserve", [few, &SMALL_CACHES].concat()),
        ("spin_counter", vec![]),
        ("is", SMALL_CACHES.to_vec()),
    ] {
        let report = crash(&experiment(name, "psp-ideal", &set), &points(200)).unwrap();
        assert!(report.holds() && report.unjudged.is_none(), "{name} {set:?}: {report:#?}");
        let (history, actual) =
            (&report.level(JudgedLevel::History).unwrap().verdict, &report.level(JudgedLevel::Actual).unwrap().verdict);
        assert_eq!(report.domain, Domain::Eadr);
        // The images that were planned, but for those of one instant, and that of the end.
        assert!(actual.judged > 100 && actual.judged <= 201, "{name}: {actual:?}");
        assert!(history.judged > report.changes && report.changes > 500, "{name}: {history:?}");
        assert!(report.recovery.contains("registers are lost"), "{}", report.recovery);
    }
}

#[test]
fn two_harts_of_a_core_keep_an_order_each() {
    let recipe = Experiment::of("spin_counter").machine("broi-cpu").profile("ci").scheme("psp-ideal").persistent(true);
    let Ok(AnyExperiment::Cpu(experiment)) = recipe.build_any() else { panic!("a program of CPUs") };
    let report = crash(&experiment, &CrashRequest::default()).unwrap();
    assert!(report.holds() && report.level(JudgedLevel::Actual).is_some(), "{report:#?}");
}

#[test]
fn one_crash_point_is_judged_again_by_its_number() {
    let experiment = experiment("spin_counter", "psp-ideal", &[]);
    let only = |point| CrashRequest { plan: Plan::Only(point), ..CrashRequest::default() };
    let report = crash(&experiment, &only(7)).unwrap();
    assert_eq!(report.level(JudgedLevel::Actual).unwrap().verdict.judged, 1);
    assert!(report.holds(), "{report:#?}");
    let beyond = crash(&experiment, &only(report.changes + 1)).unwrap_err().to_string();
    assert!(beyond.contains("there is no crash point"), "{beyond}");
    let of_b = CrashRequest { only_allowed: Some((0, 0)), ..CrashRequest::default() };
    let refused = crash(&experiment, &of_b).unwrap_err().to_string();
    assert!(refused.contains("states of levels B and C"), "{refused}");
}

/// A run with its journal, and persistent memory before it.
fn ran(name: &str) -> (Finished, Journal, PmImage) {
    let experiment = experiment(name, "psp-ideal", &[("params.TASKS", "24")]);
    let process = experiment.program.process().unwrap();
    let finished = run_cpu(&experiment, &Conduct { journal: true, ..Conduct::default() });
    let journal = finished.journal.clone().unwrap();
    let bytes = process.start.windows.memory_bytes as usize + (1 << 20);
    let mut initial = PmImage::new(NVM_BASE, vec![0; bytes]);
    // The main window begins at the first byte of persistent memory.
    for (address, contents) in process.contents() {
        initial.write(NVM_BASE + address, contents).unwrap();
    }
    (finished, journal, initial)
}

/// The journal with its facts in another order, or without some.
fn rebuilt(journal: &Journal, order: impl Iterator<Item = usize>) -> Journal {
    let mut changed = Journal::default();
    for (time, at) in order.enumerate() {
        let fact = &journal.facts()[at];
        let (data, mut bytes) = (journal.data(fact), [0; 128]);
        let places = (0..128).filter(|&byte| fact.mask >> byte & 1 == 1);
        places.zip(data).for_each(|(byte, &value)| bytes[byte] = value);
        changed.note_data(time as u64, fact.kind, fact.line, fact.mask, fact.author, &bytes);
    }
    changed
}

#[test]
fn a_lost_store_and_two_that_change_places_are_found_in_a_run() {
    let (finished, journal, initial) = ran("reserve");
    let facts = journal.facts();
    let performed: Vec<usize> = (0..facts.len()).filter(|&at| facts[at].kind == FactKind::Performed).collect();
    assert!(judge_visibility(&journal, true, 8).holds());

    // Every so many stores, one after the other: it is performed behind the next of its hart, or never.
    let hart = |fact: &Fact| fact.author.thread();
    for &first in performed.iter().step_by(performed.len() / 12) {
        let next = performed.iter().find(|&&at| at > first && hart(&facts[at]) == hart(&facts[first]));
        let Some(&second) = next else { continue };
        // Behind the other, which has retired by then.
        let swapped = (0..facts.len()).filter(|&at| at != first);
        let swapped = swapped.flat_map(|at| std::iter::once(at).chain((at == second).then_some(first)));
        let verdict = judge_visibility(&rebuilt(&journal, swapped), true, 8);
        assert!(verdict.failed == 1 && verdict.failures[0].what.contains("which is older"), "{verdict:?}");
        let without = (0..facts.len()).filter(|&at| at != first);
        let verdict = judge_visibility(&rebuilt(&journal, without), true, 8);
        assert!(verdict.failed > 0, "a store that is never performed");
    }

    // What memory holds at the end, less one store.
    let cores = usize::from(performed.iter().map(|&at| facts[at].author.processor()).max().flatten().unwrap()) + 1;
    let mut stores = VisibleStores::new(&journal, &initial, cores);
    stores.advance(std::iter::repeat_n(u64::MAX, cores)).unwrap();
    let line = |line: u64| -> [u8; 64] { finished.memory.slice(line, 64).unwrap().try_into().unwrap() };
    assert_eq!(stores.judge(line, 0, 0), None);
    let last = &facts[*performed.last().unwrap()];
    let lost = |of: u64| {
        let mut bytes = line(of);
        if of == last.line {
            let mut places = (0..64).filter(|&byte| last.mask >> byte & 1 == 1);
            bytes[places.next().unwrap()] ^= 1;
        }
        bytes
    };
    let failure = stores.judge(lost, 0, 0).unwrap();
    assert_eq!(failure.witness.unwrap().missing.unwrap().line, last.line);
}

#[test]
fn where_caches_do_not_survive_a_program_without_recovery_is_refused() {
    let refused = crash(&experiment("spin_counter", "sync", &[]), &CrashRequest::default()).unwrap_err().to_string();
    assert!(refused.contains("how the program recovers") && refused.contains("persist.domain=eadr"), "{refused}");
    // The domain decides, not the scheme's name.
    let kept = experiment("spin_counter", "sync", &[("persist.domain", "eadr")]);
    let report = crash(&kept, &CrashRequest { plan: Plan::Count(40), ..CrashRequest::default() }).unwrap();
    assert!(report.holds() && report.level(JudgedLevel::Actual).is_some(), "{report:#?}");
}
