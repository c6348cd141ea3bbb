//! The lines of a trace file, plain or compressed, one after the other: no file is held whole.
//!
//! Whether it is compressed follows from its name alone: `.traceg` or `.traceg.xz`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::Path;

use lzma_rust2::XzReader;

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

/// Opens a regular file.
///
/// # Errors
/// It cannot be opened, or is none.
pub(super) fn regular(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => {
            let message = "it is no regular file; traces are read more than once";
            Err(io::Error::new(ErrorKind::InvalidInput, message))
        }
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
    /// Lines of a text.
    pub(crate) fn of_text(text: Vec<u8>) -> TraceLines {
        TraceLines { text: Box::new(io::Cursor::new(text)), line: Vec::new(), number: 0 }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub(crate) fn open(path: &Path) -> io::Result<TraceLines> {
        let plain = BufReader::with_capacity(BUFFER_BYTES, regular(path)?);
        let text: Box<dyn BufRead + Send> = match path.extension().is_some_and(|end| end == "xz") {
            true => Box::new(BufReader::with_capacity(BUFFER_BYTES, XzReader::new(plain, true))),
            false => Box::new(plain),
        };
        Ok(TraceLines { text, line: Vec::new(), number: 0 })
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
