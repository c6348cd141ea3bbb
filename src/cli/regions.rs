//! `durawarp regions`: programs in LightWSP's recoverable regions, as code and as they run: kernels here,
//! RISC-V programs in `regions/program.rs`.

mod means;
mod program;

use std::path::Path;

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::ptx;
use durawarp::kernel::regions::{FormReport, Formed, Reason, RegionOptions, form};
use durawarp::workload::{Choice, FunctionalError, KernelRegions, Workload};
use serde::Serialize;

use super::args::RegionsArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::SMALL;
use super::terminal;
use means::{Means, PAPER, table};

/// What the numbers are of.
const LABEL: &str =
    "port to GPU kernels: a region is a warp's, stores are words of 8 bytes a lane; the paper's programs are others";

/// A region, for JSON.
#[derive(Debug, Serialize)]
struct RegionRow {
    entry_pc: u32,
    line: u32,
    reason: Reason,
    max_stores: u32,
    live_in: usize,
    loaded: usize,
    computed: usize,
}

/// A kernel, for JSON.
#[derive(Debug, Serialize)]
struct KernelRow {
    kernel: String,
    regions: Vec<RegionRow>,
    code: FormReport,
    checkpoint_bytes_per_thread: u32,
    obstacles_to_resume: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Ran>,
}

/// What a kernel did, for JSON.
#[derive(Debug, Serialize)]
struct Ran {
    launches: u64,
    original_instructions: u64,
    instructions: u64,
    regions: u64,
    stores: u64,
    checkpoints: u64,
    checkpoint_bytes: u64,
    shadows: u64,
    means: Option<Means>,
}

/// Everything, for JSON.
#[derive(Debug, Serialize)]
struct Document {
    label: &'static str,
    options: RegionOptions,
    kernels: Vec<KernelRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<Means>,
    paper_means: Means,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_memory: Option<bool>,
}

pub(super) fn regions(args: &RegionsArgs) -> Result<Exit, Stop> {
    // What it is about is read before anything that is written is looked at.
    match args.subject.ends_with(".ptx") {
        true => durawarp::input::remember(Path::new(&args.subject)),
        false => drop(Workload::load(&args.subject)?),
    }
    if matches!(Workload::load(&args.subject), Ok(workload) if workload.is_of_a_cpu()) {
        return program::regions(args);
    }
    of_kernels_only(args)?;
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    let options = RegionOptions {
        threshold_stores: args.threshold,
        unroll: !args.no_unroll,
        speculative_unroll: !args.no_unroll && !args.no_speculative_unroll,
        unroll_factor: args.unroll_factor,
        prune: !args.no_prune,
        after_sync: !args.paper_sync,
        scratch: !args.global_only,
        uniform_once: args.uniform_once,
    };
    let mut document =
        Document { label: LABEL, options, kernels: Vec::new(), means: None, paper_means: PAPER, same_memory: None };
    if args.subject.ends_with(".ptx") {
        document.kernels = of_file(args, &options)?;
    } else {
        // A run that failed has said why, and there is nothing to show.
        let exit = of_workload(args, &options, &mut document)?;
        if exit != Exit::Good {
            return Ok(exit);
        }
    }
    if !args.quiet {
        terminal::show(&shown(&document), stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&document)?;
    }
    match document.same_memory {
        Some(false) => {
            terminal::error("the formed kernels left other memory than the kernels");
            Ok(Exit::Different)
        }
        _ => Ok(Exit::Good),
    }
}

/// Options that kernels do not have.
fn of_kernels_only(args: &RegionsArgs) -> Result<(), Diagnostics> {
    match &args.machine {
        Some(_) => Err(Diagnostic::nowhere("--machine", "the regions of kernels do not depend on a machine").into()),
        None => Ok(()),
    }
}

/// The kernel that was asked for must be there.
fn wanted<'a>(args: &RegionsArgs, names: impl Iterator<Item = &'a str> + Clone) -> Result<(), Diagnostics> {
    match &args.kernel {
        Some(kernel) if !names.clone().any(|name| name == kernel) => {
            let fault = Diagnostic::nowhere("--kernel", format!("`{}` has no kernel `{kernel}`", args.subject));
            Err(fault.with_nearest(kernel, names).into())
        }
        _ => Ok(()),
    }
}

fn of_file(args: &RegionsArgs, options: &RegionOptions) -> Result<Vec<KernelRow>, Stop> {
    let name = &args.subject;
    if let Some(profile) = &args.profile {
        let message = format!("a PTX file has no profiles, so no `{profile}`: name a workload");
        return Err(Diagnostic::nowhere("--profile", message).into());
    }
    let text =
        durawarp::input::text(Path::new(name)).map_err(|fault| Stop::File(format!("cannot read `{name}`: {fault}")))?;
    let module = ptx::parse(name, &text)?;
    wanted(args, module.kernels.iter().map(|kernel| kernel.name.as_str()))?;
    let mut faults = Diagnostics::default();
    let mut rows = Vec::new();
    for kernel in module.kernels.iter().filter(|kernel| args.kernel.as_ref().is_none_or(|name| *name == kernel.name)) {
        match form(kernel, options) {
            Ok(formed) => rows.push(KernelRow::of(&kernel.name, &formed, None)),
            Err(error) => faults.push(Diagnostic::nowhere(name, format!("kernel `{}`: {error}", kernel.name))),
        }
    }
    Ok(faults.into_result(rows)?)
}

fn of_workload(args: &RegionsArgs, options: &RegionOptions, document: &mut Document) -> Result<Exit, Stop> {
    let workload = Workload::load(&args.subject)?;
    let small = workload.has_profile(SMALL).then_some(SMALL);
    let profile = args.profile.as_deref().or(small);
    let resolved = workload.resolve(&profile.map_or_else(Choice::default, Choice::of_profile))?;
    let limits = Limits { stop: Some(terminal::stop_flag()), ..Limits::default() };
    let run = match resolved.run_regions(&limits, options) {
        Ok(run) => run,
        Err(error @ FunctionalError::Regions(..)) => {
            return Err(Diagnostic::nowhere(&args.subject, error.to_string()).into());
        }
        // The stop flag ends a run as an error, too: an interrupt is told apart before the program is blamed.
        Err(_) if terminal::interrupted() => return Ok(terminal::interrupted_exit()),
        Err(error) => {
            terminal::error(&error.to_string());
            return Ok(Exit::ProgramFailed);
        }
    };
    wanted(args, run.kernels.iter().map(|kernel| kernel.kernel.as_str()))?;
    let chosen: Vec<&KernelRegions> =
        run.kernels.iter().filter(|kernel| args.kernel.as_ref().is_none_or(|name| *name == kernel.kernel)).collect();
    // Means and rows are of the chosen kernels; `same_memory` is of the whole run.
    document.means = means_of(&chosen);
    document.same_memory = Some(run.same_memory);
    document.kernels = chosen
        .iter()
        .map(|kernel| {
            let ran = Ran {
                launches: kernel.launches,
                original_instructions: kernel.original,
                instructions: kernel.instructions,
                regions: kernel.regions,
                stores: kernel.stores,
                checkpoints: kernel.checkpoints,
                checkpoint_bytes: kernel.checkpoint_bytes,
                shadows: kernel.shadows,
                means: means_of(&[kernel]),
            };
            KernelRow::of(&kernel.kernel, &kernel.formed, Some(ran))
        })
        .collect();
    Ok(Exit::Good)
}

/// Over all regions that ran; none when none did.
fn means_of(kernels: &[&KernelRegions]) -> Option<Means> {
    let sum = |of: fn(&KernelRegions) -> u64| kernels.iter().map(|kernel| of(kernel)).sum::<u64>() as f64;
    let (regions, instructions) = (sum(|k| k.regions), sum(|k| k.instructions));
    let original = sum(|k| k.original);
    (regions > 0.0 && original > 0.0).then(|| Means {
        instructions_per_region: instructions / regions,
        stores_per_region: sum(|k| k.stores) / regions,
        more_instructions_percent: 100.0 * (instructions / original - 1.0),
    })
}

impl KernelRow {
    fn of(name: &str, formed: &Formed, run: Option<Ran>) -> KernelRow {
        let row = |region: &durawarp::kernel::regions::Region| RegionRow {
            entry_pc: region.entry,
            line: region.pos.line,
            reason: region.reason,
            max_stores: region.stores,
            live_in: region.restore.loaded() + region.restore.pruned.len(),
            loaded: region.restore.loaded(),
            computed: region.restore.pruned.len(),
        };
        KernelRow {
            kernel: name.to_owned(),
            regions: formed.regions.iter().map(row).collect(),
            code: formed.report.clone(),
            checkpoint_bytes_per_thread: formed.checkpoint.group_bytes() / 32,
            obstacles_to_resume: formed.obstacles.clone(),
            run,
        }
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Entry => "entry",
        Reason::Asked => "pm.region",
        Reason::Order => "before a fence, barrier or atomic",
        Reason::AfterOrder => "behind a barrier or atomic",
        Reason::Loop => "a loop stores or waits for others",
        Reason::Exit => "exit",
        Reason::Waiting => "lanes or the warp wait next",
        Reason::Threshold => "threshold",
    }
}

/// Everything, for people.
fn shown(document: &Document) -> String {
    let mut text = String::new();
    // Of each kernel the code comes first, then what a run of it stored: the kernels of a PTX file have no
    // run.
    for kernel in &document.kernels {
        let code = &kernel.code;
        text += &format!(
            "{}: {} instructions, {} with {} boundaries, {} checkpoint stores and {} shadows; {} bytes of checkpoint a thread\n",
            kernel.kernel,
            code.instructions,
            code.formed_instructions,
            kernel.regions.len(),
            code.checkpoints,
            code.shadows,
            kernel.checkpoint_bytes_per_thread,
        );
        let row = |region: &RegionRow| {
            let numbers = [region.entry_pc, region.line, region.max_stores].map(|n| n.to_string());
            let [entry, line, stores] = numbers;
            let live = [region.live_in, region.loaded, region.computed].map(|n| n.to_string());
            [reason(region.reason).to_owned(), entry, line, stores].into_iter().chain(live).collect()
        };
        let header = ["starts for", "pc", "line", "stores, at most", "live registers", "loaded", "computed"];
        text += &table(&header, kernel.regions.iter().map(row).collect());
        let mut notes = vec![format!(
            "loops unrolled: {} counted, {} speculatively; boundaries merged: {}",
            code.unrolled, code.speculatively_unrolled, code.merged
        )];
        // These two notes are of a run that took checkpoints or shadows; the line would be all zeros
        // otherwise.
        if let Some(run) = kernel.run.as_ref().filter(|run| run.checkpoints > 0) {
            notes.push(format!(
                "checkpoint stores of a run: {}, {} bytes; {} of {} in the code are of one word for all lanes",
                run.checkpoints, run.checkpoint_bytes, code.once, code.checkpoints
            ));
        }
        if let Some(run) = kernel.run.as_ref().filter(|run| run.shadows > 0) {
            notes.push(format!(
                "shadows of shared and local memory and counts of barriers: {:.1} % of all stores of a run (the port's way: \
                 the paper's whole memory persists)",
                100.0 * run.shadows as f64 / run.stores as f64
            ));
        }
        if !code.oversize.is_empty() {
            let lines: Vec<String> = code.oversize.iter().map(ToString::to_string).collect();
            notes.push(format!("over the threshold and not to be split: lines {}", lines.join(", ")));
        }
        if !kernel.obstacles_to_resume.is_empty() {
            notes.push(format!("cannot be resumed in its middle: {}", kernel.obstacles_to_resume.join("; ")));
        }
        text += &notes.iter().map(|note| format!("  {note}\n")).collect::<String>();
    }
    // The kernels of a PTX file never ran: they have no means, and the paper's would stand alone.
    let Some(means) = document.means else { return text };
    let named = |name: &str, means: Option<Means>| {
        let cells = means.map_or_else(|| std::array::from_fn(|_| "-".to_owned()), Means::cells);
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let mut rows: Vec<Vec<String>> = document
        .kernels
        .iter()
        .map(|kernel| named(&kernel.kernel, kernel.run.as_ref().and_then(|run| run.means)))
        .collect();
    rows.push(named("all", Some(means)));
    rows.push(named("paper, CPU programs", Some(document.paper_means)));
    text += "means of a run, warp by warp\n";
    text += &table(&["kernel", "instructions a region", "stores a region", "more instructions"], rows);
    text + &format!("  {}\n", document.label)
}
