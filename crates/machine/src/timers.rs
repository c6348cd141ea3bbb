//! When waiting warps become ready: a wheel of one slot a cycle, a mask of warps in each.
//!
//! Invariant: at most [`HORIZON`] - 1 cycles ahead; a longer wait is put in again when the wheel comes round.

use durawarp_checkpoint::value;

/// Cycles that the wheel covers.
pub const HORIZON: u32 = 128;

/// The wheel of one SM.
#[derive(Debug, Clone)]
pub struct Timers {
    slots: [u64; HORIZON as usize],
    occupied: u128,
}

value!(record Timers { slots, occupied });

impl Default for Timers {
    fn default() -> Self {
        Timers { slots: [0; HORIZON as usize], occupied: 0 }
    }
}

impl Timers {
    /// Puts a warp in for `at`, or for the end of the wheel when that is further than it reaches from `now`.
    #[inline]
    pub fn insert(&mut self, now: u32, at: u32, warp: u8) {
        debug_assert!(at > now);
        let slot = (at.min(now + HORIZON - 1) % HORIZON) as usize;
        self.slots[slot] |= 1 << warp;
        self.occupied |= 1 << slot;
    }

    /// Takes out the warps put in for `cycle`.
    #[inline]
    pub fn due(&mut self, cycle: u32) -> u64 {
        let slot = (cycle % HORIZON) as usize;
        self.occupied &= !(1 << slot);
        std::mem::take(&mut self.slots[slot])
    }

    /// The earliest cycle after `cycle` with a warp in it.
    #[inline]
    pub fn next_after(&self, cycle: u32) -> Option<u32> {
        let first = (cycle + 1) % HORIZON;
        let turned = self.occupied.rotate_right(first);
        (turned != 0).then(|| cycle + 1 + turned.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warp_comes_out_on_its_cycle_and_not_before() {
        let mut t = Timers::default();
        t.insert(10, 14, 3);
        t.insert(10, 14, 5);
        assert_eq!(t.next_after(10), Some(14));
        assert_eq!(t.due(13), 0, "early");
        assert_eq!(t.due(14), 1 << 3 | 1 << 5, "on time");
        assert_eq!(t.next_after(14), None);
    }

    #[test]
    fn the_wheel_turns_over_its_end_and_keeps_far_ones_at_its_horizon() {
        let mut t = Timers::default();
        t.insert(120, 131, 1);
        assert_eq!(t.next_after(120), Some(131));
        t.insert(120, 10_000, 2);
        assert_eq!(t.due(131), 1 << 1);
        assert_eq!(t.next_after(131), Some(120 + HORIZON - 1));
    }
}
