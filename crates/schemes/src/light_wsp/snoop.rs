//! LightWSP at an L2 slice: which dirty lines may leave.
//!
//! A dirty line that leaves is dropped, as its bytes come to memory by the persist path. If it left while a
//! copy of a store to it is on its way, a load could fetch the bytes before that store. The paper searches
//! the front-end buffer for lines that leave an L1; here lines are dirty in the L2, and a slice counts for
//! each line the stores it has performed whose copies have not come to the controller, which tells it. A home
//! slice of cores counts the same of lines that come back to it: a core says with each how many copies it
//! made since it got it, so that a line which goes from core to core is kept, too. Source: LightWSP section
//! IV-G. Where cores search their own buffers (`snoop = "feb"`), or nobody does, every line may leave.
//! Invariant: a line with such stores is not dropped; a line whose copies come first (they have their own
//! path) may count below nothing meanwhile. Copies in their SM wait for the path alone, so that a line is
//! kept for a time that does not depend on regions.

use hashbrown::HashMap;

use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::handler::{
    AccessKind, Handler, HandlerReport, HomeEvent, HomeHandler, Outbox, Peer, SchemeMessage, SliceEvent, SliceHandler,
    SliceInterests, VictimSearch, opened,
};

use super::messages::RegionMessage;

/// The handler of a slice, or a home slice.
#[derive(Debug)]
pub(super) struct VictimSnoop {
    /// None where it keeps no line.
    search: Option<VictimSearch>,
    /// By line: stores performed, less copies that have come. Looked up alone, never gone through.
    ahead: HashMap<u64, i32>,
    looked: u64,
    conflicts: u64,
}

state!(VictimSnoop { saved: ahead, looked, conflicts; kept: search });

impl VictimSnoop {
    pub(super) fn new(search: Option<VictimSearch>) -> Self {
        VictimSnoop { search, ahead: HashMap::new(), looked: 0, conflicts: 0 }
    }

    fn add(&mut self, line: u64, count: i32) {
        let ahead = self.ahead.entry(line).or_default();
        *ahead += count;
        if *ahead == 0 {
            self.ahead.remove(&line);
        }
    }

    /// A dirty line is to leave: true where it stays.
    fn looks(&mut self, line: u64) -> bool {
        if self.search.is_none() {
            return false;
        }
        self.looked += 1;
        let stays = self.ahead.get(&line).is_some_and(|&ahead| ahead > 0);
        self.conflicts += u64::from(stays);
        stays
    }
}

impl Handler for VictimSnoop {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, _: &mut Outbox) {
        if let RegionMessage::Arrived(line) = opened(message) {
            self.add(line, -1);
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        report.count("victims_searched_lines", self.looked);
        report.count("victim_conflicts_lines", self.conflicts);
    }
}

impl SliceHandler for VictimSnoop {
    fn interests(&self) -> SliceInterests {
        SliceInterests { victims: self.search, ..SliceInterests::default() }
    }

    fn event(&mut self, event: &SliceEvent<'_>, _: &mut Outbox) {
        if let SliceEvent::Accessed(access) = event
            && matches!(access.kind, AccessKind::Store | AccessKind::Atomic)
        {
            self.add(access.line, 1);
        }
    }

    fn keeps(&mut self, line: u64, _: &mut Outbox) -> bool {
        self.looks(line)
    }
}

impl HomeHandler for VictimSnoop {
    fn search(&self) -> VictimSearch {
        self.search.unwrap_or(VictimSearch::Full)
    }

    fn event(&mut self, event: &HomeEvent<'_>, _: &mut Outbox) {
        match *event {
            // A core brings what it stored, and says how many copies it made.
            HomeEvent::Taken { line, dependencies } => {
                let copies: u64 = dependencies.iter().map(|of| of.id).sum();
                self.add(line, copies as i32);
            }
            HomeEvent::Given { .. } => {}
        }
    }

    fn keeps(&mut self, line: u64) -> bool {
        self.looks(line)
    }
}
