//! Loop unrolling, so that a boundary a turn becomes one in several turns (paper, section IV-A, "Region Size
//! Extension").
//!
//! * *Counted* loops, whose number of turns is known here: the body is repeated by a factor that divides the
//!   number of turns, with one test.
//! * Others, *speculatively*: body and exit condition together, so that each copy may leave.
//!
//! Unrolled are innermost loops of one piece, entered at the top and closed by one guarded branch at the
//! bottom, which store something, hold nothing that orders threads, and whose branch does not split a warp.
//! Where it does, lanes that leave wait for the others and need a boundary before each exit (`regions.rs`,
//! "Divergence"): copies would gain nothing. How many copies: as many as the threshold takes when each stores
//! all it can, and `factor` at most.

use super::super::alu::{AluOp, Combine, CompareKind, IntCmp, IntOp};
use super::super::ir::{CONST, ConstSource, Guard, Kernel, Op, Slot};
use super::code::{Code, Item, order_of, words};
use super::plan::BOUNDARY_STORES;
use super::terms::RegionOptions;
use super::uniform::Fork;

/// A loop to unroll: its first and last item, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loop {
    head: usize,
    latch: usize,
    copies: u32,
    counted: bool,
}

/// How many loops were unrolled: counted ones and others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Unrolled {
    pub(super) counted: u32,
    pub(super) speculative: u32,
}

/// Unrolls the loops of a code; the items are as those that [`Code::new`] takes.
pub(super) fn unroll(code: &Code, kernel: &Kernel, forks: &[Fork], options: &RegionOptions) -> (Vec<Item>, Unrolled) {
    let loops: Vec<Loop> = (0..code.len()).filter_map(|latch| candidate(code, kernel, forks, options, latch)).collect();
    let counted = loops.iter().filter(|l| l.counted).count() as u32;
    let unrolled = Unrolled { counted, speculative: loops.len() as u32 - counted };
    // Where each copy of each old item lies.
    let mut order: Vec<(usize, u32, Option<Loop>)> = Vec::new();
    let mut place = vec![Vec::new(); code.len() + 1];
    let mut pc = 0;
    while pc < code.len() {
        match loops.iter().find(|l| l.head == pc) {
            Some(&l) => {
                for copy in 0..l.copies {
                    for (old, place) in place.iter_mut().enumerate().take(l.latch + 1).skip(l.head) {
                        place.push(order.len() as u32);
                        // A counted loop is left at its very end only.
                        if !(l.counted && old == l.latch && copy + 1 < l.copies) {
                            order.push((old, copy, Some(l)));
                        }
                    }
                }
                pc = l.latch + 1;
            }
            None => {
                place[pc].push(order.len() as u32);
                order.push((pc, 0, None));
                pc += 1;
            }
        }
    }
    place[code.len()].push(order.len() as u32);
    let item = |&(old, copy, within): &(usize, u32, Option<Loop>)| {
        let mut item = code.items[old].clone();
        let Op::Branch { target, reconverge } = item.inst.op else { return item };
        let mut to = (target as usize, 0);
        if let Some(l) = within {
            if old == l.latch {
                if copy + 1 < l.copies {
                    let (slot, negated) = item.inst.guard.parts().expect("a latch is guarded");
                    item.inst.guard = Guard::new(slot, !negated);
                    to.0 = l.latch + 1;
                }
            } else if (l.head + 1..=l.latch).contains(&to.0) {
                to.1 = copy as usize;
            }
        }
        item.inst.op = Op::Branch { target: place[to.0][to.1], reconverge };
        item
    };
    (order.iter().map(item).collect(), unrolled)
}

/// The loop that a guarded branch back closes, if it is to be unrolled.
fn candidate(code: &Code, kernel: &Kernel, forks: &[Fork], options: &RegionOptions, latch: usize) -> Option<Loop> {
    let Op::Branch { target, .. } = code.items[latch].inst.op else { return None };
    let head = target as usize;
    if head > latch || code.items[latch].inst.guard == Guard::ALWAYS || forks.iter().any(|f| f.pc as usize == latch) {
        return None;
    }
    let body = head..=latch;
    for pc in body.clone() {
        let item = &code.items[pc];
        let back = matches!(item.inst.op, Op::Branch { target, .. } if target as usize <= pc) && pc != latch;
        let entered = pc != head && code.edges.before[pc].iter().any(|&from| !body.contains(&(from as usize)));
        if back || entered || item.asked || order_of(&item.inst, options.scratch).is_some() {
            return None;
        }
    }
    let stores: u32 = body.clone().map(|pc| words(&code.items[pc].inst, options.scratch)).sum();
    if stores == 0 {
        return None;
    }
    // Each boundary also stores the registers that the loop writes and that are alive at its head, so the
    // threshold leaves less for the stores of copies.
    let mut carried: Vec<u16> = body.clone().flat_map(|pc| code.items[pc].hazards.written().to_vec()).collect();
    carried.sort_unstable();
    carried.dedup();
    carried.retain(|&r| code.live[head].contains(u32::from(r)));
    let room = options.threshold_stores.saturating_sub(BOUNDARY_STORES + carried.len() as u32);
    let most = (room / stores).min(options.unroll_factor);
    if options.unroll
        && let Some(turns) = turns(code, kernel, head, latch)
        && let Some(copies) = (2..=most).rev().find(|copies| turns.is_multiple_of(*copies))
    {
        return Some(Loop { head, latch, copies, counted: true });
    }
    (options.speculative_unroll && most >= 2).then_some(Loop { head, latch, copies: most, counted: false })
}

/// How often the body of a loop runs, where constants tell: a counter set before it, stepped and compared in
/// it.
fn turns(code: &Code, kernel: &Kernel, head: usize, latch: usize) -> Option<u32> {
    let literal = |slot: Slot| match kernel.consts32.get(usize::from(slot & !CONST)) {
        Some(ConstSource::Literal(value)) if slot & CONST != 0 => Some(*value as u32),
        _ => None,
    };
    let plain = |pc: usize, op: fn(&AluOp) -> bool| {
        let inst = &code.items[pc].inst;
        matches!(&inst.op, Op::Alu(alu) if op(alu)) && inst.guard == Guard::ALWAYS
    };
    let only_write = |register: u16| {
        let mut writes = (head..=latch).filter(|&pc| code.items[pc].hazards.written().contains(&register));
        let first = writes.next()?;
        writes.next().is_none().then_some(first)
    };
    let (predicate, negated) = code.items[latch].inst.guard.parts()?;
    let test = only_write(kernel.predicate_register(predicate))?;
    let compare = &code.items[test].inst;
    let Op::Alu(AluOp::Setp(how)) = compare.op else { return None };
    let CompareKind::Int32(kind) = how.kind else { return None };
    let (counter, bound) = (compare.src[0], literal(compare.src[1])?);
    if how.combine != Combine::None || compare.guard != Guard::ALWAYS || counter & CONST != 0 {
        return None;
    }
    let step = only_write(counter)?;
    if !plain(step, |op| *op == AluOp::Int32(IntOp::Add)) || code.items[step].inst.src[0] != counter || step > test {
        return None;
    }
    // Both must run in every turn: nothing but code in a row from the head.
    let jumps = (head..test).any(|pc| matches!(code.items[pc].inst.op, Op::Branch { .. }));
    let joined = (head + 1..=test).any(|pc| code.edges.before[pc].len() != 1);
    if jumps || joined {
        return None;
    }
    let by = literal(code.items[step].inst.src[1])?;
    let mut at = head;
    let mut first = true;
    let start = loop {
        // Back along the only way into the loop.
        let before: Vec<u32> =
            code.edges.before[at].iter().copied().filter(|&from| !first || (from as usize) < head).collect();
        let [from] = before[..] else { return None };
        (at, first) = (from as usize, false);
        if code.items[at].hazards.written().contains(&counter) {
            if !plain(at, |op| *op == AluOp::Mov32) {
                return None;
            }
            break literal(code.items[at].inst.src[0])?;
        }
        if at >= head {
            return None;
        }
    };
    const MOST: u32 = 1 << 20;
    let mut value = start;
    for turn in 1..=MOST {
        value = value.wrapping_add(by);
        if holds(kind, value, bound) == negated {
            return Some(turn);
        }
    }
    None
}

fn holds(kind: IntCmp, a: u32, b: u32) -> bool {
    let (sa, sb) = (a as i32, b as i32);
    match kind {
        IntCmp::Eq => a == b,
        IntCmp::Ne => a != b,
        IntCmp::LtS => sa < sb,
        IntCmp::LeS => sa <= sb,
        IntCmp::GtS => sa > sb,
        IntCmp::GeS => sa >= sb,
        IntCmp::LtU => a < b,
        IntCmp::LeU => a <= b,
        IntCmp::GtU => a > b,
        IntCmp::GeU => a >= b,
    }
}
