//! An experiment on a machine of CPU cores, to its outcome.
//!
//! The functional driver runs after the simulation and only for checks that compare with it, bounded by what
//! the simulation executed.

use super::conduct::Conduct;
use super::cpu_experiment::CpuExperiment;
use super::end::Clocks;
use super::finished::{Finished, failures};
use super::simulated::{Simulated, parameters};
use super::slot_places;
use super::timeline;
use crate::assemble::{Assembly, CpuLoad, FormedProcess, Persistency, TOUCHED_BYTES, assemble_cpu};
use crate::config::CpuMachine;
use crate::engine::Timebase;
use crate::kernel::memory::FlatMemory;
use crate::machine::client::Client;
use crate::machine::core::Core;
use crate::machine::cpu::{CpuMemory, CpuSpec};
use crate::machine::home::HomeSlice;
use crate::machine::memory_controller::MemoryController;
use crate::machine::os::OperatingSystem;
use crate::outcome::{self, End, Machine, Outcome, ProcessOutcome};
use crate::riscv::elf::Executable;
use crate::riscv::functional;
use crate::riscv::functional::Options;
use crate::riscv::process::Process;
use crate::run::regions_of_cores::formed_process;
use crate::stats::Table;
use crate::workload::{Bindings, CpuCheckKind, Ran};

/// Instructions that the functional driver may execute beyond those of the simulation, and at most how many
/// times as many: threads that spin may take another way, but not without end.
const REFERENCE_EXTRA: u64 = 1 << 24;
const REFERENCE_FACTOR: u64 = 4;

/// Simulates a program of CPUs.
///
/// # Panics
/// When the program does not fit its memory, which is a fault of its resolution.
pub fn run_cpu(experiment: &CpuExperiment, conduct: &Conduct<'_>) -> Finished {
    let CpuExperiment { machine: config, program, scheme, .. } = experiment;
    let spec = &config.spec;
    let Some(base) = spec.timebase() else { unreachable!("a machine that was loaded has a timebase") };
    let clocks = Clocks { base, core: base.clock(spec.clock.core_mhz.khz) };
    let process = match program.process() {
        Ok(process) => process,
        Err(faults) => panic!("a program that was resolved does not fit its memory: {faults}"),
    };
    let formed = formed_process(&process, scheme.built.regions(), spec.harts());
    let formed = formed.unwrap_or_else(|faults| panic!("an experiment that was checked cannot be formed: {faults}"));
    let load = load_of(experiment, &process, formed.as_ref());
    let machine = assembled(experiment, load, conduct);
    let ran = Simulated::of(machine, clocks, experiment.max_cycles, conduct);

    let (machine, harts) = (&ran.machine, spec.core.harts);
    let (mut left, stdout) = left_by(machine);
    left.slots = conduct.places.then(|| slot_places::of(machine, harts, &process.image));
    let described = serde_json::to_value(program.describe()).unwrap_or_default();
    let mut outcome = Outcome {
        process: Some(left),
        counters: counters(machine),
        ..ran.outcome(describe(config, base), scheme, described, conduct)
    };
    // All that is asked of the machine is asked before its memory: `into_memory` takes it apart.
    let epochs = machine.simulation.epoch_digests().cloned();
    let journal = conduct.journal.then(|| machine.journal());
    let timeline = conduct.timeline.map(|_| timeline::of_cores(machine, harts, ran.time(), base.tick_khz()));
    let components = machine.component_names();
    let os = machine.os().and_then(|os| os.idle()).cloned();
    let (memory, touched) = ran.machine.into_touched_memory(load.image());
    outcome.memory_digest = format!("{:016x}", digest_of(&memory, &touched));
    let bindings = Bindings::default();
    let mut finished = Finished { outcome, memory, bindings, formed: None, epochs, components, journal, timeline, os };
    if finished.outcome.end == End::Finished {
        judge(experiment, &process, load.memory(), &stdout, conduct, &mut finished);
    }
    // Last, as the caveats follow from the whole outcome.
    finished.outcome.validity = outcome::validity::of(&finished.outcome);
    finished
}

/// What the machine runs; under a scheme of recoverable regions, formed.
pub(crate) fn load_of<'a>(
    experiment: &'a CpuExperiment,
    process: &'a Process,
    regions: Option<&'a FormedProcess>,
) -> CpuLoad<'a> {
    let all_persistent = experiment.persistent || experiment.scheme.built.regions().is_some();
    let remote_bytes = experiment.machine.spec.client.all_bytes();
    CpuLoad { process, files: &experiment.program.files, all_persistent, remote_bytes, regions }
}

/// The machine around a process, ready to run.
pub(super) fn assembled(experiment: &CpuExperiment, load: CpuLoad<'_>, conduct: &Conduct<'_>) -> Assembly {
    let spec = &experiment.machine.spec;
    let components = spec.core.count + spec.llc.slices + spec.controller.channels;
    let persistency = Persistency {
        scheme: experiment.scheme.built.clone(),
        journal: conduct.journal,
        timeline: conduct.timeline.map(|bytes| timeline::spans_each(bytes, components)),
        places: conduct.places,
        halts_at_end: true,
    };
    assemble_cpu(spec, load, &persistency)
}

/// What the process left, and its standard output as it was written.
fn left_by(machine: &Assembly) -> (ProcessOutcome, Vec<u8>) {
    let Some(os) = machine.os() else { unreachable!("a machine of cores has an OS") };
    let (stdout, stderr) = os.output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let left = ProcessOutcome {
        exit_code: os.ended().map(|(_, code)| code),
        stdout: text(stdout),
        stderr: text(stderr),
        unsupported_calls: os.unsupported().collect(),
        slots: None,
    };
    (left, stdout.to_vec())
}

/// Runs the checks, and the functional driver for those that need it.
#[expect(clippy::disallowed_methods, reason = "the wall time of the reference is part of the report")]
fn judge(
    experiment: &CpuExperiment,
    process: &Process,
    memory: CpuMemory,
    stdout: &[u8],
    conduct: &Conduct<'_>,
    finished: &mut Finished,
) {
    let checks = &experiment.program.checks;
    // The functional driver takes as long as the program has instructions: it runs only where it is asked
    // for.
    let compares = checks.iter().any(|check| check.kind == CpuCheckKind::Functional);
    let began = std::time::Instant::now();
    let reference = (experiment.reference && compares).then(|| reference(experiment, process, finished, conduct));
    if reference.is_some() {
        finished.outcome.host.functional_s = began.elapsed().as_secs_f64();
    }
    let mut no_reference = None;
    let functional = match &reference {
        Some(functional::Outcome { end: functional::End::Exited(exit_code), stdout, memory, .. }) => {
            Some(Ran { exit_code: *exit_code, stdout, persistent: memory.persistent() })
        }
        Some(functional::Outcome { end: functional::End::Stopped, .. }) => {
            // Nobody knows whether the result is right: it is no failure, and a sweep runs the point again.
            finished.outcome.end = End::Stopped;
            return;
        }
        Some(other) => {
            no_reference = Some(format!("there is no reference to compare with: {}", why(&other.end, &process.image)));
            None
        }
        None => None,
    };
    let pm_bytes = memory.windows.pm_bytes as usize;
    let ran = Ran {
        exit_code: finished.outcome.process.as_ref().and_then(|process| process.exit_code).unwrap_or_default(),
        stdout,
        persistent: finished.memory.slice(memory.persistent, pm_bytes).unwrap_or_default(),
    };
    let verification = experiment.program.verify(&ran, functional.as_ref());
    let failures: Vec<String> = failures(&verification).into_iter().chain(no_reference).collect();
    finished.outcome.verification = Some(outcome::Verification {
        passed: failures.is_empty(),
        checks: serde_json::to_value(&verification).unwrap_or_default(),
        failures,
    });
}

/// The functional run.
fn reference(
    experiment: &CpuExperiment,
    process: &Process,
    finished: &Finished,
    conduct: &Conduct<'_>,
) -> functional::Outcome {
    let executed = finished.outcome.total("core", "instructions");
    let options = Options {
        harts: experiment.machine.spec.harts(),
        instructions: executed * REFERENCE_FACTOR + REFERENCE_EXTRA,
        files: experiment.program.files.clone(),
        stop: conduct.stop,
    };
    functional::run(process, process.memory(), &options)
}

/// Why the functional driver did not come to the program's end.
fn why(end: &functional::End, image: &Executable) -> String {
    match end {
        functional::End::Exited(code) => format!("it exited with {code}"),
        functional::End::Fault(fault) => format!("the functional driver: {fault}"),
        functional::End::Deadlock(harts) => {
            let waits = functional::waits_in_words(harts, image);
            format!("all {} threads of the functional driver wait for each other: {waits}", harts.len())
        }
        functional::End::Limit => "the functional driver executed many more instructions than the cores".to_owned(),
        functional::End::Stopped => "it was stopped".to_owned(),
    }
}

fn counters(machine: &Assembly) -> Vec<Table> {
    let dram_caches: Vec<_> =
        machine.controllers().filter_map(MemoryController::dram_cache_counters).copied().collect();
    let mut tables = vec![
        Table::of("core", &machine.cores().map(Core::counters).copied().collect::<Vec<_>>()),
        Table::of("llc", &machine.homes().map(HomeSlice::counters).copied().collect::<Vec<_>>()),
        Table::of("os", &machine.os().map(OperatingSystem::counters).into_iter().collect::<Vec<_>>()),
        Table::of(
            "memory_controller",
            &machine.controllers().map(MemoryController::counters).copied().collect::<Vec<_>>(),
        ),
    ];
    if !dram_caches.is_empty() {
        tables.push(Table::of("dram_cache", &dram_caches));
    }
    if let Some(nic) = machine.nic() {
        tables.push(Table::of("nic", &[nic.counters()]));
        tables.push(Table::of("client", &machine.clients().map(Client::counters).collect::<Vec<_>>()));
    }
    tables
}

fn describe(config: &CpuMachine, base: Timebase) -> Machine {
    let values = serde_json::to_value(&config.spec).unwrap_or_default();
    let spec = &config.spec;
    Machine {
        name: config.name.clone(),
        description: config.description.clone(),
        parameters: parameters(CpuSpec::TABLES, &values, &config.sources),
        peak_memory_bytes_per_s: spec.peak_memory_bandwidth(),
        // Of cores: instructions, and harts.
        peak_issue_per_cycle: spec.core.count * spec.core.width,
        warp_slots: u64::from(spec.harts()),
        core_khz: spec.clock.core_mhz.khz,
        tick_khz: base.tick_khz(),
    }
}

/// FNV-1a over every page that has a byte other than zero, eight bytes at a time, each with its address. Only
/// what was touched is looked at, and hence committed by the host.
fn digest_of(memory: &FlatMemory, touched: &[(u64, u64)]) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut fold = |word: u64| digest = (digest ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23);
    for (start, bytes) in touched {
        for address in (*start..start + bytes).step_by(TOUCHED_BYTES as usize) {
            // Windows are whole pages, and so are these.
            let page = memory.slice(address, TOUCHED_BYTES as usize).unwrap_or_default();
            if page.iter().any(|byte| *byte != 0) {
                fold(address);
                let (words, _) = page.as_chunks();
                words.iter().for_each(|word| fold(u64::from_le_bytes(*word)));
            }
        }
    }
    digest
}
