//! Outcomes from files, as `run --json` writes them.

use std::path::Path;

use super::{Outcome, SCHEMA};
use crate::diagnostic::Diagnostic;
use crate::input;

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
            let line = text.lines().take(fault.line().saturating_sub(1)).map(|line| line.len() + 1).sum::<usize>();
            let at = (line + fault.column().saturating_sub(1)).min(text.len().saturating_sub(1));
            let message = format!("this is no result of a run: {fault}");
            let place = if text.is_char_boundary(at) { at..at + 1 } else { 0..1 };
            Diagnostic::at(&name, &text, place, message).with_help("`durawarp run WORKLOAD --json FILE` writes one")
        };
        let outcome: Outcome = serde_json::from_str(&text).map_err(wrong)?;
        if outcome.schema > SCHEMA {
            let message = format!("is of schema {}, and this program knows schemas up to {SCHEMA}", outcome.schema);
            return Err(Diagnostic::nowhere(&name, message));
        }
        Ok(outcome)
    }
}
