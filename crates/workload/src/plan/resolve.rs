//! From a manifest and a choice (profile, overrides, seed, input files) to a plan: every size known, every
//! buffer allocated and filled.
//!
//! Order: parameters, graphs, extents of the first launch, lengths, contents. A stage runs on what is sound
//! of the stages before it, so one run of it finds all the faults it can.

use std::sync::{Arc, OnceLock};

use super::allocate::{allocate, allocate_globals};
use super::program::Program;
use super::stage::Stage;
use super::{Choice, Demands, RunPlan};
use crate::data::graph::Csr;
use crate::data::random::Seeds;
use crate::manifest::Manifest;
use crate::manifest::source::{Folder, Programs};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_kernel::memory::Medium;

/// Makes a plan of plain launches. Its steps and conditions are not checked yet.
///
/// # Errors
/// Everything that is wrong with the choice, and with the manifest under that choice.
pub(crate) fn resolve(
    manifest: &Arc<Manifest>,
    programs: &Arc<Programs>,
    folder: &Folder,
    choice: &Choice,
    demands: Demands,
) -> Result<RunPlan, Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut stage = Stage {
        manifest,
        folder,
        frame: vec![0; manifest.names.slots()],
        seeds: Seeds { manifest: manifest.seed, run: choice.seed },
        graphs: vec![Csr::default(); manifest.graphs.len()],
        faults: &mut faults,
    };
    let profile = choice.profile.clone().unwrap_or_else(|| "default".to_owned());
    stage.params(&profile, &choice.params);
    // Wrong parameters would bring faults of everything that follows from them.
    stage.sound()?;
    stage.graphs();
    let extents = stage.extents_before_lengths();
    let lens = stage.lens(extents, &choice.inputs);
    stage.sound()?;
    // Before contents are made: they are what fills this host's memory.
    stage.fits(&lens, choice.most_bytes)?;
    // Extents that depend on lengths of buffers are known only now.
    stage.extents_after_lengths(extents);
    stage.extents_are_known(extents);
    stage.sound()?;
    let mut buffers = stage.contents(&lens, &choice.inputs);
    stage.textures(&mut buffers);
    stage.surfaces(&mut buffers);
    let volatile = if choice.persistent || demands.persistent { Medium::Nvm } else { Medium::Dram };
    let mut addresses = allocate(&mut stage, &mut buffers, volatile);
    let globals = allocate_globals(programs, &mut addresses, volatile);
    let const_banks = stage.const_banks(programs, &buffers, &globals);
    let frame = stage.frame;
    faults.into_result(())?;
    Ok(RunPlan {
        manifest: manifest.clone(),
        programs: programs.clone(),
        folder: folder.clone(),
        profile,
        seed: choice.seed,
        demands,
        altered: !choice.params.is_empty() || !choice.inputs.is_empty(),
        frame,
        buffers,
        addresses: Arc::new(addresses),
        globals,
        const_banks,
        program: Program::new(&manifest.steps),
        recovery: Program::new(&manifest.recovery.steps),
        settings: None,
        undo: OnceLock::new(),
        formed: OnceLock::new(),
    })
}
