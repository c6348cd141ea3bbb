//! Branches, jumps and loops around other steps.

use super::Sequence;
use crate::encoding::{b_type, i_type, jal, opcode, u_type};

/// Over a step or not.
pub(super) fn branch(code: &mut Sequence, depth: u32) {
    let (a, b) = (code.x(), code.x());
    let funct3 = code.random.of(&[0, 1, 4, 5, 6, 7]);
    let at = code.halves.len();
    code.word(0);
    code.step(depth + 1);
    code.patch(at, b_type(funct3, a, b, code.since(at)));
}

/// Over a step, with a link.
pub(super) fn jump(code: &mut Sequence, depth: u32) {
    let rd = code.free();
    if code.random.below(2) == 0 {
        let at = code.halves.len();
        code.word(0);
        code.step(depth + 1);
        code.patch(at, jal(rd, code.since(at)));
    } else {
        let (register, odd) = (code.free_of(1, 31), code.random.below(2) as i32);
        let at = code.halves.len();
        code.word(u_type(opcode::AUIPC, register, 0));
        code.word(0);
        code.integer();
        // The lowest bit of the target is dropped.
        code.patch(at + 2, i_type(opcode::JALR, 0, rd, register, code.since(at) | odd));
    }
}

/// A compressed branch or jump over an operation.
pub(super) fn compressed_jump(code: &mut Sequence) {
    match code.random.below(4) {
        0 => {
            let at = code.halves.len();
            code.halves.push(0);
            code.integer();
            let to = code.since(at) as u32;
            assert!(to < 32);
            code.halves[at] = (0xa001 | (to >> 4 & 1) << 11 | (to >> 1 & 7) << 3) as u16;
        }
        1 | 2 => {
            let (register, not) = (code.random.below(8), code.random.below(2));
            let at = code.halves.len();
            code.halves.push(0);
            code.integer();
            let to = code.since(at) as u32;
            assert!(to < 32);
            code.halves[at] = (0xc001 | not << 13 | register << 7 | (to >> 3 & 3) << 10 | (to >> 1 & 3) << 3) as u16;
        }
        _ => {
            let register = code.free_of(6, 26);
            let link = code.random.of(&[0x8002, 0x9002]);
            let at = code.halves.len();
            code.word(u_type(opcode::AUIPC, register, 0));
            code.word(0);
            code.halves.push((link | register << 7) as u16);
            code.integer();
            code.patch(at + 2, i_type(opcode::IMMEDIATE, 0, register, register, code.since(at)));
        }
    }
}

/// A step two to four times.
pub(super) fn repeat(code: &mut Sequence, depth: u32) {
    let (counter, times) = (code.free_of(16, 16), 2 + code.random.below(3) as i32);
    code.word(i_type(opcode::IMMEDIATE, 0, counter, 0, times));
    code.kept.push(counter);
    let at = code.halves.len();
    code.step(depth + 1);
    code.kept.pop();
    code.word(i_type(opcode::IMMEDIATE, 0, counter, counter, -1));
    code.word(b_type(1, counter, 0, -code.since(at)));
}
