//! Data of a figure or a table as CSV: tidy rows with a header, quoted after RFC 4180 where they have to be
//! (lines end in LF, as text files do), numbers with as many digits as bring back the same number, missing
//! ones empty.

use durawarp_base::cell::inert;

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
