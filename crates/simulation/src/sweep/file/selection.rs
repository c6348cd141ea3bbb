//! Values with their places, and points that a sweep file names by values: of `exclude`, `baseline` and
//! `where`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::axis::Axis;
use super::keys::{checked, flattened, plain, same, text_of};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Place, TomlTable};

/// A value and where it is written.
#[derive(Debug, Clone)]
pub struct Setting {
    pub value: Value,
    pub(in super::super) place: Place,
}

/// Points by values: those where every key has one of its values.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Key and values.
    pub keys: Vec<(String, Vec<Value>)>,
    pub(in super::super) place: Place,
}

/// Points by values: keys that vary, or that all points have, and values that some point may have.
pub(super) fn selection(
    table: TomlTable<'_>,
    base: &BTreeMap<String, Setting>,
    axes: &[Axis],
    faults: &mut Diagnostics,
) -> Selection {
    let mut keys = Vec::new();
    for (key, place, item) in flattened(table) {
        let of_axes: Vec<&Value> = axes.iter().flat_map(|axis| axis.values_of(&key)).collect();
        let known: Vec<&Value> = match of_axes.is_empty() {
            true => base.get(&key).map(|setting| &setting.value).into_iter().collect(),
            false => of_axes,
        };
        if known.is_empty() {
            let names = axes.iter().flat_map(|axis| &axis.keys).chain(base.keys()).map(String::as_str);
            let fault = place.fault(format!("`{key}` is no axis of this sweep"));
            faults.push(fault.with_nearest_or(&key, names, || None));
            continue;
        }
        let mut values = Vec::new();
        for item in item.list().unwrap_or_else(|| vec![item]) {
            let Some(value) = plain(item, &key, faults) else { continue };
            // In the key's unit, as those that it is compared with.
            let value = checked(&key, &value).unwrap_or(value);
            if known.iter().any(|known| same(known, &value)) {
                values.push(value);
            } else {
                let fault = item.place().fault(format!("no point has `{key}` = {value}"));
                let texts: Vec<String> = known.iter().map(|value| text_of(value)).collect();
                let all = || Some(format!("it has {}", texts.join(", ")));
                faults.push(fault.with_nearest_or(&text_of(&value), texts.iter().map(String::as_str), all));
            }
        }
        keys.push((key, values));
    }
    if keys.is_empty() && faults.0.is_empty() {
        faults.push(table.place().fault("this names no points: it has no keys"));
    }
    Selection { keys, place: table.place() }
}
