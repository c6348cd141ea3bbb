//! The memory of a process as it sees it: two windows of virtual addresses, and their bytes for drivers
//! without a machine.
//!
//! | window | addresses | holds |
//! |---|---|---|
//! | main | [[`MAIN_START`], `memory_bytes`) | image, heap, mappings, stacks |
//! | persistent | [[`PM_START`], [`PM_START`] + `pm_bytes`) | what `open("/pm/NAME")` and `mmap` hand out |
//!
//! There is no page table: a translation is two comparisons and an addition, and memory has no protection but
//! for code. The first page is in no window, so that a null pointer is a fault.

use durawarp_base::sparse;

/// First address of the main window.
pub const MAIN_START: u64 = 4096;
/// First address of the persistent window.
pub const PM_START: u64 = 1 << 38;
/// Bytes of a page: the grain of `brk` and `mmap`.
pub const PAGE_BYTES: u64 = 4096;
/// The most bytes that the main window may have.
pub const MEMORY_MAX_BYTES: u64 = 1 << 36;
/// The most bytes that the persistent window may have.
pub const PM_MAX_BYTES: u64 = 1 << 37;

/// How large the windows are.
///
/// # Example: what lies where
/// ```
/// use durawarp_riscv::memory::{PM_START, MemoryPlace, Windows};
/// let windows = Windows { memory_bytes: 1 << 20, pm_bytes: 1 << 16 };
/// assert_eq!(windows.place(0x1_0000, 8), Some(MemoryPlace::Main(0x1_0000)));
/// assert_eq!(windows.place(PM_START + 64, 8), Some(MemoryPlace::Persistent(64)));
/// assert_eq!(windows.place((1 << 20) - 4, 8), None);
/// assert_eq!(windows.place(0, 1), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// End of the main window, a multiple of [`PAGE_BYTES`].
    pub memory_bytes: u64,
    /// Bytes of the persistent window, a multiple of [`PAGE_BYTES`].
    pub pm_bytes: u64,
}

/// Where an access lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPlace {
    /// In the main window, at this offset of it: the address itself.
    Main(u64),
    /// In the persistent window, at this offset.
    Persistent(u64),
}

impl Windows {
    /// Where `bytes` bytes from an address on lie; `None` unless one window has all of them.
    #[inline]
    pub fn place(&self, address: u64, bytes: u64) -> Option<MemoryPlace> {
        let within = |offset: u64, length: u64| offset < length && bytes <= length - offset;
        if within(address.wrapping_sub(MAIN_START), self.memory_bytes.saturating_sub(MAIN_START)) {
            return Some(MemoryPlace::Main(address));
        }
        let offset = address.wrapping_sub(PM_START);
        within(offset, self.pm_bytes).then_some(MemoryPlace::Persistent(offset))
    }
}

/// The bytes of both windows, zeros at first.
#[derive(Debug, PartialEq, Eq)]
pub struct Memory {
    /// From [`MAIN_START`] on.
    main: Vec<u8>,
    persistent: Vec<u8>,
}

impl Memory {
    /// Zeros. The host commits pages when they are touched.
    pub fn new(windows: Windows) -> Memory {
        let zeros = |bytes: u64| vec![0; bytes as usize];
        Memory { main: zeros(windows.memory_bytes.saturating_sub(MAIN_START)), persistent: zeros(windows.pm_bytes) }
    }

    /// The bytes of the persistent window.
    pub fn persistent(&self) -> &[u8] {
        &self.persistent
    }

    /// The bytes of the persistent window, to be written: a crash image that recovery begins with.
    pub fn persistent_mut(&mut self) -> &mut [u8] {
        &mut self.persistent
    }

    /// Pages with a byte other than zero, by address.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        [(MAIN_START, &self.main), (PM_START, &self.persistent)]
            .into_iter()
            .flat_map(|(start, bytes)| sparse::pages(bytes).map(move |(at, page)| (start + at as u64, page)))
    }

    /// From an address to the end of its window.
    #[inline]
    fn tail(&self, address: u64) -> Option<&[u8]> {
        let offset = address.wrapping_sub(MAIN_START);
        if offset < self.main.len() as u64 {
            return self.main.get(offset as usize..);
        }
        self.persistent.get(address.wrapping_sub(PM_START) as usize..)
    }

    #[inline]
    fn tail_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        let offset = address.wrapping_sub(MAIN_START);
        if offset < self.main.len() as u64 {
            return self.main.get_mut(offset as usize..);
        }
        self.persistent.get_mut(address.wrapping_sub(PM_START) as usize..)
    }

    /// `N` bytes, little-endian, from an address on, which need not be aligned. `None` outside the windows.
    #[inline]
    pub fn load<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.tail(address)?.first_chunk().copied()
    }

    /// Writes `N` bytes. `None` outside the windows.
    #[inline]
    pub fn store<const N: usize>(&mut self, address: u64, bytes: [u8; N]) -> Option<()> {
        *self.tail_mut(address)?.first_chunk_mut()? = bytes;
        Some(())
    }

    /// Any number of bytes from an address on. `None` outside the windows.
    pub fn read(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        self.tail(address)?.get(..bytes)
    }

    /// The same, to be written.
    pub fn slice_mut(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        self.tail_mut(address)?.get_mut(..bytes)
    }
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        Memory { main: sparse::copy_of(&self.main), persistent: sparse::copy_of(&self.persistent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { memory_bytes: 2 * PAGE_BYTES, pm_bytes: PAGE_BYTES };

    #[test]
    fn an_access_lies_in_one_window_or_nowhere() {
        for (address, bytes, inside) in [
            (MAIN_START - 1, 1, false),
            (MAIN_START, 4096, true),
            (MAIN_START, 4097, false),
            (2 * PAGE_BYTES - 8, 8, true),
            (2 * PAGE_BYTES - 7, 8, false),
            (2 * PAGE_BYTES, 1, false),
            (PM_START - 1, 1, false),
            (PM_START - 1, 2, false),
            (PM_START, 8, true),
            (PM_START + PAGE_BYTES - 8, 8, true),
            (PM_START + PAGE_BYTES - 4, 8, false),
            (u64::MAX, 8, false),
            (u64::MAX - 7, 8, false),
        ] {
            assert_eq!(WINDOWS.place(address, bytes).is_some(), inside, "{bytes} bytes at {address:#x}");
            let memory = Memory::new(WINDOWS);
            assert_eq!(memory.read(address, bytes as usize).is_some(), inside, "{bytes} bytes at {address:#x}");
        }
    }

    #[test]
    fn what_is_stored_is_loaded_at_any_alignment() {
        let mut memory = Memory::new(WINDOWS);
        for base in [MAIN_START, PM_START] {
            memory.store(base + 3, 0x0102_0304_0506_0708u64.to_le_bytes()).unwrap();
            assert_eq!(memory.load::<4>(base + 5).map(u32::from_le_bytes), Some(0x0304_0506));
        }
        assert_eq!(memory.persistent()[3], 8);
        assert_eq!(memory.store(2 * PAGE_BYTES - 4, [0; 8]), None);
    }
}
