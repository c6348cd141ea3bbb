//! A run in recoverable regions on the functional driver: what a power failure leaves, and how the program
//! goes on.
//!
//! Harts execute instruction by instruction and, where the table says so, boundaries: the registers that
//! were written are stored to the hart's slots, then the pc. What a region stores, its boundary included,
//! becomes durable when the region *commits*. Regions commit in the order of their IDs, each when it has
//! ended and all before it have committed: a power failure leaves the stores of the committed regions, none
//! of later ones. A region draws its ID as it stores first: IDs then have the order in which harts saw each
//! other. Without [`super::super::regions::RegionOptions`]'s `after_sync` it draws it where it begins, the
//! paper's way, and they may not.
//!
//! A system call is one step with the boundary behind it, and a region of its own: its stores, what the
//! system knows afterwards, and the registers of the harts that it starts or wakes commit together. The
//! system is persisted with the rest, as in the paper; what a program wrote to its output is part of it.
//!
//! Recovery gives each hart its slots, computes what was not stored, and goes on behind the boundary. A call
//! that the system had performed, and whose hart stands before it still, is answered and not performed again
//! ([`RegionImage::recovered`]). Reservations are gone. Not modelled: where slots lie in memory, what a
//! commit costs, sizes of queues.

mod durable;
mod recovered;

use std::collections::BTreeMap;
use std::sync::Arc;

use durable::{LeftCalls, RegionStore, StoreLog, System};
pub use durable::{RegionImage, RegionRunCounts, Slots};

use super::hart::{Hart, SharedState, Turn};
use super::{End, Machine, Options, Outcome, PmCounts, Round, TURN};
use crate::instruction::{Op, REGISTERS, SP};
use crate::memory::Memory;
use crate::process::Process;
use crate::regions::{Boundary, COMPLETE, PC_SLOT as PC, RegionPath, RegionTable};
use crate::syscalls::{Os, Wake};
use crate::verbs::Logs;

/// The region that a hart is in.
#[derive(Debug)]
struct OpenRegion {
    /// Its ID; none before it has one.
    id: Option<u64>,
    /// Which boundary comes next.
    path: RegionPath,
    /// What it stored.
    log: Vec<RegionStore>,
    /// How many of that are stores of the program's instructions.
    stores: u32,
}

impl OpenRegion {
    fn new(id: Option<u64>, path: RegionPath) -> OpenRegion {
        OpenRegion { id, path, log: Vec::new(), stores: 0 }
    }
}

/// A program that runs in regions.
///
/// # Example: a power failure after every step
/// ```
/// # use std::sync::Arc;
/// # use durawarp_riscv::elf::{Executable, Function, Segment};
/// # use durawarp_riscv::functional::{End, Options, RegionRun};
/// # use durawarp_riscv::process::{Process, Start};
/// # use durawarp_riscv::regions::{form, RegionOptions};
/// // sd x0, -8(sp); li a0, 41; addi a0, a0, 1; li a7, 93 (exit); ecall
/// let words = [0xfe01_3c23u32, 0x0290_0513, 0x0015_0513, 0x05d0_0893, 0x0000_0073];
/// # let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// # let segments = vec![Segment { address: 0x10000, memory_bytes: 20, bytes, executable: true }];
/// # let functions = vec![Function { address: 0x10000, bytes: 20, name: "main".to_owned() }];
/// # let image = Executable { entry: 0x10000, segments, functions, objects: vec![], headers: None, header_count: 0 };
/// let process = Process::new(image, Start::default()).unwrap();
/// let table = Arc::new(form(&process.image, &process.code, &RegionOptions::default()).unwrap());
/// let options = Options::default();
/// for steps in 0..4 {
///     let mut run = RegionRun::new(&process, process.memory(), &table, &options);
///     assert!(run.advance(steps).is_none());
///     let mut again = RegionRun::resume(&process, run.power_failure(), &table);
///     assert_eq!(again.advance(u64::MAX), Some(End::Exited(42)));
/// }
/// ```
#[derive(Debug)]
pub struct RegionRun {
    machine: Machine<StoreLog>,
    table: Arc<RegionTable>,
    open: Vec<OpenRegion>,
    /// Regions that have ended, by ID.
    ended: BTreeMap<u64, Vec<RegionStore>>,
    durable: RegionImage,
    next_id: u64,
    scheduled: Scheduled,
    left: LeftCalls,
    counts: RegionRunCounts,
    /// How often each boundary of the table was executed.
    executed: Vec<u64>,
}

/// Whose turn it is.
#[derive(Debug)]
struct Scheduled {
    hart: usize,
    left: u64,
    turn: u64,
    /// A hart has had a turn in this round.
    ran: bool,
}

impl RegionRun {
    /// A program before its first instruction. Its loader has filled hart 0's slots.
    pub fn new(process: &Process, memory: Memory, table: &Arc<RegionTable>, options: &Options<'_>) -> RegionRun {
        let harts = options.harts.max(1) as usize;
        let mut slots = vec![[0; REGISTERS + 1]; harts];
        (slots[0][usize::from(SP)], slots[0][PC]) = (process.stack_pointer, process.image.entry | COMPLETE);
        let mut running = vec![false; harts];
        running[0] = true;
        let os = Os::new(process, options.harts, options.files.clone());
        let left = LeftCalls { answers: vec![None; harts], ended: Vec::new() };
        let image = RegionImage { memory, slots, system: System { os, running, now_ns: 0, left } };
        RegionRun::resume(process, image, table)
    }

    /// Goes on with what a power failure left.
    pub fn resume(process: &Process, image: RegionImage, table: &Arc<RegionTable>) -> RegionRun {
        let code = process.code.clone();
        let shared = SharedState {
            memory: image.memory.clone(),
            code,
            pm: PmCounts::default(),
            logs: Logs::default(),
            observer: StoreLog::default(),
        };
        let System { os, now_ns, left, .. } = image.system.clone();
        let harts = (0..image.slots.len() as u32).map(Hart::new).collect();
        let mut run = RegionRun {
            machine: Machine {
                shared,
                os,
                harts,
                off: BTreeMap::new(),
                image: process.image.clone(),
                now_ns,
                last: usize::MAX,
                round: Round::default(),
            },
            table: table.clone(),
            open: image.slots.iter().map(|_| OpenRegion::new(None, RegionPath::BEGIN)).collect(),
            ended: BTreeMap::new(),
            durable: image,
            next_id: 0,
            scheduled: Scheduled { hart: 0, left: TURN, turn: TURN, ran: false },
            left,
            counts: RegionRunCounts::default(),
            executed: vec![0; table.boundaries().len()],
        };
        for hart in 0..run.open.len() {
            run.restore(hart);
        }
        run
    }

    /// Instructions of a hart before the next one runs, from the next turn on: [`TURN`] unless it is said.
    pub fn set_turn(&mut self, instructions: u64) {
        self.scheduled.turn = instructions.max(1);
    }

    fn restore(&mut self, at: usize) {
        let (slots, computed) = recovered::restored(&self.durable.slots[at], &self.table);
        let hart = &mut self.machine.harts[at];
        for register in 1..REGISTERS as u8 {
            hart.registers.set(register, slots[usize::from(register)]);
        }
        hart.fcsr = slots[0] as u8;
        hart.pc = slots[PC] & !COMPLETE;
        hart.running = self.durable.system.running[at];
        let (path, running) = (RegionPath::recovered(hart.pc, computed), hart.running);
        self.open[at] = OpenRegion::new(running.then(|| self.draw_early()).flatten(), path);
    }

    /// The ID of a region that begins: the paper's has one from then on.
    fn draw_early(&mut self) -> Option<u64> {
        (!self.table.options().after_sync).then(|| self.draw())
    }

    fn draw(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Runs up to so many steps, each an instruction with the boundary before it (and, a system call's, the
    /// one behind it). How the run ended, if it did.
    pub fn advance(&mut self, steps: u64) -> Option<End> {
        (0..steps).find_map(|_| self.step().err())
    }

    /// The power fails: what recovery finds.
    pub fn power_failure(self) -> RegionImage {
        self.durable
    }

    /// What was counted since the run began or went on.
    pub fn counts(&self) -> &RegionRunCounts {
        &self.counts
    }

    /// How often each boundary of the table was executed since then, as they stand there.
    pub fn executed(&self) -> &[u64] {
        &self.executed
    }

    /// What came of the run.
    pub fn outcome(self, end: End) -> Outcome {
        self.machine.outcome(end)
    }

    fn step(&mut self) -> Result<(), End> {
        let at = self.next_hart()?;
        let pc = self.machine.harts[at].pc;
        let next = self.machine.shared.code.at(pc).copied();
        if let Some((boundary, value)) = self.open[at].path.boundary(pc, next.as_ref(), &self.table) {
            self.end_region(at, &boundary, pc, value);
        }
        let turn = self.machine.harts[at].run(&mut self.machine.shared, 1, self.machine.now_ns);
        if let Turn::Fault(kind) = turn {
            return Err(self.machine.fault(at, kind));
        }
        let Some(inst) = next else { unreachable!("what was executed is code") };
        self.scheduled.left -= 1;
        self.counts.instructions += 1;
        let stored = self.machine.shared.observer.0.len() as u32;
        if (stored > 0 || inst.op == Op::Ecall) && self.open[at].id.is_none() {
            self.open[at].id = Some(self.draw());
        }
        let open = &mut self.open[at];
        open.path.step(pc, &inst, &self.table);
        open.stores += stored;
        open.log.append(&mut self.machine.shared.observer.0);
        self.counts.stores += u64::from(stored);
        if let Turn::Call = turn {
            return self.call(at);
        }
        if inst.op == Op::Pause {
            self.scheduled.left = 0;
        }
        Ok(())
    }

    /// The hart that executes the next instruction, as on the functional driver.
    fn next_hart(&mut self) -> Result<usize, End> {
        while let Some(hart) = self.left.ended.pop() {
            let wakes = self.machine.os.ended(hart).map_err(End::Exited)?;
            self.wake(&wakes);
        }
        loop {
            let machine = &mut self.machine;
            let scheduled = &mut self.scheduled;
            if scheduled.left > 0 && machine.harts[scheduled.hart].running {
                scheduled.ran = true;
                if machine.last != scheduled.hart {
                    machine.harts[scheduled.hart].reservation = None;
                    machine.last = scheduled.hart;
                }
                return Ok(scheduled.hart);
            }
            (scheduled.hart, scheduled.left) = (scheduled.hart + 1, scheduled.turn);
            if scheduled.hart < machine.harts.len() {
                continue;
            }
            // A round is over.
            scheduled.hart = 0;
            let ran = std::mem::take(&mut scheduled.ran);
            machine.now_ns = machine.now_ns.saturating_add(TURN);
            if let Some(harts) = machine.repeated() {
                return Err(End::Repeats(harts));
            }
            if !ran {
                match machine.os.next_deadline() {
                    Some(at) => machine.now_ns = machine.now_ns.max(at),
                    None => return Err(End::Deadlock(machine.os.waiting())),
                }
            }
            let wakes = machine.os.expired(machine.now_ns);
            if !wakes.is_empty() {
                self.wake(&wakes);
            }
        }
    }

    /// The system wakes harts by itself, in a region of its own.
    fn wake(&mut self, wakes: &[Wake]) {
        let before = self.running();
        self.machine.wake(wakes);
        let id = self.draw();
        let mut log = Vec::new();
        self.begun(&before, &mut log);
        self.ended.insert(id, log);
    }

    /// Performs the system call that a hart stands behind, and the boundary there.
    fn call(&mut self, at: usize) -> Result<(), End> {
        let before = self.running();
        let goes_on = match self.left.answers[at].take() {
            Some(reply) => self.machine.answer(at, reply)?,
            None => self.machine.call(at)?,
        };
        let mut log = std::mem::take(&mut self.open[at].log);
        log.append(&mut self.machine.shared.observer.0);
        self.begun(&before, &mut log);
        self.open[at].log = log;
        let pc = self.machine.harts[at].pc;
        // The table has a boundary behind every call.
        let boundary = self.table.at(pc).copied().unwrap_or(Boundary::at_a_jump());
        self.end_region(at, &boundary, pc, pc);
        if !goes_on {
            self.scheduled.left = 0;
        }
        if !self.machine.harts[at].running {
            self.open[at].id = None;
            self.commit();
        }
        Ok(())
    }

    fn running(&self) -> Vec<bool> {
        self.machine.harts.iter().map(|hart| hart.running).collect()
    }

    /// Harts that began to run, started or woken, begin a region: their slots are stored for them, and what
    /// the system knows.
    fn begun(&mut self, before: &[bool], log: &mut Vec<RegionStore>) {
        for (at, &ran) in before.iter().enumerate() {
            let hart = &self.machine.harts[at];
            if ran || !hart.running {
                continue;
            }
            let slot = |register: usize| match register {
                0 => u64::from(hart.fcsr),
                PC => hart.pc | COMPLETE,
                _ => hart.registers.get(register as u8),
            };
            log.extend((0..=PC).map(|register| RegionStore::Slot(at, register, slot(register))));
            let path = RegionPath::recovered(hart.pc, 0);
            self.open[at] = OpenRegion::new(self.draw_early(), path);
        }
        let Machine { os, now_ns, .. } = &self.machine;
        let system = System { os: os.clone(), running: self.running(), now_ns: *now_ns, left: self.left.clone() };
        log.push(RegionStore::System(Box::new(system)));
    }

    /// Executes the boundary before an instruction, whose pc slot gets this value: what is written goes to
    /// its slots, the region ends, the next one begins.
    fn end_region(&mut self, at: usize, boundary: &Boundary, pc: u64, value: u64) {
        let hart = &self.machine.harts[at];
        let open = &mut self.open[at];
        let registers = open.path.dirty() & boundary.stored;
        if let Some(number) = self.table.number(boundary.pc) {
            self.executed[number] += 1;
        }
        for register in (0..REGISTERS).filter(|register| registers >> register & 1 == 1) {
            let stored = if register == 0 { hart.fcsr.into() } else { hart.registers.get(register as u8) };
            open.log.push(RegionStore::Slot(at, register, stored));
        }
        open.log.push(RegionStore::Slot(at, PC, value));
        self.counts.checkpoints += u64::from(registers.count_ones());
        self.counts.boundaries[boundary.reason as usize] += 1;
        self.counts.most_stores = self.counts.most_stores.max(open.stores + registers.count_ones() + 1);
        let mut path = open.path;
        path.end(pc, boundary);
        let next = OpenRegion::new(self.draw_early(), path);
        let OpenRegion { id, log, .. } = std::mem::replace(&mut self.open[at], next);
        // One in which nothing was stored, before a call, has none yet.
        let id = id.unwrap_or_else(|| self.draw());
        self.ended.insert(id, log);
        self.commit();
    }

    /// Regions that have ended become durable, up to the oldest one that has not.
    fn commit(&mut self) {
        let oldest = self.open.iter().filter_map(|open| open.id).min().unwrap_or(u64::MAX);
        while let Some(entry) = self.ended.first_entry()
            && *entry.key() < oldest
        {
            for store in entry.remove() {
                self.durable.apply(store);
            }
        }
    }
}
