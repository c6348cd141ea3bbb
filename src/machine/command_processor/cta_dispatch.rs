//! CTA dispatch: the CTAs of one launch go round-robin over the SMs that have room, one every
//! `cta_interval_cycles`.
//!
//! Source: GPGPU-Sim's CTA issue (one CTA a core a cycle). Invariants: an SM never holds more CTAs than fit
//! (`occupancy`); CTAs depart in the order of their numbers, on edges of the core clock. Not modelled:
//! concurrent kernels, preemption.

use std::sync::Arc;

use crate::engine::{Clock, Time};
use crate::kernel::launch::Launch;

/// When CTAs may leave the command processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Core clock.
    pub(super) clock: Clock,
    /// From the host's launch to the first departure, in ticks.
    pub(super) launch_ticks: Time,
    /// Between two departures, in ticks.
    pub(super) interval: Time,
}

/// A CTA on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Departure {
    /// The SM that will run it.
    pub(super) sm: u16,
    /// Its number in the launch.
    pub(super) cta: u64,
    /// When it leaves, in ticks.
    pub(super) at: Time,
}

/// The launch whose CTAs are running.
#[derive(Debug)]
pub(super) struct CtaDispatch {
    launch: Arc<Launch>,
    pace: Pace,
    /// The first CTA that has not left.
    next: u64,
    /// CTAs that have ended.
    done: u64,
    /// By SM: CTAs that it has room for.
    room: Vec<u32>,
    next_sm: usize,
    next_departure: Time,
}

impl CtaDispatch {
    /// A launch whose first CTA leaves at `first` or after; each of `sms` SMs holds `ctas` CTAs.
    pub(super) fn new(launch: Arc<Launch>, pace: Pace, sms: u32, ctas: u32, first: Time) -> Self {
        let room = vec![ctas; sms as usize];
        CtaDispatch { launch, pace, next: 0, done: 0, room, next_sm: 0, next_departure: first }
    }

    /// The next CTA that leaves; none when no SM has room or no CTA is left.
    pub(super) fn depart(&mut self, now: Time) -> Option<Departure> {
        if self.next == self.launch.ctas() {
            return None;
        }
        let sms = self.room.len();
        let sm = (0..sms).map(|i| (self.next_sm + i) % sms).find(|&sm| self.room[sm] > 0)?;
        self.room[sm] -= 1;
        self.next_sm = (sm + 1) % sms;
        let at = self.pace.clock.edge_at_or_after(self.next_departure.max(now));
        self.next_departure = at + self.pace.interval;
        let cta = self.next;
        self.next += 1;
        Some(Departure { sm: sm as u16, cta, at })
    }

    /// A CTA of an SM has ended.
    pub(super) fn end_cta(&mut self, sm: u16) {
        self.room[usize::from(sm)] += 1;
        self.done += 1;
    }

    /// Every CTA has ended.
    pub(super) fn is_over(&self) -> bool {
        self.done == self.launch.ctas()
    }

    /// CTAs on SMs, once every CTA has left; none before, since those that wait for room come later.
    pub(super) fn last_resident(&self) -> Option<u64> {
        (self.next == self.launch.ctas()).then(|| self.launch.ctas() - self.done)
    }

    /// The launch.
    pub(super) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// CTAs that have left, and CTAs that have ended.
    pub(super) fn sent_and_done(&self) -> (u64, u64) {
        (self.next, self.done)
    }
}
