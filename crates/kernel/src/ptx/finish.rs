//! Draft instructions to a [`Kernel`]: parameters of calls and frames resolved, branches joined, registers
//! allocated, hazards listed.

use std::sync::Arc;

use super::super::cfg::{Blocks, Flow};
use super::super::ir::{
    Class, ConstSource, Fragments, GroupFactor, GroupOperands, GroupProduct, Guard, Hazards, Inst, Kernel, NEVER, NONE,
    Op, Param, Slot, SourcePos, Special, TensorKind, TensorProduct, TensorTables, TensorVector,
};
use super::super::launch::MAX_SHARED;
use super::super::memory::SHARED_WINDOW;
use super::allocate::{Slots, allocate, reads, writes};
use super::body_flow::{flow_of, returns, start_of, target, within};
use super::bounds::Bounds;
use super::draft::{Arg, Body, Const, Draft, DraftOp, GroupDraft, Pool, TensorDraft, VReg};
use super::types::Bank;
use super::{params, stack};

/// What a kernel has besides its body.
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) file: Arc<str>,
    pub(super) params: Vec<Param>,
    pub(super) param_bytes: u32,
    pub(super) param_bank: u32,
    /// Of a kernel with recursive functions.
    pub(super) stack_bytes: u32,
    pub(super) bounds: Bounds,
}

/// Registers that hardware spends beyond the values alive at once: measured against `ptxas`, see the tests.
const OVERHEAD: u32 = 4;

/// Dynamic shared memory starts at multiples of this.
const SHARED_ALIGN: u32 = 16;

/// Local memory of a thread in bytes, at most (CUDA programming guide, "Compute Capabilities").
const MAX_LOCAL: u32 = 512 << 10;

/// Finishes a kernel. `position` says where a byte of the text is.
///
/// # Errors
/// A sentence that says which of the IR's limits is exceeded.
pub(super) fn finish(mut body: Body, frame: Frame, position: impl Fn(usize) -> SourcePos) -> Result<Kernel, String> {
    // Parameters and frames first: both add registers and instructions, which flow and allocation must see.
    params::resolve(&mut body);
    let stack_bytes = if body.subroutines.is_empty() { 0 } else { frame.stack_bytes };
    stack::lay_out(&mut body, stack_bytes);
    let flow: Vec<Flow> = body.code.iter().map(|draft| flow_of(draft, &body)).collect();
    // Two flow graphs. Registers of all subroutines share one file, so allocation follows calls and returns;
    // lanes meet within one activation, so reconvergence does not.
    let slots = allocate(&body, &Blocks::new(&flow).with_returns(&returns(&body)));
    let blocks = Blocks::new(&within(&body));
    let joins = blocks.joins();
    // All limits are tested before the casts below, which would cut what exceeds them.
    let limit = usize::from(NONE);
    let [slots32, slots64, predicates] = slots.used;
    if slots32 >= limit || slots64 >= limit || predicates >= limit / 2 || slots32 + slots64 + predicates >= 0xffff {
        return Err(format!("needs too many registers ({slots32} + {slots64} + {predicates})"));
    }
    if body.pool32.entries.len() >= limit || body.pool64.entries.len() >= limit {
        return Err("has too many constants".to_owned());
    }
    if body.local_bytes > MAX_LOCAL {
        return Err(format!("needs {} bytes of local memory a thread, more than {MAX_LOCAL}", body.local_bytes));
    }
    if body.shared_bytes > MAX_SHARED {
        return Err(format!("needs {} bytes of shared memory, more than {MAX_SHARED}", body.shared_bytes));
    }
    // Dynamic shared memory begins at the end of the static one, which is aligned for it.
    let shared_bytes =
        if body.dynamic_shared { body.shared_bytes.next_multiple_of(SHARED_ALIGN) } else { body.shared_bytes };
    let numbering = Numbering { slots: &slots, body: &body };
    // A compiler gives a kernel whose warps pass registers on all that its directives allow. Registers are
    // allocated by eights: a warp that has 255 passes 256 on.
    let registers = if body.moves_registers { 255 } else { slots.pressure + OVERHEAD };
    let n = body.code.len();
    let mut kernel = Kernel {
        name: frame.name,
        file: frame.file,
        code: Vec::with_capacity(n),
        class: Vec::with_capacity(n),
        hazards: Vec::with_capacity(n),
        operand_reads: Vec::new(),
        pos: Vec::with_capacity(n),
        slots32: slots32 as u16,
        slots64: slots64 as u16,
        predicates: predicates as u16,
        consts32: constants(&body.pool32, shared_bytes),
        consts64: constants(&body.pool64, shared_bytes),
        fragments: Vec::new(),
        group_products: Vec::new(),
        tensor: TensorTables::default(),
        specials: specials(&body, &slots),
        params: frame.params,
        param_bytes: frame.param_bytes,
        shared_bytes,
        dynamic_shared: body.dynamic_shared,
        local_bytes: body.local_bytes.next_multiple_of(16),
        registers_per_thread: match registers.min(frame.bounds.registers.unwrap_or(255)).min(255) {
            of_warps if body.moves_registers => of_warps.next_multiple_of(8),
            registers => registers,
        },
        bounds: frame.bounds.launch,
        stack_bytes,
        textures: body.textures.clone(),
        surfaces: body.surfaces.clone(),
        releases: Vec::new(),
        proxy_fences: Vec::new(),
        param_bank: body.uses_param_bank.then_some(frame.param_bank),
        virtual_registers: slots.registers,
    };
    // The four lists are parallel, one entry an instruction, in program order.
    for (block, &join) in joins.iter().enumerate().take(blocks.len()) {
        for pc in blocks.range(block) {
            let draft = &body.code[pc];
            let mut inst = numbering.inst(draft, join);
            if matches!(inst.op, Op::Matrix(_)) || matches!(inst.op, Op::Bulk(bulk) if bulk.has_fragments()) {
                inst.imm = kernel.fragments.len() as i32;
                kernel.fragments.push(numbering.fragments(draft));
            }
            if let Some(group) = &draft.group {
                inst.imm = kernel.group_products.len() as i32;
                kernel.group_products.push(numbering.group_product(draft, group));
            }
            match draft.tensor.as_deref() {
                Some(TensorDraft::Vector { registers, packs, .. }) => {
                    inst.imm = kernel.tensor.vectors.len() as i32;
                    let registers = registers.iter().map(|&arg| numbering.slot(arg)).collect();
                    kernel.tensor.vectors.push(TensorVector { registers, packs: *packs });
                }
                Some(&TensorDraft::Product { in_tensor_memory, adds, scale }) => {
                    inst.imm = kernel.tensor.products.len() as i32;
                    kernel.tensor.products.push(numbering.tensor_product(draft, in_tensor_memory, adds, scale));
                }
                None => {}
            }
            if matches!(inst.op, Op::Mem(_)) && body.releases.contains(&draft.at) {
                kernel.releases.push(kernel.code.len() as u32);
            }
            if matches!(inst.op, Op::Fence(_)) && body.proxy_fences.contains(&draft.at) {
                kernel.proxy_fences.push(kernel.code.len() as u32);
            }
            kernel.code.push(inst);
            kernel.class.push(class_of(draft));
            kernel.hazards.push(numbering.hazards(draft));
            kernel.pos.push(position(draft.at));
        }
    }
    Ok(kernel)
}

fn class_of(draft: &Draft) -> Class {
    draft.class
}

fn constants(pool: &Pool, shared_bytes: u32) -> Vec<ConstSource> {
    let dynamic =
        |window: u64, offset: i64| ConstSource::Literal((window + u64::from(shared_bytes)).wrapping_add_signed(offset));
    pool.entries
        .iter()
        .map(|c| match *c {
            Const::Source(source) => source,
            Const::DynamicShared(offset) => dynamic(0, offset),
            Const::DynamicSharedGeneric(offset) => dynamic(SHARED_WINDOW, offset),
        })
        .collect()
}

fn specials(body: &Body, slots: &Slots) -> Vec<(Special, Slot)> {
    body.specials.iter().filter_map(|(&special, &r)| Some((special, slots.of[r as usize]?))).collect()
}

struct Numbering<'a> {
    slots: &'a Slots,
    body: &'a Body,
}

impl Numbering<'_> {
    fn slot(&self, arg: Arg) -> Slot {
        match arg {
            Arg::None => NONE,
            Arg::Const(slot) => slot,
            Arg::Reg(r) => self.slots.of[r as usize].expect("a used register has a slot"),
        }
    }

    fn inst(&self, draft: &Draft, join: u32) -> Inst {
        let op = match draft.op {
            DraftOp::Op(op) => op,
            DraftOp::Branch(label) => {
                let target = target(&self.body.labels, label);
                // Every lane of an unguarded branch goes one way.
                Op::Branch { target, reconverge: if draft.guard.is_some() { join } else { NEVER } }
            }
            DraftOp::Call(site) => Op::Call { target: start_of(self.body, site) },
            DraftOp::Return(_) => Op::Return,
            DraftOp::Param { .. } => unreachable!("parameter accesses are resolved"),
            DraftOp::Enter(_) | DraftOp::Leave(_) => unreachable!("frames are laid out"),
        };
        let guard = match draft.guard {
            None => Guard::ALWAYS,
            Some((r, negated)) => Guard::new(self.slot(Arg::Reg(r)), negated),
        };
        let slots = |args: [Arg; 4]| args.map(|arg| self.slot(arg));
        Inst { op, guard, dst: slots(draft.dst), src: slots(draft.src), imm: draft.imm }
    }

    fn fragments(&self, draft: &Draft) -> Fragments {
        let [b0, b1, b2, b3, c0, c1, c2, c3, metadata] = draft.more.map(|arg| self.slot(arg));
        Fragments { b: [b0, b1, b2, b3], c: [c0, c1, c2, c3], metadata }
    }

    fn tensor_product(&self, draft: &Draft, a_in_tensor_memory: bool, adds: bool, scale: u8) -> TensorProduct {
        let [d, a, b, instruction] = draft.src.map(|arg| self.slot(arg));
        let adds = (self.slot(draft.more[0]), adds);
        // A product of scaled blocks has no masks: their places have the addresses of factors.
        let is_scaled = match draft.op {
            DraftOp::Op(Op::Tensor(step)) => matches!(step.multiplies(), Some(TensorKind::Scaled(_))),
            _ => false,
        };
        let (masks, factors) = if is_scaled { (0, 2) } else { (8, 0) };
        let more = |count: usize, n: usize| if n < count { self.slot(draft.more[1 + n]) } else { NONE };
        let disabled = std::array::from_fn(|n| more(masks, n));
        let scales = std::array::from_fn(|n| more(factors, n));
        TensorProduct { d, a, a_in_tensor_memory, b, instruction, adds, disabled, scale, scales }
    }

    fn group_product(&self, draft: &Draft, group: &GroupDraft) -> GroupProduct {
        let [b, a, scale, _] = draft.src.map(|arg| self.slot(arg));
        let [by_columns, b_by_rows] = group.across;
        let factor = match a {
            NONE => GroupFactor::Registers(std::array::from_fn(|n| self.slot(draft.more[n]))),
            descriptor => GroupFactor::Shared { descriptor, by_columns },
        };
        let d: Box<[Slot]> = group.d.iter().map(|&arg| self.slot(arg)).collect();
        let accumulator = d[0];
        let (adds, subtracts) = ((scale, group.adds), group.subtracts);
        let metadata = self.slot(draft.more[8]);
        let operands = Some(GroupOperands { op: group.op, a: factor, metadata, b, b_by_rows, adds, subtracts, d });
        let (elements, columns, a_in_registers) = (group.elements, group.columns, a == NONE);
        GroupProduct { elements, columns, a_in_registers, accumulator, ends_group: false, operands }
    }

    /// The scoreboard index of a register.
    fn board(&self, r: VReg) -> u16 {
        let [n32, n64, _] = self.slots.used.map(|n| n as u16);
        let slot = self.slot(Arg::Reg(r));
        match self.body.banks[r as usize] {
            Bank::R32 => slot,
            Bank::R64 => n32 + slot,
            Bank::Pred => n32 + n64 + slot,
        }
    }

    fn hazards(&self, draft: &Draft) -> Hazards {
        let none = self.slots.used.iter().sum::<usize>() as u16;
        let (mut read, mut written) = (Vec::new(), Vec::new());
        reads(draft, |r| read.push(self.board(r)));
        writes(draft, |r| written.push(self.board(r)));
        Hazards::of(none, &read, &written)
    }
}
