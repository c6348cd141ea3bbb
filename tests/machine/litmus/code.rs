//! The words of a hart of a litmus program.
//!
//! ```text
//!   read the schedule of the round: when, pointers to pointers, lines to copy ─ wait ─ spin until the cycle
//!   ─ for each statement its instructions, each access through its pointer ─ store the results ─ next round
//! ```
//! | registers | |
//! |---|---|
//! | x5, x6 | when to spin, when to begin |
//! | x11, x13, x14 | results, schedule, rounds left |
//! | x15 | an address |
//! | x16 to x21 | pointers to pointers, by access |
//! | x22 to x27 | results, by register |
//! | x7 to x9, x12, x28 to x30 | intermediate values |

use super::notation::{Access, Kind, Program, Step};

/// Accesses, and results, that a hart may have.
pub(super) const ACCESSES: usize = 6;
/// Lines that a hart reads before a round.
pub(super) const WARM: usize = 4;
/// Bytes of the schedule of a round, and where pointers lie in it that are in the L1.
pub(super) const BLOCK_BYTES: u64 = 192;
pub(super) const POINTERS: u64 = 128;
/// Cycles that a hart spins before it begins, at least.
pub(super) const SPIN_CYCLES: u64 = 60;

fn i(imm: i64, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn addi(rd: u32, rs1: u32, imm: i64) -> u32 {
    i(imm, rs1, 0, rd, 0x13)
}

/// A load of 8 bytes, or of 4.
fn load(rd: u32, rs1: u32, imm: i64, halves: usize) -> u32 {
    i(imm, rs1, 1 + halves as u32, rd, 0x03)
}

fn ld(rd: u32, rs1: u32, imm: i64) -> u32 {
    load(rd, rs1, imm, 2)
}

fn store(rs2: u32, rs1: u32, imm: i64, halves: usize) -> u32 {
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | (1 + halves as u32) << 12 | (imm & 31) << 7 | 0x23
}

fn branch(funct3: u32, rs1: u32, rs2: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let (high, low) = ((o >> 12 & 1) << 31 | (o >> 5 & 0x3f) << 25, (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7);
    high | rs2 << 20 | rs1 << 15 | funct3 << 12 | low | 0x63
}

fn register(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33
}

/// `fence` with sets of writes (1) and reads (2); with a mode of 8 `fence.tso`.
fn fence(mode: u32, before: u8, after: u8) -> u32 {
    mode << 28 | u32::from(before) << 24 | u32::from(after) << 20 | 0x0f
}

const FENCE_I: u32 = 0x0000_100f;
const ECALL: u32 = 0x73;
const RDCYCLE_X7: u32 = 0xc000_2073 | 7 << 7;

/// The program of a hart.
pub(super) fn code(program: &Program, hart: usize) -> Vec<u32> {
    let accesses = program.accesses(hart).count();
    let results: Vec<usize> = (0..program.registers.len()).filter(|&at| program.registers[at].hart == hart).collect();
    assert!(accesses <= ACCESSES && results.len() <= ACCESSES, "{program:?}");
    let result = |register: usize| 22 + results.iter().position(|&of| of == register).expect("of its hart") as u32;
    let mut words = vec![ld(5, 13, 0), ld(6, 13, 8), ld(8, 13, POINTERS as i64)];
    words.extend((0..accesses).map(|nth| ld(16 + nth as u32, 13, 16 + 8 * nth as i64)));
    for line in 0..WARM as i64 {
        words.extend([ld(9, 13, 64 + 8 * line), ld(9, 9, 0)]);
    }
    // A turn waits at a fence for its divisions: few instructions until the round is near.
    words.extend([addi(12, 5, -2 * SPIN_CYCLES as i64), RDCYCLE_X7]);
    words.extend([register(1, 8, 8, 4, 8); 4]);
    words.extend([fence(0, 3, 3), branch(6, 7, 12, -24)]);
    words.extend([RDCYCLE_X7, register(1, 8, 8, 4, 8), fence(0, 3, 3), branch(6, 7, 5, -12)]);
    words.extend([RDCYCLE_X7, branch(6, 7, 6, -4)]);
    let mut nth = 0;
    for step in &program.harts[hart] {
        match *step {
            Step::Access(access) => {
                words.extend(instructions(&access, nth, &result));
                nth += 1;
            }
            Step::Fence(before, after) => words.push(fence(0, before, after)),
            Step::FenceTso => words.push(fence(8, 3, 3)),
            Step::FenceI => words.push(FENCE_I),
            Step::Branch(on) => words.push(branch(1, result(on), 0, 4)),
        }
    }
    words.extend((0..results.len()).map(|nth| store(22 + nth as u32, 11, 8 * nth as i64, 2)));
    words.extend([addi(11, 11, 64), addi(13, 13, BLOCK_BYTES as i64), addi(14, 14, -1)]);
    words.push(branch(1, 14, 0, -4 * words.len() as i64));
    words.extend([addi(17, 0, 93), ECALL]);
    words
}

/// The instructions of an access, the `nth` of its hart.
fn instructions(access: &Access, nth: u32, result: &impl Fn(usize) -> u32) -> Vec<u32> {
    let mut words = vec![ld(15, 16 + nth, 0)];
    if let Some(of) = access.address_of {
        words.extend([register(0, result(of), result(of), 4, 28), register(0, 28, 15, 0, 15)]);
    }
    if access.kind.stores() {
        words.push(addi(29, 0, access.value.into()));
        if access.halves == 2 {
            words.extend([i(32, 29, 1, 30, 0x13), register(0, 30, 29, 6, 29)]);
        }
        if let Some(of) = access.data_of {
            words.extend([register(0, result(of), result(of), 4, 28), register(0, 28, 29, 0, 29)]);
        }
    }
    let to = access.to.map_or(0, result);
    let atomic = |funct5: u32, operand: u32| {
        let bits = u32::from(access.acquire) << 26 | u32::from(access.release) << 25;
        funct5 << 27 | bits | operand << 20 | 15 << 15 | (1 + access.halves as u32) << 12 | to << 7 | 0x2f
    };
    words.push(match access.kind {
        Kind::Load => load(to, 15, 0, access.halves),
        Kind::Store => store(29, 15, 0, access.halves),
        Kind::Reserve => atomic(2, 0),
        Kind::Conditional => atomic(3, 29),
        Kind::Swap => atomic(1, 29),
        Kind::Add => atomic(0, 29),
    });
    words
}
