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
use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::handler::Move;
use durawarp_persist::non_temporal::NonTemporalStores;
use durawarp_persist::selection::Locality;
use durawarp_persist::{
    Access, AccessKind, Boundary, Handler, HandlerPlace, Outbox, Peer, Route, SchemeMessage, SliceEvent, SliceHandler,
    SmEvent, SmHandler, SmInterests, Store, StoreClass, StoreRule, WriteBack, WriteBackClass, WriteBackRule,
};

/// A buffer and the readings of what happens at it; records in its place, where log updates stay known.
#[derive(Debug)]
struct Level {
    spec: Arc<AgpmSpec>,
    buffer: Buffer,
    records: Records,
    /// Addresses of flags, from the first, and past the last.
    flags: [u64; 2],
}

state!(Level { parts: buffer, records; saved: flags; kept: spec });

impl Level {
    fn new(spec: &Arc<AgpmSpec>, places: Places) -> Self {
        let most = ((1u16 << spec.counter_bits) - 1) as u8;
        let counting = Counting { most, first_sets: spec.pm_first_byte == PmFirstByte::Set };
        Level { spec: spec.clone(), buffer: Buffer::new(places, counting), records: Records::default(), flags: [0; 2] }
    }

    fn is_flag(&self, line: u64) -> bool {
        self.spec.flags == Flags::Untracked && (self.flags[0]..self.flags[1]).contains(&line)
    }

    /// An access is served at this level. Returns an entry that had to make room.
    fn serve(&mut self, access: &Access) -> Option<BufferEntry> {
        let update = is_update(&self.spec, access);
        let reads_or_writes = access.kind != AccessKind::WriteBack && !is_untracked(&self.spec, access);
        if !reads_or_writes || self.is_flag(access.line) {
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
        let counts = hits || !self.buffer.has(access.line);
        if counts { self.buffer.refer(access.line, addresses, update) } else { None }
    }

    /// Counts from 0 again; a buffer is empty then.
    fn flush(&mut self) {
        self.buffer.flush();
        self.records.restart();
    }

    fn locality(&self) -> Locality {
        match self.spec.statistics {
            _ if self.spec.known == KnownFor::Program => self.records.hits(),
            Statistics::CounterSum => self.buffer.sums(),
            Statistics::Hits => self.buffer.hits(),
        }
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

/// The selector of an SM, with its buffer where it is sampled.
#[derive(Debug)]
pub(super) struct SmSelector {
    spec: Arc<AgpmSpec>,
    l1: Option<Level>,
    path: Route,
    /// What was decided for kernels that ran before.
    known: BTreeMap<String, Route>,
    kernel: String,
    /// What has not been told to the hub yet.
    report: LogReport,
    /// Log updates since `alternate` changed the way.
    alternated: u64,
    /// What bypassed the caches has no write-back to do.
    non_temporal: NonTemporalStores,
}

state!(SmSelector { parts: l1, non_temporal; saved: path, known, kernel, report, alternated; kept: spec });

impl SmSelector {
    pub(super) fn new(spec: &Arc<AgpmSpec>, place: HandlerPlace) -> Self {
        let sampled = spec.l1_buffers == L1Buffers::Each || u32::from(place.index) == spec.sampled_sm;
        SmSelector {
            spec: spec.clone(),
            l1: sampled.then(|| Level::new(spec, places(spec, 1))),
            path: first_path(spec),
            known: BTreeMap::new(),
            kernel: String::new(),
            report: LogReport::default(),
            alternated: 0,
            non_temporal: NonTemporalStores::default(),
        }
    }

    /// The way of the next log update.
    fn choose(&mut self) -> Route {
        match self.spec.path {
            Path::Adaptive => self.path,
            Path::Temporal => Route::Temporal,
            Path::NonTemporal => Route::NonTemporal,
            Path::Alternate => {
                self.alternated += 1;
                if self.alternated >= self.spec.alternate_logs {
                    self.alternated = 0;
                    self.path = other(self.path);
                }
                self.path
            }
        }
    }

    fn tell(&mut self, outbox: &mut Outbox) {
        if self.report != LogReport::default() {
            outbox.send(Peer::Hub, AgpmMessage::Report(std::mem::take(&mut self.report)));
        }
    }

    fn leaves(entry: Option<BufferEntry>, outbox: &mut Outbox) {
        if let Some(entry) = entry {
            outbox.send(Peer::SliceOf(entry.line), AgpmMessage::Moved(Box::new(entry)));
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
            self.report.logs += match self.spec.log_unit {
                LogUnit::HalfWarps => u64::from(access.half_warps),
                LogUnit::Accesses => 1,
            };
            if self.report.logs >= self.spec.report_logs {
                self.tell(outbox);
            }
        }
        let Some(l1) = &mut self.l1 else { return };
        Self::leaves(l1.serve(access), outbox);
        let passes = matches!(access.kind, AccessKind::Store | AccessKind::Atomic);
        if passes && access.hit && self.spec.hit == Hit::Cache {
            Self::leaves(l1.buffer.take(access.line), outbox);
        }
    }
}

impl Handler for SmSelector {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match AgpmMessage::of(message) {
            AgpmMessage::Path { kernel, route } => {
                if kernel == self.kernel {
                    self.path = route;
                }
                self.known.insert(kernel, route);
            }
            AgpmMessage::Count => {
                let (mut locality, mut saturated) = (Locality::default(), 0);
                if let Some(l1) = &mut self.l1 {
                    (locality, saturated) = (l1.locality(), l1.buffer.saturated());
                    l1.flush();
                }
                outbox.send(Peer::Hub, AgpmMessage::Counts { locality, saturated, spills: 0, refills: 0 });
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
            SmEvent::SharedRead => self.report.exchanges += 1,
            SmEvent::KernelStarts(kernel) => {
                self.path = self.known.get(&kernel.kernel).copied().unwrap_or_else(|| first_path(&self.spec));
                self.kernel.clone_from(&kernel.kernel);
                if let Some(l1) = &mut self.l1 {
                    l1.flags = kernel.flags;
                }
            }
            SmEvent::Accessed(access) => self.access(access, outbox),
            SmEvent::Replaced(line) => {
                if let Some(l1) = &mut self.l1 {
                    Self::leaves(l1.buffer.take(line), outbox);
                }
            }
            SmEvent::Acknowledged { cycles, .. } => {
                self.report.requests += 1;
                self.report.wait_cycles += cycles;
            }
            _ => {}
        }
    }

    fn boundary(&mut self, outbox: &mut Outbox) -> Boundary {
        self.tell(outbox);
        Boundary::None
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let selected = store.class == StoreClass::Log
            || store.class == StoreClass::Data && !store.atomic && self.spec.routed == Routed::Requests;
        let route = match store.class {
            _ if selected => self.choose(),
            StoreClass::NonTemporal => Route::NonTemporal,
            StoreClass::Data | StoreClass::Log => Route::Temporal,
        };
        if selected {
            let way = if route == Route::Temporal { &mut self.report.temporal } else { &mut self.report.non_temporal };
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
            self.report.dropped_write_backs += 1;
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
    reserved: BTreeMap<u64, BufferEntry>,
    spills: u64,
    refills: u64,
}

state!(Bank { parts: l2; saved: reserved, spills, refills });

impl Bank {
    pub(super) fn new(spec: &Arc<AgpmSpec>, place: HandlerPlace) -> Self {
        Bank {
            l2: Level::new(spec, places(spec, u32::from(place.slices))),
            reserved: BTreeMap::new(),
            spills: 0,
            refills: 0,
        }
    }

    fn reserve(&mut self, entry: Option<BufferEntry>, outbox: &mut Outbox) {
        if let Some(entry) = entry {
            self.spills += 1;
            self.charge(Move::Out, outbox);
            self.reserved.insert(entry.line, entry);
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
            && let Some(entry) = self.reserved.remove(&access.line)
        {
            self.refills += 1;
            self.charge(Move::In, outbox);
            let gone = self.l2.buffer.insert(entry);
            self.reserve(gone, outbox);
        }
        let gone = self.l2.serve(access);
        self.reserve(gone, outbox);
        if access.kind == AccessKind::WriteBack && !shadow {
            let written = self.l2.buffer.take(access.line);
            self.reserve(written, outbox);
        }
    }
}

impl Handler for Bank {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match AgpmMessage::of(message) {
            AgpmMessage::Moved(entry) => {
                let gone = self.l2.buffer.insert(*entry);
                self.reserve(gone, outbox);
            }
            AgpmMessage::Count => {
                let locality = self.l2.locality();
                let saturated = self.l2.buffer.saturated();
                self.l2.flush();
                self.reserved.clear();
                let (spills, refills) = (std::mem::take(&mut self.spills), std::mem::take(&mut self.refills));
                outbox.send(Peer::Hub, AgpmMessage::Counts { locality, saturated, spills, refills });
            }
            AgpmMessage::Flags(flags) => self.l2.flags = flags,
            other => panic!("AGPM's bank in an L2 slice received {other:?}"),
        }
    }
}

impl SliceHandler for Bank {
    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SliceEvent::Accessed(access) => self.access(access, outbox),
            SliceEvent::Replaced(line) => {
                let gone = self.l2.buffer.take(line);
                self.reserve(gone, outbox);
            }
            SliceEvent::Drain(_) | SliceEvent::Durable(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
