//! Expressions of device files: whole cycles, durations, names of timings, `+ - *` and `max( , )`.
//!
//! ```text
//! sum  = term (("+" | "-") term)*        "CWL + BL + WTR_L"
//! term = atom ("*" atom)*                "max(4, 3.3ns)"
//! atom = number [unit] | name | "max" "(" sum ("," sum)* ")" | "(" sum ")"
//! ```
//! A number with a unit (`ps`, `ns`, `us`, `ms`) is a duration, and the file's rounding makes it cycles.
//! Invariant: a place is a range of the expression's text, on character boundaries.

use std::ops::Range;

/// Greatest number of cycles, and of picoseconds: sums and products of a few stay in 64 bits.
const MOST: i64 = 1 << 40;

/// Longest text of an expression in bytes, and so how deep its tree may be.
const LONGEST: usize = 256;

/// Units of durations, in picoseconds.
const UNITS: [(&str, f64); 4] = [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9)];

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Cycles(i64),
    /// A duration in picoseconds.
    Duration(i64),
    /// A timing, and where it is named.
    Name(String, Range<usize>),
    Sum(Box<Expression>, Box<Expression>),
    Difference(Box<Expression>, Box<Expression>),
    Product(Box<Expression>, Box<Expression>),
    /// The greatest of them; there is at least one.
    Max(Vec<Expression>),
}

/// What is wrong in an expression, and where.
#[derive(Debug, PartialEq)]
pub(super) struct ExpressionFault {
    pub(super) at: Range<usize>,
    pub(super) message: String,
}

/// What names and durations are worth. A name without a value has had its fault told.
pub(super) trait Values {
    fn named(&mut self, name: &str, at: &Range<usize>) -> Option<i64>;
    fn cycles_of_ps(&self, ps: i64) -> i64;
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The first thing that does not belong into one.
    pub(super) fn parse(text: &str) -> Result<Expression, ExpressionFault> {
        if text.len() > LONGEST {
            let message = format!("an expression has up to {LONGEST} characters");
            return Err(ExpressionFault { at: 0..text.len(), message });
        }
        let mut reader = ExpressionReader { text, at: 0 };
        let whole = reader.sum()?;
        match reader.rest() {
            "" => Ok(whole),
            _ => Err(reader.unexpected("`+`, `-`, `*` or the end")),
        }
    }

    /// Its value in cycles; `None` when a name has none, or when it is beyond all bounds.
    pub(super) fn value(&self, values: &mut dyn Values) -> Option<i64> {
        let mut of = |one: &Expression, other: &Expression| Some((one.value(values)?, other.value(values)?));
        let value = match self {
            Expression::Cycles(cycles) => Some(*cycles),
            Expression::Duration(ps) => Some(values.cycles_of_ps(*ps)),
            Expression::Name(name, at) => values.named(name, at),
            Expression::Sum(one, other) => of(one, other).and_then(|(one, other)| one.checked_add(other)),
            Expression::Difference(one, other) => of(one, other).and_then(|(one, other)| one.checked_sub(other)),
            Expression::Product(one, other) => of(one, other).and_then(|(one, other)| one.checked_mul(other)),
            // All are looked at, so that a fault in each is told.
            Expression::Max(all) => {
                let all: Vec<Option<i64>> = all.iter().map(|one| one.value(values)).collect();
                all.into_iter().collect::<Option<Vec<i64>>>().and_then(|all| all.into_iter().max())
            }
        };
        value.filter(|value| value.abs() <= MOST)
    }
}

struct ExpressionReader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> ExpressionReader<'t> {
    /// What is left, after blanks.
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    /// Takes a sign, if it is next.
    fn takes(&mut self, sign: char) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len_utf8() } else { 0 };
        found
    }

    /// Takes characters as long as they fit.
    fn word(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn unexpected(&mut self, expected: &str) -> ExpressionFault {
        let found = self.rest().chars().next();
        let at = self.at..self.at + found.map_or(0, char::len_utf8);
        let found = found.map_or("the end".to_owned(), |found| format!("`{found}`"));
        ExpressionFault { at, message: format!("expected {expected}, found {found}") }
    }

    fn sum(&mut self) -> Result<Expression, ExpressionFault> {
        let mut whole = self.term()?;
        loop {
            whole = if self.takes('+') {
                Expression::Sum(whole.into(), self.term()?.into())
            } else if self.takes('-') {
                Expression::Difference(whole.into(), self.term()?.into())
            } else {
                return Ok(whole);
            };
        }
    }

    fn term(&mut self) -> Result<Expression, ExpressionFault> {
        let mut whole = self.atom()?;
        while self.takes('*') {
            whole = Expression::Product(whole.into(), self.atom()?.into());
        }
        Ok(whole)
    }

    fn atom(&mut self) -> Result<Expression, ExpressionFault> {
        match self.rest().chars().next() {
            Some('(') => Ok(self.bracketed()?.swap_remove(0)),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() => {
                let start = self.at;
                let name = self.word(is_of_name);
                match name == "max" && self.rest().starts_with('(') {
                    true => Ok(Expression::Max(self.bracketed()?)),
                    false => Ok(Expression::Name(name.to_owned(), start..start + name.len())),
                }
            }
            _ => Err(self.unexpected("a number, a duration, a timing, `max(` or `(`")),
        }
    }

    /// What is in brackets, between commas; only `max` has more than one.
    fn bracketed(&mut self) -> Result<Vec<Expression>, ExpressionFault> {
        let is_max = self.text[..self.at].trim_end().ends_with("max");
        self.takes('(');
        let mut all = vec![self.sum()?];
        while is_max && self.takes(',') {
            all.push(self.sum()?);
        }
        match self.takes(')') {
            true => Ok(all),
            false => Err(self.unexpected(if is_max { "`,` or `)`" } else { "`)`" })),
        }
    }

    fn number(&mut self) -> Result<Expression, ExpressionFault> {
        let start = self.at;
        let digits = self.word(|c| c.is_ascii_digit() || c == '.');
        let unit = self.word(is_of_name);
        let at = start..self.at;
        let fault = |message: String| Err(ExpressionFault { at: at.clone(), message });
        let within = |value: i64| (0..=MOST).contains(&value);
        if unit.is_empty() {
            return match digits.parse() {
                Ok(cycles) if within(cycles) => Ok(Expression::Cycles(cycles)),
                _ => fault(format!("`{digits}` is no whole number of cycles; a duration has a unit (\"7.5ns\")")),
            };
        }
        let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return fault(format!("`{unit}` is no unit of a duration: ps, ns, us, ms"));
        };
        // A duration is of whole picoseconds; a decimal fraction may be a binary one nearby.
        let ps = digits.parse::<f64>().map_or(f64::NAN, |number| number * size);
        match (ps - ps.round()).abs() <= 1e-6 && within(ps.round() as i64) {
            true => Ok(Expression::Duration(ps.round() as i64)),
            false => fault(format!("`{digits}{unit}` is no duration of whole picoseconds up to a second")),
        }
    }
}

/// What names of timings, commands and units are written with.
pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    struct KnownTimings;

    impl Values for KnownTimings {
        fn named(&mut self, name: &str, _: &Range<usize>) -> Option<i64> {
            [("CL", 16), ("BL", 4), ("CWL", 12)].iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        }

        fn cycles_of_ps(&self, ps: i64) -> i64 {
            (ps + 832) / 833
        }
    }

    fn check(text: &str, expected: i64) {
        assert_eq!(Expression::parse(text).expect(text).value(&mut KnownTimings), Some(expected), "{text}");
    }

    #[test]
    fn products_bind_closer_than_sums_and_both_from_the_left() {
        check("CL + BL + 2 - CWL", 10);
        check("2 + 3 * BL - 1", 13);
        check("(2 + 3) * BL", 20);
        check("CL - BL - 2", 10);
        check("max(4, 3.3ns)", 4);
        check("max( CWL , max(1,CL) ) + 21 ns", 42);
        check("BL - CL", -12);
    }

    #[test]
    fn a_fault_is_told_where_it_is() {
        let fault = |text: &str| {
            let fault = Expression::parse(text).expect_err(text);
            (fault.at.start, fault.message)
        };
        assert_eq!(fault("CL + ").0, 5);
        assert!(fault("CL BL").1.contains("expected `+`, `-`, `*` or the end, found `B`"));
        assert!(fault("max(1, 2").1.contains("`,` or `)`, found the end"));
        assert_eq!(fault("(1, 2)"), (2, "expected `)`, found `,`".to_owned()));
        assert!(fault("2.5").1.contains("no whole number of cycles"));
        assert_eq!(fault("1 + 5 parsecs"), (4, "`parsecs` is no unit of a duration: ps, ns, us, ms".to_owned()));
        for text in ["0.0001ns", "1.2.3ns", "99999999999999999999", "2000ms", "9e9ns", "", "é", "-1"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        let deep = |brackets: usize| "(".repeat(brackets) + "1";
        assert!(fault(&deep(255)).1.contains("expected `)`, found the end"));
        assert!(fault(&deep(60_000)).1.contains("up to 256 characters"));
    }

    #[test]
    fn what_is_beyond_all_bounds_or_unknown_has_no_value() {
        for text in ["CQ", "max(1, CQ)", "1000000000000 * 1000000000000"] {
            assert_eq!(Expression::parse(text).expect(text).value(&mut KnownTimings), None, "{text}");
        }
    }
}
