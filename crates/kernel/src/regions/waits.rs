//! Where a warp waits for others: what it stored before must be able to persist meanwhile.
//!
//! Regions commit in one order. A warp that waits with a store in its open region keeps all younger regions
//! waiting, those of the warp that it waits for included: where their stores fill a queue, neither goes on.
//! Barriers of a CTA, atomics and fences have boundaries of their own (`code.rs`). The waits here need one
//! only where something was stored since the last: a region has its number from its first store on. Where it
//! draws that at its boundary, as in the paper, each turn of a loop that polls ends a region.
//!
//! | wait | because |
//! |---|---|
//! | a loop with a volatile load | it looks again for what others store |
//! | a loop with any load whose address it does not compute | the same |
//! | `barrier.cluster.wait` | an arrival with `.release` has a fence, one with `.relaxed` has none |
//! | `setmaxnreg.inc` | it waits for registers that other warps give back |
//!
//! The second row has `ld.global.cg`, plain loads and `mbarrier.try_wait`. Compilers leave such a load in
//! such a loop where others may change what is there.
//!
//! Not seen: a loop that polls in turn several places whose addresses it computes, by loads that are not
//! volatile.

use super::super::ir::{CacheOp, ClusterStep, Inst, Kernel, Mem, MemKind, Op, RegisterStep, Space};
use super::code::Code;

/// The waits of a code.
#[derive(Debug)]
pub(super) struct Waits {
    /// Loads that poll memory where they are in a loop.
    pub(super) polls: Vec<bool>,
    /// Places at which a warp may stand until others act.
    pub(super) blocking: Vec<u32>,
}

impl Waits {
    pub(super) fn new(code: &Code, kernel: &Kernel) -> Waits {
        let mut polls: Vec<bool> = code.items.iter().map(|item| looks_again(&item.inst)).collect();
        for (from, header) in back_edges(code) {
            let body = loop_of(code, from, header);
            let computed =
                |register: &u16| body.iter().any(|&pc| code.items[pc as usize].hazards.written().contains(register));
            for &pc in &body {
                let item = &code.items[pc as usize];
                let guard = item.inst.guard.parts().map(|(slot, _)| kernel.predicate_register(slot));
                let mut address = item.hazards.read().iter().filter(|register| Some(**register) != guard);
                polls[pc as usize] |= may_change(&item.inst) && !address.any(computed);
            }
        }
        let blocking = (0..code.len() as u32).filter(|&pc| blocks(&code.items[pc as usize].inst)).collect();
        Waits { polls, blocking }
    }
}

/// A load of what others may have changed (`ld.volatile`, `ld.relaxed`, `ld.acquire`).
fn looks_again(inst: &Inst) -> bool {
    matches!(inst.op, Op::Mem(mem) if mem.kind == MemKind::Load && mem.cache == CacheOp::Volatile)
}

/// A load from memory that is not constant while the kernel runs.
fn may_change(inst: &Inst) -> bool {
    let written = |mem: Mem| matches!(mem.space, Space::Global | Space::Shared | Space::Generic);
    matches!(inst.op, Op::Mem(mem) if mem.kind == MemKind::Load && mem.cache != CacheOp::ReadOnly && written(mem))
}

fn blocks(inst: &Inst) -> bool {
    matches!(inst.op, Op::Cluster(ClusterStep::Wait) | Op::Registers(RegisterStep::Request(_)))
}

/// Edges from an item to one that a depth-first walk from the entry is still at: each closes a loop.
fn back_edges(code: &Code) -> Vec<(u32, u32)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Left,
    }
    let mut mark = vec![Mark::New; code.len()];
    let mut found = Vec::new();
    let mut stack = vec![(0u32, 0)];
    mark[0] = Mark::Open;
    // Its own stack: code of thousands of items in a row would be as many calls deep.
    while let Some(&mut (pc, ref mut next)) = stack.last_mut() {
        let Some(&to) = code.edges.after[pc as usize].get(*next) else {
            mark[pc as usize] = Mark::Left;
            stack.pop();
            continue;
        };
        *next += 1;
        match mark[to as usize] {
            Mark::Open => found.push((pc, to)),
            Mark::New => {
                mark[to as usize] = Mark::Open;
                stack.push((to, 0));
            }
            Mark::Left => {}
        }
    }
    found
}

/// The items of the loop of a back edge: all that leads to its start without passing the header.
fn loop_of(code: &Code, from: u32, header: u32) -> Vec<u32> {
    let mut inside = vec![false; code.len()];
    inside[header as usize] = true;
    let mut left = vec![from];
    while let Some(pc) = left.pop() {
        if !std::mem::replace(&mut inside[pc as usize], true) {
            left.extend(&code.edges.before[pc as usize]);
        }
    }
    (0..code.len() as u32).filter(|&pc| inside[pc as usize]).collect()
}
