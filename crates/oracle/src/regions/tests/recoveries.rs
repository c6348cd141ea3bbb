//! Faults of hardware's recovery, for tests of the oracle and, from outside, of the machine. Not modelled:
//! faults of power failure itself, which are the machine's.

use super::{AtPowerFailure, Knowledge};

/// Writes whatever the queues hold.
pub(super) struct Drains;

impl AtPowerFailure for Drains {
    fn flushes(&self, _: &Knowledge) -> bool {
        true
    }
}

/// Does not ask whether others have the boundary.
pub(super) struct AsksNobody;

impl AtPowerFailure for AsksNobody {
    fn flushes(&self, known: &Knowledge) -> bool {
        known.bounded
    }
}

/// Leaves the undo log alone.
pub(super) struct DoesNotRollBack;

impl AtPowerFailure for DoesNotRollBack {
    fn rolls_back(&self) -> bool {
        false
    }
}
