//! Open files: standard streams, given data files, and persistent memory as `/pm/NAME`.

use super::call::File;
use super::number::error::{EBADF, ENOENT, ENOSPC};
use super::output::Output;

/// The folder whose one file is persistent memory.
const PM_FOLDER: &str = "/pm/";

/// What a file descriptor stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Open {
    Stdin,
    Stdout,
    Stderr,
    /// One of the given files, by its number, and the offset of the next read.
    File(usize, u64),
    Persistent,
}

/// The files of a process.
#[derive(Debug, Clone)]
pub(super) struct Files {
    given: Vec<File>,
    open: Vec<Option<Open>>,
    /// The name under which persistent memory was opened: there is one pool.
    pool: Option<String>,
    pub(super) output: Output,
}

impl Files {
    pub(super) fn new(given: Vec<File>) -> Files {
        let open = [Open::Stdin, Open::Stdout, Open::Stderr].map(Some).to_vec();
        Files { given, open, pool: None, output: Output::default() }
    }

    /// Opens a path. The descriptor, the lowest free one.
    pub(super) fn open(&mut self, path: &str) -> Result<u64, u64> {
        let open = if let Some(name) = path.strip_prefix(PM_FOLDER).filter(|name| !name.is_empty()) {
            if self.pool.as_ref().is_some_and(|pool| pool != name) {
                return Err(ENOSPC);
            }
            self.pool = Some(name.to_owned());
            Open::Persistent
        } else {
            Open::File(self.given.iter().position(|file| file.path == path).ok_or(ENOENT)?, 0)
        };
        let at = self.open.iter().position(Option::is_none).unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[at] = Some(open);
        Ok(at as u64)
    }

    /// A path names something that can be opened.
    pub(super) fn exists(&self, path: &str) -> bool {
        path.starts_with(PM_FOLDER) || self.given.iter().any(|file| file.path == path)
    }

    pub(super) fn close(&mut self, descriptor: u64) -> Result<u64, u64> {
        let open = usize::try_from(descriptor).ok().and_then(|at| self.open.get_mut(at));
        open.and_then(Option::take).map(|_| 0).ok_or(EBADF)
    }

    pub(super) fn get(&self, descriptor: u64) -> Result<&Open, u64> {
        usize::try_from(descriptor).ok().and_then(|at| self.open.get(at)?.as_ref()).ok_or(EBADF)
    }

    /// Moves the place of the next read of a given file.
    pub(super) fn seek(&mut self, descriptor: u64, to: u64) {
        if let Some(Some(Open::File(_, offset))) = self.open.get_mut(descriptor as usize) {
            *offset = to;
        }
    }

    /// Bytes of a given file from an offset on: up to `count`, fewer at its end.
    pub(super) fn content(&self, file: usize, offset: u64, count: u64) -> &[u8] {
        let content = &self.given[file].content;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(content.len() - from);
        &content[from..from + count]
    }

    pub(super) fn bytes(&self, file: usize) -> u64 {
        self.given[file].content.len() as u64
    }
}
