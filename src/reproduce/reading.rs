//! What a paper's text may mean besides what the machine of its figures takes it to mean: a bracket about each figure.
//!
//! A paper that gives a memory two latencies has not said what a write costs. Its machine takes one reading; the figures
//! are made of the others as well, and every ask is answered under each. Invariant: a reading is not chosen because it
//! meets an ask; each has a source of its own.

/// One reading.
#[derive(Debug)]
pub struct Reading {
    /// What it is called.
    pub name: &'static str,
    /// Changes of the machine, as they are typed behind `--set`. They come before those of a run.
    pub set: &'static [&'static str],
    /// Who reads it so.
    pub source: &'static str,
}

impl Reading {
    /// It decides about the same medium as a key of the machine's.
    pub fn decides(&self, key: &str) -> bool {
        let table = key.split('.').next();
        self.set.iter().any(|change| change.split('.').next() == table)
    }
}
