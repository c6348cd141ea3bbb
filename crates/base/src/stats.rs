//! Statistics as plain data: counters and histograms that a component owns, and the macro that gives each
//! counter a unit and a description.
//!
//! Invariants: counters only grow and the model never reads them; outcomes merge them in component order, so
//! they are the same at any thread count. Derived figures (rates, shares) belong to `report`, not here.

mod histogram;

pub use histogram::Histogram;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One counter's name, unit and meaning, for tables and for the documented result schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Description {
    /// Field name in the result file.
    pub name: &'static str,
    /// What it counts, with its unit.
    pub doc: &'static str,
}

/// A set of counters: plain `u64` fields that add up over components.
pub trait Counters: Default + Serialize {
    /// Every field in declaration order.
    const DESCRIPTIONS: &'static [Description];

    /// Adds another component's counters to these.
    fn add(&mut self, other: &Self);

    /// The values, in the order of [`Counters::DESCRIPTIONS`].
    fn values(&self) -> Vec<u64>;
}

/// Counters by `kind.name`, summed over components.
pub type CounterSums = BTreeMap<String, u64>;

/// The counters of all components of one kind.
///
/// Invariant: every row has a value for each name; a table that is read is refused otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ReadTable")]
pub struct Table {
    /// Kind of component: "sm", "l2", "memory_controller".
    pub kind: String,
    /// Name of each counter.
    pub names: Vec<String>,
    /// Meaning and unit of each counter.
    pub docs: Vec<String>,
    /// One row a component, in the order of their indices; columns as in `names`.
    pub rows: Vec<Vec<u64>>,
}

/// A table as it is read.
#[derive(Deserialize)]
struct ReadTable {
    kind: String,
    names: Vec<String>,
    docs: Vec<String>,
    rows: Vec<Vec<u64>>,
}

impl TryFrom<ReadTable> for Table {
    type Error = String;

    fn try_from(read: ReadTable) -> Result<Self, String> {
        let ReadTable { kind, names, docs, rows } = read;
        let wrong = rows.iter().enumerate().find(|(_, row)| row.len() != names.len());
        if let Some((nth, row)) = wrong {
            return Err(format!("row {nth} of table `{kind}` has {} values for {} names", row.len(), names.len()));
        }
        if docs.len() != names.len() {
            return Err(format!("table `{kind}` has {} docs for {} names", docs.len(), names.len()));
        }
        let total = |column: usize| rows.iter().try_fold(0_u64, |sum, row| sum.checked_add(row[column]));
        match (0..names.len()).find(|&column| total(column).is_none()) {
            Some(column) => Err(format!("counter `{}` of table `{kind}` is beyond 64 bits in total", names[column])),
            None => Ok(Table { kind, names, docs, rows }),
        }
    }
}

impl Table {
    /// The table of `components`, in order.
    pub fn of<C: Counters>(kind: &str, components: &[C]) -> Self {
        Table {
            kind: kind.to_owned(),
            names: C::DESCRIPTIONS.iter().map(|d| d.name.to_owned()).collect(),
            docs: C::DESCRIPTIONS.iter().map(|d| d.doc.to_owned()).collect(),
            rows: components.iter().map(C::values).collect(),
        }
    }

    /// Each counter's sum over components, as `kind.name`.
    pub fn totals(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let total = |column: usize| self.rows.iter().map(|row| row[column]).sum();
        self.names.iter().enumerate().map(move |(column, name)| (format!("{}.{name}", self.kind), total(column)))
    }

    /// A counter's sum over components.
    ///
    /// # Panics
    /// No counter has this name.
    pub fn total(&self, name: &str) -> u64 {
        let Some(column) = self.names.iter().position(|n| n == name) else {
            panic!("table `{}` has no counter `{name}`", self.kind)
        };
        self.rows.iter().map(|row| row[column]).sum()
    }
}

/// A doc comment without the space after its slashes.
#[doc(hidden)]
pub const fn trimmed(doc: &'static str) -> &'static str {
    doc.trim_ascii()
}

/// Declares a struct of `u64` counters; each field's doc comment is its description in results.
#[macro_export]
macro_rules! counters {
    ($(#[$meta:meta])* pub struct $name:ident { $(#[doc = $doc:literal] $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $(#[doc = $doc] pub $field: u64,)* }

        impl $name {
            /// Adds what was counted from `from` to `to`, two readings of the same counters.
            pub fn add_growth(&mut self, from: &Self, to: &Self) { $(self.$field += to.$field - from.$field;)* }
        }

        $crate::checkpoint::value!(record $name { $($field),* });

        impl $crate::stats::Counters for $name {
            const DESCRIPTIONS: &'static [$crate::stats::Description] =
                &[$($crate::stats::Description { name: stringify!($field), doc: $crate::stats::trimmed($doc) },)*];

            fn add(&mut self, other: &Self) { $(self.$field += other.$field;)* }

            fn values(&self) -> Vec<u64> { vec![$(self.$field,)*] }
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macros declare public items")]
mod tests {
    use super::{Counters as _, Table};

    counters! {
        /// Two counters.
        pub struct Sample {
            /// Apples (pieces)
            apples,
            /// Pears (pieces)
            pears,
        }
    }

    #[test]
    fn a_table_sums_columns_over_components() {
        let table = Table::of("sample", &[Sample { apples: 1, pears: 2 }, Sample { apples: 10, pears: 20 }]);
        assert_eq!((table.total("apples"), table.total("pears")), (11, 22));
    }

    #[test]
    fn a_table_that_is_read_has_a_value_for_each_name() {
        let read = |names: &str, docs: &str, rows: &str| {
            let text = format!(r#"{{"kind": "sm", "names": [{names}], "docs": [{docs}], "rows": [{rows}]}}"#);
            serde_json::from_str::<Table>(&text).map_err(|fault| fault.to_string())
        };
        assert_eq!(read(r#""a", "b""#, r#""", """#, "[1, 2], [3, 4]").unwrap().total("b"), 6);
        let faults = [
            read(r#""a", "b""#, r#""", """#, "[1, 2], [3]").unwrap_err(),
            read(r#""a""#, r#""", """#, "[1]").unwrap_err(),
            read(r#""a""#, r#""""#, "[18446744073709551615], [1]").unwrap_err(),
        ];
        let expected = ["row 1 of table `sm` has 1 values for 2 names", "has 2 docs for 1 names", "is beyond 64 bits"];
        for (found, expected) in faults.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn growth_is_the_difference_of_two_readings() {
        let mut total = Sample { apples: 1, pears: 0 };
        total.add_growth(&Sample { apples: 10, pears: 20 }, &Sample { apples: 12, pears: 20 });
        assert_eq!(total.values(), [3, 0]);
    }

    #[test]
    fn counters_add_up_and_describe_themselves() {
        let mut total = Sample { apples: 1, pears: 2 };
        total.add(&Sample { apples: 10, pears: 20 });
        assert_eq!(total.values(), [11, 22]);
        assert_eq!(Sample::DESCRIPTIONS[1].doc, "Pears (pieces)");
    }
}
