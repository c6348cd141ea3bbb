//! `durawarp list`, `durawarp config` and `durawarp ptx`: things as they are, nothing is run.

use durawarp::config::{
    AnyMachine, Compute, Kind, Override, SchemeConfig, device, is_of_a_scheme, only_of, presets as machines,
};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::kernel::mangled::SourceName;
use durawarp::kernel::ptx;
use durawarp::papers;
use durawarp::persist::vocab::Machines;
use durawarp::report::{lines, plain_table};
use durawarp::schemes::catalogue;
use durawarp::workload::{Choice, Demands, Overrides, Workload};

use super::args::{ConfigCheckArgs, ConfigShowArgs, InstrumentArgs, ListArgs, Listed, PtxCheckArgs};
use super::exit::{Exit, Stop};
use super::terminal;

pub(super) fn list(args: &ListArgs) -> Result<Exit, Stop> {
    let mut table = plain_table();
    // Names come from the tables in which a run looks them up, so that each name here is one that a run
    // takes.
    match args.what {
        Listed::Workloads => {
            table.set_header(["name", "profiles", "of", "what it is"]);
            // Kernels and programs of CPUs share one space of names.
            for (of, all) in [("GPU", Workload::builtin()), ("CPU", Workload::builtin_of_cpus())] {
                for listed in all {
                    table.add_row([&listed.name, &listed.profiles.join(", "), of, &listed.description]);
                }
            }
        }
        Listed::Litmus => {
            table.set_header(["name", "of", "what it is"]);
            for (of, all) in [("GPU", Workload::litmus()), ("CPU", Workload::litmus_of_cpus())] {
                for listed in all {
                    table.add_row([&listed.name, of, &listed.description]);
                }
            }
        }
        Listed::Machines => {
            table.set_header(["name", "computes", "slices", "channels", "what it is"]);
            // Machines are loaded for their counts: the table shows what a run would simulate.
            for name in machines::names() {
                let machine = AnyMachine::load(name, &[])?;
                let (computes, slices, channels) = match &machine {
                    AnyMachine::Gpu(machine) => {
                        let spec = &machine.spec;
                        (format!("{} SMs", spec.sm.count), spec.l2.slices, spec.controller.channels)
                    }
                    AnyMachine::Cpu(machine) => {
                        let spec = &machine.spec;
                        let harts = if spec.core.harts > 1 { format!(" x {}", spec.core.harts) } else { String::new() };
                        (format!("{} cores{harts}", spec.core.count), spec.llc.slices, spec.controller.channels)
                    }
                };
                let counts = [slices, channels].map(|n| n.to_string());
                let [slices, channels] = &counts;
                table.add_row([machine.name(), &computes, slices, channels, machine.description()]);
            }
        }
        Listed::Schemes => {
            table.set_header(["name", "undo logs", "parameters", "machines", "what it is"]);
            for entry in catalogue::entries() {
                let logs = if entry.scheme.logs() { "yes" } else { "no" };
                let keys = entry.parameters.as_ref().map_or("none".to_owned(), |all| all.keys.len().to_string());
                let machines = match entry.scheme.machines() {
                    Machines { gpu: true, cpu: true } => "GPU, CPU",
                    Machines { cpu: true, .. } => "CPU",
                    Machines { .. } => "GPU",
                };
                table.add_row([entry.name(), logs, &keys, machines, entry.scheme.description()]);
            }
        }
        Listed::Papers => {
            table.set_header(["paper", "figure", "what it shows"]);
            for paper in papers::PAPERS {
                for figure in paper.figures {
                    table.add_row([paper.name, figure.name, figure.title]);
                }
            }
        }
    }
    terminal::print(&lines(&table, 0));
    Ok(Exit::Good)
}

/// What was typed as `--set`.
pub(super) fn overrides(set: &[String]) -> Result<Vec<Override>, Stop> {
    let mut faults = Diagnostics::default();
    let parsed = set
        .iter()
        .filter_map(|text| match Override::parse(text) {
            Ok(over) => Some(over),
            Err(message) => {
                faults.push(Diagnostic::nowhere("--set", message));
                None
            }
        })
        .collect();
    Ok(faults.into_result(parsed)?)
}

pub(super) fn config(args: &ConfigShowArgs) -> Result<Exit, Stop> {
    let overrides = overrides(&args.set)?;
    terminal::print(&match Kind::of(&args.name)? {
        Kind::Machine | Kind::CpuMachine => AnyMachine::load(&args.name, &overrides)?.to_toml(),
        Kind::Scheme => SchemeConfig::load(&args.name, &overrides)?.to_toml(),
    });
    Ok(Exit::Good)
}

/// How many parameters there are, and which have no source of their own: key, value, source.
struct Checked {
    parameters: usize,
    assumed: Vec<[String; 3]>,
}

pub(super) fn check_configs(args: &ConfigCheckArgs) -> Result<Exit, Stop> {
    let (of_schemes, of_machines): (Vec<Override>, Vec<Override>) =
        overrides(&args.set)?.into_iter().partition(is_of_a_scheme);
    let schemes = catalogue::entries().iter().filter(|entry| entry.parameters.is_some());
    let schemes = schemes.map(|entry| entry.name().to_owned());
    let builtin: Vec<String> = machines::names().map(str::to_owned).chain(schemes).collect();
    let names = if args.names.is_empty() { &builtin } else { &args.names };
    // An override is used once a name was checked that has its key; what is left at the end is a fault.
    let mut unused: Vec<&Override> = of_schemes.iter().chain(&of_machines).collect();
    let mut exit = Exit::Good;
    for name in names {
        if device::is_device_file(name) {
            match device::check_file(name) {
                Ok([bins, densities]) => terminal::print(&format!(
                    "{name}: good; a memory device, {bins} bins and {densities} densities, each with each\n"
                )),
                Err(faults) => {
                    terminal::complain(&faults);
                    exit = Exit::BadInput;
                }
            }
            continue;
        }
        let checked = match Kind::of(name) {
            Ok(kind @ (Kind::Machine | Kind::CpuMachine)) => {
                let other = if kind == Kind::Machine { Compute::Cpu } else { Compute::Gpu };
                // A named machine is given all that is set, and tells what it does not have. Of all that are
                // built in, those of one kind lack what the others have.
                let its = |over: &&Override| !args.names.is_empty() || only_of(over) != Some(other);
                unused.retain(|over| is_of_a_scheme(over) || !its(over));
                check_machine(name, &of_machines.iter().filter(its).cloned().collect::<Vec<_>>())
            }
            Ok(Kind::Scheme) => SchemeConfig::load(name, &[]).and_then(|plain| {
                let its = |over: &Override| over.table() == plain.table();
                unused.retain(|over| !its(over));
                check_scheme(name, &of_schemes.iter().filter(|over| its(over)).cloned().collect::<Vec<_>>())
            }),
            Err(faults) => Err(faults),
        };
        match checked {
            Ok(Checked { parameters, assumed }) => {
                let without = assumed.len();
                terminal::print(&format!(
                    "{name}: good; {parameters} parameters, {without} without a source of their own\n"
                ));
                for [key, value, source] in assumed {
                    terminal::print(&format!("  {key} = {value}: {source}\n"));
                }
            }
            Err(faults) => {
                terminal::complain(&faults);
                exit = Exit::BadInput;
            }
        }
    }
    let nowhere =
        |over: &&Override| Diagnostic::nowhere("--set", format!("nothing that is checked has `{}`", over.key));
    let unused: Vec<Diagnostic> = unused.iter().map(nowhere).collect();
    // Whose they are is known when all has been read.
    if exit == Exit::Good && !unused.is_empty() {
        terminal::complain(&Diagnostics(unused));
        exit = Exit::BadInput;
    }
    Ok(exit)
}

fn check_machine(name: &str, overrides: &[Override]) -> Result<Checked, Diagnostics> {
    let machine = AnyMachine::load(name, overrides)?;
    let value = |key: &str| key.split_once('.').map_or_else(String::new, |(table, key)| machine.value_of(table, key));
    let assumed = machine.assumptions().into_iter();
    let assumed = assumed.map(|(key, source)| [key.to_owned(), value(key), source.to_owned()]).collect();
    Ok(Checked { parameters: machine.sources().len(), assumed })
}

fn check_scheme(name: &str, overrides: &[Override]) -> Result<Checked, Diagnostics> {
    let scheme = SchemeConfig::load(name, overrides)?;
    let assumed = scheme.assumptions().into_iter();
    let assumed = assumed.map(|(key, source)| [key.to_owned(), scheme.value_of(key), source.to_owned()]).collect();
    Ok(Checked { parameters: scheme.sources.len(), assumed })
}

pub(super) fn instrumented(args: &InstrumentArgs) -> Result<Exit, Stop> {
    let (mode, flag_barrier) = (args.mode, args.flag_barrier);
    let instrument = Overrides { mode, flag_barrier, loop_log: args.loop_log, reload: args.reload };
    let choice = Choice { profile: args.profile.clone(), instrument, ..Choice::default() };
    let demands = Demands { undo_logs: true, ..Demands::default() };
    let resolved = Workload::load(&args.workload)?.resolve_under(&choice, demands)?;
    let texts: Vec<(&str, &str)> = resolved.texts().collect();
    for (file, text) in &texts {
        // A single file keeps its line numbers.
        let head = if texts.len() > 1 { format!("// {file}\n") } else { String::new() };
        terminal::print(&format!("{head}{text}"));
    }
    Ok(Exit::Good)
}

pub(super) fn check_ptx(args: &PtxCheckArgs) -> Result<Exit, Stop> {
    let mut exit = Exit::Good;
    // A file with faults does not end the command: all files are checked, and all faults reported.
    for path in &args.files {
        let name = path.display().to_string();
        let text = match durawarp::input::text(path) {
            Ok(text) => text,
            Err(fault) => {
                terminal::error(&format!("cannot read `{name}`: {fault}"));
                exit = Exit::BadInput;
                continue;
            }
        };
        let report = ptx::check(&name, &text);
        terminal::print(&format!("{name}: {} kernels\n", report.kernels.len()));
        let mut table = plain_table();
        table.set_header([
            "kernel",
            "supported",
            "instructions",
            "registers",
            "shared B",
            "local B",
            "param B",
            "textures",
            "surfaces",
        ]);
        for kernel in &report.kernels {
            let supported = if kernel.supported { "yes" } else { "NO" };
            let shared = if kernel.dynamic_shared { " + dynamic" } else { "" };
            // Alignment leaves gaps between parameters: the end of the last one is their size, not the sum.
            let params: u32 = kernel.params.iter().map(|param| param.offset + param.bytes).max().unwrap_or(0);
            let source = SourceName::demangle(&kernel.name);
            table.add_row([
                source.map_or_else(|| kernel.name.clone(), |source| format!("{} ({source})", kernel.name)),
                supported.to_owned(),
                kernel.instructions.to_string(),
                kernel.registers_per_thread.to_string(),
                format!("{}{shared}", kernel.shared_bytes),
                kernel.local_bytes.to_string(),
                params.to_string(),
                kernel.textures.join(", "),
                kernel.surfaces.join(", "),
            ]);
        }
        // Without kernels the table would be its header alone.
        if !report.kernels.is_empty() {
            terminal::print(&lines(&table, 2));
        }
        terminal::warn(&report.warnings);
        if !report.unsupported.is_empty() {
            terminal::complain(&Diagnostics(report.unsupported));
            exit = Exit::BadInput;
        } else if report.kernels.is_empty() {
            let told = Diagnostic::nowhere(&name, "there is no kernel in the file");
            let told = told.with_help("a kernel is a `.visible .entry NAME(...)` with a body");
            if report.versioned {
                terminal::warn(&[told]);
            } else {
                terminal::complain(&told.into());
                exit = Exit::BadInput;
            }
        }
    }
    Ok(exit)
}
