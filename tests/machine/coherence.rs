//! Home slices with cores that are scripts, the OS and a memory controller: what cores see of lines, in which order,
//! and when. The scripts speak the protocol of `machine::coherence` and are no model of a core.

mod bench;
mod core;
mod durability;
mod faults;
mod l1;
mod latency;
mod log;
mod pressure;
mod races;
mod random;
