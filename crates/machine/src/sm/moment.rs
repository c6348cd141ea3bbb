//! What a verb of a part needs besides the parts themselves.

use durawarp_kernel::launch::Launch;

use super::handler_host::SmHost;
use super::record::Record;
use super::wiring::{SmParameters, SmWiring};

/// A cycle of the SM: which it is, for which launch, and who hears of what happens in it.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub(super) cycle: u32,
    pub(super) launch: &'a Launch,
    pub(super) p: &'a SmParameters,
    pub(super) w: &'a SmWiring,
    pub(super) host: &'a mut SmHost,
    pub(super) record: &'a mut Record,
}
