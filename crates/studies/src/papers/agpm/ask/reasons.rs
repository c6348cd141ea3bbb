//! Asks of the selector's decisions: reasons and ways beside those of Table II.

use crate::papers::Ask;
use crate::papers::agpm::kernels::KERNELS;

/// Least kernels whose reason, and whose way, is to be the published one.
const LEAST: usize = 16;

/// A kernel's most frequent reason and the way that follows from it, found and published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judged {
    pub kernel: &'static str,
    /// Letters: found, published.
    pub reason: [&'static str; 2],
    /// Ways: found, published.
    pub way: [&'static str; 2],
}

/// Asks of the decisions.
pub(crate) fn reasons(found: &[Judged]) -> Vec<Ask> {
    let judge = |text, of: &dyn Fn(&Judged) -> [&'static str; 2]| {
        if found.len() < KERNELS.len() {
            return Ask::unjudged(text, format!("{} of {} kernels were run", found.len(), KERNELS.len()));
        }
        let differs = |judged: &&Judged| of(judged)[0] != of(judged)[1];
        let other = |judged: &Judged| format!("{} {} ({})", judged.kernel, of(judged)[0], of(judged)[1]);
        let others: Vec<String> = found.iter().filter(differs).map(other).collect();
        let same = found.len() - others.len();
        let told = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        let evidence = format!("{same} of {}; otherwise, with the published one in brackets: {told}", found.len());
        Ask::of(text, same >= LEAST, evidence)
    };
    vec![
        judge("the most frequent reason is the published one for at least 16 of 22 kernels", &|judged| judged.reason),
        judge("the way that follows is that of the published type for at least 16 of 22 kernels", &|judged| judged.way),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Verdict;

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
}
