//! Products of four warps in SASS (`HGMMA`, `IGMMA`, `QGMMA`, `BGMMA`): what an opcode says of the time that
//! one takes, as `wgmma` of PTX.
//!
//! ```text
//!   HGMMA . 64x256x16 . F32      64 rows, 256 columns, k = 16; factors of 16 bits
//! ```
//! | opcode | elements | k |
//! |---|---|---|
//! | `HGMMA` | 16 bits; with `TF32` those | 16; 8 |
//! | `QGMMA` | 8-bit floats | 32 |
//! | `IGMMA` | bytes | 32 |
//! | `BGMMA` | single bits | 256 |
//!
//! A sparse product (`SP`) names twice the k, and takes the time of what is there. Whether a product ends a
//! group is in the trace from version 6 on; before, each is a group of its own. A first factor in registers
//! shows by a register that is no result. Source of shapes: PTX ISA, `wgmma`; names as `nvdisasm` has them.

use durawarp_kernel::ir::GroupElements;

/// A product of four warps, as far as its opcode says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupShape {
    pub(crate) elements: GroupElements,
    pub(crate) columns: u16,
}

impl GroupShape {
    /// What an opcode says, with its modifiers; none where it names no shape that there is.
    pub(crate) fn of(opcode: &str) -> Option<GroupShape> {
        let mut tokens = opcode.split('.');
        let name = tokens.next()?;
        let has = |token: &str| opcode.split('.').any(|own| own == token);
        let elements = match name {
            "HGMMA" if has("TF32") => GroupElements::Tf32,
            "HGMMA" => GroupElements::Half,
            "QGMMA" => GroupElements::Fp8,
            "IGMMA" => GroupElements::Bytes,
            "BGMMA" => GroupElements::Bits,
            _ => return None,
        };
        let (columns, k) = tokens.find_map(|token| {
            let (columns, k) = token.strip_prefix("64x")?.split_once('x')?;
            Some((columns.parse::<u16>().ok()?, k.parse::<u32>().ok()?))
        })?;
        let stored = if has("SP") { k / 2 } else { k };
        let fits = stored == elements.depth() && columns % 8 == 0 && (8..=256).contains(&columns);
        fits.then_some(GroupShape { elements, columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opcode_names_elements_and_columns() {
        for (opcode, elements, columns) in [
            ("HGMMA.64x256x16.F32", GroupElements::Half, 256),
            ("HGMMA.64x8x16.F16", GroupElements::Half, 8),
            ("HGMMA.64x64x16.F32.BF16", GroupElements::Half, 64),
            ("HGMMA.64x96x8.F32.TF32", GroupElements::Tf32, 96),
            ("QGMMA.64x128x32.F32.E4M3.E5M2", GroupElements::Fp8, 128),
            ("IGMMA.64x32x32.S8.S8.SAT", GroupElements::Bytes, 32),
            ("BGMMA.64x16x256.AND.POPC", GroupElements::Bits, 16),
            ("HGMMA.SP.64x64x32.F32", GroupElements::Half, 64),
        ] {
            assert_eq!(GroupShape::of(opcode), Some(GroupShape { elements, columns }), "{opcode}");
        }
    }

    #[test]
    fn what_names_no_shape_that_there_is_has_no_time() {
        for opcode in ["HGMMA", "HGMMA.F32", "HGMMA.64x12x16.F32", "HGMMA.64x264x16.F32", "HGMMA.64x64x32.F32"] {
            assert_eq!(GroupShape::of(opcode), None, "{opcode}");
        }
        for opcode in ["HMMA.16816.F32", "HGMMA.64x64x8.F32", "HGMMA.64x0x16.F32", "HGMMA.64x99999x16"] {
            assert_eq!(GroupShape::of(opcode), None, "{opcode}");
        }
    }
}
