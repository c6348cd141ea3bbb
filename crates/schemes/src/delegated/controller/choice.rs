//! Which request a bank gets under `broi`: by priority among harts, and what clients post behind what harts
//! store.
//!
//! | a request of | goes to a bank that serves none |
//! |---|---|
//! | a hart | the highest priority first, then the oldest |
//! | a channel | fewer than `remote_low_entries` requests are under way, and no hart has one for the bank |
//! | a channel, `remote_starvation_ns` after it came | before harts, the oldest first |
//!
//! Source: persistence parallelism, equation 2 and section IV-D (local requests have the higher priority;
//! remote ones wait for low utilization of the queue, and are flushed when blocked too long). Readings: a
//! channel's entry has one barrier register and shows no next set; the size of a set is that of its requests
//! that the entry's units show; a request waits from its arrival at the controller. No clock is needed for
//! the bound: what holds a request back ends when another is durable, and then the scheduler looks again.

use std::cmp::Reverse;

use durawarp_engine::Time;

use super::super::parameters::BroiSpec;
use super::super::queues::{PersistRequest, Queue, bank_bit};

/// What the choice of a request depends on beside the queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) spec: &'a BroiSpec,
    /// The first queue of a channel.
    pub(super) local: usize,
    /// How long a request of a channel waits at most, in ticks.
    pub(super) starvation: Time,
}

/// A request that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) hart: usize,
    pub(super) number: u64,
    /// It is of a channel and has waited too long.
    pub(super) starved: bool,
}

impl Choice<'_> {
    /// The request for a bank that serves none.
    pub(super) fn of_bank(
        &self,
        bank: u16,
        queues: &[Queue],
        priorities: &[i64],
        under_way: usize,
        now: Time,
    ) -> Option<Chosen> {
        let ready = |harts: std::ops::Range<usize>| {
            harts.flat_map(move |hart| {
                let of_bank = move |request: &&PersistRequest| request.bank == bank && !request.under_way;
                queues[hart].ready(self.spec.units as usize).filter(of_bank).map(move |request| (hart, request))
            })
        };
        let chosen =
            |(hart, request): (usize, &PersistRequest), starved| Chosen { hart, number: request.number, starved };
        // The highest priority, then the oldest.
        let first = |&(hart, request): &(usize, &PersistRequest)| (priorities[hart], Reverse(request.number));
        let starved = |&(_, request): &(usize, &PersistRequest)| now - request.arrived >= self.starvation;
        let remote = self.local..queues.len();
        if let Some(oldest) = ready(remote.clone()).filter(starved).min_by_key(|(_, request)| request.number) {
            return Some(chosen(oldest, true));
        }
        let of_harts = ready(0..self.local).max_by_key(first);
        let allowed = of_harts.is_none() && under_way < self.spec.remote_low_entries as usize;
        of_harts
            .or_else(|| if allowed { ready(remote).max_by_key(first) } else { None })
            .map(|first| chosen(first, false))
    }

    /// The priority of each queue, in thousandths of a bank (equation 2): how many banks there would be work
    /// for if its ready set were complete, less what that costs.
    pub(super) fn priorities(&self, queues: &[Queue]) -> Vec<i64> {
        let units = self.spec.units as usize;
        let banks_of = |requests: &mut dyn Iterator<Item = &PersistRequest>| {
            requests.fold(0u128, |set, of| set | bank_bit(of.bank.into()))
        };
        let ready: Vec<u128> = queues.iter().map(|queue| banks_of(&mut queue.ready(units))).collect();
        // Banks that one queue at least has work for, and two at least.
        let (one, two) = ready.iter().fold((0u128, 0u128), |(one, two), of| (one | of, two | one & of));
        let of = |hart: usize| {
            let registers = if hart < self.local { self.spec.barrier_registers as usize } else { 1 };
            let rest = two | one & !ready[hart];
            let banks = rest | banks_of(&mut queues[hart].next(units, registers));
            let cost = i64::from(self.spec.sigma_thousandths) * queues[hart].ready(units).count() as i64;
            i64::from(banks.count_ones()) * 1000 - cost
        };
        (0..queues.len()).map(of).collect()
    }
}
