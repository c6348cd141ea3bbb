//! MSHRs: fills under way, each of one line, with the requests that wait for it.
//!
//! Every request to a line with a fill under way queues here, so that requests to one line take effect in the
//! order of their arrival. Invariants: a place has at most one entry; it is released when its queue is empty
//! and every sector that memory was asked for has come. What counts as an MSHR, and how many requests one
//! holds, is by [`MshrUnit`]. Sources: AGPM Table IV (256 MSHRs); GPGPU-Sim, whose sectored caches look up
//! MSHRs by the address of a sector (`cache_config::mshr_addr`).

use std::collections::VecDeque;

use super::parameters::{L2Spec, MshrUnit};
use crate::entries::Entries;
use crate::line::{MAX_LINE_BYTES, SECTOR_BYTES};
use crate::msg::Request;
use durawarp_checkpoint::{state, value};

/// Sectors of the longest line.
const SECTORS: usize = MAX_LINE_BYTES / SECTOR_BYTES as usize;

/// No MSHR: a place without one, and the tag of a read whose data no request waits for.
pub(super) const NO_MSHR: u16 = u16::MAX;

/// A fill under way, and the requests that wait for it.
#[derive(Debug, Default)]
struct Mshr {
    place: usize,
    /// Sectors that memory was asked for.
    pending: u8,
    /// Bytes that left for memory since the fill began: what comes may be older.
    newer: u128,
    queue: VecDeque<Request>,
    /// How many of these are for each sector.
    held: [u16; SECTORS],
}

value!(record Mshr { place, pending, newer, queue, held });

/// The numbers of some sectors; a request that names none concerns the whole line.
fn numbers(sectors: u8) -> impl Iterator<Item = usize> {
    (0..SECTORS).filter(move |sector| sectors == 0 || sectors >> sector & 1 == 1)
}

/// All MSHRs of a slice.
#[derive(Debug)]
pub(super) struct MshrFile {
    /// By place.
    of: Vec<u16>,
    entries: Entries<Mshr>,
    unit: MshrUnit,
    /// How many MSHRs the slice has.
    most: usize,
    /// Requests that one MSHR holds.
    merges: usize,
    /// Sectors that are on their way.
    sectors: usize,
}

state!(MshrFile { parts: entries; sized: of; saved: sectors; kept: unit, most, merges });

impl MshrFile {
    /// Free MSHRs for an array of `places`.
    pub(super) fn new(places: usize, spec: &L2Spec) -> Self {
        let L2Spec { mshr_entries, mshr_unit, mshr_merges, .. } = *spec;
        MshrFile {
            of: vec![NO_MSHR; places],
            entries: Entries::new(mshr_entries),
            unit: mshr_unit,
            most: mshr_entries as usize,
            merges: mshr_merges as usize,
            sectors: 0,
        }
    }

    /// The MSHR of a place with a fill under way.
    pub(super) fn of(&self, place: usize) -> Option<u16> {
        Some(self.of[place]).filter(|&mshr| mshr != NO_MSHR)
    }

    /// MSHRs are free for a line of which memory will be asked for these sectors.
    pub(super) fn has_free(&self, sectors: u8) -> bool {
        self.entries.has_free() && self.has_free_for(sectors)
    }

    /// Where MSHRs are of sectors, there are as many as these take. A request for more sectors than there are
    /// MSHRs has its turn when none is in use.
    fn has_free_for(&self, sectors: u8) -> bool {
        let more = sectors.count_ones() as usize;
        self.unit == MshrUnit::Line || more == 0 || self.sectors == 0 || self.sectors + more <= self.most
    }

    /// MSHRs in use.
    pub(super) fn in_use(&self) -> usize {
        match self.unit {
            MshrUnit::Line => self.entries.in_use(),
            MshrUnit::Sector => self.sectors,
        }
    }

    /// Takes an MSHR for a place.
    ///
    /// # Panics
    /// When none is free.
    pub(super) fn allocate(&mut self, place: usize) -> u16 {
        let mshr = self.entries.take();
        self.of[place] = mshr;
        let entry = &mut self.entries[mshr];
        (entry.place, entry.newer) = (place, 0);
        mshr
    }

    /// Releases an MSHR, if every sector has come: the place whose fill is over.
    pub(super) fn release(&mut self, mshr: u16) -> Option<usize> {
        let Mshr { place, pending, .. } = self.entries[mshr];
        if pending != 0 {
            return None;
        }
        self.of[place] = NO_MSHR;
        self.entries.release(mshr);
        Some(place)
    }

    /// The place that a fill is for.
    pub(super) fn place(&self, mshr: u16) -> usize {
        self.entries[mshr].place
    }

    /// A request for these sectors may queue, which has memory asked for `more` of them.
    pub(super) fn has_room(&self, mshr: u16, sectors: u8, more: u8) -> bool {
        let entry = &self.entries[mshr];
        match self.unit {
            MshrUnit::Line => entry.queue.len() < self.merges,
            MshrUnit::Sector => {
                let full = |sector: usize| usize::from(entry.held[sector]) >= self.merges;
                !numbers(sectors).any(full) && self.has_free_for(more)
            }
        }
    }

    /// A store queues.
    pub(super) fn holds_stores(&self, mshr: u16) -> bool {
        self.entries[mshr].queue.iter().any(|request| request.kind.stores())
    }

    /// Queues a request.
    pub(super) fn push(&mut self, mshr: u16, request: Request) {
        let entry = &mut self.entries[mshr];
        numbers(request.sectors).for_each(|sector| entry.held[sector] += 1);
        entry.queue.push_back(request);
    }

    /// The next request; one that cannot be performed goes back by [`MshrFile::push_front`].
    pub(super) fn pop(&mut self, mshr: u16) -> Option<Request> {
        let entry = &mut self.entries[mshr];
        let request = entry.queue.pop_front()?;
        numbers(request.sectors).for_each(|sector| entry.held[sector] -= 1);
        Some(request)
    }

    /// Puts the next request back.
    pub(super) fn push_front(&mut self, mshr: u16, request: Request) {
        let entry = &mut self.entries[mshr];
        numbers(request.sectors).for_each(|sector| entry.held[sector] += 1);
        entry.queue.push_front(request);
    }

    /// The sectors that memory has not been asked for, of those given.
    pub(super) fn not_requested(&self, mshr: u16, sectors: u8) -> u8 {
        sectors & !self.entries[mshr].pending
    }

    /// Memory was asked for sectors that were not on their way.
    pub(super) fn requested(&mut self, mshr: u16, sectors: u8) {
        self.entries[mshr].pending |= sectors;
        self.sectors += sectors.count_ones() as usize;
    }

    /// Sectors have come. Of these bytes the place has newer ones than they may bring.
    pub(super) fn arrived(&mut self, mshr: u16, sectors: u8) -> u128 {
        let entry = &mut self.entries[mshr];
        self.sectors -= (entry.pending & sectors).count_ones() as usize;
        entry.pending &= !sectors;
        entry.newer
    }

    /// Bytes of a place leave for memory, behind what its fill may have asked for.
    pub(super) fn left(&mut self, place: usize, mask: u128) {
        if let Some(mshr) = self.of(place) {
            self.entries[mshr].newer |= mask;
        }
    }

    /// Places with requests that wait for their fill, and these requests.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (usize, &VecDeque<Request>)> {
        self.entries.iter().filter(|mshr| !mshr.queue.is_empty()).map(|mshr| (mshr.place, &mshr.queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `most` MSHRs of a unit, each with two merges, over eight places.
    fn file(unit: MshrUnit, most: usize) -> MshrFile {
        let (of, entries) = (vec![NO_MSHR; 8], Entries::new(most as u32));
        MshrFile { of, entries, unit, most, merges: 2, sectors: 0 }
    }

    #[test]
    fn sectors_on_their_way_are_in_use_where_mshrs_are_of_sectors() {
        let mut mshrs = file(MshrUnit::Sector, 3);
        let first = mshrs.allocate(5);
        mshrs.requested(first, 0b0011);
        assert_eq!((mshrs.in_use(), mshrs.has_free(0b1), mshrs.has_free(0b11)), (2, true, false));
        mshrs.arrived(first, 0b1111);
        assert_eq!((mshrs.in_use(), mshrs.has_free(0b1111)), (0, true), "what was not on its way frees nothing");
    }

    #[test]
    fn an_mshr_is_released_with_the_last_sector_and_not_before() {
        let mut mshrs = file(MshrUnit::Line, 1);
        let mshr = mshrs.allocate(5);
        assert_eq!((mshrs.of(5), mshrs.has_free(1), mshrs.in_use()), (Some(mshr), false, 1));
        mshrs.requested(mshr, 0b0110);
        assert_eq!(mshrs.not_requested(mshr, 0b0011), 0b0001);
        mshrs.left(5, 0b11);
        assert_eq!(mshrs.arrived(mshr, 0b0010), 0b11);
        assert_eq!(mshrs.release(mshr), None, "one sector is on its way");
        mshrs.arrived(mshr, 0b0100);
        assert_eq!((mshrs.release(mshr), mshrs.of(5), mshrs.in_use()), (Some(5), None, 0));
        mshrs.allocate(6);
        assert_eq!(mshrs.arrived(mshr, 0), 0, "another fill");
    }
}
