//! Where an address lives: which L2 slice, which memory channel, and at which dense local address there.
//!
//! Memory is cut into chunks; a group of as many consecutive chunks as there are slices has one chunk on
//! each, and a hash of the group's number rotates which one, so that no power-of-two stride camps on a
//! channel (SM6 hashes its partitions too). Other mappings (`mapping`) take the channel from bits of the
//! address, or from a remainder. All are bijections, so every controller stores its share densely.
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
    /// Channels by a mapping other than `ours`.
    spread: Option<Spread>,
}

/// Most bits of a slice's number that a mapping hashes.
pub(crate) const MOST_HASHED: usize = 10;

/// Channels by a part of the chunk's number, hashed with the rest of it: the channel's own chunk number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Bits of the chunk's number below the channel.
    below: u32,
    channels: u32,
    /// The logarithm of `channels`, when it is a power of two.
    channel_shift: Option<u32>,
    /// Bits of the slice's number that are hashed.
    hashed: usize,
    /// For each of them the bits of the channel's chunk number that are summed up.
    hash: [u64; MOST_HASHED],
}

impl Spread {
    pub(crate) fn new(channels: u32, below: u32, hash: [u64; MOST_HASHED]) -> Spread {
        let channel_shift = channels.is_power_of_two().then(|| channels.trailing_zeros());
        let hashed = hash.iter().rposition(|&mask| mask != 0).map_or(0, |last| last + 1);
        Spread { below, channels, channel_shift, hashed, hash }
    }

    /// The channel before hashing, and the channel's own number of the chunk.
    #[inline]
    fn split(&self, chunk: u64) -> (u64, u64) {
        let (above, low) = (chunk >> self.below, chunk & ((1 << self.below) - 1));
        let (channel, own) = match self.channel_shift {
            Some(shift) => (above & ((1 << shift) - 1), above >> shift),
            None => (above % u64::from(self.channels), above / u64::from(self.channels)),
        };
        (channel, own << self.below | low)
    }

    /// The chunk whose split it is.
    fn joined(&self, channel: u64, own: u64) -> u64 {
        let (above, low) = (own >> self.below, own & ((1 << self.below) - 1));
        (above * u64::from(self.channels) + channel) << self.below | low
    }

    /// What the number of a slice is hashed with.
    #[inline]
    fn hash_of(&self, own: u64) -> u64 {
        parities(&self.hash[..self.hashed], own)
    }

    #[inline]
    fn slice_of(&self, chunk: u64, per_channel: u64) -> u32 {
        let (channel, own) = self.split(chunk);
        ((channel * per_channel + own % per_channel) ^ self.hash_of(own)) as u32
    }
}

/// The number whose bits are the parities of a word under these masks, the least first.
#[inline]
pub(crate) fn parities(masks: &[u64], word: u64) -> u64 {
    masks.iter().rev().fold(0, |number, mask| number << 1 | u64::from((word & mask).count_ones() & 1))
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
        Interleave { slices, slices_per_channel: slices / channels, chunk_shift, slice_shift, spread: None }
    }

    /// The same over slices and channels that a mapping chooses.
    pub(crate) fn with(self, spread: Spread) -> Self {
        Interleave { spread: Some(spread), ..self }
    }

    /// Number of slices.
    pub fn slices(&self) -> u32 {
        self.slices
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        1 << self.chunk_shift
    }

    /// Slices that share one channel.
    pub fn slices_per_channel(&self) -> u32 {
        self.slices_per_channel
    }

    /// The slice that serves an address.
    #[inline]
    pub fn slice_of(&self, address: u64) -> u32 {
        let chunk = offset_in_medium(address) >> self.chunk_shift;
        if let Some(spread) = &self.spread {
            return spread.slice_of(chunk, u64::from(self.slices_per_channel));
        }
        let slices = u64::from(self.slices);
        if let Some(shift) = self.slice_shift {
            return ((chunk + mixed(chunk >> shift)) & (slices - 1)) as u32;
        }
        let (group, place) = (chunk / slices, chunk % slices);
        ((place + mixed(group) % slices) % slices) as u32
    }

    /// The channel that serves an address.
    #[inline]
    pub fn channel_of(&self, address: u64) -> usize {
        (self.slice_of(address) / self.slices_per_channel) as usize
    }

    /// The address of a line of persistent memory that the slice serves.
    pub fn some_line_of(&self, slice: u32) -> u64 {
        // The first chunks of a channel are of its slices in turn.
        let place = u64::from(slice % self.slices_per_channel);
        NVM_BASE + self.offset_of(slice / self.slices_per_channel, place << self.chunk_shift)
    }

    /// Chunks of a medium that all channels share out evenly: the least number of them, and those of one
    /// channel.
    fn group(&self) -> (u64, u64) {
        match &self.spread {
            Some(spread) => (u64::from(spread.channels) << spread.below, 1 << spread.below),
            None => (u64::from(self.slices), u64::from(self.slices_per_channel)),
        }
    }

    /// The address within its slice's share of its medium, dense from 0.
    #[inline]
    pub fn in_slice(&self, address: u64) -> u64 {
        let offset = offset_in_medium(address);
        let chunk = offset >> self.chunk_shift;
        let number = match (&self.spread, self.slice_shift) {
            (Some(spread), _) => spread.split(chunk).1 / u64::from(self.slices_per_channel),
            (None, Some(shift)) => chunk >> shift,
            (None, None) => chunk / u64::from(self.slices),
        };
        number << self.chunk_shift | offset & ((1 << self.chunk_shift) - 1)
    }

    /// The address within its channel's share of its medium, dense from 0: neighbouring chunks of the
    /// channel's slices follow each other, so that a stream fills a DRAM row before it leaves it.
    pub fn in_channel(&self, address: u64) -> u64 {
        if let Some(spread) = &self.spread {
            let offset = offset_in_medium(address);
            let (_, own) = spread.split(offset >> self.chunk_shift);
            return own << self.chunk_shift | offset & ((1 << self.chunk_shift) - 1);
        }
        let local = self.in_slice(address);
        let group = local >> self.chunk_shift;
        let place = u64::from(self.slice_of(address) % self.slices_per_channel);
        (group * u64::from(self.slices_per_channel) + place) << self.chunk_shift | local & ((1 << self.chunk_shift) - 1)
    }

    /// The offset in its medium of a byte at `at` of a channel's share: what [`Interleave::in_channel`] maps
    /// there.
    #[inline]
    pub fn offset_of(&self, channel: u32, at: u64) -> u64 {
        let (chunk, within) = (at >> self.chunk_shift, at & ((1 << self.chunk_shift) - 1));
        let (per_channel, slices) = (u64::from(self.slices_per_channel), u64::from(self.slices));
        if let Some(spread) = &self.spread {
            let plain = u64::from(channel) ^ (spread.hash_of(chunk) / per_channel);
            return spread.joined(plain, chunk) << self.chunk_shift | within;
        }
        let (group, place) = (chunk / per_channel, chunk % per_channel);
        let slice = u64::from(channel) * per_channel + place;
        let turned = mixed(group) % slices;
        let first = group * slices;
        (first + (slice + slices - turned) % slices) << self.chunk_shift | within
    }

    /// Where bytes of a channel's share lie in the medium: from the first offset on and before the second, in
    /// every channel.
    pub fn offsets_of(&self, at: u64, bytes: u64) -> (u64, u64) {
        let (chunks, of_channel) = self.group();
        let group_of = |at: u64| (at >> self.chunk_shift) / of_channel;
        let group_bytes = chunks << self.chunk_shift;
        (group_of(at) * group_bytes, (group_of(at + bytes.max(1) - 1) + 1) * group_bytes)
    }

    /// Where bytes of a medium lie in the channels: from the first number on and before the second, in every
    /// channel.
    pub fn in_channels(&self, address: u64, bytes: u64) -> (u64, u64) {
        let offset = offset_in_medium(address);
        let (chunks, of_channel) = self.group();
        let group_of = |offset: u64| (offset >> self.chunk_shift) / chunks;
        let group_bytes = of_channel << self.chunk_shift;
        (group_of(offset) * group_bytes, (group_of(offset + bytes.max(1) - 1) + 1) * group_bytes)
    }

    /// Bytes of a channel's share of a medium that holds `bytes` bytes from its base.
    pub fn channel_share(&self, bytes: u64) -> u64 {
        let (chunks, of_channel) = self.group();
        let groups = bytes.div_ceil(1 << self.chunk_shift).div_ceil(chunks);
        (groups * of_channel) << self.chunk_shift
    }
}

/// An address's distance from the base of its medium.
#[inline]
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
