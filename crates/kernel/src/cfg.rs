//! Control flow of a kernel: basic blocks, immediate post-dominators, liveness.
//!
//! Works on program counters and register numbers alone, so it knows no instruction set. Post-dominators
//! follow Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph with
//! one virtual exit.
//!
//! Invariants: blocks are in program order and cover the code; a block that cannot reach an exit has no
//! post-dominator ([`NEVER`]).

use super::ir::NEVER;

/// Where control goes after an instruction; nowhere is an exit.
///
/// A guarded exit counts as falling through: lanes that exit leave every path of their warp, so only those
/// that stay need a place to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    /// To the next instruction.
    pub(super) falls: bool,
    /// To another place.
    pub(super) jumps: Option<u32>,
}

impl Flow {
    /// To the next instruction, nothing else.
    pub(super) const NEXT: Flow = Flow { falls: true, jumps: None };
}

/// The basic blocks of a kernel.
#[derive(Debug)]
pub(super) struct Blocks {
    /// First pc of each block, ascending, and the length of the code at the end.
    starts: Vec<u32>,
    /// Successors of each block; the virtual exit is the number of blocks.
    successors: Vec<Vec<u32>>,
}

impl Blocks {
    /// Cuts code into blocks.
    pub(super) fn new(flow: &[Flow]) -> Blocks {
        let n = flow.len();
        let mut leader = vec![false; n + 1];
        leader[0] = true;
        for (pc, f) in flow.iter().enumerate() {
            if let Some(target) = f.jumps {
                leader[target as usize] = true;
            }
            if f.jumps.is_some() || !f.falls {
                leader[pc + 1] = true;
            }
        }
        leader[n] = true;
        let starts: Vec<u32> = (0..=n).filter(|&pc| leader[pc]).map(|pc| pc as u32).collect();
        // The end of the code is the last start: it bounds the last block, and its number is that of the
        // virtual exit.
        let exit = starts.len() as u32 - 1;
        let mut blocks = Blocks { starts, successors: Vec::new() };
        for b in 0..exit {
            let last = &flow[blocks.starts[b as usize + 1] as usize - 1];
            let mut to = Vec::new();
            if last.falls {
                to.push(b + 1);
            }
            to.extend(last.jumps.map(|target| blocks.at(target)));
            if to.is_empty() {
                to.push(exit);
            }
            // A guarded branch to the next instruction has one successor, not the same one twice.
            to.dedup();
            blocks.successors.push(to);
        }
        blocks
    }

    /// The same with ways from some ends of lanes on: each from the block of the first pc to those of the
    /// others.
    pub(super) fn with_returns(mut self, returns: &[(u32, Vec<u32>)]) -> Blocks {
        for (from, to) in returns.iter().filter(|(_, to)| !to.is_empty()) {
            let from = self.at(*from) as usize;
            self.successors[from] = to.iter().map(|&to| self.at(to)).collect();
        }
        self
    }

    /// Blocks.
    pub(super) fn len(&self) -> usize {
        self.successors.len()
    }

    /// The block that holds a pc (the virtual exit for the end of the code).
    pub(super) fn at(&self, pc: u32) -> u32 {
        self.starts.partition_point(|&s| s <= pc) as u32 - 1
    }

    /// The pcs of a block.
    pub(super) fn range(&self, block: usize) -> std::ops::Range<usize> {
        self.starts[block] as usize..self.starts[block + 1] as usize
    }

    /// For each block, the pc at which every path from its end meets again; [`NEVER`] if that is only the
    /// exit.
    ///
    /// A way that does nothing but leave the kernel does not count where there is another one: its lanes
    /// exit, and those that stay need not wait for the end of the kernel to meet. Hardware leaves by a
    /// predicated exit there.
    pub(super) fn joins(&self) -> Vec<u32> {
        let stays = |to: &Vec<u32>| {
            let stays: Vec<u32> = to.iter().copied().filter(|&s| !self.leaves(s)).collect();
            if stays.is_empty() { to.clone() } else { stays }
        };
        let all = self.post_dominators(&self.successors);
        let staying = self.post_dominators(&self.successors.iter().map(stays).collect::<Vec<_>>());
        staying.into_iter().zip(all).map(|(staying, all)| if staying == NEVER { all } else { staying }).collect()
    }

    /// A block of one instruction that ends its lanes.
    fn leaves(&self, block: u32) -> bool {
        let exit = self.len() as u32;
        block == exit || self.range(block as usize).len() == 1 && self.successors[block as usize] == [exit]
    }

    /// The first pc of the immediate post-dominator of each block, [`NEVER`] where that is the exit or
    /// nothing.
    fn post_dominators(&self, successors: &[Vec<u32>]) -> Vec<u32> {
        let n = self.len();
        let exit = n;
        let mut predecessors = vec![Vec::new(); n + 1];
        for (b, to) in successors.iter().enumerate() {
            for &s in to {
                predecessors[s as usize].push(b);
            }
        }
        // Post-order of the reversed graph from the exit, without recursion.
        let mut order = Vec::with_capacity(n + 1);
        let mut number = vec![usize::MAX; n + 1];
        let mut seen = vec![false; n + 1];
        let mut stack = vec![(exit, 0)];
        seen[exit] = true;
        while let Some(&mut (b, ref mut next)) = stack.last_mut() {
            if let Some(&p) = predecessors[b].get(*next) {
                *next += 1;
                if !seen[p] {
                    seen[p] = true;
                    stack.push((p, 0));
                }
            } else {
                number[b] = order.len();
                order.push(b);
                stack.pop();
            }
        }
        // In this order a block's successors come first wherever there is no loop, so few passes are enough.
        // A block that reaches no exit is not in the order and keeps `usize::MAX`, which becomes `NEVER`.
        let mut idom = vec![usize::MAX; n + 1];
        idom[exit] = exit;
        let mut changed = true;
        while changed {
            changed = false;
            for &b in order.iter().rev().skip(1) {
                let mut new = usize::MAX;
                for &s in &successors[b] {
                    let s = s as usize;
                    if idom[s] == usize::MAX {
                        continue;
                    }
                    new = if new == usize::MAX { s } else { meet(&idom, &number, new, s) };
                }
                changed |= idom[b] != new;
                idom[b] = new;
            }
        }
        (0..n).map(|b| if idom[b] >= exit { NEVER } else { self.starts[idom[b]] }).collect()
    }

    /// Registers alive at the start of each block, as bit sets of `registers` bits.
    ///
    /// `reads` and `kills` list the registers that an instruction reads, and those that it writes in every
    /// lane.
    pub(super) fn live_in(
        &self,
        registers: usize,
        reads: impl Fn(usize, &mut dyn FnMut(u32)),
        kills: impl Fn(usize, &mut dyn FnMut(u32)),
    ) -> Vec<BitSet> {
        let n = self.len();
        let mut exposed = vec![BitSet::new(registers); n];
        let mut killed = vec![BitSet::new(registers); n];
        // What a block reads before it writes it is alive at its start, whatever follows. Reads of an
        // instruction come before its own writes.
        for b in 0..n {
            for pc in self.range(b) {
                reads(pc, &mut |r| {
                    if !killed[b].contains(r) {
                        exposed[b].insert(r);
                    }
                });
                kills(pc, &mut |r| killed[b].insert(r));
            }
        }
        let mut live = exposed;
        let mut changed = true;
        while changed {
            changed = false;
            // From the last block back, as life comes from successors: only loops need a further pass.
            for b in (0..n).rev() {
                let mut out = BitSet::new(registers);
                for &s in &self.successors[b] {
                    if (s as usize) < n {
                        out.join(&live[s as usize]);
                    }
                }
                out.remove_all(&killed[b]);
                changed |= live[b].join(&out);
            }
        }
        live
    }

    /// Registers alive at the end of a block.
    pub(super) fn live_out(&self, block: usize, live_in: &[BitSet], registers: usize) -> BitSet {
        let mut out = BitSet::new(registers);
        for &s in &self.successors[block] {
            if (s as usize) < self.len() {
                out.join(&live_in[s as usize]);
            }
        }
        out
    }
}

fn meet(idom: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = idom[a];
        }
        while number[b] < number[a] {
            b = idom[b];
        }
    }
    a
}

/// A set of small numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    pub(super) fn new(bits: usize) -> BitSet {
        BitSet(vec![0; bits.div_ceil(64)])
    }

    pub(super) fn contains(&self, bit: u32) -> bool {
        self.0[bit as usize / 64] >> (bit % 64) & 1 != 0
    }

    pub(super) fn insert(&mut self, bit: u32) {
        self.0[bit as usize / 64] |= 1 << (bit % 64);
    }

    pub(super) fn remove(&mut self, bit: u32) {
        self.0[bit as usize / 64] &= !(1 << (bit % 64));
    }

    /// Keeps the members that `other` has too.
    pub(super) fn meet(&mut self, other: &BitSet) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= b;
        }
    }

    /// All of `bits` numbers.
    pub(super) fn all(bits: usize) -> BitSet {
        let mut set = BitSet::new(bits);
        (0..bits as u32).for_each(|bit| set.insert(bit));
        set
    }

    /// How many members.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Adds every member of `other`; true when that changed anything.
    pub(super) fn join(&mut self, other: &BitSet) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *a | b != *a;
            *a |= b;
        }
        changed
    }

    pub(super) fn remove_all(&mut self, other: &BitSet) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    /// The members, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            std::iter::successors((bits != 0).then_some(bits), |b| (b & (b - 1) != 0).then_some(b & (b - 1)))
                .map(move |b| word as u32 * 64 + b.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT: Flow = Flow { falls: false, jumps: None };

    fn conditional(target: u32) -> Flow {
        Flow { jumps: Some(target), ..Flow::NEXT }
    }

    fn jump(target: u32) -> Flow {
        Flow { falls: false, jumps: Some(target) }
    }

    fn join_of(flow: &[Flow], pc: usize) -> u32 {
        let blocks = Blocks::new(flow);
        blocks.joins()[blocks.at(pc as u32) as usize]
    }

    #[test]
    fn both_sides_of_an_if_meet_behind_it() {
        let flow = [conditional(3), Flow::NEXT, jump(4), Flow::NEXT, EXIT];
        assert_eq!(join_of(&flow, 0), 4);
    }

    #[test]
    fn a_loop_meets_behind_its_back_edge() {
        let flow = [Flow::NEXT, Flow::NEXT, conditional(1), EXIT];
        assert_eq!(join_of(&flow, 2), 3);
    }

    #[test]
    fn paths_that_exit_apart_never_meet() {
        let flow = [conditional(2), EXIT, EXIT];
        assert_eq!(join_of(&flow, 0), NEVER);
    }

    #[test]
    fn lanes_that_only_leave_are_not_awaited() {
        // 0: @p bra 3; 1: @q bra 4; 2: ...; 3: ...; 4: exit.
        let flow = [conditional(3), conditional(4), Flow::NEXT, Flow::NEXT, EXIT];
        assert_eq!((join_of(&flow, 0), join_of(&flow, 1)), (3, 2));
    }

    #[test]
    fn an_endless_loop_has_no_join() {
        let flow = [conditional(3), Flow::NEXT, jump(1), EXIT];
        assert_eq!(join_of(&flow, 1), NEVER);
        assert_eq!(join_of(&flow, 0), 3);
    }

    #[test]
    fn a_value_is_alive_around_the_loop_that_reads_it() {
        // 0: write r0; 1: read r0; 2: @p bra 1; 3: exit.
        let flow = [Flow::NEXT, Flow::NEXT, conditional(1), EXIT];
        let blocks = Blocks::new(&flow);
        let live = blocks.live_in(
            1,
            |pc, f| {
                if pc == 1 {
                    f(0);
                }
            },
            |pc, f| {
                if pc == 0 {
                    f(0);
                }
            },
        );
        assert!(!live[0].contains(0));
        assert!(live[1].contains(0));
        assert!(blocks.live_out(1, &live, 1).contains(0));
        assert!(!blocks.live_out(2, &live, 1).contains(0));
    }
}
