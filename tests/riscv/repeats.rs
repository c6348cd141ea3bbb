//! Programs whose harts only repeat themselves: that is found and told; programs that get on, however long they
//! take, are left alone.

use durawarp::Experiment;
use durawarp::outcome::{End, Outcome, Repeats};
use durawarp::riscv::elf::Function;
use durawarp::riscv::process::Process;
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};

use crate::common::{DATA, program};
use crate::encoding::branch::{BEQ, BLT, BNE};
use crate::encoding::funct5::{LR, SC, SWAP};
use crate::encoding::{addi, atomic, b_type, i_type, jal, li, lw, opcode, r_type, sw, u_type};

/// Registers by what programmers call them.
const ZERO: u32 = 0;
const T0: u32 = 5;
const T1: u32 = 6;
const T2: u32 = 7;
const S0: u32 = 8;
const A0: u32 = 10;
const A1: u32 = 11;
const A2: u32 = 12;
const A7: u32 = 17;

const ECALL: u32 = 0x73;

/// Looks of these tests are this many cycles apart: longer than any message of the machine is under way.
const LOOK: u64 = 2_000;

fn lui(rd: u32, upper: u64) -> u32 {
    u_type(opcode::LUI, rd, (upper >> 12) as i32)
}

/// Counts t2 down from `upper`, which takes about as many cycles.
fn delay(upper: u64) -> [u32; 3] {
    [lui(T2, upper), addi(T2, T2, -1), b_type(BNE, T2, ZERO, -4)]
}

/// `exit_group(0)`.
const EXIT: [u32; 3] = [0x0000_0513, 0x05e0_0893, ECALL];

/// Makes a thread that executes `child`, and goes on with `parent`; t1 has the address of the data in both.
fn two_threads(parent: &[u32], child: &[u32]) -> Vec<u32> {
    let skip = 4 * (child.len() as i32 + 1);
    let clone = [lui(T1, DATA), lui(A0, 0x1_0000), i_type(opcode::IMMEDIATE_WORD, 0, A0, A0, 0x100)];
    let call = [lui(A1, DATA + 0x1000), li(A7, 220), ECALL, b_type(BNE, A0, ZERO, skip)];
    [&clone, &call[..], child, parent].concat()
}

fn experiment(process: &Process) -> CpuExperiment {
    let path = format!("{}/workloads/hash", env!("CARGO_MANIFEST_DIR"));
    let recipe = Experiment::of(path).machine("lightwsp-cpu").profile("ci").set("params.THREADS", 2u64);
    let Ok(AnyExperiment::Cpu(mut experiment)) = recipe.build_any() else { panic!("a program of CPUs") };
    experiment.program.image = (*process.image).clone();
    let word = |name: &str, offset: u64| Function { address: DATA + offset, bytes: 4, name: name.to_owned() };
    experiment.program.image.objects = vec![word("flag", 0), word("lock", 64), word("join", 128)];
    experiment.program.start = process.start.clone();
    experiment.program.checks.clear();
    experiment.max_cycles = Some(4_000_000);
    *experiment
}

fn outcome(words: &[u32], threads: usize) -> Outcome {
    let conduct = Conduct { repeat_cycles: LOOK, threads, oversubscribe: true, ..Conduct::default() };
    run_cpu(&experiment(&program(words)), &conduct).outcome
}

/// What it repeats, which is the same at any number of threads.
fn repeats(words: &[u32]) -> Repeats {
    let one = outcome(words, 1);
    let End::Repeats(repeats) = &one.end else { panic!("{:?} after {} cycles", one.end, one.time.core_cycles) };
    for threads in [2, 3, 8] {
        let other = outcome(words, threads);
        assert_eq!((&one.end, &one.digest, one.time), (&other.end, &other.digest, other.time), "{threads} threads");
    }
    assert!(one.verification.is_none(), "a run that does not end is not checked");
    (**repeats).clone()
}

/// It ends by itself with this exit code.
fn ends(words: &[u32]) -> Outcome {
    let outcome = outcome(words, 1);
    assert_eq!(outcome.end, End::Finished, "after {} cycles", outcome.time.core_cycles);
    assert!(outcome.time.core_cycles > 40 * LOOK, "{} cycles show nothing", outcome.time.core_cycles);
    outcome
}

#[test]
fn a_hart_that_waits_for_a_word_that_nobody_writes_is_told_with_the_word() {
    let words = [lui(T1, DATA), lw(T0, T1, 0), b_type(BEQ, T0, ZERO, -4)];
    let repeats = repeats(&words);
    let line = "hart 0 (thread 100) repeats main+0x4 to main+0x8: lw at main+0x4 reads 0 from `flag` (0x20000)";
    assert_eq!(repeats.lines(), [line]);
    assert!(repeats.since <= 2 * LOOK, "{}", repeats.since);
    let [hart] = &repeats.repeating[..] else { panic!("{repeats:?}") };
    assert_eq!((hart.pcs, hart.address, hart.value), ([0x1_0004, 0x1_0008], Some(DATA), Some(0)));
}

#[test]
fn a_hart_that_counts_its_turns_repeats_itself_all_the_same() {
    let words = [lui(T1, DATA), addi(T2, T2, 1), lw(T0, T1, 0), b_type(BEQ, T0, ZERO, -8)];
    let line = "hart 0 (thread 100) repeats main+0x4 to main+0xc: lw at main+0x8 reads 0 from `flag` (0x20000)";
    assert_eq!(repeats(&words).lines(), [line]);
}

#[test]
fn a_hart_that_jumps_to_itself_reads_nothing() {
    assert_eq!(repeats(&[jal(ZERO, 0)]).lines(), ["hart 0 (thread 100) repeats main: it reads nothing"]);
}

#[test]
fn a_lock_that_its_holder_never_releases_is_told_with_who_waits_in_the_system() {
    // The parent takes the lock before it makes the thread, and waits for the end of that.
    let take = [lui(T1, DATA), addi(T1, T1, 64), li(T2, 1), atomic(SWAP, 0, T0, T1, T2)];
    let parent = [addi(A0, T1, 128), li(A1, 0), li(A2, 0), li(13, 0), li(A7, 98), ECALL];
    let child = [addi(S0, T1, 64), li(T2, 1), atomic(SWAP, 0, T0, S0, T2), b_type(BNE, T0, ZERO, -4)];
    let lines = repeats(&[&take, &two_threads(&parent, &child)[..]].concat()).lines();
    let [child, parent] = &lines[..] else { panic!("{lines:?}") };
    assert!(child.starts_with("hart 1 (thread 101) repeats main+0x"), "{child}");
    assert!(child.contains("amoswap.w at main+0x34 reads 1 from `lock` (0x20040)"), "{child}");
    assert_eq!(parent, "hart 0 (thread 100) waits for a wake of futex `join` (0x20080)");
}

#[test]
fn two_threads_that_wait_for_tickets_that_never_come_are_both_told() {
    let wait = |ticket: i32| [li(T2, ticket), lw(T0, T1, 0), b_type(BNE, T0, T2, -4)];
    let lines = repeats(&two_threads(&wait(1), &wait(2))).lines();
    let [first, second] = &lines[..] else { panic!("{lines:?}") };
    assert!(first.starts_with("hart 0 (thread 100) repeats main+0x2c to main+0x30"), "{first}");
    assert!(second.starts_with("hart 1 (thread 101) repeats main+0x20 to main+0x24"), "{second}");
    assert!(lines.iter().all(|line| line.ends_with("reads 0 from `flag` (0x20000)")), "{lines:?}");
}

#[test]
fn a_store_conditional_that_fails_for_ever_is_a_livelock_after_a_longer_time() {
    // The line leaves between `lr` and `sc`: cbo.flush (t1).
    let flush = 2 << 20 | T1 << 15 | 2 << 12 | 0x0f;
    let turn =
        [atomic(LR, 0, T0, T1, ZERO), flush, addi(T0, T0, 1), atomic(SC, 0, T0, T1, T0), b_type(BNE, T0, ZERO, -16)];
    let words = [&[lui(T1, DATA)], &turn[..]].concat();
    let repeats = repeats(&words);
    let [hart] = &repeats.repeating[..] else { panic!("{repeats:?}") };
    assert!(hart.failed_conditionals > 10, "{hart:?}");
    let line = repeats.lines().remove(0);
    assert!(line.contains("lr.w at main+0x4 reads 0 from `flag`"), "{line}");
    let fails = format!("its sc.w at main+0x10 fails each time, {} times so far", hart.failed_conditionals);
    assert!(line.ends_with(&fails), "{line}");
    assert!(outcome(&words, 1).time.core_cycles > 16 * LOOK);
}

#[test]
fn of_several_words_that_a_hart_reads_a_named_one_is_told() {
    // A variable on the stack, as compilers keep them that do not optimise, then the flag.
    let words = [lui(T1, DATA), lw(T2, 2, 0), lw(T0, T1, 0), r_type(opcode::REGISTER, 0, 0, T0, T0, T2)];
    let words = [&words[..], &[lw(T2, 2, 0), r_type(opcode::REGISTER, 32, 0, T0, T0, T2), b_type(BEQ, T0, ZERO, -20)]];
    let line = repeats(&words.concat()).lines().remove(0);
    assert!(line.contains("lw at main+0x8 reads 0 from `flag`"), "{line}");
    assert!(line.ends_with("; its branches follow from 2 more reads"), "{line}");
}

#[test]
fn a_long_computation_in_registers_is_left_alone() {
    ends(&[&delay(200_000)[..], &EXIT].concat());
}

#[test]
fn a_long_computation_on_a_table_is_left_alone() {
    // A polynomial of four coefficients, over and over: every load finds what it found before.
    let terms = (0..4).flat_map(|at| {
        [lw(T0, T1, 4 * at), r_type(opcode::REGISTER, 0, 0, S0, S0, T0), r_type(opcode::REGISTER, 1, 0, S0, S0, T2)]
    });
    let turn: Vec<u32> = terms.collect();
    let length = 4 * turn.len() as i32;
    let begin = [lui(T1, DATA), lui(T2, 20_480)];
    let words = [&begin, &turn[..], &[addi(T2, T2, -1), b_type(BNE, T2, ZERO, -length - 4)], &EXIT].concat();
    ends(&words);
}

#[test]
fn who_sleeps_may_still_set_the_flag() {
    // The parent sleeps for 100 us (nanosleep at 128(t1)), then sets the flag that the child waits for.
    let nap = [li(T0, 0), sw(T0, T1, 128), lui(T0, 98_304), sw(T0, T1, 136), addi(A0, T1, 128), li(A1, 0), li(A7, 101)];
    let set = [ECALL, li(T0, 1), sw(T0, T1, 0), lw(T0, T1, 64), b_type(BEQ, T0, ZERO, -4)];
    let child = [lw(T0, T1, 0), b_type(BEQ, T0, ZERO, -4), sw(T0, T1, 64), jal(ZERO, 0)];
    let words = two_threads(&[&nap, &set[..], &EXIT].concat(), &child);
    assert_eq!(ends(&words).total("os", "timeouts"), 1);
}

#[test]
fn a_wait_for_a_slow_partner_is_left_alone() {
    let parent =
        [&delay(200_000)[..], &[li(T0, 1), sw(T0, T1, 0), lw(T0, T1, 64), b_type(BEQ, T0, ZERO, -4)], &EXIT].concat();
    let child = [lw(T0, T1, 0), b_type(BEQ, T0, ZERO, -4), sw(T0, T1, 64), jal(ZERO, 0)];
    ends(&two_threads(&parent, &child));
}

#[test]
fn two_threads_that_hand_a_word_to_and_fro_are_left_alone() {
    // 4,096 times: the one waits for 1 and writes 0, the other waits for 0 and writes 1.
    let turn = |awaited: i32, written: i32| {
        let wait = [li(T2, awaited), lw(T0, T1, 0), b_type(BNE, T0, T2, -4), li(T0, written), sw(T0, T1, 0)];
        [&[lui(S0, 4_096)], &wait[..], &[addi(S0, S0, -1), b_type(BNE, S0, ZERO, -24)]].concat()
    };
    ends(&two_threads(&[turn(0, 1), EXIT.to_vec()].concat(), &[turn(1, 0), vec![jal(ZERO, 0)]].concat()));
}

#[test]
fn who_reads_the_clock_until_a_time_has_come_is_left_alone() {
    // rdtime t0 until 100 us have passed; csrrs rd, time, zero.
    let rdtime = i_type(opcode::SYSTEM, 2, T0, ZERO, 0xc01 - 0x1000);
    ends(&[&[lui(T2, 98_304), rdtime, b_type(BLT, T0, T2, -4)], &EXIT[..]].concat());
}

#[test]
fn a_run_that_is_not_asked_about_goes_on_to_its_limit() {
    let mut experiment = experiment(&program(&[jal(ZERO, 0)]));
    experiment.max_cycles = Some(100_000);
    let outcome = run_cpu(&experiment, &Conduct { repeat_cycles: 0, ..Conduct::default() }).outcome;
    assert!(matches!(outcome.end, End::Cut { .. }), "{:?}", outcome.end);
    // Looks change nothing of a run that they do not end.
    let [never, often] = [0, LOOK].map(|repeat_cycles| {
        let words = [&delay(200_000)[..], &EXIT].concat();
        run_cpu(&self::experiment(&program(&words)), &Conduct { repeat_cycles, ..Conduct::default() }).outcome
    });
    assert_eq!((never.digest, never.engine.rounds, never.time), (often.digest, often.engine.rounds, often.time));
}
