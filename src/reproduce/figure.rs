//! A figure or table of a paper: what it needs, what it shows. A row of data with functions, so that a paper is a table.

use super::request::Request;
use super::runs::{Run, Runs};
use super::{Ask, Table};
use crate::outcome::Outcome;
use crate::outcome::validity::Kind;
use crate::plot::Figure as Drawing;

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
    pub draw: Option<fn(&[Table]) -> Drawing>,
}

/// What was found of a figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finding {
    /// Ours beside the published numbers.
    pub tables: Vec<Table>,
    /// What was asked of it.
    pub asks: Vec<Ask>,
    /// Why nothing is asked: what is shown is published or arithmetic on published numbers, no measurement of ours.
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
