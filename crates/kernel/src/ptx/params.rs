//! Parameter blocks of calls: registers where every access agrees, local memory otherwise.
//!
//! Compilers pass arguments through `.param` blocks of the caller (`st.param`, `call`, `ld.param`). Once
//! inlined, a block whose bytes are always accessed in the same pieces is just a few registers; each access
//! becomes one move. A block accessed in overlapping pieces, or whose address is taken, lives in the thread's
//! local memory: that of a recursive function in its frame.

use std::collections::BTreeMap;

use super::super::alu::{AluOp, Cvt, Num, Round};
use super::super::ir::{Class, Elem, Mem, MemKind, Op, Space};
use super::draft::{Arg, Body, Draft, DraftOp, Place, VReg, plain_access};
use super::types::Bank;

/// One access to a block.
#[derive(Clone, Copy)]
struct Access {
    store: bool,
    offset: u32,
    elem: Elem,
    vec: u8,
    /// The registers are 64-bit.
    wide: bool,
}

fn access(body: &Body, draft: &Draft) -> Option<(u32, Access)> {
    let DraftOp::Param { store, block, offset, elem, vec } = draft.op else {
        return None;
    };
    let wide = match draft.dst[0] {
        Arg::Reg(register) => body.banks[register as usize] == Bank::R64,
        _ => elem.bytes() == 8,
    };
    Some((block, Access { store, offset, elem, vec, wide }))
}

/// The pieces of a block, by offset, if every access respects them.
fn pieces(accesses: &[Access]) -> Option<BTreeMap<u32, u32>> {
    let mut pieces = BTreeMap::new();
    // Stores define the pieces; what is only loaded reads as zero.
    for a in accesses.iter().filter(|a| a.store).chain(accesses.iter().filter(|a| !a.store)) {
        let size = a.elem.bytes();
        for k in 0..u32::from(a.vec) {
            let piece = *pieces.entry(a.offset + k * size).or_insert(size);
            let whole = piece == size;
            let part = !a.store && size < piece && a.vec == 1;
            let vector_fits = a.vec == 1 || (size >= 4 && a.wide == (size == 8));
            let store_fits = !a.store || a.wide == (size == 8);
            if !(whole || part) || !vector_fits || !store_fits {
                return None;
            }
        }
    }
    let apart = pieces.iter().zip(pieces.keys().skip(1)).all(|((at, size), next)| at + size <= *next);
    apart.then_some(pieces)
}

/// Replaces every parameter access by a move or a local memory access.
pub(super) fn resolve(body: &mut Body) {
    // All accesses are looked at before one is rewritten: a single one that does not fit sends its block to
    // memory.
    let mut all: Vec<Vec<Access>> = vec![Vec::new(); body.blocks.len()];
    for draft in &body.code {
        if let Some((block, access)) = access(body, draft) {
            all[block as usize].push(access);
        }
    }
    let mut registers: Vec<Option<BTreeMap<u32, (u32, VReg)>>> = Vec::new();
    for (block, accesses) in all.iter().enumerate() {
        if accesses.is_empty() {
            registers.push(None);
            continue;
        }
        let kept = if body.blocks[block].local.is_some() { None } else { pieces(accesses) };
        match kept {
            Some(pieces) => {
                let mut named = BTreeMap::new();
                for (offset, size) in pieces {
                    let bank = if size == 8 { Bank::R64 } else { Bank::R32 };
                    named.insert(offset, (size, body.register(bank)));
                }
                registers.push(Some(named));
            }
            None => {
                body.block_in_memory(block as u32);
                registers.push(None);
            }
        }
    }
    for pc in 0..body.code.len() {
        let Some((block, a)) = access(body, &body.code[pc]) else {
            continue;
        };
        match &registers[block as usize] {
            Some(pieces) => in_registers(&mut body.code[pc], a, pieces),
            None => in_memory(body, pc, block, a),
        }
    }
}

fn in_registers(draft: &mut Draft, a: Access, pieces: &BTreeMap<u32, (u32, VReg)>) {
    let size = a.elem.bytes();
    let data = draft.dst;
    let mut held = [Arg::None; 4];
    for (k, held) in held.iter_mut().enumerate().take(usize::from(a.vec)) {
        *held = Arg::Reg(pieces[&(a.offset + k as u32 * size)].1);
    }
    let piece = pieces[&a.offset].0;
    if a.store {
        (draft.dst, draft.src) = (held, data);
    } else {
        (draft.dst, draft.src) = (data, held);
    }
    let op = if a.vec > 1 {
        AluOp::MovVec(a.wide)
    } else if a.wide && piece == 8 {
        AluOp::Mov64
    } else if a.store || (piece == 4 && size == 4 && !a.wide) {
        AluOp::Mov32
    } else {
        // A load of another width than its piece, or of a narrow type, is cut or extended as its type says.
        let num = number(a.elem);
        AluOp::Cvt(Cvt {
            from: num,
            to: num,
            round: Round::Nearest,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            finite: false,
            wide_from: piece == 8,
            wide_to: a.wide,
        })
    };
    draft.op = DraftOp::Op(Op::Alu(op));
}

/// The integer type that moves an element's bits.
fn number(elem: Elem) -> Num {
    match elem {
        Elem::U8 => Num::U8,
        Elem::S8 => Num::S8,
        Elem::U16 => Num::U16,
        Elem::S16 => Num::S16,
        Elem::U32 | Elem::F32 => Num::U32,
        Elem::S32 => Num::S32,
        Elem::U64 | Elem::S64 | Elem::F64 => Num::U64,
    }
}

fn in_memory(body: &mut Body, pc: usize, block: u32, a: Access) {
    let (address, imm) = match body.block_in_memory(block) {
        Place::Fixed(base) => (body.literal(Bank::R64, u64::from(base + a.offset)), 0),
        Place::Frame(base) => (Arg::Reg(body.stack().pointer), (base + a.offset) as i32),
    };
    let kind = if a.store { MemKind::Store } else { MemKind::Load };
    let mem = Mem { vec: a.vec, wide: a.wide, ..plain_access(kind, Space::Local, a.elem) };
    let draft = &mut body.code[pc];
    draft.op = DraftOp::Op(Op::Mem(mem));
    (draft.src[0], draft.imm) = (address, imm);
    draft.class = Class::Mem;
}
