//! Each ask on made-up numbers that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict::{self, Met, NotApplicable, NotMet};
use crate::papers::lightwsp::ask::tests::shared;
use crate::papers::tests::pairs::{AskPair, pairs as paired};

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

fn bars(overheads: &[f64]) -> Bars {
    Bars(overheads.iter().map(|&overhead| (String::new(), Some(overhead))).collect())
}

/// What this paper's figures ask beside what the port asks as well.
fn own() -> Vec<AskPair> {
    let systems_of = |values: [f64; 4]| systems(values.map(Some));
    let free = systems_of([0.0; 4]);
    let fig7 = [
        ("no scheme costs anything", "Capri's overhead", free.clone()),
        ("no scheme costs anything", "LightWSP's overhead is half", free.clone()),
        ("no scheme costs anything", "with 32 GB/s", free),
    ];
    let programs = |qsim, lattice| [("qsim", Some(qsim)), ("lattice", Some(lattice))];
    let of_ideal = |qsim, lattice, psp, own| ideal(&programs(qsim, lattice), 9, [Some(psp), Some(own)]);
    let uncached = of_ideal(0.03, 0.03, 0.03, 0.03);
    let fig9 = [
        ("the DRAM cache saves nothing", "the ideal PSP is slower", uncached.clone()),
        ("the DRAM cache saves nothing", "these lose", uncached.clone()),
        ("the DRAM cache saves nothing", "libquantum's", uncached),
    ];
    let fig10 = [("neither costs anything", "cWSP's overhead", vec![speculative(Some(0.0), Some(0.0))])];
    let stale = |fewer: [f64; 3]| vec![misses(fewer.map(Some), 9)];
    let fig14 = [("a policy evicts as stale loads do", "each policy", stale([0.0; 3]))];
    let fig16 = [("threads do not contend", "the overhead rises", vec![threads(&bars(&[0.1; 4]))])];
    let of_reserve = |values: &[f64]| vec![contended(Some(values.to_vec()))];
    let in_line = [("each thread waits for all others", "reserve costs", of_reserve(&[0.13, 0.3, 0.6, 1.2]))];
    let bound = |share| vec![within_bounds(Some(("is (acked), its paths".to_owned(), share)))];
    let acks = |most| vec![hidden_acks(&[("is", 0.8, 0.9), ("mg", 2.5, most)])];
    [
        paired("fig7", &systems_of([0.505, 0.081, 0.09, 0.2]), &fig7),
        paired(
            "fig8",
            &[hidden(Some(0.893), Some(0.999))],
            &[("neither hides anything", "LightWSP hides", vec![hidden(Some(0.0), Some(0.0))])],
        ),
        paired("fig9", &of_ideal(1.6, 0.4, 0.512, 0.03), &fig9),
        paired("fig10", &[speculative(Some(0.057), Some(0.085))], &fig10),
        paired("fig14", &stale([0.1262, 0.1798, 0.1805]), &fig14),
        paired("fig16", &[threads(&bars(&[0.1, 0.2, 0.3, 0.4]))], &fig16),
        paired("fig16", &of_reserve(&[0.13, 0.14, 0.14, 0.14]), &in_line),
        paired("limits", &bound(0.98), &[("paths carry more than they do", "no run does more", bound(1.3))]),
        paired("limits", &acks(2.5), &[("an exchange takes as long as a region", "serial ACKs", acks(0.29))]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(in crate::papers) fn pairs() -> Vec<AskPair> {
    let figures = ["fig7", "fig8", "fig11", "fig12", "fig13", "table2", "fig15", "fig16", "fig17", "fig18", "g3"];
    figures.into_iter().map(shared).chain([own()]).flatten().collect()
}

#[test]
fn systems_as_published_meet_every_ask_and_each_can_be_missed() {
    let of = |values: [f64; 4]| verdicts(&systems(values.map(Some)));
    assert_eq!(of([0.505, 0.081, 0.09, 0.2]), [Met; 3]);
    assert_eq!(of([0.18, 0.081, 0.09, 0.05]), [NotMet, Met, Met], "twice is not more than twice");
    assert_eq!(of([0.505, 0.044, 0.09, 0.2]), [Met, NotMet, Met]);
    assert_eq!(of([0.5, 0.081, 0.09, 0.26]), [Met, Met, NotMet]);
    assert_eq!(of([0.5, 0.081, 0.09, 0.04]), [Met, Met, NotMet], "a fast path does not do away with boundaries");
    let asks = systems([None, Some(0.081), Some(0.09), None]);
    assert_eq!(verdicts(&asks), [NotApplicable, Met, NotApplicable]);
    assert_eq!(asks[2].evidence, "not run whole: Capri, Capri at 32 GB/s");
}

#[test]
fn who_hides_more_and_who_differs_by_how_much() {
    assert_eq!([hidden(Some(0.893), Some(0.999)).verdict, hidden(Some(0.9), Some(0.9)).verdict], [Met, NotMet]);
    let of = |cwsp| speculative(Some(cwsp), Some(0.085)).verdict;
    assert_eq!([of(0.057), of(0.085), of(0.028), of(0.029)], [Met, NotMet, NotMet, Met]);
    assert_eq!(speculative(None, Some(0.085)).verdict, NotApplicable);
}

#[test]
fn the_ideal_psp_is_judged_where_the_base_has_hits() {
    let programs = |qsim, lattice| [("qsim", qsim), ("lattice", lattice)];
    let of = |qsim, hits, psp| verdicts(&ideal(&programs(qsim, Some(0.4)), hits, [Some(psp), Some(0.03)]));
    assert_eq!(of(Some(1.6), 1, 0.512), [Met, Met, Met]);
    assert_eq!(of(Some(0.4), 1, 0.03), [NotMet, NotMet, NotMet]);
    assert_eq!(of(None, 1, 1.1), [Met, NotMet, NotApplicable]);
    assert_eq!(of(Some(1.6), 0, 0.512), [NotApplicable; 3]);
    assert_eq!(verdicts(&ideal(&programs(Some(1.6), None), 1, [None, None])), [NotApplicable; 3]);
}

#[test]
fn overheads_rise_with_threads_and_not_with_contention() {
    assert_eq!([threads(&bars(&[0.1, 0.2])).verdict, threads(&bars(&[0.1, 0.1])).verdict], [Met, NotMet]);
    let of = |values: &[f64]| contended(Some(values.to_vec())).verdict;
    assert_eq!([of(&[0.13, 0.179]), of(&[0.13, 0.181]), of(&[0.0, 0.0])], [Met, NotMet, NotMet]);
    assert_eq!(contended(None).verdict, NotApplicable);
}

#[test]
fn misses_are_judged_where_victims_conflicted() {
    let of = |fewer: [f64; 3], conflicts| misses(fewer.map(Some), conflicts).verdict;
    assert_eq!([of([0.1; 3], 1), of([0.1, 0.1, 0.19], 1), of([0.1; 3], 0)], [Met, NotMet, NotApplicable]);
    assert_eq!(misses([None; 3], 1).verdict, NotApplicable);
}

#[test]
fn no_run_is_above_its_bounds_and_serial_acks_are_hidden_or_not() {
    let of = |share| within_bounds(Some(("is (acked), serial ACKs".to_owned(), share))).verdict;
    assert_eq!([of(0.98), of(1.0), of(1.001), within_bounds(None).verdict], [Met, Met, NotMet, NotApplicable]);
    assert_eq!([of(0.5), of(0.49)], [Met, NotApplicable], "what is far from its bounds shows nothing of them");
    let of = |most| hidden_acks(&[("is", 0.8, 0.9), ("mg", 2.5, most)]);
    assert_eq!([of(2.5).verdict, of(0.29).verdict, hidden_acks(&[]).verdict], [Met, NotMet, NotApplicable]);
    assert_eq!(of(0.29).evidence, "instructions a cycle of a core at most: mg 0.29 of 2.50");
}
