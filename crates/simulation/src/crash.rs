//! Power fails at any instant: one run with journals, then every state that a failure can leave is recovered
//! and judged.
//!
//! ```text
//!  experiment ─ run (journals on) ─┬─ crash states ─ recovery ─┐
//!                                  └─ allowed states ──────────┴─ oracle ─> CrashReport
//! ```
//! Four judgements: the *history* (acknowledgements, order, values: what no single image shows), *level A*
//! (the states that this run really left, one for each change of what is durable), *level B* (states that the
//! persistency model allows although this run's timing did not leave them) and *level C* (states in which a
//! warp has run ahead of the others of its CTA as far as barriers let it). The scheme declares what it
//! promises ([`Promises`](durawarp_persist::Promises)), and its handlers are not asked; the program adds its
//! undo log, and the conditions of its manifest ([`conditions`]). Recovery is the program's own kernels where
//! it has some, else that of the undo log. Where hardware commits recoverable regions, it recovers by itself,
//! and the program is resumed (`regions`).
//!
//! Each way is one `driver::Crashed` under the one driver.
//!
//! Invariants: as of the report ([`CrashReport`]). DRAM is lost: recovery kernels find its initial contents
//! there. Not modelled: time that recovery takes.

mod channels;
pub mod conditions;
mod cores;
mod driver;
mod durable_steps;
mod found;
mod gone_on;
mod image;
mod kernels;
mod output;
mod posts;
mod promise;
mod ran;
mod regions;
mod regions_of_cores;
mod report;
mod request;
mod saved;
mod states;
mod subject;
mod visible;

use crate::run::{Conduct, Experiment, run};
use cores::of_fork;
pub use cores::{CPU_BUDGET, crash_cpu};
use driver::{Crashed, judge_failures};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_persist::{Journal, PmImage};
use durawarp_schemes::catalogue;
pub use found::{Found, Placed};
use image::initial_image;
use kernels::Kernels;
pub use output::OutputCounts;
pub use promise::Promise;
use regions::FormedKernels;
pub use regions_of_cores::journal_of_cores;
pub use report::{Channels, CrashReport, JudgedLevel, Judgement, Levels};
pub use request::{Basis, CrashRequest, Phase, Watching};

/// Runs once and judges what power failures leave.
///
/// # Errors
/// A sampled run; a workload without persistent memory; a crash point beyond the end of the run; an undo log
/// that cannot be laid out; a condition that names an unknown scheme.
pub fn crash(
    experiment: &Experiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let crashed = || -> Result<Box<dyn Crashed + '_>, Diagnostics> {
        refuse(experiment)?;
        Ok(match experiment.scheme.built.regions() {
            Some(rule) => Box::new(FormedKernels::new(experiment, rule, request, watching.stop)?),
            None => Box::new(Kernels::new(experiment, request, watching.stop)?),
        })
    };
    judge_failures(crashed, request, watching)
}

/// What cannot be judged costs no simulation.
fn refuse(experiment: &Experiment) -> Result<(), Diagnostics> {
    let (workload, scheme) = (&experiment.workload, &*experiment.scheme.built);
    if experiment.sample.is_some() {
        let message = "a sampled run cannot be judged: most of its stores are never simulated";
        return Err(Diagnostic::nowhere("sample", message).with_help("crash tests simulate the whole program").into());
    }
    if experiment.fork.is_some() {
        return Err(of_fork().into());
    }
    if workload.is_trace() {
        let message = "a trace has no values: what a power failure leaves of it cannot be recovered, nor judged";
        let fault = Diagnostic::nowhere(&workload.describe().workload, message);
        return Err(fault.with_help("`durawarp run` times it; kernels in PTX can be judged").into());
    }
    if !workload.has_persistent_memory() {
        let message = "the workload has no buffer in persistent memory: a power failure leaves nothing to judge";
        let name = workload.describe().workload;
        return Err(Diagnostic::nowhere(&name, message).with_help("`space = \"pm\"` of a buffer").into());
    }
    // Conditions name schemes. A scheme of the caller's own is a valid name, too.
    let known = catalogue::all();
    let mut known: Vec<&str> = known.iter().map(|scheme| scheme.name()).collect();
    known.push(scheme.name());
    workload.check_schemes(&known)
}

/// What happened to persistent memory in a run, and where it began: for tests that judge by themselves.
pub fn journal_of(experiment: &Experiment, conduct: &Conduct<'_>) -> (Journal, PmImage) {
    let finished = run(experiment, &Conduct { journal: true, ..conduct.clone() });
    let image = finished.formed.map_or_else(|| experiment.workload.image(), |formed| formed.image());
    (finished.journal.unwrap_or_default(), initial_image(&image))
}
