//! Keys that a point can have, and their values.
//!
//! Words are checked here by their type alone; what machines, schemes and workloads there are is found when
//! they are read.

use serde_json::Value;

use crate::config::{self, Override};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, Place, TomlTable, quoted};
use durawarp_workload::FlagBarrier;
use durawarp_workload::Mode;

/// Keys that are no parameter of a machine, a scheme or a workload.
pub const WORDS: [&str; 5] = ["machine", "workload", "scheme", "profile", "seed"];

/// Keys that say how workloads with an `[instrument]` keep undo logs, otherwise than their manifests say.
pub(crate) const LOGGING: [&str; 4] = ["instrument", "flag_barrier", "loop_log", "reload"];

/// A key without a table.
pub(in super::super) fn is_word(key: &str) -> bool {
    WORDS.contains(&key) || LOGGING.contains(&key)
}

/// A parameter of a scheme.
pub(in super::super) fn is_of_a_scheme(key: &str) -> bool {
    config::is_of_a_scheme(&Override { key: key.to_owned(), value: String::new() })
}

/// A value as it is typed on a command line.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The same value: 5 and 5.0 are.
pub(in super::super) fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// The value, if it is neither a list nor a table nor a date.
pub(super) fn value_of(item: Item<'_>) -> Option<Value> {
    match item.number() {
        Some(durawarp_workload::Value::Int(whole)) => Some(whole.into()),
        Some(durawarp_workload::Value::Float(x)) => serde_json::Number::from_f64(x).map(Value::Number),
        _ => item.text().map(Value::from).or_else(|| item.boolean().map(Value::from)),
    }
}

/// As [`value_of`], with a fault.
pub(super) fn plain(item: Item<'_>, key: &str, faults: &mut Diagnostics) -> Option<Value> {
    let value = value_of(item);
    if value.is_none() {
        let found = item.described();
        faults.push(item.place().fault(format!("`{key}` expects a number, a text or a truth value, found {found}")));
    }
    value
}

/// Keys with dots, written in quotes or as tables in tables.
pub(super) fn flattened(table: TomlTable<'_>) -> Vec<(String, Place, Item<'_>)> {
    let mut out = Vec::new();
    for (key, place, item) in table.entries() {
        match item.table() {
            Some(inner) => {
                out.extend(
                    flattened(inner).into_iter().map(|(name, place, item)| (format!("{key}.{name}"), place, item)),
                );
            }
            None => out.push((key.to_owned(), place, item)),
        }
    }
    out
}

/// Values of a key in the key's unit, as far as there is such a key and it takes them; faults are told at the
/// key or at the value.
pub(super) fn check(
    key: &str,
    place: &Place,
    values: impl IntoIterator<Item = (Value, Place)>,
    faults: &mut Diagnostics,
) -> Vec<Value> {
    let mut good = Vec::new();
    if key == "params." {
        faults.push(place.fault("`params.` lacks the name of a parameter"));
    } else if key == "inputs." {
        faults.push(place.fault("`inputs.` lacks the name of a buffer"));
    } else if !key.contains('.') && !is_word(key) {
        let fault = place.fault(format!("unknown key `{key}`"));
        let words: Vec<&str> = WORDS.iter().chain(&LOGGING).copied().collect();
        let quoted = quoted(&words);
        let all = || Some(format!("TABLE.KEY, params.NAME, inputs.BUFFER, or one of {quoted}"));
        faults.push(fault.with_nearest_or(key, words.iter().copied(), all));
        return good;
    }
    for (value, at) in values {
        match checked(key, &value) {
            Ok(value) => good.push(value),
            Err(found) => found.0.into_iter().for_each(|fault| {
                // An unknown key is told once, where it is named.
                let of_value = fault.message.contains("expects") || fault.message.contains("unit");
                let told = Diagnostic { help: fault.help, ..(if of_value { &at } else { place }).fault(fault.message) };
                if !faults.0.contains(&told) {
                    faults.push(told);
                }
            }),
        }
    }
    good
}

/// A value of a key that there may be.
pub(super) fn checked(key: &str, value: &Value) -> Result<Value, Diagnostics> {
    let wrong =
        |expected: &str| Err(Diagnostic::nowhere("", format!("`{key}` expects {expected}, found {value}")).into());
    match key {
        "seed" if !value.is_u64() => wrong("a whole number from 0"),
        "seed" => Ok(value.clone()),
        "loop_log" | "reload" if !value.is_boolean() => wrong("true or false"),
        "instrument" => of_words(key, value, &Mode::ALL.map(|(word, _)| word)),
        "flag_barrier" => of_words(key, value, &FlagBarrier::ALL.map(|(word, _)| word)),
        input if input.starts_with("inputs.") && !value.is_string() => wrong("the name of a file"),
        word if WORDS.contains(&word) && !value.is_string() => wrong("a name"),
        word if is_word(word) || ["params", "inputs"].contains(&word.split('.').next().unwrap_or("")) => {
            Ok(value.clone())
        }
        _ => config::checked(&Override { key: key.to_owned(), value: text_of(value) }),
    }
}

/// A value that is one of some words.
fn of_words(key: &str, value: &Value, words: &[&str]) -> Result<Value, Diagnostics> {
    if value.as_str().is_some_and(|word| words.contains(&word)) {
        return Ok(value.clone());
    }
    let message = format!("`{key}` expects one of {}, found {value}", words.join(", "));
    Err(Diagnostic::nowhere("", message).with_nearest(&text_of(value), words.iter().copied()).into())
}
