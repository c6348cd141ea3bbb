//! Where an address lives: which L2 slice, which memory channel, and at which dense local address there.
//!
//! Memory is cut into chunks; a group of as many consecutive chunks as there are slices has one chunk on
//! each, and a hash of the group's number rotates which one, so that no power-of-two stride camps on a
//! channel (SM6 hashes its partitions too). The mapping is a bijection, so every controller stores its share
//! densely.
//!
//! Invariants: a line never crosses a chunk; slices `k * slices_per_channel ..` belong to channel `k`.
//! Not modelled: virtual memory and page placement.

use durawarp_kernel::memory::{DRAM_BASE, Medium, NVM_BASE};

/// The address mapping of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleave {
    slices: u32,
    slices_per_channel: u32,
    chunk_shift: u32,
    /// The logarithm of `slices`, when it is a power of two.
    slice_shift: Option<u32>,
}

impl Interleave {
    /// A mapping over `slices` slices, a whole number of them a channel, in chunks of `chunk_bytes` (a power
    /// of two).
    ///
    /// # Panics
    /// When the slices do not divide over the channels, or the chunk is not a power of two.
    pub fn new(slices: u32, channels: u32, chunk_bytes: u32) -> Self {
        assert!(slices > 0 && channels > 0 && slices.is_multiple_of(channels), "{slices} slices, {channels} channels");
        assert!(chunk_bytes.is_power_of_two(), "a chunk of {chunk_bytes} bytes is not a power of two");
        let slice_shift = slices.is_power_of_two().then(|| slices.trailing_zeros());
        let chunk_shift = chunk_bytes.trailing_zeros();
        Interleave { slices, slices_per_channel: slices / channels, chunk_shift, slice_shift }
    }

    /// Number of slices.
    pub fn slices(self) -> u32 {
        self.slices
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(self) -> u64 {
        1 << self.chunk_shift
    }

    /// Slices that share one channel.
    pub fn slices_per_channel(self) -> u32 {
        self.slices_per_channel
    }

    /// The slice that serves an address.
    #[inline]
    pub fn slice_of(self, address: u64) -> u32 {
        let chunk = offset_in_medium(address) >> self.chunk_shift;
        let slices = u64::from(self.slices);
        if let Some(shift) = self.slice_shift {
            return ((chunk + mixed(chunk >> shift)) & (slices - 1)) as u32;
        }
        let (group, place) = (chunk / slices, chunk % slices);
        ((place + mixed(group) % slices) % slices) as u32
    }

    /// The channel that serves an address.
    #[inline]
    pub fn channel_of(self, address: u64) -> usize {
        (self.slice_of(address) / self.slices_per_channel) as usize
    }

    /// The address of a line of persistent memory that the slice serves.
    pub fn some_line_of(self, slice: u32) -> u64 {
        let first_group = (0..u64::from(self.slices)).map(|chunk| NVM_BASE + (chunk << self.chunk_shift));
        let of_slice = first_group.into_iter().find(|&address| self.slice_of(address) == slice);
        of_slice.unwrap_or_else(|| unreachable!("every slice has a chunk of every group"))
    }

    /// The group of chunks that an offset in a medium is in.
    #[inline]
    fn group_of(self, offset: u64) -> u64 {
        let chunk = offset >> self.chunk_shift;
        match self.slice_shift {
            Some(shift) => chunk >> shift,
            None => chunk / u64::from(self.slices),
        }
    }

    /// The address within its slice's share of its medium, dense from 0.
    pub fn in_slice(self, address: u64) -> u64 {
        let offset = offset_in_medium(address);
        let group = self.group_of(offset);
        group << self.chunk_shift | offset & ((1 << self.chunk_shift) - 1)
    }

    /// The address within its channel's share of its medium, dense from 0: neighbouring chunks of the
    /// channel's slices follow each other, so that a stream fills a DRAM row before it leaves it.
    pub fn in_channel(self, address: u64) -> u64 {
        let local = self.in_slice(address);
        let group = local >> self.chunk_shift;
        let place = u64::from(self.slice_of(address) % self.slices_per_channel);
        (group * u64::from(self.slices_per_channel) + place) << self.chunk_shift | local & ((1 << self.chunk_shift) - 1)
    }

    /// The offset in its medium of a byte at `at` of a channel's share: what [`Interleave::in_channel`] maps
    /// there.
    #[inline]
    pub fn offset_of(self, channel: u32, at: u64) -> u64 {
        let (chunk, within) = (at >> self.chunk_shift, at & ((1 << self.chunk_shift) - 1));
        let (per_channel, slices) = (u64::from(self.slices_per_channel), u64::from(self.slices));
        let (group, place) = (chunk / per_channel, chunk % per_channel);
        let slice = u64::from(channel) * per_channel + place;
        let turned = mixed(group) % slices;
        let first = group * slices;
        (first + (slice + slices - turned) % slices) << self.chunk_shift | within
    }

    /// Where bytes of a channel's share lie in the medium: from the first offset on and before the second, in
    /// every channel.
    pub fn offsets_of(self, at: u64, bytes: u64) -> (u64, u64) {
        let group_of = |at: u64| (at >> self.chunk_shift) / u64::from(self.slices_per_channel);
        let group_bytes = u64::from(self.slices) << self.chunk_shift;
        (group_of(at) * group_bytes, (group_of(at + bytes.max(1) - 1) + 1) * group_bytes)
    }

    /// Where bytes of a medium lie in the channels: from the first number on and before the second, in every
    /// channel.
    pub fn in_channels(self, address: u64, bytes: u64) -> (u64, u64) {
        let offset = offset_in_medium(address);
        let group_bytes = u64::from(self.slices_per_channel) << self.chunk_shift;
        let last = self.group_of(offset + bytes.max(1) - 1);
        (self.group_of(offset) * group_bytes, (last + 1) * group_bytes)
    }

    /// Bytes of a channel's share of a medium that holds `bytes` bytes from its base.
    pub fn channel_share(self, bytes: u64) -> u64 {
        let groups = bytes.div_ceil(1 << self.chunk_shift).div_ceil(u64::from(self.slices));
        (groups * u64::from(self.slices_per_channel)) << self.chunk_shift
    }
}

/// An address's distance from the base of its medium.
pub fn offset_in_medium(address: u64) -> u64 {
    match Medium::of(address) {
        Medium::Dram => address.wrapping_sub(DRAM_BASE),
        Medium::Nvm => address - NVM_BASE,
    }
}

/// A mixing of 64 bits: the finish of splitmix64.
pub(crate) fn mixed(word: u64) -> u64 {
    let z = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_mapping_is_a_bijection_onto_dense_channels() {
        for (slices, channels) in [(16, 8), (24, 12), (3, 3), (1, 1)] {
            let map = Interleave::new(slices, channels, 256);
            let bytes = 256 * u64::from(slices) * 37;
            let mut seen = BTreeSet::new();
            for base in [DRAM_BASE, NVM_BASE] {
                for line in (0..bytes).step_by(128) {
                    let address = base + line;
                    let channel = map.slice_of(address) / map.slices_per_channel();
                    assert!(map.in_channel(address) < map.channel_share(bytes));
                    assert_eq!(map.offset_of(channel, map.in_channel(address) + 5), line + 5);
                    let (from, to) = map.in_channels(address, 128);
                    assert!(from <= map.in_channel(address) && map.in_channel(address) + 128 <= to);
                    let (first, end) = map.offsets_of(map.in_channel(address), 128);
                    assert!(first <= line && line + 128 <= end);
                    assert!(seen.insert((base, channel, map.in_channel(address))), "{address:#x} is not alone");
                }
            }
        }
    }

    #[test]
    fn no_power_of_two_stride_camps_on_a_slice() {
        let map = Interleave::new(16, 8, 256);
        for shift in 7..20 {
            let mut hits = [0u32; 16];
            for i in 0..4096u64 {
                hits[map.slice_of(DRAM_BASE + (i << shift)) as usize] += 1;
            }
            let most = *hits.iter().max().unwrap();
            assert!(most <= 4096 / 16 * 3 / 2, "stride {}: {hits:?}", 1u64 << shift);
        }
    }

    #[test]
    fn the_bytes_of_a_chunk_stay_together() {
        let map = Interleave::new(16, 8, 256);
        let at = |offset: u64| (map.slice_of(DRAM_BASE + offset), map.in_slice(DRAM_BASE + offset));
        assert_eq!(at(256).0, at(511).0);
        assert_eq!(at(256).1 + 255, at(511).1);
    }
}
