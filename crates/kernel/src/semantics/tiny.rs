//! Floats of 8, 6 and 4 bits as factors of products in tensor memory, and where they lie in the 32 bytes of a
//! row of a or a column of b (PTX ISA 9.7.16.10.4, "Packing formats of elements").
//!
//! | element | exponent, fraction | bias | largest |
//! |---|---|---|---|
//! | `e2m3` | 2, 3 | 1 | 7.5 |
//! | `e3m2` | 3, 2 | 3 | 28 |
//! | `e2m1` | 2, 1 | 1 | 6 |
//!
//! These three have neither infinities nor NaN (OCP Microscaling Formats (MX) Specification 1.0, 5.3), and
//! each value of theirs is one of `e4m3`.
//!
//! ```text
//! packed      64 elements of 4 bits, the first of a byte in its lower half     .kind::mxf4, .kind::mxf4nvf4
//! padded      16 elements in the first 8 or 12 bytes of each 16                shared memory, other kinds
//! containers  a byte each: 6 bits in its lower ones, 4 bits in bits 2 to 5     tensor memory, other kinds
//! ```
//! Bits of padding are not looked at.

use super::super::alu::{Fp8, TinyFloat};
use super::super::ir::{LANES, PaddedElements};
use super::super::tensor_memory::TensorMemory;
use super::shared_matrix::SharedMatrix;
use super::{V32, narrow};

/// Bytes of a row of a, or of a column of b.
pub(super) const ROW_BYTES: usize = 32;
/// Bytes that padded elements share.
const CHUNK: usize = 16;

impl TinyFloat {
    /// By its code in the descriptor of an instruction.
    pub(super) fn of(code: u32) -> Option<TinyFloat> {
        match code {
            0 => Some(TinyFloat::Eight(Fp8::E4m3)),
            1 => Some(TinyFloat::Eight(Fp8::E5m2)),
            3 => Some(TinyFloat::E2m3),
            4 => Some(TinyFloat::E3m2),
            5 => Some(TinyFloat::E2m1),
            _ => None,
        }
    }

    /// It has 8 bits.
    pub(super) fn eight(self) -> Option<Fp8> {
        match self {
            TinyFloat::Eight(format) => Some(format),
            TinyFloat::E2m3 | TinyFloat::E3m2 | TinyFloat::E2m1 => None,
        }
    }

    fn padded(self) -> Option<PaddedElements> {
        match self {
            TinyFloat::Eight(_) => None,
            TinyFloat::E2m3 | TinyFloat::E3m2 => Some(PaddedElements::Six),
            TinyFloat::E2m1 => Some(PaddedElements::Four),
        }
    }

    /// Bits of the exponent and of the fraction, and the bias.
    pub(super) fn shape(self) -> (u32, u32, u32) {
        match self {
            TinyFloat::Eight(Fp8::E4m3) => (4, 3, 7),
            TinyFloat::Eight(Fp8::E5m2) => (5, 2, 15),
            TinyFloat::E2m3 => (2, 3, 1),
            TinyFloat::E3m2 => (3, 2, 3),
            TinyFloat::E2m1 => (2, 1, 1),
        }
    }

    /// The value of a code of as many bits as it has; upper bits are not looked at.
    pub(super) fn value(self, code: u32) -> f32 {
        if let TinyFloat::Eight(format) = self {
            return narrow::single_of_fp8(format, code);
        }
        let (exponent, fraction, bias) = self.shape();
        let magnitude = code & ((1 << (exponent + fraction)) - 1);
        let sign = (code >> (exponent + fraction) & 1) << 31;
        // Exponent and fraction move as they are, also of denormals; a power of two makes up for the biases.
        let value = f32::from_bits(magnitude << (23 - fraction)) * f32::from_bits((254 - bias) << 23);
        f32::from_bits(value.to_bits() | sign)
    }

    /// The value that a container has.
    pub(super) fn contained(self, container: u8) -> f32 {
        self.value(u32::from(if self == TinyFloat::E2m1 { container >> 2 } else { container }))
    }

    /// The values of 32 elements that lie in shared memory, padded, or in tensor memory, in containers.
    pub(super) fn values(self, row: &[u8; ROW_BYTES], in_tensor_memory: bool) -> [f32; ROW_BYTES] {
        self.containers(row, in_tensor_memory).map(|container| self.contained(container))
    }

    /// The codes in `e4m3` of 32 elements that are narrower.
    pub(super) fn as_e4m3(self, row: &[u8; ROW_BYTES], in_tensor_memory: bool) -> [u8; ROW_BYTES] {
        self.values(row, in_tensor_memory).map(|value| narrow::to_fp8(Fp8::E4m3, value, false) as u8)
    }

    fn containers(self, row: &[u8; ROW_BYTES], in_tensor_memory: bool) -> [u8; ROW_BYTES] {
        let mut spread = *row;
        if let (Some(of), false) = (self.padded(), in_tensor_memory) {
            spread.chunks_exact_mut(CHUNK).for_each(|chunk| spread_out(of, chunk));
        }
        spread
    }
}

/// The value of a scale factor: `ue8m0`, a power of two, or `ue4m3`, `e4m3` without its sign.
pub(super) fn scale_factor(powers: bool, byte: u8) -> f64 {
    match (powers, byte) {
        (true, u8::MAX) => f64::NAN,
        (true, _) => f64::from_bits((u64::from(byte) + 1023 - 127) << 52),
        (false, _) => f64::from(narrow::single_of_fp8(Fp8::E4m3, u32::from(byte & 0x7f))),
    }
}

/// The values of packed elements of 4 bits.
pub(super) fn packed_values<const N: usize>(row: &[u8]) -> [f32; N] {
    std::array::from_fn(|k| TinyFloat::E2m1.value(u32::from(row[k / 2]) >> (4 * (k % 2))))
}

/// The 32 bytes of a line in shared memory.
///
/// # Errors
/// The address of what is not there.
pub(super) fn shared_line(matrix: &SharedMatrix, line: u32, shared: &[u8]) -> Result<[u8; ROW_BYTES], u32> {
    // A piece lies in one chunk along a line; across lines its bytes do not.
    let piece = if matrix.across().is_some() { 1 } else { CHUNK };
    let mut bytes = [0; ROW_BYTES];
    for (n, part) in (0..).zip(bytes.chunks_exact_mut(piece)) {
        let address = matrix.byte(line, n * piece as u32, 1);
        part.copy_from_slice(shared.get(address as usize..address as usize + piece).ok_or(address)?);
    }
    Ok(bytes)
}

/// The 32 bytes of a lane of tensor memory from a column on.
pub(super) fn tensor_line(column: u32, lane: u32, memory: &mut TensorMemory) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    for (n, part) in (0..).zip(bytes.chunks_exact_mut(4)) {
        part.copy_from_slice(&memory.cell(lane, column + n).to_le_bytes());
    }
    bytes
}

/// Registers of a fragment of `mma` with elements of 8 bits: register n has step `steps[n]` along k of lines
/// from `lines[n]` on.
///
/// # Errors
/// Those of `line`, which has the elements of a line.
pub(super) fn fragment<const N: usize, E>(
    steps: [u32; N],
    lines: [u32; N],
    mut line: impl FnMut(u32) -> Result<[u8; ROW_BYTES], E>,
) -> Result<[V32; N], E> {
    let mut registers = [[0; LANES]; N];
    for (n, register) in registers.iter_mut().enumerate() {
        for (group, words) in (0..).zip(register.chunks_exact_mut(4)) {
            let elements = line(lines[n] + group)?;
            for (t, word) in words.iter_mut().enumerate() {
                let at = CHUNK * steps[n] as usize + 4 * t;
                *word = u32::from_le_bytes(elements[at..at + 4].try_into().expect("a word"));
            }
        }
    }
    Ok(registers)
}

/// Padded elements in 16 bytes become containers.
pub(super) fn spread_out(of: PaddedElements, chunk: &mut [u8]) {
    let word = u128::from_le_bytes(chunk.try_into().expect("16 bytes"));
    for (k, container) in chunk.iter_mut().enumerate() {
        *container = match of {
            PaddedElements::Four => ((word >> (4 * k) & 0xf) as u8) << 2,
            PaddedElements::Six => (word >> (6 * k) & 0x3f) as u8,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_specification() {
        let e2m1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for (code, value) in (0..).zip(e2m1) {
            assert_eq!([code, code | 8].map(|code| TinyFloat::E2m1.value(code)), [value, -value]);
        }
        let ends = |of: TinyFloat| [1, 0x1f, 0x3f].map(|code| of.value(code));
        assert_eq!(ends(TinyFloat::E2m3), [0.125, 7.5, -7.5]);
        assert_eq!(ends(TinyFloat::E3m2), [0.0625, 28.0, -28.0]);
        assert_eq!([8, 9].map(|code| TinyFloat::E2m3.value(code)), [1.0, 1.125], "the least normal number");
        assert_eq!([4, 13].map(|code| TinyFloat::E3m2.value(code)), [0.25, 1.25]);
    }

    #[test]
    fn each_value_is_one_of_e4m3() {
        for (of, codes) in [(TinyFloat::E2m3, 64), (TinyFloat::E3m2, 64), (TinyFloat::E2m1, 16)] {
            for code in 0..codes {
                let value = of.value(code);
                let again = narrow::single_of_fp8(Fp8::E4m3, narrow::to_fp8(Fp8::E4m3, value, false));
                assert_eq!(again.to_bits(), value.to_bits(), "{of:?} {code:#x}");
            }
        }
    }

    #[test]
    fn padded_elements_become_containers() {
        let mut four: [u8; 16] =
            std::array::from_fn(|n| if n < 8 { ((2 * n) | ((2 * n + 1) << 4)) as u8 } else { 0xff });
        spread_out(PaddedElements::Four, &mut four);
        assert_eq!(four, std::array::from_fn(|k| (k as u8) << 2));
        let word = (0..16).fold(u128::MAX << 96, |word, k: u32| word | u128::from(3 * k) << (6 * k));
        let mut six = word.to_le_bytes();
        spread_out(PaddedElements::Six, &mut six);
        assert_eq!(six, std::array::from_fn(|k| 3 * k as u8));
    }
}
