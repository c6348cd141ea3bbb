//! Litmus programs on cores: what the memory order forbids is never seen, what it allows is seen where the
//! machine does it, and a machine without one of its rules is found.

mod axioms;
mod bench;
mod code;
mod notation;
mod table;
mod tso;
mod weakened;

use std::collections::{BTreeMap, BTreeSet};

use durawarp::machine::core::{Consistency, OrderRule};

use axioms::Model;
use bench::{Cores, outcomes};
use notation::{Kind, Outcome, Program, Step};
use table::{Row, TABLE, Verdict, named};
use tso::Act;

/// Cores with one hart and with two, large caches and small ones.
fn machines(consistency: Consistency, without: Option<OrderRule>) -> [Cores; 4] {
    let of = |harts, batch_cycles, small| Cores { harts, consistency, batch_cycles, small, without };
    [of(1, 8, false), of(2, 8, false), of(1, 1, true), of(2, 8, true)]
}

fn model(consistency: Consistency) -> Model {
    if consistency == Consistency::Tso { Model::Tso } else { Model::Rvwmo }
}

/// What was seen of a program.
struct Seen {
    outcomes: BTreeMap<Outcome, u64>,
    /// Loads that were executed again.
    again: u64,
    /// The first round with an outcome that the order forbids, and the outcome.
    forbidden: Option<String>,
}

impl Row {
    fn program(&self) -> Program {
        Program::read(self.program)
    }

    fn verdict(&self, consistency: Consistency) -> Verdict {
        if consistency == Consistency::Tso { self.tso } else { self.rvwmo }
    }

    /// Runs it for some rounds on each of four machines, each time with a seed of its own.
    fn run(&self, consistency: Consistency, without: Option<OrderRule>, rounds: u64, seed: u64) -> Seen {
        let program = self.program();
        let allowed = axioms::outcomes(&program, model(consistency));
        let mut seen = Seen { outcomes: BTreeMap::new(), again: 0, forbidden: None };
        for (nth, cores) in (0..).zip(machines(consistency, without)) {
            let (outcomes, again) = outcomes(&cores, &program, rounds, 16 * seed + nth);
            seen.again += again;
            for (round, outcome) in outcomes.into_iter().enumerate() {
                if !allowed.contains(&outcome) && seen.forbidden.is_none() {
                    let shown = self.shown(&program, &outcome);
                    seen.forbidden = Some(format!("{}: {shown} in round {round}, seed {seed}, {cores:?}", self.name));
                }
                *seen.outcomes.entry(outcome).or_default() += 1;
            }
        }
        seen
    }

    /// Halves by their names.
    fn shown(&self, program: &Program, outcome: &Outcome) -> String {
        let registers = program.registers.iter().map(|register| (register.name, register.halves));
        let named = registers.chain(program.locations.iter().map(|&name| (name, 2)));
        let halves = named.flat_map(|(name, halves)| (0..halves).map(move |half| (name, ["l", "h"][half])));
        let values: Vec<String> =
            halves.zip(outcome).map(|((name, half), value)| format!("{name}.{half}={value}")).collect();
        values.join(" ")
    }

    /// How often the outcome in question was seen.
    fn count(&self, seen: &Seen) -> u64 {
        let condition = self.program().condition(self.outcome);
        let has = |outcome: &Outcome| condition.iter().all(|&(place, value)| outcome[place] == value);
        seen.outcomes.iter().filter(|(outcome, _)| has(outcome)).map(|(_, rounds)| rounds).sum()
    }
}

#[test]
fn every_verdict_of_the_table_follows_from_the_axioms() {
    let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
    assert!(names.len() == TABLE.len() && names.len() >= 60, "{} names", names.len());
    let mut wrong = Vec::new();
    for row in TABLE {
        let program = row.program();
        let condition = program.condition(row.outcome);
        for consistency in [Consistency::Rvwmo, Consistency::Tso] {
            let has = |outcome: &Outcome| condition.iter().all(|&(place, value)| outcome[place] == value);
            let allowed = axioms::outcomes(&program, model(consistency)).iter().any(has);
            if allowed != (row.verdict(consistency) == Verdict::Allowed) {
                wrong.push((row.name, consistency, allowed));
            }
        }
        let (weak, strong) = (axioms::outcomes(&program, Model::Rvwmo), axioms::outcomes(&program, Model::Tso));
        assert!(!strong.is_empty() && strong.is_subset(&weak), "{}", row.name);
    }
    assert!(wrong.is_empty(), "name, order, allowed by the axioms: {wrong:#?}");
}

/// The program as one of plain stores, loads and full fences, if it is one.
fn acts(program: &Program) -> Option<Vec<Vec<Act>>> {
    let act = |step: &Step| match *step {
        Step::Fence(3, 3) => Some(Act::Fence),
        Step::Access(access) if access.halves == 2 && !program.is_across(access.location) => match access.kind {
            Kind::Load => Some(Act::Load(access.location)),
            Kind::Store => Some(Act::Store(access.location, access.value.into())),
            _ => None,
        },
        _ => None,
    };
    program.harts.iter().map(|steps| steps.iter().map(act).collect()).collect()
}

#[test]
fn the_axioms_of_total_store_order_allow_what_store_buffers_do() {
    let mut compared = 0;
    for row in TABLE {
        let program = row.program();
        let Some(acts) = acts(&program) else { continue };
        let low = |outcome: &Outcome| outcome.iter().step_by(2).map(|&half| u64::from(half)).collect::<Vec<_>>();
        let axioms: BTreeSet<_> = axioms::outcomes(&program, Model::Tso).iter().map(low).collect();
        assert_eq!(axioms, tso::allowed(&acts, program.locations.len()), "{}", row.name);
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

/// Runs the whole table; what the order forbids is told by name and round. How often each outcome in
/// question was seen.
fn run_table(consistency: Consistency, rounds: u64, seeds: u64) -> BTreeMap<&'static str, u64> {
    let (mut counts, mut forbidden) = (BTreeMap::new(), Vec::new());
    for row in TABLE {
        for seed in 0..seeds {
            let seen = row.run(consistency, None, rounds, seed);
            *counts.entry(row.name).or_default() += row.count(&seen);
            forbidden.extend(seen.forbidden);
        }
    }
    assert!(forbidden.is_empty(), "{consistency:?}: {forbidden:#?}");
    counts
}

#[test]
fn nothing_forbidden_is_seen_under_the_weak_order() {
    run_table(Consistency::Rvwmo, 50, 1);
}

#[test]
fn nothing_forbidden_is_seen_under_total_store_order() {
    run_table(Consistency::Tso, 50, 1);
}

/// Names and counts of what is allowed.
fn print(consistency: Consistency, counts: &BTreeMap<&str, u64>, rounds: u64) {
    println!("{consistency:?}: rounds of {rounds} in which the outcome in question was seen, where it is allowed");
    for row in TABLE.iter().filter(|row| row.verdict(consistency) == Verdict::Allowed) {
        println!("{:7}  {:30} {}", counts[row.name], row.name, row.program);
    }
}

#[test]
#[ignore = "ten thousand rounds of each program: a minute or two"]
fn nothing_forbidden_is_seen_under_the_weak_order_in_ten_thousand_rounds() {
    print(Consistency::Rvwmo, &run_table(Consistency::Rvwmo, 500, 5), 10_000);
}

#[test]
#[ignore = "ten thousand rounds of each program: a minute or two"]
fn nothing_forbidden_is_seen_under_total_store_order_in_ten_thousand_rounds() {
    print(Consistency::Tso, &run_table(Consistency::Tso, 500, 5), 10_000);
}

/// What the machine does of what is allowed: without it, that nothing forbidden is seen would say little.
#[test]
fn the_machine_is_as_weak_as_it_says() {
    let weak = [
        "MP",
        "MP+fence.w.w+po",
        "MP+fence.w.w+ctrl",
        "MP+fence.w.w+addr-po",
        "PPOCA",
        "RSW",
        "IRIW",
        "SB",
        "SB+rfis",
        "SB+fence.w.ws",
        "R",
        "RWC",
        "Z6.3",
        "MP+across+po",
        "SB+halves-rfi",
    ];
    for (consistency, names) in
        [(Consistency::Rvwmo, &weak[..]), (Consistency::Tso, &["SB", "SB+rfis", "n6", "R", "3.SB"])]
    {
        for name in names {
            let row = named(name);
            let seen = (0..10).any(|seed| row.count(&row.run(consistency, None, 100, seed)) > 0);
            assert!(seen, "{consistency:?} {name} is never seen");
        }
    }
    // Loads that bound early are executed again, which the other orders cannot tell.
    assert!(named("MP").run(Consistency::Tso, None, 150, 7).again > 10);
    assert!(named("CoRR+addr").run(Consistency::Rvwmo, None, 150, 7).again > 10);
}
