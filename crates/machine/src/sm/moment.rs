//! What a verb of a part needs besides the parts themselves.

use durawarp_kernel::launch::Launch;

use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::record::Record;
use super::slots::WarpSlot;
use super::wiring::{SmParameters, SmWiring};

/// A cycle of the SM: which it is, for which launches, and who hears of what happens in it.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub(super) cycle: u32,
    pub(super) launches: &'a LaunchTable,
    pub(super) p: &'a SmParameters,
    pub(super) w: &'a SmWiring,
    pub(super) host: &'a mut SmHost,
    pub(super) record: &'a mut Record,
}

impl<'a> Moment<'a> {
    /// A warp's launch.
    #[inline]
    pub(super) fn launch(&self, slot: &WarpSlot) -> &'a Launch {
        self.launches.of(slot)
    }
}
