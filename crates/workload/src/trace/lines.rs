//! The lines of a trace file, plain or compressed, one after the other: no file is held whole.
//!
//! What kind of file it is follows from its name alone: `.traceg` or `.traceg.xz`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::Path;

use lzma_rust2::XzReader;

use super::faults::TraceFaults;

/// Bytes that are read from a file at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Most bytes of a line: one of 32 listed addresses has about 700.
const LINE_BYTES: usize = 1 << 16;

/// What a reader of compressed text says in its own words.
fn told(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(ErrorKind::UnexpectedEof, "its compressed text is cut short"),
        _ => error,
    }
}

/// Lines of a file, numbered from 1.
pub(crate) struct TraceLines {
    text: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u32,
}

impl std::fmt::Debug for TraceLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceLines").field("number", &self.number).finish_non_exhaustive()
    }
}

impl TraceLines {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub(crate) fn open(path: &Path) -> io::Result<TraceLines> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            let message = "it is no regular file; traces are read more than once";
            return Err(io::Error::new(ErrorKind::InvalidInput, message));
        }
        let plain = BufReader::with_capacity(BUFFER_BYTES, file);
        let text: Box<dyn BufRead + Send> = match path.extension().is_some_and(|end| end == "xz") {
            true => Box::new(BufReader::with_capacity(BUFFER_BYTES, XzReader::new(plain, true))),
            false => Box::new(plain),
        };
        Ok(TraceLines { text, line: Vec::new(), number: 0 })
    }

    /// The same, with what is wrong as a fault of the file.
    pub(super) fn opened(path: &Path, faults: &mut TraceFaults) -> Option<TraceLines> {
        let lines = TraceLines::open(path);
        lines.map_err(|error| faults.nowhere(&format!("cannot read the file: {error}"))).ok()
    }

    /// The next line that is not blank, without its end, and its number; none at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, or its compressed text is broken.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u32, &[u8])>> {
        loop {
            self.line.clear();
            let mut text = io::Read::take(&mut self.text, LINE_BYTES as u64);
            if text.read_until(b'\n', &mut self.line).map_err(told)? == 0 {
                return Ok(None);
            }
            self.number = self.number.saturating_add(1);
            if self.line.len() == LINE_BYTES {
                let message = format!("line {} has over {LINE_BYTES} bytes", self.number);
                return Err(io::Error::new(ErrorKind::InvalidData, message));
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((self.number, self.line.trim_ascii_end())));
            }
        }
    }

    /// The number of the line that came last.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}
