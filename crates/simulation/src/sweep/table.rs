//! The results of a plan as a table: long (a row a point and metric) or wide (a row a point).
//!
//! Invariants: rows are in the order of points and metrics and depend on nothing else; a column means the
//! same in every format; what is not known is empty. In the long form points without a result have no rows.

mod column;
#[cfg(feature = "parquet")]
mod parquet;

pub use column::Column;

use std::collections::BTreeMap;

use serde_json::Value;

use super::metrics::{self, Metric};
use super::plan::Plan;
use super::record::State;
use super::store::Store;
use crate::outcome::{Outcome, validity};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name of each column.
    pub columns: Vec<Column>,
    /// One cell a column: a text, a number, or null.
    pub rows: Vec<Vec<Value>>,
}

/// The column of caveats.
const WARNINGS: (&str, &str) = (
    "warnings",
    "Kinds of warnings about the result, with blanks between: sampled, region, forked, undurable, unsourced, unexercised, cap, saturated (its JSON has the \
     texts, under `validity`), and program; empty without any",
);

/// Ends of the names of columns that relate a metric to the baseline.
const RELATIVE: &str = "relative";

/// Columns of a plan's tables, those of metrics apart.
fn of_points(plan_columns: &[String]) -> Vec<Column> {
    let mut columns = vec![
        Column::new("sweep", "", "Name of the sweep"),
        Column::new("point", "", "First digits of the point's key"),
    ];
    columns.extend(plan_columns.iter().map(|key| {
        let meaning = match key.as_str() {
            "machine" => "Machine, as the sweep file names it",
            "workload" => "Workload, as the sweep file names it",
            "scheme" => "Persistency scheme, as the sweep file names it",
            "profile" => "Profile of the workload",
            "seed" => "Seed of random contents",
            _ => "Value of this key, in the unit that its name ends in; empty where it does not apply",
        };
        Column::new(key, "", meaning)
    }));
    columns
}

/// The columns of the long form that every sweep has.
pub fn long_columns(plan_columns: &[String]) -> Vec<Column> {
    let mut columns = of_points(plan_columns);
    columns.push(Column::new("metric", "", "Name of the metric"));
    columns.push(Column::new("value", "as `unit` says", "Its value"));
    columns.push(Column::new("unit", "", "Unit of the value"));
    let meaning = "The value over that of the baseline's point; empty without a baseline, and where that is 0";
    columns.push(Column::new(RELATIVE, "1", meaning));
    columns.push(Column::new(WARNINGS.0, "", WARNINGS.1));
    columns
}

/// Columns of the wide form that every sweep has beside those of points and metrics.
pub(crate) fn wide_columns(plan_columns: &[String], metrics: &[Metric]) -> Vec<Column> {
    let mut columns = of_points(plan_columns);
    columns.push(Column::new("state", "", "good, failed or missing"));
    columns.push(Column::new("why", "", "Why the point failed"));
    columns.push(Column::new(WARNINGS.0, "", WARNINGS.1));
    for Metric { name, unit, meaning } in metrics {
        columns.push(Column::new(name, unit, meaning));
        columns.push(Column::new(
            &format!("{name}.{RELATIVE}"),
            "1",
            &format!("{name} over that of the baseline's point"),
        ));
    }
    columns
}

/// A number without a point where it is whole.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

/// The outcome of a point, if it has one that counts.
fn outcome_of(store: &Store, key: &str) -> Result<Option<Outcome>, String> {
    let entry = store.result(key).filter(|entry| entry.head.state.counts());
    Ok(entry.map(|entry| store.outcome(entry)).transpose()?.flatten())
}

/// The table of a plan's results.
///
/// # Errors
/// A result cannot be read.
pub fn of(plan: &Plan, store: &Store, names: &[String], wide: bool) -> Result<Table, String> {
    let chosen: Vec<Metric> = names.iter().filter_map(|name| metrics::find(name)).collect();
    let mut values: Vec<Option<Vec<Option<f64>>>> = Vec::new();
    let mut warnings: Vec<Value> = Vec::new();
    // One outcome is in memory at a time: only the chosen numbers and the warnings of each are kept.
    for planned in &plan.points {
        let outcome = outcome_of(store, &planned.key)?;
        let words = outcome.as_ref().map(validity::words).filter(|words| !words.is_empty());
        warnings.push(words.map_or(Value::Null, Value::from));
        values.push(outcome.map(|outcome| chosen.iter().map(|m| metrics::value(&outcome, &m.name)).collect()));
    }
    let baselines = plan.baselines();
    let whole =
        |point: usize| store.result(&plan.points[point].key).is_some_and(|entry| entry.head.state == State::Good);
    let relative = |point: usize, metric: usize| {
        // What a limit cut is compared with nothing: its cycles are the limit's.
        if !whole(point) || !whole(baselines[point]?) {
            return None;
        }
        let own = values[point].as_ref()?[metric]?;
        let base = values[baselines[point]?].as_ref()?[metric]?;
        (base != 0.0).then(|| Value::from(own / base))
    };
    let mut rows = Vec::new();
    for (at, planned) in plan.points.iter().enumerate() {
        let mut start = vec![Value::from(plan.file.name.as_str()), Value::from(&planned.key[..16])];
        start.extend(planned.values.iter().cloned());
        let value = |metric: usize| values[at].as_ref().and_then(|all| all[metric]).map_or(Value::Null, number);
        if wide {
            let entry = store.result(&planned.key);
            let state = entry.map_or("missing", |entry| entry.head.state.name());
            let why = entry.and_then(|entry| entry.head.why.clone());
            start.extend([Value::from(state), why.map_or(Value::Null, Value::from), warnings[at].clone()]);
            for metric in 0..chosen.len() {
                start.extend([value(metric), relative(at, metric).unwrap_or_default()]);
            }
            rows.push(start);
        } else if values[at].is_some() {
            for (nth, metric) in chosen.iter().enumerate() {
                let more = [metric.name.as_str().into(), value(nth), metric.unit.as_str().into()];
                let relative = relative(at, nth).unwrap_or_default();
                rows.push(start.iter().cloned().chain(more).chain([relative, warnings[at].clone()]).collect());
            }
        }
    }
    let columns = if wide { wide_columns(&plan.columns, &chosen) } else { long_columns(&plan.columns) };
    Ok(Table { columns, rows })
}

/// A row a launch of each point: when it was, and what it counted where that was asked for.
///
/// # Errors
/// A result cannot be read.
pub fn of_launches(plan: &Plan, store: &Store) -> Result<Table, String> {
    // Two passes: columns are the counters of all points, and one outcome is in memory at a time.
    let (mut meanings, mut streams) = (BTreeMap::new(), false);
    for planned in &plan.points {
        let Some(outcome) = outcome_of(store, &planned.key)? else { continue };
        streams |= outcome.streams.as_ref().is_some_and(|overlap| overlap.streams > 1);
        for table in outcome.counters.iter().filter(|_| outcome.launches.iter().any(|one| !one.counters.is_empty())) {
            for (name, doc) in table.names.iter().zip(&table.docs) {
                meanings.insert(format!("{}.{name}", table.kind), doc.clone());
            }
        }
    }
    let mut columns = of_points(&plan.columns);
    columns.extend([Column::new("launch", "", "Number of the launch, from 1"), Column::new("kernel", "", "Kernel")]);
    columns.extend(streams.then(|| Column::new("stream", "", "Its stream")));
    columns.extend([
        Column::new("start_cycles", "cycles", "When the host asked for it"),
        Column::new("cycles", "cycles", "From then until its last store was performed"),
    ]);
    columns.extend(meanings.iter().map(|(name, meaning)| Column::new(name, "", meaning)));
    let mut rows = Vec::new();
    for planned in &plan.points {
        let Some(outcome) = outcome_of(store, &planned.key)? else { continue };
        for (number, launch) in (1u64..).zip(&outcome.launches) {
            let mut row = vec![Value::from(plan.file.name.as_str()), Value::from(&planned.key[..16])];
            row.extend(planned.values.iter().cloned());
            row.extend([Value::from(number), Value::from(launch.kernel.as_str())]);
            row.extend(streams.then(|| launch.stream.map_or(Value::Null, Value::from)));
            row.extend([launch.start.core_cycles, launch.length.core_cycles].map(Value::from));
            let count = |name: &String| launch.counters.get(name).map_or(Value::Null, |&count| Value::from(count));
            row.extend(meanings.keys().map(count));
            rows.push(row);
        }
    }
    Ok(Table { columns, rows })
}

impl Table {
    /// As CSV (RFC 4180).
    pub fn csv(&self) -> Vec<u8> {
        let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        let text = |value: &Value| durawarp_base::cell::inert(&super::file::text_of(value)).into_owned();
        // Writing to memory does not fail.
        let _ = out.write_record(self.columns.iter().map(|column| &column.name));
        for row in &self.rows {
            let _ = out.write_record(row.iter().map(text));
        }
        out.into_inner().unwrap_or_default()
    }

    /// As JSON: a list of objects.
    pub fn json(&self) -> Vec<u8> {
        let object = |row: &Vec<Value>| {
            let cells = self.columns.iter().zip(row);
            let cells = cells.map(|(column, value)| format!("{}: {value}", Value::from(column.name.as_str())));
            format!("  {{{}}}", cells.collect::<Vec<_>>().join(", "))
        };
        format!("[\n{}\n]\n", self.rows.iter().map(object).collect::<Vec<_>>().join(",\n")).into_bytes()
    }

    /// As Parquet.
    ///
    /// # Errors
    /// This program was built without it.
    pub fn parquet(&self) -> Result<Vec<u8>, String> {
        #[cfg(feature = "parquet")]
        return parquet::bytes(&self.columns, &self.rows);
        #[cfg(not(feature = "parquet"))]
        Err("this program was built without Parquet: build it with `--features parquet`, or take --csv".to_owned())
    }
}

#[cfg(test)]
mod tests;
