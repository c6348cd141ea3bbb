//! AGPM at its places: the path selector and a sampled AGPM buffer in SMs, a bank of the shared AGPM buffer
//! and the reservation buffer in each L2 slice.
//!
//! ```text
//!   SM: selector ── log updates non-temporal, or through the caches
//!       L1 buffer ──line leaves the L1──> L2 bank ──line leaves the L2──> reservation buffer ──comes back──> L2 bank
//! ```
//! The L2's buffer is one; a line has one slice, so each slice keeps the entries of its own lines: what is
//! counted does not depend on the cut. Nor does who makes room for whom where sets are indexed, as far as a
//! set's lines are of one slice; where the buffer is associative, each slice has its share of it. The
//! reservation buffer lies in memory; what moves to it and back is counted in bytes.
//!
//! Each launch in flight has a way, a report and, of each buffer, entries of its own, as if entries named
//! their launch and every launch had the whole buffer: what another kernel touches is no evidence for it. The
//! paper has one kernel at a time (reading A19).
//!
//! Source: AGPM section IV-B. Readings, each a parameter ([`AgpmSpec`](super::parameters::AgpmSpec)): which
//! address a log update is tracked under (A2), what a hit is (A4). While the caches are bypassed nothing hits
//! in them; as a shadow directory (the default) a buffer counts accesses that reach an address with an entry,
//! whatever the caches hold. Then a store that evicts its line from the L1 leaves the entry there, and a
//! write-back that keeps the line in the L2 too. Not modelled: bandwidth of the moves from L1 to L2.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::buffer::{Buffer, BufferEntry, Counting, Places};
use super::messages::{AgpmMessage, LogReport};
use super::parameters::{
    AgpmSpec, Counted, FirstPath, Flags, Hit, KnownFor, L1Buffers, LogKey, LogUnit, Path, Placement, PmFirstByte,
    Routed, SharedMemory, Statistics, TemporalUnit,
};
use super::records::{Records, transaction};
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::handler::Move;
use durawarp_persist::non_temporal::NonTemporalStores;
use durawarp_persist::selection::Locality;
use durawarp_persist::{
    Access, AccessKind, Boundary, Handler, HandlerPlace, Outbox, Peer, Route, SchemeMessage, SliceEvent, SliceHandler,
    SmEvent, SmHandler, SmInterests, Store, StoreClass, StoreRule, WriteBack, WriteBackClass, WriteBackRule,
};

/// A buffer for each launch, and the readings of what happens at it; records in their place, where log
/// updates stay known.
#[derive(Debug)]
struct Level {
    spec: Arc<AgpmSpec>,
    places: Places,
    /// By places of launches.
    buffers: BTreeMap<u8, Buffer>,
    records: Records,
    /// Addresses of flags, from the first, and past the last, by places of launches.
    flags: BTreeMap<u8, [u64; 2]>,
}

state!(Level { parts: records; saved: buffers, flags; kept: spec, places });

impl Level {
    fn new(spec: &Arc<AgpmSpec>, places: Places) -> Self {
        let (spec, records, flags) = (spec.clone(), Records::default(), BTreeMap::new());
        Level { spec, places, buffers: BTreeMap::new(), records, flags }
    }

    fn is_flag(&self, access: &Access) -> bool {
        let flags = || self.flags.get(&access.launch).copied().unwrap_or_default();
        self.spec.flags == Flags::Untracked && (flags()[0]..flags()[1]).contains(&access.line)
    }

    /// The buffer of the launch in a place.
    fn buffer(&mut self, launch: u8) -> &mut Buffer {
        let most = ((1u16 << self.spec.counter_bits) - 1) as u8;
        let counting = Counting { most, first_sets: self.spec.pm_first_byte == PmFirstByte::Set };
        self.buffers.entry(launch).or_insert_with(|| Buffer::new(self.places, counting))
    }

    /// Takes the entries of a line out, with the places of their launches.
    fn take(&mut self, line: u64) -> Vec<(u8, BufferEntry)> {
        self.buffers.iter_mut().filter_map(|(&launch, buffer)| Some((launch, buffer.take(line)?))).collect()
    }

    /// An access is served at this level. Returns an entry that had to make room.
    fn serve(&mut self, access: &Access) -> Option<BufferEntry> {
        let update = is_update(&self.spec, access);
        let reads_or_writes = access.kind != AccessKind::WriteBack && !is_untracked(&self.spec, access);
        if !reads_or_writes || self.is_flag(access) {
            return None;
        }
        let hits = self.spec.hit == Hit::Shadow || access.hit;
        let addresses = match self.spec.temporal {
            TemporalUnit::Bytes => access.bytes,
            TemporalUnit::Transaction => transaction(access.bytes),
        };
        if self.spec.known == KnownFor::Program {
            self.records.refer(access, addresses, update, hits);
            return None;
        }
        let buffer = self.buffer(access.launch);
        let counts = hits || !buffer.has(access.line);
        if counts { buffer.refer(access.line, addresses, update) } else { None }
    }

    /// What was counted for the launch in a place, with saturated counters; it counts from 0 again, and its
    /// buffer is empty then.
    fn count(&mut self, launch: u8) -> (Locality, u64) {
        let (statistics, known) = (self.spec.statistics, self.spec.known);
        let hits = self.records.hits(launch);
        self.records.restart(launch);
        let buffer = self.buffer(launch);
        let locality = match statistics {
            _ if known == KnownFor::Program => hits,
            Statistics::CounterSum => buffer.sums(),
            Statistics::Hits => buffer.hits(),
        };
        let saturated = buffer.saturated();
        buffer.flush();
        (locality, saturated)
    }
}

/// The places of one of so many banks of a buffer. A line's set is that of the whole buffer, and a bank sees
/// its own lines'.
fn places(spec: &AgpmSpec, banks: u32) -> Places {
    let lines = spec.entries / 2;
    match spec.placement {
        Placement::Indexed => Places::Sets(lines as usize),
        Placement::Associative => Places::Lines(lines.div_ceil(banks.max(1)) as usize),
    }
}

/// It counts as a log update.
fn is_update(spec: &AgpmSpec, access: &Access) -> bool {
    match access.kind {
        AccessKind::Load => access.log && spec.key != LogKey::Slot,
        AccessKind::Store if access.log => spec.key != LogKey::Home,
        AccessKind::Store | AccessKind::Atomic => spec.counted == Counted::Requests,
        AccessKind::WriteBack => false,
    }
}

/// The log's own lines, where log updates are tracked under the elements that they save.
fn is_untracked(spec: &AgpmSpec, access: &Access) -> bool {
    spec.key == LogKey::Home && access.log && access.kind == AccessKind::Store
}

/// A launch at an SM.
#[derive(Debug)]
struct SmLaunch {
    kernel: String,
    path: Route,
    /// What has not been told to the hub yet.
    report: LogReport,
    /// Log updates since `alternate` changed the way.
    alternated: u64,
}

value!(record SmLaunch { kernel, path, report, alternated });

/// The selector of an SM, with its buffer where it is sampled.
#[derive(Debug)]
pub(super) struct SmSelector {
    spec: Arc<AgpmSpec>,
    l1: Option<Level>,
    /// What was decided for kernels that ran before.
    known: BTreeMap<String, Route>,
    /// By places of launches.
    launches: BTreeMap<u8, SmLaunch>,
    /// What bypassed the caches has no write-back to do.
    non_temporal: NonTemporalStores,
}

state!(SmSelector { parts: l1, non_temporal; saved: known, launches; kept: spec });

impl SmSelector {
    pub(super) fn new(spec: &Arc<AgpmSpec>, place: HandlerPlace) -> Self {
        let sampled = spec.l1_buffers == L1Buffers::Each || u32::from(place.index) == spec.sampled_sm;
        SmSelector {
            spec: spec.clone(),
            l1: sampled.then(|| Level::new(spec, places(spec, 1))),
            known: BTreeMap::new(),
            launches: BTreeMap::new(),
            non_temporal: NonTemporalStores::default(),
        }
    }

    /// The launch in a place. Before one starts there, log updates go the first way.
    fn at(&mut self, launch: u8) -> &mut SmLaunch {
        let path = first_path(&self.spec);
        self.launches.entry(launch).or_insert_with(|| SmLaunch::new(String::new(), path))
    }

    /// The way of the next log update of a launch.
    fn choose(&mut self, launch: u8) -> Route {
        let (path, alternate_logs) = (self.spec.path, self.spec.alternate_logs);
        match path {
            Path::Adaptive => self.at(launch).path,
            Path::Temporal => Route::Temporal,
            Path::NonTemporal => Route::NonTemporal,
            Path::Alternate => {
                let own = self.at(launch);
                own.alternated += 1;
                if own.alternated >= alternate_logs {
                    own.alternated = 0;
                    own.path = other(own.path);
                }
                own.path
            }
        }
    }

    fn leaves(launch: u8, entry: Option<BufferEntry>, outbox: &mut Outbox) {
        if let Some(entry) = entry {
            outbox.send(Peer::SliceOf(entry.line), AgpmMessage::Moved { launch, entry: Box::new(entry) });
        }
    }

    /// A line has left the L1.
    fn line_leaves(&mut self, line: u64, outbox: &mut Outbox) {
        let entries = self.l1.as_mut().map(|l1| l1.take(line)).unwrap_or_default();
        entries.into_iter().for_each(|(launch, entry)| Self::leaves(launch, Some(entry), outbox));
    }
}

impl SmLaunch {
    fn new(kernel: String, path: Route) -> Self {
        SmLaunch { kernel, path, report: LogReport::default(), alternated: 0 }
    }

    fn tell(&mut self, launch: u8, outbox: &mut Outbox) {
        if self.report != LogReport::default() {
            outbox.send(Peer::Hub, AgpmMessage::Report { launch, report: std::mem::take(&mut self.report) });
        }
    }
}

/// The way of log updates before anything is known.
pub(super) fn first_path(spec: &AgpmSpec) -> Route {
    match spec.first_path {
        FirstPath::NonTemporal => Route::NonTemporal,
        FirstPath::Temporal => Route::Temporal,
    }
}

fn other(path: Route) -> Route {
    if path == Route::Temporal { Route::NonTemporal } else { Route::Temporal }
}

impl SmSelector {
    /// The L1 serves an access.
    fn access(&mut self, access: &Access, outbox: &mut Outbox) {
        let counts = match self.spec.counted {
            Counted::Requests => access.kind != AccessKind::Load,
            Counted::LogUpdates => access.kind == AccessKind::Store && access.log,
        };
        if counts {
            let (unit, report_logs) = (self.spec.log_unit, self.spec.report_logs);
            let own = self.at(access.launch);
            own.report.logs += match unit {
                LogUnit::HalfWarps => u64::from(access.half_warps),
                LogUnit::Accesses => 1,
            };
            if own.report.logs >= report_logs {
                own.tell(access.launch, outbox);
            }
        }
        let Some(l1) = &mut self.l1 else { return };
        Self::leaves(access.launch, l1.serve(access), outbox);
        let passes = matches!(access.kind, AccessKind::Store | AccessKind::Atomic);
        if passes && access.hit && self.spec.hit == Hit::Cache {
            self.line_leaves(access.line, outbox);
        }
    }
}

impl Handler for SmSelector {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match AgpmMessage::of(message) {
            AgpmMessage::Path { kernel, route } => {
                for own in self.launches.values_mut().filter(|own| own.kernel == kernel) {
                    own.path = route;
                }
                self.known.insert(kernel, route);
            }
            AgpmMessage::Count(launch) => {
                let counted = self.l1.as_mut().map(|l1| l1.count(launch));
                let (locality, saturated) = counted.unwrap_or_default();
                outbox.send(Peer::Hub, AgpmMessage::Counts { launch, locality, saturated, spills: 0, refills: 0 });
            }
            AgpmMessage::Known { line, addresses } => {
                if let Some(l1) = &mut self.l1 {
                    l1.records.learn(line, addresses);
                }
            }
            other => panic!("AGPM's selector in an SM received {other:?}"),
        }
    }
}

impl SmHandler for SmSelector {
    fn interests(&self) -> SmInterests {
        let shared_memory = matches!(self.spec.shared_memory, SharedMemory::Stated | SharedMemory::Measured);
        SmInterests { accesses: true, shared_memory, ..SmInterests::default() }
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SmEvent::SharedRead { launch } => self.at(launch).report.exchanges += 1,
            SmEvent::KernelStarts(kernel) => {
                let path = self.known.get(&kernel.kernel).copied().unwrap_or_else(|| first_path(&self.spec));
                let own = self.at(kernel.place);
                (own.path, own.kernel) = (path, kernel.kernel.clone());
                if let Some(l1) = &mut self.l1 {
                    l1.flags.insert(kernel.place, kernel.flags);
                }
            }
            SmEvent::Accessed(access) => self.access(access, outbox),
            SmEvent::Replaced(line) => self.line_leaves(line, outbox),
            SmEvent::Acknowledged { cycles, launch, .. } => {
                let report = &mut self.at(launch).report;
                report.requests += 1;
                report.wait_cycles += cycles;
            }
            _ => {}
        }
    }

    fn boundary(&mut self, outbox: &mut Outbox) -> Boundary {
        self.launches.iter_mut().for_each(|(&launch, own)| own.tell(launch, outbox));
        Boundary::None
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let selected = store.class == StoreClass::Log
            || store.class == StoreClass::Data && !store.atomic && self.spec.routed == Routed::Requests;
        let route = match store.class {
            _ if selected => self.choose(store.launch),
            StoreClass::NonTemporal => Route::NonTemporal,
            StoreClass::Data | StoreClass::Log => Route::Temporal,
        };
        if selected {
            let report = &mut self.at(store.launch).report;
            let way = if route == Route::Temporal { &mut report.temporal } else { &mut report.non_temporal };
            *way += 1;
        }
        if store.class != StoreClass::NonTemporal {
            self.non_temporal.stored(store, route);
        }
        StoreRule::new(route, false)
    }

    /// What bypassed the caches left nothing to write back, whatever the way is now; what went through them
    /// did.
    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        if write_back.class != WriteBackClass::Flush && self.non_temporal.covers(write_back) {
            self.at(write_back.launch).report.dropped_write_backs += 1;
            WriteBackRule::Dropped
        } else {
            WriteBackRule::Written
        }
    }
}

/// A bank of the L2's buffer, and the reservation buffer behind it.
#[derive(Debug)]
pub(super) struct Bank {
    l2: Level,
    /// By places of launches, and lines.
    reserved: BTreeMap<(u8, u64), BufferEntry>,
    /// Entries that went there, and that came back, by places of launches.
    moved: BTreeMap<u8, [u64; 2]>,
}

state!(Bank { parts: l2; saved: reserved, moved });

impl Bank {
    pub(super) fn new(spec: &Arc<AgpmSpec>, place: HandlerPlace) -> Self {
        Bank {
            l2: Level::new(spec, places(spec, u32::from(place.slices))),
            reserved: BTreeMap::new(),
            moved: BTreeMap::new(),
        }
    }

    fn reserve(&mut self, launch: u8, entry: Option<BufferEntry>, outbox: &mut Outbox) {
        if let Some(entry) = entry {
            self.moved.entry(launch).or_default()[0] += 1;
            self.charge(Move::Out, outbox);
            self.reserved.insert((launch, entry.line), entry);
        }
    }

    /// A line has left the slice.
    fn line_leaves(&mut self, line: u64, outbox: &mut Outbox) {
        for (launch, entry) in self.l2.take(line) {
            self.reserve(launch, Some(entry), outbox);
        }
    }

    /// An entry moves to the reservation buffer or back.
    fn charge(&self, way: fn(u32) -> Move, outbox: &mut Outbox) {
        if self.l2.spec.charge_reservation {
            outbox.transfer(way(self.l2.spec.reservation_bytes));
        }
    }
}

impl Bank {
    /// Tells an SM that fetches a line, and has a buffer, which addresses of the line were logged.
    fn teach(&self, access: &Access, outbox: &mut Outbox) {
        let spec = &self.l2.spec;
        let sampled = spec.l1_buffers == L1Buffers::Each || u32::from(access.from) == spec.sampled_sm;
        let addresses = self.l2.records.of(access.line);
        if access.kind == AccessKind::Load && sampled && addresses != 0 {
            outbox.send(Peer::Sm(access.from), AgpmMessage::Known { line: access.line, addresses });
        }
    }

    /// The slice serves an access.
    fn access(&mut self, access: &Access, outbox: &mut Outbox) {
        if self.l2.spec.known == KnownFor::Program {
            self.l2.serve(access);
            return self.teach(access, outbox);
        }
        let shadow = self.l2.spec.hit == Hit::Shadow;
        let fetches = access.kind == AccessKind::Load;
        if (shadow || fetches)
            && let Some(entry) = self.reserved.remove(&(access.launch, access.line))
        {
            self.moved.entry(access.launch).or_default()[1] += 1;
            self.charge(Move::In, outbox);
            let gone = self.l2.buffer(access.launch).insert(entry);
            self.reserve(access.launch, gone, outbox);
        }
        let gone = self.l2.serve(access);
        self.reserve(access.launch, gone, outbox);
        if access.kind == AccessKind::WriteBack && !shadow {
            self.line_leaves(access.line, outbox);
        }
    }
}

impl Handler for Bank {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match AgpmMessage::of(message) {
            AgpmMessage::Moved { launch, entry } => {
                let gone = self.l2.buffer(launch).insert(*entry);
                self.reserve(launch, gone, outbox);
            }
            AgpmMessage::Count(launch) => {
                let (locality, saturated) = self.l2.count(launch);
                self.reserved.retain(|&(of, _), _| of != launch);
                let [spills, refills] = self.moved.remove(&launch).unwrap_or_default();
                outbox.send(Peer::Hub, AgpmMessage::Counts { launch, locality, saturated, spills, refills });
            }
            AgpmMessage::Flags { launch, addresses } => {
                self.l2.flags.insert(launch, addresses);
            }
            other => panic!("AGPM's bank in an L2 slice received {other:?}"),
        }
    }
}

impl SliceHandler for Bank {
    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SliceEvent::Accessed(access) => self.access(access, outbox),
            SliceEvent::Replaced(line) => self.line_leaves(line, outbox),
            SliceEvent::Drain(_) | SliceEvent::Durable(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
