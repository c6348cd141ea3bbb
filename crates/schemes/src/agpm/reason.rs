//! AGPM's statistics-based reasoning: from the localities of a period, a reason, and from the reason the way
//! of log updates.
//!
//! | reason | condition | type | way |
//! |---|---|---|---|
//! | h | the kernel communicates through shared memory | II | non-temporal |
//! | e | at most 100 log updates | III | non-temporal |
//! | f | no locality, neither in the L1 nor in the L2 | II, III | non-temporal |
//! | c | none in the L1; all four kinds in the L2 | I | through the caches |
//! | g | in the L1 no temporal locality, but spatial, of log updates too | I | through the caches |
//! | a | in the L1 both kinds, none of it of log updates | I | through the caches |
//! | b, d | in the L1 both kinds, of log updates too; their share over 0.25 (b) or not (d) | II, I | past, through |
//!
//! Source: AGPM Table III and section IV-B. The paper gives no precedence; h, e before the others is forced
//! by its Table II, the rest do not overlap. Section IV-B lists g for both ways: its type is I, hence through
//! the caches. Where a share of temporal and one of spatial locality lie on different sides of 0.25, the
//! larger decides. Invariant: a pattern that no rule covers is [`Reason::None`], non-temporal (16 of 36
//! patterns of zeros are).

use super::parameters::{AgpmSpec, MixedShare};
use durawarp_persist::Route;
use durawarp_persist::selection::Locality;

/// What a period's decision rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// In the L1D.
    pub l1: Locality,
    /// In the L2.
    pub l2: Locality,
    /// Log updates of the kernel so far.
    pub logs: u64,
    /// The kernel's warps communicate through shared memory.
    pub shared_memory: bool,
}

/// Why a way was chosen (Table III).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Locality in the L1, none of it of log updates.
    A,
    /// Too strong a locality of log updates in the L1.
    B,
    /// Locality in the L2 alone.
    C,
    /// Locality of log updates in the L1, a small share of it.
    D,
    /// Few log updates.
    E,
    /// No locality.
    F,
    /// Spatial locality alone in the L1.
    G,
    /// Shared memory.
    H,
    /// No rule covers it.
    None,
}

impl Reason {
    /// In the paper's order.
    pub const ALL: [Reason; 9] =
        [Reason::A, Reason::B, Reason::C, Reason::D, Reason::E, Reason::F, Reason::G, Reason::H, Reason::None];

    /// The reason of a letter, or of "none".
    pub fn of(letter: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.letter() == letter)
    }

    /// The paper's letter.
    pub fn letter(self) -> &'static str {
        match self {
            Reason::A => "a",
            Reason::B => "b",
            Reason::C => "c",
            Reason::D => "d",
            Reason::E => "e",
            Reason::F => "f",
            Reason::G => "g",
            Reason::H => "h",
            Reason::None => "none",
        }
    }

    /// The way that log updates take.
    pub fn route(self) -> Route {
        match self {
            Reason::A | Reason::C | Reason::D | Reason::G => Route::Temporal,
            Reason::B | Reason::E | Reason::F | Reason::H | Reason::None => Route::NonTemporal,
        }
    }
}

/// The rules' numbers and the reading of what they leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Up to so many log updates, the way makes no difference (reason e).
    pub few_logs: u64,
    /// A share of log updates over this is strong (reasons b and d).
    pub strong_share_percent: u64,
    /// Where one of the two shares is strong: is it enough (A10)?
    pub mixed_share: MixedShare,
}

impl Rules {
    /// Table III's, by the default reading.
    pub const PAPER: Rules = Rules { few_logs: 100, strong_share_percent: 25, mixed_share: MixedShare::Greater };

    /// Those of a scheme's parameters.
    pub fn of(spec: &AgpmSpec) -> Self {
        Rules {
            few_logs: spec.few_logs,
            strong_share_percent: spec.strong_share_percent,
            mixed_share: spec.mixed_share,
        }
    }

    fn strong(&self, l1: Locality) -> bool {
        let over =
            |part: u64, all: u64| u128::from(part) * 100 > u128::from(all) * u128::from(self.strong_share_percent);
        let (temporal, spatial) = (over(l1.t_log, l1.t_all), over(l1.s_log, l1.s_all));
        match self.mixed_share {
            MixedShare::Greater => temporal || spatial,
            MixedShare::Lesser => temporal && spatial,
        }
    }

    /// Every rule whose own condition holds, in the order in which [`Rules::reason`] asks them.
    pub fn holding(&self, evidence: &Evidence) -> impl Iterator<Item = Reason> {
        let Evidence { l1, l2, logs, shared_memory } = *evidence;
        let none = |at: Locality| at == Locality::default();
        let all_kinds = |at: Locality| at.t_all != 0 && at.t_log != 0 && at.s_all != 0 && at.s_log != 0;
        let strong = self.strong(l1);
        [
            (Reason::H, shared_memory),
            (Reason::E, logs <= self.few_logs),
            (Reason::F, none(l1) && none(l2)),
            (Reason::C, none(l1) && all_kinds(l2)),
            (Reason::G, l1.t_all == 0 && l1.t_log == 0 && l1.s_all != 0 && l1.s_log != 0),
            (Reason::A, l1.t_all != 0 && l1.s_all != 0 && l1.t_log == 0 && l1.s_log == 0),
            (Reason::B, all_kinds(l1) && strong),
            (Reason::D, all_kinds(l1) && !strong),
        ]
        .into_iter()
        .filter_map(|(reason, holds)| holds.then_some(reason))
    }

    /// The reason that decides.
    pub fn reason(&self, evidence: &Evidence) -> Reason {
        self.holding(evidence).next().unwrap_or(Reason::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Rules = Rules::PAPER;

    fn reason(evidence: &Evidence) -> Reason {
        PAPER.reason(evidence)
    }

    /// AGPM Table II: kernel, evidence, reason. The paper labels SGEMM and NW by their shared memory.
    fn table_2() -> Vec<(String, Evidence, String)> {
        let text = include_str!("../../../../tests/data/agpm_table2.csv");
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            let n = |at: usize| cells[at].parse().unwrap();
            let at =
                |from: usize| Locality { t_all: n(from), t_log: n(from + 1), s_all: n(from + 2), s_log: n(from + 3) };
            let shared_memory = ["SGEMM", "NW"].contains(&cells[0]);
            let evidence = Evidence { l1: at(1), l2: at(5), logs: n(10), shared_memory };
            (cells[0].to_owned(), evidence, cells[12].trim().to_owned())
        };
        text.lines().skip(1).filter(|line| !line.is_empty()).map(row).collect()
    }

    #[test]
    fn every_row_of_table_2_has_the_reason_that_the_paper_gives() {
        let rows = table_2();
        assert_eq!(rows.len(), 22);
        for (kernel, evidence, expected) in rows {
            assert_eq!(reason(&evidence).letter(), expected, "{kernel}");
        }
    }

    #[test]
    fn only_three_rows_satisfy_more_than_one_rule() {
        let letters = |evidence: &Evidence| PAPER.holding(evidence).map(Reason::letter).collect::<String>();
        let several: Vec<(String, String)> = table_2()
            .iter()
            .map(|(kernel, evidence, _)| (kernel.clone(), letters(evidence)))
            .filter(|row| row.1.len() > 1)
            .collect();
        let expected = [("SGEMM", "hf"), ("NW", "hb"), ("BFS", "ea")].map(|(k, l)| (k.to_owned(), l.to_owned()));
        assert_eq!(several, expected);
    }

    #[test]
    fn without_its_precedence_few_logs_would_be_decided_otherwise() {
        let bfs = table_2().into_iter().find(|row| row.0 == "BFS").unwrap().1;
        assert_eq!((reason(&bfs), reason(&Evidence { logs: 101, ..bfs })), (Reason::E, Reason::A));
        assert_eq!(Reason::E.route(), Route::NonTemporal);
        assert_eq!(Reason::A.route(), Route::Temporal);
    }

    #[test]
    fn a_quarter_is_not_yet_too_strong() {
        let with = |t_log, s_log| {
            let l1 = Locality { t_all: 400, t_log, s_all: 800, s_log };
            reason(&Evidence { l1, logs: 1000, ..Evidence::default() })
        };
        assert_eq!(with(100, 200), Reason::D);
        assert_eq!(with(101, 200), Reason::B);
        assert_eq!(with(100, 201), Reason::B, "the larger share decides");
        let lesser = Rules { mixed_share: MixedShare::Lesser, ..PAPER };
        let l1 = Locality { t_all: 400, t_log: 100, s_all: 800, s_log: 201 };
        assert_eq!(lesser.reason(&Evidence { l1, logs: 1000, ..Evidence::default() }), Reason::D);
    }

    #[test]
    fn sixteen_of_thirty_six_patterns_are_covered_by_no_rule() {
        // Temporal accesses are spatial ones too, log updates are accesses.
        let patterns = || {
            (0..16u64)
                .map(|bits| Locality {
                    t_all: bits & 1,
                    t_log: bits >> 1 & 1,
                    s_all: bits >> 2 & 1,
                    s_log: bits >> 3 & 1,
                })
                .filter(|l| l.t_log <= l.t_all && l.s_log <= l.s_all && l.t_all <= l.s_all && l.t_log <= l.s_log)
        };
        assert_eq!(patterns().count(), 6);
        let all =
            patterns().flat_map(|l1| patterns().map(move |l2| Evidence { l1, l2, logs: 1000, shared_memory: false }));
        assert_eq!(all.filter(|evidence| reason(evidence) == Reason::None).count(), 16);
        assert_eq!(Reason::None.route(), Route::NonTemporal);
    }

    #[test]
    fn every_reason_has_its_letter_and_its_way() {
        let through = [(Reason::A, "a"), (Reason::C, "c"), (Reason::D, "d"), (Reason::G, "g")];
        let past = [(Reason::B, "b"), (Reason::E, "e"), (Reason::F, "f"), (Reason::H, "h"), (Reason::None, "none")];
        for (reason, letter) in through {
            assert_eq!((reason.letter(), reason.route()), (letter, Route::Temporal));
        }
        for (reason, letter) in past {
            assert_eq!((reason.letter(), reason.route()), (letter, Route::NonTemporal));
        }
    }

    #[test]
    fn a_hundred_log_updates_are_few_and_one_more_is_not() {
        let of = |logs, shared_memory| reason(&Evidence { logs, shared_memory, ..Evidence::default() });
        assert_eq!([0, 100, 101].map(|logs| of(logs, false)), [Reason::E, Reason::E, Reason::F]);
        assert_eq!([100, 101].map(|logs| of(logs, true)), [Reason::H, Reason::H]);
    }

    /// Kinds of locality with some of it: none; spatial; spatial of log updates too; temporal, which is
    /// spatial too; this and spatial of log updates; all. Rows are of the L1, columns of the L2.
    #[test]
    fn every_pattern_has_its_reason() {
        let patterns = [(0, 0, 0, 0), (0, 0, 9, 0), (0, 0, 9, 7), (5, 0, 9, 0), (5, 0, 9, 7), (5, 3, 9, 7)];
        let of = |(t_all, t_log, s_all, s_log)| Locality { t_all, t_log, s_all, s_log };
        let row = |l1| {
            patterns.map(|l2| reason(&Evidence { l1: of(l1), l2: of(l2), logs: 1000, shared_memory: false }).letter())
        };
        let none = "none";
        let expected = [["f", none, none, none, none, "c"], [none; 6], ["g"; 6], ["a"; 6], [none; 6], ["b"; 6]];
        assert_eq!(patterns.map(row), expected);
    }

    #[test]
    fn the_rules_are_those_of_the_parameters() {
        assert_eq!(Rules::of(&AgpmSpec::with(&[])), PAPER);
        let changes = [("few_logs", 7.into()), ("strong_share_percent", 50.into()), ("mixed_share", "lesser".into())];
        let rules = Rules::of(&AgpmSpec::with(&changes));
        assert_eq!(rules, Rules { few_logs: 7, strong_share_percent: 50, mixed_share: MixedShare::Lesser });
        let with = |t_log, s_log| {
            let l1 = Locality { t_all: 400, t_log, s_all: 800, s_log };
            rules.reason(&Evidence { l1, logs: 8, ..Evidence::default() })
        };
        assert_eq!(
            [(200, 400), (201, 400), (200, 401), (201, 401)].map(|(t, s)| with(t, s)),
            [Reason::D, Reason::D, Reason::D, Reason::B,]
        );
    }
}
