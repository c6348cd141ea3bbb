//! Figures 7, 9 to 13 and 15 to 17: times of programs under a scheme over those under `base`, both in memory
//! mode; beside Figure 7 what harts and controllers waited for, which is the cause of its verdicts.

use super::ask::{self, Ask};
use super::counts::victims_conflicted;
use super::runs::{self, LABEL, Variant};
use super::{others, waits};
use crate::papers::lightwsp::ask as port;
use crate::papers::lightwsp::ask::Bars;
use crate::papers::lightwsp::overflow::{self, Pressure};
use crate::papers::lightwsp::published::told;
use crate::papers::lightwsp::relative::Times;
use crate::papers::others::name;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs, Verdict};
use durawarp_simulation::outcome::{Outcome, ratio};

/// The program that stands for vacation, of which section V-F5 tells.
const CONTENDED: &str = "reserve";

/// How many programs are memory-intensive.
const INTENSIVE: usize = 5;

/// A program's time under a variant over that under `base`.
fn time(runs: &Runs<'_>, program: &'static str, of: &Variant) -> Option<f64> {
    let (scheme, base) = (runs.outcome(&of.run(program))?, runs.outcome(&of.base(program))?);
    Some(ratio(scheme.time.ticks, base.time.ticks))
}

fn times_of(runs: &Runs<'_>, programs: &[&'static str], variants: &[Variant]) -> Times {
    let row = |&program: &&'static str| (name(program), variants.iter().map(|of| time(runs, program, of)).collect());
    Times::new("program", variants.iter().map(|of| of.name.clone()), programs.iter().map(row))
}

/// Why a figure has no bar of a scheme.
fn absent(variants: &[Variant], runs: &Runs<'_>, programs: &[&'static str]) -> Vec<String> {
    let ran = |of: &Variant| programs.iter().any(|program| runs.outcome(&of.run(program)).is_some());
    let missing = variants.iter().filter(|of| !ran(of));
    missing.map(|of| format!("absent: {} (no run of scheme `{}` with it)", of.name, of.scheme)).collect()
}

/// A figure of bars over some programs.
fn figure(
    name: &str,
    request: &Request,
    runs: &Runs<'_>,
    (programs, variants): (&[&'static str], &[Variant]),
    asks: impl Fn(&Bars) -> Vec<Ask>,
) -> (Times, Finding) {
    let times = times_of(runs, programs, variants);
    let mut notes = vec![LABEL.to_owned()];
    if programs.len() < request.kernels.len() {
        notes.push(format!("programs of this figure: {}", programs.join(", ")));
    }
    notes.extend(absent(variants, runs, programs));
    let asks = asks(&times.bars());
    if asks.iter().any(|ask| ask.verdict == Verdict::NotMet) {
        notes.extend(waits::cause(runs, programs, variants));
    }
    let finding = Finding { tables: vec![times.table(name)], asks, notes, ..Finding::default() };
    (times, finding)
}

fn by_name(bars: &Bars, name: &str) -> Option<f64> {
    bars.0.iter().find(|(other, _)| other == name).and_then(|(_, overhead)| *overhead)
}

/// Figure 7.
pub(super) fn systems(request: &Request, runs: &Runs<'_>) -> Finding {
    const NAMES: [&str; 4] = ["Capri", "PPA", runs::SCHEME, runs::CAPRI_FAST];
    let programs = runs::programs(request);
    let means = |bars: &Bars| NAMES.map(|name| by_name(bars, name));
    let variants = runs::by_system();
    let (times, mut finding) = figure("fig7", request, runs, (&programs, &variants), |bars| {
        let own = Bars(bars.0.iter().filter(|(name, _)| name == runs::SCHEME).cloned().collect());
        [ask::systems(means(bars)), port::defaults(&own)].concat()
    });
    let ours: Vec<_> = NAMES.into_iter().zip(means(&times.bars())).collect();
    finding.tables.push(told("fig7", &ours));
    let (table, cause) = waits::table(request, runs);
    finding.tables.push(table);
    finding.notes.extend(cause);
    finding.notes.push(format!("`{}` is light_wsp.commit = pipelined, a reading of ours", runs::PIPELINED));
    finding.notes.push(
        "times end with the program, before all that it stored is written: the table of waits has what was left"
            .to_owned(),
    );
    let times = times_of(runs, &request.programs, &runs::by_system_of_others());
    others::add(request, runs, &times, &mut finding);
    finding
}

/// Reads of persistent memory that came to the controllers, by 1,000 instructions, under `base`.
fn misses(runs: &Runs<'_>, program: &'static str) -> Option<(f64, u64)> {
    let base = runs.outcome(&runs::default().base(program))?;
    let of = |name| base.count_of("dram_cache", name).unwrap_or_default();
    let (hits, misses) = (of("read_hits"), of("read_misses"));
    Some((ratio((hits + misses) * 1000, base.warp_instructions()), hits))
}

/// Figure 9: the programs with the most misses of the shared cache.
pub(super) fn ideal(request: &Request, runs: &Runs<'_>) -> Finding {
    let found = |program: &'static str| misses(runs, program).map(|(rate, hits)| (program, rate, hits));
    let mut programs: Vec<_> = runs::programs(request).into_iter().filter_map(found).collect();
    programs.sort_by(|a, b| b.1.total_cmp(&a.1));
    programs.truncate(INTENSIVE);
    let names: Vec<&'static str> = programs.iter().map(|(program, ..)| *program).collect();
    let variants = runs::by_ideal();
    let times = times_of(runs, &names, &variants);
    let of_psp = times.rows().iter().map(|(program, times)| (*program, times[0].map(|time| time - 1.0)));
    let (of_psp, hits) = (of_psp.collect::<Vec<_>>(), programs.iter().map(|(.., hits)| hits).sum());
    let means = |bars: &Bars| ["ideal PSP", runs::SCHEME].map(|name| by_name(bars, name));
    let (times, mut finding) =
        figure("fig9", request, runs, (&names, &variants), |bars| ask::ideal(&of_psp, hits, means(bars)));
    let [psp, own] = means(&times.bars());
    let qsim = of_psp.iter().find(|(program, _)| *program == "qsim").and_then(|(_, overhead)| *overhead);
    let ours =
        [("ideal PSP", psp), ("ideal PSP of libquantum", qsim.map(|overhead| overhead + 1.0)), ("light-wsp", own)];
    finding.tables.push(told("fig9", &ours));
    let columns = ["program", "misses per 1,000 instructions", "hits of the DRAM cache"];
    let mut table = FigureTable::new("fig9_misses", "reads that missed the shared cache under base", &columns);
    for (program, rate, hits) in programs {
        table.push(vec![Cell::from(program), Cell::Number(rate, 3), Cell::Count(hits)]);
    }
    finding.tables.push(table);
    finding.notes.push(format!("memory-intensive are the {INTENSIVE} programs with the most misses under base"));
    finding
}

/// Figure 10.
pub(super) fn speculative(request: &Request, runs: &Runs<'_>) -> Finding {
    let programs = runs::without_npb(request);
    let means = |bars: &Bars| ["cWSP", runs::SCHEME].map(|name| by_name(bars, name));
    let (times, mut finding) = figure("fig10", request, runs, (&programs, &runs::by_speculation()), |bars| {
        let [cwsp, own] = means(bars);
        vec![ask::speculative(cwsp, own)]
    });
    let [cwsp, own] = means(&times.bars());
    finding.tables.push(told("fig10", &[("cWSP", cwsp), ("light-wsp", own)]));
    finding.notes.push("our cWSP has LightWSP's regions: idempotent ones are not formed".to_owned());
    finding
}

/// Figure 11.
pub(super) fn queues(request: &Request, runs: &Runs<'_>) -> Finding {
    let (programs, variants) = (runs::few(request), runs::by_queue());
    let pressures = pressures(runs, &programs, &variants);
    let waited = pressures.first().map_or(0, |smallest| smallest.waited);
    let (_, mut finding) = figure("fig11", request, runs, (&programs, &variants), |bars| port::queues(bars, waited));
    finding.tables.push(overflow::table("fig11_overflows", &pressures));
    finding.notes.push(overflow::MEANING.to_owned());
    finding
}

fn pressures(runs: &Runs<'_>, programs: &[&'static str], variants: &[Variant]) -> Vec<Pressure> {
    let of = |variant: &Variant| {
        Pressure::over(&variant.name, programs.iter().filter_map(|program| runs.outcome(&variant.run(program))))
    };
    variants.iter().map(of).collect()
}

/// Figure 12.
pub(super) fn thresholds(request: &Request, runs: &Runs<'_>) -> Finding {
    let programs = runs::few(request);
    let mut finding = figure("fig12", request, runs, (&programs, &runs::by_threshold()), port::thresholds).1;
    finding.notes.push("the paper's text names the best threshold, half the WPQ, and none of the others".to_owned());
    finding
}

/// Figure 13.
pub(super) fn victims(request: &Request, runs: &Runs<'_>) -> Finding {
    let programs = runs::few(request);
    let conflicts = victims_conflicted(request, runs);
    figure("fig13", request, runs, (&programs, &runs::by_victim()), |bars| port::victims(bars, conflicts)).1
}

/// Figure 15.
pub(super) fn bandwidths(request: &Request, runs: &Runs<'_>) -> Finding {
    let programs = runs::few(request);
    let mut finding = figure("fig15", request, runs, (&programs, &runs::by_bandwidth()), port::bandwidths).1;
    finding.notes.push("bandwidth is that of a core's path (reading L9)".to_owned());
    finding
}

/// Figure 16.
pub(super) fn threads(request: &Request, runs: &Runs<'_>) -> Finding {
    let (programs, variants) = (runs::threaded(request), runs::by_threads());
    let (_, mut finding) = figure("fig16", request, runs, (&programs, &variants), |bars| vec![ask::threads(bars)]);
    let pressures = pressures(runs, &programs, &runs::overflowing());
    let rate = |entries: u32| pressures.iter().find(|of| of.entries == Some(entries.into())).and_then(Pressure::rate);
    let [small, _, large] = runs::WPQS.map(rate);
    finding.asks.extend(port::overflows(small, large));
    let contended = variants.iter().map(|of| time(runs, CONTENDED, of).map(|time| time - 1.0));
    finding.asks.push(ask::contended(contended.collect()));
    let fewer = small.zip(large).and_then(|(small, large)| (large > 0.0).then(|| small / large));
    let ours = [("overflows per 10000 instructions", small), ("fewer overflows with 256 entries", fewer)];
    finding.tables.push(told("fig16", &ours));
    finding.tables.push(overflow::table("fig16_overflows", &pressures));
    finding.notes.push(overflow::MEANING.to_owned());
    let smallest = &runs::overflowing()[0];
    finding.notes.extend(beyond_threshold(programs.iter().filter_map(|program| runs.outcome(&smallest.run(program)))));
    finding.notes.push(
        "cores are as many as threads, all else is the machine's; overflows are of 64 threads; reserve has its contended input \
         from 16 threads on, as vacation in the paper"
            .to_owned(),
    );
    finding
}

/// Regions beyond the threshold, in a sentence: the compiler forms none, a system call may.
fn beyond_threshold<'o>(outcomes: impl Iterator<Item = &'o Outcome>) -> Option<String> {
    let (mut regions, mut most, mut begun) = (0, 0, 0);
    for outcome in outcomes {
        let threshold = outcome.scheme_parameters.get("light_wsp.threshold_stores")?.value.as_u64()?;
        let by_stores = outcome.regions()?.sizes.by_stores;
        let beyond = by_stores.range(threshold + 1..).map(|(stores, count)| (*stores, *count));
        for (stores, count) in beyond {
            (regions, most) = (regions + count, most.max(stores));
        }
        begun += outcome.count_of("os", "threads").unwrap_or_default();
    }
    (regions > 0).then(|| {
        format!(
            "{regions} regions have more stores than the threshold, up to {most}; {begun} threads were begun: a `clone` stores all \
             registers of the new thread, and its program counter, in the region of the thread that calls, which no threshold cuts"
        )
    })
}

/// Figure 17.
pub(super) fn memories(request: &Request, runs: &Runs<'_>) -> Finding {
    let (programs, variants) = (runs::few(request), runs::by_memory());
    let (times, mut finding) = figure("fig17", request, runs, (&programs, &variants), port::memories);
    let worst = times.bars().values().and_then(|values| values.into_iter().max_by(f64::total_cmp));
    finding.tables.push(told("fig17", &[("overhead at most", worst)]));
    finding.notes.push("the machines are those of Table III whatever --machine says".to_owned());
    finding
}
