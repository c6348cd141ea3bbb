//! The words of a trace's line, one after the other; each is what it should be, or a fault that says what was
//! expected. Of what the tracer of Accel-Sim 2.0 adds the parts that are passed over are here, too.

use std::ops::Range;

/// Where in a line, in bytes, something is wrong, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFault {
    pub(crate) at: Range<usize>,
    pub(crate) message: String,
}

/// Files of registers: a register's number is that of its file, times 256, and its own.
pub(super) const FILES: [(&[u8], u16); 4] = [(b"UR", 1), (b"UP", 3), (b"R", 0), (b"P", 2)];

/// What follows a source that the register file cache is to keep.
pub(super) const REUSE: &str = ".reuse";

/// Words of a line.
pub(super) struct Words<'a> {
    pub(super) line: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Words<'a> {
    /// The next word, or a fault that says what was expected.
    pub(super) fn next(&mut self, what: &str) -> Result<(&'a [u8], Range<usize>), LineFault> {
        let from = self.at + self.line[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let to = from + self.line[from..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        self.at = to;
        if from == to {
            let message = format!("the line ends where {what} is expected");
            return Err(LineFault { at: from..from, message });
        }
        Ok((&self.line[from..to], from..to))
    }

    pub(super) fn is_over(&self) -> bool {
        self.line[self.at..].iter().all(u8::is_ascii_whitespace)
    }

    pub(super) fn parsed<T>(&mut self, what: &str, parse: impl FnOnce(&'a [u8]) -> Option<T>) -> Result<T, LineFault> {
        let (word, at) = self.next(what)?;
        parse(word).ok_or_else(|| {
            let message = format!("expected {what}; got `{}`", String::from_utf8_lossy(word));
            LineFault { at, message }
        })
    }

    pub(super) fn number(&mut self, what: &str, most: u64) -> Result<u64, LineFault> {
        self.parsed(what, |word| decimal(word).filter(|&number| number <= most))
    }

    pub(super) fn signed(&mut self, what: &str) -> Result<i64, LineFault> {
        self.parsed(what, signed)
    }

    pub(super) fn register(&mut self, files: &[(&[u8], u16)], what: &str) -> Result<u16, LineFault> {
        self.parsed(what, |word| register_of(word, files))
    }

    /// A register that is read. A vector register may have `.reuse`, as SASS has it.
    pub(super) fn source(&mut self, files: &[(&[u8], u16)], what: &str) -> Result<u16, LineFault> {
        self.parsed(what, |word| match word.strip_suffix(REUSE.as_bytes()) {
            Some(register) => register_of(register, files).filter(|&register| register < 256),
            None => register_of(word, files),
        })
    }

    /// Hexadecimal numbers, which do not matter.
    fn pass_over(&mut self, count: u64, what: &str) -> Result<(), LineFault> {
        (0..count).try_for_each(|_| self.parsed(what, hexadecimal).map(drop))
    }

    /// The words of the copy engine behind the width.
    pub(super) fn copy_engine(&mut self) -> Result<(), LineFault> {
        self.pass_over(1, "the address of a barrier in base 16")?;
        let multicast = self.number("whether it is for several CTAs, 0 or 1", 1)?;
        self.pass_over(multicast, "a mask of CTAs in base 16")?;
        self.number("a number of bytes", u64::MAX)?;
        self.number("a number of bytes outside", u64::MAX)?;
        let base = self.parsed("a mode of addresses: 3 (listed) or 4 (base and deltas)", |word| match word {
            b"3" => Some(false),
            b"4" => Some(true),
            _ => None,
        })?;
        self.pass_over(u64::from(base), "a base address in base 16")?;
        let transfers = self.number("a number of transfers", u64::MAX)?;
        match base {
            true => (1..transfers).try_for_each(|_| self.signed("a delta of addresses").map(drop)),
            false => self.pass_over(transfers, "an address in base 16"),
        }
    }

    /// What comes after the first immediate in version 6: another one, and values of `registers` registers.
    pub(super) fn values(&mut self, registers: u64) -> Result<(), LineFault> {
        if self.is_over() {
            return Ok(());
        }
        let (mut word, mut at) = self.next("")?;
        if immediate(word).is_some() && !self.is_over() {
            (word, at) = self.next("")?;
        }
        match word {
            b"Val" => (0..registers).try_for_each(|_| {
                let values = self.parsed("a number of values, 1 or 32", |word| {
                    decimal(word).filter(|values| [1, 32].contains(values))
                })?;
                self.pass_over(values, "a value in base 16")
            }),
            b"NoVal" => Ok(()),
            word if immediate(word).is_some() => Ok(()),
            word => {
                let message =
                    format!("expected an immediate, `Val` or `NoVal`; got `{}`", String::from_utf8_lossy(word));
                Err(LineFault { at, message })
            }
        }
    }
}

fn register_of(word: &[u8], files: &[(&[u8], u16)]) -> Option<u16> {
    let (number, file) = files.iter().find_map(|(name, file)| Some((word.strip_prefix(*name)?, file)))?;
    let number = u8::try_from(decimal(number)?).ok()?;
    Some(256 * file + u16::from(number))
}

fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 19 {
        return None;
    }
    word.iter().try_fold(0u64, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}

fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => i64::try_from(decimal(digits)?).ok().map(|number| -number),
        None => i64::try_from(decimal(word)?).ok(),
    }
}

/// An immediate of 64 bits, signed or not.
pub(super) fn immediate(word: &[u8]) -> Option<i64> {
    signed(word).or_else(|| Some(std::str::from_utf8(word).ok()?.parse::<u64>().ok()? as i64))
}

/// A number in base 16, with or without `0x`.
pub(crate) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| Some(number << 4 | u64::from((*byte as char).to_digit(16)?)))
}
