//! The buffer of a device, from its file.

use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, KeyRule, Shape, TomlTable, Value, required};
use durawarp_machine::device::{BufferPolicy, DeviceBuffer, Organisation};
use durawarp_machine::msg::MAX_LINE_BYTES;

use super::timing::Timings;

/// Words of policies, as files have them, in the order of [`BufferPolicy`].
pub(super) const POLICIES: [&str; 2] = ["lru", "fifo"];

/// Most lines of a buffer, most bytes of one, and most MB/s of cells.
const MOST_LINES: u64 = 4096;
const MOST_LINE_BYTES: u64 = 1 << 16;
const MOST_MB_S: u64 = 10_000_000;

/// The keys of `[buffer]`.
pub(super) const BUFFER: &[KeyRule] = &[
    required("lines", Shape::Whole),
    required("line_bytes", Shape::Whole),
    required("durable", Shape::Boolean),
    required("policy", Shape::Words(&POLICIES)),
    required("hit", Shape::Expression),
    required("miss", Shape::Expression),
    required("cell_write", Shape::Expression),
    required("read_bandwidth_mb_s", Shape::Whole),
    required("write_bandwidth_mb_s", Shape::Whole),
];

/// The table `[buffer]`, where there is one.
pub(super) fn buffer(
    root: TomlTable<'_>,
    organisation: &Organisation,
    timings: &mut Timings<'_>,
    faults: &mut Diagnostics,
) -> Option<DeviceBuffer> {
    let table = root.table("buffer")?;
    // What has no value has had its fault told, by the schema.
    let mut whole = |key: &str, most: u64| {
        let Some(item) = table.get(key) else { return 1 };
        let value = item.number().map_or(1, Value::bits);
        if !(1..=most).contains(&value) {
            faults.push(item.place().fault(format!("`{key}` must be a whole number from 1 to {most}")));
            return 1;
        }
        value as u32
    };
    let (lines, line_bytes) = (whole("lines", MOST_LINES), whole("line_bytes", MOST_LINE_BYTES));
    let [read_bandwidth_mb_s, write_bandwidth_mb_s] =
        ["read_bandwidth_mb_s", "write_bandwidth_mb_s"].map(|key| whole(key, MOST_MB_S));
    // A request, of at most a line of the machine, lies in one line of the buffer.
    if let Some(item) = table.get("line_bytes").filter(|_| line_bytes > 1) {
        if !line_bytes.is_power_of_two() || line_bytes < MAX_LINE_BYTES as u32 {
            let message = format!("a line of {line_bytes} bytes is no power of two of at least {MAX_LINE_BYTES}");
            faults.push(item.place().fault(message));
        } else if line_bytes != organisation.row_bytes {
            let row = organisation.row_bytes;
            let message = format!("a line of {line_bytes} bytes: `row_bytes`, {row}, must be as many");
            faults.push(item.place().fault(message));
        }
    }
    if !organisation.persistent {
        faults.push(table.place().fault("a buffer is of persistent devices: `persistent` is not set"));
    }
    let mut cycles = |key: &str| {
        let item = table.get(key)?;
        Some((timings.evaluate_item(item)?, item))
    };
    let [hit, miss, cell_write] = ["hit", "miss", "cell_write"].map(&mut cycles);
    if let (Some((hit, _)), Some((miss, item))) = (hit, miss)
        && miss < hit
    {
        faults.push(item.place().fault(format!("a miss of {miss} cycles is shorter than a hit of {hit}")));
    }
    // The machine's clock may differ a little from the bin's: these are times, not its cycles.
    let ps = |of: Option<(i64, Item<'_>)>| of.map_or(0, |(cycles, _)| cycles as u64 * timings.t_ck_ps);
    let word = table.text("policy").map_or("", |(word, _)| word);
    Some(DeviceBuffer {
        lines,
        line_bytes,
        durable: table.get("durable").and_then(Item::boolean).unwrap_or(false),
        policy: if word == POLICIES[1] { BufferPolicy::Fifo } else { BufferPolicy::Lru },
        hit_ps: ps(hit),
        miss_ps: ps(miss),
        cell_write_ps: ps(cell_write),
        read_bandwidth_mb_s,
        write_bandwidth_mb_s,
    })
}
