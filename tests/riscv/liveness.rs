//! Somebody always gets on: harts that want one word with `lr` and `sc`, compare-and-swap, atomics and locks all
//! end, within a bound that follows from the machine's latencies.
//!
//! The unprivileged ISA promises it of constrained loops ("Eventual Success of Store-Conditional Instructions").
//! Whether such a loop ends may depend on phase: on the length of an atomic, the time of a home slice, the number
//! of harts. So these are swept.

use durawarp::Experiment;
use durawarp::outcome::End;
use durawarp::riscv::elf;
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};

use crate::common::WINDOWS;
use crate::encoding::branch::{BEQ, BLT, BNE};
use crate::encoding::funct5::{ADD, LR, SC, SWAP};
use crate::encoding::{atomic, b_type, i_type, li, lw, opcode, r_type, sw, u_type};
use crate::generator;

/// What a hart does to the word, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// `lr.w; addi; sc.w; bnez`: the loop of the manual.
    Reservation,
    /// What gcc makes of a compare-and-swap: `lw`, then `lr.w; bne; sc.w; bnez` until the word was as loaded.
    CompareAndSwap,
    /// `amoadd.w`.
    Add,
    /// Even harts as [`Turn::Add`], odd ones as [`Turn::Reservation`].
    Mixed,
    /// A ticket, its turn, a plain addition, the next ticket's turn.
    Ticket,
    /// `amoswap.w.aq` until the lock is free, a plain addition, `amoswap.w.rl`.
    TestAndSet,
}

const TURNS: [Turn; 6] =
    [Turn::Reservation, Turn::CompareAndSwap, Turn::Add, Turn::Mixed, Turn::Ticket, Turn::TestAndSet];

// Registers.
const WORD: u32 = 10;
const OLD: u32 = 5;
const NEW: u32 = 6;
const FAILED: u32 = 7;
const LEFT: u32 = 18;
const HART: u32 = 8;
const ONE: u32 = 9;

// Offsets from the word, a line each.
const NEXT: i32 = 64;
const SERVING: i32 = 128;
const DONE: i32 = 192;

fn fence() -> u32 {
    0x0330_000f
}

/// One addition of 1 to the word.
fn turn(of: Turn) -> Vec<u32> {
    let next = i_type(opcode::IMMEDIATE, 0, NEW, OLD, 1);
    let at = |offset: i32| i_type(opcode::IMMEDIATE, 0, 11, WORD, offset);
    match of {
        Turn::Reservation => {
            vec![atomic(LR, 0, OLD, WORD, 0), next, atomic(SC, 0, FAILED, WORD, NEW), b_type(BNE, FAILED, 0, -12)]
        }
        Turn::CompareAndSwap => vec![
            lw(OLD, WORD, 0),
            next,
            atomic(LR, 2, 12, WORD, 0),
            b_type(BNE, 12, OLD, 12),
            atomic(SC, 1, FAILED, WORD, NEW),
            b_type(BNE, FAILED, 0, -12),
            b_type(BNE, 12, OLD, -24),
        ],
        Turn::Add => vec![atomic(ADD, 0, 0, WORD, ONE)],
        Turn::Mixed => {
            let mut words = vec![i_type(opcode::IMMEDIATE, 7, 12, HART, 1), b_type(BEQ, 12, 0, 24)];
            words.extend(turn(Turn::Reservation));
            words.extend([b_type(BEQ, 0, 0, 8), atomic(ADD, 0, 0, WORD, ONE)]);
            words
        }
        Turn::Ticket => vec![
            at(NEXT),
            atomic(ADD, 0, 12, 11, ONE),
            lw(13, WORD, SERVING),
            b_type(BNE, 13, 12, -4),
            fence(),
            lw(OLD, WORD, 0),
            next,
            sw(NEW, WORD, 0),
            fence(),
            i_type(opcode::IMMEDIATE, 0, 12, 12, 1),
            sw(12, WORD, SERVING),
        ],
        Turn::TestAndSet => vec![
            at(NEXT),
            atomic(SWAP, 2, 12, 11, ONE),
            b_type(BNE, 12, 0, -4),
            lw(OLD, WORD, 0),
            next,
            sw(NEW, WORD, 0),
            atomic(SWAP, 1, 0, 11, 0),
        ],
    }
}

/// So many harts add 1 to a word so many times each; the exit code is 0 if the sum is right.
fn program(of: Turn, harts: u32, times: u32) -> Vec<u32> {
    let data = (generator::DATA >> 12) as i32;
    // clone(VM | FS | FILES | SIGHAND | THREAD | SYSVSEM), until all are there.
    let mut words =
        vec![u_type(opcode::LUI, WORD, data), i_type(opcode::IMMEDIATE, 0, 20, WORD, 0), li(HART, 0), li(ONE, 1)];
    let all = harts as i32;
    words.extend([
        i_type(opcode::IMMEDIATE, 0, 21, HART, 1),
        li(19, all),
        b_type(BEQ, 21, 19, 4 * 12),
        u_type(opcode::LUI, 10, 0x51),
        i_type(opcode::IMMEDIATE, 0, 10, 10, -0x100),
        u_type(opcode::LUI, 11, data),
        li(12, 0),
        li(13, 0),
        li(14, 0),
        li(17, 220),
        opcode::SYSTEM,
        i_type(opcode::IMMEDIATE, 0, HART, 21, 0),
        // The parent goes on with the next, the child with its work.
        b_type(BNE, 10, 0, -4 * 12),
        b_type(BEQ, 0, 0, 8),
        // The last to be here is the first: hart 0.
        li(HART, 0),
    ]);
    words.extend([i_type(opcode::IMMEDIATE, 0, WORD, 20, 0), li(LEFT, times as i32)]);
    let body = turn(of);
    words.extend(&body);
    words.extend([
        i_type(opcode::IMMEDIATE, 0, LEFT, LEFT, -1),
        b_type(BNE, LEFT, 0, -4 * (body.len() as i32 + 1)),
        i_type(opcode::IMMEDIATE, 0, 11, WORD, DONE),
        atomic(ADD, 3, 0, 11, ONE),
        li(19, all),
        lw(OLD, WORD, DONE),
        b_type(BLT, OLD, 19, -4),
        fence(),
        lw(10, WORD, 0),
        li(OLD, (harts * times) as i32),
        r_type(opcode::REGISTER, 0x20, 0, 10, 10, OLD),
        li(17, 94),
        opcode::SYSTEM,
    ]);
    words
}

/// A machine, and what is run on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) of: Turn,
    pub(crate) harts: u32,
    pub(crate) harts_of_core: u32,
    pub(crate) amo_cycles: u64,
    pub(crate) service_cycles: u64,
    pub(crate) weak: bool,
    /// Turns of each hart.
    pub(crate) times: u32,
    /// Between the beginnings of two harts.
    pub(crate) syscall_ns: u64,
}

impl Point {
    pub(crate) fn experiment(&self) -> CpuExperiment {
        // Any program's experiment, with this one in its place.
        let recipe = Experiment::of("hash").machine("lightwsp-cpu").set("params.THREADS", 1u64).reference(false);
        let recipe = recipe
            .set("core.count", u64::from(self.harts.div_ceil(self.harts_of_core)))
            .set("core.harts", u64::from(self.harts_of_core))
            .set("core.iq_entries", 96u64)
            .set("core.consistency", if self.weak { "rvwmo" } else { "tso" })
            .set("core.amo_cycles", self.amo_cycles)
            .set("llc.service_cycles", self.service_cycles)
            .set("llc.slice_kb", 64u64)
            .set("dram_cache.mb", 0u64)
            .set("os.syscall_ns", self.syscall_ns);
        let recipe = recipe.set("core.batch_cycles", [14, 1, 7][self.amo_cycles as usize % 3]);
        match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
            AnyExperiment::Cpu(mut experiment) => {
                let file = generator::executable_of(&program(self.of, self.harts, self.times));
                experiment.program.image = elf::load("liveness", &file, WINDOWS.memory_bytes).unwrap();
                experiment.program.checks.clear();
                experiment.max_cycles = Some(2 * self.bound());
                *experiment
            }
            AnyExperiment::Gpu(_) => panic!("a program of CPUs"),
        }
    }

    /// A hand-over of a line goes from a core to the home, to another core and back, and to the first. A turn
    /// hands over at most three lines, each for an atomic or two. In between each other hart may take one of them:
    /// to look whether its turn has come, or for a compare-and-swap of an old value.
    fn bound(&self) -> u64 {
        let (turns, harts) = (u64::from(self.times * self.harts), u64::from(self.harts));
        let hand_over = 4 * 14 + 2 * self.service_cycles;
        let alone = matches!(self.of, Turn::Reservation | Turn::Add | Turn::Mixed);
        let spinning = if alone { 1 } else { 1 + harts / 2 };
        turns * 2 * spinning * (hand_over + 2 * self.amo_cycles + 20) + 2_000 * harts + 10_000
    }

    /// Cycles of the run, which ends with the right sum.
    fn run(&self) -> u64 {
        let outcome = run_cpu(&self.experiment(), &Conduct::default()).outcome;
        assert_eq!(outcome.end, End::Finished, "{self:?}");
        assert_eq!(outcome.process.unwrap().exit_code, Some(0), "{self:?}: a wrong sum");
        let cycles = outcome.time.core_cycles;
        assert!(cycles <= self.bound(), "{self:?}: {cycles} cycles, at most {} are expected", self.bound());
        cycles
    }
}

#[test]
fn harts_that_want_one_word_end_within_a_bound() {
    // A point of each kind and number of harts, the other values drawn.
    let mut random = generator::random(37);
    for of in TURNS {
        for harts in [2, 3, 4, 6, 8, 16] {
            for harts_of_core in [1, 2] {
                let point = Point {
                    of,
                    harts,
                    harts_of_core,
                    amo_cycles: 1 + u64::from(random.below(40)),
                    service_cycles: 1 + u64::from(random.below(40)),
                    weak: random.below(2) == 0,
                    times: 12,
                    syscall_ns: random.of(&[1, 20, 300]),
                };
                point.run();
            }
        }
    }
}

#[test]
fn six_harts_end_the_manuals_loop_whatever_an_atomic_takes() {
    // The machine as it is built in, where such a loop once ran for ever.
    for amo_cycles in 1..=40 {
        for weak in [false, true] {
            let of = if weak { Turn::CompareAndSwap } else { Turn::Reservation };
            Point { of, harts: 6, harts_of_core: 1, amo_cycles, service_cycles: 12, weak, times: 30, syscall_ns: 300 }
                .run();
        }
    }
}

/// Steps over the 40 x 40 of both that meet every length and every time:
/// `cargo test --test riscv -- --ignored every_length_of_an_atomic`.
#[test]
#[ignore = "a minute"]
fn every_length_of_an_atomic_and_time_of_a_home_ends_within_a_bound() {
    let mut worst = (0.0, String::new());
    for (harts, stride) in [(2, 3), (4, 7), (8, 13), (16, 37), (32, 133), (64, 397)] {
        for of in TURNS {
            for at in (of as u64..1600).step_by(stride) {
                let (amo_cycles, service_cycles) = (1 + at % 40, 1 + at / 40);
                let weak = (at + amo_cycles) % 2 == 0;
                let point =
                    Point { of, harts, harts_of_core: 1, amo_cycles, service_cycles, weak, times: 6, syscall_ns: 300 };
                let used = point.run() as f64 / point.bound() as f64;
                if used > worst.0 {
                    worst = (used, format!("{point:?}"));
                }
            }
        }
    }
    println!("at most {:.2} of the bound, at {}", worst.0, worst.1);
}
