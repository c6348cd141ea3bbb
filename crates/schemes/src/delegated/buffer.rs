//! The persist buffers of a core, one for each hart: stores to persistent memory and ordering fences, in the
//! order in which they leave the store buffer. In the NIC: one for each channel, whose fences end verbs.
//!
//! | an entry is | on | and then |
//! |---|---|---|
//! | queued, a store | it is the first not sent, depends on nothing, asks no home | it is sent |
//! | queued, a fence | the same | a barrier is sent; it is free once all before it are |
//! | sent | `Drained` | it is free; entries before it may not be |
//!
//! A dependency `(hart, id)` means that all entries of that hart's buffer up to `id` have to be durable. One
//! that a line brings (`CoreEvent::Taken`) is of every hart of the core, and goes with the next entry of
//! each: buffers are FIFOs, so that it holds for all that follow. Harts of a core share an L1: what one loads
//! or overwrites that another stored is found here.
//!
//! A hart remembers for each line that it stored what must be durable before anything that follows from the
//! store: the store's own entry, or, where it is not persistent (a lock), the last fence before it. So it
//! does until that is durable.
//!
//! With data direct I/O a channel's line goes to its home first, and has its entry from then on: what others
//! follow from it by is known, and what it depends on comes with the home's answer. A channel has one such
//! entry, the last: none that has an entry behind it waits for a home, which may wait for lines that depend
//! on entries.
//!
//! Source: persistence parallelism, section IV-B; delegated persist ordering (MICRO'16). Invariants: entries
//! leave in order; a buffer never holds more than `pb_entries`. Knowledge of what is durable only grows:
//! `Resolved` may come before the line whose dependency it ends.

use std::collections::VecDeque;

use hashbrown::HashMap;
use smallvec::SmallVec;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::bytes::copy_masked;
use durawarp_persist::dependency::{Dependencies, Dependency, depend};
use durawarp_persist::journal::{Author, FactKind};
use durawarp_persist::{
    Admission, CoreEvent, CoreFences, CoreHandler, CoreOffer, CorePolicy, Handler, HandlerPlace, HandlerReport,
    NicEvent, NicHandler, Outbox, PathStore, Peer, SchemeMessage, opened,
};

use super::buckets::Buckets;
use super::ends::LinesByEntry;
use super::filter::Filter;
use super::messages::{DelegatedMessage, Persist};
use super::parameters::{BufferSpec, DependencyTracking};

/// What an entry is for.
#[derive(Debug)]
enum Content {
    Store {
        line: u64,
        mask: u128,
        bytes: Box<[u8; 128]>,
        author: Author,
    },
    /// An ordering fence, with the lines that were stored behind it.
    Fence(Box<Filter>),
}

value!(choice Content { Store { line, mask, bytes, author }, Fence(lines) });

#[derive(Debug)]
struct BufferEntry {
    id: u64,
    content: Content,
    /// What must be durable before it leaves.
    after: Dependencies,
    /// The home of its line has not answered what that is.
    asks: bool,
    /// Stores in it.
    stores: u32,
    /// Messages of it that are not durable.
    outstanding: u32,
}

value!(record BufferEntry { id, content, after, asks, stores, outstanding });

/// The buffer of a hart.
#[derive(Debug, Default)]
struct Buffer {
    entries: VecDeque<BufferEntry>,
    /// Of these, from the front, were sent.
    sent: usize,
    /// The last number that was given away.
    last: u64,
    /// Every entry up to this one is durable.
    prefix: u64,
    last_fence: u64,
    /// What the next entry depends on.
    accumulated: Dependencies,
    /// Lines that went home while they depended on an entry: the homes are told when it is durable.
    told: LinesByEntry,
    /// Lines that the hart stored to, each until that is durable.
    stored: LinesByEntry,
    /// A store or a fence waits for room.
    full: bool,
}

value!(record Buffer {
    entries, sent, last, prefix, last_fence, accumulated, told, stored, full,
});

/// What buffers counted.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    entries: u64,
    coalesced: u64,
    fences: u64,
    empty_fences: u64,
    dependencies_taken: u64,
    dependent_entries: u64,
    most_entries: u64,
    /// How full a buffer was with each entry that came.
    fill: Buckets,
    /// Stores and fences that found their buffer full.
    full_waits: u64,
}

value!(record Tally {
    entries, coalesced, fences, empty_fences, dependencies_taken, dependent_entries, most_entries, fill, full_waits,
});

/// How full a buffer was, by quarters; the last but one has room for an entry or more.
const FILL: [&str; 5] = [
    "persist_fill_to_1_quarter",
    "persist_fill_to_2_quarters",
    "persist_fill_to_3_quarters",
    "persist_fill_below_full",
    "persist_fill_full",
];

/// The persist buffers of a core.
#[derive(Debug)]
pub(super) struct PersistBuffers {
    spec: BufferSpec,
    /// Number of the first hart.
    first: u16,
    buffers: Vec<Buffer>,
    /// By line, for each hart: the entry that whoever follows from its last store there depends on. Looked up
    /// alone, never gone through.
    stored: HashMap<u64, SmallVec<[u64; 2]>>,
    /// By hart of the machine: every entry up to this one is durable, as far as is known here.
    resolved: Vec<u64>,
    /// They are of channels of the NIC: the host is told of fences that are durable.
    settles: bool,
    tally: Tally,
}

state!(PersistBuffers { sized: buffers, resolved; saved: stored, tally; kept: spec, first, settles });

impl PersistBuffers {
    /// Empty buffers of a core's harts.
    pub(super) fn of_harts(spec: BufferSpec, place: HandlerPlace) -> PersistBuffers {
        let harts = place.harts.max(1);
        PersistBuffers::new(spec, (place.index * harts, harts), place.cores * harts + place.channels)
    }

    /// Empty buffers of the channels of the NIC, which have their numbers behind all harts.
    pub(super) fn of_channels(spec: BufferSpec, place: HandlerPlace) -> PersistBuffers {
        let harts = place.cores * place.harts.max(1);
        let buffers = PersistBuffers::new(spec, (harts, place.channels), harts + place.channels);
        PersistBuffers { settles: true, ..buffers }
    }

    /// Empty buffers of so many harts from the first on, of so many in all.
    fn new(spec: BufferSpec, (first, harts): (u16, u16), all: u16) -> PersistBuffers {
        PersistBuffers {
            spec,
            first,
            buffers: (0..harts).map(|_| Buffer::default()).collect(),
            stored: HashMap::new(),
            resolved: vec![0; usize::from(all)],
            settles: false,
            tally: Tally::default(),
        }
    }

    /// A fence of a channel is durable.
    fn settle(&self, hart: u8, outbox: &mut Outbox) {
        if self.settles {
            outbox.settle(Author::Channel(hart.into()));
        }
    }

    /// What a hart does next depends on what other harts of the core stored to a line.
    fn follow(&mut self, hart: u8, line: u64) {
        if self.buffers.len() == 1 {
            return;
        }
        for other in (0..self.buffers.len()).filter(|&other| other != usize::from(hart)) {
            if let Some(on) = self.left_by(other, line) {
                depend(&mut self.buffers[usize::from(hart)].accumulated, on);
            }
        }
    }

    /// What follows from the last store of a hart to a line depends on, while it is not durable.
    fn left_by(&self, hart: usize, line: u64) -> Option<Dependency> {
        let buffer = &self.buffers[hart];
        let id = match self.spec.dependency {
            DependencyTracking::Exact => self.stored.get(&line)?.get(hart).copied()?,
            DependencyTracking::Bloom => buffer.filtered(line)?,
        };
        (id > buffer.prefix).then_some(Dependency { hart: self.first + hart as u16, id })
    }

    /// A hart's buffer has room for an entry. It may be asked again and again.
    fn admits(&mut self, hart: u8) -> bool {
        let buffer = &mut self.buffers[usize::from(hart)];
        let full = buffer.entries.len() >= self.spec.pb_entries as usize;
        self.tally.full_waits += u64::from(full && !buffer.full);
        buffer.full = full;
        !full
    }

    /// All that a hart stored is durable, and all that it has followed from: the fence is not weaker than one
    /// that orders.
    fn is_durable(&mut self, hart: u8) -> bool {
        let (resolved, buffer) = (&self.resolved, &mut self.buffers[usize::from(hart)]);
        buffer.accumulated.retain(|on| is_open(resolved, *on));
        buffer.entries.is_empty() && buffer.accumulated.is_empty()
    }

    /// A hart has stored to a line: what follows from it depends on this entry.
    fn remember(&mut self, hart: u8, line: u64, id: u64) {
        let (at, harts) = (usize::from(hart), self.buffers.len());
        self.buffers[at].note(line);
        if self.spec.dependency == DependencyTracking::Bloom || id <= self.buffers[at].prefix {
            return;
        }
        let ids = self.stored.entry(line).or_insert_with(|| SmallVec::from_elem(0, harts));
        if ids[at] != id {
            ids[at] = id;
            self.buffers[at].stored.insert(id, line);
        }
    }

    /// A new entry of a hart, with what it depends on.
    fn push(&mut self, hart: u8, content: Content) -> u64 {
        let buffer = &mut self.buffers[usize::from(hart)];
        buffer.last += 1;
        let after = std::mem::take(&mut buffer.accumulated);
        self.tally.dependent_entries += u64::from(!after.is_empty());
        let entry = BufferEntry { id: buffer.last, content, after, asks: false, stores: 1, outstanding: 0 };
        buffer.entries.push_back(entry);
        let entries = buffer.entries.len() as u64;
        self.tally.most_entries = self.tally.most_entries.max(entries);
        self.tally.fill.add_share(entries, u64::from(self.spec.pb_entries));
        buffer.last
    }

    fn store(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) {
        let hart = store.by;
        self.follow(hart, store.line);
        let id = match self.merge(store, outbox) {
            Some(id) => id,
            None => self.enter(store, outbox),
        };
        self.remember(hart, store.line, id);
        self.send(hart, outbox);
    }

    /// A store gets an entry.
    fn enter(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) -> u64 {
        self.tally.entries += 1;
        let (line, mask, bytes, author) = (store.line, store.mask, Box::new(*store.bytes), store.author);
        let id = self.push(store.by, Content::Store { line, mask, bytes, author });
        outbox.note_fact(FactKind::Buffered, store.author.in_entry(id as u32, 1));
        id
    }

    /// A line of a channel is on its way to its home.
    fn post(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) {
        self.follow(store.by, store.line);
        let id = self.enter(store, outbox);
        self.remember(store.by, store.line, id);
        if let Some(entry) = self.buffers[usize::from(store.by)].entries.back_mut() {
            entry.asks = true;
        }
    }

    /// The home of a channel's last line has answered.
    fn answered(&mut self, hart: u8, dependencies: &[Dependency], outbox: &mut Outbox) {
        let Some(entry) = self.buffers[usize::from(hart)].entries.iter_mut().rfind(|entry| entry.asks) else {
            unreachable!("no line of channel {hart} is on its way to its home")
        };
        entry.asks = false;
        dependencies.iter().for_each(|&on| depend(&mut entry.after, on));
        self.tally.dependencies_taken += dependencies.len() as u64;
        self.send(hart, outbox);
    }

    /// Adds a store to an entry of its line that is not durable in the same epoch, if there is one, and
    /// nothing that the store depends on came between. The bytes follow an entry that was sent.
    fn merge(&mut self, store: &PathStore<'_>, outbox: &mut Outbox) -> Option<u64> {
        let of = self.first + u16::from(store.by);
        let buffer = &mut self.buffers[usize::from(store.by)];
        if !self.spec.coalesce || !buffer.accumulated.is_empty() {
            return None;
        }
        let sent = buffer.sent;
        for (at, entry) in buffer.entries.iter_mut().enumerate().rev() {
            match &mut entry.content {
                // What is behind a fence comes after what is before it.
                Content::Fence(_) => return None,
                Content::Store { line, mask, bytes, author } if *line == store.line => {
                    if at < sent && entry.outstanding == 0 {
                        return None;
                    }
                    entry.stores += 1;
                    self.tally.coalesced += 1;
                    let author_in = store.author.in_entry(entry.id as u32, entry.stores);
                    outbox.note_fact(FactKind::Buffered, author_in);
                    // Its bytes are here until the controller hands it over: these follow them.
                    if at < sent {
                        entry.outstanding += 1;
                        let (id, line, mask, bytes) = (entry.id, *line, store.mask, Box::new(*store.bytes));
                        let persist = Persist { hart: of, id, author: author_in, line, mask, bytes };
                        outbox.send(Peer::ControllerOf(line), DelegatedMessage::Persist(persist));
                    } else {
                        *mask |= store.mask;
                        *author = store.author;
                        copy_masked(bytes, store.bytes, store.mask);
                    }
                    return Some(entry.id);
                }
                Content::Store { .. } if !entry.after.is_empty() => return None,
                Content::Store { .. } => {}
            }
        }
        None
    }

    /// An ordering fence: none is needed where nothing is before it.
    fn fence(&mut self, hart: u8, outbox: &mut Outbox) {
        let buffer = &mut self.buffers[usize::from(hart)];
        let behind_store = buffer.entries.back().is_some_and(|entry| matches!(entry.content, Content::Store { .. }));
        if !behind_store && buffer.accumulated.is_empty() {
            self.tally.empty_fences += 1;
            // A channel's fence comes behind lines: these are durable already.
            self.settle(hart, outbox);
            return;
        }
        self.tally.fences += 1;
        let id = self.push(hart, Content::Fence(Box::default()));
        self.buffers[usize::from(hart)].last_fence = id;
        self.send(hart, outbox);
    }

    /// Sends what may leave, in order, and frees what is durable.
    fn send(&mut self, hart: u8, outbox: &mut Outbox) {
        let of = self.first + u16::from(hart);
        while let Some(entry) = self.buffers[usize::from(hart)].first_unsent() {
            let resolved = &self.resolved;
            entry.after.retain(|on| is_open(resolved, *on));
            if entry.asks || !entry.after.is_empty() {
                break;
            }
            match &entry.content {
                Content::Store { line, mask, bytes, author } => {
                    let persist = Persist {
                        hart: of,
                        id: entry.id,
                        author: author.in_entry(entry.id as u32, entry.stores),
                        line: *line,
                        mask: *mask,
                        bytes: bytes.clone(),
                    };
                    entry.outstanding += 1;
                    outbox.send(Peer::ControllerOf(persist.line), DelegatedMessage::Persist(persist));
                }
                Content::Fence(_) => outbox.send(Peer::Controller(0), DelegatedMessage::Barrier { hart: of }),
            }
            self.buffers[usize::from(hart)].sent += 1;
        }
        self.free(hart, outbox);
    }

    /// Frees entries from the front, and tells homes of lines that depended on them.
    fn free(&mut self, hart: u8, outbox: &mut Outbox) {
        let at = usize::from(hart);
        let buffer = &mut self.buffers[at];
        let (before, mut fences) = (buffer.prefix, 0);
        while buffer.sent > 0
            && let Some(first) = buffer.entries.front()
            && first.outstanding == 0
        {
            buffer.prefix = first.id;
            fences += usize::from(matches!(first.content, Content::Fence(_)));
            buffer.entries.pop_front();
            buffer.sent -= 1;
        }
        if buffer.prefix == before {
            return;
        }
        (0..fences).for_each(|_| self.settle(hart, outbox));
        let buffer = &mut self.buffers[at];
        // Whoever got a line that depended on what is durable now is told by way of the line's home.
        let (prefix, of) = (buffer.prefix, self.first + u16::from(hart));
        while let Some(line) = buffer.told.pop_up_to(prefix) {
            outbox.send(Peer::HomeOf(line), DelegatedMessage::Resolved { hart: of, id: prefix });
        }
        while let Some(line) = self.buffers[at].stored.pop_up_to(prefix) {
            if let Some(ids) = self.stored.get(&line)
                && ids.iter().zip(&self.buffers).all(|(id, buffer)| *id <= buffer.prefix)
            {
                self.stored.remove(&line);
            }
        }
        self.resolve(of, prefix, outbox);
    }

    /// Entries of a hart's buffer up to this one are durable.
    fn resolve(&mut self, hart: u16, id: u64, outbox: &mut Outbox) {
        let known = &mut self.resolved[usize::from(hart)];
        if id <= *known {
            return;
        }
        *known = id;
        for own in 0..self.buffers.len() as u8 {
            let on = |on: &Dependency| on.hart == hart;
            if self.buffers[usize::from(own)].first_unsent().is_some_and(|entry| entry.after.iter().any(on)) {
                self.send(own, outbox);
            }
        }
    }

    fn drained(&mut self, hart: u16, id: u64, persists: u32, outbox: &mut Outbox) {
        let own = (hart - self.first) as u8;
        let entries = &mut self.buffers[usize::from(own)].entries;
        match entries.binary_search_by_key(&id, |entry| entry.id) {
            Ok(at) => entries[at].outstanding -= persists,
            Err(_) => unreachable!("entry {id} of hart {hart} is drained twice"),
        }
        self.send(own, outbox);
    }

    /// A line goes home: what follows from it depends on what the harts stored there.
    fn give(&mut self, line: u64, outbox: &mut Outbox) {
        for hart in 0..self.buffers.len() {
            if let Some(on) = self.left_by(hart, line) {
                outbox.depend(on);
                self.buffers[hart].told.insert(on.id, line);
            }
        }
    }
}

/// It is not known to be durable.
fn is_open(resolved: &[u64], on: Dependency) -> bool {
    on.id > resolved[usize::from(on.hart)]
}

impl Buffer {
    fn first_unsent(&mut self) -> Option<&mut BufferEntry> {
        self.entries.get_mut(self.sent)
    }

    /// A line has been stored behind the last fence.
    fn note(&mut self, line: u64) {
        let last = self.entries.iter_mut().rev().find_map(|entry| match &mut entry.content {
            Content::Fence(filter) => Some(filter),
            Content::Store { .. } => None,
        });
        if let Some(filter) = last {
            filter.add(line);
        }
    }

    /// The last entry that a store of this line may depend on, by fences' filters: an entry of the line
    /// itself, or a fence that may have the line behind it.
    fn filtered(&self, line: u64) -> Option<u64> {
        let hit = |entry: &&BufferEntry| match &entry.content {
            Content::Store { line: of, .. } => *of == line,
            Content::Fence(filter) => filter.may_have(line),
        };
        self.entries.iter().rev().find(hit).map(|entry| entry.id)
    }
}

impl Handler for PersistBuffers {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            DelegatedMessage::Drained { hart, id, persists } => self.drained(hart, id, persists, outbox),
            DelegatedMessage::Resolved { hart, id } => self.resolve(hart, id, outbox),
            other => panic!("a persist buffer received {other:?} from {from:?}"),
        }
    }

    fn occupancy(&self, lane: usize) -> Option<u64> {
        self.buffers.get(lane).map(|buffer| buffer.entries.len() as u64)
    }

    fn report(&self, report: &mut HandlerReport) {
        let tally = &self.tally;
        report.count("persist_entries", tally.entries);
        report.count("persist_coalesced_stores", tally.coalesced);
        report.count("persist_fence_entries", tally.fences);
        report.count("persist_empty_fences", tally.empty_fences);
        report.count("persist_dependencies_taken", tally.dependencies_taken);
        report.count("persist_dependent_entries", tally.dependent_entries);
        report.count("persist_most_entries_summed", tally.most_entries);
        report.count("persist_full_waits", tally.full_waits);
        tally.fill.report(FILL, report);
        for (hart, buffer) in self.buffers.iter().enumerate() {
            let Some(first) = buffer.entries.get(buffer.sent).or(buffer.entries.front()) else { continue };
            let who = format!("persist buffer of hart {}", usize::from(self.first) + hart);
            let on: Vec<String> = first.after.iter().map(|on| format!("entry {} of hart {}", on.id, on.hart)).collect();
            let what = if on.is_empty() { "its entries to be durable".to_owned() } else { on.join(", ") };
            report.waits.push((who, what));
        }
    }
}

impl CoreHandler for PersistBuffers {
    /// The buffer has what a hart cleans.
    fn policy(&self) -> CorePolicy {
        CorePolicy { fences: CoreFences::Order, dependencies: true, ..CorePolicy::default() }
    }

    fn offer(&mut self, offer: &CoreOffer, _: &mut Outbox) -> Admission {
        Admission::goes_if(match *offer {
            CoreOffer::Issue(hart) => self.admits(hart),
            CoreOffer::Durable(hart) => self.is_durable(hart),
            CoreOffer::Victim(_) | CoreOffer::Rename { .. } | CoreOffer::GiveUp(_) => true,
        })
    }

    fn event(&mut self, event: &CoreEvent<'_>, outbox: &mut Outbox) {
        match *event {
            CoreEvent::Stored(store) => self.store(store, outbox),
            CoreEvent::StoredVolatile { hart, line } => {
                self.follow(hart, line);
                let fence = self.buffers[usize::from(hart)].last_fence;
                self.remember(hart, line, fence);
            }
            CoreEvent::Observed { hart, line } => self.follow(hart, line),
            CoreEvent::Fenced(hart) => self.fence(hart, outbox),
            CoreEvent::Given(line) => self.give(line, outbox),
            CoreEvent::Taken { dependencies, .. } => {
                // Homes leave the core's own harts out.
                for &on in dependencies.iter().filter(|&&on| is_open(&self.resolved, on)) {
                    self.tally.dependencies_taken += 1;
                    self.buffers.iter_mut().for_each(|buffer| depend(&mut buffer.accumulated, on));
                }
            }
            CoreEvent::AwaitsIssue { .. }
            | CoreEvent::AtomicPerformed(_)
            | CoreEvent::ThreadBegun
            | CoreEvent::RegionEnds { .. }
            | CoreEvent::Retired { .. }
            | CoreEvent::WrittenBack { .. }
            | CoreEvent::RegionPersisted { .. } => {}
        }
    }
}

/// A channel stands for a hart, and the end of a verb for a fence.
impl NicHandler for PersistBuffers {
    fn has_room(&mut self, channel: u8) -> bool {
        self.admits(channel)
    }

    fn event(&mut self, event: &NicEvent<'_>, outbox: &mut Outbox) {
        match *event {
            NicEvent::Stored(store) => self.store(store, outbox),
            NicEvent::Posted(store) => {
                self.post(store, outbox);
                // Its home is told which entry makes the line durable, before anyone can get it from there.
                self.give(store.line, outbox);
            }
            NicEvent::Answered { channel, dependencies } => self.answered(channel, dependencies, outbox),
            NicEvent::VerbEnds(channel) => self.fence(channel, outbox),
        }
    }
}
