//! Register allocation: virtual registers to dense slots, so that a warp's registers stay in the host's
//! cache.
//!
//! Linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", TOPLAS 1999) over one interval a
//! register: from its first to its last point of life, in program order. There is no limit, hence no
//! spilling. Every lane follows one path of the control flow graph and owns its column of the register file,
//! so sharing a slot is safe under divergence.
//!
//! Invariants: a register that some path reads before writing is alive from the start. It shares its slot
//! with no other register until its last use, so it reads 0. A guarded write leaves the old value in the
//! other lanes, so it ends no life.

use super::super::cfg::{BitSet, Blocks};
use super::draft::{Arg, Body, Draft, VReg};
use super::types::Bank;

/// Where the registers of a kernel live.
pub(super) struct Slots {
    /// The slot of each virtual register that is used.
    pub(super) of: Vec<Option<u16>>,
    /// Slots used in each bank: 32-bit, 64-bit, predicates.
    pub(super) used: [usize; 3],
    /// Virtual registers used in each bank.
    pub(super) registers: [u32; 3],
    /// The most 32-bit values alive at once, a 64-bit one counted twice, special registers left out.
    pub(super) pressure: u32,
}

fn bank_index(bank: Bank) -> usize {
    match bank {
        Bank::R32 => 0,
        Bank::R64 => 1,
        Bank::Pred => 2,
    }
}

/// The registers that an instruction reads: sources, guard, and what it stores.
pub(super) fn reads(draft: &Draft, mut f: impl FnMut(VReg)) {
    let (data, _) = draft.data_and_results();
    let [summands, _] = draft.listed();
    for &arg in draft.src.iter().chain(&draft.more).chain(data).chain(summands) {
        if let Arg::Reg(register) = arg {
            f(register);
        }
    }
    if let Some((register, _)) = draft.guard {
        f(register);
    }
}

/// The registers that an instruction writes.
pub(super) fn writes(draft: &Draft, mut f: impl FnMut(VReg)) {
    let (_, results) = draft.data_and_results();
    let [_, sums] = draft.listed();
    for &arg in results.iter().chain(sums) {
        if let Arg::Reg(register) = arg {
            f(register);
        }
    }
}

/// Allocates slots for a body whose parameter accesses are resolved.
pub(super) fn allocate(body: &Body, blocks: &Blocks) -> Slots {
    let code = &body.code;
    let n = body.banks.len();
    // Only registers read before they are written in some block can be alive between blocks.
    let mut between = vec![u32::MAX; n];
    let mut names: Vec<VReg> = Vec::new();
    let mut written_in = vec![usize::MAX; n];
    for b in 0..blocks.len() {
        for pc in blocks.range(b) {
            reads(&code[pc], |r| {
                if written_in[r as usize] != b && between[r as usize] == u32::MAX {
                    between[r as usize] = names.len() as u32;
                    names.push(r);
                }
            });
            if code[pc].guard.is_none() {
                writes(&code[pc], |r| written_in[r as usize] = b);
            }
        }
    }
    // A guarded write keeps what was there, so it needs the life before it.
    for b in 0..blocks.len() {
        for pc in blocks.range(b) {
            if code[pc].guard.is_some() {
                writes(&code[pc], |r| {
                    if between[r as usize] == u32::MAX {
                        between[r as usize] = names.len() as u32;
                        names.push(r);
                    }
                });
            }
        }
    }
    let live_in = blocks.live_in(
        names.len(),
        |pc, f| {
            reads(&code[pc], |r| {
                if between[r as usize] != u32::MAX {
                    f(between[r as usize]);
                }
            });
        },
        |pc, f| {
            if code[pc].guard.is_none() {
                writes(&code[pc], |r| {
                    if between[r as usize] != u32::MAX {
                        f(between[r as usize]);
                    }
                });
            }
        },
    );
    let special: Vec<VReg> = body.specials.values().copied().collect();
    let intervals = intervals(body, blocks, &names, &live_in, &special);
    let mut slots = scan(body, &intervals);
    slots.pressure = pressure(body, blocks, &names, &live_in, &special);
    slots
}

/// First and last point of life of each register: reads of instruction `pc` at 2 pc, writes at 2 pc + 1.
fn intervals(
    body: &Body,
    blocks: &Blocks,
    names: &[VReg],
    live_in: &[BitSet],
    special: &[VReg],
) -> Vec<Option<(u32, u32)>> {
    let mut life: Vec<Option<(u32, u32)>> = vec![None; body.banks.len()];
    let mut extend = |r: VReg, at: u32| {
        let life = &mut life[r as usize];
        *life = Some(life.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
    };
    for (pc, draft) in body.code.iter().enumerate() {
        reads(draft, |r| extend(r, 2 * pc as u32));
        writes(draft, |r| extend(r, 2 * pc as u32 + 1));
    }
    // In a loop a register may be alive before its first and after its last place in the text. So it is
    // extended over every block at whose start or end it is alive.
    for b in 0..blocks.len() {
        let range = blocks.range(b);
        for name in live_in[b].iter() {
            extend(names[name as usize], 2 * range.start as u32);
        }
        for name in blocks.live_out(b, live_in, names.len()).iter() {
            extend(names[name as usize], 2 * range.end as u32 - 1);
        }
    }
    // Special registers are written when the warp starts, before the first instruction.
    for &r in special {
        extend(r, 0);
    }
    life
}

fn scan(body: &Body, intervals: &[Option<(u32, u32)>]) -> Slots {
    let mut order: Vec<(u32, u32, VReg)> = intervals
        .iter()
        .enumerate()
        .filter_map(|(r, life)| life.map(|(first, last)| (first, last, r as VReg)))
        .collect();
    order.sort_unstable();
    let mut slots = Slots { of: vec![None; intervals.len()], used: [0; 3], registers: [0; 3], pressure: 0 };
    // Per bank: slots free again, lowest first, and those taken by the end of their life.
    let mut free = [const { std::collections::BinaryHeap::new() }; 3];
    let mut taken = [const { std::collections::BinaryHeap::new() }; 3];
    for (first, last, r) in order {
        let bank = bank_index(body.banks[r as usize]);
        while let Some(&std::cmp::Reverse((end, slot))) = taken[bank].peek() {
            if end >= first {
                break;
            }
            taken[bank].pop();
            free[bank].push(std::cmp::Reverse(slot));
        }
        let slot = match free[bank].pop() {
            Some(std::cmp::Reverse(slot)) => slot,
            None => {
                slots.used[bank] += 1;
                slots.used[bank] - 1
            }
        };
        taken[bank].push(std::cmp::Reverse((last, slot)));
        slots.registers[bank] += 1;
        // Too many slots are reported by the caller.
        slots.of[r as usize] = Some(slot.min(usize::from(u16::MAX)) as u16);
    }
    slots
}

/// The most 32-bit values alive at once.
fn pressure(body: &Body, blocks: &Blocks, names: &[VReg], live_in: &[BitSet], special: &[VReg]) -> u32 {
    let mut weight: Vec<u32> = body
        .banks
        .iter()
        .map(|bank| match bank {
            Bank::R32 => 1,
            Bank::R64 => 2,
            Bank::Pred => 0,
        })
        .collect();
    for &r in special {
        weight[r as usize] = 0;
    }
    let mut most = 0;
    let mut alive = vec![false; body.banks.len()];
    for b in 0..blocks.len() {
        let mut touched: Vec<VReg> = Vec::new();
        let mut now = 0;
        for name in blocks.live_out(b, live_in, names.len()).iter() {
            let r = names[name as usize];
            alive[r as usize] = true;
            now += weight[r as usize];
            touched.push(r);
        }
        most = most.max(now);
        // Backwards, as what is alive before an instruction follows from what is alive after it.
        for pc in blocks.range(b).rev() {
            let draft = &body.code[pc];
            // A result needs a register even if no instruction reads it.
            let mut unread = 0;
            writes(draft, |r| {
                if !alive[r as usize] {
                    unread += weight[r as usize];
                } else if draft.guard.is_none() {
                    alive[r as usize] = false;
                    now -= weight[r as usize];
                    unread += weight[r as usize];
                }
            });
            most = most.max(now + unread);
            reads(draft, |r| {
                if !alive[r as usize] {
                    alive[r as usize] = true;
                    now += weight[r as usize];
                    touched.push(r);
                }
            });
            most = most.max(now);
        }
        // Only the marks of this block are taken back: to clear all registers would cost blocks times
        // registers.
        for r in touched {
            alive[r as usize] = false;
        }
    }
    most
}
