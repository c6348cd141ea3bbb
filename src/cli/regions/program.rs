//! A RISC-V program in recoverable regions: what the binary's table says, and what a run on the functional
//! driver counts.

use std::sync::Arc;

use durawarp::diagnostic::Diagnostic;
use durawarp::riscv::functional::{End, Options, RegionRun, RegionRunCounts, repeats_in_words, waits_in_words};
use durawarp::riscv::instruction::{REGISTERS, register_name};
use durawarp::riscv::regions::{
    Boundary, BoundaryReason, FunctionRegions, RegionOptions, RegionTable, RegisterSet, form,
};
use durawarp::run::{AnyExperiment, CpuExperiment, Experiment};
use durawarp::sweep::host::Memory;
use durawarp::workload::Ran;
use serde::Serialize;

use crate::cli::args::RegionsArgs;
use crate::cli::exit::{Exit, Stop};
use crate::cli::output::Outputs;
use crate::cli::recipe::SMALL;
use crate::cli::regions::means::{Means, PAPER, table, table_of};
use crate::cli::terminal;

/// What the numbers are of.
const LABEL: &str =
    "RV64 programs of ours where the paper ran x86 binaries; a region is a hart's, and the binary stays as it is";
/// Instructions between two looks at whether it was interrupted.
const STEPS: u64 = 1 << 20;

/// A boundary, for JSON.
#[derive(Debug, Serialize)]
struct BoundaryRow {
    pc: String,
    place: String,
    reason: BoundaryReason,
    every: u8,
    stored: Vec<&'static str>,
    computed: Vec<&'static str>,
    executed: u64,
}

/// A function, for JSON.
#[derive(Debug, Serialize)]
struct FunctionRow {
    function: String,
    instructions: u32,
    boundaries: Vec<BoundaryRow>,
}

/// What a run counted, for JSON.
#[derive(Debug, Serialize)]
struct RanRow {
    original_instructions: u64,
    instructions: u64,
    regions: u64,
    stores: u64,
    checkpoints: u64,
    most_stores_of_a_region: u32,
    regions_by_reason: Vec<(BoundaryReason, u64)>,
    means: Option<Means>,
}

/// Everything, for JSON.
#[derive(Debug, Serialize)]
struct Document {
    label: &'static str,
    machine: String,
    options: RegionOptions,
    functions: Vec<FunctionRow>,
    merged: u32,
    unrolled_loops: u32,
    run: RanRow,
    paper_means: Means,
}

/// Shows a program.
pub(super) fn regions(args: &RegionsArgs) -> Result<Exit, Stop> {
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    let experiment = experiment(args)?;
    let options = options(args)?;
    let process = experiment.program.process()?;
    let formed = form(&process.image, &process.code, &options);
    let formed = Arc::new(formed.map_err(|error| Diagnostic::nowhere(&args.subject, error.to_string()))?);
    if let Some(name) = &args.kernel {
        let names = || formed.functions().iter().map(|function| function.name.as_str());
        if !names().any(|function| function == name) {
            let fault = Diagnostic::nowhere("--kernel", format!("`{}` has no function `{name}`", args.subject));
            return Err(fault.with_nearest(name, names()).into());
        }
    }
    // Counts are of a run on the functional driver: how often a boundary is executed depends on the data.
    let harts = experiment.machine.spec.harts();
    let files = experiment.program.files.clone();
    let run = Options { harts, files, ..Options::default() };
    let mut run = RegionRun::new(&process, process.memory(), &formed, &run);
    let end = loop {
        match run.advance(STEPS) {
            Some(end) => break end,
            None if terminal::interrupted() => return Ok(terminal::interrupted_exit()),
            None => {}
        }
    };
    let (counts, executed) = (run.counts().clone(), run.executed().to_vec());
    let outcome = run.outcome(end);
    let image = &experiment.program.image;
    let exit_code = match &outcome.end {
        End::Exited(code) => *code,
        End::Fault(fault) => return failed(&fault.to_string()),
        End::Deadlock(threads) => {
            return failed(&format!("its threads wait for ever: {}", waits_in_words(threads, image)));
        }
        End::Repeats(harts) => {
            return failed(&format!("it repeats itself for ever: {}", repeats_in_words(harts, image)));
        }
        End::Limit => return failed("the program did not end within its limit of instructions"),
        End::Stopped => return Ok(terminal::interrupted_exit()),
    };
    // The manifest's own checks: there is no other driver to compare with.
    let ran = Ran {
        exit_code,
        stdout: &outcome.stdout,
        files: &outcome.files,
        persistent: outcome.memory.persistent(),
        logs: &[],
    };
    if !experiment.program.verify(&ran, None).passed() {
        return failed("the program in regions failed a check of its manifest");
    }
    // What the paper's regions came to stands beside ours.
    let row = |function: &FunctionRegions| FunctionRow::of(function, &formed, &executed, &process.image);
    let asked = |function: &&FunctionRegions| args.kernel.as_ref().is_none_or(|name| *name == function.name);
    let document = Document {
        label: LABEL,
        machine: experiment.machine.name.clone(),
        options,
        functions: formed.functions().iter().filter(asked).map(row).collect(),
        merged: formed.merged(),
        unrolled_loops: formed.unrolled(),
        run: RanRow::of(&counts),
        paper_means: PAPER,
    };
    if !args.quiet {
        terminal::show(&shown(&document, args.kernel.is_some()), stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&document)?;
    }
    Ok(Exit::Good)
}

fn failed(why: &str) -> Result<Exit, Stop> {
    terminal::error(why);
    Ok(Exit::ProgramFailed)
}

/// The program and its machine, which says how many harts there are.
fn experiment(args: &RegionsArgs) -> Result<CpuExperiment, Stop> {
    let mut recipe = Experiment::of(&args.subject).most_bytes(Memory::of_host().total_bytes);
    if let Some(machine) = &args.machine {
        recipe = recipe.machine(machine);
    }
    recipe = match &args.profile {
        Some(profile) => recipe.profile(profile),
        None => recipe.profile_if_any(SMALL),
    };
    match recipe.build_any()? {
        AnyExperiment::Cpu(experiment) => Ok(*experiment),
        AnyExperiment::Gpu(_) => unreachable!("a program of CPUs makes an experiment of CPUs"),
    }
}

/// Options that programs of CPUs have.
fn options(args: &RegionsArgs) -> Result<RegionOptions, Stop> {
    for (name, given) in [("--uniform-once", args.uniform_once), ("--global-only", args.global_only)] {
        if given {
            return Err(Diagnostic::nowhere(name, "for kernels of GPUs, which a RISC-V program does not have").into());
        }
    }
    // How often a loop of a binary runs is never known: all of its unrolling is speculative.
    let unrolls = !args.no_unroll && !args.no_speculative_unroll;
    Ok(RegionOptions {
        threshold_stores: args.threshold,
        unroll_factor: if unrolls { args.unroll_factor } else { 1 },
        prune: !args.no_prune,
        after_sync: !args.paper_sync,
        ..RegionOptions::default()
    })
}

/// Names of registers; slot 0 has `fcsr`.
fn names(set: RegisterSet) -> Vec<&'static str> {
    let name = |register: u8| if register == 0 { "fcsr" } else { register_name(register) };
    (0..REGISTERS as u8).filter(|register| set >> register & 1 == 1).map(name).collect()
}

impl FunctionRow {
    fn of(
        function: &FunctionRegions,
        table: &RegionTable,
        executed: &[u64],
        image: &durawarp::riscv::elf::Executable,
    ) -> FunctionRow {
        let range = function.boundaries.start as usize..function.boundaries.end as usize;
        let row = |(boundary, executed): (&Boundary, &u64)| BoundaryRow {
            pc: format!("{:#x}", boundary.pc),
            place: image.code_name(boundary.pc),
            reason: boundary.reason,
            every: boundary.every,
            stored: names(boundary.written),
            computed: names(boundary.computed),
            executed: *executed,
        };
        FunctionRow {
            function: function.name.clone(),
            instructions: function.instructions,
            boundaries: table.boundaries()[range.clone()].iter().zip(&executed[range]).map(row).collect(),
        }
    }
}

impl RanRow {
    fn of(counts: &RegionRunCounts) -> RanRow {
        let (regions, added) = (counts.regions(), counts.checkpoints + counts.regions());
        let instructions = counts.instructions + added;
        let means = (regions > 0).then(|| Means {
            instructions_per_region: instructions as f64 / regions as f64,
            stores_per_region: counts.all_stores() as f64 / regions as f64,
            more_instructions_percent: 100.0 * added as f64 / counts.instructions as f64,
        });
        let by_reason = BoundaryReason::ALL.into_iter().zip(counts.boundaries);
        RanRow {
            original_instructions: counts.instructions,
            instructions,
            regions,
            stores: counts.all_stores(),
            checkpoints: counts.checkpoints,
            most_stores_of_a_region: counts.most_stores,
            regions_by_reason: by_reason.filter(|(_, regions)| *regions > 0).collect(),
            means,
        }
    }
}

/// Everything, for people. Boundaries are shown of one function, or there would be hundreds of lines.
fn shown(document: &Document, each: bool) -> String {
    let run = &document.run;
    let boundaries: usize = document.functions.iter().map(|function| function.boundaries.len()).sum();
    let mut text = String::new();
    // One function is shown boundary by boundary, all of them by sums.
    if each {
        for function in &document.functions {
            text +=
                &format!("{}: {} instructions, {boundaries} boundaries\n", function.function, function.instructions);
            let row = |row: &BoundaryRow| {
                let every = row.every.to_string();
                let executed = row.executed.to_string();
                let registers = |names: &[&str]| if names.is_empty() { "-".to_owned() } else { names.join(" ") };
                let place = vec![row.place.clone(), row.reason.words().to_owned(), every, executed];
                place.into_iter().chain([registers(&row.stored), registers(&row.computed)]).collect()
            };
            let header = ["before", "because", "every", "executed", "stored if it was written", "computed"];
            text += &table_of(&header, function.boundaries.iter().map(row).collect(), 2..4);
        }
    } else {
        let row = |function: &FunctionRow| {
            let checkpoints: usize = function.boundaries.iter().map(|boundary| boundary.stored.len()).sum();
            let unrolled = function.boundaries.iter().filter(|boundary| boundary.every > 1).count();
            let executed: u64 = function.boundaries.iter().map(|boundary| boundary.executed).sum();
            let numbers = [u64::from(function.instructions), function.boundaries.len() as u64, unrolled as u64];
            let numbers = numbers.into_iter().chain([checkpoints as u64, executed]);
            (executed > 0).then(|| {
                std::iter::once(function.function.clone()).chain(numbers.map(|number| number.to_string())).collect()
            })
        };
        // Functions that did not run would hide those that did.
        let rows: Vec<Vec<String>> = document.functions.iter().filter_map(row).collect();
        text += &format!("{} functions, {boundaries} boundaries; those that ran\n", document.functions.len());
        let header = ["function", "instructions", "boundaries", "loops unrolled", "checkpoints", "executed"];
        text += &table(&header, rows);
    }
    text += &format!("  boundaries merged: {}; loops unrolled: {}\n", document.merged, document.unrolled_loops);
    text += &format!("regions of a run on `{}`\n", document.machine);
    let reason = |(reason, regions): &(BoundaryReason, u64)| {
        vec![
            reason.words().to_owned(),
            regions.to_string(),
            format!("{:.1} %", 100.0 * *regions as f64 / run.regions as f64),
        ]
    };
    text += &table(&["ended by", "regions", "share"], run.regions_by_reason.iter().map(reason).collect());
    let most = format!(
        "  {} stores, {} of them checkpoints; at most {} in a region, threshold {}\n",
        run.stores, run.checkpoints, run.most_stores_of_a_region, document.options.threshold_stores
    );
    let Some(means) = run.means else { return text };
    let named = |name: &str, means: Means| std::iter::once(name.to_owned()).chain(means.cells()).collect();
    text += &most;
    text += "means of a run, hart by hart\n";
    let rows = vec![named("this program", means), named("paper, x86 programs", document.paper_means)];
    text += &table(&["program", "instructions a region", "stores a region", "more instructions"], rows);
    text + &format!("  {}\n", document.label)
}
