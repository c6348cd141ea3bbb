//! Energy of a run: events times the machine's energy of each, part by part.
//!
//! Counters, what devices did, and the parameters of `energy`, whose sources come along.
//! Not counted ([`LEFT_OUT`]): static power and what no counter stands for, so that totals compare machines
//! and schemes and are no power of a chip.

use crate::outcome::{Devices, Energy, EnergyPart, Outcome};

/// What is not in the energy of a machine with a GPU, and of one of CPU cores.
const LEFT_OUT: [&str; 2] = [
    "static power, clocks, fetch, scheduling and execution units of SMs, controllers, the host",
    "static power, clocks, the way between cores and the shared cache, controllers, the network",
];

/// A kind of events: part, event, its parameter, how often it happened.
type EventKind = (&'static str, &'static str, &'static str, fn(&Sums<'_>) -> u64);

const GPU: [EventKind; 5] = [
    ("registers", "operand accesses", "energy.register_access_pj", |c| {
        let operands = c.0.parameter("energy.operands_per_instruction").unwrap_or(0.0);
        c.0.warp_instructions() * operands as u64
    }),
    ("shared", "passes", "energy.shared_access_pj", |c| c.sum("sm", &["shared_accesses", "shared_conflict_passes"])),
    ("l1", "accesses", "energy.l1_access_pj", |c| {
        // A load that neither hits nor joins a fill has the L1 filled.
        let fills = c.sum("sm", &["l1_loads"]).saturating_sub(c.sum("sm", &["l1_hits", "l1_merges"]));
        c.sum("sm", &["l1_loads", "l1_stores"]) + fills
    }),
    ("crossbar", "bytes", "energy.crossbar_byte_pj", |c| c.sum("l2", &["bytes_in", "bytes_out"])),
    ("l2", "accesses", "energy.l2_access_pj", |c| {
        c.sum("l2", &["reads", "writes", "atomics", "fetches", "writebacks"])
    }),
];

const CPU: [EventKind; 3] = [
    ("cores", "instructions", "energy.instruction_pj", |c| c.0.warp_instructions()),
    ("l1", "word accesses", "energy.l1_access_pj", |c| {
        let loads = c.sum("core", &["loads"]).saturating_sub(c.sum("core", &["forwarded_loads"]));
        loads + c.sum("core", &["stores", "atomics"])
    }),
    ("llc", "accesses", "energy.llc_access_pj", |c| {
        c.sum("llc", &["gets", "fetches", "puts", "cleans", "nic_writes", "writebacks"])
    }),
];

const DEVICES: [EventKind; 8] = [
    ("bus", "bits", "energy.bus_bit_pj", |c| {
        8 * c.controllers(&["dram_read_bytes", "dram_written_bytes", "nvm_read_bytes", "nvm_written_bytes"])
    }),
    ("dram", "bits of rows opened", "energy.dram_activate_bit_pj", |c| {
        c.row_bits("dram.row_bytes", c.devices(|devices| devices.dram_activates))
    }),
    ("dram", "bits read", "energy.dram_read_bit_pj", |c| 8 * c.controllers(&["dram_read_bytes"])),
    ("dram", "bits written", "energy.dram_write_bit_pj", |c| 8 * c.controllers(&["dram_written_bytes"])),
    ("dram", "refreshes", REFRESH, |c| c.controllers(&["refreshes"])),
    ("nvm", "bits of rows opened", "energy.nvm_activate_bit_pj", |c| {
        c.row_bits("nvm.row_bytes", c.devices(|devices| devices.nvm_activates))
    }),
    ("nvm", "bits read", "energy.nvm_read_bit_pj", |c| 8 * c.controllers(&["nvm_read_bytes"])),
    ("nvm", "bits written", "energy.nvm_write_bit_pj", |c| 8 * c.devices(|devices| devices.nvm_cell_bytes)),
];

/// Results that were kept before it was counted lack it, and their energy is as it was.
const REFRESH: &str = "energy.dram_refresh_pj";

/// What an outcome counted.
struct Sums<'a>(&'a Outcome);

impl Sums<'_> {
    /// The sum of counters, those that the outcome has.
    fn sum(&self, kind: &str, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.0.count_of(kind, name)).sum()
    }

    fn controllers(&self, names: &[&str]) -> u64 {
        self.sum("memory_controller", names)
    }

    fn devices(&self, of: impl FnOnce(&Devices) -> u64) -> u64 {
        self.0.devices.as_ref().map_or(0, of)
    }

    fn row_bits(&self, row_bytes: &str, rows: u64) -> u64 {
        rows * 8 * self.0.parameter(row_bytes).unwrap_or(0.0) as u64
    }
}

/// Energy of a run; `None` where its machine has no energy of events, as in results kept before there was
/// this.
pub(super) fn of(outcome: &Outcome) -> Option<Energy> {
    outcome.devices.as_ref()?;
    let of_a_cpu = outcome.is_of_a_cpu();
    let chip: &[EventKind] = if of_a_cpu { &CPU } else { &GPU };
    let event = |&(part, event, key, count): &EventKind| {
        let parameter = outcome.machine.parameters.get(key)?;
        Some(EnergyPart {
            part: part.to_owned(),
            event: event.to_owned(),
            count: count(&Sums(outcome)),
            each_pj: parameter.value.as_f64()?,
            source: parameter.source.clone(),
        })
    };
    let known = |kind: &&EventKind| kind.2 != REFRESH || outcome.machine.parameters.contains_key(REFRESH);
    let events = chip.iter().chain(&DEVICES).filter(known).map(event).collect::<Option<Vec<_>>>()?;
    Some(Energy { events, left_out: LEFT_OUT[usize::from(of_a_cpu)].to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outcome::sample::{cores, sample};
    use crate::outcome::{ENERGY_PARTS, Parameter};
    use durawarp_base::stats::Table;

    /// The sample with one energy for all events, and with devices.
    fn with_energy() -> Outcome {
        let mut outcome = sample();
        for (.., key, _) in GPU.iter().chain(&DEVICES) {
            let source = if *key == "energy.register_access_pj" { "chosen" } else { "a paper" };
            let parameter = Parameter { value: json!(2.5), source: source.to_owned() };
            outcome.machine.parameters.insert((*key).to_owned(), parameter);
        }
        for (key, value) in [("energy.operands_per_instruction", 3), ("dram.row_bytes", 2048), ("nvm.row_bytes", 1024)]
        {
            outcome.machine.parameters.insert(key.to_owned(), Parameter { value: json!(value), source: String::new() });
        }
        let nvm_bank_writes = vec![vec![3, 5]];
        let of =
            Devices { dram_activates: 10, nvm_activates: 4, nvm_cell_bytes: 1_000, nvm_bank_writes, nvm_lines: None };
        Outcome { devices: Some(of), ..outcome }
    }

    #[test]
    fn each_event_costs_what_its_parameter_says() {
        let outcome = with_energy();
        let energy = of(&outcome).unwrap();
        let count = |part: &str, event: &str| {
            energy.events.iter().find(|own| (&*own.part, &*own.event) == (part, event)).unwrap().count
        };
        assert_eq!(count("registers", "operand accesses"), 25_000 * 3);
        // 4,000 loads, 2,900 hits: 1,100 fills; 2,307 stores.
        assert_eq!(count("l1", "accesses"), 4_000 + 1_100 + 2_307);
        assert_eq!(count("l2", "accesses"), 2_000 + 1_600 + 77);
        assert_eq!(count("dram", "bits of rows opened"), 10 * 2048 * 8);
        assert_eq!(count("dram", "refreshes"), 12);
        assert_eq!(count("nvm", "bits of rows opened"), 4 * 1024 * 8);
        assert_eq!(count("nvm", "bits written"), 8_000, "bits of cells, not those that came over the bus");
        let nvm = (4.0 * 1024.0 * 8.0 + 300_000.0 * 8.0 + 8_000.0) * 2.5 / 1e3;
        assert!((energy.part_nj("nvm") - nvm).abs() < 1e-6, "{}", energy.part_nj("nvm"));
        let parts: f64 = ENERGY_PARTS.iter().map(|(part, _)| energy.part_nj(part)).sum();
        assert!((parts - energy.nj()).abs() < 1e-6 * parts, "parts add up: {parts} of {}", energy.nj());
        // 10 nJ in 1,000 ps are 10 W.
        let ten =
            Energy { events: vec![EnergyPart { count: 4_000, each_pj: 2.5, ..energy.events[0].clone() }], ..energy };
        assert!((ten.watts(1_000) - 10.0).abs() < 1e-9);
        assert!(ten.sourced_share().abs() < 1e-9, "registers are chosen");
    }

    /// A run of cores, whose counters are in powers of ten: a sum shows what is in it.
    fn of_cores() -> Outcome {
        let mut outcome = cores(&[
            ("instructions", 1_000_000),
            ("loads", 70_000),
            ("forwarded_loads", 20_000),
            ("stores", 3_000),
            ("atomics", 400),
            ("hits", 9),
        ]);
        let llc = [("gets", 1), ("fetches", 20), ("puts", 300), ("cleans", 4_000), ("nic_writes", 50_000)];
        let llc = [&llc[..], &[("writebacks", 600_000), ("hits", 7_000_000)]].concat();
        outcome.counters.push(Table {
            kind: "llc".to_owned(),
            names: llc.iter().map(|(name, _)| (*name).to_owned()).collect(),
            docs: llc.iter().map(|_| String::new()).collect(),
            rows: vec![llc.iter().map(|(_, count)| *count).collect()],
        });
        for (.., key, _) in CPU.iter().chain(&DEVICES) {
            let parameter = Parameter { value: json!(2.5), source: "a paper".to_owned() };
            outcome.machine.parameters.insert((*key).to_owned(), parameter);
        }
        let nvm_bank_writes = Vec::new();
        let none = Devices { dram_activates: 0, nvm_activates: 0, nvm_cell_bytes: 0, nvm_bank_writes, nvm_lines: None };
        Outcome { devices: Some(none), ..outcome }
    }

    #[test]
    fn cores_and_their_caches_cost_what_they_access() {
        let outcome = of_cores();
        let energy = of(&outcome).unwrap();
        let count = |part: &str| energy.events.iter().find(|event| event.part == part).unwrap().count;
        assert_eq!(count("cores"), 1_000_000);
        assert_eq!(count("l1"), 53_400, "a load that a store queue answers is no access to the L1");
        assert_eq!(count("llc"), 654_321, "write-backs of the shared cache are accesses to it");
        // The sample's bytes: 1,200,000 and 228,571 of DRAM, 300,000 and 57,143 of NVM.
        assert_eq!(count("bus"), 8 * (1_200_000 + 228_571 + 300_000 + 57_143));
        let bits =
            |event: &str| energy.events.iter().find(|own| own.part == "dram" && own.event == event).unwrap().count;
        assert_eq!([bits("bits read"), bits("bits written")], [8 * 1_200_000, 8 * 228_571]);
        assert!(energy.left_out.contains("between cores and the shared cache"), "{}", energy.left_out);
        assert!((energy.part_nj("llc") - 654_321.0 * 2.5 / 1e3).abs() < 1e-6);
    }

    #[test]
    fn without_parameters_of_energy_there_is_none() {
        assert_eq!(of(&sample()), None);
        let mut half = with_energy();
        half.machine.parameters.remove("energy.bus_bit_pj");
        assert_eq!(of(&half), None);
        // A result from before refreshes were counted keeps the energy that it had.
        let mut before = with_energy();
        before.machine.parameters.remove(REFRESH);
        let (before, now) = (of(&before).unwrap(), of(&with_energy()).unwrap());
        assert!((now.nj() - before.nj() - 12.0 * 2.5 / 1e3).abs() < 1e-9);
    }
}
