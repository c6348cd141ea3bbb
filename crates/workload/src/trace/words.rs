//! The words of a trace's line, one after the other; each is what it should be, or a fault that says what was
//! expected. What the tracer of Accel-Sim 2.0 adds is here, too.

use std::ops::Range;

/// Where in a line, in bytes, something is wrong, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFault {
    pub(crate) at: Range<usize>,
    pub(crate) message: String,
}

/// What a line of the copy engine has before its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyWords {
    /// The address in shared memory of the barrier of a load.
    pub(crate) barrier: u64,
    /// The ranks of several CTAs, a bit each.
    pub(crate) ctas: Option<u16>,
    pub(crate) bytes: u32,
    /// Bytes that lie outside of the tensor.
    pub(crate) outside: u32,
}

/// Values of registers in a line, as text: of each register a number of values, 1 or 32, and these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RegisterValues<'a> {
    /// None where the line has none.
    pub(crate) text: Option<&'a [u8]>,
}

impl RegisterValues<'_> {
    /// The value of each lane of a register: results count before sources.
    pub(crate) fn of(self, register: usize) -> Option<[u64; 32]> {
        let mut words = self.text?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for _ in 0..register {
            let count = if words.next()? == b"1" { 1 } else { 32 };
            words.nth(count - 1)?;
        }
        let mut values = [0; 32];
        if words.next()? == b"1" {
            values = [hexadecimal(words.next()?)?; 32];
        } else {
            for value in &mut values {
                *value = hexadecimal(words.next()?)?;
            }
        }
        Some(values)
    }
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

    /// The words of the copy engine behind the width; addresses go to `addresses`.
    pub(super) fn copy_engine(&mut self, addresses: &mut Vec<u64>) -> Result<CopyWords, LineFault> {
        let barrier = self.parsed("the address of a barrier in base 16", hexadecimal)?;
        let multicast = self.number("whether it is for several CTAs, 0 or 1", 1)? == 1;
        let mask = |word| hexadecimal(word).and_then(|mask| u16::try_from(mask).ok());
        let ctas = if multicast { Some(self.parsed("a mask of CTAs in base 16", mask)?) } else { None };
        let bytes = self.number("a number of bytes", u64::from(u32::MAX))? as u32;
        let outside = self.number("a number of bytes outside", u64::from(u32::MAX))? as u32;
        let base = self.parsed("a mode of addresses: 3 (listed) or 4 (base and deltas)", |word| match word {
            b"3" => Some(false),
            b"4" => Some(true),
            _ => None,
        })?;
        let address = "an address in base 16";
        let mut at = if base { self.parsed("a base address in base 16", hexadecimal)? } else { 0 };
        for transfer in 0..self.number("a number of transfers", u64::MAX)? {
            at = match (base, transfer) {
                (false, _) => self.parsed(address, hexadecimal)?,
                (true, 0) => at,
                (true, _) => at.wrapping_add_signed(self.signed("a delta of addresses")?),
            };
            addresses.push(at);
        }
        Ok(CopyWords { barrier, ctas, bytes, outside })
    }

    /// What comes after the first immediate in version 6: another one, and values of `registers` registers.
    pub(super) fn values(&mut self, registers: u64) -> Result<(Option<i64>, RegisterValues<'a>), LineFault> {
        let none = RegisterValues::default();
        if self.is_over() {
            return Ok((None, none));
        }
        let (mut word, mut at) = self.next("")?;
        let second = immediate(word);
        if second.is_some() && !self.is_over() {
            (word, at) = self.next("")?;
        }
        match word {
            // They are looked at where an instruction needs them.
            b"Val" => {
                let from = self.at;
                for _ in 0..registers {
                    let values = self.parsed("a number of values, 1 or 32", |word| {
                        decimal(word).filter(|values| [1, 32].contains(values))
                    })?;
                    self.pass_over(values, "a value in base 16")?;
                }
                Ok((second, RegisterValues { text: Some(&self.line[from..self.at]) }))
            }
            b"NoVal" => Ok((second, none)),
            word if immediate(word).is_some() => Ok((second, none)),
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
