//! Each ask of counts on made-up ones that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict;
use crate::papers::tests::pairs::{AskPair, pairs as paired};

fn verdicts(asks: &[Ask]) -> Vec<Verdict> {
    asks.iter().map(|ask| ask.verdict).collect()
}

#[test]
fn published_counts_meet_their_own_asks_and_others_do_not() {
    let with = |change: &dyn Fn(&str, u64) -> u64| -> Vec<(&'static str, u64, u64)> {
        let count = |kernel: &str, quantity| PUBLISHED.number("table2", kernel, quantity).unwrap() as u64;
        KERNELS.iter().map(|k| (k.name, change(k.name, count(k.name, "log")), count(k.name, "all"))).collect()
    };
    use Verdict::{Met, NotApplicable, NotMet};
    assert_eq!(verdicts(&counts(&with(&|_, log| log), true)), [Met, Met, Met]);
    let one_off = with(&|name, log| if name == "ATAX2" { log + 1 } else { log });
    assert_eq!(verdicts(&counts(&one_off, true)), [NotMet, Met, Met]);
    let six_percent = with(&|name, log| if name == "2DCONV" { log * 106 / 100 } else { log });
    assert_eq!(verdicts(&counts(&six_percent, true)), [Met, Met, NotMet]);
    assert_eq!(verdicts(&counts(&one_off, false)), [NotApplicable; 3]);
    assert_eq!(verdicts(&counts(&one_off[..3], true)), [NotApplicable; 3]);
}

#[test]
fn degrees_must_match_the_two_lists() {
    let all = |coalesced: f64| -> Vec<(&'static str, f64)> {
        PUBLISHED
            .all()
            .filter(|row| row.experiment == "fig4")
            .map(|row| (row.kernel, if row.value == "1" { coalesced } else { 0.4 }))
            .collect()
    };
    assert_eq!(verdicts(&coalescing(&all(0.0))), [Verdict::Met, Verdict::Met]);
    assert_eq!(verdicts(&coalescing(&all(0.1))), [Verdict::NotMet, Verdict::Met]);
    assert_eq!(verdicts(&coalescing(&all(0.0)[..4])), [Verdict::Met, Verdict::NotApplicable]);
}

#[test]
fn localities_are_asked_of_the_first_reading() {
    let with = |first| localities(&[("home", first, 22), ("other", 22, 22)]).verdict;
    assert_eq!((with(18), with(17)), (Verdict::Met, Verdict::NotMet));
    assert_eq!(localities(&[("home", 2, 2)]).verdict, Verdict::NotApplicable);
}

#[test]
fn traffic_is_judged_by_direction_beside_kernels_without_locality() {
    let of = |b| verdicts(&traffic(Some(b), Some([[1.1, 1.3], [1.0, 1.25]])));
    assert_eq!(of([[1.3, 1.3], [1.1, 1.25]]), [Verdict::Met, Verdict::NotMet], "18 for 10 %; 4 for 4 %");
    assert_eq!(verdicts(&traffic(None, Some([[1.0; 2]; 2]))), [Verdict::NotApplicable; 2]);
}

/// Rows of Table II as published, with `change` of the number of localities and of the reason found.
fn as_published(change: impl Fn(&str, usize, Reason) -> (usize, Reason)) -> Vec<CountedRow> {
    let row = |kernel: &crate::papers::agpm::kernels::PaperKernel| {
        let published = Reason::of(PUBLISHED.text("table2", kernel.name, "reason").unwrap()).unwrap();
        let (localities, found) = change(kernel.name, 8, published);
        CountedRow { kernel: kernel.name, localities, reason: [found, published] }
    };
    KERNELS.iter().map(row).collect()
}

#[test]
fn rows_are_judged_of_all_kernels_in_the_papers_size() {
    let good = as_published(|_, near, reason| (near, reason));
    assert_eq!(verdicts(&rows(&good, true)), [Verdict::Met; 3]);
    assert_eq!(verdicts(&rows(&good, false)), [Verdict::NotApplicable; 3]);
    assert_eq!(verdicts(&rows(&good[..21], true))[1..], [Verdict::NotApplicable; 2]);
}

pub(in crate::papers::agpm) fn pairs() -> Vec<AskPair> {
    let published = |change: &dyn Fn(&str, u64) -> u64| -> Vec<(&'static str, u64, u64)> {
        let count = |kernel: &str, quantity| PUBLISHED.number("table2", kernel, quantity).unwrap() as u64;
        let of = |name| (name, change(name, count(name, "log")), change(name, count(name, "all")));
        KERNELS.iter().map(|kernel| of(kernel.name)).collect()
    };
    // Every kernel has one share of uncoalesced accesses.
    let coalesced = |share: [f64; 2]| -> Vec<(&'static str, f64)> {
        let rows = PUBLISHED.all().filter(|row| row.experiment == "fig4");
        rows.map(|row| (row.kernel, share[usize::from(row.value == "0")])).collect()
    };
    let fig4 = [
        ("each thread's access is one", "StreamTriad", coalescing(&coalesced([0.5, 0.5]))),
        ("all accesses are coalesced", "the 11 kernels", coalescing(&coalesced([0.0, 0.0]))),
    ];
    // A write-back is 10 % more out and 5 % more in, whatever the locality.
    let messages = Some([[1.1, 1.05], [1.0, 1.0]]);
    let thrashing = Some([[1.3, 1.2], [1.0, 1.0]]);
    let fig5 = ["what store+clwb moves more than nt-store from L1", "what store+clwb moves more than nt-store from L2"]
        .map(|begins| ("write-backs are messages, and nothing thrashes", begins, traffic(messages, messages)));
    let table2 = |found: &[(&'static str, u64, u64)], same: usize, rows_of: &[CountedRow]| {
        [counts(found, true), vec![localities(&[("first", same, 22)])], rows(rows_of, true)].concat()
    };
    let exact = published(&|_, count| count);
    let one_more = published(&|_, count| count + 1);
    let a_tenth = published(&|_, count| count * 11 / 10);
    let good = as_published(|_, near, reason| (near, reason));
    let always_b = as_published(|_, _, _| (0, Reason::B));
    let of_table2 = [
        ("each log has an access more", "`log` of ATAX1", table2(&one_more, 22, &good)),
        ("a tenth of the accesses is counted twice", "`all` of ATAX1", table2(&a_tenth, 22, &good)),
        ("a tenth of the accesses is counted twice", "`log` of Backprop1", table2(&a_tenth, 22, &good)),
        ("nothing has locality: zeros of four kernels", "the localities are zero", table2(&exact, 4, &good)),
        ("no count is near", "the eight localities", table2(&exact, 22, &always_b)),
        ("every kernel is of reason b", "the reason by the counts", table2(&exact, 22, &always_b)),
        ("every kernel goes past the caches", "the way by the counts", table2(&exact, 22, &always_b)),
    ];
    [
        paired("fig4", &coalescing(&coalesced([0.0, 0.4])), &fig4),
        paired("fig5", &traffic(thrashing, messages), &fig5),
        paired("table2", &table2(&exact, 22, &good), &of_table2),
    ]
    .into_iter()
    .flatten()
    .collect()
}
