//! A home slice under regions that each core orders: which dirty lines may be dropped, and which regions a
//! line brings to a core that gets it.
//!
//! A core says with a line how many copies of it it has made since it got it, and the last region that stored
//! to it. The slice keeps the line until all of these have come to its controller, since a dirty line that
//! leaves is dropped. The regions go along to any core that gets the line, the controllers being asked by
//! that core whether they have persisted. Invariants: what waits here waits for persist paths alone, not for
//! cores; copies may come before their line, which counts below nothing meanwhile.

use hashbrown::HashMap;

use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::dependency::{Dependencies, Dependency, depend};
use durawarp_persist::handler::{
    Handler, HandlerPlace, HandlerReport, HomeEvent, HomeHandler, Outbox, Peer, SchemeMessage, opened,
};

use super::messages::{CoreRegion, CoreRegionMessage};

/// How many copies a core has made of a line that it gives, as a dependency.
pub(super) fn copies(core: u16, count: u32) -> Dependency {
    Dependency { hart: core, id: count.into() }
}

/// A region that stored to a line, as a dependency on a machine of so many cores.
pub(super) fn stored_by(region: CoreRegion, cores: u16) -> Dependency {
    Dependency { hart: cores + region.core, id: u64::from(region.number) + 1 }
}

/// The region that a dependency names; none where it is a number of copies.
pub(super) fn region_of(of: Dependency, cores: u16) -> Option<CoreRegion> {
    let core = of.hart.checked_sub(cores)?;
    Some(CoreRegion { core, number: (of.id - 1) as u32 })
}

/// The handler of a home slice.
#[derive(Debug)]
pub struct HomeLines {
    cores: u16,
    /// By line: copies made, less those that have come. Looked up alone, as the next.
    ahead: HashMap<u64, i64>,
    /// By line: of each core the last region that stored to it.
    regions: HashMap<u64, Dependencies>,
    looked: u64,
    kept: u64,
}

state!(HomeLines { saved: ahead, regions, looked, kept; kept: cores });

impl HomeLines {
    /// Of a machine.
    pub fn new(place: HandlerPlace) -> HomeLines {
        HomeLines { cores: place.cores, ahead: HashMap::new(), regions: HashMap::new(), looked: 0, kept: 0 }
    }

    fn count(&mut self, line: u64, copies: i64) {
        let ahead = self.ahead.entry(line).or_default();
        *ahead += copies;
        if *ahead == 0 {
            self.ahead.remove(&line);
        }
    }
}

impl Handler for HomeLines {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, _: &mut Outbox) {
        match opened(message) {
            CoreRegionMessage::Arrived(line) => self.count(line, -1),
            other => panic!("a home slice received {other:?} from {from:?}"),
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        report.count("victims_searched_lines", self.looked);
        report.count("victim_conflicts_lines", self.kept);
    }
}

impl HomeHandler for HomeLines {
    fn event(&mut self, event: &HomeEvent<'_>, outbox: &mut Outbox) {
        match *event {
            HomeEvent::Taken { line, dependencies } => {
                for &of in dependencies {
                    match region_of(of, self.cores) {
                        Some(_) => depend(self.regions.entry(line).or_default(), of),
                        None => self.count(line, of.id as i64),
                    }
                }
            }
            HomeEvent::Given { line, to } => {
                let of_others = |of: &&Dependency| of.hart != self.cores + to;
                let regions = self.regions.get(&line).into_iter().flatten();
                regions.filter(of_others).for_each(|&of| outbox.depend(of));
            }
        }
    }

    fn keeps(&mut self, line: u64) -> bool {
        self.looked += 1;
        let stays = self.ahead.get(&line).is_some_and(|&ahead| ahead > 0);
        self.kept += u64::from(stays);
        stays
    }
}
