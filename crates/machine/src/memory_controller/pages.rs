//! When rows are closed that no other row's request waits to have closed: the page policies.
//!
//! | policy | a row is closed |
//! |---|---|
//! | `open` | when a request to another row has its turn |
//! | `closed` | behind every column command |
//! | `closed_adaptive` | behind one after which no request to the row waits |
//! | `open_adaptive` | behind one after which none to the row waits, and one to another of its bank does |
//! | `timeout` | when nothing has used it for `page_timeout_ns`, and no request to it waits |
//!
//! What waits is what is queued of the direction that is served; under `timeout`, of both. Whichever policy,
//! a request to another row has the row closed when it has its turn.
//!
//! Source: gem5's `PageManage` (`close`, `close_adaptive`, `open_adaptive`; its bound of accesses a row is
//! not taken over: `row_hit_cap` is ours); Ramulator 1's `Timeout`. Invariant: nothing is woken for a
//! timeout. A row that timed out between events of its controller is closed at the next one, at the time at
//! which it was to be, with a slot of the command bus. Refreshes that fell due before it go first.

use durawarp_checkpoint::state;
use durawarp_engine::Time;

use crate::media::{BankId, DeviceRow};
use crate::request_queue::RequestQueue;

use super::parameters::PagePolicy;

/// The page policy of a channel.
#[derive(Debug)]
pub(super) struct Pages {
    policy: PagePolicy,
    timeout: Time,
    /// Under `timeout`: when each bank's row was used last.
    used: Vec<Time>,
    /// No row times out before.
    next: Time,
}

state!(Pages { sized: used; saved: next; kept: policy, timeout });

impl Pages {
    /// Rows of `banks` banks, all closed.
    pub(super) fn new(policy: PagePolicy, timeout: Time, banks: usize) -> Self {
        let used = if policy == PagePolicy::Timeout { vec![0; banks] } else { Vec::new() };
        Pages { policy, timeout, used, next: Time::MAX }
    }

    /// A column command to the place is to close its row; its request has left the queue of its direction.
    #[inline]
    pub(super) fn closes_behind<T>(&self, queue: &RequestQueue<T>, place: DeviceRow) -> bool {
        match self.policy {
            PagePolicy::Open | PagePolicy::Timeout => false,
            PagePolicy::Closed => true,
            PagePolicy::ClosedAdaptive => !queue.waits_for_row(place),
            PagePolicy::OpenAdaptive => queue.waits_for(place.bank) && !queue.waits_for_row(place),
        }
    }

    /// A bank's row is opened or used.
    #[inline]
    pub(super) fn used(&mut self, bank: BankId, now: Time) {
        if let Some(used) = self.used.get_mut(usize::from(bank)) {
            *used = now;
            self.next = self.next.min(now + self.timeout);
        }
    }

    /// When the row of a bank has not been used for the timeout.
    pub(super) fn idle_from(&self, bank: BankId) -> Time {
        self.used[usize::from(bank)] + self.timeout
    }

    /// No row times out before `next`.
    pub(super) fn set_next(&mut self, next: Time) {
        self.next = next;
    }

    /// A row may have timed out.
    #[inline]
    pub(super) fn may_be_due(&self, now: Time) -> bool {
        self.next <= now
    }
}
