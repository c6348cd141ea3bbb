//! The manifest's conditions in a crash test: judged on every image, counted, and compared with what the
//! manifest expects of them under the run's scheme and domain.
//!
//! Invariants: a condition that must hold is a failure on the first image that violates it; one that must be
//! violated is as expected once any image violates it, and not as expected only when all levels were judged
//! to their ends.

use serde::Serialize;

use super::found::Found;
use durawarp_oracle::judge::{Check, Violation};
use durawarp_oracle::verdict::{ConditionCount, Failure, WrongBytes, WrongElement, WrongValue};
use durawarp_persist::PmImage;
use durawarp_persist::vocab::Domain;
use durawarp_workload::{CrashCondition, Expected};

/// What became of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    pub name: String,
    /// Its expression.
    pub holds: String,
    /// Which image it is about: `recovered` or `survived`.
    pub on: &'static str,
    /// The passage it stands for.
    pub source: Option<String>,
    /// What the manifest expects.
    pub expected: Expected,
    /// Images on which it held, by level: A, B, C.
    pub held: [u64; 3],
    /// Images on which it did not.
    pub violated: [u64; 3],
    /// Its first violation.
    pub first: Option<Found>,
    /// Whether it came as the manifest expects.
    pub as_expected: bool,
}

/// A condition under the scheme and domain of a run.
#[derive(Debug)]
pub(super) struct Bound {
    condition: CrashCondition,
    expected: Expected,
}

impl Bound {
    pub(super) fn new(condition: CrashCondition, scheme: &str, domain: Domain) -> Bound {
        let expected = condition.expected(scheme, domain.name());
        Bound { condition, expected }
    }

    /// Whether the manifest expects anything of it under this scheme and domain.
    pub(super) fn is_expected(&self) -> bool {
        self.expected != Expected::Nothing
    }

    /// Whether it is about what the power failure left.
    pub(super) fn on_survived(&self) -> bool {
        self.condition.on_survived()
    }

    /// Which image it is about.
    fn on(&self) -> &'static str {
        if self.on_survived() { "survived" } else { "recovered" }
    }

    /// What it came to, from its counts at all levels; `complete` when these saw all that there is to see.
    pub(super) fn report(
        &self,
        counts: [Option<&ConditionCount>; 3],
        complete: bool,
        found: &dyn Fn(&Failure) -> Found,
    ) -> Condition {
        let of = |count: fn(&ConditionCount) -> u64| counts.map(|counts| counts.map_or(0, count));
        let violated = of(|count| count.violated);
        let seen = violated != [0; 3];
        Condition {
            name: self.condition.name().to_owned(),
            holds: self.condition.text().to_owned(),
            on: self.on(),
            source: self.condition.source().map(str::to_owned),
            expected: self.expected,
            held: of(|count| count.held),
            violated,
            first: counts.into_iter().flatten().find_map(|count| count.first.as_ref()).map(found),
            as_expected: match self.expected {
                Expected::Holds => !seen,
                Expected::Violated => seen || !complete,
                Expected::Nothing => true,
            },
        }
    }
}

/// A wrong element of the program, as verdicts have it.
pub(super) fn wrong_value(wrong: durawarp_workload::WrongElement) -> WrongValue {
    let durawarp_workload::WrongElement { name, ty, found, expected, given, bytes } = wrong;
    WrongValue {
        bytes: bytes.map(|(address, found)| WrongBytes { address, found, expected: None }),
        element: Some(WrongElement { name, ty: ty.map(str::to_owned), found, expected, given }),
    }
}

impl Check for Bound {
    fn name(&self) -> &str {
        self.condition.name()
    }

    fn judge_briefly(&self, survived: &PmImage, recovered: &PmImage, told: bool) -> Result<(), Violation> {
        let image = if self.on_survived() { survived } else { recovered };
        match self.condition.holds(image.base(), image.bytes()) {
            true => Ok(()),
            false if told => self.judge(survived, recovered),
            false => Err(Violation::default()),
        }
    }

    fn judge(&self, survived: &PmImage, recovered: &PmImage) -> Result<(), Violation> {
        let image = if self.on_survived() { survived } else { recovered };
        self.condition.judge(image.base(), image.bytes()).map_err(|broken| {
            let (name, on) = (self.name(), self.on());
            let what = match broken.fault {
                Some(fault) => format!("condition `{name}` has no value on the {on} image: {fault}"),
                None if broken.more => {
                    format!("condition `{name}` does not hold on the {on} image; the first of many values")
                }
                None => format!("condition `{name}` does not hold on the {on} image"),
            };
            Violation { what, values: broken.elements.into_iter().map(wrong_value).collect() }
        })
    }

    fn binds(&self) -> bool {
        self.expected == Expected::Holds
    }
}
