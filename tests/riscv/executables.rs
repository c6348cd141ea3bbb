//! Files that are executables and files that are not.

use durawarp::riscv::elf::{self, PIE_BASE};
use proptest::prelude::*;

const COUNTER: &[u8] = include_bytes!("../../workloads/riscv/counter.elf");
const MEMORY: u64 = 1 << 20;

/// The file with some bytes replaced.
fn with(changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = COUNTER.to_vec();
    for (at, change) in changes {
        bytes[*at..at + change.len()].copy_from_slice(change);
    }
    bytes
}

/// What is wrong with a file, a line a fault.
fn faults(bytes: &[u8]) -> String {
    elf::load("counter.elf", bytes, MEMORY).expect_err("an executable that does not run").to_string()
}

/// Where the program header of a type begins.
fn header(kind: u32) -> usize {
    let count = u16::from_le_bytes([COUNTER[56], COUNTER[57]]);
    let at = |i: u16| 64 + 56 * usize::from(i);
    let found = (0..count).map(at).find(|&at| COUNTER[at..at + 4] == kind.to_le_bytes());
    found.expect("a header of this type")
}

#[test]
fn an_executable_has_code_data_an_entry_and_symbols() {
    let image = elf::load("counter.elf", COUNTER, MEMORY).unwrap();
    assert_eq!(image.segments.iter().filter(|segment| segment.executable).count(), 1);
    assert_eq!(image.symbol(image.entry), Some(("_start".to_owned(), 0)));
    assert_eq!(image.symbol(image.entry + 2), Some(("_start".to_owned(), 2)));
    assert_eq!(image.symbol(0), None);
    assert!(image.functions.iter().any(|function| function.name == "main" && function.bytes > 0));
    assert!(image.end() < MEMORY && image.header_count > 0);
    // Data by the object that they lie in: an address that is in none is a number.
    let object = image.objects.iter().find(|object| object.bytes >= 8).unwrap();
    let (name, address) = (&object.name, object.address);
    assert_eq!(image.data_name(address), format!("`{name}` ({address:#x})"));
    assert_eq!(image.data_name(address + 4), format!("`{name}+0x4` ({:#x})", address + 4));
    assert_eq!(image.data_name(image.entry), format!("{:#x}", image.entry));
    assert_eq!((image.code_name(image.entry + 2).as_str(), image.code_name(8).as_str()), ("_start+0x2", "0x8"));
}

#[test]
fn what_is_no_riscv_executable_is_named() {
    assert!(faults(b"#!/bin/sh\n").starts_with("counter.elf: not an ELF executable (riscv64-linux-gnu-gcc"));
    assert!(faults(b"").contains("not an ELF executable"));
    assert!(faults(&COUNTER[..40]).contains("a damaged ELF file"));
    let machine = faults(&with(&[(18, &[62, 0])]));
    assert!(machine.contains("a program for 64-bit x86, not for 64-bit RISC-V"), "{machine}");
    let machine = faults(&with(&[(18, &[77, 1])]));
    assert!(machine.contains("a program for 64-bit machine 333"), "{machine}");
    assert!(faults(&with(&[(16, &[1, 0])])).contains("an object file: it was not linked"));
}

#[test]
fn what_cannot_be_loaded_is_told_all_at_once() {
    const PT_INTERP: [u8; 4] = 3u32.to_le_bytes();
    let load = header(1);
    let gnu_stack = header(0x6474_e551);
    let dynamic = with(&[(gnu_stack, &PT_INTERP)]);
    assert!(faults(&dynamic).contains("dynamically linked: there is no loader of libraries (link with -static)"));
    // It is also moved far up, and made writable.
    let both = with(&[(gnu_stack, &PT_INTERP), (load + 16, &(1u64 << 40).to_le_bytes())]);
    let both = faults(&both);
    assert!(both.contains("dynamically linked") && both.contains("outside memory, 0x1000 to 0xfffff"), "{both}");
    let code = (0..4).map(|i| load + 56 * i).find(|at| COUNTER[at + 4] == 5).expect("code");
    assert!(faults(&with(&[(code + 4, &[7])])).contains("holds code and is writable"));
    assert!(faults(&with(&[(24, &[1])])).contains("is not in code"));
    let small = elf::load("counter.elf", COUNTER, 0x1_0800).unwrap_err().to_string();
    assert!(small.contains("outside memory") && small.contains("raise memory_mb"), "{small}");
}

#[test]
fn a_static_pie_lies_at_its_base() {
    const PT_DYNAMIC: [u8; 4] = 2u32.to_le_bytes();
    // The same file as ET_DYN, with an empty dynamic section where its stack header was.
    let stack = header(0x6474_e551);
    let entry = u64::from_le_bytes(COUNTER[24..32].try_into().unwrap());
    let image = elf::load("counter.elf", &with(&[(16, &[3, 0]), (stack, &PT_DYNAMIC)]), MEMORY).unwrap();
    assert_eq!(image.entry, entry + PIE_BASE);
    assert!(faults(&with(&[(16, &[3, 0])])).contains("a shared object"));
}

#[test]
fn a_file_cut_anywhere_is_told_or_runs() {
    for length in (0..COUNTER.len()).step_by(7) {
        let _ = elf::load("counter.elf", &COUNTER[..length], MEMORY);
    }
}

#[test]
fn a_segment_that_begins_behind_the_headers_does_not_hold_them() {
    // The second header begins far behind the table of headers and is as long as 64 bits allow.
    let mut bytes = COUNTER.to_vec();
    (bytes[159], bytes[135]) = (150, 106);
    let found = elf::load("counter.elf", &bytes, MEMORY);
    assert!(found.as_ref().is_err_and(|faults| !faults.0.is_empty()), "{found:?}");
}

proptest! {
    #[test]
    fn a_damaged_file_is_told_or_runs(changes in prop::collection::vec((0..600usize, any::<u8>()), 1..8)) {
        let mut bytes = COUNTER.to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        if let Ok(image) = elf::load("counter.elf", &bytes, MEMORY) {
            // What comes through can be laid out and run, whatever it does then.
            let windows = durawarp::riscv::memory::Windows { memory_bytes: MEMORY, pm_bytes: 4096 };
            let start = durawarp::riscv::process::Start { windows, stack_bytes: 8192, ..Default::default() };
            if let Ok(process) = durawarp::riscv::process::Process::new(image, start) {
                let options = durawarp::riscv::functional::Options { harts: 2, instructions: 5000, ..Default::default() };
                let _ = durawarp::riscv::functional::run(&process, process.memory(), &options);
            }
        }
    }
}
