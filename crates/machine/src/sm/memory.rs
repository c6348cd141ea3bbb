//! Memory instructions of an SM: from addresses to line accesses, through the L1 and the crossbar, and back.
//!
//! Checks come first: an access outside every allocation, or not aligned to its size, is a fault of the
//! program with its kernel, PTX line and thread. Shared memory and constants are read and written at issue:
//! only this SM's issue order touches them, so the values are those of the ordered pipeline behind it.
//!
//! Local memory is laid out word by word across the lanes of a warp (CUDA: "consecutive 32-bit words are
//! accessed by consecutive thread IDs"), so an access of 8 or 16 bytes is several line accesses that collect
//! in a staging room.

use crate::coalescer::{Form, coalesce, coalesce_form, lanes_of};
use crate::msg::{Atomics, Payload};
use crate::shared_memory::passes;
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{AtomOp, CacheOp, Inst, Mem, MemKind, Op, PhaseOp, Space};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::resolve_generic;
use durawarp_kernel::warp::Warp;
use durawarp_persist::handler::SmEvent;

use super::copies::{CopyUnderWay, check_copy, write_copy};
use super::core::IssueCore;
use super::front_end::FrontEndWaits;
use super::lsu::{Lsu, NO_LOAD, Work};
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::persist;
use super::slots::Fault;

/// One instruction's access in one space.
pub(super) struct Share<'a> {
    pub(super) warp: usize,
    pub(super) pc: usize,
    pub(super) launch: &'a Launch,
    pub(super) inst: &'a Inst,
    pub(super) mem: Mem,
    /// Bytes a lane.
    pub(super) bytes: u32,
    pub(super) lanes: u64,
    /// Addresses in the space.
    pub(super) address: &'a [u64; 64],
    pub(super) form: Form,
    /// Pending load, opened by the first share that needs one.
    pub(super) load: &'a mut u16,
}

impl Share<'_> {
    /// All addresses or'ed together: none is greater.
    #[inline]
    fn bits(&self) -> u64 {
        if self.lanes == u64::from(u32::MAX) {
            self.address[..32].iter().fold(0, |bits, a| bits | a)
        } else {
            lanes_of(self.lanes).fold(0, |bits, lane| bits | self.address[lane])
        }
    }

    /// The least and the greatest address, and all addresses or'ed together.
    #[inline]
    fn extent(&self) -> (u64, u64, u64) {
        let first = self.address[self.lanes.trailing_zeros() as usize];
        match self.form {
            Form::Uniform => (first, first, first),
            // Aligned, by its form.
            Form::Consecutive => (first, first + 31 * u64::from(self.bytes), first),
            Form::Any => {
                let with = |(low, high, bits): (u64, u64, u64), a: u64| (low.min(a), high.max(a), bits | a);
                if self.lanes == u64::from(u32::MAX) {
                    self.address[..32].iter().fold((first, first, 0), |all, &a| with(all, a))
                } else {
                    lanes_of(self.lanes).fold((first, first, 0), |all, lane| with(all, self.address[lane]))
                }
            }
        }
    }
}

/// What `narrow` makes of each lane's address.
#[inline]
fn narrowed(address: &[u64; 64], lanes: u64, narrow: impl Fn(u64) -> u16) -> [u16; 64] {
    let mut offset = [0; 64];
    let [low, high] = [0, 32].map(|first| first..first + 32);
    for i in low {
        offset[i] = narrow(address[i]);
    }
    // As a rule no lane above 31 takes part: half of the offsets are enough.
    if lanes >> 32 != 0 {
        for i in high {
            offset[i] = narrow(address[i]);
        }
    }
    offset
}

/// Calls `f` with a base address and each lane's distance from it: once for all lanes, or, when they lie too
/// far apart for 16 bits, lane by lane. `most` is at least the greatest address.
#[inline]
fn in_reach(share: &Share<'_>, most: u64, mut f: impl FnMut(usize, &[u16; 64], u64)) {
    let Share { address, lanes, bytes, form, .. } = *share;
    match form {
        Form::Uniform => return f(address[0] as usize, &[0; 64], lanes),
        Form::Consecutive => return f(address[0] as usize, &std::array::from_fn(|i| (i as u32 * bytes) as u16), lanes),
        Form::Any => {}
    }
    if most <= u64::from(u16::MAX) {
        // The whole space lies within 16 bits, as shared memory does as a rule.
        return f(0, &narrowed(address, lanes, |a| a as u16), lanes);
    }
    let (low, high, _) = share.extent();
    let mut offset = [0; 64];
    if high - low <= u64::from(u16::MAX) {
        for lane in lanes_of(lanes) {
            offset[lane] = (address[lane] - low) as u16;
        }
        f(low as usize, &offset, lanes);
    } else {
        for lane in lanes_of(lanes) {
            f(address[lane] as usize, &offset, 1 << lane);
        }
    }
}

/// Issues a warp's memory instruction of `lanes` (already guarded). The pc still points to it.
pub(super) fn issue_memory(
    warp: usize,
    lanes: u64,
    core: &mut IssueCore,
    lsu: &mut Lsu,
    memory: &mut MemorySide,
    front_end: &FrontEndWaits,
    m: &mut Moment<'_>,
) -> Result<(), Fault> {
    if lanes == 0 {
        return Ok(());
    }
    let launch = m.launch(&core.slots[warp]);
    let pc = core.slots[warp].warp.pc() as usize;
    let inst = &launch.kernel.code[pc];
    let Op::Mem(mem) = inst.op else { unreachable!("a memory instruction") };
    let mut lanes = lanes;
    // Only some lanes have addresses of rows, but all of them get elements.
    if let MemKind::Matrix(_) = mem.kind {
        core.slots[warp].warp.check_whole(launch, lanes, "ldmatrix")?;
        lanes = Warp::row_lanes(inst, lanes);
        m.record.tensor.matrix_loads += 1;
    }
    // Taken until the access is under way. Nothing is read of lanes that take no part, but of the first 32
    // when all of them are narrowed together.
    let mut address = lsu.lane_addresses.take().unwrap_or_else(|| Box::new([0; 64]));
    if lanes as u32 != u32::MAX {
        address[..32].fill(0);
    }
    core.slots[warp].warp.addresses(inst, launch, lanes, &mut address);
    let bytes = match mem.kind {
        MemKind::Texture(_) => launch.textures[inst.imm as usize].texel_bytes(),
        _ => mem.bytes(),
    };
    let mut load = NO_LOAD;
    if mem.kind == MemKind::Copy {
        load = issue_copy(warp, lanes, &address, core, lsu, memory, front_end, m)?;
    } else if mem.space != Space::Generic {
        let form = Form::of(&address, lanes, bytes);
        let share = Share { warp, pc, launch, inst, mem, bytes, lanes, address: &address, form, load: &mut load };
        share.access(mem.space, core, lsu, memory, front_end, m)?;
    } else {
        // A generic access: lanes by the window they fall in, usually all in one.
        let mut within = [0; 64];
        let mut left = lanes;
        while left != 0 {
            let (space, _) = resolve_generic(address[left.trailing_zeros() as usize]);
            let mut members = 0;
            for lane in lanes_of(left) {
                let (other, offset) = resolve_generic(address[lane]);
                if other == space {
                    within[lane] = offset;
                    members |= 1u64 << lane;
                }
            }
            left &= !members;
            let (lanes, form) = (members, Form::of(&within, members, bytes));
            let share = Share { warp, pc, launch, inst, mem, bytes, lanes, address: &within, form, load: &mut load };
            share.access(space, core, lsu, memory, front_end, m)?;
        }
    }
    lsu.lane_addresses = Some(address);
    // All lanes have passed their checks. The load is counted once, however many spaces its lanes went to.
    if load != NO_LOAD {
        core.slots[warp].under_way.loads += 1;
        core.write_later(warp, pc, launch);
    }
    Ok(())
}

/// Issues an asynchronous copy, apart from other accesses, which plain kernels have: its pending load, or
/// none where nothing is read.
#[allow(clippy::too_many_arguments)]
#[inline(never)]
fn issue_copy(
    warp: usize,
    lanes: u64,
    address: &[u64; 64],
    core: &mut IssueCore,
    lsu: &mut Lsu,
    memory: &mut MemorySide,
    front_end: &FrontEndWaits,
    m: &mut Moment<'_>,
) -> Result<u16, Fault> {
    let launch = m.launch(&core.slots[warp]);
    let pc = core.slots[warp].warp.pc() as usize;
    let inst = &launch.kernel.code[pc];
    let Op::Mem(mem) = inst.op else { unreachable!("a memory instruction") };
    let (bytes, mut load) = (mem.bytes(), NO_LOAD);
    let targets = core.slots[warp].warp.copy_targets(inst, launch, lanes);
    check_copy(&core.slots[warp], &targets, lanes, address, bytes, launch)?;
    m.record.tensor.async_copies += 1;
    m.record.tensor.async_copy_bytes += u64::from(lanes.count_ones() * bytes);
    let reading = targets.reading(lanes);
    let copy = CopyUnderWay { targets, lanes, ticket: core.copies.groups[warp].begin() };
    if reading == 0 {
        // Zeros come from nowhere: they are there at once.
        let slot = &core.slots[warp];
        write_copy(warp, slot, &mut core.ctas[usize::from(slot.cta)], &copy, mem, &[]);
        let arrivals = core.copies.groups[warp].land(copy.ticket);
        debug_assert!(arrivals.is_empty(), "nothing waits for a copy that has just been issued");
        return Ok(NO_LOAD);
    }
    let form = Form::of(address, reading, bytes);
    let share = Share { warp, pc, launch, inst, mem, bytes, lanes: reading, address, form, load: &mut load };
    share.access(Space::Global, core, lsu, memory, front_end, m)?;
    // Its accesses wait in the queue; from here on what they bring collects aside.
    lsu.copies(load, copy);
    Ok(load)
}

impl Share<'_> {
    fn access(
        self,
        space: Space,
        core: &mut IssueCore,
        lsu: &mut Lsu,
        memory: &mut MemorySide,
        front_end: &FrontEndWaits,
        m: &mut Moment<'_>,
    ) -> Result<(), Fault> {
        match space {
            Space::Const => self.constant(core, m),
            Space::Shared => self.shared(core, lsu, m),
            Space::Local => self.local(core, lsu, memory, m),
            Space::Global | Space::Generic => self.global(core, lsu, memory, front_end, m),
        }
    }

    /// Opens the instruction's pending load, if it has a result or must be waited for.
    pub(super) fn open_load(&mut self, lsu: &mut Lsu) -> u16 {
        if *self.load == NO_LOAD {
            *self.load = lsu.open_load(self.warp as u8, self.pc as u32, *self.inst, self.lanes);
        }
        *self.load
    }

    fn constant(self, core: &mut IssueCore, m: &mut Moment<'_>) -> Result<(), Fault> {
        let launch = self.launch;
        let most = self.check("const", launch.const_bank.len() as u64, core)?;
        if self.mem.kind != MemKind::Load {
            let what = FaultKind::Unsupported("a write to constant memory".to_owned());
            return Err(Box::new(core.slots[self.warp].fault(self.lanes.trailing_zeros(), what, launch)));
        }
        let mut distinct = u32::from(self.form == Form::Uniform);
        if distinct == 0 {
            let mut last = u64::MAX;
            for lane in lanes_of(self.lanes) {
                distinct += u32::from(self.address[lane] != last);
                last = self.address[lane];
            }
        }
        let warp = &mut core.slots[self.warp].warp;
        in_reach(&self, most, |base, offset, lanes| {
            warp.write_back(self.inst, launch, lanes, offset, &launch.const_bank[base..]);
        });
        let latency = m.p.latency.const_cycles + distinct.saturating_sub(1);
        core.write_from(self.warp, self.pc, m.cycle + latency, launch);
        Ok(())
    }

    fn shared(self, core: &mut IssueCore, lsu: &mut Lsu, m: &mut Moment<'_>) -> Result<(), Fault> {
        if self.launch.cluster != [1; 3] { self.in_cluster(core, lsu, m) } else { self.in_own(core, lsu, m) }
    }

    /// An access to the own CTA's shared memory.
    #[inline(always)]
    pub(super) fn in_own(mut self, core: &mut IssueCore, lsu: &mut Lsu, m: &mut Moment<'_>) -> Result<(), Fault> {
        let most = self.check("shared", u64::from(self.launch.shared_bytes), core)?;
        let Share { warp, launch, inst, mem, bytes, lanes, address, form, .. } = self;
        let atomic = matches!(mem.kind, MemKind::Atomic | MemKind::Reduction);
        let slot = &mut core.slots[warp];
        let cta = &mut core.ctas[usize::from(slot.cta)];
        // An arrival behind copies or products happens when the last of these is there; its pass through the
        // banks is now.
        let at = lanes_of(lanes).map(|lane| address[lane]);
        let later = match mem.atom {
            AtomOp::Phase(PhaseOp::ArriveBehindCopies) => core.copies.groups[warp].arrive_later(at),
            AtomOp::Phase(PhaseOp::ArriveBehindProducts) => core.tensor.arrive_later((slot.cta, cta.cta), at, m.cycle),
            _ => false,
        };
        // Shared memory carries knowledge of fences between the warps of a CTA: a warp that writes gives its
        // own, a warp that reads takes what is there.
        if !matches!(mem.kind, MemKind::Load | MemKind::Matrix(_)) {
            cta.fenced = cta.fenced.max(slot.order.fenced);
        }
        if mem.kind != MemKind::Store {
            slot.order.fenced = slot.order.fenced.max(cta.fenced);
        }
        let accessed = lanes_of(lanes).map(|lane| address[lane]);
        if cta.writers.access(warp as u8, mem.kind, accessed, bytes) {
            m.host.tell(&SmEvent::SharedRead { launch: slot.launch });
        }
        let memory = &mut cta.shared;
        match mem.kind {
            MemKind::Load | MemKind::Texture(_) => in_reach(&self, most, |base, offset, lanes| {
                slot.warp.write_back(inst, launch, lanes, offset, &memory[base..]);
            }),
            MemKind::Matrix(_) => slot.warp.write_matrices(inst, lanes, address, memory),
            MemKind::Copy => unreachable!("copies read global memory"),
            MemKind::Store => in_reach(&self, most, |base, offset, lanes| {
                slot.warp.gather(inst, launch, lanes, offset, &mut memory[base..]);
            }),
            MemKind::Atomic | MemKind::Reduction if later => {}
            MemKind::Atomic | MemKind::Reduction => {
                for lane in lanes_of(lanes) {
                    let found = &mut memory[address[lane] as usize..][..bytes as usize];
                    slot.warp.perform_atomic(inst, mem, launch, lane as u32, found).map_err(|misuse| {
                        let kind = FaultKind::Asynchronous(misuse.to_string());
                        Box::new(slot.fault(lane as u32, kind, launch))
                    })?;
                }
            }
        }
        if inst.completes(mem) {
            self.complete(core, launch)?;
        }
        // The values are in place; what remains is time: the passes that bank conflicts take in the
        // load-store unit.
        let passes = match form {
            // One word for all, or one of each bank's.
            Form::Uniform | Form::Consecutive if bytes == 4 && !atomic && m.p.shared.banks >= 32 => 1,
            _ => passes(address, lanes, bytes, m.p.shared.banks, atomic),
        };
        m.record.counters.shared_accesses += 1;
        m.record.counters.shared_conflict_passes += u64::from(passes - 1);
        let load = if matches!(mem.kind, MemKind::Load | MemKind::Matrix(_) | MemKind::Atomic) {
            let load = self.open_load(lsu);
            lsu.load(load).left += 1;
            load
        } else {
            NO_LOAD
        };
        let entry = lsu.entry(warp as u8, Work::Shared(passes), load);
        lsu.push(entry);
        Ok(())
    }

    fn local(
        mut self,
        core: &mut IssueCore,
        lsu: &mut Lsu,
        memory: &mut MemorySide,
        m: &mut Moment<'_>,
    ) -> Result<(), Fault> {
        let launch = self.launch;
        self.check("local", u64::from(launch.kernel.local_bytes), core)?;
        let (base, per_thread) = m.w.local;
        let warp_size = u64::from(m.p.sm.warp_size);
        let first = base + self.warp as u64 * u64::from(per_thread) * warp_size;
        let parts = self.bytes.div_ceil(4);
        let is_store = self.mem.kind == MemKind::Store;
        let load = if is_store { NO_LOAD } else { self.open_load(lsu) };
        if parts > 1 && !is_store {
            lsu.stage(load);
        }
        let work = if is_store { Work::Send } else { Work::Load };
        let mut entry = lsu.entry(self.warp as u8, work, load);
        entry.local = true;
        // All bytes of each lane, 16 apart, when they must be cut into words.
        let mut words = [0u8; 1024];
        if is_store {
            let apart = std::array::from_fn(|lane| 16 * lane as u16);
            core.slots[self.warp].warp.gather(self.inst, launch, self.lanes, &apart, &mut words);
        }
        // Each word of a wider access is coalesced by itself: consecutive words of a lane lie a warp's width
        // apart.
        let mut physical = [0; 64];
        for part in 0..parts {
            for lane in lanes_of(self.lanes) {
                let at = self.address[lane] + u64::from(4 * part);
                physical[lane] = first + at / 4 * 4 * warp_size + 4 * lane as u64 + at % 4;
            }
            let bytes = self.bytes.min(4);
            lsu.accesses.clear();
            let line_bytes = m.w.line_bytes;
            coalesce(m.p.sm.coalescer, &physical, self.lanes, bytes, line_bytes, &mut lsu.accesses);
            for access in &lsu.accesses {
                entry.accesses.push(*access);
                entry.parts.push(part as u8);
                if is_store {
                    let mut line = memory.port.line_pool.take();
                    for lane in lanes_of(access.lanes) {
                        let to = (physical[lane] - access.line) as usize;
                        let from = 16 * lane + 4 * part as usize;
                        let bytes = bytes as usize;
                        line.bytes[to..to + bytes].copy_from_slice(&words[from..from + bytes]);
                        line.mask |= ((1u128 << bytes) - 1) << to;
                    }
                    entry.payloads.push(Payload::Line(line));
                }
            }
            if !is_store {
                for lane in lanes_of(self.lanes) {
                    lsu.load(load).offset[lane] = (physical[lane] % u64::from(line_bytes)) as u16;
                }
            }
        }
        lsu.enqueue(entry, &mut core.slots[self.warp], m.record);
        Ok(())
    }

    fn global(
        mut self,
        core: &mut IssueCore,
        lsu: &mut Lsu,
        memory: &mut MemorySide,
        front_end: &FrontEndWaits,
        m: &mut Moment<'_>,
    ) -> Result<(), Fault> {
        if self.mem.kind != MemKind::Copy {
            self.check_global(core)?;
        }
        let Share { warp, launch, inst, mem, bytes, lanes, address, form, .. } = self;
        let line_bytes = m.w.line_bytes;
        let in_line = u64::from(line_bytes) - 1;
        // Stores and atomics pass the L1 or join it when they leave the queue; for a load the cache operator
        // decides now.
        let work = match mem.kind {
            MemKind::Load | MemKind::Texture(_) | MemKind::Copy => {
                if mem.looks_into_l1(m.p.l1.global_loads) {
                    Work::Load
                } else {
                    Work::LoadPast
                }
            }
            MemKind::Store | MemKind::Atomic | MemKind::Reduction => Work::Send,
            MemKind::Matrix(_) => unreachable!("matrices are loaded from shared memory"),
        };
        let load = if mem.kind == MemKind::Store { NO_LOAD } else { self.open_load(lsu) };
        let mut entry = lsu.entry(warp as u8, work, load);
        coalesce_form(form, m.p.sm.coalescer, address, lanes, bytes, line_bytes, &mut entry.accesses);
        let offset = narrowed(address, lanes, |address| (address & in_line) as u16);
        match mem.kind {
            MemKind::Load | MemKind::Texture(_) | MemKind::Matrix(_) | MemKind::Copy => {
                lsu.load(load).offset = offset;
                if matches!(mem.kind, MemKind::Load | MemKind::Copy) {
                    m.record.counters.count_degree(entry.accesses.len());
                    if m.host.wants.loads && work == Work::Load {
                        persist::steer_load(&mut entry, mem.cache == CacheOp::ReadOnly, m);
                    }
                }
            }
            MemKind::Store => {
                m.record.counters.count_degree(entry.accesses.len());
                entry.past_l1 = matches!(mem.cache, CacheOp::L2Only | CacheOp::Volatile | CacheOp::NonTemporal);
                let warp = &core.slots[warp].warp;
                for access in &mut entry.accesses {
                    let mut line = memory.port.line_pool.take();
                    warp.gather(inst, launch, access.lanes, &offset, &mut line.bytes);
                    // The value is gathered at issue: a later instruction may write the register before the
                    // store leaves.
                    let one = (1u128 << bytes) - 1;
                    if form == Form::Consecutive {
                        let length = bytes * access.lanes.count_ones();
                        line.mask = (u128::MAX >> (128 - length)) << offset[access.lanes.trailing_zeros() as usize];
                    } else {
                        for lane in lanes_of(access.lanes) {
                            line.mask |= one << offset[lane];
                        }
                    }
                    entry.payloads.push(Payload::Line(line));
                }
                // Stores enter the queue by way of the scheme, which may route them apart; so this arm
                // returns.
                let slot = &mut core.slots[self.warp];
                persist::send_stores(persist::class_of(mem.hint), entry, slot, lsu, memory, front_end, m);
                return Ok(());
            }
            MemKind::Atomic | MemKind::Reduction => {
                let warp = &core.slots[warp].warp;
                m.record.counters.atomic_lanes += u64::from(lanes.count_ones());
                for access in &entry.accesses {
                    // Operands are read at issue, as those of stores are. Boxes come back with replies and
                    // are used again.
                    let mut atomics: Box<Atomics> = lsu.spare_atomics.pop().unwrap_or_default();
                    atomics.op = mem.atom;
                    atomics.elem = mem.elem;
                    atomics.returns = mem.kind == MemKind::Atomic || front_end.present;
                    (atomics.pairs, atomics.count) = (mem.is_pair(), 0);
                    for lane in lanes_of(access.lanes) {
                        if atomics.pairs {
                            let halves = warp.pair_operands(inst, launch, lane as u32);
                            atomics.push(lane as u8, offset[lane] as u8, halves[0]);
                            atomics.push(lane as u8, offset[lane] as u8 + 8, halves[1]);
                        } else {
                            let operands = warp.atomic_operands(inst, launch, lane as u32);
                            atomics.push(lane as u8, offset[lane] as u8, operands);
                        }
                    }
                    entry.payloads.push(Payload::Atomics(atomics));
                }
            }
        }
        // The accesses are complete. Atomics too go by the scheme; loads go straight to the queue.
        match mem.kind {
            MemKind::Atomic | MemKind::Reduction => {
                persist::send_atomics(entry, &mut core.slots[warp], lsu, front_end, m)
            }
            _ => lsu.enqueue(entry, &mut core.slots[warp], m.record),
        }
        Ok(())
    }

    /// Bounds and alignment in a space that starts at 0. Returns what all addresses are at most.
    pub(super) fn check(&self, space: &'static str, size: u64, core: &IssueCore) -> Result<u64, Fault> {
        let bytes = u64::from(self.bytes);
        // What all addresses are at most is enough as a rule, and found faster than the greatest.
        let bits = self.bits();
        if bits & (self.alignment() - 1) == 0 && bits.checked_add(bytes).is_some_and(|end| end <= size) {
            return Ok(bits);
        }
        let (_, high, bits) = self.extent();
        let inside = high.checked_add(bytes).is_some_and(|end| end <= size);
        if inside && bits & (self.alignment() - 1) == 0 {
            return Ok(high);
        }
        for lane in lanes_of(self.lanes) {
            let address = self.address[lane];
            let kind = if address.checked_add(bytes).is_none_or(|end| end > size) {
                let hint = format!("there are {size} bytes");
                FaultKind::OutOfBounds { address, bytes: self.bytes, space, hint }
            } else if !address.is_multiple_of(self.alignment()) {
                FaultKind::Misaligned { address, bytes: self.alignment() as u32, space }
            } else {
                continue;
            };
            return Err(Box::new(core.slots[self.warp].fault(lane as u32, kind, self.launch)));
        }
        Ok(high)
    }

    fn alignment(&self) -> u64 {
        match self.mem.kind {
            // A texel is aligned to its channel.
            MemKind::Texture(_) => 1,
            _ => u64::from(self.bytes.max(self.mem.whole.into())),
        }
    }

    /// Bounds and alignment of global accesses, all lanes at once when they are in one allocation.
    fn check_global(&self, core: &IssueCore) -> Result<(), Fault> {
        let addresses = &self.launch.addresses;
        let (low, high, bits) = self.extent();
        let last = u64::from(self.bytes) - 1;
        if bits & (self.alignment() - 1) == 0
            && high.checked_add(last).is_some_and(|end| addresses.containing(low, end).is_some())
        {
            return Ok(());
        }
        for lane in lanes_of(self.lanes) {
            let address = self.address[lane];
            let kind = if !address.is_multiple_of(self.alignment()) {
                FaultKind::Misaligned { address, bytes: self.alignment() as u32, space: "global" }
            } else if address.checked_add(last).is_none_or(|end| addresses.containing(address, end).is_none()) {
                let hint = addresses.describe(address);
                FaultKind::OutOfBounds { address, bytes: self.bytes, space: "global", hint }
            } else {
                continue;
            };
            return Err(Box::new(core.slots[self.warp].fault(lane as u32, kind, self.launch)));
        }
        Ok(())
    }
}
