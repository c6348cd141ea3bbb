//! Memory instructions of an SM: from addresses to line accesses, through the L1 and the crossbar, and back.
//!
//! Checks come first: an access outside every allocation, or not aligned to its size, is a fault of the program with
//! its kernel, PTX line and thread. Shared memory and constants are read and written at issue: only this SM's issue
//! order touches them, so the values are those of the ordered pipeline behind it.
//!
//! Local memory is laid out word by word across the lanes of a warp (CUDA: "consecutive 32-bit words are accessed by
//! consecutive thread IDs"), so an access of 8 or 16 bytes is several line accesses that collect in a staging room.

use crate::kernel::fault::{FaultKind, ProgramFault};
use crate::kernel::ir::{CacheOp, Inst, Mem, MemKind, Space};
use crate::kernel::launch::Launch;
use crate::kernel::memory::resolve_generic;
use crate::kernel::semantics::atomic::apply_atomic;
use crate::machine::coalescer::{Form, coalesce, coalesce_form};
use crate::machine::msg::{Atomics, Payload, RequestKind};
use crate::machine::shared_memory::passes;
use crate::persist::handler::Event;

use super::Sm;
use super::lsu::{NO_LOAD, Work};
use super::persist::class_of;

/// Boxed because it is as large as it is rare.
pub(super) type Fault = Box<ProgramFault>;

/// One instruction's access in one space.
struct Share<'a> {
    warp: usize,
    pc: usize,
    inst: &'a Inst,
    mem: Mem,
    /// Bytes a lane.
    bytes: u32,
    lanes: u64,
    /// Addresses in the space.
    address: &'a [u64; 64],
    form: Form,
    /// Pending load, opened by the first share that needs one.
    load: &'a mut u16,
}

impl Share<'_> {
    /// The least and the greatest address, and all addresses or'ed together.
    #[inline]
    fn extent(&self) -> (u64, u64, u64) {
        let first = self.address[self.lanes.trailing_zeros() as usize];
        match self.form {
            Form::Uniform => (first, first, first),
            // Aligned, by its form.
            Form::Consecutive => (first, first + 31 * u64::from(self.bytes), first),
            Form::Any => {
                let (mut low, mut high, mut bits) = (first, first, 0);
                for lane in lanes_of(self.lanes) {
                    let address = self.address[lane];
                    low = low.min(address);
                    high = high.max(address);
                    bits |= address;
                }
                (low, high, bits)
            }
        }
    }
}

/// Lanes of a mask, in order.
pub(super) fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}

/// Calls `f` with a base address and each lane's distance from it: once for all lanes, or, when they lie too far apart
/// for 16 bits, lane by lane.
fn in_reach(share: &Share<'_>, mut f: impl FnMut(usize, &[u16; 64], u64)) {
    let Share { address, lanes, bytes, form, .. } = *share;
    match form {
        Form::Uniform => return f(address[0] as usize, &[0; 64], lanes),
        Form::Consecutive => return f(address[0] as usize, &std::array::from_fn(|i| (i as u32 * bytes) as u16), lanes),
        Form::Any => {}
    }
    let (low, high) =
        lanes_of(lanes).fold((u64::MAX, 0), |(low, high), lane| (low.min(address[lane]), high.max(address[lane])));
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

impl Sm {
    /// Issues a memory instruction of `lanes` (already guarded). The pc still points to it.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn issue_memory(
        &mut self,
        warp: usize,
        pc: usize,
        inst: &Inst,
        mem: Mem,
        lanes: u64,
        cycle: u32,
        launch: &Launch,
    ) -> Result<(), Fault> {
        if lanes == 0 {
            return Ok(());
        }
        let mut address = [0; 64];
        self.core.slots[warp].warp.addresses(inst, launch, lanes, &mut address);
        let bytes = match mem.kind {
            MemKind::Texture(_) => launch.textures[inst.imm as usize].texel_bytes(),
            _ => mem.bytes(),
        };
        let mut load = NO_LOAD;
        if mem.space != Space::Generic {
            let form = Form::of(&address, lanes, bytes);
            let share = Share { warp, pc, inst, mem, bytes, lanes, address: &address, form, load: &mut load };
            self.access(mem.space, share, cycle, launch)?;
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
                let share = Share { warp, pc, inst, mem, bytes, lanes, address: &within, form, load: &mut load };
                self.access(space, share, cycle, launch)?;
            }
        }
        if load != NO_LOAD {
            self.core.slots[warp].under_way.loads += 1;
            self.core.write_later(warp, pc, launch);
        }
        Ok(())
    }

    fn access(&mut self, space: Space, share: Share<'_>, cycle: u32, launch: &Launch) -> Result<(), Fault> {
        match space {
            Space::Const => self.access_const(share, cycle, launch),
            Space::Shared => self.access_shared(share, launch),
            Space::Local => self.access_local(share, launch),
            Space::Global | Space::Generic => self.access_global(share, launch),
        }
    }

    /// Opens the instruction's pending load, if it has a result or must be waited for.
    fn open_load(&mut self, share: &mut Share<'_>) -> u16 {
        if *share.load == NO_LOAD {
            *share.load = self.lsu.open_load(share.warp as u8, share.pc as u32, *share.inst, share.lanes);
        }
        *share.load
    }

    fn access_const(&mut self, share: Share<'_>, cycle: u32, launch: &Launch) -> Result<(), Fault> {
        self.check(&share, "const", launch.const_bank.len() as u64, launch)?;
        if share.mem.kind != MemKind::Load {
            let what = FaultKind::Unsupported("a write to constant memory".to_owned());
            return Err(Box::new(self.fault(share.warp, share.lanes.trailing_zeros(), what, launch)));
        }
        let mut distinct = u32::from(share.form == Form::Uniform);
        if distinct == 0 {
            let mut last = u64::MAX;
            for lane in lanes_of(share.lanes) {
                distinct += u32::from(share.address[lane] != last);
                last = share.address[lane];
            }
        }
        let warp = &mut self.core.slots[share.warp].warp;
        in_reach(&share, |base, offset, lanes| {
            warp.write_back(share.inst, launch, lanes, offset, &launch.const_bank[base..]);
        });
        let latency = self.p.latency.const_cycles + distinct.saturating_sub(1);
        self.core.write_from(share.warp, share.pc, cycle + latency, launch);
        Ok(())
    }

    fn access_shared(&mut self, mut share: Share<'_>, launch: &Launch) -> Result<(), Fault> {
        self.check(&share, "shared", u64::from(launch.shared_bytes), launch)?;
        let Share { warp, inst, mem, bytes, lanes, address, form, .. } = share;
        let atomic = matches!(mem.kind, MemKind::Atomic | MemKind::Reduction);
        let slot = &mut self.core.slots[warp];
        let cta = &mut self.core.ctas[usize::from(slot.cta)];
        if mem.kind != MemKind::Load {
            cta.fenced = cta.fenced.max(slot.order.fenced);
        }
        if mem.kind != MemKind::Store {
            slot.order.fenced = slot.order.fenced.max(cta.fenced);
        }
        let accessed = lanes_of(lanes).map(|lane| address[lane]);
        if cta.writers.access(warp as u8, mem.kind, accessed, bytes) {
            self.host.tell(&Event::SharedRead);
        }
        let memory = &mut cta.shared;
        match mem.kind {
            MemKind::Load | MemKind::Texture(_) => in_reach(&share, |base, offset, lanes| {
                slot.warp.write_back(inst, launch, lanes, offset, &memory[base..]);
            }),
            MemKind::Store => in_reach(&share, |base, offset, lanes| {
                slot.warp.gather(inst, launch, lanes, offset, &mut memory[base..]);
            }),
            MemKind::Atomic | MemKind::Reduction => {
                let size = mem.elem.bytes() as usize;
                for lane in lanes_of(lanes) {
                    let at = address[lane] as usize;
                    let mut word = [0; 8];
                    word[..size].copy_from_slice(&memory[at..at + size]);
                    let old = u64::from_le_bytes(word);
                    let (a, b) = slot.warp.atomic_operands(inst, launch, lane as u32);
                    let new = apply_atomic(mem.atom, mem.elem, old, a, b);
                    memory[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
                    if mem.kind == MemKind::Atomic {
                        slot.warp.write_atomic(inst, lane as u32, old);
                    }
                }
            }
        }
        let passes = match form {
            // One word for all, or one of each bank's.
            Form::Uniform | Form::Consecutive if bytes == 4 && !atomic && self.p.shared.banks >= 32 => 1,
            _ => passes(address, lanes, bytes, self.p.shared.banks, atomic),
        };
        self.record.counters.shared_accesses += 1;
        self.record.counters.shared_conflict_passes += u64::from(passes - 1);
        let load = if mem.kind == MemKind::Load || mem.kind == MemKind::Atomic {
            let load = self.open_load(&mut share);
            self.lsu.load(load).left += 1;
            load
        } else {
            NO_LOAD
        };
        let mut entry = self.lsu.entry(warp as u8, Work::Shared, load);
        entry.passes = passes;
        self.lsu.queue.push_back(entry);
        Ok(())
    }

    fn access_local(&mut self, mut share: Share<'_>, launch: &Launch) -> Result<(), Fault> {
        self.check(&share, "local", u64::from(launch.kernel.local_bytes), launch)?;
        let (base, per_thread) = self.w.local;
        let warp_size = u64::from(self.p.sm.warp_size);
        let first = base + share.warp as u64 * u64::from(per_thread) * warp_size;
        let parts = share.bytes.div_ceil(4);
        let is_store = share.mem.kind == MemKind::Store;
        let load = if is_store { NO_LOAD } else { self.open_load(&mut share) };
        if parts > 1 && !is_store {
            self.lsu.stage(load);
        }
        let work = if is_store { Work::Send } else { Work::Load };
        let mut entry = self.lsu.entry(share.warp as u8, work, load);
        entry.local = true;
        // All bytes of each lane, 16 apart, when they must be cut into words.
        let mut words = [0u8; 1024];
        if is_store {
            let apart = std::array::from_fn(|lane| 16 * lane as u16);
            self.core.slots[share.warp].warp.gather(share.inst, launch, share.lanes, &apart, &mut words);
        }
        let mut physical = [0; 64];
        for part in 0..parts {
            for lane in lanes_of(share.lanes) {
                let at = share.address[lane] + u64::from(4 * part);
                physical[lane] = first + at / 4 * 4 * warp_size + 4 * lane as u64 + at % 4;
            }
            let bytes = share.bytes.min(4);
            self.lsu.accesses.clear();
            let line_bytes = self.w.line_bytes;
            coalesce(self.p.sm.coalescer, &physical, share.lanes, bytes, line_bytes, &mut self.lsu.accesses);
            for access in &self.lsu.accesses {
                entry.accesses.push(*access);
                entry.parts.push(part as u8);
                if is_store {
                    let mut line = self.port.line_pool.take();
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
                for lane in lanes_of(share.lanes) {
                    self.lsu.load(load).offset[lane] = (physical[lane] % u64::from(line_bytes)) as u16;
                }
            }
        }
        self.enqueue(share.warp, load, entry);
        Ok(())
    }

    /// Puts an entry with line accesses into the queue and counts what must come back.
    pub(super) fn enqueue(&mut self, warp: usize, load: u16, mut entry: Box<super::lsu::Entry>) {
        let accesses = entry.accesses.len() as u32;
        if entry.kind.persists() {
            entry.issued = self.record.now;
            self.core.slots[warp].under_way.persists += accesses;
            self.core.slots[warp].under_way.throughs +=
                if entry.kind == RequestKind::NonTemporal { accesses } else { 0 };
            self.record.counters.persists += u64::from(accesses);
        } else if load == NO_LOAD {
            self.core.slots[warp].under_way.stores += accesses;
        } else {
            self.lsu.load(load).left += accesses;
        }
        self.lsu.queue.push_back(entry);
    }

    fn access_global(&mut self, mut share: Share<'_>, launch: &Launch) -> Result<(), Fault> {
        self.check_global(&share, launch)?;
        let Share { warp, inst, mem, bytes, lanes, address, form, .. } = share;
        let line_bytes = self.w.line_bytes;
        let in_line = u64::from(line_bytes) - 1;
        let work = match mem.kind {
            MemKind::Load | MemKind::Texture(_) => {
                let through = self.p.l1.global_loads || matches!(mem.kind, MemKind::Texture(_));
                match mem.cache {
                    CacheOp::ReadOnly => Work::Load,
                    CacheOp::All | CacheOp::Streaming | CacheOp::NonTemporal if through => Work::Load,
                    _ => Work::LoadPast,
                }
            }
            MemKind::Store | MemKind::Atomic | MemKind::Reduction => Work::Send,
        };
        let load = if mem.kind == MemKind::Store { NO_LOAD } else { self.open_load(&mut share) };
        let mut entry = self.lsu.entry(warp as u8, work, load);
        coalesce_form(form, self.p.sm.coalescer, address, lanes, bytes, line_bytes, &mut entry.accesses);
        let used = if lanes >> 32 == 0 { 32 } else { 64 };
        let mut offset = [0u16; 64];
        for (to, from) in offset[..used].iter_mut().zip(&address[..used]) {
            *to = (from & in_line) as u16;
        }
        match mem.kind {
            MemKind::Load | MemKind::Texture(_) => {
                self.lsu.load(load).offset = offset;
                if mem.kind == MemKind::Load {
                    self.record.counters.count_degree(entry.accesses.len());
                    if self.host.wants.loads && work == Work::Load {
                        self.steer_load(&mut entry, mem.cache == CacheOp::ReadOnly);
                    }
                }
            }
            MemKind::Store => {
                self.record.counters.count_degree(entry.accesses.len());
                entry.past_l1 = matches!(mem.cache, CacheOp::L2Only | CacheOp::Volatile | CacheOp::NonTemporal);
                let warp = &self.core.slots[warp].warp;
                for access in &mut entry.accesses {
                    let mut line = self.port.line_pool.take();
                    warp.gather(inst, launch, access.lanes, &offset, &mut line.bytes);
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
                self.send_stores(share.warp, class_of(mem.hint), entry, launch);
                return Ok(());
            }
            MemKind::Atomic | MemKind::Reduction => {
                let warp = &self.core.slots[warp].warp;
                self.record.counters.atomic_lanes += u64::from(lanes.count_ones());
                for access in &entry.accesses {
                    let mut atomics: Box<Atomics> = self.lsu.spare_atomics.pop().unwrap_or_default();
                    atomics.op = mem.atom;
                    atomics.elem = mem.elem;
                    atomics.returns = mem.kind == MemKind::Atomic || self.front_end.present;
                    atomics.count = 0;
                    for lane in lanes_of(access.lanes) {
                        let at = usize::from(atomics.count);
                        (atomics.a[at], atomics.b[at]) = warp.atomic_operands(inst, launch, lane as u32);
                        atomics.lane[at] = lane as u8;
                        atomics.offset[at] = offset[lane] as u8;
                        atomics.count += 1;
                    }
                    entry.payloads.push(Payload::Atomics(atomics));
                }
            }
        }
        match mem.kind {
            MemKind::Atomic | MemKind::Reduction => self.send_atomics(warp, load, entry),
            _ => self.enqueue(warp, load, entry),
        }
        Ok(())
    }

    /// Bounds and alignment in a space that starts at 0.
    fn check(&self, share: &Share<'_>, space: &'static str, size: u64, launch: &Launch) -> Result<(), Fault> {
        let bytes = u64::from(share.bytes);
        let (_, high, bits) = share.extent();
        let inside = high.checked_add(bytes).is_some_and(|end| end <= size);
        if inside && bits & (self.alignment(share) - 1) == 0 {
            return Ok(());
        }
        for lane in lanes_of(share.lanes) {
            let address = share.address[lane];
            let kind = if address.checked_add(bytes).is_none_or(|end| end > size) {
                let hint = format!("there are {size} bytes");
                FaultKind::OutOfBounds { address, bytes: share.bytes, space, hint }
            } else if !address.is_multiple_of(self.alignment(share)) {
                FaultKind::Misaligned { address, bytes: share.bytes, space }
            } else {
                continue;
            };
            return Err(Box::new(self.fault(share.warp, lane as u32, kind, launch)));
        }
        Ok(())
    }

    fn alignment(&self, share: &Share<'_>) -> u64 {
        match share.mem.kind {
            // A texel is aligned to its channel.
            MemKind::Texture(_) => 1,
            _ => u64::from(share.bytes),
        }
    }

    /// Bounds and alignment of global accesses, all lanes at once when they are in one allocation.
    fn check_global(&self, share: &Share<'_>, launch: &Launch) -> Result<(), Fault> {
        let (low, high, bits) = share.extent();
        let last = u64::from(share.bytes) - 1;
        if bits & (self.alignment(share) - 1) == 0
            && high.checked_add(last).is_some_and(|end| launch.addresses.containing(low, end).is_some())
        {
            return Ok(());
        }
        for lane in lanes_of(share.lanes) {
            let address = share.address[lane];
            let kind = if !address.is_multiple_of(self.alignment(share)) {
                FaultKind::Misaligned { address, bytes: share.bytes, space: "global" }
            } else if address.checked_add(last).is_none_or(|end| launch.addresses.containing(address, end).is_none()) {
                let hint = launch.addresses.describe(address);
                FaultKind::OutOfBounds { address, bytes: share.bytes, space: "global", hint }
            } else {
                continue;
            };
            return Err(Box::new(self.fault(share.warp, lane as u32, kind, launch)));
        }
        Ok(())
    }
}
