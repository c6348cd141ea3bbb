//! Tensor maps: what a copy of a tile knows of its tensor (CUDA driver API, `cuTensorMapEncodeTiled` and
//! `cuTensorMapEncodeIm2col`; PTX ISA 5.5).
//!
//! A map is 128 bytes that programs only pass on, so that their layout is ours. A map of boxes has all that
//! is not zero in its first 64 bytes, as the compiler of CUTLASS's DSL copies no others:
//!
//! | bytes | what they have |
//! |---|---|
//! | 0 to 7 | first address |
//! | 8 to 23, 44 to 47 | bytes from element to element of dimensions 1 to 4: the lower 32 bits, the upper 8 |
//! | 24 to 43 | elements of dimensions 0 to 4 |
//! | 48 to 52 | elements of the box that a copy takes, 0 for 256; of a pixel, its channels are the first |
//! | 53 to 57 | every how many-th of these it takes |
//! | 58, 59, 60, 61 | dimensions, type of elements, swizzle, fill |
//! | 62 to 63 | a mark, by which other bytes are told from a map |
//! | 64 | 0: copies have boxes of the tensor; 1: they have pixels ([`PixelBox`]) |
//! | 66 to 67 | pixels of a copy |
//! | 68 to 73, 74 to 79 | lower and upper corners of the pixels' box, 16 bits each |
//!
//! Dimension 0 is the innermost one, whose elements lie one behind the other. A program may change a map by
//! `tensormap.replace` alone, field by field, and begins a new one as 128 zeros: each change sets the mark.
//! What a copy has of a tensor is in `tile`, the order of pixels in `im2col`. Invariant: a map by which a
//! copy is made fulfils what the driver asks for. Not modelled: `cuTensorMapEncodeIm2colWide`, interleaved
//! layouts, elements of 6 bits and padded ones of 4, `tf32` (whose rounding nobody documents), promotion in
//! the L2; dimensions of 2^32 elements.

mod im2col;
mod tile;

use im2col::PixelOrder;

pub use im2col::PixelBox;
pub use tile::{Tile, TilePlace, TileRun};

use super::alu::{HalfFormat, HalfType};
use super::ir::{AtomOp, Elem};
use super::launch::MAX_SHARED;
use durawarp_checkpoint::value;

/// Bytes of a map.
pub const MAP_BYTES: usize = 128;

/// Where a map lies is a multiple of this (`alignas(64)` of `CUtensorMap`).
pub const MAP_ALIGN: u64 = 64;

/// Where fields lie, for what changes them one by one: the table at the head of this file.
pub(crate) mod fields {
    pub(crate) const ADDRESS: u32 = 0;
    /// Their lower 32 bits.
    pub(crate) const STRIDES: u32 = 8;
    pub(crate) const SIZES: u32 = 24;
    /// Of strides, the bits behind: a byte each.
    pub(crate) const UPPER_STRIDES: u32 = 44;
    pub(crate) const BOX_SIZES: u32 = 48;
    pub(crate) const STEPS: u32 = 53;
    pub(crate) const DIMENSIONS: u32 = 58;
    pub(crate) const ELEM: u32 = 59;
    pub(crate) const SWIZZLE: u32 = 60;
    pub(crate) const FILL: u32 = 61;
    pub(crate) const MARK: u32 = 62;
    /// The last byte of the mark.
    pub(crate) const MARK_END: u32 = 63;
}

/// Dimensions of a tensor, at most.
pub const MOST_DIMENSIONS: usize = 5;

/// "TM": what the mark's bytes are.
pub(crate) const MARK: u16 = u16::from_le_bytes(*b"TM");

/// Addresses, strides and rows of boxes are multiples of this many bytes.
const ALIGN: u64 = 16;

/// Type of the elements of a tensor, which matters to reductions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorElem {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    Bf16,
    /// 4 bits, two a byte (`CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B`).
    B4,
}

value!(choice TensorElem { U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, B4 });

impl TensorElem {
    /// All, with their names.
    pub const ALL: [(&str, TensorElem); 11] = [
        ("u8", TensorElem::U8),
        ("u16", TensorElem::U16),
        ("u32", TensorElem::U32),
        ("s32", TensorElem::S32),
        ("u64", TensorElem::U64),
        ("s64", TensorElem::S64),
        ("f16", TensorElem::F16),
        ("f32", TensorElem::F32),
        ("f64", TensorElem::F64),
        ("bf16", TensorElem::Bf16),
        ("b4", TensorElem::B4),
    ];

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            TensorElem::B4 => 4,
            TensorElem::U8 => 8,
            TensorElem::U16 | TensorElem::F16 | TensorElem::Bf16 => 16,
            TensorElem::U32 | TensorElem::S32 | TensorElem::F32 => 32,
            TensorElem::U64 | TensorElem::S64 | TensorElem::F64 => 64,
        }
    }

    /// Bytes of an element, or of as many as a byte has.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Bytes of elements side by side, a whole number of them.
    pub fn bytes_of(self, elements: u32) -> u64 {
        u64::from(elements) * u64::from(self.bits()) / 8
    }

    /// What a reduction by this operation does with each element (PTX ISA 9.7.9.27.1.3: the type is that of
    /// the map); none where there is no such reduction.
    pub fn reduction(self, op: AtomOp) -> Option<(AtomOp, Elem)> {
        use TensorElem::{B4, Bf16, F16, F32, F64, S32, S64, U8, U16, U32, U64};
        let half = |format| match op {
            AtomOp::Add if format == HalfFormat::F16 => Some(AtomOp::AddHalf(HalfType::F16)),
            AtomOp::Add => Some(AtomOp::AddHalf(HalfType::Bf16)),
            AtomOp::Min => Some(AtomOp::MinHalf(format)),
            AtomOp::Max => Some(AtomOp::MaxHalf(format)),
            _ => None,
        };
        let bits = matches!(op, AtomOp::And | AtomOp::Or | AtomOp::Xor);
        let ordered = matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max);
        match self {
            F16 => Some((half(HalfFormat::F16)?, Elem::U16)),
            Bf16 => Some((half(HalfFormat::Bf16)?, Elem::U16)),
            F32 => (op == AtomOp::Add).then_some((op, Elem::F32)),
            F64 => (op == AtomOp::Add).then_some((op, Elem::F64)),
            U32 => (ordered || bits || matches!(op, AtomOp::Inc | AtomOp::Dec)).then_some((op, Elem::U32)),
            S32 => (ordered || bits).then_some((op, Elem::S32)),
            U64 => (ordered || bits).then_some((op, Elem::U64)),
            S64 => (matches!(op, AtomOp::Min | AtomOp::Max) || bits).then_some((op, Elem::S64)),
            B4 | U8 | U16 => None,
        }
    }
}

/// How bytes of a tile are spread over the banks of shared memory: bits of an address from bit 4 on are
/// combined with those from bit 7 on by exclusive or.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swizzle {
    None,
    B32,
    B64,
    B128,
}

value!(choice Swizzle { None, B32, B64, B128 });

impl Swizzle {
    /// All, with their names.
    pub const ALL: [(&str, Swizzle); 4] =
        [("none", Swizzle::None), ("32B", Swizzle::B32), ("64B", Swizzle::B64), ("128B", Swizzle::B128)];

    /// Where the byte lies that would lie at this address in shared memory.
    #[inline]
    pub fn place(self, address: u64) -> u64 {
        self.place_from(0, address)
    }

    /// The same where the pattern begins at this row of 128 bytes, as a descriptor of `wgmma` may say.
    #[inline]
    pub fn place_from(self, row: u64, address: u64) -> u64 {
        address ^ (((address >> 7).wrapping_sub(row) & (self.chunks() - 1)) << 4)
    }

    /// Bytes of a row of a box, at most.
    pub fn span_bytes(self) -> Option<u32> {
        (self != Swizzle::None).then(|| 16 * self.chunks() as u32)
    }

    /// Chunks of 16 bytes that change places among each other.
    pub fn chunks(self) -> u64 {
        match self {
            Swizzle::None => 1,
            Swizzle::B32 => 2,
            Swizzle::B64 => 4,
            Swizzle::B128 => 8,
        }
    }
}

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
    /// The map as a program passes it on.
    pub fn encode(&self) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.address.to_le_bytes());
        for (i, stride) in self.strides.iter().enumerate() {
            let bytes = stride.to_le_bytes();
            put(8 + 4 * i, &bytes[..4]);
            put(44 + i, &bytes[4..5]);
        }
        for i in 0..MOST_DIMENSIONS {
            put(24 + 4 * i, &self.sizes[i].to_le_bytes());
            put(48 + i, &[self.box_sizes[i] as u8]);
            put(53 + i, &[self.steps[i] as u8]);
        }
        put(58, &[self.dimensions, self.elem as u8, self.swizzle as u8, self.fill as u8]);
        put(62, &MARK.to_le_bytes());
        if let Some(pixels) = &self.im2col {
            put(64, &[1]);
            put(66, &pixels.pixels.to_le_bytes());
            for (i, corner) in pixels.lower.iter().chain(&pixels.upper).enumerate() {
                put(68 + 2 * i, &corner.to_le_bytes());
            }
        }
        bytes
    }

    /// The map of these bytes.
    ///
    /// # Errors
    /// They are no map, or none that the driver would make.
    pub fn decode(bytes: &[u8; MAP_BYTES]) -> Result<TensorMap, String> {
        let half = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let named = |at: usize| usize::from(bytes[at]);
        // The first bytes say what it may be instead.
        if half(62) != MARK {
            let begins: Vec<String> = bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(format!("what the address names is no tensor map: it begins with {}", begins.join(" ")));
        }
        let (elem, swizzle, fill) =
            (TensorElem::ALL.get(named(59)), Swizzle::ALL.get(named(60)), Fill::ALL.get(named(61)));
        let (Some(&(_, elem)), Some(&(_, swizzle)), Some(&(_, fill))) = (elem, swizzle, fill) else {
            let found = format!("{}, {} and {}", bytes[59], bytes[60], bytes[61]);
            return Err(format!("the tensor map has a type, a swizzle or a fill that is not known: {found}"));
        };
        let corner = |first: usize| std::array::from_fn(|i| half(first + 2 * i) as i16);
        let im2col = match bytes[64] {
            0 => None,
            1 => Some(PixelBox { pixels: half(66), lower: corner(68), upper: corner(74) }),
            kind => return Err(format!("the tensor map is of a kind that is not known: {kind}, not 0 or 1")),
        };
        // Every field is known: what they say together is checked.
        let map = TensorMap {
            dimensions: bytes[58],
            elem,
            swizzle,
            fill,
            address: long(0),
            strides: std::array::from_fn(|i| u64::from(word(8 + 4 * i)) | u64::from(bytes[44 + i]) << 32),
            sizes: std::array::from_fn(|i| word(24 + 4 * i)),
            // A byte holds no 256, and a box has no 0.
            box_sizes: std::array::from_fn(|i| (u32::from(bytes[48 + i]) + 255) % 256 + 1),
            steps: std::array::from_fn(|i| u32::from(bytes[53 + i])),
            im2col,
        };
        map.check().map_err(|faults| faults.join("; ")).map(|()| map)
    }

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
    fn a_map_is_what_it_was_made_of() {
        assert_eq!(TensorMap::decode(&map().encode()), Ok(map()));
        let corners = PixelBox { pixels: 1024, lower: [-32768, 0, 0], upper: [32767, 0, 0] };
        let narrow = TensorMap { sizes: [10, 2, 3, 1, 1], box_sizes: [4, 1, 1, 1, 1], im2col: Some(corners), ..map() };
        assert_eq!(TensorMap::decode(&narrow.encode()), Ok(narrow));
        let three = PixelBox { pixels: 300, lower: [-16, 1, -2], upper: [15, -3, 4] };
        let wide = TensorMap { dimensions: 5, sizes: [10, 9, 8, 7, 6], strides: [64; 4], ..narrow };
        let wide = TensorMap { im2col: Some(three), ..wide };
        assert_eq!(TensorMap::decode(&wide.encode()), Ok(wide));
        let mut unknown = wide.encode();
        unknown[64] = 2;
        let told = TensorMap::decode(&unknown).unwrap_err();
        assert_eq!(told, "the tensor map is of a kind that is not known: 2, not 0 or 1");
        let mut other = map().encode();
        other[62] = 0;
        let told = TensorMap::decode(&other).unwrap_err();
        assert_eq!(told, "what the address names is no tensor map: it begins with 00 00 00 00 01 00 00 00");
    }

    #[test]
    fn a_map_of_boxes_has_zeros_behind_its_first_64_bytes() {
        let large = TensorMap {
            dimensions: 5,
            elem: TensorElem::U8,
            strides: [1 << 20, 1 << 35, (1 << 40) - 16, 512],
            sizes: [u32::MAX, 256, 3, 2, 1],
            box_sizes: [256, 256, 1, 1, 1],
            steps: [1, 8, 1, 1, 1],
            ..map()
        };
        for map in [map(), TensorMap { box_sizes: [32, 32, 8, 1, 1], ..large }] {
            let bytes = map.encode();
            assert_eq!(bytes[64..], [0; 64], "the compiler of CUTLASS's DSL copies no others");
            assert_eq!(TensorMap::decode(&bytes), Ok(map));
        }
        let bytes = large.encode();
        assert_eq!(bytes[48..53], [0, 0, 1, 1, 1], "256 is 0");
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

    #[test]
    fn swizzles_are_those_of_cute() {
        // Swizzle<B, 4, 3>: the B bits from bit 4 on, with the B bits three further up.
        for (swizzle, bits) in [(Swizzle::None, 0), (Swizzle::B32, 1), (Swizzle::B64, 2), (Swizzle::B128, 3)] {
            for address in 0..2048u64 {
                let mask = ((1 << bits) - 1) << 7;
                assert_eq!(swizzle.place(address), address ^ ((address & mask) >> 3), "{swizzle:?} {address}");
            }
        }
    }
}
