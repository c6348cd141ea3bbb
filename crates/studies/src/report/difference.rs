//! Two runs side by side: what differs in what was simulated, and by how much in what was counted.
//!
//! Counters are totals over components. Left out: `host`, which no two runs share, and what sums up the rest
//! (accounts of persists, explanations).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::console::{align_right, lines, plain_table};
use super::numbers::count;
use super::title::plain;
use durawarp_base::stats::Table;
use durawarp_simulation::outcome::{End, Outcome, Parameter};

/// Something that two runs do not have in common: its name, and what each has; `None` where it has no such.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differing {
    /// `table.key`, or a word of the workload.
    pub key: String,
    /// Of the first.
    pub one: Option<String>,
    /// Of the second.
    pub other: Option<String>,
}

/// A count of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// `component.counter`, or `cycles`.
    pub name: String,
    /// Of the first; `None` where it has no such counter.
    pub one: Option<u64>,
    /// Of the second.
    pub other: Option<u64>,
}

/// Two runs beside each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differences {
    /// What they are: workload, machine, scheme, of each.
    pub titles: [String; 2],
    /// What was simulated, where it differs: the workload's words and parameters, the machine's, the
    /// scheme's.
    pub settings: Vec<Differing>,
    /// What came of it, in words, where it differs: end, result check, digests.
    pub results: Vec<Differing>,
    /// Counts that differ.
    pub counts: Vec<Count>,
    /// Counts that are equal.
    pub equal_counts: usize,
}

impl Differences {
    /// Between two runs.
    pub fn of(one: &Outcome, other: &Outcome) -> Self {
        let (own, others) = (counts(one), counts(other));
        let names: Vec<&String> = own.iter().map(|(name, _)| name).chain(others.iter().map(|(name, _)| name)).collect();
        let (own_of, others_of): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (own.iter().cloned().collect(), others.iter().cloned().collect());
        let mut seen = BTreeSet::new();
        let in_order = names.into_iter().filter(|name| seen.insert(name.as_str())).map(|name| {
            let of = |counts: &BTreeMap<String, u64>| counts.get(name).copied();
            Count { name: name.clone(), one: of(&own_of), other: of(&others_of) }
        });
        let (equal, counts): (Vec<Count>, Vec<Count>) = in_order.partition(|count| count.one == count.other);
        Differences {
            titles: [one, other].map(super::title::title),
            settings: different(&settings(one), &settings(other)),
            results: different(&results(one), &results(other)),
            counts,
            equal_counts: equal.len(),
        }
    }

    /// Nothing differs: the runs are of the same, and the same came of them.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.results.is_empty() && self.counts.is_empty()
    }

    /// The differences for a terminal.
    pub fn text(&self) -> String {
        let [one, other] = &self.titles;
        let mut out = format!("one    {one}\nother  {other}\n");
        if self.is_empty() {
            return out + &format!("\nequal: configuration, results and all {} counts\n", self.equal_counts);
        }
        for (heading, list) in [("What was simulated", &self.settings), ("What came of it", &self.results)] {
            out += &format!("\n{heading}\n");
            let mut table = plain_table();
            for Differing { key, one, other } in list {
                let of = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                table.add_row([key.clone(), of(one), "->".to_owned(), of(other)]);
            }
            out += &if list.is_empty() { "  no difference\n".to_owned() } else { lines(&table, 1) };
        }
        out += &format!("\nCounts: {} differ, {} are equal\n", self.counts.len(), self.equal_counts);
        let mut table = plain_table();
        for Count { name, one, other } in &self.counts {
            let of = |value: &Option<u64>| value.map_or_else(|| "-".to_owned(), count);
            table.add_row([name.clone(), of(one), "->".to_owned(), of(other), change(*one, *other)]);
        }
        align_right(&mut table, [1, 3, 4]);
        out + &lines(&table, 1)
    }
}

/// By how much a count changed, in percent of the first.
fn change(one: Option<u64>, other: Option<u64>) -> String {
    match (one, other) {
        (Some(one), Some(other)) if one > 0 => {
            format!("{:+.2} %", (other as f64 - one as f64) / one as f64 * 100.0)
        }
        _ => String::new(),
    }
}

/// Pairs that are not equal, or that only one side has, in the order of their names.
fn different(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<Differing> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let pairs = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    pairs
        .map(|key| Differing { key: key.clone(), one: one.get(key).cloned(), other: other.get(key).cloned() })
        .collect()
}

fn settings(outcome: &Outcome) -> BTreeMap<String, String> {
    let parameter = |(key, parameter): (&String, &Parameter)| (key.clone(), plain(&parameter.value));
    let mut all: BTreeMap<String, String> =
        outcome.machine.parameters.iter().chain(&outcome.scheme_parameters).map(parameter).collect();
    all.insert("machine".to_owned(), outcome.machine.name.clone());
    all.insert("scheme".to_owned(), outcome.scheme_name().to_owned());
    all.insert("version of durawarp".to_owned(), outcome.version.clone());
    for key in ["workload", "profile", "seed"] {
        all.insert(key.to_owned(), plain(&outcome.workload[key]));
    }
    if let Some(chosen) = outcome.workload["trace"]["chosen"].as_str() {
        all.insert("kernels".to_owned(), chosen.to_owned());
    }
    let params = outcome.workload["params"].as_object().into_iter().flatten();
    all.extend(params.map(|(name, value)| (format!("params.{name}"), plain(value))));
    all
}

fn results(outcome: &Outcome) -> BTreeMap<String, String> {
    let end = match &outcome.end {
        End::Finished => "finished",
        End::Deadlock { .. } => "deadlock",
        End::Repeats(_) => "repeats itself for ever",
        End::Cut { .. } => "cut at its cycle limit",
        End::Stopped => "stopped",
        End::Failed { .. } => "failed",
        End::Panicked { .. } => "a defect of the simulator",
    };
    let check = outcome.verification.as_ref().map_or("not done", |check| match check.passed {
        true => "passed",
        false => "failed",
    });
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    BTreeMap::from([
        of("end", end),
        of("result check", check),
        of("digest", &outcome.digest),
        of("memory digest", &outcome.memory_digest),
    ])
}

/// Every count by name: time first, then the components' in their order.
fn counts(outcome: &Outcome) -> Vec<(String, u64)> {
    let mut all = vec![("cycles".to_owned(), outcome.time.core_cycles)];
    all.extend(outcome.counters.iter().flat_map(Table::totals));
    all.extend(outcome.scheme_counters.iter().map(|(name, value)| (format!("scheme.{name}"), *value)));
    all.push(("engine.events".to_owned(), outcome.engine.events));
    all.push(("engine.rounds".to_owned(), outcome.engine.rounds));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::console::cells;
    use durawarp_simulation::outcome::sample::{sample, set};

    #[test]
    fn a_run_does_not_differ_from_itself_on_another_host() {
        let mut other = sample();
        other.host.wall_s *= 2.0;
        let none = Differences::of(&sample(), &other);
        assert!(none.is_empty() && none.equal_counts > 40, "{none:?}");
        assert!(
            none.text().ends_with(&format!("equal: configuration, results and all {} counts\n", none.equal_counts))
        );
    }

    #[test]
    fn every_number_that_two_runs_can_differ_in_is_compared() {
        let one = sample();
        let differs = |change: &dyn Fn(&mut Outcome)| {
            let mut other = sample();
            change(&mut other);
            let found = Differences::of(&one, &other);
            let counts = found.counts.iter().map(|count| count.name.clone());
            let words = found.settings.iter().chain(&found.results).map(|found| found.key.clone());
            counts.chain(words).collect::<Vec<_>>()
        };
        assert_eq!(differs(&|o| o.time.core_cycles += 1), ["cycles"]);
        assert_eq!(differs(&|o| o.engine.events += 1), ["engine.events"]);
        assert_eq!(differs(&|o| o.engine.rounds += 1), ["engine.rounds"]);
        assert_eq!(differs(&|o| o.memory_digest.push('x')), ["memory digest"]);
        assert_eq!(differs(&|o| o.end = End::Stopped), ["end"]);
        assert_eq!(differs(&|o| o.verification = None), ["result check"]);
        assert_eq!(differs(&|o| o.machine.name.push('x')), ["machine"]);
        assert_eq!(differs(&|o| o.workload["trace"] = serde_json::json!({ "chosen": "3" })), ["kernels"]);
        // Every counter of every component, the last as the first.
        for (table, column) in
            one.counters.iter().enumerate().flat_map(|(at, t)| (0..t.names.len()).map(move |c| (at, c)))
        {
            let name = format!("{}.{}", one.counters[table].kind, one.counters[table].names[column]);
            let last = one.counters[table].rows.len() - 1;
            assert_eq!(differs(&|o| o.counters[table].rows[last][column] += 1), [name]);
        }
    }

    #[test]
    fn what_differs_is_told_with_its_share() {
        let mut other = sample();
        set(&mut other, "l2", "reads", 2500);
        other.time.core_cycles = 9000;
        other.digest = "another".to_owned();
        other.workload["params"]["N"] = 65.into();
        other.scheme_counters.insert("markers".to_owned(), 7);
        let text = Differences::of(&sample(), &other).text();
        let rows = cells(&text);
        for row in [
            "params.N|64|->|65",
            "cycles|10000|->|9000|-10.00 %",
            "l2.reads|2000|->|2500|+25.00 %",
            "scheme.markers|-|->|7",
        ] {
            assert!(rows.iter().any(|found| found == row), "no `{row}` in {rows:?}");
        }
        assert!(text.contains("\nCounts: 3 differ, "), "{text}");
    }
}
