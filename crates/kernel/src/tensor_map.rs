//! Tensor maps: what a copy of a tile knows of its tensor (CUDA driver API, `cuTensorMapEncodeTiled` and
//! `cuTensorMapEncodeIm2col`; PTX ISA 5.5).
//!
//! | file | what it has |
//! |---|---|
//! | this one | the tensor and its boxes, what the driver asks of both |
//! | `bytes` | the 128 bytes that programs pass on |
//! | `elem`, `swizzle` | types of elements with their reductions; where bytes lie in shared memory |
//! | `tile`, `im2col` | what a copy has of a tensor; the order of pixels |
//!
//! Dimension 0 is the innermost one, whose elements lie one behind the other. Invariant: a map by which a
//! copy is made fulfils what the driver asks for. Not modelled: `cuTensorMapEncodeIm2colWide`, interleaved
//! layouts, elements of 6 bits and padded ones of 4, `tf32` (whose rounding nobody documents), promotion in
//! the L2; dimensions of 2^32 elements.

mod bytes;
mod elem;
mod im2col;
mod swizzle;
mod tile;

use im2col::PixelOrder;

pub use bytes::{MAP_ALIGN, MAP_BYTES};
pub(crate) use bytes::{MARK, fields};
pub use elem::TensorElem;
pub use im2col::PixelBox;
pub use swizzle::Swizzle;
pub use tile::{Tile, TilePlace, TileRun};

use super::launch::MAX_SHARED;
use durawarp_checkpoint::value;

/// Dimensions of a tensor, at most.
pub const MOST_DIMENSIONS: usize = 5;

/// Addresses, strides and rows of boxes are multiples of this many bytes.
const ALIGN: u64 = 16;

/// What a load has where there is no element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    Zeros,
    /// A quiet NaN with all bits but the sign, as `CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA`.
    Nan,
}

value!(choice Fill { Zeros, Nan });

impl Fill {
    /// Both, with their names.
    pub const ALL: [(&str, Fill); 2] = [("zeros", Fill::Zeros), ("nan", Fill::Nan)];
}

/// A tensor, and the boxes in which it is copied. Lists are as long as the tensor has dimensions; what is
/// behind is 1 (strides: 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMap {
    pub dimensions: u8,
    pub elem: TensorElem,
    pub swizzle: Swizzle,
    pub fill: Fill,
    /// Of element 0.
    pub address: u64,
    /// Bytes from element to element of dimensions 1 and up.
    pub strides: [u64; 4],
    /// Elements of each dimension.
    pub sizes: [u32; 5],
    /// Elements of a box before any are left out; of pixels, their channels and ones.
    pub box_sizes: [u32; 5],
    /// Every how many-th element of a box is copied. That of dimension 0 is not used, nor that of the images
    /// of pixels.
    pub steps: [u32; 5],
    /// Its copies have pixels, not boxes.
    pub im2col: Option<PixelBox>,
}

value!(record TensorMap { dimensions, elem, swizzle, fill, address, strides, sizes, box_sizes, steps, im2col });

impl TensorMap {
    /// What the driver asks of a map.
    ///
    /// # Errors
    /// All that is not so, a sentence each.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut faults = Vec::new();
        let n = usize::from(self.dimensions);
        if !(1..=MOST_DIMENSIONS).contains(&n) {
            return Err(vec![format!("a tensor has 1 to {MOST_DIMENSIONS} dimensions, not {n}")]);
        }
        // All faults are told at once.
        if !self.address.is_multiple_of(ALIGN) {
            faults.push(format!("a tensor begins at a multiple of {ALIGN} bytes, not at {:#x}", self.address));
        }
        for d in 0..n {
            if self.sizes[d] == 0 {
                faults.push(format!("dimension {d} of the tensor has no element"));
            }
            if !(1..=256).contains(&self.box_sizes[d]) {
                let what = if self.im2col.is_some() { "a pixel" } else { "a box" };
                faults.push(format!("{what} has 1 to 256 elements of dimension {d}, not {}", self.box_sizes[d]));
            }
            if !(1..=8).contains(&self.steps[d]) {
                faults.push(format!("dimension {d} is copied in steps of 1 to 8 elements, not {}", self.steps[d]));
            }
        }
        for (d, &stride) in self.strides[..n - 1].iter().enumerate() {
            if !stride.is_multiple_of(ALIGN) || stride >= 1 << 40 {
                faults.push(format!(
                    "the stride of dimension {} is {stride} bytes: multiples of {ALIGN} below 2^40 are known",
                    d + 1
                ));
            }
        }
        if let Some(pixels) = self.pixel_order() {
            pixels.check(&mut faults);
        }
        // Half a byte is no end of a row.
        if self.elem == TensorElem::B4 && !self.sizes[0].is_multiple_of(2) {
            faults.push(format!("a tensor of 4-bit elements has an even number of dimension 0, not {}", self.sizes[0]));
        }
        // Rows of boxes; of pixels, their channels.
        let row = self.row_bytes();
        if !u64::from(row).is_multiple_of(ALIGN) {
            faults.push(format!("a row of a box has {row} bytes, which is no multiple of {ALIGN}"));
        }
        if let Some(span) = self.swizzle.span_bytes().filter(|span| row > *span) {
            faults.push(format!("a row of a box has {row} bytes, more than the {span} of its swizzle"));
        }
        // What a box has is known where all of it is right.
        if faults.is_empty() && self.box_bytes() > MAX_SHARED {
            faults.push(format!("a box has more than {MAX_SHARED} bytes, which no shared memory has"));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Bytes of a row of a box: of its elements of dimension 0. A pixel is a row.
    pub fn row_bytes(&self) -> u32 {
        u32::try_from(self.elem.bytes_of(self.box_sizes[0])).unwrap_or(u32::MAX)
    }

    /// The pixels of the tensor in order, where its copies have pixels.
    fn pixel_order(&self) -> Option<PixelOrder<'_>> {
        let TensorMap { dimensions, sizes, steps, .. } = self;
        self.im2col.as_ref().map(|within| PixelOrder { within, dimensions: *dimensions, sizes, steps })
    }

    /// Elements that a copy has of dimension `d`, of 1 or more.
    fn copied(&self, d: usize) -> u32 {
        self.box_sizes[d].div_ceil(self.steps[d])
    }

    /// Bytes of a box, or of the pixels of a copy, which are those that a barrier counts: elements outside
    /// the tensor are among them.
    pub fn box_bytes(&self) -> u32 {
        if let Some(pixels) = &self.im2col {
            return self.row_bytes().saturating_mul(pixels.pixels.into());
        }
        (1..usize::from(self.dimensions)).fold(self.row_bytes(), |bytes, d| bytes.saturating_mul(self.copied(d)))
    }

    /// The first address behind the tensor.
    pub fn end(&self) -> u64 {
        let rows = (1..usize::from(self.dimensions)).map(|d| u64::from(self.sizes[d] - 1) * self.strides[d - 1]);
        self.address.saturating_add(self.elem.bytes_of(self.sizes[0])).saturating_add(rows.fold(0, u64::saturating_add))
    }

    /// Bytes of one element outside the tensor.
    pub fn filling(&self) -> [u8; 8] {
        let nan = match self.elem {
            TensorElem::F16 | TensorElem::Bf16 => 0x7fff_7fff_7fff_7fff,
            TensorElem::F32 => 0x7fff_ffff_7fff_ffff,
            TensorElem::F64 => 0x7fff_ffff_ffff_ffff,
            _ => 0,
        };
        if self.fill == Fill::Nan { u64::to_le_bytes(nan) } else { [0; 8] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 x 10 x 3 elements of 4 bytes; boxes of 4 x 3 x 2 with every other row.
    pub(super) fn map() -> TensorMap {
        TensorMap {
            dimensions: 3,
            elem: TensorElem::F32,
            swizzle: Swizzle::None,
            fill: Fill::Zeros,
            address: 0x1_0000_0000,
            strides: [64, 640, 0, 0],
            sizes: [10, 10, 3, 1, 1],
            box_sizes: [4, 3, 2, 1, 1],
            steps: [1, 2, 1, 1, 1],
            im2col: None,
        }
    }

    #[test]
    fn what_the_driver_would_refuse_is_told_at_once() {
        let mut wrong = map();
        (wrong.address, wrong.strides[0], wrong.sizes[2]) = (8, 24, 0);
        (wrong.box_sizes[1], wrong.steps[2]) = (257, 9);
        let faults = wrong.check().unwrap_err();
        assert_eq!(faults.len(), 5, "{faults:?}");
        let narrow = TensorMap { box_sizes: [3, 1, 1, 1, 1], ..map() };
        assert_eq!(narrow.check().unwrap_err(), ["a row of a box has 12 bytes, which is no multiple of 16"]);
        let wide = TensorMap { swizzle: Swizzle::B32, box_sizes: [12, 1, 1, 1, 1], ..map() };
        assert!(wide.check().unwrap_err()[0].contains("more than the 32 of its swizzle"));
        let still = TensorMap { steps: [1, 0, 1, 1, 1], ..map() };
        assert!(still.check().unwrap_err()[0].contains("in steps of 1 to 8 elements, not 0"));
        let large = TensorMap { box_sizes: [4, 256, 256, 256, 1], dimensions: 4, steps: [1; 5], ..map() };
        assert_eq!(large.check().unwrap_err(), ["a box has more than 16777216 bytes, which no shared memory has"]);
    }

    #[test]
    fn what_the_driver_would_refuse_of_pixels_is_told_too() {
        let pixels = |pixels, lower, upper| TensorMap {
            dimensions: 4,
            sizes: [10, 10, 3, 2, 1],
            strides: [64, 640, 1920, 0],
            box_sizes: [4, 1, 1, 1, 1],
            im2col: Some(PixelBox { pixels, lower, upper }),
            ..map()
        };
        assert_eq!(pixels(1024, [-128, -1, 0], [127, -3, 0]).check(), Ok(()));
        for (wrong, expected) in [
            (pixels(0, [0; 3], [0; 3]), "a copy has 1 to 1024 pixels, not 0"),
            (pixels(1025, [0; 3], [0; 3]), "a copy has 1 to 1024 pixels, not 1025"),
            (pixels(1, [-129, 0, 0], [0; 3]), "a corner of a tensor of 4 dimensions is -128 to 127, not -129"),
            (pixels(1, [0; 3], [0, 128, 0]), "a corner of a tensor of 4 dimensions is -128 to 127, not 128"),
            (
                pixels(1, [0, 1, 0], [0, -2, 0]),
                "the box of pixels is empty in dimension 2: it begins at 1, ends before 1",
            ),
            (
                TensorMap { dimensions: 2, ..pixels(1, [0; 3], [0; 3]) },
                "a tensor of pixels has 3 to 5 dimensions, not 2",
            ),
            (
                TensorMap { box_sizes: [257, 1, 1, 1, 1], ..pixels(1, [0; 3], [0; 3]) },
                "a pixel has 1 to 256 elements of dimension 0, not 257",
            ),
        ] {
            assert_eq!(wrong.check().unwrap_err()[0], expected);
        }
    }
}
