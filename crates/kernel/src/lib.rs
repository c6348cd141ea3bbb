//! Programs: PTX text, the dense IR it becomes, what each instruction means, and a reference executor.
//!
//! ```text
//!  text ─ ptx ─> ir: Program, Inst ─┬─ regions: boundaries and checkpoints added ─> ir
//!                                   └─ launch ─> warp ─ semantics ─> values        host: what a host program asks for
//! ```
//! | module | what it has |
//! |---|---|
//! | [`ptx`] | the front end: calls inlined, recursive functions as subroutines with a stack |
//! | [`ir`], [`semantics`], [`warp`], [`memory`] | instructions, their meaning, warps, addresses |
//! | [`launch`], [`host`], [`traced`] | grids and parameters; the host program's words; warps whose way a trace gives |
//! | [`tensor_map`] | tensors by descriptor, the tiles that bulk copies take of them |
//! | [`tensor_memory`] | what `tcgen05` sums in |
//! | [`cluster`] | addresses in other CTAs of a cluster, arrivals at its barrier |
//! | [`functional`] | the reference executor; races, reads of what nobody has written |
//! | [`regions`] | LightWSP's recoverable regions, a pass from IR to IR; restarts from checkpoints |
//! | [`undetermined`] | what no functional run can know of a kernel |
//!
//! Invariants: knows no time and no machine. Both drivers (the functional one here, the timed SMs in
//! `machine`) execute the same [`ir::Inst`]s through the same [`warp::Warp`], so a value can never depend on
//! which of them ran it.

pub(crate) mod alu;
mod cfg;
pub mod cluster;
mod dataflow;
pub mod fault;
pub mod functional;
pub mod host;
pub mod ir;
pub mod launch;
pub mod launch_control;
pub mod mangled;
pub mod memory;
pub mod ptx;
pub mod reduction;
pub mod regions;
pub mod semantics;
pub mod tensor_map;
pub mod tensor_memory;
pub mod traced;
pub mod undetermined;
pub mod warp;
