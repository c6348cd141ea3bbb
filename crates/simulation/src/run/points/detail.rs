//! A stretch of a program of CPUs simulated in detail: a machine that begins where the functional driver is,
//! executes a warm-up that is not counted, and then what is.
//!
//! ```text
//!   functional ──────────────> state, last uses of lines, branches
//!   machine                    warm-up ─ halt: read ─ counted ─ halt, or end of the program: read
//! ```
//! Cycles and instructions are those between two retirements, to the cycle. Other counters are read at the
//! end of the engine's round in which the core was there, a few cycles later; that round follows from the
//! experiment alone. A stretch that holds the end of the program goes on until all is written.

use std::collections::BTreeMap;

use durawarp_base::stats::Table;
use durawarp_engine::{RunEnd, Time};
use durawarp_machine::coherence::CPU_LINE_BYTES;
use durawarp_machine::core::{Core, PassedMark};
use durawarp_machine::cpu::CpuSpec;
use durawarp_riscv::functional::FunctionalRun;

use super::last_uses::LastUses;
use crate::assemble::{CpuLoad, Midway, assemble_cpu_midway};
use crate::run::conduct::Conduct;
use crate::run::cpu::{counters, persistency};
use crate::run::cpu_experiment::CpuExperiment;
use crate::run::end::Clocks;
use crate::run::simulated::Simulated;

/// Lines that the shared cache is warmed with, in its sizes: sets are not used evenly.
const WARMED: usize = 4;

/// What came of a stretch, without its warm-up.
pub(super) struct Stretch {
    pub(super) ticks: Time,
    pub(super) instructions: u64,
    pub(super) counters: Vec<Table>,
    pub(super) scheme_counters: BTreeMap<String, u64>,
    /// It came to its end, or the program did.
    pub(super) is_whole: bool,
}

/// Simulates `length` instructions after `warm_up` others, from where the functional driver is.
pub(super) fn simulate(
    experiment: &CpuExperiment,
    load: CpuLoad<'_>,
    run: &FunctionalRun<'_, LastUses>,
    (warm_up, length): (u64, u64),
    conduct: &Conduct<'_>,
) -> (Simulated, Stretch) {
    let spec = &experiment.machine.spec;
    let clocks = Clocks::of(spec.timebase(), spec.clock.core_mhz);
    let (lines, branches) = (run.observer().lines(WARMED * lines_of_llc(spec)), run.observer().branches());
    let marks = [warm_up, warm_up.saturating_add(length)];
    let midway = Midway {
        memory: run.memory(),
        os: run.os(),
        hart: &run.hart(0),
        now_ns: run.now_ns(),
        lines: &lines,
        branches: &branches,
        // A machine that begins with what is counted need not halt there.
        halt_at: if warm_up == 0 { &marks[1..] } else { &marks },
    };
    let machine = assemble_cpu_midway(spec, load, &persistency(experiment, conduct), midway);
    let mut ran = Simulated::idle(machine, clocks);
    let (mut before, counted) = (None, usize::from(warm_up > 0));
    if warm_up > 0 {
        go_on_to(&mut ran, 1, conduct);
        before = Some((counters(&ran.machine), ran.scheme_counters()));
    }
    if passed(&ran).len() == counted && ran.machine.ended().is_none() {
        go_on_to(&mut ran, counted + 1, conduct);
    }
    // What is left to be written at the end of the program is written then, as in a whole run.
    if passed(&ran).len() <= counted && matches!(ran.end, RunEnd::Halted { .. }) {
        ran.go_on(conduct);
    }
    let begin = passed(&ran)[..passed(&ran).len().min(counted)].first().copied();
    let begin = begin.unwrap_or(PassedMark { cycles: 0, instructions: 0 });
    let mut tables = counters(&ran.machine);
    let executed: u64 =
        tables.iter().filter(|table| table.kind == "core").map(|table| table.total("instructions")).sum();
    let (end, instructions) = match passed(&ran).get(counted) {
        Some(mark) => (clocks.core.cycles(mark.cycles), mark.instructions),
        None => (ran.time(), executed),
    };
    let is_whole = passed(&ran).len() > counted || matches!(ran.end, RunEnd::Finished { .. });
    let mut scheme_counters = ran.scheme_counters();
    if let Some((before, scheme_before)) = before {
        tables.iter_mut().zip(&before).for_each(|(table, before)| subtract(table, before));
        for (name, count) in &mut scheme_counters {
            *count = count.saturating_sub(scheme_before.get(name).copied().unwrap_or(0));
        }
    }
    let stretch = Stretch {
        ticks: end.saturating_sub(clocks.core.cycles(begin.cycles)),
        instructions: instructions.saturating_sub(begin.instructions),
        counters: tables,
        scheme_counters,
        is_whole,
    };
    (ran, stretch)
}

/// Simulates until core 0 has passed this many marks, or to an end of its own. The end of the program halts,
/// too.
fn go_on_to(ran: &mut Simulated, marks: usize, conduct: &Conduct<'_>) {
    loop {
        ran.go_on(conduct);
        let is_there = passed(ran).len() >= marks || ran.machine.ended().is_some();
        if is_there || !matches!(ran.end, RunEnd::Halted { .. }) {
            return;
        }
    }
}

fn passed(ran: &Simulated) -> &[PassedMark] {
    ran.machine.cores().next().map_or(&[], Core::passed_marks)
}

fn lines_of_llc(spec: &CpuSpec) -> usize {
    spec.llc.slices as usize * (spec.llc.slice_kb as usize * 1024 / CPU_LINE_BYTES as usize)
}

fn subtract(table: &mut Table, before: &Table) {
    let values = table.rows.iter_mut().flatten().zip(before.rows.iter().flatten());
    values.for_each(|(value, before)| *value = value.saturating_sub(*before));
}
