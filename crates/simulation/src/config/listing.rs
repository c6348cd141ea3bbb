//! A machine or a scheme as a flat list, every parameter by `table.key` with its value and its owner; two
//! lists compared.
//!
//! Values are in their keys' units, so that what was written as 128, "128KiB" or 0x80 is the same here;
//! names, descriptions and the files that values come through are no parameters. Left out: what follows from
//! values together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::any_machine::AnyMachine;
use super::compute::Compute;
use super::kind::Kind;
use super::scheme::SchemeConfig;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::Override;

/// A parameter's value and its owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned {
    /// In the key's unit.
    pub value: Value,
    /// Where it comes from.
    pub source: String,
}

/// A machine or a scheme, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Which of them it is.
    pub kind: Kind,
    /// What it is called: its file may say so.
    pub name: String,
    /// The scheme that it is, whatever its file calls it; `None` for a machine.
    pub scheme: Option<&'static str>,
    /// Every parameter by `table.key`.
    pub parameters: BTreeMap<String, Owned>,
    /// What each bit of an address decides, on a machine.
    pub bits: Vec<String>,
}

/// A parameter that two lists do not have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// `table.key`.
    pub key: String,
    /// What the first has; `None` when it has no such key.
    pub one: Option<Owned>,
    /// What the second has.
    pub other: Option<Owned>,
}

/// Two lists beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Parameters whose values differ, or that only one has, in the order of their names.
    pub differences: Vec<Difference>,
    /// Parameters with equal values.
    pub equal: usize,
    /// Of these, such with different owners.
    pub other_sources: usize,
    /// They are different schemes.
    pub schemes: Option<(&'static str, &'static str)>,
}

impl Comparison {
    /// Runs under the two have the same results.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.schemes.is_none()
    }
}

/// A value as text, a number without a point where it is whole.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(x) if x.fract() == 0.0 && x.abs() < 9e15 => format!("{x:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

impl Listing {
    /// The machine or scheme called `name_or_path`, with overrides applied.
    ///
    /// # Errors
    /// As [`Kind::of`], [`AnyMachine::load`] and [`SchemeConfig::load`].
    pub fn load(name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        Ok(match Kind::of(name_or_path)? {
            Kind::Machine | Kind::CpuMachine => Self::of_machine(&AnyMachine::load(name_or_path, overrides)?),
            Kind::Scheme => Self::of_scheme(&SchemeConfig::load(name_or_path, overrides)?),
        })
    }

    /// A machine.
    pub(crate) fn of_machine(machine: &AnyMachine) -> Self {
        let parameters = owned(machine.values(), machine.sources());
        let kind = match machine.compute() {
            Compute::Gpu => Kind::Machine,
            Compute::Cpu => Kind::CpuMachine,
        };
        Listing { kind, name: machine.name().to_owned(), scheme: None, parameters, bits: machine.mapping_bits() }
    }

    /// A scheme.
    pub fn of_scheme(scheme: &SchemeConfig) -> Self {
        let parameters = owned(scheme.values.clone(), &scheme.sources);
        let (name, built) = (scheme.name.clone(), scheme.built.name());
        Listing { kind: Kind::Scheme, name, scheme: Some(built), parameters, bits: Vec::new() }
    }

    /// What differs between this and another of its kind.
    pub fn compared_with(&self, other: &Listing) -> Comparison {
        let (mut differences, mut equal, mut other_sources) = (Vec::new(), 0, 0);
        let only_other = other.parameters.keys().filter(|key| !self.parameters.contains_key(*key));
        let mut keys: Vec<&String> = self.parameters.keys().chain(only_other).collect();
        keys.sort_unstable();
        for key in keys {
            match (self.parameters.get(key), other.parameters.get(key)) {
                (Some(one), Some(two)) if shown(&one.value) == shown(&two.value) => {
                    equal += 1;
                    other_sources += usize::from(one.source != two.source);
                }
                (one, two) => {
                    let difference = Difference { key: key.clone(), one: one.cloned(), other: two.cloned() };
                    differences.push(difference);
                }
            }
        }
        let schemes = self.scheme.zip(other.scheme).filter(|(one, two)| one != two);
        Comparison { differences, equal, other_sources, schemes }
    }
}

fn owned(values: BTreeMap<String, Value>, sources: &BTreeMap<String, String>) -> BTreeMap<String, Owned> {
    let of = |(key, value): (String, Value)| {
        let source = sources.get(&key).cloned().unwrap_or_default();
        (key, Owned { value, source })
    };
    values.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(name: &str, set: &[&str]) -> Listing {
        let set: Vec<Override> = set.iter().map(|text| Override::parse(text).unwrap()).collect();
        Listing::load(name, &set).unwrap()
    }

    #[test]
    fn the_same_value_written_in_another_unit_is_no_difference() {
        let plain = listing("agpm-table4", &[]);
        let own = plain.parameters["l2.slice_kb"].value.to_string();
        let again = listing("agpm-table4", &[&format!("l2.slice_kb={own}KiB"), "nvm.cell_write_ns=0.48us"]);
        let found = plain.compared_with(&again);
        assert!(found.is_equal() && found.differences.is_empty());
        assert_eq!((found.equal, found.other_sources), (plain.parameters.len(), 2));
    }

    #[test]
    fn what_differs_is_told_with_both_values_and_owners() {
        let found = listing("agpm-table4", &[]).compared_with(&listing("agpm-table4", &["l2.slice_kb=1MiB"]));
        let [Difference { key, one: Some(one), other: Some(other) }] = &found.differences[..] else {
            panic!("{found:?}")
        };
        assert_eq!((key.as_str(), shown(&other.value).as_str()), ("l2.slice_kb", "1024"));
        assert_eq!((one.source.as_str(), other.source.as_str()), ("AGPM Table IV", "user: --set"));
    }

    #[test]
    fn schemes_have_keys_that_others_have_not() {
        let found = listing("agpm", &[]).compared_with(&listing("base", &[]));
        assert!(found.differences.iter().all(|d| d.key.starts_with("agpm.") && d.other.is_none()));
        assert_eq!((found.schemes, found.equal), (Some(("agpm", "base")), 0));
        // Neither has parameters, and yet they are not the same.
        let found = listing("strict", &[]).compared_with(&listing("base", &[]));
        assert!(found.differences.is_empty() && !found.is_equal());
    }
}
