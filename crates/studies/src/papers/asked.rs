//! What is asked of a paper, as it is typed.

use std::path::PathBuf;

use super::others;
use super::paper::Request;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_simulation::config::Settings;
use durawarp_workload::FlagBarrier;

/// A request in words.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Name of the paper.
    pub paper: String,
    /// Names of figures; none, or `all`, for all.
    pub figures: Vec<String>,
    /// The same of kernels.
    pub kernels: Vec<String>,
    /// Folder of programs of others, shown beside ours.
    pub programs: Option<PathBuf>,
    /// Profile of the workloads.
    pub profile: String,
    /// Machine; the paper's where none is named.
    pub machine: Option<String>,
    /// Changes, as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Only the paper's own reading of its text.
    pub no_readings: bool,
    /// Otherwise than the paper has it.
    pub flag_barrier: Option<FlagBarrier>,
    /// Otherwise than the paper has it.
    pub loop_log: Option<bool>,
    /// Otherwise than the paper has it.
    pub reload: Option<bool>,
    /// Seed of random contents.
    pub seed: u64,
}

impl Asked {
    /// The request.
    ///
    /// # Errors
    /// Every fault at once.
    pub fn request(&self) -> Result<Request, Diagnostics> {
        let mut faults = Diagnostics::default();
        let Settings { machine: set, schemes: scheme_set, params, faults: unread } = Settings::read(&self.set);
        // Which figures and kernels there are is known of a paper only.
        let chosen = super::find(&self.paper).map_err(Diagnostics::from);
        let chosen = chosen.and_then(|paper| Request::new(paper).only(&self.figures, &self.kernels));
        let request = chosen.map_err(|found| faults.0.extend(found.0)).ok();
        faults.0.extend(unread.0);
        for (name, _) in params {
            let message = format!("`params.{name}`: sizes follow from --profile here");
            faults.push(Diagnostic::nowhere("--set", message));
        }
        let programs = self.programs.as_deref().map(others::paths).transpose();
        let programs = programs.map_err(|found| faults.0.extend(found.0)).ok().flatten().unwrap_or_default();
        let Some(mut request) = request else { return Err(faults) };
        request.programs = programs;
        request.bracket = !self.no_readings;
        request.instrument.flag_barrier = self.flag_barrier.or(request.instrument.flag_barrier);
        request.instrument.loop_log = self.loop_log.or(request.instrument.loop_log);
        request.instrument.reload = self.reload.or(request.instrument.reload);
        let (profile, machine) = (self.profile.clone(), self.machine.clone().unwrap_or(request.machine));
        faults.into_result(Request { profile, machine, set, scheme_set, seed: self.seed, ..request })
    }
}
