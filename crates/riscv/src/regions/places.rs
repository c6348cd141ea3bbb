//! A number for every two bytes of code, found by address with a subtraction.

/// No number.
const NONE: u32 = u32::MAX;

/// Numbers by address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PcMap {
    segments: Vec<(u64, Vec<u32>)>,
}

impl PcMap {
    /// No numbers yet, for segments by their first address and bytes.
    pub(super) fn new(segments: impl Iterator<Item = (u64, u64)>) -> PcMap {
        PcMap { segments: segments.map(|(start, bytes)| (start, vec![NONE; (bytes / 2) as usize])).collect() }
    }

    /// The number of an address; `u32::MAX` where none was set.
    #[inline]
    pub(super) fn get(&self, pc: u64) -> u32 {
        for (start, numbers) in &self.segments {
            let offset = pc.wrapping_sub(*start);
            if let Some(number) = numbers.get((offset / 2) as usize) {
                return if offset & 1 == 1 { NONE } else { *number };
            }
        }
        NONE
    }

    /// Sets it. An address outside of all segments is ignored.
    pub(super) fn set(&mut self, pc: u64, number: u32) {
        for (start, numbers) in &mut self.segments {
            if let Some(place) = numbers.get_mut((pc.wrapping_sub(*start) / 2) as usize) {
                *place = number;
            }
        }
    }

    /// The same addresses without numbers.
    pub(super) fn emptied(&self) -> PcMap {
        PcMap { segments: self.segments.iter().map(|(start, numbers)| (*start, vec![NONE; numbers.len()])).collect() }
    }
}
