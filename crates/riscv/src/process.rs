//! A process before its first instruction: decoded code, the bytes that memory begins with, and the registers
//! of hart 0.
//!
//! ```text
//!  0x1000                                                                      memory_bytes
//!    | image | heap (brk) ->   ...   <- mappings, stacks of threads | stack of hart 0 |
//! ```
//! The stack is that of Linux's psABI: argc, arguments, the environment, and the auxiliary vector (PHDR,
//! PHENT, PHNUM, PAGESZ, ENTRY, HWCAP, RANDOM). There is no vDSO: libraries make system calls instead.

use std::sync::Arc;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::code::CodeTable;
use super::elf::{Executable, page_up};
use super::memory::{MEMORY_MAX_BYTES, Memory, PAGE_BYTES, PM_MAX_BYTES, Windows};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;

/// Bytes of the file's header of a program header, in the auxiliary vector.
const PROGRAM_HEADER_BYTES: u64 = 56;
/// Letters of the extensions, as Linux tells them: I, M, A, F, D, C.
const HWCAP: u64 = 1 << 8 | 1 << 12 | 1 | 1 << 5 | 1 << 3 | 1 << 2;
/// The sequence of the generator that the auxiliary vector's random bytes come from; `getrandom` has another.
const RANDOM_STREAM: u128 = 1;
/// Tags of the auxiliary vector.
mod tag {
    pub(super) const PHDR: u64 = 3;
    pub(super) const PHENT: u64 = 4;
    pub(super) const PHNUM: u64 = 5;
    pub(super) const PAGESZ: u64 = 6;
    pub(super) const ENTRY: u64 = 9;
    pub(super) const HWCAP: u64 = 16;
    pub(super) const RANDOM: u64 = 25;
}

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Name of the program, its argument 0.
    pub name: String,
    /// Arguments after it.
    pub args: Vec<String>,
    /// Its environment: variables as `NAME=value`.
    pub env: Vec<String>,
    /// The windows of its memory.
    pub windows: Windows,
    /// Bytes of the first stack, and of threads' if they do not ask for others.
    pub stack_bytes: u64,
    /// What `getrandom` and the auxiliary vector's random bytes follow from.
    pub seed: u64,
    /// The file that standard input reads, by its path; without one it is at its end.
    pub stdin: Option<String>,
}

impl Default for Start {
    /// 64 MiB of memory, 1 MiB of persistent memory, stacks of 1 MiB.
    fn default() -> Start {
        let windows = Windows { memory_bytes: 64 << 20, pm_bytes: 1 << 20 };
        Start {
            name: "program".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            windows,
            stack_bytes: 1 << 20,
            seed: 1,
            stdin: None,
        }
    }
}

impl Start {
    /// Argument 0, arguments and environment, as they lie on the stack.
    fn strings(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.args).chain(&self.env)
    }
}

/// A process that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The program.
    pub image: Arc<Executable>,
    pub code: Arc<CodeTable>,
    /// How it is started.
    pub start: Start,
    /// First address of the heap.
    pub heap_start: u64,
    /// First address of hart 0's stack.
    pub stack_start: u64,
    /// Stack pointer of hart 0.
    pub stack_pointer: u64,
    /// Bytes at the top of the stack, from the stack pointer on.
    stack: Vec<u8>,
}

impl Process {
    /// Lays out memory for a program.
    ///
    /// # Errors
    /// Windows that are too large or not whole pages; image, arguments and stack that do not fit.
    pub fn new(image: Executable, start: Start) -> Result<Process, Diagnostics> {
        let mut faults = Diagnostics::default();
        let mut fault = |message: String| faults.push(Diagnostic::nowhere(&start.name, message));
        let Windows { memory_bytes, pm_bytes } = start.windows;
        for (what, bytes, max) in
            [("memory", memory_bytes, MEMORY_MAX_BYTES), ("persistent memory", pm_bytes, PM_MAX_BYTES)]
        {
            if bytes > max || bytes % PAGE_BYTES != 0 {
                fault(format!("{what} of {bytes} bytes: expected whole pages of {PAGE_BYTES} bytes, at most {max}"));
            }
        }
        let heap_start = page_up(image.end());
        let stack_start = memory_bytes.saturating_sub(page_up(start.stack_bytes.min(MEMORY_MAX_BYTES)));
        let args: u64 = start.strings().map(|text| text.len() as u64 + 9).sum();
        let stack_bytes = memory_bytes.saturating_sub(stack_start);
        if stack_start < heap_start {
            let end = heap_start / 1024;
            fault(format!(
                "the program ends at {end} KiB, and a stack of {} bytes has no room above",
                start.stack_bytes
            ));
        } else if args + 512 > stack_bytes / 2 {
            fault(format!("arguments and environment of {args} bytes do not fit on a stack of {stack_bytes} bytes"));
        }
        faults.into_result(())?;
        let code = image.segments.iter().filter(|s| s.executable).map(|s| (s.address, s.bytes.as_slice()));
        let code = Arc::new(CodeTable::new(code));
        let (stack_pointer, stack) = stack(&image, &start, memory_bytes);
        Ok(Process { image: Arc::new(image), code, start, heap_start, stack_start, stack_pointer, stack })
    }

    /// The bytes that memory begins with, and where they lie; everything else is zeros.
    pub fn contents(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let segments = self.image.segments.iter().map(|segment| (segment.address, segment.bytes.as_slice()));
        segments.chain([(self.stack_pointer, self.stack.as_slice())])
    }

    /// A memory with these contents.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::new(self.start.windows);
        for (address, bytes) in self.contents() {
            if let Some(place) = memory.slice_mut(address, bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        memory
    }
}

/// The stack pointer, and the bytes from there to `top`.
fn stack(image: &Executable, start: &Start, top: u64) -> (u64, Vec<u8>) {
    let mut strings = Vec::new();
    let mut offsets = Vec::new();
    for text in start.strings() {
        offsets.push(strings.len() as u64);
        // An argument ends at its first zero.
        strings.extend(text.bytes().take_while(|byte| *byte != 0).chain([0]));
    }
    let argc = 1 + start.args.len();
    let strings_at = top - (strings.len() as u64).next_multiple_of(16);
    let random_at = strings_at - 16;
    let auxiliary = [
        (tag::PHDR, image.headers.unwrap_or(0)),
        (tag::PHENT, PROGRAM_HEADER_BYTES),
        (tag::PHNUM, if image.headers.is_some() { image.header_count } else { 0 }),
        (tag::PAGESZ, PAGE_BYTES),
        (tag::ENTRY, image.entry),
        (tag::HWCAP, HWCAP),
        (tag::RANDOM, random_at),
        (0, 0),
    ];
    let mut words = vec![argc as u64];
    // Arguments and environment each end with a null pointer.
    for part in [&offsets[..argc], &offsets[argc..]] {
        words.extend(part.iter().map(|offset| strings_at + offset).chain([0]));
    }
    words.extend(auxiliary.iter().flat_map(|&(tag, value)| [tag, value]));
    let pointer = (random_at - 8 * words.len() as u64) & !15;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize((random_at - pointer) as usize, 0);
    let mut random = [0; 16];
    Pcg64::new(start.seed.into(), RANDOM_STREAM).fill_bytes(&mut random);
    bytes.extend(random);
    bytes.extend(strings);
    bytes.resize((top - pointer) as usize, 0);
    (pointer, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Executable {
        Executable {
            entry: 0x10000,
            segments: Vec::new(),
            functions: Vec::new(),
            headers: Some(0x10040),
            objects: vec![],
            header_count: 5,
        }
    }

    fn word(memory: &Memory, address: u64) -> u64 {
        u64::from_le_bytes(memory.load(address).unwrap())
    }

    #[test]
    fn the_stack_holds_arguments_the_environment_and_the_auxiliary_vector() {
        let args = vec!["--ops".to_owned(), "12".to_owned()];
        let env = vec!["A=7".to_owned(), "LANG=C".to_owned()];
        let start = Start { name: "hash".to_owned(), args, env, ..Start::default() };
        let process = Process::new(image(), start).unwrap();
        let (memory, sp) = (process.memory(), process.stack_pointer);
        assert_eq!((sp % 16, word(&memory, sp)), (0, 3));
        let text = |i: u64| memory.read(word(&memory, sp + 8 * i), 3).unwrap().to_vec();
        assert_eq!([text(1), text(2), text(3)], [*b"has", *b"--o", *b"12\0"]);
        assert_eq!([text(5), text(6)], [*b"A=7", *b"LAN"]);
        assert_eq!([4, 7].map(|i| word(&memory, sp + 8 * i)), [0, 0]);
        let auxiliary: Vec<(u64, u64)> =
            (0..8).map(|i| (word(&memory, sp + 64 + 16 * i), word(&memory, sp + 72 + 16 * i))).collect();
        assert_eq!(auxiliary[..6], [(3, 0x10040), (4, 56), (5, 5), (6, 4096), (9, 0x10000), (16, 0x112d)]);
        assert_eq!((auxiliary[6].0, auxiliary[7]), (25, (0, 0)));
        assert_ne!(memory.read(auxiliary[6].1, 16).unwrap(), [0; 16]);
    }

    #[test]
    fn what_does_not_fit_is_said_at_once() {
        let windows = Windows { memory_bytes: (64 << 10) + 1, pm_bytes: 1 << 50 };
        let errors = Process::new(image(), Start { windows, ..Start::default() }).unwrap_err();
        assert_eq!(errors.0.len(), 3, "{errors}");
    }
}
