//! Which registers vary among lanes, and which branches may split a warp: a register is *uniform* where all
//! lanes that execute together hold one value in it.
//!
//! A forward analysis: lane numbers and what is loaded from different places vary; a result varies when an
//! operand does. Where the paths of a branch that splits meet again, whatever was written on them varies
//! (Coutinho et al., "Divergence Analysis and Optimizations", PACT 2011; here by slots instead of names). On
//! the paths themselves lanes execute together, so a loop's counter stays uniform in the loop. Which branches
//! split follows from which registers vary and the reverse: both grow until nothing changes.

use super::super::alu::AluOp;
use super::super::cfg::BitSet;
use super::super::ir::{Guard, Kernel, MemKind, NEVER, Op, Space, Special};
use super::code::Code;

/// A guarded branch, and what lies between it and the place where its paths meet.
#[derive(Debug)]
pub(super) struct Fork {
    /// The branch.
    pub(super) pc: u32,
    /// Where its paths meet, or [`NEVER`].
    pub(super) join: u32,
    /// Whether a place lies on one of its paths.
    pub(super) inside: Vec<bool>,
}

/// What lanes that execute together may differ in.
#[derive(Debug)]
pub(super) struct Divergence {
    /// The branches that may split a warp.
    pub(super) forks: Vec<Fork>,
    /// Registers that vary before each item.
    varies: Vec<BitSet>,
}

impl Divergence {
    /// A register holds one value in all lanes that execute together, before an item.
    pub(super) fn is_uniform_before(&self, pc: usize, register: u16) -> bool {
        !self.varies[pc].contains(u32::from(register))
    }

    /// The same after an item.
    pub(super) fn is_uniform_behind(&self, code: &Code, pc: usize, register: u16) -> bool {
        let mut varies = self.varies[pc].clone();
        step(code, pc, &mut varies);
        !varies.contains(u32::from(register))
    }
}

/// Every guarded branch.
fn forks(code: &Code) -> Vec<Fork> {
    let guarded = |pc: &u32| {
        let inst = &code.items[*pc as usize].inst;
        matches!(inst.op, Op::Branch { .. }) && inst.guard != Guard::ALWAYS
    };
    let fork = |pc: u32| {
        let Op::Branch { reconverge: join, .. } = code.items[pc as usize].inst.op else { unreachable!("a branch") };
        let mut inside = vec![false; code.len()];
        let mut todo = code.edges.after[pc as usize].clone();
        while let Some(at) = todo.pop() {
            if at != join && !std::mem::replace(&mut inside[at as usize], true) {
                todo.extend(&code.edges.after[at as usize]);
            }
        }
        Fork { pc, join, inside }
    };
    (0..code.len() as u32).filter(guarded).map(fork).collect()
}

/// Finds the branches that may split a warp, and the registers that vary.
pub(super) fn divergence(code: &Code, kernel: &Kernel) -> Divergence {
    let (mut calm, mut splitting) = (forks(code), Vec::new());
    let mut entry = BitSet::new(code.registers);
    for &(special, slot) in &kernel.specials {
        if !matches!(special, Special::Ctaid(_)) {
            entry.insert(u32::from(slot));
        }
    }
    // What varies where paths meet.
    let mut mixed = vec![BitSet::new(code.registers); code.len()];
    loop {
        let mut varies = code.edges.forward_some(&entry, |pc, varies| {
            varies.join(&mixed[pc]);
            step(code, pc, varies);
        });
        for (varies, mixed) in varies.iter_mut().zip(&mixed) {
            varies.join(mixed);
        }
        let splits = |fork: &Fork| {
            let (slot, _) = code.items[fork.pc as usize].inst.guard.parts().expect("a guard");
            varies[fork.pc as usize].contains(u32::from(kernel.predicate_register(slot)))
        };
        let (new, rest): (Vec<Fork>, Vec<Fork>) = calm.into_iter().partition(splits);
        calm = rest;
        if new.is_empty() {
            return Divergence { forks: splitting, varies };
        }
        for fork in &new {
            if fork.join != NEVER {
                for pc in (0..code.len()).filter(|&pc| fork.inside[pc]) {
                    let written = code.items[pc].hazards.written();
                    written.iter().for_each(|&r| mixed[fork.join as usize].insert(u32::from(r)));
                }
            }
        }
        splitting.extend(new);
    }
}

fn step(code: &Code, pc: usize, varies: &mut BitSet) {
    let item = &code.items[pc];
    let hazards = &item.hazards;
    let operands = hazards.read().iter().any(|&r| varies.contains(u32::from(r)));
    let varying = match item.inst.op {
        // One answer for all that execute it.
        Op::Alu(AluOp::Vote(_) | AluOp::Redux(_) | AluOp::ActiveMask | AluOp::Match(true, _)) => {
            item.inst.guard != Guard::ALWAYS
        }
        Op::Alu(AluOp::Shfl(_) | AluOp::Match(false, _) | AluOp::Elect | AluOp::Transpose | AluOp::MatrixRows(_))
        | Op::Matrix(_)
        | Op::WarpGroup(_)
        | Op::Tensor(_) => true,
        Op::Mem(mem) => match mem.kind {
            MemKind::Atomic | MemKind::Reduction | MemKind::Matrix(_) => true,
            _ => operands || matches!(mem.space, Space::Local | Space::Generic),
        },
        _ => operands,
    };
    for &r in hazards.written() {
        if varying {
            varies.insert(u32::from(r));
        } else if item.inst.guard == Guard::ALWAYS {
            varies.remove(u32::from(r));
        }
    }
}
