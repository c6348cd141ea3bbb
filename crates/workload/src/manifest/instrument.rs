//! `[instrument]` as data: undo logging as a manifest declares it, and its part in launch steps.

use crate::expr::Expr;
use durawarp_base::diagnostic::nearest;
use durawarp_base::document::{Place, quoted};

/// What is made of a plain kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is left alone.
    None,
    /// Each CTA is a transaction: it logs its elements, sets its flag, works, and sets its flag again.
    CtaUndo,
    /// Each launch is a transaction: whole buffers are logged before it, by a kernel of their own.
    KernelUndo,
    /// Each CTA sets its flag before and after, without a log: it can be run again.
    IdempotentCta,
    /// The kernel does by itself what `cta_undo` would do; the manifest declares where.
    Manual,
}

impl Mode {
    /// Every mode and its word.
    pub const ALL: [(&'static str, Mode); 5] = [
        ("none", Mode::None),
        ("cta_undo", Mode::CtaUndo),
        ("kernel_undo", Mode::KernelUndo),
        ("idempotent_cta", Mode::IdempotentCta),
        ("manual", Mode::Manual),
    ];

    /// Its word in a manifest.
    pub fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(_, mode)| *mode == self).map_or("none", |(name, _)| name)
    }

    /// Each CTA has a flag of its own.
    pub(crate) fn by_cta(self) -> bool {
        matches!(self, Mode::CtaUndo | Mode::IdempotentCta | Mode::Manual)
    }

    /// Old values are kept.
    pub(crate) fn has_log(self) -> bool {
        matches!(self, Mode::CtaUndo | Mode::KernelUndo | Mode::Manual)
    }

    /// Each thread must say which elements it changes.
    pub(crate) fn needs_index(self) -> bool {
        matches!(self, Mode::CtaUndo | Mode::Manual)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        word(text, &Mode::ALL)
    }
}

/// Whether the CTA waits until its flag says that it is in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlagBarrier {
    /// It does not, as published: other warps may make data durable before the flag is.
    Paper,
    /// It does.
    #[default]
    Safe,
}

impl FlagBarrier {
    /// Every choice and its word.
    pub const ALL: [(&'static str, FlagBarrier); 2] = [("paper", FlagBarrier::Paper), ("safe", FlagBarrier::Safe)];
}

impl std::str::FromStr for FlagBarrier {
    type Err = String;

    fn from_str(text: &str) -> Result<FlagBarrier, String> {
        word(text, &FlagBarrier::ALL)
    }
}

fn word<T: Copy>(text: &str, all: &[(&'static str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let near = nearest(text, names.iter().copied()).map(|near| format!(" (did you mean `{near}`?)"));
        format!("expected one of {}, found `{text}`{}", quoted(&names), near.unwrap_or_default())
    })
}

/// What the user wants otherwise than the manifest's `[instrument]` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Another mode.
    pub mode: Option<Mode>,
    /// The barrier after the flag, or not.
    pub flag_barrier: Option<FlagBarrier>,
    /// Log every update, not only the first.
    pub loop_log: Option<bool>,
    /// Load again, after an update, what the thread keeps of it.
    pub reload: Option<bool>,
}

impl Overrides {
    /// These where they are given, else the others.
    #[must_use]
    pub fn or(self, others: Overrides) -> Overrides {
        Overrides {
            mode: self.mode.or(others.mode),
            flag_barrier: self.flag_barrier.or(others.flag_barrier),
            loop_log: self.loop_log.or(others.loop_log),
            reload: self.reload.or(others.reload),
        }
    }

    /// As they apply to a manifest of this mode: where it keeps no undo logs, there is nothing to change.
    #[must_use]
    pub fn of_manifest(self, mode: Mode) -> Overrides {
        if mode == Mode::None { Overrides::default() } else { self }
    }
}

/// What a run's instrumentation was, for its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Settings {
    /// What was made of the kernels.
    pub mode: Mode,
    /// Whether CTAs wait for their flag.
    pub flag_barrier: FlagBarrier,
    /// Whether every update is logged.
    pub loop_log: bool,
    /// Whether what a thread keeps of an update is loaded again.
    pub reload: bool,
    /// Whether any of it applies: the scheme keeps undo logs.
    pub logs: bool,
}

/// `[instrument]`.
#[derive(Debug, Clone)]
pub(crate) struct Instrument {
    pub(crate) place: Place,
    pub(crate) mode: Mode,
    pub(crate) flag_barrier: FlagBarrier,
    pub(crate) loop_log: bool,
    pub(crate) reload: bool,
    pub(crate) outputs: Vec<Output>,
    /// The buffer of flags, where one is declared.
    pub(crate) flag: Option<usize>,
}

/// A buffer that transactions change, and which thread changes which element.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) place: Place,
    pub(crate) buffer: usize,
    /// The log, where one is declared.
    pub(crate) log: Option<usize>,
    /// Element of the log for element `idx` of the buffer; the same number, where there is none.
    pub(crate) log_index: Option<Expr>,
    /// The kernel that changes it.
    pub(crate) kernel: Option<String>,
    /// Element of the buffer.
    pub(crate) index: Option<Expr>,
    /// Whether the thread changes it.
    pub(crate) guard: Option<Expr>,
    /// Elements of the thread: `r` counts them.
    pub(crate) repeat: Option<Expr>,
    /// Only the run tells which elements.
    pub(crate) dynamic: bool,
}

/// Variables that a thread gives to `index`, `guard` and `repeat`, in the order of their slots; `r` comes
/// last.
pub(crate) const THREAD_VARIABLES: [&str; 13] = [
    "tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z", "ntid.x", "ntid.y", "ntid.z", "nctaid.x", "nctaid.y",
    "nctaid.z", "r",
];

/// The part of a transaction that a launch step carries.
#[derive(Debug, Clone)]
pub(crate) struct Undo {
    pub(crate) mode: Mode,
    /// Numbers of the manifest's outputs that the launch's kernel changes.
    pub(crate) outputs: Vec<usize>,
    /// Buffers that it changes, each once, with their logs.
    pub(crate) buffers: Vec<(usize, Option<usize>)>,
    /// The buffer of flags.
    pub(crate) flag: usize,
}

impl Undo {
    /// Flags that a launch of `ctas` CTAs uses itself.
    pub(crate) fn flags_at_launch(&self, ctas: u64) -> u64 {
        if self.mode.by_cta() { ctas } else { 0 }
    }
}

/// An argument that instrumentation adds to a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generated {
    /// Address of a buffer.
    Home(usize),
    /// What leads from an address in the first buffer to the same element of the second.
    Shift(usize, usize),
    /// Address of the launch's first flag.
    Flag(usize),
}
