//! Device files: those that are built in, the keys that one has, and the reading of one into a device.
//!
//! Invariant: every fault of a file is pushed before any is returned; what follows from a value with a fault
//! is a placeholder, and no second fault.

use std::path::Path;
use std::sync::Arc;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{KeyRule, Shape, SourceText, TomlTable, check_keys, is_path, optional, parse, required};
use durawarp_machine::device::{Device, Effect, PLAIN};

use super::buffer::BUFFER;
use super::constraints::{EFFECTS, POLICIES};
use super::request::DeviceRequest;
use super::timing::{Rounding, Timings};
use super::{buffer, check, constraints, organisation};

/// Name and text of every built-in device, in the order they are listed.
pub(super) const DEVICES: [(&str, &str); 11] = [
    ("ddr4", include_str!("../devices/ddr4.toml")),
    ("ddr5", include_str!("../devices/ddr5.toml")),
    ("lpddr5", include_str!("../devices/lpddr5.toml")),
    ("gddr5", include_str!("../devices/gddr5.toml")),
    ("gddr6", include_str!("../devices/gddr6.toml")),
    ("gddr7", include_str!("../devices/gddr7.toml")),
    ("hbm2", include_str!("../devices/hbm2.toml")),
    ("hbm3", include_str!("../devices/hbm3.toml")),
    ("pcm-lee2009", include_str!("../devices/pcm-lee2009.toml")),
    ("pcm-isscc2012", include_str!("../devices/pcm-isscc2012.toml")),
    ("optane-100", include_str!("../devices/optane-100.toml")),
];

/// Names of all built-in devices, in the order they are listed.
pub fn names() -> impl Iterator<Item = &'static str> {
    DEVICES.iter().map(|(name, _)| *name)
}

/// A device, and what is odd about it but allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedDevice {
    /// The device.
    pub device: Device,
    /// Such as an FAW without effect, each with its place.
    pub warnings: Vec<Diagnostic>,
}

const ORGANISATION: &[KeyRule] = &[
    required("levels", Shape::List(&Shape::Text)),
    required("counts", Shape::Map(&Shape::Whole)),
    required("bus_bits", Shape::Whole),
    required("burst", Shape::Whole),
    required("row_bytes", Shape::Whole),
    required("burst_cycles", Shape::Expression),
    required("read_cycles", Shape::Expression),
    required("write_cycles", Shape::Expression),
    required("buses", Shape::Words(&["one", "row_and_column"])),
    optional("data_bus", Shape::Text),
    optional("persistent", Shape::Boolean),
];

const ROUNDING: &[KeyRule] = &[
    optional("guard_thousandths", Shape::Whole),
    optional("of", Shape::Words(&["cycle", "duration"])),
    optional("down", Shape::List(&Shape::Text)),
];

const COMMAND: &[KeyRule] = &[
    required("effect", Shape::Words(&EFFECTS)),
    required("target", Shape::Text),
    optional("cycles", Shape::Whole),
    optional("closes", Shape::Boolean),
    optional("same_bank", Shape::Boolean),
];

const BIN: &[KeyRule] =
    &[required("name", Shape::Text), required("tCK", Shape::Text), optional("timing", Shape::Map(&Shape::Expression))];

const DENSITY: &[KeyRule] = &[
    required("name", Shape::Text),
    optional("timing", Shape::Map(&Shape::Expression)),
    optional("counts", Shape::Map(&Shape::Whole)),
    optional("row_bytes", Shape::Whole),
];

const REFRESH: &[KeyRule] = &[
    required("policy", Shape::Words(&POLICIES)),
    required("command", Shape::Text),
    required("every", Shape::Expression),
    optional("power_mw", Shape::Number),
    optional("lasts", Shape::Expression),
];

/// The keys of a device file.
const FILE: &[KeyRule] = &[
    required("kind", Shape::Words(&["device"])),
    required("name", Shape::Text),
    required("source", Shape::Text),
    optional("rounding", Shape::Table(ROUNDING)),
    required("organisation", Shape::Table(ORGANISATION)),
    required("commands", Shape::Map(&Shape::Table(COMMAND))),
    optional("timing", Shape::Map(&Shape::Expression)),
    required("bin", Shape::List(&Shape::Table(BIN))),
    required("density", Shape::List(&Shape::Table(DENSITY))),
    required("constraints", Shape::Map(&Shape::List(&Shape::Text))),
    optional("refresh", Shape::List(&Shape::Table(REFRESH))),
    optional("buffer", Shape::Table(BUFFER)),
];

/// Loads the device that is asked for.
///
/// # Errors
/// All faults of the file, each with its place in it, and of what is asked, each at the place of its key.
pub fn load(asked: &DeviceRequest<'_>) -> Result<LoadedDevice, Diagnostics> {
    let name = asked.device;
    let text = match DEVICES.iter().find(|(builtin, _)| *builtin == name).filter(|_| !is_path(name)) {
        Some((_, text)) => (*text).to_owned(),
        None if !is_path(name) => {
            let known = names().collect::<Vec<_>>().join(", ");
            let message = format!(
                "there is no device `{name}`; built in are {known}, {PLAIN} has the keys of the machine, and a path to \
                 a .toml file works too"
            );
            return Err((asked.place)("device", &message).with_nearest(name, names().chain([PLAIN])).into());
        }
        None => durawarp_base::input::text(Path::new(name)).map_err(|error| {
            Diagnostics::from((asked.place)("device", &format!("cannot read device file `{name}`: {error}")))
        })?,
    };
    of_text(text, asked)
}

/// The same of a file's text.
pub(super) fn of_text(text: String, asked: &DeviceRequest<'_>) -> Result<LoadedDevice, Diagnostics> {
    let source = Arc::new(SourceText::new(asked.device, text));
    let mut faults = Diagnostics::default();
    let document = parse(&source, &mut faults);
    // What follows a broken line can mean anything: the faults of the syntax come alone.
    let document = faults.into_result(document)?;
    resolved(TomlTable::root(&source, &document), asked)
}

/// A device file, in the variant that is asked for.
fn resolved(root: TomlTable<'_>, asked: &DeviceRequest<'_>) -> Result<LoadedDevice, Diagnostics> {
    let (mut faults, mut warnings) = (Diagnostics::default(), Diagnostics::default());
    check_keys(FILE, root, "a device file", &mut faults);
    let bin = variant(root, "bin", asked.bin, asked, &mut faults);
    let density = variant(root, "density", asked.density, asked, &mut faults);
    let rounding = Rounding::read(root.table("rounding"), &mut faults);
    let mut timings = Timings::new(asked, rounding);
    if let Some(item) = bin.and_then(|bin| bin.get("tCK")) {
        timings.set_t_ck(item);
    }
    timings.add_table(root.table("timing"));
    for table in [bin, density].into_iter().flatten() {
        timings.add_table(table.table("timing"));
    }
    timings.add_overrides();
    let mut organisation = organisation::organisation(root, density, &mut timings, asked, &mut faults);
    let commands = constraints::commands(root, &organisation.levels, &mut faults);
    // Data follows the last slot of its command.
    let slots = |effect: Effect| commands.iter().filter(|c| c.effect == effect).map(|c| c.cycles - 1).max();
    for (cycles, effect) in
        [(&mut organisation.read_cycles, Effect::Read), (&mut organisation.write_cycles, Effect::Write)]
    {
        *cycles = cycles.saturating_add(slots(effect).unwrap_or(0));
    }
    let constraints = constraints::constraints(root, &organisation.levels, &commands, &mut timings, &mut faults);
    let refreshes = constraints::refreshes(root, &commands, &mut timings, &mut faults);
    let buffer = buffer::buffer(root, &organisation, &mut timings, &mut faults);
    let timing = timings.all();
    // What is wrong by itself need not go together.
    if faults.0.is_empty() && timings.faults.0.is_empty() {
        check::timings(&mut timings, &mut faults, &mut warnings);
        check::ways(root, &commands, &constraints, buffer.is_some(), &mut faults);
    }
    let t_ck_ps = timings.t_ck_ps;
    faults.0.append(&mut timings.faults.0);
    let text = |table: TomlTable<'_>, key: &str| table.text(key).map_or_else(String::new, |(text, _)| text.to_owned());
    let variant = [bin, density].map(|table| table.map_or_else(String::new, |table| text(table, "name")));
    let (name, source) = (text(root, "name"), text(root, "source"));
    let device =
        Device { name, source, variant, t_ck_ps, organisation, commands, constraints, refreshes, buffer, timing };
    faults.into_result(LoadedDevice { device, warnings: warnings.0 })
}

/// The bin or density of this name, the first if none is asked for.
fn variant<'t>(
    root: TomlTable<'t>,
    key: &str,
    name: &str,
    asked: &DeviceRequest<'_>,
    faults: &mut Diagnostics,
) -> Option<TomlTable<'t>> {
    let all = root.tables(key);
    let named = |table: &TomlTable<'t>| table.text("name").map(|(name, _)| name);
    for (nth, table) in all.iter().enumerate() {
        if let Some((name, place)) = table.text("name")
            && all[..nth].iter().any(|other| named(other) == Some(name))
        {
            faults.push(place.fault(format!("there is a {key} `{name}` already")));
        }
    }
    if name.is_empty() {
        if let (true, Some(item)) = (all.is_empty(), root.get(key)) {
            faults.push(item.place().fault(format!("a device has a {key} at least")));
        }
        return all.first().copied();
    }
    let found = all.iter().find(|table| named(table) == Some(name));
    if found.is_none() {
        let names: Vec<&str> = all.iter().filter_map(named).collect();
        let message = format!("device `{}` has no {key} `{name}`; there are {}", asked.device, names.join(", "));
        faults.push((asked.place)(key, &message).with_nearest(name, names));
    }
    // The rest of the file is checked all the same.
    found.or(all.first()).copied()
}
