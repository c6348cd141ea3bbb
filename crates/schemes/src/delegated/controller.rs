//! The memory controller under delegated ordering: what its two schedulers have in common.
//!
//! ```text
//!  persist buffers ──Persist, Barrier──> a queue for each hart ──scheduler──> write queue ──> banks
//!                  <──Drained──────────────────────────────────────────────── durable
//! ```
//! | scheduler | which requests go to the write queue | when |
//! |---|---|---|
//! | `epoch` | the ready set of every hart, in the order of arrival | all at once; the next sets when all are durable |
//! | `broi` | for each bank the ready request of the hart with the highest priority | when the bank serves none |
//!
//! Under `epoch` a hart's requests join its set while the epoch is open, at most `units` an epoch. The write
//! queue orders them by FR-FCFS. Under `broi` a bank has one request at a time.
//!
//! Source: persistence parallelism, sections III (Fig. 3) and IV-C, IV-D (equations 1 and 2). Readings: in
//! equation 2 `R_i^1` is the next set N_i; ties go to the oldest, then to the lowest hart; a scheduling
//! decision takes no time of its own (0.4 ns in the paper). Under `epoch` channels of clients are like harts;
//! under `broi` they come behind harts (`choice`). Not here: more than one controller.

mod choice;
pub(super) mod worked;

use std::collections::BTreeMap;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::Time;
use durawarp_persist::bytes::copy_masked;
use durawarp_persist::{
    Banks, ControllerEvent, ControllerHandler, Flush, Handler, HandlerPlace, HandlerReport, Held, Outbox, Peer,
    SchemeMessage, opened,
};

use choice::{Choice, Chosen};

use super::buckets::Buckets;
use super::messages::{DelegatedMessage, Persist};
use super::parameters::{BarrierScope, BroiSpec, Delegated, EpochSpec};
use super::queues::{PersistRequest, Queue, bank_bit};

/// What a controller counted.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    requests: u64,
    joined: u64,
    sets: u64,
    epochs: u64,
    /// Banks with a request under way, summed at each issue.
    banks_summed: u64,
    issues: u64,
    bank_stalled: u64,
    global_barriers: u64,
    remote_requests: u64,
    remote_starved: u64,
    /// Requests of the sets that ended.
    set_requests: u64,
    /// The same by set.
    set_sizes: Buckets,
    /// Banks with a request under way, by issue.
    banks: Buckets,
}

value!(record Tally {
    requests, joined, sets, epochs, banks_summed, issues, bank_stalled, global_barriers, remote_requests,
    remote_starved, set_requests, set_sizes, banks,
});

/// Issues by banks that had a request under way with it.
const BANKS: [&str; 5] =
    ["persist_banks_1", "persist_banks_2", "persist_banks_to_4", "persist_banks_to_8", "persist_banks_more"];

/// Sets by their requests.
const SETS: [&str; 5] =
    ["persist_sets_1", "persist_sets_2", "persist_sets_to_4", "persist_sets_to_8", "persist_sets_more"];

/// The handler of the controller.
#[derive(Debug)]
pub(super) struct PersistQueues {
    scheme: Delegated,
    banks: Banks,
    harts_a_core: u16,
    /// Harts of cores; behind them come the channels of the NIC.
    local: u16,
    /// How long a request of a channel waits behind harts at most, in ticks.
    starvation: Time,
    queues: Vec<Queue>,
    /// By bank: requests under way.
    busy: Vec<u32>,
    under_way: usize,
    /// By hart, under `epoch`: requests that it has in this epoch; none once its set has ended.
    joined: Vec<Option<usize>>,
    /// Nothing leaves until all that is under way is durable.
    held: bool,
    arrived: u64,
    tally: Tally,
}

state!(PersistQueues {
    sized: queues, busy, joined; saved: under_way, held, arrived, tally;
    kept: scheme, banks, harts_a_core, local, starvation
});

impl PersistQueues {
    /// Empty queues of a machine's harts and channels.
    pub(super) fn new(scheme: Delegated, place: HandlerPlace) -> PersistQueues {
        let harts_a_core = place.harts.max(1);
        let local = place.cores * harts_a_core;
        let harts = usize::from(local + place.channels);
        let starvation = match &scheme {
            Delegated::Epoch(_) => 0,
            Delegated::Broi(spec) => {
                (u128::from(spec.remote_starvation_ns.ps) * u128::from(place.tick_khz) / 1_000_000_000) as Time
            }
        };
        PersistQueues {
            scheme,
            banks: Banks { count: 1, of: Box::new(|_| 0) },
            harts_a_core,
            local,
            starvation,
            queues: (0..harts).map(|_| Queue::default()).collect(),
            busy: vec![0],
            under_way: 0,
            joined: vec![Some(0); harts],
            held: false,
            arrived: 0,
            tally: Tally::default(),
        }
    }

    fn receive(&mut self, persist: Persist, now: Time) {
        let (bank, hart) = ((self.banks.of)(persist.line), usize::from(persist.hart));
        if self.queues[hart].join(&persist) {
            self.tally.joined += 1;
            return;
        }
        self.arrived += 1;
        self.tally.requests += 1;
        self.tally.remote_requests += u64::from(hart >= usize::from(self.local));
        let number = self.arrived;
        self.queues[hart].push(PersistRequest {
            persist,
            bank,
            number,
            arrived: now,
            under_way: false,
            stalled: false,
            persists: 1,
        });
    }

    /// Hands over to the write queue what may go.
    fn schedule(&mut self, outbox: &mut Outbox) {
        match &self.scheme {
            Delegated::Epoch(EpochSpec { units, .. }) => self.schedule_epoch(*units as usize, outbox),
            Delegated::Broi(spec) => self.schedule_banks(&spec.clone(), outbox),
        }
    }

    fn schedule_epoch(&mut self, units: usize, outbox: &mut Outbox) {
        let opens = self.under_way == 0;
        if opens {
            self.joined.fill(Some(0));
        }
        let mut go: Vec<(u64, usize)> = Vec::new();
        for (hart, queue) in self.queues.iter().enumerate() {
            let Some(joined) = self.joined[hart] else { continue };
            let waiting = queue.ready(usize::MAX).filter(|request| !request.under_way);
            go.extend(waiting.take(units - joined).map(|request| (request.number, hart)));
        }
        self.tally.epochs += u64::from(opens && !go.is_empty());
        go.sort_unstable();
        for (number, hart) in go {
            if let Some(joined) = &mut self.joined[hart] {
                *joined += 1;
            }
            self.issue(hart, number, outbox);
        }
    }

    fn schedule_banks(&mut self, spec: &BroiSpec, outbox: &mut Outbox) {
        if self.held && self.under_way > 0 {
            return;
        }
        self.held = false;
        let units = spec.units as usize;
        let waiting = self.mark_stalled(units);
        let idle =
            self.busy.iter().enumerate().filter(|&(_, &busy)| busy == 0).fold(0, |set, (bank, _)| set | bank_bit(bank));
        // Most messages end here: no bank that serves none has work.
        if waiting & idle == 0 {
            return;
        }
        let choice = Choice { spec, local: self.local.into(), starvation: self.starvation };
        let priorities = choice.priorities(&self.queues);
        let mut issued = false;
        for bank in 0..self.banks.count {
            if self.busy[usize::from(bank)] > 0 || waiting & bank_bit(bank.into()) == 0 {
                continue;
            }
            let chosen = choice.of_bank(bank, &self.queues, &priorities, self.under_way, outbox.now());
            if let Some(Chosen { hart, number, starved }) = chosen {
                self.tally.remote_starved += u64::from(starved);
                self.issue(hart, number, outbox);
                issued = true;
            }
        }
        if issued {
            self.mark_stalled(units);
        }
    }

    /// Marks and counts the ready requests whose bank serves another. The banks of all ready requests that
    /// were not handed over: bit `bank % 128`.
    fn mark_stalled(&mut self, units: usize) -> u128 {
        let mut waiting = 0;
        for queue in &mut self.queues {
            for request in queue.ready_mut(units).filter(|request| !request.under_way) {
                let bank = usize::from(request.bank);
                waiting |= bank_bit(bank);
                if !request.stalled && self.busy[bank] > 0 {
                    request.stalled = true;
                    self.tally.bank_stalled += 1;
                }
            }
        }
        waiting
    }

    fn issue(&mut self, hart: usize, number: u64, outbox: &mut Outbox) {
        let request = self.queues[hart].ready_mut(usize::MAX).find(|request| request.number == number);
        let Some(request) = request else { unreachable!("request {number} of hart {hart} is ready") };
        request.under_way = true;
        let bank = usize::from(request.bank);
        if self.busy[bank] > 0 && !request.stalled {
            request.stalled = true;
            self.tally.bank_stalled += 1;
        }
        let Persist { author, line, mask, ref bytes, .. } = request.persist;
        let token = (hart as u64) << 48 | number;
        outbox.flush(Flush { token, author, line, mask, bytes: bytes.clone(), logged: false, plain: true });
        self.busy[bank] += 1;
        self.under_way += 1;
        self.tally.issues += 1;
        let banks = self.busy.iter().filter(|&&busy| busy > 0).count() as u64;
        self.tally.banks_summed += banks;
        self.tally.banks.add(banks);
    }

    fn durable(&mut self, token: u64, outbox: &mut Outbox) {
        let (hart, number) = ((token >> 48) as usize, token & ((1 << 48) - 1));
        let queue = &mut self.queues[hart];
        let Some(request) = queue.ready(usize::MAX).find(|request| request.number == number) else {
            unreachable!("request {number} of hart {hart} is under way")
        };
        let (id, persists) = (request.persist.id, request.persists);
        self.busy[usize::from(request.bank)] -= 1;
        self.under_way -= 1;
        if let Some(requests) = queue.complete(number) {
            self.tally.sets += 1;
            self.tally.set_requests += requests;
            self.tally.set_sizes.add(requests);
            self.joined[hart] = None;
            if matches!(&self.scheme, Delegated::Broi(spec) if spec.barrier_scope == BarrierScope::Global) {
                self.tally.global_barriers += 1;
                self.held = true;
            }
        }
        let hart = hart as u16;
        let to = if hart < self.local { Peer::Core(hart / self.harts_a_core) } else { Peer::Nic };
        outbox.send(to, DelegatedMessage::Drained { hart, id, persists });
        self.schedule(outbox);
    }
}

impl Handler for PersistQueues {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            DelegatedMessage::Persist(persist) => self.receive(persist, outbox.now()),
            DelegatedMessage::Barrier { hart } => self.queues[usize::from(hart)].push_barrier(),
            other => panic!("a controller received {other:?} from {from:?}"),
        }
        self.schedule(outbox);
    }

    fn occupancy(&self, lane: usize) -> Option<u64> {
        self.queues.get(lane).map(|queue| queue.requests().count() as u64)
    }

    fn report(&self, report: &mut HandlerReport) {
        let tally = &self.tally;
        report.count("persist_requests", tally.requests);
        report.count("persist_joined", tally.joined);
        report.count("persist_sets", tally.sets);
        report.count("persist_set_requests", tally.set_requests);
        report.count("persist_epochs", tally.epochs);
        report.count("persist_issues", tally.issues);
        report.count("persist_banks_summed", tally.banks_summed);
        report.count("persist_bank_stalled", tally.bank_stalled);
        report.count("persist_global_barriers", tally.global_barriers);
        tally.set_sizes.report(SETS, report);
        tally.banks.report(BANKS, report);
        if self.queues.len() > usize::from(self.local) {
            report.count("persist_remote_requests", tally.remote_requests);
            report.count("persist_remote_starved", tally.remote_starved);
        }
        let waiting: usize = self.queues.iter().map(|queue| queue.requests().count()).sum();
        if waiting > 0 {
            let what = format!("{waiting} requests, {} of them under way, to be durable", self.under_way);
            report.waits.push(("persist queues".to_owned(), what));
        }
    }
}

impl ControllerHandler for PersistQueues {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        if let ControllerEvent::Persisted(token) = *event {
            self.durable(token, outbox);
        }
    }

    fn banks(&mut self, banks: Banks) {
        self.busy = vec![0; usize::from(banks.count)];
        self.banks = banks;
    }

    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        let of_line = |request: &&PersistRequest| request.persist.line == line && !request.under_way;
        let mut held: Vec<&PersistRequest> =
            self.queues.iter().flat_map(|queue| queue.requests().filter(of_line)).collect();
        held.sort_unstable_by_key(|request| request.number);
        let mut any = false;
        for Persist { mask: own, bytes: stored, .. } in held.into_iter().map(|request| &request.persist) {
            any |= own & mask != 0;
            copy_masked(bytes, stored, own & mask);
        }
        any
    }

    fn holds(&self, line: u64) -> bool {
        self.queues.iter().any(|queue| queue.requests().any(|of| of.persist.line == line && !of.under_way))
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        let mut lines = BTreeMap::new();
        for PersistRequest { persist, .. } in
            self.queues.iter().flat_map(|queue| queue.requests()).filter(|of| !of.under_way)
        {
            *lines.entry(persist.line).or_default() |= persist.mask;
        }
        lines
    }

    fn held(&self) -> Held {
        let stores = self.queues.iter().map(|queue| queue.requests().count() as u64).sum();
        Held { stores, entries: stores }
    }
}

#[cfg(test)]
mod tests;
