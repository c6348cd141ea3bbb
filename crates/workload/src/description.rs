//! A resolved workload as plain data, for result files.

use std::collections::BTreeMap;

use super::manifest::buffers::{Role, Space};
use super::manifest::instrument::Settings;
use durawarp_base::document::Value;

/// A resolved workload as plain data.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Description {
    /// Name of the workload.
    pub workload: String,
    pub profile: String,
    /// The run's seed.
    pub seed: u64,
    /// Every parameter and its value.
    pub params: BTreeMap<String, Value>,
    /// Every buffer, in manifest order; those that instrumentation adds come last.
    pub buffers: Vec<BufferDescription>,
    /// What `[instrument]` made of the kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Settings>,
    /// How a program of CPUs is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramDescription>,
    /// What a trace has, in place of buffers and parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceDescription>,
}

/// How a program of CPUs is started.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProgramDescription {
    /// Arguments.
    pub args: Vec<String>,
    /// Its environment: variables as `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Threads that its manifest says.
    pub threads: u32,
    pub memory_bytes: u64,
    /// Bytes of its persistent memory.
    pub pm_bytes: u64,
}

/// A trace as plain data, for result files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TraceDescription {
    /// The list of its kernels.
    pub list: String,
    /// Launches that run.
    pub kernels: u64,
    /// How they were chosen; none where all run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Launches of the list that were not chosen.
    pub skipped: u64,
    /// CTAs of all launches.
    pub ctas: u64,
    /// Warp instructions of all launches, with those that labels add.
    pub warp_instructions: u64,
    /// Streams that kernels were launched in; they run one after another all the same.
    pub streams: u64,
    /// Persistent ranges by name: first address in the traced program, and bytes.
    pub persistent: BTreeMap<String, [u64; 2]>,
    /// Warp instructions that are timed as another opcode, for want of a unit or a time: `NAME as OTHER`.
    pub stood_in: BTreeMap<String, u64>,
    /// Warp instructions that a table of the user's has timed as another opcode: `NAME as KNOWN`.
    pub renamed: BTreeMap<String, u64>,
    /// Warps without instructions; each executes an exit that the trace does not have.
    pub empty_warps: u64,
    /// Warps with instructions and no exit; each executes one that the trace does not have.
    pub unended_warps: u64,
    /// Launches whose barriers in shared memory order nothing, as the trace does not say what these count.
    pub barriers_unknown: u64,
    /// Launches with clusters whose CTAs begin one by one, as the trace has not all of them.
    pub clusters_unknown: u64,
    /// Lines of the list that are neither a kernel nor a copy, by their first word.
    pub ignored_lines: BTreeMap<String, u64>,
}

/// A buffer of a resolved workload.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BufferDescription {
    pub name: String,
    pub elements: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Where it lies.
    pub space: Space,
    /// What it is for.
    pub role: Role,
    /// First address; 0 in the constant bank.
    pub address: u64,
    /// The buffer it logs.
    pub undo_log_of: Option<String>,
}
