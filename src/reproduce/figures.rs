//! What each figure shows: its tables, its asks, what to know.

mod counts;
mod hardware;
mod times;
mod traffic;

use super::Finding;
use super::figure::Figure;
use super::measured::Runs;
use super::plan::Request;

/// A figure from the runs of a request.
pub fn finding(figure: Figure, request: &Request, runs: &Runs<'_>) -> Finding {
    let mut finding = match figure {
        Figure::Fig3 => times::static_paths(request, runs),
        Figure::Fig7 => times::every_scheme(request, runs),
        Figure::Fig4 => counts::degrees(request, runs),
        Figure::Table2 => counts::accesses(request, runs),
        Figure::Fig5 => traffic::bytes(request, runs),
        Figure::Table3 => hardware::rules(),
        Figure::Overheads => hardware::sizes(),
    };
    let sized = matches!(figure, Figure::Table3 | Figure::Overheads) || request.profile == "paper";
    if !sized {
        finding.notes.push(format!("sizes are those of profile `{}`, not the paper's", request.profile));
    }
    finding
}
