//! How a call reads memory, writes it, and ends.

use crate::syscalls::call::{CallStep, Data, Reply, Then, Write};
use crate::syscalls::number::error;
use crate::syscalls::state::Os;

/// The most bytes that one call reads or writes: what is beyond is left to the next call, as Linux allows.
pub(super) const TRANSFER_MAX_BYTES: u64 = 1 << 20;
/// The most bytes of a path.
const PATH_MAX_BYTES: u64 = 4096;

/// A step that ends a call early: a reading that it needs, or its error.
pub(super) type Early = CallStep;
/// What a call gives when it goes through.
pub(super) type Result<T> = std::result::Result<T, Early>;

pub(super) fn done(writes: Vec<Write>, then: Then) -> CallStep {
    CallStep::Done(Reply { writes, then, wakes: Vec::new() })
}

pub(super) fn value(result: u64) -> CallStep {
    done(Vec::new(), Then::Return(result))
}

/// The end of a call by an error.
pub(super) fn failed(error: u64) -> CallStep {
    value(error.wrapping_neg())
}

/// The end of a call by its result or its error.
pub(super) fn checked(result: std::result::Result<u64, u64>) -> CallStep {
    result.map_or_else(failed, value)
}

/// The end of a call that is not served.
pub(super) fn missing(os: &mut Os, number: u64) -> CallStep {
    os.note_missing(number);
    failed(error::ENOSYS)
}

/// What was read for a call, handed out in order.
pub(super) struct Reader<'a> {
    pub(super) read: std::slice::Iter<'a, Vec<u8>>,
}

impl Reader<'_> {
    /// Bytes of memory: those read before, or an early end of the call that asks for them.
    pub(super) fn bytes(&mut self, os: &Os, address: u64, bytes: u64) -> Result<Vec<u8>> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        if os.process.windows.place(address, bytes).is_none() {
            return Err(failed(error::EFAULT));
        }
        // A driver that reads less than it was asked for gives zeros for the rest.
        let padded = |read: &Vec<u8>| {
            let mut read = read.clone();
            read.resize(bytes as usize, 0);
            read
        };
        self.read.next().map(padded).ok_or(CallStep::Read { address, bytes })
    }

    pub(super) fn words<const N: usize>(&mut self, os: &Os, address: u64) -> Result<[u64; N]> {
        let bytes = self.bytes(os, address, 8 * N as u64)?;
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(words)
    }

    /// The words at an address; none of address 0.
    pub(super) fn words_if_any<const N: usize>(&mut self, os: &Os, address: u64) -> Result<Option<[u64; N]>> {
        if address == 0 { Ok(None) } else { self.words(os, address).map(Some) }
    }

    /// A text that ends with a zero: read page by page, since memory may end behind it.
    pub(super) fn path(&mut self, os: &Os, address: u64) -> Result<String> {
        let mut path = Vec::new();
        while (path.len() as u64) < PATH_MAX_BYTES {
            let at = address.wrapping_add(path.len() as u64);
            let bytes = self.bytes(os, at, 256 - at % 256)?;
            let end = bytes.iter().position(|byte| *byte == 0);
            path.extend(&bytes[..end.unwrap_or(bytes.len())]);
            if end.is_some() {
                return Ok(String::from_utf8_lossy(&path).into_owned());
            }
        }
        Err(failed(error::ENOENT))
    }
}

/// A store of a call, if it may be made.
pub(super) fn write(os: &Os, address: u64, bytes: Vec<u8>) -> Result<Write> {
    let length = bytes.len() as u64;
    if length > 0 && (os.process.windows.place(address, length).is_none() || os.process.code.overlaps(address, length))
    {
        return Err(failed(error::EFAULT));
    }
    Ok(Write { address, data: Data::Bytes(bytes) })
}

/// What a call stores of these words: nothing at address 0.
pub(super) fn write_words_if_any(os: &Os, address: u64, words: &[u64]) -> Result<Vec<Write>> {
    if address == 0 { Ok(Vec::new()) } else { Ok(vec![write_words(os, address, words)?]) }
}

pub(super) fn write_words(os: &Os, address: u64, words: &[u64]) -> Result<Write> {
    write(os, address, words.iter().flat_map(|word| word.to_le_bytes()).collect())
}
