//! Figure 3, the worked schedule, by the schedulers' own code: three independent threads of ten requests, all
//! of them there at first; a bank serves one request a step.
//!
//! The text has the sets, the banks of the first ones (0), of 2.2 (1), and what is scheduled first. Banks of
//! 1.3 and 3.2 are read from Fig. 6(c); those of 1.4, 2.3 and 3.3 are chosen, the picture is in no text.

use serde_json::{Map, Value};

use super::ask::{self, Ask};
use super::runs::SCHEMES;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_schemes::delegated::{Delegated, WorkedRequest, WorkedStep, worked};
use durawarp_simulation::config::SchemeConfig;

/// Banks of the sets of each thread.
const THREADS: [&[&[u16]]; 3] = [&[&[0, 0], &[1], &[0]], &[&[0], &[1], &[0]], &[&[0], &[0], &[1]]];
/// Banks of the example.
const BANKS: u16 = 2;

/// What the text has of it.
const EPOCHS: &str = "(1.1, 1.2, 2.1, 3.1), barrier, (1.3, 2.2, 3.2), barrier, (1.4, 2.3, 3.3)";
const FIRST: &str = "(2.1)";
const READY: &str = "(1.1, 1.2, 2.2, 3.1)";

/// A scheme's parameters as the request has them.
fn spec<S: serde::de::DeserializeOwned>(request: &Request, name: &str) -> Option<S> {
    let table = SchemeConfig::load(name, &[]).ok()?.table().to_owned();
    let own: Vec<_> = request.scheme_set.iter().filter(|over| over.table() == table).cloned().collect();
    let values = SchemeConfig::load(name, &own).ok()?.values;
    let key = |(name, value): (String, Value)| Some((name.split_once('.')?.1.to_owned(), value));
    serde_json::from_value(Value::Object(values.into_iter().filter_map(key).collect::<Map<_, _>>())).ok()
}

fn set(requests: &[WorkedRequest]) -> String {
    let names: Vec<String> = requests.iter().map(|of| format!("{}.{}", of.hart, of.number)).collect();
    format!("({})", names.join(", "))
}

fn rows(table: &mut FigureTable, scheme: &str, steps: &[WorkedStep]) {
    for (number, step) in steps.iter().enumerate() {
        let priorities: Vec<String> =
            step.priorities.iter().map(|thousandths| format!("{:.1}", *thousandths as f64 / 1000.0)).collect();
        let handed_over = if step.handed_over.is_empty() { "-".to_owned() } else { set(&step.handed_over) };
        table.push(vec![
            Cell::from(scheme),
            Cell::Count(number as u64 + 1),
            Cell::Text(set(&step.ready)),
            Cell::Text(if priorities.is_empty() { "-".to_owned() } else { priorities.join(", ") }),
            Cell::Text(handed_over),
            Cell::Text(set(&step.served)),
            Cell::Count(step.served.len() as u64),
        ]);
    }
}

fn asks(epoch: &[WorkedStep], broi: &[WorkedStep]) -> Vec<Ask> {
    let epochs: Vec<String> =
        epoch.iter().filter(|step| !step.handed_over.is_empty()).map(|step| set(&step.handed_over)).collect();
    let second = |steps: &[WorkedStep]| {
        Some(steps.iter().position(|step| step.served.iter().any(|request| request.bank == 1))? + 1)
    };
    let ready = broi.get(1).map_or_else(String::new, |step| set(&step.ready));
    vec![
        ask::exactly("Epoch has the three epochs of section III", &epochs.join(", barrier, "), EPOCHS),
        ask::exactly("BROI's first Sch-SET is the one of section IV-D", &set(&broi[0].handed_over), FIRST),
        ask::exactly("the Ready-SET behind it is the one of section IV-D", &ready, READY),
        ask::second_bank(second(epoch), second(broi)),
    ]
}

/// Figure 3.
pub(super) fn worked_schedule(request: &Request, _: &Runs<'_>) -> Finding {
    let columns = ["scheme", "step", "Ready-SET", "priorities", "handed over", "served", "banks busy"];
    let mut table = FigureTable::new("fig3", "requests of three threads on two banks, step by step", &columns);
    let specs = spec(request, SCHEMES[0]).zip(spec(request, SCHEMES[1]));
    let Some((epoch, broi)) = specs else { return Finding::default() };
    let [epoch, broi] = [Delegated::Epoch(epoch), Delegated::Broi(broi)].map(|of| worked(of, BANKS, &THREADS));
    rows(&mut table, SCHEMES[0], &epoch);
    rows(&mut table, SCHEMES[1], &broi);
    let steps = format!(
        "all ten requests take {} steps in epochs and {} under BROI, which serves 1.1 and 1.2 last; not asked, since it follows from \
         the chosen banks",
        epoch.len(),
        broi.len()
    );
    let notes = [
        "made by the code of the controllers' schedulers; priorities are those of equation 2 with the scheme's sigma",
        "banks of 1.3 and 3.2 are read from Fig. 6(c), those of 1.4, 2.3 and 3.3 are chosen: the figure is in no text",
        &steps,
    ];
    Finding {
        tables: vec![table],
        asks: asks(&epoch, &broi),
        notes: notes.map(str::to_owned).to_vec(),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Verdict;
    use durawarp_simulation::config::Override;

    fn found(set: &[&str]) -> Finding {
        let scheme_set = set.iter().map(|text| Override::parse(text).unwrap()).collect();
        worked_schedule(&Request { scheme_set, ..Request::new(&super::super::PAPER) }, &Runs::default())
    }

    #[test]
    fn the_worked_schedule_is_the_papers_to_the_digit() {
        let finding = found(&[]);
        assert!(finding.asks.iter().all(|ask| ask.verdict == Verdict::Met), "{:?}", finding.asks);
        let broi = finding.tables[0].rows.iter().find(|row| row[0] == Cell::from("broi")).unwrap();
        assert_eq!(broi[3], Cell::from("1.8, 1.9, 0.9"));
        // Ten requests each way.
        for scheme in SCHEMES {
            let rows = finding.tables[0].rows.iter().filter(|row| row[0] == Cell::from(scheme));
            let served = rows.map(|row| if let Cell::Count(served) = row[6] { served } else { 0 }).sum::<u64>();
            assert_eq!(served, 10, "{scheme}");
        }
    }

    #[test]
    fn a_scheduler_that_minds_sizes_above_banks_schedules_otherwise() {
        let finding = found(&["broi.units=1", "epoch.units=1"]);
        assert_eq!(finding.asks[0].verdict, Verdict::NotMet, "an epoch takes one request of each thread");
    }
}
