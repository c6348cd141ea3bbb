//! How components and schemes declare their parameters: a plain struct whose fields carry their meaning, unit
//! and valid range.
//!
//! Each owns its Spec; `config` composes them, checks files and overrides against [`Spec::KEYS`] and knows
//! nothing else about them. The unit is the last word of a key (`latency_cycles`, `slice_kb`, `read_ns`).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration in nanoseconds as written in a file, kept exactly as picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Nanos {
    /// Picoseconds.
    pub ps: u64,
}

/// A frequency in MHz as written in a file, kept exactly as kHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Megahertz {
    /// Kilohertz.
    pub khz: u64,
}

/// An energy in picojoules as written in a file, kept exactly as femtojoules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Picojoules {
    /// Femtojoules.
    pub fj: u64,
}

/// Sizes that rise, written between commas: `"0,8,16"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(Vec<u32>);

impl Sizes {
    /// Of whole numbers between commas, each greater than the one before.
    pub fn from_text(text: &str) -> Option<Self> {
        let sizes: Option<Vec<u32>> = text.split(',').map(|size| size.trim().parse().ok()).collect();
        sizes.filter(|sizes| sizes.is_sorted_by(|one, next| one < next)).map(Sizes)
    }

    /// The least of them that is not below `size`.
    pub fn at_least(&self, size: u32) -> Option<u32> {
        self.iter().find(|&own| own >= size)
    }

    /// All of them, from the least on.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, size) in self.iter().enumerate() {
            write!(f, "{}{size}", if nth > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::from_text(&text).ok_or_else(|| serde::de::Error::custom("expected sizes that rise, between commas"))
    }
}

/// The nearest thousandths of a decimal number that has at most three decimals; `None` when negative or
/// finer. What is written with three decimals is a binary fraction nearby.
fn thousandths(value: f64) -> Option<u64> {
    let scaled = value * 1000.0;
    let whole = scaled.round();
    ((0.0..9e15).contains(&whole) && (scaled - whole).abs() <= 1e-9 * whole).then_some(whole as u64)
}

macro_rules! decimal {
    ($name:ident, $field:ident, $what:literal) => {
        impl $name {
            /// From a number in the unit that files use; at most three decimals.
            pub fn from_decimal(value: f64) -> Option<Self> {
                thousandths(value).map(|$field| $name { $field })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.$field % 1000 {
                    0 => write!(f, "{}", self.$field / 1000),
                    _ => write!(f, "{}", self.$field as f64 / 1000.0),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match self.$field % 1000 {
                    0 => s.serialize_u64(self.$field / 1000),
                    _ => s.serialize_f64(self.$field as f64 / 1000.0),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum Number {
                    Whole(u64),
                    Decimal(f64),
                }
                let value = match Number::deserialize(d)? {
                    Number::Whole(n) => n as f64,
                    Number::Decimal(x) => x,
                };
                Self::from_decimal(value).ok_or_else(|| {
                    serde::de::Error::custom(concat!("expected ", $what, " with at most three decimals"))
                })
            }
        }
    };
}

decimal!(Nanos, ps, "a duration in ns");
decimal!(Megahertz, khz, "a frequency in MHz");
decimal!(Picojoules, fj, "an energy in pJ");

/// What values a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number in an inclusive range.
    Whole {
        /// Least valid value.
        min: u64,
        /// Greatest valid value.
        max: u64,
    },
    /// A duration in ns, at most three decimals.
    Nanos,
    /// A frequency in MHz, greater than 0.
    Megahertz,
    /// An energy in pJ, at most three decimals.
    Picojoules,
    /// Whole numbers that rise, between commas.
    Sizes,
    /// `true` or `false`.
    Flag,
    /// A name or a text, which its owner reads; it may be empty.
    Text,
    /// One of these names.
    Choice(&'static [&'static str]),
}

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name in its table.
    pub name: &'static str,
    /// Meaning.
    pub doc: &'static str,
    /// Valid values.
    pub kind: Kind,
}

/// The parameters of a component or a scheme.
pub trait Spec: Serialize + for<'de> Deserialize<'de> {
    /// Every key in declaration order.
    const KEYS: &'static [Key];
}

/// A type that a key's value may have.
pub trait Parameter {
    /// Its kind when the declaration gives no range.
    const KIND: Kind;
}

impl Parameter for u32 {
    const KIND: Kind = Kind::Whole { min: 0, max: u32::MAX as u64 };
}
impl Parameter for u64 {
    const KIND: Kind = Kind::Whole { min: 0, max: i64::MAX as u64 };
}
impl Parameter for Sizes {
    const KIND: Kind = Kind::Sizes;
}
impl Parameter for bool {
    const KIND: Kind = Kind::Flag;
}
impl Parameter for String {
    const KIND: Kind = Kind::Text;
}
impl Parameter for Nanos {
    const KIND: Kind = Kind::Nanos;
}
impl Parameter for Megahertz {
    const KIND: Kind = Kind::Megahertz;
}
impl Parameter for Picojoules {
    const KIND: Kind = Kind::Picojoules;
}

/// Declares a Spec: `/// doc` and `name: type` or `name: type in min..=max` a line.
#[macro_export]
macro_rules! spec {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident : $ty:ty $(where $min:literal ..= $max:literal)? ,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $ty,)* }

        impl $crate::spec::Spec for $name {
            const KEYS: &'static [$crate::spec::Key] = &[$($crate::spec::Key {
                name: stringify!($field),
                doc: concat!($($doc,)+),
                kind: $crate::spec!(@kind $ty $(, $min, $max)?),
            },)*];
        }
    };
    (@kind $ty:ty) => { <$ty as $crate::spec::Parameter>::KIND };
    (@kind $ty:ty, $min:literal, $max:literal) => { $crate::spec::Kind::Whole { min: $min, max: $max } };
}

/// Declares a machine: a Spec for each of its tables.
#[macro_export]
macro_rules! machine_spec {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[doc = $doc:literal])+ $table:ident : $spec:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[doc = $doc])+ pub $table: $spec,)* }

        impl $name {
            /// Every table with its keys, in the order of declaration.
            pub const TABLES: &'static [(&'static str, &'static [$crate::spec::Key])] =
                &[$((stringify!($table), <$spec as $crate::spec::Spec>::KEYS),)*];
        }
    };
}

/// Declares an enum that is written as a name in files.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[doc = $doc])+ #[serde(rename = $text)] $variant,)* }

        impl $crate::spec::Parameter for $name {
            const KIND: $crate::spec::Kind = $crate::spec::Kind::Choice(&[$($text,)*]);
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macros declare public items")]
mod tests {
    use super::*;

    choice! {
        /// A colour.
        pub enum Colour {
            /// Red.
            Red = "red",
            /// Blue.
            Blue = "blue",
        }
    }

    spec! {
        /// A sample.
        pub struct Sample {
            /// Entries.
            entries: u32 where 1..=64,
            /// Latency.
            latency_ns: Nanos,
            /// Colour.
            colour: Colour,
        }
    }

    #[test]
    fn a_spec_lists_its_keys_with_kinds_and_docs() {
        assert_eq!(Sample::KEYS[0].kind, Kind::Whole { min: 1, max: 64 });
        assert_eq!(Sample::KEYS[1].kind, Kind::Nanos);
        assert_eq!(Sample::KEYS[2].kind, Kind::Choice(&["red", "blue"]));
        assert_eq!(Sample::KEYS[0].doc.trim(), "Entries.");
    }

    #[test]
    fn decimals_are_kept_exactly_and_written_as_they_came() {
        let sample: Sample = serde_json::from_str(r#"{"entries":3,"latency_ns":0.4,"colour":"blue"}"#).unwrap();
        assert_eq!(sample.latency_ns.ps, 400);
        assert_eq!(serde_json::to_string(&sample).unwrap(), r#"{"entries":3,"latency_ns":0.4,"colour":"blue"}"#);
        assert_eq!(Nanos::from_decimal(0.0004), None);
        for wrong in [-1.0, 1e-9, f64::NAN, f64::INFINITY, 9e12] {
            assert_eq!(Nanos::from_decimal(wrong), None, "{wrong}");
        }
    }
}
