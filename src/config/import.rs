//! A machine file from the configuration of GPGPU-Sim (`gpgpusim.config`) and Accel-Sim (`trace.config`).
//!
//! The machine inherits from `titan-x`, our reading of SM6_TITANX: what a configuration does not say is as
//! there. Every option of the files comes out by name: as the source of the keys that it sets, as one that
//! simulations do not need, or as one without a counterpart. Units are converted once: cycles of a clock to
//! ns with three decimals. GPGPU-Sim's result latencies leave out 5 stages of its pipeline, which ours have.
//!
//! Source: option parsers and tested configurations of GPGPU-Sim 4; the options' own help. Left out: the
//! interconnect's file (`-inter_config_file`), `-gpgpu_mem_addr_mapping`, power and UVM.

mod map;
mod options;

use std::fmt::Write as _;

use crate::diagnostic::Diagnostics;
use options::Options;

/// The machine that an imported one starts from.
const BASE: &str = "titan-x";

/// Options that say how to simulate, report or debug, and nothing of a machine: their beginnings, and why.
const NOT_OF_A_MACHINE: [(&str, &str); 14] = [
    ("gpgpu_ptx_", "how GPGPU-Sim reads and executes programs"),
    ("gpgpu_stack_size_limit", "limits of the CUDA runtime"),
    ("gpgpu_heap_size_limit", "limits of the CUDA runtime"),
    ("gpgpu_runtime_", "limits and statistics of the runtime"),
    ("gpgpu_compute_capability_", "what programs may ask for"),
    ("gpgpu_ignore_resources_limitation", "a check that is always made here"),
    ("gpgpu_memlatency_stat", "statistics"),
    ("gpgpu_stat", "statistics"),
    ("enable_ptx_file_line_stats", "statistics"),
    ("visualizer", "output: `run --timeline` has it"),
    ("trace_enabled", "debugging"),
    ("trace_components", "debugging"),
    ("trace_sampling_core", "debugging"),
    ("gpgpu_deadlock_detect", "a deadlock is always found here"),
];

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The machine file.
    pub toml: String,
    /// Options that set keys.
    pub mapped: usize,
    /// Options that say nothing of a machine.
    pub ignored: usize,
    /// Options without a counterpart.
    pub unmapped: usize,
}

/// The machine called `name` of these files, each with its name and text; of an option that two files have
/// the later counts.
///
/// # Errors
/// Values that are not what their options take, each with its place.
pub fn import(name: &str, files: &[(String, String)]) -> Result<Import, Diagnostics> {
    let options = Options::read(files);
    let keys = map::keys(&options);
    let faults = options.faults();
    let listed: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    let mut toml = format!("# Imported by `durawarp config import {}`.\n", listed.join(" "));
    let _ = writeln!(toml, "# What these files do not say is as on {BASE}, NVM included.");
    let _ = writeln!(toml, "name = {name:?}\ndescription = {:?}\ninherits = {BASE:?}", listed.join(", "));
    // Keys come table by table, so that each heading is written once.
    let mut table = "";
    for (key, value, source) in &keys {
        let (its, name) = key.split_once('.').unwrap_or(("", key));
        if table != its {
            let _ = writeln!(toml, "\n[{its}]");
            table = its;
        }
        let _ = writeln!(toml, "{name} = {{ value = {value}, source = {source:?} }}");
    }
    // Used is what a mapping asked for: options of the simulator are told apart from those we lack.
    let mapped = options.all().filter(|option| option.used).count();
    let why = |name: &str| NOT_OF_A_MACHINE.iter().find(|(start, _)| name.starts_with(start)).map(|(_, why)| *why);
    let (ignored, unmapped): (Vec<_>, Vec<_>) =
        options.all().filter(|option| !option.used).partition(|option| why(&option.name).is_some());
    list(
        &mut toml,
        "Of no machine, so left out",
        ignored.iter().map(|o| format!("{o}: {}", why(&o.name).unwrap_or(""))),
    );
    list(&mut toml, "Without a counterpart here", unmapped.iter().map(ToString::to_string));
    list(&mut toml, "Lines that are no options", options.strays().map(str::to_owned));
    faults.into_result(Import { toml, mapped, ignored: ignored.len(), unmapped: unmapped.len() })
}

/// A list as comments.
fn list(out: &mut String, heading: &str, entries: impl Iterator<Item = String>) {
    let entries: Vec<String> = entries.collect();
    if !entries.is_empty() {
        let _ = writeln!(out, "\n# {heading} ({}):", entries.len());
    }
    for entry in entries {
        let _ = writeln!(out, "#   {entry}");
    }
}
