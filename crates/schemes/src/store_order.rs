//! Order among the stores of an SM without waiting at fences: what a fence would have waited for is durable
//! before anything that the program orders behind the fence becomes visible outside of the SM.
//!
//! ```text
//!   LSU ──> [offer: departure] ─────────────────────> miss queue ──> crossbar
//!              └─ has to wait ─> held, in order ──────────▲   when what it waits for is durable
//! ```
//! Non-temporal stores are numbered as warps issue them (the numbers are a FIFO of `non_temporal_entries`: a
//! store that finds none free waits in the load-store unit). Numbers are the SM's, or each CTA slot has its
//! own: the *scope* of order. A request has a number up to which those of its scope must be durable before it
//! leaves:
//!
//! | request | waits for |
//! |---|---|
//! | store through the caches, atomic, on persistent memory | all earlier ones of its scope |
//! | non-temporal store, store or atomic on DRAM | those that its warp knows to be behind a fence that did not wait |
//! | non-temporal store in a FIFO | all of earlier instructions, but a run of stores to one line |
//! | load | requests to its line that are held |
//! | write-back, flush | none |
//!
//! A warp knows of a fence when it is its own, or another warp's of the CTA behind a barrier or a word of
//! shared memory; a message through global memory is itself a store that waits here, so who reads it needs to
//! know nothing. Order by the SM's fences, whoever's, would part the log updates of warps that have nothing
//! to do with each other by a round trip each. A write-back needs no order: what it writes has passed here,
//! and a cache may evict it any time.
//!
//! Source: Themis (MICRO 2020): write-combining buffer with `ack_head`, a snapshot of its tail beside later
//! lines. Here no line in an L1 is dirty, so the store itself is held. Invariants: held requests of a scope
//! leave in order, each waits for earlier requests only, so that there is no cycle; requests to one line keep
//! their order. Not modelled: combining of stores in the buffer, bits of pointers that wrap, a port between
//! the held requests and the miss queue.

use std::collections::VecDeque;

use durawarp_checkpoint::{state, value};
use durawarp_persist::handler::{Admission, Departure, HandlerReport, Outbox, SmEvent, SmOffer, Store, WriteBack};
use durawarp_persist::journal::Author;
use durawarp_persist::sequence::Sequence;
use durawarp_persist::vocab::{IssueOrder, NonTemporalOrder, Route, StoreRule, WriteBackClass, WriteBackRule};

/// How much is kept in order, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOrderSpec {
    /// What is kept in order.
    pub order: NonTemporalOrder,
    /// Non-temporal stores that may be under way.
    pub non_temporal_entries: u32,
    /// Requests that may be held until these are durable.
    pub held_entries: u32,
}

#[derive(Debug)]
struct HeldRequest {
    number: u64,
    line: u64,
    scope: usize,
    after: u64,
}

value!(record HeldRequest { number, line, scope, after });

/// The non-temporal stores of a scope, by their numbers.
#[derive(Debug, Default)]
struct Scope {
    /// Those that warps have issued.
    issued: u64,
    /// Of these, those that have left the load-store unit, and up to which all are durable.
    durable: Sequence,
    /// The departures of those after the last up to which all are durable.
    departed: VecDeque<u64>,
    /// Fences that did not wait, up to which number.
    unsettled: Vec<(u64, Author)>,
    /// In a FIFO: the line that the last stores all went to, and what the first of them waits for.
    run: Option<(u64, u64)>,
}

value!(record Scope { issued, durable, departed, unsettled, run });

impl Scope {
    /// A store of it is durable. False when it has no such store.
    fn acknowledge(&mut self, departure: u64) -> bool {
        let Ok(at) = self.departed.binary_search(&departure) else { return false };
        let settled = self.durable.settled();
        self.durable.complete(settled + 1 + at as u64);
        self.departed.drain(..(self.durable.settled() - settled) as usize);
        true
    }
}

/// Write-backs where every store bypasses the caches: nothing is left to write, but a flush also makes lines
/// leave.
pub fn flushes_only(write_back: &WriteBack<'_>) -> WriteBackRule {
    if write_back.class == WriteBackClass::Flush { WriteBackRule::Written } else { WriteBackRule::Dropped }
}

/// What an SM keeps in order.
#[derive(Debug)]
pub struct StoreOrder {
    spec: StoreOrderSpec,
    /// One, or one a CTA slot that has stored.
    scopes: Vec<Scope>,
    held: VecDeque<HeldRequest>,
}

state!(StoreOrder { saved: scopes, held; kept: spec });

impl StoreOrder {
    /// Nothing is under way.
    pub fn new(spec: StoreOrderSpec) -> Self {
        StoreOrder { spec, scopes: Vec::new(), held: VecDeque::new() }
    }

    /// The scope of a CTA's slot.
    fn scope_of(&mut self, cta: u8) -> usize {
        let scope = if self.spec.order == NonTemporalOrder::BeforeCachedOfCta { usize::from(cta) } else { 0 };
        if self.scopes.len() <= scope {
            self.scopes.resize_with(scope + 1, Scope::default);
        }
        scope
    }

    /// A warp issues a store or an atomic to persistent memory, which takes this way: what it waits for.
    pub fn issue(&mut self, store: &Store<'_>, route: Route) -> IssueOrder {
        let (order, scope) = (self.spec.order, self.scope_of(store.cta));
        let scope = &mut self.scopes[scope];
        if store.atomic || route != Route::NonTemporal {
            return IssueOrder { after: scope.issued, number: 0 };
        }
        let count = u64::from(store.accesses);
        let only = store.lines.first().copied().filter(|_| count == 1);
        let after = match (order, scope.run) {
            (NonTemporalOrder::Fifo, Some((line, after))) if only == Some(line) => after.max(store.knows),
            (NonTemporalOrder::Fifo, _) => scope.issued,
            _ => store.knows,
        };
        scope.run = only.map(|line| (line, after));
        scope.issued += count;
        IssueOrder { after, number: scope.issued }
    }

    /// The rule of a scheme whose stores all bypass the caches in this order; an atomic is performed at the
    /// L2, and its warp waits until that is durable. Where the L1 combines stores, the order is not this one
    /// but of its lines.
    pub fn rule(&mut self, store: &Store<'_>, combines: bool) -> StoreRule {
        let order = (!combines).then(|| self.issue(store, Route::NonTemporal));
        StoreRule { order, ..StoreRule::new(Route::NonTemporal, store.atomic) }
    }

    /// A request to the line is held.
    fn holds(&self, line: u64) -> bool {
        self.held.iter().any(|held| held.line == line)
    }

    /// What becomes of a request that leaves, or is to be released; others go.
    pub fn offer(&mut self, offer: &SmOffer<'_>) -> Admission {
        match *offer {
            SmOffer::Departure(Departure { line, is_load: true, .. }) => Admission::goes_if(!self.holds(line)),
            SmOffer::Departure(departure) => self.admit(departure),
            SmOffer::Release(number) => Admission::goes_if(self.may_release(number)),
            _ => Admission::Goes,
        }
    }

    fn admit(&mut self, Departure { cta, line, is_non_temporal, after, .. }: Departure) -> Admission {
        let under_way: usize = self.scopes.iter().map(|scope| scope.departed.len()).sum();
        if is_non_temporal && under_way >= self.spec.non_temporal_entries as usize {
            return Admission::Waits;
        }
        let scope = self.scope_of(cta);
        if self.scopes[scope].durable.settled() >= after && !self.holds(line) {
            Admission::Goes
        } else if self.held.len() < self.spec.held_entries as usize {
            Admission::Held
        } else {
            Admission::Waits
        }
    }

    /// What a held request waits for is durable, and it is the first of its scope, and of those to its line.
    fn may_release(&self, number: u64) -> bool {
        let Ok(at) = self.held.binary_search_by_key(&number, |held| held.number) else { return false };
        let held = &self.held[at];
        let mut before = self.held.iter().take(at);
        held.after <= self.scopes[held.scope].durable.settled()
            && !before.any(|other| other.scope == held.scope || other.line == held.line)
    }

    /// Follows what has left, and what is durable.
    pub fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SmEvent::Departed { departure, number, held } => {
                let scope = self.scope_of(departure.cta);
                if departure.is_non_temporal {
                    self.scopes[scope].durable.issue();
                    self.scopes[scope].departed.push_back(number);
                }
                if held {
                    let Departure { line, after, .. } = departure;
                    self.held.push_back(HeldRequest { number, line, scope, after });
                }
            }
            SmEvent::Released(number) => self.held.retain(|held| held.number != number),
            SmEvent::Acknowledged { number, .. } => {
                if let Some(scope) = self.scopes.iter_mut().find_map(|s| s.acknowledge(number).then_some(s)) {
                    let durable = scope.durable.settled();
                    // One acknowledgement may close a gap, and then settles several fences.
                    scope.unsettled.retain(|&(last, author)| {
                        if last <= durable {
                            outbox.settle(author);
                        }
                        last > durable
                    });
                }
            }
            SmEvent::FenceOrdered { cta, number, author } => {
                let scope = self.scope_of(cta);
                self.scopes[scope].unsettled.push((number, author));
            }
            _ => {}
        }
    }

    /// Who waits here.
    pub fn report(&self, report: &mut HandlerReport) {
        if let Some(head) = self.held.front() {
            let stores = head.after.saturating_sub(self.scopes[head.scope].durable.settled());
            let what = format!("{stores} non-temporal stores to be durable, before line {:#x}", head.line);
            report.waits.push((format!("store order, {} requests", self.held.len()), what));
        }
    }
}

#[cfg(test)]
mod tests;
