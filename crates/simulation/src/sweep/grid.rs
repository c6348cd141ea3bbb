//! Where the points of a sweep stand in a figure: which of them is at which x, in which series.
//!
//! A place has one point, or one for each value of the keys that `mean` goes over. A point to which a key
//! does not apply (a parameter of another scheme) stands at every value of it: what it came to holds for all
//! of them. Invariants: no place has two points that nothing tells apart: that is a fault of the figure,
//! which names the keys that would; values are in the order of their axis; every place is there, also those
//! without a point.

use serde_json::Value;

use super::file::figure::{FigureSpec, Kind};
use super::file::{SweepFile, same, text_of};
use super::plan::Planned;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::quoted;

/// The points of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// What the keys of `each` are in it.
    pub of: Vec<(String, Value)>,
    /// Values along it; one null for a figure without x.
    pub x: Vec<Value>,
    /// Values that tell its series apart, one a key; null where it does not apply.
    pub series: Vec<Vec<Value>>,
    /// A row of places each series, one an x.
    pub places: Vec<Vec<Place>>,
}

/// The points of one bar, marker or cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// One, or those that a mean is of.
    pub points: Vec<usize>,
    /// What it would need that the sweep has no point for: values of the keys of `mean`.
    pub lacking: Vec<Vec<Value>>,
}

/// The figures that a specification comes to: one, or one for each value of `each`.
///
/// # Errors
/// No points are left, x are not numbers where they have to be, or points fall on one place.
pub(super) fn of(
    file: &SweepFile,
    columns: &[String],
    points: &[Planned],
    spec: &FigureSpec,
) -> Result<Vec<Grid>, Diagnostic> {
    let making = Making { file, columns, points, spec };
    let points: Vec<usize> = (0..points.len()).filter(|at| making.is_wanted(*at)).collect();
    if points.is_empty() {
        return Err(spec.place.fault(format!("figure `{}` has no points: `where` leaves none", spec.name)));
    }
    let each = making.tuples(&points, &spec.each);
    // Where nothing has the keys of `each` there is one figure of all.
    each.into_iter().map(|of| making.grid(&points, of)).collect()
}

struct Making<'a> {
    file: &'a SweepFile,
    columns: &'a [String],
    points: &'a [Planned],
    spec: &'a FigureSpec,
}

impl Making<'_> {
    fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == key)
    }

    fn value(&self, point: usize, key: &str) -> &Value {
        self.column(key).map_or(&Value::Null, |column| &self.points[point].values[column])
    }

    fn is_wanted(&self, point: usize) -> bool {
        let only = self.spec.only.iter().flat_map(|only| &only.keys);
        only.filter(|(key, _)| self.column(key).is_some())
            .all(|(key, wanted)| wanted.iter().any(|wanted| fits(wanted, self.value(point, key))))
    }

    /// The combinations of values that points have, in the order of the axes. Those with nulls are left out
    /// where others say the same with values.
    fn tuples(&self, points: &[usize], keys: &[String]) -> Vec<Vec<Value>> {
        let all = self.distinct(points, keys);
        let covered = |tuple: &Vec<Value>| {
            let fuller = |other: &&Vec<Value>| *other != tuple && nulls(other) < nulls(tuple);
            all.iter().filter(fuller).any(|other| tuple.iter().zip(other).all(|(own, other)| fits(other, own)))
        };
        all.iter().filter(|tuple| !covered(tuple)).cloned().collect()
    }

    fn distinct(&self, points: &[usize], keys: &[String]) -> Vec<Vec<Value>> {
        let mut all: Vec<Vec<Value>> = Vec::new();
        for &point in points {
            let tuple: Vec<Value> = keys.iter().map(|key| self.value(point, key).clone()).collect();
            if !all.contains(&tuple) {
                all.push(tuple);
            }
        }
        all.sort_by_cached_key(|tuple| {
            tuple.iter().zip(keys).map(|(value, key)| rank(self.file, key, value)).collect::<Vec<_>>()
        });
        all
    }

    fn grid(&self, points: &[usize], of: Vec<Value>) -> Result<Grid, Diagnostic> {
        let spec = self.spec;
        let matches = |point: &usize, keys: &[String], tuple: &[Value]| {
            keys.iter().zip(tuple).all(|(key, value)| fits(value, self.value(*point, key)))
        };
        let points: Vec<usize> = points.iter().copied().filter(|point| matches(point, &spec.each, &of)).collect();
        let x_keys: Vec<String> = spec.x.iter().cloned().collect();
        let xs = self.tuples(&points, &x_keys);
        self.check_x(&xs)?;
        // Series are told apart by nulls too: a scheme without the parameter is one of its own.
        let series = self.distinct(&points, &spec.series);
        let of_means = self.tuples(&points, &spec.mean);
        let mut places = Vec::new();
        for tuple in &series {
            let own = |point: &usize| spec.series.iter().zip(tuple).all(|(key, v)| self.value(*point, key) == v);
            let of_series: Vec<usize> = points.iter().copied().filter(own).collect();
            let mut row = Vec::new();
            for x in &xs {
                let here: Vec<usize> = of_series.iter().copied().filter(|p| matches(p, &x_keys, x)).collect();
                let mut place = Place::default();
                for part in &of_means {
                    let found: Vec<usize> = here.iter().copied().filter(|p| matches(p, &spec.mean, part)).collect();
                    match found[..] {
                        [] => place.lacking.push(part.clone()),
                        [point] if place.points.contains(&point) => {}
                        [point] => place.points.push(point),
                        _ => return Err(self.crowded(&found, x, tuple)),
                    }
                }
                row.push(place);
            }
            places.push(row);
        }
        let x = xs.into_iter().map(|mut x| x.pop().unwrap_or_default()).collect();
        Ok(Grid { of: spec.each.iter().cloned().zip(of).collect(), x, series, places })
    }

    fn check_x(&self, xs: &[Vec<Value>]) -> Result<(), Diagnostic> {
        let spec = self.spec;
        let Some(key) = &spec.x else { return Ok(()) };
        let values = || xs.iter().flatten();
        if values().all(Value::is_null) {
            return Err(spec.place.fault(format!("figure `{}`: no point has a value of `{key}`", spec.name)));
        }
        if !spec.kind.needs_numbers() {
            return Ok(());
        }
        let word = spec.kind.word();
        if let Some(other) = values().find(|value| !value.is_number()) {
            let message = format!("`{word}` needs numbers along x, and `{key}` has `{}`", text_of(other));
            return Err(spec.place.fault(message).with_help("`bars` takes names"));
        }
        if spec.kind == Kind::Scaling
            && let Some(other) = values().find(|value| value.as_f64().is_some_and(|x| x <= 0.0))
        {
            return Err(spec.place.fault(format!("`{word}` needs numbers above 0 along x, and `{key}` has {other}")));
        }
        Ok(())
    }

    /// Points that fall on one place, with the keys in which they differ.
    fn crowded(&self, points: &[usize], x: &[Value], series: &[Value]) -> Diagnostic {
        let spec = self.spec;
        let first = &self.points[points[0]];
        let differs = |at: usize| {
            let other = |point: &usize| !same(&self.points[*point].values[at], &first.values[at]);
            points.iter().any(other)
        };
        // The message names only keys in which the points differ: with one of these in the figure they come
        // apart.
        let keys: Vec<&str> = (0..self.columns.len()).filter(|at| differs(*at)).map(|at| &*self.columns[at]).collect();
        let place: Vec<String> = spec
            .x
            .iter()
            .zip(x)
            .chain(spec.series.iter().zip(series))
            .map(|(key, value)| format!("{key} = {}", shown(value)))
            .collect();
        let at = if place.is_empty() { String::new() } else { format!(" at {}", place.join(", ")) };
        let (name, count) = (&spec.name, points.len());
        let message = format!("figure `{name}` has {count} points in one place{at}: they differ in {}", quoted(&keys));
        let (series_key, more) = match spec.kind {
            Kind::Heat => ("y", ""),
            Kind::Stacked | Kind::Cdf => ("group", ""),
            _ => ("group", ", `mean = [..]` for geometric means over its values"),
        };
        let help = format!(
            "`where = {{ .. }}` keeps one value of it, `each = [..]` makes a figure of each, `{series_key} = [..]` takes \
             it for the series{more}"
        );
        spec.place.fault(message).with_help(help)
    }
}

/// A value of a point fits a wanted one: it is the same, or does not apply.
fn fits(wanted: &Value, value: &Value) -> bool {
    value.is_null() || same(wanted, value)
}

fn nulls(tuple: &[Value]) -> usize {
    tuple.iter().filter(|value| value.is_null()).count()
}

/// Place of a value in its axis; what does not apply comes first.
fn rank(file: &SweepFile, key: &str, value: &Value) -> usize {
    if value.is_null() {
        return 0;
    }
    let of_axes = file.axes.iter().flat_map(|axis| axis.values_of(key));
    let mut known = of_axes.enumerate();
    known.find(|(_, known)| same(known, value)).map_or(usize::MAX, |(at, _)| at + 1)
}

fn shown(value: &Value) -> String {
    if value.is_null() { "none".to_owned() } else { text_of(value) }
}
