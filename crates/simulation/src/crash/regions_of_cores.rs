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
use std::time::Instant;

use crate::assemble::FormedProcess;
use crate::outcome::ProcessOutcome;
use crate::run::regions_of_cores::formed_process;
use crate::run::{Conduct, CpuExperiment, load_of, run_cpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_machine::cpu::CpuMemory;
use durawarp_machine::ports::Requester;
use durawarp_oracle::regions::{Resumes, TwiceResumed};
use durawarp_oracle::verdict::Verdict;
use durawarp_persist::{Journal, PmImage};
use durawarp_riscv::functional::{self, RegionImage, RegionRun, Slots};
use durawarp_riscv::process::Process;
use durawarp_riscv::regions::{SLOTS_BYTES, STEP_SLOT};
use durawarp_riscv::syscalls::{File, Os, OsLog};

use super::gone_on;
use super::image::{initial_image, windows_of};
use super::output::ExpectedOutput;
use super::regions;
use super::report::CrashReport;
use super::request::{CrashRequest, Watching};
use super::saved::judgement;

/// Steps after which a run that goes on looks whether it is to stop.
const STEPS: u64 = 1 << 16;

/// Runs a program of CPUs once and judges what power failures leave under a scheme of regions.
///
/// # Errors
/// A machine with clients or several servers; states of levels that do not apply; a program that cannot be
/// formed.
#[expect(clippy::disallowed_methods, reason = "the wall time of a test is part of its report, not of its model")]
pub(super) fn crash_regions_of_cores(
    experiment: &CpuExperiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let began = Instant::now();
    let (spec, program) = (&experiment.machine.spec, &experiment.program);
    let domain = spec.persist.domain;
    if spec.nodes.clients > 0 || spec.nodes.servers > 1 || request.claim.is_some() {
        let message = "clients, several servers and claims are not judged under a scheme of regions";
        return Err(Diagnostic::nowhere(&program.name, message).into());
    }
    let process = program.process()?;
    let rule = experiment.scheme.built.regions();
    let (Some(formed), Some(rule)) = (formed_process(&process, rule, spec.harts())?, rule) else {
        unreachable!("the scheme has regions")
    };
    let load = load_of(experiment, &process, Some(&formed));
    // One run gives every state: journals keep all that changes what controllers know.
    let finished = run_cpu(experiment, &Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let Some(journal) = &finished.journal else { unreachable!("a journal was asked for") };
    let initial = regions::covering(initial_image(&load.image()), journal);
    let instructions = gone_on::most_instructions(&finished.outcome);
    // A run without an end has no result that one which is resumed could be compared with.
    let ended = finished.os.as_ref().zip(finished.os_log.as_ref()).zip(finished.outcome.process.as_ref());
    let resumption = ended.map(|((os, log), left)| CpuResumption {
        harts: spec.harts() as usize,
        process: &process,
        files: &program.files,
        formed: &formed,
        memory: load.memory(),
        checkpoints: load.checkpoints(),
        log,
        left,
        output: ExpectedOutput::new(os, request.strict_output),
        instructions,
        stop: watching.stop,
    });
    let resumes = resumption.as_ref().map(|resumption| resumption as &dyn Resumes);
    let resumes = resumes.ok_or("the run did not end: it has no result to compare with");
    let host = Requester::os(spec.core.count as u16).number();
    let controllers = spec.controller.channels as usize;
    let compared = Some(compared(request.strict_output));
    // The judge of kernels' regions asks for harts, controllers and facts alone.
    let judged = regions::Run { journal, outcome: &finished.outcome, controllers, rule, host, checks: &[], compared };
    let verdicts = regions::judge(judged, &initial, resumes, request, watching)?;
    let resumed = verdicts.resume.is_some();
    let output = resumption.map(|resumption| resumption.output.into_counts()).filter(|_| resumed);
    let ticks_a_cycle = spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks());
    let judgement = |verdict: Verdict| judgement(verdict, program, ticks_a_cycle);
    let wall_s = [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()];
    let report = verdicts.report(&finished.outcome, &initial, (domain, request.seed), wall_s, judgement);
    Ok(CrashReport { output, ..report })
}

/// What is compared of a program that goes on, in words.
fn compared(strict_output: bool) -> &'static str {
    match strict_output {
        true => "its result is its exit code and its output, byte for byte (--strict-output)",
        false => "its result is its exit code and its output, in any order of threads, each thread's in its own",
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
    let initial = initial_image(&load_of(experiment, &process, formed.as_ref()).image());
    let finished = run_cpu(experiment, &Conduct { journal: true, ..Conduct::default() });
    let journal = finished.journal.unwrap_or_default();
    let initial = regions::covering(initial, &journal);
    Ok((journal, initial))
}

/// The program, gone on with on the functional driver.
struct CpuResumption<'a> {
    harts: usize,
    process: &'a Process,
    files: &'a [File],
    formed: &'a FormedProcess,
    memory: CpuMemory,
    /// Physical address of the harts' slots.
    checkpoints: u64,
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
        let at = self.checkpoints + SLOTS_BYTES * hart as u64 + 8 * slot as u64;
        let bytes = image.read(at, 8).ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        u64::from_le_bytes(bytes)
    }

    /// The program as recovery left it.
    fn recovered(&self, image: &PmImage) -> Result<RegionRun, String> {
        let slots = |hart| -> Slots { std::array::from_fn(|slot| self.slot(image, hart, slot)) };
        let slots: Vec<Slots> = (0..self.harts).map(slots).collect();
        let returned: Vec<u64> = (0..self.harts).map(|hart| self.slot(image, hart, STEP_SLOT)).collect();
        let steps = returned.iter().copied().max().unwrap_or_default();
        let begun = Os::new(self.process, self.harts as u32, self.files.to_vec());
        let system = self.log.after(steps, begun, self.harts);
        let (memory, table) = (windows_of(self.process, &self.memory, image), &self.formed.table);
        let image = RegionImage::recovered(memory, slots, &returned, system, self.process, table)?;
        Ok(RegionRun::resume(self.process, image, table))
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
        if gone_on::exit_code(ended.end, &self.process.image, self.instructions, Some(self.left))?.is_none() {
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
        let again = RegionRun::resume(self.process, run.power_failure(), &self.formed.table);
        self.to_the_end(again).map_err(TwiceResumed::After)
    }
}
