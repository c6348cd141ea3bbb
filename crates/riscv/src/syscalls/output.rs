//! What a process has written to its standard streams, and which of its threads wrote it.
//!
//! Threads that write without a lock write in an order that nobody has decided. What each of them writes, in
//! its order, is decided by the program.

use durawarp_checkpoint::value;

/// What a thread wrote to a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// Number of the thread.
    pub thread: u64,
    /// It is standard error; standard output otherwise.
    pub to_stderr: bool,
    /// All of it, in the order in which it was written.
    pub bytes: Vec<u8>,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Output {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Thread, stream, and bytes written without another's between them, in order.
    pieces: Vec<(u64, bool, u64)>,
}

value!(record Output { stdout, stderr, pieces });

impl Output {
    /// A thread writes.
    pub(super) fn write(&mut self, thread: u64, to_stderr: bool, bytes: &[u8]) {
        let stream = if to_stderr { &mut self.stderr } else { &mut self.stdout };
        stream.extend(bytes);
        match self.pieces.last_mut() {
            Some((of, stream, length)) if (*of, *stream) == (thread, to_stderr) => *length += bytes.len() as u64,
            _ if bytes.is_empty() => {}
            _ => self.pieces.push((thread, to_stderr, bytes.len() as u64)),
        }
    }

    /// Standard output, and standard error.
    pub(super) fn bytes(&self) -> (&[u8], &[u8]) {
        (&self.stdout, &self.stderr)
    }

    /// By thread and stream.
    pub(super) fn by_thread(&self) -> Vec<Written> {
        let mut written: Vec<Written> = Vec::new();
        let mut from = [0, 0];
        for &(thread, to_stderr, length) in &self.pieces {
            let stream = if to_stderr { &self.stderr } else { &self.stdout };
            let at = &mut from[usize::from(to_stderr)];
            let piece = &stream[*at..*at + length as usize];
            *at += length as usize;
            match written.binary_search_by_key(&(thread, to_stderr), |of| (of.thread, of.to_stderr)) {
                Ok(place) => written[place].bytes.extend(piece),
                Err(place) => written.insert(place, Written { thread, to_stderr, bytes: piece.to_vec() }),
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_writes_stays_in_its_order_whatever_others_write_between() {
        let mut output = Output::default();
        for (thread, to_stderr, bytes) in [(101, false, "a"), (100, false, "x"), (101, true, "!"), (101, false, "b")] {
            output.write(thread, to_stderr, bytes.as_bytes());
        }
        assert_eq!(output.bytes(), (&b"axb"[..], &b"!"[..]));
        let of = |thread, to_stderr, bytes: &[u8]| Written { thread, to_stderr, bytes: bytes.to_vec() };
        assert_eq!(output.by_thread(), [of(100, false, b"x"), of(101, false, b"ab"), of(101, true, b"!")]);
    }
}
