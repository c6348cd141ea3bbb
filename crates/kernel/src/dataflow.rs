//! Dataflow over a kernel's instructions: where control goes, and which registers are alive before each of
//! them.
//!
//! Registers are scoreboard indices (32-bit slots, then 64-bit slots, then predicates), as [`Hazards`] lists
//! them. Facts are bit sets, one a program counter, solved by sweeps until nothing changes (Aho, Lam, Sethi,
//! Ullman, "Compilers", section 9.2); kernels are short enough that blocks do not pay.
//!
//! Divergence: a lane follows one path of the flow graph and owns its column of the register file, so what is
//! alive on some path from here is alive for the lanes that may take it; no lane mask is needed. A guarded
//! write leaves the old value in other lanes, so it ends no life. A guarded exit falls through.

use super::cfg::{BitSet, Flow};
use super::ir::{Guard, Hazards, Inst, Op};

/// Where control goes after an instruction.
pub(super) fn flow_of(inst: &Inst) -> Flow {
    let guarded = inst.guard != Guard::ALWAYS;
    match inst.op {
        Op::Branch { target, .. } => Flow { falls: guarded, jumps: Some(target) },
        Op::Call { .. } | Op::Return => unreachable!("kernels with calls are refused before"),
        Op::Exit | Op::Trap(_) => Flow { falls: guarded, jumps: None },
        _ => Flow::NEXT,
    }
}

/// The program counters that may follow each instruction; the end of the code is none.
#[derive(Debug, Clone, Default)]
pub(super) struct Edges {
    pub(super) after: Vec<Vec<u32>>,
    pub(super) before: Vec<Vec<u32>>,
}

impl Edges {
    pub(super) fn new(flow: &[Flow]) -> Edges {
        let n = flow.len();
        let mut edges = Edges { after: vec![Vec::new(); n], before: vec![Vec::new(); n] };
        for (pc, flow) in flow.iter().enumerate() {
            let next = flow.falls.then_some(pc as u32 + 1);
            for to in next.into_iter().chain(flow.jumps).filter(|&to| (to as usize) < n) {
                if !edges.after[pc].contains(&to) {
                    edges.after[pc].push(to);
                    edges.before[to as usize].push(pc as u32);
                }
            }
        }
        edges
    }

    pub(super) fn len(&self) -> usize {
        self.after.len()
    }

    /// Facts before each instruction, which follow from those before its successors; some path is enough.
    pub(super) fn backward(&self, bits: usize, mut transfer: impl FnMut(usize, &mut BitSet)) -> Vec<BitSet> {
        let mut facts = vec![BitSet::new(bits); self.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for pc in (0..self.len()).rev() {
                let mut here = BitSet::new(bits);
                for &to in &self.after[pc] {
                    here.join(&facts[to as usize]);
                }
                transfer(pc, &mut here);
                changed |= facts[pc] != here;
                facts[pc] = here;
            }
        }
        facts
    }

    /// Facts before each instruction, which follow from those after its predecessors; some path is enough.
    /// `transfer` turns the facts before an instruction into those after it.
    pub(super) fn forward_some(&self, entry: &BitSet, transfer: impl FnMut(usize, &mut BitSet)) -> Vec<BitSet> {
        let mut bottom = entry.clone();
        bottom.remove_all(entry);
        self.forward(entry, &bottom, transfer, |a, b| {
            a.join(b);
        })
    }

    /// The same for what holds on every path. Code that nothing reaches has every fact.
    pub(super) fn forward_every(
        &self,
        bits: usize,
        entry: &BitSet,
        transfer: impl FnMut(usize, &mut BitSet),
    ) -> Vec<BitSet> {
        self.forward(entry, &BitSet::all(bits), transfer, BitSet::meet)
    }

    fn forward(
        &self,
        entry: &BitSet,
        start: &BitSet,
        mut transfer: impl FnMut(usize, &mut BitSet),
        merge: impl Fn(&mut BitSet, &BitSet),
    ) -> Vec<BitSet> {
        let n = self.len();
        let (mut before, mut behind) = (vec![start.clone(); n], vec![start.clone(); n]);
        let mut changed = true;
        while changed {
            changed = false;
            for pc in 0..n {
                let mut here = if pc == 0 { entry.clone() } else { start.clone() };
                for &from in &self.before[pc] {
                    merge(&mut here, &behind[from as usize]);
                }
                before[pc].clone_from(&here);
                transfer(pc, &mut here);
                if behind[pc] != here {
                    behind[pc] = here;
                    changed = true;
                }
            }
        }
        before
    }

    /// Program counters that lie on a cycle, and the number of its strongly connected component, when control
    /// does not pass `cut` ones: Kosaraju's algorithm. `u32::MAX` for those on no cycle.
    pub(super) fn cycles(&self, cut: &[bool]) -> Vec<u32> {
        let n = self.len();
        let open = |pc: u32| !cut[pc as usize];
        // The first pass: places in the order in which a depth-first search leaves them.
        let mut order = Vec::with_capacity(n);
        let mut seen = vec![false; n];
        for root in 0..n as u32 {
            let mut stack = vec![(root, 0)];
            if std::mem::replace(&mut seen[root as usize], true) {
                continue;
            }
            while let Some(&mut (pc, ref mut next)) = stack.last_mut() {
                if let Some(&to) = self.after[pc as usize].get(*next) {
                    *next += 1;
                    if open(to) && !std::mem::replace(&mut seen[to as usize], true) {
                        stack.push((to, 0));
                    }
                } else {
                    order.push(pc);
                    stack.pop();
                }
            }
        }
        let mut component = vec![u32::MAX; n];
        let mut of = vec![u32::MAX; n];
        let mut size = Vec::new();
        // The second pass goes back along edges, from the place that was left last: what it reaches is one
        // component, since places of components before it are taken already.
        for &root in order.iter().rev() {
            if of[root as usize] != u32::MAX {
                continue;
            }
            let number = size.len() as u32;
            size.push(0u32);
            let mut stack = vec![root];
            of[root as usize] = number;
            while let Some(pc) = stack.pop() {
                size[number as usize] += 1;
                // An edge into a cut place is gone.
                for &from in self.before[pc as usize].iter().filter(|_| open(pc)) {
                    if of[from as usize] == u32::MAX {
                        of[from as usize] = number;
                        stack.push(from);
                    }
                }
            }
        }
        for pc in 0..n {
            // A component of one place is a cycle only if the place follows itself.
            let itself = open(pc as u32) && self.after[pc].contains(&(pc as u32));
            if size[of[pc] as usize] > 1 || itself {
                component[pc] = of[pc];
            }
        }
        component
    }
}

/// Registers alive before each instruction.
pub(super) fn live(edges: &Edges, code: &[Inst], hazards: &[Hazards], registers: usize) -> Vec<BitSet> {
    edges.backward(registers, |pc, alive| {
        if code[pc].guard == Guard::ALWAYS {
            hazards[pc].written().iter().for_each(|&r| alive.remove(u32::from(r)));
        }
        hazards[pc].read().iter().for_each(|&r| alive.insert(u32::from(r)));
    })
}

#[cfg(test)]
mod tests {
    use super::super::ptx;
    use super::*;

    const LOOP: &str = ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n) {\n\
        .reg .u32 %r<9>; .reg .u64 %d<9>; .reg .pred %p<3>;\nld.param.u64 %d1, [a];\nld.param.u32 %r1, [n];\n\
        mov.u32 %r2, 0;\nmov.u32 %r3, 5;\nL:\nadd.u32 %r2, %r2, %r3;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra L;\n\
        @%p1 mov.u32 %r3, 7;\nst.global.u32 [%d1], %r3;\nret;\n}\n";

    #[test]
    fn a_value_lives_until_its_last_read_and_a_guarded_write_keeps_it() {
        let kernel = &ptx::parse("k.ptx", LOOP).unwrap().kernels[0];
        let flow: Vec<Flow> = kernel.code.iter().map(flow_of).collect();
        let edges = Edges::new(&flow);
        let live = live(&edges, &kernel.code, &kernel.hazards, usize::from(kernel.no_register()));
        let text: Vec<usize> = live.iter().map(BitSet::len).collect();
        // mov d1; mov r1; mov r2; mov r3; add; setp; bra; @p mov; st; exit.
        assert_eq!(text, [0, 1, 2, 3, 4, 4, 5, 3, 2, 0]);
    }

    #[test]
    fn a_loop_is_a_cycle_until_it_is_cut() {
        let kernel = &ptx::parse("k.ptx", LOOP).unwrap().kernels[0];
        let flow: Vec<Flow> = kernel.code.iter().map(flow_of).collect();
        let edges = Edges::new(&flow);
        let on = |cut: &[bool]| edges.cycles(cut).iter().map(|&c| c != u32::MAX).collect::<Vec<_>>();
        let mut cut = vec![false; 10];
        assert_eq!(on(&cut), [false, false, false, false, true, true, true, false, false, false]);
        cut[4] = true;
        assert_eq!(on(&cut), [false; 10]);
    }
}
