//! The GPU machine: latencies and throughputs of its parts, and whole machines.

#[path = "bench_machine/accounts.rs"]
mod accounts;
mod bench_machine;

mod any_size;
mod bulk_copies;
mod calls;
mod checkpoints;
mod clusters;
mod coherence;
mod combining_l1;
mod config;
mod cooperative;
mod counted;
mod datasheet_latency;
mod datasheet_memory;
mod datasheet_semantics;
mod datasheet_sm;
mod datasheet_tensor;
mod datasheet_throughput;
mod dram_cache;
mod faults;
mod gate;
mod l2_slice;
mod line_buffer;
mod litmus;
mod mappings;
mod memory_controller;
mod memory_pipeline;
mod occupancy;
mod optane;
mod persist_stalls;
mod policies;
mod products;
mod random_kernels;
mod registers;
mod replacement;
mod row_buffer;
mod same_outcomes;
mod same_results;
mod sampled;
mod streams;
mod traces;
mod triton;
mod unified_l1;
mod warp_groups;
