//! From points at their places to figures: which value each place has, and how large the paper is.
//!
//! A value over the baseline is divided by that of the point's own baseline; a mean is geometric, over all
//! the points that the place should have, or a gap. Paper is one column wide where everything fits, else two,
//! and grows in height before it gives up.

mod kinds;
mod paper;

use super::label;
use super::notes::{Notes, Why};
use super::reading::{Datum, PointState, Showing};
use crate::report::origin_of;
use durawarp_plot::{Better, Figure, geometric_mean};
use durawarp_simulation::sweep::file::figure::{FigureSpec, Kind, Shown};
use durawarp_simulation::sweep::grid::Grid;
use durawarp_simulation::sweep::grid::Place;
use durawarp_simulation::sweep::metrics;

/// Machines, profiles or versions that a figure names; more are counted.
const ORIGINS: usize = 3;

/// A figure of a sweep.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// What its files are called, without an ending.
    pub name: String,
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// The figure, or why there is none.
    pub figure: Result<Figure, String>,
    /// What is missing in it, and why.
    pub notes: Vec<String>,
}

/// A figure being made.
struct Sketch<'a> {
    showing: &'a Showing<'a>,
    spec: &'a FigureSpec,
    /// Number of the figure in the file.
    nth: usize,
    grid: &'a Grid,
    notes: Notes,
}

pub(super) fn all(showing: &Showing<'_>) -> Vec<Drawn> {
    let mut drawn: Vec<Drawn> = Vec::new();
    for (nth, (spec, grids)) in showing.plan.file.figures.iter().zip(&showing.plan.grids).enumerate() {
        for grid in grids {
            let mut figure = Sketch { showing, spec, nth, grid, notes: Notes::default() }.drawn();
            // Values that differ in marks that file names cannot have.
            let taken = |name: &str| drawn.iter().any(|other| other.name == name);
            if taken(&figure.name) {
                let free = (2..).map(|nth| format!("{}-{nth}", figure.name)).find(|name| !taken(name));
                figure.name = free.unwrap_or_default();
            }
            drawn.push(figure);
        }
    }
    drawn
}

impl Sketch<'_> {
    fn drawn(mut self) -> Drawn {
        let made = kinds::figure(&mut self);
        let name = self.grid.of.iter().fold(self.spec.name.clone(), |name, (_, value)| {
            let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
            format!("{name}-{}", label::value(value).chars().map(plain).collect::<String>())
        });
        let figure = match made {
            None => Err("none of its points has a value".to_owned()),
            Some(made) => paper::fitted(self.spec, &made, self.title().as_deref()),
        };
        Drawn { name, caption: self.caption(), figure, notes: self.notes.told() }
    }

    fn title(&self) -> Option<String> {
        let of: Vec<String> = self.grid.of.iter().map(|(key, value)| label::told(key, value)).collect();
        match (&self.spec.title, of.is_empty()) {
            (title, true) => title.clone(),
            (Some(title), false) => Some(format!("{title}, {}", of.join(" "))),
            (None, false) => Some(of.join(" ")),
        }
    }

    /// The sweep, and version, machines and profiles of the points that the figure shows.
    fn origin(&self) -> Option<String> {
        let plan = self.showing.plan;
        let points = || self.grid.places.iter().flatten().flat_map(|place| &place.points).copied();
        let all = |mut values: Vec<String>| {
            values.sort_unstable();
            values.dedup();
            if values.len() > ORIGINS { format!("{} of them", values.len()) } else { values.join(" and ") }
        };
        let column = |key: &str| {
            let at = plan.column(key)?;
            let values = points().map(|point| &plan.points[point].values[at]).filter(|value| !value.is_null());
            Some(all(values.map(label::value).collect())).filter(|values| !values.is_empty())
        };
        let versions = points().filter_map(|point| Some(self.showing.readings[point].facts.as_ref()?.version.clone()));
        let version = Some(all(versions.collect())).filter(|versions| !versions.is_empty())?;
        let machine = column("machine").unwrap_or_else(|| "as each workload says".to_owned());
        let origin = origin_of(&version, &machine, column("profile").as_deref());
        Some(format!("{origin}, sweep {}", plan.file.name))
    }

    fn better(&self) -> Option<Better> {
        let of_metric = match (&self.spec.shown, self.spec.kind) {
            (_, Kind::Scaling) => return Some(Better::Higher),
            (Shown::Metric(metric), _) => metric.better(),
            (Shown::Stalls, _) if !self.spec.normalise => None,
            (Shown::Metrics(all), _) => {
                all.iter().map(metrics::Metric::better).reduce(|a, b| a.filter(|_| a == b)).flatten()
            }
            _ => Some(metrics::Better::Lower),
        };
        self.spec.better.or(of_metric).map(|better| match better {
            metrics::Better::Lower => Better::Lower,
            metrics::Better::Higher => Better::Higher,
        })
    }

    /// Name and unit of the values.
    fn y_label(&self) -> (String, String) {
        let (name, unit) = label::shown(&self.spec.shown);
        let over = || label::baseline(self.showing.plan);
        match (&self.spec.y_label, self.spec.normalise, &self.spec.shown) {
            (Some(label), ..) => (label.clone(), String::new()),
            (None, true, Shown::Stalls) => {
                (format!("execution time over {}, by what warps did", over()), String::new())
            }
            (None, true, _) => (format!("{name} over {}", over()), String::new()),
            (None, false, _) => (name, unit),
        }
    }

    /// What the figure shows, for a reader who does not know the file.
    fn caption(&self) -> String {
        let (name, unit) = match (&self.spec.shown, self.spec.normalise) {
            (Shown::Stalls, true) => (
                format!("execution time over {}, divided by what warps did,", label::baseline(self.showing.plan)),
                String::new(),
            ),
            _ => self.y_label(),
        };
        let name =
            if self.spec.kind == Kind::Scaling || self.spec.kind == Kind::Cdf { name } else { capitalised(&name) };
        let title = self.title().map_or_else(String::new, |title| format!("{title}. "));
        let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
        let words = |keys: &[String]| keys.join(", ");
        // One sentence in the order in which a reader looks: what is shown, along x, for each series.
        let mut text = match self.spec.kind {
            Kind::Scaling => format!("{title}Speed-up of {name} by"),
            Kind::Cdf => format!("{title}Distribution of the {name}{unit}"),
            _ => format!("{title}{name}{unit} by"),
        };
        if let Some(x) = &self.spec.x {
            text += &format!(" {x}");
        }
        if !self.spec.series.is_empty() {
            let joined = if self.spec.kind == Kind::Heat { "and" } else { "for each" };
            text += &format!(" {joined} {}", words(&self.spec.series));
        }
        text.push('.');
        if !self.spec.mean.is_empty() {
            text += &format!(" Geometric means over {}.", words(&self.spec.mean));
        }
        let only = self.spec.only.iter().flat_map(|only| &only.keys);
        let only =
            only.map(|(key, values)| values.iter().map(|value| label::told(key, value)).collect::<Vec<_>>().join("|"));
        let only: Vec<String> = only.collect();
        if !only.is_empty() {
            text += &format!(" Only {}.", only.join(", "));
        }
        text
    }

    fn series_name(&self, at: usize) -> String {
        let name = label::series(&self.spec.series, &self.grid.series[at]);
        if name.is_empty() { self.y_label().0 } else { name }
    }

    fn x_name(&self, at: usize) -> String {
        label::value(&self.grid.x[at])
    }

    /// What stands below x.
    fn x_label(&self) -> String {
        let of_key = || self.spec.x.as_deref().map_or("", label::axis).to_owned();
        self.spec.x_label.clone().unwrap_or_else(of_key)
    }

    fn point_name(&self, point: usize) -> &str {
        &self.showing.plan.points[point].label
    }

    /// The figure's data of a point, or a note why it has none.
    fn datum(&mut self, point: usize) -> Option<Datum> {
        let name = self.point_name(point).to_owned();
        let reading = &self.showing.readings[point];
        let why = match (&reading.state, &reading.data[self.nth]) {
            (PointState::Good | PointState::Cut, Datum::None(why)) => Why::NoValue(name, why.clone()),
            (PointState::Good, datum) => {
                let datum = datum.clone();
                if let Some(percent) = reading.sampled {
                    self.notes.add(Why::Sampled(name, format!("cycles +-{percent:.1} %")));
                }
                return Some(datum);
            }
            (PointState::Cut, datum) => {
                let datum = datum.clone();
                if !self.spec.normalise {
                    self.notes.add(Why::Cut(name));
                }
                return Some(datum);
            }
            (PointState::Failed(why), _) => Why::Failed(name, why.clone()),
            (PointState::Missing, _) => Why::Missing(name),
        };
        self.notes.add(why);
        None
    }

    /// What a point's whole is over that of its baseline; 1 without a baseline.
    fn relative(&mut self, point: usize) -> Option<f64> {
        let whole = |datum: &Datum| match datum {
            Datum::Value(value) => Some(*value),
            Datum::Parts(_, whole) => Some(*whole),
            Datum::None(_) | Datum::Steps(_) => None,
        };
        let own = self.datum(point)?;
        let Some(baseline) = self.showing.baselines[point] else {
            self.notes.add(Why::NoBaseline(self.point_name(point).to_owned()));
            return None;
        };
        let base = self.datum(baseline)?;
        // What a limit cut is compared with nothing: its cycles are the limit's.
        for at in [point, baseline] {
            if self.showing.readings[at].state == PointState::Cut {
                self.notes.add(Why::NotWhole(self.point_name(at).to_owned()));
                return None;
            }
        }
        let (own, base) = (whole(&own)?, whole(&base)?);
        if base == 0.0 {
            self.notes.add(Why::NoValue(self.point_name(point).to_owned(), "has a baseline of 0".to_owned()));
            return None;
        }
        Some(own / base)
    }

    /// A point's value, as it is or over the baseline.
    fn value(&mut self, point: usize) -> Option<f64> {
        if self.spec.normalise {
            return self.relative(point);
        }
        match self.datum(point)? {
            Datum::Value(value) => Some(value),
            Datum::None(_) | Datum::Parts(..) | Datum::Steps(_) => None,
        }
    }

    /// The one point of a place of a figure without means.
    fn only_point(&mut self, series: usize, x: usize) -> Option<usize> {
        let place = self.place(series, x)?;
        place.points.first().copied()
    }

    /// A place that has all of its points.
    fn place(&mut self, series: usize, x: usize) -> Option<&Place> {
        let grid = self.grid;
        let place = &grid.places[series][x];
        for part in &place.lacking {
            let x = self.spec.x.iter().map(|key| label::told(key, &grid.x[x]));
            let own = label::series(&self.spec.series, &grid.series[series]);
            let part = label::series(&self.spec.mean, part);
            let told: Vec<String> = x.chain([own, part]).filter(|text| !text.is_empty()).collect();
            self.notes.add(Why::NotInSweep(told.join(" ")));
        }
        if !place.lacking.is_empty() {
            return None;
        }
        if let Some(key) = &self.spec.x {
            let column = self.showing.plan.column(key);
            let is_null =
                |point: &usize| column.is_some_and(|at| self.showing.plan.points[*point].values[at].is_null());
            if place.points.iter().any(is_null) {
                let own = label::series(&self.spec.series, &grid.series[series]);
                self.notes.add(Why::Everywhere(own, key.clone()));
            }
        }
        Some(place)
    }

    /// The value at a place; a geometric mean where it has several points.
    fn value_at(&mut self, series: usize, x: usize) -> Option<f64> {
        let points = self.place(series, x)?.points.clone();
        // Every point's reason is told, not only the first's.
        let values: Vec<Option<f64>> = points.iter().map(|point| self.value(*point)).collect();
        let values: Option<Vec<f64>> = values.into_iter().collect();
        match &values?[..] {
            [only] => Some(*only),
            several => {
                let mean = geometric_mean(several.iter().copied());
                if mean.is_none() {
                    let name = self.point_name(points[0]).to_owned();
                    let why = "and the others have no geometric mean: not all are above 0".to_owned();
                    self.notes.add(Why::NoValue(name, why));
                }
                mean
            }
        }
    }

    /// The values of all places: a row a series.
    fn values(&mut self) -> Vec<Vec<Option<f64>>> {
        let (series, xs) = (self.grid.series.len(), self.grid.x.len());
        (0..series).map(|at| (0..xs).map(|x| self.value_at(at, x)).collect()).collect()
    }

    /// Whether a series is the baseline: every value is over itself.
    fn is_baseline(&self, series: usize) -> bool {
        let mut points = self.grid.places[series].iter().flat_map(|place| &place.points).peekable();
        self.spec.normalise && points.peek().is_some() && points.all(|at| self.showing.baselines[*at] == Some(*at))
    }
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
