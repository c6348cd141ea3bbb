//! What a point is known by: a hash of everything that its outcome follows from.
//!
//! BLAKE3 of canonical JSON: the resolved values of machine and scheme, a hash of the workload's content,
//! limits, the simulator's version and the schema of outcomes. Invariants: names, sources and the way in
//! which a value was given do not matter; threads and hosts do not. Not in it: the build. Whoever changes the
//! simulator without raising its version keeps results of a changed model apart by another folder.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::config::{AnyMachine, SchemeConfig, device};
use crate::outcome;
use crate::run::AnyResolved;

/// JSON with the keys of every object in order and no blanks: equal values have equal texts.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

/// Every point of a sweep has its text: it is written in one piece.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (nth, (key, value)) in entries.into_iter().enumerate() {
                text.push_str(if nth > 0 { "," } else { "" });
                write_text(key, text);
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (nth, item) in items.iter().enumerate() {
                text.push_str(if nth > 0 { "," } else { "" });
                write_canonical(item, text);
            }
            text.push(']');
        }
        // 160 and 160.0 are one value of a time.
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(n), _) if n < WHOLE => _ = write!(text, "{n}"),
            (_, Some(x)) if x.fract() == 0.0 && x.abs() < WHOLE as f64 => _ = write!(text, "{x:.0}"),
            _ => _ = write!(text, "{number}"),
        },
        Value::String(own) => write_text(own, text),
        Value::Bool(_) | Value::Null => _ = write!(text, "{value}"),
    }
}

/// A float below it that is whole is written as an integer is.
const WHOLE: u64 = 9_000_000_000_000_000;

fn write_text(own: &str, text: &mut String) {
    // What JSON writes as it is, which names of keys are.
    if own.bytes().all(|byte| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~')) {
        text.push('"');
        text.push_str(own);
        text.push('"');
    } else {
        text.push_str(&Value::from(own).to_string());
    }
}

/// The text of a machine's values, which [`of_run`] takes: many points have one machine. A memory device from
/// a file is what the file comes to.
pub(crate) fn of_machine(machine: &AnyMachine) -> String {
    let mut tables = machine.tables();
    for (name, device) in ["dram", "nvm"].into_iter().zip(machine.devices()) {
        if let Some(device) = device {
            tables[name]["table"] = device::table(device).into();
        }
    }
    canonical(&tables)
}

/// Hash of a workload's content.
pub(crate) fn of_content(workload: &AnyResolved) -> String {
    let mut hasher = blake3::Hasher::new();
    workload.fingerprint(&mut |name, bytes| {
        for part in [name.as_bytes(), bytes] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    });
    hasher.finalize().to_hex().to_string()
}

/// The key of a run on the machine of this text.
pub(crate) fn of_run(
    machine: &str,
    scheme: &SchemeConfig,
    content: &str,
    max_cycles: Option<u64>,
    reference: bool,
    sample: Option<u32>,
) -> String {
    let mut whole = json!({
        "scheme": { "name": scheme.built.name(), "values": scheme.values },
        "workload": content,
        "max_cycles": max_cycles,
        "reference": reference,
        "version": env!("CARGO_PKG_VERSION"),
        "outcome": outcome::SCHEMA,
    });
    // Keys of runs that are not sampled are those from before there was this.
    if let Some(windows) = sample {
        whole["sample"] = windows.into();
    }
    // In order of the keys the machine is the first.
    let rest = canonical(&whole);
    let text = format!("{{\"machine\":{machine},{}", rest.strip_prefix('{').unwrap_or(&rest));
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The key of a run that begins as another one, up to a core cycle: by the keys that both would have whole.
pub(crate) fn of_fork(whole: &str, cycle: u64, before: &str) -> String {
    let all = json!({ "whole": whole, "fork_at_cycle": cycle, "before": before });
    blake3::hash(canonical(&all).as_bytes()).to_hex().to_string()
}

/// The key of a run that counts by launch, too, by the key that it has without.
pub(crate) fn of_launches(whole: &str) -> String {
    blake3::hash(canonical(&json!({ "whole": whole, "launches": true })).as_bytes()).to_hex().to_string()
}

/// The key of a run of a region of interest, by the key of the whole run.
pub(crate) fn of_region(whole: &str, region: &str) -> String {
    blake3::hash(canonical(&json!({ "whole": whole, "roi": region })).as_bytes()).to_hex().to_string()
}

/// The shard of `of` that a key belongs to, from 0.
pub(crate) fn shard(key: &str, of: u32) -> u32 {
    let start = key.get(..16).and_then(|start| u64::from_str_radix(start, 16).ok()).unwrap_or(0);
    (start % u64::from(of.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MachineConfig, Override};
    use durawarp_workload::Choice;
    use durawarp_workload::Workload;

    #[test]
    fn canonical_text_does_not_depend_on_order_or_form() {
        let one: Value = serde_json::from_str(r#"{"b": [1.0, "x"], "a": {"d": null, "c": 0.5}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a": {"c": 5e-1, "d": null}, "b": [1, "x"]}"#).unwrap();
        assert_eq!(canonical(&one), canonical(&two));
        assert_eq!(canonical(&one), r#"{"a":{"c":0.5,"d":null},"b":[1,"x"]}"#);
    }

    #[test]
    fn whatever_changes_a_run_changes_its_key() {
        let key = |set: &[&str], scheme: &str, size: &str, seed: u64, limit: Option<u64>| {
            let set: Vec<Override> = set.iter().map(|text| Override::parse(text).unwrap()).collect();
            let machine = MachineConfig::load("agpm-table4", &set).unwrap().into();
            let scheme = SchemeConfig::load(scheme, &[]).unwrap();
            let params = vec![("N".to_owned(), size.to_owned())];
            let choice = Choice { params, seed, ..Choice::default() };
            let demands = crate::run::demands(&*scheme.built);
            let workload = Workload::load("vecadd").unwrap().resolve_under(&choice, demands).unwrap();
            of_run(&of_machine(&machine), &scheme, &of_content(&workload.into()), limit, true, None)
        };
        let plain = key(&[], "base", "64", 0, None);
        assert_eq!(plain, key(&[], "base", "64", 0, None));
        assert_eq!(
            key(&["l2.slice_kb=256"], "base", "64", 0, None),
            key(&["l2.slice_kb=256KiB"], "base", "64", 0, None)
        );
        let others = [
            key(&["l2.slice_kb=256"], "base", "64", 0, None),
            key(&[], "strict", "64", 0, None),
            key(&[], "base", "65", 0, None),
            key(&[], "base", "64", 1, None),
            key(&[], "base", "64", 0, Some(5)),
        ];
        for (nth, other) in others.iter().enumerate() {
            assert!(*other != plain && !others[..nth].contains(other), "{nth}");
        }
    }

    #[test]
    fn a_key_is_the_hash_of_all_that_a_run_follows_from() {
        let machine = AnyMachine::load("agpm-table4", &[]).unwrap();
        let scheme = SchemeConfig::load("agpm", &[]).unwrap();
        let key = |limit, reference| of_run(&of_machine(&machine), &scheme, "the content", limit, reference, None);
        let whole = |limit: &str, reference: bool| {
            let spec = canonical(&machine.tables());
            let values = canonical(&serde_json::to_value(&scheme.values).unwrap());
            assert!(spec.contains("\"slice_kb\":") && values.contains("threshold_logs\":10000"));
            let (version, schema) = (env!("CARGO_PKG_VERSION"), outcome::SCHEMA);
            let scheme = format!(r#"{{"name":"agpm","values":{values}}}"#);
            let rest =
                format!(r#""reference":{reference},"scheme":{scheme},"version":"{version}","workload":"the content""#);
            let text = format!(r#"{{"machine":{spec},"max_cycles":{limit},"outcome":{schema},{rest}}}"#);
            blake3::hash(text.as_bytes()).to_hex().to_string()
        };
        assert_eq!(key(None, true), whole("null", true));
        assert_eq!(key(Some(70), false), whole("70", false));
    }

    #[test]
    fn points_that_differ_in_one_thing_only_have_keys_of_their_own() {
        let machine = |set: &str| AnyMachine::load("agpm-table4", &[Override::parse(set).unwrap()]).unwrap();
        let agpm = |set: &str| SchemeConfig::load("agpm", &[Override::parse(set).unwrap()]).unwrap();
        let (table4, scheme) = (machine("l2.slice_kb=256"), agpm("agpm.step_percent=11"));
        let plain = of_run(&of_machine(&table4), &scheme, "content", None, true, None);
        let own = table4.gpu().unwrap().clone();
        let renamed = MachineConfig { name: "other".to_owned(), description: "other".to_owned(), ..own }.into();
        assert_eq!(of_run(&of_machine(&renamed), &scheme, "content", None, true, None), plain, "names do not matter");
        let others = [
            of_run(&of_machine(&table4), &scheme, "content", None, false, None),
            of_run(&of_machine(&table4), &scheme, "content", Some(0), true, None),
            of_run(&of_machine(&table4), &scheme, "content", None, true, Some(4)),
            of_run(&of_machine(&table4), &scheme, "content", None, true, Some(5)),
            of_run(&of_machine(&table4), &scheme, "content", Some(1), true, None),
            of_run(&of_machine(&table4), &scheme, "contents", None, true, None),
            of_run(&of_machine(&table4), &agpm("agpm.step_percent=12"), "content", None, true, None),
            of_run(&of_machine(&table4), &SchemeConfig::load("base", &[]).unwrap(), "content", None, true, None),
            of_run(&of_machine(&table4), &SchemeConfig::load("strict", &[]).unwrap(), "content", None, true, None),
            of_run(&of_machine(&machine("l2.slice_kb=128")), &scheme, "content", None, true, None),
        ];
        for (nth, other) in others.iter().enumerate() {
            assert!(*other != plain && !others[..nth].contains(other), "{nth}");
        }
    }

    #[test]
    fn a_contents_hash_tells_its_parts_apart() {
        let hash = |choice: Choice| {
            let workload = Workload::load("vecadd").unwrap();
            of_content(&workload.resolve_under(&choice, durawarp_workload::Demands::default()).unwrap().into())
        };
        let params = |n: &str| vec![("N".to_owned(), n.to_owned())];
        let ci = || Choice { profile: Some("ci".to_owned()), params: params("64"), ..Choice::default() };
        let all = [
            hash(ci()),
            hash(Choice { profile: None, ..ci() }),
            hash(Choice { params: params("63"), ..ci() }),
            hash(Choice { seed: 3, ..ci() }),
            hash(Choice { persistent: true, ..ci() }),
        ];
        assert_eq!(all[0], hash(ci()));
        assert!((1..all.len()).all(|nth| !all[..nth].contains(&all[nth])), "{all:?}");
        assert_eq!(all[0].len(), 64, "hexadecimal digits of 256 bits");
    }

    #[test]
    fn shards_divide_the_keys() {
        let keys: Vec<String> = (0..100u32).map(|n| blake3::hash(&n.to_le_bytes()).to_hex().to_string()).collect();
        let of: Vec<usize> = (0..3).map(|n| keys.iter().filter(|key| shard(key, 3) == n).count()).collect();
        assert!(of.iter().sum::<usize>() == 100 && of.iter().all(|&count| count > 15), "{of:?}");
        // By the first 16 digits.
        let key = "000000000000001dffff";
        assert_eq!([1, 2, 7, 30, 0].map(|of| shard(key, of)), [0, 1, 1, 29, 0]);
    }
}
