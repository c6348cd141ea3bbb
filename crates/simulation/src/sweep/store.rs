//! Results on disk: a folder of JSON lines that any number of processes write at once, on local and network
//! file systems.
//!
//! ```text
//! durawarp-results.json            what the folder is, and its schema
//! <host>-<pid>-<start>.jsonl       the records of one start of a process, which alone writes to it
//! ```
//! No locks: each start of a process makes a file of its own, writes a record by one write at its end and
//! syncs it, and never opens an old file to write. A process killed at any instant leaves whole records and
//! at most one without its end of line, which readers ignore. A record that does not fit its checksum is
//! passed over with a note: its point is run again. Of a key's records the newest counts.
//!
//! Invariants: what was reported as done can be read after a crash; a folder or record of another schema is
//! refused. Left out: the removal of records that are not needed any more.

mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::record::{self, Head, SCHEMA, State, Unreadable};
use crate::outcome::Outcome;
use durawarp_base::input;

use writer::cannot;
pub(crate) use writer::{Author, Order, Writer};

/// The file that says what the folder is.
const MARKER: &str = "durawarp-results.json";

/// A result that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The record without its outcome.
    pub head: Head,
    file: String,
    offset: u64,
    bytes: u64,
}

/// Everything in a folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// How far each file was read.
    read: BTreeMap<String, u64>,
    results: BTreeMap<String, Entry>,
    begun: BTreeMap<String, Vec<Head>>,
    /// The file that this process writes: it knows what is in it.
    own: Option<String>,
    notes: Vec<String>,
}

impl Store {
    /// Opens a folder of results and makes it if it is not there.
    ///
    /// # Errors
    /// It cannot be read or made; it is something else, or of another schema.
    pub fn open(folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|error| cannot("make the folder of results", folder, &error))?;
        if !folder.join(MARKER).exists() {
            let names = names(folder)?;
            // Somebody else may be making the marker.
            if let Some(other) = names.iter().find(|name| !name.starts_with(MARKER)) {
                let folder = folder.display();
                return Err(format!(
                    "`{folder}` is no folder of results: it has `{other}` but no {MARKER}; name an empty or new folder"
                ));
            }
            writer::mark(folder, MARKER)?;
        }
        Self::open_existing(folder)
    }

    /// Opens a folder of results; one that is not there is empty.
    ///
    /// # Errors
    /// It cannot be read, it is something else, or of another schema.
    pub fn open_existing(folder: &Path) -> Result<Self, String> {
        let mut store = Store {
            folder: folder.to_owned(),
            read: BTreeMap::new(),
            results: BTreeMap::new(),
            begun: BTreeMap::new(),
            own: None,
            notes: Vec::new(),
        };
        if folder.exists() {
            check_marker(&folder.join(MARKER))?;
            store.refresh()?;
        }
        Ok(store)
    }

    /// Reads what was written since.
    ///
    /// # Errors
    /// A file cannot be read, or holds a record of another schema.
    pub(crate) fn refresh(&mut self) -> Result<(), String> {
        for name in names(&self.folder)?.into_iter().filter(|name| name.ends_with(".jsonl")) {
            if self.own.as_ref() == Some(&name) {
                continue;
            }
            let path = self.folder.join(&name);
            let from = self.read.get(&name).copied().unwrap_or(0);
            // Gone in between: it was empty.
            let Ok(about) = fs::metadata(&path) else { continue };
            // A pipe of such a name has no results, and no end.
            if about.is_file() && about.len() > from {
                let until = self.read_file(&name, &path, from)?;
                self.read.insert(name, until);
            }
        }
        Ok(())
    }

    /// Reads a file's whole lines from an offset on; how far they go.
    fn read_file(&mut self, name: &str, path: &Path, from: u64) -> Result<u64, String> {
        let unreadable = |error: std::io::Error| cannot("read", path, &error);
        let mut file = File::open(path).map_err(unreadable)?;
        input::remember(path);
        file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
        let mut lines = BufReader::with_capacity(1 << 16, file);
        let (mut line, mut offset) = (Vec::new(), from);
        loop {
            line.clear();
            let bytes = lines.read_until(b'\n', &mut line).map_err(unreadable)? as u64;
            // Without its end it is torn, or not whole yet.
            if line.pop() != Some(b'\n') {
                return Ok(offset);
            }
            match record::head(&line) {
                Ok(head) => self.take(head, name, offset, bytes),
                Err(Unreadable::Schema(found)) => {
                    return Err(format!(
                        "`{}` holds a record of schema {found}; this program reads {SCHEMA}: use the version that \
                         wrote it, or another folder",
                        path.display()
                    ));
                }
                Err(Unreadable::Broken(why)) => {
                    let place = format!("`{}` at byte {offset}", path.display());
                    self.notes.push(format!("{place}: no record, passed over: its point is run again ({why})"));
                }
            }
            offset += bytes;
        }
    }

    fn take(&mut self, head: Head, file: &str, offset: u64, bytes: u64) {
        if head.state == State::Begun {
            self.begun.entry(head.key.clone()).or_default().push(head);
            return;
        }
        match self.results.get(&head.key) {
            Some(known) if known.head.unix_ms > head.unix_ms => {}
            _ => {
                let entry = Entry { file: file.to_owned(), offset, bytes, head };
                self.results.insert(entry.head.key.clone(), entry);
            }
        }
    }

    /// The newest result of a key.
    pub fn result(&self, key: &str) -> Option<&Entry> {
        self.results.get(key)
    }

    /// Who has ever begun it, but this process.
    pub fn begun(&self, key: &str) -> &[Head] {
        self.begun.get(key).map_or(&[], Vec::as_slice)
    }

    /// Does not read what a writer writes, while there is one.
    pub(crate) fn leave_out(&mut self, writer: Option<&Writer>) {
        self.own = writer.and_then(Writer::file_name);
    }

    /// The newest results of all keys.
    pub fn results(&self) -> impl Iterator<Item = &Entry> {
        self.results.values()
    }

    /// The outcome of a result; `None` for a point that failed without one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn outcome(&self, entry: &Entry) -> Result<Option<Outcome>, String> {
        let path = self.folder.join(&entry.file);
        let unreadable = |error: std::io::Error| cannot("read", &path, &error);
        let mut file = File::open(&path).map_err(unreadable)?;
        file.seek(SeekFrom::Start(entry.offset)).map_err(unreadable)?;
        let mut line = vec![0; entry.bytes as usize];
        file.read_exact(&mut line).map_err(unreadable)?;
        record::outcome(&line).map_err(|why| format!("`{}` at byte {}: {why}", path.display(), entry.offset))
    }

    /// What was passed over.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Names of the files in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let unreadable = |error: std::io::Error| cannot("read the folder", folder, &error);
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

fn check_marker(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("")).display();
            format!("`{folder}` is no folder of results: it has no {MARKER}")
        }
        _ => cannot("read", path, &error),
    })?;
    let found = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|marker| marker["schema"].as_u64());
    match found {
        Some(schema) if schema == u64::from(SCHEMA) => Ok(()),
        Some(schema) => Err(format!(
            "`{}` is of schema {schema}; this program reads and writes {SCHEMA}: use the version that made it, or another \
             folder",
            path.display()
        )),
        None => Err(format!("`{}` does not say a schema: it is not a marker of results", path.display())),
    }
}

#[cfg(test)]
mod tests;
