//! The numbers of machine and scheme that bound the rate of regions, and the bounds of each reading.
//!
//! A reading's numbers are those of the request with the reading's changes. Invariant: none is written here
//! but the bytes that a store may be charged.

use serde_json::Value;

use super::bounds::{BusyCores, RateBound};
use crate::papers::Request;
use crate::papers::lightwsp_cpu::runs::SCHEME;
use durawarp_simulation::config::{AnyMachine, Compute, Override, SchemeConfig, is_of_a_scheme};
use durawarp_simulation::outcome::Outcome;

/// `nvm.write_bandwidth_mb_s` that is no bound.
const UNBOUND_MB_S: f64 = 1e7;
/// Bytes that a store may be charged: its own, a sector of ours, a line of Optane's cells.
pub(super) const CHARGES: [(f64, &str); 3] = [(8.0, "8 B a store"), (32.0, "32 B a store"), (256.0, "256 B a store")];

/// The numbers of machine and scheme that bound regions.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProtocolNumbers {
    pub(super) cores: BusyCores,
    pub(super) controllers: f64,
    pub(super) serial: bool,
    pub(super) ack_ns: f64,
    pub(super) path_bytes_ns: f64,
    pub(super) entry_bytes: f64,
    /// Entries of a core's front-end buffer.
    pub(super) feb_entries: f64,
    /// Of a controller; none where it is no bound.
    write_bytes_ns: Option<f64>,
}

impl ProtocolNumbers {
    /// From parameters by their keys.
    fn of<'v>(parameter: impl Fn(&str) -> Option<&'v Value>) -> Option<Self> {
        let number = |key| parameter(key)?.as_f64();
        let write_mb_s = number("nvm.write_bandwidth_mb_s")?;
        Some(ProtocolNumbers {
            cores: BusyCores { count: number("core.count")?, ghz: number("clock.core_mhz")? / 1e3 },
            controllers: number("controller.channels")?,
            serial: parameter("light_wsp.commit")? == "acked",
            ack_ns: number("light_wsp.ack_latency_ns")?,
            path_bytes_ns: number("light_wsp.path_mb_s")? / 1e3,
            entry_bytes: number("light_wsp.entry_bytes")?,
            feb_entries: number("light_wsp.feb_entries")?,
            write_bytes_ns: (write_mb_s < UNBOUND_MB_S).then_some(write_mb_s / 1e3),
        })
    }

    /// Those of the request on a machine, with changes; none where it has no cores.
    pub(super) fn with(request: &Request, machine: &str, changes: &[&str]) -> Option<Self> {
        let changes = changes.iter().filter_map(|text| Override::parse(text).ok());
        let (of_scheme, of_machine): (Vec<_>, Vec<_>) = changes.partition(is_of_a_scheme);
        let machine = AnyMachine::load(machine, &[&request.set[..], &of_machine].concat()).ok()?.values();
        let changes = [&request.scheme_set[..], &of_scheme].concat();
        let scheme = SchemeConfig::load_on(Compute::Cpu, SCHEME, &changes).ok()?.values;
        ProtocolNumbers::of(|key| machine.get(key).or_else(|| scheme.get(key)))
    }

    /// Those of a run.
    pub(super) fn of_run(outcome: &Outcome) -> Option<Self> {
        let (machine, scheme) = (&outcome.machine.parameters, &outcome.scheme_parameters);
        ProtocolNumbers::of(|key| Some(&machine.get(key).or_else(|| scheme.get(key))?.value))
    }

    fn serial_acks(&self) -> RateBound {
        RateBound::SerialAcks { ns: self.ack_ns }
    }

    /// What ACKs allow as the scheme commits.
    pub(super) fn acks(&self) -> RateBound {
        if self.serial && self.controllers > 1.0 { self.serial_acks() } else { RateBound::OverlappedAcks }
    }

    pub(super) fn path_of_core(&self) -> RateBound {
        RateBound::PathOfCore { bytes_ns: self.path_bytes_ns, entry_bytes: self.entry_bytes }
    }

    pub(super) fn path_shared(&self) -> RateBound {
        RateBound::PathShared { bytes_ns: self.path_bytes_ns, entry_bytes: self.entry_bytes }
    }

    /// Bytes a ns that all controllers write.
    pub(super) fn all_write_bytes_ns(&self) -> Option<f64> {
        Some(self.write_bytes_ns? * self.controllers)
    }

    pub(super) fn writes(&self, bytes_a_store: f64) -> Option<RateBound> {
        Some(RateBound::Writes { bytes_ns: self.all_write_bytes_ns()?, bytes_a_store })
    }
}

/// A bound with its words.
pub(super) struct NamedBound {
    pub(super) reading: String,
    pub(super) numbers: String,
    pub(super) bound: RateBound,
}

/// The bounds of each reading, with the numbers of the request and of the paper's readings.
pub(super) fn readings(request: &Request) -> Vec<NamedBound> {
    let of_reading = |name: &str| {
        let reading = request.paper.readings.iter().find(|reading| reading.name == name)?;
        ProtocolNumbers::with(request, &request.machine, reading.set)
    };
    let named = |reading: &str, numbers: String, bound| NamedBound { reading: reading.to_owned(), numbers, bound };
    let ack = |of: &ProtocolNumbers| format!("{} ns an ACK", of.ack_ns);
    let mut all = Vec::new();
    let Some(own) = ProtocolNumbers::with(request, &request.machine, &[]) else { return all };
    all.push(named("serial ACKs", ack(&own), own.serial_acks()));
    if let Some(qpi) = of_reading("qpi").filter(|qpi| qpi.ack_ns != own.ack_ns) {
        all.push(named("serial ACKs, reading `qpi`", ack(&qpi), qpi.serial_acks()));
    }
    all.push(named("overlapped ACKs", String::new(), RateBound::OverlappedAcks));
    // Where the machine has no bound of its own, Table III's.
    let (bounded, of) = match (own.write_bytes_ns, of_reading("table3")) {
        (None, Some(table3)) => (table3, "PMEM of Table III"),
        _ => (own, "PMEM"),
    };
    for (bytes, words) in CHARGES {
        if let (Some(bound), Some(all_bytes)) = (bounded.writes(bytes), bounded.all_write_bytes_ns()) {
            all.push(named(&format!("{of}, {words}"), format!("{all_bytes} GB/s"), bound));
        }
    }
    let path = format!("{} GB/s", own.path_bytes_ns);
    all.push(named("a persist path for each core", path.clone(), own.path_of_core()));
    all.push(named("one persist path for all", path, own.path_shared()));
    all
}
