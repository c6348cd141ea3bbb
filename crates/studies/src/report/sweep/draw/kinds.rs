//! The kinds of figures, each filled from the values of a sketch. `None` where no place has a value: a figure
//! of gaps alone says nothing.

use super::Sketch;
use crate::report::sweep::label;
use crate::report::sweep::reading::Datum;
use durawarp_plot::{
    Axis, Bar, BarSeries, Baseline, Cdf, CdfSeries, Figure, GroupedBars, HeatMap, LinePoint, LineSeries, Lines, Mean,
    Scale, Sheet, Stack, StackGroup, StackedBars,
};
use durawarp_simulation::sweep::file::figure::{self, Kind, Latency, Shown};
use durawarp_simulation::sweep::metrics::Better;

/// Over the middle of all bars: one that is longer makes the others illegible.
const FAR: f64 = 5.0;

pub(super) fn figure(sketch: &mut Sketch<'_>) -> Option<Figure> {
    match sketch.spec.kind {
        Kind::Bars => bars(sketch).map(Figure::from),
        Kind::Lines => lines(sketch).map(Figure::from),
        Kind::Heat => heat(sketch).map(Figure::from),
        Kind::Stacked => stacked(sketch).map(Figure::from),
        Kind::Cdf => cdf(sketch).map(Figure::from),
        Kind::Scaling => scaling(sketch).map(Figure::from),
    }
}

/// The size is that of [`paper`](super::paper).
fn sheet(sketch: &Sketch<'_>) -> Sheet {
    Sheet { better: sketch.better(), origin: sketch.origin(), ..Sheet::one_column() }
}

fn y_axis(sketch: &Sketch<'_>) -> Axis {
    let (name, unit) = sketch.y_label();
    let scale = sketch.spec.y_scale.map_or(Scale::Linear, scale);
    Axis::new(&name, &unit).scale(scale)
}

fn scale(asked: figure::Scale) -> Scale {
    match asked {
        figure::Scale::Linear => Scale::Linear,
        figure::Scale::Log2 => Scale::Log2,
        figure::Scale::Log10 => Scale::Log10,
    }
}

fn some(values: &[Vec<Option<f64>>]) -> Option<()> {
    values.iter().flatten().any(Option::is_some).then_some(())
}

fn bars(sketch: &mut Sketch<'_>) -> Option<GroupedBars> {
    let values = sketch.values();
    some(&values)?;
    let all_base = (0..values.len()).all(|at| sketch.is_baseline(at));
    // The baseline is the line at 1.
    let drawn: Vec<usize> = (0..values.len()).filter(|at| all_base || !sketch.is_baseline(*at)).collect();
    let bar = |value: &Option<f64>| Bar { value: *value, ..Bar::default() };
    let series: Vec<BarSeries> = drawn
        .iter()
        .map(|at| BarSeries::new(&sketch.series_name(*at), values[*at].iter().map(bar).collect()))
        .collect();
    let normalised = sketch.spec.normalise;
    let baseline = if normalised { Baseline::Relative(label::baseline(sketch.showing.plan)) } else { Baseline::None };
    Some(GroupedBars {
        sheet: sheet(sketch),
        axis: y_axis(sketch),
        groups: (0..sketch.grid.x.len()).map(|at| sketch.x_name(at)).collect(),
        groups_name: sketch.x_label(),
        cut_off: if normalised {
            cut_off(series.iter().flat_map(|series| &series.bars).filter_map(|bar| bar.value))
        } else {
            None
        },
        series,
        baseline,
        // Means over workloads say something; over sizes of a cache they do not.
        mean: match sketch.spec.x.as_deref() {
            Some("workload") if normalised => Mean::Geometric,
            _ => Mean::None,
        },
    })
}

/// Where bars are broken, if some are so long that the others would be illegible: above those that are not.
fn cut_off(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let far = values.get(values.len() / 2).copied()? * FAR;
    let near = values.iter().copied().filter(|value| *value <= far).fold(1.0, f64::max);
    (values.last().copied()? > far).then(|| (near * 2.2).ceil() / 2.0)
}

/// How numbers become lengths: those that grow by factors are spread by factors.
fn x_scale(sketch: &Sketch<'_>, xs: &[f64]) -> Scale {
    if let Some(asked) = sketch.spec.x_scale {
        return scale(asked);
    }
    let mut xs = xs.to_vec();
    xs.sort_by(f64::total_cmp);
    let above_0 = xs.first().is_some_and(|least| *least > 0.0);
    let steps: Vec<f64> = xs.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let is_power = |base: f64, step: &f64| (step.log(base) - step.log(base).round()).abs() < 1e-9;
    if !above_0 || steps.len() < 2 {
        Scale::Linear
    } else if steps.iter().all(|step| is_power(10.0, step)) {
        Scale::Log10
    } else if steps.iter().all(|step| is_power(2.0, step)) {
        Scale::Log2
    } else {
        Scale::Linear
    }
}

fn numbers(sketch: &Sketch<'_>) -> Vec<f64> {
    // The grid has seen to it that they are numbers.
    sketch.grid.x.iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

fn line(name: &str, xs: &[f64], values: &[Option<f64>]) -> LineSeries {
    let point = |(x, y): (&f64, &Option<f64>)| LinePoint { x: *x, y: *y, error: None };
    LineSeries::new(name, xs.iter().zip(values).map(point).collect())
}

fn lines(sketch: &mut Sketch<'_>) -> Option<Lines> {
    let values = sketch.values();
    some(&values)?;
    let xs = numbers(sketch);
    let x = Axis::new(&sketch.x_label(), "").scale(x_scale(sketch, &xs));
    let series = values.iter().enumerate().map(|(at, values)| line(&sketch.series_name(at), &xs, values)).collect();
    Some(Lines { sheet: sheet(sketch), x, y: y_axis(sketch), series, ideal: None })
}

/// Speed-up over the least x, beside a line that grows as x does.
fn scaling(sketch: &mut Sketch<'_>) -> Option<Lines> {
    let values = sketch.values();
    let xs = numbers(sketch);
    let (first, least) = xs.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let metric = match &sketch.spec.shown {
        Shown::Metric(metric) => metric.better(),
        _ => None,
    };
    let higher = sketch.spec.better.or(metric) == Some(Better::Higher);
    // Each series is relative to its own value at the least x, so that all begin at 1.
    let speed_up = |row: &Vec<Option<f64>>| {
        let of = |value: &Option<f64>| {
            let (value, first) = ((*value)?, row[first]?);
            let speed_up = if higher { value / first } else { first / value };
            speed_up.is_finite().then_some(speed_up)
        };
        row.iter().map(of).collect::<Vec<_>>()
    };
    let values: Vec<Vec<Option<f64>>> = values.iter().map(speed_up).collect();
    some(&values)?;
    let scale = x_scale(sketch, &xs);
    let key = sketch.spec.x.clone().unwrap_or_default();
    let y = sketch
        .spec
        .y_label
        .clone()
        .unwrap_or_else(|| format!("speed-up over {}", label::told(&key, &sketch.grid.x[first])));
    let series = values.iter().enumerate().map(|(at, values)| line(&sketch.series_name(at), &xs, values)).collect();
    let mut ideal: Vec<(f64, f64)> = xs.iter().map(|x| (*x, x / least)).collect();
    ideal.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(Lines {
        sheet: sheet(sketch),
        x: Axis::new(&sketch.x_label(), "").scale(scale),
        y: Axis::new(&y, "").scale(scale),
        series,
        ideal: Some(LineSeries::of("ideal", &ideal)),
    })
}

fn heat(sketch: &mut Sketch<'_>) -> Option<HeatMap> {
    let values = sketch.values();
    some(&values)?;
    // What rows are stands beside them.
    let row = |at: usize| match (&sketch.spec.series[..], &sketch.grid.series[at][..]) {
        ([_], [value]) if !value.is_null() => label::value(value),
        _ => sketch.series_name(at),
    };
    let rows_name = match &sketch.spec.series[..] {
        [key] => label::axis(key).to_owned(),
        _ => String::new(),
    };
    // All colours for the values that there are, unless they are nearly the same.
    let all = || values.iter().flatten().flatten().copied();
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let axis = y_axis(sketch);
    let axis = if least > 0.0 && least < most * 0.95 { axis.range(least, most) } else { axis };
    Some(HeatMap {
        sheet: sheet(sketch),
        axis,
        rows_name,
        rows: (0..values.len()).map(row).collect(),
        columns_name: sketch.x_label(),
        columns: (0..sketch.grid.x.len()).map(|at| sketch.x_name(at)).collect(),
        values,
    })
}

/// Parts of a bar by name.
type BarParts = Vec<(String, f64)>;

/// The parts of a place, over the baseline if asked for.
fn parts(sketch: &mut Sketch<'_>, series: usize, x: usize) -> Option<BarParts> {
    let point = sketch.only_point(series, x)?;
    let Datum::Parts(parts, whole) = sketch.datum(point)? else { return None };
    let shares = sketch.spec.shown == Shown::Stalls;
    let factor = match sketch.spec.normalise {
        true if shares => sketch.relative(point)?,
        // The whole may be 0, over a baseline that is not.
        true => {
            if whole == 0.0 {
                0.0
            } else {
                sketch.relative(point)? / whole
            }
        }
        false if shares => 100.0,
        false => 1.0,
    };
    Some(parts.into_iter().map(|(name, value)| (name, value * factor)).collect())
}

fn stacked(sketch: &mut Sketch<'_>) -> Option<StackedBars> {
    let (series, xs) = (sketch.grid.series.len(), sketch.grid.x.len());
    let all: Vec<Vec<Option<BarParts>>> =
        (0..xs).map(|x| (0..series).map(|at| parts(sketch, at, x)).collect()).collect();
    let mut names: Vec<String> = Vec::new();
    for (name, value) in all.iter().flatten().flatten().flatten() {
        // Parts that are nowhere would fill the legend.
        if *value > 0.0 && !names.contains(name) {
            names.push(name.clone());
        }
    }
    // In the order in which a point has them, not that of who has them first.
    let order: Vec<&String> = all.iter().flatten().flatten().next()?.iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| order.iter().position(|known| *known == name));
    if names.is_empty() {
        return None;
    }
    let bar = |(at, parts): (usize, &Option<BarParts>)| {
        let of = |name: &String| parts.as_ref()?.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        let name = if sketch.spec.series.is_empty() { String::new() } else { sketch.series_name(at) };
        Stack { name, values: names.iter().map(of).collect() }
    };
    let group = |(x, bars): (usize, &Vec<Option<BarParts>>)| StackGroup {
        name: sketch.x_name(x),
        bars: bars.iter().enumerate().map(bar).collect(),
    };
    let groups = all.iter().enumerate().map(group).collect();
    let mut axis = y_axis(sketch);
    if sketch.spec.shown == Shown::Stalls && !sketch.spec.normalise {
        axis = axis.range(0.0, 100.0);
    }
    Some(StackedBars { sheet: sheet(sketch), axis, parts: names, groups, groups_name: sketch.x_label() })
}

fn cdf(sketch: &mut Sketch<'_>) -> Option<Cdf> {
    let Shown::Latency(latency) = sketch.spec.shown else { return None };
    let (what, of) = match latency {
        Latency::Persists => ("latency of a persist", "persists"),
        Latency::Fences => ("wait of a warp for its persists", "waits"),
        Latency::Boundaries => ("wait of an end for the L2's write-back", "waits"),
    };
    let mut series = Vec::new();
    for at in 0..sketch.grid.series.len() {
        let steps = sketch.only_point(at, 0).and_then(|point| sketch.datum(point));
        let name = match sketch.spec.series.is_empty() {
            true => of.to_owned(),
            false => sketch.series_name(at),
        };
        let points = match steps {
            Some(Datum::Steps(steps)) => shares(&steps),
            _ => Vec::new(),
        };
        series.push(CdfSeries { name, points, left_out: 0 });
    }
    series.iter().any(|series| !series.points.is_empty()).then_some(())?;
    // Latencies of one decade have too few ticks on a logarithmic axis.
    let all = || series.iter().flat_map(|series| &series.points).map(|[value, _]| *value);
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let default = if most >= least * 10.0 { Scale::Log10 } else { Scale::Linear };
    let scale = sketch.spec.x_scale.map_or(default, scale);
    let name = sketch.spec.x_label.clone().unwrap_or_else(|| format!("{what}, less is better"));
    let x = Axis::new(&name, "ns").scale(scale);
    Some(Cdf { sheet: Sheet { better: None, ..sheet(sketch) }, x, of: of.to_owned(), series })
}

/// Counts as shares of all up to each.
fn shares(steps: &[(f64, u64)]) -> Vec<[f64; 2]> {
    let whole: u64 = steps.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    let share = |(value, count): &(f64, u64)| {
        below += count;
        [*value, below as f64 / whole.max(1) as f64]
    };
    steps.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_broken_only_where_one_dwarfs_the_others() {
        assert_eq!(cut_off([1.0, 1.2, 1.5, 2.0].into_iter()), None);
        assert_eq!(cut_off([1.0, 1.2, 1.3, 1.5, 17.0].into_iter()), Some(2.0));
        assert_eq!(cut_off(std::iter::empty()), None);
    }

    #[test]
    fn shares_end_at_1() {
        assert_eq!(shares(&[(5.0, 1), (7.0, 3)]), [[5.0, 0.25], [7.0, 1.0]]);
        assert!(shares(&[]).is_empty());
    }
}
