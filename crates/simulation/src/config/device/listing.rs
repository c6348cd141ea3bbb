//! Devices as texts: those that are built in, and the whole resolved table of one.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{SourceText, TomlTable, is_path, parse, top_texts};
use durawarp_machine::device::{Device, Organisation};

use super::buffer::POLICIES;
use super::constraints::{EFFECTS, word_of};
use super::file::{DEVICES, load, of_text};
use super::request::DeviceRequest;

/// A built-in device, as lists have it.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinDevice {
    /// As machines name it.
    pub name: &'static str,
    /// Its standard or data sheet.
    pub source: String,
    /// How it is built, in words, in its first density.
    pub organisation: String,
    /// Names of its bins, the first of which is taken if none is named.
    pub bins: Vec<String>,
    /// The same of its densities.
    pub densities: Vec<String>,
}

/// Every built-in device.
pub fn builtin() -> Vec<BuiltinDevice> {
    DEVICES.iter().map(|(name, text)| of_builtin(name, text)).collect()
}

fn of_builtin(name: &'static str, text: &str) -> BuiltinDevice {
    let source = Arc::new(SourceText::new(name, text.to_owned()));
    let document = parse(&source, &mut Diagnostics::default());
    let root = TomlTable::root(&source, &document);
    let place = |_: &str, why: &str| Diagnostic::nowhere(name, why);
    let asked = DeviceRequest { device: name, bin: "", density: "", timing: "", ranks: 1, place: &place };
    let organisation = load(&asked).map(|loaded| organisation(&loaded.device.organisation)).unwrap_or_default();
    let source = root.text("source").map_or_else(String::new, |(source, _)| source.to_owned());
    BuiltinDevice { name, source, organisation, bins: names(root, "bin"), densities: names(root, "density") }
}

/// Names of the bins or of the densities of a file.
fn names(root: TomlTable<'_>, key: &str) -> Vec<String> {
    let tables = root.tables(key).into_iter();
    tables.filter_map(|table| Some(table.text("name")?.0.to_owned())).collect()
}

/// A file says that it is a device's: `kind = "device"`.
pub fn is_device_file(name_or_path: &str) -> bool {
    is_path(name_or_path)
        && durawarp_base::input::text(Path::new(name_or_path)).is_ok_and(|text| says_device(name_or_path, text))
}

/// The same of a file's text.
pub(in super::super) fn says_device(file: &str, text: String) -> bool {
    top_texts(file, text, ["kind"]) == [Some("device".to_owned())]
}

/// Checks a device's file in every bin with every density; returns how many there are of each.
///
/// # Errors
/// All faults, those of several variants once.
pub fn check_file(path: &str) -> Result<[usize; 2], Diagnostics> {
    let unreadable = |error| Diagnostic::nowhere(path, format!("cannot read the file: {error}"));
    let text = durawarp_base::input::text(Path::new(path)).map_err(unreadable)?;
    let source = Arc::new(SourceText::new(path, text.clone()));
    // A broken file has no variants: what is wrong with it is told below.
    let document = parse(&source, &mut Diagnostics::default());
    let root = TomlTable::root(&source, &document);
    let (bins, densities) = (names(root, "bin"), names(root, "density"));
    // A file without densities has one variant of each bin, and its faults are told all the same.
    let or_first = |names: &[String]| if names.is_empty() { vec![String::new()] } else { names.to_vec() };
    let place = |_: &str, why: &str| Diagnostic::nowhere(path, why);
    let mut faults = Diagnostics::default();
    for bin in or_first(&bins) {
        for density in or_first(&densities) {
            let asked =
                DeviceRequest { device: path, bin: &bin, density: &density, timing: "", ranks: 1, place: &place };
            let found = of_text(text.clone(), &asked).err().unwrap_or_default();
            for fault in found.0 {
                // Variants differ in the numbers that they tell of one place.
                let told = |known: &Diagnostic| (&known.file, known.span) == (&fault.file, fault.span);
                if !faults.0.iter().any(told) {
                    faults.0.push(fault);
                }
            }
        }
    }
    faults.into_result([bins.len(), densities.len()])
}

/// "2 pseudo_channel x 4 bank_group x 4 bank, 32 B a burst, rows of 1024 B".
fn organisation(of: &Organisation) -> String {
    let levels: Vec<String> = of.levels.iter().map(|(name, count)| format!("{count} {name}")).collect();
    format!("{}, {} B a burst, rows of {} B", levels.join(" x "), of.atom_bytes, of.row_bytes)
}

/// The whole table of a device: what its file comes to.
pub fn table(device: &Device) -> String {
    let Device { name, source, variant: [bin, density], t_ck_ps, organisation: of, .. } = device;
    let ns = |cycles: u64| (cycles * t_ck_ps) as f64 / 1e3;
    let mut out = format!("{name} {bin} {density} ({source})\n");
    let mut line = |what: &str, text: String| _ = writeln!(out, "  {what:<13} {text}");
    line("clock", format!("{t_ck_ps} ps, {:.1} MHz", 1e6 / *t_ck_ps as f64));
    line("organisation", organisation(of));
    // None: the channel has one.
    let bus = of.bus_levels.checked_sub(1).and_then(|nth| of.levels.get(nth as usize));
    let bus = bus.map_or("the channel", |(name, _)| name);
    line("data bus", format!("of {bus}: {} cycles a burst", of.burst_cycles));
    let command_buses = if of.two_command_buses { "of rows, and of columns" } else { "one" };
    line("command buses", command_buses.to_owned());
    line("to data", format!("{} cycles of a read, {} of a write", of.read_cycles, of.write_cycles));
    line("peak", format!("{:.0} MB/s a channel", of.bytes_per_cycle() * 1e6 / *t_ck_ps as f64));
    if of.persistent {
        line("persistent", "outlives a power failure".to_owned());
    }
    if let Some(own) = &device.buffer {
        let kept = if own.durable { "durable" } else { "lost at a power failure" };
        let [hit, miss, cell_write] = [own.hit_ps, own.miss_ps, own.cell_write_ps].map(|ps| ps as f64 / 1e3);
        line(
            "buffer",
            format!("{} lines of {} B a bank, {}, {kept}", own.lines, own.line_bytes, POLICIES[own.policy as usize]),
        );
        line("read", format!("{hit:.1} ns a hit, {miss:.1} ns a miss; {} MB/s a bank", own.read_bandwidth_mb_s));
        line("cell write", format!("{cell_write:.1} ns a line; {} MB/s a bank", own.write_bandwidth_mb_s));
    }
    out += "timing: cycles, ns\n";
    let width = device.timing.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, cycles) in &device.timing {
        _ = writeln!(out, "  {name:width$} {cycles:>6} {:>10.3}", ns(*cycles));
    }
    out += "commands: effect, target, slots of the command bus\n";
    for command in &device.commands {
        let effect = EFFECTS[command.effect as usize];
        let target = of.levels.get(usize::from(command.target)).map_or("", |(name, _)| name);
        let same = if command.same_bank { ", the same bank of each group" } else { "" };
        let closes = if command.closes { ", then close" } else { "" };
        _ = writeln!(out, "  {:<6} {effect}{closes}, {target}{same}, {}", command.name, command.cycles);
    }
    out += "constraints: least cycles from the first slot of one command to the first of another\n";
    // A line each, also where the file has several commands in one.
    for row in &device.constraints {
        let scope = row.scope.and_then(|nth| of.levels.get(usize::from(nth))).map_or("channel", |(name, _)| name);
        let [before, after] = [row.before, row.after].map(|nth| &device.commands[usize::from(nth)].name);
        let other = if row.other { "other " } else { "" };
        let window = if row.window > 1 { format!(", from the last but {}", row.window - 1) } else { String::new() };
        _ = writeln!(out, "  {other}{scope}: {before} > {after}: {}{window}", row.delay_cycles);
    }
    if !device.refreshes.is_empty() {
        out += "refresh\n";
    }
    for refresh in &device.refreshes {
        let policy = word_of(refresh.policy);
        let (command, every) = (&device.commands[usize::from(refresh.command)].name, u64::from(refresh.every_cycles));
        let energy = refresh.energy.map_or_else(String::new, |energy| format!(", {energy} pJ each"));
        _ = writeln!(out, "  {policy}: {command} every {every} cycles, {:.1} ns{energy}", ns(every));
    }
    out
}
