//! `durawarp config diff`, `config explain` and `config device`: what configurations are, beside each other,
//! key by key, and as the table that a memory device's file comes to.

use durawarp::config::Listing;
use durawarp::config::device::{self, BuiltinDevice, DeviceRequest, LoadedDevice};
use durawarp::config::explain::{self, Explanation, Placed};
use durawarp::config::import::{self, Import};
use durawarp::config::listing::{self, Comparison, Difference, Owned};
use durawarp::diagnostic::{Diagnostic, Diagnostics};

use super::args::{ConfigDeviceArgs, ConfigDiffArgs, ConfigExplainArgs, ConfigImportArgs};
use super::exit::{Exit, Stop};
use super::show::overrides;
use super::terminal;

pub(super) fn diff(args: &ConfigDiffArgs) -> Result<Exit, Stop> {
    let mut faults = Diagnostics::default();
    let mut load = |name: &str, set: &[durawarp::config::Override]| {
        Listing::load(name, set).map_err(|found| faults.0.extend(found.0)).ok()
    };
    let sides = (load(&args.one, &[]), load(&args.other, &overrides(&args.set)?));
    let (one, other) = match sides {
        (Some(one), Some(other)) => (one, other),
        _ => return Err(faults.into()),
    };
    if one.kind != other.kind {
        let (what, other) = (one.kind.described(), other.kind.described());
        let message = format!("`{}` is {what}, `{}` is {other}", args.one, args.other);
        return Err(Diagnostic::nowhere("", message).with_help("two of a kind can be compared").into());
    }
    let comparison = one.compared_with(&other);
    // Two files may have one name: then the files tell them apart.
    let names = match one.name == other.name {
        true if args.one == args.other => [format!("{}, as it is", args.one), format!("{}, as set", args.other)],
        true => [args.one.clone(), args.other.clone()],
        false => [one.name, other.name],
    };
    terminal::print(&differences(&names, &comparison));
    Ok(if comparison.is_equal() { Exit::Good } else { Exit::Unequal })
}

fn differences(names: &[String; 2], comparison: &Comparison) -> String {
    let Comparison { differences, equal, other_sources, schemes } = comparison;
    let mut out = match (differences.len(), comparison.is_equal()) {
        (_, true) => format!("equal: all {equal} parameters have the same values\n"),
        (count, false) => format!("{count} of {} parameters differ: {} -> {}\n", count + equal, names[0], names[1]),
    };
    if let Some((one, other)) = schemes {
        out += &format!("  they are different schemes: `{one}` -> `{other}`\n");
    }
    let width = differences.iter().map(|difference| difference.key.len()).max().unwrap_or(0);
    for Difference { key, one, other } in differences {
        let value = |of: &Option<Owned>| of.as_ref().map_or("-".to_owned(), |of| listing::shown(&of.value));
        out += &format!("  {key:width$}  {} -> {}\n", value(one), value(other));
        let sources = [one, other].map(|of| of.as_ref().map(|of| &of.source));
        if sources[0] != sources[1] {
            for (of, source) in [one, other].into_iter().zip(sources) {
                let source = source.map_or("there is no such key", String::as_str);
                out += &format!("  {:width$}    {}: {source}\n", "", value(of));
            }
        }
    }
    if *other_sources > 0 {
        out += &format!("{other_sources} equal values name different sources\n");
    }
    out
}

pub(super) fn import(args: &ConfigImportArgs) -> Result<Exit, Stop> {
    let mut faults = Diagnostics::default();
    let mut files = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        match durawarp::input::text(path) {
            Ok(text) => files.push((name, text)),
            Err(fault) => faults.push(Diagnostic::nowhere(&name, format!("cannot be read: {fault}"))),
        }
    }
    let files = faults.into_result(files)?;
    let Import { toml, mapped, ignored, unmapped, unknown } = import::import(&args.name, &files)?;
    if mapped == 0 {
        let message = "has no option of a machine: expected a configuration of GPGPU-Sim (`-gpgpu_n_clusters 28`)";
        return Err(Diagnostic::nowhere(&files[0].0, message).into());
    }
    terminal::print(&toml);
    terminal::say(&format!(
        "{mapped} options set keys, {ignored} are of no machine, {unmapped} have no counterpart: the file's end names \
         them; `durawarp config check` checks it"
    ));
    // A slip of the pen is one of them, and leaves a default where a value was meant.
    if let Some((first, others)) = unknown.split_first() {
        let more = if others.is_empty() { String::new() } else { format!("; {} more at the file's end", others.len()) };
        terminal::note(&format!("{first}{more}"));
    }
    Ok(Exit::Good)
}

pub(super) fn explain(args: &ConfigExplainArgs) -> Result<Exit, Stop> {
    let told: Vec<String> = explain::explain(&args.key, &args.names)?.iter().map(explained).collect();
    terminal::print(&told.join("\n"));
    Ok(Exit::Good)
}

pub(super) fn device(args: &ConfigDeviceArgs) -> Result<Exit, Stop> {
    let ConfigDeviceArgs { name, bin, density, timing, ranks } = args;
    let place = |key: &str, why: &str| match key {
        "device" => Diagnostic::nowhere("", why),
        option => Diagnostic::nowhere(&format!("--{option}"), why),
    };
    let asked = DeviceRequest { device: name, bin, density, timing, ranks: *ranks, place: &place };
    let LoadedDevice { device, warnings } = device::load(&asked)?;
    terminal::print(&device::table(&device));
    terminal::warn(&warnings);
    Ok(Exit::Good)
}

fn explained(told: &Explanation) -> String {
    let Explanation { key, of, meaning, unit, values, devices, places } = told;
    let mut out =
        format!("{key}: {meaning}\n  of      {of}\n  unit    {}\n  values  {values}\n", unit.unwrap_or("none"));
    for BuiltinDevice { name, source, organisation, bins, densities } in devices {
        let (bins, densities) = (bins.join(", "), densities.join(", "));
        out += &format!("  {name}: {source}\n    {organisation}\n    bins {bins}\n    densities {densities}\n");
    }
    let width = places.iter().map(|place| place.name.len()).max().unwrap_or(0);
    for Placed { name, value, source, unowned, bits } in places {
        let note = if *unowned { " [no source of its own]" } else { "" };
        out += &format!("  {name:width$}  {}: {source}{note}\n", listing::shown(value));
        bits.iter().for_each(|line| out += &format!("    {line}\n"));
    }
    out
}
