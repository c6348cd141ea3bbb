//! A line of a trace: one instruction of one warp.
//!
//! ```text
//!   [tbx tby tbz warp] [line] PC MASK  ND [Rd] OPCODE NS [Rs] [G] W  [MODE addresses] IMM [IMM2] [VALUES]
//!    version < 3        lineinfo       └─────── the same wherever it stands in the code ───────┘
//! ```
//! Source: the tracer of Accel-Sim, versions 1 to 6. Addresses follow where `W` is not 0. `MODE` 0 lists one
//! a lane; 1 has a base and a stride; 2 has a base and the distances from lane to lane, one fewer than lanes.
//! `IMM` came with version 5. A source `R4.reuse` has the bit of the register file cache; the tracer writes
//! none.
//!
//! Version 6 (Accel-Sim 2.0) names uniform registers and predicates too, and has `G` of `GMMA` opcodes
//! (whether it ends a group), a second immediate, and `NoVal` or `Val` with the values of all registers
//! named. Opcodes of the copy engine ([`COPY_ENGINE`]) have other words behind `W`:
//!
//! ```text
//!   BARRIER MULTICAST [MASK] BYTES BYTES_OUTSIDE  3 COUNT addresses  |  4 base COUNT deltas
//! ```
//! `REPLAY_START` and `REPLAY_END` stand around a loop that polled: they are no instructions.

use smallvec::SmallVec;

use super::words::{CopyWords, FILES, LineFault, RegisterValues, Words, hexadecimal, immediate};

/// Registers that are always zero or true: `R255`, `UR63` (from Blackwell on `UR255`), `P7`, `UP7`.
const CONSTANTS: [u16; 5] = [255, 256 + 63, 256 + 255, 512 + 7, 768 + 7];

/// Opcodes of the copy engine, by what their names begin with.
const COPY_ENGINE: [&str; 7] = ["UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG", "UBLKCP", "UBLKPF", "UBLKRED"];

/// The register `n` after another one of its file.
pub(crate) fn register_after(first: u16, n: u8) -> u16 {
    first & 0xff00 | ((first & 0xff) + u16::from(n)).min(0xff)
}

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
    /// Registers written and read, without those that are always zero.
    pub(crate) dst: SmallVec<[u16; 2]>,
    pub(crate) src: SmallVec<[u16; 6]>,
    /// Bytes a lane as the tracer says; 0 without addresses.
    pub(crate) width: u32,
    /// A product of four warps ends a group.
    pub(crate) ends_group: bool,
    pub(crate) imm: i64,
    /// The second immediate.
    pub(crate) imm2: Option<i64>,
    /// Of an instruction of the copy engine, whose addresses these are.
    pub(crate) copy: Option<CopyWords>,
    /// Results that the line names, and values of all registers that it names.
    pub(crate) results: usize,
    pub(crate) values: RegisterValues<'a>,
}

/// How the lines of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LineFormat {
    /// Version of the tracer.
    pub(crate) version: u32,
    /// Numbers of source lines come first.
    pub(crate) lineinfo: bool,
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
    let (files, what) = match format.version {
        6.. => (&FILES[..], "a register, such as R4, UR4, P0 or UP0"),
        _ => (&FILES[2..3], "a register, R0 to R255"),
    };
    // More than the tracer writes; more than this has no place on the scoreboard.
    let mut dst = SmallVec::new();
    for _ in 0..words.number("a number of destination registers, 2 at most", 2)? {
        dst.push(words.register(files, what)?);
    }
    let (opcode, _) = words.next("an opcode")?;
    let mut src = SmallVec::new();
    for _ in 0..words.number("a number of source registers, 8 at most", MOST_SOURCES)? {
        src.push(words.source(files, what)?);
    }
    let (results, registers) = (dst.len(), (dst.len() + src.len()) as u64);
    let name = opcode.split(|&byte| byte == b'.').next().unwrap_or_default();
    // Before version 6 nothing says it: each is a group.
    let named = format.version >= 6 && name.ends_with(b"GMMA");
    let ends_group = !named || words.number("whether it ends a group, 0 or 1", 1)? == 1;
    let mut width = words.number("a width in bytes", 4096)? as u32;
    let text = &line[from..words.at];
    let mut copy = None;
    if format.version >= 6 && COPY_ENGINE.iter().any(|begin| name.starts_with(begin.as_bytes())) {
        copy = Some(words.copy_engine(addresses)?);
        width = 0;
    } else if width > 0 {
        read_addresses(&mut words, mask, addresses)?;
    }
    let imm = if words.is_over() { 0 } else { words.parsed("an immediate", immediate)? };
    let (imm2, values) = if format.version >= 6 { words.values(registers)? } else { Default::default() };
    if !words.is_over() {
        let (_, at) = words.next("")?;
        return Err(LineFault { at, message: "the line goes on after its last word".to_owned() });
    }
    // Nothing waits for a register that is always zero.
    dst.retain(|register: &mut u16| !CONSTANTS.contains(register));
    src.retain(|register: &mut u16| !CONSTANTS.contains(register));
    let opcode = std::str::from_utf8(opcode).unwrap_or("?");
    Ok(TraceLine { mask, text, opcode, dst, src, width, ends_group, imm, imm2, copy, results, values })
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
    fn a_vector_register_that_is_read_may_be_reused() {
        let (line, _) = read("0a30 ffffffff 1 R4 FFMA 3 R2.reuse R255.reuse R6 0 0", V5).unwrap();
        assert_eq!((&line.src[..], line.text), (&[2, 6][..], &b"1 R4 FFMA 3 R2.reuse R255.reuse R6 0"[..]));
        let fault = |line| read(line, LineFormat { version: 6, lineinfo: false }).unwrap_err();
        let expected = "expected a register, such as R4, UR4, P0 or UP0; got";
        assert_eq!(fault("0010 ffffffff 1 R4.reuse MOV 0 0 0"), format!("17: {expected} `R4.reuse`"));
        assert_eq!(fault("0010 ffffffff 1 R4 MOV 1 UR4.reuse 0 0"), format!("26: {expected} `UR4.reuse`"));
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
    fn the_last_version_has_all_kinds_of_registers_a_second_immediate_and_values() {
        let v6 = LineFormat { version: 6, lineinfo: false };
        let (line, _) = read("0010 ffffffff 1 P0 ISETP.NE.AND 4 R2 R255 UR4 UP7 0 0 16 NoVal", v6).unwrap();
        assert_eq!((&line.dst[..], &line.src[..]), (&[512][..], &[2, 256 + 4][..]));
        let values = (0..32).map(|lane| format!(" {lane:x}")).collect::<String>();
        let (line, _) = read("0010 ffffffff 0 BAR.SYNC 0 0 3 64 Val", v6).unwrap();
        assert_eq!((line.imm, line.imm2, line.values.text), (3, Some(64), Some(&b""[..])));
        for end in ["0", "0 18446744073709551615", "3 NoVal", "3 4 NoVal", "3 4 Val 1 ff 32{}", "-3 Val 32{} 1 0xff"] {
            let text = format!("0010 0000000f 1 R4 LDG.E 1 R2 4 1 0x1000 4 {}", end.replace("{}", &values));
            let (_, addresses) = read(&text, v6).unwrap();
            assert_eq!(addresses, [0x1000, 0x1004, 0x1008, 0x100c], "{end}");
        }
        let fault = |line| read(line, v6).unwrap_err();
        assert_eq!(
            fault("0010 0000000f 1 R4 MOV 0 0 3 4 Maybe"),
            "32: expected an immediate, `Val` or `NoVal`; got `Maybe`"
        );
        assert_eq!(fault("0010 0000000f 1 R4 MOV 0 0 3 4 Val 2"), "36: expected a number of values, 1 or 32; got `2`");
        assert_eq!(
            fault("0010 0000000f 1 R4 MOV 0 0 3 4 Val 1"),
            "37: the line ends where a value in base 16 is expected"
        );
        assert_eq!(
            fault("0010 0000000f 1 U4 MOV 0 0 3"),
            "17: expected a register, such as R4, UR4, P0 or UP0; got `U4`"
        );
    }

    #[test]
    fn a_line_of_the_copy_engine_has_a_barrier_bytes_and_addresses() {
        let v6 = LineFormat { version: 6, lineinfo: false };
        let copied = |ctas, bytes, outside| Some(CopyWords { barrier: 0x400, ctas, bytes, outside });
        for (text, copy, expected) in [
            (
                "0010 00000001 0 UTMALDG.2D 2 UR4 UR8 16 0x400 0 8192 0 3 2 0x7f0000001000 0x7f0000002000 0 0 NoVal",
                copied(None, 8192, 0),
                &[0x7f00_0000_1000, 0x7f00_0000_2000][..],
            ),
            (
                "0010 00000001 0 UTMALDG.3D.MULTICAST 2 UR4 UR8 16 0x400 1 0x3 8192 64 4 0x7f0000001000 3 128 -128 0",
                copied(Some(3), 8192, 64),
                &[0x7f00_0000_1000, 0x7f00_0000_1080, 0x7f00_0000_1000],
            ),
            ("0010 00000001 0 UBLKCP 2 UR4 UR8 16 0x400 0 0 0 4 0x0 0 0", copied(None, 0, 0), &[]),
            ("0010 ffffffff 1 R24 HGMMA.64x64x16.F32 3 UR4 R24 UP0 1 0 0 NoVal", None, &[]),
        ] {
            let (line, addresses) = read(text, v6).unwrap();
            assert_eq!((line.width, line.copy, &addresses[..]), (0, copy, expected), "{text}");
        }
        let fault = |line| read(line, v6).unwrap_err();
        let short = fault("0010 00000001 0 UTMALDG.2D 0 16 0x400 0 8192 0 3 2 0x7f0000001000");
        assert!(short.ends_with("the line ends where an address in base 16 is expected"), "{short}");
        let mode = fault("0010 00000001 0 UTMALDG.2D 0 16 0x400 0 8192 0 1 2 0x7f0000001000");
        assert_eq!(mode, "48: expected a mode of addresses: 3 (listed) or 4 (base and deltas); got `1`");
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
