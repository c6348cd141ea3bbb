//! The one who writes to a file of results, and the threads that it does so on.
//!
//! ```text
//!   workers ──Order──> bounded channel ──> writer: all that waits is written at once ──points──> syncs: once for
//!           <──when a point was begun──                                                          all that waits
//! ```
//! A sync takes as long as a small point runs, and a worker that begins a point waits for the writer: so the
//! writer does not wait for syncs. Invariants: the file is new; it holds whole records only, also after a
//! write that failed half way (it is cut back, and where that fails nothing is written after); when
//! [`Writer::serve`] returns, every result is on the disk, unless `lost` heard of it.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::super::record::{Head, Record, SCHEMA};

/// Which process writes, as its records say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    host: String,
    pid: u32,
    started_ms: u64,
}

/// A file of results that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    file: File,
    author: Author,
    /// Bytes of whole records.
    bytes: u64,
    /// Bytes behind them could not be cut off.
    broken: bool,
}

/// What the writer is asked for.
#[derive(Debug)]
pub(crate) enum Order {
    /// Points are begun: others see that as soon as it is written. When that was, in ms since 1970, is
    /// answered.
    Begin {
        /// Keys of the points.
        keys: Vec<String>,
        /// Where the answer goes: none when it could not be written.
        answer: Sender<Option<u64>>,
    },
    /// What came of a point.
    Keep {
        /// Its number, for the report.
        point: usize,
        /// Its record ([`Author::line`]).
        line: Vec<u8>,
    },
}

/// Results that wait for the writer: workers wait when there are more.
const WAITING: usize = 256;

#[expect(clippy::disallowed_methods, reason = "records are told apart by their age; no result depends on it")]
fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Why something could not be done to a file, in a sentence.
pub(super) fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} `{}`: {error}", path.display())
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

impl Author {
    /// A record of now as a line of this author's, and when now is, in ms since 1970.
    ///
    /// # Errors
    /// It cannot be serialised.
    pub(crate) fn line(&self, record: &Record<'_>) -> Result<(Vec<u8>, u64), String> {
        let unix_ms = unix_ms();
        Ok((self.line_of(record, unix_ms)?, unix_ms))
    }

    /// Lines that say that points are begun, all of one moment, and that moment.
    fn begun(&self, keys: &[String]) -> Result<(Vec<u8>, u64), String> {
        let unix_ms = unix_ms();
        let mut lines = Vec::new();
        for key in keys {
            lines.extend(self.line_of(&Record::begun(key), unix_ms)?);
        }
        Ok((lines, unix_ms))
    }

    fn line_of(&self, record: &Record<'_>, unix_ms: u64) -> Result<Vec<u8>, String> {
        let record = Record { unix_ms, host: &self.host, pid: self.pid, ..*record };
        record.line().map_err(|error| format!("cannot write a record: {error}"))
    }

    /// When it began, in ms since 1970.
    pub(crate) fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Whether a record of a moment is older than one of this process of another.
    pub(crate) fn is_before(&self, head: &Head, own_ms: u64) -> bool {
        (head.unix_ms, head.host.as_str(), head.pid) < (own_ms, self.host.as_str(), self.pid)
    }

    /// Its host.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether a process of this host is gone, or was one of the same number as this. Of other hosts nothing
    /// is known.
    pub(crate) fn is_gone(&self, host: &str, pid: u32) -> bool {
        host == self.host && !self.is_another_alive(host, pid)
    }

    /// Whether a process is another one of this host, and alive. Of other hosts nothing is known.
    pub(crate) fn is_another_alive(&self, host: &str, pid: u32) -> bool {
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

impl Writer {
    /// Makes a file of its own in a folder of results.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        let (host, pid) = (host(), std::process::id());
        let started_ms = unix_ms();
        let mut start = started_ms;
        loop {
            let path = folder.join(format!("{host}-{pid}-{start}.jsonl"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    let author = Author { host, pid, started_ms };
                    return Ok(Writer { path, file, author, bytes: 0, broken: false });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => start += 1,
                Err(error) => return Err(cannot("make", &path, &error)),
            }
        }
    }

    /// Who writes.
    pub(crate) fn author(&self) -> &Author {
        &self.author
    }

    /// A channel for orders to a writer.
    pub(crate) fn orders() -> (Sender<Order>, Receiver<Order>) {
        bounded(WAITING)
    }

    /// Writes what is ordered until nobody orders any more. `lost` hears of the points whose results could
    /// not be kept, and why.
    pub(crate) fn serve(mut self, orders: &Receiver<Order>, lost: &(impl Fn(&[usize], String) + Sync)) {
        let (written, to_sync) = unbounded();
        let path = self.path.clone();
        let file = self.file.try_clone().map_err(|error| cannot("write", &path, &error));
        thread::scope(|scope| {
            scope.spawn(|| sync_each(file, &path, &to_sync, lost));
            while let Ok(first) = orders.recv() {
                // All that waits goes by one write.
                let (mut lines, mut points, mut answers) = (Vec::new(), Vec::new(), Vec::new());
                for order in std::iter::once(first).chain(orders.try_iter()) {
                    match order {
                        Order::Keep { point, line } => {
                            lines.extend(line);
                            points.push(point);
                        }
                        Order::Begin { keys, answer } => match self.author.begun(&keys) {
                            Ok((begun, unix_ms)) => {
                                lines.extend(begun);
                                answers.push((answer, unix_ms));
                            }
                            // Who waits for the answer learns that there is none.
                            Err(_) => drop(answer),
                        },
                    }
                }
                let result = self.write(&lines);
                for (answer, unix_ms) in answers {
                    // Who asked may have gone.
                    let _ = answer.send(result.is_ok().then_some(unix_ms));
                }
                match result {
                    // The thread that syncs takes all until this one is done.
                    Ok(()) => points.into_iter().for_each(|point| _ = written.send(point)),
                    Err(why) => lost(&points, why),
                }
            }
            drop(written);
        });
    }

    /// Appends whole lines, or none of them.
    ///
    /// # Errors
    /// They cannot be written; what was written before stays.
    fn write(&mut self, lines: &[u8]) -> Result<(), String> {
        if self.broken {
            return Err(format!("cannot write `{}`: its end is torn", self.path.display()));
        }
        match self.file.write_all(lines) {
            Ok(()) => {
                self.bytes += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.broken = self.file.set_len(self.bytes).is_err();
                Err(cannot("write", &self.path, &error))
            }
        }
    }

    /// Appends whole lines, which are on the disk when this returns.
    ///
    /// # Errors
    /// As [`Writer::write`], and where the disk does not take them.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), String> {
        self.write(lines)?;
        sync(&self.file, &self.path)
    }

    /// Name of the file.
    pub(super) fn file_name(&self) -> Option<String> {
        Some(self.path.file_name()?.to_string_lossy().into_owned())
    }
}

/// What was written to a file stays after a failure of power.
fn sync(file: &File, path: &Path) -> Result<(), String> {
    file.sync_data().map_err(|error| cannot("write", path, &error))
}

/// Syncs a file once for all points that wait, until no more come. `lost` hears of those whose results the
/// disk did not take.
fn sync_each(
    file: Result<File, String>,
    path: &Path,
    points: &Receiver<usize>,
    lost: &(impl Fn(&[usize], String) + Sync),
) {
    while let Ok(first) = points.recv() {
        let all: Vec<usize> = std::iter::once(first).chain(points.try_iter()).collect();
        if let Err(why) = file.as_ref().map_err(Clone::clone).and_then(|file| sync(file, path)) {
            lost(&all, why);
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
