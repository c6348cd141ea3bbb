//! What a machine of kernels says of itself after a run, in words of its outcome: its parameters, counters,
//! how long persists waited, what is odd about the program.

use crate::assemble::Assembly;
use crate::config::MachineConfig;
use crate::outcome::{Distributions, Machine, Persists, Spread, Stage, Warning};
use durawarp_base::stats::{Counters as _, Description, Histogram, Table};
use durawarp_engine::Timebase;
use durawarp_machine::MachineSpec;
use durawarp_machine::core::CoreCounters;
use durawarp_machine::gpc_port::GpcPortCounters;
use durawarp_machine::home::HomeCounters;
use durawarp_machine::l2::L2Counters;
use durawarp_machine::memory_controller::ControllerCounters;
use durawarp_machine::os::OsCounters;
use durawarp_machine::sm::{BulkCounters, ClusterCounters, SmCounters, TensorCounters};
use durawarp_machine::stalls::{PersistStalls, STAGES};
use durawarp_machine::switch::SwitchCounters;

use super::parameters::parameters;

/// The counters of every component.
pub(super) fn counters(machine: &Assembly) -> Vec<Table> {
    let mut tables = vec![
        Table::of("sm", &machine.sms().map(|sm| sm.counters()).collect::<Vec<_>>()),
        Table::of("l2", &machine.slices().map(|slice| *slice.counters()).collect::<Vec<_>>()),
        Table::of("memory_controller", &machine.controllers().map(|mc| *mc.counters()).collect::<Vec<_>>()),
        Table::of("switch", &machine.switches().map(|switch| *switch.counters()).collect::<Vec<_>>()),
    ];
    // A machine without tensor cores has no such table, nor has a run without bulk copies one of those.
    let gpcs: Vec<GpcPortCounters> = machine.gpc_ports().map(|port| *port.counters()).collect();
    tables.extend((!gpcs.is_empty()).then(|| Table::of("gpc", &gpcs)));
    let tensor: Vec<TensorCounters> = machine.sms().filter_map(|sm| sm.tensor_counters()).collect();
    tables.extend((!tensor.is_empty()).then(|| Table::of("tensor", &tensor)));
    let bulk: Vec<BulkCounters> = machine.sms().map(|sm| sm.bulk_counters()).collect();
    tables.extend(bulk.iter().any(BulkCounters::any).then(|| Table::of("bulk", &bulk)));
    let cluster: Vec<ClusterCounters> = machine.sms().map(|sm| sm.cluster_counters()).collect();
    tables.extend(cluster.iter().any(ClusterCounters::any).then(|| Table::of("cluster", &cluster)));
    tables
}

/// Every counter of an outcome, by kind of component: its name, meaning and unit.
pub fn counter_descriptions() -> [(&'static str, &'static [Description]); 11] {
    [
        ("sm", SmCounters::DESCRIPTIONS),
        ("tensor", TensorCounters::DESCRIPTIONS),
        ("bulk", BulkCounters::DESCRIPTIONS),
        ("cluster", ClusterCounters::DESCRIPTIONS),
        ("l2", L2Counters::DESCRIPTIONS),
        ("memory_controller", ControllerCounters::DESCRIPTIONS),
        ("switch", SwitchCounters::DESCRIPTIONS),
        ("gpc", GpcPortCounters::DESCRIPTIONS),
        ("core", CoreCounters::DESCRIPTIONS),
        ("llc", HomeCounters::DESCRIPTIONS),
        ("os", OsCounters::DESCRIPTIONS),
    ]
}

/// How long persists waited; nothing without persists.
pub(super) fn persists(machine: &Assembly, base: Timebase) -> Option<Persists> {
    let PersistStalls { stages, total, fences, boundaries } = machine.persist_stalls();
    if [&total, &fences, &boundaries].iter().all(|histogram| histogram.count() == 0) {
        return None;
    }
    let ns = |ticks: u64| base.ps_of_ticks(ticks) as f64 / 1e3;
    let spread = |histogram: &Histogram| Spread {
        count: histogram.count(),
        sum_ticks: histogram.sum(),
        sum_ns: ns(histogram.sum()),
        p50_ns: ns(histogram.percentile(50)),
        p90_ns: ns(histogram.percentile(90)),
        p99_ns: ns(histogram.percentile(99)),
        max_ns: ns(histogram.max()),
    };
    let stage = |(&(name, meaning), histogram): (&(&str, &str), &Histogram)| Stage {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        spread: spread(histogram),
    };
    let stages = STAGES.iter().zip(&stages).map(stage).collect();
    let steps = |histogram: &Histogram| histogram.steps().map(|(ticks, count)| (ns(ticks), count)).collect();
    let distributions = Distributions { total: steps(&total), fences: steps(&fences), boundaries: steps(&boundaries) };
    let [total, fences, boundaries] = [&total, &fences, &boundaries].map(spread);
    Some(Persists { stages, total, fences, boundaries, distributions })
}

/// What is odd about the program.
pub(super) fn warnings(machine: &Assembly) -> Vec<Warning> {
    let of = |first: &durawarp_machine::on_dram::OnDram| Warning {
        message: format!(
            "{}:{}: kernel `{}` uses a persistency operation on a buffer in DRAM, where it makes nothing durable; \
             others of the kernel are not told",
            first.file, first.line, first.kernel
        ),
        kernel: first.kernel.clone(),
        file: first.file.to_string(),
        line: first.line,
        launch: first.launch,
    };
    machine.on_dram().iter().map(of).collect()
}

/// The machine as plain data.
pub(super) fn describe(config: &MachineConfig, base: Timebase) -> Machine {
    let values = serde_json::to_value(&config.spec).unwrap_or_default();
    let spec = &config.spec;
    Machine {
        name: config.name.clone(),
        description: config.description.clone(),
        parameters: parameters(MachineSpec::TABLES, &values, &config.sources),
        peak_memory_bytes_per_s: spec.peak_memory_bandwidth(),
        peak_issue_per_cycle: spec.issue_peak(),
        warp_slots: u64::from(spec.sm.count) * u64::from(spec.sm.warps),
        core_khz: spec.clock.core_mhz.khz,
        tick_khz: base.tick_khz(),
    }
}
