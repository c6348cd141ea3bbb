//! `durawarp list`, `durawarp config` and `durawarp ptx`: things as they are, nothing is run.

use comfy_table::{Table, presets};
use durawarp::config::{MachineConfig, Override, presets as machines};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::kernel::ptx;
use durawarp::schemes::catalogue;
use durawarp::workload::{Choice, Overrides, Workload};

use super::args::{ConfigCheckArgs, ConfigShowArgs, InstrumentArgs, ListArgs, Listed, PtxCheckArgs};
use super::{Exit, Stop, terminal};

pub(super) fn list(args: &ListArgs) -> Result<Exit, Stop> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    match args.what {
        Listed::Workloads => {
            table.set_header(["name", "profiles", "what it is"]);
            for listed in Workload::builtin() {
                table.add_row([listed.name, listed.profiles.join(", "), listed.description]);
            }
        }
        Listed::Litmus => {
            table.set_header(["name", "what it is"]);
            for listed in Workload::litmus() {
                table.add_row([listed.name, listed.description]);
            }
        }
        Listed::Machines => {
            table.set_header(["name", "SMs", "L2 slices", "channels", "what it is"]);
            for (name, _) in machines::MACHINES {
                let machine = MachineConfig::load(name, &[])?;
                let spec = &machine.spec;
                let counts = [spec.sm.count, spec.l2.slices, spec.controller.channels].map(|n| n.to_string());
                let [sms, slices, channels] = counts;
                table.add_row([machine.name, sms, slices, channels, machine.description]);
            }
        }
        Listed::Schemes => {
            table.set_header(["name", "undo logs", "what it is"]);
            for scheme in catalogue::all() {
                let logs = if scheme.logs() { "yes" } else { "no" };
                table.add_row([scheme.name(), logs, scheme.description()]);
            }
        }
    }
    let lines: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    terminal::print(&lines);
    Ok(Exit::Good)
}

fn overrides(set: &[String]) -> Result<Vec<Override>, Stop> {
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
    let machine = MachineConfig::load(&args.machine, &overrides(&args.set)?)?;
    terminal::print(&machine.to_toml());
    Ok(Exit::Good)
}

pub(super) fn check_configs(args: &ConfigCheckArgs) -> Result<Exit, Stop> {
    let overrides = overrides(&args.set)?;
    let builtin: Vec<String> = machines::MACHINES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let names = if args.machines.is_empty() { &builtin } else { &args.machines };
    let mut exit = Exit::Good;
    for name in names {
        match MachineConfig::load(name, &overrides) {
            Ok(machine) => {
                let (all, without) = (machine.sources.len(), machine.assumptions().len());
                terminal::print(&format!("{name}: good; {all} parameters, {without} without a source of their own\n"));
                for (key, source) in machine.assumptions() {
                    let value =
                        key.split_once('.').map_or_else(String::new, |(table, key)| machine.value_of(table, key));
                    terminal::print(&format!("  {key} = {value}: {source}\n"));
                }
            }
            Err(faults) => {
                terminal::complain(&faults);
                exit = Exit::BadInput;
            }
        }
    }
    Ok(exit)
}

pub(super) fn instrumented(args: &InstrumentArgs) -> Result<Exit, Stop> {
    let instrument = Overrides { mode: args.mode, flag_barrier: args.flag_barrier, loop_log: args.loop_log };
    let choice = Choice { profile: args.profile.clone(), logs: true, instrument, ..Choice::default() };
    let resolved = Workload::load(&args.workload)?.resolve(&choice)?;
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
    for path in &args.files {
        let name = path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(fault) => {
                terminal::error(&format!("cannot read `{name}`: {fault}"));
                exit = Exit::BadInput;
                continue;
            }
        };
        let report = ptx::check(&name, &text);
        terminal::print(&format!("{name}: {} kernels\n", report.kernels.len()));
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header([
            "kernel",
            "supported",
            "instructions",
            "registers",
            "shared B",
            "local B",
            "param B",
            "textures",
        ]);
        for kernel in &report.kernels {
            let supported = if kernel.supported { "yes" } else { "NO" };
            let shared = if kernel.dynamic_shared { " + dynamic" } else { "" };
            let params: u32 = kernel.params.iter().map(|param| param.offset + param.bytes).max().unwrap_or(0);
            table.add_row([
                kernel.name.clone(),
                supported.to_owned(),
                kernel.instructions.to_string(),
                kernel.registers_per_thread.to_string(),
                format!("{}{shared}", kernel.shared_bytes),
                kernel.local_bytes.to_string(),
                params.to_string(),
                kernel.textures.join(", "),
            ]);
        }
        if !report.kernels.is_empty() {
            terminal::print(&table.lines().map(|line| format!("  {}\n", line.trim_end())).collect::<String>());
        }
        terminal::warn(&report.warnings);
        if !report.unsupported.is_empty() {
            terminal::complain(&Diagnostics(report.unsupported));
            exit = Exit::BadInput;
        }
    }
    Ok(exit)
}
