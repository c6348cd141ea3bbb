//! What is asked of a paper: which figures and kernels, on which machine, at which size.

use super::Paper;
use super::figure::{Figure, PAPER_SIZES};
use crate::config::Override;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Diagnostics;
use crate::workload::FlagBarrier;
use crate::workload::Overrides;

/// What is to be reproduced, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// Of which paper.
    pub paper: &'static Paper,
    /// Figures, each once, in the paper's order.
    pub figures: Vec<&'static Figure>,
    /// Of [`Paper::kernels`], each once, in the paper's order.
    pub kernels: Vec<&'static str>,
    /// Profile of the workloads.
    pub profile: String,
    /// Machine: a name or a file.
    pub machine: String,
    /// Changes to the machine.
    pub set: Vec<Override>,
    /// Changes to schemes.
    pub scheme_set: Vec<Override>,
    /// Seed of random contents.
    pub seed: u64,
    /// How undo logging is done, otherwise than the manifests say.
    pub instrument: Overrides,
    /// Figures are made of the paper's other readings too.
    pub bracket: bool,
}

impl Request {
    /// Everything of a paper, as published.
    pub fn new(paper: &'static Paper) -> Self {
        Request {
            paper,
            figures: paper.figures.iter().collect(),
            kernels: paper.kernels.to_vec(),
            profile: PAPER_SIZES.to_owned(),
            machine: paper.machine.to_owned(),
            set: Vec::new(),
            scheme_set: Vec::new(),
            seed: 0,
            instrument: paper.instrument,
            bracket: true,
        }
    }

    /// These figures and kernels alone; no name, or `all`, is every one.
    ///
    /// # Errors
    /// Every name that the paper does not have, with the nearest.
    pub fn only(self, figures: &[String], kernels: &[String]) -> Result<Self, Diagnostics> {
        let mut faults = Diagnostics::default();
        let names: Vec<&str> = self.paper.figures.iter().map(|figure| figure.name).collect();
        let figures = chosen("figure", figures, &names, &mut faults);
        let kernels = chosen("kernel", kernels, self.paper.kernels, &mut faults);
        let figures = self.paper.figures.iter().filter(|figure| figures.contains(&figure.name)).collect();
        faults.into_result(Request { figures, kernels, ..self })
    }

    /// The sizes are those of the paper.
    pub(crate) fn has_paper_sizes(&self) -> bool {
        self.profile == PAPER_SIZES
    }

    /// In words: name and value of each setting.
    pub fn settings(&self) -> Vec<(String, String)> {
        let changes = |set: &[Override]| match set {
            [] => "none".to_owned(),
            set => set.iter().map(|over| format!("{}={}", over.key, over.value)).collect::<Vec<_>>().join(", "),
        };
        let said = |word: Option<String>| word.unwrap_or_else(|| "as the manifests say".to_owned());
        let barrier = self.instrument.flag_barrier.map(|of| {
            let named = FlagBarrier::ALL.iter().find(|(_, other)| *other == of);
            named.map_or("", |(name, _)| name).to_owned()
        });
        let pairs = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("machine", self.machine.clone()),
            ("changes to it", changes(&self.set)),
            ("changes to schemes", changes(&self.scheme_set)),
            ("profile", self.profile.clone()),
            ("seed", self.seed.to_string()),
            ("every update is logged", said(self.instrument.loop_log.map(|all| all.to_string()))),
            ("barrier behind the flag", said(barrier)),
            ("kernels", self.kernels.join(", ")),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Those of `names` that are asked for, in their order and in any case of letters.
fn chosen(what: &str, asked: &[String], names: &[&'static str], faults: &mut Diagnostics) -> Vec<&'static str> {
    let is = |name: &str, asked: &String| asked == "all" || asked.eq_ignore_ascii_case(name);
    for unknown in asked.iter().filter(|asked| *asked != "all" && !names.iter().any(|name| is(name, asked))) {
        let option = if what == "figure" { "--figure" } else { "--kernels" };
        let message = format!("the paper has no {what} `{unknown}`; it has {}", names.join(", "));
        faults.push(Diagnostic::nowhere(option, message).with_nearest(unknown, names.iter().copied()));
    }
    let wanted = |name: &&&'static str| asked.is_empty() || asked.iter().any(|asked| is(name, asked));
    names.iter().filter(wanted).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::agpm;
    use super::*;

    fn only(figures: &[&str], kernels: &[&str]) -> Result<Request, Diagnostics> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Request::new(&agpm::PAPER).only(&owned(figures), &owned(kernels))
    }

    #[test]
    fn every_figure_has_its_name_and_all_is_every_one_once() {
        for figure in agpm::PAPER.figures {
            assert_eq!(only(&[figure.name], &[]).unwrap().figures[0].title, figure.title);
        }
        assert_eq!(only(&["fig7", "all", "fig3"], &[]).unwrap().figures.len(), agpm::PAPER.figures.len());
        assert_eq!(only(&["fig3"], &["atax2", "SAD1", "ATAX2"]).unwrap().kernels, ["SAD1", "ATAX2"]);
    }

    #[test]
    fn unknown_names_are_told_all_at_once_with_the_nearest() {
        let faults = only(&["fig3", "figg5"], &["ATAX3"]).unwrap_err().to_string();
        for word in ["`figg5`", "did you mean `fig5`?", "`ATAX3`", "did you mean `ATAX"] {
            assert!(faults.contains(word), "no {word} in {faults}");
        }
    }
}
