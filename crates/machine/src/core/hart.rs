//! A hart: the thread that it runs, its window, and what stands in its way.

use crate::msg::Msg;
use durawarp_checkpoint::{state, value};
use durawarp_engine::Ctx;
use durawarp_riscv::fault::FaultKind;
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::instruction::{Class, Inst};
use durawarp_riscv::semantics::flag;

use super::cache::Cache;
use super::cause::Cause;
use super::handler_host::CoreHost;
use super::hart_regions::HartRegions;
use super::load_order::LoadOrder;
use super::parameters::CoreSpec;
use super::predictor::{Prediction, Predictor};
use super::program::Program;
use super::record::CoreRecord;
use super::remote::Remote;
use super::renaming::Renaming;
use super::reserved::Reserved;
use super::store_queue::StoreQueue;
use super::thread::Thread;
use super::weakened::OrderRule;
use super::window::{PENDING, Retires, Source, Window};

/// The other parts of the core, for what a hart does in one event.
pub(super) struct Moment<'a, 'c> {
    /// The cycle in which the event is.
    pub(super) now: u64,
    pub(super) program: &'a Program,
    pub(super) cache: &'a mut Cache,
    pub(super) record: &'a mut CoreRecord,
    pub(super) host: &'a mut CoreHost,
    pub(super) remote: &'a mut Remote,
    pub(super) cx: &'a mut Ctx<'c, Msg>,
    /// Lines that were lost by the core, or written by a hart, which are to be told to all harts but that
    /// one.
    pub(super) changed: &'a mut Vec<(u64, Option<u8>)>,
}

/// An instruction whose operands, or whose bytes, are not there yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) number: u64,
    pub(super) pc: u64,
    pub(super) inst: Inst,
    /// Cycle of dispatch.
    pub(super) dispatched: u64,
    pub(super) sources: [Source; 3],
    /// Of a branch.
    pub(super) prediction: Option<Prediction>,
}

value!(record Waiting { number, pc, inst, dispatched, sources, prediction });

/// Why nothing is dispatched, beside lack of room.
#[derive(Debug, Clone, Copy)]
pub(super) enum Blocked {
    /// It is.
    No,
    /// The target of the jump with this number is not known.
    Jump(u64),
    /// A fault, unless it is squashed.
    Fault,
    /// An instruction that is executed alone.
    Serial(Inst),
}

value!(choice Blocked { No, Jump(number), Fault, Serial(inst) });

/// Where dispatch stands.
#[derive(Debug)]
pub(super) struct FrontEnd {
    pub(super) pc: u64,
    /// Nothing is dispatched before this cycle, which follows a redirection.
    pub(super) resume_at: u64,
    pub(super) blocked: Blocked,
    /// The instruction that dispatch was redirected by.
    pub(super) redirected_by: u64,
    /// Cycle since which an instruction that is executed alone stands at the head.
    pub(super) alone_since: u64,
    /// The OS takes the hart from its thread: nothing more is dispatched.
    pub(super) leaves: bool,
}

value!(record FrontEnd { pc, resume_at, blocked, redirected_by, alone_since, leaves });

impl FrontEnd {
    /// It goes on at `pc`.
    fn at(pc: u64, resume_at: u64) -> FrontEnd {
        FrontEnd { pc, resume_at, blocked: Blocked::No, redirected_by: pc, alone_since: 0, leaves: false }
    }
}

/// A hart of a core.
#[derive(Debug)]
pub(super) struct Hart {
    /// Its number in the core.
    pub(super) index: u8,
    pub(super) thread: Thread,
    pub(super) front: FrontEnd,
    pub(super) predictor: Predictor,
    pub(super) window: Window,
    pub(super) waiting: Vec<Waiting>,
    /// Entries of the issue queue and of the load queue.
    pub(super) room: (usize, u32),
    pub(super) stores: StoreQueue,
    pub(super) loads: LoadOrder,
    /// Branches that were predicted and are not resolved.
    pub(super) open_branches: u32,
    /// The oldest instruction that cannot be executed, and why.
    pub(super) fault: Option<(u64, FaultKind)>,
    /// Rounding mode of floating point, as of dispatch: it is written by instructions that are executed
    /// alone.
    pub(super) frm: u8,
    pub(super) reserved: Reserved,
    /// Under a scheme of recoverable regions.
    pub(super) regions: Option<Box<HartRegions>>,
    pub(super) renaming: Renaming,
}

state!(Hart {
    parts: predictor, window, stores, regions; saved: thread, front, waiting, loads, open_branches, fault, frm, reserved,
    renaming; kept: index, room
});

impl Hart {
    /// A hart without a thread, with its share of the core's window.
    pub(super) fn new(index: u8, spec: &CoreSpec) -> Hart {
        let share = |entries: u32| entries / spec.harts;
        Hart {
            index,
            thread: Thread::None,
            front: FrontEnd::at(0, 0),
            predictor: Predictor::new(spec.predictor_entries),
            window: Window::new(share(spec.rob_entries)),
            waiting: Vec::with_capacity(share(spec.iq_entries) as usize),
            room: (share(spec.iq_entries) as usize, share(spec.lq_entries)),
            stores: StoreQueue::new(share(spec.sq_entries)),
            loads: LoadOrder::default(),
            open_branches: 0,
            fault: None,
            frm: 0,
            reserved: Reserved::default(),
            regions: None,
            renaming: Renaming::default(),
        }
    }

    /// Begins to run a thread.
    pub(super) fn begin(&mut self, state: &HartState) {
        self.window.begin(&state.registers);
        self.front = FrontEnd::at(state.pc, 0);
        self.set_fcsr(state.fcsr);
        self.reserved.clear();
        self.thread = Thread::Running;
        if let Some(regions) = &mut self.regions {
            regions.begin();
        }
    }

    /// Rounding mode and accrued exceptions of floating point, as of retirement.
    pub(super) fn fcsr(&self) -> u8 {
        self.frm << 5 | self.window.accrued
    }

    /// Sets both, of a hart whose window is empty.
    pub(super) fn set_fcsr(&mut self, fcsr: u8) {
        (self.frm, self.window.accrued) = (fcsr >> 5, fcsr & flag::ALL);
    }

    /// Where its thread stands, when nothing is under way.
    pub(super) fn state(&self) -> HartState {
        HartState { registers: self.window.values(), pc: self.front.pc, fcsr: self.fcsr() }
    }

    /// Nothing of what it has dispatched is left to be done.
    pub(super) fn is_drained(&self) -> bool {
        self.window.is_empty() && self.stores.is_empty()
    }

    /// The cycle in which the oldest instruction may retire, after `cycle`; none where memory decides.
    pub(super) fn retires_at(&self, cycle: u64) -> Option<u64> {
        let oldest = self.window.oldest()?;
        (oldest.complete != super::window::PENDING).then(|| oldest.complete.max(cycle + 1))
    }

    /// The window, or one of its queues, has no room until the oldest instruction retires.
    pub(super) fn behind_oldest(&self, cycle: u64) -> Stall {
        let until = self.retires_at(cycle);
        Stall { cause: if until.is_none() { Cause::Memory } else { Cause::Execution }, until }
    }

    /// An instruction waits in the window: there must be room in the issue queue.
    pub(super) fn wait(
        &mut self,
        pc: u64,
        inst: &Inst,
        sources: [Source; 3],
        cycle: u64,
        retires: Retires,
    ) -> Result<u64, Stall> {
        if self.waiting.len() >= self.room.0 {
            return Err(Stall { cause: Cause::Memory, until: None });
        }
        let number = self.window.push(pc, inst.rd, retires, 0, PENDING);
        self.waiting.push(Waiting { number, pc, inst: *inst, dispatched: cycle, sources, prediction: None });
        Ok(number)
    }

    /// Forgets every instruction from `first` on, and goes on elsewhere.
    pub(super) fn squash(&mut self, first: u64, pc: u64, resume_at: u64, cache: &mut Cache) {
        self.window.squash(first);
        self.stores.squash(first);
        self.loads.squash(first);
        cache.squash(self.index, first);
        self.forget_waiting(first);
        self.fault = self.fault.filter(|&(number, _)| number < first);
        self.front = FrontEnd { leaves: self.front.leaves, ..FrontEnd::at(pc, resume_at) };
        if let Some(regions) = &mut self.regions {
            regions.squash(&self.window, first);
        }
    }

    /// Forgets what waits from `first` on.
    pub(super) fn forget_waiting(&mut self, first: u64) {
        let kept = self.waiting.partition_point(|waiting| waiting.number < first);
        let dead = self.waiting.drain(kept..).filter(|waiting| waiting.inst.class() == Class::Branch);
        self.open_branches -= dead.count() as u32;
    }

    /// An instruction cannot be executed: it is a fault once it would retire.
    pub(super) fn note_fault(&mut self, number: u64, kind: FaultKind) {
        if self.fault.is_none_or(|(other, _)| number < other) {
            self.fault = Some((number, kind));
        }
        self.front.blocked = Blocked::Fault;
    }

    /// A line was lost by the core, or written by another of its harts.
    pub(super) fn line_changed(&mut self, line: u64, cycle: u64, m: &mut Moment<'_, '_>) {
        self.reserved.line_changed(line);
        if let Some(first) = self.loads.lost(line, m.program.tso)
            && !m.program.weakened.lacks(OrderRule::EarlyLoads)
        {
            self.execute_again(first, cycle, m);
        }
    }

    /// Executes a load and all after it once more: it has bytes that it may not have.
    pub(super) fn execute_again(&mut self, first: u64, cycle: u64, m: &mut Moment<'_, '_>) {
        m.record.counters.order_squashes += 1;
        let pc = self.window.entry(first).pc;
        let resume_at = cycle + u64::from(m.program.spec.redirect_cycles);
        self.squash(first, pc, resume_at, m.cache);
    }
}

/// Nothing can be dispatched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stall {
    pub(super) cause: Cause,
    /// The cycle in which to look again; none where a message, or a store that is performed, must come first.
    pub(super) until: Option<u64>,
}
