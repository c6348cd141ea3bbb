//! The gate: what an SM keeps in order on the way of its requests to the slices, for a scheme whose fences do not wait for
//! stores past the caches.
//!
//! ```text
//!   LSU ──> [gate] ─────────────────────────────────> miss queue ──> crossbar
//!              └─ has to wait ─> held, in order ──────────▲   when what it waits for is durable
//! ```
//! Stores past the caches are numbered as warps issue them (the numbers are a FIFO of `past_entries`: a store that finds
//! none free waits in the load-store unit). A request has a number up to which these must be durable before it leaves:
//!
//! | request | waits for |
//! |---|---|
//! | store through the caches, atomic, on persistent memory | all earlier ones of the SM |
//! | store past the caches, store or atomic on DRAM | those before the SM's last fence that did not wait for them |
//! | store past the caches in a FIFO | all of earlier instructions, but a run of stores to one line |
//! | load, write-back, flush | none |
//!
//! So what a fence would have waited for is durable before anything that the program orders behind the fence becomes
//! visible to anybody outside of the SM: the stores of other warps of the CTA behind a barrier too, since they are of the
//! same SM and are issued later. A write-back needs no order: what it writes passed the gate, and a cache may evict it any
//! time. Whatever goes to a line with a held request queues behind it; a load of such a line waits in the load-store unit.
//!
//! Source: Themis (MICRO 2020): write-combining buffer with `ack_head`, a snapshot of its tail beside later lines. Here no
//! line in an L1 is dirty, so the store itself is held. Invariants: held requests leave in order, each waits for earlier
//! requests only, so that there is no cycle; requests to one line keep their order. Not modelled: combining of stores in
//! the buffer, bits of pointers that wrap, a port between the held requests and the miss queue.

use std::collections::VecDeque;

use crate::machine::msg::{Request, RequestKind};
use crate::persist::site::GateSpec;
use crate::persist::vocab::PastOrder;

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
    after: u64,
}

/// A gate.
#[derive(Debug)]
pub(super) struct Gate {
    spec: GateSpec,
    /// Stores past the caches that warps have issued.
    issued: u64,
    /// Of these, how many have left the load-store unit.
    entered: u64,
    /// Of these, how many are durable from the first on; and which of those behind.
    durable: u64,
    acknowledged: VecDeque<bool>,
    /// Stores past the caches before the last fence that did not wait for them.
    fenced: u64,
    /// In a FIFO: the line that the last stores all went to, and what the first of them waits for.
    run: Option<(u64, u64)>,
    held: VecDeque<Held>,
}

impl Gate {
    pub(super) fn new(spec: GateSpec) -> Self {
        Gate {
            spec,
            issued: 0,
            entered: 0,
            durable: 0,
            acknowledged: VecDeque::new(),
            fenced: 0,
            run: None,
            held: VecDeque::new(),
        }
    }

    /// A warp issues stores or atomics that are performed in the caches, or at DRAM: what they wait for.
    pub(super) fn cached(&self, persistent: bool) -> u64 {
        if persistent { self.issued } else { self.fenced }
    }

    /// A warp issues a store past the caches to `lines`: what it waits for.
    pub(super) fn past(&mut self, lines: impl ExactSizeIterator<Item = u64>) -> u64 {
        let count = lines.len() as u64;
        let only = lines.into_iter().next().filter(|_| count == 1);
        let after = match (self.spec.order, self.run) {
            (PastOrder::Fifo, Some((line, after))) if only == Some(line) => after.max(self.fenced),
            (PastOrder::Fifo, _) => self.issued,
            _ => self.fenced,
        };
        self.run = only.map(|line| (line, after));
        self.issued += count;
        after
    }

    /// A fence lets its warp go on without having waited for stores past the caches.
    pub(super) fn fence(&mut self) {
        self.fenced = self.issued;
    }

    /// A request to the line waits here.
    pub(super) fn holds(&self, line: u64) -> bool {
        self.held.iter().any(|held| held.request.line == line)
    }

    /// What becomes of the next request.
    pub(super) fn admits(&self, line: u64, kind: RequestKind, after: u64) -> Admission {
        let under_way = self.entered - self.durable;
        if kind == RequestKind::WriteThrough && under_way >= u64::from(self.spec.past_entries) {
            return Admission::Waits;
        }
        if self.durable >= after && !self.holds(line) {
            Admission::Leaves
        } else if self.held.len() < self.spec.held_entries as usize {
            Admission::Held
        } else {
            Admission::Waits
        }
    }

    /// A store past the caches leaves the load-store unit: its number.
    pub(super) fn enter(&mut self) -> u64 {
        self.entered += 1;
        self.acknowledged.push_back(false);
        self.entered
    }

    /// Holds a request.
    pub(super) fn hold(&mut self, request: Request, after: u64) {
        self.held.push_back(Held { request, after });
    }

    /// A store past the caches is durable.
    pub(super) fn acknowledge(&mut self, number: u64) {
        self.acknowledged[(number - self.durable - 1) as usize] = true;
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.durable += 1;
        }
    }

    /// The next held request, if nothing holds it any more.
    pub(super) fn release(&mut self) -> Option<Request> {
        if self.held.front()?.after > self.durable {
            return None;
        }
        self.held.pop_front().map(|held| held.request)
    }

    /// Who waits here, for a report: how many, the line of the first, and how many stores it waits for.
    pub(super) fn waiting(&self) -> Option<(usize, u64, u64)> {
        let head = self.held.front()?;
        Some((self.held.len(), head.request.line, head.after.saturating_sub(self.durable)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::msg::Payload;

    const LINE: u64 = 1 << 40;

    fn gate(order: PastOrder, past_entries: u32, held_entries: u32) -> Gate {
        Gate::new(GateSpec { order, past_entries, held_entries })
    }

    fn request(line: u64) -> Request {
        Request { line, tag: 0, from: 0, kind: RequestKind::Write, sectors: 1, payload: Payload::None }
    }

    /// Issues a store past the caches to one line and takes it through the gate.
    fn past(gate: &mut Gate, line: u64) -> u64 {
        let after = gate.past([line].into_iter());
        assert_eq!(gate.admits(line, RequestKind::WriteThrough, after), Admission::Leaves);
        gate.enter()
    }

    #[test]
    fn a_store_through_the_caches_waits_for_the_last_of_those_past_them_and_no_longer() {
        let mut gate = gate(PastOrder::BeforeCached, 8, 8);
        let numbers = [past(&mut gate, 0), past(&mut gate, 128), past(&mut gate, 256)];
        let after = gate.cached(true);
        assert_eq!(gate.admits(LINE, RequestKind::Write, after), Admission::Held);
        gate.hold(request(LINE), after);
        // A later one is not waited for.
        past(&mut gate, 384);
        for number in [numbers[2], numbers[0]] {
            gate.acknowledge(number);
            assert!(gate.release().is_none(), "one early");
        }
        gate.acknowledge(numbers[1]);
        assert_eq!(gate.release().map(|request| request.line), Some(LINE), "on time");
        assert_eq!(gate.admits(LINE, RequestKind::Write, after), Admission::Leaves);
    }

    #[test]
    fn stores_past_the_caches_and_on_dram_wait_behind_a_fence_only() {
        let mut gate = gate(PastOrder::BeforeCached, 8, 8);
        let first = past(&mut gate, 0);
        past(&mut gate, 128);
        let before = gate.cached(false);
        assert_eq!(gate.admits(512, RequestKind::Write, before), Admission::Leaves);
        gate.fence();
        let behind = (gate.cached(false), gate.past([256].into_iter()));
        assert_eq!(behind, (2, 2));
        assert_eq!(gate.admits(512, RequestKind::Atomic, behind.0), Admission::Held);
        assert_eq!(gate.admits(256, RequestKind::WriteThrough, behind.1), Admission::Held);
        gate.acknowledge(first);
        assert_eq!(gate.admits(256, RequestKind::WriteThrough, behind.1), Admission::Held);
        gate.acknowledge(first + 1);
        assert_eq!(gate.admits(256, RequestKind::WriteThrough, behind.1), Admission::Leaves);
    }

    #[test]
    fn nothing_overtakes_a_held_request_to_its_line() {
        let mut gate = gate(PastOrder::BeforeCached, 8, 2);
        let first = past(&mut gate, 0);
        gate.hold(request(LINE), 1);
        assert_eq!(gate.admits(LINE, RequestKind::WriteBack, 0), Admission::Held);
        assert_eq!(gate.admits(LINE, RequestKind::WriteThrough, 0), Admission::Held);
        assert_eq!(gate.admits(0, RequestKind::WriteBack, 0), Admission::Leaves, "another line's");
        gate.hold(request(LINE), 0);
        assert_eq!(gate.admits(LINE, RequestKind::WriteBack, 0), Admission::Waits, "full");
        assert!(gate.holds(LINE) && !gate.holds(0) && gate.release().is_none(), "in order");
        gate.acknowledge(first);
        assert!(gate.release().is_some() && gate.holds(LINE) && gate.release().is_some() && !gate.holds(LINE));
    }

    #[test]
    fn so_many_stores_past_the_caches_are_under_way() {
        let mut gate = gate(PastOrder::BeforeCached, 2, 2);
        let first = past(&mut gate, 0);
        let second = past(&mut gate, 128);
        gate.acknowledge(second);
        assert_eq!(gate.admits(256, RequestKind::WriteThrough, 0), Admission::Waits, "the buffer is a FIFO");
        gate.acknowledge(first);
        assert_eq!(gate.admits(256, RequestKind::WriteThrough, 0), Admission::Leaves);
    }

    #[test]
    fn a_fifo_orders_instructions_but_not_a_run_to_one_line() {
        let mut gate = gate(PastOrder::Fifo, 64, 8);
        assert_eq!(gate.past([0, 128].into_iter()), 0);
        assert_eq!(gate.past([256].into_iter()), 2, "lanes of one instruction have no order, the next one waits");
        assert_eq!(gate.past([256].into_iter()), 2, "coherence orders these two");
        assert_eq!(gate.past([0].into_iter()), 4);
        assert_eq!(gate.past([256].into_iter()), 5);
    }
}
