//! Swizzles: how bytes of a tile, or of a matrix of a warp group or a tensor core, are spread over the banks
//! of shared memory.
//!
//! ```text
//!   address   ... 9 8 7 | 6 5 4 | 3 2 1 0       128B: bits 6 to 4 with bits 9 to 7; 64B: bits 5 to 4 with 8 to 7;
//!                   row | chunk | byte           32B: bit 4 with bit 7
//! ```
//! Source: PTX ISA 5.5 (swizzling modes), CuTe's `Swizzle<B, 4, 3>`. Invariant: chunks of 16 bytes stay whole
//! and change places within a row of 128 bytes. Not modelled: atoms of 32 and 64 bytes
//! (`CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B` and others).

use durawarp_checkpoint::value;

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

#[cfg(test)]
mod tests {
    use super::*;

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
