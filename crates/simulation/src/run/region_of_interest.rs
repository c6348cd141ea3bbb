//! Which part of a program of CPUs is its region of interest, as it is asked for.
//!
//! | text | the region |
//! |---|---|
//! | `instructions=FROM..TO` | instructions FROM to TO - 1, counted from 0; without TO to the program's end |
//! | `function=NAME` | the first call of a function, to its return |
//! | `markers` | from the first marker that begins a region to the next one that ends it |
//!
//! Markers are hints of the instruction set (`slti x0, x0, N`), so that a program with them runs on every
//! hart. Sources: *The RISC-V Instruction Set Manual*, volume I, 20191213, table 2.3: `SLTI` to `x0` is
//! designated for custom use; 1 begins and 2 ends a region as in Sniper's `sim_api.h` (`SIM_CMD_ROI_START`,
//! `SIM_CMD_ROI_END`).

use std::fmt;
use std::str::FromStr;

use durawarp_riscv::instruction::{Inst, NOWHERE, Op, X0};

/// A region of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegionOfInterest {
    /// Between two markers.
    Markers,
    /// From the first of these instructions to the one before the second.
    Instructions(u64, Option<u64>),
    /// The first call of this function.
    Function(String),
}

/// What a marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Begin,
    End,
}

impl Marker {
    /// The marker that an instruction is.
    #[inline]
    pub(super) fn of(inst: &Inst) -> Option<Marker> {
        match inst {
            Inst { op: Op::Slti, rd: NOWHERE, rs1: X0, imm: 1, .. } => Some(Marker::Begin),
            Inst { op: Op::Slti, rd: NOWHERE, rs1: X0, imm: 2, .. } => Some(Marker::End),
            _ => None,
        }
    }
}

/// What [`RegionOfInterest::from_str`] reads.
const FORMS: &str = "markers, instructions=FROM..TO, instructions=FROM.. or function=NAME";

impl FromStr for RegionOfInterest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected {FORMS}; got `{text}`");
        match text.split_once('=') {
            None if text == "markers" => Ok(RegionOfInterest::Markers),
            Some(("function", name)) if !name.is_empty() => Ok(RegionOfInterest::Function(name.to_owned())),
            Some(("instructions", range)) => {
                let (from, to) = range.split_once("..").ok_or_else(expected)?;
                let number = |text: &str| text.replace('_', "").parse::<u64>().map_err(|_| expected());
                let (from, to) = (number(from)?, if to.is_empty() { None } else { Some(number(to)?) });
                if to.is_some_and(|to| to <= from) {
                    return Err(format!("a region of no instruction: `{text}` ends where it begins, or before"));
                }
                Ok(RegionOfInterest::Instructions(from, to))
            }
            _ => Err(expected()),
        }
    }
}

impl fmt::Display for RegionOfInterest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionOfInterest::Markers => write!(f, "markers"),
            RegionOfInterest::Instructions(from, Some(to)) => write!(f, "instructions={from}..{to}"),
            RegionOfInterest::Instructions(from, None) => write!(f, "instructions={from}.."),
            RegionOfInterest::Function(name) => write!(f, "function={name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_riscv::decode::decode;

    #[test]
    fn what_is_read_is_written_again() {
        for text in ["markers", "instructions=5..70", "instructions=5..", "function=main"] {
            assert_eq!(text.parse::<RegionOfInterest>().unwrap().to_string(), text);
        }
        assert_eq!("instructions=1_000..2_000".parse(), Ok(RegionOfInterest::Instructions(1000, Some(2000))));
        for text in
            ["", "marker", "instructions", "instructions=7", "instructions=..7", "instructions=a..b", "function="]
        {
            assert!(text.parse::<RegionOfInterest>().unwrap_err().contains("expected markers"), "{text}");
        }
        assert!("instructions=7..7".parse::<RegionOfInterest>().unwrap_err().contains("of no instruction"));
    }

    #[test]
    fn markers_are_two_hints_and_nothing_else() {
        let marker = |word| Marker::of(&decode(word));
        assert_eq!((marker(0x0010_2013), marker(0x0020_2013)), (Some(Marker::Begin), Some(Marker::End)));
        // slti x0, x0, 3; slti x0, x1, 1; slti x1, x0, 1; sltiu x0, x0, 1; addi x0, x0, 1.
        for word in [0x0030_2013, 0x0010_a013, 0x0010_2093, 0x0010_3013, 0x0010_0013] {
            assert_eq!(marker(word), None, "{word:#x}");
        }
    }
}
