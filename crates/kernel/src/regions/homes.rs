//! Where checkpoints keep registers: a word for each lane, or one word for all lanes.
//!
//! LightWSP works on CPU code: a checkpoint store is 8 bytes. A warp's checkpoint store is 32 words, even
//! where all lanes hold one value. With [`RegionOptions::uniform_once`](super::RegionOptions::uniform_once)
//! such a register is stored as one word of its group of 32 threads, to which all active lanes store the same
//! 8 bytes, and a restart gives that to every lane. This is ours: the paper has no warps.
//!
//! | a store goes to the one word if | because |
//! |---|---|
//! | its register is uniform there, and the store has no guard | the word holds one value |
//! | every restart that loads what it stored can load the one word | a restart looks in one place |
//! | no lane waits meanwhile that would restart with that word | the word would hold another's value |
//!
//! A restart can load the one word if the register is uniform at its boundary, every store that reaches the
//! boundary goes there, and no exit with a guard follows: lanes that have exited there look at that guard
//! again, whatever others have stored since.
//!
//! Lanes wait at a branch that splits the warp: with a boundary before the branch while others are on its
//! paths, and with one on their own path while others are on the other path. Between their boundary and the
//! branch, or the end of their path, no lane has stored anything if another boundary lies on the paths
//! ([`plan`](super::plan), fault 2). So the loads of the former boundaries and the stores on the paths are
//! all that can meet.
//!
//! Everything starts with one word; what breaks a rule falls back to words of lanes until nothing does.
//! Invariant: a store and all loads that it reaches agree. Not modelled: program counters and counts of
//! barriers in one word.

use super::super::cfg::BitSet;
use super::super::ir::{Guard, NEVER, Op};
use super::code::Code;
use super::plan::CheckpointPlan;
use super::uniform::{Divergence, Fork};

/// Which checkpoint stores, and which loads of restarts, are of one word for all lanes. Registers are
/// scoreboard indices of the kernel as it was.
#[derive(Debug)]
pub(super) struct Homes {
    /// Stores after each item.
    pub(super) behind: Vec<BitSet>,
    /// Stores at the boundary before each item.
    pub(super) at: Vec<BitSet>,
    /// Loads of a restart at the boundary before each item.
    pub(super) loads: Vec<BitSet>,
}

/// Places on the two paths of a branch, and those of boundaries with which lanes come to it.
struct Paths {
    before: Vec<usize>,
    sides: [Vec<usize>; 2],
}

impl Homes {
    /// Every lane has a word of its own.
    pub(super) fn of_lanes(code: &Code) -> Homes {
        let none = || vec![BitSet::new(code.registers); code.len()];
        Homes { behind: none(), at: none(), loads: none() }
    }

    /// One word wherever that is sound.
    pub(super) fn once(code: &Code, plan: &CheckpointPlan, divergence: &Divergence) -> Homes {
        let mut homes = Homes::of_lanes(code);
        for pc in 0..code.len() {
            if code.items[pc].inst.guard == Guard::ALWAYS {
                let uniform = |r: &&u16| divergence.is_uniform_behind(code, pc, **r);
                plan.behind[pc].iter().filter(uniform).for_each(|&r| homes.behind[pc].insert(u32::from(r)));
            }
            let uniform = |r: &&u16| divergence.is_uniform_before(pc, **r);
            plan.at[pc].iter().filter(uniform).for_each(|&r| homes.at[pc].insert(u32::from(r)));
            let inst = &code.items[pc].inst;
            if let Some(restore) = &plan.restore[pc]
                && (inst.op != Op::Exit || inst.guard == Guard::ALWAYS)
            {
                restore.loads.iter().filter(uniform).for_each(|&r| homes.loads[pc].insert(u32::from(r)));
            }
        }
        let with_boundary = |fork: &&Fork| (0..code.len()).any(|pc| fork.inside[pc] && plan.boundary[pc]);
        let forks = divergence.forks.iter().filter(with_boundary);
        let paths: Vec<Paths> = forks.map(|fork| Paths::new(code, plan, fork)).collect();
        while homes.part_from_rows(code, plan) | paths.iter().any(|paths| homes.part_from_waiting(paths)) {}
        homes
    }

    /// Registers that are stored as lanes' words, and those that are stored as one word; a register may be
    /// both.
    pub(super) fn stored(&self, plan: &CheckpointPlan) -> [Vec<u16>; 2] {
        let mut stored = [Vec::new(), Vec::new()];
        let places = plan.behind.iter().zip(&self.behind).chain(plan.at.iter().zip(&self.at));
        for (registers, once) in places {
            for &r in registers {
                stored[usize::from(once.contains(u32::from(r)))].push(r);
            }
        }
        for registers in &mut stored {
            registers.sort_unstable();
            registers.dedup();
        }
        stored
    }

    /// Stores of one word.
    pub(super) fn stores(&self) -> u32 {
        self.behind.iter().chain(&self.at).map(|once| once.iter().count() as u32).sum()
    }

    /// Takes the one word from loads that a store of lanes' words reaches, and from stores that reach a load
    /// of those. True if any.
    fn part_from_rows(&mut self, code: &Code, plan: &CheckpointPlan) -> bool {
        let rows = code.edges.forward_some(&BitSet::new(code.registers), |pc, rows| {
            kinds(&plan.at[pc], &self.at[pc], true, rows);
            let whole = code.items[pc].inst.guard == Guard::ALWAYS;
            kinds(&plan.behind[pc], &self.behind[pc], whole, rows);
        });
        let mut changed = false;
        for (pc, mut reached) in rows.into_iter().enumerate() {
            kinds(&plan.at[pc], &self.at[pc], true, &mut reached);
            changed |= remove(&mut self.loads[pc], &reached);
        }
        // Registers of which a restart somewhere after loads lanes' words.
        let wanted = code.edges.backward(code.registers, |pc, wanted| {
            if code.items[pc].inst.guard == Guard::ALWAYS {
                plan.behind[pc].iter().for_each(|&r| wanted.remove(u32::from(r)));
            }
            self.loads_of_rows(plan, pc, wanted);
            plan.at[pc].iter().for_each(|&r| wanted.remove(u32::from(r)));
        });
        for pc in 0..code.len() {
            for &to in &code.edges.after[pc] {
                changed |= remove(&mut self.behind[pc], &wanted[to as usize]);
            }
            let mut rows = BitSet::new(code.registers);
            for &to in &code.edges.after[pc] {
                rows.join(&wanted[to as usize]);
            }
            if code.items[pc].inst.guard == Guard::ALWAYS {
                plan.behind[pc].iter().for_each(|&r| rows.remove(u32::from(r)));
            }
            self.loads_of_rows(plan, pc, &mut rows);
            changed |= remove(&mut self.at[pc], &rows);
        }
        changed
    }

    fn loads_of_rows(&self, plan: &CheckpointPlan, pc: usize, into: &mut BitSet) {
        let loads = plan.restore[pc].iter().flat_map(|restore| &restore.loads);
        loads.filter(|r| !self.loads[pc].contains(u32::from(**r))).for_each(|&r| into.insert(u32::from(r)));
    }

    /// Takes the one word from stores that others might restart with. True if any.
    fn part_from_waiting(&mut self, paths: &Paths) -> bool {
        let [one, other] = &paths.sides;
        let meetings = [(&paths.before, one), (&paths.before, other), (one, other), (other, one)];
        let mut changed = false;
        for (waits, runs) in meetings {
            for &pc in runs {
                for &wait in waits {
                    changed |= remove(&mut self.behind[pc], &self.loads[wait]);
                    changed |= remove(&mut self.at[pc], &self.loads[wait]);
                }
            }
        }
        changed
    }
}

/// What stores at a place make of the registers whose last store was of lanes' words.
fn kinds(stored: &[u16], once: &BitSet, whole: bool, rows: &mut BitSet) {
    for &r in stored {
        let r = u32::from(r);
        if !once.contains(r) {
            rows.insert(r);
        } else if whole {
            rows.remove(r);
        }
    }
}

/// Takes members out; true if there were any.
fn remove(from: &mut BitSet, what: &BitSet) -> bool {
    let before = from.clone();
    from.remove_all(what);
    *from != before
}

impl Paths {
    fn new(code: &Code, plan: &CheckpointPlan, fork: &Fork) -> Paths {
        let after = &code.edges.after[fork.pc as usize];
        let side = |number: usize| after.get(number).map_or(Vec::new(), |&start| Paths::side(code, start, fork.join));
        Paths { before: Paths::before(code, plan, fork.pc), sides: [side(0), side(1)] }
    }

    /// Places from `start` on that come before `join`.
    fn side(code: &Code, start: u32, join: u32) -> Vec<usize> {
        debug_assert!(join == NEVER || (join as usize) < code.len());
        reach(
            code,
            start as usize,
            |pc| if pc as u32 == join { &[] } else { &code.edges.after[pc] },
            |pc| pc as u32 != join,
        )
    }

    /// Boundaries from which a place can be reached without another.
    fn before(code: &Code, plan: &CheckpointPlan, pc: u32) -> Vec<usize> {
        let stop = |pc: usize| plan.boundary[pc];
        reach(code, pc as usize, |pc| if stop(pc) { &[] } else { &code.edges.before[pc] }, stop)
    }
}

/// Places that are reached from one by `next`, of those that `counts` says.
fn reach<'c>(
    code: &Code,
    start: usize,
    next: impl Fn(usize) -> &'c [u32],
    counts: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let (mut seen, mut todo) = (vec![false; code.len()], vec![start]);
    while let Some(pc) = todo.pop() {
        if !std::mem::replace(&mut seen[pc], true) {
            todo.extend(next(pc).iter().map(|&pc| pc as usize));
        }
    }
    (0..code.len()).filter(|&pc| seen[pc] && counts(pc)).collect()
}
