//! What a core executes and what does not change while it does: code, address windows, latencies, clock.

use std::sync::Arc;

use crate::coherence::OsMsg;
use crate::cpu::CpuMemory;
use crate::msg::Msg;
use crate::ports::To;
use durawarp_engine::{Clock, Ctx, Time, Timebase};
use durawarp_riscv::code::CodeTable;
use durawarp_riscv::elf::Executable;
use durawarp_riscv::fault::{CpuFault, FaultKind};
use durawarp_riscv::instruction::Class;
use durawarp_riscv::regions::SLOTS_BYTES;

use super::parameters::{Consistency, CoreSpec, L1dSpec};
use super::weakened::Weakened;
use super::wiring::CoreWiring;

/// What is common to the harts of a core.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) code: Arc<CodeTable>,
    pub(super) image: Arc<Executable>,
    pub(super) memory: CpuMemory,
    pub(super) clock: Clock,
    timebase: Timebase,
    pub(super) spec: CoreSpec,
    /// Cycles from an address to a value in the L1.
    pub(super) hit_cycles: u64,
    pub(super) tso: bool,
    pub(super) weakened: Weakened,
    /// Number of its first hart in the machine.
    pub(super) first_hart: u32,
    /// Harts of the machine.
    pub(super) harts: u32,
    pub(super) to_os: To<OsMsg>,
    /// Physical address of the harts' checkpoints; beyond all memory without regions.
    checkpoints: u64,
}

impl Program {
    pub(super) fn new(spec: &CoreSpec, l1d: &L1dSpec, wiring: &CoreWiring) -> Program {
        Program {
            code: wiring.code.clone(),
            image: wiring.image.clone(),
            memory: wiring.memory,
            clock: wiring.clock,
            timebase: wiring.timebase,
            hit_cycles: l1d.hit_cycles.into(),
            tso: spec.consistency == Consistency::Tso,
            weakened: Weakened::default(),
            first_hart: u32::from(wiring.index) * spec.harts,
            harts: u32::from(wiring.ports.roster().cores) * spec.harts,
            to_os: wiring.ports.to_os(),
            checkpoints: wiring.regions.as_ref().map_or(u64::MAX, |&(_, checkpoints)| checkpoints),
            spec: spec.clone(),
        }
    }

    /// Physical address of a slot of a hart of the machine.
    pub(super) fn slot(&self, hart: u32, slot: usize) -> u64 {
        self.checkpoints + u64::from(hart) * SLOTS_BYTES + 8 * slot as u64
    }

    /// A physical address is one of a checkpoint.
    pub(super) fn is_checkpoint(&self, address: u64) -> bool {
        address >= self.checkpoints
    }

    /// Cycles from operands to result.
    #[inline]
    pub(super) fn latency(&self, class: Class) -> u64 {
        let cycles = match class {
            Class::Mul => self.spec.mul_cycles,
            Class::Div | Class::FpDiv => self.spec.div_cycles,
            Class::Fp | Class::FpMove | Class::FpConvert => self.spec.fp_cycles,
            _ => 1,
        };
        cycles.into()
    }

    /// Ticks from now to a cycle.
    #[inline]
    pub(super) fn until(&self, cycle: u64, cx: &Ctx<'_, Msg>) -> Time {
        self.clock.cycles(cycle).saturating_sub(cx.now())
    }

    /// Nanoseconds since the program began.
    pub(super) fn ns(&self, cycle: u64) -> u64 {
        self.timebase.ps_of_ticks(self.clock.cycles(cycle)) / 1000
    }

    /// A fault of a hart of this core.
    #[cold]
    pub(super) fn fault(&self, hart: u8, pc: u64, kind: FaultKind) -> Box<CpuFault> {
        Box::new(CpuFault { kind, hart: self.first_hart + u32::from(hart), pc, symbol: self.image.symbol(pc) })
    }
}
