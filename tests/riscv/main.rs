//! Programs of CPUs: what every instruction computes, what is refused and how, executables, system calls,
//! whole programs, persistent ones after power failures.

mod common;

mod checkpoints;
mod cluster;
mod core_regions;
mod counted;
mod crash;
mod dataflow;
mod ddio;
mod decoding;
#[path = "../persistency/decorated.rs"]
mod decorated;
mod encoding;
mod executables;
mod faults;
mod floats;
mod generated;
mod generator;
mod in_part;
mod integers;
mod isa;
mod light_wsp;
mod light_wsp_litmus;
mod liveness;
mod network;
mod optane;
mod peers;
mod power_failure;
mod programs;
mod qemu;
mod recovery;
mod regions;
mod repeats;
#[path = "../machine/same_outcomes.rs"]
mod same_outcomes;
mod saved_registers;
mod system_calls;
mod system_state;
mod timed;
mod visible;
mod workloads;
