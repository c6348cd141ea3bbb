//! Programs of CPUs: static RISC-V executables of user mode, as data that a core of any timing executes.
//!
//! ```text
//!  file ──elf──> Executable ──process──> Process: code, first bytes of memory, registers of hart 0
//!                                      │
//!            instruction <─ decode     ├─> functional: harts in turn on one flat memory (the reference)
//!            semantics: pure           └─> a timed machine: its own memory, the same semantics and system calls
//!            syscalls: pure state machine over numbers, bytes read and bytes to write
//! ```
//!
//! Sources: The RISC-V Instruction Set Manual, volume I (RV64IMAFDC, Zicsr, Zifencei, Zihintpause), Zicbom
//! 1.0.1, Bit-Manipulation 1.0.0 (Zba, Zbb, Zbs), Zicond 1.0, the RISC-V ELF psABI, Linux's generic system
//! calls. Exceptions that trap (signals, paging) and privileged modes are not modelled; each file says what
//! it leaves out.
//!
//! What a machine keeps of a process while it runs can be saved (`durawarp_checkpoint`): instructions, states
//! of harts, and what its system calls see and change.
//!
//! Invariants: nothing here knows a machine, time, or the host; whatever a program holds or does, the result
//! is data (a [`fault::CpuFault`], a diagnostic) and not a panic.

pub mod code;
pub mod decode;
pub mod elf;
pub mod fault;
pub mod functional;
pub mod hart_state;
pub mod instruction;
pub mod memory;
pub mod process;
pub mod regions;
pub mod repeat;
pub mod semantics;
pub mod syscalls;
pub mod verbs;
