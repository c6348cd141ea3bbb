//! What is missing in a figure, and why: notes that stand below it.

use std::collections::BTreeSet;

/// Why a place in a figure is empty, or odd; in the order in which notes are told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// The point ended without a result that counts.
    Failed(String, String),
    /// The point was not run.
    Missing(String),
    /// The sweep has no such point.
    NotInSweep(String),
    /// The sweep has no baseline for the point.
    NoBaseline(String),
    /// The point has no such value.
    NoValue(String, String),
    /// The point's value is of the part of its run before the cycle limit.
    Cut(String),
    /// The point was sampled: its value is an estimate, and how wide its interval is.
    Sampled(String, String),
    /// The point, or what it is compared with, was cut: its value is of a part.
    NotWhole(String),
    /// The point stands at every value of a key that does not apply to it.
    Everywhere(String, String),
}

/// Points of one reason that are told by name.
const TOLD: usize = 6;

/// The reasons of one figure.
#[derive(Debug, Default)]
pub(super) struct Notes(BTreeSet<Why>);

impl Notes {
    pub(super) fn add(&mut self, why: Why) {
        self.0.insert(why);
    }

    /// A sentence a reason.
    pub(super) fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        let mut all = |start: &str, of: &dyn Fn(&Why) -> Option<String>| {
            let named: Vec<String> = self.0.iter().filter_map(of).collect();
            if !named.is_empty() {
                let named: Vec<&str> = named.iter().map(String::as_str).collect();
                told.push(format!("{start}: {}", listed(&named, TOLD)));
            }
        };
        let with = |point: &String, why: &String| Some(format!("{point} ({why})"));
        // First what is not shown. Failed and missing points lead, as a reader can run these again.
        all("n/a since these points failed", &|why| match why {
            Why::Failed(point, why) => with(point, why),
            _ => None,
        });
        all("n/a since these points were not run", &|why| match why {
            Why::Missing(point) => Some(point.clone()),
            _ => None,
        });
        all("n/a since the sweep has no such points", &|why| match why {
            Why::NotInSweep(place) => Some(place.clone()),
            _ => None,
        });
        all("n/a since the sweep has no baseline for these points", &|why| match why {
            Why::NoBaseline(point) => Some(point.clone()),
            _ => None,
        });
        all("n/a since there is no such value", &|why| match why {
            Why::NoValue(point, why) => Some(format!("{point} {why}")),
            _ => None,
        });
        // What is shown, but not as the reader may take it.
        all("Of the part before the cycle limit, unchecked", &|why| match why {
            Why::Cut(point) => Some(point.clone()),
            _ => None,
        });
        all("Estimates of sampled runs, with 95 % confidence", &|why| match why {
            Why::Sampled(point, interval) => with(point, interval),
            _ => None,
        });
        all("n/a since what the cycle limit cut is compared with nothing", &|why| match why {
            Why::NotWhole(point) => Some(point.clone()),
            _ => None,
        });
        all("The same at every value of a parameter that they do not have", &|why| match why {
            Why::Everywhere(series, key) => Some(format!("{series} (`{key}`)")),
            _ => None,
        });
        told
    }
}

/// Up to so many names, and how many more there are.
pub(super) fn listed(named: &[&str], told: usize) -> String {
    let shown = named[..named.len().min(told)].join("; ");
    match named.len().saturating_sub(told) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_once_and_long_lists_are_cut() {
        let mut notes = Notes::default();
        (0..9).for_each(|nth| notes.add(Why::Missing(format!("p{nth}"))));
        notes.add(Why::Missing("p0".to_owned()));
        notes.add(Why::Failed("q".to_owned(), "it stopped".to_owned()));
        let told = notes.told();
        assert_eq!(told[0], "n/a since these points failed: q (it stopped)");
        assert_eq!(told[1], "n/a since these points were not run: p0; p1; p2; p3; p4; p5; and 3 more");
        assert_eq!(told.len(), 2);
    }
}
