//! A line of a results file: what came of a point, or that somebody is at it.
//!
//! Invariant: [`SCHEMA`] is raised when a field changes its meaning or goes; a reader refuses what it does not know.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::runner::Done;
use crate::outcome::Outcome;

/// Version of records, and of the folder that holds them. Since 2 outcomes have caveats.
pub const SCHEMA: u32 = 2;

/// A record as it is written.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Record<'a> {
    /// [`SCHEMA`].
    pub record: u32,
    /// What it says.
    pub state: State,
    /// Key of the point.
    pub key: &'a str,
    /// When it was written, in ms since 1970: the newest record of a key counts.
    pub unix_ms: u64,
    /// Host and process that wrote it.
    pub host: &'a str,
    /// Process.
    pub pid: u32,
    /// Why the point failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'a str>,
    /// Name of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<&'a str>,
    /// Hash of the workload's content: what the time that a run takes depends on most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    /// Bytes of its buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The outcome, with the resolved configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'a Outcome>,
}

/// What a record says of its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Somebody has begun it.
    Begun,
    /// It ran to its end and its result is right.
    Good,
    /// It did not, or it is not.
    Failed,
}

/// A record as it is found, without its outcome.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Head {
    /// What it says.
    pub state: State,
    /// Key of the point.
    pub key: String,
    /// When it was written.
    pub unix_ms: u64,
    /// Host that wrote it.
    #[serde(default)]
    pub host: String,
    /// Process.
    #[serde(default)]
    pub pid: u32,
    /// Why the point failed.
    #[serde(default)]
    pub why: Option<String>,
    /// Name of the workload.
    #[serde(default)]
    pub workload: Option<String>,
    /// Hash of the workload's content.
    #[serde(default)]
    pub content: Option<String>,
    /// Bytes of its buffers.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Seconds of host time that the run took.
    #[serde(default, rename = "outcome", deserialize_with = "seconds")]
    pub seconds: Option<f64>,
}

/// Of an outcome, the time that it took.
fn seconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    struct Part {
        host: Times,
    }
    #[derive(Deserialize)]
    struct Times {
        wall_s: f64,
        #[serde(default)]
        functional_s: f64,
        threads: f64,
    }
    let part = Option::<Part>::deserialize(from)?;
    Ok(part.map(|Part { host }| host.wall_s * host.threads + host.functional_s))
}

/// A line that is whole but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Of a schema that this program does not know.
    Schema(u64),
    /// No record: why.
    Broken(String),
}

/// Reads a line without its end.
pub(super) fn head(line: &[u8]) -> Result<Head, Unreadable> {
    #[derive(Deserialize)]
    struct Version {
        record: u64,
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { record }) if record != u64::from(SCHEMA) => Err(Unreadable::Schema(record)),
        Ok(_) => serde_json::from_slice(line).map_err(|error| Unreadable::Broken(error.to_string())),
        Err(error) => Err(Unreadable::Broken(error.to_string())),
    }
}

/// The outcome in a line.
pub(super) fn outcome(line: &[u8]) -> Result<Option<Outcome>, String> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow, default)]
        outcome: Option<&'a RawValue>,
    }
    let whole: Whole<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let read = |raw: &RawValue| serde_json::from_str(raw.get()).map_err(|error| error.to_string());
    whole.outcome.map(read).transpose()
}

impl<'a> Record<'a> {
    /// That somebody has begun a point.
    pub fn begun(key: &'a str) -> Self {
        Record {
            record: SCHEMA,
            state: State::Begun,
            key,
            unix_ms: 0,
            host: "",
            pid: 0,
            why: None,
            workload: None,
            content: None,
            bytes: None,
            outcome: None,
        }
    }

    /// What came of a point; `None` when it was not run.
    pub fn done(key: &'a str, workload: &'a str, content: &'a str, bytes: u64, done: &'a Done) -> Option<Self> {
        let (state, why, outcome) = match done {
            Done::Good(outcome) => (State::Good, None, Some(&**outcome)),
            Done::Failed { why, outcome } => (State::Failed, Some(why.as_str()), outcome.as_deref()),
            Done::NotRun => return None,
        };
        let (workload, content, bytes) = (Some(workload), Some(content), Some(bytes));
        Some(Record { state, why, outcome, workload, content, bytes, ..Self::begun(key) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_and_another_schema_is_told() {
        let record = Record { unix_ms: 7, host: "here", pid: 3, ..Record::begun("abc") };
        let line = serde_json::to_string(&record).unwrap();
        let found = head(line.as_bytes()).unwrap();
        assert_eq!((found.state, found.key.as_str(), found.unix_ms, found.pid), (State::Begun, "abc", 7, 3));
        assert_eq!(head(br#"{"record":3,"new":true}"#), Err(Unreadable::Schema(3)));
        assert!(matches!(head(br#"{"record":2}"#), Err(Unreadable::Broken(_))));
        assert!(matches!(head(b"\0\0\0"), Err(Unreadable::Broken(_))));
    }
}
