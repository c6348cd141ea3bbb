//! From a sweep file to its points: every one resolved, checked and given its key before anything runs.
//!
//! A point is a value for each key. A parameter of a scheme does not apply to points of another scheme: its
//! value is null there, and points that differ in nothing else are one. Invariants: points are in the order
//! of the axes, the last varying fastest; no two have the same key; everything that is wrong is told at once,
//! at its place in the file.

pub(crate) mod configuration;
mod planned;
mod resolve;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::batch::Batch;
pub use planned::Planned;
use resolve::Points;

use super::file::{SweepFile, WORDS, is_of_a_scheme, same};
use super::grid::{self, Grid};
use super::key;
use durawarp_base::diagnostic::Diagnostics;

/// The points of a sweep.
#[derive(Debug)]
pub struct Plan {
    /// What it was made of.
    pub file: SweepFile,
    /// The keys that points are told by: [`WORDS`], then those of axes.
    pub columns: Vec<String>,
    pub points: Vec<Planned>,
    /// Of each figure of the file, the figures that it comes to.
    pub grids: Vec<Vec<Grid>>,
    /// The same as what can be run.
    pub batch: Batch,
}

impl Plan {
    /// Resolves every point of a sweep file.
    ///
    /// # Errors
    /// Everything that is wrong with it, with machines, schemes and workloads that it names, or with their
    /// combinations.
    pub fn new(file: SweepFile) -> Result<Self, Diagnostics> {
        let mut columns: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        for key in file.axes.iter().flat_map(|axis| &axis.keys) {
            if !columns.contains(key) {
                columns.push(key.clone());
            }
        }
        let Points { file, columns, points, batch } = resolve::points(file, columns)?;
        let mut faults = Diagnostics::default();
        let mut grids = Vec::new();
        for figure in &file.figures {
            match grid::of(&file, &columns, &points, figure) {
                Ok(found) => grids.push(found),
                Err(fault) => faults.push(fault),
            }
        }
        faults.into_result(Plan { file, columns, points, grids, batch })
    }

    /// Reads a sweep file and resolves its points.
    ///
    /// # Errors
    /// As [`SweepFile::load`] and [`Plan::new`].
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        Plan::new(SweepFile::load(path)?)
    }

    /// Which of [`columns`](Plan::columns) a key is.
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == key)
    }

    /// The point that each point's results are related to: the same but for the keys of `baseline`.
    pub fn baselines(&self) -> Vec<Option<usize>> {
        let Some(baseline) = &self.file.baseline else { return vec![None; self.points.len()] };
        let text = |value: &Value| key::canonical(value);
        let varies = |column: &String| !baseline.keys.iter().any(|(key, _)| key == column);
        // What stays, with parameters of schemes left out where the baseline's scheme has none: there they
        // are null.
        let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let stays = |at: &usize| varies(&self.columns[*at]) && !is_of_a_scheme(&self.columns[*at]);
        let stay: Vec<usize> = (0..self.columns.len()).filter(stays).collect();
        let rest = |planned: &Planned| stay.iter().map(|&at| text(&planned.values[at])).collect::<Vec<_>>().join(" ");
        for (at, planned) in self.points.iter().enumerate() {
            let is_one = baseline.keys.iter().all(|(key, values)| {
                // Not a column: all points have it.
                self.column(key).is_none_or(|column| values.iter().any(|value| same(value, &planned.values[column])))
            });
            if is_one {
                known.entry(rest(planned)).or_default().push(at);
            }
        }
        let of = |planned: &Planned| {
            let candidates = known.get(&rest(planned))?;
            let agrees = |at: &&usize| {
                let own = self.points[**at].values.iter().zip(&planned.values).zip(&self.columns);
                own.filter(|(_, column)| varies(column))
                    .all(|((one, other), _)| one.is_null() || other.is_null() || same(one, other))
            };
            match candidates.iter().filter(agrees).copied().collect::<Vec<_>>()[..] {
                [only] => Some(only),
                _ => None,
            }
        };
        self.points.iter().map(of).collect()
    }
}
