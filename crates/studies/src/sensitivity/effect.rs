//! What changed numbers did to the cycles of workloads: effects, largest first, as text, Markdown and CSV.

use super::{Factor, Plan, Variant};
use crate::report::{Column, Markdown, Table, align_right, lines, plain_table};
use durawarp_plot::Tidy;
use durawarp_simulation::sweep::Done;

/// A workload's cycles when a number was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub workload: String,
    /// Core cycles of the machine as it is.
    pub base_cycles: u64,
    /// Core cycles with the number changed.
    pub cycles: u64,
}

impl Change {
    /// By how much cycles changed, relative to the machine as it is.
    pub fn share(&self) -> f64 {
        self.cycles as f64 / self.base_cycles.max(1) as f64 - 1.0
    }
}

/// What a changed number did.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// What it was set to, and what that did to each workload.
    Of(String, Vec<Change>),
    /// Why it was not run.
    Not(String),
}

impl Spread {
    /// The median of changes; of an even number the upper one of the middle two.
    pub fn median(&self) -> Option<f64> {
        let Spread::Of(_, changes) = self else { return None };
        let mut shares: Vec<f64> = changes.iter().map(Change::share).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    }

    /// The workload whose cycles changed most.
    pub fn most(&self) -> Option<&Change> {
        let Spread::Of(_, changes) = self else { return None };
        // Of equal ones the first.
        changes.iter().rev().max_by(|a, b| a.share().abs().total_cmp(&b.share().abs()))
    }
}

/// A number and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// `table.key`.
    pub key: String,
    /// Its value in the key's unit.
    pub value: String,
    /// Whose it is.
    pub source: String,
    /// Halved, doubled.
    pub spreads: [Spread; 2],
}

impl Effect {
    /// The largest change of any workload.
    pub fn largest(&self) -> f64 {
        let most = self.spreads.iter().filter_map(Spread::most);
        most.map(|change| change.share().abs()).fold(0.0, f64::max)
    }
}

/// Every number's effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// Machine, scheme, profile and workloads, in a sentence.
    pub about: String,
    /// Effects, the largest first.
    pub effects: Vec<Effect>,
}

impl Sensitivity {
    /// What came of a plan's runs. Workloads that failed are left out.
    pub fn of(plan: &Plan, results: &[Done]) -> Self {
        let cycles = |point: usize| results[point].good().map(|outcome| outcome.time.core_cycles);
        let mut effects: Vec<Effect> = Vec::new();
        for number in &plan.numbers {
            let spreads = [0, 1].map(|at| match &number.variants[at] {
                Variant::Not(why) => Spread::Not(why.clone()),
                Variant::Runs(typed, points) => {
                    let changes = plan.workloads.iter().zip(&plan.base).zip(points).filter_map(|((name, base), at)| {
                        Some(Change { workload: name.clone(), base_cycles: cycles(*base)?, cycles: cycles(*at)? })
                    });
                    Spread::Of(typed.clone(), changes.collect())
                }
            });
            let value = number.value.to_string();
            effects.push(Effect { key: number.key.clone(), value, source: number.source.clone(), spreads });
        }
        // Sorting is stable: equal ones stay in the order of their keys.
        effects.sort_by(|a, b| b.largest().total_cmp(&a.largest()));
        let about = format!(
            "{}, scheme {}, profile {}: change of core cycles over {} workloads",
            plan.machine,
            plan.scheme,
            plan.profile,
            plan.workloads.len()
        );
        Sensitivity { about, effects }
    }

    /// As a table of a document.
    pub fn table(&self) -> Table {
        let mut columns = vec![Column::text("parameter"), Column::number("value")];
        for factor in Factor::ALL {
            let name = factor.name();
            columns.push(Column::number(name));
            columns.push(Column::number("median %"));
            columns.push(Column::number("most %"));
            columns.push(Column::text("of"));
        }
        columns.push(Column::text("source"));
        let mut table = Table::new(columns).caption(&self.about);
        for effect in &self.effects {
            let mut row = vec![effect.key.clone(), effect.value.clone()];
            for spread in &effect.spreads {
                row.extend(cells(spread));
            }
            row.push(effect.source.clone());
            table.row(row);
        }
        table
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let table = self.table();
        let mut shown = plain_table();
        shown.set_header(table.columns.iter().map(|column| column.name.clone()));
        for row in &table.rows {
            shown.add_row(row);
        }
        let numbers = table.columns.iter().enumerate().filter(|(_, column)| column.numeric).map(|(at, _)| at);
        align_right(&mut shown, numbers);
        let refused = self.effects.iter().flat_map(|effect| {
            let why = |spread: &Spread| match spread {
                Spread::Not(why) => Some(format!("  {}: {why}\n", effect.key)),
                Spread::Of(..) => None,
            };
            effect.spreads.iter().filter_map(why)
        });
        let refused: String = refused.collect();
        let refused = if refused.is_empty() { refused } else { format!("\n  not run:\n{refused}") };
        format!("  {}\n\n{}{refused}", self.about, lines(&shown, 1))
    }

    /// As a Markdown document.
    pub fn markdown(&self) -> String {
        let mut page = Markdown::new();
        page.table(&self.table());
        page.finish()
    }

    /// A row a number, factor and workload.
    pub fn csv(&self) -> String {
        let header = ["parameter", "value", "source", "factor", "set_to", "workload", "base_cycles", "cycles"];
        let mut tidy = Tidy::new(&header);
        for effect in &self.effects {
            for (factor, spread) in Factor::ALL.into_iter().zip(&effect.spreads) {
                let Spread::Of(typed, changes) = spread else { continue };
                for change in changes {
                    let [base, cycles] = [change.base_cycles, change.cycles].map(|cycles| cycles.to_string());
                    let Effect { key, value, source, .. } = effect;
                    tidy.row(&[key, value, source, factor.name(), typed, &change.workload, &base, &cycles]);
                }
            }
        }
        tidy.finish()
    }
}

/// What it was set to, median, most, of which workload.
fn cells(spread: &Spread) -> [String; 4] {
    let percent = |share: f64| format!("{:+.1}", share * 100.0);
    let none = || ["-"; 4].map(str::to_owned);
    let Spread::Of(typed, _) = spread else { return none() };
    let (Some(median), Some(most)) = (spread.median(), spread.most()) else { return none() };
    let of = if most.cycles == most.base_cycles { "" } else { &most.workload };
    [typed.clone(), percent(median), percent(most.share()), of.to_owned()]
}
