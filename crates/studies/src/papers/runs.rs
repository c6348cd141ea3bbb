//! A run that a figure needs, and the outcomes of those that were run.
//!
//! Invariant: a figure asks for a run and looks its outcome up by the same value.

use durawarp_simulation::outcome::Outcome;
use durawarp_workload::Overrides;

/// What tells a run from the others of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub workload: &'static str,
    pub scheme: &'static str,
    /// What is otherwise about it, in a word or two; empty where nothing is.
    pub about: String,
    /// Machine, where that is not the request's; the request's changes apply to it all the same.
    pub machine: Option<&'static str>,
    /// Every buffer lies in persistent memory, whatever the manifest says.
    pub in_nvm: bool,
    /// Changes of the machine, of the scheme (SCHEME.KEY=VALUE) or of the workload (params.NAME=VALUE), as
    /// they are typed behind `--set`. They come after those of the request.
    pub set: Vec<String>,
    /// How its program keeps undo logs, where that is not as the request has it.
    pub instrument: Overrides,
}

impl Run {
    /// A workload under a scheme as it is.
    pub fn new(workload: &'static str, scheme: &'static str) -> Self {
        let (about, set, instrument) = (String::new(), Vec::new(), Overrides::default());
        Run { workload, scheme, about, machine: None, in_nvm: false, set, instrument }
    }

    /// The same with something changed.
    #[must_use]
    pub fn with<'s>(mut self, about: &str, set: impl IntoIterator<Item = &'s str>) -> Self {
        self.about += &if self.about.is_empty() { about.to_owned() } else { format!(", {about}") };
        self.set.extend(set.into_iter().map(str::to_owned));
        self
    }

    /// What it is called.
    pub fn label(&self) -> String {
        let machine = self.machine.map_or_else(String::new, |machine| format!(" on {machine}"));
        let workload = super::others::name(self.workload);
        format!("{workload} {}{machine} {}", self.scheme, self.about).trim_end().to_owned()
    }
}

/// The outcomes of a plan.
#[derive(Debug, Default)]
pub struct Runs<'a> {
    runs: Vec<(&'a Run, &'a Outcome)>,
}

impl<'a> Runs<'a> {
    /// Runs with what came of each.
    pub fn new(runs: Vec<(&'a Run, &'a Outcome)>) -> Self {
        Runs { runs }
    }

    /// What came of a run, if it went well.
    pub fn outcome(&self, run: &Run) -> Option<&'a Outcome> {
        self.runs.iter().find(|(other, _)| *other == run).map(|(_, outcome)| *outcome)
    }
}
