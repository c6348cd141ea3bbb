//! The clusters of a launch that have not begun: each begins in its turn, or a CTA that runs takes it from
//! the grid (PTX ISA, `clusterlaunchcontrol.try_cancel`), and it never begins.
//!
//! Invariant: a request gets the next in the order in which clusters begin.

use std::ops::Range;

/// Clusters that have not begun.
#[derive(Debug)]
pub(super) struct Unbegun {
    /// Places of their CTAs in the order in which CTAs begin.
    places: Range<u64>,
    /// CTAs of each.
    ctas: u64,
}

impl Unbegun {
    /// Those of these places, in clusters of `ctas` CTAs.
    pub(super) fn new(places: Range<u64>, ctas: u32) -> Self {
        Unbegun { places, ctas: ctas.into() }
    }

    /// None is left.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The next: the place of its first CTA.
    pub(super) fn take(&mut self) -> Option<u64> {
        let first = (!self.is_empty()).then_some(self.places.start)?;
        self.places.start += self.ctas;
        Some(first)
    }
}
