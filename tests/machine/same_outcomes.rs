//! Runs that were cut, beside those that were not: what is compared, and how their threads are placed.

use durawarp::engine::{Fallback, Placement};
use durawarp::outcome::Outcome;
use durawarp::run::Conduct;
use serde_json::Value;

/// All of an outcome but what differs from run to run.
fn told(outcome: &Outcome) -> Value {
    let mut whole = serde_json::to_value(outcome).expect("plain data");
    whole.as_object_mut().expect("an object").remove("host");
    whole
}

/// Asserts that two outcomes are the same but for their hosts, and names the first key in which they are not.
pub(crate) fn assert_same(one: &Outcome, other: &Outcome, what: &str) {
    let (one, other) = (told(one), told(other));
    for (key, value) in one.as_object().expect("an object") {
        assert_eq!(value, &other[key], "{what}: {key}");
    }
    assert_eq!(one, other, "{what}");
}

/// This many workers, with components shuffled among them.
pub(crate) fn threads(threads: usize) -> Conduct<'static> {
    let fallback = if threads > 1 { Fallback::Never } else { Fallback::Measured };
    Conduct { threads, oversubscribe: true, fallback, placement: Placement::Shuffled(7), ..Conduct::default() }
}
