//! The configuration of a sweep's points: one in full, the others as differences from it; and which values
//! have no source.

use std::collections::BTreeMap;

use super::super::notes::listed;
use super::super::reading::{Facts, Showing};
use super::tables::{columns, put};
use crate::report::{Page, Table};

/// Points of one value that are told by name.
const TOLD: usize = 3;

pub(super) fn of(page: &mut Page, showing: &Showing<'_>) {
    let Some((reference, full)) = reference(showing) else {
        page.paragraph("There are no results yet, and with them no configuration.");
        return;
    };
    let name = &showing.plan.points[reference].label;
    let entries = full.parameters.iter();
    let mut table = Table::new(columns(&["parameter", "value", "source"]));
    entries.for_each(|(key, (value, source))| table.row([key, value, source]));
    page.folded_table(&format!("Every parameter of `{name}` ({})", table.rows.len()), table);
    let different = differences(showing, full);
    if different.rows.is_empty() {
        page.paragraph("No other point differs from it.");
    } else {
        put(page, different, &format!("Where other points differ from `{name}`"));
    }
    assumed(page, showing);
}

/// The point whose configuration is told in full: the baseline of the first point that has results and one.
fn reference<'a>(showing: &'a Showing<'_>) -> Option<(usize, &'a Facts)> {
    let facts = |point: usize| Some((point, showing.readings[point].facts.as_ref()?));
    let of_baselines = showing.baselines.iter().flatten().find_map(|point| facts(*point));
    of_baselines.or_else(|| (0..showing.readings.len()).find_map(facts))
}

/// A row a parameter and value that the reference does not have.
fn differences(showing: &Showing<'_>, full: &Facts) -> Table {
    // Value and points by parameter; values in the order of the points.
    let mut all: BTreeMap<&str, Vec<(&str, Vec<usize>)>> = BTreeMap::new();
    let mut add = |key, value, point| {
        let values = all.entry(key).or_default();
        match values.iter_mut().find(|(other, _)| *other == value) {
            Some((_, points)) => points.push(point),
            None => values.push((value, vec![point])),
        }
    };
    for (point, facts) in showing.facts() {
        for (key, (value, _)) in &facts.parameters {
            if full.parameters.get(key).is_none_or(|(own, _)| own != value) {
                add(key.as_str(), value.as_str(), point);
            }
        }
        for key in full.parameters.keys().filter(|key| !facts.parameters.contains_key(*key)) {
            add(key, "none", point);
        }
    }
    let mut table = Table::new(columns(&["parameter", "there", "here", "points"]));
    for (key, values) in all {
        let there = full.parameters.get(key).map_or("none", |(value, _)| value.as_str());
        for (value, points) in values {
            table.row([key, there, value, &named(showing, &points)]);
        }
    }
    table
}

fn named(showing: &Showing<'_>, points: &[usize]) -> String {
    let labels: Vec<&str> = points.iter().map(|point| showing.plan.points[*point].label.as_str()).collect();
    listed(&labels, TOLD)
}

/// Parameters whose value nobody owns but us or the user.
fn assumed(page: &mut Page, showing: &Showing<'_>) {
    let mut all: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    let mut results = 0;
    for (_, facts) in showing.facts() {
        results += 1;
        for key in &facts.assumed {
            if let Some((value, source)) = facts.parameters.get(key) {
                *all.entry((key, value, source)).or_default() += 1;
            }
        }
    }
    if all.is_empty() {
        page.paragraph("Every parameter has a source of its own.");
        return;
    }
    let mut table = Table::new(columns(&["parameter", "value", "why", "points"]));
    for ((key, value, source), points) in all {
        table.row([key, value, source, &if points == results { "all".to_owned() } else { points.to_string() }]);
    }
    page.folded_table(&format!("Parameters without a source of their own ({})", table.rows.len()), table);
}
