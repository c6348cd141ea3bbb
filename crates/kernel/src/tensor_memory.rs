//! The tensor memory of a CTA (PTX ISA 9.7.16.1): 128 lanes and up to 512 columns of 32 bits.
//!
//! ```text
//! address   bits 31-16 lane   15-0 column        warp w of four accesses lanes 32 w to 32 w + 31
//! ```
//! Columns are allocated whole, in powers of two from 32 on. Chosen: the lowest that are free. Here each CTA
//! has columns numbered from 0, although all CTAs of an SM share 512: the machine counts how many are taken
//! (`sm/tensor_memory.rs`), and where they lie no other CTA sees.

use durawarp_checkpoint::value;

/// Allocation for a pair of CTAs (`tcgen05.alloc.cta_group::2`) that the ISA leaves undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairMisuse {
    /// A CTA asks while it waits.
    #[error("two warps of a CTA in `tcgen05.alloc.cta_group::2` at once")]
    Twice,
    /// Each asks for another number of columns.
    #[error("`tcgen05.alloc.cta_group::2` of {columns} columns, where the peer CTA asks for {theirs}")]
    Columns {
        columns: u32,
        /// Those of the peer.
        theirs: u32,
    },
    /// The columns of each have another address.
    #[error(
        "`tcgen05.alloc.cta_group::2` at address {address:#x}, where the peer CTA has its columns at {theirs:#x}: \
         both allocate and free alike"
    )]
    Apart {
        address: u32,
        /// That of the peer's.
        theirs: u32,
    },
}

/// Lanes.
pub const TENSOR_LANES: u32 = 128;
/// Columns of an SM.
pub const TENSOR_COLUMNS: u32 = 512;

/// Cells of a CTA, and which of them are its.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorMemory {
    /// Lanes of a column lie together; none before the first allocation.
    cells: Vec<u32>,
    /// First columns and numbers, ascending.
    allocated: Vec<(u32, u32)>,
}

value!(record TensorMemory { cells, allocated });

impl TensorMemory {
    /// A CTA begins, which has none.
    pub fn clear(&mut self) {
        self.allocated.clear();
        self.cells.clear();
    }

    /// Columns that are its.
    pub fn columns(&self) -> u32 {
        self.allocated.iter().map(|(_, columns)| columns).sum()
    }

    /// Columns can be allocated in this number.
    pub fn is_size(columns: u32) -> bool {
        (32..=TENSOR_COLUMNS).contains(&columns) && columns.is_power_of_two()
    }

    /// Makes columns its own: their address, or none where they do not fit between others.
    pub fn allocate(&mut self, columns: u32) -> Option<u32> {
        let mut first = 0;
        let mut at = 0;
        for &(taken, number) in &self.allocated {
            if first + columns <= taken {
                break;
            }
            first = taken + number;
            at += 1;
        }
        if first + columns > TENSOR_COLUMNS {
            return None;
        }
        self.allocated.insert(at, (first, columns));
        self.cells.resize((TENSOR_COLUMNS * TENSOR_LANES) as usize, 0);
        Some(first)
    }

    /// Columns at an address are free.
    ///
    /// # Errors
    /// They were not allocated so.
    pub fn free(&mut self, address: u32, columns: u32) -> Result<(), String> {
        let found = self.allocated.iter().position(|&of| of == (address, columns));
        let Some(found) = found else {
            return Err(format!(
                "`tcgen05.dealloc` of {columns} columns at address {address:#x}, which were not allocated so"
            ));
        };
        self.allocated.remove(found);
        Ok(())
    }

    /// All of these columns are its.
    pub fn owns(&self, columns: std::ops::Range<u32>) -> bool {
        let mut from = columns.start;
        for &(first, number) in &self.allocated {
            if (first..first + number).contains(&from) {
                from = first + number;
            }
        }
        from >= columns.end
    }

    /// A cell of a column that is its.
    pub(crate) fn cell(&mut self, lane: u32, column: u32) -> &mut u32 {
        &mut self.cells[(column * TENSOR_LANES + lane) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_columns_that_are_free_are_taken() {
        let mut memory = TensorMemory::default();
        assert_eq!([64, 128, 64].map(|columns| memory.allocate(columns)), [Some(0), Some(64), Some(192)]);
        assert_eq!((memory.columns(), memory.allocate(512)), (256, None));
        assert_eq!(memory.free(64, 64).map_err(|_| ()), Err(()), "half of it");
        memory.free(64, 128).unwrap();
        assert_eq!(
            [256, 32, 32, 64].map(|columns| memory.allocate(columns)),
            [Some(256), Some(64), Some(96), Some(128)]
        );
        assert!(memory.owns(0..512) && !memory.owns(500..513));
        memory.free(96, 32).unwrap();
        assert!(!memory.owns(64..128) && memory.owns(64..96) && memory.owns(128..512));
    }

    #[test]
    fn sizes_are_powers_of_two_from_32_to_512() {
        let sizes: Vec<u32> = (0..2000).filter(|&columns| TensorMemory::is_size(columns)).collect();
        assert_eq!(sizes, [32, 64, 128, 256, 512]);
    }
}
