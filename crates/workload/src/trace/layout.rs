//! Where the memory of a traced program lies in the machine.
//!
//! A trace has virtual addresses of a real GPU. Those that it touches are mapped, and the rest is not:
//! windows of 2 MiB, the pages of a GPU's memory, in the order of addresses, neighbours side by side. The low
//! 21 bits of an address stay, so that lines, sectors, channels and rows are as in the traced program as far
//! as a page goes. Ranges that labels call persistent go to persistent memory, each by itself.
//!
//! Not modelled: the page tables of the traced GPU, of which a trace says nothing.

use std::collections::BTreeMap;

use super::labels::Labels;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::host::GlobalRange;
use durawarp_kernel::memory::{AddressMap, Medium, NVM_BASE, SHARED_WINDOW};

/// Bytes of a page of a GPU's memory.
const WINDOW_BYTES: u64 = 2 << 20;

/// What is touched of a window is mapped in whole multiples of this. Chosen.
const GRAIN_BYTES: u64 = 4096;

/// What a trace touches of global memory: the first address of each window, and the first after its last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TouchedMemory {
    windows: BTreeMap<u64, (u64, u64)>,
    /// The window that was touched last, with what is not yet in the map.
    last: Option<(u64, u64, u64)>,
}

impl TouchedMemory {
    /// A lane touches bytes, which are in one window.
    #[inline]
    pub(crate) fn touch(&mut self, address: u64, bytes: u64) {
        let (window, end) = (address / WINDOW_BYTES, address.saturating_add(bytes));
        match &mut self.last {
            Some((at, low, high)) if *at == window => {
                *low = address.min(*low);
                *high = end.max(*high);
            }
            _ => {
                self.settle();
                self.last = Some((window, address, end));
            }
        }
    }

    /// The host touches a range.
    pub(crate) fn touch_range(&mut self, range: GlobalRange) {
        let (mut at, end) = (range.start, range.start + range.bytes);
        while at < end {
            let next = (at / WINDOW_BYTES + 1).saturating_mul(WINDOW_BYTES).min(end);
            self.touch(at, next - at);
            at = next;
        }
    }

    /// Takes in what another one touched.
    pub(crate) fn merge(&mut self, other: &TouchedMemory) {
        for &(low, high) in other.windows.values() {
            self.touch(low, high - low);
        }
        self.settle();
    }

    /// Moves what was touched last into the map.
    pub(crate) fn settle(&mut self) {
        if let Some((window, low, high)) = self.last.take() {
            let known = self.windows.entry(window).or_insert((low, high));
            *known = (low.min(known.0), high.max(known.1));
        }
    }

    /// Something of the range may be touched: as far as the first and the last touch of each window tell.
    pub(crate) fn is_touched(&self, start: u64, end: u64) -> bool {
        let windows = self.windows.range(start / WINDOW_BYTES..=end / WINDOW_BYTES);
        windows.into_iter().any(|(_, &(low, high))| low < end && start < high)
    }

    /// Touched windows side by side: first address, first address after the last.
    fn clusters(&self) -> Vec<(u64, u64)> {
        let mut clusters: Vec<(u64, u64)> = Vec::new();
        let mut before = None;
        for (&window, &(low, high)) in &self.windows {
            let (low, high) = (low - low % GRAIN_BYTES, high.next_multiple_of(GRAIN_BYTES));
            match clusters.last_mut() {
                Some(last) if before == window.checked_sub(1) => last.1 = high,
                _ => clusters.push((low, high)),
            }
            before = Some(window);
        }
        clusters
    }
}

/// A range of the traced program's memory, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MappedRange {
    start: u64,
    end: u64,
    to: u64,
}

/// The map from addresses of a trace to addresses of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TraceLayout {
    /// By address, without overlaps.
    ranges: Vec<MappedRange>,
    pub(crate) addresses: AddressMap,
}

/// The next free address of each medium.
struct Free([u64; 2]);

impl TraceLayout {
    /// Lays out what was touched; all of it in persistent memory where `persistent` is set.
    ///
    /// # Errors
    /// It touches more than there are addresses for.
    pub(crate) fn new(touched: &TouchedMemory, labels: &Labels, persistent: bool) -> Result<TraceLayout, Diagnostic> {
        let mut layout = TraceLayout::default();
        let mut free = Free([Medium::Dram, Medium::Nvm].map(Medium::base));
        let volatile = if persistent { Medium::Nvm } else { Medium::Dram };
        for (start, end) in touched.clusters() {
            let to = free.take(start, end, volatile);
            // What labels cut out of it is mapped by itself below.
            let mut at = start;
            for range in &labels.persistent {
                let (from, until) = (range.start.clamp(at, end), (range.start + range.bytes).clamp(at, end));
                if from < until {
                    layout.map(format!("{at:#x}"), at, from, to + (at - start));
                    at = until;
                }
            }
            layout.map(format!("{at:#x}"), at, end, to + (at - start));
        }
        for range in &labels.persistent {
            let end = range.start + range.bytes;
            let to = free.take(range.start, end, Medium::Nvm);
            layout.map(range.name.clone(), range.start, end, to);
        }
        layout.ranges.sort_by_key(|range| range.start);
        if free.0[0] > NVM_BASE || free.0[1] > SHARED_WINDOW {
            let message = "the trace touches memory in more places than the simulated machine has addresses for";
            return Err(Diagnostic::nowhere("", message));
        }
        Ok(layout)
    }

    fn map(&mut self, name: String, start: u64, end: u64, to: u64) {
        if start < end {
            self.ranges.push(MappedRange { start, end, to });
            self.addresses.place(&name, to, end - start);
        }
    }

    /// Where an address lies; none where it is not mapped.
    pub(crate) fn of(&self, address: u64) -> Option<u64> {
        let at = self.ranges.partition_point(|range| range.start <= address).checked_sub(1)?;
        let range = self.ranges[at];
        (address < range.end).then(|| range.to + (address - range.start))
    }

    /// The pieces in which a range lies.
    pub(crate) fn pieces(&self, range: GlobalRange) -> Vec<GlobalRange> {
        let end = range.start + range.bytes;
        let inside = |mapped: &&MappedRange| mapped.start < end && range.start < mapped.end;
        let piece = |mapped: &MappedRange| {
            let (from, until) = (mapped.start.max(range.start), mapped.end.min(end));
            GlobalRange { start: mapped.to + (from - mapped.start), bytes: until - from }
        };
        self.ranges.iter().filter(inside).map(piece).collect()
    }
}

impl Free {
    /// Addresses for a range: its place in a window stays.
    fn take(&mut self, start: u64, end: u64, medium: Medium) -> u64 {
        let free = &mut self.0[medium as usize];
        let to = *free + start % WINDOW_BYTES;
        // One byte more: ranges do not touch.
        *free = (to + (end - start) + 1).next_multiple_of(WINDOW_BYTES);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::memory::DRAM_BASE;

    const GPU: u64 = 0x7f2b_0000_0000;

    fn labels(text: &str) -> Labels {
        Labels::read("l.toml", text.to_owned()).unwrap()
    }

    fn touched(addresses: &[u64]) -> TouchedMemory {
        let mut touched = TouchedMemory::default();
        addresses.iter().for_each(|&address| touched.touch(address, 4));
        touched.settle();
        touched
    }

    #[test]
    fn what_is_touched_is_mapped_and_keeps_its_place_in_a_page() {
        let touched = touched(&[GPU + 0x1234, GPU + 0x0020_0000, GPU + 0x1000_0000, GPU + 0x2000]);
        let layout = TraceLayout::new(&touched, &Labels::default(), false).unwrap();
        assert_eq!(layout.of(GPU + 0x1234), Some(DRAM_BASE + 0x1234));
        // Two pages side by side stay so; a distant one follows.
        assert_eq!(layout.of(GPU + 0x0020_0004), Some(DRAM_BASE + 0x0020_0004));
        assert_eq!(layout.of(GPU + 0x1000_0000), Some(DRAM_BASE + 0x0040_0000));
        assert_eq!([0, 0x0fff, 0x0020_1000, 0x1000_1000].map(|offset| layout.of(GPU + offset)), [None; 4]);
        assert_eq!(layout.addresses.ranges().len(), 2);
    }

    #[test]
    fn labelled_ranges_lie_in_persistent_memory() {
        let labels = labels("[[persistent]]\nname = \"log\"\nstart = 0x7f2b00001000\nbytes = 4096\n");
        let touched = touched(&[GPU, GPU + 0x1800, GPU + 0x2000]);
        let layout = TraceLayout::new(&touched, &labels, false).unwrap();
        assert_eq!(layout.of(GPU + 8), Some(DRAM_BASE + 8));
        assert_eq!(layout.of(GPU + 0x1800), Some(NVM_BASE + 0x1800));
        assert_eq!(layout.of(GPU + 0x2000), Some(DRAM_BASE + 0x2000));
        assert_eq!(layout.addresses.extent_of("log"), Some((NVM_BASE + 0x1000, NVM_BASE + 0x2000)));
        let pieces = layout.pieces(GlobalRange { start: GPU + 0xff0, bytes: 0x20 });
        assert_eq!(
            pieces,
            [
                GlobalRange { start: DRAM_BASE + 0xff0, bytes: 0x10 },
                GlobalRange { start: NVM_BASE + 0x1000, bytes: 0x10 }
            ]
        );
        let all = TraceLayout::new(&touched, &labels, true).unwrap();
        assert!([0, 0x1800, 0x2000].iter().all(|offset| all.of(GPU + offset) >= Some(NVM_BASE)));
    }
}
