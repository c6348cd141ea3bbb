//! Configuration goes in once: machines and schemes from names, files and overrides; every fault at once,
//! with its place.
//!
//! A machine file has a table for each component (`[l2]`), and in it that component's keys, either plain
//! (`slice_kb = 256`) or with the number's owner (`slice_kb = { value = 256, source = "..." }`). `inherits =
//! "NAME"` starts from another machine of its kind ([`Compute`]). What the components declare
//! ([`ComputeSpec::TABLES`]) is the schema. Scheme files (`scheme`) are read the same way, with a scheme's
//! parameters as their one table.

mod any_machine;
mod compute;
pub(crate) mod derived;
pub mod device;
pub mod explain;
pub mod import;
pub(crate) mod kind;
pub mod listing;
pub(crate) mod machine;
mod overrides;
pub mod presets;
pub(crate) mod scheme;
mod settings;

pub use any_machine::AnyMachine;
pub use compute::{Compute, ComputeSpec};
pub use durawarp_base::document::Override;
pub use kind::Kind;
pub use listing::Listing;
pub use machine::{CpuMachine, MachineConfig, has_tensor_cores, has_tensor_memory, has_warp_groups};
pub use overrides::{checked, is_of_a_scheme, only_of};
pub use scheme::SchemeConfig;
pub use settings::Settings;
