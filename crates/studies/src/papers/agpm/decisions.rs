//! What AGPM's selector decided of each of the paper's kernels: its periods by reason, and by which way log
//! updates went.
//!
//! | what | of which launches |
//! |---|---|
//! | periods by reason | the kernel's own |
//! | log updates by way | the kernel's own, and those directly before them that log whole buffers for it |
//!
//! To the selector a launch that logs whole buffers is a kernel of its own, with periods of its own.
//!
//! A period that its kernel's end cut short decides nothing. Its reason counts only for a kernel without a
//! complete period, and stands in brackets. Invariant: of reasons with equally many periods, the one with
//! more log updates comes first, then the one that is first in the alphabet.

use std::collections::BTreeMap;

use durawarp_persist::Route;
use durawarp_persist::selection::Period;
use durawarp_schemes::agpm::reason::Reason;

/// Periods of a kernel of the paper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Periods {
    /// Those of its own launches, in order.
    pub own: Vec<Period>,
    /// Those of launches that log whole buffers for it.
    pub copies: Vec<Period>,
    /// The run had more periods than are kept.
    pub cut: bool,
}

/// Periods and their log updates, by reason.
type ByReason = BTreeMap<String, [u64; 2]>;

/// What was decided of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decisions {
    complete: ByReason,
    incomplete: ByReason,
    /// Log-update instructions through the caches and past them.
    logs: [u64; 2],
}

/// A way of log updates, as the tables call it.
pub(crate) fn way(route: Route) -> &'static str {
    if route == Route::Temporal { "through" } else { "past" }
}

impl Decisions {
    /// From its periods.
    pub(crate) fn of(periods: &Periods) -> Self {
        let mut decisions = Decisions::default();
        for period in &periods.own {
            let of = if period.complete { &mut decisions.complete } else { &mut decisions.incomplete };
            let [times, logs] = of.entry(period.reason.clone()).or_default();
            *times += 1;
            *logs += period.logs;
        }
        for period in periods.own.iter().chain(&periods.copies) {
            decisions.logs[0] += period.temporal_logs;
            decisions.logs[1] += period.non_temporal_logs;
        }
        decisions
    }

    /// Some periods are complete.
    pub(crate) fn is_decided(&self) -> bool {
        !self.complete.is_empty()
    }

    /// The periods that count: complete ones, else those cut short.
    fn counting(&self) -> &ByReason {
        if self.is_decided() { &self.complete } else { &self.incomplete }
    }

    /// Periods of a reason, among those that count.
    pub(crate) fn periods(&self, reason: Reason) -> u64 {
        self.counting().get(reason.letter()).map_or(0, |[times, _]| *times)
    }

    /// The most frequent reason, among the periods that count.
    pub(crate) fn most(&self) -> Option<Reason> {
        let all = self.counting().iter();
        // Of equals `max_by_key` takes the last.
        let most = all.rev().max_by_key(|(_, counts)| **counts)?;
        Reason::of(most.0)
    }

    /// The most frequent reason as tables show it: "b", "(e)" where no period is complete, "-" where there is
    /// none at all.
    pub(crate) fn most_shown(&self) -> String {
        match self.most() {
            Some(reason) if self.is_decided() => reason.letter().to_owned(),
            Some(reason) => format!("({})", reason.letter()),
            None => "-".to_owned(),
        }
    }

    /// Periods by reason in a few characters, those cut short in brackets: "b 12, f 1 (f 3)".
    pub(crate) fn shown(&self) -> String {
        let of = |(reason, [times, _]): (&String, &[u64; 2])| format!("{reason} {times}");
        let text = |by: &ByReason| by.iter().map(of).collect::<Vec<_>>().join(", ");
        match (text(&self.complete), text(&self.incomplete)) {
            (complete, cut) if cut.is_empty() => complete,
            (complete, cut) if complete.is_empty() => format!("({cut})"),
            (complete, cut) => format!("{complete} ({cut})"),
        }
    }

    /// Share of its log updates through the caches; `None` where there is none.
    pub(crate) fn share_through(&self) -> Option<f64> {
        let [through, past] = self.logs;
        (through + past > 0).then(|| through as f64 / (through + past) as f64)
    }

    /// Log-update instructions through the caches and past them.
    pub(crate) fn logs(&self) -> [u64; 2] {
        self.logs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(reason: &str, complete: bool, logs: u64) -> Period {
        let (temporal_logs, non_temporal_logs) = (logs / 4, logs / 2);
        Period { reason: reason.to_owned(), complete, logs, temporal_logs, non_temporal_logs, ..Period::default() }
    }

    #[test]
    fn the_most_frequent_reason_is_that_of_complete_periods_if_there_are_any() {
        let own = vec![period("f", false, 800), period("b", true, 40), period("f", false, 8), period("b", true, 40)];
        let found = Decisions::of(&Periods { own, ..Periods::default() });
        assert_eq!((found.shown(), found.most_shown()), ("b 2 (f 2)".to_owned(), "b".to_owned()));
        assert_eq!([Reason::B, Reason::F].map(|reason| found.periods(reason)), [2, 0]);
        let cut = Decisions::of(&Periods { own: vec![period("e", false, 4)], ..Periods::default() });
        assert_eq!((cut.shown(), cut.most_shown(), cut.periods(Reason::E)), ("(e 1)".into(), "(e)".into(), 1));
        let none = Decisions::default();
        assert_eq!((none.shown(), none.most_shown(), none.share_through()), (String::new(), "-".to_owned(), None));
    }

    #[test]
    fn of_reasons_with_as_many_periods_log_updates_decide_and_then_the_alphabet() {
        let most = |periods: &[(&str, u64)]| {
            let own = periods.iter().map(|(reason, logs)| period(reason, true, *logs)).collect();
            Decisions::of(&Periods { own, ..Periods::default() }).most()
        };
        assert_eq!(most(&[("a", 100), ("g", 101)]), Some(Reason::G));
        assert_eq!(most(&[("g", 100), ("a", 100)]), Some(Reason::A));
        assert_eq!(most(&[("a", 1), ("g", 100), ("a", 1)]), Some(Reason::A), "periods come first");
        assert_eq!(most(&[("none", 1)]), Some(Reason::None));
    }

    #[test]
    fn log_updates_of_launches_that_log_for_a_kernel_are_its_own_and_their_reasons_are_not() {
        let own = vec![period("a", true, 40)];
        let copies = vec![period("f", true, 400), period("f", true, 400)];
        let found = Decisions::of(&Periods { own, copies, cut: false });
        assert_eq!((found.logs(), found.most(), found.shown()), ([210, 420], Some(Reason::A), "a 1".to_owned()));
        assert_eq!(found.share_through(), Some(1.0 / 3.0));
    }
}
