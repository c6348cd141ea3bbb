//! The memory image of a node: divided into the controllers' shares before a run, put together again after
//! it.
//!
//! | part of a medium, from its base | holds |
//! |---|---|
//! | image | the program's buffers |
//! | local memory (DRAM) | of all threads that fit, SM by SM, after the image at the next 4 KiB |
//! | reserved lines (DRAM) | 64 a slice, under a scheme that moves bytes of its own |
//!
//! Invariant: what [`Assembly::collect`] fills in and what [`Assembly::into_memory`] returns are the same
//! bytes.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use durawarp_kernel::memory::{DRAM_BASE, FlatMemory, Medium};
use durawarp_machine::MachineSpec;
use durawarp_machine::address::{Interleave, offset_in_medium};
use durawarp_machine::coherence::CPU_LINE_BYTES;
use durawarp_machine::contents::{Contents, Origin};
use durawarp_machine::core::Core;
use durawarp_machine::home::HomeSlice;
use durawarp_machine::image::Image;
use durawarp_machine::l2::L2Slice;
use durawarp_machine::memory_controller::MemoryController;

use super::assembly::{AssembledNode, Assembly};

/// Lines of DRAM that each slice's handler may move bytes to.
const RESERVED_LINES: u64 = 64;

/// Bytes that a machine which is taken apart looks at, and frees, at a time.
const STRIPE_BYTES: u64 = 1 << 20;

/// Bytes of a page of what was touched.
pub const TOUCHED_BYTES: u64 = 4096;

/// What lies where in a machine's memory.
#[derive(Debug)]
pub(super) struct MemoryMap {
    map: Interleave,
    /// The channels' shares of DRAM and NVM.
    pub(super) shares: Vec<[Image; 2]>,
    /// Where local memory begins.
    local: u64,
    /// Its bytes for the threads of an SM.
    local_per_sm: u64,
    /// Its bytes for a thread.
    local_per_thread: u32,
    reserved: Vec<u64>,
}

impl MemoryMap {
    /// Lays out a machine's memory. The controllers share the image's bytes until they write to them.
    /// `local_bytes` are a thread's.
    pub(super) fn cut(
        memory: FlatMemory,
        spec: &MachineSpec,
        map: Interleave,
        local_bytes: u32,
        reserves: bool,
    ) -> MemoryMap {
        let local_per_thread = local_bytes.next_multiple_of(4);
        let local_per_sm = u64::from(spec.sm.warps * spec.sm.warp_size) * u64::from(local_per_thread);
        let (mut extents, local) = extents(&memory, local_per_sm * u64::from(spec.sm.count));
        let reserved = if reserves { reserve(&mut extents, spec, map) } else { Vec::new() };
        let shares = share(Contents::new(map, memory.into_ranges()), map, extents);
        MemoryMap { map, shares, local, local_per_sm, local_per_thread, reserved }
    }

    /// Where the local memory of an SM's threads lies, and bytes a thread.
    pub(super) fn local_of(&self, sm: u16) -> (u64, u32) {
        (self.local + self.local_per_sm * u64::from(sm), self.local_per_thread)
    }

    /// The lines that a slice's handler may move bytes to.
    pub(super) fn reserved_of(&self, slice: u16) -> Vec<u64> {
        let own = |&line: &u64| self.map.slice_of(line) == u32::from(slice);
        self.reserved.iter().copied().filter(own).collect()
    }
}

/// Bytes of each medium that the image and the local memory need, from its base.
fn extents(memory: &FlatMemory, local_bytes: u64) -> ([u64; 2], u64) {
    let mut extents = [0u64; 2];
    for (start, bytes) in memory.extents() {
        let end = offset_in_medium(start) + bytes as u64;
        let extent = &mut extents[Medium::of(start) as usize];
        *extent = end.max(*extent);
    }
    let local = DRAM_BASE + extents[Medium::Dram as usize].next_multiple_of(4096);
    if local_bytes > 0 {
        extents[Medium::Dram as usize] = local - DRAM_BASE + local_bytes;
    }
    (extents, local)
}

/// Reserves lines of every slice after everything that DRAM holds.
fn reserve(extents: &mut [u64; 2], spec: &MachineSpec, map: Interleave) -> Vec<u64> {
    let extent = &mut extents[Medium::Dram as usize];
    let line_bytes = u64::from(spec.l2.line_bytes);
    // Whole rounds over all slices, so that each has its lines whatever the mapping.
    let round = map.chunk_bytes() * u64::from(map.slices());
    let start = extent.next_multiple_of(round.next_power_of_two().max(4096));
    let bytes = (RESERVED_LINES * line_bytes * u64::from(map.slices())).next_multiple_of(round);
    *extent = start + bytes;
    (0..bytes / line_bytes).map(|line| DRAM_BASE + start + line * line_bytes).collect()
}

/// Every contiguous piece of an image on one channel: address, length.
fn pieces(start: u64, bytes: u64, chunk: u64) -> impl Iterator<Item = (u64, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < bytes).then(|| {
            let address = start + at;
            let length = (chunk - offset_in_medium(address) % chunk).min(bytes - at);
            at += length;
            (address, length as usize)
        })
    })
}

/// Zeros of the channels' shares of DRAM and NVM.
fn zeros(map: Interleave, extents: [u64; 2]) -> Vec<[Image; 2]> {
    let share = extents.map(|bytes| map.channel_share(bytes) as usize);
    let channels = map.slices() / map.slices_per_channel();
    (0..channels).map(|_| share.map(Image::new)).collect()
}

/// The channels' shares of contents, which stay where they are.
fn share(contents: Contents, map: Interleave, extents: [u64; 2]) -> Vec<[Image; 2]> {
    let (mut shares, contents) = (zeros(map, extents), Arc::new(contents));
    for medium in [Medium::Dram, Medium::Nvm] {
        for (channel, images) in (0..).zip(&mut shares) {
            images[medium as usize].begin(Origin::new(contents.clone(), medium, channel));
        }
    }
    shares
}

/// Cuts ranges of bytes into the channels' shares of DRAM and NVM, range by range. What no range has is zeros
/// and costs nothing.
pub(super) fn cut<'a>(
    ranges: impl Iterator<Item = (u64, &'a [u8])>,
    map: Interleave,
    extents: [u64; 2],
) -> Vec<[Image; 2]> {
    let mut shares = zeros(map, extents);
    for (start, bytes) in ranges {
        for (address, length) in pieces(start, bytes.len() as u64, map.chunk_bytes()) {
            let channel = map.channel_of(address);
            let from = (address - start) as usize;
            let image = &mut shares[channel][Medium::of(address) as usize];
            image.write(map.in_channel(address) as usize, &bytes[from..from + length]);
        }
    }
    shares
}

/// Puts bytes of dirty lines over what memory holds.
fn put_dirty(memory: &mut FlatMemory, line: u64, bytes: &[u8], dirty: u128) {
    for (i, &byte) in bytes.iter().enumerate().filter(|(i, _)| dirty >> i & 1 == 1) {
        // Bytes outside every allocation (local memory) are no result.
        if let Some(to) = memory.slice_mut(line + i as u64, 1) {
            to[0] = byte;
        }
    }
}

/// Brings a piece of memory, as it was before the first step, to what an image has there, from byte `from`
/// on. What was never written stays shared. `now` is as long as the piece; what was in it is lost.
fn bring_up(memory: &mut FlatMemory, address: u64, image: &Image, from: usize, now: &mut [u8]) {
    if memory.slice(address, now.len()).is_some_and(|bytes| image.lies_at(from, bytes)) {
        return;
    }
    image.read(from, now);
    if memory.slice(address, now.len()) != Some(&*now) && memory.write(address, now).is_err() {
        unreachable!("{address:#x} is in a range");
    }
}

/// Whole pages that ranges of bytes lie in, each once, by address.
fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, bytes) in ranges {
        let (start, end) = (start & !(TOUCHED_BYTES - 1), (start + bytes).next_multiple_of(TOUCHED_BYTES));
        match joined.last_mut() {
            Some((first, bytes)) if start <= *first + *bytes => *bytes = (*bytes).max(end - *first),
            _ => joined.push((start, end - start)),
        }
    }
    joined
}

/// Pieces of a range of which a channel may have something other than zeros: address, length.
fn touched<'a>(
    images: &'a [[Image; 2]],
    map: Interleave,
    start: u64,
    bytes: u64,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    let images = move |medium: Medium| images.iter().map(move |images| &images[medium as usize]);
    pieces(start, bytes, STRIPE_BYTES).filter_map(move |(address, length)| {
        let (from, to) = map.in_channels(address, length as u64);
        let zeros = images(Medium::of(address)).all(|image| image.is_zero(from as usize, to as usize));
        (!zeros).then_some((address, length as u64))
    })
}

/// What memory of a node has, when its machine is taken apart.
#[derive(Debug)]
pub struct NodeMemory {
    /// By channel, and by medium.
    images: Vec<[Image; 2]>,
    /// Lines that lie over it: address, bytes, which of them.
    dirty: Vec<(u64, Vec<u8>, u128)>,
    map: Interleave,
}

impl NodeMemory {
    /// Brings `memory`, as it was before the first step, to what [`Assembly::collect`] would fill in. Bytes
    /// are freed on the way, and what has not changed stays shared. What was zeros and stayed so costs
    /// nothing. Also tells where bytes other than zero may lie: first addresses and bytes, in their order, of
    /// whole pages of [`TOUCHED_BYTES`] counted from address 0.
    pub fn into_touched(self, mut memory: FlatMemory) -> (FlatMemory, Vec<(u64, u64)>) {
        let NodeMemory { mut images, dirty, map } = self;
        let mut now = vec![0; map.chunk_bytes() as usize];
        // Ranges that are what the channels began with; where no channel has written, nothing is to be done.
        let contents = |medium: Medium| images.first().and_then(|images| images[medium as usize].contents());
        let ranges = memory.contents().map(|(start, bytes)| {
            let begun = contents(Medium::of(start)).is_some_and(|contents| contents.has(start, bytes));
            (start, bytes.map_or_else(|zeros| zeros, <[u8]>::len) as u64, begun)
        });
        let stripes = ranges.flat_map(|(start, bytes, begun)| {
            touched(&images, map, start, bytes).map(move |(address, length)| (address, length, begun))
        });
        let stripes: Vec<(u64, u64, bool)> = stripes.collect();
        let mut touched: Vec<(u64, u64)> = stripes.iter().map(|(start, bytes, _)| (*start, *bytes)).collect();
        for (start, bytes, begun) in stripes {
            let medium = Medium::of(start) as usize;
            let (from, to) = map.in_channels(start, bytes);
            if begun && !images.iter().any(|images| images[medium].is_written(from as usize, to as usize)) {
                continue;
            }
            for (address, length) in pieces(start, bytes, map.chunk_bytes()) {
                let (channel, from, now) = (map.channel_of(address), map.in_channel(address), &mut now[..length]);
                let image = &images[channel][medium];
                bring_up(&mut memory, address, image, from as usize, now);
            }
            // Stripes come by address: no later one has bytes below its end.
            let (below, _) = map.in_channels(start + bytes, 1);
            images.iter_mut().for_each(|image| image[medium].forget(from as usize, below as usize));
        }
        for (line, bytes, mask) in &dirty {
            put_dirty(&mut memory, *line, bytes, *mask);
        }
        touched.extend(dirty.iter().map(|(line, bytes, _)| (*line, bytes.len() as u64)));
        (memory, joined(touched))
    }
}

impl Assembly {
    /// Lines of which caches or handlers of a node hold bytes that its memory lacks: address, bytes, which of
    /// them. A later one lies over those before it: controllers' DRAM caches, their handlers, slices, cores.
    fn dirty_lines(&self, node: &AssembledNode) -> impl Iterator<Item = (u64, Cow<'_, [u8]>, u128)> {
        let controllers = || self.components_of::<MemoryController>(node);
        let cached = controllers().flat_map(MemoryController::dirty_lines);
        let cached = cached.map(|(line, data)| (line, Cow::<[u8]>::Owned(data.bytes.to_vec()), data.mask));
        let held = controllers().flat_map(MemoryController::held_lines);
        let held = held.map(|(line, bytes, held)| (line, Cow::<[u8]>::Owned(bytes.to_vec()), held));
        let slices = self.components_of(node).flat_map(|slice: &L2Slice| slice.dirty_lines());
        let slices = slices.map(|(line, bytes, dirty)| (line, Cow::Borrowed(&bytes[..]), dirty));
        let homes = self.components_of(node).flat_map(|home: &HomeSlice| home.dirty_lines());
        let cores = self.components_of(node).flat_map(|core: &Core| core.dirty_lines());
        let of_cpus = homes.chain(cores).map(|(line, bytes, dirty)| (line, Cow::Borrowed(bytes), dirty));
        cached.chain(held).chain(slices).chain(of_cpus)
    }

    /// Fills `memory` with what a read of every address would return now in the first node: the controllers'
    /// bytes under the dirty bytes of caches.
    pub fn collect(&self, memory: &mut FlatMemory) {
        let node = &self.nodes[0];
        let controllers: Vec<&MemoryController> = self.components_of(node).collect();
        let map = node.roster.map;
        for (start, bytes) in memory.ranges_mut() {
            for (address, length) in pieces(start, bytes.len() as u64, map.chunk_bytes()) {
                let channel = map.channel_of(address);
                let to = (address - start) as usize;
                let image = controllers[channel].image(Medium::of(address));
                image.read(map.in_channel(address) as usize, &mut bytes[to..to + length]);
            }
        }
        for (line, bytes, dirty) in self.dirty_lines(node) {
            put_dirty(memory, line, &bytes, dirty);
        }
    }

    /// Brings `memory`, as it was before the first step, to what [`Assembly::collect`] would fill in. What
    /// was never written stays shared, and costs a look.
    pub fn bring_up(&self, memory: &mut FlatMemory) {
        let node = &self.nodes[0];
        let controllers: Vec<&MemoryController> = self.components_of(node).collect();
        let map = node.roster.map;
        let mut now = vec![0; map.chunk_bytes() as usize];
        let ranges: Vec<(u64, usize)> = memory.extents().collect();
        for (start, bytes) in ranges {
            for (address, length) in pieces(start, bytes as u64, map.chunk_bytes()) {
                let image = controllers[map.channel_of(address)].image(Medium::of(address));
                let (from, now) = (map.in_channel(address) as usize, &mut now[..length]);
                bring_up(memory, address, image, from, now);
            }
        }
        for (line, bytes, dirty) in self.dirty_lines(node) {
            put_dirty(memory, line, &bytes, dirty);
        }
    }

    /// Takes a machine of one node apart and brings `memory`, as it was before the first step, to what
    /// [`Assembly::collect`] would fill in: [`NodeMemory::into_touched`].
    pub fn into_memory(self, memory: FlatMemory) -> FlatMemory {
        self.into_memories().swap_remove(0).into_touched(memory).0
    }

    /// Takes the machine apart: the memory of each node.
    pub fn into_memories(self) -> Vec<NodeMemory> {
        let owned = |(line, bytes, dirty): (u64, Cow<'_, [u8]>, u128)| (line, bytes.into_owned(), dirty);
        let of = |node: &AssembledNode| NodeMemory {
            images: Vec::new(),
            dirty: self.dirty_lines(node).map(owned).collect(),
            map: node.roster.map,
        };
        let mut memories: Vec<NodeMemory> = self.nodes.iter().map(of).collect();
        let mut components: Vec<Option<Box<dyn Any>>> = self
            .simulation
            .into_components()
            .into_iter()
            .map(|(_, component)| Some(component as Box<dyn Any>))
            .collect();
        for (node, memory) in self.nodes.iter().zip(&mut memories) {
            let controllers = node.ids.values().filter_map(|id| {
                let component = &mut components[id.0 as usize];
                component.take_if(|component| component.is::<MemoryController>())?.downcast::<MemoryController>().ok()
            });
            memory.images = controllers.map(|controller| controller.into_images()).collect();
        }
        memories
    }
}

/// What a read of any address of a machine of cores would return between two events.
#[derive(Debug)]
pub struct Peek<'a> {
    controllers: Vec<&'a MemoryController>,
    map: Interleave,
    /// Lines that lie over memory: bytes, and which of them.
    lines: BTreeMap<u64, (LineBytes, u128)>,
}

type LineBytes = [u8; CPU_LINE_BYTES as usize];

impl Peek<'_> {
    /// Up to 8 bytes at a physical address, little-endian.
    pub fn word(&self, address: u64, bytes: u8) -> u64 {
        let mut word = [0; 8];
        let bytes = &mut word[..usize::from(bytes)];
        for (start, length) in pieces(address, bytes.len() as u64, self.map.chunk_bytes()) {
            let image = self.controllers[self.map.channel_of(start)].image(Medium::of(start));
            let to = (start - address) as usize;
            image.read(self.map.in_channel(start) as usize, &mut bytes[to..to + length]);
        }
        for (at, byte) in (address..).zip(bytes) {
            let line = at & !(CPU_LINE_BYTES - 1);
            if let Some((held, mask)) = self.lines.get(&line)
                && mask >> (at - line) & 1 == 1
            {
                *byte = held[(at - line) as usize];
            }
        }
        u64::from_le_bytes(word)
    }
}

impl Assembly {
    /// What a read of any address of a server's memory would return now.
    pub fn peek(&self, server: usize) -> Peek<'_> {
        let node = &self.nodes[server];
        let mut lines: BTreeMap<u64, (LineBytes, u128)> = BTreeMap::new();
        for (line, bytes, dirty) in self.dirty_lines(node) {
            let (held, mask) = lines.entry(line).or_insert(([0; CPU_LINE_BYTES as usize], 0));
            let of_line = held.iter_mut().zip(bytes.iter()).enumerate().filter(|(at, _)| dirty >> at & 1 == 1);
            of_line.for_each(|(_, (held, byte))| *held = *byte);
            *mask |= dirty;
        }
        Peek { controllers: self.components_of(node).collect(), map: node.roster.map, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::memory::AddressMap;

    #[test]
    fn what_no_channel_wrote_to_stays_shared_and_all_else_is_as_the_channels_have_it() {
        let map = Interleave::new(6, 3, 256);
        let mut addresses = AddressMap::default();
        let mut allocate = |name, bytes, medium| addresses.allocate(name, bytes, medium);
        let [quiet, written] = ["quiet", "written"].map(|name| allocate(name, 5_000_003, Medium::Dram));
        let blank = allocate("blank", 4_000_000, Medium::Nvm);
        let content =
            |seed: usize| Arc::new((0..5_000_003).map(|at: usize| ((at * seed) >> 9) as u8).collect::<Vec<_>>());
        let (a, b, others) = (content(3), content(5), content(7));
        let begun = |quiet_has: &Arc<Vec<u8>>| {
            let kept = [(quiet, quiet_has.clone()), (written, b.clone())];
            FlatMemory::shared(&addresses, |start| {
                kept.iter().find(|(at, _)| *at == start).map(|(_, bytes)| bytes.clone())
            })
        };
        // Ends of ranges, a byte each in few of their stripes.
        let writes = [written, written + 5_000_002, written + 2_500_000, blank + 3_000_001];
        let contents = |memory: &FlatMemory| Contents::new(map, memory.clone().into_ranges());
        for has_other_contents in [false, true] {
            let memory = begun(&a);
            let mut images = share(contents(&memory), map, extents(&memory, 0).0);
            let now = begun(if has_other_contents { &others } else { &a });
            if has_other_contents {
                let contents = Arc::new(contents(&now));
                images.iter_mut().flatten().for_each(|image| image.replace_all(&contents));
            }
            let mut expected = now;
            for address in writes {
                let image = &mut images[map.channel_of(address)][Medium::of(address) as usize];
                image.write(map.in_channel(address) as usize, &[0xee]);
                expected.write(address, &[0xee]).unwrap();
            }
            let (found, _) = NodeMemory { images, dirty: Vec::new(), map }.into_touched(memory);
            assert!(found == expected, "other contents: {has_other_contents}");
            let is_shared = std::ptr::eq(found.slice(quiet, 5_000_003).unwrap(), &a[..]);
            assert_eq!(is_shared, !has_other_contents);
        }
    }

    #[test]
    fn ranges_that_share_a_page_or_meet_are_one() {
        const P: u64 = TOUCHED_BYTES;
        let ranges = vec![(9 * P + 64, 64), (P, P), (2 * P, 64), (64, 64), (9 * P, 64), (4 * P - 64, 128)];
        assert_eq!(joined(ranges), [(0, 5 * P), (9 * P, P)]);
    }
}
