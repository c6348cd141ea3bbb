//! The architectural state of one warp, and how an instruction changes it: registers, predicates, SIMT stack.
//!
//! Used by the functional driver and by the timed SMs alike. A warp of 64 lanes is two register groups of 32.
//! Lane masks are `u64`; bit `i` is lane `i`.
//!
//! The SIMT stack reconverges at immediate post-dominators (Fung et al., "Dynamic Warp Formation", MICRO
//! 2007): a divergent branch turns the current path into the one that continues at the reconvergence point,
//! and puts one path a side above it; a path that arrives there is popped. The fall-through side runs first.
//! Lanes that exit leave every path, so an early exit never keeps other lanes from meeting (see `cfg.rs`).
//! Memory operands are in `warp/memory.rs`, calls in `warp/calls.rs`. A warp that follows a trace
//! ([`super::traced`]) has its whole way on the stack.
//!
//! Invariants: masks shrink from bottom to top of the stack; the top path has a lane, or the stack is empty
//! and the warp done; the top path is never at its own reconvergence point. Not modelled: independent thread
//! scheduling (Volta and later); two sides of a branch never run interleaved, so a lane that spins for a
//! sibling of its warp never ends.

mod barrier;
mod bulk;
mod calls;
mod deferred;
mod group;
mod matrix;
mod memory;
pub mod prefetch;
mod tensor;
mod tensor_pair;

pub use tensor::TensorWork;
pub use tensor_pair::{CommitTargets, copy_pair, multiply_pair, pair_columns, pair_work};

use durawarp_checkpoint::value;
use smallvec::SmallVec;

use super::ir::{Barrier, BarrierRed, CONST, Hazards, Inst, Kernel, LANES, NONE, Op, Slot, Special};
use super::launch::Launch;
use super::semantics::{Frame, executor};
use super::traced::{Accesses, TracedCopy, WarpTrace};

pub use super::semantics::Registers;
pub use bulk::{BulkOperands, MovedBytes, SharedPiece, UnreadMap};
pub use memory::CopyTargets;

/// The reconvergence point of a path that ends by a return.
pub const RETURN: u32 = u32::MAX - 1;

/// One path of a diverged warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Where it executes next.
    pub pc: u32,
    /// Where it joins the path below it on the stack; [`RETURN`] for one that a call made.
    pub reconverge: u32,
    /// Its lanes.
    pub mask: u64,
}

value!(record Path { pc, reconverge, mask });

/// Where a warp without lanes is.
const NOWHERE: Path = Path { pc: 0, reconverge: super::ir::NEVER, mask: 0 };

/// A warp: registers and SIMT stack.
#[derive(Debug, Clone)]
pub struct Warp {
    // Inline as a rule: a simulated machine has more warps than fit into a cache, and each indirection is a
    // miss.
    groups: SmallVec<[Registers; 1]>,
    // The top of the stack by itself, since every instruction asks for it.
    top: Path,
    below: SmallVec<[Path; 2]>,
    /// Addresses of a warp that follows a trace.
    traced: Option<Box<Accesses>>,
    cta: u64,
    first_thread: u32,
    /// Instructions before the pc that have been passed and whose values are not computed yet.
    deferred: u32,
}

value!(record Warp { groups, top, below, traced, cta, first_thread, deferred });

impl Default for Warp {
    fn default() -> Self {
        Warp {
            groups: SmallVec::new(),
            top: NOWHERE,
            below: SmallVec::new(),
            traced: None,
            cta: 0,
            first_thread: 0,
            deferred: 0,
        }
    }
}

impl Warp {
    /// Every word of its state in order, for a digest.
    pub fn each_word(&self, take: &mut dyn FnMut(u64)) {
        for path in self.paths() {
            [u64::from(path.pc), u64::from(path.reconverge), path.mask].into_iter().for_each(&mut *take);
        }
        for Registers { r32, r64, predicates } in &self.groups {
            r32.iter().flatten().for_each(|word| take(u64::from(*word)));
            r64.iter().flatten().for_each(|word| take(*word));
            predicates.iter().for_each(|word| take(u64::from(*word)));
        }
    }

    /// Every word of a register of this kernel, by its number on the scoreboard.
    pub fn each_word_of(&self, kernel: &Kernel, register: u16, take: &mut dyn FnMut(u64)) {
        let at = usize::from(register);
        let (narrow, wide) = (usize::from(kernel.slots32), usize::from(kernel.slots64));
        for group in &self.groups {
            if at < narrow {
                group.r32[at].iter().for_each(|&word| take(word.into()));
            } else if at < narrow + wide {
                group.r64[at - narrow].iter().for_each(|&word| take(word));
            } else if let Some(&bits) = group.predicates.get(at - narrow - wide) {
                take(bits.into());
            }
        }
    }

    /// Makes this the warp `warp_in_cta` of CTA number `cta`: registers zeroed, special registers written,
    /// one path of all existing lanes at pc 0. Allocations are reused.
    pub fn start(&mut self, launch: &Launch, cta: u64, warp_in_cta: u32, warp_size: u32) {
        let kernel = &launch.kernel;
        let groups = (warp_size as usize).div_ceil(LANES);
        self.cta = cta;
        self.first_thread = warp_in_cta * warp_size;
        self.groups.resize_with(groups, Registers::default);
        for group in &mut self.groups {
            zero(&mut group.r32, usize::from(kernel.slots32), [0; LANES]);
            zero(&mut group.r64, usize::from(kernel.slots64), [0; LANES]);
            zero(&mut group.predicates, usize::from(kernel.predicates), 0);
        }
        let lanes = launch.threads_per_cta().saturating_sub(self.first_thread).min(warp_size);
        self.below.clear();
        self.traced = None;
        self.deferred = 0;
        let mask = if lanes > 0 { u64::MAX >> (64 - lanes) } else { 0 };
        self.top = Path { mask, ..NOWHERE };
        if !kernel.specials.is_empty() {
            self.write_specials(launch);
        }
    }

    /// Makes this warp, which has just started, execute a trace in place of the kernel from its entry.
    pub fn follow(&mut self, trace: WarpTrace) {
        let (way, lanes, accesses) = trace.into_parts();
        // Each path joins the next below it at once; the bottom has every lane that has not exited.
        let bottom = Path { pc: 0, reconverge: super::ir::NEVER, mask: u64::from(lanes) };
        let path = |&(pc, lanes): &(u32, u32)| Path { pc, reconverge: pc + 1, mask: u64::from(lanes) };
        self.continue_on(std::iter::once(bottom).chain(way.iter().rev().map(path)));
        self.traced = Some(Box::new(accesses));
    }

    /// The addresses of `lanes` in the step of its trace that is at hand.
    ///
    /// # Panics
    /// Without a trace, or addresses of that step.
    #[cold]
    pub fn traced_addresses(&self, lanes: u64, out: &mut [u64; 64]) {
        let Some(accesses) = &self.traced else { panic!("an address of a trace, and no trace") };
        // All that is below but the bottom is still to come.
        accesses.of_step(self.below.len() - 1, lanes_of(lanes), out);
    }

    /// The address of one lane in the step of its trace that is at hand.
    ///
    /// # Panics
    /// As [`traced_addresses`](Self::traced_addresses), and where the lane does not execute the step.
    pub(crate) fn traced_address(&self, lane: u32) -> u64 {
        let Some(accesses) = &self.traced else { panic!("an address of a trace, and no trace") };
        let before = self.active() & ((1 << lane) - 1);
        accesses.of_lane(self.below.len() - 1, before.count_ones() as usize)
    }

    /// What the copy engine moves for the step of its trace that is at hand; none without a trace, or a copy.
    #[cold]
    pub fn traced_copy(&self) -> Option<&TracedCopy> {
        self.traced.as_ref()?.copy_of_step(self.below.len() - 1)
    }

    fn write_specials(&mut self, launch: &Launch) {
        let ctaid = launch.cta_index(self.cta);
        // Indices are counted up from the warp's first thread, which takes no division a lane. Lanes past the
        // end of the CTA get indices too, but never run.
        let mut tid = launch.thread_index(self.first_thread);
        for (group, registers) in self.groups.iter_mut().enumerate() {
            let tids = next_indices(&mut tid, launch.block);
            for &(special, slot) in &launch.kernel.specials {
                // Each writes its place: a value of the whole `match` would be built apart and copied.
                let lanes = &mut registers.r32[usize::from(slot)];
                match special {
                    Special::Tid(axis) => *lanes = tids[usize::from(axis)],
                    Special::Ctaid(axis) => lanes.fill(ctaid[usize::from(axis)]),
                    Special::ClusterCtaid(axis) => lanes.fill(launch.cluster_ctaid(self.cta)[usize::from(axis)]),
                    Special::ClusterRank => lanes.fill(launch.cluster_of(self.cta).1),
                    Special::ClusterId(axis) => lanes.fill(launch.cluster_id(self.cta)[usize::from(axis)]),
                    Special::LaneId => *lanes = std::array::from_fn(|lane| (group * LANES + lane) as u32),
                    Special::LaneMask(which) => *lanes = std::array::from_fn(|lane| lane_mask(which, lane as u32)),
                    Special::Group => {
                        let first = launch.first_group(self.cta) + self.first_thread / LANES as u32;
                        lanes.fill(first + group as u32);
                    }
                    Special::LaneOfGroup => *lanes = std::array::from_fn(|lane| lane as u32),
                    Special::Cta => lanes.fill(self.cta as u32),
                }
            }
        }
    }

    /// Every lane has exited.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.top.mask == 0
    }

    /// The program counter of the current path.
    #[inline]
    pub fn pc(&self) -> u32 {
        self.top.pc
    }

    /// Lanes of the current path.
    #[inline]
    pub fn active(&self) -> u64 {
        self.top.mask
    }

    /// Lanes not yet exited, on any path.
    #[inline]
    pub fn live(&self) -> u64 {
        self.below.first().unwrap_or(&self.top).mask
    }

    /// Makes the warp continue on these paths, bottom (all live lanes) to top: what a restart from a
    /// checkpoint does.
    pub(super) fn continue_on(&mut self, paths: impl IntoIterator<Item = Path>) {
        self.below.clear();
        self.below.extend(paths);
        self.top = self.below.pop().unwrap_or(NOWHERE);
        self.settle();
    }

    /// The SIMT stack, bottom (all live lanes) to top (the current path).
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.below.iter().chain((!self.is_done()).then_some(&self.top))
    }

    /// Active lanes for which the instruction's guard holds.
    #[inline]
    pub fn guarded(&self, inst: &Inst) -> u64 {
        match inst.guard.parts() {
            None => self.active(),
            Some((slot, negated)) => {
                let holds = self.predicate(slot);
                self.active() & if negated { !holds } else { holds }
            }
        }
    }

    /// A predicate of every lane, one bit each. A constant slot is false or true by its low bit.
    #[inline]
    pub(super) fn predicate(&self, slot: Slot) -> u64 {
        if slot & CONST != 0 {
            return 0u64.wrapping_sub(u64::from(slot & 1));
        }
        let mut bits = 0;
        for (i, group) in self.groups.iter().enumerate() {
            bits |= u64::from(group.predicates[usize::from(slot)]) << (i * LANES);
        }
        bits
    }

    /// Executes a register-to-register instruction on `lanes` (already guarded). Does not move the pc.
    ///
    /// # Panics
    /// When the instruction is not an [`Op::Alu`].
    #[inline]
    pub fn alu(&mut self, inst: &Inst, launch: &Launch, lanes: u64) {
        self.alu_each(std::slice::from_ref(inst), launch, lanes);
    }

    fn alu_each(&mut self, code: &[Inst], launch: &Launch, lanes: u64) {
        let execute = executor();
        for (i, regs) in self.groups.iter_mut().enumerate() {
            let mask = (lanes >> (i * LANES)) as u32;
            if mask != 0 {
                execute(&mut Frame { regs, consts32: &launch.consts32, consts64: &launch.consts64, mask }, code);
            }
        }
    }

    /// Whether it pays to [`Warp::prefetch`] where so many warps of a kernel are resident.
    pub fn prefetch_pays(kernel: &Kernel, warps: u64, warp_size: u32) -> bool {
        prefetch::pays(kernel, warps, warp_size)
    }

    /// Asks the host's cache for the registers of an instruction that is about to be executed. A hint: no
    /// state changes.
    #[inline]
    pub fn prefetch(&self, hazards: &Hazards, kernel: &Kernel) {
        prefetch::rows(&self.groups, hazards, kernel);
    }

    /// Moves the current path to the next instruction, joining paths that reconverge there.
    #[inline]
    pub fn advance(&mut self) {
        self.top.pc += 1;
        if self.top.pc == self.top.reconverge {
            self.settle();
        }
    }

    /// Executes a branch whose guard holds for `taken`, joining or splitting paths.
    pub fn branch(&mut self, taken: u64, target: u32, reconverge: u32) {
        let top = self.top;
        let taken = taken & top.mask;
        let fall_through = top.pc + 1;
        if taken == 0 || taken == top.mask {
            self.top.pc = if taken == 0 { fall_through } else { target };
            self.settle();
            return;
        }
        let rest = top.mask & !taken;
        // Unless the path below already waits there for these lanes.
        if top.reconverge != reconverge || self.below.is_empty() {
            self.below.push(Path { pc: reconverge, ..top });
        }
        for (pc, mask) in [(target, taken), (fall_through, rest)] {
            if pc != reconverge {
                self.below.push(Path { pc, reconverge, mask });
            }
        }
        self.top = self.below.pop().unwrap_or(NOWHERE);
        self.settle();
    }

    /// Ends `lanes` of the current path; the rest of it, if any, advances.
    pub fn exit(&mut self, lanes: u64) {
        self.top.mask &= !lanes;
        for path in &mut self.below {
            path.mask &= !lanes;
        }
        if self.top.mask != 0 {
            self.advance();
        } else {
            self.settle();
        }
    }

    /// Pops paths without lanes and paths that have arrived at their reconvergence point.
    fn settle(&mut self) {
        while self.top.mask == 0 || self.top.pc == self.top.reconverge {
            let Some(path) = self.below.pop() else {
                self.top = NOWHERE;
                return;
            };
            self.top = path;
        }
    }

    /// Writes a value that only the machine knows to every one of `lanes` of a destination register (64-bit
    /// for the two 64-bit clocks).
    pub fn write_machine(&mut self, inst: &Inst, lanes: u64, value: u64) {
        let Op::Machine(what) = inst.op else { panic!("not a machine read: {:?}", inst.op) };
        let slot = usize::from(inst.dst[0]);
        for lane in lanes_of(lanes) {
            let (group, lane) = (&mut self.groups[lane / LANES], lane % LANES);
            if what.is_wide() {
                group.r64[slot][lane] = value;
            } else {
                group.r32[slot][lane] = value as u32;
            }
        }
    }

    /// How many of `lanes` vote true at a `bar.red`.
    pub fn barrier_votes(&self, inst: &Inst, lanes: u64) -> u32 {
        if inst.src[0] == NONE {
            return 0;
        }
        let holds = self.predicate(inst.src[0]);
        (lanes & if inst.imm & 1 != 0 { !holds } else { holds }).count_ones()
    }

    /// Writes the result of a `bar.red` in which `threads` took part and `votes` of them were true.
    pub fn write_barrier(&mut self, inst: &Inst, barrier: Barrier, lanes: u64, votes: u32, threads: u32) {
        let slot = usize::from(inst.dst[0]);
        let holds = match barrier.red {
            BarrierRed::None => return,
            BarrierRed::Popc => {
                for lane in lanes_of(lanes) {
                    self.groups[lane / LANES].r32[slot][lane % LANES] = votes;
                }
                return;
            }
            BarrierRed::And => votes == threads,
            BarrierRed::Or => votes > 0,
        };
        for (i, group) in self.groups.iter_mut().enumerate() {
            let mask = (lanes >> (i * LANES)) as u32;
            let p = &mut group.predicates[slot];
            *p = if holds { *p | mask } else { *p & !mask };
        }
    }

    /// CTA number and thread number (in the CTA) of a lane, for a fault report.
    pub fn thread_of(&self, lane: u32) -> (u64, u32) {
        (self.cta, self.first_thread + lane)
    }

    /// A 64-bit register's value in one lane, for tests and debuggers.
    pub fn read64(&self, slot: Slot, lane: u32) -> u64 {
        self.groups[lane as usize / LANES].r64[usize::from(slot)][lane as usize % LANES]
    }

    /// The register groups, for tests and debuggers.
    pub fn groups_mut(&mut self) -> &mut [Registers] {
        &mut self.groups
    }
}

/// The lane numbers of a mask, ascending.
pub(super) fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}

fn zero<T: Copy>(values: &mut Vec<T>, n: usize, zero: T) {
    values.clear();
    values.resize(n, zero);
}

/// The indices of [`LANES`] threads of a CTA by axis, x fastest, from that of the first on, which becomes
/// that of the next ones' first.
fn next_indices(first: &mut [u32; 3], [bx, by, _]: [u32; 3]) -> [[u32; LANES]; 3] {
    // All of one row, as of most CTAs: no lane is asked whether it is a row's last.
    if first[0] + LANES as u32 <= bx {
        let [x, y, z] = *first;
        first[0] += LANES as u32;
        if first[0] == bx {
            next_row(first, by);
        }
        return [std::array::from_fn(|lane| x + lane as u32), [y; LANES], [z; LANES]];
    }
    let mut indices = [[0; LANES]; 3];
    for lane in 0..LANES {
        for (axis, values) in indices.iter_mut().enumerate() {
            values[lane] = first[axis];
        }
        first[0] += 1;
        if first[0] == bx {
            next_row(first, by);
        }
    }
    indices
}

/// The first index of the row behind this one.
fn next_row(index: &mut [u32; 3], by: u32) {
    index[0] = 0;
    index[1] += 1;
    if index[1] == by {
        index[1] = 0;
        index[2] += 1;
    }
}

fn lane_mask(which: u8, lane: u32) -> u32 {
    let bit = 1u32 << lane;
    let below = bit - 1;
    match which {
        0 => bit,
        1 => below,
        2 => below | bit,
        3 => !(below | bit),
        _ => !below,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ir::NEVER;
    use super::*;

    fn warp(mask: u64) -> Warp {
        Warp { top: Path { mask, ..NOWHERE }, ..Warp::default() }
    }

    #[test]
    fn threads_have_the_indices_of_their_numbers() {
        for block in [[32, 1, 1], [64, 2, 1], [33, 3, 2], [8, 4, 4], [96, 1, 3], [1, 1, 64], [40, 8, 1]] {
            let index = |linear: u32| {
                let [bx, by, _] = block;
                [linear % bx, linear / bx % by, linear / (bx * by)]
            };
            let mut next = [0; 3];
            for first in (0..block.iter().product()).step_by(LANES) {
                let indices = next_indices(&mut next, block);
                for (lane, thread) in (first..first + LANES as u32).enumerate() {
                    let found: [u32; 3] = std::array::from_fn(|axis| indices[axis][lane]);
                    assert_eq!(found, index(thread), "thread {thread} of {block:?}");
                }
            }
        }
    }

    #[test]
    fn a_diverged_warp_runs_the_fall_through_side_first_and_joins() {
        let mut w = warp(0xf);
        w.branch(0b0011, 10, 20);
        assert_eq!((w.pc(), w.active(), w.live()), (1, 0b1100, 0xf));
        w.branch(0b1100, 20, 20);
        assert_eq!((w.pc(), w.active()), (10, 0b0011));
        w.branch(0b0011, 20, 20);
        assert_eq!((w.pc(), w.active()), (20, 0xf));
    }

    #[test]
    fn a_loop_whose_lanes_leave_one_by_one_keeps_the_stack_shallow() {
        let mut w = warp(u64::from(u32::MAX));
        for lane in 0..32 {
            // `@p bra loop` at pc 0: lanes above `lane` go on.
            w.branch(!0 << (lane + 1), 0, 1);
            assert!(w.paths().count() <= 2);
        }
        assert_eq!((w.pc(), w.active()), (1, u64::from(u32::MAX)));
    }

    #[test]
    fn exited_lanes_leave_every_path() {
        let mut w = warp(0xf);
        w.branch(0b0011, 10, 20);
        w.exit(0b1100);
        assert_eq!((w.pc(), w.active(), w.live()), (10, 0b0011, 0b0011));
        w.exit(0b0001);
        assert_eq!((w.pc(), w.active()), (11, 0b0010));
        w.exit(0b0010);
        assert!(w.is_done());
    }

    #[test]
    fn paths_that_meet_only_at_exit_keep_every_lane_live() {
        let mut w = warp(0xf);
        w.branch(0b0101, 10, NEVER);
        assert_eq!((w.active(), w.live()), (0b1010, 0xf));
        w.exit(0b1010);
        assert_eq!((w.pc(), w.active(), w.live()), (10, 0b0101, 0b0101));
        w.exit(0b0101);
        assert!(w.is_done());
    }

    #[test]
    fn a_taken_side_that_is_the_join_point_costs_no_path() {
        let mut w = warp(0xf);
        w.branch(0b0001, 9, 9);
        assert_eq!((w.pc(), w.active(), w.paths().count()), (1, 0b1110, 2));
    }
}
