//! A server's run with its journal, and the report of it before its states are judged.

use super::report::{CrashReport, Levels};
use super::request::{CrashRequest, Watching};
use super::subject::Site;
use crate::run::Finished;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_oracle::crash::CrashStates;
use durawarp_oracle::order::RunOrder;
use durawarp_persist::image::OutsideImage;
use durawarp_persist::{Journal, PmImage};

/// A run, as far as it is of one server.
#[derive(Clone, Copy)]
pub(super) struct JournaledRun<'a> {
    pub(super) finished: &'a Finished,
    pub(super) journal: &'a Journal,
    /// Persistent memory before the program begins.
    pub(super) initial: &'a PmImage,
    pub(super) order: &'a RunOrder<'a>,
    pub(super) site: &'a Site,
    pub(super) request: &'a CrashRequest,
    pub(super) watching: &'a Watching<'a>,
}

impl<'a> JournaledRun<'a> {
    /// The durable states that the run went through.
    pub(super) fn states(&self) -> Result<CrashStates<'a>, Diagnostics> {
        Ok(CrashStates::new(self.journal, self.initial, self.site.domain).map_err(outside)?)
    }

    /// What is reported of every run. Nothing is judged yet.
    pub(super) fn report(&self) -> CrashReport {
        CrashReport {
            outcome: self.finished.outcome.clone(),
            domain: self.site.domain,
            recovery: String::new(),
            promises: Vec::new(),
            unjudged: None,
            transactions: 0,
            image_bytes: self.initial.bytes().len() as u64,
            changes: 0,
            regions: None,
            seed: self.request.seed,
            levels: Levels::default(),
            output: None,
            conditions: Vec::new(),
            wall_s: [0.0; 2],
        }
    }
}

/// The machine wrote where no persistent memory is.
pub(super) fn outside(outside: OutsideImage) -> Diagnostic {
    Diagnostic::nowhere("journal", format!("a write outside persistent memory: {outside}"))
}
