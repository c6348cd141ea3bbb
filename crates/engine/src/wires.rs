//! Links as their senders see them, resolved for a placement.

use super::message::ComponentId;
use super::time::Time;

/// A link as its sender sees it, resolved for the current placement.
///
/// 16 bytes, as components with many links touch another one at every message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) latency: Time,
    /// The destination's index in its partition.
    pub(crate) index: u32,
    /// The partition that the destination is in.
    pub(crate) partition: u16,
    pub(crate) phase: u8,
    /// The destination's tier, and whether it is the sender.
    pub(super) end: u8,
}

impl Wire {
    pub(super) const TO_SELF: u8 = 1 << 7;

    /// Whether it leads back to the sender.
    #[inline]
    pub(crate) fn to_self(self) -> bool {
        self.end & Wire::TO_SELF != 0
    }

    /// The destination's tier.
    #[inline]
    pub(crate) fn tier(self) -> usize {
        usize::from(self.end & !Wire::TO_SELF)
    }
}

/// The links of one component, by port.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wires {
    pub(crate) wires: Box<[Wire]>,
    /// Where they lead; for placement and reports.
    pub(crate) ends: Box<[ComponentId]>,
}
