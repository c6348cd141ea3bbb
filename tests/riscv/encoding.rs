//! Instructions from their fields to words, as the manual's formats have them. Written apart from the decoder,
//! whose inverse they are.

/// Opcodes, bits 0 to 6 of a word.
pub(crate) mod opcode {
    pub(crate) const LOAD: u32 = 0x03;
    pub(crate) const LOAD_FP: u32 = 0x07;
    pub(crate) const FENCE: u32 = 0x0f;
    pub(crate) const IMMEDIATE: u32 = 0x13;
    pub(crate) const AUIPC: u32 = 0x17;
    pub(crate) const IMMEDIATE_WORD: u32 = 0x1b;
    pub(crate) const STORE: u32 = 0x23;
    pub(crate) const STORE_FP: u32 = 0x27;
    pub(crate) const ATOMIC: u32 = 0x2f;
    pub(crate) const REGISTER: u32 = 0x33;
    pub(crate) const LUI: u32 = 0x37;
    pub(crate) const REGISTER_WORD: u32 = 0x3b;
    pub(crate) const FUSED: u32 = 0x43;
    pub(crate) const FLOAT: u32 = 0x53;
    pub(crate) const BRANCH: u32 = 0x63;
    pub(crate) const JALR: u32 = 0x67;
    pub(crate) const JAL: u32 = 0x6f;
    pub(crate) const SYSTEM: u32 = 0x73;
}

/// Three registers.
pub(crate) fn r_type(opcode: u32, funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// Two registers and 12 bits.
pub(crate) fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    ((imm as u32) & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// A store: `rs2` to `imm(rs1)`.
pub(crate) fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 0x1f) << 7 | opcode
}

/// A branch to `imm` bytes from itself.
pub(crate) fn b_type(funct3: u32, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    let high = (imm >> 12 & 1) << 31 | (imm >> 5 & 0x3f) << 25;
    high | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm >> 1 & 15) << 8 | (imm >> 11 & 1) << 7 | opcode::BRANCH
}

/// A register and the upper 20 bits of 32.
pub(crate) fn u_type(opcode: u32, rd: u32, upper: i32) -> u32 {
    (upper as u32) << 12 | rd << 7 | opcode
}

/// A jump to `imm` bytes from itself.
pub(crate) fn jal(rd: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    let high = (imm >> 20 & 1) << 31 | (imm >> 1 & 0x3ff) << 21 | (imm >> 11 & 1) << 20 | (imm >> 12 & 0xff) << 12;
    high | rd << 7 | opcode::JAL
}

/// `funct3` of branches.
pub(crate) mod branch {
    pub(crate) const BEQ: u32 = 0;
    pub(crate) const BNE: u32 = 1;
    pub(crate) const BLT: u32 = 4;
}

/// `funct5` of atomics.
pub(crate) mod funct5 {
    pub(crate) const ADD: u32 = 0;
    pub(crate) const SWAP: u32 = 1;
    pub(crate) const LR: u32 = 2;
    pub(crate) const SC: u32 = 3;
}

/// `addi rd, rs1, imm`.
pub(crate) fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(opcode::IMMEDIATE, 0, rd, rs1, imm)
}

/// `li rd, imm`, of 12 bits.
pub(crate) fn li(rd: u32, imm: i32) -> u32 {
    addi(rd, 0, imm)
}

/// `lw rd, imm(rs1)`.
pub(crate) fn lw(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(opcode::LOAD, 2, rd, rs1, imm)
}

/// `sw rs2, imm(rs1)`.
pub(crate) fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s_type(opcode::STORE, 2, rs1, rs2, imm)
}

/// `funct5.w rd, rs2, (rs1)` with acquire (2) and release (1).
pub(crate) fn atomic(funct5: u32, order: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    r_type(opcode::ATOMIC, funct5 << 2 | order, 2, rd, rs1, rs2)
}

/// Runs of a word's bits, each moved: where it begins in the word, where in the result, how long it is.
fn spread(word: u32, runs: &[(u32, u32, u32)]) -> u32 {
    runs.iter().map(|&(from, to, count)| (word >> from & ((1 << count) - 1)) << to).sum()
}

/// The word that a compressed one stands for, by the manual's tables of RVC for RV64; `None` where they have
/// a reserved or illegal one.
pub(crate) fn expansion(half: u16) -> Option<u32> {
    use opcode::*;
    let w = u32::from(half);
    let (full, second) = (w >> 7 & 31, w >> 2 & 31);
    let (first, other) = (8 + (w >> 7 & 7), 8 + (w >> 2 & 7));
    let extended = |value: u32, bits: u32| (value << (32 - bits)) as i32 >> (32 - bits);
    let short = spread(w, &[(12, 5, 1), (2, 0, 5)]);
    let imm = extended(short, 6);
    // Offsets of words and of double words from a register, and from the stack pointer to load and to store.
    let word = spread(w, &[(10, 3, 3), (6, 2, 1), (5, 6, 1)]) as i32;
    let double = spread(w, &[(10, 3, 3), (5, 6, 2)]) as i32;
    let word_up = spread(w, &[(12, 5, 1), (4, 2, 3), (2, 6, 2)]) as i32;
    let double_up = spread(w, &[(12, 5, 1), (5, 3, 2), (2, 6, 3)]) as i32;
    let word_down = spread(w, &[(9, 2, 4), (7, 6, 2)]) as i32;
    let double_down = spread(w, &[(10, 3, 3), (7, 6, 3)]) as i32;
    Some(match (w & 3, w >> 13) {
        (0, 0) => match spread(w, &[(11, 4, 2), (7, 6, 4), (6, 2, 1), (5, 3, 1)]) {
            0 => return None,
            imm => i_type(IMMEDIATE, 0, other, 2, imm as i32),
        },
        (0, 1) => i_type(LOAD_FP, 3, other, first, double),
        (0, 2) => i_type(LOAD, 2, other, first, word),
        (0, 3) => i_type(LOAD, 3, other, first, double),
        (0, 5) => s_type(STORE_FP, 3, first, other, double),
        (0, 6) => s_type(STORE, 2, first, other, word),
        (0, 7) => s_type(STORE, 3, first, other, double),
        (1, 0) => i_type(IMMEDIATE, 0, full, full, imm),
        (1, 1) if full != 0 => i_type(IMMEDIATE_WORD, 0, full, full, imm),
        (1, 2) => i_type(IMMEDIATE, 0, full, 0, imm),
        (1, 3) if short == 0 => return None,
        (1, 3) if full == 2 => {
            let imm = spread(w, &[(12, 9, 1), (6, 4, 1), (5, 6, 1), (3, 7, 2), (2, 5, 1)]);
            i_type(IMMEDIATE, 0, 2, 2, extended(imm, 10))
        }
        (1, 3) => u_type(LUI, full, imm),
        (1, 4) => match (w >> 10 & 3, w >> 12 & 1, w >> 5 & 3) {
            (0, ..) => i_type(IMMEDIATE, 5, first, first, short as i32),
            (1, ..) => i_type(IMMEDIATE, 5, first, first, short as i32 | 0x400),
            (2, ..) => i_type(IMMEDIATE, 7, first, first, imm),
            (_, 0, 0) => r_type(REGISTER, 0x20, 0, first, first, other),
            (_, 0, 1) => r_type(REGISTER, 0, 4, first, first, other),
            (_, 0, 2) => r_type(REGISTER, 0, 6, first, first, other),
            (_, 0, _) => r_type(REGISTER, 0, 7, first, first, other),
            (_, _, 0) => r_type(REGISTER_WORD, 0x20, 0, first, first, other),
            (_, _, 1) => r_type(REGISTER_WORD, 0, 0, first, first, other),
            _ => return None,
        },
        (1, 5) => {
            let low = [(12, 11, 1), (11, 4, 1), (9, 8, 2), (8, 10, 1), (7, 6, 1), (6, 7, 1), (3, 1, 3), (2, 5, 1)];
            jal(0, extended(spread(w, &low), 12))
        }
        (1, funct3 @ (6 | 7)) => {
            let imm = spread(w, &[(12, 8, 1), (10, 3, 2), (5, 6, 2), (3, 1, 2), (2, 5, 1)]);
            b_type(funct3 & 1, first, 0, extended(imm, 9))
        }
        (2, 0) => i_type(IMMEDIATE, 1, full, full, short as i32),
        (2, 1) => i_type(LOAD_FP, 3, full, 2, double_up),
        (2, 2) if full != 0 => i_type(LOAD, 2, full, 2, word_up),
        (2, 3) if full != 0 => i_type(LOAD, 3, full, 2, double_up),
        (2, 4) => match (w >> 12 & 1, full, second) {
            (0, 0, 0) => return None,
            (link, full, 0) if full != 0 => i_type(JALR, 0, link, full, 0),
            (0, ..) => r_type(REGISTER, 0, 0, full, 0, second),
            (_, 0, 0) => 0x0010_0073,
            _ => r_type(REGISTER, 0, 0, full, full, second),
        },
        (2, 5) => s_type(STORE_FP, 3, 2, second, double_down),
        (2, 6) => s_type(STORE, 2, 2, second, word_down),
        (2, 7) => s_type(STORE, 3, 2, second, double_down),
        _ => return None,
    })
}
