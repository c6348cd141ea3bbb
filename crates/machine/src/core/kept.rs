//! Dirty lines that a scheme has stay in the L1, and what waits for them. The verbs: [`super::victims`].
//!
//! | what | while a line stays |
//! |---|---|
//! | a line has come and its set has no other line that may leave | it waits, with its loads, stores and probe |
//! | the shared cache takes the line back for room | the answer waits; the core may read the line, not write it |
//! | another core takes the line | it goes: who asked for it gets the newest bytes |
//!
//! A probe of a line that an `lr` holds waits here as well, under any scheme: see [`super::reserved`].
//!
//! A scheme asks for it by [`CorePolicy::victims`](durawarp_persist::handler::CorePolicy), which also says in
//! how many ways, the least recently used first, another line is looked for. Source: LightWSP, sections IV-G
//! and V-F3. Reading: a line that leaves the L1 because an inclusive cache below needs its place is evicted,
//! too. Invariants: who waits is asked about again at each message for the handler; a line that was asked
//! back is not written any more. Not modelled: the time to search (2 cycles in the paper, hidden by the
//! miss).

use crate::coherence::Grant;
use crate::line::Line;
use durawarp_checkpoint::value;

/// A home asks for a line.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) line: u64,
    /// No copy may stay.
    pub(super) invalidate: bool,
    /// The home wants the place, not the line.
    pub(super) recall: bool,
    pub(super) room: Box<Line>,
}

value!(record Probe { line, invalidate, recall, room });

/// A line that has come, and its request.
#[derive(Debug)]
pub(super) struct ArrivedLine {
    pub(super) tag: u16,
    pub(super) grant: Grant,
    pub(super) data: Box<Line>,
    /// A probe of it that came since.
    pub(super) probe: Option<Probe>,
}

value!(record ArrivedLine { tag, grant, data, probe });

/// A line that has its place.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) tag: u16,
    /// The line that it replaces.
    pub(super) evicted: Option<u64>,
    /// The probe that waited with it.
    pub(super) probe: Option<Probe>,
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct KeptLines {
    /// Lines that have come and find no place, in order.
    pub(super) arrivals: Vec<ArrivedLine>,
    /// Lines that the shared cache takes back, with their bytes, in order.
    pub(super) recalled: Vec<(u64, Box<Line>)>,
    /// Probes of lines that an `lr` holds, in order.
    pub(super) reserved: Vec<Probe>,
}

value!(record KeptLines { arrivals, recalled, reserved });

impl KeptLines {
    /// A line waits for a place.
    pub(super) fn wait(&mut self, arrival: ArrivedLine) {
        self.arrivals.push(arrival);
    }

    /// A probe of a line waits that an `lr` holds.
    #[inline]
    pub(super) fn is_reserved(&self, line: u64) -> bool {
        self.reserved.iter().any(|probe| probe.line == line)
    }

    /// The lines that wait for a place.
    pub(super) fn take_arrivals(&mut self) -> Vec<ArrivedLine> {
        std::mem::take(&mut self.arrivals)
    }
}
