//! What a sweep file wants drawn: a kind of figure, which key is along it, which are its series, what it
//! shows.
//!
//! ```toml
//! [[figure]]
//! kind = "bars"                   # KINDS
//! x = "workload"                  # a key that varies, or a word
//! y = "cycles"                    # a metric
//! group = "scheme"                # the series: a key, or several
//! normalise = true                # over the sweep's baseline
//! where = { seed = 0 }            # only these points
//! each = "l2.slice_kb"            # a figure a value
//! mean = "workload"               # geometric means over its values
//! ```
//! Invariant: a key has one part in a figure, and is one that points are told by. That no two points fall on
//! one place is found when there are points, see [`grid`](super::super::grid).

use super::axis::Axis;
use super::keys;
use super::selection::{self, Selection, Setting};
use crate::sweep::metrics::{self, Better, Metric};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, Place, TomlTable, quoted};
use durawarp_workload::Value as Number;

/// A figure as it is asked for.
#[derive(Debug, Clone)]
pub struct FigureSpec {
    /// What its files are called, without an ending.
    pub name: String,
    /// What kind it is.
    pub kind: Kind,
    /// The key along it; `None` for a distribution, whose axis is the latency.
    pub x: Option<String>,
    /// The keys whose values tell its series apart: bars of a group, lines, rows of a heat map.
    pub series: Vec<String>,
    /// What it shows.
    pub shown: Shown,
    /// Whether values are over those of the sweep's baseline.
    pub normalise: bool,
    /// Which points it is of; all without it.
    pub only: Option<Selection>,
    /// Keys with a figure for each of their values.
    pub each: Vec<String>,
    /// Keys over whose values geometric means are taken.
    pub mean: Vec<String>,
    pub title: Option<String>,
    /// What stands below it instead of the key.
    pub x_label: Option<String>,
    /// What stands beside it instead of the metric.
    pub y_label: Option<String>,
    /// Which values are good, if not as the metric says.
    pub better: Option<Better>,
    /// How x becomes a length, if not as its values suggest.
    pub x_scale: Option<Scale>,
    /// How values become lengths.
    pub y_scale: Option<Scale>,
    /// Over how many columns of a page, if not as many as it needs.
    pub columns: Option<u8>,
    /// Height at the size of print, in points.
    pub height_pt: Option<f64>,
    pub(in super::super) place: Place,
}

/// A kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bars in groups; over a baseline, and by workload, with geometric means last.
    Bars,
    /// A metric that follows a number.
    Lines,
    /// A metric by two keys.
    Heat,
    /// What a whole is made of.
    Stacked,
    /// Cumulative distributions of latencies.
    Cdf,
    /// Speed-up over the least x, beside the ideal.
    Scaling,
}

/// Kinds as they are written.
pub(crate) const KINDS: [(&str, Kind); 6] = [
    ("bars", Kind::Bars),
    ("lines", Kind::Lines),
    ("heat", Kind::Heat),
    ("stacked", Kind::Stacked),
    ("cdf", Kind::Cdf),
    ("scaling", Kind::Scaling),
];

/// What a figure shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    Metric(Metric),
    /// What resident warps did: the accounts of their cycles.
    Stalls,
    /// Bytes that memory devices read and wrote.
    Traffic,
    /// Where persists waited: mean time in each stage.
    Persists,
    /// Metrics of one unit, on top of each other.
    Metrics(Vec<Metric>),
    /// How long something took.
    Latency(Latency),
}

/// What latencies are kept of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// Persists, from issue to acknowledgement.
    Persists,
    /// Warps that waited for theirs.
    Fences,
    /// Ends of CTAs and kernels that waited for the write-back of the L2.
    Boundaries,
}

/// How values become lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal factors are; powers of 2 are written.
    Log2,
    /// Equal factors are; powers of 10 are written.
    Log10,
}

/// What stacks can be made of, besides metrics.
const PARTS: [(&str, Shown); 3] =
    [("stalls", Shown::Stalls), ("traffic", Shown::Traffic), ("persists", Shown::Persists)];
const LATENCIES: [(&str, Latency); 3] =
    [("persists", Latency::Persists), ("fences", Latency::Fences), ("boundaries", Latency::Boundaries)];
const SCALES: [(&str, Scale); 3] = [("linear", Scale::Linear), ("log2", Scale::Log2), ("log10", Scale::Log10)];

/// Heights that paper has room for, in points.
const HEIGHTS_PT: std::ops::RangeInclusive<f64> = 60.0..=700.0;

impl Kind {
    /// As it is written.
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| *word)
    }

    /// Whether its x are numbers.
    pub(crate) fn needs_numbers(self) -> bool {
        matches!(self, Kind::Lines | Kind::Scaling)
    }
}

/// What figures are checked against.
pub(super) struct Known<'a> {
    pub(super) sweep: &'a str,
    pub(super) base: &'a std::collections::BTreeMap<String, Setting>,
    pub(super) axes: &'a [Axis],
    pub(super) baseline: bool,
}

/// All figures, each with a name of its own.
pub(super) fn figures(root: TomlTable<'_>, known: &Known<'_>, faults: &mut Diagnostics) -> Vec<FigureSpec> {
    let mut figures: Vec<FigureSpec> = Vec::new();
    for table in root.tables("figure") {
        let Some(mut figure) = figure(table, known, faults) else { continue };
        let named = table.get("name");
        let taken = |name: &str| figures.iter().any(|other| other.name == name);
        match named {
            Some(item) if taken(&figure.name) => {
                faults.push(item.place().fault(format!("two figures are called `{}`", figure.name)));
            }
            None => {
                let stem = figure.name.clone();
                let free = (2..).map(|nth| format!("{stem}-{nth}")).find(|name| !taken(name));
                if taken(&stem) {
                    figure.name = free.unwrap_or(stem);
                }
            }
            Some(_) => {}
        }
        figures.push(figure);
    }
    figures
}

/// One figure; `None` where its kind is not known, which the schema tells.
fn figure(table: TomlTable<'_>, known: &Known<'_>, faults: &mut Diagnostics) -> Option<FigureSpec> {
    let kind = table.text("kind").and_then(|(word, _)| word_of(&KINDS, word))?;
    let mut keys = Keys { known, faults, used: Vec::new() };
    let x = keys.of(table, "x").pop();
    // A heat map has no groups: what it has along its other side are its series.
    let series = keys.of(table, if kind == Kind::Heat { "y" } else { "group" });
    let (each, mean) = (keys.of(table, "each"), keys.of(table, "mean"));
    let shown = shown(kind, table, faults);
    let only = table.table("where").map(|only| selection::selection(only, known.base, known.axes, faults));
    let normalise = table.get("normalise").and_then(Item::boolean).unwrap_or(false);
    if let Some(item) = table.get("normalise")
        && normalise
        && !known.baseline
    {
        let fault = item.place().fault("`normalise` is over the sweep's baseline, and this sweep has none");
        faults.push(fault.with_help("say for example `baseline = { scheme = \"base\" }` at the top of the file"));
    }
    // A speed-up divides one way or the other: a metric that does not say which of its values are good needs
    // a word from the file.
    if kind == Kind::Scaling
        && table.get("better").is_none()
        && let (Some(Shown::Metric(metric)), Some((_, place))) = (&shown, table.text("y"))
        && metric.better().is_none()
    {
        let fault = place.fault(format!("a speed-up of `{}` is not known: which values of it are good?", metric.name));
        faults.push(fault.with_help("say `better = \"lower\"` or `better = \"higher\"`"));
    }
    let text = |key: &str| table.text(key).map(|(text, _)| text.to_owned());
    let scale = |key: &str| table.text(key).and_then(|(word, _)| word_of(&SCALES, word));
    Some(FigureSpec {
        name: name(kind, table, known, faults),
        kind,
        x,
        series,
        shown: shown?,
        normalise,
        only,
        each,
        mean,
        title: text("title"),
        x_label: text("x_label"),
        y_label: text("y_label"),
        better: table.text("better").and_then(|(word, _)| word.parse().ok()),
        x_scale: scale("x_scale"),
        y_scale: scale("y_scale"),
        columns: columns(table, faults),
        height_pt: height(table, faults),
        place: table.place(),
    })
}

fn word_of<T: Clone>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(known, _)| *known == word).map(|(_, what)| what.clone())
}

/// Keys of a figure, none of them twice.
struct Keys<'a, 'f> {
    known: &'a Known<'a>,
    faults: &'f mut Diagnostics,
    used: Vec<(String, &'static str)>,
}

impl Keys<'_, '_> {
    /// The keys that `part` names: one, or a list.
    fn of(&mut self, table: TomlTable<'_>, part: &'static str) -> Vec<String> {
        let Some(item) = table.get(part) else { return Vec::new() };
        let items = item.list().unwrap_or_else(|| vec![item]);
        items.into_iter().filter_map(|item| self.key(item, part)).collect()
    }

    fn key(&mut self, item: Item<'_>, part: &'static str) -> Option<String> {
        let key = item.text()?;
        let names = || self.known.axes.iter().flat_map(|axis| &axis.keys).map(String::as_str).chain(keys::WORDS);
        if !names().any(|name| name == key) {
            let mut all: Vec<&str> = names().collect();
            all.sort_unstable();
            all.dedup();
            let fault = item.place().fault(format!("`{key}` is no axis of this sweep"));
            let help = || Some(format!("it has {}", quoted(&all)));
            self.faults.push(fault.with_nearest_or(key, all.iter().copied(), help));
            return None;
        }
        if let Some((_, other)) = self.used.iter().find(|(used, _)| used == key) {
            self.faults.push(item.place().fault(format!("`{key}` is `{other}` already")));
            return None;
        }
        self.used.push((key.to_owned(), part));
        Some(key.to_owned())
    }
}

/// What a figure shows: metrics, or a word for several of them.
fn shown(kind: Kind, table: TomlTable<'_>, faults: &mut Diagnostics) -> Option<Shown> {
    let item = table.get(if kind == Kind::Heat { "value" } else { "y" })?;
    match kind {
        Kind::Cdf => word(item, &LATENCIES, faults).map(Shown::Latency),
        Kind::Stacked => match item.list() {
            None => word(item, &PARTS, faults),
            Some(items) => stack(item, &items, faults),
        },
        Kind::Bars | Kind::Lines | Kind::Heat | Kind::Scaling => metric(item, faults).map(Shown::Metric),
    }
}

fn word<T: Clone>(item: Item<'_>, words: &[(&'static str, T)], faults: &mut Diagnostics) -> Option<T> {
    let found = item.text()?;
    let known = word_of(words, found);
    if known.is_none() {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let expected = quoted(&names);
        let fault = item.place().fault(format!("this kind shows one of {expected}, found `{found}`"));
        faults.push(fault.with_nearest_or(found, names, || None));
    }
    known
}

fn metric(item: Item<'_>, faults: &mut Diagnostics) -> Option<Metric> {
    let name = item.text()?;
    let found = metrics::find(name);
    if found.is_none() {
        faults.push(metrics::unknown(item.place().fault(format!("there is no metric `{name}`")), name));
    }
    found
}

/// Metrics that can stand on top of each other.
fn stack(whole: Item<'_>, items: &[Item<'_>], faults: &mut Diagnostics) -> Option<Shown> {
    let mut parts: Vec<Metric> = Vec::new();
    for item in items {
        let Some(metric) = metric(*item, faults) else { continue };
        if let Some(first) = parts.first()
            && first.unit != metric.unit
        {
            let message = format!(
                "`{}` is in {}, `{}` in {}: they do not add up",
                metric.name, metric.unit, first.name, first.unit
            );
            faults.push(item.place().fault(message));
        } else if parts.iter().any(|other| other.name == metric.name) {
            faults.push(item.place().fault(format!("metric `{}` is here twice", metric.name)));
        } else {
            parts.push(metric);
        }
    }
    if items.is_empty() {
        faults.push(whole.place().fault("a stack of nothing: name metrics"));
    }
    (parts.len() == items.len() && !parts.is_empty()).then_some(Shown::Metrics(parts))
}

fn name(kind: Kind, table: TomlTable<'_>, known: &Known<'_>, faults: &mut Diagnostics) -> String {
    let Some((name, place)) = table.text("name") else { return format!("{}-{}", known.sweep, kind.word()) };
    let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        faults.push(place.fault("a figure's name is that of its files: letters, digits, `.`, `_`, `-`"));
    }
    name.to_owned()
}

fn columns(table: TomlTable<'_>, faults: &mut Diagnostics) -> Option<u8> {
    let item = table.get("columns")?;
    match item.number()? {
        Number::Int(1) => Some(1),
        Number::Int(2) => Some(2),
        _ => {
            faults.push(item.place().fault("a figure stands in 1 column of a page or over 2"));
            None
        }
    }
}

fn height(table: TomlTable<'_>, faults: &mut Diagnostics) -> Option<f64> {
    let item = table.get("height_pt")?;
    let height = match item.number()? {
        Number::Int(whole) => whole as f64,
        Number::Float(height) => height,
    };
    if !HEIGHTS_PT.contains(&height) {
        let (least, most) = (HEIGHTS_PT.start(), HEIGHTS_PT.end());
        faults.push(item.place().fault(format!("`height_pt` expects {least} to {most} points, found {height}")));
    }
    Some(height)
}
