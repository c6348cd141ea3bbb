//! Phases of a program: intervals that execute alike, found by k-means, and which of them are simulated.
//!
//! Source: Hamerly, Perelman, Lau, Calder, *SimPoint 3.0*, JILP 7 (2005): k-means for each number of phases
//! up to [`MOST_PHASES`]; the least number whose score is 90 % of the way from the worst to the best; the
//! score is the Bayesian information criterion of Pelleg and Moore, *X-means*, ICML 2000. Other than there,
//! centres begin far from each other and not at random, and a phase has several intervals simulated, spread
//! evenly over it, as one says nothing of their spread. Invariant: phases and choice follow from the vectors
//! alone. Not modelled: that intervals of one phase may differ in what caches hold, which their spread shows.

use super::blocks::{BlockVector, DIMENSIONS, Interval};

/// Phases, at most. Chosen: the programs at hand have fewer.
const MOST_PHASES: usize = 10;

/// Rounds of k-means, at most. Chosen: it settles in fewer.
const ROUNDS: usize = 100;

/// How far the score is to be on the way from the worst to the best, as in the source.
const GOOD: f64 = 0.9;

/// The least variance of a vector around its centre, of vectors of length 1 or so: what sums of rounded
/// numbers differ by is no phase.
const LEAST_VARIANCE: f64 = 1e-6;

/// Intervals of a phase that are simulated, at least. Chosen: one says nothing of their spread, and of two a
/// confidence interval is three times as wide as of three.
const LEAST: usize = 3;

/// The intervals of each phase, by number, phases in the order of their first intervals.
pub(super) fn phases(intervals: &[Interval]) -> Vec<Vec<usize>> {
    let vectors: Vec<BlockVector> =
        intervals.iter().map(|of| of.vector.map(|sum| sum / of.instructions as f64)).collect();
    let all: Vec<Clusters> = (1..=MOST_PHASES.min(vectors.len())).map(|count| Clusters::of(&vectors, count)).collect();
    let scores: Vec<f64> = all.iter().map(|clusters| clusters.score(vectors.len())).collect();
    let (worst, best) = scores.iter().fold((f64::MAX, f64::MIN), |(low, high), &of| (low.min(of), high.max(of)));
    let enough = scores.iter().position(|&score| score >= worst + GOOD * (best - worst));
    let mut phases: Vec<Vec<usize>> = enough.map_or_else(Vec::new, |at| all[at].members());
    phases.retain(|phase| !phase.is_empty());
    phases.sort_by_key(|phase| phase[0]);
    phases
}

/// Intervals of each phase to simulate: `samples` on average, more of a large phase, spread evenly.
pub(super) fn chosen(phases: &[Vec<usize>], samples: usize) -> Vec<Vec<usize>> {
    let intervals: usize = phases.iter().map(Vec::len).sum();
    let of = |phase: &Vec<usize>| {
        let share = (samples * phases.len() * phase.len()).div_ceil(intervals.max(1));
        let count = share.max(LEAST).min(phase.len());
        (0..count).map(|nth| phase[(2 * nth + 1) * phase.len() / (2 * count)]).collect()
    };
    phases.iter().map(of).collect()
}

/// Vectors by the nearest of some centres.
struct Clusters {
    of: Vec<usize>,
    sizes: Vec<usize>,
    /// Sum of squared distances to the centres.
    squares: f64,
}

impl Clusters {
    fn of(vectors: &[BlockVector], count: usize) -> Clusters {
        let mut centres = begun(vectors, count);
        let mut of = vec![usize::MAX; vectors.len()];
        for _ in 0..ROUNDS {
            let nearest: Vec<usize> = vectors.iter().map(|vector| nearest(&centres, vector).0).collect();
            let settled = of == nearest;
            of = nearest;
            if settled {
                break;
            }
            for (cluster, centre) in centres.iter_mut().enumerate() {
                let own = || vectors.iter().zip(&of).filter(|(_, of)| **of == cluster).map(|(vector, _)| vector);
                // A centre that lost all stays where it is.
                if own().next().is_some() {
                    *centre = mean(own());
                }
            }
        }
        let sizes = (0..count).map(|cluster| of.iter().filter(|of| **of == cluster).count()).collect();
        let squares = vectors.iter().map(|vector| nearest(&centres, vector).1).sum();
        Clusters { of, sizes, squares }
    }

    /// The Bayesian information criterion: higher is better.
    fn score(&self, vectors: usize) -> f64 {
        let (all, count, dimensions) = (vectors as f64, self.sizes.len() as f64, DIMENSIONS as f64);
        let variance = (self.squares / (dimensions * (all - count).max(1.0))).max(LEAST_VARIANCE);
        let of_size = |&size: &usize| {
            let size = size as f64;
            if size > 0.0 { size * (size / all).ln() } else { 0.0 }
        };
        let likelihood = self.sizes.iter().map(of_size).sum::<f64>()
            - all * dimensions / 2.0 * (std::f64::consts::TAU * variance).ln()
            - dimensions * (all - count) / 2.0;
        likelihood - count * (dimensions + 1.0) / 2.0 * all.ln()
    }

    fn members(&self) -> Vec<Vec<usize>> {
        let own = |cluster| (0..self.of.len()).filter(|&nth| self.of[nth] == cluster).collect();
        (0..self.sizes.len()).map(own).collect()
    }
}

/// Centres to begin with: the first vector, then again and again the one that is farthest from all before.
fn begun(vectors: &[BlockVector], count: usize) -> Vec<BlockVector> {
    let mut centres = vec![vectors[0]];
    while centres.len() < count {
        let far = |vector: &BlockVector| nearest(&centres, vector).1;
        let mut farthest = &vectors[0];
        for vector in vectors {
            if far(vector) > far(farthest) {
                farthest = vector;
            }
        }
        centres.push(*farthest);
    }
    centres
}

/// The first of the nearest centres, and the square of its distance.
fn nearest(centres: &[BlockVector], vector: &BlockVector) -> (usize, f64) {
    let mut found = (0, f64::MAX);
    for (nth, centre) in centres.iter().enumerate() {
        let square = centre.iter().zip(vector).map(|(one, other)| (one - other).powi(2)).sum();
        if square < found.1 {
            found = (nth, square);
        }
    }
    found
}

fn mean<'a>(vectors: impl Iterator<Item = &'a BlockVector>) -> BlockVector {
    let (mut sum, mut count) = ([0.0; DIMENSIONS], 0.0);
    for vector in vectors {
        count += 1.0;
        sum.iter_mut().zip(vector).for_each(|(sum, part)| *sum += part);
    }
    sum.map(|sum| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of ten instructions at a place, and a little beside it.
    fn interval(nth: u64, at: f64) -> Interval {
        let vector =
            std::array::from_fn(|dimension| 10.0 * if dimension == 3 { at + 0.001 * (nth % 3) as f64 } else { 0.5 });
        Interval { from: 10 * nth, instructions: 10, vector }
    }

    #[test]
    fn intervals_that_are_alike_are_a_phase() {
        let places = [0.0, 0.0, 0.9, 0.9, 0.9, 0.0, -0.7, 0.9, 0.0, -0.7, 0.0, 0.9];
        let intervals: Vec<Interval> = (0..).zip(places).map(|(nth, at)| interval(nth, at)).collect();
        assert_eq!(phases(&intervals), [vec![0, 1, 5, 8, 10], vec![2, 3, 4, 7, 11], vec![6, 9]]);
        let alike: Vec<Interval> = (0..12).map(|nth| interval(0, 0.25 + f64::from(nth) * 1e-9)).collect();
        assert_eq!(phases(&alike), [(0..12).collect::<Vec<_>>()], "what rounding differs by is no phase");
        assert!(phases(&[]).is_empty());
    }

    #[test]
    fn a_large_phase_has_more_samples_and_they_are_spread_over_it() {
        let phases = [(0..40).collect::<Vec<usize>>(), (40..48).collect(), vec![48]];
        assert_eq!(chosen(&phases, 2), [vec![4, 12, 20, 28, 36], vec![41, 44, 46], vec![48]]);
    }
}
