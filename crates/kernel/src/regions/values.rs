//! Checkpoint pruning: which registers a restart can compute instead of loading them.
//!
//! A register's value is known at a place when on every path there one and the same instruction wrote it
//! last, in every lane, and nothing that the instruction reads has changed since; or when nothing has written
//! it at all, so that it holds what it starts with (zero, or a special register). "Has changed since" is
//! followed dynamically: an operand that is written again on the way round a loop ends the knowledge. So
//! recipes never run in a circle.
//!
//! Only register-to-register instructions that look at their own lane qualify; constants and parameters are
//! constants of the launch. Loads do not, not even of immutable memory.

use super::super::cfg::BitSet;
use super::super::ir::{Guard, Inst, Op};
use super::code::Code;

/// What is known of registers before each item.
#[derive(Debug)]
pub(super) struct Values {
    /// Instructions that can be repeated.
    recipes: Vec<usize>,
    /// Of those, which still give their register's value.
    known: Vec<BitSet>,
    /// Registers that hold what they started with.
    untouched: Vec<BitSet>,
}

/// How a restart gets the registers of a region's entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restore {
    /// Loaded from the checkpoint, a word for each lane (scoreboard indices).
    pub loads: Vec<u16>,
    /// Loaded from the checkpoint, one word for all lanes.
    pub once: Vec<u16>,
    /// Computed then, in this order.
    pub steps: Vec<Inst>,
    /// Registers that are alive and not loaded: computed, or as a fresh warp has them.
    pub pruned: Vec<u16>,
}

impl Restore {
    /// Registers that are loaded.
    pub fn loaded(&self) -> usize {
        self.loads.len() + self.once.len()
    }
}

fn repeatable(code: &Code, pc: usize) -> bool {
    let item = &code.items[pc];
    let own_lane = matches!(item.inst.op, Op::Alu(op) if !op.is_across_lanes());
    let (reads, writes) = (item.hazards.read(), item.hazards.written());
    own_lane && item.inst.guard == Guard::ALWAYS && !writes.is_empty() && !writes.iter().any(|r| reads.contains(r))
}

impl Values {
    pub(super) fn new(code: &Code) -> Values {
        let recipes: Vec<usize> = (0..code.len()).filter(|&pc| repeatable(code, pc)).collect();
        let mut number = vec![None; code.len()];
        let mut ends: Vec<Vec<u32>> = vec![Vec::new(); code.registers];
        for (i, &pc) in recipes.iter().enumerate() {
            number[pc] = Some(i as u32);
            let hazards = &code.items[pc].hazards;
            for &r in hazards.read().iter().chain(hazards.written()) {
                ends[usize::from(r)].push(i as u32);
            }
        }
        let none = BitSet::new(recipes.len());
        let known = code.edges.forward_every(recipes.len(), &none, |pc, known| {
            for &r in code.items[pc].hazards.written() {
                ends[usize::from(r)].iter().for_each(|&i| known.remove(i));
            }
            number[pc].into_iter().for_each(|i| known.insert(i));
        });
        let untouched = code.edges.forward_every(code.registers, &BitSet::all(code.registers), |pc, untouched| {
            code.items[pc].hazards.written().iter().for_each(|&r| untouched.remove(u32::from(r)));
        });
        Values { recipes, known, untouched }
    }

    /// How the registers alive before `pc` come back. Without `prune` all of them are loaded.
    pub(super) fn restore(&self, code: &Code, pc: usize, prune: bool) -> Restore {
        let mut restore = Restore::default();
        let mut done = BitSet::new(code.registers);
        for r in code.live[pc].iter() {
            if prune && self.derive(code, pc, r as u16, &mut restore.steps, &mut done) {
                restore.pruned.push(r as u16);
            } else {
                restore.loads.push(r as u16);
            }
        }
        restore
    }

    /// Whether `r` can be computed before `pc` from registers alive there; appends what has to be done.
    fn derive(&self, code: &Code, pc: usize, r: u16, steps: &mut Vec<Inst>, done: &mut BitSet) -> bool {
        if self.untouched[pc].contains(u32::from(r)) || done.contains(u32::from(r)) {
            return true;
        }
        let of = |&i: &u32| code.items[self.recipes[i as usize]].hazards.written().contains(&r);
        let Some(i) = self.known[pc].iter().find(of) else { return false };
        let item = &code.items[self.recipes[i as usize]];
        let mark = steps.len();
        for &operand in item.hazards.read() {
            let computed = self.derive(code, pc, operand, steps, done);
            if !computed && !code.live[pc].contains(u32::from(operand)) {
                // What was appended for other operands does no harm, but is not needed either.
                steps.truncate(mark);
                self.forget(code, steps, done);
                return false;
            }
        }
        steps.push(item.inst);
        item.hazards.written().iter().for_each(|&r| done.insert(u32::from(r)));
        true
    }

    /// Makes `done` what `steps` compute.
    fn forget(&self, code: &Code, steps: &[Inst], done: &mut BitSet) {
        *done = BitSet::new(code.registers);
        for step in steps {
            let item = self.recipes.iter().map(|&pc| &code.items[pc]).find(|item| item.inst == *step);
            let item = item.expect("a step is a recipe");
            item.hazards.written().iter().for_each(|&r| done.insert(u32::from(r)));
        }
    }
}
