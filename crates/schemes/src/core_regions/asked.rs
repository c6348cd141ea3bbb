//! At a controller: how far each core's regions have persisted there, and which cores want to know.
//!
//! Invariants: a core's regions persist in their order; who asks is answered once, at once or when the region
//! has persisted.

use durawarp_checkpoint::state;
use durawarp_persist::handler::{Outbox, Peer};

use super::messages::{CoreRegion, CoreRegionMessage};

/// Regions that have persisted, and questions.
#[derive(Debug)]
pub struct AskedRegions {
    /// By core.
    persisted: Vec<u32>,
    /// Who asked, in the order of asking.
    asked: Vec<(CoreRegion, u16)>,
}

state!(AskedRegions { sized: persisted; saved: asked });

impl AskedRegions {
    /// Of so many cores.
    pub fn new(cores: u16) -> AskedRegions {
        AskedRegions { persisted: vec![0; usize::from(cores)], asked: Vec::new() }
    }

    /// A core wants to know when a region has persisted.
    pub fn ask(&mut self, region: CoreRegion, core: u16, outbox: &mut Outbox) {
        if self.persisted[usize::from(region.core)] > region.number {
            outbox.send(Peer::Core(core), CoreRegionMessage::Told(region));
        } else {
            self.asked.push((region, core));
        }
    }

    /// A region has persisted here, after all before it of its core.
    pub fn has_persisted(&mut self, region: CoreRegion, outbox: &mut Outbox) {
        self.persisted[usize::from(region.core)] = region.number + 1;
        let answered = |(of, _): &mut (CoreRegion, u16)| of.core == region.core && of.number <= region.number;
        for (of, core) in self.asked.extract_if(.., answered) {
            outbox.send(Peer::Core(core), CoreRegionMessage::Told(of));
        }
    }
}
