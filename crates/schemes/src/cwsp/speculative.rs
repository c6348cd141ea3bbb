//! cWSP at a memory controller: stores that are written ahead of their turn, and those that wait for it.
//!
//! | a store comes | what becomes of it |
//! |---|---|
//! | of its core's oldest region here | held until all controllers have the region's boundary, then written |
//! | of a later region | old bytes into the undo log, then written |
//! | the same, to a line of which something is held | held until its own region's turn |
//!
//! Source: LightWSP sections I and II-C2; readings in [`super`]. What a power failure leaves: what is held,
//! the write queue, the undo log, boundaries that count, and bdry-ACKs, also those under way. Invariants: a
//! boundary counts when all logged writes of its region that came before it are in the write queue; a core's
//! regions persist in their order; of a line nothing is written before what is held of it. A store has its
//! place in the front-end buffer until it is written or its region is the oldest: so an oldest region always
//! comes to its end, and no more is under way than cores' buffers have and a region of each.

use std::collections::{BTreeMap, VecDeque};

use crate::core_regions::account::{Account, Stage};
use crate::core_regions::asked::AskedRegions;
use crate::core_regions::held::HeldStores;
use crate::core_regions::messages::{Copied, CoreRegion, CoreRegionMessage};
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::handler::{
    ControllerEvent, ControllerHandler, Handler, HandlerPlace, HandlerReport, Held, Outbox, Peer, SchemeMessage, opened,
};
use durawarp_persist::vocab::RegionStep;

/// What a controller knows of a region that has not persisted here.
#[derive(Debug, Default)]
struct UnpersistedRegion {
    /// Its stores that have come.
    stores: u32,
    /// Slots of stores that wait for its turn.
    held: Vec<usize>,
    /// How many of them are in the front-end buffer still.
    untaken: u32,
    /// Writes that the write queue has not taken yet.
    writing: u32,
    /// Its boundary has come.
    ended: bool,
    /// So have all its stores here.
    bounded: bool,
    /// Other controllers that have told the same.
    acks: u16,
    /// What was held is being written.
    flushes: bool,
}

value!(record UnpersistedRegion {
    stores, held, untaken, writing, ended, bounded, acks, flushes,
});

/// The regions of a core, from the oldest on.
#[derive(Debug, Default)]
struct OfCore {
    number: u32,
    regions: VecDeque<UnpersistedRegion>,
}

value!(record OfCore { number, regions });

impl OfCore {
    fn region(&mut self, number: u32) -> &mut UnpersistedRegion {
        let place = (number - self.number) as usize;
        while self.regions.len() <= place {
            self.regions.push_back(UnpersistedRegion::default());
        }
        &mut self.regions[place]
    }

    /// What its oldest region waits for.
    fn stage(&self, others: u16) -> Stage {
        match self.regions.front() {
            None => Stage::Unknown,
            Some(oldest) if !oldest.bounded => Stage::Boundary,
            Some(oldest) if oldest.acks < others => Stage::BoundaryAcks,
            Some(_) => Stage::Flush,
        }
    }
}

/// The handler of a controller.
#[derive(Debug)]
pub(super) struct SpeculativeWrites {
    place: HandlerPlace,
    stores: HeldStores,
    cores: Vec<OfCore>,
    /// By line: stores held for their region's turn.
    waiting: BTreeMap<u64, u32>,
    asked: AskedRegions,
    account: Account,
    persisted: u64,
    logged: u64,
    held: u64,
}

state!(SpeculativeWrites {
    parts: asked; sized: cores; saved: stores, waiting, account, persisted, logged, held; kept: place
});

impl SpeculativeWrites {
    pub(super) fn new(place: HandlerPlace) -> SpeculativeWrites {
        SpeculativeWrites {
            place,
            stores: HeldStores::default(),
            cores: (0..place.cores).map(|_| OfCore::default()).collect(),
            waiting: BTreeMap::new(),
            asked: AskedRegions::new(place.cores),
            account: Account::new(place.cores.into(), place.controllers),
            persisted: 0,
            logged: 0,
            held: 0,
        }
    }

    fn store(&mut self, region: CoreRegion, copied: Copied, outbox: &mut Outbox) {
        let line = copied.line;
        outbox.send(Peer::HomeOf(line), CoreRegionMessage::Arrived(line));
        let of = &mut self.cores[usize::from(region.core)];
        // Without that a younger store could be under an older one in the end.
        let waits = region.number == of.number || self.waiting.contains_key(&line);
        let own = of.region(region.number);
        own.stores += 1;
        self.account.grew(own.stores, 1, u32::MAX);
        if waits {
            let author = region.at(self.place.index);
            outbox.note_bytes(RegionStep::Buffered, author, line, copied.mask, &copied.bytes);
            own.held.push(self.stores.insert(region, copied));
            own.untaken += 1;
            *self.waiting.entry(line).or_default() += 1;
            self.held += 1;
            self.take(region.core, outbox);
        } else {
            own.writing += 1;
            let slot = self.stores.insert(region, copied);
            outbox.flush(self.stores.flush(slot, self.place.index, true));
            self.logged += 1;
        }
    }

    /// What is held of a core's oldest region needs no place in its front-end buffer any more.
    fn take(&mut self, core: u16, outbox: &mut Outbox) {
        let Some(oldest) = self.cores[usize::from(core)].regions.front_mut() else { return };
        for _ in 0..std::mem::take(&mut oldest.untaken) {
            outbox.send(Peer::Core(core), CoreRegionMessage::Taken);
        }
    }

    /// A region's boundary counts once all that was written ahead of it is in the write queue.
    fn meet_boundary(&mut self, region: CoreRegion, outbox: &mut Outbox) {
        let own = self.cores[usize::from(region.core)].region(region.number);
        if !own.ended || own.bounded || own.writing > 0 {
            return;
        }
        own.bounded = true;
        outbox.note(RegionStep::Bounded, region.at(self.place.index));
        for other in (0..self.place.controllers).filter(|&other| other != self.place.index) {
            outbox.send(Peer::Controller(other), CoreRegionMessage::BoundaryAck(region));
        }
        self.advance(region.core, outbox);
    }

    /// Does what is due for the oldest regions of a core.
    fn advance(&mut self, core: u16, outbox: &mut Outbox) {
        let (index, others) = (self.place.index, self.place.controllers - 1);
        loop {
            let of = &mut self.cores[usize::from(core)];
            let region = CoreRegion { core, number: of.number };
            let Some(front) = of.regions.front_mut().filter(|front| front.bounded && front.acks >= others) else {
                return;
            };
            if !std::mem::replace(&mut front.flushes, true) {
                front.writing += front.held.len() as u32;
                for &slot in &front.held {
                    outbox.flush(self.stores.flush(slot, index, false));
                }
            }
            if front.writing > 0 {
                return;
            }
            of.number += 1;
            of.regions.pop_front();
            self.persisted += 1;
            outbox.note(RegionStep::Done, region.at(index));
            outbox.note(RegionStep::Committed, region.at(index));
            outbox.send(Peer::Core(core), CoreRegionMessage::Persisted(region));
            self.asked.has_persisted(region, outbox);
            self.take(core, outbox);
        }
    }

    /// The write queue has taken a store: its core.
    fn written(&mut self, slot: usize, outbox: &mut Outbox) -> u16 {
        let (region, line) = self.stores.remove(slot);
        let own = self.cores[usize::from(region.core)].region(region.number);
        own.writing -= 1;
        if own.flushes {
            // It was held.
            if let Some(count) = self.waiting.get_mut(&line) {
                *count -= 1;
                if *count == 0 {
                    self.waiting.remove(&line);
                }
            }
            self.advance(region.core, outbox);
        } else {
            outbox.send(Peer::Core(region.core), CoreRegionMessage::Taken);
            self.meet_boundary(region, outbox);
        }
        region.core
    }

    /// Notes down what the oldest region of a core waits for now.
    fn keep_account(&mut self, core: u16, from: Option<u16>, outbox: &Outbox) {
        let of = &self.cores[usize::from(core)];
        let stage = of.stage(self.place.controllers - 1);
        self.account.see(core.into(), of.number, stage, from, outbox.now());
    }
}

impl Handler for SpeculativeWrites {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let (core, other) = match (opened(message), from) {
            (CoreRegionMessage::Store(region, copied), _) => {
                self.store(region, copied, outbox);
                (region.core, None)
            }
            (CoreRegionMessage::Boundary(region), _) => {
                self.cores[usize::from(region.core)].region(region.number).ended = true;
                self.meet_boundary(region, outbox);
                (region.core, None)
            }
            (CoreRegionMessage::BoundaryAck(region), Peer::Controller(other)) => {
                self.cores[usize::from(region.core)].region(region.number).acks += 1;
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
        report.count("logged_stores", self.logged);
        report.count("held_stores", self.held);
        report.count("most_held_stores_summed", self.stores.most());
        report.regions = Some(self.account.report());
        let left: usize = self.cores.iter().map(|of| of.regions.len()).sum();
        if left > 0 {
            let what = format!("{left} regions have not persisted");
            report.waits.push((format!("speculation of controller {}", self.place.index), what));
        }
    }
}

impl ControllerHandler for SpeculativeWrites {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        if let ControllerEvent::Flushed(token) = *event {
            let core = self.written(token as usize, outbox);
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
