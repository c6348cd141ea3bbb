//! Power fails under a scheme of recoverable regions on CPU cores: what its hardware recovers is judged, and
//! the program goes on from it.
//!
//! ```text
//!  experiment ─ run (journal on) ─> regions, controllers' steps ─ recovery ─> image
//!                                       image ─ slots ─ functional driver ─> the same end
//! ```
//! The judgements are those of kernels ([`super::regions`]). To go on, each hart with a program counter in
//! its slots gets its registers from there, or computes them as its boundary says. The system is persisted
//! with the rest, as LightWSP persists its own (V-A): the program goes on with what it was after the latest
//! step that a committed region knows of. That is the break, mappings, threads and who waits for what, open
//! files and where reading of them had come to, and what was written. A call that took effect by then and has
//! not returned is answered and not performed again ([`RegionImage::recovered`]); one that did not is
//! performed again. Results are compared by exit code and output ([`super::output`]). Programs check
//! themselves what they computed.
//!
//! Source: P4 of the oracle's design; LightWSP, sections IV-F and V-A. Reading: the paper does not say how
//! its system's regions and those of programs commit together. Not modelled: time that recovery takes; the
//! clock goes on from the last of these steps.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::assemble::{CpuLoad, FormedProcess};
use crate::outcome::ProcessOutcome;
use crate::run::regions_of_cores::formed_process;
use crate::run::{Conduct, CpuExperiment, load_of, run_cpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_oracle::order::Model;
use durawarp_oracle::regions::{Resumes, TwiceResumed};
use durawarp_persist::vocab::{Domain, RegionRule};
use durawarp_persist::{Journal, PmImage};
use durawarp_riscv::functional::{self, RegionImage, RegionRun, Slots};
use durawarp_riscv::process::Process;
use durawarp_riscv::regions::{SLOTS_BYTES, STEP_SLOT};
use durawarp_riscv::syscalls::{Os, OsLog};

use super::driver::Crashed;
use super::gone_on;
use super::image::{covering, windows_of};
use super::output::ExpectedOutput;
use super::promise::Promise;
use super::ran::JournaledRun;
use super::regions::{self, Hardware};
use super::report::{CrashReport, JudgedLevel};
use super::request::CrashRequest;
use super::subject::{Site, Subject, own_load};

/// Steps after which a run that goes on looks whether it is to stop.
const STEPS: u64 = 1 << 16;

/// A program of CPUs in recoverable regions.
pub(super) struct FormedCores<'a> {
    experiment: &'a CpuExperiment,
    process: Process,
    formed: FormedProcess,
    rule: RegionRule,
}

impl<'a> FormedCores<'a> {
    /// # Errors
    /// A machine with clients or several servers; states of levels that do not apply; a program that cannot
    /// be formed.
    pub(super) fn new(
        experiment: &'a CpuExperiment,
        rule: RegionRule,
        request: &CrashRequest,
    ) -> Result<Self, Diagnostics> {
        let (spec, program) = (&experiment.machine.spec, &experiment.program);
        if spec.nodes.clients > 0 || spec.nodes.servers > 1 || request.is_about_barriers() {
            let message = "clients, several servers and persist barriers (--claim, --by) are not judged under a scheme of regions";
            return Err(Diagnostic::nowhere(&program.name, message).into());
        }
        regions::refuse(request)?;
        let process = program.process()?;
        let Some(formed) = formed_process(&process, Some(rule), spec.harts())? else {
            unreachable!("the scheme has regions")
        };
        Ok(FormedCores { experiment, process, formed, rule })
    }
}

impl FormedCores<'_> {
    fn load(&self) -> CpuLoad<'_> {
        own_load(self.experiment, &self.process, Some(&self.formed))
    }
}

impl Crashed for FormedCores<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Cores(self.experiment, &self.process, Some(&self.formed))
    }

    fn site(&self) -> Site {
        let site = self.subject().site();
        // Regions are committed by write-pending queues, whatever else survives.
        Site { model: Model { domain: Domain::Adr, ..site.model }, ..site }
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        let (spec, finished) = (&self.experiment.machine.spec, ran.finished);
        // A run without an end has no result that one which is resumed could be compared with.
        let ended = finished.os.as_ref().zip(finished.os_log.as_ref()).zip(finished.outcome.process.as_ref());
        let strict = ran.request.strict_output;
        let resumption = ended.map(|((os, log), left)| CpuResumption {
            of: self,
            log,
            left,
            output: ExpectedOutput::new(os, strict, self.experiment.program.lines_not_judged()),
            instructions: gone_on::most_instructions(&finished.outcome),
            stop: ran.watching.stop,
        });
        let resumes = resumption.as_ref().map(|resumption| resumption as &dyn Resumes);
        let resumes = resumes.ok_or("the run did not end: it has no result to compare with");
        let hardware = Hardware { controllers: spec.controller.channels as usize, rule: self.rule, checks: &[] };
        let mut report = regions::judge(ran, &hardware, resumes)?;
        if report.level(JudgedLevel::Resumed).is_some() {
            report.promises.push(if strict { Promise::SameOutput } else { Promise::SameOutputByThread });
            report.output = resumption.map(|resumption| resumption.output.into_counts());
        }
        Ok(report)
    }
}

/// What happened to persistent memory in a run of a program of CPUs under a scheme of regions, and where it
/// began: for tests that judge by themselves.
///
/// # Errors
/// The program cannot be formed.
pub fn journal_of_cores(experiment: &CpuExperiment) -> Result<(Journal, PmImage), Diagnostics> {
    let process = experiment.program.process()?;
    let (rule, harts) = (experiment.scheme.built.regions(), experiment.machine.spec.harts());
    let formed = formed_process(&process, rule, harts)?;
    let finished = run_cpu(experiment, &Conduct { journal: true, ..Conduct::default() });
    let initial = covering(&load_of(experiment, &process, formed.as_ref()).image(), &finished);
    Ok((finished.journal.unwrap_or_default(), initial))
}

/// The program, gone on with on the functional driver.
struct CpuResumption<'a> {
    of: &'a FormedCores<'a>,
    /// What the system did in the run without a failure.
    log: &'a OsLog,
    /// What that run left.
    left: &'a ProcessOutcome,
    output: ExpectedOutput,
    instructions: u64,
    stop: &'a AtomicBool,
}

impl CpuResumption<'_> {
    /// A word of a hart's slots, as an image has it.
    fn slot(&self, image: &PmImage, hart: usize, slot: usize) -> u64 {
        let at = self.of.load().checkpoints() + SLOTS_BYTES * hart as u64 + 8 * slot as u64;
        let bytes = image.read(at, 8).ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        u64::from_le_bytes(bytes)
    }

    /// The program as recovery left it.
    fn recovered(&self, image: &PmImage) -> Result<RegionRun, String> {
        let slots = |hart| -> Slots { std::array::from_fn(|slot| self.slot(image, hart, slot)) };
        let FormedCores { experiment, process, formed, .. } = self.of;
        let harts = experiment.machine.spec.harts() as usize;
        let slots: Vec<Slots> = (0..harts).map(slots).collect();
        let returned: Vec<u64> = (0..harts).map(|hart| self.slot(image, hart, STEP_SLOT)).collect();
        let steps = returned.iter().copied().max().unwrap_or_default();
        let begun = Os::new(process, harts as u32, experiment.program.files.clone());
        let system = self.log.after(steps, begun, harts);
        let (memory, table) = (windows_of(process, &self.of.load().memory(), image), &formed.table);
        let image = RegionImage::recovered(memory, slots, &returned, system, process, table)?;
        Ok(RegionRun::resume(process, image, table))
    }

    /// Runs on until `regions` more have ended; none while the program has not ended by then.
    fn advance(&self, run: &mut RegionRun, regions: u64) -> Result<Option<functional::End>, String> {
        while run.counts().regions() < regions {
            // A step has at most two regions.
            let steps = STEPS.min((regions - run.counts().regions()).div_ceil(2));
            if let Some(end) = run.advance(steps) {
                return Ok(Some(end));
            }
            if run.counts().instructions > self.instructions {
                return Err(gone_on::takes_too_long(self.instructions));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Some(functional::End::Stopped));
            }
        }
        Ok(None)
    }

    /// Runs to the end, and compares.
    fn to_the_end(&self, mut run: RegionRun) -> Result<(), String> {
        let Some(end) = self.advance(&mut run, u64::MAX)? else { unreachable!("it ends, or takes too long") };
        let ended = run.outcome(end);
        if gone_on::exit_code(ended.end, &self.of.process.image, self.instructions, Some(self.left))?.is_none() {
            return Ok(());
        }
        let compared = self.output.compare([&ended.stdout, &ended.stderr], &ended.written);
        compared.map_err(|what| format!("gone on, {what}"))
    }
}

impl Resumes for CpuResumption<'_> {
    fn finish(&self, recovered: &PmImage) -> Result<(), String> {
        self.to_the_end(self.recovered(recovered)?)
    }

    fn finish_twice(&self, recovered: &PmImage, regions: u64) -> Result<(), TwiceResumed> {
        let mut run = self.recovered(recovered).map_err(TwiceResumed::Before)?;
        if self.advance(&mut run, regions).map_err(TwiceResumed::Before)?.is_some() {
            return Ok(());
        }
        let again = RegionRun::resume(&self.of.process, run.power_failure(), &self.of.formed.table);
        self.to_the_end(again).map_err(TwiceResumed::After)
    }
}
