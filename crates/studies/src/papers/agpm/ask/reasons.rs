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
pub(super) mod tests;
