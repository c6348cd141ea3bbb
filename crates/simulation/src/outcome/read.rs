//! Outcomes from files, as `run --json` writes them.

use std::path::Path;

use super::{Outcome, SCHEMA};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::input;

impl Outcome {
    /// The run in a file.
    ///
    /// # Errors
    /// It cannot be read, is no result of a run, or is of a later schema.
    pub fn read(path: &Path) -> Result<Outcome, Diagnostic> {
        let name = path.display().to_string();
        let text = input::text(path).map_err(|fault| Diagnostic::nowhere(&name, format!("cannot be read: {fault}")))?;
        let wrong = |fault: serde_json::Error| {
            // The line and column of a fault are the reader's to find; a column of 0 is none.
            let before = text.split_inclusive('\n').take(fault.line().saturating_sub(1)).map(str::len).sum::<usize>();
            let at = before + fault.column().saturating_sub(1);
            let message = format!("this is no result of a run: {fault}");
            Diagnostic::at(&name, &text, at..at + 1, message)
                .with_help("`durawarp run WORKLOAD --json FILE` writes one")
        };
        let outcome: Outcome = serde_json::from_str(&text).map_err(wrong)?;
        if outcome.schema > SCHEMA {
            let message = format!("is of schema {}, and this program knows schemas up to {SCHEMA}", outcome.schema);
            return Err(Diagnostic::nowhere(&name, message));
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_at_its_place_whatever_ends_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.json");
        for end in ["\n", "\r\n"] {
            std::fs::write(&path, ["{", " \"a\": 1,", " \"µ\": x", "}"].join(end)).unwrap();
            let fault = Outcome::read(&path).unwrap_err();
            assert_eq!((fault.span.line, fault.source_line.as_str()), (3, " \"µ\": x"), "{end:?}");
            assert_eq!(fault.source_line.chars().nth(fault.span.column as usize - 1), Some('x'), "{end:?}: {fault}");
        }
    }
}
