//! Programs of a few words, and instructions by themselves.

use durawarp::riscv::decode::decode;
use durawarp::riscv::elf::{self, Executable, Function, Segment};
use durawarp::riscv::functional::{self, Options, Outcome};
use durawarp::riscv::instruction::{Inst, Op};
use durawarp::riscv::memory::Windows;
use durawarp::riscv::process::{Process, Start};

/// Where the code of [`program`] begins.
pub(crate) const CODE: u64 = 0x1_0000;
/// Where its 4 KiB of data begin.
pub(crate) const DATA: u64 = 0x2_0000;

/// Memory that is large enough for every test.
pub(crate) const WINDOWS: Windows = Windows { memory_bytes: 4 << 20, pm_bytes: 1 << 20 };

/// An operation on registers that nobody looks at.
pub(crate) fn operation(op: Op) -> Inst {
    Inst { op, ..decode(0x0000_0013) }
}

/// A program of these words, whose function `main` begins at its first one.
pub(crate) fn program(words: &[u32]) -> Process {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let code = Segment { address: CODE, memory_bytes: bytes.len() as u64, bytes, executable: true };
    let data = Segment { address: DATA, memory_bytes: 4096, bytes: Vec::new(), executable: false };
    let main = Function { address: CODE, bytes: 0, name: "main".to_owned() };
    let image = Executable {
        entry: CODE,
        segments: vec![code, data],
        functions: vec![main],
        objects: vec![],
        headers: None,
        header_count: 0,
    };
    Process::new(image, Start { windows: WINDOWS, stack_bytes: 64 << 10, ..Start::default() }).unwrap()
}

/// Runs these words on one hart.
pub(crate) fn run_words(words: &[u32]) -> Outcome {
    let process = program(words);
    functional::run(&process, process.memory(), &Options { instructions: 1_000_000, ..Options::default() })
}

/// An executable with its arguments, ready to run.
pub(crate) fn executable(name: &str, bytes: &[u8], args: &[&str]) -> Process {
    let image = elf::load(name, bytes, WINDOWS.memory_bytes).unwrap_or_else(|faults| panic!("{faults}"));
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let start = Start { name: name.to_owned(), args, windows: WINDOWS, stack_bytes: 64 << 10, ..Start::default() };
    Process::new(image, start).unwrap_or_else(|faults| panic!("{faults}"))
}
