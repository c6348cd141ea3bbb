//! What the runs say about each of the paper's kernels.
//!
//! A kernel's time is that of its own launches and of the launches directly before them that log whole
//! buffers for it (`undo_log_copy_*`, where a launch is the transaction). Its counters are those of its own
//! kernels, and of such copies in proportion to their CTAs.
//!
//! Accesses are counted as AGPM's Table II counts them, which its rows for ATAX and StreamTriad tell exactly:
//!
//! * `log`: line accesses of log updates and flags, and those of their write-backs. The machine tells log
//!   updates from data, but not flags: two stores a CTA of one access each, each written back, so 4 accesses
//!   a CTA. Where only the first update is logged, a store of data stands for the log update that the paper's
//!   loop has, and all stores and write-backs to persistent memory are counted instead: the same number.
//! * `all`: line accesses of every load, store and atomic, and of every write-back.

use super::super::{Run, Runs};
use super::decisions::Periods;
use super::kernels::PaperKernel;
use super::runs::{Reading, counting};
use durawarp_persist::selection::{Locality, Period, Selection};
use durawarp_simulation::outcome::{KernelTotals, Launch, Outcome};
use durawarp_workload::Mode;

/// Beginning of the names of kernels that log whole buffers.
const COPY: &str = "undo_log_copy_";

/// Accesses a CTA that its flag takes: two stores, each written back.
const FLAG_ACCESSES: u64 = 4;

/// Buckets of the un-coalescing degree: name, and the counter that has it.
pub(crate) const DEGREES: [(&str, &str); 6] = [
    ("1", "degree_1"),
    ("2", "degree_2"),
    ("3-4", "degree_3_4"),
    ("5-8", "degree_5_8"),
    ("9-16", "degree_9_16"),
    ("17+", "degree_17_more"),
];

/// A kernel of the paper in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'a> {
    kernel: &'a PaperKernel,
    outcome: &'a Outcome,
}

/// A kernel in a run, if that was run and the kernel was launched.
pub(crate) fn measured<'a>(runs: &Runs<'a>, kernel: &'a PaperKernel, run: &Run) -> Option<Measured<'a>> {
    let outcome = runs.outcome(run)?;
    let launched = kernel.kernels.iter().any(|name| outcome.kernel(name).is_some());
    launched.then_some(Measured { kernel, outcome })
}

/// Localities of a kernel at the L1 and at the L2.
pub(crate) type Localities = [Locality; 2];

/// What a kernel's launches counted by a reading, all together; a launch's mean where the paper's are of one.
/// Launches that log whole buffers are not among them.
pub(crate) fn localities(runs: &Runs<'_>, kernel: &PaperKernel, reading: &Reading) -> Option<Localities> {
    let selection = runs.outcome(&counting(kernel, reading))?.selection()?;
    let mut sums = Localities::default();
    for period in selection.periods.iter().filter(|period| kernel.kernels.contains(&period.kernel.as_str())) {
        sums[0].add(&period.l1);
        sums[1].add(&period.l2);
    }
    let launches = match measured(runs, kernel, &counting(kernel, reading)) {
        Some(run) if kernel.per_launch => run.launches().max(1),
        _ => 1,
    };
    Some(sums.map(|of| Locality {
        t_all: of.t_all / launches,
        t_log: of.t_log / launches,
        s_all: of.s_all / launches,
        s_log: of.s_log / launches,
    }))
}

impl Measured<'_> {
    /// Ticks of its launches, and of what logs for them.
    pub(crate) fn ticks(&self) -> u64 {
        let launches = &self.outcome.launches;
        let own = (0..launches.len()).filter(|&number| self.is_own(&launches[number]));
        own.map(|number| launches[number].length.ticks + ticks(self.copies_before(number))).sum()
    }

    fn is_own(&self, launch: &Launch) -> bool {
        self.kernel.kernels.contains(&launch.kernel.as_str())
    }

    /// Launches directly before a launch that log whole buffers.
    fn copies_before(&self, number: usize) -> &[Launch] {
        let before = &self.outcome.launches[..number];
        let others = before.iter().rposition(|launch| !launch.kernel.starts_with(COPY)).map_or(0, |other| other + 1);
        &before[others..]
    }

    /// What the selector noted of it; `None` of a run whose scheme has none.
    pub(crate) fn periods(&self) -> Option<Periods> {
        let selection = self.outcome.selection()?;
        let launches = &self.outcome.launches;
        let own: Vec<usize> = (0..launches.len()).filter(|&number| self.is_own(&launches[number])).collect();
        let copies: Vec<usize> =
            own.iter().flat_map(|&number| number - self.copies_before(number).len()..number).collect();
        let of = |numbers: &[usize]| {
            let is_one = |period: &&Period| numbers.contains(&(period.launch as usize));
            selection.periods.iter().filter(is_one).cloned().collect()
        };
        Some(Periods { own: of(&own), copies: of(&copies), cut: selection.periods.len() >= Selection::KEPT })
    }

    /// A counter of the SMs.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let of = |totals: &KernelTotals| totals.counters.get(&format!("sm.{name}")).copied().unwrap_or(0);
        let own: u64 = self.kernel.kernels.iter().filter_map(|kernel| self.outcome.kernel(kernel)).map(of).sum();
        let copies = self.outcome.kernels.iter().filter(|totals| totals.kernel.starts_with(COPY));
        own + copies.map(|copy| self.share_of(copy, of(copy))).sum::<u64>()
    }

    /// This kernel's share of what a kernel that logs whole buffers counted.
    fn share_of(&self, copy: &KernelTotals, counted: u64) -> u64 {
        let launches = &self.outcome.launches;
        let all = ctas(launches.iter().filter(|launch| launch.kernel == copy.kernel));
        let own = (0..launches.len()).filter(|&number| self.is_own(&launches[number]));
        let own: u64 = own
            .map(|number| ctas(self.copies_before(number).iter().filter(|launch| launch.kernel == copy.kernel)))
            .sum();
        (u128::from(counted) * u128::from(own) / u128::from(all.max(1))) as u64
    }

    /// Launches of its own.
    pub(crate) fn launches(&self) -> u64 {
        self.outcome.launches.iter().filter(|launch| self.is_own(launch)).count() as u64
    }

    /// A count as the paper gives it: of one launch, where it does.
    fn published(&self, count: u64) -> u64 {
        if self.kernel.per_launch { count / self.launches().max(1) } else { count }
    }

    /// Accesses of log updates, as Table II counts them.
    pub(crate) fn log(&self) -> u64 {
        let of = |name: &str| self.counter(name);
        let instrument = &self.outcome.workload["instrument"];
        let by_cta = [Mode::CtaUndo, Mode::IdempotentCta, Mode::Manual];
        let has_flags = by_cta.iter().any(|mode| instrument["mode"] == mode.name());
        self.published(if instrument["logs"] != true {
            0
        } else if instrument["loop_log"] == true {
            let flags = if has_flags { FLAG_ACCESSES * of("ctas") } else { 0 };
            of("pm_log_store_accesses") + of("pm_log_write_back_accesses") + flags
        } else {
            of("pm_store_accesses") + of("pm_write_back_accesses")
        })
    }

    /// All accesses, as Table II counts them.
    pub(crate) fn all(&self) -> u64 {
        self.published(
            ["l1_loads", "l1_bypasses", "l1_stores", "pm_write_back_accesses"]
                .iter()
                .map(|name| self.counter(name))
                .sum(),
        )
    }

    /// Shares of loads and stores by un-coalescing degree, in the order of [`DEGREES`].
    pub(crate) fn degrees(&self) -> [f64; DEGREES.len()] {
        let counts = DEGREES.map(|(_, counter)| self.counter(counter));
        let all = counts.iter().sum::<u64>().max(1) as f64;
        counts.map(|count| count as f64 / all)
    }
}

fn ticks(launches: &[Launch]) -> u64 {
    launches.iter().map(|launch| launch.length.ticks).sum()
}

fn ctas<'l>(launches: impl Iterator<Item = &'l Launch>) -> u64 {
    launches.map(|launch| launch.grid.iter().map(|&n| u64::from(n)).product::<u64>()).sum()
}
