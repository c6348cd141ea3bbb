//! Dirty lines that a scheme has stay in the L1, and what waits for them.
//!
//! | what | while a line stays |
//! |---|---|
//! | a line has come and its set has no other line that may leave | it waits, with its loads, stores and probe |
//! | the shared cache takes the line back for room | the answer waits; the core may read the line, not write it |
//! | another core takes the line | it goes: who asked for it gets the newest bytes |
//!
//! A scheme asks for it by [`Interests::victims`](crate::persist::handler::Interests), which also says in how
//! many ways, the least recently used first, another line is looked for. Source: LightWSP, sections IV-G and
//! V-F3. Reading: a line that leaves the L1 because an inclusive cache below needs its place is evicted, too.
//! Invariants: who waits is asked about again at each message for the handler; a line that has been asked back
//! is not written any more. Not modelled: the time to search (2 cycles in the paper, hidden by the miss).

use crate::engine::Ctx;
use crate::kernel::memory::Medium;
use crate::machine::coherence::{CpuMsg, Grant};
use crate::machine::line::Line;
use crate::machine::msg::Msg;
use crate::persist::handler::{Admission, Offer};

use super::cache::{Cache, put_bytes};
use super::l1d::LineState;
use super::policy::Policy;

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

/// A line that has come, and its request.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) tag: u16,
    pub(super) grant: Grant,
    pub(super) data: Box<Line>,
    /// A probe of it that came since.
    pub(super) probe: Option<Probe>,
}

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
    arrivals: Vec<Arrival>,
    /// Lines that the shared cache takes back, with their bytes, in order.
    recalled: Vec<(u64, Box<Line>)>,
}

impl KeptLines {
    /// A line waits for a place.
    pub(super) fn wait(&mut self, arrival: Arrival) {
        self.arrivals.push(arrival);
    }

    /// The lines that wait for a place.
    pub(super) fn take_arrivals(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.arrivals)
    }
}

impl Cache {
    /// The place for a line that has come; none where the scheme has each line stay that might leave.
    pub(super) fn place_for(&self, line: u64, policy: &mut Policy) -> Option<usize> {
        let Some(search) = policy.victims.filter(|_| self.l1.find(line).is_none()) else {
            return Some(self.l1.place_for(line));
        };
        let places = self.l1.places_for(line);
        places.into_iter().take(search.ways(self.l1.ways())).find(|&place| !self.keeps(place, policy))
    }

    /// The scheme has the line in a place stay.
    fn keeps(&self, place: usize, policy: &mut Policy) -> bool {
        match self.l1.occupant(place) {
            Some((line, LineState::Modified)) if policy.victims.is_some() && Medium::of(line) == Medium::Nvm => {
                policy.offer(&Offer::Victim(line)) != Admission::Goes
            }
            _ => false,
        }
    }

    /// A probe of a line that waits for a place waits with it, and a recall of one that is to stay waits, too;
    /// any other comes back.
    pub(super) fn probe_now(&mut self, probe: Probe, policy: &mut Policy) -> Option<Probe> {
        let waits = self.kept.arrivals.iter().position(|arrival| self.line_of(arrival.tag) == probe.line);
        if let Some(at) = waits {
            self.kept.arrivals[at].probe = Some(probe);
            return None;
        }
        let kept = self.l1.find(probe.line).filter(|&place| probe.recall && self.keeps(place, policy));
        let Some(place) = kept else { return Some(probe) };
        let Probe { line, mut room, .. } = probe;
        put_bytes(&mut room, self.l1.line(place));
        // What the core stores from now on waits behind the recall, at the home.
        self.l1.set_state(place, LineState::Shared);
        self.kept.recalled.push((line, room));
        None
    }

    /// Recalls of lines that need stay no more are answered. The lines that the L1 has lost.
    pub(super) fn answer_recalls(&mut self, policy: &mut Policy, cx: &mut Ctx<'_, Msg>) -> Vec<u64> {
        let mut lost = Vec::new();
        for (line, room) in std::mem::take(&mut self.kept.recalled) {
            if policy.offer(&Offer::Victim(line)) != Admission::Goes {
                self.kept.recalled.push((line, room));
                continue;
            }
            if let Some(place) = self.l1.find(line) {
                self.l1.remove(place);
                lost.push(line);
            }
            let (from, dependencies) = (self.from, policy.dependencies(line));
            self.send(line, CpuMsg::ProbeAck { line, from, dirty: true, room, dependencies }, 0, cx);
        }
        lost
    }

    /// Bytes that recalled lines go home with.
    pub(super) fn recalled_lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.kept.recalled.iter().map(|(line, room)| (*line, &room.bytes[..64]))
    }
}
