//! Names of what is not executed: which extension, or which kind, a word belongs to that is no [`Inst`] here.
//!
//! Programs meet such words where they were compiled for more than this machine has. Source: The RISC-V
//! Instruction Set Manual, volume I, chapter "RV32/64G Instruction Set Listings"; volume II; the ratified
//! extensions that it lists. Of a word that none of them has nothing is said.
//!
//! [`Inst`]: super::super::instruction::Inst

use super::fields::{bits, rs2};

/// What a word is of that is not executed.
///
/// ```
/// use durawarp_riscv::decode::unsupported;
/// assert_eq!(unsupported(0x0000_7057), Some("vectors: V"));
/// ```
pub fn unsupported(word: u32) -> Option<&'static str> {
    if word & 3 != 3 {
        return compressed(word as u16);
    }
    let (funct3, funct7) = (bits(word, 12, 3), bits(word, 25, 7));
    Some(match bits(word, 2, 5) {
        0b10101 => "vectors: V",
        0b00001 | 0b01001 => match funct3 {
            1 => "half precision: Zfh",
            4 => "quadruple precision: Q",
            _ => "vectors: V",
        },
        0b00010 | 0b01010 | 0b10110 | 0b11110 => "a custom instruction",
        0b00011 => match (funct3, word >> 20) {
            (2, 0) => "cbo.inval, which would lose data",
            (2, 4) => "cbo.zero: Zicboz",
            _ => return None,
        },
        0b01011 => match (bits(word, 27, 5), funct3) {
            (0b00101, _) => "compare-and-swap: Zacas",
            (0b00110 | 0b00111, _) => "load-acquire or store-release: Zalasr",
            (_, 0 | 1) => "atomics of bytes and half words: Zabha",
            _ => return None,
        },
        0b01100 => match (funct7, funct3) {
            (0x05, 1..=3) => "carry-less multiplication: Zbc",
            (0x04, 4) | (0x14, 2 | 4) => "bits for cryptography: Zbkb, Zbkx",
            _ if funct7 & 0x1f >= 0x17 => "cryptography: Zkn, Zks",
            _ => return None,
        },
        0b00100 => match (funct3, funct7) {
            (1, 0x04) | (5, 0x34) => "bits for cryptography: Zbkb",
            (1, 0x08 | 0x18) => "cryptography: Zkn, Zks",
            _ => return None,
        },
        0b01110 if (funct7, funct3) == (0x04, 4) => "bits for cryptography: Zbkb",
        0b10000..=0b10011 => match bits(word, 25, 2) {
            2 => "half precision: Zfh",
            3 => "quadruple precision: Q",
            _ => "a reserved rounding mode",
        },
        0b10100 => return float(word),
        0b11100 => match (funct3, word >> 20) {
            (0, 0x105) => "wfi, which is privileged",
            (0, _) => "a privileged instruction",
            (4, _) => "an instruction of hypervisors: H",
            (_, 0xc03..=0xc1f) => "a counter of performance: Zihpm",
            (_, 0xc00..=0xc02) => "a write of a counter that is only read",
            (_, 0x008..=0x00f | 0xc20..=0xc22) => "vectors: V",
            (_, 0x015) => "a source of entropy: Zkr",
            (_, 0x100..) => "a privileged control register",
            _ => "an unknown control register",
        },
        _ => return None,
    })
}

/// Words of OP-FP.
fn float(word: u32) -> Option<&'static str> {
    let (funct5, format, funct3) = (bits(word, 27, 5), bits(word, 25, 2), bits(word, 12, 3));
    // Conversions have the other format where a second source would be.
    let second = rs2(word);
    let other = if funct5 == 0x08 { u32::from(second) & 3 } else { format };
    Some(match (funct5, funct3, second) {
        _ if format == 2 || other == 2 => "half precision: Zfh",
        _ if format == 3 || other == 3 => "quadruple precision: Q",
        (0x05, 2 | 3, _) | (0x14, 4 | 5, _) | (0x08, _, 4 | 5) | (0x18, 1, 8) | (0x1e, 0, 1) => {
            "more of floating point: Zfa"
        }
        (0x00..=0x03 | 0x08 | 0x0b | 0x18 | 0x1a, 5 | 6, _) => "a reserved rounding mode",
        _ => return None,
    })
}

fn compressed(half: u16) -> Option<&'static str> {
    Some(match (half & 3, half >> 13) {
        _ if half == 0 => "zeros, which are no instruction",
        (0, 4) | (1, 4) => "loads, stores and operations of bytes: Zcb",
        _ => return None,
    })
}
