//! The code that boundaries are placed in: a kernel's instructions, and gaps at the ends of paths.
//!
//! Boundaries lie before an instruction. A path that falls into a reconvergence point has no instruction of
//! its own there, so a *gap* is put in, an item that becomes nothing unless a boundary is placed before it.
//! The program's own `pm.region` becomes a gap with a boundary that stays.

use super::super::alu::AluOp;
use super::super::cfg::{BitSet, Blocks, Flow};
use super::super::dataflow::{Edges, flow_of, live};
use super::super::ir::{
    AtomOp, BarrierRed, BulkKind, Class, Elem, Gathering, Guard, Hazards, Inst, Kernel, Mem, MemKind, NEVER, NONE, Op,
    PmOp, SourcePos, Space,
};

/// One instruction of a [`Code`].
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) inst: Inst,
    pub(super) class: Class,
    pub(super) hazards: Hazards,
    pub(super) pos: SourcePos,
    /// Emits nothing.
    pub(super) gap: bool,
    /// The program asks for a boundary here.
    pub(super) asked: bool,
}

/// A kernel's code and what does not depend on where boundaries are.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) items: Vec<Item>,
    pub(super) edges: Edges,
    pub(super) blocks: Blocks,
    /// Where the paths from each block meet again.
    pub(super) joins: Vec<u32>,
    /// Registers alive before each item.
    pub(super) live: Vec<BitSet>,
    pub(super) registers: usize,
}

/// The items of a kernel, gaps for its own boundaries included.
pub(super) fn items_of(kernel: &Kernel) -> Vec<Item> {
    let item = |pc: usize| {
        let inst = kernel.code[pc];
        let asked = inst.op == Op::Pm(PmOp::Region);
        let hazards = kernel.hazards[pc].clone();
        match asked {
            true => Item { asked, ..gap(kernel.pos[pc], kernel.no_register()) },
            false => Item { inst, class: kernel.class[pc], hazards, pos: kernel.pos[pc], gap: false, asked },
        }
    };
    (0..kernel.code.len()).map(item).collect()
}

fn gap(pos: SourcePos, no_register: u16) -> Item {
    let inst = Inst { op: Op::Nop, guard: Guard::ALWAYS, dst: [NONE; 4], src: [NONE; 4], imm: 0 };
    let hazards = Hazards::of(no_register, &[], &[]);
    Item { inst, class: Class::Control, hazards, pos, gap: true, asked: false }
}

impl Code {
    /// Prepares items, whose branch targets are indices of items: inserts gaps and analyses control flow.
    pub(super) fn new(mut items: Vec<Item>, kernel: &Kernel) -> Code {
        let flow: Vec<Flow> = items.iter().map(|item| flow_of(&item.inst)).collect();
        let blocks = Blocks::new(&flow);
        let joins = blocks.joins();
        let falls_in = |&pc: &u32| pc != NEVER && pc > 0 && flow[pc as usize - 1].falls;
        let mut gaps: Vec<u32> = joins.iter().copied().filter(falls_in).collect();
        gaps.sort_unstable();
        gaps.dedup();
        // A gap at `pc` moves it and all items after it by one; a branch to `pc` skips the gap.
        let moved = |pc: u32| pc + gaps.partition_point(|&gap| gap <= pc) as u32;
        for item in &mut items {
            if let Op::Branch { target, .. } = &mut item.inst.op {
                *target = moved(*target);
            }
        }
        for &at in gaps.iter().rev() {
            items.insert(at as usize, gap(items[at as usize].pos, kernel.no_register()));
        }
        let flow: Vec<Flow> = items.iter().map(|item| flow_of(&item.inst)).collect();
        let blocks = Blocks::new(&flow);
        let joins = blocks.joins();
        for (block, &join) in joins.iter().enumerate() {
            let last = blocks.range(block).end - 1;
            let guarded = items[last].inst.guard != Guard::ALWAYS;
            if let Op::Branch { reconverge, .. } = &mut items[last].inst.op {
                *reconverge = if guarded { join } else { NEVER };
            }
        }
        let edges = Edges::new(&flow);
        let registers = usize::from(kernel.no_register());
        let insts: Vec<Inst> = items.iter().map(|item| item.inst).collect();
        let hazards: Vec<Hazards> = items.iter().map(|item| item.hazards.clone()).collect();
        let live = live(&edges, &insts, &hazards, registers);
        Code { items, edges, blocks, joins, live, registers }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The immediate post-dominator of an instruction.
    pub(super) fn post_dominator(&self, pc: u32) -> u32 {
        let block = self.blocks.at(pc) as usize;
        if pc as usize + 1 < self.blocks.range(block).end { pc + 1 } else { self.joins[block] }
    }
}

/// Words of 8 bytes that one lane of an instruction stores to persistent memory. With `scratch`, what it
/// writes to shared and local memory goes to the shadow, and a barrier is counted.
pub(super) fn words(inst: &Inst, scratch: bool) -> u32 {
    match inst.op {
        Op::Mem(mem) if writes(mem) && (scratch || !in_scratch(mem)) => mem.bytes().div_ceil(8),
        _ => u32::from(scratch && gathering(inst).is_some()),
    }
}

/// A bulk copy from shared memory to global memory, which leaves in the region that issues it.
pub(super) fn stores_in_bulk(inst: &Inst) -> bool {
    matches!(inst.op, Op::Bulk(bulk) if bulk.kind.writes_global())
}

/// CTAs of a cluster may access the shared memory of each other. The launch may be what gives the kernel its
/// clusters. Then the code says it: `mapa` is the only way to another CTA's address.
pub(super) fn has_clusters(kernel: &Kernel) -> bool {
    let of_clusters = |inst: &Inst| matches!(inst.op, Op::Cluster(_) | Op::Alu(AluOp::MapShared(_)));
    kernel.bounds.has_clusters() || kernel.code.iter().any(of_clusters)
}

fn in_scratch(mem: Mem) -> bool {
    matches!(mem.space, Space::Shared | Space::Local)
}

/// Whose warps wait for each other at an instruction.
pub(super) fn gathering(inst: &Inst) -> Option<Gathering> {
    match inst.op {
        Op::Barrier(_) => Some(Gathering::Cta),
        Op::Pm(op) => op.gathers(),
        _ => None,
    }
}

/// How a write to shared or local memory is repeated at the shadow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shadow {
    Store,
    /// An atomic whose result is not used.
    Reduction,
    /// An atomic whose result is used: it is the shadow's.
    Result,
}

impl Code {
    /// How each item is repeated at a shadow, if it is. Without `scratch` none is.
    pub(super) fn shadows(&self, scratch: bool) -> Vec<Option<Shadow>> {
        let shadow = |pc: usize| {
            let item = &self.items[pc];
            match item.inst.op {
                Op::Mem(mem) if scratch && writes(mem) && in_scratch(mem) => match mem.kind {
                    MemKind::Store => Some(Shadow::Store),
                    _ if mem.space == Space::Local || !commutes(mem) => None,
                    _ => {
                        let used = |r: &u16| {
                            self.edges.after[pc].iter().any(|&to| self.live[to as usize].contains(u32::from(*r)))
                        };
                        let used = item.hazards.written().iter().any(used);
                        Some(if used { Shadow::Result } else { Shadow::Reduction })
                    }
                },
                _ => None,
            }
        };
        (0..self.len()).map(shadow).collect()
    }

    /// What keeps a kernel from being resumed in its middle.
    pub(super) fn obstacles(&self, kernel: &Kernel, shadows: &[Option<Shadow>], scratch: bool) -> Vec<&'static str> {
        let any = |of: &dyn Fn(usize, &Inst) -> bool| (0..self.len()).any(|pc| of(pc, &self.items[pc].inst));
        let writes_to =
            |inst: &Inst, space: Space| matches!(inst.op, Op::Mem(mem) if writes(mem) && mem.space == space);
        let unsaved = |space| move |pc: usize, inst: &Inst| writes_to(inst, space) && shadows[pc].is_none();
        let atomic = |_: usize, inst: &Inst| {
            matches!(inst.op, Op::Mem(mem) if writes(mem) && in_scratch(mem) && mem.kind != MemKind::Store
                && (mem.space == Space::Local || !commutes(mem)))
        };
        let partial = |_: usize, inst: &Inst| match inst.op {
            Op::Barrier(barrier) => {
                let counts_threads = barrier.threads != 0 || inst.src[2] != NONE;
                !barrier.wait || counts_threads || barrier.red != BarrierRed::None
            }
            _ => false,
        };
        let uncounted = |_: usize, inst: &Inst| !scratch && gathering(inst).is_some();
        let has_scratch = kernel.shared_bytes > 0 || kernel.dynamic_shared || kernel.local_bytes > 0;
        let mut found = Vec::new();
        let mut obstacle = |there: bool, what| found.extend(there.then_some(what));
        // A CTA that resumes by itself would find others elsewhere.
        obstacle(has_clusters(kernel), "shared memory of other CTAs of a cluster is not saved");
        // An atomic that does not commute has no shadow and would be reported a second time as memory that is
        // not saved.
        let atomics = any(&atomic);
        obstacle(atomics, "atomics on shared memory that do not commute (exch, cas, inc, dec, floats) are not saved");
        obstacle(!atomics && any(&unsaved(Space::Shared)), "shared memory is not saved");
        obstacle(!atomics && any(&unsaved(Space::Local)), "local memory is not saved");
        let generic = has_scratch && any(&|_, inst| writes_to(inst, Space::Generic));
        obstacle(
            generic,
            "stores through generic addresses may be to shared or local memory, which are then not saved",
        );
        obstacle(any(&uncounted), "barriers are not counted");
        let copies = any(&|_, inst| {
            matches!(inst.op, Op::Bulk(bulk) if bulk.kind.completes())
                || matches!(inst.op, Op::Mem(mem) if mem.kind == MemKind::Copy)
        });
        obstacle(copies, "asynchronous copies are not saved");
        obstacle(any(&|_, inst| matches!(inst.op, Op::Tensor(_))), "tensor memory is not saved");
        obstacle(
            any(&partial),
            "arrivals at barriers of some threads, bar.arrive and results of bar.red are not saved",
        );
        found
    }
}

/// Whether an atomic leaves the same bits whatever the order of several of its kind.
fn commutes(mem: Mem) -> bool {
    let whole = !matches!(mem.elem, Elem::F32 | Elem::F64);
    whole && matches!(mem.atom, AtomOp::Add | AtomOp::Min | AtomOp::Max | AtomOp::And | AtomOp::Or | AtomOp::Xor)
}

fn writes(mem: Mem) -> bool {
    matches!(mem.kind, MemKind::Store | MemKind::Atomic | MemKind::Reduction)
}

/// What an instruction that orders threads wants around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderingNeed {
    /// A boundary before it.
    Fence,
    /// A boundary before it and, so that its region's number is drawn when it has happened, one after it.
    Meeting,
}

/// Whether an instruction orders threads.
pub(super) fn order_of(inst: &Inst, scratch: bool) -> Option<OrderingNeed> {
    match inst.op {
        Op::Fence(_) => Some(OrderingNeed::Fence),
        Op::Barrier(_) => Some(OrderingNeed::Meeting),
        Op::Mem(Mem { kind: MemKind::Atomic | MemKind::Reduction, space, .. }) => {
            (scratch || space != Space::Shared).then_some(OrderingNeed::Meeting)
        }
        Op::Bulk(bulk) if bulk.kind == BulkKind::Reduce => Some(OrderingNeed::Meeting),
        Op::Pm(PmOp::BarrierWg | PmOp::BarrierKr) => Some(OrderingNeed::Meeting),
        Op::Pm(PmOp::Sfence | PmOp::Ofence | PmOp::Dfence | PmOp::BarrierWi | PmOp::Acquire(_) | PmOp::Release(_)) => {
            Some(OrderingNeed::Fence)
        }
        _ => None,
    }
}
