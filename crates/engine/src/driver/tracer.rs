//! Times every component-round of a traced run. Off, it costs a test of a flag a round.
//!
//! What reading the clock takes is measured once and taken off each lap; what the engine does between
//! components (opening queues, sorting) is shared out over the round's components by their events.

use std::time::Instant;

use crate::message::ComponentId;
use crate::partition::Meter;
use crate::trace::RoundTrace;

/// Laps that measure the clock itself.
const CLOCK_LAPS: usize = 64;

/// The meter of a traced round.
#[derive(Debug)]
pub(crate) struct Tracer<'a> {
    trace: &'a mut RoundTrace,
    began: Instant,
    last: Instant,
}

impl<'a> Tracer<'a> {
    /// Begins a round.
    pub(crate) fn new(trace: &'a mut RoundTrace) -> Self {
        trace.clock_ns.get_or_insert_with(clock_ns);
        let began = Instant::now();
        Tracer { trace, began, last: began }
    }

    /// Ends the round.
    pub(crate) fn end(self) {
        let ns = self.began.elapsed().as_nanos() as u64;
        self.trace.end_round(ns);
    }
}

impl Meter for Tracer<'_> {
    #[inline]
    fn lap(&mut self) -> Option<u64> {
        let now = Instant::now();
        let ns = now.duration_since(self.last).as_nanos() as u64;
        self.last = now;
        Some(ns.saturating_sub(self.trace.clock_ns.unwrap_or(0)))
    }

    #[inline]
    fn note(&mut self, component: ComponentId, events: u64, ns: u64) {
        self.trace.add(component, events, ns);
    }
}

/// What a reading of the clock takes: the median of a few.
fn clock_ns() -> u64 {
    let mut last = Instant::now();
    let mut laps: Vec<u64> = (0..CLOCK_LAPS)
        .map(|_| {
            let now = Instant::now();
            let ns = now.duration_since(last).as_nanos() as u64;
            last = now;
            ns
        })
        .collect();
    laps.sort_unstable();
    laps[CLOCK_LAPS / 2]
}
