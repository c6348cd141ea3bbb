//! The 128 bytes of a tensor map, as programs pass it on and change it.
//!
//! Programs only pass a map on, so that its layout is ours. A map of boxes has all that is not zero in its
//! first 64 bytes, as the compiler of CUTLASS's DSL copies no others:
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
//! A program may change a map by `tensormap.replace` alone, field by field, and begins a new one as 128
//! zeros: each change sets the mark. Source: CUDA driver API (`CUtensorMap`: size and alignment); the layout
//! is chosen. Invariant: bytes that are read as a map are one that the driver would make. Not modelled: the
//! layout that cards have, which NVIDIA does not document.

use super::{Fill, MOST_DIMENSIONS, PixelBox, Swizzle, TensorElem, TensorMap};

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

/// "TM": what the mark's bytes are.
pub(crate) const MARK: u16 = u16::from_le_bytes(*b"TM");

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
}

#[cfg(test)]
mod tests {
    use super::super::tests::map;
    use super::*;

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
}
