//! The handler in a core: the front-end buffer, its persist path, and regions of other cores that it waits
//! for.
//!
//! ```text
//!   store ──> [ entry, entry, end, entry ... ] ──persist path──> controllers ──taken──> room
//!                              └─ `stops`: nothing leaves until all controllers have persisted the region
//! ```
//! Source: LightWSP sections II-C2 and V-B (Capri's path, which stops), Table I (its bandwidth). An entry is
//! in use until its controller has it. Invariants: stores and boundaries leave in the order in which stores
//! became visible; a region without a store has no boundary; a core's regions are counted from 0 as they
//! open.

use std::collections::VecDeque;

use hashbrown::HashMap;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::Time;
use durawarp_persist::handler::{
    Admission, CoreEvent, CoreFences, CoreHandler, CoreOffer, CorePolicy, Handler, HandlerPlace, HandlerReport, Outbox,
    PathStore, Peer, SchemeMessage, opened,
};
use durawarp_persist::journal::Author;
use durawarp_persist::regions::RegionReport;
use durawarp_persist::vocab::RegionStep;

use super::lines::{copies, region_of, stored_by};
use super::messages::{Copied, CoreRegion, CoreRegionMessage};

/// A core's buffer and path, as a scheme has them.
#[derive(Debug, Clone, Copy)]
pub struct PathRule {
    /// Entries of the front-end buffer.
    pub feb_entries: u32,
    /// Bytes that a store takes on the path, and a boundary.
    pub entry_bytes: u32,
    /// Bandwidth of the path, in MB/s.
    pub path_mb_s: u32,
    /// Behind a boundary nothing leaves until all controllers have persisted the region.
    pub stops: bool,
}

/// What is to leave.
#[derive(Debug)]
enum PathItem {
    Store(CoreRegion, Author, Copied),
    End(CoreRegion, Author),
}

value!(choice PathItem { Store(region, author, copied), End(region, author) });

#[derive(Debug, Clone, Copy, Default)]
struct BufferTally {
    stores: u64,
    most_entries: u64,
    /// Regions that had ended and not persisted, at most.
    most_persisting: u64,
    /// From ends of regions until all controllers have persisted them, added up.
    persisting_ticks: u64,
    /// While the path stood still and something was in the buffer.
    stopped_ticks: u64,
    waited_regions: u64,
    wait_cycles: u64,
}

value!(record BufferTally {
    stores, most_entries, most_persisting, persisting_ticks, stopped_ticks, waited_regions, wait_cycles,
});

/// What the core knows of regions.
#[derive(Debug)]
struct KnownRegions {
    /// By core and controller: regions that have persisted there, as far as this core was told.
    persisted: Vec<Vec<u32>>,
    /// Regions of other cores that have to persist before a synchronisation.
    awaited: Vec<CoreRegion>,
}

state!(KnownRegions { sized: persisted; saved: awaited });

impl KnownRegions {
    /// So many regions of a core have persisted everywhere.
    fn of(&self, core: u16) -> u32 {
        self.persisted[usize::from(core)].iter().copied().min().unwrap_or_default()
    }

    fn tell(&mut self, region: CoreRegion, controller: u16) {
        let told = &mut self.persisted[usize::from(region.core)][usize::from(controller)];
        *told = (*told).max(region.number + 1);
        let known = self.of(region.core);
        self.awaited.retain(|awaited| awaited.core != region.core || awaited.number >= known);
    }
}

/// The handler of a core.
#[derive(Debug)]
pub struct CoreBuffer {
    rule: PathRule,
    place: HandlerPlace,
    items: VecDeque<PathItem>,
    /// Entries in use.
    used: u32,
    /// When the path is free, in parts of a tick: 1,000 times its MB/s to a tick.
    free: u128,
    /// Since when the path stands still, if it does.
    stopped: Option<Time>,
    /// Regions opened; the last of them goes on.
    opened: u32,
    is_open: bool,
    /// When regions ended that have not persisted everywhere.
    ended: VecDeque<Time>,
    known: KnownRegions,
    /// By line: copies made of it since it last went home, the last region that stored to it. Looked up
    /// alone, never gone through.
    lines: HashMap<u64, (u32, u32)>,
    /// Stores of the region that is open.
    region_stores: u64,
    tally: BufferTally,
    report: RegionReport,
}

state!(CoreBuffer {
    parts: known; saved: items, used, free, stopped, opened, is_open, ended, lines, region_stores, tally, report;
    kept: rule, place
});

impl CoreBuffer {
    /// Of a core.
    pub fn new(rule: PathRule, place: HandlerPlace) -> CoreBuffer {
        let (cores, controllers) = (usize::from(place.cores), usize::from(place.controllers));
        CoreBuffer {
            rule,
            place,
            items: VecDeque::new(),
            used: 0,
            free: 0,
            stopped: None,
            opened: 0,
            is_open: false,
            ended: VecDeque::new(),
            known: KnownRegions { persisted: vec![vec![0; controllers]; cores], awaited: Vec::new() },
            lines: HashMap::new(),
            region_stores: 0,
            tally: BufferTally::default(),
            report: RegionReport::default(),
        }
    }

    /// The region that was opened last.
    fn last(&self) -> CoreRegion {
        CoreRegion { core: self.place.index, number: self.opened - 1 }
    }

    /// Its own regions that all controllers have persisted.
    fn persisted(&self) -> u32 {
        self.known.of(self.place.index)
    }

    fn to_controllers(&self, delay: Time, outbox: &mut Outbox, word: impl Fn() -> CoreRegionMessage) {
        for controller in 0..self.place.controllers {
            outbox.send_in(delay, Peer::Controller(controller), word());
        }
    }

    /// An entry goes onto the path: the ticks until its tail is on it.
    fn transmit(&mut self, now: Time) -> Time {
        let scale = u128::from(self.rule.path_mb_s) * 1000;
        let bytes = u128::from(self.rule.entry_bytes);
        self.free = self.free.max(u128::from(now) * scale) + bytes * u128::from(self.place.tick_khz);
        self.free.div_ceil(scale) as Time - now
    }

    /// What may leave, leaves.
    fn pump(&mut self, outbox: &mut Outbox) {
        while self.stopped.is_none()
            && let Some(item) = self.items.pop_front()
        {
            let delay = self.transmit(outbox.now());
            match item {
                PathItem::Store(region, author, copied) => {
                    let author = author.in_region(region.number);
                    outbox.note_bytes(RegionStep::Stored, author, copied.line, copied.mask, &copied.bytes);
                    let to = Peer::ControllerOf(copied.line);
                    outbox.send_in(delay, to, CoreRegionMessage::Store(region, copied));
                }
                PathItem::End(region, author) => {
                    outbox.note(RegionStep::Ended, author.in_region(region.number));
                    self.to_controllers(delay, outbox, || CoreRegionMessage::Boundary(region));
                    self.stopped = self.rule.stops.then(|| outbox.now());
                }
            }
        }
    }

    fn copy(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) {
        if !self.is_open {
            self.is_open = true;
            self.opened += 1;
        }
        let region = self.last();
        // There was room when the store was admitted; one across lines enters whole.
        self.used += 1;
        self.tally.stores += 1;
        self.tally.most_entries = self.tally.most_entries.max(self.used.into());
        self.region_stores += 1;
        let (sizes, bytes) = (&mut self.report.sizes, u64::from(store.mask.count_ones()));
        (sizes.stores, sizes.entries, sizes.bytes) = (sizes.stores + 1, sizes.entries + 1, sizes.bytes + bytes);
        if store.checkpoint {
            self.report.checkpoints.stores += 1;
            self.report.checkpoints.bytes += bytes;
        }
        let (copies, last) = self.lines.entry(store.line).or_default();
        (*copies, *last) = (*copies + 1, region.number);
        let bytes = Box::new(*store.bytes);
        let copied = Copied { line: store.line, mask: store.mask, bytes };
        self.items.push_back(PathItem::Store(region, store.author, copied));
        self.pump(outbox);
    }

    fn end_region(&mut self, author: Author, outbox: &mut Outbox) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        self.report.sizes.ended(std::mem::take(&mut self.region_stores));
        self.ended.push_back(outbox.now());
        self.tally.most_persisting = self.tally.most_persisting.max(self.ended.len() as u64);
        self.items.push_back(PathItem::End(self.last(), author));
        self.pump(outbox);
    }

    /// A controller has persisted a region of this core.
    fn has_persisted(&mut self, region: CoreRegion, controller: u16, outbox: &mut Outbox) {
        let before = self.persisted();
        self.known.tell(region, controller);
        for _ in before..self.persisted() {
            let ended = self.ended.pop_front().unwrap_or_default();
            self.tally.persisting_ticks += outbox.now() - ended;
        }
        // The path stands still behind the last region of which a boundary has left.
        if self.persisted() > before
            && let Some(since) = self.stopped.take()
        {
            self.tally.stopped_ticks += if self.items.is_empty() { 0 } else { outbox.now() - since };
            self.pump(outbox);
        }
    }

    /// A line, or a thread, has come that regions of other cores have to persist before.
    fn await_regions(&mut self, regions: impl Iterator<Item = CoreRegion>, outbox: &mut Outbox) {
        for region in regions.filter(|region| region.core != self.place.index) {
            let is_covered = |awaited: &CoreRegion| awaited.core == region.core && awaited.number >= region.number;
            if self.known.of(region.core) > region.number || self.known.awaited.iter().any(is_covered) {
                continue;
            }
            self.known.awaited.push(region);
            self.tally.waited_regions += 1;
            self.to_controllers(0, outbox, || CoreRegionMessage::Asked(region));
        }
    }
}

impl Handler for CoreBuffer {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match (opened(message), from) {
            (CoreRegionMessage::Taken, _) => self.used -= 1,
            (CoreRegionMessage::Persisted(region), Peer::Controller(of)) => self.has_persisted(region, of, outbox),
            (CoreRegionMessage::Told(region), Peer::Controller(of)) => self.known.tell(region, of),
            (other, from) => panic!("a core's buffer received {other:?} from {from:?}"),
        }
    }

    /// Entries of the front-end buffer that are in use.
    fn occupancy(&self, lane: usize) -> Option<u64> {
        (lane == 0).then_some(self.used.into())
    }

    fn report(&self, report: &mut HandlerReport) {
        let ns = |ticks: u64| (u128::from(ticks) * 1_000_000 / u128::from(self.place.tick_khz.max(1))) as u64;
        report.regions = Some(self.report.clone());
        for (name, count) in [
            ("regions", self.opened.into()),
            ("feb_stores", self.tally.stores),
            ("feb_most_entries_summed", self.tally.most_entries),
            ("regions_most_persisting_summed", self.tally.most_persisting),
            ("regions_persisting_ns", ns(self.tally.persisting_ticks)),
            ("path_stopped_ns", ns(self.tally.stopped_ticks)),
            ("awaited_regions", self.tally.waited_regions),
            ("region_wait_cycles", self.tally.wait_cycles),
        ] {
            report.count(name, count);
        }
        if let Some(awaited) = self.known.awaited.first() {
            let what = format!("region {} of core {} to persist", awaited.number, awaited.core);
            report.waits.push((format!("the front-end buffer of core {}", self.place.index), what));
        }
    }
}

impl CoreHandler for CoreBuffer {
    /// Everything persists in order.
    fn policy(&self) -> CorePolicy {
        CorePolicy { fences: CoreFences::Pass, front_end: true, synchronises: true, ..CorePolicy::default() }
    }

    fn offer(&mut self, offer: &CoreOffer, _: &mut Outbox) -> Admission {
        Admission::goes_if(match offer {
            CoreOffer::Issue(_) => self.used < self.rule.feb_entries,
            CoreOffer::Durable(_) => self.known.awaited.is_empty(),
            CoreOffer::Victim(_) | CoreOffer::Rename { .. } | CoreOffer::GiveUp(_) => true,
        })
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        let (core, cores) = (self.place.index, self.place.cores);
        match *event {
            CoreEvent::Stored(store) => self.copy(store, outbox),
            CoreEvent::RegionEnds { author, .. } => self.end_region(author, outbox),
            CoreEvent::AwaitsIssue { waits, .. } => self.report.warps.room += u64::from(waits),
            // The home keeps the line until its copies have come, and names the region to who gets it.
            CoreEvent::Given(line) => {
                let Some((made, number)) = self.lines.remove(&line) else { return };
                outbox.depend(copies(core, made));
                if number >= self.persisted() {
                    outbox.depend(stored_by(CoreRegion { core, number }, cores));
                }
            }
            CoreEvent::Taken { dependencies, .. } => {
                self.await_regions(dependencies.iter().filter_map(|&of| region_of(of, cores)), outbox);
            }
            CoreEvent::ThreadBegun => {
                if self.opened > self.persisted() {
                    outbox.depend(stored_by(self.last(), cores));
                }
            }
            CoreEvent::RegionPersisted { waited, .. } => self.tally.wait_cycles += waited,
            CoreEvent::StoredVolatile { .. }
            | CoreEvent::AtomicPerformed(_)
            | CoreEvent::Observed { .. }
            | CoreEvent::Fenced(_)
            | CoreEvent::Retired { .. }
            | CoreEvent::WrittenBack { .. } => {}
        }
    }
}
