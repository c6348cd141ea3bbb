//! Figures 7, 11, 12, 13, 15, 16 and 17: times of the formed kernels over those of the kernels as they are.

use super::ask::{self, Bars};
use super::counts;
use super::overflow::{self, Pressure};
use super::published::{LABEL, told};
use super::relative::Times;
use super::runs::{self, SCHEME, Variant};
use crate::papers::{Finding, Request, Runs};
use durawarp_simulation::outcome::Outcome;

/// What the text gives of a WPQ of 256 entries, as the published values call it.
const FEWER: &str = "fewer overflows with 256 entries";

/// Ticks of a run's launches.
fn ticks(outcome: &Outcome) -> u64 {
    outcome.kernels.iter().map(|kernel| kernel.time.ticks).sum()
}

/// A kernel's time under a variant over that under `base`.
fn time(runs: &Runs<'_>, kernel: &'static str, variant: &Variant) -> Option<f64> {
    let (scheme, base) = (runs.outcome(&variant.run(kernel))?, runs.outcome(&variant.base(kernel))?);
    Some(ticks(scheme) as f64 / ticks(base).max(1) as f64)
}

/// Times by kernel and variant.
fn times_of(request: &Request, runs: &Runs<'_>, variants: &[Variant]) -> Times {
    let row = |&kernel: &&'static str| (kernel, variants.iter().map(|of| time(runs, kernel, of)).collect());
    Times::new("kernel", variants.iter().map(|variant| variant.name.clone()), request.kernels.iter().map(row))
}

/// A figure of times alone.
fn sensitivity(
    name: &str,
    request: &Request,
    runs: &Runs<'_>,
    variants: &[Variant],
    asks: impl Fn(&Bars) -> Vec<ask::Ask>,
) -> Finding {
    let times = times_of(request, runs, variants);
    Finding {
        tables: vec![times.table(name)],
        asks: asks(&times.bars()),
        notes: vec![LABEL.to_owned()],
        ..Finding::default()
    }
}

/// Figure 7.
pub(super) fn defaults(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut finding = sensitivity("fig7", request, runs, &[runs::default()], ask::defaults);
    let mean = times_of(request, runs, &[runs::default()]).bars().0.pop().and_then(|(_, mean)| mean);
    finding.tables.push(told("fig7", &[(SCHEME, mean)]));
    finding.tables.push(counts::backlog(request, runs));
    finding.notes.extend([
        "times and the ask are of launches, which end before all that they stored is written: see the table of what was left".to_owned(),
        "Capri and PPA are not modelled".to_owned(),
    ]);
    finding
}

/// Figure 11.
pub(super) fn queues(request: &Request, runs: &Runs<'_>) -> Finding {
    let variants = runs::by_queue(request);
    let pressures: Vec<Pressure> = variants.iter().map(|variant| Pressure::of(request, runs, variant)).collect();
    let waited = pressures.first().map_or(0, |smallest| smallest.waited);
    let mut finding = sensitivity("fig11", request, runs, &variants, |bars| ask::queues(bars, waited));
    finding.tables.push(overflow::table("fig11_overflows", &pressures));
    finding.notes.extend([overflow::MEANING.to_owned(), overflow::BYTES.to_owned()]);
    finding
}

/// Figure 12.
pub(super) fn thresholds(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut finding = sensitivity("fig12", request, runs, &runs::by_threshold(request), ask::thresholds);
    finding.notes.push("the paper's text names the best threshold, half the WPQ, and none of the others".to_owned());
    finding
}

/// Figure 13 and Table II.
pub(super) fn victims(request: &Request, runs: &Runs<'_>) -> Finding {
    let rates = counts::conflicts(request, runs);
    let (conflicts, _) = rates.sums();
    let mut finding = sensitivity("fig13", request, runs, &runs::by_victim(), |bars| ask::victims(bars, conflicts));
    finding.asks.push(ask::conflicts(rates.sums()));
    finding.tables.push(told("fig13", &[("conflict rate at most", rates.mean())]));
    finding
        .tables
        .push(rates.table("fig13_conflicts", "conflicts of lines that were to leave the L2 with copies on their way"));
    finding.notes.push("the port's L1s hold no dirty lines: it is the L2 that looks for victims".to_owned());
    finding
}

/// Figure 15.
pub(super) fn bandwidths(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut finding = sensitivity("fig15", request, runs, &runs::by_bandwidth(request), ask::bandwidths);
    finding.notes.push("bandwidth is that of an SM's path: a fourth, a half and all of the scheme's, for the paper's 1, 2 and 4 GB/s a core".to_owned());
    finding
}

/// Figure 16.
pub(super) fn warps(request: &Request, runs: &Runs<'_>) -> Finding {
    let variants = runs::by_warps();
    let base = |variant: &Variant, kernel| runs.outcome(&variant.base(kernel)).map(ticks);
    // Where fewer warps are as fast without the scheme, no kernel has more of them.
    let (fewest, most) = (&variants[0], &variants[variants.len() - 1]);
    let filled = request.kernels.iter().filter(|kernel| base(fewest, kernel) != base(most, kernel)).count() as u64;
    let mut finding = sensitivity("fig16", request, runs, &variants, |bars| ask::warps(bars, filled));
    finding.tables.push(times_of(request, runs, &runs::by_warps_as_it_is()).table("fig16_as_it_is"));
    let pressures: Vec<Pressure> =
        runs::overflowing(request).iter().map(|variant| Pressure::of(request, runs, variant)).collect();
    let rate = |entries: u64| pressures.iter().find(|of| of.entries == Some(entries)).and_then(Pressure::rate);
    let [small, _, large] = runs::PAPER_WPQS.map(rate);
    finding.asks.extend(ask::overflows(small, large));
    let fewer = small.zip(large).and_then(|(small, large)| (large > 0.0).then(|| small / large));
    finding.tables.push(told("fig16", &[("overflows per 10000 instructions", small), (FEWER, fewer)]));
    finding.tables.push(overflow::table("fig16_overflows", &pressures));
    finding.notes.extend([
        "the paper's threads, 8 to 64 on 8 cores, are warps that an SM holds; bars are of a WPQ of 64 entries, as there".to_owned(),
        overflow::MEANING.to_owned(),
        overflow::BYTES.to_owned(),
    ]);
    finding
}

/// Figure 17.
pub(super) fn memories(request: &Request, runs: &Runs<'_>) -> Finding {
    let variants = runs::by_memory();
    let mut finding = sensitivity("fig17", request, runs, &variants, ask::memories);
    let bars = times_of(request, runs, &variants).bars();
    let worst = bars.values().and_then(|values| values.into_iter().max_by(f64::total_cmp));
    finding.tables.push(told("fig17", &[("overhead at most", worst)]));
    finding.notes.push("the machines are those of Table III whatever --machine says".to_owned());
    finding
}
