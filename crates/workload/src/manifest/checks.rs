//! Expectations of a manifest: checks of the result, conditions on crash images, expected figures.

use super::instrument::FlagBarrier;
use crate::expr::Expr;
use durawarp_base::document::Place;

/// A check of the result.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) kind: CheckKind,
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
    pub(crate) sample: Option<Expr>,
}

impl Check {
    /// All expressions of this value.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        let of_kind: Vec<&Expr> = match &self.kind {
            CheckKind::Expr { expr, .. } | CheckKind::Invariant(expr) => vec![expr],
            CheckKind::Reference { args, .. } => args.iter().filter_map(ReferenceArg::expr).collect(),
            CheckKind::File { .. } | CheckKind::Functional { .. } => Vec::new(),
        };
        self.sample.iter().chain(of_kind).collect()
    }
}

/// What a check compares with.
#[derive(Debug, Clone)]
pub(crate) enum CheckKind {
    /// Each element of a field equals an expression of `idx`.
    Expr { buffer: usize, field: usize, expr: Expr },
    /// Each element of a buffer equals that of a file.
    File { buffer: usize, field: usize, file: String, place: Place },
    /// Buffers equal the functional run's: floats within the check's tolerance, all else bit by bit.
    Functional { buffers: Vec<usize> },
    /// Each element of a field equals that of a reference written in Rust.
    Reference { buffer: usize, field: usize, name: &'static str, args: Vec<ReferenceArg> },
    /// An expression is not 0.
    Invariant(Expr),
}

/// An argument of a reference.
#[derive(Debug, Clone)]
pub(crate) enum ReferenceArg {
    Buffer(usize),
    Number(Expr),
}

impl ReferenceArg {
    fn expr(&self) -> Option<&Expr> {
        match self {
            ReferenceArg::Number(expr) => Some(expr),
            ReferenceArg::Buffer(_) => None,
        }
    }
}

/// `[[crash]]`: a condition on what a power failure leaves.
#[derive(Debug, Clone)]
pub(crate) struct CrashForm {
    pub(crate) name: String,
    pub(crate) holds: Expr,
    /// Judged on the image that survived, not on the one after recovery.
    pub(crate) on_survived: bool,
    pub(crate) source: Option<String>,
    /// Where it must hold.
    pub(crate) binding: Setting,
    /// Where a violation must be found.
    pub(crate) violated_by: Vec<Setting>,
}

/// Schemes, domains and kinds of instrumentation; where nothing is said, all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    pub(crate) schemes: Option<Vec<(String, Place)>>,
    pub(crate) domains: Option<Vec<String>>,
    pub(crate) flag_barrier: Option<FlagBarrier>,
}

/// `[expect]`: a figure that a run should come near.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    pub(crate) metric: String,
    pub(crate) value: Expr,
    pub(crate) tolerance: f64,
    pub(crate) source: Option<String>,
    /// The profiles it holds for; all if empty.
    pub(crate) profiles: Vec<String>,
}
