//! The words of a reproduction: a paper, its figures, what its text may mean, and what is asked of it.
//!
//! ```text
//! Paper ─┬─ Figure   runs(Request) -> what it needs      finding(Request, Runs) -> Finding: tables, asks, notes
//!        └─ Reading  changes of the machine: every figure is made under each too
//! Request            which figures and kernels of a paper, on which machine, at which size
//! ```
//! These lie in one file since each is said in terms of the others: a figure asks a request, which names a
//! paper.
//!
//! Why readings: a paper that gives a memory two latencies has not said what a write costs. Its machine takes
//! one reading, the others bracket each figure, and every ask is answered under each. Invariant: a reading is
//! not chosen because it meets an ask; each has a source of its own.

use super::ask::Ask;
use super::runs::{Run, Runs};
use super::table::FigureTable;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_plot::Figure as Drawing;
use durawarp_simulation::config::Override;
use durawarp_simulation::outcome::Outcome;
use durawarp_simulation::outcome::validity::Kind;
use durawarp_workload::FlagBarrier;
use durawarp_workload::Overrides;

/// A paper that can be reproduced.
#[derive(Debug)]
pub struct Paper {
    /// As typed, and the name of its page.
    pub name: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Its machine, unless another is named.
    pub machine: &'static str,
    /// What its figures show one by one, as it calls them, in its order: kernels or programs.
    pub kernels: &'static [&'static str],
    /// Its figures and tables.
    pub figures: &'static [Figure],
    /// Thousands of warp instructions of a workload at its profile `paper`, where that is known: which run
    /// begins first, and the time left.
    pub work: fn(&str) -> Option<u64>,
    /// How undo logging is done there, where that is not as the manifests say.
    pub instrument: Overrides,
    /// What the paper's text may mean besides what its machine takes it to mean: every figure is made of each
    /// too.
    pub readings: &'static [Reading],
}

/// One reading.
#[derive(Debug)]
pub struct Reading {
    /// What it is called.
    pub name: &'static str,
    /// Changes of the machine or of schemes, as they are typed behind `--set`. They come before those of a
    /// run; those of a scheme are for its runs alone.
    pub set: &'static [&'static str],
    /// Who reads it so.
    pub source: &'static str,
}

impl Reading {
    /// It decides about the same part of the machine, such as a medium, or the same scheme as a key.
    pub fn decides(&self, key: &str) -> bool {
        let table = key.split('.').next();
        self.set.iter().any(|change| change.split('.').next() == table)
    }
}

/// A figure or table of a paper.
#[derive(Debug)]
pub struct Figure {
    /// Its name, as typed.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What it needs; nothing where it is arithmetic.
    pub runs: fn(&Request) -> Vec<Run>,
    /// What it shows of the runs.
    pub finding: fn(&Request, &Runs<'_>) -> Finding,
    /// A picture of its tables, where they do not say it all.
    pub draw: Option<fn(&[FigureTable]) -> Drawing>,
}

/// What was found of a figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finding {
    /// Ours beside the published numbers.
    pub tables: Vec<FigureTable>,
    /// What was asked of it.
    pub asks: Vec<Ask>,
    /// Why nothing is asked: what is shown is published or arithmetic on published numbers, no measurement of
    /// ours.
    pub unmeasured: Option<&'static str>,
    /// What to know when reading it.
    pub notes: Vec<String>,
}

/// The profile that has a paper's sizes.
pub const PAPER_SIZES: &str = "paper";

fn is_undurable(outcome: &Outcome) -> bool {
    outcome.validity.iter().any(|caveat| caveat.kind == Kind::Undurable)
}

impl Figure {
    /// What is found of it, with what must be known of the sizes.
    pub fn found(&self, request: &Request, runs: &Runs<'_>) -> Finding {
        let mut finding = (self.finding)(request, runs);
        if !request.has_paper_sizes() && !(self.runs)(request).is_empty() {
            finding.notes.push(format!("sizes are those of profile `{}`, not the paper's", request.profile));
        }
        let of_figure = (self.runs)(request);
        let undurable = of_figure.iter().filter(|run| runs.outcome(run).is_some_and(is_undurable)).count();
        if undurable > 0 {
            finding.notes.push(format!(
                "in {undurable} of {} runs fences make nothing durable that the program takes for it: write-backs end at the L2 \
                 (persist.clwb), and `durawarp crash` finds what a power failure loses",
                of_figure.len()
            ));
        }
        finding
    }

    /// Its picture, where it has one.
    pub fn picture(&self, finding: &Finding) -> Option<Drawing> {
        (!finding.tables.is_empty()).then_some(())?;
        self.draw.map(|draw| draw(&finding.tables))
    }
}

/// What is to be reproduced, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// Of which paper.
    pub paper: &'static Paper,
    /// Figures, each once, in the paper's order.
    pub figures: Vec<&'static Figure>,
    /// Of [`Paper::kernels`], each once, in the paper's order.
    pub kernels: Vec<&'static str>,
    /// Programs of others: paths, for the figures that show some beside ours.
    pub programs: Vec<&'static str>,
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
            programs: Vec::new(),
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
        // What was run, then which program, then of which kernels.
        let mut pairs = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("machine", self.machine.clone()),
            ("changes to it", changes(&self.set)),
            ("changes to schemes", changes(&self.scheme_set)),
            ("profile", self.profile.clone()),
            ("seed", self.seed.to_string()),
            ("every update is logged", said(self.instrument.loop_log.map(|all| all.to_string()))),
            ("updates are loaded again", said(self.instrument.reload.map(|all| all.to_string()))),
            ("barrier behind the flag", said(barrier)),
            ("kernels", self.kernels.join(", ")),
        ];
        if !self.programs.is_empty() {
            let names: Vec<&str> = self.programs.iter().map(|path| super::others::name(path)).collect();
            pairs.push(("programs of others", names.join(", ")));
        }
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
