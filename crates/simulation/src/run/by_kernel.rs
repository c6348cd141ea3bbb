//! Launches and counters of a run by kernel.
//!
//! The order is that of first launches. Only what belongs to a kernel exactly is attributed: the SMs'
//! counters, see [`KernelTotals::counters`].

use std::collections::BTreeMap;

use crate::assemble::Assembly;
use crate::outcome::{Duration, KernelTotals, Launch};
use durawarp_base::stats::Counters as _;
use durawarp_engine::Time;
use durawarp_machine::sm::SmCounters;

/// The totals of every kernel that was launched.
pub(super) fn totals(
    machine: &Assembly,
    launches: &[Launch],
    duration: impl Fn(Time) -> Duration,
) -> Vec<KernelTotals> {
    // A list, not a map: the order is that of first launches, and kernels are few.
    let mut kernels: Vec<(String, u64, Time, SmCounters)> = Vec::new();
    for launch in launches {
        match kernels.iter_mut().find(|(name, ..)| *name == launch.kernel) {
            Some((_, count, ticks, _)) => {
                *count += 1;
                *ticks += launch.length.ticks;
            }
            None => kernels.push((launch.kernel.clone(), 1, launch.length.ticks, SmCounters::default())),
        }
    }
    for (name, counted) in machine.sms().flat_map(|sm| sm.counters_by_kernel()) {
        if let Some((.., all)) = kernels.iter_mut().find(|(kernel, ..)| *kernel == name) {
            all.add(&counted);
        }
    }
    let of = |(kernel, launches, ticks, counted): (String, u64, Time, SmCounters)| KernelTotals {
        kernel,
        launches,
        time: duration(ticks),
        counters: named(&counted),
    };
    kernels.into_iter().map(of).collect()
}

fn named(counted: &SmCounters) -> BTreeMap<String, u64> {
    let names = SmCounters::DESCRIPTIONS.iter().map(|described| format!("sm.{}", described.name));
    names.zip(counted.values()).collect()
}
