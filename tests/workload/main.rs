//! Workloads: their manifests, contents, references, instrumentation and regions, and experiments made of them.

#[path = "../cli/cli_common.rs"]
mod cli_common;
mod regions_common;
mod workload_common;

mod bplus_tree;
mod builtin;
mod contents;
mod cuda;
mod experiment;
mod faults;
mod host;
mod instrument;
mod instrument_faults;
mod margins;
mod races_beside;
mod readme;
mod reduce;
mod regions;
mod regions_resume;
mod repeats;
mod riscv;
mod streams;
mod surfaces;
mod tensors;
mod textures;
mod undetermined;
mod validity;
mod verify;
