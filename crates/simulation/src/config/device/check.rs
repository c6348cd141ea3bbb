//! Whether a device's timings and constraints go together: what no device can be is a fault, what is odd but
//! possible a warning.

use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, TomlTable};
use durawarp_machine::device::{Command, Constraint, Effect};

use super::timing::Timings;

/// `CCD_L` of `CCD_L_WR` and the like: the name of the short one of a long timing.
fn short_of(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('_').collect();
    let long = parts.iter().skip(1).position(|part| *part == "L")? + 1;
    Some(parts.iter().enumerate().map(|(nth, part)| if nth == long { "S" } else { part }).collect::<Vec<_>>().join("_"))
}

/// Faults of timings together, and warnings.
pub(super) fn timings(all: &mut Timings<'_>, faults: &mut Diagnostics, warnings: &mut Diagnostics) {
    let names: Vec<String> = all.all().into_iter().map(|(name, _)| name).collect();
    // The timing to blame, and why.
    let mut wrong: Vec<(&str, String)> = Vec::new();
    for name in &names {
        if let Some(short) = short_of(name)
            && let [Some(long), Some(other)] = [name, &short].map(|name| all.value(name))
            && long < other
        {
            wrong.push((name, format!("`{name}` of {long} cycles is less than `{short}` of {other}")));
        }
    }
    if let [Some(rc), Some(ras), Some(rp)] = ["RC", "RAS", "RP"].map(|name| all.value(name))
        && rc < ras + rp
    {
        wrong.push(("RC", format!("`RC` of {rc} cycles is less than `RAS + RP`, {}", ras + rp)));
    }
    if let [Some(rfc), Some(refi)] = ["RFC", "REFI"].map(|name| all.value(name))
        && rfc >= refi
    {
        let message = format!("`RFC` of {rfc} cycles leaves nothing of `REFI`, {refi}: the device would only refresh");
        wrong.push(("RFC", message));
    }
    faults.0.extend(wrong.iter().filter_map(|(name, message)| all.blame(name, message)));
    if let [Some(faw), Some(rrd)] = ["FAW", "RRD_S"].map(|name| all.value(name))
        && faw < 4 * rrd
    {
        let message = format!("`FAW` of {faw} cycles is of no effect: 4 `RRD_S` are {}", 4 * rrd);
        warnings.0.extend(all.blame("FAW", &message));
    }
}

/// A row can be opened, read, written and closed, and each waits for the one before; or there is a buffer,
/// and requests have no rows.
pub(super) fn ways(
    root: TomlTable<'_>,
    commands: &[Command],
    constraints: &[Constraint],
    has_buffer: bool,
    faults: &mut Diagnostics,
) {
    let of = |effect: Effect| move |nth: u8| commands[usize::from(nth)].effect == effect;
    let place = |key: &str| root.get(key).map_or_else(|| root.place(), Item::place);
    const NEEDED: [(Effect, &str); 4] =
        [(Effect::Open, "open"), (Effect::Close, "close"), (Effect::Read, "read"), (Effect::Write, "write")];
    let needed = if has_buffer { &NEEDED[2..] } else { &NEEDED };
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(effect, _)| !commands.iter().any(|command| command.effect == *effect))
        .map(|(_, word)| *word)
        .collect();
    if !missing.is_empty() {
        faults.push(place("commands").fault(format!("no command has the effect {}", missing.join(", "))));
        return;
    }
    if has_buffer {
        // No request would give such a command.
        if let Some(odd) = commands.iter().find(|own| own.closes || !matches!(own.effect, Effect::Read | Effect::Write))
        {
            faults.push(place("commands").fault(format!("`{}` is of rows: a device with a buffer has none", odd.name)));
        }
        return;
    }
    const WAYS: [(Effect, Effect, &str); 4] = [
        (Effect::Open, Effect::Read, "no path from open to read: no constraint has the one before the other"),
        (Effect::Open, Effect::Write, "no path from open to write: no constraint has the one before the other"),
        (Effect::Open, Effect::Close, "no path from open to close: no constraint has the one before the other"),
        (Effect::Close, Effect::Open, "no path from close to open: no constraint has the one before the other"),
    ];
    for (before, after, message) in WAYS {
        let joins = |row: &Constraint| of(before)(row.before) && of(after)(row.after);
        if !constraints.iter().any(joins) {
            faults.push(place("constraints").fault(message));
        }
    }
}
