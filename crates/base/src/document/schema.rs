//! The schema of a document: its keys as data, and the check of a document against them.
//!
//! The check finds every unknown key, missing key and wrong TOML type at once; readers then take what is
//! well-formed and stay silent about the rest. The keys of workloads and of sweeps lie beside their readers.

use super::toml::{Item, TomlTable};
use super::value::Value;
use crate::diagnostic::{Diagnostics, nearest};

/// The form of a value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// An integer from 0.
    Whole,
    /// An integer or a float.
    Number,
    /// An integer, a float, or an expression in quotes.
    Expression,
    /// One of these words.
    Words(&'static [&'static str]),
    List(&'static Shape),
    /// A value, or a list of such values.
    OneOrMany(&'static Shape),
    /// A table with these keys.
    Table(&'static [KeyRule]),
    /// A table of user-chosen names; all values have the same form.
    Map(&'static Shape),
    /// A table; the value of its key `kind` decides which other keys it has.
    Kinds(&'static [(&'static str, &'static [KeyRule])]),
    /// A table in which exactly one of these first keys is present, which decides the other keys.
    Forms(&'static [(&'static str, &'static [KeyRule])]),
    /// Read by hand.
    Any,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
    /// Specified, but nothing acts on it yet: refused rather than ignored.
    NotYet,
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct KeyRule {
    pub name: &'static str,
    pub(crate) need: Need,
    pub shape: Shape,
}

pub const fn required(name: &'static str, shape: Shape) -> KeyRule {
    KeyRule { name, need: Need::Required, shape }
}

pub const fn optional(name: &'static str, shape: Shape) -> KeyRule {
    KeyRule { name, need: Need::Optional, shape }
}

pub const fn not_yet(name: &'static str) -> KeyRule {
    KeyRule { name, need: Need::NotYet, shape: Shape::Any }
}

/// Checks `item` against `shape`; `what` names it in messages (`` `len` ``, "a launch step").
pub fn check(shape: &Shape, item: Item<'_>, what: &str, faults: &mut Diagnostics) {
    let mut wrong = |expected: &str| {
        faults.push(item.place().fault(format!("{what} must be {expected}, found {}", item.described())));
    };
    // A scalar of the right type fails the guard of its arm and falls through to the last arm, which accepts
    // it.
    match shape {
        Shape::Any => {}
        Shape::Text if item.text().is_none() => wrong("a string in quotes"),
        Shape::Boolean if item.boolean().is_none() => wrong("`true` or `false`"),
        Shape::Whole if !matches!(item.number(), Some(Value::Int(0..))) => wrong("an integer from 0"),
        Shape::Number if finite(item).is_none() => wrong("a number"),
        Shape::Expression if item.number().is_none() && item.text().is_none() => {
            wrong("a number or an expression in quotes");
        }
        Shape::Words(words) => match item.text() {
            None => wrong(&format!("one of {}", quoted(words))),
            Some(found) if !words.contains(&found) => {
                let fault = item.place().fault(format!("{what} must be one of {}, found `{found}`", quoted(words)));
                faults.push(fault.with_nearest_or(found, words.iter().copied(), || None));
            }
            Some(_) => {}
        },
        // A wrong element does not end its list: every fault of the document is found in one pass.
        Shape::List(shape) => match item.list() {
            None => wrong("a list"),
            Some(items) => items.into_iter().for_each(|item| check(shape, item, &element(what, shape), faults)),
        },
        Shape::OneOrMany(shape) => match item.list() {
            None => check(shape, item, what, faults),
            Some(items) => items.into_iter().for_each(|item| check(shape, item, &element(what, shape), faults)),
        },
        Shape::Table(keys) => match item.table() {
            None => wrong("a table"),
            Some(table) => check_keys(keys, table, what, faults),
        },
        Shape::Map(shape) => match item.table() {
            None => wrong("a table"),
            Some(table) => check_map(shape, table, what, faults),
        },
        Shape::Kinds(kinds) => match item.table() {
            None => wrong("a table with the key `kind`"),
            Some(table) => check_kinds(kinds, table, what, faults),
        },
        Shape::Forms(forms) => match item.table() {
            None => wrong("a table"),
            Some(table) => check_forms(forms, table, what, faults),
        },
        _ => {}
    }
}

/// The number, if it is one that is finite: `nan` and `inf` of TOML are no quantities.
fn finite(item: Item<'_>) -> Option<Value> {
    item.number().filter(|number| number.as_f64().is_finite())
}

fn element(what: &str, shape: &Shape) -> String {
    match shape {
        Shape::Forms(_) => "a step".to_owned(),
        Shape::Table(_) | Shape::Kinds(_) => match what {
            "`loop`" => "a loop".to_owned(),
            "`verify`" => "a check".to_owned(),
            "`crash`" => "a condition".to_owned(),
            "`figure`" => "a figure".to_owned(),
            _ => format!("an element of {what}"),
        },
        _ => format!("an element of {what}"),
    }
}

/// `` `a`, `b`, `c` ``.
pub fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Checks a table against its keys.
pub fn check_keys(keys: &[KeyRule], table: TomlTable<'_>, what: &str, faults: &mut Diagnostics) {
    for (name, place, item) in table.entries() {
        match keys.iter().find(|key| key.name == name) {
            None => {
                let names: Vec<&str> = keys.iter().filter(|key| key.need != Need::NotYet).map(|k| k.name).collect();
                let fault = place.fault(format!("unknown key `{name}` in {what}"));
                faults.push(fault.with_nearest_or(name, names.iter().copied(), || match names.is_empty() {
                    true => Some("it has no keys".to_owned()),
                    false => Some(format!("its keys are {}", quoted(&names))),
                }));
            }
            Some(key) if key.need == Need::NotYet => {
                faults.push(place.fault(format!("`{name}` in {what} is not supported yet")));
            }
            Some(key) => check(&key.shape, item, &format!("`{name}`"), faults),
        }
    }
    for key in keys.iter().filter(|key| key.need == Need::Required) {
        if table.get(key.name).is_none() {
            faults.push(table.place().fault(format!("{what} lacks the key `{}`", key.name)));
        }
    }
}

fn check_map(shape: &Shape, table: TomlTable<'_>, what: &str, faults: &mut Diagnostics) {
    let noun = match what.trim_matches('`') {
        "params" => "parameter",
        "expect" => "expectation",
        // A map in a map: the parameters of a profile.
        noun if noun.contains('`') => "parameter",
        noun => noun,
    };
    for (name, place, item) in table.entries() {
        let mut characters = name.chars();
        let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !first || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = format!("`{name}` is not a name: a letter or `_`, then letters, digits and `_`");
            faults.push(place.fault(message));
        }
        check(shape, item, &format!("{noun} `{name}`"), faults);
    }
}

fn check_kinds(kinds: &[(&str, &[KeyRule])], table: TomlTable<'_>, what: &str, faults: &mut Diagnostics) {
    let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    let Some(item) = table.get("kind") else {
        let fault = table.place().fault(format!("{what} lacks the key `kind`"));
        faults.push(fault.with_help(format!("one of {}", quoted(&names))));
        return;
    };
    let Some(found) = item.text() else {
        let message = format!("`kind` must be one of {}, found {}", quoted(&names), item.described());
        faults.push(item.place().fault(message));
        return;
    };
    let Some((_, keys)) = kinds.iter().find(|(kind, _)| *kind == found) else {
        let fault = item.place().fault(format!("`kind` must be one of {}, found `{found}`", quoted(&names)));
        faults.push(fault.with_nearest_or(found, names, || None));
        return;
    };
    let mut all = vec![required("kind", Shape::Text)];
    all.extend_from_slice(keys);
    check_keys(&all, table, &format!("{what} of kind `{found}`"), faults);
}

fn check_forms(forms: &[(&str, &[KeyRule])], table: TomlTable<'_>, what: &str, faults: &mut Diagnostics) {
    let present: Vec<_> = forms.iter().filter(|(key, _)| table.get(key).is_some()).collect();
    // A form that is not supported yet is recognised, for a message of its own, but never suggested.
    let names: Vec<&str> = forms.iter().filter(|f| f.1[0].need != Need::NotYet).map(|(key, _)| *key).collect();
    match present[..] {
        [(name, [KeyRule { need: Need::NotYet, .. }, ..])] => {
            let place =
                table.entries().find(|(key, ..)| key == name).map_or_else(|| table.place(), |(_, place, _)| place);
            faults.push(place.fault(format!("a `{name}` step is not supported yet")));
        }
        [(name, keys)] => {
            let what = match *name {
                "kernel" => "a launch step".to_owned(),
                "step" => "a loop".to_owned(),
                name => format!("a `{name}` step"),
            };
            check_keys(keys, table, &what, faults);
        }
        [] => {
            let first = table.entries().next();
            let guess = table.entries().find_map(|(key, ..)| nearest(key, names.iter().copied()));
            let place = first.map_or_else(|| table.place(), |(_, place, _)| place);
            let fault = place.fault(format!("{what} needs one of the keys {}", quoted(&names)));
            faults.push(match guess {
                Some(near) => fault.with_help(format!("did you mean `{near}`?")),
                None => fault,
            });
        }
        [(first, _), (second, _), ..] => {
            let message = format!("{what} has both `{first}` and `{second}`: make it two steps");
            faults.push(table.place().fault(message));
        }
    }
}
