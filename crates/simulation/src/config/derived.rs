//! What follows from several parameters of a machine at once: capacities, rates and times that change
//! although nobody set them.
//!
//! Each names the parameters that it is plainly of: an axis over one of these means to change it, an axis
//! over another that it follows from may not know that it does. Left out: sums over SMs, which are what a
//! number of SMs is for.

use super::machine::{CpuMachine, MachineConfig};
use durawarp_machine::MachineSpec;
use durawarp_machine::coherence::CPU_LINE_BYTES;
use durawarp_machine::cpu::CpuSpec;

/// A quantity that follows from parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// What it is, with its unit.
    pub name: &'static str,
    pub value: f64,
    /// Parameters that one changes to change it.
    pub plainly_of: &'static [&'static str],
}

type Row<S> = (&'static str, &'static [&'static str], fn(&S) -> f64);

const GPU: [Row<MachineSpec>; 12] = [
    ("sets of an L1", &["l1.kb", "l1.unified_kb"], |m| sets(m.l1.most_kb(), m.l2.line_bytes, m.l1.ways)),
    ("sets of an L2 slice", &["l2.slice_kb"], |m| sets(m.l2.slice_kb, m.l2.line_bytes, m.l2.ways)),
    ("capacity of the L2 (KiB)", &["l2.slice_kb"], |m| f64::from(m.l2.slices) * f64::from(m.l2.slice_kb)),
    ("L2 slices of a channel", &[], |m| f64::from(m.l2.slices) / f64::from(m.controller.channels)),
    ("bandwidth of all L2 data ports (MB/s)", &["l2.port_bytes"], |m| {
        f64::from(m.l2.slices) * f64::from(m.l2.port_bytes) * mhz(m.clock.l2_mhz.khz)
    }),
    ("time of the L2 pipeline (ns)", &["l2.pipeline_cycles"], |m| {
        f64::from(m.l2.pipeline_cycles) * 1e3 / mhz(m.clock.l2_mhz.khz)
    }),
    ("time of the crossbar (ns)", &["crossbar.latency_cycles"], |m| {
        f64::from(m.crossbar.latency_cycles) * 1e3 / mhz(m.clock.crossbar_mhz.khz)
    }),
    ("time of an L1 hit (ns)", &["l1.hit_cycles"], |m| f64::from(m.l1.hit_cycles) * 1e3 / mhz(m.clock.core_mhz.khz)),
    ("peak memory bandwidth (MB/s)", &["bus.bytes_per_cycle"], |m| m.peak_memory_bandwidth() as f64 / 1e6),
    ("DRAM banks of all channels", &["dram.banks"], |m| f64::from(m.dram.banks) * f64::from(m.controller.channels)),
    ("NVM banks of all channels", &["nvm.banks"], |m| f64::from(m.nvm.banks) * f64::from(m.controller.channels)),
    ("WPQ entries of all channels", &["controller.write_queue_entries"], |m| {
        f64::from(m.controller.write_queue_entries) * f64::from(m.controller.channels)
    }),
];

const CPU: [Row<CpuSpec>; 7] = [
    ("sets of an L1", &["l1d.kb"], |m| sets(m.l1d.kb, CPU_LINE_BYTES as u32, m.l1d.ways)),
    ("sets of a home slice", &["llc.slice_kb"], |m| sets(m.llc.slice_kb, CPU_LINE_BYTES as u32, m.llc.ways)),
    ("capacity of the shared cache (KiB)", &["llc.slice_kb"], |m| f64::from(m.llc.slices) * f64::from(m.llc.slice_kb)),
    ("home slices of a channel", &["llc.slices"], |m| f64::from(m.llc.slices) / f64::from(m.controller.channels)),
    (
        "time of a hit in the shared cache (ns)",
        &["llc.request_cycles", "llc.service_cycles", "llc.reply_cycles"],
        |m| {
            let cycles = m.llc.request_cycles + m.llc.service_cycles + m.llc.reply_cycles;
            f64::from(cycles) * 1e3 / mhz(m.clock.core_mhz.khz)
        },
    ),
    ("peak memory bandwidth (MB/s)", &["bus.bytes_per_cycle"], |m| m.peak_memory_bandwidth() as f64 / 1e6),
    ("WPQ entries of all channels", &["controller.write_queue_entries"], |m| {
        f64::from(m.controller.write_queue_entries) * f64::from(m.controller.channels)
    }),
];

fn mhz(khz: u64) -> f64 {
    khz as f64 / 1e3
}

fn sets(kb: u32, line_bytes: u32, ways: u32) -> f64 {
    f64::from(kb) * 1024.0 / f64::from(line_bytes) / f64::from(ways)
}

/// What follows from parameters, a row each.
fn of_rows<S>(rows: &[Row<S>], spec: &S) -> Vec<Derived> {
    rows.iter().map(|&(name, plainly_of, value)| Derived { name, value: value(spec), plainly_of }).collect()
}

impl MachineConfig {
    /// What follows from its parameters, always the same quantities in the same order.
    pub(crate) fn derived(&self) -> Vec<Derived> {
        of_rows(&GPU, &self.spec)
    }
}

impl CpuMachine {
    /// As of machines with GPUs.
    pub(crate) fn derived(&self) -> Vec<Derived> {
        of_rows(&CPU, &self.spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Override;

    #[test]
    fn what_a_quantity_is_plainly_of_are_keys_and_change_it() {
        let plain = MachineConfig::load("agpm-table4", &[]).unwrap();
        let keys = plain.values();
        for (nth, derived) in plain.derived().iter().enumerate() {
            assert!(derived.value > 0.0, "{derived:?}");
            // Without effect beside an L1 that has memory of its own: below.
            for key in derived.plainly_of.iter().filter(|key| **key != "l1.unified_kb") {
                let doubled =
                    Override { key: (*key).to_owned(), value: (keys[*key].as_u64().unwrap() * 2).to_string() };
                let other = MachineConfig::load("agpm-table4", &[doubled]).unwrap();
                assert!(other.derived()[nth].value > derived.value, "{derived:?}");
            }
        }
        let sets = |set: &str| {
            let volta = MachineConfig::load("volta-v100", &[Override::parse(set).unwrap()]).unwrap();
            volta.derived().into_iter().find(|derived| derived.name == "sets of an L1").unwrap().value
        };
        assert_eq!((sets("l1.unified_kb=128"), sets("l1.unified_kb=256")), (4.0, 8.0));
    }

    #[test]
    fn known_machines_have_known_quantities() {
        let machine = MachineConfig::load("agpm-table4", &[]).unwrap();
        let value = |name: &str| machine.derived().iter().find(|d| d.name == name).unwrap().value;
        assert_eq!(value("capacity of the L2 (KiB)"), 2048.0);
        assert_eq!(value("peak memory bandwidth (MB/s)"), 307_200.0);
        assert_eq!(value("NVM banks of all channels"), 128.0);
    }
}
