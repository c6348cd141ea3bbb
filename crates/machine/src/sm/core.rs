//! The core of an SM: warps, CTAs, schedulers, scoreboard, and where the cycles of warp slots go.
//!
//! It knows what a warp waits for and when it may issue. What an instruction does is in `walk.rs`; memory and
//! persistency are other parts of the SM. Invariant: a warp is in a ready mask of its scheduler, or in the
//! timers, or somebody else will resume it, as its [`Wait`] says.

use crate::scheduler::{Scheduler, Unit};
use crate::timers::Timers;
use durawarp_checkpoint::state;
use durawarp_kernel::ir::{Class, Kernel};
use durawarp_kernel::launch::Launch;

use super::copies::Copies;
use super::cta::CtaSlot;
use super::group::ProductQueue;
use super::launches::LaunchTable;
use super::parameters::SmCounters;
use super::register_reads::RegisterReads;
use super::slots::{Accounts, PENDING, WarpSlot, count};
use super::tensor_memory::TensorUnit;
use super::wait::Wait;
use super::wiring::SmParameters;

/// Warps of an SM, and what issues them.
#[derive(Debug)]
pub(super) struct IssueCore {
    pub(super) slots: Vec<WarpSlot>,
    pub(super) schedulers: Vec<Scheduler>,
    pub(super) timers: Timers,
    pub(super) accounts: Accounts,
    pub(super) ctas: Vec<CtaSlot>,
    /// Lanes of a warp.
    pub(super) warp_size: u32,
    /// Cycles from issue to result, by class.
    pub(super) latency: [u32; Class::COUNT],
    /// Cycles for which an instruction keeps its unit, by class.
    pub(super) interval: [u32; Class::COUNT],
    /// Warp instructions issued, by class.
    pub(super) class_counts: [u64; Class::COUNT],
    /// Asynchronous copies under way.
    pub(super) copies: Copies,
    /// Products of four warps under way, by warp.
    pub(super) products: Vec<ProductQueue>,
    /// Tensor memory, and products in it.
    pub(super) tensor: TensorUnit,
    /// Reads of registers of traced kernels.
    pub(super) register_reads: RegisterReads,
    /// Warps that wait for phases of barriers in shared memory, a bit each.
    pub(super) awaiting: u64,
    /// The host's cache is asked ahead for the registers of a warp's next instruction.
    pub(super) prefetches: bool,
    /// Values of instructions may wait ([`Warp::defer`](durawarp_kernel::warp::Warp::defer)).
    pub(super) defers: bool,
}

state!(IssueCore {
    sized: slots, ctas; parts: schedulers, register_reads; saved: timers, accounts, class_counts, copies, products, tensor, awaiting, prefetches, defers; kept: warp_size,
    latency, interval
});

impl IssueCore {
    /// No warps.
    pub(super) fn new(p: &SmParameters) -> Self {
        IssueCore {
            slots: (0..p.sm.warps).map(|slot| WarpSlot::new((slot % p.sm.schedulers) as u8)).collect(),
            schedulers: (0..p.sm.schedulers).map(|_| Scheduler::new(p.sm.policy)).collect(),
            timers: Timers::default(),
            accounts: Accounts::default(),
            ctas: (0..p.sm.ctas).map(|_| CtaSlot::default()).collect(),
            warp_size: p.sm.warp_size,
            latency: p.latency.by_class(&p.tensor),
            interval: p.interval.by_class(&p.tensor),
            class_counts: [0; Class::COUNT],
            copies: Copies::new(p.sm.warps),
            products: (0..p.sm.warps).map(|_| ProductQueue::default()).collect(),
            tensor: TensorUnit::new(p.tensor.memory_columns, p.sm.ctas, p.sm.warps),
            register_reads: RegisterReads::new(p),
            awaiting: 0,
            prefetches: false,
            defers: false,
        }
    }

    /// A warp waits for something else from `cycle` on.
    #[inline]
    pub(super) fn enter(&mut self, warp: usize, wait: Wait, cycle: u32) {
        self.slots[warp].enter(wait, cycle, &mut self.accounts);
    }

    /// A warp goes on waiting, for something else of the same account.
    pub(super) fn stays(&mut self, warp: usize, wait: Wait) {
        let slot = &mut self.slots[warp];
        debug_assert_eq!(wait.account(), slot.account, "a warp that stays changes no account");
        slot.wait = wait;
    }

    /// Finds out what a warp's next instruction waits for; the earliest it can issue is `from`.
    pub(super) fn settle(&mut self, warp: usize, from: u32, launch: &Launch) {
        self.settle_now(warp, from, launch);
    }

    /// [`IssueCore::settle`] where it is called for every instruction.
    #[inline(always)]
    pub(super) fn settle_now(&mut self, warp: usize, from: u32, launch: &Launch) {
        let slot = &mut self.slots[warp];
        let scheduler = &mut self.schedulers[usize::from(slot.scheduler)];
        let waits = (&mut self.timers, &mut self.accounts);
        settle_slot((warp, slot), scheduler, waits, self.prefetches, from, &launch.kernel);
    }

    /// Issues the next instruction of a warp that its scheduler has picked, if its values may wait: of
    /// kernels that compute that is most of them. Else nothing is done, and `false` returned.
    ///
    /// It does what the walk does for such an instruction, with slot and scheduler found once.
    #[inline]
    pub(super) fn issue_deferred(
        &mut self,
        scheduler: usize,
        warp: usize,
        cycle: u32,
        launches: &LaunchTable,
        counters: &mut SmCounters,
    ) -> bool {
        let (slot, scheduler) = (&mut self.slots[warp], &mut self.schedulers[scheduler]);
        let launch = launches.of(slot);
        let kernel = &*launch.kernel;
        let pc = slot.warp.pc() as usize;
        if !self.defers || !kernel.code[pc].is_free() {
            return false;
        }
        // Unit, counts, pc and scoreboard, as `issue` and `execute` have them.
        let class = slot.next.class as usize;
        scheduler.free_at[slot.next.unit as usize] = cycle + self.interval[class];
        self.class_counts[class] += 1;
        counters.thread_instructions += u64::from(count(slot.warp.active()));
        slot.warp.defer(launch);
        slot.write_from(&kernel.hazards[pc], cycle + self.latency[class]);
        let waits = (&mut self.timers, &mut self.accounts);
        settle_slot((warp, slot), scheduler, waits, self.prefetches, cycle + 1, kernel);
        self.accounts.issued_into(slot.account);
        slot.issued_at = cycle;
        true
    }

    /// The next instruction of a warp issues: reserves what it reads, and keeps its scheduler from issuing
    /// while that has to wait. By how many cycles its result is later.
    #[inline]
    pub(super) fn read_operands(&mut self, warp: usize, cycle: u32, launches: &LaunchTable) -> u32 {
        if self.register_reads.is_present() { self.read_banks(warp, cycle, launches) } else { 0 }
    }

    #[inline(never)]
    fn read_banks(&mut self, warp: usize, cycle: u32, launches: &LaunchTable) -> u32 {
        let slot = &self.slots[warp];
        let scheduler = usize::from(slot.scheduler);
        // Of PTX nothing is known.
        let Some(reads) = launches.of(slot).kernel.operand_reads.get(slot.warp.pc() as usize) else { return 0 };
        let issued = self.register_reads.issue(scheduler, warp as u8, reads, cycle);
        if issued.next_from > cycle + 1 {
            self.schedulers[scheduler].hold(issued.next_from);
        }
        issued.late
    }

    /// Warps whose result of fixed latency is there may issue.
    pub(super) fn end_latencies(&mut self, cycle: u32) {
        let mut due = self.timers.due(cycle);
        while due != 0 {
            let warp = due.trailing_zeros() as usize;
            due &= due - 1;
            let slot = &mut self.slots[warp];
            if slot.until > cycle {
                self.timers.insert(cycle, slot.until, warp as u8);
            } else {
                // Nothing but time could hold it back: the registers it needs are not written by anybody
                // else.
                self.schedulers[usize::from(slot.scheduler)].set_ready(slot.rank, slot.next.unit);
                slot.enter(Wait::Issue, cycle, &mut self.accounts);
            }
        }
    }

    /// The registers that the instruction at `pc` writes may be used from `cycle` on.
    pub(super) fn write_from(&mut self, warp: usize, pc: usize, cycle: u32, launch: &Launch) {
        self.slots[warp].write_from(&launch.kernel.hazards[pc], cycle);
    }

    /// The registers that the instruction at `pc` writes wait for memory.
    pub(super) fn write_later(&mut self, warp: usize, pc: usize, launch: &Launch) {
        self.write_from(warp, pc, PENDING, launch);
    }

    /// The warp and its CTA know of each other's fences from here on.
    pub(super) fn share_fences(&mut self, warp: usize) {
        let slot = &mut self.slots[warp];
        let cta = &mut self.ctas[usize::from(slot.cta)];
        cta.fenced = cta.fenced.max(slot.order.fenced);
        slot.order.fenced = cta.fenced;
    }
}

/// [`IssueCore::settle`] for who has found slot and scheduler.
#[inline(always)]
fn settle_slot(
    (warp, slot): (usize, &mut WarpSlot),
    scheduler: &mut Scheduler,
    (timers, accounts): (&mut Timers, &mut Accounts),
    prefetches: bool,
    from: u32,
    kernel: &Kernel,
) {
    let pc = slot.warp.pc() as usize;
    slot.next.class = kernel.class[pc];
    slot.next.unit = Unit::of(slot.next.class);
    let at = slot.ready_from(&kernel.hazards[pc]);
    // One call for each outcome: what a wait is counted as is known where it is known which it is.
    if at == PENDING {
        // Settled again when its data have come.
        slot.enter(Wait::Register, from, accounts);
        return;
    }
    // Values of other instructions mostly wait.
    if prefetches && slot.next.unit == Unit::Memory {
        slot.warp.prefetch(&kernel.hazards[pc], kernel);
    }
    if at <= from {
        scheduler.set_ready(slot.rank, slot.next.unit);
        slot.enter(Wait::Issue, from, accounts);
    } else {
        slot.until = at;
        timers.insert(from, at, warp as u8);
        slot.enter(Wait::Latency, from, accounts);
    }
}
