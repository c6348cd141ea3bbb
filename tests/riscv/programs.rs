//! Whole programs: threads, locks, recursion, floating point, persistent memory.

use durawarp::riscv::functional::{self, End, Options, Outcome};
use durawarp::riscv::memory::Memory;

use crate::common::{WINDOWS, executable, run_words};

const COUNTER: &[u8] = include_bytes!("../../workloads/riscv/counter.elf");
const SORTS: &[u8] = include_bytes!("../../workloads/riscv/sorts.elf");
const WRITTEN: &[u8] = include_bytes!("../../workloads/riscv/written.elf");
const APPEND_LOG: &[u8] = include_bytes!("../../workloads/riscv/append_log.elf");

fn run(bytes: &[u8], args: &[&str], harts: u32) -> Outcome {
    let process = executable("program", bytes, args);
    functional::run(&process, process.memory(), &Options { harts, instructions: 50_000_000, ..Options::default() })
}

fn text(outcome: &Outcome) -> &str {
    std::str::from_utf8(&outcome.stdout).unwrap()
}

#[test]
fn threads_count_under_locks_and_by_atomics() {
    for threads in [1, 4, 8] {
        let outcome = run(COUNTER, &["--threads", &threads.to_string(), "--steps", "200"], threads);
        assert_eq!(outcome.end, End::Exited(0), "{}", text(&outcome));
        let all = 200 * threads;
        assert_eq!(text(&outcome), format!("lock {all}\naddition {all}\nexchange {all}\n"));
        assert!(outcome.instructions.iter().all(|instructions| *instructions > 1000));
        assert_eq!(outcome.unsupported_calls, []);
    }
}

#[test]
fn what_threads_write_to_a_file_is_whole_whatever_harts_they_have() {
    let record = |i: u64| format!("{i:06} of {:04}\n", i % 5);
    let expected: String = (0..30).map(record).collect();
    for harts in [1, 2, 5] {
        let outcome = run(WRITTEN, &["--threads", "5", "--records", "30"], harts);
        assert_eq!((&outcome.end, text(&outcome)), (&End::Exited(0), "bytes 450\nsum 435\n"), "{harts} harts");
        let [file] = &outcome.files[..] else { panic!("{:?}", outcome.files) };
        assert_eq!((file.path.as_str(), &file.content[..]), ("records.txt", expected.as_bytes()), "{harts} harts");
    }
}

#[test]
fn a_run_is_the_same_every_time() {
    let [one, other] = [(); 2].map(|()| run(COUNTER, &["--threads", "3"], 4));
    assert_eq!((one.instructions, one.memory), (other.instructions, other.memory));
}

#[test]
fn recursion_calls_through_pointers_and_floating_point_give_what_qemu_gives() {
    let outcome = run(SORTS, &[], 1);
    assert_eq!(outcome.end, End::Exited(0));
    // Printed by qemu-riscv64.
    let expected = "sum -186232906 single -186233232 median 25735434\n\
        sum 299468781 single 299469376 median 189092304\n\
        sum -12843031 single -12843024 median -4572534540\n\
        sum 394932401 single 394932480 median -4554614759\n";
    assert_eq!(text(&outcome), expected);
}

#[test]
fn persistent_memory_is_what_the_last_run_left() {
    let process = executable("append_log", APPEND_LOG, &["--records", "50"]);
    let options = Options { harts: 2, ..Options::default() };
    let first = functional::run(&process, process.memory(), &options);
    assert_eq!((first.end, &first.stdout[..]), (End::Exited(0), &b"records 100\n"[..]));
    assert_eq!((first.pm.operations, first.pm.order_fences, first.pm.durability_fences), (100, 200, 200));
    assert_eq!(first.pm.line_writebacks, 200);

    let recover = |image: &[u8]| {
        let process = executable("append_log", APPEND_LOG, &["--records", "50", "--recover"]);
        let mut memory: Memory = process.memory();
        memory.persistent_mut().copy_from_slice(image);
        functional::run(&process, memory, &options)
    };
    let whole = recover(first.memory.persistent());
    assert_eq!((whole.end, &whole.stdout[..]), (End::Exited(0), &b"records 100\n"[..]));
    // A record that counts and is not whole: the one after the line of the length.
    let mut torn = first.memory.persistent().to_vec();
    assert_eq!(torn.len() as u64, WINDOWS.pm_bytes);
    torn[64 + 8] ^= 1;
    let torn = recover(&torn);
    assert_eq!((torn.end, &torn.stdout[..]), (End::Exited(1), &b"wrong: record\n"[..]));
}

#[test]
fn a_program_says_which_argument_is_wrong() {
    let outcome = run(COUNTER, &["--threads", "two"], 1);
    assert_eq!((text(&outcome), &outcome.end), ("wrong: --threads\n", &End::Exited(1)));
}

#[test]
fn a_store_conditional_needs_its_reservation() {
    // lui a1, 0x20; sc.w a0, x0, (a1); li a7, 93; ecall: no reservation, exit code 1
    assert_eq!(run_words(&[0x0002_05b7, 0x1805_a52f, 0x05d0_0893, 0x0000_0073]).end, End::Exited(1));
    // lr.w before it: 0
    assert_eq!(run_words(&[0x0002_05b7, 0x1005_a62f, 0x1805_a52f, 0x05d0_0893, 0x0000_0073]).end, End::Exited(0));
    // Of another width: 1
    assert_eq!(run_words(&[0x0002_05b7, 0x1005_b62f, 0x1805_a52f, 0x05d0_0893, 0x0000_0073]).end, End::Exited(1));
}

#[test]
fn the_rounding_mode_and_exceptions_are_kept() {
    let exit = [0x05d0_0893, 0x0000_0073];
    let ends = |words: &[u32]| run_words(&[words, &exit].concat()).end;
    // fsrmi 3; li a1, -1; csrw fflags, a1; frcsr a0
    assert_eq!(ends(&[0x0021_d073, 0xfff0_0593, 0x0015_9073, 0x0030_2573]), End::Exited(3 << 5 | 31));
    // li a1, 1; fcvt.d.l f0, a1; fdiv.d f1, f0, f2 (by zero); fsqrt.d f1, f1 (infinite); fdiv.d f1, f2, f2;
    // frflags a0
    let exceptions = [0x0010_0593, 0xd225_f053, 0x1a20_70d3, 0x5a00_f0d3, 0x1a21_70d3, 0x0010_2573];
    assert_eq!(ends(&exceptions), End::Exited(8 | 16));
    // They stay until they are cleared: csrci fflags, 8; frcsr a0
    assert_eq!(ends(&[&exceptions[..], &[0x0014_7073, 0x0030_2573]].concat()), End::Exited(16));
}
