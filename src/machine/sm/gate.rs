//! The gate: what an SM keeps in order on the way of its requests to the slices, for a scheme whose fences do not wait for
//! non-temporal stores.
//!
//! ```text
//!   LSU ──> [gate] ─────────────────────────────────> miss queue ──> crossbar
//!              └─ has to wait ─> held, in order ──────────▲   when what it waits for is durable
//! ```
//! Non-temporal stores are numbered as warps issue them (the numbers are a FIFO of `past_entries`: a store
//! that finds none free waits in the load-store unit). Numbers are the SM's, or each CTA slot has its own:
//! the *scope* of order. A request has a number up to which those of its scope must be durable before it
//! leaves:
//!
//! | request | waits for |
//! |---|---|
//! | store through the caches, atomic, on persistent memory | all earlier ones of its scope |
//! | non-temporal store, store or atomic on DRAM | those that its warp knows to be behind a fence that did not wait |
//! | non-temporal store in a FIFO | all of earlier instructions, but a run of stores to one line |
//! | load, write-back, flush | none |
//!
//! So what a fence would have waited for is durable before anything that the program orders behind the fence becomes
//! visible outside of the SM. A warp knows of a fence when it is its own, or another warp's of the CTA behind a barrier
//! or a word of shared memory; a message through global memory is itself a store that waits here, so who reads it needs to
//! know nothing. Order by the SM's fences, whoever's, would part the log updates of warps that have nothing to do with each
//! other by a round trip each. A write-back needs no order: what it writes passed the gate, and a cache may evict it any
//! time. Whatever goes to a line with a held request queues behind it; a load of such a line waits in the load-store unit.
//!
//! Source: Themis (MICRO 2020): write-combining buffer with `ack_head`, a snapshot of its tail beside later
//! lines. Here no line in an L1 is dirty, so the store itself is held. Invariants: held requests of a scope
//! leave in order, each waits for earlier requests only, so that there is no cycle; requests to one line keep
//! their order. Not modelled: combining of stores in the buffer, bits of pointers that wrap, a port between
//! the held requests and the miss queue.

use std::collections::VecDeque;

use crate::machine::msg::{Request, RequestKind};
use crate::persist::handler::GateSpec;
use crate::persist::journal::Author;
use crate::persist::vocab::NonTemporalOrder;

/// What becomes of a request that comes out of the load-store unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may go on.
    Leaves,
    /// It is to be held.
    Held,
    /// There is no room: it waits in the load-store unit, and everything behind it.
    Waits,
}

#[derive(Debug)]
struct Held {
    request: Request,
    scope: usize,
    after: u64,
}

/// The non-temporal stores of a scope, by their numbers.
#[derive(Debug, Default)]
struct Order {
    /// Those that warps have issued.
    issued: u64,
    /// Of these, how many have left the load-store unit.
    entered: u64,
    /// Of these, how many are durable from the first on; and which of those behind.
    durable: u64,
    acknowledged: VecDeque<bool>,
    /// Fences that did not wait, up to which number, where a journal has to tell when that is durable.
    unsettled: Vec<(u64, Author)>,
    /// In a FIFO: the line that the last stores all went to, and what the first of them waits for.
    run: Option<(u64, u64)>,
}

impl Order {
    /// A non-temporal store is durable.
    fn acknowledge(&mut self, number: u64) {
        self.acknowledged[(number - self.durable - 1) as usize] = true;
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.durable += 1;
        }
    }
}

/// Bits of a number in a ticket; those above name the scope.
const NUMBER_BITS: u32 = 48;

/// A gate.
#[derive(Debug)]
pub(super) struct Gate {
    spec: GateSpec,
    /// One, or one a CTA slot.
    orders: Vec<Order>,
    held: VecDeque<Held>,
}

impl Gate {
    /// The gate of an SM with so many CTA slots.
    pub(super) fn new(spec: GateSpec, cta_slots: usize) -> Self {
        let scopes = if spec.order == NonTemporalOrder::BeforeCachedOfCta { cta_slots } else { 1 };
        Gate { spec, orders: (0..scopes).map(|_| Order::default()).collect(), held: VecDeque::new() }
    }

    fn scope(&self, cta: u8) -> usize {
        if self.orders.len() == 1 { 0 } else { usize::from(cta) }
    }

    fn order(&self, cta: u8) -> &Order {
        &self.orders[self.scope(cta)]
    }

    /// A warp of a CTA issues a store or an atomic that is performed in the caches, or at DRAM: what it waits
    /// for, when the warp knows of fences up to `fenced`.
    pub(super) fn cached(&self, cta: u8, persistent: bool, fenced: u64) -> u64 {
        if persistent { self.order(cta).issued } else { fenced }
    }

    /// A warp issues a non-temporal store to `lines`: what it waits for.
    pub(super) fn past(&mut self, cta: u8, lines: impl ExactSizeIterator<Item = u64>, fenced: u64) -> u64 {
        let count = lines.len() as u64;
        let only = lines.into_iter().next().filter(|_| count == 1);
        let scope = self.scope(cta);
        let order = &mut self.orders[scope];
        let after = match (self.spec.order, order.run) {
            (NonTemporalOrder::Fifo, Some((line, after))) if only == Some(line) => after.max(fenced),
            (NonTemporalOrder::Fifo, _) => order.issued,
            _ => fenced,
        };
        order.run = only.map(|line| (line, after));
        order.issued += count;
        after
    }

    /// The number of the last non-temporal store that was issued.
    pub(super) fn issued(&self, cta: u8) -> u64 {
        self.order(cta).issued
    }

    /// A fence lets its warp go on without having waited for its non-temporal stores, the last of which is `number`.
    pub(super) fn fence(&mut self, cta: u8, number: u64, author: Author) {
        let scope = self.scope(cta);
        self.orders[scope].unsettled.push((number, author));
    }

    /// The next fence that did not wait for what is durable by now.
    pub(super) fn settled(&mut self) -> Option<Author> {
        self.orders.iter_mut().find_map(|order| {
            let at = order.unsettled.iter().position(|(number, _)| *number <= order.durable)?;
            Some(order.unsettled.remove(at).1)
        })
    }

    /// A request to the line waits here.
    pub(super) fn holds(&self, line: u64) -> bool {
        self.held.iter().any(|held| held.request.line == line)
    }

    /// What becomes of the next request.
    pub(super) fn admits(&self, cta: u8, line: u64, kind: RequestKind, after: u64) -> Admission {
        let under_way: u64 = self.orders.iter().map(|order| order.entered - order.durable).sum();
        if kind == RequestKind::NonTemporal && under_way >= u64::from(self.spec.past_entries) {
            return Admission::Waits;
        }
        if self.order(cta).durable >= after && !self.holds(line) {
            Admission::Leaves
        } else if self.held.len() < self.spec.held_entries as usize {
            Admission::Held
        } else {
            Admission::Waits
        }
    }

    /// A non-temporal store leaves the load-store unit: its ticket, which is not 0.
    pub(super) fn enter(&mut self, cta: u8) -> u64 {
        let scope = self.scope(cta);
        let order = &mut self.orders[scope];
        order.entered += 1;
        order.acknowledged.push_back(false);
        (scope as u64) << NUMBER_BITS | order.entered
    }

    /// Holds a request.
    pub(super) fn hold(&mut self, cta: u8, request: Request, after: u64) {
        self.held.push_back(Held { request, scope: self.scope(cta), after });
    }

    /// The non-temporal store that has this ticket is durable.
    pub(super) fn acknowledge(&mut self, ticket: u64) {
        self.orders[(ticket >> NUMBER_BITS) as usize].acknowledge(ticket & ((1 << NUMBER_BITS) - 1));
    }

    /// The next held request that nothing holds any more: the first of its scope, and of those to its line.
    pub(super) fn release(&mut self) -> Option<Request> {
        let is_first = |at: usize, held: &Held| {
            let before = self.held.iter().take(at);
            !before.into_iter().any(|other| other.scope == held.scope || other.request.line == held.request.line)
        };
        let may_go = |at: usize, held: &Held| held.after <= self.orders[held.scope].durable && is_first(at, held);
        // With one scope, it is the head or none.
        let looked_at = if self.orders.len() == 1 { 1 } else { self.held.len() };
        let at = self.held.iter().take(looked_at).enumerate().position(|(at, held)| may_go(at, held))?;
        self.held.remove(at).map(|held| held.request)
    }

    /// Who waits here, for a report: how many, the line of the first, and how many stores it waits for.
    pub(super) fn waiting(&self) -> Option<(usize, u64, u64)> {
        let head = self.held.front()?;
        let durable = self.orders[head.scope].durable;
        Some((self.held.len(), head.request.line, head.after.saturating_sub(durable)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::msg::Payload;
    use crate::machine::ports::Requester;

    const LINE: u64 = 1 << 40;

    fn gate(order: NonTemporalOrder, past_entries: u32, held_entries: u32) -> Gate {
        Gate::new(GateSpec { order, past_entries, held_entries }, 4)
    }

    fn request(line: u64) -> Request {
        Request { line, tag: 0, from: Requester::sm(0), kind: RequestKind::Write, sectors: 1, payload: Payload::None }
    }

    /// Issues a non-temporal store to one line and takes it through the gate.
    fn past(gate: &mut Gate, line: u64) -> u64 {
        past_of(gate, 0, line)
    }

    /// The same of a CTA.
    fn past_of(gate: &mut Gate, cta: u8, line: u64) -> u64 {
        let after = gate.past(cta, [line].into_iter(), 0);
        assert_eq!(gate.admits(cta, line, RequestKind::NonTemporal, after), Admission::Leaves);
        gate.enter(cta)
    }

    #[test]
    fn a_store_through_the_caches_waits_for_the_last_of_those_past_them_and_no_longer() {
        let mut gate = gate(NonTemporalOrder::BeforeCached, 8, 8);
        let numbers = [past(&mut gate, 0), past(&mut gate, 128), past(&mut gate, 256)];
        let after = gate.cached(0, true, 0);
        assert_eq!(gate.admits(0, LINE, RequestKind::Write, after), Admission::Held);
        gate.hold(0, request(LINE), after);
        // A later one is not waited for.
        past(&mut gate, 384);
        for number in [numbers[2], numbers[0]] {
            gate.acknowledge(number);
            assert!(gate.release().is_none(), "one early");
        }
        gate.acknowledge(numbers[1]);
        assert_eq!(gate.release().map(|request| request.line), Some(LINE), "on time");
        assert_eq!(gate.admits(0, LINE, RequestKind::Write, after), Admission::Leaves);
    }

    #[test]
    fn stores_past_the_caches_and_on_dram_wait_behind_a_known_fence_only() {
        let mut gate = gate(NonTemporalOrder::BeforeCached, 8, 8);
        let first = past(&mut gate, 0);
        let second = past(&mut gate, 128);
        let fenced = 2;
        let author = Author { warp: 3, ..Author::default() };
        gate.fence(0, fenced, author);
        // One warp knows of the fence, another does not.
        assert_eq!(gate.admits(0, 512, RequestKind::Write, gate.cached(0, false, 0)), Admission::Leaves);
        let behind = (gate.cached(0, false, fenced), gate.past(0, [256].into_iter(), fenced));
        assert_eq!(behind, (2, 2));
        assert_eq!(gate.admits(0, 512, RequestKind::Atomic, behind.0), Admission::Held);
        gate.acknowledge(first);
        assert_eq!(gate.admits(0, 256, RequestKind::NonTemporal, behind.1), Admission::Held);
        assert_eq!(gate.settled(), None);
        gate.acknowledge(second);
        assert_eq!(gate.admits(0, 256, RequestKind::NonTemporal, behind.1), Admission::Leaves);
        assert_eq!((gate.settled(), gate.settled()), (Some(author), None));
    }

    #[test]
    fn nothing_overtakes_a_held_request_to_its_line() {
        let mut gate = gate(NonTemporalOrder::BeforeCached, 8, 2);
        let first = past(&mut gate, 0);
        gate.hold(0, request(LINE), 1);
        assert_eq!(gate.admits(0, LINE, RequestKind::WriteBack, 0), Admission::Held);
        assert_eq!(gate.admits(0, LINE, RequestKind::NonTemporal, 0), Admission::Held);
        assert_eq!(gate.admits(0, 0, RequestKind::WriteBack, 0), Admission::Leaves, "another line's");
        gate.hold(0, request(LINE), 0);
        assert_eq!(gate.admits(0, LINE, RequestKind::WriteBack, 0), Admission::Waits, "full");
        assert!(gate.holds(LINE) && !gate.holds(0) && gate.release().is_none(), "in order");
        gate.acknowledge(first);
        assert!(gate.release().is_some() && gate.holds(LINE) && gate.release().is_some() && !gate.holds(LINE));
    }

    #[test]
    fn so_many_stores_past_the_caches_are_under_way() {
        let mut gate = gate(NonTemporalOrder::BeforeCached, 2, 2);
        let first = past(&mut gate, 0);
        let second = past(&mut gate, 128);
        gate.acknowledge(second);
        assert_eq!(gate.admits(0, 256, RequestKind::NonTemporal, 0), Admission::Waits, "the buffer is a FIFO");
        gate.acknowledge(first);
        assert_eq!(gate.admits(0, 256, RequestKind::NonTemporal, 0), Admission::Leaves);
    }

    #[test]
    fn a_fifo_orders_instructions_but_not_a_run_to_one_line() {
        let mut gate = gate(NonTemporalOrder::Fifo, 64, 8);
        assert_eq!(gate.past(0, [0, 128].into_iter(), 0), 0);
        assert_eq!(gate.past(0, [256].into_iter(), 0), 2, "lanes of one instruction have no order, the next one waits");
        assert_eq!(gate.past(0, [256].into_iter(), 0), 2, "coherence orders these two");
        assert_eq!(gate.past(0, [0].into_iter(), 0), 4);
        assert_eq!(gate.past(0, [256].into_iter(), 0), 5);
    }

    #[test]
    fn with_an_order_a_cta_a_store_waits_for_those_of_its_own_cta_alone() {
        let spec = GateSpec { order: NonTemporalOrder::BeforeCachedOfCta, past_entries: 3, held_entries: 8 };
        let mut gate = Gate::new(spec, 2);
        let (first, other) = (past_of(&mut gate, 0, 0), past_of(&mut gate, 1, 128));
        assert_eq!((gate.cached(0, true, 0), gate.cached(1, true, 0)), (1, 1));
        for (cta, line) in [(0, LINE), (1, LINE + 128), (1, LINE)] {
            assert_eq!(gate.admits(cta, line, RequestKind::Write, 1), Admission::Held);
            gate.hold(cta, request(line), 1);
        }
        gate.acknowledge(other);
        assert_eq!(gate.release().map(|request| request.line), Some(LINE + 128), "it overtakes another CTA's");
        assert!(gate.release().is_none(), "but none to its line");
        // The buffer is the SM's.
        past_of(&mut gate, 1, 256);
        past_of(&mut gate, 1, 384);
        assert_eq!(gate.admits(1, 512, RequestKind::NonTemporal, 0), Admission::Waits);
        gate.acknowledge(first);
        assert_eq!(
            [gate.release(), gate.release()].map(|request| request.map(|request| request.line)),
            [Some(LINE); 2]
        );
        assert_eq!(gate.admits(1, 512, RequestKind::NonTemporal, 0), Admission::Leaves);
    }
}
