//! Pixels of a tensor in the order in which a convolution takes them (`im2col`): which pixel of a copy lies
//! where.
//!
//! A tensor has channels (dimension 0), images (the last dimension), and 1 to 3 dimensions of pixels between
//! them: W, H, D. Where the filter lies is a coordinate of a box within each of these:
//!
//! ```text
//!         lower (< 0: padding)        size + upper
//!           |                              |
//! filter:   [----- every step-th one ------)      then the next row, slice, image, from `lower` on
//! element:      + offset, which says what part of the filter is copied; outside the tensor it is filled
//! ```
//!
//! Source: PTX ISA 5.5.4 (modes of tensors, `im2col`); limits by CUDA driver API, `cuTensorMapEncodeIm2col`.
//! That the upper corner is excluded, and that every row of steps begins at the lower corner, is what CUTLASS
//! (`copy_traits_sm90_im2col.hpp`) counts on, and what Triton's tutorial of `im2col` prints of a card.
//! Invariant: each pixel follows from its number, so that a copy may go on with any. Nobody documents a first
//! pixel between two steps: steps go on from it to the end of its row.

use durawarp_checkpoint::value;

/// Pixels of a copy, at most (`pixelsPerColumn`).
const MOST_PIXELS: u16 = 1024;

/// The box within which the filter of a convolution lies. Lists have dimensions 1, 2 and 3 of a tensor, as
/// far as these are of pixels; what is behind is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelBox {
    /// Pixels of a copy, wherever its first one lies.
    pub pixels: u16,
    /// Where the box begins.
    pub lower: [i16; 3],
    /// How far behind the tensor's end the box ends; before it, where it is less than 0.
    pub upper: [i16; 3],
}

value!(record PixelBox { pixels, lower, upper });

/// Bits of a corner, or of an offset, by the number of dimensions.
fn bits(dimensions: u8) -> u32 {
    match dimensions {
        ..=3 => 16,
        4 => 8,
        _ => 5,
    }
}

/// The pixels of a tensor in the order of a convolution: its box, and what of the tensor matters to them.
pub(super) struct PixelOrder<'m> {
    pub(super) within: &'m PixelBox,
    pub(super) dimensions: u8,
    /// Elements of each dimension of the tensor.
    pub(super) sizes: &'m [u32; 5],
    /// How far a step goes in each.
    pub(super) steps: &'m [u32; 5],
}

impl PixelOrder<'_> {
    /// The dimension of images: the last one.
    fn images(&self) -> usize {
        usize::from(self.dimensions) - 1
    }

    /// What the driver asks of the box of a map.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        let n = self.dimensions;
        if n < 3 {
            faults.push(format!("a tensor of pixels has 3 to 5 dimensions, not {n}"));
            return;
        }
        let pixels = self.within.pixels;
        if !(1..=MOST_PIXELS).contains(&pixels) {
            faults.push(format!("a copy has 1 to {MOST_PIXELS} pixels, not {pixels}"));
        }
        // Each corner has a range, and the box between two is not empty.
        let most = (1 << (bits(n) - 1)) - 1;
        for d in 1..self.images() {
            for corner in [self.within.lower, self.within.upper].map(|corners| i32::from(corners[d - 1])) {
                if !(-most - 1..=most).contains(&corner) {
                    let limits = format!("{} to {most}", -most - 1);
                    faults.push(format!("a corner of a tensor of {n} dimensions is {limits}, not {corner}"));
                }
            }
            let (begin, end) = self.bounds(d);
            if begin >= end && self.sizes[d] > 0 {
                let bounds = format!("it begins at {begin}, ends before {end}");
                faults.push(format!("the box of pixels is empty in dimension {d}: {bounds}"));
            }
        }
    }

    /// Where the box begins in dimension `d`, and what is its first coordinate behind it.
    fn bounds(&self, d: usize) -> (i64, i64) {
        let PixelBox { lower, upper, .. } = self.within;
        (lower[d - 1].into(), i64::from(self.sizes[d]) + i64::from(upper[d - 1]))
    }

    /// Finds that a copy begins within the box, and that its offsets are such as it may have.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check_first(&self, first: &[i32; 5], offsets: &[u16; 3]) -> Result<(), String> {
        let most = (1u32 << bits(self.dimensions)) - 1;
        for d in 1..self.images() {
            let (begin, end) = self.bounds(d);
            let at = i64::from(first[d]);
            if !(begin..end).contains(&at) {
                let bounds = format!("{begin} to {}", end - 1);
                return Err(format!(
                    "the first pixel lies at {at} of dimension {d}, outside of the map's box of pixels: {bounds}"
                ));
            }
            let offset = offsets[d - 1];
            if u32::from(offset) > most {
                let n = self.dimensions;
                return Err(format!("an offset of a tensor of {n} dimensions is 0 to {most}, not {offset}"));
            }
        }
        Ok(())
    }

    /// The coordinates of pixel `number` of a copy in dimensions 1 and up, which may lie outside the tensor.
    #[inline]
    pub(super) fn pixel(&self, first: &[i32; 5], offsets: &[u16; 3], number: u32) -> [i64; 5] {
        let images = self.images();
        let mut at = [0; 5];
        // How many steps are to go in this dimension; then how many rows, slices, images lie behind.
        let mut steps = i64::from(number);
        for d in 1..images {
            let (begin, end) = self.bounds(d);
            let (step, from) = (i64::from(self.steps[d]), i64::from(first[d]));
            let of = |length: i64| (length + step - 1) / step;
            // Of the first row only a part may be left.
            let left = of(end - from);
            let filter = if steps < left {
                let filter = from + steps * step;
                steps = 0;
                filter
            } else {
                let (behind, whole) = (steps - left, of(end - begin));
                steps = 1 + behind / whole;
                begin + behind % whole * step
            };
            at[d] = filter + i64::from(offsets[d - 1]);
        }
        at[images] = i64::from(first[images]) + steps;
        at
    }
}
