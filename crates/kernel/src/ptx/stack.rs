//! Frames of subroutines on a thread's stack in local memory, and which registers a caller saves there.
//!
//! ```text
//! local memory   | variables of the kernel | frame | frame | ...            | limit
//! frame          | return address | variables, parameters in memory | saved registers |
//! ```
//! A frame has one size a function. The stack grows upwards, by frames; a call whose frame would end past the
//! limit is a fault of the run. The stack has [`STACK_BYTES`](super::STACK_BYTES) unless the caller of the
//! front end says otherwise.
//!
//! A caller saves what the callee may overwrite: registers that the cycle of the call graph writes, which
//! both are on, and that are alive after the call. A call from outside of the cycle saves nothing, for it
//! has registers of its own. Saving is by ordinary stores to and loads from local memory, one a register, a
//! predicate as a byte.
//!
//! Liveness here is within one activation: a call falls through to what is after it, and a return reads the
//! results.
//!
//! Not modelled: frames of inlined functions (their variables are the kernel's or the subroutine's),
//! callee-saved registers.

use super::super::alu::{AluOp, Combine, Compare, CompareKind, IntCmp, IntOp};
use super::super::cfg::{BitSet, Blocks, Flow};
use super::super::ir::{Class, Elem, Mem, MemKind, Op, Space};
use super::allocate::{reads, writes};
use super::body_flow::within;
use super::draft::{Arg, Body, Draft, DraftOp, StackRegisters, VReg, plain_access};
use super::types::Bank;

/// Where the parts of a call stand.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    enter: usize,
    call: usize,
    leave: usize,
}

/// Lays out frames and replaces [`DraftOp::Enter`] and [`DraftOp::Leave`] by instructions. A body without
/// subroutines stays as it is. The stack has `stack_bytes` a thread.
pub(super) fn lay_out(body: &mut Body, stack_bytes: u32) {
    if body.subroutines.is_empty() {
        return;
    }
    let stack = body.stack();
    let saved = saved(body, stack);
    let align = body.subroutines.iter().map(|subroutine| subroutine.align).max().unwrap_or(1);
    let mut frames: Vec<u32> = body.subroutines.iter().map(|subroutine| subroutine.bytes.next_multiple_of(8)).collect();
    let saves: Vec<u32> = frames.clone();
    for (site, registers) in body.sites.iter().zip(&saved) {
        if let Some(caller) = site.caller {
            let bytes: u32 = registers.iter().map(|r| bytes_of(body.banks[*r as usize])).sum();
            let frame = &mut frames[caller as usize];
            *frame = (*frame).max(saves[caller as usize] + bytes);
        }
    }
    frames.iter_mut().for_each(|frame| *frame = frame.next_multiple_of(align));
    let base = body.local_bytes.next_multiple_of(align);
    // Each that does not call itself has its frame once at most: the stack has room for all of them beside.
    let once = body.subroutines.iter().zip(&frames).filter(|(subroutine, _)| !subroutine.recursive);
    let limit = base + stack_bytes + once.map(|(_, bytes)| bytes).sum::<u32>();
    // Parameters in memory are written before the call finds that its frame does not fit.
    let in_memory = body.blocks.iter().any(|block| block.owner.is_some() && block.local.is_some());
    let slack = if in_memory { frames.iter().copied().max().unwrap_or(0) } else { 0 };
    body.local_bytes = limit.saturating_add(slack);
    let code = std::mem::take(&mut body.code);
    let mut moved = Vec::with_capacity(code.len() + 1);
    for mut draft in code {
        moved.push(body.code.len() as u32);
        match draft.op {
            DraftOp::Enter(site) | DraftOp::Leave(site) => {
                let caller = body.sites[site as usize].caller;
                let frame = caller.map(|caller| (frames[caller as usize], saves[caller as usize]));
                let mut frame_of = FrameCode { body, stack, at: draft.at };
                match draft.op {
                    DraftOp::Enter(_) => frame_of.enter(base, frame, &saved[site as usize]),
                    _ => frame_of.leave(frame, &saved[site as usize]),
                }
            }
            DraftOp::Call(site) => {
                let frame = frames[body.sites[site as usize].callee as usize];
                // The last address at which the frame fits; none fits if it is larger than the stack.
                let last = i64::from(limit) - i64::from(frame);
                draft.src[1] = body.literal(Bank::R64, last.max(0) as u64);
                draft.imm = i32::from(last < i64::from(base));
                body.code.push(draft);
            }
            _ => body.code.push(draft),
        }
    }
    moved.push(body.code.len() as u32);
    for label in body.labels.iter_mut().flatten() {
        *label = moved[*label as usize];
    }
}

fn bytes_of(bank: Bank) -> u32 {
    match bank {
        Bank::R64 => 8,
        Bank::R32 => 4,
        Bank::Pred => 1,
    }
}

/// The registers that each call site saves, widest first.
fn saved(body: &Body, stack: StackRegisters) -> Vec<Vec<VReg>> {
    let code = &body.code;
    let mut parts = vec![Parts::default(); body.sites.len()];
    for (pc, draft) in code.iter().enumerate() {
        match draft.op {
            DraftOp::Enter(site) => parts[site as usize].enter = pc,
            DraftOp::Call(site) => parts[site as usize].call = pc,
            DraftOp::Leave(site) => parts[site as usize].leave = pc,
            _ => {}
        }
    }
    // The cycle that writes each register, and a number for each that one does.
    let mut cycle = vec![u32::MAX; body.banks.len()];
    let mut names: Vec<VReg> = Vec::new();
    let mut number = vec![u32::MAX; body.banks.len()];
    for subroutine in &body.subroutines {
        let place = |label: u32| body.labels[label as usize].expect("it is placed") as usize;
        for draft in &code[place(subroutine.start)..=place(subroutine.end) + 1] {
            writes(draft, |r| {
                if r != stack.pointer && r != stack.link && number[r as usize] == u32::MAX {
                    number[r as usize] = names.len() as u32;
                    cycle[r as usize] = subroutine.cycle;
                    names.push(r);
                }
            });
        }
    }
    // The callee's part of a call, in the caller's text: parameters written, results read.
    let (mut given, mut taken) = (vec![false; code.len()], vec![false; code.len()]);
    let mut results: Vec<Vec<u32>> = vec![Vec::new(); body.subroutines.len()];
    for (part, site) in parts.iter().zip(&body.sites) {
        given[part.enter..part.call].fill(true);
        taken[part.call..part.leave].fill(true);
        for draft in &code[part.call..part.leave] {
            reads(draft, |r| results[site.callee as usize].extend(Some(number[r as usize]).filter(|n| *n != u32::MAX)));
        }
    }
    // What the callee's part of a call reads or writes is not the caller's: it would keep alive, or end,
    // registers of another activation. The results are read at the return instead.
    let read = |pc: usize, f: &mut dyn FnMut(u32)| {
        if let DraftOp::Return(subroutine) = code[pc].op {
            results[subroutine as usize].iter().for_each(|&n| f(n));
        }
        if !taken[pc] {
            reads(&code[pc], |r| Some(number[r as usize]).filter(|n| *n != u32::MAX).into_iter().for_each(&mut *f));
        }
    };
    let kill = |pc: usize, f: &mut dyn FnMut(u32)| {
        if !given[pc] && code[pc].guard.is_none() {
            writes(&code[pc], |r| Some(number[r as usize]).filter(|n| *n != u32::MAX).into_iter().for_each(&mut *f));
        }
    };
    let flow: Vec<Flow> = within(body);
    let blocks = Blocks::new(&flow);
    let live_in = blocks.live_in(names.len(), read, kill);
    let alive_behind = |leave: usize| {
        let block = blocks.at(leave as u32) as usize;
        let mut live: BitSet = blocks.live_out(block, &live_in, names.len());
        for pc in (leave + 1..blocks.range(block).end).rev() {
            kill(pc, &mut |n| live.remove(n));
            read(pc, &mut |n| live.insert(n));
        }
        live
    };
    // Results pass through temporaries that are alive after `Leave`: restored with the others, they would
    // lose them.
    let of_site = |(part, site): (&Parts, &super::draft::CallSite)| {
        let both = body.subroutines[site.callee as usize].cycle;
        if site.caller.is_none_or(|caller| body.subroutines[caller as usize].cycle != both) {
            return Vec::new();
        }
        let mut registers: Vec<VReg> = alive_behind(part.leave).iter().map(|n| names[n as usize]).collect();
        registers.retain(|r| cycle[*r as usize] == both && !site.temporaries.contains(r));
        registers.sort_by_key(|r| (std::cmp::Reverse(bytes_of(body.banks[*r as usize])), *r));
        registers
    };
    parts.iter().zip(&body.sites).map(of_site).collect()
}

/// Writes the instructions of a caller at a call site.
struct FrameCode<'b> {
    body: &'b mut Body,
    stack: StackRegisters,
    at: usize,
}

impl FrameCode<'_> {
    fn emit(&mut self, op: Op, class: Class, dst: Arg, src: [Arg; 3], imm: i32) {
        let [a, b, c] = src;
        let (dst, src) = ([dst, Arg::None, Arg::None, Arg::None], [a, b, c, Arg::None]);
        self.body.code.push(Draft {
            op: DraftOp::Op(op),
            guard: None,
            dst,
            src,
            more: [Arg::None; 9],
            group: None,
            tensor: None,
            imm,
            class,
            at: self.at,
        });
    }

    fn memory(&mut self, kind: MemKind, bank: Bank, register: VReg, offset: u32) {
        let elem = match bank {
            Bank::R64 => Elem::U64,
            Bank::R32 => Elem::U32,
            Bank::Pred => Elem::U8,
        };
        let mem = Mem { wide: bank == Bank::R64, ..plain_access(kind, Space::Local, elem) };
        let pointer = Arg::Reg(self.stack.pointer);
        self.emit(Op::Mem(mem), Class::Mem, Arg::Reg(register), [pointer, Arg::None, Arg::None], offset as i32);
    }

    fn move_pointer(&mut self, op: IntOp, by: u32) {
        let (pointer, by) = (Arg::Reg(self.stack.pointer), self.body.literal(Bank::R64, u64::from(by)));
        self.emit(Op::Alu(AluOp::Int64(op)), Class::Int, pointer, [pointer, by, Arg::None], 0);
    }

    /// Saves registers from byte `saves` of the frame on, and moves the pointer to the callee's. The kernel
    /// has no frame.
    fn enter(&mut self, base: u32, frame: Option<(u32, u32)>, saved: &[VReg]) {
        let Some((bytes, mut at)) = frame else {
            let (pointer, base) = (Arg::Reg(self.stack.pointer), self.body.literal(Bank::R64, u64::from(base)));
            return self.emit(Op::Alu(AluOp::Mov64), Class::Logic, pointer, [base, Arg::None, Arg::None], 0);
        };
        for &register in saved {
            let bank = self.body.banks[register as usize];
            let mut data = register;
            if bank == Bank::Pred {
                data = self.body.register(Bank::R32);
                let [one, zero] = [1, 0].map(|bit| self.body.literal(Bank::R32, bit));
                let src = [one, zero, Arg::Reg(register)];
                self.emit(Op::Alu(AluOp::Selp32), Class::Logic, Arg::Reg(data), src, 0);
            }
            self.memory(MemKind::Store, bank, data, at);
            at += bytes_of(bank);
        }
        self.move_pointer(IntOp::Add, bytes);
    }

    fn leave(&mut self, frame: Option<(u32, u32)>, saved: &[VReg]) {
        let Some((bytes, mut at)) = frame else { return };
        self.move_pointer(IntOp::Sub, bytes);
        for &register in saved {
            let bank = self.body.banks[register as usize];
            if bank == Bank::Pred {
                let byte = self.body.register(Bank::R32);
                self.memory(MemKind::Load, bank, byte, at);
                let zero = self.body.literal(Bank::R32, 0);
                let held = Compare { kind: CompareKind::Int32(IntCmp::Ne), combine: Combine::None };
                let src = [Arg::Reg(byte), zero, Arg::None];
                self.emit(Op::Alu(AluOp::Setp(held)), Class::Compare, Arg::Reg(register), src, 0);
            } else {
                self.memory(MemKind::Load, bank, register, at);
            }
            at += bytes_of(bank);
        }
    }
}
