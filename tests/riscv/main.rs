//! Programs of CPUs: what every instruction computes, what is refused and how, executables, system calls,
//! whole programs.

mod common;

mod decoding;
mod executables;
mod faults;
mod floats;
mod integers;
mod programs;
mod qemu;
mod system_calls;
