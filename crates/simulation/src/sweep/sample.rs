//! A plan whose results were made by hand, for tests of what is shown of them.

use std::path::Path;

use super::record::{Record, State};
use super::{Plan, Store, SweepFile};
use crate::outcome::Outcome;

/// The plan of a sweep file, and a store with these results of its points. The folder is removed with the
/// value.
pub fn results(file: &str, of: &[(usize, State, Outcome)]) -> (tempfile::TempDir, Plan, Store) {
    let plan = Plan::new(SweepFile::read("it.toml", file.to_owned(), Path::new("")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path()).unwrap();
    let line = |(point, state, outcome): &(usize, State, Outcome)| {
        let why = (*state == State::Failed).then_some("it broke");
        let key = plan.points[*point].key.as_str();
        Record { state: *state, why, outcome: Some(outcome), ..Record::begun(key) }.line().unwrap()
    };
    std::fs::write(folder.path().join("a.jsonl"), of.iter().map(line).collect::<Vec<_>>().concat()).unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, plan, store)
}
