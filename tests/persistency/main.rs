//! Persistency schemes on whole machines, and what the crash oracle says of them and of faults built into
//! them.

#[path = "../machine/bench_machine/mod.rs"]
mod bench_machine;
#[path = "../workload/workload_common.rs"]
mod workload_common;

mod bulk_regions;
mod config;
mod crash;
mod crash_regions;
mod decorated;
mod delegated;
mod delegated_mutants;
mod digests;
mod epoch_tag_mutants;
mod instructions;
mod launches_heard;
mod light_wsp;
mod light_wsp_mutants;
mod light_wsp_random;
mod litmus;
mod mutants;
mod oracle;
mod oracle_machine;
mod ordered_persists;
mod persistence;
mod schemes;
mod scoped_barriers;
mod scoped_visibility;
mod verb_mutants;
mod waits;
