//! An experiment on a machine of CPU cores, to its outcome.
//!
//! The functional driver runs after the simulation and only for checks that compare with it, bounded by what
//! the simulation executed. Of several servers each is checked as one alone would be, and its exit code and
//! standard output are to be those of the first, which are shown. Each keeps a journal of its own. Nothing is
//! told of what is left to be written, as their programs end at different times.

use super::conduct::Conduct;
use super::cpu_experiment::CpuExperiment;
use super::end::Clocks;
use super::finished::{Finished, failures as told};
use super::parameters::parameters;
use super::repeats;
use super::simulated::Simulated;
use super::slot_places;
use super::timeline;
use crate::assemble::{Assembly, CpuLoad, FormedProcess, Persistency, TOUCHED_BYTES, assemble_cpu};
use crate::config::CpuMachine;
use crate::outcome::{self, End, FileOutcome, Machine, Outcome, ProcessOutcome};
use crate::run::regions_of_cores::formed_process;
use durawarp_base::sparse;
use durawarp_base::stats::Table;
use durawarp_engine::Timebase;
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::client::Client;
use durawarp_machine::core::Core;
use durawarp_machine::cpu::{CpuMemory, CpuSpec};
use durawarp_machine::home::HomeSlice;
use durawarp_machine::memory_controller::MemoryController;
use durawarp_machine::nic::Nic;
use durawarp_machine::os::OperatingSystem;
use durawarp_machine::ports::Endpoint;
use durawarp_machine::poster::Poster;
use durawarp_riscv::elf::Executable;
use durawarp_riscv::functional;
use durawarp_riscv::functional::Options;
use durawarp_riscv::process::Process;
use durawarp_riscv::syscalls::{File, number};
use durawarp_workload::{CpuCheckKind, Ran};

/// Instructions that the functional driver may execute beyond those of the simulation, and at most how many
/// times as many: threads that spin may take another way, but not without end.
const REFERENCE_EXTRA: u64 = 1 << 24;
const REFERENCE_FACTOR: u64 = 4;

/// Simulates a program of CPUs whole, or from a checkpoint on.
///
/// # Panics
/// When the program does not fit its memory, which is a fault of its resolution; the checkpoint is of another
/// experiment.
pub(super) fn run_process(experiment: &CpuExperiment, conduct: &Conduct<'_>) -> Finished {
    run_unless(experiment, None, conduct)
}

/// A program of CPUs that fails before its first instruction, as the experiment cannot be run: why.
pub(super) fn refused_process(experiment: &CpuExperiment, why: String, conduct: &Conduct<'_>) -> Finished {
    run_unless(experiment, Some(why), conduct)
}

/// Simulates, unless something keeps it from that.
fn run_unless(experiment: &CpuExperiment, refused: Option<String>, conduct: &Conduct<'_>) -> Finished {
    let CpuExperiment { machine: config, program, scheme, .. } = experiment;
    // Nothing is launched here: there is no counting by launch, whatever is asked.
    let conduct = &Conduct { launches: false, ..conduct.clone() };
    let spec = &config.spec;
    let clocks = experiment.clocks();
    let base = clocks.base;
    let (process, formed) = process_of(experiment);
    let load = load_of(experiment, &process, formed.as_ref());
    let mut machine = assembled(experiment, load, conduct);
    if let Some(from) = conduct.from
        && let Err(fault) = from.load(&mut machine, &scheme.built)
    {
        panic!("the checkpoint is of another experiment: {fault}");
    }
    let asked = |machine: &Assembly, long| repeats::of_harts(machine, &process.image, long);
    let ran = match refused {
        None => Simulated::of(machine, clocks, experiment.max_cycles, conduct, Some(&asked)),
        Some(why) => Simulated::refused(machine, clocks, Endpoint::Os, why),
    };

    let (machine, harts) = (&ran.machine, spec.core.harts);
    let ends: Vec<ServerEnd> = machine.systems().map(ServerEnd::of).collect();
    let files = ends[0].files.clone();
    let mut left = left_by(machine, clocks, &files);
    let missing = missing_calls(&left.unsupported_calls);
    left.slots = conduct.places.then(|| slot_places::of(machine, harts, &process.image));
    let described = serde_json::to_value(program.describe()).unwrap_or_default();
    let outcome = Outcome {
        process: Some(left),
        counters: counters(machine),
        from_checkpoint: conduct.from.and_then(|from| from.forked().cloned()),
        ..ran.outcome(describe(config, base), scheme, described, conduct)
    };
    // All that is asked of the machine is asked before its memory: `into_memory` takes it apart.
    let timeline = conduct
        .timeline
        .map(|_| timeline::of_cores(machine, (harts, spec.core.width), ran.time(), (base.tick_khz(), clocks.core)));
    // Whoever goes on after a power failure has a journal, too.
    let os = machine.systems().next().and_then(OperatingSystem::idle).filter(|_| conduct.journal).cloned();
    let os_log = machine.systems().next().and_then(OperatingSystem::log).cloned();
    let finished = ran.finished(outcome, conduct);
    let (mut memories, mut digest) = (Vec::new(), None);
    for of in ran.machine.into_memories() {
        let (memory, touched) = of.into_touched(load.image());
        let own = digest_of(&memory, &touched);
        // Servers may have the same memory: alike words would leave nothing of each other.
        digest = Some(digest.map_or(own, |digest| fold(fold(digest, 1), own)));
        memories.push(memory);
    }
    let others = memories.split_off(1);
    let Some(memory) = memories.pop() else { unreachable!("no machine is without a server") };
    let mut finished = Finished { memory, timeline, files, os, os_log, ..finished };
    finished.outcome.memory_digest = format!("{:016x}", digest.unwrap_or_default());
    if finished.outcome.end == End::Finished {
        judge(experiment, &process, (load.memory(), load.remote()), (&ends, &others), conduct, &mut finished);
    }
    if let Some(missing) = missing {
        blame(&missing, &mut finished.outcome);
    }
    // Last, as this follows from the whole outcome.
    Finished { outcome: outcome::computed(finished.outcome), ..finished }
}

/// The process of a program and, under a scheme of recoverable regions, what it is formed into.
///
/// # Panics
/// When the program does not fit its memory, which is a fault of its resolution.
pub(super) fn process_of(experiment: &CpuExperiment) -> (Process, Option<FormedProcess>) {
    let process = match experiment.program.process() {
        Ok(process) => process,
        Err(faults) => panic!("a program that was resolved does not fit its memory: {faults}"),
    };
    let (regions, harts) = (experiment.scheme.built.regions(), experiment.machine.spec.harts());
    let formed = formed_process(&process, regions, harts);
    let formed = formed.unwrap_or_else(|faults| panic!("an experiment that was checked cannot be formed: {faults}"));
    (process, formed)
}

/// What the machine runs; under a scheme of recoverable regions, formed.
pub(crate) fn load_of<'a>(
    experiment: &'a CpuExperiment,
    process: &'a Process,
    regions: Option<&'a FormedProcess>,
) -> CpuLoad<'a> {
    let all_persistent = experiment.persistent || experiment.scheme.built.regions().is_some();
    let remote_bytes = experiment.machine.spec.remote_bytes();
    CpuLoad { process, files: &experiment.program.files, all_persistent, remote_bytes, regions }
}

/// The machine of an experiment, ready to run.
pub(super) fn machine_of_cores(experiment: &CpuExperiment, conduct: &Conduct<'_>) -> Assembly {
    let (process, formed) = process_of(experiment);
    assembled(experiment, load_of(experiment, &process, formed.as_ref()), conduct)
}

/// The machine around a process, ready to run.
pub(super) fn assembled(experiment: &CpuExperiment, load: CpuLoad<'_>, conduct: &Conduct<'_>) -> Assembly {
    assemble_cpu(&experiment.machine.spec, load, &persistency(experiment, conduct))
}

/// What a machine of the experiment keeps of persistency.
pub(super) fn persistency(experiment: &CpuExperiment, conduct: &Conduct<'_>) -> Persistency {
    let spec = &experiment.machine.spec;
    let alone = spec.nodes.servers == 1;
    let of_server = spec.core.count + spec.llc.slices + spec.controller.channels + 1;
    let components = spec.nodes.servers * of_server + spec.nodes.clients;
    Persistency {
        scheme: experiment.scheme.built.clone(),
        devices: experiment.machine.devices.clone(),
        journal: conduct.journal,
        timeline: conduct.timeline.map(|bytes| timeline::spans_each(bytes, components)),
        places: conduct.places,
        line_writes: conduct.line_writes || conduct.from.is_some_and(|from| from.line_writes),
        halts_at_end: alone,
        halts_after_launches: false,
        overlaps: false,
    }
}

/// Calls that are not served, in words; none without any.
pub(super) fn missing_calls(calls: &[(u64, u64)]) -> Option<String> {
    let names: Vec<String> = calls.iter().map(|(number, _)| number::described(*number)).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("system call {name} is not served")),
        names => Some(format!("system calls {} are not served", names.join(", "))),
    }
}

/// Says first of a run that went wrong which calls the program made in vain: what went wrong may follow from
/// it.
pub(super) fn blame(missing: &str, outcome: &mut Outcome) {
    match &mut outcome.end {
        End::Failed { error } => *error = format!("{missing}; then: {error}"),
        End::Deadlock { waits } => waits.insert(0, missing.to_owned()),
        _ => {}
    }
    if let Some(verification) = outcome.verification.as_mut().filter(|verification| !verification.passed) {
        verification.failures.insert(0, missing.to_owned());
    }
}

/// How the process of a server ended.
struct ServerEnd {
    exit_code: i32,
    /// As it was written.
    stdout: Vec<u8>,
    files: Vec<File>,
}

impl ServerEnd {
    fn of(os: &OperatingSystem) -> ServerEnd {
        let exit_code = os.ended().map_or(0, |(_, code)| code);
        ServerEnd { exit_code, stdout: os.output().0.to_vec(), files: os.written_files().collect() }
    }

    /// In what it is another end than that of the first server.
    fn differs(&self, first: &ServerEnd) -> Vec<String> {
        let mut found = Vec::new();
        if self.exit_code != first.exit_code {
            found
                .push(format!("the program exited with {}, that of server 0 with {}", self.exit_code, first.exit_code));
        }
        if self.stdout != first.stdout {
            found.push("standard output is not that of server 0".to_owned());
        }
        if self.files != first.files {
            found.push("its files are not those of server 0".to_owned());
        }
        found
    }
}

/// What the process of the first server left.
fn left_by(machine: &Assembly, clocks: Clocks, files: &[File]) -> ProcessOutcome {
    let Some(os) = machine.systems().next() else { unreachable!("a machine of cores has an OS") };
    let (stdout, stderr) = os.output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ProcessOutcome {
        exit_code: os.ended().map(|(_, code)| code),
        ended: os.ended().filter(|_| machine.nics().next().is_some()).map(|(at, _)| clocks.duration(at)),
        stdout: text(stdout),
        stderr: text(stderr),
        files: FileOutcome::of_all(files),
        unsupported_calls: os.unsupported().collect(),
        slots: None,
    }
}

/// Runs the checks of every server, and the functional driver for those that need it. Memory of the first
/// server is in `finished`, that of the others beside how all ended. Clients' memory, and then logs, begin
/// at the second address.
#[expect(clippy::disallowed_methods, reason = "the wall time of the reference is part of the report")]
fn judge(
    experiment: &CpuExperiment,
    process: &Process,
    (memory, remote): (CpuMemory, u64),
    (ends, others): (&[ServerEnd], &[FlatMemory]),
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
        Some(functional::Outcome { end: functional::End::Exited(exit_code), stdout, memory, logs, files, .. }) => {
            Some(Ran { exit_code: *exit_code, stdout, files, persistent: memory.persistent(), logs: logs.bytes() })
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
    let spec = &experiment.machine.spec;
    let of_clients = spec.client_bytes();
    let (logs_at, logs_bytes) = (remote + of_clients, (spec.remote_bytes() - of_clients) as usize);
    let verify = |end: &ServerEnd, left: &FlatMemory| {
        let persistent = left.slice(memory.persistent, pm_bytes).unwrap_or_default();
        // Each server's logs are as those that its own program leaves at others: all run the same.
        let logs = left.slice(logs_at, logs_bytes).unwrap_or_default();
        let ran = Ran { exit_code: end.exit_code, stdout: &end.stdout, files: &end.files, persistent, logs };
        experiment.program.verify(&ran, functional.as_ref())
    };
    let verification = verify(&ends[0], &finished.memory);
    let mut failures: Vec<String> = told(&verification).into_iter().chain(no_reference).collect();
    for (server, (end, left)) in ends.iter().skip(1).zip(others).enumerate() {
        let found = told(&verify(end, left)).into_iter().chain(end.differs(&ends[0]));
        failures.extend(found.map(|failure| format!("server {}: {failure}", server + 1)));
    }
    finished.outcome.verification = Some(outcome::Verification::of(&verification, failures));
}

/// The functional run.
fn reference(
    experiment: &CpuExperiment,
    process: &Process,
    finished: &Finished,
    conduct: &Conduct<'_>,
) -> functional::Outcome {
    let servers = u64::from(experiment.machine.spec.nodes.servers);
    let executed = finished.outcome.total("core", "instructions") / servers;
    let options = Options {
        harts: experiment.machine.spec.harts(),
        instructions: executed * REFERENCE_FACTOR + REFERENCE_EXTRA,
        files: experiment.program.files.clone(),
        peers: experiment.machine.spec.peers(),
        stop: conduct.stop,
    };
    functional::run(process, process.memory(), &options)
}

/// Why the functional driver did not come to the program's end.
pub(super) fn why(end: &functional::End, image: &Executable) -> String {
    match end {
        functional::End::Exited(code) => format!("it exited with {code}"),
        functional::End::Fault(fault) => format!("the functional driver: {fault}"),
        functional::End::Deadlock(harts) => {
            let waits = functional::waits_in_words(harts, image);
            format!("all {} threads of the functional driver wait for each other: {waits}", harts.len())
        }
        functional::End::Repeats(harts) => {
            let told = functional::repeats_in_words(harts, image);
            format!("all threads of the functional driver repeat themselves for ever: {told}")
        }
        functional::End::Limit => "the functional driver executed many more instructions than the cores".to_owned(),
        functional::End::Stopped => "it was stopped".to_owned(),
    }
}

pub(super) fn counters(machine: &Assembly) -> Vec<Table> {
    let dram_caches: Vec<_> =
        machine.controllers().filter_map(MemoryController::dram_cache_counters).copied().collect();
    let mut tables = vec![
        Table::of("core", &machine.cores().map(Core::counters).copied().collect::<Vec<_>>()),
        Table::of("llc", &machine.homes().map(HomeSlice::counters).copied().collect::<Vec<_>>()),
        Table::of("os", &machine.systems().map(OperatingSystem::counters).collect::<Vec<_>>()),
        Table::of(
            "memory_controller",
            &machine.controllers().map(MemoryController::counters).copied().collect::<Vec<_>>(),
        ),
    ];
    if !dram_caches.is_empty() {
        tables.push(Table::of("dram_cache", &dram_caches));
    }
    // Of the network, what there is of it.
    let posters: Vec<_> = machine.posters().map(Poster::counters).collect();
    if !posters.is_empty() {
        tables.push(Table::of("poster", &posters));
    }
    let nics: Vec<_> = machine.nics().map(Nic::counters).collect();
    if !nics.is_empty() {
        tables.push(Table::of("nic", &nics));
        let mut clients: Vec<&Client> = machine.clients().collect();
        clients.sort_unstable_by_key(|client| client.number());
        if !clients.is_empty() {
            tables.push(Table::of("client", &clients.into_iter().map(Client::counters).collect::<Vec<_>>()));
        }
    }
    tables
}

pub(super) fn describe(config: &CpuMachine, base: Timebase) -> Machine {
    let values = serde_json::to_value(&config.spec).unwrap_or_default();
    let spec = &config.spec;
    let servers = spec.nodes.servers;
    Machine {
        name: config.name.clone(),
        description: config.description.clone(),
        parameters: parameters(CpuSpec::TABLES, &values, &config.sources),
        peak_memory_bytes_per_s: spec.peak_memory_bandwidth() * u64::from(servers),
        // Of cores: instructions, and harts.
        peak_issue_per_cycle: servers * spec.core.count * spec.core.width,
        warp_slots: u64::from(servers * spec.harts()),
        core_khz: spec.clock.core_mhz.khz,
        tick_khz: base.tick_khz(),
    }
}

/// A word more in a digest.
pub(super) fn fold(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23)
}

/// FNV-1a over every page that has a byte other than zero, eight bytes at a time, each with its address. Only
/// what was touched is looked at, and hence committed by the host.
pub(super) fn digest_of(memory: &FlatMemory, touched: &[(u64, u64)]) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325;
    let mut add = |word: u64| digest = fold(digest, word);
    for (start, bytes) in touched {
        for address in (*start..start + bytes).step_by(TOUCHED_BYTES as usize) {
            // Windows are whole pages, and so are these.
            let page = memory.slice(address, TOUCHED_BYTES as usize).unwrap_or_default();
            if sparse::pages(page).next().is_some() {
                add(address);
                let (words, _) = page.as_chunks();
                words.iter().for_each(|word| add(u64::from_le_bytes(*word)));
            }
        }
    }
    digest
}
