//! Capri at a memory controller: the part of the back-end buffer that is there.
//!
//! ```text
//!   stores of a core ──> held ─┐ its boundary here, bdry-ACKs of all other controllers
//!                              └──> write queue ──> all written: the core is told
//! ```
//! Source: LightWSP sections II-C2, V-B; readings in [`super`]. What a power failure leaves: what is held,
//! the write queue, boundaries that have come, and bdry-ACKs, also those under way. A region is written only
//! where all controllers have its boundary, so that recovery writes what is left of it everywhere.
//!
//! Invariants: all that is held of a core is of one region, as its path stops behind a boundary; a core's
//! bdry-ACKs are of that region, too. Nothing here looks at a region's number but for the journal, and to
//! answer cores that ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core_regions::account::{Account, Stage};
use crate::core_regions::asked::AskedRegions;
use crate::core_regions::held::HeldStores;
use crate::core_regions::messages::{Copied, CoreRegion, CoreRegionMessage};
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::handler::{
    ControllerEvent, ControllerHandler, Handler, HandlerPlace, HandlerReport, Held, Outbox, Peer, SchemeMessage, opened,
};
use durawarp_persist::vocab::RegionStep;

use super::parameters::CapriSpec;

/// What a controller has of a core.
#[derive(Debug, Default)]
struct OfCore {
    /// Slots of what is held and not on its way to the write queue.
    held: Vec<usize>,
    /// The region whose boundary has come.
    bounded: Option<CoreRegion>,
    /// Controllers that have told of theirs.
    acks: u16,
    /// Its stores are being written.
    flushes: bool,
    /// Writes that the write queue has not taken yet.
    flushing: u32,
    /// Its regions that have been written here: the number of its oldest, for the account.
    written: u32,
}

value!(record OfCore { held, bounded, acks, flushes, flushing, written });

impl OfCore {
    /// What its oldest region waits for.
    fn stage(&self, others: u16) -> Stage {
        match self.bounded {
            None if self.held.is_empty() => Stage::Unknown,
            None => Stage::Boundary,
            Some(_) if self.acks < others => Stage::BoundaryAcks,
            Some(_) => Stage::Flush,
        }
    }
}

/// The handler of a controller.
#[derive(Debug)]
pub(super) struct BackEndBuffer {
    spec: Arc<CapriSpec>,
    place: HandlerPlace,
    stores: HeldStores,
    cores: Vec<OfCore>,
    asked: AskedRegions,
    account: Account,
    persisted: u64,
    beyond: u64,
}

state!(BackEndBuffer {
    parts: asked; sized: cores; saved: stores, account, persisted, beyond; kept: spec, place
});

impl BackEndBuffer {
    pub(super) fn new(spec: Arc<CapriSpec>, place: HandlerPlace) -> BackEndBuffer {
        BackEndBuffer {
            spec,
            place,
            stores: HeldStores::default(),
            cores: (0..place.cores).map(|_| OfCore::default()).collect(),
            asked: AskedRegions::new(place.cores),
            account: Account::new(place.cores.into(), place.controllers),
            persisted: 0,
            beyond: 0,
        }
    }

    fn store(&mut self, region: CoreRegion, copied: Copied, outbox: &mut Outbox) {
        outbox.send(Peer::HomeOf(copied.line), CoreRegionMessage::Arrived(copied.line));
        outbox.send(Peer::Core(region.core), CoreRegionMessage::Taken);
        let author = region.at(self.place.index);
        outbox.note_bytes(RegionStep::Buffered, author, copied.line, copied.mask, &copied.bytes);
        let slot = self.stores.insert(region, copied);
        let of = &mut self.cores[usize::from(region.core)];
        of.held.push(slot);
        self.account.grew(of.held.len() as u32, 1, self.spec.backend_entries);
        self.beyond += u64::from(of.held.len() as u64 == u64::from(self.spec.backend_entries) + 1);
    }

    fn boundary(&mut self, region: CoreRegion, outbox: &mut Outbox) {
        self.cores[usize::from(region.core)].bounded = Some(region);
        outbox.note(RegionStep::Bounded, region.at(self.place.index));
        for other in (0..self.place.controllers).filter(|&other| other != self.place.index) {
            outbox.send(Peer::Controller(other), CoreRegionMessage::BoundaryAck(region));
        }
        self.advance(region.core, outbox);
    }

    /// Notes down what the oldest region of a core waits for now.
    fn keep_account(&mut self, core: u16, from: Option<u16>, outbox: &Outbox) {
        let of = &self.cores[usize::from(core)];
        let stage = of.stage(self.place.controllers - 1);
        self.account.see(core.into(), of.written, stage, from, outbox.now());
    }

    /// Does what is due for a core's region.
    fn advance(&mut self, core: u16, outbox: &mut Outbox) {
        let (index, others) = (self.place.index, self.place.controllers - 1);
        let of = &mut self.cores[usize::from(core)];
        let Some(region) = of.bounded.filter(|_| of.acks >= others) else { return };
        // Every controller has the boundary, so the region survives a power failure.
        if !std::mem::replace(&mut of.flushes, true) {
            of.flushing = of.held.len() as u32;
            for slot in of.held.drain(..) {
                outbox.flush(self.stores.flush(slot, index, false));
            }
        }
        if of.flushing > 0 {
            return;
        }
        let written = of.written + 1;
        *of = OfCore { acks: of.acks - others, held: std::mem::take(&mut of.held), written, ..OfCore::default() };
        self.persisted += 1;
        outbox.note(RegionStep::Done, region.at(index));
        outbox.note(RegionStep::Committed, region.at(index));
        outbox.send(Peer::Core(core), CoreRegionMessage::Persisted(region));
        self.asked.has_persisted(region, outbox);
    }
}

impl Handler for BackEndBuffer {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let (core, other) = match (opened(message), from) {
            (CoreRegionMessage::Store(region, copied), _) => {
                self.store(region, copied, outbox);
                (region.core, None)
            }
            (CoreRegionMessage::Boundary(region), _) => {
                self.boundary(region, outbox);
                (region.core, None)
            }
            (CoreRegionMessage::BoundaryAck(region), Peer::Controller(other)) => {
                self.cores[usize::from(region.core)].acks += 1;
                self.advance(region.core, outbox);
                (region.core, Some(other))
            }
            (CoreRegionMessage::Asked(region), Peer::Core(core)) => return self.asked.ask(region, core, outbox),
            (other, from) => panic!("a controller received {other:?} from {from:?}"),
        };
        self.keep_account(core, other, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        report.count("regions_persisted_summed", self.persisted);
        report.count("backend_most_entries_summed", self.stores.most());
        report.count("backend_overfull_regions", self.beyond);
        report.regions = Some(self.account.report());
        let left = self.stores.held().stores;
        if left > 0 {
            let what = format!("{left} stores of regions that have not ended everywhere");
            report.waits.push((format!("the back-end buffer of controller {}", self.place.index), what));
        }
    }
}

impl ControllerHandler for BackEndBuffer {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        if let ControllerEvent::Flushed(token) = *event {
            let core = self.stores.remove(token as usize).0.core;
            self.cores[usize::from(core)].flushing -= 1;
            self.advance(core, outbox);
            self.keep_account(core, None, outbox);
        }
    }

    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        self.stores.overlay(line, mask, bytes)
    }

    fn holds(&self, line: u64) -> bool {
        self.stores.holds(line)
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        self.stores.lines()
    }

    fn held(&self) -> Held {
        self.stores.held()
    }
}
