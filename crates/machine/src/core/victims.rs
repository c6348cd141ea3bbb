//! Which line leaves an L1 for another, and which is given back, where a scheme has dirty lines stay.
//!
//! The rules are in the head of [`super::kept`], with their source. Invariant: a scheme without
//! [`CorePolicy::victims`](durawarp_persist::handler::CorePolicy) is asked nothing.

use crate::coherence::HomeMsg;
use crate::msg::Msg;
use durawarp_engine::Ctx;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Admission, CoreOffer};

use super::cache::{Cache, put_bytes};
use super::handler_host::CoreHost;
use super::kept::Probe;
use super::l1d::LineState;

impl Cache {
    /// The place for a line that has come; none where the scheme has each line stay that might leave.
    pub(super) fn place_for(&self, line: u64, host: &mut CoreHost) -> Option<usize> {
        let Some(search) = host.policy.victims.filter(|_| self.l1.find(line).is_none()) else {
            return Some(self.l1.place_for(line));
        };
        let places = self.l1.places_for(line);
        places.into_iter().take(search.ways(self.l1.ways())).find(|&place| !self.keeps(place, host))
    }

    /// The scheme has the line in a place stay.
    fn keeps(&self, place: usize, host: &mut CoreHost) -> bool {
        match self.l1.occupant(place) {
            Some((line, LineState::Modified)) if host.policy.victims.is_some() && Medium::of(line) == Medium::Nvm => {
                host.offer(&CoreOffer::Victim(line)) != Admission::Goes
            }
            _ => false,
        }
    }

    /// A probe of a line that waits for a place waits with it; a recall of one that stays waits, too.
    /// Any other comes back.
    pub(super) fn probe_now(&mut self, probe: Probe, host: &mut CoreHost) -> Option<Probe> {
        let waits = self.kept.arrivals.iter().position(|arrival| self.line_of(arrival.tag) == probe.line);
        if let Some(at) = waits {
            self.kept.arrivals[at].probe = Some(probe);
            return None;
        }
        let kept = self.l1.find(probe.line).filter(|&place| probe.recall && self.keeps(place, host));
        let Some(place) = kept else { return Some(probe) };
        let Probe { line, mut room, .. } = probe;
        put_bytes(&mut room, self.l1.line(place));
        // What the core stores from now on waits behind the recall, at the home.
        self.l1.set_state(place, LineState::Shared);
        self.kept.recalled.push((line, room));
        None
    }

    /// Recalls of lines that need stay no more are answered. The lines that the L1 has lost.
    pub(super) fn answer_recalls(&mut self, host: &mut CoreHost, cx: &mut Ctx<'_, Msg>) -> Vec<u64> {
        let mut lost = Vec::new();
        for (line, room) in std::mem::take(&mut self.kept.recalled) {
            if host.offer(&CoreOffer::Victim(line)) != Admission::Goes {
                self.kept.recalled.push((line, room));
                continue;
            }
            if let Some(place) = self.l1.find(line) {
                self.l1.remove(place);
                lost.push(line);
            }
            let (from, dependencies) = (self.from, host.dependencies(line));
            self.send(line, HomeMsg::ProbeAck { line, from, dirty: true, room, dependencies }, 0, cx);
        }
        lost
    }

    /// Bytes that recalled lines go home with.
    pub(super) fn recalled_lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.kept.recalled.iter().map(|(line, room)| (*line, &room.bytes[..64]))
    }
}
