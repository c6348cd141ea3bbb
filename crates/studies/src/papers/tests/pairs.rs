//! No ask is hollow: beside each stand the numbers of a machine that meets it and of one that misses it.
//!
//! Which asks there are is listed nowhere. A figure made of no run names all of its asks, each not
//! applicable, so that a new ask without such a pair fails here. The pairs are in the tests of each paper's
//! asks.

use std::collections::BTreeSet;

use crate::papers::{Ask, Figure, PAPERS, Paper, Request, Runs, Verdict};

/// An ask of a figure of two machines.
pub(in crate::papers) struct AskPair {
    figure: &'static str,
    /// What is wrong with the machine that misses it.
    wrong: &'static str,
    meets: Ask,
    misses: Ask,
}

/// The asks of a figure: `good` is a machine that meets them all. Each other machine is told in words, with
/// the beginning of the ask that it misses, and its own asks.
///
/// # Panics
/// Where no ask begins so, or several do.
pub(in crate::papers) fn pairs(
    figure: &'static str,
    good: &[Ask],
    wrong: &[(&'static str, &str, Vec<Ask>)],
) -> Vec<AskPair> {
    let find = |asks: &[Ask], begins: &str| {
        let found: Vec<&Ask> = asks.iter().filter(|ask| ask.text.starts_with(begins)).collect();
        assert_eq!(found.len(), 1, "{figure}: asks that begin with `{begins}` among {asks:?}");
        found[0].clone()
    };
    let pair = |(wrong, begins, asks): &(&'static str, &str, Vec<Ask>)| AskPair {
        figure,
        wrong,
        meets: find(good, begins),
        misses: find(asks, begins),
    };
    wrong.iter().map(pair).collect()
}

/// Figures and asks of a paper. A figure that needs no run counts by itself: one kernel is enough.
fn named(paper: &'static Paper) -> BTreeSet<(&'static str, &'static str)> {
    let all = Request { profile: "ci".to_owned(), ..Request::new(paper) };
    let of_figure = |figure: &'static Figure| {
        let counts_itself = (figure.runs)(&all).is_empty();
        let kernels = if counts_itself { all.kernels[..1].to_vec() } else { all.kernels.clone() };
        let finding = (figure.finding)(&Request { kernels, ..all.clone() }, &Runs::default());
        finding.asks.into_iter().map(move |ask| (figure.name, ask.text))
    };
    paper.figures.iter().flat_map(of_figure).collect()
}

#[test]
fn every_ask_is_met_by_one_machine_and_missed_by_another() {
    use crate::papers::{agpm, broi, lightwsp, lightwsp_cpu, scoped};
    let papers = [
        (&agpm::PAPER, agpm::ask::tests::pairs()),
        (&lightwsp::PAPER, lightwsp::ask::tests::pairs()),
        (&lightwsp_cpu::PAPER, lightwsp_cpu::ask::tests::pairs()),
        (&broi::PAPER, broi::ask::tests::pairs()),
        (&scoped::PAPER, scoped::ask::tests::pairs()),
    ];
    assert_eq!(papers.len(), PAPERS.len());
    for (paper, pairs) in papers {
        for AskPair { figure, wrong, meets, misses } in &pairs {
            let of = format!("{} {figure}: {}", paper.name, meets.text);
            assert_eq!(meets.text, misses.text, "{of}");
            assert_eq!(meets.verdict, Verdict::Met, "{of}: {}", meets.evidence);
            assert_eq!(misses.verdict, Verdict::NotMet, "{of}, where {wrong}: {}", misses.evidence);
        }
        let paired: BTreeSet<_> = pairs.iter().map(|pair| (pair.figure, pair.meets.text)).collect();
        assert_eq!(named(paper), paired, "{}: asks of the figures, and those with a pair", paper.name);
    }
}
