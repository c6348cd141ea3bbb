//! What the descriptor of a product with scaled blocks says (`tcgen05.mma ... .block_scale`): types, sizes,
//! signs, and where the scale factors begin.
//!
//! ```text
//! descriptor of the instruction   5-4 byte of scale_b   9-7 a   12-10 b   13, 14 negate a, b
//!                                 15, 16 across: a, b   22-17 columns / 8   23 factors: 0 ue4m3, 1 ue8m0
//!                                 28-24 rows / 16   30-29 byte of scale_a   31 k = 96
//! ```
//! Source: PTX ISA 9.7.16.4.2 (descriptor); CuTe's `InstrDescriptorBlockScaled`; CUTLASS's kernels of
//! `sm_103a` for k = 96. Invariant: a shape is one that is supported. Not supported: sparse a, 128 rows of a
//! pair, of which no source says which rows of a the factors of the odd CTA are; elements of fewer than 8
//! bits across.

use super::super::alu::TinyFloat;
use super::super::ir::ScaledKind;
use super::tiny::ROW_BYTES;

/// Rows of d and of a that a CTA has.
const ROWS: u32 = 128;
/// Elements of a row at most.
pub(super) const DEPTH: usize = 96;
/// Bytes of a row at most.
pub(super) const LINE_BYTES: usize = DEPTH / 2;

/// What the descriptor of an instruction says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScaledShape {
    pub(super) kind: ScaledKind,
    pub(super) a: TinyFloat,
    pub(super) b: TinyFloat,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(super) negates: bool,
    /// a, b lie across.
    pub(super) across: [bool; 2],
    /// Factors are `ue8m0`.
    pub(super) powers: bool,
    /// The first byte of the factors of a, of b.
    pub(super) bytes: [u32; 2],
    /// Of both CTAs of a pair.
    pub(super) paired: bool,
    /// k is 96.
    pub(super) long: bool,
}

impl ScaledShape {
    /// # Errors
    /// What it says that is not supported.
    pub(super) fn of(kind: ScaledKind, paired: bool, descriptor: u32) -> Result<ScaledShape, String> {
        let bits = |from: u32, count: u32| descriptor >> from & ((1 << count) - 1);
        let flag = |at: u32| bits(at, 1) == 1;
        let not = |what: &str| Err(format!("`tcgen05.mma` with the descriptor {descriptor:#010x}: {what}"));
        if flag(2) {
            return not("a sparse a is not supported");
        }
        let long = flag(31);
        if long && kind == ScaledKind::One {
            return not("a k of 96 is one of `.kind::mxf4` and `.kind::mxf4nvf4`");
        }
        let element = |code: u32| match kind {
            ScaledKind::One => TinyFloat::of(code),
            // Of 4 bits alone there is one type.
            ScaledKind::Two | ScaledKind::Four => (code == 1).then_some(TinyFloat::E2m1),
        };
        let (Some(a), Some(b)) = (element(bits(7, 3)), element(bits(10, 3))) else {
            return not("the types of a and b are none of this kind");
        };
        let (rows, columns) = (16 * bits(24, 5), 8 * bits(17, 6));
        let (sizes, ctas) = if paired { ("256 and 16, 32 to", 2) } else { ("128 and 8 to", 1) };
        if rows != ctas * ROWS || !(8 * ctas..=256).contains(&columns) || !columns.is_multiple_of(8 * ctas) {
            return not(&format!("{rows} rows and {columns} columns, where {sizes} 256 are supported"));
        }
        let across = [flag(15), flag(16)];
        if [a, b].iter().zip(across).any(|(of, across)| across && (of.eight().is_none())) {
            return not("elements of fewer than 8 bits have no rows that lie across");
        }
        let powers = flag(23);
        if !powers && kind != ScaledKind::Four {
            return not("scale factors of `ue4m3` are those of `.scale_vec::4X`");
        }
        let bytes = [bits(29, 2), bits(4, 2)];
        // Three factors begin at any byte, six at byte 0 or 2.
        let together = if long { kind.factors() / 2 } else { kind.factors() };
        if bytes.iter().any(|byte| byte % together != 0) {
            return not(&format!("scale factors from bytes {bytes:?} on, where {together} are together"));
        }
        let negates = flag(13) != flag(14);
        Ok(ScaledShape { kind, a, b, rows: ROWS, columns, negates, across, powers, bytes, paired, long })
    }

    /// Elements of a row.
    pub(super) fn depth(&self) -> u32 {
        if self.long { 96 } else { self.kind.depth() }
    }

    /// Factors of a row.
    pub(super) fn factors(&self) -> u32 {
        if self.long { self.kind.factors() * 3 / 2 } else { self.kind.factors() }
    }

    /// Bytes of a row.
    pub(super) fn line_bytes(&self) -> usize {
        if self.long { LINE_BYTES } else { ROW_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_says_types_factors_and_where_these_are() {
        let of = |kind, bits: u32| ScaledShape::of(kind, false, bits);
        // What Triton has for 128 rows and columns of e2m1 with factors of ue4m3, and of e4m3.
        let four = of(ScaledKind::Four, 136_316_032).unwrap();
        assert_eq!((four.rows, four.columns, four.powers, four.bytes), (128, 128, false, [0, 0]));
        assert_eq!([four.a, four.b], [TinyFloat::E2m1; 2]);
        let base = 8 << 24 | 16 << 17 | 1 << 23;
        let one = of(ScaledKind::One, base | 3 << 29 | 1 << 4 | 5 << 7 | 3 << 10).unwrap();
        assert_eq!((one.a, one.b, one.bytes, one.powers), (TinyFloat::E2m1, TinyFloat::E2m3, [3, 1], true));
        let packed = 1 << 7 | 1 << 10;
        for (kind, bits, told) in [
            (ScaledKind::One, base | 2 << 7, "types of a and b"),
            (ScaledKind::Two, base, "types of a and b"),
            (ScaledKind::Two, base | packed | 1 << 29, "2 are together"),
            (ScaledKind::Four, base | packed | 2 << 4, "4 are together"),
            (ScaledKind::Four, base | packed | 1 << 31 | 1 << 4, "2 are together"),
            (ScaledKind::One, base ^ 1 << 23, "`.scale_vec::4X`"),
            (ScaledKind::One, base | 1 << 31, "a k of 96 is one of `.kind::mxf4`"),
            (ScaledKind::One, base | 1 << 2, "sparse"),
            (ScaledKind::One, base | 3 << 7 | 1 << 15, "lie across"),
            (ScaledKind::One, base ^ 12 << 24, "64 rows"),
        ] {
            let found = of(kind, bits).unwrap_err();
            assert!(found.contains(told), "{found}");
        }
        let pair = |rows: u32, columns: u32| {
            ScaledShape::of(ScaledKind::One, true, 1 << 23 | (columns / 8) << 17 | (rows / 16) << 24)
        };
        let whole = pair(256, 48).unwrap();
        assert_eq!((whole.rows, whole.columns, whole.paired), (128, 48, true));
        for (rows, columns) in [(128, 48), (256, 40), (256, 8), (256, 264)] {
            assert!(pair(rows, columns).unwrap_err().contains("where 256 and 16, 32 to 256"), "{rows}, {columns}");
        }
    }
}
