//! A line of a trace: one instruction of one warp.
//!
//! ```text
//!   [tbx tby tbz warp] [line] PC MASK  ND [Rd] OPCODE NS [Rs] W  [MODE addresses] IMM
//!    version < 3        lineinfo       └────── the same wherever it stands in the code ──────┘
//! ```
//! Source: the tracer of Accel-Sim, versions 1 to 5. Addresses follow where `W` is not 0. `MODE` 0 lists one
//! a lane; 1 has a base and a stride; 2 has a base and the distances from lane to lane, one fewer than lanes.
//! `IMM` came with version 5.

use smallvec::SmallVec;

/// The register that is always zero.
pub(crate) const ZERO_REGISTER: u8 = 255;

/// Source registers that an instruction names, at most.
const MOST_SOURCES: u64 = 8;

/// One instruction of one warp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceLine<'a> {
    /// Lanes that execute it.
    pub(crate) mask: u32,
    /// From `ND` to `W`.
    pub(crate) text: &'a [u8],
    pub(crate) opcode: &'a str,
    /// Registers written and read, without the one that is always zero.
    pub(crate) dst: SmallVec<[u8; 2]>,
    pub(crate) src: SmallVec<[u8; 6]>,
    /// Bytes a lane as the tracer says; 0 without addresses.
    pub(crate) width: u32,
    pub(crate) imm: i64,
}

/// Where in a line, in bytes, something is wrong, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFault {
    pub(crate) at: std::ops::Range<usize>,
    pub(crate) message: String,
}

/// How the lines of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LineFormat {
    /// Version of the tracer.
    pub(crate) version: u32,
    /// Numbers of source lines come first.
    pub(crate) lineinfo: bool,
}

/// Words of a line.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word, or a fault that says what was expected.
    fn next(&mut self, what: &str) -> Result<(&'a [u8], std::ops::Range<usize>), LineFault> {
        let from = self.at + self.line[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let to = from + self.line[from..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        self.at = to;
        if from == to {
            let message = format!("the line ends where {what} is expected");
            return Err(LineFault { at: from..from, message });
        }
        Ok((&self.line[from..to], from..to))
    }

    fn is_over(&self) -> bool {
        self.line[self.at..].iter().all(u8::is_ascii_whitespace)
    }

    fn parsed<T>(&mut self, what: &str, parse: impl FnOnce(&'a [u8]) -> Option<T>) -> Result<T, LineFault> {
        let (word, at) = self.next(what)?;
        parse(word).ok_or_else(|| {
            let message = format!("expected {what}; got `{}`", String::from_utf8_lossy(word));
            LineFault { at, message }
        })
    }

    fn number(&mut self, what: &str, most: u64) -> Result<u64, LineFault> {
        self.parsed(what, |word| decimal(word).filter(|&number| number <= most))
    }

    fn signed(&mut self, what: &str) -> Result<i64, LineFault> {
        self.parsed(what, signed)
    }

    fn register(&mut self) -> Result<u8, LineFault> {
        self.parsed("a register, R0 to R255", |word| u8::try_from(decimal(word.strip_prefix(b"R")?)?).ok())
    }
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

/// A number in base 16, with or without `0x`.
pub(crate) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| Some(number << 4 | u64::from((*byte as char).to_digit(16)?)))
}

/// Reads a line; the address of each lane of its mask goes to `addresses`, in the order of lanes.
///
/// # Errors
/// The first word that is not what it should be.
pub(crate) fn read_line<'a>(
    line: &'a [u8],
    format: LineFormat,
    addresses: &mut Vec<u64>,
) -> Result<TraceLine<'a>, LineFault> {
    addresses.clear();
    let mut words = Words { line, at: 0 };
    if format.version < 3 {
        for what in ["the CTA's x", "the CTA's y", "the CTA's z", "the warp's number"] {
            words.number(what, u64::from(u32::MAX))?;
        }
    }
    if format.lineinfo {
        words.number("a line number", u64::MAX)?;
    }
    words.parsed("a program counter in base 16", hexadecimal)?;
    let mask = words.parsed("a mask of 8 digits in base 16", |word| {
        hexadecimal(word).filter(|_| word.len() == 8).map(|mask| mask as u32)
    })?;
    let from = words.at + words.line[words.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    // More than the tracer writes; more than this has no place on the scoreboard.
    let mut dst = SmallVec::new();
    for _ in 0..words.number("a number of destination registers, 2 at most", 2)? {
        dst.push(words.register()?);
    }
    let (opcode, _) = words.next("an opcode")?;
    let mut src = SmallVec::new();
    for _ in 0..words.number("a number of source registers, 8 at most", MOST_SOURCES)? {
        src.push(words.register()?);
    }
    let width = words.number("a width in bytes", 4096)? as u32;
    let text = &line[from..words.at];
    if width > 0 {
        read_addresses(&mut words, mask, addresses)?;
    }
    let imm = if words.is_over() { 0 } else { words.signed("an immediate")? };
    if !words.is_over() {
        let (_, at) = words.next("")?;
        return Err(LineFault { at, message: "the line goes on after its last word".to_owned() });
    }
    // Nothing waits for a register that is always zero.
    dst.retain(|register: &mut u8| *register != ZERO_REGISTER);
    src.retain(|register: &mut u8| *register != ZERO_REGISTER);
    let opcode = std::str::from_utf8(opcode).unwrap_or("?");
    Ok(TraceLine { mask, text, opcode, dst, src, width, imm })
}

fn read_addresses(words: &mut Words<'_>, mask: u32, addresses: &mut Vec<u64>) -> Result<(), LineFault> {
    let lanes = mask.count_ones();
    let (_, at) = {
        let start = words.at;
        let mode = words.next("a mode of addresses")?;
        words.at = start;
        mode
    };
    match words.number("a mode of addresses: 0 (listed), 1 (base and stride) or 2 (base and deltas)", 2)? {
        0 => {
            for _ in 0..lanes {
                addresses.push(words.parsed("an address in base 16", hexadecimal)?);
            }
        }
        1 => {
            let base = words.parsed("a base address in base 16", hexadecimal)?;
            let stride = words.signed("a stride")?;
            let contiguous =
                mask == 0 || (mask >> mask.trailing_zeros()).checked_add(1).is_none_or(|next| next.is_power_of_two());
            if !contiguous {
                let message = format!("base and stride are for lanes side by side, and the mask is {mask:08x}");
                return Err(LineFault { at, message });
            }
            addresses.extend((0..i64::from(lanes)).map(|lane| base.wrapping_add_signed(lane.wrapping_mul(stride))));
        }
        _ => {
            let mut address = words.parsed("a base address in base 16", hexadecimal)?;
            // Accel-Sim's own parser reads one more: it takes the immediate for a delta.
            for lane in 0..lanes {
                if lane > 0 {
                    address = address.wrapping_add_signed(words.signed("a delta of addresses")?);
                }
                addresses.push(address);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V5: LineFormat = LineFormat { version: 5, lineinfo: false };

    fn read(line: &str, format: LineFormat) -> Result<(TraceLine<'_>, Vec<u64>), String> {
        let mut addresses = vec![7];
        let read = read_line(line.as_bytes(), format, &mut addresses);
        read.map(|line| (line, addresses)).map_err(|fault| format!("{}: {}", fault.at.start + 1, fault.message))
    }

    #[test]
    fn a_computation_names_its_registers() {
        let (line, addresses) = read("0a30 ffffffff 1 R4 IMAD.WIDE 3 R2 R255 R6 0 16", V5).unwrap();
        assert_eq!((line.mask, line.opcode, line.width, line.imm), (u32::MAX, "IMAD.WIDE", 0, 16));
        assert_eq!((&line.dst[..], &line.src[..], addresses.len()), (&[4][..], &[2, 6][..], 0));
        assert_eq!(line.text, b"1 R4 IMAD.WIDE 3 R2 R255 R6 0");
    }

    #[test]
    fn the_three_modes_give_the_same_addresses() {
        let expected = vec![0x7f00_0000_1000, 0x7f00_0000_1004, 0x7f00_0000_1008];
        for addresses in
            ["0 0x00007f0000001000 0x00007f0000001004 0x00007f0000001008", "1 0x7f0000001000 4", "2 0x7f0000001000 4 4"]
        {
            let text = format!("0010 00000e00 1 R0 LDG.E.SYS 1 R2 4 {addresses} -3");
            let (line, found) = read(&text, V5).unwrap();
            assert_eq!((found, line.imm), (expected.clone(), -3), "{addresses}");
        }
        let (_, one) = read("0010 00000001 1 R0 LDG.E 1 R2 4 2 0x40 0", V5).unwrap();
        assert_eq!(one, [0x40], "deltas of one lane are none");
        let (_, none) = read("0010 00000000 1 R0 LDG.E 1 R2 4 1 0x0 0 0", V5).unwrap();
        assert!(none.is_empty());
        let (_, all) = read("0010 ffffffff 1 R0 LDG.E 1 R2 4 1 0x1000 -8 0", V5).unwrap();
        assert_eq!((all.len(), all[31]), (32, 0x1000 - 31 * 8));
    }

    #[test]
    fn older_versions_and_line_numbers_have_words_in_front() {
        let old = LineFormat { version: 2, lineinfo: false };
        assert_eq!(read("1 0 0 3 0010 00000001 0 EXIT 0 0", old).unwrap().0.opcode, "EXIT");
        let lines = LineFormat { version: 4, lineinfo: true };
        assert_eq!(read("27 0010 00000001 0 EXIT 0 0", lines).unwrap().0.opcode, "EXIT");
    }

    #[test]
    fn a_wrong_word_is_named_with_its_place() {
        let fault = |line| read(line, V5).unwrap_err();
        assert_eq!(fault("0010 ffff 0 EXIT 0 0 0"), "6: expected a mask of 8 digits in base 16; got `ffff`");
        assert_eq!(fault("0010 ffffffff 1 P0 MOV 0 0 0"), "17: expected a register, R0 to R255; got `P0`");
        assert_eq!(fault("0010 ffffffff 0 EXIT 0"), "23: the line ends where a width in bytes is expected");
        assert_eq!(fault("0010 ffffffff 0 EXIT 0 0 0 9"), "28: the line goes on after its last word");
        let listed = fault("0010 00000003 1 R0 LDG 1 R2 4 0 0x10");
        assert_eq!(listed, "37: the line ends where an address in base 16 is expected");
    }
}
