//! The launches that the warps of an SM belong to.
//!
//! Each launch in flight has a *place*, given by the command processor and the same on every SM: 0 where
//! launches run one after another. A warp knows the place of its launch, so that any number of kernels may be
//! resident at once and what an instruction needs of its kernel is one look away. A launch that is over keeps
//! its place until another takes it.
//!
//! Invariant: no warp is resident whose launch's place has been taken by another.

use std::array;
use std::sync::Arc;

use super::slots::WarpSlot;
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable};
use durawarp_kernel::launch::Launch;

/// As many as a place's number can tell apart.
const PLACES: usize = 256;

/// Launches by their places. It is boxed by who has one: an SM takes it out of itself at every event.
#[derive(Debug)]
pub(super) struct LaunchTable {
    /// A place that none has taken yet holds the first launch, so that a look is one load and no question.
    of_place: [Arc<Launch>; PLACES],
    /// Places that were taken, from 0 on.
    taken: usize,
}

impl LaunchTable {
    /// The first launch takes place 0.
    fn of_first(launch: Arc<Launch>) -> Box<LaunchTable> {
        Box::new(LaunchTable { of_place: array::from_fn(|_| launch.clone()), taken: 1 })
    }

    /// A launch takes a place: one that another has left, or the next. `table` is there from the first one
    /// on.
    pub(super) fn begin(table: &mut Option<Box<LaunchTable>>, place: u8, launch: Arc<Launch>) {
        let taken = table.as_ref().map_or(0, |table| table.taken);
        assert!(usize::from(place) <= taken, "place {place} after {taken} launches");
        match table {
            Some(table) => {
                table.of_place[usize::from(place)] = launch;
                table.taken = taken.max(usize::from(place) + 1);
            }
            None => *table = Some(LaunchTable::of_first(launch)),
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

impl Storable for LaunchTable {
    fn save(&self, out: &mut StateWriter) {
        self.of_place[..self.taken].to_vec().save(out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let launches: Vec<Arc<Launch>> = Vec::read(from)?;
        let taken = launches.len();
        match launches.first() {
            Some(first) if taken <= PLACES => {
                let of_place = array::from_fn(|place| launches.get(place).unwrap_or(first).clone());
                Ok(LaunchTable { of_place, taken })
            }
            _ => Err(LoadFault::new(format!("{taken} places of launches, not 1 to {PLACES}"))),
        }
    }
}
