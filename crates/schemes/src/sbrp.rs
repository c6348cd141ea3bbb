//! `sbrp`: scoped buffered release persistency, by a persist buffer in each SM.
//!
//! ```text
//!   store to NVM ──> L1, block entry ─┐
//!   pm.ofence, pm.rel ──> order entry ─┴> persist buffer, in order ──window──> memory, past the L2's array
//!                                          stops at a block that comes behind one under way
//! ```
//! `pm.ofence` orders a warp's stores and `pm.dfence` waits until they are durable. `pm.rel.cta` orders as
//! well, and `pm.acq.cta` of another warp of the CTA puts what that stores behind; a release of a wider scope
//! waits for durability, and an acquire of one empties the L1 of what is clean.
//!
//! Source: SBRP (ASPLOS 2023), its public artifact. Readings: the flush is eager; an order entry comes with
//! the first store behind it, so that consecutive fences of a warp are one, and fences of several warps
//! always have a block between them; order is kept among warps of a CTA. A block that would have to join one
//! ahead of its own order waits until that has left. The flush stops at a block until those it comes behind
//! are durable, not until all under way are. `pm.sfence` and `pm.barrier.wi` are an oFence, as undo logs need
//! order alone; `pm.barrier.wg` is one of each warp that arrives; `pm.barrier.kr` waits for durability (SBRP
//! has no order across SMs without a wait). Warps behind a fence keep their priority. Write-backs of the
//! program are dropped. An atomic on persistent memory waits until it is durable.
//!
//! Where L1s do not combine stores nothing is dirty there: stores bypass the caches, and
//! [`store_order`](super::store_order) keeps the order. Invariants: blocks leave in the order in which they
//! came; a block comes behind earlier ones only.

use super::store_order::{StoreOrder, StoreOrderSpec, flushes_only};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use durawarp_base::spec;
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::promises::{Fences, Promises};
use durawarp_persist::{
    Admission, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, Joining, NonTemporalOrder, Outbox, Scheme,
    SmEvent, SmHandler, SmInterests, SmOffer, Store, StoreRule, Synchronisation, SynchronisationRule, WriteBack,
    WriteBackRule,
};

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("sbrp.toml");

spec! {
    /// Parameters of the persist buffers.
    pub struct SbrpSpec {
        /// Entries of an SM's persist buffer, blocks and orders together.
        pb_entries: u32 where 1..=65536,
        /// Lines of an SM that may be on their way to memory.
        window: u32 where 1..=65536,
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct Sbrp {
    spec: Arc<SbrpSpec>,
}

impl Sbrp {
    /// Persist buffers with these parameters.
    pub fn new(spec: SbrpSpec) -> Self {
        Sbrp { spec: Arc::new(spec) }
    }
}

/// A dirty line of the L1.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// The number of its first store, and its name.
    id: u64,
    line: u64,
    cta: u8,
    /// Blocks of its CTA up to here come first.
    after: u64,
}

value!(record Block { id, line, cta, after });

#[derive(Debug, Clone, Copy)]
enum QueuedPersist {
    Block(Block),
    /// What the warp of the block behind it stores from there on comes after what it stored ahead of it.
    Order,
}

value!(choice QueuedPersist { Block(block), Order });

#[derive(Debug, Default)]
struct BufferTally {
    blocks: u64,
    merged: u64,
    orders: u64,
    delayed: u64,
    full: u64,
    most: u64,
}

value!(record BufferTally { blocks, merged, orders, delayed, full, most });

/// A persist buffer.
#[derive(Debug)]
struct PersistBuffer {
    spec: Arc<SbrpSpec>,
    combines: bool,
    buffer: VecDeque<QueuedPersist>,
    /// Blocks under way.
    flushing: Vec<Block>,
    /// Of each warp slot: up to which number its last order entry reaches.
    ordered: BTreeMap<u8, u64>,
    /// The store that was kept back last: each is counted once.
    kept: u64,
    /// Where L1s do not combine.
    order: StoreOrder,
    tally: BufferTally,
}

state!(PersistBuffer { saved: buffer, flushing, ordered, kept, tally; parts: order; kept: spec, combines });

impl PersistBuffer {
    fn new(spec: &Arc<SbrpSpec>, combines: bool) -> Self {
        PersistBuffer {
            spec: spec.clone(),
            combines,
            buffer: VecDeque::new(),
            flushing: Vec::new(),
            ordered: BTreeMap::new(),
            kept: 0,
            order: StoreOrder::new(StoreOrderSpec {
                order: NonTemporalOrder::BeforeCached,
                non_temporal_entries: spec.window,
                held_entries: spec.pb_entries,
            }),
            tally: BufferTally::default(),
        }
    }

    fn block_of(&mut self, line: u64) -> Option<&mut Block> {
        self.buffer.iter_mut().find_map(|entry| match entry {
            QueuedPersist::Block(block) if block.line == line => Some(block),
            _ => None,
        })
    }

    /// Flushes from the head as far as the window and orders allow.
    fn flush_head(&mut self, outbox: &mut Outbox) {
        while let Some(head) = self.buffer.front() {
            if let QueuedPersist::Block(block) = *head {
                let behind = |other: &Block| other.cta == block.cta && other.id <= block.after;
                if self.flushing.len() >= self.spec.window as usize || self.flushing.iter().any(behind) {
                    return;
                }
                self.flushing.push(block);
                outbox.persist(block.line, block.id);
            }
            self.buffer.pop_front();
        }
    }

    /// Counts a store that is kept back, once.
    fn keep(&mut self, number: u64, full: bool) {
        if self.kept != number {
            self.kept = number;
            *if full { &mut self.tally.full } else { &mut self.tally.delayed } += 1;
        }
    }

    /// What the buffer needs for a store of a new block: an order entry too, where one is ahead of it and
    /// none is there.
    fn needs_order(&self, store: &Joining) -> bool {
        let known = self.ordered.get(&store.by.0).copied().unwrap_or_default();
        store.after > known && !self.buffer.is_empty()
    }
}

impl PersistBuffer {
    /// A store is about to join its line; false where it has to wait.
    fn join(&mut self, store: &Joining, outbox: &mut Outbox) -> bool {
        let Joining { line, by: (warp, cta), number, after, .. } = *store;
        // A line has one block at a time. A store of another CTA, or one that a fence orders after the block,
        // waits until that has left.
        if let Some(block) = self.block_of(line) {
            let merges = block.cta == cta && after < block.id;
            if merges {
                block.after = block.after.max(after);
                self.tally.merged += 1;
            } else {
                self.keep(number, false);
            }
            return merges;
        }
        let needs_order = self.needs_order(store);
        let needed = 1 + usize::from(needs_order);
        if self.buffer.len() + needed > self.spec.pb_entries as usize && !self.buffer.is_empty() {
            self.keep(number, true);
            return false;
        }
        if needs_order {
            self.buffer.push_back(QueuedPersist::Order);
            self.tally.orders += 1;
        }
        self.ordered.insert(warp, after);
        self.buffer.push_back(QueuedPersist::Block(Block { id: number, line, cta, after }));
        self.tally.blocks += 1;
        self.tally.most = self.tally.most.max(self.buffer.len() as u64);
        self.flush_head(outbox);
        true
    }
}

impl Handler for PersistBuffer {
    state_methods!();

    fn report(&self, report: &mut HandlerReport) {
        let BufferTally { blocks, merged, orders, delayed, full, most } = self.tally;
        report.count("pb_blocks", blocks);
        report.count("pb_merged_stores", merged);
        report.count("pb_orders", orders);
        report.count("pb_delayed_stores", delayed);
        report.count("pb_full_stores", full);
        report.count("pb_most_entries_summed", most);
        self.order.report(report);
    }
}

impl SmHandler for PersistBuffer {
    fn interests(&self) -> SmInterests {
        SmInterests { persist_order: true, departures: !self.combines, ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, outbox: &mut Outbox) -> Admission {
        match offer {
            SmOffer::Join(store) => Admission::goes_if(self.join(store, outbox)),
            offer => self.order.offer(offer),
        }
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        if let SmEvent::Persisted(id) = *event {
            self.flushing.retain(|block| block.id != id);
            self.flush_head(outbox);
        } else {
            self.order.event(event, outbox);
        }
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        self.order.rule(store, self.combines)
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        flushes_only(write_back)
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        match kind {
            FenceKind::Dfence | FenceKind::BarrierKernel => FenceRule::WaitDurable,
            FenceKind::Sfence | FenceKind::Ofence | FenceKind::BarrierThread | FenceKind::BarrierCta => {
                FenceRule::Ordered
            }
        }
    }

    fn synchronise(&mut self, by: Synchronisation) -> SynchronisationRule {
        match by {
            Synchronisation::Release { wide } => {
                let fence = if wide { FenceRule::WaitDurable } else { FenceRule::Ordered };
                SynchronisationRule { fence, forgets: false }
            }
            Synchronisation::Acquire { wide } => SynchronisationRule { fence: FenceRule::Pass, forgets: wide },
        }
    }
}

impl Scheme for Sbrp {
    fn name(&self) -> &'static str {
        "sbrp"
    }

    fn description(&self) -> &'static str {
        "scoped buffered release persistency: a persist buffer in each SM keeps the order that fences and releases ask for"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(PersistBuffer::new(&self.spec, place.l1_combines)))
    }

    /// `pm.ofence` and releases order without a wait (ASPLOS 2023).
    fn promises(&self) -> Promises {
        Promises { fences: Fences::Dfence, non_temporal: NonTemporalOrder::Epochs, ..Promises::NONE }
    }

    fn one_by_one(&self) -> Option<&'static str> {
        None
    }

    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
