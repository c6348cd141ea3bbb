//! Reads of what nobody has written, watched on the functional driver: shared memory, and registers that
//! [`undetermined`](super::super::undetermined) suspects. The first of each is told, once a kernel.
//!
//! Shared memory is watched byte by byte, whatever becomes of the value. A register without a value may be
//! copied and computed with: compilers leave such registers where a value does not matter. It is told when
//! something follows from it: a store, an address, a guard, a branch. What a shuffle, a vote or a product of
//! matrices makes of one counts as written.
//!
//! Invariant: what is told has happened, in this order of warps. Not watched: local memory.

use std::sync::Arc;

use hashbrown::HashMap;

use super::super::alu::{AluOp, IntOp};
use super::super::ir::{GroupStep, Inst, MemKind, Op, Space};
use super::super::launch::Launch;
use super::super::undetermined::{is_seen, place};
use super::super::warp::lanes_of;
use super::interface::{AccessKind, Event, Wanted, WarpAccess};

/// A read of what nobody has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritten {
    pub kernel: String,
    /// Its PTX file.
    pub file: Arc<str>,
    /// Line in it.
    pub line: u32,
    /// Shared memory, else a register.
    pub shared: bool,
    /// The launch that reads it, from 0.
    pub launch: u32,
    /// What, in a sentence that names the place.
    pub message: String,
}

/// Watches one launch.
#[derive(Debug)]
pub(crate) struct UnwrittenWatch<'a> {
    launch: &'a Launch,
    number: u32,
    warp_size: u32,
    for_shared: bool,
    suspects: Vec<u16>,
    registers: usize,
    /// Lanes, by register, in which it has no value yet; by CTA and warp.
    without_value: HashMap<(u64, u32), Vec<u64>>,
    /// Which bytes of shared memory are written, one bit each; by CTA.
    written: HashMap<u64, Vec<u64>>,
    shared: Option<Unwritten>,
    register: Option<Unwritten>,
}

impl<'a> UnwrittenWatch<'a> {
    /// Watches a launch of this number, with warps of this size, and `suspects` among its registers; none
    /// where nothing of it needs to be watched, or all was told before.
    pub(crate) fn of(
        launch: &'a Launch,
        suspects: &[u16],
        told: &[Unwritten],
        (number, warp_size): (u32, u32),
    ) -> Option<UnwrittenWatch<'a>> {
        let kernel = &launch.kernel;
        let is_told = |shared: bool| {
            let same =
                |told: &Unwritten| told.shared == shared && told.kernel == kernel.name && told.file == kernel.file;
            told.iter().any(same)
        };
        let suspects = if is_told(false) { Vec::new() } else { suspects.to_vec() };
        let for_shared = launch.shared_bytes > 0 && !is_told(true) && kernel.code.iter().any(reads_shared);
        (for_shared || !suspects.is_empty()).then(|| UnwrittenWatch {
            launch,
            number,
            warp_size,
            registers: usize::from(kernel.no_register()),
            suspects,
            for_shared,
            without_value: HashMap::new(),
            written: HashMap::new(),
            shared: None,
            register: None,
        })
    }

    /// The events that it wants.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { issued: !self.suspects.is_empty(), accesses: self.for_shared, ..Wanted::default() }
    }

    /// What was read.
    pub(crate) fn found(self) -> impl Iterator<Item = Unwritten> {
        self.shared.into_iter().chain(self.register)
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Issued { cta, warp, pc, active, lanes } if !self.suspects.is_empty() && self.register.is_none() => {
                self.issued(cta, warp, pc, active, lanes);
            }
            Event::Accessed(access) if self.for_shared && access.space == Space::Shared && self.shared.is_none() => {
                self.accessed(access);
            }
            Event::Ended { cta } => {
                self.written.remove(&cta);
                let warps = self.launch.warps_per_cta(self.warp_size);
                (0..warps).for_each(|warp| drop(self.without_value.remove(&(cta, warp))));
            }
            _ => {}
        }
    }

    fn issued(&mut self, cta: u64, warp: u32, pc: u32, active: u64, lanes: u64) {
        let kernel = &*self.launch.kernel;
        let (inst, hazards) = (&kernel.code[pc as usize], &kernel.hazards[pc as usize]);
        let (suspects, registers) = (&self.suspects, self.registers);
        let without = self.without_value.entry((cta, warp)).or_insert_with(|| {
            let mut without = vec![0; registers];
            suspects.iter().for_each(|&register| without[usize::from(register)] = u64::MAX);
            without
        });
        let of_guard = inst.guard.parts().map(|(slot, _)| kernel.predicate_register(slot));
        let guard = of_guard.map_or(0, |guard| without[usize::from(guard)] & active);
        let operands = match whole_operands(inst) {
            true => {
                hazards.read().iter().filter(|&&r| Some(r) != of_guard).fold(0, |all, &r| all | without[usize::from(r)])
            }
            false => 0,
        };
        let follows = operands & lanes | guard;
        if follows == 0 {
            // Nearly always.
            hazards.written().iter().for_each(|&register| without[usize::from(register)] &= !lanes);
            return;
        }
        if is_seen(inst) || matches!(inst.op, Op::Mem(_)) {
            let thread = self.thread(warp, follows.trailing_zeros());
            let what = "uses a register that nobody has written";
            self.register = Some(self.told(false, (pc, cta, thread), what, "it holds 0"));
            return;
        }
        for &register in hazards.written() {
            let without = &mut without[usize::from(register)];
            *without = *without & !lanes | follows;
        }
    }

    fn accessed(&mut self, access: &WarpAccess<'_>) {
        let bytes = access.bytes as usize;
        let words = (self.launch.shared_bytes as usize).div_ceil(64);
        let written = self.written.entry(access.owner).or_insert_with(|| vec![0; words]);
        for lane in lanes_of(access.lanes) {
            let at = access.addresses[lane] as usize;
            // An access beyond the end is a fault of the program, which the driver reports.
            let accessed = (at..at.saturating_add(bytes)).filter(|byte| byte / 64 < words);
            if access.kind != AccessKind::Write
                && let Some(byte) = accessed.clone().find(|byte| written[byte / 64] >> (byte % 64) & 1 == 0)
            {
                let thread = self.thread(access.warp, lane as u32);
                let what = format!("reads shared memory that nobody has written, at byte {byte}");
                self.shared = Some(self.told(true, (access.pc, access.cta, thread), &what, "it holds zeros"));
                return;
            }
            if access.kind != AccessKind::Read {
                accessed.for_each(|byte| written[byte / 64] |= 1 << (byte % 64));
            }
        }
    }

    fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        self.launch.thread_index(warp * self.warp_size + lane)
    }

    fn told(&self, shared: bool, at: (u32, u64, [u32; 3]), what: &str, here: &str) -> Unwritten {
        let (pc, cta, [x, y, z]) = at;
        let kernel = &self.launch.kernel;
        let [cx, cy, cz] = self.launch.cta_index(cta);
        let message = format!(
            "{}: kernel `{}` {what}, first in CTA ({cx},{cy},{cz}) thread ({x},{y},{z}); {here} here, and anything on a \
             GPU; others of the kernel are not told",
            place(kernel, pc),
            kernel.name
        );
        let line = kernel.pos.get(pc as usize).map_or(0, |pos| pos.line);
        let (kernel, file, launch) = (kernel.name.clone(), kernel.file.clone(), self.number);
        Unwritten { kernel, file, line, shared, launch, message }
    }
}

/// May read shared memory.
fn reads_shared(inst: &Inst) -> bool {
    match inst.op {
        Op::Mem(mem) => mem.kind != MemKind::Store && matches!(mem.space, Space::Shared | Space::Generic),
        Op::Bulk(bulk) => bulk.kind.reads_shared(),
        Op::WarpGroup(step) => step == GroupStep::Multiply,
        Op::Tensor(step) => step.multiplies().is_some() || step.copies().is_some(),
        _ => false,
    }
}

/// The result of an instruction follows from every operand in its own lane: not from one alone of two, not
/// from other lanes, and not from none, as of `xor` of a register with itself.
fn whole_operands(inst: &Inst) -> bool {
    let [a, b, ..] = inst.src;
    match inst.op {
        Op::Alu(op) if op.is_across_lanes() => false,
        Op::Alu(AluOp::Selp32 | AluOp::Selp64 | AluOp::Slct { .. }) => false,
        Op::Alu(AluOp::Int32(IntOp::Sub | IntOp::Xor) | AluOp::Int64(IntOp::Sub | IntOp::Xor)) => a != b,
        Op::Matrix(_) | Op::WarpGroup(_) | Op::Tensor(_) => false,
        _ => true,
    }
}
