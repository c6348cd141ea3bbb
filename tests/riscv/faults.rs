//! What a program may do wrong, and how it is told.

use durawarp::riscv::fault::FaultKind;
use durawarp::riscv::functional::{self, End, Options};
use durawarp::riscv::syscalls::WaitingThread;

use proptest::prelude::*;

use crate::common::{DATA, executable, program, run_words};

const NOP: u32 = 0x0000_0013;

/// The fault that these words end with.
fn fault(words: &[u32]) -> durawarp::riscv::fault::CpuFault {
    match run_words(words).end {
        End::Fault(fault) => *fault,
        end => panic!("{end:?}"),
    }
}

#[test]
fn an_instruction_that_is_not_supported_is_told_with_its_word_and_place() {
    let fault = fault(&[NOP, 0x0000_7057]);
    assert_eq!(fault.kind, FaultKind::Unsupported { word: 0x7057, bytes: 4 });
    assert_eq!(fault.to_string(), "unsupported instruction 0x00007057 (vectors: V) at 0x10004 (main+0x4), hart 0");
}

#[test]
fn an_access_outside_memory_is_told_with_its_address() {
    // ld a0, 8(x0)
    assert_eq!(
        fault(&[0x0080_3503]).to_string(),
        "a load of 8 bytes at 0x8, outside the memory of the process (a null pointer?) at 0x10000 (main), hart 0"
    );
    // lui a1, 0x400 (the end of memory); sw a0, -2(a1)
    let kind = fault(&[0x0040_05b7, 0xfea5_af23]).kind;
    assert_eq!(kind, FaultKind::Unmapped { address: 0x3f_fffe, bytes: 4, write: true });
    // cbo.clean (x0)
    assert_eq!(fault(&[0x0010_200f]).kind, FaultKind::Unmapped { address: 0, bytes: 64, write: true });
}

#[test]
fn code_is_not_written() {
    // auipc a0, 0; sb x0, 7(a0)
    assert_eq!(fault(&[0x0000_0517, 0x0005_03a3]).kind, FaultKind::CodeWrite { address: 0x1_0007 });
    // amoadd.w x0, x0, (a0)
    assert_eq!(fault(&[0x0000_0517, 0x0005_202f]).kind, FaultKind::CodeWrite { address: 0x1_0000 });
}

#[test]
fn loads_and_stores_need_no_alignment_and_atomics_do() {
    // lui a0, 0x20; addi a0, a0, 2; sd sp, 1(a0); ld a1, 1(a0); amoadd.w a2, a1, (a0)
    let words = [0x0002_0537, 0x0025_0513, 0x0025_30a3, 0x0015_3583, 0x00b5_262f];
    assert_eq!(fault(&words).kind, FaultKind::MisalignedAtomic { address: DATA + 2, bytes: 4 });
    // lr.d a2, (a0)
    assert_eq!(
        fault(&[words[0], words[1], 0x1005_362f]).kind,
        FaultKind::MisalignedAtomic { address: DATA + 2, bytes: 8 }
    );
}

#[test]
fn other_jumps_and_traps_are_faults_too() {
    // jalr x0, 0(x0)
    let jump = fault(&[0x0000_0067]);
    assert_eq!((jump.kind, jump.pc, &jump.symbol), (FaultKind::NoCode, 0, &None));
    // jal x0, 8 leaves the code
    assert_eq!(fault(&[0x0080_006f]).kind, FaultKind::NoCode);
    assert_eq!(fault(&[0x0010_0073]).kind, FaultKind::Breakpoint);
    // fsrmi 5; fadd.d f0, f0, f0
    let rounding = fault(&[0x0022_d073, 0x0200_7053]);
    assert_eq!(rounding.kind, FaultKind::Rounding { mode: 5 });
    assert!(
        rounding.to_string().starts_with("floating-point arithmetic in rounding mode 5, which is reserved"),
        "{rounding}"
    );
}

#[test]
fn a_signal_to_oneself_ends_the_program() {
    // li a0, 100; li a1, 6; li a7, 130 (tkill); ecall
    let fault = fault(&[0x0640_0513, 0x0060_0593, 0x0820_0893, 0x0000_0073]);
    assert_eq!(fault.to_string(), "signal 6 (abort) at 0x1000c (main+0xc), hart 0");
}

#[test]
fn more_threads_than_harts_take_turns_and_leave_what_they_leave_with_a_hart_each() {
    let process = executable("counter", include_bytes!("../../workloads/riscv/counter.elf"), &["--threads", "5"]);
    let run = |harts| functional::run(&process, process.memory(), &Options { harts, ..Options::default() });
    let alone = run(5);
    assert_eq!((&alone.end, alone.stdout.is_empty()), (&End::Exited(0), false));
    for harts in 1..5 {
        let shared = run(harts);
        assert_eq!((shared.end, &shared.stdout), (End::Exited(0), &alone.stdout), "{harts} harts");
        assert_eq!(shared.instructions.len(), harts as usize);
    }
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    // addi t0, t0, 1; bge t0, x0, -4: it counts, so that it might end.
    let outcome = run_words(&[0x0012_8293, 0xfe02_dee3]);
    assert_eq!((outcome.end, outcome.instructions), (End::Limit, vec![1_000_000]));
    // jal x0, 0; pause; jal x0, -4; and lui t1, DATA; lw t0, 0(t1); beq t0, x0, -4, which only repeat themselves.
    for (words, read) in [
        (&[0x0000_006f][..], None),
        (&[0x0100_000f, 0xffdf_f06f], None),
        (&[0x0002_0337, 0x0003_2283, 0xfe02_8ee3], Some(DATA)),
    ] {
        let outcome = run_words(words);
        let End::Repeats(harts) = &outcome.end else { panic!("{:?}", outcome.end) };
        assert_eq!(harts.iter().map(|&(hart, _, read)| (hart, read)).collect::<Vec<_>>(), [(0, read)]);
        assert!(outcome.instructions[0] < 100_000, "{:?}", outcome.instructions);
    }
}

#[test]
fn threads_that_wait_for_nobody_are_told() {
    // lui a0, 0x20; li a7, 98 (futex); ecall, with operation 0 (wait), value 0 and no limit
    let process = program(&[0x0002_0537, 0x0620_0893, 0x0000_0073]);
    let outcome = functional::run(&process, process.memory(), &Options::default());
    assert_eq!(outcome.end, End::Deadlock(vec![WaitingThread { thread: 100, hart: Some(0), futex: Some(DATA) }]));
}

#[test]
fn a_run_is_stopped_from_outside() {
    let stop = std::sync::atomic::AtomicBool::new(true);
    let process = program(&[0x0000_006f]);
    let outcome = functional::run(&process, process.memory(), &Options { stop: Some(&stop), ..Options::default() });
    assert_eq!((outcome.end, outcome.instructions), (End::Stopped, vec![0]));
}

proptest! {
    /// Words of all kinds, with many system calls and jumps among them.
    #[test]
    fn any_words_run_to_some_end(words in prop::collection::vec(prop_oneof![
        4 => any::<u32>(),
        2 => any::<u32>().prop_map(|word| word & !0x7f | 0x13),
        1 => any::<u32>().prop_map(|word| word & !0x7f | 0x2f),
        1 => any::<u32>().prop_map(|word| word & 0x00f0_0fff & !0x7f | 0x6f),
        1 => (0..300u32).prop_map(|number| number << 20 | 0x893),
        2 => Just(0x0000_0073),
        1 => any::<u32>().prop_map(|word| word & !0x7f | 0x0b),
    ], 1..60)) {
        let process = program(&words);
        let options = Options { harts: 2, instructions: 3000, ..Options::default() };
        let outcome = functional::run(&process, process.memory(), &options);
        prop_assert!(outcome.instructions.iter().sum::<u64>() <= 3000);
    }
}
