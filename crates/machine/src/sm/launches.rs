//! The launches that the warps of an SM belong to.
//!
//! Each launch in flight has a *place*, given by the command processor and the same on every SM: 0 where
//! launches run one after another. A warp knows the place of its launch, so that any number of kernels may be
//! resident at once and what an instruction needs of its kernel is one look away. A launch that is over keeps
//! its place until another takes it.
//!
//! Invariant: no warp is resident whose launch's place has been taken by another.

use std::sync::Arc;

use super::slots::WarpSlot;
use durawarp_checkpoint::value;
use durawarp_kernel::launch::Launch;

/// Launches by their places.
#[derive(Debug, Default)]
pub(super) struct LaunchTable {
    of_place: Vec<Arc<Launch>>,
}

value!(record LaunchTable { of_place });

impl LaunchTable {
    /// No launch has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.of_place.is_empty()
    }

    /// A launch takes a place: one that another has left, or the next.
    pub(super) fn begin(&mut self, place: u8, launch: Arc<Launch>) {
        let place = usize::from(place);
        assert!(place <= self.of_place.len(), "place {place} after {} launches", self.of_place.len());
        if place < self.of_place.len() {
            self.of_place[place] = launch;
        } else {
            self.of_place.push(launch);
        }
    }

    /// The launch in a place.
    #[inline]
    pub(super) fn at(&self, place: u8) -> &Arc<Launch> {
        &self.of_place[usize::from(place)]
    }

    /// A warp's launch.
    #[inline]
    pub(super) fn of(&self, slot: &WarpSlot) -> &Launch {
        self.at(slot.launch)
    }
}
