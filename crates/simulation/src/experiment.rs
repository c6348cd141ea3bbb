//! The facade: what a program that uses the library says to run a workload, to let power fail in it, or to
//! vary it.
//!
//! ```text
//! Experiment::of(workload).machine(..).scheme(..).set(key, value) ─┬─ .run()   ─> Outcome
//!                              (a Recipe)                          ├─ .crash() ─> CrashReport
//!                                                                  └─ .sweep().axis(key, values).run() ─> SweepPoint
//! ```
//! The command line, sweep files and papers build the same [`Recipe`]s, so that they get the same digests.
//! What is here is for programs: no progress, no interruption, no store of results; [`run()`], [`crash()`]
//! and [`Batch`] have these.

use std::sync::atomic::AtomicBool;

use crate::crash::{CrashReport, CrashRequest, Watching, crash};
use crate::outcome::Outcome;
use crate::run::{Conduct, Experiment, Part, Recipe, run};
use crate::sweep::campaign::without_store;
use crate::sweep::host::Memory;
use crate::sweep::{Batch, Done, Workers};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_workload::Workload;

impl Experiment {
    /// Begins the recipe of an experiment: this workload (a built-in name, a path of a folder or of a
    /// manifest, or a [`Workload`]) on the default machine, under the scheme `base`, in its default profile,
    /// to its end, on one thread, compared with the functional reference.
    ///
    /// # Example: a vector addition under LightWSP
    /// ```
    /// use durawarp_simulation::Experiment;
    ///
    /// let outcome = Experiment::of("vecadd").scheme("light-wsp").profile("ci").run().unwrap();
    /// assert!(outcome.verification.unwrap().passed);
    /// ```
    pub fn of(workload: impl Into<Part<Workload>>) -> Recipe {
        Recipe::of(workload)
    }

    /// Simulates on one thread.
    pub fn run(&self) -> Outcome {
        run(self, &Conduct::default()).outcome
    }

    /// Runs once, on one thread, and judges what power failures leave.
    ///
    /// # Errors
    /// As [`crash()`].
    pub fn crash(&self, request: &CrashRequest) -> Result<CrashReport, Diagnostics> {
        judged(self, request, 1)
    }
}

impl Recipe {
    /// Builds the experiment and simulates it. A simulated program that fails, and a wrong result, are no
    /// errors here: the outcome has them.
    ///
    /// # Errors
    /// As [`Recipe::build`]; buffers that are larger than the memory of this host.
    pub fn run(&self) -> Result<Outcome, Diagnostics> {
        let conduct = Conduct { threads: self.threads, ..Conduct::default() };
        Ok(self.fitting().build_any()?.run(&conduct).outcome)
    }

    /// Builds the experiment, runs it once, and judges what power failures at any instant leave.
    ///
    /// # Errors
    /// As [`Recipe::run`] and [`crash()`].
    ///
    /// # Example: undo logging survives a power failure
    /// ```
    /// use durawarp_simulation::{CrashRequest, Experiment};
    ///
    /// let recipe = Experiment::of("atax").params([("NX", 16), ("NY", 16)]).scheme("store+clwb").set("sm.count", 2);
    /// let request = CrashRequest { allowed: None, overtaking: 0, ..CrashRequest::default() };
    /// let report = recipe.crash(&request).unwrap();
    /// assert!(report.holds() && report.transactions > 0);
    /// ```
    pub fn crash(&self, request: &CrashRequest) -> Result<CrashReport, Diagnostics> {
        judged(&self.fitting().build()?, request, self.threads)
    }

    /// Many experiments: this one, varied along axes.
    pub fn sweep(self) -> Sweep {
        Sweep { recipe: self, axes: Vec::new(), jobs: 0 }
    }

    /// With buffers that this host has memory for, unless another bound is set.
    fn fitting(&self) -> Recipe {
        match self.choice.most_bytes {
            Some(_) => self.clone(),
            None => self.clone().most_bytes(Memory::of_host().total_bytes),
        }
    }
}

fn judged(experiment: &Experiment, request: &CrashRequest, threads: usize) -> Result<CrashReport, Diagnostics> {
    let conduct = Conduct { threads, ..Conduct::default() };
    let watching = Watching { conduct: &conduct, stop: &AtomicBool::new(false), progress: &|_, _, _| {} };
    crash(experiment, request, &watching)
}

/// A recipe and the axes along which it is varied; [`Recipe::sweep`] begins one.
#[derive(Debug, Clone)]
#[must_use]
pub struct Sweep {
    recipe: Recipe,
    axes: Vec<(String, Vec<String>)>,
    jobs: usize,
}

/// A point of a sweep.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// Key and value on each axis, in the order of the axes.
    pub values: Vec<(String, String)>,
    /// What came of it.
    pub done: Done,
}

impl Sweep {
    /// Varies a key, any that [`Recipe::set`] takes. Points are all combinations; values of the last axis
    /// change fastest.
    pub fn axis<V: ToString>(mut self, key: &str, values: impl IntoIterator<Item = V>) -> Self {
        self.axes.push((key.to_owned(), values.into_iter().map(|value| value.to_string()).collect()));
        self
    }

    /// Runs at a time, a thread each: 0, which is the default, for one a core. No result depends on it.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs;
        self
    }

    /// Checks every point, then runs them all. Points that come to the same run once.
    ///
    /// # Errors
    /// All faults of the points; nothing has run then.
    ///
    /// # Example: two schemes on two sizes of the L2
    /// ```
    /// use durawarp_simulation::Experiment;
    ///
    /// let sweep = Experiment::of("atax").params([("NX", 16), ("NY", 16)]).set("sm.count", 2).sweep();
    /// let points = sweep.axis("scheme", ["base", "strict"]).axis("l2.slice_kb", [128, 256]).run().unwrap();
    /// let cycles: Vec<u64> = points.iter().map(|point| point.done.good().unwrap().time.core_cycles).collect();
    /// assert!(points.len() == 4 && cycles[0] < cycles[2], "stores that wait cost time: {cycles:?}");
    /// ```
    pub fn run(&self) -> Result<Vec<SweepPoint>, Diagnostics> {
        let (mut batch, mut faults) = (Batch::default(), Diagnostics::default());
        let mut points = Vec::new();
        for number in 0..self.axes.iter().map(|(_, values)| values.len()).product() {
            let values = self.values(number);
            let recipe = values.iter().fold(self.recipe.clone(), |recipe, (key, value)| recipe.set(key, value));
            let label: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
            match batch.add(&label.join(" "), 0, recipe) {
                Ok(point) => points.push((values, point)),
                Err(found) => {
                    for fault in found.0.into_iter().filter(|fault| !faults.0.contains(fault)).collect::<Vec<_>>() {
                        faults.push(fault);
                    }
                }
            }
        }
        let points = faults.into_result(points)?;
        let done = without_store(&batch, &Workers { jobs: self.jobs, ..Workers::default() });
        let point = |(values, at): (Vec<(String, String)>, usize)| SweepPoint { values, done: done[at].clone() };
        Ok(points.into_iter().map(point).collect())
    }

    /// The values of a point by its number.
    fn values(&self, number: usize) -> Vec<(String, String)> {
        let mut rest = number;
        let one = |(key, values): &(String, Vec<String>)| {
            let value = values[rest % values.len()].clone();
            rest /= values.len();
            (key.clone(), value)
        };
        let mut values: Vec<(String, String)> = self.axes.iter().rev().map(one).collect();
        values.reverse();
        values
    }
}
