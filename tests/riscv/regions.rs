//! Programs in recoverable regions: interrupted anywhere and resumed from what was committed, they end as
//! they do unbroken; no region stores more than the threshold.

use std::sync::Arc;

use durawarp::riscv::elf::{self, Function};
use durawarp::riscv::functional::{self, End, Options, Outcome, RegionRun, RegionRunCounts};
use durawarp::riscv::process::{Process, Start};
use durawarp::riscv::regions::{BoundaryReason, RegionError, RegionOptions, RegionTable, SyncPlacement, form};

use durawarp::workload::{Choice, CpuProgram, Ran, Workload};

use crate::common::{CODE, WINDOWS, program as words};
use crate::encoding::{b_type, i_type, opcode, r_type, s_type, u_type};
use crate::generator;

/// Sequences of a program: its contexts fill whole pages.
const SEQUENCES: u64 = 4;

/// Random sequences as one function.
fn sequences(number: u64) -> Process {
    let file = generator::program(number * SEQUENCES..(number + 1) * SEQUENCES);
    let mut image = elf::load("sequences", &file, WINDOWS.memory_bytes).unwrap();
    let code = image.segments.iter().find(|segment| segment.executable).unwrap();
    let (address, bytes) = (code.address, code.bytes.len() as u64);
    image.functions = vec![Function { address, bytes, name: "sequences".to_owned() }];
    Process::new(image, Start { windows: WINDOWS, stack_bytes: 64 << 10, ..Start::default() }).unwrap()
}

fn formed(process: &Process, options: &RegionOptions) -> Arc<RegionTable> {
    Arc::new(form(&process.image, &process.code, options).unwrap())
}

const NOP: u32 = 0x0000_0013;
const EBREAK: u32 = 0x0010_0073;

/// `sd x0, 0(a2)`.
fn store() -> u32 {
    s_type(opcode::STORE, 3, 12, 0, 0)
}

/// The boundaries of these words: which word each is before, why, and after how many arrivals.
fn boundaries(code: &[u32], options: &RegionOptions) -> Vec<(u64, BoundaryReason, u8)> {
    let table = formed(&words(code), options);
    table.boundaries().iter().map(|found| ((found.pc - CODE) / 4, found.reason, found.every)).collect()
}

#[test]
fn the_store_that_reaches_the_threshold_begins_a_region() {
    let options = RegionOptions { threshold_stores: 8, ..RegionOptions::default() };
    let code = |stores: usize| [&vec![store(); stores][..], &[EBREAK]].concat();
    // Seven stores and the pc are eight.
    assert_eq!(boundaries(&code(7), &options), [(0, BoundaryReason::Entry, 1)]);
    assert_eq!(boundaries(&code(8), &options), [(0, BoundaryReason::Entry, 1), (7, BoundaryReason::Threshold, 1)]);
}

#[test]
fn a_loop_has_as_many_turns_to_a_region_as_the_threshold_allows() {
    // nop; 1: sd x0, 0(a2); addi a2, a2, 8; bne a2, a3, 1b; ebreak. k turns are k stores, a2 and the pc.
    let code = [NOP, store(), i_type(opcode::IMMEDIATE, 0, 12, 12, 8), b_type(1, 12, 13, -8), EBREAK];
    for (threshold_stores, factor, turns) in [(32, 4, 4), (6, 4, 4), (5, 4, 3), (4, 4, 2), (32, 1, 1), (32, 8, 8)] {
        let options = RegionOptions { threshold_stores, unroll_factor: factor, ..RegionOptions::default() };
        let expected = [(0, BoundaryReason::Entry, 1), (1, BoundaryReason::Loop, turns)];
        assert_eq!(boundaries(&code, &options), expected, "{threshold_stores} stores, factor {factor}");
    }
}

#[test]
fn atomics_have_boundaries_on_both_sides_and_a_reservation_none_inside() {
    use BoundaryReason::{AfterOrder, Entry, Order};
    // nop; lr.w a0, (a2); sc.w a1, a0, (a2); nop; amoadd.w a0, a1, (a2); ebreak
    let atomic = |funct5: u32, rd, rs2| r_type(opcode::ATOMIC, funct5 << 2, 2, rd, 12, rs2);
    let code = [NOP, atomic(2, 10, 0), atomic(3, 11, 10), NOP, atomic(0, 10, 11), EBREAK];
    let both = [(0, Entry, 1), (1, Order, 1), (3, AfterOrder, 1), (4, Order, 1), (5, AfterOrder, 1)];
    assert_eq!(boundaries(&code, &RegionOptions::default()), both);
    let paper = RegionOptions { after_sync: false, ..RegionOptions::default() };
    assert_eq!(boundaries(&code, &paper), [(0, Entry, 1), (1, Order, 1), (4, Order, 1)]);
}

#[test]
fn loads_that_acquire_have_boundaries_before_them_and_fences_where_the_reading_says() {
    use BoundaryReason::{AfterOrder, Entry, Order, Waiting};
    use SyncPlacement::{Acquires, Fences, X86};
    let fence = |before: u32, after: u32| (before << 4 | after) << 20 | opcode::FENCE;
    let load = i_type(opcode::LOAD, 2, 10, 12, 0);
    let placed = |code: &[u32], sync| boundaries(code, &RegionOptions { sync, ..RegionOptions::default() });
    // nop; lw a0, (a2); fence r, rw; nop; pause; fence rw, w; sd x0, (a2); nop; ebreak
    let pause = 0x0100_000f;
    let code = [NOP, load, fence(2, 3), NOP, pause, fence(3, 1), store(), NOP, EBREAK];
    let entry = (0, Entry, 1);
    assert_eq!(placed(&code, Acquires), [entry, (1, Order, 1), (4, Waiting, 1)]);
    assert_eq!(placed(&code, X86), [entry], "loads and stores of x86 are plain");
    let behind = |at| (at, AfterOrder, 1);
    let around = [entry, (1, Order, 1), behind(3), (4, Waiting, 1), (5, Order, 1), behind(6), behind(7)];
    assert_eq!(placed(&code, Fences), around);
    // gcc 12 makes a full fence of it.
    let code = [NOP, load, fence(3, 3), NOP, EBREAK];
    assert_eq!(placed(&code, Acquires), [entry, (1, Order, 1), behind(3)]);
    assert_eq!(placed(&code, X86), [entry]);
    // Behind a loop that waits the load is elsewhere: 1: lw a0, (a2); beq a0, x0, 1b; fence r, rw; fence rw, rw;
    // fence.tso; ebreak
    let code = [NOP, load, b_type(0, 10, 0, -4), fence(2, 3), NOP, fence(3, 3), NOP, 0x8330_000f, EBREAK];
    assert_eq!(placed(&code, Acquires), [entry, (1, Order, 1), (5, Order, 1), behind(6)]);
    assert_eq!(placed(&code, X86), [entry, (5, Order, 1), behind(6)]);
    let around = [entry, (1, Waiting, 1), behind(4), (5, Order, 1), behind(6), (7, Order, 1), behind(8)];
    assert_eq!(placed(&code, Fences), around);
}

#[test]
fn a_loop_that_polls_has_a_boundary_before_it_and_one_that_searches_or_counts_has_none() {
    use BoundaryReason::{Entry, Waiting};
    let placed = |code: &[u32], sync| boundaries(code, &RegionOptions { sync, ..RegionOptions::default() });
    let load = |rd, rs1| i_type(opcode::LOAD, 2, rd, rs1, 0);
    let addi = |rd, rs1| i_type(opcode::IMMEDIATE, 0, rd, rs1, 4);
    let entry = (0, Entry, 1);
    // sd x0, (a2); 1: lw a0, (a2); addi a1, a1, 4; beq a0, x0, 1b; ebreak: libgomp counts its turns.
    let polls = [store(), load(10, 12), addi(11, 11), b_type(0, 10, 0, -8), EBREAK];
    assert_eq!(placed(&polls, SyncPlacement::Acquires), [entry, (1, Waiting, 1)]);
    assert_eq!(placed(&polls, SyncPlacement::X86), [entry], "the paper's rule has none");
    // lw a0, (a0): a list. lw a0, (a1), a1 counted up: an array. A count alone.
    for (rd, rs1) in [(10, 10), (10, 11)] {
        let searches = [store(), load(rd, rs1), addi(11, 11), b_type(0, 10, 0, -8), EBREAK];
        assert_eq!(placed(&searches, SyncPlacement::Acquires), [entry], "from x{rs1}");
    }
    let counts = [store(), NOP, addi(11, 11), b_type(1, 11, 13, -8), EBREAK];
    assert_eq!(placed(&counts, SyncPlacement::Acquires), [entry]);
}

/// Boundaries that are executed of these words, and the most stores of a region.
fn executed(code: &[u32], options: &RegionOptions) -> (u64, u32) {
    let process = words(code);
    let mut run = RegionRun::new(&process, process.memory(), &formed(&process, options), &Options::default());
    assert!(matches!(run.advance(100_000), Some(End::Exited(0))), "it exits");
    (run.counts().regions(), run.counts().most_stores)
}

/// li a0, 0; li a7, 93; ecall: the program ends.
fn exit() -> [u32; 3] {
    [i_type(opcode::IMMEDIATE, 0, 10, 0, 0), i_type(opcode::IMMEDIATE, 0, 17, 0, 93), 0x73]
}

#[test]
fn a_boundary_without_a_store_before_it_is_left_out_and_its_registers_come_with_the_next() {
    // pm.region; stores or none; pm.region; ...: beside calls only what was stored behind ends a region.
    let (end, push) = (0x0000_200b, s_type(opcode::STORE, 3, 2, 0, -8));
    let ends = |stores: usize| {
        let code = [&[end, end][..], &vec![push; stores], &[end, end, end], &exit()].concat();
        executed(&code, &RegionOptions::default()).0
    };
    // Before the call, and where something was stored.
    assert_eq!([ends(0), ends(1), ends(2)], [1, 2, 2]);
    // Six registers are written and live before a boundary that is left out; five stores follow, and all
    // registers are read then. A threshold of 8 has no room for both, and one of 16 has.
    let of = |threshold_stores| {
        let written: Vec<u32> = (20..26).map(|rd| i_type(opcode::IMMEDIATE, 0, rd, 12, rd as i32)).collect();
        let read: Vec<u32> = (20..26).map(|rs| r_type(opcode::REGISTER, 0, 0, 20, 20, rs)).collect();
        let code = [&written[..], &[end], &[push; 5], &read, &[push], &exit()].concat();
        executed(&code, &RegionOptions { threshold_stores, ..RegionOptions::default() })
    };
    let ((few, most), (more, most_of_few)) = (of(16), of(8));
    assert!(most <= 16 && most_of_few <= 8, "{most} and {most_of_few} stores");
    assert!(more > few, "{more} and {few} regions");
}

#[test]
fn what_is_live_is_stored_and_constants_are_computed() {
    // lui a0, 5; addi a1, sp, -16; ld a4, (a2); lui a5, 6; pm.region by way of amoadd.w x0, x0, (a2); then a0,
    // a1 and a4 are stored to (a2), and a5 is not used.
    let sd = |value| s_type(opcode::STORE, 3, 12, value, 0);
    let code = [
        u_type(opcode::LUI, 10, 5),
        i_type(opcode::IMMEDIATE, 0, 11, 2, -16),
        i_type(opcode::LOAD, 3, 14, 12, 0),
        u_type(opcode::LUI, 15, 6),
        r_type(opcode::ATOMIC, 0, 2, 0, 12, 0),
        sd(10),
        sd(11),
        sd(14),
        EBREAK,
    ];
    let at = CODE + 4 * 4;
    let table = formed(&words(&code), &RegionOptions::default());
    let boundary = table.at(at).unwrap();
    assert_eq!((boundary.written, boundary.computed), (1 << 14, 1 << 10 | 1 << 11));
    let sp = |_| 0x8000;
    let computed: Vec<(u8, u64)> =
        table.restore(at).iter().map(|(register, recipe)| (*register, recipe.value(sp))).collect();
    assert_eq!(computed, [(10, 0x5000), (11, 0x7ff0)]);
    let all = formed(&words(&code), &RegionOptions { prune: false, ..RegionOptions::default() });
    assert_eq!(all.at(at).unwrap().written, 1 << 10 | 1 << 11 | 1 << 14);
}

#[test]
fn options_out_of_range_and_stripped_programs_are_refused() {
    let process = words(&[NOP, EBREAK]);
    let refused = |options| form(&process.image, &process.code, &options).unwrap_err();
    let all = RegionOptions::default();
    assert_eq!(refused(RegionOptions { threshold_stores: 3, ..all }), RegionError::Threshold(3));
    assert_eq!(refused(RegionOptions { unroll_factor: 0, ..all }), RegionError::Unroll(0));
    let stripped = elf::Executable { functions: Vec::new(), ..(*process.image).clone() };
    assert_eq!(form(&stripped, &process.code, &all), Err(RegionError::Stripped));
}

#[test]
fn what_an_atomic_load_saw_commits_behind_the_region_that_stored_it() {
    // A thread saw that it holds a lock, and the store that gave it was lost: the next one waited for ever.
    let program = program("btree", "4");
    let process = program.process().unwrap();
    let options = Options { harts: 4, ..Options::default() };
    let table = formed(&process, &RegionOptions::default());
    for at in (3000..6000).step_by(40) {
        let mut run = RegionRun::new(&process, process.memory(), &table, &options);
        run.set_turn(10);
        assert_eq!(run.advance(at), None);
        run = RegionRun::resume(&process, run.power_failure(), &table);
        run.set_turn(11);
        assert_eq!(run.advance(400_000), Some(End::Exited(0)), "interrupted after {at} steps");
    }
}

/// Ways to form regions: as they are by default, and with each part of it switched off.
fn ways() -> Vec<RegionOptions> {
    let all = RegionOptions::default();
    vec![
        all,
        RegionOptions { merge: false, ..all },
        RegionOptions { prune: false, ..all },
        RegionOptions { unroll_factor: 1, ..all },
        RegionOptions { threshold_stores: 6, ..all },
        RegionOptions { after_sync: false, threshold_stores: 16, unroll_factor: 8, ..all },
        RegionOptions { sync: SyncPlacement::Fences, ..all },
        RegionOptions { sync: SyncPlacement::X86, threshold_stores: 5, ..all },
    ]
}

/// Interrupts a program after this many steps, resumes it, and runs it to its end.
fn interrupted(process: &Process, table: &Arc<RegionTable>, options: &Options<'_>, steps: &[u64]) -> Outcome {
    let mut run = RegionRun::new(process, process.memory(), table, options);
    for &steps in steps {
        if let Some(end) = run.advance(steps) {
            return run.outcome(end);
        }
        run = RegionRun::resume(process, run.power_failure(), table);
    }
    let end = run.advance(50_000_000).unwrap_or(End::Limit);
    run.outcome(end)
}

#[track_caller]
fn assert_same(found: &Outcome, expected: &Outcome, told: &str) {
    assert_eq!(found.end, expected.end, "{told}");
    assert!(found.stdout == expected.stdout, "{told}: other output");
    if found.memory != expected.memory {
        let different = (0x1000..).find(|at| found.memory.load::<1>(*at) != expected.memory.load::<1>(*at));
        panic!("{told}: other memory at {different:x?}");
    }
}

#[test]
fn random_programs_interrupted_anywhere_end_as_they_do_unbroken() {
    let options = Options::default();
    for (number, way) in ways().into_iter().enumerate() {
        let process = sequences(number as u64);
        let expected = functional::run(&process, process.memory(), &options);
        assert_eq!(expected.end, End::Exited(0));
        let table = formed(&process, &way);
        let mut whole = RegionRun::new(&process, process.memory(), &table, &options);
        let end = whole.advance(u64::MAX).unwrap();
        let steps = whole.counts().instructions;
        assert!(whole.counts().most_stores <= way.threshold_stores, "{way:?}: {:?}", whole.counts());
        assert_same(&whole.outcome(end), &expected, "unbroken");
        for at in (number as u64 % 7..steps).step_by(7) {
            // Twice: what recovery computed is not in its slot.
            let found = interrupted(&process, &table, &options, &[at, 5 + at % 50]);
            assert_same(&found, &expected, &format!("{way:?}, interrupted after {at} steps"));
        }
    }
}

const PROGRAMS: [&str; 8] = ["hash", "rbtree", "btree", "sps", "ssca2", "stencil_cpu", "treap", "spin_counter"];

fn program(name: &str, threads: &str) -> CpuProgram {
    let params = vec![("THREADS".to_owned(), threads.to_owned())];
    let choice = Choice { profile: Some("ci".to_owned()), params, ..Choice::default() };
    let found = Workload::load(name).and_then(|workload| workload.program(&choice));
    found.unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn no_region_of_the_programs_stores_more_than_the_threshold() {
    let mut of_all = Vec::new();
    for name in PROGRAMS {
        let program = program(name, "4");
        let process = program.process().unwrap();
        for way in ways() {
            let table = formed(&process, &way);
            let options = Options { harts: program.threads, ..Options::default() };
            let mut run = RegionRun::new(&process, process.memory(), &table, &options);
            assert_eq!(run.advance(50_000_000), Some(End::Exited(0)), "{name}: {way:?}");
            let counts = run.counts();
            assert!(counts.most_stores <= way.threshold_stores, "{name}: {way:?}: {counts:?}");
            if std::env::var_os("SHOW_REGIONS").is_some() {
                println!("{name:12} {:?}", (means(counts), counts.boundaries, table.merged(), table.unrolled(), way));
            }
            if way == RegionOptions::default() {
                of_all.push(means(counts));
            }
        }
    }
    // What the paper's programs come to: 91 instructions, 11 stores, 7 % more instructions. These are others,
    // and their calls are not inlined.
    let mean = |of: fn(&[f64; 3]) -> f64| of_all.iter().map(of).sum::<f64>() / of_all.len() as f64;
    let [instructions, stores, more] = [mean(|m| m[0]), mean(|m| m[1]), mean(|m| m[2])];
    assert!((20.0..200.0).contains(&instructions), "{instructions}");
    assert!((3.0..25.0).contains(&stores), "{stores}");
    assert!((2.0..30.0).contains(&more), "{more}");
}

/// Instructions and stores of a region, and how many more instructions in percent: every store of a boundary
/// is one.
fn means(counts: &RegionRunCounts) -> [f64; 3] {
    let (regions, added) = (counts.regions() as f64, (counts.checkpoints + counts.regions()) as f64);
    let instructions = counts.instructions as f64;
    [(instructions + added) / regions, counts.all_stores() as f64 / regions, 100.0 * added / instructions]
}

#[test]
fn programs_of_one_thread_resume_to_the_same_memory_and_output() {
    for name in PROGRAMS {
        let program = program(name, "1");
        let process = program.process().unwrap();
        let options = Options::default();
        let expected = functional::run(&process, process.memory(), &options);
        assert_eq!(expected.end, End::Exited(0), "{name}");
        let table = formed(&process, &RegionOptions::default());
        let steps = expected.instructions[0];
        for nth in 0..12 {
            let at = steps * (2 * nth + 1) / 24 + nth;
            let found = interrupted(&process, &table, &options, &[at, nth * 37, steps / 7]);
            assert_same(&found, &expected, &format!("{name}, interrupted after {at} steps"));
        }
    }
}

#[test]
fn programs_of_several_threads_resume_to_what_their_checks_ask_for() {
    for name in PROGRAMS {
        let program = program(name, "4");
        let process = program.process().unwrap();
        let options = Options { harts: program.threads, ..Options::default() };
        let table = formed(&process, &RegionOptions::default());
        let steps: u64 = functional::run(&process, process.memory(), &options).instructions.iter().sum();
        for nth in 0..12 {
            let at = steps * (2 * nth + 1) / 24 + nth;
            let mut run = RegionRun::new(&process, process.memory(), &table, &options);
            // Turns of different lengths, so that harts meet in many ways.
            run.set_turn(1 + nth * nth);
            assert_eq!(run.advance(at), None);
            run = RegionRun::resume(&process, run.power_failure(), &table);
            run.set_turn(3 + nth);
            let end = run.advance(50_000_000);
            assert_eq!(end, Some(End::Exited(0)), "{name}, interrupted after {at} steps");
            let found = run.outcome(End::Exited(0));
            let ran = Ran {
                exit_code: 0,
                stdout: &found.stdout,
                files: &found.files,
                persistent: found.memory.persistent(),
                logs: &[],
            };
            let verified = program.verify(&ran, None);
            let text = String::from_utf8_lossy(&found.stdout);
            assert!(verified.passed(), "{name}, interrupted after {at} steps: {text}");
        }
    }
}
