//! Power fails under a scheme of recoverable regions on CPU cores: what its hardware recovers is judged, and
//! the program goes on from it.
//!
//! ```text
//!  experiment ─ run (journal on) ─> regions, controllers' steps ─ recovery ─> image
//!                                       image ─ slots ─ functional driver ─> the same end
//! ```
//! The judgements are those of kernels ([`super::regions`]). To go on, each hart with a program counter in
//! its slots gets its registers from there, or computes them as its boundary says; its thread keeps its
//! number, and repeats a call that it waited in. The system survives (LightWSP persists its own with the
//! rest): memory that it gave stays given. So results are compared by exit code, and output by what was
//! written since: it is the end of what a run without a failure writes. Programs check themselves what they
//! computed.
//!
//! Source: P4 of the oracle's design; LightWSP, section IV-F. Not modelled: time that recovery takes; where
//! reading of files had come to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::assemble::FormedProcess;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::machine::cpu::CpuMemory;
use crate::machine::ports::Requester;
use crate::oracle::regions::Resumes;
use crate::oracle::verdict::Verdict;
use crate::outcome::ProcessOutcome;
use crate::persist::{Journal, PmImage};
use crate::riscv::functional::{self, RegionImage, RegionRun, Slots};
use crate::riscv::process::Process;
use crate::riscv::regions::{PC_SLOT, SLOTS_BYTES, THREAD_SLOT};
use crate::riscv::syscalls::Os;
use crate::run::regions_of_cores::formed_process;
use crate::run::{Conduct, CpuExperiment, load_of, run_cpu};

use super::gone_on;
use super::image::{initial_image, keep_windows, windows_of};
use super::regions;
use super::report::CrashReport;
use super::request::{CrashRequest, Watching};
use super::saved::judgement;

/// Bytes of `ecall`.
const CALL_BYTES: u64 = 4;

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
    let resumption = finished.os.as_ref().zip(finished.outcome.process.as_ref()).map(|(os, left)| CpuResumption {
        harts: spec.harts() as usize,
        process: &process,
        formed: &formed,
        memory: load.memory(),
        checkpoints: load.checkpoints(),
        os,
        left,
        instructions,
        stop: watching.stop,
    });
    let resumes = resumption.as_ref().map(|resumption| resumption as &dyn Resumes);
    let resumes = resumes.ok_or("the run did not end: it has no result to compare with");
    let host = Requester::os(spec.core.count as u16).number();
    let controllers = spec.controller.channels as usize;
    // The judge of kernels' regions asks for harts, controllers and facts alone.
    let judged = regions::Run { journal, outcome: &finished.outcome, controllers, rule, host, checks: &[] };
    let verdicts = regions::judge(judged, &initial, resumes, request, watching)?;
    let ticks_a_cycle = spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks());
    let judgement = |verdict: Verdict| judgement(verdict, program, ticks_a_cycle);
    let wall_s = [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()];
    Ok(verdicts.report(&finished.outcome, &initial, (domain, request.seed), wall_s, judgement))
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
    formed: &'a FormedProcess,
    memory: CpuMemory,
    /// Physical address of the harts' slots.
    checkpoints: u64,
    /// At the end of the run without a failure.
    os: &'a Os,
    /// What that run left.
    left: &'a ProcessOutcome,
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
    fn recovered(&self, image: &PmImage) -> RegionRun {
        let slots = |hart| -> Slots { std::array::from_fn(|slot| self.slot(image, hart, slot)) };
        let slots: Vec<Slots> = (0..self.harts).map(slots).collect();
        let runs = |hart: usize| slots[hart][PC_SLOT] != 0;
        let thread = |hart| match runs(hart) {
            true => (self.slot(image, hart, THREAD_SLOT), self.slot(image, hart, THREAD_SLOT + 1)),
            false => (0, 0),
        };
        let os = self.os.restarted(&(0..self.harts).map(thread).collect::<Vec<_>>());
        let memory = windows_of(self.process, &self.memory, image);
        RegionRun::resume(self.process, RegionImage::new(memory, slots, os, 0), &self.formed.table)
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
}

impl Resumes for CpuResumption<'_> {
    fn finish(&self, recovered: &PmImage) -> Result<(), String> {
        let mut run = self.recovered(recovered);
        let Some(end) = self.advance(&mut run, u64::MAX)? else { unreachable!("it ends, or takes too long") };
        let ended = run.outcome(end);
        if gone_on::exit_code(ended.end, &self.process.image, self.instructions, Some(self.left))?.is_none() {
            return Ok(());
        }
        let written = String::from_utf8_lossy(&ended.stdout);
        if !self.left.stdout.ends_with(&*written) {
            return Err(format!("gone on, it writes {written:?}, which is no end of {:?}", self.left.stdout));
        }
        Ok(())
    }

    fn interrupt(&self, recovered: &PmImage, regions: u64) -> Result<Option<PmImage>, String> {
        let mut run = self.recovered(recovered);
        if self.advance(&mut run, regions)?.is_some() {
            return Ok(None);
        }
        let left = run.power_failure();
        let mut image = recovered.clone();
        let outside = |_| "a store outside persistent memory".to_owned();
        for (hart, slots) in left.slots().iter().enumerate() {
            let at = self.checkpoints + SLOTS_BYTES * hart as u64;
            let thread = left.os().thread(hart as u32);
            let pc = match thread {
                0 => 0,
                // It repeats the call that it waits in: its arguments are in the slots still.
                _ if !left.runs(hart) => slots[PC_SLOT] - CALL_BYTES,
                _ => slots[PC_SLOT],
            };
            let words = slots[..PC_SLOT].iter().copied().chain([pc, thread, left.os().cleared_at_end(hart as u32)]);
            for (slot, word) in words.enumerate() {
                image.write(at + 8 * slot as u64, &word.to_le_bytes()).map_err(outside)?;
            }
        }
        keep_windows(left.memory(), &self.memory, &mut image).map_err(outside)?;
        Ok(Some(image))
    }
}
