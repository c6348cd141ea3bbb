//! Products of matrices in SASS: what an opcode says of its shape, and which of the machine's times it has.
//!
//! ```text
//!   HMMA . 16816 . F32          m = 16, n = 8, k = 16; factors of 16 bits, sums of 32
//!   IMMA . 16832 . S8 . S8      m = 16, n = 8, k = 32; factors of 8 bits
//! ```
//! A machine has two times (`tensor`), as for `mma` of PTX: that of products with four registers of a, and
//! that of half the work. So an opcode comes to what the `mma` comes to that compiles to it.
//!
//! | registers of a | shapes | time |
//! |---|---|---|
//! | 4 | `HMMA.16816`, `HMMA.1688...TF32`, `IMMA.16832` of bytes, `QMMA.16832`, ... | `matrix_cycles` |
//! | 2 | `HMMA.1688`, `IMMA.16816` of bytes, `DMMA.884`, ... | `half_cycles` |
//! | another number, or no shape | `IMMA.8816`, `DMMA.16816`, ... | the nearest of both, told as a caveat |
//! | steps of Volta | `HMMA.884...STEP0`; the steps after it | `half_cycles` for all; an issue each |
//!
//! A sparse product (`SP`) has the registers of a that are there: half of them. Source of shapes: NVIDIA,
//! "CUDA Binary Utilities" and PTX ISA, `mma`; elements of a fragment are spread evenly over 32 lanes.

use durawarp_kernel::ir::Class;

/// Registers that one operand of a product has, at most, on the scoreboard.
const MOST_REGISTERS: u32 = 4;

/// A product of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatrixProduct {
    pub(crate) class: Class,
    /// The machine has no time for this shape: that of another one stands in.
    pub(crate) stands_in: bool,
    /// Registers of a lane: of both factors, and of the sums.
    pub(crate) factors: [u8; 2],
    pub(crate) sums: u8,
}

impl MatrixProduct {
    /// One whose shape is not known: m16n8k16 of halves with single sums.
    pub(crate) const UNKNOWN: MatrixProduct =
        MatrixProduct { class: Class::Matrix, stands_in: true, factors: [4, 2], sums: 4 };

    /// What an opcode of tensor cores says, with its modifiers.
    pub(crate) fn of(opcode: &str) -> MatrixProduct {
        let has = |token: &str| opcode.split('.').any(|own| own == token);
        let Some([m, n, k]) = opcode.split('.').skip(1).find_map(shape) else { return Self::UNKNOWN };
        let name = opcode.split('.').next().unwrap_or_default();
        let factor_bits = match name {
            "HMMA" if has("TF32") => 32,
            "HMMA" => 16,
            "IMMA" if has("S4") || has("U4") => 4,
            "DMMA" => 64,
            "BMMA" => 1,
            "OMMA" => 4,
            _ => 8,
        };
        let sum_bits = match name {
            "DMMA" => 64,
            "HMMA" | "QMMA" | "OMMA" if !has("F32") => 16,
            _ => 32,
        };
        let stored = if has("SP") { k / 2 } else { k };
        // Bits of a fragment, in words of 32 lanes.
        let registers = |bits: u32| (bits / (32 * 32)).max(1);
        let (a, b, sums) =
            (registers(m * stored * factor_bits), registers(n * k * factor_bits), registers(m * n * sum_bits));
        if name == "HMMA" && [m, n, k] == [8, 8, 4] {
            return Self::step(opcode);
        }
        MatrixProduct {
            class: if a > 2 { Class::Matrix } else { Class::MatrixHalf },
            stands_in: a != 2 && a != 4,
            factors: [a, b].map(|count| count.min(MOST_REGISTERS) as u8),
            sums: sums.min(MOST_REGISTERS) as u8,
        }
    }

    /// A step of Volta's m8n8k4, of which four quads of lanes make one each: 1,024 multiplications in all.
    fn step(opcode: &str) -> MatrixProduct {
        let is_later = opcode.split('.').any(|token| matches!(token, "STEP1" | "STEP2" | "STEP3"));
        let class = if is_later { Class::Control } else { Class::MatrixHalf };
        MatrixProduct { class, stands_in: false, factors: [2, 2], sums: 2 }
    }

    /// Which product's time stands in, where one does.
    pub(crate) fn stand(&self) -> Option<&'static str> {
        let stand = if self.class == Class::Matrix { "HMMA.16816" } else { "HMMA.1688" };
        self.stands_in.then_some(stand)
    }
}

/// m, n and k of a token of digits: m is 8 or 16, n is 8, k is the rest.
fn shape(token: &str) -> Option<[u32; 3]> {
    if token.len() < 3 || !token.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (m, rest) = match token.strip_prefix("16") {
        Some(rest) => (16, rest),
        None => (8, token.strip_prefix('8')?),
    };
    let k: u32 = rest.strip_prefix('8')?.parse().ok()?;
    (k.is_power_of_two() && (4..=512).contains(&k)).then_some([m, 8, k])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class, registers of a, b and sums; whether another shape's time stands in.
    fn of(opcode: &str) -> (Class, [u8; 3], bool) {
        let product = MatrixProduct::of(opcode);
        (product.class, [product.factors[0], product.factors[1], product.sums], product.stands_in)
    }

    #[test]
    fn shapes_of_the_machines_table_have_its_times() {
        for (opcode, registers) in [
            ("HMMA.16816.F32", [4, 2, 4]),
            ("HMMA.16816.F32.BF16", [4, 2, 4]),
            ("HMMA.16816.F16", [4, 2, 2]),
            ("HMMA.1688.F32.TF32", [4, 2, 4]),
            ("HMMA.SP.16832.F32", [4, 4, 4]),
            ("IMMA.16832.S8.S8", [4, 2, 4]),
            ("IMMA.16864.U4.S4", [4, 2, 4]),
            ("BMMA.168256.AND.POPC", [4, 2, 4]),
            ("QMMA.16832.F32.E4M3.E4M3", [4, 2, 4]),
            ("OMMA.SF.16864.F32.E2M1.E2M1", [4, 2, 4]),
        ] {
            assert_eq!(of(opcode), (Class::Matrix, registers, false), "{opcode}");
        }
        for (opcode, registers) in [
            ("HMMA.1688.F32", [2, 1, 4]),
            ("HMMA.1688.F16", [2, 1, 2]),
            ("HMMA.1684.F32.TF32", [2, 1, 4]),
            ("IMMA.16816.S8.S8.SAT", [2, 1, 4]),
            ("BMMA.168128.XOR.POPC", [2, 1, 4]),
            ("DMMA.884", [2, 2, 4]),
        ] {
            assert_eq!(of(opcode), (Class::MatrixHalf, registers, false), "{opcode}");
        }
    }

    #[test]
    fn of_voltas_steps_the_first_takes_the_time_of_all() {
        let steps = ["STEP0", "STEP1", "STEP2", "STEP3"].map(|step| of(&format!("HMMA.884.F32.F32.{step}")).0);
        assert_eq!(steps, [Class::MatrixHalf, Class::Control, Class::Control, Class::Control]);
    }

    #[test]
    fn a_shape_without_a_time_has_the_nearest_one() {
        assert_eq!(of("IMMA.8816.S8.S8"), (Class::MatrixHalf, [1, 1, 2], true));
        assert_eq!(of("DMMA.16816"), (Class::Matrix, [4, 4, 4], true), "as many registers as the scoreboard follows");
        for opcode in ["HMMA", "HMMA.F32", "HMMA.64x8x16.F32", "HMMA.16999.F32", "HMMA.88999999999999"] {
            assert_eq!(MatrixProduct::of(opcode), MatrixProduct::UNKNOWN, "{opcode}");
        }
        let stands = ["IMMA.8816.S8.S8", "DMMA.16816", "HMMA.1688.F32"].map(|opcode| MatrixProduct::of(opcode).stand());
        assert_eq!(stands, [Some("HMMA.1688"), Some("HMMA.16816"), None]);
    }
}
