//! One value of a machine file or an override, checked against its key's kind and unit.
//!
//! Numbers may carry their unit as text (`"160ns"`, `"1.8GHz"`, `"2KiB"`); it is converted to the key's unit,
//! and a unit of another dimension is a fault that says so.

use serde_json::Value;

use super::toml::Item;
use super::value::Value as Number;
use crate::spec::{Key, Kind, Megahertz, Nanos, Picojoules, Sizes};

/// A scalar as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Whole(i64),
    Decimal(f64),
    Flag(bool),
    Text(String),
    /// A list, a table, a date, a number that does not fit, described: never right.
    Other(String),
}

impl Scalar {
    /// The scalar that a document has.
    pub(super) fn from_item(item: Item<'_>) -> Self {
        match (item.number(), item.boolean(), item.text()) {
            (Some(Number::Int(n)), ..) => Scalar::Whole(n),
            (Some(Number::Float(x)), ..) => Scalar::Decimal(x),
            (_, Some(b), _) => Scalar::Flag(b),
            (.., Some(s)) => Scalar::Text(s.to_owned()),
            _ => Scalar::Other(item.described().into_owned()),
        }
    }

    /// The scalar that an override of a key was typed as.
    pub(super) fn typed(key: &Key, text: &str) -> Self {
        let text = text.trim_matches('"');
        if key.kind == Kind::Text {
            return Scalar::Text(text.to_owned());
        }
        match (text.parse::<i64>(), text.parse::<f64>(), text) {
            (Ok(n), ..) => Scalar::Whole(n),
            (_, Ok(x), _) => Scalar::Decimal(x),
            (.., "true") => Scalar::Flag(true),
            (.., "false") => Scalar::Flag(false),
            _ => Scalar::Text(text.to_owned()),
        }
    }

    fn display(&self) -> String {
        match self {
            Scalar::Whole(n) => n.to_string(),
            Scalar::Decimal(x) => x.to_string(),
            Scalar::Flag(b) => b.to_string(),
            Scalar::Text(s) => format!("\"{s}\""),
            Scalar::Other(what) => what.clone(),
        }
    }
}

/// What is wrong with a value, and a near name if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ValueFault {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Physical dimensions of units, with each unit as a multiple of the dimension's base (ps, kHz, fJ, bytes).
const UNITS: [(&str, &str, f64); 22] = [
    ("ps", "a time", 1.0),
    ("ns", "a time", 1e3),
    ("us", "a time", 1e6),
    ("µs", "a time", 1e6),
    ("ms", "a time", 1e9),
    ("s", "a time", 1e12),
    ("kHz", "a frequency", 1.0),
    ("MHz", "a frequency", 1e3),
    ("GHz", "a frequency", 1e6),
    ("fJ", "an energy", 1.0),
    ("pJ", "an energy", 1e3),
    ("nJ", "an energy", 1e6),
    ("B", "a size", 1.0),
    ("bytes", "a size", 1.0),
    ("kB", "a size", 1024.0),
    ("KiB", "a size", 1024.0),
    ("MB", "a size", 1048576.0),
    ("MiB", "a size", 1048576.0),
    ("GB", "a size", 1073741824.0),
    ("GiB", "a size", 1073741824.0),
    ("cycles", "a number of cycles", 1.0),
    ("cycle", "a number of cycles", 1.0),
];

/// The highest clock that is taken for one, 100 GHz: what is beyond it is GHz for MHz.
const MOST_KHZ: u64 = 100_000_000;

/// The unit that a key's name ends in, its dimension, and the unit's size in the dimension's base.
fn unit_of_key(key: &Key) -> Option<(&'static str, &'static str, f64)> {
    let (unit, dimension, size) = match key.name.rsplit('_').next()? {
        "ns" => ("ns", "a time", 1e3),
        "mhz" => ("MHz", "a frequency", 1e3),
        "pj" => ("pJ", "an energy", 1e3),
        "kb" => ("KiB", "a size", 1024.0),
        "bytes" => ("bytes", "a size", 1.0),
        "cycles" => ("cycles", "a number of cycles", 1.0),
        _ => return None,
    };
    Some((unit, dimension, size))
}

/// The unit that a key's name ends in.
pub fn unit_of(key: &Key) -> Option<&'static str> {
    unit_of_key(key).map(|(unit, ..)| unit)
}

/// What a key expects, in words.
pub fn expectation(key: &Key) -> String {
    let unit = unit_of_key(key).map_or(String::new(), |(unit, ..)| format!(" of {unit}"));
    match key.kind {
        Kind::Whole { min, max } if max >= u64::from(u32::MAX) => format!("a whole number{unit}, at least {min}"),
        Kind::Whole { min, max } => format!("a whole number{unit} from {min} to {max}"),
        Kind::Nanos => "a time in ns, for example 160, 0.4 or \"1.5us\"".to_owned(),
        Kind::Megahertz => "a frequency in MHz up to 100000, for example 1400 or \"1.4GHz\"".to_owned(),
        Kind::Picojoules => "an energy in pJ, for example 2.47 or \"1.2nJ\"".to_owned(),
        Kind::Sizes => format!("sizes{unit} that rise, between commas, for example \"0,8,16\""),
        Kind::Flag => "true or false".to_owned(),
        Kind::Text => "a text in quotes".to_owned(),
        Kind::Choice(names) => format!("one of {}", names.join(", ")),
    }
}

/// Checks a value and converts it to what the key's Spec deserialises.
pub(super) fn check(key: &Key, scalar: &Scalar) -> Result<Value, ValueFault> {
    let wrong = || ValueFault {
        message: format!("`{}` expects {}; got {}", key.name, expectation(key), scalar.display()),
        help: None,
    };
    if let Kind::Choice(names) = key.kind {
        let Scalar::Text(text) = scalar else { return Err(wrong()) };
        if names.contains(&text.as_str()) {
            return Ok(Value::String(text.clone()));
        }
        let near = crate::diagnostic::nearest(text, names.iter().copied());
        return Err(ValueFault { help: near.map(|n| format!("did you mean \"{n}\"?")), ..wrong() });
    }
    if key.kind == Kind::Sizes {
        // A single size may be written as a number.
        let text = match scalar {
            Scalar::Text(text) => text.clone(),
            Scalar::Whole(size) => size.to_string(),
            Scalar::Decimal(size) => whole(*size).map(|size| size.to_string()).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        return Sizes::from_text(&text).map(|sizes| Value::String(sizes.to_string())).ok_or_else(wrong);
    }
    if key.kind == Kind::Text {
        return match scalar {
            Scalar::Text(text) => Ok(Value::String(text.clone())),
            _ => Err(wrong()),
        };
    }
    if key.kind == Kind::Flag {
        return match scalar {
            Scalar::Flag(b) => Ok(Value::Bool(*b)),
            _ => Err(wrong()),
        };
    }
    // Words, texts and flags have returned: what is left is a number, perhaps with a unit.
    let number = match scalar {
        Scalar::Whole(n) => *n as f64,
        Scalar::Decimal(x) => *x,
        Scalar::Text(text) => with_unit(key, text).map_err(|why| match why {
            Some(why) => ValueFault { message: why, help: None },
            None => wrong(),
        })?,
        Scalar::Flag(_) | Scalar::Other(_) => return Err(wrong()),
    };
    match key.kind {
        // Integers as they are written are exact beyond 2^53, where floats are not.
        Kind::Whole { min, max } => {
            let exact = match scalar {
                Scalar::Whole(n) => u64::try_from(*n).ok(),
                _ => whole(number),
            };
            exact.filter(|n| (min..=max).contains(n)).map(|n| Value::Number(n.into()))
        }
        Kind::Nanos if Nanos::from_decimal(number).is_some() => decimal(number),
        Kind::Picojoules if Picojoules::from_decimal(number).is_some() => decimal(number),
        Kind::Megahertz if Megahertz::from_decimal(number).is_some_and(|f| (1..=MOST_KHZ).contains(&f.khz)) => {
            decimal(number)
        }
        _ => None,
    }
    .ok_or_else(wrong)
}

/// The whole number that a float is, none from 2^53 on, where floats are farther apart than 1. A unit's
/// conversion may leave a rounding error: a number this close to a whole one is meant as it.
fn whole(number: f64) -> Option<u64> {
    let near = number.round();
    let exact = (0.0..(1u64 << 53) as f64).contains(&near) && (number - near).abs() <= 1e-9 * near;
    exact.then_some(near as u64)
}

/// Adding 0 makes 0 of -0, which would be told as `-0`.
fn decimal(number: f64) -> Option<Value> {
    serde_json::Number::from_f64(number + 0.0).map(Value::Number)
}

/// A number with a unit, in the key's unit. `Err(None)` when it is no number at all.
fn with_unit(key: &Key, text: &str) -> Result<f64, Option<String>> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
    let number: f64 = text[..split].replace('_', "").parse().map_err(|_| None)?;
    let unit = text[split..].trim();
    if unit.is_empty() {
        return Ok(number);
    }
    // Sizes are written in any case; `mS` and `Ms` would not be one time.
    let is_size = |dimension: &str| dimension == "a size";
    let spelt = |(name, dimension, _): &&(&str, &str, f64)| is_size(dimension) && name.eq_ignore_ascii_case(unit);
    let known = UNITS.iter().find(|(name, ..)| *name == unit).or_else(|| UNITS.iter().find(spelt));
    let Some(&(_, dimension, size)) = known else {
        let known: Vec<&str> = UNITS.iter().map(|u| u.0).collect();
        return Err(Some(format!("`{}` has an unknown unit in \"{text}\"; units are {}", key.name, known.join(", "))));
    };
    match unit_of_key(key) {
        Some((_, wanted, base)) if wanted == dimension => Ok(number * size / base),
        Some((unit, wanted, _)) => {
            Err(Some(format!("`{}` is {wanted} in {unit}, but \"{text}\" is {dimension}: wrong unit", key.name)))
        }
        None => Err(Some(format!("`{}` is a plain number, but \"{text}\" is {dimension}: wrong unit", key.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &'static str, kind: Kind) -> Key {
        Key { name, doc: "", kind }
    }

    fn of(name: &'static str, kind: Kind, scalar: Scalar) -> Result<String, String> {
        check(&key(name, kind), &scalar).map(|v| v.to_string()).map_err(|f| f.message)
    }

    const SIZE: Kind = Kind::Whole { min: 1, max: 65536 };

    #[test]
    fn units_convert_to_the_keys_unit() {
        assert_eq!(of("slice_kb", SIZE, Scalar::Text("1MiB".into())).as_deref(), Ok("1024"));
        for text in ["256kB", "256KB", "256kb", "256 KiB", "256kib"] {
            assert_eq!(of("slice_kb", SIZE, Scalar::Text(text.into())).as_deref(), Ok("256"), "{text}");
        }
        assert!(of("read_ns", Kind::Nanos, Scalar::Text("1 NS".into())).unwrap_err().contains("units are ps, ns"));
        assert_eq!(of("row_bytes", SIZE, Scalar::Text("2KiB".into())).as_deref(), Ok("2048"));
        assert_eq!(of("read_ns", Kind::Nanos, Scalar::Text("1.5us".into())).as_deref(), Ok("1500.0"));
        assert_eq!(of("core_mhz", Kind::Megahertz, Scalar::Text("1.8 GHz".into())).as_deref(), Ok("1800.0"));
    }

    #[test]
    fn a_unit_of_another_dimension_is_named() {
        let fault = of("slice_kb", SIZE, Scalar::Text("160ns".into())).unwrap_err();
        assert_eq!(fault, "`slice_kb` is a size in KiB, but \"160ns\" is a time: wrong unit");
        let fault = of("hit_cycles", SIZE, Scalar::Text("10ns".into())).unwrap_err();
        assert!(fault.contains("a number of cycles"), "{fault}");
    }

    #[test]
    fn ranges_fractions_and_types_are_checked() {
        assert!(of("ways", SIZE, Scalar::Whole(0)).unwrap_err().contains("from 1 to 65536; got 0"));
        assert!(of("ways", SIZE, Scalar::Decimal(1.5)).is_err());
        assert!(of("ways", SIZE, Scalar::Flag(true)).is_err());
        assert!(of("on", Kind::Flag, Scalar::Whole(1)).unwrap_err().contains("true or false"));
        let sizes = |scalar| of("steps_kb", Kind::Sizes, scalar);
        assert_eq!(sizes(Scalar::Text("0, 8,16".into())).as_deref(), Ok("\"0,8,16\""));
        assert_eq!(sizes(Scalar::Whole(0)).as_deref(), Ok("\"0\""));
        for wrong in ["", "8,8", "16,8", "1.5", "-8", "nan", "0,", "99999999999"] {
            let fault = sizes(Scalar::Text(wrong.into())).unwrap_err();
            assert!(fault.contains("sizes of KiB that rise"), "{wrong}: {fault}");
        }
        assert!(sizes(Scalar::Whole(-1)).is_err() && sizes(Scalar::Decimal(8.5)).is_err());
        assert!(of("read_ns", Kind::Nanos, Scalar::Decimal(0.0001)).is_err());
        let clock = |scalar| of("core_mhz", Kind::Megahertz, scalar);
        assert!(clock(Scalar::Whole(0)).is_err());
        assert_eq!(clock(Scalar::Text("100GHz".into())).as_deref(), Ok("100000.0"));
        assert!(clock(Scalar::Text("1400 GHz".into())).unwrap_err().contains("a frequency in MHz up to 100000"));
    }

    #[test]
    fn what_is_no_number_is_no_whole_number() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300, 9_007_199_254_740_992.0] {
            let all = Kind::Whole { min: 0, max: i64::MAX as u64 };
            assert!(of("ways", all, Scalar::Decimal(number)).is_err(), "{number}");
            assert!(of("read_ns", Kind::Nanos, Scalar::Decimal(number)).is_err() || number == 9_007_199_254_740_992.0);
        }
        assert_eq!(of("ways", Kind::Whole { min: 0, max: 9 }, Scalar::Decimal(-0.0)).as_deref(), Ok("0"));
        assert_eq!(of("read_ns", Kind::Nanos, Scalar::Decimal(-0.0)).as_deref(), Ok("0.0"));
        let exact = of("seed", Kind::Whole { min: 0, max: u64::MAX }, Scalar::Whole(9_007_199_254_740_993));
        assert_eq!(exact.as_deref(), Ok("9007199254740993"), "integers are not rounded");
    }

    #[test]
    fn a_misspelt_choice_gets_the_nearest() {
        let fault = check(&key("policy", Kind::Choice(&["gto", "lrr"])), &Scalar::Text("gtoo".into())).unwrap_err();
        assert_eq!(fault.help.as_deref(), Some("did you mean \"gto\"?"));
    }
}
