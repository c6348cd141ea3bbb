//! Data of a figure or a table as CSV: tidy rows with a header, quoted after RFC 4180 where they have to be
//! (lines end in LF, as text files do), numbers with as many digits as bring back the same number, missing
//! ones empty.

use std::borrow::Cow;

/// A cell as a spreadsheet shows it and does not work it out: text that begins like a formula gets a quote
/// before it. Numbers stay numbers. Source: OWASP, "CSV Injection".
pub fn inert(text: &str) -> Cow<'_, str> {
    let like_formula = text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    match like_formula && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// CSV text being written.
#[derive(Debug)]
pub struct Tidy {
    writer: csv::Writer<Vec<u8>>,
}

impl Tidy {
    pub fn new(header: &[&str]) -> Tidy {
        let mut tidy = Tidy { writer: csv::Writer::from_writer(Vec::new()) };
        tidy.row(header);
        tidy
    }

    pub fn row<T: AsRef<str>>(&mut self, fields: &[T]) {
        // Writing to memory cannot fail, and all rows of one table have its header's length.
        let written = self.writer.write_record(fields.iter().map(|field| inert(field.as_ref()).into_owned()));
        debug_assert!(written.is_ok(), "{written:?}");
    }

    pub fn finish(self) -> String {
        let bytes = self.writer.into_inner().unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// A number in full; what is none is empty.
pub(super) fn full(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| format!("{value:?}"))
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn text_is_no_formula_and_a_number_stays_one() {
        for text in ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        for text in ["", "-", "-1.5", "+3", "-1e-9", "base", "store+clwb", "a=b", "'=1"] {
            assert_eq!(inert(text), text);
        }
    }
}
