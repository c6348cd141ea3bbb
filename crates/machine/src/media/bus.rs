//! A data bus of a channel, and the slots of its command buses that are given away ahead.
//!
//! A request of several column commands is decided once, and its commands are spaced as its bank needs; what
//! lies between them is free for others. So a bus has a calendar of the next 128 cycles, by the cycle of the
//! column command, since all commands of a direction have the same way to their data. Whatever goes the other
//! way, or to other devices, comes behind all of it.
//!
//! Source: the data bus of JEDEC's devices. Invariant: no two bursts overlap.

use durawarp_checkpoint::{state, value};
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;
use smallvec::SmallVec;

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Column read.
    Read,
    /// Column write.
    Write,
}

value!(choice Direction { Read, Write });

/// Which of the next 128 cycles are taken, the first one at `base`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calendar {
    base: Time,
    taken: u128,
    /// Nothing else comes before this: something was booked beyond the 128 cycles.
    full_until: Time,
}

value!(record Calendar { base, taken, full_until });

impl Calendar {
    /// Forgets what lies before `now`.
    #[inline]
    fn move_to(&mut self, now: Time, period: Time) {
        if self.taken != 0 {
            let passed = (now - self.base) / period;
            self.taken = if passed < 128 { self.taken >> passed } else { 0 };
        }
        self.base = now;
    }

    /// What is taken from `now` on.
    #[inline]
    fn from(&self, now: Time, period: Time) -> u128 {
        let passed = if self.taken == 0 { 0 } else { now.saturating_sub(self.base) / period };
        if passed < 128 { self.taken >> passed } else { 0 }
    }

    /// The first time from `now` on that has `cycles` free cycles.
    #[inline]
    pub(super) fn room_from(&self, now: Time, cycles: u32, period: Time) -> Time {
        self.full_until.max(now + Time::from(first_gap(self.from(now, period), 0, cycles)) * period)
    }

    /// The time, or that of the first cycle that is known of, where it lies before.
    pub(super) fn not_before(&self, time: Time) -> Time {
        time.max(self.base)
    }

    /// Takes `length` cycles from the one at `at` on, which is so many behind `base`.
    fn book(&mut self, at: u32, length: u32, period: Time) {
        self.taken |= ones(length).checked_shl(at).unwrap_or(0);
        if at + length > 128 {
            self.full_until = self.base + Time::from(at + length) * period;
        }
    }

    /// Takes `cycles` cycles from `now` on.
    pub(super) fn take(&mut self, now: Time, cycles: u32, period: Time) {
        self.move_to(now, period);
        self.taken |= ones(cycles);
    }
}

/// A data bus.
#[derive(Debug, Clone, Default)]
pub(super) struct DataBus {
    /// When its last burst is over.
    pub(super) free: Time,
    /// Which way that goes, and of which devices.
    pub(super) last: Option<(Direction, Medium)>,
    /// Cycles at which no column command of that direction and those devices can come.
    calendar: Calendar,
}

state!(DataBus { saved: free, last, calendar });

impl DataBus {
    /// The first cycle from `now` on that has room for a burst.
    #[inline]
    pub(super) fn room_from(&self, now: Time, burst_cycles: u32, period: Time) -> Time {
        self.calendar.room_from(now, burst_cycles, period)
    }

    /// Books the bursts of a request. The first is at `now`, each other one at least `spacing_cycles` behind
    /// the one before. Each has a slot of the command bus. Returns the times of their commands.
    pub(super) fn book(
        &mut self,
        now: Time,
        commands: u32,
        request: Bursts,
        slots: &mut Calendar,
        period: Time,
    ) -> SmallVec<[Time; 4]> {
        if self.last != Some(request.way) {
            self.calendar = Calendar { base: now, ..Calendar::default() };
        }
        self.calendar.move_to(now, period);
        slots.move_to(now, period);
        let slot = ones(request.slot_cycles);
        let (mut at, mut times) = (0, SmallVec::new());
        for command in 0..commands {
            // The first is where it was asked for; others are where both buses have room.
            if command > 0 {
                at += request.spacing_cycles;
                loop {
                    at = first_gap(self.calendar.taken, at, request.burst_cycles);
                    if at >= 128 || slots.taken >> at & slot == 0 {
                        break;
                    }
                    at += 1;
                }
            }
            self.calendar.book(at, request.burst_cycles, period);
            slots.book(at, request.slot_cycles, period);
            times.push(now + Time::from(at) * period);
        }
        times
    }
}

/// How the column commands of a request go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bursts {
    pub(super) way: (Direction, Medium),
    pub(super) burst_cycles: u32,
    pub(super) spacing_cycles: u32,
    /// Of the bus of commands.
    pub(super) slot_cycles: u32,
}

/// So many bits.
#[inline]
fn ones(count: u32) -> u128 {
    u128::MAX >> (128 - count)
}

/// The first cycle from `at` on with `length` free ones.
#[inline]
fn first_gap(taken: u128, mut at: u32, length: u32) -> u32 {
    let wanted = ones(length);
    while at < 128 && taken >> at & wanted != 0 {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request whose bursts of two cycles are so far apart, on a clock whose tick is a cycle.
    fn booked(spacing_cycles: u32) -> (DataBus, Calendar, SmallVec<[Time; 4]>) {
        let way = (Direction::Read, Medium::Dram);
        let request = Bursts { way, burst_cycles: 2, spacing_cycles, slot_cycles: 1 };
        let (mut bus, mut slots) = (DataBus { last: Some(way), ..DataBus::default() }, Calendar::default());
        let times = bus.book(1000, 4, request, &mut slots, 1);
        (bus, slots, times)
    }

    #[test]
    fn another_burst_has_the_gaps_of_a_request_and_none_of_its_cycles() {
        let (bus, slots, times) = booked(4);
        assert_eq!(times[..], [1000, 1004, 1008, 1012]);
        let room = |now| bus.room_from(now, 2, 1);
        assert_eq!([room(1000), room(1001), room(1002), room(1003), room(1014)], [1002, 1002, 1002, 1006, 1014]);
        assert_eq!(slots.room_from(1004, 1, 1), 1005);
    }

    #[test]
    fn nothing_comes_between_bursts_beyond_the_calendar() {
        let (bus, slots, times) = booked(60);
        assert_eq!(times[..], [1000, 1060, 1120, 1180]);
        assert_eq!((bus.room_from(1010, 2, 1), slots.room_from(1010, 1, 1)), (1182, 1181));
    }
}
