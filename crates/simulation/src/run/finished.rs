//! What a run gives: an outcome, and what is too large for it.

use crate::outcome::Outcome;
use durawarp_base::timeline::Timeline;
use durawarp_engine::{Barrier, EpochDigests, Scaling};
use durawarp_kernel::memory::FlatMemory;
use durawarp_persist::Journal;
use durawarp_riscv::syscalls::{File, Os, OsLog};
use durawarp_workload::{Bindings, FormedProgram};

/// An outcome, and what is too large for it.
#[derive(Debug)]
pub struct Finished {
    /// The result.
    pub outcome: Outcome,
    /// Global memory at the end: what a read of every address would return. Of several servers, that of the
    /// first.
    pub memory: FlatMemory,
    /// Which memory each buffer's name stands for at the end.
    pub bindings: Bindings,
    /// The program of formed kernels that ran, under a scheme of recoverable regions.
    pub formed: Option<FormedProgram>,
    /// Every component's digest by epoch, when asked for.
    pub epochs: Option<EpochDigests>,
    /// Names of the components, in the order of their ids.
    pub components: Vec<String>,
    /// What happened to persistent memory, when asked for. Of several servers, to that of the first.
    pub journal: Option<Journal>,
    /// The same of the servers behind the first.
    pub other_journals: Vec<Journal>,
    /// What components did when, when asked for.
    pub timeline: Option<Timeline>,
    /// What more threads would give, when asked for, and the barrier that this rests on.
    pub scaling: Option<(Scaling, Barrier)>,
    /// Files that a process made or changed, by path. Of several servers, those of the first.
    pub files: Vec<File>,
    /// What system calls of a process had done at its end, where a journal was asked for.
    pub os: Option<Os>,
    /// The same, step by step, under a scheme of recoverable regions.
    pub os_log: Option<OsLog>,
}

/// One sentence for each check or expectation that failed.
pub(crate) fn failures(verification: &durawarp_workload::Verification) -> Vec<String> {
    let failed = |outcome: durawarp_workload::Outcome| outcome == durawarp_workload::Outcome::Failed;
    let checks = verification.checks.iter().filter(|check| failed(check.outcome)).map(|check| {
        let mut text = format!("check `{}` failed", check.name);
        if check.mismatches > 0 {
            text += &format!(": {} of {} elements differ", check.mismatches, check.compared);
        }
        if let Some(first) = &check.first {
            text +=
                &format!("; first {}[{}]: got {}, expected {}", first.buffer, first.index, first.got, first.expected);
        }
        if let Some(message) = &check.message {
            text += &format!(": {message}");
        }
        text
    });
    let expectations = verification.expectations.iter().filter(|e| failed(e.outcome)).map(|e| {
        let got = e.got.map_or_else(|| "nothing".to_owned(), |got| got.to_string());
        format!("expectation `{}` failed: got {got}, expected {} within {}", e.metric, e.expected, e.tolerance)
    });
    checks.chain(expectations).collect()
}
