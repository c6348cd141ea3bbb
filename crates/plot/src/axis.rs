//! Axes: which values they span, where these lie on paper, and which of them are written beside.

use serde::{Deserialize, Serialize};

use super::sheet::{FigureError, finite};

/// How values become lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal factors are equally long; powers of 2 are written.
    Log2,
    /// Equal factors are equally long; powers of 10 are written.
    Log10,
}

/// An axis of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What is counted or measured.
    pub name: String,
    /// Unit; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// Scale.
    #[serde(default)]
    pub scale: Scale,
    /// Least and greatest value; by default what the data needs, from 0 where that wastes little.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
}

impl Axis {
    /// A linear axis.
    pub fn new(name: &str, unit: &str) -> Axis {
        Axis { name: name.to_owned(), unit: unit.to_owned(), scale: Scale::Linear, range: None }
    }

    /// With another scale.
    pub fn scale(self, scale: Scale) -> Axis {
        Axis { scale, ..self }
    }

    /// From one value to another.
    pub fn range(self, low: f64, high: f64) -> Axis {
        Axis { range: Some([low, high]), ..self }
    }

    /// Name and unit.
    pub(super) fn label(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// A value written beside an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    /// Empty for a short tick between two that are written.
    pub(super) label: String,
}

/// The values of an axis, whose ends are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Span {
    /// Values from `low` to `high`, for tests of ticks and for bars.
    pub(super) fn new(scale: Scale, low: f64, high: f64) -> Span {
        Span { scale, low, high }
    }

    /// The span of data, with ends that are ticks. Values that a logarithmic axis has no place for are not
    /// looked at.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Span {
        let log = axis.scale != Scale::Linear;
        if let Some([low, high]) = axis.range
            && low.is_finite()
            && high.is_finite()
            && low < high
            && !(log && low <= 0.0)
        {
            return Span { scale: axis.scale, low, high };
        }
        // No range was given that the axis can show: the ends follow from the data.
        let values = values.filter(|value| finite(Some(*value)).is_some() && !(log && *value <= 0.0));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            return if log { Span::new(axis.scale, 1.0, 10.0) } else { Span::new(axis.scale, 0.0, 1.0) };
        }
        match axis.scale {
            Scale::Linear => Span::linear(low, high),
            Scale::Log2 => {
                let log = |value: f64| libm::log2(value);
                let (below, above) = ((log(low) + 1e-9).floor(), (log(high) - 1e-9).ceil());
                let above = if above <= below { below + 1.0 } else { above };
                Span::new(axis.scale, libm::exp2(below), libm::exp2(above))
            }
            Scale::Log10 => {
                let ends = steps_1_2_5(low / 10.0, high * 10.0);
                let below = ends.iter().copied().rfind(|v| *v <= low * (1.0 + 1e-9)).unwrap_or(low);
                let above = ends.iter().copied().find(|v| *v >= high * (1.0 - 1e-9)).unwrap_or(high);
                if below < above {
                    Span::new(axis.scale, below, above)
                } else {
                    Span::new(axis.scale, below, below * 2.0)
                }
            }
        }
    }

    /// The span of data with as little beside it as can be: for places, where an empty edge says nothing.
    pub(super) fn tight(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Span {
        let loose = Span::of(axis, values.clone());
        let inside = values.filter(|value| (loose.low..=loose.high).contains(value));
        let (low, high) = inside.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let low = if axis.scale == Scale::Linear && loose.low == 0.0 { 0.0 } else { low };
        if axis.range.is_some() || axis.scale == Scale::Log10 || low >= high {
            return loose;
        }
        Span { low, high, ..loose }
    }

    fn linear(low: f64, high: f64) -> Span {
        // A span that could start at 0 with at most a third of it empty does so.
        let low = if low >= 0.0 && low < high * 0.75 || low == high && low > 0.0 { 0.0 } else { low };
        let high = if low == high { low + 1.0 } else { high };
        let step = step(low, high, 6);
        let up = |value: f64| (value / step - 1e-9).ceil() * step;
        let down = |value: f64| (value / step + 1e-9).floor() * step;
        Span::new(Scale::Linear, down(low), up(high))
    }

    /// Where a value lies: 0 at the low end, 1 at the high one. `None` for what has no place.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            _ if value <= 0.0 => return None,
            _ => libm::log(value / self.low) / libm::log(self.high / self.low),
        };
        share.is_finite().then_some(share)
    }

    /// Values to write, at most about `most`, from low to high.
    pub(super) fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2);
        match self.scale {
            Scale::Linear => {
                let step = step(self.low, self.high, most);
                let first = (self.low / step - 1e-9).ceil();
                let count = ((self.high - first * step) / step + 1e-9).floor().clamp(0.0, 100.0) as usize;
                let values = (0..=count).map(|i| (first + i as f64) * step);
                values.map(|value| Tick { value, label: written(value, step) }).collect()
            }
            Scale::Log2 => self.power_ticks(2.0, most),
            // Over two decades and less, 1, 2 and 5 are written too.
            Scale::Log10 if self.high / self.low > 101.0 => self.power_ticks(10.0, most),
            Scale::Log10 => {
                let values: Vec<f64> = steps_1_2_5(self.low, self.high);
                values.into_iter().map(|value| Tick { value, label: written(value, value) }).collect()
            }
        }
    }

    fn power_ticks(&self, base: f64, most: usize) -> Vec<Tick> {
        let log = |value: f64| libm::log(value) / libm::log(base);
        let first = (log(self.low) - 1e-9).ceil() as i32;
        let last = (log(self.high) + 1e-9).floor() as i32;
        let each = ((last - first + 1).max(1) as usize).div_ceil(most).max(1) as i32;
        let mut ticks = Vec::new();
        for power in first - 1..=last {
            let value = libm::pow(base, f64::from(power));
            if power >= first && power.rem_euclid(each) == 0 {
                ticks.push(Tick { value, label: written(value, value) });
            }
            if base == 10.0 && each == 1 {
                let between = (2..10).map(|i| value * f64::from(i));
                let inside = between.filter(|v| *v > self.low * (1.0 + 1e-9) && *v < self.high * (1.0 - 1e-9));
                ticks.extend(inside.map(|value| Tick { value, label: String::new() }));
            }
        }
        ticks
    }
}

/// The least of 1, 2, 2.5 and 5 times a power of 10 that takes at most `most` ticks.
fn step(low: f64, high: f64, most: usize) -> f64 {
    let rough = (high - low) / most.saturating_sub(1).max(1) as f64;
    let power = libm::pow(10.0, libm::log10(rough).floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(10.0 * power);
    if step.is_finite() && step > 0.0 { step } else { 1.0 }
}

/// 1, 2 and 5 times powers of 10 between two values.
fn steps_1_2_5(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (libm::log10(low).floor() as i32, libm::log10(high).ceil() as i32);
    let all = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * libm::pow(10.0, f64::from(power))));
    all.filter(|v| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9)).collect()
}

/// A value as an axis shows it: with the digits of its step, and with an exponent where it is very large or
/// small.
fn written(value: f64, step: f64) -> String {
    if value.abs() < step * 1e-6 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 || step.abs() < 1e-4 {
        let text = format!("{value:.2e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let text = format!("{value:.5}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A value beside data: three digits, not more than two of them behind the point.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 || (v > 0.0 && v < 1e-3) => format!("{value:.1e}"),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.095 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A logarithmic axis has no place for 0 and less.
pub(super) fn above_0_on(axis: &Axis, name: &str, value: Option<f64>) -> Result<(), FigureError> {
    match finite(value) {
        Some(value) if value <= 0.0 && axis.scale != Scale::Linear => {
            let what = format!("`{name}` on the axis `{}`", axis.name);
            Err(FigureError::Unfit { what, value, reason: "has no place on a logarithmic scale" })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(span: Span, most: usize) -> Vec<String> {
        span.ticks(most).into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_spans_end_at_ticks() {
        let axis = Axis::new("time", "s");
        let span = Span::of(&axis, [0.9, 17.2].into_iter());
        assert_eq!((span.low, span.high), (0.0, 20.0));
        assert_eq!(labels(span, 6), ["0", "5", "10", "15", "20"]);
        let near = Span::of(&axis, [0.95, 1.0].into_iter());
        assert!(near.low > 0.9 && labels(near, 6).contains(&"0.96".to_owned()), "{near:?} {:?}", labels(near, 6));
    }

    #[test]
    fn logarithmic_spans_write_powers() {
        let tens = Axis::new("latency", "ns").scale(Scale::Log10);
        let long = Span::of(&tens, [3.0, 4000.0].into_iter());
        assert_eq!((long.high, Span::of(&tens, [0.03, 0.3].into_iter())), (5000.0, Span::new(Scale::Log10, 0.02, 0.5)));
        assert_eq!((long.low, labels(long, 8)), (2.0, ["10", "100", "1000"].map(str::to_owned).to_vec()));
        let short = Span::of(&tens, [3.0, 40.0].into_iter());
        assert_eq!(labels(short, 8), ["2", "5", "10", "20", "50"]);
        let twos = Axis::new("threads", "").scale(Scale::Log2);
        assert_eq!(labels(Span::of(&twos, [1.0, 16.0].into_iter()), 8), ["1", "2", "4", "8", "16"]);
        assert_eq!(labels(Span::new(Scale::Log2, 0.5, 64.0), 5), ["1", "4", "16", "64"]);
        let tight = Span::tight(&twos, [1.0, 12.0].into_iter());
        assert_eq!((tight.high, labels(tight, 8).len()), (12.0, 4));
    }

    #[test]
    fn odd_data_still_gives_a_span() {
        for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
            let axis = Axis::new("x", "").scale(scale);
            for data in [
                &[][..],
                &[0.0],
                &[5.0],
                &[f64::NAN, -3.0],
                &[1e-300, 1e300],
                &[-2.0, -1.0],
                &[1e-320],
                &[1e308, 1.0],
                &[1e300, 1.0],
            ] {
                let span = Span::of(&axis, data.iter().copied());
                assert!(span.low < span.high && span.high.is_finite(), "{scale:?} {data:?} {span:?}");
                assert!(span.ticks(6).len() < 3000, "{scale:?} {data:?} {span:?}");
            }
        }
    }

    #[test]
    fn numbers_beside_data_are_short() {
        let cases =
            [(17.04, "17.0"), (4.123, "4.12"), (123.4, "123"), (0.0, "0.00"), (0.0123, "0.012"), (0.0005, "5.0e-4")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
