//! The simulated GPU: streaming multiprocessors, crossbar, L2 slices, memory controllers, command processor.
//!
//! ```text
//!  command processor ──CTAs──> SM 0..n  [schedulers, LSU, L1D, shared memory]
//!         │ host reads/writes     │ requests                ▲ replies
//!         └───────────────> crossbar ports (injection here, ejection there)
//!                                 ▼                         │
//!                          L2 slices 0..m ──reads/writes──> memory controllers (DRAM and NVM)
//! ```
//! Components meet only through [`msg`]; values travel with the messages. Kernels come from [`crate::kernel`].

pub mod address;
pub mod cache;
pub mod coalescer;
pub mod crossbar;
pub mod media;
pub mod memory_controller;
pub mod msg;
pub mod scheduler;
pub mod shared_memory;
pub mod spec;
