//! A user's table of opcodes: which known opcode one that is not known is timed as.
//!
//! ```text
//!   VIMNMX3 = "VIMNMX"        one row an opcode, by its name before the first dot
//!   LDCU = "ULDC"
//! ```
//! A row comes before the built-in row of its opcode. Modifiers stay those of the trace. What a table did is
//! counted by opcode and told with the result.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::opcodes::{names, operation_of};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{SourceText, TomlTable, parse};
use durawarp_base::input;

/// Known opcodes by those that are timed as them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpcodeTable(BTreeMap<String, &'static str>);

impl OpcodeTable {
    /// Reads a file of rows.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<OpcodeTable, Diagnostics> {
        let file = path.display().to_string();
        let text = input::text(path).map_err(|error| Diagnostic::nowhere(&file, error.to_string()))?;
        let source = Arc::new(SourceText::new(&file, text));
        let mut faults = Diagnostics::default();
        let document = parse(&source, &mut faults);
        faults = faults.into_result(Diagnostics::default())?;
        let table = OpcodeTable::of_document(TomlTable::root(&source, &document), &mut faults);
        faults.into_result(table)
    }

    /// Reads rows. What comes back counts only if no fault was pushed.
    pub(crate) fn of_document(root: TomlTable<'_>, faults: &mut Diagnostics) -> OpcodeTable {
        let mut rows = BTreeMap::new();
        for (opcode, place, item) in root.entries() {
            let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            if !opcode.bytes().all(is_name) {
                let message = format!("`{opcode}` is no name of an opcode: expected letters A to Z, digits and `_`");
                faults.push(place.fault(message).with_help("modifiers after the first dot are left out"));
            }
            let Some(known) = item.text() else {
                faults.push(
                    item.place().fault(format!("expected the name of a known opcode, found {}", item.described())),
                );
                continue;
            };
            match names().find(|name| *name == known) {
                Some(known) => {
                    rows.insert(opcode.to_owned(), known);
                }
                None => faults
                    .push(item.place().fault(format!("`{known}` is no known opcode")).with_nearest(known, names())),
            }
        }
        OpcodeTable(rows)
    }

    /// It has no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These rows, and of the others those that they do not replace.
    pub(crate) fn over(mut self, others: &OpcodeTable) -> OpcodeTable {
        for (opcode, known) in &others.0 {
            self.0.entry(opcode.clone()).or_insert(known);
        }
        self
    }

    /// The known opcode that one is timed as, by its name before the first dot: by a row of this table, else
    /// itself. None where neither knows it.
    pub(crate) fn known<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self.0.get(name) {
            Some(known) => Some(known),
            None => operation_of(name).map(|_| name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OpcodeTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.toml");
        std::fs::write(&path, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        OpcodeTable::read(&path).map_err(|faults| faults.to_string().replace(&shown, ""))
    }

    #[test]
    fn a_row_comes_before_what_is_built_in() {
        let table = read("NEWOP = \"FFMA\"\nIADD3 = \"IMAD\"\n").unwrap();
        let known = ["NEWOP", "IADD3", "FADD", "OTHER"].map(|name| table.known(name).map(str::to_owned));
        assert_eq!(known, [Some("FFMA"), Some("IMAD"), Some("FADD"), None].map(|name| name.map(str::to_owned)));
        let both = read("NEWOP = \"MUFU\"\n").unwrap().over(&table);
        assert_eq!(["NEWOP", "IADD3"].map(|name| both.known(name)), [Some("MUFU"), Some("IMAD")]);
    }

    #[test]
    fn every_wrong_row_is_told_with_its_place() {
        let faults = read("NEWOP = \"IADD4\"\nOTHER = 3\n\"LDG.E\" = \"LDG\"\n").unwrap_err();
        for expected in [
            "o.toml:1:9: `IADD4` is no known opcode",
            "did you mean `IADD",
            "o.toml:2:9: expected the name of a known opcode",
            "o.toml:3:1: `LDG.E` is no name of an opcode",
        ] {
            assert!(faults.contains(expected), "{expected}: {faults}");
        }
    }
}
