//! Device memory as a program sees it: address windows, allocated ranges, and a flat image.
//!
//! Buffers live at [`DRAM_BASE`] and [`NVM_BASE`] upwards; shared, local and constant memory appear in
//! generic addresses through windows far above them. Invariant: ranges never overlap, nor touch.

use std::fmt;
use std::sync::{Arc, OnceLock};

use durawarp_checkpoint::value;

use super::ir::Space;

/// First generic address of the shared-memory window (4 GiB long: 16 MiB of the own CTA, and of each other
/// one of its cluster, [`super::cluster`]).
pub const SHARED_WINDOW: u64 = 1 << 44;
/// First generic address of the local-memory window (4 GiB long).
pub const LOCAL_WINDOW: u64 = 2 << 44;
/// First generic address of the constant-bank window (4 GiB long).
pub const CONST_WINDOW: u64 = 3 << 44;
/// The address that a surface access outside its bounds gets: nothing is ever there.
pub const OUTSIDE_SURFACE: u64 = 1 << 63;
/// First of the 64-bit numbers that stand for functions' addresses. Nothing is ever allocated there.
pub const CODE_WINDOW: u64 = 4 << 44;
/// First address of DRAM buffers.
pub const DRAM_BASE: u64 = 1 << 32;
/// First address of NVM (persistent memory) buffers.
pub const NVM_BASE: u64 = 1 << 40;
/// Buffers start at multiples of this many bytes, and at least as many unmapped bytes follow each.
pub const BUFFER_ALIGN: u64 = 256;

/// Which memory an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// Volatile.
    Dram,
    /// Persistent.
    Nvm,
}

value!(choice Medium { Dram, Nvm });

impl Medium {
    /// The medium that a global address lies in.
    #[inline]
    pub fn of(address: u64) -> Medium {
        if address >= NVM_BASE { Medium::Nvm } else { Medium::Dram }
    }

    /// The first address of its buffers.
    pub fn base(self) -> u64 {
        match self {
            Medium::Dram => DRAM_BASE,
            Medium::Nvm => NVM_BASE,
        }
    }
}

/// One allocated range of global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Name of the buffer or variable.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Length in bytes, with the padding on both sides.
    pub bytes: u64,
    /// Bytes of padding in front of the buffer, a multiple of [`BUFFER_ALIGN`].
    pub front: u64,
    /// Bytes of padding after it.
    pub behind: u64,
    /// Bytes that stay unmapped on both sides at least.
    guard: u64,
}

impl Range {
    /// Bytes without the padding.
    pub fn inner_bytes(&self) -> u64 {
        self.bytes - self.front - self.behind
    }

    /// Bytes of the part that holds the byte at an offset.
    fn part_bytes(&self, offset: u64) -> u64 {
        match offset.checked_sub(self.front) {
            None => self.front,
            Some(byte) if byte < self.inner_bytes() => self.inner_bytes(),
            Some(_) => self.behind,
        }
    }

    /// What holds an address of this range, and the byte's number in it: the buffer, or the padding on one
    /// side.
    pub fn part(&self, address: u64) -> (String, u64) {
        let offset = address - self.start;
        match offset.checked_sub(self.front) {
            None => (format!("padding in front of {}", self.name), offset),
            Some(byte) if byte < self.inner_bytes() => (self.name.clone(), byte),
            Some(byte) => (format!("padding behind {}", self.name), byte - self.inner_bytes()),
        }
    }
}

/// What lies around a buffer, in bytes on each side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Margin {
    /// Allocated; part of no buffer. In front it is rounded up to [`BUFFER_ALIGN`].
    pub padding: u64,
    /// Unmapped beyond the padding: any access there is a fault that names the buffer. At least
    /// [`BUFFER_ALIGN`] bytes are unmapped between two buffers anyway.
    pub guard: u64,
}

/// Name of the range that formed kernels keep their checkpoints in.
pub const CHECKPOINT_AREA: &str = "checkpoint area";

/// Every allocated range of global memory, sorted by address, not overlapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressMap {
    ranges: Vec<Range>,
}

impl AddressMap {
    /// Allocates `bytes` in `medium` after everything already there and returns the first address.
    pub fn allocate(&mut self, name: &str, bytes: u64, medium: Medium) -> u64 {
        self.allocate_within(name, bytes, Margin::default(), medium)
    }

    /// Allocates with a margin. Returns the address of the buffer, which lies after the padding.
    ///
    /// ```
    /// use durawarp_kernel::memory::{AddressMap, Margin, Medium};
    /// let mut map = AddressMap::default();
    /// map.allocate("a", 100, Medium::Dram);
    /// let b = map.allocate_within("b", 100, Margin { padding: 16, guard: 4096 }, Medium::Dram);
    /// assert!(map.containing(b - 16, b + 115).is_some());
    /// assert_eq!(map.describe(b - 4000), "4000 bytes before `b`");
    /// ```
    pub fn allocate_within(&mut self, name: &str, bytes: u64, margin: Margin, medium: Medium) -> u64 {
        let Margin { padding, guard } = margin;
        let front = padding.next_multiple_of(BUFFER_ALIGN);
        let at = self.ranges.partition_point(|r| match medium {
            Medium::Dram => Medium::of(r.start) == Medium::Dram,
            Medium::Nvm => true,
        });
        let start = match at.checked_sub(1).map(|i| &self.ranges[i]) {
            Some(last) if Medium::of(last.start) == medium => {
                // Twice the wider guard: whatever lies within a guard is nearer to its own buffer than to the
                // other.
                let gap = BUFFER_ALIGN.max(2 * guard.max(last.guard));
                (last.start + last.bytes + gap).next_multiple_of(BUFFER_ALIGN)
            }
            _ => medium.base(),
        };
        let (name, bytes) = (name.to_owned(), front + bytes + padding);
        self.ranges.insert(at, Range { name, start, bytes, front, behind: padding, guard });
        start + front
    }

    /// Maps `bytes` at an address of the caller's choice, where no range is, nor touches it.
    pub fn place(&mut self, name: &str, start: u64, bytes: u64) {
        let at = self.ranges.partition_point(|range| range.start < start);
        let name = name.to_owned();
        self.ranges.insert(at, Range { name, start, bytes, front: 0, behind: 0, guard: 0 });
    }

    /// The first address of the range of this name, and the first address after it.
    pub fn extent_of(&self, name: &str) -> Option<(u64, u64)> {
        let range = self.ranges.iter().find(|range| range.name == name)?;
        Some((range.start, range.start + range.bytes))
    }

    /// The range that holds all of `[first, last]` (inclusive addresses).
    pub fn containing(&self, first: u64, last: u64) -> Option<&Range> {
        let at = self.ranges.partition_point(|r| r.start <= first).checked_sub(1)?;
        let range = &self.ranges[at];
        (last < range.start + range.bytes).then_some(range)
    }

    /// The allocated range that starts nearest below `address`, for an error message.
    pub fn below(&self, address: u64) -> Option<&Range> {
        self.ranges.partition_point(|r| r.start <= address).checked_sub(1).map(|i| &self.ranges[i])
    }

    /// Where an address lies relative to what is allocated, for an error message.
    pub fn describe(&self, address: u64) -> String {
        if address < 4096 {
            return "a null pointer?".to_owned();
        }
        if address == OUTSIDE_SURFACE {
            return "coordinates outside the bounds of a surface".to_owned();
        }
        if address >> 44 == CODE_WINDOW >> 44 {
            return "functions have such addresses, but no code lies there".to_owned();
        }
        let at = self.ranges.partition_point(|r| r.start <= address);
        let below = at.checked_sub(1).map(|i| (&self.ranges[i], address - self.ranges[i].start));
        let above = self.ranges.get(at).map(|r| (r, r.start - address));
        match (below, above) {
            (Some((r, offset)), _) if offset < r.bytes => {
                let (part, byte) = r.part(address);
                format!("it starts {byte} bytes into `{part}`, which has {} bytes", r.part_bytes(offset))
            }
            (Some((r, offset)), above) if above.is_none_or(|(_, gap)| offset - r.bytes <= gap) => {
                let (past, bytes) = (offset - r.bytes + r.behind, r.inner_bytes());
                let padding = if r.behind > 0 { format!(" and {} of padding", r.behind) } else { String::new() };
                format!("{past} bytes past the end of `{}`, which has {bytes} bytes{padding}", r.name)
            }
            (_, Some((r, gap))) => format!("{} bytes before `{}`", gap + r.front, r.name),
            _ => "nothing is allocated".to_owned(),
        }
    }

    /// Every range, by address.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }
}

/// The space that a generic address lies in, and the address within that space.
#[inline]
pub fn resolve_generic(address: u64) -> (Space, u64) {
    match address >> 44 {
        0 => (Space::Global, address),
        1 => (Space::Shared, address - SHARED_WINDOW),
        2 => (Space::Local, address - LOCAL_WINDOW),
        3 => (Space::Const, address - CONST_WINDOW),
        _ => (Space::Global, address),
    }
}

/// The bytes of every range of an [`AddressMap`].
///
/// # Example: one buffer
/// ```
/// use durawarp_kernel::memory::{AddressMap, FlatMemory, Medium};
/// let mut map = AddressMap::default();
/// let a = map.allocate("a", 16, Medium::Dram);
/// let mut memory = FlatMemory::new(&map);
/// memory.write_u32s(a, &[1, 2, 3, 4]).unwrap();
/// assert_eq!(memory.read_u32s(a + 4, 2).unwrap(), [2, 3]);
/// assert!(memory.slice(a, 17).is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlatMemory {
    chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    start: u64,
    bytes: Bytes,
}

/// The bytes of a range. Initial contents are shared until the first write.
#[derive(Debug, Clone)]
enum Bytes {
    /// So many zeros that were never lent to be written, once somebody reads them.
    Blank(usize, OnceLock<Vec<u8>>),
    Own(Vec<u8>),
    Shared(Arc<Vec<u8>>),
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Bytes::Blank(length, _) => *length,
            Bytes::Own(bytes) => bytes.len(),
            Bytes::Shared(bytes) => bytes.len(),
        }
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Blank(length, zeros) => zeros.get_or_init(|| vec![0; *length]),
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }

    #[inline]
    fn to_mut(&mut self) -> &mut Vec<u8> {
        match self {
            Bytes::Own(_) => {}
            Bytes::Blank(length, zeros) => *self = Bytes::Own(zeros.take().unwrap_or_else(|| vec![0; *length])),
            Bytes::Shared(bytes) => *self = Bytes::Own(bytes.to_vec()),
        }
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Blank(..) | Bytes::Shared(_) => unreachable!("just made its own"),
        }
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Bytes {}

/// An access to memory that is not allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmapped {
    /// First address.
    pub address: u64,
    pub bytes: u64,
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} are not all allocated", self.bytes, self.address)
    }
}

impl std::error::Error for Unmapped {}

macro_rules! typed {
    ($read:ident, $write:ident, $type:ty) => {
        /// Values from an address on, little-endian.
        ///
        /// # Errors
        /// When they are not all allocated.
        pub fn $read(&self, address: u64, count: usize) -> Result<Vec<$type>, Unmapped> {
            const SIZE: usize = size_of::<$type>();
            let bytes = self.read(address, count * SIZE)?;
            Ok(bytes.chunks_exact(SIZE).map(|b| <$type>::from_le_bytes(b.try_into().expect("whole"))).collect())
        }

        /// Writes values from an address on, little-endian.
        ///
        /// # Errors
        /// When they are not all allocated.
        pub fn $write(&mut self, address: u64, values: &[$type]) -> Result<(), Unmapped> {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            self.write(address, &bytes)
        }
    };
}

impl FlatMemory {
    /// Zeros at every allocated address.
    pub fn new(map: &AddressMap) -> Self {
        FlatMemory::shared(map, |_| None)
    }

    /// Each range holds what `content` has for its first address, shared until the first write to it, or
    /// zeros.
    ///
    /// # Panics
    /// When a content has not the length of its range.
    pub fn shared(map: &AddressMap, mut content: impl FnMut(u64) -> Option<Arc<Vec<u8>>>) -> Self {
        let chunk = |range: &Range| {
            let bytes = match content(range.start) {
                Some(bytes) => Bytes::Shared(bytes),
                None => Bytes::Blank(range.bytes as usize, OnceLock::new()),
            };
            assert_eq!(bytes.len() as u64, range.bytes, "the content of `{}`", range.name);
            Chunk { start: range.start, bytes }
        };
        FlatMemory { chunks: map.ranges().iter().map(chunk).collect() }
    }

    /// The chunk that may hold an address.
    #[inline]
    fn at(&self, address: u64) -> Option<usize> {
        self.chunks.partition_point(|c| c.start <= address).checked_sub(1)
    }

    /// Whether an address lies in a range of zeros that nobody has written to: no memory of the host is taken
    /// by it.
    pub fn is_blank(&self, address: u64) -> bool {
        self.chunk_of(address).is_some_and(|chunk| matches!(chunk.bytes, Bytes::Blank(..)))
    }

    /// Whether there is memory at an address: a range may have been left out.
    pub fn is_there(&self, address: u64) -> bool {
        self.chunk_of(address).is_some()
    }

    fn chunk_of(&self, address: u64) -> Option<&Chunk> {
        let chunk = &self.chunks[self.at(address)?];
        (address - chunk.start < chunk.bytes.len() as u64).then_some(chunk)
    }

    /// Bytes of one range.
    #[inline]
    pub fn slice(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let chunk = &self.chunks[self.at(address)?];
        let from = (address - chunk.start) as usize;
        chunk.bytes.as_slice().get(from..from.checked_add(bytes)?)
    }

    /// Bytes of one range, to be written.
    #[inline]
    pub fn slice_mut(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let at = self.at(address)?;
        let chunk = &mut self.chunks[at];
        let from = (address - chunk.start) as usize;
        chunk.bytes.to_mut().get_mut(from..from.checked_add(bytes)?)
    }

    /// Bytes from an address on.
    ///
    /// # Errors
    /// When they are not all in one range.
    #[inline]
    pub fn read(&self, address: u64, bytes: usize) -> Result<&[u8], Unmapped> {
        self.slice(address, bytes).ok_or(Unmapped { address, bytes: bytes as u64 })
    }

    /// Writes bytes from an address on.
    ///
    /// # Errors
    /// When they are not all in one range.
    #[inline]
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Unmapped> {
        let unmapped = Unmapped { address, bytes: data.len() as u64 };
        self.slice_mut(address, data.len()).ok_or(unmapped)?.copy_from_slice(data);
        Ok(())
    }

    typed!(read_u8s, write_u8s, u8);
    typed!(read_u16s, write_u16s, u16);
    typed!(read_u32s, write_u32s, u32);
    typed!(read_i32s, write_i32s, i32);
    typed!(read_u64s, write_u64s, u64);
    typed!(read_f32s, write_f32s, f32);
    typed!(read_f64s, write_f64s, f64);

    /// Puts these bytes where nothing is allocated, or in place of the range that starts there. They must not
    /// overlap another range.
    pub fn place(&mut self, start: u64, bytes: Vec<u8>) {
        let at = self.chunks.partition_point(|c| c.start < start);
        let chunk = Chunk { start, bytes: Bytes::Own(bytes) };
        match self.chunks.get_mut(at) {
            Some(there) if there.start == start => *there = chunk,
            _ => self.chunks.insert(at, chunk),
        }
    }

    /// Frees the ranges for whose first address `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        self.chunks.retain(|chunk| keep(chunk.start));
    }

    /// Ranges and their bytes, by address, to be written.
    pub fn ranges_mut(&mut self) -> impl Iterator<Item = (u64, &mut [u8])> {
        self.chunks.iter_mut().map(|c| (c.start, c.bytes.to_mut().as_mut_slice()))
    }

    /// The ranges with these first addresses, to be written; all others stay as they are, shared ones too.
    pub fn some_ranges_mut(&mut self, starts: &[u64]) -> Vec<(u64, &mut [u8])> {
        let wanted = self.chunks.iter_mut().filter(|c| starts.contains(&c.start));
        wanted.map(|c| (c.start, c.bytes.to_mut().as_mut_slice())).collect()
    }

    /// Ranges that something was put into and their bytes, by address, each freed when its taker is done with
    /// it.
    pub fn into_ranges(self) -> impl Iterator<Item = (u64, Arc<Vec<u8>>)> {
        self.chunks.into_iter().filter_map(|c| match c.bytes {
            Bytes::Blank(..) => None,
            Bytes::Own(bytes) => Some((c.start, Arc::new(bytes))),
            Bytes::Shared(bytes) => Some((c.start, bytes)),
        })
    }

    /// Ranges by address, and how long each is.
    pub fn extents(&self) -> impl Iterator<Item = (u64, usize)> {
        self.chunks.iter().map(|c| (c.start, c.bytes.len()))
    }

    /// Ranges by address; their bytes, or their length where they are zeros that nobody has touched.
    pub fn contents(&self) -> impl Iterator<Item = (u64, Result<&[u8], usize>)> {
        self.chunks.iter().map(|c| match &c.bytes {
            Bytes::Blank(length, _) => (c.start, Err(*length)),
            bytes => (c.start, Ok(bytes.as_slice())),
        })
    }

    /// FNV-1a over the bytes of every range, eight at a time: 1.5 ns a word. Each word is folded into the
    /// digest of those before it, a zero as well, as no shorter way leads over many steps of a multiplication
    /// modulo 2^64 and a rotation.
    pub fn digest(&self) -> u64 {
        let fold = |digest: u64, word: u64| (digest ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23);
        let mut digest = 0xcbf2_9ce4_8422_2325u64;
        for (start, content) in self.contents() {
            digest = fold(digest, start);
            let bytes = match content {
                Ok(bytes) => bytes,
                Err(zeros) => {
                    digest = (0..zeros.div_ceil(8)).fold(digest, |digest, _| fold(digest, 0));
                    continue;
                }
            };
            let (blocks, rest) = bytes.as_chunks::<64>();
            for block in blocks {
                let words = block.as_chunks().0.iter();
                digest = words.fold(digest, |digest, word| fold(digest, u64::from_le_bytes(*word)));
            }
            for rest in rest.chunks(8) {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                digest = fold(digest, u64::from_le_bytes(word));
            }
        }
        digest
    }

    /// Ranges and their bytes, by address.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.chunks.iter().map(|c| (c.start, c.bytes.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_blank_until_somebody_writes_to_them() {
        let mut map = AddressMap::default();
        let [a, b] = ["a", "b"].map(|name| map.allocate(name, 16, Medium::Dram));
        let mut memory = FlatMemory::new(&map);
        assert_eq!(memory.read_u32s(a, 4).unwrap(), [0; 4]);
        assert!(memory.is_blank(a) && memory.is_blank(b), "what was read is as it was");
        memory.write_u32s(a, &[0]).unwrap();
        assert!(!memory.is_blank(a) && memory.is_blank(b));
        assert!(memory.is_there(b + 15) && !memory.is_there(b + 16) && !memory.is_blank(b + 16));
        let filled = FlatMemory::shared(&map, |start| (start == a).then(|| Arc::new(vec![0; 16])));
        assert!(!filled.is_blank(a) && filled.is_blank(b));
    }

    #[test]
    fn a_digest_is_of_all_words_and_zeros_count_whether_they_were_written_or_not() {
        let mut map = AddressMap::default();
        let [a, _] = ["a", "b"].map(|name| map.allocate(name, 203, Medium::Nvm));
        let mut memory = FlatMemory::new(&map);
        let word_by_word = |memory: &FlatMemory| {
            let words = memory.ranges().flat_map(|(start, bytes)| {
                let of = |word: &[u8]| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                std::iter::once(start).chain(bytes.chunks(8).map(of)).collect::<Vec<_>>()
            });
            words.fold(0xcbf2_9ce4_8422_2325, |digest: u64, word| {
                (digest ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23)
            })
        };
        let blank = memory.digest();
        assert_eq!(blank, word_by_word(&memory));
        memory.write(a, &[0; 203]).unwrap();
        assert_eq!(memory.digest(), blank);
        memory.write(a, &(0..203).collect::<Vec<u8>>()).unwrap();
        assert_eq!(memory.digest(), word_by_word(&memory));
        assert_ne!(memory.digest(), blank);
    }

    #[test]
    fn an_address_is_described_by_the_nearest_buffer() {
        let mut map = AddressMap::default();
        let a = map.allocate("a", 100, Medium::Dram);
        let b = map.allocate("b", 100, Medium::Dram);
        assert_eq!(map.describe(a + 101), "1 bytes past the end of `a`, which has 100 bytes");
        assert_eq!(map.describe(b - 3), "3 bytes before `b`");
        assert_eq!(map.describe(b + 98), "it starts 98 bytes into `b`, which has 100 bytes");
        assert_eq!(map.describe(8), "a null pointer?");
        assert_eq!(map.describe(CODE_WINDOW + 16), "functions have such addresses, but no code lies there");
    }

    #[test]
    fn whatever_lies_within_a_guard_is_nearest_to_its_own_buffer() {
        for (first, second) in [(0, 5000), (5000, 0), (5000, 5000)] {
            let mut map = AddressMap::default();
            let margin = |guard| Margin { padding: 0, guard };
            let a = map.allocate_within("a", 100, margin(first), Medium::Dram);
            let b = map.allocate_within("b", 100, margin(second), Medium::Dram);
            assert!(map.containing(a + 100, a + 100).is_none() && map.containing(b - 1, b - 1).is_none());
            assert_eq!(map.describe(a + 5000), "4900 bytes past the end of `a`, which has 100 bytes");
            assert_eq!(map.describe(b - 5000), "5000 bytes before `b`");
        }
    }

    #[test]
    fn padding_is_allocated_and_told_from_its_buffer() {
        let mut map = AddressMap::default();
        let a = map.allocate_within("a", 100, Margin { padding: 300, guard: 0 }, Medium::Dram);
        let part = |address| map.containing(address, address).map(|range| range.part(address));
        // In front it fills whole multiples of 256 bytes.
        assert_eq!((a - DRAM_BASE, part(a - 512)), (512, Some(("padding in front of a".to_owned(), 0))));
        assert_eq!([part(a), part(a + 99)], [0, 99].map(|byte| Some(("a".to_owned(), byte))));
        assert_eq!(part(a + 100 + 299), Some(("padding behind a".to_owned(), 299)));
        assert_eq!(part(a + 400), None);
        assert_eq!(map.describe(a + 398), "it starts 298 bytes into `padding behind a`, which has 300 bytes");
        assert_eq!(map.describe(a + 401), "301 bytes past the end of `a`, which has 100 bytes and 300 of padding");
    }

    #[test]
    fn a_shared_range_becomes_its_own_when_written() {
        let mut map = AddressMap::default();
        let (a, b) = (map.allocate("a", 4, Medium::Dram), map.allocate("b", 8, Medium::Dram));
        let content = Arc::new(vec![1, 2, 3, 4]);
        let image = || FlatMemory::shared(&map, |start| (start == a).then(|| content.clone()));
        let (mut one, other) = (image(), image());
        one.write(a + 1, &[9]).unwrap();
        assert_eq!((one.read(a, 4).unwrap(), other.read(a, 4).unwrap()), (&[1, 9, 3, 4][..], &[1, 2, 3, 4][..]));
        assert_eq!(other.read(b, 8).unwrap(), [0; 8]);
        assert_ne!(one, other);
    }

    #[test]
    fn generic_addresses_fall_into_windows() {
        assert_eq!(resolve_generic(NVM_BASE + 5), (Space::Global, NVM_BASE + 5));
        assert_eq!(resolve_generic(SHARED_WINDOW + 5), (Space::Shared, 5));
        assert_eq!(resolve_generic(LOCAL_WINDOW), (Space::Local, 0));
        assert_eq!(resolve_generic(CONST_WINDOW + 1), (Space::Const, 1));
    }
}
