//! The bytes of persistent memory at one instant: what a power failure leaves, what recovery reads and
//! writes.
//!
//! Invariant: an image covers `[base, base + len)` and nothing else; an access outside is refused, never
//! clipped.

use std::fmt;

use durawarp_base::sparse;

/// A stretch of persistent memory.
#[derive(PartialEq, Eq)]
pub struct PmImage {
    base: u64,
    bytes: Vec<u8>,
}

/// An access that is not all inside the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes at {address:#x} are not all in persistent memory")]
pub struct OutsideImage {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: usize,
}

impl PmImage {
    /// An image of `bytes` that begins at address `base`.
    pub fn new(base: u64, bytes: Vec<u8>) -> PmImage {
        PmImage { base, bytes }
    }

    /// Address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// All bytes, from [`PmImage::base`] on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The pages that have a byte other than zero, by their offsets.
    pub fn pages(&self) -> impl Iterator<Item = (usize, &[u8])> {
        sparse::pages(&self.bytes)
    }

    /// All bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn place(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, OutsideImage> {
        let start = address.checked_sub(self.base).and_then(|start| usize::try_from(start).ok());
        let range = start.and_then(|start| Some(start..start.checked_add(bytes)?));
        range.filter(|range| range.end <= self.bytes.len()).ok_or(OutsideImage { address, bytes })
    }

    /// `bytes` bytes from `address` on.
    ///
    /// # Errors
    /// Some of them are outside.
    pub fn read(&self, address: u64, bytes: usize) -> Result<&[u8], OutsideImage> {
        self.place(address, bytes).map(|range| &self.bytes[range])
    }

    /// Overwrites from `address` on.
    ///
    /// # Errors
    /// Some of the bytes are outside; nothing is written then.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), OutsideImage> {
        let range = self.place(address, data.len())?;
        self.bytes[range].copy_from_slice(data);
        Ok(())
    }

    /// The 32-bit word at `address`, little-endian.
    ///
    /// # Errors
    /// It is outside.
    pub fn word(&self, address: u64) -> Result<u32, OutsideImage> {
        let bytes = self.read(address, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl Clone for PmImage {
    fn clone(&self) -> PmImage {
        PmImage { base: self.base, bytes: sparse::copy_of(&self.bytes) }
    }

    fn clone_from(&mut self, source: &PmImage) {
        if self.bytes.len() == source.bytes.len() {
            self.base = source.base;
            sparse::overwrite(&mut self.bytes, &source.bytes);
        } else {
            *self = source.clone();
        }
    }
}

impl fmt::Debug for PmImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PmImage({:#x}, {} bytes)", self.base, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_over_either_end_are_refused() {
        let mut image = PmImage::new(1000, vec![1, 2, 3, 4, 5, 6]);
        assert_eq!(image.read(1002, 4).unwrap(), [3, 4, 5, 6]);
        assert_eq!(image.word(1001), Ok(0x0504_0302));
        for (address, bytes) in [(999, 2), (1003, 4), (u64::MAX, 1), (0, 0)] {
            assert_eq!(image.read(address, bytes), Err(OutsideImage { address, bytes }));
        }
        assert!(image.write(1004, &[9, 9, 9]).is_err());
        image.write(1004, &[9, 9]).unwrap();
        assert_eq!(image.bytes(), [1, 2, 3, 4, 9, 9]);
    }

    #[test]
    fn an_image_and_an_access_outside_of_it_are_told_by_their_addresses() {
        let mut image = PmImage::new(256, vec![7; 6]);
        assert_eq!((image.base(), format!("{image:?}")), (256, "PmImage(0x100, 6 bytes)".to_owned()));
        let outside = image.word(259).unwrap_err().to_string();
        assert_eq!(outside, "4 bytes at 0x103 are not all in persistent memory");
        assert_eq!(image.read(262, 0), Ok(&[][..]));
        assert!(image.read(262, 1).is_err() && image.read(300, usize::MAX).is_err());
        image.bytes_mut()[5] = 9;
        assert_eq!(image.read(260, 2), Ok(&[7, 9][..]));
    }
}
