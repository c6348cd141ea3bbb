//! What is legal in a sweep and may yet not be meant: points that differ in more than their axis says, or in
//! nothing.
//!
//! Points that differ in one axis alone are compared by all that they resolve to: parameters of machine,
//! scheme and workload, and quantities that follow from several of these. Of each axis every value is
//! compared with its first one, on a few points that have the rest in common (`GROUPS`, `ROWS`), so that a
//! large sweep costs no more than a small one. Points that are the same run are no warning but a fault, which
//! [`Plan`] tells. Left out: what points measure.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::file::{Axis, is_of_a_scheme, text_of};
use super::key::canonical;
use super::plan::Plan;
use super::plan::configuration::{Configuration, UNDO_LOGS};
use crate::outcome::region_bound::RegionBound;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;

/// Sets of points with all but an axis in common that are compared for the axis.
const GROUPS: usize = 8;

/// Values of an axis that are compared with its first.
const ROWS: usize = 64;

/// Names that a list shows before it only counts.
const SHOWN: usize = 6;

/// Everything that a sweep's author may want to know before it runs; in the order of its axes.
///
/// # Errors
/// A file that a point needs is not what it was.
pub fn lint(plan: &Plan) -> Result<Vec<Diagnostic>, Diagnostics> {
    let mut known: BTreeMap<usize, Configuration> = BTreeMap::new();
    let mut found = Vec::new();
    for axis in &plan.file.axes {
        let mut warnings = Warnings { axis, found: Vec::new(), compared: 0, idle: Vec::new() };
        warnings.of_values();
        warnings.of_applying(plan);
        for group in groups(plan, axis) {
            let first = group[0];
            for &other in group.iter().skip(1).take(ROWS) {
                for point in [first, other] {
                    if let Entry::Vacant(room) = known.entry(point) {
                        room.insert(plan.configuration(point)?);
                    }
                }
                warnings.of_points(plan, [first, other], [&known[&first], &known[&other]]);
            }
            known.clear();
        }
        warnings.of_idle(plan);
        found.extend(warnings.found);
    }
    found.extend(of_baseline(plan));
    found.extend(of_regions(plan)?);
    Ok(found)
}

/// Points that have all but an axis in common: the first of each value of the axis. Those of other axes'
/// first values come first.
fn groups(plan: &Plan, axis: &Axis) -> Vec<Vec<usize>> {
    // A parameter of a scheme is null under others: it cannot be in common where the scheme varies.
    let of_schemes = axis.keys.iter().any(|key| key == "scheme");
    let varies = |column: &String| axis.keys.contains(column) || of_schemes && is_of_a_scheme(column);
    let rest: Vec<usize> = (0..plan.columns.len()).filter(|&at| !varies(&plan.columns[at])).collect();
    let own: Vec<usize> = axis.keys.iter().filter_map(|key| plan.column(key)).collect();
    let text = |point: usize, columns: &[usize]| {
        columns.iter().map(|&at| canonical(&plan.points[point].values[at])).collect::<Vec<_>>().join(" ")
    };
    let mut order: Vec<String> = Vec::new();
    let mut all: BTreeMap<String, (BTreeSet<String>, Vec<usize>)> = BTreeMap::new();
    for point in 0..plan.points.len() {
        if own.iter().all(|&at| plan.points[point].values[at].is_null()) {
            continue;
        }
        let rest = text(point, &rest);
        if !all.contains_key(&rest) {
            // More are not looked at.
            if order.len() == GROUPS {
                continue;
            }
            order.push(rest.clone());
        }
        let (seen, points) = all.entry(rest).or_default();
        if seen.insert(text(point, &own)) {
            points.push(point);
        }
    }
    order.iter().filter_map(|rest| all.remove(rest)).map(|(_, points)| points).filter(|of| of.len() > 1).collect()
}

/// "`a`, `b` and 3 more".
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.len() {
        0..=SHOWN => match names.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            _ => names.concat(),
        },
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}

/// The warnings about an axis.
struct Warnings<'a> {
    axis: &'a Axis,
    found: Vec<Diagnostic>,
    /// Pairs of points that were compared.
    compared: usize,
    /// Of these, pairs that resolve to the same.
    idle: Vec<[usize; 2]>,
}

impl Warnings<'_> {
    fn push(&mut self, key: usize, message: String) {
        let warning = self.axis.places[key.min(self.axis.places.len() - 1)].fault(message);
        if !self.found.contains(&warning) {
            self.found.push(warning);
        }
    }

    fn has(&self, key: &str) -> bool {
        self.axis.keys.iter().any(|own| own == key)
    }

    /// Of the axis as it is written.
    fn of_values(&mut self) {
        let Axis { keys, rows, .. } = self.axis;
        if rows.len() == 1 {
            self.push(
                0,
                format!("{} has one value: this axis varies nothing", listed(keys.iter().map(String::as_str))),
            );
            return;
        }
        let fixed = |at: &usize| rows.iter().all(|row| canonical(&row.values[*at]) == canonical(&rows[0].values[*at]));
        let fixed: Vec<usize> = (0..keys.len()).filter(fixed).collect();
        for &at in &fixed {
            let value = text_of(&rows[0].values[at]);
            self.push(at, format!("`{}` is {value} in every row: it does not vary", keys[at]));
        }
        if keys.len() - fixed.len() > 1 {
            let varying = keys.iter().enumerate().filter(|(at, _)| !fixed.contains(at)).map(|(_, key)| key.as_str());
            let message = format!("{} change together: a difference is of none of them alone", listed(varying));
            self.push(0, message);
        }
    }

    /// Of points that a key of the axis does not apply to.
    fn of_applying(&mut self, plan: &Plan) {
        for (at, key) in self.axis.keys.iter().enumerate() {
            let Some(column) = plan.column(key) else { continue };
            let without = plan.points.iter().filter(|point| point.values[column].is_null());
            let by = if is_of_a_scheme(key) { "scheme" } else { "workload" };
            let Some(by_column) = plan.column(by) else { continue };
            let texts: Vec<String> = without.map(|point| text_of(&point.values[by_column])).collect();
            if !texts.is_empty() {
                let names: BTreeSet<&str> = texts.iter().map(String::as_str).collect();
                let message = format!(
                    "`{key}` does not apply to {} of {} points, which are of {by} {}: there it is left out",
                    texts.len(),
                    plan.points.len(),
                    listed(names)
                );
                self.push(at, message);
            }
        }
    }

    /// Of two points that differ in this axis alone.
    fn of_points(&mut self, plan: &Plan, points: [usize; 2], of: [&Configuration; 2]) {
        let [one, other] = of;
        let keys: BTreeSet<&String> = one.values.keys().chain(other.values.keys()).collect();
        let text = |of: &Configuration, key: &String| of.values.get(key).map(canonical);
        let changed = keys.into_iter().filter(|&key| text(one, key) != text(other, key));
        let changed: Vec<&str> = changed.map(String::as_str).collect();
        let value = |key: &str, point: usize| {
            plan.column(key).map_or_else(String::new, |at| text_of(&plan.points[point].values[at]))
        };
        let between = |key: &str| format!("from `{}` to `{}`", value(key, points[0]), value(key, points[1]));
        self.compared += 1;
        if changed.is_empty() {
            self.idle.push(points);
            return;
        }
        // What changes by itself because of a name, key by key of the axis.
        let other_program = self.has("workload");
        let other_scheme = changed.contains(&"scheme");
        let mut explained: BTreeSet<&str> = BTreeSet::new();
        let is_of_machine =
            |key: &&&str| key.contains('.') && !["params", "inputs"].contains(&table(key)) && !is_of_a_scheme(key);
        for (at, word) in self.axis.keys.clone().iter().enumerate() {
            let of_word: Vec<&str> = match word.as_str() {
                "machine" => changed.iter().filter(is_of_machine).copied().collect(),
                "scheme" => changed.iter().filter(|key| is_of_a_scheme(key)).copied().collect(),
                "profile" => changed.iter().filter(|key| table(key) == "params").copied().collect(),
                _ => continue,
            };
            explained.extend(&of_word);
            // Schemes have tables of their own; programs have parameters of their own.
            let of_others = word == "scheme" && other_scheme || word == "profile" && other_program;
            let of_word: Vec<&str> = of_word.into_iter().filter(|key| !self.has(key)).collect();
            if of_word.len() > 1 && !of_others {
                let count = of_word.len();
                let mut message = format!("{} {count} parameters change: {}", between(word), listed(of_word));
                if word == "machine" || word == "scheme" {
                    message += "; `durawarp config diff` shows them";
                }
                self.push(at, message);
            }
            if word == "scheme" && changed.contains(&UNDO_LOGS) && !other_program {
                let with = if one.values[UNDO_LOGS] == Value::Bool(true) { points[0] } else { points[1] };
                let message = format!(
                    "{} the program changes too: under `{}` its kernels keep undo logs, with stores, fences and buffers \
                     of their own",
                    between(word),
                    value(word, with)
                );
                self.push(at, message);
            }
        }
        // Keys that change because of a name that the axis changes are what the user asked for: no warning.
        let by_name = |key: &str| {
            let of_program = table(key) == "params"
                || ["instrument", "loop_log", "reload", "flag_barrier", "profile"].contains(&key);
            explained.contains(key)
                || other_program && (of_program || key == UNDO_LOGS)
                || self.has("scheme") && [UNDO_LOGS, "flag_barrier"].contains(&key)
                || self.has("instrument") && [UNDO_LOGS, "flag_barrier"].contains(&key)
        };
        let more: Vec<&str> = changed.iter().copied().filter(|key| !self.has(key) && !by_name(key)).collect();
        if !more.is_empty() {
            let axis = listed(self.axis.keys.iter().map(String::as_str));
            self.push(0, format!("with {axis} {} changes too, in `{}`", listed(more), plan.points[points[1]].label));
        }
        self.of_derived(of);
    }

    /// Of points that resolve to the same.
    fn of_idle(&mut self, plan: &Plan) {
        let Some(&points) = self.idle.first() else { return };
        let [one, other] = points.map(|point| &plan.points[point].label);
        let keys = listed(self.axis.keys.iter().map(String::as_str));
        let (idle, compared) = (self.idle.len(), self.compared);
        let message = format!(
            "{keys} changes nothing that a run depends on in {idle} of {compared} pairs of points that were compared, as \
             `{one}` and `{other}`"
        );
        self.push(0, message);
    }

    /// Of quantities that follow from a key of the axis, but are not what one changes it for.
    fn of_derived(&mut self, [one, other]: [&Configuration; 2]) {
        if self.has("machine") {
            return;
        }
        let keys = &self.axis.keys;
        let is_meant = |plainly_of: &[&str]| plainly_of.iter().any(|key| keys.iter().any(|own| own == key));
        // Machines of two kinds have other quantities.
        let pairs = one.derived.iter().zip(&other.derived).filter(|(one, other)| one.name == other.name);
        let names: Vec<&str> = pairs
            .filter(|(one, other)| (one.value - other.value).abs() > 1e-9 * one.value.abs())
            .filter(|(one, _)| !is_meant(one.plainly_of))
            .map(|(one, _)| one.name)
            .collect();
        if !names.is_empty() {
            let message =
                format!("with {} changes what follows from it: {}", listed(keys.iter().map(String::as_str)), {
                    names.join(", ")
                });
            self.push(0, message);
        }
    }
}

/// The word before the first dot.
fn table(key: &str) -> &str {
    key.split_once('.').map_or("", |(table, _)| table)
}

/// Of points that have nothing to be related to.
fn of_baseline(plan: &Plan) -> Option<Diagnostic> {
    let baseline = plan.file.baseline.as_ref()?;
    let without: Vec<usize> =
        plan.baselines().iter().enumerate().filter(|(_, base)| base.is_none()).map(|(at, _)| at).collect();
    let first = *without.first()?;
    let message = format!(
        "{} of {} points have no point of the baseline to be related to, as `{}`: `relative` is empty there",
        without.len(),
        plan.points.len(),
        plan.points[first].label
    );
    Some(baseline.place.fault(message))
}

/// Of points under LightWSP whose regions may be larger than the gated queue of a controller: each size once,
/// at the axis that sets it.
fn of_regions(plan: &Plan) -> Result<Vec<Diagnostic>, Diagnostics> {
    // Contents have no part in the size; programs only where CTAs own regions.
    let of_program = |key: &str| ["workload", "profile"].contains(&key) || key.starts_with("params.");
    let is_content = |key: &str| key == "seed" || key.starts_with("inputs.");
    let text = |point: usize, kept: &dyn Fn(&str) -> bool| {
        let of = plan.columns.iter().zip(&plan.points[point].values).filter(|(column, _)| kept(column));
        of.map(|(_, value)| canonical(value)).collect::<Vec<_>>().join(" ")
    };
    let mut owners: BTreeMap<String, Option<bool>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut points: BTreeMap<String, usize> = BTreeMap::new();
    for point in 0..plan.points.len() {
        let configured = text(point, &|key| !is_content(key) && !of_program(key));
        let of_ctas = match owners.get(&configured) {
            Some(Some(true)) => true,
            Some(_) => continue,
            None => {
                let rule = plan.batch.recipe(point).load_own_parts()?.1.built.regions();
                owners.insert(configured, rule.map(|rule| rule.of_ctas));
                let Some(rule) = rule else { continue };
                rule.of_ctas
            }
        };
        if (!of_ctas || seen.insert(text(point, &|key| !is_content(key))))
            && let Some(why) = overflow(plan, point, of_ctas)?
        {
            points.entry(why).or_insert(point);
        }
    }
    let sizes = ["light_wsp.threshold_stores", "light_wsp.wpq_entries", "light_wsp.entry_bytes", "light_wsp.owner"];
    let mut keys = plan.file.axes.iter().flat_map(|axis| axis.keys.iter().zip(&axis.places));
    let place = keys.find(|(key, _)| sizes.contains(&key.as_str())).map_or(&plan.file.place, |(_, at)| at);
    let mut found: Vec<(usize, String)> = points.into_iter().map(|(why, point)| (point, why)).collect();
    found.sort();
    let warning = |(point, why): (usize, String)| place.fault(format!("under `{}` {why}", plan.points[point].label));
    Ok(found.into_iter().map(warning).collect())
}

/// Why a region of this point may not fit into a queue.
fn overflow(plan: &Plan, point: usize, of_ctas: bool) -> Result<Option<String>, Diagnostics> {
    let values = plan.configuration(point)?.values;
    let number = |key: &str| values.get(key).and_then(Value::as_u64);
    let (Some(threshold_stores), Some(entry_bytes), Some(wpq_entries), Some(lanes)) = (
        number("light_wsp.threshold_stores"),
        number("light_wsp.entry_bytes"),
        number("light_wsp.wpq_entries"),
        number("sm.warp_size"),
    ) else {
        return Ok(None);
    };
    let threads = if of_ctas { plan.batch.workload(point)?.largest_cta().unwrap_or(lanes) } else { lanes };
    let warps = threads.div_ceil(lanes);
    Ok(RegionBound { threshold_stores, warps, lanes, entry_bytes, wpq_entries }.overflow())
}
