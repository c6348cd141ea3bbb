//! Products with scaled blocks and copies to tensor memory (`tcgen05.mma ... .block_scale`, `tcgen05.cp`,
//! PTX ISA 9.7.16.10.7 and 9.7.16.9.1), as instructions name them.

use durawarp_checkpoint::value;

/// Scale factors of a row of a and of a column of b, and with them the elements of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaledKind {
    /// `.kind::mxf8f6f4`: one factor of 32 elements, which have 8 bits or are padded to them.
    One,
    /// `.kind::mxf4`, `.kind::mxf4nvf4` with `.scale_vec::2X`: two of 64 elements of 4 bits.
    Two,
    /// `.kind::mxf4nvf4` with `.scale_vec::4X`: four of 64 elements of 4 bits.
    Four,
}

value!(choice ScaledKind { One, Two, Four });

impl ScaledKind {
    /// Factors of a row of a.
    pub(crate) fn factors(self) -> u32 {
        match self {
            ScaledKind::One => 1,
            ScaledKind::Two => 2,
            ScaledKind::Four => 4,
        }
    }

    /// Elements of a row of a: 32 bytes.
    pub(crate) fn depth(self) -> u32 {
        if self == ScaledKind::One { 32 } else { 64 }
    }
}

/// What a copy from shared memory to tensor memory moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorCopy {
    pub shape: CopyShape,
    /// Elements that become 8-bit containers on the way; none, where bits stay as they are.
    pub padded: Option<PaddedElements>,
}

value!(record TensorCopy { shape, padded });

/// Rows of a copy, their bytes, and the lanes that each goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyShape {
    /// `.128x256b`
    Rows128Of32,
    /// `.4x256b`: a row for each quarter of the lanes.
    Rows4Of32,
    /// `.128x128b`
    Rows128Of16,
    /// `.64x128b.warpx2::02_13`: all rows to both halves of the lanes.
    Halves,
    /// `.64x128b.warpx2::01_23`: 32 rows to the first two quarters of the lanes, 32 to the others.
    Pairs,
    /// `.32x128b.warpx4`: all rows to each quarter.
    Quarters,
}

value!(choice CopyShape { Rows128Of32, Rows4Of32, Rows128Of16, Halves, Pairs, Quarters });

impl CopyShape {
    pub(crate) fn rows(self) -> u32 {
        match self {
            CopyShape::Rows128Of32 | CopyShape::Rows128Of16 => 128,
            CopyShape::Rows4Of32 => 4,
            CopyShape::Halves | CopyShape::Pairs => 64,
            CopyShape::Quarters => 32,
        }
    }

    /// Chunks of 16 bytes in a row, four columns each.
    pub(crate) fn chunks(self) -> u32 {
        match self {
            CopyShape::Rows128Of32 | CopyShape::Rows4Of32 => 2,
            CopyShape::Rows128Of16 | CopyShape::Halves | CopyShape::Pairs | CopyShape::Quarters => 1,
        }
    }

    /// The first lane that a row goes to, how many it goes to, and how far apart these are.
    pub(crate) fn lanes(self, row: u32) -> [u32; 3] {
        match self {
            CopyShape::Rows128Of32 | CopyShape::Rows128Of16 => [row, 1, 0],
            CopyShape::Rows4Of32 => [32 * row, 1, 0],
            CopyShape::Halves => [row, 2, 64],
            CopyShape::Pairs => [row % 32 + 64 * (row / 32), 2, 32],
            CopyShape::Quarters => [row, 4, 32],
        }
    }

    /// Bytes that are read.
    pub fn bytes(self) -> u32 {
        16 * self.rows() * self.chunks()
    }
}

/// Sixteen elements of fewer than 8 bits, packed and padded to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaddedElements {
    /// `.b4x16_p64`: 64 bits, and 64 that are not looked at.
    Four,
    /// `.b6x16_p32`: 96 bits, and 32 that are not looked at.
    Six,
}

value!(choice PaddedElements { Four, Six });
