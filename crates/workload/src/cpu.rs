//! Programs of CPUs as workloads: a manifest that names a RISC-V executable, its arguments and its memory; or
//! the executable alone.
//!
//! ```toml
//! isa = { kind = "riscv", file = "hash.elf" }
//! program = { args = ["--ops", "OPS"], threads = "THREADS", memory_mb = 64, pm_mb = "PM_MB" }
//! verify = [{ ref = { kind = "exit_code", value = 0 } }, { ref = { kind = "stdout", text = "..." } }]
//! recovery = { args = ["--recover"] }
//! ```
//! | file | what it has |
//! |---|---|
//! | `manifest` | the manifest as data, and its keys |
//! | `argument` | an argument: a word, a value, a word with values in it |
//! | `read` | from a document, or from an executable alone, to a manifest |
//! | `program` | manifest and choice to a [`CpuProgram`]: what a run starts from |
//! | `judge` | what a run left against the manifest's checks |
//!
//! Invariant: as of other workloads, the same choice gives the same program on every host. Not here: the
//! machine; that a program has no more threads than the machine has harts is asked when they meet
//! ([`CpuProgram::fits`]).

mod argument;
mod judge;
mod manifest;
mod program;
mod read;

pub use judge::Ran;
pub(crate) use manifest::CpuManifest;
#[cfg(test)]
pub(crate) use manifest::shapes;
pub use program::{CpuCheck, CpuCheckKind, CpuProgram};
pub(crate) use read::{is_executable, is_of_a_cpu, of_document, of_executable};
