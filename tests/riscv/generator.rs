//! Random sequences of instructions, the same for the same seed, and executables of many of them.
//!
//! A sequence has a context in memory, to which x5 points: [`SCRATCH`] bytes that it loads and stores,
//! [`CONSTANTS`] that it only loads, its x registers and its f registers. It begins with the registers that
//! are there, ends with a store of them there, and falls into the next sequence. The program then writes all
//! contexts to its output and exits.
//!
//! A sequence begins in the first rounding mode without an accrued exception, and stores `fcsr` at its end in
//! the place of x0.
//!
//! Not generated are clocks, Zicond (qemu-riscv64 7.2 does not have it), and an `sc` of another width than
//! its `lr`.

mod control;
mod executable;
mod memory;
mod values;

use std::ops::Range;

pub(crate) use values::Random;

use crate::encoding::{i_type, opcode, r_type, s_type, u_type};

/// Bytes of the context that are loaded and stored.
pub(crate) const SCRATCH: usize = 256;
/// Values of the context that are only loaded.
const CONSTANTS: usize = 32;
/// 64-bit words of a context: scratch memory, constants, x registers, f registers.
pub(crate) const CONTEXT: usize = SCRATCH / 8 + CONSTANTS + 64;
/// Steps of a sequence: an instruction each, or a few that belong together.
const STEPS: usize = 64;

const CODE: u64 = 0x1_0000;
/// Where the contexts begin.
pub(crate) const DATA: u64 = 0x20_0000;
/// The register that holds the address of the context.
const BASE: u32 = 5;
const X_AT: i32 = (SCRATCH + 8 * CONSTANTS) as i32;
const F_AT: i32 = X_AT + 256;

/// Code under way.
struct Sequence {
    random: Random,
    halves: Vec<u16>,
    /// Integer registers that no step may write.
    kept: Vec<u32>,
}

impl Sequence {
    fn word(&mut self, word: u32) {
        self.halves.extend([word as u16, (word >> 16) as u16]);
    }

    fn patch(&mut self, at: usize, word: u32) {
        (self.halves[at], self.halves[at + 1]) = (word as u16, (word >> 16) as u16);
    }

    /// Bytes from a place to the end.
    fn since(&self, at: usize) -> i32 {
        2 * (self.halves.len() - at) as i32
    }

    /// Any register.
    fn any(&mut self) -> u32 {
        self.random.below(32)
    }

    /// An integer register that may be written.
    fn free(&mut self) -> u32 {
        self.free_of(0, 32)
    }

    fn free_of(&mut self, from: u32, count: u32) -> u32 {
        loop {
            let register = from + self.random.below(count);
            if !self.kept.contains(&register) {
                return register;
            }
        }
    }

    /// A source, often with a constant of the context, so that values stay interesting.
    fn x(&mut self) -> u32 {
        if self.random.below(2) == 0 {
            return self.any();
        }
        let (register, at) = (self.free(), self.constant());
        self.word(i_type(opcode::LOAD, 3, register, BASE, at));
        register
    }

    fn f(&mut self) -> u32 {
        let register = self.any();
        if self.random.below(2) == 0 {
            let at = self.constant();
            self.word(i_type(opcode::LOAD_FP, 3, register, BASE, at));
        }
        register
    }

    fn constant(&mut self) -> i32 {
        SCRATCH as i32 + 8 * self.random.below(CONSTANTS as u32) as i32
    }

    fn immediate(&mut self) -> i32 {
        match self.random.below(4) {
            0 => self.random.of(&[0, 1, -1, -2048, 2047]),
            _ => self.random.below(4096) as i32 - 2048,
        }
    }

    fn step(&mut self, depth: u32) {
        match self.random.below(if depth < 2 { 100 } else { 84 }) {
            0..26 => self.integer(),
            26..46 => self.float(),
            46..54 => self.conversion(),
            54..62 => memory::access(self),
            62..68 => memory::atomic(self),
            68..78 => memory::compressed(self),
            78..82 => memory::compressed_access(self),
            82..84 => self.other(),
            84..92 => control::branch(self, depth),
            92..95 => control::jump(self, depth),
            95..97 => control::compressed_jump(self),
            _ => control::repeat(self, depth),
        }
    }

    fn integer(&mut self) {
        const REGISTER: [(u32, u32); 34] = [
            (0, 0),
            (0, 1),
            (0, 2),
            (0, 3),
            (0, 4),
            (0, 5),
            (0, 6),
            (0, 7),
            (0x20, 0),
            (0x20, 5),
            (1, 0),
            (1, 1),
            (1, 2),
            (1, 3),
            (1, 4),
            (1, 5),
            (1, 6),
            (1, 7),
            (5, 4),
            (5, 5),
            (5, 6),
            (5, 7),
            (0x10, 2),
            (0x10, 4),
            (0x10, 6),
            (0x14, 1),
            (0x20, 4),
            (0x20, 6),
            (0x20, 7),
            (0x24, 1),
            (0x24, 5),
            (0x30, 1),
            (0x30, 5),
            (0x34, 1),
        ];
        #[rustfmt::skip]
        const WORD: [(u32, u32); 16] = [
            (0, 0), (0, 1), (0, 5), (0x20, 0), (0x20, 5), (1, 0), (1, 4), (1, 5), (1, 6), (1, 7),
            (4, 0), (0x10, 2), (0x10, 4), (0x10, 6), (0x30, 1), (0x30, 5),
        ];
        let (rs1, rd) = (self.x(), self.free());
        let imm = self.immediate();
        let word = match self.random.below(18) {
            0..6 => {
                let ((funct7, funct3), rs2) = (self.random.of(&REGISTER), self.x());
                r_type(opcode::REGISTER, funct7, funct3, rd, rs1, rs2)
            }
            6..10 => {
                let ((funct7, funct3), rs2) = (self.random.of(&WORD), self.x());
                r_type(opcode::REGISTER_WORD, funct7, funct3, rd, rs1, rs2)
            }
            10 | 11 => i_type(opcode::IMMEDIATE, self.random.of(&[0, 2, 3, 4, 6, 7]), rd, rs1, imm),
            12 => i_type(opcode::IMMEDIATE_WORD, 0, rd, rs1, imm),
            13 => {
                // Shifts; a bit set, cleared, inverted, extracted; a rotation.
                let of = [(1, 0), (5, 0), (5, 0x400), (1, 0x280), (1, 0x480), (1, 0x680), (5, 0x480), (5, 0x600)];
                let (funct3, upper) = self.random.of(&of);
                i_type(opcode::IMMEDIATE, funct3, rd, rs1, imm & 63 | upper)
            }
            14 => {
                let (funct3, upper) = self.random.of(&[(1, 0), (5, 0), (5, 0x400), (5, 0x600)]);
                i_type(opcode::IMMEDIATE_WORD, funct3, rd, rs1, imm & 31 | upper)
            }
            // slli.uw; of one register.
            15 => match self.random.below(6) {
                0 => i_type(opcode::IMMEDIATE_WORD, 1, rd, rs1, imm & 63 | 0x080),
                1 => i_type(opcode::IMMEDIATE_WORD, 1, rd, rs1, self.random.of(&[0x600, 0x602])),
                // ctzw of what is 0 above: qemu-riscv64 7.2 looks at all 64 bits.
                2 => {
                    self.word(r_type(opcode::REGISTER_WORD, 4, 0, rd, rs1, 0));
                    i_type(opcode::IMMEDIATE_WORD, 1, rd, rd, 0x601)
                }
                3 => r_type(opcode::REGISTER_WORD, 4, 4, rd, rs1, 0),
                4 => i_type(opcode::IMMEDIATE, 5, rd, rs1, self.random.of(&[0x287, 0x6b8])),
                _ => i_type(opcode::IMMEDIATE, 1, rd, rs1, self.random.of(&[0x600, 0x601, 0x602, 0x604, 0x605])),
            },
            _ => {
                let upper = self.random.next() as i32;
                u_type(self.random.of(&[opcode::LUI, opcode::AUIPC]), rd, upper)
            }
        };
        self.word(word);
    }

    fn float(&mut self) {
        let (a, b, format) = (self.f(), self.f(), self.random.below(2));
        // By itself, or by the register.
        let mode = self.random.of(&[0, 1, 2, 3, 4, 7, 7, 7]);
        let (fd, rd) = (self.any(), self.free());
        let operation = |funct5: u32, funct3: u32, rd: u32, a: u32, b: u32| {
            r_type(opcode::FLOAT, funct5 << 2 | format, funct3, rd, a, b)
        };
        let word = match self.random.below(16) {
            0..4 => operation(self.random.below(4), mode, fd, a, b),
            4 => operation(0x0b, mode, fd, a, 0),
            5..7 => operation(4, self.random.below(3), fd, a, b),
            7..9 => operation(5, self.random.below(2), fd, a, b),
            9..11 => operation(0x14, self.random.below(3), rd, a, b),
            // Its bits, its class.
            11 => operation(0x1c, self.random.below(2), rd, a, 0),
            12 => {
                let from = self.x();
                operation(0x1e, 0, fd, from, 0)
            }
            _ => {
                let (c, which) = (self.f(), self.random.below(4));
                r_type(opcode::FUSED + 4 * which, c << 2 | format, mode, fd, a, b)
            }
        };
        self.word(word);
    }

    fn conversion(&mut self) {
        let mode = self.random.below(5);
        let dynamic = self.random.below(3) == 0;
        let (format, kind) = (self.random.below(2), self.random.below(4));
        let (funct5, rd, from, kind) = match self.random.below(5) {
            0 | 1 => (0x18, self.free(), self.f(), kind),
            2 | 3 => (0x1a, self.any(), self.x(), kind),
            _ => (8, self.any(), self.f(), 1 - format),
        };
        if dynamic {
            self.mode(mode);
        }
        let funct3 = if dynamic { 7 } else { mode };
        self.word(r_type(opcode::FLOAT, funct5 << 2 | format, funct3, rd, from, kind));
    }

    /// Sets the rounding mode, with what it was to a register.
    fn mode(&mut self, mode: u32) {
        let rd = self.free();
        self.word(i_type(opcode::SYSTEM, 5, rd, mode, 2));
    }

    /// One of these registers, with an address relative to the context.
    fn address(&mut self, from: u32, count: u32, offset: i32) -> u32 {
        let register = self.free_of(from, count);
        self.word(i_type(opcode::IMMEDIATE, 0, register, BASE, offset));
        register
    }

    fn other(&mut self) {
        let rd = self.free();
        // fence, fence.tso, fence.i, pause; exceptions and rounding mode, read, exchanged, set and cleared
        let flags = self.random.below(32);
        let access = |funct3: u32, value: u32, number: i32| i_type(opcode::SYSTEM, funct3, rd, value, number);
        let fence = opcode::FENCE;
        let word = self.random.of(&[
            0x0ff0_0000 | fence,
            0x8330_0000 | fence,
            0x1000 | fence,
            0x0100_0000 | fence,
            access(2, 0, 2),
            access(2, 0, 1),
            access(2, 0, 3),
            access(5, flags, 1),
            access(6, flags, 1),
            access(7, flags, 1),
            access(5, flags, 3),
        ]);
        self.word(word);
    }

    fn whole(&mut self) {
        self.word(i_type(opcode::SYSTEM, 1, 0, 0, 3));
        for register in 0..32 {
            self.word(i_type(opcode::LOAD_FP, 3, register, BASE, F_AT + 8 * register as i32));
            if register != BASE {
                self.word(i_type(opcode::LOAD, 3, register, BASE, X_AT + 8 * register as i32));
            }
        }
        for _ in 0..STEPS {
            self.step(0);
        }
        for register in 0..32 {
            self.word(s_type(opcode::STORE, 3, BASE, register, X_AT + 8 * register as i32));
            self.word(s_type(opcode::STORE_FP, 3, BASE, register, F_AT + 8 * register as i32));
        }
        self.word(i_type(opcode::SYSTEM, 2, 6, 0, 3));
        self.word(s_type(opcode::STORE, 3, BASE, 6, X_AT));
        self.word(i_type(opcode::IMMEDIATE, 0, BASE, BASE, 8 * CONTEXT as i32));
    }
}

/// The executable of these sequences, by number.
pub(crate) fn program(sequences: Range<u64>) -> Vec<u8> {
    let mut code = Sequence { random: Random(0), halves: Vec::new(), kept: vec![BASE] };
    let mut data: Vec<u64> = Vec::new();
    let upper = |address: u64| (address >> 12) as i32;
    code.word(u_type(opcode::LUI, BASE, upper(DATA)));
    for number in sequences {
        code.random = Random(number);
        data.extend((0..CONTEXT).map(|_| code.random.value()));
        code.whole();
    }
    let bytes = 8 * data.len() as u64;
    assert_eq!(bytes % 4096, 0);
    // write(1, DATA, bytes); exit(0)
    code.word(i_type(opcode::IMMEDIATE, 0, 10, 0, 1));
    code.word(u_type(opcode::LUI, 11, upper(DATA)));
    code.word(u_type(opcode::LUI, 12, upper(bytes)));
    code.word(i_type(opcode::IMMEDIATE, 0, 17, 0, 64));
    code.word(opcode::SYSTEM);
    code.word(i_type(opcode::IMMEDIATE, 0, 10, 0, 0));
    code.word(i_type(opcode::IMMEDIATE, 0, 17, 0, 93));
    code.word(opcode::SYSTEM);
    let code: Vec<u8> = code.halves.iter().flat_map(|half| half.to_le_bytes()).collect();
    let data: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(CODE + (code.len() as u64) < DATA);
    executable::file((CODE, &code), (DATA, &data))
}

/// An executable of these words, and of a page of zeros at [`DATA`].
pub(crate) fn executable_of(words: &[u32]) -> Vec<u8> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(CODE + (code.len() as u64) < DATA);
    executable::file((CODE, &code), (DATA, &[0; 4096]))
}

/// Random numbers from a seed.
pub(crate) fn random(seed: u64) -> Random {
    Random(seed)
}
