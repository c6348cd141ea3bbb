//! Whether a hart repeats itself for ever, as long as nobody changes memory: found by executing it alone.
//!
//! ```text
//!   learn: execute for a while ─> addresses of the second half: the loop ─> registers that decide in it
//!   check: execute on ─> same pc and same deciding registers as before? ─> it repeats
//!             └─ leaves the loop: learn again, for longer
//! ```
//! A register *decides* when a branch, an address or a stored value follows from it, directly or through
//! other instructions of the loop. Other registers may differ from turn to turn: `while (!flag) spins++`
//! repeats itself. Where all deciding registers recur, so does every later instruction: this is a proof, as
//! long as memory stays. A store of the value that is there already changes nothing.
//!
//! Invariants: nothing is written; a hart that reads a clock, calls the system, posts verbs, or would
//! change a byte does not repeat. A store conditional that would change a value counts as one that fails:
//! whether it does depends on others, and the loop says so ([`Loop::conditionals`]). Not found: loops of
//! more than [`LONGEST`] instructions, and those that count their turns down.

use std::collections::{BTreeMap, BTreeSet};

use super::code::CodeTable;
use super::decode::csr;
use super::hart_state::HartState;
use super::instruction::{Class, Inst, NOWHERE, Op, X0};
use super::semantics::{self, atomic};

/// Instructions of the first attempt to learn a loop; each further one takes [`LONGER`] times as many.
const FIRST: usize = 1 << 9;
const LONGER: usize = 8;
/// Instructions of the last attempt.
pub const LONGEST: usize = FIRST * LONGER * LONGER * LONGER;

/// A load or an atomic of a loop: where, and what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Its instruction.
    pub pc: u64,
    /// Virtual address.
    pub address: u64,
    /// Bytes.
    pub width: u8,
    /// The value, zero-extended.
    pub value: u64,
    /// A branch of the loop follows from it.
    pub decides: bool,
}

/// What a hart repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Its instructions, by address.
    pub pcs: BTreeSet<u64>,
    /// What it reads in a turn, by instruction and address.
    pub reads: Vec<Read>,
    /// Instructions of a turn.
    pub length: u64,
    /// Store conditionals of a turn that would change a value if they did not fail.
    pub conditionals: u64,
}

/// Why a hart may not repeat itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// It changes a byte.
    Writes,
    /// It calls the system, or another server.
    Calls,
    ReadsClock,
    /// It comes to an instruction that it cannot execute.
    Faults,
    /// It did not repeat itself as long as it was looked at.
    GoesOn,
}

/// Finds what a hart repeats. `read` gives the bytes at a virtual address; none where there is no memory.
///
/// # Errors
/// Why it may go on otherwise.
pub fn repeats(code: &CodeTable, hart: &HartState, read: &dyn Fn(u64, u8) -> Option<u64>) -> Result<Loop, Otherwise> {
    let mut alone = Alone { code, read, hart: hart.clone(), reserved: None, seen: None };
    let mut steps = FIRST;
    while steps <= LONGEST {
        if let Some(found) = alone.attempt(steps)? {
            return Ok(found);
        }
        steps *= LONGER;
    }
    Err(Otherwise::GoesOn)
}

/// What is noted of the turns that are looked at.
#[derive(Debug, Default)]
struct Seen {
    reads: BTreeMap<(u64, u64), (u8, u64)>,
    conditionals: u64,
}

struct Alone<'a> {
    code: &'a CodeTable,
    read: &'a dyn Fn(u64, u8) -> Option<u64>,
    hart: HartState,
    /// Address and width of the reservation.
    reserved: Option<(u64, u8)>,
    seen: Option<Seen>,
}

impl Alone<'_> {
    /// Learns a loop in `steps` instructions and looks for the same state in as many.
    fn attempt(&mut self, steps: usize) -> Result<Option<Loop>, Otherwise> {
        for _ in 0..steps / 2 {
            self.step()?;
        }
        let mut pcs = BTreeSet::new();
        for _ in 0..steps / 2 {
            pcs.insert(self.hart.pc);
            self.step()?;
        }
        let deciding = self.deciding(&pcs);
        let (mut anchor, mut length, mut limit) = (self.state(&deciding), 0, 1);
        self.seen = Some(Seen::default());
        for _ in 0..steps {
            if !pcs.contains(&self.hart.pc) {
                return Ok(None);
            }
            self.step()?;
            length += 1;
            let same = self.hart.pc == anchor.0;
            if same && self.state(&deciding) == anchor {
                return Ok(self.seen.take().map(|seen| self.found(pcs, &deciding, seen, length)));
            }
            // Brent: the state that is compared with moves on, ever more rarely.
            if length == limit {
                (anchor, length, limit) = (self.state(&deciding), 0, limit * 2);
                self.seen = Some(Seen::default());
            }
        }
        Ok(None)
    }

    fn found(&self, pcs: BTreeSet<u64>, deciding: &[u8], seen: Seen, length: u64) -> Loop {
        let read = |((pc, address), (width, value)): ((u64, u64), (u8, u64))| {
            let decides = self.code.at(pc).is_some_and(|inst| deciding.contains(&inst.rd));
            Read { pc, address, width, value, decides }
        };
        let reads = seen.reads.into_iter().map(read).collect();
        Loop { pcs, reads, length, conditionals: seen.conditionals }
    }

    /// Registers that branches, addresses and stored values of these instructions follow from.
    fn deciding(&self, pcs: &BTreeSet<u64>) -> Vec<u8> {
        let insts: Vec<&Inst> = pcs.iter().filter_map(|&pc| self.code.at(pc)).collect();
        let mut decides = [false; 128];
        for inst in &insts {
            let sources = match inst.class() {
                Class::Alu | Class::Mul | Class::Div | Class::Fp | Class::FpDiv | Class::FpMove | Class::FpConvert => {
                    continue;
                }
                Class::Load | Class::LoadReserved => [inst.rs1, X0],
                _ => [inst.rs1, inst.rs2],
            };
            sources.into_iter().for_each(|register| decides[usize::from(register & 127)] = true);
        }
        loop {
            let before = decides;
            for inst in insts.iter().filter(|inst| inst.rd != NOWHERE && before[usize::from(inst.rd & 127)]) {
                [inst.rs1, inst.rs2, inst.rs3]
                    .into_iter()
                    .for_each(|register| decides[usize::from(register & 127)] = true);
            }
            if decides == before {
                break;
            }
        }
        (X0 + 1..64).filter(|&register| decides[usize::from(register)]).collect()
    }

    fn state(&self, deciding: &[u8]) -> (u64, u8, Option<(u64, u8)>, Vec<u64>) {
        let values = deciding.iter().map(|&register| self.hart.registers[usize::from(register)]).collect();
        (self.hart.pc, self.hart.fcsr, self.reserved, values)
    }

    fn register(&self, register: u8) -> u64 {
        self.hart.registers.get(usize::from(register)).copied().unwrap_or(0)
    }

    fn load(&mut self, pc: u64, address: u64, width: u8) -> Result<u64, Otherwise> {
        let value = (self.read)(address, width).ok_or(Otherwise::Faults)?;
        if let Some(seen) = &mut self.seen {
            seen.reads.insert((pc, address), (width, value));
        }
        Ok(value)
    }

    fn step(&mut self) -> Result<(), Otherwise> {
        let pc = self.hart.pc;
        let inst = *self.code.at(pc).ok_or(Otherwise::Faults)?;
        let (a, b, c) = (self.register(inst.rs1), self.register(inst.rs2), self.register(inst.rs3));
        let mut next = pc.wrapping_add(u64::from(inst.length));
        let value = match inst.class() {
            Class::Alu | Class::Mul | Class::Div => semantics::integer(&inst, pc, a, b),
            Class::Branch => {
                if semantics::taken(inst.op, a, b) {
                    next = semantics::target(&inst, pc, a);
                }
                0
            }
            Class::Jump => {
                next = semantics::target(&inst, pc, a);
                semantics::integer(&inst, pc, a, b)
            }
            Class::Fp | Class::FpDiv | Class::FpMove | Class::FpConvert => {
                let result = semantics::float(&inst, a, b, c, self.hart.fcsr).map_err(|_| Otherwise::Faults)?;
                self.hart.fcsr |= result.flags;
                result.value
            }
            Class::Load => {
                let raw = self.load(pc, semantics::address(&inst, a), inst.width())?;
                semantics::loaded(inst.op, raw)
            }
            Class::Store => {
                let (address, width) = (semantics::address(&inst, a), inst.width());
                let there = (self.read)(address, width).ok_or(Otherwise::Faults)?;
                if there != low(b, width) {
                    return Err(Otherwise::Writes);
                }
                0
            }
            Class::LoadReserved => {
                let raw = self.load(pc, a, inst.width())?;
                self.reserved = Some((a, inst.width()));
                semantics::loaded(inst.op, raw)
            }
            Class::StoreConditional => {
                let width = inst.width();
                let held = self.reserved.take() == Some((a, width));
                let there = (self.read)(a, width).ok_or(Otherwise::Faults)?;
                if held && there != low(b, width) {
                    if let Some(seen) = &mut self.seen {
                        seen.conditionals += 1;
                    }
                    1
                } else {
                    u64::from(!held)
                }
            }
            Class::Amo => {
                let width = inst.width();
                let old = self.load(pc, a, width)?;
                if low(atomic::stored(inst.op, old, b), width) != low(old, width) {
                    return Err(Otherwise::Writes);
                }
                atomic::fetched(width, old)
            }
            Class::Csr => self.csr(&inst, a)?,
            Class::Fence | Class::CacheLine | Class::Persist | Class::Hint => 0,
            Class::System if inst.op == Op::Ebreak => return Err(Otherwise::Faults),
            Class::System | Class::Remote => return Err(Otherwise::Calls),
            Class::Illegal => return Err(Otherwise::Faults),
        };
        if inst.rd != X0
            && let Some(register) = self.hart.registers.get_mut(usize::from(inst.rd))
        {
            *register = value;
        }
        self.hart.pc = next;
        Ok(())
    }

    fn csr(&mut self, inst: &Inst, a: u64) -> Result<u64, Otherwise> {
        let number = inst.imm & 0xfff;
        let old = match number {
            csr::CYCLE | csr::INSTRET | csr::TIME => return Err(Otherwise::ReadsClock),
            _ => semantics::status(number, self.hart.fcsr).unwrap_or(0),
        };
        if let Some(new) = semantics::csr_written(inst, old, a) {
            self.hart.fcsr = semantics::status_written(number, self.hart.fcsr, new);
        }
        Ok(old)
    }
}

/// The low `width` bytes.
pub fn low(value: u64, width: u8) -> u64 {
    if width >= 8 { value } else { value & ((1 << (8 * u32::from(width))) - 1) }
}
