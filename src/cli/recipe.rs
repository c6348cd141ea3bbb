//! From what is typed about machine, workload and scheme to the recipe of an experiment.

use durawarp::diagnostic::Diagnostic;
use durawarp::run::{AnyExperiment, Experiment, Recipe};
use durawarp::sweep::host::Memory;
use durawarp::workload::{Mode, Overrides, Workload};

use super::args::Subject;
use super::exit::Stop;

/// The profile where many runs or much judging follow and none is named: small.
pub(super) const SMALL: &str = "ci";

/// The experiment that a command line names; the faults of machine, workload and scheme at once.
pub(super) fn experiment(
    workload: &str,
    scheme: Option<&str>,
    subject: &Subject,
    default_profile: Option<&str>,
) -> Result<AnyExperiment, Stop> {
    Ok(whole_recipe(workload, scheme, subject, default_profile).build_any()?)
}

/// The recipe of an experiment that a command line names.
pub(super) fn whole_recipe(
    workload: &str,
    scheme: Option<&str>,
    subject: &Subject,
    default_profile: Option<&str>,
) -> Recipe {
    let mut recipe = recipe(workload, subject, default_profile);
    if let Some(scheme) = scheme {
        recipe = recipe.scheme(scheme);
    }
    recipe.changes(&subject.set)
}

/// What is typed about machine and workload, but for `--set`.
pub(super) fn recipe(workload: &str, subject: &Subject, default_profile: Option<&str>) -> Recipe {
    let Subject { instrument: mode, flag_barrier, loop_log, reload, seed, persistent, ref machine, .. } = *subject;
    let mut recipe = Experiment::of(workload).seed(seed).persistent(persistent).args(&subject.program_args);
    if let Some(machine) = machine {
        recipe = recipe.machine(machine);
    }
    recipe = recipe.most_bytes(Memory::of_host().total_bytes);
    if let Some(kernels) = &subject.kernels {
        recipe = recipe.set("kernels", kernels);
    }
    if let Some(opcodes) = &subject.opcodes {
        recipe = recipe.set("opcodes", opcodes.display());
    }
    recipe = match (&subject.profile, default_profile) {
        (Some(asked), _) => recipe.profile(asked),
        (None, Some(default)) => recipe.profile_if_any(default),
        (None, None) => recipe,
    };
    for text in &subject.input {
        recipe = match text.split_once('=') {
            Some((buffer, file)) => recipe.input(buffer, file),
            None => recipe.fault(Diagnostic::nowhere("--input", format!("expected BUFFER=FILE; got `{text}`"))),
        };
    }
    let mut instrument = Overrides { mode, flag_barrier, loop_log, reload };
    match subject.program.as_ref().map(|paper| durawarp::papers::find(paper)) {
        None => {}
        Some(Ok(paper)) => {
            // A workload that does not load is told by the recipe.
            let of_manifest = Workload::load(workload).map_or(Mode::None, |workload| workload.instrument());
            instrument = instrument.or(paper.instrument.of_manifest(of_manifest));
        }
        Some(Err(fault)) => recipe = recipe.fault(fault),
    }
    recipe.instrument(instrument)
}
