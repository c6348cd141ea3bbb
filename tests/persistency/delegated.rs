//! Delegated ordering on machines of cores, tick by tick: when the next set begins, when what was waited for
//! is known to be durable, and that everything that goes in comes out.

use std::collections::{BTreeMap, BTreeSet};

use durawarp::Experiment;
use durawarp::kernel::memory::NVM_BASE;
use durawarp::persist::{Author, Fact, FactKind, Journal};
use durawarp::run::{AnyExperiment, Conduct, Finished};

/// `persist_order` has this many rounds in `ci`.
const ROUNDS: u64 = 24;

/// Ticks that a test reckons with.
struct Ticks {
    /// Of a cycle of the controller's.
    cycle: u64,
    /// Between a core and the controller.
    path: u64,
    /// From core to core by way of a home.
    home: u64,
}

fn ran(workload: &str, scheme: &str, set: &[(&str, &str)]) -> (Finished, Ticks) {
    let recipe = Experiment::of(workload).machine("broi-cpu").profile("ci").scheme(scheme).reference(false);
    let recipe = set.iter().fold(recipe, |recipe, (key, value)| recipe.set(key, *value));
    let AnyExperiment::Cpu(experiment) = recipe.build_any().unwrap() else { panic!("a program of CPUs") };
    let spec = &experiment.machine.spec;
    let base = spec.timebase().unwrap();
    let ticks = Ticks {
        cycle: base.clock(spec.clock.memory_mhz.khz).period_ticks(),
        path: base.ticks_of_ps(4_400),
        home: u64::from(spec.llc.request_cycles + spec.llc.reply_cycles)
            * base.clock(spec.clock.core_mhz.khz).period_ticks(),
    };
    let conduct = Conduct { journal: true, ..Conduct::default() };
    (AnyExperiment::Cpu(experiment).run(&conduct), ticks)
}

fn of(journal: &Journal, kind: FactKind) -> impl Iterator<Item = &Fact> {
    journal.facts().iter().filter(move |fact| fact.kind == kind)
}

/// When lines of `persist_order` with so many rounds were accepted, or at the media: by line of the test and
/// round.
fn times(journal: &Journal, kind: FactKind, rounds: u64) -> BTreeMap<(u64, u64), u64> {
    let place = |fact: &Fact| (fact.line - NVM_BASE).checked_sub(4096).map(|at| at / 64);
    let lines = of(journal, kind).filter_map(|fact| Some((place(fact)?, fact.time)));
    lines.map(|(at, time)| ((at / rounds, at % rounds), time)).collect()
}

/// The media take 2 us for a line: whatever is said in between has come long before.
const SLOW: (&str, &str) = ("nvm.write_hit_ns", "2000");

#[test]
fn what_follows_a_line_waits_until_the_tick_at_which_its_giver_is_known_to_be_durable() {
    for scheme in ["epoch", "broi"] {
        let (finished, ticks) = ran("persist_order", scheme, &[("params.TEST", "1"), ("core.harts", "1"), SLOW]);
        let journal = finished.journal.as_ref().unwrap();
        let [durable, accepted] = [FactKind::AtMedia, FactKind::Accepted].map(|kind| times(journal, kind, ROUNDS));
        let late = (0..ROUNDS).map(|round| {
            // Drained to the giver, Resolved by way of the home, Persist to the controller.
            let drained = durable[&(0, round)].next_multiple_of(ticks.cycle);
            accepted[&(1, round)] as i64 - (drained + ticks.path + ticks.home + ticks.path) as i64
        });
        let late: Vec<i64> = late.collect();
        assert!(late.iter().all(|&late| late >= 0), "{scheme}: a tick early, {late:?}");
        // Under `epoch` all of them are later here, for what is not asked.
        assert!(scheme == "epoch" || late.contains(&0), "{scheme}: {late:?}");
    }
}

#[test]
fn a_set_begins_at_the_tick_at_which_the_one_before_it_is_durable() {
    for scheme in ["epoch", "broi"] {
        let (finished, ticks) = ran("persist_order", scheme, &[("params.TEST", "0"), ("core.harts", "1"), SLOW]);
        let journal = finished.journal.as_ref().unwrap();
        let [durable, accepted] = [FactKind::AtMedia, FactKind::Accepted].map(|kind| times(journal, kind, ROUNDS));
        for round in 0..ROUNDS {
            let complete = durable[&(0, round)].next_multiple_of(ticks.cycle);
            assert_eq!(accepted[&(1, round)], complete, "{scheme}, round {round}");
        }
    }
}

#[test]
fn what_enters_persist_buffers_is_drained() {
    for (workload, scheme) in [("hash", "epoch"), ("hash", "broi"), ("sps", "broi")] {
        let (finished, _) = ran(workload, scheme, &[("params.OPS", "12")]);
        let (journal, counted) = (finished.journal.as_ref().unwrap(), &finished.outcome.scheme_counters);
        let entries = |kind| {
            of(journal, kind).filter_map(|fact| match fact.author {
                Author::Entry { core, hart, entry, .. } => Some((core, hart, entry)),
                _ => None,
            })
        };
        let [buffered, drained] =
            [FactKind::Buffered, FactKind::AtMedia].map(|kind| entries(kind).collect::<BTreeSet<_>>());
        assert_eq!((buffered.len() as u64, &buffered), (counted["persist_entries"], &drained), "{workload}, {scheme}");
        // A request is a write of the media; a store is an entry or joined one.
        let [stores, writes] = [FactKind::Buffered, FactKind::AtMedia].map(|kind| of(journal, kind).count() as u64);
        assert_eq!(writes, counted["persist_requests"], "{workload}, {scheme}");
        assert_eq!(stores, counted["persist_entries"] + counted["persist_coalesced_stores"], "{workload}, {scheme}");
    }
}
