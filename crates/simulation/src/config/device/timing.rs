//! Timings of a device in whole cycles: those of all bins, of the bin, of the density, and overrides. Of two
//! with one name the later counts.
//!
//! A duration becomes cycles by the rule of the file's `[rounding]`. JEDEC has two:
//! * DDR4 (21-C, annex L: SPD): a duration may be short by 2.5 % of a cycle. In thousandths of a cycle, cut
//!   off, `cycles = (duration / tCK + 974) / 1000`: `guard_thousandths = 26, of = "cycle"`.
//! * DDR5 (JESD400-5): the duration is first made 0.3 % shorter, `cycles = (997 x duration / tCK + 1000) /
//!   1000`: `guard_thousandths = 3, of = "duration"`.
//!
//! Without the table a duration is rounded up exactly. What the table names in `down` is an upper bound
//! (tREFI) and is rounded down.

use std::ops::Range;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Item, Place, TomlTable, Value};

use super::expression::{Expression, ExpressionFault, Values, is_of_name};
use super::request::DeviceRequest;

/// Most timings of a device: each may follow from another.
const MOST_TIMINGS: usize = 256;

/// Most cycles of a timing.
const MOST_CYCLES: i64 = u32::MAX as i64;

/// How durations become cycles.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounding {
    guard_thousandths: u64,
    /// The guard is of the duration, not of a cycle.
    of_duration: bool,
    /// Timings that are upper bounds.
    down: Vec<String>,
}

impl Rounding {
    /// The table `[rounding]`, well-formed or not.
    pub(super) fn read(table: Option<TomlTable<'_>>, faults: &mut Diagnostics) -> Rounding {
        let Some(table) = table else { return Rounding::default() };
        let guard = table.get("guard_thousandths");
        let guard_thousandths = guard.and_then(Item::number).map_or(0, Value::bits);
        if let Some(item) = guard
            && guard_thousandths >= 1000
        {
            let message = "`guard_thousandths` must be less than 1000";
            faults.push(item.place().fault(message));
            return Rounding::default();
        }
        let of_duration = table.text("of").is_some_and(|(of, _)| of == "duration");
        let down = table.get("down").and_then(Item::list).unwrap_or_default();
        let down = down.into_iter().filter_map(Item::text).map(str::to_owned).collect();
        Rounding { guard_thousandths, of_duration, down }
    }

    fn cycles_of_ps(&self, ps: i64, t_ck_ps: u64, down: bool) -> i64 {
        let (ps, t_ck, guard) = (ps.unsigned_abs(), t_ck_ps.max(1), self.guard_thousandths);
        let cycles = match self.of_duration {
            _ if down => ps / t_ck,
            _ if guard == 0 => ps.div_ceil(t_ck),
            true => ((1000 - guard) * ps / t_ck + 1000) / 1000,
            false => (1000 * ps / t_ck + 1000 - guard) / 1000,
        };
        cycles as i64
    }
}

/// Where an expression is written.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// In the device file.
    File(Place),
    /// In the text of overrides.
    Override,
}

/// A timing as it is written.
#[derive(Debug)]
struct Timing {
    name: String,
    text: String,
    origin: Origin,
    /// `None`: it could not be read, which has been told.
    expression: Option<Expression>,
    state: Evaluated,
}

#[derive(Debug, Clone, Copy)]
enum Evaluated {
    Unknown,
    UnderWay,
    /// `None`: it has no value, which has been told.
    Known(Option<i64>),
}

/// All timings of a bin and a density, and the faults that were found in them.
pub(super) struct Timings<'a> {
    asked: &'a DeviceRequest<'a>,
    timings: Vec<Timing>,
    rounding: Rounding,
    pub(super) t_ck_ps: u64,
    pub(super) faults: Diagnostics,
}

impl<'a> Timings<'a> {
    pub(super) fn new(asked: &'a DeviceRequest<'a>, rounding: Rounding) -> Self {
        Timings { asked, timings: Vec::new(), rounding, t_ck_ps: 1000, faults: Diagnostics::default() }
    }

    /// The period of the clock, a duration of the bin.
    pub(super) fn set_t_ck(&mut self, item: Item<'_>) {
        let (origin, text) = written(item);
        match Expression::parse(&text) {
            Ok(Expression::Duration(ps)) if ps > 0 => self.t_ck_ps = ps as u64,
            Ok(_) => {
                let message = format!("`tCK` is a duration (\"0.833ns\"), found `{text}`");
                self.fault(&origin, &text, ExpressionFault { at: 0..text.len(), message });
            }
            Err(fault) => self.fault(&origin, &text, fault),
        }
    }

    /// Those of a table of the file.
    pub(super) fn add_table(&mut self, table: Option<TomlTable<'_>>) {
        for (name, _, item) in table.into_iter().flat_map(TomlTable::entries) {
            let (origin, text) = written(item);
            match self.timings.len() < MOST_TIMINGS {
                true => self.add(name, text, origin),
                false => {
                    let message = format!("a device has up to {MOST_TIMINGS} timings");
                    self.fault(&origin, &text, ExpressionFault { at: 0..text.len(), message });
                    return;
                }
            }
        }
    }

    /// `NAME = EXPRESSION, NAME = EXPRESSION`, as a machine has them for one of its devices.
    pub(super) fn add_overrides(&mut self) {
        for part in parts(self.asked.timing) {
            let Some((name, text)) = part.split_once('=') else {
                let message = format!("expected NAME = VALUE between commas, found `{}`", part.trim());
                self.faults.push((self.asked.place)("timing", &message));
                continue;
            };
            let (name, text) = (name.trim(), text.trim());
            let known = self.timings.iter().map(|timing| timing.name.as_str());
            if known.clone().any(|known| known == name) {
                self.add(name, text.to_owned(), Origin::Override);
            } else {
                let fault = (self.asked.place)("timing", &format!("the device has no timing `{name}`"));
                self.faults.push(fault.with_nearest(name, known));
            }
        }
    }

    fn add(&mut self, name: &str, text: String, origin: Origin) {
        let expression = match Expression::parse(&text) {
            Ok(expression) => Some(expression),
            Err(fault) => {
                self.fault(&origin, &text, fault);
                None
            }
        };
        let timing = Timing { name: name.to_owned(), text, origin, expression, state: Evaluated::Unknown };
        match self.timings.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = timing,
            None => self.timings.push(timing),
        }
    }

    /// A fault in an expression.
    fn fault(&mut self, origin: &Origin, text: &str, fault: ExpressionFault) {
        let fault = self.placed(origin, text, fault.at, &fault.message);
        self.faults.push(fault);
    }

    fn placed(&self, origin: &Origin, text: &str, at: Range<usize>, message: &str) -> Diagnostic {
        match origin {
            Origin::File(place) => place.inside(text, at).fault(message),
            Origin::Override => (self.asked.place)("timing", &format!("`{text}`: {message}")),
        }
    }

    /// The fault of a timing, where it is written.
    pub(super) fn blame(&self, name: &str, message: &str) -> Option<Diagnostic> {
        let timing = self.timings.iter().find(|timing| timing.name == name)?;
        Some(self.placed(&timing.origin, &timing.text, 0..timing.text.len(), message))
    }

    /// The value of a timing, where there is such a one and it has a value.
    pub(super) fn value(&mut self, name: &str) -> Option<i64> {
        let nth = self.timings.iter().position(|timing| timing.name == name)?;
        self.nth_value(nth)
    }

    fn nth_value(&mut self, nth: usize) -> Option<i64> {
        let timing = &mut self.timings[nth];
        match timing.state {
            Evaluated::Known(value) => return value,
            Evaluated::UnderWay => return None,
            Evaluated::Unknown => timing.state = Evaluated::UnderWay,
        }
        let (expression, origin, text) = (timing.expression.clone(), timing.origin.clone(), timing.text.clone());
        let down = self.rounding.down.contains(&timing.name);
        let value = expression.and_then(|expression| self.evaluated(&expression, &origin, &text, down));
        self.timings[nth].state = Evaluated::Known(value);
        value
    }

    /// The value of an expression of the file, in cycles.
    pub(super) fn evaluate(&mut self, place: Place, text: &str, at: Range<usize>) -> Option<i64> {
        let origin = Origin::File(place.inside(text, at.clone()));
        match Expression::parse(&text[at.clone()]) {
            Ok(expression) => self.evaluated(&expression, &origin, &text[at], false),
            Err(fault) => {
                self.fault(&origin, &text[at], fault);
                None
            }
        }
    }

    /// The same of a whole value of the file.
    pub(super) fn evaluate_item(&mut self, item: Item<'_>) -> Option<i64> {
        let (_, text) = written(item);
        let whole = 0..text.len();
        self.evaluate(item.place(), &text, whole)
    }

    fn evaluated(&mut self, expression: &Expression, origin: &Origin, text: &str, down: bool) -> Option<i64> {
        let before = self.faults.0.len();
        let mut unknown = false;
        let value = expression.value(&mut Evaluation { timings: self, origin, text, down, unknown: &mut unknown });
        let message = match value {
            Some(0..=MOST_CYCLES) => return value,
            Some(value @ ..0) => format!("the result is negative: {value} cycles"),
            None if unknown || self.faults.0.len() > before => return None,
            _ => "the result is beyond all bounds".to_owned(),
        };
        self.fault(origin, text, ExpressionFault { at: 0..text.len(), message });
        None
    }

    /// All timings in cycles, in the order of the file. Some lack a value, if faults were found.
    pub(super) fn all(&mut self) -> Vec<(String, u64)> {
        let all = 0..self.timings.len();
        all.filter_map(|nth| Some((self.timings[nth].name.clone(), u64::try_from(self.nth_value(nth)?).ok()?)))
            .collect()
    }
}

/// An expression under way, where it is written.
struct Evaluation<'e, 'a> {
    timings: &'e mut Timings<'a>,
    origin: &'e Origin,
    text: &'e str,
    down: bool,
    /// Set by a name without a value: its fault has been told.
    unknown: &'e mut bool,
}

impl Values for Evaluation<'_, '_> {
    fn named(&mut self, name: &str, at: &Range<usize>) -> Option<i64> {
        let nth = self.timings.timings.iter().position(|timing| timing.name == name);
        let value = nth.and_then(|nth| match self.timings.timings[nth].state {
            Evaluated::UnderWay => {
                let message = format!("`{name}` follows from itself");
                let fault = self.timings.placed(self.origin, self.text, at.clone(), &message);
                self.timings.faults.push(fault);
                None
            }
            _ => self.timings.nth_value(nth),
        });
        if nth.is_none() {
            let fault = self.timings.placed(self.origin, self.text, at.clone(), &format!("unknown timing `{name}`"));
            let known = self.timings.timings.iter().map(|timing| timing.name.as_str());
            let fault = fault.with_nearest(name, known);
            self.timings.faults.push(fault);
        }
        *self.unknown |= value.is_none();
        value
    }

    fn cycles_of_ps(&self, ps: i64) -> i64 {
        self.timings.rounding.cycles_of_ps(ps, self.timings.t_ck_ps, self.down)
    }
}

/// A value of the file as a text, and its origin.
fn written(item: Item<'_>) -> (Origin, String) {
    let text = item.text().map(str::to_owned).or_else(|| item.number().map(|number| number.to_string()));
    (Origin::File(item.place()), text.unwrap_or_default())
}

/// Overrides, cut at the commas that begin another one: those of `max(4, 3ns)` are followed by no `NAME =`.
fn parts(text: &str) -> Vec<&str> {
    let begins = |rest: &str| {
        let rest = rest.trim_start();
        rest.trim_start_matches(is_of_name).trim_start().starts_with('=')
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for (comma, _) in text.match_indices(',').filter(|(comma, _)| begins(&text[comma + 1..])) {
        parts.push(&text[start..comma]);
        start = comma + 1;
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_become_cycles_by_the_rules_of_jedec() {
        let rounding = |guard_thousandths, of_duration| Rounding { guard_thousandths, of_duration, down: Vec::new() };
        let [exact, ddr4, ddr5] = [rounding(0, false), rounding(26, false), rounding(3, true)];
        // 13.75 ns at DDR4-1600 are 11 cycles; 13.32 ns at DDR4-2400 (0.833 ns) are 15.99: 16.
        assert_eq!([&exact, &ddr4].map(|rule| rule.cycles_of_ps(13_750, 1250, false)), [11, 11]);
        assert_eq!([&exact, &ddr4].map(|rule| rule.cycles_of_ps(13_320, 833, false)), [16, 16]);
        // 0.025 of a cycle beyond 16 is within the guard, 0.026 is not.
        assert_eq!([16_025, 16_026].map(|ps| ddr4.cycles_of_ps(ps, 1000, false)), [16, 17]);
        assert_eq!(exact.cycles_of_ps(16_001, 1000, false), 17);
        // 0.3 % of 16 ns at DDR5-4800 (0.416 ns): 38.46 become 38.35, and 39.
        assert_eq!(ddr5.cycles_of_ps(16_000, 416, false), 39);
        assert_eq!([16_048, 16_049].map(|ps| ddr5.cycles_of_ps(ps, 1000, false)), [16, 17]);
        assert_eq!([&exact, &ddr4, &ddr5].map(|rule| rule.cycles_of_ps(7_800_000, 833, true)), [9363; 3]);
    }

    #[test]
    fn overrides_are_cut_at_commas_that_begin_another() {
        assert_eq!(parts("RFC = 295ns, FAW = 20"), ["RFC = 295ns", " FAW = 20"]);
        assert_eq!(parts("RRD_S = max(4, 3ns), FAW=20,"), ["RRD_S = max(4, 3ns)", " FAW=20,"]);
        assert_eq!(parts(" "), [""; 0]);
        assert_eq!(parts("RFC"), ["RFC"]);
    }
}
