//! What a parameter is: meaning, unit, valid values, and its value on machines and schemes with the owner of
//! each.
//!
//! All of it comes from the declaration of the component or scheme that owns the key, and from files. Left
//! out: parameters of workloads, which their manifests declare.

use serde_json::Value;

use super::device::{self, BuiltinDevice};
use super::kind::Kind;
use super::listing::{Listing, Owned};
use super::presets;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{expectation, is_unowned, unit_of};
use durawarp_base::spec::Key;
use durawarp_machine::MachineSpec;
use durawarp_machine::cpu::CpuSpec;
use durawarp_schemes::catalogue;

/// A parameter explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// `table.key`.
    pub key: String,
    /// What it is a parameter of; of a scheme, which.
    pub of: String,
    /// What it means.
    pub meaning: String,
    /// Its unit, if it has one.
    pub unit: Option<&'static str>,
    /// The values that it takes, in words.
    pub values: String,
    /// The devices that are built in, where it names one.
    pub devices: Vec<BuiltinDevice>,
    /// What it is where.
    pub places: Vec<Placed>,
}

/// The value of a parameter on a machine or in a scheme.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The machine or scheme.
    pub name: String,
    /// In the key's unit.
    pub value: Value,
    /// Where it comes from.
    pub source: String,
    /// That is no source of its own: it was chosen, or set by the user.
    pub unowned: bool,
    /// Of an address mapping on a machine that was asked for: what each bit decides.
    pub bits: Vec<String>,
}

/// A key that there is, and whose it is.
struct Declared {
    table: String,
    key: &'static Key,
    /// `None`: a machine's.
    scheme: Option<&'static str>,
    /// The key of a machine of CPU cores, where that has one of this name.
    of_cores: Option<&'static Key>,
}

impl Declared {
    fn name(&self) -> String {
        format!("{}.{}", self.table, self.key.name)
    }

    /// What it is a parameter of.
    fn owner(&self) -> String {
        match (self.scheme, self.of_cores) {
            (Some(scheme), _) => format!("scheme `{scheme}`"),
            (None, Some(own)) if std::ptr::eq(own, self.key) => "a machine of CPU cores".to_owned(),
            (None, _) => "the machine".to_owned(),
        }
    }

    /// What it means; a key may mean something of its own on machines of CPU cores.
    fn meaning(&self) -> String {
        let meaning = self.key.doc.trim();
        match self.of_cores.map(|key| key.doc.trim()).filter(|own| *own != meaning) {
            Some(own) => format!("{meaning} Of CPU cores: {own}"),
            None => meaning.to_owned(),
        }
    }
}

/// Every key of machines and schemes, in the order of their declarations.
fn declared() -> Vec<Declared> {
    let of_machines = |tables: &'static [(&'static str, &'static [Key])]| {
        let of = |(table, keys): &'static (&'static str, &'static [Key])| keys.iter().map(move |key| (*table, key));
        tables.iter().flat_map(of)
    };
    let of_cores = |table: &str, name: &str| {
        let mut keys = of_machines(CpuSpec::TABLES);
        keys.find(|(other, key)| *other == table && key.name == name).map(|(_, key)| key)
    };
    let mut all: Vec<Declared> = Vec::new();
    for (table, key) in of_machines(MachineSpec::TABLES).chain(of_machines(CpuSpec::TABLES)) {
        // What both kinds have is told once.
        if !all.iter().any(|known| known.table == table && known.key.name == key.name) {
            let of_cores = of_cores(table, key.name);
            all.push(Declared { table: table.to_owned(), key, scheme: None, of_cores });
        }
    }
    for entry in catalogue::entries() {
        let keys = entry.parameters.as_ref().map_or(&[][..], |parameters| parameters.keys);
        all.extend(keys.iter().map(|key| {
            let (table, scheme) = (entry.table(), Some(entry.name()));
            Declared { table, key, scheme, of_cores: None }
        }));
    }
    all
}

/// Explains `asked`: `table.key`, or every key of a table. Where it has which value is told of the machines
/// and schemes in `names` (built in, or files) that have it; of all that are built in when there are no
/// names.
///
/// # Errors
/// There is no such key: the nearest are told. What `names` has cannot be read, or has none of the keys.
pub fn explain(asked: &str, names: &[String]) -> Result<Vec<Explanation>, Diagnostics> {
    let all = declared();
    let wanted: Vec<&Declared> = all.iter().filter(|key| key.name() == asked || key.table == asked).collect();
    let mut faults = Diagnostics::default();
    if wanted.is_empty() {
        faults.push(unknown(asked, &all));
    }
    // A scheme comes up once for each of its keys; it is chosen once.
    let schemes = all.iter().filter_map(|key| key.scheme);
    let builtin = presets::names().chain(schemes);
    let mut chosen: Vec<String> = names.to_vec();
    if names.is_empty() {
        for name in builtin {
            if !chosen.iter().any(|known| known == name) {
                chosen.push(name.to_owned());
            }
        }
    }
    let mut listings = Vec::new();
    for name in &chosen {
        match Listing::load(name, &[]) {
            Ok(listing) => {
                // A name that the user gave and that lacks the key is a fault; built-in names are expected to
                // lack most keys.
                let has = |key: &&Declared| listing.parameters.contains_key(&key.name());
                if !names.is_empty() && !wanted.is_empty() && !wanted.iter().any(has) {
                    let what = if listing.kind == Kind::Scheme { "scheme" } else { "machine" };
                    faults.push(Diagnostic::nowhere(name, format!("the {what} has no `{asked}`")));
                }
                listings.push(listing);
            }
            Err(found) => faults.0.extend(found.0),
        }
    }
    let explained = |key: &&Declared| {
        let name = key.name();
        let placed = |listing: &Listing| {
            let Owned { value, source } = listing.parameters.get(&name)?.clone();
            let asked_for = !names.is_empty() && name == MAPPING;
            let bits = listing.bits.iter().filter(|_| asked_for).cloned().collect();
            Some(Placed { name: listing.name.clone(), value, unowned: is_unowned(&source), source, bits })
        };
        Explanation {
            of: key.owner(),
            meaning: key.meaning(),
            unit: unit_of(key.key),
            values: expectation(key.key),
            devices: if name == "dram.device" || name == "nvm.device" { device::builtin() } else { Vec::new() },
            places: listings.iter().filter_map(placed).collect(),
            key: name,
        }
    };
    faults.into_result(wanted.iter().map(explained).collect())
}

/// The key that is told bit by bit.
const MAPPING: &str = "controller.mapping";

/// Near keys that are told of.
const NEAREST: usize = 3;

/// An unknown key, with suggestions.
fn unknown(asked: &str, all: &[Declared]) -> Diagnostic {
    if let Some(name) = asked.strip_prefix("params.") {
        let message = format!("`{asked}` is a parameter of a workload: its manifest declares `{name}`");
        return Diagnostic::nowhere("", message);
    }
    let (table, last) = asked.rsplit_once('.').unwrap_or(("", asked));
    // A key whose name contains the word is near, whatever their lengths. Keys of a table with another name
    // are farther.
    let distance = |key: &Declared| {
        let own = strsim::damerau_levenshtein(last, key.key.name);
        let part = last.len() >= 2 && key.key.name.contains(last);
        let near = part || own * 3 <= last.len().max(key.key.name.len()) + 2;
        let elsewhere = strsim::damerau_levenshtein(table, &key.table);
        near.then_some((if part { own.min(1) } else { own }) + if table.is_empty() { 0 } else { elsewhere })
    };
    let mut near: Vec<(usize, String)> = all.iter().filter_map(|key| Some((distance(key)?, key.name()))).collect();
    near.sort();
    let mut near: Vec<String> = near.into_iter().map(|(_, name)| name).collect();
    near.truncate(NEAREST);
    if near.is_empty() {
        let mut tables: Vec<&str> = all.iter().map(|key| key.table.as_str()).collect();
        tables.dedup();
        near.extend(durawarp_base::diagnostic::nearest(asked, tables).map(str::to_owned));
    }
    let fault = Diagnostic::nowhere("", format!("there is no parameter `{asked}`"));
    match near.as_slice() {
        [] => fault.with_help("`durawarp config show NAME` prints those of a machine or a scheme"),
        [only] => fault.with_help(format!("did you mean `{only}`?")),
        [first @ .., last] => fault.with_help(format!("did you mean `{}` or `{last}`?", first.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: &str, names: &[&str]) -> Result<Vec<Explanation>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        explain(asked, &names).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_key_of_the_machine_is_told_with_every_built_in_machines_value() {
        let [found] = &told("l2.slice_kb", &[]).unwrap()[..] else { panic!() };
        assert_eq!((found.of.as_str(), found.unit), ("the machine", Some("KiB")));
        assert!(found.meaning.starts_with("Capacity of one slice") && found.values.contains("1 to 65536"));
        let names: Vec<&str> = found.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, presets::MACHINES.map(|(name, _)| name));
        assert_eq!((&found.places[0].value, found.places[0].unowned), (&Value::from(128), false));
    }

    #[test]
    fn a_key_without_a_source_says_so_and_a_table_is_all_its_keys() {
        let [found] = &told("sm.lsu_entries", &["agpm-table4"]).unwrap()[..] else { panic!() };
        assert!(found.places[0].unowned && found.unit.is_none());
        let all = told("agpm", &[]).unwrap();
        assert!(all.len() > 20 && all.iter().all(|found| found.of == "scheme `agpm`" && found.places.len() == 1));
    }

    #[test]
    fn the_device_is_told_with_those_that_are_built_in() {
        let [found] = &told("dram.device", &["agpm-table4"]).unwrap()[..] else { panic!() };
        let ddr4 = found.devices.iter().find(|device| device.name == "ddr4").unwrap();
        assert_eq!(ddr4.organisation, "1 rank x 4 bank_group x 4 bank, 64 B a burst, rows of 8192 B");
        assert!(ddr4.bins.contains(&"3200AA".to_owned()) && ddr4.densities == ["8Gb_x8", "4Gb_x8", "16Gb_x8"]);
        assert_eq!(found.places[0].value, Value::from("plain"));
    }

    #[test]
    fn a_mapping_is_told_bit_by_bit_on_a_machine_that_was_asked_for() {
        let [found] = &told(MAPPING, &["volta-v100"]).unwrap()[..] else { panic!() };
        let told_bits = found.places[0].bits.join("\n");
        assert!(told_bits.starts_with("is Ro Ba Co Ch; slice = splitmix(chunk)"), "{told_bits}");
        assert!(told_bits.contains("splitmix64(chunk / 64)) mod 64"), "{told_bits}");
        let [all] = &told(MAPPING, &[]).unwrap()[..] else { panic!() };
        assert!(all.places.len() > 10 && all.places.iter().all(|place| place.bits.is_empty()));
        let [other] = &told("controller.channels", &["volta-v100"]).unwrap()[..] else { panic!() };
        assert!(other.places[0].bits.is_empty());
    }

    #[test]
    fn every_key_can_be_explained() {
        for key in declared() {
            let [found] = &told(&key.name(), &[]).unwrap()[..] else { panic!("{} is there twice", key.name()) };
            assert!(!found.meaning.is_empty() && !found.places.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn an_unknown_key_is_told_with_the_nearest_and_names_are_checked() {
        let error = told("l2.size_kib", &[]).unwrap_err();
        assert!(error.contains("no parameter `l2.size_kib`") && error.contains("l2.slice_kb"), "{error}");
        let error = told("mshr", &[]).unwrap_err();
        assert!(error.contains("l1.mshr_entries") && error.contains("core.mshr_entries"), "{error}");
        assert!(told("params.N", &[]).unwrap_err().contains("manifest"));
        assert!(told("agpm.period_logs", &["titan-x"]).is_err());
        assert!(told("l2.ways", &["agpm"]).unwrap_err().contains("the scheme has no `l2.ways`"));
        // Both faults at once.
        let error = told("l2.wayz", &["titan-y"]).unwrap_err();
        assert!(error.contains("l2.ways") && error.contains("titan-x"), "{error}");
    }
}
