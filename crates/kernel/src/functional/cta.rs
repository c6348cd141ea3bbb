//! One CTA of the functional driver: its warps, shared and local memory, barriers.
//!
//! Barriers count warps, as hardware before Volta did: a warp arrives whole, whichever of its lanes execute
//! the barrier; exited warps are not awaited. A barrier executed by a part of a warp whose other lanes have
//! one still to come is a fault of the program. `pm.barrier.wg` is a barrier of its own beside the sixteen of
//! `bar.sync`. At `pm.barrier.kr` a CTA waits once all of its warps have arrived, until the driver reports
//! that all CTAs have.

use std::collections::BTreeMap;

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{
    Barrier, BarrierRed, Bulk, ClusterStep, Gathering, GroupStep, Inst, MachineRead, MemKind, Op, StoreHint, TensorStep,
};
use super::super::launch::Launch;
use super::super::memory::FlatMemory;
use super::super::tensor_memory::TensorMemory;
use super::super::warp::{Warp, lanes_of};
use super::access::{check_pm, execute, stores_to, tell, tell_read, volatile_lanes};
use super::alone::{Surroundings, repeats};
use super::bulk::{execute_bulk, tell_bulk};
use super::cluster::{Cluster, Peers, Seat};
use super::convergence::whole;
use super::interface::{Counts, Event, Limits, Observer, RunError, SLICE, Start, Starts, Writer};
use super::memories::{Memories, Watcher};
use super::pairs::step_pair;
use super::tensor::step_tensor;
use super::unbegun::Unbegun;

/// How far a CTA got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CtaProgress {
    Done,
    Paused,
    /// Every warp that has not ended waits at `pm.barrier.kr`.
    AtGrid,
    /// No warp can run before other CTAs of the cluster come to its barrier.
    AtCluster,
}

/// The gate of `pm.barrier.wg`, after those of `bar.sync`.
const PERSIST: usize = 16;

/// `pm.barrier.wg` as a barrier.
const PERSIST_BARRIER: Barrier =
    Barrier { id: PERSIST as u8, wait: true, threads: 0, red: BarrierRed::None, in_registers: false };

/// A barrier resource.
#[derive(Debug, Clone, Copy, Default)]
struct Gate {
    /// Arrivals of warps since the barrier last opened.
    arrivals: u32,
    /// Warps that arrived.
    arrived: u64,
    /// Warps that wait.
    waiting: u64,
    /// Threads expected, 0 for all.
    threads: u32,
    votes: u32,
    voters: u32,
}

/// A CTA under way.
#[derive(Debug, Default)]
pub(super) struct Cta {
    index: u64,
    warps: Vec<Warp>,
    /// Warps that can run, and warps that have not ended.
    runnable: u64,
    live: u64,
    gates: [Gate; PERSIST + 1],
    /// Warps that wait at `pm.barrier.kr`.
    at_grid: u64,
    /// Its place in its cluster, where the launch has clusters.
    seat: Option<Seat>,
    /// Persist barriers of its own or of the grid that it has passed.
    epoch: u32,
    shared: Vec<u8>,
    tensor: TensorMemory,
    local: Vec<u8>,
    warp_size: u32,
    drops_log_stores: bool,
    other_machine_sms: Option<u32>,
    /// Which warp runs next.
    turn: usize,
}

impl Cta {
    pub(super) fn start(
        &mut self,
        launch: &Launch,
        index: u64,
        limits: &Limits<'_>,
        memory: &FlatMemory,
        starts: &mut Option<Starts<'_>>,
    ) {
        let warp_size = limits.warp_size;
        let n = launch.warps_per_cta(warp_size) as usize;
        self.index = index;
        self.warp_size = warp_size;
        self.drops_log_stores = limits.drops_log_stores;
        self.other_machine_sms = limits.other_machine_sms;
        zero(&mut self.shared, launch.shared_bytes as usize);
        self.tensor.clear();
        zero(&mut self.local, n * warp_size as usize * launch.kernel.local_bytes as usize);
        self.warps.resize_with(n, Warp::default);
        self.live = u64::MAX >> (64 - n);
        // A restart replaces what a fresh CTA holds: its memory once, and each warp after its own start. It
        // may leave a warp without lanes, which has then ended.
        if let Some(starts) = starts {
            starts(Start::Memory { cta: index, shared: &mut self.shared, local: &mut self.local }, memory);
        }
        for (i, warp) in self.warps.iter_mut().enumerate() {
            warp.start(launch, index, i as u32, warp_size);
            if let Some(starts) = starts {
                starts(Start::Warp(warp), memory);
                self.live &= !(u64::from(warp.is_done()) << i);
            }
        }
        self.runnable = self.live;
        self.gates = Default::default();
        self.at_grid = 0;
        self.seat = None;
        self.epoch = 0;
        self.turn = 0;
    }

    /// It begins as the CTA of a rank of its cluster, where its memory lies while others run.
    pub(super) fn join(&mut self, cluster: &mut Cluster, rank: u32) {
        self.seat = Some(Seat::new(rank, self.warps.len()));
        cluster.swap(rank, &mut self.shared, &mut self.tensor);
    }

    /// [`Cta::run`] of a CTA of a cluster.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn run_in(
        &mut self,
        cluster: &mut Cluster,
        launch: &Launch,
        memory: &mut FlatMemory,
        counts: &mut Counts,
        budget: u64,
        observer: &mut Option<Observer<'_>>,
        unbegun: &mut Unbegun,
    ) -> Result<CtaProgress, RunError> {
        let Some(rank) = self.rank() else { unreachable!("a CTA of a cluster has its place") };
        cluster.swap(rank, &mut self.shared, &mut self.tensor);
        self.follow(cluster, launch, observer).map_err(RunError::Fault)?;
        let progress = self.run(launch, memory, counts, budget, observer, unbegun, &mut Some(cluster))?;
        if progress == CtaProgress::Done {
            cluster.end(rank);
        } else {
            cluster.swap(rank, &mut self.shared, &mut self.tensor);
        }
        Ok(progress)
    }

    /// Its rank, where the launch has clusters.
    pub(super) fn rank(&self) -> Option<u32> {
        self.seat.as_ref().map(|seat| seat.rank)
    }

    /// Goes on with the phases of the cluster's barrier that are over: warps that waited pass.
    fn follow(
        &mut self,
        cluster: &mut Cluster,
        launch: &Launch,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<(), Box<ProgramFault>> {
        let Some(seat) = &mut self.seat else { return Ok(()) };
        if seat.for_peer != 0
            && let Some(address) = cluster.pairs.take(seat.rank)
        {
            let w = std::mem::take(&mut seat.for_peer).trailing_zeros() as usize;
            let inst = &launch.kernel.code[self.warps[w].pc() as usize];
            let lanes = self.warps[w].guarded(inst);
            self.warps[w].write_tensor_result(inst.dst[0], lanes, address);
            self.warps[w].advance();
            self.runnable |= 1 << w;
        }
        while seat.over < cluster.phases.over() {
            seat.over += 1;
            seat.arrivals.end_phase();
        }
        for w in lanes_of(std::mem::take(&mut seat.waiting)) {
            self.runnable |= 1 << w;
            self.at_cluster(w, ClusterStep::Wait, launch, observer)?;
        }
        Ok(())
    }

    /// Lanes of a warp arrive at the barrier of the cluster, or wait there.
    fn at_cluster(
        &mut self,
        w: usize,
        step: ClusterStep,
        launch: &Launch,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<(), Box<ProgramFault>> {
        let (warp, Some(seat)) = (&mut self.warps[w], &mut self.seat) else {
            unreachable!("a launch whose kernel has such a barrier has clusters")
        };
        let pc = warp.pc();
        let lanes = warp.guarded(&launch.kernel.code[pc as usize]);
        // A warp that waits stays at its instruction, which `follow` executes again.
        let passes = match step {
            ClusterStep::Arrive => seat.arrivals.arrive(w, lanes).map(|()| true),
            ClusterStep::Wait => seat.arrivals.wait(w, lanes),
        };
        let passes = passes.map_err(|misuse| {
            let kind = FaultKind::Asynchronous(misuse.to_string());
            Box::new(ProgramFault::new(kind, launch, warp, pc, lanes.trailing_zeros()))
        })?;
        if !passes {
            seat.waiting |= 1 << w;
            self.runnable &= !(1 << w);
            return Ok(());
        }
        warp.advance();
        if let Some(observer) = observer {
            let waits = step == ClusterStep::Wait;
            let phase = if waits { seat.over - 1 } else { seat.over };
            (observer.tell)(Event::AtCluster { cta: self.index, warp: w as u32, passes: waits, phase });
        }
        Ok(())
    }

    /// Tells the cluster when all lanes have come to its barrier that have not exited.
    fn tell_cluster(
        &mut self,
        cluster: &mut Cluster,
        launch: &Launch,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<(), Box<ProgramFault>> {
        let (warps, Some(seat)) = (&self.warps, &mut self.seat) else { return Ok(()) };
        if !seat.arrivals.complete(|w| warps[w].live()) {
            return Ok(());
        }
        cluster.phases.arrive(seat.rank);
        if cluster.phases.end_phase() { self.follow(cluster, launch, observer) } else { Ok(()) }
    }

    /// Runs until every warp has ended or about `budget` warp instructions are done.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn run(
        &mut self,
        launch: &Launch,
        memory: &mut FlatMemory,
        counts: &mut Counts,
        budget: u64,
        observer: &mut Option<Observer<'_>>,
        unbegun: &mut Unbegun,
        cluster: &mut Option<&mut Cluster>,
    ) -> Result<CtaProgress, RunError> {
        let end = counts.warp_instructions + budget;
        loop {
            // The order of these tests matters. Without a live warp the second would hold too; and warps at
            // the grid's barrier are not runnable, but that is no deadlock.
            if self.live == 0 {
                return match self.warps.last() {
                    Some(last) => last.check_columns_freed(&self.tensor, launch).map(|()| CtaProgress::Done),
                    None => Ok(CtaProgress::Done),
                }
                .map_err(RunError::Fault);
            }
            if self.at_grid == self.live {
                return Ok(CtaProgress::AtGrid);
            }
            if self.runnable == 0 && self.seat.as_ref().is_some_and(Seat::waits) {
                return Ok(CtaProgress::AtCluster);
            }
            if self.runnable == 0 {
                return Err(self.deadlock(launch));
            }
            if counts.warp_instructions >= end {
                return Ok(CtaProgress::Paused);
            }
            if self.runnable >> self.turn & 1 != 0 {
                let slice = u64::from(SLICE).min(end - counts.warp_instructions) as u32;
                self.run_warp(self.turn, launch, memory, counts, slice, observer, unbegun, cluster)?;
            }
            self.turn = if self.turn + 1 == self.warps.len() { 0 } else { self.turn + 1 };
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn run_warp(
        &mut self,
        w: usize,
        launch: &Launch,
        memory: &mut FlatMemory,
        counts: &mut Counts,
        slice: u32,
        observer: &mut Option<Observer<'_>>,
        unbegun: &mut Unbegun,
        cluster: &mut Option<&mut Cluster>,
    ) -> Result<(), RunError> {
        let kernel = &*launch.kernel;
        for _ in 0..slice {
            let warp = &mut self.warps[w];
            let pc = warp.pc();
            let inst = &kernel.code[pc as usize];
            let lanes = warp.guarded(inst);
            if let Some(observer) = observer
                && observer.wanted.issued
            {
                let active = warp.active();
                (observer.tell)(Event::Issued { cta: self.index, warp: w as u32, pc, active, lanes });
            }
            // An instruction whose guard excludes every lane is issued, and counted, all the same.
            counts.warp_instructions += 1;
            counts.thread_instructions += u64::from(lanes.count_ones());
            counts.by_class[kernel.class[pc as usize] as usize] += 1;
            match inst.op {
                Op::Alu(_) => {
                    warp.alu(inst, launch, lanes);
                    warp.advance();
                }
                Op::Mem(mem) => {
                    let all = lanes;
                    // Only lanes that store to persistent memory are dropped; what a log keeps in volatile
                    // memory is stored.
                    let lanes = if self.drops_log_stores && mem.hint == StoreHint::Log && mem.kind == MemKind::Store {
                        volatile_lanes(warp, inst, mem, launch, all, pc, memory)?
                    } else {
                        all
                    };
                    counts.log_stores_dropped += u64::from((all & !lanes).count_ones());
                    if lanes != 0 {
                        // An atomic may overwrite the register that holds its address.
                        let told = observer
                            .as_ref()
                            .filter(|observer| observer.wanted.writes)
                            .and_then(|_| stores_to(warp, inst, mem, launch, lanes));
                        let (cta, of_cta) = (self.index, w as u32);
                        let watcher = observer.as_mut().filter(|observer| observer.wanted.accesses);
                        let watcher = watcher.map(|observer| {
                            let changes = observer.wanted.changes;
                            Watcher { observer: &mut *observer.tell, changes, cta, warp: of_cta, owner: cta }
                        });
                        let (shared, local) = (&mut self.shared, &mut self.local);
                        let rank = self.seat.as_ref().map_or(0, |seat| seat.rank);
                        let peers = cluster.as_mut().map(|cluster| Peers { rank, cluster });
                        let mut memories = Memories { global: memory, shared, local, watcher, peers };
                        execute(warp, inst, mem, launch, lanes, pc, &mut memories)?;
                        if let (Some(observer), Some(addresses)) = (observer.as_mut(), told) {
                            let writer = Writer { cta: self.index, epoch: self.epoch };
                            let bytes = launch.access_bytes(inst, mem) as usize;
                            tell(observer, writer, memory, lanes, &addresses, bytes);
                        }
                    }
                    warp.advance();
                }
                Op::Branch { target, reconverge } => warp.branch(lanes, target, reconverge),
                Op::Call { target } => warp.call(inst, launch, target).map_err(RunError::Fault)?,
                Op::Return => warp.ret(inst, launch).map_err(RunError::Fault)?,
                Op::Exit => {
                    if lanes == 0 {
                        warp.advance();
                        continue;
                    }
                    warp.exit(lanes);
                    let done = warp.is_done();
                    if done {
                        self.end_warp(w, launch, observer);
                    }
                    if let Some(cluster) = cluster {
                        self.tell_cluster(cluster, launch, observer).map_err(RunError::Fault)?;
                    }
                    if done {
                        return Ok(());
                    }
                }
                Op::Barrier(barrier) => {
                    let barrier = match lanes {
                        0 => barrier,
                        _ => warp.barrier_at(barrier, inst, launch, lanes).map_err(RunError::Fault)?,
                    };
                    // A part of a warp may arrive only if none of its other lanes meets a barrier any more.
                    if lanes != warp.live() {
                        whole(warp, launch, || format!("barrier {}", barrier.id), lanes)?;
                    }
                    if lanes == 0 {
                        warp.advance();
                    } else if self.arrive(w, launch, barrier, lanes, observer) {
                        // A warp that waits stays at the barrier: `try_open` reads the instruction there, and
                        // moves it on.
                        return Ok(());
                    }
                }
                Op::Cluster(_) if lanes == 0 => warp.advance(),
                Op::Cluster(step) => {
                    self.at_cluster(w, step, launch, observer).map_err(RunError::Fault)?;
                    if let Some(cluster) = cluster
                        && step == ClusterStep::Arrive
                    {
                        self.tell_cluster(cluster, launch, observer).map_err(RunError::Fault)?;
                    }
                    if self.runnable >> w & 1 == 0 {
                        return Ok(());
                    }
                }
                Op::Fence(_) => {
                    counts.fences += u64::from(lanes != 0);
                    warp.advance();
                }
                Op::Trap(trap) => {
                    if lanes != 0 {
                        return Err(ProgramFault::of_trap(trap, launch, warp, lanes).into());
                    }
                    warp.advance();
                }
                Op::Bulk(bulk) => {
                    if lanes != 0 {
                        self.bulk(w, bulk, inst, launch, lanes, memory, observer, unbegun, cluster)?;
                    }
                    self.warps[w].advance();
                }
                // Copies happen at once here: nothing is left to wait for. Traces alone wait for phases, and
                // are not executed here.
                Op::Nop | Op::Copies(_) | Op::BulkGroups(_) | Op::AwaitPhase(_) => warp.advance(),
                Op::Pm(op) => {
                    if lanes == 0 {
                        warp.advance();
                        continue;
                    }
                    // Nothing is cached here, so most of these change no state: they are checked and counted.
                    counts.pm_operations += 1;
                    check_pm(warp, inst, op, launch, lanes, pc, memory)?;
                    let Some(gathering) = op.gathers() else {
                        warp.advance();
                        continue;
                    };
                    if lanes != warp.live() {
                        let name = if gathering == Gathering::Cta { "pm.barrier.wg" } else { "pm.barrier.kr" };
                        whole(warp, launch, || name.to_owned(), lanes)?;
                    }
                    // Only the driver knows when all CTAs have arrived: it lets the warp go on by
                    // `pass_grid`.
                    if gathering == Gathering::Grid {
                        self.at_grid |= 1 << w;
                        self.runnable &= !(1 << w);
                        return Ok(());
                    } else if self.arrive(w, launch, PERSIST_BARRIER, lanes, observer) {
                        return Ok(());
                    }
                }
                // Launches come one after another here: what this one depends on is over.
                Op::Grid(_) => warp.advance(),
                // Only a machine counts registers.
                Op::Registers(_) => {
                    warp.check_whole(launch, lanes, "setmaxnreg").map_err(RunError::Fault)?;
                    warp.advance();
                }
                Op::Matrix(_) => {
                    warp.multiply(inst, launch, lanes).map_err(RunError::Fault)?;
                    warp.advance();
                }
                Op::WarpGroup(step) => {
                    if lanes != 0 {
                        self.warp_group(w, step, inst, launch, lanes, observer)?;
                    }
                    self.warps[w].advance();
                }
                Op::Tensor(step) if lanes != 0 && (step.is_of_pairs() || step == TensorStep::CommitTo) => {
                    let goes_on = self.pair(w, step, (inst, lanes), launch, observer, cluster);
                    if !goes_on.map_err(RunError::Fault)? {
                        return Ok(());
                    }
                }
                Op::Tensor(step) => {
                    if lanes != 0 {
                        let (warp, of) = (&mut self.warps[w], (self.index, w as u32));
                        let memories = (&mut self.tensor, &*self.shared);
                        step_tensor((warp, of), step, (inst, lanes), launch, memories, observer)
                            .map_err(RunError::Fault)?;
                    }
                    self.warps[w].advance();
                }
                Op::Machine(what) => {
                    let value = self.machine_value(what, w, counts.warp_instructions);
                    let warp = &mut self.warps[w];
                    warp.write_machine(inst, lanes, value);
                    warp.advance();
                }
            }
        }
        Ok(())
    }

    /// A step of a pair of CTAs, or an arrival in several; false where the warp waits for the peer.
    #[cold]
    fn pair(
        &mut self,
        w: usize,
        step: TensorStep,
        on: (&Inst, u64),
        launch: &Launch,
        observer: &mut Option<Observer<'_>>,
        cluster: &mut Option<&mut Cluster>,
    ) -> Result<bool, Box<ProgramFault>> {
        let rank = self.seat.as_ref().map_or(0, |seat| seat.rank);
        let peers = cluster.as_mut().map(|cluster| Peers { rank, cluster });
        let (warp, of) = (&mut self.warps[w], (self.index, w as u32));
        let memories = (&mut self.tensor, &mut self.shared[..]);
        let goes_on = step_pair((warp, of), step, on, launch, memories, peers, observer)?;
        match &mut self.seat {
            Some(seat) if !goes_on => {
                seat.for_peer |= 1 << w;
                self.runnable &= !(1 << w);
            }
            _ => self.warps[w].advance(),
        }
        Ok(goes_on)
    }

    /// A step of products of four warps. Products are done at once here: nothing is left to wait for.
    fn warp_group(
        &mut self,
        w: usize,
        step: GroupStep,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<(), RunError> {
        let (cta, warp) = (self.index, &mut self.warps[w]);
        if step != GroupStep::Multiply {
            return warp.check_whole(launch, lanes, step.name()).map_err(RunError::Fault);
        }
        if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.accesses) {
            let of = (cta, w as u32);
            warp.each_group_read(inst, launch, lanes, |lanes, addresses, bytes| {
                tell_read(observer, (of, cta), warp.pc(), lanes, addresses, bytes);
            })
            .map_err(RunError::Fault)?;
        }
        warp.multiply_group(inst, launch, lanes, &self.shared).map_err(RunError::Fault)
    }

    /// A bulk copy of some lanes.
    #[allow(clippy::too_many_arguments)]
    fn bulk(
        &mut self,
        w: usize,
        bulk: Bulk,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
        memory: &mut FlatMemory,
        observer: &mut Option<Observer<'_>>,
        unbegun: &mut Unbegun,
        cluster: &mut Option<&mut Cluster>,
    ) -> Result<(), RunError> {
        let (cta, warp) = (self.index, &self.warps[w]);
        let watcher = observer.as_mut().filter(|observer| observer.wanted.accesses).map(|observer| Watcher {
            changes: observer.wanted.changes,
            observer: &mut *observer.tell,
            cta,
            warp: w as u32,
            owner: cta,
        });
        let (shared, local) = (&mut self.shared, &mut self.local);
        let rank = self.seat.as_ref().map_or(0, |seat| seat.rank);
        let peers = cluster.as_mut().map(|cluster| Peers { rank, cluster });
        let mut memories = Memories { global: memory, shared, local, watcher, peers };
        execute_bulk(warp, inst, bulk, launch, lanes, &mut memories, unbegun)?;
        // Told afterwards, as of a store: what is there now.
        if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.writes)
            && bulk.kind.writes_global()
        {
            let copies = warp.bulk_copies(inst, bulk, launch, lanes).flatten();
            let copies = copies.map(|(_, bulk, operands)| (bulk, operands));
            tell_bulk(observer, Writer { cta, epoch: self.epoch }, (memory, launch), copies);
        }
        Ok(())
    }

    /// What warp `w` reads of a machine. There is no time and no machine here: instructions done so far stand
    /// for the clock, and the whole grid runs on one SM. Of another machine each number differs.
    fn machine_value(&self, what: MachineRead, w: usize, instructions: u64) -> u64 {
        let (w, warps) = (w as u64, self.warps.len() as u64);
        let clock = match self.other_machine_sms {
            None => instructions,
            // Seven times as slow, and begun earlier, by an odd number of more than 32 bits.
            Some(_) => instructions.wrapping_mul(7).wrapping_add((1 << 33) + 1_000_003),
        };
        match (what, self.other_machine_sms.map(u64::from)) {
            (MachineRead::Clock | MachineRead::Clock64 | MachineRead::GlobalTimer, _) => clock,
            (MachineRead::ClockHigh, _) => clock >> 32,
            (MachineRead::SmId, None) => 0,
            // Never 0, where there is another SM.
            (MachineRead::SmId, Some(sms)) if sms > 1 => 1 + self.index % (sms - 1),
            (MachineRead::SmId, Some(_)) => 0,
            (MachineRead::NSmId, None) => 1,
            (MachineRead::NSmId, Some(sms)) => sms,
            (MachineRead::WarpId, None) => w,
            (MachineRead::WarpId, Some(_)) => w + warps,
            (MachineRead::NWarpId, None) => warps,
            (MachineRead::NWarpId, Some(_)) => 2 * warps,
        }
    }

    fn end_warp(&mut self, w: usize, launch: &Launch, observer: &mut Option<Observer<'_>>) {
        self.live &= !(1 << w);
        self.runnable &= !(1 << w);
        // A barrier may have waited for this warp alone.
        for id in 0..self.gates.len() {
            if self.gates[id].arrived != 0 {
                self.try_open(id, launch, observer);
            }
        }
    }

    /// A warp arrives at a barrier; true if it has to wait.
    fn arrive(
        &mut self,
        w: usize,
        launch: &Launch,
        barrier: Barrier,
        lanes: u64,
        observer: &mut Option<Observer<'_>>,
    ) -> bool {
        if let Some(observer) = observer {
            (observer.tell)(Event::Arrived { cta: self.index, warp: w as u32, barrier: barrier.id });
        }
        let inst = &launch.kernel.code[self.warps[w].pc() as usize];
        let gate = &mut self.gates[usize::from(barrier.id)];
        gate.arrivals += 1;
        gate.arrived |= 1 << w;
        gate.threads = u32::from(barrier.threads);
        gate.votes += self.warps[w].barrier_votes(inst, lanes);
        gate.voters += lanes.count_ones();
        if barrier.wait {
            gate.waiting |= 1 << w;
            self.runnable &= !(1 << w);
        } else {
            self.warps[w].advance();
        }
        self.try_open(usize::from(barrier.id), launch, observer);
        self.runnable >> w & 1 == 0
    }

    fn try_open(&mut self, id: usize, launch: &Launch, observer: &mut Option<Observer<'_>>) {
        let gate = self.gates[id];
        let open = if gate.threads == 0 {
            gate.arrived & self.live == self.live
        } else {
            gate.arrivals * self.warp_size >= gate.threads
        };
        if !open {
            return;
        }
        self.gates[id] = Gate::default();
        if let Some(observer) = observer {
            (observer.tell)(Event::Opened { cta: self.index, barrier: id as u8, waiting: gate.waiting });
        }
        self.epoch += u32::from(id == PERSIST);
        for (w, warp) in self.warps.iter_mut().enumerate() {
            if gate.waiting >> w & 1 != 0 {
                let inst = &launch.kernel.code[warp.pc() as usize];
                if let Op::Barrier(barrier) = inst.op {
                    let lanes = warp.guarded(inst);
                    warp.write_barrier(inst, barrier, lanes, gate.votes, gate.voters);
                }
                warp.advance();
            }
        }
        self.runnable |= gate.waiting;
    }

    /// Every CTA of the grid has arrived at `pm.barrier.kr`: its warps go on.
    pub(super) fn pass_grid(&mut self) {
        self.epoch += 1;
        self.runnable |= self.at_grid;
        for w in lanes_of(std::mem::take(&mut self.at_grid)) {
            self.warps[w].advance();
        }
    }

    /// Every warp that does not wait repeats itself, as long as memory stays as it is.
    pub(super) fn repeats(&mut self, launch: &Launch, memory: &mut FlatMemory) -> bool {
        let (warps, shared, stale) = (&self.warps, &mut self.shared, &BTreeMap::new());
        let at_cluster = self.seat.as_ref().is_some_and(Seat::waits);
        (self.runnable != 0 || at_cluster)
            && lanes_of(self.runnable).all(|w| {
                let around = &mut Surroundings { launch, memory, shared, stale, caches_loads: false };
                repeats(warps[w].clone(), around).is_some()
            })
    }

    /// [`Cta::repeats`] of a CTA of a cluster.
    pub(super) fn repeats_in(&mut self, cluster: &mut Cluster, launch: &Launch, memory: &mut FlatMemory) -> bool {
        // One that waits at the cluster's barrier goes on when its turn comes, if that has opened since.
        if self.seat.as_ref().is_some_and(|seat| seat.waiting != 0 && seat.over < cluster.phases.over()) {
            return false;
        }
        let rank = self.rank().unwrap_or_default();
        if cluster.pairs.has(rank) {
            return false;
        }
        cluster.swap(rank, &mut self.shared, &mut self.tensor);
        let repeats = self.repeats(launch, memory);
        cluster.swap(rank, &mut self.shared, &mut self.tensor);
        repeats
    }

    /// Its number in the grid.
    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// Where the first warp is that has not ended.
    pub(super) fn place(&self, launch: &Launch) -> String {
        let first = (self.live.trailing_zeros() as usize).min(self.warps.len() - 1);
        let pos = launch.kernel.pos.get(self.warps[first].pc() as usize).copied().unwrap_or_default();
        let [x, y, z] = launch.cta_index(self.index);
        format!("warp {first} of CTA ({x},{y},{z}) is at {}:{}:{}", launch.kernel.file, pos.line, pos.column)
    }

    pub(super) fn deadlock(&self, launch: &Launch) -> RunError {
        let told = |waiting: u64, what: String| {
            let warps: Vec<String> = lanes_of(waiting).map(|w| w.to_string()).collect();
            let pos = launch.kernel.pos[self.warps[waiting.trailing_zeros() as usize].pc() as usize];
            let (warps, file) = (warps.join(", "), &launch.kernel.file);
            format!("warps {warps} wait at {file}:{}:{} for {what}", pos.line, pos.column)
        };
        let gates = self.gates.iter().enumerate().filter(|(_, gate)| gate.waiting != 0);
        let mut waiting: Vec<String> = gates
            .map(|(id, gate)| {
                let name = if id == PERSIST { "pm.barrier.wg".to_owned() } else { format!("barrier {id}") };
                let expected =
                    if gate.threads == 0 { "every thread".to_owned() } else { format!("{} threads", gate.threads) };
                told(gate.waiting, format!("{name} of {expected}"))
            })
            .collect();
        // Those that wait for other CTAs.
        if self.at_grid != 0 {
            waiting.push(told(self.at_grid, "pm.barrier.kr of every CTA".to_owned()));
        }
        let at_cluster = self.seat.as_ref().map_or(0, |seat| seat.waiting);
        if at_cluster != 0 {
            waiting.push(told(at_cluster, format!("barrier.cluster of {} CTAs", launch.cluster_ctas())));
        }
        let for_peer = self.seat.as_ref().map_or(0, |seat| seat.for_peer);
        if for_peer != 0 {
            waiting.push(told(for_peer, "tcgen05.alloc.cta_group::2 of the peer CTA".to_owned()));
        }
        RunError::Deadlock {
            kernel: launch.kernel.name.clone(),
            cta: launch.cta_index(self.index),
            waiting: waiting.join("; "),
        }
    }
}

fn zero(bytes: &mut Vec<u8>, n: usize) {
    bytes.clear();
    bytes.resize(n, 0);
}
