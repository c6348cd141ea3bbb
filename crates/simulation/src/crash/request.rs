//! What a crash test is asked: which states to judge, how it is watched and stopped.

use std::sync::atomic::AtomicBool;

use crate::run::Conduct;
use durawarp_oracle::allowed::Budget;
use durawarp_oracle::crash::Plan;
use durawarp_oracle::judge::Watch;
use durawarp_persist::vocab::PersistScope;

/// What to judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrashRequest {
    /// Crash points of level A.
    pub plan: Plan,
    /// Cut recovery off after each of its steps and run it again.
    pub double: bool,
    /// How much of level B to judge; none for none of it.
    pub allowed: Option<Budget>,
    /// States of level C to judge, at most.
    pub overtaking: u64,
    /// States to resume the program from, at most, where hardware recovers it.
    pub resume: u64,
    /// Output of a resumed program that is not that of the run without a failure is wrong, whatever order
    /// threads may write in.
    pub strict_output: bool,
    /// Just this state of level B: instant and number.
    pub only_allowed: Option<(u64, u64)>,
    /// Just this state of level C: a store, by its place in the journal.
    pub only_overtaking: Option<u64>,
    /// Persist barriers count as barriers of this scope when their order is judged.
    pub claim: Option<PersistScope>,
    /// What persist barriers are taken for where states that a run did not leave are judged.
    pub by: Basis,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Failures kept a judgement.
    pub keep: usize,
}

impl Default for CrashRequest {
    /// Every point if there are few enough, levels B and C, eight failures kept a judgement.
    fn default() -> Self {
        let allowed = Some(Budget::default());
        CrashRequest {
            plan: Plan::Auto,
            double: false,
            allowed,
            overtaking: 20_000,
            resume: 24,
            strict_output: false,
            only_allowed: None,
            only_overtaking: None,
            claim: None,
            by: Basis::Machine,
            seed: 0,
            keep: 8,
        }
    }
}

/// What a persist barrier is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// What this machine makes of it: whatever it waits for is durable behind it.
    Machine,
    /// What equations 1 to 3 of its paper say, which order persists and wait for nothing.
    Definition,
}

impl CrashRequest {
    /// It asks about persist barriers, which only kernels have.
    pub(super) fn is_about_barriers(&self) -> bool {
        self.claim.is_some() || self.by == Basis::Definition
    }

    /// Just one state is judged, whatever its level.
    pub(super) fn is_of_one_state(&self) -> bool {
        matches!(self.plan, Plan::Only(_)) || self.only_allowed.is_some() || self.only_overtaking.is_some()
    }
}

/// Which part of a crash test is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// States that the run left.
    Actual,
    /// States that the model allows.
    Allowed,
    /// States in which a warp ran ahead.
    Overtaking,
    /// States that the program is resumed from.
    Resume,
}

/// How a crash test is watched and stopped; nothing here changes a verdict that is not stopped.
#[derive(Clone, Copy)]
pub struct Watching<'a> {
    /// How the simulation is run.
    pub conduct: &'a Conduct<'a>,
    /// Set it, and what is judged by then is reported.
    pub stop: &'a AtomicBool,
    /// Told how many states are judged, of how many.
    pub progress: &'a (dyn Fn(Phase, u64, u64) + Sync),
}

impl Watching<'_> {
    /// Judges while its progress is told.
    pub(super) fn during<R>(&self, phase: Phase, judge: impl FnOnce(&Watch<'_>) -> R) -> R {
        let progress = |done, total| (self.progress)(phase, done, total);
        judge(&Watch { stop: self.stop, progress: &progress })
    }
}

impl std::fmt::Debug for Watching<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}
