//! What may be asked of a reproduction, as pure functions of its numbers.
//!
//! Asks are orders, signs and broad bands. An ask about what was not run is not applicable.

/// How an ask came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Met,
    /// It does not.
    NotMet,
    /// It cannot be judged on what was run.
    NotApplicable,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::NotMet => "NOT MET",
            Verdict::NotApplicable => "not applicable",
        }
    }
}

/// An ask and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is asked.
    pub text: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// The numbers behind it.
    pub evidence: String,
}

impl Ask {
    /// An ask that holds or not.
    pub fn of(text: &'static str, holds: bool, evidence: String) -> Self {
        Ask { text, verdict: if holds { Verdict::Met } else { Verdict::NotMet }, evidence }
    }

    /// An ask about a value: whether it holds, and the numbers behind it. Where there is no value, the ask
    /// cannot be judged, and says what is `missing`.
    pub fn about<T>(
        text: &'static str,
        value: Option<T>,
        missing: &str,
        judge: impl FnOnce(T) -> (bool, String),
    ) -> Self {
        match value.map(judge) {
            Some((holds, evidence)) => Ask::of(text, holds, evidence),
            None => Ask::unjudged(text, missing),
        }
    }

    /// An ask that cannot be judged, and why.
    pub fn unjudged(text: &'static str, why: impl Into<String>) -> Self {
        Ask { text, verdict: Verdict::NotApplicable, evidence: why.into() }
    }
}
