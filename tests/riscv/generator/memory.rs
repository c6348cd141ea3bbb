//! Loads, stores, atomics, and compressed words.

use super::{BASE, SCRATCH, Sequence};
use crate::encoding::{i_type, opcode, r_type, s_type};

/// A load or store of any width, at any offset.
pub(super) fn access(code: &mut Sequence) {
    let rd = code.free();
    let (opcode, width, funct3, register) = match code.random.below(4) {
        0 | 1 => {
            let funct3 = code.random.below(7);
            (opcode::LOAD, 1 << (funct3 & 3), funct3, rd)
        }
        2 => {
            let funct3 = code.random.below(4);
            (opcode::STORE, 1 << funct3, funct3, code.any())
        }
        _ => {
            let funct3 = 2 + code.random.below(2);
            (code.random.of(&[opcode::LOAD_FP, opcode::STORE_FP]), 1 << funct3, funct3, code.any())
        }
    };
    let place = code.random.below((SCRATCH + 1) as u32 - width) as i32;
    let (base, imm) = if code.random.below(2) == 0 {
        (BASE, place)
    } else {
        // Through another register, before or behind the place.
        let imm = code.random.below(2048) as i32 - 1024;
        (code.address(1, 31, place - imm), imm)
    };
    code.word(if opcode == opcode::STORE || opcode == opcode::STORE_FP {
        s_type(opcode, funct3, base, register, imm)
    } else {
        i_type(opcode, funct3, register, base, imm)
    });
}

/// An AMO, an `lr` with its `sc`, or an `sc` alone.
pub(super) fn atomic(code: &mut Sequence) {
    const OPERATIONS: [u32; 9] = [0, 1, 4, 8, 12, 16, 20, 24, 28];
    let place = 8 * code.random.below(SCRATCH as u32 / 8) as i32;
    let (value, width) = (code.x(), 2 + code.random.below(2));
    let order = code.random.below(4);
    let (rd, loaded) = (code.free(), code.free());
    let operation =
        |funct5: u32, rd: u32, at: u32, value: u32| r_type(opcode::ATOMIC, funct5 << 2 | order, width, rd, at, value);
    match code.random.below(8) {
        0..6 => {
            let funct5 = code.random.of(&OPERATIONS);
            let place = if width == 2 { place + code.random.of(&[0, 4]) } else { place };
            let at = code.address(1, 31, place);
            code.word(operation(funct5, rd, at, value));
        }
        6 => {
            let at = code.address(1, 31, place);
            code.kept.push(at);
            let loaded = if loaded == at { 0 } else { loaded };
            code.word(operation(2, loaded, at, 0));
            code.integer();
            code.word(operation(3, rd, at, value));
            code.kept.pop();
        }
        // Without a reservation, as every one above is used up.
        _ => {
            let at = code.address(1, 31, place);
            code.word(operation(3, rd, at, value));
        }
    }
}

/// Any compressed word that computes, hints among them.
pub(super) fn compressed(code: &mut Sequence) {
    loop {
        let half = code.random.next() as u16;
        let w = u32::from(half);
        let (full, second) = (w >> 7 & 31, w >> 2 & 31);
        let destination = match (w & 3, w >> 13) {
            (0, 0) if w >> 5 & 0xff != 0 => 8 + (w >> 2 & 7),
            (1, 0 | 2) | (2, 0) => full,
            (1, 1) if full != 0 => full,
            (1, 3) if w & 0x107c != 0 => full,
            (1, 4) if w >> 10 & 7 != 7 || w >> 6 & 1 == 0 => 8 + (w >> 7 & 7),
            (2, 4) if second != 0 => full,
            _ => continue,
        };
        if !code.kept.contains(&destination) {
            code.halves.push(half);
            return;
        }
    }
}

/// A compressed load or store, from a register or the stack pointer.
pub(super) fn compressed_access(code: &mut Sequence) {
    let funct3 = code.random.of(&[1, 2, 3, 5, 6, 7]);
    let (store, words) = (funct3 > 4, funct3 & 3 == 2);
    let width = if words { 4 } else { 8 };
    let stack = code.random.below(2) == 0;
    let imm = width * code.random.below(if stack { 64 } else { 32 });
    let place = code.random.below(SCRATCH as u32 + 1 - width) as i32;
    let base = if stack { code.address(2, 1, place - imm as i32) } else { code.address(8, 8, place - imm as i32) };
    let bits = |from: u32, count: u32, to: u32| (imm >> from & ((1 << count) - 1)) << to;
    let float = funct3 & 3 == 1;
    let half = match (stack, store) {
        (false, _) => {
            let register = if store || float { code.random.below(8) } else { code.free_of(8, 8) - 8 };
            let low = if words { bits(2, 1, 6) | bits(6, 1, 5) } else { bits(6, 2, 5) };
            bits(3, 3, 10) | (base - 8) << 7 | low | register << 2
        }
        (true, false) => {
            let register = if float { code.any() } else { code.free_of(1, 31) };
            let low = if words { bits(2, 3, 4) | bits(6, 2, 2) } else { bits(3, 2, 5) | bits(6, 3, 2) };
            bits(5, 1, 12) | register << 7 | low | 2
        }
        (true, true) => {
            let high = if words { bits(2, 4, 9) | bits(6, 2, 7) } else { bits(3, 3, 10) | bits(6, 3, 7) };
            high | code.any() << 2 | 2
        }
    };
    code.halves.push((funct3 << 13 | half) as u16);
}
