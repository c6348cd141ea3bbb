//! From what sampled units took to what the others took, with the spread of the sum: pure arithmetic.
//!
//! A unit (a wave of CTAs, a launch) has a size `x`, its warp instructions on the functional driver, which
//! is known of every unit, and a time `t`, which is known of the sampled ones. One of three models predicts
//! the others:
//!
//! | sizes | model | free parameters |
//! |---|---|---|
//! | all within a hundredth | mean of t | 1 |
//! | they differ, 5 or more units are sampled | t = a + b x, least squares | 2 |
//! | they differ, fewer are sampled | t = r x | 1 |
//!
//! Source: ratio and regression estimators of survey sampling (Cochran, *Sampling Techniques*, 1977,
//! chapters 6 and 7); the variance is that of predicting the sum of the units that were not sampled.
//! Invariant: nothing to predict is 0 with variance 0. Not modelled: that units close in time are alike,
//! which makes the interval wider than it need be for slow drifts. A bias that all sampled units share is
//! not in their spread: [`Predicted::half_width`] allows [`COMMON_BIAS`] of what is predicted for it.

/// A sampled unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// Warp instructions.
    pub(super) size: f64,
    pub(super) ticks: f64,
}

/// Sizes within this of each other count as one. Chosen.
const ALIKE: f64 = 0.01;

/// Sampled units from which on a line is fitted. Chosen.
const FITTED: usize = 5;

/// What is allowed for a bias that all samples share, as a share of what is predicted. Chosen: what was
/// measured of kernels that stream is 1 to 2 % (`benches/RESULTS.md`).
const COMMON_BIAS: f64 = 0.02;

/// A predicted sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Predicted {
    /// Its expected value.
    pub(super) ticks: f64,
    /// The part of that which is predicted and not simulated.
    pub(super) predicted_ticks: f64,
    /// Its variance, in ticks squared.
    pub(super) variance: f64,
    /// Degrees of freedom of that variance.
    pub(super) freedom: f64,
}

impl Predicted {
    /// The sum with another that is independent of it: variances add up, degrees of freedom after Welch and
    /// Satterthwaite.
    pub(super) fn plus(self, other: Predicted) -> Predicted {
        let variance = self.variance + other.variance;
        let share = |of: Predicted| if of.variance > 0.0 { of.variance.powi(2) / of.freedom.max(1.0) } else { 0.0 };
        let shares = share(self) + share(other);
        let freedom = if shares > 0.0 { variance.powi(2) / shares } else { 0.0 };
        let predicted_ticks = self.predicted_ticks + other.predicted_ticks;
        Predicted { ticks: self.ticks + other.ticks, predicted_ticks, variance, freedom }
    }

    /// Half of the 95 % confidence interval, in ticks.
    pub(super) fn half_width(self) -> f64 {
        let of_spread = if self.variance > 0.0 { student_975(self.freedom) * self.variance.sqrt() } else { 0.0 };
        of_spread + COMMON_BIAS * self.predicted_ticks
    }
}

/// A model of the time of a unit, from those that were sampled.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    at_zero: f64,
    slope: f64,
    /// Variance of a unit around the model.
    variance: f64,
    freedom: f64,
    sampled: f64,
    /// Units that a sampled one stands for: waves of a sample.
    span: f64,
    mean_size: f64,
    /// Of the sizes around their mean, or around 0 where the model goes through 0.
    squares: f64,
    form: ModelForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelForm {
    Mean,
    Ratio,
    Line,
}

impl Model {
    /// The model of these units; none without any. Each is the mean of `span` that follow each other, whose
    /// spread among themselves is not looked at.
    pub(super) fn of(units: &[Unit], span: u64) -> Option<Model> {
        let sampled = units.len() as f64;
        let sum = |of: fn(&Unit) -> f64| units.iter().map(of).sum::<f64>();
        let (sizes, ticks) = (sum(|unit| unit.size), sum(|unit| unit.ticks));
        if units.is_empty() {
            return None;
        }
        let (mean_size, mean_ticks) = (sizes / sampled, ticks / sampled);
        let alike = units.iter().all(|unit| (unit.size - mean_size).abs() <= ALIKE * mean_size);
        let around: f64 = units.iter().map(|unit| (unit.size - mean_size).powi(2)).sum();
        let (form, at_zero, slope, squares) = if alike || sizes <= 0.0 {
            (ModelForm::Mean, mean_ticks, 0.0, around)
        } else if units.len() >= FITTED {
            let both: f64 = units.iter().map(|unit| (unit.size - mean_size) * (unit.ticks - mean_ticks)).sum();
            let slope = both / around;
            (ModelForm::Line, mean_ticks - slope * mean_size, slope, around)
        } else {
            (ModelForm::Ratio, 0.0, ticks / sizes, sizes)
        };
        let freedom = if form == ModelForm::Line { sampled - 2.0 } else { sampled - 1.0 };
        let residual = |unit: &Unit| {
            let apart = unit.ticks - at_zero - slope * unit.size;
            // A ratio estimator takes the variance to grow with the size.
            if form == ModelForm::Ratio { apart.powi(2) / unit.size.max(1.0) } else { apart.powi(2) }
        };
        let variance = units.iter().map(residual).sum::<f64>() / freedom.max(1.0);
        let (freedom, span) = (freedom.max(1.0), span as f64);
        Some(Model { at_zero, slope, variance, freedom, sampled, span, mean_size, squares, form })
    }

    /// The time of a unit of this size, in ticks.
    pub(super) fn ticks(&self, size: f64) -> f64 {
        (self.at_zero + self.slope * size).max(0.0)
    }

    /// The time of units of these sizes together.
    pub(super) fn sum(&self, sizes: impl Iterator<Item = f64>) -> Predicted {
        let (mut count, mut all, mut ticks) = (0.0, 0.0, 0.0);
        for size in sizes {
            count += 1.0;
            all += size;
            ticks += self.ticks(size);
        }
        if count == 0.0 {
            return Predicted::default();
        }
        // The units' own spread, that of the model's parameters, and for a line that of its slope.
        let factor = match self.form {
            ModelForm::Mean => self.span * count + count * count / self.sampled,
            ModelForm::Ratio => self.span * all + all * all / self.squares,
            ModelForm::Line => {
                let apart = all - count * self.mean_size;
                self.span * count + count * count / self.sampled + apart * apart / self.squares
            }
        };
        Predicted { ticks, predicted_ticks: ticks, variance: self.variance * factor, freedom: self.freedom }
    }
}

/// The 97.5 % quantile of Student's t, so that 95 % lie within plus and minus it.
///
/// Source: the usual table for whole degrees of freedom up to 10; beyond, Cornish and Fisher's expansion,
/// exact to three digits there. Between whole ones the lower counts.
fn student_975(freedom: f64) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let whole = freedom.floor().max(1.0);
    if whole <= 10.0 {
        return TABLE[whole as usize - 1];
    }
    let z: f64 = 1.959_964;
    let (first, second) = ((z.powi(3) + z) / 4.0, (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0);
    z + first / whole + second / whole.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(of: &[(f64, f64)]) -> Vec<Unit> {
        of.iter().map(|&(size, ticks)| Unit { size, ticks }).collect()
    }

    #[test]
    fn alike_units_have_their_mean_and_its_spread() {
        // Mean 100, variance ((10)^2 + 0 + (10)^2) / 2 = 100; 3 of 5 are to be predicted: 100 x (2 + 4/3).
        let model = Model::of(&units(&[(5.0, 90.0), (5.0, 100.0), (5.0, 110.0)]), 1).unwrap();
        let two = model.sum([5.0, 5.0].into_iter());
        assert_eq!((two.ticks, two.freedom), (200.0, 2.0));
        assert!((two.variance - 100.0 * (2.0 + 4.0 / 3.0)).abs() < 1e-9, "{two:?}");
        assert!((two.half_width() - 4.303 * two.variance.sqrt() - 0.02 * 200.0).abs() < 1e-9);
        assert_eq!(model.sum(std::iter::empty()), Predicted::default());
    }

    #[test]
    fn few_units_of_unlike_size_have_a_ratio_and_more_have_a_line() {
        let ratio = Model::of(&units(&[(10.0, 100.0), (20.0, 200.0), (40.0, 400.0)]), 1).unwrap();
        assert_eq!((ratio.ticks(30.0), ratio.sum([30.0].into_iter()).variance), (300.0, 0.0));
        let line: Vec<(f64, f64)> = (1..=6).map(|n| (f64::from(n), 50.0 + 3.0 * f64::from(n))).collect();
        let line = Model::of(&units(&line), 1).unwrap();
        let sum = line.sum([10.0, 20.0].into_iter());
        assert!((sum.ticks - 190.0).abs() < 1e-9 && sum.variance < 1e-12, "{sum:?}");
    }

    #[test]
    fn independent_sums_add_up_in_variance() {
        let one = Predicted { ticks: 10.0, predicted_ticks: 10.0, variance: 4.0, freedom: 3.0 };
        assert_eq!(one.plus(Predicted::default()), one);
        let both = one.plus(one);
        assert_eq!((both.ticks, both.variance), (20.0, 8.0));
        assert!((both.freedom - 6.0).abs() < 1e-12);
    }

    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (freedom, quantile) in
            [(1.0, 12.706), (4.0, 2.776), (4.9, 2.776), (15.0, 2.131), (30.0, 2.042), (1e9, 1.960)]
        {
            assert!((student_975(freedom) - quantile).abs() < 2e-3, "{freedom}: {}", student_975(freedom));
        }
    }
}
