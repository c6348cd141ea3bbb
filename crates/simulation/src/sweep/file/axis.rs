//! What varies in a sweep: one key, or several that change together.
//!
//! Invariant: an axis has as many values a row as it has keys, and no row twice.

use serde_json::Value;

use super::keys::{self, same};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, Place, TomlTable};

/// Rows of an axis: more are taken for a mistake.
const MAX_ROWS: usize = 100_000;

/// What varies.
#[derive(Debug, Clone)]
pub struct Axis {
    pub keys: Vec<String>,
    /// Their values.
    pub rows: Vec<Row>,
    /// Where the keys are written.
    pub(in super::super) places: Vec<Place>,
}

/// Values that the keys of an axis have together.
#[derive(Debug, Clone)]
pub struct Row {
    /// One a key.
    pub values: Vec<Value>,
    pub(in super::super) place: Place,
}

impl Axis {
    /// The values of a key; none when the axis has no such key.
    pub(crate) fn values_of(&self, key: &str) -> impl Iterator<Item = &Value> {
        let at = self.keys.iter().position(|own| own == key);
        self.rows.iter().filter_map(move |row| row.values.get(at?))
    }
}

/// All axes: of lists in `[base]`, then as they are written.
pub(super) fn axes(root: TomlTable<'_>, faults: &mut Diagnostics) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    if let Some(base) = root.table("base") {
        for (list, key) in [("workloads", "workload"), ("schemes", "scheme")] {
            let Some(item) = base.get(list) else { continue };
            if base.get(key).is_some() {
                faults.push(item.place().fault(format!("[base] has both `{key}` and `{list}`")));
            }
            let Some(items) = item.list() else { continue };
            let rows = rows_of(&items, key, faults);
            axes.push(Axis { keys: vec![key.to_owned()], rows, places: vec![item.place()] });
        }
    }
    axes.extend(root.tables("axis").into_iter().filter_map(|table| axis(table, faults)));
    for (nth, axis) in axes.iter().enumerate() {
        let earlier = axes[..nth].iter().flat_map(|axis| &axis.keys);
        for (key, place) in axis.keys.iter().zip(&axis.places) {
            if earlier.clone().any(|other| other == key) {
                faults.push(place.fault(format!("`{key}` varies in two axes")));
            }
        }
        if axis.rows.is_empty() && faults.0.is_empty() {
            faults.push(axis.places[0].fault("this axis has no values: there would be no points"));
        }
        for (at, row) in axis.rows.iter().enumerate() {
            let equal = |other: &Row| other.values.iter().zip(&row.values).all(|(one, other)| same(one, other));
            // Long ranges have no equal rows; looking at each pair of theirs would take long.
            if axis.rows.len() < 5000 && axis.rows[..at].iter().any(equal) {
                let shown: Vec<String> = row.values.iter().map(ToString::to_string).collect();
                faults.push(row.place.fault(format!("duplicate points: {} is here twice", shown.join(", "))));
            }
        }
    }
    let named = root.table("base").is_some_and(|base| base.get("workload").is_some());
    if !named && !axes.iter().flat_map(|axis| &axis.keys).any(|key| key == "workload") {
        let place = root.table("base").map_or_else(|| root.place(), TomlTable::place);
        faults.push(place.fault("no workload: say `workload` or `workloads` in [base], or make it an axis"));
    }
    axes
}

fn axis(table: TomlTable<'_>, faults: &mut Diagnostics) -> Option<Axis> {
    let named = match (table.get("key"), table.get("keys")) {
        (Some(key), None) => vec![key],
        (None, Some(keys)) => keys.list()?,
        (Some(_), Some(keys)) => {
            faults.push(keys.place().fault("an axis has `key` or `keys`, not both"));
            return None;
        }
        (None, None) => {
            faults.push(table.place().fault("an axis needs `key`, or `keys` for several that change together"));
            return None;
        }
    };
    let zipped = table.get("keys").is_some();
    let keys: Vec<String> = named.iter().filter_map(|item| item.text().map(str::to_owned)).collect();
    let places: Vec<Place> = named.iter().map(|item| item.place()).collect();
    // A key that is no text was reported by the check of the file's form.
    if keys.len() != places.len() || keys.is_empty() {
        return None;
    }
    let mut rows = match (table.get("values"), table.get("range")) {
        (Some(values), None) if zipped => zip(&values.list()?, &keys, faults),
        (Some(values), None) => rows_of(&values.list()?, &keys[0], faults),
        (None, Some(range)) if !zipped => self::range(range, faults),
        (None, Some(range)) => {
            faults.push(range.place().fault("`range` goes with one `key`; several keys need `values`"));
            return None;
        }
        (Some(_), Some(range)) => {
            faults.push(range.place().fault("an axis has `values` or a `range`, not both"));
            return None;
        }
        (None, None) => {
            faults.push(table.place().fault("an axis needs `values` or a `range`"));
            return None;
        }
    };
    for (at, (key, place)) in keys.iter().zip(&places).enumerate() {
        let values: Vec<(Value, Place)> =
            rows.iter().filter_map(|row| Some((row.values.get(at)?.clone(), row.place.clone()))).collect();
        // Checked values replace the written ones only if all are good, as faulty ones are missing from
        // `good` and the rest would shift.
        let good = keys::check(key, place, values, faults);
        if good.len() == rows.len() {
            rows.iter_mut().zip(good).for_each(|(row, value)| row.values[at] = value);
        }
    }
    Some(Axis { keys, rows, places })
}

fn rows_of(items: &[Item<'_>], key: &str, faults: &mut Diagnostics) -> Vec<Row> {
    let row = |item: &Item<'_>| Some(Row { values: vec![keys::plain(*item, key, faults)?], place: item.place() });
    items.iter().filter_map(row).collect()
}

fn zip(items: &[Item<'_>], keys: &[String], faults: &mut Diagnostics) -> Vec<Row> {
    let mut rows = Vec::new();
    for item in items {
        match item.list() {
            Some(parts) if parts.len() == keys.len() => {
                let values = parts.iter().zip(keys).filter_map(|(part, key)| keys::plain(*part, key, faults));
                let values: Vec<Value> = values.collect();
                if values.len() == keys.len() {
                    rows.push(Row { values, place: item.place() });
                }
            }
            _ => {
                let (count, found) = (keys.len(), item.described());
                let message = format!("each of `values` is a list of {count} values, one a key; found {found}");
                faults.push(item.place().fault(message));
            }
        }
    }
    rows
}

/// `{ from, to, step }` or `{ from, to, times }`, both ends included.
fn range(item: Item<'_>, faults: &mut Diagnostics) -> Vec<Row> {
    let Some(table) = item.table() else { return Vec::new() };
    let number = |key: &str| table.get(key).and_then(keys::value_of);
    let mut fault = |message: String| {
        faults.push(item.place().fault(message));
        Vec::new()
    };
    let (Some(from), Some(to)) = (number("from"), number("to")) else { return Vec::new() };
    let (by, times) = match (number("step"), number("times")) {
        (Some(step), None) => (step, false),
        (None, Some(times)) => (times, true),
        _ => return fault("a range needs `step` (added each time) or `times` (multiplied), one of them".to_owned()),
    };
    let whole = [&from, &to, &by].iter().all(|value| value.is_i64());
    let [Some(from), Some(to), Some(by)] = [&from, &to, &by].map(Value::as_f64) else { return Vec::new() };
    let grows = if times { by > 1.0 && from > 0.0 } else { by > 0.0 };
    if !grows || to < from {
        let rule = if times { "`times` above 1 and `from` above 0" } else { "`step` above 0" };
        return fault(format!("this range has no values or no end: it needs `to` from `from` on, {rule}"));
    }
    let mut rows = Vec::new();
    for nth in 0..=MAX_ROWS {
        let exact = if times { from * by.powi(nth as i32) } else { from + by * nth as f64 };
        // 0.1 + 2 * 0.1 is meant to be 0.3.
        let value = if whole { exact.round() } else { (exact * 1e9).round() / 1e9 };
        if value > to {
            return rows;
        }
        let value = if whole { Value::from(value as i64) } else { Value::from(value) };
        rows.push(Row { values: vec![value], place: item.place() });
    }
    fault(format!("this range has more than {MAX_ROWS} values"))
}
