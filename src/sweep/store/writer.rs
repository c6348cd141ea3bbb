//! The one who writes to a file of results.
//!
//! Invariants: the file is new; it holds whole records only, also after a write that failed half way (it is cut back, and
//! where that fails nothing is written after); a record that [`Writer::append`] returned from is on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::record::{Head, Record, SCHEMA, State};
use super::cannot;

/// A file of results that is being written.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    host: String,
    pid: u32,
    started_ms: u64,
    /// Bytes of whole records.
    bytes: u64,
    /// Bytes behind them could not be cut off.
    broken: bool,
}

#[expect(clippy::disallowed_methods, reason = "records are told apart by their age; no result depends on it")]
fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The host's name as part of a file's.
pub(in super::super) fn host() -> String {
    let name = gethostname::gethostname().to_string_lossy().into_owned();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Says what a folder is. Several may do so at once: all say the same.
pub(super) fn mark(folder: &Path, name: &str) -> Result<(), String> {
    let path = folder.join(name);
    let partial = folder.join(format!("{name}.{}-{}", host(), std::process::id()));
    let text = format!("{{\"what\":\"results of durawarp sweeps, one record a line\",\"schema\":{SCHEMA}}}\n");
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
    written.map_err(|error| cannot("write", &path, &error))
}

impl Writer {
    /// Makes a file of its own in a folder of results.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let (host, pid) = (host(), std::process::id());
        let started_ms = unix_ms();
        let mut start = started_ms;
        loop {
            let path = folder.join(format!("{host}-{pid}-{start}.jsonl"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Writer { path, file, host, pid, started_ms, bytes: 0, broken: false }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => start += 1,
                Err(error) => return Err(cannot("make", &path, &error)),
            }
        }
    }

    /// Writes a record: a result so that a failure of power cannot take it back. When that was, in ms since 1970.
    ///
    /// # Errors
    /// It cannot be written; what was written before stays.
    pub fn append(&mut self, record: &Record<'_>) -> Result<u64, String> {
        let unix_ms = unix_ms();
        let record = Record { unix_ms, host: &self.host, pid: self.pid, ..*record };
        let mut line = serde_json::to_vec(&record).map_err(|error| format!("cannot write a record: {error}"))?;
        line.push(b'\n');
        if self.broken {
            return Err(format!("cannot write `{}`: its end is torn", self.path.display()));
        }
        let lasting = record.state != State::Begun;
        let written = self.file.write_all(&line).and_then(|()| if lasting { self.file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => {
                self.bytes += line.len() as u64;
                Ok(unix_ms)
            }
            Err(error) => {
                self.broken = self.file.set_len(self.bytes).is_err();
                Err(cannot("write", &self.path, &error))
            }
        }
    }

    /// When it was made, in ms since 1970.
    pub fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Name of the file.
    pub(super) fn file_name(&self) -> Option<String> {
        Some(self.path.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether a record of a moment is older than one of this process of another.
    pub fn is_before(&self, head: &Head, own_ms: u64) -> bool {
        (head.unix_ms, head.host.as_str(), head.pid) < (own_ms, self.host.as_str(), self.pid)
    }

    /// Whether a process is another one of this host, and alive. Of other hosts nothing is known.
    pub fn is_another_alive(&self, host: &str, pid: u32) -> bool {
        if host != self.host || pid == self.pid {
            return false;
        }
        // A number may have gone to another program since.
        let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe"));
        match (program(&pid.to_string()), program("self")) {
            (Ok(theirs), Ok(ours)) => theirs == ours,
            _ => false,
        }
    }
}

impl Drop for Writer {
    /// A file without records tells nothing.
    fn drop(&mut self) {
        if self.bytes == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}
