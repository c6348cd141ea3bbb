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

/// Which of the next 128 cycles are given away, the first one at `base`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calendar {
    base: Time,
    taken: u128,
}

value!(record Calendar { base, taken });

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

    /// What is given away from `now` on.
    #[inline]
    fn from(&self, now: Time, period: Time) -> u128 {
        let passed = if self.taken == 0 { 0 } else { now.saturating_sub(self.base) / period };
        if passed < 128 { self.taken >> passed } else { 0 }
    }

    /// The first time from `now` on with so many cycles that are not given away.
    #[inline]
    pub(super) fn room_from(&self, now: Time, cycles: u32, period: Time) -> Time {
        now + Time::from(first_gap(self.from(now, period), 0, cycles)) * period
    }

    /// Gives so many cycles away.
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

    /// Books a burst at `now`, and so many more of the request, each `spacing_cycles` or more behind the one
    /// before, and each with a slot of the command bus. Returns the times of their commands.
    pub(super) fn book(
        &mut self,
        now: Time,
        commands: u32,
        request: Bursts,
        slots: &mut Calendar,
        period: Time,
    ) -> SmallVec<[Time; 4]> {
        if self.last != Some(request.way) {
            self.calendar = Calendar { base: now, taken: 0 };
        }
        self.calendar.move_to(now, period);
        slots.move_to(now, period);
        let (burst, slot) = (ones(request.burst_cycles), ones(request.slot_cycles));
        let (mut at, mut times) = (0, SmallVec::new());
        for command in 0..commands {
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
            // What lies beyond the calendar is free, and nobody else can have it before the calendar moves.
            self.calendar.taken |= burst.checked_shl(at).unwrap_or(0);
            slots.taken |= slot.checked_shl(at).unwrap_or(0);
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
