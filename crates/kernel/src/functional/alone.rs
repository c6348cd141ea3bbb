//! Whether a warp repeats itself for ever, as long as nobody changes memory: found by executing it alone.
//!
//! Its loop is learnt and then checked as the crate `riscv` does for a hart: registers that branches,
//! addresses and stored values follow from must recur, with the SIMT stack; others may differ from turn to
//! turn. Where these recur, so does all that follows: a proof, as long as memory stays.
//!
//! Invariants: memory is as before when the warp has been looked at; a warp that would change a byte, end a
//! lane, come to a barrier or read a clock does not repeat. Not looked at: local memory, asynchronous copies,
//! matrices; a warp that uses them is taken to go on.

use std::collections::{BTreeMap, BTreeSet};

use super::super::ir::{Inst, Mem, MemKind, Op, Space};
use super::super::launch::Launch;
use super::super::memory::{FlatMemory, resolve_generic};
use super::super::warp::{Path, Warp, lanes_of};
use super::access::execute;
use super::memories::Memories;

/// Warp instructions of the first attempt to learn a loop; each further one takes [`LONGER`] times as many.
const FIRST: usize = 1 << 8;
const LONGER: usize = 8;
/// Warp instructions of the last attempt.
pub const LONGEST: usize = FIRST * LONGER * LONGER;

/// Bytes of a sector of a cached line.
const SECTOR: usize = 32;

/// What a warp reaches while it is alone.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// What it executes.
    pub launch: &'a Launch,
    /// Global memory: every load that no cache answers finds its bytes there.
    pub memory: &'a mut FlatMemory,
    /// Its CTA's.
    pub shared: &'a mut [u8],
    /// Sectors of which its L1 has other bytes than memory, by address.
    pub stale: &'a BTreeMap<u64, [u8; SECTOR]>,
    /// Ordinary loads go through the L1, too.
    pub caches_loads: bool,
}

/// A load or an atomic of a loop: what its lowest lane finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WarpRead {
    /// Its instruction.
    pub pc: u32,
    /// Which memory.
    pub space: Space,
    /// Address of the lowest lane.
    pub address: u64,
    /// Its first bytes, little-endian, 8 at most.
    pub value: u64,
    /// Bytes of an element.
    pub bytes: u32,
    /// Different addresses of all lanes.
    pub addresses: u32,
    /// A branch of the loop follows from it.
    pub decides: bool,
    /// A lane finds an older value in the L1 than memory has.
    pub stale: bool,
}

/// What a warp repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarpLoop {
    /// Its instructions.
    pub pcs: BTreeSet<u32>,
    /// What it reads in a turn, by instruction.
    pub reads: Vec<WarpRead>,
    /// It stores what is there already, or has words of persistency.
    pub stores: bool,
    /// Lanes that repeat.
    pub lanes: u64,
    /// Lanes that wait until these reconverge with them.
    pub held: u64,
    /// Where those go on.
    pub held_at: Option<u32>,
    /// Warp instructions of a turn.
    pub length: u64,
}

/// Executes the loads of `pending` that have not come: instruction and lanes. What they find is what memory
/// has. False where one of them cannot be done.
pub fn complete(warp: &mut Warp, pending: &[(u32, u64)], around: &mut Surroundings<'_>) -> bool {
    let alone = &mut Alone { warp: warp.clone(), around, seen: None };
    for &(pc, lanes) in pending {
        let Some(inst) = alone.around.launch.kernel.code.get(pc as usize).copied() else { return false };
        let Op::Mem(mem) = inst.op else { return false };
        if !alone.access(&inst, mem, pc, lanes) {
            return false;
        }
    }
    *warp = alone.warp.clone();
    true
}

/// Finds what a warp repeats whose loads are all complete; none where it may go on otherwise.
pub fn repeats(warp: Warp, around: &mut Surroundings<'_>) -> Option<WarpLoop> {
    let mut alone = Alone { warp, around, seen: None };
    let mut steps = FIRST;
    while steps <= LONGEST {
        match alone.attempt(steps) {
            Attempt::Repeats(found) => return Some(found),
            Attempt::Otherwise => return None,
            Attempt::Unknown => steps *= LONGER,
        }
    }
    None
}

enum Attempt {
    Repeats(WarpLoop),
    Otherwise,
    Unknown,
}

struct Alone<'a, 'm> {
    warp: Warp,
    around: &'a mut Surroundings<'m>,
    seen: Option<BTreeMap<(u32, u64), WarpRead>>,
}

/// The state of a warp, as far as it decides: paths, and registers.
type Deciding = (Vec<Path>, Vec<u64>);

impl Alone<'_, '_> {
    fn attempt(&mut self, steps: usize) -> Attempt {
        // The way into the loop is no part of it.
        for _ in 0..steps / 2 {
            if !self.step() {
                return Attempt::Otherwise;
            }
        }
        let mut pcs = BTreeSet::new();
        for _ in 0..steps / 2 {
            pcs.insert(self.warp.pc());
            if !self.step() {
                return Attempt::Otherwise;
            }
        }
        // If a state comes back that decides the same, all that follows comes back.
        let deciding = self.deciding(&pcs);
        let (mut anchor, mut length, mut limit) = (self.state(&deciding), 0, 1);
        self.seen = Some(BTreeMap::new());
        for _ in 0..steps {
            if !pcs.contains(&self.warp.pc()) {
                return Attempt::Unknown;
            }
            if !self.step() {
                return Attempt::Otherwise;
            }
            length += 1;
            let same = anchor.0.last().is_some_and(|top| top.pc == self.warp.pc());
            if same && self.state(&deciding) == anchor {
                let reads = self.seen.take().unwrap_or_default().into_values();
                return Attempt::Repeats(self.found(pcs, &deciding, reads.collect(), length));
            }
            // Brent: the state that is compared with moves on, ever more rarely.
            if length == limit {
                (anchor, length, limit) = (self.state(&deciding), 0, limit * 2);
                self.seen = Some(BTreeMap::new());
            }
        }
        Attempt::Unknown
    }

    fn found(&self, pcs: BTreeSet<u32>, deciding: &BTreeSet<u16>, mut reads: Vec<WarpRead>, length: u64) -> WarpLoop {
        let kernel = &self.around.launch.kernel;
        for read in &mut reads {
            read.decides = kernel.hazards[read.pc as usize].written().iter().any(|set| deciding.contains(set));
        }
        let lanes = self.warp.active();
        let held = self.warp.live() & !lanes;
        // The lanes that are held stand on paths below that of the loop.
        let paths: Vec<&Path> = self.warp.paths().collect();
        let held_at = paths.iter().rev().skip(1).find(|path| path.mask & held != 0).map(|path| path.pc);
        let stores = |pc: &u32| match kernel.code[*pc as usize].op {
            Op::Mem(mem) => matches!(mem.kind, MemKind::Store | MemKind::Reduction),
            op => matches!(op, Op::Pm(_)),
        };
        WarpLoop { stores: pcs.iter().any(stores), pcs, reads, lanes, held, held_at, length }
    }

    /// Registers, by their numbers on the scoreboard, that branches, addresses and stored values of these
    /// instructions follow from.
    fn deciding(&self, pcs: &BTreeSet<u32>) -> BTreeSet<u16> {
        let kernel = &self.around.launch.kernel;
        let computes = |pc: u32| matches!(kernel.code[pc as usize].op, Op::Alu(_) | Op::Machine(_) | Op::Nop);
        let reads = |pc: u32| kernel.hazards[pc as usize].read().iter().copied();
        let mut deciding: BTreeSet<u16> = pcs.iter().filter(|pc| !computes(**pc)).flat_map(|&pc| reads(pc)).collect();
        loop {
            let before = deciding.len();
            for &pc in pcs.iter().filter(|pc| computes(**pc)) {
                if kernel.hazards[pc as usize].written().iter().any(|set| deciding.contains(set)) {
                    deciding.extend(reads(pc));
                }
            }
            if deciding.len() == before {
                return deciding;
            }
        }
    }

    fn state(&self, deciding: &BTreeSet<u16>) -> Deciding {
        let mut words = Vec::new();
        let kernel = &self.around.launch.kernel;
        deciding.iter().for_each(|&register| self.warp.each_word_of(kernel, register, &mut |word| words.push(word)));
        (self.warp.paths().copied().collect(), words)
    }

    /// Executes an instruction; false where the warp then does something other than repeat itself.
    fn step(&mut self) -> bool {
        let launch = self.around.launch;
        let pc = self.warp.pc();
        let Some(inst) = launch.kernel.code.get(pc as usize) else { return false };
        let lanes = self.warp.guarded(inst);
        match inst.op {
            Op::Alu(_) => {
                self.warp.alu(inst, launch, lanes);
                self.warp.advance();
            }
            Op::Mem(mem) => {
                if lanes != 0 && !self.access(inst, mem, pc, lanes) {
                    return false;
                }
                self.warp.advance();
            }
            Op::Branch { target, reconverge } => self.warp.branch(lanes, target, reconverge),
            Op::Call { target } => return self.warp.call(inst, launch, target).is_ok(),
            Op::Return => return self.warp.ret(inst, launch).is_ok(),
            Op::Fence(_) | Op::Nop => self.warp.advance(),
            Op::Pm(op) if op.gathers().is_none() => self.warp.advance(),
            // Nothing, where no lane takes part.
            Op::Exit
            | Op::Barrier(_)
            | Op::Cluster(_)
            | Op::Trap(_)
            | Op::Pm(_)
            | Op::Copies(_)
            | Op::BulkGroups(_)
            | Op::Bulk(_)
                if lanes == 0 =>
            {
                self.warp.advance();
            }
            Op::Exit | Op::Barrier(_) | Op::Trap(_) | Op::Pm(_) | Op::Matrix(_) | Op::Machine(_) | Op::Cluster(_) => {
                return false;
            }
            // What goes on beside the warp, or is of several warps or launches.
            Op::Copies(_)
            | Op::BulkGroups(_)
            | Op::Bulk(_)
            | Op::Registers(_)
            | Op::WarpGroup(_)
            | Op::Tensor(_)
            | Op::AwaitPhase(_)
            | Op::Grid(_) => {
                return false;
            }
        }
        !self.warp.is_done()
    }

    /// Executes a memory instruction; false where it changes a byte or cannot be done.
    fn access(&mut self, inst: &Inst, mem: Mem, pc: u32, lanes: u64) -> bool {
        let launch = self.around.launch;
        if matches!(mem.kind, MemKind::Copy | MemKind::Matrix(_)) || lanes == 0 {
            return lanes == 0;
        }
        let mut addresses = [0; 64];
        self.warp.addresses(inst, launch, lanes, &mut addresses);
        let bytes = launch.access_bytes(inst, mem) as usize;
        let place = |lane: usize| match mem.space {
            Space::Generic => resolve_generic(addresses[lane]),
            space => (space, addresses[lane]),
        };
        let writes = matches!(mem.kind, MemKind::Store | MemKind::Atomic | MemKind::Reduction);
        // What it writes over, to see whether anything changes, and to put it back.
        let before: Vec<Option<Vec<u8>>> = if writes {
            lanes_of(lanes).map(|lane| self.bytes_at(place(lane), bytes).map(<[u8]>::to_vec)).collect()
        } else {
            Vec::new()
        };
        let swapped = if self.looks_into_l1(mem) { self.swap_in(lanes, &place, bytes) } else { Vec::new() };
        if mem.kind != MemKind::Store && mem.kind != MemKind::Reduction {
            self.note(pc, mem, lanes, &place, bytes, !swapped.is_empty());
        }
        let mut memories = Memories {
            global: &mut *self.around.memory,
            shared: &mut *self.around.shared,
            local: &mut [],
            watcher: None,
            peers: None,
        };
        let done = execute(&mut self.warp, inst, mem, launch, lanes, pc, &mut memories).is_ok();
        for (address, bytes) in swapped {
            if self.around.memory.write(address, &bytes).is_err() {
                return false;
            }
        }
        let same = |(lane, before): (usize, &Option<Vec<u8>>)| match before {
            Some(before) => self.bytes_at(place(lane), bytes) == Some(&before[..]),
            None => false,
        };
        if done && (!writes || lanes_of(lanes).zip(&before).all(same)) {
            return true;
        }
        // Memory is left as it was, in the order against that of the lanes.
        let lanes: Vec<usize> = lanes_of(lanes).collect();
        for (&lane, before) in lanes.iter().zip(&before).rev() {
            if let Some(before) = before {
                self.put_back(place(lane), before);
            }
        }
        false
    }

    fn looks_into_l1(&self, mem: Mem) -> bool {
        matches!(mem.kind, MemKind::Load | MemKind::Texture(_)) && mem.looks_into_l1(self.around.caches_loads)
    }

    fn bytes_at(&self, (space, address): (Space, u64), bytes: usize) -> Option<&[u8]> {
        let start = usize::try_from(address).ok()?;
        match space {
            Space::Global | Space::Generic => self.around.memory.slice(address, bytes),
            Space::Shared => self.around.shared.get(start..start.checked_add(bytes)?),
            Space::Const => self.around.launch.const_bank.get(start..start.checked_add(bytes)?),
            Space::Local => None,
        }
    }

    fn put_back(&mut self, (space, address): (Space, u64), before: &[u8]) {
        let bytes = match space {
            Space::Global | Space::Generic => self.around.memory.slice_mut(address, before.len()),
            Space::Shared => self.around.shared.get_mut(address as usize..address as usize + before.len()),
            Space::Const | Space::Local => None,
        };
        if let Some(bytes) = bytes {
            bytes.copy_from_slice(before);
        }
    }

    /// Notes what a load or an atomic finds; `stale` if a lane finds other bytes than memory has.
    fn note(
        &mut self,
        pc: u32,
        mem: Mem,
        lanes: u64,
        place: &impl Fn(usize) -> (Space, u64),
        bytes: usize,
        stale: bool,
    ) {
        if self.seen.is_none() {
            return;
        }
        // One lane's word is told for all; how many others there are says whether it stands for them.
        let lowest = place(lanes.trailing_zeros() as usize);
        let all: BTreeSet<u64> = lanes_of(lanes).map(|lane| place(lane).1).collect();
        let element = mem.elem.bytes().min(bytes as u32).min(8);
        let mut value = [0; 8];
        if let Some(found) = self.bytes_at(lowest, element as usize) {
            value[..found.len()].copy_from_slice(found);
        }
        let read = WarpRead {
            pc,
            space: lowest.0,
            address: lowest.1,
            value: u64::from_le_bytes(value),
            bytes: element,
            addresses: all.len() as u32,
            decides: false,
            stale,
        };
        if let Some(seen) = &mut self.seen {
            seen.insert((pc, lowest.1), read);
        }
    }

    /// Puts what the L1 has in the place of what memory has, where a load of these lanes finds it. What
    /// memory had.
    fn swap_in(
        &mut self,
        lanes: u64,
        place: &impl Fn(usize) -> (Space, u64),
        bytes: usize,
    ) -> Vec<(u64, [u8; SECTOR])> {
        if self.around.stale.is_empty() {
            return Vec::new();
        }
        // An access may lie across two sectors.
        let mut sectors = BTreeSet::new();
        for (space, address) in lanes_of(lanes).map(place) {
            if space == Space::Global {
                let mask = !(SECTOR as u64 - 1);
                sectors.extend([address & mask, (address + bytes as u64 - 1) & mask]);
            }
        }
        let mut swapped = Vec::new();
        for sector in sectors {
            let Some(cached) = self.around.stale.get(&sector) else { continue };
            if let Some(there) = self.around.memory.slice_mut(sector, SECTOR)
                && let Ok(before) = <[u8; SECTOR]>::try_from(&*there)
            {
                there.copy_from_slice(cached);
                swapped.push((sector, before));
            }
        }
        swapped
    }
}
