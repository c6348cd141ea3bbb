//! MSHRs: fills under way, each of one line, with the requests that wait for it.
//!
//! Every request to a line with a fill under way queues here, so that requests to one line take effect in the
//! order of their arrival. Invariants: a place has at most one MSHR; an MSHR is released when its queue is
//! empty and every sector that memory was asked for has come. Source: AGPM Table IV (256 MSHRs).

use std::collections::VecDeque;

use crate::entries::Entries;
use crate::msg::Request;
use durawarp_checkpoint::{state, value};

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
}

value!(record Mshr { place, pending, newer, queue });

/// All MSHRs of a slice.
#[derive(Debug)]
pub(super) struct MshrFile {
    /// By place.
    of: Vec<u16>,
    entries: Entries<Mshr>,
    /// Requests that one MSHR holds.
    merges: usize,
}

state!(MshrFile { parts: entries; sized: of; kept: merges });

impl MshrFile {
    /// Free MSHRs for an array of `places`.
    pub(super) fn new(places: usize, entries: u32, merges: u32) -> Self {
        MshrFile { of: vec![NO_MSHR; places], entries: Entries::new(entries), merges: merges as usize }
    }

    /// The MSHR of a place with a fill under way.
    pub(super) fn of(&self, place: usize) -> Option<u16> {
        Some(self.of[place]).filter(|&mshr| mshr != NO_MSHR)
    }

    /// An MSHR is free.
    pub(super) fn has_free(&self) -> bool {
        self.entries.has_free()
    }

    /// MSHRs in use.
    pub(super) fn in_use(&self) -> usize {
        self.entries.in_use()
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

    /// Another request may queue.
    pub(super) fn has_room(&self, mshr: u16) -> bool {
        self.entries[mshr].queue.len() < self.merges
    }

    /// A store queues.
    pub(super) fn holds_stores(&self, mshr: u16) -> bool {
        self.entries[mshr].queue.iter().any(|request| request.kind.stores())
    }

    /// Queues a request.
    pub(super) fn push(&mut self, mshr: u16, request: Request) {
        self.entries[mshr].queue.push_back(request);
    }

    /// The next request; one that cannot be performed goes back by [`MshrFile::push_front`].
    pub(super) fn pop(&mut self, mshr: u16) -> Option<Request> {
        self.entries[mshr].queue.pop_front()
    }

    /// Puts the next request back.
    pub(super) fn push_front(&mut self, mshr: u16, request: Request) {
        self.entries[mshr].queue.push_front(request);
    }

    /// The sectors that memory has not been asked for, of those given.
    pub(super) fn not_requested(&self, mshr: u16, sectors: u8) -> u8 {
        sectors & !self.entries[mshr].pending
    }

    /// Memory was asked for sectors.
    pub(super) fn requested(&mut self, mshr: u16, sectors: u8) {
        self.entries[mshr].pending |= sectors;
    }

    /// Sectors have come. Of these bytes the place has newer ones than they may bring.
    pub(super) fn arrived(&mut self, mshr: u16, sectors: u8) -> u128 {
        let entry = &mut self.entries[mshr];
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

    #[test]
    fn an_mshr_is_released_with_the_last_sector_and_not_before() {
        let mut mshrs = MshrFile::new(8, 1, 2);
        let mshr = mshrs.allocate(5);
        assert_eq!((mshrs.of(5), mshrs.has_free(), mshrs.in_use()), (Some(mshr), false, 1));
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
