//! Each ask of the selector's decisions on made-up ones that meet it, that do not, and that are not whole.

use super::*;
use crate::papers::Verdict;
use crate::papers::tests::pairs::{AskPair, pairs as paired};

/// Every kernel as published, but for the reasons of the first `reasons` and the ways of the first
/// `ways`.
fn judged(reasons: usize, ways: usize) -> Vec<Judged> {
    let one = |(at, kernel): (usize, &crate::papers::agpm::kernels::PaperKernel)| Judged {
        kernel: kernel.name,
        reason: [if at < reasons { "f" } else { "b" }, "b"],
        way: [if at < ways { "through" } else { "past" }, "past"],
    };
    KERNELS.iter().enumerate().map(one).collect()
}

#[test]
fn six_kernels_may_differ_and_a_seventh_is_one_too_many() {
    let verdicts = |found: &[Judged]| reasons(found).iter().map(|ask| ask.verdict).collect::<Vec<_>>();
    use Verdict::{Met, NotApplicable, NotMet};
    assert_eq!(verdicts(&judged(6, 6)), [Met, Met]);
    assert_eq!(verdicts(&judged(7, 0)), [NotMet, Met]);
    assert_eq!(verdicts(&judged(0, 7)), [Met, NotMet]);
    assert_eq!(verdicts(&judged(0, 0)[..21]), [NotApplicable; 2]);
    assert!(reasons(&judged(1, 0))[0].evidence.starts_with("21 of 22; otherwise, with the"));
    assert!(reasons(&judged(1, 0))[0].evidence.ends_with(": SAD1 f (b)"));
}

/// A selector that always finds `b`, and goes past the caches, beside Table II.
fn always_b() -> Vec<Judged> {
    use crate::papers::agpm::published::PUBLISHED;
    let one = |kernel: &crate::papers::agpm::kernels::PaperKernel| {
        let of = |quantity| PUBLISHED.text("table2", kernel.name, quantity).unwrap();
        let way = if of("type") == "I" { "through" } else { "past" };
        Judged { kernel: kernel.name, reason: ["b", of("reason")], way: ["past", way] }
    };
    KERNELS.iter().map(one).collect()
}

pub(in crate::papers::agpm) fn pairs() -> Vec<AskPair> {
    let wrong = ["the most frequent reason", "the way that follows"]
        .map(|begins| ("the selector finds b whatever it counts", begins, reasons(&always_b())));
    assert!(wrong[0].2[1].evidence.starts_with("14 of 22"), "{:?}", wrong[0].2);
    paired("reasons", &reasons(&judged(0, 0)), &wrong)
}
