//! Programs: PTX text, the dense IR it becomes, what each instruction means, and a reference executor.
//!
//! Knows no time and no machine. Both drivers (the functional one here, the timed SMs in `machine`) execute
//! the same [`ir::Inst`]s through the same [`warp::Warp`], so a value can never depend on which of them ran
//! it.

pub(crate) mod alu;
mod cfg;
mod dataflow;
pub mod fault;
pub mod functional;
pub mod host;
pub mod ir;
pub mod launch;
pub mod mangled;
pub mod memory;
pub mod ptx;
pub mod reduction;
pub mod regions;
pub mod semantics;
pub mod traced;
pub mod undetermined;
pub mod warp;
