//! How a device is built, from its file: levels and how many of each, atom, row, buses.

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Item, Place, TomlTable, Value};
use durawarp_machine::device::Organisation;

use super::request::DeviceRequest;
use super::timing::Timings;

/// Most nodes of a level in one of the level above it, and most banks of a channel.
const MOST_BANKS: u64 = 4096;

/// Most levels below the channel.
const MOST_LEVELS: usize = 6;

/// Most bytes of a row.
const MOST_ROW_BYTES: u64 = 1 << 20;

/// The organisation of a device of this density; parts of it are placeholders if faults were found.
pub(super) fn organisation(
    root: TomlTable<'_>,
    density: Option<TomlTable<'_>>,
    timings: &mut Timings<'_>,
    asked: &DeviceRequest<'_>,
    faults: &mut Diagnostics,
) -> Organisation {
    let Some(table) = root.table("organisation") else { return placeholder() };
    // What a density says counts more than what all have.
    let tables = [density, Some(table)];
    let levels = levels(table, tables, asked, faults);
    let [atom_bytes, row_bytes] = sizes(tables, faults);
    let bus_levels = table.text("data_bus").filter(|(level, _)| *level != "channel").map_or(0, |(level, place)| {
        let found = levels.iter().position(|(name, _)| name == level);
        if found.is_none() {
            faults.push(no_level(level, &place, &levels));
        }
        found.map_or(0, |nth| nth as u32 + 1)
    });
    let mut cycles = |key: &str| table.get(key).and_then(|item| timings.evaluate_item(item)).unwrap_or(1) as u32;
    let burst_cycles = cycles("burst_cycles");
    if let (0, Some(item)) = (burst_cycles, table.get("burst_cycles")) {
        faults.push(item.place().fault("a burst takes the data bus for a cycle at least"));
    }
    Organisation {
        levels,
        bus_levels,
        atom_bytes,
        burst_cycles,
        row_bytes,
        read_cycles: cycles("read_cycles"),
        write_cycles: cycles("write_cycles"),
        two_command_buses: table.text("buses").is_some_and(|(buses, _)| buses == "row_and_column"),
        persistent: table.get("persistent").and_then(Item::boolean).unwrap_or(false),
    }
}

/// The levels, each with how many are in one of the level above.
fn levels(
    table: TomlTable<'_>,
    tables: [Option<TomlTable<'_>>; 2],
    asked: &DeviceRequest<'_>,
    faults: &mut Diagnostics,
) -> Vec<(String, u32)> {
    let mut names = texts(table.get("levels"));
    let given = names.len();
    names.truncate(MOST_LEVELS);
    let counts = tables.map(|table| table.and_then(|table| table.table("counts")));
    let mut count_of = |name: &str, place: &Place| {
        // Ranks are what a board has of a device: the machine says how many.
        let item = counts.iter().flatten().find_map(|counts| counts.get(name));
        let (place, message) = match (item, item.and_then(Item::number)) {
            (None, _) if name == "rank" => return asked.ranks,
            (Some(item), _) if name == "rank" => {
                (item.place(), "how many ranks there are is the machine's to say".to_owned())
            }
            (Some(_), Some(Value::Int(count))) if (1..=MOST_BANKS as i64).contains(&count) => return count as u32,
            (Some(item), _) => (item.place(), format!("`{name}` must be a whole number from 1 to {MOST_BANKS}")),
            (None, _) => (place.clone(), format!("`counts` does not say how many `{name}` there are")),
        };
        faults.push(place.fault(message));
        1
    };
    let levels: Vec<_> = names.iter().map(|(name, place)| ((*name).to_owned(), count_of(name, place))).collect();
    for (name, place, _) in counts.iter().flatten().flat_map(|counts| counts.entries()) {
        if !names.iter().any(|(level, _)| *level == name) {
            faults.push(no_level(name, &place, &levels));
        }
    }
    // Faults of all levels together are told at the list.
    let place = table.get("levels").map_or_else(|| table.place(), Item::place);
    let twice = |nth: usize| names[..nth].iter().any(|(name, _)| *name == names[nth].0);
    if names.last().is_none_or(|(name, _)| *name != "bank") || given > MOST_LEVELS {
        faults.push(place.fault(format!("`levels` are up to {MOST_LEVELS}, the last of them `bank`")));
    }
    if (0..names.len()).any(|nth| names[nth].0 == "channel" || twice(nth)) {
        faults.push(place.fault("a level has a name of its own, and `channel` is what all levels lie below"));
    }
    let banks = levels.iter().fold(1, |banks: u64, (_, count)| banks.saturating_mul(u64::from(*count)));
    if banks > MOST_BANKS {
        faults.push(place.fault(format!("a channel has {banks} banks, and {MOST_BANKS} at most are expected")));
    }
    if asked.ranks != 1 && !names.iter().any(|(name, _)| *name == "rank") {
        faults.push((asked.place)("ranks", &format!("`{}` has no ranks: 1 is all that there is", asked.device)));
    }
    levels
}

/// Bytes of a burst and of a row.
fn sizes(tables: [Option<TomlTable<'_>>; 2], faults: &mut Diagnostics) -> [u32; 2] {
    let item = |key: &str| tables.iter().flatten().find_map(|table| table.get(key));
    let mut whole = |key: &str, most: u64| {
        let item = item(key)?;
        let value = item.number().map_or(0, Value::bits);
        if !(1..=most).contains(&value) {
            faults.push(item.place().fault(format!("`{key}` must be a whole number from 1 to {most}")));
            return None;
        }
        Some((value as u32, item.place()))
    };
    let (bus_bits, burst, row) = (whole("bus_bits", 4096), whole("burst", 64), whole("row_bytes", MOST_ROW_BYTES));
    // What has no value has had its fault told, by the schema or above.
    let (Some((bus_bits, _)), Some((burst, place)), Some((row_bytes, row))) = (bus_bits, burst, row) else {
        return [1, 1];
    };
    let (bits, atom_bytes) = (bus_bits * burst, bus_bits * burst / 8);
    if !bits.is_multiple_of(8) || !atom_bytes.is_power_of_two() {
        faults.push(place.fault(format!("a burst moves {bits} bits, which are no power of two of bytes")));
    } else if !row_bytes.is_multiple_of(atom_bytes) {
        let message = format!("a row of {row_bytes} bytes is no multiple of the {atom_bytes} bytes of a burst");
        faults.push(row.fault(message));
    }
    [atom_bytes.max(1), row_bytes]
}

/// The fault of a name that is no level.
pub(super) fn no_level(name: &str, place: &Place, levels: &[(String, u32)]) -> Diagnostic {
    let all = levels.iter().map(|(name, _)| name.as_str()).chain(["channel"]);
    let fault = place.fault(format!("`{name}` is no level of the device"));
    fault.with_nearest_or(name, all.clone(), || Some(format!("levels are {}", all.collect::<Vec<_>>().join(", "))))
}

/// Stands for an organisation that the file lacks, which has been told.
fn placeholder() -> Organisation {
    Organisation {
        levels: Vec::new(),
        bus_levels: 0,
        atom_bytes: 1,
        burst_cycles: 1,
        row_bytes: 1,
        read_cycles: 1,
        write_cycles: 1,
        two_command_buses: false,
        persistent: false,
    }
}

/// The texts of a list, each with its place.
pub(super) fn texts(item: Option<Item<'_>>) -> Vec<(&str, Place)> {
    let items = item.and_then(Item::list).unwrap_or_default();
    items.into_iter().filter_map(|item| Some((item.text()?, item.place()))).collect()
}
