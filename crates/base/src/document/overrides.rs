//! An override as typed, `--set TABLE.KEY=VALUE`, and what another document sets of this one; keys are not
//! checked yet.

use crate::diagnostic::Diagnostic;

/// One `--set TABLE.KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// `TABLE.KEY`.
    pub key: String,
    /// The value as typed.
    pub value: String,
}

impl Override {
    /// Splits `KEY=VALUE`.
    ///
    /// # Errors
    /// The text has no `=`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) => Ok(Override { key: key.trim().to_owned(), value: value.trim().to_owned() }),
            None => Err(format!("expected KEY=VALUE, for example l2.slice_kb=256; got `{text}`")),
        }
    }

    /// The table that the key is of; the whole key when it names none.
    pub fn table(&self) -> &str {
        self.key.split_once('.').map_or(&self.key, |(table, _)| table)
    }

    /// As it was typed.
    pub fn written(&self) -> String {
        format!("--set {}={}", self.key, self.value)
    }
}

/// A value that another document sets, as a workload does of the clients of its machine. It counts more than
/// the document's own value and less than an override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Key and value.
    pub over: Override,
    /// Where the value comes from.
    pub source: String,
    /// A fault without a message at the place where it was written.
    pub written: Diagnostic,
}
