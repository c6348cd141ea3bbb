//! Warp slots of an SM: what each warp waits for, its scoreboard, and where its slot's cycles went.
//!
//! The scoreboard holds, for each register, the cycle from which it may be read or written again; a register
//! that waits for memory holds [`PENDING`]. An instruction is ready when the latest of its registers is: one
//! maximum, no polling.
//!
//! Invariant: every resident warp has exactly one [`Wait`], and every cycle of it is counted in exactly one
//! account: the sum of all accounts is the integral of resident warps over cycles.

use smallvec::SmallVec;

use crate::scheduler::Unit;
use durawarp_checkpoint::value;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Class, Hazards};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::warp::Warp;

use super::wait::{ACCOUNTS, Account, Wait};

/// Scoreboard entry of a register that waits for memory.
pub(super) const PENDING: u32 = u32::MAX;

/// A warp's accesses that are under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnderWay {
    /// Loads and atomics.
    pub(super) loads: u32,
    /// Stores not yet acknowledged.
    pub(super) stores: u32,
    /// Non-temporal stores and write-backs not yet durable.
    pub(super) persists: u32,
    /// Of these, non-temporal stores.
    pub(super) throughs: u32,
    /// What the warp's region waits for before it ends: line accesses of atomics whose results are to be
    /// copied into the front-end buffer, and bulk stores of which lines have not left.
    pub(super) copying: u32,
    /// A bulk reduction waits for its turn: a store behind it would begin its region without.
    pub(super) turn: bool,
    /// Bulk copies, whose requests are counted above once they have left.
    pub(super) bulk: u32,
    /// Its warp came to a barrier that has opened, and stores are under way since: its CTA knows it.
    pub(super) before_barrier: bool,
}

value!(record UnderWay { loads, stores, persists, throughs, copying, turn, bulk, before_barrier });

impl UnderWay {
    /// Persists that a fence waits for, which may be `ordered`.
    #[inline]
    pub(super) fn awaited(self, ordered: bool) -> u32 {
        if ordered { self.persists - self.throughs } else { self.persists }
    }

    /// Nothing is under way but what the front-end buffer waits for.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.is_performed() && self.persists == 0 && self.bulk == 0
    }

    /// Loads and stores are all performed.
    #[inline]
    pub(super) fn is_performed(self) -> bool {
        self.loads == 0 && self.stores == 0
    }
}

/// What a warp's fences order without waiting, by its scheme's numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FenceOrder {
    /// The number of its last non-temporal store.
    pub(super) non_temporal: u64,
    /// What must be durable before what it stores from now on: it knows of fences that did not wait.
    pub(super) fenced: u64,
    /// Cycle in which it came to its last persist barrier.
    pub(super) came: u32,
}

value!(record FenceOrder { non_temporal, fenced, came });

/// A warp's next instruction: the tick needs no more of a warp that does not issue.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextInstruction {
    pub(super) class: Class,
    pub(super) unit: Unit,
}

value!(record NextInstruction { class, unit });

/// One warp slot.
#[derive(Debug)]
pub(super) struct WarpSlot {
    pub(super) warp: Warp,
    /// Its scheduler; never changes.
    pub(super) scheduler: u8,
    /// Its next instruction, as of when it was last settled.
    pub(super) next: NextInstruction,
    /// Cycle from which each register may be used.
    pub(super) ready_at: SmallVec<[u32; 64]>,
    pub(super) wait: Wait,
    /// Where its cycles are counted, as its wait says: asked at every change.
    pub(super) account: Account,
    pub(super) rank: u8,
    /// CTA slot.
    pub(super) cta: u8,
    /// The place of its launch.
    pub(super) launch: u8,
    /// Cycle before which nothing issues (control latency).
    pub(super) not_before: u32,
    /// Cycle that the timers hold it for.
    pub(super) until: u32,
    pub(super) under_way: UnderWay,
    pub(super) order: FenceOrder,
    /// The cleaning of the L1 that its release waits for.
    pub(super) releasing: u64,
    /// Cycle from which it waits.
    pub(super) since: u32,
    /// Cycle in which it issued last.
    pub(super) issued_at: u32,
}

value!(record WarpSlot {
    warp, scheduler, next, ready_at, wait, account, rank, cta, launch, not_before, until, under_way, order,
    releasing, since, issued_at,
});

impl WarpSlot {
    /// An empty slot of a scheduler.
    pub(super) fn new(scheduler: u8) -> Self {
        WarpSlot {
            warp: Warp::default(),
            scheduler,
            next: NextInstruction { class: Class::Control, unit: Unit::Core },
            ready_at: SmallVec::new(),
            wait: Wait::NoWarp,
            account: Account::Empty,
            rank: 0,
            cta: 0,
            launch: 0,
            not_before: 0,
            until: 0,
            under_way: UnderWay::default(),
            order: FenceOrder::default(),
            releasing: 0,
            since: 0,
            issued_at: u32::MAX,
        }
    }

    /// The warp waits for something else from `cycle` on.
    // Always inline: where the wait is known, so is its account, and nothing is asked.
    #[inline(always)]
    pub(super) fn enter(&mut self, wait: Wait, cycle: u32, accounts: &mut Accounts) {
        let account = wait.account();
        accounts.moved(self.account, account, self.issued_at == accounts.cycle());
        if account == Account::Empty {
            self.issued_at = u32::MAX;
        }
        self.wait = wait;
        self.account = account;
        self.since = cycle;
    }

    /// Cycle from which an instruction may issue, as far as its registers and control latency go.
    #[inline]
    pub(super) fn ready_from(&self, hazards: &Hazards) -> u32 {
        let ready_at = self.ready_at.as_slice();
        let latest = |at: u32, &register: &u16| at.max(ready_at[usize::from(register)]);
        // Few instructions check more than four registers: without them the loop takes no turn.
        let (first, others) = hazards.check.split_at(4);
        let Some(others) = others.get(..usize::from(hazards.checks).saturating_sub(4)) else {
            return self.ready_from_many(hazards);
        };
        others.iter().fold(first.iter().fold(self.not_before, latest), latest)
    }

    /// [`WarpSlot::ready_from`] of an instruction with more registers than there is room for beside it.
    #[cold]
    fn ready_from_many(&self, hazards: &Hazards) -> u32 {
        let registers = hazards.read().iter().chain(hazards.written());
        registers.fold(self.not_before, |at, &register| at.max(self.ready_at[usize::from(register)]))
    }

    /// The registers that an instruction writes may be used from `cycle` on.
    #[inline]
    pub(super) fn write_from(&mut self, hazards: &Hazards, cycle: u32) {
        let ready_at = self.ready_at.as_mut_slice();
        for &register in hazards.written() {
            ready_at[usize::from(register)] = cycle;
        }
    }

    /// A fault of one lane at the current instruction.
    #[cold]
    pub(super) fn fault(&self, lane: u32, kind: FaultKind, launch: &Launch) -> ProgramFault {
        let (cta, thread) = self.warp.thread_of(lane);
        ProgramFault {
            kind,
            kernel: launch.kernel.name.clone(),
            file: launch.kernel.file.clone(),
            pos: launch.kernel.pos[self.warp.pc() as usize],
            cta: launch.cta_index(cta),
            thread: launch.thread_index(thread),
        }
    }
}

/// A fault of the program: boxed because it is as large as it is rare.
pub(super) type Fault = Box<ProgramFault>;

/// How many lanes these are. To count them takes a dozen instructions of a host; most warps have all of 32.
#[inline]
pub(super) fn count(lanes: u64) -> u32 {
    if lanes == u64::from(u32::MAX) { 32 } else { count_each(lanes) }
}

/// By itself, so that it is not done for a whole warp too, in place of a branch.
#[inline(never)]
fn count_each(lanes: u64) -> u32 {
    lanes.count_ones()
}

/// Where the cycles of warp slots went.
///
/// A warp that enters an account takes the cycle from the account's sum, and one that leaves it adds the
/// cycle: nothing is done for a cycle in which no warp moves. Sums wrap, as they are below 0 while warps are
/// there.
///
/// The slots tell which warps are in an account now, and which issued in the cycle that is not over. A total
/// is made of both.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    sum: [u64; ACCOUNTS],
    /// Warps in all accounts.
    resident: u32,
    /// Warps that issued, once a cycle each.
    pub(super) issued: u64,
    /// Ready, but another warp was picked.
    pub(super) not_selected: u64,
    /// Ready, but the unit was busy.
    pub(super) unit_busy: u64,
    /// Ready, but the load-store unit was full.
    pub(super) memory_full: u64,
    /// Cycles with at least one warp, as a sum.
    active: u64,
    /// Ready warps that a busy unit, and that the full load-store unit, keep back until the next tick.
    pub(super) asleep_on_unit: u32,
    pub(super) asleep_on_memory: u32,
    /// First cycle not yet accounted for.
    next: u32,
    ticked: bool,
}

value!(record Accounts {
    sum, resident, issued, not_selected, unit_busy, memory_full, active, asleep_on_unit, asleep_on_memory, next,
    ticked,
});

impl Accounts {
    /// Accounts for every cycle before `cycle`.
    #[inline]
    pub(super) fn advance(&mut self, cycle: u32) {
        if cycle > self.next {
            // The first of these cycles was a tick if there was one; ready warps were counted there one by
            // one.
            let asleep = u64::from(cycle - self.next) - u64::from(self.ticked);
            self.unit_busy += u64::from(self.asleep_on_unit) * asleep;
            self.memory_full += u64::from(self.asleep_on_memory) * asleep;
            self.next = cycle;
            self.ticked = false;
        }
    }

    /// The cycle that is not over.
    pub(super) fn cycle(&self) -> u32 {
        self.next
    }

    /// Warp-cycles of an account; those of `Ready` are split by why it did not issue.
    pub(super) fn total(&self, account: Account, slots: &[WarpSlot]) -> u64 {
        let here = slots.iter().filter(|slot| slot.account == account);
        here.fold(self.sum[account as usize], |sum, slot| {
            sum.wrapping_add(u64::from(self.next)).wrapping_add(u64::from(self.issues_now(slot)))
        })
    }

    /// Resident warps, summed over cycles: what all accounts, and the cycles of issue, add up to.
    pub(super) fn resident(&self, slots: &[WarpSlot]) -> u64 {
        let issuing = slots.iter().filter(|slot| slot.account != Account::Empty && self.issues_now(slot)).count();
        let waiting: u64 = Account::RESIDENT.iter().map(|&account| self.total(account, slots)).sum();
        waiting + self.issued - issuing as u64
    }

    /// Cycles with at least one warp.
    pub(super) fn active_cycles(&self) -> u64 {
        let now = if self.is_empty() { 0 } else { u64::from(self.next) };
        self.active.wrapping_add(now)
    }

    /// The warp issued in the cycle that is not over.
    fn issues_now(&self, slot: &WarpSlot) -> bool {
        slot.issued_at == self.next
    }

    fn is_empty(&self) -> bool {
        self.resident == 0
    }

    /// The current cycle is a tick: its ready warps are counted by the schedulers.
    #[inline]
    pub(super) fn tick(&mut self, cycle: u32) {
        self.advance(cycle);
        self.ticked = true;
        self.asleep_on_unit = 0;
        self.asleep_on_memory = 0;
    }

    /// A warp moves from one account to another; `issued` if it has issued in this cycle and that is counted.
    #[inline]
    pub(super) fn moved(&mut self, from: Account, to: Account, issued: bool) {
        let now = u64::from(self.next);
        if from == Account::Empty && to != Account::Empty {
            if self.is_empty() {
                self.active = self.active.wrapping_sub(now);
            }
            self.resident += 1;
        }
        self.sum[from as usize] = self.sum[from as usize].wrapping_add(now);
        self.sum[to as usize] = self.sum[to as usize].wrapping_sub(now);
        if to == Account::Empty && from != Account::Empty {
            self.resident -= 1;
            if self.is_empty() {
                self.active = self.active.wrapping_add(now);
            }
        }
        if issued {
            self.moved_on(from, to);
        }
    }

    /// A warp that has issued in this cycle, into `from`, is in `to` now.
    #[inline(never)]
    fn moved_on(&mut self, from: Account, to: Account) {
        self.sum[from as usize] = self.sum[from as usize].wrapping_add(1);
        self.counts_as_issued(to);
    }

    /// A warp issued in this cycle and is now in `account`: the cycle counts as issued, not as that
    /// account's.
    #[inline]
    pub(super) fn issued_into(&mut self, account: Account) {
        self.issued += 1;
        self.counts_as_issued(account);
    }

    #[inline]
    fn counts_as_issued(&mut self, account: Account) {
        if account == Account::Empty {
            // It was there for this cycle, and nobody will count it when the cycle is over.
            self.active = self.active.wrapping_add(u64::from(self.is_empty()));
        } else {
            self.sum[account as usize] = self.sum[account as usize].wrapping_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of warps in these accounts, that issued in these cycles.
    fn slots<const N: usize>(of: [(Account, u32); N]) -> [WarpSlot; N] {
        of.map(|(account, issued_at)| WarpSlot { account, issued_at, ..WarpSlot::new(0) })
    }

    #[test]
    fn every_warp_cycle_is_counted_once() {
        let mut a = Accounts::default();
        a.moved(Account::Empty, Account::Execution, false);
        a.moved(Account::Empty, Account::Memory, false);
        a.tick(10); // cycle 10: the first becomes ready and issues into Execution
        a.moved(Account::Execution, Account::Ready, false);
        a.moved(Account::Ready, Account::Execution, false);
        a.issued_into(Account::Execution);
        a.tick(14);
        let slots = slots([(Account::Execution, 10), (Account::Memory, u32::MAX)]);
        let total = |account| a.total(account, &slots);
        assert_eq!((a.issued, total(Account::Execution), total(Account::Memory)), (1, 10 + 3, 14));
        assert_eq!((a.active_cycles(), a.resident(&slots)), (14, 2 * 14));
    }

    #[test]
    fn the_cycle_of_a_last_issue_is_counted() {
        let mut a = Accounts::default();
        a.moved(Account::Empty, Account::Ready, false);
        a.tick(0); // issues its exit and is gone
        a.moved(Account::Ready, Account::Empty, false);
        a.issued_into(Account::Empty);
        a.tick(5);
        assert_eq!((a.issued, a.resident(&slots([(Account::Empty, u32::MAX)])), a.active_cycles()), (1, 1, 1));
    }

    #[test]
    fn a_warp_that_goes_on_in_the_cycle_in_which_it_issued_is_not_counted_below_nothing() {
        let mut a = Accounts::default();
        a.moved(Account::Empty, Account::Ready, false);
        a.moved(Account::Empty, Account::Ready, false);
        a.tick(0); // one arrives at a barrier, then the other, which opens it
        a.moved(Account::Ready, Account::Barrier, false);
        a.issued_into(Account::Barrier);
        a.moved(Account::Barrier, Account::Execution, true);
        a.moved(Account::Ready, Account::Execution, false);
        a.issued_into(Account::Execution);
        let slots = slots([(Account::Execution, 0), (Account::Execution, 0)]);
        assert_eq!((a.issued, a.resident(&slots)), (2, 0), "the cycle is not over");
        a.advance(1);
        let waiting: u64 = Account::RESIDENT.map(|account| a.total(account, &slots)).iter().sum();
        assert_eq!((a.issued, a.resident(&slots), waiting), (2, 2, 0));
        a.advance(3);
        assert_eq!((a.total(Account::Barrier, &slots), a.total(Account::Execution, &slots)), (0, 4));
    }
}
