//! Random sequences of instructions, the same for the same seed, and executables of many of them.
//!
//! A sequence has a context in memory, to which x5 points: [`SCRATCH`] bytes that it loads and stores, [`CONSTANTS`] that
//! it loads, its x registers and its f registers. It begins with the registers that are there, ends with a store of them
//! there, and falls into the next sequence. The program then writes all contexts to its output and exits.
//!
//! What differs between implementations that are right is not generated: accrued exceptions (always 0 here), clocks,
//! arithmetic in other rounding modes than to nearest (refused here), `sc` of another width than its `lr`.

use crate::encoding::{b_type, i_type, jal, opcode, r_type, s_type, u_type};

/// Bytes of the context that are loaded and stored.
pub(crate) const SCRATCH: usize = 256;
/// Values of the context that are only loaded.
const CONSTANTS: usize = 32;
/// 64-bit words of a context: scratch memory, constants, x registers, f registers.
pub(crate) const CONTEXT: usize = SCRATCH / 8 + CONSTANTS + 64;
/// Steps of a sequence: an instruction each, or a few that belong together.
const STEPS: usize = 64;

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x20_0000;
/// The register that holds the address of the context.
const BASE: u32 = 5;
const X_AT: i32 = (SCRATCH + 8 * CONSTANTS) as i32;
const F_AT: i32 = X_AT + 256;

const INTEGERS: [u64; 32] = [
    0,
    1,
    2,
    3,
    31,
    32,
    63,
    64,
    0x7f,
    0x80,
    0x7ff,
    0x7fff,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    i64::MIN as u64,
    i64::MIN as u64 + 1,
    0xffff_ffff_8000_0000,
    0xffff_ffff_7fff_ffff,
    u64::MAX,
    u64::MAX - 1,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
    (1 << 24) + 1,
    (1 << 53) + 1,
    (1 << 25) + 6,
    (1 << 54) + 4,
    (1 << 54) + 12,
    0x00ff_00ff_00ff_00ff,
];

const DOUBLES: [f64; 36] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.5,
    1e-310,
    -5e-324,
    1e308,
    -1.7e308,
    f64::INFINITY,
    f64::NEG_INFINITY,
    2147483647.0,
    2147483648.0,
    -2147483648.5,
    -2147483649.0,
    4294967295.5,
    4294967296.0,
    9.3e18,
    1.9e19,
    -9.3e18,
    3.141592653589793,
    1.0000000000000002,
    1.1754943508222875e-38,
    1e-45,
    7e-46,
    3.5e38,
    3.4028235e38,
    3.4028235677973366e38,
    16777217.0,
    1.00000005960464477539,
    -1.00000017881393432617,
];

const SINGLES: [f32; 23] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1e-45,
    -1e-40,
    3.4e38,
    -3.4e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    2147483648.0,
    -2147483648.0,
    4294967040.0,
    4294967296.0,
    9.2e18,
    1.9e19,
    3.14159274,
    1.00000012,
];

const NANS: [u64; 8] = [
    0x7ff8_0000_0000_0000,
    0xfff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7ff8_0000_0000_1234,
    0xffff_ffff_7fc0_0000,
    0xffff_ffff_ffc0_0000,
    0xffff_ffff_7f80_0001,
    0xffff_ffff_7fc0_1234,
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.next() >> 32) as u32 % end
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u32) as usize]
    }

    /// A value for a register of either kind.
    fn value(&mut self) -> u64 {
        match self.below(16) {
            0..6 => self.of(&INTEGERS),
            6..9 => self.of(&DOUBLES).to_bits(),
            9..11 => u64::from(self.of(&SINGLES).to_bits()) | 0xffff_ffff << 32,
            11 => self.of(&NANS),
            12 => self.next() >> self.below(64),
            // A double and a single near 1, that round.
            13 => self.next() >> 12 | u64::from(0x3f0 + self.below(32)) << 52 | (self.next() & 1) << 63,
            14 => u64::from(self.below(1 << 23) | (0x70 + self.below(32)) << 23) | 0xffff_ffff << 32,
            _ => self.next(),
        }
    }
}

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
            54..62 => self.access(),
            62..68 => self.atomic(),
            68..78 => self.compressed(),
            78..82 => self.compressed_access(),
            82..84 => self.other(),
            84..92 => self.branch(depth),
            92..95 => self.jump(depth),
            95..97 => self.compressed_jump(),
            _ => self.repeat(depth),
        }
    }

    fn integer(&mut self) {
        const REGISTER: [(u32, u32); 18] = [
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
        ];
        const WORD: [(u32, u32); 10] =
            [(0, 0), (0, 1), (0, 5), (0x20, 0), (0x20, 5), (1, 0), (1, 4), (1, 5), (1, 6), (1, 7)];
        let (rs1, rd) = (self.x(), self.free());
        let imm = self.immediate();
        let word = match self.random.below(16) {
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
                let (funct3, upper) = self.random.of(&[(1, 0), (5, 0), (5, 0x400)]);
                i_type(opcode::IMMEDIATE, funct3, rd, rs1, imm & 63 | upper)
            }
            14 => {
                let (funct3, upper) = self.random.of(&[(1, 0), (5, 0), (5, 0x400)]);
                i_type(opcode::IMMEDIATE_WORD, funct3, rd, rs1, imm & 31 | upper)
            }
            _ => {
                let upper = self.random.next() as i32;
                u_type(self.random.of(&[opcode::LUI, opcode::AUIPC]), rd, upper)
            }
        };
        self.word(word);
    }

    fn float(&mut self) {
        let (a, b, format) = (self.f(), self.f(), self.random.below(2));
        // To nearest, by itself or by the register.
        let mode = self.random.of(&[0, 7]);
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
        if dynamic {
            self.mode(0);
        }
    }

    /// Sets the rounding mode, with what it was to a register.
    fn mode(&mut self, mode: u32) {
        let rd = self.free();
        self.word(i_type(opcode::SYSTEM, 5, rd, mode, 2));
    }

    fn access(&mut self) {
        let rd = self.free();
        let (opcode, width, funct3, register) = match self.random.below(4) {
            0 | 1 => {
                let funct3 = self.random.below(7);
                (opcode::LOAD, 1 << (funct3 & 3), funct3, rd)
            }
            2 => {
                let funct3 = self.random.below(4);
                (opcode::STORE, 1 << funct3, funct3, self.any())
            }
            _ => {
                let funct3 = 2 + self.random.below(2);
                (self.random.of(&[opcode::LOAD_FP, opcode::STORE_FP]), 1 << funct3, funct3, self.any())
            }
        };
        let place = self.random.below((SCRATCH + 1) as u32 - width) as i32;
        let (base, imm) = if self.random.below(2) == 0 {
            (BASE, place)
        } else {
            // Through another register, before or behind the place.
            let imm = self.random.below(2048) as i32 - 1024;
            (self.address(1, 31, place - imm), imm)
        };
        self.word(if opcode == opcode::STORE || opcode == opcode::STORE_FP {
            s_type(opcode, funct3, base, register, imm)
        } else {
            i_type(opcode, funct3, register, base, imm)
        });
    }

    /// One of these registers, with an address relative to the context.
    fn address(&mut self, from: u32, count: u32, offset: i32) -> u32 {
        let register = self.free_of(from, count);
        self.word(i_type(opcode::IMMEDIATE, 0, register, BASE, offset));
        register
    }

    fn atomic(&mut self) {
        const OPERATIONS: [u32; 9] = [0, 1, 4, 8, 12, 16, 20, 24, 28];
        let place = 8 * self.random.below(SCRATCH as u32 / 8) as i32;
        let (value, width) = (self.x(), 2 + self.random.below(2));
        let order = self.random.below(4);
        let (rd, loaded) = (self.free(), self.free());
        let operation = |funct5: u32, rd: u32, at: u32, value: u32| {
            r_type(opcode::ATOMIC, funct5 << 2 | order, width, rd, at, value)
        };
        match self.random.below(8) {
            0..6 => {
                let funct5 = self.random.of(&OPERATIONS);
                let place = if width == 2 { place + self.random.of(&[0, 4]) } else { place };
                let at = self.address(1, 31, place);
                self.word(operation(funct5, rd, at, value));
            }
            6 => {
                let at = self.address(1, 31, place);
                self.kept.push(at);
                let loaded = if loaded == at { 0 } else { loaded };
                self.word(operation(2, loaded, at, 0));
                self.integer();
                self.word(operation(3, rd, at, value));
                self.kept.pop();
            }
            // Without a reservation, as every one above is used up.
            _ => {
                let at = self.address(1, 31, place);
                self.word(operation(3, rd, at, value));
            }
        }
    }

    /// Any compressed word that computes, hints among them.
    fn compressed(&mut self) {
        loop {
            let half = self.random.next() as u16;
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
            if !self.kept.contains(&destination) {
                self.halves.push(half);
                return;
            }
        }
    }

    fn compressed_access(&mut self) {
        let funct3 = self.random.of(&[1, 2, 3, 5, 6, 7]);
        let (store, words) = (funct3 > 4, funct3 & 3 == 2);
        let width = if words { 4 } else { 8 };
        let stack = self.random.below(2) == 0;
        let imm = width * self.random.below(if stack { 64 } else { 32 });
        let place = self.random.below(SCRATCH as u32 + 1 - width) as i32;
        let base = if stack { self.address(2, 1, place - imm as i32) } else { self.address(8, 8, place - imm as i32) };
        let bits = |from: u32, count: u32, to: u32| (imm >> from & ((1 << count) - 1)) << to;
        let float = funct3 & 3 == 1;
        let half = match (stack, store) {
            (false, _) => {
                let register = if store || float { self.random.below(8) } else { self.free_of(8, 8) - 8 };
                let low = if words { bits(2, 1, 6) | bits(6, 1, 5) } else { bits(6, 2, 5) };
                bits(3, 3, 10) | (base - 8) << 7 | low | register << 2
            }
            (true, false) => {
                let register = if float { self.any() } else { self.free_of(1, 31) };
                let low = if words { bits(2, 3, 4) | bits(6, 2, 2) } else { bits(3, 2, 5) | bits(6, 3, 2) };
                bits(5, 1, 12) | register << 7 | low | 2
            }
            (true, true) => {
                let high = if words { bits(2, 4, 9) | bits(6, 2, 7) } else { bits(3, 3, 10) | bits(6, 3, 7) };
                high | self.any() << 2 | 2
            }
        };
        self.halves.push((funct3 << 13 | half) as u16);
    }

    fn other(&mut self) {
        let rd = self.free();
        // fence, fence.tso, fence.i, pause, the rounding mode
        let read_mode = i_type(opcode::SYSTEM, 2, rd, 0, 2);
        let fence = opcode::FENCE;
        let word =
            self.random.of(&[0x0ff0_0000 | fence, 0x8330_0000 | fence, 0x1000 | fence, 0x0100_0000 | fence, read_mode]);
        self.word(word);
    }

    /// Over a step or not.
    fn branch(&mut self, depth: u32) {
        let (a, b) = (self.x(), self.x());
        let funct3 = self.random.of(&[0, 1, 4, 5, 6, 7]);
        let at = self.halves.len();
        self.word(0);
        self.step(depth + 1);
        self.patch(at, b_type(funct3, a, b, self.since(at)));
    }

    /// Over a step, with a link.
    fn jump(&mut self, depth: u32) {
        let rd = self.free();
        if self.random.below(2) == 0 {
            let at = self.halves.len();
            self.word(0);
            self.step(depth + 1);
            self.patch(at, jal(rd, self.since(at)));
        } else {
            let (register, odd) = (self.free_of(1, 31), self.random.below(2) as i32);
            let at = self.halves.len();
            self.word(u_type(opcode::AUIPC, register, 0));
            self.word(0);
            self.integer();
            // The lowest bit of the target is dropped.
            self.patch(at + 2, i_type(opcode::JALR, 0, rd, register, self.since(at) | odd));
        }
    }

    fn compressed_jump(&mut self) {
        match self.random.below(4) {
            0 => {
                let at = self.halves.len();
                self.halves.push(0);
                self.integer();
                let to = self.since(at) as u32;
                assert!(to < 32);
                self.halves[at] = (0xa001 | (to >> 4 & 1) << 11 | (to >> 1 & 7) << 3) as u16;
            }
            1 | 2 => {
                let (register, not) = (self.random.below(8), self.random.below(2));
                let at = self.halves.len();
                self.halves.push(0);
                self.integer();
                let to = self.since(at) as u32;
                assert!(to < 32);
                self.halves[at] =
                    (0xc001 | not << 13 | register << 7 | (to >> 3 & 3) << 10 | (to >> 1 & 3) << 3) as u16;
            }
            _ => {
                let register = self.free_of(6, 26);
                let link = self.random.of(&[0x8002, 0x9002]);
                let at = self.halves.len();
                self.word(u_type(opcode::AUIPC, register, 0));
                self.word(0);
                self.halves.push((link | register << 7) as u16);
                self.integer();
                self.patch(at + 2, i_type(opcode::IMMEDIATE, 0, register, register, self.since(at)));
            }
        }
    }

    /// A step two to four times.
    fn repeat(&mut self, depth: u32) {
        let (counter, times) = (self.free_of(16, 16), 2 + self.random.below(3) as i32);
        self.word(i_type(opcode::IMMEDIATE, 0, counter, 0, times));
        self.kept.push(counter);
        let at = self.halves.len();
        self.step(depth + 1);
        self.kept.pop();
        self.word(i_type(opcode::IMMEDIATE, 0, counter, counter, -1));
        self.word(b_type(1, counter, 0, -self.since(at)));
    }

    fn whole(&mut self) {
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
        self.word(i_type(opcode::IMMEDIATE, 0, BASE, BASE, 8 * CONTEXT as i32));
    }
}

/// The executable of these sequences, by number.
pub(crate) fn program(sequences: std::ops::Range<u64>) -> Vec<u8> {
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
    executable(&code, &data)
}

/// An ELF file of code at [`CODE`], where it begins, and data at [`DATA`].
fn executable(code: &[u8], data: &[u8]) -> Vec<u8> {
    const EXECUTABLE: u16 = 2;
    const RISCV: u16 = 243;
    // Compressed instructions, floats in registers.
    const FLAGS: u32 = 5;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([EXECUTABLE, RISCV].iter().flat_map(|value| value.to_le_bytes()));
    file.extend(1u32.to_le_bytes());
    file.extend([CODE, 64, 0].iter().flat_map(|value: &u64| value.to_le_bytes()));
    file.extend(FLAGS.to_le_bytes());
    file.extend([64u16, 56, 2, 64, 0, 0].iter().flat_map(|value| value.to_le_bytes()));
    let data_at = (4096 + code.len() as u64).next_multiple_of(4096);
    for (rights, at, address, bytes) in [(5u32, 4096, CODE, code.len() as u64), (6, data_at, DATA, data.len() as u64)] {
        file.extend([1, rights].iter().flat_map(|value| value.to_le_bytes()));
        file.extend([at, address, address, bytes, bytes, 4096].iter().flat_map(|value| value.to_le_bytes()));
    }
    file.resize(4096, 0);
    file.extend(code);
    file.resize(data_at as usize, 0);
    file.extend(data);
    file
}
