//! One hart of the functional driver: its registers, and instruction after instruction until something ends
//! its turn.

use std::sync::Arc;

use crate::code::CodeTable;
use crate::decode::csr;
use crate::fault::FaultKind;
use crate::instruction::{Class, Inst, Op, SP, of_classes};
use crate::memory::Memory;
use crate::semantics::{self, atomic};
use crate::verbs::{DESCRIPTOR_BYTES, Logs};

use super::observer::{Observer, PersistFence};

/// Words of persistency that were executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PmCounts {
    /// `pm.op`: operations of the workload that were done.
    pub operations: u64,
    /// `pm.ofence`.
    pub order_fences: u64,
    /// `pm.dfence`.
    pub durability_fences: u64,
    /// `pm.region`.
    pub regions: u64,
    /// `pm.tx` that begin a transaction.
    pub transactions: u64,
    /// `pm.nt`.
    pub non_temporal: u64,
    /// `cbo.clean` and `cbo.flush`.
    pub line_writebacks: u64,
    /// `rdma.post`.
    pub remote_posts: u64,
}

/// What all harts share.
#[derive(Debug)]
pub(super) struct SharedState<O> {
    pub(super) memory: Memory,
    pub(super) code: Arc<CodeTable>,
    pub(super) pm: PmCounts,
    /// What was posted to other servers.
    pub(super) logs: Logs,
    pub(super) observer: O,
}

/// Integer registers, floating-point registers, and one more that takes what is written nowhere.
#[derive(Debug, Clone)]
pub(super) struct Registers([u64; 128]);

impl Registers {
    /// These, x0 to x31 and f0 to f31.
    pub(super) fn of(values: &[u64; 64]) -> Registers {
        let mut all = [0; 128];
        all[..64].copy_from_slice(values);
        Registers(all)
    }

    /// x0 to x31 and f0 to f31.
    pub(super) fn first(&self) -> [u64; 64] {
        std::array::from_fn(|register| self.0[register])
    }

    #[inline]
    pub(super) fn get(&self, register: u8) -> u64 {
        self.0[usize::from(register & 127)]
    }

    /// x0 is never a destination: see `instruction`.
    #[inline]
    pub(super) fn set(&mut self, register: u8, value: u64) {
        self.0[usize::from(register & 127)] = value;
    }
}

/// What a thread takes along from one hart to another.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) registers: Registers,
    pc: u64,
    fcsr: u8,
}

/// What ended a turn.
#[derive(Debug)]
pub(super) enum Turn {
    /// Its instructions are used up.
    Over,
    /// The hart lets others run.
    Paused,
    /// The hart stands behind an `ecall`.
    Call,
    /// The instruction that the hart stands at cannot be executed.
    Fault(FaultKind),
}

/// A hart.
#[derive(Debug)]
pub(super) struct Hart {
    number: u32,
    pub(super) registers: Registers,
    pub(super) pc: u64,
    /// Rounding mode and accrued exceptions of floating point, as in the register.
    pub(super) fcsr: u8,
    /// Address and width of the reservation.
    pub(super) reservation: Option<(u64, u8)>,
    /// It runs a thread, which does not wait.
    pub(super) running: bool,
    /// Instructions that it has executed.
    pub(super) instructions: u64,
}

macro_rules! load {
    ($shared:ident, $inst:ident, $a:ident, $type:ty) => {{
        let address = semantics::address($inst, $a);
        match $shared.memory.load(address) {
            Some(bytes) => semantics::loaded($inst.op, u64::from(<$type>::from_le_bytes(bytes))),
            None => return Err(unmapped(address, size_of::<$type>(), false)),
        }
    }};
}

macro_rules! store {
    ($shared:ident, $hart:expr, $inst:ident, $a:ident, $b:ident, $type:ty) => {{
        let address = semantics::address($inst, $a);
        store($shared, $hart, address, ($b as $type).to_le_bytes())?;
    }};
}

impl Hart {
    pub(super) fn new(number: u32) -> Hart {
        let registers = Registers([0; 128]);
        Hart { number, registers, pc: 0, fcsr: 0, reservation: None, running: false, instructions: 0 }
    }

    /// Begins to run at an address with a stack.
    pub(super) fn begin(&mut self, pc: u64, stack_pointer: u64) {
        self.pc = pc;
        self.registers.set(SP, stack_pointer);
        self.running = true;
    }

    /// What its thread would take along.
    pub(super) fn context(&self) -> Context {
        Context { registers: self.registers.clone(), pc: self.pc, fcsr: self.fcsr }
    }

    /// A thread begins or goes on here. A reservation is lost.
    pub(super) fn enter(&mut self, context: Context) {
        Context { registers: self.registers, pc: self.pc, fcsr: self.fcsr } = context;
        (self.reservation, self.running) = (None, true);
    }

    /// Executes up to `budget` instructions.
    pub(super) fn run<O: Observer>(&mut self, shared: &mut SharedState<O>, budget: u64, now_ns: u64) -> Turn {
        let code = shared.code.clone();
        let last = self.instructions + budget;
        while self.instructions < last {
            let Some(inst) = code.at(self.pc) else {
                return Turn::Fault(FaultKind::NoCode);
            };
            shared.observer.executes(self.number, self.pc, inst, self.registers.get(inst.rs1));
            let next = match self.execute(inst, shared, now_ns) {
                Ok(next) => next,
                Err(kind) => return Turn::Fault(kind),
            };
            self.pc = next;
            self.instructions += 1;
            match inst.op {
                Op::Ecall => return Turn::Call,
                Op::Pause => return Turn::Paused,
                Op::Ebreak
                | Op::FenceI
                | of_classes!(Alu Mul Div Branch Jump Load Store LoadReserved StoreConditional Amo Fp FpDiv FpMove)
                | of_classes!(FpConvert Fence CacheLine Csr Persist Remote Illegal) => {}
            }
        }
        Turn::Over
    }

    /// Executes one instruction. Where the next one is.
    #[inline]
    fn execute<O: Observer>(
        &mut self,
        inst: &Inst,
        shared: &mut SharedState<O>,
        now_ns: u64,
    ) -> Result<u64, FaultKind> {
        let (a, b) = (self.registers.get(inst.rs1), self.registers.get(inst.rs2));
        let mut next = self.pc.wrapping_add(u64::from(inst.length));
        let value = match inst.op {
            Op::Lb | Op::Lbu => load!(shared, inst, a, u8),
            Op::Lh | Op::Lhu => load!(shared, inst, a, u16),
            Op::Lw | Op::Lwu | Op::Flw => load!(shared, inst, a, u32),
            Op::Ld | Op::Fld => load!(shared, inst, a, u64),
            Op::Sb => {
                store!(shared, self.number, inst, a, b, u8);
                return Ok(next);
            }
            Op::Sh => {
                store!(shared, self.number, inst, a, b, u16);
                return Ok(next);
            }
            Op::Sw | Op::Fsw => {
                store!(shared, self.number, inst, a, b, u32);
                return Ok(next);
            }
            Op::Sd | Op::Fsd => {
                store!(shared, self.number, inst, a, b, u64);
                return Ok(next);
            }
            of_classes!(Alu Mul Div) => semantics::integer(inst, self.pc, a, b),
            of_classes!(Branch) => {
                if semantics::taken(inst.op, a, b) {
                    next = semantics::target(inst, self.pc, a);
                }
                return Ok(next);
            }
            of_classes!(Jump) => {
                next = semantics::target(inst, self.pc, a);
                semantics::integer(inst, self.pc, a, b)
            }
            of_classes!(Fp FpDiv FpMove FpConvert) => {
                let c = self.registers.get(inst.rs3);
                let result = semantics::float(inst, a, b, c, self.fcsr);
                let result = result.map_err(|mode| FaultKind::Rounding { mode: mode.0 })?;
                self.fcsr |= result.flags;
                result.value
            }
            of_classes!(LoadReserved StoreConditional Amo Fence CacheLine Csr System Persist Remote Hint Illegal) => {
                self.rare(inst, shared, now_ns, a, b)?
            }
        };
        self.registers.set(inst.rd, value);
        Ok(next)
    }

    /// Instructions that are seldom executed. The value of the destination, if there is one.
    #[inline(never)]
    fn rare<O: Observer>(
        &mut self,
        inst: &Inst,
        shared: &mut SharedState<O>,
        now_ns: u64,
        a: u64,
        b: u64,
    ) -> Result<u64, FaultKind> {
        let pm = &mut shared.pm;
        match inst.op {
            of_classes!(LoadReserved StoreConditional Amo) => return self.atomic(inst, shared, a, b),
            of_classes!(Csr) => return Ok(self.csr(inst, now_ns, a)),
            Op::CboClean | Op::CboFlush => {
                let line = a & !63;
                shared.memory.read(line, 64).ok_or(unmapped(line, 64, true))?;
                pm.line_writebacks += 1;
                shared.observer.clean(self.number, line);
            }
            Op::PmOfence => {
                pm.order_fences += 1;
                shared.observer.fence(self.number, PersistFence::Order);
            }
            Op::PmDfence => {
                pm.durability_fences += 1;
                shared.observer.fence(self.number, PersistFence::Durability);
            }
            Op::PmRegion => pm.regions += 1,
            Op::PmTx => pm.transactions += u64::from(inst.imm == 1),
            Op::PmOp => pm.operations += 1,
            Op::PmNt => pm.non_temporal += 1,
            Op::RdmaPoll => {
                let peer = shared.logs.peers().peer(a).map_err(FaultKind::Verb)?;
                return Ok(shared.logs.acknowledged(self.number, peer));
            }
            Op::RdmaPost => post(shared, self.number, a)?,
            Op::Illegal => return Err(FaultKind::Unsupported { word: inst.imm as u32, bytes: inst.length }),
            Op::Ebreak => return Err(FaultKind::Breakpoint),
            // `run` sees to the two that end a turn; harts take turns, so that nothing is left to order.
            Op::Ecall | Op::Pause | Op::Fence | Op::FenceI => {}
            of_classes!(Alu Mul Div Branch Jump Load Store Fp FpDiv FpMove FpConvert) => {
                unreachable!("{} is executed at once", inst.op.name())
            }
        }
        Ok(0)
    }

    fn atomic<O: Observer>(
        &mut self,
        inst: &Inst,
        shared: &mut SharedState<O>,
        address: u64,
        operand: u64,
    ) -> Result<u64, FaultKind> {
        let width = inst.width();
        if !address.is_multiple_of(u64::from(width)) {
            return Err(FaultKind::MisalignedAtomic { address, bytes: width });
        }
        let old = match width {
            4 => shared.memory.load(address).map(|bytes| u64::from(u32::from_le_bytes(bytes))),
            _ => shared.memory.load(address).map(u64::from_le_bytes),
        };
        let old = old.ok_or(unmapped(address, width.into(), inst.class() != Class::LoadReserved))?;
        let (new, result) = match inst.op {
            of_classes!(LoadReserved) => {
                self.reservation = Some((address, width));
                return Ok(semantics::loaded(inst.op, old));
            }
            of_classes!(StoreConditional) => {
                if self.reservation.take() != Some((address, width)) {
                    return Ok(1);
                }
                (operand, 0)
            }
            of_classes!(Amo) => (atomic::stored(inst.op, old, operand), atomic::fetched(width, old)),
            of_classes!(Alu Mul Div Branch Jump Load Store Fp FpDiv FpMove FpConvert Fence CacheLine Csr System)
            | of_classes!(Persist Remote Hint Illegal) => unreachable!("{} is no atomic", inst.op.name()),
        };
        match width {
            4 => store(shared, self.number, address, (new as u32).to_le_bytes())?,
            _ => store(shared, self.number, address, new.to_le_bytes())?,
        }
        Ok(result)
    }

    fn csr(&mut self, inst: &Inst, now_ns: u64, a: u64) -> u64 {
        let number = inst.imm & 0xfff;
        let old = semantics::status(number, self.fcsr).unwrap_or(match number {
            csr::CYCLE | csr::INSTRET => self.instructions,
            csr::TIME => now_ns,
            _ => 0,
        });
        if let Some(new) = semantics::csr_written(inst, old, a) {
            self.fcsr = semantics::status_written(number, self.fcsr, new);
        }
        old
    }
}

fn unmapped(address: u64, bytes: usize, write: bool) -> FaultKind {
    FaultKind::Unmapped { address, bytes: bytes as u64, write }
}

#[inline]
fn store<O: Observer, const N: usize>(
    shared: &mut SharedState<O>,
    hart: u32,
    address: u64,
    bytes: [u8; N],
) -> Result<(), FaultKind> {
    if shared.code.overlaps(address, N as u64) {
        return Err(FaultKind::CodeWrite { address });
    }
    shared.memory.store(address, bytes).ok_or(unmapped(address, N, true))?;
    shared.observer.store(hart, address, &bytes);
    Ok(())
}

/// Posts the verb of the descriptor at an address, which is done at once.
fn post<O>(shared: &mut SharedState<O>, hart: u32, address: u64) -> Result<(), FaultKind> {
    let peers = shared.logs.peers();
    // Without any there is nothing to look at.
    peers.peer(1).map_err(FaultKind::Verb)?;
    let descriptor = shared.memory.load(address).ok_or(unmapped(address, DESCRIPTOR_BYTES as usize, false))?;
    let verb = peers.verb(&descriptor).map_err(FaultKind::Verb)?;
    let length = verb.bytes as usize;
    let bytes = shared.memory.read(verb.local, length).ok_or(unmapped(verb.local, length, false))?;
    shared.logs.write(hart, &verb, bytes);
    shared.pm.remote_posts += 1;
    Ok(())
}
