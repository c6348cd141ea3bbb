//! What can be told of an outcome in one number: name, unit, meaning and value.
//!
//! Counters are there under `kind.name`, summed over components; their units are the last words of their
//! descriptions. Invariant: every name has a unit and a meaning.

use crate::outcome::{ENERGY_PARTS, Energy, Outcome, Persists, Wear};
use crate::run;
use durawarp_base::diagnostic::Diagnostic;

/// A number that an outcome has.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Metric {
    pub name: String,
    pub unit: String,
    /// What it is.
    pub meaning: String,
}

/// Which values of a metric are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The lower the better.
    Lower,
    /// The higher the better.
    Higher,
}

impl std::str::FromStr for Better {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "lower" => Ok(Better::Lower),
            "higher" => Ok(Better::Higher),
            other => Err(format!("expected `lower` or `higher`, found `{other}`")),
        }
    }
}

impl Metric {
    /// Which values are good; `None` where that depends on the question, as for most counts.
    pub fn better(&self) -> Option<Better> {
        let name = self.name.as_str();
        match self.unit.as_str() {
            "warp instructions/core cycle" | "warp instructions/s" => Some(Better::Higher),
            "core cycles" | "ns" | "s" | "bytes" | "nJ" => Some(Better::Lower),
            "years" => Some(Better::Higher),
            _ if name.ends_with("_hits") => Some(Better::Higher),
            _ => None,
        }
    }
}

/// Metrics when a sweep file names none.
pub(crate) const DEFAULT: [&str; 8] = [
    "cycles",
    "time_ns",
    "warp_instructions",
    "ipc",
    "memory_controller.dram_read_bytes",
    "memory_controller.dram_written_bytes",
    "memory_controller.nvm_read_bytes",
    "memory_controller.nvm_written_bytes",
];

/// Name, unit, meaning, value.
type Derived = (&'static str, &'static str, &'static str, fn(&Outcome) -> Option<f64>);

/// Of runs whose persists were told of: of a sampled run nothing is known.
fn told(outcome: &Outcome, of: fn(&Persists) -> f64) -> Option<f64> {
    match &outcome.persists {
        Some(persists) => Some(of(persists)),
        None => outcome.sampling.is_none().then_some(0.0),
    }
}

const DERIVED: [Derived; 17] = [
    ("cycles", "core cycles", "From the start of the host program until its last step was done", |o| {
        Some(o.time.core_cycles as f64)
    }),
    ("cycles_low", "core cycles", "Of a sampled run: lower end of the 95 % confidence interval of cycles", |o| {
        o.sampling.as_ref().map(|sampling| sampling.low.core_cycles as f64)
    }),
    ("cycles_high", "core cycles", "Of a sampled run: upper end of that interval", |o| {
        o.sampling.as_ref().map(|sampling| sampling.high.core_cycles as f64)
    }),
    ("time_ns", "ns", "The same in simulated time", |o| Some(o.time.ps as f64 / 1e3)),
    ("warp_instructions", "warp instructions", "Instructions issued, one a warp; of CPU cores, retired", |o| {
        Some(o.warp_instructions() as f64)
    }),
    ("thread_instructions", "thread instructions", "Lanes that executed them", |o| {
        o.count_of("sm", "thread_instructions").map(|lanes| lanes as f64)
    }),
    ("ipc", "warp instructions/core cycle", "Warp instructions a core cycle, all SMs or cores together", |o| {
        Some(o.ipc())
    }),
    ("launches", "launches", "Kernel launches", |o| Some(o.launches.len() as f64)),
    ("persists.count", "requests", "Lines that warps wrote through or wrote back", |o| {
        told(o, |p| p.total.count as f64)
    }),
    ("persists.mean_ns", "ns", "From issue to acknowledgement of a persist: mean", |o| {
        o.persists.as_ref().map(|p| p.total.mean_ns())
    }),
    ("persists.p50_ns", "ns", "The same: half were not longer", |o| o.persists.as_ref().map(|p| p.total.p50_ns)),
    ("persists.p99_ns", "ns", "The same: 99 of 100 were not longer", |o| o.persists.as_ref().map(|p| p.total.p99_ns)),
    ("fences.sum_ns", "ns", "Warps waiting until their persists were durable: sum", |o| told(o, |p| p.fences.sum_ns)),
    ("boundaries.sum_ns", "ns", "Ends of CTAs and kernels waiting for the write-back of the L2: sum", |o| {
        told(o, |p| p.boundaries.sum_ns)
    }),
    ("events", "events", "Events that the engine handled", |o| Some(o.engine.events as f64)),
    ("wall_s", "s", "Host time of the simulation; never the same twice", |o| Some(o.host.wall_s)),
    (
        "warp_instructions_per_s",
        "warp instructions/s",
        "Speed of the simulation on its host; never the same twice",
        |o| Some(o.warp_instructions_per_s()),
    ),
];

/// The energy of a part, in nJ.
const ENERGY: (&str, &str) = ("energy.", "_nj");

/// What is told of energy and wear beside energies of parts.
const OF_DEVICES: [Derived; 8] = [
    ("energy_nj", "nJ", "Energy of all that is counted", |o| o.energy.as_ref().map(Energy::nj)),
    ("energy_watts", "W", "The same over simulated time", |o| o.energy.as_ref().map(|e| e.watts(o.time.ps))),
    ("nvm.activates", "rows", "NVM rows opened", |o| Some(o.devices.as_ref()?.nvm_activates as f64)),
    ("nvm.cell_writes", "lines", "Lines written to the cells of NVM", |o| Some(o.wear.as_ref()?.writes as f64)),
    ("nvm.most_of_a_bank", "lines", "The same of the bank that was written most", |o| {
        Some(o.wear.as_ref()?.most_of_a_bank as f64)
    }),
    ("nvm.bank_imbalance", "mean banks", "Writes of that bank over the mean of banks", |o| {
        o.wear.as_ref().map(Wear::bank_imbalance)
    }),
    ("nvm.lifetime_in_banks_years", "years", "Lifetime of NVM with ideal levelling in banks", |o| {
        Some(o.wear.as_ref()?.lifetimes?.levelled_in_banks_years)
    }),
    ("nvm.lifetime_years", "years", "Lifetime of NVM with ideal levelling over all of it", |o| {
        Some(o.wear.as_ref()?.lifetimes?.levelled_years)
    }),
];

/// A description "Meaning (unit)" in its parts.
fn parts(doc: &str) -> (&str, &str) {
    match doc.trim().strip_suffix(')').and_then(|doc| doc.rsplit_once(" (")) {
        Some((meaning, unit)) => (meaning, unit),
        None => (doc, "1"),
    }
}

/// Every metric.
pub fn all() -> Vec<Metric> {
    let derived = DERIVED.iter().chain(&OF_DEVICES).map(|(name, unit, meaning, _)| Metric {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        meaning: (*meaning).to_owned(),
    });
    let counters = run::counter_descriptions().into_iter().flat_map(|(kind, counters)| {
        counters.iter().map(move |counter| {
            let (meaning, unit) = parts(counter.doc);
            let name = format!("{kind}.{}", counter.name);
            Metric { name, unit: unit.to_owned(), meaning: meaning.to_owned() }
        })
    });
    let of_parts = ENERGY_PARTS.iter().map(|(part, meaning)| Metric {
        name: format!("{}{part}{}", ENERGY.0, ENERGY.1),
        unit: "nJ".to_owned(),
        meaning: format!("Energy of {meaning}"),
    });
    derived.chain(of_parts).chain(counters).collect()
}

/// The metric of a name.
pub fn find(name: &str) -> Option<Metric> {
    all().into_iter().find(|metric| metric.name == name)
}

/// The fault of an unknown metric, with the nearest name.
pub(super) fn unknown(fault: Diagnostic, name: &str) -> Diagnostic {
    let known = all();
    let all = || Some("`durawarp sweep table --columns` lists them".to_owned());
    fault.with_nearest_or(name, known.iter().map(|metric| metric.name.as_str()), all)
}

/// Its value; `None` where an outcome does not have it.
pub fn value(outcome: &Outcome, name: &str) -> Option<f64> {
    if let Some((.., of)) = DERIVED.iter().chain(&OF_DEVICES).find(|(own, ..)| *own == name) {
        return of(outcome);
    }
    let part = name.strip_prefix(ENERGY.0).and_then(|rest| rest.strip_suffix(ENERGY.1));
    if let Some((part, _)) = ENERGY_PARTS.iter().find(|(own, _)| Some(*own) == part) {
        return outcome.energy.as_ref().map(|energy| energy.part_nj(part));
    }
    let (kind, counter) = name.split_once('.')?;
    let table = outcome.counters.iter().find(|table| table.kind == kind)?;
    table.names.iter().any(|own| own == counter).then(|| table.total(counter) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample::{cycles, sample, sampled};
    use crate::outcome::{EnergyPart, Sampling};

    #[test]
    fn every_metric_has_a_name_of_its_own_a_unit_and_a_meaning() {
        let all = all();
        for (nth, metric) in all.iter().enumerate() {
            assert!(!metric.unit.is_empty() && metric.unit != "1" && !metric.meaning.is_empty(), "{metric:?}");
            assert!(all[..nth].iter().all(|other| other.name != metric.name), "{metric:?}");
        }
        assert_eq!(find("sm.l1_hits").map(|metric| metric.unit).as_deref(), Some("accesses"));
        assert!(DEFAULT.iter().all(|name| find(name).is_some()));
    }

    #[test]
    fn derived_metrics_are_in_the_units_that_they_name() {
        let (low, high) = (cycles(9_900), cycles(10_100));
        let outcome = Outcome { sampling: Some(Sampling { low, high, ..sampled() }), ..sample() };
        let expected = [
            ("cycles", 10_000.0),
            ("cycles_low", 9_900.0),
            ("cycles_high", 10_100.0),
            ("time_ns", 7_142.857),
            ("warp_instructions", 25_000.0),
            ("thread_instructions", 777_000.0),
            ("ipc", 2.5),
            ("launches", 2.0),
            ("persists.count", 400.0),
            ("persists.mean_ns", 251.5),
            ("persists.p50_ns", 210.0),
            ("persists.p99_ns", 515.5),
            ("fences.sum_ns", 27_000.0),
            ("boundaries.sum_ns", 6_012.0),
            ("events", 84_000.0),
            ("wall_s", 0.5),
            ("warp_instructions_per_s", 50_000.0),
        ];
        assert_eq!(expected.map(|(name, _)| name), DERIVED.map(|(name, ..)| name), "all that there are");
        for (name, number) in expected {
            assert_eq!(value(&outcome, name), Some(number), "{name}");
        }
        assert_eq!(value(&outcome, "l2.read_hits"), Some(490.0), "summed over slices");
        assert_eq!(value(&outcome, "memory_controller.nvm_written_bytes"), Some(57_143.0));
        assert_eq!(["l2.nothing", "l3.reads", "reads", "persists"].map(|name| value(&outcome, name)), [None; 4]);
    }

    #[test]
    fn energy_is_told_as_a_whole_and_by_part_where_it_is_known() {
        let part = |part: &str, count| EnergyPart {
            part: part.to_owned(),
            event: "bits".to_owned(),
            count,
            each_pj: 2.0,
            source: String::new(),
        };
        let energy =
            Energy { events: vec![part("dram", 3_000), part("nvm", 1_000), part("nvm", 500)], left_out: String::new() };
        let outcome = Outcome { energy: Some(energy), ..sample() };
        let names = ["energy_nj", "energy.nvm_nj", "energy.cores_nj", "energy.nvm_pj", "nvm.cell_writes"];
        assert_eq!(names.map(|name| value(&outcome, name)), [Some(9.0), Some(3.0), Some(0.0), None, None]);
        assert_eq!(value(&sample(), "energy_nj"), None);
        assert_eq!(find("energy.nvm_nj").unwrap().better(), Some(Better::Lower));
    }

    #[test]
    fn without_persists_there_are_none_and_their_times_are_not_known() {
        let outcome = Outcome { persists: None, ..sample() };
        let of = |names: [&str; 3]| names.map(|name| value(&outcome, name));
        assert_eq!(of(["persists.count", "fences.sum_ns", "boundaries.sum_ns"]), [Some(0.0); 3]);
        assert_eq!(of(["persists.mean_ns", "persists.p50_ns", "persists.p99_ns"]), [None; 3]);
    }

    #[test]
    fn speed_and_hits_are_good_and_times_and_bytes_are_not() {
        let better = |name: &str| find(name).unwrap().better();
        for name in ["ipc", "warp_instructions_per_s", "sm.l1_hits", "l2.read_hits"] {
            assert_eq!(better(name), Some(Better::Higher), "{name}");
        }
        for name in ["cycles", "time_ns", "persists.mean_ns", "wall_s", "memory_controller.nvm_written_bytes"] {
            assert_eq!(better(name), Some(Better::Lower), "{name}");
        }
        for name in ["launches", "events", "warp_instructions", "l2.reads"] {
            assert_eq!(better(name), None, "{name}");
        }
        assert_eq!(
            [("lower", Better::Lower), ("higher", Better::Higher)].map(|(word, to)| word.parse() == Ok(to)),
            [true; 2]
        );
        assert_eq!("up".parse::<Better>().unwrap_err(), "expected `lower` or `higher`, found `up`");
    }

    #[test]
    fn a_description_ends_in_its_unit() {
        assert_eq!(parts("Reads (all) of lines (requests) "), ("Reads (all) of lines", "requests"));
        assert_eq!(parts("Reads"), ("Reads", "1"));
    }
}
