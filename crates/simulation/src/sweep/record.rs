//! A line of a results file: what came of a point, or that somebody is at it.
//!
//! A line is a JSON object whose last member, `sum`, is a checksum of the bytes before it. Invariants:
//! `SCHEMA` is raised when a field changes its meaning or goes, and a reader refuses what it does not know;
//! a line that does not fit its checksum is no record.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::runner::Done;
use crate::outcome::Outcome;

/// Version of records, and of the folder that holds them. Since 2 outcomes have caveats, since 3 records a
/// checksum.
pub(crate) const SCHEMA: u32 = 3;

/// What stands before a checksum, and after it.
const SUM: [&[u8]; 2] = [b",\"sum\":\"", b"\"}"];

/// Hexadecimal digits of a checksum: 128 bits of BLAKE3.
const SUM_DIGITS: usize = 32;

/// The checksum of what stands before it.
fn sum(before: &[u8]) -> String {
    blake3::hash(before).to_hex()[..SUM_DIGITS].to_owned()
}

/// The text of a JSON object that is not empty as a line, with its checksum and its end.
///
/// # Panics
/// It is the text of something else.
pub fn sealed(mut object: Vec<u8>) -> Vec<u8> {
    assert_eq!(object.pop(), Some(b'}'), "a record is an object");
    let sum = sum(&object);
    for part in [SUM[0], sum.as_bytes(), SUM[1], b"\n"] {
        object.extend_from_slice(part);
    }
    object
}

/// A line without its end: what stands before the checksum, and the checksum; `None` where there is none.
fn parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(SUM[1])?;
    let (rest, sum) = rest.split_at_checked(rest.len().checked_sub(SUM_DIGITS)?)?;
    Some((rest.strip_suffix(SUM[0])?, sum))
}

/// A record as it is written.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Record<'a> {
    /// `SCHEMA`.
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
    /// Its cycle limit cut it.
    Cut,
    /// It did not, or it is not.
    Failed,
}

impl State {
    /// Its word in tables.
    pub fn name(self) -> &'static str {
        match self {
            State::Begun => "begun",
            State::Good => "good",
            State::Cut => "cut",
            State::Failed => "failed",
        }
    }

    /// Figures of the point count: it ran to its end or was cut.
    pub fn counts(self) -> bool {
        matches!(self, State::Good | State::Cut)
    }
}

/// A record as it is found, without its outcome.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Head {
    /// Its schema.
    record: u64,
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
    struct HostPart {
        host: Times,
    }
    #[derive(Deserialize)]
    struct Times {
        wall_s: f64,
        #[serde(default)]
        functional_s: f64,
        threads: f64,
    }
    let part = Option::<HostPart>::deserialize(from)?;
    Ok(part.map(|HostPart { host }| host.wall_s * host.threads + host.functional_s))
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
    let sound = is_sound(line);
    let head = serde_json::from_slice::<Head>(line);
    // Of another schema all but its number may differ.
    let schema = head.as_ref().map_or_else(
        |_| serde_json::from_slice::<Version>(line).ok().map(|version| version.record),
        |head| Some(head.record),
    );
    match schema {
        // Of a line with a checksum that does not fit nothing is believed, its schema neither.
        Some(record) if record != u64::from(SCHEMA) && (sound || parts(line).is_none()) => {
            Err(Unreadable::Schema(record))
        }
        _ if !sound => Err(Unreadable::Broken(DAMAGED.to_owned())),
        _ => head.map_err(|error| Unreadable::Broken(error.to_string())),
    }
}

const DAMAGED: &str = "its checksum does not fit: it was damaged or changed";

fn is_sound(line: &[u8]) -> bool {
    parts(line).is_some_and(|(before, found)| sum(before).as_bytes() == found)
}

/// The outcome in a line.
pub(super) fn outcome(line: &[u8]) -> Result<Option<Outcome>, String> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow, default)]
        outcome: Option<&'a RawValue>,
    }
    // It may have been changed since its head was read.
    if !is_sound(line.strip_suffix(b"\n").unwrap_or(line)) {
        return Err(DAMAGED.to_owned());
    }
    let whole: Whole<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let read = |raw: &RawValue| serde_json::from_str(raw.get()).map_err(|error| error.to_string());
    whole.outcome.map(read).transpose()
}

impl<'a> Record<'a> {
    /// The record as a line with its checksum and its end.
    pub(super) fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self).map(sealed)
    }

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
            Done::Cut(outcome) => (State::Cut, None, Some(&**outcome)),
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
        let line = record.line().unwrap();
        let line = line.strip_suffix(b"\n").unwrap();
        let found = head(line).unwrap();
        assert_eq!((found.state, found.key.as_str(), found.unix_ms, found.pid), (State::Begun, "abc", 7, 3));
        assert!(serde_json::from_slice::<serde_json::Value>(line).unwrap()["sum"].is_string(), "a line is JSON");
        assert_eq!(head(br#"{"record":2,"state":"begun"}"#), Err(Unreadable::Schema(2)), "older ones have no checksum");
        assert!(matches!(head(br#"{"record":3}"#), Err(Unreadable::Broken(_))));
        assert!(matches!(head(b"\0\0\0"), Err(Unreadable::Broken(_))));
    }

    #[test]
    fn a_line_in_which_any_byte_was_changed_is_no_record() {
        let record = Record { unix_ms: 7, host: "here", pid: 3, ..Record::begun("abc") };
        let line = record.line().unwrap();
        let line = line.strip_suffix(b"\n").unwrap();
        for at in 0..line.len() {
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert!(head(&changed).is_err(), "{}", String::from_utf8_lossy(&changed));
            assert!(outcome(&changed).is_err());
        }
        // A digit of the schema as well: it is not taken for a record of another program.
        let other = String::from_utf8_lossy(line).replace("\"record\":3", "\"record\":2");
        assert_eq!(head(other.as_bytes()), Err(Unreadable::Broken(DAMAGED.to_owned())));
    }
}
