//! Each ask on made-up times that meet it, that do not, and that are too few.

use super::*;
use crate::papers::Verdict::{Met, NotApplicable};
use crate::papers::tests::pairs::{AskPair, pairs as paired};

/// Each ask, of a machine that meets it and of one that misses it.
pub(crate) fn pairs() -> Vec<AskPair> {
    let (table2, near, far) = ([1.2, 0.9, 0.88, 0.87], [1.1, 0.9, 0.89, 0.89], [1.3, 0.8, 0.79, 0.79]);
    let of = |table2, near, far| asks(&[Some(table2), Some(near), Some(far)]);
    let wrong = [
        ("barriers that wait are faster", "on 30 SMs the artifact's", of(table2, [1.1, 1.01, 1.0, 1.0], far)),
        ("far memory hides as little", "on 30 SMs the gain", of(table2, [1.1, 0.8, 0.79, 0.79], far)),
        ("lines under way keep others away", "a wider window", of(table2, near, [1.3, 0.8, 0.81, 0.79])),
        ("the window limits", "near, a window", of(table2, [1.1, 0.9, 0.85, 0.85], far)),
        ("the window limits", "far, a window", of(table2, near, [1.3, 0.8, 0.7, 0.7])),
        ("the window limits", "a window of 6", of([6.0, 2.1, 1.4, 1.1], near, far)),
    ];
    paired("sbrp", &of(table2, near, far), &wrong)
}

fn verdicts(times: [Option<WindowTimes>; 3]) -> Vec<crate::papers::Verdict> {
    asks(&times).iter().map(|ask| ask.verdict).collect()
}

#[test]
fn what_was_not_run_is_not_judged() {
    assert_eq!(verdicts([None; 3]), [NotApplicable; 6]);
    let near = Some([1.1, 0.9, 0.89, 0.89]);
    assert_eq!(verdicts([None, near, None]).iter().filter(|&&verdict| verdict == Met).count(), 1);
}
