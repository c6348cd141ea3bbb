//! Crash tests of a server whose program has no persistent memory: what clients post is all there is to be
//! judged ([`channels`](super::channels)), such as of `tpcc_remote`.
//!
//! Not modelled: power failures of clients. Invariant: of the server's own program nothing is promised.

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

use super::channels;
use super::driver::Crashed;
use super::promise::Promise;
use super::ran::JournaledRun;
use super::report::CrashReport;
use super::request::CrashRequest;
use super::subject::{Site, Subject};
use crate::run::CpuExperiment;
use durawarp_riscv::process::Process;
use durawarp_workload::CpuProgram;

/// Clients post at a server whose program has no persistent memory.
pub(super) fn posts_alone(program: &CpuProgram) -> bool {
    program.start.windows.pm_bytes == 0 && !program.clients.is_empty()
}

/// Such a server.
pub(super) struct PostsAlone<'a> {
    experiment: &'a CpuExperiment,
    process: Process,
}

impl<'a> PostsAlone<'a> {
    /// # Errors
    /// What is asked of the server's own program.
    pub(super) fn new(experiment: &'a CpuExperiment, request: &CrashRequest) -> Result<Self, Diagnostics> {
        let mut faults = Diagnostics::default();
        let mut fault = |what: &str, help: &str| {
            let fault = Diagnostic::nowhere(&experiment.program.name, what.to_owned());
            faults.push(fault.with_help(help.to_owned()));
        };
        if request.is_of_one_state() {
            fault("the server's program has no persistent memory, and so no states", "without --only");
        }
        if request.is_about_barriers() {
            fault("persist barriers are of kernels", "without --claim and --by");
        }
        faults.into_result(())?;
        Ok(PostsAlone { experiment, process: experiment.program.process()? })
    }
}

impl Crashed for PostsAlone<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Cores(self.experiment, &self.process, None)
    }

    fn site(&self) -> Site {
        channels::site(self.experiment, &self.process, self.subject().site())
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        Ok(CrashReport {
            recovery: "the clients, which write again what was not acknowledged".to_owned(),
            promises: ran.request.double.then_some(Promise::NothingToCut).into_iter().collect(),
            ..ran.report()
        })
    }
}
